/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sweep.c - the same layers on arrays of every size and shape, with each dataflow: what suits
 * them best.
 *
 * Rows and columns are powers of two, so an anti-diagonal of the map has arrays with equally many
 * elements.  The number of arrays, clock and memory stay as they are.  Copies of the table change
 * no ratio and are left out. Cost: one evaluation of all layers a cell. */
#include "gemm_impl.h"

#include "base/text/number.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>

enum { FLOWS = 3, MOST_SIDES = 17, MOST_SIDE = 1 << 16 };

static const char *const flow_words[FLOWS] = {"os", "ws", "is"};
static const char *const flow_names[FLOWS] = {"output stationary (os)", "weight stationary (ws)",
                                              "input stationary (is)"};

typedef struct cell {
    uint64_t rows, columns;
    double cycles, time; /* of all passes; time in ps, 0 without a clock */
    double utilisation;
} cell;

struct orr_gemm_sweep {
    orr_gemm *base; /* for the head: the hardware as it was given */
    uint32_t sides; /* rows and columns have so many values */
    uint32_t least;
    cell *cells; /* by dataflow, rows, columns */
    orr_buf text;
};

static cell *cell_at(const orr_gemm_sweep *w, uint32_t flow, uint32_t row, uint32_t column)
{
    return &w->cells[(flow * w->sides + row) * w->sides + column];
}

/* ---- evaluation ---- */

static void take_sums(const orr_gemm *g, cell *c)
{
    const double arrays = g->opt.hardware ? (double)g->hardware.arrays : 1;
    double products = 0;
    for (size_t i = 0; i < g->count; i++) {
        for (int k = 0; k < ORR_PASSES; k++) {
            c->cycles += (double)g->layers[i].pass[k].cycles;
            c->time += (double)g->layers[i].pass[k].time;
            products += (double)g->layers[i].pass[k].products;
        }
    }
    if (c->cycles > 0)
        c->utilisation = products / (c->cycles * arrays * (double)c->rows * (double)c->columns);
}

static orr_code evaluate(
    const orr_gemm_sweep *w, const orr_shapes *s, uint32_t flow, cell *c, orr_error *err)
{
    orr_gemm_options opt = w->base->opt;
    orr_hardware hw = w->base->hardware;
    orr_systolic_array array = w->base->array;
    orr_gemm *g;
    hw.rows = array.rows = c->rows;
    hw.columns = array.columns = c->columns;
    hw.dataflow = array.dataflow = (orr_dataflow)flow;
    opt.hardware = opt.hardware ? &hw : NULL;
    opt.array = opt.array ? &array : NULL;
    const orr_code code = orr_gemm_create(s, &opt, &g, err);
    if (code)
        return code;
    take_sums(g, c);
    orr_gemm_destroy(g);
    return ORR_OK;
}

static orr_code evaluate_all(const orr_gemm_sweep *w, const orr_shapes *s, orr_error *err)
{
    orr_code code = ORR_OK;
    const uint32_t all = FLOWS * w->sides * w->sides;
    for (uint32_t i = 0; i < all && !code; i++) {
        cell *c = &w->cells[i];
        c->rows = (uint64_t)w->least << (i / w->sides % w->sides);
        c->columns = (uint64_t)w->least << (i % w->sides);
        code = evaluate(w, s, i / (w->sides * w->sides), c, err);
    }
    return code;
}

static orr_code check_sides(uint32_t least, uint32_t most, orr_error *err)
{
    const bool is_power = least && !(least & (least - 1)) && most && !(most & (most - 1));
    if (!is_power || least > most || most > MOST_SIDE)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a sweep goes from one power of two to another, up to %d; not from %" PRIu32
                        " to %" PRIu32,
                        MOST_SIDE, least, most);
    return ORR_OK;
}

orr_code orr_gemm_sweep_create(const orr_shapes *s,
                               const orr_gemm_options *opt,
                               uint32_t least,
                               uint32_t most,
                               orr_gemm_sweep **out,
                               orr_error *err)
{
    orr_gemm_options one = *opt;
    orr_code code = check_sides(least, most, err);
    *out = NULL;
    if (code)
        return code;
    orr_gemm_sweep *w = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    one.repeat = 1;
    w->least = least;
    for (uint32_t side = least; side <= most; side *= 2)
        w->sides++;
    w->cells = orr_alloc((size_t)FLOWS * w->sides * w->sides, sizeof *w->cells);
    code = w->cells ? orr_gemm_create(s, &one, &w->base, err) : orr_no_memory(err);
    if (!code)
        code = evaluate_all(w, s, err);
    if (code) {
        orr_gemm_sweep_destroy(w);
        return code;
    }
    *out = w;
    return ORR_OK;
}

void orr_gemm_sweep_destroy(orr_gemm_sweep *w)
{
    if (!w)
        return;
    orr_gemm_destroy(w->base);
    orr_free(w->cells);
    orr_buf_fini(&w->text);
    orr_free(w);
}

/* ---- for people ---- */

/* Six steps from blue to red, in the colours that every terminal of the last decades has; the
 * figure in the cell says the same. */
static const char *heat_of(double share)
{
    static const char *const colors[] = {"\033[44;97m", "\033[46;30m", "\033[42;30m",
                                         "\033[43;30m", "\033[45;97m", "\033[41;97m"};
    const int step = (int)(share * 6);
    return colors[step < 0 ? 0 : step > 5 ? 5 : step];
}

static void print_cell(orr_buf *b, const cell *c, bool is_colored)
{
    char text[16];
    snprintf(text, sizeof text, "%5.1f", c->utilisation * 100);
    if (is_colored)
        orr_buf_print(b, " %s%5s\033[0m", heat_of(c->utilisation), text);
    else
        orr_buf_print(b, " %5s", text);
}

/* At most 80 columns: 12 of a map. */
static void print_map(const orr_gemm_sweep *w, uint32_t flow, bool is_colored, orr_buf *b)
{
    const uint32_t shown = w->sides < 12 ? w->sides : 12;
    orr_buf_print(b, "\n%s: %% of the array's elements at work\n%7s", flow_names[flow], "columns");
    for (uint32_t i = 0; i < shown; i++)
        orr_buf_print(b, " %5" PRIu64, cell_at(w, flow, 0, i)->columns);
    orr_buf_byte(b, '\n');
    for (uint32_t row = 0; row < w->sides; row++) {
        orr_buf_print(b, "%7" PRIu64, cell_at(w, flow, row, 0)->rows);
        for (uint32_t i = 0; i < shown; i++)
            print_cell(b, cell_at(w, flow, row, i), is_colored);
        orr_buf_text(b, row == 0 && shown <= 10 ? "  <- rows\n" : "\n");
    }
}

/* The fastest of the arrays with this many elements; of equal ones the first. */
static const cell *fastest(const orr_gemm_sweep *w, uint32_t diagonal, uint32_t *flow_out)
{
    const cell *best = NULL;
    for (uint32_t flow = 0; flow < FLOWS; flow++) {
        for (uint32_t row = 0; row < w->sides; row++) {
            const uint32_t column = diagonal - row;
            if (row > diagonal || column >= w->sides)
                continue;
            const cell *c = cell_at(w, flow, row, column);
            if (best && best->cycles <= c->cycles)
                continue;
            best = c;
            *flow_out = flow;
        }
    }
    return best;
}

static void print_best(const orr_gemm_sweep *w, orr_buf *b)
{
    char spent[ORR_UNIT_ROOM], count[ORR_UNIT_ROOM], cycles[ORR_UNIT_ROOM];
    orr_buf_print(b, "\nfastest for each size of array\n%14s  %-14s %-8s %10s %12s %7s\n",
                  "elements", "rows x columns", "dataflow", "cycles", "time", "used");
    for (uint32_t d = 0; d + 1 < 2 * w->sides; d++) {
        uint32_t flow = 0;
        char shape[32];
        const cell *c = fastest(w, d, &flow);
        snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64, c->rows, c->columns);
        orr_buf_print(b, "%14s  %-14s %-8s %10s %12s %6.1f%%\n",
                      orr_count_text(c->rows * c->columns, count), shape, flow_words[flow],
                      orr_short_text((uint64_t)c->cycles, cycles),
                      w->base->opt.hardware ? orr_time_text((orr_ps)c->time, spent) : "-",
                      c->utilisation * 100);
    }
}

static orr_code give(orr_gemm_sweep *w, orr_str *out, orr_error *err)
{
    if (w->text.failed)
        return orr_no_memory(err);
    *out = (orr_str){(const char *)w->text.ptr, w->text.len};
    return ORR_OK;
}

orr_code orr_gemm_sweep_text(orr_gemm_sweep *w, bool is_colored, orr_str *out, orr_error *err)
{
    w->text.len = 0;
    lay_gemm_print_head(w->base, &w->text);
    for (uint32_t flow = 0; flow < FLOWS; flow++)
        print_map(w, flow, is_colored, &w->text);
    print_best(w, &w->text);
    return give(w, out, err);
}

/* ---- for programs ---- */

static void put_cell(const orr_gemm_sweep *w, orr_json_writer *j, const cell *c, uint32_t flow)
{
    orr_json_begin_object(j);
    orr_json_put_text(j, "dataflow", flow_words[flow]);
    orr_json_put_u64(j, "rows", c->rows);
    orr_json_put_u64(j, "columns", c->columns);
    orr_json_put_u64(j, "cycles", (uint64_t)c->cycles);
    orr_json_key(j, "time_ps");
    if (w->base->opt.hardware)
        orr_json_u64(j, (uint64_t)c->time);
    else
        orr_json_null(j);
    orr_json_put_double(j, "utilisation", c->utilisation);
    orr_json_end_object(j);
}

orr_code orr_gemm_sweep_json(orr_gemm_sweep *w, orr_str *out, orr_error *err)
{
    orr_json_writer j;
    const uint32_t each = w->sides * w->sides;
    w->text.len = 0;
    orr_json_writer_init(&j, &w->text, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&j);
    orr_json_put_text(&j, "format", "orrery-gemm-sweep");
    orr_json_put_u64(&j, "version", 1);
    lay_gemm_put_head(w->base, &j);
    orr_json_key(&j, "cells");
    orr_json_begin_array(&j);
    for (uint32_t i = 0; i < FLOWS * each; i++)
        put_cell(w, &j, &w->cells[i], i / each);
    orr_json_end_array(&j);
    orr_json_end_object(&j);
    orr_buf_byte(&w->text, '\n');
    return give(w, out, err);
}

orr_code orr_gemm_sweep_csv(orr_gemm_sweep *w, orr_str *out, orr_error *err)
{
    const uint32_t each = w->sides * w->sides;
    char text[ORR_NUMBER_ROOM];
    w->text.len = 0;
    orr_buf_text(&w->text, "dataflow,rows,columns,cycles,time_ps,utilisation\n");
    for (uint32_t i = 0; i < FLOWS * each; i++) {
        const cell *c = &w->cells[i];
        orr_buf_print(&w->text, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", flow_words[i / each],
                      c->rows, c->columns, (uint64_t)c->cycles);
        if (w->base->opt.hardware)
            orr_buf_u64(&w->text, (uint64_t)c->time);
        orr_buf_byte(&w->text, ',');
        orr_buf_add(&w->text, text, orr_double_text(c->utilisation, text));
        orr_buf_byte(&w->text, '\n');
    }
    return give(w, out, err);
}
