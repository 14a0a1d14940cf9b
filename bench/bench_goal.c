/* SPDX-License-Identifier: Apache-2.0 */
/* GOAL schedules: text to binary, and the LogGOPS simulation of a dissemination barrier, of a
 * linear all-to-all and of a ring.  What the figures are held against (LogGOPSim, one core, other
 * machine): dissemination on 65,536 ranks 3.2 s and 456 MB, linear all-to-all on 256 ranks 5.5 s,
 * 83 MB of text to binary 2.2 s. */
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

/* Calculations of different length make every event have a time of its own. */
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

typedef struct job {
    orr_goal *(*make)(uint32_t ranks);
    uint32_t ranks;
    const char *compat;
    orr_goal *goal;
    bool folds; /* ranks that do the same are simulated once; else the engine is measured */
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
    static job jobs[] = {
        {dissemination, 65536, NULL, NULL, false},
        {dissemination, 65536, "lgs2023", NULL, false},
        {dissemination, 65536, "atlahs", NULL, false},
        {all_to_all, 256, NULL, NULL, false},
        {all_to_all, 256, "lgs2023", NULL, false},
        {uneven_4, 65536, NULL, NULL, false},
        {dissemination, 1 << 20, NULL, NULL, false},
        {dissemination, 65536, NULL, NULL, true},
        {all_to_all, 256, NULL, NULL, true},
    };
    static const char *const names[] = {
        "loggops__dissemination_65536ranks",        "loggops__dissemination_65536ranks_lgs2023",
        "loggops__dissemination_65536ranks_atlahs", "loggops__alltoall_256ranks",
        "loggops__alltoall_256ranks_lgs2023",       "loggops__uneven_ring_65536ranks",
        "loggops__dissemination_1mranks",           "loggops__dissemination_65536ranks_folded",
        "loggops__alltoall_256ranks_folded",
    };
    const char *only = argc > 1 ? argv[1] : NULL;
    if (!only || strstr("goal__", only))
        bench_files();
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        if (only && !strstr(names[i], only))
            continue;
        const bool is_large = jobs[i].ranks > 1 << 18;
        bench_apart(&(bench_job){.name = names[i],
                                 .unit = "Mevents",
                                 .run = simulate,
                                 .prepare = prepare,
                                 .context = &jobs[i],
                                 .runs = is_large ? 1 : 0});
    }
    return 0;
}
