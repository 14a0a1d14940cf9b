/* SPDX-License-Identifier: Apache-2.0 */
/* stall_waits.c - everything that waits, as a list.
 *
 * A rank that has not finished has a wait for each receive (and each send, with a rendezvous), one
 * for each chunk of its collective, one for a node that nothing will end, or one that says that
 * nothing is under way. Messages are sorted, so that the list does not depend on the order in which
 * they are stored.
 *
 * Cost: n log n in messages, linear in ranks, chunks and nodes. */
#include "stall_impl.h"

#include "run/goal_tape.h"

#include <stdlib.h>

static uint32_t add_wait(orr__stall *st, const orr__wait *w)
{
    if (st->wait_count >= RUN_NONE || !orr_grow(&st->waits, &st->wait_room, st->wait_count + 1)) {
        st->failed = true;
        return RUN_NONE;
    }
    const uint32_t i = (uint32_t)st->wait_count++;
    st->waits[i] = *w;
    st->waits[i].message = RUN_NONE;
    st->waits[i].peer = st->waits[i].other = st->waits[i].via = RUN_NONE;
    return i;
}

/* The first entry counts. */
static bool remember(orr__stall *st, orr_map *m, uint64_t key, uint32_t i)
{
    if (i == RUN_NONE ||
        (orr_map_find(m, key, RUN_NONE) == RUN_NONE && !orr_map_put(m, key, i, NULL)))
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
    if (st->edge_count >= RUN_NONE || !orr_grow(&st->edges, &st->edge_room, st->edge_count + 1)) {
        st->failed = true;
        return false;
    }
    st->edges[st->edge_count++] = *e;
    return true;
}

/* ---- messages ---- */

static int compare_messages(const void *a, const void *b)
{
    const msg_unmatched *x = a, *y = b;
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
    if (!msg_list(st->sim->matcher, st->arena, &st->messages, &st->message_count))
        return false;
    for (uint32_t i = 0; i < st->message_count; i++)
        st->messages[i].receiver = tape_receiver(st->messages[i].receiver);
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

static const sys_stream *stream_of(clk_call c)
{
    return c.action == sys_phase_received ? c.context : sys_custom_owner(c);
}

static void attach_to_stream(orr__stall *st, uint32_t message, clk_call c)
{
    const sys_stream *stream = stream_of(c);
    const uint32_t i =
        stream ? orr_map_find(st->by_stream, (uint64_t)(uintptr_t)stream, RUN_NONE) : RUN_NONE;
    if (i == RUN_NONE)
        return;
    st->next[message] = st->waits[i].message;
    st->waits[i].message = message;
}

/* A node has one message, so it gets its wait here. */
static void attach_to_node(orr__stall *st, uint32_t message, clk_call c, bool is_sender)
{
    const run_npu *n = c.action == work_node_done ? c.context : NULL;
    if (!n || n->result.finished_at != ORR_NEVER)
        return;
    const orr__wait w = {.rank = n->rank,
                         .place = (uint32_t)c.argument,
                         .type = is_sender ? ORR__WAIT_RECEIVER : ORR__WAIT_MESSAGE};
    const uint32_t i = add_wait(st, &w);
    if (!remember_node(st, &w, i))
        return;
    const msg_unmatched *m = &st->messages[message];
    st->waits[i].message = message;
    st->wait_of[message] = i;
    if (m->kind == MSG_UNDELIVERED)
        orr__stall_blame(&st->waits[i], ORR_STALL_LOST_MESSAGE, is_sender ? m->dst : m->src,
                         RUN_NONE);
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

static void collect_streams(orr__stall *st, const run_npu *n)
{
    const size_t queues = run_queue_count(st->sim);
    for (size_t q = 0; q < queues; q++)
        for (const sys_stream *s = n->queues[q].first; s && !st->failed; s = s->next) {
            const orr__wait w = {
                .rank = n->rank, .place = s->set->place, .type = ORR__WAIT_STREAM, .stream = s};
            const uint32_t i = add_wait(st, &w);
            if (remember_node(st, &w, i) &&
                remember(st, st->by_tag, orr__pair_key(n->rank, s->tag), i))
                remember(st, st->by_stream, (uint64_t)(uintptr_t)s, i);
        }
}

/* Why a collective has no chunks, or none any more. */
static orr_stall_cause why_nothing(const run_npu *n, uint32_t place)
{
    const int comm = orr__comm_type_of(n, place);
    const bool is_known =
        comm >= 0 && comm < ORR_COLL_COUNT && (COLL_ROOTLESS & ORR_COLL_BIT(comm));
    if (n->graph->t->columns.type[orr__index_of(n, place)] != ORR_NODE_COMM_COLL)
        return ORR_STALL_UNKNOWN;
    if (comm == ORR_COLL_ALL_GATHER && orr__value_of(n, place, n->graph->t->columns.comm_size) == 0)
        return ORR_STALL_EMPTY_ALL_GATHER;
    if (is_known && sys_node_is_custom(n, place, (orr_collective)comm))
        return ORR_STALL_CUSTOM_SPLITS;
    return ORR_STALL_NO_DIMENSION;
}

/* Nodes in their slots that wait for no message and have no chunk. */
static void collect_rest(orr__stall *st, const run_npu *n)
{
    for (unsigned slot = 0; slot < n->graph->slot_count && !st->failed; slot++) {
        const uint32_t place = n->occupant[slot];
        if (place == RUN_NONE ||
            orr_map_find(st->by_place, orr__pair_key(n->rank, place), RUN_NONE) != RUN_NONE)
            continue;
        const orr__wait w = {.rank = n->rank,
                             .place = place,
                             .type = ORR__WAIT_NOTHING,
                             .cause = why_nothing(n, place)};
        remember_node(st, &w, add_wait(st, &w));
    }
}

/* Free nodes with free slots: they start at the next completion.  Where nothing is under way there
 * is none. */
static void collect_starved(orr__stall *st, const run_npu *n)
{
    uint32_t first = RUN_NONE;
    for (unsigned slot = 0; slot < n->graph->slot_count; slot++) {
        const uint32_t place =
            n->occupant[slot] == RUN_NONE ? orr_bitset_next(&n->ready[slot], 0) : RUN_NONE;
        if (place < first)
            first = place;
    }
    if (first == RUN_NONE)
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
        const orr__edge e = {from, i, ORR__EDGE_COMPLETION, RUN_NONE, RUN_NONE};
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

/* ======== Why a node has not started: what it depends on, or who is in its slot.
 *
 * From the node one goes up along a parent that is not over, to the one after it, until a node is
 * under way: it has a wait.  One parent is enough, since all of them are needed.  Coming back to a
 * node one has passed means that the dependencies go round in a circle.  Answers are kept, so a
 * node is gone up from once. */

enum { IN_A_CYCLE = RUN_NONE - 1 }; /* beside the numbers of waits */

static uint32_t place_of(const work_graph *g, uint32_t index)
{
    const orr_trace *t = g->t;
    if (!t->by_id)
        return index;
    uint32_t low = 0, high = g->count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (t->columns.id[g->node[mid]] < t->columns.id[index])
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_over(const orr__stall *st, const run_npu *n, uint32_t place)
{
    return orr__state_of(n, place) == ORR__STARTED &&
           orr_map_find(st->by_place, orr__pair_key(n->rank, place), RUN_NONE) == RUN_NONE;
}

uint32_t orr__stall_parent(const orr__stall *st, const run_npu *n, uint32_t place, uint32_t *at)
{
    const orr_columns *c = &n->graph->t->columns;
    const uint32_t i = orr__index_of(n, place);
    const uint32_t data = c->data_first[i + 1] - c->data_first[i];
    const uint32_t ctrl = c->ctrl_first ? c->ctrl_first[i + 1] - c->ctrl_first[i] : 0;
    while (*at < data + ctrl) {
        const uint32_t e = (*at)++;
        const uint32_t parent =
            e < data ? c->data_dep[c->data_first[i] + e] : c->ctrl_dep[c->ctrl_first[i] + e - data];
        if (parent == ORR_NO_NODE)
            continue;
        const uint32_t p = place_of(n->graph, parent);
        if (!is_over(st, n, p))
            return p;
    }
    return RUN_NONE;
}

/* What a node that is not blocked waits for: itself, who is in its slot, or any completion. */
static uint32_t wait_at(const orr__stall *st, const run_npu *n, uint32_t place)
{
    const uint32_t own = orr_map_find(st->by_place, orr__pair_key(n->rank, place), RUN_NONE);
    const uint32_t occupant = n->occupant[n->graph->slot[place]];
    if (own != RUN_NONE)
        return own;
    if (occupant != RUN_NONE)
        return orr_map_find(st->by_place, orr__pair_key(n->rank, occupant), RUN_NONE);
    return orr_map_find(st->starved, n->rank, RUN_NONE);
}

/* Up from `place` to the first node that is not blocked; all that was passed gets the same
 * answer. */
static uint32_t resolve(orr__stall *st, const run_npu *n, uint32_t place)
{
    uint32_t answer = RUN_NONE, at = place;
    while (true) {
        const uint64_t key = orr__pair_key(n->rank, at);
        uint32_t first = 0;
        answer = orr_map_find(st->resolved, key, RUN_NONE);
        if (answer != RUN_NONE) /* known, or passed on this way: then it still says IN_A_CYCLE */
            break;
        if (orr__state_of(n, at) != ORR__BLOCKED) {
            answer = wait_at(st, n, at);
            break;
        }
        if (!orr_map_put(st->resolved, key, IN_A_CYCLE, NULL)) {
            st->failed = true;
            return RUN_NONE;
        }
        at = orr__stall_parent(st, n, at, &first);
        if (at == RUN_NONE)
            return RUN_NONE;
    }
    const uint32_t end = at;
    for (at = place; at != end && orr__state_of(n, at) == ORR__BLOCKED;) {
        uint32_t first = 0;
        if (answer == IN_A_CYCLE)
            break; /* as it stands */
        if (!orr_map_put(st->resolved, orr__pair_key(n->rank, at), answer, NULL))
            st->failed = true;
        at = orr__stall_parent(st, n, at, &first);
    }
    return answer;
}

static bool add(orr__stall *st, const orr__edge *e, uint32_t rank, uint32_t place)
{
    const run_npu *n = &st->sim->npus[rank];
    orr__edge out = *e;
    out.to = resolve(st, n, place);
    if (out.to == IN_A_CYCLE || out.to == RUN_NONE)
        return false;
    return orr__stall_add_edge(st, &out);
}

bool orr__stall_block(
    orr__stall *st, uint32_t from, uint32_t message, uint32_t rank, uint32_t place)
{
    enum { MOST_PARENTS = 8 };
    const run_npu *n = &st->sim->npus[rank];
    const orr__edge e = {.from = from, .kind = ORR__EDGE_NODE, .message = message, .via = place};
    uint32_t at = 0, parent;
    if (orr__state_of(n, place) != ORR__BLOCKED)
        return add(st, &e, rank, place);
    for (unsigned i = 0; i < MOST_PARENTS; i++) {
        parent = orr__stall_parent(st, n, place, &at);
        if (parent == RUN_NONE)
            return i > 0;
        if (!add(st, &e, rank, parent))
            return false;
    }
    return true;
}

/* ---- which collectives a rank has run ---- */

typedef struct turn_key {
    orr__turn turn;
    bool is_started;
    uint64_t at;
} turn_key;

static int compare_turns(const void *a, const void *b)
{
    const turn_key *x = a, *y = b;
    if (x->is_started != y->is_started)
        return x->is_started ? -1 : 1;
    if (x->is_started && x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->turn.place < y->turn.place ? -1 : x->turn.place > y->turn.place;
}

static orr__history *make_history(orr__stall *st, const run_npu *n)
{
    const work_graph *g = n->graph;
    orr__history *h = orr_arena_new(st->arena, 1, orr__history);
    turn_key *keys = NULL;
    size_t room = 0;
    bool ok = h != NULL;
    for (uint32_t p = 0; ok && p < g->count; p++) {
        if (g->t->columns.type[g->node[p]] != ORR_NODE_COMM_COLL)
            continue;
        ok = orr_grow(&keys, &room, (size_t)h->count + 1);
        if (!ok)
            break;
        const bool is_started = orr__state_of(n, p) == ORR__STARTED;
        keys[h->count++] = (turn_key){{sys_node_group(n, p), p}, is_started, n->started_at[p]};
        h->started += is_started;
    }
    if (ok && h->count) {
        qsort(keys, h->count, sizeof *keys, compare_turns);
        h->turns = orr_arena_new(st->arena, h->count, orr__turn);
        ok = h->turns != NULL;
    }
    for (uint32_t i = 0; ok && i < h->count; i++)
        h->turns[i] = keys[i].turn;
    orr_free(keys);
    st->failed |= !ok;
    return ok ? h : NULL;
}

const orr__history *orr__stall_history(orr__stall *st, uint32_t rank)
{
    if (!st->history[rank])
        st->history[rank] = make_history(st, &st->sim->npus[rank]);
    return st->history[rank];
}

uint32_t orr__stall_sequence(orr__stall *st, uint32_t rank, uint32_t place)
{
    const orr__history *h = orr__stall_history(st, rank);
    const cfg_group *g = sys_node_group(&st->sim->npus[rank], place);
    uint32_t sequence = 0;
    for (uint32_t i = 0; h && i < h->count && h->turns[i].place != place; i++)
        sequence += h->turns[i].group == g;
    return sequence;
}
