/* SPDX-License-Identifier: Apache-2.0 */
/* run_events.c - the main loop: start the ranks, then run events until none is left, with a
 * progress line and a stop flag.
 *
 * The stop flag and the wall clock are checked once in a few thousand events.  The work left is
 * estimated in messages and nodes: the messages of a collective follow from its algorithm, and they
 * take most of the time. */
#include "fold/fold.h"
#include "parts.h"
#include "watch.h"

#include <orrery/lab/progress.h>
#include <orrery/lab/units.h>

#include <stdio.h>

/* BATCH: events between two checks of the stop flag and the terminal; some milliseconds. */
enum { BATCH = 4096, MOST_SPLITS = 8 };

void orr_sim_stop(orr_sim *s)
{
    atomic_store_explicit(&s->must_stop, true, memory_order_relaxed);
}

/* ---- estimate of the work ---- */

/* Messages that one member sends in one phase. */
static double phase_messages(orr_collective kind, const sys_dim *d)
{
    return d->ops->messages ? d->ops->messages(kind, d->count) : (double)d->count - 1;
}

/* Messages that one member sends in a whole collective. */
static double collective_messages(const run_npu *n, uint32_t place)
{
    const orr_sim *s = n->sim;
    const orr_columns *c = &n->graph->t->columns;
    const cfg_group *g = sys_node_group(n, place);
    const int type = c->comm_type ? c->comm_type[n->graph->node[place]] : -1;
    const int known = work_kind_of(type, s->rules);
    double sum = 0;
    if (known < 0)
        return 0;
    const orr_collective kind = (orr_collective)known;
    const sys_plan *p = &s->plans[kind];
    if (g && g->count != s->npu_count)
        return (double)s->system.splits * phase_messages(kind, sys_group_dim(s, g, kind));
    for (uint32_t k = 0; k < p->count; k++)
        if (p->dims[k].count > 1)
            sum += phase_messages(kind, &p->dims[k]);
    return (double)s->system.splits * sum;
}

static double class_work(const run_npu *n)
{
    const work_graph *g = n->graph;
    double sum = g->count;
    for (uint32_t p = 0; p < g->count && !n->sim->system.replay_only; p++)
        if (g->t->columns.type[g->node[p]] == ORR_NODE_COMM_COLL)
            sum += collective_messages(n, p);
        else if (g->t->columns.type[g->node[p]] == ORR_NODE_COMM_SEND)
            sum += 1;
    return sum;
}

/* 0: not known. */
static double whole_work(const orr_sim *s)
{
    /* Once per class: its ranks have the same work. */
    double *by_class = orr_alloc(orr_set_class_count(s->set), sizeof *by_class);
    double sum = 0;
    for (uint32_t r = 0; by_class && !s->fold && r < s->npu_count; r++) {
        double *one = &by_class[s->npus[r].graph - s->graphs];
        if (*one == 0)
            *one = class_work(&s->npus[r]);
        sum += *one;
    }
    orr_free(by_class);
    /* Each message is then preceded by a request. */
    return s->opt.rendezvous ? 2 * sum : sum;
}

/* ---- the progress line ---- */

typedef struct watcher {
    orr_progress line;
    double whole; /* work; 0: not known */
    char note[80];
} watcher;

static void say_where(watcher *p, const orr_sim *s)
{
    char time[ORR_UNIT_ROOM];
    const uint64_t now = clk_now(s->clock);
    const double done = (double)s->messages + (double)(s->watch ? s->watch->nodes_done : 0);
    if (p->whole > 0 && done > 0) {
        const double part = done / p->whole;
        p->line.total = part < 1 ? (uint64_t)((double)p->line.done / part) : p->line.done;
    }
    orr_time_text(now < INT64_MAX / 1000 ? (orr_ps)(now * 1000) : INT64_MAX, time);
    snprintf(p->note, sizeof p->note, "; at %s, %u of %u ranks done", time, s->finished,
             s->npu_count);
}

static void start_line(watcher *p, const orr_sim *s)
{
    orr_progress_start(&p->line, "simulating", s->packet ? "packets" : "events", 0,
                       !s->opt.shows_progress);
    p->line.note = p->note;
    /* Steps may be skipped: how many are run is not known before. */
    if (p->line.fd >= 0 && s->opt.steps < 2)
        p->whole = whole_work(s);
}

/* Progress is counted in packets if the network has them, else in events. */
static uint64_t work_done(const orr_sim *s)
{
    return s->packet ? run_packets_sent(s) : clk_events(s->clock);
}

static void move_line(watcher *p, const orr_sim *s, uint64_t events)
{
    if (p->line.done + events >= p->line.look)
        say_where(p, s);
    orr_progress_add(&p->line, events);
}

/* ---- the loop ---- */

static bool run_batch(orr_sim *s, uint64_t most)
{
    uint64_t left = most < BATCH ? most : BATCH;
    while (left) {
        if (!clk_run(s->clock, &left, &s->rounds.wants_look))
            return false;
        /* At the first tick boundary after a step: before the next event changes the state to be
         * compared. */
        if (s->rounds.wants_look)
            steady_look(s);
    }
    return true;
}

/* Until the limit on events. */
static uint64_t events_left(const orr_sim *s)
{
    const uint64_t most = s->opt.max_events, done = clk_events(s->clock);
    return !most ? UINT64_MAX : most > done ? most - done : 0;
}

static orr_code stopped(orr_sim *s, orr_error *err)
{
    char time[ORR_UNIT_ROOM];
    const uint64_t now = clk_now(s->clock);
    atomic_store(&s->must_stop, false);
    s->was_stopped = true;
    orr_time_text(now < INT64_MAX / 1000 ? (orr_ps)(now * 1000) : INT64_MAX, time);
    return orr_fail(err, ORR_ESTOP, NULL,
                    "interrupted at %s of simulated time: %u of %u ranks had finished", time,
                    s->finished, s->npu_count);
}

/* Until no event is left, or until a stop is requested: ORR_ESTOP. */
static orr_code run_loop(orr_sim *s, orr_error *err)
{
    watcher p = {.note = ""};
    uint64_t before = work_done(s);
    bool has_more = true, is_stopped = false;
    start_line(&p, s);
    while (has_more && !is_stopped) {
        has_more = run_batch(s, events_left(s));
        is_stopped = atomic_load_explicit(&s->must_stop, memory_order_relaxed) || !events_left(s);
        const uint64_t after = work_done(s);
        move_line(&p, s, after - before);
        before = after;
    }
    orr_progress_end(&p.line);
    /* the request has been served */
    atomic_store_explicit(&s->must_stop, false, memory_order_relaxed);
    /* If the limit equals the number of events, nothing is left to be stopped. */
    uint64_t next;
    has_more = has_more && clk_next_tick(s->clock, &next);
    return is_stopped && has_more ? stopped(s, err) : ORR_OK;
}

/* ---- start, step, run ---- */

static orr_code takes_too_long(orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL,
                    "something takes longer than 292 years; is a unit wrong?");
}

static orr_code status(const orr_sim *s, orr_error *err)
{
    if (s->code) {
        if (err)
            *err = s->error;
        return s->code;
    }
    if (clk_is_over(s->clock))
        return takes_too_long(err);
    return clk_has_failed(s->clock) ? orr_no_memory(err) : ORR_OK;
}

/* An event at tick 0 makes the reference abort (astra-sim.md 4.1); under its rules we report an
 * error instead. */
static orr_code refuse_tick_zero(const orr_sim *s, orr_error *err)
{
    uint64_t tick;
    if (!s->rules->refuses_tick_zero || !clk_next_tick(s->clock, &tick) || tick > 0)
        return ORR_OK;
    const orr_where w = orr_where_byte(s->system.path, ORR_NO_BYTE);
    return orr_fail(
        err, ORR_EINPUT, &w,
        "something takes 0 ns at the very start (endpoint-delay 0, a roofline time or a message below 1 ns): the reference aborts here; orrery run goes on");
}

void run_start_late(void *npu, uint64_t unused)
{
    run_npu *n = npu;
    (void)unused;
    if (n->sim->lockstep)
        fold_touch(n->sim, n->rank, true);
    work_issue(n);
}

static orr_code start(orr_sim *s, orr_error *err)
{
    s->has_started = true;
    for (uint32_t r = 0; r < s->npu_count && !s->code; r++)
        if (s->npus[r].weight == 0)
            continue;
        else if (s->npus[r].speed->delay)
            /* Ranks start in order, outside of events (astra-sim.md 1); delayed ones by a separate
             * event. */
            clk_at(s->clock, s->npus[r].speed->delay, run_start_late, &s->npus[r], 0);
        else
            work_issue(&s->npus[r]);
    const orr_code code = status(s, err);
    return code ? code : refuse_tick_zero(s, err);
}

static orr_code run_every_rank(orr_sim *s, orr_error *err);

/* Compares the folded run with a run of every rank. */
static orr_code verify_fold(orr_sim *s, orr_error *err)
{
    /* Before the rebuild, which destroys what is compared. */
    struct fold_found *found = fold_keep_found(s);
    if (!found)
        return orr_no_memory(err);
    orr_code code = run_build_again(s, false, err);
    /* Every step is simulated too: skipping is part of what is verified. */
    if (!code && !steady_init(s, false))
        code = orr_no_memory(err);
    if (!code)
        code = run_every_rank(s, err);
    if (!code)
        code = fold_compare_found(found, s, err);
    if (!code)
        fold_say_verified(found, s);
    fold_drop_found(found);
    return code;
}

/* Folded as long as it holds; then with finer classes, and finally every rank. */
static orr_code run_folded(orr_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    bool folds = true;
    while (s->fold && !code) {
        s->has_started = true;
        code = fold_run(s->fold, err);
        if (code == ORR_ESTOP)
            return stopped(s, err);
        if (!code && s->opt.fold == ORR_SIM_FOLD_VERIFY)
            return verify_fold(s, err);
        if (code != ORR_END)
            return code;
        /* First what keeps most of the folding.  Each remedy is remembered in s, so this ends. */
        if (fold_wants_loose(s->fold)) {
            s->fold_is_loose = true;
        } else if (fold_wants_strict(s->fold)) {
            s->fold_is_strict = true;
        } else if (fold_has_merged(s->fold)) { /* without merging it may finish in one order */
            s->fold_stays_apart = true;
            s->fold_is_loose = false;
        } else if (!fold_wants_split(s->fold) || ++s->fold_splits == MOST_SPLITS) {
            folds = false;
        }
        code = run_build_again(s, folds, err);
    }
    return code;
}

/* Up to the event that breaks the symmetry. */
static orr_code run_until_apart(orr_sim *s, orr_error *err)
{
    /* So many events ran before the one that begins the collective (fold_is_set_apart). */
    while (clk_events(s->clock) < s->fold_until && clk_step(s->clock))
        ;
    const orr_code code = status(s, err);
    return code ? code : fold_unfold(s, err);
}

/* In lockstep; if it stops before the end, simulate every rank, to report the reason. */
static orr_code run_in_lockstep(orr_sim *s, orr_error *err)
{
    orr_code code = s->has_started ? ORR_OK : start(s, err);
    if (!code && s->fold_until && !fold_wants_again(s))
        code = run_until_apart(s, err);
    if (!code)
        code = run_loop(s, err);
    if (fold_wants_again(s) && code != ORR_ESTOP) {
        code = fold_again(s, err);
        return code ? code : s->lockstep ? run_in_lockstep(s, err) : run_every_rank(s, err);
    }
    /* Partial results are those of simulated ranks until they are copied. */
    if (code == ORR_ESTOP)
        return fold_lockstep_spread(s) ? code : orr_no_memory(err);
    /* Before rebuilding, which would reset it. */
    const bool has_lost_order = fold_has_lost_order(s);
    if (!code)
        code = status(s, err);
    if (s->code == ORR_ENOMEM ||
        (code == ORR_ENOMEM && !has_lost_order)) /* which stops the clock */
        return code;
    if (code || s->finished < s->npu_count) {
        if (!has_lost_order)
            snprintf(s->fold_why, sizeof s->fold_why, "the run does not finish");
        code = run_build_again(s, false, err);
        return code ? code : run_every_rank(s, err);
    }
    if (!fold_lockstep_spread(s) || !fold_spread_links(s))
        return orr_no_memory(err);
    if (s->opt.fold == ORR_SIM_FOLD_VERIFY)
        return verify_fold(s, err);
    return s->net_ops->finish ? s->net_ops->finish(s->net, err) : ORR_OK;
}

orr_code orr_sim_step(orr_sim *s, orr_error *err)
{
    if (s->fold || s->lockstep) { /* single-stepping needs every rank */
        const orr_code code = run_build_again(s, false, err);
        if (code)
            return code;
        snprintf(s->fold_why, sizeof s->fold_why, "it is run event by event");
    }
    if (!s->has_started)
        return start(s, err);
    const bool has_run = clk_step(s->clock);
    const orr_code code = status(s, err);
    return code ? code : has_run ? ORR_OK : ORR_END;
}

/* A stalled joint collective does not show who waits for whom; its messages do: run it again with
 * messages. */
static orr_code run_by_messages(orr_sim *s, orr_error *err)
{
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        s->plans[k].is_joint = false;
    const orr_code code = run_build_again(s, false, err);
    return code ? code : run_every_rank(s, err);
}

static orr_code run_every_rank(orr_sim *s, orr_error *err)
{
    bool is_done = false;
    orr_code code = ORR_OK;
    if (s->parts && s->has_started) /* it was stopped, and starts over */
        code = run_build_again(s, false, err);
    if (!code && !s->has_started)
        code = parts_run(s, &is_done, err);
    if (is_done && !code)
        return s->finished < s->npu_count ? stopped(s, err) : ORR_OK;
    if (!code && !s->has_started)
        code = start(s, err);
    if (!code)
        code = run_loop(s, err);
    if (!code)
        code = status(s, err);
    if (!code && s->finished < s->npu_count && s->joint)
        return run_by_messages(s, err);
    if (!code && s->finished < s->npu_count) {
        run_ask_network(s);
        code = orr__explain_stall(s, err);
    }
    if (!code && s->net_ops->finish)
        code = s->net_ops->finish(s->net, err);
    return code;
}

static orr_code run_all(orr_sim *s, orr_error *err)
{
    s->was_stopped = false;
    if (atomic_load(&s->must_stop) && s->finished < s->npu_count)
        return stopped(s, err); /* requested before it began */
    if (s->lockstep)
        return run_in_lockstep(s, err);
    if (s->fold) {
        const orr_code code = run_folded(s, err);
        /* Otherwise folding was given up, and every rank is built but has not started. */
        if (code || s->fold || s->has_started)
            return code;
    }
    const orr_code code = run_every_rank(s, err);
    /* Consecutive steps may be skipped although every rank is simulated. */
    return !code && s->rounds.skipped && s->opt.fold == ORR_SIM_FOLD_VERIFY ? verify_fold(s, err)
                                                                            : code;
}

orr_code orr_sim_run(orr_sim *s, orr_error *err)
{
    const orr_code code = run_all(s, err);
    /* Skipped steps do not pass the clock, which would detect this. */
    return !code && s->rounds.skipped && orr_sim_steps_of(s).total > CLK_LAST ? takes_too_long(err)
                                                                              : code;
}
