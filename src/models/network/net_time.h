/* SPDX-License-Identifier: Apache-2.0 */
/* net_time.h - the time functions of network.h in ticks of the clock: whole nanoseconds.  For this
 * library's own models; defined in src/run. */
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

/* For models whose links represent others: the place of the running event in the total order
 * (clock.h), and a report that the order of events at a link is unknown. */
uint64_t orr__net_place(const orr_net *n);
/* Origin of the running event, relative to the link or rank it concerns: a rank with the digits of
 * its distance from home (symmetry.h); NONE: not the same for all. */
#define NET_ORIGIN_NONE UINT32_MAX
uint32_t orr__net_origin(const orr_net *n);
void orr__net_set_origin(orr_net *n, uint32_t origin);
/* Moves the viewpoint of the event to the home of `rank`. */
void orr__net_move_origin(orr_net *n, uint32_t rank);
void orr__net_lose_order(orr_net *n);

/* The cost of a message between two ranks without contention: latency + size / speed. */
typedef struct net_path {
    double latency_ns, speed; /* bytes per ns */
} net_path;
orr_code orr__unaware_path(const void *net, uint32_t src, uint32_t dst, net_path *out);
orr_code orr__unaware_graph_path(
    void *net, uint32_t src, uint32_t dst, net_path *out, orr_error *err);

#endif
