/* SPDX-License-Identifier: Apache-2.0 */
/* flow_times.h - how long flows took, and how much longer than alone: percentiles by class of size,
 * in bounded memory.
 *
 *     if (!fab_flow_times_add(&f->times, size, ticks, ideal)) ...   // out of memory
 *     fab_flow_times_fill(&f->times, ps, &all, classes); */
#ifndef ORR_MODELS_FLOW_TIMES_H
#define ORR_MODELS_FLOW_TIMES_H

#include <orrery/lab/fabric_view.h>

enum { FAB_SPREAD_BITS = 7, FAB_SPREAD_PAGES = 65 - FAB_SPREAD_BITS };

typedef struct fab_spread_bin {
    uint64_t count, least, most;
} fab_spread_bin;

/* How values are spread: bins no wider than 1/128 of their values, made when they are needed. */
typedef struct fab_spread {
    uint64_t count, least;
    fab_spread_bin *pages[FAB_SPREAD_PAGES];
} fab_spread;

typedef struct fab_flow_times {
    struct fab_flow_class {
        uint64_t flows, bytes;
        fab_spread times;     /* ticks */
        fab_spread slowdowns; /* millionths */
    } classes[ORR_FABRIC_CLASSES];
} fab_flow_times;

/* False: out of memory.  ideal 0: not known. */
bool fab_flow_times_add(fab_flow_times *t, uint64_t size, uint64_t ticks, uint64_t ideal);
void fab_flow_times_fini(fab_flow_times *t);
/* ps: of a tick. */
void fab_flow_times_fill(const fab_flow_times *t,
                         uint64_t ps,
                         orr_fabric_flows *all,
                         orr_fabric_flows classes[ORR_FABRIC_CLASSES]);

bool fab_spread_add(fab_spread *s, uint64_t value); /* false: out of memory */
void fab_spread_fini(fab_spread *s);
/* The value that permille of 1000 do not exceed, of `count` spreads together; 0: the least.  Of
 * none it is 0. */
uint64_t fab_spread_at(const fab_spread *const *list, size_t count, unsigned permille);

#endif
