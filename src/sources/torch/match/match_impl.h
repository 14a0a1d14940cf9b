/* SPDX-License-Identifier: Apache-2.0 */
/* match_impl.h - the calls of both sides, as every reader delivers them.
 *
 * The captured side is read first: which operators it has decides where to stop in the measured
 * one, in which an operator calls others down to those that launch kernels. */
#ifndef ORR_SOURCES_FX_MATCH_IMPL_H
#define ORR_SOURCES_FX_MATCH_IMPL_H

#include <orrery/lab/operators.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/compute/operators/operator_cost.h"
#include "sources/torch/fx/fx_graph.h"

/* ---- the data of a comparison ---- */

struct orr__operators_store {
    orr_arena *arena;
    orr_intern *names, *shapes;
};

#define MATCH_NONE UINT32_MAX

enum { MATCH_CAPTURED, MATCH_MEASURED, MATCH_SIDES };

/* What the captured side tells about an operator. */
enum { MATCH_IS_CAPTURED = 1, MATCH_IS_CAUSAL = 2, MATCH_IS_TRANSPOSED = 4 };

typedef struct match_call {
    uint32_t name;   /* canonical: shared by equivalent operators */
    uint32_t shapes; /* a text; empty: unknown */
    uint32_t caller; /* a call of the same list; MATCH_NONE: none */
    uint32_t cover;  /* a captured operator around it; MATCH_NONE: it counts itself */
    uint64_t count;  /* 0: only its time counts */
    uint64_t flops, bytes;
    orr_ps time, predicted;
    bool is_free;
    bool is_blank; /* it computes, but without shapes the cost is unknown */
    bool is_counted;
} match_call;

typedef struct match_side {
    match_call *calls;
    size_t count, room;
    bool has_bytes, has_times;
} match_side;

typedef struct match {
    orr_intern *names, *shapes;
    match_side sides[MATCH_SIDES];
    uint8_t *flags; /* by name */
    size_t flag_room;
    const orr_chip *chip; /* at most one of the two */
    const orr_hardware *hw;
} match;

/* A call as a reader sees it. */
typedef struct match_draft {
    operator_call call;
    uint32_t list_length; /* of a list operation; 0: unknown */
    uint32_t caller;
    uint64_t count;
    orr_ps time;
} match_draft;

/* ---- operator_match.c ---- */

orr_code match_add(match *m, int side, const match_draft *draft, orr_error *err) ORR_MUST_CHECK;

/* ---- match_read.c ---- */

orr_code match_captured(match *m, const fx_graph *g, orr_error *err) ORR_MUST_CHECK;
orr_code match_table(match *m, orr_span bytes, const char *label, orr_error *err) ORR_MUST_CHECK;
orr_code match_kineto(match *m, orr_span bytes, const char *label, orr_error *err) ORR_MUST_CHECK;
orr_code match_host(match *m, orr_span bytes, const char *label, orr_error *err) ORR_MUST_CHECK;

#endif
