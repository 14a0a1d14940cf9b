/* SPDX-License-Identifier: Apache-2.0 */
/* dag.c - see dag.h.
 *
 * Children are a CSR built by counting: one pass counts, one places.  Placing advances each start
 * to its end, which is the next one's start, so that shifting the array by one restores them. */
#include "dag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct maker {
    const orr_columns *c;
    orr__dag *g;
    unsigned how;
    orr_arena *arena;
    const uint32_t *order, *vertex;
    uint32_t *mark; /* with ONCE, by vertex: 1 + the last child that named it */
} maker;

static uint32_t *take(const maker *m, size_t n)
{
    return m->arena ? orr_arena_new(m->arena, n, uint32_t) : orr_alloc(n, sizeof(uint32_t));
}

static bool has_ctrl(const maker *m)
{
    return m->how & ORR__DAG_CTRL && m->c->ctrl_first;
}

/* ---- every mention ---- */

static void count_list(const maker *m, const uint32_t *first, const uint32_t *dep)
{
    const bool no_loops = m->how & ORR__DAG_NO_LOOPS;
    const uint32_t n = m->c->count;
    uint32_t *starts = m->g->first, *waits = m->g->waits;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            if (dep[e] == ORR_NO_NODE || (no_loops && dep[e] == i))
                continue;
            starts[dep[e] + 1]++;
            waits[i]++;
        }
    }
}

static void place_list(const maker *m, const uint32_t *first, const uint32_t *dep)
{
    const bool no_loops = m->how & ORR__DAG_NO_LOOPS;
    const uint32_t n = m->c->count;
    uint32_t *starts = m->g->first, *child = m->g->child;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t e = first[i]; e < first[i + 1]; e++)
            if (dep[e] != ORR_NO_NODE && !(no_loops && dep[e] == i))
                child[starts[dep[e]]++] = i;
    }
}

static void count_mentions(const maker *m)
{
    if (m->how & ORR__DAG_DATA)
        count_list(m, m->c->data_first, m->c->data_dep);
    if (has_ctrl(m))
        count_list(m, m->c->ctrl_first, m->c->ctrl_dep);
}

static void place_mentions(const maker *m)
{
    if (m->how & ORR__DAG_DATA)
        place_list(m, m->c->data_first, m->c->data_dep);
    if (m->g->ctrl_from)
        memcpy(m->g->ctrl_from, m->g->first, (size_t)m->g->count * sizeof *m->g->first);
    if (has_ctrl(m))
        place_list(m, m->c->ctrl_first, m->c->ctrl_dep);
}

/* ---- each parent once ---- */

static void visit_list(
    const maker *m, uint32_t i, const uint32_t *first, const uint32_t *dep, bool is_placing)
{
    orr__dag *g = m->g;
    const uint32_t child = m->vertex ? m->vertex[i] : i;
    if (!is_placing && m->how & ORR__DAG_ALL_MENTIONS)
        g->waits[child] += first[i + 1] - first[i];
    for (uint32_t e = first[i]; e < first[i + 1]; e++) {
        if (dep[e] == ORR_NO_NODE)
            continue;
        const uint32_t parent = m->vertex ? m->vertex[dep[e]] : dep[e];
        if (m->mark[parent] == child + 1)
            continue;
        m->mark[parent] = child + 1;
        if (is_placing) {
            g->child[g->first[parent]++] = child;
        } else {
            g->first[parent + 1]++;
            g->waits[child] += !(m->how & ORR__DAG_ALL_MENTIONS);
        }
    }
}

/* Nodes that share a number must be consecutive, or the marks would not work. */
static void visit_once(const maker *m, bool is_placing)
{
    memset(m->mark, 0, (size_t)m->g->count * sizeof *m->mark);
    for (uint32_t k = 0; k < m->c->count; k++) {
        const uint32_t i = m->order ? m->order[k] : k;
        if (m->how & ORR__DAG_DATA)
            visit_list(m, i, m->c->data_first, m->c->data_dep, is_placing);
        if (has_ctrl(m))
            visit_list(m, i, m->c->ctrl_first, m->c->ctrl_dep, is_placing);
    }
}

/* ---- both ---- */

static bool fill(const maker *m)
{
    orr__dag *g = m->g;
    const bool is_once = m->how & ORR__DAG_ONCE;
    if (is_once)
        visit_once(m, false);
    else
        count_mentions(m);
    for (uint32_t i = 0; i < g->count; i++)
        g->first[i + 1] += g->first[i];
    g->child = take(m, (size_t)g->first[g->count] + 1);
    if (!g->child)
        return false;
    if (is_once)
        visit_once(m, true);
    else
        place_mentions(m);
    memmove(g->first + 1, g->first, (size_t)g->count * sizeof *g->first);
    g->first[0] = 0;
    return true;
}

static bool build(maker *m, uint32_t count)
{
    const orr_columns *c = m->c;
    const uint64_t edges = (uint64_t)(m->how & ORR__DAG_DATA ? c->data_first[c->count] : 0) +
                           (has_ctrl(m) ? c->ctrl_first[c->count] : 0);
    *m->g = (orr__dag){.count = count};
    if (edges > UINT32_MAX)
        return false;
    m->g->first = take(m, (size_t)count + 2);
    m->g->waits = take(m, (size_t)count + 1);
    if (m->how & ORR__DAG_SPLIT)
        m->g->ctrl_from = take(m, (size_t)count + 1);
    m->mark = m->how & ORR__DAG_ONCE ? orr_alloc((size_t)count + 1, sizeof *m->mark) : NULL;
    const bool ok = m->g->first && m->g->waits && (m->g->ctrl_from || !(m->how & ORR__DAG_SPLIT)) &&
                    (m->mark || !(m->how & ORR__DAG_ONCE)) && fill(m);
    orr_free(m->mark);
    if (!ok && !m->arena)
        orr__dag_fini(m->g);
    return ok;
}

bool orr__dag_build(const orr_columns *c, unsigned how, orr_arena *a, orr__dag *out)
{
    maker m = {.c = c, .g = out, .how = how, .arena = a};
    return build(&m, c->count);
}

bool orr__dag_build_renumbered(const orr_columns *c,
                               unsigned how,
                               const uint32_t *order,
                               const uint32_t *vertex,
                               uint32_t count,
                               orr__dag *out)
{
    maker m = {.c = c, .g = out, .how = how | ORR__DAG_ONCE, .order = order, .vertex = vertex};
    return build(&m, count);
}

void orr__dag_fini(orr__dag *g)
{
    orr_free(g->first);
    orr_free(g->child);
    orr_free(g->ctrl_from);
    orr_free(g->waits);
    *g = (orr__dag){0};
}

/* ---- cycles ---- */

/* The order array doubles as the queue. */
uint32_t orr__dag_order(const orr__dag *g, uint32_t *left, uint32_t *order)
{
    uint32_t count = 0;
    memcpy(left, g->waits, (size_t)g->count * sizeof *left);
    for (uint32_t i = 0; i < g->count; i++)
        if (left[i] == 0)
            order[count++] = i;
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t e = g->first[order[at]]; e < g->first[order[at] + 1]; e++)
            if (--left[g->child[e]] == 0)
                order[count++] = g->child[e];
    return count;
}

/* Long ones are abbreviated in the middle. */
static void put_cycle(const uint64_t *ids, size_t count, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        const bool is_cut = count > 10 && i == 5;
        const int n =
            snprintf(out + used, size - used, is_cut ? "%s... (%" PRIu64 " more)" : "%s%" PRIu64,
                     i ? " -> " : "", is_cut ? (uint64_t)count - 9 : ids[i]);
        used += n > 0 ? (size_t)n : 0;
        if (is_cut)
            i = count - 5;
    }
}

orr_code orr__fail_cycle(const uint32_t *path,
                         uint32_t length,
                         uint32_t again,
                         uint64_t (*id_of)(const void *context, uint32_t node),
                         const void *context,
                         const orr_where *where,
                         orr_error *err)
{
    uint32_t begin = 0;
    char text[240];
    while (path[begin] != again)
        begin++;
    const uint32_t count = length - begin + 1; /* with the first one repeated at the end */
    uint64_t *ids = orr_alloc(count, sizeof *ids);
    if (!ids)
        return orr_no_memory(err);
    for (uint32_t i = 0; i + 1 < count; i++) /* parents were followed, so reverse it */
        ids[i] = id_of(context, path[length - 1 - i]);
    ids[count - 1] = ids[0];
    put_cycle(ids, count, text, sizeof text);
    orr_free(ids);
    return orr_fail(err, ORR_EINPUT, where, "dependencies form a cycle of %u nodes: %s", count - 1,
                    text);
}
