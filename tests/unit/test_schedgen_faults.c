/* SPDX-License-Identifier: Apache-2.0 */
/* room: schedgen */
/* test_schedgen_faults.c - memory that runs out at every single place where a schedule is made: it
 * must be said that memory ran out, no file may appear, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include "compat/schedgen/sg_rules.h"

#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/schedgen.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

/* How a job ended whose request number n fails; true: it asks for less. */
static bool check_end(long n, orr_code code, const orr_error *err, const char *what)
{
    const bool failed = orr__fail_alloc_after(-1) < 0;
    if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err->code != ORR_ENOMEM))
        check_fail(__FILE__, __LINE__, "%s, request %ld: code %d: %s", what, n, (int)code,
                   err->message);
    CHECK(!failed || access("x.goal", F_OK) != 0);
    unlink("x.goal");
    return !failed;
}

static void fail_each(const orr_schedgen_pattern *p, bool is_binary)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 6;
    o.has_overlap = true;
    o.is_binary = is_binary;
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr__fail_alloc_after(n);
        const orr_code code = orr_schedgen_write(p, &o, "x.goal", NULL, &err);
        if (check_end(n, code, &err, p->name))
            return;
    }
}

TEST(test_schedgen_faults__patterns_say_that_memory_ran_out)
{
    for (size_t i = 0; orr_schedgen_at(i); i++) {
        fail_each(orr_schedgen_at(i), false);
        fail_each(orr_schedgen_at(i), true);
    }
}

TEST(test_schedgen_faults__schedules_in_memory_too)
{
    const orr_schedgen_options o = orr_schedgen_defaults();
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr_goal *g;
        orr__fail_alloc_after(n);
        const orr_code code = orr_schedgen_goal(orr_schedgen_find("resnet"), &o, &g, &err);
        CHECK((g != NULL) == (code == ORR_OK));
        orr_goal_free(g);
        if (check_end(n, code, &err, "resnet"))
            return;
    }
}

static void write_trace(const char *path)
{
    static const char text[] =
        "MPI_Init:-:1:2:0\nMPI_Irecv:1:9:1:1,4,4:0:3:7,0,1:640:2\n"
        "MPI_Send_init:2:9:1:1,4,4:0:3:8,0,1:648:2\nMPI_Start:3:648:3\n"
        "MPI_Waitall:6:2:640:0:9\nMPI_Allreduce:10:9:9:10:1,4,4:3:7,0,1:11\n"
        "MPI_Reduce_scatter:17:9:9:77:1:1,4,4:3:5,0,1:18\nMPI_Finalize:20:-\n";
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    CHECK_EQ_U(fwrite(text, 1, strlen(text), f), strlen(text));
    CHECK_EQ(fclose(f), 0);
}

static void fail_each_trace(const orr_mpi_trace_options *opt)
{
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        unlink("start");
        orr__fail_alloc_after(n);
        const orr_code code = orr_mpi_trace_write("t-0.dat", opt, "x.goal", NULL, NULL, &err);
        const bool is_over = orr__fail_alloc_after(-1) >= 0;
        if (code != (is_over ? ORR_OK : ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "trace, request %ld: code %d: %s", n, (int)code,
                       err.message);
        if (is_over)
            return;
    }
}

TEST(test_schedgen_faults__traces_say_that_memory_ran_out)
{
    write_trace("t-0.dat");
    fail_each_trace(&(orr_mpi_trace_options){0});
    fail_each_trace(&(orr_mpi_trace_options){.copies = 3, .is_binary = true});
    fail_each_trace(
        &(orr_mpi_trace_options){.rules = &sg_atlahs, .start_path = "start", .max_collectives = 1});
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_schedgen_faults__patterns_say_that_memory_ran_out),
        RUN(test_schedgen_faults__schedules_in_memory_too),
        RUN(test_schedgen_faults__traces_say_that_memory_ran_out),
    };
    return RUN_ALL(tests);
}
