/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - which tensors belong to which pipeline stage, and what passes between stages. */
#ifndef ORR_SYMBOLIC_PIPELINE_H
#define ORR_SYMBOLIC_PIPELINE_H

#include <orrery/lab/stage.h>

#include "tensor.h"

/* A tensor of one stage that another stage needs: there a shadow of it stands in. */
typedef struct orr__pair {
    uint32_t remote, shadow;
    uint32_t from, to; /* stages */
} orr__pair;

typedef struct orr__pipe {
    uint32_t *tensors; /* in file order, shadows last */
    size_t count, room;
} orr__pipe;

typedef struct orr__pipeline {
    orr__pipe *pipes;
    uint32_t pipe_count;
    orr__pair *pairs; /* by receiving stage, then first use */
    size_t pair_count, pair_room;
} orr__pipeline;

/* Adds the shadows to the graph.  fini is due also after a failure. */
orr_code orr__pipeline_split(orr__pipeline *p,
                             orr__tgraph *g,
                             const orr_stage_options *opt,
                             orr_error *err) ORR_MUST_CHECK;
void orr__pipeline_fini(orr__pipeline *p);

#endif
