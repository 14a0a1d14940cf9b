/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_link.c - chakra_trace_link's rules for our linker: its steps, and what it refuses
 * (chakra.md 3). */
#include "chakra_link.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "chakra.h"

#include <inttypes.h>
#include <stdlib.h>

/* Waits for the device as chakra_trace_link writes them: sync_dep (chakra.md 3.6,
 * 3.8).
 *
 * chakra_trace_link knows both ends of a wait by their external ids alone.  For every event E that
 * has the id of the waiting end, the first operator that starts after E depends on the event that
 * has the id of the other end last; it is noted when that is a device node.  The target is
 * translated to its new id when the device node is numbered, if it has one by then, and again at
 * the end: so it may come out as another node.  All of this is kept.
 * Cost: linear, but for sorting what was found. */

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

/* chakra_link.c: waits for the device, as sync_dep (chakra.md 3.6, 3.8). */
static orr_code chakra_find_syncs(orr_link *l, orr_error *err)
{
    syncer s = {.l = l, .last_of = orr_map_create(l->device.count), .err = err};
    const orr_code code = s.last_of ? find_all(&s) : orr_no_memory(err);
    orr_map_destroy(s.last_of);
    orr_free(s.ids);
    orr_free(s.to.pairs);
    return code;
}

/* What belongs together to chakra_trace_link: host nodes and operators, device
 * operations and host nodes (chakra.md 3.7, 3.8).  link_merge.c does it without its defects.
 *
 * Both traces name an operator by its record-function id.  A device operation names its launch by a
 * correlation, and chakra_trace_link searches back from there for an operator with the kernel's
 * external id; every host node that shares it is given the kernel, and kernels of which none is
 * found are dropped.
 * Cost: linear, and a binary search for each device operation. */

/* ---- threads that wake each other (chakra.md 3.5) ---- */

/* Silence on a thread, in microseconds, after which another one may have woken it. */
enum { GAP_US = 1000 };

/* The latest operator that has started, and the latest one of any other thread; of those that start
 * together the first of its thread, of threads the one that was seen first. */
typedef struct latest {
    const orr_link *l;
    const uint32_t *rank; /* of threads, by first operator */
    uint32_t first, second;
} latest;

static uint32_t thread_of(const latest *s, uint32_t op)
{
    return link_op(s->l, op)->tid;
}

static bool is_later(const latest *s, uint32_t a, uint32_t b)
{
    if (b == LINK_NONE)
        return true;
    const kin_event *x = link_op(s->l, a), *y = link_op(s->l, b);
    return x->ts != y->ts ? x->ts > y->ts : s->rank[x->tid] < s->rank[y->tid];
}

static bool is_of_thread(const latest *s, uint32_t op, uint32_t tid)
{
    return op != LINK_NONE && thread_of(s, op) == tid;
}

static void has_started(latest *s, uint32_t op)
{
    const uint32_t tid = thread_of(s, op);
    if (is_of_thread(s, s->first, tid)) {
        if (link_op(s->l, op)->ts > link_op(s->l, s->first)->ts)
            s->first = op;
        return;
    }
    if (is_later(s, op, s->first)) {
        s->second = s->first;
        s->first = op;
        return;
    }
    if (is_of_thread(s, s->second, tid) && link_op(s->l, op)->ts <= link_op(s->l, s->second)->ts)
        return;
    if (is_later(s, op, s->second))
        s->second = op;
}

/* State of one thread: what its operators wait for now, and where it was. */
typedef struct waiting {
    uint32_t after, previous;
} waiting;

static bool has_gap(const orr_link *l, uint32_t previous, const kin_event *e)
{
    if (previous == LINK_NONE)
        return true;
    const kin_event *p = link_op(l, previous);
    return e->ts - p->ts - p->dur > GAP_US;
}

static void note_waits(orr_link *l, latest *s, waiting *threads)
{
    uint32_t started = 0;
    for (uint32_t op = 0; op < l->ops.count; op++) {
        const kin_event *e = link_op(l, op);
        for (; link_op(l, started)->ts < e->ts; started++)
            has_started(s, started);
        waiting *w = &threads[e->tid];
        if (has_gap(l, w->previous, e))
            w->after = is_of_thread(s, s->first, e->tid) ? s->second : s->first;
        chakra_of(l)->after[op] = w->after;
        w->previous = op;
    }
}

/* chakra_link.c: which thread woke which operator (chakra.md 3.5); which operator a host node is;
 * on which host node a device operation hangs (chakra.md 3.7). */
static orr_code chakra_wake(orr_link *l, orr_error *err)
{
    chakra_of(l)->after = orr_arena_new(l->arena, (size_t)l->ops.count + 1, uint32_t);
    if (!chakra_of(l)->after)
        return orr_no_memory(err);
    const uint32_t n = l->ops.thread_count;
    waiting *threads = orr_alloc((size_t)n + 1, sizeof *threads);
    uint32_t *rank = orr_alloc((size_t)n + 1, sizeof *rank);
    const bool has_room = threads && rank;
    if (has_room) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < n; i++)
            threads[i] = (waiting){LINK_NONE, LINK_NONE};
        for (uint32_t op = 0; op < l->ops.count; op++) {
            const uint32_t tid = link_op(l, op)->tid;
            if (!rank[tid])
                rank[tid] = ++seen;
        }
        latest s = {.l = l, .rank = rank, .first = LINK_NONE, .second = LINK_NONE};
        note_waits(l, &s, threads);
    }
    orr_free(threads);
    orr_free(rank);
    return has_room ? ORR_OK : orr_no_memory(err);
}

/* ---- host nodes and operators ---- */

/* Record-function id -> the last operator that has it. */
static orr_map *operators_by_rf(const orr_link *l)
{
    orr_map *by_rf = orr_map_create(l->ops.count);
    for (uint32_t op = 0; by_rf && op < l->ops.count; op++) {
        const int64_t rf = link_op(l, op)->rf;
        if (rf != KIN_NO_NUMBER && !orr_map_put(by_rf, (uint64_t)rf, op, NULL)) {
            orr_map_destroy(by_rf);
            return NULL;
        }
    }
    return by_rf;
}

/* The operator that host node h is. */
static void find_operator(orr_link *l, const orr_map *by_rf, uint32_t h)
{
    const chakra_host_node *n = &chakra_of(l)->host.nodes[h];
    chakra_of(l)->op_of[h] = LINK_NONE;
    if (n->rf != INT64_MIN && n->is_reached)
        chakra_of(l)->op_of[h] = orr_map_find(by_rf, (uint64_t)n->rf, LINK_NONE);
    l->tally.counts.of[ORR_LINK_LINKED] += chakra_of(l)->op_of[h] != LINK_NONE;
}

/* The host node that h waits for on another thread: known by its rf id, and it must have come
 * before. */
static uint32_t waits_for(const orr_link *l,
                          const orr_map *by_rf,
                          const uint32_t *host_of,
                          uint32_t h)
{
    const uint32_t after = chakra_of(l)->after[chakra_of(l)->op_of[h]];
    if (after == LINK_NONE)
        return LINK_NONE;
    const int64_t rf = link_op(l, after)->rf;
    if (rf == KIN_NO_NUMBER || rf == 0)
        return LINK_NONE;
    return host_of[orr_map_find(by_rf, (uint64_t)rf, after)];
}

static void match_all(orr_link *l, const orr_map *by_rf, uint32_t *host_of)
{
    for (uint32_t op = 0; op < l->ops.count; op++)
        host_of[op] = LINK_NONE;
    for (uint32_t h = 0; h < chakra_of(l)->host.count; h++) {
        find_operator(l, by_rf, h);
        chakra_of(l)->waits_for[h] = LINK_NONE;
        if (chakra_of(l)->op_of[h] == LINK_NONE)
            continue;
        host_of[chakra_of(l)->op_of[h]] = h;
        chakra_of(l)->waits_for[h] = waits_for(l, by_rf, host_of, h);
    }
}

static void count_matches(orr_link *l, const uint32_t *host_of)
{
    uint64_t *of = l->tally.counts.of;
    of[ORR_LINK_UNLINKED] = chakra_of(l)->host.count - of[ORR_LINK_LINKED];
    for (uint32_t op = 0; op < l->ops.count; op++)
        of[ORR_LINK_UNTRACED] += host_of[op] == LINK_NONE;
}

static orr_code chakra_match(orr_link *l, orr_error *err)
{
    const size_t n = chakra_of(l)->host.count + 1;
    chakra_of(l)->op_of = orr_arena_new(l->arena, n, uint32_t);
    chakra_of(l)->waits_for = orr_arena_new(l->arena, n, uint32_t);
    chakra_of(l)->host_of = orr_arena_new(l->arena, (size_t)l->ops.count + 1, uint32_t);
    orr_map *by_rf = operators_by_rf(l);
    if (!chakra_of(l)->op_of || !chakra_of(l)->waits_for || !chakra_of(l)->host_of || !by_rf) {
        orr_map_destroy(by_rf);
        return orr_no_memory(err);
    }
    match_all(l, by_rf, chakra_of(l)->host_of);
    orr_map_destroy(by_rf);
    count_matches(l, chakra_of(l)->host_of);
    return ORR_OK;
}

/* ---- launches ---- */

static orr_code second_launch(const orr_link *l, const kin_event *e, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL,
                    "%s: event %" PRIu32 " is a second launch with correlation %" PRId64,
                    l->device_path, e->index, e->correlation);
}

/* Correlation -> event of the launch. */
static orr_code find_launches(orr_link *l, orr_map *launches, orr_error *err)
{
    const kin_trace *k = &l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        if (!(e->flags & KIN_LAUNCH))
            continue;
        if (orr_map_find(launches, (uint64_t)e->correlation, LINK_NONE) != LINK_NONE)
            return second_launch(l, e, err);
        if (!orr_map_put(launches, (uint64_t)e->correlation, i, NULL))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

/* ---- the operator around a launch, as chakra_trace_link finds it ---- */

/* Operators ordered by thread, external id and time. */
typedef struct keyed {
    int64_t external;
    uint32_t tid, op;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->external != y->external)
        return x->external < y->external ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static keyed *key_operators(const orr_link *l)
{
    keyed *keys = orr_alloc((size_t)l->ops.count + 1, sizeof *keys);
    if (!keys)
        return NULL;
    for (uint32_t op = 0; op < l->ops.count; op++) {
        const kin_event *e = link_op(l, op);
        keys[op] = (keyed){e->external, e->tid, op};
    }
    qsort(keys, l->ops.count, sizeof *keys, by_key);
    return keys;
}

static bool is_coalesced(const orr_link *l, uint32_t op)
{
    return orr_str_is(orr_intern_get(l->device.texts, link_op(l, op)->name), "nccl:coalesced");
}

/* The last operator of this thread and external id that starts before ts. */
static uint32_t last_keyed(
    const orr_link *l, const keyed *keys, const keyed *wanted, double ts, bool skips)
{
    size_t low = 0, high = l->ops.count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const keyed *k = &keys[mid];
        const bool is_same = k->tid == wanted->tid && k->external == wanted->external;
        if (is_same ? link_op(l, k->op)->ts < ts : by_key(k, wanted) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    while (low-- > 0 && keys[low].tid == wanted->tid && keys[low].external == wanted->external) {
        if (!skips || !is_coalesced(l, keys[low].op))
            return keys[low].op;
    }
    return LINK_NONE;
}

/* How many operators of a thread start before ts. */
static uint32_t count_before(const orr_link *l, uint32_t tid, double ts)
{
    const link_lists *by = &l->ops.by_thread;
    uint32_t low = by->first[tid], high = by->first[tid + 1];
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (link_op(l, by->list[mid])->ts < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low - by->first[tid];
}

static uint32_t last_of_thread(const orr_link *l, uint32_t tid, double ts, bool skips)
{
    const link_lists *by = &l->ops.by_thread;
    for (uint32_t i = count_before(l, tid, ts); i-- > 0;) {
        const uint32_t op = by->list[by->first[tid] + i];
        if (!skips || !is_coalesced(l, op))
            return op;
    }
    return LINK_NONE;
}

static bool has_nccl(orr_str name)
{
    for (size_t i = 0; i + 4 <= name.len; i++) {
        const char *p = name.ptr + i;
        if ((p[0] | 32) == 'n' && (p[1] | 32) == 'c' && (p[2] | 32) == 'c' && (p[3] | 32) == 'l')
            return true;
    }
    return false;
}

static uint32_t reference_parent(const orr_link *l,
                                 const keyed *keys,
                                 const kin_event *e,
                                 const kin_event *launch)
{
    const bool skips = has_nccl(orr_intern_get(l->device.texts, e->name));
    const keyed wanted = {e->external, launch->tid, 0};
    const uint32_t op = last_keyed(l, keys, &wanted, launch->ts, skips);
    return op != LINK_NONE ? op : last_of_thread(l, launch->tid, launch->ts, skips);
}

/* The events that chakra_trace_link places; it skips memsets. */
static bool is_placed_by_reference(const kin_event *e)
{
    return e->kind == KIN_KERNEL || e->kind == KIN_MEMCPY;
}

/* Device operations grouped by the external id of their operator. */
typedef struct grouping {
    orr_map *launches, *group_of; /* external id -> number of the group */
    keyed *keys;
    link_pairs pairs;
    link_lists groups;
    uint32_t count;
} grouping;

static orr_code group_event(orr_link *l, grouping *g, uint32_t i, orr_error *err)
{
    const kin_event *e = &l->device.events[i];
    const uint32_t launch = orr_map_find(g->launches, (uint64_t)e->correlation, LINK_NONE);
    if (launch == LINK_NONE)
        return link_count(&l->tally, ORR_LINK_NO_LAUNCH, NULL, err);
    const uint32_t op = reference_parent(l, g->keys, e, &l->device.events[launch]);
    if (op == LINK_NONE)
        return link_count(&l->tally, ORR_LINK_NO_PARENT, NULL, err);
    const uint64_t external = (uint64_t)link_op(l, op)->external;
    uint32_t group = orr_map_find(g->group_of, external, LINK_NONE);
    if (group == LINK_NONE) {
        group = g->count++;
        if (!orr_map_put(g->group_of, external, group, NULL))
            return orr_no_memory(err);
    }
    return link_pairs_add(&g->pairs, group, i) ? ORR_OK : orr_no_memory(err);
}

static orr_code give_groups(orr_link *l, grouping *g, orr_error *err)
{
    link_pairs placed = {0};
    bool has_room = true;
    for (uint32_t h = 0; has_room && h < chakra_of(l)->host.count; h++) {
        if (chakra_of(l)->op_of[h] == LINK_NONE)
            continue;
        const uint64_t external = (uint64_t)link_op(l, chakra_of(l)->op_of[h])->external;
        const uint32_t group = orr_map_find(g->group_of, external, LINK_NONE);
        if (group == LINK_NONE)
            continue;
        for (uint32_t i = g->groups.first[group]; has_room && i < g->groups.first[group + 1]; i++)
            has_room = link_pairs_add(&placed, h, g->groups.list[i]);
    }
    l->tally.counts.of[ORR_LINK_PLACED] = placed.count;
    if (has_room)
        return link_pairs_take(&placed, (uint32_t)chakra_of(l)->host.count, l->arena,
                               &chakra_of(l)->placed, err);
    orr_free(placed.pairs);
    return orr_no_memory(err);
}

static orr_code group_all(orr_link *l, grouping *g, orr_error *err)
{
    orr_code code = find_launches(l, g->launches, err);
    for (uint32_t i = 0; !code && i < l->device.count; i++) {
        if (is_placed_by_reference(&l->device.events[i]))
            code = group_event(l, g, i, err);
    }
    if (!code)
        code = link_pairs_take(&g->pairs, g->count, l->arena, &g->groups, err);
    return code ? code : give_groups(l, g, err);
}

static orr_code place_as_reference(orr_link *l, orr_error *err)
{
    grouping g = {.launches = orr_map_create(1024),
                  .group_of = orr_map_create(1024),
                  .keys = key_operators(l)};
    const orr_code code =
        g.launches && g.group_of && g.keys ? group_all(l, &g, err) : orr_no_memory(err);
    orr_map_destroy(g.launches);
    orr_map_destroy(g.group_of);
    orr_free(g.keys);
    orr_free(g.pairs.pairs);
    return code;
}

/* ---- numbers in the linked trace ---- */

/* A host node, its device nodes, the next host node (chakra.md 3.8). */
static orr_code number_nodes(orr_link *l, orr_error *err)
{
    chakra_of(l)->new_id = orr_arena_new(l->arena, chakra_of(l)->host.count + 1, uint64_t);
    if (!chakra_of(l)->new_id)
        return orr_no_memory(err);
    for (uint32_t h = 0; h < chakra_of(l)->host.count; h++) {
        chakra_of(l)->new_id[h] = chakra_of(l)->node_count;
        chakra_of(l)->node_count +=
            1 + chakra_of(l)->placed.first[h + 1] - chakra_of(l)->placed.first[h];
    }
    return ORR_OK;
}

static orr_code chakra_place(orr_link *l, orr_error *err)
{
    const orr_code code = place_as_reference(l, err);
    return code ? code : number_nodes(l, err);
}

/* ---- the rules ---- */

static orr_code read_host(orr_link *l, orr_error *err)
{
    chakra_link *c = chakra_of(l);
    orr_json *j = NULL;
    orr_code code = l->host_bytes ? ORR_OK : orr_input_open(l->host_path, &c->input, err);
    if (code)
        return code;
    const orr_span bytes = l->host_bytes ? *l->host_bytes : orr_input_bytes(c->input);
    if (!(code = orr_json_open(bytes, l->host_path, &j, err)))
        code = chakra_host_read(j, bytes, &l->tally, &c->host, err);
    orr_json_close(j);
    return code;
}

/* The critical path begins at a step (chakra.md 3.6). */
static orr_code check_step(const orr_link *l, orr_error *err)
{
    if (l->device.has_step)
        return ORR_OK;
    return orr_fail(
        err, ORR_EINPUT, NULL,
        "%s: no annotation ProfilerStep, which chakra_trace_link needs; 'orrery link' without --compat does not",
        l->device_path);
}

static orr_code link_traces(orr_link *l, orr_error *err)
{
    orr_code code;
    if (!l->host_path || !l->device_path)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "chakra_trace_link needs a host trace and a device trace");
    l->other = orr_alloc(1, sizeof(chakra_link));
    if (!l->other)
        return orr_no_memory(err);
    if ((code = read_host(l, err)) || (code = link_read_device(l, err)) ||
        (code = check_step(l, err)) || (code = link_sort(l, err)) || (code = link_time(l, err)) ||
        (code = chakra_wake(l, err)) || (code = chakra_match(l, err)) ||
        (code = chakra_place(l, err)) || (code = link_find_waits(l, err)))
        return code;
    return chakra_find_syncs(l, err);
}

static void close_link(orr_link *l)
{
    chakra_link *c = chakra_of(l);
    if (!c)
        return;
    chakra_host_fini(&c->host);
    orr_input_close(c->input);
    orr_free(c->syncs);
    orr_free(c);
}

/* Flow arrows that make it break off (chakra.md 3.3). */
static orr_code refuse(const kin_look *event, orr_error *err)
{
    if (!orr_str_is(event->cat, "ac2g"))
        return ORR_OK;
    const bool is_end = orr_str_is(event->ph, "s") || orr_str_is(event->ph, "f");
    if (is_end && event->has_id)
        return ORR_OK;
    const orr_where at = orr_json_where(event->place);
    return orr_fail(err, ORR_EINPUT, &at, "%s",
                    is_end ? "an ac2g event without an id"
                           : "an ac2g event whose ph is neither \"s\" nor \"f\"");
}

const orr_rules_link chakra_link_rules = {
    .read = {.keeps_micros = true, .refuse = refuse},
    .shorter_first = true,
    .only_recorded_waits = true,
    .link = link_traces,
    .write = chakra_write,
    .close = close_link,
};
