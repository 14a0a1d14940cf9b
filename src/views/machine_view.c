/* SPDX-License-Identifier: Apache-2.0 */
/* machine_view.c - a machine as files: those of ASTRA-sim, its own, and its links as a topology. */
#include <orrery/lab/machine.h>

#include "base/io/output.h"

#include <stdio.h>

enum { SPINES = 4, PATH_ROOM = 4096 };

static void put_algorithms(orr_buf *b, const char *key, const char *word, uint32_t dims)
{
    orr_buf_print(b, "  \"%s-implementation\": [", key);
    for (uint32_t k = 0; k < dims; k++)
        orr_buf_print(b, "%s\"%s\"", k ? ", " : "", word);
    orr_buf_print(b, "],\n");
}

static void put_system(orr_buf *b, const orr_system *s, uint32_t dims)
{
    orr_buf_print(b,
                  "{\n  \"scheduling-policy\": \"LIFO\",\n"
                  "  \"collective-optimization\": \"localBWAware\",\n"
                  "  \"endpoint-delay\": 10,\n"
                  "  \"active-chunks-per-dimension\": %u,\n"
                  "  \"preferred-dataset-splits\": %u,\n",
                  s->active_chunks ? s->active_chunks : 1, s->chunks);
    put_algorithms(b, "all-reduce", "ring", dims);
    put_algorithms(b, "all-gather", "ring", dims);
    put_algorithms(b, "reduce-scatter", "ring", dims);
    put_algorithms(b, "all-to-all", "direct", dims);
    orr_buf_print(b,
                  "  \"local-mem-bw\": %.17g,\n  \"peak-perf\": %.17g,\n"
                  "  \"roofline-enabled\": 1\n}\n",
                  (double)s->memory_bandwidth / 1e9, s->peak_flops / 1e12);
}

static void put_numbers(orr_buf *b, const char *key, const double *values, uint32_t dims)
{
    for (uint32_t k = 0; k < dims; k++)
        orr_buf_print(b, "%s%.17g", k ? ", " : key, values[k]);
    orr_buf_print(b, "]\n");
}

static void put_dims(orr_buf *b, const orr_net_config *c)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    for (uint32_t k = 0; k < c->dims; k++)
        orr_buf_print(b, "%s%s", k ? ", " : "topology: [", shapes[c->shape[k]]);
    orr_buf_print(b, "]\n");
    for (uint32_t k = 0; k < c->dims; k++)
        orr_buf_print(b, "%s%u", k ? ", " : "npus_count: [", c->npus[k]);
    orr_buf_print(b, "]\n");
    put_numbers(b, "bandwidth: [", c->bandwidth, c->dims); /* GiB/s, as ASTRA-sim has it */
    put_numbers(b, "latency: [", c->latency_ns, c->dims);
}

static void put_torus(orr_buf *b, const orr_net_config *c)
{
    orr_buf_print(b, "generate: {type: torus, size: [");
    for (uint32_t k = 0; k < c->dims; k++)
        orr_buf_print(b, "%s%u", k ? ", " : "", c->npus[k]);
    orr_buf_print(b, "], bandwidth: %.0fB/s, latency: %.0fps}\ndims: [",
                  c->bandwidth[0] * (1 << 30), c->latency_ns[0] * 1000);
    for (uint32_t k = 0; k < c->dims; k++)
        orr_buf_print(b, "%s%u", k ? ", " : "", c->npus[k]);
    orr_buf_print(b, "]\n");
}

/* Nodes with a switch, on rails or on leaves. */
static void put_servers(orr_buf *b, const orr_machine *m)
{
    const bool is_rails = m->fabric == ORR_MACHINE_FABRIC_RAILS;
    const uint32_t leaf =
        m->nodes_per_leaf && m->nodes_per_leaf < m->nodes ? m->nodes_per_leaf : m->nodes;
    const uint32_t spines = leaf < m->nodes ? SPINES : 0;
    /* What hosts below a leaf send; its uplinks carry that divided by the oversubscription. */
    const double down = orr_machine_out_GBps(m) * leaf * (is_rails ? 1 : m->devices);
    orr_buf_print(b,
                  "generate: {type: %s, domains: %u, ranks_per_domain: %u, domains_per_leaf: %u, "
                  "spines: %u,\n  nvlink_bandwidth: %.0fB/s, nvlink_latency: %.0fps, "
                  "bandwidth: %.0fB/s, latency: %.0fps",
                  is_rails ? "rails" : "servers", m->nodes, m->devices, leaf, spines,
                  m->up_GBps * 1e9, m->up_latency_ns * 500, orr_machine_out_GBps(m) * 1e9,
                  (m->nic_latency_ns + m->hop_latency_ns) * 500);
    if (spines)
        orr_buf_print(b, ",\n  spine_bandwidth: %.0fB/s, spine_latency: %.0fps",
                      down / spines / m->oversubscription * 1e9, m->hop_latency_ns * 1000);
    orr_buf_print(b, "}\ndims: [%u, %u]\n", m->devices, m->nodes);
}

/* Topology files have nodes with a switch, and tori; no meshes, no third tier. */
static bool put_links(orr_buf *b, const orr_machine *m, const orr_net_config *c)
{
    const bool is_tree = m->fabric == ORR_MACHINE_FABRIC_SWITCH ||
                         m->fabric == ORR_MACHINE_FABRIC_RAILS ||
                         m->fabric == ORR_MACHINE_FABRIC_LEAF_SPINE;
    bool is_closed = true; /* tori of topology files wrap along all axes */
    for (uint32_t k = 0; k < c->dims; k++)
        is_closed = is_closed && (!c->is_open[k] || c->npus[k] == 2);
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS && is_closed && c->dims > 0 && c->npus[0] > 1)
        put_torus(b, c);
    else if (m->up == ORR_MACHINE_UP_SWITCH && is_tree && m->nodes > 1 && m->devices > 1)
        put_servers(b, m);
    return b->len > 0;
}

static orr_code save(orr_buf *b, const char *folder, const char *name, orr_error *err)
{
    char path[PATH_ROOM];
    orr_output *out;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return orr_fail(err, ORR_EUSAGE, NULL, "%.60s...: the path is too long", folder);
    if (b->failed)
        return orr_no_memory(err);
    const orr_code code = orr_output_open_deep(path, &out, err);
    if (code)
        return code;
    orr_output_drain(out, b);
    return orr_output_commit(&out, err);
}

static orr_code save_files(const orr_machine *m,
                           const orr_system *s,
                           const orr_net_config *c,
                           const char *folder,
                           orr_buf *b,
                           orr_error *err)
{
    char text[3000];
    put_system(b, s, c->dims);
    orr_code code = save(b, folder, "system.json", err);
    put_dims(b, c);
    if (!code)
        code = save(b, folder, "network.yml", err);
    orr_buf_print(b, "{\n  \"memory-type\": \"NO_MEMORY_EXPANSION\"\n}\n");
    if (!code)
        code = save(b, folder, "memory.json", err);
    orr_buf_add(b, text, orr_machine_text(m, text, sizeof text));
    if (!code)
        code = save(b, folder, "machine.yml", err);
    if (!code && put_links(b, m, c))
        code = save(b, folder, "links.yml", err);
    return code;
}

orr_code orr_machine_export(const orr_machine *m, const char *folder, orr_error *err)
{
    orr_buf b = {0};
    orr_system s;
    orr_net_config c;
    orr_code code = orr_machine_system(m, &s, err);
    if (!code)
        code = orr_machine_dims(m, &c, err);
    if (!code)
        code = save_files(m, &s, &c, folder, &b, err);
    orr_buf_fini(&b);
    return code;
}
