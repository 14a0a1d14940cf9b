/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v1_write.c - v1's output buffer (scale-sim.md 4.2), a buffer at a time instead of a word at a time.
 *
 * Outputs are written in rows, one a cycle.  Rows of one fold share no address; folds of the same column repeat
 * the same rows, so what the filling half holds is known from how many rows came since it was swapped.  A row is
 * `width(t)` words; sums of widths have a closed form, so the row that fills the half is found by bisection. Cost:
 * the number of swaps times log(rows); input stationary layers with stacked windows add the rows of one fold. */
#include "systolic_v1.h"

typedef struct drain {
    uint64_t size;
    uint64_t filling, draining; /* words */
    int64_t swapped, now;
    bool has_begun;
    orr_systolic_traffic *out;
} drain;

enum { LAST_RATE = 10 };

/* Write `words` from this cycle on; the cycle behind the last. */
static int64_t put(drain *d, uint64_t words, int64_t cycle, uint64_t rate)
{
    if (!d->has_begun)
        d->out->first = cycle;
    d->has_begun = true;
    const int64_t end = cycle + (int64_t)orr__cdiv(words, rate);
    d->out->last = end - 1;
    d->out->words += words;
    const double most = (double)orr__min(rate, words);
    d->out->peak = d->out->peak > most ? d->out->peak : most;
    return end;
}

/* The row of this cycle, of so many words, does not fit: the halves change places. */
static void swap(drain *d, int64_t cycle, uint64_t row)
{
    if (d->draining)
        put(d, d->draining, d->swapped + 1, orr__cdiv(d->draining, (uint64_t)(cycle - d->swapped)));
    d->draining = d->filling;
    d->filling = row;
    d->swapped = d->now = cycle;
}

static void finish(drain *d)
{
    int64_t after = d->now;
    if (d->draining) {
        const int64_t end = put(d, d->draining, d->swapped + 1, LAST_RATE);
        after = after > end ? after : end;
    }
    if (d->filling)
        put(d, d->filling, after + 1, LAST_RATE);
}

/* ---- the rows of a fold ---- */

/* `blocks` full blocks of `columns` columns side by side and one of `last`, each column one row behind the one
 * before it; without skew, `rows` rows of `flat` words. */
typedef struct shape {
    uint64_t rows;
    uint64_t flat;
    uint64_t blocks, columns, last, steps;
} shape;

/* Words of the rows before row t. */
static uint64_t words_of(uint64_t columns, uint64_t steps, uint64_t t)
{
    if (t >= columns + steps)
        return columns * steps;
    const uint64_t all = t <= columns
                             ? (uint64_t)((orr__wide)t * (t + 1) / 2)
                             : columns * t - (uint64_t)((orr__wide)columns * (columns - 1) / 2);
    const uint64_t u = t > steps ? t - steps : 0;
    const uint64_t gone = u <= columns
                              ? (uint64_t)((orr__wide)u * (u + 1) / 2)
                              : columns * u - (uint64_t)((orr__wide)columns * (columns - 1) / 2);
    return all - gone;
}

static uint64_t rows_before(const shape *s, uint64_t t)
{
    if (s->flat)
        return t * s->flat;
    return s->blocks * words_of(s->columns, s->steps, t) + words_of(s->last, s->steps, t);
}

static uint64_t width(const shape *s, uint64_t t)
{
    return rows_before(s, t + 1) - rows_before(s, t);
}

/* ---- one column fold: the same rows, `repeats` times ---- */

/* Cycle of a row: which repeat, which row of it. */
typedef int64_t (*row_cycle)(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row);

typedef struct column {
    const orr__systolic *s;
    shape shape;
    uint64_t v, repeats;
    row_cycle at;
    uint64_t row, repeat; /* the next */
    uint64_t known;       /* rows of this column that the filling half got since it was swapped */
} column;

/* The first row from c->row on, in this repeat, whose words fill the half up; shape.rows: none.  When `repeats` is
 * set the rows are held already, so each is looked at by itself. */
static uint64_t filling_row(const column *c, const drain *d, uint64_t behind, bool is_held)
{
    const shape *s = &c->shape;
    const uint64_t base = rows_before(s, c->row);
    uint64_t lo = c->row, hi = behind;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const uint64_t words = is_held ? width(s, mid) : rows_before(s, mid + 1) - base;
        if (d->filling + words >= d->size)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Where widths have risen as far as they will. */
static uint64_t top_row(const shape *s)
{
    return s->flat ? 0 : orr__min(s->blocks ? s->columns : s->last, s->steps) - 1;
}

/* A row that is held by now: the first wide enough not to fit is on the rising side, or the row itself. */
static uint64_t held_filling_row(const column *c, const drain *d)
{
    const shape *s = &c->shape;
    const uint64_t top = top_row(s);
    if (d->filling + width(s, c->row) >= d->size)
        return c->row;
    if (c->row >= top)
        return s->rows;
    const uint64_t found = filling_row(c, d, top + 1, true);
    return found <= top ? found : s->rows;
}

static void next_repeat(column *c)
{
    c->row = 0;
    c->repeat++;
}

/* Rows [c->row, to) go in without filling the half; those beyond `known` are new. */
static void take_rows(column *c, drain *d, uint64_t to, bool is_held)
{
    if (to == c->row)
        return;
    if (!is_held)
        d->filling += rows_before(&c->shape, to) - rows_before(&c->shape, c->row);
    c->known += to - c->row;
    d->now = c->at(c->s, c->v, c->repeat, to - 1);
    c->row = to;
}

static void swap_at(column *c, drain *d, uint64_t row)
{
    swap(d, c->at(c->s, c->v, c->repeat, row), width(&c->shape, row));
    c->known = 1;
    c->row = row + 1;
}

/* Nothing in this column is new any more and nothing can fill the half. */
static bool is_over(const column *c, const drain *d)
{
    return c->known >= c->shape.rows && d->filling + width(&c->shape, top_row(&c->shape)) < d->size;
}

static void run_column(column *c, drain *d)
{
    const uint64_t rows = c->shape.rows;
    while (c->repeat < c->repeats) {
        if (c->row == rows) {
            next_repeat(c);
            continue;
        }
        if (is_over(c, d)) {
            d->now = c->at(c->s, c->v, c->repeats - 1, rows - 1);
            return;
        }
        const bool is_held = c->known >= rows;
        /* New rows end where the half has met all of them. */
        const uint64_t behind = is_held ? rows : orr__min(rows, c->row + (rows - c->known));
        const uint64_t row = is_held ? held_filling_row(c, d) : filling_row(c, d, behind, false);
        const uint64_t stop = row < behind ? row : behind;
        take_rows(c, d, stop, is_held);
        if (row < behind)
            swap_at(c, d, row);
    }
}

/* ---- the three dataflows ---- */

static int64_t os_row(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row)
{
    (void)repeat;
    return (int64_t)(orr__systolic_v1_os_write(s, v, row / s->R) + row % s->R);
}

static void run_os(const orr__systolic *s, drain *d)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    for (uint64_t v = 0; v < f.outer; v++) {
        column c = {.s = s, .v = v, .repeats = 1, .at = os_row};
        c.shape = (shape){.rows = s->E, .flat = orr__fold_columns(&f, v)};
        run_column(&c, d);
    }
}

static int64_t folded_row(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row)
{
    const uint64_t across = s->array->dataflow == ORR_DATAFLOW_WS ? s->N : s->E;
    const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
    const uint64_t columns = orr__fold_columns(&f, v);
    const uint64_t full = (f.inner - 1) * orr__systolic_v1_fold(s, f.rows, f.columns) +
                          orr__systolic_v1_fold(s, f.last_rows, f.columns);
    const uint64_t start = v * full + repeat * orr__systolic_v1_fold(s, f.rows, columns);
    const uint64_t lag = s->array->dataflow == ORR_DATAFLOW_WS ? columns : 0;
    return (int64_t)(start + 2 * orr__fold_rows(&f, repeat) + lag + row);
}

static void run_folded(const orr__systolic *s, drain *d)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const orr__folds f = orr__folds_of(s->T, is_ws ? s->N : s->E, s->R, s->C);
    for (uint64_t v = 0; v < f.outer; v++) {
        const uint64_t columns = orr__fold_columns(&f, v);
        column c = {.s = s, .v = v, .repeats = f.inner, .at = folded_row};
        c.shape = is_ws ? (shape){.rows = s->E, .flat = columns}
                        : (shape){.rows = s->N + columns, .last = columns, .steps = s->N};
        run_column(&c, d);
    }
}

static int64_t stacked_row(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row)
{
    (void)repeat;
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t width_all = s->R / s->T * s->C, across = is_ws ? s->N : s->E;
    const uint64_t mapped = orr__min(width_all, across - v * width_all);
    const uint64_t stacked = orr__cdiv(mapped, s->C);
    const uint64_t start = v * orr__systolic_v1_stacked(s, orr__min(across, width_all));
    const uint64_t lag = is_ws ? (stacked > 1 ? s->C : mapped) : 0;
    return (int64_t)(start + (stacked + 1) * s->T + lag + row);
}

/* The last fold of an input stationary layer counts its pixels from C * v * (its own windows in a column), so it
 * may write where earlier folds did (section 4).  Blocks of C pixels keep their columns, so block b of row t is
 * held if the fold that had it came after the swap, or had the swap in a row not behind t. */
static void run_rewriting_fold(
    const orr__systolic *s, drain *d, column *c, uint64_t swap_fold, uint64_t swap_row)
{
    const uint64_t stack = s->R / s->T, mapped = c->shape.blocks * s->C + c->shape.last;
    const uint64_t blocks = orr__cdiv(mapped, s->C);
    bool was_swapped = false;
    for (uint64_t t = 0; t < c->shape.rows; t++) {
        const uint64_t all = width(&c->shape, t);
        const int64_t cycle = c->at(s, c->v, 0, t);
        if (d->filling + all >= d->size) {
            swap(d, cycle, all);
            was_swapped = true;
            continue;
        }
        for (uint64_t i = 0; i < blocks; i++) {
            const uint64_t fold = (c->v * blocks + i) / stack;
            const bool is_held = !was_swapped && fold < c->v &&
                                 (fold > swap_fold || (fold == swap_fold && t >= swap_row));
            const uint64_t columns = orr__min(s->C, mapped - i * s->C);
            if (!is_held)
                d->filling += words_of(columns, s->N, t + 1) - words_of(columns, s->N, t);
        }
        d->now = cycle;
    }
}

static void run_stacked(const orr__systolic *s, drain *d)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t across = is_ws ? s->N : s->E;
    const uint64_t width_all = s->R / s->T * s->C, folds = orr__cdiv(across, width_all);
    uint64_t swap_fold = 0, swap_row = 0;
    for (uint64_t v = 0; v < folds; v++) {
        const uint64_t mapped = orr__min(width_all, across - v * width_all);
        const uint64_t blocks = orr__cdiv(mapped, s->C) - 1;
        column c = {.s = s, .v = v, .repeats = 1, .at = stacked_row};
        const int64_t swapped = d->swapped;
        if (is_ws)
            c.shape = (shape){.rows = s->E, .flat = mapped};
        else
            c.shape = (shape){.rows = s->N + orr__min(s->C, mapped),
                              .blocks = blocks,
                              .columns = s->C,
                              .last = mapped - blocks * s->C,
                              .steps = s->N};
        if (!is_ws && v > 0 && (blocks + 1) * s->C < width_all) {
            run_rewriting_fold(s, d, &c, swap_fold, swap_row);
            continue;
        }
        run_column(&c, d);
        if (d->swapped != swapped) {
            swap_fold = v;
            swap_row = c.shape.rows - c.known;
        }
    }
}

void orr__systolic_v1_writes(const orr__systolic *s, orr_systolic_traffic *out)
{
    drain d = {.size = s->array->ofmap_words, .out = out};
    if (s->array->dataflow == ORR_DATAFLOW_OS)
        run_os(s, &d);
    else if (s->T > s->R)
        run_folded(s, &d);
    else
        run_stacked(s, &d);
    finish(&d);
}
