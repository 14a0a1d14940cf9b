/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_distinct.c - how many words of the ifmap some pixels need for some elements of their windows.
 *
 * A row of pixels and a row of the filter meet a row of the ifmap as a comb: one tooth for each pixel, all the
 * same length.  Most rows of the ifmap meet the same combs as the row one stride above, so only the rows near the
 * first and the last row of pixels, and one for each place within a stride in between, are looked at.
 *
 *     filter row, elements [i0, i1)     #####            #####
 *     pixels [x0, x1), a step apart     |<- step ------->|
 *
 * Cost: rows of the filter times combs that meet in one; teeth are gone through only when combs differ and have
 * gaps. */
#include "systolic_true.h"

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
    to = orr__min(to, r->width);
    return to > from ? to - from : 0;
}

static uint64_t one_comb(const rectangle *r, const comb *c)
{
    const uint64_t last = (c->x1 - 1) * r->step;
    if (c->i1 - c->i0 >= r->step || c->x1 - c->x0 == 1)
        return clip(r, c->x0 * r->step + c->i0, last + c->i1);
    /* Only the last tooth can hang over: the others end before it begins. */
    return (c->x1 - 1 - c->x0) * (c->i1 - c->i0) + clip(r, last + c->i0, last + c->i1);
}

/* Several combs: always take the tooth that begins first. */
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
        if (best == count)
            return words;
        const comb *c = &combs[best];
        const bool is_solid = c->i1 - c->i0 >= r->step;
        const uint64_t from = orr__max(next[best] * r->step + c->i0, covered);
        const uint64_t to = (is_solid ? c->x1 - 1 : next[best]) * r->step + c->i1;
        next[best] = is_solid ? c->x1 : next[best] + 1;
        words += clip(r, from, to);
        covered = orr__max(covered, to);
    }
}

/* Words of ifmap row Y.  Rows of pixels that meet it with a comb of their own are the first two and the last two. */
static uint64_t row_words(const rectangle *r, uint64_t Y)
{
    const uint64_t stride = r->s->layer->stride_height;
    if (Y < r->f0)
        return 0;
    const uint64_t from = orr__max(r->y0, Y > r->f1 ? orr__cdiv(Y - r->f1, stride) : 0);
    const uint64_t to = orr__min(r->y1, (Y - r->f0) / stride);
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

/* Rows [from, to) of the ifmap, all of which meet only rows of pixels that are whole. */
static uint64_t inner_words(const rectangle *r, uint64_t from, uint64_t to)
{
    const uint64_t stride = r->s->layer->stride_height;
    uint64_t words = 0;
    if (stride <= r->f1 - r->f0 + 1) {
        for (uint64_t Y = from; Y < to && Y < from + stride; Y++)
            words += row_words(r, Y) * ((to - 1 - Y) / stride + 1);
        return words;
    }
    for (uint64_t f = r->f0; f <= r->f1; f++) { /* rows in between are not met at all */
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
    for (uint64_t Y = from; Y < to; Y++)
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
    const uint64_t end = orr__min(r.y1 * l->stride_height + r.f1 + 1, l->ifmap_height);
    if (top_end >= bottom)
        return edge_words(&r, top, end);
    const uint64_t inner_end = orr__min(bottom, end);
    return edge_words(&r, top, orr__min(top_end, end)) +
           (top_end < inner_end ? inner_words(&r, top_end, inner_end) : 0) +
           (bottom < end ? edge_words(&r, bottom, end) : 0);
}
