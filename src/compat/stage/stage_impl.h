/* SPDX-License-Identifier: Apache-2.0 */
/* stage_impl.h - a computed job, shared by its writers. */
#ifndef ORR_SYMBOLIC_STAGE_IMPL_H
#define ORR_SYMBOLIC_STAGE_IMPL_H

#include <orrery/lab/stage.h>

#include "lower.h"
#include "template.h"

/* ---- from modules to the tensor graph of a whole training step ---- */

/* Everything before the split into pipeline stages.  g: an empty graph. */
orr_code stg_assemble_model(stg_tgraph *g,
                            stg_library *lib,
                            const orr_stage_options *opt,
                            orr_error *err) ORR_MUST_CHECK;

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
    stg_plan *plans; /* one per pipeline stage */
    orr_stage_memory *memory;
    bool hides_sizes; /* weights are divided over more than one rank (stage.md 13) */
};

/* ---- stage_write.c ---- */

orr_code stg_measure_memory(orr_stage *job, uint32_t stage, orr_error *err) ORR_MUST_CHECK;

#endif
