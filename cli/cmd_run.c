/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - orrery run: simulate traces on a model of a cluster. */
#include "command.h"
#include "goal.h"
#include "html_report.h"

#include <orrery/version.h>

#include <orrery/lab/goal_traces.h>
#include <orrery/view.h>

#include <string.h>

/* A row's `needs` are bits of orr_run_supports, and this one: what --compare, with its several runs, does not have. */
#define ONE_RUN (1u << 31)

static const cli_option options[] = {
    {"system", 's', "FILE", "system file of ASTRA-sim (JSON): collectives, chunks, compute"},
    {"topology", 't', "FILE",
     "network: a file of ASTRA-sim, or a topology (YAML, ns-3, SimAI, htsim); packet: also config.txt"},
    {"memory", 'm', "FILE", "remote memory file of ASTRA-sim (JSON)"},
    {"groups", 'g', "FILE", "communicator groups (JSON)"},
    {"network", 'n', "NAME",
     "network model: unaware, aware, graph, packet or loggops (orrery help networks)",
     .needs = ONE_RUN},
    {"packet-config", 0, "FILE", "packet: config.txt, when --topology is a topology",
     .needs = ORR_RUN_PACKETS},
    {"packet-keys", 0, "WORDS", "packet: keys and values that override the configuration",
     .needs = ORR_RUN_PACKETS},
    {"approx", 0, NULL, "packet: fast-forward periodic traffic (not with congestion control)",
     .needs = ORR_RUN_PACKETS},
    {"series", 0, "FILE", "packet: write links, queues and flows over time (.csv or .json)",
     .needs = ORR_RUN_PACKETS | ONE_RUN},
    {"series-every", 0, "TIME", "sampling interval; doubles when the run is long",
     .fallback = "10us", .needs = ORR_RUN_PACKETS, .with = "series"},
    {"series-what", 0, "LIST",
     "what to record: flows, queues, links (comma-separated); default: all",
     .needs = ORR_RUN_PACKETS, .with = "series"},
    {"series-watch", 0, "LIST",
     "always include these ports (8.3) or flows (0-5), beside the busiest",
     .needs = ORR_RUN_PACKETS, .with = "series"},
    {"logical", 0, "FILE", "packet: logical dimensions of the ranks (JSON); default: one",
     .needs = ORR_RUN_SYSTEM},
    {"flows", 0, "FILE",
     "packet: run flows, not traces: of this file (ns-3, htsim's .cm), or of the configuration",
     .implied = "", .needs = ORR_RUN_PACKETS | ONE_RUN},
    {"loggops", 0, "PARAMETERS",
     "default, ai, hpc, or L=2500,o=1500,g=1000,G=6,O=0,S=65535 (ns, bytes)",
     .needs = ORR_RUN_LOGGOPS},
    {"noise", 0, "FILE", "loggops: OS noise, one interruption per line: start and duration in ns",
     .needs = ORR_RUN_LOGGOPS},
    {"noise-seed", 0, "N", "loggops: random seed for where ranks start in that file", CLI_COUNT, 0,
     UINT32_MAX, "12345", .needs = ORR_RUN_LOGGOPS},
    {"job", 0, "FILES", "further traces or schedules, comma-separated"},
    {"placement", 0, "PLACEMENT", "placement of the jobs: packed, spread, random, or a JSON file",
     .fallback = "packed"},
    {"hosts", 0, "N", "hosts of the machine; default: as many as ranks", CLI_COUNT, 1,
     UINT32_MAX - 1},
    {"seed", 0, "N", "random seed of the placement", CLI_COUNT, .fallback = "1"},
    {"compare", 0, "NETWORKS", "run on each of these comma-separated models and compare the times"},
    {"compare-traces", 0, "LIST", "with --compare: further traces, each compared separately",
     .with = "compare"},
    {"compare-chart", 0, "FILE", "with --compare: draw the times as bars (SVG)", .with = "compare"},
    {"noise-common", 0, NULL, "loggops: the same noise for all ranks", .needs = ORR_RUN_LOGGOPS},
    {"compat", 0, "lgs2023|atlahs|ns3",
     "exactly as LogGOPSim (2023), ATLAHS or the ns-3 back end, including their quirks"},
    {"ranks-file", 0, "FILE", "slow or late ranks, slow or failed links (YAML)",
     .needs = ORR_RUN_SYSTEM},
    {"queues", 0, "N", "queues per network dimension", CLI_COUNT, 1, 65536, "1",
     .needs = ORR_RUN_SYSTEM},
    {"rendezvous", 0, NULL, "a message starts when its receiver is ready", .needs = ORR_RUN_SYSTEM},
    {"threads", 0, "N", "threads for reading traces and for packets; 0: one per core", CLI_COUNT, 0,
     256, "0"},
    {"trace-log", 0, "FILE", "write when each node was issued and ended, one line per event",
     .needs = ORR_RUN_ISSUES | ONE_RUN},
    {"json", 0, NULL, "print one JSON object"},
    {"csv", 0, "FILE", "write results as CSV, one row per rank", .needs = ORR_RUN_ROWS | ONE_RUN},
    {"links", 0, "FILE", "write the traffic of every link as CSV",
     .needs = ORR_RUN_LINKS | ONE_RUN},
    {"timeline", 0, "FILE", "write a timeline for Perfetto (JSON; also .gz, .zst)",
     .needs = ORR_RUN_SPANS | ONE_RUN},
    {"timeline-detail", 0, "nodes|phases", "phases: also record the phases of collectives",
     .fallback = "nodes", .needs = ORR_RUN_PHASES | ONE_RUN, .with = "timeline"},
    {"gantt", 0, NULL, "draw the timeline with characters", .needs = ORR_RUN_SPANS | ONE_RUN},
    {"critical-path", 0, "N", "show the critical path and its N longest steps", CLI_COUNT, 1,
     1000000, .implied = "10", .needs = ORR_RUN_PATH | ONE_RUN},
    {"report", 0, "FILE", "write an HTML report", .needs = ORR_RUN_REPORT | ONE_RUN},
    {"report-ranks", 0, "LIST",
     "ranks in its timeline: all, or a list as 0-7,12; default: one of each group of identical ranks",
     .needs = ORR_RUN_WHAT_IF | ONE_RUN, .with = "report"},
    {"what-if", 0, "auto|off|estimate|simulate", "report: what faster hardware would change",
     .fallback = "auto", .needs = ORR_RUN_WHAT_IF | ONE_RUN, .with = "report"},
    {0},
};

static const char *const outputs[] = {"report", "timeline",  "csv",          "links",
                                      "series", "trace-log", "compare-chart"};

static const cli_argument arguments[] = {
    {"TRACES", "a prefix P of P.0.et, P.1.et, ..., a directory, a .orr, or a GOAL schedule",
     CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"A training step of 16 ranks:", "orrery gen data_parallel --ranks 16 -o step.orr", 0},
    {"A network: one switch, 50 GB/s and 500 ns per link:",
     "printf 'topology: [Switch]\\nnpus_count: [16]\\n' > net.yml", 0},
    {"", "printf 'bandwidth: [50]\\nlatency: [500]\\n' >> net.yml", 0},
    {"A system: ring all-reduce in four chunks; and a memory pool:",
     "printf '{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,' > sys.json", 0},
    {"", "printf '\"preferred-dataset-splits\":4,' >> sys.json", 0},
    {"", "printf '\"all-reduce-implementation\":[\"ring\"]}' >> sys.json", 0},
    {"", "printf '{\"memory-type\":\"MEMORY_POOL\",\"remote-mem-bw\":100}' > mem.json", 0},
    {"When does each rank finish?", "orrery run step.orr -s sys.json -t net.yml -m mem.json", 0},
    {"With contention between messages:",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --network aware", 0},
    {"On a leaf-spine network, with rank 3 at half speed:",
     "printf 'generate: {type: leaf-spine, ranks: 16, spines: 2, ' > ls.yml", 0},
    {"", "printf 'ranks_per_leaf: 4, bandwidth: 400Gb/s}' >> ls.yml", 0},
    {"", "printf 'ranks: [{ranks: 3, compute: 0.5}]' > r.yml", 0},
    {"", "orrery run step.orr -s sys.json -m mem.json -t ls.yml --ranks-file r.yml", 0},
    {"One all-reduce, packet by packet, on the same links:",
     "orrery gen all_reduce --ranks 16 -o ar.orr", 0},
    {"", "orrery run ar.orr -s sys.json -t ls.yml --network packet", 0},
    {"Compare the two models:", "orrery run ar.orr -s sys.json -t ls.yml --compare graph,packet",
     0},
    {"Two flows into one host, without traces:",
     "printf 'CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps ' > config.txt", 0},
    {"", "printf 'L2_CHUNK_SIZE 4000 TOPOLOGY_FILE star.txt\\n' >> config.txt", 0},
    {"", "printf '4 1 3\\n3\\n3 0 100Gbps 1us 0\\n' > star.txt", 0},
    {"", "printf '3 1 100Gbps 1us 0\\n3 2 100Gbps 1us 0\\n' >> star.txt", 0},
    {"", "printf '2\\n0 2 3 100 1000000 0\\n1 2 3 100 1000000 0\\n' > flows.txt", 0},
    {"", "orrery run --flows=flows.txt -t config.txt", 0},
    {"Record links, queues and flows over time:",
     "orrery run --flows=flows.txt -t config.txt --series s.csv", 0},
    {"The same as an HTML report:",
     "orrery run --flows=flows.txt -t config.txt --report flows.html", 0},
    {"Selective retransmission instead of PFC pauses:",
     "printf 'ENABLE_PFC 0 TRANSPORT selective' >> config.txt", 0},
    {"", "orrery run --flows=flows.txt -t config.txt", 0},
    {"A traffic file of htsim on one of its trees:",
     "orrery gen topology fat-tree --k 4 --nic 400Gbps --latency 1us -o k4.topo", 0},
    {"", "printf 'Nodes 16\\nConnections 1\\n0->9 start 0 size 1000000\\n' > one.cm", 0},
    {"", "orrery run --flows one.cm -t k4.topo", 0},
    {"What did the run wait for?",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --critical-path", 0},
    {"A timeline for ui.perfetto.dev:",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --timeline t.json", 0},
    {"The same in the terminal:", "orrery run step.orr -s sys.json -t net.yml -m mem.json --gantt",
     0},
    {"An HTML report: where did the time go, what would be faster?",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --report step.html", 0},
    {"A GOAL schedule, one message:",
     "printf 'num_ranks 2\\nrank 0 {\\nsend 8b to 1\\n}\\n' > p.goal", 0},
    {"", "printf 'rank 1 {\\nrecv 8b from 0\\n}\\n' >> p.goal", 0},
    {"", "orrery run p.goal --network loggops --loggops L=3700,o=200", 0},
    {"Two of them on four hosts:", "orrery run p.goal --job p.goal --placement spread", 0},
    {"On three networks:", "orrery run p.goal --compare unaware,aware,loggops", 0},
    {"For a spreadsheet and for scripts:",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --csv run.csv", 0},
    {"", "orrery run step.orr -s sys.json -t net.yml -m mem.json --json > run.json", 0},
    {0},
};

/* ---- files and pages of one run ---- */

static orr_code show_timeline(const orr_run *r, const cli_run_output *wanted, orr_error *err)
{
    orr_timeline *t;
    orr_code code = orr_run_timeline(r, &t, err);
    if (code)
        return code;
    if (wanted->timeline)
        code = orr_view_chrome(t, wanted->timeline, err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code print_gantt(const orr_run *r, orr_error *err)
{
    orr_timeline *t;
    orr_code code = orr_run_timeline(r, &t, err);
    if (code)
        return code;
    putchar('\n');
    fflush(stdout); /* the drawing goes past stdio */
    code = cli_print_gantt(t, err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code print_result(const orr_run *r, const cli_run_output *wanted, orr_error *err)
{
    const orr_code code = orr_run_write(r, wanted->is_json ? "json" : "text", "-", err);
    return code || wanted->is_json || !wanted->has_gantt ? code : print_gantt(r, err);
}

/* The files that were asked for beside the result. */
static orr_code write_files(const orr_run *r, const cli_run_output *wanted, orr_error *err)
{
    const struct {
        const char *what, *path;
    } files[] = {{"links", wanted->links}, {"trace-log", wanted->trace_log}, {"csv", wanted->csv}};
    orr_code code = orr_run_traces(r) ? orr_run_write(r, "memory", NULL, err) : ORR_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files && !code; i++)
        if (files[i].path)
            code = orr_run_write(r, files[i].what, files[i].path, err);
    return code || !wanted->timeline ? code : show_timeline(r, wanted, err);
}

/* "step.orr on net.yml"; why: what ended the run early, or NULL. */
static orr_code write_report(cli_context *c,
                             orr_run *r,
                             const orr_run_config *config,
                             const cli_run_output *wanted,
                             const orr_error *why,
                             orr_error *err)
{
    char name[2 * 256];
    snprintf(name, sizeof name, "%.255s on %.250s", config->traces ? config->traces : "",
             config->topology ? config->topology : "one switch");
    const orr_explain_options about = {.name = config->is_flows ? NULL : name,
                                       .ranks_shown = wanted->report_ranks,
                                       .what_if = cli_what_if_of(wanted->what_if),
                                       .why = why};
    return cli_report_one(c, r, &about, wanted->report, err);
}

/* A page must not take the place of what it was made from. */
static orr_code check_report(const orr_run *r, const char *report, orr_error *err)
{
    orr_run_input in;
    orr_code code = ORR_OK;
    for (size_t i = 0; report && !(code = orr_run_input_at(r, i, &in, err)); i++)
        if (strcmp(in.path, report) == 0 && strcmp(report, "-") != 0)
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "--report %s: that file is an input of this run (%s)", report, in.role);
    return code == ORR_END ? ORR_OK : code;
}

/* What is known of a run that was stopped or cannot go on; the error that ended it counts. */
static void print_so_far(cli_context *c,
                         orr_run *r,
                         const orr_run_config *config,
                         const cli_run_output *wanted,
                         const orr_error *why)
{
    orr_error second;
    if (why->code == ORR_ESTOP)
        cli_report(c, why);
    if (why->code == ORR_ESTOP || wanted->is_json)
        (void)!print_result(r, wanted, &second);
    cli_explain(c, r, why);
    (void)!write_files(r, wanted, &second);
    if (wanted->report)
        (void)!write_report(c, r, config, wanted, why, &second);
}

orr_code cli_run_and_print(cli_context *c,
                           const orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err)
{
    orr_run *r = NULL;
    const char *line;
    orr_code code = orr_run_create(config, &r, err);
    for (size_t i = 0; !code && (line = orr_run_warning(r, i)); i++)
        cli_note(c, "%s\n", line);
    if (!code && config->is_flows)
        code = check_report(r, wanted->report, err);
    if (!code && (code = cli_run_to_end(r, err))) {
        if (config->schedule && code != ORR_ESTOP)
            orr_because(err, code, "%s", config->name);
        /* Stopped or standing still, it has something to show; broken input leaves no files. */
        if (code == ORR_ESTOP || orr_run_stall_line(r, 0))
            print_so_far(c, r, config, wanted, err);
    } else if (!code) {
        code = print_result(r, wanted, err);
        if (!code)
            code = write_files(r, wanted, err);
        if (!code && wanted->report)
            code = write_report(c, r, config, wanted, NULL, err);
    } else if (config->schedule) {
        orr_because(err, code, "%s", config->name);
    }
    orr_run_destroy(r);
    return code;
}

/* ---- what goes with what ---- */

/* The option or argument that reads this file, or writes it and comes before option `last`; NULL: there is none. */
static const char *taken_by(const cli_context *c, const char *path, const char *last)
{
    static const char *const inputs[] = {"system",        "topology", "memory", "groups",
                                         "packet-config", "logical",  "flows",  "ranks-file",
                                         "noise",         "placement"};
    for (unsigned i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (cli_given(c, inputs[i]) && strcmp(cli_text(c, inputs[i]), path) == 0)
            return inputs[i];
    for (int i = 0; i < c->arg_count; i++)
        if (strcmp(c->args[i], path) == 0)
            return "TRACES";
    for (unsigned i = 0; strcmp(outputs[i], last) != 0; i++)
        if (cli_given(c, outputs[i]) && strcmp(cli_text(c, outputs[i]), path) == 0)
            return outputs[i];
    return NULL;
}

/* Nothing is written over what was read, or over another output. */
static orr_code check_outputs(const cli_context *c, orr_error *err)
{
    for (unsigned i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *path = cli_given(c, outputs[i]) ? cli_text(c, outputs[i]) : "-";
        const char *by = strcmp(path, "-") == 0 ? NULL : taken_by(c, path, outputs[i]);
        if (by)
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s %s: same file as %s%s", outputs[i], path,
                            strcmp(by, "TRACES") == 0 ? "" : "--", by);
    }
    return ORR_OK;
}

static bool has_schedule(const cli_context *c)
{
    return c->arg_count && cli_brings_goal(c->args[0]);
}

static bool is_loggops(const cli_context *c)
{
    const char *network = cli_text(c, "network");
    return network ? strcmp(network, "loggops") == 0 : !cli_given(c, "topology") && has_schedule(c);
}

static bool has_jobs(const cli_context *c)
{
    return cli_given(c, "job") || cli_given(c, "placement") || cli_given(c, "hosts");
}

/* What would have an effect with what is given: the engine says, and --compare runs several. */
static uint32_t supported(const cli_context *c)
{
    if (cli_given(c, "compare"))
        return ~ONE_RUN;
    const char *engine = is_loggops(c) ? "schedule" : cli_given(c, "flows") ? "flows" : "traces";
    return orr_run_supports(engine, cli_text(c, "network")) | ONE_RUN;
}

/* "--series needs --network packet or --flows"; "--queues does not apply to --network loggops" */
static orr_code refuse(const cli_context *c, const char *name, uint32_t missing, orr_error *err)
{
    const char *needed = missing & ONE_RUN           ? NULL
                         : missing & ORR_RUN_PACKETS ? "--network packet or --flows"
                         : missing & ORR_RUN_LOGGOPS ? "--network loggops"
                                                     : NULL;
    const char *given = cli_given(c, "compare") ? "--compare"
                        : is_loggops(c)         ? "--network loggops"
                                                : "--flows";
    return orr_fail(err, ORR_EUSAGE, NULL, "--%s %s %s", name,
                    needed ? "needs" : "does not apply to", needed ? needed : given);
}

/* What would have no effect is refused: each row of the table says what it needs. */
static orr_code check_options(const cli_context *c, orr_error *err)
{
    const uint32_t can = supported(c);
    for (const cli_option *o = options; o->name; o++) {
        const uint32_t missing = o->needs & ~can;
        if (!cli_given(c, o->name))
            continue;
        if (missing)
            return refuse(c, o->name, missing, err);
        if (o->with && !cli_given(c, o->with))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s needs --%s", o->name, o->with);
    }
    return ORR_OK;
}

/* --compat means a program of one kind of network. */
static orr_code check_compat(const cli_context *c, orr_error *err)
{
    const char *compat = cli_text(c, "compat");
    const bool is_ns3 = compat && strcmp(compat, "ns3") == 0;
    if (!compat || (supported(c) & (is_ns3 ? ORR_RUN_PACKETS : ORR_RUN_LOGGOPS)))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "--compat %s needs --network %s", compat,
                    is_ns3 ? "packet or --flows" : "loggops");
}

/* What cannot be left out. */
static orr_code check_inputs(const cli_context *c, orr_error *err)
{
    const bool is_flows = cli_given(c, "flows"), is_plain = has_jobs(c) || has_schedule(c);
    if (!c->arg_count && !is_flows)
        return orr_fail(err, ORR_EUSAGE, NULL, "TRACES is missing");
    if (is_loggops(c) || cli_given(c, "compare") || is_plain)
        return ORR_OK;
    if (!cli_given(c, "system") && !is_flows)
        return orr_fail(err, ORR_EUSAGE, NULL, "missing option: --system FILE");
    return cli_given(c, "topology")
               ? ORR_OK
               : orr_fail(err, ORR_EUSAGE, NULL, "missing option: --topology FILE");
}

/* ---- the three kinds of runs ---- */

static uint32_t records_wanted(const cli_context *c)
{
    const bool has_phases =
        cli_given(c, "timeline") && strcmp(cli_text(c, "timeline-detail"), "phases") == 0;
    const bool has_spans = cli_given(c, "timeline") || cli_given(c, "critical-path") ||
                           cli_flag(c, "gantt") || cli_given(c, "report");
    return (has_phases ? ORR_RUN_PHASES : 0) | (has_spans ? ORR_RUN_SPANS : 0) |
           (cli_given(c, "trace-log") ? ORR_RUN_ISSUES : 0) |
           (cli_given(c, "links") ? ORR_RUN_LINKS : 0) |
           (cli_given(c, "report") ? ORR_RUN_HISTORY : 0);
}

static orr_code run_flows(cli_context *c,
                          orr_run_config *config,
                          const cli_run_output *wanted,
                          orr_error *err)
{
    const char *flows = cli_text(c, "flows");
    const bool is_bare = *flows == 0 && c->arg_count == 1; /* "--flows FILE" */
    if (c->arg_count && !is_bare)
        return orr_fail(err, ORR_EUSAGE, NULL, "--flows runs no traces: '%s'", c->args[0]);
    config->is_flows = true;
    config->flows = is_bare ? c->args[0] : *flows ? flows : NULL;
    config->records &= ORR_RUN_HISTORY;
    return cli_run_and_print(c, config, wanted, err);
}

static orr_code run_schedule(cli_context *c,
                             orr_run_config *config,
                             const cli_run_output *wanted,
                             orr_error *err)
{
    cli_goal_inputs inputs = {.count = 0};
    orr_loggops_model model;
    orr_goal *g = NULL;
    orr_code code = cli_loggops_options(c, config, &model, err);
    if (!code)
        code = cli_goal_jobs(c, &inputs, &g, err);
    if (!code) {
        config->schedule = g;
        config->name = c->args[0];
        config->sources = inputs.list;
        config->source_count = inputs.count;
        config->network = NULL;
        code = cli_run_and_print(c, config, wanted, err);
    }
    orr_goal_free(g);
    return code;
}

/* Schedules, and several jobs on one machine, run as traces of their messages. */
static orr_code make_traces(cli_context *c, orr_set **out, orr_error *err)
{
    orr_goal *g;
    orr_code code = cli_goal_jobs(c, NULL, &g, err);
    if (code)
        return code;
    code = orr_goal_traces(g, c->args[0], out, err);
    orr_goal_free(g);
    return code ? orr_because(err, code, "%s", c->args[0]) : ORR_OK;
}

static orr_code run_traces(cli_context *c,
                           orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err)
{
    orr_set *set = NULL;
    orr_code code = has_jobs(c) || has_schedule(c) ? make_traces(c, &set, err) : ORR_OK;
    config->traces = c->args[0];
    config->set = set;
    if (!code)
        code = cli_run_and_print(c, config, wanted, err);
    orr_set_close(set);
    return code;
}

static orr_code run_run(cli_context *c, orr_error *err)
{
    char keys[CLI_KEYS_ROOM];
    orr_code code = check_outputs(c, err);
    if (!code)
        code = check_options(c, err);
    if (!code)
        code = check_compat(c, err);
    if (!code)
        code = check_inputs(c, err);
    if (!code && cli_given(c, "compare"))
        return cli_run_compare(c, err);
    if (!code)
        code = cli_packet_keys(c, keys, err);
    if (code)
        return code;
    orr_run_config config = {
        .size = sizeof config,
        .program = "orrery " ORR_VERSION,
        .system = cli_text(c, "system"),
        .topology = cli_text(c, "topology"),
        .packet_config = cli_text(c, "packet-config"),
        .packet_keys = keys,
        .logical = cli_text(c, "logical"),
        .memory = cli_text(c, "memory"),
        .groups = cli_text(c, "groups"),
        .ranks_file = cli_text(c, "ranks-file"),
        .network = cli_text(c, "network"),
        .queues_per_dim = (uint32_t)cli_count(c, "queues"),
        .rendezvous = cli_flag(c, "rendezvous"),
        .threads = (unsigned)cli_count(c, "threads"),
        .records = records_wanted(c),
        .path_steps = (uint32_t)cli_count(c, "critical-path"),
        .shows_progress = !c->quiet,
    };
    code = cli_packet_rules(cli_given(c, "compat") && !is_loggops(c), &config.packet_rules, err);
    if (code)
        return code;
    const cli_run_output wanted = {
        .is_json = cli_flag(c, "json"),
        .has_gantt = cli_flag(c, "gantt"),
        .csv = cli_text(c, "csv"),
        .links = cli_text(c, "links"),
        .trace_log = cli_text(c, "trace-log"),
        .timeline = cli_text(c, "timeline"),
        .report = cli_text(c, "report"),
        .report_ranks = cli_text(c, "report-ranks"),
        .what_if = cli_text(c, "what-if"),
    };
    return is_loggops(c)           ? run_schedule(c, &config, &wanted, err)
           : cli_given(c, "flows") ? run_flows(c, &config, &wanted, err)
                                   : run_traces(c, &config, &wanted, err);
}

const cli_command cli_cmd_run = {
    .name = "run",
    .summary = "simulate traces on a model of a cluster",
    .description =
        "Simulates the traces of all ranks with the workload and system layers of ASTRA-sim on a model of the network and "
        "prints when ranks finish and where the time went.  Times equal those of ASTRA-sim to the "
        "nanosecond.  With --network packet the network is simulated packet by packet.\n\n"
        "--network loggops simulates GOAL schedules, and traces, with the LogGOPS model.\n\n"
        "A run that deadlocks says which ranks wait for what, and exits with status 3.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-info(1)",
    .run = run_run,
};
