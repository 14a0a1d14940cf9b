/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads_goal.c - a schedule on several threads gives what one thread gives, to the last
 * record.
 *
 * Schedules are drawn by number: messages between ranks of one block or of all, small ones and ones
 * that wait for their receivers, wildcards, several CPUs and NICs, interruptions, and figures so
 * small that much happens in one tick.  Each is run with one thread and with 2, 3 and 8; clocks,
 * counts, spans, searches, pairs, timeline and the reason of a run that does not end must be equal.
 * THREADS_SEEDS=1000-9000 draws others, THREADS_WHY=1 says what became of each. */
#include "check.h"
#include "draw.h"
#include "files.h"

#include "run/loggops/lgs_impl.h"

#include <stdlib.h>

static orr_error err;

typedef struct drawing {
    uint64_t state;
    uint32_t ranks, block, cpus, nics, wild;
    bool is_even; /* much happens at once */
} drawing;

enum { MOST_RANKS = 40, MOST_OPS = 400 };

typedef struct drawn {
    orr_goal_op op;
    uint32_t deps[2], dep_count;
    bool on_start;
} drawn;

static drawn ops[MOST_RANKS][MOST_OPS];
static uint32_t counts[MOST_RANKS];

/* What depends on it comes behind it. */
static void draw_op(drawing *d, uint32_t rank, orr_goal_op op)
{
    const uint32_t count = counts[rank];
    if (count == MOST_OPS)
        return;
    drawn *t = &ops[rank][counts[rank]++];
    *t = (drawn){.op = op, .on_start = chance(d, 20)};
    t->op.cpu = (uint8_t)below(d, d->cpus);
    t->op.nic = op.kind == ORR_GOAL_CALC ? 0 : (uint8_t)below(d, d->nics);
    for (uint32_t j = 0; j < 2 && count; j++)
        if (chance(d, op.kind == ORR_GOAL_RECV ? 30 : 60)) {
            const uint32_t back = 1 + below(d, count < 6 ? count : 6);
            t->deps[t->dep_count++] = count - back;
        }
    if (t->dep_count == 2 && t->deps[0] == t->deps[1])
        t->dep_count = 1;
}

static void draw_message(drawing *d, uint32_t from, uint32_t to)
{
    static const uint64_t sizes[] = {0, 1, 8, 100, 1000};
    const uint64_t size = sizes[below(d, 5)];
    const uint32_t tag = below(d, 3);
    const bool is_wild = chance(d, d->wild);
    draw_op(d, from, (orr_goal_op){.kind = ORR_GOAL_SEND, .size = size, .peer = to, .tag = tag});
    draw_op(d, to,
            (orr_goal_op){.kind = ORR_GOAL_RECV,
                          .size = size,
                          .peer = is_wild ? ORR_GOAL_ANY : from,
                          .tag = tag});
}

/* Messages one by one; or rounds in which every rank does the same. */
static orr_goal *draw_goal(drawing *d)
{
    orr_goal *g;
    memset(counts, 0, sizeof counts);
    const uint32_t rounds = 1 + below(d, 12);
    const bool is_regular = chance(d, 40);
    for (uint32_t i = 0; i < rounds; i++) {
        const uint32_t distance = 1 + below(d, d->block), length = below(d, 3) * 50;
        for (uint32_t r = 0; r < d->ranks; r++) {
            const uint32_t from = is_regular ? r : below(d, d->ranks),
                           first = from - from % d->block;
            const uint32_t size = first + d->block <= d->ranks ? d->block : d->ranks - first;
            const uint32_t by = is_regular ? distance : below(d, size);
            draw_message(d, from, first + (from - first + by) % size);
            if (is_regular || chance(d, 40))
                draw_op(d, from,
                        (orr_goal_op){.kind = ORR_GOAL_CALC,
                                      .size = d->is_even ? length : below(d, 3000)});
        }
    }
    CHECK_OK(orr_goal_create(d->ranks, &g, &err), &err);
    for (uint32_t r = 0; r < d->ranks; r++) {
        CHECK_OK(orr_goal_begin_rank(g, &err), &err);
        for (uint32_t i = 0; i < counts[r]; i++)
            CHECK_OK(orr_goal_add(g, &ops[r][i].op, NULL, &err), &err);
        for (uint32_t i = 0; i < counts[r]; i++)
            for (uint32_t k = 0; k < ops[r][i].dep_count; k++)
                CHECK_OK(orr_goal_require(g, i, ops[r][i].deps[k],
                                          ops[r][i].on_start ? ORR_GOAL_STARTED : ORR_GOAL_FINISHED,
                                          &err),
                         &err);
        CHECK_OK(orr_goal_end_rank(g, &err), &err);
    }
    return g;
}

typedef struct result {
    lgs_sim *s;
    orr_code code;
    char text[600];
} result;

static result run(
    const orr_goal *g, lgs_options opt, unsigned threads, uint64_t least, bool is_stopped)
{
    result r = {0};
    opt.threads = threads;
    opt.least_per_round = least;
    err = (orr_error){0};
    CHECK_OK(lgs_create(g, &opt, &r.s, &err), &err);
    if (is_stopped) {
        lgs_stop(r.s);
        CHECK_EQ(lgs_run(r.s, &err), ORR_ESTOP);
        err = (orr_error){0};
    }
    r.code = lgs_run(r.s, &err);
    if (r.code)
        orr_error_text(&err, r.text, sizeof r.text);
    return r;
}

static const char *differs(const lgs_sim *a, const lgs_sim *b)
{
    const lgs_watch *v = a->watch, *w = b->watch;
    if (memcmp(a->clocks, b->clocks, a->hosts * a->stride * sizeof *a->clocks) != 0)
        return "clocks";
    if (a->events != b->events || a->messages != b->messages ||
        a->finished_count != b->finished_count)
        return "counts";
    if (a->now != b->now)
        return "the last event";
    for (uint32_t r = 0; r < a->hosts; r++)
        if (lgs_noise_of(a, r) != lgs_noise_of(b, r))
            return "noise";
    for (size_t i = 0; lgs_stall_line(a, i) || lgs_stall_line(b, i); i++)
        if (!lgs_stall_line(a, i) || !lgs_stall_line(b, i) ||
            strcmp(lgs_stall_line(a, i), lgs_stall_line(b, i)) != 0)
            return "why it does not end";
    if (!v)
        return NULL;
    if (v->span_count != w->span_count || v->pair_count != w->pair_count ||
        v->search_count != w->search_count)
        return "how much is recorded";
    for (size_t i = 0; i < v->span_count; i++) {
        const lgs_span *x = &v->spans[i], *y = &w->spans[i];
        if (x->start != y->start || x->end != y->end || x->size != y->size || x->host != y->host ||
            x->peer != y->peer || x->node != y->node || x->kind != y->kind || x->cpu != y->cpu)
            return "spans";
    }
    for (size_t i = 0; i < v->search_count; i++) {
        const lgs_search *x = &v->searches[i], *y = &w->searches[i];
        if (x->time != y->time || x->host != y->host || x->depth != y->depth ||
            x->side != y->side || x->is_hit != y->is_hit)
            return "searches";
    }
    for (int side = 0; side < 2 && v->longest[0]; side++)
        if (memcmp(v->longest[side], w->longest[side], a->hosts * sizeof(uint32_t)) != 0)
            return "lengths of queues";
    if (v->pair_count && memcmp(v->pairs, w->pairs, v->pair_count * sizeof *v->pairs) != 0)
        return "pairs";
    return NULL;
}

typedef struct tally {
    unsigned ended, stuck, parted;
} tally;

static void try_one(uint64_t number, const char *noise, tally *t)
{
    static const unsigned threads[] = {2, 3, 8, 3};
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1};
    below(&d, 2);
    d.ranks = 2 + below(&d, MOST_RANKS - 1);
    d.block = chance(&d, 70) ? d.ranks : 1 + below(&d, d.ranks);
    d.cpus = 1 + below(&d, 2);
    d.nics = 1 + below(&d, 2);
    d.wild = chance(&d, 20) ? 10 : 0;
    d.is_even = chance(&d, 50);
    orr_goal *g = draw_goal(&d);
    lgs_options opt = {.L = d.is_even ? below(&d, 4) * 100 : 500 + below(&d, 5000),
                       .o = d.is_even ? below(&d, 3) * 50 : 100 + below(&d, 2000),
                       .g = d.is_even ? below(&d, 3) * 30 : 100 + below(&d, 2000),
                       .O = below(&d, 2),
                       .G = below(&d, 3) * 0.5,
                       .S = chance(&d, 40)   ? 65535
                            : chance(&d, 60) ? 50
                                             : 500,
                       .fold = LGS_FOLD_OFF,
                       .noise = chance(&d, 20) ? noise : NULL,
                       .noise_seed = number,
                       .keeps_spans = chance(&d, 40),
                       .keeps_queues = chance(&d, 20),
                       .keeps_pairs = chance(&d, 40)};
    const result one = run(g, opt, 1, 0, false);
    for (int i = 0; i < 4; i++) {
        const uint64_t least = i == 3 ? 1 + below(&d, 20) : 0; /* the rest is for one thread */
        const result many = run(g, opt, threads[i], least, i == 0 && number % 16 == 0);
        const char *what = one.code != many.code || strcmp(one.text, many.text) != 0
                               ? "how it ends"
                               : differs(one.s, many.s);
        if (what)
            check_fail(__FILE__, __LINE__, "schedule %llu, %u threads: other %s: %s | %s",
                       (unsigned long long)number, threads[i], what, one.text, many.text);
        t->parted += many.s->threads > 1;
        lgs_destroy(many.s);
    }
    if (getenv("THREADS_WHY"))
        fprintf(stderr, "schedule %llu: %llu events, %s\n", (unsigned long long)number,
                (unsigned long long)one.s->events, one.code ? one.text : "ends");
    t->ended += !one.code;
    t->stuck += one.code != ORR_OK;
    lgs_destroy(one.s);
    orr_goal_free(g);
}

TEST(test_threads_goal__any_number_of_threads_gives_the_same)
{
    unsigned long long first = 1, last = 1500;
    const char *asked = getenv("THREADS_SEEDS");
    tally t = {0};
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    static const char noise[] = "noise.txt", lines[] = "0 30\n1000 100\n5000 700\n9000 1\n";
    write_file(noise, lines, sizeof lines - 1);
    for (unsigned long long i = first; i <= last; i++)
        try_one(i, noise, &t);
    fprintf(stderr, "# %u end, %u do not; %u runs had several threads\n", t.ended, t.stuck,
            t.parted);
    CHECK(t.ended * 2 > t.stuck && t.parted); /* or nothing is tested */
}

int main(void)
{
    const CMUnitTest tests[] = {RUN(test_threads_goal__any_number_of_threads_gives_the_same)};
    return RUN_ALL(tests);
}
