/* SPDX-License-Identifier: Apache-2.0 */
/* stall_waits.c - collects all waits.
 *
 * An unfinished rank has a wait per receive (and per send, with a rendezvous), per chunk of its
 * collective, and per node that nothing will end, or one that says that nothing is running.
 * Messages are sorted, so that the list does not depend on their order in memory.
 *
 * Cost: n log n in messages, linear in ranks, chunks and nodes. */
#include "stall_impl.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "run/run_observer.h"

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
    return remember(st, st->by_place, stall_key(w->rank, w->place), i);
}

static void stall_blame(orr__wait *w, orr_stall_cause cause, uint32_t peer, uint32_t other)
{
    if (w->cause != ORR_STALL_NONE)
        return;
    w->cause = cause;
    w->peer = peer;
    w->other = other;
}

static bool stall_add_edge(orr__stall *st, const orr__edge *e)
{
    if (st->edge_count >= RUN_NONE || !orr_grow(&st->edges, &st->edge_room, st->edge_count + 1)) {
        st->failed = true;
        return false;
    }
    st->edges[st->edge_count++] = *e;
    return true;
}

/* ---- messages ---- */

static int order_messages(const void *a, const void *b)
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
    orr_sort(st->messages, st->message_count, sizeof *st->messages, order_messages);
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

/* A node has one message, so its wait is created here. */
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
        stall_blame(&st->waits[i], ORR_STALL_LOST_MESSAGE, is_sender ? m->dst : m->src, RUN_NONE);
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
            if (remember_node(st, &w, i) && remember(st, st->by_tag, stall_key(n->rank, s->tag), i))
                remember(st, st->by_stream, (uint64_t)(uintptr_t)s, i);
        }
}

/* Why a collective has no chunks, or none left. */
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

/* Nodes in their slots without a pending message or chunk. */
static void collect_rest(orr__stall *st, const run_npu *n)
{
    for (unsigned slot = 0; slot < n->graph->slot_count && !st->failed; slot++) {
        const uint32_t place = n->occupant[slot];
        if (place == RUN_NONE ||
            orr_map_find(st->by_place, stall_key(n->rank, place), RUN_NONE) != RUN_NONE)
            continue;
        const orr__wait w = {.rank = n->rank,
                             .place = place,
                             .type = ORR__WAIT_NOTHING,
                             .cause = why_nothing(n, place)};
        remember_node(st, &w, add_wait(st, &w));
    }
}

/* Ready nodes with free slots: they start at the next completion.  If nothing is running there is
 * none. */
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
            stall_add_edge(st, &e);
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

/* ======== Why a node has not started: a dependency, or the occupant of its slot.
 *
 * Follow an unfinished parent upwards until a node is running: it has a wait.  One parent is
 * enough, since all of them are needed.  Returning to a visited node means that the dependencies
 * form a cycle.  Answers are cached, so each node is visited once. */

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
           orr_map_find(st->by_place, stall_key(n->rank, place), RUN_NONE) == RUN_NONE;
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

/* What an unblocked node waits for: itself, the occupant of its slot, or any completion. */
static uint32_t wait_at(const orr__stall *st, const run_npu *n, uint32_t place)
{
    const uint32_t own = orr_map_find(st->by_place, stall_key(n->rank, place), RUN_NONE);
    const uint32_t occupant = n->occupant[n->graph->slot[place]];
    if (own != RUN_NONE)
        return own;
    if (occupant != RUN_NONE)
        return orr_map_find(st->by_place, stall_key(n->rank, occupant), RUN_NONE);
    return orr_map_find(st->starved, n->rank, RUN_NONE);
}

/* Up from `place` to the first unblocked node; all visited nodes get the same answer. */
static uint32_t resolve(orr__stall *st, const run_npu *n, uint32_t place)
{
    uint32_t answer = RUN_NONE, at = place;
    while (true) {
        const uint64_t key = stall_key(n->rank, at);
        uint32_t first = 0;
        answer = orr_map_find(st->resolved, key, RUN_NONE);
        if (answer != RUN_NONE) /* known, or visited on this path: then it still says IN_A_CYCLE */
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
            break; /* unchanged */
        if (!orr_map_put(st->resolved, stall_key(n->rank, at), answer, NULL))
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
    return stall_add_edge(st, &out);
}

/* Adds edges from `from` to what blocks node `place` of `rank`; false: it is behind a dependency
 * cycle and will never start (or out of memory). */
static bool stall_block(
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

/* ---- history of collectives per rank ---- */

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
        orr_sort(keys, h->count, sizeof *keys, compare_turns);
        h->turns = orr_arena_new(st->arena, h->count, orr__turn);
        ok = h->turns != NULL;
    }
    for (uint32_t i = 0; ok && i < h->count; i++)
        h->turns[i] = keys[i].turn;
    orr_free(keys);
    st->failed |= !ok;
    return ok ? h : NULL;
}

/* NULL: out of memory */
static const orr__history *stall_history(orr__stall *st, uint32_t rank)
{
    if (!st->history[rank])
        st->history[rank] = make_history(st, &st->sim->npus[rank]);
    return st->history[rank];
}

uint32_t orr__stall_sequence(orr__stall *st, uint32_t rank, uint32_t place)
{
    const orr__history *h = stall_history(st, rank);
    const cfg_group *g = sys_node_group(&st->sim->npus[rank], place);
    uint32_t sequence = 0;
    for (uint32_t i = 0; h && i < h->count && h->turns[i].place != place; i++)
        sequence += h->turns[i].group == g;
    return sequence;
}

/* Nodes that wait for a message: will the other rank post its side?
 *
 * First, per awaited rank: its unstarted sends and receives, sorted; the k-th wait for a key needs
 * the k-th of them, and waits for whatever blocks it.  A wait without one has no partner.  Then,
 * per pair of ranks: waits without a partner are compared with messages that nobody will receive,
 * first with the same tag (sizes differ), then with the same size (tags differ); and finally with
 * future sends.
 *
 * Cost: n log n in waits and messages, plus the nodes of each awaited rank. */

/* One side of a message that a rank will post, or that a wait needs. */
typedef struct side {
    uint32_t owner; /* the rank that has to post it */
    uint32_t is_send;
    uint32_t peer, tag;
    uint64_t size; /* 0 for a receiver with a rendezvous: matched by tag alone */
    uint32_t what; /* a node, or a wait */
} side;

static int compare_sides(const side *x, const side *y)
{
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->is_send != y->is_send)
        return x->is_send < y->is_send ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

static int compare_all(const void *a, const void *b)
{
    const side *x = a, *y = b;
    const int by_key = compare_sides(x, y);
    return by_key ? by_key : x->what < y->what ? -1 : x->what > y->what;
}

typedef struct sides {
    side *items;
    size_t count, room;
} sides;

static bool push(orr__stall *st, sides *list, const side *s)
{
    if (!orr_grow(&list->items, &list->room, list->count + 1)) {
        st->failed = true;
        return false;
    }
    list->items[list->count++] = *s;
    return true;
}

/* The counterpart of a wait. */
static side needed_by(const orr__stall *st, uint32_t wait)
{
    const orr__wait *w = &st->waits[wait];
    const msg_unmatched *m = &st->messages[w->message];
    if (w->type == ORR__WAIT_RECEIVER)
        return (side){m->dst, false, m->src, m->tag, 0, wait};
    return (side){m->src, true, m->dst, m->tag, m->size, wait};
}

/* The sends and receives that a rank has not started. */
static void list_unstarted(orr__stall *st, uint32_t rank, sides *out)
{
    const run_npu *n = &st->sim->npus[rank];
    const orr_columns *c = &n->graph->t->columns;
    out->count = 0;
    for (uint32_t p = 0; p < n->graph->count && !st->failed; p++) {
        const uint8_t type = c->type[n->graph->node[p]];
        if ((type != ORR_NODE_COMM_SEND && type != ORR_NODE_COMM_RECV) ||
            orr__state_of(n, p) == ORR__STARTED)
            continue;
        const bool is_send = type == ORR_NODE_COMM_SEND;
        const bool has_size = is_send || !st->sim->opt.rendezvous;
        const side s = {
            .owner = rank,
            .is_send = is_send,
            .peer = (uint32_t)orr__or_zero(is_send ? run_npu_dst(n, p) : run_npu_src(n, p)),
            .tag = (uint32_t)((uint64_t)orr__or_zero(run_npu_tag(n, p)) % MSG_TAG_SPACE),
            .size = has_size ? (uint64_t)orr__value_of(n, p, c->comm_size) : 0,
            .what = p};
        push(st, out, &s);
    }
    if (out->count)
        orr_sort(out->items, out->count, sizeof *out->items, compare_all);
}

static size_t lower_bound(const sides *list, const side *key)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (compare_sides(&list->items[mid], key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool has_same_key(const msg_unmatched *a, const msg_unmatched *b)
{
    return a->dst == b->dst && a->src == b->src && a->tag == b->tag && a->size == b->size;
}

/* With a rendezvous, which matches by tag alone, another receive may have released another send
 * first: then the needed send has started and also waits.  The wait of the k-th such send, or NONE;
 * *count: their number. */
static uint32_t started_send(const orr__stall *st, uint32_t message, uint32_t k, uint32_t *count)
{
    const msg_unmatched *m = &st->messages[message];
    uint32_t found = RUN_NONE, i = message;
    *count = 0;
    if (!st->sim->opt.rendezvous || m->kind != MSG_UNSENT)
        return RUN_NONE;
    while (i > 0 && has_same_key(&st->messages[i - 1], m))
        i--;
    for (; i < st->message_count && has_same_key(&st->messages[i], m); i++) {
        if (st->messages[i].kind != MSG_UNREADY || st->wait_of[i] == RUN_NONE)
            continue;
        if ((*count)++ == k)
            found = st->wait_of[i];
    }
    return found;
}

/* `k`: number of earlier waits for the same key. */
static void link_need(orr__stall *st, const side *need, uint32_t k, const sides *unstarted)
{
    orr__wait *w = &st->waits[need->what];
    uint32_t count;
    const uint32_t sender = started_send(st, w->message, k, &count);
    if (sender != RUN_NONE) {
        const orr__edge e = {need->what, sender, ORR__EDGE_SENDER, w->message, RUN_NONE};
        stall_add_edge(st, &e);
        return;
    }
    const size_t at = lower_bound(unstarted, need) + k - count;
    if (at >= unstarted->count || compare_sides(&unstarted->items[at], need) != 0) {
        stall_blame(w, ORR_STALL_NO_PARTNER, need->owner, RUN_NONE);
        return;
    }
    const uint32_t place = unstarted->items[at].what;
    if (!stall_block(st, need->what, w->message, need->owner, place) && !st->failed)
        stall_blame(w, ORR_STALL_DEPENDENCY_CYCLE, need->owner, place);
}

/* All waits for one rank: needs [first, end). */
static void link_rank(orr__stall *st, const sides *needs, size_t first, size_t end, sides *scratch)
{
    uint32_t same = 0;
    list_unstarted(st, needs->items[first].owner, scratch);
    for (size_t i = first; i < end && !st->failed; i++) {
        const side *need = &needs->items[i];
        same = i > first && compare_sides(need, need - 1) == 0 ? same + 1 : 0;
        link_need(st, need, same, scratch);
    }
}

/* ---- mismatches ---- */

/* An unmatched side of a message between two ranks; `wait` may be NONE if nobody waits for it. */
typedef struct half {
    uint32_t message, wait;
    bool is_used;
} half;

typedef struct halves {
    half *sends, *receives;
    size_t send_count, receive_count, send_room, receive_room;
} halves;

static bool is_lonely(const orr__stall *st, uint32_t message)
{
    const uint32_t w = st->wait_of[message];
    return w != RUN_NONE && st->waits[w].cause == ORR_STALL_NO_PARTNER;
}

/* Is there a receive to come for a message that has arrived? */
static bool will_be_received(const orr__stall *st, const msg_unmatched *m, const sides *unstarted)
{
    const bool has_size = !st->sim->opt.rendezvous;
    const side key = {m->dst, false, m->src, m->tag, has_size ? m->size : 0, 0};
    const size_t at = lower_bound(unstarted, &key);
    return at < unstarted->count && compare_sides(&unstarted->items[at], &key) == 0;
}

static void pair_up(orr__stall *st, half *send, half *receive, orr_stall_cause cause)
{
    const half both[2] = {*send, *receive};
    send->is_used = receive->is_used = true;
    for (unsigned i = 0; i < 2; i++) {
        if (both[i].wait == RUN_NONE)
            continue;
        orr__wait *w = &st->waits[both[i].wait];
        w->cause = cause;
        w->other = both[1 - i].message;
    }
}

static bool is_custom(const orr__stall *st, const half *h)
{
    return msg_is_custom(st->messages[h->message].tag);
}

static uint64_t key_of(const orr__stall *st, const half *h, bool by_tag)
{
    const msg_unmatched *m = &st->messages[h->message];
    return by_tag ? m->tag : m->size;
}

/* Both lists are sorted by tag, so one pass finds equal tags; equal sizes need a full scan. */
static void pair_all(orr__stall *st, halves *h, bool by_tag)
{
    enum { MOST_LOOKS = 4096 }; /* beyond, a tag mismatch is reported as a missing partner */
    size_t looks = 0, from = 0;
    for (size_t r = 0; r < h->receive_count; r++) {
        const uint64_t key = key_of(st, &h->receives[r], by_tag);
        if (h->receives[r].is_used)
            continue;
        for (size_t s = from; s < h->send_count; s++) {
            const uint64_t other = key_of(st, &h->sends[s], by_tag);
            if (by_tag && other < key)
                from = s + 1;
            if ((by_tag && other > key) || (!by_tag && ++looks > MOST_LOOKS))
                break;
            if (other != key || h->sends[s].is_used ||
                is_custom(st, &h->sends[s]) != is_custom(st, &h->receives[r]))
                continue;
            pair_up(st, &h->sends[s], &h->receives[r],
                    by_tag ? ORR_STALL_SIZE_MISMATCH : ORR_STALL_TAG_MISMATCH);
            if (by_tag)
                from = s + 1;
            break;
        }
    }
}

static bool add_half(orr__stall *st, halves *h, uint32_t message, bool is_send)
{
    half **list = is_send ? &h->sends : &h->receives;
    size_t *count = is_send ? &h->send_count : &h->receive_count;
    size_t *room = is_send ? &h->send_room : &h->receive_room;
    if (!orr_grow(list, room, *count + 1)) {
        st->failed = true;
        return false;
    }
    (*list)[(*count)++] = (half){message, st->wait_of[message], false};
    return true;
}

/* Messages [first, end) go from one rank to another. */
static void compare_pair(
    orr__stall *st, uint32_t first, uint32_t end, const sides *unstarted, halves *h)
{
    h->send_count = h->receive_count = 0;
    for (uint32_t i = first; i < end && !st->failed; i++) {
        const msg_unmatched *m = &st->messages[i];
        if (m->kind == MSG_UNSENT && is_lonely(st, i))
            add_half(st, h, i, false);
        else if ((m->kind == MSG_UNREADY && is_lonely(st, i)) ||
                 (m->kind == MSG_UNRECEIVED && msg_has_trace_tag(m->tag) &&
                  !will_be_received(st, m, unstarted)))
            add_half(st, h, i, true);
    }
    pair_all(st, h, true);
    pair_all(st, h, false);
}

/* Messages [first, end) go to one rank. */
static void compare_rank(orr__stall *st, uint32_t first, uint32_t end, sides *scratch, halves *h)
{
    bool has_lonely = false;
    for (uint32_t i = first; i < end && !has_lonely; i++)
        has_lonely = is_lonely(st, i);
    if (!has_lonely)
        return;
    list_unstarted(st, st->messages[first].dst, scratch);
    for (uint32_t i = first, next; i < end && !st->failed; i = next) {
        for (next = i + 1; next < end && st->messages[next].src == st->messages[i].src;)
            next++;
        compare_pair(st, i, next, scratch, h);
    }
}

static void compare_messages(orr__stall *st, sides *scratch)
{
    halves h = {0};
    for (uint32_t i = 0, next; i < st->message_count && !st->failed; i = next) {
        for (next = i + 1;
             next < st->message_count && st->messages[next].dst == st->messages[i].dst;)
            next++;
        compare_rank(st, i, next, scratch, &h);
    }
    orr_free(h.sends);
    orr_free(h.receives);
}

/* ---- future sends with another size or tag ---- */

/* A hash for the receive of a message.  A collision costs a remark, no more. */
static uint64_t receive_key(uint32_t src, uint32_t dst, uint32_t tag, uint64_t size)
{
    const uint64_t ends = (uint64_t)src << 32 | dst, what = (uint64_t)tag << 32 ^ size;
    return orr_hash_mix(ends ^ 0xa0761d6478bd642fu, what ^ 0xe7037ed1a0b428dbu);
}

static bool is_lonely_wait(const orr__stall *st, uint32_t wait)
{
    return st->waits[wait].type == ORR__WAIT_MESSAGE &&
           st->waits[wait].cause == ORR_STALL_NO_PARTNER;
}

/* The receives that a rank has not started. */
static bool note_receives(orr__stall *st, uint32_t rank, orr_map *known, sides *scratch)
{
    bool ok = true;
    list_unstarted(st, rank, scratch);
    for (size_t i = 0; ok && i < scratch->count; i++) {
        const side *r = &scratch->items[i];
        if (!r->is_send)
            ok = orr_map_put(known, receive_key(r->peer, rank, r->tag, r->size), 1, NULL);
    }
    return ok;
}

/* All receives, waiting or future, of the ranks that lack a message. */
static orr_map *list_receives(orr__stall *st, const sides *needs, sides *scratch)
{
    orr_map *known = orr_map_create(64), *is_listed = orr_map_create(64);
    bool ok = known && is_listed;
    for (size_t i = 0; ok && i < needs->count; i++) {
        const side *n = &needs->items[i];
        bool is_new = false;
        if (n->is_send)
            ok = orr_map_put(known, receive_key(n->owner, n->peer, n->tag, n->size), 1, NULL);
        if (ok && is_lonely_wait(st, n->what))
            ok = orr_map_put(is_listed, n->peer, 1, &is_new);
        if (ok && is_new)
            ok = note_receives(st, n->peer, known, scratch);
    }
    orr_map_destroy(is_listed);
    st->failed |= !ok;
    return known;
}

/* Among sends to the right rank that nobody will receive: an equal tag is closer than an equal
 * size. */
static void compare_to_come(orr__stall *st,
                            const side *need,
                            const sides *unstarted,
                            const orr_map *known)
{
    enum { MOST_LOOKS = 64 };
    const side first = {need->owner, true, need->peer, 0, 0, 0};
    orr__wait *w = &st->waits[need->what];
    size_t at = lower_bound(unstarted, &first);
    for (unsigned looks = 0; looks < MOST_LOOKS && at < unstarted->count; looks++, at++) {
        const side *s = &unstarted->items[at];
        const bool has_tag = s->tag == need->tag;
        if (!s->is_send || s->peer != need->peer)
            return;
        if ((!has_tag && (s->size != need->size || w->via != RUN_NONE)) ||
            orr_map_find(known, receive_key(s->owner, s->peer, s->tag, s->size), 0))
            continue;
        w->cause = has_tag ? ORR_STALL_SIZE_MISMATCH : ORR_STALL_TAG_MISMATCH;
        w->via = s->what;
        if (has_tag)
            return;
    }
}

static void compare_all_to_come(orr__stall *st, const sides *needs, sides *scratch)
{
    orr_map *known = list_receives(st, needs, scratch);
    uint32_t listed = RUN_NONE;
    for (size_t i = 0; i < needs->count && !st->failed; i++) {
        const side *n = &needs->items[i];
        if (!is_lonely_wait(st, n->what))
            continue;
        if (listed != n->owner)
            list_unstarted(st, n->owner, scratch);
        listed = n->owner;
        compare_to_come(st, n, scratch, known);
    }
    orr_map_destroy(known);
}

bool orr__stall_link_messages(orr__stall *st)
{
    sides needs = {0}, scratch = {0};
    for (uint32_t i = 0; i < st->wait_count && !st->failed; i++) {
        const orr__wait *w = &st->waits[i];
        const bool is_node = w->type == ORR__WAIT_MESSAGE || w->type == ORR__WAIT_RECEIVER;
        if (is_node && w->cause == ORR_STALL_NONE) {
            const side need = needed_by(st, i);
            push(st, &needs, &need);
        }
    }
    if (needs.count)
        orr_sort(needs.items, needs.count, sizeof *needs.items, compare_all);
    for (size_t i = 0, next; i < needs.count && !st->failed; i = next) {
        for (next = i + 1; next < needs.count && needs.items[next].owner == needs.items[i].owner;)
            next++;
        link_rank(st, &needs, i, next, &scratch);
    }
    if (!st->failed)
        compare_messages(st, &scratch);
    if (!st->failed)
        compare_all_to_come(st, &needs, &scratch);
    orr_free(needs.items);
    orr_free(scratch.items);
    return !st->failed;
}

/* ======== Chunks of collectives: what is the expected sender doing?
 *
 * A queued chunk waits for those running in its queue.  A running one waits for messages; the
 * sender is found by the chunk's tag.  If it has the same chunk, that waits too.  If not, the
 * ranks' collectives are compared in order: the k-th of a group on one rank matches the k-th on the
 * others.
 *
 * Cost: linear in chunks and their messages; a rank that lacks a chunk has its collectives listed
 * once. */

enum { MOST_EDGES = 8 }; /* of one chunk to those before it */

bool orr__stall_is_same_collective(const run_npu *a, uint32_t x, const run_npu *b, uint32_t y)
{
    if (a->graph == b->graph && x == y)
        return true;
    return orr__comm_type_of(a, x) == orr__comm_type_of(b, y) &&
           orr__value_of(a, x, a->graph->t->columns.comm_size) ==
               orr__value_of(b, y, b->graph->t->columns.comm_size) &&
           sys_node_group(a, x) == sys_node_group(b, y);
}

static bool has_same_phases(const sys_stream *a, const sys_stream *b)
{
    if (!a->custom_prefix != !b->custom_prefix || a->phase_count != b->phase_count)
        return false;
    for (uint32_t i = 0; i < a->phase_count && !a->custom_prefix; i++)
        if (a->phases[i].kind != b->phases[i].kind ||
            a->phases[i].dim->position != b->phases[i].dim->position)
            return false;
    return true;
}

/* The node of the k-th collective of a group on a rank, or NONE. */
static uint32_t turn_at(const orr__history *h, const cfg_group *g, uint32_t k, bool *is_started)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (h->turns[i].group == g && k-- == 0) {
            *is_started = i < h->started;
            return h->turns[i].place;
        }
    return RUN_NONE;
}

/* The peer does not have the chunk of wait `i`. */
static void look_at_turn(orr__stall *st, uint32_t i, uint32_t message, uint32_t peer)
{
    orr__wait *w = &st->waits[i];
    const run_npu *own = npu_of(st, w->rank), *n = npu_of(st, peer);
    const orr__history *h = stall_history(st, peer);
    bool is_started = false;
    if (!h)
        return;
    const uint32_t place = turn_at(h, sys_node_group(own, w->place),
                                   orr__stall_sequence(st, w->rank, w->place), &is_started);
    if (place == RUN_NONE) {
        stall_blame(w, ORR_STALL_MEMBER_ABSENT, peer, RUN_NONE);
    } else if (!is_started) {
        if (!stall_block(st, i, message, peer, place) && !st->failed)
            stall_blame(w, ORR_STALL_DEPENDENCY_CYCLE, peer, place);
    } else {
        const bool is_under_way =
            orr_map_find(st->by_place, stall_key(peer, place), RUN_NONE) != RUN_NONE;
        stall_blame(w,
                    is_under_way && orr__stall_is_same_collective(own, w->place, n, place)
                        ? ORR_STALL_STREAM_NUMBERS
                        : ORR_STALL_COLLECTIVE_MISMATCH,
                    peer, place);
    }
}

/* The object of a message wait; once there is a cause, further messages are skipped. */
static void link_message(orr__stall *st, uint32_t i, uint32_t message)
{
    orr__wait *w = &st->waits[i];
    const msg_unmatched *m = &st->messages[message];
    if (m->kind == MSG_UNDELIVERED) {
        stall_blame(w, ORR_STALL_LOST_MESSAGE, m->src == w->rank ? m->dst : m->src, RUN_NONE);
        return;
    }
    const uint32_t to = orr_map_find(st->by_tag, stall_key(m->src, w->stream->tag), RUN_NONE);
    if (to == RUN_NONE) {
        look_at_turn(st, i, message, m->src);
        return;
    }
    const orr__wait *other = &st->waits[to];
    if (!orr__stall_is_same_collective(npu_of(st, w->rank), w->place, npu_of(st, other->rank),
                                       other->place) ||
        !has_same_phases(w->stream, other->stream)) {
        stall_blame(w, ORR_STALL_COLLECTIVE_MISMATCH, m->src, other->place);
        return;
    }
    stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_STREAM, message, RUN_NONE});
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static void link_queued(orr__stall *st, uint32_t i)
{
    const sys_stream *s = st->waits[i].stream;
    const sys_queue *q = &s->npu->queues[s->phases[s->phase].queue];
    unsigned count = 0;
    for (const sys_stream *r = q->first; r && r->is_started && count < MOST_EDGES; r = r->next) {
        const uint32_t to = orr_map_find(st->by_stream, (uint64_t)(uintptr_t)r, RUN_NONE);
        if (to != RUN_NONE)
            count += stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_QUEUE, RUN_NONE, RUN_NONE});
    }
    if (!count)
        stall_blame(&st->waits[i], ORR_STALL_UNKNOWN, RUN_NONE, RUN_NONE);
}

static void link_running(orr__stall *st, uint32_t i)
{
    orr__wait *w = &st->waits[i];
    const sys_stream *s = w->stream;
    const sys_dim *d = s->phases[s->phase].dim;
    if (d->ops->needs_power_of_two && !is_power_of_two(d->count)) {
        stall_blame(w, ORR_STALL_NOT_POWER_OF_TWO, RUN_NONE, RUN_NONE);
        return;
    }
    if (w->message == RUN_NONE)
        stall_blame(w, ORR_STALL_UNKNOWN, RUN_NONE, RUN_NONE);
    for (uint32_t m = w->message; m != RUN_NONE && w->cause == ORR_STALL_NONE && !st->failed;
         m = st->next[m])
        link_message(st, i, m);
}

/* ---- custom collectives: their messages have separate tags ---- */

/* An arrived message with the same ends, of another size or else of another tag. */
static uint32_t find_near(const orr__stall *st, const msg_unmatched *m, orr_stall_cause *cause)
{
    uint32_t low = 0, high = st->message_count, found = RUN_NONE;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const msg_unmatched *x = &st->messages[mid];
        if (x->dst < m->dst || (x->dst == m->dst && x->src < m->src))
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < st->message_count && st->messages[low].dst == m->dst &&
           st->messages[low].src == m->src;
         low++) {
        const msg_unmatched *x = &st->messages[low];
        if (x->kind == m->kind || x->kind == MSG_UNDELIVERED || !msg_has_trace_tag(x->tag) ||
            msg_is_custom(x->tag) != msg_is_custom(m->tag))
            continue;
        if (x->tag == m->tag) {
            *cause = ORR_STALL_SIZE_MISMATCH;
            return low;
        }
        if (x->size == m->size && found == RUN_NONE) {
            *cause = ORR_STALL_TAG_MISMATCH;
            found = low;
        }
    }
    return found;
}

/* Has the peer finished the same collective? */
static bool has_run_it(orr__stall *st, const orr__wait *w, uint32_t peer)
{
    const run_npu *own = npu_of(st, w->rank), *n = npu_of(st, peer);
    const orr__history *h = stall_history(st, peer);
    bool is_started = false;
    const uint32_t place = h ? turn_at(h, sys_node_group(own, w->place),
                                       orr__stall_sequence(st, w->rank, w->place), &is_started)
                             : RUN_NONE;
    return place != RUN_NONE && is_started &&
           orr__stall_is_same_collective(own, w->place, n, place);
}

static void link_custom_message(orr__stall *st, uint32_t i, uint32_t message)
{
    orr__wait *w = &st->waits[i];
    const msg_unmatched *m = &st->messages[message];
    const bool is_sender = m->kind == MSG_UNREADY;
    const uint32_t peer = is_sender ? m->dst : m->src;
    if (m->kind == MSG_UNDELIVERED) {
        stall_blame(w, ORR_STALL_LOST_MESSAGE, peer == w->rank ? m->dst : peer, RUN_NONE);
        return;
    }
    const uint32_t to = orr_map_find(st->by_tag, stall_key(peer, w->stream->tag), RUN_NONE);
    if (to != RUN_NONE &&
        sys_custom_will_post(st->waits[to].stream, !is_sender, w->rank, m->tag, m->size)) {
        stall_add_edge(st, &(orr__edge){i, to, ORR__EDGE_STREAM, message, RUN_NONE});
        return;
    }
    orr_stall_cause cause = ORR_STALL_NO_PARTNER;
    const uint32_t near = find_near(st, m, &cause);
    if (to == RUN_NONE && near == RUN_NONE && !has_run_it(st, w, peer)) {
        look_at_turn(st, i, message, peer);
        return;
    }
    stall_blame(w, cause, peer, near);
    w->message = message; /* the one to report */
}

static void link_custom(orr__stall *st, uint32_t i)
{
    orr__wait *w = &st->waits[i];
    uint32_t count = 0;
    for (uint32_t m = w->message; m != RUN_NONE; m = st->next[m])
        count++;
    if (count < sys_custom_running(w->stream)) {
        stall_blame(w, ORR_STALL_CUSTOM_NODE, RUN_NONE, RUN_NONE);
        return;
    }
    for (uint32_t m = w->message; m != RUN_NONE && w->cause == ORR_STALL_NONE && !st->failed;
         m = st->next[m])
        link_custom_message(st, i, m);
    if (count == 0)
        stall_blame(w, ORR_STALL_UNKNOWN, RUN_NONE, RUN_NONE);
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
