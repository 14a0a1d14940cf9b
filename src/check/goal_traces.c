/* SPDX-License-Identifier: Apache-2.0 */
/* goal_traces.c - a GOAL schedule as traces: one node per operation.
 *
 * Traces have dependencies on the end of a node only.  An operation that depends on the start of
 * another gets that one's dependencies, which is the same moment unless the other one queues for
 * its CPU. Cost: the predecessors of one rank at a time, 4 bytes per edge. */
#include <orrery/lab/goal_traces.h>

#include "trace/builder.h"
#include "trace/goal_impl.h"

#include <stdio.h>

typedef struct maker {
    const orr_goal *g;
    const char *name; /* of the traces, in errors */
    orr_set *set;
    orr_error *err;
    uint32_t rank;
    uint32_t *first, *from; /* predecessors by operation; the top bit: its start */
    size_t first_room, from_room;
    orr__builder b;
    uint32_t *seen; /* by operation: 1 + the last one that took it over */
    size_t seen_room;
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
         i--) /* each points past its own list, where the next one starts */
        m->first[i] = m->first[i - 1];
    m->first[0] = 0;
    return true;
}

/* Edges to a start lead on to the dependencies of that operation; a cycle of such edges ends at its
 * first member. */
static bool collect(maker *m, uint32_t op)
{
    uint32_t *work = NULL;
    size_t count = 0, room = 0;
    bool is_good = orr_grow(&work, &room, 1);
    if (is_good)
        work[count++] = op;
    m->seen[op] = op + 1;
    while (is_good && count) {
        const uint32_t at = work[--count];
        for (uint32_t k = m->first[at]; is_good && k < m->first[at + 1]; k++) {
            const uint32_t earlier = m->from[k] & 0x7fffffffu;
            if (!(m->from[k] >> 31)) {
                orr__build_after(&m->b, earlier);
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

/* Peers and tags are int32, as feeders read them; a tag keeps its bits. */
static orr_code add_node(maker *m, uint32_t i)
{
    const orr_goal_op op = orr_goal_get(m->g, m->rank, i);
    const bool is_send = op.kind == ORR_GOAL_SEND, is_calc = op.kind == ORR_GOAL_CALC;
    orr__builder *b = &m->b;
    char name[96];
    const orr_code code = check_op(m, i, &op);
    if (code)
        return code;
    orr__build_node(b,
                    is_calc   ? ORR_NODE_COMP
                    : is_send ? ORR_NODE_COMM_SEND
                              : ORR_NODE_COMM_RECV,
                    orr_str_of(orr_goal_op_text(&op, name, sizeof name)));
    if (!collect(m, i))
        return orr_no_memory(m->err);
    orr__put_on_device(b);
    if (is_calc)
        orr__build_duration_ns(b, op.cpu, op.size);
    else
        orr__put_message(b, ORR_VALUE_INT32, (int32_t)(is_send ? m->rank : op.peer),
                         (int32_t)(is_send ? op.peer : m->rank), op.size, (int32_t)op.tag);
    orr__build_add(b);
    return b->code;
}

static orr_code add_rank(maker *m)
{
    const uint32_t ops = orr__goal_ops(m->g, m->rank);
    orr__build_open(&m->b, m->err);
    m->b.label = m->name;
    orr__build_trace(&m->b, "0.0.4");
    if (!m->b.code && !turn_edges(m))
        m->b.code = orr_no_memory(m->err);
    for (uint32_t i = 0; i < ops && !m->b.code; i++)
        m->b.code = add_node(m, i);
    if (ops == 0) { /* a trace has at least one node: an empty computation */
        orr__build_node(&m->b, ORR_NODE_COMP, orr_str_of("calc 0"));
        orr__put_on_device(&m->b);
        orr__build_add(&m->b);
    }
    return orr__build_rank(&m->b, m->set);
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
    orr_free(m.seen);
    if (code)
        orr_set_close(m.set);
    else
        *out = m.set;
    return code;
}
