/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - orrery report: one page of one or more runs, measured or simulated.
 *
 * What a RUN is shows in what it holds: a file of trace events, a folder of them (one a rank), an export of Nsight Systems, a log of issued
 * nodes; or traces, which are simulated at once when a system and a network are given. */
#include "report_sim.h"

#include <orrery/chrome_trace.h>
#include <orrery/nsys.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"output", 'o', "FILE", "where the page goes; report.html"},
    {"json", 0, NULL, "the data alone, as one JSON object, to FILE or standard output"},
    {"title", 0, "TEXT", "what stands above it"},
    {"ranks", 0, "LIST", "ranks in timelines: all, or 0-7,12; else one of each kind"},
    {"most-spans", 0, "N", "spans of a timeline at most; the shortest are left out", CLI_COUNT, 1,
     100000000, "1000000"},
    {"frequency", 0, "F", "cycles of logs, 1.5GHz or a number of MHz", .fallback = "1GHz"},
    {"system", 's', "FILE", "traces: system file of ASTRA-sim (JSON)"},
    {"topology", 't', "FILE", "traces: network file of ASTRA-sim, or links one by one"},
    {"memory", 'm', "FILE", "traces: remote memory file of ASTRA-sim (JSON)"},
    {"groups", 'g', "FILE", "traces: communicator groups (JSON)"},
    {"network", 'n', "unaware|aware|graph", "traces: do messages delay each other?"},
    {"ranks-file", 0, "FILE", "traces: slow or late ranks, slow or failed links (YAML)"},
    {"what-if", 0, "auto|off|estimate|simulate", "traces: try faster parts", .fallback = "auto"},
    {0},
};

static const cli_argument arguments[] = {
    {"RUN",
     "a timeline (JSON), a folder of them, an Nsight export (SQLite), a log; or traces, to be simulated",
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
    {"Simulate it and say where the time went:",
     "orrery report step.orr -s sys.json -t net.yml -o step.html", 0},
    {"Two runs side by side, from their timelines:",
     "orrery run step.orr -s sys.json -t net.yml --timeline a.json", 0},
    {"", "orrery run step.orr -s sys.json -t net.yml -n aware --timeline b.json", 0},
    {"", "orrery report a.json b.json -o both.html", 0},
    {"Figures for a script:", "orrery report a.json --json > a-figures.json", 0},
    {0},
};

/* ---- what a run is ---- */

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool has_tail(const char *name, const char *tail)
{
    const size_t n = strlen(name), m = strlen(tail);
    return n > m && strcmp(name + n - m, tail) == 0;
}

static bool is_json_name(const char *name)
{
    return has_tail(name, ".json") || has_tail(name, ".json.gz") || has_tail(name, ".json.zst");
}

static int is_timeline_name(const struct dirent *entry)
{
    return is_json_name(entry->d_name);
}

typedef struct names {
    struct dirent **list;
    int count;
} names;

static void names_fini(names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->list[i]);
    free(n->list);
}

/* Numbers in names count as numbers: rank10 comes after rank9. */
static names timelines_in(const char *folder)
{
    names n = {0};
    n.count = scandir(folder, &n.list, is_timeline_name, versionsort);
    return n.count < 0 ? (names){0} : n;
}

static orr_code no_memory(orr_error *err)
{
    return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
}

static orr_code read_folder(const char *folder, const names *n, orr_timeline **out, orr_error *err)
{
    char **paths = calloc((size_t)n->count, sizeof *paths);
    bool ok = paths != NULL;
    for (int i = 0; ok && i < n->count; i++) {
        const size_t size = strlen(folder) + strlen(n->list[i]->d_name) + 2;
        paths[i] = malloc(size);
        ok = paths[i] != NULL;
        if (ok)
            snprintf(paths[i], size, "%s/%s", folder, n->list[i]->d_name);
    }
    const orr_code code =
        ok ? orr_chrome_trace_read((const char *const *)paths, (size_t)n->count, NULL, out, err)
           : no_memory(err);
    for (int i = 0; paths && i < n->count; i++)
        free(paths[i]);
    free(paths);
    return code;
}

/* ---- adding runs ---- */

typedef struct work {
    cli_context *c;
    orr_report *report;
    orr_error *err;
    bool has_logs, has_traces;
    bool has_stalled;
    orr_error stall;
} work;

/* Timelines of simulations say which network they had. */
static bool is_simulated(const orr_timeline *t)
{
    const orr_timeline_parts *p = orr_timeline_look(t);
    for (uint32_t i = 0; i < p->note_count; i++) {
        const orr_str key = orr_timeline_text(t, p->notes[i].key);
        if (key.len == 13 && memcmp(key.ptr, "network_model", 13) == 0)
            return true;
    }
    return false;
}

static orr_code add_timeline(work *w, const char *path, orr_timeline *t, bool is_measured)
{
    const orr_report_run run = {.name = path,
                                .timeline = t,
                                .is_measured = is_measured,
                                .ranks_shown = cli_text(w->c, "ranks")};
    const orr_code code = orr_report_add(w->report, &run, w->err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code add_log(work *w, const char *path)
{
    orr_timeline *t;
    w->has_logs = true;
    const orr_code code = cli_read_log(w->c, path, &t, w->err);
    return code ? code : add_timeline(w, path, t, false);
}

static orr_code add_trace_events(work *w, const char *path)
{
    orr_timeline *t;
    const orr_code code = orr_chrome_trace_read(&path, 1, NULL, &t, w->err);
    return code ? code : add_timeline(w, path, t, !is_simulated(t));
}

static orr_code add_nsys(work *w, const char *path)
{
    orr_timeline *t;
    const orr_code code = orr_nsys_timeline(path, &t, w->err);
    return code ? code : add_timeline(w, path, t, true);
}

static orr_code simulate(work *w, const char *path)
{
    cli_context *c = w->c;
    const orr_sim_options opt = {.workload = path,
                                 .system = cli_text(c, "system"),
                                 .network = cli_text(c, "topology"),
                                 .memory = cli_text(c, "memory"),
                                 .groups = cli_text(c, "groups"),
                                 .fidelity = cli_text(c, "network"),
                                 .ranks_file = cli_text(c, "ranks-file"),
                                 .record = ORR_SIM_RECORD_NODES,
                                 .shows_progress = !c->quiet,
                                 .program = "orrery " ORRERY_VERSION};
    orr_sim *s = NULL;
    orr_error why;
    const double begun = cli_seconds();
    orr_code code = orr_sim_create(&opt, &s, w->err);
    if (code)
        return code;
    const orr_code ran = cli_run_until_stopped(s, &why);
    const cli_report_wishes wishes = {.name = path,
                                      .ranks = cli_text(c, "ranks"),
                                      .what_if = cli_what_if_of(cli_text(c, "what-if")),
                                      .seconds = cli_seconds() - begun};
    const bool is_stalled = ran == ORR_EINPUT && orr_sim_stall(s);
    if (ran && !is_stalled) {
        *w->err = why;
        code = ran;
    } else {
        code = cli_report_add_sim(w->report, s, &opt, &wishes, w->err);
    }
    if (!code && is_stalled) { /* the page explains it; the status is that of a run that stalls */
        w->has_stalled = true;
        w->stall = why;
    }
    orr_sim_destroy(s);
    return code;
}

static orr_code add_traces(work *w, const char *path)
{
    w->has_traces = true;
    if (!cli_given(w->c, "system") || !cli_given(w->c, "topology"))
        return orr_fail(w->err, ORR_EUSAGE, NULL,
                        "'%s' is no timeline; to simulate traces, give --system and --topology",
                        path);
    return simulate(w, path);
}

static orr_code add_run(work *w, const char *path)
{
    if (is_folder(path)) {
        names n = timelines_in(path);
        orr_timeline *t;
        if (n.count == 0)
            return add_traces(w, path);
        const orr_code code = read_folder(path, &n, &t, w->err);
        names_fini(&n);
        return code ? code : add_timeline(w, path, t, !is_simulated(t));
    }
    if (cli_is_nsys(path))
        return add_nsys(w, path);
    switch (orr_chrome_trace_recognise(path)) {
    case ORR_CHROME_TRACE_EVENTS:
        return add_trace_events(w, path);
    case ORR_CHROME_TRACE_LINES:
        return add_log(w, path);
    default: /* a file that cannot be read is said to be so by its reader */
        return is_json_name(path) && !cli_given(w->c, "system") ? add_trace_events(w, path)
                                                                : add_traces(w, path);
    }
}

/* ---- the command ---- */

/* Options that had nothing to act on are refused: they were meant to do something. */
static orr_code check_use(const work *w)
{
    static const char *const of_traces[] = {"system",  "topology",   "memory", "groups",
                                            "network", "ranks-file", "what-if"};
    for (unsigned i = 0; i < sizeof of_traces / sizeof *of_traces && !w->has_traces; i++)
        if (cli_given(w->c, of_traces[i]))
            return orr_fail(w->err, ORR_EUSAGE, NULL, "--%s: there are no traces to simulate",
                            of_traces[i]);
    if (cli_given(w->c, "frequency") && !w->has_logs)
        return orr_fail(w->err, ORR_EUSAGE, NULL, "--frequency: there is no log among the runs");
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
        cli_note(w->c, "%s: open it in a browser\n", to);
    return code;
}

static orr_code report_run(cli_context *c, orr_error *err)
{
    char *line = cli_command_line(c);
    const orr_report_options about = {.title = cli_text(c, "title"),
                                      .program = "orrery " ORRERY_VERSION,
                                      .made_from = line,
                                      .most_spans = (uint32_t)cli_count(c, "most-spans")};
    work w = {.c = c, .err = err};
    orr_code code = line ? orr_report_create(&about, &w.report, err) : no_memory(err);
    for (int i = 0; i < c->arg_count && !code; i++)
        code = add_run(&w, c->args[i]);
    if (!code)
        code = check_use(&w);
    if (!code)
        code = write(&w);
    if (!code && w.has_stalled) {
        *err = w.stall;
        code = w.stall.code;
    }
    orr_report_destroy(w.report);
    free(line);
    return code;
}

const cli_command cli_cmd_report = {
    .name = "report",
    .summary = "one page that says where the time went, of one run or of several",
    .description =
        "Writes one HTML file that opens from disk in any browser and needs nothing else: where the time of ranks "
        "went, the timeline, what the run waited for, collectives and their bandwidths, the network, memory, pipeline "
        "bubbles, and what would be faster.  Several runs are compared with the first one; measured and simulated "
        "runs may be mixed.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-run(1), orrery-view(1)",
    .run = report_run,
};
