/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_impl.h - what the files that make a table of layers out of shapes share.
 *
 *     shapes_read.c                 CSV            -> orr_shape
 *     gemm_work.c                   orr_shape      -> orr__work: products, traffic and collectives of one NPU
 *     gemm_cost.c                   orr__op        -> cycles
 *     gemm.c                        all of it      -> orr_gemm_layer, orr_layers
 */
#ifndef ORR_GEMM_IMPL_H
#define ORR_GEMM_IMPL_H

#include <orrery/lab/gemm.h>

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/content_hash.h"

/* ---- shapes ---- */

/* Every number a shape can have; which kind has which is a table in shapes_read.c. */
typedef enum orr__size {
    ORR__M,
    ORR__N,
    ORR__K,
    ORR__BATCH,
    ORR__HEIGHT,
    ORR__WIDTH,
    ORR__CIN,
    ORR__COUT,
    ORR__KH,
    ORR__KW,
    ORR__STRIDE,
    ORR__PAD,
    ORR__DILATION,
    ORR__GROUPS,
    ORR__ROWS,
    ORR__DIM,
    ORR__LOOKUPS,
    ORR__TABLES,
    ORR__HEADS,
    ORR__KV_HEADS,
    ORR__SEQ_Q,
    ORR__SEQ_K,
    ORR__HEAD_DIM,
    ORR__CAUSAL,
    ORR__FUSED,
    ORR__OPERANDS,
    ORR__SIZES
} orr__size;

typedef struct orr__shape {
    orr_str name;
    orr_shape_kind kind;
    bool has_policy;
    orr_policy policy;
    uint32_t line, policy_column;
    uint64_t size[ORR__SIZES];
    uint32_t column[ORR__SIZES]; /* for messages; 0: it was not given */
} orr__shape;

struct orr_shapes {
    orr_arena *arena; /* names and the label */
    const char *label;
    orr_content_hash hash; /* of the file */
    bool has_policies;
    orr__shape *all;
    size_t count, room;
};

/* Copies s and its name. */
orr_code orr__shapes_add(orr_shapes *t, const orr__shape *s, orr_error *err) ORR_MUST_CHECK;
const char *orr__size_name(orr__size size); /* "cout" */
/* The four ways of sharing out a layer; false: another word. */
bool orr__strategy_find(orr_str word, orr_policy *out);
#define ORR__STRATEGIES "DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA"

/* ---- work of one NPU ---- */

/* How many ways the batch and the outputs of a layer are cut. */
typedef struct orr__ways {
    uint64_t batch, output;
} orr__ways;
orr__ways orr__ways_of(orr_policy p, uint64_t npus, uint64_t packages);

/* count products of m x k by k x n, of each of which part / whole is computed (the rest is masked). */
typedef struct orr__product {
    uint64_t count, m, n, k;
    uint64_t part, whole;
} orr__product;

/* What runs as one: as long as its longest part. */
enum { ORR__PRODUCTS = 5, ORR__OPS = 5 };
typedef struct orr__op {
    orr__product product[ORR__PRODUCTS];
    size_t product_count;
    uint64_t vector_ops; /* beside the arrays */
    uint64_t elements;   /* from and to memory */
} orr__op;

typedef struct orr__pass_work {
    orr__op op[ORR__OPS];
    size_t op_count;
    const char *comm;
    uint64_t comm_elements;
} orr__pass_work;

typedef struct orr__work {
    orr__pass_work pass[ORR_PASSES];
    uint64_t weights; /* elements */
    uint64_t updated; /* of these, in one step */
    double imbalance;
} orr__work;

/* On-chip memory in elements; UINT64_MAX: all fits. */
typedef struct orr__buffers {
    uint64_t input, weight, output;
} orr__buffers;

/* ORR_EINPUT: it cannot be shared out like this, or is too large; label and the shape's line are the place. */
orr_code orr__work_of(const orr__shape *s,
                      orr__ways ways,
                      const orr__buffers *buffers,
                      const char *label,
                      orr__work *out,
                      orr_error *err) ORR_MUST_CHECK;

/* ---- cost ---- */

typedef struct orr__cost orr__cost;

/* One of hardware and array is NULL. */
orr_code orr__cost_create(const orr_hardware *hw,
                          const orr_systolic_array *array,
                          uint32_t datatype_bytes,
                          orr__cost **out,
                          orr_error *err) ORR_MUST_CHECK;
void orr__cost_destroy(orr__cost *c); /* NULL is fine */
orr_code orr__cost_pass(orr__cost *c,
                        const orr__pass_work *work,
                        orr_gemm_pass *out,
                        orr_error *err) ORR_MUST_CHECK;
/* Time in memory alone. */
orr_code orr__cost_memory(const orr__cost *c, orr_bytes bytes, uint64_t *cycles, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr__cost_time(const orr__cost *c, uint64_t cycles, orr_ps *out, orr_error *err)
    ORR_MUST_CHECK;
/* Cycles of one product on one array; with the stalls, where the array has a bandwidth. */
orr_code orr__array_cycles(const orr_systolic_array *a,
                           const orr_rules_systolic *rules,
                           uint64_t m,
                           uint64_t n,
                           uint64_t k,
                           uint64_t *out,
                           orr_error *err) ORR_MUST_CHECK;
uint64_t orr__cost_elements(const orr__cost *c); /* of all arrays: multiplications a cycle */

/* ---- all of it ---- */

struct orr_gemm {
    orr_gemm_options opt; /* defaults filled in; pointers as below */
    orr_hardware hardware;
    orr_systolic_array array;
    orr_arena *arena; /* names, label */
    const char *label;
    orr_content_hash hash;
    orr_gemm_layer *layers;
    orr__product (*shards)[ORR_PASSES]; /* rules->fill: the product of each pass */
    size_t count;
    double rounding; /* sum of the table's times by that of the exact ones, less 1 */
    orr_buf text;
};

/* How another generator of text workloads differs (scale-sim.md 7). */
struct orr_rules_gemm {
    const char *name;        /* in reports */
    bool is_run_name_quoted; /* in the configuration of its simulator (scale-sim.md 7.6) */
    orr_layers_style style;  /* of the table it writes (scale-sim.md 7.5) */
    bool
        has_last_pass_only; /* reports overwrite each other: all times are the last pass's (scale-sim.md 7.3) */
    const orr_rules_systolic *systolic;
    /* The CSV file (scale-sim.md 7.1), and the layers made of it: g->shards and g->layers (7.2 to 7.4). */
    orr_code (*read)(orr_shapes *t, orr_span bytes, bool needs_policies, orr_error *err);
    orr_code (*fill)(orr_gemm *g, const orr_shapes *s, orr_error *err);
    orr_code (*write_intermediate)(const orr_gemm *g,
                                   const char *folder,
                                   const char *stem,
                                   orr_error *err);
};

/* Heads that reports share (gemm_report.c). */
void orr__gemm_put_head(const orr_gemm *g, orr_json_writer *w);
void orr__gemm_print_head(const orr_gemm *g, orr_buf *b);

#endif
