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

/* A deferred call. */
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

/* For runs in which an owner represents many (fold/fold_symmetry.c): keep the *place* of each event
 * in the total order, as far as it is independent of the numbering of owners.  A smaller place
 * comes first for all represented owners; for equal places the order is unknown. Call it before
 * anything is scheduled; on_timer is called before each timer runs. */
void clk_keep_places(clk_clock *c, void (*on_timer)(void *context, uint32_t owner), void *context);
uint64_t clk_place(const clk_clock *c); /* of the running event; 0: none has run */
/* The origin of the running event, inherited by the events it schedules: the handler may set the
 * viewpoint from which it is seen elsewhere.  Initially 0. */
uint32_t clk_origin(const clk_clock *c);
void clk_set_origin(clk_clock *c, uint32_t origin);
/* Owners now represent fewer others: between two events, each pending event becomes several, with
 * the same place.  copy says what the k-th of them does, whose timer it is (UINT32_MAX: none), and
 * its origin.  False: out of memory. */
typedef void (*clk_copy)(
    void *context, uint32_t k, clk_call *call, uint32_t *owner, uint32_t *origin);
bool clk_multiply(clk_clock *c, uint32_t copies, clk_copy copy, void *context);

/* ---- one run on several clocks (parts.c) ----
 *
 * The *trail* of an event determines its position within its tick: the event that scheduled it, and
 * its index among the events scheduled by that one (docs/design/threads.md).  Events of any of the
 * clocks can be compared by their trails. */
typedef struct clk_trail {
    /* its scheduler: a number known to all clocks; 0: an end of trails (clk_number) */
    uint64_t parent;
    uint32_t child; /* its index among its parent's children */
    /* of timers that run together; 1: the receiver's half of a message between clocks */
    uint32_t sub;
} clk_trail;

enum { CLK_CLOCKS = 64 };
/* all: `count` clocks, this one at `index`; they must outlive it.  Call it before anything is
 * scheduled.  False: out of memory. */
bool clk_keep_trails(clk_clock *c, clk_clock *const *all, uint32_t index);
void clk_start_rank(clk_clock *c,
                    /* what is scheduled next is scheduled by the start of this rank */
                    uint32_t rank);
clk_trail clk_reserve(clk_clock *c);          /* as if something were scheduled now */
clk_trail clk_last_trail(const clk_clock *c); /* of what was scheduled last, unless a timer */
/* The event last scheduled with clk_after, by this delay, is the second half of an event whose
 * first half is on another clock. */
void clk_make_second_half(clk_clock *c, uint64_t delay);
void clk_put(clk_clock *c,
             uint64_t tick,
             clk_trail trail,
             clk_call call); /* at its position in the tick */
/* Does an event of this tick and trail precede the one that ran last; or the event that reserved
 * `by` at `tick_by`? */
bool clk_is_past(const clk_clock *c, uint64_t tick, clk_trail trail);
bool clk_is_before_parent(
    const clk_clock *c, uint64_t tick, clk_trail trail, uint64_t tick_by, clk_trail by);
/* Of the running event; during the start of a rank: of what it schedules. */
clk_trail clk_running_trail(const clk_clock *c);
bool clk_is_before(const clk_clock *c, clk_trail a, clk_trail b); /* events of one tick */
size_t clk_trails_kept(const clk_clock *c);
void clk_count(clk_clock *c, int64_t events); /* events that ran elsewhere, or twice */
/* Between two events, on all clocks together: trails end here, and events keep their order.  List
 * lists the pending events in order; number numbers the lists of all clocks in one order; cut makes
 * the numbers the trails.  False: out of memory. */
bool clk_list_trails(clk_clock *c);
bool clk_number_trails(clk_clock *const *all, uint32_t count);
void clk_cut_trails(clk_clock *c);

/* Run one event, or a few of an attached model; false: none is left. */
bool clk_step(clk_clock *c);
/* Run events until *left, which counts down from at least 1, is 0, or until one of them sets
 * *pauses.  False: none is left.  Faster than as many steps. */
bool clk_run(clk_clock *c, uint64_t *left, const bool *pauses);
/* with no event pending: advance now to tick */
void clk_jump(clk_clock *c, uint64_t tick);
bool clk_next_tick(const clk_clock *c, uint64_t *tick); /* of the earliest event */
void clk_stop(clk_clock *c);                            /* no further event will run */
bool clk_has_failed(const clk_clock *c);
bool clk_is_over(const clk_clock *c);    /* it failed: a tick beyond the last one was scheduled */
uint64_t clk_events(const clk_clock *c); /* run so far, each timer counted */

/* All pending events, in execution order.  False: `visit` returned false, or out of memory. */
typedef bool (*clk_visitor)(void *context, uint64_t tick, const clk_call *call);
bool clk_visit(const clk_clock *c, clk_visitor visit, void *context);
bool clk_is_between_ticks(const clk_clock *c); /* all pending events are later than now */

#endif
