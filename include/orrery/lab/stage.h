/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - the traces that STAGE, the symbolic tensor graph generator of ASTRA-sim, makes of a
 * model and a parallelism: the same nodes, ids, sizes and bytes, its known defects included.
 *
 *     orr_stage_options opt = orr_stage_defaults();
 *     opt.model = ORR_STAGE_GPT;
 *     opt.dp = 8;
 *     opt.tp = 4;
 *     orr_stage *job;
 *     orr_set *set;
 *     if (orr_stage_create(&opt, &job, &err) || orr_stage_set(job, &set, &err)) return report(&err);
 *     orr_set_save(set, "step.orr", NULL, &err);
 *     orr_set_close(set);
 *     orr_stage_destroy(job);
 *
 * One training step: forward, backward, reduction of gradients, one node for the update of each
 * block of weights.  All ranks of a pipeline stage share one body, so the cost depends on the
 * number of stages, not of ranks.  Sizes are numbers of elements, as there; docs/design/symbolic.md
 * lists what else to know. */
#ifndef ORRERY_LAB_STAGE_H
#define ORRERY_LAB_STAGE_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_stage_model {
    ORR_STAGE_DENSE = 0, /* the same as llama */
    ORR_STAGE_LLAMA,     /* gated feed-forward and grouped heads, with mixed precision only */
    ORR_STAGE_GPT,
    ORR_STAGE_MOE,
    ORR_STAGE_DEBUG, /* one embedding */
    ORR_STAGE_MODELS
} orr_stage_model;

/* "dense", "llama", ...; the reverse: false when there is none of that name. */
ORR_API const char *orr_stage_model_name(orr_stage_model model);
ORR_API bool orr_stage_model_find(const char *name, orr_stage_model *out);

/* Start from orr_stage_defaults() and change what matters. */
typedef struct orr_stage_options {
    orr_stage_model model;
    uint64_t dp, tp, sp, ep,
        pp; /* degrees; sp divides the sequence; without experts ep multiplies tp */
    uint64_t dvocal, dmodel, dff, seq, head, kvhead, layers, experts, kexperts;
    uint64_t batch, micro_batch; /* micro_batch 0: the batch in one piece */
    bool weight_sharded;         /* layer weights divided over dp, as FSDP does */
    bool tpsp;                   /* tensor parallelism with sequence parallelism */
    bool mixed_precision;
    const char *templates; /* a folder with modules that replace ours; NULL: none */
    uint64_t tag_base;     /* the first tag of a message */
    /* Environment variables of the reference. */
    bool legacy_attr;    /* STAGE_LEGACY_ATTR: comm_group instead of pg_name */
    bool merge_comms;    /* STAGE_MERGE_COMMS */
    bool clones;         /* STAGE_MICROBATCH_OPTIMIZE other than 0: nodes are cloned, not tensors */
    bool whole_backward; /* STAGE_MICROBATCH_OPTIMIZE other than 1 */
} orr_stage_options;

ORR_API orr_stage_options orr_stage_defaults(void);

typedef struct orr_stage orr_stage;

/* Impossible options and malformed templates are ORR_EINPUT. */
ORR_API orr_code orr_stage_create(const orr_stage_options *opt,
                                  orr_stage **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_stage_destroy(orr_stage *job); /* NULL is fine */

ORR_API uint32_t orr_stage_rank_count(const orr_stage *job);
ORR_API uint64_t orr_stage_node_count(const orr_stage *job); /* of all ranks together */

/* The traces of all ranks, with their communicator groups.  With legacy_attr each rank has its own
 * body. */
ORR_API orr_code orr_stage_set(orr_stage *job, orr_set **out, orr_error *err) ORR_MUST_CHECK;
/* The trace of one rank. */
ORR_API orr_code orr_stage_trace(orr_stage *job, uint32_t rank, orr_trace **out, orr_error *err)
    ORR_MUST_CHECK;

typedef enum orr_stage_form {
    ORR_STAGE_ET = 0,
    ORR_STAGE_JSON /* output of the reference's JSON writer, which its command line cannot select */
} orr_stage_form;

/* One file per rank; %d in the pattern is the rank, %% a percent sign.  threads 0: one per core. */
ORR_API orr_code orr_stage_write_files(orr_stage *job,
                                       const char *pattern,
                                       orr_stage_form form,
                                       unsigned threads,
                                       orr_error *err) ORR_MUST_CHECK;
/* The communicator groups: one JSON object, number -> ranks. */
ORR_API orr_code orr_stage_write_groups(const orr_stage *job,
                                        const char *path,
                                        orr_error *err) ORR_MUST_CHECK;
/* The tensor graph before it is divided into pipeline stages, PATH.csv and PATH.json. */
ORR_API orr_code orr_stage_write_graph(orr_stage *job,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

/* Bytes on one rank as the reference counts them. */
typedef struct orr_stage_memory {
    double weights, optimizer, activations, gradients;
} orr_stage_memory;

ORR_API orr_stage_memory orr_stage_rank_memory(const orr_stage *job, uint32_t rank);
/* The reference's line for a rank, NUL-terminated, without an end of line; empty for the debug
 * model. */
ORR_API char *orr_stage_memory_line(const orr_stage *job, uint32_t rank, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
