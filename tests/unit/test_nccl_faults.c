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

static orr_code count_operator(void *context, const char *kernel, double us, orr_error *e)
{
    (void)e;
    CHECK_TEXT(kernel, "gemm bf16 m=16 n=64 k=32 nn");
    CHECK_EQ_U((uint64_t)us, 3);
    ++*(int *)context;
    return ORR_OK;
}

static orr_code run_operators(int way)
{
    int count = 0;
    uint64_t others;
    (void)way;
    const orr_code code =
        orr_nsys_operators("ops.sqlite", "bf16", count_operator, &count, &others, &err);
    CHECK(code || (count == 1 && others == 1));
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

TEST(test_nccl_faults__operators)
{
    static const char *const tables[] = {
        "CREATE TABLE StringIds (id, value)",
        "CREATE TABLE NVTX_EVENTS (start, end, text, globalTid)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, globalTid, correlationId)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName, globalPid, correlationId)",
        "INSERT INTO StringIds VALUES (1, 'cutlass_gemm_nn_align8')",
        "INSERT INTO NVTX_EVENTS VALUES (10, 20, 'aten::mm, sizes = [[16, 32], [32, 64]]', 16777217)",
        "INSERT INTO NVTX_EVENTS VALUES (30, 40, 'aten::tanh, sizes = [[16]]', 16777217)",
        "INSERT INTO NVTX_EVENTS VALUES (50, 60, 'aten::mm, sizes = [[16, 32', 16777217)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (15, 16777217, 1), (35, 16777217, 2), (55, 16777217, 3)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 3200, 1, 16777216, 1), "
        "(4000, 5000, 1, 16777216, 2), (6000, 7000, 1, 16777216, 3)",
    };
    orr_sqlite *db;
    CHECK_OK(orr_sqlite_create("ops.sqlite", &db, &err), &err);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        CHECK_OK(orr_sqlite_run(db, tables[i], &err), &err);
    orr_sqlite_close(db);
    fail_each(run_operators, 0);
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
        RUN(test_nccl_faults__operators),
        RUN(test_nccl_faults__payloads_without_communicators),
        RUN(test_nccl_faults__timelines),
    };
    return RUN_ALL(tests);
}
