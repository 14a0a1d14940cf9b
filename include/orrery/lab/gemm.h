/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - a network as a table of shapes, and the cost of its layers when distributed over a
 * number of NPUs.
 *
 *     orr_shapes *shapes;
 *     orr_gemm *g;
 *     orr_layers *table;
 *     orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 16, .chip = orr_chip_find("h100")};
 *     if (orr_shapes_read("model.csv", NULL, &shapes, &err)) return report(&err);
 *     if (orr_gemm_create(shapes, &opt, &g, &err)) return report(&err);      // shapes are copied
 *     if (orr_gemm_table(g, &table, &err)) return report(&err);              // layers.h writes and expands it
 *
 * Each pass of a layer is a few kernels.  On a chip they take what chip.h says; on a design of
 * one's own (hardware.h, systolic.h) as long as the arrays need for the products or memory for the
 * traffic, whichever is longer.  docs/format/shapes.md has the CSV file, docs/design/gemm.md how a
 * layer becomes products, shards and collectives.  Equal products are evaluated once, each in
 * constant time, so cost does not depend on sizes.  Experimental: may change in the next
 * release. */
#ifndef ORRERY_LAB_GEMM_H
#define ORRERY_LAB_GEMM_H

#include <orrery/lab/chip.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shapes ---- */

typedef enum orr_shape_kind {
    ORR_SHAPE_GEMM = 0, /* inputs by weights */
    ORR_SHAPE_BMM,      /* many products of inputs by inputs */
    ORR_SHAPE_CONV,
    ORR_SHAPE_EMBEDDING,
    ORR_SHAPE_ATTENTION,
    ORR_SHAPE_NORM,
    ORR_SHAPE_ELEMENTWISE,
    ORR_SHAPE_ACTIVATION,
    ORR_SHAPE_KINDS
} orr_shape_kind;

ORR_API const char *orr_shape_kind_name(orr_shape_kind kind); /* "conv" */

typedef struct orr_shapes orr_shapes;

/* What the generator of text workloads does differently; see orrery/lab/compat.h. */
typedef struct orr_rules_gemm orr_rules_gemm;

typedef struct orr_shapes_options {
    /* NULL: ours.  By the old generator's rules the first line is skipped, columns are always
     * name,m,n,k[,strategy], and a blank line is an error; needs_policies: there must be five
     * columns. */
    const orr_rules_gemm *rules;
    bool needs_policies;
} orr_shapes_options;

/* From a CSV file ("-": standard input) or from memory, which may be freed afterwards; label is
 * used in messages. opt may be NULL. */
ORR_API orr_code orr_shapes_read(const char *path,
                                 const orr_shapes_options *opt,
                                 orr_shapes **out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_shapes_parse(orr_span bytes,
                                  const char *label,
                                  const orr_shapes_options *opt,
                                  orr_shapes **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_shapes_free(orr_shapes *s); /* NULL is fine */
ORR_API size_t orr_shapes_count(const orr_shapes *s);
/* a column gives the policy of each shape */
ORR_API bool orr_shapes_have_policies(const orr_shapes *s);

/* Tables that are built in; false past the last. */
typedef struct orr_shapes_example {
    const char *name, *help;
    orr_str text; /* the CSV file */
} orr_shapes_example;
ORR_API bool orr_shapes_example_at(size_t index, orr_shapes_example *out);

/* ---- cost ---- */

/* Unit of the times in a table. */
typedef enum orr_gemm_times {
    ORR_TIMES_BEST = 0, /* microseconds where the clock is known, else cycles */
    ORR_TIMES_US,       /* as in traces, and as our reader of text workloads assumes */
    ORR_TIMES_NS,
    ORR_TIMES_CYCLES
} orr_gemm_times;

/* Cost of the weight update: elements touched per weight, or a given time. */
typedef enum orr_gemm_update {
    ORR_UPDATE_SGD = 0,  /* 3: weight and gradient read, weight written */
    ORR_UPDATE_MOMENTUM, /* 5 */
    ORR_UPDATE_ADAM,     /* 7 */
    ORR_UPDATE_NONE,
    ORR_UPDATE_GIVEN /* update_time, in the unit of the table */
} orr_gemm_update;

typedef struct orr_gemm_options {
    /* NULL: ours.  Else the output of the old generator with SCALE-Sim v1 or v2, defects included
     * (scale-sim.md 7); shapes must be read by the same rules, and `array` must be given. */
    const orr_rules_gemm *rules;
    orr_policy policy; /* HYBRID_CUSTOMIZED: each shape has its own */
    uint32_t npus;     /* 0: 8 */
    uint32_t packages; /* groups of NPUs; 0: 1 */
    /* Per element of weights and of what collectives carry; 0: that of type, or 2. */
    uint32_t datatype_bytes;
    /* Measured kernels; a chip that was read must outlive the call only. */
    const orr_chip *chip;
    bool has_type;                   /* false: type follows from datatype_bytes */
    orr_kernel_type type;            /* of products on the chip */
    const orr_hardware *hardware;    /* instead of chip: a design */
    const orr_systolic_array *array; /* instead of both: one array, without a clock */
    orr_gemm_times times;
    orr_gemm_update update;
    uint64_t update_time;
    uint32_t repeat;     /* copies of the whole table; 0: 1 */
    const char *program; /* name and version for the head of reports: "orrery 0.1.0"; may be NULL */
} orr_gemm_options;

/* A kernel of a pass on a chip. */
typedef struct orr_gemm_kernel {
    orr_kernel kernel;
    orr_kernel_time time;
    uint32_t shares; /* passes that share it evenly: 1, or 2 */
} orr_gemm_kernel;

/* One pass of a layer on the slowest NPU. */
typedef struct orr_gemm_pass {
    uint64_t cycles; /* from start to end; on a chip at its highest clock */
    /* What each part of a design would take alone; the longest counts, operation by operation.  0
     * on a chip. */
    uint64_t array_cycles, vector_cycles, memory_cycles, overhead_cycles;
    orr_ps time;       /* 0 when the clock is not known */
    uint64_t products; /* multiply-add pairs */
    orr_bytes traffic; /* from and to memory */
    const char *comm;  /* the collective after it: "ALLREDUCE", or "NONE" */
    orr_bytes comm_bytes;
    uint64_t in_table; /* its time in the unit of the table */
    /* On a chip only: 90 % interval, share of the time that scales with the clock, kernels, and
     * whether one of them is outside the measured range. */
    orr_ps low, high;
    double clocked;
    const orr_gemm_kernel *kernels;
    size_t kernel_count;
    bool extrapolates;
} orr_gemm_pass;

enum { ORR_PASS_FORWARD, ORR_PASS_INPUT_GRAD, ORR_PASS_WEIGHT_GRAD, ORR_PASSES };

typedef struct orr_gemm_layer {
    orr_str name;
    orr_shape_kind kind;
    orr_policy policy;
    orr_gemm_pass pass[ORR_PASSES];
    uint64_t update_cycles;
    orr_ps update_time, update_low, update_high;
    const orr_gemm_kernel *update_kernel; /* on a chip, if there is anything to update */
    uint64_t update_in_table;
    orr_bytes weights; /* on one NPU */
    /* Over the three passes, of the arrays' elements or of the chip's peak: 0 to 1. */
    double utilisation;
    /* Extra work of the slowest NPU relative to the mean: 0: all equal. */
    double imbalance;
} orr_gemm_layer;

typedef struct orr_gemm orr_gemm;

/* ORR_EINPUT, with the location in the CSV file: a shape that cannot be distributed or is too
 * large. */
ORR_API orr_code orr_gemm_create(const orr_shapes *s,
                                 const orr_gemm_options *opt,
                                 orr_gemm **out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_gemm_destroy(orr_gemm *g); /* NULL is fine */

ORR_API size_t orr_gemm_count(const orr_gemm *g); /* rows of the CSV file, not counting copies */
ORR_API const orr_gemm_layer *orr_gemm_layer_at(const orr_gemm *g, size_t i);

/* As a table of layers, including copies. */
ORR_API orr_code orr_gemm_table(const orr_gemm *g, orr_layers **out, orr_error *err) ORR_MUST_CHECK;

/* For people, in 80 columns; for programs, one JSON object, or a CSV file
 * (docs/format/gemm.md).  *out is valid until the next call on g. */
ORR_API orr_code orr_gemm_text(orr_gemm *g, orr_str *out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_gemm_json(orr_gemm *g, orr_str *out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_gemm_csv(orr_gemm *g, orr_str *out, orr_error *err) ORR_MUST_CHECK;

/* The old generator's intermediate files (by its rules only), FOLDER/STEM_fwd_pass.csv and so on;
 * the folder must exist. */
ORR_API orr_code orr_gemm_write_intermediate(const orr_gemm *g,
                                             const char *folder,
                                             const char *stem,
                                             orr_error *err) ORR_MUST_CHECK;

/* How a table of layers is written under these rules. */
ORR_API orr_layers_style orr_gemm_style(const orr_rules_gemm *rules);
/* May a SCALE-Sim configuration have this run_name?  The two simulators derive a folder name from
 * it; with the wrong spelling the old generator does not find the reports (scale-sim.md 7.6).
 * path: for the message. */
ORR_API orr_code orr_gemm_check_run_name(const orr_rules_gemm *rules,
                                         const char *path,
                                         const char *run_name,
                                         orr_error *err) ORR_MUST_CHECK;

/* ---- sweeps ---- */

/* The same shapes on arrays of all sizes, rows and columns each a power of two from least to most,
 * with each dataflow; the rest of the hardware stays as it is. */
typedef struct orr_gemm_sweep orr_gemm_sweep;

ORR_API orr_code orr_gemm_sweep_create(const orr_shapes *s,
                                       const orr_gemm_options *opt,
                                       uint32_t least,
                                       uint32_t most,
                                       orr_gemm_sweep **out,
                                       orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_gemm_sweep_destroy(orr_gemm_sweep *w); /* NULL is fine */
/* *out is valid until the next call on w. */
ORR_API orr_code orr_gemm_sweep_text(orr_gemm_sweep *w,
                                     bool is_colored,
                                     orr_str *out,
                                     orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_gemm_sweep_json(orr_gemm_sweep *w,
                                     orr_str *out,
                                     orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_gemm_sweep_csv(orr_gemm_sweep *w, orr_str *out, orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
