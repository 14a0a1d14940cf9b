/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - from tensors to nodes: compute, collectives, messages, and what each depends on.
 *
 *     measure  symbols get numbers
 *     infer    collectives follow from how an operand lies and how it is needed
 *     plan     the nodes of one pipeline stage, in file order, with dependencies as indices
 *
 * A plan is made in steps: all nodes; compute nodes without work taken out; then, when asked for, clones for
 * further micro-batches and the merging of collectives. */
#ifndef ORR_SYMBOLIC_LOWER_H
#define ORR_SYMBOLIC_LOWER_H

#include "pipeline.h"
#include "rank_grid.h"

/* ---- measure ---- */

typedef struct orr__measure {
    orr__space *space;
    int64_t values[ORR__SYMBOLS_MOST];
    uint64_t known; /* bit s: symbol s has a value */
    double *memo;   /* by expression; NaN: not worked out */
    size_t memo_room;
} orr__measure;

void orr__measure_init(orr__measure *m, orr__space *s, const orr_stage_options *opt);
void orr__measure_fini(orr__measure *m);
/* The value of an expression: exact, then rounded once. */
orr_code orr__measure_expr(orr__measure *m, orr__expr x, double *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr__measure_layout(orr__measure *m, orr__layout l, double *out, orr_error *err)
    ORR_MUST_CHECK;

/* ---- infer ---- */

typedef struct orr__chain {
    uint8_t count;
    uint8_t kind[ORR__AXES]; /* orr_collective */
    uint8_t axis[ORR__AXES];
} orr__chain;

typedef struct orr__infer {
    orr__space *space;
    const orr__grid *grid;
    uint32_t symbols[ORR__AXES];
    orr_map *known; /* (made, needed) -> chain */
    orr__chain *chains;
    size_t count, room;
} orr__infer;

bool orr__infer_init(orr__infer *f, orr__space *s, const orr__grid *grid);
void orr__infer_fini(orr__infer *f);
/* The collectives between the two layouts, as a number: chain 0 has none.  label: whose operand it is. */
orr_code orr__infer_chain(orr__infer *f,
                          orr__layout made,
                          orr__layout needed,
                          const char *label,
                          uint32_t *out,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- plan ---- */

typedef enum orr__kind {
    ORR__COMP,
    ORR__COLL_A, /* a collective on the first operand */
    ORR__COLL_B, /* on the second */
    ORR__SEND,
    ORR__RECV
} orr__kind;

typedef struct orr__plan_node {
    uint64_t id;
    uint32_t tensor;
    uint32_t peer;                     /* of a message: the other stage */
    uint32_t dep, dep_count, dep_room; /* in the plan's deps: indices of nodes, repetitions kept */
    uint32_t clone;                    /* which micro-batch it was cloned for; 0: none */
    uint64_t tag;
    uint8_t kind, collective, axis;
    bool is_gone;
} orr__plan_node;

typedef struct orr__plan {
    orr__plan_node *nodes;
    size_t count, room;
    uint32_t *deps;
    size_t dep_count, dep_room;
    bool is_full; /* a list of dependencies is longer than any sensible graph's */
} orr__plan;

/* What the plans of all stages have in common. */
typedef struct orr__lowering {
    orr__tgraph *graph;
    const orr__pipeline *pipeline;
    orr__measure *measure;
    orr__infer *infer;
    uint64_t tag_base;
    uint32_t *chain_a, *chain_b; /* by tensor */
    uint64_t *id;                /* by tensor: of its compute node */
    uint32_t *node;              /* by tensor: index of its compute node in its plan */
    uint32_t *pair,
        *next_pair;   /* by tensor and by pair: what is sent or received, as a list; index + 1 */
    uint64_t pair_id; /* of the first send */
    orr_arena *arena;
} orr__lowering;

/* Numbers all nodes.  fini is due also after a failure. */
orr_code orr__lowering_init(orr__lowering *l, orr_error *err) ORR_MUST_CHECK;
void orr__lowering_fini(orr__lowering *l);

orr_code orr__plan_make(orr__plan *p, orr__lowering *l, uint32_t stage, orr_error *err)
    ORR_MUST_CHECK;
void orr__plan_fini(orr__plan *p);
/* Compute nodes without operations go; their children take over their parents. */
orr_code orr__plan_drop_empty(orr__plan *p, orr__lowering *l, orr_error *err) ORR_MUST_CHECK;
/* All nodes again for micro-batches 1 to count - 1. */
orr_code orr__plan_clone(orr__plan *p, uint64_t count, orr_error *err) ORR_MUST_CHECK;
/* A collective that another of its kind follows goes. */
orr_code orr__plan_merge(orr__plan *p, orr_error *err) ORR_MUST_CHECK;

/* One more dependency of a node.  False: out of memory, or is_full. */
bool orr__plan_depend(orr__plan *p, uint32_t node, uint32_t on);

#endif
