/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v1.c - every figure of SCALE-Sim v1's reports, its defects included (scale-sim.md, sections 3 and 4).
 *
 * The reference writes traces of every word and counts their fields.  Here counts have closed forms, first and last
 * cycles follow from the folds, and the read buffers are systolic_fill.c's. */
#include "systolic_v1.h"

#include "base/memory/memory.h"

#include <math.h>

enum { FIRST_RATE = 10 };

/* ---- read buffers, 4.1 ---- */

typedef struct refill {
    orr_systolic_traffic *out;
    uint64_t size;
    bool has_from, has_begun, is_broken;
    int64_t from, to; /* what is held now is fetched in these cycles */
} refill;

static bool charge(refill *r, uint64_t words)
{
    if (!r->has_from)
        r->from = r->to - (int64_t)orr__cdiv(words, FIRST_RATE);
    r->has_from = true;
    if (r->to <= r->from) {
        r->is_broken = true;
        return false;
    }
    const uint64_t rate = orr__cdiv(words, (uint64_t)(r->to - r->from));
    if (!r->has_begun)
        r->out->first = r->from;
    r->has_begun = true;
    r->out->last = r->from + (int64_t)orr__cdiv(words, rate) - 1;
    r->out->words += words;
    const double most = (double)orr__min(rate, words);
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
    orr__fill_rules rules[2];
} buffers;

/* The reference tells the operands apart by their addresses alone. */
static void set_up(buffers *b, const orr__systolic *s, orr_systolic_result *out)
{
    const orr_systolic_array *a = s->array;
    const uint64_t from[] = {a->ifmap_offset, a->filter_offset, a->ofmap_offset};
    const uint64_t sizes[] = {a->ifmap_words, a->filter_words};
    for (int i = 0; i < 2; i++) {
        b->refills[i] = (refill){.out = &out->dram[i], .size = sizes[i]};
        b->rules[i] = (orr__fill_rules){.size = sizes[i],
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

/* Filters that are nowhere between the offsets: the reference shows the ifmap's cycles once more. */
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
    orr__stream ifmap, filter;
    orr__fill_counts counts;
    orr_code code = ORR_OK;
    buffers b;
    set_up(&b, s, out);
    orr__streams_v1(s, walk, &ifmap, &filter);
    for (int i = 0; i < 2 && !code; i++) {
        code = orr__fill_run(&b.rules[i], &ifmap, &filter, &counts, err);
        if (!code)
            code = settle(&b, i, counts.held, err);
    }
    return code;
}

/* ---- output stationary ---- */

uint64_t orr__systolic_v1_os_write(const orr__systolic *s, uint64_t v, uint64_t h)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    const uint64_t pitch = orr__max(s->T, s->R), tail = f.last_rows;
    const uint64_t column = (f.inner - 1) * pitch;
    const uint64_t next = orr__max(s->T + 1 > tail ? s->T + 1 - tail : 0, tail);
    uint64_t start = s->T + orr__min(s->C, s->N) - 1 + h * pitch;
    if (v + 1 < f.outer || v == 0)
        return start + v * (column + next);
    const uint64_t lost = tail + s->C - f.last_columns;
    start += (v - 1) * (column + next);
    return start + column + orr__max(s->T + 1 > lost ? s->T + 1 - lost : 0, tail);
}

static uint64_t ramp(uint64_t lanes, uint64_t cycle, uint64_t delay, uint64_t length)
{
    const orr__stream one = {.is_skewed = true, .objects_are_lanes = true};
    const orr__phase p = {.start = delay, .objects = lanes, .ks = length};
    return lanes ? orr__phase_before(&one, &p, cycle) : 0;
}

/* Ifmap words read before this cycle. */
static uint64_t os_words_before(const orr__systolic *s, const orr__folds *f, uint64_t cycle)
{
    const uint64_t pass = f->inner * s->T, lanes = orr__min(s->R, s->E), tail = f->last_rows;
    const uint64_t whole = pass + lanes - 1;
    const uint64_t over = cycle < whole ? 0 : orr__min(f->outer, (cycle - whole) / pass + 1);
    uint64_t words = over * s->E * s->T;
    for (uint64_t v = over; v < f->outer && v * pass < cycle; v++)
        words += ramp(tail, cycle, v * pass, pass) +
                 ramp(lanes - tail, cycle, v * pass + tail, pass - s->T);
    return words;
}

/* A column and a row that both stream keep one element busy: for each column, the rows' words while it streams. */
static orr__wide os_busy(const orr__systolic *s, const orr__os_folds *g)
{
    const uint64_t pass = g->repeats * s->T;
    orr__wide busy = 0;
    for (uint64_t c = 0; c < orr__min(s->C, s->N); c++) {
        const uint64_t folds = g->f.outer - (c >= g->f.last_columns);
        busy += os_words_before(s, &g->f, c + folds * pass) - os_words_before(s, &g->f, c);
    }
    return busy;
}

/* Rows that stream come and go in two groups: those that have a pixel in the last row fold stream on from column to
 * column, the others pause while it lasts.  This is one row of the second group, looked at cycle by cycle. */
typedef struct pausing {
    uint64_t pass, busy; /* cycles of a column fold; of those with a pixel */
    uint64_t folds;
    uint64_t phase, fold; /* where it is */
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

/* The sum over all cycles of the share of the array that is at work, in the reference's order.  Of the rows that
 * pause, the first comes in and the last goes out. */
static double os_share(const orr__systolic *s, const orr__os_folds *g, uint64_t cycles)
{
    const uint64_t lanes = orr__min(s->R, s->E), tail = g->f.last_rows;
    pausing first = {g->f.inner * s->T, (g->f.inner - 1) * s->T, g->f.outer, 0, 0}, last = first;
    const uint64_t all = g->f.outer * first.pass;
    uint64_t pausing_rows = 0;
    double share = 0;
    for (uint64_t t = 0; t < cycles; t++) {
        const uint64_t begun = orr__min(t + 1, tail);
        const uint64_t ended = t + 1 > all ? orr__min(t + 1 - all, tail) : 0;
        if (lanes > tail && t >= tail)
            pausing_rows += is_streaming(&first);
        if (lanes > tail && t >= lanes)
            pausing_rows -= is_streaming(&last);
        const uint64_t busy = (begun - ended + pausing_rows) * orr__systolic_v1_columns(g, s, t);
        share += (double)busy / (double)(s->R * s->C);
    }
    return share;
}

/* Words of the degenerate layers go into both buffers, of which each takes its own addresses; the filter's words of a
 * cycle follow those of the ifmap where the two meet. */
typedef struct pouring {
    orr__fill *fills[2];
    const orr__stream *filter; /* NULL: it has its buffer to itself */
    uint64_t cursor, cycle;
} pouring;

static void pour_word(void *ctx, uint64_t cycle, uint64_t row, uint64_t address)
{
    pouring *p = ctx;
    (void)row;
    for (int i = 0; i < 2; i++)
        (void)orr__fill_take(p->fills[i], cycle, address);
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
        orr__stream_cycle(p->filter, cycle, &p->cursor, pour_filter, p);
}

static orr_code os_degenerate(const orr__systolic *s,
                              orr__v1_lanes *lanes,
                              orr_systolic_result *out,
                              orr_error *err)
{
    orr__stream ifmap, filter;
    orr__fill_counts counts[2] = {{0}};
    pouring p = {{NULL, NULL}, NULL, 0, 0};
    const orr__v1_visitor visitor = {&p, pour_word, pour_cycle};
    orr_code code = ORR_OK;
    buffers b;
    set_up(&b, s, out);
    orr__streams_v1(s, NULL, &ifmap, &filter);
    p.filter = ifmap.end > s->array->filter_offset ? &filter : NULL;
    for (int i = 0; i < 2 && !code; i++) {
        orr__fill_rules mine = b.rules[i];
        mine.high = orr__min(mine.high, orr__max(ifmap.end, i && p.filter ? filter.end : 0));
        code = orr__fill_open(&mine, &p.fills[i], err);
    }
    if (!code)
        code = orr__systolic_v1_lanes(s, &visitor, lanes, err);
    for (int i = 0; i < 2; i++)
        if (p.fills[i])
            counts[i] = orr__fill_close(p.fills[i]);
    if (!code && (counts[0].has_failed || counts[1].has_failed))
        code = orr_no_memory(err);
    if (!code && !p.filter)
        code = orr__fill_run(&b.rules[1], NULL, &filter, &counts[1], err);
    for (int i = 0; i < 2 && !code; i++)
        code = settle(&b, i, counts[i].held, err);
    return code;
}

static orr_code run_os(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const orr__os_folds g = orr__systolic_v1_os(s);
    const uint64_t write_start = orr__systolic_v1_os_write(s, 0, 0);
    const uint64_t write_last = orr__systolic_v1_os_write(s, g.f.outer - 1, g.f.inner - 1);
    orr__v1_lanes lanes;
    orr_code code;
    if (orr__systolic_v1_is_degenerate(s)) {
        code = os_degenerate(s, &lanes, out, err);
    } else {
        lanes.cycles = (uint64_t)(g.column_end > g.row_end ? g.column_end : g.row_end);
        lanes.words = g.f.outer * s->E * s->T;
        lanes.share = lanes.cycles > ORR__MOST_TERMS
                          ? (double)os_busy(s, &g) / (double)(s->R * s->C)
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
        .peak = (double)orr__min(s->C, s->N),
    };
    out->folds = g.f.inner * g.f.outer;
    out->utilisation = lanes.share / (double)lanes.cycles * 100;
    return ORR_OK;
}

/* ---- weights or inputs stationary ---- */

/* The reference steps by the stride and begins a new row when the unrounded width says so. */
orr_code orr__systolic_v1_walk(const orr__systolic *s, uint64_t **out, orr_error *err)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t line = l->ifmap_width * l->channels, count = orr__systolic_v1_streamed(s);
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

/* Widths of column folds: all but the last have `full`. */
static uint64_t skewed_slots(const orr__systolic *s, uint64_t mapped)
{
    return (s->N + orr__min(s->C, mapped)) * mapped; /* blank places are counted, 3.3 */
}

/* The share of the array a fold uses, weighed with its cycles. */
static double fold_share(const orr__systolic *s, uint64_t used, uint64_t cycles)
{
    return (double)used / (double)(s->R * s->C) * (double)cycles;
}

/* A column fold's share added to what there is, fold by fold or all at once. */
static double add_column(
    const orr__systolic *s, const orr__folds *f, uint64_t columns, bool at_once, double sum)
{
    const double full = fold_share(s, s->R * columns, orr__systolic_v1_fold(s, s->R, columns));
    if (at_once)
        sum += (double)(f->inner - 1) * full;
    for (uint64_t h = 0; h + 1 < f->inner && !at_once; h++)
        sum += full;
    return sum +
           fold_share(s, f->last_rows * columns, orr__systolic_v1_fold(s, f->last_rows, columns));
}

static double folded_share(const orr__systolic *s, const orr__folds *f)
{
    double sum = 0;
    if (f->inner > ORR__MOST_TERMS / f->outer)
        return (double)(f->outer - 1) * add_column(s, f, f->columns, true, 0) +
               add_column(s, f, f->last_columns, true, 0);
    for (uint64_t v = 0; v < f->outer; v++)
        sum = add_column(s, f, orr__fold_columns(f, v), false, sum);
    return sum;
}

static double stacked_share(const orr__systolic *s, uint64_t folds, uint64_t width, uint64_t last)
{
    const double full = fold_share(s, s->T * width, orr__systolic_v1_stacked(s, width));
    double sum = 0;
    if (folds > ORR__MOST_TERMS)
        sum = (double)(folds - 1) * full;
    else
        for (uint64_t v = 0; v + 1 < folds; v++)
            sum += full;
    return sum + fold_share(s, s->T * last, orr__systolic_v1_stacked(s, last));
}

static void count_folded(const orr__systolic *s, orr_systolic_result *out)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t steps = is_ws ? orr__systolic_v1_streamed(s) : s->N;
    const uint64_t across = is_ws ? s->N : s->E;
    const orr__folds f = orr__folds_of(s->T, across, s->R, s->C);
    const uint64_t loaded = across * s->T, streamed = steps * s->T * f.outer;
    const uint64_t rows = s->T * f.outer + steps * f.inner * f.outer;
    const uint64_t start = (uint64_t)orr__systolic_v1_cycles(s) -
                           orr__systolic_v1_fold(s, f.last_rows, f.last_columns);
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
    w->first = (int64_t)(2 * s->R + (is_ws ? orr__min(s->C, across) : 0));
    w->last = (int64_t)(last + (is_ws ? s->E : s->N + f.last_columns) - 1);
    w->peak = (double)orr__min(s->C, across);
    out->utilisation = folded_share(s, &f);
}

static void count_stacked(const orr__systolic *s, orr_systolic_result *out)
{
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t stack = s->R / s->T, width = stack * s->C;
    const uint64_t across = is_ws ? s->N : s->E, steps = is_ws ? s->E : s->N;
    const uint64_t folds = orr__cdiv(across, width), first = orr__min(across, width);
    const uint64_t mapped = across - (folds - 1) * width;
    const uint64_t stacked = orr__cdiv(mapped, s->C), before = orr__cdiv(first, s->C);
    const uint64_t windows = (folds - 1) * stack + stacked;
    const uint64_t loaded = across * s->T, streamed = steps * s->T * windows;
    const uint64_t start =
        (uint64_t)orr__systolic_v1_cycles(s) - orr__systolic_v1_stacked(s, mapped);
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
                        (is_ws ? s->E : s->N + orr__min(s->C, mapped)) - 1);
    w->peak = (double)first;
    out->utilisation = stacked_share(s, folds, width, mapped);
}

static orr_code run_fixed(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t *walk;
    orr_code code = orr__systolic_v1_walk(s, &walk, err);
    if (code)
        return code;
    code = regular_reads(s, walk, out, err);
    orr_free(walk);
    if (s->T > s->R)
        count_folded(s, out);
    else
        count_stacked(s, out);
    out->utilisation = out->utilisation / (double)(uint64_t)orr__systolic_v1_cycles(s) * 100;
    return code;
}

/* ---- all ---- */

/* 4.3: all averages are over the same cycles. */
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

orr_code orr__systolic_v1_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const orr_code code =
        s->array->dataflow == ORR_DATAFLOW_OS ? run_os(s, out, err) : run_fixed(s, out, err);
    if (code)
        return code;
    out->cycles = (uint64_t)orr__systolic_v1_cycles(s);
    out->busy = out->utilisation;
    orr__systolic_v1_writes(s, &out->dram[ORR_OPERAND_OFMAP]);
    borrow_cycles(out);
    average(out);
    return ORR_OK;
}
