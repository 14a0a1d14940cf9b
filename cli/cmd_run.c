/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - orrery run: simulate traces on a model of a cluster. */
#include "command.h"
#include "goal.h"
#include "html_report.h"

#include <orrery/lab/goal_traces.h>
#include <orrery/lab/sim.h>
#include <orrery/lab/topology.h>
#include <orrery/version.h>
#include <orrery/view.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"system", 's', "FILE", "system file of ASTRA-sim (JSON): collectives, chunks, compute"},
    {"topology", 't', "FILE",
     "network file of ASTRA-sim, or a topology (YAML, ns-3, SimAI, htsim); packet: config.txt, too"},
    {"memory", 'm', "FILE", "remote memory file of ASTRA-sim (JSON)"},
    {"groups", 'g', "FILE", "communicator groups (JSON)"},
    {"network", 'n', "unaware|aware|graph|packet|loggops",
     "without or with messages delaying each other, packet by packet, or by LogGOPS"},
    {"packet-config", 0, "FILE", "packet: config.txt when --topology has links"},
    {"packet-keys", 0, "WORDS", "packet: keys and values over those of the configuration"},
    {"approx", 0, NULL, "packet: pass over what repeats itself exactly; no congestion control"},
    {"series", 0, "FILE", "packet: write what happened over time (.csv or .json)"},
    {"series-every", 0, "TIME", "its interval; doubles when the run is long", .fallback = "10us"},
    {"series-what", 0, "LIST", "of what: flows,queues,links; else all three"},
    {"series-watch", 0, "LIST", "these for certain: ports as 8.3, flows as 0-5; and the busiest"},
    {"logical", 0, "FILE", "packet: dimensions of the ranks (JSON); else all hosts in one"},
    {"flows", 0, "FILE",
     "packet: run the flows of this file (ns-3, htsim's .cm), or of the configuration, not traces",
     .implied = ""},
    {"loggops", 0, "PARAMETERS",
     "default, ai, hpc, or L=2500,o=1500,g=1000,G=6,O=0,S=65535 (ns, bytes)"},
    {"noise", 0, "FILE", "loggops: interruptions, start and duration in ns, a line each"},
    {"noise-seed", 0, "N", "loggops: where in that file ranks start", CLI_COUNT, 0, UINT32_MAX,
     "12345"},
    {"job", 0, "FILES", "more traces or schedules beside TRACES, with commas between them"},
    {"placement", 0, "PLACEMENT", "where ranks of jobs go: packed, spread, random, or a JSON file",
     .fallback = "packed"},
    {"hosts", 0, "N", "hosts of the machine, when there are more than ranks", CLI_COUNT, 1,
     UINT32_MAX - 1},
    {"seed", 0, "N", "of a random placement", CLI_COUNT, .fallback = "1"},
    {"compare", 0, "NETWORKS",
     "run on each of these, with commas between them, and print the times side by side"},
    {"compare-traces", 0, "LIST", "with --compare: these traces, too, each by itself"},
    {"compare-chart", 0, "FILE", "with --compare: draw the times as bars (SVG)"},
    {"noise-common", 0, NULL, "loggops: all ranks are interrupted at the same times"},
    {"compat", 0, "lgs2023|atlahs|ns3",
     "exactly as LogGOPSim of 2023, or of ATLAHS, or as the old packet program, oddities and all"},
    {"ranks-file", 0, "FILE", "slow or late ranks, slow or failed links (YAML)"},
    {"queues", 0, "N", "queues per network dimension", CLI_COUNT, 1, 65536, "1"},
    {"rendezvous", 0, NULL, "a message starts when its receiver is ready"},
    {"threads", 0, "N", "threads that read traces and run packets; 0: one per core", CLI_COUNT, 0,
     256, "0"},
    {"trace-log", 0, "FILE", "write when each node was issued and ended, a line each"},
    {"json", 0, NULL, "print one JSON object"},
    {"csv", 0, "FILE", "write one row a rank"},
    {"links", 0, "FILE", "write what went over each link, a row each (CSV)"},
    {"timeline", 0, "FILE", "write when each node ran, for Perfetto (JSON; .gz and .zst too)"},
    {"timeline-detail", 0, "nodes|phases", "also the phases of collectives", .fallback = "nodes"},
    {"gantt", 0, NULL, "draw when each rank was busy, in characters"},
    {"critical-path", 0, "N", "what the run waited for, with its N longest steps", CLI_COUNT, 1,
     1000000, .implied = "10"},
    {"report", 0, "FILE", "write a page: where the time went, links and flows over time (HTML)"},
    {"report-ranks", 0, "LIST", "ranks in its timeline: all, or 0-7,12; else one of each kind"},
    {"what-if", 0, "auto|off|estimate|simulate", "try faster parts for the report",
     .fallback = "auto"},
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
    {"A network: one switch, 50 GB/s and 500 ns a link:",
     "printf 'topology: [Switch]\\nnpus_count: [16]\\n' > net.yml", 0},
    {"", "printf 'bandwidth: [50]\\nlatency: [500]\\n' >> net.yml", 0},
    {"A system: ring all-reduce in four chunks; and a memory pool:",
     "printf '{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,' > sys.json", 0},
    {"", "printf '\"preferred-dataset-splits\":4,' >> sys.json", 0},
    {"", "printf '\"all-reduce-implementation\":[\"ring\"]}' >> sys.json", 0},
    {"", "printf '{\"memory-type\":\"MEMORY_POOL\",\"remote-mem-bw\":100}' > mem.json", 0},
    {"When does each rank finish?", "orrery run step.orr -s sys.json -t net.yml -m mem.json", 0},
    {"With messages that delay each other:",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --network aware", 0},
    {"On leaves and spines, where rank 3 computes at half speed:",
     "printf 'generate: {type: leaf-spine, ranks: 16, spines: 2, ' > ls.yml", 0},
    {"", "printf 'ranks_per_leaf: 4, bandwidth: 400Gb/s}' >> ls.yml", 0},
    {"", "printf 'ranks: [{ranks: 3, compute: 0.5}]' > r.yml", 0},
    {"", "orrery run step.orr -s sys.json -m mem.json -t ls.yml --ranks-file r.yml", 0},
    {"One all-reduce packet by packet, with the same links:",
     "orrery gen all_reduce --ranks 16 -o ar.orr", 0},
    {"", "orrery run ar.orr -s sys.json -t ls.yml --network packet", 0},
    {"How much does that change?", "orrery run ar.orr -s sys.json -t ls.yml --compare graph,packet",
     0},
    {"Two flows into one host, without traces:",
     "printf 'CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps ' > config.txt", 0},
    {"", "printf 'L2_CHUNK_SIZE 4000 TOPOLOGY_FILE star.txt\\n' >> config.txt", 0},
    {"", "printf '4 1 3\\n3\\n3 0 100Gbps 1us 0\\n' > star.txt", 0},
    {"", "printf '3 1 100Gbps 1us 0\\n3 2 100Gbps 1us 0\\n' >> star.txt", 0},
    {"", "printf '2\\n0 2 3 100 1000000 0\\n1 2 3 100 1000000 0\\n' > flows.txt", 0},
    {"", "orrery run --flows=flows.txt -t config.txt", 0},
    {"What links, queues and flows did over time:",
     "orrery run --flows=flows.txt -t config.txt --series s.csv", 0},
    {"The same as a page to look at:",
     "orrery run --flows=flows.txt -t config.txt --report flows.html", 0},
    {"Only what is lost is sent again, instead of pauses:",
     "printf 'ENABLE_PFC 0 TRANSPORT selective' >> config.txt", 0},
    {"", "orrery run --flows=flows.txt -t config.txt", 0},
    {"The traffic of htsim on one of its trees:",
     "orrery gen topology fat-tree --k 4 --nic 400Gbps --latency 1us -o k4.topo", 0},
    {"", "printf 'Nodes 16\\nConnections 1\\n0->9 start 0 size 1000000\\n' > one.cm", 0},
    {"", "orrery run --flows one.cm -t k4.topo", 0},
    {"What did it wait for?",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --critical-path", 0},
    {"A timeline for ui.perfetto.dev:",
     "orrery run step.orr -s sys.json -t net.yml -m mem.json --timeline t.json", 0},
    {"The same in the terminal:", "orrery run step.orr -s sys.json -t net.yml -m mem.json --gantt",
     0},
    {"A page to look at: where did the time go, what would be faster?",
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

orr_code cli_simulate(const cli_context *c,
                      const orr_sim_options *opt,
                      orr_sim **out,
                      orr_error *err)
{
    const char *line;
    const orr_code code = orr_sim_create(opt, out, err);
    for (size_t i = 0; !code && (line = orr_sim_warning(*out, i)); i++)
        cli_note(c, "%s\n", line);
    return code ? code : cli_run_until_stopped(*out, err);
}

static orr_sim_record record_wanted(const cli_context *c)
{
    if (cli_given(c, "timeline") && strcmp(cli_text(c, "timeline-detail"), "phases") == 0)
        return ORR_SIM_RECORD_PHASES;
    return cli_given(c, "timeline") || cli_given(c, "critical-path") || cli_flag(c, "gantt") ||
                   cli_given(c, "report")
               ? ORR_SIM_RECORD_NODES
               : ORR_SIM_RECORD_FIGURES;
}

void cli_explain_stall(cli_context *c, orr_sim *s, const orr_error *err)
{
    const orr_stall *stall = s ? orr_sim_stall(s) : NULL;
    if (!stall)
        return;
    cli_report(c, err);
    for (size_t i = 0; i < stall->line_count; i++)
        fprintf(stderr, "%s\n", stall->lines[i]);
    for (size_t i = 0; orr_sim_network_stall(s, i); i++)
        fprintf(stderr, "network: %s\n", orr_sim_network_stall(s, i));
}

/* The same, and in the JSON object. */
static void explain(cli_context *c, orr_sim *s, const orr_error *err)
{
    orr_error second;
    if (orr_sim_stall(s) && cli_flag(c, "json"))
        (void)!orr_sim_write_json(s, "-", &second); /* the first error counts */
    cli_explain_stall(c, s, err);
}

orr_code cli_write_memory(const orr_sim *s, orr_error *err)
{
    char path[4096];
    orr_code code = ORR_OK;
    for (uint32_t i = 0; orr_sim_memory_trace(s) && i < orr_sim_finished(s) && !code; i++) {
        const uint32_t rank = orr_sim_finished_rank(s, i);
        snprintf(path, sizeof path, "%s.%u.json", orr_sim_memory_trace(s), rank);
        code = orr_sim_write_memory_trace(s, rank, path, err);
    }
    return code;
}

static orr_code write_timeline(const orr_sim *s, const char *path, orr_error *err)
{
    orr_timeline *t;
    orr_code code = orr_sim_timeline(s, &t, err);
    if (code)
        return code;
    code = orr_view_chrome(t, path, err);
    orr_timeline_destroy(t);
    return code;
}

/* "step.orr on net.yml" */
static orr_code write_report(
    cli_context *c, orr_sim *s, const orr_sim_options *opt, double seconds, orr_error *err)
{
    char name[2 * 256];
    snprintf(name, sizeof name, "%.255s on %.250s", opt->workload,
             opt->network ? opt->network : "one switch");
    const orr_explain_options about = {.name = name,
                                       .ranks_shown = cli_text(c, "report-ranks"),
                                       .what_if = cli_what_if_of(cli_text(c, "what-if")),
                                       .seconds = seconds};
    return cli_report_one(c, s, &about, cli_text(c, "report"), err);
}

/* The files that were asked for beside the result. */
static orr_code write_files(cli_context *c, const orr_sim *s, orr_error *err)
{
    const char *trace_log = cli_text(c, "trace-log"), *csv = cli_text(c, "csv");
    const char *timeline = cli_text(c, "timeline"), *links = cli_text(c, "links");
    orr_code code = cli_write_memory(s, err);
    if (!code && links)
        code = orr_sim_write_links(s, links, err);
    if (!code && trace_log)
        code = orr_sim_write_trace_log(s, trace_log, err);
    if (!code && csv)
        code = orr_sim_write_csv(s, csv, err);
    return code || !timeline ? code : write_timeline(s, timeline, err);
}

static orr_code print_gantt(const orr_sim *s, orr_error *err)
{
    orr_timeline *t;
    orr_code code = orr_sim_timeline(s, &t, err);
    if (code)
        return code;
    putchar('\n');
    fflush(stdout); /* the drawing goes past stdio */
    code = cli_print_gantt(t, err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code print_result(const cli_context *c, const orr_sim *s, orr_error *err)
{
    if (cli_flag(c, "json"))
        return orr_sim_write_json(s, "-", err);
    const orr_code code = orr_sim_write_text(s, "-", err);
    return code || !cli_flag(c, "gantt") ? code : print_gantt(s, err);
}

/* What is known when a run did not come to its end; the error that ended it counts. */
static void print_so_far(cli_context *c, orr_sim *s, orr_code code, const orr_error *err)
{
    orr_error second;
    if (code == ORR_ESTOP) {
        cli_report(c, err);
        (void)!print_result(c, s, &second);
    } else {
        explain(c, s, err);
    }
    (void)!write_files(c, s, &second);
}

/* What would have no effect is refused. */
static orr_code check_wishes(const cli_context *c, orr_error *err)
{
    static const char *const of_report[] = {"report-ranks", "what-if"};
    static const char *const of_compare[] = {"compare-traces", "compare-chart"};
    for (unsigned i = 0; i < 2 && !cli_given(c, "compare"); i++)
        if (cli_given(c, of_compare[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s goes with --compare", of_compare[i]);
    for (unsigned i = 0; i < 2 && !cli_given(c, "report"); i++)
        if (cli_given(c, of_report[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s goes with --report", of_report[i]);
    for (unsigned i = 0; i < 2 && cli_given(c, "flows"); i++)
        if (cli_given(c, of_report[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s is for traces, not for --flows",
                            of_report[i]);
    if (cli_given(c, "timeline-detail") && !cli_given(c, "timeline"))
        return orr_fail(err, ORR_EUSAGE, NULL, "--timeline-detail goes with --timeline");
    return ORR_OK;
}

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
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s %s: that file is %s%s, too", outputs[i],
                            path, strcmp(by, "TRACES") == 0 ? "" : "--", by);
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

/* --compat means a program of one kind of network. */
static orr_code check_compat(const cli_context *c, orr_error *err)
{
    const char *compat = cli_text(c, "compat"), *network = cli_text(c, "network");
    const bool is_packet = cli_given(c, "flows") || (network && strcmp(network, "packet") == 0);
    const bool is_ns3 = compat && strcmp(compat, "ns3") == 0;
    if (compat && !(is_ns3 ? is_packet : is_loggops(c)))
        return orr_fail(err, ORR_EUSAGE, NULL, "--compat %s goes with --network %s%s", compat,
                        is_ns3 ? "packet" : "loggops", is_ns3 ? " and --flows" : "");
    return ORR_OK;
}

/* What only one kind of network takes, and what traces cannot do without. */
static orr_code check_files(const cli_context *c, bool is_plain, orr_error *err)
{
    static const char *const packets[] = {"packet-keys", "approx",       "series",
                                          "series-what", "series-watch", "series-every"};
    const char *network = cli_text(c, "network");
    const bool is_packet = cli_given(c, "flows") || (network && strcmp(network, "packet") == 0);
    for (size_t i = 0; i < sizeof packets / sizeof *packets && !is_packet; i++)
        if (cli_given(c, packets[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s is for --network packet and --flows",
                            packets[i]);
    for (size_t i = 3; i < sizeof packets / sizeof *packets && !cli_given(c, "series"); i++)
        if (cli_given(c, packets[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s goes with --series", packets[i]);
    static const char *const loggops[] = {"loggops", "noise", "noise-seed", "noise-common"};
    const bool is_flows = cli_given(c, "flows");
    for (size_t i = 0; i < sizeof loggops / sizeof *loggops; i++) {
        if (cli_given(c, loggops[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s is for --network loggops only",
                            loggops[i]);
    }
    if (!c->arg_count && !is_flows)
        return orr_fail(err, ORR_EUSAGE, NULL, "TRACES is missing");
    if (!cli_given(c, "system") && !is_plain && !is_flows)
        return orr_fail(err, ORR_EUSAGE, NULL, "missing option: --system FILE");
    if (!cli_given(c, "topology") && !is_plain)
        return orr_fail(err, ORR_EUSAGE, NULL, "missing option: --topology FILE");
    return ORR_OK;
}

static orr_code run_flows(cli_context *c, orr_error *err)
{
    const char *flows = cli_text(c, "flows"), *topology = cli_text(c, "topology");
    const bool has_links = orr_topology_is_one(topology);
    const bool is_bare = *flows == 0 && c->arg_count == 1; /* "--flows FILE" */
    char keys[CLI_KEYS_ROOM];
    const struct orr_rules_packet *rules;
    orr_code code = cli_packet_keys(c, keys, err);
    if (!code)
        code = cli_packet_rules(cli_given(c, "compat"), &rules, err);
    if (code)
        return code;
    const orr_packet_options opt = {
        .keys = keys,
        .config = has_links ? cli_text(c, "packet-config") : topology,
        .topology = has_links ? topology : NULL,
        .flows = is_bare  ? c->args[0]
                 : *flows ? flows
                          : NULL,
        .rules = rules,
        .threads = (unsigned)cli_count(c, "threads"),
        .shows_progress = !c->quiet,
        .wants_history = cli_given(c, "report"),
        .program = "orrery " ORR_VERSION,
    };
    if (c->arg_count && !is_bare)
        return orr_fail(err, ORR_EUSAGE, NULL, "with --flows there are no traces: '%s'",
                        c->args[0]);
    return cli_run_flows(c, &opt, cli_flag(c, "json"), cli_text(c, "report"), err);
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

static orr_code run_and_print(cli_context *c, const orr_set *set, orr_error *err)
{
    char text[CLI_PLAIN_ROOM], keys[CLI_KEYS_ROOM];
    const struct orr_rules_packet *rules;
    orr_code code = cli_packet_keys(c, keys, err);
    if (!code)
        code = cli_packet_rules(cli_given(c, "compat"), &rules, err);
    if (code)
        return code;
    orr_sim_options opt = {
        .workload = c->args[0],
        .set = set,
        .system = cli_text(c, "system"),
        .network = cli_text(c, "topology"),
        .packet = cli_text(c, "packet-config"),
        .packet_keys = keys,
        .logical = cli_text(c, "logical"),
        .memory = cli_text(c, "memory"),
        .groups = cli_text(c, "groups"),
        .ranks_file = cli_text(c, "ranks-file"),
        .fidelity = cli_text(c, "network"),
        .queues_per_dim = (uint32_t)cli_count(c, "queues"),
        .rendezvous = cli_flag(c, "rendezvous"),
        .threads = (unsigned)cli_count(c, "threads"),
        .trace_log = cli_text(c, "trace-log") != NULL,
        .wants_links = cli_text(c, "links") != NULL,
        .wants_history = cli_given(c, "report"),
        .packet_rules = rules,
        .record = record_wanted(c),
        .critical_path = (uint32_t)cli_count(c, "critical-path"),
        .shows_progress = !c->quiet,
        .program = "orrery " ORR_VERSION,
    };
    if (set)
        cli_plain_files(c, orr_set_rank_count(set), text, &opt);
    orr_sim *s = NULL;
    orr_error second;
    const double begun = cli_seconds();
    code = cli_simulate(c, &opt, &s, err);
    const double seconds = cli_seconds() - begun;
    /* Stopped or standing still, it has something to show; broken input leaves no files. */
    const bool has_part = code && s && (code == ORR_ESTOP || orr_sim_stall(s));
    if (has_part)
        print_so_far(c, s, code, err);
    if (has_part && cli_given(c, "report"))
        (void)!write_report(c, s, &opt, seconds, &second); /* the first error counts */
    if (!code)
        code = print_result(c, s, err);
    if (!code)
        code = write_files(c, s, err);
    if (!code && cli_given(c, "report"))
        code = write_report(c, s, &opt, seconds, err);
    orr_sim_destroy(s);
    return code;
}

static orr_code run_run(cli_context *c, orr_error *err)
{
    const bool is_plain = has_jobs(c) || has_schedule(c);
    orr_set *set = NULL;
    orr_code code = check_outputs(c, err);
    if (code)
        return code;
    if (cli_given(c, "compare"))
        return c->arg_count ? cli_run_compare(c, err)
                            : orr_fail(err, ORR_EUSAGE, NULL, "TRACES is missing");
    code = check_compat(c, err);
    if (!code && is_loggops(c))
        return c->arg_count ? cli_run_loggops(c, err)
                            : orr_fail(err, ORR_EUSAGE, NULL, "TRACES is missing");
    if (!code)
        code = check_files(c, is_plain, err);
    if (!code)
        code = check_wishes(c, err);
    if (!code && cli_given(c, "flows"))
        return run_flows(c, err);
    if (!code && is_plain)
        code = make_traces(c, &set, err);
    if (!code)
        code = run_and_print(c, set, err);
    orr_set_close(set);
    return code;
}

const cli_command cli_cmd_run = {
    .name = "run",
    .summary = "simulate traces on a model of a cluster",
    .description =
        "Runs the traces of all ranks through ASTRA-sim's workload and system layers on an analytical network and "
        "prints when each rank finishes and where the time went.  Cycles are nanoseconds and are those of the "
        "reference, to the cycle.  With --network packet the network is simulated packet by packet.\n\n"
        "--network loggops simulates GOAL schedules, and traces, by the LogGOPS model.\n\n"
        "A run that comes to a standstill says which ranks wait and for what, and ends with status 3.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-info(1)",
    .run = run_run,
};
