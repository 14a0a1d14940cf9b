/* SPDX-License-Identifier: Apache-2.0 */
/* loggops.c - a simulation as an object: made from a schedule and parameters, run once, asked for
 * its results.
 *
 * Why the schedule is borrowed: it is by far the largest part, never changes, and may be run many
 * times. Cost: 8 bytes per operation beside the schedule, 32 per pending event, 24 per host. */
#include "lgs_body.h"

#include <math.h>
#include <time.h>

enum {
    MOST_GROUPS = 1 << 24
}; /* more CPUs and NICs than this, and events are put off one by one */

lgs_options lgs_defaults(void)
{
    return (lgs_options){.L = 2500, .o = 1500, .g = 1000, .G = 6, .S = 65535, .threads = 1};
}

/* ---- what a run keeps for those who want to look: spans of time, searches in queues, who met
 * whom.  Everything is appended as it happens, which is the order of LogGOPSim's files.  40 bytes
 * per span, 24 per search, 16 per pair. */

static orr_code watch_open(const lgs_sim *s, lgs_watch **out, orr_error *err)
{
    lgs_watch *w = orr_alloc(1, sizeof *w);
    *out = w;
    if (!w)
        return orr_no_memory(err);
    w->sent_at = orr_alloc(s->goal->node_count, sizeof *w->sent_at);
    bool is_good = w->sent_at != NULL;
    for (int side = 0; side < 2 && s->opt.keeps_queues; side++) {
        w->longest[side] = orr_alloc(s->hosts, sizeof **w->longest);
        is_good = is_good && w->longest[side];
    }
    return is_good ? ORR_OK : orr_no_memory(err);
}

static void watch_close(lgs_watch *w)
{
    if (!w)
        return;
    orr_free(w->spans);
    orr_free(w->searches);
    orr_free(w->pairs);
    orr_free(w->longest[0]);
    orr_free(w->longest[1]);
    orr_free(w->sent_at);
    orr_free(w);
}

void lgs_watch_span(lgs_sim *s, const lgs_span *span)
{
    lgs_watch *w = s->watch;
    if (!s->opt.keeps_spans)
        return;
    if (!orr_grow(&w->spans, &w->span_room, w->span_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->spans[w->span_count++] = *span;
}

void lgs_watch_length(lgs_sim *s, uint32_t host, lgs_side side)
{
    uint32_t *longest = &s->watch->longest[side][host];
    if (s->match.count[side][host] > *longest)
        *longest = s->match.count[side][host];
}

void lgs_watch_search(
    lgs_sim *s, uint32_t host, lgs_side side, uint64_t time, bool is_hit, uint32_t depth)
{
    lgs_watch *w = s->watch;
    if (!orr_grow(&w->searches, &w->search_room, w->search_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->searches[w->search_count++] = (lgs_search){time, host, depth, (uint8_t)side, is_hit};
}

void lgs_watch_pair(lgs_sim *s, const lgs_pair *pair)
{
    lgs_watch *w = s->watch;
    if (!s->opt.keeps_pairs)
        return;
    if (!orr_grow(&w->pairs, &w->pair_room, w->pair_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->pairs[w->pair_count++] = *pair;
}

/* ---- is it possible? */

static orr_code check_options(const lgs_options *o, const lgs_rules *rules, orr_error *err)
{
    if (!(o->G >= 0) || o->G > 1e18)
        return orr_fail(err, ORR_EUSAGE, NULL, "G is %g; it cannot be negative", o->G);
    if (o->simple_links && !rules->link_send)
        return orr_fail(err, ORR_EUSAGE, NULL, "only LogGOPSim of 2023 has the network \"simple\"");
    return rules->check ? rules->check(o, err) : ORR_OK;
}

/* Undefined behaviour in the references (goal.md 3), an error here. */
static orr_code check_peers(const orr_goal *g, orr_error *err)
{
    const uint32_t ranks = g->rank_count;
    for (uint32_t r = 0; r < ranks; r++) {
        const orr__goal_node *n = orr__goal_nodes(g, r);
        const uint32_t ops = orr__goal_ops(g, r);
        for (uint32_t i = 0; i < ops; i++) {
            if (n[i].kind == ORR_GOAL_CALC || n[i].peer < ranks ||
                (n[i].kind == ORR_GOAL_RECV && n[i].peer == ORR_GOAL_ANY))
                continue;
            char words[96];
            const orr_goal_op op = orr_goal_get(g, r, i);
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %u: operation %u (%s): there are %u ranks only", r, i + 1,
                            orr_goal_op_text(&op, words, sizeof words), ranks);
        }
    }
    return ORR_OK;
}

/* ---- making one */

static bool make_waits(lgs_sim *s)
{
    const size_t count = s->goal->node_count;
    s->waits = orr_alloc(count, sizeof *s->waits);
    if (!s->waits)
        return false;
    for (size_t i = 0; i < count; i++)
        s->waits[i] = s->nodes[i].waits;
    /* With one CPU its clock is never behind what an operation on it waited for. */
    if (s->rules->keeps_release_times || (s->rules->waits_for_release && s->cpus > 1)) {
        s->ready = orr_alloc(count, sizeof *s->ready);
        if (!s->ready)
            return false;
    }
    if (s->rules->explains_stall)
        s->finished = orr_alloc(count / 64 + 1 + s->hosts, sizeof *s->finished);
    return !s->rules->explains_stall || s->finished;
}

/* Groups of events that wait for the same clocks are right only where clocks never go back and
 * nothing else holds a message up (docs/design/loggops.md, "How it is fast"). */
static bool make_busy(lgs_sim *s)
{
    const double groups = (double)s->hosts * s->cpus * (1.0 + 2.0 * s->nics);
    if (s->rules->puts_off_singly || s->opt.simple_links || groups > MOST_GROUPS ||
        (s->rules->clocks_go_back && s->rules->clocks_go_back(s)))
        return true;
    const size_t count = (size_t)s->hosts * s->cpus * (1 + 2 * (size_t)s->nics);
    s->busy = orr_alloc(count, sizeof *s->busy);
    for (size_t i = 0; s->busy && i < count; i++)
        s->busy[i].first = UINT64_MAX;
    return s->busy != NULL;
}

static bool make_parts(lgs_sim *s)
{
    const orr_goal_totals t = s->goal->totals;
    s->nodes = s->goal->nodes;
    s->ranks = s->goal->ranks;
    s->edges = s->goal->edges;
    s->hosts = s->goal->rank_count;
    s->cpus = t.cpus;
    s->nics = t.nics;
    /* A send is two events, itself and its message. */
    s->expected = 2 * t.sends + t.recvs + t.calcs;
    /* Whole numbers are multiplied as such: exact beyond 2^53, and wrapping as the reference's
     * do. */
    s->is_G_whole = s->opt.G == floor(s->opt.G);
    s->G_whole = (uint64_t)s->opt.G;
    s->has_wildcards = t.wildcards != 0;
    s->counts_all = s->rules->counts_all_edges;
    s->walks = s->opt.keeps_queues;
    s->stride = (size_t)s->cpus + 2 * (size_t)s->nics;
    s->clocks = orr_alloc((size_t)s->hosts * s->stride, sizeof *s->clocks);
    return s->clocks && make_waits(s) && make_busy(s) && lgs_queue_init(&s->queue) &&
           lgs_match_init(&s->match, s->hosts,
                          s->has_wildcards || s->walks || s->opt.prints_progress);
}

static void drop_parts(lgs_sim *s)
{
    lgs_queue_fini(&s->queue);
    lgs_match_fini(&s->match);
    orr_free(s->clocks);
    orr_free(s->waits);
    orr_free(s->ready);
    orr_free(s->finished);
    orr_free(s->busy);
    s->clocks = s->ready = s->finished = NULL;
    s->waits = NULL;
    s->busy = NULL;
}

/* Everything is made again and not reset field by field: one way to begin, so that a second run
 * cannot differ from a first. */
bool lgs_begin_anew(lgs_sim *s)
{
    drop_parts(s);
    s->now = s->events = s->messages = s->finished_count = s->waiting = 0;
    s->has_failed = s->has_started = false;
    return make_parts(s);
}

static orr_code open_extras(lgs_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    if (s->opt.noise)
        code = lgs_noise_open(s, &s->noise, err);
    if (!code && s->rules->open)
        code = s->rules->open(s, err);
    if (!code && (s->opt.keeps_spans || s->opt.keeps_queues || s->opt.keeps_pairs))
        code = watch_open(s, &s->watch, err);
    return code;
}

orr_code lgs_create(const orr_goal *g, const lgs_options *opt, lgs_sim **out, orr_error *err)
{
    *out = NULL;
    const lgs_options plain = lgs_defaults();
    if (!opt)
        opt = &plain;
    const lgs_rules *rules = opt->rules ? opt->rules : &lgs_own_rules;
    orr_code code = check_options(opt, rules, err);
    if (!code)
        code = check_peers(g, err);
    if (code)
        return code;
    lgs_sim *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->opt = *opt;
    s->rules = rules;
    s->goal = g;
    s->simulated = g->rank_count;
    /* Parts first: noise and records are made for as many hosts as they found. */
    code = make_parts(s) ? open_extras(s, err) : orr_no_memory(err);
    if (code)
        lgs_destroy(s);
    else
        *out = s;
    return code;
}

void lgs_destroy(lgs_sim *s)
{
    if (!s)
        return;
    lgs_noise_close(s->noise);
    if (s->rules->close)
        s->rules->close(s);
    watch_close(s->watch);
    drop_parts(s);
    orr_free(s->batch[0].items);
    orr_free(s->batch[1].items);
    orr_buf_fini(&s->sort_room);
    orr_buf_fini(&s->stall_text);
    orr_free(s->stall_lines);
    orr_free(s);
}

/* ---- running, asking */

/* ---- our rules */

static orr_code run_own(lgs_sim *s, orr_error *err)
{
    return lgs_run_events(s, &lgs_own_rules, err);
}

const lgs_rules lgs_own_rules = {
    .name = "own",
    .waits_for_release = true,
    .empty_costs_a_byte = true,
    .asks_the_sender = true,
    .buffers_messages = true,
    .explains_stall = true,
    .run = run_own,
};

orr_code lgs_outcome(const lgs_sim *s, const orr_error *inner, orr_error *err)
{
    if (!s->has_failed)
        return ORR_OK;
    if (inner->code == ORR_OK)
        return orr_no_memory(err);
    if (err)
        *err = *inner;
    return inner->code;
}

/* So many events, and back to the caller. */
static void count_events(lgs_sim *s, uint64_t most)
{
    s->is_counting = true;
    s->asked = 0;
    s->most = most;
    atomic_store(&s->must_stop, true);
}

orr_code lgs_run(lgs_sim *s, orr_error *err)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (s->opt.max_events)
        count_events(s, s->opt.max_events > s->passed ? s->opt.max_events - s->passed : 0);
    /* Folded, then parted, then by one thread: each leaves a simulation as it found it, or says
     * that it is done. */
    bool is_done = false;
    orr_code code = lgs_run_folded(s, &is_done, err);
    if (!code && !is_done)
        code = lgs_run_parts(s, &is_done, err);
    if (!code && !is_done)
        code = s->rules->run(s, err);
    const bool is_at_limit = s->is_counting && s->asked > s->most;
    if (s->is_counting)
        s->passed += s->asked - is_at_limit;
    if (s->is_counting && !is_at_limit && !atomic_load(&s->must_end))
        atomic_store(&s->must_stop, false); /* it came to its end before */
    s->is_counting = false;
    atomic_store(&s->must_end, false);
    clock_gettime(CLOCK_MONOTONIC, &to);
    s->seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    if (code)
        return code;
    s->was_stopped = atomic_exchange_explicit(&s->must_stop, false, memory_order_relaxed);
    if (s->was_stopped)
        return orr_fail(err, ORR_ESTOP, NULL, "stopped at %llu ns", (unsigned long long)s->now);
    return lgs_is_complete(s) || !s->rules->explains_stall ? ORR_OK : lgs_explain_stall(s, err);
}

orr_code lgs_step_once(lgs_sim *s, orr_error *err)
{
    /* A step borrows the flag of stops; a stop that was asked for before must be there after it. */
    const bool was_stopped = atomic_load(&s->must_stop),
               had_to_end = atomic_exchange(&s->must_end, false);
    count_events(s, 1);
    const orr_code code = s->rules->run(s, err);
    s->is_counting = false;
    atomic_store(&s->must_end, had_to_end);
    atomic_store(&s->must_stop, was_stopped);
    return code ? code : s->asked < 2 ? ORR_END : ORR_OK;
}

bool lgs_is_complete(const lgs_sim *s)
{
    const orr_goal_totals t = s->goal->totals;
    return s->finished_count == t.sends + t.recvs + t.calcs && !s->match.used;
}

void lgs_stop(lgs_sim *s)
{
    atomic_store_explicit(&s->must_end, true, memory_order_relaxed);
    atomic_store_explicit(&s->must_stop, true, memory_order_relaxed);
}

uint32_t lgs_simulated(const lgs_sim *s)
{
    return s->simulated;
}

const char *lgs_fold_why(const lgs_sim *s)
{
    return s->fold_why;
}

uint64_t lgs_events(const lgs_sim *s)
{
    return s->events;
}

uint64_t lgs_messages(const lgs_sim *s)
{
    return s->messages;
}

uint64_t lgs_finished_at(const lgs_sim *s, uint32_t rank)
{
    const uint64_t *clock = s->clocks + (size_t)rank * s->stride;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < s->cpus; i++)
        latest = lgs_max(latest, clock[i]);
    return latest;
}

uint64_t lgs_noise_of(const lgs_sim *s, uint32_t rank)
{
    return s->noise ? lgs_noise_total(s->noise, rank) : 0;
}

const char *lgs_stall_line(const lgs_sim *s, size_t i)
{
    return i < s->stall_count ? s->stall_lines[i] : NULL;
}

/* ---- files of replaced programs (src/compat) */

orr_code lgs_write_old(const lgs_sim *s, const char *what, const char *path, orr_error *err)
{
    for (const lgs_writer *w = lgs_old_writers; w && w->name; w++)
        if (strcmp(w->name, what) == 0)
            return w->write(s, path, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "a LogGOPS run writes no \"%s\"", what);
}
