/* SPDX-License-Identifier: Apache-2.0 */
/* GOAL schedules: text to binary, and the LogGOPS simulation of a dissemination barrier, of a
 * linear all-to-all and of a ring.  For comparison (LogGOPSim, one core, another machine):
 * dissemination on 65,536 ranks 3.2 s and 456 MB, linear all-to-all on 256 ranks 5.5 s, 83 MB of
 * text to binary 2.2 s. */
#include "bench.h"

#include "run/loggops/loggops.h"
#include <orrery/lab/compat.h>

static orr_error err;

static void must(orr_code code)
{
    char text[600];
    if (code)
        fprintf(stderr, "%s\n", orr_error_text(&err, text, sizeof text));
    bench_require(code == ORR_OK, "a step failed");
}

static uint32_t add(orr_goal *g, orr_goal_kind kind, uint32_t peer, uint64_t size)
{
    uint32_t number;
    must(orr_goal_add(g, &(orr_goal_op){.kind = kind, .peer = peer, .size = size}, &number, &err));
    return number;
}

/* Round k: send to rank + 2^k when round k - 1 has arrived, receive from rank - 2^k. */
static orr_goal *dissemination(uint32_t ranks)
{
    orr_goal *g;
    must(orr_goal_create(ranks, &g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t before = UINT32_MAX;
        must(orr_goal_begin_rank(g, &err));
        for (uint32_t dist = 1; dist < ranks; dist *= 2) {
            const uint32_t send = add(g, ORR_GOAL_SEND, (r + dist) % ranks, 1);
            if (before != UINT32_MAX)
                must(orr_goal_require(g, send, before, ORR_GOAL_FINISHED, &err));
            before = add(g, ORR_GOAL_RECV, (r + ranks - dist) % ranks, 1);
        }
        must(orr_goal_end_rank(g, &err));
    }
    return g;
}

static orr_goal *all_to_all(uint32_t ranks)
{
    orr_goal *g;
    must(orr_goal_create(ranks, &g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        must(orr_goal_begin_rank(g, &err));
        for (uint32_t step = 1; step < ranks; step++) {
            add(g, ORR_GOAL_SEND, (r + step) % ranks, 1);
            add(g, ORR_GOAL_RECV, (r + ranks - step) % ranks, 1);
        }
        must(orr_goal_end_rank(g, &err));
    }
    return g;
}

/* Calculations of different lengths give every event a different time. */
static orr_goal *uneven(uint32_t ranks, uint32_t rounds)
{
    orr_goal *g;
    uint32_t state = 1;
    must(orr_goal_create(ranks, &g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t before = UINT32_MAX;
        must(orr_goal_begin_rank(g, &err));
        for (uint32_t i = 0; i < rounds; i++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t calc = add(g, ORR_GOAL_CALC, 0, state >> 12);
            if (before != UINT32_MAX)
                must(orr_goal_require(g, calc, before, ORR_GOAL_FINISHED, &err));
            const uint32_t send = add(g, ORR_GOAL_SEND, (r + 1) % ranks, 8);
            must(orr_goal_require(g, send, calc, ORR_GOAL_FINISHED, &err));
            before = add(g, ORR_GOAL_RECV, (r + ranks - 1) % ranks, 8);
            must(orr_goal_require(g, before, calc, ORR_GOAL_FINISHED, &err));
        }
        must(orr_goal_end_rank(g, &err));
    }
    return g;
}

/* ---- large schedules with different ranks, for several threads */

typedef struct writer {
    orr_goal *g;
    uint32_t last; /* UINT32_MAX: none yet */
    uint32_t state;
    uint32_t uneven; /* calculations differ by up to this many per cent */
} writer;

static uint32_t draw(writer *w, uint32_t below)
{
    w->state = w->state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)w->state * below) >> 32);
}

static void after(writer *w, uint32_t op, uint32_t before)
{
    if (before != UINT32_MAX)
        must(orr_goal_require(w->g, op, before, ORR_GOAL_FINISHED, &err));
}

static uint32_t next_op(writer *w, orr_goal_kind kind, uint32_t peer, uint64_t size)
{
    const uint32_t op = add(w->g, kind, peer, size);
    after(w, op, w->last);
    w->last = op;
    return op;
}

static void compute(writer *w, uint32_t ns)
{
    next_op(w, ORR_GOAL_CALC, 0, ns + (w->uneven ? draw(w, ns / 100 * w->uneven + 1) : 0));
}

/* A ring all-reduce: each step needs the piece received by the previous step, and the end of its
 * send. */
static void ring(writer *w, uint32_t members, uint32_t left, uint32_t right, uint64_t piece)
{
    for (uint32_t step = 0; step < 2 * (members - 1); step++) {
        const uint32_t before = w->last, send = add(w->g, ORR_GOAL_SEND, right, piece);
        after(w, send, before);
        const uint32_t recv = add(w->g, ORR_GOAL_RECV, left, piece);
        after(w, recv, before);
        const uint32_t both = add(w->g, ORR_GOAL_CALC, 0, 10);
        after(w, both, send);
        after(w, both, recv);
        w->last = both;
    }
}

/* A step of tp 8 x dp N x pp 4 in micro-batches, all forward before all backward: two all-reduces
 * per layer among 8 ranks, activations from stage to stage, gradients among the ranks of a
 * stage. */
static orr_goal *training(uint32_t ranks, uint32_t uneven)
{
    enum { TP = 8, PP = 4, BATCHES = 12, LAYERS = 8, ACTIVATIONS = 1 << 20, GRADIENTS = 1 << 22 };
    const uint32_t dp = ranks / TP / PP, stage_ranks = TP * dp;
    writer w = {.state = 1, .uneven = uneven};
    must(orr_goal_create(ranks, &w.g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t tp = r % TP, first = r - tp, stage = r / stage_ranks, d = r / TP % dp;
        w.last = UINT32_MAX;
        must(orr_goal_begin_rank(w.g, &err));
        for (uint32_t pass = 0; pass < 2; pass++) {
            const bool takes = pass ? stage + 1 < PP : stage > 0,
                       gives = pass ? stage > 0 : stage + 1 < PP;
            for (uint32_t b = 0; b < BATCHES; b++) {
                if (takes)
                    next_op(&w, ORR_GOAL_RECV, pass ? r + stage_ranks : r - stage_ranks,
                            ACTIVATIONS);
                for (uint32_t layer = 0; layer < LAYERS; layer++) {
                    compute(&w, 40000);
                    ring(&w, TP, first + (tp + TP - 1) % TP, first + (tp + 1) % TP,
                         ACTIVATIONS / TP);
                }
                if (gives)
                    next_op(&w, ORR_GOAL_SEND, pass ? r - stage_ranks : r + stage_ranks,
                            ACTIVATIONS);
            }
        }
        const uint32_t base = stage * stage_ranks + tp;
        ring(&w, dp, base + (d + dp - 1) % dp * TP, base + (d + 1) % dp * TP, GRADIENTS / dp);
        must(orr_goal_end_rank(w.g, &err));
    }
    return w.g;
}

static orr_goal *training_even(uint32_t ranks)
{
    return training(ranks, 0);
}

static orr_goal *training_uneven(uint32_t ranks)
{
    return training(ranks, 5);
}

/* Replicas of 8 ranks that never communicate. */
static orr_goal *replicas(uint32_t ranks)
{
    enum { MEMBERS = 8, LAYERS = 200 };
    writer w = {.state = 1, .uneven = 5};
    must(orr_goal_create(ranks, &w.g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t at = r % MEMBERS, first = r - at;
        w.last = UINT32_MAX;
        must(orr_goal_begin_rank(w.g, &err));
        for (uint32_t layer = 0; layer < LAYERS; layer++) {
            compute(&w, 40000);
            ring(&w, MEMBERS, first + (at + MEMBERS - 1) % MEMBERS, first + (at + 1) % MEMBERS,
                 1 << 17);
        }
        must(orr_goal_end_rank(w.g, &err));
    }
    return w.g;
}

/* All ranks send requests to every sixteenth rank, which answers each. */
static orr_goal *incast(uint32_t ranks)
{
    enum { EVERY = 16, TURNS = 61, REQUESTS = 1600 };
    writer w = {.state = 1};
    must(orr_goal_create(ranks, &w.g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t at = r % EVERY;
        must(orr_goal_begin_rank(w.g, &err));
        for (uint32_t i = 0; i < REQUESTS; i++) {
            w.last = UINT32_MAX;
            for (uint32_t k = 1; at == 0 && k < EVERY; k++) {
                /* the sinks rotate, so that messages go far */
                const uint32_t from = (r + EVERY * (i % TURNS) + k) % ranks;
                next_op(&w, ORR_GOAL_RECV, from, 4096);
                next_op(&w, ORR_GOAL_SEND, from, 64);
                w.last = UINT32_MAX;
            }
            if (at == 0)
                continue;
            const uint32_t to = (r - at + ranks - EVERY * (i % TURNS)) % ranks;
            next_op(&w, ORR_GOAL_CALC, 0, 5000 + draw(&w, 5000));
            next_op(&w, ORR_GOAL_SEND, to, 4096);
            next_op(&w, ORR_GOAL_RECV, to, 64);
        }
        must(orr_goal_end_rank(w.g, &err));
    }
    return w.g;
}

/* Rounds of calculations and small messages, to a different rank each time. */
static orr_goal *scattered(uint32_t ranks)
{
    enum { ROUNDS = 2500 };
    writer w = {.state = 1};
    must(orr_goal_create(ranks, &w.g, &err));
    for (uint32_t r = 0; r < ranks; r++) {
        w.last = UINT32_MAX;
        must(orr_goal_begin_rank(w.g, &err));
        for (uint32_t i = 0; i < ROUNDS; i++) {
            const uint32_t by = 1 + (i * 2654435761u >> 8) % (ranks - 1);
            compute(&w, 2000 + draw(&w, 3000));
            next_op(&w, ORR_GOAL_SEND, (r + by) % ranks, 1 + draw(&w, 2000));
            next_op(&w, ORR_GOAL_RECV, (r + ranks - by) % ranks, 1);
        }
        must(orr_goal_end_rank(w.g, &err));
    }
    return w.g;
}

typedef struct job {
    orr_goal *(*make)(uint32_t ranks);
    uint32_t ranks;
    const char *compat;
    orr_goal *goal;
    bool folds; /* equal ranks are folded; else the engine is measured */
    unsigned threads;
    bool keeps_spans;
} job;

static orr_goal *uneven_4(uint32_t ranks)
{
    return uneven(ranks, 4);
}

static void prepare(void *context)
{
    job *j = context;
    j->goal = j->make(j->ranks);
}

static double simulate(void *context)
{
    job *j = context;
    lgs_options opt = lgs_defaults();
    lgs_sim *s;
    const orr_compat *old = NULL;
    if (j->compat)
        must(orr_compat_find(ORR_RULES_LOGGOPS, j->compat, &old, &err));
    opt.rules = old ? old->loggops : NULL;
    opt.fold = j->folds ? LGS_FOLD_AUTO : LGS_FOLD_OFF;
    opt.threads = j->threads ? j->threads : 1;
    opt.keeps_spans = j->keeps_spans;
    must(lgs_create(j->goal, &opt, &s, &err));
    must(lgs_run(s, &err));
    const orr_goal_totals t = orr_goal_count(j->goal);
    const uint64_t events = lgs_events(s);
    bench_require(events == 2 * t.sends + t.recvs + t.calcs, "not everything happened");
    bench_require(lgs_messages(s) == t.sends, "not every message was sent");
    lgs_destroy(s);
    return (double)events / 1e6;
}

static const char text_path[] = "bench_goal.goal", binary_path[] = "bench_goal.bin";

static double to_binary(void *context)
{
    orr_goal *g;
    (void)context;
    must(orr_goal_read(text_path, NULL, &g, &err));
    must(orr_goal_write(g, binary_path, ORR_GOAL_BINARY, &err));
    orr_goal_free(g);
    return bench_file_mb(text_path);
}

static double to_text(void *context)
{
    orr_goal *g;
    (void)context;
    must(orr_goal_read(binary_path, NULL, &g, &err));
    must(orr_goal_write(g, "bench_goal_again.goal", ORR_GOAL_TEXT, &err));
    orr_goal_free(g);
    return bench_file_mb(text_path);
}

static void bench_files(void)
{
    orr_goal *g = dissemination(65536);
    must(orr_goal_write(g, text_path, ORR_GOAL_TEXT, &err));
    orr_goal_free(g);
    bench_apart(&(bench_job){
        .name = "goal__txt2bin_65536ranks", .unit = "MB", .run = to_binary, .input = text_path});
    bench_apart(&(bench_job){
        .name = "goal__bin2txt_65536ranks", .unit = "MB", .run = to_text, .input = binary_path});
    unlink(text_path);
    unlink(binary_path);
    unlink("bench_goal_again.goal");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        job job;
    } rows[] = {
        {"loggops__dissemination_65536ranks", {.make = dissemination, .ranks = 65536}},
        {"loggops__dissemination_65536ranks_lgs2023",
         {.make = dissemination, .ranks = 65536, .compat = "lgs2023"}},
        {"loggops__dissemination_65536ranks_atlahs",
         {.make = dissemination, .ranks = 65536, .compat = "atlahs"}},
        {"loggops__alltoall_256ranks", {.make = all_to_all, .ranks = 256}},
        {"loggops__alltoall_256ranks_lgs2023",
         {.make = all_to_all, .ranks = 256, .compat = "lgs2023"}},
        {"loggops__uneven_ring_65536ranks", {.make = uneven_4, .ranks = 65536}},
        {"loggops__dissemination_1mranks", {.make = dissemination, .ranks = 1 << 20}},
        {"loggops__dissemination_65536ranks_folded",
         {.make = dissemination, .ranks = 65536, .folds = true}},
        {"loggops__alltoall_256ranks_folded", {.make = all_to_all, .ranks = 256, .folds = true}},
        {"loggops__replicas_1024ranks", {.make = replicas, .ranks = 1024}},
        {"loggops__replicas_1024ranks_2threads", {.make = replicas, .ranks = 1024, .threads = 2}},
        {"loggops__incast_1024ranks", {.make = incast, .ranks = 1024}},
        {"loggops__incast_1024ranks_2threads", {.make = incast, .ranks = 1024, .threads = 2}},
        {"loggops__scattered_1024ranks", {.make = scattered, .ranks = 1024}},
        {"loggops__scattered_1024ranks_2threads", {.make = scattered, .ranks = 1024, .threads = 2}},
        {"loggops__training_1024ranks", {.make = training_even, .ranks = 1024}},
        {"loggops__training_1024ranks_2threads",
         {.make = training_even, .ranks = 1024, .threads = 2}},
        {"loggops__training_uneven_1024ranks", {.make = training_uneven, .ranks = 1024}},
        {"loggops__training_uneven_1024ranks_2threads",
         {.make = training_uneven, .ranks = 1024, .threads = 2}},
        {"loggops__training_1024ranks_spans",
         {.make = training_even, .ranks = 1024, .keeps_spans = true}},
        {"loggops__training_1024ranks_spans_2threads",
         {.make = training_even, .ranks = 1024, .threads = 2, .keeps_spans = true}},
    };
    const char *only = argc > 1 ? argv[1] : NULL;
    if (!only || strstr("goal__", only))
        bench_files();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job j = rows[i].job;
        if (only && !strstr(rows[i].name, only))
            continue;
        bench_apart(&(bench_job){.name = rows[i].name,
                                 .unit = "Mevents",
                                 .run = simulate,
                                 .prepare = prepare,
                                 .context = &j,
                                 .runs = j.ranks > 1 << 18 ? 1 : 0});
    }
    return 0;
}
