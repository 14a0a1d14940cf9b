/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_time.c - the time of a kernel on a chip, with its interval.
 *
 * Selects the classes of the table that apply to a kernel, and the fallback if none does: a chip
 * without a class borrows from the chip it is like, by ratios (how much slower is an unaligned
 * product than an aligned one?) and with its own figures in the base.  In any case a time is never
 * below the bound by the chip's peaks. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

/* An estimate in progress: microseconds, and logarithmic corrections. */
typedef struct estimate {
    double base;
    double value;
    double low, high; /* offsets of the 90 % interval */
    double outside, far;
    const atlas_class *own; /* the interval is that of this class; NULL: of several */
    bool is_borrowed;       /* from another chip */
    bool is_same_die;       /* from another chip with the same die */
    double launch;          /* before memory is read */
} estimate;

/* Extra interval for borrowed values, beyond that of the class. */
#define BORROWED 0.25
static uint32_t index_of(const orr_chip *chip)
{
    const orr_chip *const first = orr_chip_at(0);
    return (uint32_t)(chip - first);
}

static bool find(const orr_chip *chip,
                 atlas_group group,
                 uint32_t type,
                 uint32_t variant,
                 const atlas_class **out)
{
    *out = atlas_find(atlas_key(index_of(chip), (uint32_t)group, type, variant));
    return *out;
}

/* The class of this chip, or of the next one it is like; NULL: none has it. */
static const orr_chip *find_near(const orr_chip *chip,
                                 atlas_group group,
                                 uint32_t type,
                                 uint32_t variant,
                                 const atlas_class **out)
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
    e->own = NULL;
}

static void set(
    estimate *e, double base, const atlas_class *c, const atlas_point *p, bool is_borrowed)
{
    *e = (estimate){base,   p->value, (double)c->low, (double)c->high, p->outside,
                    p->far, c,        is_borrowed};
    if (is_borrowed)
        widen(e, BORROWED, BORROWED);
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

/* Largest power of two dividing the row length of every operand, in elements; rows of one element
 * are a vector, which has no rows. */
static uint64_t alignment_of(const orr_kernel *k)
{
    const uint64_t side = k->layout == ORR_LAYOUT_TN ? k->m : k->k;
    const uint64_t inner = side == 1 ? 16 : low_bit(side), n = k->n == 1 ? 16 : low_bit(k->n);
    return inner < n ? inner : n;
}

/* Tensor cores load groups of 16 bytes: every row of every operand must be a multiple. */
static bool is_aligned(const orr_kernel *k)
{
    return alignment_of(k) >= (k->type == ORR_TYPE_FP32 ? 1 : k->type == ORR_TYPE_TF32 ? 4 : 8);
}

/* Of ATLAS_GEMM_OWN: rows with an odd or an even number of elements. */
static uint32_t odd_variant(const orr_kernel *k, bool is_odd)
{
    return is_odd ? (alignment_of(k) > 1 ? 2 : 0) + (uint32_t)k->is_cold : 0;
}

static uint32_t gemm_variant(const orr_kernel *k)
{
    if (k->form == ORR_FORM_BIAS)
        return 3;
    if (k->form == ORR_FORM_GELU || k->form == ORR_FORM_RELU)
        return 4;
    return (uint32_t)k->layout;
}

/* The 16-bit types are equivalent. */
static uint32_t like_type(uint32_t type)
{
    return type == ORR_TYPE_FP16 ? ORR_TYPE_BF16 : type;
}

/* Relative to the plain product: layout, epilogue, cold caches, odd sizes, batches.  Measured on
 * one chip only; others apply its ratio to the plain product. */
static void add_variant(const orr_chip *chip, const orr_kernel *k, const double *x, estimate *e)
{
    const orr_chip *const from = atlas_ours();
    const bool is_own = chip == from;
    const atlas_class *c, *plain;
    const bool is_batched = k->batch > 1 || k->kind == ORR_KERNEL_GROUPED;
    if (is_batched) {
        if (!find(from, ATLAS_GEMM_BATCHED, ORR_TYPE_BF16, 0, &c))
            return;
        const atlas_point p = atlas_look(c, x);
        e->value += p.value;
        note(e, &p);
        widen(e, (double)c->low, (double)c->high);
        return;
    }
    const uint32_t variant = gemm_variant(k);
    if (!find(from, k->is_cold ? ATLAS_GEMM_COLD : ATLAS_GEMM_VARIANT, ORR_TYPE_BF16, variant, &c))
        return;
    const atlas_point p = atlas_look(c, x);
    if (is_own) {
        e->value += p.value;
        e->low = (double)c->low;
        e->high = (double)c->high;
        e->own = c;
        note(e, &p);
    } else if ((variant || k->is_cold) &&
               find(from, ATLAS_GEMM_VARIANT, ORR_TYPE_BF16, 0, &plain)) {
        e->value += p.value - atlas_look(plain, x).value;
        widen(e, (double)c->low, (double)c->high);
    }
}

static bool time_product(const orr_chip *chip,
                         const orr_kernel *k,
                         const orr_kernel_work *w,
                         estimate *e)
{
    const orr_chip *const ours = atlas_ours();
    const double groups = k->kind == ORR_KERNEL_GROUPED && k->groups ? (double)k->groups : 1;
    const double x[3] = {log2(fmax(1, (double)k->m / groups)), log2((double)k->n),
                         log2((double)k->k)};
    const uint32_t type = like_type(k->type);
    const bool is_odd = !is_aligned(k) && type == ORR_TYPE_BF16;
    const atlas_class *c, *other;
    if (chip == ours && (is_odd || (type == ORR_TYPE_FP8 && k->form != ORR_FORM_QUANTIZE)) &&
        (find(ours, ATLAS_GEMM_OWN, type, odd_variant(k, is_odd), &c) ||
         find(ours, ATLAS_GEMM_OWN, type, is_odd && k->is_cold, &c))) {
        const atlas_point p = atlas_look(c, x);
        set(e, atlas_own_base(chip, k, w, c), c, &p, false);
        return true;
    }
    const bool is_batched = k->batch > 1 || k->kind == ORR_KERNEL_GROUPED;
    const uint32_t own = k->is_cold ? ATLAS_ALIGNED_COLD : ATLAS_ALIGNED;
    if (chip == ours && type == ORR_TYPE_BF16 && !is_batched &&
        find(ours, ATLAS_GEMM_OWN, type, own + gemm_variant(k), &c) &&
        find(ours, ATLAS_GEMM, type, 0, &other)) {
        /* Residual relative to the mean of the public products and of our own base. */
        const atlas_point p = atlas_look(c, x), public = atlas_look(other, x);
        const double both = atlas_own_base(chip, k, w, c) * atlas_gemm_base(chip, k, w, other);
        set(e, sqrt(both), c, &p, false);
        e->value += 0.5 * public.value;
        return true;
    }
    const orr_chip *const from = find_near(chip, ATLAS_GEMM, type, 0, &c);
    if (!from)
        return false;
    const atlas_point p = atlas_look(c, x);
    set(e, atlas_gemm_base(chip, k, w, c), c, &p, from != chip);
    if (is_batched)
        e->value = 0;
    if (type == ORR_TYPE_BF16)
        add_variant(chip, k, x, e);
    if (is_odd && find(ours, ATLAS_GEMM_OWN, type, odd_variant(k, true) & 2, &other) &&
        find(ours, ATLAS_GEMM, type, 0, &c)) {
        const double aligned = log(atlas_gemm_base(ours, k, w, c)) + atlas_look(c, x).value;
        const double odd = log(atlas_own_base(ours, k, w, other)) + atlas_look(other, x).value;
        e->value += odd > aligned ? odd - aligned : 0;
        widen(e, (double)other->low, (double)other->high);
    }
    return true;
}

/* ---- attention ---- */

enum { BUCKETS = 5 };

static uint32_t bucket_of(uint64_t head)
{
    return head <= 64 ? 0 : head <= 128 ? 1 : head <= 192 ? 2 : head <= 256 ? 3 : 4;
}

/* The nearest bucket available for the chip, or one it is like. */
static const orr_chip *find_bucket(
    const orr_chip *chip, atlas_group group, uint32_t head, uint32_t more, const atlas_class **out)
{
    static const uint32_t order[BUCKETS][BUCKETS] = {
        {0, 1, 2, 3, 4}, {1, 0, 2, 3, 4}, {2, 1, 3, 0, 4}, {3, 2, 1, 4, 0}, {4, 3, 2, 1, 0}};
    for (size_t i = 0; i < BUCKETS; i++) {
        const uint32_t variant = order[head][i] + more;
        if (find(chip, group, ORR_TYPE_BF16, variant, out))
            return chip;
    }
    chip = chip->like ? orr_chip_find(chip->like) : NULL;
    return chip ? find_bucket(chip, group, head, more, out) : NULL;
}

/* The public rows with heads of 81 to 128 are causal, with heads of 128 and at most 16,384 tokens.
 * Rows without a mask share their grid but have heads of 72 and 80, which kernels pad.  So a head
 * of 128 is never slower per operation than its own rows, and keeps their rate beyond the
 * longest. */
enum { LONGEST_MASKED = 16384 };

static atlas_point look_masked(const atlas_class *c, const double *x)
{
    const double longest = log2((double)LONGEST_MASKED);
    const double masked[4] = {x[0] < longest ? x[0] : longest, x[1], x[2], 1};
    const atlas_point padded = atlas_look(c, x);
    atlas_point p = atlas_look(c, masked);
    if (padded.value < p.value)
        return padded;
    p.outside += x[0] - masked[0];
    return p;
}

/* The base; p: the residual. */
static double look_attention(const orr_chip *chip,
                             const orr_kernel *k,
                             const atlas_class *c,
                             atlas_point *p)
{
    const double heads = (double)k->heads, kv_heads = k->kv_heads ? (double)k->kv_heads : heads;
    const double batch = k->batch ? (double)k->batch : 1, q = k->q ? (double)k->q : 1;
    if (k->kind == ORR_KERNEL_DECODE) {
        const double x[3] = {log2((double)k->kv), log2(batch * kv_heads),
                             log2(heads * q / kv_heads)};
        *p = atlas_look(c, x);
        return atlas_decode_base(chip, k, c->p);
    }
    const double x[4] = {log2(q), log2(batch * heads), log2(heads / kv_heads), k->is_causal};
    const bool is_ours = orr_chip_at(c->key >> 24) == atlas_ours() && !(c->key & ATLAS_PAGED);
    *p = !is_ours && k->head > 80 && k->head <= 128 ? look_masked(c, x) : atlas_look(c, x);
    return is_ours ? atlas_own_attention_base(chip, k, c->p) : atlas_attention_base(chip, k, c->p);
}

/* Decode as profiled in serving software: from cold caches, or in one launch with prefill, where
 * FlashAttention 2 pads a sequence's query to a tile and heads that share keys read them
 * separately, so that each counts.  Public rows repeat a launch, with everything that fits in the
 * cache. */
static bool time_served(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    const bool is_mixed = k->form == ORR_FORM_MIXED;
    const uint32_t head = bucket_of(k->head);
    const atlas_class *c;
    atlas_point p;
    orr_kernel alone = *k;
    if (k->kind != ORR_KERNEL_DECODE || !(is_mixed || k->is_cold) ||
        !find(chip, ATLAS_DECODE, ORR_TYPE_BF16,
              head + (is_mixed ? ATLAS_MIXED : ATLAS_ATTENTION_COLD), &c))
        return false;
    if (is_mixed)
        alone.kv_heads = k->heads;
    const double base = look_attention(chip, &alone, c, &p);
    set(e, base, c, &p, false);
    return true;
}

/* Whether the public rows of the chip, or of the one it is like, stand for serving software alone:
 * on Hopper, training runs other kernels (cuDNN's), which we measured. */
static bool is_served_apart(const orr_chip *chip)
{
    const atlas_class *c;
    for (; chip; chip = chip->like ? orr_chip_find(chip->like) : NULL) {
        if (find(chip, ATLAS_ATTENTION, ORR_TYPE_BF16, 1 + ATLAS_PAGED, &c))
            return true;
        if (find(chip, ATLAS_ATTENTION, ORR_TYPE_BF16, 1, &c))
            return false;
    }
    return false;
}

static bool is_same_die(const orr_chip *a, const orr_chip *b)
{
    return a->units == b->units && a->clock_MHz == b->clock_MHz &&
           a->peak_tflops[ORR_TYPE_BF16] == b->peak_tflops[ORR_TYPE_BF16];
}

/* cuDNN's attention on an H100 (FlashAttention-3, arXiv 2407.08608, figures 5 and 6, heads of 64
 * and 128) is up to this far from ours on an H200, whose cuDNN is two years newer. */
#define SAME_DIE 0.15

static bool time_attention(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    const orr_chip *const ours = atlas_ours();
    const atlas_group group = k->kind == ORR_KERNEL_DECODE ? ATLAS_DECODE : ATLAS_ATTENTION;
    const uint32_t head = bucket_of(k->head);
    const atlas_class *c;
    atlas_point p;
    if (chip == ours || (group == ATLAS_ATTENTION && is_served_apart(chip))) {
        const bool is_paged = k->form == ORR_FORM_PAGED;
        uint32_t more = k->is_cold && !is_paged ? ATLAS_ATTENTION_COLD : 0;
        if (k->is_backward)
            more += ATLAS_BACKWARD;
        else if (is_paged)
            more += ATLAS_PAGED;
        /* Ours has two sizes of heads; larger ones are public, forward only. */
        const bool is_public = head > 1 && !k->is_backward;
        const orr_chip *const from =
            find_bucket(chip, group, head, is_public ? ATLAS_PAGED : more, &c);
        if (!from)
            return false;
        const double base = look_attention(chip, k, c, &p);
        const bool is_same = from != chip && is_same_die(from, chip);
        set(e, base, c, &p, from != chip && !is_same);
        if (is_same)
            widen(e, SAME_DIE, SAME_DIE);
        e->is_same_die = is_same;
        return true;
    }
    if (time_served(chip, k, e))
        return true;
    const orr_chip *const from = find_bucket(chip, group, head, 0, &c);
    if (!from)
        return false;
    orr_kernel forward = *k;
    forward.is_backward = false;
    const double base = look_attention(chip, &forward, c, &p);
    set(e, base, c, &p, from != chip);
    if (k->is_backward) {
        const atlas_class *there, *back;
        atlas_point q;
        if (!find_bucket(ours, group, head, 0, &there) ||
            !find_bucket(ours, group, head, ATLAS_BACKWARD, &back))
            return false;
        e->base *= look_attention(ours, k, back, &q) / look_attention(ours, &forward, there, &p);
        e->value += q.value - p.value;
        widen(e, BORROWED, BORROWED);
        e->is_borrowed = true;
    }
    return true;
}

static bool time_conv(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    const uint64_t groups = k->groups ? k->groups : 1;
    const uint32_t variant = (uint32_t)k->is_backward + (k->k / groups % 8 ? 2 : 0);
    double x[4];
    const atlas_class *c;
    const orr_chip *const from = find_near(chip, ATLAS_CONV, ORR_TYPE_BF16, variant, &c);
    if (!from)
        return false;
    const double base = atlas_conv_base(chip, k, c, x);
    const atlas_point p = atlas_look(c, x);
    set(e, base, c, &p, from != chip);
    return true;
}

static bool time_experts(const orr_chip *chip, const orr_kernel *k, estimate *e)
{
    const atlas_class *c;
    const orr_chip *const from = find_near(chip, ATLAS_MOE, like_type(k->type), 0, &c);
    if (!from)
        return false;
    const double rows = (double)k->m * (double)k->topk, experts = (double)k->groups;
    const double x[4] = {log2(rows / experts), log2(experts), log2((double)k->k),
                         log2((double)k->n)};
    const atlas_point p = atlas_look(c, x);
    set(e, atlas_experts_base(chip, k, c->p), c, &p, from != chip);
    return true;
}

/* ---- memory-bound kernels ---- */

/* The class of the kernel's type, or of the 16-bit type, or of the 32-bit one. */
static const orr_chip *find_memory(const orr_chip *chip,
                                   const atlas_choice *c,
                                   uint32_t variant,
                                   uint32_t type,
                                   const atlas_class **out)
{
    const uint32_t types[3] = {type, ORR_TYPE_BF16, ORR_TYPE_FP32};
    for (size_t i = 0; i < 3; i++) {
        const orr_chip *from = find_near(chip, c->group, types[i], variant, out);
        if (from)
            return from;
    }
    return NULL;
}

static bool time_memory(const orr_chip *chip, const orr_kernel *k, estimate *e, uint32_t *launches)
{
    enum { TENSORS = 150 }; /* of a model, when it is not said */
    atlas_choice choice;
    const atlas_class *c;
    if (!atlas_choose_memory(k, &choice))
        return false;
    const uint32_t cold = k->is_cold ? ATLAS_IS_COLD : 0;
    const uint32_t tries[4] = {choice.variant + cold, choice.instead + cold, choice.variant,
                               choice.instead};
    const orr_chip *from = NULL;
    for (size_t i = 0; i < 4 && !from; i++)
        from = find_memory(chip, &choice, tries[i], k->type, &c);
    if (!from)
        return false;
    const double tensors = k->k ? (double)k->k : TENSORS;
    const double base =
        choice.is_optimizer
            ? atlas_optimizer_base(chip, choice.work.bytes, (double)k->m,
                                   tensors < (double)k->m ? tensors : (double)k->m, c->p)
            : atlas_memory_base(chip, &choice.work, c->p);
    const atlas_point p = atlas_look(c, choice.x);
    set(e, base, c, &p, from != chip);
    e->launch = (double)c->p[0];
    *launches = choice.launches;
    return true;
}

/* Instructions at one per lane and clock: an NVIDIA multiprocessor issues 128 of them.  Others are
 * taken to be alike, by units and clock, as all rates of elements are, or by their peak, with two
 * FLOPs for each; not those with one large array, whose few units are vectors. */
static double issued_us(const orr_chip *chip, const orr_kernel *k)
{
    enum { LANES = 128 };
    const double bytes = orr_kernel_type_bytes(k->type), peak = chip->vector_tflops * 1e6 / 2;
    const double lanes = chip->units * chip->clock_MHz * LANES, rate = lanes > peak ? lanes : peak;
    if (!k->ops || bytes <= 0 || rate <= 0 || chip->array)
        return 0;
    return (double)k->write / bytes * (double)k->ops / rate;
}

/* ---- all kinds ---- */

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

static bool time_measured(const orr_chip *chip,
                          const orr_kernel *k,
                          const orr_kernel_work *w,
                          estimate *e,
                          uint32_t *launches)
{
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
        return time_product(chip, k, w, e);
    case ORR_KERNEL_ATTENTION:
    case ORR_KERNEL_DECODE:
        return !k->is_unfused && time_attention(chip, k, e);
    case ORR_KERNEL_MOE:
        return time_experts(chip, k, e);
    case ORR_KERNEL_CONV:
        *launches = k->is_backward ? 3 : 1;
        if (k->groups < 2 || k->groups != k->k)
            return time_conv(chip, k, e);
        return time_memory(chip, k, e, launches);
    default:
        return time_memory(chip, k, e, launches);
    }
}

/* Lower bound of any kernel: the arithmetic at the highest clock (of another chip's measurements:
 * at the published peak), the memory at its peak unless everything may be cached. */
static double least_us(const orr_chip *chip,
                       const orr_kernel *k,
                       const orr_kernel_work *w,
                       bool is_borrowed)
{
    const double highest = is_borrowed ? 1 : 1.085;
    const double bytes = w->read + w->write, cached = chip->l2_MB * 1e6;
    const double beyond = bytes > cached ? bytes - cached : 0;
    const double memory = (k->is_cold ? bytes : beyond) / (chip->memory_GBps * 1e3);
    const double peak = is_product(k) ? chip->peak_tflops[k->type] : chip->vector_tflops;
    const double compute = is_product(k) && peak > 0 ? w->flops / (peak * highest * 1e6) : 0;
    return memory > compute ? memory : compute;
}

/* A product that accumulates reads and writes its output in 32 bits where others write 16, after
 * its last tile: on our H200, for 13 shapes, 0.7 to 1.3 times what these bytes take at 87 % of the
 * memory's peak.  Microseconds. */
static double accumulation_us(const orr_chip *chip, const orr_kernel *k)
{
    if (!k->accumulates || (k->kind != ORR_KERNEL_GEMM && k->kind != ORR_KERNEL_GROUPED))
        return 0;
    const bool is_grouped = k->kind == ORR_KERNEL_GROUPED && k->layout == ORR_LAYOUT_TN;
    const double batch = k->batch ? (double)k->batch : 1,
                 groups = k->groups ? (double)k->groups : 1;
    const double results =
        is_grouped ? groups * (double)k->n * (double)k->k : batch * (double)k->m * (double)k->n;
    return results * (4 + 4 - 2) / (chip->memory_GBps * 0.87e3);
}

/* Outside the measured range intervals grow: by half per octave. */
static double wider(const estimate *e)
{
    const double away = e->far > 1 ? e->far - 1 : 0;
    return 1 + 0.5 * (away + e->outside);
}

static const char *basis_of(const orr_chip *chip, const estimate *e, bool extrapolates)
{
    if (e->is_borrowed)
        return chip->source ? "measured on another chip" : "like another chip";
    if (e->is_same_die)
        return extrapolates ? "measured on the same die, extrapolated" : "measured on the same die";
    return extrapolates ? "measured, extrapolated" : "measured";
}

/* A chip from a file is a built-in one with a measured factor per kind of kernel. */
static bool time_calibrated(const orr_chip *chip, const orr_kernel *k, orr_kernel_time *out)
{
    const double scale = chip->scale[k->kind], low = chip->scale_low[k->kind];
    if (!orr_chip_time(chip->base, k, out))
        return false;
    if (!(scale > 0))
        return true;
    out->us *= scale;
    out->low_us = low > 0 ? out->us * low : out->low_us * scale;
    out->high_us = low > 0 ? out->us * chip->scale_high[k->kind] : out->high_us * scale;
    out->basis = "measured, calibrated";
    return true;
}

/* A product split into parts on three streams, relative to the whole, one H200, six shapes in bf16
 * and fp8, twice (truth/measure/overlap.csv): 2 take 0.99 and 1.01 times as long, 4 1.03 and 1.05,
 * 8 1.11 and 1.12. Each launch has less work, and its last wave fills fewer multiprocessors. */
static double in_pieces(const orr_kernel *k)
{
    const double octaves = k->pieces > 1 ? log2((double)k->pieces) : 0;
    if (octaves <= 1)
        return 1;
    return octaves < 2 ? 1 + 0.038 * (octaves - 1) : 1.038 + 0.075 * (octaves - 2);
}

static void take_pieces(const orr_kernel *k, orr_kernel_time *out)
{
    const double times = in_pieces(k);
    out->us *= times;
    out->low_us *= times;
    out->high_us *= times;
}

bool orr_chip_time(const orr_chip *chip, const orr_kernel *k, orr_kernel_time *out)
{
    estimate e = {0};
    double share = 0;
    uint32_t launches = 1;
    if (orr_kernel_check(k, NULL))
        return false;
    if (chip->base)
        return time_calibrated(chip, k, out);
    if (is_product(k) && chip->peak_tflops[k->type] <= 0)
        return false;
    const double times = k->count ? (double)k->count : 1;
    const orr_kernel_work w = orr_kernel_count(k);
    const double issued = issued_us(chip, k);
    double roofline = atlas_roofline_us(chip, k, &w, &share);
    if (issued > 0 && chip->launch_us + issued > roofline)
        roofline = chip->launch_us + issued;
    *out = (orr_kernel_time){.clock_share = share,
                             .launches = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX};
    if (!time_measured(chip, k, &w, &e, &launches)) {
        const double wide = chip->source ? 1.8 : 2.2;
        out->us = times * roofline;
        out->low_us = out->us / wide;
        out->high_us = out->us * wide;
        out->extrapolates = true;
        out->basis = "roofline";
        take_pieces(k, out);
        return true;
    }
    const double added = accumulation_us(chip, k), least = least_us(chip, k, &w, e.is_borrowed);
    double us = e.base * exp(e.value) + added;
    const double more = wider(&e);
    double low = 1, high = 1;
    if (e.own && more == 1) { /* computed before */
        low = e.own->low_times;
        high = e.own->high_times;
    } else {
        widen(&e, ATLAS_CHIP_TO_CHIP, ATLAS_CHIP_TO_CHIP);
        low = exp(e.low * more);
        high = exp(e.high * more);
    }
    if (added > 0)
        out->clock_share *= (us - added) / us;
    if (issued > 0 && e.launch + issued > us) {
        us = e.launch + issued;
        out->clock_share = issued / us;
    }
    out->launches = times * launches < UINT32_MAX ? (uint32_t)(times * launches) : UINT32_MAX;
    out->us = times * (us > least ? us : least);
    out->low_us = out->us * low;
    if (out->low_us < times * least)
        out->low_us = times * least;
    out->high_us = out->us * high;
    out->extrapolates = e.is_borrowed || e.outside > 0.01 || e.far > 1.5;
    out->basis = basis_of(chip, &e, out->extrapolates);
    take_pieces(k, out);
    return true;
}
