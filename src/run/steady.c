/* SPDX-License-Identifier: Apache-2.0 */
/* steady.c - detects steady states: the state of a run as words, once per step, compared with
 * earlier steps.
 *
 * The moment: the first tick boundary after all ranks have ended a step at which nothing is in
 * flight and only timers of nodes are pending.  The whole state is then small: the progress of each
 * rank, its timers relative to now and in order, unmatched receives and messages, members waiting
 * in a collective.  Numbers that only grow (steps, calls of a group) are relative.  Two moments
 * with equal words have the same future, which from the first one leads to the second: the steps
 * between them repeat.
 *
 * Which step is recorded must be known before the first rank begins it, and it must begin after the
 * earlier of the two moments: so at each moment the next step that no rank has begun is chosen, or
 * a later one if steps repeat in cycles.  In the best case three steps are simulated: one to
 * settle, one to see that nothing changes, and the recorded one.
 *
 * Cost: once per step, linear in the nodes of simulated ranks. */

#include "base/memory/sort.h"
#include "fold/fold.h"
#include "joint.h"
#include "match.h"
#include "run_state.h"
#include "watch.h"

#include "models/network/fluid/fluid.h"
#include "models/network/net_table.h"

#include <stdlib.h>

enum { LOOKS = 5 }; /* this one and earlier ones: steps may repeat in cycles of several */

/* One moment. */
typedef struct look {
    uint64_t *words; /* the state; compared as a whole */
    size_t count, room;
    uint64_t at;   /* ns */
    uint32_t step; /* of the rank that is furthest behind */
} look;

struct steady {
    look looks[LOOKS];
    uint32_t count; /* of moments so far */
};

/* ---- life cycle ---- */

/* Queues of chunks are not part of the state. */
static bool can_look(const orr_sim *s)
{
    bool can = s->net_ops == &orr__net_fluid && s->joint && !s->topology && !s->opt.rendezvous &&
               s->opt.fold != ORR_SIM_FOLD_OFF && !s->opt.plans && !s->system.custom_by_node &&
               (s->memory.type <= CFG_MEM_PER_NPU || !fold_has_memory_nodes(s)) &&
               !s->system.track_local_mem;
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        can = can && s->plans[k].is_joint && !s->system.custom[k];
    return can;
}

static void drop_looks(run_rounds *r)
{
    for (unsigned i = 0; r->look && i < LOOKS; i++)
        orr_free(r->look->looks[i].words);
    orr_free(r->look);
    r->look = NULL;
    r->wants_look = false;
}

bool steady_init(orr_sim *s, bool looks)
{
    const uint32_t last = s->opt.steps ? s->opt.steps - 1 : 0;
    steady_fini(s);
    /* A single step counts from 0, not from the start of its first rank. */
    s->rounds = (run_rounds){.last = last, .recorded = last, .has_origin = last == 0};
    /* At least three steps: with two there is nothing to skip between the first and the last. */
    if (last > 1 && looks && can_look(s))
        return (s->rounds.look = orr_alloc(1, sizeof *s->rounds.look)) != NULL;
    return true;
}

void steady_fini(orr_sim *s)
{
    drop_looks(&s->rounds);
    orr_free(s->rounds.rows);
    s->rounds = (run_rounds){0};
}

/* ---- steps ---- */

bool steady_note_end(orr_sim *s, uint32_t round, uint32_t ranks, uint64_t at)
{
    run_rounds *r = &s->rounds;
    if (round >= r->row_count) {
        if (!orr_grow(&r->rows, &r->row_room, (size_t)round + 1))
            return false;
        r->rows[round] = (run_round){0};
        r->row_count = (size_t)round + 1;
    }
    r->rows[round].ranks += ranks;
    if (at > r->rows[round].ended)
        r->rows[round].ended = at;
    /* All ranks have ended the step: look at the next quiet moment. */
    r->wants_look = r->wants_look || (r->look && r->rows[round].ranks == s->npu_count);
    return true;
}

bool steady_round_over(run_npu *n)
{
    orr_sim *s = n->sim;
    if (s->opt.steps < 2)
        return false;
    if (s->fold)
        fold_round_over(n);
    else if (!steady_note_end(s, n->round, n->weight, clk_now(s->clock)))
        run_no_memory(s);
    return n->round < s->rounds.last && !s->code;
}

/* Record another step than planned. */
static void record(orr_sim *s, uint32_t round)
{
    run_rounds *r = &s->rounds;
    if (round == r->recorded)
        return;
    r->recorded = round;
    r->has_origin = false;
    r->origin = 0;
    /* Statistics so far belong to a step that does not count: reset them. */
    watch_forget(s);
    s->messages = 0;
    fluid_forget(fluid_network_flows(s->net));
}

void steady_round_begins(run_npu *n)
{
    orr_sim *s = n->sim;
    run_rounds *r = &s->rounds;
    if (s->fold) {
        fold_round_begins(n);
        return;
    }
    if (n->round > r->recorded)
        record(s, r->last); /* there was no quiet moment */
    if (n->round == r->recorded && !r->has_origin) {
        r->has_origin = true;
        r->origin = clk_now(s->clock);
    }
    if (s->watch)
        watch_round_begins(n);
}

uint64_t steady_length(uint64_t cycles, uint64_t ns)
{
    return ns && cycles > CLK_LAST / ns ? CLK_LAST : cycles * ns;
}

orr_sim_steps orr_sim_steps_of(const orr_sim *s)
{
    const run_rounds *r = &s->rounds;
    const uint64_t end = r->origin + watch_end_of_run(s);
    orr_sim_steps out = {.asked = s->opt.steps ? s->opt.steps : 1,
                         .simulated = r->last + 1 - r->played,
                         .total = end + r->skipped_ns,
                         .first = end,
                         .last = end};
    if (r->row_count > 0)
        out.first = out.last = r->rows[0].ended;
    if (r->row_count > 1)
        out.last = r->rows[r->row_count - 1].ended - r->rows[r->row_count - 2].ended;
    return out;
}

/* ---- the state as words ---- */

static bool put(look *k, uint64_t word)
{
    if (!orr_grow(&k->words, &k->room, k->count + 1))
        return false;
    k->words[k->count++] = word;
    return true;
}

static bool put_rank(look *k, const run_npu *n, uint32_t round)
{
    /* The round relative to the rank furthest behind: a state must be able to recur. */
    bool ok =
        put(k, n->rank) && put(k, n->round - round) && put(k, n->running) && put(k, n->ready_count);
    for (uint32_t p = 0; ok && p < n->graph->count; p++)
        ok = put(k, n->waiting_for[p]);
    for (unsigned i = 0; ok && i < n->graph->slot_count; i++) {
        ok = put(k, n->occupant[i]);
        for (uint32_t p = orr_bitset_next(&n->ready[i], 0); ok && p != RUN_NONE;
             p = orr_bitset_next(&n->ready[i], p + 1))
            ok = put(k, p);
    }
    return ok;
}

typedef struct visitor {
    orr_sim *s;
    look *k;
    bool is_quiet, has_memory;
} visitor;

static bool put_event(void *context, uint64_t tick, const clk_call *call)
{
    visitor *v = context;
    const bool is_compute = call->action == work_compute_ends;
    /* Any other event would have a context that these words do not capture. */
    v->is_quiet = is_compute || call->action == work_node_done;
    if (v->is_quiet) {
        const run_npu *n = call->context;
        /* Compute time lost and not yet made up for affects the future. */
        const uint64_t owed =
            is_compute ? n->stolen - n->stolen_before[n->graph->slot[call->argument]] : 0;
        v->has_memory = put(v->k, tick - clk_now(v->s->clock)) && put(v->k, n->rank) &&
                        put(v->k, call->argument) && put(v->k, owed);
    }
    return v->is_quiet && v->has_memory;
}

static int by_channel(const void *a, const void *b)
{
    const msg_unmatched *x = a, *y = b;
    const uint64_t one[] = {x->src, x->dst, x->tag, x->size, x->number};
    const uint64_t two[] = {y->src, y->dst, y->tag, y->size, y->number};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (one[i] != two[i])
            return one[i] < two[i] ? -1 : 1;
    return 0;
}

/* Unmatched receives and messages, by channel in posting order. */
static bool put_messages(look *k, const orr_sim *s, bool *is_quiet)
{
    orr_arena *a = orr_arena_create();
    msg_unmatched *list;
    uint32_t count = 0;
    bool ok = a && msg_waiting(s->matcher, a, &list, &count);
    if (ok)
        /* The table iterates in hash order; a total order makes equal states equal words. */
        orr_sort(list, count, sizeof *list, by_channel);
    for (uint32_t i = 0; ok && i < count; i++) {
        const msg_unmatched *m = &list[i];
        *is_quiet = *is_quiet && m->kind != MSG_UNDELIVERED && m->kind != MSG_UNREADY;
        /* The node that waits; its rank is the destination. */
        ok = put(k, (uint64_t)m->src << 32 | m->dst) && put(k, (uint64_t)m->kind << 32 | m->tag) &&
             put(k, m->size) && put(k, m->receiver.argument);
    }
    orr_arena_destroy(a);
    return ok;
}

/* False: out of memory.  *is_quiet: the words capture the whole state. */
static bool take_state(orr_sim *s, look *k, bool *is_quiet)
{
    k->count = 0;
    k->at = clk_now(s->clock);
    k->step = UINT32_MAX;
    *is_quiet = clk_is_between_ticks(s->clock) && fluid_is_idle(fluid_network_flows(s->net));
    if (!*is_quiet)
        return true;
    visitor v = {.s = s, .k = k, .is_quiet = true, .has_memory = true};
    const bool visited = clk_visit(s->clock, put_event, &v);
    *is_quiet = v.is_quiet;
    if (!v.has_memory || !v.is_quiet)
        return v.has_memory;
    if (!visited || !put_messages(k, s, is_quiet))
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (s->npus[r].weight && s->npus[r].round < k->step)
            k->step = s->npus[r].round;
    bool ok = true;
    for (uint32_t r = 0; ok && *is_quiet && r < s->npu_count; r++)
        ok = !s->npus[r].weight || put_rank(k, &s->npus[r], k->step);
    const size_t groups = ok && *is_quiet ? joint_state(s->joint, NULL) : 0;
    ok = ok && orr_grow(&k->words, &k->room, k->count + groups + 1);
    if (ok && groups)
        k->count += joint_state(s->joint, k->words + k->count);
    return ok;
}

/* ---- is it steady? ---- */

static uint32_t farthest(const orr_sim *s)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (s->npus[r].weight && s->npus[r].round > most)
            most = s->npus[r].round;
    return most;
}

/* The run is in the state of `steps` steps and `ns` ago: skip as many of these cycles as fit before
 * the last step.  Applies from a step that no rank has begun, or that is already recorded. */
static void skip(orr_sim *s, uint32_t steps, uint64_t ns)
{
    run_rounds *r = &s->rounds;
    const uint32_t most = farthest(s);
    uint32_t last = most <= r->recorded ? r->recorded : most + 1;
    /* Whole cycles are skipped, so that the recorded step equals the last one. */
    while (last < r->last && (r->last - last) % steps)
        last++;
    if (last >= r->last) {
        record(s, r->last);
    } else {
        record(s, last);
        r->skipped = r->last - last;
        r->skipped_ns = steady_length(r->skipped / steps, ns);
        r->last = last;
    }
    drop_looks(r);
}

void steady_look(orr_sim *s)
{
    run_rounds *r = &s->rounds;
    struct steady *k = r->look;
    /* In the place of the oldest; a moment that is not quiet is not counted, so the next one takes
     * the place again. */
    look *now = &k->looks[k->count % LOOKS];
    bool is_quiet;
    if (!take_state(s, now, &is_quiet)) {
        run_no_memory(s);
        return;
    }
    if (!is_quiet)
        return;
    r->wants_look = false;
    for (uint32_t i = 1; i < LOOKS && i <= k->count; i++) {
        const look *then = &k->looks[(k->count - i) % LOOKS];
        if (now->count == then->count &&
            memcmp(now->words, then->words, now->count * sizeof *now->words) == 0) {
            skip(s, now->step - then->step, now->at - then->at);
            return;
        }
    }
    k->count++;
    const uint32_t most = farthest(s);
    record(s, most + 1 < r->last ? most + 1 : r->last);
}
