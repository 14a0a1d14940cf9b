/* SPDX-License-Identifier: Apache-2.0 */
/* stall_streams.c - chunks of collectives: what does the rank do that should send to it?
 *
 * A chunk that waits in a queue waits for those that run there.  One that runs waits for messages; the sender
 * is found by the chunk's tag.  If it has the same chunk, that waits as well.  If it has not, the ranks'
 * collectives are compared by their turn: the k-th of a group on one rank belongs to the k-th on the others.
 *
 * Cost: linear in chunks and their messages; a rank that lacks a chunk has its collectives listed once. */
#include "stall_impl.h"

enum { MOST_EDGES = 8 }; /* of one chunk to those before it */

static const orr__npu *npu_of(const orr__stall *st, uint32_t rank)
{
    return &st->sim->npus[rank];
}

bool orr__stall_is_same_collective(const orr__npu *a, uint32_t x, const orr__npu *b, uint32_t y)
{
    if (a->graph == b->graph && x == y)
        return true;
    return orr__comm_type_of(a, x) == orr__comm_type_of(b, y) &&
           orr__value_of(a, x, a->graph->t->columns.comm_size) ==
               orr__value_of(b, y, b->graph->t->columns.comm_size) &&
           orr__node_group(a, x) == orr__node_group(b, y);
}

static bool has_same_phases(const orr__stream *a, const orr__stream *b)
{
    if (!a->custom_prefix != !b->custom_prefix || a->phase_count != b->phase_count)
        return false;
    for (uint32_t i = 0; i < a->phase_count && !a->custom_prefix; i++)
        if (a->phases[i].kind != b->phases[i].kind ||
            a->phases[i].dim->position != b->phases[i].dim->position)
            return false;
    return true;
}

/* The place of the k-th collective of a group on a rank, or NONE. */
static uint32_t turn_at(const orr__history *h, const orr__group *g, uint32_t k, bool *is_started)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (h->turns[i].group == g && k-- == 0) {
            *is_started = i < h->started;
            return h->turns[i].place;
        }
    return ORR__NONE;
}

/* The peer does not have the chunk of wait `i`. */
static void look_at_turn(orr__stall *st, uint32_t i, uint32_t message, uint32_t peer)
{
    orr__wait *w = &st->waits[i];
    const orr__npu *own = npu_of(st, w->rank), *n = npu_of(st, peer);
    const orr__history *h = orr__stall_history(st, peer);
    bool is_started = false;
    if (!h)
        return;
    const uint32_t place = turn_at(h, orr__node_group(own, w->place),
                                   orr__stall_sequence(st, w->rank, w->place), &is_started);
    if (place == ORR__NONE) {
        orr__stall_blame(w, ORR_STALL_MEMBER_ABSENT, peer, ORR__NONE);
    } else if (!is_started) {
        if (!orr__stall_block(st, i, message, peer, place) && !st->failed)
            orr__stall_blame(w, ORR_STALL_DEPENDENCY_CYCLE, peer, place);
    } else {
        const bool is_under_way =
            orr_map_find(st->by_place, orr__pair_key(peer, place), ORR__NONE) != ORR__NONE;
        orr__stall_blame(w,
                         is_under_way && orr__stall_is_same_collective(own, w->place, n, place)
                             ? ORR_STALL_STREAM_NUMBERS
                             : ORR_STALL_COLLECTIVE_MISMATCH,
                         peer, place);
    }
}

/* What a message waits for; no further messages need a look once there is a cause. */
static void link_message(orr__stall *st, uint32_t i, uint32_t message)
{
    orr__wait *w = &st->waits[i];
    const orr__unmatched *m = &st->messages[message];
    if (m->kind == ORR__UNDELIVERED) {
        orr__stall_blame(w, ORR_STALL_LOST_MESSAGE, m->src == w->rank ? m->dst : m->src, ORR__NONE);
        return;
    }
    const uint32_t to = orr_map_find(st->by_tag, orr__pair_key(m->src, w->stream->tag), ORR__NONE);
    if (to == ORR__NONE) {
        look_at_turn(st, i, message, m->src);
        return;
    }
    const orr__wait *other = &st->waits[to];
    if (!orr__stall_is_same_collective(npu_of(st, w->rank), w->place, npu_of(st, other->rank),
                                       other->place) ||
        !has_same_phases(w->stream, other->stream)) {
        orr__stall_blame(w, ORR_STALL_COLLECTIVE_MISMATCH, m->src, other->place);
        return;
    }
    orr__stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_STREAM, message, ORR__NONE});
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static void link_queued(orr__stall *st, uint32_t i)
{
    const orr__stream *s = st->waits[i].stream;
    const orr__queue *q = &s->npu->queues[s->phases[s->phase].queue];
    unsigned count = 0;
    for (const orr__stream *r = q->first; r && r->is_started && count < MOST_EDGES; r = r->next) {
        const uint32_t to = orr_map_find(st->by_stream, (uint64_t)(uintptr_t)r, ORR__NONE);
        if (to != ORR__NONE)
            count +=
                orr__stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_QUEUE, ORR__NONE, ORR__NONE});
    }
    if (!count)
        orr__stall_blame(&st->waits[i], ORR_STALL_UNKNOWN, ORR__NONE, ORR__NONE);
}

static void link_running(orr__stall *st, uint32_t i)
{
    orr__wait *w = &st->waits[i];
    const orr__stream *s = w->stream;
    const orr__dim *d = s->phases[s->phase].dim;
    if (d->ops->needs_power_of_two && !is_power_of_two(d->count)) {
        orr__stall_blame(w, ORR_STALL_NOT_POWER_OF_TWO, ORR__NONE, ORR__NONE);
        return;
    }
    if (w->message == ORR__NONE)
        orr__stall_blame(w, ORR_STALL_UNKNOWN, ORR__NONE, ORR__NONE);
    for (uint32_t m = w->message; m != ORR__NONE && w->cause == ORR_STALL_NONE && !st->failed;
         m = st->next[m])
        link_message(st, i, m);
}

/* ---- custom collectives: their messages have tags of their own ---- */

/* A message with the same ends that is there, of another size or else of another tag. */
static uint32_t find_near(const orr__stall *st, const orr__unmatched *m, orr_stall_cause *cause)
{
    uint32_t low = 0, high = st->message_count, found = ORR__NONE;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const orr__unmatched *x = &st->messages[mid];
        if (x->dst < m->dst || (x->dst == m->dst && x->src < m->src))
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < st->message_count && st->messages[low].dst == m->dst &&
           st->messages[low].src == m->src;
         low++) {
        const orr__unmatched *x = &st->messages[low];
        if (x->kind == m->kind || x->kind == ORR__UNDELIVERED || x->tag >= ORR__TAG_SPACE)
            continue;
        if (x->tag == m->tag) {
            *cause = ORR_STALL_SIZE_MISMATCH;
            return low;
        }
        if (x->size == m->size && found == ORR__NONE) {
            *cause = ORR_STALL_TAG_MISMATCH;
            found = low;
        }
    }
    return found;
}

/* Has the peer run the same collective to its end? */
static bool has_run_it(orr__stall *st, const orr__wait *w, uint32_t peer)
{
    const orr__npu *own = npu_of(st, w->rank), *n = npu_of(st, peer);
    const orr__history *h = orr__stall_history(st, peer);
    bool is_started = false;
    const uint32_t place = h ? turn_at(h, orr__node_group(own, w->place),
                                       orr__stall_sequence(st, w->rank, w->place), &is_started)
                             : ORR__NONE;
    return place != ORR__NONE && is_started &&
           orr__stall_is_same_collective(own, w->place, n, place);
}

static void link_custom_message(orr__stall *st, uint32_t i, uint32_t message)
{
    orr__wait *w = &st->waits[i];
    const orr__unmatched *m = &st->messages[message];
    const bool is_sender = m->kind == ORR__UNREADY;
    const uint32_t peer = is_sender ? m->dst : m->src;
    if (m->kind == ORR__UNDELIVERED) {
        orr__stall_blame(w, ORR_STALL_LOST_MESSAGE, peer == w->rank ? m->dst : peer, ORR__NONE);
        return;
    }
    const uint32_t to = orr_map_find(st->by_tag, orr__pair_key(peer, w->stream->tag), ORR__NONE);
    if (to != ORR__NONE &&
        orr__custom_will_post(st->waits[to].stream, !is_sender, w->rank, m->tag, m->size)) {
        orr__stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_STREAM, message, ORR__NONE});
        return;
    }
    orr_stall_cause cause = ORR_STALL_NO_PARTNER;
    const uint32_t near = find_near(st, m, &cause);
    if (to == ORR__NONE && near == ORR__NONE && !has_run_it(st, w, peer)) {
        look_at_turn(st, i, message, peer);
        return;
    }
    orr__stall_blame(w, cause, peer, near);
    w->message = message; /* the one to speak of */
}

static void link_custom(orr__stall *st, uint32_t i)
{
    orr__wait *w = &st->waits[i];
    uint32_t count = 0;
    for (uint32_t m = w->message; m != ORR__NONE; m = st->next[m])
        count++;
    if (count < orr__custom_running(w->stream)) {
        orr__stall_blame(w, ORR_STALL_CUSTOM_NODE, ORR__NONE, ORR__NONE);
        return;
    }
    for (uint32_t m = w->message; m != ORR__NONE && w->cause == ORR_STALL_NONE && !st->failed;
         m = st->next[m])
        link_custom_message(st, i, m);
    if (count == 0)
        orr__stall_blame(w, ORR_STALL_UNKNOWN, ORR__NONE, ORR__NONE);
}

bool orr__stall_link_streams(orr__stall *st)
{
    for (uint32_t i = 0; i < st->wait_count && !st->failed; i++) {
        const orr__wait *w = &st->waits[i];
        if (w->type != ORR__WAIT_STREAM)
            continue;
        if (!w->stream->is_started)
            link_queued(st, i);
        else if (w->stream->custom_prefix)
            link_custom(st, i);
        else
            link_running(st, i);
    }
    return !st->failed;
}
