/* SPDX-License-Identifier: Apache-2.0 */
/* chip.h - how long a kernel takes on a chip, from measurements, with an uncertainty.
 *
 *     const orr_chip *chip = orr_chip_find("h200");
 *     orr_kernel k;
 *     orr_kernel_time t;
 *     if (orr_kernel_parse(orr_str_of("gemm bf16 m=8192 n=28672 k=8192"), &k, &err)) return ...;
 *     if (orr_chip_time(chip, &k, &t))
 *         printf("%.1f us (%.1f-%.1f)\n", t.us, t.low_us, t.high_us);
 *
 * A kernel is described by what it computes, not by its implementation: kind, data type, sizes.
 * Traces carry the same as text (attribute `kernels`: one or more, separated by ";"), so that a
 * trace made once can be timed for another chip.  docs/design/atlas.md says where times come from,
 * their error, and the grammar of the text.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_CHIP_H
#define ORRERY_LAB_CHIP_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels ---- */

/* With the sizes each needs; sizes left out are 1 unless stated otherwise. */
typedef enum orr_kernel_kind {
    ORR_KERNEL_LAUNCH = 0, /* launch: an empty kernel; needs nothing */
    ORR_KERNEL_GEMM,       /* gemm: batch products m x k by k x n */
    /* grouped: m rows in total, split over groups, each with its own k x n */
    ORR_KERNEL_GROUPED,
    /* moe: a whole layer of gated experts, forward: m tokens of width k, each routed to topk of
     * `groups` experts of width n; including sorting, activation and the final sum */
    ORR_KERNEL_MOE,
    /* attention: batch, heads, kv_heads (left out: heads), head, head_v (left out: head), q, kv
     * (left out: q); causal, backward, unfused, paged */
    ORR_KERNEL_ATTENTION,
    ORR_KERNEL_DECODE,        /* decode: as attention, q (1) new tokens against kv cached ones */
    ORR_KERNEL_NORM,          /* norm: m rows of n; rms, layer or channels; backward */
    ORR_KERNEL_SOFTMAX,       /* softmax: m rows of n; backward, log */
    ORR_KERNEL_CROSS_ENTROPY, /* cross_entropy: m tokens, n vocabulary entries; backward */
    ORR_KERNEL_ACTIVATION,    /* activation: m results; gelu, silu or relu; gated, backward */
    ORR_KERNEL_EMBEDDING,     /* embedding: m tokens of width n, k vocabulary entries; backward */
    /* elementwise: read and write bytes; strided, then dims, turned, cast */
    ORR_KERNEL_ELEMENTWISE,
    ORR_KERNEL_DROPOUT, /* dropout: m elements; backward */
    /* copy: write bytes; strided, then dims, turned; cast, joined, cache; h2d, d2h: over a bus */
    ORR_KERNEL_COPY,
    ORR_KERNEL_FILL,      /* fill: write bytes */
    ORR_KERNEL_REDUCE,    /* reduce: m rows of n to one; rows, columns (m sums) or all */
    ORR_KERNEL_GATHER,    /* gather: m rows of n by index; scatter; backward: accumulates */
    ORR_KERNEL_ROPE,      /* rope: m rows of n elements; backward */
    ORR_KERNEL_OPTIMIZER, /* optimizer: m parameters in k tensors; fused, foreach, clip */
    ORR_KERNEL_TOPK,      /* topk: m rows of n, of which topk are kept */
    ORR_KERNEL_SORT,      /* sort: m elements */
    ORR_KERNEL_SCAN,      /* scan: prefix sums along m rows of n; columns: down the rows */
    /* conv: batch images of k channels, side x side, to n channels; window, stride, groups;
     * backward: both gradients */
    ORR_KERNEL_CONV,
    /* pool: batch images of k channels, side x side, one result per stride x stride; backward */
    ORR_KERNEL_POOL,
    ORR_KERNEL_KINDS
} orr_kernel_kind;

typedef enum orr_kernel_type {
    ORR_TYPE_BF16 = 0,
    ORR_TYPE_FP16,
    ORR_TYPE_FP32,
    ORR_TYPE_TF32,
    ORR_TYPE_FP8,       /* e4m3, one scale per tensor or row */
    ORR_TYPE_FP8_BLOCK, /* e4m3, one scale per block of 128 */
    ORR_TYPE_MXFP8,     /* one scale per 32 */
    ORR_TYPE_NVFP4,     /* e2m1, one scale per 16 */
    ORR_TYPE_MXFP4,     /* e2m1 weights, one scale per 32, wider activations */
    ORR_TYPE_INT8,
    ORR_TYPE_W8A16, /* 8-bit weights, 16-bit products */
    ORR_TYPE_W4A16,
    ORR_TYPE_FP64,
    ORR_KERNEL_TYPES
} orr_kernel_type;

/* The variant of a kind, one word each; ORR_FORM_PLAIN has none. */
typedef enum orr_kernel_form {
    ORR_FORM_PLAIN = 0, /* gemm, activation (gelu), norm (rms), optimizer (fused), ... */
    ORR_FORM_BIAS,      /* gemm: with a bias added */
    ORR_FORM_GELU,      /* gemm: bias and gelu; activation */
    ORR_FORM_RELU,
    ORR_FORM_SILU,
    ORR_FORM_RMS, /* norm */
    ORR_FORM_LAYER,
    ORR_FORM_CHANNELS,
    ORR_FORM_FUSED, /* optimizer: one pass of AdamW */
    ORR_FORM_FOREACH,
    ORR_FORM_CLIP, /* norm of all gradients, then scaling */
    ORR_FORM_ROWS, /* reduce */
    ORR_FORM_COLUMNS,
    ORR_FORM_ALL,
    ORR_FORM_H2D, /* copy */
    ORR_FORM_D2H,
    ORR_FORM_LOG,      /* softmax */
    ORR_FORM_PAGED,    /* attention, decode: as in serving software, on pages of a KV cache */
    ORR_FORM_QUANTIZE, /* gemm: including quantisation of the left factor */
    ORR_FORM_JOINED,   /* copy: several tensors into one */
    ORR_FORM_SCATTER,  /* gather: writes rows by index instead of reading them */
    ORR_FORM_CACHE,    /* copy: keys or values into a KV cache */
    ORR_FORM_MIXED,    /* decode: in one launch with prefill */
    ORR_KERNEL_FORMS
} orr_kernel_form;

/* y = x W^T as layers store weights, x W, x^T W. */
typedef enum orr_kernel_layout {
    ORR_LAYOUT_NT = 0,
    ORR_LAYOUT_NN,
    ORR_LAYOUT_TN
} orr_kernel_layout;

/* Plain values; a size of 0 was not given. */
typedef struct orr_kernel {
    orr_kernel_kind kind;
    orr_kernel_type type;
    orr_kernel_form form;
    orr_kernel_layout layout;
    bool is_backward;
    bool is_causal;
    bool is_unfused; /* attention as matmul, mask, softmax, matmul */
    bool is_gated;   /* activation of one half times the other */
    /* an operand is transposed, sliced or expanded: accesses are not whole cache lines */
    bool is_strided;
    bool accumulates; /* gemm: the result is accumulated into the output, in 32 bits */
    bool is_cold;     /* no operand is cached, as in isolated kernel benchmarks */
    bool is_turned;   /* strided: neighbours in one operand are apart in another */
    bool casts;       /* operands are of several types */
    uint64_t batch, m, n, k, groups, topk;
    uint64_t heads, kv_heads, head, head_v, q, kv;
    uint64_t read, write;          /* bytes */
    uint64_t side, window, stride; /* conv */
    /* strided: dimensions of the index, after merging those that are contiguous in all operands;
     * 0: unknown */
    uint64_t dims;
    uint64_t count;  /* consecutive launches; 0: 1 */
    uint64_t pieces; /* gemm: split into this many parts on several streams, to overlap with the
                      * communication of its inputs or outputs; 0: 1 */
    uint64_t ops; /* elementwise: instructions for each number written, where these take longer than
                      * the memory; 0: few */
} orr_kernel;

enum { ORR_KERNEL_TEXT = 320 }; /* length of the longest text, with its NUL */

/* "gemm bf16 m=8192 n=28672 k=8192 bias": kind and type first, the rest in any order.  ORR_EINPUT
 * names the offending word, and err->where its column. */
ORR_API orr_code orr_kernel_parse(orr_str text, orr_kernel *out, orr_error *err) ORR_MUST_CHECK;
/* Its length, as snprintf counts. */
ORR_API size_t orr_kernel_text(const orr_kernel *k, char *out, size_t size);
/* Removes the first kernel from a list separated by ";".  ORR_END: the list is empty. */
ORR_API orr_code orr_kernel_next(orr_str *list, orr_kernel *out, orr_error *err) ORR_MUST_CHECK;

/* Side and stride of a convolution whose image has one side and whose result another: a kernel has
 * no padding, its result is its image by the stride. */
ORR_API void orr_kernel_set_sides(orr_kernel *k, uint64_t side, uint64_t out_side);

/* ORR_OK, or ORR_EINPUT naming the size that is missing or too large. */
ORR_API orr_code orr_kernel_check(const orr_kernel *k, orr_error *err);

/* Minimum work: a multiply-add counts as two FLOPs, every operand is moved once. */
typedef struct orr_kernel_work {
    double flops, read, write; /* bytes */
} orr_kernel_work;
ORR_API orr_kernel_work orr_kernel_count(const orr_kernel *k);

ORR_API const char *orr_kernel_kind_name(orr_kernel_kind kind);
ORR_API const char *orr_kernel_type_name(orr_kernel_type type); /* "bf16" */
ORR_API bool orr_kernel_type_find(orr_str name, orr_kernel_type *out);
/* per element, including scales; fp4: 0.5625 */
ORR_API double orr_kernel_type_bytes(orr_kernel_type type);

/* ---- chips ---- */

typedef struct orr_chip {
    const char *name, *note;
    const char *source; /* of its measurements; NULL: none, a roofline */
    const char *like;   /* chip from which kinds not measured here are taken; or NULL */
    double peak_tflops[ORR_KERNEL_TYPES]; /* dense; 0: the chip does not support the type */
    double vector_tflops;                 /* outside the matrix units */
    double memory_GBps, memory_GB;        /* 10^9 */
    double l2_MB;
    uint32_t units; /* multiprocessors, cores */
    uint32_t array; /* side of a systolic array that takes rows as a stream (TPU); 0: tiles */
    double clock_MHz;
    double launch_us; /* shortest kernel */
    /* The clock under the power cap: clock_MHz - slope x (mean TFLOP/s - from); 0: not known. */
    double capped_from_tflops, capped_slope;
    /* Kernels were not measured at the highest clock either: times grow with this power of the
     * clock ratio; 0: 1. */
    double capped_power;
    /* Chips of one kind differ in power draw per operation: standard deviation over mean; 0: no
     * spread. */
    double power_spread;
    double dispatch_us; /* host time to issue an operator eagerly; 0: not known */
    double bus_GBps;    /* to the host, per direction */
    /* Of a chip read from a file: the chip it modifies, time factors by kind (0: 1), and their 90 %
     * interval (0: the base's). */
    const struct orr_chip *base;
    double scale[ORR_KERNEL_KINDS], scale_low[ORR_KERNEL_KINDS], scale_high[ORR_KERNEL_KINDS];
} orr_chip;

/* Written by `orrery calibrate kernels`.  The name is that of the base chip. */
ORR_API orr_code orr_chip_read(const char *path, orr_chip *out, orr_error *err) ORR_MUST_CHECK;
/* From memory; label is used in messages. */
ORR_API orr_code orr_chip_parse(orr_span bytes, const char *label, orr_chip *out, orr_error *err)
    ORR_MUST_CHECK;

/* In reading order; NULL past the last. */
ORR_API const orr_chip *orr_chip_at(size_t index);
/* By name or alias ("h100-sxm"); NULL: there is none. */
ORR_API const orr_chip *orr_chip_find(const char *name);

/* The clock in MHz when a step averages mean_tflops of 16-bit products, limited by the power cap.
 * clock_MHz if the cap is not known. */
ORR_API double orr_chip_clock(const orr_chip *chip, double mean_tflops);
/* The resulting slowdown of clock-bound kernels: a factor of at least 1. */
ORR_API double orr_chip_slowdown(const orr_chip *chip, double mean_tflops);

/* Chips that wait for each other run at the pace of the slowest: how much longer clock-bound work
 * takes on a chip that draws `deviations` standard deviations more power than the mean chip.  At
 * least 1; exactly 1 below the power cap, where all run at the same clock.  A chip whose clock
 * under the cap is not known is assumed to be below it. */
ORR_API double orr_chip_slowest(const orr_chip *chip, double mean_tflops, double deviations);
/* The expected maximum of `count` standard normal samples: 0 for one, 1.42 for 8, 3.24 for
 * 1,000. */
ORR_API double orr_highest_of(uint32_t count);

typedef struct orr_kernel_time {
    double us;              /* on the device, at clock_MHz */
    double low_us, high_us; /* 90 % of similar kernels lie within */
    bool extrapolates;      /* outside the measured range */
    const char *basis;      /* "measured", "like h200", "roofline", ... */
    double clock_share;     /* share of us that scales with the clock: 0 to 1 */
    uint32_t launches;      /* kernels */
} orr_kernel_time;

/* false: the kernel lacks a size, or the chip does not support the type. */
ORR_API bool orr_chip_time(const orr_chip *chip, const orr_kernel *k, orr_kernel_time *out);

#ifdef __cplusplus
}
#endif
#endif
