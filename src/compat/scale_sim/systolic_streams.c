/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_streams.c - the phases of each dataflow, as the two generations of SCALE-Sim have them.
 *
 * scale-sim.md: v1 in sections 2 to 4, with the deviations that section 4 lists; v2 in 6.2.  Every phase is
 * computed from its number, so nothing is stored however many there are. */
#include "systolic_stream.h"

/* ---- v1, output stationary ---- */

static orr__phase v1_os_ifmap(const orr__stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (orr__phase){i * st->s->T, h * st->s->R, orr__fold_rows(&st->f, h), 0, st->s->T, 1};
}

static orr__phase v1_os_filter(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner;
    return (orr__phase){i * st->s->T, v * st->s->C, orr__fold_columns(&st->f, v), 0, st->s->T, 1};
}

/* ---- v1, windows longer than the array is high ---- */

static uint64_t v1_fold_start(const orr__stream *st, uint64_t v, uint64_t h)
{
    const orr__folds *f = &st->f;
    const uint64_t column = (f->inner - 1) * orr__systolic_v1_fold(st->s, f->rows, f->columns) +
                            orr__systolic_v1_fold(st->s, f->last_rows, f->columns);
    return v * column + h * orr__systolic_v1_fold(st->s, f->rows, orr__fold_columns(f, v));
}

static orr__phase v1_load(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner;
    return (orr__phase){v1_fold_start(st, v, h),      v * st->s->C,
                        orr__fold_columns(&st->f, v), h * st->s->R,
                        orr__fold_rows(&st->f, h),    1};
}

/* Input stationary never rewinds its filters: each column fold begins one filter further on (section 4). */
static orr__phase v1_pass(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner, rows = orr__fold_rows(&st->f, h);
    const uint64_t objects = st->is_filter ? st->s->N : orr__systolic_v1_streamed(st->s);
    return (orr__phase){
        v1_fold_start(st, v, h) + rows, st->is_filter ? v : 0, objects, h * st->s->R, rows, 1};
}

/* ---- v1, several windows stacked in a column ---- */

static uint64_t stacked_left(const orr__stream *st, uint64_t v)
{
    const uint64_t across = st->s->array->dataflow == ORR_DATAFLOW_WS ? st->s->N : st->s->E;
    return across - v * st->inner * st->s->C;
}

/* Weight stationary begins fold v at filter v * C, not where the fold before it ended (section 4). */
static orr__phase v1_stacked_load(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, w = i % st->inner, C = st->s->C;
    const uint64_t first = st->is_filter ? v * C : v * st->inner * C;
    return (orr__phase){v * st->pitch + w * st->s->T,
                        first + w * C,
                        orr__min(C, stacked_left(st, v) - w * C),
                        0,
                        st->s->T,
                        1};
}

static orr__phase v1_stacked_pass(const orr__stream *st, uint64_t v)
{
    const uint64_t stacked = orr__min(st->inner, orr__cdiv(stacked_left(st, v), st->s->C));
    return (orr__phase){v * st->pitch + stacked * st->s->T,
                        0,
                        st->is_filter ? st->s->N : st->s->E,
                        0,
                        st->s->T,
                        stacked};
}

/* ---- v1 ---- */

/* Lanes start and stop one after the other: near both ends of a run fewer words lie between two uses of one. */
static uint64_t reuse_of(uint64_t words, uint64_t lanes)
{
    return words > lanes * (lanes - 1) ? words - lanes * (lanes - 1) : 0;
}

/* Words that differ when pixels stream past a piece of the window.  If all elements of a fold belong to one place
 * of the filter, a word comes again when the next place has its turn, all channels later and a few pixels earlier. */
static uint64_t pixel_reuse(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    if (!orr__systolic_overlaps(s))
        return s->E * s->T;
    const uint64_t words = s->E * l->channels;
    const uint64_t back = (l->filter_height * s->out_w + l->filter_width) * s->R;
    return l->channels % s->R == 0 && words > back ? words - back : 0;
}

static uint64_t last_start(const orr__stream *st)
{
    return st->at(st, st->phases - 1).start;
}

static uint64_t ifmap_end(const orr__stream *st, uint64_t pixels)
{
    const orr_systolic_layer *l = st->s->layer;
    const uint64_t y = (pixels - 1) / st->s->out_w;
    const uint64_t line = l->ifmap_width * l->channels;
    const uint64_t last = st->walk ? st->walk[pixels - 1] : y * l->stride_height * line;
    const uint64_t window = (l->filter_height - 1) * line + l->filter_width * l->channels;
    const uint64_t columns =
        st->walk ? 0 : (st->s->out_w - 1) * l->stride_width * l->channels; /* no row ends later */
    return st->base + last + columns + window;
}

static void finish_stream(orr__stream *st, uint64_t lanes, uint64_t steps)
{
    st->lanes = lanes;
    st->longest = steps + (st->is_skewed ? lanes - 1 : 0);
    st->finish = last_start(st) + st->longest;
}

static void v1_os_streams(const orr__systolic *s, orr__stream *ifmap, orr__stream *filter)
{
    const orr__os_folds g = orr__systolic_v1_os(s);
    ifmap->f = filter->f = g.f;
    ifmap->objects_are_lanes = filter->objects_are_lanes = true;
    ifmap->is_skewed = filter->is_skewed = true;
    ifmap->inner = g.f.inner;
    filter->inner = g.repeats;
    ifmap->phases = g.f.outer * ifmap->inner;
    filter->phases = g.f.outer * filter->inner;
    ifmap->at = v1_os_ifmap;
    filter->at = v1_os_filter;
    finish_stream(ifmap, orr__min(s->R, s->E), s->T);
    finish_stream(filter, orr__min(s->C, s->N), s->T);
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

static void v1_folded_streams(const orr__systolic *s, orr__stream *load, orr__stream *pass)
{
    const uint64_t across = load->is_filter ? s->N : s->E;
    const uint64_t steps = pass->is_filter ? s->N : orr__systolic_v1_streamed(s);
    load->f = pass->f = orr__folds_of(s->T, across, s->R, s->C);
    load->inner = pass->inner = load->f.inner;
    load->phases = pass->phases = load->f.inner * load->f.outer;
    load->objects_are_lanes = true;
    pass->is_falling = true;
    load->at = v1_load;
    pass->at = v1_pass;
    finish_stream(load, orr__min(s->C, across), s->R);
    finish_stream(pass, s->R, steps);
    load->reuse = load->is_filter || !orr__systolic_overlaps(s) ? UINT64_MAX : 0;
    load->distinct = load->is_filter ? s->N * s->T : orr__systolic_distinct(s, 0, s->E, 0, s->T);
    if (pass->is_filter) { /* the next column fold asks for each filter one step earlier */
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

static void v1_stacked_streams(const orr__systolic *s, orr__stream *load, orr__stream *pass)
{
    const uint64_t across = load->is_filter ? s->N : s->E;
    const uint64_t stack = s->R / s->T, folds = orr__cdiv(across, stack * s->C);
    load->inner = pass->inner = stack;
    load->pitch = pass->pitch = orr__systolic_v1_stacked(s, orr__min(across, stack * s->C));
    load->phases = (folds - 1) * stack + orr__cdiv(stacked_left(load, folds - 1), s->C);
    pass->phases = folds;
    load->objects_are_lanes = true;
    pass->is_falling = true;
    load->at = v1_stacked_load;
    pass->at = v1_stacked_pass;
    finish_stream(load, orr__min(s->C, across), s->T);
    finish_stream(pass, orr__min(stack, orr__cdiv(across, s->C)) * s->T,
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

void orr__streams_v1(const orr__systolic *s,
                     const uint64_t *walk,
                     orr__stream *ifmap,
                     orr__stream *filter)
{
    const orr_dataflow flow = s->array->dataflow;
    *ifmap = (orr__stream){.s = s};
    *filter = (orr__stream){.s = s, .is_filter = true, .base = s->array->filter_offset};
    ifmap->base = flow == ORR_DATAFLOW_IS ? s->array->ifmap_offset : 0;
    ifmap->walk = walk;
    ifmap->walk_count = orr__systolic_v1_streamed(s);
    if (flow == ORR_DATAFLOW_OS)
        v1_os_streams(s, ifmap, filter);
    else if (s->T > s->R)
        v1_folded_streams(s, flow == ORR_DATAFLOW_WS ? filter : ifmap,
                          flow == ORR_DATAFLOW_WS ? ifmap : filter);
    else
        v1_stacked_streams(s, flow == ORR_DATAFLOW_WS ? filter : ifmap,
                           flow == ORR_DATAFLOW_WS ? ifmap : filter);
    const bool is_folded_ws = flow == ORR_DATAFLOW_WS && s->T > s->R;
    ifmap->end = ifmap_end(ifmap, is_folded_ws ? orr__systolic_v1_streamed(s) : s->E);
    const bool drifts = flow == ORR_DATAFLOW_IS && s->T > s->R;
    filter->end = filter->base + (s->N + (drifts ? filter->f.outer - 1 : 0)) * s->T;
}

/* ---- v2 ---- */

static orr__phase v2_os_ifmap(const orr__stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (orr__phase){i * st->pitch, h * st->s->R, orr__fold_rows(&st->f, h), 0, st->s->T, 1};
}

static orr__phase v2_os_filter(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner;
    return (orr__phase){i * st->pitch, v * st->s->C, orr__fold_columns(&st->f, v), 0, st->s->T, 1};
}

/* The bottom row's words go in first; rows that are not used would have come before them. */
static orr__phase v2_load(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, h = i % st->inner, rows = orr__fold_rows(&st->f, h);
    return (orr__phase){i * st->pitch + st->s->R - rows,
                        v * st->s->C,
                        orr__fold_columns(&st->f, v),
                        h * st->s->R,
                        rows,
                        1};
}

static orr__phase v2_pass(const orr__stream *st, uint64_t i)
{
    const uint64_t h = i % st->inner;
    return (orr__phase){
        i * st->pitch + st->s->R,  0, st->is_filter ? st->s->N : st->s->E, h * st->s->R,
        orr__fold_rows(&st->f, h), 1};
}

static void v2_os_streams(const orr__systolic *s, orr__stream *ifmap, orr__stream *filter)
{
    ifmap->objects_are_lanes = filter->objects_are_lanes = true;
    ifmap->is_skewed = filter->is_skewed = true;
    ifmap->at = v2_os_ifmap;
    filter->at = v2_os_filter;
    finish_stream(ifmap, orr__min(s->R, s->E), s->T);
    finish_stream(filter, orr__min(s->C, s->N), s->T);
    ifmap->reuse = orr__systolic_overlaps(s) || ifmap->hangs_over ? 0 : s->E * s->T;
    ifmap->distinct = orr__systolic_distinct(s, 0, s->E, 0, s->T);
    filter->distinct = s->N * s->T;
    ifmap->span = ifmap->finish;
    ifmap->period = ifmap->inner * ifmap->pitch;
    filter->reuse = filter->f.last_columns * s->T;
    filter->span = filter->inner * filter->pitch;
    filter->period = filter->pitch;
}

static void v2_fixed_streams(const orr__systolic *s, orr__stream *load, orr__stream *pass)
{
    load->objects_are_lanes = load->is_falling = true;
    pass->is_skewed = true;
    load->at = v2_load;
    pass->at = v2_pass;
    const uint64_t rows = orr__min(s->R, s->T);
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

void orr__streams_v2(const orr__systolic *s, orr__stream *ifmap, orr__stream *filter)
{
    uint64_t steps;
    orr__stream common = {.s = s, .f = orr__systolic_true_folds(s, &steps)};
    common.inner = common.f.inner;
    common.phases = common.f.inner * common.f.outer;
    common.pitch = orr__systolic_v2_fold_cycles(s);
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
