/* SPDX-License-Identifier: Apache-2.0 */
/* ss_stream.c - from phases to runs of addresses.
 *
 * Channels are innermost everywhere, so the elements of a filter row are contiguous: part of a
 * window is one run per filter row it touches, and a filter is one run.  Cost of a visit: linear in
 * the objects active in the given cycles, not in their words. */
#include "ss_impl.h"

/* ---- one object ---- */

typedef struct sink {
    const ss_stream *st;
    ss_run_visit visit;
    void *ctx;
    uint64_t row, line; /* words per filter row and per ifmap row */
} sink;

static sink sink_of(const ss_stream *st, ss_run_visit visit, void *ctx)
{
    const orr_systolic_layer *l = st->s->layer;
    return (sink){st, visit, ctx, l->filter_width * l->channels, l->ifmap_width * l->channels};
}

/* An object's words: address of the first; of a pixel, its output coordinates. */
typedef struct window {
    uint64_t object, base, y, x;
} window;

static uint64_t pixel_base(const ss_stream *st, const window *w)
{
    const orr_systolic_layer *l = st->s->layer;
    if (st->walk)
        return st->base + st->walk[w->object];
    return st->base +
           (w->y * l->stride_height * l->ifmap_width + w->x * l->stride_width) * l->channels;
}

static window window_of(const ss_stream *st, uint64_t object)
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

/* The next object: cheaper than computing it from scratch, and called often. */
static void next_window(const ss_stream *st, window *w)
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
    const uint64_t top = orr_min_u64(w->y * l->stride_height, l->ifmap_height);
    const uint64_t left = orr_min_u64(w->x * l->stride_width, l->ifmap_width);
    const uint64_t rows = l->ifmap_height - top;
    const uint64_t width = (l->ifmap_width - left) * l->channels;
    while (from < to) {
        const uint64_t fy = from / k->row, fx = from % k->row;
        const uint64_t stop = orr_min_u64(to - fy * k->row, k->row);
        if (fy >= rows)
            return;
        if (fx < orr_min_u64(stop, width))
            k->visit(k->ctx, w->base + fy * k->line + fx, orr_min_u64(stop, width) - fx);
        from = fy * k->row + stop;
    }
}

static void visit_window(const sink *k, const window *w, uint64_t from, uint64_t to)
{
    const ss_stream *st = k->st;
    if (st->hangs_over) {
        visit_clipped(k, w, from, to);
        return;
    }
    /* Filters, and windows of whole ifmap rows, are contiguous. */
    if (st->is_filter || k->row == k->line) {
        k->visit(k->ctx, w->base + from, to - from);
        return;
    }
    while (from < to) {
        const uint64_t fy = from / k->row, fx = from % k->row;
        const uint64_t stop = orr_min_u64(to - fy * k->row, k->row);
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

static uint64_t phase_lanes(const ss_stream *st, const ss_phase *p)
{
    return st->objects_are_lanes ? p->objects : p->ks;
}

static uint64_t phase_steps(const ss_stream *st, const ss_phase *p)
{
    return st->objects_are_lanes ? p->ks : p->objects;
}

/* Elements of object (or step) i that are requested in cycles [a, b) of the phase; if skewed, these
 * are its cycles [a - i, b - i). */
static void elements_of(
    const ss_stream *st, const ss_phase *p, uint64_t i, uint64_t a, uint64_t b, uint64_t out[2])
{
    if (!st->is_skewed && !st->objects_are_lanes) {
        out[0] = p->k;
        out[1] = p->k + p->ks;
        return;
    }
    const uint64_t shift = st->is_skewed ? i : 0;
    const uint64_t from = orr_min_u64(a > shift ? a - shift : 0, p->ks);
    const uint64_t to = orr_min_u64(b - shift, p->ks);
    out[0] = p->k + (st->is_falling ? p->ks - to : from);
    out[1] = out[0] + (to > from ? to - from : 0);
}

/* Cycles [a, b) of the phase. */
static void visit_phase(const sink *k, const ss_phase *p, uint64_t a, uint64_t b)
{
    const ss_stream *st = k->st;
    uint64_t first = 0, behind = p->objects;
    if (st->is_skewed)
        first = a < p->ks ? 0 : a - p->ks + 1;
    else if (!st->objects_are_lanes)
        first = a;
    if (st->is_skewed || !st->objects_are_lanes)
        behind = orr_min_u64(behind, b);
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

static uint64_t move_cursor(const ss_stream *st, uint64_t *cursor, uint64_t from)
{
    while (*cursor < st->phases && st->at(st, *cursor).start + st->longest <= from)
        ++*cursor;
    return *cursor;
}

void ss_stream_visit(const ss_stream *st,
                     uint64_t from,
                     uint64_t to,
                     uint64_t *cursor,
                     ss_run_visit visit,
                     void *ctx)
{
    const sink k = sink_of(st, visit, ctx);
    for (uint64_t i = move_cursor(st, cursor, from); i < st->phases; i++) {
        const ss_phase p = st->at(st, i);
        if (p.start >= to)
            return;
        visit_phase(&k, &p, from > p.start ? from - p.start : 0, to - p.start);
    }
}

/* The words of cycle t (from the phase's start), one by one, in lane order. */
static void visit_cycle(const sink *k, const ss_phase *p, uint64_t t)
{
    const ss_stream *st = k->st;
    const uint64_t lanes = phase_lanes(st, p), steps = phase_steps(st, p);
    if (!st->is_skewed && t >= steps)
        return;
    const uint64_t first = st->is_skewed && t >= steps ? t - steps + 1 : 0;
    const uint64_t behind = st->is_skewed ? orr_min_u64(lanes, t + 1) : lanes;
    for (uint64_t copy = 0; copy < p->copies; copy++)
        for (uint64_t lane = first; lane < behind; lane++) {
            const uint64_t step = st->is_skewed ? t - lane : t;
            const uint64_t object = st->objects_are_lanes ? lane : step;
            const uint64_t element = st->objects_are_lanes ? step : lane;
            const uint64_t at = p->k + (st->is_falling ? p->ks - 1 - element : element);
            visit_object(k, p->object + object, at, at + 1);
        }
}

void ss_stream_cycle(
    const ss_stream *st, uint64_t cycle, uint64_t *cursor, ss_run_visit visit, void *ctx)
{
    const sink k = sink_of(st, visit, ctx);
    const uint64_t first = move_cursor(st, cursor, cycle);
    uint64_t behind = first;
    while (behind < st->phases && st->at(st, behind).start <= cycle)
        behind++;
    /* Of overlapping phases the later one has the lower lanes. */
    for (uint64_t i = behind; i > first; i--) {
        const ss_phase p = st->at(st, i - 1);
        visit_cycle(&k, &p, cycle - p.start);
    }
}

/* ---- counting ---- */

/* Pairs of a lane below `lanes` and a step with lane + step < t. */
static uint64_t triangle(uint64_t lanes, uint64_t t)
{
    if (t <= lanes)
        return (uint64_t)((orr__wide)t * (t + 1) / 2);
    return lanes * t - (uint64_t)((orr__wide)lanes * (lanes - 1) / 2);
}

uint64_t ss_phase_before(const ss_stream *st, const ss_phase *p, uint64_t cycle)
{
    const uint64_t lanes = phase_lanes(st, p), steps = phase_steps(st, p);
    if (cycle <= p->start)
        return 0;
    const uint64_t t = cycle - p->start;
    if (!st->is_skewed)
        return lanes * orr_min_u64(t, steps);
    if (t >= lanes + steps)
        return lanes * steps;
    return triangle(lanes, t) - (t > steps ? triangle(lanes, t - steps) : 0);
}

uint64_t ss_stream_words(const ss_stream *st)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < st->phases; i++) {
        const ss_phase p = st->at(st, i);
        sum += p.objects * p.ks;
    }
    return sum;
}

uint64_t ss_counter_before(const ss_counter *c, uint64_t cycle)
{
    uint64_t sum = c->before;
    for (uint64_t i = c->first; i < c->st->phases; i++) {
        const ss_phase p = c->st->at(c->st, i);
        if (p.start >= cycle)
            break;
        sum += ss_phase_before(c->st, &p, cycle);
    }
    return sum;
}

void ss_counter_move(ss_counter *c, uint64_t cycle)
{
    while (c->first < c->st->phases) {
        const ss_phase p = c->st->at(c->st, c->first);
        if (p.start + c->st->longest > cycle)
            return;
        c->before += p.objects * p.ks;
        c->first++;
    }
}

uint64_t ss_counter_find(ss_counter *c, uint64_t n, uint64_t from)
{
    uint64_t lo = from, hi; /* before(lo) <= n < before(hi) */
    ss_counter_move(c, from);
    while (c->first < c->st->phases) { /* whole phases */
        const ss_phase p = c->st->at(c->st, c->first);
        const uint64_t end = p.start + c->st->longest;
        lo = orr_max_u64(lo, p.start);
        if (ss_counter_before(c, end) > n)
            break;
        lo = orr_max_u64(lo, end);
        ss_counter_move(c, end);
    }
    /* No cycle has more words than lanes, so at least this many cycles pass. */
    for (int i = 0; i < 3; i++)
        lo += (n - ss_counter_before(c, lo)) / c->st->lanes;
    hi = lo + 1;
    for (uint64_t step = 1; ss_counter_before(c, hi) <= n; step *= 2) {
        lo = hi;
        hi += step;
    }
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (ss_counter_before(c, mid) > n)
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

/* The last element of object i inside the ifmap, as a position in the phase; false: none. */
static bool last_element(const ss_stream *st, const ss_phase *p, uint64_t i, uint64_t *element)
{
    last_run l = {0};
    const sink k = sink_of(st, note_run, &l);
    uint64_t lo = 0, hi = p->ks;
    visit_object(&k, p->object + i, p->k, p->k + p->ks);
    if (l.end == 0)
        return false;
    /* Addresses ascend with elements, so bisection finds the one whose run ends last. */
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

static bool first_element(const ss_stream *st, const ss_phase *p, uint64_t i, uint64_t *element)
{
    uint64_t lo = 0, hi = p->ks;
    while (lo < hi) { /* the shortest prefix with a word */
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

/* The cycle in which a phase requests its last existing word; false: none. */
static bool last_of_phase(const ss_stream *st, const ss_phase *p, uint64_t *cycle)
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
            break; /* no earlier object requests anything later */
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

uint64_t ss_stream_last(const ss_stream *st)
{
    uint64_t cycle = 0;
    for (uint64_t i = st->phases; i-- > 0;) {
        const ss_phase p = st->at(st, i);
        if (last_of_phase(st, &p, &cycle))
            break;
    }
    return cycle;
}

/* ==== the phases of each dataflow in both generations of SCALE-Sim.
 *
 * scale-sim.md 2 to 4 for v1, with the deviations listed in 4; 6.2 for v2.  A phase is computed
 * from its index, so none is stored. */

/* ---- v1, output stationary ---- */

static ss_phase v1_os_ifmap(const ss_stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (ss_phase){i * st->s->T, h * st->s->R, orr__fold_rows(&st->f, h), 0, st->s->T, 1};
}

static ss_phase v1_os_filter(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner;
    return (ss_phase){i * st->s->T, v * st->s->C, orr__fold_columns(&st->f, v), 0, st->s->T, 1};
}

/* ---- v1, windows longer than the array's height ---- */

static uint64_t v1_fold_start(const ss_stream *st, uint64_t v, uint64_t h)
{
    const orr__folds *f = &st->f;
    const uint64_t column = (f->inner - 1) * ss_v1_fold(st->s, f->rows, f->columns) +
                            ss_v1_fold(st->s, f->last_rows, f->columns);
    return v * column + h * ss_v1_fold(st->s, f->rows, orr__fold_columns(f, v));
}

static ss_phase v1_load(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner;
    return (ss_phase){v1_fold_start(st, v, h),      v * st->s->C,
                      orr__fold_columns(&st->f, v), h * st->s->R,
                      orr__fold_rows(&st->f, h),    1};
}

/* Input stationary does not rewind its filters: each column fold starts one filter later
 * (scale-sim.md 4). */
static ss_phase v1_pass(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner, rows = orr__fold_rows(&st->f, h);
    const uint64_t objects = st->is_filter ? st->s->N : ss_v1_streamed(st->s);
    return (ss_phase){
        v1_fold_start(st, v, h) + rows, st->is_filter ? v : 0, objects, h * st->s->R, rows, 1};
}

/* ---- v1, several windows stacked in a column ---- */

static uint64_t stacked_left(const ss_stream *st, uint64_t v)
{
    const uint64_t across = st->s->array->dataflow == ORR_DATAFLOW_WS ? st->s->N : st->s->E;
    return across - v * st->inner * st->s->C;
}

/* Weight stationary starts fold v at filter v * C, not where the previous fold ended (scale-sim.md
 * 4). */
static ss_phase v1_stacked_load(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, w = i % st->inner, C = st->s->C;
    const uint64_t first = st->is_filter ? v * C : v * st->inner * C;
    return (ss_phase){v * st->pitch + w * st->s->T,
                      first + w * C,
                      orr_min_u64(C, stacked_left(st, v) - w * C),
                      0,
                      st->s->T,
                      1};
}

static ss_phase v1_stacked_pass(const ss_stream *st, uint64_t v)
{
    const uint64_t stacked = orr_min_u64(st->inner, orr_div_up(stacked_left(st, v), st->s->C));
    return (ss_phase){v * st->pitch + stacked * st->s->T,
                      0,
                      st->is_filter ? st->s->N : st->s->E,
                      0,
                      st->s->T,
                      stacked};
}

/* ---- v1 ---- */

/* Lanes start and stop one after the other, so near both ends of a run fewer words lie between two
 * uses of the same one. */
static uint64_t reuse_of(uint64_t words, uint64_t lanes)
{
    return words > lanes * (lanes - 1) ? words - lanes * (lanes - 1) : 0;
}

/* Distinct consecutive words when pixels stream past part of the window.  If all elements of a fold
 * belong to one filter position, a word recurs at the next position: all channels later, and a few
 * pixels earlier. */
static uint64_t pixel_reuse(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    if (!orr__systolic_overlaps(s))
        return s->E * s->T;
    const uint64_t words = s->E * l->channels;
    const uint64_t back = (l->filter_height * s->out_w + l->filter_width) * s->R;
    return l->channels % s->R == 0 && words > back ? words - back : 0;
}

static uint64_t last_start(const ss_stream *st)
{
    return st->at(st, st->phases - 1).start;
}

static uint64_t ifmap_end(const ss_stream *st, uint64_t pixels)
{
    const orr_systolic_layer *l = st->s->layer;
    const uint64_t y = (pixels - 1) / st->s->out_w;
    const uint64_t line = l->ifmap_width * l->channels;
    const uint64_t last = st->walk ? st->walk[pixels - 1] : y * l->stride_height * line;
    const uint64_t reach = (l->filter_height - 1) * line + l->filter_width * l->channels;
    const uint64_t columns =
        st->walk ? 0 : (st->s->out_w - 1) * l->stride_width * l->channels; /* no row ends later */
    return st->base + last + columns + reach;
}

static void finish_stream(ss_stream *st, uint64_t lanes, uint64_t steps)
{
    st->lanes = lanes;
    st->longest = steps + (st->is_skewed ? lanes - 1 : 0);
    st->finish = last_start(st) + st->longest;
}

static void v1_os_streams(const orr__systolic *s, ss_stream *ifmap, ss_stream *filter)
{
    const ss_os_folds g = ss_v1_os(s);
    ifmap->f = filter->f = g.f;
    ifmap->objects_are_lanes = filter->objects_are_lanes = true;
    ifmap->is_skewed = filter->is_skewed = true;
    ifmap->inner = g.f.inner;
    filter->inner = g.repeats;
    ifmap->phases = g.f.outer * ifmap->inner;
    filter->phases = g.f.outer * filter->inner;
    ifmap->at = v1_os_ifmap;
    filter->at = v1_os_filter;
    finish_stream(ifmap, orr_min_u64(s->R, s->E), s->T);
    finish_stream(filter, orr_min_u64(s->C, s->N), s->T);
    ifmap->distinct = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    filter->distinct = s->N * s->T;
    ifmap->reuse = orr__systolic_overlaps(s) ? 0 : reuse_of(s->E * s->T, ifmap->lanes);
    ifmap->span = ifmap->finish;
    ifmap->lead = ifmap->lanes;
    ifmap->period = ifmap->inner * s->T;
    filter->reuse = reuse_of(g.f.last_columns * s->T, g.f.last_columns);
    filter->span = filter->inner * s->T;
    filter->lead = filter->lanes;
    filter->period = s->T;
}

static void v1_folded_streams(const orr__systolic *s, ss_stream *load, ss_stream *pass)
{
    const uint64_t across = load->is_filter ? s->N : s->E;
    const uint64_t steps = pass->is_filter ? s->N : ss_v1_streamed(s);
    load->f = pass->f = orr__folds_of(s->T, across, s->R, s->C);
    load->inner = pass->inner = load->f.inner;
    load->phases = pass->phases = load->f.inner * load->f.outer;
    load->objects_are_lanes = true;
    pass->is_falling = true;
    load->at = v1_load;
    pass->at = v1_pass;
    finish_stream(load, orr_min_u64(s->C, across), s->R);
    finish_stream(pass, s->R, steps);
    load->reuse = load->is_filter || !orr__systolic_overlaps(s) ? UINT64_MAX : 0;
    load->distinct = load->is_filter ? s->N * s->T : orr__systolic_distinct(s, 0, s->E, 0, s->T);
    if (pass->is_filter) { /* the next column fold requests each filter one step earlier */
        pass->reuse = pass->f.outer > 1 ? s->N * s->T - s->R : UINT64_MAX;
        pass->distinct = (s->N + pass->f.outer - 1) * s->T;
        return;
    }
    if (!pass->walk && steps == s->E) {
        pass->reuse = pixel_reuse(s);
        pass->distinct = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    }
    pass->span = pass->finish;
    pass->period = v1_fold_start(pass, 1, 0);
}

static void v1_stacked_streams(const orr__systolic *s, ss_stream *load, ss_stream *pass)
{
    const uint64_t across = load->is_filter ? s->N : s->E;
    const uint64_t stack = s->R / s->T, folds = orr_div_up(across, stack * s->C);
    load->inner = pass->inner = stack;
    load->pitch = pass->pitch = ss_v1_stacked(s, orr_min_u64(across, stack * s->C));
    load->phases = (folds - 1) * stack + orr_div_up(stacked_left(load, folds - 1), s->C);
    pass->phases = folds;
    load->objects_are_lanes = true;
    pass->is_falling = true;
    load->at = v1_stacked_load;
    pass->at = v1_stacked_pass;
    finish_stream(load, orr_min_u64(s->C, across), s->T);
    finish_stream(pass, orr_min_u64(stack, orr_div_up(across, s->C)) * s->T,
                  pass->is_filter ? s->N : s->E);
    const bool is_regular = !load->is_filter || folds == 1 || stack == 1;
    const uint64_t pixels = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    if (is_regular) {
        load->reuse = load->is_filter || !orr__systolic_overlaps(s) ? UINT64_MAX : 0;
        load->distinct = load->is_filter ? s->N * s->T : pixels;
    }
    pass->distinct = pass->is_filter ? s->N * s->T : pixels;
    if (pass->lanes == s->T && (pass->is_filter || !orr__systolic_overlaps(s)))
        pass->reuse = folds == 1 ? UINT64_MAX : pass->distinct;
    pass->span = pass->finish;
    pass->period = pass->pitch;
}

void ss_streams_v1(const orr__systolic *s,
                   const uint64_t *walk,
                   ss_stream *ifmap,
                   ss_stream *filter)
{
    const orr_dataflow flow = s->array->dataflow;
    *ifmap = (ss_stream){.s = s};
    *filter = (ss_stream){.s = s, .is_filter = true, .base = s->array->filter_offset};
    ifmap->base = flow == ORR_DATAFLOW_IS ? s->array->ifmap_offset : 0;
    ifmap->walk = walk;
    ifmap->walk_count = ss_v1_streamed(s);
    if (flow == ORR_DATAFLOW_OS)
        v1_os_streams(s, ifmap, filter);
    else if (s->T > s->R)
        v1_folded_streams(s, flow == ORR_DATAFLOW_WS ? filter : ifmap,
                          flow == ORR_DATAFLOW_WS ? ifmap : filter);
    else
        v1_stacked_streams(s, flow == ORR_DATAFLOW_WS ? filter : ifmap,
                           flow == ORR_DATAFLOW_WS ? ifmap : filter);
    const bool is_folded_ws = flow == ORR_DATAFLOW_WS && s->T > s->R;
    ifmap->end = ifmap_end(ifmap, is_folded_ws ? ss_v1_streamed(s) : s->E);
    const bool drifts = flow == ORR_DATAFLOW_IS && s->T > s->R;
    filter->end = filter->base + (s->N + (drifts ? filter->f.outer - 1 : 0)) * s->T;
}

/* ---- v2 ---- */

static ss_phase v2_os_ifmap(const ss_stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (ss_phase){i * st->pitch, h * st->s->R, orr__fold_rows(&st->f, h), 0, st->s->T, 1};
}

static ss_phase v2_os_filter(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner;
    return (ss_phase){i * st->pitch, v * st->s->C, orr__fold_columns(&st->f, v), 0, st->s->T, 1};
}

/* The bottom row is loaded first; unused rows would precede it. */
static ss_phase v2_load(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner, rows = orr__fold_rows(&st->f, h);
    return (ss_phase){i * st->pitch + st->s->R - rows,
                      v * st->s->C,
                      orr__fold_columns(&st->f, v),
                      h * st->s->R,
                      rows,
                      1};
}

static ss_phase v2_pass(const ss_stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (ss_phase){
        i * st->pitch + st->s->R,  0, st->is_filter ? st->s->N : st->s->E, h * st->s->R,
        orr__fold_rows(&st->f, h), 1};
}

static void v2_os_streams(const orr__systolic *s, ss_stream *ifmap, ss_stream *filter)
{
    ifmap->objects_are_lanes = filter->objects_are_lanes = true;
    ifmap->is_skewed = filter->is_skewed = true;
    ifmap->at = v2_os_ifmap;
    filter->at = v2_os_filter;
    finish_stream(ifmap, orr_min_u64(s->R, s->E), s->T);
    finish_stream(filter, orr_min_u64(s->C, s->N), s->T);
    ifmap->reuse = orr__systolic_overlaps(s) || ifmap->hangs_over ? 0 : s->E * s->T;
    ifmap->distinct = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    filter->distinct = s->N * s->T;
    ifmap->span = ifmap->finish;
    ifmap->period = ifmap->inner * ifmap->pitch;
    filter->reuse = filter->f.last_columns * s->T;
    filter->span = filter->inner * filter->pitch;
    filter->period = filter->pitch;
}

static void v2_fixed_streams(const orr__systolic *s, ss_stream *load, ss_stream *pass)
{
    load->objects_are_lanes = load->is_falling = true;
    pass->is_skewed = true;
    load->at = v2_load;
    pass->at = v2_pass;
    const uint64_t rows = orr_min_u64(s->R, s->T);
    finish_stream(load, load->f.outer > 1 ? s->C : load->f.last_columns, rows);
    finish_stream(pass, rows, pass->is_filter ? s->N : s->E);
    const uint64_t pixels = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    const bool is_once = load->is_filter || (!orr__systolic_overlaps(s) && !load->hangs_over);
    load->distinct = load->is_filter ? s->N * s->T : pixels;
    pass->distinct = pass->is_filter ? s->N * s->T : pixels;
    load->reuse = is_once ? UINT64_MAX : 0;
    if (!pass->hangs_over)
        pass->reuse = pass->is_filter ? s->N * s->T : pixel_reuse(s);
    pass->span = pass->finish;
    pass->period = pass->inner * pass->pitch;
}

static bool overhangs(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    return (l->ifmap_height - l->filter_height) % l->stride_height != 0 ||
           (l->ifmap_width - l->filter_width) % l->stride_width != 0;
}

void ss_streams_v2(const orr__systolic *s, ss_stream *ifmap, ss_stream *filter)
{
    uint64_t steps;
    ss_stream common = {.s = s, .f = orr__systolic_true_folds(s, &steps)};
    common.inner = common.f.inner;
    common.phases = common.f.inner * common.f.outer;
    common.pitch = ss_v2_fold_cycles(s);
    *ifmap = *filter = common;
    ifmap->hangs_over = overhangs(s);
    filter->is_filter = true;
    if (s->array->dataflow == ORR_DATAFLOW_OS)
        v2_os_streams(s, ifmap, filter);
    else if (s->array->dataflow == ORR_DATAFLOW_WS)
        v2_fixed_streams(s, filter, ifmap);
    else
        v2_fixed_streams(s, ifmap, filter);
    ifmap->end = s->layer->ifmap_height * s->layer->ifmap_width * s->layer->channels;
    filter->end = s->N * s->T;
}
