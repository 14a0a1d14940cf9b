/* SPDX-License-Identifier: Apache-2.0 */
/* fold_lockstep.c - equal ranks that do everything at the same time (docs/design/folding.md, "Lock
 * step").
 *
 * Why it is exact: take classes such that ranks of one class have the same trace and speeds, and
 * for every communication of their trace meet the same classes, equally often, in equally placed
 * groups.  If all ranks of a class are in the same state at one time, they are so after the next
 * event: a collective begins for all groups of a colour at once, takes the same time, and loads the
 * ports of a class equally; so max-min fair rates are equal too.
 *
 * A port represents those of its class: fluid_paths.stands_for routes a message of any member
 * through the ports of simulated ranks, so loads are counted once.  Cost: that of fold_classes.c,
 * once; then a run of as many ranks as there are classes. */
#include "fold_impl.h"

#include "models/network/fluid/fluid.h"
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
         "collectives have custom algorithms"},
        {s->opt.trace_log || s->system.trace_enabled || s->opt.logging, "every node is recorded"},
        {s->system.track_local_mem, "local memory is tracked"},
        {s->opt.rendezvous, "messages wait for their receivers (rendezvous)"},
        {s->memory.type > CFG_MEM_PER_NPU && fold_has_memory_nodes(s),
         "ranks share memory servers"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_there)
            return all[i].what;
    return NULL;
}

/* Messages are matched by class and tag, so a tag must be the same for all members. */
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

/* The smallest rank represents its class, and the first group its colour: joint.c looks collectives
 * up by that one. */
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
        why = "identical ranks use different tags for their messages";
    if (why) {
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
        return ORR_OK;
    }
    /* Only to find classes: it is never run. */
    fold_sim f = {.s = s, .arena = orr_arena_create(), .is_lockstep = true};
    /* Only switches give each rank its own ports. */
    for (uint32_t k = 0; k < s->dims; k++)
        f.shares_links = f.shares_links || s->net_config.shape[k] != ORR_NET_SWITCH;
    fold_lockstep *l = orr_arena_new(s->arena, 1, fold_lockstep);
    bool ok = f.arena && l && fold_colour_ranks(s) && fold_find_classes(&f, err);
    /* At most half of the ranks: fewer equal ranks do not pay for the bookkeeping. */
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
    /* The rest is in the arena of the simulation, this map is not. */
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

/* Also for a stopped run: the results of a simulated rank hold for all it represents. */
bool fold_lockstep_spread(orr_sim *s)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t from = s->lockstep->stands_for[r];
        if (from == r)
            continue;
        s->npus[r].result = s->npus[from].result;
        if (s->watch) {
            /* Its own, or none: positions of steps belong to the simulated rank. */
            uint32_t *steps = s->watch->ranks[r].step_of;
            s->watch->ranks[r] = s->watch->ranks[from];
            s->watch->ranks[r].step_of = steps;
        }
    }
    return fold_put_finish_order(s);
}

/* ---- the log of steps ---- */

/* Those of the simulated ranks, rank by rank. */
typedef struct writer {
    const orr_sim *s;
    size_t *first;       /* by rank; one more than there are ranks */
    uint32_t *steps;     /* of the record, in order */
    uint32_t *number;    /* by step of the record: its index within its rank */
    size_t *first_phase; /* by rank, as `first` */
    uint32_t *phases;    /* of the record; NULL: none are kept */
    uint32_t rank, from; /* the rank being written, and its representative */
} writer;

static size_t count_of(const watch_source *src, uint32_t class_index)
{
    const writer *v = src->own;
    return v->first[class_index + 1] - v->first[class_index];
}

static const watch_step *own_step(const writer *v, uint32_t rank, size_t k)
{
    return &v->s->watch->steps[v->steps[v->first[rank] + k]];
}

static uint32_t place_of(const watch_source *src, uint32_t class_index, size_t k)
{
    /* A class is identified by its representative. */
    return own_step(src->own, class_index, k)->place;
}

static void turn_to(watch_source *src, uint32_t rank)
{
    writer *v = src->own;
    v->rank = rank;
    v->from = v->s->lockstep->stands_for[rank];
}

static watch_step step_at(watch_source *src, size_t k)
{
    const writer *v = src->own;
    watch_step step = *own_step(v, v->from, k);
    step.rank = v->rank;
    /* Resolved when the log is read (watch_log.c), among the steps of all requested ranks. */
    step.cause = step.instance = step.earlier = RUN_NONE;
    return step;
}

static bool group_of(const writer *v, uint32_t place, const cfg_group **g)
{
    const run_npu probe = {
        .sim = (orr_sim *)v->s, .rank = v->rank, .graph = v->s->npus[v->rank].graph};
    return sys_find_group(&probe, place, g);
}

/* The collective of a rank that was not simulated: the corresponding one of its own group. */
static bool instance_of(watch_source *src, size_t k, watch_instance *like)
{
    const writer *v = src->own;
    const orr_sim *s = v->s;
    const watch_step *step = own_step(v, v->from, k);
    const cfg_group *g = NULL;
    if (step->instance == RUN_NONE || !group_of(v, step->place, &g))
        return false;
    *like = s->watch->instances[step->instance];
    like->group = g;
    if (s->lockstep->symmetry) {
        like->stream = fold_stream_of(s, g, like->stream);
        like->base = watch_base_of(s, v->rank, like->along);
    } else if (g && g->count != s->npu_count)
        /* As in joint.c: identified by the smallest member and the number of meetings of the
         * group. */
        like->stream = (uint64_t)g->sorted[0] << 32 | (uint32_t)like->stream;
    return true;
}

static bool phase_at(watch_source *src, size_t i, watch_phase *out, size_t *k)
{
    const writer *v = src->own;
    const cfg_group *g = NULL;
    if (!v->phases || i >= v->first_phase[v->from + 1] - v->first_phase[v->from])
        return false;
    *out = v->s->watch->phases[v->phases[v->first_phase[v->from] + i]];
    *k = v->number[out->step];
    if (group_of(v, v->s->watch->steps[out->step].place, &g))
        out->stream = fold_stream_of(v->s, g, out->stream);
    return true;
}

static bool find_equal(watch_source *src, uint32_t *like)
{
    memcpy(like, src->class_of, src->s->npu_count * sizeof *like);
    return true;
}

static void close_log(watch_source *src)
{
    writer *v = src->own;
    orr_free(v->first);
    orr_free(v->steps);
    orr_free(v->number);
    orr_free(v->first_phase);
    orr_free(v->phases);
    orr_free(v);
}

/* Those of a rank together, in their order. */
static bool list_steps(writer *v)
{
    const struct watch_record *w = v->s->watch;
    size_t *next = orr_alloc((size_t)v->s->npu_count + 1, sizeof *next);
    const bool ok = next && v->first && v->steps && v->number;
    /* A counting sort by rank. */
    for (size_t i = 0; ok && i < w->step_count; i++)
        v->first[w->steps[i].rank + 1]++;
    for (uint32_t r = 0; ok && r < v->s->npu_count; r++)
        v->first[r + 1] += v->first[r];
    if (ok)
        memcpy(next, v->first, v->s->npu_count * sizeof *next);
    for (size_t i = 0; ok && i < w->step_count; i++) {
        const uint32_t r = w->steps[i].rank;
        v->number[i] = (uint32_t)(next[r] - v->first[r]);
        v->steps[next[r]++] = (uint32_t)i;
    }
    orr_free(next);
    return ok;
}

static bool list_phases(writer *v)
{
    const struct watch_record *w = v->s->watch;
    if (w->phase_count == 0)
        return true;
    v->first_phase = orr_alloc((size_t)v->s->npu_count + 1, sizeof *v->first_phase);
    v->phases = orr_alloc(w->phase_count, sizeof *v->phases);
    size_t *next = orr_alloc((size_t)v->s->npu_count + 1, sizeof *next);
    const bool ok = next && v->first_phase && v->phases;
    for (size_t i = 0; ok && i < w->phase_count; i++)
        v->first_phase[w->steps[w->phases[i].step].rank + 1]++;
    for (uint32_t r = 0; ok && r < v->s->npu_count; r++)
        v->first_phase[r + 1] += v->first_phase[r];
    if (ok)
        memcpy(next, v->first_phase, v->s->npu_count * sizeof *next);
    for (size_t i = 0; ok && i < w->phase_count; i++)
        v->phases[next[w->steps[w->phases[i].step].rank]++] = (uint32_t)i;
    orr_free(next);
    return ok;
}

bool fold_lockstep_open_log(const orr_sim *s, watch_source *out)
{
    writer *v = orr_alloc(1, sizeof *v);
    *out = (watch_source){.s = s,
                          .class_of = s->lockstep->stands_for,
                          .class_count = s->npu_count,
                          .is_even = true,
                          .has_lines = s->lockstep->symmetry != NULL,
                          .own = v,
                          .count = count_of,
                          .place = place_of,
                          .turn_to = turn_to,
                          .step = step_at,
                          .instance = instance_of,
                          .phase = phase_at,
                          .find_equal = find_equal,
                          .close = close_log};
    if (!v)
        return false;
    *v = (writer){.s = s,
                  .first = orr_alloc((size_t)s->npu_count + 1, sizeof *v->first),
                  .steps = orr_alloc(s->watch->step_count + 1, sizeof *v->steps),
                  .number = orr_alloc(s->watch->step_count + 1, sizeof *v->number)};
    if (list_steps(v) && list_phases(v))
        return true;
    close_log(out);
    return false;
}
