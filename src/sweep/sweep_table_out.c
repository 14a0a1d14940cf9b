/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_table_out.c - a table as text, CSV and JSON. */
#include "sweep_table.h"

#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>

const char *swp_cell_text(orr_arena *a, swp_value v, bool is_short)
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

/* Names come from files: what steers a terminal is shown as '?'. */
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

void swp_table_json(const orr_sweep_table *t, orr_buf *to)
{
    static const char *const kinds[] = {"axis", "measure", "figure"};
    orr_json_writer w;
    orr_json_writer_init(&w, to, &(orr_json_style){.spaced = true});
    orr_json_begin_object(&w);
    orr_json_put_text(&w, "format", "orrery-sweep");
    orr_json_put_u64(&w, "version", 1);
    orr_json_put_text(&w, "title", t->title ? t->title : "");
    orr_json_put_text(&w, "commands", t->commands);
    orr_json_put_text(&w, "goal", t->goal && *t->goal ? t->goal : NULL);
    orr_json_put_u64(&w, "points", t->point_count);
    orr_json_put_u64(&w, "failed", t->failed);
    orr_json_put_u64(&w, "not_computed", t->open);
    orr_json_key(&w, "columns");
    orr_json_begin_array(&w);
    for (size_t k = 0; k < t->shown_count; k++) {
        orr_json_line(&w, 2);
        orr_json_begin_object(&w);
        orr_json_put_text(&w, "name", t->columns[t->shown[k]].name);
        orr_json_put_text(&w, "kind", kinds[t->columns[t->shown[k]].kind]);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_line(&w, 0);
    orr_json_key(&w, "rows");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < t->row_count; i++) {
        orr_json_line(&w, 2);
        orr_json_begin_object(&w);
        orr_json_put_u64(&w, "point", t->rows[i].point);
        if (t->rows[i].status != SWP_OK)
            orr_json_put_text(&w, "error", row_remark(&t->rows[i]));
        orr_json_key(&w, "values");
        orr_json_begin_array(&w);
        for (size_t k = 0; k < t->shown_count; k++)
            put_cell(&w, t->rows[i].values[t->shown[k]]);
        orr_json_end_array(&w);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_buf_byte(to, '\n');
}

orr_code orr_sweep_table_write(const orr_sweep_table *t,
                               orr_sweep_format format,
                               const char *path,
                               orr_error *err)
{
    orr_buf all = {0};
    orr_code code = ORR_OK;
    if (format == ORR_SWEEP_HTML)
        return swp_page_write(t, path, err);
    if (format == ORR_SWEEP_COLUMNS)
        return swp_columns_write(t, path, err);
    if (format == ORR_SWEEP_JSON)
        swp_table_json(t, &all);
    else
        code = format == ORR_SWEEP_CSV ? write_csv(t, &all, err) : write_text(t, &all, err);
    if (!code)
        code = orr_output_save(&all, path, err);
    orr_buf_fini(&all);
    return code;
}
