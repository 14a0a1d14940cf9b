/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_base.c - physical base models; the table stores residuals relative to them.
 *
 * The same formulas as tools/atlas/atlas_model.py, which fits their constants.  A base has the
 * right jumps (waves of tiles) and the right asymptotics, so that residuals are small and smooth.
 * The fourth root of a sum of fourth powers is a smooth maximum. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

static double least_one(uint64_t size)
{
    return size ? (double)size : 1;
}

static double soft_max(double a, double b)
{
    a *= a;
    b *= b;
    return sqrt(sqrt(a * a + b * b));
}

/* Tile sizes of a product; the efficiency of each is a constant of the class. */
enum { GEMM_TILE = 6 };
static const double tiles[ATLAS_TILES][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64},
                                             {64, 128},  {64, 64},   {64, 32},   {32, 64}};
static const double parts_of_tiles[ATLAS_TILES][2] = {
    {1. / 256, 1. / 128}, {1. / 128, 1. / 256}, {1. / 128, 1. / 128}, {1. / 128, 1. / 64},
    {1. / 64, 1. / 128},  {1. / 64, 1. / 64},   {1. / 64, 1. / 32},   {1. / 32, 1. / 64}};

/* Time of a tile per k, by the rate of a unit. */
static void tile_times(const float *p, double per_unit, double out[ATLAS_TILES])
{
    const double step = p[5] * (1e-3 / 64);
    for (size_t i = 0; i < ATLAS_TILES; i++)
        out[i] = 2 * tiles[i][0] * tiles[i][1] / (per_unit * p[GEMM_TILE + i]) + step;
}

void atlas_set_tiles(atlas_class *c)
{
    const uint32_t group = c->key >> 16 & 255, type = c->key >> 8 & 255;
    const orr_chip *const chip = orr_chip_at(c->key >> 24);
    if (!chip || (group != ATLAS_GEMM && group != ATLAS_GEMM_OWN) || chip->peak_tflops[type] <= 0)
        return;
    c->rate = chip->peak_tflops[type] * 1e6 / chip->units;
    tile_times(c->p, c->rate, c->tile);
}

/* The measured public 8- and 4-bit products start from a left factor in 16 bits: they find its
 * maximum, scale and cast it.  Training programs do that in separate kernels, which are timed as
 * such; only a kernel that says so does both. */
static double quantise_us(const orr_chip *chip, const orr_kernel *k, const atlas_class *c)
{
    enum { LAUNCH = GEMM_TILE + ATLAS_TILES, PER_MILLION };
    const orr_chip *const from = orr_chip_at(c->key >> 24);
    if (k->form != ORR_FORM_QUANTIZE || !from)
        return 0;
    const double slower = from->memory_GBps / chip->memory_GBps;
    return c->p[LAUNCH] + c->p[PER_MILLION] * slower * 1e-6 * (double)k->m * (double)k->k;
}

/* p: launch us, fraction of the memory's rate, its latency us, us per tile, us to split, ns per 64
 * of k, efficiencies of tiles, cost of quantising. */
double atlas_gemm_base(const orr_chip *chip,
                       const orr_kernel *k,
                       const orr_kernel_work *w,
                       const atlas_class *c)
{
    const float *const p = c->p;
    const double batch =
        least_one(k->batch) * (k->kind == ORR_KERNEL_GROUPED ? least_one(k->groups) : 1);
    const double m = k->kind == ORR_KERNEL_GROUPED ? atlas_ceil((double)k->m / least_one(k->groups))
                                                   : (double)k->m;
    const double n = (double)k->n, depth = (double)k->k, units = chip->units;
    const double rate = chip->memory_GBps * 1e3,
                 per_unit = chip->peak_tflops[k->type] * 1e6 / units;
    const double memory = (w->read + w->write) / (rate * p[1]) + p[2];
    const double share = 1 / units;
    double best = 1e30, own[ATLAS_TILES];
    const double *tile = c->tile;
    if (c->rate != per_unit) { /* used by another chip, or for another type */
        tile_times(p, per_unit, own);
        tile = own;
    }
    const double most = (double)(int64_t)(depth / 256); /* split-K parts */
    for (size_t i = 0; i < ATLAS_TILES; i++) {
        const double count =
            batch * atlas_ceil(m * parts_of_tiles[i][0]) * atlas_ceil(n * parts_of_tiles[i][1]);
        const double work = tile[i];
        const double whole = atlas_ceil(count * share) * (work * depth + p[3]);
        best = whole < best ? whole : best;
        if (count * 2 > units || depth < 512)
            continue;
        double parts = (double)(int64_t)(units / count);
        parts = parts < most ? parts : most;
        const double split = atlas_ceil(count * parts * share) * (work * depth / parts + p[3]) +
                             p[4] + 4 * batch * m * n * parts / rate;
        best = split < best ? split : best;
    }
    return p[0] + soft_max(best, memory) + quantise_us(chip, k, c);
}

static double product_base(const orr_chip *chip, const orr_kernel *k, const atlas_class *c)
{
    const orr_kernel_work w = orr_kernel_count(k);
    return atlas_gemm_base(chip, k, &w, c);
}

/* A size, clamped to what a kernel may have. */
static uint64_t whole(double size)
{
    const double most = (double)(1ull << 40);
    return size < 1 ? 1 : size > most ? 1ull << 40 : (uint64_t)size;
}

/* A convolution as a product of pixels by the channels of a window; backward there is one for the
 * input gradient and one for the weight gradient; with a few channels (an image) only the
 * latter. */
double atlas_conv_base(const orr_chip *chip, const orr_kernel *k, const atlas_class *c, double x[3])
{
    const double stride = least_one(k->stride), out_side = atlas_ceil((double)k->side / stride);
    const uint64_t pixels = whole((double)k->batch * out_side * out_side);
    const uint64_t groups = k->groups ? k->groups : 1, inner = k->k / groups;
    const uint64_t outer = k->n / groups;
    const double window = (double)k->window * (double)k->window;
    orr_kernel a = {.kind = ORR_KERNEL_GEMM, .type = k->type, .batch = groups};
    orr_kernel b = a;
    a.m = pixels;
    a.n = outer ? outer : 1;
    a.k = whole((double)inner * window);
    x[0] = log2((double)pixels);
    x[1] = log2((double)a.n);
    x[2] = log2((double)a.k);
    if (!k->is_backward)
        return product_base(chip, &a, c);
    b.m = a.n;
    b.n = a.k;
    b.k = pixels;
    if (inner % 8)
        return product_base(chip, &b, c);
    a.m = whole((double)k->batch * (double)k->side * (double)k->side);
    a.n = inner;
    a.k = whole((double)outer * window);
    return product_base(chip, &a, c) + product_base(chip, &b, c);
}

/* p: launch us, fraction of the memory's rate, extra rate while everything is cached, us per
 * million elements, ns per element of a row that one block processes. */
double atlas_memory_base(const orr_chip *chip, const atlas_memory *w, const float *p)
{
    const double share = w->bytes / (0.7e6 * chip->l2_MB);
    const double memory =
        w->bytes / (chip->memory_GBps * 1e3 * (p[1] + p[2] / (1 + share * share)));
    /* Element rates are those of the measured chip, scaled by units and clock. */
    const double slower = 132.0 * 1980 / (chip->units * chip->clock_MHz);
    const double work = soft_max(memory, w->elements * p[3] * 1e-6 * slower);
    if (w->rows <= 0)
        return p[0] + work;
    return p[0] +
           soft_max(work, atlas_ceil(w->rows / (4.0 * chip->units)) * w->width * p[4] * 1e-3);
}

/* Blocks of 65,536 parameters, at most 320 per launch.  p: launch us, fraction of the memory's
 * rate, us per block, tensors per launch. */
double atlas_optimizer_base(
    const orr_chip *chip, double bytes, double count, double tensors, const float *p)
{
    enum { BLOCK = 65536, BLOCKS = 320 };
    const double each = count / tensors, blocks = tensors * atlas_ceil(each / BLOCK);
    const double by_tensors = tensors / p[3], by_blocks = atlas_ceil(blocks / BLOCKS);
    const double launches = by_blocks > by_tensors ? by_blocks : by_tensors;
    const double block = p[2] * (each < BLOCK ? each : BLOCK) / BLOCK;
    return p[0] + launches * soft_max(block, bytes / launches / (chip->memory_GBps * 1e3 * p[1]));
}

static double pairs_of(const orr_kernel *k, double q, double kv)
{
    if (!k->is_causal)
        return q * kv;
    return kv >= q ? q * (kv - q) + q * (q + 1) / 2 : kv * (kv + 1) / 2;
}

/* Blocks of 128 queries.  p: launch us, fraction of the memory's rate, us per block, fraction of a
 * block for the last wave, efficiency. */
double atlas_attention_base(const orr_chip *chip, const orr_kernel *k, const float *p)
{
    const double batch = least_one(k->batch), heads = (double)k->heads;
    const double kv_heads = k->kv_heads ? (double)k->kv_heads : heads;
    const double head = 0.5 * ((double)k->head + (double)(k->head_v ? k->head_v : k->head));
    const double q = least_one(k->q), kv = k->kv ? (double)k->kv : q;
    const double times = k->is_backward ? 2.5 : 1, tall = 128 * atlas_ceil(q / 128);
    double pairs = pairs_of(k, q, kv), seen = kv;
    if (k->window && (double)k->window < kv) { /* a query sees only this many keys */
        seen = (double)k->window;
        pairs = pairs < q * seen ? pairs : q * seen;
    }
    const double flops = 4 * batch * heads * pairs * head * times;
    const double moved =
        2 * batch * head *
        (q * heads * (k->is_backward ? 4 : 2) + 2 * kv * kv_heads * (k->is_backward ? 2 : 1));
    const double blocks = batch * heads * (tall / 128);
    const double one = chip->peak_tflops[k->type] * 1e6 / chip->units * p[4];
    const double mean = flops * (tall / q) / blocks / one + p[2];
    const double longest = 4 * 128 * seen * head * times / one + p[2];
    const double compute = soft_max(mean * blocks / chip->units, longest) + p[3] * mean;
    return p[0] + soft_max(compute, moved / (chip->memory_GBps * 1e3 * p[1]));
}

/* p: launch us, fraction of the memory's rate, efficiency, us if keys are split, minimum keys per
 * block. */
double atlas_decode_base(const orr_chip *chip, const orr_kernel *k, const float *p)
{
    const double batch = least_one(k->batch), heads = (double)k->heads * least_one(k->q);
    const double kv_heads = k->kv_heads ? (double)k->kv_heads : (double)k->heads;
    const double head = 0.5 * ((double)k->head + (double)(k->head_v ? k->head_v : k->head));
    const double group = heads / kv_heads, blocks = batch * kv_heads;
    const double kv = k->window && k->window < k->kv ? (double)k->window : (double)k->kv;
    double parts = fmin(chip->units / blocks, kv / (double)p[4]);
    parts = parts > 1 ? parts : 1;
    const double busy = fmin(1, blocks * parts / chip->units);
    const double moved =
        4 * batch * head * (kv * kv_heads + heads) * (orr_kernel_type_bytes(k->type) / 2);
    const double flops = 4 * blocks * (group > 8 ? group : 8) * kv * head;
    const double work = soft_max(moved / (chip->memory_GBps * 1e3 * p[1]),
                                 flops / (chip->peak_tflops[k->type] * 1e6 * p[2]));
    return p[0] + work / pow(busy, 0.8) + (parts > 1.5 ? (double)p[3] : 0);
}

/* A gated layer of experts.  p: launch us, fraction of the memory's rate for weights, for
 * activations, efficiencies of row tiles. */
double atlas_experts_base(const orr_chip *chip, const orr_kernel *k, const float *p)
{
    enum { EXPERT_TILES = 4 };
    static const double heights[EXPERT_TILES] = {16, 32, 64, 128};
    const double rows = (double)k->m * (double)k->topk, experts = (double)k->groups;
    const double width = (double)k->k, inner = (double)k->n, rate = chip->memory_GBps * 1e3;
    const double used = rows < experts ? rows : experts, each = rows / used;
    const double weights =
        3 * used * width * inner * orr_kernel_type_bytes(k->type) / (rate * p[1]);
    const double moved = 2 * rows * (4 * width + 3 * inner) / (rate * p[2]);
    const double peak = chip->peak_tflops[k->type] * 1e6;
    double best = 1e30;
    for (size_t i = 0; i < EXPERT_TILES; i++) {
        const double padded = used * atlas_ceil(each / heights[i]) * heights[i];
        const double time = 6 * padded * width * inner / (peak * p[3 + i]);
        best = time < best ? time : best;
    }
    return p[0] + soft_max(best, weights) + moved;
}
