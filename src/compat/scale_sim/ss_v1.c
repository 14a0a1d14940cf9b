/* SPDX-License-Identifier: Apache-2.0 */
/* ss_v1.c - all figures of SCALE-Sim v1's reports, including its defects (scale-sim.md 3 and 4).
 *
 * The reference writes traces of every word and counts their fields.  Here counts have closed
 * forms, first and last cycles follow from the folds, and ss_fill.c models the read buffers. */
#include "scale_sim.h"
#include "ss_impl.h"

#include "base/memory/memory.h"

#include <math.h>

enum { FIRST_RATE = 10 };

/* ==== the two cases of v1's output stationary dataflow in which rows wait for each other
 * (scale-sim.md 3.4).
 *
 * With windows of one word, or with several column folds in flight, one row is released per cycle
 * and the end of the ifmap's reads is cut off.  No closed form is known, so the rows are stepped
 * cycle by cycle.  Cost: rows times cycles, about the number of words read, which is small because
 * such layers have short windows. */

typedef struct lane {
    int64_t offset; /* current element of the window; negative: not started */
    uint64_t pixel, fold;
    bool is_parked, is_blocked;
} lane;

typedef struct machine {
    const orr__systolic *s;
    uint64_t folds, count; /* column folds; lanes in use */
    lane *lanes;
    const ss_v1_visitor *visitor;
    uint64_t read; /* words in this cycle */
    uint64_t cycle;
} machine;

bool ss_v1_is_degenerate(const orr__systolic *s)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    return s->T == 1 || (f.outer >= 3 && f.inner >= 2 && s->R - f.last_rows > f.inner * s->T);
}

uint64_t ss_v1_word(const orr__systolic *s, uint64_t pixel, uint64_t element)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t row = l->filter_width * l->channels, line = l->ifmap_width * l->channels;
    return pixel / s->out_w * l->stride_height * line +
           pixel % s->out_w * l->stride_width * l->channels + element / row * line + element % row;
}

/* A pixel is done: take the next, or start the next column fold and perhaps wait for the row
 * above. */
static void next_pixel(machine *m, uint64_t r)
{
    lane *x = &m->lanes[r];
    x->pixel += m->s->R;
    if (x->pixel < m->s->E) {
        x->offset = 0;
        return;
    }
    if (++x->fold == m->folds) {
        x->is_parked = true;
        return;
    }
    const lane *above = r > 0 ? x - 1 : NULL;
    x->pixel = r;
    x->offset = 0;
    x->is_blocked = above && (x->fold > above->fold || above->is_blocked);
    x->is_parked = x->is_blocked;
}

static void step_lane(machine *m, uint64_t r)
{
    lane *x = &m->lanes[r];
    if (x->is_parked)
        return;
    if (x->offset >= 0) {
        m->read++;
        if (m->visitor->word)
            m->visitor->word(m->visitor->ctx, m->cycle, r,
                             ss_v1_word(m->s, x->pixel, (uint64_t)x->offset));
    }
    x->offset++;
    if (x->offset > 0 && (uint64_t)x->offset % m->s->T == 0)
        next_pixel(m, r);
}

/* Release one row per cycle. */
static void release_one(machine *m)
{
    for (uint64_t r = 1; r < m->count; r++) {
        lane *x = &m->lanes[r], *above = x - 1;
        if (!x->is_blocked || above->is_blocked || x->fold != above->fold)
            continue;
        x->is_blocked = false;
        x->is_parked = above->is_parked;
        x->offset = above->offset - 1;
        return;
    }
}

static bool is_done(const machine *m)
{
    for (uint64_t r = 0; r < m->count; r++)
        if (!m->lanes[r].is_parked && m->lanes[r].offset > 0)
            return false;
    return true;
}

static uint64_t clamp(uint64_t value, uint64_t from, uint64_t most)
{
    return value <= from ? 0 : orr_min_u64(value - from, most);
}

/* The columns of the last fold are used by all column folds, the others by all but one. */
static uint64_t ss_v1_columns(const ss_os_folds *g, const orr__systolic *s, uint64_t cycle)
{
    const uint64_t pass = g->repeats * s->T, last = g->f.last_columns;
    const uint64_t all = orr_min_u64(s->C, s->N);
    const uint64_t begun = orr_min_u64(cycle + 1, all);
    const uint64_t ended = clamp(cycle + 1, g->f.outer * pass, last) +
                           clamp(cycle + 1, (g->f.outer - 1) * pass + last, all - last);
    return begun - ended;
}

orr_code ss_v1_lanes(const orr__systolic *s,
                     const ss_v1_visitor *visitor,
                     ss_v1_lane_counts *out,
                     orr_error *err)
{
    const ss_os_folds g = ss_v1_os(s);
    machine m = {.s = s, .folds = g.f.outer, .count = orr_min_u64(s->R, s->E), .visitor = visitor};
    m.lanes = orr_alloc(m.count, sizeof *m.lanes);
    *out = (ss_v1_lane_counts){0};
    if (!m.lanes)
        return orr_no_memory(err);
    for (uint64_t r = 0; r < m.count; r++)
        m.lanes[r] = (lane){.offset = -(int64_t)r, .pixel = r};
    do {
        m.read = 0;
        for (uint64_t r = 0; r < m.count; r++)
            step_lane(&m, r);
        release_one(&m);
        if (visitor->cycle)
            visitor->cycle(visitor->ctx, m.cycle);
        const uint64_t busy = m.read * ss_v1_columns(&g, s, m.cycle);
        out->words += m.read;
        out->share += (double)busy / (double)(s->R * s->C);
        m.cycle++;
    } while (m.cycle < g.column_end || !is_done(&m));
    out->cycles = m.cycle;
    orr_free(m.lanes);
    return ORR_OK;
}

/* ==== v1's output buffer (scale-sim.md 4.2), one buffer at a time instead of one word.
 *
 * Outputs are written in rows, one per cycle.  Rows of one fold share no address; folds of the same
 * column repeat the same rows, so the number of rows since the last swap determines what the
 * filling half holds.  Row t has width(t) words; sums of widths have a closed form, so bisection
 * finds the row that fills the half.  Cost: swaps times log(rows); input stationary layers with
 * stacked windows add the rows of one fold. */

typedef struct drain {
    uint64_t size;
    uint64_t filling, draining; /* words */
    int64_t swapped, now;
    bool has_begun;
    orr_systolic_traffic *out;
} drain;

enum { LAST_RATE = 10 };

/* Write `words` from this cycle on; returns the cycle after the last. */
static int64_t put(drain *d, uint64_t words, int64_t cycle, uint64_t rate)
{
    if (!d->has_begun)
        d->out->first = cycle;
    d->has_begun = true;
    const int64_t end = cycle + (int64_t)orr_div_up(words, rate);
    d->out->last = end - 1;
    d->out->words += words;
    const double most = (double)orr_min_u64(rate, words);
    d->out->peak = d->out->peak > most ? d->out->peak : most;
    return end;
}

/* This cycle's row of `row` words does not fit: swap the halves. */
static void swap(drain *d, int64_t cycle, uint64_t row)
{
    if (d->draining)
        put(d, d->draining, d->swapped + 1,
            orr_div_up(d->draining, (uint64_t)(cycle - d->swapped)));
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

/* `blocks` full blocks of `columns` columns and one of `last`, side by side, each column one row
 * after its left neighbour; without skew, `rows` rows of `flat` words. */
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

/* Cycle of a row of a repeat. */
typedef int64_t (*row_cycle)(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row);

typedef struct column_rows {
    const orr__systolic *s;
    shape shape;
    uint64_t v, repeats;
    row_cycle at;
    uint64_t row, repeat; /* the next one */
    uint64_t known;       /* rows of this column added to the filling half since the swap */
} column_rows;

/* The first row of this repeat from c->row on that fills the half; shape.rows: none.  Rows that are
 * held already add nothing, so each is checked by itself. */
static uint64_t filling_row(const column_rows *c, const drain *d, uint64_t behind, bool is_held)
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

/* Where widths reach their maximum. */
static uint64_t top_row(const shape *s)
{
    return s->flat ? 0 : orr_min_u64(s->blocks ? s->columns : s->last, s->steps) - 1;
}

/* A row that is already held: the first one too wide to fit is on the rising side, or the row
 * itself. */
static uint64_t held_filling_row(const column_rows *c, const drain *d)
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

static void next_repeat(column_rows *c)
{
    c->row = 0;
    c->repeat++;
}

/* Add rows [c->row, to), which do not fill the half; those beyond `known` are new. */
static void take_rows(column_rows *c, drain *d, uint64_t to, bool is_held)
{
    if (to == c->row)
        return;
    if (!is_held)
        d->filling += rows_before(&c->shape, to) - rows_before(&c->shape, c->row);
    c->known += to - c->row;
    d->now = c->at(c->s, c->v, c->repeat, to - 1);
    c->row = to;
}

static void swap_at(column_rows *c, drain *d, uint64_t row)
{
    swap(d, c->at(c->s, c->v, c->repeat, row), width(&c->shape, row));
    c->known = 1;
    c->row = row + 1;
}

/* No row of this column is new, and none can fill the half. */
static bool is_over(const column_rows *c, const drain *d)
{
    return c->known >= c->shape.rows && d->filling + width(&c->shape, top_row(&c->shape)) < d->size;
}

static void run_column(column_rows *c, drain *d)
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
        /* New rows end where the half has seen all of them. */
        const uint64_t behind = is_held ? rows : orr_min_u64(rows, c->row + (rows - c->known));
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
    return (int64_t)(ss_v1_os_write(s, v, row / s->R) + row % s->R);
}

static void drain_os(const orr__systolic *s, drain *d)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    for (uint64_t v = 0; v < f.outer; v++) {
        column_rows c = {.s = s, .v = v, .repeats = 1, .at = os_row};
        c.shape = (shape){.rows = s->E, .flat = orr__fold_columns(&f, v)};
        run_column(&c, d);
    }
}

static int64_t folded_row(const orr__systolic *s, uint64_t v, uint64_t repeat, uint64_t row)
{
    const uint64_t across = s->array->dataflow == ORR_DATAFLOW_WS ? s->N : s->E;
    const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
    const uint64_t columns = orr__fold_columns(&f, v);
    const uint64_t full =
        (f.inner - 1) * ss_v1_fold(s, f.rows, f.columns) + ss_v1_fold(s, f.last_rows, f.columns);
    const uint64_t start = v * full + repeat * ss_v1_fold(s, f.rows, columns);
    const uint64_t lag = s->array->dataflow == ORR_DATAFLOW_WS ? columns : 0;
    return (int64_t)(start + 2 * orr__fold_rows(&f, repeat) + lag + row);
}

static void run_folded(const orr__systolic *s, drain *d)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const orr__folds f = orr__folds_of(s->T, is_ws ? s->N : s->E, s->R, s->C);
    for (uint64_t v = 0; v < f.outer; v++) {
        const uint64_t columns = orr__fold_columns(&f, v);
        column_rows c = {.s = s, .v = v, .repeats = f.inner, .at = folded_row};
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
    const uint64_t mapped = orr_min_u64(width_all, across - v * width_all);
    const uint64_t stacked = orr_div_up(mapped, s->C);
    const uint64_t start = v * ss_v1_stacked(s, orr_min_u64(across, width_all));
    const uint64_t lag = is_ws ? (stacked > 1 ? s->C : mapped) : 0;
    return (int64_t)(start + (stacked + 1) * s->T + lag + row);
}

/* The last fold of an input stationary layer counts its pixels from C * v * (its own windows per
 * column), so it may overwrite outputs of earlier folds (scale-sim.md 4).  Blocks of C pixels keep
 * their columns, so block b of row t is held if its fold came after the swap, or swapped in a row
 * not after t. */
static void run_rewriting_fold(
    const orr__systolic *s, drain *d, column_rows *c, uint64_t swap_fold, uint64_t swap_row)
{
    const uint64_t stack = s->R / s->T, mapped = c->shape.blocks * s->C + c->shape.last;
    const uint64_t blocks = orr_div_up(mapped, s->C);
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
            const uint64_t columns = orr_min_u64(s->C, mapped - i * s->C);
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
    const uint64_t width_all = s->R / s->T * s->C, folds = orr_div_up(across, width_all);
    uint64_t swap_fold = 0, swap_row = 0;
    for (uint64_t v = 0; v < folds; v++) {
        const uint64_t mapped = orr_min_u64(width_all, across - v * width_all);
        const uint64_t blocks = orr_div_up(mapped, s->C) - 1;
        column_rows c = {.s = s, .v = v, .repeats = 1, .at = stacked_row};
        const int64_t swapped = d->swapped;
        if (is_ws)
            c.shape = (shape){.rows = s->E, .flat = mapped};
        else
            c.shape = (shape){.rows = s->N + orr_min_u64(s->C, mapped),
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

static void ss_v1_writes(const orr__systolic *s, orr_systolic_traffic *out)
{
    drain d = {.size = s->array->ofmap_words, .out = out};
    if (s->array->dataflow == ORR_DATAFLOW_OS)
        drain_os(s, &d);
    else if (s->T > s->R)
        run_folded(s, &d);
    else
        run_stacked(s, &d);
    finish(&d);
}

/* ---- cycles: scale-sim.md 2 ---- */

ss_os_folds ss_v1_os(const orr__systolic *s)
{
    ss_os_folds g = {.f = orr__folds_of(s->E, s->N, s->R, s->C)};
    /* The reference rounds late here: unrounded sizes, rounded once at the end. */
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

/* The closed form at the end of scale-sim.md 2.1.  Differences may be negative, so they are moved
 * to the other side. */
static orr__wide os_write_end(const orr__systolic *s, const orr__folds *f)
{
    const uint64_t tail = f->last_rows;
    const orr__wide column = (orr__wide)(f->inner - 1) * orr_max_u64(s->T, s->R);
    orr__wide start = (orr__wide)s->T + orr_min_u64(s->C, s->N) - 1 + column;
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
    const ss_os_folds g = ss_v1_os(s);
    const orr__wide read = s->T == 1 ? g.column_end : wide_max(g.column_end, g.row_end);
    return wide_max(read, os_write_end(s, &g.f));
}

/* Pixels whose ifmap words are read if the window is folded; also rounded late. */
uint64_t ss_v1_streamed(const orr__systolic *s)
{
    return (uint64_t)(s->exact_h * s->exact_w);
}

uint64_t ss_v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns)
{
    if (s->array->dataflow == ORR_DATAFLOW_WS)
        return rows + orr_max_u64(ss_v1_streamed(s), columns + rows + s->E);
    return 2 * rows + s->N + columns - 1;
}

static orr__wide v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns)
{
    return ss_v1_fold(s, rows, columns);
}

/* Windows that fit the array's height: several are stacked in a column. */
uint64_t ss_v1_stacked(const orr__systolic *s, uint64_t mapped)
{
    const uint64_t stacked = orr_div_up(mapped, s->C);
    const uint64_t load = (stacked + 1) * s->T;
    if (s->array->dataflow == ORR_DATAFLOW_WS)
        return load + (stacked > 1 ? s->C : mapped) + s->E;
    return load + s->N + orr_min_u64(s->C, mapped) - 1;
}

static orr__wide ss_v1_cycles(const orr__systolic *s)
{
    if (s->array->dataflow == ORR_DATAFLOW_OS)
        return v1_os_cycles(s);
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t across = is_ws ? s->N : s->E;
    if (s->T > s->R) {
        const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
        return orr__sum_folds(s, &f, v1_fold);
    }
    const uint64_t width = s->R / s->T * s->C;
    const uint64_t folds = orr_div_up(across, width);
    return (folds - 1) * (orr__wide)ss_v1_stacked(s, width) +
           ss_v1_stacked(s, across - (folds - 1) * width);
}

/* ---- read buffers (scale-sim.md 4.1) ---- */

typedef struct refill {
    orr_systolic_traffic *out;
    uint64_t size;
    bool has_from, has_begun, is_broken;
    int64_t from, to; /* cycles in which the current contents are fetched */
} refill;

static bool charge(refill *r, uint64_t words)
{
    if (!r->has_from)
        r->from = r->to - (int64_t)orr_div_up(words, FIRST_RATE);
    r->has_from = true;
    if (r->to <= r->from) {
        r->is_broken = true;
        return false;
    }
    const uint64_t rate = orr_div_up(words, (uint64_t)(r->to - r->from));
    if (!r->has_begun)
        r->out->first = r->from;
    r->has_begun = true;
    r->out->last = r->from + (int64_t)orr_div_up(words, rate) - 1;
    r->out->words += words;
    const double most = (double)orr_min_u64(rate, words);
    r->out->peak = r->out->peak > most ? r->out->peak : most;
    return true;
}

static bool refill_emptied(void *ctx, uint64_t cycle)
{
    refill *r = ctx;
    if (!charge(r, r->size))
        return false;
    r->from = r->to;
    r->to = (int64_t)cycle;
    return true;
}

typedef struct buffers {
    refill refills[2];
    ss_fill_rules rules[2];
} buffers;

/* The reference distinguishes the operands by address only. */
static void set_up(buffers *b, const orr__systolic *s, orr_systolic_result *out)
{
    const orr_systolic_array *a = s->array;
    const uint64_t from[] = {a->ifmap_offset, a->filter_offset, a->ofmap_offset};
    const uint64_t sizes[] = {a->ifmap_words, a->filter_words};
    for (int i = 0; i < 2; i++) {
        b->refills[i] = (refill){.out = &out->dram[i], .size = sizes[i]};
        b->rules[i] = (ss_fill_rules){.size = sizes[i],
                                      .low = from[i],
                                      .high = from[i + 1],
                                      .ctx = &b->refills[i],
                                      .emptied = refill_emptied};
    }
}

static orr_code settle(buffers *b, int i, uint64_t held, orr_error *err)
{
    static const char *const names[] = {"ifmap", "filter"};
    refill *r = &b->refills[i];
    if (!r->is_broken && held)
        (void)charge(r, held);
    if (r->is_broken)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v1 divides by zero here: the %s buffer, %llu words, is filled "
                        "twice in one cycle",
                        names[i], (unsigned long long)r->size);
    if (i == 0 && !r->has_begun)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v1 fails here: no ifmap address is between IfmapOffset and "
                        "FilterOffset");
    return ORR_OK;
}

/* If no filter address is between the offsets, the reference reports the ifmap's cycles again. */
static void borrow_cycles(orr_systolic_result *out)
{
    if (out->dram[ORR_OPERAND_FILTER].words)
        return;
    out->dram[ORR_OPERAND_FILTER].first = out->dram[ORR_OPERAND_IFMAP].first;
    out->dram[ORR_OPERAND_FILTER].last = out->dram[ORR_OPERAND_IFMAP].last;
}

static orr_code regular_reads(const orr__systolic *s,
                              const uint64_t *walk,
                              orr_systolic_result *out,
                              orr_error *err)
{
    ss_stream ifmap, filter;
    ss_fill_counts counts;
    orr_code code = ORR_OK;
    buffers b;
    set_up(&b, s, out);
    ss_streams_v1(s, walk, &ifmap, &filter);
    for (int i = 0; i < 2 && !code; i++) {
        code = ss_fill_run(&b.rules[i], &ifmap, &filter, &counts, err);
        if (!code)
            code = settle(&b, i, counts.held, err);
    }
    return code;
}

/* ---- output stationary ---- */

uint64_t ss_v1_os_write(const orr__systolic *s, uint64_t v, uint64_t h)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    const uint64_t pitch = orr_max_u64(s->T, s->R), tail = f.last_rows;
    const uint64_t column = (f.inner - 1) * pitch;
    const uint64_t next = orr_max_u64(s->T + 1 > tail ? s->T + 1 - tail : 0, tail);
    uint64_t start = s->T + orr_min_u64(s->C, s->N) - 1 + h * pitch;
    if (v + 1 < f.outer || v == 0)
        return start + v * (column + next);
    const uint64_t lost = tail + s->C - f.last_columns;
    start += (v - 1) * (column + next);
    return start + column + orr_max_u64(s->T + 1 > lost ? s->T + 1 - lost : 0, tail);
}

static uint64_t ramp(uint64_t lanes, uint64_t cycle, uint64_t delay, uint64_t length)
{
    const ss_stream one = {.is_skewed = true, .objects_are_lanes = true};
    const ss_phase p = {.start = delay, .objects = lanes, .ks = length};
    return lanes ? ss_phase_before(&one, &p, cycle) : 0;
}

/* Ifmap words read before this cycle. */
static uint64_t os_words_before(const orr__systolic *s, const orr__folds *f, uint64_t cycle)
{
    const uint64_t pass = f->inner * s->T, lanes = orr_min_u64(s->R, s->E), tail = f->last_rows;
    const uint64_t whole = pass + lanes - 1;
    const uint64_t over = cycle < whole ? 0 : orr_min_u64(f->outer, (cycle - whole) / pass + 1);
    uint64_t words = over * s->E * s->T;
    for (uint64_t v = over; v < f->outer && v * pass < cycle; v++)
        words += ramp(tail, cycle, v * pass, pass) +
                 ramp(lanes - tail, cycle, v * pass + tail, pass - s->T);
    return words;
}

/* A processing element is busy while both its column and its row stream: per column, the rows'
 * words during its stream. */
static orr__wide os_busy(const orr__systolic *s, const ss_os_folds *g)
{
    const uint64_t pass = g->repeats * s->T;
    orr__wide busy = 0;
    for (uint64_t c = 0; c < orr_min_u64(s->C, s->N); c++) {
        const uint64_t folds = g->f.outer - (c >= g->f.last_columns);
        busy += os_words_before(s, &g->f, c + folds * pass) - os_words_before(s, &g->f, c);
    }
    return busy;
}

/* Streaming rows form two groups: those with a pixel in the last row fold stream on from column to
 * column, the others pause during it.  This is one row of the second group, cycle by cycle. */
typedef struct pausing {
    uint64_t pass, busy; /* cycles per column fold; those with a pixel */
    uint64_t folds;
    uint64_t phase, fold; /* the current ones */
} pausing;

static bool is_streaming(pausing *p)
{
    const bool is = p->fold < p->folds && p->phase < p->busy;
    if (++p->phase == p->pass) {
        p->phase = 0;
        p->fold++;
    }
    return is;
}

/* Utilization of the array summed over all cycles, in the reference's order.  Of the pausing rows
 * the first enters and the last leaves. */
static double os_share(const orr__systolic *s, const ss_os_folds *g, uint64_t cycles)
{
    const uint64_t lanes = orr_min_u64(s->R, s->E), tail = g->f.last_rows;
    pausing first = {g->f.inner * s->T, (g->f.inner - 1) * s->T, g->f.outer, 0, 0}, last = first;
    const uint64_t all = g->f.outer * first.pass;
    uint64_t pausing_rows = 0;
    double share = 0;
    for (uint64_t t = 0; t < cycles; t++) {
        const uint64_t begun = orr_min_u64(t + 1, tail);
        const uint64_t ended = t + 1 > all ? orr_min_u64(t + 1 - all, tail) : 0;
        if (lanes > tail && t >= tail)
            pausing_rows += is_streaming(&first);
        if (lanes > tail && t >= lanes)
            pausing_rows -= is_streaming(&last);
        const uint64_t busy = (begun - ended + pausing_rows) * ss_v1_columns(g, s, t);
        share += (double)busy / (double)(s->R * s->C);
    }
    return share;
}

/* The words of degenerate layers go through both buffers, each of which takes its own addresses;
 * within a cycle the filter's words follow the ifmap's. */
typedef struct pouring {
    ss_fill *fills[2];
    const ss_stream *filter; /* NULL: it has a buffer of its own */
    uint64_t cursor, cycle;
} pouring;

static void pour_word(void *ctx, uint64_t cycle, uint64_t row, uint64_t address)
{
    pouring *p = ctx;
    (void)row;
    for (int i = 0; i < 2; i++)
        (void)ss_fill_take(p->fills[i], cycle, address);
}

static void pour_filter(void *ctx, uint64_t address, uint64_t count)
{
    pouring *p = ctx;
    for (uint64_t i = 0; i < count; i++)
        pour_word(p, p->cycle, 0, address + i);
}

static void pour_cycle(void *ctx, uint64_t cycle)
{
    pouring *p = ctx;
    p->cycle = cycle;
    if (p->filter)
        ss_stream_cycle(p->filter, cycle, &p->cursor, pour_filter, p);
}

static orr_code os_degenerate(const orr__systolic *s,
                              ss_v1_lane_counts *lanes,
                              orr_systolic_result *out,
                              orr_error *err)
{
    ss_stream ifmap, filter;
    ss_fill_counts counts[2] = {{0}};
    pouring p = {{NULL, NULL}, NULL, 0, 0};
    const ss_v1_visitor visitor = {&p, pour_word, pour_cycle};
    orr_code code = ORR_OK;
    buffers b;
    set_up(&b, s, out);
    ss_streams_v1(s, NULL, &ifmap, &filter);
    p.filter = ifmap.end > s->array->filter_offset ? &filter : NULL;
    for (int i = 0; i < 2 && !code; i++) {
        ss_fill_rules mine = b.rules[i];
        mine.high = orr_min_u64(mine.high, orr_max_u64(ifmap.end, i && p.filter ? filter.end : 0));
        code = ss_fill_open(&mine, &p.fills[i], err);
    }
    if (!code)
        code = ss_v1_lanes(s, &visitor, lanes, err);
    for (int i = 0; i < 2; i++)
        if (p.fills[i])
            counts[i] = ss_fill_close(p.fills[i]);
    if (!code && (counts[0].has_failed || counts[1].has_failed))
        code = orr_no_memory(err);
    if (!code && !p.filter)
        code = ss_fill_run(&b.rules[1], NULL, &filter, &counts[1], err);
    for (int i = 0; i < 2 && !code; i++)
        code = settle(&b, i, counts[i].held, err);
    return code;
}

static orr_code run_os(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const ss_os_folds g = ss_v1_os(s);
    const uint64_t write_start = ss_v1_os_write(s, 0, 0);
    const uint64_t write_last = ss_v1_os_write(s, g.f.outer - 1, g.f.inner - 1);
    ss_v1_lane_counts lanes;
    orr_code code;
    if (ss_v1_is_degenerate(s)) {
        code = os_degenerate(s, &lanes, out, err);
    } else {
        lanes.cycles = (uint64_t)(g.column_end > g.row_end ? g.column_end : g.row_end);
        lanes.words = g.f.outer * s->E * s->T;
        lanes.share = lanes.cycles > SS_MOST_TERMS ? (double)os_busy(s, &g) / (double)(s->R * s->C)
                                                   : os_share(s, &g, lanes.cycles);
        code = regular_reads(s, NULL, out, err);
    }
    if (code)
        return code;
    out->sram[ORR_OPERAND_IFMAP].words = lanes.words;
    out->sram[ORR_OPERAND_FILTER].words = s->N * g.repeats * s->T;
    out->sram_read.words = lanes.words + s->N * g.repeats * s->T + lanes.cycles;
    out->sram_read.last = (int64_t)lanes.cycles - 1;
    out->sram_read.peak = (double)(s->R + s->C);
    out->sram[ORR_OPERAND_OFMAP] = (orr_systolic_traffic){
        .words = s->E * s->N,
        .first = (int64_t)write_start,
        .last = (int64_t)(write_last + g.f.last_rows - 1),
        .peak = (double)orr_min_u64(s->C, s->N),
    };
    out->folds = g.f.inner * g.f.outer;
    out->utilisation = lanes.share / (double)lanes.cycles * 100;
    return ORR_OK;
}

/* ---- weights or inputs stationary ---- */

/* The reference steps by the stride and starts a new row when the unrounded width says so. */
orr_code ss_v1_walk(const orr__systolic *s, uint64_t **out, orr_error *err)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t line = l->ifmap_width * l->channels, count = ss_v1_streamed(s);
    *out = NULL;
    if (s->array->dataflow != ORR_DATAFLOW_WS || s->T <= s->R || s->exact_w == floor(s->exact_w))
        return ORR_OK;
    uint64_t *walk = orr_alloc(count, sizeof *walk), base = 0;
    if (!walk)
        return orr_no_memory(err);
    for (uint64_t e = 0; e < count; e++) {
        walk[e] = base;
        if (fmod((double)(e + 1), s->exact_w) == 0)
            base = (base / line + l->stride_height) * line;
        else
            base += l->stride_width * l->channels;
    }
    *out = walk;
    return ORR_OK;
}

/* Slots of a column fold in the skewed output. */
static uint64_t skewed_slots(const orr__systolic *s, uint64_t mapped)
{
    return (s->N + orr_min_u64(s->C, mapped)) * mapped; /* blanks are counted (scale-sim.md 3.3) */
}

/* A fold's utilization of the array, weighted by its cycles. */
static double fold_share(const orr__systolic *s, uint64_t used, uint64_t cycles)
{
    return (double)used / (double)(s->R * s->C) * (double)cycles;
}

/* Add a column fold's utilization to `sum`, fold by fold or at once. */
static double add_column(
    const orr__systolic *s, const orr__folds *f, uint64_t columns, bool at_once, double sum)
{
    const double full = fold_share(s, s->R * columns, ss_v1_fold(s, s->R, columns));
    if (at_once)
        sum += (double)(f->inner - 1) * full;
    for (uint64_t h = 0; h + 1 < f->inner && !at_once; h++)
        sum += full;
    return sum + fold_share(s, f->last_rows * columns, ss_v1_fold(s, f->last_rows, columns));
}

static double folded_share(const orr__systolic *s, const orr__folds *f)
{
    double sum = 0;
    if (f->inner > SS_MOST_TERMS / f->outer)
        return (double)(f->outer - 1) * add_column(s, f, f->columns, true, 0) +
               add_column(s, f, f->last_columns, true, 0);
    for (uint64_t v = 0; v < f->outer; v++)
        sum = add_column(s, f, orr__fold_columns(f, v), false, sum);
    return sum;
}

static double stacked_share(const orr__systolic *s, uint64_t folds, uint64_t width, uint64_t last)
{
    const double full = fold_share(s, s->T * width, ss_v1_stacked(s, width));
    double sum = 0;
    if (folds > SS_MOST_TERMS)
        sum = (double)(folds - 1) * full;
    else
        for (uint64_t v = 0; v + 1 < folds; v++)
            sum += full;
    return sum + fold_share(s, s->T * last, ss_v1_stacked(s, last));
}

static void count_folded(const orr__systolic *s, orr_systolic_result *out)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t steps = is_ws ? ss_v1_streamed(s) : s->N;
    const uint64_t across = is_ws ? s->N : s->E;
    const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
    const uint64_t loaded = across * s->T, streamed = steps * s->T * f.outer;
    const uint64_t rows = s->T * f.outer + steps * f.inner * f.outer;
    const uint64_t start = (uint64_t)ss_v1_cycles(s) - ss_v1_fold(s, f.last_rows, f.last_columns);
    const uint64_t lag = is_ws ? f.last_columns : 0;
    const uint64_t last = start + 2 * f.last_rows + lag;
    orr_systolic_traffic *w = &out->sram[ORR_OPERAND_OFMAP];
    out->sram[ORR_OPERAND_IFMAP].words = is_ws ? streamed : loaded;
    out->sram[ORR_OPERAND_FILTER].words = is_ws ? loaded : streamed;
    out->sram_read.words = loaded + streamed + rows;
    out->sram_read.last = (int64_t)(start + f.last_rows + steps - 1);
    out->sram_read.peak = (double)(s->R + s->C);
    out->folds = f.inner * f.outer;
    w->words =
        is_ws ? s->E * s->N * f.inner
              : f.inner * ((f.outer - 1) * skewed_slots(s, s->C) + skewed_slots(s, f.last_columns));
    w->first = (int64_t)(2 * s->R + (is_ws ? orr_min_u64(s->C, across) : 0));
    w->last = (int64_t)(last + (is_ws ? s->E : s->N + f.last_columns) - 1);
    w->peak = (double)orr_min_u64(s->C, across);
    out->utilisation = folded_share(s, &f);
}

static void count_stacked(const orr__systolic *s, orr_systolic_result *out)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t stack = s->R / s->T, width = stack * s->C;
    const uint64_t across = is_ws ? s->N : s->E, steps = is_ws ? s->E : s->N;
    const uint64_t folds = orr_div_up(across, width), first = orr_min_u64(across, width);
    const uint64_t mapped = across - (folds - 1) * width;
    const uint64_t stacked = orr_div_up(mapped, s->C), before = orr_div_up(first, s->C);
    const uint64_t windows = (folds - 1) * stack + stacked;
    const uint64_t loaded = across * s->T, streamed = steps * s->T * windows;
    const uint64_t start = (uint64_t)ss_v1_cycles(s) - ss_v1_stacked(s, mapped);
    orr_systolic_traffic *w = &out->sram[ORR_OPERAND_OFMAP];
    const uint64_t first_lag = !is_ws ? 0 : before > 1 ? s->C : first;
    const uint64_t last_lag = !is_ws ? 0 : stacked > 1 ? s->C : mapped;
    out->sram[ORR_OPERAND_IFMAP].words = is_ws ? streamed : loaded;
    out->sram[ORR_OPERAND_FILTER].words = is_ws ? loaded : streamed;
    out->sram_read.words = loaded + streamed + windows * s->T + folds * steps;
    out->sram_read.last = (int64_t)(start + stacked * s->T + steps - 1);
    out->sram_read.peak = (double)(s->R + (is_ws ? 2 : 1) * s->C);
    out->folds = folds;
    w->words = is_ws ? s->E * s->N : (folds - 1) * skewed_slots(s, width) + skewed_slots(s, mapped);
    w->first = (int64_t)((before + 1) * s->T + first_lag);
    w->last = (int64_t)(start + (stacked + 1) * s->T + last_lag +
                        (is_ws ? s->E : s->N + orr_min_u64(s->C, mapped)) - 1);
    w->peak = (double)first;
    out->utilisation = stacked_share(s, folds, width, mapped);
}

static orr_code run_fixed(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t *walk;
    orr_code code = ss_v1_walk(s, &walk, err);
    if (code)
        return code;
    code = regular_reads(s, walk, out, err);
    orr_free(walk);
    if (s->T > s->R)
        count_folded(s, out);
    else
        count_stacked(s, out);
    out->utilisation = out->utilisation / (double)(uint64_t)ss_v1_cycles(s) * 100;
    return code;
}

/* ---- entry points ---- */

/* All averages are over the same cycles (scale-sim.md 4.3). */
static void average(orr_systolic_result *out)
{
    const int64_t last[] = {out->dram[ORR_OPERAND_OFMAP].last, out->sram[ORR_OPERAND_OFMAP].last,
                            out->sram_read.last};
    int64_t end = last[0], begin = out->dram[ORR_OPERAND_IFMAP].first;
    for (int i = 1; i < 3; i++)
        end = last[i] > end ? last[i] : end;
    if (out->dram[ORR_OPERAND_FILTER].first < begin)
        begin = out->dram[ORR_OPERAND_FILTER].first;
    const double cycles = (double)(end - begin);
    for (int i = 0; i < ORR_OPERANDS; i++) {
        out->dram[i].average = (double)out->dram[i].words / cycles;
        out->sram[i].average = (double)out->sram[i].words / cycles;
    }
    out->sram_read.average = (double)out->sram_read.words / cycles;
}

static orr_code ss_v1_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const orr_code code =
        s->array->dataflow == ORR_DATAFLOW_OS ? run_os(s, out, err) : run_fixed(s, out, err);
    if (code)
        return code;
    out->cycles = (uint64_t)ss_v1_cycles(s);
    out->busy = out->utilisation;
    ss_v1_writes(s, &out->dram[ORR_OPERAND_OFMAP]);
    borrow_cycles(out);
    average(out);
    return ORR_OK;
}

const orr_rules_systolic orr__scale_sim_v1 = {
    .name = "v1",
    .size = ORR__SIZE_DOWN,   /* scale-sim.md 2 */
    .has_one_stride = true,   /* scale-sim.md 1 */
    .has_no_bandwidth = true, /* scale-sim.md 4 */
    .least_words = 1,
    .cycles = ss_v1_cycles,
    .run = ss_v1_run,
    .rows = ORR__ROWS_OF_NINE, /* scale-sim.md 5 */
    .keeps_raw_names = true,
    .has_no_depthwise = true,
    .write = ss_v1_write,
    .check_names = ss_v1_check_names,
    .write_traces = ss_v1_write_traces,
};
