/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_nccl_tests.c - orrery nccl-tests: the table that nccl-tests would print on a machine. */
#include "command.h"

#include <orrery/lab/collectives.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
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

typedef struct test {
    orr_machine machine;
    orr_alone *alone;
    orr_alone_ask ask;
    uint32_t ranks, nodes, width;
    const char *type;
    uint64_t from, to, factor, step;
    orr_nccl_tests_row *rows;
    size_t row_count, room;
} test;

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
    t->width = orr_alone_type_bytes(t->type);
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
static bool sizes_of(const test *t, uint64_t size, orr_nccl_tests_row *r)
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

static orr_code time_row(const test *t, orr_nccl_tests_row *r, orr_error *err)
{
    orr_alone_ask ask = t->ask;
    ask.bytes = r->size;
    const orr_code code = orr_alone_time_of(t->alone, &ask, &r->time, err);
    if (code)
        return code;
    r->us = r->time.ns / 1e3;
    r->alg = r->us > 0 ? (double)r->size / r->us / 1e3 : 0;
    r->bus = r->alg * orr_alone_bus_factor(t->ask.op, t->ranks);
    return ORR_OK;
}

static orr_code keep_row(test *t, const orr_nccl_tests_row *r, orr_error *err)
{
    if (t->row_count == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        orr_nccl_tests_row *more = realloc(t->rows, room * sizeof *more);
        if (!more)
            return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
        t->rows = more;
        t->room = room;
    }
    t->rows[t->row_count++] = *r;
    return ORR_OK;
}

/* Every size from --minbytes to --maxbytes. */
static orr_code time_rows(test *t, orr_error *err)
{
    for (uint64_t size = t->from;;) {
        orr_nccl_tests_row r;
        if (sizes_of(t, size, &r)) {
            orr_code code = time_row(t, &r, err);
            if (!code)
                code = keep_row(t, &r, err);
            if (code)
                return code;
        }
        if (t->step ? t->to - size < t->step : size > t->to / t->factor)
            break;
        size = t->step ? size + t->step : size * t->factor;
    }
    if (t->row_count == 0)
        return cli_misuse(
            err, "no size from --minbytes to --maxbytes gives each of %" PRIu32 " ranks 16 bytes",
            t->ranks);
    return ORR_OK;
}

static orr_code show_rows(const cli_context *c, const test *t, orr_error *err)
{
    const orr_nccl_tests facts = {.machine = &t->machine,
                                  .op = t->ask.op,
                                  .type = t->type,
                                  .per_node = t->ask.per_node,
                                  .from = t->from,
                                  .to = t->to,
                                  .factor = t->factor,
                                  .step = t->step,
                                  .rows = t->rows,
                                  .row_count = t->row_count};
    return orr_show_nccl_tests(&facts, cli_flag(c, "choice"), cli_show_form(c), "-", err);
}

static orr_code nccl_tests_run(cli_context *c, orr_error *err)
{
    test t = {.alone = NULL};
    orr_code code = prepare(c, &t, err);
    if (!code)
        code = time_rows(&t, err);
    if (!code)
        code = show_rows(c, &t, err);
    orr_alone_close(t.alone);
    free(t.rows);
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
