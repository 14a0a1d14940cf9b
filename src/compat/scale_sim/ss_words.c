/* SPDX-License-Identifier: Apache-2.0 */
/* ss_words.c - v3's operands word by word (scale-sim.md 12.3 to 12.6).
 *
 * With pruned weights, or with a layout of lines and banks, addresses follow no formula that could
 * be counted in bulk, so every schedule line is generated.  Address matrices are not stored:
 * elements are computed on demand.
 *
 * With a bandwidth, each address has a list of the prefetch sets that contain it; a word is present
 * if one of them is in the window.  Cost: the words of the schedule; memory: four bytes per slot of
 * the order. */

#include "base/arithmetic.h"
#include "base/memory/memory.h"
#include "base/memory/sort.h"
#include "ss_impl.h"

#include <stdlib.h>

enum { SETS = 100 };
#define MOST_PLACES ((uint64_t)1 << 31)
#define MOST_LINES ((uint64_t)1 << 40)

/* ---- addresses ---- */

static uint64_t ifmap_at(const ss_matrices *m, uint64_t pixel, uint64_t column)
{
    const orr__systolic *s = m->s;
    const orr_systolic_layer *l = s->layer;
    const uint64_t k = m->is_pruned ? column / m->nonzero * m->block + column % m->nonzero : column;
    const uint64_t row = l->filter_width * l->channels;
    const uint64_t y = pixel / s->out_w * l->stride_height + k / row;
    const uint64_t x = pixel % s->out_w * l->stride_width + k % row / l->channels;
    if (y >= l->ifmap_height || x >= l->ifmap_width)
        return SS_NO_WORD;
    return s->array->ifmap_offset + (y * l->ifmap_width + x) * l->channels + k % l->channels;
}

/* Word `place` of the nonzero ones of a block, which is `count` elements of a filter from `first`
 * on.  Address 0 passes for a zero weight. */
static uint64_t word_of_block(
    const ss_matrices *m, uint64_t filter, uint64_t first, uint64_t count, uint64_t place)
{
    const orr__systolic *s = m->s;
    const uint64_t at = s->array->filter_offset + filter * s->T + first;
    if (at == 0) {
        place++;
        if (place >= count)
            return 0;
    }
    return place < count ? at + place : 0;
}

static uint64_t packed_at(const ss_matrices *m, uint64_t row, uint64_t filter)
{
    const uint64_t half = m->block / 2, pair = row / (2 * half), within = row % (2 * half);
    const uint64_t first = pair * 2 * m->block + within / half * m->block;
    const bool is_first = row == 0 && filter == 0;
    if (first >= m->s->T)
        return SS_NO_WORD;
    const uint64_t count = orr_min_u64(m->fill[filter], m->s->T - first);
    const uint64_t at = word_of_block(m, filter, first, count, within % half);
    /* The first element may be word 0 after all. */
    return at || (is_first && m->s->array->filter_offset == 0) ? at : SS_NO_WORD;
}

uint64_t ss_filter_at(const ss_matrices *m, uint64_t row, uint64_t filter)
{
    const orr__systolic *s = m->s;
    if (m->is_packed)
        return packed_at(m, row, filter);
    if (!m->is_pruned)
        return s->array->filter_offset + filter * s->T + row;
    const uint64_t first = row / m->nonzero * m->block;
    const uint64_t at =
        word_of_block(m, filter, first, orr_min_u64(m->nonzero, s->T - first), row % m->nonzero);
    /* Word 0 is stored just below all others, to keep the address range small. */
    return at || s->array->filter_offset == 0 ? at : s->array->filter_offset - 1;
}

/* ---- an operand ---- */

struct ss_words {
    const ss_matrices *m;
    const orr__systolic *s;
    bool is_filter, is_lined;
    orr_dataflow flow;
    orr__folds f;
    uint64_t pitch; /* lines per fold */
    uint64_t *line; /* the words of the current line */
    size_t count;
    bool is_wide;     /* idle lanes have an entry, too */
    bool counts_once; /* waits count once, as in v2 */

    /* The prefetch order. */
    const orr_systolic_banks *banks;
    uint64_t low, high;     /* addresses */
    uint64_t places, words; /* the former includes empty slots */
    uint64_t set, sets, window, stride, start;
    uint32_t *first; /* per address: start of its list of sets; plus a sentinel */
    uint32_t *set_of;
    uint32_t *column; /* with a layout: a word's column in its line */
    uint64_t *asked;  /* with a layout: bank and line of every word of a schedule line */
};

static uint64_t at(const ss_words *w, uint64_t major, uint64_t minor)
{
    return w->is_filter ? ss_filter_at(w->m, minor, major) : ifmap_at(w->m, major, minor);
}

static void add(ss_words *w, uint64_t lane, uint64_t address)
{
    if (w->is_wide)
        w->line[lane] = address;
    else if (address != SS_NO_WORD)
        w->line[w->count++] = address;
}

/* ---- lines of the schedule ---- */

/* A streamed operand: lanes [0, lanes) of `steps` steps, each lane one line after the previous
 * one. */
typedef struct skew {
    uint64_t lanes, steps, object, element;
    bool objects_are_lanes;
} skew;

static void add_skewed(ss_words *w, const skew *k, uint64_t line)
{
    const uint64_t from = line >= k->steps ? line - k->steps + 1 : 0;
    const uint64_t to = orr_min_u64(k->lanes, line + 1);
    for (uint64_t lane = from; lane < to; lane++) {
        const uint64_t step = line - lane;
        add(w, lane,
            k->objects_are_lanes ? at(w, k->object + lane, k->element + step)
                                 : at(w, k->object + step, k->element + lane));
    }
}

/* A loaded operand: element `element` of objects [object, object + lanes). */
static void add_loaded(ss_words *w, uint64_t object, uint64_t lanes, uint64_t element)
{
    for (uint64_t lane = 0; lane < lanes; lane++)
        add(w, lane, at(w, object + lane, element));
}

static uint64_t left(uint64_t all, uint64_t from, uint64_t most)
{
    return from < all ? orr_min_u64(all - from, most) : 0;
}

/* Packed weights: each block of a pixel passes half as many rows as it has elements. */
static void add_blocks(ss_words *w, uint64_t h, uint64_t line)
{
    const ss_matrices *m = w->m;
    const uint64_t half = m->block / 2, R = w->s->R;
    const uint64_t rows = 2 * R / m->block * half, base = h * 2 * R;
    for (uint64_t j = 0; j < rows && j <= line; j++) {
        if (line - j >= w->s->E)
            continue;
        const uint64_t first = base + j / half * m->block;
        for (uint64_t b = 0; b < m->block && first + b < m->s->T; b++)
            add(w, j * m->block + b, at(w, line - j, first + b));
    }
}

static void make_os(ss_words *w, uint64_t v, uint64_t h, uint64_t line)
{
    const uint64_t object = w->is_filter ? v * w->s->C : h * w->s->R;
    const uint64_t lanes =
        w->is_filter ? left(w->s->N, object, w->s->C) : left(w->s->E, object, w->s->R);
    const skew k = {lanes, w->s->T, object, 0, true};
    add_skewed(w, &k, line);
}

/* ws and is: one operand is loaded, bottom row first, then the other streams past. */
static void make_fixed(ss_words *w, uint64_t v, uint64_t h, uint64_t line)
{
    const orr__systolic *s = w->s;
    const bool is_loaded = w->is_filter == (w->flow == ORR_DATAFLOW_WS);
    const uint64_t objects = w->is_filter ? s->N : s->E;
    if (is_loaded) {
        const uint64_t element = h * s->R + s->R - 1 - line;
        if (line < s->R && element < s->T)
            add_loaded(w, v * s->C, left(objects, v * s->C, s->C), element);
        return;
    }
    if (line < s->R)
        return;
    if (w->m->is_packed && !w->is_filter) {
        add_blocks(w, h, line - s->R);
        return;
    }
    const uint64_t elements = w->is_filter ? w->m->rows : w->m->columns;
    const skew k = {left(elements, h * s->R, s->R), objects, 0, h * s->R, false};
    add_skewed(w, &k, line - s->R);
}

static void make_line(ss_words *w, uint64_t line)
{
    const uint64_t fold = line / w->pitch, v = fold / w->f.inner, h = fold % w->f.inner;
    w->count = 0;
    if (w->flow == ORR_DATAFLOW_OS)
        make_os(w, v, h, line % w->pitch);
    else
        make_fixed(w, v, h, line % w->pitch);
}

size_t ss_words_line(ss_words *w, uint64_t line, const uint64_t **out)
{
    w->is_wide = false;
    make_line(w, line);
    *out = w->line;
    return w->count;
}

size_t ss_words_lanes(ss_words *w, uint64_t line, const uint64_t **out)
{
    const bool is_loaded =
        w->flow != ORR_DATAFLOW_OS && w->is_filter == (w->flow == ORR_DATAFLOW_WS);
    const bool is_across = w->flow == ORR_DATAFLOW_OS ? w->is_filter : is_loaded;
    const uint64_t rows = 2 * w->s->R / (w->m->block ? w->m->block : 1) * (w->m->block / 2);
    const uint64_t lanes = w->m->is_packed && !w->is_filter ? rows * w->m->block
                           : is_across                      ? w->s->C
                                                            : w->s->R;
    for (uint64_t i = 0; i < lanes; i++)
        w->line[i] = SS_NO_WORD;
    w->is_wide = true;
    make_line(w, line);
    *out = w->line;
    return lanes;
}

uint64_t ss_words_low(const ss_words *w)
{
    return w->low;
}

uint64_t ss_words_high(const ss_words *w)
{
    return w->high;
}

/* ---- the prefetch order ---- */

typedef bool (*visit_place)(ss_words *w, uint64_t address, void *ctx);

/* The operand as a matrix: `steps` rows per fold; columns are lanes of the array. */
typedef struct grid {
    uint64_t lanes, steps, folds, used; /* used: lanes of the whole operand */
    bool objects_are_lanes, is_skewed;
} grid;

static grid grid_of(const ss_words *w)
{
    const orr__systolic *s = w->s;
    const uint64_t objects = w->is_filter ? s->N : s->E;
    const uint64_t elements = w->is_filter ? w->m->rows : w->m->columns;
    const bool is_os = w->flow == ORR_DATAFLOW_OS;
    const bool is_loaded = !is_os && w->is_filter == (w->flow == ORR_DATAFLOW_WS);
    grid g = {.objects_are_lanes = is_os || is_loaded, .is_skewed = !is_loaded};
    g.lanes = is_loaded || (is_os && w->is_filter) ? s->C : s->R;
    g.used = g.objects_are_lanes ? objects : elements;
    g.steps = g.objects_are_lanes ? elements : objects;
    g.folds = orr_div_up(g.used, g.lanes);
    return g;
}

static uint64_t grid_at(const ss_words *w, const grid *g, uint64_t row, uint64_t lane)
{
    const uint64_t across = row / g->steps * g->lanes + lane, step = row % g->steps;
    if (across >= g->used)
        return SS_NO_WORD;
    return g->objects_are_lanes ? at(w, across, step) : at(w, step, across);
}

static bool visit_grid(ss_words *w, visit_place visit, void *ctx)
{
    const grid g = grid_of(w);
    const uint64_t rows = g.folds * g.steps;
    if (!g.is_skewed) {
        for (uint64_t i = 0; i < rows * g.lanes; i++)
            if (!visit(w, grid_at(w, &g, i / g.lanes, i % g.lanes), ctx))
                return false;
        return true;
    }
    for (uint64_t diagonal = 0; diagonal < rows + g.lanes; diagonal++) {
        const uint64_t top = orr_min_u64(diagonal, rows - 1);
        for (uint64_t lane = diagonal - top; lane < g.lanes && lane <= diagonal; lane++)
            if (!visit(w, grid_at(w, &g, diagonal - lane, lane), ctx))
                return false;
    }
    return true;
}

/* With a layout: every dimension is split into lines and positions within a line; a table gives the
 * order of the parts. */
enum { MOST_AXES = 8 };

typedef struct lined {
    int dimensions;
    uint64_t size[MOST_AXES / 2], factor[MOST_AXES / 2], axis[MOST_AXES], order[MOST_AXES];
} lined;

static lined lined_of(const ss_words *w)
{
    const orr_systolic_layer *l = w->m->s->layer;
    const orr_systolic_layout *table = &w->s->array->layout;
    lined d = {.dimensions = w->is_filter ? 4 : 3};
    const uint64_t filter[] = {l->filters, l->channels, l->filter_height, l->filter_width};
    const uint64_t ifmap[] = {l->ifmap_height, l->ifmap_width, l->channels};
    for (int i = 0; i < d.dimensions; i++) {
        d.size[i] = w->is_filter ? filter[i] : ifmap[i];
        d.factor[i] = w->is_filter ? table->filter_factors[i] : table->ifmap_factors[i];
        d.axis[i] = orr_div_up(d.size[i], d.factor[i]);
        d.axis[d.dimensions + i] = d.factor[i];
    }
    for (int i = 0; i < 2 * d.dimensions; i++)
        d.order[i] = w->is_filter ? table->filter_order[i] : table->ifmap_order[i];
    return d;
}

/* The word at these coordinates; SS_NO_WORD in the padding. */
static uint64_t lined_at(const lined *d, const uint64_t *place)
{
    uint64_t number = 0;
    for (int i = 0; i < d->dimensions; i++) {
        const uint64_t x = place[i] * d->factor[i] + place[d->dimensions + i];
        if (x >= d->size[i])
            return SS_NO_WORD;
        number = number * d->size[i] + x;
    }
    return number;
}

static bool visit_lined(ss_words *w, visit_place visit, void *ctx)
{
    const lined d = lined_of(w);
    const uint64_t base =
        w->is_filter ? w->s->array->filter_offset : 0; /* the reference ignores the ifmap's */
    uint64_t place[MOST_AXES] = {0};
    const int axes = 2 * d.dimensions;
    for (int i = axes - 1; i >= 0;) {
        const uint64_t number = lined_at(&d, place);
        if (!visit(w, number == SS_NO_WORD ? number : base + number, ctx))
            return false;
        for (i = axes - 1; i >= 0; i--) {
            if (++place[d.order[i]] < d.axis[d.order[i]])
                break;
            place[d.order[i]] = 0;
        }
    }
    return true;
}

static bool visit_places(ss_words *w, visit_place visit, void *ctx)
{
    return w->is_lined ? visit_lined(w, visit, ctx) : visit_grid(w, visit, ctx);
}

/* ---- sets ---- */

/* One pass: count the sets of each address, or store them. */
typedef struct pass {
    uint32_t *last; /* 1 + the last set that contained an address */
    bool is_second;
} pass;

static bool note_place(ss_words *w, uint64_t address, void *ctx)
{
    const pass *p = ctx;
    w->places++;
    if (w->places > MOST_PLACES)
        return false;
    if (address == SS_NO_WORD)
        return true;
    const uint32_t set = (uint32_t)(w->words++ / w->set);
    uint32_t *last = &p->last[address - w->low];
    if (*last == set + 1)
        return true;
    *last = set + 1;
    if (p->is_second)
        w->set_of[w->first[address - w->low]++] = set;
    else
        w->first[address - w->low + 1]++;
    return true;
}

static bool make_pass(ss_words *w, pass *p)
{
    const uint64_t span = w->high - w->low;
    for (uint64_t i = 0; i < span; i++)
        p->last[i] = 0;
    w->places = w->words = 0;
    return visit_places(w, note_place, p);
}

/* After the second pass each entry is where the next one belongs. */
static void shift_back(ss_words *w)
{
    for (uint64_t i = w->high - w->low; i > 0; i--)
        w->first[i] = w->first[i - 1];
    w->first[0] = 0;
}

static orr_code note_sets(ss_words *w, orr_error *err)
{
    const uint64_t span = w->high - w->low;
    pass p = {.last = orr_alloc(span + 1, sizeof *p.last)};
    w->first = orr_alloc(span + 1, sizeof *w->first);
    orr_code code = p.last && w->first ? ORR_OK : orr_no_memory(err);
    if (!code && !make_pass(w, &p))
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "the layer is too large to be read word by word: 2^31 places or more");
    for (uint64_t i = 0; i < span && !code; i++)
        w->first[i + 1] += w->first[i];
    if (!code && !(w->set_of = orr_alloc(w->first[span] + 1, sizeof *w->set_of)))
        code = orr_no_memory(err);
    p.is_second = true;
    if (!code && make_pass(w, &p))
        shift_back(w);
    orr_free(p.last);
    return code;
}

static void set_window(ss_words *w, uint64_t size)
{
    const uint64_t active = orr_div_up(size, 2);
    w->sets = w->words / w->set + 1;
    w->window = orr_min_u64(w->sets, orr_div_up(active, w->set));
    w->stride = orr_min_u64(w->sets - w->window, orr_div_up(size - active, w->set));
}

/* ---- columns of lines: the order of a Python set ---- */

typedef struct columns {
    python_set set;
    uint64_t words;
} columns;

static void number_columns(ss_words *w, columns *c)
{
    const size_t count = c->set.used;
    for (uint32_t i = 0; i < count; i++)
        w->column[python_set_pop(&c->set) - w->low] = i;
    python_set_fini(&c->set);
    python_set_init(&c->set);
    c->words = 0;
}

static bool note_column(ss_words *w, uint64_t address, void *ctx)
{
    columns *c = ctx;
    if (address == SS_NO_WORD)
        return true;
    python_set_add(&c->set, address);
    if (c->set.has_failed)
        return false;
    if (++c->words == w->set)
        number_columns(w, c);
    return true;
}

static orr_code note_columns(ss_words *w, orr_error *err)
{
    columns c = {.words = 0};
    w->column = orr_alloc(w->high - w->low + 1, sizeof *w->column);
    python_set_init(&c.set);
    bool is_fine = w->column && visit_places(w, note_column, &c) && !c.set.has_failed;
    if (is_fine)
        number_columns(w, &c);
    is_fine = is_fine && !c.set.has_failed;
    python_set_fini(&c.set);
    return is_fine ? ORR_OK : orr_no_memory(err);
}

/* ---- reading ---- */

uint64_t ss_words_places(const ss_words *w)
{
    return w->places;
}

typedef struct list {
    uint64_t *next;
} list;

static bool list_place(ss_words *w, uint64_t address, void *ctx)
{
    (void)w;
    *((list *)ctx)->next++ = address;
    return true;
}

void ss_words_order(ss_words *w, uint64_t *out)
{
    list l = {out};
    (void)visit_places(w, list_place, &l);
}

void ss_words_count_once(ss_words *w)
{
    w->counts_once = true;
}

uint64_t ss_words_address(const ss_words *w, uint64_t word)
{
    const bool has_zero = w->is_filter && w->m->is_pruned && w->s->array->filter_offset > 0;
    return has_zero && word + 1 == w->s->array->filter_offset ? 0 : word;
}

int64_t ss_v3_served(int64_t served, uint64_t request, uint64_t *requests, uint64_t moves)
{
    const int64_t each = (int64_t)request + 1;
    const int64_t before = (int64_t)*requests * each - 1;
    /* Lateness after the prefetch: each move turns x into max(0, each - x), so from the second on
     * two values alternate. */
    int64_t late = each - (served - before);
    late = late > 0 ? late : 0;
    if (moves > 1) {
        const int64_t even = late < each ? each - late : 0;
        late = moves % 2 == 0 ? even : each - even;
    }
    *requests += moves;
    return (int64_t)*requests * each - 1 + late;
}

/* Distance of an address's nearest set from the window's start; UINT64_MAX: it has none. */
static uint64_t distance(const ss_words *w, uint64_t address, uint32_t *found)
{
    uint64_t best = UINT64_MAX;
    if (address < w->low || address >= w->high)
        return best;
    for (uint32_t i = w->first[address - w->low]; i < w->first[address - w->low + 1]; i++) {
        const uint64_t set = w->set_of[i];
        const uint64_t far = set >= w->start ? set - w->start : set + w->sets - w->start;
        if (far >= best)
            continue;
        best = far;
        *found = w->set_of[i];
        if (best < w->window)
            break;
    }
    return best;
}

/* Moves of the window until the word is inside; UINT64_MAX: never. */
static uint64_t fetch(ss_words *w, uint64_t address, uint32_t *found)
{
    const uint64_t far = distance(w, address, found);
    if (far < w->window)
        return 0;
    if (far == UINT64_MAX || w->stride == 0)
        return UINT64_MAX;
    const uint64_t moves = (far - w->window) / w->stride + 1;
    w->start = (w->start + moves % w->sets * w->stride) % w->sets;
    return moves;
}

/* Lines of the busiest bank; w->asked holds bank and line of every word. */
static uint64_t busiest(ss_words *w)
{
    uint64_t most = 0, now = 0;
    orr_sort(w->asked, w->count, sizeof *w->asked, orr_by_u64);
    for (size_t i = 0; i < w->count; i++) {
        if (i && w->asked[i] == w->asked[i - 1])
            continue;
        now = i && w->asked[i] >> 32 == w->asked[i - 1] >> 32 ? now + 1 : 1;
        most = orr_max_u64(most, now);
    }
    return most;
}

bool ss_words_serve(ss_words *w,
                    uint64_t line,
                    uint64_t request,
                    uint64_t *requests,
                    int64_t *served,
                    bool *has_words)
{
    const uint64_t *words;
    const size_t count = ss_words_line(w, line, &words);
    const uint64_t bank = w->is_lined ? w->banks->bandwidth / w->banks->count : 1;
    *has_words = count > 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t set = 0;
        const uint64_t moves = fetch(w, words[i], &set);
        if (moves == UINT64_MAX)
            return false;
        if (moves && (w->is_lined || w->counts_once)) {
            *requests += moves;
            const int64_t there = (int64_t)(*requests * (request + 1)) - 1;
            *served = there > *served ? there : *served;
        } else if (moves) {
            *served = ss_v3_served(*served, request, requests, moves);
        }
        if (w->is_lined)
            w->asked[i] = w->column[words[i] - w->low] / bank << 32 | set;
    }
    if (w->is_lined) /* a line without words is served one cycle early, without effect */
        *served += (int64_t)orr_div_up(busiest(w), w->banks->ports) - 1;
    return true;
}

/* ---- opening ---- */

/* Most words in a schedule line. */
static uint64_t widest(const ss_words *w)
{
    const uint64_t lanes = orr_max_u64(w->s->R, w->s->C);
    return w->m->is_packed && !w->is_filter ? w->s->R * w->m->block : lanes;
}

static void set_addresses(ss_words *w)
{
    const orr__systolic *s = w->m->s;
    const orr_systolic_layer *l = s->layer;
    const orr_systolic_array *a = s->array;
    const uint64_t size =
        w->is_filter ? s->N * s->T : l->ifmap_height * l->ifmap_width * l->channels;
    const uint64_t offset = w->is_filter ? a->filter_offset : a->ifmap_offset;
    const bool has_zero = w->is_filter && w->m->is_pruned && offset > 0;
    w->low = w->is_lined && !w->is_filter ? 0 : offset - has_zero;
    w->high = offset + size;
}

static orr_code open_order(ss_words *w, uint64_t bandwidth, orr_error *err)
{
    const orr_systolic_array *a = w->s->array;
    const uint64_t size = w->is_filter ? a->filter_words : a->ifmap_words;
    w->set = w->is_lined ? bandwidth : orr_div_up(size, SETS);
    orr_code code = note_sets(w, err);
    if (!code && w->is_lined)
        code = note_columns(w, err);
    if (!code)
        set_window(w, size);
    return code;
}

orr_code ss_words_open(const ss_matrices *m,
                       const orr__systolic *folds,
                       bool is_filter,
                       uint64_t bandwidth,
                       ss_words **out,
                       orr_error *err)
{
    const orr_systolic_array *a = folds->array;
    uint64_t steps;
    ss_words *w = orr_alloc(1, sizeof *w);
    *out = w;
    if (!w)
        return orr_no_memory(err);
    w->m = m;
    w->s = folds;
    w->is_filter = is_filter;
    w->flow = a->dataflow;
    w->banks = is_filter ? &a->filter_banks : &a->ifmap_banks;
    w->is_lined = bandwidth && w->banks->has_layout;
    w->f = orr__systolic_true_folds(folds, &steps);
    w->pitch = ss_v2_fold_cycles(folds);
    set_addresses(w);
    if (w->high - w->low > MOST_PLACES || w->f.inner * w->f.outer > MOST_LINES / w->pitch)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the layer is too large to be read word by word: 2^31 addresses or 2^40 "
                        "cycles");
    w->line = orr_alloc(widest(w), sizeof *w->line);
    w->asked = orr_alloc(widest(w), sizeof *w->asked);
    if (!w->line || !w->asked)
        return orr_no_memory(err);
    return bandwidth ? open_order(w, bandwidth, err) : ORR_OK;
}

void ss_words_close(ss_words *w)
{
    if (!w)
        return;
    orr_free(w->line);
    orr_free(w->asked);
    orr_free(w->first);
    orr_free(w->set_of);
    orr_free(w->column);
    orr_free(w);
}
