/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_slice.c - a part of a timeline as a timeline: some ranks, some of the time.
 *
 * Spans that reach into the window are kept whole, so that nothing looks shorter than it was;
 * arrows where both of their ends are kept.  What belongs to no rank stays.  Cost: linear; four
 * bytes a span beside the new timeline. */
#include <orrery/timeline.h>

#include "base/memory/memory.h"

#define NONE UINT32_MAX

typedef struct slicer {
    const orr_timeline *from;
    const orr_timeline_parts *p;
    const orr_timeline_window *window;
    orr_timeline *to;
    uint32_t *tracks, *spans, *counters; /* old number -> new; NONE: not kept */
} slicer;

static bool has_rank(const orr_timeline_window *w, uint32_t rank)
{
    return rank == ORR_NO_RANK || !w->has_ranks || (rank >= w->first_rank && rank <= w->last_rank);
}

static bool has_time(const orr_timeline_window *w, orr_ps start, orr_ps end)
{
    return (!w->has_to || start < w->to) && (!w->has_from || end >= w->from);
}

static orr_code copy_text(slicer *s, uint32_t text, uint32_t *out, orr_error *err)
{
    return orr_timeline_add_text(s->to, orr_timeline_text(s->from, text), out, err);
}

static orr_code copy_tracks(slicer *s, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < s->p->track_count && !code; k++) {
        const orr_track *t = &s->p->tracks[k];
        s->tracks[k] = NONE;
        if (has_rank(s->window, t->rank))
            code = orr_timeline_add_track(s->to, t->rank, orr_timeline_text(s->from, t->name),
                                          &s->tracks[k], err);
    }
    return code;
}

static orr_code copy_span(slicer *s, uint32_t i, orr_error *err)
{
    orr_timespan span = s->p->spans[i];
    s->spans[i] = NONE;
    if (s->tracks[span.track] == NONE || !has_time(s->window, span.start, span.end))
        return ORR_OK;
    span.track = s->tracks[span.track];
    orr_code code = copy_text(s, span.name, &span.name, err);
    if (!code)
        code = copy_text(s, span.group, &span.group, err);
    return code ? code : orr_timeline_add_span(s->to, &span, &s->spans[i], err);
}

static orr_code copy_arrow(slicer *s, const orr_arrow *a, orr_error *err)
{
    orr_arrow arrow = *a;
    if (s->spans[a->from] == NONE || s->spans[a->to] == NONE)
        return ORR_OK;
    arrow.from = s->spans[a->from];
    arrow.to = s->spans[a->to];
    const orr_code code = copy_text(s, a->name, &arrow.name, err);
    return code ? code : orr_timeline_add_arrow(s->to, &arrow, err);
}

static orr_code copy_counters(slicer *s, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < s->p->counter_count && !code; k++) {
        const orr_counter *c = &s->p->counters[k];
        s->counters[k] = NONE;
        if (has_rank(s->window, c->rank))
            code =
                orr_timeline_add_counter(s->to, c->rank, orr_timeline_text(s->from, c->name),
                                         orr_timeline_text(s->from, c->unit), &s->counters[k], err);
    }
    return code;
}

static orr_code copy_sample(slicer *s, const orr_sample *v, orr_error *err)
{
    if (s->counters[v->counter] == NONE || !has_time(s->window, v->at, v->at))
        return ORR_OK;
    return orr_timeline_add_sample(s->to, s->counters[v->counter], v->at, v->value, err);
}

static orr_code copy_alike(slicer *s, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < s->p->alike_count && !code; r++)
        if (s->p->alike[r] != r && has_rank(s->window, r) && has_rank(s->window, s->p->alike[r]))
            code = orr_timeline_add_alike(s->to, s->p->alike[r], r, err);
    return code;
}

static orr_code copy_all(slicer *s, orr_error *err)
{
    const orr_timeline_parts *p = s->p;
    orr_code code = copy_tracks(s, err);
    for (uint32_t i = 0; i < p->span_count && !code; i++)
        code = copy_span(s, i, err);
    for (uint32_t i = 0; i < p->arrow_count && !code; i++)
        code = copy_arrow(s, &p->arrows[i], err);
    if (!code)
        code = copy_counters(s, err);
    for (uint32_t i = 0; i < p->sample_count && !code; i++)
        code = copy_sample(s, &p->samples[i], err);
    for (uint32_t i = 0; i < p->note_count && !code; i++)
        code = orr_timeline_add_note(s->to, orr_timeline_text(s->from, p->notes[i].key),
                                     orr_timeline_text(s->from, p->notes[i].value), err);
    if (!code)
        code = copy_alike(s, err);
    return code ? code : orr_timeline_seal(s->to, err);
}

orr_code orr_timeline_slice(const orr_timeline *t,
                            const orr_timeline_window *window,
                            orr_timeline **out,
                            orr_error *err)
{
    slicer s = {.from = t, .p = orr_timeline_look(t), .window = window};
    *out = NULL;
    if (!s.p->first)
        return orr_fail(err, ORR_EUSAGE, NULL, "the timeline is not sealed");
    s.tracks = orr_alloc((size_t)s.p->track_count + 1, sizeof *s.tracks);
    s.spans = orr_alloc((size_t)s.p->span_count + 1, sizeof *s.spans);
    s.counters = orr_alloc((size_t)s.p->counter_count + 1, sizeof *s.counters);
    orr_code code = s.tracks && s.spans && s.counters ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = orr_timeline_create(&s.to, err);
    if (!code)
        code = copy_all(&s, err);
    if (code)
        orr_timeline_destroy(s.to);
    else
        *out = s.to;
    orr_free(s.tracks);
    orr_free(s.spans);
    orr_free(s.counters);
    return code;
}
