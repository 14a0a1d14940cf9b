/* SPDX-License-Identifier: Apache-2.0 */
/* link_servers.h - links with contention: store and forward, each link a FIFO server of one message
 * at a time.  Shared by the congestion-aware networks.
 *
 *     net_servers_init(&net->servers, next_link, net);
 *     net_servers_add(&net->servers, &(net_link){.from = 0, .to = 1, .speed = 50, .latency = 500}, &index);
 *     ... net_servers_send(&net->servers, sim, m, hash, err);         // from the model's send
 *
 * The model supplies the route: it is called at the source and at each device on the way. */
#ifndef ORR_MODELS_LINK_SERVERS_H
#define ORR_MODELS_LINK_SERVERS_H

#include <orrery/network.h>

#include "base/memory/memory.h"

/* Results of next_link other than a link number. */
#define NET_LINK_NONE UINT32_MAX          /* there is no route; err is filled */
#define NET_LINK_ARRIVED (UINT32_MAX - 1) /* the packet is at its destination */

typedef struct net_link {
    double speed, latency; /* bytes per ns, ns */
    uint64_t messages, bytes, busy;
    uint32_t from, to;    /* devices: ranks first, then switches */
    uint32_t first, last; /* waiting packets */
    uint32_t waiting;
    uint32_t max_waiting : 31, is_busy : 1;
} net_link;

/* A message in flight. */
typedef struct net_packet {
    orr_message m;
    uint64_t hash; /* for ECMP */
    uint32_t at;   /* device */
    uint32_t next; /* waiting for the same link, or free */
} net_packet;

/* If links represent others (symmetry.h), it translates the packet's destination along with the
 * link. */
typedef uint32_t (*net_next_link)(void *net, net_packet *p, orr_error *err);

/* The last event at a link that represents others. */
typedef struct net_touch {
    uint64_t at, place; /* time, and place in the order of events */
    uint32_t origin;    /* of the event, seen from the link */
    uint8_t how;        /* bits */
    bool is_one;        /* all had that origin */
    bool has_grown;     /* its queue reached a new maximum */
} net_touch;

/* In a run divided into parts, each with its own servers (net_servers_divide). */
typedef struct net_division {
    /* The rank whose part looks up the packet's next link, or receives the packet. */
    uint32_t (*keeper)(void *net, const net_packet *p);
    /* The packet reaches its next device after this delay, and then `arrive` is called.  True: it
     * moved to another part. */
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
    net_touch *touches; /* by link; only if links represent others */
    size_t touch_room;
    bool is_folded;
    uint32_t *link_copies, *packet_copies; /* during copying (net_servers_multiply) */
    uint32_t copies;
} net_servers;

void net_servers_init(net_servers *s, net_next_link next_link, void *net);
void net_servers_fini(net_servers *s); /* an all-zero one is fine */
bool net_servers_add(net_servers *s,
                     const net_link *like,
                     uint32_t *index_out); /* false: out of memory; index_out may be NULL */
orr_code net_servers_send(
    net_servers *s, orr_net *sim, const orr_message *m, uint64_t hash, orr_error *err);

/* Links represent others: the order of events at one link within a tick must be the same for all of
 * them, or make no difference; else the run is notified (orr__net_lose_order).  False: out of
 * memory. */
bool net_servers_fold(net_servers *s);

/* Reduces the symmetry: each link and packet becomes several.  The k-th copy of a link: link_of; of
 * a device: device_of; NONE: this link represents nothing. */
typedef struct net_copier {
    void *context;
    uint32_t copies;
    uint32_t (*moved)(void *context, uint32_t k, uint32_t rank);
    /* The token of a message to `dst`, at the k-th copy of its current link. */
    uint64_t (*token)(void *context, uint64_t token, uint32_t dst, uint32_t k);
} net_copier;
typedef uint32_t (*net_copy_of)(void *net, const net_copier *c, uint32_t k, uint32_t index);
bool net_servers_multiply(net_servers *s,
                          const net_copier *c,
                          net_copy_of link_of,
                          net_copy_of device_of); /* false: out of memory */
/* The argument of a callback scheduled by a link, for the k-th copy; false: not of a link. */
bool net_servers_copy_call(const net_servers *s,
                           void (*call)(void *context, uint64_t argument),
                           uint32_t k,
                           uint64_t *argument);
void net_servers_end_copies(net_servers *s);

/* Makes this the network of one part of a run, `sim`, serving the links kept by its ranks. */
void net_servers_divide(net_servers *s, orr_net *sim, const net_division *division);
/* Takes over a packet from another part, with the callback for its arrival at the device. False:
 * out of memory. */
bool net_servers_take(net_servers *s,
                      const net_packet *packet,
                      void (**call)(void *context, uint64_t argument),
                      void **context,
                      uint64_t *argument);
void net_servers_add_figures(net_servers *s, uint32_t index, const net_link *more);

/* Every link that carried traffic, by number, or in this order; name fills in the link's name. */
typedef void (*net_name_link)(const void *net, uint32_t link, char out[ORR_NET_LINK_NAME]);
void net_servers_report(const net_servers *s,
                        const uint32_t *order,
                        net_name_link name,
                        orr_net_link_visit visit,
                        void *context);

#endif
