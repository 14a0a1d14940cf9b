/* SPDX-License-Identifier: Apache-2.0 */
/* dag.h - the inverted dependencies of a trace: the children of each node, and the number of its
 * parents.
 *
 *     orr__dag g;
 *     if (!orr__dag_build(orr_trace_columns(t), ORR__DAG_BOTH, NULL, &g)) return orr_no_memory(err);
 *     for (uint32_t e = g.first[i]; e < g.first[i + 1]; e++)      // node i has finished
 *         if (--waits[g.child[e]] == 0) start(g.child[e]);
 *     orr__dag_fini(&g);
 *
 * Used by feeders, checks, views and simulations.  A trace may have cycles; orr__dag_order detects
 * them.  Cost: two passes over the dependencies; 8 bytes per node and 4 per dependency. */
#ifndef ORR_TRACE_DAG_H
#define ORR_TRACE_DAG_H

#include <orrery/trace.h>

#include "base/memory/memory.h"

typedef struct orr__dag {
    uint32_t count;
    uint32_t *first, *child; /* the children of node i: child[first[i] .. first[i + 1]) */
    uint32_t *ctrl_from;     /* with SPLIT: from here on through a control dependency */
    uint32_t *waits;
} orr__dag;

/* Dependencies on missing nodes have no child entry and, except with ALL_MENTIONS, are not waited
 * for.  A dependency listed twice counts twice on both sides, except with ONCE. */
enum {
    ORR__DAG_DATA = 1, /* data dependencies */
    ORR__DAG_CTRL = 2, /* control dependencies */
    ORR__DAG_BOTH = ORR__DAG_DATA | ORR__DAG_CTRL,
    ORR__DAG_NO_LOOPS = 4,     /* without self-dependencies */
    ORR__DAG_SPLIT = 8,        /* data before control, and ctrl_from; not with ONCE */
    ORR__DAG_ONCE = 16,        /* a parent has a child once, however often the child names it */
    ORR__DAG_ALL_MENTIONS = 32 /* with ONCE: waits still counts every mention */
};

/* The arena owns the arrays; NULL: orr__dag_fini frees them.  False: out of memory. */
bool orr__dag_build(const orr_columns *c, unsigned how, orr_arena *a, orr__dag *out);
/* Renumbers nodes: vertex[i] of `count` is node i's number, which several nodes may share; order
 * lists the nodes by number (NULL: 0, 1, ...).  Only with ONCE. */
bool orr__dag_build_renumbered(const orr_columns *c,
                               unsigned how,
                               const uint32_t *order,
                               const uint32_t *vertex,
                               uint32_t count,
                               orr__dag *out);
void orr__dag_fini(orr__dag *g); /* an all-zero one is fine */

/* A topological order; returns its length.  Less than g->count: the remaining nodes depend on
 * themselves, directly or not, and have left[i] > 0.  Both arrays have g->count entries. */
uint32_t orr__dag_order(const orr__dag *g, uint32_t *left, uint32_t *order);

/* ORR_EINPUT for the cycle at the end of path, each of whose nodes depends on the next and the last
 * on `again`: "dependencies form a cycle of 2 nodes: 1 -> 4 -> 1". */
orr_code orr__fail_cycle(const uint32_t *path,
                         uint32_t length,
                         uint32_t again,
                         uint64_t (*id_of)(const void *context, uint32_t node),
                         const void *context,
                         const orr_where *where,
                         orr_error *err);

#endif
