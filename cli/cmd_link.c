/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_link.c - orrery link: PyTorch's two traces of a rank made one. */
#include "command.h"

#include <orrery/link.h>

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    {"output", 'o', "OUT", "where the linked trace goes", .required = true},
    {"compat", 0, NULL, "exactly as chakra_trace_link, its defects included"},
    {"strict", 0, NULL, "the first trouble with the input is an error"},
    {"json", 0, NULL, "say what was linked as one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"HOST", "the execution trace of PyTorch's observer", CLI_ONCE},
    {"DEVICE", "the trace of its profiler, Kineto", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"Both traces of a rank made one:", "orrery link host.json device.json -o linked.json", 0},
    {0},
};

static void print_json(const orr_link_counts *counts)
{
    printf("{\"format\": \"orrery link\", \"version\": 1");
    for (int k = 0; k < ORR_LINK_COUNTERS; k++)
        printf(", \"%s\": %" PRIu64, orr_link_counter_name((orr_link_counter)k), counts->of[k]);
    printf("}\n");
}

static void print_counts(const cli_context *c, const orr_link_counts *counts)
{
    for (int k = 0; k < ORR_LINK_COUNTERS; k++) {
        if (counts->of[k])
            cli_note(c, "%10" PRIu64 "  %s%s\n", counts->of[k],
                     orr_link_counter_is_trouble((orr_link_counter)k) ? "warning: " : "",
                     orr_link_counter_help((orr_link_counter)k));
    }
}

static orr_code link_run(cli_context *c, orr_error *err)
{
    const orr_link_options opt = {.is_compat = cli_flag(c, "compat"),
                                  .is_strict = cli_flag(c, "strict")};
    orr_link *l;
    orr_code code = orr_link_open(c->args[0], c->args[1], &opt, &l, err);
    if (code)
        return code;
    if (!(code = orr_link_write(l, cli_text(c, "output"), err))) {
        if (cli_flag(c, "json"))
            print_json(orr_link_counts_of(l));
        else
            print_counts(c, orr_link_counts_of(l));
    }
    orr_link_close(l);
    return code;
}

const cli_command cli_cmd_link = {
    .name = "link",
    .summary = "make PyTorch's host and device traces one",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-check(1), orrery-run(1)",
    .run = link_run,
};
