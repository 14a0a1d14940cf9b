/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_info.c - orrery info: summarize traces. */
#include "command.h"

#include <orrery/lab/info.h>
#include <orrery/version.h>

static const cli_option options[] = {
    {"rank", 'r', "R", "only this rank", CLI_COUNT, 0, 4294967294u},
    {"per-rank", 'p', NULL, "a table of the ranks; identical ranks share a row"},
    {"top", 'n', "N", "list this many operators and peers", CLI_COUNT, 1, 1000000, "10"},
    {"by-name", 0, NULL, "operators by full name, including trailing numbers"},
    {"ranks", 0, "N", "a single trace is one rank of N (to estimate bytes moved)", CLI_COUNT, 1,
     4294967294u},
    {"lenient", 0, NULL, "keep unknown node types"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"TRACE", "a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"A training step of 16 ranks:", "orrery gen data_parallel --ranks 16 -o step.orr", 0},
    {"What is in it:", "orrery info step.orr", 0},
    {"Which ranks are identical, and what each does:", "orrery info step.orr --per-rank", 0},
    {"One rank, as JSON:", "orrery info step.orr --rank 3 --json", 0},
    {0},
};

static orr_code print_info(const orr_set *s,
                           const orr_info_options *opt,
                           bool as_json,
                           orr_error *err)
{
    orr_info *info;
    orr_str text = {0};
    orr_code code = orr_info_create(s, opt, &info, err);
    if (code)
        return code;
    code = as_json ? orr_info_json(info, &text, err) : orr_info_text(info, &text, err);
    if (!code)
        cli_print(text);
    orr_info_destroy(info);
    return code;
}

static orr_code info_run(cli_context *c, orr_error *err)
{
    const orr_read_options reading = {
        .size = sizeof reading, .leniency = cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const orr_set_options read = {.size = sizeof read, .read = &reading};
    const orr_info_options opt = {
        .path = c->args[0],
        .program = "orrery " ORR_VERSION,
        .one_rank = cli_given(c, "rank"),
        .rank = (uint32_t)cli_count(c, "rank"),
        .job_ranks = (uint32_t)cli_count(c, "ranks"),
        .top = (uint32_t)cli_count(c, "top"),
        .by_name = cli_flag(c, "by-name"),
        .per_rank = cli_flag(c, "per-rank"),
    };
    orr_set *s;
    orr_code code = orr_set_open(c->args[0], &read, &s, err);
    if (code)
        return code;
    code = print_info(s, &opt, cli_flag(c, "json"), err);
    orr_set_close(s);
    return code;
}

const cli_command cli_cmd_info = {
    .name = "info",
    .summary = "summarize a trace or a set of traces",
    .description =
        "Prints nodes by type, operators, sizes, collectives by group, messages, dependencies, the "
        "critical path, compute, and an estimate of the bytes that cross the network; over all "
        "ranks, or for one.  Identical ranks are read once.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1), orrery-view(1)",
    .run = info_run,
};
