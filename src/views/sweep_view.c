/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_view.c - reads a database into rows and columns, computes measures, filters, sorts.
 *
 * Columns: the axes, the measures, then every figure of any point, in order of first appearance.  A
 * point that lacks one has an empty cell.  The order of rows is that of the points unless sorted;
 * equal keys keep it. */
#include "base/formats/csv.h"

#include "base/formats/json.h"
#include "base/formats/zip_file.h"
#include "base/io/output.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "sweep/store.h"
#include "views_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum swp_column_kind { SWP_AXIS, SWP_MEASURE, SWP_FIGURE } swp_column_kind;

typedef struct swp_column {
    const char *name;
    const char *key; /* of a figure: its name in results */
    swp_column_kind kind;
} swp_column;

typedef struct swp_row {
    uint64_t point, ns;
    swp_status status;
    const char *error; /* of a failed point */
    swp_value *values; /* by column */
    swp_value key;     /* that it is sorted by */
} swp_row;

struct orr_sweep_table {
    orr_arena *arena;
    const char *title, *goal, *commands, *program;
    swp_column *columns;
    size_t column_count, column_room;
    swp_row *rows; /* those selected by the query, sorted */
    size_t row_count, row_room;
    uint32_t *shown; /* columns to show */
    size_t shown_count;
    uint64_t failed, open, point_count;
    bool with_failed;
};

/* As printed; NULL: empty. */
static const char *swp_cell_text(orr_arena *a, swp_value v, bool is_short);

/* A table column by column: NumPy's .npz, a zip file of one array per column.
 *
 * Why this columnar format: it is a header and the raw numbers, needs no library to write, and
 * numpy.load reads it, as do R and Julia.  Columns of whole numbers are int64, of other numbers
 * float64 with NaN where a point has none, of texts UTF-32.  The file does not depend on the time
 * of writing. */

enum { NPY_HEAD = 10, NPY_ALIGN = 64, MOST_MEMBERS = 65000, DOS_DAY = 0x21 /* 1980-01-01 */ };

static void put_le(orr_buf *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        orr_buf_byte(to, (uint8_t)(v >> (8 * i)));
}

/* ---- one array ---- */

static void put_npy_head(orr_buf *to, const char *type, size_t width, size_t rows)
{
    char text[160];
    const int n = snprintf(text, sizeof text, "{'descr': '%s", type);
    size_t used = n > 0 ? (size_t)n : 0;
    if (width)
        used += (size_t)snprintf(text + used, sizeof text - used, "%zu", width);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "', 'fortran_order': False, 'shape': (%zu,), }", rows);
    const size_t all = (NPY_HEAD + used + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    orr_buf_add(to, "\x93NUMPY\x01", 8); /* with the NUL: version 1.0 */
    put_le(to, all - NPY_HEAD, 2);
    orr_buf_add(to, text, used);
    for (size_t i = NPY_HEAD + used + 1; i < all; i++)
        orr_buf_byte(to, ' ');
    orr_buf_byte(to, '\n');
}

/* The next character; invalid bytes count one each, as U+FFFD. */
static uint32_t next_character(orr_str s, size_t *at)
{
    const uint8_t *p = (const uint8_t *)s.ptr + *at, c = *p;
    const unsigned n = c < 0x80                ? 1
                       : c >= 0xC2 && c < 0xE0 ? 2
                       : c >= 0xE0 && c < 0xF0 ? 3
                       : c >= 0xF0 && c < 0xF5 ? 4
                                               : 0;
    uint32_t v = n == 1 ? c : n ? c & (0x7Fu >> n) : 0xFFFD;
    bool is_good = n && n <= s.len - *at;
    for (unsigned i = 1; i < n && is_good; i++) {
        is_good = orr__utf8_follows(p[i]);
        v = v << 6 | (p[i] & 0x3F);
    }
    *at += is_good ? n : 1;
    return is_good ? v : 0xFFFD;
}

static size_t count_characters(orr_str s)
{
    size_t n = 0;
    for (size_t at = 0; at < s.len; n++)
        next_character(s, &at);
    return n;
}

static orr_str cell_text(orr_arena *a, swp_value v)
{
    const char *text = swp_cell_text(a, v, false);
    return orr_str_of(text ? text : "");
}

static void put_texts(const orr_sweep_table *t, uint32_t column, orr_arena *a, orr_buf *to)
{
    size_t width = 1;
    for (size_t i = 0; i < t->row_count; i++) {
        const size_t n = count_characters(cell_text(a, t->rows[i].values[column]));
        width = n > width ? n : width;
    }
    put_npy_head(to, "<U", width, t->row_count);
    for (size_t i = 0; i < t->row_count; i++) {
        const orr_str s = cell_text(a, t->rows[i].values[column]);
        size_t n = 0;
        for (size_t at = 0; at < s.len; n++)
            put_le(to, next_character(s, &at), 4);
        for (; n < width; n++)
            put_le(to, 0, 4);
    }
}

static void put_double(orr_buf *to, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_le(to, bits, 8);
}

static void put_column(const orr_sweep_table *t, uint32_t column, orr_arena *a, orr_buf *to)
{
    bool has_text = false, is_whole = true;
    for (size_t i = 0; i < t->row_count; i++) {
        const swp_value *v = &t->rows[i].values[column];
        has_text = has_text || v->kind == SWP_TEXT;
        is_whole = is_whole && v->kind == SWP_NUMBER && v->number == floor(v->number) &&
                   fabs(v->number) < 0x1p53;
    }
    if (has_text) {
        put_texts(t, column, a, to);
        return;
    }
    put_npy_head(to, is_whole ? "<i8" : "<f8", 0, t->row_count);
    for (size_t i = 0; i < t->row_count; i++) {
        const swp_value *v = &t->rows[i].values[column];
        if (is_whole)
            put_le(to, (uint64_t)(int64_t)v->number, 8);
        else
            put_double(to, v->kind == SWP_NUMBER ? v->number : (double)NAN);
    }
}

static void put_points(const orr_sweep_table *t, orr_buf *to)
{
    put_npy_head(to, "<i8", 0, t->row_count);
    for (size_t i = 0; i < t->row_count; i++)
        put_le(to, t->rows[i].point, 8);
}

/* ---- the zip file ---- */

typedef struct zip_pen {
    orr_buf all, directory;
    uint32_t count;
} zip_pen;

/* The common part of the local header and the directory, for a stored member. */
static void put_member(orr_buf *to, const orr_buf *member, size_t name_len)
{
    const uint32_t crc = orr_zip_crc((orr_span){member->ptr, member->len});
    put_le(to, 20, 2);     /* version 2.0 */
    put_le(to, 0x0800, 2); /* names are UTF-8 */
    put_le(to, 0, 2);
    put_le(to, 0, 2);
    put_le(to, DOS_DAY, 2);
    put_le(to, crc, 4);
    put_le(to, member->len, 4);
    put_le(to, member->len, 4);
    put_le(to, name_len, 2);
    put_le(to, 0, 2);
}

static bool add_member(zip_pen *z, const char *name, const orr_buf *member)
{
    const size_t at = z->all.len, name_len = strlen(name) + 4;
    if (member->failed || at + member->len > INT32_MAX || name_len > UINT16_MAX)
        return false;
    put_le(&z->all, 0x04034b50, 4);
    put_member(&z->all, member, name_len);
    orr_buf_print(&z->all, "%s.npy", name);
    orr_buf_add(&z->all, member->ptr, member->len);
    put_le(&z->directory, 0x02014b50, 4);
    put_le(&z->directory, 20, 2);
    put_member(&z->directory, member, name_len);
    put_le(&z->directory, 0, 2 + 2 + 2); /* comment, disk, kind */
    put_le(&z->directory, 0, 4);
    put_le(&z->directory, at, 4);
    orr_buf_print(&z->directory, "%s.npy", name);
    z->count++;
    return true;
}

static void end_zip(zip_pen *z)
{
    const size_t at = z->all.len;
    orr_buf_add(&z->all, z->directory.ptr, z->directory.len);
    z->all.failed |= z->directory.failed;
    put_le(&z->all, 0x06054b50, 4);
    put_le(&z->all, 0, 4);
    put_le(&z->all, z->count, 2);
    put_le(&z->all, z->count, 2);
    put_le(&z->all, z->directory.len, 4);
    put_le(&z->all, at, 4);
    put_le(&z->all, 0, 2);
}

static orr_code columns_write(const orr_sweep_table *t, const char *path, orr_error *err)
{
    zip_pen z = {0};
    orr_buf member = {0};
    orr_arena *a = orr_arena_create();
    orr_code code = a ? ORR_OK : orr_no_memory(err);
    bool fits = t->shown_count < MOST_MEMBERS;
    if (!code && fits) {
        put_points(t, &member);
        fits = add_member(&z, "point", &member);
    }
    for (size_t k = 0; k < t->shown_count && !code && fits; k++) {
        member.len = 0;
        orr_arena_reset(a);
        put_column(t, t->shown[k], a, &member);
        fits = add_member(&z, t->columns[t->shown[k]].name, &member);
    }
    if (!code && (member.failed || z.all.failed || z.directory.failed || orr_arena_has_failed(a)))
        code = orr_no_memory(err);
    else if (!code && !fits)
        code = orr_fail(err, ORR_EUSAGE, NULL,
                        "more than 2 GB of columns: choose some with --columns, or export csv");
    if (!code) {
        end_zip(&z);
        code = orr_output_save(&z.all, path, err);
    }
    orr_buf_fini(&member);
    orr_buf_fini(&z.all);
    orr_buf_fini(&z.directory);
    orr_arena_destroy(a);
    return code;
}

/* A table as text, CSV and JSON. */

static const char *swp_cell_text(orr_arena *a, swp_value v, bool is_short)
{
    if (v.kind == SWP_NONE)
        return NULL;
    const bool is_whole = v.kind == SWP_NUMBER && v.number == floor(v.number);
    if (v.kind == SWP_NUMBER && is_short && !is_whole)
        return orr_arena_print(a, "%.5g", v.number);
    return v.text.ptr ? orr_arena_text(a, v.text) : swp_number_text(a, v.number);
}

/* ---- text ---- */

static void add_cell(orr_buf *to, const char *text, size_t width, bool is_right, bool is_last)
{
    const size_t n = strlen(text), pad = n < width ? width - n : 0;
    for (size_t i = 0; i < pad && is_right; i++)
        orr_buf_byte(to, ' ');
    orr_buf_text(to, text);
    for (size_t i = 0; i < pad && !is_right && !is_last; i++)
        orr_buf_byte(to, ' ');
    orr_buf_text(to, is_last ? "\n" : "  ");
}

static const char *row_remark(const swp_row *r)
{
    return r->status == SWP_OK ? "" : r->status == SWP_OPEN ? "not computed" : r->error;
}

/* Names come from files: control characters are shown as '?'. */
static const char *shown(orr_arena *a, const char *text)
{
    char *out = text ? orr_arena_print(a, "%s", text) : NULL;
    const orr_str all = orr_str_of(out ? out : "");
    for (size_t i = 0; i < all.len; i++)
        if (orr_is_control(all, i))
            out[i] = '?';
    return out;
}

static orr_code write_text(const orr_sweep_table *t, orr_buf *to, orr_error *err)
{
    orr_arena *a = orr_arena_create();
    const size_t columns = t->shown_count + 1, cells = (t->row_count + 1) * columns;
    const char **text = a ? orr_arena_new(a, cells + 1, const char *) : NULL;
    size_t *width = a ? orr_arena_new(a, columns, size_t) : NULL;
    bool *is_right = a ? orr_arena_new(a, columns, bool) : NULL;
    if (!text || !width || !is_right) {
        orr_arena_destroy(a);
        return orr_no_memory(err);
    }
    for (size_t k = 0; k < columns; k++) {
        text[k] = k ? shown(a, t->columns[t->shown[k - 1]].name) : "point";
        text[k] = text[k] ? text[k] : "";
        width[k] = strlen(text[k]);
        is_right[k] = true;
        for (size_t i = 0; i < t->row_count; i++) {
            const swp_value *v = k ? &t->rows[i].values[t->shown[k - 1]] : NULL;
            const char *cell = v ? shown(a, swp_cell_text(a, *v, true))
                                 : orr_arena_print(a, "%llu", (unsigned long long)t->rows[i].point);
            cell = cell ? cell : "-";
            text[(i + 1) * columns + k] = cell;
            width[k] = strlen(cell) > width[k] ? strlen(cell) : width[k];
            is_right[k] = is_right[k] && (!v || v->kind != SWP_TEXT);
        }
    }
    for (size_t i = 0; i <= t->row_count; i++) {
        const char *remark = i ? shown(a, row_remark(&t->rows[i - 1])) : "";
        remark = remark ? remark : "";
        for (size_t k = 0; k < columns; k++)
            add_cell(to, text[i * columns + k], width[k], is_right[k],
                     k + 1 == columns && !*remark);
        if (*remark)
            orr_buf_print(to, "%s\n", remark);
    }
    const bool failed = orr_arena_has_failed(a);
    orr_arena_destroy(a);
    return failed ? orr_no_memory(err) : ORR_OK;
}

/* ---- CSV (RFC 4180) ---- */

static orr_code write_csv(const orr_sweep_table *t, orr_buf *to, orr_error *err)
{
    orr_arena *a = orr_arena_create();
    if (!a)
        return orr_no_memory(err);
    orr_buf_text(to, "point");
    for (size_t k = 0; k < t->shown_count; k++) {
        orr_buf_byte(to, ',');
        orr_csv_put(to, orr_str_of(t->columns[t->shown[k]].name));
    }
    orr_buf_text(to, t->with_failed ? ",error\n" : "\n");
    for (size_t i = 0; i < t->row_count; i++) {
        orr_arena_reset(a);
        orr_buf_u64(to, t->rows[i].point);
        for (size_t k = 0; k < t->shown_count; k++) {
            const swp_value v = t->rows[i].values[t->shown[k]];
            const char *text = swp_cell_text(a, v, false);
            orr_buf_byte(to, ',');
            if (text && v.kind == SWP_TEXT)
                orr_csv_put(to, orr_str_of(text));
            else
                orr_buf_text(to, text ? text : "");
        }
        if (t->with_failed) {
            orr_buf_byte(to, ',');
            orr_csv_put(to, orr_str_of(row_remark(&t->rows[i])));
        }
        orr_buf_byte(to, '\n');
    }
    const bool failed = orr_arena_has_failed(a);
    orr_arena_destroy(a);
    return failed ? orr_no_memory(err) : ORR_OK;
}

/* ---- JSON ---- */

static void put_cell(orr_json_writer *w, swp_value v)
{
    if (v.kind == SWP_NONE)
        orr_json_null(w);
    else if (v.kind == SWP_TEXT)
        orr_json_str(w, v.text);
    else if (orr_str_is(v.text, "true") || orr_str_is(v.text, "false"))
        orr_json_bool(w, v.number != 0);
    else if (v.number == floor(v.number) && fabs(v.number) < 0x1p53)
        orr_json_i64(w, (int64_t)v.number);
    else
        orr_json_double(w, v.number);
}

static void table_json(const orr_sweep_table *t, orr_buf *to)
{
    static const char *const kinds[] = {"axis", "measure", "figure"};
    orr_json_writer w;
    orr_json_writer_init(&w, to, &(orr_json_style){.spaced = true});
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_T("format", "orrery-sweep"), ORR_U("version", 1),
                        ORR_T("title", t->title ? t->title : ""), ORR_T("commands", t->commands),
                        ORR_T("goal", t->goal && *t->goal ? t->goal : NULL),
                        ORR_U("points", t->point_count), ORR_U("failed", t->failed),
                        ORR_U("not_computed", t->open));
    orr_json_put_array(&w, "columns");
    for (size_t k = 0; k < t->shown_count; k++) {
        orr_json_line(&w, 2);
        orr_json_put_row(&w, ORR_T("name", t->columns[t->shown[k]].name),
                         ORR_T("kind", kinds[t->columns[t->shown[k]].kind]));
    }
    orr_json_end_array(&w);
    orr_json_line(&w, 0);
    orr_json_put_array(&w, "rows");
    for (size_t i = 0; i < t->row_count; i++) {
        orr_json_line(&w, 2);
        orr_json_begin_object(&w);
        orr_json_put_u64(&w, "point", t->rows[i].point);
        if (t->rows[i].status != SWP_OK)
            orr_json_put_text(&w, "error", row_remark(&t->rows[i]));
        orr_json_put_array(&w, "values");
        for (size_t k = 0; k < t->shown_count; k++)
            put_cell(&w, t->rows[i].values[t->shown[k]]);
        orr_json_end_array(&w);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_buf_byte(to, '\n');
}

/* ---- the page ---- */

/* Made by tools/embed.c: the page, cut where the title and the data go. */
extern const char orr__sweep_page_before_title[];
extern const char orr__sweep_page_before_data[];
extern const char orr__sweep_page_after_data[];

static orr_code page_write(const orr_sweep_table *t, const char *path, orr_error *err)
{
    orr_buf json = {0}, page = {0};
    table_json(t, &json);
    orr_buf_text(&page, orr__sweep_page_before_title);
    orr__put_html(&page, orr_str_of(t->title && *t->title ? t->title : "Sweep"));
    orr_buf_text(&page, orr__sweep_page_before_data);
    orr_buf_text(&page, "<script type=\"application/json\" id=\"orrery-data\">");
    orr_json_in_page(&json, &page);
    orr_buf_text(&page, "</script>\n");
    orr_buf_text(&page, orr__sweep_page_after_data);
    const orr_code code = orr_output_save(&page, path, err);
    orr_buf_fini(&json);
    orr_buf_fini(&page);
    return code;
}

orr_code orr_sweep_table_write(const orr_sweep_table *t,
                               orr_sweep_format format,
                               const char *path,
                               orr_error *err)
{
    orr_buf all = {0};
    orr_code code = ORR_OK;
    if (format == ORR_SWEEP_HTML)
        return page_write(t, path, err);
    if (format == ORR_SWEEP_COLUMNS)
        return columns_write(t, path, err);
    if (format == ORR_SWEEP_JSON)
        table_json(t, &all);
    else
        code = format == ORR_SWEEP_CSV ? write_csv(t, &all, err) : write_text(t, &all, err);
    if (!code)
        code = orr_output_save(&all, path, err);
    orr_buf_fini(&all);
    return code;
}

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
    /* A figure named like an axis or a measure gets its command as a prefix. */
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

/* The columns of a row are in the same order as those of the row before: look there first. */
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

/* By name; an unknown one is an error that suggests a similar one.  what: for the message. */
static orr_code table_column(
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

/* The figures of a row and their columns; the table may get wider. */
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
        orr_sort(t->rows, t->row_count, sizeof *t->rows, compare_rows);
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

/* The axes, the measures, the goal; otherwise the first figures that vary. */
static void choose_brief(const table_reader *r)
{
    orr_sweep_table *t = r->t;
    uint32_t goal = UINT32_MAX, sorted = UINT32_MAX;
    size_t more = 0;
    if (t->goal && *t->goal)
        (void)!table_column(t, orr_str_of(t->goal + 4), "", &goal, NULL);
    if (r->q->sort)
        (void)!table_column(t, orr_str_of(r->q->sort + (*r->q->sort == '-')), "", &sorted, NULL);
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
        code = table_column(t, (orr_str){at, n}, "--columns", &t->shown[t->shown_count], r->err);
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

/* ---- Two columns of a table against each other: SVG.
 *
 * Text axes have one place per text, in order of first appearance.  Ticks are 1, 2 or 5 times a
 * power of ten; on a logarithmic axis powers of ten, or of two where all values are such. Colours
 * repeat after eight groups; each group has a shape of its own as well. */

enum {
    WIDTH = 880,
    HEIGHT = 520,
    LEFT = 90,
    TOP = 48,
    PLOT_WIDTH = 600,
    PLOT_HEIGHT = 400,
    MOST_GROUPS = 32,
    MOST_TICKS = 24,
    COLOURS = 8
};

static const char *const colours[COLOURS] = {"#2a7ab8", "#e2972b", "#178f6c", "#cc5a1c",
                                             "#8b5fbf", "#bf6a98", "#636b79", "#7fbde6"};

typedef struct plot_axis {
    uint32_t column;
    bool is_log, is_text;
    double from, to;
    const char *texts[MOST_TICKS]; /* of a text axis */
    size_t text_count;
} plot_axis;

typedef struct plot_point {
    double x, y;
    uint32_t group;
    uint64_t point;
} plot_point;

typedef struct plot_job {
    const orr_sweep_table *t;
    const orr_sweep_plot *p;
    orr_arena *a;
    plot_axis x, y;
    uint32_t group_column;
    const char *groups[MOST_GROUPS];
    size_t group_count;
    plot_point *points;
    size_t count;
    orr_buf *to;
} plot_job;

static void add_escaped(orr_buf *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            orr_buf_text(to, "&lt;");
        else if (*text == '>')
            orr_buf_text(to, "&gt;");
        else if (*text == '&')
            orr_buf_text(to, "&amp;");
        else if (*text == '"')
            orr_buf_text(to, "&quot;");
        else if ((uint8_t)*text >= 0x20)
            orr_buf_byte(to, (uint8_t)*text);
    }
}

/* ---- values ---- */

/* The index of a text in a list, appended if new; `most` if the list is full. */
static size_t place_text(const char **list, size_t *count, size_t most, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    if (*count < most)
        list[(*count)++] = text;
    return *count - 1;
}

static bool take_value(plot_job *j, plot_axis *axis, const swp_row *r, double *out)
{
    const swp_value v = r->values[axis->column];
    if (v.kind == SWP_NONE)
        return false;
    if (axis->is_text) {
        const char *text = swp_cell_text(j->a, v, false);
        *out = text ? (double)place_text(axis->texts, &axis->text_count, MOST_TICKS, text) : 0;
        return text != NULL;
    }
    *out = v.number;
    return !axis->is_log || v.number > 0;
}

static bool has_text(const orr_sweep_table *t, uint32_t column)
{
    for (size_t i = 0; i < t->row_count; i++)
        if (t->rows[i].values[column].kind == SWP_TEXT)
            return true;
    return false;
}

static int compare_points(const void *x, const void *y)
{
    const plot_point *a = x, *b = y;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return a->point < b->point ? -1 : a->point > b->point;
}

static orr_code gather(plot_job *j, orr_error *err)
{
    const orr_sweep_table *t = j->t;
    j->points = orr_arena_new(j->a, t->row_count + 1, plot_point);
    if (!j->points)
        return orr_no_memory(err);
    for (size_t i = 0; i < t->row_count; i++) {
        plot_point *p = &j->points[j->count];
        if (!take_value(j, &j->x, &t->rows[i], &p->x) || !take_value(j, &j->y, &t->rows[i], &p->y))
            continue;
        if (j->p->group) {
            const char *text = swp_cell_text(j->a, t->rows[i].values[j->group_column], true);
            p->group =
                (uint32_t)place_text(j->groups, &j->group_count, MOST_GROUPS, text ? text : "-");
        }
        p->point = t->rows[i].point;
        j->count++;
    }
    if (orr_arena_has_failed(j->a))
        return orr_no_memory(err);
    if (!j->count)
        return orr_fail(err, ORR_EUSAGE, NULL, "no point has both '%s' and '%s'%s", j->p->x,
                        j->p->y, j->x.is_log || j->y.is_log ? " above 0" : "");
    orr_sort(j->points, j->count, sizeof *j->points, compare_points);
    return ORR_OK;
}

/* A small margin around the values; from 0 if that is near. */
static void set_range(plot_axis *a, double least, double most)
{
    if (a->is_text) {
        a->from = -0.5;
        a->to = (double)a->text_count - 0.5;
    } else if (a->is_log) {
        a->from = least / 1.1;
        a->to = most * 1.1;
    } else {
        const double room = most > least ? (most - least) * 0.05 : fabs(most) * 0.1 + 0.5;
        a->from = least >= 0 && least < 0.4 * most ? 0 : least - room;
        a->to = most + room;
    }
}

static void set_ranges(plot_job *j)
{
    double low[2] = {j->points[0].x, j->points[0].y}, high[2] = {low[0], low[1]};
    for (size_t i = 1; i < j->count; i++) {
        low[0] = fmin(low[0], j->points[i].x);
        low[1] = fmin(low[1], j->points[i].y);
        high[0] = fmax(high[0], j->points[i].x);
        high[1] = fmax(high[1], j->points[i].y);
    }
    set_range(&j->x, low[0], high[0]);
    set_range(&j->y, low[1], high[1]);
}

/* From 0 to 1 along the axis. */
static double share(const plot_axis *a, double v)
{
    return a->is_log ? log(v / a->from) / log(a->to / a->from) : (v - a->from) / (a->to - a->from);
}

static double x_of(const plot_job *j, double v)
{
    return LEFT + PLOT_WIDTH * share(&j->x, v);
}

static double y_of(const plot_job *j, double v)
{
    return TOP + PLOT_HEIGHT * (1 - share(&j->y, v));
}

/* ---- ticks ---- */

static size_t log_ticks(const plot_axis *a, double out[MOST_TICKS])
{
    const double base = a->to / a->from < 300 ? 2 : 10;
    size_t n = 0;
    double v = pow(base, ceil(log(a->from) / log(base) - 1e-9));
    double step = base;
    while (log(a->to / v) / log(step) > 10)
        step *= base;
    for (; v <= a->to && n < MOST_TICKS; v *= step)
        out[n++] = v;
    return n;
}

static size_t ticks_of(const plot_axis *a, double out[MOST_TICKS])
{
    size_t n = 0;
    if (a->is_text) {
        for (; n < a->text_count; n++)
            out[n] = (double)n;
        return n;
    }
    if (a->is_log)
        return log_ticks(a, out);
    const double least = (a->to - a->from) / 8, power = pow(10, floor(log10(least)));
    const double times = least / power;
    const double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    for (double k = ceil(a->from / step); k * step <= a->to && n < MOST_TICKS; k++)
        out[n++] = k * step;
    return n;
}

/* 1.2M, 35k, 0.25: the unit is in the column's name. */
static void tick_text(const plot_axis *a, double v, char *out, size_t room)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    const size_t i = a->is_text ? (size_t)(v + 0.5) : 0;
    if (a->is_text) {
        snprintf(out, room, "%.40s", a->texts[i]);
        return;
    }
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (fabs(v) >= units[k].scale) {
            const double scale = k == 4 ? 1e3 : units[k].scale;
            snprintf(out, room, "%.4g%s", v / scale, units[k].unit);
            return;
        }
    snprintf(out, room, "%.4g", fabs(v) < 1e-12 ? 0 : v);
}

/* ---- drawing ---- */

static void draw_axes(plot_job *j)
{
    double ticks[MOST_TICKS];
    char text[64];
    size_t n = ticks_of(&j->x, ticks);
    for (size_t i = 0; i < n; i++) {
        tick_text(&j->x, ticks[i], text, sizeof text);
        orr_buf_print(
            j->to,
            "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">",
            x_of(j, ticks[i]), TOP, x_of(j, ticks[i]), TOP + PLOT_HEIGHT, x_of(j, ticks[i]),
            TOP + PLOT_HEIGHT + 18);
        add_escaped(j->to, text);
        orr_buf_text(j->to, "</text>\n");
    }
    n = ticks_of(&j->y, ticks);
    for (size_t i = 0; i < n; i++) {
        tick_text(&j->y, ticks[i], text, sizeof text);
        orr_buf_print(
            j->to,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">",
            LEFT, y_of(j, ticks[i]), LEFT + PLOT_WIDTH, y_of(j, ticks[i]), LEFT - 8,
            y_of(j, ticks[i]) + 4);
        add_escaped(j->to, text);
        orr_buf_text(j->to, "</text>\n");
    }
}

static void draw_name(plot_job *j, const char *name, int x, int y, bool is_turned)
{
    orr_buf_print(j->to, "<text class=\"name\" text-anchor=\"middle\" x=\"%d\" y=\"%d\"", x, y);
    if (is_turned)
        orr_buf_print(j->to, " transform=\"rotate(-90 %d %d)\"", x, y);
    orr_buf_text(j->to, ">");
    add_escaped(j->to, name);
    orr_buf_text(j->to, "</text>\n");
}

/* A shape per group, so that colours are not the only cue. */
static void draw_mark(plot_job *j, double x, double y, uint32_t group)
{
    const char *colour = colours[group % COLOURS];
    switch (group % 4) {
    case 0:
        orr_buf_print(j->to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\">", x, y, colour);
        break;
    case 1:
        orr_buf_print(j->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"%s\">",
                      x - 3.5, y - 3.5, colour);
        break;
    case 2:
        orr_buf_print(j->to, "<path d=\"M%.1f %.1fl5 9h-10z\" fill=\"%s\">", x, y - 5, colour);
        break;
    default:
        orr_buf_print(j->to, "<path d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\" fill=\"%s\">", x, y - 5,
                      colour);
    }
}

static void end_mark(plot_job *j, uint32_t group)
{
    static const char *const ends[] = {"</circle>", "</rect>", "</path>", "</path>"};
    orr_buf_text(j->to, ends[group % 4]);
}

static void draw_points(plot_job *j)
{
    for (size_t i = 0; i < j->count && j->p->has_lines; i++) {
        const plot_point *p = &j->points[i];
        const bool is_first = i == 0 || p[-1].group != p->group;
        const bool is_last = i + 1 == j->count || p[1].group != p->group;
        if (is_first)
            orr_buf_text(j->to, "<polyline fill=\"none\" points=\"");
        orr_buf_print(j->to, "%.1f,%.1f ", x_of(j, p->x), y_of(j, p->y));
        if (is_last)
            orr_buf_print(j->to, "\" stroke=\"%s\"/>\n", colours[p->group % COLOURS]);
    }
    for (size_t i = 0; i < j->count; i++) {
        const plot_point *p = &j->points[i];
        draw_mark(j, x_of(j, p->x), y_of(j, p->y), p->group);
        orr_buf_print(j->to, "<title>point %llu</title>", (unsigned long long)p->point);
        end_mark(j, p->group);
        orr_buf_byte(j->to, '\n');
    }
}

static void draw_legend(plot_job *j)
{
    if (!j->p->group)
        return;
    orr_buf_print(j->to, "<text class=\"name\" x=\"%d\" y=\"%d\">", LEFT + PLOT_WIDTH + 24,
                  TOP + 6);
    add_escaped(j->to, j->p->group);
    orr_buf_text(j->to, "</text>\n");
    for (size_t i = 0; i < j->group_count && i < 18; i++) {
        const int y = TOP + 28 + (int)i * 21;
        draw_mark(j, LEFT + PLOT_WIDTH + 30, y - 4, (uint32_t)i);
        end_mark(j, (uint32_t)i);
        orr_buf_print(j->to, "<text x=\"%d\" y=\"%d\">", LEFT + PLOT_WIDTH + 42, y);
        add_escaped(j->to, j->groups[i]);
        orr_buf_text(j->to, "</text>\n");
    }
}

static void draw(plot_job *j)
{
    orr_buf_print(j->to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<style>line{stroke:#dfe2e8}text{fill:#636b79}.name{fill:#1b1f27;font-weight:600}"
                  "polyline{stroke-width:1.5;stroke-opacity:0.6}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(j);
    draw_name(j, j->p->x, LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 44, false);
    draw_name(j, j->p->y, 22, TOP + PLOT_HEIGHT / 2, true);
    if (j->t->title && *j->t->title)
        draw_name(j, j->t->title, LEFT + PLOT_WIDTH / 2, TOP - 20, false);
    draw_points(j);
    draw_legend(j);
    orr_buf_text(j->to, "</svg>\n");
}

static orr_code find_columns(plot_job *j, orr_error *err)
{
    const orr_sweep_plot *p = j->p;
    orr_code code = table_column(j->t, orr_str_of(p->x), "--x", &j->x.column, err);
    if (!code)
        code = table_column(j->t, orr_str_of(p->y), "--y", &j->y.column, err);
    if (!code && p->group)
        code = table_column(j->t, orr_str_of(p->group), "--group", &j->group_column, err);
    if (code)
        return code;
    j->x.is_text = has_text(j->t, j->x.column);
    j->y.is_text = has_text(j->t, j->y.column);
    j->x.is_log = p->log_x && !j->x.is_text;
    j->y.is_log = p->log_y && !j->y.is_text;
    return ORR_OK;
}

orr_code orr_sweep_table_plot(const orr_sweep_table *t,
                              const orr_sweep_plot *p,
                              const char *path,
                              orr_error *err)
{
    orr_buf all = {0};
    plot_job j = {.t = t, .p = p, .a = orr_arena_create(), .to = &all};
    orr_code code = j.a ? find_columns(&j, err) : orr_no_memory(err);
    if (!code)
        code = gather(&j, err);
    if (!code) {
        set_ranges(&j);
        draw(&j);
        code = orr_output_save(&all, path, err);
    }
    orr_buf_fini(&all);
    orr_arena_destroy(j.a);
    return code;
}
