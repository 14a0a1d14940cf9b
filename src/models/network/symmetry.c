/* SPDX-License-Identifier: Apache-2.0 */
/* symmetry.c - finds the digits of a symmetry.  Cost: one test per divisor and position, most of
 * which fail at the first rank. */
#include "symmetry.h"

static bool take(net_symmetry *s, const net_digit *d, net_sym_holds holds, void *context)
{
    if (s->count == NET_SYM_DIGITS || !holds(context, d))
        return false;
    s->digits[s->count++] = *d;
    return true;
}

void net_sym_find(
    net_symmetry *s, uint32_t stride, uint32_t n, bool is_ring, net_sym_holds holds, void *context)
{
    for (uint32_t low = 1, below = 1; low < n;) {
        uint32_t radix = n / low;
        for (; radix > 1; radix--) {
            net_digit d = {.stride = stride * low, .radix = radix};
            if (n / low % radix || (is_ring && low * radix != n))
                continue;
            if (take(s, &d, holds, context))
                break;
            d.is_xor = !is_ring && !(radix & (radix - 1));
            if (d.is_xor && take(s, &d, holds, context))
                break;
        }
        if (radix > 1)
            low = below = low * radix;
        else /* a digit further out; digits in between are unchanged */
            do
                low += below;
            while (low < n && n % low);
    }
}
