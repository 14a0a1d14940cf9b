/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - message matching: by tag, source, destination and size.
 *
 * The k-th send with a key matches the k-th receive (astra-sim.md 4.3), so per key there is a queue
 * of unmatched sends or of unmatched receives, never both.  The oldest of a key is in a hash table,
 * the others are chained to it.  Ranks that do the same in turn are adjacent in the table, because
 * the distance to the peer is hashed and the source only added.  A message in flight is identified
 * by its index alone. */
#include "match.h"

#include "fold/fold.h"
#include "parts.h"
#include "watch.h"

#include "models/network/fluid/fluid.h"
#include "models/network/net_time.h"

#include "base/inline.h"
#include "base/memory/hash.h"

/* Other tags are below three times MSG_TAG_SPACE, so rendezvous replies have their own range. */
enum { RENDEZVOUS_SIZE = 8192, RENDEZVOUS_TAG = 3 * MSG_TAG_SPACE };

typedef struct key {
    uint32_t tag, src, dst;
    uint64_t size;
} key;

/* A message, a posted receive, or both after matching. */
typedef struct pair {
    key k;
    bool is_sent, is_arrived, is_received; /* handed to the network; arrived; receive posted */
    bool is_told;                          /* the sender knows that it has arrived */
    uint32_t chain;                        /* the oldest of another key in the same hash bucket */
    uint32_t next;                         /* next of the same key, or free */
    uint32_t last;                         /* of the oldest: the end of that queue */
    uint32_t across;                       /* of a message between parts: its state */
    clk_call on_sent, on_received;         /* continuations */
} pair;

/* A send or receive that waits for its rendezvous. */
typedef struct meeting {
    run_npu *npu;  /* the waiting rank */
    clk_call call; /* continuation after the message itself */
    uint64_t size;
    uint32_t tag, peer; /* of the message itself */
    uint32_t next;
} meeting;

/* A message from another part: when it was sent; or when and as what its receive was posted. */
typedef struct across {
    uint64_t at;
    clk_trail trail;
    uint32_t next; /* free */
} across;

struct msg_table {
    orr_sim *sim;
    across *across; /* of messages between parts */
    size_t across_count, across_room;
    uint32_t free_across;
    msg_moving *moving; /* on links */
    size_t moving_count, moving_room;
    uint32_t free_moving;
    pair *pairs;
    size_t pair_count, pair_room;
    uint32_t free_pair;
    uint32_t *heads;   /* by hash: the oldest of a key */
    size_t mask, keys; /* mask: buckets minus one; keys in use */
    meeting *meetings; /* of a run with rendezvous */
    size_t meeting_count, meeting_room;
    uint32_t free_meeting;
};

struct msg_table *msg_create(orr_sim *s)
{
    struct msg_table *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->sim = s;
    m->free_pair = m->free_meeting = m->free_across = m->free_moving = RUN_NONE;
    m->mask = 1023;
    m->heads = orr_alloc(m->mask + 1, sizeof *m->heads);
    if (!m->heads) {
        orr_free(m);
        return NULL;
    }
    memset(m->heads, 0xff, (m->mask + 1) * sizeof *m->heads);
    return m;
}

void msg_destroy(struct msg_table *m)
{
    if (!m)
        return;
    orr_free(m->pairs);
    orr_free(m->heads);
    orr_free(m->meetings);
    orr_free(m->across);
    orr_free(m->moving);
    orr_free(m);
}

/* ---- pairs by key ---- */

/* The distance to the peer is hashed, the source added: rank r + 1 doing what rank r did finds its
 * entry in the next bucket, which is in the cache. */
static size_t place_of(const struct msg_table *m, const key *k)
{
    const uint64_t base =
        orr_hash_mix(k->size ^ 0x9e3779b97f4a7c15u,
                     ((uint64_t)k->tag << 32 | (k->dst - k->src)) ^ 0xe7037ed1a0b428dbu);
    return (size_t)(base + (k->src ^ k->src >> 7 ^ k->src >> 14)) & m->mask;
}

static bool is_same(const key *a, const key *b)
{
    return a->tag == b->tag && a->src == b->src && a->dst == b->dst && a->size == b->size;
}

/* The table entry of the oldest pair of a key; NONE if there is none. */
static inline uint32_t *find_key(struct msg_table *m, const key *k)
{
    uint32_t *at = &m->heads[place_of(m, k)];
    while (*at != RUN_NONE && !is_same(&m->pairs[*at].k, k))
        at = &m->pairs[*at].chain;
    return at;
}

ORR_APART bool grow_heads(struct msg_table *m)
{
    const size_t mask = m->mask * 2 + 1, old_mask = m->mask;
    uint32_t *heads = orr_alloc(mask + 1, sizeof *heads), *old = m->heads;
    if (!heads)
        return false;
    memset(heads, 0xff, (mask + 1) * sizeof *heads);
    m->mask = mask;
    for (size_t i = 0; i <= old_mask; i++)
        for (uint32_t p = old[i], next; p != RUN_NONE; p = next) {
            const size_t to = place_of(m, &m->pairs[p].k);
            next = m->pairs[p].chain;
            /* The order within a chain means nothing: each entry has another key. */
            m->pairs[p].chain = heads[to];
            heads[to] = p;
        }
    orr_free(old);
    m->heads = heads;
    return true;
}

/* ---- pairs ---- */

/* Reserves one more pair, so that nothing moves while it is inserted. */
static inline bool make_room(struct msg_table *m)
{
    /* Load factor 1: chains have one entry on average. */
    if (m->keys > m->mask && !grow_heads(m))
        return false;
    return m->free_pair != RUN_NONE ||
           (m->pair_count < RUN_NONE && orr_grow(&m->pairs, &m->pair_room, m->pair_count + 1));
}

static inline uint32_t new_pair(struct msg_table *m, const key *k)
{
    /* make_room came before: there is room, and nothing moves. */
    const uint32_t p = m->free_pair != RUN_NONE ? m->free_pair : (uint32_t)m->pair_count++;
    if (p == m->free_pair)
        m->free_pair = m->pairs[p].next;
    m->pairs[p] = (pair){.k = *k, .chain = RUN_NONE, .next = RUN_NONE, .last = p};
    return p;
}

/* Freed pairs are reused in LIFO order: the last one is in the cache. */
static void drop_pair(struct msg_table *m, uint32_t p)
{
    m->pairs[p].next = m->free_pair;
    m->free_pair = p;
}

/* Removes the oldest pair of a key; the next one takes its place. */
static inline uint32_t take_oldest(struct msg_table *m, uint32_t *at)
{
    const uint32_t p = *at, next = m->pairs[p].next;
    if (next == RUN_NONE) {
        *at = m->pairs[p].chain;
        m->keys--;
    } else {
        /* The next one inherits the state kept by the oldest of a key: its position in the chain,
         * and the end of the queue. */
        m->pairs[next].chain = m->pairs[p].chain;
        m->pairs[next].last = m->pairs[p].last;
        *at = next;
    }
    return p;
}

/* The oldest waiting pair of the other side, dequeued; else a new one, enqueued. */
static inline uint32_t meet(struct msg_table *m, const key *k, bool is_send)
{
    if (!make_room(m))
        return RUN_NONE;
    uint32_t *at = find_key(m, k);
    const uint32_t oldest = *at;
    /* A queue holds one side only, so its oldest tells which: either it matches, or this one is
     * appended. */
    if (oldest != RUN_NONE && m->pairs[oldest].is_sent != is_send)
        return take_oldest(m, at);
    const uint32_t p = new_pair(m, k);
    if (oldest == RUN_NONE) {
        *at = p;
        m->keys++;
    } else {
        m->pairs[m->pairs[oldest].last].next = p;
        m->pairs[oldest].last = p;
    }
    return p;
}

/* ---- sending and receiving ---- */

/* Does this end a receive node?  Then observers may want to know when its data starts to flow. */
static bool ends_node(clk_call c)
{
    return c.action == work_node_done;
}

/* From now on data flows to a node that has waited for it. */
ORR_APART void data_flows(orr_sim *s, clk_call node)
{
    RUN_TELL(s, node_flows, node.context, (uint32_t)node.argument);
    work_message_moves(node.context, (uint32_t)node.argument);
}

/* A node begins to receive: data that is on its way, or has yet to be sent. */
ORR_APART void data_awaited(orr_sim *s, bool is_sent, clk_call node)
{
    if (is_sent)
        work_message_moves(node.context, (uint32_t)node.argument);
    else
        RUN_TELL(s, node_held, node.context, (uint32_t)node.argument);
}

/* In lock step a message is known by who stands for its two ends. */
static void stand_in(const orr_sim *s, key *k)
{
    const fold_lockstep *l = s->lockstep;
    /* Such a message is refused with its own ranks in the text (refuse_message). */
    if (k->src >= s->npu_count || k->dst >= s->npu_count)
        return;
    if (l->symmetry) {
        fold_move_home(s, &k->src, &k->dst);
        return;
    }
    k->src = l->stands_for[k->src];
    k->dst = l->stands_for[k->dst];
}

ORR_APART uint32_t meet_folded(orr_sim *s, key k, bool is_send)
{
    stand_in(s, &k);
    return meet(s->matcher, &k, is_send);
}

ORR_APART void refuse_message(orr_sim *s, key k)
{
    orr_error err;
    const char *why = k.size == 0      ? "a message of 0 bytes"
                      : k.src == k.dst ? "a message to itself"
                                       : "a message to a rank that does not exist";
    const orr_code bad =
        orr_fail(&err, ORR_EINPUT, NULL, "rank %u sends %s (rank %u, tag %u, %llu bytes)", k.src,
                 why, k.dst, msg_trace_tag(k.tag < RENDEZVOUS_TAG ? k.tag : k.tag - RENDEZVOUS_TAG),
                 (unsigned long long)k.size);
    run_fail(s, bad, &err);
}

/* ---- between parts (parts.h) ---- */

static uint32_t new_across(struct msg_table *m, uint64_t at, clk_trail trail)
{
    uint32_t i = m->free_across;
    if (i != RUN_NONE) {
        m->free_across = m->across[i].next;
    } else {
        if (m->across_count >= RUN_NONE ||
            !orr_grow(&m->across, &m->across_room, m->across_count + 1))
            return RUN_NONE;
        i = (uint32_t)m->across_count++;
    }
    m->across[i] = (across){at, trail, RUN_NONE};
    return i;
}

static across take_across(struct msg_table *m, uint32_t i)
{
    const across found = m->across[i];
    m->across[i].next = m->free_across;
    m->free_across = i;
    return found;
}

/* ---- on links, between parts (parts.c) ---- */

msg_moving msg_moving_of(const orr_sim *s, uint64_t token)
{
    return token & MSG_MOVING ? s->matcher->moving[token & ~MSG_MOVING]
                              : (msg_moving){.origin = token};
}

bool msg_add_moving(orr_sim *s, const msg_moving *value, uint64_t *token)
{
    struct msg_table *m = s->matcher;
    uint32_t i = m->free_moving;
    if (i != RUN_NONE) {
        m->free_moving = m->moving[i].next;
    } else {
        if (m->moving_count >= RUN_NONE ||
            !orr_grow(&m->moving, &m->moving_room, m->moving_count + 1))
            return false;
        i = (uint32_t)m->moving_count++;
    }
    m->moving[i] = *value;
    *token = MSG_MOVING | i;
    return true;
}

void msg_drop_moving(orr_sim *s, uint64_t token)
{
    struct msg_table *m = s->matcher;
    if (!(token & MSG_MOVING))
        return;
    m->moving[token & ~MSG_MOVING].next = m->free_moving;
    m->free_moving = (uint32_t)(token & ~MSG_MOVING);
}

void msg_tell_sender(void *sim, uint64_t token)
{
    const clk_call on_sent = msg_moving_of(sim, token).on_sent;
    /* First: the call may send the sender's next message. */
    msg_drop_moving(sim, token);
    clk_call_now(on_sent);
}

static void send_moving(orr_sim *s, const key *k, clk_call on_sent)
{
    orr_error err;
    uint64_t token;
    const msg_moving v = {.tag = k->tag,
                          .src = k->src,
                          .dst = k->dst,
                          .size = k->size,
                          .since = clk_now(s->clock),
                          .is_awaited = on_sent.action != NULL,
                          .is_origin = true,
                          .on_sent = on_sent};
    if (!msg_add_moving(s, &v, &token)) {
        run_no_memory(s);
        return;
    }
    /* Other parts name it by this token when it has arrived (msg_tell_sender). */
    s->matcher->moving[token & ~MSG_MOVING].origin = token;
    const orr_message message = {k->src, k->dst, k->size, token};
    const orr_code code = s->net_ops->send(s->net, s, &message, &err);
    if (code)
        run_fail(s, code, &err);
}

/* It comes from another part and is there now. */
ORR_APART void deliver_moving(orr_sim *s, uint64_t token)
{
    struct msg_table *m = s->matcher;
    const msg_moving v = msg_moving_of(s, token);
    const key k = {v.tag, v.src, v.dst, v.size};
    msg_drop_moving(s, token);
    const uint32_t p = meet(m, &k, true);
    if (p == RUN_NONE) {
        run_no_memory(s);
        return;
    }
    pair *q = &m->pairs[p];
    q->is_sent = q->is_told = true;
    if (!q->is_received) {
        q->is_arrived = true;
        /* No record of its sending, unlike in msg_take_across; 0 would name one, which
         * receive_arrived frees. */
        q->across = RUN_NONE;
        return;
    }
    const across posted = take_across(m, q->across);
    const clk_call waits = q->on_received;
    drop_pair(m, p);
    if (ends_node(waits))
        watch_flows_at(waits.context, (uint32_t)waits.argument,
                       v.since > posted.at ? v.since : posted.at);
    clk_call_now(waits);
}

ORR_APART void send_across(orr_sim *s, key k, clk_call on_sent)
{
    orr_error err;
    /* Counted by the sender's part: a message is one, whichever part its receiver is in. */
    s->messages++;
    RUN_TELL(s, message, s, k.src, k.dst, k.size);
    /* What is to be known of it elsewhere is noted first: the network calls back while it sends
     * (orr__net_deliver_after), and then knows the delay. */
    s->part->sending =
        (part_note){.what = PART_MESSAGE, .tag = k.tag, .src = k.src, .dst = k.dst, .size = k.size};
    s->part->on_sent = on_sent;
    if (s->part->servers) {
        send_moving(s, &k, on_sent);
        return;
    }
    /* One token for all of them: the network gives it back at once, with the delay, and keeps
     * none. */
    const orr_message message = {k.src, k.dst, k.size, MSG_ACROSS};
    const orr_code code = s->net_ops->send(s->net, s, &message, &err);
    if (code)
        run_fail(s, code, &err);
}

static void deliver(void *sim, uint64_t token);

/* The message may have arrived long ago, known here or not: if its receive was posted, the receiver
 * has waited at that point, and continues as if it had been known. */
void msg_take_across(orr_sim *s, const part_note *note)
{
    struct msg_table *m = s->matcher;
    const key k = {note->tag, note->src, note->dst, note->size};
    const uint32_t p = meet(m, &k, true);
    if (p == RUN_NONE) {
        run_no_memory(s);
        return;
    }
    pair *q = &m->pairs[p];
    /* Its sender learns of the arrival in its own part (part_send). */
    q->is_sent = q->is_told = true;
    if (q->is_received) {
        const across posted = take_across(m, q->across);
        const clk_call waits = q->on_received;
        /* The receive no longer limits this part's progress (docs/design/threads.md). */
        s->part->unknown--;
        if (ends_node(waits))
            watch_flows_at(waits.context, (uint32_t)waits.argument,
                           note->since > posted.at ? note->since : posted.at);
        /* The message had arrived before the receive was posted: one thread would have notified the
         * receiver through the queue of that tick, so insert it at that position. */
        if (clk_is_before_parent(s->clock, note->at, note->trail, posted.at, posted.trail)) {
            drop_pair(m, p);
            /* The arrival, which is an event of a run on one thread, does not run here. */
            clk_count(s->clock, 1);
            clk_put(s->clock, posted.at, posted.trail, waits);
            return;
        }
    } else {
        const uint32_t i = new_across(m, note->since, note->trail);
        if (i == RUN_NONE) {
            run_no_memory(s);
            return;
        }
        m->pairs[p].across = i;
        /* It arrived in this part's past, with no receive posted: mark it as arrived. */
        if (clk_is_past(s->clock, note->at, note->trail)) {
            m->pairs[p].is_arrived = true;
            clk_count(s->clock, 1);
            return;
        }
    }
    part_put(s, note->since, note->at, note->trail, (clk_call){deliver, s, p});
}

/* A receive that has not been sent, or not been heard of yet.  In either case it has been told
 * nothing. */
ORR_APART void post_across(orr_sim *s, uint32_t p, clk_call on_received)
{
    struct msg_table *m = s->matcher;
    pair *q = &m->pairs[p];
    q->is_received = true;
    q->on_received = on_received;
    const uint64_t now = clk_now(s->clock);
    if (ends_node(on_received))
        watch_held_across(on_received.context, (uint32_t)on_received.argument);
    /* Known, and still in flight: data flows from the later of sending and now. */
    if (q->is_sent) {
        const across sent = take_across(m, q->across);
        if (ends_node(on_received))
            watch_flows_at(on_received.context, (uint32_t)on_received.argument,
                           sent.at > now ? sent.at : now);
        return;
    }
    /* From now on this part goes no further than what may still arrive; on links it never does. */
    const bool is_on_links = s->part->servers != NULL;
    s->part->unknown += !is_on_links;
    const uint32_t i =
        new_across(m, now, is_on_links ? (clk_trail){0, 0, 0} : clk_reserve(s->clock));
    if (i == RUN_NONE)
        run_no_memory(s);
    else
        m->pairs[p].across = i;
}

/* A message of this rank.  Inline, as is receive_message, because a collective is little else; a
 * key that no other function points to stays in registers, so whatever is APART gets a copy. */
ORR_INLINE void send_message(run_npu *from, const key *k, clk_call on_sent)
{
    orr_sim *s = from->sim;
    struct msg_table *m = s->matcher;
    orr_error err;
    /* Refused here for all networks: no model has to define an empty message, or one to oneself. */
    if (k->src == k->dst || k->size == 0 || k->dst >= s->npu_count) {
        refuse_message(s, *k);
        return;
    }
    if (part_is_across(s, k->dst)) {
        send_across(s, *k, on_sent);
        return;
    }
    /* When matching by bytes, sends and receives do not form pairs: a pair only carries the message
     * until arrival. */
    const uint32_t p = s->byte_matcher ? (make_room(m) ? new_pair(m, k) : RUN_NONE)
                       : s->lockstep   ? meet_folded(s, *k, true)
                                       : meet(m, k, true);
    if (p == RUN_NONE) {
        run_no_memory(s);
        return;
    }
    pair *q = &m->pairs[p];
    q->is_sent = true;
    q->on_sent = on_sent;
    if (q->is_received && ends_node(q->on_received))
        data_flows(s, q->on_received);
    /* Of several steps in a row only one is counted, and ranks may be in different ones. In lock
     * step it stands for the messages of all ranks that its sender represents. */
    if (run_is_recorded(from)) {
        s->messages += s->lockstep ? s->lockstep->size[k->src] : 1;
        RUN_TELL(s, message, s, k->src, k->dst, k->size);
    }
    /* Links count what is sent in the recorded step. */
    if (s->joint)
        fluid_counts(fluid_network_flows(s->net), run_is_recorded(from));
    const orr_message message = {k->src, k->dst, k->size, p};
    const orr_code code = s->net_ops->send(s->net, s, &message, &err);
    if (code)
        run_fail(s, code, &err);
}

/* The same, for all messages but those of collectives. */
ORR_APART void send_apart(run_npu *from, key k, clk_call on_sent)
{
    send_message(from, &k, on_sent);
}

/* As the old front end: what has arrived already is received at once (packet-network.md, addendum
 * 1). */
ORR_APART void receive_bytes(orr_sim *s, key k, clk_call on_received)
{
    const run_bytes_key bytes = {k.tag, k.src, k.dst};
    bool is_there;
    if (!run_byte_matchings->receive(s->byte_matcher, &bytes, k.size, on_received, &is_there))
        run_no_memory(s);
    else if (is_there)
        clk_call_now(on_received);
}

void msg_receive_late(void *sim, uint64_t token)
{
    orr_sim *s = sim;
    const pair *p = &s->matcher->pairs[token];
    const clk_call then = p->on_received;
    fold_touch(s, p->k.dst, true);
    drop_pair(s->matcher, (uint32_t)token);
    clk_call_now(then);
}

/* It is there already: the receiver hears of it through the queue, not at once. */
ORR_APART void receive_arrived(orr_sim *s, key k, uint32_t p, clk_call on_received)
{
    struct msg_table *m = s->matcher;
    /* Where a rank stands for others, what it hears of must have a place in the order of all
     * (fold_touch): so it goes through an action that says which rank is touched. */
    if (s->lockstep && s->lockstep->symmetry) {
        m->pairs[p].on_received = on_received;
        clk_after(s->clock, 0, msg_receive_late, s, p);
        return;
    }
    if (part_is_across(s, k.src) && m->pairs[p].across != RUN_NONE)
        take_across(m, m->pairs[p].across);
    /* Packets tell the sender after the receiver: the pair must stay until both have been told. */
    if (m->pairs[p].is_told)
        drop_pair(m, p);
    else
        m->pairs[p].is_received = true; /* the sender has yet to be told */
    clk_after(s->clock, 0, on_received.action, on_received.context, on_received.argument);
}

ORR_INLINE void receive_message(run_npu *at, const key *k, clk_call on_received)
{
    orr_sim *s = at->sim;
    struct msg_table *m = s->matcher;
    if (s->byte_matcher) {
        receive_bytes(s, *k, on_received);
        return;
    }
    const uint32_t p = s->lockstep ? meet_folded(s, *k, false) : meet(m, k, false);
    if (p == RUN_NONE) {
        run_no_memory(s);
    } else if (m->pairs[p].is_arrived) {
        receive_arrived(s, *k, p, on_received);
    } else if (part_is_across(s, k->src)) {
        post_across(s, p, on_received);
    } else {
        pair *q = &m->pairs[p];
        q->is_received = true;
        q->on_received = on_received;
        if (ends_node(on_received))
            data_awaited(s, q->is_sent, on_received);
    }
}

ORR_APART void receive_apart(run_npu *at, key k, clk_call on_received)
{
    receive_message(at, &k, on_received);
}

void orr_net_deliver_receiver(orr_sim *s, uint64_t token)
{
    struct msg_table *m = s->matcher;
    pair *p = &m->pairs[token];
    const clk_call on_received = p->on_received;
    p->is_arrived = true;
    if (!p->is_received)
        return;
    /* The second of the two notifications frees the pair, and before its callback: that may need
     * the entry. */
    if (p->is_told)
        drop_pair(m, (uint32_t)token);
    else
        p->on_received = (clk_call){0};
    clk_call_now(on_received);
}

void orr_net_complete_sender(orr_sim *s, uint64_t token)
{
    struct msg_table *m = s->matcher;
    pair *p = &m->pairs[token];
    const clk_call on_sent = p->on_sent;
    p->is_told = true;
    if (p->is_arrived && p->is_received)
        drop_pair(m, (uint32_t)token);
    clk_call_now(on_sent);
}

/* The sender is notified first, then whoever waits for these bytes. */
ORR_APART void deliver_bytes(orr_sim *s, uint32_t token)
{
    /* A copy, dropped before anybody is notified: callbacks send messages, and pairs may be
     * reallocated. */
    const pair p = s->matcher->pairs[token];
    const run_bytes_key bytes = {p.k.tag, p.k.src, p.k.dst};
    clk_call then;
    drop_pair(s->matcher, token);
    clk_call_now(p.on_sent);
    if (run_byte_matchings->arrive(s->byte_matcher, &bytes, p.k.size, &then))
        clk_call_now(then);
    else
        run_no_memory(s);
}

/* A message has arrived: returns the continuations of its sender, and of its receiver if that
 * waits. */
static inline void arrive(struct msg_table *m,
                          uint32_t token,
                          clk_call *on_sent,
                          clk_call *on_received)
{
    pair *p = &m->pairs[token];
    *on_sent = p->on_sent;
    *on_received = p->on_received;
    /* With both sides it has left the table (meet); without a receive it stays in its queue, marked
     * as arrived. */
    if (p->is_received) {
        drop_pair(m, token);
        return;
    }
    *on_received = (clk_call){0};
    p->is_arrived = p->is_told =
        true; /* before the sender is notified: it may post the receive itself */
}

ORR_APART void deliver_folded(orr_sim *s, uint32_t token)
{
    const key *k = &s->matcher->pairs[token].k;
    const uint32_t dst = k->dst, src = k->src, origin = clk_origin(s->clock);
    clk_call on_sent, on_received;
    arrive(s->matcher, token, &on_sent, &on_received);
    fold_touch(s, dst, false);
    /* The sender sees the event from its own side; then the receiver's view is restored. */
    if (on_sent.action) {
        fold_see_from_source(s, dst);
        fold_touch(s, src, false);
    }
    clk_call_now(on_sent);
    clk_set_origin(s->clock, origin);
    clk_call_now(on_received);
}

void orr_net_deliver(orr_sim *s, uint64_t token)
{
    clk_call on_sent, on_received;
    if (token & MSG_MOVING) {
        deliver_moving(s, token);
    } else if (s->byte_matcher) {
        deliver_bytes(s, (uint32_t)token);
    } else if (s->lockstep && s->lockstep->symmetry) {
        deliver_folded(s, (uint32_t)token);
    } else {
        arrive(s->matcher, (uint32_t)token, &on_sent, &on_received);
        clk_call_now(on_sent);
        clk_call_now(on_received);
    }
}

static void deliver(void *sim, uint64_t token)
{
    orr_net_deliver(sim, token);
}

void orr__net_deliver_after(orr_sim *s, uint64_t delay, uint64_t token)
{
    if (token == MSG_ACROSS)
        part_send(s, delay);
    else
        clk_after(s->clock, delay, deliver, s, token);
}

/* ---- rendezvous (astra-sim.md 5.6) ---- */

static uint32_t new_meeting(struct msg_table *m, const meeting *value)
{
    uint32_t i = m->free_meeting;
    if (i != RUN_NONE) {
        m->free_meeting = m->meetings[i].next;
    } else {
        if (m->meeting_count >= RUN_NONE ||
            !orr_grow(&m->meetings, &m->meeting_room, m->meeting_count + 1))
            return RUN_NONE;
        i = (uint32_t)m->meeting_count++;
    }
    m->meetings[i] = *value;
    return i;
}

static meeting take_meeting(struct msg_table *m, uint64_t i)
{
    const meeting found = m->meetings[i];
    m->meetings[i].next = m->free_meeting;
    m->free_meeting = (uint32_t)i;
    return found;
}

static void start_send(void *sim, uint64_t i)
{
    orr_sim *s = sim;
    /* A copy: the message may start another rendezvous, and move them. */
    const meeting w = take_meeting(s->matcher, i);
    const key k = {w.tag, w.npu->rank, w.peer, w.size};
    send_apart(w.npu, k, w.call);
}

static void start_receive(void *sim, uint64_t i)
{
    orr_sim *s = sim;
    const meeting w = take_meeting(s->matcher, i);
    const key k = {w.tag, w.peer, w.npu->rank, w.size};
    receive_apart(w.npu, k, w.call);
}

/* Pieces of a small collective may round down to 0 bytes.  The reference aborts there (astra-sim.md
 * 8); we send a byte. */
static uint64_t at_least_a_byte(const orr_sim *s, uint64_t size)
{
    return size == 0 && !s->rules->sends_nothing ? 1 : size;
}

/* The sender waits for a small message from its receiver, which the receive sends when it is
 * posted; only then does the data leave (astra-sim.md 5.6). */
ORR_APART void send_when_met(run_npu *from, key k, clk_call on_arrival)
{
    orr_sim *s = from->sim;
    const meeting w = {from, on_arrival, k.size, k.tag, k.dst, RUN_NONE};
    const uint32_t i = new_meeting(s->matcher, &w);
    const key answer = {k.tag + RENDEZVOUS_TAG, k.dst, k.src, RENDEZVOUS_SIZE};
    if (i == RUN_NONE)
        run_no_memory(s);
    else
        receive_apart(from, answer, (clk_call){start_send, s, i});
}

ORR_APART void receive_when_met(run_npu *at, key k, clk_call on_arrival)
{
    orr_sim *s = at->sim;
    const meeting w = {at, on_arrival, k.size, k.tag, k.src, RUN_NONE};
    const uint32_t i = new_meeting(s->matcher, &w);
    const key ready = {k.tag + RENDEZVOUS_TAG, k.dst, k.src, RENDEZVOUS_SIZE};
    if (i == RUN_NONE)
        run_no_memory(s);
    else
        send_apart(at, ready, (clk_call){start_receive, s, i});
}

void msg_send(run_npu *from, uint32_t tag, uint32_t dst, uint64_t size, clk_call on_arrival)
{
    RUN_TELL(from->sim, send, from, NULL, tag, dst, size, on_arrival);
    const key k = {tag, from->rank, dst, at_least_a_byte(from->sim, size)};
    if (from->sim->opt.rendezvous)
        send_when_met(from, k, on_arrival);
    else
        send_apart(from, k, on_arrival);
}

void msg_stream_send(sys_stream *st, uint32_t dst, uint64_t size)
{
    run_npu *from = st->npu;
    const clk_call nobody = {0};
    RUN_TELL(from->sim, send, from, st, st->tag, dst, size, nobody);
    const key k = {st->tag, from->rank, dst, at_least_a_byte(from->sim, size)};
    if (from->sim->opt.rendezvous)
        send_when_met(from, k, nobody);
    else
        send_message(from, &k, nobody);
}

/* The observer comes first: it may insert itself between the message and its waiter
 * (goal_tape.c). */
void msg_recv(run_npu *at, uint32_t tag, uint32_t src, uint64_t size, clk_call on_arrival)
{
    orr_sim *s = at->sim;
    if (s->hooks.receive)
        on_arrival = s->hooks.receive(at, tag, src, size, on_arrival);
    const key k = {tag, src, at->rank, at_least_a_byte(s, size)};
    if (s->opt.rendezvous)
        receive_when_met(at, k, on_arrival);
    else
        receive_message(at, &k, on_arrival);
}

/* ---- reducing the symmetry (fold_unfold.c) ---- */

uint32_t msg_receiver(const struct msg_table *m, uint64_t token)
{
    return m->pairs[token].k.dst;
}

/* Copies all pairs of a queue, in order, to other keys. */
static bool copy_queue(struct msg_table *m, uint32_t first, uint32_t copies, const uint32_t *tokens)
{
    /* Copy 0 stays where it is, in its queue; each other copy has its own key, and so its own
     * queue. */
    for (uint32_t k = 1; k < copies; k++) {
        if (m->keys > m->mask && !grow_heads(m))
            return false;
        uint32_t *at = find_key(m, &m->pairs[tokens[(size_t)first * copies + k]].k);
        uint32_t last = RUN_NONE;
        const uint32_t head = tokens[(size_t)first * copies + k];
        *at = head;
        m->pairs[head].chain = RUN_NONE;
        m->keys++;
        for (uint32_t p = first; p != RUN_NONE; p = m->pairs[p].next) {
            const uint32_t q = tokens[(size_t)p * copies + k];
            m->pairs[q].next = RUN_NONE;
            if (last != RUN_NONE)
                m->pairs[last].next = q;
            last = q;
        }
        m->pairs[head].last = last;
    }
    return true;
}

static bool copy_pair(struct msg_table *m, const fold_copier *c, uint32_t p, uint32_t *tokens)
{
    for (uint32_t k = 0; k < c->copies; k++) {
        if (!make_room(m))
            return false;
        /* A copy: new_pair may reallocate the pairs. */
        const pair old = m->pairs[p];
        const key moved = {old.k.tag, fold_moved(c, k, old.k.src), fold_moved(c, k, old.k.dst),
                           old.k.size};
        const uint32_t q = k ? new_pair(m, &moved) : p;
        m->pairs[q] = old;
        m->pairs[q].k = moved;
        /* Networks refer to messages by token: record the token of each copy (fold_unfold.c). */
        tokens[(size_t)p * c->copies + k] = q;
    }
    for (uint32_t k = 0; k < c->copies; k++) {
        pair *q = &m->pairs[tokens[(size_t)p * c->copies + k]];
        q->on_sent = fold_copy_call(c, q->on_sent, q->k.src);
        q->on_received = fold_copy_call(c, q->on_received, q->k.dst);
    }
    return true;
}

bool msg_multiply(struct msg_table *m, const fold_copier *c, uint32_t **tokens)
{
    const size_t known = m->pair_count;
    bool *is_free = orr_alloc(known + 1, sizeof *is_free);
    uint32_t *queues = orr_alloc(m->keys + 1, sizeof *queues), count = 0;
    *tokens = orr_alloc(known * c->copies + 1, sizeof **tokens);
    bool ok = is_free && queues && *tokens;
    for (uint32_t p = m->free_pair; ok && p != RUN_NONE; p = m->pairs[p].next)
        is_free[p] = true;
    /* The existing queues only: copies inserted below must not be visited. */
    for (size_t i = 0; ok && i <= m->mask; i++)
        for (uint32_t p = m->heads[i]; p != RUN_NONE; p = m->pairs[p].chain)
            queues[count++] = p;
    for (uint32_t p = 0; ok && p < known; p++)
        ok = is_free[p] || copy_pair(m, c, p, *tokens);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = copy_queue(m, queues[i], c->copies, *tokens);
    orr_free(is_free);
    orr_free(queues);
    return ok;
}

/* ---- unmatched messages, for the stall explanation ---- */

static const meeting *meeting_of(const struct msg_table *m, clk_call c)
{
    return c.action == start_send || c.action == start_receive ? &m->meetings[c.argument] : NULL;
}

/* A rendezvous goes from the receiver to the sender.  False: it has completed. */
static bool describe_rendezvous(const struct msg_table *m, const pair *p, msg_unmatched *out)
{
    const meeting *sender = meeting_of(m, p->on_received), *receiver = meeting_of(m, p->on_sent);
    const meeting *known = p->is_sent ? receiver : sender;
    if (p->is_arrived || !known)
        return false;
    *out = (msg_unmatched){.kind = p->is_sent ? MSG_UNDELIVERED : MSG_UNREADY,
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

static bool describe(const struct msg_table *m, const pair *p, msg_unmatched *out)
{
    if (p->k.tag >= RENDEZVOUS_TAG)
        return describe_rendezvous(m, p, out);
    *out = (msg_unmatched){.kind = !p->is_sent     ? MSG_UNSENT
                                   : p->is_arrived ? MSG_UNRECEIVED
                                                   : MSG_UNDELIVERED,
                           .tag = p->k.tag,
                           .src = p->k.src,
                           .dst = p->k.dst,
                           .size = p->k.size,
                           .receiver = p->on_received};
    if (out->kind == MSG_UNDELIVERED)
        out->sender = p->on_sent;
    return true;
}

bool msg_list(const struct msg_table *m, orr_arena *a, msg_unmatched **out, uint32_t *count)
{
    const void *bytes = m->sim->byte_matcher;
    const size_t more = bytes ? run_byte_matchings->count(bytes) : 0;
    /* Pairs in flight are in no list, so all are scanned, after marking the free ones. */
    bool *is_free = orr_arena_new(a, m->pair_count + 1, bool);
    *out = orr_arena_new(a, m->pair_count + more + 1, msg_unmatched);
    *count = 0;
    if (!is_free || !*out)
        return false;
    for (size_t i = 0; i < more; i++)
        if (run_byte_matchings->describe(bytes, i, &(*out)[*count]))
            (*out)[(*count)++].number = (uint32_t)i;
    for (uint32_t p = m->free_pair; p != RUN_NONE; p = m->pairs[p].next)
        is_free[p] = true;
    for (uint32_t p = 0; p < m->pair_count; p++)
        if (!is_free[p] && describe(m, &m->pairs[p], &(*out)[*count]))
            (*out)[(*count)++].number = p;
    return true;
}

bool msg_waiting(const struct msg_table *m, orr_arena *a, msg_unmatched **out, uint32_t *count)
{
    *out = orr_arena_new(a, m->pair_count + 1, msg_unmatched);
    *count = 0;
    for (size_t i = 0; *out && i <= m->mask; i++)
        for (uint32_t first = m->heads[i]; first != RUN_NONE; first = m->pairs[first].chain) {
            uint32_t number = 0;
            for (uint32_t p = first; p != RUN_NONE; p = m->pairs[p].next)
                if (describe(m, &m->pairs[p], &(*out)[*count]))
                    (*out)[(*count)++].number = number++;
        }
    return *out != NULL;
}
