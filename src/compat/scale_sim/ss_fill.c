/* SPDX-License-Identifier: Apache-2.0 */
/* ss_fill.c - buffers that are filled word by word, in time proportional to runs of words.
 *
 * The contents are a bit set.  Until the buffer is emptied the order of its words does not matter,
 * so a span of cycles is added at once, run by run, 64 words at a time.  If it overflows, it is
 * rolled back and a shorter span is tried, down to the single cycle in which the buffer is emptied,
 * which is done word by word.  Four short cuts: a stream that fits entirely is ignored; one that
 * cannot repeat a word before the buffer is emptied is only counted; one that has repeated for a
 * whole period without a new word has none until its span ends; and a step is never shorter than
 * the free space takes to fill.
 *
 * Cost: about twice the requested words / 64, plus the objects touched; memory: one bit per address
 * of the operand, touched pages only. */
#include "ss_impl.h"

#include "base/memory/memory.h"

typedef struct change {
    size_t place;
    uint64_t before;
} change;

struct ss_fill {
    ss_fill_rules rules;
    uint64_t *bits; /* of addresses from rules.low on */
    uint64_t held, taken;
    change *log; /* changes of the span being tried, for the rollback */
    size_t log_count, log_room;
    size_t *used; /* words of `bits` that are not 0 */
    size_t used_count, used_room;
    uint64_t added;  /* new words in the span being tried */
    uint64_t cycle;  /* of words that are added one by one */
    bool has_failed; /* out of memory */
    bool has_stopped;
};

/* ---- the set ---- */

/* Reserve log space for `count` words of bits. */
static bool reserve(ss_fill *f, size_t count)
{
    if (orr_grow(&f->log, &f->log_room, f->log_count + count) &&
        orr_grow(&f->used, &f->used_room, f->used_count + count))
        return true;
    f->has_failed = true;
    return false;
}

static void add_bits(ss_fill *f, size_t place, uint64_t mask)
{
    const uint64_t before = f->bits[place];
    const uint64_t fresh = mask & ~before;
    if (fresh == 0)
        return;
    f->log[f->log_count++] = (change){place, before};
    f->used[f->used_count] = place;
    f->used_count += before == 0;
    f->bits[place] = before | mask;
    f->added += fresh == UINT64_MAX ? 64 : (uint64_t)__builtin_popcountll(fresh);
}

/* ss_run_visit: add a run. */
static void add_run(void *ctx, uint64_t address, uint64_t count)
{
    ss_fill *f = ctx;
    uint64_t from = address > f->rules.low ? address : f->rules.low;
    uint64_t to = orr_min_u64(address + count, f->rules.high);
    if (from >= to)
        return;
    from -= f->rules.low;
    to -= f->rules.low;
    const size_t first = from / 64, last = (to - 1) / 64;
    const uint64_t head = UINT64_MAX << (from % 64), tail = UINT64_MAX >> (63 - (to - 1) % 64);
    if (!reserve(f, last - first + 1))
        return;
    if (first == last) {
        add_bits(f, first, head & tail);
        return;
    }
    add_bits(f, first, head);
    for (size_t i = first + 1; i < last; i++)
        add_bits(f, i, UINT64_MAX);
    add_bits(f, last, tail);
}

static void keep(ss_fill *f)
{
    f->held += f->added;
    f->taken += f->added;
    f->added = 0;
    f->log_count = 0;
}

static void take_back(ss_fill *f)
{
    while (f->log_count > 0) {
        const change *c = &f->log[--f->log_count];
        f->bits[c->place] = c->before;
        f->used_count -= c->before == 0;
    }
    f->added = 0;
}

static void empty(ss_fill *f, uint64_t cycle)
{
    for (size_t i = 0; i < f->used_count; i++)
        f->bits[f->used[i]] = 0;
    f->used_count = 0;
    f->held = 0;
    if (!f->rules.emptied(f->rules.ctx, cycle))
        f->has_stopped = true;
}

/* ---- word by word ---- */

bool ss_fill_take(ss_fill *f, uint64_t cycle, uint64_t address)
{
    if (address < f->rules.low || address >= f->rules.high)
        return true;
    const uint64_t at = address - f->rules.low;
    if (f->bits[at / 64] >> (at % 64) & 1)
        return true;
    if (!f->rules.is_eager && f->held == f->rules.size)
        empty(f, cycle);
    add_run(f, address, 1);
    keep(f);
    if (f->rules.is_eager && f->held == f->rules.size)
        empty(f, cycle);
    return !f->has_failed && !f->has_stopped;
}

static void take_one(void *ctx, uint64_t address, uint64_t count)
{
    ss_fill *f = ctx;
    for (uint64_t i = 0; i < count && !f->has_stopped && !f->has_failed; i++)
        (void)ss_fill_take(f, f->cycle, address + i);
}

orr_code ss_fill_open(const ss_fill_rules *rules, ss_fill **out, orr_error *err)
{
    const uint64_t bits = rules->high > rules->low ? rules->high - rules->low : 0;
    *out = NULL;
    ss_fill *f = orr_alloc(1, sizeof *f);
    if (!f || !(f->bits = orr_alloc(bits / 64 + 1, sizeof *f->bits))) {
        orr_free(f);
        return orr_no_memory(err);
    }
    f->rules = *rules;
    *out = f;
    return ORR_OK;
}

ss_fill_counts ss_fill_close(ss_fill *f)
{
    const ss_fill_counts counts = {f->taken, f->held, f->has_failed};
    orr_free(f->bits);
    orr_free(f->log);
    orr_free(f->used);
    orr_free(f);
    return counts;
}

/* ---- span by span ---- */

typedef struct run {
    ss_fill *f;
    const ss_stream *streams[2];
    uint64_t cursors[2];
    int count;
    uint64_t lanes, end;
    uint64_t most_step; /* longer spans would only repeat */
    uint64_t quiet;     /* no new word since this cycle */
} run;

static void visit_span(run *r, uint64_t from, uint64_t to)
{
    for (int i = 0; i < r->count; i++)
        ss_stream_visit(r->streams[i], from, to, &r->cursors[i], add_run, r->f);
}

static void visit_cycle(run *r, uint64_t cycle)
{
    r->f->cycle = cycle;
    for (int i = 0; i < r->count; i++)
        ss_stream_cycle(r->streams[i], cycle, &r->cursors[i], take_one, r->f);
}

/* The first cycle from `now` on that may have a new word. */
static uint64_t next_news(const run *r, uint64_t now)
{
    uint64_t until = r->end;
    for (int i = 0; i < r->count; i++) {
        const ss_stream *st = r->streams[i];
        if (now >= st->finish)
            continue;
        if (st->span == 0)
            return now;
        const uint64_t begin = now / st->span * st->span + st->lead;
        if (now < st->period || now - st->period < orr_max_u64(begin, r->quiet))
            return now;
        until = orr_min_u64(until, (now / st->span + 1) * st->span);
    }
    return until;
}

/* New words that fit before the buffer is emptied. */
static uint64_t room_left(const ss_fill *f)
{
    return f->rules.size - f->held - f->rules.is_eager;
}

/* Try to add [now, to); false: rolled back. */
static bool try_span(run *r, uint64_t now, uint64_t to)
{
    ss_fill *f = r->f;
    visit_span(r, now, to);
    if (f->added > room_left(f)) {
        take_back(f);
        return false;
    }
    if (f->added)
        r->quiet = to;
    keep(f);
    return true;
}

static void run_spans(run *r)
{
    ss_fill *f = r->f;
    uint64_t now = 0, limit = UINT64_MAX, step = 64; /* limit: the buffer is emptied before it */
    while (now < r->end && !f->has_failed && !f->has_stopped) {
        const uint64_t news = next_news(r, now);
        if (news > now) {
            now = news;
            continue;
        }
        const uint64_t safe = room_left(f) / r->lanes;
        uint64_t to = limit == UINT64_MAX ? now + step : now + (limit - now) / 2;
        to = orr_min_u64(orr_min_u64(orr_max_u64(to, now + safe), r->end), limit);
        to = orr_max_u64(to, now + 1);
        if (limit != now + 1 && try_span(r, now, to)) {
            now = to;
            step = limit == UINT64_MAX ? orr_min_u64(2 * step, r->most_step) : step;
            continue;
        }
        if (to - now > 1) {
            limit = to;
            continue;
        }
        visit_cycle(r, now);
        step = 64;
        limit = UINT64_MAX;
        r->quiet = ++now;
    }
}

/* ---- streams that cannot repeat a word in time ---- */

/* Every word is new. */
static ss_fill_counts count_only(const ss_fill_rules *rules, const ss_stream *st)
{
    ss_counter c = {.st = st};
    const uint64_t words = ss_stream_words(st), size = rules->size;
    uint64_t cycle = 0, emptied = 0;
    for (uint64_t n = rules->is_eager ? size - 1 : size; n < words; n += size) {
        cycle = ss_counter_find(&c, n, cycle);
        if (!rules->emptied(rules->ctx, cycle))
            break;
        emptied++;
    }
    return (ss_fill_counts){words, words - emptied * size, false};
}

static bool is_inside(const ss_fill_rules *rules, const ss_stream *st)
{
    return st->base >= rules->low && st->end <= rules->high;
}

/* Is any of its addresses in the buffer's range? */
static bool is_met(const ss_fill_rules *rules, const ss_stream *st)
{
    return st && st->base < rules->high && st->end > rules->low;
}

orr_code ss_fill_run(const ss_fill_rules *rules,
                     const ss_stream *ifmap,
                     const ss_stream *filter,
                     ss_fill_counts *out,
                     orr_error *err)
{
    run r = {.most_step = UINT64_MAX / 4};
    uint64_t end = rules->low;
    const ss_stream *both[] = {ifmap, filter};
    for (int i = 0; i < 2; i++) {
        if (!is_met(rules, both[i]))
            continue;
        r.streams[r.count++] = both[i];
        r.lanes += both[i]->lanes;
        r.end = orr_max_u64(r.end, both[i]->finish);
        if (both[i]->span)
            r.most_step = orr_min_u64(r.most_step, orr_max_u64(both[i]->period, 64));
        end = orr_max_u64(end, both[i]->end);
    }
    *out = (ss_fill_counts){0};
    if (r.count == 0)
        return ORR_OK;
    const bool is_alone = r.count == 1 && is_inside(rules, r.streams[0]);
    const uint64_t distinct = r.streams[0]->distinct, full = rules->size + !rules->is_eager;
    if (is_alone && distinct && distinct < full) { /* never emptied */
        *out = (ss_fill_counts){distinct, distinct, false};
        return ORR_OK;
    }
    if (is_alone && r.streams[0]->reuse >= full) {
        *out = count_only(rules, r.streams[0]);
        return ORR_OK;
    }
    ss_fill_rules mine = *rules;
    mine.high = orr_min_u64(rules->high, end);
    const orr_code code = ss_fill_open(&mine, &r.f, err);
    if (code)
        return code;
    run_spans(&r);
    *out = ss_fill_close(r.f);
    return out->has_failed ? orr_no_memory(err) : ORR_OK;
}
