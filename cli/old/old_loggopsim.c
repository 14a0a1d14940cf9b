/* SPDX-License-Identifier: Apache-2.0 */
/* old_loggopsim.c - LogGOPSim by its old name: its options, its output. */
#include "old.h"

#include "command.h"

#include <orrery/version.h>

#include <orrery/lab/compat.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The last four are ours. */
static const cli_option options[] = {
    {"filename", 'f', "FILE", "the schedule, text or binary", .required = true},
    {"save-mem", 0, NULL, "accepted, not needed; the file stays as it is"},
    {"LogGOPS_L", 'L', "NS", "latency", CLI_COUNT, 0, INT64_MAX, "2500"},
    {"LogGOPS_o", 'o', "NS", "what a message costs a CPU", CLI_COUNT, 0, INT64_MAX, "1500"},
    {"LogGOPS_g", 'g', "NS", "what a message costs a NIC", CLI_COUNT, 0, INT64_MAX, "1000"},
    {"LogGOPS_G", 'G', "NS", "what a byte costs a NIC; atlahs: also a fraction", .fallback = "6"},
    {"LogGOPS_S", 'S', "BYTES", "the largest message that does not wait for its receiver",
     .fallback = "65535"},
    {"LogGOPS_O", 'O', "NS", "what a byte costs a CPU", CLI_COUNT, 0, INT64_MAX, "0"},
    {"vizfile", 'V', "FILE", "write a timeline for DrawViz"},
    {"verbose", 'v', NULL, "accepted; says where the events are: -V, orrery run --timeline"},
    {"progress", 0, NULL, "print a line for each percent"},
    {"batchmode", 'b', NULL, "never print the times of all ranks"},
    {"noise-trace", 0, "FILE", "interruptions: start and duration in ns, a line each"},
    {"noise-cosched", 0, NULL, "interrupt all ranks at the same times"},
    {"network-type", 'n', "LogGP|simple", "without or with messages sharing links",
     .fallback = "LogGP"},
    {"network-file", 0, "FILE", "links, in the DOT language"},
    {"qstat", 0, "PREFIX", "write lengths of queues to PREFIX-rq-max.data and so on"},
    {"comm-dep-file", 0, "FILE", "write which send met which receive (CSV)"},
    {"noise-seed", 0, "N", "where in the file of interruptions ranks start", CLI_COUNT, 0,
     UINT32_MAX, "12345"},
    {"compat", 0, "lgs2023|atlahs", "which LogGOPSim", .fallback = "lgs2023"},
    {"no-compat", 0, NULL, "our own rules and output, as orrery run"},
    {"json", 0, NULL, "print one JSON object instead"},
    {0},
};

static orr_code read_G(const char *text, double *out, orr_error *err)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (*text && !*end && !errno && *out >= 0)
        return ORR_OK;
    return cli_misuse(err, "-G: \"%s\" is not a number of nanoseconds", text);
}

/* An int in the old program, but compared as unsigned. */
static orr_code read_S(const char *text, uint32_t *out, orr_error *err)
{
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (!*text || *end || errno || v < INT32_MIN || v > UINT32_MAX)
        return cli_misuse(err, "-S: \"%s\" is not a number of bytes", text);
    *out = (uint32_t)v;
    return ORR_OK;
}

static orr_code read_options(const cli_context *c,
                             orr_run_config *config,
                             orr_loggops_model *model,
                             orr_error *err)
{
    const char *name = cli_flag(c, "no-compat") ? NULL : cli_text(c, "compat");
    const orr_compat *old = NULL;
    orr_code code = name ? orr_compat_find(ORR_RULES_LOGGOPS, name, &old, err) : ORR_OK;
    if (code)
        return code;
    *model = (orr_loggops_model){.L = cli_count(c, "LogGOPS_L"),
                                 .o = cli_count(c, "LogGOPS_o"),
                                 .g = cli_count(c, "LogGOPS_g"),
                                 .O = cli_count(c, "LogGOPS_O")};
    config->loggops = model;
    config->loggops_rules = old ? old->loggops : NULL;
    config->noise = cli_text(c, "noise-trace");
    config->has_common_noise = cli_flag(c, "noise-cosched");
    config->noise_seed = cli_count(c, "noise-seed");
    config->prints_progress = cli_flag(c, "progress");
    config->shows_progress = !c->quiet && !cli_flag(c, "progress");
    config->records = (cli_given(c, "vizfile") ? ORR_RUN_SPANS : 0) |
                      (cli_given(c, "qstat") ? ORR_RUN_QUEUES : 0) |
                      (cli_given(c, "comm-dep-file") ? ORR_RUN_PAIRS : 0);
    const bool is_simple = strcmp(cli_text(c, "network-type"), "simple") == 0;
    /* ATLAHS ignores it (goal.md 3.1) */
    const bool has_links = is_simple && name && strcmp(name, "lgs2023") == 0;
    if (has_links)
        config->simple_links = cli_text(c, "network-file");
    if (has_links && !config->simple_links)
        return cli_misuse(err, "-n simple needs --network-file FILE");
    code = read_G(cli_text(c, "LogGOPS_G"), &model->G, err);
    return code ? code : read_S(cli_text(c, "LogGOPS_S"), &model->S, err);
}

/* The old program prints every event; today's output has every operation. */
static const char verbose_note[] =
    "LogGOPSim: -v: events are not printed one by one; -V FILE, or orrery run --timeline FILE, "
    "writes when each operation and message was\n";

static orr_code write_files(const cli_context *c, const orr_run *r, orr_error *err)
{
    const char *viz = cli_text(c, "vizfile"), *queues = cli_text(c, "qstat");
    const char *pairs = cli_text(c, "comm-dep-file");
    orr_code code = viz ? orr_run_write(r, "viz", viz, err) : ORR_OK;
    if (!code && queues)
        code = orr_run_write(r, "queues", queues, err);
    if (!code && pairs)
        code = orr_run_write(r, "pairs", pairs, err);
    if (!code && pairs && strcmp(cli_text(c, "compat"), "atlahs") == 0)
        printf("[INFO] Comm dep file saved to %s\n", pairs);
    return code;
}

static orr_code simulate(cli_context *c, orr_run *r, orr_error *err)
{
    orr_code code = cli_run_to_end(r, err);
    if (code) {
        if (code != ORR_ESTOP)
            orr_because(err, code, "%s", cli_text(c, "filename"));
        cli_explain(c, r, err);
        return code;
    }
    const char *what = cli_flag(c, "json")        ? "json"
                       : cli_flag(c, "no-compat") ? "text"
                       : cli_flag(c, "batchmode") ? "log-batch"
                                                  : "log";
    code = orr_run_write(r, what, "-", err);
    return code ? code : write_files(c, r, err);
}

static orr_code run_loggopsim(cli_context *c, orr_error *err)
{
    const orr_run_source source = {"schedule", orr_str_of(cli_text(c, "filename"))};
    orr_run_config config = {.size = sizeof config,
                             .name = cli_text(c, "filename"),
                             .program = "orrery " ORR_VERSION,
                             .sources = &source,
                             .source_count = 1};
    orr_loggops_model model;
    orr_goal *g = NULL;
    orr_run *r = NULL;
    orr_code code = read_options(c, &config, &model, err);
    if (!code && cli_flag(c, "verbose"))
        cli_note(c, "%s", verbose_note);
    if (!code)
        code = cli_goal_read(c, cli_text(c, "filename"), &g, err);
    config.schedule = g;
    if (!code && (code = orr_run_create(&config, &r, err)))
        orr_because(err, code, "%s", cli_text(c, "filename"));
    if (!code)
        code = simulate(c, r, err);
    orr_run_destroy(r);
    orr_goal_free(g);
    return code;
}

const cli_command cli_old_loggopsim = {
    .name = "LogGOPSim",
    .summary = "simulate a GOAL schedule by the LogGOPS model",
    .now = "orrery run --network loggops --compat lgs2023",
    .options = options,
    .run = run_loggopsim,
};

/* ---- txt2bin and bin2txt ---- */

static const cli_option txt2bin_options[] = {
    {"input", 'i', "FILE", "the schedule to read", .required = true},
    {"output", 'o', "FILE", "where it goes", .required = true},
    {"progress", 'p', NULL, "print a line for each percent"},
    {0},
};

static void print_progress(const orr_goal *g)
{
    const uint32_t ranks = orr_goal_ranks(g);
    int last = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const int percent = (int)round((double)r / ranks * 100);
        if (percent > last)
            printf("Progress %d%% - parsed schedule %" PRIu32 "/%" PRIu32 "\n", percent, r, ranks);
        last = percent > last ? percent : last;
    }
}

static orr_code convert_old(cli_context *c, orr_goal_form form, orr_error *err)
{
    orr_goal *g;
    orr_code code = cli_goal_read(c, cli_text(c, "input"), &g, err);
    if (code)
        return code;
    code = orr_goal_write(g, cli_text(c, "output"), form, err);
    if (!code && cli_flag(c, "progress"))
        print_progress(g);
    orr_goal_free(g);
    return code;
}

static orr_code run_txt2bin(cli_context *c, orr_error *err)
{
    return convert_old(c, ORR_GOAL_BINARY, err);
}

static orr_code run_bin2txt(cli_context *c, orr_error *err)
{
    return convert_old(c, ORR_GOAL_TEXT, err);
}

const cli_command cli_old_txt2bin = {
    .name = "txt2bin",
    .summary = "turn the text of a GOAL schedule into its binary form",
    .now = "orrery convert goal --form binary",
    .options = txt2bin_options,
    .run = run_txt2bin,
};

const cli_command cli_old_bin2txt = {
    .name = "bin2txt",
    .summary = "turn a binary GOAL schedule into text",
    .now = "orrery convert goal --form text",
    .options = txt2bin_options,
    .run = run_bin2txt,
};
