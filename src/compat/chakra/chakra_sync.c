/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_sync.c - waits for the device as chakra_trace_link writes them: sync_dep (chakra.md 3.6,
 * 3.8).
 *
 * chakra_trace_link knows both ends of a wait by their external ids alone.  For every event E that
 * has the id of the waiting end, the first operator that starts after E depends on the event that
 * has the id of the other end last; it is noted when that is a device node.  The target is
 * translated to its new id when the device node is numbered, if it has one by then, and again at
 * the end: so it may come out as another node.  All of this is kept.
 * Cost: linear, but for sorting what was found. */
#include "chakra_link.h"

#include "base/memory/map.h"

#include <stdlib.h>

/* From a wait to the external ids of its ends. */
typedef struct id_pair {
    int64_t end, start;
} id_pair;

typedef struct syncer {
    orr_link *l;
    id_pair *ids;
    size_t id_count;
    orr_map *last_of; /* external id -> the last event that has it */
    link_pairs to;    /* event of a device operation -> operators that depend on it */
    orr_error *err;
} syncer;

static int by_ids(const void *a, const void *b)
{
    const id_pair *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool list_ids(syncer *s)
{
    const orr_link *l = s->l;
    s->ids = orr_alloc(l->wait_count + 1, sizeof *s->ids);
    if (!s->ids)
        return false;
    for (size_t i = 0; i < l->wait_count; i++) {
        const int64_t start = l->device.events[l->waits[i].from].external;
        const int64_t end = l->device.events[l->waits[i].to].external;
        if (start != -1 && end != -1 && start != end)
            s->ids[s->id_count++] = (id_pair){end, start};
    }
    qsort(s->ids, s->id_count, sizeof *s->ids, by_ids);
    return true;
}

static bool map_externals(syncer *s)
{
    const kin_trace *k = &s->l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        if (!orr_map_put(s->last_of, (uint64_t)k->events[i].external, i, NULL))
            return false;
    }
    return true;
}

/* The first operator that starts after ts; LINK_NONE: there is none. */
static uint32_t next_operator(const orr_link *l, double ts)
{
    uint32_t low = 0, high = l->ops.count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (link_op(l, mid)->ts <= ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->ops.count ? low : LINK_NONE;
}

static size_t first_with_end(const syncer *s, int64_t end)
{
    size_t low = 0, high = s->id_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->ids[mid].end < end)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Event i may be the waiting end of some waits. */
static bool apply_event(syncer *s, uint32_t i)
{
    const kin_event *e = &s->l->device.events[i];
    for (size_t k = first_with_end(s, e->external); k < s->id_count && s->ids[k].end == e->external;
         k++) {
        if (k && by_ids(&s->ids[k], &s->ids[k - 1]) == 0)
            continue;
        const uint32_t from = orr_map_find(s->last_of, (uint64_t)s->ids[k].start, LINK_NONE);
        const uint32_t op = next_operator(s->l, e->ts);
        if (from != LINK_NONE && op != LINK_NONE && chakra_of(s->l)->host_of[op] != LINK_NONE &&
            !link_pairs_add(&s->to, from, chakra_of(s->l)->host_of[op]))
            return false;
    }
    return true;
}

/* Host node h as it is called when the node with number `now` is made, then translated once
 * more. */
static uint64_t translated(const orr_link *l, uint32_t h, uint32_t now)
{
    const uint64_t once =
        h <= now ? chakra_of(l)->new_id[h] : (uint64_t)chakra_of(l)->host.nodes[h].id;
    const uint32_t again = chakra_host_find(&chakra_of(l)->host, (int64_t)once);
    return again == UINT32_MAX ? once : chakra_of(l)->new_id[again];
}

static bool note_sync(orr_link *l, uint64_t node, uint64_t from)
{
    if (node >= chakra_of(l)->node_count)
        return true;
    if (!orr_grow(&chakra_of(l)->syncs, &chakra_of(l)->sync_room, chakra_of(l)->sync_count + 1))
        return false;
    chakra_of(l)->syncs[chakra_of(l)->sync_count++] = (chakra_sync){node, from};
    return true;
}

static bool note_device_nodes(orr_link *l, const link_lists *to, uint32_t h)
{
    for (uint32_t p = chakra_of(l)->placed.first[h]; p < chakra_of(l)->placed.first[h + 1]; p++) {
        const uint32_t event = chakra_of(l)->placed.list[p];
        const uint64_t id = chakra_of(l)->new_id[h] + 1 + (p - chakra_of(l)->placed.first[h]);
        for (uint32_t i = to->first[event]; i < to->first[event + 1]; i++) {
            if (!note_sync(l, translated(l, to->list[i], h), id))
                return false;
        }
    }
    return true;
}

static int by_node(const void *a, const void *b)
{
    const chakra_sync *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void sort_syncs(orr_link *l)
{
    size_t kept = 0;
    if (chakra_of(l)->sync_count)
        qsort(chakra_of(l)->syncs, chakra_of(l)->sync_count, sizeof *chakra_of(l)->syncs, by_node);
    for (size_t i = 0; i < chakra_of(l)->sync_count; i++) {
        if (kept == 0 || by_node(&chakra_of(l)->syncs[i], &chakra_of(l)->syncs[kept - 1]) != 0)
            chakra_of(l)->syncs[kept++] = chakra_of(l)->syncs[i];
    }
    chakra_of(l)->sync_count = kept;
    l->tally.counts.of[ORR_LINK_SYNCS] = kept;
}

static orr_code find_all(syncer *s)
{
    orr_link *l = s->l;
    link_lists to;
    bool has_room = list_ids(s) && map_externals(s);
    for (uint32_t i = 0; has_room && s->id_count && i < l->device.count; i++)
        has_room = apply_event(s, i);
    if (!has_room)
        return orr_no_memory(s->err);
    const orr_code code = link_pairs_take(&s->to, (uint32_t)l->device.count, l->arena, &to, s->err);
    if (code)
        return code;
    for (uint32_t h = 0; has_room && h < chakra_of(l)->host.count; h++)
        has_room = note_device_nodes(l, &to, h);
    if (!has_room)
        return orr_no_memory(s->err);
    sort_syncs(l);
    return ORR_OK;
}

orr_code chakra_find_syncs(orr_link *l, orr_error *err)
{
    syncer s = {.l = l, .last_of = orr_map_create(l->device.count), .err = err};
    const orr_code code = s.last_of ? find_all(&s) : orr_no_memory(err);
    orr_map_destroy(s.last_of);
    orr_free(s.ids);
    orr_free(s.to.pairs);
    return code;
}
