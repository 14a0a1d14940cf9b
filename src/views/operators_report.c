/* SPDX-License-Identifier: Apache-2.0 */
/* operators_report.c - a captured step against a measured one, as text and as JSON
 * (docs/format/operators.md). */
#include "sources/torch/match/match_impl.h"

#include "base/formats/json.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>

enum { NAME_WIDTH = 29, SHAPES_WIDTH = 38 };

static orr_code hand_over(const orr_operators *o, orr_buf *b, orr_str *out, orr_error *err)
{
    const char *text =
        b->failed ? NULL : orr_arena_text(o->store->arena, (orr_str){(char *)b->ptr, b->len});
    *out = (orr_str){text ? text : "", text ? b->len : 0};
    orr_buf_fini(b);
    return text ? ORR_OK : orr_no_memory(err);
}

static size_t shown(size_t count, size_t most)
{
    return most && most < count ? most : count;
}

/* ---- text ---- */

typedef char cell[ORR_UNIT_ROOM + 8];

static const char *count_cell(uint64_t n, cell out)
{
    return orr_count_text(n, out);
}

static const char *flops_cell(uint64_t n, cell out)
{
    return orr_short_text(n, out);
}

static const char *time_cell(orr_ps t, bool is_known, cell out)
{
    return is_known ? orr_time_text(t, out) : "-";
}

static const char *share_cell(uint64_t part, uint64_t whole, cell out)
{
    if (whole == 0)
        return "-";
    snprintf(out, sizeof(cell), "%.2f %%", 100.0 * (double)part / (double)whole);
    return out;
}

/* Relative error of the prediction. */
static const char *error_cell(orr_ps predicted, orr_ps measured, cell out)
{
    if (measured == 0)
        return "-";
    snprintf(out, sizeof(cell), "%+.1f %%", 100.0 * ((double)predicted / (double)measured - 1));
    return out;
}

static void put_line(
    orr_buf *b, const char *what, const char *captured, const char *measured, const char *both)
{
    orr_buf_print(b, "%-29s  %14s", what, captured);
    if (*measured || *both)
        orr_buf_print(b, "  %14s", measured);
    if (*both)
        orr_buf_print(b, "  %14s", both);
    orr_buf_byte(b, '\n');
}

static void put_sums(orr_buf *b, const orr_operators *o)
{
    cell x, y, z;
    put_line(b, "", "captured", "measured", "in both");
    put_line(b, "operators that do something", count_cell(o->calls[0], x),
             count_cell(o->calls[1], y), share_cell(o->matched, o->calls[1], z));
    put_line(b, "  with the same shapes", "", "", share_cell(o->alike, o->calls[1], z));
    put_line(b, "FLOPs", flops_cell(o->flops[0], x), flops_cell(o->flops[1], y),
             share_cell(o->flops_matched, o->flops[1], z));
    put_line(b, "bytes read and written", orr_bytes_text(o->bytes[0], x),
             o->has_bytes ? orr_bytes_text(o->bytes[1], y) : "-",
             o->has_bytes ? share_cell(o->bytes[0], o->bytes[1], z) : "-");
    put_line(b, "views, allocations", count_cell(o->views[0], x), count_cell(o->views[1], y), "");
    if (o->has_times || o->has_hardware)
        put_line(b, "GPU time", time_cell(o->predicted, o->has_hardware, x),
                 time_cell(o->time, o->has_times, y),
                 share_cell((uint64_t)o->time_matched, (uint64_t)o->time, z));
    if (o->launches)
        put_line(b, "  launches among it", time_cell(o->launches, true, x), "", "");
    if (o->has_hardware && o->has_times)
        put_line(b, "  prediction is off by", error_cell(o->predicted, o->time, x), "", "");
    if (o->without_shapes)
        orr_buf_print(b,
                      "Shapes of %" PRIu64
                      " measured calls were not recorded: their FLOPs are not known.\n",
                      o->without_shapes);
}

static void put_row(orr_buf *b, const orr_operators *o, const orr_operator_row *r)
{
    cell c[5];
    const int cut = (int)(r->name.len < NAME_WIDTH ? r->name.len : NAME_WIDTH);
    orr_buf_print(b, "%-29.*s %8s %8s %8s %9s", cut, r->name.ptr, count_cell(r->calls[0], c[0]),
                  count_cell(r->calls[1], c[1]), count_cell(r->alike, c[2]),
                  flops_cell(r->flops[1], c[3]));
    if (o->has_times)
        orr_buf_print(b, " %9s", time_cell(r->time, true, c[4]));
    if (o->has_hardware)
        orr_buf_print(b, " %9s", time_cell(r->predicted, r->predicted > 0, c[4]));
    orr_buf_byte(b, '\n');
}

static void put_left_out(orr_buf *b, size_t count, size_t most)
{
    if (shown(count, most) < count)
        orr_buf_print(b, "... and %zu more\n", count - shown(count, most));
}

static void put_rows(orr_buf *b, const orr_operators *o, size_t most)
{
    orr_buf_print(b, "\n%-29s %8s %8s %8s %9s", "operator", "captured", "measured", "alike",
                  "FLOPs");
    if (o->has_times)
        orr_buf_print(b, " %9s", "GPU time");
    if (o->has_hardware)
        orr_buf_print(b, " %9s", "predicted");
    orr_buf_byte(b, '\n');
    for (size_t i = 0; i < shown(o->row_count, most); i++)
        put_row(b, o, &o->rows[i]);
    put_left_out(b, o->row_count, most);
}

static void put_gaps(orr_buf *b, const orr_operators *o, size_t most)
{
    if (o->gap_count == 0)
        return;
    orr_buf_print(b, "\n%-29s %-22s %8s %8s\n", "what differs", "shapes", "captured", "measured");
    for (size_t i = 0; i < shown(o->gap_count, most); i++) {
        const orr_operator_gap *g = &o->gaps[i];
        orr_buf_print(b, "%-29.*s %-22.*s %8" PRIu64 " %8" PRIu64 "  %s\n",
                      ORR_SHOWN(g->name, NAME_WIDTH), ORR_SHOWN(g->shapes, SHAPES_WIDTH),
                      g->calls[0], g->calls[1], g->why);
    }
    put_left_out(b, o->gap_count, most);
}

orr_code orr_operators_text(const orr_operators *o,
                            const orr_operators_style *style,
                            orr_str *out,
                            orr_error *err)
{
    orr_buf b = {0};
    put_sums(&b, o);
    put_rows(&b, o, style->most);
    put_gaps(&b, o, style->most);
    return hand_over(o, &b, out, err);
}

/* ---- JSON ---- */

static void put_pair(orr_json_writer *w, const char *key, const uint64_t values[2])
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
    orr_json_u64(w, values[0]);
    orr_json_u64(w, values[1]);
    orr_json_end_array(w);
}

static void put_text(orr_json_writer *w, const char *key, orr_str text)
{
    orr_json_key(w, key);
    orr_json_str(w, text);
}

static void put_known(orr_json_writer *w, const char *key, uint64_t value, bool is_known)
{
    orr_json_key(w, key);
    if (is_known)
        orr_json_u64(w, value);
    else
        orr_json_null(w);
}

static void put_bytes(orr_json_writer *w, const orr_operators *o, const uint64_t bytes[2])
{
    put_known(w, "captured_bytes", bytes[0], true);
    put_known(w, "measured_bytes", bytes[1], o->has_bytes);
}

static void json_sums(orr_json_writer *w, const orr_operators *o)
{
    put_pair(w, "calls", o->calls);
    orr_json_put_u64(w, "calls_matched", o->matched);
    orr_json_put_u64(w, "calls_with_same_shapes", o->alike);
    orr_json_put_u64(w, "calls_without_shapes", o->without_shapes);
    put_pair(w, "views", o->views);
    put_pair(w, "flops", o->flops);
    orr_json_put_u64(w, "flops_matched", o->flops_matched);
    put_bytes(w, o, o->bytes);
    put_known(w, "gpu_time_ps", (uint64_t)o->time, o->has_times);
    put_known(w, "gpu_time_matched_ps", (uint64_t)o->time_matched, o->has_times);
    put_known(w, "predicted_ps", (uint64_t)o->predicted, o->has_hardware);
    put_known(w, "launches_ps", (uint64_t)o->launches, o->has_hardware);
}

static void json_row(orr_json_writer *w, const orr_operators *o, const orr_operator_row *r)
{
    orr_json_begin_object(w);
    put_text(w, "name", r->name);
    put_pair(w, "calls", r->calls);
    orr_json_put_u64(w, "matched", r->matched);
    orr_json_put_u64(w, "with_same_shapes", r->alike);
    put_pair(w, "flops", r->flops);
    put_bytes(w, o, r->bytes);
    put_known(w, "gpu_time_ps", (uint64_t)r->time, o->has_times);
    put_known(w, "predicted_ps", (uint64_t)r->predicted, o->has_hardware);
    orr_json_end_object(w);
}

static void json_gap(orr_json_writer *w, const orr_operator_gap *g)
{
    orr_json_begin_object(w);
    put_text(w, "name", g->name);
    put_text(w, "shapes", g->shapes);
    put_pair(w, "calls", g->calls);
    orr_json_put_text(w, "why", g->why);
    orr_json_end_object(w);
}

orr_code orr_operators_json(const orr_operators *o,
                            const orr_operators_style *style,
                            orr_str *out,
                            orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, &(orr_json_style){.indent = 1});
    orr_json_begin_object(&w);
    orr_json_put_text(&w, "format", "orrery-operators");
    orr_json_put_u64(&w, "version", 1);
    orr_json_put_text(&w, "program", style->program);
    orr_json_put_text(&w, "captured", style->captured);
    orr_json_put_text(&w, "measured", style->measured);
    json_sums(&w, o);
    orr_json_key(&w, "operators");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < shown(o->row_count, style->most); i++)
        json_row(&w, o, &o->rows[i]);
    orr_json_end_array(&w);
    orr_json_key(&w, "differences");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < shown(o->gap_count, style->most); i++)
        json_gap(&w, &o->gaps[i]);
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return hand_over(o, &b, out, err);
}
