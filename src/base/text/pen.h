/* SPDX-License-Identifier: Apache-2.0 */
/* pen.h - text into the caller's array, as snprintf does: what does not fit is counted and left
 * out.
 *
 *     orr_pen pen = {.out = out, .size = size};
 *     orr_pen_put(&pen, "name: \"%s\"\n", name);
 *     orr_pen_unit(&pen, "clock", hz, orr_pen_frequencies);    // "clock: 940MHz"
 *     return pen.used; */
#ifndef ORR_BASE_PEN_H
#define ORR_BASE_PEN_H

#include <orrery/error.h>
#include <orrery/types.h>

typedef struct orr_pen {
    char *out;
    size_t size, used;
} orr_pen;

/* Units of one quantity, the largest first; the last divides everything. */
typedef struct orr_pen_units {
    uint64_t size;
    const char *word;
} orr_pen_units;

extern const orr_pen_units orr_pen_frequencies[], orr_pen_rates[], orr_pen_sizes[], orr_pen_times[];

ORR_PRINTF(2, 3) void orr_pen_put(orr_pen *pen, const char *fmt, ...);

/* "key: value" in the largest unit in which the value is a whole number, so that reading it back
 * gives the same; a value of 0 is not known, and left out.  In Hz, B/s, B and ps. */
void orr_pen_unit(orr_pen *pen, const char *key, uint64_t value, const orr_pen_units *units);

#endif
