/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_nccl_tests.c - orrery nccl-tests: the table that nccl-tests would print on a machine.
 *
 * Columns, widths and units are those of nccl-tests with -c 0, so that the two can be compared line
 * by line and 'orrery calibrate nccl' reads both. */
#include "command.h"

#include <orrery/lab/collectives.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"machine", 'm', "MACHINE", "the cluster ('orrery machine list')", .required = true},
    {"op", 0, "OP",
     "all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, gather, scatter or sendrecv",
     .fallback = "all_reduce"},
    {"ranks", 'n', "N", "number of ranks; default: all devices", CLI_COUNT, 2, 1 << 24},
    {"per-node", 0, "N", "ranks on each node; default: one per device", CLI_COUNT, 1, 1 << 20},
    {"minbytes", 'b', "SIZE", "smallest size; K, M, G: 1024, 1024^2, 1024^3", .fallback = "8"},
    {"maxbytes", 'e', "SIZE", "largest size", .fallback = "8G"},
    {"stepfactor", 'f', "N", "multiply the size by N at each step", CLI_COUNT, 2, 1 << 20, "2"},
    {"stepbytes", 'i', "SIZE", "increase the size by SIZE at each step"},
    {"datatype", 'd', "TYPE",
     "int8, uint8, int32, uint32, int64, uint64, half, bfloat16, float or double",
     .fallback = "float"},
    {"algorithm", 'a', "NAME",
     "ring, tree, nvls, nvls-tree, collnet-direct, collnet-chain, pat or direct; default: as NCCL "
     "chooses"},
    {"protocol", 'p', "LL|LL128|Simple", "default: as NCCL chooses"},
    {"channels", 0, "N", "channels; default: as NCCL does", CLI_COUNT, 1, 1024},
    {"collnet", 0, NULL, "use in-network reduction (SHARP) between nodes (NCCL_COLLNET_ENABLE=1)"},
    {"choice", 'c', NULL, "also algorithm, protocol, channels and the 90 % interval of each time"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_example examples[] = {
    {"All-reduce on the 8 GPUs of a DGX H100:", "orrery nccl-tests --machine dgx-h100", 0},
    {"On 16 nodes, with algorithm and 90 % interval:",
     "orrery nccl-tests --machine dgx-h100:16 -b 1M -e 4G --choice", 0},
    {"Two ranks on each of 4 nodes:",
     "orrery nccl-tests -m dgx-a100:4 --op all_gather --ranks 8 --per-node 2", 0},
    {"What a tree would take:",
     "orrery nccl-tests -m dgx-h100:4 --algorithm tree -b 64K -e 64M --json", 0},
    {0},
};

/* ---- values ---- */

/* Sizes as nccl-tests reads them: an integer, then K, M, G or a unit. */
static orr_code read_size(const char *option, const char *text, uint64_t *out, orr_error *err)
{
    char *end;
    const uint64_t n = strtoull(text, &end, 10);
    const char *const letters = "KMG";
    const char *at = *end ? strchr(letters, *end & ~0x20) : NULL;
    const bool plain = text[0] >= '0' && text[0] <= '9';
    const unsigned shift = at && *at && !end[1] ? 10 * (unsigned)(at - letters + 1) : 0;
    if (plain && n > 0 && (!*end || shift) && n <= (1ull << 50) >> shift) {
        *out = n << shift;
        return ORR_OK;
    }
    if (orr_bytes_parse(text, out, NULL) == ORR_OK && *out > 0 && *out <= 1ull << 50)
        return ORR_OK;
    return cli_misuse(err, "--%s '%s' is not a size such as 8, 32K, 1M or 8G", option, text);
}

/* 0: there is no such type. */
static uint32_t width_of(const char *type)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } known[] = {{"int8", 1},   {"uint8", 1}, {"half", 2},  {"bfloat16", 2}, {"int32", 4},
                 {"uint32", 4}, {"float", 4}, {"int64", 8}, {"uint64", 8},   {"double", 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, type) == 0)
            return known[i].bytes;
    return 0;
}

typedef struct test {
    orr_machine machine;
    orr_alone *alone;
    orr_alone_ask ask;
    uint32_t ranks, nodes, width;
    const char *type;
    uint64_t from, to, factor, step;
} test;

typedef struct row {
    uint64_t size, count;
    orr_alone_time t;
    double us, alg, bus;
} row;

static orr_code prepare(const cli_context *c, test *t, orr_error *err)
{
    const char *name = cli_text(c, "machine");
    orr_code code;
    t->ask = (orr_alone_ask){.op = orr_alone_op_find(cli_text(c, "op")),
                             .ranks = (uint32_t)cli_count(c, "ranks"),
                             .per_node = (uint32_t)cli_count(c, "per-node"),
                             .algorithm = cli_text(c, "algorithm"),
                             .protocol = cli_text(c, "protocol"),
                             .channels = (uint32_t)cli_count(c, "channels"),
                             .collnet = cli_flag(c, "collnet")};
    t->type = cli_text(c, "datatype");
    t->width = width_of(t->type);
    if (!t->ask.op || !t->width)
        return cli_misuse(
            err, t->ask.op ? "--datatype: unknown type '%s'" : "--op: unknown operation '%s'",
            t->ask.op ? t->type : cli_text(c, "op"));
    t->factor = cli_count(c, "stepfactor");
    code = read_size("minbytes", cli_text(c, "minbytes"), &t->from, err);
    if (!code)
        code = read_size("maxbytes", cli_text(c, "maxbytes"), &t->to, err);
    if (!code && cli_given(c, "stepbytes"))
        code = read_size("stepbytes", cli_text(c, "stepbytes"), &t->step, err);
    if (!code && t->from > t->to)
        code = cli_misuse(err, "--minbytes is above --maxbytes");
    if (!code && t->step && (t->to - t->from) / t->step > 100000)
        code = cli_misuse(err, "--stepbytes makes more than 100,000 rows");
    if (!code)
        code = t->ask.ranks && !t->ask.per_node
                   ? orr_machine_for(name, t->ask.ranks, &t->machine, err)
                   : orr_machine_find(name, &t->machine, err);
    if (code)
        return code;
    t->ranks = t->ask.ranks ? t->ask.ranks : orr_machine_devices(&t->machine);
    if (t->ranks < 2)
        return cli_misuse(err, "%s has only one device; collectives need at least two", name);
    return orr_alone_open(&t->machine, &t->alone, err);
}

/* Round a size as nccl-tests does: parts are multiples of 16 bytes.  False: nothing is left. */
static bool sizes_of(const test *t, uint64_t size, row *r)
{
    uint64_t count = size / t->width;
    if (t->ask.op->in_parts) {
        count = count / t->ranks / (16 / t->width) * (16 / t->width);
        r->size = count * t->ranks * t->width;
    } else {
        r->size = count * t->width;
    }
    r->count = count;
    return count > 0;
}

static orr_code time_row(const test *t, row *r, orr_error *err)
{
    orr_alone_ask ask = t->ask;
    ask.bytes = r->size;
    const orr_code code = orr_alone_time_of(t->alone, &ask, &r->t, err);
    if (code)
        return code;
    r->us = r->t.ns / 1e3;
    r->alg = r->us > 0 ? (double)r->size / r->us / 1e3 : 0;
    r->bus = r->alg * orr_alone_bus_factor(t->ask.op, t->ranks);
    return ORR_OK;
}

/* ---- the table ---- */

/* As many decimals as fit, at most two. */
static void put_number(int width, double v)
{
    char text[64];
    for (int digits = 2; digits >= 0; digits--) {
        if (snprintf(text, sizeof text, "%*.*f", width, digits, v) <= width || digits == 0)
            break;
    }
    printf("  %s", text);
}

static void put_side(const row *r)
{
    put_number(7, r->us);
    put_number(6, r->alg);
    put_number(6, r->bus);
    printf("     N/A");
}

static void print_head(const test *t, const orr_alone_time *first, bool with_choice)
{
    const uint32_t per = t->ask.per_node ? t->ask.per_node : t->machine.devices;
    printf("# orrery: predicted for %s, not measured\n", t->machine.name);
    printf("# Collective test starting: %s_perf\n", t->ask.op->name);
    printf("# nThread 1 nGpus 1 minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
           "(%s) warmup iters: 1 iters: 20 agg iters: 1 validation: 0 graph: 0\n#\n",
           t->from, t->to, t->step ? t->step : t->factor, t->step ? "bytes" : "factor");
    printf("# Using devices\n");
    for (uint32_t i = 0; i < first->ranks; i++)
        printf("#  Rank %2" PRIu32 " Group  0 Pid      0 on %6s%" PRIu32 " device %2" PRIu32
               " [0000:00:00] %s\n",
               i, "node", i / per, i % per, t->machine.chip);
    printf(
        "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n",
        "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s%s\n", "size",
           "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
           "busbw", "#wrong",
           with_choice ? "  algorithm       protocol  channels  low       high" : "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s%s\n", "(B)",
           "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "",
           with_choice ? "                                     (us)      (us)" : "");
}

static void print_row(const test *t, const row *r, bool with_choice)
{
    printf("%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d", r->size, r->count, t->type,
           t->ask.op->reduces ? "sum" : "none", t->ask.op->has_root ? 0 : -1);
    put_side(r);
    put_side(r);
    if (with_choice)
        printf("  %-14s  %-8s  %8" PRIu32 "  %-8.2f  %.2f%s", r->t.algorithm, r->t.protocol,
               r->t.channels, r->t.low_ns / 1e3, r->t.high_ns / 1e3, r->t.extrapolates ? " *" : "");
    putchar('\n');
}

static void put_json_row(orr_json_writer *w, const row *r)
{
    orr_json_line(w, 2);
    orr_json_put_row(
        w, ORR_U("size", r->size), ORR_U("count", r->count), ORR_F("time_us", "%.3f", r->us),
        ORR_F("low_us", "%.3f", r->t.low_ns / 1e3), ORR_F("high_us", "%.3f", r->t.high_ns / 1e3),
        ORR_F("latency_us", "%.3f", r->t.latency_ns / 1e3), ORR_F("algbw_GBps", "%.3f", r->alg),
        ORR_F("busbw_GBps", "%.3f", r->bus), ORR_T("algorithm", r->t.algorithm),
        ORR_T("protocol", r->t.protocol), ORR_U("channels", r->t.channels),
        ORR_F("scale_up_bytes", "%.0f", r->t.up_bytes), ORR_F("nic_bytes", "%.0f", r->t.out_bytes),
        ORR_B("extrapolates", r->t.extrapolates));
}

typedef struct sums {
    double bus;
    size_t rows;
    bool extrapolates;
} sums;

static orr_code each_row(
    const cli_context *c, const test *t, orr_json_writer *w, sums *s, orr_error *err)
{
    const bool choice = cli_flag(c, "choice");
    for (uint64_t size = t->from;;) {
        row r;
        if (sizes_of(t, size, &r)) {
            const orr_code code = time_row(t, &r, err);
            if (code)
                return code;
            if (w)
                put_json_row(w, &r);
            else if (s->rows == 0)
                print_head(t, &r.t, choice);
            if (!w)
                print_row(t, &r, choice);
            s->bus += r.bus;
            s->rows++;
            s->extrapolates |= r.t.extrapolates;
        }
        if (t->step ? t->to - size < t->step : size > t->to / t->factor)
            break;
        size = t->step ? size + t->step : size * t->factor;
    }
    if (s->rows == 0)
        return cli_misuse(
            err, "no size from --minbytes to --maxbytes gives each of %" PRIu32 " ranks 16 bytes",
            t->ranks);
    return ORR_OK;
}

static orr_code print_json(const cli_context *c, const test *t, orr_error *err)
{
    orr_alone_ask ask = t->ask;
    orr_alone_time first;
    cli_json j;
    sums s = {0};
    ask.bytes = t->to;
    orr_code code = orr_alone_time_of(t->alone, &ask, &first, err);
    if (code)
        return code;
    orr_json_writer *w = cli_json_open(&j, "orrery-nccl-tests");
    orr_json_put_fields(w, ORR_T("machine", t->machine.name), ORR_T("op", t->ask.op->name),
                        ORR_T("datatype", t->type), ORR_U("ranks", first.ranks),
                        ORR_U("nodes", first.nodes));
    orr_json_put_array(w, "rows");
    code = each_row(c, t, w, &s, err);
    orr_json_end_array(w);
    orr_json_put_fields(w,
                        ORR_F("average_busbw_GBps", "%.4f", s.rows ? s.bus / (double)s.rows : 0));
    if (!code)
        cli_json_close(&j);
    else
        orr_buf_fini(&j.text);
    return code;
}

static orr_code print_text(const cli_context *c, const test *t, orr_error *err)
{
    sums s = {0};
    const orr_code code = each_row(c, t, NULL, &s, err);
    if (code)
        return code;
    printf("# %-20s : %d %s\n", "Out of bounds values", 0, "OK");
    printf("# %-20s : %g \n#\n", "Avg bus bandwidth", s.bus / (double)s.rows);
    printf("# Collective test concluded: %s_perf\n", t->ask.op->name);
    if (s.extrapolates && cli_flag(c, "choice"))
        printf("# * outside the measured range: a wider interval\n");
    return ORR_OK;
}

static orr_code nccl_tests_run(cli_context *c, orr_error *err)
{
    test t = {.alone = NULL};
    orr_code code = prepare(c, &t, err);
    if (!code)
        code = cli_flag(c, "json") ? print_json(c, &t, err) : print_text(c, &t, err);
    orr_alone_close(t.alone);
    return code;
}

const cli_command cli_cmd_nccl_tests = {
    .name = "nccl-tests",
    .summary = "predict what nccl-tests prints on a machine",
    .description =
        "Prints the table of NCCL's performance tests for a machine that may not exist: time, algorithm bandwidth and bus "
        "bandwidth by size, with NCCL's choice of algorithm and protocol.  Compare it "
        "with a measurement, or fit the machine to one "
        "with 'orrery calibrate nccl'.  Times in place and out of place are the same.  Sizes that leave a rank less than 16 "
        "bytes are left out.",
    .options = options,
    .examples = examples,
    .see_also = "orrery-calibrate-nccl(1), orrery-machine(1), orrery-run(1)",
    .run = nccl_tests_run,
};
