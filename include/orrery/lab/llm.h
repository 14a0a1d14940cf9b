/* SPDX-License-Identifier: Apache-2.0 */
/* llm.h - the traces of all ranks that train a language model together, or serve it.
 *
 *     orr_model model;
 *     orr_model_load("llama-3-70b", &model, &err);
 *     orr_llm_options opt = {.tp = 8, .pp = 4, .dp = 32, .batch = 1024, .seq = 8192};
 *     orr_set *set;
 *     if (orr_llm_training(&model, &opt, &set, &err)) return report(&err);
 *     orr_set_save(set, "step.orr", NULL, &err);
 *
 * One step: forward and backward of all micro-batches in the order of a pipeline schedule, the
 * synchronisation of gradients, the optimizer.  Compute nodes carry operations and bytes for a
 * roofline, collectives their bytes and group, messages their peer; the set carries the groups.
 * All ranks of a pipeline stage share one body, so the cost depends on the number of stages, not of
 * ranks. */
#ifndef ORRERY_LAB_LLM_H
#define ORRERY_LAB_LLM_H

#include <orrery/lab/model.h>
#include <orrery/lab/software.h>
#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_dtype {
    ORR_DTYPE_BF16 = 0,
    ORR_DTYPE_FP16,
    ORR_DTYPE_FP8, /* in matrix products; everything else is bf16 */
    ORR_DTYPE_FP32,
    ORR_DTYPE_MXFP8, /* as FP8, one scale per 32 numbers */
    ORR_DTYPE_NVFP4, /* 4 bits, one scale per 16 numbers; counted as a byte */
    ORR_DTYPE_COUNT
} orr_dtype;

typedef enum orr_pipeline {
    ORR_PIPELINE_1F1B = 0,
    ORR_PIPELINE_GPIPE,
    ORR_PIPELINE_INTERLEAVED, /* 1F1B with several chunks of layers per rank */
    ORR_PIPELINE_ZERO_BUBBLE, /* weight gradients fill the gaps */
    ORR_PIPELINE_ZB_V,        /* the same with two chunks per rank, placed in a V */
    ORR_PIPELINE_DUALPIPE_V,  /* two such chunks; forward and backward passes in pairs */
    ORR_PIPELINE_OWN,         /* from a file */
    ORR_PIPELINE_DUALPIPE,    /* two copies of the weights: each rank also holds the stage of its
                               * mirror rank, and half of the micro-batches run in the other
                               * direction */
    ORR_PIPELINE_COUNT
} orr_pipeline;

/* An order of passes from a file (orrery-stage(1)), for a number of pipeline ranks, chunks and
 * micro-batches. */
typedef struct orr_pipeline_order orr_pipeline_order;
ORR_API orr_code orr_pipeline_order_open(const char *path,
                                         orr_pipeline_order **out,
                                         orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_pipeline_order_parse(orr_span text,
                                          const char *path, /* for messages */
                                          orr_pipeline_order **out,
                                          orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_pipeline_order_close(orr_pipeline_order *o); /* NULL is fine */

/* Which layers each stage has, in Megatron-Core's notation: "Ettt|(tt|)*29,m|L"
 * (--pipeline-model-parallel-layout).  Without one MTP layers are in the last stage. */
typedef struct orr_stage_layout orr_stage_layout;
ORR_API orr_code orr_stage_layout_parse(const char *text,
                                        orr_stage_layout **out,
                                        orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_stage_layout_close(orr_stage_layout *l); /* NULL is fine */

typedef enum orr_context_form {
    ORR_CONTEXT_RING = 0,   /* keys and values travel around the ring, one block at a time */
    ORR_CONTEXT_ALL_GATHER, /* keys and values of all are gathered */
    /* as RING, but each rank has one contiguous part of the sequence: with a causal mask the last
     * rank works nearly twice as long as with balanced shares, and the others wait */
    ORR_CONTEXT_CONTIGUOUS,
    /* as ALL_GATHER, once, overlapped with the first block: PyTorch's context_parallel */
    ORR_CONTEXT_BLOCKS
} orr_context_form;

/* Scaling of 8-bit numbers (ORR_DTYPE_FP8). */
typedef enum orr_fp8_scaling {
    ORR_FP8_CURRENT = 0, /* by the maximum of the tensor itself */
    /* by the maximum of earlier passes: after each pass through a chunk all ranks of the stage
     * agree on it, or only those of tensor parallelism */
    ORR_FP8_DELAYED,
    ORR_FP8_DELAYED_TP,
    ORR_FP8_BLOCK /* by the maximum of 128 numbers, or of 128 x 128 of a weight (DeepSeek-V3) */
} orr_fp8_scaling;

/* What products read in 8 bits or fewer is kept so for the backward pass, with its scales. */
typedef enum orr_fp8_kept {
    ORR_KEPT_SOFTWARE = 0, /* as the software does */
    ORR_KEPT_NONE,         /* all in 16 bits */
    ORR_KEPT_INPUTS,       /* inputs of products, unless they are needed in 16 bits as well */
    ORR_KEPT_ACTIVATIONS,  /* also of activations (Megatron: activation_func_fp8_input_store) */
    ORR_KEPT_DEEPSEEK,     /* and what attention gave in 12 bits; casts are part of other kernels */
    ORR_KEPTS
} orr_fp8_kept;

/* Weights of products in 8 bits or fewer, by rows and by columns. */
typedef enum orr_fp8_weights {
    ORR_WEIGHTS_SOFTWARE = 0, /* as the software does */
    ORR_WEIGHTS_WIDE,         /* in 16 bits, cast when used */
    ORR_WEIGHTS_BOTH,         /* and, between micro-batches, in 8 bits */
    ORR_WEIGHTS_NARROW,       /* only in 8 bits: --fp8-param-gather of Megatron-Core */
    ORR_WEIGHTS
} orr_fp8_weights;

typedef enum orr_recompute {
    ORR_RECOMPUTE_NONE = 0,
    ORR_RECOMPUTE_SELECTIVE, /* only the attention core */
    ORR_RECOMPUTE_FULL,      /* the whole layer */
    ORR_RECOMPUTE_OPERATORS, /* all but attention, every second product and reductions over ranks */
    ORR_RECOMPUTE_PARTS      /* what recompute_parts lists */
} orr_recompute;

/* Parts of a layer: bits of recompute_parts, and their names. */
typedef enum orr_layer_part {
    ORR_PART_NORM = 1,       /* "norm" */
    ORR_PART_ATTENTION = 2,  /* "attention": its core */
    ORR_PART_LATENT = 4,     /* "mla-up": queries, keys and values from MLA's compressed form */
    ORR_PART_ACTIVATION = 8, /* "activation": of FFN and experts */
    ORR_PART_FFN = 16,       /* "ffn": of layers without experts */
    ORR_PART_EXPERTS = 32,   /* "experts": with dispatch and combine */
    ORR_PART_SHARED = 64     /* "shared": shared experts */
} orr_layer_part;
/* "norm,mla-up"; false: *bad is not a part. */
ORR_API bool orr_layer_parts_find(orr_str words, uint32_t *out, orr_str *bad);

/* All zero: one rank, bf16 with fp32 master weights, Adam, one sequence of the model's length. */
typedef struct orr_llm_options {
    uint32_t tp, cp, pp, dp, ep; /* degrees; 0: 1.  ep divides dp * cp; ranks = tp * cp * pp * dp */
    /* Tensor-parallel ranks per expert: tp, or 1: then ep divides tp * dp * cp; 0: tp. */
    uint32_t expert_tp;
    /* 1f1b, interleaved: forward and backward passes in pairs, so that the expert traffic of one
     * overlaps with the computation of the other. */
    bool overlaps_experts;
    /* a token is sent once to each rank, or node, that has experts for it (DeepEP) */
    bool sends_once;
    /* sends_once: a token carries its weights for all experts of a node, and all ranks first gather
     * which experts each token goes to (HybridEP). */
    bool sends_weights;
    /* sends_once: ranks that reach each other over the scale-up network; 0: 8 */
    uint32_t node_ranks;
    bool attends_fp8; /* attention in 8 bits, if products are in 8 bits or fewer */
    orr_fp8_scaling fp8_scaling;
    orr_fp8_kept fp8_kept;
    orr_fp8_weights fp8_weights;
    bool moments_bf16; /* the optimizer's moments, which have 4 bytes otherwise */
    bool sends_fp8;    /* tokens to experts, and their gradients, in 8 bits; results return in 16 */
    /* Tokens of the busiest rank's experts, in per cent of the mean; 0: 100. */
    uint32_t expert_load;
    /* ZeRO: shard over this many of the dp * cp ranks, replicate over the rest (HSDP); 0: all. */
    uint32_t shard;
    bool has_mtp;                       /* include the MTP layers: see layout */
    uint64_t first_layers, last_layers; /* of the first and the last stage; 0: even */
    bool bare_first, bare_last; /* these have no layers: the embedding, or the loss, alone */
    orr_stage_layout *layout;   /* of all stages instead; must live as long; or NULL */
    uint64_t batch;             /* sequences per step, over all ranks; 0: dp * micro_batch */
    uint64_t micro_batch;       /* sequences a rank processes at a time; 0: 1 */
    uint64_t seq;               /* tokens per sequence; 0: the model's maximum */
    orr_dtype dtype;
    bool grads_fp32; /* gradients are kept and reduced in 4 bytes */
    /* Tensor parallelism with all-reduces instead of all-gather and reduce-scatter. */
    bool no_sequence_parallel;
    bool overlaps_tensor; /* tensor-parallel traffic is pipelined with its products */
    bool full_attention;  /* every token sees its whole sequence: no causal mask */
    orr_context_form context_form;
    orr_pipeline pipeline;
    orr_pipeline_order *order; /* ORR_PIPELINE_OWN: must live as long as the options are in use */
    uint32_t chunks;           /* of layers per rank; 0: 1, or what the pipeline requires: 2 */
    /* What data-parallel ranks shard: 1 optimizer, 2 also gradients, 3 also weights. */
    uint32_t zero;
    bool sync_every_micro_batch; /* reduce gradients after each micro-batch, not once per step */
    uint64_t bucket_bytes;       /* of gradients reduced together; 0: 40 MB */
    uint32_t prefetch;           /* layers ahead whose weights are gathered (zero 3); 0: 1 */
    bool no_overlap;             /* gradients are reduced after the last backward pass */
    bool no_clipping;            /* no norm of all gradients before the update */
    orr_recompute recompute;
    /* Copies what so many layers of each model chunk, its first ones, keep for the backward pass to
     * the host, this share of it in percent (0: all), and back before their backward pass. */
    uint64_t offload_layers;
    uint32_t offload_percent;
    uint64_t recompute_layers;    /* full: this many layers, evenly spread; 0: all */
    uint32_t recompute_parts;     /* ORR_RECOMPUTE_PARTS: sum of orr_layer_part bits */
    const orr_software *software; /* what launches the kernels; NULL: orr_software_at(0) */
    bool has_dropout;             /* even if the software's recipes have none */
    bool lists_optimizer;         /* the optimizer runs over lists of tensors (foreach) */
    bool no_master;               /* weights and moments are kept in `dtype`, not in 4 bytes */
    bool forward_only;            /* no gradients, no update */
    uint32_t steps;               /* 0: 1 */
    uint64_t device_bytes;        /* memory of a device, to decide whether it fits; 0: 80 GB */
} orr_llm_options;

/* ---- options by name ----
 *
 * What a search of plans does not decide, under the names of `orrery stage`, which `orrery plan`
 * takes as well: dtype, fp8-kept, dispatch, offload-layers, ... */
typedef enum orr_llm_option_kind {
    ORR_LLM_FLAG,
    ORR_LLM_COUNT, /* 1 to most */
    ORR_LLM_BYTES, /* "40MB" */
    ORR_LLM_WORD,  /* one of words */
    ORR_LLM_LIST,  /* some of words, with commas between */
    ORR_LLM_NAME   /* of a software */
} orr_llm_option_kind;
typedef struct orr_llm_option {
    const char *name; /* "fp8-scaling" */
    orr_llm_option_kind kind;
    uint64_t most;
    const char *words; /* "current|delayed|block"; NULL: none */
} orr_llm_option;
ORR_API const orr_llm_option *orr_llm_option_at(size_t i); /* NULL past the last */
/* name: also with dashes in front of it, or _ instead of -; messages use it as it is given.  text
 * of a flag: not read. */
ORR_API orr_code orr_llm_option_set(orr_llm_options *opt,
                                    const char *name,
                                    const char *text,
                                    orr_error *err) ORR_MUST_CHECK;
/* Its value as orr_llm_option_set takes it; false: it is the default, or there is no such option.
 * Of a flag the text is empty. */
enum { ORR_LLM_OPTION_ROOM = 96 };
ORR_API bool orr_llm_option_text(const orr_llm_options *opt,
                                 const char *name,
                                 char *out,
                                 size_t size);

/* Fill in defaults and refuse the impossible: pp > layers + 2, heads not divisible by tp, an
 * indivisible batch, ...  The functions below do this themselves. */
ORR_API orr_code orr_llm_complete(const orr_model *m,
                                  orr_llm_options *opt,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API uint32_t orr_llm_ranks(const orr_llm_options *opt);

ORR_API orr_code orr_llm_training(const orr_model *m,
                                  const orr_llm_options *opt,
                                  orr_set **out,
                                  orr_error *err) ORR_MUST_CHECK;

/* Variants of the same step, from the metadata of a set made by orr_llm_training: other
 * micro-batches, interleaving, ZeRO stages or recomputation.  *number starts at 0 and is advanced
 * past the variant returned; words describes the difference.  ORR_END: no more variants, or the set
 * lacks the metadata. */
ORR_API orr_code orr_llm_variant(const orr_set *traces,
                                 size_t *number,
                                 char *words,
                                 size_t room,
                                 orr_set **out,
                                 orr_error *err) ORR_MUST_CHECK;

/* ---- memory of a device ---- */

/* Per device of one pipeline rank, in bytes. */
typedef struct orr_llm_memory {
    uint64_t parameters; /* on this rank, of its layers and ends */
    uint64_t weights;    /* in use; zero 3: its share plus gathered layers */
    uint64_t grads;
    /* Adam: two moments, and weights in 4 bytes where those above are shorter. */
    uint64_t optimizer;
    uint64_t activations; /* kept for the backward pass, at the peak */
    uint64_t working;     /* temporaries of the current layer or logits, beyond what is kept */
    uint64_t peak;        /* at the worst moment: the sum, or less if gradients are freed */
    uint64_t micro_batches_kept; /* with activations in memory at the peak */
    bool fits;                   /* into device_bytes */
} orr_llm_memory;

ORR_API orr_code orr_llm_memory_of(const orr_model *m,
                                   const orr_llm_options *opt,
                                   uint32_t pipeline_rank,
                                   orr_llm_memory *out,
                                   orr_error *err) ORR_MUST_CHECK;

/* Of the fullest pipeline rank, for each ZeRO stage, ignoring that of the options: for searches. */
enum { ORR_LLM_ZEROS = 4 };
ORR_API orr_code orr_llm_memory_most(const orr_model *m,
                                     const orr_llm_options *opt,
                                     orr_llm_memory out[ORR_LLM_ZEROS],
                                     orr_error *err) ORR_MUST_CHECK;

typedef enum orr_llm_task { ORR_LLM_FORWARD, ORR_LLM_BACKWARD, ORR_LLM_WEIGHTS } orr_llm_task;

/* The tasks of a pipeline rank in order, with the bytes held after each. */
typedef struct orr_llm_moment {
    orr_llm_task task;
    uint32_t chunk;
    uint64_t micro_batch;
    uint64_t activations;
} orr_llm_moment;

/* Calls back once per task. */
ORR_API orr_code orr_llm_moments(const orr_model *m,
                                 const orr_llm_options *opt,
                                 uint32_t pipeline_rank,
                                 void (*take)(void *context, const orr_llm_moment *moment),
                                 void *context,
                                 orr_error *err) ORR_MUST_CHECK;

ORR_API const char *orr_dtype_name(orr_dtype d); /* "bf16" */
ORR_API bool orr_dtype_find(orr_str name, orr_dtype *out);
ORR_API uint64_t orr_dtype_bytes(orr_dtype d);
ORR_API const char *orr_pipeline_name(orr_pipeline p); /* "1f1b" */
ORR_API bool orr_pipeline_find(orr_str name, orr_pipeline *out);

#ifdef __cplusplus
}
#endif
#endif
