/* SPDX-License-Identifier: Apache-2.0 */
/* ticks.h - a real number of nanoseconds as a number of ticks.
 *
 * Cut off, as the reference does.  What no clock can hold (its own result is undefined there)
 * becomes ORR_TICKS_FAR, so that sums of a few still fit. */
#ifndef ORR_BASE_TICKS_H
#define ORR_BASE_TICKS_H

#include <stdint.h>

#define ORR_TICKS_FAR ((uint64_t)1 << 62)

static inline uint64_t orr_ticks(double ns)
{
    if (!(ns < 0x1p62))
        return ORR_TICKS_FAR;
    return ns > 0 ? (uint64_t)ns : 0;
}

#endif
