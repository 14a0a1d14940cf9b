/* SPDX-License-Identifier: Apache-2.0 */
/* watch_log.c - the log of steps as it is read: rank by rank, each rank's steps in the order in which they began.
 *
 * A run writes its log as events come.  In which order things happen within one tick is no fact about the machine, and a
 * folded run does not know it (fold/fold.h): so it is forgotten here.  Steps of one tick are in the order of their
 * nodes; members of a collective are in the order in which they came, those of one tick by rank; and what released a
 * step is the step of its rank that ended at this moment: a parent, before one of the same slot, before any other.
 *
 * Cost: linear in the steps, but for those that did not come in order, which are sorted. */
#include "watch.h"

#include "fold/fold.h"

#include <stdlib.h>

static bool count_steps(const orr_sim *s, struct watch_record *w)
{
    orr_free(w->first_step);
    w->first_step = orr_alloc((size_t)s->npu_count + 1, sizeof *w->first_step);
    if (!w->first_step)
        return false;
    for (size_t i = 0; i < w->step_count; i++)
        w->first_step[w->steps[i].rank + 1]++;
    for (uint32_t r = 0; r < s->npu_count; r++)
        w->first_step[r + 1] += w->first_step[r];
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

static void sort_steps(struct watch_record *w, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (by_start_and_place(&order[i - 1], &order[i], w->steps) > 0) {
            qsort_r(order, count, sizeof *order, by_start_and_place, w->steps);
            return;
        }
}

/* The steps change places: so does whoever names one. */
static bool sort_log(const orr_sim *s, struct watch_record *w)
{
    uint32_t *order = orr_alloc(w->step_count, sizeof *order); /* which step comes here */
    uint32_t *to = orr_alloc(w->step_count, sizeof *to);
    uint32_t *next = orr_alloc(s->npu_count, sizeof *next);
    watch_step *steps = orr_alloc(w->step_count, sizeof *steps);
    const bool ok = order && to && next && steps;
    if (ok) {
        memcpy(next, w->first_step, s->npu_count * sizeof *next);
        for (size_t i = 0; i < w->step_count; i++)
            order[next[w->steps[i].rank]++] = (uint32_t)i;
        for (uint32_t r = 0; r < s->npu_count; r++)
            sort_steps(w, order + w->first_step[r], w->first_step[r + 1] - w->first_step[r]);
        for (size_t i = 0; i < w->step_count; i++) {
            to[order[i]] = (uint32_t)i;
            steps[i] = w->steps[order[i]];
        }
        for (size_t i = 0; !s->fold && i < w->step_count; i++)
            w->ranks[steps[i].rank].step_of[steps[i].place] = (uint32_t)i;
        for (size_t i = 0; i < w->phase_count; i++)
            w->phases[i].step = to[w->phases[i].step];
        orr_free(w->steps);
        w->steps = steps;
        w->step_room = w->step_count;
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

/* Steps come in the order of their starts and end in nearly the same order: most stay where they are, and moving the
 * others down is cheaper than a sort, unless there are many. */
static void sort_by_end(watch_step *steps, uint32_t *ended, uint32_t count)
{
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
static unsigned fit(const struct watch_record *w,
                    const work_graph *g,
                    uint32_t step,
                    uint32_t before)
{
    const watch_step *me = &w->steps[step], *other = &w->steps[before];
    const bool has_length = other->start < other->end;
    if (before == step)
        return 0;
    if (is_parent(g, other->place, me->place))
        return has_length ? 5 : 4;
    if (!has_length)
        return before < step;
    return g->slot[other->place] == g->slot[me->place] ? 3 : 2;
}

static void find_causes(const orr_sim *s, struct watch_record *w, uint32_t rank, uint32_t *ended)
{
    const uint32_t first = w->first_step[rank], count = w->first_step[rank + 1] - first;
    const work_graph *g = run_graph_of(s, rank);
    uint32_t from = 0; /* the first that ended at this time or later */
    for (uint32_t i = 0; i < count; i++)
        ended[i] = first + i;
    sort_by_end(w->steps, ended, count);
    for (uint32_t i = 0; i < count; i++) {
        watch_step *me = &w->steps[first + i];
        unsigned best = 0;
        me->cause = RUN_NONE;
        while (from < count && w->steps[ended[from]].end < me->start)
            from++;
        for (uint32_t k = from; k < count && w->steps[ended[k]].end == me->start; k++) {
            const unsigned how = fit(w, g, first + i, ended[k]);
            if (how > best) {
                best = how;
                me->cause = ended[k];
            }
        }
    }
}

static bool find_all_causes(const orr_sim *s, struct watch_record *w)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (w->first_step[r + 1] - w->first_step[r] > most)
            most = w->first_step[r + 1] - w->first_step[r];
    uint32_t *ended = orr_alloc(most, sizeof *ended);
    for (uint32_t r = 0; ended && r < s->npu_count; r++)
        find_causes(s, w, r, ended);
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

static void chain(struct watch_record *w, uint32_t *members, uint32_t count, watch_instance *c)
{
    for (uint32_t i = 1; i < count; i++)
        if (w->steps[members[i]].start < w->steps[members[i - 1]].start) {
            qsort_r(members, count, sizeof *members, by_start, w->steps);
            break;
        }
    c->last = RUN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        w->steps[members[i]].earlier = c->last;
        c->last = members[i];
    }
}

static bool chain_members(struct watch_record *w)
{
    uint32_t *first = orr_alloc(w->instance_count + 1, sizeof *first);
    uint32_t *members = orr_alloc(w->step_count, sizeof *members);
    const bool ok = first && members;
    size_t all = 0;
    for (size_t i = 0; ok && i < w->step_count; i++)
        if (w->steps[i].instance != RUN_NONE) {
            first[w->steps[i].instance + 1]++;
            all++;
        }
    for (size_t k = 0; ok && k < w->instance_count; k++)
        first[k + 1] += first[k];
    for (size_t i = w->step_count;
         ok && i-- > 0;) /* backwards, taking places from the end of each */
        if (w->steps[i].instance != RUN_NONE)
            members[--first[w->steps[i].instance + 1]] = (uint32_t)i;
    /* Now first[k + 1] is where those of k begin. */
    for (size_t k = 0; ok && k < w->instance_count; k++) {
        const size_t from = first[k + 1];
        size_t to = from;
        while (to < all && w->steps[members[to]].instance == k)
            to++;
        chain(w, members + from, (uint32_t)(to - from), &w->instances[k]);
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

static void sort_phases(struct watch_record *w)
{
    for (size_t i = 1; i < w->phase_count; i++)
        if (by_chunk(&w->phases[i - 1], &w->phases[i]) > 0) {
            qsort(w->phases, w->phase_count, sizeof *w->phases, by_chunk);
            return;
        }
}

bool watch_log_settle(const orr_sim *s)
{
    struct watch_record *w = s->watch;
    const uint64_t mark = s->fold ? fold_events(s->fold) : w->step_count;
    if (w->first_step && (w->settled == mark || s->lockstep))
        return true;
    if (s->fold && !fold_write_log(s->fold))
        return false;
    if (s->lockstep && !fold_lockstep_write_log(s))
        return false;
    if (!count_steps(s, w) || !sort_log(s, w) || !find_all_causes(s, w) || !chain_members(w))
        return false;
    if (s->finished == s->npu_count)
        sort_phases(w);
    w->settled = mark;
    return true;
}
