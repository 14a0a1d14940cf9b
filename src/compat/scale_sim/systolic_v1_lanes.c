/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v1_lanes.c - the two regimes of v1's output stationary dataflow in which its rows wait for each other
 * (scale-sim.md 3.4).
 *
 * Windows of one word, or several column folds in flight at once: rows are released one a cycle, and the end of
 * the ifmap's reads is cut off.  No closed form is known, so the rows are stepped through, cycle by cycle.
 * Cost: rows times cycles, which is about the words read; such layers have short windows, so there are few. */
#include "systolic_v1.h"

#include "base/memory/memory.h"

typedef struct lane {
    int64_t offset; /* element of the window it is at; below 0: not begun */
    uint64_t pixel, fold;
    bool is_parked, is_blocked;
} lane;

typedef struct machine {
    const orr__systolic *s;
    uint64_t folds, count; /* column folds; lanes in use */
    lane *lanes;
    const orr__v1_visitor *visitor;
    uint64_t read; /* words of this cycle */
    uint64_t cycle;
} machine;

bool orr__systolic_v1_is_degenerate(const orr__systolic *s)
{
    const orr__folds f = orr__folds_of(s->E, s->N, s->R, s->C);
    return s->T == 1 || (f.outer >= 3 && f.inner >= 2 && s->R - f.last_rows > f.inner * s->T);
}

uint64_t orr__systolic_v1_word(const orr__systolic *s, uint64_t pixel, uint64_t element)
{
    const orr_systolic_layer *l = s->layer;
    const uint64_t row = l->filter_width * l->channels, line = l->ifmap_width * l->channels;
    return pixel / s->out_w * l->stride_height * line +
           pixel % s->out_w * l->stride_width * l->channels + element / row * line + element % row;
}

/* A pixel is done: take the next, or go over to the next column fold and perhaps wait for the row above. */
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
                             orr__systolic_v1_word(m->s, x->pixel, (uint64_t)x->offset));
    }
    x->offset++;
    if (x->offset > 0 && (uint64_t)x->offset % m->s->T == 0)
        next_pixel(m, r);
}

/* One row a cycle may go on. */
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
    return value <= from ? 0 : orr__min(value - from, most);
}

/* Columns of the last fold run through all column folds, the others through all but one. */
uint64_t orr__systolic_v1_columns(const orr__os_folds *g, const orr__systolic *s, uint64_t cycle)
{
    const uint64_t pass = g->repeats * s->T, last = g->f.last_columns;
    const uint64_t all = orr__min(s->C, s->N);
    const uint64_t begun = orr__min(cycle + 1, all);
    const uint64_t ended = clamp(cycle + 1, g->f.outer * pass, last) +
                           clamp(cycle + 1, (g->f.outer - 1) * pass + last, all - last);
    return begun - ended;
}

orr_code orr__systolic_v1_lanes(const orr__systolic *s,
                                const orr__v1_visitor *visitor,
                                orr__v1_lanes *out,
                                orr_error *err)
{
    const orr__os_folds g = orr__systolic_v1_os(s);
    machine m = {.s = s, .folds = g.f.outer, .count = orr__min(s->R, s->E), .visitor = visitor};
    m.lanes = orr_alloc(m.count, sizeof *m.lanes);
    *out = (orr__v1_lanes){0};
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
        const uint64_t busy = m.read * orr__systolic_v1_columns(&g, s, m.cycle);
        out->words += m.read;
        out->share += (double)busy / (double)(s->R * s->C);
        m.cycle++;
    } while (m.cycle < g.column_end || !is_done(&m));
    out->cycles = m.cycle;
    orr_free(m.lanes);
    return ORR_OK;
}
