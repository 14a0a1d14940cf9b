/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_roofline.c - the time of a kernel from peaks alone, with stated efficiencies.
 *
 * For chips and kinds without measurements, and the base of corrections.  A product runs at 75 % of
 * the peak in whole waves of tiles, on a TPU in whole squares of its arrays; memory reaches 80 % of
 * its peak once enough accesses are in flight, less for kernels known to be worse.  These are rough
 * efficiency classes, not fits, with a correspondingly wide interval. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

#define PRODUCT_EFFICIENCY 0.75
#define ATTENTION_EFFICIENCY 0.55
#define ATTENTION_BACKWARD_EFFICIENCY 0.45

static double least_one(uint64_t size)
{
    return size ? (double)size : 1;
}

/* Fraction of the memory's peak, by kind. */
static double memory_efficiency(const orr_kernel *k)
{
    if (k->is_strided)
        return 0.35;
    switch (k->kind) {
    case ORR_KERNEL_OPTIMIZER:
        return k->form == ORR_FORM_FUSED || k->form == ORR_FORM_PLAIN ? 0.45 : 0.25;
    case ORR_KERNEL_NORM:
        return k->is_backward ? 0.45 : 0.70;
    case ORR_KERNEL_SOFTMAX:
    case ORR_KERNEL_CROSS_ENTROPY:
        return 0.60;
    case ORR_KERNEL_EMBEDDING:
    case ORR_KERNEL_GATHER:
        return k->is_backward ? 0.30 : 0.60;
    case ORR_KERNEL_ROPE:
        return k->is_unfused ? 0.25 : 0.60;
    case ORR_KERNEL_SCAN:
    case ORR_KERNEL_SORT:
    case ORR_KERNEL_TOPK:
        return 0.20;
    default:
        return 0.80;
    }
}

/* A systolic array holds a square of one operand and takes rows of the other as a stream: a TPU
 * pads n and k to its side, rows only to those of a vector register (8 of 32 bits, 16 of 16, 32 of
 * 8; "How to scale your model", part 2).  Rows are shared out among all arrays. */
static double streamed_seconds(const orr_chip *chip, const orr_kernel *k)
{
    const double groups = k->kind == ORR_KERNEL_GROUPED ? least_one(k->groups) : 1;
    const double bytes = orr_kernel_type_bytes(k->type);
    const double side = chip->array, step = bytes >= 4 ? 8 : bytes >= 2 ? 16 : 32;
    const double rows = groups * atlas_ceil((double)k->m / groups / step) * step;
    const double squares = atlas_ceil((double)k->n / side) * atlas_ceil((double)k->k / side);
    const double padded = 2 * least_one(k->batch) * rows * squares * side * side;
    return padded / (chip->peak_tflops[k->type] * 1e12 * PRODUCT_EFFICIENCY);
}

/* Seconds per FLOP increase if the last wave of tiles is not full. */
static double product_seconds(const orr_chip *chip, const orr_kernel *k, double flops)
{
    const double groups = k->kind == ORR_KERNEL_GROUPED ? least_one(k->groups) : 1;
    const double rows = (double)k->m / groups, tile_m = rows <= 64 ? 64 : 128, tile_n = 128;
    const double tiles = groups * least_one(k->batch) * atlas_ceil(rows / tile_m) *
                         atlas_ceil((double)k->n / tile_n);
    const double waves = tiles / chip->units;
    const double padded = tiles * tile_m * tile_n * 2 * (double)k->k;
    const double filled = waves < 1 ? waves : waves / atlas_ceil(waves);
    const double peak = chip->peak_tflops[k->type] * 1e12 * PRODUCT_EFFICIENCY;
    /* Below a wave, split-K keeps part of the chip busy. */
    const double busy = waves < 1 ? sqrt(filled) : 0.5 + 0.5 * filled;
    return (padded > flops ? padded : flops) / (peak * busy);
}

static double compute_seconds(const orr_chip *chip, const orr_kernel *k, double flops)
{
    const double peak = chip->peak_tflops[k->type] * 1e12;
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
        return chip->array ? streamed_seconds(chip, k) : product_seconds(chip, k, flops);
    case ORR_KERNEL_MOE:
    case ORR_KERNEL_CONV:
        return flops / (peak * 0.5);
    case ORR_KERNEL_ATTENTION:
    case ORR_KERNEL_DECODE:
        return flops /
               (peak * (k->is_backward ? ATTENTION_BACKWARD_EFFICIENCY : ATTENTION_EFFICIENCY));
    default:
        return flops / (chip->vector_tflops * 1e12 * 0.5);
    }
}

double atlas_roofline_us(const orr_chip *chip,
                         const orr_kernel *k,
                         const orr_kernel_work *w,
                         double *clock_share)
{
    const double bytes = w->read + w->write;
    if (k->kind == ORR_KERNEL_COPY && (k->form == ORR_FORM_H2D || k->form == ORR_FORM_D2H)) {
        *clock_share = 0;
        return 8 + (double)k->write / (chip->bus_GBps * 1e3);
    }
    const double compute = compute_seconds(chip, k, w->flops) * 1e6;
    double memory = bytes / (chip->memory_GBps * memory_efficiency(k) * 1e3);
    if (k->kind == ORR_KERNEL_ATTENTION && k->is_unfused) {
        const double scores = least_one(k->batch) * (double)k->heads * least_one(k->q) *
                              least_one(k->kv ? k->kv : k->q);
        memory += scores * (k->is_backward ? 8 : 6) * orr_kernel_type_bytes(k->type) /
                  (chip->memory_GBps * 0.7 * 1e3);
    }
    *clock_share = compute / (compute + memory + 1e-9);
    return chip->launch_us + (compute > memory ? compute : memory);
}
