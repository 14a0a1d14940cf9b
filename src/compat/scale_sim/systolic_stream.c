/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_stream.c - phases to runs of addresses.
 *
 * Channels are innermost everywhere, so an element of a filter row is next to the one before it, and a piece of a
 * window is one run for each filter row it touches; a filter is one run.
 * Cost: a visit takes time with the objects that are active in the cycles asked about, not with their words. */
#include "systolic_stream.h"

/* ---- one object ---- */

typedef struct sink {
    const orr__stream *st;
    orr__run_visit visit;
    void *ctx;
    uint64_t row, line; /* words of a filter row, of an ifmap row */
} sink;

static sink sink_of(const orr__stream *st, orr__run_visit visit, void *ctx)
{
    const orr_systolic_layer *l = st->s->layer;
    return (sink){st, visit, ctx, l->filter_width * l->channels, l->ifmap_width * l->channels};
}

/* An object's words: where the first lies; of a pixel, its place in the output. */
typedef struct window {
    uint64_t object, base, y, x;
} window;

static uint64_t pixel_base(const orr__stream *st, const window *w)
{
    const orr_systolic_layer *l = st->s->layer;
    if (st->walk)
        return st->base + st->walk[w->object];
    return st->base +
           (w->y * l->stride_height * l->ifmap_width + w->x * l->stride_width) * l->channels;
}

static window window_of(const orr__stream *st, uint64_t object)
{
    window w = {.object = object};
    if (st->is_filter) {
        w.base = st->base + object * st->s->T;
        return w;
    }
    w.y = object / st->s->out_w;
    w.x = object % st->s->out_w;
    w.base = pixel_base(st, &w);
    return w;
}

/* The next object: cheaper than looking it up, of which there are many. */
static void next_window(const orr__stream *st, window *w)
{
    w->object++;
    if (st->is_filter) {
        w->base += st->s->T;
        return;
    }
    if (++w->x < st->s->out_w && !st->walk) {
        w->base += st->s->layer->stride_width * st->s->layer->channels;
        return;
    }
    if (w->x == st->s->out_w) {
        w->x = 0;
        w->y++;
    }
    /* The walk ends with the last pixel. */
    if (!st->walk || w->object < st->walk_count)
        w->base = pixel_base(st, w);
}

/* Elements [from, to) of a window, clipped to the ifmap. */
static void visit_clipped(const sink *k, const window *w, uint64_t from, uint64_t to)
{
    const orr_systolic_layer *l = k->st->s->layer;
    const uint64_t top = orr__min(w->y * l->stride_height, l->ifmap_height);
    const uint64_t left = orr__min(w->x * l->stride_width, l->ifmap_width);
    const uint64_t rows = l->ifmap_height - top;
    const uint64_t width = (l->ifmap_width - left) * l->channels;
    while (from < to) {
        const uint64_t fy = from / k->row, fx = from % k->row;
        const uint64_t stop = orr__min(to - fy * k->row, k->row);
        if (fy >= rows)
            return;
        if (fx < orr__min(stop, width))
            k->visit(k->ctx, w->base + fy * k->line + fx, orr__min(stop, width) - fx);
        from = fy * k->row + stop;
    }
}

static void visit_window(const sink *k, const window *w, uint64_t from, uint64_t to)
{
    const orr__stream *st = k->st;
    if (st->hangs_over) {
        visit_clipped(k, w, from, to);
        return;
    }
    /* Filters, and windows of whole ifmap rows, are in one piece. */
    if (st->is_filter || k->row == k->line) {
        k->visit(k->ctx, w->base + from, to - from);
        return;
    }
    while (from < to) {
        const uint64_t fy = from / k->row, fx = from % k->row;
        const uint64_t stop = orr__min(to - fy * k->row, k->row);
        k->visit(k->ctx, w->base + fy * k->line + fx, stop - fx);
        from = fy * k->row + stop;
    }
}

static void visit_object(const sink *k, uint64_t object, uint64_t from, uint64_t to)
{
    const window w = window_of(k->st, object);
    visit_window(k, &w, from, to);
}

/* ---- one phase ---- */

static uint64_t phase_lanes(const orr__stream *st, const orr__phase *p)
{
    return st->objects_are_lanes ? p->objects : p->ks;
}

static uint64_t phase_steps(const orr__stream *st, const orr__phase *p)
{
    return st->objects_are_lanes ? p->ks : p->objects;
}

/* Elements of object i, or of step i, that cycles [a, b) of the phase ask for; skewed, they meet it at [a - i, b -
 * i). */
static void elements_of(
    const orr__stream *st, const orr__phase *p, uint64_t i, uint64_t a, uint64_t b, uint64_t out[2])
{
    if (!st->is_skewed && !st->objects_are_lanes) {
        out[0] = p->k;
        out[1] = p->k + p->ks;
        return;
    }
    const uint64_t shift = st->is_skewed ? i : 0;
    const uint64_t from = orr__min(a > shift ? a - shift : 0, p->ks);
    const uint64_t to = orr__min(b - shift, p->ks);
    out[0] = p->k + (st->is_falling ? p->ks - to : from);
    out[1] = out[0] + (to > from ? to - from : 0);
}

/* Cycles [a, b) of the phase. */
static void visit_phase(const sink *k, const orr__phase *p, uint64_t a, uint64_t b)
{
    const orr__stream *st = k->st;
    uint64_t first = 0, behind = p->objects;
    if (st->is_skewed)
        first = a < p->ks ? 0 : a - p->ks + 1;
    else if (!st->objects_are_lanes)
        first = a;
    if (st->is_skewed || !st->objects_are_lanes)
        behind = orr__min(behind, b);
    if (first >= behind)
        return;
    window w = window_of(st, p->object + first);
    for (uint64_t i = first; i < behind; i++) {
        uint64_t part[2];
        elements_of(st, p, i, a, b, part);
        if (part[0] < part[1])
            visit_window(k, &w, part[0], part[1]);
        next_window(st, &w);
    }
}

static uint64_t move_cursor(const orr__stream *st, uint64_t *cursor, uint64_t from)
{
    while (*cursor < st->phases && st->at(st, *cursor).start + st->longest <= from)
        ++*cursor;
    return *cursor;
}

void orr__stream_visit(const orr__stream *st,
                       uint64_t from,
                       uint64_t to,
                       uint64_t *cursor,
                       orr__run_visit visit,
                       void *ctx)
{
    const sink k = sink_of(st, visit, ctx);
    for (uint64_t i = move_cursor(st, cursor, from); i < st->phases; i++) {
        const orr__phase p = st->at(st, i);
        if (p.start >= to)
            return;
        visit_phase(&k, &p, from > p.start ? from - p.start : 0, to - p.start);
    }
}

/* The words of cycle t (from the phase's start), each by itself, in the order of the lanes. */
static void visit_cycle(const sink *k, const orr__phase *p, uint64_t t)
{
    const orr__stream *st = k->st;
    const uint64_t lanes = phase_lanes(st, p), steps = phase_steps(st, p);
    if (!st->is_skewed && t >= steps)
        return;
    const uint64_t first = st->is_skewed && t >= steps ? t - steps + 1 : 0;
    const uint64_t behind = st->is_skewed ? orr__min(lanes, t + 1) : lanes;
    for (uint64_t copy = 0; copy < p->copies; copy++)
        for (uint64_t lane = first; lane < behind; lane++) {
            const uint64_t step = st->is_skewed ? t - lane : t;
            const uint64_t object = st->objects_are_lanes ? lane : step;
            const uint64_t element = st->objects_are_lanes ? step : lane;
            const uint64_t at = p->k + (st->is_falling ? p->ks - 1 - element : element);
            visit_object(k, p->object + object, at, at + 1);
        }
}

void orr__stream_cycle(
    const orr__stream *st, uint64_t cycle, uint64_t *cursor, orr__run_visit visit, void *ctx)
{
    const sink k = sink_of(st, visit, ctx);
    const uint64_t first = move_cursor(st, cursor, cycle);
    uint64_t behind = first;
    while (behind < st->phases && st->at(st, behind).start <= cycle)
        behind++;
    /* Where phases overlap, the later one has the lower lanes. */
    for (uint64_t i = behind; i > first; i--) {
        const orr__phase p = st->at(st, i - 1);
        visit_cycle(&k, &p, cycle - p.start);
    }
}

/* ---- counting ---- */

/* How many pairs of a lane below `lanes` and a step have lane + step < t. */
static uint64_t triangle(uint64_t lanes, uint64_t t)
{
    if (t <= lanes)
        return (uint64_t)((orr__wide)t * (t + 1) / 2);
    return lanes * t - (uint64_t)((orr__wide)lanes * (lanes - 1) / 2);
}

uint64_t orr__phase_before(const orr__stream *st, const orr__phase *p, uint64_t cycle)
{
    const uint64_t lanes = phase_lanes(st, p), steps = phase_steps(st, p);
    if (cycle <= p->start)
        return 0;
    const uint64_t t = cycle - p->start;
    if (!st->is_skewed)
        return lanes * orr__min(t, steps);
    if (t >= lanes + steps)
        return lanes * steps;
    return triangle(lanes, t) - (t > steps ? triangle(lanes, t - steps) : 0);
}

uint64_t orr__stream_words(const orr__stream *st)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < st->phases; i++) {
        const orr__phase p = st->at(st, i);
        sum += p.objects * p.ks;
    }
    return sum;
}

uint64_t orr__counter_before(const orr__counter *c, uint64_t cycle)
{
    uint64_t sum = c->before;
    for (uint64_t i = c->first; i < c->st->phases; i++) {
        const orr__phase p = c->st->at(c->st, i);
        if (p.start >= cycle)
            break;
        sum += orr__phase_before(c->st, &p, cycle);
    }
    return sum;
}

void orr__counter_move(orr__counter *c, uint64_t cycle)
{
    while (c->first < c->st->phases) {
        const orr__phase p = c->st->at(c->st, c->first);
        if (p.start + c->st->longest > cycle)
            return;
        c->before += p.objects * p.ks;
        c->first++;
    }
}

uint64_t orr__counter_find(orr__counter *c, uint64_t n, uint64_t from)
{
    uint64_t lo = from, hi; /* before(lo) <= n < before(hi) */
    orr__counter_move(c, from);
    while (c->first < c->st->phases) { /* whole phases */
        const orr__phase p = c->st->at(c->st, c->first);
        const uint64_t end = p.start + c->st->longest;
        lo = orr__max(lo, p.start);
        if (orr__counter_before(c, end) > n)
            break;
        lo = orr__max(lo, end);
        orr__counter_move(c, end);
    }
    /* No cycle has more words than lanes, so this many cycles at least go by. */
    for (int i = 0; i < 3; i++)
        lo += (n - orr__counter_before(c, lo)) / c->st->lanes;
    hi = lo + 1;
    for (uint64_t step = 1; orr__counter_before(c, hi) <= n; step *= 2) {
        lo = hi;
        hi += step;
    }
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (orr__counter_before(c, mid) > n)
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

typedef struct last_run {
    uint64_t end; /* one past the last address; 0: none */
} last_run;

static void note_run(void *ctx, uint64_t address, uint64_t count)
{
    last_run *l = ctx;
    l->end = address + count;
}

/* The last element of object i that lies in the ifmap, as a place in the phase; false: none does. */
static bool last_element(const orr__stream *st, const orr__phase *p, uint64_t i, uint64_t *element)
{
    last_run l = {0};
    const sink k = sink_of(st, note_run, &l);
    uint64_t lo = 0, hi = p->ks;
    visit_object(&k, p->object + i, p->k, p->k + p->ks);
    if (l.end == 0)
        return false;
    /* Addresses rise with the element, so the one whose run ends last is found by halving. */
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        last_run rest = {0};
        const sink from = sink_of(st, note_run, &rest);
        visit_object(&from, p->object + i, p->k + mid, p->k + p->ks);
        if (rest.end)
            lo = mid + 1;
        else
            hi = mid;
    }
    *element = lo - 1;
    return true;
}

static bool first_element(const orr__stream *st, const orr__phase *p, uint64_t i, uint64_t *element)
{
    uint64_t lo = 0, hi = p->ks;
    while (lo < hi) { /* the shortest head that has a word */
        const uint64_t mid = lo + (hi - lo) / 2;
        last_run head = {0};
        const sink k = sink_of(st, note_run, &head);
        visit_object(&k, p->object + i, p->k, p->k + mid + 1);
        if (head.end)
            hi = mid;
        else
            lo = mid + 1;
    }
    *element = lo;
    return lo < p->ks;
}

/* The cycle in which a phase asks for its last word that exists; false: it asks for none. */
static bool last_of_phase(const orr__stream *st, const orr__phase *p, uint64_t *cycle)
{
    const uint64_t lanes = phase_lanes(st, p), steps = phase_steps(st, p);
    if (!st->hangs_over) {
        *cycle = p->start + steps - 1 + (st->is_skewed ? lanes - 1 : 0);
        return true;
    }
    bool is_found = false;
    uint64_t best = 0, element;
    for (uint64_t i = p->objects; i-- > 0;) {
        if (is_found && (st->is_skewed ? i + p->ks - 1 : p->ks - 1) <= best)
            break; /* no earlier object asks for anything later */
        if (!(st->is_falling ? first_element : last_element)(st, p, i, &element))
            continue;
        const uint64_t step = st->is_falling ? p->ks - 1 - element : element;
        const uint64_t at = st->is_skewed ? i + step : step;
        best = is_found && best > at ? best : at;
        is_found = true;
    }
    *cycle = p->start + best;
    return is_found;
}

uint64_t orr__stream_last(const orr__stream *st)
{
    uint64_t cycle = 0;
    for (uint64_t i = st->phases; i-- > 0;) {
        const orr__phase p = st->at(st, i);
        if (last_of_phase(st, &p, &cycle))
            break;
    }
    return cycle;
}
