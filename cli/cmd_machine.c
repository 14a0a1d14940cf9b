/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_machine.c - orrery machine: built-in clusters: list, show, export. */
#include "command.h"

#include <orrery/lab/collectives.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"file", 'f', NULL, "show: print the machine file, with the source of each figure"},
    {"output", 'o', "DIR", "export: the folder to write to", .kind = CLI_FOLDER},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"list|show|check|export", "what to do", CLI_ONCE},
    {"MACHINE", "a name, NAME:N for N nodes, or a file", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List what is built in:", "orrery machine list", 0},
    {"1,024 H100, in 128 nodes:", "orrery machine show dgx-h100:128", 0},
    {"Your own machine, from the file of another:",
     "orrery machine show dgx-h100 --file | sed 's/400Gb/800Gb/' > mine.yml", 0},
    {"", "orrery machine check mine.yml", 0},
    {"With twice the NVLink:", "orrery machine show dgx-h100:16,scale_up.bandwidth=900GB/s", 0},
    {"The same machine as files for ASTRA-sim:", "orrery machine export mine.yml:2 -o files", 0},
    {"", "orrery gen all_reduce --ranks 16 -o step.orr", 0},
    {"", "orrery run step.orr -s files/system.json -t files/network.yml", 0},
    {"The same without files:", "orrery run step.orr --machine mine.yml", 0},
    {0},
};

/* ---- for people ---- */

static char *rate(double GBps, char out[ORR_UNIT_ROOM])
{
    return orr_rate_text((orr_Bps)(GBps * 1e9 + 0.5), out);
}

static char *latency(double ns, char out[ORR_UNIT_ROOM])
{
    return orr_time_text((orr_ps)(ns * 1000 + 0.5), out);
}

static void print_list(void)
{
    printf("%-14s %7s  %-9s %-10s %-12s %-14s %s\n", "machine", "devices", "chip", "memory",
           "scale-up", "NICs per node", "note");
    for (size_t i = 0; orr_machine_at(i); i++) {
        char memory[ORR_UNIT_ROOM], up[ORR_UNIT_ROOM], nics[ORR_UNIT_ROOM];
        orr_machine m;
        if (orr_machine_find(orr_machine_at(i), &m, NULL))
            continue; /* never happens: a test reads all of them */
        snprintf(nics, sizeof nics, "%s", "-");
        if (m.nics)
            snprintf(nics, sizeof nics, "%u x %.0f Gb/s", m.nics, m.nic_GBps * 8);
        printf("%-14s %7u  %-9s %-10s %-12s %-14s %s\n", m.name, m.devices, m.chip,
               orr_bytes_text(m.memory, memory), rate(m.up_GBps, up), nics, m.note);
    }
}

static void print_network(const orr_machine *m)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    if (m->up != ORR_MACHINE_UP_NONE)
        printf("scale-up     %s, %s per device and direction, %s%s\n", orr_machine_up_name(m->up),
               rate(m->up_GBps, a), latency(m->up_latency_ns, b),
               m->up_reduces ? ", reduces in the switch" : "");
    if (m->nics)
        printf("NICs         %u per node, %s each, %s; %s per device\n", m->nics,
               rate(m->nic_GBps, a), latency(m->nic_latency_ns, b),
               rate(orr_machine_out_GBps(m), (char[ORR_UNIT_ROOM]){0}));
    printf("fabric       %s", orr_machine_fabric_name(m->fabric));
    if (m->nodes_per_leaf)
        printf(", %u nodes per leaf", m->nodes_per_leaf);
    if (m->oversubscription > 1)
        printf(", oversubscription %g", m->oversubscription);
    if (m->hop_latency_ns > 0)
        printf(", %s per switch", latency(m->hop_latency_ns, a));
    printf("%s\n", m->fabric_reduces ? ", reduces in the switch" : "");
    if (m->nics && m->nodes > 1)
        printf("             %s from node to node at most, without software\n",
               latency(orr_machine_out_latency_ns(m), a));
}

static void print_dims(const orr_net_config *c)
{
    static const char *const shapes[] = {"ring", "switch", "all pairs"};
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    printf("\n%-10s %-10s %6s %14s %12s\n", "dimension", "shape", "ranks", "rate per link",
           "latency");
    for (uint32_t k = 0; k < c->dims; k++)
        printf("%-10u %-10s %6u %14s %12s\n", k, c->is_open[k] ? "line" : shapes[c->shape[k]],
               c->npus[k], rate(c->bandwidth[k] * (1 << 30) / 1e9, a),
               latency(c->latency_ns[k], b));
}

/* Print the figures of a built-in machine that its file marks as unpublished, except for those that
 * the name overrides. */
static void print_estimates(const char *name)
{
    char bare[ORR_MACHINE_NAME], section[ORR_MACHINE_NAME] = "", key[2 * ORR_MACHINE_NAME + 8];
    size_t count = 0;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":,"), name);
    for (const char *line = orr_machine_source(bare); line && *line;) {
        const size_t length = strcspn(line, "\n"), word = strcspn(line, ":#\n");
        const char *remark = memchr(line, '#', length);
        const bool is_inside = *line == ' ';
        if (!is_inside)
            snprintf(section, sizeof section, "%.*s", (int)(word < 40 ? word : 40), line);
        if (is_inside)
            snprintf(key, sizeof key, "%s.%.*s", section, (int)(word < 42 ? word - 2 : 40),
                     line + 2);
        else
            snprintf(key, sizeof key, "%s", section);
        if (remark && remark > line &&
            memmem(remark, length - (size_t)(remark - line), "estimate", 8) && !strstr(name, key))
            printf("%s%s", count++ ? ", " : "estimates    ", key);
        line += length + (line[length] == '\n');
    }
    if (count)
        printf("; --file shows the source of each figure\n");
}

static void print_machine(const char *name, const orr_machine *m, const orr_net_config *dims)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM], c[ORR_UNIT_ROOM];
    printf("%s%s%s\n", m->name, m->note[0] ? ": " : "", m->note);
    printf("devices      %s: %s node%s of %u\n", orr_count_text(orr_machine_devices(m), a),
           orr_count_text(m->nodes, b), m->nodes == 1 ? "" : "s", m->devices);
    printf("chip         %s (%s)", m->chip, m->architecture);
    if (m->memory)
        printf(", %s", orr_bytes_text(m->memory, c));
    if (m->memory_GBps > 0)
        printf(" at %s", rate(m->memory_GBps, a));
    if (m->peak_tflops > 0)
        printf(", %g TFLOP/s in 16 bits, dense", m->peak_tflops);
    printf("\n");
    print_network(m);
    printf("collectives  %s", m->collectives);
    if (m->overlap_cost > 0)
        printf("; compute is %g %% slower during one", 100 * m->overlap_cost);
    if (m->overlap_cost_most > 0)
        printf(" (an estimate: %g to %g %%)", 100 * m->overlap_cost_least,
               100 * m->overlap_cost_most);
    if (m->message_overlap_cost > 0)
        printf(", during a message %g %%", 100 * m->message_overlap_cost);
    printf("\n");
    if (m->software[0])
        printf("software     %s\n", m->software);
    if (m->usd_per_hour > 0)
        printf("price        %g USD per device and hour\n", m->usd_per_hour);
    if (m->watts > 0)
        printf("power        %g kW per node\n", m->watts / 1000);
    print_estimates(name);
    print_dims(dims);
}

/* ---- for programs ---- */

static void put_machine(orr_json_writer *w, const orr_machine *m)
{
    orr_json_put_fields(
        w, ORR_T("name", m->name), ORR_T("note", m->note), ORR_T("chip", m->chip),
        ORR_T("architecture", m->architecture), ORR_U("nodes", m->nodes),
        ORR_U("devices_per_node", m->devices), ORR_U("devices", orr_machine_devices(m)),
        ORR_U("memory_bytes", m->memory), ORR_D("memory_GBps", m->memory_GBps),
        ORR_D("peak_tflops", m->peak_tflops), ORR_T("scale_up", orr_machine_up_name(m->up)),
        ORR_D("scale_up_GBps", m->up_GBps), ORR_D("scale_up_latency_ns", m->up_latency_ns),
        ORR_B("scale_up_reduces", m->up_reduces), ORR_U("nics_per_node", m->nics),
        ORR_D("nic_GBps", m->nic_GBps), ORR_D("nic_latency_ns", m->nic_latency_ns),
        ORR_T("fabric", orr_machine_fabric_name(m->fabric)),
        ORR_D("oversubscription", m->oversubscription), ORR_D("hop_latency_ns", m->hop_latency_ns),
        ORR_B("fabric_reduces", m->fabric_reduces), ORR_T("collectives", m->collectives),
        ORR_D("overlap_cost", m->overlap_cost), ORR_D("overlap_cost_least", m->overlap_cost_least),
        ORR_D("overlap_cost_most", m->overlap_cost_most),
        ORR_D("message_overlap_cost", m->message_overlap_cost), ORR_T("software", m->software),
        ORR_D("usd_per_hour", m->usd_per_hour), ORR_D("watts", m->watts));
}

static void print_list_json(void)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-machines");
    orr_json_put_array(w, "machines");
    for (size_t i = 0; orr_machine_at(i); i++) {
        orr_machine m;
        if (orr_machine_find(orr_machine_at(i), &m, NULL))
            continue;
        orr_json_line(w, 2);
        orr_json_begin_object(w);
        put_machine(w, &m);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void print_machine_json(const orr_machine *m, const orr_net_config *dims)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-machine");
    put_machine(w, m);
    orr_json_put_array(w, "dimensions");
    for (uint32_t k = 0; k < dims->dims; k++) {
        orr_json_put_row(w, ORR_T("shape", dims->is_open[k] ? "Line" : shapes[dims->shape[k]]),
                         ORR_U("ranks", dims->npus[k]),
                         ORR_D("bandwidth_GBps", dims->bandwidth[k] * (1 << 30) / 1e9),
                         ORR_D("latency_ns", dims->latency_ns[k]));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

/* ---- actions ---- */

static void print_file(const char *name, const orr_machine *m)
{
    char text[3000], bare[ORR_MACHINE_NAME];
    const char *source = orr_machine_source(name);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":"), name);
    if (!source && m->nodes == 1 && !strchr(name, ','))
        source = orr_machine_source(bare);
    if (source)
        fputs(source, stdout);
    else
        fwrite(text, 1, orr_machine_text(m, text, sizeof text), stdout);
}

static orr_code show(const cli_context *c, const char *name, orr_error *err)
{
    orr_machine m;
    orr_net_config dims;
    orr_code code = orr_machine_find(name, &m, err);
    if (!code)
        code = orr_machine_dims(&m, &dims, err);
    if (code)
        return code;
    if (cli_flag(c, "json"))
        print_machine_json(&m, &dims);
    else if (cli_flag(c, "file"))
        print_file(name, &m);
    else
        print_machine(name, &m, &dims);
    return ORR_OK;
}

static orr_code check(const cli_context *c, const char *name, orr_error *err)
{
    orr_machine m;
    orr_net_config dims;
    orr_system system;
    orr_code code = orr_machine_source(name) ? orr_machine_find(name, &m, err)
                                             : orr_machine_read(name, &m, err);
    if (!code)
        code = orr_machine_dims(&m, &dims, err);
    if (!code)
        code = orr_machine_system(&m, &system, err);
    orr_alone *alone = NULL;
    if (!code && strcmp(m.collectives, "none") != 0) /* and its collectives file */
        code = orr_alone_open(&m, &alone, err);
    orr_alone_close(alone);
    if (code)
        return code;
    if (cli_flag(c, "json"))
        print_machine_json(&m, &dims);
    else
        printf("%s: %u node%s of %u %s, %u devices: no errors\n", name, m.nodes,
               m.nodes == 1 ? "" : "s", m.devices, m.chip, orr_machine_devices(&m));
    return ORR_OK;
}

static orr_code export(const cli_context *c, const char *name, orr_error *err)
{
    const char *folder = cli_text(c, "output");
    struct stat links;
    char path[4200];
    orr_machine m;
    if (!folder)
        return cli_misuse(err, "export needs --output DIR");
    orr_code code = orr_machine_find(name, &m, err);
    if (!code)
        code = orr_machine_export(&m, folder, err);
    if (code)
        return code;
    snprintf(path, sizeof path, "%s/links.yml", folder);
    const bool has_links = stat(path, &links) == 0;
    if (cli_flag(c, "json")) {
        cli_json j;
        orr_json_writer *w = cli_json_open(&j, "orrery-machine-files");
        orr_json_put_fields(w, ORR_T("folder", folder), ORR_T("system", "system.json"),
                            ORR_T("network", "network.yml"), ORR_T("memory", "memory.json"),
                            ORR_T("machine", "machine.yml"),
                            ORR_T("links", has_links ? "links.yml" : NULL));
        cli_json_close(&j);
    }
    cli_note(c, "wrote %s/{system.json,network.yml,memory.json,machine.yml%s}\n", folder,
             has_links ? ",links.yml" : "");
    return ORR_OK;
}

static orr_code machine_run(cli_context *c, orr_error *err)
{
    const char *what = c->args[0], *name = c->arg_count > 1 ? c->args[1] : NULL;
    if (strcmp(what, "list") == 0) {
        if (name)
            return cli_misuse(err, "list takes no machine; try 'orrery machine show %s'", name);
        cli_flag(c, "json") ? print_list_json() : print_list();
        return ORR_OK;
    }
    if (!name)
        return cli_misuse(err, "%s needs a machine: a name from 'orrery machine list', or a file",
                          what);
    return strcmp(what, "show") == 0    ? show(c, name, err)
           : strcmp(what, "check") == 0 ? check(c, name, err)
                                        : export(c, name, err);
}

const cli_command cli_cmd_machine = {
    .name = "machine",
    .summary = "clusters by name: list, show, check a file, export for ASTRA-sim",
    .description =
        "A machine is a chip, a node of several devices and the network between nodes, in one "
        "file.  The built-in ones give the source of each figure.  --machine NAME[:N] of "
        "other commands takes the same names and files; N is the number of nodes, and "
        "NAME:N,KEY=VALUE changes figures, such as dgx-h100:16,scale_up.bandwidth=900GB/s.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-gemm(1), orrery-run(1), orrery-stage(1)",
    .run = machine_run,
};
