/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_time.c - the time of a kernel on a chip, and how sure it is.
 *
 * Which classes of the table speak about a kernel, and what is done where none does: a chip without
 * a class borrows from the chip it is like, by differences (how much dearer is an unaligned product
 * than an aligned one?) and with its own figures in the base.  Whatever was found, a time is never
 * below what the chip's peaks allow. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

/* An estimate in the making: logarithms throughout. */
typedef struct estimate {
    double value;     /* of microseconds */
    double low, high; /* offsets of the 90 % interval */
    double outside, far;
    bool is_borrowed; /* from another chip */
} estimate;

/* Interval of what is borrowed, beyond that of the class. */
#define BORROWED 0.25

static uint32_t index_of(const orr_chip *chip)
{
    const orr_chip *const first = orr_chip_at(0);
    return (uint32_t)(chip - first);
}

static bool find(
    const orr_chip *chip, atlas_group group, uint32_t type, uint32_t variant, atlas_class *out)
{
    return atlas_find(atlas_key(index_of(chip), (uint32_t)group, type, variant), out);
}

/* The class of this chip, or of the next it is like; NULL: none has it. */
static const orr_chip *find_near(
    const orr_chip *chip, atlas_group group, uint32_t type, uint32_t variant, atlas_class *out)
{
    for (unsigned steps = 0; chip && steps < 4; steps++) {
        if (find(chip, group, type, variant, out))
            return chip;
        chip = chip->like ? orr_chip_find(chip->like) : NULL;
    }
    return NULL;
}

static void widen(estimate *e, double low, double high)
{
    e->low = -sqrt(e->low * e->low + low * low);
    e->high = sqrt(e->high * e->high + high * high);
}

static void note(estimate *e, const atlas_point *p)
{
    e->outside = p->outside > e->outside ? p->outside : e->outside;
    e->far = p->far > e->far ? p->far : e->far;
}

/* ---- products ---- */

static uint64_t low_bit(uint64_t x)
{
    return x & (~x + 1);
}

/* Tensor cores load whole groups of 16 bytes: every row of every operand must be so many. */
static bool is_aligned(const orr_kernel *k)
{
    const uint64_t inner = k->layout == ORR_LAYOUT_TN ? k->m : k->k;
    const uint64_t least = k->type == ORR_TYPE_FP32 ? 1 : k->type == ORR_TYPE_TF32 ? 4 : 8;
    return low_bit(inner) >= least && low_bit(k->n) >= least;
}

static uint32_t gemm_variant(const orr_kernel *k)
{
    if (k->form == ORR_FORM_BIAS)
        return 3;
    if (k->form == ORR_FORM_GELU || k->form == ORR_FORM_RELU)
        return 4;
    return (uint32_t)k->layout;
}

/* 16-bit types are one. */
static uint32_t like_type(uint32_t type)
{
    return type == ORR_TYPE_FP16 ? ORR_TYPE_BF16 : type;
}

/* On top of the plain product: layout, epilogue, cold caches, odd sizes, batches.  Measured on one
 * chip only; others take the difference to what that chip does with the plain product. */
static void add_variant(const orr_chip *chip, const orr_kernel *k, const double *x, estimate *e)
{
    const orr_chip *const from = orr_chip_find("h200");
    const bool is_own = chip == from;
    atlas_class c, plain;
    if (!find(from, ATLAS_GEMM_VARIANT, ORR_TYPE_BF16, 0, &plain))
        return;
    const bool is_batched = k->batch > 1 || k->kind == ORR_KERNEL_GROUPED;
    if (is_batched) {
        if (!find(from, ATLAS_GEMM_BATCHED, ORR_TYPE_BF16, 0, &c))
            return;
        const atlas_point p = atlas_look(&c, x);
        e->value += p.value;
        note(e, &p);
        widen(e, (double)c.low, (double)c.high);
        return;
    }
    const uint32_t variant = gemm_variant(k);
    if (!find(from, k->is_cold ? ATLAS_GEMM_COLD : ATLAS_GEMM_VARIANT, ORR_TYPE_BF16, variant, &c))
        return;
    const atlas_point p = atlas_look(&c, x);
    if (is_own) {
        e->value += p.value;
        e->low = (double)c.low;
        e->high = (double)c.high;
        note(e, &p);
    } else if (variant || k->is_cold) {
        e->value += p.value - atlas_look(&plain, x).value;
        widen(e, (double)c.low, (double)c.high);
    }
}

static bool time_product(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    const orr_chip *const ours = orr_chip_find("h200");
    const double groups = k->kind == ORR_KERNEL_GROUPED && k->groups ? (double)k->groups : 1;
    const double x[3] = {log2(fmax(1, (double)k->m / groups)), log2((double)k->n),
                         log2((double)k->k)};
    const uint32_t type = like_type(k->type);
    const bool is_odd = !is_aligned(k) && type == ORR_TYPE_BF16;
    atlas_class c, other;
    if (chip == ours && (is_odd || type == ORR_TYPE_FP8) &&
        find(ours, ATLAS_GEMM_OWN, type, is_odd && k->is_cold, &c)) {
        const atlas_point p = atlas_look(&c, x);
        *e = (estimate){log(atlas_gemm_base(chip, k, c.p)) + p.value,
                        (double)c.low,
                        (double)c.high,
                        p.outside,
                        p.far,
                        false};
        return true;
    }
    const orr_chip *const from = find_near(chip, ATLAS_GEMM, type, 0, &c);
    if (!from)
        return false;
    const atlas_point p = atlas_look(&c, x);
    const bool is_batched = k->batch > 1 || k->kind == ORR_KERNEL_GROUPED;
    *e = (estimate){log(atlas_gemm_base(chip, k, c.p)),
                    (double)c.low,
                    (double)c.high,
                    p.outside,
                    p.far,
                    from != chip};
    if (!is_batched)
        e->value += p.value;
    if (e->is_borrowed)
        widen(e, BORROWED, BORROWED);
    if (type == ORR_TYPE_BF16)
        add_variant(chip, k, x, e);
    if (is_odd && find(ours, ATLAS_GEMM_OWN, type, 0, &other) &&
        find(ours, ATLAS_GEMM, type, 0, &c)) {
        const double aligned = log(atlas_gemm_base(ours, k, c.p)) + atlas_look(&c, x).value;
        const double odd = log(atlas_gemm_base(ours, k, other.p)) + atlas_look(&other, x).value;
        e->value += odd > aligned ? odd - aligned : 0;
        widen(e, (double)other.low, (double)other.high);
    }
    return true;
}

/* ---- all ---- */

static bool is_product(const orr_kernel *k)
{
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
    case ORR_KERNEL_MOE:
    case ORR_KERNEL_ATTENTION:
    case ORR_KERNEL_DECODE:
    case ORR_KERNEL_CONV:
        return true;
    default:
        return false;
    }
}

static bool time_measured(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
        return time_product(chip, k, e);
    default:
        return false;
    }
}

/* What no kernel can beat: the arithmetic at the highest clock, the memory at its peak unless all
 * of it may lie in the cache. */
static double least_us(const orr_chip *chip, const orr_kernel *k)
{
    const orr_kernel_work w = orr_kernel_count(k);
    const double bytes = w.read + w.write, cached = chip->l2_MB * 1e6;
    const double beyond = bytes > cached ? bytes - cached : 0;
    const double memory = (k->is_cold ? bytes : beyond) / (chip->memory_GBps * 1e3);
    const double peak = is_product(k) ? chip->peak_tflops[k->type] : chip->vector_tflops;
    const double compute = is_product(k) && peak > 0 ? w.flops / (peak * 1.085e6) : 0;
    return memory > compute ? memory : compute;
}

/* Beyond what was measured intervals grow: half as wide again for each octave. */
static double wider(const estimate *e)
{
    const double away = e->far > 1 ? e->far - 1 : 0;
    return 1 + 0.5 * (away + e->outside);
}

static const char *basis_of(const orr_chip *chip, const estimate *e, bool extrapolates)
{
    if (e->is_borrowed)
        return chip->source ? "measured on another chip" : "like another chip";
    return extrapolates ? "measured, extrapolated" : "measured";
}

bool orr_chip_time(const orr_chip *chip, const orr_kernel *k, orr_kernel_time *out)
{
    estimate e = {0, 0, 0, 0, 0, false};
    double share = 0;
    if (orr_kernel_check(k, NULL))
        return false;
    if (is_product(k) && chip->peak_tflops[k->type] <= 0)
        return false;
    const double times = k->count ? (double)k->count : 1;
    const double roofline = atlas_roofline_us(chip, k, &share);
    *out = (orr_kernel_time){.clock_share = share,
                             .launches = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX};
    if (!time_measured(chip, k, &e)) {
        const double wide = chip->source ? 1.8 : 2.2;
        out->us = times * roofline;
        out->low_us = out->us / wide;
        out->high_us = out->us * wide;
        out->extrapolates = true;
        out->basis = "roofline";
        return true;
    }
    const double least = least_us(chip, k), us = exp(e.value), more = wider(&e);
    out->us = times * (us > least ? us : least);
    out->low_us = out->us * exp(e.low * more);
    if (out->low_us < times * least)
        out->low_us = times * least;
    out->high_us = out->us * exp(e.high * more);
    out->extrapolates = e.is_borrowed || e.outside > 0.01 || e.far > 1.5;
    out->basis = basis_of(chip, &e, out->extrapolates);
    return true;
}
