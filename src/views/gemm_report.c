/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_report.c - the cost of layers: a table in 80 columns, JSON, CSV (docs/format/gemm.md).
 *
 * On a chip times have intervals.  If the clock of a design is unknown, cycles replace times. */
#include "sources/layers/gemm_impl.h"

#include <orrery/lab/units.h>

#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROWS = 40, NAME = 15 };

static const char *const pass_keys[ORR_PASSES] = {"forward", "input_grad", "weight_grad"};
static const char *const dataflow_words[] = {"os", "ws", "is"};

/* ---- sums over all layers and copies ---- */

enum { COLLECTIVES = 4 };
static const char *const collectives[COLLECTIVES] = {"ALLREDUCE", "ALLGATHER", "REDUCESCATTER",
                                                     "ALLTOALL"};

/* Sums may exceed 64 bits and are only displayed: doubles. */
typedef struct totals {
    double pass_cycles[ORR_PASSES], pass_time[ORR_PASSES];
    double update_cycles, update_time;
    double products, traffic, weights;
    double bound[4]; /* cycles of passes bound by arrays, vectors, memory; overhead */
    double clocked;  /* on a chip: the part of their time that scales with its clock, in ps */
    double collective[COLLECTIVES];
} totals;

static void add_pass(const orr_gemm_pass *p, double copies, int i, totals *t)
{
    const uint64_t parts[] = {p->array_cycles, p->vector_cycles, p->memory_cycles};
    int longest = 0;
    for (int k = 1; k < 3; k++)
        longest = parts[k] > parts[longest] ? k : longest;
    t->bound[longest] += copies * (double)(p->cycles - p->overhead_cycles);
    t->bound[3] += copies * (double)p->overhead_cycles;
    t->pass_cycles[i] += copies * (double)p->cycles;
    t->pass_time[i] += copies * (double)p->time;
    t->clocked += copies * (double)p->time * p->clocked;
    t->products += copies * (double)p->products;
    t->traffic += copies * (double)p->traffic;
    for (int k = 0; k < COLLECTIVES; k++)
        t->collective[k] +=
            strcmp(p->comm, collectives[k]) == 0 ? copies * (double)p->comm_bytes : 0;
}

static totals sum_up(const orr_gemm *g)
{
    const double copies = g->opt.repeat;
    totals t = {.update_cycles = 0};
    for (size_t i = 0; i < g->count; i++) {
        const orr_gemm_layer *l = &g->layers[i];
        for (int k = 0; k < ORR_PASSES; k++)
            add_pass(&l->pass[k], copies, k, &t);
        t.update_cycles += copies * (double)l->update_cycles;
        t.update_time += copies * (double)l->update_time;
        t.weights += copies * (double)l->weights;
    }
    return t;
}

static double elements(const orr_gemm *g)
{
    return g->opt.hardware
               ? (double)g->hardware.arrays * (double)g->hardware.rows * (double)g->hardware.columns
               : (double)g->array.rows * (double)g->array.columns;
}

static double all_cycles(const totals *t)
{
    return t->pass_cycles[0] + t->pass_cycles[1] + t->pass_cycles[2];
}

static double all_time(const totals *t)
{
    return t->pass_time[0] + t->pass_time[1] + t->pass_time[2];
}

static double utilisation(const orr_gemm *g, const totals *t)
{
    if (g->opt.chip) {
        const double done = all_time(t) * g->opt.chip->peak_tflops[g->opt.type];
        return done > 0 ? 2 * t->products / done : 0; /* 10^12 in both */
    }
    return all_cycles(t) > 0 ? t->products / (all_cycles(t) * elements(g)) : 0;
}

/* ---- text ---- */

static const char *times_word(orr_gemm_times t)
{
    return t == ORR_TIMES_US ? "us" : t == ORR_TIMES_NS ? "ns" : "cycles";
}

static uint64_t whole(double v)
{
    return v < 9e18 ? (uint64_t)(v + 0.5) : 9000000000000000000u;
}

static void percent(double share, char out[ORR_UNIT_ROOM])
{
    orr_percent_text(whole(share * 1e6), 1000000, out);
}

static bool has_clock(const orr_gemm *g)
{
    return !g->opt.array;
}

/* A time, or cycles without a clock. */
static char *spent(const orr_gemm *g, double cycles, double time, char out[ORR_UNIT_ROOM])
{
    if (cycles <= 0) {
        out[0] = '-';
        out[1] = '\0';
        return out;
    }
    return has_clock(g) ? orr_time_text((orr_ps)whole(time), out)
                        : orr_short_text(whole(cycles), out);
}

/* ---- table ---- */

static void gemm_print_head(const orr_gemm *g, orr_buf *b)
{
    char clock[ORR_UNIT_ROOM], rate[ORR_UNIT_ROOM];
    const orr_hardware *hw = &g->hardware;
    orr_buf_print(b, "%.40s: %zu layer%s", g->label, g->count, g->count == 1 ? "" : "s");
    if (g->opt.repeat > 1)
        orr_buf_print(b, " x %" PRIu32, g->opt.repeat);
    orr_buf_print(b, "\n%s over %" PRIu32 " NPU%s", orr_policy_name(g->opt.policy), g->opt.npus,
                  g->opt.npus == 1 ? "" : "s");
    if (g->opt.packages > 1)
        orr_buf_print(b, " in %" PRIu32 " packages", g->opt.packages);
    orr_buf_print(b, ", %" PRIu32 " byte%s per element\n", g->opt.datatype_bytes,
                  g->opt.datatype_bytes == 1 ? "" : "s");
    if (g->opt.chip) {
        const orr_chip *c = g->opt.chip;
        orr_buf_print(b, "%s, %s: %s kernels\n", c->base ? c->base->name : c->name,
                      orr_kernel_type_name(g->opt.type),
                      c->base     ? "calibrated"
                      : c->source ? "measured"
                                  : "estimated");
        return;
    }
    if (!g->opt.hardware) {
        orr_buf_print(b, "one array of %" PRIu64 " x %" PRIu64 " (%s), no clock\n", g->array.rows,
                      g->array.columns, dataflow_words[g->array.dataflow]);
        return;
    }
    orr_buf_print(b, "%s: %" PRIu64 " array%s of %" PRIu64 " x %" PRIu64 " (%s), %s", hw->name,
                  hw->arrays, hw->arrays == 1 ? "" : "s", hw->rows, hw->columns,
                  dataflow_words[hw->dataflow], orr_frequency_text(hw->clock_hz, clock));
    if (hw->memory_bandwidth)
        orr_buf_print(b, ", %s", orr_rate_text(hw->memory_bandwidth, rate));
    orr_buf_byte(b, '\n');
}

static void print_row(orr_buf *b,
                      orr_str name,
                      const char *kind,
                      char cells[ORR_PASSES + 2][ORR_UNIT_ROOM],
                      const char *uneven)
{
    const bool is_cut = name.len > NAME;
    orr_buf_print(b, "%-*.*s%s %-11s %9s %9s %9s %6s %9s %6s\n", NAME - is_cut,
                  (int)(is_cut ? NAME - 1 : (int)name.len), name.ptr, is_cut ? "+" : "", kind,
                  cells[0], cells[1], cells[2], cells[3], cells[4], uneven);
}

static void print_layer(const orr_gemm *g, const orr_gemm_layer *l, orr_buf *b)
{
    char cells[ORR_PASSES + 2][ORR_UNIT_ROOM], uneven[ORR_UNIT_ROOM];
    double traffic = 0;
    uint64_t products = 0;
    for (int i = 0; i < ORR_PASSES; i++) {
        spent(g, (double)l->pass[i].cycles, (double)l->pass[i].time, cells[i]);
        traffic += (double)l->pass[i].traffic;
        products |= l->pass[i].products;
    }
    if (products)
        percent(l->utilisation, cells[3]);
    else
        orr_percent_text(0, 0, cells[3]); /* a dash */
    orr_bytes_text(whole(traffic), cells[4]);
    percent(l->imbalance, uneven);
    print_row(b, l->name, orr_shape_kind_name(l->kind), cells, uneven);
}

static void print_sum(const orr_gemm *g, const totals *t, orr_buf *b)
{
    char cells[ORR_PASSES + 2][ORR_UNIT_ROOM];
    for (int i = 0; i < ORR_PASSES; i++)
        spent(g, t->pass_cycles[i], t->pass_time[i], cells[i]);
    percent(utilisation(g, t), cells[3]);
    orr_bytes_text(whole(t->traffic), cells[4]);
    print_row(b, orr_str_of("all"), "", cells, "-");
}

static void print_interval(const orr_gemm *g, orr_buf *b)
{
    char low[ORR_UNIT_ROOM], high[ORR_UNIT_ROOM];
    orr_buf_print(b, " (90 %% interval: %s to %s)",
                  orr_time_text((orr_ps)whole(g->chip_sum.low_us * 1e6), low),
                  orr_time_text((orr_ps)whole(g->chip_sum.high_us * 1e6), high));
}

/* The share of time for which each part was the bottleneck. */
static void print_bounds(const orr_gemm *g, const totals *t, orr_buf *b)
{
    static const char *const names[] = {"arrays", "vector unit", "memory", "overhead"};
    char text[ORR_UNIT_ROOM];
    const char *comma = "";
    const double all = all_cycles(t);
    orr_buf_print(b, "a step computes for %s", spent(g, all, all_time(t), text));
    if (g->opt.chip && all > 0)
        print_interval(g, b);
    if (t->update_cycles > 0)
        orr_buf_print(b, " and updates weights for %s",
                      spent(g, t->update_cycles, t->update_time, text));
    if (g->opt.hardware && all > 0) {
        orr_buf_text(b, "\nlimited by: ");
        for (int i = 0; i < 4; i++) {
            if (t->bound[i] <= 0)
                continue;
            percent(t->bound[i] / all, text);
            orr_buf_print(b, "%s%s %s", comma, names[i], text);
            comma = ", ";
        }
    }
    if (g->opt.chip && all > 0) {
        percent(t->clocked / all_time(t), text);
        orr_buf_print(b, "\nscales with the clock: %s", text);
        if (g->chip_sum.capped_us > 1.001 * g->chip_sum.us)
            orr_buf_print(b, "; under the power cap, step after step: %s",
                          orr_time_text((orr_ps)whole(g->chip_sum.capped_us * 1e6), text));
    }
    orr_buf_byte(b, '\n');
}

/* The longest kernel outside the measured range, and how much of the time such kernels are. */
static void print_extrapolation(const orr_gemm *g, orr_buf *b)
{
    const lay_chip_sum *s = &g->chip_sum;
    char text[ORR_UNIT_ROOM], kernel[ORR_KERNEL_TEXT];
    const orr_gemm_kernel *worst = NULL;
    if (!g->opt.chip || !s->extrapolated)
        return;
    for (size_t i = 0; i < g->count; i++)
        for (int k = 0; k < ORR_PASSES; k++)
            for (size_t n = 0; n < g->layers[i].pass[k].kernel_count; n++) {
                const orr_gemm_kernel *one = &g->layers[i].pass[k].kernels[n];
                if (one->time.extrapolates && (!worst || one->time.us > worst->time.us))
                    worst = one;
            }
    percent(s->extrapolated_us / s->us, text);
    orr_buf_print(b, "note: %zu of %zu kernels, %s of the time, are outside what was measured",
                  s->extrapolated, s->kernels, text);
    if (worst) {
        orr_kernel_text(&worst->kernel, kernel, sizeof kernel);
        orr_buf_print(b, ", e.g.\n  %s (%s)", kernel, worst->time.basis);
    }
    orr_buf_byte(b, '\n');
}

static void print_collectives(const totals *t, orr_buf *b)
{
    char text[ORR_UNIT_ROOM];
    const char *before = "collectives: ";
    for (int i = 0; i < COLLECTIVES; i++) {
        if (t->collective[i] <= 0)
            continue;
        orr_buf_print(b, "%s%s %s", before, collectives[i],
                      orr_bytes_text(whole(t->collective[i]), text));
        before = ", ";
    }
    if (*before == ',')
        orr_buf_byte(b, '\n');
}

static void print_rounding(const orr_gemm *g, orr_buf *b)
{
    const double percents = g->rounding * 100;
    if (percents < 1 && percents > -1)
        return;
    orr_buf_print(b, "note: whole %s instead of exact times change the sum by %+.1f %%%s\n",
                  times_word(g->opt.times), percents,
                  g->opt.times == ORR_TIMES_US ? "; --times ns keeps more" : "");
}

static orr_code give(const orr_buf *text, orr_str *out, orr_error *err)
{
    *out = (orr_str){(const char *)text->ptr, text->len};
    return text->failed ? orr_no_memory(err) : ORR_OK;
}

orr_code orr_gemm_text(orr_gemm *g, orr_str *out, orr_error *err)
{
    char heads[ORR_PASSES + 2][ORR_UNIT_ROOM] = {"forward", "in. grad", "wt. grad", "used",
                                                 "traffic"};
    orr_buf *b = &g->text;
    const totals t = sum_up(g);
    b->len = 0;
    gemm_print_head(g, b);
    orr_buf_byte(b, '\n');
    print_row(b, orr_str_of("layer"), "type", heads, "uneven");
    for (size_t i = 0; i < g->count && i < ROWS; i++)
        print_layer(g, &g->layers[i], b);
    if (g->count > ROWS)
        orr_buf_print(b, "(%zu more)\n", g->count - ROWS);
    print_sum(g, &t, b);
    orr_buf_byte(b, '\n');
    print_bounds(g, &t, b);
    print_collectives(&t, b);
    print_extrapolation(g, b);
    print_rounding(g, b);
    return give(&g->text, out, err);
}

/* ---- JSON ---- */

/* null where there is no clock. */
static void put_time(const orr_gemm *g, orr_json_writer *w, const char *key, orr_ps time)
{
    orr_json_key(w, key);
    if (has_clock(g))
        orr_json_i64(w, time);
    else
        orr_json_null(w);
}

static void put_options(const orr_gemm *g, orr_json_writer *w)
{
    static const char *const updates[] = {"sgd", "momentum", "adam", "none", "given"};
    orr_json_key(w, "options");
    orr_json_begin_object(w);
    orr_json_put_text(w, "policy", orr_policy_name(g->opt.policy));
    orr_json_put_u64(w, "npus", g->opt.npus);
    orr_json_put_u64(w, "packages", g->opt.packages);
    orr_json_put_u64(w, "datatype_bytes", g->opt.datatype_bytes);
    orr_json_put_text(w, "type", g->opt.chip ? orr_kernel_type_name(g->opt.type) : NULL);
    orr_json_put_u64(w, "repeat", g->opt.repeat);
    orr_json_put_text(w, "times", times_word(g->opt.times));
    orr_json_put_text(w, "update", updates[g->opt.update]);
    orr_json_put_text(w, "compat", g->opt.rules ? g->opt.rules->name : NULL);
    orr_json_end_object(w);
}

static void put_input(const orr_gemm *g, orr_json_writer *w)
{
    char hash[ORR_CONTENT_HASH_ROOM];
    orr_json_key(w, "inputs");
    orr_json_begin_array(w);
    orr_json_begin_object(w);
    orr_json_put_text(w, "role", "shapes");
    orr_json_put_text(w, "path", g->label);
    orr_json_put_text(w, "content_hash_murmur3_128", orr_content_hash_text(g->hash, hash));
    orr_json_end_object(w);
    orr_json_end_array(w);
}

static void put_chip(const orr_gemm *g, orr_json_writer *w)
{
    const orr_chip *c = g->opt.chip;
    orr_json_put_object(w, "hardware");
    orr_json_put_fields(w, ORR_T("kind", "chip"), ORR_T("name", c->name), ORR_T("note", c->note),
                        ORR_T("source", c->source), ORR_B("calibrated", c->base != NULL),
                        ORR_D("peak_tflops", c->peak_tflops[g->opt.type]),
                        ORR_D("memory_GBps", c->memory_GBps), ORR_D("clock_MHz", c->clock_MHz));
    orr_json_end_object(w);
}

static void put_hardware(const orr_gemm *g, orr_json_writer *w)
{
    const orr_hardware *hw = &g->hardware;
    const bool is_chip = g->opt.hardware != NULL;
    if (g->opt.chip) {
        put_chip(g, w);
        return;
    }
    orr_json_key(w, "hardware");
    orr_json_begin_object(w);
    orr_json_put_text(w, "kind", "arrays");
    orr_json_put_text(w, "name", is_chip ? hw->name : NULL);
    orr_json_put_u64(w, "arrays", is_chip ? hw->arrays : 1);
    orr_json_put_u64(w, "rows", is_chip ? hw->rows : g->array.rows);
    orr_json_put_u64(w, "columns", is_chip ? hw->columns : g->array.columns);
    orr_json_put_text(w, "dataflow", dataflow_words[is_chip ? hw->dataflow : g->array.dataflow]);
    if (is_chip) {
        orr_json_put_u64(w, "clock_hz", hw->clock_hz);
        orr_json_put_u64(w, "memory_bandwidth_Bps", hw->memory_bandwidth);
        orr_json_put_u64(w, "input_buffer_bytes", hw->input_buffer);
        orr_json_put_u64(w, "weight_buffer_bytes", hw->weight_buffer);
        orr_json_put_u64(w, "output_buffer_bytes", hw->output_buffer);
        orr_json_put_u64(w, "vector_width", hw->vector_width);
        orr_json_put_u64(w, "overhead_ps", (uint64_t)hw->overhead);
    }
    orr_json_end_object(w);
}

/* The head that the reports share. */
static void gemm_put_head(const orr_gemm *g, orr_json_writer *w)
{
    orr_json_key(w, "provenance");
    orr_json_begin_object(w);
    orr_json_put_text(w, "program", g->opt.program);
    put_input(g, w);
    put_options(g, w);
    orr_json_end_object(w);
    put_hardware(g, w);
}

static void put_kernel(orr_json_writer *w, const orr_gemm_kernel *k)
{
    char text[ORR_KERNEL_TEXT];
    orr_kernel_text(&k->kernel, text, sizeof text);
    orr_json_line(w, 5);
    orr_json_put_row(w, ORR_T("kernel", text), ORR_F("us", "%.4f", k->time.us),
                     ORR_F("low_us", "%.4f", k->time.low_us),
                     ORR_F("high_us", "%.4f", k->time.high_us), ORR_T("basis", k->time.basis),
                     ORR_B("extrapolates", k->time.extrapolates), ORR_U("shares", k->shares));
}

static void put_kernels(orr_json_writer *w, const orr_gemm_kernel *all, size_t count)
{
    orr_json_put_array(w, "kernels");
    for (size_t i = 0; i < count; i++)
        put_kernel(w, &all[i]);
    orr_json_end_array(w);
}

static void put_pass(const orr_gemm *g, orr_json_writer *w, const char *key, const orr_gemm_pass *p)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
    orr_json_put_u64(w, "cycles", p->cycles);
    put_time(g, w, "time_ps", p->time);
    if (g->opt.chip) {
        put_time(g, w, "low_ps", p->low);
        put_time(g, w, "high_ps", p->high);
    } else {
        orr_json_put_u64(w, "array_cycles", p->array_cycles);
        orr_json_put_u64(w, "vector_cycles", p->vector_cycles);
        orr_json_put_u64(w, "memory_cycles", p->memory_cycles);
        orr_json_put_u64(w, "overhead_cycles", p->overhead_cycles);
    }
    orr_json_put_u64(w, "multiply_adds", p->products);
    orr_json_put_u64(w, "traffic_bytes", p->traffic);
    orr_json_put_text(w, "collective", p->comm);
    orr_json_put_u64(w, "collective_bytes", p->comm_bytes);
    orr_json_put_u64(w, "in_table", p->in_table);
    if (g->opt.chip) {
        orr_json_put_bool(w, "extrapolates", p->extrapolates);
        put_kernels(w, p->kernels, p->kernel_count);
    }
    orr_json_end_object(w);
}

static void put_layer(const orr_gemm *g, orr_json_writer *w, const orr_gemm_layer *l)
{
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, l->name);
    orr_json_put_text(w, "type", orr_shape_kind_name(l->kind));
    orr_json_put_text(w, "strategy", orr_policy_name(l->policy));
    for (int i = 0; i < ORR_PASSES; i++)
        put_pass(g, w, pass_keys[i], &l->pass[i]);
    orr_json_put_u64(w, "update_cycles", l->update_cycles);
    put_time(g, w, "update_time_ps", l->update_time);
    if (g->opt.chip) {
        put_time(g, w, "update_low_ps", l->update_low);
        put_time(g, w, "update_high_ps", l->update_high);
    }
    orr_json_put_u64(w, "update_in_table", l->update_in_table);
    orr_json_put_u64(w, "weight_bytes", l->weights);
    orr_json_put_double(w, "utilisation", l->utilisation);
    orr_json_put_double(w, "imbalance", l->imbalance);
    orr_json_end_object(w);
}

/* Integers while they are exact. */
static void put_sum(orr_json_writer *w, const char *key, double v)
{
    if (v < 9007199254740992.0)
        orr_json_put_u64(w, key, whole(v));
    else
        orr_json_put_double(w, key, v);
}

static void put_totals(const orr_gemm *g, orr_json_writer *w)
{
    static const char *const total_keys[ORR_PASSES] = {"forward_cycles", "input_grad_cycles",
                                                       "weight_grad_cycles"};
    const totals t = sum_up(g);
    orr_json_key(w, "total");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "layers", (uint64_t)g->count * g->opt.repeat);
    for (int i = 0; i < ORR_PASSES; i++)
        put_sum(w, total_keys[i], t.pass_cycles[i]);
    put_sum(w, "update_cycles", t.update_cycles);
    orr_json_key(w, "compute_time_ps");
    if (has_clock(g))
        orr_json_u64(w, whole(all_time(&t)));
    else
        orr_json_null(w);
    if (g->opt.chip) {
        orr_json_put_u64(w, "compute_time_low_ps", whole(g->chip_sum.low_us * 1e6));
        orr_json_put_u64(w, "compute_time_high_ps", whole(g->chip_sum.high_us * 1e6));
        orr_json_put_u64(w, "compute_time_capped_ps", whole(g->chip_sum.capped_us * 1e6));
        orr_json_put_u64(w, "extrapolated_ps", whole(g->chip_sum.extrapolated_us * 1e6));
    }
    put_sum(w, "multiply_adds", t.products);
    put_sum(w, "traffic_bytes", t.traffic);
    put_sum(w, "weight_bytes", t.weights);
    orr_json_key(w, "collective_bytes");
    orr_json_begin_object(w);
    for (int i = 0; i < COLLECTIVES; i++)
        put_sum(w, collectives[i], t.collective[i]);
    orr_json_end_object(w);
    orr_json_put_double(w, "utilisation", utilisation(g, &t));
    orr_json_put_double(w, "rounding", g->rounding);
    orr_json_end_object(w);
}

orr_code orr_gemm_json(orr_gemm *g, orr_str *out, orr_error *err)
{
    orr_json_writer w;
    g->text.len = 0;
    orr_json_writer_init(&w, &g->text, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&w);
    orr_json_put_text(&w, "format", "orrery-gemm");
    orr_json_put_u64(&w, "version", 2);
    gemm_put_head(g, &w);
    orr_json_key(&w, "layers");
    orr_json_begin_array(&w);
    for (size_t i = 0; i < g->count; i++)
        put_layer(g, &w, &g->layers[i]);
    orr_json_end_array(&w);
    put_totals(g, &w);
    orr_json_end_object(&w);
    orr_buf_byte(&g->text, '\n');
    return give(&g->text, out, err);
}

/* ---- CSV ---- */

static void add_double(orr_buf *b, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_byte(b, ',');
    orr_buf_add(b, text, orr_double_text(v, text));
}

static void add_u64(orr_buf *b, uint64_t v)
{
    orr_buf_byte(b, ',');
    orr_buf_u64(b, v);
}

/* A name that was quoted in the file may hold a comma or a quote. */
static void add_name(orr_buf *b, orr_str name)
{
    orr_buf_byte(b, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            orr_buf_byte(b, '"');
        orr_buf_byte(b, (uint8_t)name.ptr[i]);
    }
    orr_buf_byte(b, '"');
}

/* Empty without a chip. */
static void add_intervals(const orr_gemm *g, const orr_gemm_layer *l, orr_buf *b)
{
    bool extrapolates = false;
    for (int i = 0; i < ORR_PASSES; i++) {
        extrapolates |= l->pass[i].extrapolates;
        if (!g->opt.chip) {
            orr_buf_text(b, ",,");
            continue;
        }
        add_u64(b, (uint64_t)l->pass[i].low);
        add_u64(b, (uint64_t)l->pass[i].high);
    }
    orr_buf_text(b, !g->opt.chip ? "," : extrapolates ? ",yes" : ",no");
}

static void add_layer(const orr_gemm *g, const orr_gemm_layer *l, orr_buf *b)
{
    add_name(b, l->name);
    orr_buf_print(b, ",%s,%s", orr_shape_kind_name(l->kind), orr_policy_name(l->policy));
    for (int i = 0; i < ORR_PASSES; i++) {
        const orr_gemm_pass *p = &l->pass[i];
        add_u64(b, p->cycles);
        if (has_clock(g))
            add_u64(b, (uint64_t)p->time);
        else
            orr_buf_byte(b, ',');
        add_u64(b, p->products);
        add_u64(b, p->traffic);
        orr_buf_print(b, ",%s", p->comm);
        add_u64(b, p->comm_bytes);
    }
    add_u64(b, l->update_cycles);
    add_u64(b, l->weights);
    add_double(b, l->utilisation);
    add_double(b, l->imbalance);
    add_intervals(g, l, b);
    orr_buf_byte(b, '\n');
}

orr_code orr_gemm_csv(orr_gemm *g, orr_str *out, orr_error *err)
{
    orr_buf *b = &g->text;
    b->len = 0;
    orr_buf_text(b, "layer,type,strategy");
    for (int i = 0; i < ORR_PASSES; i++) {
        static const char *const columns[] = {"cycles",        "time_ps",    "multiply_adds",
                                              "traffic_bytes", "collective", "collective_bytes"};
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            orr_buf_print(b, ",%s_%s", pass_keys[i], columns[k]);
    }
    orr_buf_text(b, ",update_cycles,weight_bytes,utilisation,imbalance");
    for (int i = 0; i < ORR_PASSES; i++)
        orr_buf_print(b, ",%s_low_ps,%s_high_ps", pass_keys[i], pass_keys[i]);
    orr_buf_text(b, ",extrapolates\n");
    for (size_t i = 0; i < g->count; i++)
        add_layer(g, &g->layers[i], b);
    return give(&g->text, out, err);
}

/* ==== the same layers on arrays of every size and shape, with each dataflow.
 *
 * Rows and columns are powers of two, so an anti-diagonal of the map has arrays with equally many
 * elements.  The number of arrays, clock and memory are unchanged.  Copies of the table change no
 * ratio and are left out. Cost: one evaluation of all layers per cell. */

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
    orr_gemm *base; /* for the head: the hardware as given */
    uint32_t sides; /* number of values of rows and of columns */
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
    if (!code && opt->chip)
        code = orr_fail(err, ORR_EUSAGE, NULL, "a sweep tries arrays: it requires a design");
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

/* ---- map ---- */

/* Six steps from blue to red, in basic terminal colours; the number in the cell says the same. */
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

/* At most 80 columns: 12 columns of the map. */
static void print_map(const orr_gemm_sweep *w, uint32_t flow, bool is_colored, orr_buf *b)
{
    const uint32_t shown = w->sides < 12 ? w->sides : 12;
    orr_buf_print(b, "\n%s: %% of the array's elements in use\n%7s", flow_names[flow], "columns");
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

/* The fastest array with this many elements; of equal ones the first. */
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

orr_code orr_gemm_sweep_text(orr_gemm_sweep *w, bool is_colored, orr_str *out, orr_error *err)
{
    w->text.len = 0;
    gemm_print_head(w->base, &w->text);
    for (uint32_t flow = 0; flow < FLOWS; flow++)
        print_map(w, flow, is_colored, &w->text);
    print_best(w, &w->text);
    return give(&w->text, out, err);
}

/* ---- JSON ---- */

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
    gemm_put_head(w->base, &j);
    orr_json_key(&j, "cells");
    orr_json_begin_array(&j);
    for (uint32_t i = 0; i < FLOWS * each; i++)
        put_cell(w, &j, &w->cells[i], i / each);
    orr_json_end_array(&j);
    orr_json_end_object(&j);
    orr_buf_byte(&w->text, '\n');
    return give(&w->text, out, err);
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
    return give(&w->text, out, err);
}
