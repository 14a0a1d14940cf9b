/* SPDX-License-Identifier: Apache-2.0 */
/* fold_time.h - one number for each member of a class: times, and sums of times.
 *
 * Members that do the same do it at times that mostly differ not at all, or by the same amounts
 * again and again.  So a value is a base and a *spread*: member m has base + spread[m].  Spreads
 * are at least 0 with a 0 among them, each kept once and known by its number; number 0 is the even
 * one, all zeros.  Results of operations on two spreads are remembered, so what repeats costs a
 * lookup however many members there are. */
#ifndef ORR_RUN_FOLD_TIME_H
#define ORR_RUN_FOLD_TIME_H

#include "base/memory/memory.h"

#include <stdint.h>

/* An example, four members in ns:
 *
 *     times     1000 1000 1007 1003
 *     base      1000
 *     spread       0    0    7    3     kept once: the same skew, seen again, is the same number */
typedef struct fold_val {
    int64_t base;
    uint32_t by; /* a spread; 0: all members have the same */
    uint32_t id; /* what it was made of (fold_tape.c); 0: that is not known */
} fold_val;

typedef struct fold_times fold_times;

/* most_bytes: of spreads; beyond these members have nothing in common, and folding does not pay.
 * NULL: out of memory. */
fold_times *fold_times_create(size_t most_bytes);
void fold_times_destroy(fold_times *t);
/* Out of memory, or too many different spreads: the values since then mean nothing. */
bool fold_times_failed(const fold_times *t);
bool fold_times_no_memory(const fold_times *t); /* it was memory */

/* From now on there may be as many spreads as memory holds. */
void fold_times_unbound(fold_times *t);

/* The offsets of a spread (not of 0). */
const int64_t *fold_spread(const fold_times *t, uint32_t by);

static inline int64_t fold_at(const fold_times *t, fold_val v, uint32_t member)
{
    return v.base + (v.by ? fold_spread(t, v.by)[member] : 0);
}
static inline int64_t fold_least(fold_val v)
{
    return v.base;
}
int64_t fold_most(const fold_times *t, fold_val v);

/* The spread with these offsets, the least of them 0; UINT32_MAX: it was never made. */
uint32_t fold_find(const fold_times *t, const int64_t *offsets, uint32_t members);
/* From one number per member. */
fold_val fold_make(fold_times *t, const int64_t *at, uint32_t members);

/* Both values are of classes with as many members. */
fold_val fold_add_slow(fold_times *t, fold_val a, fold_val b);
fold_val fold_sub_slow(fold_times *t, fold_val a, fold_val b);
fold_val fold_max_slow(fold_times *t, fold_val a, fold_val b);
/* Member m gets what member from[m] of `a` has.  map: the number of this permutation, for
 * remembering. */
fold_val fold_permute(
    fold_times *t, fold_val a, uint32_t map, const uint32_t *from, uint32_t members);

/* What the `count` members from `at` on have. */
fold_val fold_part_of(fold_times *t, fold_val a, uint32_t at, uint32_t count);

static inline fold_val fold_add(fold_times *t, fold_val a, fold_val b)
{
    return a.by && b.by ? fold_add_slow(t, a, b) : (fold_val){a.base + b.base, a.by | b.by, 0};
}
static inline fold_val fold_sub(fold_times *t, fold_val a, fold_val b)
{
    if (a.by == b.by || !b.by)
        return (fold_val){a.base - b.base, a.by == b.by ? 0 : a.by, 0};
    return fold_sub_slow(t, a, b);
}
static inline fold_val fold_max(fold_times *t, fold_val a, fold_val b)
{
    if (a.by == b.by)
        return a.base > b.base ? a : b;
    return fold_max_slow(t, a, b);
}

#endif
