/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v1.h - SCALE-Sim v1: what its files share (scale-sim.md, sections 2 to 4). */
#ifndef ORR_MODELS_SYSTOLIC_V1_H
#define ORR_MODELS_SYSTOLIC_V1_H

#include "systolic_fill.h"

/* Output stationary: the cycle in which block h of column fold v begins to be written. */
uint64_t orr__systolic_v1_os_write(const orr__systolic *s, uint64_t v, uint64_t h);

/* Output stationary layers whose ifmap is not read in the regular way (3.4). */
bool orr__systolic_v1_is_degenerate(const orr__systolic *s);

/* What the degenerate ones read. */
typedef struct orr__v1_lanes {
    uint64_t cycles; /* in which something was read */
    uint64_t words;  /* of the ifmap */
    double share; /* of the array at work, summed over the cycles in the order of the reference */
} orr__v1_lanes;

/* Who is told: a word of a row, and that all rows have had their cycle.  Either may be NULL. */
typedef struct orr__v1_visitor {
    void *ctx;
    void (*word)(void *ctx, uint64_t cycle, uint64_t row, uint64_t address);
    void (*cycle)(void *ctx, uint64_t cycle);
} orr__v1_visitor;

orr_code orr__systolic_v1_lanes(const orr__systolic *s,
                                const orr__v1_visitor *visitor,
                                orr__v1_lanes *out,
                                orr_error *err) ORR_MUST_CHECK;

/* Address of an element of a pixel's window, without an offset. */
uint64_t orr__systolic_v1_word(const orr__systolic *s, uint64_t pixel, uint64_t element);

/* Columns that stream weights in this cycle. */
uint64_t orr__systolic_v1_columns(const orr__os_folds *g, const orr__systolic *s, uint64_t cycle);

/* Sums of so many terms are added up in the reference's order, so that even their last digit is its; longer ones
 * have a closed form, which is as exact but rounds elsewhere. */
enum { ORR__MOST_TERMS = 1 << 22 };

/* Windows of ws whose bases are not those of pixels (first deviation of section 4); *out stays NULL where they
 * are. */
orr_code orr__systolic_v1_walk(const orr__systolic *s,
                               uint64_t **out,
                               orr_error *err) ORR_MUST_CHECK;

/* words, first, last and peak of the output buffer's traffic. */
void orr__systolic_v1_writes(const orr__systolic *s, orr_systolic_traffic *out);

#endif
