/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - simulated time: when events run, and in which order those of one tick run.
 *
 *     clk_after(c, 10, arrive, net, message);     // arrive(net, message) in 10 ticks
 *     while (clk_step(c)) ;
 *
 * Events of one tick run in the order in which they were scheduled, also those scheduled for the
 * running tick while it runs (astra-sim.md 4.1).  Besides, each *owner* (an NPU) has timers: all
 * timers of one owner for one tick run together, in the place of the first of them (astra-sim.md
 * 4.2). */
#ifndef ORR_RUN_CLOCK_H
#define ORR_RUN_CLOCK_H

#include "base/event_line.h"
#include "base/memory/heap.h"
#include "base/memory/memory.h"

typedef struct clk_clock clk_clock;
typedef void (*clk_action)(void *context, uint64_t argument);

/* Something to do later. */
typedef struct clk_call {
    clk_action action; /* NULL: nothing */
    void *context;
    uint64_t argument;
} clk_call;

static inline void clk_call_now(clk_call c)
{
    if (c.action)
        c.action(c.context, c.argument);
}

#define CLK_LAST ((uint64_t)INT64_MAX) /* 292 years */

clk_clock *clk_create(void); /* NULL: out of memory */
void clk_destroy(clk_clock *c);

/* Inline, as it is asked all the time: a clock begins with its line. */
static inline uint64_t clk_now(const clk_clock *c)
{
    return ((const orr_event_line *)c)->now;
}
/* tick: not before now.  Running out of memory is recorded: see clk_has_failed. */
void clk_at(clk_clock *c, uint64_t tick, clk_action action, void *context, uint64_t argument);
void clk_after(clk_clock *c, uint64_t delay, clk_action action, void *context, uint64_t argument);
void clk_timer(clk_clock *c,
               uint32_t owner,
               uint64_t tick,
               clk_action action,
               void *context,
               uint64_t argument);

/* A model may keep its own event queue; its events and those of the clock then run in one order.
 * Attach it before anything is scheduled: the line is shared from then on.  After detaching, the
 * model's events do not run. */
orr_event_line *clk_line(clk_clock *c);
void clk_attach(clk_clock *c, const orr_event_source *source);
void clk_detach(clk_clock *c);

/* For runs in which an owner stands for many (fold/fold_symmetry.c): keep the *place* of each event
 * in the order of all, as far as it is the same however owners are numbered.  What has a smaller
 * place comes first for all that it stands for; of events with the same place that is not known.
 * Call it before anything is scheduled; on_timer hears of each timer before it runs. */
void clk_keep_places(clk_clock *c, void (*on_timer)(void *context, uint32_t owner), void *context);
uint64_t clk_place(const clk_clock *c); /* of the event that runs; 0: none has run */
/* The origin of the event that runs, which those that it schedules inherit: whoever runs it may say
 * what it is seen from elsewhere.  At the start 0. */
uint32_t clk_origin(const clk_clock *c);
void clk_set_origin(clk_clock *c, uint32_t origin);
/* Those who stood for others stand for fewer: between two events, each that is pending becomes
 * several, with its place.  copy says what the k-th of them does, whose timer it is (UINT32_MAX:
 * none), and its origin.  False: out of memory. */
typedef void (*clk_copy)(
    void *context, uint32_t k, clk_call *call, uint32_t *owner, uint32_t *origin);
bool clk_multiply(clk_clock *c, uint32_t copies, clk_copy copy, void *context);

/* ---- one run on several clocks (parts.c) ----
 *
 * The *trail* of an event is what its place among those of its tick follows from: the event that
 * scheduled it, and its index among what that scheduled (docs/design/threads.md).  Events of any
 * of the clocks can be compared by their trails. */
typedef struct clk_trail {
    /* who scheduled it: a number that all clocks know; 0: an end of trails (clk_number) */
    uint64_t parent;
    uint32_t child; /* its index among what its parent scheduled */
    /* of timers that run together; 1: the receiver's half of a message between clocks */
    uint32_t sub;
} clk_trail;

enum { CLK_CLOCKS = 64 };
/* all: as many clocks, this one among them at `index`; they must stay.  Call it before anything is
 * scheduled.  False: out of memory. */
bool clk_keep_trails(clk_clock *c, clk_clock *const *all, uint32_t index);
void clk_start_rank(clk_clock *c,
                    uint32_t rank);  /* what is scheduled next is by the start of this rank */
clk_trail clk_reserve(clk_clock *c); /* as if something were scheduled now */
clk_trail clk_last_trail(const clk_clock *c); /* of what was scheduled last, if it is no timer */
/* What was scheduled last with clk_after, by this delay, is the second half of an event whose
 * first half is in another clock. */
void clk_make_second_half(clk_clock *c, uint64_t delay);
void clk_put(clk_clock *c,
             uint64_t tick,
             clk_trail trail,
             clk_call call); /* where it belongs in its tick */
/* Is an event of this tick and trail before the one that ran last; or before the event that
 * reserved `by` at `tick_by`? */
bool clk_is_past(const clk_clock *c, uint64_t tick, clk_trail trail);
bool clk_is_before_parent(
    const clk_clock *c, uint64_t tick, clk_trail trail, uint64_t tick_by, clk_trail by);
/* Of the event that runs; of the start of a rank: of what it schedules. */
clk_trail clk_running_trail(const clk_clock *c);
bool clk_is_before(const clk_clock *c, clk_trail a, clk_trail b); /* events of one tick */
size_t clk_trails_kept(const clk_clock *c);
void clk_count(clk_clock *c, int64_t events); /* that ran elsewhere, or twice */
/* Between two events, of all clocks together: trails end here, and events keep their order.  List
 * lists what is pending, in order; number gives the lists of all clocks numbers in one order; cut
 * makes them the trails.  False: out of memory. */
bool clk_list_trails(clk_clock *c);
bool clk_number_trails(clk_clock *const *all, uint32_t count);
void clk_cut_trails(clk_clock *c);

/* Run one event, or a few of a model's own; false: none is left. */
bool clk_step(clk_clock *c);
/* Events until *left, which counts them down from at least 1, is 0, or until one of them sets
 * *pauses.  False: none is left.  Faster than as many steps. */
bool clk_run(clk_clock *c, uint64_t *left, const bool *pauses);
void clk_jump(clk_clock *c, uint64_t tick);             /* with no event pending: now is then */
bool clk_next_tick(const clk_clock *c, uint64_t *tick); /* of the earliest event */
void clk_stop(clk_clock *c);                            /* no further event will run */
bool clk_has_failed(const clk_clock *c);
bool clk_is_over(const clk_clock *c);    /* it failed on a tick after the last one */
uint64_t clk_events(const clk_clock *c); /* run so far, timers counted each */

/* All that is pending, in the order in which it will run.  False: `visit` said so, or out of
 * memory. */
typedef bool (*clk_visitor)(void *context, uint64_t tick, const clk_call *call);
bool clk_visit(const clk_clock *c, clk_visitor visit, void *context);
bool clk_is_between_ticks(const clk_clock *c); /* what is pending is later than now */

#endif
