/* SPDX-License-Identifier: Apache-2.0 */
/* old_astra_sim.c - AstraSim_Analytical_Congestion_Unaware and _Aware, AstraSimNetwork and
 * AstraSim_HTSim, and the analytical ones under their first names: orrery run with the old options,
 * output and rules. */
#include "old.h"

#include "command.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/fabric_view.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/topology.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
/* Options of all three programs. */
#define GROUPS_LOGS_AND_QUEUES \
    {"comm-group-configuration", 0, "FILE", "communicator groups (JSON)", .fallback = "empty"}, \
    {"logging-configuration", 0, "FILE", "loggers and where their lines go (TOML)", .fallback = "empty"}, \
    {"logging-folder", 0, "DIR", "where log.log and err.log go", .fallback = "log"}, \
    {"num-queues-per-dim", 0, "N", "queues per network dimension", CLI_COUNT, 1, 65536, "1"}
#define SCALES_AND_RENDEZVOUS \
    {"comm-scale", 0, "X", "accepted, ignored", .fallback = "1"}, \
    INJECTION_AND_RENDEZVOUS
#define INJECTION_AND_RENDEZVOUS \
    {"injection-scale", 0, "X", "multiplies endpoint-delay", .fallback = "1"}, \
    {"rendezvous-protocol", 0, "true|false|1|0", "a message starts when its receiver is ready", .fallback = "false"}
/* clang-format on */

static const cli_option analytical_options[] = {
    {"workload-configuration", 0, "PREFIX", "traces: PREFIX.<rank>.et", .required = true},
    {"system-configuration", 0, "FILE", "system file (JSON)", .required = true},
    {"network-configuration", 0, "FILE", "network file (YAML; AstraSimNetwork: config.txt)",
     .required = true},
    {"remote-memory-configuration", 0, "FILE", "remote memory file (JSON)", .required = true},
    GROUPS_LOGS_AND_QUEUES,
    {"compute-scale", 0, "X", "accepted, ignored", .fallback = "1"},
    SCALES_AND_RENDEZVOUS,
    {"compat", 0, "astra-sim|astra2023", "ours: rules of today, or of 2023 (orrery help figures)",
     .fallback = "astra-sim"},
    {"no-compat", 0, NULL, "as orrery run has it, with the patterns of the logging file"},
    {0},
};

/* Before 2023 a workload was a table of layers, and there was no remote memory.  Of the statistics
 * files only the one that its tutorials read is written. */
static const cli_option early_options[] = {
    {"workload-configuration", 0, "FILE", "a table of layers, or a prefix of traces",
     .required = true},
    {"system-configuration", 0, "FILE", "system file (text of 1.0, or JSON)", .required = true},
    {"network-configuration", 0, "FILE", "network file (JSON of 1.0, or YAML)", .required = true},
    {"remote-memory-configuration", 0, "FILE", "remote memory file (JSON)"},
    {"num-passes", 0, "N", "passes over the table of layers", CLI_COUNT, 1, 1000000, "1"},
    {"path", 0, "DIR", "what the names of statistics files begin with; none: no file"},
    {"run-name", 0, "NAME", "its name in tutorial_result.csv", .fallback = "unnamed run"},
    {"total-stat-rows", 0, "N", "rows of that file", CLI_COUNT, 1, 1000000, "1"},
    {"stat-row", 0, "N", "its row; 0 begins the file", CLI_COUNT, 0, 999999, "0"},
    GROUPS_LOGS_AND_QUEUES,
    {"compute-scale", 0, "X", "multiplies the times of a table of layers", .fallback = "1"},
    {"comm-scale", 0, "X", "multiplies its sizes", .fallback = "1"},
    INJECTION_AND_RENDEZVOUS,
    {"no-compat", 0, NULL, "as orrery run has it"},
    {0},
};

/* Options after --htsim_opts have one dash. */
static const cli_option htsim_options[] = {
    {"workload-configuration", 0, "PREFIX", "traces: PREFIX.<rank>.et", .required = true},
    {"system-configuration", 0, "FILE", "system file (JSON)", .required = true},
    {"network-configuration", 0, "FILE", "logical dimensions of the ranks (YAML)",
     .required = true},
    {"remote-memory-configuration", 0, "FILE", "remote memory file (JSON)", .required = true},
    GROUPS_LOGS_AND_QUEUES,
    SCALES_AND_RENDEZVOUS,
    {"htsim-proto", 0, "tcp", "accepted, ignored: the transport is NSCC"},
    {"htsim_opts", 0, NULL, "what follows is for htsim"},
    {"topo", 0, "FILE", "htsim: the network (.topo); required"},
    {"nodes", 0, "N", "htsim: accepted, ignored"},
    {"o", 0, "FILE", "htsim: accepted, ignored"},
    {0},
};

/* Without a workload the flows of the configuration are run, so fewer options are required. */
static const cli_option packet_options[] = {
    {"workload-configuration", 0, "PREFIX", "traces: PREFIX.<rank>.et; without: flows"},
    {"system-configuration", 0, "FILE", "system file (JSON)"},
    {"network-configuration", 0, "FILE", "config.txt", .required = true},
    {"remote-memory-configuration", 0, "FILE", "remote memory file (JSON)"},
    {"logical-topology-configuration", 0, "FILE", "dimensions of the ranks (JSON)"},
    GROUPS_LOGS_AND_QUEUES,
    SCALES_AND_RENDEZVOUS,
    {"no-compat", 0, NULL, "as orrery run --network packet has it"},
    {0},
};

static orr_code write_logs(orr_run *r, const char *folder, orr_error *err)
{
    char path[4096];
    if (mkdir(folder, 0777) && errno != EEXIST) {
        const orr_where w = orr_where_byte(folder, ORR_NO_BYTE);
        return orr_fail(err, ORR_EIO, &w, "cannot make this directory: %s", strerror(errno));
    }
    snprintf(path, sizeof path, "%s/log.log", folder);
    orr_code code = orr_run_write(r, "file-log", path, err);
    snprintf(path, sizeof path, "%s/err.log", folder);
    if (!code)
        code = orr_run_write(r, "error-log", path, err);
    return code ? code : orr_run_write(r, "log-sinks", NULL, err);
}

/* Write the results, even of a stalled run: the ranks that finished are known. */
static orr_code write_old(orr_run *r, const char *folder, orr_error *err)
{
    orr_code code = orr_run_write(r, "console-log", "-", err);
    if (!code)
        code = write_logs(r, folder, err);
    return code ? code : orr_run_write(r, "memory", NULL, err);
}

static orr_code parse_scale(const cli_context *c, const char *name, double *out, orr_error *err)
{
    const char *text = cli_text(c, name);
    char *end;
    const double scale = strtod(text, &end);
    *out = scale > 0 ? scale : -1; /* 0 would mean: not given */
    if (*text && !*end && scale - scale == 0 && scale >= 0)
        return ORR_OK;
    return cli_misuse(err, "--%s: \"%s\" is not a number from 0 on", name, text);
}

/* What the old program prints before the run (packet-network.md 2). */
static void print_packet_head(orr_run *r)
{
    orr_packet_figures g;
    if (!orr_run_packets(r, &g))
        return;
    printf("ASTRA-sim + NS3\nThere are %u npus: ", orr_run_ranks(r));
    for (uint32_t k = 0; k < orr_run_dimensions(r); k++)
        printf("%u,", orr_run_dimension_at(r, k)->ranks);
    printf("\nQP is enabled\nmaxRtt=%" PRIu64 " maxBdp=%" PRIu64 "\n", g.max_rtt_ns,
           g.max_bdp_bytes);
    fflush(stdout); /* the rest bypasses stdio */
}

static orr_code find_rules(const char *name, const struct orr_rules_run **out, orr_error *err)
{
    const orr_compat *program;
    const orr_code code = orr_compat_find(ORR_RULES_RUN, name, &program, err);
    *out = code ? NULL : program->run;
    return code;
}

/* Differences between the programs. */
typedef struct variant {
    const char *network;
    const orr_set *set;                    /* traces that were made, not read; else NULL */
    const char *topology, *logical, *keys; /* with a topology, our rules apply */
    const char *rules;                     /* of the analytical networks; NULL: --compat */
    /* Writes further files at the end; NULL: none. */
    orr_code (*finish)(const cli_context *c, const orr_set *set, orr_run *r, orr_error *err);
} variant;

static orr_code run_variant(cli_context *c, const variant *v, orr_error *err)
{
    const char *network = v->network;
    const char *groups = cli_text(c, "comm-group-configuration");
    const char *rendezvous = cli_text(c, "rendezvous-protocol");
    const char *logging = cli_text(c, "logging-configuration");
    const bool is_packet = strcmp(network, "packet") == 0 && !v->topology;
    orr_run_config config = {
        .size = sizeof config,
        .logical = is_packet ? cli_text(c, "logical-topology-configuration") : v->logical,
        .traces = cli_text(c, "workload-configuration"),
        .set = v->set,
        .system = cli_text(c, "system-configuration"),
        .topology = v->topology ? v->topology : cli_text(c, "network-configuration"),
        .packet_keys = v->keys,
        .memory = cli_text(c, "remote-memory-configuration"),
        .groups =
            strstr(groups, "empty") ? NULL : groups, /* as in the reference (astra-sim.md 1) */
        .logging = strcmp(logging, "empty") == 0 ? NULL : logging,
        .network = network,
        .queues_per_dim = (uint32_t)cli_count(c, "num-queues-per-dim"),
        .rendezvous = strcmp(rendezvous, "true") == 0 || strcmp(rendezvous, "1") == 0,
        .shows_progress = !c->quiet,
    };
    orr_run *r = NULL;
    orr_error second;
    orr_code code = parse_scale(c, "injection-scale", &config.injection_scale, err);
    if (!code && !v->topology && !cli_flag(c, "no-compat"))
        code = find_rules(is_packet  ? "ns3"
                          : v->rules ? v->rules
                                     : cli_text(c, "compat"),
                          &config.rules, err);
    if (!code)
        code = cli_packet_rules(is_packet && config.rules, &config.packet_rules, err);
    if (!code)
        code = cli_run_start(c, &config, &r, err);
    if (r && is_packet)
        print_packet_head(r);
    if (r && code)
        (void)!write_old(r, cli_text(c, "logging-folder"), &second); /* the first error is
                                                                      * reported */
    else if (r)
        code = write_old(r, cli_text(c, "logging-folder"), err);
    if (r && !code && v->finish)
        code = v->finish(c, v->set, r, err);
    cli_explain(c, r, err);
    orr_run_destroy(r);
    return code;
}

static orr_code run_astra(cli_context *c, const char *network, orr_error *err)
{
    return run_variant(c, &(variant){.network = network}, err);
}

static orr_code run_astra_unaware(cli_context *c, orr_error *err)
{
    return run_astra(c, "unaware", err);
}

static orr_code run_astra_aware(cli_context *c, orr_error *err)
{
    return run_astra(c, "aware", err);
}

/* Without a workload it runs the flows of FLOW_FILE, as the program did before ASTRA-sim adopted
 * it. */
static orr_code run_astra_packet(cli_context *c, orr_error *err)
{
    orr_run_config config = {
        .size = sizeof config,
        .is_flows = true,
        .topology = cli_text(c, "network-configuration"),
        .shows_progress = !c->quiet,
    };
    const cli_run_output wanted = {0};
    const orr_code code = cli_packet_rules(!cli_flag(c, "no-compat"), &config.packet_rules, err);
    if (code)
        return code;
    if (!cli_text(c, "workload-configuration"))
        return cli_run_and_print(c, &config, &wanted, err);
    if (!cli_text(c, "system-configuration"))
        return cli_misuse(err, "--system-configuration is missing");
    if (!cli_text(c, "remote-memory-configuration"))
        return cli_misuse(err, "--remote-memory-configuration is missing");
    if (!cli_text(c, "logical-topology-configuration"))
        return cli_misuse(err, "--logical-topology-configuration is missing");
    return run_astra(c, "packet", err);
}

/* ---- the first names of the analytical programs ---- */

static bool is_table_of_layers(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".txt") == 0;
}

/* In single precision, as in the program. */
static uint64_t scaled(uint64_t v, double scale)
{
    const float product = (float)v * (float)scale;
    return product >= 9.2e18F ? INT64_MAX : (uint64_t)product;
}

/* The same table with times and sizes scaled. */
static orr_code scale_layers(const cli_context *c, orr_layers **t, orr_error *err)
{
    double compute, comm;
    orr_layers *out = NULL;
    orr_code code = parse_scale(c, "compute-scale", &compute, err);
    if (!code)
        code = parse_scale(c, "comm-scale", &comm, err);
    if (code || (compute == 1 && comm == 1))
        return code;
    if (!(code = orr_layers_create(orr_layers_policy(*t), &out, err)))
        code = orr_layers_set_args(out, orr_layers_args(*t), err);
    for (size_t i = 0; i < orr_layers_count(*t) && !code; i++) {
        orr_layer l = *orr_layers_get(*t, i);
        orr_layer_pass *const passes[] = {&l.forward, &l.input_grad, &l.weight_grad};
        for (int k = 0; k < 3; k++) {
            passes[k]->time = scaled(passes[k]->time, compute > 0 ? compute : 0);
            passes[k]->bytes = scaled(passes[k]->bytes, comm > 0 ? comm : 0);
        }
        code = orr_layers_add(out, &l, err);
    }
    orr_layers_free(code ? out : *t);
    *t = code ? *t : out;
    return code;
}

/* The traces of a table of layers for the network in the file. */
static orr_code make_layers(cli_context *c, orr_set **out, orr_error *err)
{
    orr_net_config net;
    orr_layers *t = NULL;
    orr_layers_expand opt = {
        .ranks = 1, .passes = (uint32_t)cli_count(c, "num-passes"), .with_updates = true};
    orr_code code = orr_network_dims(cli_text(c, "network-configuration"), &net, err);
    if (code)
        return code;
    for (uint32_t k = 0; k < net.dims; k++)
        opt.ranks *= net.npus[k];
    opt.dims = net.dims;
    opt.dim_sizes = net.npus;
    code = orr_layers_read(cli_text(c, "workload-configuration"), NULL, &t, err);
    if (!code)
        code = scale_layers(c, &t, err);
    if (!code)
        code = orr_layers_set(t, &opt, out, err);
    orr_layers_free(t);
    return code;
}

/* tutorial_result.csv: a run with --stat-row 0 creates it, later ones add their rows. */
enum { STAT_COLUMNS = 5, LINE_ROOM = 4096 };

/* Compute time of a rank according to the table; its _UPDATE nodes do not count. */
static double computing_us(const orr_trace *t)
{
    const orr_columns *n = orr_trace_columns(t);
    const char tail[] = "_UPDATE";
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        const orr_str name = orr_trace_name(t, i);
        if (n->type[i] == ORR_NODE_COMP &&
            (name.len < sizeof tail ||
             memcmp(name.ptr + name.len - (sizeof tail - 1), tail, sizeof tail - 1) != 0))
            sum += n->duration_us[i];
    }
    return (double)sum / 1e3;
}

static void print_result(const cli_context *c, const orr_set *set, orr_run *r, FILE *to)
{
    const orr_run_rank *first = orr_run_rank_at(r, 0);
    const double total = (double)first->wall / 1e6;
    const double compute =
        set ? computing_us(orr_set_trace(set, 0)) : (double)first->gpu_time / 1e6;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < orr_run_dimensions(r); k++)
        bytes += orr_run_dimension_at(r, k)->bytes;
    fprintf(to, "%s,%f,%f,%f,%f\n", cli_text(c, "run-name"), total, compute, total - compute,
            (double)bytes / orr_run_ranks(r) / (1 << 20));
}

static void print_empty_row(FILE *to)
{
    for (int i = 1; i < STAT_COLUMNS; i++)
        fputc(',', to);
    fputc('\n', to);
}

/* Copy the rows of the existing file (NULL: none) and replace this run's row. */
static void print_results(
    const cli_context *c, const orr_set *set, orr_run *r, FILE *before, FILE *to)
{
    const uint64_t own = cli_count(c, "stat-row"), rows = cli_count(c, "total-stat-rows");
    char line[LINE_ROOM];
    if (before && !fgets(line, sizeof line, before))
        before = NULL;
    fputs("Name,TotalTime(us),ComputeTime(us),ExposedCommunicationTime(us),TotalMessageSize(MB)\n",
          to);
    for (uint64_t i = 0; i < rows || i <= own || before; i++) {
        const bool has_line = before && fgets(line, sizeof line, before);
        if (!has_line)
            before = NULL;
        if (i == own)
            print_result(c, set, r, to);
        else if (has_line)
            fputs(line, to);
        else if (i < rows || i < own)
            print_empty_row(to);
    }
}

static orr_code write_result(const cli_context *c, const orr_set *set, orr_run *r, orr_error *err)
{
    char path[4096], made[4104];
    if (!cli_given(c, "path"))
        return ORR_OK;
    snprintf(path, sizeof path, "%stutorial_result.csv", cli_text(c, "path"));
    snprintf(made, sizeof made, "%s.part", path);
    FILE *before = cli_count(c, "stat-row") ? fopen(path, "r") : NULL;
    FILE *to = fopen(made, "w");
    bool is_fine = to != NULL;
    if (to) {
        print_results(c, set, r, before, to);
        is_fine = !ferror(to);
        is_fine = fclose(to) == 0 && is_fine && rename(made, path) == 0;
    }
    if (before)
        fclose(before);
    const orr_where where = orr_where_byte(path, ORR_NO_BYTE);
    return is_fine ? ORR_OK : orr_fail(err, ORR_EIO, &where, "cannot write: %s", strerror(errno));
}

static orr_code run_early(cli_context *c, const char *network, orr_error *err)
{
    orr_set *set = NULL;
    orr_code code = ORR_OK;
    variant v = {.network = network, .rules = "astra-sim", .finish = write_result};
    if (is_table_of_layers(cli_text(c, "workload-configuration")))
        code = make_layers(c, &set, err);
    v.set = set;
    if (set) /* times in a table are nanoseconds (astra-sim.md 13) */
        v.rules = "astra1";
    if (!code)
        code = run_variant(c, &v, err);
    orr_set_close(set);
    return code;
}

static orr_code run_early_unaware(cli_context *c, orr_error *err)
{
    return run_early(c, "unaware", err);
}

static orr_code run_early_aware(cli_context *c, orr_error *err)
{
    return run_early(c, "aware", err);
}

/* ---- htsim ---- */

/* The settings of the sample configurations, except for the congestion control: NSCC. */
static orr_code run_htsim(cli_context *c, orr_error *err)
{
    const variant v = {.network = "packet",
                       .topology = cli_text(c, "topo"),
                       .logical = cli_text(c, "network-configuration"),
                       .keys = "CC_MODE 11 TRANSPORT selective ENABLE_PFC 0 TRIMMING 1"};
    if (!v.topology)
        return cli_misuse(err, "--htsim_opts -topo FILE is missing");
    return run_variant(c, &v, err);
}

const cli_command cli_old_astra_early = {
    .name = "AnalyticalAstra",
    .summary = "simulate a table of layers, or traces, on the analytical network",
    .now = "orrery run --network unaware",
    .options = early_options,
    .ignores_unknown = true,
    .run = run_early_unaware,
};

const cli_command cli_old_astra_congestion = {
    .name = "AstraCongestion",
    .summary = "the same on the congestion-aware analytical network",
    .now = "orrery run --network aware",
    .options = early_options,
    .ignores_unknown = true,
    .run = run_early_aware,
};

const cli_command cli_old_astra_htsim = {
    .name = "AstraSim_HTSim",
    .summary = "simulate traces on a topology of htsim, packet by packet, with NSCC",
    .now =
        "orrery run --network packet --packet-keys 'CC_MODE 11 TRANSPORT selective ENABLE_PFC 0 TRIMMING 1'",
    .options = htsim_options,
    .ignores_unknown = true,
    .one_dash = true,
    .run = run_htsim,
};

const cli_command cli_old_astra_unaware = {
    .name = "AstraSim_Analytical_Congestion_Unaware",
    .summary = "simulate traces on the congestion-unaware analytical network",
    .now = "orrery run --network unaware",
    .options = analytical_options,
    .ignores_unknown = true,
    .run = run_astra_unaware,
};

const cli_command cli_old_astra_aware = {
    .name = "AstraSim_Analytical_Congestion_Aware",
    .summary = "simulate traces on the congestion-aware analytical network",
    .now = "orrery run --network aware",
    .options = analytical_options,
    .ignores_unknown = true,
    .run = run_astra_aware,
};

const cli_command cli_old_astra_packet = {
    .name = "AstraSimNetwork",
    .summary = "simulate traces, or flows, on the packet-level network (ns-3)",
    .now = "orrery run --network packet --compat ns3",
    .options = packet_options,
    .ignores_unknown = true,
    .run = run_astra_packet,
};

/* ns-3 adds its version before the name and the build profile after it; any of them is accepted. */
const cli_command cli_old_astra_ns3 = {
    .name = "ns3.42-AstraSimNetwork-default",
    .summary = "the same, by the name ns-3 gives it (ns3*-AstraSimNetwork-*)",
    .now = "orrery run --network packet --compat ns3",
    .options = packet_options,
    .ignores_unknown = true,
    .run = run_astra_packet,
};
