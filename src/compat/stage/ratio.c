/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.c - exact fractions.  Common factors are taken out before multiplying, so numbers grow no further
 * than the result needs; what still does not fit into 128 bits is refused. */
#include "ratio.h"

#include <math.h>

static const orr__wide widest = (orr__wide)((~(unsigned __int128)0) >> 1);

static orr__wide absolute(orr__wide v)
{
    return v < 0 ? -v : v;
}

/* Of numbers that are not negative; the narrow loop is the usual case and ten times faster. */
static orr__wide common_factor(orr__wide a, orr__wide b)
{
    while (b > UINT64_MAX || a > UINT64_MAX) {
        if (b == 0)
            return a;
        const orr__wide rest = a % b;
        a = b;
        b = rest;
    }
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

bool stg_ratio_make(orr__wide num, orr__wide den, stg_ratio *out)
{
    if (den == 0 || num < -widest || den < -widest)
        return false; /* the last two: the one number that has no positive twin */
    const orr__wide g = common_factor(absolute(num), absolute(den));
    *out = (stg_ratio){den < 0 ? -num / g : num / g, absolute(den) / g};
    return true;
}

bool stg_ratio_mul(stg_ratio a, stg_ratio b, stg_ratio *out)
{
    const orr__wide g = common_factor(absolute(a.num), b.den),
                    h = common_factor(absolute(b.num), a.den);
    orr__wide num, den;
    if (__builtin_mul_overflow(a.num / g, b.num / h, &num) ||
        __builtin_mul_overflow(a.den / h, b.den / g, &den) || num < -widest)
        return false;
    *out = (stg_ratio){num, den};
    return true;
}

bool stg_ratio_add(stg_ratio a, stg_ratio b, stg_ratio *out)
{
    const orr__wide g = common_factor(a.den, b.den);
    orr__wide x, y, num, den;
    if (__builtin_mul_overflow(a.num, b.den / g, &x) ||
        __builtin_mul_overflow(b.num, a.den / g, &y) || __builtin_add_overflow(x, y, &num) ||
        __builtin_mul_overflow(a.den / g, b.den, &den) || num < -widest)
        return false;
    return stg_ratio_make(num, den, out);
}

bool stg_ratio_power(stg_ratio a, int32_t exponent, stg_ratio *out)
{
    stg_ratio result = stg_ratio_of(1);
    if (exponent < 0 && !stg_ratio_make(a.den, a.num, &a))
        return false;
    for (int32_t i = exponent < 0 ? -exponent : exponent; i > 0; i--) {
        if (!stg_ratio_mul(result, a, &result))
            return false;
    }
    *out = result;
    return true;
}

/* Long division until the quotient has 55 bits or more: 53 that count, one to round by, and one that says
 * whether anything is left. */
double stg_ratio_double(stg_ratio a)
{
    enum { BITS = 53 };
    unsigned __int128 rest = (unsigned __int128)absolute(a.num);
    const unsigned __int128 den = (unsigned __int128)a.den;
    unsigned __int128 q = rest / den;
    int shift = 0;
    rest %= den;
    if (a.num == 0)
        return 0;
    for (; q >> (BITS + 1) == 0; shift--) {
        rest <<= 1; /* below 2^128: den is below 2^127 */
        q = q << 1 | (rest >= den);
        rest -= rest >= den ? den : 0;
    }
    bool has_rest = rest != 0;
    for (; q >> (BITS + 2) != 0; shift++) {
        has_rest |= q & 1;
        q >>= 1;
    }
    const uint64_t low = (uint64_t)q & 3;
    uint64_t top = (uint64_t)(q >> 2);
    if (low == 3 || (low == 2 && (has_rest || (top & 1))))
        top++;
    const double v = ldexp((double)top, shift + 2);
    return a.num < 0 ? -v : v;
}
