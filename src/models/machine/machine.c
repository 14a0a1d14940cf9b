/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - machines by name, and derived values: rates of a device, dimensions.
 *
 * The built-in machines are the files of built_in/, embedded as text and parsed like a user's, so
 * that there is one way from figures to values and each figure keeps its source.  Reading one takes
 * some 50 us.  Changes on the command line are parsed as a small file too. */
#include "base/text/text.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/folders.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/units.h>

#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MACHINE_NODES = 1 << 20, MACHINE_DEVICES = 1 << 16, MACHINE_ALL = 1 << 24 };

/* Refuses inconsistent values; where: of the file, or NULL. */
static orr_code check_machine(const orr_machine *m, const orr_where *where, orr_error *err);

/* Applies a file of differences to *out; other values are unchanged.  checks: the result must be
 * consistent. */
static orr_code change_machine(
    orr_span bytes, const char *label, bool checks, orr_machine *out, orr_error *err);
/* A built-in machine; name must be one. */
static orr_code find_built_in(const char *name, orr_machine *out, orr_error *err);

/* ---- Machines from YAML and to YAML (docs/format/machine.md).
 *
 * Every value has a unit or is a plain count.  Bounds catch typing mistakes and keep sums within
 * doubles and 32 bits; check_machine refuses inconsistent values.  Writing and reading back gives
 * the same values: rates are whole bytes per second, times whole picoseconds. */

#define MOST_MEMORY (1ull << 50)
#define MOST_GBPS 1e6 /* 1 PB/s */
#define MOST_NS 1e9   /* 1 s */
#define MOST_OVERSUB 1e3

static const char *const up_words[] = {"none", "switch", "mesh", "ring", "torus", NULL};
static const char *const fabric_words[] = {"none",     "switch", "rails",     "leaf-spine",
                                           "fat-tree", "torus",  "dragonfly", NULL};

const char *orr_machine_up_name(orr_machine_up kind)
{
    return up_words[kind];
}

const char *orr_machine_fabric_name(orr_machine_fabric kind)
{
    return fabric_words[kind];
}

/* ---- values ---- */

static orr_code take_u32(
    orr_yaml_value map, const char *key, uint32_t min, uint32_t max, uint32_t *out, orr_error *err)
{
    uint64_t n = *out;
    const orr_code code = orr_yaml_take_u64(map, key, min, max, &n, err);
    *out = (uint32_t)n; /* at most max */
    return code;
}

static orr_code refuse_above(double most,
                             double value,
                             const char *words,
                             orr_yaml_value map,
                             const char *key,
                             orr_error *err)
{
    orr_yaml_value v;
    return value > most && orr_yaml_find(map, key, &v) ? orr_yaml_refuse(v, key, words, err)
                                                       : ORR_OK;
}

static orr_code take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    const orr_code code = orr_yaml_take_rate(map, key, out, err);
    return code ? code : refuse_above(MOST_GBPS, *out, "a rate of at most 1PB/s", map, key, err);
}

static orr_code take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    const orr_code code = orr_yaml_take_ns(map, key, out, err);
    return code ? code : refuse_above(MOST_NS, *out, "a time of at most 1s", map, key, err);
}

static orr_code take_memory(orr_yaml_value map, orr_bytes *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_yaml_value v;
    orr_bytes n;
    if (!orr_yaml_find(map, "memory", &v))
        return ORR_OK;
    const orr_str s = orr_yaml_text(v);
    const bool fits = orr_yaml_type_of(v) == ORR_YAML_SCALAR && s.len < sizeof text &&
                      !memchr(s.ptr, '\0', s.len);
    if (fits) {
        memcpy(text, s.ptr, s.len);
        text[s.len] = '\0';
    }
    if (!fits || orr_bytes_parse(text, &n, NULL) || n == 0 || n > MOST_MEMORY)
        return orr_yaml_refuse(v, "memory", "a size above 0 with a unit, as 80GB or 79.1GiB", err);
    *out = n;
    return ORR_OK;
}

/* ---- sections ---- */

static orr_code take_size(orr_yaml_value map, orr_machine *m, orr_error *err)
{
    orr_yaml_value list;
    uint64_t n = 0;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(map, "size", &list))
        return ORR_OK;
    const orr_where w = orr_yaml_where(list);
    const bool is_list = orr_yaml_type_of(list) == ORR_YAML_LIST;
    if (!is_list || orr_yaml_count(list) == 0 || orr_yaml_count(list) > ORR_MACHINE_TORUS_DIMS)
        return orr_fail(err, ORR_EINPUT, &w, "size: expected a list of 1 to %d numbers",
                        ORR_MACHINE_TORUS_DIMS);
    m->up_dims = orr_yaml_count(list);
    for (uint32_t i = 0; i < m->up_dims && !code; i++) {
        code = orr_yaml_get_u64(orr_yaml_item(list, i), "size", 1, MACHINE_DEVICES, &n, err);
        m->up_size[i] = (uint32_t)n;
    }
    return code;
}

static orr_code take_up(orr_yaml_value top, orr_machine *m, orr_error *err)
{
    static const char *const keys[] = {"kind",    "size", "bandwidth",      "latency",
                                       "reduces", "wrap", "wraps_together", NULL};
    orr_yaml_value map, v;
    unsigned kind = m->up ? m->up : ORR_MACHINE_UP_SWITCH;
    if (!orr_yaml_find(top, "scale_up", &map))
        return ORR_OK;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_take_word(map, "kind", up_words, &kind, err);
    if (kind != ORR_MACHINE_UP_TORUS)
        m->up_dims = 0; /* of the machine that it changes */
    m->up = (orr_machine_up)kind;
    if (!code && m->up != ORR_MACHINE_UP_NONE && !(m->up_GBps > 0))
        code = orr_yaml_need(map, "bandwidth", &v, err);
    if (!code)
        code = take_size(map, m, err);
    if (!code)
        code = take_rate(map, "bandwidth", &m->up_GBps, err);
    if (!code)
        code = take_ns(map, "latency", &m->up_latency_ns, err);
    if (!code)
        code = take_u32(map, "wrap", 1, MACHINE_DEVICES, &m->up_wrap, err);
    if (!code)
        code = orr_yaml_take_bool(map, "wraps_together", &m->up_wraps_together, err);
    return code ? code : orr_yaml_take_bool(map, "reduces", &m->up_reduces, err);
}

static orr_code take_nics(orr_yaml_value top, orr_machine *m, orr_error *err)
{
    static const char *const keys[] = {"count", "bandwidth", "latency", NULL};
    orr_yaml_value map, v;
    if (!orr_yaml_find(top, "nics", &map))
        return ORR_OK;
    m->nics = m->nics ? m->nics : 1;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code && !(m->nic_GBps > 0))
        code = orr_yaml_need(map, "bandwidth", &v, err);
    if (!code)
        code = take_u32(map, "count", 1, MACHINE_DEVICES, &m->nics, err);
    if (!code)
        code = take_rate(map, "bandwidth", &m->nic_GBps, err);
    return code ? code : take_ns(map, "latency", &m->nic_latency_ns, err);
}

static orr_code take_fabric(orr_yaml_value top, orr_machine *m, orr_error *err)
{
    static const char *const keys[] = {
        "kind", "nodes_per_leaf", "leaves_per_group", "oversubscription", "hop_latency", "reduces",
        NULL};
    orr_yaml_value map;
    unsigned kind = m->fabric ? m->fabric : ORR_MACHINE_FABRIC_SWITCH;
    if (!orr_yaml_find(top, "fabric", &map)) {
        m->fabric = m->fabric ? m->fabric
                    : m->nics ? ORR_MACHINE_FABRIC_SWITCH
                              : ORR_MACHINE_FABRIC_NONE;
        return ORR_OK;
    }
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_take_word(map, "kind", fabric_words, &kind, err);
    m->fabric = (orr_machine_fabric)kind;
    if (!code)
        code = take_u32(map, "nodes_per_leaf", 1, MACHINE_NODES, &m->nodes_per_leaf, err);
    if (!code)
        code = take_u32(map, "leaves_per_group", 1, MACHINE_NODES, &m->leaves_per_group, err);
    if (!code)
        code = orr_yaml_take_number(map, "oversubscription", 1, MOST_OVERSUB, &m->oversubscription,
                                    err);
    if (!code)
        code = take_ns(map, "hop_latency", &m->hop_latency_ns, err);
    return code ? code : orr_yaml_take_bool(map, "reduces", &m->fabric_reduces, err);
}

static void scale_overlap(orr_machine *m, double factor)
{
    double *const shares[] = {&m->overlap_cost, &m->overlap_cost_least, &m->overlap_cost_most,
                              &m->message_overlap_cost};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        *shares[i] = fmin(*shares[i] * factor, 0.9);
}

/* What belongs to the device and is not known of a chip is that of the first built-in machine with
 * it; power is per device of its node. */
static orr_code take_from_like(const orr_chip *chip, orr_machine *m, orr_error *err)
{
    for (size_t i = 0; orr_machine_at(i); i++) {
        orr_machine like;
        const orr_code code = find_built_in(orr_machine_at(i), &like, err);
        if (code)
            return code;
        if (orr_chip_find(like.chip) != chip)
            continue;
        memcpy(m->architecture, like.architecture, sizeof m->architecture);
        m->memory = like.memory;
        m->host_GBps = like.host_GBps;
        m->watts = like.watts / like.devices * m->devices;
        break;
    }
    return ORR_OK;
}

/* Another chip than that of the base: its own peaks, memory, bus, power and, as no price is known,
 * price; collectives hold as many of its multiprocessors as of the others.  What a file says of
 * these is read behind. */
static orr_code follow_chip(orr_machine *m,
                            const orr_chip *old,
                            const orr_chip *chip,
                            orr_error *err)
{
    m->memory_GBps = m->peak_tflops = 0;
    if (!chip && strpbrk(m->chip, "./")) /* a file: the same chip calibrated, most likely */
        return ORR_OK;
    m->watts = m->usd_per_hour = m->host_GBps = 0;
    if (!chip)
        return ORR_OK;
    m->memory = (orr_bytes)(chip->memory_GB * 1e9);
    m->host_GBps = chip->bus_GBps;
    if (old && old->units && chip->units)
        scale_overlap(m, (double)old->units / chip->units);
    return take_from_like(chip, m, err);
}

/* label: as in take_collectives. */
static orr_code take_chip(orr_yaml_value map, orr_machine *m, const char *label, orr_error *err)
{
    char old[sizeof m->chip];
    orr_yaml_value v;
    memcpy(old, m->chip, sizeof old);
    if (!orr_yaml_find(map, "chip", &v))
        return old[0] ? ORR_OK : orr_yaml_need(map, "chip", &v, err);
    const orr_where at = orr_yaml_where(v);
    orr_code code = orr_yaml_take_text(map, "chip", m->chip, sizeof m->chip, err);
    if (code)
        return code;
    const orr_chip *chip = orr_chip_find(m->chip), *before = orr_chip_find(old);
    const bool is_same = chip ? chip == before : strcmp(old, m->chip) == 0;
    if (old[0] && !is_same && (code = follow_chip(m, before, chip, err)))
        return code;
    const bool is_file = !chip && strpbrk(m->chip, "./");
    return is_file && label ? orr_folder_check(m->chip, label, &at, err) : ORR_OK;
}

static orr_code take_device(orr_yaml_value map, orr_machine *m, const char *label, orr_error *err)
{
    orr_code code = take_chip(map, m, label, err);
    if (!code)
        code =
            orr_yaml_take_text(map, "architecture", m->architecture, sizeof m->architecture, err);
    if (!code)
        code = take_memory(map, &m->memory, err);
    if (!code)
        code = take_rate(map, "memory_bandwidth", &m->memory_GBps, err);
    if (!code)
        code = orr_yaml_take_number(map, "peak_tflops", 0, 1e9, &m->peak_tflops, err);
    return code ? code : take_rate(map, "host_bandwidth", &m->host_GBps, err);
}

/* What a built-in machine's note says may be what is changed. */
static void note_base(orr_machine *m)
{
    if (orr_machine_source(m->name))
        snprintf(m->note, sizeof m->note, "based on %s", m->name);
}

/* A built-in machine from which the file differs. */
static orr_code take_base(orr_yaml_value map, orr_machine *m, orr_error *err)
{
    char name[sizeof m->name];
    orr_yaml_value v;
    if (!orr_yaml_find(map, "base", &v))
        return ORR_OK;
    orr_code code = orr_yaml_take_text(map, "base", name, sizeof name, err);
    if (!code && (m->chip[0] || !orr_machine_source(name)))
        return orr_yaml_refuse(v, "base", "a machine of 'orrery machine list'", err);
    if (!code)
        code = find_built_in(name, m, err);
    if (!code)
        note_base(m);
    return code;
}

/* The power of a node is that of its devices: a file or changes with other devices and no watts of
 * their own keep the base's for each of them. */
static void scale_watts(orr_machine *m, uint32_t devices_before)
{
    if (devices_before && m->devices != devices_before)
        m->watts *= (double)m->devices / devices_before;
}

/* An interval belongs to its estimate: a file with its own cost does not inherit the interval of
 * its base. */
static orr_code take_overlap(orr_yaml_value map, orr_machine *m, orr_error *err)
{
    orr_yaml_value v;
    if (orr_yaml_find(map, "overlap_cost", &v))
        m->overlap_cost_least = m->overlap_cost_most = 0;
    orr_code code;
    if ((code = orr_yaml_take_number(map, "overlap_cost", 0, 0.9, &m->overlap_cost, err)) ||
        (code = orr_yaml_take_number(map, "overlap_cost_least", 0, 0.9, &m->overlap_cost_least,
                                     err)) ||
        (code =
             orr_yaml_take_number(map, "overlap_cost_most", 0, 0.9, &m->overlap_cost_most, err)) ||
        (code = orr_yaml_take_number(map, "message_overlap_cost", 0, 0.9, &m->message_overlap_cost,
                                     err)))
        return code;
    if (m->overlap_cost_least > m->overlap_cost && orr_yaml_find(map, "overlap_cost_least", &v))
        return orr_yaml_refuse(v, "overlap_cost_least", "at most overlap_cost", err);
    if (m->overlap_cost_most < m->overlap_cost && orr_yaml_find(map, "overlap_cost_most", &v))
        return orr_yaml_refuse(v, "overlap_cost_most", "at least overlap_cost", err);
    return ORR_OK;
}

/* Names known to nccl_custom_open, which are not files. */
static bool is_built_in(const char *collectives)
{
    return strcmp(collectives, "nccl") == 0 || strcmp(collectives, "rccl") == 0 ||
           strcmp(collectives, "torus") == 0 || strcmp(collectives, "none") == 0;
}

/* A table that is not built in is a file.  label: the file that names it; NULL: the user does. */
static orr_code take_collectives(orr_yaml_value map,
                                 orr_machine *m,
                                 const char *label,
                                 orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(map, "collectives", &v))
        return ORR_OK;
    const orr_where at = orr_yaml_where(v);
    const orr_code code =
        orr_yaml_take_text(map, "collectives", m->collectives, sizeof m->collectives, err);
    return code || !label || is_built_in(m->collectives)
               ? code
               : orr_folder_check(m->collectives, label, &at, err);
}

static orr_code take_machine(orr_yaml_value map, orr_machine *m, const char *label, orr_error *err)
{
    static const char *const keys[] = {"name",
                                       "note",
                                       "chip",
                                       "architecture",
                                       "nodes",
                                       "devices",
                                       "memory",
                                       "scale_up",
                                       "nics",
                                       "memory_bandwidth",
                                       "peak_tflops",
                                       "host_bandwidth",
                                       "fabric",
                                       "software",
                                       "watts",
                                       "collectives",
                                       "usd_per_hour",
                                       "base",
                                       "overlap_cost",
                                       "overlap_cost_least",
                                       "overlap_cost_most",
                                       "message_overlap_cost",
                                       NULL};
    orr_code code;
    if ((code = orr_yaml_check_keys(map, keys, err)) || (code = take_base(map, m, err)) ||
        (code = orr_yaml_take_text(map, "name", m->name, sizeof m->name, err)) ||
        (code = orr_yaml_take_text(map, "note", m->note, sizeof m->note, err)) ||
        (code = take_device(map, m, label, err)))
        return code;
    const uint32_t devices = m->devices;
    if ((code = take_u32(map, "nodes", 1, MACHINE_NODES, &m->nodes, err)) ||
        (code = take_u32(map, "devices", 1, MACHINE_DEVICES, &m->devices, err)) ||
        (code = take_up(map, m, err)) || (code = take_nics(map, m, err)) ||
        (code = take_fabric(map, m, err)) || (code = take_collectives(map, m, label, err)) ||
        (code = take_overlap(map, m, err)) ||
        (code = orr_yaml_take_text(map, "software", m->software, sizeof m->software, err)) ||
        (code = orr_yaml_take_number(map, "usd_per_hour", 0, 1e6, &m->usd_per_hour, err)))
        return code;
    orr_yaml_value v;
    if (label && orr_yaml_find(map, "base", &v))
        scale_watts(m, devices);
    return orr_yaml_take_number(map, "watts", 0, 1e9, &m->watts, err);
}

orr_code orr_machine_parse(orr_span bytes, const char *label, orr_machine *out, orr_error *err)
{
    orr_machine m = {.size = sizeof m, .nodes = 1, .devices = 1, .oversubscription = 1};
    const orr_code code = change_machine(bytes, label, true, &m, err);
    if (!code)
        *out = m;
    return code;
}

static orr_code change_machine(
    orr_span bytes, const char *label, bool checks, orr_machine *out, orr_error *err)
{
    orr_machine m = *out;
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    const orr_where top = orr_yaml_where(orr_yaml_root(y));
    code = take_machine(orr_yaml_root(y), &m, checks ? label : NULL, err);
    if (!code && checks)
        code = check_machine(&m, &top, err);
    orr_yaml_close(y);
    if (code)
        return code;
    if (!m.name[0])
        memcpy(m.name, "unnamed", sizeof "unnamed");
    if (!m.architecture[0])
        memcpy(m.architecture, "other", sizeof "other");
    if (!m.collectives[0] && m.up == ORR_MACHINE_UP_TORUS)
        memcpy(m.collectives, "torus", sizeof "torus");
    else if (!m.collectives[0])
        memcpy(m.collectives, "nccl", sizeof "nccl");
    *out = m;
    return ORR_OK;
}

orr_code orr_machine_read(const char *path, orr_machine *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_machine_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

/* ---- writing ---- */

/* Unknown values are left out. */
static void put_rate(orr_pen *t, const char *key, double GBps)
{
    if (GBps > 0)
        orr_pen_unit(t, key, (uint64_t)llround(GBps * 1e9), orr_pen_rates);
}

static void put_time(orr_pen *t, const char *key, double ns)
{
    if (ns > 0)
        orr_pen_unit(t, key, (uint64_t)llround(ns * 1e3), orr_pen_times);
}

static void put_text(orr_pen *t, const char *key, const char *text)
{
    if (text[0])
        orr_pen_put(t, "%s: \"%s\"\n", key, text);
}

static void put_number(orr_pen *t, const char *key, double value)
{
    if (value > 0)
        orr_pen_put(t, "%s: %.17g\n", key, value);
}

static void put_network(orr_pen *t, const orr_machine *m)
{
    orr_pen_put(t, "scale_up:\n  kind: %s\n", up_words[m->up]);
    for (uint32_t i = 0; i < m->up_dims; i++)
        orr_pen_put(t, "%s%" PRIu32 "%s", i ? ", " : "  size: [", m->up_size[i],
                    i + 1 == m->up_dims ? "]\n" : "");
    put_rate(t, "  bandwidth", m->up_GBps);
    put_time(t, "  latency", m->up_latency_ns);
    if (m->up_wrap)
        orr_pen_put(t, "  wrap: %" PRIu32 "\n  wraps_together: %s\n", m->up_wrap,
                    m->up_wraps_together ? "true" : "false");
    orr_pen_put(t, "  reduces: %s\n", m->up_reduces ? "true" : "false");
    if (m->nics) {
        orr_pen_put(t, "nics:\n  count: %" PRIu32 "\n", m->nics);
        put_rate(t, "  bandwidth", m->nic_GBps);
        put_time(t, "  latency", m->nic_latency_ns);
    }
    orr_pen_put(t, "fabric:\n  kind: %s\n", fabric_words[m->fabric]);
    if (m->nodes_per_leaf)
        orr_pen_put(t, "  nodes_per_leaf: %" PRIu32 "\n", m->nodes_per_leaf);
    if (m->leaves_per_group)
        orr_pen_put(t, "  leaves_per_group: %" PRIu32 "\n", m->leaves_per_group);
    put_number(t, "  oversubscription", m->oversubscription);
    put_time(t, "  hop_latency", m->hop_latency_ns);
    orr_pen_put(t, "  reduces: %s\n", m->fabric_reduces ? "true" : "false");
}

size_t orr_machine_text(const orr_machine *m, char *out, size_t size)
{
    orr_pen t = {.out = out, .size = size};
    put_text(&t, "name", m->name);
    put_text(&t, "note", m->note);
    put_text(&t, "chip", m->chip);
    put_text(&t, "architecture", m->architecture);
    orr_pen_put(&t, "nodes: %" PRIu32 "\ndevices: %" PRIu32 "\n", m->nodes, m->devices);
    orr_pen_unit(&t, "memory", m->memory, orr_pen_sizes);
    put_rate(&t, "memory_bandwidth", m->memory_GBps);
    put_number(&t, "peak_tflops", m->peak_tflops);
    put_rate(&t, "host_bandwidth", m->host_GBps);
    put_network(&t, m);
    put_text(&t, "collectives", m->collectives);
    put_number(&t, "overlap_cost", m->overlap_cost);
    put_number(&t, "overlap_cost_least", m->overlap_cost_least);
    put_number(&t, "overlap_cost_most", m->overlap_cost_most);
    put_number(&t, "message_overlap_cost", m->message_overlap_cost);
    put_text(&t, "software", m->software);
    put_number(&t, "usd_per_hour", m->usd_per_hour);
    put_number(&t, "watts", m->watts);
    return t.used;
}

extern const char machine_dgx_a100[], machine_dgx_h100[], machine_hgx_h100[], machine_hgx_h200[],
    machine_h800_deepseek[], machine_dgx_b200[], machine_gb200_nvl72[], machine_mi300x[],
    machine_tpu_v4[], machine_tpu_v5e[], machine_tpu_v5p[], machine_trainium2[];

static const struct {
    const char *name, *text;
} built_in[] = {
    {"dgx-a100", machine_dgx_a100},
    {"dgx-h100", machine_dgx_h100},
    {"hgx-h100", machine_hgx_h100},
    {"hgx-h200", machine_hgx_h200},
    {"h800-deepseek", machine_h800_deepseek},
    {"dgx-b200", machine_dgx_b200},
    {"gb200-nvl72", machine_gb200_nvl72},
    {"mi300x", machine_mi300x},
    {"tpu-v4", machine_tpu_v4},
    {"tpu-v5e", machine_tpu_v5e},
    {"tpu-v5p", machine_tpu_v5p},
    {"trainium2", machine_trainium2},
};

enum { BUILT_IN = sizeof built_in / sizeof *built_in, SHOWN = 60 };

#define GIB_PER_GB (1e9 / (double)(1 << 30))

const char *orr_machine_at(size_t index)
{
    return index < BUILT_IN ? built_in[index].name : NULL;
}

const char *orr_machine_source(const char *name)
{
    for (size_t i = 0; i < BUILT_IN; i++)
        if (strcmp(built_in[i].name, name) == 0)
            return built_in[i].text;
    return NULL;
}

/* ---- by name ---- */

static orr_code fail_unknown(const char *name, orr_error *err)
{
    const char *names[BUILT_IN + 1];
    for (size_t i = 0; i <= BUILT_IN; i++)
        names[i] = orr_machine_at(i);
    const char *near = orr_nearest((orr_str){name, strlen(name)}, names);
    if (near)
        return orr_fail(err, ORR_EUSAGE, NULL, "unknown machine '%.*s'; did you mean '%s'?", SHOWN,
                        name, near);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "unknown machine '%.*s', and no such file; see 'orrery machine list'", SHOWN,
                    name);
}

/* "name:N": the position of the colon; NULL: no number of nodes. */
static char *find_nodes(char *text)
{
    char *colon = strrchr(text, ':');
    return colon && colon != text && !strpbrk(colon, "/.") ? colon : NULL;
}

static orr_code take_nodes(const char *colon, uint32_t *out, orr_error *err)
{
    uint64_t n = 0;
    if (!orr_text_u64((orr_str){colon + 1, strlen(colon + 1)}, &n) || n < 1 || n > MACHINE_NODES)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%.*s' is not a number of nodes from 1 to %d, as in dgx-h100:16", SHOWN,
                        colon + 1, MACHINE_NODES);
    *out = (uint32_t)n;
    return ORR_OK;
}

/* Cached: a sweep looks it up ten thousand times.  A failure for lack of memory is not cached. */
static orr_code find_built_in(const char *name, orr_machine *out, orr_error *err)
{
    static orr_machine read[BUILT_IN];
    static atomic_bool is_read[BUILT_IN];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t i = 0;
    while (i + 1 < BUILT_IN && strcmp(built_in[i].name, name) != 0)
        i++;
    const char *text = built_in[i].text;
    if (atomic_load_explicit(&is_read[i], memory_order_acquire)) {
        *out = read[i];
        return ORR_OK;
    }
    const orr_code code =
        orr_machine_parse((orr_span){(const uint8_t *)text, strlen(text)}, name, out, err);
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&is_read[i], memory_order_relaxed)) {
        read[i] = *out;
        atomic_store_explicit(&is_read[i], true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return ORR_OK;
}

/* ---- "dgx-h100:16,scale_up.bandwidth=900GB/s,usd_per_hour=2.5" ---- */

static size_t key_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_.");
}

/* The comma before the first change; NULL: there is none.  A path may contain commas too. */
static const char *find_changes(const char *text)
{
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
        const size_t n = key_length(at + 1);
        if (n && at[1 + n] == '=')
            return at;
    }
    return NULL;
}

/* Up to the next comma outside brackets, as in size=[4,4]. */
static size_t change_length(const char *text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n] && (depth || text[n] != ','); n++)
        depth += (text[n] == '[') - (text[n] == ']' && depth);
    return n;
}

static orr_code change(orr_machine *m, const char *text, size_t length, orr_error *err)
{
    char yaml[600];
    const size_t n = key_length(text);
    const char *dot = memchr(text, '.', n);
    const size_t first = dot ? (size_t)(dot - text) : n;
    if (!n || n >= length || text[n] != '=' || length > 400 || memchr(text, '\n', length))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%.*s': expected KEY=VALUE with a key of a machine file, as "
                        "scale_up.bandwidth=900GB/s",
                        (int)(length < SHOWN ? length : SHOWN), text);
    const int value = (int)(length - n - 1);
    if (dot)
        snprintf(yaml, sizeof yaml, "%.*s:\n  %.*s: %.*s\n", (int)first, text, (int)(n - first - 1),
                 dot + 1, value, text + n + 1);
    else
        snprintf(yaml, sizeof yaml, "%.*s: %.*s\n", (int)n, text, value, text + n + 1);
    const orr_span bytes = {(const uint8_t *)yaml, strlen(yaml)};
    const orr_code code = change_machine(bytes, "machine", false, m, err);
    if (!code || code == ORR_ENOMEM)
        return code;
    if (err) /* locations in our own text would mislead */
        err->where = (orr_where){.path = "", .byte = ORR_NO_BYTE};
    if (err)
        err->code = ORR_EUSAGE;
    return orr_because(err, ORR_EUSAGE, "'%.*s'", (int)(length < SHOWN ? length : SHOWN), text);
}

static bool has_key(const char *text, const char *key)
{
    return key_length(text) == strlen(key) && memcmp(text, key, strlen(key)) == 0;
}

static orr_code apply_changes(orr_machine *m, const char *at, orr_error *err)
{
    orr_code code = ORR_OK;
    const uint32_t devices = m->devices;
    bool has_watts = false;
    if (at && *at == ',')
        note_base(m);
    const char *const start = at;
    for (int round = 0; round < 2; round++) /* the chip first: others change what it brings */
        for (at = start; !code && at && *at == ',';) {
            const size_t n = change_length(++at);
            has_watts |= has_key(at, "watts");
            if (has_key(at, "chip") == (round == 0))
                code = change(m, at, n, err);
            at += n;
        }
    if (!has_watts)
        scale_watts(m, devices);
    return code;
}

typedef struct machine_words {
    char name[1024]; /* or a path */
    uint32_t nodes;  /* 0: not given */
    const char *changes;
} machine_words;

static orr_code take_apart(const char *text, machine_words *out, orr_error *err)
{
    out->nodes = 0;
    out->changes = find_changes(text);
    const size_t all = out->changes ? (size_t)(out->changes - text) : strlen(text);
    if (all == 0 || all >= sizeof out->name)
        return fail_unknown(text, err);
    memcpy(out->name, text, all);
    out->name[all] = '\0';
    char *colon = find_nodes(out->name);
    const orr_code code = colon ? take_nodes(colon, &out->nodes, err) : ORR_OK;
    if (colon)
        *colon = '\0';
    return code;
}

orr_code orr_machine_find(const char *text, orr_machine *out, orr_error *err)
{
    machine_words w;
    orr_machine m;
    orr_code code = take_apart(text, &w, err);
    if (code)
        return code;
    code = orr_machine_source(w.name) ? find_built_in(w.name, &m, err)
                                      : orr_machine_read(w.name, &m, err);
    if (code == ORR_EIO && !strpbrk(w.name, "/."))
        return fail_unknown(w.name, err);
    if (code)
        return code;
    m.nodes = w.nodes ? w.nodes : m.nodes;
    code = apply_changes(&m, w.changes, err);
    if (!code)
        code = check_machine(&m, NULL, err);
    if (!code)
        *out = m;
    return code;
}

/* ---- consistency ---- */

static uint32_t volume(const orr_machine *m)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < m->up_dims && n <= MACHINE_DEVICES; i++)
        n *= m->up_size[i];
    return n <= MACHINE_DEVICES ? (uint32_t)n : 0;
}

static const char *find_fault(const orr_machine *m)
{
    const bool is_torus = m->up == ORR_MACHINE_UP_TORUS;
    if ((uint64_t)m->nodes * m->devices > MACHINE_ALL)
        return "more than 16,777,216 devices";
    if (m->up_dims && !is_torus)
        return "scale_up: only a torus has a size";
    if (m->up_dims && volume(m) != m->devices)
        return "scale_up: the product of its sizes is not the number of devices";
    if (m->up != ORR_MACHINE_UP_NONE && !(m->up_GBps > 0))
        return "scale_up: a bandwidth is missing";
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS && !is_torus && m->up != ORR_MACHINE_UP_RING)
        return "fabric: a torus of nodes needs a scale_up of the kind torus or ring";
    if (m->up_wrap && !is_torus && m->up != ORR_MACHINE_UP_RING)
        return "scale_up: only a torus or a ring wraps";
    if (strcmp(m->collectives, "torus") == 0 && !is_torus && m->up != ORR_MACHINE_UP_RING)
        return "collectives: those of a torus need a scale_up of the kind torus or ring";
    if (m->fabric == ORR_MACHINE_FABRIC_NONE && m->nodes > 1)
        return "several nodes, and no fabric between them";
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS && m->nodes > 1 && !m->nics)
        return "several nodes, and no NICs between them";
    if (m->up == ORR_MACHINE_UP_NONE && m->devices > 1 && !m->nics)
        return "several devices, and neither scale_up nor NICs between them";
    return NULL;
}

static orr_code check_machine(const orr_machine *m, const orr_where *where, orr_error *err)
{
    const char *fault = find_fault(m);
    if (!fault)
        return ORR_OK;
    return where
               ? orr_fail(err, ORR_EINPUT, where, "%s", fault)
               : orr_fail(err, ORR_EUSAGE, NULL, "%s with %u nodes: %s", m->name, m->nodes, fault);
}

/* ---- derived values ---- */

uint32_t orr_machine_devices(const orr_machine *m)
{
    return m->nodes * m->devices;
}

/* Switches between the two most distant nodes. */
static unsigned count_hops(const orr_machine *m)
{
    const uint64_t leaf = m->nodes_per_leaf ? m->nodes_per_leaf : m->nodes;
    const uint64_t group = leaf * (m->leaves_per_group ? m->leaves_per_group : 1);
    if (m->nodes <= leaf)
        return 1;
    switch (m->fabric) {
    case ORR_MACHINE_FABRIC_RAILS:
    case ORR_MACHINE_FABRIC_LEAF_SPINE:
        return 3;
    case ORR_MACHINE_FABRIC_FAT_TREE:
        return 5;
    case ORR_MACHINE_FABRIC_DRAGONFLY:
        return m->nodes <= group ? 2 : 4;
    default:
        return 1;
    }
}

double orr_machine_out_GBps(const orr_machine *m)
{
    return m->nic_GBps * m->nics / m->devices;
}

double orr_machine_out_latency_ns(const orr_machine *m)
{
    return m->nic_latency_ns + count_hops(m) * m->hop_latency_ns;
}

/* Jobs leave some devices of a rack unused to get an even split: 256 ranks take 64 of 72 on each of
 * four.  Hosts of 8 and 16 are used whole. */
enum { WHOLE_NODE_MOST = 16 };

static uint32_t devices_used(const orr_machine *m, uint32_t ranks)
{
    if (m->devices <= WHOLE_NODE_MOST || m->up_dims || ranks <= m->devices)
        return m->devices;
    for (uint32_t d = m->devices; d > m->devices / 2; d--)
        if (ranks % d == 0 && ranks / d <= m->nodes)
            return d;
    return m->devices;
}

static uint32_t largest_prime(uint32_t n)
{
    uint32_t largest = 1;
    for (uint32_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p)
            largest = p;
    return n > 1 ? n : largest;
}

/* Grow the sizes by the prime factors of n, the largest first, always where it is shortest. */
static void grow(uint32_t *size, uint32_t dims, uint32_t n)
{
    while (n > 1) {
        const uint32_t p = largest_prime(n);
        uint32_t at = 0;
        for (uint32_t i = 1; i < dims; i++)
            at = size[i] < size[at] ? i : at;
        size[at] *= p;
        n /= p;
    }
}

/* Part of a node has the links of the whole one: of a mesh those to devices that are left out are
 * gone, and a torus keeps its dimensions. */
static void keep_links(const orr_machine *all, orr_machine *part)
{
    const uint32_t dims = all->up_dims;
    if (all->up == ORR_MACHINE_UP_MESH && part->devices > 1)
        part->up_GBps = all->up_GBps * (part->devices - 1) / (all->devices - 1);
    for (uint32_t i = 0; i < dims; i++)
        part->up_size[i] = 1;
    if (dims)
        grow(part->up_size, dims, part->devices);
    for (uint32_t i = 0; i < dims; i++)
        part->up_open |= (uint32_t)(part->up_size[i] != all->up_size[i]) << i;
    if (all->up == ORR_MACHINE_UP_RING)
        part->up_open = 1;
}

orr_code orr_machine_fit(const orr_machine *m, uint32_t ranks, orr_machine *out, orr_error *err)
{
    orr_machine part = *m;
    const uint32_t used = devices_used(m, ranks);
    if (ranks == 0 || ranks > orr_machine_devices(m))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%u rank%s need %s:%u; %s with %u node%s has %u device%s", ranks,
                        ranks == 1 ? "" : "s", m->name, (ranks + m->devices - 1) / m->devices,
                        m->name, m->nodes, m->nodes == 1 ? "" : "s", orr_machine_devices(m),
                        orr_machine_devices(m) == 1 ? "" : "s");
    if (ranks > m->devices && ranks % used)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%u ranks do not fill whole nodes of %s, which have %u devices", ranks,
                        m->name, m->devices);
    part.nodes = ranks > m->devices ? ranks / used : 1;
    if (ranks > m->devices && used < m->devices) {
        part.nics = m->nics == m->devices ? used : m->nics;
        part.devices = used;
    }
    if (ranks < m->devices) {
        part.devices = ranks;
        part.nics = m->nics < ranks ? m->nics : ranks;
    }
    if (part.devices < m->devices)
        keep_links(m, &part);
    *out = part;
    return ORR_OK;
}

orr_code orr_machine_for(const char *text, uint32_t ranks, orr_machine *out, orr_error *err)
{
    orr_machine all;
    machine_words w;
    orr_code code = take_apart(text, &w, err);
    if (!code)
        code = orr_machine_find(text, &all, err);
    if (!code && !w.nodes && all.nodes == 1 && ranks > all.devices)
        all.nodes = (ranks - 1) / all.devices + 1;
    if (!code)
        code = check_machine(&all, NULL, err);
    return code ? code : orr_machine_fit(&all, ranks, out, err);
}

/* ---- dimensions ---- */

static void add(orr_net_config *c, orr_net_shape shape, uint32_t npus, double GBps, double ns)
{
    if (npus < 2)
        return;
    c->shape[c->dims] = shape;
    c->npus[c->dims] = npus;
    c->bandwidth[c->dims] = GBps * GIB_PER_GB;
    c->latency_ns[c->dims] = ns;
    c->dims++;
}

/* Where axes wrap together, jobs of whole cubes get a torus of cubes: 192 TPU v4 are 12 x 4 x 4,
 * not 6 x 4 x 8.  The devices of a cube; 0: the job is no number of cubes. */
static uint32_t whole_cube(const orr_machine *m, uint32_t dims)
{
    uint64_t cube = 1;
    if (!m->up_wraps_together || m->up_wrap < 2 || m->fabric != ORR_MACHINE_FABRIC_TORUS)
        return 0;
    for (uint32_t i = 0; i < dims; i++) {
        if (m->up_dims && m->up_wrap % m->up_size[i])
            return 0;
        cube *= m->up_wrap;
        if (cube > MACHINE_ALL)
            return 0;
    }
    return orr_machine_devices(m) % cube ? 0 : (uint32_t)cube;
}

static void add_torus(const orr_machine *m, orr_net_config *c)
{
    uint32_t size[ORR_MACHINE_TORUS_DIMS] = {1, 1, 1, 1};
    const uint32_t dims = m->up == ORR_MACHINE_UP_RING ? 1 : m->up_dims ? m->up_dims : 3;
    memcpy(size, m->up_size, m->up_dims * sizeof *size);
    if (!m->up_dims)
        grow(size, dims, m->devices);
    const uint32_t cube = whole_cube(m, dims);
    for (uint32_t i = 0; i < dims && cube; i++)
        size[i] = m->up_wrap;
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS)
        grow(size, dims, cube ? m->nodes * m->devices / cube : m->nodes);
    bool is_open[ORR_MACHINE_TORUS_DIMS], is_any = false;
    for (uint32_t i = 0; i < dims; i++) {
        is_open[i] = m->up_wrap > 1 && size[i] % m->up_wrap;
        is_any = is_any || is_open[i];
    }
    for (uint32_t i = 0; i < dims; i++) {
        c->is_open[c->dims] = is_open[i] || (is_any && m->up_wraps_together) || m->up_open >> i & 1;
        add(c, ORR_NET_RING, size[i], m->up_GBps / (2 * dims), m->up_latency_ns);
    }
    c->is_open[c->dims] = false;
}

static void add_node(const orr_machine *m, orr_net_config *c)
{
    switch (m->up) {
    case ORR_MACHINE_UP_SWITCH:
        add(c, ORR_NET_SWITCH, m->devices, m->up_GBps, m->up_latency_ns / 2);
        break;
    case ORR_MACHINE_UP_MESH:
        add(c, ORR_NET_FULLY_CONNECTED, m->devices,
            m->up_GBps / (m->devices > 1 ? m->devices - 1 : 1), m->up_latency_ns);
        break;
    case ORR_MACHINE_UP_RING:
    case ORR_MACHINE_UP_TORUS:
        add_torus(m, c);
        break;
    case ORR_MACHINE_UP_NONE:
        break;
    }
}

orr_code orr_machine_dims(const orr_machine *m, orr_net_config *out, orr_error *err)
{
    orr_net_config c = {.size = sizeof c};
    const orr_code code = check_machine(m, NULL, err);
    if (code)
        return code;
    const bool is_flat = m->up == ORR_MACHINE_UP_NONE;
    const uint32_t ends = is_flat ? m->nodes * m->devices : m->nodes;
    const uint32_t leaf = m->nodes_per_leaf ? m->nodes_per_leaf : m->nodes;
    /* Of even traffic between nodes this part leaves the leaf; uplinks that carry it all cost
     * nothing. */
    const double crowded =
        m->nodes > leaf ? m->oversubscription * (m->nodes - leaf) / (m->nodes - 1) : 1;
    const double share = orr_machine_out_GBps(m) / (crowded > 1 ? crowded : 1);
    add_node(m, &c);
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS)
        c.ranks_per_node = c.dims ? m->devices : 1;
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS)
        add(&c, ORR_NET_SWITCH, ends, share, orr_machine_out_latency_ns(m) / 2);
    if (c.dims == 0) {
        c.dims = 1;
        c.npus[0] = 1;
        c.shape[0] = ORR_NET_SWITCH;
        c.bandwidth[0] = 1;
    }
    *out = c;
    return ORR_OK;
}
