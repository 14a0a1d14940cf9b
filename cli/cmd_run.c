/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - orrery run: simulate traces on a model of a cluster. */
#include <orrery/lab/compat.h>
#include <orrery/lab/goal_traces.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>
#include <orrery/view.h>

#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options of a single engine: LogGOPS, packets. ---- */

/* Options of LogGOPS: rules, noise, and the parameters, into *model. */
static orr_code cli_loggops_options(const cli_context *c,
                                    orr_run_config *config,
                                    orr_loggops_model *model,
                                    orr_error *err)
{
    const char *text = cli_text(c, "loggops"), *compat = cli_text(c, "compat");
    const orr_compat *old = NULL;
    orr_code code = orr_loggops_parse(text ? text : "default", model, err);
    if (code)
        return orr_because(err, code, "--loggops");
    if (compat)
        code = orr_compat_find(ORR_RULES_LOGGOPS, compat, &old, err);
    /* Users who name a current machine expect its links, not the defaults of 2010. */
    if (!text && (cli_given(c, "machine") || cli_given(c, "hardware")))
        cli_note(c, "LogGOPS runs with its defaults, 6 ns per byte (0.17 GB/s): --loggops "
                    "L=NS,o=NS,G=NS sets those of your network\n");
    config->loggops = model;
    config->loggops_rules = old ? old->loggops : NULL;
    config->noise = cli_text(c, "noise");
    config->noise_seed = cli_count(c, "noise-seed");
    config->has_common_noise = cli_flag(c, "noise-common");
    return code;
}

/* ---- packets ---- */

static bool add_key(char *keys, const char *key, const char *value)
{
    const size_t at = strlen(keys);
    const int n = value ? snprintf(keys + at, CLI_KEYS_ROOM - at, " %s %s", key, value) : 0;
    return n >= 0 && (size_t)n < CLI_KEYS_ROOM - at;
}

/* Note that --threads has no effect where only one thread can work. */
static void note_one_thread(const cli_context *c)
{
    static const char *const options[] = {"compat", "approx"};
    const char *network = cli_text(c, "network");
    const bool is_packet = cli_given(c, "flows") || (network && strcmp(network, "packet") == 0);
    if (!is_packet || !cli_given(c, "threads") || cli_count(c, "threads") == 1)
        return;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (cli_given(c, options[i]))
            cli_note(c, "with --%s the network runs on one thread\n", options[i]);
}

orr_code cli_packet_rules(bool is_wanted, const struct orr_rules_packet **out, orr_error *err)
{
    const orr_compat *old;
    *out = NULL;
    if (!is_wanted)
        return ORR_OK;
    const orr_code code = orr_compat_find(ORR_RULES_PACKET, NULL, &old, err);
    if (!code)
        *out = old->packet;
    return code;
}

static orr_code cli_packet_keys(const cli_context *c, char keys[CLI_KEYS_ROOM], orr_error *err)
{
    static const struct {
        const char *option, *key;
    } rows[] = {{"series", "SERIES_FILE"},
                {"series-what", "SERIES_WHAT"},
                {"series-watch", "SERIES_WATCH"},
                {"series-every", "SERIES_INTERVAL"}};
    const char *own = cli_text(c, "packet-keys");
    bool fits = !own || strlen(own) < CLI_KEYS_ROOM / 2;
    keys[0] = 0;
    if (own && fits)
        memcpy(keys, own, strlen(own) + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && fits && cli_given(c, "series"); i++) {
        const char *value = cli_text(c, rows[i].option);
        if (value && (!*value || strpbrk(value, " \t\n")))
            return cli_misuse(err, "--%s: '%s' is empty or contains white space", rows[i].option,
                              value);
        fits = add_key(keys, rows[i].key, value);
    }
    if (fits && cli_flag(c, "approx"))
        fits = add_key(keys, "APPROX", "1");
    note_one_thread(c);
    return fits ? ORR_OK : cli_misuse(err, "--packet-keys is too long");
}

/* ---- jobs and schedules as traces ---- */

static bool brings_schedule(const cli_context *c)
{
    return !c->given && c->arg_count && cli_brings_goal(c->args[0]);
}

static bool has_jobs(const cli_context *c)
{
    return cli_given(c, "job") || cli_given(c, "placement") || cli_given(c, "hosts");
}

/* Several jobs on one machine are combined into one set of traces.  Schedules, and traces that
 * cannot be combined, become traces of their messages. */
static orr_code make_traces(cli_context *c, orr_set **out, orr_error *err)
{
    const char *why = NULL;
    orr_goal *g;
    orr_code code = has_jobs(c) ? cli_job_traces(c, out, &why, err) : ORR_OK;
    if (code || *out)
        return code;
    if ((code = cli_goal_jobs(c, NULL, &g, err)))
        return code;
    /* Messages of rings and trees reflect neither NVLS nor NCCL's measured rates. */
    if (!brings_schedule(c))
        cli_note(c,
                 "jobs are simulated message by message (%s): collectives use the system's "
                 "algorithms, not NCCL's measured times; compare with one job run the same way "
                 "(--hosts N)\n",
                 why);
    code = orr_goal_traces(g, c->args[0], out, err);
    orr_goal_free(g);
    return code ? orr_because(err, code, "%s", c->args[0]) : ORR_OK;
}

/* orrery run --compare: one input on several network models, the times side by side.
 *
 * On LogGOPS traces run as the schedule that the planner makes of them; schedules run unchanged
 * there, and as traces elsewhere. */

enum { MOST_NETWORKS = 16, MOST_TRACES = 64, NAME_ROOM = 24 };

typedef struct result {
    char network[NAME_ROOM];
    uint64_t finished_ns, events, messages;
    uint32_t rank; /* the last to finish */
    uint32_t simulated;
} result;

typedef struct comparison {
    cli_context *c;
    orr_goal *goal;
    orr_set *set;
    result results[MOST_NETWORKS];
    size_t count;
} comparison;

/* The data of the drawing: one group per input. */
typedef struct chart {
    char names[MOST_TRACES][2 * NAME_ROOM];
    uint64_t ps[MOST_TRACES * MOST_NETWORKS];
    size_t traces;
} chart;

/* ---- the input as traces and as a schedule, made on demand */

static orr_code need_goal(comparison *k, orr_error *err)
{
    return k->goal ? ORR_OK : cli_goal_jobs(k->c, NULL, &k->goal, err);
}

static orr_code need_set(comparison *k, orr_error *err)
{
    if (k->set)
        return ORR_OK;
    if (!has_jobs(k->c) && !brings_schedule(k->c))
        return orr_set_open(k->c->args[0], NULL, &k->set, err);
    return make_traces(k->c, &k->set, err);
}

/* ---- runs */

/* Add the network that failed to an error. */
static orr_code say_which(const result *r, orr_code code, orr_error *err)
{
    return orr_because(err, code, "--compare %s", r->network);
}

/* The last rank determines the time. */
static void take_result(orr_run *run, result *r)
{
    orr_ps last = 0;
    for (uint32_t i = 0; i < orr_run_ranks(run); i++) {
        const orr_ps at = orr_run_rank_at(run, i)->finished_at;
        if (at > last) {
            last = at;
            r->rank = i;
        }
    }
    r->finished_ns = (uint64_t)last / 1000;
    r->events = orr_run_events(run);
    r->messages = orr_run_messages(run);
    r->simulated = orr_run_ranks_simulated(run);
}

static orr_run_fold fold_wanted(const cli_context *c)
{
    const char *how = cli_text(c, "fold");
    return strcmp(how, "off") == 0      ? ORR_RUN_FOLD_OFF
           : strcmp(how, "verify") == 0 ? ORR_RUN_FOLD_VERIFY
                                        : ORR_RUN_FOLD_AUTO;
}

static orr_code run_network(comparison *k, result *r, orr_error *err)
{
    char keys[CLI_KEYS_ROOM];
    orr_loggops_model model;
    orr_run_config config = {
        .size = sizeof config, .shows_progress = !k->c->quiet, .fold = fold_wanted(k->c)};
    orr_run *run = NULL;
    const bool is_loggops = strcmp(r->network, "loggops") == 0;
    orr_code code = is_loggops ? cli_loggops_options(k->c, &config, &model, err)
                               : cli_packet_keys(k->c, keys, err);
    if (!code)
        code = cli_limits(k->c, &config, err);
    if (!code)
        code = is_loggops ? need_goal(k, err) : need_set(k, err);
    cli_limits_used(k->c, &config);
    if (is_loggops) {
        config.schedule = k->goal;
    } else {
        config.set = k->set;
        config.traces = k->c->args[0];
        config.network = r->network;
        config.machine = cli_text(k->c, "machine");
        config.is_ideal = cli_flag(k->c, "ideal");
        config.hardware = cli_text(k->c, "hardware");
        config.software = cli_text(k->c, "software");
        config.system = cli_text(k->c, "system");
        config.topology = cli_text(k->c, "topology");
        config.packet_config = cli_text(k->c, "packet-config");
        config.packet_keys = keys;
        config.logical = cli_text(k->c, "logical");
        config.memory = cli_text(k->c, "memory");
        config.groups = cli_text(k->c, "groups");
        config.plans = cli_text(k->c, "plan");
        config.ranks_file = cli_text(k->c, "ranks-file");
        config.queues_per_dim = (uint32_t)cli_count(k->c, "queues");
        config.rendezvous = cli_flag(k->c, "rendezvous");
        config.steps = (uint32_t)cli_count(k->c, "steps");
    }
    if (!code)
        code = orr_run_create(&config, &run, err);
    if (!code)
        code = cli_run_to_end(run, err);
    if (!code)
        take_result(run, r);
    else
        code = say_which(r, code, err);
    if (code)
        cli_explain(k->c, run, err);
    orr_run_destroy(run);
    return code;
}

static orr_code run_next(comparison *k, const char *name, size_t len, orr_error *err)
{
    if (len == 0 || len >= NAME_ROOM || k->count == MOST_NETWORKS)
        return cli_misuse(err, "--compare: expected comma-separated names of networks");
    result *r = &k->results[k->count];
    *r = (result){0};
    memcpy(r->network, name, len);
    const orr_code code = run_network(k, r, err);
    k->count += !code;
    return code;
}

/* ---- results */

static void print_json(const comparison *k, bool is_stopped)
{
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-compare");
    orr_json_put_fields(w, ORR_T("program", "orrery " ORR_VERSION), ORR_T("traces", k->c->args[0]));
    if (is_stopped)
        orr_json_put_fields(w, ORR_T("status", "interrupted"));
    orr_json_put_array(w, "runs");
    for (size_t i = 0; i < k->count; i++) {
        const result *r = &k->results[i];
        orr_json_put_row(w, ORR_T("network", r->network), ORR_U("finished_ns", r->finished_ns),
                         ORR_U("finished_rank", r->rank), ORR_U("events", r->events),
                         ORR_U("messages", r->messages), ORR_U("ranks_simulated", r->simulated));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void print_table(const comparison *k)
{
    const double base = (double)k->results[0].finished_ns;
    printf("%-10s %18s %10s %8s %14s %14s\n", "network", "finished (ns)", "of first", "rank",
           "messages", "events");
    for (size_t i = 0; i < k->count; i++) {
        const result *r = &k->results[i];
        char share[24] = "-";
        if (base > 0)
            snprintf(share, sizeof share, "%.1f%%", 100 * (double)r->finished_ns / base);
        printf("%-10s %18" PRIu64 " %10s %8" PRIu32 " %14" PRIu64 " %14" PRIu64 "\n", r->network,
               r->finished_ns, share, r->rank, r->messages, r->events);
    }
}

/* ---- all inputs */

static orr_code run_all(comparison *k, orr_error *err)
{
    orr_code code = ORR_OK;
    for (const char *p = cli_text(k->c, "compare"); !code;) {
        const size_t len = strcspn(p, ",");
        code = run_next(k, p, len, err);
        if (!p[len])
            break;
        p += len + 1;
    }
    return code;
}

/* The file name without folders and extension. */
static void name_group(const char *path, char out[2 * NAME_ROOM])
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    snprintf(out, 2 * NAME_ROOM, "%.*s", (int)len, name);
}

static void keep_for_chart(chart *x, const comparison *k)
{
    name_group(k->c->args[0], x->names[x->traces]);
    for (size_t i = 0; i < k->count; i++)
        x->ps[x->traces * k->count + i] = k->results[i].finished_ns * 1000;
    x->traces++;
}

static orr_code compare_one(cli_context *c, char *traces, chart *x, orr_error *err)
{
    comparison k = {.c = c};
    char *const first = c->args[0];
    c->args[0] = traces;
    const orr_code code = run_all(&k, err);
    const bool is_known = !code || (code == ORR_ESTOP && k.count > 0);
    if (is_known && cli_flag(c, "json"))
        print_json(&k, code == ORR_ESTOP);
    else if (is_known) {
        if (cli_given(c, "compare-traces"))
            printf("%s%s:\n", x->traces ? "\n" : "", traces);
        print_table(&k);
    }
    if (!code)
        keep_for_chart(x, &k);
    c->args[0] = first;
    orr_goal_free(k.goal);
    orr_set_close(k.set);
    return code;
}

static orr_code draw(const cli_context *c, const chart *x, orr_error *err)
{
    const char *groups[MOST_TRACES], *bars[MOST_NETWORKS];
    char names[MOST_NETWORKS * NAME_ROOM], *at = names;
    size_t count = 0;
    snprintf(names, sizeof names, "%s", cli_text(c, "compare"));
    for (char *end; count < MOST_NETWORKS; at = end + 1) {
        bars[count++] = at;
        if (!(end = strchr(at, ',')))
            break;
        *end = 0;
    }
    for (size_t i = 0; i < x->traces; i++)
        groups[i] = x->names[i];
    const orr_view_bars v = {.title = "run time of each network relative to the first",
                             .groups = groups,
                             .bars = bars,
                             .group_count = x->traces,
                             .bar_count = count,
                             .ps = x->ps};
    return orr_view_bars_svg(&v, cli_text(c, "compare-chart"), err);
}

/* orrery run --compare. */
static orr_code cli_run_compare(cli_context *c, orr_error *err)
{
    chart x = {.traces = 0};
    char more[8192] = "", *at = more;
    const char *given = cli_text(c, "compare-traces");
    orr_code code = ORR_OK;
    if (given && strlen(given) >= sizeof more)
        code = cli_misuse(err, "--compare-traces is too long");
    if (!code)
        code = compare_one(c, c->args[0], &x, err);
    if (!code && given)
        snprintf(more, sizeof more, "%s", given);
    while (!code && *at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        code = x.traces < MOST_TRACES ? compare_one(c, at, &x, err)
                                      : cli_misuse(err, "more than %d traces", MOST_TRACES);
        at = comma ? comma + 1 : at + strlen(at);
    }
    if (code == ORR_ESTOP)
        cli_report(c, err);
    return code || !cli_given(c, "compare-chart") ? code : draw(c, &x, err);
}

/* ---- one run ---- */

/* `needs` of a row has bits of orr_run_supports, and this one: for options that --compare, with its
 * several runs, does not support. */
#define ONE_RUN (1u << 31)

static const cli_option options[] = {
    {"machine", 0, "MACHINE",
     "cluster by name (dgx-h100:16 is 16 nodes; orrery machine list) or file; instead of -s and -t",
     .needs = ORR_RUN_SYSTEM},
    {"ideal", 0, NULL, "compute at the peak rates of the machine or system file",
     .needs = ORR_RUN_SYSTEM},
    {"system", 's', "FILE", "system file of ASTRA-sim (JSON): collectives, chunks, compute"},
    {"topology", 't', "FILE",
     "network: a file of ASTRA-sim, or a topology (YAML, ns-3, SimAI, htsim, NCCL, nvidia-smi, InfraGraph); packet: also config.txt"},
    {"hardware", 0, "CHIP",
     "time compute on this measured chip (h200, a100, ...), or on one of 'orrery calibrate kernels'"},
    {"software", 0, "NAME",
     "issue kernels as fast as this software does; NAME:1.3: on a host 1.3 times slower; default: "
     "as in the traces"},
    {"memory", 'm', "FILE", "remote memory file of ASTRA-sim (JSON)"},
    {"groups", 'g', "FILE", "communicator groups (JSON)"},
    {"plan", 0, "FILES",
     "run collectives by these plans of MSCCL (XML) or MSCCL++ (JSON), comma-separated",
     .needs = ORR_RUN_SYSTEM},
    {"network", 'n', "NAME",
     "network model: fluid (the default), unaware, aware, graph, packet or loggops (orrery help networks)",
     .needs = ONE_RUN},
    {"packet-config", 0, "FILE", "packet: config.txt, when --topology is a topology",
     .needs = ORR_RUN_PACKETS},
    {"packet-keys", 0, "WORDS", "packet: keys and values that override the configuration",
     .needs = ORR_RUN_PACKETS},
    {"approx", 0, NULL, "packet: fast-forward periodic traffic (not with congestion control)",
     .needs = ORR_RUN_PACKETS},
    {"series", 0, "FILE", "packet: write links, queues and flows over time (.csv or .json)",
     .needs = ORR_RUN_PACKETS | ONE_RUN, .kind = CLI_OUTPUT},
    {"series-every", 0, "TIME", "sampling interval; doubles when the run is long",
     .fallback = "10us", .needs = ORR_RUN_PACKETS, .with = "series"},
    {"series-what", 0, "LIST",
     "what to record: flows, queues, links (comma-separated); default: all",
     .needs = ORR_RUN_PACKETS, .with = "series"},
    {"series-watch", 0, "LIST",
     "always record these ports (8.3) or flows (0-5), besides the busiest",
     .needs = ORR_RUN_PACKETS, .with = "series"},
    {"logical", 0, "FILE", "packet: logical dimensions of the ranks (JSON); default: one",
     .needs = ORR_RUN_SYSTEM | ORR_RUN_PACKETS},
    {"flows", 0, "FILE",
     "packet: run the flows of this file (ns-3, htsim's .cm) or of the configuration instead of "
     "traces",
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
    {"hosts", 0, "N", "hosts of the machine; default: one per rank", CLI_COUNT, 1, 1 << 22},
    {"seed", 0, "N", "random seed of the placement", CLI_COUNT, .fallback = "1"},
    {"compare", 0, "NETWORKS", "run on each of these comma-separated models and compare the times"},
    {"compare-traces", 0, "FILES", "with --compare: further traces, each compared separately",
     .with = "compare"},
    {"compare-chart", 0, "FILE", "with --compare: draw the times as bars (SVG)", .with = "compare",
     .kind = CLI_OUTPUT},
    {"noise-common", 0, NULL, "loggops: the same noise for all ranks", .needs = ORR_RUN_LOGGOPS},
    {"compat", 0, "lgs2023|atlahs|ns3|astra2023",
     "exactly as LogGOPSim (2023), ATLAHS or the ns-3 back end, including their quirks; astra2023: times of ASTRA-sim in 2023 (orrery help figures)"},
    {"ranks-file", 0, "FILE", "slow or late ranks, slow or failed links (YAML)",
     .needs = ORR_RUN_SYSTEM},
    {"queues", 0, "N", "queues per network dimension", CLI_COUNT, 1, 65536, "1",
     .needs = ORR_RUN_SYSTEM},
    {"rendezvous", 0, NULL, "a message starts when its receiver is ready", .needs = ORR_RUN_SYSTEM},
    {"steps", 0, "N", "run the traces this many times in a row; tables show the last step",
     CLI_COUNT, 1, 1000000, "1", .needs = ORR_RUN_SYSTEM},
    {"fold", 0, "auto|off|verify",
     "simulate identical ranks once; verify: also simulate every rank and compare",
     .fallback = "auto", .needs = ORR_RUN_FOLDS},
    {"fold-why", 0, NULL, "print how many ranks were simulated, and why not fewer",
     .needs = ORR_RUN_FOLDS | ONE_RUN},
    {"threads", 0, "N",
     "threads for reading traces, for packets, LogGOPS, unaware, aware and graph; 0: one per core",
     CLI_COUNT, 0, 256, "0"},
    CLI_LIMITS,
    {"trace-log", 0, "FILE", "write when each node was issued and ended, one line per event",
     .needs = ORR_RUN_ISSUES | ONE_RUN, .kind = CLI_OUTPUT},
    {"json", 0, NULL, "print one JSON object"},
    {"csv", 0, "FILE", "write results as CSV, one row per rank", .needs = ORR_RUN_ROWS | ONE_RUN,
     .kind = CLI_OUTPUT},
    {"csv-ranks", 0, "all|alike",
     "alike: one row per group of ranks with the same figures; it lists them", .fallback = "all",
     .needs = ORR_RUN_ROWS | ONE_RUN, .with = "csv"},
    {"links", 0, "FILE", "write the traffic of every link as CSV", .needs = ORR_RUN_LINKS | ONE_RUN,
     .kind = CLI_OUTPUT},
    {"timeline", 0, "FILE", "write a timeline for Perfetto (JSON; also .gz, .zst)",
     .needs = ORR_RUN_SPANS | ONE_RUN, .kind = CLI_OUTPUT},
    {"timeline-detail", 0, "nodes|phases", "phases: also record the phases of collectives",
     .fallback = "nodes", .needs = ORR_RUN_PHASES | ONE_RUN, .with = "timeline"},
    {"timeline-ranks", 0, "auto|all|alike",
     "alike: one rank of each group with identical times; auto: alike if all have too many spans",
     .fallback = "auto", .needs = ORR_RUN_SPANS | ONE_RUN, .with = "timeline"},
    {"gantt", 0, NULL, "draw the timeline as text", .needs = ORR_RUN_SPANS | ONE_RUN},
    {"critical-path", 0, "N", "show the critical path and its N longest steps", CLI_COUNT, 1,
     1000000, .implied = "10", .needs = ORR_RUN_PATH | ONE_RUN},
    {"report", 0, "FILE", "write an HTML report", .needs = ORR_RUN_REPORT | ONE_RUN,
     .kind = CLI_OUTPUT},
    {"report-ranks", 0, "LIST",
     "ranks in its timeline: all, or a list such as 0-7,12; default: one of each group of identical ranks",
     .needs = ORR_RUN_WHAT_IF | ONE_RUN, .with = "report"},
    {"what-if", 0, "auto|off|estimate|simulate", "report: what faster hardware would change",
     .fallback = "auto", .needs = ORR_RUN_WHAT_IF | ONE_RUN, .with = "report"},
    {0},
};

static const cli_argument arguments[] = {
    {"TRACES", "a prefix P of P.0.et, P.1.et, ..., a directory, a .orr, or a GOAL schedule",
     CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"A training step of 16 ranks:", "orrery gen data_parallel --ranks 16 -o step.orr", 0},
    {"A network: one switch, 50 GiB/s and 500 ns per link:",
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
    orr_code code = orr_run_timeline_rows(r, wanted->timeline_rows, &t, err);
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
    orr_code code = orr_run_timeline_rows(r, ORR_RUN_ROWS_AUTO, &t, err);
    if (code)
        return code;
    putchar('\n');
    fflush(stdout); /* the drawing bypasses stdio */
    code = cli_print_gantt(t, err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code print_result(const orr_run *r, const cli_run_output *wanted, orr_error *err)
{
    const bool is_brief = wanted->is_brief && orr_run_traces(r);
    const char *form = !wanted->is_json ? "text" : is_brief ? "figures" : "json";
    const orr_code code = orr_run_write(r, form, "-", err);
    return code || wanted->is_json || !wanted->has_gantt ? code : print_gantt(r, err);
}

/* Write the files requested besides the result. */
static orr_code write_files(const orr_run *r, const cli_run_output *wanted, orr_error *err)
{
    const struct {
        const char *what, *path;
    } files[] = {{"links", wanted->links},
                 {"trace-log", wanted->trace_log},
                 {wanted->is_csv_alike ? "csv-alike" : "csv", wanted->csv}};
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
             config->topology  ? config->topology
             : config->machine ? config->machine
                               : "one switch");
    const orr_explain_options about = {.name = config->is_flows ? NULL : name,
                                       .ranks_shown = wanted->report_ranks,
                                       .what_if = cli_what_if_of(wanted->what_if),
                                       .why = why,
                                       .variant = orr_llm_variant};
    return cli_report_one(c, r, &about, wanted->report, err);
}

/* The report must not overwrite an input. */
static orr_code check_report(const orr_run *r, const char *report, orr_error *err)
{
    orr_run_input in;
    orr_code code = ORR_OK;
    for (size_t i = 0; report && !(code = orr_run_input_at(r, i, &in, err)); i++)
        if (strcmp(in.path, report) == 0 && strcmp(report, "-") != 0)
            return cli_misuse(err, "--report %s: that file is an input of this run (%s)", report,
                              in.role);
    return code == ORR_END ? ORR_OK : code;
}

/* Print the results so far of a run that was stopped or is deadlocked; errors here must not hide
 * the one that ended it. */
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

/* Print warnings not yet shown: some are known only at the end. */
static void print_warnings(const cli_context *c, const orr_run *r, size_t *shown)
{
    const char *line;
    while ((line = orr_run_warning(r, *shown))) {
        cli_note(c, "%s\n", line);
        ++*shown;
    }
}

/* Note on stderr how many ranks were simulated. */
static void say_fold(const orr_run *r)
{
    const uint32_t all = orr_run_ranks(r), some = orr_run_ranks_simulated(r);
    const char *why = orr_run_fold_why(r);
    const orr_run_steps steps = orr_run_steps_of(r);
    const uint32_t last = orr_run_ranks_simulated_last(r);
    char row[60] = "";
    if (steps.asked > 1)
        snprintf(row, sizeof row, ", %u of %u steps", steps.simulated, steps.asked);
    else if (last < some)
        snprintf(row, sizeof row, ", %u at the end,", last);
    if (some < all)
        fprintf(stderr, "folding: %u of %u ranks%s simulated%s%s\n", some, all, row,
                *why ? "; split: " : "", why);
    else
        fprintf(stderr, "folding: all %u ranks%s simulated%s%s\n", all, row, *why ? ": " : "", why);
}

/* Likewise: how many threads shared the ranks, if several were requested. */
static void say_threads(const cli_context *c, const orr_run *r, unsigned asked)
{
    const char *why;
    const uint32_t some = orr_run_threads(r, &why);
    if (asked > 1 && some)
        cli_note(c, "threads: %u of %u%s%s\n", some, asked, *why ? ": " : "", why);
}

orr_code cli_run_and_print(cli_context *c,
                           const orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err)
{
    orr_run *r = NULL;
    size_t warned = 0;
    orr_code code = orr_run_create(config, &r, err);
    if (!code)
        print_warnings(c, r, &warned);
    if (!code && config->is_flows)
        code = check_report(r, wanted->report, err);
    if (!code && (code = cli_run_to_end(r, err))) {
        if (config->schedule && code != ORR_ESTOP)
            orr_because(err, code, "%s", config->name);
        /* A run that was stopped or is deadlocked has results; after broken input no files are
         * written, and after running out of memory a stall means nothing. */
        if (code == ORR_ESTOP || (code != ORR_ENOMEM && orr_run_stall_line(r, 0)))
            print_so_far(c, r, config, wanted, err);
    } else if (!code) {
        print_warnings(c, r, &warned);
        if (wanted->says_fold)
            say_fold(r);
        say_threads(c, r, config->threads);
        code = print_result(r, wanted, err);
        if (!code)
            code = write_files(r, wanted, err);
        if (!code && wanted->report)
            code = write_report(c, r, config, wanted, NULL, err);
    } else if (config->schedule && !err->where.path[0]) { /* a location in another file says more */
        orr_because(err, code, "%s", config->name);
    }
    orr_run_destroy(r);
    return code;
}

/* ---- options that depend on each other ---- */

static bool is_loggops(const cli_context *c)
{
    const char *network = cli_text(c, "network");
    return network ? strcmp(network, "loggops") == 0
                   : !cli_given(c, "topology") && brings_schedule(c);
}

/* The capabilities of the selected engine; --compare runs several. */
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
    return cli_misuse(err, "--%s %s %s", name, needed ? "needs" : "does not apply to",
                      needed ? needed : given);
}

/* Refuse options without effect: each row of the table has its requirements. */
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
            return cli_misuse(err, "--%s needs --%s", o->name, o->with);
    }
    if (cli_given(c, "ideal") && cli_given(c, "hardware"))
        return cli_misuse(err,
                          "--ideal computes at the peaks of the machine or system file, --hardware "
                          "by the kernels of a chip: give one of them");
    /* Traces have kernels to time, on every network; schedules and flows have none. */
    const bool has_kernels = !cli_given(c, "flows") && (!brings_schedule(c) || cli_given(c, "job"));
    const orr_code code = cli_chip_check(cli_text(c, "hardware"), err);
    if (code)
        return code;
    const char *timing = cli_given(c, "hardware")   ? "hardware"
                         : cli_given(c, "software") ? "software"
                                                    : NULL;
    return !timing || has_kernels || cli_given(c, "compare")
               ? ORR_OK
               : refuse(c, timing, ORR_RUN_SYSTEM, err);
}

static bool compat_is(const cli_context *c, const char *name)
{
    const char *compat = cli_text(c, "compat");
    return compat && strcmp(compat, name) == 0;
}

static orr_code find_rules_of_2023(const struct orr_rules_run **out, orr_error *err)
{
    const orr_compat *old;
    const orr_code code = orr_compat_find(ORR_RULES_RUN, "astra2023", &old, err);
    *out = code ? NULL : old->run;
    return code;
}

/* Each program of --compat has one kind of network. */
static orr_code check_compat(const cli_context *c, orr_error *err)
{
    static const struct {
        const char *name;
        uint32_t needs;
        const char *network;
    } programs[] = {{"ns3", ORR_RUN_PACKETS, "packet or --flows"},
                    {"astra2023", ORR_RUN_SYSTEM | ONE_RUN, "unaware or aware"},
                    {NULL, ORR_RUN_LOGGOPS, "loggops"}};
    const char *compat = cli_text(c, "compat");
    size_t i = 0;
    while (compat && programs[i].name && strcmp(programs[i].name, compat) != 0)
        i++;
    if (!compat || (supported(c) & programs[i].needs) == programs[i].needs)
        return ORR_OK;
    return cli_misuse(err, "--compat %s needs --network %s", compat, programs[i].network);
}

/* Check required inputs. */
static orr_code check_inputs(const cli_context *c, orr_error *err)
{
    const bool is_flows = cli_given(c, "flows"), is_plain = has_jobs(c) || brings_schedule(c);
    if (!c->arg_count && !is_flows)
        return cli_misuse(err, "missing argument: TRACES");
    if (is_loggops(c) || cli_given(c, "compare") || is_plain)
        return ORR_OK;
    if (cli_given(c, "hardware") || (!is_flows && cli_given(c, "machine")))
        return ORR_OK; /* the default network is one switch */
    if (!cli_given(c, "system") && !is_flows)
        return cli_misuse(err,
                          "missing option: --machine NAME, or --system FILE and --topology FILE");
    return cli_given(c, "topology") ? ORR_OK : cli_misuse(err, "missing option: --topology FILE");
}

/* ---- the three kinds of runs ---- */

static uint32_t records_wanted(const cli_context *c)
{
    const bool has_phases =
        cli_given(c, "timeline") && strcmp(cli_text(c, "timeline-detail"), "phases") == 0;
    /* Not --critical-path: it needs steps, but no bytes over time. */
    const bool has_spans =
        cli_given(c, "timeline") || cli_flag(c, "gantt") || cli_given(c, "report");
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
        return cli_misuse(err, "--flows runs no traces: '%s'", c->args[0]);
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
        cli_limits_used(c, config);
        code = cli_run_and_print(c, config, wanted, err);
    }
    orr_goal_free(g);
    return code;
}

static orr_code run_traces(cli_context *c,
                           orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err)
{
    orr_set *set = NULL;
    orr_code code = has_jobs(c) || brings_schedule(c) ? make_traces(c, &set, err) : ORR_OK;
    config->traces = c->given ? NULL : c->args[0]; /* traces in memory have no file */
    config->set = set ? set : c->given;
    cli_limits_used(c, config);
    if (!code)
        code = cli_run_and_print(c, config, wanted, err);
    orr_set_close(set);
    return code;
}

static orr_run_rows rows_of(const char *word)
{
    if (!word || strcmp(word, "auto") == 0)
        return ORR_RUN_ROWS_AUTO;
    return strcmp(word, "all") == 0 ? ORR_RUN_ROWS_ALL : ORR_RUN_ROWS_ALIKE;
}

static orr_code run_run(cli_context *c, orr_error *err)
{
    char keys[CLI_KEYS_ROOM];
    orr_code code = check_options(c, err);
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
        .machine = cli_text(c, "machine"),
        .is_ideal = cli_flag(c, "ideal"),
        .system = cli_text(c, "system"),
        .topology = cli_text(c, "topology"),
        .packet_config = cli_text(c, "packet-config"),
        .packet_keys = keys,
        .logical = cli_text(c, "logical"),
        .memory = cli_text(c, "memory"),
        .groups = cli_text(c, "groups"),
        .plans = cli_text(c, "plan"),
        .ranks_file = cli_text(c, "ranks-file"),
        .network = cli_text(c, "network"),
        .hardware = cli_text(c, "hardware"),
        .software = cli_text(c, "software"),
        .queues_per_dim = (uint32_t)cli_count(c, "queues"),
        .rendezvous = cli_flag(c, "rendezvous"),
        .fold = fold_wanted(c),
        .steps = (uint32_t)cli_count(c, "steps"),
        .threads = (unsigned)cli_count(c, "threads"),
        .records = records_wanted(c),
        .path_steps = (uint32_t)cli_count(c, "critical-path"),
        .shows_progress = !c->quiet,
    };
    code = cli_limits(c, &config, err);
    if (!code)
        code = cli_packet_rules(compat_is(c, "ns3"), &config.packet_rules, err);
    if (!code && compat_is(c, "astra2023"))
        code = find_rules_of_2023(&config.rules, err);
    if (code)
        return code;
    const cli_run_output wanted = {
        .is_json = cli_flag(c, "json"),
        .is_brief = c->is_brief,
        .has_gantt = cli_flag(c, "gantt"),
        .says_fold = cli_flag(c, "fold-why"),
        .csv = cli_text(c, "csv"),
        .links = cli_text(c, "links"),
        .trace_log = cli_text(c, "trace-log"),
        .timeline = cli_text(c, "timeline"),
        .report = cli_text(c, "report"),
        .report_ranks = cli_text(c, "report-ranks"),
        .is_csv_alike = strcmp(cli_text(c, "csv-ranks"), "alike") == 0,
        .timeline_rows = rows_of(cli_text(c, "timeline-ranks")),
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
        "prints when ranks finish and where the time went.  Under its old program names times equal those of ASTRA-sim to the "
        "nanosecond.  With --network packet the network is simulated packet by packet.\n\n"
        "--network loggops simulates GOAL schedules, and traces, with the LogGOPS model.\n\n"
        "A run that deadlocks says which ranks wait for what, and exits with status 3.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-info(1)",
    .run = run_run,
};
