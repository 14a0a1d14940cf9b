/* SPDX-License-Identifier: Apache-2.0 */
/* gen_topology.c - orrery gen topology: write networks of well-known shapes, and convert between
 * file formats.
 *
 * The shapes are those of the key "generate" of a topology file (docs/format/topology.md); the
 * options here are its keys under the usual names.  They are assembled into such a file, which the
 * library reads. */
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/topology.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <string.h>

enum { TEXT_ROOM = 2000, NAME_COLUMN = 12 };

typedef enum shape_bit {
    SWITCH = 1,
    LEAF_SPINE = 2,
    FAT_TREE = 4,
    TORUS = 8,
    DRAGONFLY = 16,
    SERVERS = 32,
    RAIL = 64,
    ALL = 127
} shape_bit;

static const struct {
    const char *name, *type, *help;
    unsigned bit;
} shapes[] = {
    {"switch", "switch", "all hosts on one switch", SWITCH},
    {"leaf-spine", "leaf-spine", "two tiers: every leaf connected to every spine", LEAF_SPINE},
    {"fat-tree", "fat-tree", "three tiers of switches with k ports", FAT_TREE},
    {"torus", "torus", "rings in every dimension, no switches", TORUS},
    {"dragonfly", "dragonfly", "groups of routers connected by global links", DRAGONFLY},
    {"servers", "servers", "servers with NVLink inside, leaves and spines between them", SERVERS},
    {"rail", "rails", "servers with NVLink inside, the n-th GPUs of all on rail n", RAIL},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Options that become keys; `needed`: shapes that require it, `taken`: shapes that use it. */
static const struct {
    const char *option, *key;
    unsigned taken, needed;
} knobs[] = {
    {"hosts", "ranks", SWITCH | LEAF_SPINE | FAT_TREE, SWITCH | LEAF_SPINE},
    {"hosts-per-leaf", "ranks_per_leaf", LEAF_SPINE, LEAF_SPINE},
    {"links-per-spine", "links_per_spine", LEAF_SPINE, 0},
    {"oversubscription", "oversubscription", LEAF_SPINE | SERVERS, 0},
    {"k", "k", FAT_TREE, FAT_TREE},
    {"size", "size", TORUS, TORUS},
    {"routers", "routers", DRAGONFLY, DRAGONFLY},
    {"hosts-per-router", "ranks_per_router", DRAGONFLY, DRAGONFLY},
    {"global-links", "global_links", DRAGONFLY, 0},
    {"groups", "groups", DRAGONFLY, 0},
    {"servers", "domains", SERVERS | RAIL, SERVERS | RAIL},
    {"gpus", "ranks_per_domain", SERVERS | RAIL, SERVERS | RAIL},
    {"servers-per-leaf", "domains_per_leaf", SERVERS | RAIL, 0},
    {"rails", "rails", RAIL, 0},
    {"spines", "spines", LEAF_SPINE | SERVERS | RAIL, LEAF_SPINE},
    {"cross-rail", "cross_rail", RAIL, 0},
    {"nic", "bandwidth", ALL, ALL},
    {"latency", "latency", ALL, 0},
    {"nvlink", "nvlink_bandwidth", SERVERS | RAIL, 0},
    {"nvlink-latency", "nvlink_latency", SERVERS | RAIL, 0},
    {"spine-rate", "spine_bandwidth", LEAF_SPINE | SERVERS | RAIL, 0},
    {"spine-latency", "spine_latency", LEAF_SPINE | SERVERS | RAIL, 0},
    {"local-rate", "local_bandwidth", DRAGONFLY, 0},
    {"local-latency", "local_latency", DRAGONFLY, 0},
    {"global-rate", "global_bandwidth", DRAGONFLY, 0},
    {"global-latency", "global_latency", DRAGONFLY, 0},
};

enum { KNOBS = sizeof knobs / sizeof *knobs };

static const cli_option options[] = {
    {"output", 'o', "FILE", "output file; - is standard output", .kind = CLI_OUTPUT},
    {"format", 'f', "auto|ns3|simai|yaml|topo",
     "file format; auto: by the ending (.yml, .topo), else simai with NVLink, ns3 without",
     .fallback = "auto"},
    {"from", 0, "FILE", "convert this topology file instead of generating a shape"},
    {"hosts", 'n', "N", "number of hosts", CLI_COUNT, 2, 1 << 24},
    {"hosts-per-leaf", 0, "N", "hosts per leaf", CLI_COUNT, 1, 1 << 24},
    {"spines", 0, "N", "number of spines, each connected to every leaf", CLI_COUNT, 0, 4096},
    {"links-per-spine", 0, "N", "cables between each leaf and spine", CLI_COUNT, 1, 4096},
    {"oversubscription", 0, "R", "ratio of downlink to uplink bandwidth of a leaf"},
    {"k", 0, "N", "ports per switch of a fat tree (even)", CLI_COUNT, 2, 512},
    {"size", 0, "AxBxC", "hosts per dimension of a torus, innermost first"},
    {"routers", 0, "A", "routers per group", CLI_COUNT, 1, 4096},
    {"hosts-per-router", 0, "P", "hosts per router", CLI_COUNT, 1, 4096},
    {"global-links", 0, "H", "global links per router; default: 1", CLI_COUNT, 1, 4096},
    {"groups", 0, "G", "number of groups; default: A * H + 1", CLI_COUNT, 1, 1 << 24},
    {"servers", 0, "N", "servers", CLI_COUNT, 1, 1 << 24},
    {"gpus", 0, "N", "GPUs per server, each with a NIC; a host is a GPU", CLI_COUNT, 1, 4096},
    {"rails", 0, "N", "number of rails; default: one per GPU of a server", CLI_COUNT, 1, 4096},
    {"servers-per-leaf", 0, "N", "servers per leaf, or per switch of a rail; default: all",
     CLI_COUNT, 1, 1 << 24},
    {"cross-rail", 0, "nvlink|spine", "path between GPUs on different rails; default: nvlink"},
    {"nic", 0, "RATE", "bandwidth of host links, and of all links without their own, e.g. 400Gbps"},
    {"latency", 0, "TIME", "latency of the same links", .fallback = "500ns"},
    {"nvlink", 0, "RATE", "bandwidth of a GPU's NVLink, one direction, e.g. 450GB/s"},
    {"nvlink-latency", 0, "TIME", "latency of the same links", .fallback = "25ns"},
    {"spine-rate", 0, "RATE", "bandwidth of links to spines"},
    {"spine-latency", 0, "TIME", "latency of the same links"},
    {"local-rate", 0, "RATE", "bandwidth of links inside a group"},
    {"local-latency", 0, "TIME", "latency of the same links"},
    {"global-rate", 0, "RATE", "bandwidth of links between groups"},
    {"global-latency", 0, "TIME", "latency of the same links"},
    {"gpu-type", 0, "NAME", "GPU type in SimAI's file", .fallback = "H100"},
    {"list", 'l', NULL, "list the shapes, or the options SHAPE uses"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"SHAPE", "a name from --list", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List the shapes:", "orrery gen topology --list", 0},
    {"32 servers of 8 GPUs on 8 rails, in SimAI's form:",
     "orrery gen topology rail --servers 32 --gpus 8 --rails 8 --spines 8 --nvlink 450GB/s --nic "
     "400Gbps --latency 500ns -o topo.txt",
     0},
    {"A fat tree of 1,024 hosts for htsim:",
     "orrery gen topology fat-tree --k 16 --nic 400Gbps --latency 1us -o tree.topo", 0},
    {"Two tiers, 4 to 1, for the ns-3 back end:",
     "orrery gen topology leaf-spine --hosts 64 --hosts-per-leaf 16 --spines 4 --oversubscription 4 "
     "--nic 100Gbps --latency 1us -o clos.txt",
     0},
    {"The same network, for htsim:", "orrery gen topology --from clos.txt -o clos.topo", 0},
    {0},
};

const char *cli_shape_at(size_t i)
{
    return i < SHAPES ? shapes[i].name : NULL;
}

/* ---- options to a description ---- */

static orr_code find_shape(const char *name, size_t *out, orr_error *err)
{
    for (size_t i = 0; i < SHAPES; i++) {
        if (strcmp(shapes[i].name, name) == 0 || strcmp(shapes[i].type, name) == 0) {
            *out = i;
            return ORR_OK;
        }
    }
    return cli_misuse(err, "unknown shape '%s'; see 'orrery gen topology --list'", name);
}

/* A value goes into a YAML file as it is, so it must be a plain word; "8x8" and "1us,2us" are
 * lists. */
static orr_code add_value(char *text, const char *option, const char *value, orr_error *err)
{
    const bool is_list = strcmp(option, "size") == 0 || strchr(value, ',');
    size_t n = strlen(text);
    if (*value == 0 || strlen(value) > 200 ||
        strspn(value, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ./,-+") !=
            strlen(value))
        return cli_misuse(err, "--%s: '%s' is not a number, a rate or a time", option, value);
    n += (size_t)snprintf(text + n, TEXT_ROOM - n, "%s", is_list ? "[" : "");
    for (; *value && n + 4 < TEXT_ROOM; value++)
        n += (size_t)snprintf(text + n, TEXT_ROOM - n,
                              is_list && strchr("x,", *value) ? ", " : "%c", *value);
    snprintf(text + n, TEXT_ROOM - n, "%s", is_list ? "]" : "");
    return ORR_OK;
}

static orr_code describe(const cli_context *c, size_t shape, char text[TEXT_ROOM], orr_error *err)
{
    orr_code code = ORR_OK;
    snprintf(text, TEXT_ROOM, "generate: {type: %s", shapes[shape].type);
    for (size_t i = 0; i < KNOBS && !code; i++) {
        const char *option = knobs[i].option;
        const size_t n = strlen(text);
        const bool is_given = cli_given(c, option);
        if (is_given && !(knobs[i].taken & shapes[shape].bit))
            return cli_misuse(
                err, "%s does not use --%s; 'orrery gen topology --list %s' lists its options",
                shapes[shape].name, option, shapes[shape].name);
        if (!is_given && knobs[i].needed & shapes[shape].bit)
            return cli_misuse(err, "%s needs --%s", shapes[shape].name, option);
        if (!(knobs[i].taken & shapes[shape].bit) || !cli_text(c, option))
            continue;
        snprintf(text + n, TEXT_ROOM - n, ", %s: ", knobs[i].key);
        code = add_value(text, option, cli_text(c, option), err);
    }
    const size_t n = strlen(text);
    snprintf(text + n, TEXT_ROOM - n, "}\n");
    return code;
}

/* ---- the list ---- */

static void list_one(size_t shape)
{
    printf("%s\n  %s\n", shapes[shape].name, shapes[shape].help);
    for (size_t i = 0; i < KNOBS; i++) {
        if (knobs[i].taken & shapes[shape].bit)
            printf("  --%s%s\n", knobs[i].option,
                   knobs[i].needed & shapes[shape].bit ? " (needed)" : "");
    }
}

static void put_shape(orr_json_writer *w, size_t shape)
{
    orr_json_line(w, 2);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_T("name", shapes[shape].name), ORR_T("help", shapes[shape].help));
    orr_json_put_array(w, "options");
    for (size_t i = 0; i < KNOBS; i++)
        if (knobs[i].taken & shapes[shape].bit)
            orr_json_text(w, knobs[i].option);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void list_json(size_t only)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-topology-shapes");
    orr_json_put_array(w, "shapes");
    for (size_t i = 0; i < SHAPES; i++)
        if (only == SHAPES || only == i)
            put_shape(w, i);
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void list(size_t only)
{
    for (size_t i = 0; i < SHAPES; i++) {
        if (only == i)
            list_one(i);
        else if (only == SHAPES)
            printf("%-*s %s\n", NAME_COLUMN, shapes[i].name, shapes[i].help);
    }
}

/* ---- files ---- */

static orr_topology_format format_of(const cli_context *c,
                                     const char *to,
                                     const orr_topology_figures *g)
{
    static const char *const names[] = {"ns3", "simai", "yaml", "topo"};
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(cli_text(c, "format"), names[i]) == 0)
            return (orr_topology_format)i;
    }
    if (orr_text_ends(to, ".yml") || orr_text_ends(to, ".yaml") || orr_text_ends(to, ".json"))
        return ORR_TOPOLOGY_YAML;
    if (orr_text_ends(to, ".topo"))
        return ORR_TOPOLOGY_HTSIM;
    return g->nvswitches ? ORR_TOPOLOGY_SIMAI : ORR_TOPOLOGY_NS3;
}

static const char *format_name(orr_topology_format format)
{
    static const char *const names[] = {"ns3", "simai", "yaml", "topo"};
    return names[format];
}

/* Note what the format cannot express. */
static void remark(const cli_context *c, const orr_topology_figures *g, orr_topology_format format)
{
    if (g->reached + 1 < g->ranks)
        cli_note(c, "host 0 reaches %" PRIu64 " of %" PRIu64 " others\n", g->reached, g->ranks - 1);
    if (format == ORR_TOPOLOGY_NS3 && g->nvswitches)
        cli_note(c,
                 "this format cannot express that NVLink is preferred to the NIC; simai's can\n");
    else if (format == ORR_TOPOLOGY_NS3 && g->has_costs)
        cli_note(c, "this format has no link costs\n");
    if (format != ORR_TOPOLOGY_YAML && g->ranks_forward && g->nvswitches)
        cli_note(c, "in this format, hosts forward nothing if another route exists\n");
}

static void report(const cli_context *c,
                   const char *to,
                   const orr_topology_figures *g,
                   orr_topology_format format)
{
    char latency[ORR_UNIT_ROOM];
    orr_time_text((orr_ps)(g->most_latency_ns * 1000), latency);
    if (!cli_flag(c, "json")) {
        cli_note(c,
                 "%s: %s, %" PRIu64 " host%s, %" PRIu64 " switch%s, %" PRIu64
                 " cable%s, at most %" PRIu64 " hop%s and %s from host 0\n",
                 to, format_name(format), g->ranks, orr__plural(g->ranks), g->switches,
                 g->switches == 1 ? "" : "es", g->links / 2, orr__plural(g->links / 2),
                 g->most_hops, orr__plural(g->most_hops), latency);
        return;
    }
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-gen-topology");
    orr_json_put_fields(
        w, ORR_T("output", to), ORR_T("kind", format_name(format)), ORR_U("hosts", g->ranks),
        ORR_U("switches", g->switches), ORR_U("nvswitches", g->nvswitches),
        ORR_U("cables", g->links / 2), ORR_U("most_ports", g->most_ports),
        ORR_U("reached_from_host_0", g->reached), ORR_U("most_hops", g->most_hops),
        ORR_F("mean_hops", "%.6g", g->reached ? (double)g->hops / (double)g->reached : 0),
        ORR_F("most_latency_ns", "%.12g", g->most_latency_ns));
    cli_json_close(&j);
}

static orr_code make(const cli_context *c, const orr_topology *t, orr_error *err)
{
    const char *to = cli_text(c, "output");
    orr_topology_figures g;
    orr_code code = orr_topology_measure(t, &g, err);
    if (code)
        return code;
    const orr_topology_format format = format_of(c, to, &g);
    if ((code = orr_topology_write(t, format, cli_text(c, "gpu-type"), to, err)))
        return code;
    remark(c, &g, format);
    if (strcmp(to, "-") != 0)
        report(c, to, &g, format);
    return ORR_OK;
}

static orr_code check_use(const cli_context *c, bool has_shape, orr_error *err)
{
    const char *gpu = cli_text(c, "gpu-type");
    if (has_shape == cli_given(c, "from"))
        return cli_misuse(err, has_shape
                                   ? "either SHAPE or --from FILE, not both"
                                   : "missing argument: SHAPE; see 'orrery gen topology --list'");
    if (!cli_given(c, "output"))
        return cli_misuse(err, "missing option: --output FILE");
    if (cli_flag(c, "json") && strcmp(cli_text(c, "output"), "-") == 0)
        return cli_misuse(err, "--json and -o - both write to standard output");
    if (*gpu == 0 || strpbrk(gpu, " \t\r\n"))
        return cli_misuse(err, "--gpu-type: expected one word");
    for (size_t i = 0; i < KNOBS && !has_shape; i++) {
        if (cli_given(c, knobs[i].option))
            return cli_misuse(err, "--%s has no effect with --from", knobs[i].option);
    }
    return ORR_OK;
}

static orr_code gen_topology_run(cli_context *c, orr_error *err)
{
    char text[TEXT_ROOM];
    size_t shape = SHAPES;
    orr_topology *t = NULL;
    orr_code code = c->arg_count ? find_shape(c->args[0], &shape, err) : ORR_OK;
    if (code)
        return code;
    if (cli_flag(c, "list")) {
        cli_flag(c, "json") ? list_json(shape) : list(shape);
        return ORR_OK;
    }
    code = check_use(c, shape != SHAPES, err);
    if (!code && shape != SHAPES)
        code = describe(c, shape, text, err);
    if (code)
        return code;
    if (shape == SHAPES)
        code = orr_topology_open(cli_text(c, "from"), &t, err);
    else
        code =
            orr_topology_parse((orr_span){(const uint8_t *)text, strlen(text)}, "options", &t, err);
    if (!code)
        code = make(c, t, err);
    orr_topology_destroy(t);
    return code;
}

const cli_command cli_cmd_gen_topology = {
    .name = "gen topology",
    .summary = "generate topology files: leaf-spine, fat tree, rails, dragonfly, torus",
    .description =
        "Writes a network of a well-known shape, or converts a topology file.  Formats: that of "
        "ASTRA-sim's ns-3 back end, SimAI's, htsim's .topo, and YAML.  All of them run on every network model of orrery run.\n\n"
        "Hosts are ranks.  Rates need units such as 400Gbps or 50GB/s, times such as 500ns.  Default latencies are 500 ns and, for NVLink, "
        "25 ns.  In a torus, a list of rates or times has one value per dimension.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-gen(1), orrery-run(1)",
    .run = gen_topology_run,
};
