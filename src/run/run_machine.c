/* SPDX-License-Identifier: Apache-2.0 */
/* run_machine.c - a machine as network and system of a run.
 *
 * Files and structs of the caller override the machine, each as a whole.  The job uses as many
 * nodes as its ranks need.  Collectives are left open, so that a network model may run them as NCCL
 * does; on a machine without NCCL, and in files, they are rings.
 *
 * Only what the caller left open is filled in, so a machine can be combined with custom files. */
#include "base/text/text.h"
#include "engine.h"
#include "models/collective/nccl/nccl_model.h"

#include <string.h>

enum { CHUNKS = 4, ALL_CHUNKS = 1 << 20 };

/* ---- the system ---- */

/* A word without a dot or a slash is a name. */
static bool is_file(const char *chip)
{
    return strpbrk(chip, "./") != NULL;
}

orr_code run_chip_of(const orr_machine *m, run_chip *out, orr_error *err)
{
    bool is_chip = false;
    *out = (run_chip){.chip = orr_chip_find(m->chip)};
    const orr_hardware *design = out->chip ? NULL : orr_hardware_find(m->chip);
    if (design) {
        out->design = *design;
        out->is_design = true;
    }
    if (out->chip || design || !is_file(m->chip))
        return ORR_OK;
    const orr_code code = orr_hardware_read_any(m->chip, &out->own, &out->design, &is_chip, err);
    out->chip = is_chip && !code ? &out->own : NULL;
    out->is_design = !is_chip && !code;
    return code;
}

static double peak_flops(const orr_machine *m, const run_chip *found)
{
    if (m->peak_tflops > 0)
        return m->peak_tflops * 1e12;
    if (found->chip)
        return found->chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
    return found->is_design ? orr_hardware_peak(&found->design) : 0;
}

static orr_Bps memory_rate(const orr_machine *m, const run_chip *found)
{
    if (m->memory_GBps > 0)
        return (orr_Bps)(m->memory_GBps * 1e9);
    if (found->chip)
        return (orr_Bps)(found->chip->memory_GBps * 1e9);
    return found->is_design ? found->design.memory_bandwidth : 0;
}

static void take_rings(orr_system *s, uint32_t dims)
{
    for (uint32_t k = 0; k < dims; k++) {
        s->all_reduce[k] = s->all_gather[k] = s->reduce_scatter[k] = "ring";
        s->all_to_all[k] = "direct";
    }
    /* Chunks reach the next dimension in a different order on each rank.  With a limit, one that
     * waits for a slot held by another chunk, whose peers wait elsewhere, would deadlock. */
    s->active_chunks = ALL_CHUNKS;
}

static bool is_torus(const orr_machine *m)
{
    return strcmp(m->collectives, "torus") == 0;
}

orr_code orr_machine_system(const orr_machine *m, orr_system *out, orr_error *err)
{
    orr_net_config dims;
    run_chip found;
    orr_code code = run_chip_of(m, &found, err);
    if (code)
        return code;
    orr_system s = {.size = sizeof s,
                    .is_bandwidth_aware = true,
                    .chunks = CHUNKS,
                    .memory_bandwidth = memory_rate(m, &found),
                    .peak_flops = peak_flops(m, &found),
                    .has_roofline = true,
                    /* Nodes with only a recorded duration keep it: a machine has no better
                     * answer. */
                    .replays_measured = true,
                    .overlap_cost = m->overlap_cost,
                    .message_overlap_cost = m->message_overlap_cost};
    if ((code = orr_machine_dims(m, &dims, err)))
        return code;
    if (!(s.peak_flops > 0) || s.memory_bandwidth == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        found.is_design
                            ? "machine %s: the design '%s' lacks a peak or memory_bandwidth; give "
                              "peak_tflops and memory_bandwidth in the machine file"
                            : "machine %s: unknown chip '%s'; give peak_tflops and "
                              "memory_bandwidth in the machine file",
                        m->name, m->chip);
    /* Otherwise no algorithm is set, and the network may run collectives as NCCL does. */
    if (strcmp(m->collectives, "none") == 0)
        take_rings(&s, dims.dims);
    if (is_torus(m))
        s.active_chunks = ALL_CHUNKS; /* as take_rings, wherever they run as messages */
    *out = s;
    return ORR_OK;
}

/* The chip's kernels, unless the caller wants data-sheet peaks. */
static void take_chip(orr_run *r, const run_chip *found)
{
    orr_run_config *c = &r->config;
    if (!c->hardware && !c->is_ideal && found->chip)
        c->hardware = r->machine.chip;
    if (!c->software && c->hardware && r->machine.software[0])
        c->software = r->machine.software;
}

/* How many times faster the chip's products are in the type of the traces than in 16 bits.  All
 * computation is taken to be that fast: peaks are a bound, and no time may lie below it. */
static double narrow_gain(const orr_run *r, const orr_chip *chip)
{
    const orr_set *set = r->config.set;
    int64_t bits = 0;
    if (!chip || !set || !orr_set_class_count(set) ||
        !orr_trace_has_metadata(orr_set_trace(set, 0)))
        return 1;
    orr_attrs it = orr_trace_attrs(orr_set_trace(set, 0));
    for (orr_attr a; orr_attrs_next(&it, &a);)
        if (orr_str_is(a.name, "product_bits") && !orr_attr_int(&a, &bits))
            bits = 0;
    const double wide = chip->peak_tflops[ORR_TYPE_BF16];
    const double narrow = bits == 8   ? chip->peak_tflops[ORR_TYPE_FP8]
                          : bits == 4 ? chip->peak_tflops[ORR_TYPE_NVFP4]
                                      : 0;
    return wide > 0 && narrow > 0 ? narrow / wide : 1;
}

/* Collectives of a torus are whole operations on the network fluid, along its dimensions; elsewhere
 * they are messages. */
static bool runs_on_torus(const orr_run *r)
{
    const orr_run_config *c = &r->config;
    return is_torus(&r->machine) && c->dims == &r->plain && !(c->records & ORR_RUN_SCHEDULE) &&
           !c->own_network && (!c->network || strcmp(c->network, "fluid") == 0);
}

/* The comma before the first change of a figure, KEY=VALUE; a path may hold commas, too. */
static const char *find_changes(const char *text)
{
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
        const size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_.");
        if (n && at[1 + n] == '=')
            return at;
    }
    return NULL;
}

const char *run_machine_text(const orr_run *r)
{
    const char *text = r->config.machine;
    if (!r->machine.size || !text)
        return NULL;
    const char *changes = find_changes(text);
    size_t n = changes ? (size_t)(changes - text) : strlen(text), digits = 0;
    while (digits < n && text[n - digits - 1] >= '0' && text[n - digits - 1] <= '9')
        digits++;
    if (digits && digits < n && text[n - digits - 1] == ':')
        n -= digits + 1;
    const char *name = orr_arena_print(r->arena, "%.*s", (int)n, text);
    const bool is_file = name && !orr_machine_source(name);
    return orr_arena_print(r->arena, "%s:%u%s%s%s%s", r->machine.name, r->machine.nodes,
                           changes ? changes : "", is_file ? " (" : "", is_file ? name : "",
                           is_file ? ")" : "");
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
        run_chip found = {NULL};
        code = orr_machine_system(&r->machine, &r->system, err);
        if (!code)
            code = run_chip_of(&r->machine, &found, err);
        c->own_system = &r->system;
        if (c->is_ideal) {
            r->system.overlap_cost = r->system.message_overlap_cost = 0;
            r->system.peak_flops *= narrow_gain(r, found.chip);
        }
        take_chip(r, &found);
    }
    if (!c->topology && !c->dims)
        c->dims = &r->plain;
    r->is_torus = runs_on_torus(r);
    if (!code && is_torus(&r->machine) && !r->is_torus && c->own_system == &r->system)
        take_rings(&r->system, r->plain.dims);
    return code ? orr_because(err, code, "--machine %s", c->machine) : ORR_OK;
}
