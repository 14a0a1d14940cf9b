/* SPDX-License-Identifier: Apache-2.0 */
/* goal_traces.c - a GOAL schedule as traces: one node for each operation.
 *
 * Traces have dependencies on the end of a node only.  An operation that waits for the start of another waits for
 * whatever that one waits for, which is the same moment unless the other one queues for its CPU.
 * Cost: the predecessors of one rank at a time, 4 bytes an edge. */
#include <orrery/goal_traces.h>

#include "base/memory/buffer.h"
#include "trace/goal_impl.h"
#include "trace/trace_impl.h"

#include <stdio.h>

enum { CPUS = 256, NS_PER_US = 1000 };

typedef struct maker {
    const orr_goal *g;
    const char *name; /* of the traces, in errors */
    orr_set *set;
    orr_error *err;
    uint32_t rank;
    uint32_t *first, *from; /* predecessors by operation; the top bit: its start */
    size_t first_room, from_room;
    uint64_t *deps; /* of the operation at hand */
    size_t dep_count, dep_room;
    uint32_t *seen; /* by operation: 1 + the last one that took it over */
    size_t seen_room;
    uint64_t carried[CPUS]; /* by CPU: ns that rounding has taken so far */
} maker;

/* ---- predecessors */

static bool turn_edges(maker *m)
{
    const orr__goal_node *nodes = orr__goal_nodes(m->g, m->rank);
    const uint32_t *edges = orr__goal_edges(m->g, m->rank), ops = orr__goal_ops(m->g, m->rank);
    if (!orr_grow(&m->first, &m->first_room, (size_t)ops + 2) ||
        !orr_grow(&m->from, &m->from_room, (size_t)nodes[ops].then + 1) ||
        !orr_grow(&m->seen, &m->seen_room, (size_t)ops + 1))
        return false;
    memset(m->seen, 0, ((size_t)ops + 1) * sizeof *m->seen);
    uint32_t at = 0;
    for (uint32_t i = 0; i < ops; i++) {
        m->first[i] = at;
        at += nodes[i].waits;
    }
    for (uint32_t i = 0; i < ops; i++) {
        for (uint32_t k = nodes[i].then; k < nodes[i + 1].then; k++)
            m->from[m->first[edges[k]]++] = k < nodes[i].started ? i : i | 0x80000000u;
    }
    for (uint32_t i = ops; i > 0;
         i--) /* each points behind its own list: that is where the next one's begins */
        m->first[i] = m->first[i - 1];
    m->first[0] = 0;
    return true;
}

static bool add_dep(maker *m, uint32_t op)
{
    for (size_t i = 0; i < m->dep_count; i++) {
        if (m->deps[i] == op)
            return true;
    }
    if (!orr_grow(&m->deps, &m->dep_room, m->dep_count + 1))
        return false;
    m->deps[m->dep_count++] = op;
    return true;
}

/* Edges to a start lead on to what that operation waits for; a circle of such edges ends at its first member. */
static bool collect(maker *m, uint32_t op)
{
    uint32_t *work = NULL;
    size_t count = 0, room = 0;
    bool is_good = orr_grow(&work, &room, 1);
    m->dep_count = 0;
    if (is_good)
        work[count++] = op;
    m->seen[op] = op + 1;
    while (is_good && count) {
        const uint32_t at = work[--count];
        for (uint32_t k = m->first[at]; is_good && k < m->first[at + 1]; k++) {
            const uint32_t earlier = m->from[k] & 0x7fffffffu;
            if (!(m->from[k] >> 31)) {
                is_good = add_dep(m, earlier);
            } else if (m->seen[earlier] != op + 1) {
                m->seen[earlier] = op + 1;
                is_good = orr_grow(&work, &room, count + 1);
                if (is_good)
                    work[count++] = earlier;
            }
        }
    }
    orr_free(work);
    return is_good;
}

/* ---- nodes */

/* Peers and tags are int32, as feeders read them; a tag keeps its bits. */
static orr_attr attr_int(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT32, .value.i = (int32_t)value};
}

static orr_code check_op(const maker *m, uint32_t i, const orr_goal_op *op)
{
    char words[96];
    if (op->kind == ORR_GOAL_CALC)
        return ORR_OK;
    if (op->tag == ORR_GOAL_ANY || (op->kind == ORR_GOAL_RECV && op->peer == ORR_GOAL_ANY))
        return orr_fail(m->err, ORR_EINPUT, NULL,
                        "rank %u: operation %u (%s): traces have no wildcards", m->rank, i + 1,
                        orr_goal_op_text(op, words, sizeof words));
    if (op->peer >= m->g->rank_count || op->size > INT64_MAX)
        return orr_fail(
            m->err, ORR_EINPUT, NULL,
            "rank %u: operation %u (%s): the peer is not one of %u ranks, or the size is too large",
            m->rank, i + 1, orr_goal_op_text(op, words, sizeof words), m->g->rank_count);
    return ORR_OK;
}

static uint64_t microseconds(maker *m, const orr_goal_op *op)
{
    const uint64_t carried = m->carried[op->cpu], us = op->size / NS_PER_US;
    const uint64_t rest = op->size % NS_PER_US + carried;
    m->carried[op->cpu] = rest % NS_PER_US;
    return us + rest / NS_PER_US;
}

static orr_code add_node(maker *m, orr_trace *t, uint32_t i)
{
    const orr_goal_op op = orr_goal_get(m->g, m->rank, i);
    const bool is_send = op.kind == ORR_GOAL_SEND;
    char name[96];
    orr_code code = check_op(m, i, &op);
    if (code)
        return code;
    if (!collect(m, i))
        return orr_no_memory(m->err);
    const orr_attr attrs[] = {
        {.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value.u = 0},
        attr_int("comm_src", is_send ? m->rank : op.peer),
        attr_int("comm_dst", is_send ? op.peer : m->rank),
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = (int64_t)op.size},
        attr_int("comm_tag", op.tag),
    };
    orr_draft d = {.id = i,
                   .name = orr_str_of(orr_goal_op_text(&op, name, sizeof name)),
                   .type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV,
                   .data_deps = m->deps,
                   .data_count = m->dep_count,
                   .attrs = attrs,
                   .attr_count = sizeof attrs / sizeof *attrs};
    if (op.kind == ORR_GOAL_CALC) {
        d.type = ORR_NODE_COMP;
        d.duration_us = microseconds(m, &op);
        d.attr_count = 1;
    }
    return orr_trace_append(t, &d, m->err);
}

/* A rank without operations: a trace must have a node, so it computes for no time. */
static orr_code add_idle(maker *m, orr_trace *t)
{
    const orr_attr attr = {.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value.u = 0};
    const orr_draft d = {
        .name = orr_str_of("calc 0"), .type = ORR_NODE_COMP, .attrs = &attr, .attr_count = 1};
    return orr_trace_append(t, &d, m->err);
}

static orr_code add_rank(maker *m)
{
    orr_trace *t;
    const uint32_t ops = orr__goal_ops(m->g, m->rank);
    orr_code code =
        orr__trace_create(m->name, &(orr_meta){.version = orr_str_of("0.0.4")}, &t, m->err);
    if (code)
        return code;
    memset(m->carried, 0, sizeof m->carried);
    if (!turn_edges(m))
        code = orr_no_memory(m->err);
    for (uint32_t i = 0; i < ops && !code; i++)
        code = add_node(m, t, i);
    if (!code && ops == 0)
        code = add_idle(m, t);
    if (!code)
        code = orr_trace_seal(t, m->err);
    if (code) {
        orr_trace_destroy(t);
        return code;
    }
    return orr_set_add(m->set, t, m->err);
}

orr_code orr_goal_traces(const orr_goal *g, const char *name, orr_set **out, orr_error *err)
{
    maker m = {.g = g, .name = name, .err = err};
    *out = NULL;
    orr_code code = orr_set_create(&m.set, err);
    for (; m.rank < g->rank_count && !code; m.rank++)
        code = add_rank(&m);
    orr_free(m.first);
    orr_free(m.from);
    orr_free(m.deps);
    orr_free(m.seen);
    if (code)
        orr_set_close(m.set);
    else
        *out = m.set;
    return code;
}
