/* SPDX-License-Identifier: Apache-2.0 */
/* topology_file.c - a link-level topology from YAML, which includes JSON (docs/format/topology.md).
 *
 * Everything is counted before it is allocated: ranks, switches and links have upper bounds, and
 * ranges of names are expanded one by one. */
#include "topology.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

static orr_code take_speed(orr_yaml_value map,
                           const char *name,
                           const orr__link_defaults *otherwise,
                           orr__link_defaults *out,
                           orr_error *err);

/* ---- Well-known networks from a few numbers: one switch, leaf-spine, fat-tree,
 * torus, dragonfly, servers with fast links inside, rails.
 *
 * Each shape is a function that reads its own keys and adds switches and cables;
 * docs/format/topology.md draws them.  To add one: a function, its keys, a row in `shapes`, a
 * section there, a test with its counts. */

enum { MOST_PORTS = 4096 };

/* State while a shape is built.  The first failure is kept; later calls do nothing. */
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
        b->code = take_speed(b->map, name, otherwise, &out, b->err);
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

/* count switches NAME0, NAME1, ...; returns the device of the first. */
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

/* Oversubscription: capacity into a full leaf over capacity to the spines, instead of an uplink
 * speed. */
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
        refuse(b, "oversubscription and spine_bandwidth cannot be used together: one determines "
                  "the other");
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

/* A value for all dimensions, or a list with one per dimension. */
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

/* A group's global ports, a * h of them, are assigned to the other groups round-robin, so that port
 * j of group g leads to the group j % (groups - 1) + 1 further on.  Its partner is the port of that
 * group in the same round that leads back.  Ports of an incomplete last round stay free. */
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

/* One fast switch per domain, with its ranks.  Links between domains cost twice as much, or a
 * switch shared by two ranks of a domain would be as near as their own. */
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
        refuse(b, "spines: leaves are connected through spines only");
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
        refuse(b, "spines: without spines there is one leaf per rail, and rails are connected "
                  "through nvlink");
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

/* ---- all shapes ---- */

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

/* The value of the key "generate": ranks, switches and links of a well-known shape. */
static orr_code orr__topology_generate(orr__topology *t,
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

/* InfraGraph: devices made of components, instances of devices, and edges
 * between their components by a scheme (YAML, JSON).
 *
 * Components of the choice xpu are the ranks, in the order of the instances; every other component
 * is a switch called instance.index.component.index.  Each edge is a cable with the bandwidth and
 * latency of its link. */

enum { MOST_NODES = 1 << 22, SHOWN = 40 };

typedef struct component {
    orr_str name;
    uint32_t count, first; /* first: of the nodes of a device */
    bool is_xpu;
} component;

typedef struct graph_device {
    orr_str name;
    orr_yaml_value v;
    component *components;
    uint32_t component_count, nodes;
} graph_device;

typedef struct instance {
    orr_str name;
    const graph_device *of;
    uint32_t count, first; /* of all nodes */
} instance;

typedef struct reader {
    orr__topology *t;
    orr_arena *a;
    orr_error *err;
    orr_yaml_value root;
    graph_device *devices;
    instance *instances;
    uint32_t device_count, instance_count, node_count;
    uint32_t *ids; /* by node: its device in the topology */
} reader;

typedef struct nodes {
    uint32_t *list;
    size_t count, room;
} nodes;

static orr_code fail_at(const reader *r, orr_yaml_value v, const char *what, orr_str name)
{
    const orr_where w = orr_yaml_where(v);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s \"%.*s\"", what,
                    (int)(name.len < SHOWN ? name.len : SHOWN), name.ptr);
}

static orr_code need_text(const reader *r, orr_yaml_value map, const char *key, orr_str *out)
{
    orr_yaml_value v;
    const orr_code code = orr_yaml_need(map, key, &v, r->err);
    *out = code ? (orr_str){"", 0} : orr_yaml_text(v);
    return code;
}

static uint32_t list_of(orr_yaml_value map, const char *key, orr_yaml_value *out)
{
    return orr_yaml_find(map, key, out) && orr_yaml_type_of(*out) == ORR_YAML_LIST
               ? orr_yaml_count(*out)
               : 0;
}

/* ---- devices and instances ---- */

static orr_code take_component(reader *r, graph_device *d, orr_yaml_value v, component *out)
{
    static const char *const keys[] = {"name",   "description", "count", "choice", "custom",
                                       "device", "cpu",         "xpu",   "nic",    "memory",
                                       "port",   "switch",      NULL};
    orr_str choice;
    uint64_t count = 0;
    orr_yaml_value n;
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    if (code || (code = need_text(r, v, "name", &out->name)) ||
        (code = need_text(r, v, "choice", &choice)) ||
        (code = orr_yaml_need(v, "count", &n, r->err)) ||
        (code = orr_yaml_get_u64(n, "count", 1, MOST_NODES, &count, r->err)))
        return code;
    if (orr_str_is(choice, "device"))
        return fail_at(r, v, "nested devices are not supported: component", out->name);
    out->count = (uint32_t)count;
    out->is_xpu = orr_str_is(choice, "xpu");
    out->first = d->nodes;
    if (count > MOST_NODES - d->nodes)
        return fail_at(r, v, "too many components in device", d->name);
    d->nodes += (uint32_t)count;
    return ORR_OK;
}

static orr_code take_device(reader *r, orr_yaml_value v, graph_device *out)
{
    static const char *const keys[] = {"name", "description", "components", "links", "edges", NULL};
    orr_yaml_value list;
    if (orr_yaml_find(v, "connections", &list))
        return fail_at(r, list,
                       "InfraGraph 1 is not supported, only edges are:", orr_str_of("connections"));
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    out->v = v;
    if (code || (code = need_text(r, v, "name", &out->name)))
        return code;
    out->component_count = list_of(v, "components", &list);
    out->components = orr_arena_new(r->a, (size_t)out->component_count + 1, component);
    if (!out->components)
        return orr_no_memory(r->err);
    for (uint32_t i = 0; i < out->component_count && !code; i++)
        code = take_component(r, out, orr_yaml_item(list, i), &out->components[i]);
    return code;
}

static const graph_device *find_device(const reader *r, orr_str name)
{
    for (uint32_t i = 0; i < r->device_count; i++)
        if (orr_str_equal(r->devices[i].name, name))
            return &r->devices[i];
    return NULL;
}

static orr_code take_instance(reader *r, orr_yaml_value v, instance *out)
{
    static const char *const keys[] = {"name", "description", "device", "count", NULL};
    orr_str name;
    uint64_t count = 1;
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    if (code || (code = need_text(r, v, "name", &out->name)) ||
        (code = need_text(r, v, "device", &name)) ||
        (code = orr_yaml_take_u64(v, "count", 1, MOST_NODES, &count, r->err)))
        return code;
    if (!(out->of = find_device(r, name)))
        return fail_at(r, v, "there is no device", name);
    out->count = (uint32_t)count;
    out->first = r->node_count;
    if (count * out->of->nodes > MOST_NODES - r->node_count)
        return fail_at(r, v, "more than 4 million components, with instance", out->name);
    r->node_count += (uint32_t)count * out->of->nodes;
    return ORR_OK;
}

/* Ranks first, then switches, by name. */
static orr_code number_nodes(reader *r)
{
    orr_code code = ORR_OK;
    r->ids = orr_arena_new(r->a, (size_t)r->node_count + 1, uint32_t);
    if (!r->ids)
        return orr_no_memory(r->err);
    for (int pass = 0; pass < 2 && !code; pass++)
        for (uint32_t i = 0; i < r->instance_count; i++)
            for (uint32_t n = 0; n < r->instances[i].count; n++)
                for (uint32_t c = 0; c < r->instances[i].of->component_count; c++) {
                    const instance *of = &r->instances[i];
                    const component *k = &of->of->components[c];
                    for (uint32_t m = 0; m < k->count && k->is_xpu == (pass == 0) && !code; m++) {
                        uint32_t *id = &r->ids[of->first + n * of->of->nodes + k->first + m];
                        char name[NET_DEVICE_NAME];
                        snprintf(name, sizeof name, "%.*s.%" PRIu32 ".%.*s.%" PRIu32,
                                 (int)of->name.len, of->name.ptr, n, (int)k->name.len, k->name.ptr,
                                 m);
                        if (pass == 0)
                            *id = r->t->ranks++;
                        else
                            code = orr__topology_add_switch(r->t, orr_str_of(name), id, r->err);
                    }
                }
    return code;
}

/* ---- endpoints: name[from:to:step] ---- */

static bool take_bound(orr_str s, uint64_t otherwise, uint64_t *out)
{
    *out = otherwise;
    return s.len == 0 || orr_text_u64(s, out);
}

static bool split_slice(
    orr_str s, uint64_t count, orr_str *name, uint64_t *from, uint64_t *to, uint64_t *step)
{
    const char *open = s.len ? memchr(s.ptr, '[', s.len) : NULL;
    orr_str part[3] = {{"", 0}, {"", 0}, {"", 0}};
    uint32_t parts = 0;
    *from = 0;
    *to = count;
    *step = 1;
    *name = (orr_str){s.ptr, open ? (size_t)(open - s.ptr) : s.len};
    if (!open)
        return true;
    if (s.ptr[s.len - 1] != ']')
        return false;
    const char *end = s.ptr + s.len - 1, *at = open + 1;
    for (;;) {
        const char *colon = at < end ? memchr(at, ':', (size_t)(end - at)) : NULL;
        if (parts == 3)
            return false;
        part[parts++] = (orr_str){at, (size_t)((colon ? colon : end) - at)};
        if (!colon)
            break;
        at = colon + 1;
    }
    if (parts == 1) {
        if (!orr_text_u64(part[0], from))
            return false;
        *to = *from + 1;
        return *from < count;
    }
    return take_bound(part[0], 0, from) && take_bound(part[1], count, to) &&
           take_bound(part[2], 1, step) && *step > 0 && *from < *to && *to <= count;
}

static const component *find_component(
    const graph_device *d, orr_str text, uint64_t *from, uint64_t *to, uint64_t *step)
{
    for (uint32_t i = 0; i < d->component_count; i++) {
        orr_str name;
        if (split_slice(text, d->components[i].count, &name, from, to, step) &&
            orr_str_equal(name, d->components[i].name))
            return &d->components[i];
    }
    return NULL;
}

static orr_code add_nodes(
    reader *r, orr_yaml_value ep, const graph_device *d, uint32_t first, orr_str text, nodes *out)
{
    uint64_t from, to, step;
    const component *c = find_component(d, text, &from, &to, &step);
    if (!c)
        return fail_at(r, ep, "no such components:", text);
    for (uint64_t k = from; k < to; k += step) {
        if (!orr_grow(&out->list, &out->room, out->count + 1))
            return orr_no_memory(r->err);
        out->list[out->count++] = first + c->first + (uint32_t)k;
    }
    return ORR_OK;
}

/* In a device: of one instance.  Between instances: of all in the slice. */
static orr_code take_endpoint(reader *r,
                              orr_yaml_value edge,
                              const char *key,
                              const graph_device *in,
                              uint32_t first,
                              nodes *out)
{
    static const char *const inner[] = {"component", NULL}, *const outer[] = {"instance",
                                                                              "component", NULL};
    orr_yaml_value ep;
    orr_str text, name;
    uint64_t from, to, step;
    out->count = 0;
    orr_code code = orr_yaml_need(edge, key, &ep, r->err);
    if (code || (code = orr_yaml_check_keys(ep, in ? inner : outer, r->err)) ||
        (code = need_text(r, ep, "component", &text)))
        return code;
    if (in)
        return add_nodes(r, ep, in, first, text, out);
    orr_str of;
    if ((code = need_text(r, ep, "instance", &of)))
        return code;
    for (uint32_t i = 0; i < r->instance_count; i++) {
        const instance *k = &r->instances[i];
        if (!split_slice(of, k->count, &name, &from, &to, &step) || !orr_str_equal(name, k->name))
            continue;
        for (uint64_t n = from; n < to && !code; n += step)
            code = add_nodes(r, ep, k->of, k->first + (uint32_t)n * k->of->nodes, text, out);
        return code;
    }
    return fail_at(r, ep, "no such instances:", of);
}

/* ---- links ---- */

static orr_code take_rate(reader *r, orr_yaml_value link, orr_str name, double *out)
{
    /* GT/s: 16 lanes, minus the encoding overhead. */
    static const struct {
        const char *key;
        double factor;
    } units[] = {{"gigabits_per_second", 0.125},
                 {"gigabytes_per_second", 1},
                 {"gigatransfers_per_second", 2.0 * 128 / 130}};
    orr_yaml_value physical = link, v;
    if (orr_yaml_find(link, "physical", &v))
        physical = v;
    if (orr_yaml_find(physical, "bandwidth", &v))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            double n = 0;
            const orr_code code = orr_yaml_take_number(v, units[i].key, 0, 1e9, &n, r->err);
            if (code)
                return code;
            if (n > 0) {
                *out = n * units[i].factor;
                return ORR_OK;
            }
        }
    return fail_at(r, link, "no bandwidth for the link", name);
}

static orr_code take_delay(reader *r, orr_yaml_value link, double *out)
{
    static const struct {
        const char *key;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}};
    orr_yaml_value physical, v;
    orr_code code = ORR_OK;
    *out = 0;
    if (!orr_yaml_find(link, "physical", &physical) || !orr_yaml_find(physical, "latency", &v))
        return ORR_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units && !code; i++) {
        double n = 0;
        code = orr_yaml_take_number(v, units[i].key, 0, 1e9, &n, r->err);
        *out += n * units[i].ns;
    }
    return code;
}

static orr_code find_link(reader *r, orr_yaml_value of, orr_yaml_value edge, orr__wire *out)
{
    orr_yaml_value list, v;
    orr_str name;
    orr_code code = need_text(r, edge, "link", &name);
    if (code)
        return code;
    const uint32_t n = list_of(of, "links", &list);
    for (uint32_t i = 0; i < n; i++) {
        const orr_yaml_value link = orr_yaml_item(list, i);
        if (!orr_yaml_find(link, "name", &v) || !orr_str_equal(orr_yaml_text(v), name))
            continue;
        *out = (orr__wire){.cost = 1};
        code = take_rate(r, link, name, &out->speed);
        return code ? code : take_delay(r, link, &out->latency);
    }
    return fail_at(r, edge, "there is no link", name);
}

/* ---- edges ---- */

static orr_code connect(reader *r, orr__wire link, uint32_t a, uint32_t b)
{
    link.from = r->ids[a];
    link.to = r->ids[b];
    return orr__topology_add_cable(r->t, &link, r->err);
}

static bool same_nodes(const nodes *a, const nodes *b)
{
    return a->count == b->count && memcmp(a->list, b->list, a->count * sizeof *a->list) == 0;
}

static orr_code connect_all(
    reader *r, orr_yaml_value edge, const orr__wire *link, const nodes *a, const nodes *b)
{
    static const char *const schemes[] = {"one2one", "many2many", "ring", NULL};
    const bool is_same = same_nodes(a, b);
    unsigned scheme = 0;
    orr_code code = orr_yaml_take_word(edge, "scheme", schemes, &scheme, r->err);
    if (code)
        return code;
    if (scheme != 1 && a->count != b->count)
        return fail_at(r, edge, "ep1 and ep2 differ in number, with the scheme",
                       orr_str_of(schemes[scheme]));
    if (scheme == 0 && is_same)
        return fail_at(r, edge, "ep1 and ep2 are the same, with the scheme", orr_str_of("one2one"));
    for (size_t i = 0; i < a->count && !code; i++) {
        if (scheme == 0)
            code = connect(r, *link, a->list[i], b->list[i]);
        else if (scheme == 2 && !(a->count == 2 && i == 1) && a->count > 1)
            code = connect(r, *link, a->list[i], b->list[(i + 1) % b->count]);
        for (size_t k = is_same ? i + 1 : 0; k < b->count && scheme == 1 && !code; k++)
            code = connect(r, *link, a->list[i], b->list[k]);
    }
    return code;
}

static orr_code take_edges(reader *r, orr_yaml_value of, const graph_device *in, uint32_t first)
{
    static const char *const keys[] = {"ep1", "ep2", "scheme", "link", NULL};
    orr_yaml_value list;
    const uint32_t n = list_of(of, "edges", &list);
    nodes a = {0}, b = {0};
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < n && !code; i++) {
        const orr_yaml_value edge = orr_yaml_item(list, i);
        orr__wire link;
        if ((code = orr_yaml_check_keys(edge, keys, r->err)) ||
            (code = find_link(r, of, edge, &link)) ||
            (code = take_endpoint(r, edge, "ep1", in, first, &a)) ||
            (code = take_endpoint(r, edge, "ep2", in, first, &b)))
            break;
        code = connect_all(r, edge, &link, &a, &b);
        if (code == ORR_EINPUT && r->err && !r->err->where.line)
            r->err->where = orr_yaml_where(edge);
    }
    orr_free(a.list);
    orr_free(b.list);
    return code;
}

/* ---- everything ---- */

static orr_code take_all(reader *r)
{
    static const char *const keys[] = {"name",      "description", "devices", "links",
                                       "instances", "edges",       NULL};
    orr_yaml_value list;
    const orr_where w = orr_yaml_where(r->root);
    if (orr_yaml_find(r->root, "connections", &list))
        return fail_at(r, list,
                       "InfraGraph 1 is not supported, only edges are:", orr_str_of("connections"));
    orr_code code = orr_yaml_check_keys(r->root, keys, r->err);
    if (code)
        return code;
    const uint32_t devices = list_of(r->root, "devices", &list);
    r->devices = orr_arena_new(r->a, (size_t)devices + 1, graph_device);
    for (; r->devices && r->device_count < devices && !code; r->device_count++)
        code = take_device(r, orr_yaml_item(list, r->device_count), &r->devices[r->device_count]);
    const uint32_t instances = list_of(r->root, "instances", &list);
    r->instances = orr_arena_new(r->a, (size_t)instances + 1, instance);
    if (!r->devices || !r->instances)
        return orr_no_memory(r->err);
    for (; r->instance_count < instances && !code; r->instance_count++)
        code = take_instance(r, orr_yaml_item(list, r->instance_count),
                             &r->instances[r->instance_count]);
    if (!code)
        code = number_nodes(r);
    if (!code && r->t->ranks < 2)
        code = orr_fail(r->err, ORR_EINPUT, &w, "expected at least 2 components of the choice xpu");
    for (uint32_t i = 0; i < r->instance_count && !code; i++)
        for (uint32_t n = 0; n < r->instances[i].count && !code; n++)
            code = take_edges(r, r->instances[i].of->v, r->instances[i].of,
                              r->instances[i].first + n * r->instances[i].of->nodes);
    return code ? code : take_edges(r, r->root, NULL, 0);
}

static bool topology_is_infragraph(orr_yaml_value root)
{
    orr_yaml_value v;
    return orr_yaml_find(root, "infrastructure", &v) ||
           (orr_yaml_find(root, "devices", &v) && orr_yaml_find(root, "instances", &v));
}

/* topology_file.c: devices, instances and edges of InfraGraph. */
static orr_code topology_take_infragraph(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    reader r = {.t = t, .a = orr_arena_create(), .err = err, .root = root};
    orr_yaml_value inner;
    if (!r.a)
        return orr_no_memory(err);
    if (orr_yaml_find(root, "infrastructure", &inner))
        r.root = inner;
    const orr_code code = take_all(&r);
    t->dims = 1;
    t->npus[0] = t->ranks;
    orr_arena_destroy(r.a);
    return code;
}

/* ---- speeds ---- */

/* The keys NAME_bandwidth and NAME_latency of a map, or without a name bandwidth and latency. */
static orr_code take_speed(orr_yaml_value map,
                           const char *name,
                           const orr__link_defaults *otherwise,
                           orr__link_defaults *out,
                           orr_error *err)
{
    char bandwidth[40], latency[40];
    const orr_where w = orr_yaml_where(map);
    snprintf(bandwidth, sizeof bandwidth, "%s%sbandwidth", name ? name : "", name ? "_" : "");
    snprintf(latency, sizeof latency, "%s%slatency", name ? name : "", name ? "_" : "");
    *out = *otherwise;
    orr_code code = orr_yaml_take_rate(map, bandwidth, &out->speed, err);
    if (!code)
        code = orr_yaml_take_ns(map, latency, &out->latency, err);
    if (!code && !(out->speed > 0))
        code = orr_fail(err, ORR_EINPUT, &w, "the key \"%s\" is missing", bandwidth);
    return code;
}

/* ---- devices ---- */

static orr_code add_rank_name(void *topology, orr_str name, orr_error *err)
{
    orr__topology *t = topology;
    uint32_t number;
    if (t->ranks >= t->most_links)
        return orr_fail(err, ORR_EINPUT, NULL, "more than %zu ranks", t->most_links);
    if (!orr_intern_add(t->rank_names, name, &number))
        return orr_no_memory(err);
    if (number != t->ranks)
        return orr_fail(err, ORR_EINPUT, NULL, "duplicate rank \"%.*s\"", (int)name.len, name.ptr);
    t->ranks++;
    return ORR_OK;
}

static orr_code add_switch_name(void *topology, orr_str name, orr_error *err)
{
    orr__topology *t = topology;
    const uint32_t before = orr__topology_devices(t);
    uint32_t device, rank;
    if (t->rank_names && orr_intern_find(t->rank_names, name, &rank))
        return orr_fail(err, ORR_EINPUT, NULL, "\"%.*s\" is already the name of a rank",
                        (int)name.len, name.ptr);
    const orr_code code = orr__topology_add_switch(t, name, &device, err);
    if (!code && device != before)
        return orr_fail(err, ORR_EINPUT, NULL, "duplicate switch \"%.*s\"", (int)name.len,
                        name.ptr);
    return code;
}

/* Each text of a list, or the only text, as names. */
static orr_code take_names(
    orr_yaml_value v, const char *key, orr__name_visit visit, orr__topology *t, orr_error *err)
{
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t count = is_list ? orr_yaml_count(v) : 1;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_yaml_value one = is_list ? orr_yaml_item(v, i) : v;
        const orr_where w = orr_yaml_where(one);
        if (orr_yaml_type_of(one) != ORR_YAML_SCALAR)
            return orr_fail(err, ORR_EINPUT, &w, "%s: expected a list of names", key);
        code = orr__topology_names(orr_yaml_text(one), &w, visit, t, err);
        if (code == ORR_EINPUT && err && !err->where.line)
            err->where = w;
    }
    return code;
}

static orr_code take_ranks(orr_yaml_value root, orr__topology *t, orr_error *err)
{
    orr_yaml_value v;
    uint64_t ranks = 0;
    orr_code code = orr_yaml_need(root, "ranks", &v, err);
    if (code)
        return code;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR) {
        code = orr_yaml_get_u64(v, "ranks", 2, t->most_links, &ranks, err);
        t->ranks = (uint32_t)ranks;
        return code;
    }
    if (!(t->rank_names = orr_intern_create()))
        return orr_no_memory(err);
    code = take_names(v, "ranks", add_rank_name, t, err);
    const orr_where w = orr_yaml_where(v);
    if (!code && t->ranks < 2)
        code = orr_fail(err, ORR_EINPUT, &w, "ranks: expected at least 2");
    return code;
}

/* ---- links ---- */

static orr_code select_devices(
    const orr__topology *t, orr_yaml_value link, const char *key, orr__devices *out, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_need(link, key, &v, err);
    if (code)
        return code;
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t count = is_list ? orr_yaml_count(v) : 1;
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_yaml_value one = is_list ? orr_yaml_item(v, i) : v;
        const orr_where w = orr_yaml_where(one);
        if (out->count > t->most_links)
            return orr_fail(err, ORR_EINPUT, &w, "%s: this names too many devices", key);
        code = orr__topology_select(t, orr_yaml_text(one), &w, out, err);
    }
    return code;
}

static orr_code add_between(orr__topology *t,
                            const orr__devices *from,
                            const orr__devices *to,
                            orr__wire *link,
                            uint64_t count,
                            bool is_one_way,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < from->count; i++)
        for (size_t j = 0; j < to->count; j++) {
            link->from = from->list[i];
            link->to = to->list[j];
            if (link->from == link->to)
                return orr_fail(err, ORR_EINPUT, NULL, "a link from a device to itself");
            for (uint64_t n = 0; n < count && !code; n++)
                code = is_one_way ? orr__topology_add_link(t, link, err)
                                  : orr__topology_add_cable(t, link, err);
            if (code)
                return code;
        }
    return ORR_OK;
}

static orr_code take_link(orr__topology *t,
                          orr_yaml_value map,
                          const orr__link_defaults *otherwise,
                          orr_error *err)
{
    static const char *const keys[] = {"from",  "to",   "bandwidth", "latency", "one_way",
                                       "count", "cost", "loss",      NULL};
    orr__devices from = {0}, to = {0};
    orr__link_defaults speed;
    uint64_t count = 1, cost = 1;
    double loss = 0;
    bool is_one_way = false;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = select_devices(t, map, "from", &from, err);
    if (!code)
        code = select_devices(t, map, "to", &to, err);
    if (!code)
        code = take_speed(map, NULL, otherwise, &speed, err);
    if (!code)
        code = orr_yaml_take_bool(map, "one_way", &is_one_way, err);
    if (!code)
        code = orr_yaml_take_u64(map, "count", 1, 4096, &count, err);
    if (!code)
        code = orr_yaml_take_u64(map, "cost", 1, ORR__MOST_COST, &cost, err);
    if (!code)
        code = orr_yaml_take_number(map, "loss", 0, 1, &loss, err);
    if (!code) {
        orr__wire like = {
            .speed = speed.speed, .latency = speed.latency, .cost = (uint32_t)cost, .error = loss};
        code = add_between(t, &from, &to, &like, count, is_one_way, err);
    }
    if (code == ORR_EINPUT && err && !err->where.line)
        err->where = orr_yaml_where(map);
    orr_free(from.list);
    orr_free(to.list);
    return code;
}

static orr_code take_links(orr__topology *t,
                           orr_yaml_value root,
                           const orr__link_defaults *otherwise,
                           orr_error *err)
{
    orr_yaml_value v;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "links", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    if (orr_yaml_type_of(v) != ORR_YAML_LIST)
        return orr_fail(err, ORR_EINPUT, &w, "links: expected a list");
    for (uint32_t i = 0; i < orr_yaml_count(v) && !code; i++)
        code = take_link(t, orr_yaml_item(v, i), otherwise, err);
    return code;
}

/* ---- everything ---- */

static orr_code take_dims(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    uint64_t all = 1, n = 0;
    t->dims = 1;
    t->npus[0] = t->ranks;
    if (!orr_yaml_find(root, "dims", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    if (orr_yaml_type_of(v) != ORR_YAML_LIST || orr_yaml_count(v) == 0 ||
        orr_yaml_count(v) > ORR_NET_DIMS)
        return orr_fail(err, ORR_EINPUT, &w, "dims: expected a list of 1 to %d numbers",
                        ORR_NET_DIMS);
    t->dims = orr_yaml_count(v);
    for (uint32_t k = 0; k < t->dims; k++) {
        const orr_code code =
            orr_yaml_get_u64(orr_yaml_item(v, k), "dims", 2, ORR__MOST_RANKS, &n, err);
        if (code)
            return code;
        t->npus[k] = (uint32_t)n;
        all = all * n > ORR__MOST_RANKS ? (uint64_t)ORR__MOST_RANKS + 1 : all * n;
    }
    if (all != t->ranks)
        return orr_fail(err, ORR_EINPUT, &w, "dims: their product is not the number of ranks, %u",
                        t->ranks);
    return ORR_OK;
}

const char *const orr__topology_keys[] = {"format",    "version", "generate",      "ranks",
                                          "switches",  "links",   "dims",          "routing",
                                          "bandwidth", "latency", "ranks_forward", NULL};

static orr_code check_head(orr_yaml_value root, orr_error *err)
{
    static const char *const formats[] = {"orrery-topology", NULL};
    unsigned format = 0;
    uint64_t version = 1;
    orr_code code;
    if ((code = orr_yaml_check_keys(root, orr__topology_keys, err)) ||
        (code = orr_yaml_take_word(root, "format", formats, &format, err)))
        return code;
    return orr_yaml_take_u64(root, "version", 1, 1, &version, err);
}

static orr_code take_devices(orr__topology *t,
                             orr_yaml_value root,
                             const orr__link_defaults *otherwise,
                             orr_error *err)
{
    orr_yaml_value v, ranks;
    orr_code code;
    if (orr_yaml_find(root, "generate", &v)) {
        const orr_where w = orr_yaml_where(v);
        if (orr_yaml_find(root, "ranks", &ranks))
            return orr_fail(
                err, ORR_EINPUT, &w,
                "the keys \"ranks\" and \"generate\" cannot be used together: \"generate\" makes "
                "the ranks");
        code = orr__topology_generate(t, v, otherwise, err);
        if (code == ORR_EINPUT && err && !err->where.line)
            err->where = w;
    } else {
        code = take_ranks(root, t, err);
    }
    if (!code && orr_yaml_find(root, "switches", &v))
        code = take_names(v, "switches", add_switch_name, t, err);
    return code;
}

static orr_code take_topology(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    static const char *const routings[] = {"ecmp", "ecmp-pair", "first", NULL};
    orr__link_defaults otherwise = {0};
    unsigned routing = ORR__ROUTE_BY_MESSAGE;
    orr_code code = check_head(root, err);
    if (!code)
        code = orr_yaml_take_rate(root, "bandwidth", &otherwise.speed, err);
    if (!code)
        code = orr_yaml_take_ns(root, "latency", &otherwise.latency, err);
    if (!code)
        code = take_devices(t, root, &otherwise, err);
    if (!code)
        code = orr_yaml_take_bool(root, "ranks_forward", &t->ranks_forward, err);
    if (!code)
        code = take_links(t, root, &otherwise, err);
    if (!code)
        code = orr_yaml_take_word(root, "routing", routings, &routing, err);
    if (!code)
        code = take_dims(t, root, err);
    t->routing = (orr__routing)routing;
    return code;
}

static bool is_link_level(orr_yaml_value root)
{
    orr_yaml_value v;
    return !orr_yaml_find(root, "topology", &v) &&
           (orr_yaml_find(root, "links", &v) || orr_yaml_find(root, "generate", &v) ||
            orr_yaml_find(root, "format", &v));
}

/* So that it can be written again in compact form. */
static orr_code keep_description(orr__topology *t,
                                 orr_yaml_value root,
                                 orr_span bytes,
                                 orr_error *err)
{
    enum { MOST = 4096 };
    orr_yaml_value v;
    if (bytes.len > MOST || !orr_yaml_find(root, "generate", &v))
        return ORR_OK;
    if (!(t->description = orr_alloc(bytes.len, 1)))
        return orr_no_memory(err);
    memcpy(t->description, bytes.ptr, bytes.len);
    t->description_len = bytes.len;
    return ORR_OK;
}

orr_code orr__topology_parse(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    orr_yaml *y;
    *out = NULL;
    orr_code code = orr_yaml_open(bytes, path, &y, err);
    if (code)
        return code;
    const bool is_infragraph = topology_is_infragraph(orr_yaml_root(y));
    if ((is_infragraph || is_link_level(orr_yaml_root(y))) &&
        !(code = orr__topology_create(out, err))) {
        (*out)->most_links = most_links;
        code = is_infragraph ? topology_take_infragraph(*out, orr_yaml_root(y), err)
                             : take_topology(*out, orr_yaml_root(y), err);
        if (!code)
            code = keep_description(*out, orr_yaml_root(y), bytes, err);
    }
    orr_yaml_close(y);
    if (code) {
        orr__topology_destroy(*out);
        *out = NULL;
    }
    return code;
}
