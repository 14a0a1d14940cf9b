/* SPDX-License-Identifier: Apache-2.0 */
/* stall_collect.c - everything that waits, as a list.
 *
 * A rank that has not finished has a wait for each receive (and each send, with a rendezvous), one for each
 * chunk of its collective, one for a node that nothing will end, or one that says that nothing is under way.
 * Messages are sorted, so that the list does not depend on the order in which they are stored.
 *
 * Cost: n log n in messages, linear in ranks, chunks and nodes. */
#include "stall_impl.h"

#include <stdlib.h>

static uint32_t add_wait(orr__stall *st, const orr__wait *w)
{
    if (st->wait_count >= ORR__NONE || !orr_grow(&st->waits, &st->wait_room, st->wait_count + 1)) {
        st->failed = true;
        return ORR__NONE;
    }
    const uint32_t i = (uint32_t)st->wait_count++;
    st->waits[i] = *w;
    st->waits[i].message = ORR__NONE;
    st->waits[i].peer = st->waits[i].other = st->waits[i].via = ORR__NONE;
    return i;
}

/* The first entry counts. */
static bool remember(orr__stall *st, orr_map *m, uint64_t key, uint32_t i)
{
    if (i == ORR__NONE ||
        (orr_map_find(m, key, ORR__NONE) == ORR__NONE && !orr_map_put(m, key, i, NULL)))
        st->failed = true;
    return !st->failed;
}

static bool remember_node(orr__stall *st, const orr__wait *w, uint32_t i)
{
    return remember(st, st->by_place, orr__pair_key(w->rank, w->place), i);
}

void orr__stall_blame(orr__wait *w, orr_stall_cause cause, uint32_t peer, uint32_t other)
{
    if (w->cause != ORR_STALL_NONE)
        return;
    w->cause = cause;
    w->peer = peer;
    w->other = other;
}

bool orr__stall_add_edge(orr__stall *st, const orr__edge *e)
{
    if (st->edge_count >= ORR__NONE || !orr_grow(&st->edges, &st->edge_room, st->edge_count + 1)) {
        st->failed = true;
        return false;
    }
    st->edges[st->edge_count++] = *e;
    return true;
}

/* ---- messages ---- */

static int compare_messages(const void *a, const void *b)
{
    const orr__unmatched *x = a, *y = b;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool read_messages(orr__stall *st)
{
    if (!orr__match_list(st->sim->matcher, st->arena, &st->messages, &st->message_count))
        return false;
    qsort(st->messages, st->message_count, sizeof *st->messages, compare_messages);
    st->next = orr_arena_new(st->arena, st->message_count, uint32_t);
    st->wait_of = orr_arena_new(st->arena, st->message_count, uint32_t);
    if (st->message_count == 0)
        return true;
    if (!st->next || !st->wait_of)
        return false;
    memset(st->next, 0xff, st->message_count * sizeof *st->next);
    memset(st->wait_of, 0xff, st->message_count * sizeof *st->wait_of);
    return true;
}

static const orr__stream *stream_of(orr__call c)
{
    return c.action == orr__phase_received ? c.context : orr__custom_owner(c);
}

static void attach_to_stream(orr__stall *st, uint32_t message, orr__call c)
{
    const orr__stream *stream = stream_of(c);
    const uint32_t i =
        stream ? orr_map_find(st->by_stream, (uint64_t)(uintptr_t)stream, ORR__NONE) : ORR__NONE;
    if (i == ORR__NONE)
        return;
    st->next[message] = st->waits[i].message;
    st->waits[i].message = message;
}

/* A node has one message, so it gets its wait here. */
static void attach_to_node(orr__stall *st, uint32_t message, orr__call c, bool is_sender)
{
    const orr__npu *n = c.action == orr__node_done ? c.context : NULL;
    if (!n || n->result.finished_at != ORR_NEVER)
        return;
    const orr__wait w = {.rank = n->rank,
                         .place = (uint32_t)c.argument,
                         .type = is_sender ? ORR__WAIT_RECEIVER : ORR__WAIT_MESSAGE};
    const uint32_t i = add_wait(st, &w);
    if (!remember_node(st, &w, i))
        return;
    const orr__unmatched *m = &st->messages[message];
    st->waits[i].message = message;
    st->wait_of[message] = i;
    if (m->kind == ORR__UNDELIVERED)
        orr__stall_blame(&st->waits[i], ORR_STALL_LOST_MESSAGE, is_sender ? m->dst : m->src,
                         ORR__NONE);
}

static void attach_messages(orr__stall *st)
{
    for (uint32_t i = st->message_count; i-- > 0;) { /* backwards: a list grows at its head */
        attach_to_stream(st, i, st->messages[i].receiver);
        attach_to_stream(st, i, st->messages[i].sender);
    }
    for (uint32_t i = 0; i < st->message_count && !st->failed; i++) {
        attach_to_node(st, i, st->messages[i].receiver, false);
        attach_to_node(st, i, st->messages[i].sender, true);
    }
}

/* ---- ranks ---- */

static void collect_streams(orr__stall *st, const orr__npu *n)
{
    const size_t queues = orr__queue_count(st->sim);
    for (size_t q = 0; q < queues; q++)
        for (const orr__stream *s = n->queues[q].first; s && !st->failed; s = s->next) {
            const orr__wait w = {
                .rank = n->rank, .place = s->set->place, .type = ORR__WAIT_STREAM, .stream = s};
            const uint32_t i = add_wait(st, &w);
            if (remember_node(st, &w, i) &&
                remember(st, st->by_tag, orr__pair_key(n->rank, s->tag), i))
                remember(st, st->by_stream, (uint64_t)(uintptr_t)s, i);
        }
}

/* Why a collective has no chunks, or none any more. */
static orr_stall_cause why_nothing(const orr__npu *n, uint32_t place)
{
    const int comm = orr__comm_type_of(n, place);
    const bool is_known =
        comm >= 0 && comm < ORR_COLL_COUNT && (COLL_ROOTLESS & ORR_COLL_BIT(comm));
    if (n->graph->t->columns.type[orr__index_of(n, place)] != ORR_NODE_COMM_COLL)
        return ORR_STALL_UNKNOWN;
    if (comm == ORR_COLL_ALL_GATHER && orr__value_of(n, place, n->graph->t->columns.comm_size) == 0)
        return ORR_STALL_EMPTY_ALL_GATHER;
    if (is_known && orr__node_is_custom(n, place, (orr_collective)comm))
        return ORR_STALL_CUSTOM_SPLITS;
    return ORR_STALL_NO_DIMENSION;
}

/* Nodes in their slots that wait for no message and have no chunk. */
static void collect_rest(orr__stall *st, const orr__npu *n)
{
    for (unsigned slot = 0; slot < n->graph->slot_count && !st->failed; slot++) {
        const uint32_t place = n->occupant[slot];
        if (place == ORR__NONE ||
            orr_map_find(st->by_place, orr__pair_key(n->rank, place), ORR__NONE) != ORR__NONE)
            continue;
        const orr__wait w = {.rank = n->rank,
                             .place = place,
                             .type = ORR__WAIT_NOTHING,
                             .cause = why_nothing(n, place)};
        remember_node(st, &w, add_wait(st, &w));
    }
}

/* Free nodes with free slots: they start at the next completion.  Where nothing is under way there is none. */
static void collect_starved(orr__stall *st, const orr__npu *n)
{
    uint32_t first = ORR__NONE;
    for (unsigned slot = 0; slot < n->graph->slot_count; slot++) {
        const uint32_t place =
            n->occupant[slot] == ORR__NONE ? orr_bitset_next(&n->ready[slot], 0) : ORR__NONE;
        if (place < first)
            first = place;
    }
    if (first == ORR__NONE)
        return;
    const orr__wait w = {.rank = n->rank,
                         .place = first,
                         .type = ORR__WAIT_STARVED,
                         .cause = n->running ? ORR_STALL_NONE : ORR_STALL_NOTHING_IN_FLIGHT};
    const uint32_t i = add_wait(st, &w);
    if (remember_node(st, &w, i))
        remember(st, st->starved, n->rank, i);
}

static void link_starved(orr__stall *st)
{
    for (uint32_t i = 0; i < st->wait_count && !st->failed; i++) {
        const uint32_t from = orr_map_find(st->starved, st->waits[i].rank, i);
        const orr__edge e = {from, i, ORR__EDGE_COMPLETION, ORR__NONE, ORR__NONE};
        if (from != i)
            orr__stall_add_edge(st, &e);
    }
}

bool orr__stall_collect(orr__stall *st)
{
    orr_sim *s = st->sim;
    st->by_place = orr_map_create(64);
    st->by_stream = orr_map_create(64);
    st->by_tag = orr_map_create(64);
    st->starved = orr_map_create(64);
    st->resolved = orr_map_create(64);
    st->history = orr_arena_new(st->arena, s->npu_count, orr__history *);
    if (!st->by_place || !st->by_stream || !st->by_tag || !st->starved || !st->resolved ||
        !st->history || !read_messages(st))
        return false;
    for (uint32_t r = 0; r < s->npu_count && !st->failed; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            collect_streams(st, &s->npus[r]);
    attach_messages(st);
    for (uint32_t r = 0; r < s->npu_count && !st->failed; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            collect_rest(st, &s->npus[r]);
    for (uint32_t r = 0; r < s->npu_count && !st->failed; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            collect_starved(st, &s->npus[r]);
    link_starved(st);
    return !st->failed;
}
