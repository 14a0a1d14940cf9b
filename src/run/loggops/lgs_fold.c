/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_fold.c - ranks of a schedule that do the same are simulated once (docs/design/folding.md,
 * "Symmetry").
 *
 * Under LogGOPS all pairs of hosts are alike, so a symmetry is any way of moving ranks that takes
 * the operations of each rank to those of another: the same but for peers, which are moved, too.
 * Ranks at home are simulated; their messages go to the homes of their peers.  Events of one tick
 * run by number, and numbers depend on those of hosts: where two events of one tick meet at a host
 * and their order does not follow from what the host did, every rank is simulated. */
#include "lgs_body.h"

#include <inttypes.h>
#include <stdio.h>

static const lgs_rules folded_rules = {
    .name = "own",
    .waits_for_release = true,
    .empty_costs_a_byte = true,
    .asks_the_sender = true,
    .buffers_messages = true,
    .is_folded = true,
};

/* ---- which ranks are alike ---- */

typedef struct move {
    const net_digit *digit;
    uint32_t by;
} move;

static uint32_t moved(move m, uint32_t rank)
{
    return rank == ORR_GOAL_ANY ? rank : net_digit_add(m.digit, rank, m.by);
}

/* Operations and edges of one rank are those of the other. */
static bool takes_rank(const orr_goal *g, move m, uint32_t r)
{
    const uint32_t to = moved(m, r), ops = orr__goal_ops(g, r);
    const orr__goal_node *a = orr__goal_nodes(g, r), *b = orr__goal_nodes(g, to);
    if (orr__goal_ops(g, to) != ops)
        return false;
    for (uint32_t i = 0; i < ops; i++) {
        const bool has_peer = a[i].kind != ORR_GOAL_CALC;
        if (a[i].size != b[i].size || a[i].kind != b[i].kind || a[i].cpu != b[i].cpu ||
            a[i].nic != b[i].nic || a[i].waits != b[i].waits || a[i].then != b[i].then ||
            a[i].started != b[i].started ||
            (has_peer && (a[i].tag != b[i].tag || moved(m, a[i].peer) != b[i].peer)))
            return false;
    }
    return a[ops].then == b[ops].then && memcmp(orr__goal_edges(g, r), orr__goal_edges(g, to),
                                                a[ops].then * sizeof(uint32_t)) == 0;
}

static bool holds(void *goal, const net_digit *d)
{
    const orr_goal *g = goal;
    /* A rotation is made of single steps, so one step is enough; an exclusive or by any number is
     * made of those by powers of two, so each of them is tried. */
    for (uint32_t by = 1; by < d->radix; by *= 2) {
        for (uint32_t r = 0; r < g->rank_count; r++)
            if (!takes_rank(g, (move){d, by}, r))
                return false;
        if (!d->is_xor)
            break;
    }
    return true;
}

/* ---- one run ---- */

static const char *obstacle(const lgs_sim *s)
{
    const lgs_options *o = &s->opt;
    return o->fold == LGS_FOLD_OFF      ? "it was switched off"
           : s->rules != &lgs_own_rules ? "the rules of another program apply"
           : o->noise                   ? "ranks are interrupted"
           : s->watch || s->walks       ? "every operation or message is recorded"
           : o->max_events              ? "there is a limit on events"
                                        : NULL;
}

/* Sizes of all orbits are equal: a symmetry is made of digits, and each rank is moved by all of
 * their values.  So counts are simply multiplied. */
static void spread(lgs_sim *s, uint32_t size)
{
    for (uint32_t h = 0; h < s->hosts; h++) {
        const uint32_t home = net_sym_home(&s->folding->symmetry, h);
        if (home != h)
            memcpy(lgs_clocks(s, h), lgs_clocks(s, home), s->stride * sizeof *s->clocks);
    }
    s->events *= size;
    s->messages *= size;
    s->finished_count *= size;
}

static orr_code run(lgs_sim *s, uint32_t size, bool *is_done, orr_error *err)
{
    lgs_folding *f = s->folding;
    if (!(f->touches = orr_alloc(s->hosts, sizeof *f->touches)))
        return orr_no_memory(err);
    for (uint32_t h = 0; h < s->hosts; h++)
        f->touches[h].time = UINT64_MAX;
    f->last_time = UINT64_MAX;
    const orr_code code = lgs_run_events(s, &folded_rules, err);
    const bool is_stopped = atomic_load_explicit(&s->must_stop, memory_order_relaxed);
    spread(s, size);
    *is_done = code || is_stopped || (!f->has_lost_order && lgs_is_complete(s));
    if (f->has_lost_order)
        snprintf(s->fold_why, sizeof s->fold_why,
                 "at %" PRIu64
                 " ns the order of two events of one tick is not the same for all ranks",
                 s->now);
    else if (!*is_done) /* then every rank, so that the reason can be said */
        snprintf(s->fold_why, sizeof s->fold_why, "the run does not finish");
    return code;
}

/* ---- the proof ---- */

static orr_code differ(orr_error *err, const char *what, uint64_t folded, uint64_t each)
{
    return orr_fail(err, ORR_EBUG, NULL,
                    "folding is wrong: %s is %" PRIu64 " folded and %" PRIu64
                    " with every rank simulated",
                    what, folded, each);
}

static orr_code verify(lgs_sim *s, orr_error *err)
{
    /* The folded clocks are put aside, every rank is run, and each clock is compared: equal clocks
     * of all CPUs and NICs are equal results. */
    const uint64_t events = s->events, messages = s->messages, now = s->now;
    uint64_t *clocks = s->clocks;
    s->clocks = NULL;
    orr_code code = lgs_begin_anew(s) ? s->rules->run(s, err) : orr_no_memory(err);
    for (size_t i = 0; !code && i < (size_t)s->hosts * s->stride; i++)
        if (clocks[i] != s->clocks[i]) {
            char what[64];
            snprintf(what, sizeof what, "clock %zu of rank %zu", i % s->stride, i / s->stride);
            code = differ(err, what, clocks[i], s->clocks[i]);
        }
    if (!code && events != s->events)
        code = differ(err, "the number of events", events, s->events);
    if (!code && messages != s->messages)
        code = differ(err, "the number of messages", messages, s->messages);
    if (!code && now != s->now)
        code = differ(err, "the time of the last event", now, s->now);
    if (!code && !lgs_is_complete(s))
        code = differ(err, "whether it ends", 1, 0);
    if (!code)
        snprintf(s->fold_why, sizeof s->fold_why, "verified, same results with %u of %u ranks",
                 s->simulated, s->hosts);
    s->simulated = s->hosts;
    orr_free(clocks);
    return code;
}

orr_code lgs_run_folded(lgs_sim *s, bool *is_done, orr_error *err)
{
    const char *why = obstacle(s);
    uint32_t size = 1;
    orr_code code = ORR_OK;
    *is_done = false;
    /* Steps by hand have begun with every rank: it is too late to fold. */
    if (s->has_started)
        return ORR_OK;
    if (!(s->folding = orr_alloc(1, sizeof *s->folding)))
        return orr_no_memory(err);
    if (!why) {
        net_sym_find(&s->folding->symmetry, 1, s->hosts, false, holds, (void *)s->goal);
        for (uint32_t i = 0; i < s->folding->symmetry.count; i++)
            size *= s->folding->symmetry.digits[i].radix;
        if (size == 1)
            why = "no two ranks are alike";
    }
    if (why)
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
    else
        code = run(s, size, is_done, err);
    if (*is_done && !code)
        s->simulated = s->hosts / size;
    orr_free(s->folding->parents);
    orr_free(s->folding->touches);
    orr_free(s->folding);
    s->folding = NULL;
    /* It was tried and given up: the next to run must find a simulation as before the first
     * event. */
    if (!why && !*is_done && !code && !lgs_begin_anew(s))
        code = orr_no_memory(err);
    if (*is_done && !code && s->opt.fold == LGS_FOLD_VERIFY)
        code = verify(s, err);
    return code;
}
