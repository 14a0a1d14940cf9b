/* SPDX-License-Identifier: Apache-2.0 */
/* stall_causes.c - from the graph of waits to what is at the root of it.
 *
 * Every wait has a cause or waits for others.  Those that lead to a cause are explained by it.  If some do not,
 * following them never ends, so there is a circle among them; the shortest one is looked for, breadth first from
 * each wait, as long as a budget of steps lasts (then it is a short one).
 *
 * Cost: linear in waits and edges, plus the budget. */
#include "stall_impl.h"

enum { MOST_STEPS = 1 << 24 };

/* Edges by where they come from; the order of one wait's edges is kept. */
static bool sort_edges(orr__stall *st)
{
    const size_t n = st->wait_count;
    uint32_t *first = orr_arena_new(st->arena, n + 2, uint32_t);
    orr__edge *sorted = orr_arena_new(st->arena, st->edge_count, orr__edge);
    if (!first || (!sorted && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        first[st->edges[e].from + 2]++;
    for (size_t i = 1; i <= n; i++)
        first[i + 1] += first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        sorted[first[st->edges[e].from + 1]++] = st->edges[e];
    orr_free(st->edges);
    st->edges = NULL;
    st->edge_room = 0;
    st->sorted = sorted;
    st->edge_first = first;
    return true;
}

/* ---- what is explained by a cause ---- */

typedef struct reverse {
    uint32_t *first, *from; /* by wait: those that wait for it */
} reverse;

static bool turn_around(const orr__stall *st, reverse *out)
{
    const size_t n = st->wait_count;
    out->first = orr_arena_new(st->arena, n + 2, uint32_t);
    out->from = orr_arena_new(st->arena, st->edge_count, uint32_t);
    if (!out->first || (!out->from && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        out->first[st->sorted[e].to + 2]++;
    for (size_t i = 1; i <= n; i++)
        out->first[i + 1] += out->first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        out->from[out->first[st->sorted[e].to + 1]++] = st->sorted[e].from;
    return true;
}

static bool mark_explained(orr__stall *st, bool *is_explained)
{
    reverse r;
    uint32_t *todo = orr_arena_new(st->arena, st->wait_count, uint32_t);
    size_t count = 0;
    st->roots = orr_arena_new(st->arena, st->wait_count, uint32_t);
    if (!todo || !st->roots || !turn_around(st, &r))
        return false;
    for (uint32_t i = 0; i < st->wait_count; i++)
        if (st->waits[i].cause != ORR_STALL_NONE) {
            st->roots[st->root_count++] = i;
            is_explained[i] = true;
            todo[count++] = i;
        }
    while (count) {
        const uint32_t i = todo[--count];
        for (uint32_t e = r.first[i]; e < r.first[i + 1]; e++)
            if (!is_explained[r.from[e]]) {
                is_explained[r.from[e]] = true;
                todo[count++] = r.from[e];
            }
    }
    return true;
}

/* ---- the shortest circle ---- */

typedef struct search {
    orr__stall *st;
    const bool *is_explained;
    uint32_t *seen;     /* by wait: 1 + where the search that saw it began */
    uint32_t *came_by;  /* by wait: the edge */
    uint32_t *distance; /* by wait */
    uint32_t *queue;
    uint64_t steps;
} search;

/* Breadth first from `start` back to it, in fewer than `limit` steps; the edge that closes it, or NONE. */
static uint32_t closing_edge(search *f, uint32_t start, uint32_t limit)
{
    size_t head = 0, tail = 0;
    f->queue[tail++] = start;
    f->seen[start] = start + 1;
    f->distance[start] = 0;
    while (head < tail) {
        const uint32_t i = f->queue[head++];
        if (f->distance[i] + 1 >= limit)
            return ORR__NONE;
        for (uint32_t e = f->st->edge_first[i]; e < f->st->edge_first[i + 1]; e++) {
            const uint32_t to = f->st->sorted[e].to;
            if (to == start)
                return e;
            if (++f->steps > MOST_STEPS)
                return ORR__NONE;
            if (f->is_explained[to] || f->seen[to] == start + 1)
                continue;
            f->seen[to] = start + 1;
            f->came_by[to] = e;
            f->distance[to] = f->distance[i] + 1;
            f->queue[tail++] = to;
        }
    }
    return ORR__NONE;
}

static void keep_circle(search *f, uint32_t start, uint32_t closing)
{
    orr__stall *st = f->st;
    uint32_t at = st->sorted[closing].from, k = f->distance[at] + 1;
    st->circle_length = k;
    st->circle[--k] = closing;
    while (at != start) {
        const uint32_t e = f->came_by[at];
        st->circle[--k] = e;
        at = st->sorted[e].from;
    }
}

static bool is_before(const orr__wait *a, const orr__wait *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

/* Begin with the lowest rank. */
static bool turn_circle(orr__stall *st)
{
    const uint32_t n = st->circle_length;
    uint32_t first = 0, *turned = orr_arena_new(st->arena, n, uint32_t);
    for (uint32_t i = 1; i < n; i++)
        if (is_before(&st->waits[st->sorted[st->circle[i]].from],
                      &st->waits[st->sorted[st->circle[first]].from]))
            first = i;
    for (uint32_t i = 0; turned && i < n; i++)
        turned[i] = st->circle[(first + i) % n];
    st->circle = turned;
    return turned || n == 0;
}

/* When the budget ends before any circle is found: follow first edges until one comes back. */
static void any_circle(search *f, uint32_t start)
{
    orr__stall *st = f->st;
    memset(f->seen, 0, st->wait_count * sizeof *f->seen);
    uint32_t at = start;
    while (!f->seen[at]) {
        f->seen[at] = 1;
        at = st->sorted[st->edge_first[at]].to;
    }
    const uint32_t first = at;
    do {
        st->circle[st->circle_length++] = st->edge_first[at];
        at = st->sorted[st->edge_first[at]].to;
    } while (at != first);
}

static bool find_circle(orr__stall *st, const bool *is_explained)
{
    const size_t n = st->wait_count;
    search f = {.st = st,
                .is_explained = is_explained,
                .seen = orr_arena_new(st->arena, n, uint32_t),
                .came_by = orr_arena_new(st->arena, n, uint32_t),
                .distance = orr_arena_new(st->arena, n, uint32_t),
                .queue = orr_arena_new(st->arena, n, uint32_t)};
    uint32_t best = ORR__NONE, any = ORR__NONE;
    st->circle = orr_arena_new(st->arena, n, uint32_t);
    if (!f.seen || !f.came_by || !f.distance || !f.queue || !st->circle)
        return false;
    for (uint32_t i = 0; i < n && best > 2 && f.steps <= MOST_STEPS; i++) {
        if (is_explained[i])
            continue;
        any = any == ORR__NONE ? i : any;
        const uint32_t closing = closing_edge(&f, i, best);
        if (closing == ORR__NONE)
            continue;
        keep_circle(&f, i, closing);
        best = st->circle_length;
    }
    if (any != ORR__NONE && st->circle_length == 0)
        any_circle(&f, any);
    return turn_circle(st);
}

bool orr__stall_find_causes(orr__stall *st)
{
    bool *is_explained = orr_arena_new(st->arena, st->wait_count, bool);
    return is_explained && sort_edges(st) && mark_explained(st, is_explained) &&
           find_circle(st, is_explained);
}
