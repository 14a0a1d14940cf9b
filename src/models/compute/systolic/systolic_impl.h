/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_impl.h - what the files of the systolic model share: a checked layer on a checked array. */
#ifndef ORR_MODELS_SYSTOLIC_IMPL_H
#define ORR_MODELS_SYSTOLIC_IMPL_H

#include <orrery/lab/systolic.h>

/* Sums of products of 64-bit numbers (gcc and clang). */
typedef unsigned __int128 orr__wide;

/* A layer on an array, every number checked: products of these fit where they are used, because all
 * multiply-accumulates together are below 2^62 and the array has at most 2^20 rows and columns. */
typedef struct orr__systolic {
    const orr_systolic_array *array;
    const orr_systolic_layer *layer;
    uint64_t R, C;           /* rows and columns of the array */
    uint64_t T;              /* words of a window */
    uint64_t N;              /* filters */
    uint64_t out_h, out_w;   /* output size, rounded as the rules say */
    uint64_t E;              /* output pixels of a filter: out_h * out_w */
    double exact_h, exact_w; /* the same before rounding, as v1 has them */
} orr__systolic;

static inline uint64_t orr__cdiv(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t orr__min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t orr__max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Folds of two extents over the array: `outer` column folds of which each has `inner` row folds; all are full
 * but the last ones. */
typedef struct orr__folds {
    uint64_t inner, outer;          /* how many */
    uint64_t rows, last_rows;       /* used by a full row fold, by the last */
    uint64_t columns, last_columns; /* the same of column folds */
} orr__folds;

orr__folds orr__folds_of(uint64_t down, uint64_t across, uint64_t R, uint64_t C);

static inline uint64_t orr__fold_rows(const orr__folds *f, uint64_t h)
{
    return h + 1 < f->inner ? f->rows : f->last_rows;
}

static inline uint64_t orr__fold_columns(const orr__folds *f, uint64_t v)
{
    return v + 1 < f->outer ? f->columns : f->last_columns;
}

orr_code orr__systolic_check(const orr_systolic_array *a,
                             const orr_systolic_layer *l,
                             orr_systolic_rules rules,
                             orr__systolic *out,
                             orr_error *err) ORR_MUST_CHECK;

bool orr__systolic_overlaps(const orr__systolic *s); /* do two windows share a word? */

/* Different words of the ifmap in the windows of these pixels, of which only these elements count.  Elements outside
 * the ifmap are no words. */
uint64_t orr__systolic_distinct(
    const orr__systolic *s, uint64_t pixel, uint64_t pixels, uint64_t k, uint64_t ks);

/* Without stalls; wide, because many small folds on a large array may be more than 64 bits tell. */
orr__wide orr__systolic_true_cycles(const orr__systolic *s);
orr__wide orr__systolic_v1_cycles(const orr__systolic *s);
orr__wide orr__systolic_v2_cycles(const orr__systolic *s);

/* All figures; `out` is zero but for macs. */
orr_code orr__systolic_true_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err);
orr_code orr__systolic_v1_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err);
orr_code orr__systolic_v2_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err);

/* How a layer is cut, and how many steps the moving operand has (our rules and v2). */
orr__folds orr__systolic_true_folds(const orr__systolic *s, uint64_t *steps);
uint64_t orr__systolic_v2_fold_cycles(const orr__systolic *s);

/* Output stationary in v1: when its two sides have read their last word. */
typedef struct orr__os_folds {
    orr__folds f;
    uint64_t repeats; /* of a column fold's weights; f.inner unless the stride does not divide */
    orr__wide column_end, row_end;
} orr__os_folds;

orr__os_folds orr__systolic_v1_os(const orr__systolic *s);
uint64_t orr__systolic_v1_streamed(const orr__systolic *s);
/* Cycles of a fold of ws or is: of a window that is folded; of `mapped` filters or pixels, several stacked. */
uint64_t orr__systolic_v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns);
uint64_t orr__systolic_v1_stacked(const orr__systolic *s, uint64_t mapped);

#endif
