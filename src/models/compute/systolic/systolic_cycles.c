/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_cycles.c - cycles without stalls, in constant time, by three sets of rules.
 *
 * The extents of a layer are cut into folds of the array's size.  All folds are full but those of the last row and
 * of the last column, so a sum over all of them has four terms. */
#include "systolic_impl.h"

#include <math.h>

/* ---- sums over folds ---- */

typedef orr__wide (*fold_cost)(const orr__systolic *s, uint64_t rows, uint64_t columns);

static orr__wide sum_folds(const orr__systolic *s, const orr__folds *f, fold_cost cost)
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
    return sum_folds(s, &f, true_fold) + 1;
}

/* ---- v1: scale-sim.md, section 2 ---- */

orr__os_folds orr__systolic_v1_os(const orr__systolic *s)
{
    orr__os_folds g = {.f = orr__folds_of(s->E, s->N, s->R, s->C)};
    /* The reference rounds this one late: unrounded sizes, one rounding at the end. */
    g.repeats = (uint64_t)ceil(s->exact_h * s->exact_w / (double)s->R);
    const orr__wide pass = (orr__wide)g.repeats * s->T;
    g.column_end = g.f.outer * pass + g.f.last_columns - 1;
    if (g.f.outer > 1) {
        const orr__wide before = (g.f.outer - 1) * pass + s->C - 1;
        g.column_end = g.column_end > before ? g.column_end : before;
    }
    const orr__wide rows = (orr__wide)g.f.inner * s->T;
    orr__wide end = rows + g.f.last_rows - 1;
    if (g.f.inner > 1 && rows - s->T + s->R - 1 > end)
        end = rows - s->T + s->R - 1;
    g.row_end = (g.f.outer - 1) * rows + end;
    return g;
}

static orr__wide wide_max(orr__wide a, orr__wide b)
{
    return a > b ? a : b;
}

/* The closed form at the end of 2.1.  Differences may be negative, so they are kept on the adding side. */
static orr__wide os_write_end(const orr__systolic *s, const orr__folds *f)
{
    const uint64_t tail = f->last_rows;
    const orr__wide column = (orr__wide)(f->inner - 1) * orr__max(s->T, s->R);
    orr__wide start = (orr__wide)s->T + orr__min(s->C, s->N) - 1 + column;
    if (f->outer > 2)
        start += (f->outer - 2) *
                 (column + (s->T + 1 > 2 * tail ? (orr__wide)s->T + 1 - tail : (orr__wide)tail));
    if (f->outer > 1) {
        const orr__wide lost = (orr__wide)tail + s->C - f->last_columns;
        const orr__wide gained = (orr__wide)s->T + 1;
        start += column + (gained > lost + tail ? gained - lost : (orr__wide)tail);
    }
    return start + tail;
}

static orr__wide v1_os_cycles(const orr__systolic *s)
{
    const orr__os_folds g = orr__systolic_v1_os(s);
    const orr__wide read = s->T == 1 ? g.column_end : wide_max(g.column_end, g.row_end);
    return wide_max(read, os_write_end(s, &g.f));
}

/* Pixels whose ifmap words are read when the window is folded: again rounded late. */
uint64_t orr__systolic_v1_streamed(const orr__systolic *s)
{
    return (uint64_t)(s->exact_h * s->exact_w);
}

uint64_t orr__systolic_v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns)
{
    if (s->array->dataflow == ORR_DATAFLOW_WS)
        return rows + orr__max(orr__systolic_v1_streamed(s), columns + rows + s->E);
    return 2 * rows + s->N + columns - 1;
}

static orr__wide v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns)
{
    return orr__systolic_v1_fold(s, rows, columns);
}

/* A window no longer than the array is high: several are stacked in a column. */
uint64_t orr__systolic_v1_stacked(const orr__systolic *s, uint64_t mapped)
{
    const uint64_t stacked = orr__cdiv(mapped, s->C);
    const uint64_t load = (stacked + 1) * s->T;
    if (s->array->dataflow == ORR_DATAFLOW_WS)
        return load + (stacked > 1 ? s->C : mapped) + s->E;
    return load + s->N + orr__min(s->C, mapped) - 1;
}

orr__wide orr__systolic_v1_cycles(const orr__systolic *s)
{
    if (s->array->dataflow == ORR_DATAFLOW_OS)
        return v1_os_cycles(s);
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t across = is_ws ? s->N : s->E;
    if (s->T > s->R) {
        const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
        return sum_folds(s, &f, v1_fold);
    }
    const uint64_t width = s->R / s->T * s->C;
    const uint64_t folds = orr__cdiv(across, width);
    return (folds - 1) * (orr__wide)orr__systolic_v1_stacked(s, width) +
           orr__systolic_v1_stacked(s, across - (folds - 1) * width);
}

/* ---- v2: scale-sim.md, 6.2 ---- */

uint64_t orr__systolic_v2_fold_cycles(const orr__systolic *s)
{
    uint64_t steps;
    (void)orr__systolic_true_folds(s, &steps);
    return steps + s->R + s->C - 2 + (s->array->dataflow == ORR_DATAFLOW_OS ? 0 : s->R);
}

/* The reference gives the number of the last cycle, not how many there are. */
orr__wide orr__systolic_v2_cycles(const orr__systolic *s)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    return (orr__wide)f.inner * f.outer * orr__systolic_v2_fold_cycles(s) - 1;
}
