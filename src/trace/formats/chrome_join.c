/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_join.c - what was read from a file of trace events, into the timeline.
 *
 * Only now all names are known: which process is which rank, what a thread is called, and between
 * which spans an arrow goes.  Our own files say the last; in others an end of an arrow belongs to
 * the innermost span of its thread that it lies in. */
#include "chrome_trace_impl.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_BACK = 1000 };

/* ---- ranks ---- */

static bool are_ranks(const chrome_file *c)
{
    for (size_t i = 0; i < c->process_count; i++)
        if (c->processes[i].number >= ORR_CHROME_TRACE_RANKS)
            return false;
    return true;
}

static orr_code set_ranks(chrome_file *c, uint32_t rank_otherwise)
{
    const bool are_numbers = are_ranks(c);
    const uint32_t only = c->has_rank ? c->rank : rank_otherwise;
    for (size_t i = 0; i < c->process_count; i++) {
        chrome_process *p = &c->processes[i];
        const orr_str name = orr_timeline_text(c->t, p->name);
        if (c->is_ours && orr_str_is(name, "all ranks"))
            p->rank = ORR_NO_RANK;
        else if (c->is_kineto && !c->is_ours)
            p->rank = only;
        else
            p->rank = are_numbers ? (uint32_t)p->number : (uint32_t)i;
    }
    if ((c->is_kineto && only >= ORR_CHROME_TRACE_RANKS) ||
        (!c->is_kineto && c->process_count > ORR_CHROME_TRACE_RANKS)) {
        const orr_where where = orr_where_byte(c->path, ORR_NO_BYTE);
        return orr_fail(c->err, ORR_EINPUT, &where, "a rank above %d", ORR_CHROME_TRACE_RANKS - 1);
    }
    return ORR_OK;
}

/* ---- ranks that others stand for ---- */

static bool take_number(orr_str *at, uint32_t *out)
{
    uint64_t v = 0;
    size_t n = 0;
    for (; n < at->len && at->ptr[n] >= '0' && at->ptr[n] <= '9'; n++)
        v = v < ORR_CHROME_TRACE_RANKS ? v * 10 + (uint64_t)(at->ptr[n] - '0') : v;
    *at = (orr_str){at->ptr + n, at->len - n};
    *out = (uint32_t)v;
    return n > 0 && v < ORR_CHROME_TRACE_RANKS;
}

static bool take_sign(orr_str *at, char sign)
{
    if (at->len == 0 || at->ptr[0] != sign)
        return false;
    *at = (orr_str){at->ptr + 1, at->len - 1};
    return true;
}

/* "ranks 0-7,16-64/8": what is not of that form says nothing, nor do more ranks than there can be. */
static orr_code add_alike(chrome_file *c, uint32_t shown, orr_str list, uint32_t *left)
{
    orr_code code = ORR_OK;
    do {
        uint32_t first, last, step = 1;
        if (!take_number(&list, &first))
            return ORR_OK;
        last = first;
        if (take_sign(&list, '-') && (!take_number(&list, &last) || last < first))
            return ORR_OK;
        if (take_sign(&list, '/') && (!take_number(&list, &step) || step == 0))
            return ORR_OK;
        for (uint32_t r = first; r <= last && *left && !code; r += step, --*left)
            if (r != shown)
                code = orr_timeline_add_alike(c->t, shown, r, c->err);
    } while (!code && *left && take_sign(&list, ','));
    return code;
}

static orr_code add_all_alike(chrome_file *c)
{
    static const char before[] = "ranks ";
    const size_t n = sizeof before - 1;
    uint32_t left = ORR_CHROME_TRACE_RANKS;
    orr_code code = ORR_OK;
    for (size_t i = 0; c->is_ours && i < c->process_count && !code; i++) {
        const orr_str name = orr_timeline_text(c->t, c->processes[i].name);
        if (c->processes[i].rank != ORR_NO_RANK && orr_str_begins(name, before))
            code = add_alike(c, c->processes[i].rank, (orr_str){name.ptr + n, name.len - n}, &left);
    }
    return code;
}

/* ---- tracks ---- */

static orr_code add_track(chrome_file *c, chrome_thread *thread)
{
    const uint32_t rank = c->processes[thread->process].rank;
    char room[64];
    orr_str name = orr_timeline_text(c->t, thread->name);
    if (!thread->has_name) {
        const orr_str tid = orr_intern_get(c->words, thread->tid);
        const int len =
            snprintf(room, sizeof room, "thread %.*s", (int)(tid.len < 40 ? tid.len : 40), tid.ptr);
        name = (orr_str){room, (size_t)len};
    }
    return orr_timeline_add_track(c->t, rank, name, &thread->track, c->err);
}

static orr_code add_tracks(chrome_file *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->thread_count && !code; i++) {
        chrome_thread *thread = &c->threads[i];
        if (thread->lane_of != CHROME_NONE) /* an earlier one, which has its track */
            thread->track = c->threads[thread->lane_of].track;
        else if (thread->has_spans || c->is_ours)
            code = add_track(c, thread);
    }
    return code;
}

/* ---- arrows ---- */

typedef struct finder {
    const chrome_file *c;
    uint32_t *order; /* spans by thread and start */
    uint32_t *first; /* by thread */
} finder;

static int compare_spans(const void *a, const void *b, void *context)
{
    const orr_timespan *spans = context;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    if (spans[i].track != spans[k].track)
        return spans[i].track < spans[k].track ? -1 : 1;
    if (spans[i].start != spans[k].start)
        return spans[i].start < spans[k].start ? -1 : 1;
    if (spans[i].end != spans[k].end)
        return spans[i].end > spans[k].end ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool sort_spans(finder *f)
{
    const chrome_file *c = f->c;
    f->order = orr_alloc(c->span_count, sizeof *f->order);
    f->first = orr_alloc(c->thread_count + 1, sizeof *f->first);
    if (!f->order || !f->first)
        return false;
    for (uint32_t i = 0; i < c->span_count; i++) {
        f->order[i] = i;
        f->first[c->spans[i].track + 1]++;
    }
    for (size_t k = 0; k < c->thread_count; k++)
        f->first[k + 1] += f->first[k];
    qsort_r(f->order, c->span_count, sizeof *f->order, compare_spans, c->spans);
    return true;
}

static uint32_t span_at(const finder *f, uint32_t thread, orr_ps at)
{
    const orr_timespan *spans = f->c->spans;
    uint32_t low = f->first[thread], high = f->first[thread + 1];
    while (low < high) { /* the first that starts later */
        const uint32_t mid = low + (high - low) / 2;
        if (spans[f->order[mid]].start <= at)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t k = low; k > f->first[thread] && low - k < LOOK_BACK; k--)
        if (spans[f->order[k - 1]].end >= at)
            return f->order[k - 1];
    return CHROME_NONE;
}

static uint32_t span_of(const finder *f, const chrome_flow_end *end)
{
    if (end->span == CHROME_NONE)
        return span_at(f, end->thread, end->at);
    return end->span < f->c->span_count ? end->span : CHROME_NONE;
}

static orr_code add_arrow(const finder *f, const chrome_flow_end *from, const chrome_flow_end *to)
{
    orr_arrow arrow = {.from = span_of(f, from),
                       .to = span_of(f, to),
                       .left = from->exact,
                       .arrived = to->exact,
                       .name = from->name};
    if (arrow.from == CHROME_NONE || arrow.to == CHROME_NONE)
        return ORR_OK;
    arrow.from += f->c->first_span;
    arrow.to += f->c->first_span;
    return orr_timeline_add_arrow(f->c->t, &arrow, f->c->err);
}

/* The start of each key, whether it stands before or after its ends in the file; of several the
 * last. */
static bool find_starts(const chrome_file *c, orr_map *start_of)
{
    bool ok = true;
    for (uint32_t i = 0; i < c->flow_count && ok; i++)
        if (c->flows[i].is_start)
            ok = orr_map_put(start_of, c->flows[i].key, i, NULL);
    return ok;
}

static orr_code add_arrows(chrome_file *c)
{
    finder f = {.c = c};
    orr_map *start_of = c->flow_count ? orr_map_create(0) : NULL;
    orr_code code = ORR_OK;
    if (c->flow_count && (!start_of || !find_starts(c, start_of) || !sort_spans(&f)))
        code = orr_no_memory(c->err);
    for (size_t i = 0; i < c->flow_count && !code; i++) {
        if (c->flows[i].is_start)
            continue;
        const uint32_t from = orr_map_find(start_of, c->flows[i].key, CHROME_NONE);
        if (from != CHROME_NONE)
            code = add_arrow(&f, &c->flows[from], &c->flows[i]);
    }
    orr_map_destroy(start_of);
    orr_free(f.order);
    orr_free(f.first);
    return code;
}

/* ---- the rest ---- */

static orr_code add_spans(chrome_file *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->span_count && !code; i++) {
        orr_timespan span = c->spans[i];
        span.track = c->threads[span.track].track;
        if (span.is_open && span.end < c->latest && !c->is_ours)
            span.end = c->latest;
        code = orr_timeline_add_span(c->t, &span, NULL, c->err);
    }
    return code;
}

static orr_code add_counters(chrome_file *c)
{
    uint32_t *number = orr_alloc(c->counter_count, sizeof *number);
    orr_code code = number ? ORR_OK : orr_no_memory(c->err);
    for (size_t i = 0; i < c->counter_count && !code; i++) {
        const chrome_counter *k = &c->counters[i];
        code = orr_timeline_add_counter(c->t, c->processes[k->process].rank,
                                        orr_timeline_text(c->t, k->name),
                                        orr_timeline_text(c->t, k->unit), &number[i], c->err);
    }
    for (size_t i = 0; i < c->sample_count && !code; i++)
        code = orr_timeline_add_sample(c->t, number[c->samples[i].counter], c->samples[i].at,
                                       c->samples[i].value, c->err);
    orr_free(number);
    return code;
}

orr_code chrome_join(chrome_file *c, uint32_t rank_otherwise)
{
    orr_code code;
    if ((code = set_ranks(c, rank_otherwise)) || (code = add_all_alike(c)) ||
        (code = add_tracks(c)) || (code = add_spans(c)) || (code = add_arrows(c)))
        return code;
    return add_counters(c);
}
