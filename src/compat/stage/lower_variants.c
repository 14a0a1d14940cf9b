/* SPDX-License-Identifier: Apache-2.0 */
/* lower_variants.c - two switches of the reference: micro-batches as clones of nodes, and merged collectives
 * (specification, section 15). */
#include "lower.h"

#include "base/text/text.h"

enum { CLONE_IDS = 1000000000 };

/* ---- clones ---- */

/* Where clones go: those of node n, the nodes of its tensor being width[n], at base[n] + clone * width[n]. */
typedef struct places {
    uint32_t *base, *width;
} places;

static void place_clones(const orr__plan *p, uint64_t count, const places *at)
{
    uint32_t next = 0;
    for (size_t i = 0, end; i < p->count; i = end) {
        for (end = i + 1; end < p->count && p->nodes[end].tensor == p->nodes[i].tensor;)
            end++;
        for (size_t k = i; k < end; k++) {
            at->base[k] = next + (uint32_t)(k - i);
            at->width[k] = (uint32_t)(end - i);
        }
        next += (uint32_t)((end - i) * count);
    }
}

static bool clone_node(
    orr__plan *to, const orr__plan *from, size_t node, uint32_t clone, const places *at)
{
    stg_plan_node n = from->nodes[node];
    const uint32_t *deps = from->deps + n.dep;
    const uint32_t count = n.dep_count;
    n.id += (uint64_t)clone * CLONE_IDS;
    n.clone = clone;
    n.dep = n.dep_count = n.dep_room = 0;
    if (!orr_grow(&to->nodes, &to->room, to->count + 1))
        return false;
    to->nodes[to->count++] = n;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t dep = at->base[deps[i]] + clone * at->width[deps[i]];
        if (!stg_plan_depend(to, (uint32_t)to->count - 1, dep))
            return false;
    }
    return true;
}

/* The nodes of one tensor, for one micro-batch after the other; then those of the next. */
static bool clone_all(orr__plan *to, const orr__plan *from, uint64_t count, orr_arena *arena)
{
    const places at = {orr_arena_new(arena, from->count + 1, uint32_t),
                       orr_arena_new(arena, from->count + 1, uint32_t)};
    if (!at.base || !at.width)
        return false;
    place_clones(from, count, &at);
    for (size_t i = 0; i < from->count; i += at.width[i]) {
        for (uint64_t k = 0; k < count * at.width[i]; k++) {
            const size_t node = i + (size_t)(k % at.width[i]);
            if (!clone_node(to, from, node, (uint32_t)(k / at.width[i]), &at))
                return false;
        }
    }
    return true;
}

orr_code stg_plan_clone(orr__plan *p, uint64_t count, orr_error *err)
{
    orr__plan out = {0};
    if (p->count * count > INT32_MAX)
        return orr_fail(err, ORR_EINPUT, NULL, "too many nodes: the micro-batches are too many");
    orr_arena *arena = orr_arena_create();
    const bool ok = arena && clone_all(&out, p, count, arena);
    orr_arena_destroy(arena);
    if (!ok) {
        stg_plan_fini(&out);
        return orr_no_memory(err);
    }
    stg_plan_fini(p);
    *p = out;
    return ORR_OK;
}

/* ---- merged collectives ---- */

static bool is_collective(const stg_plan_node *n)
{
    return n->kind == ORR__COLL_A || n->kind == ORR__COLL_B;
}

/* Parents once each, in order of first occurrence. */
static void drop_repeated(orr__plan *p, uint32_t *seen)
{
    for (size_t i = 0; i < p->count; i++) {
        stg_plan_node *n = &p->nodes[i];
        uint32_t *deps = p->deps + n->dep, kept = 0;
        for (uint32_t d = 0; d < n->dep_count; d++) {
            if (seen[deps[d]] == i + 1)
                continue;
            seen[deps[d]] = (uint32_t)i + 1;
            deps[kept++] = deps[d];
        }
        n->dep_count = kept;
    }
}

static bool has_dep(const orr__plan *p, uint32_t node, uint32_t dep)
{
    const stg_plan_node *n = &p->nodes[node];
    for (uint32_t i = 0; i < n->dep_count; i++) {
        if (p->deps[n->dep + i] == dep)
            return true;
    }
    return false;
}

/* Node i inherits the parents of its parents of the same kind, which go.  Only the parents it had at first
 * are looked at. */
static bool inherit(orr__plan *p, uint32_t i)
{
    const uint32_t first = p->nodes[i].dep_count;
    for (uint32_t d = 0; d < first; d++) {
        const uint32_t parent = p->deps[p->nodes[i].dep + d];
        if (!is_collective(&p->nodes[parent]) ||
            p->nodes[parent].collective != p->nodes[i].collective)
            continue;
        for (uint32_t k = 0; k < p->nodes[parent].dep_count; k++) {
            const uint32_t dep = p->deps[p->nodes[parent].dep + k];
            if (!has_dep(p, i, dep) && !stg_plan_depend(p, i, dep))
                return false;
        }
        p->nodes[parent].is_gone = true;
    }
    return true;
}

/* Nodes that are gone leave no trace, not even with their other children. */
static void forget_gone(orr__plan *p, uint32_t *moved)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < p->count; i++)
        moved[i] = p->nodes[i].is_gone ? ORR__NONE : kept++;
    kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        stg_plan_node n = p->nodes[i];
        uint32_t *deps = p->deps + n.dep, left = 0;
        if (n.is_gone)
            continue;
        for (uint32_t d = 0; d < n.dep_count; d++) {
            if (moved[deps[d]] != ORR__NONE)
                deps[left++] = moved[deps[d]];
        }
        n.dep_count = left;
        p->nodes[kept++] = n;
    }
    p->count = kept;
}

orr_code stg_plan_merge(orr__plan *p, orr_error *err)
{
    orr_arena *arena = orr_arena_create();
    uint32_t *seen = arena ? orr_arena_new(arena, p->count + 1, uint32_t) : NULL;
    bool ok = seen != NULL;
    if (ok)
        drop_repeated(p, seen);
    for (size_t i = 0; i < p->count && ok; i++) {
        if (is_collective(&p->nodes[i]))
            ok = inherit(p, (uint32_t)i);
    }
    if (ok)
        forget_gone(p, seen);
    orr_arena_destroy(arena);
    return ok ? ORR_OK : orr_no_memory(err);
}
