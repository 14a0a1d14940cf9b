/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - simulated time: what happens when, and among equals, in which order.
 *
 *     orr__clock_at(c, now + 10, arrive, net, message);     // arrive(net, message) in 10 ticks
 *     while (orr__clock_step(c)) ;
 *
 * Events of one tick run in the order in which they were scheduled, also those scheduled for the running
 * tick while it runs (astra-sim.md 4.1).  Besides, each *owner* (an NPU) has timers: all timers of one owner
 * for one tick run together, where the first of them stands (4.2). */
#ifndef ORR_RUN_CLOCK_H
#define ORR_RUN_CLOCK_H

#include "base/event_line.h"
#include "base/memory/heap.h"
#include "base/memory/memory.h"

typedef struct orr__clock orr__clock;
typedef void (*orr__action)(void *context, uint64_t argument);

/* Something to do later. */
typedef struct orr__call {
    orr__action action; /* NULL: nothing */
    void *context;
    uint64_t argument;
} orr__call;

static inline void orr__call_now(orr__call c)
{
    if (c.action)
        c.action(c.context, c.argument);
}

#define ORR__CLOCK_LAST ((uint64_t)INT64_MAX) /* 292 years */

orr__clock *orr__clock_create(void); /* NULL: out of memory */
void orr__clock_destroy(orr__clock *c);

uint64_t orr__clock_now(const orr__clock *c);
/* tick: not before now.  Out of memory is remembered: see orr__clock_has_failed. */
void orr__clock_at(
    orr__clock *c, uint64_t tick, orr__action action, void *context, uint64_t argument);
void orr__clock_timer(orr__clock *c,
                      uint32_t owner,
                      uint64_t tick,
                      orr__action action,
                      void *context,
                      uint64_t argument);

/* Events of a model that keeps its own run among those of the clock, in one order.  Before anything is scheduled.
 * The line is shared from then on; detached, the model's events run no more. */
orr_event_line *orr__clock_line(orr__clock *c);
void orr__clock_attach(orr__clock *c, const orr_event_source *source);
void orr__clock_detach(orr__clock *c);

/* Run one event, or a few of a model's own; false: none is left. */
bool orr__clock_step(orr__clock *c);
bool orr__clock_next_tick(const orr__clock *c, uint64_t *tick); /* of the earliest event */
void orr__clock_stop(orr__clock *c);                            /* no further event will run */
bool orr__clock_has_failed(const orr__clock *c);
bool orr__clock_is_over(const orr__clock *c);    /* it failed on a tick after the last one */
uint64_t orr__clock_events(const orr__clock *c); /* run so far, timers counted each */

#endif
