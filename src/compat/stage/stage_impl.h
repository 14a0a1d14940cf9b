/* SPDX-License-Identifier: Apache-2.0 */
/* stage_impl.h - a job that has been worked out, and what its writers share. */
#ifndef ORR_SYMBOLIC_STAGE_IMPL_H
#define ORR_SYMBOLIC_STAGE_IMPL_H

#include "assemble.h"
#include "lower.h"

struct orr_stage {
    orr_stage_options opt;
    stg_space space;
    stg_tgraph graph;
    size_t graph_count; /* tensors before shadows were added */
    stg_pipeline pipeline;
    stg_grid grid;
    stg_measure measure;
    stg_infer infer;
    stg_lowering lowering;
    stg_plan *plans; /* one a pipeline stage */
    orr_stage_memory *memory;
    bool hides_sizes; /* weights are divided over more than one rank: section 13 */
};

/* ---- stage_write.c: how tensors are named and measured in inputs, outputs and the report ---- */

/* A size keeps its nature: the reference prints some as whole numbers and some as floating ones. */
typedef struct stg_size {
    double value;
    bool is_whole;
} stg_size;

orr_code stg_measure_memory(orr_stage *job, uint32_t stage, orr_error *err) ORR_MUST_CHECK;

/* ---- stage_write.c ---- */

#endif
