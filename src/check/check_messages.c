/* SPDX-License-Identifier: Apache-2.0 */
/* check_messages.c - is every message that is sent also received, with the same tag and size?
 *
 * A channel is what one rank sends to one other with one tag.  Both ends of a channel must hold the same
 * number of messages and the same sizes; in which order is not asked, because sends without a dependency
 * between them have none.
 *
 * Ranks that are equal make the same sends: a channel of shape c to rank d stands for one from each rank of
 * c, and d must have a receive from each of them.  d's shape lists those in one *block* (tag, shape of the
 * peer):
 *
 *     shape of d   receives, by tag and shape of source   | 7: c | c | c | 9: c | ... |
 *                                                            from r0, r1, r2
 *
 * If the block holds as many channels as c has ranks, all of them with the send's fingerprint, all is well,
 * and nobody has counted ranks.  Only where this fails are single ranks looked at.  Ranks with a peer of their
 * own are looked at one by one, but only for the line that leads back: which two lines meet is the same for
 * nearly all of them, so two lines are compared once, tag by tag, and what does not match is one finding of all
 * the ranks between which they run.
 * Cost: O(m log m) for m messages of distinct shapes, one look at each peer of a rank's own, plus the lines that
 * differ. */
#include "check_channels.h"

#include "base/memory/hash.h"

#include <inttypes.h>

/* Comparing pairs is for the words of findings; a set that is wrong everywhere need not wait for all. */
enum { STEPS_MOST = 20000000 };

typedef struct matching {
    chk_exchange x;
    chk_run *k;
    struct pair *pairs; /* of ranks that are not all equal; those with the same two lines once */
    size_t pair_count, pair_room;
    orr_map *pair_of;  /* two lines -> pair */
    orr_map *reported; /* receives of which something was said: see report_key */
    uint64_t steps;
} matching;

/* ---- how two lines fit ---- */

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
        const chk_channel *r = chk_channel_find(b, recvs, s->tag);
        if (!r || !channels_agree(s, r))
            fit &= ~(uint32_t)SENDS_FIT;
    }
    for (uint32_t i = 0; i < recvs->count; i++)
        if (!chk_channel_find(a, sends, b->channels[recvs->first + i].tag))
            fit &= ~(uint32_t)RECVS_FIT;
    return fit;
}

/* Two ranks that may talk to each other; the lines are NULL where there is none. */
typedef struct pair {
    matching *m;
    uint32_t src, dst;
    const chk_side *sends, *recvs;
    const chk_line *send_line, *recv_line;
    uint32_t count; /* of pairs with the same lines, this one included */
    uint32_t fit;
    uint32_t lost; /* channels of recv_line up to here have not lost their tag */
} pair;

static pair pair_at(matching *m, uint32_t rank, int direction, const chk_line *line)
{
    const uint32_t peer = chk_line_peer(&m->x, line, rank);
    const chk_line *back = chk_line_find(&m->x, !direction, peer, rank);
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

/* Where there is no line, what matters is who has none.  There are never so many lines that the two meet. */
static uint64_t pair_key(const pair *p)
{
    const uint32_t *of_rank = p->m->x.shapes.of_rank;
    const uint32_t send = p->send_line ? p->send_line->id : UINT32_MAX - of_rank[p->src];
    const uint32_t recv = p->recv_line ? p->recv_line->id : UINT32_MAX - of_rank[p->dst];
    return (uint64_t)send << 32 | recv;
}

/* One more rank of a class with holes: its pair is new, or like one that is known. */
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

/* As if its class had the ranks of the pair only. */
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

/* Both ends are sorted by size; the first place where they differ tells. */
static void report_size(const pair *p, const chk_channel *s, const chk_channel *r)
{
    chk_run *k = p->m->k;
    const chk_class from = class_of(p, p->src), to = class_of(p, p->dst);
    const chk_message *a = &p->sends->messages[s->first], *b = &p->recvs->messages[r->first];
    const chk_message *end = a + s->count;
    while (a + 1 < end && a->size == b->size)
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

/* Equal ranks share what was said about their receives; else it is said about the line of one sender. */
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
        if (!is_reported(p, r) && !chk_channel_find(p->sends, p->send_line, r->tag))
            return r;
    }
    return NULL;
}

static void compare_ends(pair *p, const chk_channel *s)
{
    const chk_channel *r = p->recv_line ? chk_channel_find(p->recvs, p->recv_line, s->tag) : NULL;
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

/* ---- all of it ---- */

/* Does every rank of the shape find its end of the line's channels at the peer that the body names? */
static bool is_matched(const matching *m, uint32_t shape, int direction, const chk_line *line)
{
    const chk_exchange *x = &m->x;
    const chk_side *mine = &x->sides[direction][shape];
    const chk_side *other = chk_side_of(x, !direction, line->peer);
    for (uint32_t i = 0; i < line->count; i++) {
        const chk_channel *c = &mine->channels[line->first + i];
        const chk_block *b = chk_block_find(other, c->tag, shape);
        if (!b || b->channels != x->shapes.all[shape].rank_count || b->is_mixed ||
            !agrees(c->count, c->fingerprint, b->count, b->fingerprint))
            return false;
    }
    return true;
}

/* What is sent through a line, tag by tag. */
static void report_sends(pair *p)
{
    for (uint32_t i = 0; !(p->fit & SENDS_FIT) && i < p->send_line->count; i++)
        compare_ends(p, &p->sends->channels[p->send_line->first + i]);
}

/* Receives for which nothing at all is sent; where something is, the sender's side has spoken. */
static void report_recvs(pair *p)
{
    for (uint32_t i = 0; !(p->fit & RECVS_FIT) && i < p->recv_line->count; i++) {
        const chk_channel *r = &p->recvs->channels[p->recv_line->first + i];
        const bool is_sent =
            p->send_line && chk_channel_find(p->sends, p->send_line, r->tag) != NULL;
        p->m->steps++;
        if (is_sent || is_reported(p, r))
            continue;
        set_reported(p, r);
        report_recv(p, r, 0);
    }
}

/* One direction of all that is sent or received. */
typedef struct pass {
    int direction;
    void (*report)(pair *p);
    uint32_t fit; /* what of a pair is asked for */
} pass;

/* Of equal ranks one is enough to tell what is wrong with what they send. */
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
            k, "sends or receives without a peer could be the other end of any message: missing "
               "ends are not reported where they might be it");
    if (m->steps >= STEPS_MOST)
        chk_add_note(k, "so many messages do not match that the rest of them was not looked at");
}

void chk_messages(chk_run *k)
{
    matching m = {.k = k, .x.k = k};
    if (k->report->rank_count < 2 || k->no_memory)
        return;
    chk_exchange_gather(&m.x);
    m.reported = orr_map_create(0);
    k->no_memory |= !m.reported;
    if (!k->no_memory)
        check_all(&m);
    chk_exchange_fini(&m.x);
    orr_map_destroy(m.reported);
    orr_free(m.pairs);
}
