/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_faults.c - memory that runs out at every single place of linking: of a pair in both
 * ways, and of a job of two ranks with its set and its timeline.  It must be said that memory ran
 * out, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"
#include "rooms.h"

#include <orrery/lab/link.h>

#include "../../bench/torch_trace.h"

long orr__fail_alloc_after(long n); /* src/base/memory.c */

enum { TRIES_MAX = 100000 };

static orr_error err;

static orr_code run_pair(const orr_link_options *opt)
{
    orr_link *l;
    orr_code code = orr_link_open("job.0.host.json", "job.0.device.json", opt, &l, &err);
    CHECK(!code == (l != NULL));
    if (!code)
        code = orr_link_write(l, "/dev/null", &err);
    orr_link_close(l);
    return code;
}

static orr_code run_compat(void)
{
    return run_pair(&(orr_link_options){.rules = program_of(ORR_RULES_LINK, NULL)->link});
}

static orr_code run_ours(void)
{
    return run_pair(&(orr_link_options){.has_step = true, .step = 1});
}

static orr_code run_job(void)
{
    static const char *const paths[] = {"."};
    orr_link_job *job;
    orr_timeline *t = NULL;
    const orr_set *s;
    orr_code code = orr_link_job_open(paths, 1, &(orr_link_options){.threads = 1}, &job, &err);
    CHECK(!code == (job != NULL));
    if (!code)
        code = orr_link_job_set(job, &s, &err);
    if (!code)
        code = orr_link_job_timeline(job, &t, &err);
    orr_timeline_destroy(t);
    orr_link_job_close(job);
    return code;
}

/* Fail the n-th allocation, for every n until none is left to fail. */
static void fail_everywhere(orr_code (*run)(void))
{
    for (long n = 0; n < TRIES_MAX; n++) {
        err.code = ORR_OK;
        orr__fail_alloc_after(n);
        const orr_code code = run();
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            return;
    }
    check_fail(__FILE__, __LINE__, "it never succeeds");
}

TEST(test_link__says_that_memory_ran_out_in_compat_mode)
{
    fail_everywhere(run_compat);
}

TEST(test_link__says_that_memory_ran_out)
{
    fail_everywhere(run_ours);
}

TEST(test_link__says_that_memory_ran_out_in_a_job)
{
    fail_everywhere(run_job);
}

int main(void)
{
    const torch_job job = {.prefix = "job", .ranks = 2, .steps = 2, .layers = 1, .seed = 3};
    const CMUnitTest tests[] = {
        RUN(test_link__says_that_memory_ran_out_in_compat_mode),
        RUN(test_link__says_that_memory_ran_out),
        RUN(test_link__says_that_memory_ran_out_in_a_job),
    };
    torch_make(&job);
    return RUN_ALL(tests);
}
