/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h - exact fractions of 128-bit integers, and the double nearest to one.
 *
 * Sizes of tensors are products and quotients of a dozen integers.  They are worked out exactly and
 * rounded once, so that 10 / 3 * 3 is 10.  Everything here fails (false) instead of overflowing. */
#ifndef ORR_SYMBOLIC_RATIO_H
#define ORR_SYMBOLIC_RATIO_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 orr__wide;

/* In lowest terms, den > 0. */
typedef struct stg_ratio {
    orr__wide num, den;
} stg_ratio;

static inline stg_ratio stg_ratio_of(int64_t v)
{
    return (stg_ratio){v, 1};
}

bool stg_ratio_make(orr__wide num, orr__wide den, stg_ratio *out); /* false: den is 0 */
bool stg_ratio_add(stg_ratio a, stg_ratio b, stg_ratio *out);
bool stg_ratio_mul(stg_ratio a, stg_ratio b, stg_ratio *out);
/* exponent may be negative; false when it is and a is 0. */
bool stg_ratio_power(stg_ratio a, int32_t exponent, stg_ratio *out);
double stg_ratio_double(stg_ratio a); /* to nearest, ties to even */

#endif
