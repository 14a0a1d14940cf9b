/* SPDX-License-Identifier: Apache-2.0 */
/* report_groups.c - ranks that are alike, so that a job of thousands is a few rows.
 *
 * A rank joins the first group whose first rank is of its stage and has the same figures up to a tolerance, a share
 * of the whole time: 0.1 % at first, and twice that as long as there are more groups than anyone reads.  Ranks are
 * taken in ascending order, so the same timeline gives the same groups. */
#include "info_impl.h"
#include "report_impl.h"

enum { MOST_GROUPS = 64 };

static bool is_near(orr_ps a, orr_ps b, orr_ps tolerance)
{
    return (a > b ? a - b : b - a) <= tolerance;
}

static bool is_like(const orr__rank_times *a, const orr__rank_times *b, orr_ps tolerance)
{
    return a->stage == b->stage && is_near(a->compute, b->compute, tolerance) &&
           is_near(a->exposed, b->exposed, tolerance) &&
           is_near(a->overlapped, b->overlapped, tolerance) &&
           is_near(a->memory, b->memory, tolerance) && is_near(a->host, b->host, tolerance);
}

static void add_to(orr__time_sums *sum, const orr__rank_times *r)
{
    sum->compute += r->compute;
    sum->exposed += r->exposed;
    sum->overlapped += r->overlapped;
    sum->memory += r->memory;
    sum->host += r->host;
    sum->idle += r->idle;
}

/* False: more groups than there may be. */
static bool share_out(orr__study *s, orr_ps tolerance, uint32_t most)
{
    s->group_count = 0;
    for (uint32_t place = 0; place < s->rank_count; place++) {
        uint32_t k = 0;
        while (k < s->group_count &&
               !is_like(&s->ranks[s->groups[k].first], &s->ranks[place], tolerance))
            k++;
        if (k == most)
            return false;
        if (k == s->group_count)
            s->groups[s->group_count++] =
                (orr__like_ranks){.first = place, .stage = s->ranks[place].stage};
        s->ranks[place].group = k;
    }
    return true;
}

static bool describe(orr__study *s)
{
    uint32_t *list = orr_arena_new(s->arena, s->rank_count, uint32_t);
    if (!list)
        return false;
    for (uint32_t k = 0; k < s->group_count; k++) {
        orr__like_ranks *g = &s->groups[k];
        for (uint32_t place = g->first; place < s->rank_count; place++) {
            if (s->ranks[place].group != k)
                continue;
            list[g->count++] = s->ranks[place].rank;
            add_to(&g->sum, &s->ranks[place]);
        }
        if (!(g->ranks = orr__rank_ranges(s->arena, list, g->count)))
            return false;
    }
    return true;
}

static uint32_t place_of_rank(const orr__study *s, uint32_t rank)
{
    uint32_t low = 0, high = s->rank_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->ranks[mid].rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->rank_count && s->ranks[low].rank == rank ? low : ORR__NO_PLACE;
}

/* The one of a group that is most of the critical path stands for it, so that the path can be seen. */
static bool choose_shown(orr__study *s)
{
    uint64_t *on_path = orr_arena_new(s->arena, s->rank_count, uint64_t);
    if (!on_path)
        return false;
    for (size_t i = 0; i < s->run->step_count; i++) {
        const uint32_t place = place_of_rank(s, s->run->steps[i].rank);
        if (place != ORR__NO_PLACE)
            on_path[place] += s->run->steps[i].to_ns - s->run->steps[i].from_ns;
    }
    for (uint32_t k = 0; k < s->group_count; k++)
        s->groups[k].shown = s->groups[k].first;
    for (uint32_t place = 0; place < s->rank_count; place++) {
        orr__like_ranks *g = &s->groups[s->ranks[place].group];
        if (on_path[place] > on_path[g->shown])
            g->shown = place;
    }
    return true;
}

orr_code orr__study_groups(orr__study *s)
{
    const uint32_t most = s->stage_count > MOST_GROUPS ? s->stage_count : MOST_GROUPS;
    s->tolerance = 0.001;
    s->groups = orr_arena_new(s->arena, most, orr__like_ranks);
    if (!s->groups)
        return orr_no_memory(s->err);
    while (!share_out(s, (orr_ps)(s->tolerance * (double)orr__total(s)), most))
        s->tolerance *=
            2; /* at the latest when everything is within it, one group a stage is left */
    return describe(s) && choose_shown(s) ? ORR_OK : orr_no_memory(s->err);
}
