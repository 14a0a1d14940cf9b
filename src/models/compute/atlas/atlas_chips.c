/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_chips.c - the chips with kernel times: a table of published figures.
 *
 * Peaks are dense and from the vendors' data sheets, at the boost clock stated there; clock_MHz is
 * the highest sustained clock, so a short kernel may exceed the published peak by their ratio.  A
 * chip that software cannot distinguish from another (H800: the same kernels as H100) is an alias.
 * Measured ones come first. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

#define OURS "our H200 rows"
#define AIC "NVIDIA AIConfigurator, Apache-2.0"

/* Tensor cores: 16-bit products; the others by the ratios of the generation. */
#define AMPERE(t)                                                                                 \
    .peak_tflops = {[ORR_TYPE_BF16] = (t),  [ORR_TYPE_FP16] = (t),     [ORR_TYPE_TF32] = (t) / 2, \
                    [ORR_TYPE_FP32] = 19.5, [ORR_TYPE_INT8] = 2 * (t), [ORR_TYPE_W8A16] = (t),    \
                    [ORR_TYPE_W4A16] = (t), [ORR_TYPE_FP64] = 19.5},                              \
    .vector_tflops = 19.5
#define HOPPER(t)                                                                             \
    .peak_tflops =                                                                            \
        {[ORR_TYPE_BF16] = (t),     [ORR_TYPE_FP16] = (t),    [ORR_TYPE_TF32] = (t) / 2,      \
         [ORR_TYPE_FP32] = 66.9,    [ORR_TYPE_FP8] = 2 * (t), [ORR_TYPE_FP8_BLOCK] = 2 * (t), \
         [ORR_TYPE_INT8] = 2 * (t), [ORR_TYPE_MXFP4] = (t),   [ORR_TYPE_W8A16] = (t),         \
         [ORR_TYPE_W4A16] = (t),    [ORR_TYPE_FP64] = 66.9},                                  \
    .vector_tflops = 66.9
#define BLACKWELL(t, fp4)                                                                      \
    .peak_tflops =                                                                             \
        {[ORR_TYPE_BF16] = (t),      [ORR_TYPE_FP16] = (t),    [ORR_TYPE_TF32] = (t) / 2,      \
         [ORR_TYPE_FP32] = 75,       [ORR_TYPE_FP8] = 2 * (t), [ORR_TYPE_FP8_BLOCK] = 2 * (t), \
         [ORR_TYPE_MXFP8] = 2 * (t), [ORR_TYPE_NVFP4] = (fp4), [ORR_TYPE_MXFP4] = 2 * (t),     \
         [ORR_TYPE_INT8] = 2 * (t),  [ORR_TYPE_W8A16] = (t),   [ORR_TYPE_W4A16] = (t),         \
         [ORR_TYPE_FP64] = 37},                                                                \
    .vector_tflops = 75
/* Others: 16-bit, 8-bit, TF32 and 32-bit products, and the vector unit. */
#define WITH_TF32(t, t8, t19, t32, v)                                                        \
    .peak_tflops = {[ORR_TYPE_BF16] = (t),   [ORR_TYPE_FP16] = (t), [ORR_TYPE_TF32] = (t19), \
                    [ORR_TYPE_FP32] = (t32), [ORR_TYPE_FP8] = (t8), [ORR_TYPE_INT8] = (t8),  \
                    [ORR_TYPE_W8A16] = (t),  [ORR_TYPE_W4A16] = (t)},                        \
    .vector_tflops = (v)
#define OTHER(t, t8, t32, v) WITH_TF32(t, t8, t32, t32, v)
/* TPUs: bf16, fp8, int8 and 32-bit products; 0: there are none.  Rates: Google's pages on each TPU,
 * and what JAX knows of them (Pallas, the module tpu_info).  fp8 is no faster than bf16 before TPU
 * v7. */
#define TPU(t, f8, i8, t32, v)                                                               \
    .peak_tflops = {[ORR_TYPE_BF16] = (t),   [ORR_TYPE_FP16] = (t), [ORR_TYPE_TF32] = (t32), \
                    [ORR_TYPE_FP32] = (t32), [ORR_TYPE_FP8] = (f8), [ORR_TYPE_INT8] = (i8),  \
                    [ORR_TYPE_W8A16] = (t),  [ORR_TYPE_W4A16] = (t)},                        \
    .vector_tflops = (v)
#define MEMORY(rate, size, l2) .memory_GBps = (rate), .memory_GB = (size), .l2_MB = (l2)
/* Chips of every kind are assumed to vary like 388 V100 held at their power cap by products
 * (truth/README.md has the rest): 1.63 % in time, a third of their variation in power. */
#define UNITS(n, mhz) .units = (n), .clock_MHz = (mhz), .power_spread = 0.05

/* The clock under the power cap: falls by `slope` MHz per TFLOP/s beyond `from`. */
#define CAPPED(from, slope) \
    .capped_from_tflops = (from), .capped_slope = (slope), .capped_power = 0.55

static const orr_chip chips[] = {
    {.name = "h200",
     .note = "NVIDIA H200 SXM 141 GB",
     .source = OURS " and " AIC,
     HOPPER(989.4),
     MEMORY(4800, 141, 60),
     UNITS(132, 1980),
     .launch_us = 1.6,
     /* Steps of seven models replayed for two seconds, eager and compiled
      * (truth/measure/power.csv): clocks of the last second; relative to times after a rest, times
      * have grown by this power of the clock ratio (0.546, least squares of logarithms over the
      * rows with a lower clock). */
     CAPPED(190, 1.06),
     .dispatch_us = 17,
     .bus_GBps = 55},
    {.name = "h100",
     .note = "NVIDIA H100 SXM 80 GB",
     .source = AIC,
     .like = "h200",
     HOPPER(989.4),
     MEMORY(3350, 80, 50),
     UNITS(132, 1980),
     .launch_us = 1.6,
     /* the H200's law: the same die under the same limit of 700 W */
     CAPPED(190, 1.06),
     .dispatch_us = 17,
     .bus_GBps = 55},
    {.name = "a100",
     .note = "NVIDIA A100 SXM 80 GB",
     .source = AIC,
     .like = "h200",
     AMPERE(312),
     MEMORY(2039, 80, 40),
     UNITS(108, 1410),
     .launch_us = 2.0,
     .dispatch_us = 17,
     .bus_GBps = 25},
    {.name = "b200",
     .note = "NVIDIA B200 SXM 180 GB",
     .source = AIC,
     .like = "h200",
     BLACKWELL(2250, 9000),
     MEMORY(7700, 180, 126),
     UNITS(148, 1965),
     .launch_us = 1.6,
     /* No clock of a Blackwell at its power cap is published: assume it falls as the H200's does,
      * by the share of the peak.  Public kernels of both were timed in bursts. */
     CAPPED(432, 0.463),
     .dispatch_us = 17,
     .bus_GBps = 55},
    {.name = "gb200",
     .note = "NVIDIA GB200, one GPU of it, 186 GB",
     .source = AIC,
     .like = "b200",
     BLACKWELL(2500, 10000),
     MEMORY(8000, 186, 126),
     UNITS(152, 2062),
     .launch_us = 1.6,
     CAPPED(480, 0.437), /* as the B200's */
     .dispatch_us = 20,
     .bus_GBps = 200},
    {.name = "b300",
     .note = "NVIDIA B300 SXM 288 GB",
     .source = AIC,
     .like = "b200",
     BLACKWELL(2250, 14000),
     MEMORY(7750, 288, 126),
     UNITS(148, 1965),
     .launch_us = 1.6,
     CAPPED(432, 0.463), /* as the B200's */
     .dispatch_us = 17,
     .bus_GBps = 110},
    {.name = "gb300",
     .note = "NVIDIA GB300, one GPU of it, 288 GB",
     .source = AIC,
     .like = "b200",
     BLACKWELL(2500, 15000),
     MEMORY(8000, 288, 126),
     UNITS(152, 2062),
     .launch_us = 1.6,
     CAPPED(480, 0.437), /* as the B200's */
     .dispatch_us = 20,
     .bus_GBps = 200},
    {.name = "l40s",
     .note = "NVIDIA L40S 48 GB",
     .source = AIC,
     .like = "h200",
     .peak_tflops = {[ORR_TYPE_BF16] = 362,
                     [ORR_TYPE_FP16] = 362,
                     [ORR_TYPE_TF32] = 183,
                     [ORR_TYPE_FP32] = 91.6,
                     [ORR_TYPE_FP8] = 733,
                     [ORR_TYPE_FP8_BLOCK] = 733,
                     [ORR_TYPE_INT8] = 733,
                     [ORR_TYPE_MXFP4] = 362,
                     [ORR_TYPE_W8A16] = 362,
                     [ORR_TYPE_W4A16] = 362},
     .vector_tflops = 91.6,
     MEMORY(864, 48, 96),
     UNITS(142, 2520),
     .launch_us = 1.8,
     .dispatch_us = 17,
     .bus_GBps = 25},
    {.name = "rtx-pro-6000",
     .note = "NVIDIA RTX PRO 6000 Blackwell Server 96 GB",
     .source = AIC,
     .like = "l40s",
     .peak_tflops = {[ORR_TYPE_BF16] = 467.8,
                     [ORR_TYPE_FP16] = 467.8,
                     [ORR_TYPE_TF32] = 234,
                     [ORR_TYPE_FP32] = 117,
                     [ORR_TYPE_FP8] = 935.6,
                     [ORR_TYPE_FP8_BLOCK] = 935.6,
                     [ORR_TYPE_MXFP8] = 935.6,
                     [ORR_TYPE_NVFP4] = 1871.2,
                     [ORR_TYPE_MXFP4] = 935.6,
                     [ORR_TYPE_INT8] = 935.6,
                     [ORR_TYPE_W8A16] = 467.8,
                     [ORR_TYPE_W4A16] = 467.8},
     .vector_tflops = 117,
     MEMORY(1597, 96, 128), /* data sheet of the Server Edition, on which the kernels were timed */
     UNITS(188, 2430),
     .launch_us = 1.8,
     .dispatch_us = 17,
     .bus_GBps = 55},
    {.name = "b60",
     .note = "Intel Arc Pro B60 24 GB",
     .source = AIC,
     OTHER(98.3, 197, 12.3, 12.3),
     MEMORY(456, 24, 18),
     UNITS(20, 2400),
     .launch_us = 5,
     .dispatch_us = 20,
     .bus_GBps = 25},
    /* A cap of 500 W leaves 350 of 550 W above idle (150 W): the clock starts to fall at that share
     * of the rate, and proportionally faster. */
    {.name = "h100-500w",
     .note = "NVIDIA H100 SXM 96 GB, HBM2e, limited to 500 W",
     .like = "h100",
     HOPPER(989.4),
     MEMORY(2400, 96, 50),
     UNITS(132, 1980),
     .launch_us = 1.6,
     .capped_from_tflops = 229,
     .capped_slope = 3.3,
     .dispatch_us = 17,
     .bus_GBps = 55},
    {.name = "h100-pcie",
     .note = "NVIDIA H100 PCIe 80 GB",
     .like = "h100",
     HOPPER(756),
     MEMORY(2000, 80, 50),
     UNITS(114, 1755),
     .launch_us = 1.6,
     .bus_GBps = 55},
    {.name = "h20",
     .note = "NVIDIA H20 96 GB",
     .like = "h200",
     HOPPER(148),
     MEMORY(4000, 96, 60),
     UNITS(78, 1980),
     .launch_us = 1.6,
     .bus_GBps = 55},
    {.name = "a100-40gb",
     .note = "NVIDIA A100 SXM 40 GB",
     .like = "a100",
     AMPERE(312),
     MEMORY(1555, 40, 40),
     UNITS(108, 1410),
     .launch_us = 2.0,
     .bus_GBps = 25},
    {.name = "v100",
     .note = "NVIDIA V100 SXM2 32 GB",
     .like = "a100",
     .peak_tflops = {[ORR_TYPE_FP16] = 125,
                     [ORR_TYPE_FP32] = 15.7,
                     [ORR_TYPE_BF16] = 15.7,
                     [ORR_TYPE_FP64] = 7.8},
     .vector_tflops = 15.7,
     MEMORY(900, 32, 6),
     UNITS(80, 1530),
     .launch_us = 2.5,
     .bus_GBps = 12},
    {.name = "mi300x",
     .note = "AMD MI300X 192 GB",
     WITH_TF32(1307.4, 2614.9, 653.7, 163.4, 163.4),
     MEMORY(5300, 192, 256),
     UNITS(304, 2100),
     .launch_us = 4,
     .bus_GBps = 55},
    {.name = "mi325x",
     .note = "AMD MI325X 256 GB",
     WITH_TF32(1307.4, 2614.9, 653.7, 163.4, 163.4),
     MEMORY(6000, 256, 256),
     UNITS(304, 2100),
     .launch_us = 4,
     .bus_GBps = 55},
    {.name = "mi355x",
     .note = "AMD MI355X 288 GB",
     OTHER(2516.6, 5033.2, 157.3, 157.3),
     MEMORY(8000, 288, 256),
     UNITS(256, 2400),
     .launch_us = 4,
     .bus_GBps = 55},
    /* Sides of arrays: Google's "TPU architecture" (128, from v6e 256); v7 is taken as v6e, which
     * its peak allows: 2 cores of 4 arrays at 2.2 GHz. */
    {.name = "tpu-v7",
     .note = "Google TPU v7 (Ironwood) 192 GB",
     TPU(2307, 4614, 0, 100, 20),
     MEMORY(7380, 192, 0),
     UNITS(2, 2000),
     .array = 256,
     .launch_us = 2,
     .bus_GBps = 55},
    {.name = "tpu-v6e",
     .note = "Google TPU v6e (Trillium) 32 GB",
     TPU(918, 918, 1836, 50, 10),
     MEMORY(1640, 32, 128),
     UNITS(1, 1750),
     .array = 256,
     .launch_us = 2,
     .bus_GBps = 25},
    {.name = "tpu-v5p",
     .note = "Google TPU v5p 95 GB",
     TPU(459, 0, 918, 25, 10),
     MEMORY(2765, 95, 128),
     UNITS(2, 1750),
     .array = 128,
     .launch_us = 2,
     .bus_GBps = 25},
    {.name = "tpu-v5e",
     .note = "Google TPU v5e 16 GB",
     TPU(197, 0, 394, 12, 6),
     MEMORY(819, 16, 48),
     UNITS(1, 1500),
     .array = 128,
     .launch_us = 2,
     .bus_GBps = 25},
    {.name = "tpu-v4",
     .note = "Google TPU v4 32 GB",
     TPU(275, 0, 275, 17, 4.3),
     MEMORY(1200, 32, 128),
     UNITS(2, 1050),
     .array = 128,
     .launch_us = 2,
     .bus_GBps = 12},
    {.name = "tpu-v3",
     .note = "Google TPU v3 32 GB",
     TPU(123, 0, 0, 8, 2),
     MEMORY(900, 32, 32),
     UNITS(2, 940),
     .array = 128,
     .launch_us = 2,
     .bus_GBps = 12},
    {.name = "trainium2",
     .note = "AWS Trainium2 96 GB",
     OTHER(667, 1299, 181, 20),
     MEMORY(2900, 96, 192),
     UNITS(8, 2800),
     .launch_us = 5,
     .bus_GBps = 25},
    {.name = "gaudi3",
     .note = "Intel Gaudi 3 128 GB",
     OTHER(1678, 1678, 210, 28),
     MEMORY(3700, 128, 96),
     UNITS(8, 1600),
     .launch_us = 5,
     .bus_GBps = 50},
};

enum { OUR_CHIP = 0 }; /* h200 */
enum { CHIPS = sizeof chips / sizeof *chips };

static const struct {
    const char *alias, *name;
} aliases[] = {
    {"h200-sxm", "h200"},  {"h100-sxm", "h100"},    {"h800", "h100"},
    {"a100-sxm", "a100"},  {"a800", "a100"},        {"a100-80gb", "a100"},
    {"b200-sxm", "b200"},  {"b300-sxm", "b300"},    {"rtx-pro-6000-server", "rtx-pro-6000"},
    {"trn2", "trainium2"}, {"trillium", "tpu-v6e"}, {"ironwood", "tpu-v7"},
};

const orr_chip *atlas_ours(void)
{
    return &chips[OUR_CHIP];
}

const orr_chip *orr_chip_at(size_t index)
{
    return index < CHIPS ? &chips[index] : NULL;
}

const orr_chip *orr_chip_find(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(aliases[i].alias, name) == 0)
            name = aliases[i].name;
    }
    for (size_t i = 0; i < CHIPS; i++) {
        if (strcmp(chips[i].name, name) == 0)
            return &chips[i];
    }
    return NULL;
}

/* Products in fp8 alone, sums in 32 bits, for seconds: 1,268 to 1,353 of 1,980 MHz. */
static const double LEAST_CLOCK = 0.65;

double orr_chip_clock(const orr_chip *chip, double mean_tflops)
{
    const double over = mean_tflops - chip->capped_from_tflops;
    if (chip->capped_slope <= 0 || over <= 0)
        return chip->clock_MHz;
    const double clock = chip->clock_MHz - chip->capped_slope * over;
    const double least = chip->clock_MHz * LEAST_CLOCK;
    return clock > least ? clock : least;
}

double orr_chip_slowdown(const orr_chip *chip, double mean_tflops)
{
    const double clock = orr_chip_clock(chip, mean_tflops);
    const double fall = clock > 0 ? chip->clock_MHz / clock : 1;
    return fall <= 1 ? 1 : chip->capped_power > 0 ? pow(fall, chip->capped_power) : fall;
}

/* A chip that draws e times the power reaches the cap as if it computed e times as much: its clock
 * is C - slope x (e x rate - from).  It is slower by r, and so is its rate, where the clock sets
 * all of the step; then clock x r = the mean chip's clock gives r.  If the law is not known, power
 * is proportional to the cube of the clock (frequency times voltage squared), as it does on an H200
 * that computes products, by its law. */
double orr_chip_slowest(const orr_chip *chip, double mean_tflops, double deviations)
{
    const double more = chip->power_spread * deviations, slope = chip->capped_slope;
    if (!(more > 0))
        return 1;
    if (slope <= 0)
        return 1 + more / 3;
    const double most =
        chip->capped_from_tflops + (1 - LEAST_CLOCK) * chip->clock_MHz / slope; /* the law ends */
    const double rate = mean_tflops < most ? mean_tflops : most;
    const double longer = (orr_chip_clock(chip, rate) + slope * rate * (1 + more)) /
                          (chip->clock_MHz + slope * chip->capped_from_tflops);
    return longer > 1 ? longer : 1;
}

/* The integral of 1 - P(all <= x) - P(all <= -x) from 0 on: an even function, for which the
 * trapezoid rule is exact up to rounding. */
double orr_highest_of(uint32_t count)
{
    const double step = 1.0 / 16, n = count;
    double sum = 0;
    if (count < 2)
        return 0;
    for (int i = 0; i <= 9 * 16; i++) {
        const double above = 0.5 * erfc(i * step * M_SQRT1_2); /* P(one > x) */
        const double all = exp(n * log1p(-above)), none = exp(n * log(above));
        sum += (i ? 1 : 0.5) * (1 - all - none);
    }
    return sum * step;
}
