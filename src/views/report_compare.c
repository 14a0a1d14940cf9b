/* SPDX-License-Identifier: Apache-2.0 */
/* report_compare.c - two or more runs side by side: how long a rank spends on what.
 *
 * Names of operators are those of info: numbers that count layers or calls do not part them.  Collectives go by their
 * type and messages by their direction, because a kernel of a measured run and a node of a trace are never called the
 * same.  Rows are ordered by the largest difference from the first run. */
#include "info_impl.h"
#include "report_impl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ROWS = 200 };

/* ---- gathering ---- */

static orr_str name_of(const orr__study *s, const orr_timespan *span, char room[ORR__NAME_ROOM])
{
    switch (span->kind) {
    case ORR_SPAN_COLLECTIVE:
        if (span->collective)
            return orr_str_of(orr__collective_text(span->collective));
        break;
    case ORR_SPAN_SEND:
        return orr_str_of("send");
    case ORR_SPAN_RECEIVE:
        return orr_str_of("receive");
    default:
        break;
    }
    return orr__operator_group(orr_timeline_text(s->t, span->name), room);
}

static bool add_sum(orr__sums *o, uint8_t kind, orr_str name, double ns)
{
    char key[ORR__NAME_ROOM + 1];
    const size_t len = name.len < ORR__NAME_ROOM ? name.len : ORR__NAME_ROOM;
    uint32_t number;
    key[0] = (char)('0' + kind);
    if (len)
        memcpy(key + 1, name.ptr, len);
    if (!orr_intern_add(o->names, (orr_str){key, len + 1}, &number))
        return false;
    const size_t before = o->room;
    if (!orr_grow(&o->ns, &o->room, (size_t)number + 1))
        return false;
    if (o->room > before)
        memset(o->ns + before, 0, (o->room - before) * sizeof *o->ns);
    o->ns[number] += ns;
    return true;
}

/* Sums by text and kind first: names repeat, and each is looked at once. */
typedef struct summing {
    orr__study *s;
    orr_map *seen;
    orr__ps_sum *sums;
    uint32_t *example; /* a span of each */
    size_t room, example_room;
    uint32_t count;
    uint32_t *around; /* spans of the host that are open on this track, the innermost last */
    size_t depth, around_room;
} summing;

static bool row_of(summing *m, uint32_t i, uint32_t *out)
{
    const orr_timespan *span = &m->s->p->spans[i];
    const uint64_t key = (uint64_t)span->name << 16 | (uint64_t)span->kind << 8 | span->collective;
    *out = orr_map_find(m->seen, key, ORR__NO_PLACE);
    if (*out != ORR__NO_PLACE)
        return true;
    *out = m->count++;
    if (!orr_map_put(m->seen, key, *out, NULL) || !orr_grow(&m->sums, &m->room, m->count) ||
        !orr_grow(&m->example, &m->example_room, m->count))
        return false;
    m->sums[*out] = 0;
    m->example[*out] = i;
    return true;
}

static bool is_host(const orr_timespan *span)
{
    return span->kind == ORR_SPAN_HOST || span->kind == ORR_SPAN_OTHER;
}

/* A call of the host that lies in another is time of its own, not of the other: taken off there. */
static bool take_off(summing *m, uint32_t i)
{
    const orr_timespan *spans = m->s->p->spans, *span = &spans[i];
    uint32_t row;
    while (m->depth && spans[m->around[m->depth - 1]].end <= span->start)
        m->depth--;
    if (m->depth && span->end <= spans[m->around[m->depth - 1]].end) {
        if (!row_of(m, m->around[m->depth - 1], &row))
            return false;
        m->sums[row] -= span->end - span->start;
    }
    if (!orr_grow(&m->around, &m->around_room, m->depth + 1))
        return false;
    m->around[m->depth++] = i;
    return true;
}

static bool sum_track(summing *m, uint32_t track)
{
    const orr_timeline_parts *p = m->s->p;
    m->depth = 0;
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        const uint32_t i = p->order[k];
        const orr_timespan *span = &p->spans[i];
        uint32_t row;
        if (span->kind == ORR_SPAN_PHASE)
            continue;
        if (!row_of(m, i, &row) || (is_host(span) && !take_off(m, i)))
            return false;
        m->sums[row] += span->end - m->s->since[i];
    }
    return true;
}

static bool add_spans(orr__study *s, orr__sums *out)
{
    summing m = {.s = s, .seen = orr_map_create(0)};
    bool ok = m.seen != NULL;
    for (uint32_t track = 0; ok && track < s->p->track_count; track++)
        if (s->place_of_track[track] != ORR__NO_PLACE)
            ok = sum_track(&m, track);
    for (uint32_t k = 0; ok && k < m.count; k++) {
        char name[ORR__NAME_ROOM];
        const orr_timespan *span = &s->p->spans[m.example[k]];
        const double ns = (double)m.sums[k] / 1000 / s->rank_count;
        ok = add_sum(out, span->kind, name_of(s, span, name), ns) &&
             add_sum(out, span->kind, (orr_str){"", 0}, ns);
    }
    orr_map_destroy(m.seen);
    orr_free(m.sums);
    orr_free(m.example);
    orr_free(m.around);
    return ok;
}

orr_code orr__study_sums(orr__study *s, orr__sums *out)
{
    out->names = orr_intern_create();
    return out->names && add_spans(s, out) ? ORR_OK : orr_no_memory(s->err);
}

void orr__sums_fini(orr__sums *s)
{
    orr_intern_destroy(s->names);
    orr_free(s->ns);
    *s = (orr__sums){0};
}

/* ---- comparing ---- */

typedef struct row {
    orr_str key;
    double difference;
} row;

static double value_of(const orr__sums *s, orr_str key)
{
    uint32_t number;
    return orr_intern_find(s->names, key, &number) ? s->ns[number] : 0;
}

static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if ((x->key.len == 1) != (y->key.len == 1))
        return x->key.len == 1 ? -1 : 1; /* whole kinds first */
    if (x->difference != y->difference)
        return x->difference > y->difference ? -1 : 1;
    const size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    const int order = memcmp(x->key.ptr, y->key.ptr, n);
    return order ? order : x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
}

static void put_row(const row *r, const orr__sums *sums, uint32_t count, orr_json_writer *w)
{
    const char *kind = orr_span_kind_name((orr_span_kind)(r->key.ptr[0] - '0'));
    const bool is_kind = r->key.len == 1;
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    if (is_kind)
        orr_json_text(w, kind);
    else
        orr_json_str(w, (orr_str){r->key.ptr + 1, r->key.len - 1});
    orr_json_key(w, "kind");
    orr_json_text(w, kind);
    orr_json_key(w, "is_kind");
    orr_json_bool(w, is_kind);
    orr_json_key(w, "ns");
    orr_json_begin_array(w);
    for (uint32_t i = 0; i < count; i++)
        orr_json_double(w, value_of(&sums[i], r->key));
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static size_t list_rows(const orr__sums *sums, uint32_t count, orr_intern *all, row **rows)
{
    size_t n = 0, room = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < orr_intern_count(sums[i].names); k++) {
            uint32_t number;
            if (!orr_intern_add(all, orr_intern_get(sums[i].names, k), &number))
                return SIZE_MAX;
        }
    for (; n < orr_intern_count(all); n++) {
        if (!orr_grow(rows, &room, n + 1))
            return SIZE_MAX;
        (*rows)[n] = (row){.key = orr_intern_get(all, (uint32_t)n)};
        for (uint32_t i = 1; i < count; i++) {
            const double d =
                fabs(value_of(&sums[i], (*rows)[n].key) - value_of(&sums[0], (*rows)[n].key));
            if (d > (*rows)[n].difference)
                (*rows)[n].difference = d;
        }
    }
    return n;
}

void orr__put_comparison(const orr__sums *sums, uint32_t count, orr_json_writer *w)
{
    row *rows = NULL;
    orr_intern *all = orr_intern_create();
    const size_t n = all ? list_rows(sums, count, all, &rows) : SIZE_MAX;
    orr_json_key(w, "comparison");
    if (n == SIZE_MAX) {
        w->to->failed = true;
        orr_json_null(w);
    } else {
        if (n)
            qsort(rows, n, sizeof *rows, compare_rows);
        orr_json_begin_object(w);
        orr_json_key(w, "rows");
        orr_json_begin_array(w);
        for (size_t i = 0; i < n && i < MOST_ROWS; i++)
            put_row(&rows[i], sums, count, w);
        orr_json_end_array(w);
        orr_json_key(w, "rows_left_out");
        orr_json_u64(w, n > MOST_ROWS ? n - MOST_ROWS : 0);
        orr_json_end_object(w);
    }
    orr_free(rows);
    orr_intern_destroy(all);
}
