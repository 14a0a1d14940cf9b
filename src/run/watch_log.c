/* SPDX-License-Identifier: Apache-2.0 */
/* watch_log.c - the log of steps as it is read: rank by rank, each rank's steps in the order in which they began.
 *
 * A run writes its log as events come.  In which order ranks do things within one tick is no fact about the machine, and
 * a folded run does not know it (fold/fold.h): so it is forgotten here.  Members of a collective are in the order in
 * which they came; those of one tick by rank.
 *
 * Cost: linear in the steps, but for members that did not come in the order of their ranks, which are sorted. */
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

static uint32_t moved(const uint32_t *to, uint32_t step)
{
    return step == RUN_NONE ? RUN_NONE : to[step];
}

/* The steps change places: so does whoever names one. */
static bool sort_by_rank(const orr_sim *s, struct watch_record *w)
{
    uint32_t *to = orr_alloc(w->step_count, sizeof *to);
    uint32_t *next = orr_alloc(s->npu_count, sizeof *next);
    watch_step *steps = orr_alloc(w->step_count, sizeof *steps);
    const bool ok = to && next && steps;
    if (ok) {
        memcpy(next, w->first_step, s->npu_count * sizeof *next);
        for (size_t i = 0; i < w->step_count; i++)
            to[i] = next[w->steps[i].rank]++;
        for (size_t i = 0; i < w->step_count; i++) {
            steps[to[i]] = w->steps[i];
            steps[to[i]].cause = moved(to, w->steps[i].cause);
        }
        for (size_t i = 0; i < w->step_count; i++)
            w->ranks[steps[i].rank].step_of[steps[i].place] = (uint32_t)i;
        for (uint32_t r = 0; r < s->npu_count; r++)
            w->ranks[r].last_ended = moved(to, w->ranks[r].last_ended);
        for (size_t i = 0; i < w->phase_count; i++)
            w->phases[i].step = to[w->phases[i].step];
        orr_free(w->steps);
        w->steps = steps;
        w->step_room = w->step_count;
    } else {
        orr_free(steps);
    }
    orr_free(to);
    orr_free(next);
    return ok;
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
    if (!count_steps(s, w) || (!s->fold && !s->lockstep && !sort_by_rank(s, w)) ||
        !chain_members(w))
        return false;
    w->settled = mark;
    return true;
}
