/* SPDX-License-Identifier: Apache-2.0 */
/* llm_tape.h - a part of a training step as a short list of nodes, to bound its time without a
 * trace (src/plan).
 *
 * The pen makes the same calls for a tape as for a trace: nodes in id order, with dependencies,
 * kernels and bytes.  Node 0 is the input of the part: the result of the previous one. */
#ifndef ORR_LLM_TAPE_H
#define ORR_LLM_TAPE_H

#include "base/memory/memory.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/llm.h>

typedef enum orr__tape_kind {
    ORR__TAPE_INPUT,
    ORR__TAPE_COMPUTE,
    ORR__TAPE_COLLECTIVE,
    ORR__TAPE_SEND,
    ORR__TAPE_RECEIVE
} orr__tape_kind;

/* The group of a collective. */
typedef enum orr__tape_axis {
    ORR__TAPE_TP,
    ORR__TAPE_CP,
    ORR__TAPE_DATA,
    ORR__TAPE_EP,
    ORR__TAPE_EXPERT_DATA,
    ORR__TAPE_REPLICA,
    ORR__TAPE_WORLD,
    ORR__TAPE_AXES
} orr__tape_axis;

enum { ORR__TAPE_DEPS = 12 };

typedef struct orr__tape_node {
    orr__tape_kind kind;
    orr__tape_axis axis;
    orr_collective collective;
    uint64_t bytes, operations;
    uint32_t first_kernel, kernel_count;
    uint32_t dep_count;
    uint16_t deps[ORR__TAPE_DEPS]; /* nodes */
    bool is_cut;                   /* it has more, which are left out */
} orr__tape_node;

typedef struct orr__tape {
    orr__tape_node *nodes;
    size_t count, room;
    orr_kernel *kernels;
    size_t kernel_count, kernel_room;
    size_t pending;       /* earlier kernels already belong to nodes */
    uint64_t last_on[16]; /* by stream: its last node; 0: none */
    uint32_t out;         /* the node after which the result is there */
    bool failed;          /* out of memory */
} orr__tape;

/* Parts of a step on one rank. */
typedef enum orr__tape_part {
    ORR__PART_EMBEDDING_FORWARD,
    ORR__PART_LAYER_FORWARD,
    ORR__PART_HEAD_FORWARD,
    ORR__PART_HEAD_BACKWARD,
    ORR__PART_LAYER_BACKWARD,
    ORR__PART_EMBEDDING_BACKWARD,
    /* zero bubble: weight gradients alone; those of inputs are the parts above */
    ORR__PART_HEAD_WEIGHTS,
    ORR__PART_LAYER_WEIGHTS,
    ORR__PARTS
} orr__tape_part;

void orr__tape_fini(orr__tape *t);

/* Parameters of a layer on one rank. */
typedef struct orr__layer_weights {
    uint64_t dense, expert;
} orr__layer_weights;

/* Gradients reduced together, in bytes at least: as given, or as the software does. */
uint64_t orr__llm_bucket_bytes(const orr_llm_options *o);
/* New weights gathered together after the update; not one by one where buckets are tiny. */
uint64_t orr__llm_piece_bytes(const orr_llm_options *o);

/* Stages and groups of a plan, without a trace.  The options must be complete (orr_llm_complete),
 * since nothing is checked here: views are made by the hundred thousand. */
struct llm_job;
typedef struct orr__llm_view {
    struct llm_job *job;
} orr__llm_view;
orr_code orr__llm_view_open(const orr_model *m,
                            const orr_llm_options *opt,
                            orr__llm_view *out,
                            orr_error *err) ORR_MUST_CHECK;
void orr__llm_view_close(orr__llm_view *v);
/* Another way from now on: that of these options. */
void orr__llm_view_recompute(orr__llm_view *v, const orr_llm_options *as);
void orr__llm_view_layers(const orr__llm_view *v, uint32_t stage, uint64_t *first, uint64_t *end);
orr__layer_weights orr__llm_view_weights(const orr__llm_view *v, uint64_t layer);
orr__layer_weights orr__llm_view_ends(const orr__llm_view *v); /* embedding, head: both dense */
orr__layer_weights orr__llm_view_mtp(const orr__llm_view *v);  /* of all MTP layers */
/* Bytes of a layer's weights as they travel when they are gathered. */
orr__layer_weights orr__llm_view_gathered(const orr__llm_view *v, uint64_t layer);
bool orr__llm_view_is_recomputed(const orr__llm_view *v, uint64_t layer); /* in full */
uint64_t orr__llm_view_message(const orr__llm_view *v);                   /* bytes between stages */
uint32_t orr__llm_view_degree(const orr__llm_view *v, orr__tape_axis axis);
uint32_t orr__llm_view_groups(const orr__llm_view *v, orr__tape_axis axis);
void orr__llm_view_members(const orr__llm_view *v,
                           orr__tape_axis axis,
                           uint32_t group,
                           uint32_t *out);
/* Tasks of a pipeline rank in order; NULL: out of memory.  The caller frees it. */
typedef struct orr__llm_task {
    uint8_t kind; /* orr_llm_task */
    uint8_t chunk;
    uint32_t micro_batch;
} orr__llm_task;
orr__llm_task *orr__llm_view_tasks(const orr__llm_view *v, uint32_t rank, size_t *count);

/* Resets the tape but keeps its memory.  is_first: of its task; then node 1 is the previous task,
 * for which the first computation waits. */
orr_code orr__llm_tape_part(const orr__llm_view *v,
                            orr__tape_part part,
                            uint64_t layer,
                            bool is_first,
                            orr__tape *out,
                            orr_error *err) ORR_MUST_CHECK;

/* Norm and update of a pipeline rank and what data-parallel ranks exchange. */
typedef struct orr__tape_sync {
    uint64_t dense, expert; /* parameters of the rank */
    uint64_t dense_share;   /* bytes of its new weights that travel */
    uint64_t grad;          /* bytes of one gradient */
    bool gathers_at_end;    /* new weights travel after the update */
    bool gathers_layers;    /* ZeRO 3 */
} orr__tape_sync;
orr_code orr__llm_tape_update(const orr__llm_view *v,
                              uint32_t pipeline_rank,
                              orr__tape *out,
                              orr__tape_sync *sync,
                              orr_error *err) ORR_MUST_CHECK;
/* As orr_llm_memory_most. */
orr_code orr__llm_view_memory(const orr__llm_view *v,
                              orr_llm_memory out[ORR_LLM_ZEROS],
                              orr_error *err) ORR_MUST_CHECK;

#endif
