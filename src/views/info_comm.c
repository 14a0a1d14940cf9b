/* SPDX-License-Identifier: Apache-2.0 */
/* info_comm.c - collectives by group and messages by pair of peers.
 *
 * Nodes whose group or peers are the same for all ranks of a class are added at once, as often as
 * the class has ranks.  In a class with holes the others are summed up first, by slot and kind of
 * collective or by the slots that say who sends to whom; then each rank's values say which rows
 * these sums belong to. Cost: O(nodes) of the distinct ranks, plus a few steps for each value of a
 * rank. */
#include "info_gather.h"

#include <string.h>

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

/* The group that a rank names by a number of its own. */
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

/* The texts of a trace are the names of the groups its nodes name; those in holes are only there
 * for the look of it. */
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

orr_code orr__info_count_groups(orr__gatherer *g, orr_error *err)
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

/* How many ranks take part; 0: not known, because the set is one rank of a job. */
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

/* ---- sums that are dealt out to ranks ---- */

/* Collectives of one kind whose group is the value of one slot. */
typedef struct coll_sum {
    uint32_t slot, kind;
    uint64_t count;
    orr__stat size;
    uint32_t sizes; /* the last of them in own.sizes, + 1 */
} coll_sum;

/* A size, this many times; what it costs depends on the group. */
typedef struct size_link {
    uint64_t size, times;
    uint32_t before; /* of the same sum, + 1 */
} size_link;

/* A rank at one end of messages: the same for all ranks of the class, or the value of a slot. */
enum { OWN_RANK = ORR_NO_NODE - 1 }; /* instead of a slot: the rank itself */

typedef struct peer_end {
    int64_t rank;
    uint32_t slot, filler; /* slot ORR_NO_NODE: none; filler: no byte of a key is left open */
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

void orr__adding_fini(orr__adding *a)
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

orr_code orr__info_begin_class(orr__adding *a, orr_error *err)
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

/* It is summed up until the ranks are known. */
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

bool orr__info_collective(orr__adding *a, uint32_t i)
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
        a->row->sent_bytes = orr__sat_add(a->row->sent_bytes, (uint64_t)size);
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
    row->moved = orr__sat_add(row->moved, orr__sat_mul(moved, a->times));
    a->row->moved_bytes = orr__sat_add(a->row->moved_bytes, moved);
    o->moved_coll = orr__sat_add(o->moved_coll, orr__sat_mul(moved, a->times));
    return true;
}

/* What all collectives of a sum move in a group of n, found once for each n. */
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
        *out = orr__sat_add(*out, orr__sat_mul(one, w->sizes[at - 1].times));
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
    row->moved = orr__sat_add(row->moved, moved);
    o->moved_coll = orr__sat_add(o->moved_coll, moved);
    if (a->moved)
        a->moved[place] = orr__sat_add(a->moved[place], moved);
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

/* Both ends are the same for all ranks, or it is summed up until the ranks are known. */
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

/* A send that names no source is sent by its rank; a receive likewise.  In a file of one rank, which
 * that is remains unknown. */
static void fill_own_end(const orr__adding *a, peer_end *e)
{
    if (e->slot != ORR_NO_NODE || e->rank != ORR_NO_VALUE || !a->ranks ||
        orr_set_rank_count(a->g->set) < 2)
        return;
    *e = (peer_end){.slot = OWN_RANK};
}

/* Equal ranks have nothing that is dealt out to them later. */
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

bool orr__info_message(orr__adding *a, uint32_t i)
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
        return true; /* counted where it is sent */
    a->row->sent_bytes = orr__sat_add(a->row->sent_bytes, (uint64_t)size);
    a->row->moved_bytes = orr__sat_add(a->row->moved_bytes, (uint64_t)size);
    o->moved_p2p = orr__sat_add(o->moved_p2p, orr__sat_mul((uint64_t)size, a->times));
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

orr_code orr__info_end_class(orr__adding *a, orr_error *err)
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
