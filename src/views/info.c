/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - gathers the figures of a set of traces.
 *
 * One pass over the columns of each class of equal ranks, weighted by its number of ranks.  Groups
 * come first, over the whole set: a collective's cost depends on the size of its group, and a group
 * is defined by the ranks that name it.  Ranks of a class differ only in groups and peers (the
 * section below). Sizes below zero count as absent.  Memory: what one class needs for its graph
 * (info_graph.c) plus one entry per operator, group and pair of peers. */
#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/sort.h"
#include "base/text/base64.h"
#include "base/text/text.h"
#include "info_impl.h"
#include "trace/known_names.h"
#include "trace/set_impl.h"
#include "trace/trace_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct orr__group_count {
    uint32_t ranks;
    uint32_t class_mark, rank_mark; /* the last class or rank counted, + 1 */
} orr__group_count;

typedef struct orr__gatherer {
    orr_info *o;
    const orr_set *set;
    orr_arena *arena;         /* lives as long as the info */
    orr_arena *scratch;       /* per class */
    uint32_t *members;        /* ranks by class, ascending: */
    uint32_t *first;          /* ... those of class k from members[first[k]] on */
    orr_map *coll_rows;       /* (group, kind) -> row */
    orr_intern *peer_keys;    /* (type, src, dst) -> row */
    orr_map *by_value;        /* a rank's own group value -> group */
    orr__group_count *groups; /* by number of the group */
    size_t group_room;
} orr__gatherer;

/* One class while it is being added. */
typedef struct orr__adding {
    orr__gatherer *g;
    const orr_trace *t;
    const orr_columns *c;
    const orr__class *holes; /* NULL: all ranks are equal */
    const uint32_t *ranks;   /* with holes */
    orr__class_row *row;
    uint64_t times;
    uint32_t *group_of;   /* number of a text -> number of the group */
    struct orr__own *own; /* with holes: sums to be distributed to the ranks */
    uint64_t *moved;      /* by place in ranks: bytes each moves; NULL: all equal */
} orr__adding;

/* Collectives by group and messages by pair of peers.
 *
 * Nodes whose group or peers are the same for all ranks of a class are added once, weighted by the
 * number of ranks.  In a class with holes the others are summed first, by slot and kind of
 * collective or by the slots of sender and receiver; then each rank's values select the rows these
 * sums belong to. Cost: O(nodes) of the distinct ranks, plus a few steps per value of a rank. */

/* ---- groups ---- */

static bool find_group(orr__gatherer *g, orr_str name, uint32_t *number)
{
    const size_t old = g->group_room;
    if (!orr_intern_add(g->o->groups, name, number) ||
        !orr_grow(&g->groups, &g->group_room, (size_t)*number + 1))
        return false;
    if (g->group_room > old)
        memset(g->groups + old, 0, (g->group_room - old) * sizeof *g->groups);
    return true;
}

/* The group that a rank names by its own value. */
static bool find_own_group(orr__gatherer *g, int64_t value, uint32_t *number)
{
    *number = orr_map_find(g->by_value, (uint64_t)value, ORR_NO_NAME);
    if (*number != ORR_NO_NAME)
        return true;
    orr_buf text = {0};
    orr_buf_i64(&text, value);
    const bool ok = !text.failed &&
                    find_group(g, (orr_str){(const char *)text.ptr, text.len}, number) &&
                    orr_map_put(g->by_value, (uint64_t)value, *number, NULL);
    orr_buf_fini(&text);
    return ok;
}

/* Marks the texts of a trace that name groups; those in holes are placeholders. */
static uint8_t *mark_texts(orr__gatherer *g, const orr_trace *t, const orr__class *holes)
{
    const uint32_t *slots = holes ? holes->slot[ORR_HOLE_PG_NAME] : NULL;
    const orr_columns *c = orr_trace_columns(t);
    uint8_t *is_named = orr_arena_new(g->scratch, (size_t)orr_trace_text_count(t) + 1, uint8_t);
    for (uint32_t i = 0; is_named && c->pg_name && i < c->count; i++)
        if (c->pg_name[i] != ORR_NO_NAME && !(slots && slots[i]))
            is_named[c->pg_name[i]] = 1;
    return is_named;
}

static bool count_named(orr__gatherer *g, uint32_t k, const orr__class *holes)
{
    const orr_trace *t = orr_set_trace(g->set, k);
    const uint8_t *is_named = mark_texts(g, t, holes);
    for (uint32_t i = 0; is_named && i < orr_trace_text_count(t); i++) {
        uint32_t number;
        if (!is_named[i])
            continue;
        if (!find_group(g, orr_trace_text(t, i), &number))
            return false;
        g->groups[number].ranks += orr_set_class_ranks(g->set, k);
        g->groups[number].class_mark = k + 1;
    }
    return is_named != NULL;
}

/* The slots of a class that name groups, each once. */
static uint32_t *list_slots(orr__gatherer *g, const orr__class *c, uint32_t *count)
{
    uint32_t *slots = orr_arena_new(g->scratch, (size_t)c->slot_count + 1, uint32_t);
    uint8_t *is_listed = orr_arena_new(g->scratch, (size_t)c->slot_count + 1, uint8_t);
    *count = 0;
    if (!slots || !is_listed)
        return NULL;
    for (size_t i = 0; i < c->hole_count; i++) {
        const orr_hole *h = &c->holes[i];
        if (h->field == ORR_HOLE_PG_NAME && !is_listed[h->slot]) {
            is_listed[h->slot] = 1;
            slots[(*count)++] = h->slot;
        }
    }
    return slots;
}

static int64_t value_of(const orr_set *s, uint32_t rank, uint32_t slot)
{
    return s->values[s->ranks[rank].values_at + slot];
}

/* A rank that names a group in several ways is in it once. */
static bool count_own(orr__gatherer *g, uint32_t k, const orr__class *c)
{
    uint32_t count;
    const uint32_t *slots = list_slots(g, c, &count);
    for (uint32_t i = g->first[k]; slots && i < g->first[k + 1]; i++) {
        const uint32_t rank = g->members[i];
        for (uint32_t j = 0; j < count; j++) {
            uint32_t number;
            if (!find_own_group(g, value_of(g->set, rank, slots[j]), &number))
                return false;
            orr__group_count *of = &g->groups[number];
            of->ranks += of->class_mark != k + 1 && of->rank_mark != rank + 1;
            of->rank_mark = rank + 1;
        }
    }
    return slots != NULL;
}

/* Group membership over the whole set. */
static orr_code info_count_groups(orr__gatherer *g, orr_error *err)
{
    for (uint32_t k = 0; k < orr_set_class_count(g->set); k++) {
        const orr__class *holes = &g->set->classes[k];
        if (holes->hole_count == 0)
            holes = NULL;
        orr_arena_reset(g->scratch);
        if (!count_named(g, k, holes) || (holes && !count_own(g, k, holes)))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

/* The size of a group; 0: unknown, because the set is one rank of a job. */
static uint32_t ranks_of(const orr__gatherer *g, uint32_t group)
{
    if (g->o->ranks == 1)
        return g->o->options.job_ranks;
    return group == ORR_NO_NAME ? g->o->ranks : g->groups[group].ranks;
}

/* ---- rows ---- */

static orr__coll_row *find_coll(orr__gatherer *g, uint32_t group, uint32_t kind)
{
    orr_info *o = g->o;
    const uint64_t key = (uint64_t)group << 8 | kind;
    const uint32_t found = orr_map_find(g->coll_rows, key, UINT32_MAX);
    if (found != UINT32_MAX)
        return &o->colls[found];
    if (!orr_grow(&o->colls, &o->coll_room, o->coll_count + 1) ||
        !orr_map_put(g->coll_rows, key, (uint32_t)o->coll_count, NULL))
        return NULL;
    o->colls[o->coll_count] =
        (orr__coll_row){.group = group, .kind = kind, .ranks = ranks_of(g, group)};
    return &o->colls[o->coll_count++];
}

static orr__peer_row *find_peer(orr__gatherer *g, uint32_t type, int64_t src, int64_t dst)
{
    orr_info *o = g->o;
    uint32_t number;
    const int64_t key[3] = {type, src, dst};
    if (!orr_intern_add(g->peer_keys, (orr_str){(const char *)key, sizeof key}, &number))
        return NULL;
    if (number < o->peer_count)
        return &o->peers[number];
    if (!orr_grow(&o->peers, &o->peer_room, o->peer_count + 1))
        return NULL;
    o->peers[o->peer_count] = (orr__peer_row){.type = type, .src = src, .dst = dst};
    return &o->peers[o->peer_count++];
}

/* ---- sums distributed to ranks ---- */

/* Collectives of one kind whose group is the value of one slot. */
typedef struct coll_sum {
    uint32_t slot, kind;
    uint64_t count;
    orr__stat size;
    uint32_t sizes; /* the last of them in own.sizes, + 1 */
} coll_sum;

/* A size and its count; its cost depends on the group. */
typedef struct size_link {
    uint64_t size, times;
    uint32_t before; /* of the same sum, + 1 */
} size_link;

/* A rank at one end of messages: the same for all ranks of the class, or the value of a slot. */
enum { OWN_RANK = ORR_NO_NODE - 1 }; /* instead of a slot: the rank itself */

typedef struct peer_end {
    int64_t rank;
    uint32_t slot, filler; /* slot ORR_NO_NODE: none; filler: no padding, because keys are hashed */
} peer_end;

typedef struct peer_key {
    peer_end src, dst;
    uint64_t type;
} peer_key;

typedef struct peer_sum {
    peer_key key;
    uint64_t count;
    orr__stat size;
} peer_sum;

typedef struct orr__own {
    coll_sum *colls;
    size_t coll_count, coll_room;
    orr_map *coll_sums; /* (slot, kind) -> sum */
    size_link *sizes;
    size_t size_count, size_room;
    peer_sum *peers;
    size_t peer_count, peer_room;
    orr_intern *peer_sums; /* peer_key -> sum */
    uint64_t *moved;       /* bytes that all of a sum move in a group of some size: */
    size_t moved_count, moved_room;
    orr_map *moved_of; /* (sum, ranks of the group) -> place in moved */
} orr__own;

static orr_code begin_own(orr__adding *a, orr_error *err)
{
    orr__own *w = a->own = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    w->coll_sums = orr_map_create(0);
    w->peer_sums = orr_intern_create();
    w->moved_of = orr_map_create(0);
    if (a->g->o->options.per_rank)
        a->moved = orr_arena_new(a->g->arena, a->times + 1, uint64_t);
    return w->coll_sums && w->peer_sums && w->moved_of && (a->moved || !a->g->o->options.per_rank)
               ? ORR_OK
               : orr_no_memory(err);
}

static void adding_fini(orr__adding *a)
{
    orr__own *w = a->own;
    if (!w)
        return;
    orr_map_destroy(w->coll_sums);
    orr_intern_destroy(w->peer_sums);
    orr_map_destroy(w->moved_of);
    orr_free(w->colls);
    orr_free(w->sizes);
    orr_free(w->peers);
    orr_free(w->moved);
    orr_free(w);
    a->own = NULL;
}

static orr_code info_begin_class(orr__adding *a, orr_error *err)
{
    const uint32_t count = orr_trace_text_count(a->t);
    if (!(a->group_of = orr_arena_new(a->g->scratch, (size_t)count + 1, uint32_t)))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        if (!orr_intern_find(a->g->o->groups, orr_trace_text(a->t, i), &a->group_of[i]))
            a->group_of[i] = ORR_NO_NAME; /* stands in holes only */
    return a->holes ? begin_own(a, err) : ORR_OK;
}

/* ---- collectives ---- */

static bool sum_size(orr__own *w, coll_sum *s, uint64_t size)
{
    orr__stat_add(&s->size, size, 1);
    if (s->sizes && w->sizes[s->sizes - 1].size == size) {
        w->sizes[s->sizes - 1].times++;
        return true;
    }
    if (!orr_grow(&w->sizes, &w->size_room, w->size_count + 1))
        return false;
    w->sizes[w->size_count++] = (size_link){.size = size, .times = 1, .before = s->sizes};
    s->sizes = (uint32_t)w->size_count;
    return true;
}

/* Summed until the ranks are known. */
static bool sum_collective(orr__own *w, uint32_t slot, uint32_t kind, int64_t size)
{
    const uint64_t key = (uint64_t)slot << 8 | kind;
    uint32_t at = orr_map_find(w->coll_sums, key, UINT32_MAX);
    if (at == UINT32_MAX) {
        at = (uint32_t)w->coll_count;
        if (!orr_grow(&w->colls, &w->coll_room, w->coll_count + 1) ||
            !orr_map_put(w->coll_sums, key, at, NULL))
            return false;
        w->colls[w->coll_count++] = (coll_sum){.slot = slot, .kind = kind};
    }
    w->colls[at].count++;
    return size < 0 || sum_size(w, &w->colls[at], (uint64_t)size);
}

static uint32_t slot_at(const orr__adding *a, orr_hole_field field, uint32_t node)
{
    const uint32_t *slots = a->holes ? a->holes->slot[field] : NULL;
    return slots && slots[node] ? slots[node] - 1 : ORR_NO_NODE;
}

static int64_t wide_value(const int64_t *column, uint32_t i)
{
    return column ? column[i] : ORR_NO_VALUE;
}

/* false: out of memory */
static bool info_collective(orr__adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    orr_info *o = a->g->o;
    const uint32_t text = c->pg_name ? c->pg_name[i] : ORR_NO_NAME;
    const uint32_t kind =
        c->comm_type && c->comm_type[i] >= 0 ? (uint32_t)c->comm_type[i] : ORR__NO_KIND;
    const int64_t size = wide_value(c->comm_size, i);
    const uint32_t slot = slot_at(a, ORR_HOLE_PG_NAME, i);
    uint64_t moved;
    if (size >= 0)
        a->row->sent_bytes = orr_sat_add(a->row->sent_bytes, (uint64_t)size);
    if (slot != ORR_NO_NODE)
        return sum_collective(a->own, slot, kind, size);
    orr__coll_row *row =
        find_coll(a->g, text == ORR_NO_NAME ? ORR_NO_NAME : a->group_of[text], kind);
    if (!row)
        return false;
    row->count += a->times;
    if (!orr__moved_bytes(kind, size < 0 ? 0 : (uint64_t)size, row->ranks, &moved))
        o->has_unknown_moved = true;
    if (size < 0)
        return true;
    orr__stat_add(&row->size, (uint64_t)size, a->times);
    row->moved = orr_sat_add(row->moved, orr_sat_mul(moved, a->times));
    a->row->moved_bytes = orr_sat_add(a->row->moved_bytes, moved);
    o->moved_coll = orr_sat_add(o->moved_coll, orr_sat_mul(moved, a->times));
    return true;
}

/* Bytes that all collectives of a sum move in a group of n, computed once per n. */
static bool find_moved(orr__adding *a, uint32_t sum, uint32_t n, uint64_t *out)
{
    orr__own *w = a->own;
    const coll_sum *s = &w->colls[sum];
    const uint64_t key = (uint64_t)sum << 32 | n;
    const uint32_t known = orr_map_find(w->moved_of, key, UINT32_MAX);
    uint64_t one;
    if (known != UINT32_MAX) {
        *out = w->moved[known];
        return true;
    }
    if (!orr__moved_bytes(s->kind, 0, n, out))
        a->g->o->has_unknown_moved = true;
    for (uint32_t at = s->sizes; at; at = w->sizes[at - 1].before) {
        orr__moved_bytes(s->kind, w->sizes[at - 1].size, n, &one);
        *out = orr_sat_add(*out, orr_sat_mul(one, w->sizes[at - 1].times));
    }
    if (!orr_grow(&w->moved, &w->moved_room, w->moved_count + 1) ||
        !orr_map_put(w->moved_of, key, (uint32_t)w->moved_count, NULL))
        return false;
    w->moved[w->moved_count++] = *out;
    return true;
}

static bool deal_collective(orr__adding *a, uint32_t sum, uint32_t place)
{
    const coll_sum *s = &a->own->colls[sum];
    orr_info *o = a->g->o;
    uint32_t group;
    uint64_t moved;
    if (!find_own_group(a->g, value_of(a->g->set, a->ranks[place], s->slot), &group))
        return false;
    orr__coll_row *row = find_coll(a->g, group, s->kind);
    if (!row || !find_moved(a, sum, row->ranks, &moved))
        return false;
    row->count += s->count;
    orr__stat_merge(&row->size, &s->size, 1);
    row->moved = orr_sat_add(row->moved, moved);
    o->moved_coll = orr_sat_add(o->moved_coll, moved);
    if (a->moved)
        a->moved[place] = orr_sat_add(a->moved[place], moved);
    return true;
}

/* ---- messages ---- */

static int64_t message_size(const orr_columns *c, uint32_t i)
{
    const int64_t size = wide_value(c->comm_size, i);
    return size < 0 ? wide_value(c->tensor_size, i) : size; /* sample generators put it there */
}

static peer_end end_at(const orr__adding *a,
                       orr_hole_field field,
                       const int64_t *column,
                       uint32_t i)
{
    const uint32_t slot = slot_at(a, field, i);
    return (peer_end){.rank = slot == ORR_NO_NODE ? wide_value(column, i) : 0, .slot = slot};
}

/* If both ends are the same for all ranks it is added, else summed until the ranks are known. */
static bool add_pair(orr__adding *a, const peer_key *key, int64_t size)
{
    orr__own *w = a->own;
    uint32_t at;
    if (key->src.slot == ORR_NO_NODE && key->dst.slot == ORR_NO_NODE) {
        orr__peer_row *row = find_peer(a->g, (uint32_t)key->type, key->src.rank, key->dst.rank);
        if (!row)
            return false;
        row->count += a->times;
        if (size >= 0)
            orr__stat_add(&row->size, (uint64_t)size, a->times);
        return true;
    }
    if (!orr_intern_add(w->peer_sums, (orr_str){(const char *)key, sizeof *key}, &at) ||
        !orr_grow(&w->peers, &w->peer_room, w->peer_count + 1))
        return false;
    if (at == w->peer_count)
        w->peers[w->peer_count++] = (peer_sum){.key = *key};
    w->peers[at].count++;
    if (size >= 0)
        orr__stat_add(&w->peers[at].size, (uint64_t)size, 1);
    return true;
}

/* The source of a send defaults to its rank, and likewise for a receive.  In a file of one rank it
 * stays unknown. */
static void fill_own_end(const orr__adding *a, peer_end *e)
{
    if (e->slot != ORR_NO_NODE || e->rank != ORR_NO_VALUE || !a->ranks ||
        orr_set_rank_count(a->g->set) < 2)
        return;
    *e = (peer_end){.slot = OWN_RANK};
}

/* Equal ranks have no sums to distribute. */
static bool add_own_pairs(const orr__adding *a, const peer_key *key, int64_t size)
{
    orr__adding one = *a;
    bool ok = true;
    one.times = 1;
    for (uint32_t i = 0; ok && i < a->times; i++) {
        peer_key k = *key;
        peer_end *own = k.src.slot == OWN_RANK ? &k.src : &k.dst;
        *own = (peer_end){.rank = a->ranks[i], .slot = ORR_NO_NODE};
        ok = add_pair(&one, &k, size);
    }
    return ok;
}

uint64_t orr__info_members(const orr_info *o, const orr__coll_row *row)
{
    return row->ranks && row->ranks < o->counted_ranks ? row->ranks : o->counted_ranks;
}

/* The collectives and messages of a class: begin, each node, end, which distributes the sums of
 * ranks.  Call fini after any of them. */
static bool info_message(orr__adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    orr_info *o = a->g->o;
    const bool is_send = c->type[i] == ORR_NODE_COMM_SEND;
    const int64_t size = message_size(c, i);
    peer_key key = {.src = end_at(a, ORR_HOLE_COMM_SRC, c->comm_src, i),
                    .dst = end_at(a, ORR_HOLE_COMM_DST, c->comm_dst, i),
                    .type = c->type[i]};
    peer_end *own = is_send ? &key.src : &key.dst;
    fill_own_end(a, own);
    if (!(own->slot == OWN_RANK && !a->own ? add_own_pairs(a, &key, size)
                                           : add_pair(a, &key, size)))
        return false;
    o->p2p_nodes[!is_send] += a->times;
    if (size < 0)
        return true;
    orr__stat_add(&o->p2p[!is_send], (uint64_t)size, a->times);
    if (!is_send)
        return true; /* counted at the sender */
    a->row->sent_bytes = orr_sat_add(a->row->sent_bytes, (uint64_t)size);
    a->row->moved_bytes = orr_sat_add(a->row->moved_bytes, (uint64_t)size);
    o->moved_p2p = orr_sat_add(o->moved_p2p, orr_sat_mul((uint64_t)size, a->times));
    return true;
}

static int64_t rank_at(const orr__adding *a, const peer_end *e, uint32_t rank)
{
    if (e->slot == OWN_RANK)
        return rank;
    return e->slot == ORR_NO_NODE ? e->rank : value_of(a->g->set, rank, e->slot);
}

static bool deal_messages(orr__adding *a, const peer_sum *s, uint32_t rank)
{
    orr__peer_row *row = find_peer(a->g, (uint32_t)s->key.type, rank_at(a, &s->key.src, rank),
                                   rank_at(a, &s->key.dst, rank));
    if (!row)
        return false;
    row->count += s->count;
    orr__stat_merge(&row->size, &s->size, 1);
    return true;
}

/* ---- the ranks of a class ---- */

static orr_code info_end_class(orr__adding *a, orr_error *err)
{
    const orr__own *w = a->own;
    bool ok = true;
    for (uint32_t i = 0; w && ok && i < a->times; i++) {
        for (uint32_t s = 0; ok && s < w->coll_count; s++)
            ok = deal_collective(a, s, i);
        for (size_t s = 0; ok && s < w->peer_count; s++)
            ok = deal_messages(a, &w->peers[s], a->ranks[i]);
    }
    return ok ? ORR_OK : orr_no_memory(err);
}

/* ======== How many bytes a collective moves, and ranks written as ranges: two small sums of info.
 *
 * comm_size is one rank's input (an all-gather's share, an all-to-all's whole), as in recorded
 * traces and simulators.  With S that size and n ranks, the bytes sent by all ranks together, with
 * algorithms that send nothing twice (ring, or direct), are
 *
 *     all-reduce           2(n-1) S      a reduce-scatter and an all-gather of S/n
 *     all-gather           n(n-1) S      each share reaches the n-1 others
 *     reduce-scatter       (n-1) S       also reduce-scatter-block
 *     all-to-all           (n-1) S       each rank keeps one n-th
 *     broadcast, reduce    (n-1) S       S into, or out of, all but one
 *     gather               (n-1) S
 *     scatter              (n-1)/n S     the root keeps one n-th
 *     barrier              0
 *
 * and one n-th of that per rank on average, which the functions here return. */

typedef struct cost {
    const char *formula;
    uint32_t factor;    /* times (n-1) S */
    uint32_t divisions; /* by n, this often */
} cost;

static const cost costs[ORR_COLL_COUNT] = {
    [ORR_COLL_ALL_REDUCE] = {"2(n-1)/n x size", 2, 1},
    [ORR_COLL_REDUCE] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_ALL_GATHER] = {"(n-1) x size", 1, 0},
    [ORR_COLL_GATHER] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_SCATTER] = {"(n-1)/n^2 x size", 1, 2},
    [ORR_COLL_BROADCAST] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_ALL_TO_ALL] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_REDUCE_SCATTER] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_REDUCE_SCATTER_BLOCK] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_BARRIER] = {"0", 0, 0},
};

const char *orr__moved_formula(uint32_t kind)
{
    return kind < ORR_COLL_COUNT ? costs[kind].formula : NULL;
}

bool orr__moved_bytes(uint32_t kind, uint64_t size, uint32_t n, uint64_t *out)
{
    *out = 0;
    if (kind >= ORR_COLL_COUNT || n == 0)
        return false;
    /* 64 bits of size, 32 of n and one of the factor: 97 of 128. */
    unsigned __int128 bytes = (unsigned __int128)size * (n - 1) * costs[kind].factor;
    for (uint32_t i = 0; i < costs[kind].divisions; i++)
        bytes /= n;
    *out = bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
    return true;
}

/* How many members from `from` on are equally spaced, and their spacing. */
static size_t run_length(const uint32_t *members, size_t count, size_t from, uint32_t *step)
{
    size_t n = 1;
    *step = from + 1 < count ? members[from + 1] - members[from] : 1;
    while (from + n < count && members[from + n] - members[from + n - 1] == *step)
        n++;
    return n;
}

const char *orr__rank_ranges(orr_arena *a, const uint32_t *members, size_t count)
{
    orr_buf b = {0};
    for (size_t i = 0; i < count;) {
        uint32_t step;
        size_t n = run_length(members, count, i, &step);
        if (n < 3 && step != 1)
            n = 1; /* two with a gap are not a range */
        orr_buf_print(&b, "%s%u", i ? "," : "", members[i]);
        if (n > 1)
            orr_buf_print(&b, "-%u", members[i + n - 1]);
        if (n > 1 && step != 1)
            orr_buf_print(&b, "/%u", step);
        i += n;
    }
    char *text = b.failed ? NULL : orr_arena_text(a, (orr_str){(const char *)b.ptr, b.len});
    orr_buf_fini(&b);
    return text;
}

const char *orr__alike_ranks(orr_arena *a, const orr_timeline_parts *p, uint32_t rank)
{
    uint32_t *list = orr_alloc((size_t)p->alike_count + 1, sizeof *list);
    size_t count = 0;
    if (!list)
        return NULL;
    for (uint32_t r = 0; r < p->alike_count; r++)
        if (p->alike[r] == rank)
            list[count++] = r;
    if (count == 0)
        list[count++] = rank;
    const char *text = orr__rank_ranges(a, list, count);
    orr_free(list);
    return text;
}

/* ======== The metadata of the traces; values are kept as JSON text, for both printers. */

static void put_bytes(orr_json_writer *w, orr_str s)
{
    orr_buf text = {0};
    uint8_t *room = orr_buf_reserve(&text, orr_base64_length(s.len) + 1);
    if (room) {
        const orr_span in = {(const uint8_t *)s.ptr, s.len};
        text.len = (size_t)(orr_base64_put(room, in) - text.ptr);
        orr_json_str(w, (orr_str){(const char *)text.ptr, text.len});
    } else {
        w->to->failed = true;
    }
    orr_buf_fini(&text);
}

static void put_double(orr_json_writer *w, double v)
{
    if (v != v)
        orr_json_text(w, "NaN"); /* JSON has no such number */
    else if (v - v != 0)
        orr_json_text(w, v < 0 ? "-Infinity" : "Infinity");
    else
        orr_json_double(w, v);
}

static void put_value(orr_json_writer *w, orr_value_kind kind, const orr_value *v)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        put_double(w, v->d);
        return;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED32:
    case ORR_VALUE_FIXED64:
        orr_json_u64(w, v->u);
        return;
    case ORR_VALUE_BOOL:
        orr_json_bool(w, v->u != 0);
        return;
    case ORR_VALUE_STRING:
        orr_json_str(w, v->s);
        return;
    case ORR_VALUE_BYTES:
        put_bytes(w, v->s);
        return;
    case ORR_VALUE_NONE:
    case ORR_VALUE_KIND_COUNT:
        orr_json_null(w);
        return;
    default:
        orr_json_i64(w, v->i);
    }
}

static void put_attr(orr_json_writer *w, const orr_attr *attr)
{
    if (!attr->is_list) {
        put_value(w, attr->kind, &attr->value);
        return;
    }
    orr_list items = orr_attr_items(attr);
    orr_value item;
    orr_json_begin_array(w);
    while (orr_list_next(&items, &item))
        put_value(w, attr->kind, &item);
    orr_json_end_array(w);
}

static bool copy_text(orr_arena *a, orr_str from, orr_str *out)
{
    out->ptr = orr_arena_text(a, from);
    out->len = from.len;
    return out->ptr != NULL;
}

static bool copy_attr(orr_info *o, const orr_attr *attr, orr__meta_row *row)
{
    static const orr_json_style style = {.spaced = true};
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, &style);
    put_attr(&w, attr);
    const bool ok = !b.failed &&
                    copy_text(o->arena, (orr_str){(const char *)b.ptr, b.len}, &row->value) &&
                    copy_text(o->arena, attr->name, &row->name);
    row->member = attr->kind == ORR_VALUE_NONE ? NULL : orr_value_member(attr->kind, attr->is_list);
    orr_buf_fini(&b);
    return ok;
}

static orr_code info_metadata(orr_info *o, const orr_trace *t, orr_error *err)
{
    orr_attr attr;
    size_t count = 0;
    o->has_metadata = orr_trace_has_metadata(t);
    if (!copy_text(o->arena, orr_trace_version(t), &o->meta_version))
        return orr_no_memory(err);
    for (orr_attrs it = orr_trace_attrs(t); orr_attrs_next(&it, &attr);)
        count++;
    if (!(o->meta = orr_arena_new(o->arena, count, orr__meta_row)))
        return orr_no_memory(err);
    for (orr_attrs it = orr_trace_attrs(t); orr_attrs_next(&it, &attr);)
        if (!copy_attr(o, &attr, &o->meta[o->meta_count++]))
            return orr_no_memory(err);
    return ORR_OK;
}

static bool info_same_metadata(const orr_trace *a, const orr_trace *b)
{
    const orr_span x = orr__trace_meta_body(a), y = orr__trace_meta_body(b);
    return a->has_metadata == b->has_metadata && x.len == y.len &&
           (x.len == 0 || memcmp(x.ptr, y.ptr, x.len) == 0);
}

/* ======== Operators by name, without the numbers that make a node's name unique.
 *
 * Names are interned, so a node costs one hash of its name; figures are in an array by name. A
 * trailing number is: digits after one of _ - . # : / @ or a space, or digits in brackets;
 * repeatedly.  Digits that touch a letter belong to the name (bf16), except for those that end a
 * part of a path, which become a star: layers.12.mlp is layers.*.mlp. */

static bool is_sign(char c)
{
    return c && strchr("_-.#:/@ ", c);
}

/* The length of s[0..len) without one trailing number; len: there is none. */
static size_t without_number(const char *s, size_t len)
{
    size_t end = len;
    char bracket = 0;
    if (end > 2 && (s[end - 1] == ']' || s[end - 1] == ')'))
        bracket = s[--end] == ']' ? '[' : '(';
    const size_t digits = end;
    while (end && orr_is_digit(s[end - 1]))
        end--;
    if (end == digits || end == 0)
        return len;
    if (bracket)
        return s[end - 1] == bracket ? end - 1 : len;
    return is_sign(s[end - 1]) ? end - 1 : len;
}

static orr_str without_numbers(orr_str name)
{
    size_t len = name.len;
    for (size_t next; len && (next = without_number(name.ptr, len)) < len;)
        len = next;
    while (len < name.len && len && is_sign(name.ptr[len - 1]))
        len--;
    return len ? (orr_str){name.ptr, len} : name;
}

/* Digits that end a part of a path: layer12/forward, layers.12.mlp, and also all_reduce/bucket3. */
static bool ends_part(orr_str s, size_t end)
{
    if (end == s.len)
        return memchr(s.ptr, '/', s.len) != NULL;
    return end + 1 < s.len && (s.ptr[end] == '/' || s.ptr[end] == '.');
}

orr_str orr__operator_group(orr_str name, char room[ORR__NAME_ROOM])
{
    const orr_str s = without_numbers(name);
    size_t from = 0, n = 0;
    if (s.len > ORR__NAME_ROOM)
        return s;
    for (size_t i = 0; i < s.len;) {
        size_t end = i;
        while (end < s.len && orr_is_digit(s.ptr[end]))
            end++;
        if (end == i || !ends_part(s, end)) {
            i = end > i ? end : i + 1;
            continue;
        }
        memcpy(room + n, s.ptr + from, i - from);
        n += i - from;
        room[n++] = '*';
        from = i = end;
    }
    if (from == 0)
        return s;
    memcpy(room + n, s.ptr + from, s.len - from);
    return (orr_str){room, n + s.len - from};
}

static bool operators_add(
    orr__operators *ops, orr_str name, uint64_t duration_us, uint64_t times, uint32_t *out)
{
    char room[ORR__NAME_ROOM];
    uint32_t number;
    const size_t old = ops->room;
    if (!ops->names && !(ops->names = orr_intern_create()))
        return false;
    const uint32_t known = orr_intern_count(ops->names);
    if (!orr_intern_add(ops->names, ops->by_name ? name : orr__operator_group(name, room), &number))
        return false;
    if (!orr_grow(&ops->stats, &ops->room, (size_t)number + 1) ||
        !orr_grow(&ops->is_one_sided, &ops->flag_room, (size_t)number + 1))
        return false;
    if (number == known) /* called for every node, computed once per name */
        ops->is_one_sided[number] = orr__comm_kernel(name) == ORR__COMM_ONE_SIDED;
    if (ops->room > old)
        memset(ops->stats + old, 0, (ops->room - old) * sizeof *ops->stats);
    orr__stat_add(&ops->stats[number], duration_us, times);
    *out = number;
    return true;
}

static void operators_fini(orr__operators *ops)
{
    orr_intern_destroy(ops->names);
    orr_free(ops->stats);
    orr_free(ops->is_one_sided);
    *ops = (orr__operators){0};
}

static int compare_names(const orr__operators *ops, uint32_t a, uint32_t b)
{
    const orr_str x = orr_intern_get(ops->names, a), y = orr_intern_get(ops->names, b);
    const size_t n = x.len < y.len ? x.len : y.len;
    const int order = n ? memcmp(x.ptr, y.ptr, n) : 0;
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static int more_first(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static int compare_time(const void *a, const void *b, void *context)
{
    const orr__operators *ops = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const orr__stat *x = &ops->stats[i], *y = &ops->stats[j];
    int order = more_first(x->total, y->total);
    if (!order)
        order = more_first(x->count, y->count);
    return order ? order : compare_names(ops, i, j);
}

static int compare_count(const void *a, const void *b, void *context)
{
    const orr__operators *ops = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const orr__stat *x = &ops->stats[i], *y = &ops->stats[j];
    int order = more_first(x->count, y->count);
    if (!order)
        order = more_first(x->total, y->total);
    return order ? order : compare_names(ops, i, j);
}

/* The numbers of the first `top` operators by total time (or by count), ties by the other and then
 * by name. */
static uint32_t *operators_top(
    const orr__operators *ops, orr_arena *a, bool by_count, size_t top, size_t *count_out)
{
    const uint32_t count = ops->names ? orr_intern_count(ops->names) : 0;
    uint32_t *numbers = orr_arena_new(a, count ? count : 1, uint32_t);
    if (!numbers)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    qsort_r(numbers, count, sizeof *numbers, by_count ? compare_count : compare_time,
            (void *)(uintptr_t)ops);
    *count_out = count < top ? count : top;
    return numbers;
}

/* ---- nodes ---- */

static void add_size(orr__stat *s, const int64_t *column, uint32_t i, uint64_t times)
{
    if (column && column[i] >= 0)
        orr__stat_add(s, (uint64_t)column[i], times);
}

static bool add_node(orr__adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    orr_info *o = a->g->o;
    const uint8_t type = c->type[i];
    const uint64_t duration = c->duration_us[i];
    const int place = c->is_cpu_op ? c->is_cpu_op[i] : -1;
    orr__stat_add(&o->by_type[type], duration, a->times);
    orr__stat_add(&o->by_place[place < 0 ? 2 : place], duration, a->times);
    add_size(&o->tensor_size[type], c->tensor_size, i, a->times);
    add_size(&o->comm_size[type], c->comm_size, i, a->times);
    add_size(&o->num_ops, c->num_ops, i, a->times);
    a->row->duration_us = orr_sat_add(a->row->duration_us, duration);
    if (type == ORR_NODE_COMP)
        a->row->compute_us = orr_sat_add(a->row->compute_us, duration);
    if (orr__is_annotation(a->t, i)) {
        orr__stat_add(&o->annotations, duration, a->times);
        return true;
    }
    uint32_t number;
    if (!operators_add(&o->operators, orr_trace_name(a->t, i), duration, a->times, &number))
        return false;
    if (type == ORR_NODE_COMP && place != 1 && o->operators.is_one_sided[number])
        orr__stat_add(&o->one_sided, duration, a->times);
    if (type == ORR_NODE_COMM_COLL)
        return info_collective(a, i);
    if (type == ORR_NODE_COMM_SEND || type == ORR_NODE_COMM_RECV)
        return info_message(a, i);
    return true;
}

/* ---- the graph of a class ---- */

/* The operators of the longest critical path so far. */
static orr_code keep_path(orr__adding *a, const orr__graph_shape *graph, orr_error *err)
{
    orr_info *o = a->g->o;
    orr__operators ops = {.by_name = o->options.by_name};
    uint32_t number;
    bool ok = true;
    for (uint32_t k = 0; ok && k < graph->path_count; k++) {
        const uint32_t i = graph->path[k];
        ok = orr__is_annotation(a->t, i) ||
             operators_add(&ops, orr_trace_name(a->t, i), a->c->duration_us[i], 1, &number);
    }
    uint32_t *top =
        ok ? operators_top(&ops, a->g->scratch, false, o->options.top, &o->path_op_count) : NULL;
    ok = top && (o->path_ops = orr_arena_new(o->arena, o->path_op_count, orr__operator));
    for (size_t k = 0; ok && k < o->path_op_count; k++) {
        const orr_str name = orr_intern_get(ops.names, top[k]);
        o->path_ops[k] =
            (orr__operator){{orr_arena_text(o->arena, name), name.len}, ops.stats[top[k]]};
        ok = o->path_ops[k].name.ptr != NULL;
    }
    operators_fini(&ops);
    return ok ? ORR_OK : orr_no_memory(err);
}

static orr_code add_path(orr__adding *a, const orr__graph_shape *graph, orr_error *err)
{
    orr_info *o = a->g->o;
    o->critical_ranks += (uint32_t)a->times;
    o->critical_sum_us = orr_sat_add(o->critical_sum_us, orr_sat_mul(graph->length_us, a->times));
    const bool is_longer = graph->length_us > o->path_us;
    const bool is_earlier = graph->length_us == o->path_us && a->row->first < o->path_rank;
    if (o->has_path && !is_longer && !is_earlier)
        return ORR_OK;
    o->has_path = true;
    o->path_us = graph->length_us;
    o->path_nodes = graph->path_count;
    o->path_rank = a->row->first;
    o->path_rank_us = a->row->duration_us;
    return keep_path(a, graph, err);
}

static orr_code add_graph(orr__adding *a, orr_error *err)
{
    orr_info *o = a->g->o;
    const orr_columns *c = a->c;
    orr__graph_shape graph;
    const orr_code code = orr__graph_measure(c, a->g->scratch, &graph, err);
    if (code)
        return code;
    o->roots += graph.roots * a->times;
    o->leaves += graph.leaves * a->times;
    o->data_deps += c->data_first[c->count] * a->times;
    o->ctrl_deps += (c->ctrl_first ? c->ctrl_first[c->count] : 0) * a->times;
    o->data_missing += c->data_missing * a->times;
    o->ctrl_missing += c->ctrl_missing * a->times;
    o->duplicate_ids += c->duplicate_ids * a->times;
    o->levels = graph.levels > o->levels ? graph.levels : o->levels;
    o->width = graph.width > o->width ? graph.width : o->width;
    a->row->is_cyclic = graph.is_cyclic;
    a->row->critical_us = graph.length_us;
    a->row->critical_nodes = graph.path_count;
    a->row->levels = graph.levels;
    a->row->width = graph.width;
    if (graph.is_cyclic) {
        if (!o->cyclic_ranks || a->row->first < o->first_cyclic)
            o->first_cyclic = a->row->first;
        o->cyclic_ranks += (uint32_t)a->times;
    }
    return graph.path_count ? add_path(a, &graph, err) : ORR_OK;
}

static orr_code add_class(orr__adding *a, orr_error *err)
{
    orr_info *o = a->g->o;
    a->c = orr_trace_columns(a->t);
    orr_arena_reset(a->g->scratch);
    orr_code code = info_begin_class(a, err);
    a->row->nodes = a->c->count;
    o->nodes += a->row->nodes * a->times;
    o->schema_ranks[orr_trace_schema(a->t)] += a->row->count;
    for (uint32_t i = 0; i < a->c->count && !code; i++)
        if (!add_node(a, i))
            code = orr_no_memory(err);
    if (!code)
        code = info_end_class(a, err);
    return code ? code : add_graph(a, err);
}

/* ---- the set ---- */

/* Hash and metadata of what is counted, first rank to last. */
static orr_code describe_inputs(orr__gatherer *g, orr_error *err)
{
    orr_info *o = g->o;
    const orr_trace *head = NULL;
    for (uint32_t r = 0; r < o->ranks; r++) {
        const uint32_t k = orr_set_class_of(g->set, r);
        if (k == ORR_NO_NODE || (o->options.one_rank && r != o->options.rank))
            continue;
        const orr_trace *t = orr_set_trace(g->set, k);
        o->counted_ranks++;
        if (!head)
            head = t;
        else if (t != head && !o->metadata_differs)
            o->metadata_differs = !info_same_metadata(head, t);
    }
    const orr_code code = orr__set_content_hash(
        g->set, o->options.one_rank ? o->options.rank : ORR_NO_NODE, &o->content_hash, err);
    return code || !head ? code : info_metadata(o, head, err);
}

/* The ranks of every class, class by class. */
static orr_code list_members(orr__gatherer *g, orr_error *err)
{
    const uint32_t classes = orr_set_class_count(g->set);
    uint32_t *members = orr_arena_new(g->arena, (size_t)g->o->ranks + 1, uint32_t);
    uint32_t *first = orr_arena_new(g->arena, (size_t)classes + 2, uint32_t);
    if (!members || !first)
        return orr_no_memory(err);
    for (uint32_t r = 0; r < g->o->ranks; r++)
        if (orr_set_class_of(g->set, r) != ORR_NO_NODE)
            first[orr_set_class_of(g->set, r) + 2]++;
    for (uint32_t k = 0; k < classes; k++)
        first[k + 2] += first[k + 1];
    for (uint32_t r = 0; r < g->o->ranks; r++)
        if (orr_set_class_of(g->set, r) != ORR_NO_NODE)
            members[first[orr_set_class_of(g->set, r) + 1]++] = r;
    g->members = members;
    g->first = first;
    return ORR_OK;
}

static orr__class_row *add_row(orr_info *o, const uint32_t *ranks, uint32_t count)
{
    if (!orr_grow(&o->rows, &o->row_room, o->row_count + 1))
        return NULL;
    orr__class_row *row = &o->rows[o->row_count];
    *row = (orr__class_row){.count = count, .first = count ? ranks[0] : 0};
    if (!(row->ranks = orr__rank_ranges(o->arena, ranks, count)))
        return NULL;
    o->row_count++;
    return row;
}

/* places: those of a->ranks, grouped by the amount they move; counts: the group sizes. */
static bool sort_by_moved(const orr__adding *a, uint32_t *places, uint32_t *counts, uint32_t *rows)
{
    const uint32_t n = (uint32_t)a->times;
    orr_map *numbers = orr_map_create(0);
    uint32_t *row_of = orr_arena_new(a->g->scratch, (size_t)n + 1, uint32_t);
    uint32_t *at = orr_arena_new(a->g->scratch, (size_t)n + 1, uint32_t);
    bool ok = numbers && row_of && at;
    *rows = 0;
    for (uint32_t i = 0; ok && i < n; i++) {
        row_of[i] = orr_map_find(numbers, a->moved[i], *rows);
        if (row_of[i] == *rows)
            ok = orr_map_put(numbers, a->moved[i], (*rows)++, NULL);
        counts[row_of[i]]++;
    }
    for (uint32_t i = 1; ok && i < *rows; i++)
        at[i] = at[i - 1] + counts[i - 1];
    for (uint32_t i = 0; ok && i < n; i++)
        places[at[row_of[i]]++] = i;
    orr_map_destroy(numbers);
    return ok;
}

/* Ranks of one class in groups of different sizes move different amounts: one row each. */
static orr_code split_row(const orr__adding *a, orr_error *err)
{
    orr_info *o = a->g->o;
    const orr__class_row whole = *a->row;
    uint32_t *places = orr_arena_new(a->g->scratch, a->times + 1, uint32_t);
    uint32_t *counts = orr_arena_new(a->g->scratch, a->times + 1, uint32_t);
    uint32_t *ranks = orr_arena_new(a->g->scratch, a->times + 1, uint32_t);
    uint32_t rows;
    if (!places || !counts || !ranks || !sort_by_moved(a, places, counts, &rows))
        return orr_no_memory(err);
    o->row_count--;
    for (uint32_t i = 0; i < rows; places += counts[i++]) {
        for (uint32_t j = 0; j < counts[i]; j++)
            ranks[j] = a->ranks[places[j]];
        orr__class_row *row = add_row(o, ranks, counts[i]);
        if (!row)
            return orr_no_memory(err);
        const orr__class_row named = *row;
        *row = whole;
        row->ranks = named.ranks;
        row->first = named.first;
        row->count = named.count;
        row->moved_bytes = orr_sat_add(whole.moved_bytes, a->moved[places[0]]);
    }
    return ORR_OK;
}

static orr_code add_one(orr__gatherer *g, orr_error *err)
{
    orr_trace *owned;
    orr__adding a = {.g = g, .times = 1};
    if (!(a.row = add_row(g->o, &g->o->options.rank, 1)))
        return orr_no_memory(err);
    orr_code code = orr_set_rank_trace(g->set, g->o->options.rank, &a.t, &owned, err);
    if (!code)
        code = add_class(&a, err);
    adding_fini(&a);
    orr_trace_destroy(owned);
    return code;
}

static orr_code add_classes(orr__gatherer *g, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < orr_set_class_count(g->set) && !code; k++) {
        orr__adding a = {.g = g,
                         .t = orr_set_trace(g->set, k),
                         .ranks = g->members + g->first[k],
                         .times = g->first[k + 1] - g->first[k]};
        if (!(a.row = add_row(g->o, a.ranks, (uint32_t)a.times)))
            return orr_no_memory(err);
        if (g->set->classes[k].hole_count)
            a.holes = &g->set->classes[k];
        if (a.times)
            code = add_class(&a, err);
        if (!code && a.moved)
            code = split_row(&a, err);
        adding_fini(&a);
    }
    return code;
}

/* ---- order of the results ---- */

/* Groups are mostly numbers written as text: shorter first, then by bytes, sorts them. */
static int compare_colls(const void *a, const void *b, void *context)
{
    const orr__coll_row *x = a, *y = b;
    const orr_info *o = context;
    if (x->group == y->group)
        return (x->kind > y->kind) - (x->kind < y->kind);
    if (x->group == ORR_NO_NAME || y->group == ORR_NO_NAME)
        return x->group == ORR_NO_NAME ? -1 : 1;
    const orr_str p = orr_intern_get(o->groups, x->group), q = orr_intern_get(o->groups, y->group);
    if (p.len != q.len)
        return p.len < q.len ? -1 : 1;
    return memcmp(p.ptr, q.ptr, p.len);
}

static int compare_peers(const void *a, const void *b)
{
    const orr__peer_row *x = a, *y = b;
    if (x->size.total != y->size.total)
        return x->size.total > y->size.total ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static bool is_full(uint64_t v)
{
    return v == UINT64_MAX;
}

static void note_saturation(orr_info *o)
{
    bool full = is_full(o->moved_coll) || is_full(o->moved_p2p) || is_full(o->critical_sum_us) ||
                is_full(o->num_ops.total) || is_full(o->path_us);
    for (size_t i = 0; i < 256; i++)
        full |= is_full(o->by_type[i].total) || is_full(o->tensor_size[i].total) ||
                is_full(o->comm_size[i].total);
    o->is_saturated = full;
}

static orr_code order_results(orr_info *o, orr_error *err)
{
    const size_t top = o->options.top;
    if (o->coll_count)
        qsort_r(o->colls, o->coll_count, sizeof *o->colls, compare_colls, o);
    if (o->peer_count)
        orr_sort(o->peers, o->peer_count, sizeof *o->peers, compare_peers);
    o->by_time = operators_top(&o->operators, o->arena, false, top, &o->by_time_count);
    o->by_count = operators_top(&o->operators, o->arena, true, top, &o->by_count_count);
    note_saturation(o);
    return o->by_time && o->by_count ? ORR_OK : orr_no_memory(err);
}

/* ---- construction ---- */

static orr_code copy_options(orr_info *o, const orr_info_options *opt, orr_error *err)
{
    static const orr_info_options defaults = {0};
    o->options = opt ? *opt : defaults;
    if (o->options.top == 0)
        o->options.top = ORR__TOP_DEFAULT;
    o->operators.by_name = o->options.by_name;
    const char **texts[] = {&o->options.path, &o->options.program};
    for (size_t i = 0; i < 2; i++)
        if (*texts[i] && !(*texts[i] = orr_arena_text(o->arena, orr_str_of(*texts[i]))))
            return orr_no_memory(err);
    return ORR_OK;
}

static orr_code check_rank(const orr_info *o, const orr_set *s, orr_error *err)
{
    if (!o->options.one_rank)
        return ORR_OK;
    if (o->options.rank >= o->ranks)
        return orr_fail(err, ORR_EUSAGE, NULL, "no rank %u: there are %u, counted from 0",
                        o->options.rank, o->ranks);
    if (orr_set_class_of(s, o->options.rank) == ORR_NO_NODE)
        return orr_fail(err, ORR_EINPUT, NULL, "rank %u could not be read", o->options.rank);
    return ORR_OK;
}

static orr_code gather(orr__gatherer *g, orr_error *err)
{
    g->arena = orr_arena_create();
    g->scratch = orr_arena_create();
    g->coll_rows = orr_map_create(64);
    g->peer_keys = orr_intern_create();
    g->by_value = orr_map_create(0);
    if (!g->arena || !g->scratch || !g->coll_rows || !g->peer_keys || !g->by_value)
        return orr_no_memory(err);
    orr_code code;
    if ((code = describe_inputs(g, err)) || (code = list_members(g, err)) ||
        (code = info_count_groups(g, err)) ||
        (code = g->o->options.one_rank ? add_one(g, err) : add_classes(g, err)))
        return code;
    return order_results(g->o, err);
}

static void gatherer_fini(orr__gatherer *g)
{
    orr_arena_destroy(g->arena);
    orr_arena_destroy(g->scratch);
    orr_map_destroy(g->coll_rows);
    orr_intern_destroy(g->peer_keys);
    orr_map_destroy(g->by_value);
    orr_free(g->groups);
}

static orr_code start(orr_info *o, const orr_set *s, const orr_info_options *opt, orr_error *err)
{
    o->arena = orr_arena_create();
    o->groups = orr_intern_create();
    if (!o->arena || !o->groups)
        return orr_no_memory(err);
    o->ranks = orr_set_rank_count(s);
    o->classes = orr_set_class_count(s);
    const orr_code code = copy_options(o, opt, err);
    return code ? code : check_rank(o, s, err);
}

orr_code orr_info_create(const orr_set *s,
                         const orr_info_options *opt,
                         orr_info **out,
                         orr_error *err)
{
    *out = NULL;
    orr_info *o = orr_alloc(1, sizeof *o);
    if (!o)
        return orr_no_memory(err);
    orr_code code = start(o, s, opt, err);
    orr__gatherer g = {.o = o, .set = s};
    if (!code)
        code = gather(&g, err);
    gatherer_fini(&g);
    if (code) {
        orr_info_destroy(o);
        return code;
    }
    *out = o;
    return ORR_OK;
}

void orr_info_destroy(orr_info *o)
{
    if (!o)
        return;
    operators_fini(&o->operators);
    orr_intern_destroy(o->groups);
    orr_free(o->colls);
    orr_free(o->peers);
    orr_free(o->rows);
    orr_buf_fini(&o->printed);
    orr_arena_destroy(o->arena);
    orr_free(o);
}
