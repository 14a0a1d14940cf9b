/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_base.c - physical shapes that measured times are relative to.
 *
 * The same formulas as tools/atlas/atlas_model.py, which fits their constants.  A base has the
 * right jumps (waves of tiles) and the right growth at both ends, so that what is left over is
 * small and smooth.  A fourth root of fourth powers stands for the larger of two times. */
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

/* Tiles that a product may be cut into; the efficiency of each is a constant of the class. */
enum { TILES = 8, GEMM_TILE = 6 };
static const double tiles[TILES][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64},
                                       {64, 128},  {64, 64},   {64, 32},   {32, 64}};

/* p: launch us, part of the memory's rate, its latency us, us per tile, us to split, ns per 64 of
 * k, efficiencies of tiles. */
double atlas_gemm_base(const orr_chip *chip, const orr_kernel *k, const float *p)
{
    const orr_kernel_work w = orr_kernel_count(k);
    const double batch =
        least_one(k->batch) * (k->kind == ORR_KERNEL_GROUPED ? least_one(k->groups) : 1);
    const double m =
        k->kind == ORR_KERNEL_GROUPED ? ceil((double)k->m / least_one(k->groups)) : (double)k->m;
    const double n = (double)k->n, depth = (double)k->k, units = chip->units;
    const double rate = chip->memory_GBps * 1e3,
                 per_unit = chip->peak_tflops[k->type] * 1e6 / units;
    const double memory = (w.read + w.write) / (rate * p[1]) + p[2];
    const double step = p[5] * (1e-3 / 64), share = 1 / units;
    double best = 1e30;
    for (size_t i = 0; i < TILES; i++) {
        const double tm = tiles[i][0], tn = tiles[i][1];
        const double count = batch * ceil(m / tm) * ceil(n / tn);
        const double work = 2 * tm * tn / (per_unit * p[GEMM_TILE + i]) + step;
        const double whole = ceil(count * share) * (work * depth + p[3]);
        best = whole < best ? whole : best;
        if (count * 2 > units || depth < 512)
            continue;
        double parts = floor(units / count), most = floor(depth / 256);
        parts = parts < most ? parts : most;
        const double split = ceil(count * parts * share) * (work * depth / parts + p[3]) + p[4] +
                             4 * batch * m * n * parts / rate;
        best = split < best ? split : best;
    }
    return p[0] + soft_max(best, memory);
}
