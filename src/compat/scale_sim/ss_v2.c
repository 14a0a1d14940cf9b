/* SPDX-License-Identifier: Apache-2.0 */
/* ss_v2.c - all figures of SCALE-Sim v2's reports, including its defects (scale-sim.md 6).
 *
 * Compute figures are closed forms.  Without a bandwidth (CALC) the read buffers never wait: fifty
 * of a hundred sets are filled word by word and then dropped at once, which is what ss_fill.c
 * does.  The output buffer drains as fast as the array writes, so nothing stalls: a drain of n
 * lines starts with more than n - 1 lines freed, and no more than that are written in the n - 1
 * cycles until it ends. */
#include "base/memory/memory.h"
#include "scale_sim.h"
#include "ss_impl.h"

typedef struct ss_lines ss_lines;
typedef struct ss_fetch ss_fetch;
static void ss_fetch_close(ss_fetch *f);

/* ==== the circular prefetch order of v2 (scale-sim.md 6.4).
 *
 * The operand is a matrix: `steps` rows per fold, folds below each other; columns are lanes of the
 * array.  A loaded operand is fetched row by row, a streamed one along the diagonals, each from the
 * bottom up:
 *
 *          lane 0  1  2
 *     row 0     0  2  5      A schedule line requests part of one diagonal, the next line part of
 *     row 1     1  4  8      the next one.  So within a fold the requested slots only ascend, and
 *     row 2     3  7  ..     bisection finds the first one outside the window.
 *
 * Slots without a word (unused lanes, elements outside the ifmap) do not count when the order is
 * divided into sets.  Where windows overlap, a word has several slots, any of which will do; then
 * elements outside the window are checked one by one.  Cost: logarithmic per move of the window;
 * with overlapping windows also the elements found only under another pixel; if the stride leaves a
 * remainder, two bits per slot. */

enum { SETS = 100, HALF = SETS / 2 };

/* v2's read buffers with a bandwidth: the order in which words are fetched, and the schedule lines
 * that request missing ones.
 *
 * All words of an operand have a slot in one circular order, that of the first pass over it, which
 * is divided into sets.  A window of sets is in the buffer; a word outside makes it advance until
 * it is inside.  When that happens depends on the order only, never on the clock. */
struct ss_fetch {
    const ss_stream *st;
    const orr__systolic *s;
    bool is_skewed;
    bool folds_are_columns; /* of the operand: column folds, otherwise row folds */
    bool objects_are_lanes;
    bool has_copies; /* a word may have several slots */
    uint64_t lanes, steps, folds, last_lanes;
    uint64_t *there;  /* if some elements do not exist: one bit per slot, in order; else NULL */
    uint64_t *before; /* bits set before each word of `there` */
    uint64_t set;     /* words per set */
    uint64_t sets, window, stride;
    uint64_t start;             /* first set of the window */
    uint64_t phase, line, lane; /* the next element to check */
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

/* A pixel's element in ifmap coordinates. */
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

/* Pairs of lane and row with lane + row < diagonal. */
static uint64_t below_diagonal(uint64_t lanes, uint64_t rows, uint64_t diagonal)
{
    const ss_stream skewed = {.is_skewed = true, .objects_are_lanes = true};
    const ss_phase p = {.objects = lanes, .ks = rows};
    return lanes && rows ? ss_phase_before(&skewed, &p, diagonal) : 0;
}

/* Lanes below `lane` that cross the diagonal in rows [from, from + rows). */
static uint64_t on_diagonal(uint64_t lane, uint64_t diagonal, uint64_t from, uint64_t rows)
{
    if (diagonal < from)
        return 0;
    const uint64_t high = orr_min_u64(lane, diagonal - from + 1);
    const uint64_t low = diagonal - from >= rows ? diagonal - from - rows + 1 : 0;
    return high > low ? high - low : 0;
}

/* Index of a slot, counting empty ones. */
static uint64_t place_number(const ss_fetch *f, const place *p)
{
    const uint64_t row = p->fold * f->steps + p->step, rows = f->folds * f->steps;
    if (!f->is_skewed)
        return row * f->lanes + p->lane;
    return below_diagonal(f->lanes, rows, row + p->lane) +
           on_diagonal(p->lane, row + p->lane, 0, rows);
}

/* Words before this slot. */
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
           on_diagonal(orr_min_u64(p->lane, f->last_lanes), diagonal, full, f->steps);
}

static void clear_place(ss_fetch *f, const place *p)
{
    const uint64_t at = place_number(f, p);
    f->there[at / 64] &= ~((uint64_t)1 << (at % 64));
}

/* Only the last row of pixels and the last pixel of each row can overhang. */
static void clear_outside(ss_fetch *f)
{
    const orr__systolic *s = f->s;
    for (uint64_t pixel = 0; pixel < s->E; pixel++) {
        const uint64_t y = pixel / s->out_w, x = pixel % s->out_w;
        if (y + 1 < s->out_h && x + 1 < s->out_w) {
            pixel = (y + 1) * s->out_w - 2; /* skip to the last of the row */
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

/* The first slot outside the window, from a set inside on; UINT64_MAX: none. */
static uint64_t window_end(const ss_fetch *f, uint64_t set)
{
    const uint64_t end = set >= f->start ? f->start + f->window : f->start + f->window - f->sets;
    return end >= f->sets ? UINT64_MAX : end * f->set;
}

/* Advance the window until a set at this distance is inside; returns the steps. */
static uint64_t move_window(ss_fetch *f, uint64_t far)
{
    const uint64_t moves = (far - f->window) / f->stride + 1;
    f->start = (f->start + moves % f->sets * f->stride) % f->sets;
    return moves;
}

/* Distance of the nearest slot of this word, under any pixel; the first one inside wins. */
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
            best = orr_min_u64(best, distance(f, order_of(f, &other) / f->set));
            *found = other;
            if (best < f->window)
                return best;
        }
    return best;
}

/* ---- the schedule ---- */

/* What the current phase requests. */
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
    return f->is_skewed ? orr_min_u64(p->lanes, line + 1) : p->lanes;
}

static place place_at(const ss_fetch *f, const part *p, uint64_t line, uint64_t lane)
{
    const uint64_t step = f->is_skewed ? line - lane : p->k + p->ks - 1 - line;
    return (place){p->fold, step, lane};
}

/* The first lane of a line from `from` on whose slot is at or after `target`; `behind`: none. */
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

/* Everything before the first element at or after `target` is inside: skip to it, or to the end of
 * the phase. */
static void skip_to(ss_fetch *f, const part *p, uint64_t target)
{
    const uint64_t lines = part_lines(f, p);
    uint64_t from, behind = line_lanes(f, p, f->line, &from);
    from = orr_max_u64(from, f->lane);
    f->lane = target == UINT64_MAX ? behind : search_lane(f, p, f->line, from, behind, target);
    if (f->lane < behind)
        return;
    f->lane = 0;
    if (!f->is_skewed) { /* the next line has earlier slots and is checked by itself */
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

/* Element `own` is inside as `copy`.  For how many lanes, including this one, do both run in
 * parallel?  Along a line the pixel ascends and the element descends (os), or vice versa (ws), or
 * only the pixel ascends (is, loading); they remain copies of one word until a row of pixels or the
 * channels end. */
static uint64_t lanes_together(const ss_fetch *f, const place *own, const place *copy)
{
    const uint64_t channels = f->s->layer->channels, width = f->s->out_w;
    const uint64_t x = object_of(f, own) % width, other_x = object_of(f, copy) % width;
    const uint64_t channel = element_of(f, own) % channels;
    uint64_t run = used_lanes(f, copy->fold) - copy->lane;
    if (f->objects_are_lanes)
        run = orr_min_u64(run, width - orr_max_u64(x, other_x));
    else
        run = orr_min_u64(run, orr_min_u64(x, other_x) + 1);
    if (f->is_skewed)
        run = orr_min_u64(run, f->objects_are_lanes ? channel + 1 : channels - channel);
    const uint64_t at = order_of(f, copy), end = window_end(f, at / f->set);
    return end == UINT64_MAX ? run : orr_min_u64(run, end - at);
}

/* Check the element at f->line, f->lane, which has a slot.  True: the window moved. */
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

/* The next line that requests a word outside the window, and the steps the window takes for it;
 * several of one line are returned one by one.  False: no more. */
static bool ss_fetch_next(ss_fetch *f, uint64_t *line, uint64_t *moves)
{
    while (f->stride && f->phase < f->st->phases) {
        const part p = part_of(f, f->phase);
        const uint64_t lines = part_lines(f, &p);
        while (f->line < lines) {
            uint64_t from;
            const uint64_t behind = line_lanes(f, &p, f->line, &from);
            f->lane = orr_max_u64(f->lane, from);
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

/* ---- setup ---- */

/* Slots of the circular order, including empty ones. */
static uint64_t ss_fetch_places(const ss_fetch *f)
{
    return f->folds * f->steps * f->lanes;
}

static void set_shape(ss_fetch *f)
{
    const orr__folds *folds = &f->st->f;
    const bool is_os = f->s->array->dataflow == ORR_DATAFLOW_OS;
    f->is_skewed = f->st->is_skewed;
    f->objects_are_lanes = f->st->objects_are_lanes;
    /* os: rows are pixels and columns are filters; otherwise columns hold what is loaded. */
    f->folds_are_columns = is_os ? f->st->is_filter : !f->is_skewed;
    f->lanes = f->folds_are_columns ? f->s->C : f->s->R;
    f->folds = f->folds_are_columns ? folds->outer : folds->inner;
    f->last_lanes = f->folds_are_columns ? folds->last_columns : folds->last_rows;
    f->steps = f->objects_are_lanes ? f->s->T : f->st->is_filter ? f->s->N : f->s->E;
    f->has_copies = !f->st->is_filter && orr__systolic_overlaps(f->s);
}

static void set_window(ss_fetch *f, uint64_t size)
{
    const uint64_t active = orr_div_up(size, 2);
    const uint64_t places = f->folds * f->steps * f->lanes;
    const uint64_t words = f->there
                               ? f->before[places / 64 + 1]
                               : (f->folds - 1) * f->steps * f->lanes + f->steps * f->last_lanes;
    f->set = orr_div_up(size, SETS);
    f->sets = words / f->set + 1;
    f->window = orr_min_u64(f->sets, orr_div_up(active, f->set));
    f->stride = orr_min_u64(f->sets - f->window, orr_div_up(size - active, f->set));
}

static orr_code ss_fetch_open(const ss_stream *st, uint64_t size, ss_fetch **out, orr_error *err)
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

/* NULL is fine. */
static void ss_fetch_close(ss_fetch *f)
{
    if (!f)
        return;
    orr_free(f->there);
    orr_free(f->before);
    orr_free(f);
}

/* ---- the output buffer and the reports ---- */

enum { FIRST_RATE = 10, MOST_TERMS = 1 << 22 };

/* v2's output buffer (scale-sim.md 6.3), from event to event.
 *
 * Outputs are packed into memory lines.  When less than half of the buffer is free, half of it is
 * drained, one line per cycle; no other drain starts until that ends, and a word without space
 * waits for it.  A drain closes the line being packed, however full; only the last line of a drain
 * is counted by its contents.  The number of words written up to a schedule line has a closed form,
 * so the word that starts a drain is found without visiting the earlier ones.  Cost: logarithmic
 * per drain, plus the words of the line it starts in. */

/* Lines that were closed together: full ones, then perhaps a partial one. */
typedef struct batch {
    uint64_t full, partial;
} batch;

/* The output buffer (scale-sim.md 6.3).  Time is counted in two ways: a `line` is a cycle of the
 * array as if it never waited; it happens in cycle line + stalls so far. */
struct ss_lines {
    ss_stream st; /* the output */
    ss_counter at;
    uint64_t words;  /* in total */
    uint64_t stored; /* so far */
    uint64_t line;   /* words per line */
    int64_t free;
    int64_t low;      /* a drain starts below this */
    uint64_t drained; /* most lines per drain */
    uint64_t open;    /* words in lines not yet closed by a drain */
    batch *batches;   /* closed lines, oldest first, from `head` on */
    size_t head, count, room;
    uint64_t busy;         /* last cycle of the drain */
    uint64_t asked, found; /* the last query of line_of() and its answer */
    bool has_begun, has_failed;
    bool is_v3; /* report the last cycle of any drain, not of the last one */
    orr_systolic_traffic out;
};

/* ---- the output stream ---- */

/* Output stationary results leave at the bottom; unused rows would come first. */
static ss_phase os_out(const ss_stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, rows = orr__fold_rows(&st->f, i % st->inner);
    return (ss_phase){i * st->pitch + st->s->T - 1 + st->s->R - rows,
                      0,
                      orr__fold_columns(&st->f, v),
                      0,
                      rows,
                      1};
}

static ss_phase fixed_out(const ss_stream *st, uint64_t i)
{
    const orr__systolic *s = st->s;
    return (ss_phase){i * st->pitch + 2 * s->R - 1,
                      0,
                      orr__fold_columns(&st->f, i / st->inner),
                      0,
                      s->array->dataflow == ORR_DATAFLOW_WS ? s->E : s->N,
                      1};
}

static ss_stream outputs(const orr__systolic *s)
{
    uint64_t steps;
    ss_stream st = {.s = s, .objects_are_lanes = true, .is_skewed = true};
    const bool is_os = s->array->dataflow == ORR_DATAFLOW_OS;
    st.f = orr__systolic_true_folds(s, &steps);
    st.inner = st.f.inner;
    st.phases = st.f.inner * st.f.outer;
    st.pitch = ss_v2_fold_cycles(s);
    st.at = is_os ? os_out : fixed_out;
    st.lanes = st.f.outer > 1 ? st.f.columns : st.f.last_columns;
    st.longest = (is_os ? s->R : steps) + st.lanes - 1;
    return st;
}

static orr_code ss_lines_open(const orr__systolic *s,
                              uint64_t words_a_line,
                              ss_lines **out,
                              orr_error *err)
{
    const uint64_t size = s->array->ofmap_words;
    *out = NULL;
    ss_lines *b = orr_alloc(1, sizeof *b);
    if (!b)
        return orr_no_memory(err);
    b->st = outputs(s);
    b->at.st = &b->st;
    b->words = ss_stream_words(&b->st);
    b->line = words_a_line;
    b->free = (int64_t)size;
    b->low = (int64_t)orr_div_up(size, 2);
    b->drained = orr_div_up(size - orr_div_up(size, 2), words_a_line);
    b->asked = UINT64_MAX;
    *out = b;
    return ORR_OK;
}

static void ss_lines_close(ss_lines *b)
{
    if (b)
        orr_free(b->batches);
    orr_free(b);
}

static void ss_lines_ends(const ss_lines *b, uint64_t *first, uint64_t *last)
{
    const ss_phase p = b->st.at(&b->st, b->st.phases - 1);
    *first = b->st.at(&b->st, 0).start;
    *last = p.start + p.ks + p.objects - 2;
}

/* ---- draining ---- */

static void close_lines(ss_lines *b)
{
    if (b->open == 0)
        return;
    if (b->head > 0 && b->head == b->count)
        b->head = b->count = 0;
    if (!orr_grow(&b->batches, &b->room, b->count + 1)) {
        b->has_failed = true;
        return;
    }
    b->batches[b->count++] = (batch){b->open / b->line, b->open % b->line};
    b->open = 0;
}

/* Remove lines from the front; returns their number, and in *last the words of the last one. */
static uint64_t pop_lines(ss_lines *b, uint64_t *last)
{
    uint64_t taken = 0;
    while (taken < b->drained && b->head < b->count) {
        batch *front = &b->batches[b->head];
        const uint64_t full = orr_min_u64(front->full, b->drained - taken);
        taken += full;
        front->full -= full;
        if (full)
            *last = b->line;
        if (front->full == 0 && front->partial && taken < b->drained) {
            *last = front->partial;
            front->partial = 0;
            taken++;
        }
        if (front->full == 0 && front->partial == 0)
            b->head++;
    }
    return taken;
}

static void start_drain(ss_lines *b, uint64_t cycle)
{
    uint64_t last = 0;
    const uint64_t lines = pop_lines(b, &last);
    if (lines == 0)
        return;
    const uint64_t words = (lines - 1) * b->line + last;
    if (!b->has_begun)
        b->out.first = (int64_t)cycle;
    b->has_begun = true;
    b->busy = cycle + lines - 1;
    if (!b->is_v3 || b->out.last < (int64_t)b->busy)
        b->out.last = (int64_t)b->busy;
    b->out.words += words;
    b->free += (int64_t)words;
}

/* ---- events ---- */

/* The line that writes word n; n must exist. */
static uint64_t line_of(ss_lines *b, uint64_t n)
{
    if (b->asked != n) {
        ss_counter ahead = b->at;
        b->found = ss_counter_find(&ahead, n, 0);
        b->asked = n;
    }
    return b->found;
}

static uint64_t ss_lines_next(ss_lines *b, uint64_t stalls)
{
    const uint64_t spare = b->free > b->low ? (uint64_t)(b->free - b->low) : 0;
    const uint64_t low = b->stored + spare; /* the first word after which too little is free */
    if (low >= b->words)
        return UINT64_MAX;
    const uint64_t line = line_of(b, low);
    if (line + stalls >= b->busy)
        return line;
    /* A drain is still running then: does a word find the buffer full before it ends? */
    const uint64_t over = b->busy - stalls;
    const uint64_t full = b->stored + (b->free > 0 ? (uint64_t)(b->free - 1) : 0);
    const uint64_t after = ss_counter_before(&b->at, over);
    if (full < after)
        return line_of(b, full);
    return after < b->words ? line_of(b, after) : UINT64_MAX;
}

static void ss_lines_skip(ss_lines *b, uint64_t line)
{
    ss_counter_move(&b->at, line);
    const uint64_t stored = ss_counter_before(&b->at, line);
    b->open += stored - b->stored;
    b->free -= (int64_t)(stored - b->stored);
    b->stored = stored;
}

static uint64_t ss_lines_write(ss_lines *b, uint64_t line, uint64_t stalls)
{
    uint64_t cycle = line + stalls;
    ss_lines_skip(b, line);
    const uint64_t end = ss_counter_before(&b->at, line + 1);
    for (; b->stored < end; b->stored++) {
        b->open++;
        b->free--;
        if (cycle < b->busy) {
            cycle = b->free <= 0 ? b->busy : cycle;
        } else if (b->free < b->low) {
            close_lines(b);
            start_drain(b, cycle);
        }
    }
    return cycle - (line + stalls);
}

static orr_code ss_lines_finish(ss_lines *b,
                                uint64_t cycle,
                                orr_systolic_traffic *out,
                                orr_error *err)
{
    close_lines(b);
    while (b->head < b->count) {
        start_drain(b, cycle);
        cycle = b->busy + 1;
    }
    if (b->has_failed)
        return orr_no_memory(err);
    b->out.average = (double)b->out.words / (double)(b->out.last - b->out.first + 1);
    *out = b->out;
    return ORR_OK;
}

/* v2 with a bandwidth: the three buffers together, from event to event.
 *
 * A schedule line happens in cycle line + stalls.  Only a few lines matter: those in which a window
 * moves, in which outputs start to drain or find no space, and the first and last of each operand,
 * whose cycles are reported.  All others take one cycle.  Memory figures are those of the
 * reference: whole requests, however few words they contain. */

typedef struct reader {
    ss_stream st;
    ss_fetch *fetch;
    ss_words *words;      /* v3: replaces the two; or NULL */
    bool has_begun;       /* words have been requested from it */
    bool counts_twice;    /* v3: waits */
    uint64_t line, moves; /* the window's next move; UINT64_MAX: none */
    uint64_t first, last; /* lines in which words are requested */
    uint64_t request;     /* cycles per prefetch */
    uint64_t requests;    /* prefetches so far, without the first */
    orr_systolic_traffic *sram;
} reader;

typedef struct user {
    reader readers[2];
    ss_lines *lines;
    uint64_t first, last; /* lines in which outputs are written */
    uint64_t stalls;
    uint64_t end; /* of the schedule, in lines */
    uint64_t total;
    bool is_stuck; /* a word is never fetched */
    orr_systolic_result *out;
} user;

static void look_ahead(reader *r)
{
    if (!ss_fetch_next(r->fetch, &r->line, &r->moves))
        r->line = UINT64_MAX;
}

/* The cycle in which the last requested prefetch arrives. */
static int64_t prefetched(const reader *r)
{
    return (int64_t)(r->requests * (r->request + 1)) - 1;
}

static void move_on(reader *r, int64_t *served)
{
    if (r->counts_twice) {
        *served = ss_v3_served(*served, r->request, &r->requests, r->moves);
        return;
    }
    r->requests += r->moves;
    *served = prefetched(r) > *served ? prefetched(r) : *served;
}

/* Cycles this line waits for the operand; v3 may serve it too early, and then it does not wait. */
static uint64_t wait_of(int64_t served, uint64_t cycle)
{
    return served > (int64_t)cycle + 1 ? (uint64_t)served - cycle - 1 : 0;
}

static uint64_t read_line(reader *r, uint64_t line, uint64_t cycle)
{
    int64_t served = (int64_t)cycle + 1;
    while (r->line == line) {
        move_on(r, &served);
        look_ahead(r);
    }
    if (line == r->first)
        r->sram->first = served;
    if (line == r->last)
        r->sram->last = served;
    return wait_of(served, cycle);
}

static uint64_t read_words(user *u, reader *r, uint64_t line, uint64_t cycle)
{
    int64_t served = (int64_t)cycle + 1;
    bool has_words;
    if (!ss_words_serve(r->words, line, r->request, &r->requests, &served, &has_words))
        u->is_stuck = true;
    if (has_words && !r->has_begun)
        r->sram->first = served;
    if (has_words)
        r->sram->last = served;
    r->has_begun = r->has_begun || has_words;
    return wait_of(served, cycle);
}

static void do_line(user *u, uint64_t line)
{
    const uint64_t cycle = line + u->stalls;
    uint64_t late = 0;
    for (int i = 0; i < 2; i++) {
        reader *r = &u->readers[i];
        late =
            orr_max_u64(late, r->words ? read_words(u, r, line, cycle) : read_line(r, line, cycle));
    }
    const uint64_t write_late = ss_lines_write(u->lines, line, u->stalls);
    orr_systolic_traffic *sram = &u->out->sram[ORR_OPERAND_OFMAP];
    if (line == u->first)
        sram->first = (int64_t)(cycle + write_late);
    if (line == u->last)
        sram->last = (int64_t)(cycle + write_late);
    u->total = cycle + write_late;
    u->stalls += orr_max_u64(late, write_late);
}

/* The next line that matters, at or after `line`. */
static uint64_t next_line(user *u, uint64_t line)
{
    if (u->readers[0].words || u->readers[1].words)
        return line;
    uint64_t next = orr_min_u64(u->end - 1, ss_lines_next(u->lines, u->stalls));
    const uint64_t marks[] = {
        u->readers[0].line,  u->readers[0].first, u->readers[0].last, u->readers[1].line,
        u->readers[1].first, u->readers[1].last,  u->first,           u->last};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] >= line)
            next = orr_min_u64(next, marks[i]);
    return next;
}

static orr_code open_reader(reader *r, uint64_t size, uint64_t bandwidth, orr_error *err)
{
    r->request = orr_div_up(size - orr_div_up(size, 2), bandwidth);
    r->line = UINT64_MAX;
    if (r->words)
        return ORR_OK;
    const orr_code code = ss_fetch_open(&r->st, size, &r->fetch, err);
    if (code)
        return code;
    r->first = r->st.at(&r->st, 0).start;
    r->last = ss_stream_last(&r->st);
    look_ahead(r);
    return ORR_OK;
}

/* Counts whole lines of `bandwidth` words. */
static void report_reader(const reader *r,
                          uint64_t size,
                          uint64_t bandwidth,
                          orr_systolic_traffic *out)
{
    const uint64_t places = r->words ? ss_words_places(r->words) : ss_fetch_places(r->fetch);
    const uint64_t first =
        orr_min_u64(orr_div_up(orr_div_up(size, 2), bandwidth), orr_div_up(places, bandwidth));
    out->words = (first + r->requests * r->request) * bandwidth;
    out->first = -(int64_t)first;
    out->last = prefetched(r);
    out->average = (double)out->words / (double)(out->last - out->first + 1);
}

static orr_code run(user *u, const orr__systolic *s, const ss_memory *memory, orr_error *err)
{
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    orr_code code = ORR_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = open_reader(&u->readers[i], sizes[i], memory->bandwidth[i], err);
    if (!code)
        code = ss_lines_open(s, memory->bandwidth[ORR_OPERAND_OFMAP], &u->lines, err);
    if (code)
        return code;
    u->lines->is_v3 = memory->is_v3;
    ss_lines_ends(u->lines, &u->first, &u->last);
    for (uint64_t line = 0; line < u->end && !u->is_stuck; line++) {
        line = next_line(u, line);
        do_line(u, line);
    }
    if (u->is_stuck)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v3 does not end here: a word that the array reads is never "
                        "fetched (with a layout of its own, is IfmapOffset 0?)");
    for (int i = 0; i < 2; i++)
        report_reader(&u->readers[i], sizes[i], memory->bandwidth[i], &u->out->dram[i]);
    return ss_lines_finish(u->lines, u->total, &u->out->dram[ORR_OPERAND_OFMAP], err);
}

static orr_code use_bandwidth(const orr__systolic *s,
                              const ss_memory *memory,
                              orr_systolic_result *out,
                              orr_error *err)
{
    user u = {.end = out->cycles + 1, .out = out};
    ss_streams_v2(s, &u.readers[0].st, &u.readers[1].st);
    u.readers[0].sram = &out->sram[ORR_OPERAND_IFMAP];
    u.readers[1].sram = &out->sram[ORR_OPERAND_FILTER];
    for (int i = 0; i < 2; i++) {
        u.readers[i].words = memory->words[i];
        u.readers[i].counts_twice = memory->is_v3;
    }
    const orr_code code = run(&u, s, memory, err);
    ss_fetch_close(u.readers[0].fetch);
    ss_fetch_close(u.readers[1].fetch);
    ss_lines_close(u.lines);
    out->cycles = u.total;
    out->stalls = u.stalls;
    return code;
}

/* ---- cycles: scale-sim.md 6.2 ---- */

uint64_t ss_v2_fold_cycles(const orr__systolic *s)
{
    uint64_t steps;
    (void)orr__systolic_true_folds(s, &steps);
    return steps + s->R + s->C - 2 + (s->array->dataflow == ORR_DATAFLOW_OS ? 0 : s->R);
}

/* The reference reports the index of the last cycle, not the number of cycles. */
orr__wide ss_v2_cycles(const orr__systolic *s)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    return (orr__wide)f.inner * f.outer * ss_v2_fold_cycles(s) - 1;
}

/* ---- read buffers, CALC ---- */

typedef struct prefetch {
    int64_t first;    /* cycle of the first request; for v3's words, once it is known */
    uint64_t set;     /* words per set */
    bool has_pending; /* a span that ends with the last trigger */
    bool is_broken;
    int64_t from, to;
    bool has_begun;
    orr_systolic_traffic *out;
} prefetch;

static bool charge(prefetch *p, int64_t from, int64_t to)
{
    if (to < from) {
        p->is_broken = true;
        return false;
    }
    if (!p->has_begun)
        p->out->first = from + 1; /* the port answers one cycle later */
    p->has_begun = true;
    p->out->last = to + 1;
    return true;
}

static bool half_filled(void *ctx, uint64_t cycle)
{
    prefetch *p = ctx;
    const int64_t needed = (int64_t)orr_div_up(HALF * p->set, FIRST_RATE);
    const bool is_fine =
        p->has_pending ? charge(p, p->from, p->to) : charge(p, p->first - 1 - needed, p->first - 2);
    p->from = p->has_pending ? p->to + 1 : p->first - 1;
    p->to = (int64_t)cycle;
    p->has_pending = true;
    return is_fine;
}

static ss_fill_rules estimate_rules(prefetch *p)
{
    return (ss_fill_rules){.size = HALF * p->set,
                           .is_eager = true,
                           .high = UINT64_MAX,
                           .ctx = p,
                           .emptied = half_filled};
}

/* Charge what is left at the end. */
static orr_code finish_estimate(prefetch *p,
                                const ss_fill_counts *counts,
                                const char *name,
                                orr_error *err)
{
    orr_systolic_traffic *out = p->out;
    if (p->has_pending)
        (void)charge(p, p->from, p->to);
    else
        (void)charge(
            p, -1 - (int64_t)orr_div_up(orr_div_up(counts->held, p->set) * p->set, FIRST_RATE), -2);
    if (p->is_broken)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: half of the %s buffer, %llu words, is "
                        "filled more than once in a cycle",
                        name, (unsigned long long)(HALF * p->set));
    out->words = counts->taken;
    out->average = (double)out->words / (double)(out->last - out->first + 1);
    return ORR_OK;
}

static orr_code estimate(
    const ss_stream *st, uint64_t size, const char *name, orr_systolic_traffic *out, orr_error *err)
{
    prefetch p = {.first = (int64_t)st->at(st, 0).start, .set = size / SETS, .out = out};
    const ss_fill_rules rules = estimate_rules(&p);
    ss_fill_counts counts;
    const orr_code code =
        ss_fill_run(&rules, st->is_filter ? NULL : st, st->is_filter ? st : NULL, &counts, err);
    return code ? code : finish_estimate(&p, &counts, name, err);
}

/* The same for words generated line by line; also the first and last lines that read. */
static orr_code estimate_words(ss_words *w,
                               uint64_t lines,
                               uint64_t size,
                               const char *name,
                               orr_systolic_traffic *sram,
                               orr_systolic_traffic *dram,
                               orr_error *err)
{
    prefetch p = {.first = -1, .set = size / SETS, .out = dram};
    ss_fill_rules rules = estimate_rules(&p);
    rules.low = ss_words_low(w);
    rules.high = ss_words_high(w);
    ss_fill *fill;
    const orr_code code = ss_fill_open(&rules, &fill, err);
    if (code)
        return code;
    bool goes_on = true;
    for (uint64_t line = 0; line < lines && goes_on; line++) {
        const uint64_t *words;
        const size_t count = ss_words_line(w, line, &words);
        if (count && p.first < 0)
            p.first = (int64_t)line;
        for (size_t i = 0; i < count && goes_on; i++)
            goes_on = ss_fill_take(fill, line, words[i]);
        if (count)
            sram->last = (int64_t)line + 1;
    }
    sram->first = p.first + 1;
    const ss_fill_counts counts = ss_fill_close(fill);
    return counts.has_failed ? orr_no_memory(err) : finish_estimate(&p, &counts, name, err);
}

static orr_code calc_writes(const orr__systolic *s,
                            const ss_memory *memory,
                            orr_systolic_result *out,
                            orr_error *err)
{
    ss_lines *lines;
    uint64_t first, last, event;
    orr_code code = ss_lines_open(s, s->C, &lines, err);
    if (code)
        return code;
    lines->is_v3 = memory->is_v3;
    while ((event = ss_lines_next(lines, 0)) != UINT64_MAX)
        (void)ss_lines_write(lines, event, 0);
    ss_lines_ends(lines, &first, &last);
    out->sram[ORR_OPERAND_OFMAP].first = (int64_t)first;
    out->sram[ORR_OPERAND_OFMAP].last = (int64_t)last;
    ss_lines_skip(lines, last + 1);
    code = ss_lines_finish(lines, out->cycles, &out->dram[ORR_OPERAND_OFMAP], err);
    ss_lines_close(lines);
    return code;
}

static orr_code calculate(const orr__systolic *s,
                          const ss_memory *memory,
                          orr_systolic_result *out,
                          orr_error *err)
{
    ss_stream streams[2];
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    static const char *const names[] = {"ifmap", "filter"};
    orr_code code = ORR_OK;
    ss_streams_v2(s, &streams[0], &streams[1]);
    for (int i = 0; i < 2 && !code; i++) {
        if (memory->words[i]) {
            code = estimate_words(memory->words[i], out->cycles + 1, sizes[i], names[i],
                                  &out->sram[i], &out->dram[i], err);
            continue;
        }
        out->sram[i].first = (int64_t)streams[i].at(&streams[i], 0).start + 1;
        out->sram[i].last = (int64_t)ss_stream_last(&streams[i]) + 1;
        code = estimate(&streams[i], sizes[i], names[i], &out->dram[i], err);
    }
    return code ? code : calc_writes(s, memory, out, err);
}

orr_code ss_v2_memory(const orr__systolic *s,
                      const ss_memory *memory,
                      orr_systolic_result *out,
                      orr_error *err)
{
    return memory->bandwidth[0] ? use_bandwidth(s, memory, out, err)
                                : calculate(s, memory, out, err);
}

/* ---- compute report and counts ---- */

static void count_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const bool is_os = s->array->dataflow == ORR_DATAFLOW_OS;
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    uint64_t *ifmap = &out->sram[ORR_OPERAND_IFMAP].words;
    uint64_t *filter = &out->sram[ORR_OPERAND_FILTER].words;
    uint64_t *ofmap = &out->sram[ORR_OPERAND_OFMAP].words;
    *ifmap = s->E * s->T * (is_os || is_ws ? f->outer : 1);
    *filter = s->N * s->T * (is_os ? f->inner : is_ws ? 1 : f->outer);
    *ofmap = s->E * s->N * (is_os ? 1 : f->inner);
    if (is_os) /* blanks are counted (scale-sim.md 6.2) */
        *ofmap += out->folds * (s->R + s->C);
    out->sram_read.words = *ifmap + *filter;
}

/* Means over the folds, added fold by fold as in the reference unless there are too many, so that
 * even the last digit agrees. */
static void average_folds(const orr__systolic *s,
                          const orr__folds *f,
                          uint64_t steps,
                          uint64_t charged,
                          orr_systolic_result *out)
{
    const double array = (double)(s->R * s->C), folds = (double)out->folds;
    double mapping = 0, busy = 0;
    if (out->folds > MOST_TERMS) {
        out->mapping = 100 * (double)out->macs / (double)steps / (folds * array);
        out->busy = 100 * (double)out->macs / (folds * array) / (double)charged;
        return;
    }
    for (uint64_t v = 0; v < f->outer; v++)
        for (uint64_t h = 0; h < f->inner; h++) {
            const uint64_t used = orr__fold_rows(f, h) * orr__fold_columns(f, v);
            mapping += (double)used / array;
            busy += (double)(used * steps) / (array * (double)charged);
        }
    out->mapping = mapping / folds * 100;
    out->busy = busy / folds * 100;
}

static orr_code check_bandwidth(const orr__systolic *s, orr_error *err)
{
    const double b = s->array->bandwidth;
    if (b > 0 && (b < 1 || b > 1e9 || b != (double)(uint64_t)b))
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "SCALE-Sim v2 supports only whole numbers of words per cycle, from 1 to 10^9");
    return ORR_OK;
}

void ss_v2_counts(const orr__systolic *s, orr_systolic_result *out)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    const uint64_t fold = ss_v2_fold_cycles(s);
    const uint64_t charged = fold + (s->array->dataflow == ORR_DATAFLOW_OS ? 0 : s->C - 1);
    out->folds = f.inner * f.outer;
    average_folds(s, &f, steps, charged, out);
    out->utilisation = 100 * (double)out->macs / ((double)out->cycles * (double)(s->R * s->C));
    count_sram(s, &f, out);
    for (int i = 0; i < ORR_OPERANDS; i++)
        out->sram[i].average = (double)out->sram[i].words / (double)out->cycles;
    out->sram_read.average = (double)out->sram_read.words / (double)out->cycles;
}

static orr_code ss_v2_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const uint64_t bandwidth = (uint64_t)s->array->bandwidth;
    const ss_memory memory = {.bandwidth = {bandwidth, bandwidth, bandwidth}};
    out->cycles = (uint64_t)ss_v2_cycles(s);
    orr_code code = check_bandwidth(s, err);
    if (!code)
        code = ss_v2_memory(s, &memory, out, err);
    if (code)
        return code;
    if (out->cycles == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: it sees a run of no cycles");
    ss_v2_counts(s, out);
    return ORR_OK;
}

const orr_rules_systolic orr__scale_sim_v2 = {
    .name = "v2",
    .size = ORR__SIZE_UP,
    .least_words = 100, /* a buffer is a hundred sets */
    .needs_bandwidth_key = true,
    .cycles = ss_v2_cycles,
    .run = ss_v2_run,
    .rows = ORR__ROWS_BY_FORM,
    .write = ss_v2_write,
    .write_traces = ss_v2_write_traces,
};
