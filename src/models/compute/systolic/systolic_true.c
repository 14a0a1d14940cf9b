/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_true.c - our rules: exact counts of a systolic array, word by word
 * (docs/design/systolic.md).
 *
 * Cycles are a closed form; memory is simulated tile by tile. */
#include "systolic_impl.h"

#include <math.h>

/* Cycles without stalls, in constant time, by our rules.
 *
 * The extents of a layer are cut into folds of the array's size.  All folds are full except those
 * of the last row and column, so a sum over all of them has four terms. */

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

/* ---- folds ---- */

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

/* Load the stationary operand, stream the rest, and wait until the last sum has crossed the
 * array. */
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

/* Number of ifmap words that some pixels need for some elements of their windows.
 *
 * A row of pixels and a row of the filter touch a row of the ifmap in a comb: one tooth per pixel,
 * all of the same length.  Most rows of the ifmap are touched by the same combs as the row one
 * stride above, so only the rows near the first and the last row of pixels, and one per offset
 * within a stride in between, are examined.
 *
 *     filter row, elements [i0, i1)     #####            #####
 *     pixels [x0, x1), a step apart     |<- step ------->|
 *
 * Cost: rows of the filter times combs per row; teeth are enumerated only if combs differ and have
 * gaps. */

/* Limit on steps of a layer, some seconds: rows of the ifmap, teeth, pieces and folds.  Layers of
 * real networks on buffers of real arrays take thousands; a ten-digit size in a file of 60 bytes
 * would take days. */
#define MOST_STEPS ((uint64_t)1 << 27)

static bool may_go_on(const orr__systolic *s)
{
    return !s->steps || ++*s->steps <= MOST_STEPS;
}

typedef struct comb {
    uint64_t x0, x1, i0, i1;
} comb;

typedef struct rectangle {
    const orr__systolic *s;
    uint64_t y0, y1; /* rows of pixels, both included */
    uint64_t f0, f1; /* rows of the filter, both included */
    uint64_t first_x, last_x, first_i, last_i;
    uint64_t row, step, width; /* words of a filter row, from pixel to pixel, of an ifmap row */
} rectangle;

enum { MOST_COMBS = 4 };

static comb comb_of(const rectangle *r, uint64_t y, uint64_t f)
{
    return (comb){y == r->y0 ? r->first_x : 0, y == r->y1 ? r->last_x + 1 : r->s->out_w,
                  f == r->f0 ? r->first_i : 0, f == r->f1 ? r->last_i + 1 : r->row};
}

static bool same_comb(const comb *a, const comb *b)
{
    return a->x0 == b->x0 && a->x1 == b->x1 && a->i0 == b->i0 && a->i1 == b->i1;
}

/* Words from `from` to `to` that are in the ifmap's row. */
static uint64_t clip(const rectangle *r, uint64_t from, uint64_t to)
{
    to = orr_min_u64(to, r->width);
    return to > from ? to - from : 0;
}

static uint64_t one_comb(const rectangle *r, const comb *c)
{
    const uint64_t last = (c->x1 - 1) * r->step;
    if (c->i1 - c->i0 >= r->step || c->x1 - c->x0 == 1)
        return clip(r, c->x0 * r->step + c->i0, last + c->i1);
    /* Only the last tooth can extend past the edge: the others end before it begins. */
    return (c->x1 - 1 - c->x0) * (c->i1 - c->i0) + clip(r, last + c->i0, last + c->i1);
}

/* Merges several combs by the start of their teeth. */
static uint64_t merge_combs(const rectangle *r, const comb *combs, unsigned count)
{
    uint64_t next[MOST_COMBS], words = 0, covered = 0;
    for (unsigned i = 0; i < count; i++)
        next[i] = combs[i].x0;
    for (;;) {
        unsigned best = count;
        for (unsigned i = 0; i < count; i++)
            if (next[i] < combs[i].x1 &&
                (best == count ||
                 next[i] * r->step + combs[i].i0 < next[best] * r->step + combs[best].i0))
                best = i;
        if (best == count || !may_go_on(r->s))
            return words;
        const comb *c = &combs[best];
        const bool is_solid = c->i1 - c->i0 >= r->step;
        const uint64_t from = orr_max_u64(next[best] * r->step + c->i0, covered);
        const uint64_t to = (is_solid ? c->x1 - 1 : next[best]) * r->step + c->i1;
        next[best] = is_solid ? c->x1 : next[best] + 1;
        words += clip(r, from, to);
        covered = orr_max_u64(covered, to);
    }
}

/* Words of ifmap row Y.  Only the first two and the last two rows of pixels touching it can have
 * different combs. */
static uint64_t row_words(const rectangle *r, uint64_t Y)
{
    const uint64_t stride = r->s->layer->stride_height;
    if (Y < r->f0)
        return 0;
    const uint64_t from = orr_max_u64(r->y0, Y > r->f1 ? orr_div_up(Y - r->f1, stride) : 0);
    const uint64_t to = orr_min_u64(r->y1, (Y - r->f0) / stride);
    comb combs[MOST_COMBS];
    unsigned count = 0;
    for (uint64_t y = from; y <= to; y = y == from + 1 && to > y + 1 ? to - 1 : y + 1) {
        const comb c = comb_of(r, y, Y - y * stride);
        unsigned i = 0;
        while (i < count && !same_comb(&combs[i], &c))
            i++;
        if (i == count)
            combs[count++] = c;
    }
    if (count == 1)
        return one_comb(r, &combs[0]);
    return count ? merge_combs(r, combs, count) : 0;
}

/* Rows [from, to) of the ifmap that are touched only by whole rows of pixels. */
static uint64_t inner_words(const rectangle *r, uint64_t from, uint64_t to)
{
    const uint64_t stride = r->s->layer->stride_height;
    uint64_t words = 0;
    if (stride <= r->f1 - r->f0 + 1) {
        for (uint64_t Y = from; Y < to && Y < from + stride && may_go_on(r->s); Y++)
            words += row_words(r, Y) * ((to - 1 - Y) / stride + 1);
        return words;
    }
    for (uint64_t f = r->f0; f <= r->f1 && may_go_on(r->s);
         f++) { /* rows in between are not touched at all */
        const uint64_t past = (from + stride - f % stride) % stride;
        const uint64_t Y = from + (past ? stride - past : 0);
        if (Y < to)
            words += row_words(r, Y) * ((to - 1 - Y) / stride + 1);
    }
    return words;
}

static uint64_t edge_words(const rectangle *r, uint64_t from, uint64_t to)
{
    uint64_t words = 0;
    for (uint64_t Y = from; Y < to && may_go_on(r->s); Y++)
        words += row_words(r, Y);
    return words;
}

uint64_t orr__systolic_distinct(
    const orr__systolic *s, uint64_t pixel, uint64_t pixels, uint64_t k, uint64_t ks)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t last = pixel + pixels - 1, row = l->filter_width * l->channels;
    const bool hangs = (s->out_h - 1) * l->stride_height + l->filter_height > l->ifmap_height ||
                       (s->out_w - 1) * l->stride_width + l->filter_width > l->ifmap_width;
    if (!hangs && !orr__systolic_overlaps(s))
        return pixels * ks;
    const rectangle r = {.s = s,
                         .y0 = pixel / s->out_w,
                         .y1 = last / s->out_w,
                         .f0 = k / row,
                         .f1 = (k + ks - 1) / row,
                         .first_x = pixel % s->out_w,
                         .last_x = last % s->out_w,
                         .first_i = k % row,
                         .last_i = (k + ks - 1) % row,
                         .row = row,
                         .step = l->stride_width * l->channels,
                         .width = l->ifmap_width * l->channels};
    const uint64_t top = r.y0 * l->stride_height + r.f0,
                   top_end = r.y0 * l->stride_height + r.f1 + 1;
    const uint64_t bottom = r.y1 * l->stride_height + r.f0;
    const uint64_t end = orr_min_u64(r.y1 * l->stride_height + r.f1 + 1, l->ifmap_height);
    if (top_end >= bottom)
        return edge_words(&r, top, end);
    const uint64_t inner_end = orr_min_u64(bottom, end);
    return edge_words(&r, top, orr_min_u64(top_end, end)) +
           (top_end < inner_end ? inner_words(&r, top_end, inner_end) : 0) +
           (bottom < end ? edge_words(&r, bottom, end) : 0);
}

/* Three double buffers between the array and memory (docs/design/systolic.md).
 *
 * A fold needs a tile of each operand: vectors, one per cycle.  A tile is fetched in pieces, each
 * as many vectors as fit half of the buffer; while the array uses one half the other is filled.  A
 * piece that is still in one of the halves is not fetched again; an operand that fits its buffer is
 * fetched whole, before the run.  Outputs go the other way.  Each buffer has its own port to
 * memory, of the given bandwidth.
 *
 *     array    |-- piece 0 --|-- piece 1 --|...stall...|-- piece 2 --|
 *     half 0   [   used      ][ piece 2 is fetched     ][   used
 *     half 1                 [   used      ][ piece 3 is fetched ....
 *
 * Times are counted as if there were no stalls (`F`, `start`, `end`) and shifted by the stalls so
 * far; when a piece is late, everything is late from then on. Cost: the pieces of the folds of a
 * few columns: as soon as two consecutive column folds end in the same state, the remaining ones
 * are computed together. */

typedef struct piece {
    uint64_t v, h, i; /* v is 0 if the words do not depend on the column fold */
} piece;

typedef struct half {
    bool is_filled;
    /* Its use ends in cycle `end`, not counting stalls; otherwise it has been free since `free`. */
    bool is_pending;
    piece id;
    uint64_t end, words;
    int64_t free;
} half;

typedef struct door {
    uint64_t half; /* words */
    bool is_whole; /* the operand fits */
    bool has_begun;
    int recent; /* the half used last */
    half halves[2];
    /* Free from this cycle on; without a bandwidth: when its last transfer had to be finished. */
    int64_t port;
    orr_systolic_traffic *out;
} door;

/* The part of one operand that one fold needs. */
typedef struct tile {
    uint64_t start; /* cycle of its first vector */
    uint64_t vectors, width;
    uint64_t per;  /* vectors per piece */
    uint64_t next; /* vector */
    piece id;
} tile;

/* A cycle without stalls, and where to store it with them. */
typedef struct mark {
    uint64_t cycle;
    int64_t *to;
} mark;

enum { MARKS = 2 * ORR_OPERANDS };

typedef struct memory {
    const orr__systolic *s;
    orr__folds f;
    uint64_t steps;
    bool is_os;
    double bandwidth;
    uint64_t F; /* the fold's first cycle */
    int64_t stalls;
    door doors[ORR_OPERANDS];
    mark marks[MARKS];
    uint64_t partial_reads;
} memory;

#define TOO_LONG ((int64_t)1 << 62)

/* ---- time ---- */

/* Cycles to move so many words through a port. */
static int64_t ticks(const memory *m, uint64_t words)
{
    const double cycles = ceil((double)words / m->bandwidth);
    return cycles < 1e15 ? (int64_t)cycles : (int64_t)1e15;
}

static void stall_until(memory *m, uint64_t start, int64_t ready)
{
    const int64_t late = ready - (int64_t)start;
    if (late > m->stalls)
        m->stalls = late < TOO_LONG ? late : TOO_LONG;
}

/* Advances to this cycle: uses that ended before it become known. */
static void come_to(memory *m, uint64_t cycle)
{
    for (int i = 0; i < MARKS; i++)
        if (m->marks[i].to && m->marks[i].cycle < cycle) {
            *m->marks[i].to = (int64_t)m->marks[i].cycle + m->stalls;
            m->marks[i].to = NULL;
        }
    for (int i = 0; i < 2 * ORR_OPERANDS; i++) {
        half *h = &m->doors[i / 2].halves[i % 2];
        if (!h->is_pending || h->end > cycle)
            continue;
        h->is_pending = false;
        h->free = (int64_t)h->end + m->stalls;
    }
}

static void need_rate(door *d, double rate)
{
    d->out->peak = d->out->peak > rate ? d->out->peak : rate;
}

static void note_transfer(door *d, int64_t first, int64_t last, uint64_t words, double rate)
{
    if (!d->has_begun)
        d->out->first = first;
    d->has_begun = true;
    d->out->last = last;
    d->out->words += words;
    need_rate(d, rate);
}

/* Words per cycle sufficient to move these between the cycle in which a half is free and `to`,
 * after earlier transfers. */
static double rate_for(const door *d, uint64_t words, const half *h, int64_t to)
{
    const int64_t from = d->port > h->free ? d->port : h->free;
    return (double)words / (double)(to > from ? to - from : 1);
}

static double rate_at(const memory *m, uint64_t words)
{
    return m->bandwidth < (double)words ? m->bandwidth : (double)words;
}

/* ---- operands ---- */

static bool same_piece(const piece *a, const piece *b)
{
    return a->v == b->v && a->h == b->h && a->i == b->i;
}

/* Fetches a piece into the half that was not used last. */
static void fetch(memory *m, door *d, half *h, uint64_t words, uint64_t start)
{
    if (m->bandwidth == 0) {
        const int64_t use = (int64_t)start - 1;
        note_transfer(d, d->has_begun ? use : -1, d->has_begun ? use : -1, words,
                      d->has_begun ? rate_for(d, words, h, (int64_t)start) : 0);
        d->port = (int64_t)start;
        return;
    }
    const int64_t begin = !d->has_begun ? -ticks(m, words) : d->port > h->free ? d->port : h->free;
    const int64_t done = begin + ticks(m, words);
    note_transfer(d, begin, done - 1, words, rate_at(m, words));
    d->port = done;
    stall_until(m, start, done);
}

static void use_input(
    memory *m, door *d, const piece *id, uint64_t words, uint64_t start, uint64_t end)
{
    come_to(m, start);
    int at = -1;
    for (int i = 0; i < 2; i++)
        if (d->halves[i].is_filled && same_piece(&d->halves[i].id, id))
            at = i;
    if (at < 0) {
        at = !d->recent;
        fetch(m, d, &d->halves[at], words, start);
    }
    d->halves[at] =
        (half){.is_filled = true, .is_pending = true, .id = *id, .end = end, .words = words};
    d->recent = at;
}

/* ---- outputs ---- */

/* Writes a half to memory; it must be done before `start` if the half is needed then. */
static void drain(memory *m, door *d, half *h, int64_t start)
{
    if (!h->is_filled)
        return;
    h->is_filled = false;
    if (m->bandwidth == 0) {
        note_transfer(d, h->free, start > h->free ? start - 1 : h->free, h->words,
                      rate_for(d, h->words, h, start));
        return;
    }
    const int64_t begin = d->port > h->free ? d->port : h->free;
    d->port = begin + ticks(m, h->words);
    note_transfer(d, begin, d->port - 1, h->words, rate_at(m, h->words));
}

static void use_output(
    memory *m, door *d, uint64_t words, uint64_t start, uint64_t end, bool is_sum)
{
    come_to(m, start);
    const int at = !d->recent;
    half *h = &d->halves[at];
    drain(m, d, h, (int64_t)start + m->stalls);
    if (is_sum) { /* partial sums that were written out are read back first */
        m->partial_reads += words;
        if (m->bandwidth > 0)
            d->port = (d->port > h->free ? d->port : h->free) + ticks(m, words);
        else
            need_rate(d, rate_for(d, h->words + words, h, (int64_t)start));
    }
    if (m->bandwidth > 0)
        stall_until(m, start, d->port);
    else
        d->port = (int64_t)start;
    *h = (half){.is_filled = true, .is_pending = true, .end = end, .words = words};
    d->recent = at;
}

/* ---- tiles ---- */

static uint64_t fold_cycles(const memory *m, uint64_t rows, uint64_t columns)
{
    return (m->is_os ? 0 : rows) + m->steps + rows + columns - 2;
}

/* Words of `count` vectors of a tile from vector `from` on. */
static uint64_t tile_words(
    const memory *m, int operand, uint64_t v, uint64_t h, uint64_t from, uint64_t count)
{
    const orr__systolic *s = m->s;
    const uint64_t rows = orr__fold_rows(&m->f, h), columns = orr__fold_columns(&m->f, v);
    const orr_dataflow flow = s->array->dataflow;
    if (operand == ORR_OPERAND_OFMAP)
        return count * columns;
    if (operand == ORR_OPERAND_FILTER)
        return count * (flow == ORR_DATAFLOW_IS ? rows : columns);
    if (flow == ORR_DATAFLOW_OS)
        return orr__systolic_distinct(s, h * s->R, rows, from, count);
    if (flow == ORR_DATAFLOW_WS)
        return orr__systolic_distinct(s, from, count, h * s->R, rows);
    return orr__systolic_distinct(s, v * s->C, columns, h * s->R + from, count);
}

static tile input_tile(const memory *m, int operand, uint64_t v, uint64_t h)
{
    const uint64_t rows = orr__fold_rows(&m->f, h), columns = orr__fold_columns(&m->f, v);
    const bool is_ifmap = operand == ORR_OPERAND_IFMAP;
    const bool is_loaded = !m->is_os && is_ifmap == (m->s->array->dataflow == ORR_DATAFLOW_IS);
    tile t = {.start = m->F, .vectors = m->steps};
    if (is_loaded)
        t.vectors = rows;
    else if (!m->is_os)
        t.start += rows;
    if (m->is_os)
        t.width = is_ifmap ? rows : columns;
    else
        t.width = is_loaded ? columns : rows;
    /* Loaded operands belong to one fold; streamed ones repeat in the next column; os filters stay
     * for one. */
    if (is_loaded)
        t.id = (piece){v, h, 0};
    else
        t.id = m->is_os && !is_ifmap ? (piece){v, 0, 0} : (piece){0, h, 0};
    const uint64_t room = m->doors[operand].half;
    t.per = tile_words(m, operand, v, h, 0, t.vectors) <= room ? t.vectors
                                                               : orr_max_u64(1, room / t.width);
    return t;
}

/* Sums of a column stay in the buffer while its folds accumulate, if they fit. */
static bool sums_stay(const memory *m, uint64_t v)
{
    return !m->is_os && m->f.inner > 1 &&
           m->steps * orr__fold_columns(&m->f, v) <= m->doors[ORR_OPERAND_OFMAP].half;
}

static tile output_tile(const memory *m, uint64_t v, uint64_t h)
{
    const uint64_t rows = orr__fold_rows(&m->f, h), columns = orr__fold_columns(&m->f, v);
    tile t = {.vectors = m->is_os ? rows : m->steps, .width = columns};
    t.start = m->F + columns - 1 + (m->is_os ? m->steps : 2 * rows);
    t.per = orr_min_u64(t.vectors, orr_max_u64(1, m->doors[ORR_OPERAND_OFMAP].half / columns));
    if (sums_stay(m, v))
        t.vectors = h == 0 ? t.vectors : 0;
    return t;
}

/* The column's last fold has written its last sum. */
static uint64_t column_end(const memory *m, uint64_t v)
{
    const uint64_t columns = orr__fold_columns(&m->f, v);
    return m->F + (m->f.inner - 1) * fold_cycles(m, m->f.rows, columns) +
           fold_cycles(m, m->f.last_rows, columns) + 1;
}

static void use_next(memory *m, int operand, tile *t, uint64_t v, uint64_t h)
{
    const uint64_t count = orr_min_u64(t->per, t->vectors - t->next);
    const uint64_t start = t->start + t->next, end = start + count;
    const uint64_t words = tile_words(m, operand, v, h, t->next, count);
    door *d = &m->doors[operand];
    if (operand != ORR_OPERAND_OFMAP)
        use_input(m, d, &t->id, words, start, end);
    else if (sums_stay(m, v))
        use_output(m, d, words, start, column_end(m, v), false);
    else
        use_output(m, d, words, start, end, !m->is_os && h > 0);
    t->next += count;
    t->id.i++;
}

/* All pieces of a fold, in the order of their first cycles. */
static void run_fold(memory *m, uint64_t v, uint64_t h)
{
    tile tiles[ORR_OPERANDS];
    for (int i = 0; i < ORR_OPERANDS; i++) {
        tiles[i] = (tile){0};
        if (!m->doors[i].is_whole)
            tiles[i] = i == ORR_OPERAND_OFMAP ? output_tile(m, v, h) : input_tile(m, i, v, h);
    }
    for (;;) {
        int first = -1;
        for (int i = 0; i < ORR_OPERANDS; i++) {
            const tile *t = &tiles[i];
            if (t->next < t->vectors &&
                (first < 0 || t->start + t->next < tiles[first].start + tiles[first].next))
                first = i;
        }
        if (first < 0 || !may_go_on(m->s))
            break;
        use_next(m, first, &tiles[first], v, h);
    }
    m->F += fold_cycles(m, orr__fold_rows(&m->f, h), orr__fold_columns(&m->f, v));
}

/* ---- repeating columns ---- */

/* Clamps a time so far in the past that it makes no difference. */
static int64_t forget(const memory *m, const door *d, int64_t time)
{
    const int64_t ago = time - (int64_t)m->F - m->stalls;
    if (m->bandwidth == 0)
        return ago;
    const int64_t most = 2 * ticks(m, orr_max_u64(d->half, orr_max_u64(m->s->R, m->s->C))) + 1;
    return ago < -most ? -most : ago;
}

static bool same_half(const memory *a, const memory *b, int door_at, int half_at, uint64_t later)
{
    const door *da = &a->doors[door_at], *db = &b->doors[door_at];
    const half *x = &da->halves[half_at], *y = &db->halves[half_at];
    if (x->is_filled != y->is_filled || x->is_pending != y->is_pending || x->words != y->words)
        return false;
    if (x->is_pending ? x->end - a->F != y->end - b->F
                      : forget(a, da, x->free) != forget(b, db, y->free))
        return false;
    return !x->is_filled || (x->id.h == y->id.h && x->id.i == y->id.i &&
                             (x->id.v == y->id.v || x->id.v + later == y->id.v));
}

/* Does b, `later` columns after a, continue as a did? */
static bool same_state(const memory *a, const memory *b, uint64_t later)
{
    for (int i = 0; i < ORR_OPERANDS; i++) {
        const door *x = &a->doors[i], *y = &b->doors[i];
        if (x->is_whole)
            continue;
        if (x->recent != y->recent || x->has_begun != y->has_begun ||
            (a->bandwidth > 0 && forget(a, x, x->port) != forget(b, y, y->port)))
            return false;
        if (!same_half(a, b, i, 0, later) || !same_half(a, b, i, 1, later))
            return false;
    }
    return true;
}

/* Adds `times` more columns like the one between a and m. */
static void repeat(memory *m, const memory *a, const orr_systolic_traffic *before, uint64_t times)
{
    const uint64_t cycles = (m->F - a->F) * times;
    const int64_t stalls = (m->stalls - a->stalls) * (int64_t)times;
    const int64_t shift = (int64_t)cycles + stalls;
    m->partial_reads += (m->partial_reads - a->partial_reads) * times;
    for (int i = 0; i < ORR_OPERANDS; i++) {
        door *d = &m->doors[i];
        if (d->is_whole)
            continue;
        d->out->words += (d->out->words - before[i].words) * times;
        d->port += shift;
        for (int k = 0; k < 2; k++) {
            d->halves[k].end += cycles;
            d->halves[k].free += shift;
            d->halves[k].id.v += d->halves[k].id.v ? times : 0;
        }
    }
    m->F += cycles;
    m->stalls += stalls;
}

/* Loaded inputs differ from column to column if their windows overlap. */
static bool columns_repeat(const memory *m)
{
    return m->s->array->dataflow != ORR_DATAFLOW_IS ||
           (!orr__systolic_overlaps(m->s) && !m->s->array->round_up);
}

static void run_columns(memory *m)
{
    orr_systolic_traffic before[ORR_OPERANDS] = {{0}};
    memory last = *m;
    bool may_repeat = columns_repeat(m) && m->f.outer > 4;
    for (uint64_t v = 0; v < m->f.outer; v++) {
        come_to(m, m->F);
        /* Column 0 has no number in `id`, and the last one is narrower. */
        if (may_repeat && v > 2 && v + 2 < m->f.outer && same_state(&last, m, 1)) {
            const uint64_t times = m->f.outer - 2 - v;
            repeat(m, &last, before, times);
            v += times;
            may_repeat = false;
        }
        last = *m;
        for (int i = 0; i < ORR_OPERANDS; i++)
            before[i] = *m->doors[i].out;
        for (uint64_t h = 0; h < m->f.inner && may_go_on(m->s); h++)
            run_fold(m, v, h);
        if (m->stalls >= TOO_LONG / 4 || *m->s->steps > MOST_STEPS)
            return;
    }
}

/* ---- everything ---- */

/* An operand fetched whole, or an output written at the end. */
static void move_whole(const memory *m, door *d, uint64_t words, int64_t start)
{
    const int64_t cycles = m->bandwidth > 0 ? ticks(m, words) : 1;
    const int64_t first = start < 0 ? -cycles : start;
    note_transfer(d, first, first + cycles - 1, words, m->bandwidth > 0 ? rate_at(m, words) : 0);
}

static void set_marks(memory *m, orr_systolic_result *out)
{
    const orr__folds *f = &m->f;
    const orr_dataflow flow = m->s->array->dataflow;
    const uint64_t rows = orr__fold_rows(f, 0), columns = orr__fold_columns(f, 0);
    const uint64_t end = (uint64_t)orr__systolic_true_cycles(m->s) - 1; /* the last result leaves */
    const uint64_t last = end - fold_cycles(m, f->last_rows, f->last_columns);
    const uint64_t load = m->is_os ? 0 : rows, last_load = m->is_os ? 0 : f->last_rows;
    const uint64_t streamed = last + last_load + m->steps - 1;
    const int stream = flow == ORR_DATAFLOW_IS ? ORR_OPERAND_FILTER : ORR_OPERAND_IFMAP;
    orr_systolic_traffic *moving = &out->sram[stream], *held = &out->sram[!stream];
    orr_systolic_traffic *ofmap = &out->sram[ORR_OPERAND_OFMAP];
    const mark marks[MARKS] = {
        {load, &moving->first},
        {streamed, &moving->last},
        {0, &held->first},
        {m->is_os ? streamed : last + last_load - 1, &held->last},
        {columns - 1 + (m->is_os ? m->steps : 2 * rows), &ofmap->first},
        {end, &ofmap->last},
    };
    for (int i = 0; i < MARKS; i++)
        m->marks[i] = marks[i];
}

static void finish_outputs(memory *m, door *d)
{
    const int64_t end = (int64_t)orr__systolic_true_cycles(m->s) + m->stalls;
    if (d->is_whole) {
        move_whole(m, d, m->s->E * m->s->N, end);
        return;
    }
    /* Nothing waits for these any more: without a bandwidth they need none. */
    const double peak = d->out->peak;
    half *older = &d->halves[!d->recent], *newer = &d->halves[d->recent];
    drain(m, d, older, older->free + 1);
    drain(m, d, newer, newer->free + 1);
    if (m->bandwidth == 0)
        d->out->peak = peak;
}

/* Stalls, first and last cycles, and memory traffic; false: too many steps. */
static bool true_memory(const orr__systolic *uncounted, orr_systolic_result *out)
{
    uint64_t steps = 0;
    orr__systolic counted = *uncounted;
    const orr__systolic *const s = &counted;
    counted.steps = &steps;
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words, s->array->ofmap_words};
    const uint64_t words[] = {orr__systolic_distinct(s, 0, s->E, 0, s->T), s->N * s->T,
                              s->E * s->N};
    memory m = {.s = s, .bandwidth = s->array->bandwidth};
    m.is_os = s->array->dataflow == ORR_DATAFLOW_OS;
    m.f = orr__systolic_true_folds(s, &m.steps);
    for (int i = 0; i < ORR_OPERANDS; i++) {
        door *d = &m.doors[i];
        d->out = &out->dram[i];
        d->is_whole = sizes[i] == 0 || words[i] <= sizes[i];
        d->half = orr_max_u64(1, sizes[i] / 2);
        d->recent = 1;
        if (d->is_whole && i != ORR_OPERAND_OFMAP)
            move_whole(&m, d, words[i], -1);
    }
    set_marks(&m, out);
    run_columns(&m);
    come_to(&m, UINT64_MAX);
    finish_outputs(&m, &m.doors[ORR_OPERAND_OFMAP]);
    out->stalls = (uint64_t)m.stalls;
    out->dram_partial_reads = m.partial_reads;
    return steps <= MOST_STEPS;
}

/* ---- words and cycles ---- */

/* Sum over output positions of the filter's extent inside the ifmap; only the last can extend past
 * the edge. */
static uint64_t covered(uint64_t places, uint64_t stride, uint64_t filter, uint64_t ifmap)
{
    const uint64_t last = (places - 1) * stride;
    return (places - 1) * filter + (last < ifmap ? orr_min_u64(filter, ifmap - last) : 0);
}

/* Words in all windows together. */
static uint64_t window_words(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    return covered(s->out_h, l->stride_height, l->filter_height, l->ifmap_height) *
           covered(s->out_w, l->stride_width, l->filter_width, l->ifmap_width) * l->channels;
}

static void count_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const orr_dataflow flow = s->array->dataflow;
    const uint64_t windows = window_words(s), weights = s->N * s->T;
    uint64_t *ifmap = &out->sram[ORR_OPERAND_IFMAP].words;
    uint64_t *filter = &out->sram[ORR_OPERAND_FILTER].words;
    uint64_t *ofmap = &out->sram[ORR_OPERAND_OFMAP].words;
    *ifmap = flow == ORR_DATAFLOW_IS ? windows : windows * f->outer;
    *filter = flow == ORR_DATAFLOW_OS   ? weights * f->inner
              : flow == ORR_DATAFLOW_WS ? weights
                                        : weights * f->outer;
    *ofmap = s->E * s->N * (flow == ORR_DATAFLOW_OS ? 1 : f->inner);
    out->sram_partial_reads = *ofmap - s->E * s->N;
    out->sram_read.words = *ifmap + *filter;
}

/* Words in the busiest cycle: in a full fold, if there is one. */
static void peak_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const double rows = (double)(f->inner > 1 ? f->rows : f->last_rows);
    const double columns = (double)(f->outer > 1 ? f->columns : f->last_columns);
    const orr_dataflow flow = s->array->dataflow;
    out->sram[ORR_OPERAND_IFMAP].peak = flow == ORR_DATAFLOW_IS ? columns : rows;
    out->sram[ORR_OPERAND_FILTER].peak = flow == ORR_DATAFLOW_IS ? rows : columns;
    out->sram[ORR_OPERAND_OFMAP].peak = columns;
    out->sram_read.peak = flow == ORR_DATAFLOW_OS ? rows + columns
                          : rows > columns        ? rows
                                                  : columns;
}

static void average(orr_systolic_result *out)
{
    const double cycles = (double)out->cycles;
    for (int i = 0; i < ORR_OPERANDS; i++) {
        out->sram[i].average = (double)out->sram[i].words / cycles;
        out->dram[i].average = (double)out->dram[i].words / cycles;
    }
    out->sram_read.average = (double)out->sram_read.words / cycles;
    out->sram_read.first = out->sram[ORR_OPERAND_IFMAP].first;
    out->sram_read.last = out->sram[ORR_OPERAND_IFMAP].last;
    const orr_systolic_traffic *filter = &out->sram[ORR_OPERAND_FILTER];
    if (filter->first < out->sram_read.first)
        out->sram_read.first = filter->first;
    if (filter->last > out->sram_read.last)
        out->sram_read.last = filter->last;
}

orr_code orr__systolic_true_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    const uint64_t cycles = (uint64_t)orr__systolic_true_cycles(s);
    const double places = (double)(s->R * s->C);
    out->folds = f.inner * f.outer;
    if (!true_memory(s, out))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the layer is too large for this array: its memory takes more than 2^27 "
                        "steps; sizes of ten digits are rarely meant");
    if (out->stalls >= (uint64_t)1 << 62)
        return orr_fail(err, ORR_EINPUT, NULL, "the bandwidth is too small: 2^62 cycles or more");
    out->cycles = cycles + out->stalls;
    out->mapping = 100 * (double)out->macs / (double)steps / ((double)out->folds * places);
    out->busy = 100 * (double)out->macs / ((double)cycles * places);
    out->utilisation = 100 * (double)out->macs / ((double)out->cycles * places);
    count_sram(s, &f, out);
    peak_sram(s, &f, out);
    average(out);
    return ORR_OK;
}
