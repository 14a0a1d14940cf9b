/* SPDX-License-Identifier: Apache-2.0 */
/* lower_empty.c - takes out compute nodes without work (specification, section 12).
 *
 * The reference goes over the empty nodes in rounds.  In a round it takes them in file order; one that depends on
 * another empty node of the round waits for the next, any other hands its parents to its children and goes.
 * The order decides in which order parents stand in the files, so it is kept, but not the rounds: what a node
 * hands on is never empty (it would have waited), so the children of an empty node and its empty parents are
 * the same from beginning to end, and the round a node goes in follows from those of its empty parents:
 *
 *     round(n) = max over empty parents p of: round(p) if p comes first in the file, else round(p) + 1
 *
 * Cost: one pass over the dependencies and a sort of the empty nodes, however long their chains are. */
#include "lower.h"

#include <stdlib.h>

typedef struct leaving {
    uint32_t node, round;
} leaving;

typedef struct clearing {
    orr__plan *p;
    bool *is_empty;
    uint32_t *first, *child; /* children of empty nodes: one entry a dependency */
    uint32_t *waits;         /* how many empty parents are without a round */
    leaving *order;
    size_t count;
} clearing;

static orr_code find_empty(clearing *c, stg_lowering *l, orr_error *err)
{
    for (size_t i = 0; i < c->p->count; i++) {
        double ops;
        stg_expr x;
        if (c->p->nodes[i].kind != ORR__COMP)
            continue;
        orr_code code = stg_tensor_ops(l->graph, c->p->nodes[i].tensor, &x, err);
        if (!code)
            code = stg_measure_expr(l->measure, x, &ops, err);
        if (code)
            return code;
        c->is_empty[i] = ops == 0;
        c->count += ops == 0;
    }
    return ORR_OK;
}

/* Children of each empty node, and the empty parents of each node. */
static bool list_children(clearing *c, orr_arena *arena)
{
    const orr__plan *p = c->p;
    size_t entries = 0;
    for (size_t i = 0; i < p->count; i++) {
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++) {
            const uint32_t parent = p->deps[p->nodes[i].dep + d];
            c->first[parent + 1] += c->is_empty[parent];
            c->waits[i] += c->is_empty[parent];
            entries += c->is_empty[parent];
        }
    }
    for (size_t i = 0; i < p->count; i++)
        c->first[i + 1] += c->first[i];
    c->child = orr_arena_new(arena, entries + 1, uint32_t);
    uint32_t *at = orr_arena_new(arena, p->count + 1, uint32_t);
    if (!c->child || !at)
        return false;
    memcpy(at, c->first, p->count * sizeof *at);
    for (size_t i = 0; i < p->count; i++) {
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++) {
            const uint32_t parent = p->deps[p->nodes[i].dep + d];
            if (c->is_empty[parent])
                c->child[at[parent]++] = (uint32_t)i;
        }
    }
    return true;
}

/* The rounds, parents before children.  False: some empty nodes wait for each other. */
static bool find_rounds(clearing *c, uint32_t *round)
{
    size_t ready = 0;
    for (size_t i = 0; i < c->p->count; i++) {
        if (c->is_empty[i] && c->waits[i] == 0)
            c->order[ready++].node = (uint32_t)i;
    }
    for (size_t done = 0; done < ready; done++) {
        const uint32_t n = c->order[done].node;
        c->order[done].round = round[n];
        for (uint32_t k = c->first[n]; k < c->first[n + 1]; k++) {
            const uint32_t child = c->child[k];
            const uint32_t at = round[n] + (child < n);
            if (!c->is_empty[child])
                continue;
            if (round[child] < at)
                round[child] = at;
            if (--c->waits[child] == 0)
                c->order[ready++].node = child;
        }
    }
    return ready == c->count;
}

static int compare_leaving(const void *a, const void *b)
{
    const leaving *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* One entry for n goes, n's parents come behind all the others. */
static bool hand_over(orr__plan *p, uint32_t n, uint32_t child)
{
    stg_plan_node *c = &p->nodes[child];
    uint32_t *deps = p->deps + c->dep;
    uint32_t at = 0;
    while (at < c->dep_count && deps[at] != n)
        at++;
    if (at < c->dep_count) {
        memmove(deps + at, deps + at + 1, (c->dep_count - at - 1) * sizeof *deps);
        c->dep_count--;
    }
    for (uint32_t i = 0; i < p->nodes[n].dep_count; i++) {
        if (!stg_plan_depend(p, child, p->deps[p->nodes[n].dep + i]))
            return false;
    }
    return true;
}

static bool take_out(clearing *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const uint32_t n = c->order[i].node;
        c->p->nodes[n].is_gone = true;
        for (uint32_t k = c->first[n]; k < c->first[n + 1]; k++) {
            if (!hand_over(c->p, n, c->child[k]))
                return false;
        }
    }
    return true;
}

/* Indices again without gaps. */
static void close_gaps(orr__plan *p, uint32_t *moved)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        moved[i] = kept;
        if (!p->nodes[i].is_gone)
            p->nodes[kept++] = p->nodes[i];
    }
    p->count = kept;
    for (size_t i = 0; i < p->count; i++) {
        uint32_t *deps = p->deps + p->nodes[i].dep;
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++)
            deps[d] = moved[deps[d]];
    }
}

static orr_code name_circle(const clearing *c, const stg_lowering *l, orr_error *err)
{
    char label[120];
    uint32_t tensor = 0;
    for (size_t i = c->p->count; i-- > 0;) {
        if (c->is_empty[i] && c->waits[i])
            tensor = c->p->nodes[i].tensor;
    }
    return orr_fail(err, ORR_EINPUT, NULL,
                    "tensors without work depend on each other in a circle; %s is one of them",
                    stg_tensor_label(l->graph, tensor, label, sizeof label));
}

static orr_code clear(clearing *c, stg_lowering *l, orr_arena *arena, orr_error *err)
{
    const size_t n = c->p->count + 1;
    uint32_t *round = orr_arena_new(arena, n, uint32_t);
    c->is_empty = orr_arena_new(arena, n, bool);
    c->first = orr_arena_new(arena, n, uint32_t);
    c->waits = orr_arena_new(arena, n, uint32_t);
    if (!round || !c->is_empty || !c->first || !c->waits)
        return orr_no_memory(err);
    const orr_code code = find_empty(c, l, err);
    if (code)
        return code;
    c->order = orr_arena_new(arena, c->count + 1, leaving);
    if (!c->order || !list_children(c, arena))
        return orr_no_memory(err);
    if (!find_rounds(c, round))
        return name_circle(c, l, err);
    qsort(c->order, c->count, sizeof *c->order, compare_leaving);
    if (!take_out(c))
        return c->p->is_full ? orr_fail(err, ORR_EINPUT, NULL,
                                        "tensors without work give a node too many dependencies")
                             : orr_no_memory(err);
    close_gaps(c->p, round);
    return ORR_OK;
}

orr_code stg_plan_drop_empty(orr__plan *p, stg_lowering *l, orr_error *err)
{
    clearing c = {.p = p};
    orr_arena *arena = orr_arena_create();
    const orr_code code = arena ? clear(&c, l, arena, err) : orr_no_memory(err);
    orr_arena_destroy(arena);
    return code;
}
