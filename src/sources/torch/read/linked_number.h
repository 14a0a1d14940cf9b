/* SPDX-License-Identifier: Apache-2.0 */
/* linked_number.h - times of traces: microseconds as JSON numbers, into nanoseconds without a detour over double.
 *
 * Time stamps have 16 digits before the point and three behind it, more than a double holds. */
#ifndef ORR_SOURCES_PYTORCH_LINKED_NUMBER_H
#define ORR_SOURCES_PYTORCH_LINKED_NUMBER_H

#include "base/text/number.h"

/* What is finer than a nanosecond is cut off.  False: out of range, or not a number. */
static inline bool orr__micros_ns(orr_str text, int64_t *out)
{
    const char *p = text.ptr, *end = p + text.len;
    const bool is_negative = p < end && *p == '-';
    uint64_t ns = 0;
    double v;
    for (p += is_negative; p < end && *p >= '0' && *p <= '9' && ns < UINT64_MAX / 100; p++)
        ns = ns * 10 + (uint64_t)(*p - '0');
    unsigned digits = 3;
    if (p < end && *p == '.' && ns < UINT64_MAX / 1000 - 1) {
        for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
            if (digits) {
                ns = ns * 10 + (uint64_t)(*p - '0');
                digits--;
            }
        }
    }
    if (p < end) { /* an exponent, a word, or very long */
        if (!orr_text_double(text, &v) || !(v > -9e15 && v < 9e15))
            return false;
        *out = (int64_t)(v * 1000);
        return true;
    }
    for (; digits; digits--) {
        if (ns > INT64_MAX / 10)
            return false;
        ns *= 10;
    }
    *out = is_negative ? -(int64_t)ns : (int64_t)ns;
    return ns <= INT64_MAX;
}

#endif
