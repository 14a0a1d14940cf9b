/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - shortest routes, one table per destination.
 *
 * A table has the distance of every device to one target, 4 bytes each; a link is on a shortest
 * route if it reduces the distance by exactly its cost.  A rank with a single neighbour has no
 * table: messages to it go via that neighbour, so that a cluster needs as many tables as leaf
 * switches, not ranks. Tables are made on demand.  When their memory is exhausted, the least
 * recently used one is evicted, so memory is bounded for any traffic. Cost: a table O(links) once,
 * times log devices where links differ in cost; a step O(links that leave the device). */
#include "routes.h"

#include "base/memory/hash.h"
#include "base/memory/heap.h"
#include "base/memory/map.h"

#define NONE UINT32_MAX
#define FAR UINT32_MAX

enum { DEFAULT_BYTES = 256 << 20, FEWEST_TABLES = 2 };

/* Links by device: those of device d are link[first[d]] to link[first[d + 1] - 1], in file
 * order. */
typedef struct star {
    uint32_t *first, *link;
} star;

typedef struct table {
    uint32_t *distance; /* by device */
    uint32_t target;
    uint32_t older, newer; /* LRU list */
} table;

struct orr__routes {
    const orr__topology *t;
    uint32_t devices;
    star out, in;
    uint32_t *gate; /* by rank: its only neighbour, or itself */
    table *tables;
    size_t table_count, table_room, most_tables;
    uint32_t oldest, newest;
    orr_map *by_target;
    /* Devices to be visited, nearest first. */
    bool is_even;    /* all links have equal cost: a FIFO queue is sorted by itself */
    uint32_t *queue; /* then; */
    orr_heap heap;   /* otherwise */
    uint64_t made;
};

/* ---- links by device ---- */

static bool make_star(const orr__topology *t, uint32_t devices, bool is_out, star *s)
{
    s->first = orr_alloc((size_t)devices + 2, sizeof *s->first);
    s->link = orr_alloc(t->link_count + 1, sizeof *s->link);
    if (!s->first || !s->link)
        return false;
    for (size_t i = 0; i < t->link_count; i++)
        if (!t->links[i].is_failed)
            /* Two places on: filling moves each by one, and leaves the starts where they belong. */
            s->first[(is_out ? t->links[i].from : t->links[i].to) + 2]++;
    for (uint32_t d = 2; d <= devices; d++)
        s->first[d] += s->first[d - 1];
    for (size_t i = 0; i < t->link_count; i++)
        if (!t->links[i].is_failed)
            s->link[s->first[(is_out ? t->links[i].from : t->links[i].to) + 1]++] = (uint32_t)i;
    return true;
}

/* Only if the neighbour may forward messages. */
static uint32_t find_gate(const orr__routes *r, uint32_t rank)
{
    uint32_t gate = NONE;
    for (uint32_t e = r->in.first[rank]; e < r->in.first[rank + 1]; e++) {
        const uint32_t from = r->t->links[r->in.link[e]].from;
        if (gate != NONE && from != gate)
            return rank;
        gate = from;
    }
    return gate == NONE || (gate < r->t->ranks && !r->t->ranks_forward) ? rank : gate;
}

static bool set_up(orr__routes *r, size_t most_bytes)
{
    const size_t size = ((size_t)r->devices + 1) * sizeof *r->tables->distance;
    r->most_tables = (most_bytes ? most_bytes : DEFAULT_BYTES) / size;
    if (r->most_tables < FEWEST_TABLES)
        r->most_tables = FEWEST_TABLES;
    r->oldest = r->newest = NONE;
    r->by_target = orr_map_create(0);
    r->gate = orr_alloc(r->t->ranks, sizeof *r->gate);
    if (!make_star(r->t, r->devices, true, &r->out) ||
        !make_star(r->t, r->devices, false, &r->in) || !r->gate || !r->by_target)
        return false;
    for (uint32_t rank = 0; rank < r->t->ranks; rank++)
        r->gate[rank] = find_gate(r, rank);
    r->is_even = true;
    for (size_t i = 1; i < r->t->link_count; i++)
        r->is_even &= r->t->links[i].cost == r->t->links[0].cost;
    return !r->is_even || (r->queue = orr_alloc((size_t)r->devices + 1, sizeof *r->queue));
}

orr_code orr__routes_create(const orr__topology *t,
                            size_t most_bytes,
                            orr__routes **out,
                            orr_error *err)
{
    orr__routes *r = orr_alloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return orr_no_memory(err);
    r->t = t;
    r->devices = orr__topology_devices(t);
    if (!set_up(r, most_bytes)) {
        orr__routes_destroy(r);
        return orr_no_memory(err);
    }
    *out = r;
    return ORR_OK;
}

void orr__routes_destroy(orr__routes *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->table_count; i++)
        orr_free(r->tables[i].distance);
    orr_free(r->tables);
    orr_free(r->out.first);
    orr_free(r->out.link);
    orr_free(r->in.first);
    orr_free(r->in.link);
    orr_free(r->gate);
    orr_map_destroy(r->by_target);
    orr_free(r->queue);
    orr_heap_fini(&r->heap);
    orr_free(r);
}

/* ---- LRU order ---- */

static void unhook(orr__routes *r, uint32_t i)
{
    const table *t = &r->tables[i];
    if (t->older == NONE)
        r->oldest = t->newer;
    else
        r->tables[t->older].newer = t->newer;
    if (t->newer == NONE)
        r->newest = t->older;
    else
        r->tables[t->newer].older = t->older;
}

static void hook(orr__routes *r, uint32_t i)
{
    r->tables[i].older = r->newest;
    r->tables[i].newer = NONE;
    if (r->newest == NONE)
        r->oldest = i;
    else
        r->tables[r->newest].newer = i;
    r->newest = i;
}

/* ---- tables ---- */

/* Relaxes the links into device d, backwards.  False: out of memory. */
static bool look_around(orr__routes *r, uint32_t *distance, uint32_t d, size_t *queued)
{
    bool ok = true;
    for (uint32_t i = r->in.first[d]; ok && i < r->in.first[d + 1]; i++) {
        const orr__wire *l = &r->t->links[r->in.link[i]];
        const uint64_t far = (uint64_t)distance[d] + l->cost;
        if (far >= distance[l->from])
            continue;
        distance[l->from] = (uint32_t)far;
        if (r->is_even)
            r->queue[(*queued)++] = l->from; /* once each: no later route is shorter */
        else
            ok = orr_heap_push(&r->heap, far, l->from);
    }
    return ok;
}

/* The nearest unvisited device; stale heap entries are skipped. */
static bool take_nearest(
    orr__routes *r, const uint32_t *distance, size_t *taken, size_t queued, uint32_t *out)
{
    orr_heap_entry e;
    if (r->is_even) {
        if (*taken == queued)
            return false;
        *out = r->queue[(*taken)++];
        return true;
    }
    do {
        if (!orr_heap_pop(&r->heap, &e))
            return false;
    } while (e.key > distance[e.value]);
    *out = e.value;
    return true;
}

/* Dijkstra's algorithm, backwards from the target. */
static bool fill(orr__routes *r, uint32_t *distance, uint32_t target)
{
    size_t taken = 0, queued = 0;
    uint32_t d = target;
    memset(distance, 0xff, r->devices * sizeof *distance);
    distance[target] = 0;
    bool ok = look_around(r, distance, target, &queued);
    while (ok && take_nearest(r, distance, &taken, queued, &d))
        if (d >= r->t->ranks || r->t->ranks_forward)
            ok = look_around(r, distance, d, &queued);
    r->heap.count = 0;
    r->made++;
    return ok;
}

static uint32_t new_table(orr__routes *r)
{
    if (r->table_count >= r->most_tables) {
        const uint32_t i = r->oldest;
        unhook(r, i);
        orr_map_remove(r->by_target, r->tables[i].target);
        return i;
    }
    if (!orr_grow(&r->tables, &r->table_room, r->table_count + 1))
        return NONE;
    table *t = &r->tables[r->table_count];
    t->distance = orr_alloc((size_t)r->devices + 1, sizeof *t->distance);
    return t->distance ? (uint32_t)r->table_count++ : NONE;
}

static const uint32_t *distances(orr__routes *r, uint32_t target)
{
    uint32_t i = orr_map_find(r->by_target, target, NONE);
    if (i == NONE) {
        i = new_table(r);
        if (i == NONE)
            return NULL;
        r->tables[i].target = target;
        hook(r, i);
        if (!fill(r, r->tables[i].distance, target) || !orr_map_put(r->by_target, target, i, NULL))
            return NULL;
    } else if (i != r->newest) {
        unhook(r, i);
        hook(r, i);
    }
    return r->tables[i].distance;
}

/* ---- lookup ---- */

/* A number below n.  The device is part of the hash: otherwise packets separated once would all
 * make the same choices from there on. */
static uint32_t pick(uint64_t hash, uint32_t at, uint32_t n)
{
    const uint64_t h = orr_hash_mix(hash ^ 0x8ebc6af09c88c6e3u, at + 0x9e3779b97f4a7c15u);
    return (uint32_t)(((h >> 32) * n) >> 32);
}

/* Does this link reduce the distance by exactly its cost? */
static bool is_on_route(const orr__routes *r, const uint32_t *distance, uint32_t link)
{
    const orr__wire *l = &r->t->links[link];
    return distance[l->to] != FAR && distance[l->to] + l->cost == distance[l->from];
}

static uint32_t choose(const orr__routes *r, const uint32_t *distance, uint32_t at, uint64_t hash)
{
    const uint32_t *link = r->out.link + r->out.first[at];
    const uint32_t *end = r->out.link + r->out.first[at + 1];
    uint32_t routes = 0, which = 0;
    if (r->t->routing != ORR__ROUTE_FIRST) {
        for (const uint32_t *l = link; l < end; l++)
            routes += is_on_route(r, distance, *l);
        which = routes > 1 ? pick(hash, at, routes) : 0;
    }
    for (; link < end; link++)
        if (is_on_route(r, distance, *link) && which-- == 0)
            return *link;
    return NET_LINK_NONE;
}

/* From the only neighbour: one of the cheapest links between the two. */
static uint32_t choose_last(const orr__routes *r, uint32_t at, uint32_t dst, uint64_t hash)
{
    const uint32_t *link = r->in.link + r->in.first[dst], *end = r->in.link + r->in.first[dst + 1];
    uint32_t cost = UINT32_MAX, routes = 0;
    if (end - link == 1)
        return *link;
    for (const uint32_t *l = link; l < end; l++) {
        const uint32_t own = r->t->links[*l].cost;
        routes = own < cost ? 1 : routes + (own == cost);
        cost = own < cost ? own : cost;
    }
    uint32_t which = r->t->routing == ORR__ROUTE_FIRST ? 0 : pick(hash, at, routes);
    for (; which || r->t->links[*link].cost != cost; link++)
        which -= r->t->links[*link].cost == cost;
    return *link;
}

uint32_t orr__routes_next(orr__routes *r, uint32_t at, uint32_t dst, uint64_t hash, orr_error *err)
{
    const uint32_t gate = r->gate[dst];
    if (at == dst)
        return NET_LINK_ARRIVED;
    if (at == gate)
        return choose_last(r, at, dst, hash);
    const uint32_t *distance = distances(r, gate);
    if (!distance) {
        orr_no_memory(err);
        return NET_LINK_NONE;
    }
    const uint32_t link = distance[at] == FAR ? NET_LINK_NONE : choose(r, distance, at, hash);
    if (link == NET_LINK_NONE)
        orr_fail(err, ORR_EINPUT, NULL, "there is no route from device %u to rank %u", at, dst);
    return link;
}

uint32_t orr__routes_choices(
    orr__routes *r, uint32_t at, uint32_t dst, uint32_t *out, uint32_t most, orr_error *err)
{
    const uint32_t gate = r->gate[dst];
    uint32_t count = 0, cost = UINT32_MAX;
    if (at == dst)
        return 0;
    if (at == gate) { /* from the only neighbour: the cheapest links between the two */
        const uint32_t *end = r->in.link + r->in.first[dst + 1];
        for (const uint32_t *l = r->in.link + r->in.first[dst]; l < end; l++)
            cost = r->t->links[*l].cost < cost ? r->t->links[*l].cost : cost;
        for (const uint32_t *l = r->in.link + r->in.first[dst]; l < end && count < most; l++)
            if (r->t->links[*l].cost == cost)
                out[count++] = *l;
        return count;
    }
    const uint32_t *distance = distances(r, gate);
    if (!distance) {
        orr_no_memory(err);
        return 0;
    }
    for (uint32_t i = r->out.first[at];
         distance[at] != FAR && i < r->out.first[at + 1] && count < most; i++)
        if (is_on_route(r, distance, r->out.link[i]))
            out[count++] = r->out.link[i];
    if (count == 0)
        orr_fail(err, ORR_EINPUT, NULL, "there is no route from device %u to rank %u", at, dst);
    return count;
}

uint32_t orr__routes_gate(const orr__routes *r, uint32_t rank)
{
    return r->gate[rank];
}

uint32_t orr__routes_twin(const orr__routes *r, uint32_t link)
{
    const orr__wire *own = &r->t->links[link];
    uint32_t n = 0;
    for (uint32_t e = r->out.first[own->from]; r->out.link[e] < link; e++)
        n += r->t->links[r->out.link[e]].to == own->to;
    return n;
}

uint64_t orr__routes_made(const orr__routes *r)
{
    return r->made;
}

size_t orr__routes_kept(const orr__routes *r)
{
    return r->table_count;
}
