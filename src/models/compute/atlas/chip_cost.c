/* SPDX-License-Identifier: Apache-2.0 */
#include "models/compute/atlas/chip_cost.h"

#include <math.h>
#include <string.h>

/* Power of an operation relative to one in 16 bits: products mixed with memory passes, at the 700 W
 * cap of our H200 (truth/measure/fp8_mixes.csv: nine mixes reach the clock of bf16 with 0.54 to
 * 0.75 times as many bf16 operations, 0.61 on average).  Accumulating in 32 bits, which Hopper's
 * tensor cores do not do natively, draws 1.21 times as much (held_products.csv); Transformer Engine
 * and torchao do so for gradients.  For 4 bits the same ratio again. */
static double power_of(const orr_chip *chip, const orr_kernel *k)
{
    const double bytes = orr_kernel_type_bytes(k->type), narrow = 0.61, exact = 1.21;
    if (bytes >= 2)
        return 1;
    if (bytes < 1)
        return narrow * narrow;
    const bool is_hopper = chip->peak_tflops[ORR_TYPE_NVFP4] <= 0;
    return is_hopper && k->layout != ORR_LAYOUT_NT ? narrow * exact : narrow;
}

/* Only products draw enough power to lower the clock. */
static bool holds_clock(const orr_kernel *k)
{
    return k->kind == ORR_KERNEL_GEMM || k->kind == ORR_KERNEL_GROUPED ||
           k->kind == ORR_KERNEL_MOE || k->kind == ORR_KERNEL_ATTENTION ||
           k->kind == ORR_KERNEL_CONV;
}

static bool is_assumed(const orr_kernel_time *t)
{
    return strcmp(t->basis, "roofline") == 0;
}

/* A measurement on a similar chip is not a guess. */
static bool is_guess(const orr_kernel_time *t)
{
    return t->extrapolates && (is_assumed(t) || strstr(t->basis, "extrapolated") != NULL);
}

bool orr__chip_cost(const orr_chip *chip, const orr_kernel *k, double times, chip_cost *out)
{
    orr_kernel_time t;
    if (!orr_chip_time(chip, k, &t))
        return false;
    const double us = t.us * times;
    /* Errors are carried over as fractions of the time, which may differ from the measured one. */
    *out = (chip_cost){.clocked_us = us * t.clock_share,
                       .fixed_us = us * (1 - t.clock_share),
                       .low_us = us * (1 - t.low_us / t.us),
                       .high_us = us * (t.high_us / t.us - 1),
                       .is_guess = is_guess(&t),
                       .is_assumed = is_assumed(&t)};
    if (holds_clock(k))
        out->flops =
            orr_kernel_count(k).flops * power_of(chip, k) * (k->count ? (double)k->count : 1);
    return true;
}

chip_cost orr__chip_roofline(
    double flops_per_s, double bytes_per_s, double launch_us, double ops, double bytes)
{
    /* In microseconds. */
    const double by_work = ops / (flops_per_s * 0.8e-6), by_memory = bytes / (bytes_per_s * 0.8e-6);
    const double us = fmax(by_work, by_memory) + launch_us;
    const bool is_work = by_work > by_memory;
    return (chip_cost){.fixed_us = is_work ? 0 : us,
                       .clocked_us = is_work ? us : 0,
                       .flops = is_work ? ops : 0,
                       .low_us = 0.5 * us,
                       .high_us = us,
                       .is_guess = true,
                       .is_assumed = true};
}

void orr__chip_add_error(chip_errors *e, double low, double high)
{
    e->low += low;
    e->high += high;
    e->low2 += low * low;
    e->high2 += high * high;
}

void orr__chip_add_common(chip_errors *e, double low, double high)
{
    e->common_low += low;
    e->common_high += high;
}

static double all_errors(double sum, double squares, double common, double own)
{
    return sqrt(squares * (1 - ORR__SHARED_ERROR) + sum * sum * ORR__SHARED_ERROR +
                common * common + own * own);
}

chip_errors orr__chip_errors_of(const chip_errors *e, double own_us)
{
    return (chip_errors){.low = all_errors(e->low, e->low2, e->common_low, own_us),
                         .high = all_errors(e->high, e->high2, e->common_high, own_us)};
}

/* Of waits for the network: collectives and messages on measured machines (docs/validation.md). */
#define NETWORK_ERROR 0.15

/* Of a multi-device job as a whole: software of others, and their set-up.  The 108 rows of vTrain
 * that the host was fitted to are of 22 families, which share what their layers took. A further
 * family lies within 19.4 % of the prediction in nine cases of ten (Student's t, 22 degrees of
 * freedom), where kernels, host and network account for 11 % (truth/spreads.py); no other table was
 * used.  Errors there are logarithms of measured over predicted, 0.160 of them, so this is a
 * factor, in both directions. */
#define JOB_FACTOR 1.173
/* Experts on several devices: load imbalance, exchanges and small products that each release of a
 * training software handles differently.  A factor of 1.6 in both directions, the variation between
 * releases of one software; no row with experts may be fitted. */
#define EXPERTS_FACTOR 1.6

job_errors orr__job_errors_of(
    double whole, double exposed, double low, double high, bool is_job, bool has_experts)
{
    const double network = exposed * NETWORK_ERROR;
    const double factor = !is_job ? 1 : has_experts ? EXPERTS_FACTOR : JOB_FACTOR;
    const double job = whole * (1 - 1 / factor), job_high = whole * (factor - 1);
    job_errors e = {.own_low = sqrt(low * low + network * network),
                    .own_high = sqrt(high * high + network * network)};
    e.low = sqrt(e.own_low * e.own_low + job * job);
    e.high = sqrt(e.own_high * e.own_high + job_high * job_high);
    return e;
}

double orr__chip_slowdown_of(const orr_chip *chip, const chip_cost *sum, double deviations)
{
    double slow = 1, mean = 0;
    for (int i = 0; i < ORR__CLOCK_ROUNDS && sum->fixed_us + sum->clocked_us > 0; i++) {
        mean = sum->flops / (sum->fixed_us + sum->clocked_us * slow) * 1e-6;
        slow = orr_chip_slowdown(chip, mean);
    }
    return slow * orr_chip_slowest(chip, mean, deviations);
}
