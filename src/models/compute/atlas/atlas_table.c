/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_table.c - the measured classes inside the program.
 *
 * The table is a constant of the program (atlas_table.bin, made by tools/atlas/atlas_fit.py): pages
 * that no kernel asks for are never read.  Records are sorted by key; finding one is a binary
 * search, a value a multilinear interpolation between at most 16 bytes. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

extern const char atlas_table[]; /* made by the build */

enum { TABLE_COUNT = 8, TABLE_RECORDS = 12, TABLE_STEPS_PER_OCTAVE = 16 };

static uint32_t read_u32(size_t at)
{
    uint32_t value;
    memcpy(&value, atlas_table + at, sizeof value);
    return value;
}

static float read_float(size_t at)
{
    float value;
    memcpy(&value, atlas_table + at, sizeof value);
    return value;
}

bool atlas_find(uint32_t key, atlas_class *out)
{
    size_t first = 0, count = read_u32(TABLE_COUNT);
    while (count > 0) {
        const size_t half = count / 2;
        const size_t at = TABLE_RECORDS + (first + half) * sizeof *out;
        const uint32_t here = read_u32(at);
        if (here == key) {
            memcpy(out, atlas_table + at, sizeof *out);
            return true;
        }
        if (here < key) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return false;
}

/* The node at or before x, and how far x lies towards the next: 0 to 1. */
static double place(const atlas_class *c, uint32_t axis, double x, uint32_t *node, double *outside)
{
    const size_t at = c->axis[axis];
    const uint32_t last = c->length[axis] - 1;
    const double low = read_float(at), high = read_float(at + 4 * (size_t)last);
    *outside += x < low ? low - x : x > high ? x - high : 0;
    *node = 0;
    if (last == 0 || x <= low)
        return 0;
    if (x >= high) {
        *node = last - 1;
        return 1;
    }
    uint32_t a = 0, b = last;
    while (b - a > 1) {
        const uint32_t middle = (a + b) / 2;
        if (read_float(at + 4 * (size_t)middle) <= x)
            a = middle;
        else
            b = middle;
    }
    const double from = read_float(at + 4 * (size_t)a), to = read_float(at + 4 * (size_t)b);
    *node = a;
    return (x - from) / (to - from);
}

atlas_point atlas_look(const atlas_class *c, const double *x)
{
    atlas_point out = {0, 0, 0};
    uint32_t index[1 << ATLAS_DIMS] = {0};
    double weight[1 << ATLAS_DIMS] = {1};
    size_t corners = 1;
    for (uint32_t j = 0; j < c->dims; j++) {
        uint32_t node;
        const double part = place(c, j, x[j], &node, &out.outside);
        for (size_t i = 0; i < corners; i++)
            index[i] = index[i] * c->length[j] + node;
        if (part <= 0)
            continue;
        for (size_t i = 0; i < corners; i++) {
            index[corners + i] = index[i] + 1;
            weight[corners + i] = weight[i] * part;
            weight[i] *= 1 - part;
        }
        corners *= 2;
    }
    double sum = 0, far = 0;
    for (size_t i = 0; i < corners; i++) {
        sum += weight[i] * (signed char)atlas_table[c->grid + index[i]];
        if (c->far)
            far += weight[i] * (unsigned char)atlas_table[c->far + index[i]];
    }
    out.value = sum * (double)c->step;
    out.far = far / TABLE_STEPS_PER_OCTAVE;
    return out;
}
