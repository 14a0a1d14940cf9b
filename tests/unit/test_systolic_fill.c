/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* Buffers filled by whole spans of cycles against the same filled word by word, on random layers,
 * sizes and address ranges; and what streams say about themselves against counting. */
#include "check.h"

#include "base/rng.h"
#include "compat/scale_sim/scale_sim.h"
#include "compat/scale_sim/ss_impl.h"

static orr_error err;

enum { MOST_EVENTS = 1 << 20 };

typedef struct events {
    uint64_t *cycles;
    size_t count;
} events;

static bool note(void *ctx, uint64_t cycle)
{
    events *e = ctx;
    CHECK(e->count < MOST_EVENTS);
    e->cycles[e->count++] = cycle;
    return true;
}

/* ---- word by word ---- */

typedef struct taker {
    ss_fill *fill;
    uint64_t cycle, words;
    uint64_t
        *least; /* smallest distance between two uses of a word, and where each was used last */
    uint64_t *used;
    uint64_t base;
} taker;

static void take(void *ctx, uint64_t address, uint64_t count)
{
    taker *t = ctx;
    for (uint64_t i = 0; i < count; i++)
        CHECK(ss_fill_take(t->fill, t->cycle, address + i));
}

static ss_fill_counts fill_slowly(const ss_fill_rules *rules,
                                  const ss_stream *ifmap,
                                  const ss_stream *filter)
{
    taker t = {0};
    uint64_t cursors[2] = {0, 0};
    ss_fill_rules mine = *rules;
    mine.high = orr_min_u64(rules->high, orr_max_u64(ifmap->end, filter->end));
    CHECK_OK(ss_fill_open(&mine, &t.fill, &err), &err);
    for (; t.cycle < orr_max_u64(ifmap->finish, filter->finish); t.cycle++) {
        ss_stream_cycle(ifmap, t.cycle, &cursors[0], take, &t);
        ss_stream_cycle(filter, t.cycle, &cursors[1], take, &t);
    }
    return ss_fill_close(t.fill);
}

static void compare_fills(const ss_fill_rules *rules,
                          const ss_stream *ifmap,
                          const ss_stream *filter)
{
    static uint64_t slow_cycles[MOST_EVENTS], fast_cycles[MOST_EVENTS];
    events slow = {slow_cycles, 0}, fast = {fast_cycles, 0};
    ss_fill_rules r = *rules;
    ss_fill_counts counts;
    r.emptied = note;
    r.ctx = &slow;
    const ss_fill_counts wanted = fill_slowly(&r, ifmap, filter);
    r.ctx = &fast;
    CHECK_OK(ss_fill_run(&r, ifmap, filter, &counts, &err), &err);
    CHECK_EQ_U(counts.taken, wanted.taken);
    CHECK_EQ_U(counts.held, wanted.held);
    CHECK_EQ_U(fast.count, slow.count);
    for (size_t i = 0; i < slow.count; i++)
        CHECK_EQ_U(fast.cycles[i], slow.cycles[i]);
}

/* ---- streams ---- */

static void look(void *ctx, uint64_t address, uint64_t count)
{
    taker *t = ctx;
    CHECK_EQ_U(count, 1);
    uint64_t *used = &t->used[address - t->base];
    if (*used)
        *t->least = orr_min_u64(*t->least, t->words + 1 - *used);
    *used = ++t->words;
}

/* What a stream claims: how many words, how many different ones, how far apart the same word
 * comes. */
static void check_claims(const ss_stream *st)
{
    uint64_t least = UINT64_MAX, cursor = 0, distinct = 0;
    const uint64_t range = st->end - st->base;
    taker t = {.least = &least, .base = st->base};
    t.used = calloc(range, sizeof *t.used);
    for (; t.cycle < st->finish; t.cycle++)
        ss_stream_cycle(st, t.cycle, &cursor, look, &t);
    for (uint64_t i = 0; i < range; i++)
        distinct += t.used[i] != 0;
    free(t.used);
    CHECK(st->distinct == 0 || st->distinct == distinct);
    CHECK(least >= st->reuse);
    const bool is_plain = !st->hangs_over && st->at(st, 0).copies == 1;
    if (is_plain)
        CHECK_EQ_U(ss_stream_words(st), t.words);
    CHECK(ss_stream_last(st) < st->finish);
}

/* ---- random layers ---- */

static uint64_t pick(orr_rng *rng, uint64_t from, uint64_t to)
{
    return from + orr_rng_below(rng, to - from + 1);
}

static orr_systolic_layer random_layer(orr_rng *rng)
{
    if (pick(rng, 0, 2) == 0)
        return orr_systolic_gemm(pick(rng, 1, 60), pick(rng, 1, 40), pick(rng, 1, 40));
    const uint64_t fh = pick(rng, 1, 4), fw = pick(rng, 1, 4), stride = pick(rng, 1, 3);
    return (orr_systolic_layer){fh + pick(rng, 0, 9), fw + pick(rng, 0, 9), fh,     fw,
                                pick(rng, 1, 8),      pick(rng, 1, 20),     stride, stride};
}

static void check_layers(const orr_rules_systolic *rules)
{
    orr_rng rng;
    orr_rng_init(&rng, 5, (uint64_t)rules);
    for (int i = 0; i < 400; i++) {
        const orr_systolic_layer l = random_layer(&rng);
        orr_systolic_array a = {.rows = pick(&rng, 1, 12), .columns = pick(&rng, 1, 12)};
        orr__systolic s;
        ss_stream ifmap, filter;
        a.dataflow = (orr_dataflow)pick(&rng, 0, 2);
        a.filter_offset = pick(&rng, 0, 3) ? 100000 : pick(&rng, 1, 500);
        a.ofmap_offset = a.filter_offset + (pick(&rng, 0, 3) ? 100000 : pick(&rng, 1, 500));
        CHECK_OK(orr__systolic_check(&a, &l, orr__systolic_rules(rules), &s, &err), &err);
        const bool is_regular = s.exact_w == (double)s.out_w && s.exact_h == (double)s.out_h;
        if (rules == &orr__scale_sim_v1 && !is_regular)
            continue; /* needs a walk, which ss_v1.c makes */
        if (rules == &orr__scale_sim_v1)
            ss_streams_v1(&s, NULL, &ifmap, &filter);
        else
            ss_streams_v2(&s, &ifmap, &filter);
        check_claims(&ifmap);
        check_claims(&filter);
        const bool is_ifmap = pick(&rng, 0, 1);
        const ss_fill_rules fill = {.size = pick(&rng, 1, pick(&rng, 1, 600)),
                                    .is_eager = rules == &orr__scale_sim_v2,
                                    .low = is_ifmap ? 0 : a.filter_offset,
                                    .high = is_ifmap ? a.filter_offset : a.ofmap_offset};
        if (rules == &orr__scale_sim_v1)
            compare_fills(&fill, &ifmap, &filter);
    }
}

TEST(test_systolic_fill__spans_give_what_single_words_give_in_v1)
{
    check_layers(&orr__scale_sim_v1);
}

TEST(test_systolic_fill__streams_of_v2_are_what_they_claim)
{
    check_layers(&orr__scale_sim_v2);
}

/* v2 has a buffer for each operand. */
TEST(test_systolic_fill__spans_give_what_single_words_give_in_v2)
{
    orr_rng rng;
    orr_rng_init(&rng, 6, 0);
    for (int i = 0; i < 400; i++) {
        const orr_systolic_layer l = random_layer(&rng);
        orr_systolic_array a = {.rows = pick(&rng, 1, 12), .columns = pick(&rng, 1, 12)};
        orr__systolic s;
        ss_stream streams[2], nothing;
        a.dataflow = (orr_dataflow)pick(&rng, 0, 2);
        CHECK_OK(orr__systolic_check(&a, &l, &orr__scale_sim_v2, &s, &err), &err);
        ss_streams_v2(&s, &streams[0], &streams[1]);
        const ss_fill_rules fill = {
            .size = pick(&rng, 1, pick(&rng, 1, 600)), .is_eager = true, .high = UINT64_MAX};
        nothing = streams[1];
        nothing.phases = nothing.finish = nothing.end = 0;
        compare_fills(&fill, &streams[i % 2], &nothing);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_systolic_fill__spans_give_what_single_words_give_in_v1),
        RUN(test_systolic_fill__streams_of_v2_are_what_they_claim),
        RUN(test_systolic_fill__spans_give_what_single_words_give_in_v2),
    };
    return RUN_ALL(tests);
}
