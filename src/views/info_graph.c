/* SPDX-License-Identifier: Apache-2.0 */
/* info_graph.c - the dependency graph of one trace: roots, leaves, levels, the critical path.
 *
 * A node's level is the number of nodes on the longest chain that ends in it; its finish is its
 * duration plus the latest finish among the nodes it waits for.  Data and control dependencies
 * count alike; those on missing nodes are ignored.  Both are computed in one pass in topological
 * order.  File order nearly always is one (columns->is_topological); otherwise dag.h computes one,
 * or finds a cycle. Cost: O(nodes + dependencies) time, 16 bytes per node (32, and 4 per
 * dependency, when the order must be made). */
#include "info_impl.h"

#include "trace/dag.h"

typedef struct walk {
    const orr_columns *c;
    uint64_t *finish;
    uint32_t *level, *before; /* before: the dependency that finished last */
} walk;

/* *order stays NULL if file order is topological. */
static orr_code find_order(
    const orr_columns *c, orr_arena *a, const uint32_t **order, bool *is_cyclic, orr_error *err)
{
    orr__dag g;
    *order = NULL;
    *is_cyclic = false;
    if (c->is_topological)
        return ORR_OK;
    uint32_t *list = orr_arena_new(a, c->count, uint32_t);
    uint32_t *left = orr_arena_new(a, c->count, uint32_t);
    if (!list || !left || !orr__dag_build(c, ORR__DAG_BOTH, NULL, &g))
        return orr_no_memory(err);
    *is_cyclic = orr__dag_order(&g, left, list) != c->count;
    *order = list;
    orr__dag_fini(&g);
    return ORR_OK;
}

/* ---- measuring ---- */

static void wait_for(walk *w, uint32_t i, uint64_t *latest, uint32_t dep)
{
    if (dep == ORR_NO_NODE)
        return;
    if (w->level[dep] > w->level[i])
        w->level[i] = w->level[dep];
    if (w->before[i] == ORR_NO_NODE || w->finish[dep] > *latest) {
        *latest = w->finish[dep];
        w->before[i] = dep;
    }
}

static void place_node(walk *w, uint32_t i)
{
    const orr_columns *c = w->c;
    uint64_t latest = 0;
    w->level[i] = 0;
    w->before[i] = ORR_NO_NODE;
    for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
        wait_for(w, i, &latest, c->data_dep[e]);
    for (uint32_t e = c->ctrl_first ? c->ctrl_first[i] : 0;
         c->ctrl_first && e < c->ctrl_first[i + 1]; e++)
        wait_for(w, i, &latest, c->ctrl_dep[e]);
    w->level[i]++;
    w->finish[i] = orr_sat_add(latest, c->duration_us[i]);
}

static void mark_parents(uint8_t *has_child, const uint32_t *deps, uint32_t count)
{
    for (uint32_t e = 0; e < count; e++)
        if (deps[e] != ORR_NO_NODE)
            has_child[deps[e]] = 1;
}

static bool is_root(const orr_columns *c, uint32_t i)
{
    for (uint32_t k = 0, n = orr__dep_count(c, i); k < n; k++)
        if (orr__dep_at(c, i, k) != ORR_NO_NODE)
            return false;
    return true;
}

static orr_code count_ends(const orr_columns *c,
                           orr_arena *a,
                           orr__graph_shape *out,
                           orr_error *err)
{
    uint8_t *has_child = orr_arena_new(a, c->count, uint8_t);
    if (!has_child)
        return orr_no_memory(err);
    mark_parents(has_child, c->data_dep, c->data_first[c->count]);
    if (c->ctrl_first)
        mark_parents(has_child, c->ctrl_dep, c->ctrl_first[c->count]);
    for (uint32_t i = 0; i < c->count; i++) {
        out->roots += is_root(c, i);
        out->leaves += !has_child[i];
    }
    return ORR_OK;
}

static orr_code count_levels(const walk *w, orr_arena *a, orr__graph_shape *out, orr_error *err)
{
    for (uint32_t i = 0; i < w->c->count; i++)
        if (w->level[i] > out->levels)
            out->levels = w->level[i];
    uint32_t *wide = orr_arena_new(a, (size_t)out->levels + 1, uint32_t);
    if (!wide)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < w->c->count; i++)
        if (++wide[w->level[i]] > out->width)
            out->width = wide[w->level[i]];
    return ORR_OK;
}

/* Back from the node that finishes last; the first of several. */
static orr_code trace_back(const walk *w, orr_arena *a, orr__graph_shape *out, orr_error *err)
{
    uint32_t last = 0;
    for (uint32_t i = 1; i < w->c->count; i++)
        if (w->finish[i] > w->finish[last])
            last = i;
    out->length_us = w->finish[last];
    for (uint32_t i = last; i != ORR_NO_NODE; i = w->before[i])
        out->path_count++;
    if (!(out->path = orr_arena_new(a, out->path_count, uint32_t)))
        return orr_no_memory(err);
    uint32_t at = out->path_count;
    for (uint32_t i = last; i != ORR_NO_NODE; i = w->before[i])
        out->path[--at] = i;
    return ORR_OK;
}

static orr_code measure(const orr_columns *c,
                        const uint32_t *order,
                        orr_arena *a,
                        orr__graph_shape *out,
                        orr_error *err)
{
    walk w = {.c = c,
              .finish = orr_arena_new(a, c->count, uint64_t),
              .level = orr_arena_new(a, c->count, uint32_t),
              .before = orr_arena_new(a, c->count, uint32_t)};
    if (!w.finish || !w.level || !w.before)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < c->count; k++)
        place_node(&w, order ? order[k] : k);
    const orr_code code = count_levels(&w, a, out, err);
    return code ? code : trace_back(&w, a, out, err);
}

orr_code orr__graph_measure(const orr_columns *c,
                            orr_arena *a,
                            orr__graph_shape *out,
                            orr_error *err)
{
    const uint32_t *order;
    *out = (orr__graph_shape){0};
    if (c->count == 0)
        return ORR_OK;
    orr_code code = count_ends(c, a, out, err);
    if (code || (code = find_order(c, a, &order, &out->is_cyclic, err)) || out->is_cyclic)
        return code;
    return measure(c, order, a, out, err);
}
