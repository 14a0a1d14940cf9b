/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads_faults.c - a schedule on several threads where no thread can be started, and memory
 * runs out at every single place.
 *
 * Without threads the parts of the schedule run one after the other: the results are the same, and
 * the n-th request for memory is the same one each time.  Sanitizers watch that nothing leaks. */
#include "check.h"

#include "run/loggops/lgs_impl.h"

#include <errno.h>
#include <pthread.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */
int __wrap_pthread_create(pthread_t *thread,
                          const pthread_attr_t *how,
                          void *(*begin)(void *),
                          void *context);

int __wrap_pthread_create(pthread_t *thread,
                          const pthread_attr_t *how,
                          void *(*begin)(void *),
                          void *context)
{
    (void)thread, (void)how, (void)begin, (void)context;
    return EAGAIN;
}

static orr_error err;

enum { RANKS = 9, ROUNDS = 40, SMALL = 8, LARGE = 4000 };

/* Around a ring, now small, now large; every rank computes for another time.  The last message may
 * be left out, so that its receive waits for ever. */
static orr_goal *make_ring(bool ends)
{
    orr_goal *g;
    CHECK_OK(orr_goal_create(RANKS, &g, &err), &err);
    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t before = UINT32_MAX;
        CHECK_OK(orr_goal_begin_rank(g, &err), &err);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            const uint64_t size = i % 2 ? SMALL : LARGE;
            uint32_t ops[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
            const orr_goal_op all[3] = {
                {.kind = ORR_GOAL_CALC, .size = i % 5 * 100 + r % 3 * 10, .cpu = 1},
                {.kind = ORR_GOAL_SEND, .size = size, .peer = (r + 1) % RANKS},
                {.kind = ORR_GOAL_RECV, .size = size, .peer = (r + RANKS - 1) % RANKS}};
            for (int k = 0; k < 3; k++) {
                if (k == 1 && !ends && r == 0 && i + 1 == ROUNDS)
                    continue;
                CHECK_OK(orr_goal_add(g, &all[k], &ops[k], &err), &err);
                if (before != UINT32_MAX)
                    CHECK_OK(orr_goal_require(g, ops[k], before, ORR_GOAL_FINISHED, &err), &err);
            }
            CHECK_OK(
                orr_goal_add(g, &(orr_goal_op){.kind = ORR_GOAL_CALC, .size = 1}, &before, &err),
                &err);
            for (int k = 0; k < 3; k++)
                if (ops[k] != UINT32_MAX)
                    CHECK_OK(orr_goal_require(g, before, ops[k], ORR_GOAL_FINISHED, &err), &err);
        }
        CHECK_OK(orr_goal_end_rank(g, &err), &err);
    }
    return g;
}

typedef struct job {
    bool ends, keeps, is_stopped;
    unsigned threads;
    uint32_t S;
    uint64_t least; /* per round */
} job;

static orr_code run(const orr_goal *g, const job *j, uint64_t *sum)
{
    const lgs_options opt = {.L = 500,
                             .o = 100,
                             .g = 50,
                             .G = 0.5,
                             .S = j->S,
                             .fold = LGS_FOLD_OFF,
                             .threads = j->threads,
                             .least_per_round = j->least,
                             .keeps_spans = j->keeps,
                             .keeps_pairs = j->keeps,
                             .keeps_queues = j->keeps};
    lgs_sim *s;
    err = (orr_error){0};
    orr_code code = lgs_create(g, &opt, &s, &err);
    if (code)
        return code;
    if (j->is_stopped)
        lgs_stop(s);
    code = lgs_run(s, &err);
    if (j->is_stopped && code == ORR_ESTOP)
        code = lgs_run(s, &err);
    *sum = s->events;
    for (uint32_t r = 0; r < RANKS; r++)
        *sum = *sum * 1000003 + lgs_finished_at(s, r);
    for (size_t i = 0; s->watch && i < s->watch->span_count; i++)
        *sum = *sum * 1000003 + s->watch->spans[i].start * 64 + s->watch->spans[i].host;
    lgs_destroy(s);
    return code;
}

static const job jobs[] = {{.ends = true, .S = 65535},
                           {.ends = true, .S = 100},
                           {.ends = true, .S = 100, .keeps = true},
                           {.ends = true, .S = 100, .least = 4},
                           {.ends = true, .S = 100, .is_stopped = true},
                           {.ends = false, .S = 100}};
enum { JOBS = sizeof jobs / sizeof *jobs };

TEST(test_threads_faults__without_threads_the_results_are_the_same)
{
    for (size_t k = 0; k < JOBS; k++) {
        orr_goal *g = make_ring(jobs[k].ends);
        uint64_t one = 0, some = 0;
        job j = jobs[k];
        j.threads = 1;
        const orr_code code = run(g, &j, &one);
        CHECK_EQ(code, j.ends ? ORR_OK : ORR_EINPUT);
        for (j.threads = 2; j.threads < 12; j.threads += 3) {
            CHECK_EQ(run(g, &j, &some), code);
            CHECK_EQ_U(some, one);
        }
        orr_goal_free(g);
    }
}

TEST(test_threads_faults__memory_that_runs_out_anywhere_is_reported_as_that)
{
    for (size_t k = 0; k < JOBS; k++) {
        orr_goal *g = make_ring(jobs[k].ends);
        job j = jobs[k];
        j.threads = 3;
        for (long n = 0;; n++) {
            uint64_t unused = 0;
            orr__fail_alloc_after(n);
            const orr_code code = run(g, &j, &unused);
            const bool failed = orr__fail_alloc_after(-1) < 0;
            if (code != (failed ? ORR_ENOMEM : j.ends ? ORR_OK : ORR_EINPUT))
                check_fail(__FILE__, __LINE__, "job %zu, request %ld: code %d: %s", k, n, (int)code,
                           err.message);
            if (!failed)
                break;
            CHECK(n < 5000);
        }
        orr_goal_free(g);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_threads_faults__without_threads_the_results_are_the_same),
        RUN(test_threads_faults__memory_that_runs_out_anywhere_is_reported_as_that),
    };
    return RUN_ALL(tests);
}
