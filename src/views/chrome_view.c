/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_view.c - a timeline in the Trace Event form that Perfetto and chrome://tracing open.
 *
 *     {"displayTimeUnit":"ns","otherData":{..},"traceEvents":[
 *     {"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},          a rank is a process
 *     {"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"compute"}},  a track is a thread
 *     {"ph":"X","pid":0,"tid":1,"ts":0,"dur":1.5,"name":"gemm",..},               a span, in microseconds
 *     {"ph":"s",..}, {"ph":"f",..}                                                an arrow
 *     {"ph":"C",..}                                                               a sample of a counter
 *     ]}
 *
 * A thread can show nested spans, but no other overlap.  So a track whose spans overlap (receives
 * that wait at the same time) is spread over *lanes*, each its own thread.  What viewers do not
 * need is in arguments, so that the reader (src/trace/formats/chrome_trace_read.c) can restore
 * everything: lanes, the spans of an arrow, times. Cost: O(n log n) time; eight bytes of memory per
 * span beside the timeline: the text is streamed. */
#include "info_impl.h"

#include <orrery/view.h>

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/memory/heap.h"

#include <inttypes.h>

enum { DRAIN_AT = 1 << 16, FORMAT_VERSION = 1 };
#define PS_PER_US 1000000
#define PS_PER_NS 1000

typedef struct writer {
    const orr_timeline *t;
    const orr_timeline_parts *p;
    uint32_t job;        /* the process for events without a rank */
    uint32_t only_rank;  /* ORR_NO_RANK: none, or several */
    uint32_t *thread;    /* by span */
    uint32_t *number;    /* by span: in the order of the file */
    uint32_t *lanes;     /* by track */
    uint32_t *first_tid; /* by track */
    orr_buf text;
    orr_output *out;
    bool has_events;
} writer;

/* ---- lanes ---- */

typedef struct lane_finder {
    const orr_timeline_parts *p;
    orr_heap busy;  /* end of the outermost span -> lane */
    orr_heap free;  /* lane */
    orr_ps *inside; /* ends of the open spans on `current`, innermost last */
    size_t depth, room;
    uint32_t current, lanes;
} lane_finder;

/* Ends as unsigned keys in the same order. */
static uint64_t key_of(const lane_finder *f, orr_ps at)
{
    return (uint64_t)at - (uint64_t)f->p->start;
}

static bool take_lane(lane_finder *f, const orr_timespan *s)
{
    orr_heap_entry e;
    while (f->busy.count && f->busy.entries[0].key <= key_of(f, s->start)) {
        (void)orr_heap_pop(&f->busy, &e);
        if (!orr_heap_push(&f->free, e.value, e.value))
            return false;
    }
    f->current = orr_heap_pop(&f->free, &e) ? e.value : f->lanes++;
    f->depth = 0;
    return orr_heap_push(&f->busy, key_of(f, s->end), f->current);
}

static bool place_span(lane_finder *f, const orr_timespan *s, uint32_t *lane)
{
    while (f->depth && f->inside[f->depth - 1] <= s->start)
        f->depth--;
    const bool is_nested = f->depth && s->end <= f->inside[f->depth - 1];
    if (!is_nested && !take_lane(f, s))
        return false;
    if (!orr_grow(&f->inside, &f->room, f->depth + 1))
        return false;
    f->inside[f->depth++] = s->end;
    *lane = f->current;
    return true;
}

static bool place_track(lane_finder *f, writer *w, uint32_t track)
{
    const orr_timeline_parts *p = w->p;
    bool ok = true;
    f->busy.count = f->free.count = f->depth = 0;
    f->lanes = 0;
    for (uint32_t k = p->first[track]; ok && k < p->first[track + 1]; k++)
        ok = place_span(f, &p->spans[p->order[k]], &w->thread[p->order[k]]);
    w->lanes[track] = f->lanes ? f->lanes : 1;
    return ok;
}

static bool place_all(writer *w)
{
    lane_finder f = {.p = w->p};
    bool ok = true;
    for (uint32_t k = 0; ok && k < w->p->track_count; k++)
        ok = place_track(&f, w, k);
    orr_heap_fini(&f.busy);
    orr_heap_fini(&f.free);
    orr_free(f.inside);
    return ok;
}

/* Threads of a process are numbered from 1, in the order of its tracks. */
static bool number_threads(writer *w)
{
    const orr_timeline_parts *p = w->p;
    uint32_t *next = orr_alloc((size_t)w->job + 1, sizeof *next);
    if (!next)
        return false;
    for (uint32_t k = 0; k < p->track_count; k++) {
        uint32_t *n = &next[p->tracks[k].rank == ORR_NO_RANK ? w->job : p->tracks[k].rank];
        w->first_tid[k] = *n + 1;
        *n += w->lanes[k];
    }
    for (uint32_t i = 0; i < p->span_count; i++)
        w->thread[i] += w->first_tid[p->spans[i].track];
    orr_free(next);
    return true;
}

/* ---- pieces of text ---- */

static void drain(writer *w)
{
    if (w->text.len >= DRAIN_AT)
        orr_output_drain(w->out, &w->text);
}

/* Picoseconds as microseconds, exactly. */
static void put_us(writer *w, const char *key, orr_ps t)
{
    const uint64_t size = t < 0 ? 0 - (uint64_t)t : (uint64_t)t;
    uint64_t part = size % PS_PER_US;
    unsigned digits = 6;
    orr_buf_text(&w->text, key);
    if (t < 0)
        orr_buf_byte(&w->text, '-');
    orr_buf_u64(&w->text, size / PS_PER_US);
    if (part == 0)
        return;
    for (; part % 10 == 0; part /= 10)
        digits--;
    char text[8] = ".";
    for (unsigned i = digits; i > 0; i--, part /= 10)
        text[i] = (char)('0' + part % 10);
    orr_buf_add(&w->text, text, digits + 1);
}

static void put_number(writer *w, const char *key, uint64_t v)
{
    orr_buf_text(&w->text, key);
    orr_buf_u64(&w->text, v);
}

static void put_text(writer *w, const char *key, orr_str text)
{
    orr_buf_text(&w->text, key);
    orr_json_quote(&w->text, text, false);
}

static void begin_event(writer *w, const char *phase, uint32_t rank)
{
    orr_buf_text(&w->text, w->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    orr_buf_text(&w->text, phase);
    put_number(w, "\",\"pid\":", rank == ORR_NO_RANK ? w->job : rank);
    w->has_events = true;
}

static void end_event(writer *w)
{
    orr_buf_byte(&w->text, '}');
    drain(w);
}

/* ---- the names of ranks and tracks ---- */

/* "rank 0"; for a rank that represents others, all of them: "ranks 0-7". */
static void put_ranks(writer *w, uint32_t rank)
{
    orr_arena *a = w->p->alike ? orr_arena_create() : NULL;
    const char *names = a ? orr__alike_ranks(a, w->p, rank) : NULL;
    w->text.failed |= w->p->alike && !names;
    if (names && strspn(names, "0123456789") < strlen(names))
        orr_buf_print(&w->text, "ranks %s", names);
    else
        put_number(w, "rank ", rank);
    orr_arena_destroy(a);
}

static void put_process(writer *w, uint32_t rank)
{
    begin_event(w, "M", rank);
    orr_buf_text(&w->text, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
    if (rank == ORR_NO_RANK)
        orr_buf_text(&w->text, "all ranks");
    else
        put_ranks(w, rank);
    orr_buf_text(&w->text, "\"}");
    end_event(w);
    begin_event(w, "M", rank);
    orr_buf_text(&w->text, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":");
    if (rank == ORR_NO_RANK)
        orr_buf_text(&w->text, "-1}");
    else
        put_number(w, "", rank);
    if (rank != ORR_NO_RANK)
        orr_buf_byte(&w->text, '}');
    end_event(w);
}

static void put_thread(writer *w, uint32_t track, uint32_t lane)
{
    const orr_track *t = &w->p->tracks[track];
    const orr_str name = orr_timeline_text(w->t, t->name);
    orr_buf label = {0};
    if (lane) {
        orr_buf_add(&label, name.ptr, name.len);
        orr_buf_print(&label, " (%" PRIu32 ")", lane + 1);
    }
    w->text.failed |= label.failed;
    begin_event(w, "M", t->rank);
    put_number(w, ",\"tid\":", w->first_tid[track] + lane);
    put_text(w, ",\"name\":\"thread_name\",\"args\":{\"name\":",
             lane ? (orr_str){(const char *)label.ptr, label.len} : name);
    if (lane)
        put_number(w, ",\"lane\":", lane);
    orr_buf_byte(&w->text, '}');
    end_event(w);
    begin_event(w, "M", t->rank);
    put_number(w, ",\"tid\":", w->first_tid[track] + lane);
    put_number(
        w, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":", w->first_tid[track] + lane);
    orr_buf_byte(&w->text, '}');
    end_event(w);
    orr_buf_fini(&label);
}

/* In the order in which ranks first have a track or a counter. */
static bool put_names(writer *w)
{
    const orr_timeline_parts *p = w->p;
    bool *is_named = orr_alloc((size_t)w->job + 1, sizeof *is_named);
    if (!is_named)
        return false;
    for (uint32_t k = 0; k < p->track_count + p->counter_count; k++) {
        const bool is_track = k < p->track_count;
        const uint32_t rank = is_track ? p->tracks[k].rank : p->counters[k - p->track_count].rank;
        const uint32_t place = rank == ORR_NO_RANK ? w->job : rank;
        if (!is_named[place])
            put_process(w, rank);
        is_named[place] = true;
        for (uint32_t lane = 0; is_track && lane < w->lanes[k]; lane++)
            put_thread(w, k, lane);
    }
    orr_free(is_named);
    return true;
}

/* ---- spans, arrows, samples ---- */

static const char *peer_key(uint8_t kind)
{
    return kind == ORR_SPAN_COLLECTIVE ? "\"last_rank\":" : "\"peer\":";
}

static void put_span(writer *w, uint32_t i)
{
    const orr_timespan *s = &w->p->spans[i];
    const char *comma = "";
    begin_event(w, "X", w->p->tracks[s->track].rank);
    put_number(w, ",\"tid\":", w->thread[i]);
    put_us(w, ",\"ts\":", s->start);
    put_us(w, ",\"dur\":", s->end - s->start);
    put_text(w, ",\"name\":", orr_timeline_text(w->t, s->name));
    orr_buf_text(&w->text, ",\"cat\":\"");
    orr_buf_text(&w->text, orr_span_kind_name((orr_span_kind)s->kind));
    orr_buf_text(&w->text, "\",\"args\":{");
    if (s->has & ORR_SPAN_HAS_ID) {
        put_number(w, "\"node\":", s->id);
        comma = ",";
    }
    if (s->size) {
        orr_buf_text(&w->text, comma);
        put_number(w, "\"bytes\":", s->size);
        comma = ",";
    }
    if (s->group != ORR_NO_TEXT) {
        orr_buf_text(&w->text, comma);
        put_text(w, "\"group\":", orr_timeline_text(w->t, s->group));
        comma = ",";
    }
    if (s->collective && s->collective <= ORR_COLL_COUNT) {
        orr_buf_text(&w->text, comma);
        put_text(w, "\"collective\":", orr_str_of(orr_collective_name(s->collective - 1u)));
        comma = ",";
    }
    if (s->members) {
        orr_buf_text(&w->text, comma);
        put_number(w, "\"group_ranks\":", s->members);
        comma = ",";
    }
    if (s->has & ORR_SPAN_HAS_PEER) {
        orr_buf_text(&w->text, comma);
        put_number(w, peer_key(s->kind), s->peer);
        comma = ",";
    }
    if (s->has & ORR_SPAN_HAS_FLOWS) {
        orr_buf_text(&w->text, comma);
        put_number(w, "\"waited_ns\":", (uint64_t)(s->flows - s->start) / PS_PER_NS);
        comma = ",";
    }
    if (s->is_open) {
        orr_buf_text(&w->text, comma);
        orr_buf_text(&w->text, "\"unfinished\":true");
    }
    orr_buf_byte(&w->text, '}');
    end_event(w);
}

/* Viewers attach the end of an arrow to the span that contains it; a span excludes its own end. */
static orr_ps inside(const orr_timespan *s, orr_ps at)
{
    const orr_ps last = s->end - s->start > PS_PER_NS ? s->end - PS_PER_NS : s->start;
    return at < s->start ? s->start : at > last ? last : at;
}

static void put_arrow_end(writer *w, uint32_t number, bool is_start)
{
    const orr_arrow *a = &w->p->arrows[number];
    const uint32_t i = is_start ? a->from : a->to;
    const orr_timespan *s = &w->p->spans[i];
    begin_event(w, is_start ? "s" : "f", w->p->tracks[s->track].rank);
    put_number(w, is_start ? ",\"id\":" : ",\"bp\":\"e\",\"id\":", number);
    put_number(w, ",\"tid\":", w->thread[i]);
    const orr_ps exact = is_start ? a->left : a->arrived, drawn = inside(s, exact);
    put_us(w, ",\"ts\":", drawn);
    put_text(w, ",\"name\":", orr_timeline_text(w->t, a->name));
    put_number(w, ",\"cat\":\"arrow\",\"args\":{\"span\":", w->number[i]);
    if (drawn != exact)
        put_us(w, ",\"us\":", exact);
    orr_buf_byte(&w->text, '}');
    end_event(w);
}

static void put_sample(writer *w, const orr_sample *s)
{
    const orr_counter *c = &w->p->counters[s->counter];
    begin_event(w, "C", c->rank);
    put_us(w, ",\"ts\":", s->at);
    put_text(w, ",\"name\":", orr_timeline_text(w->t, c->name));
    put_text(w, ",\"args\":{", orr_timeline_text(w->t, c->unit));
    orr_buf_byte(&w->text, ':');
    orr_buf_i64(&w->text, s->value);
    orr_buf_byte(&w->text, '}');
    end_event(w);
}

static void put_head(writer *w)
{
    const orr_timeline_parts *p = w->p;
    orr_buf_print(&w->text,
                  "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"orrery-timeline\","
                  "\"version\":\"%d\"",
                  FORMAT_VERSION);
    for (uint32_t i = 0; i < p->note_count; i++) {
        put_text(w, ",", orr_timeline_text(w->t, p->notes[i].key));
        put_text(w, ":", orr_timeline_text(w->t, p->notes[i].value));
    }
    orr_buf_byte(&w->text, '}');
    if (w->only_rank != ORR_NO_RANK)
        orr_buf_print(&w->text, ",\"distributedInfo\":{\"rank\":%" PRIu32 "}", w->only_rank);
    orr_buf_text(&w->text, ",\"traceEvents\":[");
}

static bool put_all(writer *w)
{
    const orr_timeline_parts *p = w->p;
    put_head(w);
    if (!put_names(w))
        return false;
    for (uint32_t k = 0; k < p->span_count && !orr_output_has_failed(w->out); k++) {
        put_span(w, p->order[k]);
        w->number[p->order[k]] = k;
    }
    for (uint32_t i = 0; i < p->arrow_count && !orr_output_has_failed(w->out); i++) {
        put_arrow_end(w, i, true);
        put_arrow_end(w, i, false);
    }
    for (uint32_t i = 0; i < p->sample_count && !orr_output_has_failed(w->out); i++)
        put_sample(w, &p->samples[i]);
    orr_buf_text(&w->text, "\n]}\n");
    return true;
}

/* ---- the file ---- */

static uint32_t rank_count(const orr_timeline_parts *p)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->track_count; k++)
        if (p->tracks[k].rank != ORR_NO_RANK && p->tracks[k].rank >= count)
            count = p->tracks[k].rank + 1;
    for (uint32_t k = 0; k < p->counter_count; k++)
        if (p->counters[k].rank != ORR_NO_RANK && p->counters[k].rank >= count)
            count = p->counters[k].rank + 1;
    return count > p->alike_count ? count : p->alike_count;
}

static uint32_t find_only_rank(const orr_timeline_parts *p)
{
    uint32_t only = ORR_NO_RANK;
    for (uint32_t k = 0; k < p->track_count && !p->alike; k++) {
        const uint32_t rank = p->tracks[k].rank;
        if (rank == ORR_NO_RANK || rank == only)
            continue;
        if (only != ORR_NO_RANK)
            return ORR_NO_RANK;
        only = rank;
    }
    return only;
}

static bool prepare(writer *w)
{
    w->only_rank = find_only_rank(w->p);
    w->job = rank_count(w->p);
    w->thread = orr_alloc(w->p->span_count, sizeof *w->thread);
    w->number = orr_alloc(w->p->span_count, sizeof *w->number);
    w->lanes = orr_alloc(w->p->track_count, sizeof *w->lanes);
    w->first_tid = orr_alloc(w->p->track_count, sizeof *w->first_tid);
    return w->thread && w->number && w->lanes && w->first_tid && place_all(w) && number_threads(w);
}

static orr_code write_file(writer *w, const char *path, orr_error *err)
{
    orr_code code = orr_output_open(path, &w->out, err);
    if (code)
        return code;
    if (put_all(w) && !w->text.failed) {
        orr_output_drain(w->out, &w->text);
        return orr_output_commit(&w->out, err);
    }
    orr_output_discard(w->out);
    return orr_no_memory(err);
}

orr_code orr_view_chrome(const orr_timeline *t, const char *path, orr_error *err)
{
    writer w = {.t = t, .p = orr_timeline_view(t)};
    if (!w.p->first)
        return orr_fail(err, ORR_EUSAGE, NULL, "the timeline is not sealed");
    const orr_code code = prepare(&w) ? write_file(&w, path, err) : orr_no_memory(err);
    orr_free(w.thread);
    orr_free(w.number);
    orr_free(w.lanes);
    orr_free(w.first_tid);
    orr_buf_fini(&w.text);
    return code;
}
