/* SPDX-License-Identifier: Apache-2.0 */
/* chip_cost.h - what a kernel costs a step: one rule for all who time steps (run, plan, serve,
 * convert fx). */
#ifndef ORR_MODELS_CHIP_COST_H
#define ORR_MODELS_CHIP_COST_H

#include <orrery/lab/chip.h>

/* At the chip's highest clock. */
typedef struct chip_cost {
    double fixed_us, clocked_us; /* that does not, and that does, scale with the clock */
    double flops;                /* 16-bit operations that draw as much: they hold the clock down */
    double low_us, high_us;      /* what it may be less and more, 90 % */
    bool is_guess;               /* none that was measured resembles it */
} chip_cost;

/* times: takes so many times as long as the chip says.  false: the chip cannot run it. */
bool orr__chip_cost(const orr_chip *chip, const orr_kernel *k, double times, chip_cost *out);
/* Where only operations and bytes are known: a roofline with four fifths of both peaks. */
chip_cost orr__chip_roofline(
    double flops_per_s, double bytes_per_s, double launch_us, double ops, double bytes);

/* Clock and time depend on each other: a slower clock makes a longer step, which draws less and
 * lets the clock rise. */
enum { ORR__CLOCK_ROUNDS = 4 };
/* How many times as long as at the highest clock what scales with it takes, in a step of this sum,
 * on a chip that draws so many standard deviations more than the mean one (orr_highest_of: the
 * slowest of those that wait for each other). */
double orr__chip_slowdown_of(const orr_chip *chip, const chip_cost *sum, double deviations);

#endif
