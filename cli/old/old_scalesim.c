/* SPDX-License-Identifier: Apache-2.0 */
/* old_scalesim.c - SCALE-Sim by its old name: scale.py, shared by three generations.
 *
 * Flags distinguish the first generation from the others, and the configuration the second from the
 * third.  Output is theirs, except for progress bars. */
#include "old.h"

#include "base/formats/json.h"
#include "command.h"

#include <orrery/version.h>

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    {"topology", 't', "FILE", "the layers: a .csv file"},
    {"layout", 'l', "FILE", "v3: how words lie in the buffers"},
    {"config", 'c', "FILE", "the array and its buffers: a .cfg file"},
    {"log-dir", 'p', "DIR", "report files go to DIR/RUN_NAME"},
    {"input", 'i', "conv|gemm", "kind of the layers", .fallback = "conv"},
    {"save-trace", 's', "Y|N", "v3: accepted, ignored, as SCALE-Sim does"},
    {"arch_config", 0, "FILE", "v1: the configuration"},
    {"network", 0, "FILE", "v1: the layers"},
    {"compat", 0, "v1|v2|v3", "which SCALE-Sim; default: as flags and configuration say"},
    {0},
};

/* Defaults of the three; v2 starts in a folder of its own. */
static const struct {
    const char *name, *config, *topology, *base;
} generations[] = {
    {"v1", "configs/scale.cfg", "topologies/conv_nets/alexnet.csv", "outputs"},
    {"v2", "../configs/scale.cfg", "../topologies/conv_nets/test.csv", "../test_runs"},
    {"v3", "configs/scale.cfg", "topologies/conv_nets/test.csv", "results"},
};

typedef struct old_run {
    const cli_context *c;
    int generation; /* 1 to 3 */
    const char *config_path, *topology, *layout;
    orr_scalesim_config config;
    orr_scalesim_network *net;
    orr_scalesim *r;
} old_run;

static const char *first_given(const cli_context *c,
                               const char *name,
                               const char *old,
                               const char *otherwise)
{
    return cli_given(c, name)  ? cli_text(c, name)
           : cli_given(c, old) ? cli_text(c, old)
                               : otherwise;
}

/* ---- what it reads ---- */

static int named_generation(const char *name)
{
    for (int i = 0; name && i < 3; i++)
        if (strcmp(generations[i].name, name) == 0)
            return i + 1;
    return 0;
}

static orr_code read_inputs(old_run *o, const orr_rules_systolic **rules, orr_error *err)
{
    const cli_context *c = o->c;
    const bool has_v1_flags = cli_given(c, "arch_config") || cli_given(c, "network");
    int known = named_generation(cli_text(c, "compat"));
    if (!known && has_v1_flags)
        known = 1;
    o->config_path =
        first_given(c, "config", "arch_config", generations[known ? known - 1 : 2].config);
    orr_code code = orr_scalesim_read_config(o->config_path, &o->config, err);
    if (code)
        return code;
    o->generation = known ? known : o->config.generation;
    o->topology = first_given(c, "topology", "network", generations[o->generation - 1].topology);
    o->layout = cli_given(c, "layout") ? cli_text(c, "layout") : "./layouts/conv_nets/test.csv";
    const orr_systolic_array *a = &o->config.array;
    if (o->generation == 3 && (a->ifmap_banks.has_layout || a->filter_banks.has_layout))
        code = orr_scalesim_read_layout(o->layout, &o->config.array.layout, err);
    if (!code)
        code = cli_scalesim_rules(generations[o->generation - 1].name, rules, err);
    const orr_scalesim_read how = {
        .rules = *rules,
        .form = strcmp(cli_text(c, "input"), "gemm") == 0 ? ORR_SCALESIM_GEMM : ORR_SCALESIM_CONV};
    return code ? code : orr_scalesim_read_network(o->topology, &how, &o->net, err);
}

/* ---- what it prints ---- */

static void rule(void)
{
    puts("====================================================");
}

static const char *flow_name(const old_run *o)
{
    static const char *const flows[] = {"Output", "Weight", "Input"};
    return flows[o->config.array.dataflow];
}

static void print_head(const old_run *o)
{
    const orr_systolic_array *a = &o->config.array;
    const char *unit = o->generation == 1 ? "" : " (kB)";
    if (o->generation == 1)
        printf("Using Architechture from  %s\n", o->config_path);
    rule();
    puts("******************* SCALE SIM **********************");
    rule();
    printf("Array Size: \t%" PRIu64 "x%" PRIu64 "\n", a->rows, a->columns);
    printf("SRAM IFMAP%s: \t%" PRIu64 "\n", unit, a->ifmap_words / 1024);
    printf("SRAM Filter%s: \t%" PRIu64 "\n", unit, a->filter_words / 1024);
    printf("SRAM OFMAP%s: \t%" PRIu64 "\n", unit, a->ofmap_words / 1024);
    if (o->generation == 1)
        printf("CSV file path: \t%s\n", o->topology);
    printf("Dataflow: \t%s Stationary\n", flow_name(o));
    if (o->generation == 2)
        printf("CSV file path: \t%s\n", o->topology);
    if (o->generation == 3)
        printf("topology file path: \t%s\nlayout file path: \t%s\n", o->topology, o->layout);
    if (o->generation > 1 && o->config.interface == ORR_INTERFACE_USER)
        printf("Bandwidth: \t%.0f\nWorking in USE USER BANDWIDTH mode.\n", a->bandwidth);
    else if (o->generation > 1)
        puts("Working in ESTIMATE BANDWIDTH mode.");
    rule();
}

static void print_double(const char *name, double v, const char *unit)
{
    orr_buf text = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &text, NULL);
    orr_json_double(&w, v);
    printf("%s : \t%.*s%s\n", name, (int)text.len, (const char *)text.ptr, unit);
    orr_buf_fini(&text);
}

static void print_v1_layer(const old_run *o, size_t i)
{
    const orr_systolic_result *x = orr_scalesim_result(o->r, i);
    const orr_str name = orr_scalesim_network_at(o->net, i)->name;
    printf("\nCommencing run for %.*s\nGenerating traces and bw numbers\n", (int)name.len,
           name.ptr);
    print_double("Average utilization", x->utilisation, " %");
    printf("Cycles for compute  : \t%" PRIu64 " cycles\n", x->cycles);
    print_double("DRAM IFMAP Read BW ", x->dram[ORR_OPERAND_IFMAP].average, " Bytes/cycle");
    print_double("DRAM Filter Read BW", x->dram[ORR_OPERAND_FILTER].average, " Bytes/cycle");
    print_double("DRAM OFMAP Write BW", x->dram[ORR_OPERAND_OFMAP].average, " Bytes/cycle");
}

static void print_averages(const orr_systolic_traffic *t, const char *place, double metadata)
{
    static const char *const names[] = {"IFMAP", "Filter", "OFMAP"};
    for (int k = 0; k < ORR_OPERANDS; k++) {
        printf("Average %s %s BW: %.3f words/cycle\n", names[k], place, t[k].average);
        if (k == ORR_OPERAND_FILTER && metadata >= 0)
            printf("Average Filter Metadata %s BW: %.3f words/cycle\n", place, metadata);
    }
}

static void print_layer(const old_run *o, size_t i)
{
    const orr_systolic_result *x = orr_scalesim_result(o->r, i);
    const int64_t first = x->dram[ORR_OPERAND_IFMAP].first < x->dram[ORR_OPERAND_FILTER].first
                              ? x->dram[ORR_OPERAND_IFMAP].first
                              : x->dram[ORR_OPERAND_FILTER].first;
    const bool is_sparse = o->config.array.sparsity.is_on;
    printf("\nRunning Layer %zu\n", i);
    if (o->generation == 3)
        printf("Total cycles: %" PRId64 "\n", x->dram[ORR_OPERAND_OFMAP].last - first);
    printf("Compute cycles: %" PRIu64 "\nStall cycles: %" PRIu64 "\n", x->cycles, x->stalls);
    printf("Overall utilization: %.2f%%\nMapping efficiency: %.2f%%\n", x->utilisation, x->mapping);
    if (o->generation == 3)
        print_averages(x->sram, "SRAM", is_sparse ? x->filter_metadata / (double)x->cycles : -1);
    print_averages(x->dram, "DRAM", -1);
    if (o->generation == 3)
        puts("Saving traces: Done!");
}

static void print_all(const old_run *o)
{
    const size_t layers = orr_scalesim_network_count(o->net);
    const orr_systolic_array *a = &o->config.array;
    print_head(o);
    for (size_t i = 0; i < layers && o->generation == 3; i++) {
        if (a->ifmap_banks.has_layout)
            puts("self.using_ifmap_custom_layout -- True");
        if (a->filter_banks.has_layout)
            puts("self.using_filter_custom_layout -- True");
    }
    for (size_t i = 0; i < layers; i++)
        o->generation == 1 ? print_v1_layer(o, i) : print_layer(o, i);
    puts("************ SCALE SIM Run Complete ****************");
}

/* ---- the program ---- */

static orr_code write_reports(const old_run *o, orr_error *err)
{
    const char *base = cli_given(o->c, "log-dir") ? cli_text(o->c, "log-dir")
                                                  : generations[o->generation - 1].base;
    char folder[4096];
    orr_code code = cli_scalesim_folder(base, &o->config, o->net, folder, sizeof folder, err);
    if (!code)
        code = orr_scalesim_write(o->r, folder, err);
    if (!code && o->generation != 2) /* scale.py of v2 writes none */
        code = cli_scalesim_traces(o->r, o->generation, folder, err);
    return code;
}

static orr_code run_scalesim(cli_context *c, orr_error *err)
{
    old_run o = {.c = c};
    orr_scalesim_options opt = {.program = "orrery " ORR_VERSION};
    orr_code code = read_inputs(&o, &opt.rules, err);
    opt.wants_traces = o.generation != 2;
    if (!code)
        code = orr_scalesim_run(&o.config, o.net, &opt, &o.r, err);
    if (!code)
        code = write_reports(&o, err);
    if (!code)
        print_all(&o);
    orr_scalesim_destroy(o.r);
    orr_scalesim_network_free(o.net);
    return code;
}

const cli_command cli_old_scalesim = {
    .name = "scale.py",
    .summary = "cost of layers on a systolic array: SCALE-Sim v1, v2 or v3",
    .now = "orrery scalesim --compat v3",
    .options = options,
    .one_dash = true,
    .run = run_scalesim,
};
