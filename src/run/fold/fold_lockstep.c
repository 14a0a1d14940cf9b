/* SPDX-License-Identifier: Apache-2.0 */
/* fold_lockstep.c - ranks that do the same at the same time (docs/design/folding.md, "Lock step").
 *
 * Why it is exact: take classes such that ranks of one class have the same trace and speeds, and for each thing their
 * trace does with others meet the same classes, as often, in groups that lie alike.  If all ranks of a class are in the
 * same state at one time, then so they are after the next event: a collective begins for all groups of a colour at
 * once, takes the same time, and loads the ports of a class equally; so max-min fair rates are equal too. */
#include "fold_impl.h"

#include "models/network/fluid/fluid_paths.h"
#include "models/network/net_table.h"

#include <stdio.h>

static const char *obstacle(const orr_sim *s)
{
    bool is_joint = s->joint != NULL;
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        is_joint = is_joint && s->plans[k].is_joint && !s->system.custom[k];
    const struct {
        bool is_there;
        const char *what;
    } all[] = {
        {s->opt.fold == ORR_SIM_FOLD_OFF, "it was switched off"},
        {s->topology != NULL, "on this network ranks share links"},
        {!is_joint || s->opt.plans || s->system.custom_by_node,
         "collectives have algorithms of their own"},
        {s->opt.trace_log || s->system.trace_enabled || s->opt.logging, "every node is recorded"},
        {s->system.track_local_mem, "local memory is tracked"},
        {s->opt.rendezvous, "messages wait for their receivers (rendezvous)"},
        {s->memory.type > CFG_MEM_PER_NPU, "ranks share memory servers"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_there)
            return all[i].what;
    return NULL;
}

/* Messages are matched by class and tag, so that a tag must be the same for all members. */
bool fold_has_odd_tags(const orr_sim *s)
{
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const uint32_t *tags = s->set->classes[k].slot[ORR_HOLE_COMM_TAG];
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; g->t && p < g->count; p++) {
            const uint8_t type = g->t->columns.type[g->node[p]];
            if (type != ORR_NODE_COMM_SEND && type != ORR_NODE_COMM_RECV)
                continue;
            if (tags && tags[g->node[p]])
                return true;
        }
    }
    return false;
}

static bool take_classes(orr_sim *s, const fold_sim *f, fold_lockstep *l)
{
    orr_map *seen = orr_map_create(0);
    bool ok = seen && l->stands_for && l->size && l->like;
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        l->stands_for[r] = f->classes[f->class_of[r]].ranks[0];
        l->size[l->stands_for[r]]++;
    }
    for (size_t i = 0; ok && i < s->groups.count; i++) {
        l->like[i] = orr_map_find(seen, f->group_colour[i], (uint32_t)i);
        ok = l->like[i] != i || orr_map_put(seen, f->group_colour[i], (uint32_t)i, NULL);
    }
    l->classes = f->class_count;
    orr_map_destroy(seen);
    return ok;
}

orr_code fold_lockstep_create(orr_sim *s, fold_lockstep **out, orr_error *err)
{
    const char *why = obstacle(s);
    *out = NULL;
    if (!why && fold_has_odd_tags(s))
        why = "messages of ranks that are alike have tags of their own";
    if (why) {
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
        return ORR_OK;
    }
    fold_sim f = {.s = s, .arena = orr_arena_create(), .is_lockstep = true};
    for (uint32_t k = 0; k < s->dims; k++)
        f.shares_links = f.shares_links || s->net_config.shape[k] != ORR_NET_SWITCH;
    fold_lockstep *l = orr_arena_new(s->arena, 1, fold_lockstep);
    bool ok = f.arena && l && fold_colour_ranks(s) && fold_find_classes(&f, err);
    const bool pays = ok && !f.has_given_up && f.class_count <= s->npu_count / 2;
    if (ok && !f.has_given_up && !pays)
        fold_give_up(&f, "only few ranks are alike");
    if (pays) {
        *l = (fold_lockstep){.stands_for = orr_arena_new(s->arena, s->npu_count, uint32_t),
                             .size = orr_arena_new(s->arena, s->npu_count, uint32_t),
                             .like = orr_arena_new(s->arena, s->groups.count + 1, uint32_t)};
        ok = take_classes(s, &f, l);
        l->standing = f.standing;
        *out = ok ? l : NULL;
    }
    if (!*out && f.standing)
        orr_map_destroy(f.standing->way_of);
    orr_arena_destroy(f.arena);
    return ok ? ORR_OK : orr_no_memory(err);
}

void fold_lockstep_destroy(fold_lockstep *l)
{
    if (l && l->standing)
        orr_map_destroy(l->standing->way_of);
}

bool fold_lockstep_spread(orr_sim *s)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t from = s->lockstep->stands_for[r];
        if (from == r)
            continue;
        s->npus[r].result = s->npus[from].result;
        if (s->watch) {
            uint32_t *steps = s->watch->ranks[r].step_of;
            s->watch->ranks[r] = s->watch->ranks[from];
            s->watch->ranks[r].step_of = steps;
        }
    }
    return fold_put_finish_order(s);
}

/* ---- the log of steps ---- */

/* The collective of a rank that is not simulated: the same of its own group. */
static uint32_t own_instance(const orr_sim *s, uint32_t rank, uint32_t place, uint32_t instance)
{
    struct watch_record *w = s->watch;
    const run_npu probe = {.sim = (orr_sim *)s, .rank = rank, .graph = s->npus[rank].graph};
    const cfg_group *g = NULL;
    if (instance == RUN_NONE || !sys_find_group(&probe, place, &g))
        return RUN_NONE;
    watch_instance like = w->instances[instance];
    like.group = g;
    if (s->lockstep->symmetry) {
        like.stream = fold_stream_of(s, g, like.stream);
        like.base = watch_base_of(s, rank, like.along);
    } else if (g && g->count != s->npu_count)
        like.stream = (uint64_t)g->sorted[0] << 32 | (uint32_t)like.stream;
    return watch_find_instance(w, &like);
}

static watch_phase own_phase(const orr_sim *s, uint32_t rank, uint32_t place, watch_phase phase)
{
    const run_npu probe = {.sim = (orr_sim *)s, .rank = rank, .graph = s->npus[rank].graph};
    const cfg_group *g = NULL;
    phase.step = s->watch->ranks[rank].step_of[place];
    if (sys_find_group(&probe, place, &g))
        phase.stream = fold_stream_of(s, g, phase.stream);
    return phase;
}

/* Phases of all ranks, each as the one that stands for it has them. */
static bool write_phases(const orr_sim *s, const watch_step *old_steps)
{
    struct watch_record *w = s->watch;
    const uint32_t *stands_for = s->lockstep->stands_for;
    size_t all = 0, at = 0;
    uint32_t *next =
        orr_alloc(s->npu_count, sizeof *next); /* by rank: one like it; NONE: the last */
    for (size_t i = 0; i < w->phase_count; i++)
        all += s->lockstep->size[old_steps[w->phases[i].step].rank];
    watch_phase *phases = next && all < RUN_NONE ? orr_alloc(all + 1, sizeof *phases) : NULL;
    if (!phases) {
        orr_free(next);
        return false;
    }
    memset(next, 0xff, s->npu_count * sizeof *next);
    for (uint32_t r = s->npu_count; r-- > 0;)
        if (stands_for[r] != r) {
            next[r] = next[stands_for[r]];
            next[stands_for[r]] = r;
        }
    for (size_t i = 0; i < w->phase_count; i++) {
        const watch_step *step = &old_steps[w->phases[i].step];
        for (uint32_t r = step->rank; r != RUN_NONE; r = next[r])
            phases[at++] = own_phase(s, r, step->place, w->phases[i]);
    }
    orr_free(next);
    orr_free(w->phases);
    w->phases = phases;
    w->phase_count = w->phase_room = all;
    return true;
}

/* Steps of all ranks, rank by rank, each as the one that stands for it has them. */
bool fold_lockstep_write_log(const orr_sim *s)
{
    struct watch_record *w = s->watch;
    const uint32_t *stands_for = s->lockstep->stands_for;
    const size_t known = w->step_count;
    size_t *first = orr_alloc((size_t)s->npu_count + 1, sizeof *first), all = 0, at = 0;
    uint32_t *own = orr_alloc(known + 1, sizeof *own);
    bool ok = first && own;
    for (size_t i = 0; ok && i < known; i++)
        first[w->steps[i].rank + 1]++;
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        first[r + 1] += first[r];
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        all += first[stands_for[r] + 1] - first[stands_for[r]];
    watch_step *steps = ok && all < RUN_NONE ? orr_alloc(all + 1, sizeof *steps) : NULL;
    size_t *next = ok ? orr_alloc(s->npu_count, sizeof *next) : NULL;
    ok = steps && next;
    if (ok)
        memcpy(next, first, s->npu_count * sizeof *next);
    for (size_t i = 0; ok && i < known; i++) { /* those of a rank together, in their order */
        const uint32_t r = w->steps[i].rank;
        own[next[r]++] = (uint32_t)i;
    }
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        for (size_t k = first[stands_for[r]]; k < first[stands_for[r] + 1]; k++) {
            watch_step step = w->steps[own[k]];
            step.rank = r;
            step.instance = own_instance(s, r, step.place, step.instance);
            w->ranks[r].step_of[step.place] = (uint32_t)at;
            steps[at++] = step;
        }
    }
    ok = ok && (w->phase_count == 0 || write_phases(s, w->steps));
    if (ok) {
        orr_free(w->steps);
        w->steps = steps;
        w->step_count = w->step_room = all;
    } else {
        orr_free(steps);
    }
    orr_free(first);
    orr_free(own);
    orr_free(next);
    return ok;
}
