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
    orr__plan *plans; /* one a pipeline stage */
    orr_stage_memory *memory;
    bool hides_sizes; /* weights are divided over more than one rank: section 13 */
};

/* ---- stage_text.c: how tensors are named and measured in inputs, outputs and the report ---- */

/* A size keeps its nature: the reference prints some as whole numbers and some as floating ones. */
typedef struct stg_size {
    double value;
    bool is_whole;
} stg_size;

/* The tensor that stands in a list of inputs or outputs for this one. */
uint32_t stg_io_tensor(const orr_stage *job, uint32_t tensor);
/* "name@revision" and the shape. */
orr_code stg_io_text(orr_stage *job, uint32_t tensor, orr_buf *to, orr_error *err) ORR_MUST_CHECK;
orr_code stg_io_size(orr_stage *job, uint32_t tensor, stg_size *out, orr_error *err) ORR_MUST_CHECK;
void stg_size_print(orr_buf *to, stg_size size);
/* The name of a node. */
void stg_node_text(const orr_stage *job, const stg_plan_node *n, orr_buf *to);
/* Towards zero, as an integer field of a file. */
orr_code stg_whole(double v, int64_t *out, orr_error *err) ORR_MUST_CHECK;

/* The operand a collective works on, and the layout it brings it to. */
uint32_t stg_operand_of(const orr_stage *job, const stg_plan_node *n, orr__layout *needed);

orr_code stg_measure_memory(orr_stage *job, uint32_t stage, orr_error *err) ORR_MUST_CHECK;

/* ---- stage_json.c ---- */

orr_code stg_json(orr_stage *job, uint32_t rank, orr_buf *to, orr_error *err) ORR_MUST_CHECK;

#endif
