/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the report as an object, and the page around the data.
 *
 * Runs are worked out and written down when they are added, so a report holds text only and a
 * timeline can go as soon as it is in.  The page itself is a constant (tools/embed.c makes it from
 * web/): head, title, style, data, script. */
#include "report_impl.h"
#include "report_page.h"

#include "base/io/output.h"
#include "base/options.h"

#include <stdio.h>

enum { MOST_SPANS = 1000000 };

typedef struct run {
    orr_buf document; /* its object in "runs" */
    orr_buf events;   /* base64 */
    orr__sums sums;
    char *name;
} run;

struct orr_report {
    orr_arena *arena;
    const char *title, *program, *made_from;
    uint32_t most_spans;
    run *runs;
    size_t count, room;
};

static bool copy_text(orr_arena *a, const char *text, const char **out)
{
    *out = text ? orr_arena_text(a, orr_str_of(text)) : NULL;
    return !text || *out;
}

orr_code orr_report_create(const orr_report_options *opt, orr_report **out, orr_error *err)
{
    orr_report_options own;
    *out = NULL;
    const orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_report_options, err);
    if (code)
        return code;
    orr_report *r = orr_alloc(1, sizeof *r);
    if (r)
        r->arena = orr_arena_create();
    if (!r || !r->arena || !copy_text(r->arena, own.title, &r->title) ||
        !copy_text(r->arena, own.program, &r->program) ||
        !copy_text(r->arena, own.made_from, &r->made_from)) {
        orr_report_destroy(r);
        return orr_no_memory(err);
    }
    r->most_spans = own.most_spans ? own.most_spans : MOST_SPANS;
    *out = r;
    return ORR_OK;
}

void orr_report_destroy(orr_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        orr_buf_fini(&r->runs[i].document);
        orr_buf_fini(&r->runs[i].events);
        orr__sums_fini(&r->runs[i].sums);
    }
    orr_free(r->runs);
    orr_arena_destroy(r->arena);
    orr_free(r);
}

/* ---- adding a run ---- */

/* Where on the page the steps of the critical path lie: the track of the span of the same rank and
 * node. */
static bool find_step_tracks(orr__study *s)
{
    const orr_report_run *r = s->run;
    orr_map *span_of = orr_map_create(0);
    bool ok = span_of != NULL;
    s->step_track = orr_arena_new(s->arena, r->step_count, uint32_t);
    ok = ok && s->step_track;
    for (size_t i = 0; ok && i < r->step_count; i++)
        if (r->steps[i].has_node)
            ok = orr_map_put(span_of, r->steps[i].node << 20 ^ r->steps[i].rank, ORR__NO_PLACE,
                             NULL);
    for (uint32_t i = 0; ok && i < s->p->span_count; i++) {
        const orr_timespan *span = &s->p->spans[i];
        const uint64_t key = span->id << 20 ^ s->p->tracks[span->track].rank;
        if (span->has & ORR_SPAN_HAS_ID && span->kind != ORR_SPAN_PHASE &&
            orr_map_find(span_of, key, 0))
            ok = orr_map_put(span_of, key, i, NULL);
    }
    for (size_t i = 0; ok && i < r->step_count; i++) {
        const orr_report_step *step = &r->steps[i];
        const uint32_t k = orr_map_find(span_of, step->node << 20 ^ step->rank, ORR__NO_PLACE);
        const bool is_it = step->has_node && k != ORR__NO_PLACE &&
                           s->p->spans[k].id == step->node &&
                           s->p->tracks[s->p->spans[k].track].rank == step->rank;
        s->step_track[i] = is_it ? s->events.track_number[s->p->spans[k].track] : ORR__NO_PLACE;
    }
    orr_map_destroy(span_of);
    return ok;
}

/* Of a run without a timeline what it says of itself: one row for all ranks. */
static orr_code take_times(orr__study *s)
{
    const orr_report_times *t = s->run->times;
    char ranks[40];
    if (s->run->timeline || !t || !s->run->ranks)
        return ORR_OK;
    snprintf(ranks, sizeof ranks, "0%s%.0u", s->run->ranks > 1 ? "-" : "", s->run->ranks - 1);
    s->ranks = orr_arena_new(s->arena, 1, orr__rank_times);
    s->groups = orr_arena_new(s->arena, 1, orr__like_ranks);
    const char *name = orr_arena_text(s->arena, orr_str_of(ranks));
    if (!s->ranks || !s->groups || !name)
        return orr_no_memory(s->err);
    s->rank_count = s->group_count = 1;
    s->all_ranks = s->run->ranks;
    s->ranks[0] = (orr__rank_times){.alike = s->all_ranks,
                                    .stage = ORR__NO_STAGE,
                                    .compute = t->compute,
                                    .exposed = t->exposed,
                                    .overlapped = t->overlapped,
                                    .memory = t->memory,
                                    .host = t->host,
                                    .waiting = t->waiting,
                                    .bubble = t->bubble,
                                    .idle = t->idle};
    const orr__ps_sum n = s->all_ranks;
    s->groups[0] = (orr__like_ranks){.count = s->all_ranks,
                                     .stage = ORR__NO_STAGE,
                                     .ranks = name,
                                     .sum = {.compute = t->compute * n,
                                             .exposed = t->exposed * n,
                                             .overlapped = t->overlapped * n,
                                             .memory = t->memory * n,
                                             .host = t->host * n,
                                             .waiting = t->waiting * n,
                                             .bubble = t->bubble * n,
                                             .idle = t->idle * n}};
    return ORR_OK;
}

static orr_code study(orr__study *s, orr__sums *sums)
{
    orr_code code;
    if ((code = orr__study_times(s)) || (code = orr__study_pipeline(s)) ||
        (code = orr__study_groups(s)) || (code = orr__study_memory(s)) ||
        (code = orr__study_events(s)) || (code = orr__study_sums(s, sums)) ||
        (code = take_times(s)))
        return code;
    return find_step_tracks(s) ? ORR_OK : orr_no_memory(s->err);
}

/* A simulation starts at 0; a measured run with the first thing that happened. */
orr_code orr__study_bounds(orr__study *s)
{
    orr_ps length;
    s->start = s->run->is_measured || s->p->start < 0 ? s->p->start : 0;
    s->end = s->p->end > s->start ? s->p->end : s->start;
    if (!s->run->timeline && s->run->length_ps > s->end)
        s->end = s->run->length_ps;
    if (__builtin_sub_overflow(s->end, s->start, &length))
        return orr_fail(s->err, ORR_EUSAGE, NULL, "the timeline is longer than 106 days");
    return ORR_OK;
}

static orr_code study_run(orr_report *r, orr__study *s, run *out)
{
    orr_timeline *empty = NULL;
    orr_code code = ORR_OK;
    if (!s->run->timeline && !(code = orr_timeline_create(&empty, s->err)))
        code = orr_timeline_seal(empty, s->err);
    if (code) {
        orr_timeline_destroy(empty);
        return code;
    }
    s->t = empty ? empty : s->run->timeline;
    s->p = orr_timeline_look(s->t);
    code = s->p->first ? orr__study_bounds(s)
                       : orr_fail(s->err, ORR_EUSAGE, NULL, "the timeline is not sealed");
    if (!code && !(code = study(s, &out->sums))) {
        orr_json_writer w;
        orr_json_writer_init(&w, &out->document, NULL);
        orr__put_run(s, (uint32_t)r->count, &w);
        out->events = s->events.packed;
        s->events.packed = (orr_buf){0};
        code = out->document.failed ? orr_no_memory(s->err) : ORR_OK;
    }
    orr_timeline_destroy(empty);
    return code;
}

orr_code orr_report_add(orr_report *r, const orr_report_run *added, orr_error *err)
{
    run new = {0};
    orr__study s = {
        .run = added, .arena = orr_arena_create(), .err = err, .most_spans = r->most_spans};
    new.name = orr_arena_text(r->arena, orr_str_of(added->name ? added->name : "run"));
    orr_code code = s.arena && new.name &&orr_grow(&r->runs, &r->room, r->count + 1)
                        ? study_run(r, &s, &new)
                        : orr_no_memory(err);
    orr_free(s.rows);
    orr_buf_fini(&s.events.packed);
    orr_arena_destroy(s.arena);
    if (code) {
        orr_buf_fini(&new.document);
        orr_buf_fini(&new.events);
        orr__sums_fini(&new.sums);
        return code;
    }
    r->runs[r->count++] = new;
    return ORR_OK;
}

/* ---- the document ---- */

static void put_title(const orr_report *r, orr_buf *b)
{
    if (r->title)
        orr_buf_text(b, r->title);
    for (size_t i = 0; !r->title && i < r->count; i++) {
        orr_buf_text(b, i ? ", " : "");
        orr_buf_text(b, r->runs[i].name);
    }
}

static bool put_comparison(const orr_report *r, orr_json_writer *w)
{
    orr__sums *sums = orr_alloc(r->count, sizeof *sums);
    if (!sums)
        return false;
    for (size_t i = 0; i < r->count; i++)
        sums[i] = r->runs[i].sums;
    orr__put_comparison(sums, (uint32_t)r->count, w);
    orr_free(sums);
    return true;
}

static bool put_document(const orr_report *r, orr_buf *b)
{
    orr_json_writer w;
    orr_buf title = {0};
    orr_json_writer_init(&w, b, NULL);
    put_title(r, &title);
    orr_json_begin_object(&w);
    orr_json_key(&w, "format");
    orr_json_u64(&w, 1);
    orr_json_put_text(&w, "program", r->program);
    orr_json_key(&w, "title");
    orr_json_str(&w, (orr_str){(const char *)title.ptr, title.len});
    orr_json_put_text(&w, "made_from", r->made_from);
    orr_json_key(&w, "runs");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < r->count; i++)
        orr_json_raw_text(
            &w, (orr_str){(const char *)r->runs[i].document.ptr, r->runs[i].document.len});
    orr_json_end_array(&w);
    if (r->count > 1 && !put_comparison(r, &w))
        b->failed = true;
    orr_json_end_object(&w);
    b->failed |= title.failed;
    orr_buf_fini(&title);
    return !b->failed;
}

/* ---- the page ---- */

/* In HTML "<" could begin a tag; in JSON, which has it in strings only, the same can be said
 * without it. */
static void add_escaped(orr_output *o, const orr_buf *json)
{
    const char *p = (const char *)json->ptr, *const end = p + json->len;
    while (p < end) {
        const char *found = memchr(p, '<', (size_t)(end - p));
        orr_output_add(o, p, (size_t)((found ? found : end) - p));
        if (found)
            orr_output_add(o, "\\u003c", 6);
        p = found ? found + 1 : end;
    }
}

static void add_text(orr_output *o, const char *text)
{
    orr_output_add(o, text, strlen(text));
}

static void add_html(orr_output *o, const orr_buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        const char c = (char)text->ptr[i];
        if (c == '<')
            add_text(o, "&lt;");
        else if (c == '&')
            add_text(o, "&amp;");
        else
            orr_output_add(o, &c, 1);
    }
}

static void add_data(const orr_report *r, orr_output *o, const orr_buf *document)
{
    add_text(o, "<script type=\"application/json\" id=\"orrery-data\">");
    add_escaped(o, document);
    add_text(o, "</script>\n");
    for (size_t i = 0; i < r->count; i++) {
        orr_buf tag = {0};
        if (r->runs[i].events.len == 0)
            continue;
        orr_buf_print(&tag, "<script type=\"text/plain\" id=\"events-%zu\">", i);
        orr_output_drain(o, &tag);
        orr_output_add(o, r->runs[i].events.ptr, r->runs[i].events.len);
        add_text(o, "</script>\n");
        orr_buf_fini(&tag);
    }
}

orr_code orr_report_write(const orr_report *r, const char *path, orr_error *err)
{
    orr_buf document = {0}, title = {0};
    orr_output *o = NULL;
    put_title(r, &title);
    orr_code code = put_document(r, &document) && !title.failed ? orr_output_open(path, &o, err)
                                                                : orr_no_memory(err);
    if (!code) {
        add_text(o, orr__page_before_title);
        add_html(o, &title);
        add_text(o, orr__page_before_data);
        add_data(r, o, &document);
        add_text(o, orr__page_after_data);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(&document);
    orr_buf_fini(&title);
    return code;
}

orr_code orr_report_write_json(const orr_report *r, const char *path, orr_error *err)
{
    orr_buf document = {0};
    orr_output *o = NULL;
    const bool ok = put_document(r, &document);
    orr_buf_byte(&document, '\n');
    orr_code code = ok && !document.failed ? orr_output_open(path, &o, err) : orr_no_memory(err);
    if (!code) {
        orr_output_drain(o, &document);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(&document);
    return code;
}
