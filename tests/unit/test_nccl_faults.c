/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator, nsight */
/* test_nccl_faults.c - memory that runs out at every single place on the way from exports to a
 * schedule: it must be said that memory ran out, nothing is written, and sanitizers watch that
 * nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#define synth_require(condition, what) check_true((condition), (what))
static inline void check_true(bool condition, const char *what)
{
    if (!condition)
        check_fail(__FILE__, __LINE__, "%s", what);
}

#include "compat/nccl_generator/nccl_generator.h"
#include "nsys_synth.h"

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>

#include <sys/stat.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;

static orr_code run_convert(int way)
{
    orr_nccl_report r;
    const char *const paths[] = {"t"};
    const orr_nccl_options opt = {.output = "out.goal",
                                  .events = way ? "events.goal" : NULL,
                                  .simple_table = "table.json",
                                  .rules = way == 1 ? &ncg_rules : NULL,
                                  .is_merged = way == 1,
                                  .memory = way == 2 ? 1 : 0};
    return orr_nccl_convert(paths, 1, &opt, &r, &err);
}

static orr_code run_timeline(int way)
{
    orr_timeline *t;
    (void)way;
    const orr_code code = orr_nsys_timeline("t/trace_nid000000.sqlite", &t, &err);
    CHECK(!code == (t != NULL));
    orr_timeline_destroy(t);
    return code;
}

static void fail_each(orr_code (*work)(int), int way)
{
    for (long n = 0;; n++) {
        err.code = ORR_OK;
        unlink("out.goal");
        orr__fail_alloc_after(n);
        const orr_code code = work(way);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        CHECK(!failed || access("out.goal", F_OK) != 0);
        if (!failed)
            break;
        CHECK(n < 20000);
    }
}

TEST(test_nccl_faults__markers)
{
    mkdir("t", 0777);
    synth_write(&(synth){.folder = "t", .nodes = 2, .gpus = 1, .channels = 1, .rounds = 4});
    synth_write_table("table.json");
    for (int way = 0; way < 3; way++)
        fail_each(run_convert, way);
}

TEST(test_nccl_faults__payloads_without_communicators)
{
    mkdir("t", 0777);
    synth_write(&(synth){
        .folder = "t", .nodes = 2, .gpus = 1, .channels = 1, .rounds = 4, .has_payloads = true});
    synth_write_table("table.json");
    fail_each(run_convert, 0);
}

TEST(test_nccl_faults__timelines)
{
    mkdir("t", 0777);
    synth_write(&(synth){.folder = "t", .nodes = 1, .gpus = 1, .channels = 1, .rounds = 1});
    fail_each(run_timeline, 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_nccl_faults__markers),
        RUN(test_nccl_faults__payloads_without_communicators),
        RUN(test_nccl_faults__timelines),
    };
    return RUN_ALL(tests);
}
