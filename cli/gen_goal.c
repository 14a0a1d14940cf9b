/* SPDX-License-Identifier: Apache-2.0 */
/* gen_goal.c - orrery gen goal: GOAL schedules of communication patterns; and schedgen by its old
 * name.
 *
 * Both have the options of SchedGen under their original names; the old name also prints its
 * messages (goal.md 4). */
#include "gen_goal.h"
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/schedgen.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMN = 22 };

static const cli_option options[] = {
    {"output", 'o', "OUT", "the schedule", .fallback = "schedule.goal", .kind = CLI_OUTPUT},
    {"ranks", 'n', "N", "number of ranks", CLI_COUNT, 1, CLI_RANKS_MAX, "8"},
    {"commsize", 's', "N", "the same as --ranks (SchedGen's name)", CLI_COUNT, 1, CLI_RANKS_MAX},
    CLI_PATTERN_ROWS,
    CLI_TRACE_ROWS,
    {"compat", 0, "lgs2023|atlahs", "exactly as SchedGen of LogGOPSim (2023) or of ATLAHS"},
    {"binary", 'b', NULL, "write binary GOAL, not text"},
    {"list", 'l', NULL, "list the patterns, or the options PATTERN uses"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"PATTERN", "a name from --list, or trace", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List the patterns:", "orrery gen goal --list", 0},
    {"A barrier of 64 ranks, as schedule.goal:", "orrery gen goal dissemination --ranks 64", 0},
    {"An all-reduce of 1 MiB on 12 ranks:",
     "orrery gen goal allreduce_recdoub -n 12 -d 1MiB -o reduce.goal", 0},
    {"A segmented broadcast from rank 3, to the terminal:",
     "orrery gen goal pipelinedring -n 4 --root 3 -d 96 --segmentsize 32 -o -", 0},
    {"A traced program, extrapolated to eight times the ranks, in binary form:",
     "orrery gen goal trace --traces run-0.dat --traces-extr 8 --binary -o run.bin", 0},
    {0},
};

/* ---- options to values ---- */

/* An integer, possibly signed. */
static orr_code read_number(const cli_context *c, const char *name, int64_t *out, orr_error *err)
{
    const char *text = cli_text(c, name);
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (!*text || *end || errno || text[0] == ' ' || text[0] == '+')
        return cli_misuse(err, "--%s '%s' is not a whole number", name, text);
    *out = v;
    return ORR_OK;
}

static bool is_bare(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static orr_code read_bare(const char *name, const char *text, uint64_t *out, orr_error *err)
{
    errno = 0;
    *out = strtoull(text, NULL, 10);
    if (errno || *out > INT64_MAX)
        return cli_misuse(err, "--%s '%s' is above %" PRId64, name, text, INT64_MAX);
    return ORR_OK;
}

/* A number of bytes, as in SchedGen, or a size with a unit. */
static orr_code read_size(const cli_context *c, const char *name, uint64_t *out, orr_error *err)
{
    const char *text = cli_text(c, name);
    if (is_bare(text))
        return read_bare(name, text, out, err);
    const orr_code code = orr_bytes_parse(text, out, err);
    return code ? orr_because(err, code, "--%s", name) : ORR_OK;
}

/* A number of nanoseconds, as in SchedGen, or a time with a unit; 0 if not given. */
static orr_code read_time(const cli_context *c, const char *name, uint64_t *out, orr_error *err)
{
    const char *text = cli_text(c, name);
    orr_ps ps = 0;
    *out = 0;
    if (!text)
        return ORR_OK;
    if (is_bare(text))
        return read_bare(name, text, out, err);
    const orr_code code = orr_time_parse(text, &ps, err);
    if (code)
        return orr_because(err, code, "--%s", name);
    if (ps < 0)
        return cli_misuse(err, "--%s '%s' is negative", name, text);
    *out = (uint64_t)ps / 1000;
    return ORR_OK;
}

static orr_code read_gap(const cli_context *c, orr_schedgen_options *opt, orr_error *err)
{
    if (strcmp(cli_text(c, "rpl-dep-cmp"), "-1") == 0)
        return ORR_OK;
    opt->has_gap = true;
    return read_time(c, "rpl-dep-cmp", &opt->gap_ns, err);
}

/* --compat; --no-compat, an option of the old name, selects our rules. */
static orr_code read_rules(const cli_context *c, const orr_rules_schedgen **out, orr_error *err)
{
    const bool is_ours = c->command->now && cli_flag(c, "no-compat");
    const char *name = is_ours ? NULL : cli_text(c, "compat");
    const orr_compat *old = NULL;
    const orr_code code = name ? orr_compat_find(ORR_RULES_SCHEDGEN, name, &old, err) : ORR_OK;
    *out = old ? old->schedgen : NULL;
    return code;
}

orr_code cli_pattern_options(const cli_context *c, orr_schedgen_options *opt, orr_error *err)
{
    *opt = orr_schedgen_defaults();
    opt->nway = (uint32_t)cli_count(c, "nway");
    opt->has_overlap = cli_given(c, "nb");
    opt->cpu = (uint32_t)cli_count(c, "cpu");
    opt->skew = cli_count(c, "a2av-skew-ratio");
    opt->is_outcast = cli_flag(c, "outcast");
    opt->seed = (uint32_t)cli_count(c, "seed");
    opt->keeps_invalid = cli_flag(c, "keep-invalid");
    opt->is_quiet = c->quiet;
    orr_code code;
    if ((code = read_rules(c, &opt->rules, err)) ||
        (code = read_size(c, "datasize", &opt->data_bytes, err)) ||
        (code = read_size(c, "segmentsize", &opt->segment_bytes, err)) ||
        (code = read_time(c, "nb", &opt->overlap_ns, err)) ||
        (code = read_time(c, "nb-poll", &opt->poll_ns, err)) || (code = read_gap(c, opt, err)))
        return code;
    return read_number(c, "root", &opt->root, err);
}

orr_code cli_pattern_find(const char *name, const orr_schedgen_pattern **out, orr_error *err)
{
    const char *near = NULL;
    if ((*out = orr_schedgen_find(name)))
        return ORR_OK;
    for (size_t i = 0; orr_schedgen_at(i); i++)
        near = cli_nearer(name, near, orr_schedgen_at(i)->name);
    if (near)
        return cli_misuse(err, "unknown pattern '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown pattern '%s'; see 'orrery gen goal --list'", name);
}

static bool is_trace(const char *name)
{
    return strcmp(name, "trace") == 0;
}

/* ---- traces ---- */

static orr_mpi_library library_of(const char *word)
{
    if (!word)
        return ORR_MPI_DEFAULT;
    return strcmp(word, "mpich") == 0 ? ORR_MPI_MPICH : ORR_MPI_OPENMPI;
}

orr_code cli_mpi_options(const cli_context *c, orr_mpi_trace_options *opt, orr_error *err)
{
    *opt = (orr_mpi_trace_options){
        .library = library_of(cli_text(c, "mpi")),
        .time_mult = (uint32_t)cli_count(c, "timemult"),
        .copies = (uint32_t)cli_count(c, "traces-extr"),
        .cpu = (uint32_t)cli_count(c, "cpu"),
        .has_overlap = cli_given(c, "nb"),
        .max_collectives = cli_count(c, "traces-nops"),
        .start_path = cli_text(c, "traces-start"),
        .skips_messages = cli_flag(c, "traces-nop2p"),
        .skips_collectives = cli_flag(c, "traces-nocolls"),
        .early_us = (uint32_t)cli_count(c, "traces-nbcify"),
        .is_talkative = cli_count(c, "traces-print") != 0,
        .is_quiet = c->quiet,
    };
    orr_code code = read_rules(c, &opt->rules, err);
    if (!code)
        code = read_time(c, "nb", &opt->overlap_ns, err);
    return code ? code : read_time(c, "nb-poll", &opt->poll_ns, err);
}

/* Note each kind of oddity once, with its count. */
static void remark(const cli_context *c, const orr_mpi_trace_remarks *m)
{
    if (m->sub_communicators)
        cli_note(c, "%" PRIu64 " collectives over fewer than %" PRIu32 " ranks: skipped\n",
                 m->sub_communicators, m->ranks);
    if (m->sub_messages)
        cli_note(c,
                 "%" PRIu64 " messages in communicators of fewer than %" PRIu32
                 " ranks: ranks interpreted as global ranks\n",
                 m->sub_messages, m->ranks);
    if (m->not_expanded)
        cli_note(c,
                 "%" PRIu64 " collectives not expanded; their time counts as computation: %s%s\n",
                 m->not_expanded, m->not_expanded_name, m->not_expanded > 1 ? ", ..." : "");
    if (m->unknown)
        cli_note(c, "%" PRIu64 " unknown calls; their time counts as computation: %s%s\n",
                 m->unknown, m->unknown_name, m->unknown > 1 ? ", ..." : "");
    if (m->backward)
        cli_note(c,
                 "%" PRIu64
                 " calls begin before the previous one ended; no computation between them\n",
                 m->backward);
    if (m->nobody)
        cli_note(c, "%" PRIu64 " messages to or from MPI_PROC_NULL or unknown ranks: skipped\n",
                 m->nobody);
}

orr_code cli_mpi_write(const cli_context *c,
                       const orr_mpi_trace_options *opt,
                       const char *to,
                       orr_schedgen_totals *totals,
                       orr_mpi_trace_remarks *odd,
                       orr_error *err)
{
    const char *from = cli_text(c, "traces");
    if (!from)
        return cli_misuse(err, "missing option: --traces FILE, the trace of rank 0");
    const orr_code code = orr_mpi_trace_write(from, opt, to, totals, odd, err);
    if (!code)
        remark(c, odd);
    return code;
}

/* ---- the list ---- */

/* Options by purpose. */
typedef struct knob {
    const char *option;
    uint32_t bit;
} knob;

static const knob knobs[] = {
    {"datasize", ORR_SCHEDGEN_SIZE},   {"root", ORR_SCHEDGEN_ROOT},
    {"nway", ORR_SCHEDGEN_NWAY},       {"segmentsize", ORR_SCHEDGEN_SEGMENT},
    {"rpl-dep-cmp", ORR_SCHEDGEN_GAP}, {"a2av-skew-ratio", ORR_SCHEDGEN_SKEW},
    {"outcast", ORR_SCHEDGEN_SKEW},    {"seed", ORR_SCHEDGEN_RANDOM},
};

enum { KNOBS = sizeof knobs / sizeof *knobs };

/* SchedGen ignores them, and scripts rely on that; but it may be a mistake. */
static void note_unused(const cli_context *c, const orr_schedgen_pattern *p)
{
    for (size_t i = 0; i < KNOBS; i++) {
        if (cli_given(c, knobs[i].option) && !(p->uses & knobs[i].bit))
            cli_note(c, "%s ignores --%s\n", p->name, knobs[i].option);
    }
    if (cli_given(c, "traces"))
        cli_note(c, "%s ignores --traces; 'orrery gen goal trace' uses it\n", p->name);
}

static void list_one(const orr_schedgen_pattern *p)
{
    printf("%s\n  %s\n  --ranks\n", p->name, p->help);
    for (size_t i = 0; i < KNOBS; i++) {
        if (p->uses & knobs[i].bit)
            printf("  --%s\n", knobs[i].option);
    }
    printf("  --nb, --nb-poll, --cpu\n");
}

static void list_all(void)
{
    for (size_t i = 0; orr_schedgen_at(i); i++)
        printf("%-*s %s\n", NAME_COLUMN, orr_schedgen_at(i)->name, orr_schedgen_at(i)->help);
    printf("%-*s %s\n", NAME_COLUMN, "trace", "MPI traces of liballprof (--traces)");
}

static void put_pattern(orr_json_writer *w, const orr_schedgen_pattern *p)
{
    orr_json_line(w, 2);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_T("name", p->name), ORR_T("help", p->help));
    orr_json_put_array(w, "options");
    orr_json_text(w, "ranks");
    for (size_t i = 0; i < KNOBS; i++)
        if (p->uses & knobs[i].bit)
            orr_json_text(w, knobs[i].option);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void list_json(const orr_schedgen_pattern *only)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-goal-patterns");
    orr_json_put_array(w, "patterns");
    for (size_t i = 0; orr_schedgen_at(i); i++)
        if (!only || only == orr_schedgen_at(i))
            put_pattern(w, orr_schedgen_at(i));
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void list(const orr_schedgen_pattern *only, bool as_json)
{
    if (as_json)
        list_json(only);
    else if (only)
        list_one(only);
    else
        list_all();
}

/* ---- orrery gen goal ---- */

static void put_odd(orr_json_writer *w, const orr_mpi_trace_remarks *m)
{
    orr_json_put_fields(
        w, ORR_U("traces", m->ranks), ORR_U("calls", m->calls), ORR_U("unknown_calls", m->unknown),
        ORR_U("collectives_not_expanded", m->not_expanded),
        ORR_U("collectives_of_fewer_ranks", m->sub_communicators),
        ORR_U("messages_among_fewer_ranks", m->sub_messages),
        ORR_U("times_going_back", m->backward), ORR_U("messages_to_no_rank", m->nobody));
}

/* odd NULL: a pattern. */
static void report_json(const cli_context *c,
                        const char *name,
                        const char *to,
                        const orr_schedgen_totals *t,
                        const orr_mpi_trace_remarks *odd)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-gen-goal");
    orr_json_put_fields(
        w, ORR_T("pattern", name), ORR_T("output", to), ORR_B("binary", cli_flag(c, "binary")),
        ORR_U("ranks", t->ranks), ORR_U("sends", t->sends), ORR_U("recvs", t->recvs),
        ORR_U("calcs", t->calcs), ORR_U("edges", t->edges), ORR_U("sent_bytes", t->bytes_sent));
    if (odd)
        put_odd(w, odd);
    cli_json_close(&j);
}

static void report(const cli_context *c, const char *to, const orr_schedgen_totals *t)
{
    cli_note(c,
             "%s: %" PRIu64 " rank%s, %" PRIu64 " send%s of %" PRIu64 " bytes in all, %" PRIu64
             " receive%s, %" PRIu64 " calculation%s, %" PRIu64 " edge%s\n",
             to, t->ranks, orr__plural(t->ranks), t->sends, orr__plural(t->sends), t->bytes_sent,
             t->recvs, orr__plural(t->recvs), t->calcs, orr__plural(t->calcs), t->edges,
             orr__plural(t->edges));
}

static orr_code make_pattern(const cli_context *c,
                             const orr_schedgen_pattern *p,
                             const char *to,
                             orr_schedgen_totals *totals,
                             orr_error *err)
{
    orr_schedgen_options opt;
    const orr_code code = cli_pattern_options(c, &opt, err);
    if (code)
        return code;
    note_unused(c, p);
    opt.ranks = (uint32_t)cli_count(c, cli_given(c, "commsize") ? "commsize" : "ranks");
    opt.is_binary = cli_flag(c, "binary");
    return orr_schedgen_write(p, &opt, to, totals, err);
}

/* p NULL: a trace. */
static orr_code make(const cli_context *c, const orr_schedgen_pattern *p, orr_error *err)
{
    const char *to = cli_text(c, "output");
    orr_mpi_trace_options trace;
    orr_schedgen_totals totals;
    orr_mpi_trace_remarks odd;
    orr_code code = cli_mpi_options(c, &trace, err);
    if (code)
        return code;
    if (cli_flag(c, "json") && strcmp(to, "-") == 0)
        return cli_misuse(err, "--json and -o - both write to standard output");
    trace.is_binary = cli_flag(c, "binary");
    code =
        p ? make_pattern(c, p, to, &totals, err) : cli_mpi_write(c, &trace, to, &totals, &odd, err);
    if (code)
        return code;
    if (cli_flag(c, "json"))
        report_json(c, p ? p->name : "trace", to, &totals, p ? NULL : &odd);
    else if (strcmp(to, "-") != 0)
        report(c, to, &totals);
    return ORR_OK;
}

static orr_code gen_goal_run(cli_context *c, orr_error *err)
{
    const char *name = c->arg_count ? c->args[0] : NULL;
    const orr_schedgen_pattern *p = NULL;
    const bool has_trace = name && is_trace(name);
    const orr_code code = name && !has_trace ? cli_pattern_find(name, &p, err) : ORR_OK;
    if (code)
        return code;
    if (cli_flag(c, "list")) {
        list(p, cli_flag(c, "json"));
        return ORR_OK;
    }
    if (!p && !has_trace)
        return cli_misuse(err, "missing argument: PATTERN; see 'orrery gen goal --list'");
    return make(c, p, err);
}

const cli_command cli_cmd_gen_goal = {
    .name = "gen goal",
    .summary = "generate GOAL schedules of communication patterns",
    .description =
        "Writes the schedule of one communication pattern, trees, rings, all-to-all, all-reduce, as a GOAL text.  "
        "The output equals SchedGen's byte for byte, except where SchedGen's schedule cannot run: there it is the "
        "intended schedule.  Memory use does not depend on the number of ranks.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-gen(1), orrery-run(1), orrery-old-names(7)",
    .run = gen_goal_run,
};
