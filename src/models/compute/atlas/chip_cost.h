/* SPDX-License-Identifier: Apache-2.0 */
/* chip_cost.h - the cost of a kernel in a step: one rule for everything that times steps (run,
 * plan, serve, convert fx). */
#ifndef ORR_MODELS_CHIP_COST_H
#define ORR_MODELS_CHIP_COST_H

#include <orrery/lab/chip.h>

/* At the chip's highest clock. */
typedef struct chip_cost {
    double fixed_us, clocked_us; /* independent of the clock, and scaling with it */
    /* equivalent 16-bit operations by power draw: they lower the clock */
    double flops;
    double low_us, high_us; /* possible deviation downwards and upwards, 90 % */
    bool is_guess;          /* unlike any measured kernel */
    bool is_assumed;        /* by a roofline: wrong together with all others of its kind */
} chip_cost;

/* times: slowdown relative to the chip's time.  false: the chip cannot run it. */
bool orr__chip_cost(const orr_chip *chip, const orr_kernel *k, double times, chip_cost *out);
/* If only operations and bytes are known: a roofline with four fifths of both peaks. */
chip_cost orr__chip_roofline(
    double flops_per_s, double bytes_per_s, double launch_us, double ops, double bytes);

/* Errors of a sum of kernels, in microseconds below and above: those of equal kernels add up, those
 * of different ones are independent but for a small part. */
#define ORR__SHARED_ERROR 0.03 /* of the squares */
/* Of steps beyond single kernels: power state and chip, gaps between kernels (five steps on two
 * chips: 0.1 to 2.3 % apart; the same step on two days 2 %). */
#define ORR__STEP_ERROR 0.03
typedef struct chip_errors {
    double low, high, low2, high2;
    double common_low, common_high;
} chip_errors;
/* low, high: all uses of a kernel. */
void orr__chip_add_error(chip_errors *e, double low, double high);
/* Of one assumption, such as the efficiencies of rooflines: all are wrong together. */
void orr__chip_add_common(chip_errors *e, double low, double high);
/* own_us: a further error of the sum.  Only low and high of the result count. */
chip_errors orr__chip_errors_of(const chip_errors *e, double own_us);

/* Errors of steps beyond those of single kernels and ORR__STEP_ERROR: of compiled steps (20
 * models); of a host's speed, as logarithms (128 small passes on three hosts, 96 whose speed is
 * read off training steps; truth/spreads.py). */
#define ORR__COMPILED_ERROR 0.041
#define ORR__HOST_ERROR 0.59
#define ORR__KNOWN_HOST_ERROR 0.43

/* 90 % deviations of a job's time, below and above, in the unit of its arguments.  own: without the
 * error common to all jobs of the same software on the same machine, for comparisons. */
typedef struct job_errors {
    double low, high, own_low, own_high;
} job_errors;
/* low, high: of what it computes; exposed: waits for communication, with an error of their own. */
job_errors orr__job_errors_of(
    double whole, double exposed, double low, double high, bool is_job, bool has_experts);

/* Clock and time depend on each other (a slower clock makes a longer step, which draws less and
 * lets the clock rise): fixed-point iterations. */
enum { ORR__CLOCK_ROUNDS = 4 };
/* Slowdown of clock-bound work relative to the highest clock, in a step with this sum, on a chip
 * that draws so many standard deviations more than the mean one (orr_highest_of: the slowest of
 * those that wait for each other). */
double orr__chip_slowdown_of(const orr_chip *chip, const chip_cost *sum, double deviations);

#endif
