/* SPDX-License-Identifier: Apache-2.0 */
/* watch_log.c - the log of steps as it is read: rank by rank, each rank's steps in the order in
 * which they began.
 *
 * A run writes its log as events come.  In which order things happen within one tick is no fact
 * about the machine, and a folded run does not know it (fold/fold.h): so it is forgotten here.
 * Steps of one tick are in the order of their nodes; members of a collective are in the order in
 * which they came, those of one tick by rank; and what released a step is the step of its rank that
 * ended at this moment: a parent, before one of the same slot, before any other.
 *
 * Cost: linear in the steps, but for those that did not come in order, which are sorted. */
#include "watch.h"

#include "fold/fold.h"

#include "base/memory/hash.h"

#include <stdlib.h>

static bool count_steps(const orr_sim *s, watch_log *l)
{
    l->first_step = orr_alloc((size_t)s->npu_count + 1, sizeof *l->first_step);
    if (!l->first_step)
        return false;
    for (size_t i = 0; i < l->step_count; i++)
        l->first_step[l->steps[i].rank + 1]++;
    for (uint32_t r = 0; r < s->npu_count; r++)
        l->first_step[r + 1] += l->first_step[r];
    return true;
}

static int by_start_and_place(const void *a, const void *b, void *all)
{
    const watch_step *x = (const watch_step *)all + *(const uint32_t *)a;
    const watch_step *y = (const watch_step *)all + *(const uint32_t *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* A run on one clock writes steps of a rank in order but for those of one tick: most ranks need no
 * sort. */
static void sort_steps(const watch_log *l, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (by_start_and_place(&order[i - 1], &order[i], l->steps) > 0) {
            qsort_r(order, count, sizeof *order, by_start_and_place, l->steps);
            return;
        }
}

/* The steps change places: so does whoever names one. */
static bool sort_log(const orr_sim *s, struct watch_record *w, watch_log *l)
{
    uint32_t *order = orr_alloc(l->step_count, sizeof *order); /* which step comes here */
    uint32_t *to = orr_alloc(l->step_count, sizeof *to);
    uint32_t *next = orr_alloc(s->npu_count, sizeof *next);
    watch_step *steps = orr_alloc(l->step_count, sizeof *steps);
    const bool ok = order && to && next && steps;
    if (ok) {
        /* A counting sort by rank: linear, and stable. */
        memcpy(next, l->first_step, s->npu_count * sizeof *next);
        for (size_t i = 0; i < l->step_count; i++)
            order[next[l->steps[i].rank]++] = (uint32_t)i;
        for (uint32_t r = 0; r < s->npu_count; r++)
            sort_steps(l, order + l->first_step[r], l->first_step[r + 1] - l->first_step[r]);
        for (size_t i = 0; i < l->step_count; i++) {
            to[order[i]] = (uint32_t)i;
            steps[i] = l->steps[order[i]];
        }
        for (size_t i = 0; !l->is_copy && i < l->step_count; i++)
            w->ranks[steps[i].rank].step_of[steps[i].place] = (uint32_t)i;
        for (size_t i = 0; i < l->phase_count; i++)
            l->phases[i].step = to[l->phases[i].step];
        orr_free(l->steps);
        l->steps = steps;
        l->step_room = l->step_count;
    } else {
        orr_free(steps);
    }
    orr_free(order);
    orr_free(to);
    orr_free(next);
    return ok;
}

/* ---- what released a step ---- */

static int by_end(const void *a, const void *b, void *all)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const watch_step *x = (const watch_step *)all + i, *y = (const watch_step *)all + k;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : i < k ? -1 : i > k;
}

/* Steps come in the order of their starts and end in nearly the same order: most stay where they
 * are, and moving the others down is cheaper than a sort, unless there are many. */
static void sort_by_end(watch_step *steps, uint32_t *ended, uint32_t count)
{
    /* A bound on what insertion may cost: beyond it the order is no longer nearly that of
     * starts. */
    uint64_t moves_left = UINT64_C(4) * count;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t step = ended[i];
        uint32_t to = i;
        while (to > 0 && steps[ended[to - 1]].end > steps[step].end && moves_left) {
            ended[to] = ended[to - 1];
            to--;
            moves_left--;
        }
        ended[to] = step;
        if (!moves_left) {
            qsort_r(ended, count, sizeof *ended, by_end, steps);
            return;
        }
    }
}

static bool is_parent(const work_graph *g, uint32_t parent, uint32_t child)
{
    for (uint32_t e = g->child_first[parent]; e < g->child_first[parent + 1]; e++)
        if (g->child[e] == child)
            return true;
    return false;
}

/* How good an answer `before` is, which ended when `step` began; 0: none. */
static unsigned fit(const watch_log *l, const work_graph *g, uint32_t step, uint32_t before)
{
    const watch_step *me = &l->steps[step], *other = &l->steps[before];
    const bool has_length = other->start < other->end;
    if (before == step)
        return 0;
    if (is_parent(g, other->place, me->place))
        /* A parent that took time before one that took none: the chain of what took time is the
         * path that people ask for. */
        return has_length ? 5 : 4;
    if (!has_length)
        /* Of steps without length only an earlier one counts, or two of one tick could release each
         * other. */
        return before < step;
    return g->slot[other->place] == g->slot[me->place] ? 3 : 2;
}

static void find_causes(const orr_sim *s, watch_log *l, uint32_t rank, uint32_t *ended)
{
    const uint32_t first = l->first_step[rank], count = l->first_step[rank + 1] - first;
    const work_graph *g = run_graph_of(s, rank);
    uint32_t from = 0; /* the first that ended at this time or later */
    for (uint32_t i = 0; i < count; i++)
        ended[i] = first + i;
    sort_by_end(l->steps, ended, count);
    for (uint32_t i = 0; i < count; i++) {
        watch_step *me = &l->steps[first + i];
        unsigned best = 0;
        me->cause = RUN_NONE;
        /* Both lists are in order of time, so `from` only goes forward: linear for a rank. */
        while (from < count && l->steps[ended[from]].end < me->start)
            from++;
        for (uint32_t k = from; k < count && l->steps[ended[k]].end == me->start; k++) {
            const unsigned how = fit(l, g, first + i, ended[k]);
            if (how > best) {
                best = how;
                me->cause = ended[k];
            }
        }
    }
}

/* Of ranks whose steps are all there. */
static bool find_all_causes(const orr_sim *s, watch_log *l)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (l->first_step[r + 1] - l->first_step[r] > most)
            most = l->first_step[r + 1] - l->first_step[r];
    uint32_t *ended = orr_alloc(most, sizeof *ended);
    for (uint32_t r = 0; ended && r < s->npu_count; r++)
        if (!l->asked || l->asked[r])
            find_causes(s, l, r, ended);
    orr_free(ended);
    return ended != NULL;
}

/* ---- who came to a collective after whom ---- */

static int by_start(const void *a, const void *b, void *all)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const watch_step *x = (const watch_step *)all + i, *y = (const watch_step *)all + k;
    return x->start != y->start ? (x->start < y->start ? -1 : 1) : i < k ? -1 : i > k;
}

static void chain(const watch_log *l, uint32_t *members, uint32_t count, watch_instance *c)
{
    for (uint32_t i = 1; i < count; i++)
        if (l->steps[members[i]].start < l->steps[members[i - 1]].start) {
            qsort_r(members, count, sizeof *members, by_start, l->steps);
            break;
        }
    c->last = RUN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        l->steps[members[i]].earlier = c->last;
        c->last = members[i];
    }
}

static bool chain_members(struct watch_record *w, const watch_log *l)
{
    uint32_t *first = orr_alloc(w->instance_count + 1, sizeof *first);
    uint32_t *members = orr_alloc(l->step_count, sizeof *members);
    const bool ok = first && members;
    size_t all = 0;
    for (size_t i = 0; ok && i < l->step_count; i++)
        if (l->steps[i].instance != RUN_NONE) {
            first[l->steps[i].instance + 1]++;
            all++;
        }
    for (size_t k = 0; ok && k < w->instance_count; k++)
        first[k + 1] += first[k];
    for (size_t i = l->step_count;
         ok && i-- > 0;) /* backwards, taking places from the end of each */
        if (l->steps[i].instance != RUN_NONE)
            members[--first[l->steps[i].instance + 1]] = (uint32_t)i;
    /* Now first[k + 1] is where those of k begin. */
    for (size_t k = 0; ok && k < w->instance_count; k++) {
        const size_t from = first[k + 1];
        size_t to = from;
        while (to < all && l->steps[members[to]].instance == k)
            to++;
        chain(l, members + from, (uint32_t)(to - from), &w->instances[k]);
    }
    orr_free(first);
    orr_free(members);
    return ok;
}

/* Phases of one step are in the order of chunks; a run that goes on knows them by their places. */
static int by_chunk(const void *a, const void *b)
{
    const watch_phase *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->dim < y->dim ? -1 : x->dim > y->dim;
}

static void sort_phases(watch_log *l)
{
    for (size_t i = 1; i < l->phase_count; i++)
        if (by_chunk(&l->phases[i - 1], &l->phases[i]) > 0) {
            qsort(l->phases, l->phase_count, sizeof *l->phases, by_chunk);
            return;
        }
}

/* ---- the whole ---- */

void watch_log_drop(struct watch_record *w)
{
    watch_log *l = &w->log;
    if (l->is_copy) {
        orr_free(l->steps);
        orr_free(l->phases);
    }
    orr_free(l->first_step);
    orr_free(l->asked);
    *l = (watch_log){0};
}

/* Does it have all that is asked for? */
static bool is_settled(const orr_sim *s, const watch_log *l, uint64_t mark, const bool *asked)
{
    if (!l->first_step || l->settled != mark)
        return false;
    for (uint32_t r = 0; l->asked && r < s->npu_count; r++)
        if (!l->asked[r] && (!asked || asked[r]))
            return false;
    return true;
}

static bool keep_asked(const orr_sim *s, watch_log *l, const bool *asked)
{
    if (!asked)
        return true;
    if (!(l->asked = orr_alloc(s->npu_count, sizeof *l->asked)))
        return false;
    memcpy(l->asked, asked, s->npu_count * sizeof *l->asked);
    return true;
}

/* A run whose classes have times of their own names collectives here. */
static bool forget_instances(const orr_sim *s)
{
    struct watch_record *w = s->watch;
    if (!s->fold)
        return true;
    orr_map_destroy(w->instance_by_key);
    w->instance_count = 0;
    return (w->instance_by_key = orr_map_create(0)) != NULL;
}

static bool write_folded(const orr_sim *s, watch_log *l, const bool *asked)
{
    watch_source src;
    l->is_copy = true;
    const bool ok = keep_asked(s, l, asked) && forget_instances(s) &&
                    (s->fold ? fold_open_log(s->fold, &src) : fold_lockstep_open_log(s, &src));
    if (!ok)
        return false;
    const bool is_written = watch_pick_steps(&src, asked, l);
    src.close(&src);
    return is_written;
}

bool watch_log_settle(const orr_sim *s, const bool *asked)
{
    struct watch_record *w = s->watch;
    watch_log *l = &w->log;
    const bool is_folded = s->fold || s->lockstep;
    /* It changes when the run has gone on: then the log is made anew. */
    const uint64_t mark = s->fold ? fold_events(s->fold) : w->step_count;
    if (is_settled(s, l, mark, asked))
        return true;
    watch_log_drop(w);
    if (!is_folded)
        *l = (watch_log){.steps = w->steps,
                         .step_count = w->step_count,
                         .phases = w->phases,
                         .phase_count = w->phase_count};
    bool ok = (!is_folded || write_folded(s, l, asked)) && count_steps(s, l) && sort_log(s, w, l);
    if (!is_folded) { /* also where that has failed: they may have moved */
        w->steps = l->steps;
        w->step_room = w->step_count;
    }
    ok = ok && find_all_causes(s, l) && chain_members(w, l);
    /* A run that goes on names phases by their places. */
    if (ok && s->finished == s->npu_count)
        sort_phases(l);
    l->settled = mark;
    if (!ok)
        watch_log_drop(w);
    return ok;
}

/* ---- who stands for whom ---- */

/* Places of a trace that name a peer or a group, one for each way of naming one. */
typedef struct met_list {
    uint32_t *places;
    size_t count, room;
    bool is_listed;
} met_list;

/* A number for how this place names whom it meets; false: it meets nobody. */
static bool way_of_naming(const orr_sim *s, uint32_t class_index, uint32_t node, uint64_t *way)
{
    const orr_columns *c = &s->graphs[class_index].t->columns;
    const uint8_t type = c->type[node];
    const bool is_group = type == ORR_NODE_COMM_COLL, is_send = type == ORR_NODE_COMM_SEND;
    if (!is_group && !is_send && type != ORR_NODE_COMM_RECV)
        return false;
    const uint32_t *slots = s->set->classes[class_index].slot[is_group  ? ORR_HOLE_PG_NAME
                                                              : is_send ? ORR_HOLE_COMM_DST
                                                                        : ORR_HOLE_COMM_SRC];
    const int64_t *peers = is_send ? c->comm_dst : c->comm_src;
    const uint64_t value = is_group ? (c->pg_name ? c->pg_name[node] : ORR_NO_NAME)
                           : peers  ? (uint32_t)peers[node]
                                    : 0;
    const bool is_slot = slots && slots[node];
    /* Group, send or receive, and by slot or by value: ways of different kinds never get the same
     * number. */
    *way = (is_slot ? slots[node] : value) << 3 | (uint64_t)is_slot << 2 | (is_group ? 2 : is_send);
    return true;
}

static bool list_met(const orr_sim *s, uint32_t class_index, met_list *l)
{
    const work_graph *g = &s->graphs[class_index];
    orr_map *seen = orr_map_create(0);
    bool ok = seen != NULL;
    l->is_listed = true;
    for (uint32_t p = 0; ok && p < g->count; p++) {
        uint64_t way;
        bool is_new;
        if (!way_of_naming(s, class_index, g->node[p], &way))
            continue;
        ok = orr_map_put(seen, way, 1, &is_new);
        if (ok && is_new && (ok = orr_grow(&l->places, &l->room, l->count + 1)))
            l->places[l->count++] = p;
    }
    orr_map_destroy(seen);
    return ok;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return orr_hash_mix(sum ^ 0xa0761d6478bd642fu, value + 0xe7037ed1a0b428dbu);
}

/* One for all collectives without a group, behind those of groups. */
static size_t group_met(const orr_sim *s, uint32_t rank, uint32_t place)
{
    /* A rank that was not simulated has no run_npu: one with what the question needs is made
     * here. */
    const run_npu probe = {
        .sim = (orr_sim *)s, .rank = rank, .graph = (work_graph *)run_graph_of(s, rank)};
    const cfg_group *g;
    return sys_find_group(&probe, place, &g) && g ? (size_t)(g - s->groups.groups)
                                                  : s->groups.count;
}

static bool is_collective(const orr_sim *s, uint32_t rank, uint32_t place)
{
    const work_graph *g = run_graph_of(s, rank);
    return g->t->columns.type[g->node[place]] == ORR_NODE_COMM_COLL;
}

static int64_t peer_at(const orr_sim *s, uint32_t rank, uint32_t place)
{
    const work_graph *g = run_graph_of(s, rank);
    const orr_columns *c = &g->t->columns;
    const bool is_send = c->type[g->node[place]] == ORR_NODE_COMM_SEND;
    return orr__set_value(s->set, rank, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC,
                          is_send ? c->comm_dst : c->comm_src, g->node[place]);
}

/* What the members of each group are, in any order. */
static void sum_groups(const orr_sim *s, const met_list *lists, const uint32_t *like, uint64_t *of)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const met_list *l = &lists[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < l->count; i++)
            if (is_collective(s, r, l->places[i]))
                /* A sum, which does not depend on the order of members: groups of like members in
                 * any order are alike. */
                of[group_met(s, r, l->places[i])] += mix(like[r], i);
    }
}

/* What a rank is, and whom it talks to. */
static uint64_t sum_of(const orr_sim *s,
                       uint32_t rank,
                       const met_list *l,
                       const uint32_t *like,
                       const uint64_t *of_group)
{
    uint64_t sum = like[rank];
    for (size_t i = 0; i < l->count; i++) {
        if (is_collective(s, rank, l->places[i])) {
            sum = mix(sum, of_group[group_met(s, rank, l->places[i])]);
            continue;
        }
        const int64_t peer = peer_at(s, rank, l->places[i]);
        sum = mix(sum, peer >= 0 && peer < s->npu_count ? like[peer] : RUN_NONE);
    }
    return sum;
}

/* Ranks are alike only if those they exchange messages with are, so that a pipeline of them is one,
 * and the members of their groups: times may be equal by chance where others came last. */
static bool refine(const orr_sim *s, const met_list *lists, uint32_t *like, size_t *count)
{
    orr_map *first = orr_map_create(0);
    uint64_t *sums = orr_alloc(s->npu_count, sizeof *sums);
    uint64_t *of_group = orr_alloc(s->groups.count + 1, sizeof *of_group);
    bool ok = first && sums && of_group;
    if (ok)
        sum_groups(s, lists, like, of_group);
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        sums[r] = sum_of(s, r, &lists[orr_set_class_of(s->set, r)], like, of_group);
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        const uint32_t to = orr_map_find(first, sums[r], r);
        like[r] = to;
        ok = to != r || orr_map_put(first, sums[r], r, NULL);
    }
    *count = ok ? orr_map_count(first) : 0;
    orr_free(sums);
    orr_free(of_group);
    orr_map_destroy(first);
    return ok;
}

static bool refine_all(const orr_sim *s, uint32_t *like)
{
    const uint32_t classes = orr_set_class_count(s->set);
    met_list *lists = orr_alloc(classes, sizeof *lists);
    size_t before = 0, now = 1;
    bool ok = lists != NULL;
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        ok = lists[k].is_listed || list_met(s, k, &lists[k]);
    }
    /* Classes only become finer, and a pass that makes none finer ends it: at most as many passes
     * as ranks, mostly two or three. */
    while (ok && now != before) {
        before = now;
        ok = refine(s, lists, like, &now);
    }
    for (uint32_t k = 0; lists && k < classes; k++)
        orr_free(lists[k].places);
    orr_free(lists);
    return ok;
}

static uint64_t count_shown(const orr_sim *s, const uint32_t *like)
{
    uint64_t nodes = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        nodes += like[r] == r ? run_graph_of(s, r)->count : 0;
    return nodes;
}

/* Those that were simulated together do the same things with the same others, if not at the same
 * times. */
static bool join_classes(watch_source *src, uint32_t *like, uint64_t *apart)
{
    uint32_t *first = orr_alloc(src->class_count, sizeof *first);
    if (!first)
        return false;
    memset(first, 0xff, src->class_count * sizeof *first);
    for (uint32_t r = 0; r < src->s->npu_count; r++) {
        uint32_t *of = &first[src->class_of[r]];
        *of = *of == RUN_NONE ? r : *of;
        like[r] = *of;
    }
    *apart = src->apart(src);
    orr_free(first);
    return true;
}

bool watch_find_alike(
    const orr_sim *s, const uint64_t *weight, uint64_t most, uint32_t *like, uint64_t *apart)
{
    watch_source src;
    *apart = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        like[r] = r;
    if (!s->fold && !s->lockstep)
        return true;
    if (!(s->fold ? fold_open_log(s->fold, &src) : fold_lockstep_open_log(s, &src)))
        return false;
    bool ok = src.find_equal(&src, like); /* the smallest of them */
    ok = ok && (src.is_even || refine_all(s, like));
    if (ok && src.apart && count_shown(s, like) > most)
        ok = join_classes(&src, like, apart);
    src.close(&src);
    uint32_t *chosen = ok ? orr_alloc(s->npu_count, sizeof *chosen) : NULL;
    ok = chosen != NULL;
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        chosen[r] = r;
    for (uint32_t r = 0; ok && weight && r < s->npu_count; r++)
        /* Of those that are alike the one with the largest weight is shown; equal weights leave the
         * smallest rank. */
        if (weight[r] > weight[chosen[like[r]]])
            chosen[like[r]] = r;
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        like[r] = chosen[like[r]];
    orr_free(chosen);
    return ok;
}

/* ---- whom to ask next ---- */

bool watch_ask_near(const orr_sim *s, uint32_t rank, uint32_t most, bool *asked)
{
    const uint32_t classes = orr_set_class_count(s->set);
    met_list *lists = orr_alloc(classes, sizeof *lists);
    uint32_t *queue = orr_alloc((size_t)most + 1, sizeof *queue);
    bool ok = lists && queue;
    uint32_t count = 0;
    if (ok)
        queue[count++] = rank;
    /* By breadth: the nearest peers first, until there are as many as may be shown. */
    for (uint32_t i = 0; ok && i < count && count <= most; i++) {
        const uint32_t k = orr_set_class_of(s->set, queue[i]);
        ok = lists[k].is_listed || list_met(s, k, &lists[k]);
        for (size_t j = 0; ok && j < lists[k].count && count <= most; j++) {
            const uint32_t place = lists[k].places[j];
            const int64_t peer =
                is_collective(s, queue[i], place) ? -1 : peer_at(s, queue[i], place);
            if (peer < 0 || peer >= s->npu_count || asked[peer])
                continue;
            asked[peer] = true;
            queue[count++] = (uint32_t)peer;
        }
    }
    for (uint32_t k = 0; lists && k < classes; k++)
        orr_free(lists[k].places);
    orr_free(lists);
    orr_free(queue);
    return ok;
}
