/* SPDX-License-Identifier: Apache-2.0 */
/* report_memory.c - memory over time: the counters of ranks that are called memory and count bytes.
 *
 * Of each group of like ranks the one with the highest peak is drawn.  A line on a screen needs no more than two
 * points a column, so samples are thinned; the least and the most of each part of the time stay, and so do peaks. */
#include "report_impl.h"

#include "base/text/text.h"

#include <stdlib.h>

enum { MOST_POINTS = 2000 };

/* ---- thinning ---- */

/* Puts in the least and the largest of part[0..count), in the order of time. */
static size_t keep_extremes(orr_sample *out, const orr_sample *part, size_t count)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < count; i++) {
        if (part[i].value < part[least].value)
            least = i;
        if (part[i].value > part[most].value)
            most = i;
    }
    const size_t a = least < most ? least : most, b = least < most ? most : least;
    const orr_sample first = part[a], second = part[b]; /* out may be where part is */
    out[0] = first;
    if (a == b)
        return 1;
    out[1] = second;
    return 2;
}

size_t orr__thin_samples(orr_sample *samples, size_t count, size_t most)
{
    if (count <= most || most < 4)
        return count;
    const size_t parts = (most - 1) / 2;
    const orr_ps start = samples[0].at;
    const double length = (double)(samples[count - 1].at - start) / (double)parts;
    const orr_sample last = samples[count - 1];
    size_t n = 0, from = 0;
    for (size_t k = 0; k < parts && from < count; k++) {
        const double end = (double)start + length * (double)(k + 1);
        size_t to = from;
        while (to < count && (k + 1 == parts || (double)samples[to].at < end))
            to++;
        if (to > from)
            n += keep_extremes(samples + n, samples + from, to - from);
        from = to;
    }
    if (samples[n - 1].at != last.at)
        samples[n++] = last;
    return n;
}

/* ---- which counters ---- */

static bool is_memory(const orr__study *s, const orr_counter *c)
{
    const orr_str name = orr_timeline_text(s->t, c->name);
    return c->rank != ORR_NO_RANK && orr_str_is(orr_timeline_text(s->t, c->unit), "bytes") &&
           name.len >= 6 && memcmp(name.ptr, "memory", 6) == 0;
}

static uint32_t place_of(const orr__study *s, uint32_t rank)
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

typedef struct candidate {
    int64_t *peak;     /* by counter */
    uint32_t *chosen;  /* by group: a counter, or ORR__NO_PLACE */
    bool *differs;     /* by group: not all peaks are the same */
    uint32_t *counted; /* by group: counters */
} candidate;

static void choose(const orr__study *s, candidate *c)
{
    const orr_timeline_parts *p = s->p;
    for (uint32_t k = 0; k < p->counter_count; k++) {
        const uint32_t place =
            is_memory(s, &p->counters[k]) ? place_of(s, p->counters[k].rank) : ORR__NO_PLACE;
        if (place == ORR__NO_PLACE)
            continue;
        const uint32_t group = s->ranks[place].group;
        const uint32_t best = c->chosen[group];
        c->counted[group]++;
        if (best != ORR__NO_PLACE)
            c->differs[group] |= c->peak[best] != c->peak[k];
        if (best == ORR__NO_PLACE || c->peak[k] > c->peak[best])
            c->chosen[group] = k;
    }
}

static int compare_samples(const void *a, const void *b)
{
    const orr_sample *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool add_series(orr__study *s, const candidate *c, uint32_t group)
{
    const orr_timeline_parts *p = s->p;
    const uint32_t counter = c->chosen[group];
    orr__memory_series *out = &s->series[s->series_count++];
    const orr__like_ranks *g = &s->groups[group];
    size_t count = 0;
    for (uint32_t i = 0; i < p->sample_count; i++)
        count += p->samples[i].counter == counter;
    out->points = orr_arena_new(s->arena, count, orr_sample);
    if (!out->points)
        return false;
    for (uint32_t i = 0; i < p->sample_count; i++)
        if (p->samples[i].counter == counter)
            out->points[out->count++] = p->samples[i];
    qsort(out->points, out->count, sizeof *out->points, compare_samples);
    out->count = orr__thin_samples(out->points, out->count, MOST_POINTS);
    out->peak = c->peak[counter];
    const char *several = g->count > 1 ? "ranks" : "rank";
    out->name = c->differs[group] || c->counted[group] < g->count
                    ? orr_arena_print(s->arena, "rank %u, the most of %s %s",
                                      p->counters[counter].rank, several, g->ranks)
                    : orr_arena_print(s->arena, "%s %s", several, g->ranks);
    return out->name != NULL;
}

orr_code orr__study_memory(orr__study *s)
{
    const orr_timeline_parts *p = s->p;
    candidate c = {.peak = orr_arena_new(s->arena, p->counter_count, int64_t),
                   .chosen = orr_arena_new(s->arena, s->group_count, uint32_t),
                   .differs = orr_arena_new(s->arena, s->group_count, bool),
                   .counted = orr_arena_new(s->arena, s->group_count, uint32_t)};
    s->series = orr_arena_new(s->arena, s->group_count, orr__memory_series);
    bool ok = c.peak && c.chosen && c.differs && c.counted && s->series;
    for (uint32_t i = 0; ok && i < p->sample_count; i++)
        if (p->samples[i].value > c.peak[p->samples[i].counter])
            c.peak[p->samples[i].counter] = p->samples[i].value;
    for (uint32_t k = 0; ok && k < s->group_count; k++)
        c.chosen[k] = ORR__NO_PLACE;
    if (ok)
        choose(s, &c);
    for (uint32_t k = 0; ok && k < s->group_count; k++)
        if (c.chosen[k] != ORR__NO_PLACE)
            ok = add_series(s, &c, k);
    return ok ? ORR_OK : orr_no_memory(s->err);
}
