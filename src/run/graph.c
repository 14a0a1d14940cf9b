/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the dependencies of one trace, prepared for execution by ranks.
 *
 * Nodes are renumbered by ascending id (their *place*), because that is the order in which they are
 * issued.  A parent counts once however often a node names it.  If the rules say so
 * (merges_equal_ids), nodes with equal ids are merged: the last one counts, with the dependencies
 * of all.  One graph serves all ranks of a class; a rank itself keeps one counter per node.
 *
 * Cost: linear in nodes and edges, once per class; 13 bytes per node and 4 per edge. */
#include "run_state.h"

#include "trace/dag.h"

#include <inttypes.h>

#define NOTHING_STARTS "every node depends on another one: nothing can start"

void work_graph_fini(work_graph *g)
{
    orr_free(g->tables);
    orr_free(g->node);
    orr_free(g->child_first);
    orr_free(g->child);
    orr_free(g->parents);
    orr_free(g->slot);
    orr_free(g->ticks);
    for (size_t i = 0; i < g->pace_count; i++)
        orr_free(g->paces[i].ticks);
    orr_free(g->paces);
}

static orr_code refuse(const orr_trace *t, const char *what, orr_error *err)
{
    const orr_where w = orr_where_byte(t->path, ORR_NO_BYTE);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

static orr_code refuse_unsound(const orr_trace *t, const orr_rules_run *rules, orr_error *err)
{
    const orr_columns *c = &t->columns;
    if (c->count == 0)
        return refuse(t, "the trace has no nodes", err);
    if (c->duplicate_ids && !rules->merges_equal_ids)
        return refuse(t, "two nodes have the same id; 'orrery check' lists them", err);
    for (uint32_t i = 0; i < c->count && c->data_missing; i++) {
        bool is_missing = false;
        for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
            is_missing |= c->data_dep[e] == ORR_NO_NODE;
        if (is_missing) {
            const orr_where w = orr_trace_where(t, i);
            return orr_fail(err, ORR_EINPUT, &w,
                            "node %" PRIu64 " needs data of a node that is not in the trace; "
                            "'orrery check --fix' drops such dependencies",
                            c->id[i]);
        }
    }
    return ORR_OK;
}

/* Control dependencies on missing nodes count as met: converters write them for the process node,
 * which they leave out. */
static bool waits_for_control(const orr_columns *c, uint32_t i)
{
    for (uint32_t e = c->ctrl_first ? c->ctrl_first[i] : 0;
         c->ctrl_first && e < c->ctrl_first[i + 1]; e++) {
        if (c->ctrl_dep[e] != ORR_NO_NODE)
            return true;
    }
    return false;
}

/* The k-th node by id; equal ids in file order. */
static uint32_t by_id(const orr_trace *t, uint32_t k)
{
    return t->by_id ? t->by_id[k] : k;
}

static bool is_last_of_id(const orr_trace *t, uint32_t k)
{
    const orr_columns *c = &t->columns;
    return k + 1 == c->count || c->id[by_id(t, k)] != c->id[by_id(t, k + 1)];
}

/* Each of the three graphs (data, control, both) needs a node without parents (astra-sim.md 2). */
static orr_code refuse_rootless(const orr_trace *t, orr_error *err)
{
    const orr_columns *c = &t->columns;
    bool has_root[3] = {false, false, false}, data = false, ctrl = false;
    for (uint32_t k = 0; k < c->count; k++) {
        const uint32_t i = by_id(t, k);
        data |= c->data_first[i] != c->data_first[i + 1];
        ctrl |= waits_for_control(c, i);
        if (!is_last_of_id(t, k))
            continue;
        has_root[0] |= !data;
        has_root[1] |= !ctrl;
        has_root[2] |= !data && !ctrl;
        data = ctrl = false;
    }
    if (has_root[0] && has_root[1] && has_root[2])
        return ORR_OK;
    return refuse(t, NOTHING_STARTS, err);
}

static bool has_start(const work_graph *g)
{
    for (uint32_t p = 0; p < g->count; p++)
        if (g->parents[p] == 0)
            return true;
    return false;
}

static uint8_t slot_of(const orr_columns *c, uint32_t i)
{
    if (c->is_cpu_op && c->is_cpu_op[i] > 0)
        return WORK_SLOT_CPU;
    if (c->type[i] == ORR_NODE_COMP)
        return WORK_SLOT_COMP;
    /* Everything else shares one slot, accesses to memory too (astra-sim.md 6.2). */
    return c->type[i] == ORR_NODE_COMM_RECV ? WORK_SLOT_RECV : WORK_SLOT_COMM;
}

static bool fill(work_graph *g)
{
    const orr_trace *t = g->t;
    const orr_columns *c = &t->columns;
    orr__dag dag;
    uint32_t *place = orr_alloc(c->count, sizeof *place);
    for (uint32_t k = 0; place && k < c->count; k++) {
        const uint32_t i = by_id(t, k), p = g->count;
        g->node[p] = i;
        place[i] = p;
        g->slot[p] = slot_of(c, i);
        /* Nodes with one id share a place, which the last of them fills. */
        g->count += is_last_of_id(t, k);
    }
    const bool ok =
        place && orr__dag_build_renumbered(c, ORR__DAG_BOTH, t->by_id, place, g->count, &dag);
    orr_free(place);
    if (!ok)
        return false;
    g->child_first = dag.first;
    g->child = dag.child;
    g->parents = dag.waits;
    return true;
}

/* ---- streams ---- */

/* Does the metadata say that communication of different streams may overlap? */
static bool has_streams(const orr_trace *t)
{
    orr_attrs it = orr_trace_attrs(t);
    orr_attr a;
    int64_t v;
    while (t->has_metadata && orr_attrs_next(&it, &a))
        if (a.name.len == 7 && memcmp(a.name.ptr, "streams", 7) == 0)
            return orr_attr_int(&a, &v) && v != 0;
    return false;
}

/* The first stream has the slot that all communication has otherwise; beyond the last slot they
 * share it. */
static uint8_t slot_of_stream(work_graph *g, int64_t stream)
{
    if (g->stream[WORK_SLOT_COMM] == ORR_NO_VALUE)
        g->stream[WORK_SLOT_COMM] = stream;
    if (g->stream[WORK_SLOT_COMM] == stream)
        return WORK_SLOT_COMM;
    for (unsigned s = WORK_SLOT_STREAMS; s < g->slot_count; s++)
        if (g->stream[s] == stream)
            return (uint8_t)s;
    if (g->slot_count == WORK_SLOTS)
        return WORK_SLOTS - 1;
    g->stream[g->slot_count] = stream;
    return (uint8_t)g->slot_count++;
}

static void spread_streams(work_graph *g)
{
    const orr_columns *c = &g->t->columns;
    for (uint32_t p = 0; p < g->count && c->stream; p++)
        if (g->slot[p] == WORK_SLOT_COMM)
            g->slot[p] = slot_of_stream(g, c->stream[g->node[p]]);
}

orr_code work_graph_make(const orr_trace *t,
                         const orr_rules_run *rules,
                         work_graph *out,
                         orr_error *err)
{
    orr_code code = refuse_unsound(t, rules, err);
    if (code || (rules->needs_both_roots && (code = refuse_rootless(t, err))))
        return code;
    *out = (work_graph){
        .t = t, .slot_count = WORK_SLOT_STREAMS, .stream[WORK_SLOT_COMM] = ORR_NO_VALUE};
    const size_t n = t->columns.count;
    out->node = orr_alloc(n, sizeof *out->node);
    out->slot = orr_alloc(n, 1);
    const bool ok = out->node && out->slot && fill(out);
    if (!ok)
        return orr_no_memory(err);
    if (!rules->has_one_stream && has_streams(t))
        spread_streams(out);
    return has_start(out) ? ORR_OK : refuse(t, NOTHING_STARTS, err);
}
