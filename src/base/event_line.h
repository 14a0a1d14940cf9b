/* SPDX-License-Identifier: Apache-2.0 */
/* event_line.h - one total order over the events of two queues.
 *
 * A clock and a model that keeps its own pending events share one of these.  Each takes the numbers
 * of its events from `order`; the model runs its events as long as they come before (bound_at,
 * bound_order), which is the first event of the clock and moves while the model runs; `now` is the
 * time of whichever event runs. */
#ifndef ORR_BASE_EVENT_LINE_H
#define ORR_BASE_EVENT_LINE_H

#include <orrery/types.h>

typedef struct orr_event_line {
    uint64_t now;
    uint64_t order;    /* the number of the next event to be scheduled */
    uint64_t bound_at; /* UINT64_MAX: the clock is empty */
    uint64_t bound_order;
} orr_event_line;

/* The events of a model, for a clock. */
typedef struct orr_event_source {
    /* Runs at most `most` events that precede the line's bound; returns how many, including those
     * that the model skipped because it knew their result. */
    uint64_t (*run)(void *context, uint64_t most);
    bool (*next_at)(const void *context, uint64_t *at); /* false: none */
    void *context;
} orr_event_source;

#endif
