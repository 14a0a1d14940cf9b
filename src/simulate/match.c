/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - messages: a send meets a receive with the same tag, source, destination and size.
 *
 * The k-th send of such a key meets the k-th receive (astra-sim.md 4.3), so per key there is a queue of sends
 * that nobody has received or of receives that nobody has sent, never both.  A key lives only while something
 * waits under it.  An entry is found through its hash; a message on its way is known by its number alone. */
#include "sim_impl.h"

#include "../base/hash.h"

enum { RENDEZVOUS_SIZE = 8192, RENDEZVOUS_TAG = 1000000000 };

typedef struct key {
    uint32_t tag, src, dst;
    uint64_t size;
} key;

/* A message, a posted receive, or both once they have met. */
typedef struct pair {
    orr__call on_sent, on_received;
    key k;
    uint32_t next; /* waiting under the same key, or free */
    bool is_sent, is_arrived, is_received;
} pair;

typedef struct entry {
    key k;
    uint32_t first, last; /* pairs that wait */
    uint32_t next;        /* in the hash chain, or free */
} entry;

/* A send or receive that waits for its rendezvous. */
typedef struct meeting {
    orr__npu *npu;
    orr__call call;
    uint64_t size;
    uint32_t tag, peer;
    uint32_t next;
} meeting;

struct orr__matcher {
    orr_sim *sim;
    pair *pairs;
    size_t pair_count, pair_room;
    uint32_t free_pair;
    entry *entries;
    size_t entry_count, entry_room;
    uint32_t free_entry;
    uint32_t *heads;
    size_t mask, used;
    meeting *meetings;
    size_t meeting_count, meeting_room;
    uint32_t free_meeting;
};

struct orr__matcher *orr__matcher_create(orr_sim *s)
{
    struct orr__matcher *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->sim = s;
    m->free_pair = m->free_entry = m->free_meeting = ORR__NONE;
    m->mask = 1023;
    m->heads = orr_alloc(m->mask + 1, sizeof *m->heads);
    if (!m->heads) {
        orr_free(m);
        return NULL;
    }
    memset(m->heads, 0xff, (m->mask + 1) * sizeof *m->heads);
    return m;
}

void orr__matcher_destroy(struct orr__matcher *m)
{
    if (!m)
        return;
    orr_free(m->pairs);
    orr_free(m->entries);
    orr_free(m->heads);
    orr_free(m->meetings);
    orr_free(m);
}

/* ---- entries by key ---- */

static size_t place_of(const struct orr__matcher *m, const key *k)
{
    const uint64_t a = (uint64_t)k->src << 32 | k->dst, b = (uint64_t)k->tag << 32 ^ k->size;
    return (size_t)orr_hash_mix(a ^ 0xa0761d6478bd642fu, b ^ 0xe7037ed1a0b428dbu) & m->mask;
}

static bool is_same(const key *a, const key *b)
{
    return a->src == b->src && a->dst == b->dst && a->tag == b->tag && a->size == b->size;
}

static uint32_t find_entry(const struct orr__matcher *m, const key *k)
{
    uint32_t e = m->heads[place_of(m, k)];
    while (e != ORR__NONE && !is_same(&m->entries[e].k, k))
        e = m->entries[e].next;
    return e;
}

static bool grow_heads(struct orr__matcher *m)
{
    const size_t mask = m->mask * 2 + 1, old_mask = m->mask;
    uint32_t *heads = orr_alloc(mask + 1, sizeof *heads), *old = m->heads;
    if (!heads)
        return false;
    memset(heads, 0xff, (mask + 1) * sizeof *heads);
    m->mask = mask;
    for (size_t i = 0; i <= old_mask; i++)
        for (uint32_t e = old[i], next; e != ORR__NONE; e = next) {
            const size_t to = place_of(m, &m->entries[e].k);
            next = m->entries[e].next;
            m->entries[e].next = heads[to];
            heads[to] = e;
        }
    orr_free(old);
    m->heads = heads;
    return true;
}

static uint32_t new_entry(struct orr__matcher *m, const key *k)
{
    uint32_t e = m->free_entry;
    if (m->used > m->mask && !grow_heads(m))
        return ORR__NONE;
    if (e != ORR__NONE) {
        m->free_entry = m->entries[e].next;
    } else {
        if (m->entry_count >= ORR__NONE ||
            !orr_grow(&m->entries, &m->entry_room, m->entry_count + 1))
            return ORR__NONE;
        e = (uint32_t)m->entry_count++;
    }
    uint32_t *head = &m->heads[place_of(m, k)];
    m->entries[e] = (entry){*k, ORR__NONE, ORR__NONE, *head};
    *head = e;
    m->used++;
    return e;
}

static void drop_entry(struct orr__matcher *m, uint32_t e)
{
    uint32_t *at = &m->heads[place_of(m, &m->entries[e].k)];
    while (*at != e)
        at = &m->entries[*at].next;
    *at = m->entries[e].next;
    m->entries[e].next = m->free_entry;
    m->free_entry = e;
    m->used--;
}

/* ---- pairs ---- */

static uint32_t new_pair(struct orr__matcher *m, const key *k)
{
    uint32_t p = m->free_pair;
    if (p != ORR__NONE) {
        m->free_pair = m->pairs[p].next;
    } else {
        if (m->pair_count >= ORR__NONE || !orr_grow(&m->pairs, &m->pair_room, m->pair_count + 1))
            return ORR__NONE;
        p = (uint32_t)m->pair_count++;
    }
    m->pairs[p] = (pair){.k = *k, .next = ORR__NONE};
    return p;
}

static void drop_pair(struct orr__matcher *m, uint32_t p)
{
    m->pairs[p].next = m->free_pair;
    m->free_pair = p;
}

/* The oldest waiting pair of the other side, taken off its queue; else a new one, put on it. */
static uint32_t meet(struct orr__matcher *m, const key *k, bool is_send, bool *has_met)
{
    uint32_t e = find_entry(m, k), p;
    *has_met = e != ORR__NONE && m->pairs[m->entries[e].first].is_sent != is_send;
    if (*has_met) {
        p = m->entries[e].first;
        m->entries[e].first = m->pairs[p].next;
        if (m->entries[e].first == ORR__NONE)
            drop_entry(m, e);
        return p;
    }
    p = new_pair(m, k);
    if (e == ORR__NONE && p != ORR__NONE)
        e = new_entry(m, k);
    if (p == ORR__NONE || e == ORR__NONE)
        return ORR__NONE;
    if (m->entries[e].first == ORR__NONE)
        m->entries[e].first = p;
    else
        m->pairs[m->entries[e].last].next = p;
    m->entries[e].last = p;
    return p;
}

/* ---- sending and receiving ---- */

static void send_message(orr_sim *s, const key *k, orr__call on_sent)
{
    struct orr__matcher *m = s->matcher;
    bool has_met;
    orr_error err;
    if (k->src == k->dst || k->size == 0 || k->dst >= s->npu_count) {
        const char *why = k->size == 0       ? "a message of 0 bytes"
                          : k->src == k->dst ? "a message to itself"
                                             : "a message to a rank that is not there";
        const orr_code bad =
            orr_fail(&err, ORR_EINPUT, NULL, "rank %u sends %s (rank %u, tag %u, %llu bytes)",
                     k->src, why, k->dst, k->tag, (unsigned long long)k->size);
        orr__sim_fail(s, bad, &err);
        return;
    }
    const uint32_t p = meet(m, k, true, &has_met);
    if (p == ORR__NONE) {
        orr__sim_no_memory(s);
        return;
    }
    m->pairs[p].is_sent = true;
    m->pairs[p].on_sent = on_sent;
    s->messages++;
    if (s->watch)
        orr__watch_message(s, k->src, k->dst, k->size);
    const orr_message message = {k->src, k->dst, k->size, p};
    const orr_code code = s->net_ops->send(s->net, s, &message, &err);
    if (code)
        orr__sim_fail(s, code, &err);
}

static void receive_message(orr_sim *s, const key *k, orr__call on_received)
{
    struct orr__matcher *m = s->matcher;
    bool has_met;
    const uint32_t p = meet(m, k, false, &has_met);
    if (p == ORR__NONE) {
        orr__sim_no_memory(s);
    } else if (m->pairs[p].is_arrived) { /* through the queue, not at once */
        drop_pair(m, p);
        orr__clock_at(s->clock, orr__clock_now(s->clock), on_received.action, on_received.context,
                      on_received.argument);
    } else {
        m->pairs[p].is_received = true;
        m->pairs[p].on_received = on_received;
    }
}

void orr_sim_deliver(orr_sim *s, uint64_t token)
{
    struct orr__matcher *m = s->matcher;
    pair *p = &m->pairs[token];
    const orr__call on_sent = p->on_sent, on_received = p->on_received;
    const bool is_received = p->is_received;
    if (is_received)
        drop_pair(m, (uint32_t)token);
    else
        p->is_arrived = true; /* before the sender hears of it: it may post the receive itself */
    orr__call_now(on_sent);
    if (is_received)
        orr__call_now(on_received);
}

static void deliver(void *sim, uint64_t token)
{
    orr_sim_deliver(sim, token);
}

void orr_sim_deliver_after(orr_sim *s, uint64_t delay, uint64_t token)
{
    orr__clock_at(s->clock, orr__clock_now(s->clock) + delay, deliver, s, token);
}

/* ---- rendezvous (5.6) ---- */

static uint32_t new_meeting(struct orr__matcher *m, const meeting *value)
{
    uint32_t i = m->free_meeting;
    if (i != ORR__NONE) {
        m->free_meeting = m->meetings[i].next;
    } else {
        if (m->meeting_count >= ORR__NONE ||
            !orr_grow(&m->meetings, &m->meeting_room, m->meeting_count + 1))
            return ORR__NONE;
        i = (uint32_t)m->meeting_count++;
    }
    m->meetings[i] = *value;
    return i;
}

static meeting take_meeting(struct orr__matcher *m, uint64_t i)
{
    const meeting found = m->meetings[i];
    m->meetings[i].next = m->free_meeting;
    m->free_meeting = (uint32_t)i;
    return found;
}

static void start_send(void *sim, uint64_t i)
{
    orr_sim *s = sim;
    const meeting w = take_meeting(s->matcher, i);
    const key k = {w.tag, w.npu->rank, w.peer, w.size};
    send_message(s, &k, w.call);
}

static void start_receive(void *sim, uint64_t i)
{
    orr_sim *s = sim;
    const meeting w = take_meeting(s->matcher, i);
    const key k = {w.tag, w.peer, w.npu->rank, w.size};
    receive_message(s, &k, w.call);
}

void orr__send(orr__npu *from, uint32_t tag, uint32_t dst, uint64_t size, orr__call on_arrival)
{
    orr_sim *s = from->sim;
    const key k = {tag, from->rank, dst, size};
    if (!s->opt.rendezvous) {
        send_message(s, &k, on_arrival);
        return;
    }
    const meeting w = {from, on_arrival, size, tag, dst, ORR__NONE};
    const uint32_t i = new_meeting(s->matcher, &w);
    const key answer = {tag + RENDEZVOUS_TAG, dst, from->rank, RENDEZVOUS_SIZE};
    if (i == ORR__NONE)
        orr__sim_no_memory(s);
    else
        receive_message(s, &answer, (orr__call){start_send, s, i});
}

void orr__recv(orr__npu *at, uint32_t tag, uint32_t src, uint64_t size, orr__call on_arrival)
{
    orr_sim *s = at->sim;
    const key k = {tag, src, at->rank, size};
    if (!s->opt.rendezvous) {
        receive_message(s, &k, on_arrival);
        return;
    }
    const meeting w = {at, on_arrival, size, tag, src, ORR__NONE};
    const uint32_t i = new_meeting(s->matcher, &w);
    const key ready = {tag + RENDEZVOUS_TAG, at->rank, src, RENDEZVOUS_SIZE};
    if (i == ORR__NONE)
        orr__sim_no_memory(s);
    else
        send_message(s, &ready, (orr__call){start_receive, s, i});
}

/* ---- what has not met, for those who ask why nothing moves ---- */

static const meeting *meeting_of(const struct orr__matcher *m, orr__call c)
{
    return c.action == start_send || c.action == start_receive ? &m->meetings[c.argument] : NULL;
}

/* A rendezvous goes from the receiver to the sender.  False: it has done its part. */
static bool describe_rendezvous(const struct orr__matcher *m, const pair *p, orr__unmatched *out)
{
    const meeting *sender = meeting_of(m, p->on_received), *receiver = meeting_of(m, p->on_sent);
    const meeting *known = p->is_sent ? receiver : sender;
    if (p->is_arrived || !known)
        return false;
    *out = (orr__unmatched){.kind = p->is_sent ? ORR__UNDELIVERED : ORR__UNREADY,
                            .tag = known->tag,
                            .src = p->k.dst,
                            .dst = p->k.src,
                            .size = known->size};
    if (sender)
        out->sender = sender->call;
    if (receiver)
        out->receiver = receiver->call;
    return true;
}

static bool describe(const struct orr__matcher *m, const pair *p, orr__unmatched *out)
{
    if (p->k.tag >= RENDEZVOUS_TAG)
        return describe_rendezvous(m, p, out);
    *out = (orr__unmatched){.kind = !p->is_sent      ? ORR__UNSENT
                                    : p->is_arrived ? ORR__UNRECEIVED
                                                    : ORR__UNDELIVERED,
                            .tag = p->k.tag,
                            .src = p->k.src,
                            .dst = p->k.dst,
                            .size = p->k.size,
                            .receiver = p->on_received};
    if (out->kind == ORR__UNDELIVERED)
        out->sender = p->on_sent;
    return true;
}

bool orr__match_list(const struct orr__matcher *m,
                     orr_arena *a,
                     orr__unmatched **out,
                     uint32_t *count)
{
    bool *is_free = orr_arena_new(a, m->pair_count, bool);
    *out = orr_arena_new(a, m->pair_count, orr__unmatched);
    *count = 0;
    if (!is_free || !*out)
        return m->pair_count == 0;
    for (uint32_t p = m->free_pair; p != ORR__NONE; p = m->pairs[p].next)
        is_free[p] = true;
    for (uint32_t p = 0; p < m->pair_count; p++)
        if (!is_free[p] && describe(m, &m->pairs[p], &(*out)[*count]))
            (*out)[(*count)++].number = p;
    return true;
}
