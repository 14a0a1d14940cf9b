/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2.c - every figure of SCALE-Sim v2's reports, its defects included (scale-sim.md, section 6).
 *
 * Compute figures are closed forms.  Without a bandwidth (CALC) the read buffers never wait: fifty of a hundred
 * sets are filled word by word and then forgotten at once, which systolic_fill.c does.  The outputs' buffer drains
 * as fast as the array writes, so nothing stalls: a drain of n lines begins with more than n - 1 lines' words
 * freed, and in the n - 1 cycles until it ends no more than that are written. */
#include "scale_sim.h"
#include "ss_impl.h"

#include "base/memory/memory.h"

enum { SETS = 100, HALF = SETS / 2, FIRST_RATE = 10, MOST_TERMS = 1 << 22 };

/* v2's output buffer (scale-sim.md 6.3), from one event to the next.
 *
 * Outputs are packed into lines of memory.  When less than half of the buffer is free, half of it is drained, a
 * line a cycle; until that is over no other drain begins, and a word for which there is no place waits for it.  A
 * drain closes the line that is being packed, however full; only the last line of a drain is counted by what is in
 * it. How many words have been written by a line of the schedule has a closed form, so the word that starts a
 * drain is found without looking at those before it.
 * Cost: logarithmic for each drain, plus the words of the line it starts in. */

/* Lines that were closed together: full ones, then perhaps one that is not. */
typedef struct batch {
    uint64_t full, partial;
} batch;

struct ss_lines {
    ss_stream st; /* what is written */
    ss_counter at;
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
    b->low = (int64_t)orr__cdiv(size, 2);
    b->drained = orr__cdiv(size - orr__cdiv(size, 2), words_a_line);
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

/* Take lines off the front; how many, and how much the last of them holds. */
static uint64_t pop_lines(ss_lines *b, uint64_t *last)
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
    b->out.last = (int64_t)b->busy;
    b->out.words += words;
    b->free += (int64_t)words;
}

/* ---- events ---- */

/* The line that writes word n; not behind the last word. */
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
    /* A drain is still going on then: does a word meet a full buffer before it ends? */
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

/* v2 with a bandwidth: the three buffers side by side, from one event to the next.
 *
 * A line of the schedule happens in cycle line + stalls.  Only a few lines matter: those in which a window of
 * words moves on, in which outputs start to drain or find no place, and the first and last of each operand, whose
 * cycles are reported.  All others take one cycle. The figures for memory are the reference's: whole requests,
 * however few words are in them. */

typedef struct reader {
    ss_stream st;
    ss_fetch *fetch;
    uint64_t line, moves; /* the next move of its window; UINT64_MAX: none */
    uint64_t first, last; /* lines in which it is asked for words */
    uint64_t request;     /* cycles of one prefetch */
    uint64_t requests;    /* prefetches so far, but for the first */
    orr_systolic_traffic *sram;
} reader;

typedef struct user {
    reader readers[2];
    ss_lines *lines;
    uint64_t first, last; /* lines in which outputs are written */
    uint64_t stalls;
    uint64_t end; /* of the schedule: lines */
    uint64_t total;
    orr_systolic_result *out;
} user;

static void look_ahead(reader *r)
{
    if (!ss_fetch_next(r->fetch, &r->line, &r->moves))
        r->line = UINT64_MAX;
}

/* The cycle in which the last prefetch that was asked for is there. */
static int64_t prefetched(const reader *r)
{
    return (int64_t)(r->requests * (r->request + 1)) - 1;
}

/* By how many cycles this line waits for the operand. */
static uint64_t read_line(reader *r, uint64_t line, uint64_t cycle)
{
    int64_t served = (int64_t)cycle + 1;
    while (r->line == line) {
        r->requests += r->moves;
        served = prefetched(r) > served ? prefetched(r) : served;
        look_ahead(r);
    }
    if (line == r->first)
        r->sram->first = served;
    if (line == r->last)
        r->sram->last = served;
    return (uint64_t)served - cycle - 1;
}

static void do_line(user *u, uint64_t line)
{
    const uint64_t cycle = line + u->stalls;
    uint64_t late = 0;
    for (int i = 0; i < 2; i++)
        late = orr__max(late, read_line(&u->readers[i], line, cycle));
    const uint64_t write_late = ss_lines_write(u->lines, line, u->stalls);
    orr_systolic_traffic *sram = &u->out->sram[ORR_OPERAND_OFMAP];
    if (line == u->first)
        sram->first = (int64_t)(cycle + write_late);
    if (line == u->last)
        sram->last = (int64_t)(cycle + write_late);
    u->total = cycle + write_late;
    u->stalls += orr__max(late, write_late);
}

/* The next line that matters, at or behind `line`. */
static uint64_t next_line(user *u, uint64_t line)
{
    uint64_t next = orr__min(u->end - 1, ss_lines_next(u->lines, u->stalls));
    const uint64_t marks[] = {
        u->readers[0].line,  u->readers[0].first, u->readers[0].last, u->readers[1].line,
        u->readers[1].first, u->readers[1].last,  u->first,           u->last};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] >= line)
            next = orr__min(next, marks[i]);
    return next;
}

static orr_code open_reader(reader *r, uint64_t size, uint64_t bandwidth, orr_error *err)
{
    const orr_code code = ss_fetch_open(&r->st, size, &r->fetch, err);
    if (code)
        return code;
    r->first = r->st.at(&r->st, 0).start;
    r->last = ss_stream_last(&r->st);
    r->request = orr__cdiv(size - orr__cdiv(size, 2), bandwidth);
    look_ahead(r);
    return ORR_OK;
}

/* Whole lines of `bandwidth` words are counted. */
static void report_reader(const reader *r,
                          uint64_t size,
                          uint64_t bandwidth,
                          orr_systolic_traffic *out)
{
    const uint64_t first = orr__min(orr__cdiv(orr__cdiv(size, 2), bandwidth),
                                    orr__cdiv(ss_fetch_places(r->fetch), bandwidth));
    out->words = (first + r->requests * r->request) * bandwidth;
    out->first = -(int64_t)first;
    out->last = prefetched(r);
    out->average = (double)out->words / (double)(out->last - out->first + 1);
}

static orr_code run(user *u, const orr__systolic *s, uint64_t bandwidth, orr_error *err)
{
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    orr_code code = ORR_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = open_reader(&u->readers[i], sizes[i], bandwidth, err);
    if (!code)
        code = ss_lines_open(s, bandwidth, &u->lines, err);
    if (code)
        return code;
    ss_lines_ends(u->lines, &u->first, &u->last);
    for (uint64_t line = 0; line < u->end; line++) {
        line = next_line(u, line);
        do_line(u, line);
    }
    for (int i = 0; i < 2; i++)
        report_reader(&u->readers[i], sizes[i], bandwidth, &u->out->dram[i]);
    return ss_lines_finish(u->lines, u->total, &u->out->dram[ORR_OPERAND_OFMAP], err);
}

static orr_code ss_v2_user(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    user u = {.end = out->cycles + 1, .out = out};
    ss_streams_v2(s, &u.readers[0].st, &u.readers[1].st);
    u.readers[0].sram = &out->sram[ORR_OPERAND_IFMAP];
    u.readers[1].sram = &out->sram[ORR_OPERAND_FILTER];
    const orr_code code = run(&u, s, (uint64_t)s->array->bandwidth, err);
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

/* The reference gives the number of the last cycle, not how many there are. */
static orr__wide ss_v2_cycles(const orr__systolic *s)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    return (orr__wide)f.inner * f.outer * ss_v2_fold_cycles(s) - 1;
}

/* ---- read buffers, CALC ---- */

typedef struct prefetch {
    int64_t first;    /* cycle of the first request */
    uint64_t set;     /* words of a set */
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
        p->out->first = from + 1; /* the port answers a cycle later */
    p->has_begun = true;
    p->out->last = to + 1;
    return true;
}

static bool half_filled(void *ctx, uint64_t cycle)
{
    prefetch *p = ctx;
    const int64_t needed = (int64_t)orr__cdiv(HALF * p->set, FIRST_RATE);
    const bool is_fine =
        p->has_pending ? charge(p, p->from, p->to) : charge(p, p->first - 1 - needed, p->first - 2);
    p->from = p->has_pending ? p->to + 1 : p->first - 1;
    p->to = (int64_t)cycle;
    p->has_pending = true;
    return is_fine;
}

static orr_code estimate(
    const ss_stream *st, uint64_t size, const char *name, orr_systolic_traffic *out, orr_error *err)
{
    prefetch p = {.first = (int64_t)st->at(st, 0).start, .set = size / SETS, .out = out};
    const ss_fill_rules rules = {.size = HALF * p.set,
                                 .is_eager = true,
                                 .high = UINT64_MAX,
                                 .ctx = &p,
                                 .emptied = half_filled};
    ss_fill_counts counts;
    const orr_code code =
        ss_fill_run(&rules, st->is_filter ? NULL : st, st->is_filter ? st : NULL, &counts, err);
    if (code)
        return code;
    if (p.has_pending)
        (void)charge(&p, p.from, p.to);
    else
        (void)charge(&p, -1 - (int64_t)orr__cdiv(orr__cdiv(counts.held, p.set) * p.set, FIRST_RATE),
                     -2);
    if (p.is_broken)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: half of the %s buffer, %llu words, is "
                        "filled more than once in a cycle",
                        name, (unsigned long long)rules.size);
    out->words = counts.taken;
    out->average = (double)out->words / (double)(out->last - out->first + 1);
    return ORR_OK;
}

static orr_code calc_writes(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    ss_lines *lines;
    uint64_t first, last, event;
    orr_code code = ss_lines_open(s, s->C, &lines, err);
    if (code)
        return code;
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

static orr_code calculate(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    ss_stream streams[2];
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    static const char *const names[] = {"ifmap", "filter"};
    orr_code code = ORR_OK;
    ss_streams_v2(s, &streams[0], &streams[1]);
    for (int i = 0; i < 2 && !code; i++) {
        out->sram[i].first = (int64_t)streams[i].at(&streams[i], 0).start + 1;
        out->sram[i].last = (int64_t)ss_stream_last(&streams[i]) + 1;
        code = estimate(&streams[i], sizes[i], names[i], &out->dram[i], err);
    }
    return code ? code : calc_writes(s, out, err);
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
    if (is_os) /* blank places are counted, 6.2 */
        *ofmap += out->folds * (s->R + s->C);
    out->sram_read.words = *ifmap + *filter;
}

/* Means over the folds; added up fold by fold as the reference does, if there are not too many, so that even the
 * last digit is its. */
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
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 knows whole numbers of words a cycle, from 1 to 10^9");
    return ORR_OK;
}

static orr_code ss_v2_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    const uint64_t fold = ss_v2_fold_cycles(s);
    const uint64_t charged = fold + (s->array->dataflow == ORR_DATAFLOW_OS ? 0 : s->C - 1);
    out->folds = f.inner * f.outer;
    out->cycles = (uint64_t)ss_v2_cycles(s);
    orr_code code = check_bandwidth(s, err);
    if (!code)
        code = s->array->bandwidth > 0 ? ss_v2_user(s, out, err) : calculate(s, out, err);
    if (code)
        return code;
    if (out->cycles == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: it sees a run of no cycles");
    average_folds(s, &f, steps, charged, out);
    out->utilisation = 100 * (double)out->macs / ((double)out->cycles * (double)(s->R * s->C));
    count_sram(s, &f, out);
    for (int i = 0; i < ORR_OPERANDS; i++)
        out->sram[i].average = (double)out->sram[i].words / (double)out->cycles;
    out->sram_read.average = (double)out->sram_read.words / (double)out->cycles;
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
};
