/* SPDX-License-Identifier: Apache-2.0 */
/* check_messages.c - is every message that is sent also received, with the same tag and size?
 *
 * A channel is what one rank sends to one other with one tag.  Both ends of a channel must hold the same
 * number of messages and the same sizes; in which order is not asked, because sends without a dependency
 * between them have none.
 *
 * Equal ranks make the same sends: a channel of class c to rank d stands for one from each rank of c, and d
 * must have a receive from each of them.  d's class lists those in one *block* (tag, class of the peer):
 *
 *     class of d   receives, by tag and class of source   | 7: c | c | c | 9: c | ... |
 *                                                            from r0, r1, r2
 *
 * If the block holds as many channels as c has ranks, all of them with the send's fingerprint, all is well,
 * and nobody has counted ranks.  Only where this fails are single ranks looked at: the pair of the first rank
 * that fails is compared tag by tag.  Cost: O(m log m) for m messages of distinct ranks, plus the pairs that
 * differ. */
#include "check_impl.h"

#include "../base/hash.h"

#include <inttypes.h>
#include <stdlib.h>

/* Comparing pairs is for the words of findings; a set that is wrong everywhere need not wait for all. */
enum { STEPS_MOST = 20000000 };

typedef struct message {
    uint32_t peer, node;
    int64_t tag, size;
} message;

typedef struct channel {
    uint32_t peer, peer_class;
    int64_t tag;
    uint32_t first, count; /* messages[first .. first + count), by size */
    uint64_t fingerprint;  /* of the sizes; 0: one is not known */
    bool is_reported;
} channel;

typedef struct block {
    int64_t tag;
    uint32_t peer_class, channels;
    uint32_t count; /* of messages in each, and their fingerprint; is_mixed: not the same in all */
    uint64_t fingerprint;
    bool is_mixed;
} block;

/* What one class sends, or what it receives. */
typedef struct side {
    message *messages;
    channel *channels; /* by peer, then tag */
    block *blocks;     /* by tag, then class of the peer */
    uint32_t message_count, channel_count, block_count;
    bool has_unknown_peer;
} side;

typedef struct exchange {
    orr__check *k;
    side *sends, *recvs;  /* by class */
    uint32_t *class_rank; /* ranks sorted by class: those of class c from class_first[c] */
    uint32_t *class_first;
    uint64_t steps;
    bool has_unknown_dst;
} exchange;

/* ---- gathering ---- */

static int compare_messages(const void *a, const void *b)
{
    const message *x = a, *y = b;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static uint32_t count_type(const orr_columns *c, uint8_t type)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->count; i++)
        n += c->type[i] == type;
    return n;
}

/* A negative size is reported already, and as good as none. */
static int64_t message_size(const orr_columns *c, uint32_t node)
{
    if (c->comm_size && c->comm_size[node] >= 0)
        return c->comm_size[node];
    return c->tensor_size && c->tensor_size[node] >= 0 ? c->tensor_size[node] : ORR_NO_VALUE;
}

static void take_message(
    const exchange *x, side *s, const orr_columns *c, const int64_t *peers, uint32_t node)
{
    const int64_t peer = peers ? peers[node] : ORR_NO_VALUE;
    if (peer == ORR_NO_VALUE) {
        s->has_unknown_peer = true;
        return;
    }
    /* Peers that are not ranks are reported already; what an unreadable rank does nobody knows. */
    if (peer < 0 || peer >= (int64_t)x->k->report->rank_count ||
        orr_set_class_of(x->k->set, (uint32_t)peer) == ORR_NO_NODE)
        return;
    const bool has_tag = c->comm_tag && c->comm_tag[node] != ORR_NO_VALUE;
    s->messages[s->message_count++] = (message){.peer = (uint32_t)peer,
                                                .node = node,
                                                .tag = has_tag ? c->comm_tag[node] : 0,
                                                .size = message_size(c, node)};
}

static bool take_messages(const exchange *x, side *s, const orr_columns *c, uint8_t type)
{
    const int64_t *peers = type == ORR_NODE_COMM_SEND ? c->comm_dst : c->comm_src;
    const uint32_t n = count_type(c, type);
    if (n == 0)
        return true;
    s->messages = orr_arena_new(x->k->scratch, n, message);
    s->channels = orr_arena_new(x->k->scratch, n, channel);
    s->blocks = orr_arena_new(x->k->scratch, n, block);
    if (!s->messages || !s->channels || !s->blocks)
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->type[i] == type)
            take_message(x, s, c, peers, i);
    qsort(s->messages, s->message_count, sizeof *s->messages, compare_messages);
    return true;
}

static void add_to_channel(side *s, const message *m, uint32_t place, uint32_t peer_class)
{
    channel *last = s->channel_count ? &s->channels[s->channel_count - 1] : NULL;
    if (!last || last->peer != m->peer || last->tag != m->tag) {
        last = &s->channels[s->channel_count++];
        *last = (channel){.peer = m->peer,
                          .peer_class = peer_class,
                          .tag = m->tag,
                          .first = place,
                          .fingerprint = 1};
    }
    last->count++;
    if (m->size == ORR_NO_VALUE)
        last->fingerprint = 0; /* sizes ascend, so this comes first */
    else if (last->fingerprint)
        last->fingerprint =
            orr_hash_mix(last->fingerprint ^ (uint64_t)m->size, 0x9e3779b97f4a7c15u) | 1;
}

static int compare_blocks(const void *a, const void *b)
{
    const channel *const *x = a, *const *y = b;
    if ((*x)->tag != (*y)->tag)
        return (*x)->tag < (*y)->tag ? -1 : 1;
    if ((*x)->peer_class != (*y)->peer_class)
        return (*x)->peer_class < (*y)->peer_class ? -1 : 1;
    return (*x)->peer < (*y)->peer ? -1 : 1;
}

static void add_to_block(side *s, const channel *c)
{
    block *last = s->block_count ? &s->blocks[s->block_count - 1] : NULL;
    if (!last || last->tag != c->tag || last->peer_class != c->peer_class) {
        last = &s->blocks[s->block_count++];
        *last = (block){.tag = c->tag,
                        .peer_class = c->peer_class,
                        .count = c->count,
                        .fingerprint = c->fingerprint};
    }
    last->channels++;
    last->is_mixed |= last->count != c->count || last->fingerprint != c->fingerprint;
}

static bool build_side(const exchange *x, side *s, const orr_columns *c, uint8_t type)
{
    if (!take_messages(x, s, c, type))
        return false;
    for (uint32_t i = 0; i < s->message_count; i++)
        add_to_channel(s, &s->messages[i], i, orr_set_class_of(x->k->set, s->messages[i].peer));
    const channel **order =
        orr_arena_new(x->k->scratch, (size_t)s->channel_count + 1, const channel *);
    if (!order)
        return false;
    for (uint32_t i = 0; i < s->channel_count; i++)
        order[i] = &s->channels[i];
    qsort(order, s->channel_count, sizeof *order, compare_blocks);
    for (uint32_t i = 0; i < s->channel_count; i++)
        add_to_block(s, order[i]);
    return true;
}

static bool list_ranks(exchange *x)
{
    const orr__check *k = x->k;
    const uint32_t ranks = k->report->rank_count;
    x->class_rank = orr_arena_new(k->scratch, (size_t)ranks + 1, uint32_t);
    x->class_first = orr_arena_new(k->scratch, (size_t)k->class_count + 2, uint32_t);
    if (!x->class_rank || !x->class_first)
        return false;
    for (uint32_t c = 0; c < k->class_count; c++)
        x->class_first[c + 2] = x->class_first[c + 1] + k->classes[c].rank_count;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t c = orr_set_class_of(k->set, r);
        if (c != ORR_NO_NODE)
            x->class_rank[x->class_first[c + 1]++] = r;
    }
    return true;
}

static bool build_exchange(exchange *x)
{
    orr__check *k = x->k;
    x->sends = orr_arena_new(k->scratch, (size_t)k->class_count + 1, side);
    x->recvs = orr_arena_new(k->scratch, (size_t)k->class_count + 1, side);
    if (!x->sends || !x->recvs || !list_ranks(x))
        return false;
    for (uint32_t i = 0; i < k->class_count; i++) {
        const orr_columns *c = k->classes[i].c;
        if (!build_side(x, &x->sends[i], c, ORR_NODE_COMM_SEND) ||
            !build_side(x, &x->recvs[i], c, ORR_NODE_COMM_RECV))
            return false;
        x->has_unknown_dst |= x->sends[i].has_unknown_peer;
    }
    return true;
}

/* ---- finding the other end ---- */

static const block *find_block(const side *s, int64_t tag, uint32_t peer_class)
{
    uint32_t low = 0, high = s->block_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const block *b = &s->blocks[mid];
        if (b->tag < tag || (b->tag == tag && b->peer_class < peer_class))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == s->block_count || s->blocks[low].tag != tag ||
        s->blocks[low].peer_class != peer_class)
        return NULL;
    return &s->blocks[low];
}

/* The first channel with this peer and at least this tag. */
static uint32_t find_channel(const side *s, uint32_t peer, int64_t tag)
{
    uint32_t low = 0, high = s->channel_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const channel *c = &s->channels[mid];
        if (c->peer < peer || (c->peer == peer && c->tag < tag))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static channel *channel_at(const side *s, uint32_t peer, int64_t tag)
{
    const uint32_t at = find_channel(s, peer, tag);
    if (at == s->channel_count || s->channels[at].peer != peer || s->channels[at].tag != tag)
        return NULL;
    return &s->channels[at];
}

static bool agrees(uint32_t count, uint64_t fingerprint, uint32_t other_count, uint64_t other)
{
    return count == other_count && (fingerprint == other || !fingerprint || !other);
}

/* Does every rank of class c find its end of the channel at the other side? */
static bool is_matched(const exchange *x, const channel *mine, uint32_t c, const side *other)
{
    const block *b = find_block(other, mine->tag, c);
    return b && b->channels == x->k->classes[c].rank_count && !b->is_mixed &&
           agrees(mine->count, mine->fingerprint, b->count, b->fingerprint);
}

/* The first rank of class c for which it does not.  ORR_NO_NODE: all do (sizes not known may have looked
 * mixed), or there have been enough. */
static uint32_t find_unmatched(exchange *x, const channel *mine, uint32_t c, const side *other)
{
    for (uint32_t i = x->class_first[c]; i < x->class_first[c + 1]; i++) {
        const uint32_t rank = x->class_rank[i];
        const channel *end = channel_at(other, rank, mine->tag);
        x->steps++;
        if (!end || !agrees(mine->count, mine->fingerprint, end->count, end->fingerprint))
            return rank;
    }
    return ORR_NO_NODE;
}

/* ---- one pair of ranks, tag by tag ---- */

typedef struct pair {
    exchange *x;
    orr__check_class from, to; /* as if they had this one rank */
    uint32_t src, dst;
    const side *sends, *recvs;
    uint32_t lost, lost_end; /* channels of recvs from src that may have lost their tag */
} pair;

static uint32_t first_node(const side *s, const channel *c)
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

static void report_send(const pair *p, const channel *s, uint32_t received)
{
    if (p->recvs->has_unknown_peer)
        return;
    orr__check_add(p->x->k, &p->from, ORR_CHECK_UNMATCHED_SEND, first_node(p->sends, s),
                   "sends %u message%s to rank %u with tag %" PRId64 ", which receives %u",
                   s->count, plural(s->count), p->dst, s->tag, received);
}

static void report_recv(const pair *p, const channel *r, uint32_t sent)
{
    if (p->x->has_unknown_dst)
        return;
    orr__check_add(p->x->k, &p->to, ORR_CHECK_UNMATCHED_RECV, first_node(p->recvs, r),
                   "waits for %u message%s from rank %u with tag %" PRId64 ", which sends %u",
                   r->count, plural(r->count), p->src, r->tag, sent);
}

static void report_tag(const pair *p, const channel *s, const channel *r)
{
    orr__check *k = p->x->k;
    orr__check_add(k, &p->from, ORR_CHECK_MESSAGE_TAG, first_node(p->sends, s),
                   "sends to rank %u with tag %" PRId64 ", which waits for tag %" PRId64 " (%s)",
                   p->dst, s->tag, r->tag,
                   orr__check_is_kept(k, ORR_CHECK_MESSAGE_TAG)
                       ? orr__check_node_words(k, &p->to, first_node(p->recvs, r))
                       : "");
}

/* Both ends are sorted by size; the first place where they differ tells. */
static void report_size(const pair *p, const channel *s, const channel *r)
{
    orr__check *k = p->x->k;
    const message *a = &p->sends->messages[s->first], *b = &p->recvs->messages[r->first];
    const message *end = a + s->count;
    while (a + 1 < end && a->size == b->size)
        a++, b++;
    if (!orr__check_is_kept(k, ORR_CHECK_MESSAGE_SIZE)) {
        orr__check_add(k, &p->from, ORR_CHECK_MESSAGE_SIZE, a->node, "%s", "");
        return;
    }
    orr__check_add(k, &p->from, ORR_CHECK_MESSAGE_SIZE, a->node,
                   "sends %s bytes to rank %u with tag %" PRId64 ", which expects %s (%s)",
                   orr__check_count_words(k, (uint64_t)a->size), p->dst, s->tag,
                   orr__check_count_words(k, (uint64_t)b->size),
                   orr__check_node_words(k, &p->to, b->node));
}

/* The next receive of this pair for whose tag nothing is sent. */
static channel *next_lost(pair *p)
{
    while (p->lost < p->lost_end) {
        channel *r = &p->recvs->channels[p->lost++];
        p->x->steps++;
        if (!r->is_reported && !channel_at(p->sends, p->dst, r->tag))
            return r;
    }
    return NULL;
}

static void compare_ends(pair *p, channel *s)
{
    channel *r = channel_at(p->recvs, p->src, s->tag);
    p->x->steps++;
    if (r && agrees(s->count, s->fingerprint, r->count, r->fingerprint))
        return;
    if (r)
        r->is_reported = true;
    if (r && r->count == s->count) {
        report_size(p, s, r);
    } else if (r && r->count > s->count) {
        report_recv(p, r, s->count);
    } else if (r) {
        report_send(p, s, r->count);
    } else if ((r = next_lost(p))) {
        r->is_reported = true;
        report_tag(p, s, r);
    } else {
        report_send(p, s, 0);
    }
}

static pair pair_of(exchange *x, uint32_t src, uint32_t dst)
{
    const orr__check *k = x->k;
    const uint32_t c = orr_set_class_of(k->set, src), e = orr_set_class_of(k->set, dst);
    pair p = {.x = x, .src = src, .dst = dst, .from = k->classes[c], .to = k->classes[e]};
    p.from.rank = src;
    p.to.rank = dst;
    p.from.rank_count = p.to.rank_count = 1;
    p.sends = &x->sends[c];
    p.recvs = &x->recvs[e];
    p.lost = find_channel(p.recvs, src, INT64_MIN);
    p.lost_end =
        src == UINT32_MAX ? p.recvs->channel_count : find_channel(p.recvs, src + 1, INT64_MIN);
    return p;
}

/* ---- all of it ---- */

/* The channels of class c to one rank: [at, end). */
static void check_run(exchange *x, uint32_t c, uint32_t at, uint32_t end)
{
    const side *sends = &x->sends[c];
    const uint32_t dst = sends->channels[at].peer;
    const side *recvs = &x->recvs[sends->channels[at].peer_class];
    uint32_t src = ORR_NO_NODE;
    for (uint32_t i = at; i < end && src == ORR_NO_NODE && x->steps < STEPS_MOST; i++)
        if (!is_matched(x, &sends->channels[i], c, recvs))
            src = find_unmatched(x, &sends->channels[i], c, recvs);
    if (src == ORR_NO_NODE)
        return;
    pair p = pair_of(x, src, dst);
    for (uint32_t i = at; i < end; i++)
        compare_ends(&p, &sends->channels[i]);
}

static void check_sends(exchange *x, uint32_t c)
{
    const side *s = &x->sends[c];
    for (uint32_t at = 0, end; at < s->channel_count; at = end) {
        for (end = at + 1; end < s->channel_count && s->channels[end].peer == s->channels[at].peer;)
            end++;
        check_run(x, c, at, end);
    }
}

/* Receives for which nothing at all is sent; where something is, the sender's side has spoken. */
static void check_recvs(exchange *x, uint32_t e)
{
    const side *s = &x->recvs[e];
    for (uint32_t i = 0; i < s->channel_count && x->steps < STEPS_MOST; i++) {
        const channel *r = &s->channels[i];
        const side *sends = &x->sends[r->peer_class];
        if (r->is_reported || is_matched(x, r, e, sends))
            continue;
        const uint32_t dst = find_unmatched(x, r, e, sends);
        if (dst == ORR_NO_NODE || channel_at(sends, dst, r->tag))
            continue;
        const pair p = pair_of(x, r->peer, dst);
        report_recv(&p, r, 0);
    }
}

void orr__check_messages(orr__check *k)
{
    exchange x = {.k = k};
    if (k->report->rank_count < 2 || k->no_memory)
        return;
    if (!build_exchange(&x)) {
        k->no_memory = true;
        return;
    }
    bool has_unknown_src = false;
    for (uint32_t i = 0; i < k->class_count; i++) {
        check_sends(&x, i);
        has_unknown_src |= x.recvs[i].has_unknown_peer;
    }
    for (uint32_t i = 0; i < k->class_count; i++)
        check_recvs(&x, i);
    if (x.has_unknown_dst || has_unknown_src)
        orr__check_add_note(
            k, "sends or receives without a peer could be the other end of any message: missing "
               "ends are not reported where they might be it");
    if (x.steps >= STEPS_MOST)
        orr__check_add_note(
            k, "so many messages do not match that the rest of them was not looked at");
}
