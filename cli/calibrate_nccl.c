/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_nccl.c - orrery calibrate nccl: constants of a machine's collectives from nccl-tests.
 *
 * Writes two files: the machine, and beside it the table that it names.  Both are checked for
 * writability before the fit. */
#include "calibrate.h"
#include "command.h"

#include <orrery/lab/collectives.h>
#include <orrery/view.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {"machine", 'm', "MACHINE", "the cluster it was measured on", .required = true},
    {"output", 'o', "FILE",
     "write the machine to FILE (.yml), and its table of constants to the same folder",
     .kind = CLI_OUTPUT},
    {"plot", 0, "FILE", "plot fitted against measured times, and the residuals (.svg)",
     .kind = CLI_OUTPUT},
    {"op", 0, "OP",
     "all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, gather, "
     "scatter or sendrecv; default: read from FILE"},
    {"ranks", 'n', "N", "number of ranks; default: read from FILE", CLI_COUNT, 2, 1 << 24},
    {"per-node", 0, "N", "ranks on each node; default: read from FILE", CLI_COUNT, 1, 1 << 20},
    {"rows", 0, NULL, "also print each row: measured, before and after the fit"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"FILE", "output of a program of nccl-tests; - is standard input", CLI_SOME},
    {0},
};

static const cli_example examples[] = {
    {"A measurement (simulated here):", "orrery nccl-tests --machine dgx-h100 > all_reduce.txt", 0},
    {"", "orrery nccl-tests --machine dgx-h100 --op alltoall > alltoall.txt", 0},
    {"Fit a machine to these times:",
     "orrery calibrate nccl all_reduce.txt alltoall.txt --machine dgx-h100 -o mine.yml", 0},
    {"", "orrery nccl-tests --machine mine.yml -b 1M -e 1G", 0},
    {0},
};

/* ---- files ---- */

/* "dir/mine.yml" -> "dir/mine.collectives.yml" */
static orr_code table_path(const char *output, char *out, size_t room, orr_error *err)
{
    const size_t n = strlen(output);
    const size_t stem = n > 4 && strcmp(output + n - 4, ".yml") == 0 ? n - 4 : n;
    const int length = snprintf(out, room, "%.*s.collectives.yml", (int)stem, output);
    if (length < 0 || (size_t)length >= room)
        return cli_misuse(err, "-o: expected a path of at most %zu characters", room - 17);
    return ORR_OK;
}

static orr_code write_file(const char *path, const char *text, size_t n, orr_error *err)
{
    cli_file to;
    const orr_code code = cli_file_open(path, &to, err);
    if (code)
        return code;
    (void)fwrite(text, 1, n, to.f); /* errors show when it is closed */
    return cli_file_close(&to, ORR_OK, err);
}

typedef struct places {
    char table[ORR_MACHINE_PATH];
    const char *machine; /* NULL: nothing is written */
} places;

static orr_code choose_places(const cli_context *c, places *p, orr_error *err)
{
    orr_code code;
    p->machine = cli_text(c, "output");
    if (!p->machine)
        return ORR_OK;
    code = table_path(p->machine, p->table, sizeof p->table, err);
    if (!code)
        code = cli_check_place(p->machine, err);
    return code ? code : cli_check_place(p->table, err);
}

static orr_code write_places(const places *p,
                             const orr_machine *m,
                             const orr_calibration_result *r,
                             orr_error *err)
{
    char text[4000];
    orr_machine named = *m;
    snprintf(named.collectives, sizeof named.collectives, "%s", p->table);
    const size_t n = orr_machine_text(&named, text, sizeof text);
    const bool is_new = access(p->table, F_OK) != 0;
    const orr_code code = write_file(p->table, r->table, r->table_length, err);
    if (code)
        return code;
    if (write_file(p->machine, text, n < sizeof text ? n : sizeof text, err)) {
        if (is_new) /* a table from an earlier run has been replaced and is kept */
            unlink(p->table);
        return err->code;
    }
    return ORR_OK;
}

/* A colour for each operation. */
static orr_code plot(const orr_calibration_result *r, const char *path, orr_error *err)
{
    const orr_alone_op **ops = malloc(r->row_count * sizeof *ops);
    const char **names = malloc(r->row_count * sizeof *names);
    orr_view_fit_point *points = malloc(r->row_count * sizeof *points);
    orr_code code = ORR_OK;
    size_t count = 0;
    if (!ops || !names || !points)
        code = orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < r->row_count && !code; i++) {
        size_t series = 0;
        while (series < count && ops[series] != r->rows[i].op)
            series++;
        if (series == count) {
            names[count] = r->rows[i].op->name;
            ops[count++] = r->rows[i].op;
        }
        points[i] = (orr_view_fit_point){r->rows[i].us, r->rows[i].model_us, series};
    }
    if (!code)
        code =
            orr_view_fit_svg(&(orr_view_fit){points, r->row_count, names, count, "us"}, path, err);
    free(points);
    free(names);
    free(ops);
    return code;
}

static orr_code fit(const cli_context *c, const orr_machine *m, places *p, orr_error *err)
{
    orr_calibration *k;
    const orr_calibration_result *r = NULL;
    const char *name = cli_text(c, "op"), *picture = cli_text(c, "plot");
    const orr_alone_op *op = name ? orr_alone_op_find(name) : NULL;
    if (name && !op)
        return cli_misuse(err, "--op: unknown operation '%s'", name);
    orr_code code = orr_calibration_open(m, &k, err);
    if (code)
        return code;
    for (int i = 0; i < c->arg_count && !code; i++)
        code = orr_calibration_add_nccl_tests(k, c->args[i], op, (uint32_t)cli_count(c, "ranks"),
                                              (uint32_t)cli_count(c, "per-node"), err);
    if (!code)
        code = choose_places(c, p, err);
    if (!code)
        code = orr_calibration_fit(k, &r, err);
    if (!code && p->machine)
        code = write_places(p, m, r, err);
    if (!code && picture)
        code = plot(r, picture, err);
    if (!code) {
        const orr_calibration_about about = {.machine = cli_text(c, "machine"),
                                             .output = p->machine,
                                             .table = p->machine ? p->table : NULL,
                                             .files = (size_t)c->arg_count,
                                             .with_rows = cli_flag(c, "rows")};
        code = orr_show_calibration(r, &about, cli_show_form(c), "-", err);
        if (p->machine)
            cli_note(c, "wrote %s and %s\n", p->machine, p->table);
        if (picture)
            cli_note(c, "wrote %s\n", picture);
    }
    orr_calibration_close(k);
    return code;
}

static orr_code calibrate_nccl_run(cli_context *c, orr_error *err)
{
    places p = {.machine = NULL};
    orr_machine m;
    const uint32_t ranks = (uint32_t)cli_count(c, "ranks");
    orr_code code = ranks ? orr_machine_for(cli_text(c, "machine"), ranks, &m, err)
                          : orr_machine_find(cli_text(c, "machine"), &m, err);
    return code ? code : fit(c, &m, &p, err);
}

const cli_command cli_cmd_calibrate_nccl = {
    .name = "calibrate nccl",
    .summary = "fit a machine's collectives to the output of nccl-tests",
    .description =
        "Reads the tables of nccl-tests and fits the constants of the machine's collectives "
        "(latency per step, fraction of port bandwidth, launch) to them.  Prints the number "
        "of rows, the error on rows left out of the fit, and the uncertainty of each "
        "constant.  Constants that the rows do not determine keep their values.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-machine(1), orrery-nccl-tests(1)",
    .run = calibrate_nccl_run,
};
