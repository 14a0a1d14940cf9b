/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h - exact fractions of 128-bit integers, and the double nearest to one.
 *
 * Sizes of tensors are products and quotients of a dozen integers.  They are worked out exactly and rounded
 * once, so that 10 / 3 * 3 is 10.  Everything here fails (false) instead of overflowing. */
#ifndef ORR_SYMBOLIC_RATIO_H
#define ORR_SYMBOLIC_RATIO_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 orr__wide;

/* In lowest terms, den > 0. */
typedef struct orr__ratio {
    orr__wide num, den;
} orr__ratio;

static inline orr__ratio orr__ratio_of(int64_t v)
{
    return (orr__ratio){v, 1};
}

bool orr__ratio_make(orr__wide num, orr__wide den, orr__ratio *out); /* false: den is 0 */
bool orr__ratio_add(orr__ratio a, orr__ratio b, orr__ratio *out);
bool orr__ratio_mul(orr__ratio a, orr__ratio b, orr__ratio *out);
/* exponent may be negative; false when it is and a is 0. */
bool orr__ratio_power(orr__ratio a, int32_t exponent, orr__ratio *out);
double orr__ratio_double(orr__ratio a); /* to nearest, ties to even */

#endif
