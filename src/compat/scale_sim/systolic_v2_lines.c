/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2_lines.c - v2's output buffer (scale-sim.md 6.3), from one event to the next.
 *
 * Outputs are packed into lines of memory.  When less than half of the buffer is free, half of it is drained, a
 * line a cycle; until that is over no other drain begins, and a word for which there is no place waits for it.  A
 * drain closes the line that is being packed, however full; only the last line of a drain is counted by what is in
 * it. How many words have been written by a line of the schedule has a closed form, so the word that starts a
 * drain is found without looking at those before it.
 * Cost: logarithmic for each drain, plus the words of the line it starts in. */
#include "systolic_v2.h"

#include "base/memory/memory.h"

/* Lines that were closed together: full ones, then perhaps one that is not. */
typedef struct batch {
    uint64_t full, partial;
} batch;

struct orr__lines {
    orr__stream st; /* what is written */
    orr__counter at;
    uint64_t words;  /* altogether */
    uint64_t stored; /* so far */
    uint64_t line;   /* words a line */
    int64_t free;
    int64_t low;      /* below this a drain begins */
    uint64_t drained; /* lines in a drain, at most */
    uint64_t open;    /* words in lines that no drain has closed */
    batch *batches;   /* closed, oldest first from `head` on */
    size_t head, count, room;
    uint64_t busy;         /* the last cycle of the drain */
    uint64_t asked, found; /* the last answer of line_of */
    bool has_begun, has_failed;
    orr_systolic_traffic out;
};

/* ---- what is written ---- */

/* Output stationary results leave from the bottom; rows that are not used would have come first. */
static orr__phase os_out(const orr__stream *st, uint64_t i)
{
    const uint64_t v = i / st->inner, rows = orr__fold_rows(&st->f, i % st->inner);
    return (orr__phase){i * st->pitch + st->s->T - 1 + st->s->R - rows,
                        0,
                        orr__fold_columns(&st->f, v),
                        0,
                        rows,
                        1};
}

static orr__phase fixed_out(const orr__stream *st, uint64_t i)
{
    const orr__systolic *s = st->s;
    return (orr__phase){i * st->pitch + 2 * s->R - 1,
                        0,
                        orr__fold_columns(&st->f, i / st->inner),
                        0,
                        s->array->dataflow == ORR_DATAFLOW_WS ? s->E : s->N,
                        1};
}

static orr__stream outputs(const orr__systolic *s)
{
    uint64_t steps;
    orr__stream st = {.s = s, .objects_are_lanes = true, .is_skewed = true};
    const bool is_os = s->array->dataflow == ORR_DATAFLOW_OS;
    st.f = orr__systolic_true_folds(s, &steps);
    st.inner = st.f.inner;
    st.phases = st.f.inner * st.f.outer;
    st.pitch = orr__systolic_v2_fold_cycles(s);
    st.at = is_os ? os_out : fixed_out;
    st.lanes = st.f.outer > 1 ? st.f.columns : st.f.last_columns;
    st.longest = (is_os ? s->R : steps) + st.lanes - 1;
    return st;
}

orr_code orr__lines_open(const orr__systolic *s,
                         uint64_t words_a_line,
                         orr__lines **out,
                         orr_error *err)
{
    const uint64_t size = s->array->ofmap_words;
    *out = NULL;
    orr__lines *b = orr_alloc(1, sizeof *b);
    if (!b)
        return orr_no_memory(err);
    b->st = outputs(s);
    b->at.st = &b->st;
    b->words = orr__stream_words(&b->st);
    b->line = words_a_line;
    b->free = (int64_t)size;
    b->low = (int64_t)orr__cdiv(size, 2);
    b->drained = orr__cdiv(size - orr__cdiv(size, 2), words_a_line);
    b->asked = UINT64_MAX;
    *out = b;
    return ORR_OK;
}

void orr__lines_close(orr__lines *b)
{
    if (b)
        orr_free(b->batches);
    orr_free(b);
}

void orr__lines_ends(const orr__lines *b, uint64_t *first, uint64_t *last)
{
    const orr__phase p = b->st.at(&b->st, b->st.phases - 1);
    *first = b->st.at(&b->st, 0).start;
    *last = p.start + p.ks + p.objects - 2;
}

/* ---- draining ---- */

static void close_lines(orr__lines *b)
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

/* Take lines off the front; how many, and how much the last of them holds. */
static uint64_t pop_lines(orr__lines *b, uint64_t *last)
{
    uint64_t taken = 0;
    while (taken < b->drained && b->head < b->count) {
        batch *front = &b->batches[b->head];
        const uint64_t full = orr__min(front->full, b->drained - taken);
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

static void start_drain(orr__lines *b, uint64_t cycle)
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
    b->out.last = (int64_t)b->busy;
    b->out.words += words;
    b->free += (int64_t)words;
}

/* ---- events ---- */

/* The line that writes word n; not behind the last word. */
static uint64_t line_of(orr__lines *b, uint64_t n)
{
    if (b->asked != n) {
        orr__counter ahead = b->at;
        b->found = orr__counter_find(&ahead, n, 0);
        b->asked = n;
    }
    return b->found;
}

uint64_t orr__lines_next(orr__lines *b, uint64_t stalls)
{
    const uint64_t spare = b->free > b->low ? (uint64_t)(b->free - b->low) : 0;
    const uint64_t low = b->stored + spare; /* the first word after which too little is free */
    if (low >= b->words)
        return UINT64_MAX;
    const uint64_t line = line_of(b, low);
    if (line + stalls >= b->busy)
        return line;
    /* A drain is still going on then: does a word meet a full buffer before it ends? */
    const uint64_t over = b->busy - stalls;
    const uint64_t full = b->stored + (b->free > 0 ? (uint64_t)(b->free - 1) : 0);
    const uint64_t after = orr__counter_before(&b->at, over);
    if (full < after)
        return line_of(b, full);
    return after < b->words ? line_of(b, after) : UINT64_MAX;
}

void orr__lines_skip(orr__lines *b, uint64_t line)
{
    orr__counter_move(&b->at, line);
    const uint64_t stored = orr__counter_before(&b->at, line);
    b->open += stored - b->stored;
    b->free -= (int64_t)(stored - b->stored);
    b->stored = stored;
}

uint64_t orr__lines_write(orr__lines *b, uint64_t line, uint64_t stalls)
{
    uint64_t cycle = line + stalls;
    orr__lines_skip(b, line);
    const uint64_t end = orr__counter_before(&b->at, line + 1);
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

orr_code orr__lines_finish(orr__lines *b, uint64_t cycle, orr_systolic_traffic *out, orr_error *err)
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
