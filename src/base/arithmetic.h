/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.h - integers: minimum, maximum, rounding up, saturation, comparison; times as
 * ticks. */
#ifndef ORR_BASE_ARITHMETIC_H
#define ORR_BASE_ARITHMETIC_H

#include <orrery/types.h>

#include <stdint.h>

static inline uint64_t orr_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t orr_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t orr_div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t orr_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Saturating at UINT64_MAX. */
static inline uint64_t orr_sat_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t orr_sat_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* For qsort: ascending. */
static inline int orr_by_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static inline int orr_by_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- ticks ----
 *
 * A real number of nanoseconds as a number of ticks.
 *
 * Truncated, as in the reference.  Values out of range (undefined in the reference) become
 * ORR_TICKS_FAR, so that sums of a few still fit. */

#define ORR_TICKS_FAR ((uint64_t)1 << 62)

static inline uint64_t orr_ticks(double ns)
{
    if (!(ns < 0x1p62))
        return ORR_TICKS_FAR;
    return ns > 0 ? (uint64_t)ns : 0;
}

#endif
