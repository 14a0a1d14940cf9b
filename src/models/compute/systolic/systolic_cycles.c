/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_cycles.c - cycles without stalls, in constant time, by our rules.
 *
 * The extents of a layer are cut into folds of the array's size.  All folds are full but those of the last row and
 * of the last column, so a sum over all of them has four terms. */
#include "systolic_impl.h"

/* ---- sums over folds ---- */

orr__wide orr__sum_folds(const orr__systolic *s, const orr__folds *f, orr__fold_cost cost)
{
    const orr__wide full =
        (f->inner - 1) * cost(s, f->rows, f->columns) + cost(s, f->last_rows, f->columns);
    const orr__wide last =
        (f->inner - 1) * cost(s, f->rows, f->last_columns) + cost(s, f->last_rows, f->last_columns);
    return (f->outer - 1) * full + last;
}

bool orr__systolic_overlaps(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    return (s->out_h > 1 && l->filter_height > l->stride_height) ||
           (s->out_w > 1 && l->filter_width > l->stride_width);
}

/* ---- our own rules: docs/design/systolic.md ---- */

orr__folds orr__systolic_true_folds(const orr__systolic *s, uint64_t *steps)
{
    switch (s->array->dataflow) {
    case ORR_DATAFLOW_OS:
        *steps = s->T;
        return orr__folds_of(s->E, s->N, s->R, s->C);
    case ORR_DATAFLOW_WS:
        *steps = s->E;
        return orr__folds_of(s->T, s->N, s->R, s->C);
    default:
        *steps = s->N;
        return orr__folds_of(s->T, s->E, s->R, s->C);
    }
}

/* Load what stays, stream the rest, and wait until the last sum has crossed the array. */
static orr__wide true_fold(const orr__systolic *s, uint64_t rows, uint64_t columns)
{
    uint64_t steps;
    (void)orr__systolic_true_folds(s, &steps);
    const uint64_t load = s->array->dataflow == ORR_DATAFLOW_OS ? 0 : rows;
    return (orr__wide)load + steps + rows + columns - 2;
}

/* The last result leaves one cycle after the last fold's last sum. */
orr__wide orr__systolic_true_cycles(const orr__systolic *s)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    return orr__sum_folds(s, &f, true_fold) + 1;
}
