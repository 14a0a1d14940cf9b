/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_tests_view.c - predicted collectives as the table that nccl-tests prints, and as JSON.
 *
 * Columns, widths and units are those of nccl-tests with -c 0, so that the two can be compared line
 * by line and 'orrery calibrate nccl' reads both. */
#include <orrery/lab/show.h>

#include "views_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* As many decimals as fit, at most two. */
static void print_number(orr_buf *to, int width, double v)
{
    char text[64];
    for (int digits = 2; digits >= 0; digits--) {
        if (snprintf(text, sizeof text, "%*.*f", width, digits, v) <= width || digits == 0)
            break;
    }
    orr_buf_print(to, "  %s", text);
}

static void print_side(orr_buf *to, const orr_nccl_tests_row *r)
{
    print_number(to, 7, r->us);
    print_number(to, 6, r->alg);
    print_number(to, 6, r->bus);
    orr_buf_print(to, "     N/A");
}

static void print_head(orr_buf *to, const orr_nccl_tests *t, bool with_choice)
{
    const uint32_t per = t->per_node ? t->per_node : t->machine->devices;
    orr_buf_print(to, "# orrery: predicted for %s, not measured\n", t->machine->name);
    orr_buf_print(to, "# Collective test starting: %s_perf\n", t->op->name);
    orr_buf_print(to,
                  "# nThread 1 nGpus 1 minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
                  "(%s) warmup iters: 1 iters: 20 agg iters: 1 validation: 0 graph: 0\n#\n",
                  t->from, t->to, t->step ? t->step : t->factor, t->step ? "bytes" : "factor");
    orr_buf_print(to, "# Using devices\n");
    for (uint32_t i = 0; i < t->rows[0].time.ranks; i++)
        orr_buf_print(to,
                      "#  Rank %2" PRIu32 " Group  0 Pid      0 on %6s%" PRIu32 " device %2" PRIu32
                      " [0000:00:00] %s\n",
                      i, "node", i / per, i % per, t->machine->chip);
    orr_buf_print(
        to,
        "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n",
        "", "", "", "", "");
    orr_buf_print(to, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s%s\n",
                  "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
                  "time", "algbw", "busbw", "#wrong",
                  with_choice ? "  algorithm       protocol  channels  low       high" : "");
    orr_buf_print(to, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s%s\n",
                  "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
                  "(GB/s)", "",
                  with_choice ? "                                     (us)      (us)" : "");
}

static void print_row(orr_buf *to,
                      const orr_nccl_tests *t,
                      const orr_nccl_tests_row *r,
                      bool with_choice)
{
    orr_buf_print(to, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d", r->size, r->count, t->type,
                  t->op->reduces ? "sum" : "none", t->op->has_root ? 0 : -1);
    print_side(to, r);
    print_side(to, r);
    if (with_choice)
        orr_buf_print(to, "  %-14s  %-8s  %8" PRIu32 "  %-8.2f  %.2f%s", r->time.algorithm,
                      r->time.protocol, r->time.channels, r->time.low_ns / 1e3,
                      r->time.high_ns / 1e3, r->time.extrapolates ? " *" : "");
    orr_buf_byte(to, '\n');
}

static void put_row(orr_json_writer *w, const orr_nccl_tests_row *r)
{
    orr_json_line(w, 2);
    orr_json_put_row(
        w, ORR_U("size", r->size), ORR_U("count", r->count), ORR_F("time_us", "%.3f", r->us),
        ORR_F("low_us", "%.3f", r->time.low_ns / 1e3),
        ORR_F("high_us", "%.3f", r->time.high_ns / 1e3),
        ORR_F("latency_us", "%.3f", r->time.latency_ns / 1e3), ORR_F("algbw_GBps", "%.3f", r->alg),
        ORR_F("busbw_GBps", "%.3f", r->bus), ORR_T("algorithm", r->time.algorithm),
        ORR_T("protocol", r->time.protocol), ORR_U("channels", r->time.channels),
        ORR_F("scale_up_bytes", "%.0f", r->time.up_bytes),
        ORR_F("nic_bytes", "%.0f", r->time.out_bytes), ORR_B("extrapolates", r->time.extrapolates));
}

static double mean_bus(const orr_nccl_tests *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->row_count; i++)
        sum += t->rows[i].bus;
    return sum / (double)t->row_count;
}

static orr_code save_json(const orr_nccl_tests *t, const char *path, orr_error *err)
{
    orr__document d;
    orr_json_writer *w = orr__document_begin(&d, "orrery-nccl-tests");
    orr_json_put_fields(w, ORR_T("machine", t->machine->name), ORR_T("op", t->op->name),
                        ORR_T("datatype", t->type), ORR_U("ranks", t->rows[0].time.ranks),
                        ORR_U("nodes", t->rows[0].time.nodes));
    orr_json_put_array(w, "rows");
    for (size_t i = 0; i < t->row_count; i++)
        put_row(w, &t->rows[i]);
    orr_json_end_array(w);
    orr_json_put_fields(w, ORR_F("average_busbw_GBps", "%.4f", mean_bus(t)));
    return orr__document_save(&d, path, err);
}

orr_code orr_show_nccl_tests(
    const orr_nccl_tests *t, bool with_choice, orr_show_form form, const char *path, orr_error *err)
{
    orr_buf b = {0};
    bool extrapolates = false;
    if (form == ORR_SHOW_JSON)
        return save_json(t, path, err);
    print_head(&b, t, with_choice);
    for (size_t i = 0; i < t->row_count; i++) {
        print_row(&b, t, &t->rows[i], with_choice);
        extrapolates |= t->rows[i].time.extrapolates;
    }
    orr_buf_print(&b, "# %-20s : %d %s\n", "Out of bounds values", 0, "OK");
    orr_buf_print(&b, "# %-20s : %g \n#\n", "Avg bus bandwidth", mean_bus(t));
    orr_buf_print(&b, "# Collective test concluded: %s_perf\n", t->op->name);
    if (extrapolates && with_choice)
        orr_buf_print(&b, "# * outside the measured range: a wider interval\n");
    return orr__text_save(&b, path, err);
}
