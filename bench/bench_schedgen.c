/* SPDX-License-Identifier: Apache-2.0 */
/* bench_schedgen.c - generates schedules of patterns, as text and in memory, and converts traces of
 * MPI calls to schedules. */
#include "bench.h"

#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/schedgen.h>

enum { MANY = 1 << 20, SOME = 1 << 16, ALL_TO_ALL = 2048, CALLS = 200000 };

static orr_schedgen_options options_of(uint32_t ranks)
{
    orr_schedgen_options opt = orr_schedgen_defaults();
    opt.ranks = ranks;
    opt.data_bytes = 65536;
    opt.is_quiet = true;
    return opt;
}

/* Megabytes of text. */
static double write_pattern(const char *name, uint32_t ranks, uint64_t messages, const char *path)
{
    const orr_schedgen_options opt = options_of(ranks);
    orr_schedgen_totals t;
    orr_error err;
    bench_require(!orr_schedgen_write(orr_schedgen_find(name), &opt, path, &t, &err), name);
    bench_require(t.sends == messages && t.recvs == messages, "as many messages as there must be");
    return (double)t.text_bytes / 1e6;
}

static double dissemination(void *context)
{
    return write_pattern("dissemination", MANY, (uint64_t)MANY * 20, context);
}

static double alltoall(void *context)
{
    return write_pattern("linear_alltoall", ALL_TO_ALL, (uint64_t)ALL_TO_ALL * (ALL_TO_ALL - 1),
                         context);
}

/* Millions of operations. */
static double in_memory(void *context)
{
    const orr_schedgen_options opt = options_of(SOME);
    orr_goal *g;
    orr_error err;
    (void)context;
    bench_require(!orr_schedgen_goal(orr_schedgen_find("dissemination"), &opt, &g, &err), "memory");
    const orr_goal_totals t = orr_goal_count(g);
    bench_require(t.sends == (uint64_t)SOME * 16, "as many messages as there must be");
    orr_goal_free(g);
    return (double)(t.sends + t.recvs + t.calcs) / 1e6;
}

static void write_trace(const char *path, int rank)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, path);
    fprintf(f, "MPI_Init:-:1:2:1237666046950106.000000\n");
    for (long i = 0; i < CALLS; i++) {
        const long at = 1237666046950200 + i * 50;
        if (i % 10 == 9)
            fprintf(f, "MPI_Allreduce:%ld.000000:1:2:1:2,4,4:3:0,%d,2:%ld.000000\n", at, rank,
                    at + 9);
        else
            fprintf(f, "MPI_%s:%ld.000000:11251872:4500:11,8,8:%d:3000:0,%d,2%s:%ld.000000\n",
                    rank ? "Recv" : "Send", at, !rank, rank, rank ? ":9" : "", at + 9);
    }
    bench_require(fclose(f) == 0, path);
}

/* Megabytes of the traces. */
static double trace(void *context)
{
    const orr_mpi_trace_options opt = {.is_quiet = true};
    orr_schedgen_totals t;
    orr_error err;
    (void)context;
    bench_require(!orr_mpi_trace_write("bench-0.dat", &opt, "/dev/null", &t, NULL, &err), "trace");
    bench_require(t.sends == CALLS / 10 * 9 + 2 * (CALLS / 10), "as many messages as calls");
    return bench_file_mb("bench-0.dat") + bench_file_mb("bench-1.dat");
}

int main(void)
{
    static char nowhere[] = "/dev/null", file[] = "bench.goal";
    bench_apart(&(bench_job){.name = "schedgen__dissemination_1m_ranks",
                             .unit = "MB",
                             .run = dissemination,
                             .context = nowhere});
    bench_apart(&(bench_job){.name = "schedgen__dissemination_1m_to_a_file",
                             .unit = "MB",
                             .run = dissemination,
                             .context = file,
                             .runs = 2});
    unlink(file);
    bench_apart(&(bench_job){.name = "schedgen__alltoall_2048_ranks",
                             .unit = "MB",
                             .run = alltoall,
                             .context = nowhere});
    bench_apart(&(bench_job){
        .name = "schedgen__dissemination_in_memory", .unit = "Mops", .run = in_memory});
    write_trace("bench-0.dat", 0);
    write_trace("bench-1.dat", 1);
    bench_apart(&(bench_job){
        .name = "schedgen__mpi_trace_2_ranks", .unit = "MB", .run = trace, .input = "bench-0.dat"});
    unlink("bench-0.dat");
    unlink("bench-1.dat");
    return 0;
}
