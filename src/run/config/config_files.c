/* SPDX-License-Identifier: Apache-2.0 */
/* config_files.c - the small input files of a run: network (YAML, or the JSON of ASTRA-sim 1.0),
 * remote memory (JSON), communicator groups (JSON); astra-sim.md 6.4, 7, 8 and 13. */
#include "config.h"

#include "base/formats/json.h"
#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "models/network/topology/topology.h"

#include <orrery/lab/topology.h>

#include <stdlib.h>

static bool is_listed(orr_str key, const char *const *keys)
{
    while (*keys && (strlen(*keys) != key.len || memcmp(*keys, key.ptr, key.len) != 0))
        keys++;
    return *keys != NULL;
}

/* ---- network ---- */

/* A missing key may be present with a typo. */
static orr_code fail_missing(orr_yaml_value root, const char *key, orr_error *err)
{
    const char *const wanted[] = {key, NULL};
    const bool is_map = orr_yaml_type_of(root) == ORR_YAML_MAP;
    for (uint32_t i = 0; is_map && i < orr_yaml_count(root); i++) {
        const orr_str found = orr_yaml_text(orr_yaml_key(root, i));
        const orr_where at = orr_yaml_where(orr_yaml_key(root, i));
        if (orr_nearest(found, wanted))
            return orr_fail(err, ORR_EINPUT, &at, "the key \"%s\" is missing; is \"%.*s\" meant?",
                            key, (int)(found.len < 40 ? found.len : 40), found.ptr);
    }
    /* No such key: perhaps the file is a link-level topology. */
    for (uint32_t i = 0; is_map && i < orr_yaml_count(root); i++) {
        const orr_str found = orr_yaml_text(orr_yaml_key(root, i));
        const orr_where at = orr_yaml_where(orr_yaml_key(root, i));
        const char *near =
            is_listed(found, orr__topology_keys) ? NULL : orr_nearest(found, orr__topology_keys);
        if (near)
            return orr_fail(err, ORR_EINPUT, &at, "unknown key \"%.*s\"; did you mean \"%s\"?",
                            (int)(found.len < 40 ? found.len : 40), found.ptr, near);
    }
    const orr_where w = orr_yaml_where(root);
    return orr_fail(err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

/* "topology: Switch", as in the first congestion-aware network: one dimension. */
static bool is_one_shape(orr_yaml_value v, const char *key)
{
    return strcmp(key, "topology") == 0 && orr_yaml_text(v).len;
}

static uint32_t entries(orr_yaml_value list)
{
    return orr_yaml_type_of(list) == ORR_YAML_LIST ? orr_yaml_count(list) : 1;
}

static orr_yaml_value entry(orr_yaml_value list, uint32_t k)
{
    return orr_yaml_type_of(list) == ORR_YAML_LIST ? orr_yaml_item(list, k) : list;
}

static orr_code take_list(orr_yaml_value root, const char *key, orr_yaml_value *out, orr_error *err)
{
    if (!orr_yaml_find(root, key, out))
        return fail_missing(root, key, err);
    const orr_where at = orr_yaml_where(*out);
    if (is_one_shape(*out, key))
        return ORR_OK;
    if (orr_yaml_type_of(*out) != ORR_YAML_LIST)
        return orr_fail(err, ORR_EINPUT, &at, "%s: expected a list, one entry per dimension", key);
    if (orr_yaml_count(*out) == 0 || orr_yaml_count(*out) > ORR_NET_DIMS)
        return orr_fail(err, ORR_EINPUT, &at, "%s: expected 1 to %d entries", key, ORR_NET_DIMS);
    return ORR_OK;
}

static orr_code take_shape(orr_yaml_value v, orr_net_shape *out, orr_error *err)
{
    static const char *const names[] = {"Ring", "Switch", "FullyConnected"};
    const orr_str s = orr_yaml_text(v);
    for (unsigned i = 0; i < 3; i++)
        if (strlen(names[i]) == s.len && memcmp(names[i], s.ptr, s.len) == 0) {
            *out = (orr_net_shape)i;
            return ORR_OK;
        }
    const orr_where w = orr_yaml_where(v);
    return orr_fail(err, ORR_EINPUT, &w, "topology \"%.*s\" is not Ring, Switch or FullyConnected",
                    (int)s.len, s.ptr);
}

static orr_code take_number(orr_yaml_value v, const char *key, double *out, orr_error *err)
{
    const orr_where w = orr_yaml_where(v);
    if (orr_text_double(orr_yaml_text(v), out) && *out - *out == 0)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not a number", key,
                    (int)orr_yaml_text(v).len, orr_yaml_text(v).ptr);
}

static orr_code take_dimension(orr_yaml_value lists[4],
                               uint32_t k,
                               orr_net_config *c,
                               orr_error *err)
{
    uint64_t npus = 0;
    /* a single rank is allowed only alone: the trace of one rank (sim.c) */
    const unsigned least = c->dims == 1 ? 1 : 2;
    const orr_yaml_value v = orr_yaml_item(lists[1], k);
    const orr_where at_npus = orr_yaml_where(v);
    const orr_where at_bandwidth = orr_yaml_where(orr_yaml_item(lists[2], k));
    const orr_where at_latency = orr_yaml_where(orr_yaml_item(lists[3], k));
    orr_code code = take_shape(entry(lists[0], k), &c->shape[k], err);
    if (code)
        return code;
    if (!orr_text_u64(orr_yaml_text(v), &npus) || npus < least || npus > 1u << 24)
        return orr_fail(err, ORR_EINPUT, &at_npus,
                        "npus_count: expected a whole number from %u to 16777216", least);
    c->npus[k] = (uint32_t)npus;
    if ((code = take_number(orr_yaml_item(lists[2], k), "bandwidth", &c->bandwidth[k], err)) ||
        (code = take_number(orr_yaml_item(lists[3], k), "latency", &c->latency_ns[k], err)))
        return code;
    if (!(c->bandwidth[k] > 0))
        return orr_fail(err, ORR_EINPUT, &at_bandwidth, "bandwidth: must be above 0 GB/s");
    if (!(c->latency_ns[k] >= 0))
        return orr_fail(err, ORR_EINPUT, &at_latency, "latency: must not be below 0 ns");
    return ORR_OK;
}

/* Lists with one entry per dimension. */
static orr_code take_lists(orr_yaml_value root,
                           const char *const *keys,
                           unsigned count,
                           orr_yaml_value *lists,
                           orr_error *err)
{
    for (unsigned i = 0; i < count; i++) {
        const orr_code code = take_list(root, keys[i], &lists[i], err);
        if (code)
            return code;
        const orr_where w = orr_yaml_where(lists[i]);
        if (entries(lists[i]) != entries(lists[0]))
            return orr_fail(err, ORR_EINPUT, &w,
                            "%s has %u entries, %s has %u: expected one per dimension", keys[i],
                            entries(lists[i]), keys[0], entries(lists[0]));
    }
    return ORR_OK;
}

static orr_code take_dims_of(orr_yaml_value lists[4], orr_net_config *c, orr_error *err)
{
    orr_code code = ORR_OK;
    c->dims = entries(lists[0]);
    for (uint32_t k = 0; k < c->dims && !code; k++)
        code = take_dimension(lists, k, c, err);
    return code;
}

/* ---- the network file of ASTRA-sim 1.0 (astra-sim.md 13) ---- */

enum { LINKS = 4, NIC, ROUTER, MEMORY_LATENCY, MEMORY_BANDWIDTH, MEMORY_SCALE, EARLY_LISTS };

static const char *const early_keys[EARLY_LISTS] = {
    "topologies-per-dim", "units-count",    "link-bandwidth", "link-latency",  "links-count",
    "nic-latency",        "router-latency", "hbm-latency",    "hbm-bandwidth", "hbm-scale"};

/* Number of parallel links between two neighbours; 0: too few are given. */
static uint64_t links_beside(const orr_net_config *c, uint32_t k, uint64_t links)
{
    const uint32_t peers = c->npus[k] > 1 ? c->npus[k] - 1 : 1;
    if (c->shape[k] == ORR_NET_FULLY_CONNECTED)
        return links / peers;
    return c->shape[k] == ORR_NET_RING && links > 1 ? links - links % 2 : links;
}

static orr_code fail_early(
    orr_yaml_value lists[EARLY_LISTS], unsigned which, uint32_t k, const char *what, orr_error *err)
{
    const orr_where w = orr_yaml_where(orr_yaml_item(lists[which], k));
    return orr_fail(err, ORR_EINPUT, &w, "%s: %s", early_keys[which], what);
}

/* A NIC and a router are part of the latency of a hop, except on a ring, where a message may take
 * several.  Memory time would count if it were longer than that of the network: refuse a file in
 * which it is. */
static orr_code take_early_dimension(orr_yaml_value lists[EARLY_LISTS],
                                     uint32_t k,
                                     orr_net_config *c,
                                     orr_error *err)
{
    double v[EARLY_LISTS] = {[MEMORY_BANDWIDTH] = 1};
    for (unsigned i = LINKS; i < EARLY_LISTS; i++) {
        if (!lists[i].doc)
            continue;
        const orr_code code = take_number(orr_yaml_item(lists[i], k), early_keys[i], &v[i], err);
        if (code)
            return code;
        if (!(v[i] >= 0 && v[i] <= 1e15))
            return fail_early(lists, i, k, "expected a number from 0 to 1e15", err);
    }
    const uint64_t beside = links_beside(c, k, (uint64_t)v[LINKS]);
    if (beside == 0)
        return fail_early(lists, LINKS, k, "too few for this topology", err);
    c->bandwidth[k] *= (double)beside;
    if (c->shape[k] == ORR_NET_SWITCH)
        c->latency_ns[k] += v[NIC] + v[ROUTER] / 2; /* of two hops */
    else if (c->shape[k] == ORR_NET_FULLY_CONNECTED)
        c->latency_ns[k] += 2 * v[NIC];
    else if (v[NIC] > 0)
        return fail_early(lists, NIC, k, "on a ring only 0 is possible", err);
    const double hops = c->shape[k] == ORR_NET_SWITCH ? 2 : 1;
    if (v[MEMORY_SCALE] * v[MEMORY_LATENCY] > hops * c->latency_ns[k] ||
        v[MEMORY_SCALE] * c->bandwidth[k] > v[MEMORY_BANDWIDTH])
        return fail_early(lists, MEMORY_SCALE, k,
                          "the memory would be slower than the network, which is not modelled",
                          err);
    return ORR_OK;
}

/* Lists from that of NICs on are optional. */
static orr_code take_early_lists(orr_yaml_value root,
                                 orr_yaml_value lists[EARLY_LISTS],
                                 orr_error *err)
{
    orr_yaml_value v;
    orr_code code = take_lists(root, early_keys, NIC, lists, err);
    for (unsigned i = NIC; i < EARLY_LISTS && !code; i++) {
        const char *const two[2] = {early_keys[0], early_keys[i]};
        orr_yaml_value pair[2] = {lists[0], lists[0]};
        if (orr_yaml_find(root, early_keys[i], &v)) {
            code = take_lists(root, two, 2, pair, err);
            lists[i] = pair[1];
        }
    }
    return code;
}

static orr_code take_early_network(orr_yaml_value root, orr_net_config *c, orr_error *err)
{
    orr_yaml_value lists[EARLY_LISTS] = {0};
    orr_code code = take_early_lists(root, lists, err);
    if (!code)
        code = take_dims_of(lists, c, err);
    for (uint32_t k = 0; k < c->dims && !code; k++)
        code = take_early_dimension(lists, k, c, err);
    return code;
}

static orr_code take_network(orr_yaml_value root, orr_net_config *c, orr_error *err)
{
    static const char *const keys[4] = {"topology", "npus_count", "bandwidth", "latency"};
    orr_yaml_value lists[4], name;
    if (orr_yaml_find(root, "topology-name", &name) || orr_yaml_find(root, early_keys[0], &name))
        return take_early_network(root, c, err);
    const orr_code code = take_lists(root, keys, 4, lists, err);
    return code ? code : take_dims_of(lists, c, err);
}

orr_code cfg_parse_network(orr_span bytes, const char *path, orr_net_config *out, orr_error *err)
{
    orr_yaml *y;
    *out = (orr_net_config){.where = orr_where_byte(path, ORR_NO_BYTE)};
    orr_code code = orr_yaml_open(bytes, path, &y, err);
    if (code)
        return code;
    code = take_network(orr_yaml_root(y), out, err);
    orr_yaml_close(y);
    return code;
}

/* Keys that people use for comments. */
static bool is_remark(orr_str key)
{
    static const char *const words[] = {"comment", "description", "name", NULL};
    for (size_t i = 0; words[i]; i++)
        if (key.len == strlen(words[i]) && memcmp(key.ptr, words[i], key.len) == 0)
            return true;
    return key.len && memchr("_#/", key.ptr[0], 3);
}

orr_code cfg_unknown_key(orr_str key,
                         orr_where w,
                         const char *const *keys,
                         const char *list,
                         cfg_notes *notes,
                         orr_error *err)
{
    const int shown = (int)(key.len < 60 ? key.len : 60);
    const char *near = orr_nearest(key, keys);
    char all[200], text[400];
    orr_error why;
    orr_list_words(keys, all, sizeof all);
    if (near)
        orr_fail(&why, ORR_EINPUT, &w, "unknown key \"%.*s\"; did you mean \"%s\"?", shown, key.ptr,
                 near);
    else
        orr_fail(&why, ORR_EINPUT, &w, "unknown key \"%.*s\" (%s)", shown, key.ptr,
                 list ? list : all);
    if (!notes->arena) {
        if (err)
            *err = why;
        return ORR_EINPUT;
    }
    if (notes->count == CFG_NOTES)
        return ORR_OK;
    const char *line =
        orr_arena_print(notes->arena, "%s; it is ignored", orr_error_text(&why, text, sizeof text));
    if (!line)
        return orr_no_memory(err);
    notes->lines[notes->count++] = line;
    return ORR_OK;
}

orr_code cfg_check_network(orr_span bytes, const char *path, cfg_notes *notes, orr_error *err)
{
    static const char *const keys[] = {"topology", "npus_count", "bandwidth", "latency", NULL};
    orr_yaml *y;
    orr_yaml_value topology;
    orr_code code = orr_yaml_open(bytes, path, &y, err);
    if (code)
        return code;
    const orr_yaml_value root = orr_yaml_root(y);
    /* the early format has other keys */
    const bool is_ours = orr_yaml_find(root, "topology", &topology);
    for (uint32_t i = 0; is_ours && i < orr_yaml_count(root) && !code; i++) {
        const orr_str key = orr_yaml_text(orr_yaml_key(root, i));
        if (!is_listed(key, keys) && !is_remark(key))
            code =
                cfg_unknown_key(key, orr_yaml_where(orr_yaml_key(root, i)), keys, NULL, notes, err);
    }
    orr_yaml_close(y);
    return code;
}

orr_code orr_network_dims(const char *path, orr_net_config *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = cfg_parse_network(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

/* ---- JSON files ---- */

typedef struct json_file {
    orr_input *in;
    orr_json *j;
    orr_json_value root;
} json_file;

static void close_json(json_file *f)
{
    orr_json_close(f->j);
    orr_input_close(f->in);
}

static orr_code open_json(const char *path, json_file *f, orr_error *err)
{
    *f = (json_file){0};
    orr_code code = orr_input_open(path, &f->in, err);
    if (!code)
        code = orr_json_open(orr_input_bytes(f->in), path, &f->j, err);
    if (!code)
        code = orr_json_only(f->j, &f->root, err);
    if (!code && orr_json_type_of(f->root) != ORR_JSON_OBJECT) {
        const orr_where w = orr_json_where(f->root);
        code = orr_fail(err, ORR_EINPUT, &w, "expected an object");
    }
    if (code)
        close_json(f);
    return code;
}

/* ---- remote memory ---- */

static orr_code take_unsigned(orr_json_value root, const char *key, uint64_t *out, orr_error *err)
{
    orr_json_value v;
    double d;
    if (!orr_json_find(root, key, &v))
        return ORR_OK;
    const orr_where w = orr_json_where(v);
    if (orr_json_type_of(v) != ORR_JSON_INT && orr_json_type_of(v) != ORR_JSON_REAL)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a number", key);
    const orr_code code = orr_json_get_double(v, &d, err);
    if (code)
        return code;
    if (!(d >= 0 && d <= 1e15))
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a number from 0 to 1e15", key);
    *out = (uint64_t)d;
    return ORR_OK;
}

static orr_code take_memory(orr_json_value root, cfg_memory *out, orr_error *err)
{
    static const char *const names[] = {"NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION",
                                        "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"};
    orr_json_value v;
    orr_str s = {"", 0};
    const orr_where top = orr_json_where(root);
    if (!orr_json_find(root, "memory-type", &v) || orr_json_type_of(v) != ORR_JSON_STRING)
        return orr_fail(err, ORR_EINPUT, &top, "the key \"memory-type\" is missing or not a text");
    orr_code code = orr_json_get_str(v, &s, err);
    bool is_known = false;
    uint64_t bandwidth = 0;
    for (unsigned i = 0; i < 4 && !code; i++)
        if (strlen(names[i]) == s.len && memcmp(names[i], s.ptr, s.len) == 0) {
            out->type = (cfg_memory_type)i;
            is_known = true;
        }
    const orr_where w = orr_json_where(v);
    if (!code && !is_known)
        code = orr_fail(err, ORR_EINPUT, &w, "unknown memory-type \"%.*s\"", (int)s.len, s.ptr);
    out->npus_per_node = 1;
    if (!code)
        code = take_unsigned(root, "remote-mem-latency", &out->latency, err);
    if (!code)
        code = take_unsigned(root, "remote-mem-bw", &bandwidth, err);
    out->bandwidth = (double)bandwidth;
    if (!code)
        code = take_unsigned(root, "num-npus-per-node", &out->npus_per_node, err);
    if (!code && out->npus_per_node == 0)
        code = orr_fail(err, ORR_EINPUT, &top, "num-npus-per-node must be above 0");
    return code;
}

static orr_code check_members(orr_json_value root,
                              const char *const *keys,
                              cfg_notes *notes,
                              orr_error *err)
{
    orr_json_value v;
    orr_str key;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(root); !code && orr_json_next_member(&it, &key, &v);)
        if (!is_listed(key, keys) && !is_remark(key))
            code = cfg_unknown_key(key, orr_json_where(v), keys, NULL, notes, err);
    return code;
}

orr_code cfg_read_memory(const char *path, cfg_notes *notes, cfg_memory *out, orr_error *err)
{
    static const char *const keys[] = {"memory-type",       "remote-mem-latency", "remote-mem-bw",
                                       "num-npus-per-node", "num-nodes",          NULL};
    json_file f;
    *out = (cfg_memory){.npus_per_node = 1};
    orr_code code = open_json(path, &f, err);
    if (code)
        return code;
    code = take_memory(f.root, out, err);
    if (!code)
        code = check_members(f.root, keys, notes, err);
    close_json(&f);
    return code;
}

/* ---- logical topology ---- */

static orr_code take_logical_dim(orr_json_value v, uint32_t *out, orr_error *err)
{
    const orr_where w = orr_json_where(v);
    orr_str s = orr_json_raw(v);
    uint64_t count;
    orr_code code = ORR_OK;
    if (orr_json_type_of(v) == ORR_JSON_STRING)
        code = orr_json_get_str(v, &s, err);
    if (code)
        return code;
    if (!orr_text_u64(s, &count) || count == 0 || count > 1u << 24)
        return orr_fail(err, ORR_EINPUT, &w,
                        "logical-dims: expected a number of ranks, e.g. \"8\", not %.*s",
                        (int)(s.len < 40 ? s.len : 40), s.ptr);
    *out = (uint32_t)count;
    return ORR_OK;
}

static orr_code take_logical(orr_json_value root, orr_net_config *out, orr_error *err)
{
    orr_json_value v;
    out->dims = 1;
    out->npus[0] = 1; /* as in the reference */
    if (!orr_json_find(root, "logical-dims", &v))
        return ORR_OK;
    const orr_where w = orr_json_where(v);
    if (orr_json_type_of(v) != ORR_JSON_ARRAY || orr_json_count(v) == 0 ||
        orr_json_count(v) > ORR_NET_DIMS)
        return orr_fail(err, ORR_EINPUT, &w, "logical-dims: expected a list of 1 to %d numbers",
                        ORR_NET_DIMS);
    out->dims = 0;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_value(&it, &v);)
        code = take_logical_dim(v, &out->npus[out->dims++], err);
    return code;
}

/* A file that is not JSON is a network file, of which only the numbers of ranks are used. */
static orr_code read_logical_network(const char *path, orr_net_config *out, orr_error *err)
{
    orr_net_config c;
    const orr_code code = orr_network_dims(path, &c, err);
    out->dims = code ? 0 : c.dims;
    for (uint32_t k = 0; k < out->dims; k++)
        out->npus[k] = c.npus[k];
    return code;
}

orr_code cfg_read_logical(const char *path, cfg_notes *notes, orr_net_config *out, orr_error *err)
{
    static const char *const keys[] = {"logical-dims", NULL};
    json_file f;
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const bool is_json = cfg_begins_object(orr_input_bytes(in));
    orr_input_close(in);
    if (!is_json)
        return read_logical_network(path, out, err);
    code = open_json(path, &f, err);
    if (code)
        return code;
    code = take_logical(f.root, out, err);
    if (!code)
        code = check_members(f.root, keys, notes, err);
    close_json(&f);
    return code;
}

/* ---- groups ---- */

static int compare_members(const void *a, const void *b, void *members)
{
    const uint32_t *m = members, i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return m[i] != m[j] ? (m[i] < m[j] ? -1 : 1) : (i < j ? -1 : i > j);
}

bool cfg_group_sort(cfg_group *g, uint32_t *twice)
{
    for (uint32_t i = 0; i < g->count; i++)
        g->place[i] = i;
    qsort_r(g->place, g->count, sizeof *g->place, compare_members, g->members);
    for (uint32_t i = 0; i < g->count; i++) {
        g->sorted[i] = g->members[g->place[i]];
        if (i && g->sorted[i] == g->sorted[i - 1]) {
            *twice = g->sorted[i];
            return false;
        }
    }
    return true;
}

uint32_t cfg_group_index(const cfg_group *g, uint32_t rank)
{
    uint32_t low = 0, high = g->count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->sorted[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->count && g->sorted[low] == rank ? g->place[low] : RUN_NONE;
}

static orr_code take_group(
    orr_str key, orr_json_value list, orr_arena *a, cfg_group *g, orr_error *err)
{
    orr_json_value v;
    uint64_t rank;
    if (!orr_text_i64(key, &g->id) || g->id <= 0) {
        const orr_where w = orr_json_where(list);
        return orr_fail(err, ORR_EINPUT, &w, "\"%.*s\" is not a group number above 0", (int)key.len,
                        key.ptr);
    }
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) == 0) {
        const orr_where w = orr_json_where(list);
        return orr_fail(err, ORR_EINPUT, &w, "group %lld: expected a list of ranks",
                        (long long)g->id);
    }
    g->members = orr_arena_new(a, orr_json_count(list), uint32_t);
    g->sorted = orr_arena_new(a, orr_json_count(list), uint32_t);
    g->place = orr_arena_new(a, orr_json_count(list), uint32_t);
    if (!g->members || !g->sorted || !g->place)
        return orr_no_memory(err);
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        const orr_code code = orr_json_get_u64(v, &rank, err);
        if (code)
            return code;
        if (rank > 1u << 30) {
            const orr_where at = orr_json_where(v);
            return orr_fail(err, ORR_EINPUT, &at, "rank %llu is too large",
                            (unsigned long long)rank);
        }
        g->members[g->count++] = (uint32_t)rank;
    }
    uint32_t twice;
    if (cfg_group_sort(g, &twice))
        return ORR_OK;
    const orr_where w = orr_json_where(list);
    return orr_fail(err, ORR_EINPUT, &w, "group %lld has rank %u twice", (long long)g->id, twice);
}

static orr_code copy_group(const orr_group *from, orr_arena *a, cfg_group *g, orr_error *err)
{
    uint32_t twice;
    *g = (cfg_group){.id = (int64_t)from->id, .count = from->count};
    g->members = orr_arena_new(a, from->count, uint32_t);
    g->sorted = orr_arena_new(a, from->count, uint32_t);
    g->place = orr_arena_new(a, from->count, uint32_t);
    if (!g->members || !g->sorted || !g->place)
        return orr_no_memory(err);
    memcpy(g->members, from->ranks, from->count * sizeof *g->members);
    if (cfg_group_sort(g, &twice))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL, "group %lld of the trace set has rank %u twice",
                    (long long)g->id, twice);
}

orr_code cfg_copy_groups(const orr_set *set, orr_arena *a, cfg_groups *out, orr_error *err)
{
    const uint32_t count = orr_set_group_count(set);
    orr_code code = ORR_OK;
    *out = (cfg_groups){.by_id = orr_map_create(count)};
    if (!out->by_id || !orr_grow(&out->groups, &out->room, (size_t)count + 1))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_group from = orr_set_group(set, i);
        code = copy_group(&from, a, &out->groups[i], err);
        if (!code && !orr_map_put(out->by_id, from.id, (uint32_t)out->count++, NULL))
            code = orr_no_memory(err);
    }
    return code;
}

orr_code cfg_read_groups(const char *path, orr_arena *a, cfg_groups *out, orr_error *err)
{
    json_file f;
    orr_json_value list;
    orr_str key;
    *out = (cfg_groups){0};
    orr_code code = open_json(path, &f, err);
    if (code)
        return code;
    out->by_id = orr_map_create(0);
    if (!out->by_id)
        code = orr_no_memory(err);
    for (orr_json_iter it = orr_json_iterate(f.root);
         !code && orr_json_next_member(&it, &key, &list);) {
        if (!orr_grow(&out->groups, &out->room, out->count + 1)) {
            code = orr_no_memory(err);
            break;
        }
        cfg_group *g = &out->groups[out->count];
        *g = (cfg_group){0};
        code = take_group(key, list, a, g, err);
        if (!code && !orr_map_put(out->by_id, (uint64_t)g->id, (uint32_t)out->count++, NULL))
            code = orr_no_memory(err);
    }
    close_json(&f);
    return code;
}
