/* SPDX-License-Identifier: Apache-2.0 */
/* topology_shapes.c - well-known networks from a few numbers: one switch, leaf-spine, fat-tree,
 * torus, dragonfly, servers with fast links inside, rails.
 *
 * Each shape is a function that reads its own keys and adds switches and cables;
 * docs/format/topology.md draws them.  To add one: a function, its keys, a row in `shapes`, a
 * section there, a test with its counts. */
#include "topology.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_PORTS = 4096 };

/* Where a shape stands while it is built.  The first failure is kept; what follows it does
 * nothing. */
typedef struct builder {
    orr__topology *t;
    orr_yaml_value map;
    const orr__link_defaults *otherwise;
    orr_error *err;
    orr_code code;
} builder;

static void take(builder *b, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
    if (!b->code)
        b->code = orr_yaml_take_u64(b->map, key, min, max, out, b->err);
}

static uint64_t need(builder *b, const char *key, uint64_t min, uint64_t max)
{
    orr_yaml_value v;
    uint64_t out = min;
    if (!b->code)
        b->code = orr_yaml_need(b->map, key, &v, b->err);
    take(b, key, min, max, &out);
    return out;
}

static orr__link_defaults speed_of(builder *b,
                                   const char *name,
                                   const orr__link_defaults *otherwise)
{
    orr__link_defaults out = {1, 0};
    if (!b->code)
        b->code = orr__topology_take_speed(b->map, name, otherwise, &out, b->err);
    return out;
}

static void refuse(builder *b, const char *why)
{
    const orr_where w = orr_yaml_where(b->map);
    if (!b->code)
        b->code = orr_fail(b->err, ORR_EINPUT, &w, "%s", why);
}

static void set_ranks(builder *b, uint64_t ranks)
{
    const orr_where w = orr_yaml_where(b->map);
    if (!b->code && (ranks < 2 || ranks > b->t->most_links))
        b->code =
            orr_fail(b->err, ORR_EINPUT, &w, "this makes %" PRIu64 " ranks; expected 2 to %zu",
                     ranks, b->t->most_links);
    b->t->ranks = b->code ? 2 : (uint32_t)ranks;
}

/* count switches NAME0, NAME1, ...; the device of the first. */
static uint32_t add_switches(builder *b, const char *name, uint64_t count)
{
    char text[NET_DEVICE_NAME];
    const uint32_t first = orr__topology_devices(b->t);
    for (uint32_t i = 0; i < count && !b->code; i++) {
        snprintf(text, sizeof text, "%s%u", name, i);
        b->code = orr__topology_add_switch(b->t, orr_str_of(text), NULL, b->err);
    }
    return first;
}

/* rows x columns switches NAME0.0, NAME0.1, ... */
static uint32_t add_grid(builder *b, const char *name, uint64_t rows, uint64_t columns)
{
    char text[NET_DEVICE_NAME];
    const uint32_t first = orr__topology_devices(b->t);
    for (uint64_t i = 0; i < rows * columns && !b->code; i++) {
        snprintf(text, sizeof text, "%s%u.%u", name, (uint32_t)(i / columns),
                 (uint32_t)(i % columns));
        b->code = orr__topology_add_switch(b->t, orr_str_of(text), NULL, b->err);
    }
    return first;
}

static void cable(
    builder *b, uint64_t from, uint64_t to, const orr__link_defaults *speed, uint32_t cost)
{
    const orr__wire link = {.from = (uint32_t)from,
                            .to = (uint32_t)to,
                            .cost = cost,
                            .speed = speed->speed,
                            .latency = speed->latency};
    if (!b->code)
        b->code = orr__topology_add_cable(b->t, &link, b->err);
}

/* ---- switch: all ranks on one ---- */

static const char *const switch_keys[] = {"type", "ranks", "bandwidth", "latency", NULL};

static void make_switch(builder *b)
{
    const uint64_t ranks = need(b, "ranks", 2, ORR__MOST_RANKS);
    const orr__link_defaults speed = speed_of(b, NULL, b->otherwise);
    set_ranks(b, ranks);
    const uint32_t hub = add_switches(b, "switch", 1);
    for (uint64_t r = 0; r < ranks && !b->code; r++)
        cable(b, r, hub, &speed, 1);
}

/* ---- leaf-spine: ranks on leaves, each leaf on each spine ---- */

static const char *const leaf_spine_keys[] = {
    "type",      "ranks",   "ranks_per_leaf", "spines",          "links_per_spine",
    "bandwidth", "latency", "spine_latency",  "spine_bandwidth", "oversubscription",
    NULL};

/* What enters a full leaf from its ranks, against what may leave it to the spines: instead of a
 * speed up there. */
static orr__link_defaults oversubscribed(builder *b,
                                         uint64_t down_links,
                                         uint64_t up_links,
                                         const orr__link_defaults *down)
{
    orr__link_defaults up = speed_of(b, "spine", down);
    orr_yaml_value v;
    double ratio = 0;
    if (!b->code)
        b->code = orr_yaml_take_number(b->map, "oversubscription", 0.001, 1000, &ratio, b->err);
    if (ratio > 0 && orr_yaml_find(b->map, "spine_bandwidth", &v))
        refuse(b, "oversubscription and spine_bandwidth: one follows from the other");
    if (ratio > 0)
        up.speed = down->speed * (double)down_links / ((double)up_links * ratio);
    return up;
}

static void make_leaf_spine(builder *b)
{
    uint64_t links = 1;
    const uint64_t ranks = need(b, "ranks", 2, ORR__MOST_RANKS);
    const uint64_t per_leaf = need(b, "ranks_per_leaf", 1, ORR__MOST_RANKS);
    const uint64_t spines = need(b, "spines", 1, MOST_PORTS);
    take(b, "links_per_spine", 1, MOST_PORTS, &links);
    const orr__link_defaults down = speed_of(b, NULL, b->otherwise);
    const orr__link_defaults up = oversubscribed(b, per_leaf, spines * links, &down);
    set_ranks(b, ranks);
    const uint64_t leaves = (ranks + per_leaf - 1) / per_leaf;
    const uint32_t leaf = add_switches(b, "leaf", leaves);
    const uint32_t spine = add_switches(b, "spine", spines);
    for (uint64_t r = 0; r < ranks && !b->code; r++)
        cable(b, r, leaf + r / per_leaf, &down, 1);
    for (uint64_t i = 0; i < leaves * spines * links && !b->code; i++)
        cable(b, leaf + i / (spines * links), spine + i / links % spines, &up, 1);
}

/* ---- fat-tree: three tiers of switches with k ports ---- */

static const char *const fat_tree_keys[] = {"type", "k", "ranks", "bandwidth", "latency", NULL};

static void make_fat_tree(builder *b)
{
    const uint64_t k = need(b, "k", 2, 512), half = k / 2;
    uint64_t ranks = k * half * half;
    const uint64_t all = ranks;
    take(b, "ranks", 2, all, &ranks);
    if (k % 2)
        refuse(b, "k: a fat tree needs switches with an even number of ports");
    const orr__link_defaults speed = speed_of(b, NULL, b->otherwise);
    set_ranks(b, ranks);
    const uint32_t edge = add_grid(b, "edge", k, half);
    const uint32_t middle = add_grid(b, "aggregate", k, half);
    const uint32_t core = add_switches(b, "core", half * half);
    for (uint64_t r = 0; r < ranks && !b->code; r++)
        cable(b, r, edge + r / half, &speed, 1);
    for (uint64_t i = 0; i < k * half * half && !b->code; i++) {
        const uint64_t pod = i / (half * half), own = i / half % half, other = i % half;
        cable(b, edge + pod * half + own, middle + pod * half + other, &speed, 1);
    }
    for (uint64_t i = 0; i < k * half * half && !b->code; i++) {
        const uint64_t own = i / half, other = i % half;
        cable(b, middle + own, core + own % half * half + other, &speed, 1);
    }
}

/* ---- torus: rings in every dimension ---- */

static const char *const torus_keys[] = {"type", "size", "bandwidth", "latency", NULL};

/* A value for all dimensions, or a list with one each. */
static orr_yaml_value for_dimension(orr_yaml_value v, uint32_t k)
{
    return orr_yaml_type_of(v) == ORR_YAML_LIST ? orr_yaml_item(v, k) : v;
}

static void take_torus_dimension(
    builder *b, orr_yaml_value size, uint32_t k, orr_net_config *c, orr__link_defaults *speed)
{
    orr_yaml_value v;
    uint64_t n = 2;
    if (!b->code)
        b->code = orr_yaml_get_u64(orr_yaml_item(size, k), "size", 2, ORR__MOST_RANKS, &n, b->err);
    *speed = *b->otherwise;
    if (!b->code && orr_yaml_find(b->map, "bandwidth", &v))
        b->code = orr_yaml_get_rate(for_dimension(v, k), "bandwidth", &speed->speed, b->err);
    if (!b->code && orr_yaml_find(b->map, "latency", &v))
        b->code = orr_yaml_get_ns(for_dimension(v, k), "latency", &speed->latency, b->err);
    if (!(speed->speed > 0))
        refuse(b, "the key \"bandwidth\" is missing");
    c->shape[k] = ORR_NET_RING;
    c->npus[k] = (uint32_t)n;
}

static void make_torus(builder *b)
{
    orr_net_config c = {0};
    net_product p;
    orr__link_defaults one;
    double speed[ORR_NET_DIMS], latency[ORR_NET_DIMS];
    orr_yaml_value size = {b->map.doc, 0};
    uint64_t ranks = 1;
    if (!b->code)
        b->code = orr_yaml_need(b->map, "size", &size, b->err);
    c.dims = orr_yaml_count(size);
    if (orr_yaml_type_of(size) != ORR_YAML_LIST || c.dims < 1 || c.dims > ORR_NET_DIMS)
        refuse(b, "size: expected a list of 1 to 16 numbers of ranks");
    for (uint32_t k = 0; k < c.dims && !b->code; k++) {
        take_torus_dimension(b, size, k, &c, &one);
        speed[k] = one.speed;
        latency[k] = one.latency;
        ranks *= c.npus[k];
        if (ranks > ORR__MOST_RANKS)
            refuse(b, "size: more than 16777216 ranks");
    }
    set_ranks(b, ranks);
    if (b->code)
        return;
    net_product_init(&p, &c);
    b->code = orr__topology_add_product(b->t, &p, speed, latency, b->err);
}

/* ---- dragonfly: groups of routers, all connected inside, groups connected by global links ---- */

static const char *const dragonfly_keys[] = {
    "type",          "groups",           "routers",        "ranks_per_router",
    "global_links",  "bandwidth",        "latency",        "local_bandwidth",
    "local_latency", "global_bandwidth", "global_latency", NULL};

/* A group's ports for global links, a * h of them, are dealt out to the other groups in turn, so
 * that port j of group g leads to the group j % (groups - 1) + 1 further on.  Its partner is the
 * port of that group in the same round that leads back.  Ports of a last round that is not complete
 * stay free. */
static void add_global_links(builder *b,
                             uint64_t groups,
                             uint64_t routers,
                             uint64_t per_router,
                             uint32_t router,
                             const orr__link_defaults *speed)
{
    const uint64_t others = groups - 1, rounds = others ? routers * per_router / others : 0;
    for (uint64_t g = 0; g < groups && !b->code; g++)
        for (uint64_t j = 0; j < rounds * others && !b->code; j++) {
            const uint64_t ahead = j % others + 1, to = (g + ahead) % groups;
            const uint64_t back = j / others * others + groups - ahead - 1;
            if (g < to) /* each cable once */
                cable(b, router + g * routers + j / per_router,
                      router + to * routers + back / per_router, speed, 1);
        }
}

static void make_dragonfly(builder *b)
{
    const uint64_t routers = need(b, "routers", 1, MOST_PORTS);
    const uint64_t per_router = need(b, "ranks_per_router", 1, MOST_PORTS);
    uint64_t global = 1;
    take(b, "global_links", 1, MOST_PORTS, &global);
    uint64_t groups = routers * global + 1;
    take(b, "groups", 1, routers * global + 1, &groups);
    const orr__link_defaults speed = speed_of(b, NULL, b->otherwise);
    const orr__link_defaults local = speed_of(b, "local", &speed);
    const orr__link_defaults between = speed_of(b, "global", &speed);
    set_ranks(b, groups * routers * per_router);
    if (b->code)
        return;
    const uint32_t router = add_grid(b, "router", groups, routers);
    for (uint64_t r = 0; r < b->t->ranks && !b->code; r++)
        cable(b, r, router + r / per_router, &speed, 1);
    for (uint64_t i = 0; i < groups * routers && !b->code; i++)
        for (uint64_t j = i % routers + 1; j < routers && !b->code; j++)
            cable(b, router + i, router + i / routers * routers + j, &local, 1);
    add_global_links(b, groups, routers, global, router, &between);
}

/* Servers: domains with fast links inside, and a network of leaves and spines between them */

#define DOMAIN_KEYS                                                                              \
    "type", "domains", "ranks_per_domain", "domains_per_leaf", "spines", "bandwidth", "latency", \
        "nvlink_bandwidth", "nvlink_latency", "spine_bandwidth", "spine_latency"

static const char *const servers_keys[] = {DOMAIN_KEYS, "oversubscription", NULL};

/* A fast switch a domain, with its ranks on it.  Links between domains cost twice as much as these,
 * else a switch that two ranks of a domain share would be as near as their own. */
static void add_domains(builder *b,
                        uint64_t domains,
                        uint64_t each,
                        const orr__link_defaults *speed)
{
    const uint32_t inner = add_switches(b, "nvswitch", domains);
    for (uint64_t i = 0; i < domains && !b->code; i++)
        b->code = orr__topology_mark_nvswitch(b->t, inner + (uint32_t)i, b->err);
    for (uint64_t r = 0; r < domains * each && !b->code; r++)
        cable(b, r, inner + r / each, speed, 1);
    b->t->gpus_per_server = (uint32_t)each;
}

static void make_servers(builder *b)
{
    const uint64_t domains = need(b, "domains", 1, ORR__MOST_RANKS);
    const uint64_t each = need(b, "ranks_per_domain", 1, MOST_PORTS);
    uint64_t per_leaf = domains, spines = 0;
    take(b, "domains_per_leaf", 1, ORR__MOST_RANKS, &per_leaf);
    take(b, "spines", 0, MOST_PORTS, &spines);
    const orr__link_defaults speed = speed_of(b, NULL, b->otherwise);
    const orr__link_defaults inside = speed_of(b, "nvlink", &speed);
    const orr__link_defaults up = oversubscribed(b, per_leaf * each, spines ? spines : 1, &speed);
    const uint64_t leaves = (domains + per_leaf - 1) / per_leaf;
    if (spines == 0 && leaves > 1)
        refuse(b, "spines: leaves meet through spines only");
    set_ranks(b, domains * each);
    if (b->code)
        return;
    b->t->ranks_forward = false;
    add_domains(b, domains, each, &inside);
    const uint32_t leaf = add_switches(b, "leaf", leaves);
    const uint32_t spine = add_switches(b, "spine", spines);
    for (uint64_t r = 0; r < b->t->ranks && !b->code; r++)
        cable(b, r, leaf + r / each / per_leaf, &speed, 2);
    for (uint64_t i = 0; i < leaves * spines && !b->code; i++)
        cable(b, leaf + i / spines, spine + i % spines, &up, 2);
}

/* ---- rails: such domains, and a switch for the n-th ranks of many of them ---- */

static const char *const rails_keys[] = {DOMAIN_KEYS, "rails", "cross_rail", NULL};

static void make_rails(builder *b)
{
    static const char *const ways[] = {"nvlink", "spine", NULL};
    const uint64_t domains = need(b, "domains", 1, ORR__MOST_RANKS);
    const uint64_t each = need(b, "ranks_per_domain", 1, MOST_PORTS);
    uint64_t per_leaf = domains, spines = 0, rails = each;
    unsigned way = 0;
    take(b, "domains_per_leaf", 1, ORR__MOST_RANKS, &per_leaf);
    take(b, "spines", 0, MOST_PORTS, &spines);
    take(b, "rails", 1, each, &rails);
    if (!b->code)
        b->code = orr_yaml_take_word(b->map, "cross_rail", ways, &way, b->err);
    const orr__link_defaults speed = speed_of(b, NULL, b->otherwise);
    const orr__link_defaults inside = speed_of(b, "nvlink", &speed);
    const orr__link_defaults up = speed_of(b, "spine", &speed);
    const uint64_t pods = (domains + per_leaf - 1) / per_leaf;
    if (spines == 0 && (pods > 1 || way == 1))
        refuse(b, "spines: without spines there is one leaf a rail, and rails meet through nvlink");
    if (each % rails)
        refuse(b, "rails: the ranks of a domain must be a multiple of them");
    set_ranks(b, domains * each);
    if (b->code)
        return;
    b->t->ranks_forward = way == 0;
    add_domains(b, domains, each, &inside);
    const uint32_t leaf = add_grid(b, "rail", rails, pods);
    const uint32_t spine = add_switches(b, "spine", spines);
    for (uint64_t r = 0; r < b->t->ranks && !b->code; r++)
        cable(b, r, leaf + r % each % rails * pods + r / each / per_leaf, &speed, 2);
    /* So a route through a neighbour and its rail, 1 + 1 + 2 + 2, is shorter than one over spines,
     * 2 + 2 + 2 + 2. */
    for (uint64_t i = 0; i < rails * pods * spines && !b->code; i++)
        cable(b, leaf + i / spines, spine + i % spines, &up, 2);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    const char *const *keys;
    void (*make)(builder *b);
} shapes[] = {
    {"switch", switch_keys, make_switch},
    {"leaf-spine", leaf_spine_keys, make_leaf_spine},
    {"fat-tree", fat_tree_keys, make_fat_tree},
    {"torus", torus_keys, make_torus},
    {"dragonfly", dragonfly_keys, make_dragonfly},
    {"servers", servers_keys, make_servers},
    {"rails", rails_keys, make_rails},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

orr_code orr__topology_generate(orr__topology *t,
                                orr_yaml_value map,
                                const orr__link_defaults *otherwise,
                                orr_error *err)
{
    const char *names[SHAPES + 1] = {NULL};
    orr_yaml_value v;
    unsigned which = 0;
    for (unsigned i = 0; i < SHAPES; i++)
        names[i] = shapes[i].name;
    orr_code code;
    if ((code = orr_yaml_need(map, "type", &v, err)) ||
        (code = orr_yaml_take_word(map, "type", names, &which, err)) ||
        (code = orr_yaml_check_keys(map, shapes[which].keys, err)))
        return code;
    builder b = {.t = t, .map = map, .otherwise = otherwise, .err = err};
    shapes[which].make(&b);
    return b.code ? orr_because(err, b.code, "%s", shapes[which].name) : ORR_OK;
}
