/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_table.c - access to the embedded table of measured classes.
 *
 * The table is a constant of the program (atlas_table.bin, made by tools/atlas/atlas_fit.py): pages
 * that are not needed are never read.  Records are sorted by key; finding one is a binary search,
 * cached per thread.  A class is prepared on first use, shared by all threads, with buckets that
 * lead near a node of an axis; it never changes again.  A value is a multilinear interpolation
 * between at most 16 bytes. */
#include "models/compute/atlas/atlas.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

extern const char atlas_table[]; /* made by the build */

enum {
    TABLE_COUNT = 8,
    TABLE_RECORDS = 12,
    TABLE_STEPS_PER_OCTAVE = 16,
    RECORD = offsetof(atlas_class, first), /* bytes of one */
    CLASSES = 384,                         /* at least the number in the table */
};

_Static_assert(RECORD == 144, "a record of tools/atlas/atlas_fit.py");

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

/* The index of the record with a key, from 1; 0: none. */
static uint32_t seek(uint32_t key)
{
    size_t first = 0, count = read_u32(TABLE_COUNT);
    while (count > 0) {
        const size_t half = count / 2;
        const size_t at = TABLE_RECORDS + (first + half) * RECORD;
        const uint32_t here = read_u32(at);
        if (here == key)
            return (uint32_t)(first + half + 1);
        if (here < key) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return 0;
}

static uint32_t bucket_of(const atlas_class *c, uint32_t axis, double above)
{
    return (uint32_t)(above * c->scale[axis]);
}

/* Nodes are assigned to buckets like sizes, so a node of an earlier bucket never exceeds a size. */
static void lay_buckets(atlas_class *c, uint32_t axis)
{
    const size_t at = c->axis[axis];
    const uint32_t last = c->length[axis] - 1;
    const double low = read_float(at), high = read_float(at + 4 * (size_t)last);
    uint32_t node = 0;
    c->first[axis] = low;
    c->last[axis] = high;
    c->scale[axis] = high > low ? ATLAS_BUCKETS / (high - low) : 0;
    for (uint32_t b = 0; b <= ATLAS_BUCKETS; b++) {
        while (node + 1 < last &&
               bucket_of(c, axis, read_float(at + 4 * (size_t)(node + 1)) - low) < b)
            node++;
        c->before[axis][b] = node < UINT8_MAX ? (uint8_t)node : UINT8_MAX;
    }
}

static atlas_class classes[CLASSES];
static atomic_bool is_made[CLASSES];

static void make_class(uint32_t record)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    atlas_class *const c = &classes[record];
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&is_made[record], memory_order_relaxed)) {
        memcpy(c, atlas_table + TABLE_RECORDS + (size_t)record * RECORD, RECORD);
        for (uint32_t j = 0; j < c->dims; j++)
            lay_buckets(c, j);
        atlas_set_tiles(c);
        const double low = (double)c->low, high = (double)c->high, chips = ATLAS_CHIP_TO_CHIP;
        c->low_times = exp(-sqrt(low * low + chips * chips));
        c->high_times = exp(sqrt(high * high + chips * chips));
        atomic_store_explicit(&is_made[record], true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

const atlas_class *atlas_find(uint32_t key)
{
    enum { REMEMBERED = 256 };
    /* Key, and record + 1 below it; 0: empty.  One word, so that threads may overwrite each other's
     * entries. */
    static _Atomic uint64_t known[REMEMBERED];
    const size_t slot = (key ^ key >> 8 ^ key >> 13) % REMEMBERED;
    uint64_t entry = atomic_load_explicit(&known[slot], memory_order_relaxed);
    if (!entry || entry >> 32 != key) {
        entry = (uint64_t)key << 32 | ((uint64_t)seek(key) + 1);
        atomic_store_explicit(&known[slot], entry, memory_order_relaxed);
    }
    const uint32_t record = (uint32_t)entry - 1;
    if (!record || record > CLASSES)
        return NULL;
    if (!atomic_load_explicit(&is_made[record - 1], memory_order_acquire))
        make_class(record - 1);
    return &classes[record - 1];
}

/* The node at or before x, and the position of x towards the next: 0 to 1. */
static inline double place(
    const atlas_class *c, uint32_t axis, double x, uint32_t *node, double *outside)
{
    const uint32_t last = c->length[axis] - 1;
    const double low = c->first[axis], high = c->last[axis];
    if (x <= low || last == 0) {
        *outside += x < low ? low - x : x > high ? x - high : 0;
        *node = 0;
        return 0;
    }
    if (x >= high) {
        *outside += x - high;
        *node = last - 1;
        return 1;
    }
    uint32_t a = c->before[axis][bucket_of(c, axis, x - low)];
    const size_t at = c->axis[axis];
    double from = read_float(at + 4 * (size_t)a), to = read_float(at + 4 * (size_t)(a + 1));
    while (to <= x) {
        a++;
        from = to;
        to = read_float(at + 4 * (size_t)(a + 1));
    }
    *node = a;
    return (x - from) / (to - from);
}

/* Interpolates axis by axis: at[j] is the distance to the next node of axis j, 0 at the end.
 * Unrolled per number of axes, because this dominates a lookup. */

#define ON_GRID(cell)                                                                             \
    static inline double cell##_line(const cell *g, const size_t *at, const double *part)         \
    {                                                                                             \
        const double a = g[0], b = g[at[0]];                                                      \
        return a + part[0] * (b - a);                                                             \
    }                                                                                             \
    static inline double cell##_plane(const cell *g, const size_t *at, const double *part)        \
    {                                                                                             \
        const double a = cell##_line(g, at + 1, part + 1),                                        \
                     b = cell##_line(g + at[0], at + 1, part + 1);                                \
        return a + part[0] * (b - a);                                                             \
    }                                                                                             \
    static inline double cell##_space(const cell *g, const size_t *at, const double *part)        \
    {                                                                                             \
        const double a = cell##_plane(g, at + 1, part + 1),                                       \
                     b = cell##_plane(g + at[0], at + 1, part + 1);                               \
        return a + part[0] * (b - a);                                                             \
    }                                                                                             \
    static double cell##_grid(const cell *g, const size_t *at, const double *part, uint32_t dims) \
    {                                                                                             \
        switch (dims) {                                                                           \
        case 1:                                                                                   \
            return cell##_line(g, at, part);                                                      \
        case 2:                                                                                   \
            return cell##_plane(g, at, part);                                                     \
        case 3:                                                                                   \
            return cell##_space(g, at, part);                                                     \
        case 4: {                                                                                 \
            const double a = cell##_space(g, at + 1, part + 1),                                   \
                         b = cell##_space(g + at[0], at + 1, part + 1);                           \
            return a + part[0] * (b - a);                                                         \
        }                                                                                         \
        default:                                                                                  \
            return g[0];                                                                          \
        }                                                                                         \
    }

typedef int8_t left_over;
typedef uint8_t distance;
ON_GRID(left_over)
ON_GRID(distance)

/* Bits of the corners: if these are all within an octave, so is the result. */

static inline unsigned bits_on_plane(const distance *g, const size_t *at)
{
    const distance *const b = g + at[0];
    return (unsigned)(g[0] | g[at[1]] | b[0] | b[at[1]]);
}

static inline unsigned bits_in_space(const distance *g, const size_t *at)
{
    return bits_on_plane(g, at + 1) | bits_on_plane(g + at[0], at + 1);
}

static unsigned corner_bits(const distance *g, const size_t *at, uint32_t dims)
{
    switch (dims) {
    case 1:
        return (unsigned)(g[0] | g[at[0]]);
    case 2:
        return bits_on_plane(g, at);
    case 3:
        return bits_in_space(g, at);
    case 4:
        return bits_in_space(g, at + 1) | bits_in_space(g + at[0], at + 1);
    default:
        return g[0];
    }
}

atlas_point atlas_look(const atlas_class *c, const double *x)
{
    atlas_point out = {0, 0, 0};
    double part[ATLAS_DIMS];
    size_t at[ATLAS_DIMS] = {0}, first = 0, stride = 1;
    uint32_t node[ATLAS_DIMS];
    const uint32_t dims = c->dims;
    for (uint32_t j = 0; j < dims; j++)
        part[j] = place(c, j, x[j], &node[j], &out.outside);
    for (uint32_t j = dims; j-- > 0;) {
        first += node[j] * stride;
        at[j] = part[j] > 0 ? stride : 0;
        stride *= c->length[j];
    }
    const left_over *const values = (const left_over *)atlas_table + c->grid + first;
    const distance *const far = (const distance *)atlas_table + c->far + first;
    out.value = left_over_grid(values, at, part, dims) * (double)c->step;
    if (c->far && corner_bits(far, at, dims) > TABLE_STEPS_PER_OCTAVE)
        out.far = distance_grid(far, at, part, dims) / TABLE_STEPS_PER_OCTAVE;
    return out;
}
