/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - see timeline.h.
 *
 * Growing arrays, interned texts.  Sealing puts the spans of each track in order of (start, longer
 * first, number): a counting sort by track, then a sort of the tracks that are not in order yet.
 * Spans of a simulation arrive by start, so for them sealing is linear. */
#include <orrery/timeline.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "base/text/text.h"

#include <stdlib.h>

struct orr_timeline {
    orr_intern *texts;
    orr_track *tracks;
    orr_timespan *spans;
    orr_arrow *arrows;
    orr_counter *counters;
    orr_sample *samples;
    orr_timeline_note *notes;
    size_t track_room, span_room, arrow_room, counter_room, sample_room, note_room;
    uint32_t *last_sample; /* by counter; NONE: none yet */
    size_t last_room;
    uint32_t *first, *order;
    uint32_t *alike;
    size_t alike_room;
    orr_timeline_parts parts;
    bool is_sealed;
};

#define NONE UINT32_MAX

const char *orr_span_kind_name(orr_span_kind kind)
{
    static const char *const names[ORR_SPAN_KINDS] = {"other", "host",    "compute",    "memory",
                                                      "send",  "receive", "collective", "phase"};
    return kind < ORR_SPAN_KINDS ? names[kind] : NULL;
}

orr_code orr_timeline_create(orr_timeline **out, orr_error *err)
{
    orr_timeline *t = orr_alloc(1, sizeof *t);
    uint32_t empty; /* text 0, so that an omitted field means none */
    *out = NULL;
    if (!t || !(t->texts = orr_intern_create()) ||
        !orr_intern_add(t->texts, (orr_str){"", 0}, &empty)) {
        orr_timeline_destroy(t);
        return orr_no_memory(err);
    }
    *out = t;
    return ORR_OK;
}

void orr_timeline_destroy(orr_timeline *t)
{
    if (!t)
        return;
    orr_intern_destroy(t->texts);
    orr_free(t->tracks);
    orr_free(t->spans);
    orr_free(t->arrows);
    orr_free(t->counters);
    orr_free(t->samples);
    orr_free(t->notes);
    orr_free(t->last_sample);
    orr_free(t->first);
    orr_free(t->order);
    orr_free(t->alike);
    orr_free(t);
}

/* ---- adding ---- */

static orr_code misuse(orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "timeline: %s", what);
}

static orr_code check_open(const orr_timeline *t, uint32_t count, orr_error *err)
{
    if (t->is_sealed)
        return misuse(err, "it is sealed, nothing can be added");
    return count == NONE - 1 ? misuse(err, "more than 4294967294 items of one kind") : ORR_OK;
}

static bool is_text(const orr_timeline *t, uint32_t number)
{
    return number < orr_intern_count(t->texts);
}

static void give(uint32_t *out, uint32_t number)
{
    if (out)
        *out = number;
}

orr_code orr_timeline_add_text(orr_timeline *t, orr_str text, uint32_t *number_out, orr_error *err)
{
    uint32_t number;
    const orr_code code = check_open(t, orr_intern_count(t->texts), err);
    if (code)
        return code;
    if (!orr_intern_add(t->texts, text, &number))
        return orr_no_memory(err);
    give(number_out, number);
    return ORR_OK;
}

orr_code orr_timeline_add_track(
    orr_timeline *t, uint32_t rank, orr_str name, uint32_t *number_out, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    orr_track track = {.rank = rank};
    orr_code code = check_open(t, p->track_count, err);
    if (code || (code = orr_timeline_add_text(t, name, &track.name, err)))
        return code;
    if (!orr_grow(&t->tracks, &t->track_room, (size_t)p->track_count + 1))
        return orr_no_memory(err);
    t->tracks[p->track_count] = track;
    give(number_out, p->track_count++);
    return ORR_OK;
}

static orr_code check_span(const orr_timeline *t, const orr_timespan *s, orr_error *err)
{
    if (s->track >= t->parts.track_count)
        return misuse(err, "a span on a track that is not there");
    if (s->end < s->start)
        return misuse(err, "a span that ends before it starts");
    if (!is_text(t, s->name) || !is_text(t, s->group))
        return misuse(err, "a span with a text that is not there");
    if (s->has & ORR_SPAN_HAS_FLOWS && (s->flows < s->start || s->flows > s->end))
        return misuse(err, "a span whose data flows outside of it");
    return s->kind < ORR_SPAN_KINDS ? ORR_OK : misuse(err, "a span of a kind that is not there");
}

orr_code orr_timeline_add_span(orr_timeline *t,
                               const orr_timespan *span,
                               uint32_t *number_out,
                               orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    orr_code code = check_open(t, p->span_count, err);
    if (code || (code = check_span(t, span, err)))
        return code;
    if (!orr_grow(&t->spans, &t->span_room, (size_t)p->span_count + 1))
        return orr_no_memory(err);
    t->spans[p->span_count] = *span;
    give(number_out, p->span_count++);
    return ORR_OK;
}

orr_code orr_timeline_add_arrow(orr_timeline *t, const orr_arrow *arrow, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    const orr_code code = check_open(t, p->arrow_count, err);
    if (code)
        return code;
    if (arrow->from >= p->span_count || arrow->to >= p->span_count)
        return misuse(err, "an arrow between spans that are not there");
    if (!is_text(t, arrow->name))
        return misuse(err, "an arrow with a text that is not there");
    if (arrow->arrived < arrow->left)
        return misuse(err, "an arrow that arrives before it leaves");
    if (!orr_grow(&t->arrows, &t->arrow_room, (size_t)p->arrow_count + 1))
        return orr_no_memory(err);
    t->arrows[p->arrow_count++] = *arrow;
    return ORR_OK;
}

orr_code orr_timeline_add_counter(orr_timeline *t,
                                  uint32_t rank,
                                  orr_str name,
                                  orr_str unit,
                                  uint32_t *number_out,
                                  orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    orr_counter counter = {.rank = rank};
    orr_code code = check_open(t, p->counter_count, err);
    if (code || (code = orr_timeline_add_text(t, name, &counter.name, err)) ||
        (code = orr_timeline_add_text(t, unit, &counter.unit, err)))
        return code;
    const size_t need = (size_t)p->counter_count + 1;
    if (!orr_grow(&t->counters, &t->counter_room, need) ||
        !orr_grow(&t->last_sample, &t->last_room, need))
        return orr_no_memory(err);
    t->last_sample[p->counter_count] = NONE;
    t->counters[p->counter_count] = counter;
    give(number_out, p->counter_count++);
    return ORR_OK;
}

orr_code orr_timeline_add_sample(
    orr_timeline *t, uint32_t counter, orr_ps at, int64_t value, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    const orr_code code = check_open(t, p->sample_count, err);
    if (code)
        return code;
    if (counter >= p->counter_count)
        return misuse(err, "a sample of a counter that is not there");
    const uint32_t last = t->last_sample[counter];
    if (last != NONE && t->samples[last].at == at) {
        t->samples[last].value = value;
        return ORR_OK;
    }
    if (!orr_grow(&t->samples, &t->sample_room, (size_t)p->sample_count + 1))
        return orr_no_memory(err);
    t->last_sample[counter] = p->sample_count;
    t->samples[p->sample_count++] = (orr_sample){at, counter, value};
    return ORR_OK;
}

orr_code orr_timeline_add_note(orr_timeline *t, orr_str key, orr_str value, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    orr_timeline_note note;
    orr_code code = check_open(t, p->note_count, err);
    if (code || (code = orr_timeline_add_text(t, key, &note.key, err)) ||
        (code = orr_timeline_add_text(t, value, &note.value, err)))
        return code;
    if (!orr_grow(&t->notes, &t->note_room, (size_t)p->note_count + 1))
        return orr_no_memory(err);
    t->notes[p->note_count++] = note;
    return ORR_OK;
}

orr_code orr_timeline_add_alike(orr_timeline *t, uint32_t shown, uint32_t rank, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    const uint32_t last = shown > rank ? shown : rank;
    const orr_code code = check_open(t, p->alike_count, err);
    if (code)
        return code;
    if (last >= NONE - 1)
        return misuse(err, "a rank that is not there");
    if (!orr_grow(&t->alike, &t->alike_room, (size_t)last + 1))
        return orr_no_memory(err);
    for (; p->alike_count <= last; p->alike_count++)
        t->alike[p->alike_count] = p->alike_count;
    t->alike[rank] = shown;
    return ORR_OK;
}

/* ---- sealing ---- */

static int compare_spans(const void *a, const void *b, void *spans)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const orr_timespan *x = (const orr_timespan *)spans + i, *y = (const orr_timespan *)spans + k;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return i < k ? -1 : i > k;
}

static void sort_track(const orr_timeline *t, uint32_t *order, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++)
        if (compare_spans(&order[k - 1], &order[k], t->spans) > 0) {
            qsort_r(order, count, sizeof *order, compare_spans, t->spans);
            return;
        }
}

static void put_in_order(orr_timeline *t)
{
    const orr_timeline_parts *p = &t->parts;
    for (uint32_t i = 0; i < p->span_count; i++)
        t->first[t->spans[i].track + 1]++;
    for (uint32_t k = 0; k < p->track_count; k++)
        t->first[k + 1] += t->first[k];
    for (uint32_t i = p->span_count; i-- > 0;) /* backwards, filling each from its end */
        t->order[--t->first[t->spans[i].track + 1]] = i;
    /* Now first[k + 1] is the start of track k: shift by one. */
    for (uint32_t k = 0; k < p->track_count; k++)
        t->first[k] = t->first[k + 1];
    t->first[p->track_count] = p->span_count;
    for (uint32_t k = 0; k < p->track_count; k++)
        sort_track(t, t->order + t->first[k], t->first[k + 1] - t->first[k]);
}

static void widen(orr_timeline_parts *p, orr_ps from, orr_ps to, bool *is_first)
{
    if (*is_first || from < p->start)
        p->start = from;
    if (*is_first || to > p->end)
        p->end = to;
    *is_first = false;
}

static void measure(orr_timeline_parts *p)
{
    bool is_first = true;
    for (uint32_t i = 0; i < p->span_count; i++)
        widen(p, p->spans[i].start, p->spans[i].end, &is_first);
    for (uint32_t i = 0; i < p->sample_count; i++)
        widen(p, p->samples[i].at, p->samples[i].at, &is_first);
}

/* Files may contain anything: a rank with tracks represents itself, and a representative is not
 * itself represented. */
static void settle_alike(orr_timeline *t)
{
    const orr_timeline_parts *p = &t->parts;
    for (uint32_t k = 0; k < p->track_count; k++)
        if (t->tracks[k].rank < p->alike_count)
            t->alike[t->tracks[k].rank] = t->tracks[k].rank;
    for (uint32_t r = 0; r < p->alike_count; r++)
        if (t->alike[t->alike[r]] != t->alike[r])
            t->alike[r] = r;
}

orr_code orr_timeline_seal(orr_timeline *t, orr_error *err)
{
    orr_timeline_parts *p = &t->parts;
    if (t->is_sealed)
        return ORR_OK;
    t->first = orr_alloc((size_t)p->track_count + 1, sizeof *t->first);
    t->order = orr_alloc(p->span_count, sizeof *t->order);
    if (!t->first || !t->order) {
        orr_free(t->first);
        orr_free(t->order);
        t->first = t->order = NULL;
        return orr_no_memory(err);
    }
    put_in_order(t);
    settle_alike(t);
    p->tracks = t->tracks;
    p->spans = t->spans;
    p->first = t->first;
    p->order = t->order;
    p->arrows = t->arrows;
    p->counters = t->counters;
    p->samples = t->samples;
    p->notes = t->notes;
    p->alike = t->alike;
    measure(p);
    t->is_sealed = true;
    return ORR_OK;
}

const orr_timeline_parts *orr_timeline_view(const orr_timeline *t)
{
    return &t->parts;
}

bool orr_timeline_is_simulated(const orr_timeline *t)
{
    const orr_timeline_parts *p = orr_timeline_view(t);
    for (uint32_t i = 0; i < p->note_count; i++)
        if (orr_str_is(orr_timeline_text(t, p->notes[i].key), "network_model"))
            return true;
    return false;
}

orr_str orr_timeline_text(const orr_timeline *t, uint32_t number)
{
    return orr_intern_get(t->texts, number);
}

/* ---- A part of a timeline: some ranks, some of the time.
 *
 * Spans that overlap the window are kept whole, so that nothing looks shorter than it was; arrows
 * if both ends are kept.  Global items stay.  Cost: linear; four bytes per span beside the new
 * timeline. */

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
    slicer s = {.from = t, .p = orr_timeline_view(t), .window = window};
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
