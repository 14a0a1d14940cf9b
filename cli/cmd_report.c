/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - orrery report: an HTML page of one or more runs, measured or simulated.
 *
 * The type of a RUN is detected from its content: a file of trace events, a folder of them (one per
 * rank), an export of Nsight Systems, a log of issued nodes; or traces, which are simulated if a
 * system and a network are given. */
#include "command.h"

#include <orrery/lab/llm.h>
#include <orrery/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"output", 'o', "FILE", "output file; default: report.html", .kind = CLI_OUTPUT},
    {"json", 0, NULL, "write the data as one JSON object instead"},
    {"title", 0, "TEXT", "title of the report"},
    {"ranks", 0, "LIST",
     "ranks in timelines: all, or a list such as 0-7,12; default: one of each group of identical ranks"},
    {"most-spans", 0, "N", "maximum number of spans per timeline; the shortest are omitted",
     CLI_COUNT, 1, 100000000, "1000000"},
    {"frequency", 0, "F", "clock of logs, such as 1.5GHz, or in MHz", .fallback = "1GHz"},
    {"names", 0, "LIST", "names of the runs, comma-separated, in the order of the page"},
    {"machine", 0, "LIST",
     "traces: simulate on this cluster, or on each of these (comma-separated); see orrery machine list"},
    {"system", 's', "FILE", "traces: system file of ASTRA-sim (JSON)"},
    {"topology", 't', "FILE", "traces: network file of ASTRA-sim, or a topology"},
    {"memory", 'm', "FILE", "traces: remote memory file of ASTRA-sim (JSON)"},
    {"groups", 'g', "FILE", "traces: communicator groups (JSON)"},
    {"network", 'n', "LIST",
     "traces: network model (fluid, unaware, aware, graph, packet), or several"},
    {"ranks-file", 0, "FILE", "traces: slow or late ranks, slow or failed links (YAML)"},
    {"what-if", 0, "auto|off|estimate|simulate", "traces: what faster hardware would change",
     .fallback = "auto"},
    CLI_LIMITS,
    {0},
};

static const cli_argument arguments[] = {
    {"RUN",
     "a timeline (JSON), a folder of them, an Nsight export (SQLite), a log, the output of run --json; or traces to simulate",
     CLI_SOME},
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
    {"Simulate it and report where the time went:",
     "orrery report step.orr -s sys.json -t net.yml -o step.html", 0},
    {"Two runs side by side, from their timelines:",
     "orrery run step.orr -s sys.json -t net.yml --timeline a.json", 0},
    {"", "orrery run step.orr -s sys.json -t net.yml -n aware --timeline b.json", 0},
    {"", "orrery report a.json b.json -o both.html", 0},
    {"One step on two machines:", "orrery stage llama-3-8b --tp 8 --batch 4 -o llama.orr", 0},
    {"", "orrery report llama.orr --machine dgx-a100,dgx-h100 --names A100,H100", 0},
    {"Figures for a script:", "orrery report a.json --json > a-figures.json", 0},
    {0},
};

/* ---- adding runs ---- */

enum { WORD_ROOM = 4096 };

typedef struct work {
    cli_context *c;
    orr_report *report;
    orr_error *err;
    bool has_logs, has_traces;
    bool has_ended; /* early: a run stalled, or was stopped */
    orr_error ended;
    const char *names; /* the rest of --names */
    char name[WORD_ROOM];
} work;

/* Removes the first word from a comma-separated list; false: the list is empty. */
static bool take_word(const char **list, char out[WORD_ROOM])
{
    const char *at = *list;
    if (!at)
        return false;
    const size_t length = strcspn(at, ",");
    snprintf(out, WORD_ROOM, "%.*s", (int)(length < WORD_ROOM ? length : WORD_ROOM - 1), at);
    *list = at[length] ? at + length + 1 : NULL;
    return true;
}

/* The next name of --names, or `other`. */
static const char *name_of(work *w, const char *other)
{
    return take_word(&w->names, w->name) && w->name[0] ? w->name : other;
}

static orr_code add_timeline(work *w, const char *path, orr_timeline *t, bool is_measured)
{
    const orr_report_run run = {.name = name_of(w, path),
                                .timeline = t,
                                .is_measured = is_measured,
                                .ranks_shown = cli_text(w->c, "ranks")};
    const orr_code code = orr_report_add(w->report, &run, w->err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code simulate(work *w, const char *path, const char *machine, const char *network)
{
    cli_context *c = w->c;
    char name[600];
    snprintf(name, sizeof name, "%.200s%s%.200s%s%.60s", path, machine ? " on " : "",
             machine ? machine : "", network ? ", " : "", network ? network : "");
    orr_run_config config = {.size = sizeof config,
                             .traces = path,
                             .system = cli_text(c, "system"),
                             .topology = cli_text(c, "topology"),
                             .memory = cli_text(c, "memory"),
                             .groups = cli_text(c, "groups"),
                             .machine = machine,
                             .network = network,
                             .ranks_file = cli_text(c, "ranks-file"),
                             .records = ORR_RUN_SPANS,
                             .shows_progress = !c->quiet,
                             .program = "orrery " ORR_VERSION};
    orr_run *r = NULL;
    orr_error why;
    orr_code code = cli_limits(c, &config, w->err);
    if (!code)
        code = orr_run_create(&config, &r, w->err);
    if (code)
        return code;
    const orr_code ran = cli_run_to_end(r, &why);
    const orr_explain_options about = {.name = name_of(w, name),
                                       .ranks_shown = cli_text(c, "ranks"),
                                       .what_if = cli_what_if_of(cli_text(c, "what-if")),
                                       .why = ran ? &why : NULL,
                                       .variant = orr_llm_variant};
    const bool has_facts = ran == ORR_ESTOP || (ran == ORR_EINPUT && orr_run_stall(r));
    if (ran && !has_facts) {
        *w->err = why;
        code = ran;
    } else {
        code = cli_report_add(w->report, r, &about, w->err);
    }
    /* The page shows it; the exit status is that of the failed run. */
    if (!code && ran && !w->has_ended) {
        w->has_ended = true;
        w->ended = why;
    }
    orr_run_destroy(r);
    return code;
}

/* Stopped by Ctrl-C or a limit: the page shows the results so far. */
static bool is_stopped(const work *w)
{
    return w->has_ended && w->ended.code == ORR_ESTOP;
}

/* Refuse empty and overlong words in a comma-separated list. */
static orr_code check_list(const work *w, const char *option)
{
    for (const char *at = cli_text(w->c, option); at;) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= WORD_ROOM)
            return cli_misuse(w->err, "--%s '%.80s': expected comma-separated names", option,
                              cli_text(w->c, option));
        at = at[length] ? at + length + 1 : NULL;
    }
    return ORR_OK;
}

/* Simulate on each machine and each network requested. */
static orr_code simulate_all(work *w, const char *path)
{
    const char *machines = cli_text(w->c, "machine");
    char machine[WORD_ROOM], network[WORD_ROOM];
    orr_code code = check_list(w, "machine");
    if (!code)
        code = check_list(w, "network");
    if (code)
        return code;
    do {
        const bool has_machine = take_word(&machines, machine);
        const char *networks = cli_text(w->c, "network");
        do {
            const bool has_network = take_word(&networks, network);
            code = simulate(w, path, has_machine ? machine : NULL, has_network ? network : NULL);
        } while (!code && networks && !is_stopped(w));
    } while (!code && machines && !is_stopped(w));
    return code;
}

static orr_code add_traces(work *w, const char *path)
{
    w->has_traces = true;
    if (!cli_given(w->c, "machine") && (!cli_given(w->c, "system") || !cli_given(w->c, "topology")))
        return cli_misuse(
            w->err,
            "'%s' is not a timeline; to simulate traces, give --machine, or --system and "
            "--topology",
            path);
    return simulate_all(w, path);
}

/* Add the output of run --json. */
static orr_code add_saved(work *w, const char *path, bool *is_it)
{
    const char *names = w->names;
    const orr_code code = orr_report_add_saved(w->report, path, name_of(w, path), is_it, w->err);
    if (!*is_it)
        w->names = names;
    return code;
}

static orr_code add_run(work *w, const char *path)
{
    cli_run_kind kind;
    orr_timeline *t;
    bool is_saved = false;
    orr_code code = strstr(path, ".json") ? add_saved(w, path, &is_saved) : ORR_OK;
    if (code || is_saved)
        return code;
    code = cli_timeline_load(w->c, path, &kind, &t, w->err);
    if (!code && kind == CLI_RUN_OTHER) {
        if (!strstr(path, ".json") || cli_given(w->c, "system"))
            return add_traces(w, path);

        code = cli_timeline_load_events(path, &t, w->err); /* its reader explains the error */
    }
    if (code)
        return code;
    w->has_logs |= kind == CLI_RUN_LOG;
    return add_timeline(w, path, t, kind != CLI_RUN_LOG && !orr_timeline_is_simulated(t));
}

/* ---- the command ---- */

/* Refuse options that have no effect. */
static orr_code check_use(const work *w)
{
    static const char *const of_traces[] = {"system",   "topology",   "memory",    "groups",
                                            "network",  "ranks-file", "what-if",   "machine",
                                            "max-time", "max-memory", "max-events"};
    for (unsigned i = 0; i < sizeof of_traces / sizeof *of_traces && !w->has_traces; i++)
        if (cli_given(w->c, of_traces[i]))
            return cli_misuse(w->err, "--%s: there are no traces to simulate", of_traces[i]);
    if (cli_given(w->c, "frequency") && !w->has_logs)
        return cli_misuse(w->err, "--frequency applies to logs; none of the runs is one");
    return ORR_OK;
}

static orr_code write(work *w)
{
    const char *to = cli_text(w->c, "output");
    if (cli_flag(w->c, "json"))
        return orr_report_write_json(w->report, to ? to : "-", w->err);
    to = to ? to : "report.html";
    const orr_code code = orr_report_write(w->report, to, w->err);
    if (!code && strcmp(to, "-") != 0)
        cli_note(w->c, "wrote %s\n", to);
    return code;
}

static orr_code report_run(cli_context *c, orr_error *err)
{
    char *line = cli_command_line(c);
    const orr_report_options about = {.size = sizeof about,
                                      .title = cli_text(c, "title"),
                                      .program = "orrery " ORR_VERSION,
                                      .made_from = line,
                                      .most_spans = (uint32_t)cli_count(c, "most-spans")};
    work w = {.c = c, .err = err, .names = cli_text(c, "names")};
    orr_code code = line ? orr_report_create(&about, &w.report, err)
                         : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    for (int i = 0; i < c->arg_count && !code && !is_stopped(&w); i++)
        code = add_run(&w, c->args[i]);
    if (!code)
        code = check_use(&w);
    if (!code)
        code = write(&w);
    if (!code && w.has_ended) {
        *err = w.ended;
        code = w.ended.code;
        if (code == ORR_ESTOP)
            cli_report(c, err);
    }
    orr_report_destroy(w.report);
    free(line);
    return code;
}

const cli_command cli_cmd_report = {
    .name = "report",
    .summary = "write an HTML report of one or more runs",
    .description =
        "Writes one self-contained HTML file that works offline in any browser: where the time "
        "went, the timeline, the critical path, collectives and their bandwidths, the network, memory, pipeline "
        "bubbles, and what faster hardware would change.  Several runs are compared with the first; measured and simulated "
        "runs may be mixed.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-run(1), orrery-view(1)",
    .run = report_run,
};
