/* SPDX-License-Identifier: Apache-2.0 */
/* check_deps.c - the graph of one trace: parents that are missing, listed twice or the node itself;
 * ids that are used twice; cycles.
 *
 * Most traces list every node after its parents, which the reader records (is_topological): such a
 * trace has no cycle and no node that depends on itself, and only the lists are checked.  Otherwise
 * the strongly connected components are found; each is one finding, whose path is the shortest
 * cycle through its first node, the easiest to follow. Cost: O(nodes + dependencies), plus the same
 * again per cycle printed. */
#include "check_impl.h"

#include "base/memory/bitset_queue.h"

/* ---- which control dependencies to drop so that a trace can run.
 *
 * Data dependencies are needed by the computation; control dependencies only prefer an order.  So
 * only the latter are dropped, and only those inside a strongly connected component, that is, on a
 * cycle.  The components are found with Tarjan's algorithm.  Then the trace is run: a node may
 * start when all it waits for is done; when nothing may, the first node that waits only for control
 * dependencies inside its component starts anyway, and those it still waits for are dropped.  The
 * nodes that remain are on or after a cycle of data dependencies, and stay as they are. Cost:
 * O(nodes + dependencies). */

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
    uint32_t *order;     /* by node: when first visited, from 1; 0: not yet */
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

/* By node: the number of its strongly connected component, from 1. NULL: out of memory. */
static uint32_t *find_components(orr_arena *a, const orr_columns *c)
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
    orr__dag graph;  /* waits: without those in soft */
    uint32_t *soft;  /* how many control dependencies inside its component a node waits for */
    uint32_t *ready; /* nodes without unfinished parents */
    uint32_t ready_count;
    bool *is_done, *is_dropped;
    orr_bitset_queue next; /* nodes that wait only for soft ones */
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
    b.component = find_components(a, c);
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

enum { SHORT_LIST = 16, PATH_HEAD = 12, PATH_TAIL = 3 };

/* ---- lists ---- */

typedef struct list_check {
    chk_run *k;
    const chk_class *cls;
    const uint32_t *first, *dep;
    uint32_t *stamp; /* for long lists: the last node that listed this one, + 1 */
    bool is_ctrl;
} list_check;

static const char *list_name(const list_check *l)
{
    return l->is_ctrl ? "control" : "data";
}

/* The id at position `at` of a node's list. */
static uint64_t listed_id(const list_check *l, uint32_t node, uint32_t at)
{
    orr_node body;
    orr_value v = {.u = 0};
    orr_trace_node(l->cls->t, node, &body);
    orr_list it = l->is_ctrl ? orr_node_ctrl_deps(&body) : orr_node_data_deps(&body);
    for (uint32_t i = 0; i <= at && orr_list_next(&it, &v); i++)
        ;
    return v.u + orr_set_id_shift(l->k->set, l->cls->rank);
}

static void report_missing(const list_check *l, uint32_t node, uint32_t at)
{
    const orr_check_kind kind =
        l->is_ctrl ? ORR_CHECK_MISSING_CTRL_PARENT : ORR_CHECK_MISSING_PARENT;
    const uint64_t id = chk_is_kept(l->k, kind) ? listed_id(l, node, at) : 0;
    chk_add(l->k, l->cls, kind, node, "%s dependency on node %llu, which does not exist",
            list_name(l), (unsigned long long)id);
}

static void report_twice(const list_check *l, uint32_t node, uint32_t at)
{
    const uint64_t id =
        chk_is_kept(l->k, ORR_CHECK_DUPLICATE_DEPENDENCY) ? listed_id(l, node, at) : 0;
    chk_add(l->k, l->cls, ORR_CHECK_DUPLICATE_DEPENDENCY, node,
            "%s dependency on node %llu is listed more than once", list_name(l),
            (unsigned long long)id);
}

static bool is_repeated(const list_check *l, uint32_t begin, uint32_t at)
{
    for (uint32_t e = begin; e < at; e++)
        if (l->dep[e] == l->dep[at])
            return true;
    return false;
}

static void check_list(const list_check *l, uint32_t node)
{
    const uint32_t begin = l->first[node], end = l->first[node + 1];
    const bool is_long = end - begin > SHORT_LIST;
    for (uint32_t e = begin; e < end; e++) {
        const uint32_t dep = l->dep[e];
        if (dep == ORR_NO_NODE) {
            report_missing(l, node, e - begin);
            continue;
        }
        if (dep == node)
            chk_add(l->k, l->cls, ORR_CHECK_SELF_DEPENDENCY, node,
                    "%s dependency on itself: it can never run", list_name(l));
        if (is_long ? l->stamp[dep] == node + 1 : is_repeated(l, begin, e))
            report_twice(l, node, e - begin);
        if (is_long)
            l->stamp[dep] = node + 1;
    }
}

static bool has_long_list(const uint32_t *first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (first[i + 1] - first[i] > SHORT_LIST)
            return true;
    return false;
}

static void check_lists(chk_run *k, const chk_class *cls, bool is_ctrl)
{
    const orr_columns *c = cls->c;
    list_check l = {.k = k, .cls = cls, .is_ctrl = is_ctrl};
    l.first = is_ctrl ? c->ctrl_first : c->data_first;
    l.dep = is_ctrl ? c->ctrl_dep : c->data_dep;
    if (!l.first || c->count == 0)
        return;
    if (has_long_list(l.first, c->count)) {
        l.stamp = orr_arena_new(k->scratch, c->count, uint32_t);
        if (!l.stamp) {
            k->no_memory = true;
            return;
        }
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (l.first[i + 1] != l.first[i])
            check_list(&l, i);
}

static void check_ids(chk_run *k, const chk_class *cls)
{
    const orr_columns *c = cls->c;
    for (uint32_t i = 0; c->duplicate_ids && i < c->count; i++) {
        const uint32_t last = orr_trace_find(cls->t, c->id[i]);
        if (last == i)
            continue;
        chk_add(k, cls, ORR_CHECK_DUPLICATE_ID, i,
                "the id is used again by a later node, %s; dependencies refer to the last one",
                chk_is_kept(k, ORR_CHECK_DUPLICATE_ID) ? chk_node_words(k, cls, last) : "");
    }
}

/* ---- cycles ---- */

typedef struct cycle_search {
    chk_run *k;
    chk_class *cls;
    const orr_columns *c;
    const uint32_t *component;
    /* breadth-first search: the node that waits for this one; ORR_NO_NODE: not visited */
    uint32_t *from;
    uint32_t *queue;
} cycle_search;

/* Visits the parents of a node of the queue in one list.  True if the search is back at its
 * start. */
static bool search_list(
    cycle_search *s, const uint32_t *first, const uint32_t *dep, uint32_t node, uint32_t *count)
{
    const uint32_t start = s->queue[0];
    for (uint32_t e = first ? first[node] : 0; first && e < first[node + 1]; e++) {
        const uint32_t parent = dep[e];
        if (parent == ORR_NO_NODE || parent == node || s->component[parent] != s->component[start])
            continue;
        if (parent == start)
            return true;
        if (s->from[parent] != ORR_NO_NODE)
            continue;
        s->from[parent] = node;
        s->queue[(*count)++] = parent;
    }
    return false;
}

/* The shortest cycle through start; its nodes in s->queue, each waiting for the next. */
static uint32_t find_shortest(cycle_search *s, uint32_t start)
{
    const orr_columns *c = s->c;
    uint32_t count = 1, at = 0, length = 1;
    memset(s->from, 0xff, (size_t)c->count * sizeof *s->from);
    s->queue[0] = start;
    while (!search_list(s, c->data_first, c->data_dep, s->queue[at], &count) &&
           !search_list(s, c->ctrl_first, c->ctrl_dep, s->queue[at], &count))
        at++;
    const uint32_t last = s->queue[at];
    for (uint32_t node = last; node != start; node = s->from[node])
        length++;
    uint32_t place = length;
    for (uint32_t node = last; node != start; node = s->from[node])
        s->queue[--place] = node;
    return length;
}

static bool is_data_edge(const orr_columns *c, uint32_t node, uint32_t parent)
{
    for (uint32_t e = c->data_first[node]; e < c->data_first[node + 1]; e++)
        if (c->data_dep[e] == parent)
            return true;
    return false;
}

static void put_step(orr_buf *b, const cycle_search *s, uint32_t node, uint32_t next)
{
    chk_put_id_and_name(b, s->cls, orr_set_id_shift(s->k->set, s->cls->rank), node);
    orr_buf_text(b, is_data_edge(s->c, node, next) ? " -> " : " -(control)-> ");
}

static void put_path(orr_buf *b, const cycle_search *s, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        if (length > PATH_HEAD + PATH_TAIL && i == PATH_HEAD) {
            const uint32_t hidden = length - PATH_HEAD - PATH_TAIL;
            orr_buf_text(b, "(");
            chk_put_count(b, hidden);
            orr_buf_text(b, " more) -> ");
            i += hidden;
        }
        put_step(b, s, s->queue[i], s->queue[i + 1 < length ? i + 1 : 0]);
    }
    orr_buf_u64(b, s->c->id[s->queue[0]] + orr_set_id_shift(s->k->set, s->cls->rank));
}

/* size: nodes of the component; the path is its shortest cycle. */
static void report_cycle(cycle_search *s, uint32_t start, uint32_t size)
{
    orr_buf b = {0};
    if (chk_is_kept(s->k, ORR_CHECK_CYCLE)) {
        const uint32_t length = find_shortest(s, start);
        orr_buf_text(&b, "waits for itself: ");
        put_path(&b, s, length);
        orr_buf_text(&b, ", each waiting for the next");
        if (size > length) {
            orr_buf_text(&b, "; ");
            chk_put_count(&b, size);
            orr_buf_text(&b, " nodes wait for each other like this");
        }
    }
    orr_buf_byte(&b, 0);
    s->k->no_memory |= b.failed;
    chk_add(s->k, s->cls, ORR_CHECK_CYCLE, start, "%s", b.failed ? "" : (const char *)b.ptr);
    orr_buf_fini(&b);
}

/* Components are numbered in the order of completion; findings go in the order of nodes. */
static void report_components(cycle_search *s, uint32_t *size)
{
    const uint32_t n = s->c->count;
    for (uint32_t i = 0; i < n; i++)
        size[s->component[i]]++;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *of = &size[s->component[i]];
        if (*of > 1) {
            s->cls->has_cycle = true;
            report_cycle(s, i, *of);
        }
        *of = 0; /* reported */
    }
}

static void check_cycles(chk_run *k, chk_class *cls)
{
    const size_t n = cls->c->count;
    cycle_search s = {.k = k, .cls = cls, .c = cls->c};
    s.component = find_components(k->scratch, cls->c);
    s.from = orr_arena_new(k->scratch, n + 1, uint32_t);
    s.queue = orr_arena_new(k->scratch, n + 1, uint32_t);
    uint32_t *size = orr_arena_new(k->scratch, n + 1, uint32_t);
    if (!s.component || !s.from || !s.queue || !size)
        k->no_memory = true;
    else
        report_components(&s, size);
}

void chk_deps(chk_run *k, chk_class *cls)
{
    check_ids(k, cls);
    check_lists(k, cls, false);
    check_lists(k, cls, true);
    if (!cls->c->is_topological)
        check_cycles(k, cls);
}
