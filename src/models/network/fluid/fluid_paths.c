/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_paths.c - routes of messages as lists of resources, for a fluid (fluid.h).
 *
 * Over dimensions a route follows from coordinates.  Over links it is that of the packet engine,
 * hash for hash and cable for cable, so that flows collide where packets would
 * (docs/design/fluid.md, "Packet effects").  Resources are made at the start, except
 * for fully connected groups: their pairs are quadratic in the ranks, so only used ones are
 * made. */
#include "fluid.h"

#include "models/network/ecmp.h"
#include "models/network/net_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* MOST_HOPS: an endless route would be our bug, and an error is better than a hang. */
enum { NONE = UINT32_MAX, MOST_HOPS = 1 << 16 };

/* ---- setting up ---- */

static bool add_dims(fluid_paths *p, const orr_net_config *cfg)
{
    net_product_init(&p->shape, cfg);
    for (uint32_t k = 0; k < cfg->dims; k++) {
        p->speed[k] = net_link_speed(cfg->bandwidth[k]);
        p->latency[k] = cfg->latency_ns[k];
        if (p->shape.shape[k] == ORR_NET_FULLY_CONNECTED) {
            if (!p->pairs && !(p->pairs = orr_map_create(0)))
                return false;
            continue;
        }
        p->first[k] = fluid_add(p->f, p->speed[k], 2 * p->shape.ranks);
        if (p->first[k] == FLUID_NONE)
            return false;
    }
    return true;
}

/* Packets use cables: the ports of a device are in the order of its cables, and a hash selects one
 * of them.  The index of a link is that of its cable: the link from the lower device to the higher,
 * the n-th for the n-th back. */
static bool number_cables(fluid_paths *p)
{
    const orr__topology *t = p->t;
    const uint64_t devices = orr__topology_devices(t);
    orr_map *last = orr_map_create(0); /* ends -> the latest link up without a link back */
    uint32_t *before = orr_alloc(t->link_count + 1, sizeof *before); /* of the same ends */
    bool ok = last && before && (p->cable = orr_alloc(t->link_count + 1, sizeof *p->cable));
    /* backwards, so that the first is found first */
    for (size_t i = t->link_count; i-- > 0 && ok;) {
        const orr__wire *l = &t->links[i];
        p->cable[i] = (uint32_t)i;
        if (l->from > l->to)
            continue;
        before[i] = orr_map_find(last, l->from * devices + l->to, NONE);
        ok = orr_map_put(last, l->from * devices + l->to, (uint32_t)i, NULL);
    }
    for (size_t i = 0; i < t->link_count && ok; i++) {
        const orr__wire *l = &t->links[i];
        const uint64_t ends = l->to * devices + l->from;
        const uint32_t up = l->from > l->to ? orr_map_find(last, ends, NONE) : NONE;
        if (up == NONE)
            continue;
        p->cable[i] = up;
        ok = orr_map_put(last, ends, before[up], NULL);
    }
    orr_map_destroy(last);
    orr_free(before);
    return ok;
}

static orr_code add_links(fluid_paths *p, orr_error *err)
{
    if (!number_cables(p))
        return orr_no_memory(err);
    for (size_t i = 0; i < p->t->link_count; i++)
        if (fluid_add(p->f, p->t->links[i].speed, 1) == FLUID_NONE)
            return orr_no_memory(err);
    return orr__routes_create(p->t, 0, &p->routes, err);
}

orr_code fluid_paths_init(fluid_paths *p, const orr_net_config *cfg, fluid *f, orr_error *err)
{
    *p = (fluid_paths){.f = f, .where = &cfg->where};
    const orr__net_config *own = orr__net_config_of(cfg);
    if (own && own->topology) {
        p->t = own->topology;
        return add_links(p, err);
    }
    return add_dims(p, cfg) ? ORR_OK : orr_no_memory(err);
}

void fluid_paths_fini(fluid_paths *p)
{
    orr_map_destroy(p->pairs);
    orr__routes_destroy(p->routes);
    orr_free(p->parts);
    orr_free(p->pair_of);
    orr_free(p->pair_order);
    orr_free(p->cable);
}

static bool add_part(fluid_paths *p, uint32_t resource, double share)
{
    if (!orr_grow(&p->parts, &p->part_room, p->part_count + 1))
        return false;
    p->parts[p->part_count++] = (fluid_part){.resource = resource, .share = share};
    return true;
}

/* One hop of a message, as seen by its window. */
static bool add_hop(fluid_paths *p, uint32_t link, double share, fluid_kind kind)
{
    const bool ok = add_part(p, link, share);
    if (ok)
        p->parts[p->part_count - 1].kind = kind;
    return ok;
}

/* ---- dimensions ---- */

static uint32_t pair_resource(fluid_paths *p, uint32_t k, uint32_t from, uint32_t to)
{
    const uint64_t key = (uint64_t)from * p->shape.ranks + to;
    uint32_t r = orr_map_find(p->pairs, key, NONE);
    if (r != NONE)
        return r;
    /* Numbers depend on first use, and so on who sends first; listings sort them by pair
     * (fluid_paths_at). */
    if (!orr_grow(&p->pair_of, &p->pair_room, p->pair_count + 1) ||
        !orr_grow(&p->pair_order, &p->order_room, p->pair_count + 1) ||
        (r = fluid_add(p->f, p->speed[k], 1)) == FLUID_NONE || !orr_map_put(p->pairs, key, r, NULL))
        return NONE;
    if (p->pair_count == 0)
        p->first_pair = r; /* nothing else is added from now on */
    p->pair_order[p->pair_count] = r;
    p->pair_of[p->pair_count++] = key;
    return r;
}

/* Along dimension k, from rank `at` to the one with the coordinate of dst. */
static bool cross(
    fluid_paths *p, uint32_t k, uint32_t at, uint32_t to, double share, double *latency)
{
    const net_product *s = &p->shape;
    if (s->shape[k] == ORR_NET_SWITCH) {
        *latency += 2 * p->latency[k];
        at = p->stands_for ? p->stands_for[at] : at;
        to = p->stands_for ? p->stands_for[to] : to;
        return add_part(p, p->first[k] + 2 * at, share) &&
               add_part(p, p->first[k] + 2 * to + 1, share);
    }
    if (s->shape[k] == ORR_NET_FULLY_CONNECTED) {
        const uint32_t r = pair_resource(p, k, at, to);
        *latency += p->latency[k];
        return r != NONE && add_part(p, r, share);
    }
    const uint32_t n = s->npus[k];
    const bool is_clockwise = net_product_is_clockwise(s, k, at, to);
    while (at != to) {
        const uint32_t c = net_product_coordinate(s, k, at);
        *latency += p->latency[k];
        if (!add_part(p, p->first[k] + 2 * at + !is_clockwise, share))
            return false;
        at = net_product_neighbour(s, k, at, is_clockwise ? (c + 1) % n : (c + n - 1) % n);
    }
    return true;
}

static bool add_along_dims(
    fluid_paths *p, uint32_t src, uint32_t dst, double share, double *latency)
{
    bool ok = true;
    for (uint32_t k = 0, at = src; k < p->shape.dims && at != dst && ok; k++) {
        const uint32_t c = net_product_coordinate(&p->shape, k, dst);
        if (net_product_coordinate(&p->shape, k, at) == c)
            continue;
        const uint32_t to = net_product_neighbour(&p->shape, k, at, c);
        ok = cross(p, k, at, to, share, latency);
        at = to;
    }
    return ok;
}

/* ---- links ---- */

static orr_code fail_route(const fluid_paths *p, uint32_t src, uint32_t dst, orr_error *err)
{
    if (err->code == ORR_ENOMEM)
        return err->code;
    return orr_fail(err, ORR_EINPUT, p->where,
                    "there is no route from rank %u to rank %u over working links", src, dst);
}

enum { MOST_WAYS = 256 };

/* The links that begin a shortest route, in cable order.  There are few, nearly sorted. */
static uint32_t find_ways(
    fluid_paths *p, uint32_t at, uint32_t dst, uint32_t ways[MOST_WAYS], orr_error *err)
{
    const uint32_t count = orr__routes_choices(p->routes, at, dst, ways, MOST_WAYS, err);
    for (uint32_t i = 1; i < count && p->t->routing != ORR__ROUTE_FIRST; i++) {
        const uint32_t one = ways[i];
        uint32_t j = i;
        for (; j && p->cable[one] < p->cable[ways[j - 1]]; j--)
            ways[j] = ways[j - 1];
        ways[j] = one;
    }
    return count;
}

/* One route: at each device the hash of addresses and ports selects a link, as in the packet
 * engine. */
static orr_code add_route(fluid_paths *p,
                          uint32_t src,
                          uint32_t dst,
                          uint32_t ports,
                          double share,
                          bool is_back,
                          double *latency,
                          orr_error *err)
{
    uint32_t at = src, ways[MOST_WAYS];
    for (uint32_t hops = 0; hops < MOST_HOPS; hops++) {
        if (at == dst)
            return ORR_OK;
        const uint32_t count = find_ways(p, at, dst, ways, err);
        if (count == 0)
            return fail_route(p, src, dst, err);
        /* A host chooses its NIC with a seed of its own, as in the packet engine. */
        const uint32_t seed = at == src ? NET_ECMP_HOST_SEED : at;
        const uint32_t hash =
            net_ecmp_hash(net_ecmp_address(src), net_ecmp_address(dst), ports, seed);
        const uint32_t link =
            ways[p->t->routing == ORR__ROUTE_FIRST || count == 1 ? 0 : hash % count];
        if (!add_hop(p, link, share,
                     is_back     ? FLUID_BACK
                     : at == src ? FLUID_FIRST
                                 : FLUID_THROUGH))
            return orr_no_memory(err);
        *latency += p->t->links[link].latency;
        at = p->t->links[link].to;
    }
    return orr_fail(err, ORR_EBUG, p->where, "a route from rank %u to rank %u does not end", src,
                    dst);
}

/* Divided equally at each device among the links that begin a shortest route; very small shares
 * stay together. */
static orr_code divide(fluid_paths *p,
                       uint32_t at,
                       uint32_t dst,
                       double share,
                       double least,
                       double *latency,
                       orr_error *err)
{
    uint32_t ways[MOST_WAYS];
    double longest = 0;
    if (at == dst)
        return ORR_OK;
    uint32_t count = orr__routes_choices(p->routes, at, dst, ways, MOST_WAYS, err);
    if (count == 0)
        return fail_route(p, at, dst, err);
    /* Without a limit a network of many stages would be divided into exponentially many parts.  dst
     * selects, so that different streams take different links. */
    if (share / count < least) {
        ways[0] = ways[dst % count];
        count = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const orr__wire *l = &p->t->links[ways[i]];
        double own = l->latency;
        if (!add_part(p, ways[i], share / count))
            return orr_no_memory(err);
        const orr_code code = divide(p, l->to, dst, share / count, least, &own, err);
        if (code)
            return code;
        /* A stream has arrived when its slowest part has. */
        longest = own > longest ? own : longest;
    }
    *latency += longest;
    return ORR_OK;
}

/* Sizes on the wire, as in the packet engine: payload, header, and the ACK. */
enum { PAYLOAD = 1000, HEADER = 36, ACK = 48 };
static const double AHEAD = (PAYLOAD + HEADER) / (double)PAYLOAD;
static const double BACK = ACK / (double)PAYLOAD;

orr_code fluid_paths_add(
    fluid_paths *p, uint32_t src, uint32_t dst, double share, double *latency, orr_error *err)
{
    double back = 0;
    if (!p->t)
        return add_along_dims(p, src, dst, share, latency) ? ORR_OK : orr_no_memory(err);
    if (p->t->routing != ORR__ROUTE_BY_MESSAGE)
        return fluid_paths_add_one(p, src, dst, 0, share, latency, err);
    const double least = share / 4096;
    const orr_code code = divide(p, src, dst, share * AHEAD, least * AHEAD, latency, err);
    return code ? code : divide(p, dst, src, share * BACK, least * BACK, &back, err);
}

/* A message of a representative: the loads of all represented messages on the same links are
 * added. */
static bool add_standing(fluid_paths *p, uint32_t src, uint32_t dst, double share, double *latency)
{
    const fluid_standing *s = p->standing;
    const size_t before = p->part_count;
    const uint32_t way = orr_map_find(s->way_of, (uint64_t)src << 32 | dst, NONE);
    if (!add_along_dims(p, src, dst, share, latency)) /* for its latency */
        return false;
    if (way == NONE)
        return true;
    p->part_count = before;
    for (uint32_t i = s->first[way]; i < s->first[way + 1]; i++) {
        if (!add_part(p, s->parts[i].resource, share * s->parts[i].share))
            return false;
        p->parts[p->part_count - 1].flows = s->parts[i].flows;
    }
    return true;
}

orr_code fluid_paths_add_one(fluid_paths *p,
                             uint32_t src,
                             uint32_t dst,
                             uint64_t number,
                             double share,
                             double *latency,
                             orr_error *err)
{
    double back = 0;
    if (!p->t && p->standing)
        return add_standing(p, src, dst, share, latency) ? ORR_OK : orr_no_memory(err);
    if (!p->t)
        return fluid_paths_add(p, src, dst, share, latency, err);
    const uint32_t own =
        NET_ECMP_FIRST_PORT + (p->t->routing == ORR__ROUTE_BY_MESSAGE ? (uint32_t)number : 0);
    const uint32_t ports = (uint16_t)own | (uint32_t)NET_ECMP_PORT << 16;
    const uint32_t swapped = NET_ECMP_PORT | (uint32_t)(uint16_t)own << 16;
    const orr_code code = add_route(p, src, dst, ports, share * AHEAD, false, latency, err);
    return code ? code : add_route(p, dst, src, swapped, share * BACK, true, &back, err);
}

/* As in the packet engine: a window of what the slowest link carries in a round trip, and a packet
 * starts if the window has room for its first byte. */
void fluid_paths_window(const fluid_paths *p, double *trip, double *bytes)
{
    double ahead = 0, full = 0, slowest = INFINITY;
    *trip = 0;
    for (size_t i = 0; i < p->part_count; i++) {
        const orr__wire *l = &p->t->links[p->parts[i].resource];
        const bool is_back = p->parts[i].kind == FLUID_BACK;
        *trip += l->latency + (is_back ? ACK : PAYLOAD + HEADER) / l->speed;
        if (is_back)
            continue;
        ahead += l->latency;
        full += PAYLOAD / l->speed;
        slowest = l->speed < slowest ? l->speed : slowest;
    }
    *bytes = slowest * (2 * ahead + full) + PAYLOAD / 2.0;
}

double fluid_paths_overhead(const fluid_paths *p)
{
    return p->t ? AHEAD : 1;
}

uint32_t fluid_paths_standing(const fluid_paths *p, uint32_t resource)
{
    if (p->standing)
        return resource < p->standing->links ? p->standing->link[resource] : resource;
    if (!p->stands_for) /* only ports have representatives */
        return resource;
    const uint32_t line = resource / (2 * p->shape.ranks), port = resource % (2 * p->shape.ranks);
    return line * 2 * p->shape.ranks + 2 * p->stands_for[port / 2] + port % 2;
}

static int by_pair(const void *a, const void *b, void *paths)
{
    const fluid_paths *p = paths;
    const uint64_t x = p->pair_of[*(const uint32_t *)a - p->first_pair];
    const uint64_t y = p->pair_of[*(const uint32_t *)b - p->first_pair];
    return x < y ? -1 : x > y;
}

uint32_t fluid_paths_at(const fluid_paths *p, uint32_t k)
{
    if (p->pair_count == 0 || k < p->first_pair)
        return k;
    if (k == p->first_pair)
        qsort_r(p->pair_order, p->pair_count, sizeof *p->pair_order, by_pair, (void *)(uintptr_t)p);
    return p->pair_order[k - p->first_pair];
}

/* ---- names ---- */

/* "3 -> leaf0".  Thousands of links are named after every run, so without printf. */
static void name_link(const char *from, const char *to, char out[ORR_NET_LINK_NAME])
{
    stpcpy(stpcpy(stpcpy(out, from), " -> "), to);
}

static void name_part(const fluid_paths *p, uint32_t k, uint32_t at, char out[ORR_NET_LINK_NAME])
{
    const net_product *s = &p->shape;
    const uint32_t rank = at / 2, n = s->npus[k], c = net_product_coordinate(s, k, rank);
    const bool is_second = at % 2;
    const uint32_t other =
        s->shape[k] == ORR_NET_SWITCH
            ? net_product_switch(s, k, rank)
            : net_product_neighbour(s, k, rank, is_second ? (c + n - 1) % n : (c + 1) % n);
    char one[NET_DEVICE_NAME], two[NET_DEVICE_NAME];
    net_product_name(s, rank, one);
    net_product_name(s, other, two);
    if (s->shape[k] == ORR_NET_SWITCH && is_second)
        name_link(two, one, out);
    else
        name_link(one, two, out);
}

void fluid_paths_name(const fluid_paths *p, uint32_t resource, char out[ORR_NET_LINK_NAME])
{
    if (p->t) {
        char from[NET_DEVICE_NAME], to[NET_DEVICE_NAME];
        const uint32_t twins = orr__routes_twin(p->routes, resource);
        orr__topology_name(p->t, p->t->links[resource].from, from);
        orr__topology_name(p->t, p->t->links[resource].to, to);
        if (twins)
            snprintf(out, ORR_NET_LINK_NAME, "%s -> %s #%u", from, to, twins + 1);
        else
            snprintf(out, ORR_NET_LINK_NAME, "%s -> %s", from, to);
        return;
    }
    for (uint32_t k = p->shape.dims; k-- > 0;) {
        if (p->shape.shape[k] == ORR_NET_FULLY_CONNECTED || resource < p->first[k] ||
            resource >= p->first[k] + 2 * p->shape.ranks)
            continue;
        name_part(p, k, resource - p->first[k], out);
        return;
    }
    const uint64_t key = p->pair_of[resource - p->first_pair];
    snprintf(out, ORR_NET_LINK_NAME, "%u -> %u", (uint32_t)(key / p->shape.ranks),
             (uint32_t)(key % p->shape.ranks));
}
