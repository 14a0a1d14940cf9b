/* SPDX-License-Identifier: Apache-2.0 */
/* run_goal.c - orrery run --network loggops: a schedule by the LogGOPS model. */
#include "goal.h"

#include <orrery/lab/compat.h>
#include <orrery/version.h>
#include <orrery/view.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parameters that people use: LogGOPSim's defaults, and the two sets of ATLAHS (goal.md 3.1). */
static const struct {
    const char *name;
    uint64_t L, o, g;
    double G;
    uint64_t O;
    uint32_t S;
} presets[] = {
    {"default", 2500, 1500, 1000, 6, 0, 65535},
    {"ai", 3700, 200, 5, 0.04, 0, 0},
    {"hpc", 3000, 8000, 0, 0.18, 0, 256000},
};

static bool find_preset(const char *name, orr_loggops_options *o)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(presets[i].name, name) != 0)
            continue;
        o->L = presets[i].L;
        o->o = presets[i].o;
        o->g = presets[i].g;
        o->G = presets[i].G;
        o->O = presets[i].O;
        o->S = presets[i].S;
        return true;
    }
    return false;
}

static orr_code bad_parameter(const char *text, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "--loggops: \"%s\" is none of default, ai, hpc, and not of the form "
                    "L=2500,o=1500,g=1000,G=6,O=0,S=65535",
                    text);
}

/* One of L=.. o=.. and so on; *text moves behind it and its comma. */
static bool take_parameter(const char **text, orr_loggops_options *o)
{
    const char *p = *text, name = *p;
    char *end;
    if (!name || p[1] != '=' || !((p[2] >= '0' && p[2] <= '9') || p[2] == '.'))
        return false;
    errno = 0;
    const double v = strtod(p + 2, &end);
    const uint64_t whole = v < 9e18 ? (uint64_t)v : 0;
    if (errno || (*end && *end != ',') || v >= 9e18 || (name != 'G' && (double)whole != v))
        return false;
    *text = *end ? end + 1 : end;
    switch (name) {
    case 'L':
        o->L = whole;
        return true;
    case 'o':
        o->o = whole;
        return true;
    case 'g':
        o->g = whole;
        return true;
    case 'G':
        o->G = v;
        return true;
    case 'O':
        o->O = whole;
        return true;
    case 'S':
        o->S = (uint32_t)whole;
        return whole <= UINT32_MAX;
    default:
        return false;
    }
}

static orr_code read_parameters(const char *text, orr_loggops_options *o, orr_error *err)
{
    if (!text || find_preset(text, o))
        return ORR_OK;
    for (const char *p = text; *p;) {
        if (!take_parameter(&p, o))
            return bad_parameter(text, err);
    }
    return *text ? ORR_OK : bad_parameter(text, err);
}

orr_code cli_loggops_options(const cli_context *c, orr_loggops_options *o, orr_error *err)
{
    *o = orr_loggops_defaults();
    o->noise = cli_text(c, "noise");
    o->noise_seed = cli_count(c, "noise-seed");
    o->has_common_noise = cli_flag(c, "noise-common");
    o->keeps_spans = cli_given(c, "timeline") || cli_flag(c, "gantt");
    o->shows_progress = !c->quiet;
    const orr_compat *old = NULL;
    orr_code code = ORR_OK;
    if (cli_text(c, "compat"))
        code = orr_compat_find(ORR_RULES_LOGGOPS, cli_text(c, "compat"), &old, err);
    o->rules = old ? old->loggops : NULL;
    return code ? code : read_parameters(cli_text(c, "loggops"), o, err);
}

/* ---- results */

static orr_code show_timeline(const cli_context *c, const orr_loggops *s, orr_error *err)
{
    orr_timeline *t;
    orr_code code = orr_loggops_timeline(s, &t, err);
    if (code)
        return code;
    if (cli_given(c, "timeline"))
        code = orr_view_chrome(t, cli_text(c, "timeline"), err);
    if (!code && cli_flag(c, "gantt") && !cli_flag(c, "json")) {
        putchar('\n');
        fflush(stdout); /* the drawing goes past stdio */
        code = cli_print_gantt(t, err);
    }
    orr_timeline_destroy(t);
    return code;
}

static orr_code print_result(const cli_context *c, const orr_loggops *s, orr_error *err)
{
    if (cli_flag(c, "json"))
        return orr_loggops_write_json(s, "-", c->args[0], "orrery " ORR_VERSION, err);
    return orr_loggops_write_text(s, "-", c->args[0], err);
}

void cli_explain_loggops(cli_context *c, const orr_loggops *s, const orr_error *err)
{
    const char *line;
    if (!orr_loggops_stall_line(s, 0))
        return;
    cli_report(c, err);
    for (size_t i = 0; (line = orr_loggops_stall_line(s, i)) != NULL; i++)
        fprintf(stderr, "  %s\n", line);
}

/* The same, and in the JSON object. */
static void explain(cli_context *c, const orr_loggops *s, const orr_error *err)
{
    orr_error second;
    if (orr_loggops_stall_line(s, 0) && cli_flag(c, "json"))
        (void)!print_result(c, s, &second); /* the first error counts */
    cli_explain_loggops(c, s, err);
}

static orr_code simulate(cli_context *c, orr_loggops *s, orr_error *err)
{
    orr_code code = cli_run_loggops_until_stopped(s, err);
    if (code && code != ORR_ESTOP)
        orr_because(err, code, "%s", c->args[0]);
    if (code) {
        explain(c, s, err);
        return code;
    }
    code = print_result(c, s, err);
    if (!code && cli_given(c, "csv"))
        code = orr_loggops_write_csv(s, cli_text(c, "csv"), err);
    if (!code && (cli_given(c, "timeline") || cli_flag(c, "gantt")))
        code = show_timeline(c, s, err);
    return code;
}

/* An option of the other networks would do nothing, which is never what was meant. */
static orr_code check_options(const cli_context *c, orr_error *err)
{
    static const char *const others[] = {
        "ranks-file",    "queues",  "rendezvous",   "trace-log",      "links",
        "critical-path", "report",  "report-ranks", "what-if",        "packet-config",
        "packet-keys",   "approx",  "series",       "series-what",    "series-watch",
        "series-every",  "logical", "flows",        "timeline-detail"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (cli_given(c, others[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s is not for --network loggops", others[i]);
    }
    return ORR_OK;
}

orr_code cli_run_loggops(cli_context *c, orr_error *err)
{
    orr_loggops_options opt;
    cli_goal_inputs inputs = {.count = 0};
    orr_goal *g = NULL;
    orr_loggops *s = NULL;
    orr_code code = check_options(c, err);
    if (!code)
        code = cli_loggops_options(c, &opt, err);
    if (!code)
        code = cli_goal_jobs(c, &inputs, &g, err);
    opt.inputs = inputs.list;
    opt.input_count = inputs.count;
    if (!code && (code = orr_loggops_create(g, &opt, &s, err)))
        orr_because(err, code, "%s", c->args[0]);
    if (!code)
        code = simulate(c, s, err);
    orr_loggops_destroy(s);
    orr_goal_free(g);
    return code;
}
