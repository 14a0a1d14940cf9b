/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - the life cycle of a folded run: check that it can be folded, find its classes, run;
 * restart with finer classes when one does not hold; and on request verify by simulating every rank
 * as well. */
#include "fold_impl.h"

#include "base/memory/hash.h"
#include "models/network/net_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* BATCH: events between two checks of the stop flag. SMALL_CLASS: a class of at most this many
 * members is split into single members. */
enum { BATCH = 1024, SMALL_CLASS = 16, TAG_PERIOD = MSG_TAG_SPACE / SYS_GROUP_STREAMS };

/* ---- giving up ---- */

void fold_give_up(fold_sim *f, const char *fmt, ...)
{
    va_list args;
    /* The first reason is reported. */
    if (f->has_given_up)
        return;
    f->has_given_up = true;
    va_start(args, fmt);
    vsnprintf(f->s->fold_why, sizeof f->s->fold_why, fmt, args);
    va_end(args);
}

static void recolour(fold_sim *f, uint32_t rank, uint64_t by)
{
    /* Colours outlive the failed run: the next one starts from them, and so with finer classes. */
    uint64_t *colour = &f->s->fold_colour[rank];
    *colour =
        orr_hash_mix(*colour ^ 0x8ebc6af09c88c6e3u, ((uint64_t)f->s->fold_splits << 32 | by) + 1);
}

/* The smallest groups in which this class has met; NULL: none. */
static const fold_family *smallest_family(const fold_sim *f, uint32_t class_index)
{
    const fold_family *best = NULL;
    for (size_t i = 0; i < f->family_count; i++) {
        const fold_family *y = f->families[i];
        for (uint32_t k = 0; k < y->class_count; k++)
            if (y->classes[k] == class_index && (!best || y->members < best->members))
                best = y;
    }
    return best;
}

/* First split along the sign that was found.  If classes still fail, split more coarsely: by the
 * smallest groups (replicas), and small classes into single members; otherwise they would come
 * apart one member per restart. */
void fold_split(fold_sim *f, uint32_t class_index, fold_val sign, const char *why)
{
    const fold_class *c = &f->classes[class_index];
    const fold_family *y = f->s->fold_splits ? smallest_family(f, class_index) : NULL;
    if (fold_is_over(f))
        return;
    f->wants_split = true;
    if (f->merges)
        return; /* the next run tries fold_stays_apart first */
    if (!f->is_loose && f->s->fold_may_loosen && !f->s->fold_is_strict)
        return; /* that is tried first */
    if (c->count > SMALL_CLASS && y && y->groups > 1)
        for (uint32_t g = 0; g < y->groups; g++)
            for (uint32_t m = 0; m < y->members; m++)
                recolour(f, fold_family_rank(y, g, m), g);
    else
        for (uint32_t m = 0; m < c->count; m++)
            if (c->count <= SMALL_CLASS || fold_at(f->times, sign, m) > 0)
                recolour(f, c->ranks[m], c->count <= SMALL_CLASS ? m : 0);
    snprintf(f->s->fold_why, sizeof f->s->fold_why, "rank %u and others like it: %s", c->ranks[0],
             why);
}

/* ---- may it be folded? ---- */

bool fold_has_memory_nodes(const orr_sim *s)
{
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; g->t && p < g->count; p++) {
            const uint8_t type = g->t->columns.type[g->node[p]];
            if (type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE)
                return true;
        }
    }
    return false;
}

bool fold_has_custom(const orr_sim *s)
{
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        if (s->system.custom[k])
            return true;
    return s->system.custom_by_node != NULL;
}

/* Messages of a group are tagged with the group's number (sys_tag_number) and that of the chunk:
 * those of two groups with equal numbers and two ranks in common may be mixed up. */
bool fold_has_ambiguous_groups(orr_sim *s, bool uses_world)
{
    uint32_t *first = orr_alloc(s->groups.count + 1,
                                /* by group: the previous group with the same remainder */
                                sizeof *first);
    /* Only groups with the same remainder are compared, so thousands of groups are cheap. */
    uint32_t last[TAG_PERIOD];
    bool is_bad = !first;
    if (!first)
        run_no_memory(s);
    memset(last, 0xff, sizeof last);
    for (size_t i = 0; !is_bad && i < s->groups.count; i++) {
        const uint64_t number =
            sys_tag_number((uint64_t)s->groups.groups[i].id, s->rules->has_one_count);
        uint32_t *of = &last[number];
        first[i] = *of;
        is_bad = uses_world && number == 0; /* clashes with collectives of all ranks */
        *of = (uint32_t)i;
    }
    for (size_t i = 0; !is_bad && i < s->groups.count; i++)
        for (uint32_t k = first[i]; !is_bad && k != RUN_NONE; k = first[k])
            is_bad = fold_share_pair(&s->groups.groups[i], &s->groups.groups[k]);
    orr_free(first);
    return is_bad;
}

/* Reductions take the time of the rank's memory, and fold_phase.c computes a phase with one speed
 * for all members. */
static bool has_equal_memories(const orr_sim *s)
{
    for (uint32_t r = 1; s->ranks_config.speeds && r < s->npu_count; r++)
        if (s->ranks_config.speeds[r].memory != s->ranks_config.speeds[0].memory)
            return false;
    return true;
}

bool fold_knows_network(const orr_sim *s)
{
    return s->net_ops == &orr__net_unaware || s->net_ops == &orr__net_unaware_graph ||
           s->net_ops == &orr__net_fluid;
}

const char *fold_obstacle(const orr_sim *s)
{
    const struct {
        bool is_there;
        const char *what;
    } all[] = {
        {s->opt.fold == ORR_SIM_FOLD_OFF, "it was switched off"},
        {s->rules != &run_rules_ours, "the rules of another program apply"},
        {s->opt.records_goal || s->opt.trace_log || s->system.trace_enabled || s->opt.logging,
         "every message or node is recorded"},
        {s->system.track_local_mem, "local memory is tracked"},
        {s->opt.rendezvous, "messages wait for their receivers (rendezvous)"},
        {s->system.shared_bus, "messages share a bus"},
        {s->system.is_agreed || s->system.inter != CFG_ASCENDING,
         "chunks are scheduled across ranks"},
        {fold_has_custom(s), "collectives have custom algorithms"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_there)
            return all[i].what;
    return NULL;
}

/* Why this workload cannot be folded; NULL: it can. */
static const char *obstacle(const orr_sim *s)
{
    const char *why = fold_obstacle(s);
    if (why)
        return why;
    if (!fold_knows_network(s) || s->net_ops == &orr__net_fluid)
        return "on this network messages delay each other";
    if (s->memory.type > CFG_MEM_PER_NPU && fold_has_memory_nodes(s))
        return "ranks share memory servers";
    return has_equal_memories(s) ? NULL : "the memories of ranks differ";
}

/* ---- life cycle ---- */

bool fold_colour_ranks(orr_sim *s)
{
    if (s->fold_colour)
        return true;
    s->fold_colour = orr_arena_new(s->arena, s->npu_count, uint64_t);
    for (uint32_t r = 0; s->fold_colour && r < s->npu_count; r++) {
        const cfg_rank_speed *v =
            s->ranks_config.speeds ? &s->ranks_config.speeds[r] : &cfg_plain_rank;
        s->fold_colour[r] = orr_hash_bytes(v, sizeof *v, orr_set_class_of(s->set, r));
    }
    return s->fold_colour != NULL;
}

/* Limit on the bytes of spreads.  Consecutive steps that do not settle add some each; allow more of
 * them if there are many ranks, since a run of every rank would not finish. */
static size_t most_spreads(const orr_sim *s)
{
    const size_t least = (size_t)256 << 20, most = (size_t)4 << 30;
    const size_t wanted = s->opt.steps > 1 ? (size_t)s->npu_count << 15 : least;
    return wanted < least ? least : wanted > most ? most : wanted;
}

/* An obstacle is not an error: every rank is simulated, and fold_why gives the reason. */
orr_code fold_create(orr_sim *s, struct fold_sim **out, orr_error *err)
{
    const char *why = obstacle(s);
    *out = NULL;
    if (why) {
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
        return ORR_OK;
    }
    fold_sim *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    f->s = s;
    f->free_event = f->free_meeting_slot = RUN_NONE;
    f->ending_slot = FOLD_NO_SLOT;
    f->arena = orr_arena_create();
    f->times = fold_times_create(most_spreads(s));
    f->claims = orr_map_create(0);
    f->channel_by_sum = orr_map_create(0);
    f->meeting_by_key = orr_map_create(0);
    f->memos = orr_map_create(0);
    const bool ok =
        f->arena && f->times && f->claims && f->channel_by_sum && f->meeting_by_key && f->memos &&
        fold_colour_ranks(s) && fold_find_classes(f, err) &&
        (f->has_given_up || (f->class_at = orr_arena_new(f->arena, f->class_count, size_t)));
    if (ok && !f->has_given_up)
        f->may_mix_tags = fold_has_ambiguous_groups(s, f->uses_world);
    /* A long series of splits costs more than it saves. */
    if (ok && !f->has_given_up && f->class_count > s->npu_count / (s->fold_splits > 1 ? 8 : 2))
        fold_give_up(f, "only few ranks are alike");
    if (!ok || s->code || f->has_given_up) {
        fold_destroy(f);
        return ok && !s->code ? ORR_OK : orr_no_memory(err);
    }
    *out = f;
    return ORR_OK;
}

void fold_destroy(fold_sim *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->family_count; i++) {
        orr_map_destroy(f->families[i]->pattern_by_step);
        orr_free(f->families[i]->patterns);
    }
    for (uint32_t c = 0; f->classes && c < f->class_count; c++) {
        orr_free(f->classes[c].running);
        fold_drop_log(&f->classes[c].log);
        fold_drop_log(&f->classes[c].done);
    }
    orr_free(f->families);
    orr_free(f->channels);
    orr_free(f->pairs);
    orr_free(f->paths);
    orr_map_destroy(f->claims);
    orr_map_destroy(f->channel_by_sum);
    orr_free(f->events);
    orr_heap_fini(&f->queue);
    orr_map_destroy(f->meeting_by_key);
    orr_free(f->meetings);
    orr_free(f->meeting_free_next);
    orr_map_destroy(f->memos);
    orr_map_destroy(f->mixed);
    orr_free(f->memo_words);
    orr_free(f->starts);
    orr_free(f->ends);
    orr_free(f->question);
    orr_free(f->phase_ends);
    fold_drop_flows(f);
    fold_tape_destroy(f->tape);
    fold_merge_fini(f);
    fold_times_destroy(f->times);
    orr_arena_destroy(f->arena);
    orr_free(f);
}

uint32_t fold_class_count(const fold_sim *f)
{
    return f->class_count;
}

void fold_attach(fold_sim *f, uint32_t class_index, run_npu *n)
{
    f->classes[class_index].npu = n;
}

uint32_t fold_class_first(const fold_sim *f, uint32_t class_index)
{
    return f->classes[class_index].ranks[0];
}

uint64_t fold_events(const fold_sim *f)
{
    return f->events_run;
}

/* An order was the reason, and this run was strict. */
bool fold_wants_loose(const fold_sim *f)
{
    return !f->is_loose && f->s->fold_may_loosen && !f->s->fold_is_strict && !f->s->code &&
           (f->has_given_up ? f->lost_order : f->wants_split);
}

/* With several steps a run is loose from the start (fold_loosen); where it gave up, a strict one
 * may hold. */
bool fold_wants_strict(const fold_sim *f)
{
    return f->is_loose && f->s->opt.steps > 1 && f->has_given_up && !f->s->code;
}

bool fold_has_merged(const fold_sim *f)
{
    return f->merges > 0;
}

bool fold_wants_split(const fold_sim *f)
{
    return f->wants_split && !f->has_given_up && !f->s->code;
}

/* ---- running ---- */

static void start_late(void *npu, uint64_t unused)
{
    (void)unused;
    work_issue(npu);
}

/* Classes start in the order of their smallest ranks, as ranks do in an unfolded run. */
static void start(fold_sim *f)
{
    f->has_started = true;
    for (uint32_t c = 0; c < f->class_count && !fold_is_over(f); c++) {
        fold_class *k = &f->classes[c];
        const int64_t delay = (int64_t)k->npu->speed->delay;
        /* The class whose nodes start: it causes what it schedules (check_after_last). */
        f->running = k;
        f->turn++;
        if (delay)
            fold_schedule(f, &(fold_event){.at = {delay, 0, 0},
                                           .lag_least = delay,
                                           .lag_most = delay,
                                           .call = {start_late, k->npu, 0},
                                           .class_index = c,
                                           .kind = FOLD_ARRIVAL});
        else
            work_issue(k->npu);
    }
    f->running = NULL;
}

static bool has_events(const fold_sim *f)
{
    for (uint32_t c = 0; c < f->class_count; c++)
        if (f->classes[c].first_event != RUN_NONE)
            return true;
    return false;
}

/* ORR_OK: finished.  ORR_END: it did not hold; simulate every rank, or finer classes. */
orr_code fold_run(fold_sim *f, orr_error *err)
{
    orr_sim *s = f->s;
    bool has_more = true;
    /* After a stop it goes on from where it was. */
    if (!f->has_started) {
        /* The tape asks whether the run is loose, so it comes after. */
        if (!fold_keep_log(f) || !fold_loosen(f) || !fold_tape_create(f) || !fold_merge_init(f))
            return orr_no_memory(err);
        fold_steps_init(f);
        start(f);
    }
    while (has_more && !fold_is_over(f) && !f->is_steady) {
        const uint64_t most = s->opt.max_events;
        for (unsigned i = 0; i < BATCH && has_more && !f->is_steady && (!most || f->steps < most);
             i++, f->steps++)
            has_more = fold_step(f);
        /* The queue may hold nothing but entries that are no longer pending. */
        has_more = has_more && has_events(f);
        if (has_more && !f->is_steady &&
            (atomic_load_explicit(&s->must_stop, memory_order_relaxed) ||
             (most && f->steps >= most)))
            return fold_make_results(f) ? ORR_ESTOP : orr_no_memory(err);
    }
    if (!fold_is_over(f))
        fold_steps_finish(f);
    if (!fold_is_over(f) && s->finished < s->npu_count)
        fold_give_up(f, "the run does not finish");
    if (fold_times_no_memory(f->times))
        run_no_memory(s);
    if (s->code == ORR_ENOMEM) {
        *err = s->error;
        return s->code;
    }
    if (!fold_is_over(f) && fold_times_failed(f->times))
        fold_give_up(f, "the times of ranks have too little in common");
    /* A rank failed: simulate every rank, so that the error names the first one that fails. */
    if (s->code && !f->has_given_up)
        fold_give_up(f, "a rank cannot go on");
    if (fold_is_over(f))
        return ORR_END;
    atomic_store_explicit(&s->must_stop, false, memory_order_relaxed);
    return fold_make_results(f) ? ORR_OK : orr_no_memory(err);
}
