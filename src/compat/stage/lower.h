/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - from tensors to nodes: compute, collectives, messages and their dependencies.
 *
 *     measure  values of symbols
 *     infer    collectives from the layout an operand has and the one it needs
 *     plan     the nodes of one pipeline stage, in file order, with dependencies as indices
 *
 * A plan is made in steps: create all nodes; drop compute nodes without work; optionally clone them
 * for further micro-batches and merge collectives. */
#ifndef ORR_SYMBOLIC_LOWER_H
#define ORR_SYMBOLIC_LOWER_H

#include <orrery/lab/stage.h>

#include "tensor.h"

/* ---- ranks and groups as coordinates of a grid; all closed forms ---- */

typedef enum stg_axis { ORR__DP, ORR__TP, ORR__CP, ORR__EP, ORR__AXES } stg_axis;

typedef struct stg_grid {
    uint32_t stages, per_stage; /* number of stages; ranks per stage */
    uint32_t axes;              /* those with groups: the first three, or all */
    uint32_t degree[ORR__AXES];
    uint32_t first_group[ORR__AXES + 1]; /* first group of each axis; the last entry: one past the
                                          * last group */
} stg_grid;

typedef struct stg_spot {
    uint32_t stage, at[ORR__AXES];
} stg_spot;

stg_grid stg_grid_of(const orr_stage_options *opt);
stg_spot stg_grid_spot(const stg_grid *g, uint32_t rank);
uint32_t stg_grid_rank(const stg_grid *g, const stg_spot *spot);
/* The group of a rank along an axis. */
uint32_t stg_grid_group(const stg_grid *g, const stg_spot *spot, stg_axis axis);
/* The first member of a group; the others follow at *stride, *count in total. */
uint32_t stg_grid_members(const stg_grid *g, uint32_t group, uint32_t *count, uint32_t *stride);

/* ---- the tensors of each pipeline stage, and messages between stages ---- */

/* A tensor of one stage that another one needs; a shadow represents it there. */
typedef struct stg_pair {
    uint32_t remote, shadow;
    uint32_t from, to; /* stages */
} stg_pair;

typedef struct stg_pipe {
    uint32_t *tensors; /* in file order, shadows last */
    size_t count, room;
} stg_pipe;

typedef struct stg_pipeline {
    stg_pipe *pipes;
    uint32_t pipe_count;
    stg_pair *pairs; /* by receiving stage, then by first use */
    size_t pair_count, pair_room;
} stg_pipeline;

/* ---- measure ---- */

typedef struct stg_measure {
    stg_space *space;
    int64_t values[ORR__SYMBOLS_MOST];
    uint64_t known; /* bit s: symbol s has a value */
    double *memo;   /* per expression; NaN: not computed yet */
    size_t memo_room;
} stg_measure;

void stg_measure_init(stg_measure *m, stg_space *s, const orr_stage_options *opt);
void stg_measure_fini(stg_measure *m);
/* Evaluated exactly, rounded once. */
orr_code stg_measure_expr(stg_measure *m, stg_expr x, double *out, orr_error *err) ORR_MUST_CHECK;
orr_code stg_measure_layout(stg_measure *m, stg_layout l, double *out, orr_error *err)
    ORR_MUST_CHECK;

/* ---- infer ---- */

typedef struct stg_chain {
    uint8_t count;
    uint8_t kind[ORR__AXES]; /* orr_collective */
    uint8_t axis[ORR__AXES];
} stg_chain;

typedef struct stg_infer {
    stg_space *space;
    const stg_grid *grid;
    uint32_t symbols[ORR__AXES];
    orr_map *known; /* (made, needed) -> chain */
    stg_chain *chains;
    size_t count, room;
} stg_infer;

bool stg_infer_init(stg_infer *f, stg_space *s, const stg_grid *grid);
void stg_infer_fini(stg_infer *f);

/* ---- plan ---- */

typedef enum stg_kind {
    ORR__COMP,
    ORR__COLL_A, /* a collective on the first operand */
    ORR__COLL_B, /* on the second */
    ORR__SEND,
    ORR__RECV
} stg_kind;

typedef struct stg_plan_node {
    uint64_t id;
    uint32_t tensor;
    uint32_t peer;                     /* of a message: the other stage */
    uint32_t dep, dep_count, dep_room; /* slice of the plan's deps: node indices, may repeat */
    uint32_t clone;                    /* micro-batch it was cloned for; 0: original */
    uint64_t tag;
    uint8_t kind, collective, axis;
    bool is_gone;
} stg_plan_node;

typedef struct stg_plan {
    stg_plan_node *nodes;
    size_t count, room;
    uint32_t *deps;
    size_t dep_count, dep_room;
    bool is_full; /* a dependency list exceeds the limit */
} stg_plan;

/* Shared by the plans of all stages. */
typedef struct stg_lowering {
    stg_tgraph *graph;
    const stg_pipeline *pipeline;
    stg_measure *measure;
    stg_infer *infer;
    uint64_t tag_base;
    uint32_t *chain_a, *chain_b; /* by tensor */
    uint64_t *id;                /* by tensor: of its compute node */
    uint32_t *node;              /* by tensor: index of its compute node in its plan */
    uint32_t *pair,
        *next_pair;   /* by tensor and by pair: what is sent or received, as a list; index + 1 */
    uint64_t pair_id; /* of the first send */
    orr_arena *arena;
} stg_lowering;

/* Number all nodes.  Call fini also after a failure. */
orr_code stg_lowering_init(stg_lowering *l, orr_error *err) ORR_MUST_CHECK;
void stg_lowering_fini(stg_lowering *l);

orr_code stg_plan_make(stg_plan *p, stg_lowering *l, uint32_t stage, orr_error *err) ORR_MUST_CHECK;
void stg_plan_fini(stg_plan *p);
/* Drop compute nodes without operations; their children inherit their parents. */
orr_code stg_plan_drop_empty(stg_plan *p, stg_lowering *l, orr_error *err) ORR_MUST_CHECK;
/* Repeat all nodes for micro-batches 1 to count - 1. */
orr_code stg_plan_clone(stg_plan *p, uint64_t count, orr_error *err) ORR_MUST_CHECK;
/* Drop collectives that are followed by another of the same kind. */
orr_code stg_plan_merge(stg_plan *p, orr_error *err) ORR_MUST_CHECK;

/* Add a dependency.  False: out of memory, or is_full. */
bool stg_plan_depend(stg_plan *p, uint32_t node, uint32_t on);

#endif
