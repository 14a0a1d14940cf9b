/* SPDX-License-Identifier: Apache-2.0 */
/* check_channels.c - sends and receives, sorted by peer and tag.
 *
 * Class by class the ends of messages are listed; a class with holes has some whose peer or tag is a rank's
 * own value.  Its ranks are split into shapes (check_shapes.c) by which of those peers are equal to each other
 * or to one that the body names, which are no ranks at all, and by the tags themselves.  All ranks of a shape
 * then have the same *lines*, whoever is at the other end of them.
 * Cost: O(m log m) for m messages of distinct shapes, and a few looks at each rank's value. */
#include "check_channels.h"

#include "base/memory/hash.h"

#include <stdlib.h>

/* One end of a message, as a class has it. */
typedef struct end {
    uint32_t node;
    uint32_t own;     /* which of the rank's own peers; ORR_NO_NODE: none */
    uint32_t own_tag; /* which of its own tags; ORR_NO_NODE: none */
    uint32_t peer;    /* when it has none of its own; ORR_NO_NODE: no rank */
    int64_t tag, size;
} end;

/* A list of slots, each once. */
typedef struct slot_list {
    uint32_t *slots, *number; /* number: by slot, 1 + its place in slots */
    uint32_t count;
} slot_list;

/* The ends of one class in one direction. */
typedef struct end_list {
    end *all;
    uint32_t count;
    slot_list own;
    bool has_unknown_peer;
} end_list;

typedef struct gathering {
    chk_exchange *x;
    chk_run *k;
    end_list *ends[CHK_DIRECTIONS]; /* by class */
    slot_list *tags;                /* by class */
    /* By peer: what it is to the class or rank at hand; valid where the mark is its number + 1. */
    uint32_t *class_mark[CHK_DIRECTIONS], *rank_mark[CHK_DIRECTIONS], *rank_own[CHK_DIRECTIONS];
} gathering;

/* ---- the ends of the classes ---- */

static bool slot_list_init(slot_list *l, orr_arena *a, const chk_class *cls)
{
    const size_t n = cls->holes ? cls->holes->slot_count : 0;
    if (n == 0)
        return true;
    l->slots = orr_arena_new(a, n, uint32_t);
    l->number = orr_arena_new(a, n, uint32_t);
    return l->slots && l->number;
}

static uint32_t slot_number(slot_list *l, uint32_t slot)
{
    if (slot == ORR_NO_NODE)
        return ORR_NO_NODE;
    if (l->number[slot] == 0) {
        l->slots[l->count++] = slot;
        l->number[slot] = l->count;
    }
    return l->number[slot] - 1;
}

/* A negative size is reported already, and as good as none. */
static int64_t message_size(const orr_columns *c, uint32_t node)
{
    if (c->comm_size && c->comm_size[node] >= 0)
        return c->comm_size[node];
    return c->tensor_size && c->tensor_size[node] >= 0 ? c->tensor_size[node] : ORR_NO_VALUE;
}

/* Peers that are not ranks are reported already; what an unreadable rank does nobody knows. */
static bool is_readable(const chk_run *k, int64_t peer)
{
    return peer >= 0 && peer < (int64_t)k->report->rank_count &&
           orr_set_class_of(k->set, (uint32_t)peer) != ORR_NO_NODE;
}

static void add_end(gathering *g, const chk_class *cls, int direction, uint32_t node)
{
    const orr_columns *c = cls->c;
    end_list *l = &g->ends[direction][cls->index];
    const bool is_send = direction == CHK_SENDS;
    const int64_t *peers = is_send ? c->comm_dst : c->comm_src;
    const int64_t peer = peers ? peers[node] : ORR_NO_VALUE;
    const int64_t tag = c->comm_tag ? c->comm_tag[node] : ORR_NO_VALUE;
    const uint32_t slot = chk_slot(cls, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, node);
    if (slot == ORR_NO_NODE && peer == ORR_NO_VALUE) {
        l->has_unknown_peer = g->x->has_unknown[direction] = true;
        return;
    }
    if (slot == ORR_NO_NODE && !is_readable(g->k, peer))
        return;
    l->all[l->count++] =
        (end){.node = node,
              .own = slot_number(&l->own, slot),
              .own_tag = slot_number(&g->tags[cls->index], chk_slot(cls, ORR_HOLE_COMM_TAG, node)),
              .peer = slot == ORR_NO_NODE ? (uint32_t)peer : ORR_NO_NODE,
              .tag = tag == ORR_NO_VALUE ? 0 : tag,
              .size = message_size(c, node)};
}

static int direction_of(uint8_t type)
{
    return type == ORR_NODE_COMM_SEND ? CHK_SENDS : type == ORR_NODE_COMM_RECV ? CHK_RECVS : -1;
}

static bool list_ends(gathering *g, const chk_class *cls)
{
    const orr_columns *c = cls->c;
    size_t n[CHK_DIRECTIONS] = {0};
    for (uint32_t i = 0; i < c->count; i++)
        if (direction_of(c->type[i]) >= 0)
            n[direction_of(c->type[i])]++;
    if (n[CHK_SENDS] + n[CHK_RECVS] == 0)
        return true;
    for (int d = 0; d < CHK_DIRECTIONS; d++) {
        end_list *l = &g->ends[d][cls->index];
        l->all = orr_arena_new(g->k->scratch, n[d] + 1, end);
        if (!l->all || !slot_list_init(&l->own, g->k->scratch, cls))
            return false;
    }
    if (!slot_list_init(&g->tags[cls->index], g->k->scratch, cls))
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        if (direction_of(c->type[i]) >= 0)
            add_end(g, cls, direction_of(c->type[i]), i);
    return true;
}

static bool list_all_ends(gathering *g)
{
    const size_t classes = (size_t)g->k->class_count + 1;
    g->tags = orr_arena_new(g->k->scratch, classes, slot_list);
    g->ends[CHK_SENDS] = orr_arena_new(g->k->scratch, classes, end_list);
    g->ends[CHK_RECVS] = orr_arena_new(g->k->scratch, classes, end_list);
    if (!g->tags || !g->ends[CHK_SENDS] || !g->ends[CHK_RECVS])
        return false;
    for (uint32_t i = 0; i < g->k->class_count; i++)
        if (g->k->classes[i].rank_count && !list_ends(g, &g->k->classes[i]))
            return false;
    return true;
}

/* ---- shapes ---- */

/* A number of a pattern: no rank, one that the body names, or another (or the same) of the rank's own. */
enum { NO_PEER = -1, NAMED_PEER = -2 };

static size_t begin_class(void *context, uint32_t class_index)
{
    gathering *g = context;
    for (int d = 0; d < CHK_DIRECTIONS; d++) {
        const end_list *l = &g->ends[d][class_index];
        for (uint32_t i = 0; l->own.count && i < l->count; i++)
            if (l->all[i].peer != ORR_NO_NODE)
                g->class_mark[d][l->all[i].peer] = class_index + 1;
    }
    return (size_t)g->ends[CHK_SENDS][class_index].own.count +
           g->ends[CHK_RECVS][class_index].own.count + g->tags[class_index].count;
}

static int64_t peer_number(gathering *g, int direction, uint32_t rank, int64_t peer, uint32_t own)
{
    if (!is_readable(g->k, peer))
        return NO_PEER;
    if (g->class_mark[direction][peer] == orr_set_class_of(g->k->set, rank) + 1)
        return NAMED_PEER - peer;
    if (g->rank_mark[direction][peer] != rank + 1) {
        g->rank_mark[direction][peer] = rank + 1;
        g->rank_own[direction][peer] = own;
    }
    return g->rank_own[direction][peer];
}

static void fill_pattern(void *context, uint32_t rank, int64_t *pattern)
{
    gathering *g = context;
    const uint32_t c = orr_set_class_of(g->k->set, rank);
    for (int d = 0; d < CHK_DIRECTIONS; d++) {
        const slot_list *own = &g->ends[d][c].own;
        for (uint32_t i = 0; i < own->count; i++)
            *pattern++ = peer_number(g, d, rank, chk_value(g->k, rank, own->slots[i]), i);
    }
    for (uint32_t i = 0; i < g->tags[c].count; i++)
        *pattern++ = chk_value(g->k, rank, g->tags[c].slots[i]);
}

static bool make_shapes(gathering *g)
{
    const chk_splitter by = {begin_class, fill_pattern, g};
    const size_t ranks = (size_t)g->k->report->rank_count + 1;
    for (int d = 0; d < CHK_DIRECTIONS; d++) {
        g->class_mark[d] = orr_arena_new(g->k->scratch, ranks, uint32_t);
        g->rank_mark[d] = orr_arena_new(g->k->scratch, ranks, uint32_t);
        g->rank_own[d] = orr_arena_new(g->k->scratch, ranks, uint32_t);
        if (!g->class_mark[d] || !g->rank_mark[d] || !g->rank_own[d])
            return false;
    }
    return chk_shapes_make(g->k, &by, &g->x->shapes);
}

/* ---- the sides of a shape ---- */

/* Peers that the body names come first in the order of lines. */
#define OWN_PEER ((uint64_t)1 << 32)

static void take_end(gathering *g, chk_side *s, int direction, uint32_t shape, const end *e)
{
    const chk_shape *of = &g->x->shapes.all[shape];
    const uint32_t sends = g->ends[CHK_SENDS][of->class_index].own.count;
    const uint32_t recvs = g->ends[CHK_RECVS][of->class_index].own.count;
    const int64_t *own = of->pattern + (direction == CHK_SENDS ? 0 : sends);
    const int64_t like = e->own == ORR_NO_NODE ? NAMED_PEER - (int64_t)e->peer : own[e->own];
    if (like == NO_PEER)
        return;
    s->messages[s->message_count++] = (chk_message){
        .to = like < 0 ? (uint64_t)(NAMED_PEER - like) : OWN_PEER + (uint64_t)like,
        .node = e->node,
        .tag = e->own_tag == ORR_NO_NODE ? e->tag : of->pattern[sends + recvs + e->own_tag],
        .size = e->size};
}

static int compare_messages(const void *a, const void *b)
{
    const chk_message *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void add_line(gathering *g, chk_side *s, const chk_message *m, const slot_list *own)
{
    const bool is_named = m->to < OWN_PEER;
    s->named_count += is_named;
    s->lines[s->line_count++] =
        (chk_line){.peer = is_named ? (uint32_t)m->to : ORR_NO_NODE,
                   .slot = is_named ? ORR_NO_NODE : own->slots[m->to - OWN_PEER],
                   .first = s->channel_count,
                   .id = g->x->line_count++};
}

static void add_channel(chk_side *s, const chk_message *m)
{
    s->lines[s->line_count - 1].count++;
    s->channels[s->channel_count++] = (chk_channel){.tag = m->tag,
                                                    .line = s->line_count - 1,
                                                    .first = (uint32_t)(m - s->messages),
                                                    .fingerprint = 1};
}

static void add_to_channel(chk_channel *c, const chk_message *m)
{
    c->count++;
    if (m->size == ORR_NO_VALUE)
        c->fingerprint = 0; /* sizes ascend, so this comes first */
    else if (c->fingerprint)
        c->fingerprint = orr_hash_mix(c->fingerprint ^ (uint64_t)m->size, 0x9e3779b97f4a7c15u) | 1;
}

static void sort_messages(gathering *g, chk_side *s, const slot_list *own)
{
    qsort(s->messages, s->message_count, sizeof *s->messages, compare_messages);
    for (uint32_t i = 0; i < s->message_count; i++) {
        const chk_message *m = &s->messages[i];
        const bool is_new_line = i == 0 || m->to != m[-1].to;
        if (is_new_line)
            add_line(g, s, m, own);
        if (is_new_line || m->tag != m[-1].tag)
            add_channel(s, m);
        add_to_channel(&s->channels[s->channel_count - 1], m);
    }
}

static bool build_side(gathering *g, uint32_t shape, int direction)
{
    const end_list *l = &g->ends[direction][g->x->shapes.all[shape].class_index];
    chk_side *s = &g->x->sides[direction][shape];
    orr_arena *a = g->k->scratch;
    s->has_unknown_peer = l->has_unknown_peer;
    if (l->count == 0)
        return true;
    s->messages = orr_arena_new(a, l->count, chk_message);
    s->channels = orr_arena_new(a, l->count, chk_channel);
    s->lines = orr_arena_new(a, l->count, chk_line);
    s->blocks = orr_arena_new(a, l->count, chk_block);
    if (!s->messages || !s->channels || !s->lines || !s->blocks)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        take_end(g, s, direction, shape, &l->all[i]);
    sort_messages(g, s, &l->own);
    return true;
}

/* ---- blocks ---- */

/* A channel and the shape of its peer. */
typedef struct blocked {
    const chk_channel *channel;
    uint32_t peer, peer_shape;
} blocked;

static int compare_blocked(const void *a, const void *b)
{
    const blocked *x = a, *y = b;
    if (x->channel->tag != y->channel->tag)
        return x->channel->tag < y->channel->tag ? -1 : 1;
    if (x->peer_shape != y->peer_shape)
        return x->peer_shape < y->peer_shape ? -1 : 1;
    return x->peer < y->peer ? -1 : 1;
}

static void add_to_block(chk_side *s, const blocked *b)
{
    const chk_channel *c = b->channel;
    chk_block *last = s->block_count ? &s->blocks[s->block_count - 1] : NULL;
    if (!last || last->tag != c->tag || last->peer_shape != b->peer_shape) {
        last = &s->blocks[s->block_count++];
        *last = (chk_block){.tag = c->tag,
                            .peer_shape = b->peer_shape,
                            .count = c->count,
                            .fingerprint = c->fingerprint};
    }
    last->channels++;
    last->is_mixed |= last->count != c->count || last->fingerprint != c->fingerprint;
}

static bool build_blocks(gathering *g, chk_side *s)
{
    const chk_line *behind = s->lines ? &s->lines[s->named_count] : NULL;
    const uint32_t count = s->named_count == s->line_count ? s->channel_count : behind->first;
    blocked *order = orr_arena_new(g->k->scratch, (size_t)count + 1, blocked);
    if (!order)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t peer = s->lines[s->channels[i].line].peer;
        order[i] = (blocked){&s->channels[i], peer, g->x->shapes.of_rank[peer]};
    }
    qsort(order, count, sizeof *order, compare_blocked);
    for (uint32_t i = 0; i < count; i++)
        add_to_block(s, &order[i]);
    return true;
}

/* ---- lines of the ranks' own ---- */

static bool list_own_lines(gathering *g, uint32_t shape, int direction)
{
    chk_exchange *x = g->x;
    const chk_side *s = &x->sides[direction][shape];
    const chk_shape *of = &x->shapes.all[shape];
    for (uint32_t i = 0; s->line_count > s->named_count && i < of->rank_count; i++) {
        const uint32_t rank = x->shapes.ranks[of->first + i];
        for (uint32_t l = s->named_count; l < s->line_count; l++) {
            const uint32_t peer = chk_line_peer(x, &s->lines[l], rank);
            if (!orr_map_put(x->own_lines[direction], (uint64_t)rank << 32 | peer, l, NULL))
                return false;
        }
    }
    return true;
}

static bool build_sides(gathering *g, int direction)
{
    chk_exchange *x = g->x;
    x->sides[direction] = orr_arena_new(g->k->scratch, (size_t)x->shapes.count + 1, chk_side);
    x->own_lines[direction] = orr_map_create(0);
    if (!x->sides[direction] || !x->own_lines[direction])
        return false;
    for (uint32_t i = 0; i < x->shapes.count; i++)
        if (!build_side(g, i, direction) || !build_blocks(g, &x->sides[direction][i]) ||
            !list_own_lines(g, i, direction))
            return false;
    return true;
}

void chk_exchange_gather(chk_exchange *x)
{
    gathering g = {.x = x, .k = x->k};
    x->k->no_memory |= !list_all_ends(&g) || !make_shapes(&g) || !build_sides(&g, CHK_SENDS) ||
                       !build_sides(&g, CHK_RECVS);
}

void chk_exchange_fini(chk_exchange *x)
{
    orr_map_destroy(x->own_lines[CHK_SENDS]);
    orr_map_destroy(x->own_lines[CHK_RECVS]);
}

/* ---- looking things up ---- */

const chk_line *chk_line_find(const chk_exchange *x, int direction, uint32_t rank, uint32_t peer)
{
    const chk_side *s = chk_side_of(x, direction, rank);
    uint32_t low = 0, high = s->named_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->lines[mid].peer < peer)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < s->named_count && s->lines[low].peer == peer)
        return &s->lines[low];
    if (s->line_count == s->named_count)
        return NULL;
    const uint32_t own =
        orr_map_find(x->own_lines[direction], (uint64_t)rank << 32 | peer, ORR_NO_NODE);
    return own == ORR_NO_NODE ? NULL : &s->lines[own];
}

const chk_channel *chk_channel_find(const chk_side *s, const chk_line *l, int64_t tag)
{
    uint32_t low = l->first, high = l->first + l->count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->channels[mid].tag < tag)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->first + l->count && s->channels[low].tag == tag ? &s->channels[low] : NULL;
}

const chk_block *chk_block_find(const chk_side *s, int64_t tag, uint32_t peer_shape)
{
    uint32_t low = 0, high = s->block_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const chk_block *b = &s->blocks[mid];
        if (b->tag < tag || (b->tag == tag && b->peer_shape < peer_shape))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == s->block_count || s->blocks[low].tag != tag ||
        s->blocks[low].peer_shape != peer_shape)
        return NULL;
    return &s->blocks[low];
}
