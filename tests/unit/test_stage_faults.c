/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* test_stage_faults.c - memory that runs out at every single place while a job is made and written.
 *
 * As in test_faults.c: the job is run again and again with the first, the second, the third ...
 * request for memory failing, and must say so each time.  Sanitizers watch that nothing leaks. */
#include "check.h"

#include <orrery/lab/stage.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;

static orr_code write_job(orr_stage *job)
{
    orr_set *set;
    orr_code code = orr_stage_set(job, &set, &err);
    if (!code)
        orr_set_close(set);
    if (!code)
        code = orr_stage_write_files(job, "w.%d.json", ORR_STAGE_JSON, 1, &err);
    if (!code)
        code = orr_stage_write_files(job, "w.%d.et", ORR_STAGE_ET, 1, &err);
    if (!code)
        code = orr_stage_write_graph(job, "graph", &err);
    return code ? code : orr_stage_write_groups(job, "groups.json", &err);
}

static orr_code run(const orr_stage_options *o)
{
    orr_stage *job;
    orr_code code = orr_stage_create(o, &job, &err);
    CHECK(!code == (job != NULL));
    if (!code)
        code = write_job(job);
    orr_stage_destroy(job);
    return code;
}

static void fail_everywhere(const orr_stage_options *o)
{
    long n = 0;
    for (;; n++) {
        orr__fail_alloc_after(n);
        const orr_code code = run(o);
        const bool was_reached = orr__fail_alloc_after(-1) < 0;
        if (!was_reached) {
            CHECK_OK(code, &err);
            break;
        }
        CHECK_CODE(code, ORR_ENOMEM, &err);
    }
    CHECK(n > 100);
}

TEST(test_stage_faults__says_when_memory_runs_out)
{
    orr_stage_options o = orr_stage_defaults();
    o.layers = 2;
    o.dp = o.tp = o.pp = 2;
    o.micro_batch = 32;
    o.model = ORR_STAGE_GPT;
    fail_everywhere(&o);
}

TEST(test_stage_faults__says_so_with_experts_clones_and_merging_too)
{
    orr_stage_options o = orr_stage_defaults();
    o.layers = 1;
    o.ep = 2;
    o.experts = 4;
    o.weight_sharded = true;
    o.model = ORR_STAGE_MOE;
    fail_everywhere(&o);
    o = orr_stage_defaults();
    o.layers = 1;
    o.dp = o.sp = 2;
    o.micro_batch = 32;
    o.model = ORR_STAGE_GPT;
    o.clones = o.merge_comms = o.legacy_attr = true;
    fail_everywhere(&o);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_stage_faults__says_when_memory_runs_out),
        RUN(test_stage_faults__says_so_with_experts_clones_and_merging_too),
    };
    return RUN_ALL(tests);
}
