/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - which tensors belong to which pipeline stage, and what passes between stages. */
#ifndef ORR_SYMBOLIC_PIPELINE_H
#define ORR_SYMBOLIC_PIPELINE_H

#include <orrery/lab/stage.h>

#include "tensor.h"

/* A tensor of one stage that another stage needs: there a shadow of it stands in. */
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
    stg_pair *pairs; /* by receiving stage, then first use */
    size_t pair_count, pair_room;
} stg_pipeline;

#endif
