/* SPDX-License-Identifier: Apache-2.0 */
/* check_break.c - which control dependencies to give up so that a trace can run.
 *
 * Data dependencies are what the work needs; control dependencies are somebody's idea of an order.  So only
 * the latter are dropped, and only those inside a strongly connected component, that is, on a cycle.  The
 * components are found with Tarjan's algorithm.  Then the trace is run: a node may start when all it waits for
 * is done; when nothing may, the first node that waits for nothing but control dependencies inside its
 * component starts all the same, and those it still waits for are dropped.  What then is left over lies on a
 * cycle of data dependencies, or behind one, and stays as it is.
 * Cost: O(nodes + dependencies). */
#include "check_impl.h"

#include "base/memory/bitset_queue.h"

/* ---- the parents of a node, both lists as one ---- */

static uint32_t parent_count(const orr_columns *c, uint32_t node)
{
    const uint32_t data = c->data_first[node + 1] - c->data_first[node];
    return c->ctrl_first ? data + c->ctrl_first[node + 1] - c->ctrl_first[node] : data;
}

static uint32_t parent_at(const orr_columns *c, uint32_t node, uint32_t i)
{
    const uint32_t data = c->data_first[node + 1] - c->data_first[node];
    return i < data ? c->data_dep[c->data_first[node] + i]
                    : c->ctrl_dep[c->ctrl_first[node] + i - data];
}

/* ---- components ---- */

typedef struct tarjan {
    const orr_columns *c;
    uint32_t *order;     /* by node: when it was first met, from 1; 0: not yet */
    uint32_t *low;       /* by node: the earliest it can reach */
    uint32_t *component; /* by node, from 1; 0: not known yet */
    uint32_t *edge;      /* by node: the next parent to look at */
    uint32_t *stack, *path;
    uint32_t stacked, depth, met, components;
} tarjan;

static void enter(tarjan *t, uint32_t node)
{
    t->order[node] = t->low[node] = ++t->met;
    t->stack[t->stacked++] = node;
    t->path[t->depth++] = node;
}

static void lower(tarjan *t, uint32_t node, uint32_t value)
{
    if (value < t->low[node])
        t->low[node] = value;
}

static void leave(tarjan *t, uint32_t node)
{
    t->depth--;
    if (t->depth)
        lower(t, t->path[t->depth - 1], t->low[node]);
    if (t->low[node] != t->order[node])
        return;
    uint32_t member;
    t->components++;
    do {
        member = t->stack[--t->stacked];
        t->component[member] = t->components;
    } while (member != node);
}

static void visit_from(tarjan *t, uint32_t start)
{
    enter(t, start);
    while (t->depth) {
        const uint32_t node = t->path[t->depth - 1];
        if (t->edge[node] == parent_count(t->c, node)) {
            leave(t, node);
            continue;
        }
        const uint32_t parent = parent_at(t->c, node, t->edge[node]++);
        if (parent == ORR_NO_NODE || t->component[parent])
            continue;
        if (!t->order[parent])
            enter(t, parent);
        else
            lower(t, node, t->order[parent]);
    }
}

uint32_t *chk_find_components(orr_arena *a, const orr_columns *c)
{
    const size_t n = (size_t)c->count + 1;
    tarjan t = {.c = c};
    uint32_t **const arrays[] = {&t.order, &t.low, &t.component, &t.edge, &t.stack, &t.path};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!(*arrays[i] = orr_arena_new(a, n, uint32_t)))
            return NULL;
    for (uint32_t i = 0; i < c->count; i++)
        if (!t.order[i])
            visit_from(&t, i);
    return t.component;
}

/* ---- running ---- */

typedef struct breaker {
    const orr_columns *c;
    const uint32_t *component;
    orr__dag graph;  /* waits: without what is in soft */
    uint32_t *soft;  /* how many control dependencies inside its component a node waits for */
    uint32_t *ready; /* nodes that wait for nothing */
    uint32_t ready_count;
    bool *is_done, *is_dropped;
    orr_bitset_queue next; /* nodes that wait for nothing but soft ones */
} breaker;

static bool is_soft(const breaker *b, uint32_t node, uint32_t parent)
{
    return parent != ORR_NO_NODE && parent != node && b->component[parent] == b->component[node];
}

static void split_waits(breaker *b)
{
    const orr_columns *c = b->c;
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t e = c->ctrl_first[i]; e < c->ctrl_first[i + 1]; e++)
            b->soft[i] += is_soft(b, i, c->ctrl_dep[e]);
        b->graph.waits[i] -= b->soft[i];
    }
}

static void note_node(breaker *b, uint32_t node)
{
    if (b->graph.waits[node])
        return;
    if (b->soft[node])
        orr_bitset_insert(&b->next, node);
    else
        b->ready[b->ready_count++] = node;
}

static void run_node(breaker *b, uint32_t node)
{
    const orr__dag *g = &b->graph;
    b->is_done[node] = true;
    for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
        const uint32_t child = g->child[e];
        if (b->is_done[child])
            continue; /* it did not wait for this one */
        if (e >= g->ctrl_from[node] && is_soft(b, child, node))
            b->soft[child]--;
        else
            g->waits[child]--;
        if (!g->waits[child] && !b->soft[child] && orr_bitset_has(&b->next, child))
            orr_bitset_remove(&b->next, child);
        note_node(b, child);
    }
}

static void drop_soft(breaker *b, uint32_t node)
{
    for (uint32_t e = b->c->ctrl_first[node]; e < b->c->ctrl_first[node + 1]; e++)
        if (is_soft(b, node, b->c->ctrl_dep[e]) && !b->is_done[b->c->ctrl_dep[e]])
            b->is_dropped[e] = true;
}

static void run_trace(breaker *b)
{
    for (uint32_t i = 0; i < b->c->count; i++)
        note_node(b, i);
    for (;;) {
        while (b->ready_count)
            run_node(b, b->ready[--b->ready_count]);
        if (orr_bitset_is_empty(&b->next))
            return;
        const uint32_t node = orr_bitset_pop(&b->next);
        drop_soft(b, node);
        run_node(b, node);
    }
}

bool chk_break_cycles(orr_arena *a, const orr_columns *c, bool *is_dropped)
{
    const size_t n = (size_t)c->count + 1;
    breaker b = {.c = c, .is_dropped = is_dropped};
    b.component = chk_find_components(a, c);
    b.soft = orr_arena_new(a, n, uint32_t);
    b.ready = orr_arena_new(a, n, uint32_t);
    b.is_done = orr_arena_new(a, n, bool);
    if (!b.component || !b.soft || !b.ready || !b.is_done ||
        !orr__dag_build(c, CHK_DAG, a, &b.graph) || !orr_bitset_init(&b.next, c->count))
        return false;
    split_waits(&b);
    run_trace(&b);
    orr_bitset_fini(&b.next);
    return true;
}
