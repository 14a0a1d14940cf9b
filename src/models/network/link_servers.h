/* SPDX-License-Identifier: Apache-2.0 */
/* link_servers.h - links on which messages delay each other: store and forward, each link a server
 * that takes one message at a time, first come, first served.  What the congestion-aware networks
 * share.
 *
 *     orr__servers_init(&net->servers, next_link, net);
 *     orr__servers_add(&net->servers, &(orr__link){.from = 0, .to = 1, .speed = 50, .latency = 500}, &index);
 *     ... orr__servers_send(&net->servers, sim, m, hash, err);         // from the model's send
 *
 * The model says where a packet goes: it is asked at the source and at each device on the way. */
#ifndef ORR_MODELS_LINK_SERVERS_H
#define ORR_MODELS_LINK_SERVERS_H

#include <orrery/network.h>

#include "base/memory/memory.h"

/* Besides the number of a link, what next_link may answer. */
#define ORR__LINK_NONE UINT32_MAX          /* there is no way; err is filled */
#define ORR__LINK_ARRIVED (UINT32_MAX - 1) /* the packet is where it is going */

typedef struct orr__link {
    double speed, latency; /* bytes a ns, ns */
    uint64_t messages, bytes, busy;
    uint32_t from, to;    /* devices: ranks first, then switches */
    uint32_t first, last; /* packets that wait */
    uint32_t waiting;
    uint32_t max_waiting : 31, is_busy : 1;
} orr__link;

/* A message on its way. */
typedef struct orr__packet {
    orr_message m;
    uint64_t hash; /* for choosing among equal ways */
    uint32_t at;   /* device */
    uint32_t next; /* waiting for the same link, or free */
} orr__packet;

typedef uint32_t (*orr__next_link)(void *net, const orr__packet *p, orr_error *err);

typedef struct orr__servers {
    orr_sim *sim; /* of the last send: one simulation owns this network */
    orr__next_link next_link;
    void *net;
    orr__link *links;
    size_t link_count, link_room;
    orr__packet *packets;
    size_t packet_count, packet_room;
    uint32_t free_packet;
} orr__servers;

void orr__servers_init(orr__servers *s, orr__next_link next_link, void *net);
void orr__servers_fini(orr__servers *s); /* an all-zero one is fine */
bool orr__servers_add(orr__servers *s,
                      const orr__link *like,
                      uint32_t *index_out); /* false: out of memory; index_out may be NULL */
orr_code orr__servers_send(
    orr__servers *s, orr_sim *sim, const orr_message *m, uint64_t hash, orr_error *err);

/* Every link that carried something; name fills in the link's name. */
typedef void (*orr__name_link)(const void *net, uint32_t link, char out[ORR_NET_LINK_NAME]);
void orr__servers_report(const orr__servers *s,
                         orr__name_link name,
                         orr_net_link_visit visit,
                         void *context);

#endif
