/* SPDX-License-Identifier: Apache-2.0 */
/* old_schedgen.c - SchedGen by its old name, with its output (goal.md 4). */
#include "old.h"

#include "gen_goal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const cli_option options[] = {
    {"ptrn", 'p', "PATTERN", "the pattern, or trace", .fallback = "binomialtreebcast"},
    {"commsize", 's', "N", "number of ranks", CLI_COUNT, 1, CLI_RANKS_MAX, "8"},
    {"filename", 'o', "FILE", "the schedule", .fallback = "schedule.goal"},
    CLI_PATTERN_ROWS,
    CLI_TRACE_ROWS,
    {"compat", 0, "lgs2023|atlahs", "ours: SchedGen of LogGOPSim (2023) or of ATLAHS",
     .fallback = "lgs2023"},
    {"no-compat", 0, NULL, "ours: as orrery gen goal"},
    {"version", 'V', NULL, "print the old program's name and version"},
    {0},
};

/* Its last line goes to stdout or stderr, whichever the schedule does not use. */
static void say_totals(FILE *talk, const orr_schedgen_totals *t)
{
    fprintf(talk,
            "%" PRIu64 " sends, %" PRIu64 " recvs, %" PRIu64 " execs, and %" PRIu64
            " reqs among %" PRIu64 " hosts written\n",
            t->sends, t->recvs, t->calcs, t->edges, t->ranks);
}

static FILE *talk_to(const cli_context *c)
{
    return strcmp(cli_text(c, "filename"), "-") == 0 ? stderr : stdout;
}

static void say_repair(const cli_context *c,
                       const orr_schedgen_pattern *p,
                       const orr_schedgen_options *opt)
{
    const char *repair = orr_schedgen_repair(p, opt);
    if (repair)
        cli_note(c, "schedgen: %s: %s; %s\n", p->name, repair,
                 opt->keeps_invalid ? "kept" : "written as it was meant (--keep-invalid keeps it)");
}

static orr_code run_pattern(const cli_context *c, orr_error *err)
{
    const orr_schedgen_pattern *p;
    orr_schedgen_options opt;
    orr_schedgen_totals t;
    orr_code code = cli_pattern_find(cli_text(c, "ptrn"), &p, err);
    if (code || (code = cli_pattern_options(c, &opt, err)))
        return code;
    opt.ranks = (uint32_t)cli_count(c, "commsize");
    if ((code = orr_schedgen_write(p, &opt, cli_text(c, "filename"), &t, err)))
        return code;
    say_repair(c, p, &opt);
    if (strcmp(p->name, "resnet") == 0 && !cli_flag(c, "no-compat") &&
        strcmp(cli_text(c, "compat"), "lgs2023") == 0)
        fprintf(talk_to(c), "create resnet with %" PRIu32 " nodes\n", opt.ranks);
    say_totals(talk_to(c), &t);
    return ORR_OK;
}

static void say_line(void *context, const char *line)
{
    fprintf((FILE *)context, "%s\n", line);
}

static orr_code run_trace(const cli_context *c, orr_error *err)
{
    orr_mpi_trace_options opt;
    orr_schedgen_totals t;
    orr_mpi_trace_remarks odd;
    orr_code code = cli_mpi_options(c, &opt, err);
    if (code)
        return code;
    opt.talk = say_line;
    opt.talk_context = talk_to(c);
    code = cli_mpi_write(c, &opt, cli_text(c, "filename"), &t, &odd, err);
    if (!code)
        say_totals(talk_to(c), &t);
    return code;
}

static orr_code run_schedgen(cli_context *c, orr_error *err)
{
    if (cli_flag(c, "version")) {
        puts("schedgen 0.1");
        return ORR_OK;
    }
    return strcmp(cli_text(c, "ptrn"), "trace") == 0 ? run_trace(c, err) : run_pattern(c, err);
}

const cli_command cli_old_schedgen = {
    .name = "schedgen",
    .summary = "write the GOAL schedule of a communication pattern, or of a trace of MPI calls",
    .now = "orrery gen goal PATTERN --compat lgs2023",
    .options = options,
    .run = run_schedgen,
};
