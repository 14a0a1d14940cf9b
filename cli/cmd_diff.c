/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - orrery diff: two runs side by side, usually a measurement and its simulation. */
#include "command.h"

#include <orrery/lab/diff.h>
#include <orrery/lab/operators.h>
#include <orrery/version.h>

#include <string.h>

static const cli_option options[] = {
    {"most", 'n', "N", "maximum number of operators to show; 0: all", CLI_COUNT, 0, 1 << 30, "20"},
    {"within", 'w', "PERCENT", "exit 1 if run times differ by more than PERCENT", CLI_COUNT, 0,
     1000000},
    {"frequency", 0, "F", "clock of logs, such as 1.5GHz, or in MHz", .fallback = "1GHz"},
    {"operators", 'o', NULL, "compare the operators of a captured step with a measured one"},
    {"hardware", 'H', "NAME", "with --operators: predict times on this chip (a name or a file)"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"FIRST",
     "a timeline: trace events (of the PyTorch profiler or orrery run), a folder with one per rank, an export of Nsight Systems, "
     "or a log of issued nodes; with --operators a captured step",
     CLI_ONCE},
    {"SECOND", "another; with --operators a table of operators, a host or a profiler trace",
     CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"A training step and a network:",
     "orrery gen three_layer_data_parallel --ranks 16 -o step.orr", 0},
    {"", "printf 'topology: [Switch]\\nnpus_count: [16]\\n' > net.yml", 0},
    {"", "printf 'bandwidth: [50]\\nlatency: [500]\\n' >> net.yml", 0},
    {"", "printf '{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,' > sys.json", 0},
    {"", "printf '\"preferred-dataset-splits\":4,' >> sys.json", 0},
    {"", "printf '\"all-reduce-implementation\":[\"ring\"]}' >> sys.json", 0},
    {"Two simulations of it:", "orrery run step.orr -s sys.json -t net.yml --timeline a.json", 0},
    {"", "orrery run step.orr -s sys.json -t net.yml -n aware --timeline b.json", 0},
    {"Where is the second slower?", "orrery diff a.json b.json", 0},
    {"For a script: are they within 10 %?", "orrery diff a.json b.json --within 10 --json", 0},
    {"Compare a captured step with the measured one, and predict its times:",
     "orrery diff --operators step.json.gz measured.csv --hardware h200", 0},
    {0},
};

static orr_code read_run(const cli_context *c, const char *path, orr_timeline **out, orr_error *err)
{
    cli_run_kind kind;
    const orr_code code = cli_timeline_load(c, path, &kind, out, err);
    return code || kind != CLI_RUN_OTHER ? code : cli_timeline_load_events(path, out, err);
}

static orr_code print(const cli_context *c, const orr_diff *d, orr_error *err)
{
    const orr_diff_style style = {.program = "orrery " ORR_VERSION,
                                  .first = c->args[0],
                                  .second = c->args[1],
                                  .most = (size_t)cli_count(c, "most")};
    orr_str text;
    const orr_code code = cli_flag(c, "json") ? orr_diff_json(d, &style, &text, err)
                                              : orr_diff_text(d, &style, &text, err);
    if (!code)
        cli_print(text);
    return code;
}

static bool is_within(const orr_diff *d, double percent)
{
    const double first = (double)d->whole[0], by = (double)d->whole[1] - first;
    return (by < 0 ? -by : by) * 100 <= percent * first;
}

/* ---- operators ---- */

static orr_code print_operators(const cli_context *c, const orr_operators *o, orr_error *err)
{
    const orr_operators_style style = {.program = "orrery " ORR_VERSION,
                                       .captured = c->args[0],
                                       .measured = c->args[1],
                                       .most = (size_t)cli_count(c, "most")};
    orr_str text;
    const orr_code code = cli_flag(c, "json") ? orr_operators_json(o, &style, &text, err)
                                              : orr_operators_text(o, &style, &text, err);
    if (!code)
        cli_print(text);
    return code;
}

/* FLOPs measured but not captured, or the reverse. */
static bool are_flops_within(const orr_operators *o, double percent)
{
    const double captured = (double)o->flops[0], measured = (double)o->flops[1];
    const double missing = measured - (double)o->flops_matched;
    const double by = captured > measured ? captured - measured : measured - captured;
    return missing * 100 <= percent * measured && by * 100 <= percent * measured;
}

static orr_code operators_run(cli_context *c, orr_error *err)
{
    orr_fx *capture = NULL;
    orr_operators *o = NULL;
    cli_hardware hw;
    const char *name = cli_text(c, "hardware");
    orr_code code = name ? cli_hardware_find(name, &hw, err) : ORR_OK;
    if (code || (code = orr_fx_read(c->args[0], 0, &capture, err)))
        return code;
    code = orr_operators_compare(capture, c->args[1], name ? hw.chip : NULL,
                                 name && !hw.chip ? &hw.design : NULL, &o, err);
    orr_fx_close(capture);
    if (!code)
        code = print_operators(c, o, err);
    if (!code && cli_given(c, "within") && !are_flops_within(o, (double)cli_count(c, "within")))
        cli_answer_no(c);
    orr_operators_free(o);
    return code;
}

static orr_code diff_run(cli_context *c, orr_error *err)
{
    if (cli_flag(c, "operators"))
        return operators_run(c, err);
    if (cli_given(c, "hardware"))
        return cli_misuse(err, "--hardware requires --operators");
    orr_timeline *runs[2] = {NULL, NULL};
    orr_diff *d = NULL;
    orr_code code = read_run(c, c->args[0], &runs[0], err);
    if (!code)
        code = read_run(c, c->args[1], &runs[1], err);
    if (!code)
        code = orr_diff_make(runs[0], runs[1], &d, err);
    if (!code)
        code = print(c, d, err);
    if (!code && cli_given(c, "within") && !is_within(d, (double)cli_count(c, "within")))
        cli_answer_no(c);
    orr_diff_free(d);
    orr_timeline_destroy(runs[0]);
    orr_timeline_destroy(runs[1]);
    return code;
}

const cli_command cli_cmd_diff = {
    .name = "diff",
    .summary = "compare two runs, for example a measurement and its simulation",
    .description =
        "Compares times by kind and by operator, the largest difference first.  Times are averages per rank; that of an "
        "operator is its self time, without nested operators.  Runs are timelines: files of the PyTorch profiler or a folder with "
        "one per rank, output of 'orrery run --timeline', other trace events, exports of Nsight Systems, or a log of "
        "issued nodes.  With --operators: a step captured from PyTorch and a measurement of the same step, operator by "
        "operator.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also =
        "orrery-capture(1), orrery-convert(1), orrery-link(1), orrery-report(1), orrery-run(1), orrery-view(1)",
    .run = diff_run,
};
