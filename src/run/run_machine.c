/* SPDX-License-Identifier: Apache-2.0 */
/* run_machine.c - a machine as network and system of a run, and as the files that say the same.
 *
 * Files and structs that the caller gives override what the machine says, each as a whole.  The job
 * takes as many nodes as it has ranks for.  Collectives are the plain ones, so that a network model
 * that knows how NCCL runs them may; on a machine without NCCL, and in files, they are rings.
 *
 * Only what the caller left open is filled in, so a machine and a file of one's own go together. */
#include "engine.h"
#include "models/collective/nccl/nccl_model.h"

#include "base/io/output.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/hardware.h>

#include <stdio.h>
#include <string.h>

enum { CHUNKS = 4, ALL_CHUNKS = 1 << 20, SPINES = 4, PATH_ROOM = 4096 };

/* ---- the system ---- */

static double peak_flops(const orr_machine *m)
{
    const orr_chip *chip = orr_chip_find(m->chip);
    const orr_hardware *hw = orr_hardware_find(m->chip);
    if (m->peak_tflops > 0)
        return m->peak_tflops * 1e12;
    if (chip)
        return chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
    return hw ? orr_hardware_peak(hw) : 0;
}

static orr_Bps memory_rate(const orr_machine *m)
{
    const orr_chip *chip = orr_chip_find(m->chip);
    const orr_hardware *hw = orr_hardware_find(m->chip);
    if (m->memory_GBps > 0)
        return (orr_Bps)(m->memory_GBps * 1e9);
    if (chip)
        return (orr_Bps)(chip->memory_GBps * 1e9);
    return hw ? hw->memory_bandwidth : 0;
}

static void take_rings(orr_system *s, uint32_t dims)
{
    for (uint32_t k = 0; k < dims; k++) {
        s->all_reduce[k] = s->all_gather[k] = s->reduce_scatter[k] = "ring";
        s->all_to_all[k] = "direct";
    }
    /* Chunks come to the next dimension in another order on each rank.  One that had to wait there
     * for a place that another one has, whose peers are elsewhere, would wait for ever. */
    s->active_chunks = ALL_CHUNKS;
}

orr_code orr_machine_system(const orr_machine *m, orr_system *out, orr_error *err)
{
    orr_net_config dims;
    orr_system s = {.size = sizeof s,
                    .is_bandwidth_aware = true,
                    .chunks = CHUNKS,
                    .memory_bandwidth = memory_rate(m),
                    .peak_flops = peak_flops(m),
                    .has_roofline = true,
                    /* Nodes with a recorded duration and nothing else keep it: a machine has no
                     * better answer. */
                    .replays_measured = true,
                    .overlap_cost = m->overlap_cost,
                    .message_overlap_cost = m->message_overlap_cost};
    const orr_code code = orr_machine_dims(m, &dims, err);
    if (code)
        return code;
    if (!(s.peak_flops > 0) || s.memory_bandwidth == 0)
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "machine %s: unknown chip '%s'; give peak_tflops and memory_bandwidth in the machine "
            "file",
            m->name, m->chip);
    /* Otherwise no algorithm is named, and the network may run collectives as NCCL does. */
    if (strcmp(m->collectives, "none") == 0)
        take_rings(&s, dims.dims);
    *out = s;
    return ORR_OK;
}

/* Measured kernels, where the chip has any and the caller does not want data-sheet peaks. */
static void take_chip(orr_run *r)
{
    orr_run_config *c = &r->config;
    if (!c->hardware && !c->is_ideal && orr_chip_find(r->machine.chip))
        c->hardware = r->machine.chip;
    if (!c->software && c->hardware && r->machine.software[0])
        c->software = r->machine.software;
}

orr_code run_take_machine(orr_run *r, uint32_t ranks, orr_error *err)
{
    orr_run_config *c = &r->config;
    orr_code code = orr_machine_for(c->machine, ranks, &r->machine, err);
    if (!code)
        code = orr_machine_dims(&r->machine, &r->plain, err);
    if (!code)
        code = nccl_custom_open(r->machine.collectives, &r->nccl_table, err);
    if (!code && !c->system && !c->own_system) {
        code = orr_machine_system(&r->machine, &r->system, err);
        c->own_system = &r->system;
        if (c->is_ideal)
            r->system.overlap_cost = r->system.message_overlap_cost = 0;
        take_chip(r);
    }
    if (!c->topology && !c->dims)
        c->dims = &r->plain;
    return code ? orr_because(err, code, "--machine %s", c->machine) : ORR_OK;
}

/* ---- the same as files ---- */

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
    /* What hosts below a leaf send, which its uplinks carry divided by the oversubscription. */
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

/* Shapes of topologies know switches in nodes, and tori; no meshes, no third tier. */
static bool put_links(orr_buf *b, const orr_machine *m, const orr_net_config *c)
{
    const bool is_tree = m->fabric == ORR_MACHINE_FABRIC_SWITCH ||
                         m->fabric == ORR_MACHINE_FABRIC_RAILS ||
                         m->fabric == ORR_MACHINE_FABRIC_LEAF_SPINE;
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS && c->dims > 0 && c->npus[0] > 1)
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
