/* SPDX-License-Identifier: Apache-2.0 */
/* net_time.h - the functions of network.h that speak of time, in ticks of the clock: whole
 * nanoseconds.  For this library's own models; src/run defines them. */
#ifndef ORR_NET_TIME_H
#define ORR_NET_TIME_H

#include <orrery/network.h>

uint64_t orr__net_now(const orr_net *n);
void orr__net_after(orr_net *n,
                    uint64_t delay,
                    void (*call)(void *context, uint64_t argument),
                    void *context,
                    uint64_t argument);
void orr__net_deliver_after(orr_net *n, uint64_t delay, uint64_t token);

/* For models whose links stand for others: the place of the event that runs in the order of all
 * (clock.h), and the order of what happens to a link is not known. */
uint64_t orr__net_place(const orr_net *n);
/* Where the rank is whose start led to the event that runs, as seen from the link or rank that it
 * meets: a rank with the digits by which it is away from home (symmetry.h); NONE: not the same for
 * all. */
#define NET_ORIGIN_NONE UINT32_MAX
uint32_t orr__net_origin(const orr_net *n);
void orr__net_set_origin(orr_net *n, uint32_t origin);
/* The event goes on where `rank` is at home. */
void orr__net_move_origin(orr_net *n, uint32_t rank);
void orr__net_lose_order(orr_net *n);

/* What a message between two ranks costs where messages do not delay each other: latency + size /
 * speed. */
typedef struct net_path {
    double latency_ns, speed; /* bytes per ns */
} net_path;
orr_code orr__unaware_path(const void *net, uint32_t src, uint32_t dst, net_path *out);
orr_code orr__unaware_graph_path(
    void *net, uint32_t src, uint32_t dst, net_path *out, orr_error *err);

#endif
