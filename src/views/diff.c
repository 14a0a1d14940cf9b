/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - figures of two timelines, operator by operator.
 *
 * A span's own time is its length minus the spans directly inside it.  Spans of a track are sorted
 * by start, longer ones first, so a stack of open ones suffices; a span that ends after the one it
 * started in is not inside it.
 *
 * A first pass records which run has which names.  A name that only one run has counts as part of
 * what encloses it: a profiler shows driver calls inside operators, a trace only the operators.
 * Marks of a measured run that are nodes of the other, such as annotations, count as work.
 *
 * Cost: linear in the spans, except for sorting the names. */
#include "report_impl.h"
#include "views_impl.h"

#include "base/formats/json.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"

#include <orrery/lab/units.h>

#include <stdlib.h>

typedef struct gatherer {
    orr_diff *d;
    const orr_timeline *t;
    int run;
    uint32_t *stack; /* of spans, on one track */
    orr_ps *inside;  /* time of spans inside, by place in the stack */
    size_t depth, stack_room, inside_room;
    orr_map *ranks;
    orr_ps first, last;
    bool has_any;
    bool is_host;               /* the track is a thread */
    uint32_t *stands_for;       /* per representative rank: how many it represents */
    uint32_t alike, rank_count; /* of the track; in total */
} gatherer;

/* Which kind is most specific.  Kernels that send and receive may be taken for collectives. */
static int weight(orr_span_kind kind)
{
    static const int8_t weights[ORR_SPAN_KINDS] = {
        [ORR_SPAN_HOST] = 1,       [ORR_SPAN_COMPUTE] = 2, [ORR_SPAN_MEMORY] = 3,
        [ORR_SPAN_COLLECTIVE] = 4, [ORR_SPAN_RECEIVE] = 5, [ORR_SPAN_SEND] = 5,
    };
    return weights[kind];
}

/* A log without node types has only others. */
static bool is_work(const orr_diff *d, int run, const orr_timespan *s)
{
    return s->kind != ORR_SPAN_PHASE && (s->kind != ORR_SPAN_OTHER || d->store->takes_others[run]);
}

bool orr__has_others_only(const orr_timeline_parts *p)
{
    for (uint32_t i = 0; i < p->span_count; i++) {
        if (p->spans[i].kind != ORR_SPAN_OTHER)
            return false;
    }
    return true;
}

/* ---- names ---- */

static bool note_name(orr_diff *d, const orr_timeline *t, const orr_timespan *s, int run)
{
    struct orr__diff_store *store = d->store;
    uint32_t which;
    const uint32_t known = orr_intern_count(store->names);
    if (!orr_intern_add(store->names, orr_timeline_text(t, s->name), &which) ||
        !orr_grow(&store->rows, &store->room, (size_t)which + 1) ||
        !orr_grow(&store->runs, &store->runs_room, (size_t)which + 1))
        return false;
    if (which == known) {
        store->runs[which] = 0;
        store->rows[which] =
            (orr_diff_row){.name = orr_intern_get(store->names, which), .kind = s->kind};
    }
    if (weight(s->kind) > weight(store->rows[which].kind))
        store->rows[which].kind = s->kind;
    store->runs[which] |= (uint8_t)(1 << run);
    return true;
}

static bool note_names(orr_diff *d, const orr_timeline *t, int run)
{
    const orr_timeline_parts *p = orr_timeline_view(t);
    d->store->takes_others[run] = orr__has_others_only(p);
    for (uint32_t i = 0; i < p->span_count; i++) {
        if (is_work(d, run, &p->spans[i]) && !note_name(d, t, &p->spans[i], run))
            return false;
    }
    return true;
}

/* The row of a span; NULL: not work in either run. */
static orr_diff_row *row_of(const gatherer *g, const orr_timespan *s, bool *is_shared)
{
    const struct orr__diff_store *store = g->d->store;
    uint32_t which;
    if (!orr_intern_find(store->names, orr_timeline_text(g->t, s->name), &which))
        return NULL;
    *is_shared = store->runs[which] & 1 << !g->run;
    return &store->rows[which];
}

/* ---- times ---- */

/* Saturates: a file may claim that a span represents a million ranks. */
static void add_time(orr_ps *sum, orr_ps time, uint32_t alike)
{
    orr_ps all;
    if (__builtin_mul_overflow(time, (orr_ps)alike, &all) || __builtin_add_overflow(*sum, all, sum))
        *sum = INT64_MAX;
}

/* The innermost open span ends here. */
static void close_span(gatherer *g)
{
    bool is_shared;
    const orr_timespan *s = &orr_timeline_view(g->t)->spans[g->stack[--g->depth]];
    orr_diff_row *row = row_of(g, s, &is_shared);
    row->count[g->run] += g->alike;
    add_time(&row->time[g->run], s->end - s->start - g->inside[g->depth], g->alike);
}

static bool open_span(gatherer *g, uint32_t number)
{
    const orr_timespan *spans = orr_timeline_view(g->t)->spans, *s = &spans[number];
    bool is_shared;
    while (g->depth && spans[g->stack[g->depth - 1]].end <= s->start)
        close_span(g);
    const bool is_inside = g->depth && s->end <= spans[g->stack[g->depth - 1]].end;
    if (is_inside && row_of(g, s, &is_shared) && !is_shared)
        return true; /* part of what encloses it */
    if (is_inside)
        g->inside[g->depth - 1] += s->end - s->start;
    if (!orr_grow(&g->stack, &g->stack_room, g->depth + 1) ||
        !orr_grow(&g->inside, &g->inside_room, g->depth + 1))
        return false;
    g->stack[g->depth] = number;
    g->inside[g->depth++] = 0;
    return true;
}

static void note_extent(gatherer *g, const orr_timespan *s)
{
    g->first = g->has_any && g->first < s->start ? g->first : s->start;
    g->last = g->has_any && g->last > s->end ? g->last : s->end;
    g->has_any = true;
}

/* A mark counts if the other run has a node for it, on threads: on streams it only covers
 * kernels. */
static bool counts(const gatherer *g, const orr_timespan *s)
{
    bool is_shared;
    if (is_work(g->d, g->run, s))
        return true;
    return s->kind == ORR_SPAN_OTHER && g->is_host && row_of(g, s, &is_shared) && is_shared;
}

static bool is_thread(const orr_timeline_parts *p, uint32_t track)
{
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        if (p->spans[p->order[k]].kind == ORR_SPAN_HOST)
            return true;
    }
    return false;
}

static bool gather_track(gatherer *g, const orr_timeline_parts *p, uint32_t track)
{
    g->is_host = is_thread(p, track);
    g->alike = g->stands_for && p->tracks[track].rank < p->alike_count
                   ? g->stands_for[p->tracks[track].rank]
                   : 1;
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        const orr_timespan *s = &p->spans[p->order[k]];
        if (s->kind != ORR_SPAN_PHASE)
            note_extent(g, s); /* annotations are part of a run, but not work */
        if (!counts(g, s))
            continue;
        bool is_new;
        if (!open_span(g, p->order[k]) || !orr_map_put(g->ranks, p->tracks[track].rank, 0, &is_new))
            return false;
        g->rank_count += is_new ? g->alike : 0;
    }
    while (g->depth)
        close_span(g);
    return true;
}

static orr_code gather(orr_diff *d, const orr_timeline *t, int run, orr_error *err)
{
    const orr_timeline_parts *p = orr_timeline_view(t);
    gatherer g = {.d = d, .t = t, .run = run, .ranks = orr_map_create(64)};
    g.stands_for = orr_alloc((size_t)p->alike_count + 1, sizeof *g.stands_for);
    bool ok = g.ranks && g.stands_for;
    for (uint32_t r = 0; r < p->alike_count && ok; r++)
        g.stands_for[p->alike[r]]++;
    for (uint32_t track = 0; track < p->track_count && ok; track++)
        ok = gather_track(&g, p, track);
    d->ranks[run] = ok ? g.rank_count : 0;
    d->whole[run] = g.has_any ? g.last - g.first : 0;
    orr_free(g.stack);
    orr_free(g.inside);
    orr_free(g.stands_for);
    orr_map_destroy(g.ranks);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* ---- order ---- */

typedef struct keyed {
    orr_diff_row row;
    orr_ps key; /* difference of the means */
} keyed;

static orr_ps difference(const orr_diff *d, const orr_diff_row *r)
{
    const orr_ps by = orr__diff_mean(d, r, 1) - orr__diff_mean(d, r, 0);
    return by < 0 ? -by : by;
}

static int compare_names(orr_str a, orr_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static int by_difference(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return compare_names(x->row.name, y->row.name);
}

static orr_code sort_rows(const orr_diff *d, orr_diff_row *rows, size_t count, orr_error *err)
{
    keyed *keys = orr_alloc(count + 1, sizeof *keys);
    if (!keys)
        return orr_no_memory(err);
    for (size_t i = 0; i < count; i++)
        keys[i] = (keyed){rows[i], difference(d, &rows[i])};
    orr_sort(keys, count, sizeof *keys, by_difference);
    for (size_t i = 0; i < count; i++)
        rows[i] = keys[i].row;
    orr_free(keys);
    return ORR_OK;
}

static void sum_kinds(orr_diff *d)
{
    struct orr__diff_store *s = d->store;
    size_t kept = 0;
    for (int kind = 0; kind < ORR_SPAN_KINDS; kind++)
        s->kinds[kind] = (orr_diff_row){.name = orr_str_of(orr_span_kind_name((orr_span_kind)kind)),
                                        .kind = (orr_span_kind)kind};
    for (size_t i = 0; i < orr_intern_count(s->names); i++) {
        orr_diff_row *to = &s->kinds[s->rows[i].kind];
        for (int run = 0; run < 2; run++) {
            to->count[run] += s->rows[i].count[run];
            to->time[run] += s->rows[i].time[run];
        }
    }
    for (int kind = 0; kind < ORR_SPAN_KINDS; kind++) {
        if (s->kinds[kind].count[0] || s->kinds[kind].count[1])
            s->kinds[kept++] = s->kinds[kind];
    }
    d->kinds = s->kinds;
    d->kind_count = kept;
}

/* ---- where the time goes ---- */

/* As the report of this run has it. */
static orr_code account(orr_diff *d, const orr_timeline *t, int run, orr_error *err)
{
    const orr_report_run about = {.timeline = t, .is_measured = !orr_timeline_is_simulated(t)};
    orr__study s = {
        .run = &about, .t = t, .p = orr_timeline_view(t), .arena = d->store->arena, .err = err};
    orr_code code = orr__study_bounds(&s);
    if (!code)
        code = orr__study_times(&s);
    for (uint32_t i = 0; i < s.rank_count && !code; i++) {
        const orr__rank_times *r = &s.ranks[i];
        const orr_ps times[ORR__DIFF_PARTS] = {r->compute, r->exposed, r->memory, r->host,
                                               r->waiting, r->bubble,  r->idle};
        for (unsigned k = 0; k < ORR__DIFF_PARTS; k++) {
            add_time(&d->store->parts[k].time[run], times[k], r->alike);
            d->store->parts[k].count[run] += r->alike;
        }
    }
    orr_free(s.rows);
    return code;
}

static orr_code account_both(orr_diff *d,
                             const orr_timeline *a,
                             const orr_timeline *b,
                             orr_error *err)
{
    static const char *const words[ORR__DIFF_PARTS] = {
        "compute",         "exposed communication", "remote memory", "host",
        "waits for peers", "pipeline bubble",       "idle"};
    if (d->store->takes_others[0] || d->store->takes_others[1])
        return ORR_OK;
    for (unsigned k = 0; k < ORR__DIFF_PARTS; k++)
        d->store->parts[k] = (orr_diff_row){.name = orr_str_of(words[k])};
    d->parts = d->store->parts;
    d->part_count = ORR__DIFF_PARTS;
    const orr_code code = account(d, a, 0, err);
    return code ? code : account(d, b, 1, err);
}

/* Rows that were always part of something else are removed. */
static size_t keep_counted(struct orr__diff_store *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < orr_intern_count(s->names); i++) {
        if (s->rows[i].count[0] || s->rows[i].count[1])
            s->rows[kept++] = s->rows[i];
    }
    return kept;
}

static orr_code make(orr_diff *d, const orr_timeline *a, const orr_timeline *b, orr_error *err)
{
    struct orr__diff_store *s = d->store = orr_alloc(1, sizeof *s);
    if (!s || !(s->arena = orr_arena_create()) || !(s->names = orr_intern_create()))
        return orr_no_memory(err);
    if (!note_names(d, a, 0) || !note_names(d, b, 1))
        return orr_no_memory(err);
    orr_code code = gather(d, a, 0, err);
    if (!code)
        code = gather(d, b, 1, err);
    if (code)
        return code;
    sum_kinds(d);
    code = account_both(d, a, b, err);
    if (code)
        return code;
    d->operators = s->rows;
    d->operator_count = keep_counted(s);
    code = sort_rows(d, s->rows, d->operator_count, err);
    return code ? code : sort_rows(d, s->kinds, d->kind_count, err);
}

orr_code orr_diff_make(const orr_timeline *first,
                       const orr_timeline *second,
                       orr_diff **out,
                       orr_error *err)
{
    *out = orr_alloc(1, sizeof **out);
    if (!*out)
        return orr_no_memory(err);
    const orr_code code = make(*out, first, second, err);
    if (code) {
        orr_diff_free(*out);
        *out = NULL;
    }
    return code;
}

void orr_diff_free(orr_diff *d)
{
    if (!d)
        return;
    if (d->store) {
        orr_arena_destroy(d->store->arena);
        orr_intern_destroy(d->store->names);
        orr_free(d->store->rows);
        orr_free(d->store->runs);
    }
    orr_free(d->store);
    orr_free(d);
}

/* ======== Two runs side by side, as text and as JSON. */

static orr_code hand_over(const orr_diff *d, orr_buf *b, orr_str *out, orr_error *err)
{
    const char *text =
        b->failed ? NULL : orr_arena_text(d->store->arena, (orr_str){(char *)b->ptr, b->len});
    *out = (orr_str){text ? text : "", text ? b->len : 0};
    orr_buf_fini(b);
    return text ? ORR_OK : orr_no_memory(err);
}

/* ---- text ---- */

static const char *time_cell(orr_arena *a, orr_ps t)
{
    char text[ORR_UNIT_ROOM];
    return orr_arena_text(a, orr_str_of(orr_time_text(t, text)));
}

static const char *change_cell(orr_arena *a, orr_ps from, orr_ps to)
{
    char text[ORR_UNIT_ROOM];
    const orr_ps by = to - from;
    return orr_arena_print(a, "%s%s",
                           by < 0   ? "-"
                           : by > 0 ? "+"
                                    : "",
                           orr_time_text(by < 0 ? -by : by, text));
}

static const char *percent_cell(orr_arena *a, orr_ps from, orr_ps to)
{
    if (from == to)
        return "0.0%";
    return from ? orr_arena_print(a, "%+.1f%%", ((double)to - (double)from) * 100 / (double)from)
                : "new";
}

static void put_times(orr__table *t, orr_ps first, orr_ps second)
{
    orr__table_add(t, time_cell(t->arena, first));
    orr__table_add(t, time_cell(t->arena, second));
    orr__table_add(t, change_cell(t->arena, first, second));
    orr__table_add(t, percent_cell(t->arena, first, second));
}

static void put_heading(orr__table *t, const char *what)
{
    static const char *const words[] = {"first", "second", "change", "%"};
    orr__table_add(t, what);
    if (t->columns == 6)
        orr__table_add(t, "count");
    for (int i = 0; i < 4; i++)
        orr__table_add(t, words[i]);
}

static void put_whole(const orr_diff *d, const orr_diff_style *style, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 5, .left = 1};
    for (int run = 0; run < 2; run++)
        orr_buf_print(b, "%s: %s, %u rank%s\n", run ? "second" : "first",
                      run ? style->second : style->first, d->ranks[run],
                      d->ranks[run] == 1 ? "" : "s");
    orr_buf_byte(b, '\n');
    put_heading(&t, "");
    orr__table_add(&t, "from begin to end");
    put_times(&t, d->whole[0], d->whole[1]);
    orr__table_print(&t, b);
}

static void put_kinds(const orr_diff *d, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 5, .left = 1};
    orr_buf_text(b, "\nBy kind, time per rank\n");
    put_heading(&t, "");
    for (size_t i = 0; i < d->kind_count; i++) {
        orr__table_add(&t, orr__cell_text(t.arena, d->kinds[i].name));
        put_times(&t, orr__diff_mean(d, &d->kinds[i], 0), orr__diff_mean(d, &d->kinds[i], 1));
    }
    orr__table_print(&t, b);
}

static void put_parts(const orr_diff *d, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 5, .left = 1};
    orr_buf_text(b, "\nWhere the time of a rank goes\n");
    put_heading(&t, "");
    for (size_t i = 0; i < d->part_count; i++) {
        const orr_diff_row *r = &d->parts[i];
        if (r->time[0] == 0 && r->time[1] == 0)
            continue;
        orr__table_add(&t, orr__cell_text(t.arena, r->name));
        put_times(&t, r->count[0] ? r->time[0] / (orr_ps)r->count[0] : 0,
                  r->count[1] ? r->time[1] / (orr_ps)r->count[1] : 0);
    }
    orr__table_print(&t, b);
}

static const char *count_cell(orr_arena *a, const orr_diff_row *r)
{
    char first[ORR_UNIT_ROOM], second[ORR_UNIT_ROOM];
    if (r->count[0] == r->count[1])
        return orr__cell_count(a, r->count[0]);
    return orr_arena_print(a, "%s/%s", orr_count_text(r->count[0], first),
                           orr_count_text(r->count[1], second));
}

static void put_operators(const orr_diff *d, size_t most, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 6, .left = 1};
    const size_t shown = most && most < d->operator_count ? most : d->operator_count;
    orr_buf_print(b, "\nBy operator, time per rank");
    if (shown < d->operator_count)
        orr_buf_print(b, ", the first %zu of %zu", shown, d->operator_count);
    orr_buf_byte(b, '\n');
    put_heading(&t, "");
    for (size_t i = 0; i < shown; i++) {
        const orr_diff_row *r = &d->operators[i];
        orr__table_add(&t, orr__cell_text(t.arena, r->name));
        orr__table_add(&t, count_cell(t.arena, r));
        put_times(&t, orr__diff_mean(d, r, 0), orr__diff_mean(d, r, 1));
    }
    orr__table_print(&t, b);
}

orr_code orr_diff_text(const orr_diff *d, const orr_diff_style *style, orr_str *out, orr_error *err)
{
    orr_buf b = {0};
    put_whole(d, style, &b);
    if (d->part_count)
        put_parts(d, &b);
    else
        put_kinds(d, &b);
    put_operators(d, style->most, &b);
    return hand_over(d, &b, out, err);
}

/* ---- JSON ---- */

static void put_pair(orr_json_writer *w, const char *key, int64_t first, int64_t second)
{
    orr_json_put_array(w, key);
    orr_json_i64(w, first);
    orr_json_i64(w, second);
    orr_json_end_array(w);
}

static void put_row(orr_json_writer *w, const orr_diff *d, const orr_diff_row *r, bool is_kind)
{
    orr_json_begin_object(w);
    if (!is_kind) {
        orr_json_key(w, "name");
        orr_json_str(w, r->name);
    }
    orr_json_put_text(w, "kind", orr_span_kind_name(r->kind));
    put_pair(w, "count", (int64_t)r->count[0], (int64_t)r->count[1]);
    put_pair(w, "time_ps", r->time[0], r->time[1]);
    put_pair(w, "time_of_a_rank_ps", orr__diff_mean(d, r, 0), orr__diff_mean(d, r, 1));
    orr_json_end_object(w);
}

static const char *const part_keys[ORR__DIFF_PARTS] = {
    "compute", "exposed_communication", "remote_memory", "host", "waiting", "bubble", "idle"};

static void put_rows(
    orr_json_writer *w, const char *key, const orr_diff *d, const orr_diff_row *rows, size_t count)
{
    orr_json_put_array(w, key);
    for (size_t i = 0; i < count; i++)
        put_row(w, d, &rows[i], rows == d->kinds);
    orr_json_end_array(w);
}

orr_code orr_diff_json(const orr_diff *d, const orr_diff_style *style, orr_str *out, orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    const size_t most = style->most;
    orr_json_writer_init(&w, &b, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_T("format", "orrery-diff"), ORR_U("version", 1));
    if (style->program) {
        orr_json_put_text(&w, "program", style->program);
    }
    orr_json_put_array(&w, "inputs");
    orr_json_text(&w, style->first);
    orr_json_text(&w, style->second);
    orr_json_end_array(&w);
    put_pair(&w, "ranks", d->ranks[0], d->ranks[1]);
    put_pair(&w, "whole_ps", d->whole[0], d->whole[1]);
    if (d->part_count) {
        orr_json_put_object(&w, "parts_of_a_rank_ps");
        for (size_t i = 0; i < d->part_count; i++) {
            const orr_diff_row *r = &d->parts[i];
            put_pair(&w, part_keys[i], r->count[0] ? r->time[0] / (orr_ps)r->count[0] : 0,
                     r->count[1] ? r->time[1] / (orr_ps)r->count[1] : 0);
        }
        orr_json_end_object(&w);
    }
    put_rows(&w, "kinds", d, d->kinds, d->kind_count);
    put_rows(&w, "operators", d, d->operators,
             most && most < d->operator_count ? most : d->operator_count);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return hand_over(d, &b, out, err);
}
