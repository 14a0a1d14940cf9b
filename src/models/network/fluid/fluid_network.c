/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_network.c - the network fluid: a message is a cut-through flow along its route, sharing
 * resources with other flows.  Its last byte arrives when the flow has ended and the latency of the
 * route has passed.
 *
 * Messages of one pair are sequential, as on one queue pair (docs/design/fluid.md): one list per
 * pair, linked by letter.next, of which only the first is a flow.  Routes are cached, since a run
 * has few and uses each many times. */
#include "fluid.h"

#include "base/memory/hash.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"

#include <math.h>

/* A cached route: its resources, as needed by a flow. */
typedef struct route {
    fluid_use *use;
    double latency; /* ns, of the first byte */
    /* of its resources, with two seeds: 128 bits identify the list, which is not compared */
    uint64_t hash[2];
} route;

/* A message in flight, or one that waits for its predecessors on the same connection. */
typedef struct letter {
    uint64_t token;
    uint64_t latency; /* ns, from the last byte sent to the last byte received */
    uint64_t pair;
    /* most: limit in bytes per ns by its price; INFINITY: only the route limits it */
    double bytes, most;
    uint32_t route;
    uint32_t next; /* next of the same pair; or free */
} letter;

struct fluid_network {
    fluid *f;
    fluid_paths paths;
    orr_where where;
    orr_net *sim;
    route *routes;
    size_t route_count, route_room;
    orr_map *by_pair; /* pair -> route, if a pair has one; else its number of messages so far */
    orr_map *by_hash; /* of the resources -> route */
    orr_map *latest;  /* pair -> its latest unfinished message */
    letter *letters;
    size_t letter_count, letter_room;
    uint32_t free_letter;
    fluid_price price; /* NULL: none */
    void *price_context;
};

fluid *fluid_network_flows(void *net)
{
    return ((fluid_network *)net)->f;
}

fluid_paths *fluid_network_paths(void *net)
{
    return &((fluid_network *)net)->paths;
}

void fluid_network_price(void *net, fluid_price price, void *context)
{
    fluid_network *n = net;
    n->price = price;
    n->price_context = context;
}

static void fluid_network_destroy(void *net)
{
    fluid_network *n = net;
    if (!n)
        return;
    fluid_paths_fini(&n->paths);
    fluid_destroy(n->f);
    orr_map_destroy(n->by_pair);
    orr_map_destroy(n->by_hash);
    orr_map_destroy(n->latest);
    orr_free(n->routes);
    orr_free(n->letters);
    orr_free(n);
}

static orr_code fluid_network_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    fluid_network *n = orr_alloc(1, sizeof *n);
    *out = NULL;
    if (!n)
        return orr_no_memory(err);
    n->free_letter = FLUID_NONE;
    n->where = cfg->where;
    n->f = fluid_create();
    n->by_pair = orr_map_create(0);
    n->by_hash = orr_map_create(0);
    n->latest = orr_map_create(0);
    const bool has_memory = n->f && n->by_pair && n->by_hash && n->latest;
    orr_code code = has_memory ? fluid_paths_init(&n->paths, cfg, n->f, err) : orr_no_memory(err);
    /* cfg ends with this call. */
    n->paths.where = &n->where;
    if (code)
        fluid_network_destroy(n);
    else
        *out = n;
    return code;
}

/* ---- routes ---- */

static uint64_t hash_parts(const fluid_paths *p, uint64_t seed)
{
    uint64_t h = seed;
    for (size_t i = 0; i < p->part_count; i++)
        h = orr_hash_mix(h ^ 0x8ebc6af09c88c6e3u,
                         p->parts[i].resource + 1 + ((uint64_t)p->parts[i].flows << 32));
    return h;
}

/* Routes with equal resources are shared.  NONE: out of memory. */
static uint32_t find_route(fluid_network *n, double latency)
{
    const uint64_t hash[2] = {hash_parts(&n->paths, 0xa0761d6478bd642fu),
                              hash_parts(&n->paths, 0xe7037ed1a0b428dbu)};
    uint64_t key = hash[0];
    uint32_t i;
    while ((i = orr_map_find(n->by_hash, key, FLUID_NONE)) != FLUID_NONE) {
        if (n->routes[i].hash[0] == hash[0] && n->routes[i].hash[1] == hash[1])
            return i;
        /* Hash collision: linear probing. */
        key++;
    }
    i = (uint32_t)n->route_count;
    if (!orr_grow(&n->routes, &n->route_room, n->route_count + 1))
        return FLUID_NONE;
    fluid_use *use = fluid_use_make(n->f, n->paths.parts, n->paths.part_count);
    if (!use || !orr_map_put(n->by_hash, key, i, NULL))
        return FLUID_NONE;
    /* Windows apply to links only: ports of dimensions have no queue in which bytes could wait. */
    if (n->paths.t && n->paths.part_count) {
        double trip, window;
        fluid_paths_window(&n->paths, &trip, &window);
        fluid_use_window(use, trip, window);
    }
    n->routes[n->route_count++] = (route){use, latency, {hash[0], hash[1]}};
    return i;
}

static orr_code route_of(fluid_network *n, const orr_message *m, uint32_t *out, orr_error *err)
{
    const uint64_t pair = (uint64_t)m->src << 32 | m->dst;
    /* If a topology routes by message, each message of a pair is hashed separately, and the map
     * counts them instead of naming a route. */
    const bool is_fixed = !n->paths.t || n->paths.t->routing != ORR__ROUTE_BY_MESSAGE;
    double latency = 0;
    const uint32_t known = orr_map_find(n->by_pair, pair, is_fixed ? FLUID_NONE : 0);
    *out = known;
    if (is_fixed && known != FLUID_NONE)
        return ORR_OK;
    n->paths.part_count = 0;
    const orr_code code =
        fluid_paths_add_one(&n->paths, m->src, m->dst, is_fixed ? 0 : known, 1, &latency, err);
    if (code)
        return code;
    *out = find_route(n, latency);
    if (*out == FLUID_NONE || !orr_map_put(n->by_pair, pair, is_fixed ? *out : known + 1, NULL))
        return orr_no_memory(err);
    return ORR_OK;
}

/* ---- messages ---- */

static void through(void *net, uint64_t index);

static bool start_letter(fluid_network *n, uint32_t index)
{
    const letter *l = &n->letters[index];
    return fluid_start(n->f, n->sim, n->routes[l->route].use, l->bytes, l->most, through, n, index);
}

/* Its last byte has left: the next of its pair may start. */
static void through(void *net, uint64_t index)
{
    fluid_network *n = net;
    /* A copy: starting the next one may reallocate the letters. */
    const letter one = n->letters[index];
    bool ok = true;
    if (one.next != FLUID_NONE)
        ok = start_letter(n, one.next);
    else
        orr_map_remove(n->latest, one.pair);
    /* Freed before the delivery, which may send the next message. */
    n->letters[index].next = n->free_letter;
    n->free_letter = (uint32_t)index;
    orr__net_deliver_after(n->sim, one.latency, one.token);
    if (!ok) {
        orr_error err;
        orr_no_memory(&err);
        orr_net_fail(n->sim, &err);
    }
}

static orr_code fluid_network_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    fluid_network *n = net;
    const uint64_t pair = (uint64_t)m->src << 32 | m->dst;
    uint32_t r, i = n->free_letter;
    n->sim = sim;
    const orr_code code = route_of(n, m, &r, err);
    if (code)
        return code;
    if (i != FLUID_NONE) {
        n->free_letter = n->letters[i].next;
    } else {
        if (!orr_grow(&n->letters, &n->letter_room, n->letter_count + 1))
            return orr_no_memory(err);
        i = (uint32_t)n->letter_count++;
    }
    double latency = n->routes[r].latency, most = INFINITY;
    if (n->price)
        n->price(n->price_context, m, &latency, &most);
    n->letters[i] = (letter){.token = m->token,
                             .latency = (uint64_t)llround(latency),
                             .pair = pair,
                             .bytes = (double)m->size,
                             .most = most,
                             .route = r,
                             .next = FLUID_NONE};
    const uint32_t before = orr_map_find(n->latest, pair, FLUID_NONE);
    if (!orr_map_put(n->latest, pair, i, NULL))
        return orr_no_memory(err);
    if (before != FLUID_NONE)
        n->letters[before].next = i;
    else if (!start_letter(n, i))
        return orr_no_memory(err);
    return ORR_OK;
}

static void fluid_network_report(const void *net, orr_net_link_visit visit, void *context)
{
    const fluid_network *n = net;
    for (uint32_t k = 0; k < fluid_count(n->f); k++) {
        const uint32_t i = fluid_paths_at(&n->paths, k);
        const fluid_figures g = fluid_figures_of(n->f, fluid_paths_standing(&n->paths, i));
        orr_net_link link = {.messages = g.flows,
                             .bytes = (uint64_t)llround(g.bytes / fluid_paths_overhead(&n->paths)),
                             .busy_ns = g.busy_ns,
                             .max_queue = g.most_flows > 1 ? g.most_flows - 1 : 0,
                             .bandwidth = g.capacity};
        if (g.flows == 0)
            continue;
        fluid_paths_name(&n->paths, i, link.name);
        visit(context, &link);
    }
}

const orr_net_ops orr__net_fluid = {
    .name = "fluid",
    .help = "flows share links fairly, cut-through; collectives as NCCL runs them",
    .create = fluid_network_create,
    .send = fluid_network_send,
    .destroy = fluid_network_destroy,
    .report = fluid_network_report,
};
