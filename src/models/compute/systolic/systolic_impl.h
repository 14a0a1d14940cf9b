/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_impl.h - what the files of the systolic model share: a checked layer on a checked
 * array. */
#ifndef ORR_MODELS_SYSTOLIC_IMPL_H
#define ORR_MODELS_SYSTOLIC_IMPL_H

#include "base/arithmetic.h"

#include <orrery/lab/systolic.h>

/* Sums of products of 64-bit numbers (gcc and clang). */
typedef unsigned __int128 orr__wide;

/* A layer on an array, every number checked: their products fit where they are used, because the
 * total number of multiply-accumulates is below 2^62 and the array has at most 2^20 rows and
 * columns. */
typedef struct orr__systolic {
    const orr_systolic_array *array;
    const orr_systolic_layer *layer;
    uint64_t R, C;           /* rows and columns of the array */
    uint64_t T;              /* words of a window */
    uint64_t N;              /* filters */
    uint64_t out_h, out_w;   /* output size, rounded as the rules say */
    uint64_t E;              /* output pixels of a filter: out_h * out_w */
    double exact_h, exact_w; /* the same before rounding, as in v1 */
    uint64_t *steps;         /* counted if not NULL; our rules limit them */
} orr__systolic;

/* Folds of two extents over the array: `outer` column folds with `inner` row folds each; all are
 * full except the last ones. */
typedef struct orr__folds {
    uint64_t inner, outer;          /* how many */
    uint64_t rows, last_rows;       /* used by a full row fold, by the last */
    uint64_t columns, last_columns; /* the same for column folds */
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

/* Sum of a cost over all folds, in constant time. */
typedef orr__wide (*orr__fold_cost)(const orr__systolic *s, uint64_t rows, uint64_t columns);
orr__wide orr__sum_folds(const orr__systolic *s, const orr__folds *f, orr__fold_cost cost);

struct orr_scalesim; /* scalesim_impl.h */

/* What another simulator does differently.  Ours is in systolic.c; compat/scale_sim has the
 * others. */
struct orr_rules_systolic {
    const char *name; /* in reports */

    /* Rounding of an output size that is not an integer: as array.round_up says, down, or up. */
    enum { ORR__SIZE_AS_TOLD, ORR__SIZE_DOWN, ORR__SIZE_UP } size;
    bool has_one_stride;      /* for both directions */
    bool has_no_bandwidth;    /* memory never stalls */
    uint64_t least_words;     /* of a buffer */
    bool needs_bandwidth_key; /* the configuration must have InterfaceBandwidth */
    /* Checks a configuration further; NULL: no check. */
    orr_code (*check_config)(const struct orr_scalesim *r, orr_error *err);
    orr__wide (*cycles)(const orr__systolic *s); /* without stalls; may exceed 64 bits */
    /* All figures; `out` is zero except for macs. */
    orr_code (*run)(const orr__systolic *s, orr_systolic_result *out, orr_error *err);

    /* Which lines of a table of layers are used, and their form: by their columns; nine fields or
     * more, others are skipped; as orr_scalesim_read.form says, without what follows the last
     * comma. */
    enum { ORR__ROWS_BY_COLUMNS, ORR__ROWS_OF_NINE, ORR__ROWS_BY_FORM } rows;
    /* By form: N:M may follow the last column of a layer; one stride only. */
    bool has_sparsity;
    bool keeps_raw_names;  /* with quotes and blanks */
    bool has_no_depthwise; /* DP in a name has no meaning */
    /* Reports and traces in that program's format; NULL: ours, and none. */
    orr_code (*write)(const struct orr_scalesim *r, const char *folder, orr_error *err);
    orr_code (*check_names)(const struct orr_scalesim *r, orr_error *err);
    orr_code (*write_traces)(const struct orr_scalesim *r, const char *folder, orr_error *err);
};

const orr_rules_systolic *orr__systolic_rules(const orr_rules_systolic *rules); /* NULL: ours */

orr_code orr__systolic_check(const orr_systolic_array *a,
                             const orr_systolic_layer *l,
                             const orr_rules_systolic *rules, /* not NULL */
                             orr__systolic *out,
                             orr_error *err) ORR_MUST_CHECK;

bool orr__systolic_overlaps(const orr__systolic *s); /* do two windows share a word? */

/* Distinct words of the ifmap in the windows of these pixels, restricted to these elements.
 * Elements outside the ifmap do not count. */
uint64_t orr__systolic_distinct(
    const orr__systolic *s, uint64_t pixel, uint64_t pixels, uint64_t k, uint64_t ks);

/* The folds of a layer, and the number of steps of the moving operand. */
orr__folds orr__systolic_true_folds(const orr__systolic *s, uint64_t *steps);
orr__wide orr__systolic_true_cycles(const orr__systolic *s);
orr_code orr__systolic_true_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err);

#endif
