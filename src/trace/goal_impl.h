/* SPDX-License-Identifier: Apache-2.0 */
/* goal_impl.h - internals of a GOAL schedule, for readers, writers and the simulator.
 *
 *     ranks    | first node, first edge | ...            one more than there are ranks
 *     nodes    | n0 n1 n2 ... end | n0 n1 ... end | ...  rank after rank, each with one node at its end
 *     edges    | then(n0) started(n0) then(n1) ... | ... indices of nodes, counted within the rank
 *
 * A node's successors are edges [then, started) when it finishes and [started, next node's then)
 * when it starts, counted from the first edge of its rank.  The end node exists for the second of
 * these.  An operation is half a cache line, because a simulator accesses operations of different
 * ranks in turn. */
#ifndef ORR_TRACE_GOAL_IMPL_H
#define ORR_TRACE_GOAL_IMPL_H

#include <orrery/lab/goal.h>

#include "base/memory/memory.h"

typedef struct orr__goal_node {
    uint64_t size;
    uint32_t peer, tag;
    uint32_t then, started; /* first successor of each kind */
    uint32_t waits;         /* edges that lead here */
    uint8_t kind, cpu, nic, spare;
} orr__goal_node;

typedef struct orr__goal_rank {
    uint64_t first_node, first_edge;
} orr__goal_rank;

/* A requested edge, until its rank ends. */
typedef struct orr__goal_wish {
    uint32_t later, earlier; /* the top bit of earlier: waits for the start */
} orr__goal_wish;

struct orr_goal {
    orr__goal_node *nodes;
    uint32_t *edges;
    orr__goal_rank *ranks;
    orr__goal_wish *wishes;
    size_t node_count, node_room, edge_count, edge_room, rank_room, wish_count, wish_room;
    uint32_t rank_count, rank_done; /* announced, and completed */
    bool is_in_rank;
    orr_goal_totals totals;
    size_t job_count;    /* 0: one schedule, not a machine of jobs */
    uint32_t *job_first; /* by job, and one more: its first rank in job_hosts */
    uint32_t *job_hosts; /* the host of each rank, job after job */
};

enum { ORR__GOAL_MAX_OPS = 0x7fffffff };

static inline const orr__goal_node *orr__goal_nodes(const orr_goal *g, uint32_t rank)
{
    return g->nodes + g->ranks[rank].first_node;
}

static inline const uint32_t *orr__goal_edges(const orr_goal *g, uint32_t rank)
{
    return g->edges + g->ranks[rank].first_edge;
}

static inline uint32_t orr__goal_ops(const orr_goal *g, uint32_t rank)
{
    return (uint32_t)(g->ranks[rank + 1].first_node - g->ranks[rank].first_node - 1);
}

/* Like orr_goal_add and orr_goal_require inside a rank, with arguments known to be valid. */
static inline bool orr__goal_push(orr_goal *g, const orr__goal_node *n)
{
    if (!orr_grow(&g->nodes, &g->node_room, g->node_count + 2))
        return false;
    g->nodes[g->node_count++] = *n;
    return true;
}

static inline bool orr__goal_wish_for(orr_goal *g, uint32_t later, uint32_t earlier, bool on_start)
{
    if (!orr_grow(&g->wishes, &g->wish_room, g->wish_count + 1))
        return false;
    g->wishes[g->wish_count++] =
        (orr__goal_wish){later, on_start ? earlier | 0x80000000u : earlier};
    return true;
}

/* Readers and writers of one format each; a text's bytes, a binary's bytes, an open output. */
struct orr_output;

enum { ORR__GOAL_MAGIC = 4223, ORR__GOAL_CONSUMED = 2342, ORR__GOAL_NODE_BYTES = 39 };

#endif
