/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_machine.c - orrery machine: built-in clusters: list, show, export. */
#include "command.h"

#include <orrery/lab/collectives.h>
#include <orrery/lab/machine.h>

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
    if (cli_flag(c, "json") || !cli_flag(c, "file"))
        return orr_show_machine(&m, &dims, name, cli_show_form(c), "-", err);
    print_file(name, &m);
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
        return orr_show_machine(&m, &dims, name, ORR_SHOW_JSON, "-", err);
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
        return orr_show_machines(cli_show_form(c), "-", err);
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
