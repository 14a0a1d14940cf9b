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

/* ---- tiles as the names of cuBLAS's and cuDNN's kernels on Hopper have them ---- */

typedef struct tile_sides {
    double m, n, part_m, part_n; /* part: 1 / side */
} tile_sides;

#define TILE(m, n)           \
    {                        \
        m, n, 1. / m, 1. / n \
    }
static const tile_sides own_tiles[ATLAS_OWN_TILES] = {
    TILE(256, 128), TILE(128, 256), TILE(320, 128), TILE(128, 320), TILE(192, 192), TILE(192, 128),
    TILE(128, 192), TILE(128, 128), TILE(128, 64),  TILE(64, 128),  TILE(64, 64),   TILE(64, 32),
    TILE(32, 64),   TILE(64, 16),   TILE(16, 64),   TILE(64, 8),    TILE(8, 64)};
static const tile_sides conv_tiles[ATLAS_CONV_TILES] = {
    TILE(256, 128), TILE(128, 256), TILE(128, 128), TILE(128, 64), TILE(64, 128),
    TILE(256, 64),  TILE(64, 64),   TILE(64, 32),   TILE(32, 64)};

/* Constants of classes with such tiles. */
enum {
    OWN_LAUNCH,  /* us */
    OWN_MEMORY,  /* part of its rate */
    OWN_LATENCY, /* us */
    OWN_CACHE,   /* more of the memory's rate while the cache holds all */
    OWN_TILE,    /* us */
    OWN_SPLIT,   /* us */
    OWN_STEP,    /* ns per 64 of k */
    OWN_EFFICIENCY,
    OWN_LOAD,    /* GB/s of a unit */
    CONV_WINDOW, /* times as long with a window, a stride, a stride and no window */
    CONV_STRIDE,
    CONV_PLAIN_STRIDE
};

/* Arithmetic is done on 64 rows or columns at least; bytes: of an element of either factor. */
static void own_tile_times(
    const float *p, double per_unit, double bytes, const tile_sides *t, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++) {
        const double least = t[i].m < t[i].n ? t[i].m : t[i].n;
        const double most = t[i].m < t[i].n ? t[i].n : t[i].m;
        const double work = 2 * least * (most < 64 ? 64 : most) / (per_unit * p[OWN_EFFICIENCY]);
        const double load = bytes * (t[i].m + t[i].n) / (p[OWN_LOAD] * 1e3);
        out[i] = soft_max(work, load) + p[OWN_STEP] * (1e-3 / 64);
    }
}

typedef struct product_size {
    double batch, m, n, depth;
} product_size;

static product_size size_of_product(const orr_kernel *k)
{
    const double groups = k->kind == ORR_KERNEL_GROUPED ? least_one(k->groups) : 1;
    return (product_size){least_one(k->batch) * groups, atlas_ceil((double)k->m / groups),
                          (double)k->n, (double)k->k};
}

/* The best tile, or the inner dimension in parts when there are fewer than half as many tiles as
 * units.  has_waves: the last wave takes as long as a full one. */
static double best_of_tiles(const product_size *s,
                            const tile_sides *t,
                            const double *times,
                            size_t count,
                            double units,
                            double rate,
                            bool has_waves,
                            const float *p)
{
    const double share = 1 / units, most = (double)(int64_t)(s->depth / 256);
    const double results = s->batch * s->m * s->n, partial = 4 * results / rate;
    const double all = results * s->depth * share;
    double best = 1e30;
    for (size_t i = 0; i < count; i++) {
        if (all * times[i] * t[i].part_m * t[i].part_n >= best)
            continue; /* even without a tile that is not full */
        const double needed =
            s->batch * atlas_ceil(s->m * t[i].part_m) * atlas_ceil(s->n * t[i].part_n);
        const double full = needed * share;
        const double waves = has_waves ? atlas_ceil(full) : full > 1 ? full : 1;
        const double whole = waves * (times[i] * s->depth + p[OWN_TILE]);
        best = whole < best ? whole : best;
        if (needed * 2 > units || most < 2)
            continue;
        double parts = (double)(int64_t)(units / needed);
        parts = parts < most ? parts : most;
        const double split =
            atlas_ceil(needed * parts * share) * (times[i] * s->depth / parts + p[OWN_TILE]) +
            p[OWN_SPLIT] + partial * parts;
        best = split < best ? split : best;
    }
    return best;
}

/* Of bytes that lie in the cache up to its size, and beyond it in memory. */
static double through_cache(const orr_chip *chip, double bytes, double part, double more)
{
    const double share = bytes / (0.7e6 * chip->l2_MB);
    return bytes / (chip->memory_GBps * 1e3 * (part + more / (1 + share * share)));
}

double atlas_own_base(const orr_chip *chip,
                      const orr_kernel *k,
                      const orr_kernel_work *w,
                      const atlas_class *c)
{
    const float *const p = c->p;
    const product_size s = size_of_product(k);
    const double per_unit = chip->peak_tflops[k->type] * 1e6 / chip->units;
    double own[ATLAS_OWN_TILES];
    const double *times = c->tile;
    if (c->rate != per_unit) {
        own_tile_times(p, per_unit, orr_kernel_type_bytes(k->type), own_tiles, ATLAS_OWN_TILES,
                       own);
        times = own;
    }
    const double work = best_of_tiles(&s, own_tiles, times, ATLAS_OWN_TILES, chip->units,
                                      chip->memory_GBps * 1e3, true, p);
    const double memory = through_cache(chip, w->read + w->write, p[OWN_MEMORY], p[OWN_CACHE]);
    return p[OWN_LAUNCH] + soft_max(work, memory + p[OWN_LATENCY]);
}

void atlas_set_tiles(atlas_class *c)
{
    const uint32_t group = c->key >> 16 & 255, type = c->key >> 8 & 255;
    const orr_chip *const chip = orr_chip_at(c->key >> 24);
    if (!chip || chip->peak_tflops[type] <= 0)
        return;
    c->rate = chip->peak_tflops[type] * 1e6 / chip->units;
    const double bytes = orr_kernel_type_bytes((orr_kernel_type)type);
    if (group == ATLAS_GEMM)
        tile_times(c->p, c->rate, c->tile);
    else if (group == ATLAS_GEMM_OWN)
        own_tile_times(c->p, c->rate, bytes, own_tiles, ATLAS_OWN_TILES, c->tile);
    else if (group == ATLAS_CONV)
        own_tile_times(c->p, c->rate, bytes, conv_tiles, ATLAS_CONV_TILES, c->tile);
}

/* ---- public products ---- */

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

/* One product of a convolution; bytes: what it moves, where an image counts once, not once for each
 * place of the window. */
static double conv_product(const orr_chip *chip,
                           const atlas_class *c,
                           const double *times,
                           const product_size *s,
                           double bytes,
                           double slower)
{
    const float *const p = c->p;
    const double work = slower * best_of_tiles(s, conv_tiles, times, ATLAS_CONV_TILES, chip->units,
                                               chip->memory_GBps * 1e3, false, p);
    return p[OWN_LAUNCH] +
           soft_max(work, through_cache(chip, bytes, p[OWN_MEMORY], p[OWN_CACHE]) + p[OWN_LATENCY]);
}

/* A product of pixels by the channels of a window; backward there is one for the input's gradient,
 * which has as much to do as forward, whatever the stride, and one for the weights', of a few
 * channels (an image) the latter alone. */
double atlas_conv_base(const orr_chip *chip, const orr_kernel *k, const atlas_class *c, double x[4])
{
    const float *const p = c->p;
    const double stride = least_one(k->stride), side = (double)k->side;
    const double groups = least_one(k->groups), window = (double)k->window * (double)k->window;
    const double inner = atlas_ceil((double)k->k / groups),
                 outer = atlas_ceil((double)k->n / groups);
    const double out_side = atlas_ceil(side / stride), images = least_one(k->batch);
    const double pixels = images * out_side * out_side, whole = images * side * side;
    const double per_unit = chip->peak_tflops[k->type] * 1e6 / chip->units;
    const double bytes = orr_kernel_type_bytes(k->type);
    const double read = bytes * groups * inner * whole;
    const double rest = bytes * groups * outer * (pixels + inner * window);
    const bool is_wide = k->window > 1, is_strided = stride > 1;
    const double slower = (is_wide ? (double)p[CONV_WINDOW] : 1) *
                          (is_strided ? (double)p[CONV_STRIDE] : 1) *
                          (is_strided && !is_wide ? (double)p[CONV_PLAIN_STRIDE] : 1);
    double own[ATLAS_CONV_TILES];
    const double *times = c->tile;
    x[0] = log2(pixels);
    x[1] = log2(outer);
    x[2] = log2(inner * window);
    x[3] = is_strided ? 2 : is_wide ? 1 : 0;
    if (c->rate != per_unit) {
        own_tile_times(p, per_unit, bytes, conv_tiles, ATLAS_CONV_TILES, own);
        times = own;
    }
    if (!k->is_backward) {
        const product_size all = {groups, pixels, outer, inner * window};
        const double seen = is_strided && !is_wide ? read / (stride * stride) : read;
        return conv_product(chip, c, times, &all, seen + rest, slower);
    }
    const product_size weights = {groups, outer, inner * window, pixels};
    const double us = conv_product(chip, c, times, &weights, read + rest, slower);
    if (k->k / (k->groups ? k->groups : 1) % 8)
        return us;
    const product_size input = {groups, whole, inner, outer * window / (stride * stride)};
    return us + conv_product(chip, c, times, &input, read + rest, slower);
}

static double power_below(double x)
{
    return exp2(floor(log2(x)));
}

/* Sums of columns, as PyTorch cuts them: a thread has 4 neighbouring columns where their number
 * allows, a block of 512 / 4 threads a patch of columns by rows, of which each thread adds 4 at a
 * time.  From 1,024 rows on several blocks share a patch, and the last of them adds their sums up
 * one after the other.  p[3..6]: us for 4 rows of a thread, us to share, us for each sum of a
 * block, factor on both where patches are not full. */
static double columns_us(const orr_chip *chip, const atlas_memory *w, double memory, const float *p)
{
    enum { THREADS = 512, RESIDENT = 2048, STEP = 4, LEAST = 16, MOST = 256 };
    const double vector = fmod(w->width, 4) == 0 ? 4 : fmod(w->width, 2) == 0 ? 2 : 1;
    const double wide = w->width / vector, most = THREADS / vector;
    double columns = fmin(fmin(power_below(wide), most), 32);
    const double high = fmin(fmin(power_below(w->rows), most), most / columns);
    columns = fmin(fmin(power_below(wide), most), most / high);
    const bool by_rows = w->rows >= fmin(LEAST * high, MOST);
    const double each = by_rows ? atlas_ceil(w->rows / high) : w->rows;
    const double patches = atlas_ceil(wide / (columns * (by_rows ? 1 : high)));
    const double uneven = fmod(wide, columns) > 0 ? (double)p[6] : 1;
    double shares = 1;
    if (by_rows && each >= MOST) {
        const double room = atlas_ceil(chip->units * RESIDENT / (columns * high) / patches);
        shares = fmax(fmin(room, atlas_ceil(each / LEAST)), atlas_ceil(each / MOST));
    }
    const double walk = atlas_ceil(each / shares / STEP) * p[3] * uneven;
    const double joined = shares > 1 ? p[4] + atlas_ceil(shares / high) * p[5] * uneven : 0;
    return p[0] + soft_max(memory, walk) + joined;
}

/* Sums of rows, as PyTorch cuts them: blocks of 512 threads, 4 neighbours per thread and step; a
 * warp per row, or, from 8,192 elements on, a block.  p[3], p[4]: us per step, us per block. */
static double rows_us(const orr_chip *chip, const atlas_memory *w, double memory, const float *p)
{
    const bool is_alone = w->width >= 8192;
    const double steps = atlas_ceil(w->width / (is_alone ? 2048 : 128));
    const double waves = soft_max(1, (is_alone ? w->rows : w->rows / 16) / (4.0 * chip->units));
    return p[0] + soft_max(memory, waves * (p[4] + steps * p[3]));
}

/* Adds rows to those of a table of words, which is filled with zeros before.  Up to 3,072 rows, a
 * block has 32 columns and goes along all rows, 32 at a time; more rows are sorted first and go
 * through some thirty kernels.  p[3..7], few rows: ns per row, more for a word that is new, more
 * for it if it is in memory, for each equal row of 32, factor for blocks that share a
 * multiprocessor; p[8..11], many: us, us per million elements, more for new words, and for these
 * in memory. */
static double scatter_us(const orr_chip *chip, const atlas_memory *w, double slower, const float *p)
{
    const double table = w->words * w->width * w->size, share = table / (0.7e6 * chip->l2_MB);
    const double beyond = share * share / (1 + share * share);
    const double words = w->words > 0 ? w->words : w->rows;
    const double fresh = -words * expm1(-w->rows / words);
    const double zeros = through_cache(chip, table, p[1], p[2]);
    double us;
    if (w->rows <= 3072) {
        const double equal = words < 32 ? 32 / words - 1 : 0;
        const double row = p[3] + (p[4] + p[5] * beyond) * fresh / w->rows + p[6] * equal;
        us = w->rows * row * 1e-3 * (1 + p[7] * w->width / (32.0 * chip->units));
    } else {
        const double each = w->rows * p[9] + fresh * (p[10] + p[11] * beyond);
        us = p[8] + 1e-6 * w->width * each * slower;
    }
    return p[0] + us + zeros;
}

/* Rows of at most 2,048 are held by a warp, 16 warps per multiprocessor, fewer beyond 1,024; rows
 * of at most 9,216 by a block of 1,024 threads; longer ones stream through shared memory.
 * p[3..8]: us per row of a warp, ns per element of it; us per block, us per 1,024 elements of it;
 * the factor beyond 1,024; fraction of the memory's rate of long rows. */
static double softmax_us(const orr_chip *chip, const atlas_memory *w, double memory, const float *p)
{
    double busy = w->bytes / (chip->memory_GBps * 1e3 * p[8]);
    if (w->width <= 2048) {
        const double more = w->width > 1024 ? (double)p[7] : 1;
        busy = (p[3] + p[4] * 1e-3 * w->width) * soft_max(1, w->rows / (16.0 * chip->units) * more);
    } else if (w->width <= 9216) {
        busy = (p[5] + p[6] * w->width / 1024) * soft_max(1, w->rows / chip->units);
    }
    return p[0] + soft_max(memory, busy);
}

/* p: launch us, part of the memory's rate, more of it while the cache holds all; then, of rows, us
 * per million elements and ns per element of a row that one block walks along; of elements, us per
 * million of them, and more for each dimension beyond the first, where elements of an operand lie
 * apart, and where types differ; of the other forms see above. */
double atlas_memory_base(const orr_chip *chip, const atlas_memory *w, const float *p)
{
    const double memory = through_cache(chip, w->bytes, p[1], p[2]);
    /* Rates of elements are those of the chip that was measured: by its units and clock. */
    const double slower = 132.0 * 1980 / (chip->units * chip->clock_MHz);
    switch (w->form) {
    case ATLAS_SUM_OF_COLUMNS:
        return columns_us(chip, w, memory, p);
    case ATLAS_SUM_OF_ROWS:
        return rows_us(chip, w, memory, p);
    case ATLAS_SCATTER:
        return scatter_us(chip, w, slower, p);
    case ATLAS_SOFTMAX:
        return softmax_us(chip, w, memory, p);
    case ATLAS_EACH_ROW: {
        const double work = soft_max(memory, w->elements * p[3] * 1e-6 * slower);
        return p[0] +
               soft_max(work, atlas_ceil(w->rows / (4.0 * chip->units)) * w->width * p[4] * 1e-3);
    }
    case ATLAS_EACH_ELEMENT:
        break;
    }
    const double each = p[3] + p[4] * (w->dims - 1) + p[5] * w->turned + p[6] * w->cast;
    return p[0] + soft_max(memory, w->elements * each * 1e-6 * slower);
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

/* Blocks of 128 queries (backward 64) go along tiles of 128 keys; heads are filled up to whole 64.
 * p: as above, and ns per tile. */
double atlas_own_attention_base(const orr_chip *chip, const orr_kernel *k, const float *p)
{
    const double batch = least_one(k->batch), heads = (double)k->heads;
    const double kv_heads = k->kv_heads ? (double)k->kv_heads : heads;
    const double head = 0.5 * ((double)k->head + (double)(k->head_v ? k->head_v : k->head));
    const double q = least_one(k->q), kv = k->kv ? (double)k->kv : q;
    const double times = k->is_backward ? 2.5 : 1, side = k->is_backward ? 64 : 128;
    const double seen = k->window && (double)k->window < kv ? (double)k->window : kv;
    const double rows = atlas_ceil(q / side), columns = atlas_ceil(seen / 128);
    double all = rows * columns;
    if (k->is_causal) {
        const double before = kv > q ? (kv - q) / 128 : 0;
        const double below = rows * before + side / 128 * rows * (rows + 1) / 2;
        all = below < all ? below : all;
    }
    const double one = chip->peak_tflops[k->type] * 1e6 / chip->units * p[4];
    const double tile = 4 * side * 128 * 64 * atlas_ceil(head / 64) * times / one + p[5] * 1e-3;
    const double moved =
        2 * batch * head *
        (q * heads * (k->is_backward ? 4 : 2) + 2 * kv * kv_heads * (k->is_backward ? 2 : 1));
    const double mean = tile * all / rows + p[2], longest = tile * columns + p[2];
    const double compute =
        soft_max(mean * batch * heads * rows / chip->units, longest) + p[3] * mean;
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
