/* SPDX-License-Identifier: Apache-2.0 */
/* machine_file.c - machines from YAML and to YAML (docs/format/machine.md).
 *
 * Every value has a unit or is a plain count.  Bounds keep slips of the hand out and sums inside
 * what doubles and 32 bits hold; machine_check refuses values that do not go together.  What is
 * written reads back as the same values: rates are whole bytes a second, times whole
 * picoseconds. */
#include "machine_impl.h"

#include "base/formats/yaml_fields.h"
#include "base/io/input.h"
#include "base/text/pen.h"

#include <orrery/lab/folders.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

static orr_code take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_take_rate(map, key, out, err);
    if (!code && *out > MOST_GBPS && orr_yaml_find(map, key, &v))
        code = orr_yaml_refuse(v, key, "a rate of at most 1PB/s", err);
    return code;
}

static orr_code take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_take_ns(map, key, out, err);
    if (!code && *out > MOST_NS && orr_yaml_find(map, key, &v))
        code = orr_yaml_refuse(v, key, "a time of at most 1s", err);
    return code;
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
    static const char *const keys[] = {"kind", "size", "bandwidth", "latency", "reduces", NULL};
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

static orr_code take_device(orr_yaml_value map, orr_machine *m, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = m->chip[0] ? ORR_OK : orr_yaml_need(map, "chip", &v, err);
    if (!code)
        code = orr_yaml_take_text(map, "chip", m->chip, sizeof m->chip, err);
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

/* A machine that is built in, of which the file says what is different. */
static orr_code take_base(orr_yaml_value map, orr_machine *m, orr_error *err)
{
    char name[sizeof m->name];
    orr_yaml_value v;
    if (!orr_yaml_find(map, "base", &v))
        return ORR_OK;
    orr_code code = orr_yaml_take_text(map, "base", name, sizeof name, err);
    if (!code && (m->chip[0] || !orr_machine_source(name)))
        return orr_yaml_refuse(v, "base", "a machine of 'orrery machine list'", err);
    return code ? code : machine_built_in(name, m, err);
}

/* An interval is of the estimate beside it: a file with a cost of its own does not take that of its
 * base. */
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

/* As nccl_custom_open knows them: no files. */
static bool is_built_in(const char *collectives)
{
    return strcmp(collectives, "nccl") == 0 || strcmp(collectives, "rccl") == 0 ||
           strcmp(collectives, "none") == 0;
}

/* A table that is not built in is a file.  label: of the file that names it; NULL: the user
 * does. */
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
        (code = take_device(map, m, err)) ||
        (code = take_u32(map, "nodes", 1, MACHINE_NODES, &m->nodes, err)) ||
        (code = take_u32(map, "devices", 1, MACHINE_DEVICES, &m->devices, err)) ||
        (code = take_up(map, m, err)) || (code = take_nics(map, m, err)) ||
        (code = take_fabric(map, m, err)) || (code = take_collectives(map, m, label, err)) ||
        (code = take_overlap(map, m, err)) ||
        (code = orr_yaml_take_text(map, "software", m->software, sizeof m->software, err)) ||
        (code = orr_yaml_take_number(map, "usd_per_hour", 0, 1e6, &m->usd_per_hour, err)))
        return code;
    return orr_yaml_take_number(map, "watts", 0, 1e9, &m->watts, err);
}

orr_code orr_machine_parse(orr_span bytes, const char *label, orr_machine *out, orr_error *err)
{
    orr_machine m = {.size = sizeof m, .nodes = 1, .devices = 1, .oversubscription = 1};
    const orr_code code = machine_change(bytes, label, true, &m, err);
    if (!code)
        *out = m;
    return code;
}

orr_code machine_change(
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
        code = machine_check(&m, &top, err);
    orr_yaml_close(y);
    if (code)
        return code;
    if (!m.name[0])
        memcpy(m.name, "unnamed", sizeof "unnamed");
    if (!m.architecture[0])
        memcpy(m.architecture, "other", sizeof "other");
    if (!m.collectives[0])
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

/* ---- the other way ---- */

/* What is not known is left out. */
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
