/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_table.c - reads a database into rows and columns, works out measures, filters, sorts.
 *
 * Columns: the axes, the measures, then every figure that any point has, in the order in which they
 * are first met.  A point that lacks one has nothing there.  The order of rows is that of the points
 * unless sorted; equal keys keep it. */
#include "sweep_table.h"

#include "base/formats/json.h"
#include "base/text/nearest.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_COLUMNS = 5000, BRIEF_FIGURES = 6 };

typedef struct table_reader {
    orr_sweep_table *t;
    const orr_sweep_query *q;
    orr_sqlite *db;
    size_t axis_count, fixed; /* fixed: axes and measures */
    swp_expr **measures;
    orr_error *err;
} table_reader;

/* ---- columns ---- */

static orr_code add_column(orr_sweep_table *t, orr_str name, swp_column_kind kind, orr_error *err)
{
    if (t->column_count == MOST_COLUMNS)
        return orr_fail(err, ORR_EINPUT, NULL, "more than %d columns", MOST_COLUMNS);
    if (!orr_grow(&t->columns, &t->column_room, t->column_count + 1))
        return orr_no_memory(err);
    const char *copy = orr_arena_text(t->arena, name), *shown = copy;
    /* A figure that is called like an axis or a measure has its command in front. */
    const char *command = t->commands ? strrchr(t->commands, ' ') : NULL;
    for (size_t i = 0; kind == SWP_FIGURE && i < t->column_count && shown == copy; i++)
        if (t->columns[i].kind != SWP_FIGURE && orr_str_is(name, t->columns[i].name))
            shown = orr_arena_print(t->arena, "%s.%s",
                                    command       ? command + 1
                                    : t->commands ? t->commands
                                                  : "result",
                                    copy);
    t->columns[t->column_count++] = (swp_column){shown, copy, kind};
    return copy && shown ? ORR_OK : orr_no_memory(err);
}

/* The columns of a row come in the same order as those of the row before: look there first. */
static orr_code find_column(table_reader *r, orr_str name, size_t *hint, uint32_t *out)
{
    orr_sweep_table *t = r->t;
    for (size_t i = 0; i < t->column_count - r->fixed; i++) {
        const size_t span = t->column_count - r->fixed;
        const size_t at = r->fixed + (*hint - r->fixed + i) % span;
        if (orr_str_is(name, t->columns[at].key)) {
            *out = (uint32_t)at;
            *hint = at + 1 < t->column_count ? at + 1 : r->fixed;
            return ORR_OK;
        }
    }
    *out = (uint32_t)t->column_count;
    return add_column(t, name, SWP_FIGURE, r->err);
}

orr_code swp_table_column(
    const orr_sweep_table *t, orr_str name, const char *what, uint32_t *out, orr_error *err)
{
    const char **names = orr_arena_new(t->arena, t->column_count + 1, const char *);
    if (!names)
        return orr_no_memory(err);
    for (size_t i = 0; i < t->column_count; i++) {
        names[i] = t->columns[i].name;
        if (swp_same_name(name, names[i])) {
            *out = (uint32_t)i;
            return ORR_OK;
        }
    }
    const char *near = orr_nearest(name, names);
    return orr_fail(err, ORR_EUSAGE, NULL, "%s: no column '%.*s'%s%s%s", what, (int)name.len,
                    name.ptr,
                    near ? "; did you mean '" : "; 'orrery sweep show --columns all' lists them",
                    near ? near : "", near ? "'?" : "");
}

/* ---- the head ---- */

static orr_code read_axes(table_reader *r, const char *json)
{
    orr_json *j;
    orr_json_value list, v;
    orr_code code =
        orr_json_open((orr_span){(const uint8_t *)json, strlen(json)}, "axes", &j, r->err);
    if (code)
        return code;
    code = orr_json_only(j, &list, r->err);
    if (!code)
        for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);) {
            orr_str name;
            code = orr_json_get_str(v, &name, r->err);
            if (!code)
                code = add_column(r->t, name, SWP_AXIS, r->err);
        }
    orr_json_close(j);
    r->axis_count = r->t->column_count;
    return code;
}

static orr_code read_measure(table_reader *r, orr_json_value pair)
{
    orr_json_iter it = orr_json_iterate(pair);
    orr_json_value name, text;
    orr_str n, e;
    if (!orr_json_next_value(&it, &name) || !orr_json_next_value(&it, &text))
        return orr_fail(r->err, ORR_EINPUT, NULL, "damaged: measures");
    orr_code code = orr_json_get_str(name, &n, r->err);
    if (!code)
        code = orr_json_get_str(text, &e, r->err);
    if (!code)
        code = add_column(r->t, n, SWP_MEASURE, r->err);
    const orr_where w = orr_where_line(r->t->columns[r->t->column_count - 1].name, 0, 0);
    return code ? code
                : swp_expr_parse(e, &w, &r->measures[r->t->column_count - 1 - r->axis_count],
                                 r->err);
}

static orr_code read_measures(table_reader *r, const char *json)
{
    orr_json *j;
    orr_json_value list, v;
    orr_code code =
        orr_json_open((orr_span){(const uint8_t *)json, strlen(json)}, "measures", &j, r->err);
    if (code)
        return code;
    code = orr_json_only(j, &list, r->err);
    r->measures = code ? NULL : orr_arena_new(r->t->arena, orr_json_count(list) + 1, swp_expr *);
    if (!code && !r->measures)
        code = orr_no_memory(r->err);
    if (!code)
        for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
            code = read_measure(r, v);
    orr_json_close(j);
    r->fixed = r->t->column_count;
    return code;
}

static orr_code read_head(table_reader *r)
{
    orr_sweep_table *t = r->t;
    const char *axes = NULL, *measures = NULL;
    const struct {
        const char *key, **to;
    } texts[] = {{"title", &t->title},     {"goal", &t->goal}, {"commands", &t->commands},
                 {"program", &t->program}, {"axes", &axes},    {"measures", &measures}};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !code; i++)
        code = swp_store_head(r->db, texts[i].key, t->arena, texts[i].to, r->err);
    if (!code && !axes)
        code =
            orr_fail(r->err, ORR_EINPUT, NULL, "a cache of results, not the database of a sweep");
    if (!code)
        code = read_axes(r, axes);
    return code ? code : read_measures(r, measures ? measures : "[]");
}

/* ---- rows ---- */

static swp_value json_value(orr_arena *a, orr_json_value v)
{
    swp_value out = {.kind = SWP_NONE};
    const orr_json_type type = orr_json_type_of(v);
    orr_str text = orr_json_raw(v);
    if (type == ORR_JSON_STRING && orr_json_get_str(v, &text, NULL) != ORR_OK)
        return out;
    const char *copy = orr_arena_text(a, text);
    if (!copy)
        return out;
    out.text = (orr_str){copy, text.len};
    if (type == ORR_JSON_STRING) {
        out.kind = SWP_TEXT;
    } else if (type == ORR_JSON_BOOL) {
        out.kind = SWP_NUMBER;
        out.number = copy[0] == 't';
    } else if (orr_json_get_double(v, &out.number, NULL) == ORR_OK && isfinite(out.number)) {
        out.kind = SWP_NUMBER;
    }
    return out;
}

typedef struct row_cell {
    uint32_t column;
    swp_value value;
} row_cell;

/* The figures of a row, with their columns; the table may get wider. */
static orr_code read_figures(table_reader *r, orr_str data, row_cell **cells, size_t *count)
{
    orr_json *j;
    orr_json_value root, v;
    orr_str key;
    orr_code code =
        orr_json_open((orr_span){(const uint8_t *)data.ptr, data.len}, "result", &j, r->err);
    if (code)
        return code;
    code = orr_json_only(j, &root, r->err);
    *count = 0;
    *cells = code ? NULL : orr_arena_new(r->t->arena, orr_json_count(root) + 1, row_cell);
    if (!code && !*cells)
        code = orr_no_memory(r->err);
    size_t hint = r->fixed;
    if (!code)
        for (orr_json_iter it = orr_json_iterate(root);
             !code && orr_json_next_member(&it, &key, &v);) {
            row_cell *c = &(*cells)[*count];
            code = find_column(r, key, &hint, &c->column);
            c->value = json_value(r->t->arena, v);
            *count += !code;
        }
    orr_json_close(j);
    return code;
}

static orr_code read_point_axes(table_reader *r, orr_str json, swp_value *values)
{
    orr_json *j;
    orr_json_value list, v;
    size_t k = 0;
    orr_code code =
        orr_json_open((orr_span){(const uint8_t *)json.ptr, json.len}, "axes", &j, r->err);
    if (code)
        return code;
    code = orr_json_only(j, &list, r->err);
    if (!code)
        for (orr_json_iter it = orr_json_iterate(list);
             k < r->axis_count && orr_json_next_value(&it, &v);) {
            orr_str text;
            if (orr_json_get_str(v, &text, NULL) != ORR_OK)
                break;
            const char *copy = orr_arena_text(r->t->arena, text);
            if (!copy)
                break;
            values[k++] = swp_value_of(orr_str_of(copy));
        }
    orr_json_close(j);
    return code || k == r->axis_count
               ? code
               : orr_fail(r->err, ORR_EINPUT, NULL, "damaged: the axes of a point");
}

/* Cells first, places in the row when all columns are known. */
typedef struct raw_row {
    swp_row row;
    swp_value *axes;
    row_cell *cells;
    size_t cell_count;
} raw_row;

static orr_code read_row(table_reader *r, orr_sqlite_rows *rows, raw_row *out)
{
    *out = (raw_row){.row = {.point = (uint64_t)orr_sqlite_i64(rows, 0, 0),
                             .ns = (uint64_t)orr_sqlite_i64(rows, 3, 0)}};
    const int64_t status = orr_sqlite_i64(rows, 2, SWP_OPEN);
    out->row.status = status >= SWP_OK && status <= SWP_LOST ? (swp_status)status : SWP_OPEN;
    out->axes = orr_arena_new(r->t->arena, r->axis_count + 1, swp_value);
    if (!out->axes)
        return orr_no_memory(r->err);
    orr_code code = read_point_axes(r, orr_sqlite_text(rows, 1), out->axes);
    if (!code && out->row.status == SWP_OK)
        code = read_figures(r, orr_sqlite_text(rows, 4), &out->cells, &out->cell_count);
    else if (!code && !(out->row.error = orr_arena_text(r->t->arena, orr_sqlite_text(rows, 4))))
        code = orr_no_memory(r->err);
    return code;
}

static orr_code place_rows(table_reader *r, raw_row *raw, size_t count)
{
    orr_sweep_table *t = r->t;
    for (size_t i = 0; i < count; i++) {
        swp_row row = raw[i].row;
        t->failed += row.status == SWP_FAILED || row.status == SWP_LOST;
        t->open += row.status == SWP_OPEN;
        if (row.status != SWP_OK && !r->q->with_failed)
            continue;
        row.values = orr_arena_new(t->arena, t->column_count + 1, swp_value);
        if (!row.values || !orr_grow(&t->rows, &t->row_room, t->row_count + 1))
            return orr_no_memory(r->err);
        if (r->axis_count)
            memcpy(row.values, raw[i].axes, r->axis_count * sizeof *row.values);
        for (size_t k = 0; k < raw[i].cell_count; k++)
            row.values[raw[i].cells[k].column] = raw[i].cells[k].value;
        t->rows[t->row_count++] = row;
    }
    return ORR_OK;
}

static orr_code read_rows(table_reader *r)
{
    orr_sqlite_rows *rows;
    raw_row *raw = NULL;
    size_t count = 0, room = 0;
    orr_code code =
        orr_sqlite_select(r->db,
                          "SELECT p.point, p.axes, r.status, r.ns, r.data FROM points p "
                          "LEFT JOIN results r ON r.hash = p.hash ORDER BY p.point",
                          &rows, r->err);
    while (!code && (code = orr_sqlite_next(rows, r->err)) == ORR_OK) {
        if (!orr_grow(&raw, &room, count + 1))
            code = orr_no_memory(r->err);
        else
            code = read_row(r, rows, &raw[count++]);
    }
    orr_sqlite_end(rows);
    if (code == ORR_END)
        code = place_rows(r, raw, count);
    r->t->point_count = count;
    orr_free(raw);
    return code;
}

/* ---- measures, filter, order ---- */

static const char **all_names(const orr_sweep_table *t)
{
    const char **names = orr_arena_new(t->arena, t->column_count + 1, const char *);
    for (size_t i = 0; names && i < t->column_count; i++)
        names[i] = t->columns[i].name;
    return names;
}

static orr_code work_out_measures(table_reader *r, const char **names)
{
    orr_code code = ORR_OK;
    orr_sweep_table *t = r->t;
    /* Without a single result there are no figures to name. */
    for (size_t i = r->axis_count; i < r->fixed && !code && t->column_count > r->fixed; i++) {
        code = swp_expr_bind(r->measures[i - r->axis_count], names, r->err);
        for (size_t k = 0; k < t->row_count && !code; k++)
            t->rows[k].values[i] =
                swp_expr_evaluate(r->measures[i - r->axis_count], t->rows[k].values);
    }
    return code;
}

static orr_code parse_option(
    table_reader *r, const char *what, const char *text, const char **names, swp_expr **out)
{
    orr_code code = swp_expr_parse(orr_str_of(text), NULL, out, r->err);
    /* Without a single result there are no figures to name, and no rows to judge. */
    const bool has_figures = r->t->column_count > r->fixed;
    if (!code && has_figures && (code = swp_expr_bind(*out, names, r->err))) {
        swp_expr_free(*out);
        *out = NULL;
    }
    return code ? orr_because(r->err, ORR_EUSAGE, "%s", what) : ORR_OK;
}

static orr_code filter(table_reader *r, const char **names)
{
    swp_expr *e;
    orr_sweep_table *t = r->t;
    size_t kept = 0;
    if (!r->q->where)
        return ORR_OK;
    const orr_code code = parse_option(r, "--where", r->q->where, names, &e);
    if (code)
        return ORR_EUSAGE;
    for (size_t i = 0; i < t->row_count && t->column_count > r->fixed; i++)
        if (swp_is_true(swp_expr_evaluate(e, t->rows[i].values)))
            t->rows[kept++] = t->rows[i];
    t->row_count = kept;
    swp_expr_free(e);
    return ORR_OK;
}

static int compare_keys(const swp_row *a, const swp_row *b)
{
    if (a->key.kind != b->key.kind)
        return a->key.kind == SWP_NONE   ? 1
               : b->key.kind == SWP_NONE ? -1
               : a->key.kind == SWP_TEXT ? 1
                                         : -1;
    if (a->key.kind == SWP_NUMBER)
        return (a->key.number > b->key.number) - (a->key.number < b->key.number);
    if (a->key.kind == SWP_NONE)
        return 0;
    const size_t n = a->key.text.len < b->key.text.len ? a->key.text.len : b->key.text.len;
    const int c = memcmp(a->key.text.ptr, b->key.text.ptr, n);
    return c ? c : (a->key.text.len > b->key.text.len) - (a->key.text.len < b->key.text.len);
}

static int compare_rows(const void *x, const void *y)
{
    const swp_row *a = x, *b = y;
    const int c = compare_keys(a, b);
    return c ? c : (a->point > b->point) - (a->point < b->point);
}

static orr_code sort(table_reader *r, const char **names)
{
    orr_sweep_table *t = r->t;
    const char *text = r->q->sort;
    double sign = 1;
    swp_expr *e;
    if (r->q->by_goal) {
        if (!t->goal || !*t->goal)
            return orr_fail(r->err, ORR_EUSAGE, NULL,
                            "the sweep has no goal: give --sort NAME, or 'goal: min NAME' in the "
                            "specification");
        sign = orr_str_begins(orr_str_of(t->goal), "max") ? -1 : 1;
        text = t->goal + 4;
    }
    if (!text)
        return ORR_OK;
    const orr_code code = parse_option(r, r->q->by_goal ? "goal" : "--sort", text, names, &e);
    if (code)
        return ORR_EUSAGE;
    for (size_t i = 0; i < t->row_count && t->column_count > r->fixed; i++) {
        t->rows[i].key = swp_expr_evaluate(e, t->rows[i].values);
        t->rows[i].key.number *= sign;
    }
    swp_expr_free(e);
    if (t->row_count)
        qsort(t->rows, t->row_count, sizeof *t->rows, compare_rows);
    return ORR_OK;
}

/* ---- which columns ---- */

static bool varies(const orr_sweep_table *t, size_t column)
{
    const swp_value *first = NULL;
    for (size_t i = 0; i < t->row_count; i++) {
        const swp_value *v = &t->rows[i].values[column];
        if (v->kind != SWP_NUMBER)
            continue;
        if (first && first->number != v->number)
            return true;
        first = first ? first : v;
    }
    return false;
}

/* The axes, the measures, what the goal is; without those the first figures that vary. */
static void choose_brief(const table_reader *r)
{
    orr_sweep_table *t = r->t;
    uint32_t goal = UINT32_MAX, sorted = UINT32_MAX;
    size_t more = 0;
    if (t->goal && *t->goal)
        (void)!swp_table_column(t, orr_str_of(t->goal + 4), "", &goal, NULL);
    if (r->q->sort)
        (void)!swp_table_column(t, orr_str_of(r->q->sort + (*r->q->sort == '-')), "", &sorted,
                                NULL);
    for (uint32_t i = 0; i < t->column_count; i++) {
        bool is_shown = i < r->fixed || i == goal || i == sorted;
        if (!is_shown && r->fixed == r->axis_count && goal == UINT32_MAX && more < BRIEF_FIGURES &&
            varies(t, i)) {
            is_shown = true;
            more++;
        }
        if (is_shown)
            t->shown[t->shown_count++] = i;
    }
}

static orr_code choose_columns(table_reader *r)
{
    orr_sweep_table *t = r->t;
    const char *list = r->q->columns;
    size_t most = t->column_count + 1;
    for (const char *p = list; p && *p; p++)
        most += *p == ',';
    t->shown = orr_arena_new(t->arena, most, uint32_t);
    if (!t->shown)
        return orr_no_memory(r->err);
    if (!list && r->q->brief) {
        choose_brief(r);
        return ORR_OK;
    }
    if (!list || strcmp(list, "all") == 0) {
        for (uint32_t i = 0; i < t->column_count; i++)
            if (list || !r->q->only_varying || i < r->fixed || varies(t, i))
                t->shown[t->shown_count++] = i;
        return ORR_OK;
    }
    orr_code code = ORR_OK;
    for (const char *at = list; !code && *at;) {
        const size_t n = strcspn(at, ",");
        code =
            swp_table_column(t, (orr_str){at, n}, "--columns", &t->shown[t->shown_count], r->err);
        t->shown_count += !code;
        at += n + (at[n] == ',');
    }
    return code;
}

static orr_code fill_table(table_reader *r)
{
    orr_code code = read_head(r);
    if (!code)
        code = read_rows(r);
    const char **names = code ? NULL : all_names(r->t);
    if (!code && !names)
        code = orr_no_memory(r->err);
    if (!code)
        code = work_out_measures(r, names);
    if (!code)
        code = filter(r, names);
    if (!code)
        code = sort(r, names);
    if (!code && r->q->limit && r->t->row_count > r->q->limit)
        r->t->row_count = r->q->limit;
    return code ? code : choose_columns(r);
}

orr_code orr_sweep_table_open(const char *database,
                              const orr_sweep_query *q,
                              orr_sweep_table **out,
                              orr_error *err)
{
    table_reader r = {.q = q, .err = err};
    *out = NULL;
    orr_code code = swp_store_look(database, &r.db, err);
    if (code)
        return code;
    r.t = orr_alloc(1, sizeof *r.t);
    if (!r.t || !(r.t->arena = orr_arena_create()))
        code = orr_no_memory(err);
    if (!code) {
        r.t->with_failed = q->with_failed;
        code = fill_table(&r);
        if (code == ORR_EINPUT && err && !err->where.path[0])
            err->where = orr_where_line(database, 0, 0);
    }
    for (size_t i = 0; r.measures && i < r.t->column_count && r.measures[i]; i++)
        swp_expr_free(r.measures[i]);
    orr_sqlite_close(r.db);
    if (code)
        orr_sweep_table_close(r.t);
    else
        *out = r.t;
    return code;
}

void orr_sweep_table_close(orr_sweep_table *t)
{
    if (!t)
        return;
    orr_free(t->columns);
    orr_free(t->rows);
    orr_arena_destroy(t->arena);
    orr_free(t);
}
