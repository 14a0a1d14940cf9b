/* SPDX-License-Identifier: Apache-2.0 */
/* pen.c - text into an array of the caller. */
#include "pen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const orr_pen_units orr_pen_frequencies[] = {{1000000, "MHz"}, {1000, "kHz"}, {1, "Hz"}};
const orr_pen_units orr_pen_rates[] = {{1000000000, "GB/s"}, {1000000, "MB/s"}, {1, "B/s"}};
const orr_pen_units orr_pen_sizes[] = {
    {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}};
const orr_pen_units orr_pen_times[] = {{1000000, "us"}, {1000, "ns"}, {1, "ps"}};

void orr_pen_put(orr_pen *pen, const char *fmt, ...)
{
    const size_t at = pen->used < pen->size ? pen->used : pen->size;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(pen->size ? pen->out + at : NULL, pen->size - at, fmt, args);
    va_end(args);
    pen->used += n > 0 ? (size_t)n : 0;
}

void orr_pen_unit(orr_pen *pen, const char *key, uint64_t value, const orr_pen_units *units)
{
    if (value == 0)
        return;
    while (value % units->size)
        units++;
    orr_pen_put(pen, "%s: %" PRIu64 "%s\n", key, value / units->size, units->word);
}
