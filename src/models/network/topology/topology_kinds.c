/* SPDX-License-Identifier: Apache-2.0 */
/* topology_kinds.c - the kind of a topology file, and conversion between topologies and cables.
 *
 * The reference's hosts do not forward.  A torus, or rails that meet only in servers, cannot work
 * like that; there hosts do forward.  It is unnecessary if all hosts are attached to one connected
 * set of switches, or directly to each other. */
#include "topology_kinds.h"

#include "base/formats/xml.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "models/network/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- kinds ---- */

static bool is_number(orr_str s)
{
    const size_t at =
        s.len > 1 && (s.ptr[0] == '-' || s.ptr[0] == '+'); /* the reader reports the error */
    return s.len > 0 && s.ptr[at] >= '0' && s.ptr[at] <= '9';
}

static bool is_htsim_key(orr_str s)
{
    static const char *const keys[] = {"nodes", "tiers", "podsize", "tier"};
    for (unsigned k = 0; k < 4; k++) {
        size_t i = 0;
        while (i < s.len && keys[k][i] && (s.ptr[i] | 0x20) == keys[k][i])
            i++;
        if (i == s.len && !keys[k][i])
            return true;
    }
    return false;
}

/* YAML begins with a key and its colon, or with a bracket, a quote or a dash; JSON with a
 * bracket. */
static bool is_yaml(orr_str s)
{
    return memchr(s.ptr, ':', s.len) || memchr("{[\"'-%", s.ptr[0], 6);
}

orr__topology_kind orr__topology_kind_of(orr_span bytes)
{
    orr__words w;
    orr_str word, next;
    if (orr_xml_looks_like(bytes))
        return ORR__KIND_NCCL;
    if (orr__topology_is_smi(bytes))
        return ORR__KIND_SMI;
    orr__words_init(&w, bytes, "");
    while (orr__words_next(&w, &word)) {
        if (word.ptr[0] == '#') {
            orr__words_skip_line(&w);
            continue;
        }
        if (is_number(word))
            return ORR__KIND_NS3;
        if (is_htsim_key(word) && orr__words_next(&w, &next) && is_number(next))
            return ORR__KIND_HTSIM;
        return is_yaml(word) ? ORR__KIND_YAML : ORR__KIND_CONFIG;
    }
    return ORR__KIND_CONFIG;
}

orr_code orr__topology_kind_at(const char *path, orr__topology_kind *out, orr_error *err)
{
    orr_input *in;
    *out = ORR__KIND_YAML;
    if (orr_text_ends(path, ".yml") || orr_text_ends(path, ".yaml") || orr_text_ends(path, ".json"))
        return ORR_OK;
    const orr_code code = orr_input_open(path, &in, err);
    *out = ORR__KIND_CONFIG;
    if (code)
        return code == ORR_ENOMEM ? code : ORR_OK;
    *out = orr__topology_kind_of(orr_input_bytes(in));
    orr_input_close(in);
    return ORR_OK;
}

/* ---- must hosts forward? ---- */

static uint32_t root_of(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static void join_switches(const orr__cabling *c, uint32_t *parent)
{
    for (uint32_t i = 0; i < c->nodes; i++)
        parent[i] = i;
    for (size_t i = 0; i < c->cable_count; i++) {
        const orr__cable *l = &c->cables[i];
        if (c->kinds[l->a] != ORR__HOST && c->kinds[l->b] != ORR__HOST)
            parent[root_of(parent, l->a)] = root_of(parent, l->b);
    }
}

/* Do all hosts have a cable into this set of switches?  seen[host]: 1 + the set it was last counted
 * in. */
static bool has_all_hosts(const orr__cabling *c, uint32_t *parent, uint32_t *seen, uint32_t set)
{
    uint32_t count = 0;
    for (size_t i = 0; i < 2 * c->cable_count; i++) {
        const orr__cable *l = &c->cables[i / 2];
        const uint32_t host = i % 2 ? l->b : l->a, other = i % 2 ? l->a : l->b;
        if (c->kinds[host] != ORR__HOST || c->kinds[other] == ORR__HOST ||
            root_of(parent, other) != set || seen[host] == set + 1)
            continue;
        seen[host] = set + 1;
        count++;
    }
    return count == c->hosts;
}

/* Such a set must include the first host too. */
static bool is_one_set(const orr__cabling *c, uint32_t *parent, uint32_t *seen)
{
    uint32_t first = 0, last = UINT32_MAX;
    while (c->kinds[first] != ORR__HOST)
        first++;
    for (size_t i = 0; i < c->cable_count; i++) {
        const orr__cable *l = &c->cables[i];
        const uint32_t other = l->a == first ? l->b : l->a;
        if ((l->a != first && l->b != first) || c->kinds[other] == ORR__HOST)
            continue;
        const uint32_t set = root_of(parent, other);
        if (set != last && has_all_hosts(c, parent, seen, set))
            return true;
        last = set;
    }
    return false;
}

static bool are_all_joined(const orr__cabling *c)
{
    uint64_t direct = 0;
    for (size_t i = 0; i < c->cable_count; i++)
        direct += c->kinds[c->cables[i].a] == ORR__HOST && c->kinds[c->cables[i].b] == ORR__HOST;
    return direct >= (uint64_t)c->hosts * (c->hosts - 1) / 2;
}

bool orr__cabling_needs_hosts(const orr__cabling *c)
{
    uint32_t *all = orr_alloc((size_t)c->nodes * 2, sizeof *all);
    bool is_one = false;
    if (all) {
        join_switches(c, all);
        is_one = is_one_set(c, all, all + c->nodes);
    }
    orr_free(all);
    return !is_one && !are_all_joined(c);
}

/* The first link of a host. */
static orr_where where_of(const orr__cabling *c, uint32_t host, const char *path)
{
    for (size_t i = 0; i < c->cable_count; i++)
        if (c->cables[i].a == host || c->cables[i].b == host)
            return orr__cable_where(&c->cables[i], path);
    return orr_where_byte(path, ORR_NO_BYTE);
}

orr_code orr__cabling_check_whole(const orr__cabling *c, const char *path, orr_error *err)
{
    uint32_t *parent = orr_alloc(c->nodes, sizeof *parent);
    uint32_t first = UINT32_MAX;
    orr_code code = parent ? ORR_OK : orr_no_memory(err);
    for (uint32_t i = 0; i < c->nodes && !code; i++)
        parent[i] = i;
    for (size_t i = 0; i < c->cable_count && !code; i++)
        parent[root_of(parent, c->cables[i].a)] = root_of(parent, c->cables[i].b);
    for (uint32_t i = 0; i < c->nodes && !code; i++) {
        if (c->kinds[i] != ORR__HOST)
            continue;
        first = first == UINT32_MAX ? i : first;
        if (root_of(parent, i) == root_of(parent, first))
            continue;
        const orr_where w = where_of(c, i, path);
        code = orr_fail(err, ORR_EINPUT, &w, "no links lead from host %u to host %u", first, i);
    }
    orr_free(parent);
    return code;
}

/* ---- topologies from cables ---- */

static orr_code name_devices(const orr__cabling *c,
                             orr__topology *t,
                             uint32_t *device,
                             orr_error *err)
{
    char text[NET_DEVICE_NAME];
    uint32_t rank = 0;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < c->nodes && !code; i++) {
        if (c->kinds[i] == ORR__HOST) {
            device[i] = rank++;
            continue;
        }
        const bool is_nv = c->kinds[i] == ORR__NVSWITCH;
        snprintf(text, sizeof text, "%sswitch%u", is_nv ? "nv" : "", i);
        code = orr__topology_add_switch(t, orr_str_of(text), &device[i], err);
        if (!code && is_nv)
            code = orr__topology_mark_nvswitch(t, device[i], err);
    }
    return code;
}

/* Of equally short routes those through NVSwitches are preferred (packet-network.md 13): the
 * discount on their links totals less than one link. */
static uint32_t cost_of(const orr__topology *t, uint32_t a, uint32_t b)
{
    enum { LINK = 4096 };
    if (!t->is_nvswitch)
        return 1;
    return orr__topology_is_nvswitch(t, a) || orr__topology_is_nvswitch(t, b) ? LINK - 1 : LINK;
}

static orr_code copy_cables(const orr__cabling *c,
                            orr__topology *t,
                            const uint32_t *device,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->cable_count && !code; i++) {
        const orr__cable *l = &c->cables[i];
        const uint32_t a = device[l->a], b = device[l->b];
        const orr__wire link = {.from = a,
                                .to = b,
                                .speed = (double)l->rate / 8e9,
                                .latency = (double)l->delay_ps / 1000,
                                .error = l->error,
                                .cost = cost_of(t, a, b)};
        code = orr__topology_add_cable(t, &link, err);
    }
    return code;
}

/* Hosts become ranks in numerical order.  Shortest routes and preferences are preserved. */
static orr_code make_topology(const orr__cabling *c,
                              size_t most_links,
                              orr__topology **out,
                              orr_error *err)
{
    uint32_t *device = orr_alloc(c->nodes, sizeof *device);
    *out = NULL;
    orr_code code = device ? orr__topology_create(out, err) : orr_no_memory(err);
    if (!code) {
        orr__topology *t = *out;
        t->most_links = most_links;
        t->ranks = t->npus[0] = c->hosts;
        t->dims = 1;
        t->gpus_per_server = c->gpus_per_server;
        t->ranks_forward = orr__cabling_needs_hosts(c);
        code = name_devices(c, t, device, err);
        if (!code)
            code = copy_cables(c, t, device, err);
    }
    if (code) {
        orr__topology_destroy(*out);
        *out = NULL;
    }
    orr_free(device);
    return code;
}

/* ---- cables from a topology ---- */

static bool is_way_back(const orr__wire *a, const orr__wire *b)
{
    return a->from == b->to && a->to == b->from && a->speed == b->speed &&
           a->latency == b->latency && a->is_failed == b->is_failed && a->error == b->error &&
           a->cost == b->cost;
}

static orr_code add_cable(orr__cabling *c, const orr__wire *l, orr_error *err)
{
    const double bits = l->speed * 8e9;
    if (!(bits >= 1 && bits <= 1e15) || !(l->latency >= 0 && l->latency <= 1e12))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the speed or latency of a link is out of range for the packet model");
    if (!orr_grow(&c->cables, &c->cable_room, c->cable_count + 1))
        return orr_no_memory(err);
    c->cables[c->cable_count++] = (orr__cable){.a = l->from,
                                               .b = l->to,
                                               .rate = (uint64_t)rint(bits),
                                               .delay_ps = (uint64_t)rint(l->latency * 1000),
                                               .error = l->error,
                                               .cost = l->cost};
    return ORR_OK;
}

/* Links there have one direction; each one and its reverse form a cable.  Reverse links by their
 * ends, in chains. */
typedef struct ways_back {
    orr_map *first;
    uint32_t *next; /* by link: the next with the same ends */
} ways_back;

#define NO_LINK UINT32_MAX

static bool list_ways_back(ways_back *w, const orr__topology *t)
{
    w->first = orr_map_create(t->link_count);
    w->next = orr_alloc(t->link_count + 1, sizeof *w->next);
    if (!w->first || !w->next)
        return false;
    for (size_t i = t->link_count; i-- > 0;) {
        const orr__wire *l = &t->links[i];
        const uint64_t ends = (uint64_t)l->to << 32 | l->from;
        w->next[i] = orr_map_find(w->first, ends, NO_LINK);
        if (l->from > l->to && !orr_map_put(w->first, ends, (uint32_t)i, NULL))
            return false;
    }
    return true;
}

/* Removes the first unused reverse of link i from its chain. */
static bool take_way_back(ways_back *w, const orr__topology *t, size_t i)
{
    const orr__wire *l = &t->links[i];
    const uint64_t ends = (uint64_t)l->from << 32 | l->to;
    uint32_t before = NO_LINK, at = orr_map_find(w->first, ends, NO_LINK);
    while (at != NO_LINK && !is_way_back(l, &t->links[at])) {
        before = at;
        at = w->next[at];
    }
    if (at == NO_LINK)
        return false;
    if (before != NO_LINK)
        w->next[before] = w->next[at];
    return before != NO_LINK || orr_map_put(w->first, ends, w->next[at], NULL);
}

static orr_code make_cables(orr__cabling *c, const orr__topology *t, ways_back *w, orr_error *err)
{
    size_t used = 0;
    orr_code code = list_ways_back(w, t) ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < t->link_count && !code; i++) {
        if (t->links[i].from > t->links[i].to || !take_way_back(w, t, i))
            continue;
        used += 2;
        if (!t->links[i].is_failed)
            code = add_cable(c, &t->links[i], err);
    }
    if (!code && used != t->link_count)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "the packet model needs links that are equal in both directions: no "
                        "one_way, and no change of one direction");
    return code;
}

orr_code orr__cabling_of_topology(orr__cabling *c, const orr__topology *t, orr_error *err)
{
    ways_back w = {0};
    c->nodes = orr__topology_devices(t);
    c->hosts = t->ranks;
    if (!(c->kinds = orr_alloc(c->nodes, 1)))
        return orr_no_memory(err);
    memset(c->kinds + t->ranks, ORR__SWITCH, c->nodes - t->ranks);
    const orr_code code = make_cables(c, t, &w, err);
    orr_map_destroy(w.first);
    orr_free(w.next);
    return code;
}

/* ---- any kind ---- */

static orr_code parse_cables(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    orr__cabling c = {0};
    *out = NULL;
    orr_code code = orr__cabling_parse(&c, bytes, path, err);
    if (!code)
        code = make_topology(&c, most_links, out, err);
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = orr_where_byte(path, ORR_NO_BYTE);
    orr__cabling_fini(&c);
    return code;
}

orr_code orr__topology_parse_any(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    switch (orr__topology_kind_of(bytes)) {
    case ORR__KIND_NS3:
        return parse_cables(bytes, path, most_links, out, err);
    case ORR__KIND_NCCL:
        return orr__topology_parse_nccl(bytes, path, most_links, out, err);
    case ORR__KIND_SMI:
        return orr__topology_parse_smi(bytes, path, most_links, out, err);
    case ORR__KIND_HTSIM:
        return orr__htsim_topo_parse(bytes, path, most_links, out, err);
    default:
        return orr__topology_parse(bytes, path, most_links, out, err);
    }
}

/* ---- the public functions ---- */

orr_code orr_topology_parse(orr_span text, const char *name, orr_topology **out, orr_error *err)
{
    const orr_where where = orr_where_byte(name, ORR_NO_BYTE);
    *out = NULL;
    orr_code code = orr__topology_kind_of(text) == ORR__KIND_CONFIG
                        ? ORR_OK
                        : orr__topology_parse_any(text, name, ORR__MOST_LINKS, out, err);
    if (!code && !*out)
        code = orr_fail(err, ORR_EINPUT, &where,
                        "not a topology with links (docs/format/topology.md)");
    return code;
}

orr_code orr_topology_open(const char *path, orr_topology **out, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_topology_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

bool orr_topology_recognise(const char *path)
{
    orr__topology_kind kind;
    orr_error unused;
    return !orr__topology_kind_at(path, &kind, &unused) && kind != ORR__KIND_CONFIG;
}

void orr_topology_destroy(orr_topology *t)
{
    orr__topology_destroy(t);
}
