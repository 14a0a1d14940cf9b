/* SPDX-License-Identifier: Apache-2.0 */
/* fold_events.c - the pending events of classes, and their order.
 *
 * Events run by their earliest member.  That is safe: the effects of an event are not earlier than
 * itself, so an event that precedes another for all members cannot appear after the other has run.
 * Among the pending events of one class the one that runs must be first for *every* member; if it
 * is first for some only, the class is split.
 *
 * Events of one member at one tick: their order is that in which they were scheduled, and all
 * timers of the tick run in the place of the first (clock.h).  An event here knows how long before
 * its time it was scheduled (its lag): the longer lag goes first; equal lags are ordered only if
 * both were scheduled by the same rank, one after the other: two timers of nodes, two sends, or
 * equal phases that began together.  Undecided cases are tried out: if the same nodes start next in
 * every order of the events, the order does not matter, unless one of those nodes takes no time
 * (fold_timer). */
#include "fold_impl.h"

#include "base/arithmetic.h"
#include "trace/attrs.h"

/* MOST_TIED: 24 orders; five events would be 120, each a walk through the nodes that start. */
enum { NO_EVENT_YET = UINT8_MAX, MOST_TIED = 4, MOST_STARTED = 32 };

typedef enum order { BEFORE, AFTER, UNKNOWN, CROSSED } order;

static bool is_timer(const fold_event *e)
{
    return e->kind != FOLD_ARRIVAL;
}

/* Both phases began together, in the same order on every rank, and are equal. */
static order phase_order(const fold_event *e, const fold_event *g)
{
    const fold_meeting *a = e->meeting, *b = g->meeting;
    if (!a || !b || a->family != b->family || !coll_times_same(&a->phase, &b->phase))
        return UNKNOWN;
    const bool is_first = a->numbers[0] < b->numbers[0];
    for (uint32_t i = 0; i < a->family->class_count; i++)
        if (a->starts[i].base != b->starts[i].base || a->starts[i].by != b->starts[i].by ||
            (a->numbers[i] < b->numbers[i]) != is_first)
            return UNKNOWN;
    return is_first ? BEFORE : AFTER;
}

static order by_lag(const fold_event *e, const fold_event *g)
{
    if (e->lag_least > g->lag_most)
        return BEFORE;
    return g->lag_least > e->lag_most ? AFTER : UNKNOWN;
}

static bool has_same_lag(const fold_event *e, const fold_event *g)
{
    return e->lag_least == e->lag_most && g->lag_least == g->lag_most &&
           e->lag_least == g->lag_least;
}

/* The timers of a tick run together, at the position of the first: the longest lag of any of them
 * counts. */
static order timers_against(const fold_sim *f,
                            const fold_class *c,
                            const fold_event *timer,
                            const fold_event *arrival)
{
    int64_t least = timer->lag_least, most = timer->lag_most;
    for (uint32_t i = c->first_event; i != RUN_NONE; i = f->events[i].next) {
        const fold_event *e = &f->events[i];
        if (!is_timer(e) || e->at.base != timer->at.base || e->at.by != timer->at.by)
            continue;
        least = e->lag_least > least ? e->lag_least : least;
        most = e->lag_most > most ? e->lag_most : most;
    }
    if (least > arrival->lag_most)
        return BEFORE;
    /* A running phase may have its own timers at this tick. */
    const bool may_be_earlier = c->phases > 0 || timer->kind == FOLD_PHASE_END || most == 0;
    return !may_be_earlier && most < arrival->lag_least ? AFTER : UNKNOWN;
}

/* Set by the rank at the time it was numbered: of a node, or of a phase that waits only for its
 * first timer. */
static bool is_own_timer(const fold_event *e)
{
    return e->kind == FOLD_TIMER || (e->kind == FOLD_PHASE_END && e->is_own);
}

static order turned(order o)
{
    return o == BEFORE ? AFTER : o == AFTER ? BEFORE : o;
}

/* The order of the clock within a tick (clock.h), as far as lags and numbers determine it; else
 * UNKNOWN. */
static order tie_order(const fold_sim *f,
                       const fold_class *c,
                       const fold_event *e,
                       const fold_event *g)
{
    if (is_timer(e) != is_timer(g))
        return is_timer(e) ? timers_against(f, c, e, g) : turned(timers_against(f, c, g, e));
    /* Equal phases have the same lag, for each member. */
    const order o = by_lag(e, g);
    const order alike = o == UNKNOWN ? phase_order(e, g) : UNKNOWN;
    if (alike != UNKNOWN)
        return alike;
    if (o != UNKNOWN || !has_same_lag(e, g))
        return o;
    const bool is_same_source =
        e->kind == FOLD_ARRIVAL ? e->sender == g->sender : is_own_timer(e) && is_own_timer(g);
    if (!is_same_source)
        return UNKNOWN;
    return e->number < g->number ? BEFORE : AFTER;
}

static const sys_stream *stream_of(const fold_event *e)
{
    return e->kind == FOLD_PHASE_END ? e->call.context : NULL;
}

/* The slot of a phase; NO_SLOT: not a phase. */
static uint8_t slot_of(const fold_class *c, const fold_event *e)
{
    const sys_stream *st = stream_of(e);
    return st ? c->npu->graph->slot[st->set->place] : FOLD_NO_SLOT;
}

/* Do two events of a class compete? */
static bool are_rivals(const fold_sim *f,
                       const fold_class *c,
                       const fold_event *a,
                       const fold_event *b)
{
    return !f->is_loose || (a->kind == FOLD_PHASE_END && slot_of(c, a) == slot_of(c, b));
}

/* The order of two events of a class for all members.  CROSSED: it depends on the member, see
 * *sign. */
static order order_of(
    fold_sim *f, const fold_class *c, const fold_event *e, const fold_event *g, fold_val *sign)
{
    /* Equal spreads: the bases decide for all members at once, without a subtraction. */
    if (e->at.by == g->at.by && e->at.base != g->at.base)
        return e->at.base < g->at.base ? BEFORE : AFTER;
    const fold_val apart = fold_sub(f->times, g->at, e->at);
    const int64_t least = apart.base, most = fold_most(f->times, apart);
    if (least > 0)
        return BEFORE;
    if (most < 0)
        return AFTER;
    const order tie = least == 0 || most == 0 ? tie_order(f, c, e, g) : UNKNOWN;
    if ((least == 0 && most == 0) || (least == 0 && tie == BEFORE) || (most == 0 && tie == AFTER))
        return tie;
    /* Positive for members with `e` first: they become a separate class. */
    *sign = most > 0 ? apart : fold_sub(f->times, (fold_val){0, 0, 0}, apart);
    return CROSSED;
}

static void lose_order(fold_sim *f, const fold_class *c)
{
    f->lost_order = true;
    fold_give_up(f, "rank %u: events of one tick, in an unknown order", c->ranks[0]);
}

/* ---- scheduling ---- */

/* A class cannot roll back: a new event must come after its last one. */
static void check_after_last(fold_sim *f, fold_class *c, const fold_event *e)
{
    fold_val sign;
    const uint8_t slot = slot_of(c, e);
    if (f->is_loose && e->kind != FOLD_PHASE_END)
        return;
    /* Loosely only the ends of phases of one slot have an order (are_rivals). */
    const fold_event *last = f->is_loose ? &c->slots[slot].last : &c->last;
    if (last->kind == NO_EVENT_YET ||
        (c == f->running && (!f->is_loose || f->ending_slot == slot ||
                             f->follows >> slot & 1))) /* it is caused by it */
        return;
    const order o = order_of(f, c, last, e, &sign);
    fold_tape_order(f, last, e, by_lag(last, e) == BEFORE);
    if (o == CROSSED)
        fold_split(f, (uint32_t)(c - f->classes), sign,
                   "members come to their events in different orders");
    else if (o != BEFORE)
        lose_order(f, c);
}

void fold_schedule(fold_sim *f, const fold_event *value)
{
    fold_class *c = &f->classes[value->class_index];
    if (fold_is_over(f))
        return;
    check_after_last(f, c, value);
    if (!fold_is_over(f))
        fold_put_event(f, value);
}

void fold_put_event(fold_sim *f, const fold_event *value)
{
    fold_class *c = &f->classes[value->class_index];
    uint32_t i = f->free_event;
    if (i != RUN_NONE) {
        f->free_event = f->events[i].next;
    } else {
        if (f->event_count >= RUN_NONE ||
            !orr_grow(&f->events, &f->event_room, f->event_count + 1)) {
            run_no_memory(f->s);
            return;
        }
        i = (uint32_t)f->event_count++;
    }
    /* Bases are added and subtracted freely: far from the limits of the type no sum wraps. */
    if (value->at.base < 0 || (uint64_t)value->at.base >= ORR_TICKS_FAR) {
        fold_give_up(f, "a time is out of range");
        return;
    }
    /* Keyed by the earliest member: see above. */
    if (!orr_heap_push(&f->queue, (uint64_t)value->at.base, i)) {
        run_no_memory(f->s);
        return;
    }
    f->events[i] = *value;
    f->events[i].is_pending = true;
    f->events[i].next = c->first_event;
    c->first_event = i;
}

void fold_timer(run_npu *n, uint64_t delay, clk_action action, void *context, uint64_t argument)
{
    fold_sim *f = n->sim->fold;
    const fold_class *c = fold_class_at(n);
    if (delay >= ORR_TICKS_FAR) {
        fold_give_up(f, "a time is out of range");
        return;
    }
    /* It joins the timers of its tick, and so may run before an arrival that the trial placed
     * before or after all of them. */
    if (delay == 0 && c->has_tried && c->tried_at.base == c->now.base &&
        c->tried_at.by == c->now.by) {
        lose_order(f, c);
        return;
    }
    fold_schedule(f, &(fold_event){.at = {c->now.base + (int64_t)delay, c->now.by, c->now.id},
                                   .lag_least = (int64_t)delay,
                                   .lag_most = (int64_t)delay,
                                   .call = {action, context, argument},
                                   .number = ++f->numbers,
                                   .class_index = (uint32_t)(c - f->classes),
                                   .kind = FOLD_TIMER});
}

/* ---- does the order matter? ----
 *
 * A dry run of the completions: which nodes start, and in which order. */

/* A trial never modifies the rank: it keeps the changes in small lists beside it.  A trial that
 * outgrows them is abandoned, and the order counts as unknown. */
typedef struct trial {
    const run_npu *n;
    uint32_t occupant[WORK_SLOTS];
    uint32_t added[MOST_STARTED * 2], removed[MOST_STARTED], touched[MOST_STARTED * 4];
    uint32_t added_count, removed_count,
        touched_count; /* touched: children of ended nodes, once per parent */
    bool is_too_much, starts_collective;
} trial;

static bool is_in(const uint32_t *list, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

static void try_end(trial *t, uint32_t place)
{
    const work_graph *g = t->n->graph;
    if (t->occupant[g->slot[place]] == place)
        t->occupant[g->slot[place]] = RUN_NONE;
    for (uint32_t e = g->child_first[place]; e < g->child_first[place + 1]; e++) {
        const uint32_t child = g->child[e];
        uint32_t ended = 1;
        for (uint32_t i = 0; i < t->touched_count; i++)
            ended += t->touched[i] == child;
        if (t->touched_count == MOST_STARTED * 4 || t->added_count == MOST_STARTED * 2) {
            t->is_too_much = true;
            return;
        }
        t->touched[t->touched_count++] = child;
        /* All remaining parents end in this trial. */
        if (t->n->waiting_for[child] == ended)
            t->added[t->added_count++] = child;
    }
}

static uint32_t next_ready(const trial *t, unsigned slot, uint32_t from)
{
    /* Ready nodes, minus those the trial has started, plus those it has made ready. */
    uint32_t best = orr_bitset_next(&t->n->ready[slot], from);
    while (best != RUN_NONE && is_in(t->removed, t->removed_count, best))
        best = orr_bitset_next(&t->n->ready[slot], best + 1);
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->n->graph->slot[t->added[i]] == slot && t->added[i] >= from && t->added[i] < best &&
            !is_in(t->removed, t->removed_count, t->added[i]))
            best = t->added[i];
    return best;
}

static void try_issue(trial *t)
{
    const work_graph *g = t->n->graph;
    for (uint32_t from = 0;;) {
        uint32_t best = RUN_NONE;
        for (unsigned s = 0; s < g->slot_count; s++) {
            const uint32_t place = t->occupant[s] == RUN_NONE ? next_ready(t, s, from) : RUN_NONE;
            best = place < best ? place : best;
        }
        if (best == RUN_NONE)
            return;
        const uint8_t type = g->t->columns.type[g->node[best]];
        if (t->removed_count == MOST_STARTED || type == ORR_NODE_INVALID ||
            (type == ORR_NODE_COMP && t->n->sim->system.roofline)) {
            const int64_t *size = g->t->columns.tensor_size;
            if (t->removed_count == MOST_STARTED || type == ORR_NODE_INVALID || !size ||
                size[g->node[best]] == 0) {
                t->is_too_much = true; /* nodes that take no time */
                return;
            }
        }
        t->removed[t->removed_count++] = best;
        if (g->slot[best] != WORK_SLOT_RECV)
            t->occupant[g->slot[best]] = best;
        t->starts_collective = t->starts_collective || type == ORR_NODE_COMM_COLL;
        from = best + 1;
    }
}

/* The node completed by this event; NONE: a phase that is not the last of its collective. NONE - 1:
 * an event whose effect is not known here. */
static uint32_t completed(const fold_event *e)
{
    const sys_stream *st = stream_of(e);
    if (!st)
        return e->call.action == work_node_done ? (uint32_t)e->call.argument : RUN_NONE - 1;
    return st->phase + 1 == st->phase_count && st->set->finished + 1 == st->set->expected
               ? st->set->place
               : RUN_NONE;
}

static void try_order(
    const run_npu *n, fold_event *const *events, const uint32_t *turn, uint32_t count, trial *t)
{
    *t = (trial){.n = n};
    memcpy(t->occupant, n->occupant, sizeof t->occupant);
    for (uint32_t i = 0; i < count && !t->is_too_much; i++) {
        const uint32_t place = completed(events[turn[i]]);
        if (place == RUN_NONE)
            continue;
        try_end(t, place);
        if (!t->is_too_much)
            try_issue(t);
    }
}

static bool next_permutation(uint32_t *p, uint32_t count)
{
    uint32_t i = count - 1, k = count - 1;
    while (i > 0 && p[i - 1] > p[i])
        i--;
    if (i == 0)
        return false;
    while (p[k] < p[i - 1])
        k--;
    uint32_t t = p[i - 1];
    p[i - 1] = p[k];
    p[k] = t;
    for (uint32_t a = i, b = count - 1; a < b; a++, b--) {
        t = p[a];
        p[a] = p[b];
        p[b] = t;
    }
    return true;
}

static uint32_t queue_at(const sys_stream *st, uint32_t phase)
{
    return phase < st->phase_count ? st->phases[phase].queue : RUN_NONE;
}

/* Two phases use different queues, now and next, and belong to different collectives or are not
 * their last. */
static bool are_apart(const sys_stream *a, const sys_stream *b)
{
    const uint32_t x[] = {queue_at(a, a->phase), queue_at(a, a->phase + 1)};
    const uint32_t y[] = {queue_at(b, b->phase), queue_at(b, b->phase + 1)};
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < 2; k++)
            if (x[i] == y[k] && x[i] != RUN_NONE)
                return false;
    /* The last two phases of one collective: either could be the one that ends it. */
    return a->set != b->set || x[1] != RUN_NONE || y[1] != RUN_NONE;
}

/* Do the same nodes start in the same order, whichever of these events comes first?  Then the
 * outcome is the same, since all of them happen at one time for every member. */
static bool order_is_immaterial(const fold_class *c, fold_event *const *events, uint32_t count)
{
    uint32_t turn[MOST_TIED] = {0}, phases = 0;
    trial first, other;
    for (uint32_t i = 0; i < count; i++) {
        turn[i] = i;
        phases += events[i]->kind == FOLD_PHASE_END;
        if (completed(events[i]) == RUN_NONE - 1)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (stream_of(events[i]) && stream_of(events[k]) &&
                !are_apart(stream_of(events[i]), stream_of(events[k])))
                return false;
    }
    try_order(c->npu, events, turn, count, &first);
    /* A collective that starts while a phase ends depends on queues that this trial does not
     * model. */
    if (first.is_too_much || (phases && first.starts_collective))
        return false;
    while (next_permutation(turn, count)) {
        try_order(c->npu, events, turn, count, &other);
        if (other.is_too_much || other.removed_count != first.removed_count ||
            memcmp(other.removed, first.removed, first.removed_count * sizeof *first.removed) != 0)
            return false;
    }
    return true;
}

/* ---- the next event ---- */

/* The first of a class's pending events; NULL: given up. Two passes: the first finds the event that
 * the order puts first among those that begin together; the second compares it with every rival,
 * also later ones, since for some members another may be earlier. */
static fold_event *choose(fold_sim *f, fold_class *c, fold_event *best)
{
    fold_event *tied[MOST_TIED];
    uint32_t tied_count = 1;
    fold_val sign;
    for (uint32_t i = c->first_event; i != RUN_NONE; i = f->events[i].next) {
        fold_event *e = &f->events[i];
        /* The heap returns any of the events with the same earliest time: the first is selected
         * here. */
        if (e != best && e->at.base == best->at.base && are_rivals(f, c, best, e) &&
            order_of(f, c, best, e, &sign) == AFTER)
            best = e;
    }
    tied[0] = best;
    for (uint32_t i = c->first_event; i != RUN_NONE && !fold_is_over(f); i = f->events[i].next) {
        fold_event *e = &f->events[i];
        if (e == best || !are_rivals(f, c, best, e))
            continue;
        const order o = order_of(f, c, best, e, &sign);
        /* Decisions by trial are not on the tape: with the times of another step the order could
         * matter. */
        if (o == UNKNOWN)
            fold_tape_break(f);
        else
            fold_tape_order(f, best, e, by_lag(best, e) == BEFORE);
        if (o == CROSSED) {
            fold_split(f, (uint32_t)(c - f->classes), sign,
                       "members come to their events in different orders");
        } else if (o == AFTER || (o == UNKNOWN && tied_count == MOST_TIED)) {
            lose_order(f, c);
        } else if (o == UNKNOWN) {
            tied[tied_count++] = e;
        }
    }
    if (!fold_is_over(f) && tied_count > 1) {
        uint32_t timers = 0;
        for (uint32_t i = 0; i < tied_count; i++)
            timers += is_timer(tied[i]);
        if (timers && timers < tied_count) {
            c->has_tried = true;
            c->tried_at = best->at;
        }
        if (!order_is_immaterial(c, tied, tied_count))
            lose_order(f, c);
    }
    return fold_is_over(f) ? NULL : best;
}

static void take(fold_sim *f, fold_class *c, const fold_event *e)
{
    uint32_t *at = &c->first_event;
    /* Few are pending per class: a few timers, and one event per running phase. */
    while (&f->events[*at] != e)
        at = &f->events[*at].next;
    *at = e->next;
}

/* Pops the event with the earliest member; another one of its class and tick may have to run
 * first. */
bool fold_step(fold_sim *f)
{
    orr_heap_entry entry;
    do {
        if (!orr_heap_pop(&f->queue, &entry))
            return false;
        if (!f->events[entry.value].is_pending) { /* it ran instead of another of its tick */
            f->events[entry.value].next = f->free_event;
            f->free_event = entry.value;
        }
    } while (!f->events[entry.value].is_pending);
    fold_event *popped = &f->events[entry.value];
    fold_class *c = &f->classes[popped->class_index];
    fold_event *e = popped;
    /* The only event of its class has no rivals. */
    if (popped->next != RUN_NONE || &f->events[c->first_event] != popped)
        e = choose(f, c, popped);
    if (!e)
        return false;
    take(f, c, e);
    e->is_pending = false;
    /* A copy: running it schedules others, and the array may be reallocated. */
    const fold_event now = *e;
    /* Another one ran: push the popped entry back; that of the event that ran is dropped when it is
     * popped. */
    if (e == popped) {
        e->next = f->free_event;
        f->free_event = entry.value;
    } else if (!orr_heap_push(&f->queue, entry.key, entry.value)) {
        run_no_memory(f->s);
        return false;
    }
    c->now = c->event_at = now.at;
    c->last = now;
    c->last.meeting = NULL; /* it may be reused */
    fold_tape_turn(f, c);
    f->running = c;
    f->events_run++;
    f->turn++;
    /* The clock has no events here; the layers read the time of the earliest member from it. */
    clk_jump(f->s->clock, (uint64_t)now.at.base);
    if (now.kind == FOLD_PHASE_END) {
        fold_phase_over(f, c, now.meeting);
        f->ending_slot = slot_of(c, &now);
        c->slots[f->ending_slot].last = c->last;
    }
    now.call.action(now.call.context, now.call.argument);
    f->ending_slot = FOLD_NO_SLOT;
    if (c->held_slots) {
        f->follows = c->held_slots;
        c->held_slots = 0;
        work_issue(c->npu);
        f->follows = 0;
    }
    f->running = NULL;
    if (now.meeting)
        fold_leave(f, now.meeting);
    if (f->may_merge && !fold_is_over(f))
        fold_merge_maybe(f, c, now.at.base);
    return !fold_is_over(f);
}
