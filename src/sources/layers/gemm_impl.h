/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_impl.h - what the files that make a table of layers out of shapes share.
 *
 *     shapes_read.c                 CSV            -> orr_shape
 *     gemm_work.c                   orr_shape      -> lay_work: products, traffic and collectives of one NPU
 *     gemm.c                        lay_op         -> cycles of arrays
 *     gemm_chip.c                   lay_op         -> time of kernels on a chip
 *     gemm.c                        all of it      -> orr_gemm_layer, orr_layers
 */
#ifndef ORR_GEMM_IMPL_H
#define ORR_GEMM_IMPL_H

#include <orrery/lab/chip.h>
#include <orrery/lab/gemm.h>

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/hash.h"
#include "base/short_forms.h"

/* ---- shapes ---- */

/* Every number a shape can have; which kind has which is a table in shapes_read.c. */
typedef enum lay_size {
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
} lay_size;

typedef struct lay_shape {
    orr_str name;
    orr_shape_kind kind;
    bool has_policy;
    orr_policy policy;
    uint32_t line, policy_column;
    uint64_t size[ORR__SIZES];
    uint32_t column[ORR__SIZES]; /* for messages; 0: it was not given */
} lay_shape;

struct orr_shapes {
    orr_arena *arena; /* names and the label */
    const char *label;
    orr_content_hash hash; /* of the file */
    bool has_policies;
    lay_shape *all;
    size_t count, room;
};

/* Copies s and its name. */
orr_code lay_shapes_add(orr_shapes *t, const lay_shape *s, orr_error *err) ORR_MUST_CHECK;
const char *lay_size_name(lay_size size); /* "cout" */
/* The four ways of sharing out a layer; false: another word. */
bool lay_strategy_find(orr_str word, orr_policy *out);
#define ORR__STRATEGIES "DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA"

/* ---- work of one NPU ---- */

/* How many ways the batch and the outputs of a layer are cut. */
typedef struct lay_ways {
    uint64_t batch, output;
} lay_ways;
lay_ways lay_ways_of(orr_policy p, uint64_t npus, uint64_t packages);

/* count products of m x k by k x n, of each of which part / whole is computed (the rest is
 * masked). */
typedef struct lay_product {
    uint64_t count, m, n, k;
    uint64_t part, whole;
} lay_product;

/* What runs as one: as long as its longest part. */
enum { ORR__PRODUCTS = 5, ORR__OPS = 5 };
typedef struct lay_op {
    lay_product product[ORR__PRODUCTS];
    size_t product_count;
    uint64_t vector_ops; /* beside the arrays */
    uint64_t elements;   /* from and to memory */
    /* The same on a chip: one kernel, without a type, its bytes counted in elements.  Two passes
     * may share one (both gradients of a convolution). */
    orr_kernel kernel;
    uint32_t kernel_shares; /* 0: 1 */
} lay_op;

typedef struct lay_pass_work {
    lay_op op[ORR__OPS];
    size_t op_count;
    const char *comm;
    uint64_t comm_elements;
} lay_pass_work;

typedef struct lay_work {
    lay_pass_work pass[ORR_PASSES];
    uint64_t weights; /* elements */
    uint64_t updated; /* of these, in one step */
    double imbalance;
} lay_work;

/* On-chip memory in elements; UINT64_MAX: all fits. */
typedef struct lay_buffers {
    uint64_t input, weight, output;
} lay_buffers;

/* ORR_EINPUT: it cannot be shared out like this, or is too large; label and the shape's line are
 * the place. */
orr_code lay_work_of(const lay_shape *s,
                     lay_ways ways,
                     const lay_buffers *buffers,
                     const char *label,
                     lay_work *out,
                     orr_error *err) ORR_MUST_CHECK;

/* ---- cost ---- */

/* Cycles of one product on one array; with the stalls, where the array has a bandwidth. */
orr_code lay_array_cycles(const orr_systolic_array *a,
                          const orr_rules_systolic *rules,
                          uint64_t m,
                          uint64_t n,
                          uint64_t k,
                          uint64_t *out,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- time on a chip ---- */

typedef struct lay_chip lay_chip;
orr_code lay_chip_create(const orr_chip *chip,
                         orr_kernel_type type,
                         orr_arena *arena,
                         lay_chip **out,
                         orr_error *err) ORR_MUST_CHECK;
void lay_chip_destroy(lay_chip *c); /* NULL is fine */
/* The type of products of so many bytes per element; false: there is none. */
bool lay_type_of_bytes(const orr_chip *chip, uint32_t bytes, orr_kernel_type *out);
/* Time, interval, cycles, traffic and kernels; lists of kernels live in the arena. */
orr_code lay_chip_pass(lay_chip *c, const lay_pass_work *work, orr_gemm_pass *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code lay_chip_update(lay_chip *c,
                         orr_gemm_update how,
                         uint64_t weights,
                         orr_gemm_pass *out,
                         orr_error *err) ORR_MUST_CHECK;

/* Of all passes so far, without updates. */
typedef struct lay_chip_sum {
    double us, low_us, high_us;
    double capped_us; /* as one step after the other, with the clock under the power cap */
    double extrapolated_us;
    size_t kernels, extrapolated; /* different ones */
} lay_chip_sum;
void lay_chip_total(const lay_chip *c, double copies, lay_chip_sum *out);

/* ---- everything ---- */

struct orr_gemm {
    orr_gemm_options opt; /* defaults filled in; pointers as below */
    orr_chip own_chip;    /* of a file */
    orr_hardware hardware;
    orr_systolic_array array;
    orr_arena *arena; /* names, label */
    const char *label;
    orr_content_hash hash;
    orr_gemm_layer *layers;
    lay_product (*shards)[ORR_PASSES]; /* rules->fill: the product of each pass */
    size_t count;
    lay_chip_sum chip_sum;
    double rounding; /* sum of the table's times by that of the exact ones, less 1 */
    orr_buf text;
};

/* How another generator of text workloads differs (scale-sim.md 7). */
struct orr_rules_gemm {
    const char *name;        /* in reports */
    bool is_run_name_quoted; /* in the configuration of its simulator (scale-sim.md 7.6) */
    orr_layers_style style;  /* of the table it writes (scale-sim.md 7.5) */
    /* Reports overwrite each other: all times are the last pass's (scale-sim.md 7.3). */
    bool has_last_pass_only;
    const orr_rules_systolic *systolic;
    /* The CSV file (scale-sim.md 7.1), and the layers made of it: g->shards and g->layers (7.2 to
     * 7.4). */
    orr_code (*read)(orr_shapes *t, orr_span bytes, bool needs_policies, orr_error *err);
    orr_code (*fill)(orr_gemm *g, const orr_shapes *s, orr_error *err);
    orr_code (*write_intermediate)(const orr_gemm *g,
                                   const char *folder,
                                   const char *stem,
                                   orr_error *err);
};

#endif
