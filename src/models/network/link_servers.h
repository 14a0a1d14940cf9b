/* SPDX-License-Identifier: Apache-2.0 */
/* link_servers.h - links on which messages delay each other: store and forward, each link a server
 * that takes one message at a time, first come, first served.  What the congestion-aware networks
 * share.
 *
 *     net_servers_init(&net->servers, next_link, net);
 *     net_servers_add(&net->servers, &(net_link){.from = 0, .to = 1, .speed = 50, .latency = 500}, &index);
 *     ... net_servers_send(&net->servers, sim, m, hash, err);         // from the model's send
 *
 * The model says where a packet goes: it is asked at the source and at each device on the way. */
#ifndef ORR_MODELS_LINK_SERVERS_H
#define ORR_MODELS_LINK_SERVERS_H

#include <orrery/network.h>

#include "base/memory/memory.h"

/* Besides the number of a link, what next_link may answer. */
#define NET_LINK_NONE UINT32_MAX          /* there is no route; err is filled */
#define NET_LINK_ARRIVED (UINT32_MAX - 1) /* the packet is where it is going */

typedef struct net_link {
    double speed, latency; /* bytes per ns, ns */
    uint64_t messages, bytes, busy;
    uint32_t from, to;    /* devices: ranks first, then switches */
    uint32_t first, last; /* packets that wait */
    uint32_t waiting;
    uint32_t max_waiting : 31, is_busy : 1;
} net_link;

/* A message on its way. */
typedef struct net_packet {
    orr_message m;
    uint64_t hash; /* for choosing among equal routes */
    uint32_t at;   /* device */
    uint32_t next; /* waiting for the same link, or free */
} net_packet;

/* Where links stand for others (symmetry.h), it moves the packet's destination along with the
 * link. */
typedef uint32_t (*net_next_link)(void *net, net_packet *p, orr_error *err);

/* What has happened to a link that stands for others, in the last event that did something to
 * it. */
typedef struct net_touch {
    uint64_t at, place; /* time, and place in the order of events */
    uint32_t origin;    /* of the event, seen from the link */
    uint8_t how;        /* bits */
    bool is_one;        /* all had that origin */
    bool has_grown;     /* its queue became longer than ever */
} net_touch;

/* Where a run is divided into parts, each with servers of its own (net_servers_divide). */
typedef struct net_division {
    /* The rank whose part asks for the packet's next link, or has it when it is there. */
    uint32_t (*keeper)(void *net, const net_packet *p);
    /* The packet will be at its next device after this delay, and then `arrive` is to be
     * called.  True: in another part, and it is no longer one of this one. */
    bool (*pass_on)(orr_net *sim,
                    uint64_t delay,
                    const net_packet *p,
                    uint32_t keeper,
                    void (*arrive)(void *servers, uint64_t packet),
                    uint64_t packet);
} net_division;

typedef struct net_servers {
    orr_net *sim;          /* of the last send: one simulation owns this network */
    net_division division; /* pass_on NULL: there are no parts */
    net_next_link next_link;
    void *net;
    net_link *links;
    size_t link_count, link_room;
    net_packet *packets;
    size_t packet_count, packet_room;
    uint32_t free_packet;
    net_touch *touches; /* by link; only where links stand for others */
    size_t touch_room;
    bool is_folded;
    uint32_t *link_copies, *packet_copies; /* while there are copies (net_servers_multiply) */
    uint32_t copies;
} net_servers;

void net_servers_init(net_servers *s, net_next_link next_link, void *net);
void net_servers_fini(net_servers *s); /* an all-zero one is fine */
bool net_servers_add(net_servers *s,
                     const net_link *like,
                     uint32_t *index_out); /* false: out of memory; index_out may be NULL */
orr_code net_servers_send(
    net_servers *s, orr_net *sim, const orr_message *m, uint64_t hash, orr_error *err);

/* Links stand for others: what happens to one in one tick must be in an order that is the same for
 * all of them, or make no difference; else the run is told (orr__net_lose_order).  False: out of
 * memory. */
bool net_servers_fold(net_servers *s);

/* Those that stood for others stand for fewer: each link and packet becomes several.  The k-th copy
 * of a link: link_of; of a device: device_of; NONE: this link stands for nobody. */
typedef struct net_copier {
    void *context;
    uint32_t copies;
    uint32_t (*moved)(void *context, uint32_t k, uint32_t rank);
    /* Of a message to `dst`, at the k-th copy of the link at which it is. */
    uint64_t (*token)(void *context, uint64_t token, uint32_t dst, uint32_t k);
} net_copier;
typedef uint32_t (*net_copy_of)(void *net, const net_copier *c, uint32_t k, uint32_t index);
bool net_servers_multiply(net_servers *s,
                          const net_copier *c,
                          net_copy_of link_of,
                          net_copy_of device_of); /* false: out of memory */
/* The argument of a call that a link scheduled, for the k-th copy; false: it is of no link. */
bool net_servers_copy_call(const net_servers *s,
                           void (*call)(void *context, uint64_t argument),
                           uint32_t k,
                           uint64_t *argument);
void net_servers_end_copies(net_servers *s);

/* This network is that of one part of a run, `sim`, and serves the links that its ranks keep. */
void net_servers_divide(net_servers *s, orr_net *sim, const net_division *division);
/* A packet that comes from another part, and what is to be called when it is at its device.
 * False: out of memory. */
bool net_servers_take(net_servers *s,
                      const net_packet *packet,
                      void (**call)(void *context, uint64_t argument),
                      void **context,
                      uint64_t *argument);
void net_servers_add_figures(net_servers *s, uint32_t index, const net_link *more);

/* Every link that carried something, by number, or in this order; name fills in the link's name. */
typedef void (*net_name_link)(const void *net, uint32_t link, char out[ORR_NET_LINK_NAME]);
void net_servers_report(const net_servers *s,
                        const uint32_t *order,
                        net_name_link name,
                        orr_net_link_visit visit,
                        void *context);

#endif
