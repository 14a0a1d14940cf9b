/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - a network as a table of layers: how long each pass of a layer computes and what it
 * then sends.
 *
 *     orr_layers *table;
 *     if (orr_layers_read("resnet50.txt", NULL, &table, &err)) return report(&err);   // ASTRA-sim 1.0 text
 *     orr_layers_expand opt = {.ranks = 64, .passes = 1};
 *     orr_set *set;
 *     if (orr_layers_set(table, &opt, &set, &err)) return report(&err);
 *     orr_layers_free(table);
 *
 * Tables can be read, written and converted to traces; orrery gemm makes tables from shapes.
 * docs/format/text.md has the grammar of the file and the graph that each policy stands for. */
#ifndef ORRERY_LAB_LAYERS_H
#define ORRERY_LAB_LAYERS_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the layers are distributed: which passes communicate, and what depends on what. */
typedef enum orr_policy {
    ORR_POLICY_MICRO = 0, /* only the collectives of the weight gradients */
    ORR_POLICY_DATA,
    ORR_POLICY_MODEL,
    ORR_POLICY_HYBRID_DATA_MODEL, /* model parallel in dimension 0, data parallel in the others */
    ORR_POLICY_HYBRID_MODEL_DATA, /* the other way round */
    ORR_POLICY_HYBRID_DLRM,
    ORR_POLICY_HYBRID_DLRM_ENHANCED,
    ORR_POLICY_HYBRID_TRANSFORMER,
    /* forward passes are recomputed in the backward pass */
    ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD,
    ORR_POLICY_HYBRID_CUSTOMIZED, /* every layer has its own */
    ORR_POLICY_DISTRIBUTED_INFERENCE,
    ORR_POLICY_COUNT
} orr_policy;

ORR_API const char *orr_policy_name(orr_policy p); /* "HYBRID_DLRM" */
ORR_API bool orr_policy_find(orr_str name, orr_policy *out);

/* What follows the policy in the first line of a file. */
typedef struct orr_policy_args {
    int64_t last_bottom;  /* HYBRID_DLRM*: the last layer of the bottom network, counted from 0 */
    uint32_t model_group; /* HYBRID_TRANSFORMER*: ranks that share one copy of the model */
    /* HYBRID_TRANSFORMER_FWD_IN_BCKWD: checkpointed layers, and layers before whose backward pass
     * the forward passes from the nearest checkpoint on are recomputed. */
    const uint32_t *checkpoints, *initiates;
    size_t checkpoint_count, initiate_count;
} orr_policy_args;

/* One pass of a layer: compute, then a collective. */
typedef struct orr_layer_pass {
    uint64_t time; /* cycles or microseconds, as the table's author intended */
    /* ALLREDUCE, ALLTOALL, ALLREDUCEALLTOALL, ALLGATHER, REDUCESCATTER, NONE or any word. */
    orr_str comm;
    /* of the collective; by Chakra's rules possibly negative, in two's complement */
    uint64_t bytes;
} orr_layer_pass;

typedef struct orr_layer {
    orr_str name;
    orr_str reserved; /* verbatim, mostly -1 */
    orr_layer_pass forward, input_grad, weight_grad;
    orr_str update_time; /* verbatim; see orr_layers_expand */
    orr_policy policy;   /* of this layer, when the table's is HYBRID_CUSTOMIZED */
} orr_layer;

typedef struct orr_layers orr_layers;

/* Building: strings and arguments are copied. */
ORR_API orr_code orr_layers_create(orr_policy policy,
                                   orr_layers **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_layers_set_args(orr_layers *t,
                                     const orr_policy_args *args,
                                     orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_layers_add(orr_layers *t, const orr_layer *l, orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_layers_free(orr_layers *t); /* NULL is fine */

ORR_API orr_policy orr_layers_policy(const orr_layers *t);
ORR_API const orr_policy_args *orr_layers_args(const orr_layers *t);
ORR_API size_t orr_layers_count(const orr_layers *t);
ORR_API const orr_layer *orr_layers_get(const orr_layers *t, size_t i);

/* What a converter of Chakra does differently (orrery/lab/compat.h); NULL: ours. */
typedef struct orr_rules_layers orr_rules_layers;

typedef struct orr_layers_read_options {
    const orr_rules_layers *rules;
} orr_layers_read_options;

/* From a file ("-": standard input) or from memory, which may be freed afterwards; label is used in
 * messages.  opt may be NULL. */
ORR_API orr_code orr_layers_read(const char *path,
                                 const orr_layers_read_options *opt,
                                 orr_layers **out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_layers_parse(orr_span bytes,
                                  const char *label,
                                  const orr_layers_read_options *opt,
                                  orr_layers **out,
                                  orr_error *err) ORR_MUST_CHECK;

/* Text style: ours, or that of the old generator with one of its back ends. */
typedef enum orr_layers_style {
    ORR_LAYERS_PLAIN = 0,
    /* each layer's policy in a 13th column; no newline at the end of the file */
    ORR_LAYERS_GENERATOR_V1,
    ORR_LAYERS_GENERATOR_V2 /* the same, with a blank before each time */
} orr_layers_style;

/* To a file ("-": standard output), which appears whole or not at all. */
ORR_API orr_code orr_layers_write(const orr_layers *t,
                                  const char *path,
                                  orr_layers_style style,
                                  orr_error *err) ORR_MUST_CHECK;

typedef struct orr_layers_expand {
    uint32_t ranks;
    uint32_t passes;
    uint32_t dims; /* network dimensions named by involved_dim; 0: no such attribute */
    const orr_rules_layers *rules; /* those the table was read by */
    const uint32_t *dim_sizes; /* of the dimensions, when known; HYBRID_TRANSFORMER* needs them */
    bool with_updates;         /* the update time as a compute node after each collective */
} orr_layers_expand;

/* All ranks are equal: one body for any number of ranks. */
ORR_API orr_code orr_layers_set(const orr_layers *t,
                                const orr_layers_expand *opt,
                                orr_set **out,
                                orr_error *err) ORR_MUST_CHECK;

/* Worth a warning: the policy communicates along some dimensions only, so that without dims its
 * collectives span more ranks than they should. */
ORR_API bool orr_layers_needs_dims(const orr_layers *t);
/* Number of collectives that the table names and its policy never starts. */
ORR_API size_t orr_layers_idle(const orr_layers *t);

#ifdef __cplusplus
}
#endif
#endif
