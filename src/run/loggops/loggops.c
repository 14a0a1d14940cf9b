/* SPDX-License-Identifier: Apache-2.0 */
/* loggops.c - a simulation as an object: made from a schedule and parameters, run once, asked for its results.
 *
 * Why the schedule is borrowed: it is by far the largest part, never changes, and may be run many times.
 * Cost: 8 bytes an operation beside the schedule, 32 an event that is pending, 24 a host. */
#include "lgs_impl.h"

#include <math.h>

#define TOO_LONG 0x1p62 /* ns; longer than this, and sums may wrap */

enum {
    MOST_GROUPS = 1 << 24
}; /* more CPUs and NICs than this, and events are put off one by one */

orr_loggops_options orr_loggops_defaults(void)
{
    return (orr_loggops_options){.L = 2500, .o = 1500, .g = 1000, .G = 6, .S = 65535};
}

/* ---- is it possible? */

static orr_code check_options(const orr_loggops_options *o, orr_error *err)
{
    if (!(o->G >= 0) || o->G > 1e18)
        return orr_fail(err, ORR_EUSAGE, NULL, "G is %g; it cannot be negative", o->G);
    if (o->rules == ORR_LOGGOPS_LGS2023 && o->G != floor(o->G))
        return orr_fail(err, ORR_EUSAGE, NULL, "LogGOPSim of 2023 has whole numbers for G, not %g",
                        o->G);
    if (o->simple_links && o->rules != ORR_LOGGOPS_LGS2023)
        return orr_fail(err, ORR_EUSAGE, NULL, "only LogGOPSim of 2023 has the network \"simple\"");
    return ORR_OK;
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

static bool make_waits(orr_loggops *s)
{
    const size_t count = s->goal->node_count;
    s->waits = orr_alloc(count, sizeof *s->waits);
    if (!s->waits)
        return false;
    for (size_t i = 0; i < count; i++)
        s->waits[i] = s->nodes[i].waits;
    const bool is_own = s->opt.rules == ORR_LOGGOPS_OWN;
    /* By our rules a CPU's clock is never behind what an operation on it waited for. */
    if (s->opt.rules == ORR_LOGGOPS_ATLAHS || (is_own && s->cpus > 1)) {
        s->ready = orr_alloc(count, sizeof *s->ready);
        if (!s->ready)
            return false;
    }
    if (is_own)
        s->finished = orr_alloc(count / 64 + 1, sizeof *s->finished);
    return !is_own || s->finished;
}

/* By the rules of LGS2023 a message of no bytes has minus one byte, and what is too large wraps: where that costs
 * less than nothing a clock is set to the past. */
static bool clocks_go_back(const orr_loggops *s)
{
    const double o = (double)s->opt.o, g = (double)s->opt.g, O = (double)s->opt.O, G = s->opt.G;
    const bool none_is_cheap = O > o || G > o || G > g;
    if (s->opt.rules != ORR_LOGGOPS_LGS2023)
        return false;
    for (size_t i = 0; i < s->goal->node_count; i++) {
        const orr__goal_node *n = &s->nodes[i];
        if (n->size == 0 ? n->kind == ORR_GOAL_SEND && none_is_cheap
                         : (double)n->size * (1 + O + G) > TOO_LONG)
            return true;
    }
    return false;
}

static bool make_busy(orr_loggops *s)
{
    const double groups = (double)s->hosts * s->cpus * (1.0 + 2.0 * s->nics);
    if (s->opt.rules == ORR_LOGGOPS_ATLAHS || s->opt.simple_links || groups > MOST_GROUPS ||
        clocks_go_back(s))
        return true;
    const size_t count = (size_t)s->hosts * s->cpus * (1 + 2 * (size_t)s->nics);
    s->busy = orr_alloc(count, sizeof *s->busy);
    for (size_t i = 0; s->busy && i < count; i++)
        s->busy[i].first = UINT64_MAX;
    return s->busy != NULL;
}

static bool make_parts(orr_loggops *s)
{
    const orr_goal_totals t = s->goal->totals;
    s->nodes = s->goal->nodes;
    s->ranks = s->goal->ranks;
    s->edges = s->goal->edges;
    s->hosts = s->goal->rank_count;
    s->cpus = t.cpus;
    s->nics = t.nics;
    s->expected = 2 * t.sends + t.recvs + t.calcs;
    s->is_G_whole = s->opt.G == floor(s->opt.G);
    s->G_whole = (uint64_t)s->opt.G;
    s->has_wildcards = t.wildcards != 0;
    s->counts_all = s->opt.rules != ORR_LOGGOPS_OWN;
    s->walks = s->opt.keeps_queues;
    s->stride = (size_t)s->cpus + 2 * (size_t)s->nics;
    s->clocks = orr_alloc((size_t)s->hosts * s->stride, sizeof *s->clocks);
    return s->clocks && make_waits(s) && make_busy(s) && orr__lgs_queue_init(&s->queue) &&
           orr__lgs_match_init(&s->match, s->hosts,
                               s->has_wildcards || s->walks || s->opt.prints_progress);
}

static orr_code open_extras(orr_loggops *s, orr_error *err)
{
    orr_code code = ORR_OK;
    if (s->opt.noise)
        code = orr__lgs_noise_open(s, &s->noise, err);
    if (!code && s->opt.simple_links)
        code = orr__lgs_links_open(s->opt.simple_links, s->hosts, &s->links, err);
    if (!code && (s->opt.keeps_spans || s->opt.keeps_queues || s->opt.keeps_pairs))
        code = orr__lgs_watch_open(s, &s->watch, err);
    return code;
}

orr_code orr_loggops_create(const orr_goal *g,
                            const orr_loggops_options *opt,
                            orr_loggops **out,
                            orr_error *err)
{
    *out = NULL;
    const orr_loggops_options plain = orr_loggops_defaults();
    orr_code code = check_options(opt ? opt : &plain, err);
    if (!code)
        code = check_peers(g, err);
    if (code)
        return code;
    orr_loggops *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->opt = opt ? *opt : plain;
    s->goal = g;
    code = make_parts(s) ? open_extras(s, err) : orr_no_memory(err);
    if (code)
        orr_loggops_destroy(s);
    else
        *out = s;
    return code;
}

void orr_loggops_destroy(orr_loggops *s)
{
    if (!s)
        return;
    orr__lgs_noise_close(s->noise);
    orr__lgs_links_close(s->links);
    orr__lgs_watch_close(s->watch);
    orr__lgs_queue_fini(&s->queue);
    orr__lgs_match_fini(&s->match);
    orr_free(s->heap.entries);
    orr_free(s->clocks);
    orr_free(s->waits);
    orr_free(s->ready);
    orr_free(s->finished);
    orr_free(s->busy);
    orr_free(s->batch[0].items);
    orr_free(s->batch[1].items);
    orr_buf_fini(&s->sort_room);
    orr_buf_fini(&s->talk);
    orr_buf_fini(&s->stall_text);
    orr_free(s->stall_lines);
    orr_free(s);
}

/* ---- running, asking */

orr_code orr_loggops_run(orr_loggops *s, orr_error *err)
{
    orr_code code = s->opt.rules == ORR_LOGGOPS_ATLAHS ? orr__lgs_run_atlahs(s, err)
                                                       : orr__lgs_run_rules(s, err);
    if (code)
        return code;
    if (s->is_stopped)
        return orr_fail(err, ORR_ESTOP, NULL, "stopped at %llu ns", (unsigned long long)s->now);
    const orr_goal_totals t = s->goal->totals;
    const bool is_complete = s->finished_count == t.sends + t.recvs + t.calcs && !s->match.used;
    return s->opt.rules != ORR_LOGGOPS_OWN || is_complete ? ORR_OK : orr__lgs_explain_stall(s, err);
}

void orr_loggops_stop(orr_loggops *s)
{
    s->is_stopped = 1;
}

uint64_t orr_loggops_events(const orr_loggops *s)
{
    return s->events;
}

uint64_t orr_loggops_messages(const orr_loggops *s)
{
    return s->messages;
}

uint64_t orr_loggops_finished_at(const orr_loggops *s, uint32_t rank)
{
    const uint64_t *clock = s->clocks + (size_t)rank * s->stride;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < s->cpus; i++)
        latest = lgs_max(latest, clock[i]);
    return latest;
}

uint64_t orr_loggops_noise(const orr_loggops *s, uint32_t rank)
{
    return s->noise ? orr__lgs_noise_total(s->noise, rank) : 0;
}

const char *orr_loggops_stall_line(const orr_loggops *s, size_t i)
{
    return i < s->stall_count ? s->stall_lines[i] : NULL;
}
