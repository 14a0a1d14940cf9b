/* SPDX-License-Identifier: Apache-2.0 */
/* match_table.c - measured operators from a CSV file: docs/format/operators.md.
 *
 * The first line names the columns, so tables with more of them can be used as they are.  Rows stand in the order in which
 * operators began, so an operator that calls stands above those it calls. */
#include "match_impl.h"

#include "base/formats/csv.h"
#include "base/text/number.h"
#include "base/text/text.h"

enum { OP, SHAPES, COUNT, GPU_US, PARENT, COLUMNS };
enum { RANK_MOST = 64, TENSORS_MOST = 4096, SHOWN = 60 };
#define TIME_MOST 1e12 /* microseconds */

static const char *const columns[COLUMNS] = {"op", "shapes", "count", "gpu_us", "parent"};

typedef struct table {
    match *m;
    orr_csv csv;
    size_t place[COLUMNS];
    operator_tensor *tensors;
    size_t tensor_room;
    uint64_t *dims;
    size_t dim_count, dim_room;
    orr_intern *ops;  /* names as they stand */
    uint32_t *latest; /* by name: the last row that has it */
    size_t latest_room;
    orr_error *err;
} table;

static orr_code fail_at(const table *t, const orr_csv_field *f, const char *expected)
{
    const orr_where w = orr_csv_where(&t->csv, f);
    const size_t n = f->text.len < SHOWN ? f->text.len : SHOWN;
    return orr_fail(t->err, ORR_EINPUT, &w, "\"%.*s\": %s", (int)n, f->text.ptr, expected);
}

/* ---- the line of names ---- */

static orr_code read_names(table *t, const orr_csv_row *row)
{
    const orr_where top = orr_where_line(t->csv.path, row->line, 1);
    for (int i = 0; i < COLUMNS; i++) {
        t->place[i] = SIZE_MAX;
        for (size_t k = 0; k < row->count; k++) {
            if (!orr_str_is(row->fields[k].text, columns[i]))
                continue;
            if (t->place[i] != SIZE_MAX)
                return fail_at(t, &row->fields[k], "a second column of this name");
            t->place[i] = k;
        }
        if (t->place[i] == SIZE_MAX)
            return orr_fail(
                t->err, ORR_EINPUT, &top,
                "no column %s: the first line names the columns op, shapes, count, gpu_us and "
                "parent",
                columns[i]);
    }
    return ORR_OK;
}

/* ---- rows ---- */

/* 8x1024x768|768: digits, 'x' between the sizes of a tensor, '|' between tensors. */
static orr_code read_sizes(table *t, const orr_csv_field *f, size_t *tensors)
{
    const char *at = f->text.ptr, *end = at + f->text.len;
    t->dim_count = 0;
    *tensors = 0;
    while (at < end) {
        uint64_t size = 0;
        const char *first = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*at - '0'), &size))
                return fail_at(t, f, "a size does not fit into 64 bits");
        }
        const bool ends = at == end || *at == '|', goes_on = at < end && *at == 'x';
        if (at == first || !(ends || goes_on) || (at < end && at + 1 == end))
            return fail_at(t, f, "shapes were expected, as in 8x1024x768|768");
        if (!orr_grow(&t->dims, &t->dim_room, t->dim_count + 1) ||
            !orr_grow(&t->tensors, &t->tensor_room, *tensors + 1))
            return orr_no_memory(t->err);
        if (t->dim_count == 0 || first[-1] == '|')
            t->tensors[*tensors] = (operator_tensor){.rank = 0};
        t->dims[t->dim_count++] = size;
        if (++t->tensors[*tensors].rank > RANK_MOST)
            return fail_at(t, f, "a tensor of more than 64 dimensions");
        if (ends && ++*tensors > TENSORS_MOST)
            return fail_at(t, f, "more than 4,096 tensors");
        at += at < end;
    }
    return ORR_OK;
}

/* Only now do the sizes stay where they are. */
static void place_shapes(table *t, size_t tensors)
{
    const uint64_t *at = t->dims;
    for (size_t i = 0; i < tensors; i++) {
        t->tensors[i].shape = at;
        at += t->tensors[i].rank;
    }
}

static orr_code read_time(table *t, const orr_csv_field *f, orr_ps *out)
{
    double us;
    if (!orr_text_double(f->text, &us) || !(us >= 0 && us <= TIME_MOST))
        return fail_at(t, f, "microseconds were expected, 0 to 1e12");
    *out = (orr_ps)(us * 1e6 + 0.5);
    t->m->sides[MATCH_MEASURED].has_times |= *out > 0;
    return ORR_OK;
}

static orr_code read_caller(table *t, const orr_csv_field *f, uint32_t *out)
{
    uint32_t name;
    *out = MATCH_NONE;
    if (f->text.len == 0)
        return ORR_OK;
    if (!orr_intern_find(t->ops, f->text, &name) || t->latest[name] == MATCH_NONE)
        return fail_at(t, f,
                       "no row above has this operator, which is said to call the one in this row");
    *out = t->latest[name];
    return ORR_OK;
}

static orr_code note_row(table *t, orr_str op)
{
    uint32_t name;
    if (!orr_intern_add(t->ops, op, &name) ||
        !orr_grow(&t->latest, &t->latest_room, (size_t)name + 1))
        return orr_no_memory(t->err);
    t->latest[name] = (uint32_t)(t->m->sides[MATCH_MEASURED].count - 1);
    return ORR_OK;
}

static orr_code read_row(table *t, const orr_csv_row *row)
{
    const orr_where w = orr_where_line(t->csv.path, row->line, 1);
    match_draft draft = {.count = 0};
    const orr_csv_field *f[COLUMNS];
    size_t tensors = 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (t->place[i] >= row->count)
            return orr_fail(t->err, ORR_EINPUT, &w, "%zu fields: there is none for %s", row->count,
                            columns[i]);
        f[i] = &row->fields[t->place[i]];
    }
    if (f[OP]->text.len == 0)
        return fail_at(t, f[OP], "the name of an operator was expected");
    orr_code code = read_sizes(t, f[SHAPES], &tensors);
    if (code ||
        (code = orr_csv_u64(&t->csv, f[COUNT], "count", 0, UINT32_MAX, &draft.count, t->err)) ||
        (code = read_time(t, f[GPU_US], &draft.time)) ||
        (code = read_caller(t, f[PARENT], &draft.caller)))
        return code;
    place_shapes(t, tensors);
    draft.call =
        (operator_call){.name = f[OP]->text, .in = t->tensors, .in_count = (uint32_t)tensors};
    if ((code = match_add(t->m, MATCH_MEASURED, &draft, t->err)))
        return code;
    return note_row(t, f[OP]->text);
}

static orr_code read_table(table *t)
{
    const orr_where top = orr_where_line(t->csv.path, 1, 1);
    orr_csv_row row;
    orr_code code = orr_csv_next(&t->csv, &row, t->err);
    if (code == ORR_END)
        return orr_fail(
            t->err, ORR_EINPUT, &top,
            "empty: a line \"op,shapes,count,gpu_us,parent\" and operators were expected");
    if (code || (code = read_names(t, &row)))
        return code;
    while ((code = orr_csv_next(&t->csv, &row, t->err)) == ORR_OK) {
        if ((code = read_row(t, &row)))
            return code;
    }
    if (code == ORR_END && t->m->sides[MATCH_MEASURED].count == 0)
        return orr_fail(t->err, ORR_EINPUT, &top, "no operators behind the line of names");
    return code == ORR_END ? ORR_OK : code;
}

orr_code match_table(match *m, orr_span bytes, const char *label, orr_error *err)
{
    table t = {.m = m, .ops = orr_intern_create(), .err = err};
    if (!t.ops)
        return orr_no_memory(err);
    orr_csv_init(&t.csv, bytes, label);
    const orr_code code = read_table(&t);
    orr_csv_fini(&t.csv);
    orr_intern_destroy(t.ops);
    orr_free(t.tensors);
    orr_free(t.dims);
    orr_free(t.latest);
    return code;
}
