/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2_fetch.c - the circular order of v2's prefetches (scale-sim.md 6.4), by its formula.
 *
 * The operand is a matrix: for each of its folds `steps` rows, one below the other; columns are lanes of the array.
 * What is loaded is fetched row by row; what streams in skewed, along the diagonals, each from its lowest row up:
 *
 *          lane 0  1  2
 *     row 0     0  2  5          A line of the schedule asks for a part of one diagonal, and the next line for a
 *     row 1     1  4  8          part of the next one, so within a fold the places that are asked for only rise,
 *     row 2     3  7  ..         and the one at which they leave the window is found by bisection.
 *
 * Places without a word (lanes that are not used, elements outside the ifmap) do not count when the order is cut into
 * sets.  Where windows overlap, a word has several places, and any of them will do: then elements outside the
 * window are looked at one by one.
 * Cost: logarithmic for each move of the window; with overlapping windows also the elements that are only there under
 * another pixel; where the stride does not divide, two bits for each place of the order. */
#include "ss_impl.h"

#include "base/memory/memory.h"

enum { SETS = 100 };

struct ss_fetch {
    const ss_stream *st;
    const orr__systolic *s;
    bool is_skewed;
    bool folds_are_columns; /* of the operand: column folds; otherwise row folds */
    bool objects_are_lanes;
    bool has_copies; /* a word may have several places */
    uint64_t lanes, steps, folds, last_lanes;
    uint64_t *there;  /* when some elements do not exist: a bit for each place, in order; or NULL */
    uint64_t *before; /* how many are set before each word of them */
    uint64_t set;     /* words of a set */
    uint64_t sets, window, stride;
    uint64_t start;             /* the first set of the window */
    uint64_t phase, line, lane; /* the next element to look at */
};

/* An element of the matrix. */
typedef struct place {
    uint64_t fold, step, lane;
} place;

/* ---- places and elements ---- */

static uint64_t used_lanes(const ss_fetch *f, uint64_t fold)
{
    return fold + 1 < f->folds ? f->lanes : f->last_lanes;
}

static place place_of(const ss_fetch *f, uint64_t object, uint64_t k)
{
    const uint64_t lane = f->objects_are_lanes ? object : k;
    return (place){lane / f->lanes, f->objects_are_lanes ? k : object, lane % f->lanes};
}

static uint64_t object_of(const ss_fetch *f, const place *p)
{
    return f->objects_are_lanes ? p->fold * f->lanes + p->lane : p->step;
}

static uint64_t element_of(const ss_fetch *f, const place *p)
{
    return f->objects_are_lanes ? p->step : p->fold * f->lanes + p->lane;
}

/* A pixel's element in the ifmap: row and column there. */
typedef struct spot {
    uint64_t y, x, channel;
} spot;

static spot spot_of(const orr__systolic *s, uint64_t pixel, uint64_t k)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t row = l->filter_width * l->channels;
    return (spot){pixel / s->out_w * l->stride_height + k / row,
                  pixel % s->out_w * l->stride_width + k % row / l->channels, k % l->channels};
}

static bool exists(const ss_fetch *f, const place *p)
{
    if (p->lane >= used_lanes(f, p->fold))
        return false;
    if (!f->st->hangs_over)
        return true;
    const spot at = spot_of(f->s, object_of(f, p), element_of(f, p));
    return at.y < f->s->layer->ifmap_height && at.x < f->s->layer->ifmap_width;
}

/* ---- the order ---- */

/* Pairs of a lane and a row with lane + row < diagonal. */
static uint64_t below_diagonal(uint64_t lanes, uint64_t rows, uint64_t diagonal)
{
    const ss_stream skewed = {.is_skewed = true, .objects_are_lanes = true};
    const ss_phase p = {.objects = lanes, .ks = rows};
    return lanes && rows ? ss_phase_before(&skewed, &p, diagonal) : 0;
}

/* Lanes below `lane` that meet the diagonal in rows [from, from + rows). */
static uint64_t on_diagonal(uint64_t lane, uint64_t diagonal, uint64_t from, uint64_t rows)
{
    if (diagonal < from)
        return 0;
    const uint64_t high = orr__min(lane, diagonal - from + 1);
    const uint64_t low = diagonal - from >= rows ? diagonal - from - rows + 1 : 0;
    return high > low ? high - low : 0;
}

/* The number of a place, empty ones counted. */
static uint64_t place_number(const ss_fetch *f, const place *p)
{
    const uint64_t row = p->fold * f->steps + p->step, rows = f->folds * f->steps;
    if (!f->is_skewed)
        return row * f->lanes + p->lane;
    return below_diagonal(f->lanes, rows, row + p->lane) +
           on_diagonal(p->lane, row + p->lane, 0, rows);
}

/* How many words come before this place. */
static uint64_t order_of(const ss_fetch *f, const place *p)
{
    if (f->there) {
        const uint64_t at = place_number(f, p);
        const uint64_t below = f->there[at / 64] & (((uint64_t)1 << (at % 64)) - 1);
        return f->before[at / 64] + (uint64_t)__builtin_popcountll(below);
    }
    if (!f->is_skewed)
        return p->fold * f->steps * f->lanes + p->step * used_lanes(f, p->fold) + p->lane;
    /* Two rectangles: all folds but the last are as wide as the array. */
    const uint64_t row = p->fold * f->steps + p->step;
    const uint64_t full = (f->folds - 1) * f->steps, diagonal = row + p->lane;
    const uint64_t last = diagonal > full ? diagonal - full : 0;
    return below_diagonal(f->lanes, full, diagonal) +
           below_diagonal(f->last_lanes, f->steps, last) + on_diagonal(p->lane, diagonal, 0, full) +
           on_diagonal(orr__min(p->lane, f->last_lanes), diagonal, full, f->steps);
}

static void clear_place(ss_fetch *f, const place *p)
{
    const uint64_t at = place_number(f, p);
    f->there[at / 64] &= ~((uint64_t)1 << (at % 64));
}

/* Only the last row of pixels and the last of each row can hang over. */
static void clear_outside(ss_fetch *f)
{
    const orr__systolic *s = f->s;
    for (uint64_t pixel = 0; pixel < s->E; pixel++) {
        const uint64_t y = pixel / s->out_w, x = pixel % s->out_w;
        if (y + 1 < s->out_h && x + 1 < s->out_w) {
            pixel = (y + 1) * s->out_w - 2; /* on to the last of the row */
            continue;
        }
        for (uint64_t k = 0; k < s->T; k++) {
            const place p = place_of(f, pixel, k);
            if (!exists(f, &p))
                clear_place(f, &p);
        }
    }
}

static bool count_before(ss_fetch *f)
{
    const uint64_t places = f->folds * f->steps * f->lanes, words = places / 64 + 1;
    f->there = orr_alloc(words, sizeof *f->there);
    f->before = orr_alloc(words + 1, sizeof *f->before);
    if (!f->there || !f->before)
        return false;
    for (uint64_t i = 0; i < places / 64; i++)
        f->there[i] = UINT64_MAX;
    f->there[places / 64] = ((uint64_t)1 << (places % 64)) - 1;
    for (uint64_t step = 0; step < f->steps; step++)
        for (uint64_t lane = f->last_lanes; lane < f->lanes; lane++)
            clear_place(f, &(place){f->folds - 1, step, lane});
    clear_outside(f);
    for (uint64_t i = 0; i < words; i++)
        f->before[i + 1] = f->before[i] + (uint64_t)__builtin_popcountll(f->there[i]);
    return true;
}

/* ---- the window ---- */

static uint64_t distance(const ss_fetch *f, uint64_t set)
{
    return set >= f->start ? set - f->start : set + f->sets - f->start;
}

/* The first place in the order, at or behind a set that is inside, that is not; UINT64_MAX: none. */
static uint64_t window_end(const ss_fetch *f, uint64_t set)
{
    const uint64_t end = set >= f->start ? f->start + f->window : f->start + f->window - f->sets;
    return end >= f->sets ? UINT64_MAX : end * f->set;
}

/* Steps until a set at this distance is inside; they are made. */
static uint64_t move_window(ss_fetch *f, uint64_t far)
{
    const uint64_t moves = (far - f->window) / f->stride + 1;
    f->start = (f->start + moves % f->sets * f->stride) % f->sets;
    return moves;
}

/* The distance of the nearest place of this word, under whatever pixel; the first that is inside will do. */
static uint64_t nearest(const ss_fetch *f, const place *p, place *found)
{
    const orr__systolic *s = f->s;
    const orr_systolic_layer *l = s->layer;
    const spot at = spot_of(s, object_of(f, p), element_of(f, p));
    const uint64_t y_from =
        at.y < l->filter_height ? 0 : (at.y - l->filter_height) / l->stride_height + 1;
    const uint64_t x_from =
        at.x < l->filter_width ? 0 : (at.x - l->filter_width) / l->stride_width + 1;
    uint64_t best = UINT64_MAX;
    for (uint64_t y = y_from; y < s->out_h && y * l->stride_height <= at.y; y++)
        for (uint64_t x = x_from; x < s->out_w && x * l->stride_width <= at.x; x++) {
            const uint64_t fy = at.y - y * l->stride_height, fx = at.x - x * l->stride_width;
            const place other = place_of(f, y * s->out_w + x,
                                         (fy * l->filter_width + fx) * l->channels + at.channel);
            best = orr__min(best, distance(f, order_of(f, &other) / f->set));
            *found = other;
            if (best < f->window)
                return best;
        }
    return best;
}

/* ---- the schedule ---- */

/* What the current phase asks for. */
typedef struct part {
    uint64_t start; /* its first line */
    uint64_t fold;  /* of the operand */
    uint64_t lanes, steps, k, ks;
} part;

static part part_of(const ss_fetch *f, uint64_t phase)
{
    const ss_phase p = f->st->at(f->st, phase);
    part out = {.start = p.start, .k = p.k, .ks = p.ks};
    out.fold = f->folds_are_columns ? phase / f->st->inner : phase % f->st->inner;
    out.lanes = f->st->objects_are_lanes ? p.objects : p.ks;
    out.steps = f->st->objects_are_lanes ? p.ks : p.objects;
    return out;
}

static uint64_t part_lines(const ss_fetch *f, const part *p)
{
    return f->is_skewed ? p->steps + p->lanes - 1 : p->steps;
}

/* Lanes [*from, result) have a word in this line. */
static uint64_t line_lanes(const ss_fetch *f, const part *p, uint64_t line, uint64_t *from)
{
    *from = f->is_skewed && line >= p->steps ? line - p->steps + 1 : 0;
    return f->is_skewed ? orr__min(p->lanes, line + 1) : p->lanes;
}

static place place_at(const ss_fetch *f, const part *p, uint64_t line, uint64_t lane)
{
    const uint64_t step = f->is_skewed ? line - lane : p->k + p->ks - 1 - line;
    return (place){p->fold, step, lane};
}

/* The first lane of a line, from `from` on, whose place is at or behind `target`; `behind`: none. */
static uint64_t search_lane(const ss_fetch *f,
                            const part *p,
                            uint64_t line,
                            uint64_t from,
                            uint64_t behind,
                            uint64_t target)
{
    while (from < behind) {
        const uint64_t mid = from + (behind - from) / 2;
        const place at = place_at(f, p, line, mid);
        if (order_of(f, &at) >= target)
            behind = mid;
        else
            from = mid + 1;
    }
    return from;
}

static bool reaches(const ss_fetch *f, const part *p, uint64_t line, uint64_t target)
{
    uint64_t from;
    const uint64_t behind = line_lanes(f, p, line, &from);
    const place last = place_at(f, p, line, behind - 1);
    return order_of(f, &last) >= target;
}

/* Everything up to the first element at or behind `target` is inside: go there, or to the phase's end. */
static void skip_to(ss_fetch *f, const part *p, uint64_t target)
{
    const uint64_t lines = part_lines(f, p);
    uint64_t from, behind = line_lanes(f, p, f->line, &from);
    from = orr__max(from, f->lane);
    f->lane = target == UINT64_MAX ? behind : search_lane(f, p, f->line, from, behind, target);
    if (f->lane < behind)
        return;
    f->lane = 0;
    if (!f->is_skewed) { /* the next line has earlier places: it is looked at by itself */
        f->line++;
        return;
    }
    uint64_t lo = f->line + 1, hi = lines;
    while (lo < hi && target != UINT64_MAX) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (reaches(f, p, mid, target))
            hi = mid;
        else
            lo = mid + 1;
    }
    f->line = target == UINT64_MAX ? lines : lo;
    if (f->line < lines) {
        behind = line_lanes(f, p, f->line, &from);
        f->lane = search_lane(f, p, f->line, from, behind, target);
    }
}

/* The element under `own` is inside as `copy`.  For how many lanes, this one included, do both go on side by side?
 * Along a line the pixel rises and the element falls (os), or the other way round (ws), or the pixel alone rises
 * (is, loading); the two stay copies of one word until a row of pixels or the channels end. */
static uint64_t lanes_together(const ss_fetch *f, const place *own, const place *copy)
{
    const uint64_t channels = f->s->layer->channels, width = f->s->out_w;
    const uint64_t x = object_of(f, own) % width, other_x = object_of(f, copy) % width;
    const uint64_t channel = element_of(f, own) % channels;
    uint64_t run = used_lanes(f, copy->fold) - copy->lane;
    if (f->objects_are_lanes)
        run = orr__min(run, width - orr__max(x, other_x));
    else
        run = orr__min(run, orr__min(x, other_x) + 1);
    if (f->is_skewed)
        run = orr__min(run, f->objects_are_lanes ? channel + 1 : channels - channel);
    const uint64_t at = order_of(f, copy), end = window_end(f, at / f->set);
    return end == UINT64_MAX ? run : orr__min(run, end - at);
}

/* Look at the element at f->line, f->lane, which exists as a place of the schedule.  True: the window moved. */
static bool look(ss_fetch *f, const part *p, uint64_t *moves)
{
    const place at = place_at(f, p, f->line, f->lane);
    if (f->st->hangs_over && !exists(f, &at)) {
        f->lane++;
        return false;
    }
    const uint64_t set = order_of(f, &at) / f->set;
    if (distance(f, set) < f->window) {
        skip_to(f, p, window_end(f, set));
        return false;
    }
    place copy = at;
    const uint64_t far = f->has_copies ? nearest(f, &at, &copy) : distance(f, set);
    f->lane += far < f->window ? lanes_together(f, &at, &copy) : 1;
    if (far < f->window)
        return false;
    *moves = move_window(f, far);
    return true;
}

bool ss_fetch_next(ss_fetch *f, uint64_t *line, uint64_t *moves)
{
    while (f->stride && f->phase < f->st->phases) {
        const part p = part_of(f, f->phase);
        const uint64_t lines = part_lines(f, &p);
        while (f->line < lines) {
            uint64_t from;
            const uint64_t behind = line_lanes(f, &p, f->line, &from);
            f->lane = orr__max(f->lane, from);
            if (f->lane >= behind) {
                f->line++;
                f->lane = 0;
                continue;
            }
            *line = p.start + f->line;
            if (look(f, &p, moves))
                return true;
        }
        f->phase++;
        f->line = f->lane = 0;
    }
    return false;
}

/* ---- setting up ---- */

uint64_t ss_fetch_places(const ss_fetch *f)
{
    return f->folds * f->steps * f->lanes;
}

static void set_shape(ss_fetch *f)
{
    const orr__folds *folds = &f->st->f;
    const bool is_os = f->s->array->dataflow == ORR_DATAFLOW_OS;
    f->is_skewed = f->st->is_skewed;
    f->objects_are_lanes = f->st->objects_are_lanes;
    /* Output stationary rows are pixels and columns filters; otherwise columns hold what is loaded. */
    f->folds_are_columns = is_os ? f->st->is_filter : !f->is_skewed;
    f->lanes = f->folds_are_columns ? f->s->C : f->s->R;
    f->folds = f->folds_are_columns ? folds->outer : folds->inner;
    f->last_lanes = f->folds_are_columns ? folds->last_columns : folds->last_rows;
    f->steps = f->objects_are_lanes ? f->s->T : f->st->is_filter ? f->s->N : f->s->E;
    f->has_copies = !f->st->is_filter && orr__systolic_overlaps(f->s);
}

static void set_window(ss_fetch *f, uint64_t size)
{
    const uint64_t active = orr__cdiv(size, 2);
    const uint64_t places = f->folds * f->steps * f->lanes;
    const uint64_t words = f->there
                               ? f->before[places / 64 + 1]
                               : (f->folds - 1) * f->steps * f->lanes + f->steps * f->last_lanes;
    f->set = orr__cdiv(size, SETS);
    f->sets = words / f->set + 1;
    f->window = orr__min(f->sets, orr__cdiv(active, f->set));
    f->stride = orr__min(f->sets - f->window, orr__cdiv(size - active, f->set));
}

orr_code ss_fetch_open(const ss_stream *st, uint64_t size, ss_fetch **out, orr_error *err)
{
    *out = NULL;
    ss_fetch *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    f->st = st;
    f->s = st->s;
    set_shape(f);
    if (st->hangs_over && !count_before(f)) {
        ss_fetch_close(f);
        return orr_no_memory(err);
    }
    set_window(f, size);
    *out = f;
    return ORR_OK;
}

void ss_fetch_close(ss_fetch *f)
{
    if (!f)
        return;
    orr_free(f->there);
    orr_free(f->before);
    orr_free(f);
}
