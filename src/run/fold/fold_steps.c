/* SPDX-License-Identifier: Apache-2.0 */
/* fold_steps.c - several consecutive steps (run/run_state.h), folded.
 *
 * A class begins its next step when its last one has ended, each member at its own time.  On a
 * network on which messages do not delay each other a step is a function of the times at which all
 * members of all classes begin it; if all begin a step later than the previous one by the same
 * amount, it proceeds like the previous one, and so do all that follow.  Equal spreads have equal
 * numbers, so the comparison costs a few words per class.
 *
 * Other state carried from step to step is compared as well: the event that ended the step, and
 * which queue is next.  Messages and collectives must belong to the same step on both sides, and no
 * message may be left over. */
#include "fold_impl.h"

#include "base/memory/hash.h"

/* Hash of the next queue of each dimension. */
static uint64_t queue_turns(const run_npu *n)
{
    const orr_sim *s = n->sim;
    const size_t bytes = (size_t)s->lanes * s->dims * sizeof(uint32_t);
    const uint64_t h = orr_hash_bytes(n->next_general, bytes, 1);
    /* Steps that differ in the next queue are different, whatever their times. */
    return orr_hash_bytes(n->next_second, bytes, orr_hash_bytes(n->next_first, bytes, h));
}

void fold_steps_init(fold_sim *f)
{
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        c->round_end = (fold_val){0, 0, 0};
        c->begun[0].at = (fold_val){(int64_t)c->npu->speed->delay, 0, 0};
        c->begun[0].kind = UINT8_MAX;
        c->begun[0].queues = queue_turns(c->npu);
        c->done.step_of = c->log.step_of;
        if (!f->tape)
            continue;
        fold_tape_begins(f, c);
        for (uint32_t p = 0; p < c->npu->graph->count && f->is_taping; p++)
            c->ready_at[p] = c->round_end;
        c->round_end = (fold_val){0, 0, 0};
    }
}

/* ---- chunks of two groups with the same number ----
 *
 * Tags have room for few groups, and messages of two chunks with the same tag may be confused if
 * both run at the same time (fold_phase.c).  A step run by events checks for that.  A skipped one
 * is safe: a group has the same number of chunks in each step, say a and b for two groups, so in
 * step k their numbers are k a to (k + 1) a - 1 and k b to (k + 1) b - 1.  With a > b no number is
 * in both from the step on in which k (a - b) >= b.  A rank runs chunks of one step at a time. */

static uint64_t chunks_so_far(const run_npu *n, const cfg_group *g)
{
    if (!g)
        return n->streams_made;
    for (size_t i = 0; i < n->membership_count; i++)
        if (n->memberships[i]->group == g)
            return n->memberships[i]->next_stream - fold_first_stream(n->sim, g);
    return 0;
}

/* The class has ended its first step: count its chunks per group. */
static void note_shares(fold_sim *f, fold_class *c)
{
    const run_npu *n = c->npu;
    const orr_columns *columns = &n->graph->t->columns;
    bool *seen = orr_arena_new(f->arena, c->link_count + 1, bool);
    c->shares = orr_arena_new(f->arena, c->link_count + 2, fold_share);
    if (!seen || !c->shares) {
        run_no_memory(f->s);
        return;
    }
    bool has_world = false;
    for (uint32_t p = 0; p < n->graph->count; p++) {
        const uint32_t relation = c->relation_of[p];
        const cfg_group *g;
        if (columns->type[n->graph->node[p]] != ORR_NODE_COMM_COLL || !sys_find_group(n, p, &g))
            continue;
        bool *is_seen = g && relation ? &seen[c->link_of[relation - 1]] : &has_world;
        if (!*is_seen)
            c->shares[c->share_count++] = (fold_share){p, chunks_so_far(n, g)};
        *is_seen = true;
    }
}

/* May chunks of two groups have equal numbers in a step after this one? */
static bool share_numbers(const fold_share *a, const fold_share *b, uint32_t round)
{
    const uint64_t least = a->chunks < b->chunks ? a->chunks : b->chunks;
    const uint64_t most = a->chunks < b->chunks ? b->chunks : a->chunks;
    return (round + (uint64_t)1) * (most - least) < least;
}

static bool may_mix_shares(const fold_sim *f,
                           const fold_class *c,
                           const fold_share *a,
                           const fold_share *b,
                           uint32_t round)
{
    run_npu view = {.sim = f->s, .graph = c->npu->graph, .rank = c->ranks[0]};
    const bool is_one = sys_node_group(&view, a->place) == sys_node_group(&view, b->place);
    const bool may_meet = share_numbers(a, b, round);
    for (uint32_t i = 0; i < c->count; i++) {
        view.rank = c->ranks[i];
        const cfg_group *x = sys_node_group(&view, a->place), *y = sys_node_group(&view, b->place);
        /* Chunks were counted by the groups of the first member. */
        if ((x == y) != is_one || (!is_one && may_meet && fold_may_mix_groups(f->s, x, y)))
            return true;
    }
    return false;
}

/* May later steps have chunks whose messages can be confused? */
static bool may_mix_later(const fold_sim *f, uint32_t round)
{
    bool may = false;
    for (uint32_t k = 0; f->may_mix_tags && k < f->class_count && !may; k++) {
        const fold_class *c = &f->classes[k];
        for (uint32_t i = 0; i < c->share_count && !may; i++)
            for (uint32_t j = i + 1; j < c->share_count && !may; j++)
                may = may_mix_shares(f, c, &c->shares[i], &c->shares[j], round);
    }
    return may;
}

void fold_round_over(run_npu *n)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    /* Strict: the event that ends the step is the last for every member; loose: each member ends
     * with its own last node (fold_round_end_at). */
    if (!f->is_loose)
        c->round_end = c->now;
    if (f->may_mix_tags && n->round == 0)
        note_shares(f, c);
    if (!steady_note_end(n->sim, n->round, c->count, (uint64_t)fold_most(f->times, c->round_end)))
        run_no_memory(n->sim);
    c->done_result = n->result;
    /* Not ORR_NEVER: this step has ended. */
    c->done_result.finished_at = 0;
}

/* A node without children has ended. */
void fold_round_end_at(fold_sim *f, fold_class *c)
{
    c->round_end = fold_later(f, c->round_end, c->now);
}

/* Two alternating logs: memory for two steps, however many there are. */
static void swap_logs(fold_class *c)
{
    const fold_log done = c->log;
    c->log = c->done;
    c->done = done;
    c->log.count = c->log.note_count = c->log.phase_count = c->log.send_count = 0;
}

static void find_out(fold_sim *f, uint32_t round);

void fold_round_begins(run_npu *n)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    /* The previous step stays readable until this one has ended too. */
    swap_logs(c);
    fold_tape_ends(f, c);
    fold_tape_begins(f, c);
    c->begun[n->round % FOLD_BEGINNINGS] = (fold_beginning){
        .at = c->round_end,
        .lag_least = c->last.lag_least,
        .lag_most = c->last.lag_most,
        .queues = queue_turns(n),
        .kind = c->last.kind,
        .slot = f->ending_slot,
        .place = c->last.call.action == work_node_done ? c->last.call.argument : UINT64_MAX};
    c->began_in = f->turn;
    if (f->is_loose) {
        for (uint32_t p = 0; p < n->graph->count; p++) {
            c->ready_at[p] = c->round_end;
            c->ready_by[p] = n->graph->parents[p] ? 0 : UINT64_MAX;
            if (c->made)
                c->made[p].is_open = false;
        }
        for (unsigned k = 0; k < WORK_SLOTS; k++)
            c->slots[k] = (fold_slot){.last.kind = UINT8_MAX};
    }
    c->round_end = (fold_val){0, 0, 0};
    /* This class was the last to end the previous step. */
    if (n->sim->rounds.rows[n->round - 1].ranks == n->sim->npu_count)
        find_out(f, n->round - 1);
}

/* ---- steady state ---- */

static bool is_same_beginning(const fold_beginning *a, const fold_beginning *b)
{
    return a->at.by == b->at.by && a->lag_least == b->lag_least && a->lag_most == b->lag_most &&
           a->queues == b->queues && a->kind == b->kind && a->slot == b->slot &&
           a->place == b->place;
}

static bool leaves_messages(const fold_sim *f, uint32_t round)
{
    for (size_t i = 0; i < f->channel_count; i++)
        for (const fold_letter *l = f->channels[i]->first; l; l = l->next)
            if (l->round <= round)
                return true;
    return false;
}

/* Do all begin step `to` as they began step `from`, only later?  *later: by how much. */
static bool begin_alike(const fold_sim *f, uint32_t from, uint32_t to, int64_t *later)
{
    for (uint32_t i = 0; i < f->class_count; i++) {
        const fold_beginning *a = &f->classes[i].begun[from % FOLD_BEGINNINGS];
        const fold_beginning *b = &f->classes[i].begun[to % FOLD_BEGINNINGS];
        if (i == 0)
            *later = b->at.base - a->at.base;
        if (b->at.base - a->at.base != *later || !is_same_beginning(a, b))
            return false;
    }
    return true;
}

/* All classes have ended this step: do they begin the next one like an earlier one?  Then the last
 * step of all equals one of those from there on: this one, or one of the next few, which are
 * run. */
static void find_out(fold_sim *f, uint32_t round)
{
    run_rounds *r = &f->s->rounds;
    int64_t later = 0;
    uint32_t steps = 1;
    /* Each of these would carry state from step to step that beginnings do not show. */
    if (r->skipped || round >= r->last || f->mixes_rounds || leaves_messages(f, round))
        return;
    for (uint32_t i = 0; i < f->class_count; i++)
        if (f->classes[i].npu->round != round + 1 || f->classes[i].npu->variants_made)
            return;
    if (may_mix_later(f, round))
        return;
    /* Short cycles first: a run that repeats every step also repeats every second one. */
    while (steps <= round && steps < FOLD_BEGINNINGS &&
           !begin_alike(f, round + 1 - steps, round + 1, &later))
        steps++;
    if (steps > round || steps == FOLD_BEGINNINGS || later < 0) {
        fold_play_on(f, round);
        return;
    }
    const uint32_t last = round + (r->last - round) % steps;
    if (last >= r->last)
        return;
    r->skipped = r->last - last;
    r->skipped_ns = steady_length(r->skipped / steps, (uint64_t)later);
    r->last = last;
    f->is_steady = last == round;
}

/* ---- the end ---- */

/* The log that is kept is that of the last step all classes have ended. */
void fold_steps_finish(fold_sim *f)
{
    orr_sim *s = f->s;
    run_rounds *r = &s->rounds;
    int64_t first = INT64_MAX;
    if (s->opt.steps < 2)
        return;
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        /* All have begun another step: the one that counts is in `done`. */
        if (f->is_steady) {
            const fold_log rest = c->log;
            c->log = c->done;
            c->done = rest;
            c->npu->result = c->done_result;
        }
        const fold_val begun = c->begun[r->last % FOLD_BEGINNINGS].at;
        if (begun.base < first)
            first = begun.base;
    }
    if (f->is_steady)
        s->finished = s->npu_count;
    r->recorded = r->last;
    r->origin = (uint64_t)first;
    if (r->row_count > (size_t)r->last + 1)
        r->row_count = (size_t)r->last + 1;
    for (uint32_t i = 0; i < f->class_count; i++)
        for (size_t k = 0; k < f->classes[i].log.send_count; k++)
            fold_draw_sent(f, &f->classes[i], &f->classes[i].log.sends[k]);
}
