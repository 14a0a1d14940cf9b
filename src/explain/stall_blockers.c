/* SPDX-License-Identifier: Apache-2.0 */
/* stall_blockers.c - why a node has not started: what it depends on, or who is in its slot.
 *
 * From the node one goes up along a parent that is not over, to the one after it, until a node is under way: it
 * has a wait.  One parent is enough, since all of them are needed.  Coming back to a node one has passed means
 * that the dependencies go round in a circle.  Answers are kept, so a node is gone up from once. */
#include "stall_impl.h"

#include <stdlib.h>

enum { IN_A_CYCLE = ORR__NONE - 1 }; /* beside the numbers of waits */

static uint32_t place_of(const orr__graph *g, uint32_t index)
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

static bool is_over(const orr__stall *st, const orr__npu *n, uint32_t place)
{
    return orr__state_of(n, place) == ORR__STARTED &&
           orr_map_find(st->by_place, orr__pair_key(n->rank, place), ORR__NONE) == ORR__NONE;
}

uint32_t orr__stall_parent(const orr__stall *st, const orr__npu *n, uint32_t place, uint32_t *at)
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
    return ORR__NONE;
}

/* What a node that is not blocked waits for: itself, who is in its slot, or any completion. */
static uint32_t wait_at(const orr__stall *st, const orr__npu *n, uint32_t place)
{
    const uint32_t own = orr_map_find(st->by_place, orr__pair_key(n->rank, place), ORR__NONE);
    const uint32_t occupant = n->occupant[n->graph->slot[place]];
    if (own != ORR__NONE)
        return own;
    if (occupant != ORR__NONE)
        return orr_map_find(st->by_place, orr__pair_key(n->rank, occupant), ORR__NONE);
    return orr_map_find(st->starved, n->rank, ORR__NONE);
}

/* Up from `place` to the first node that is not blocked; all that was passed gets the same answer. */
static uint32_t resolve(orr__stall *st, const orr__npu *n, uint32_t place)
{
    uint32_t answer = ORR__NONE, at = place;
    while (true) {
        const uint64_t key = orr__pair_key(n->rank, at);
        uint32_t first = 0;
        answer = orr_map_find(st->resolved, key, ORR__NONE);
        if (answer != ORR__NONE) /* known, or passed on this way: then it still says IN_A_CYCLE */
            break;
        if (orr__state_of(n, at) != ORR__BLOCKED) {
            answer = wait_at(st, n, at);
            break;
        }
        if (!orr_map_put(st->resolved, key, IN_A_CYCLE, NULL)) {
            st->failed = true;
            return ORR__NONE;
        }
        at = orr__stall_parent(st, n, at, &first);
        if (at == ORR__NONE)
            return ORR__NONE;
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
    const orr__npu *n = &st->sim->npus[rank];
    orr__edge out = *e;
    out.to = resolve(st, n, place);
    if (out.to == IN_A_CYCLE || out.to == ORR__NONE)
        return false;
    return orr__stall_add_edge(st, &out);
}

bool orr__stall_block(
    orr__stall *st, uint32_t from, uint32_t message, uint32_t rank, uint32_t place)
{
    enum { MOST_PARENTS = 8 };
    const orr__npu *n = &st->sim->npus[rank];
    const orr__edge e = {.from = from, .kind = ORR__EDGE_NODE, .message = message, .via = place};
    uint32_t at = 0, parent;
    if (orr__state_of(n, place) != ORR__BLOCKED)
        return add(st, &e, rank, place);
    for (unsigned i = 0; i < MOST_PARENTS; i++) {
        parent = orr__stall_parent(st, n, place, &at);
        if (parent == ORR__NONE)
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

static orr__history *make_history(orr__stall *st, const orr__npu *n)
{
    const orr__graph *g = n->graph;
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
        keys[h->count++] = (turn_key){{orr__node_group(n, p), p}, is_started, n->started_at[p]};
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
    const orr__group *g = orr__node_group(&st->sim->npus[rank], place);
    uint32_t sequence = 0;
    for (uint32_t i = 0; h && i < h->count && h->turns[i].place != place; i++)
        sequence += h->turns[i].group == g;
    return sequence;
}
