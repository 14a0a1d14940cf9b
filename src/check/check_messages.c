/* SPDX-License-Identifier: Apache-2.0 */
/* check_messages.c - is every message that is sent also received, with the same tag and size?
 *
 * A channel is what one rank sends to one other with one tag.  Both ends of a channel must have the
 * same number of messages and the same sizes, in any order, because sends without a dependency
 * between them have none.
 *
 * Equal ranks make the same sends: a channel of shape c to rank d represents one from each rank of
 * c, and d must have a receive from each of them.  d's shape lists those in one *block* (tag, shape
 * of the peer):
 *
 *     shape of d   receives, by tag and shape of source   | 7: c | c | c | 9: c | ... |
 *                                                            from r0, r1, r2
 *
 * If the block has as many channels as c has ranks, all with the send's fingerprint, everything
 * matches without visiting ranks.  Only if this fails are single ranks examined.  Ranks with their
 * own peers are visited one by one, but only to find the line that leads back: nearly all of them
 * share the same pair of lines, so a pair is compared once, tag by tag, and a mismatch is one
 * finding for all ranks it connects. Cost: O(m log m) for m messages of distinct shapes, one step
 * per own peer of a rank, plus the lines that differ. */
#include "check_impl.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct chk_message {
    uint64_t to; /* which peer: see chk_line */
    uint32_t node;
    int64_t tag, size;
} chk_message;

/* What goes to one peer with one tag. */
typedef struct chk_channel {
    int64_t tag;
    uint32_t line;
    uint32_t first, count; /* messages[first .. first + count), by size */
    uint64_t fingerprint;  /* of the sizes; 0: one is unknown */
} chk_channel;

/* All channels to one peer: a rank that the body names, or each rank's own value.  A rank has one
 * line to a peer. */
typedef struct chk_line {
    uint32_t peer;         /* ORR_NO_NODE: each rank's own, */
    uint32_t slot;         /* the value of this slot */
    uint32_t first, count; /* channels[first .. first + count), by tag */
    uint32_t id;           /* among all lines of both directions */
} chk_line;

/* The channels of one tag to peers of one shape. */
typedef struct chk_block {
    int64_t tag;
    uint32_t peer_shape, channels;
    uint32_t count; /* of messages in each, and their fingerprint; is_mixed: they differ */
    uint64_t fingerprint;
    bool is_mixed;
} chk_block;

/* What the ranks of one shape send, or what they receive. */
typedef struct chk_side {
    chk_message *messages; /* by line, tag, size, node */
    chk_channel *channels; /* by line, then tag */
    chk_line *lines;       /* by peer; then those of ranks' own values */
    chk_block *blocks;     /* by tag, then shape of the peer; of peers that the body names */
    uint32_t message_count, channel_count, line_count, block_count;
    uint32_t named_count; /* lines whose peer the body names */
    bool has_unknown_peer;
} chk_side;

enum { CHK_SENDS, CHK_RECVS, CHK_DIRECTIONS };

typedef struct chk_exchange {
    chk_run *k;
    chk_shapes shapes;
    chk_side *sides[CHK_DIRECTIONS];    /* by shape */
    orr_map *own_lines[CHK_DIRECTIONS]; /* rank << 32 | peer -> line of the rank's side */
    uint32_t line_count;
    bool has_unknown[CHK_DIRECTIONS]; /* some rank has an end without a peer */
} chk_exchange;

static inline uint32_t chk_line_peer(const chk_exchange *x, const chk_line *l, uint32_t rank)
{
    return l->peer != ORR_NO_NODE ? l->peer : (uint32_t)chk_value(x->k, rank, l->slot);
}

static inline const chk_side *chk_side_of(const chk_exchange *x, int direction, uint32_t rank)
{
    return &x->sides[direction][x->shapes.of_rank[rank]];
}

/* ---- sends and receives, sorted by peer and tag.
 *
 * Class by class the ends of messages are listed; a class with holes has some whose peer or tag is
 * a rank's own value.  Its ranks are split into shapes (check_shapes.c) by which of those peers are
 * equal to each other or to one that the body names, which are no ranks at all, and by the tags
 * themselves.  All ranks of a shape then have the same *lines*, to whatever peers. Cost: O(m log m)
 * for m messages of distinct shapes, plus a few steps per value of a rank. */

/* One end of a message, in a class. */
typedef struct end {
    uint32_t node;
    uint32_t own;     /* which of the rank's own peers; ORR_NO_NODE: none */
    uint32_t own_tag; /* which of its own tags; ORR_NO_NODE: none */
    uint32_t peer;    /* if it has none of its own; ORR_NO_NODE: no rank */
    int64_t tag, size;
} end;

/* A list of distinct slots. */
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
    /* By peer: its role for the current class or rank; valid where the mark is its number + 1. */
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

/* A negative size was reported already and counts as unknown. */
static int64_t message_size(const orr_columns *c, uint32_t node)
{
    if (c->comm_size && c->comm_size[node] >= 0)
        return c->comm_size[node];
    return c->tensor_size && c->tensor_size[node] >= 0 ? c->tensor_size[node] : ORR_NO_VALUE;
}

/* Peers that are not ranks were reported already; what an unreadable rank does is unknown. */
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

/* An entry of a pattern: no rank, one that the body names, or the first of the rank's own that is
 * equal. */
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
    orr_sort(s->messages, s->message_count, sizeof *s->messages, compare_messages);
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
    orr_sort(order, count, sizeof *order, compare_blocked);
    for (uint32_t i = 0; i < count; i++)
        add_to_block(s, &order[i]);
    return true;
}

/* ---- lines to ranks' own peers ---- */

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

/* Fills a chk_exchange whose k is set; sets k->no_memory on failure.  Most of it is in k's
 * scratch. */
static void exchange_gather(chk_exchange *x)
{
    gathering g = {.x = x, .k = x->k};
    x->k->no_memory |= !list_all_ends(&g) || !make_shapes(&g) || !build_sides(&g, CHK_SENDS) ||
                       !build_sides(&g, CHK_RECVS);
}

static void exchange_fini(chk_exchange *x)
{
    orr_map_destroy(x->own_lines[CHK_SENDS]);
    orr_map_destroy(x->own_lines[CHK_RECVS]);
}

/* ---- lookups ---- */

/* NULL: the rank has none to that peer. */
static const chk_line *line_find(const chk_exchange *x, int direction, uint32_t rank, uint32_t peer)
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

static const chk_channel *channel_find(const chk_side *s, const chk_line *l, int64_t tag)
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

static const chk_block *block_find(const chk_side *s, int64_t tag, uint32_t peer_shape)
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

/* Pairs are compared for the text of findings only; a set that is wrong everywhere need not wait
 * for all. */
enum { STEPS_MOST = 20000000 };

typedef struct matching {
    chk_exchange x;
    chk_run *k;
    struct pair *pairs; /* of ranks that are not all equal; one per pair of lines */
    size_t pair_count, pair_room;
    orr_map *pair_of;  /* two lines -> pair */
    orr_map *reported; /* receives already reported: see report_key */
    uint64_t steps;
} matching;

/* ---- comparing two lines ---- */

enum { SENDS_FIT = 1, RECVS_FIT = 2 }; /* RECVS_FIT: for every tag something is sent */

static bool agrees(uint32_t count, uint64_t fingerprint, uint32_t other_count, uint64_t other)
{
    return count == other_count && (fingerprint == other || !fingerprint || !other);
}

static bool channels_agree(const chk_channel *a, const chk_channel *b)
{
    return agrees(a->count, a->fingerprint, b->count, b->fingerprint);
}

static uint32_t compare_lines(const chk_side *a,
                              const chk_line *sends,
                              const chk_side *b,
                              const chk_line *recvs)
{
    uint32_t fit = SENDS_FIT | RECVS_FIT;
    for (uint32_t i = 0; i < sends->count; i++) {
        const chk_channel *s = &a->channels[sends->first + i];
        const chk_channel *r = channel_find(b, recvs, s->tag);
        if (!r || !channels_agree(s, r))
            fit &= ~(uint32_t)SENDS_FIT;
    }
    for (uint32_t i = 0; i < recvs->count; i++)
        if (!channel_find(a, sends, b->channels[recvs->first + i].tag))
            fit &= ~(uint32_t)RECVS_FIT;
    return fit;
}

/* Two ranks that may communicate; a line is NULL if there is none. */
typedef struct pair {
    matching *m;
    uint32_t src, dst;
    const chk_side *sends, *recvs;
    const chk_line *send_line, *recv_line;
    uint32_t count; /* of pairs with the same lines, this one included */
    uint32_t fit;
    uint32_t lost; /* channels of recv_line before this have a matching tag */
} pair;

static pair pair_at(matching *m, uint32_t rank, int direction, const chk_line *line)
{
    const uint32_t peer = chk_line_peer(&m->x, line, rank);
    const chk_line *back = line_find(&m->x, !direction, peer, rank);
    const bool is_send = direction == CHK_SENDS;
    pair p = {.m = m,
              .src = is_send ? rank : peer,
              .dst = is_send ? peer : rank,
              .send_line = is_send ? line : back,
              .recv_line = is_send ? back : line,
              .count = 1};
    p.sends = chk_side_of(&m->x, CHK_SENDS, p.src);
    p.recvs = chk_side_of(&m->x, CHK_RECVS, p.dst);
    return p;
}

static void fit_pair(pair *p)
{
    if (p->send_line && p->recv_line)
        p->fit = compare_lines(p->sends, p->send_line, p->recvs, p->recv_line);
}

/* Without a line, the rank that lacks it is the key.  The two ranges cannot overlap: there are
 * fewer lines. */
static uint64_t pair_key(const pair *p)
{
    const uint32_t *of_rank = p->m->x.shapes.of_rank;
    const uint32_t send = p->send_line ? p->send_line->id : UINT32_MAX - of_rank[p->src];
    const uint32_t recv = p->recv_line ? p->recv_line->id : UINT32_MAX - of_rank[p->dst];
    return (uint64_t)send << 32 | recv;
}

/* One more rank of a class with holes: its pair is new, or equal to a known one. */
static void add_pair(matching *m, const pair *p)
{
    const uint64_t key = pair_key(p);
    const uint32_t known = orr_map_find(m->pair_of, key, ORR_NO_NODE);
    if (known != ORR_NO_NODE) {
        m->pairs[known].count++;
        return;
    }
    if (m->pair_count >= ORR_NO_NODE || !orr_grow(&m->pairs, &m->pair_room, m->pair_count + 1) ||
        !orr_map_put(m->pair_of, key, (uint32_t)m->pair_count, NULL)) {
        m->k->no_memory = true;
        return;
    }
    m->pairs[m->pair_count] = *p;
    fit_pair(&m->pairs[m->pair_count++]);
}

/* ---- words ---- */

/* As if its class had only the ranks of the pair. */
static chk_class class_of(const pair *p, uint32_t rank)
{
    chk_class cls = p->m->k->classes[orr_set_class_of(p->m->k->set, rank)];
    cls.rank = rank;
    cls.rank_count = p->count;
    return cls;
}

static uint32_t first_node(const chk_side *s, const chk_channel *c)
{
    uint32_t node = s->messages[c->first].node;
    for (uint32_t i = 1; i < c->count; i++)
        if (s->messages[c->first + i].node < node)
            node = s->messages[c->first + i].node;
    return node;
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

static void report_send(const pair *p, const chk_channel *s, uint32_t received)
{
    const chk_class from = class_of(p, p->src);
    if (p->recvs->has_unknown_peer)
        return;
    chk_add(p->m->k, &from, ORR_CHECK_UNMATCHED_SEND, first_node(p->sends, s),
            "sends %u message%s to rank %u with tag %" PRId64 ", which receives %u", s->count,
            plural(s->count), p->dst, s->tag, received);
}

static void report_recv(const pair *p, const chk_channel *r, uint32_t sent)
{
    const chk_class to = class_of(p, p->dst);
    if (p->m->x.has_unknown[CHK_SENDS])
        return;
    chk_add(p->m->k, &to, ORR_CHECK_UNMATCHED_RECV, first_node(p->recvs, r),
            "waits for %u message%s from rank %u with tag %" PRId64 ", which sends %u", r->count,
            plural(r->count), p->src, r->tag, sent);
}

static void report_tag(const pair *p, const chk_channel *s, const chk_channel *r)
{
    chk_run *k = p->m->k;
    const chk_class from = class_of(p, p->src), to = class_of(p, p->dst);
    chk_add(k, &from, ORR_CHECK_MESSAGE_TAG, first_node(p->sends, s),
            "sends to rank %u with tag %" PRId64 ", which waits for tag %" PRId64 " (%s)", p->dst,
            s->tag, r->tag,
            chk_is_kept(k, ORR_CHECK_MESSAGE_TAG) ? chk_node_words(k, &to, first_node(p->recvs, r))
                                                  : "");
}

/* Both ends are sorted by size; the first difference is reported. */
static void report_size(const pair *p, const chk_channel *s, const chk_channel *r)
{
    chk_run *k = p->m->k;
    const chk_class from = class_of(p, p->src), to = class_of(p, p->dst);
    const chk_message *a = &p->sends->messages[s->first], *b = &p->recvs->messages[r->first];
    const chk_message *last = a + s->count;
    while (a + 1 < last && a->size == b->size)
        a++, b++;
    if (!chk_is_kept(k, ORR_CHECK_MESSAGE_SIZE)) {
        chk_add(k, &from, ORR_CHECK_MESSAGE_SIZE, a->node, "%s", "");
        return;
    }
    chk_add(k, &from, ORR_CHECK_MESSAGE_SIZE, a->node,
            "sends %s bytes to rank %u with tag %" PRId64 ", which expects %s (%s)",
            chk_count_words(k, (uint64_t)a->size), p->dst, s->tag,
            chk_count_words(k, (uint64_t)b->size), chk_node_words(k, &to, b->node));
}

/* ---- one pair of ranks, tag by tag ---- */

/* Equal ranks share reports about their receives; otherwise they are per line of one sender. */
static uint64_t report_key(const pair *p, const chk_channel *r)
{
    const chk_class *cls = &p->m->k->classes[orr_set_class_of(p->m->k->set, p->dst)];
    const uint32_t channel = (uint32_t)(r - p->recvs->channels);
    if (!cls->holes)
        return (uint64_t)cls->rank << 32 | channel;
    const uint64_t lines = pair_key(p);
    return orr_hash_mix(lines + 0x9e3779b97f4a7c15u, channel + 0xa0761d6478bd642fu);
}

static bool is_reported(const pair *p, const chk_channel *r)
{
    return orr_map_find(p->m->reported, report_key(p, r), 0) != 0;
}

static void set_reported(const pair *p, const chk_channel *r)
{
    p->m->k->no_memory |= !orr_map_put(p->m->reported, report_key(p, r), 1, NULL);
}

/* The next receive of this pair for whose tag nothing is sent. */
static const chk_channel *next_lost(pair *p)
{
    while (p->recv_line && p->lost < p->recv_line->count) {
        const chk_channel *r = &p->recvs->channels[p->recv_line->first + p->lost++];
        p->m->steps++;
        if (!is_reported(p, r) && !channel_find(p->sends, p->send_line, r->tag))
            return r;
    }
    return NULL;
}

static void compare_ends(pair *p, const chk_channel *s)
{
    const chk_channel *r = p->recv_line ? channel_find(p->recvs, p->recv_line, s->tag) : NULL;
    p->m->steps++;
    if (r && channels_agree(s, r))
        return;
    if (r)
        set_reported(p, r);
    if (r && r->count == s->count) {
        report_size(p, s, r);
    } else if (r && r->count > s->count) {
        report_recv(p, r, s->count);
    } else if (r) {
        report_send(p, s, r->count);
    } else if ((r = next_lost(p))) {
        set_reported(p, r);
        report_tag(p, s, r);
    } else {
        report_send(p, s, 0);
    }
}

/* ---- everything ---- */

/* Does every rank of the shape find its end of the line's channels at the named peer? */
static bool is_matched(const matching *m, uint32_t shape, int direction, const chk_line *line)
{
    const chk_exchange *x = &m->x;
    const chk_side *mine = &x->sides[direction][shape];
    const chk_side *other = chk_side_of(x, !direction, line->peer);
    for (uint32_t i = 0; i < line->count; i++) {
        const chk_channel *c = &mine->channels[line->first + i];
        const chk_block *b = block_find(other, c->tag, shape);
        if (!b || b->channels != x->shapes.all[shape].rank_count || b->is_mixed ||
            !agrees(c->count, c->fingerprint, b->count, b->fingerprint))
            return false;
    }
    return true;
}

/* The sends of a line, tag by tag. */
static void report_sends(pair *p)
{
    for (uint32_t i = 0; !(p->fit & SENDS_FIT) && i < p->send_line->count; i++)
        compare_ends(p, &p->sends->channels[p->send_line->first + i]);
}

/* Receives for which nothing at all is sent; otherwise the sender's side has reported it. */
static void report_recvs(pair *p)
{
    for (uint32_t i = 0; !(p->fit & RECVS_FIT) && i < p->recv_line->count; i++) {
        const chk_channel *r = &p->recvs->channels[p->recv_line->first + i];
        const bool is_sent = p->send_line && channel_find(p->sends, p->send_line, r->tag) != NULL;
        p->m->steps++;
        if (is_sent || is_reported(p, r))
            continue;
        set_reported(p, r);
        report_recv(p, r, 0);
    }
}

/* One direction: sends or receives. */
typedef struct pass {
    int direction;
    void (*report)(pair *p);
    uint32_t fit; /* which fit of a pair is required */
} pass;

/* Of equal ranks, one is enough to tell what is wrong with their sends. */
static void check_equal_ranks(matching *m, const pass *d, uint32_t shape, const chk_line *line)
{
    const chk_shape *of = &m->x.shapes.all[shape];
    for (uint32_t i = 0; i < of->rank_count && m->steps < STEPS_MOST; i++) {
        pair p = pair_at(m, m->x.shapes.ranks[of->first + i], d->direction, line);
        fit_pair(&p);
        m->steps++;
        if (p.fit & d->fit)
            continue;
        d->report(&p);
        if (d->direction == CHK_SENDS)
            return;
    }
}

static void check_line(matching *m, const pass *d, uint32_t shape, const chk_line *line)
{
    const chk_shape *of = &m->x.shapes.all[shape];
    const size_t first = m->pair_count;
    if (line->peer != ORR_NO_NODE && is_matched(m, shape, d->direction, line))
        return;
    if (!m->k->classes[of->class_index].holes) {
        check_equal_ranks(m, d, shape, line);
        return;
    }
    for (uint32_t i = 0; i < of->rank_count && !m->k->no_memory; i++) {
        const pair p = pair_at(m, m->x.shapes.ranks[of->first + i], d->direction, line);
        add_pair(m, &p);
    }
    for (size_t i = first; i < m->pair_count && m->steps < STEPS_MOST; i++)
        d->report(&m->pairs[i]);
}

static bool check_pass(matching *m, const pass *d)
{
    m->pair_count = 0;
    m->pair_of = orr_map_create(0);
    m->k->no_memory |= !m->pair_of;
    for (uint32_t i = 0; i < m->x.shapes.count; i++) {
        const chk_side *s = &m->x.sides[d->direction][i];
        for (uint32_t l = 0; l < s->line_count && !m->k->no_memory; l++)
            check_line(m, d, i, &s->lines[l]);
    }
    orr_map_destroy(m->pair_of);
    return !m->k->no_memory;
}

static void check_all(matching *m)
{
    chk_run *k = m->k;
    if (!check_pass(m, &(pass){CHK_SENDS, report_sends, SENDS_FIT}) ||
        !check_pass(m, &(pass){CHK_RECVS, report_recvs, RECVS_FIT}))
        return;
    if (m->x.has_unknown[CHK_SENDS] || m->x.has_unknown[CHK_RECVS])
        chk_add_note(
            k, "sends or receives without a peer could match any message: unmatched messages are "
               "not reported where they might");
    if (m->steps >= STEPS_MOST)
        chk_add_note(k, "too many messages do not match; the rest were not checked");
}

void chk_messages(chk_run *k)
{
    matching m = {.k = k, .x.k = k};
    if (k->report->rank_count < 2 || k->no_memory)
        return;
    exchange_gather(&m.x);
    m.reported = orr_map_create(0);
    k->no_memory |= !m.reported;
    if (!k->no_memory)
        check_all(&m);
    exchange_fini(&m.x);
    orr_map_destroy(m.reported);
    orr_free(m.pairs);
}
