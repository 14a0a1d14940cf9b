/* SPDX-License-Identifier: Apache-2.0 */
/* flow_times.h - how long flows took, and how much longer than alone: percentiles by class of size,
 * in bounded memory.
 *
 *     if (!orr__flow_times_add(&f->times, size, ticks, ideal)) ...   // out of memory
 *     orr__flow_times_fill(&f->times, ps, &all, classes); */
#ifndef ORR_MODELS_FLOW_TIMES_H
#define ORR_MODELS_FLOW_TIMES_H

#include <orrery/lab/fabric_view.h>

enum { ORR__SPREAD_BITS = 7, ORR__SPREAD_PAGES = 65 - ORR__SPREAD_BITS };

typedef struct orr__spread_bin {
    uint64_t count, least, most;
} orr__spread_bin;

/* How values are spread: bins no wider than 1/128 of their values, made when they are needed. */
typedef struct orr__spread {
    uint64_t count, least;
    orr__spread_bin *pages[ORR__SPREAD_PAGES];
} orr__spread;

typedef struct orr__flow_times {
    struct orr__flow_class {
        uint64_t flows, bytes;
        orr__spread times;     /* ticks */
        orr__spread slowdowns; /* millionths */
    } classes[ORR_FABRIC_CLASSES];
} orr__flow_times;

/* False: out of memory.  ideal 0: not known. */
bool orr__flow_times_add(orr__flow_times *t, uint64_t size, uint64_t ticks, uint64_t ideal);
void orr__flow_times_fini(orr__flow_times *t);
/* ps: of a tick. */
void orr__flow_times_fill(const orr__flow_times *t,
                          uint64_t ps,
                          orr_fabric_flows *all,
                          orr_fabric_flows classes[ORR_FABRIC_CLASSES]);

bool orr__spread_add(orr__spread *s, uint64_t value); /* false: out of memory */
void orr__spread_fini(orr__spread *s);
/* The value that so many of 1000 do not pass, of `count` spreads together; 0: the least.  Of none
 * it is 0. */
uint64_t orr__spread_at(const orr__spread *const *list, size_t count, unsigned permille);

#endif
