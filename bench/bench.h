/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - the benchmark framework; `make bench` prints the rows of all benchmarks as one table.
 *
 * Microbenchmarks, measured in this process, with state kept from run to run:
 *
 *     static void run(void *context) { ... }
 *     bench_measure("json__read_kineto_100mb", "MB", bytes / 1e6, run, &context);
 *
 * Whole jobs, each run in a separate process, so that its peak memory is measured alone:
 *
 *     static double run(void *context) { ...; return nodes / 1e6; }         // the work that was done
 *     bench_apart(&(bench_job){.name = "feeder__layered_1m", .unit = "Mnodes", .run = run, .input = path});
 *
 * One warm-up run, then five.  A row has: work per CPU second, best and median; CPU and wall
 * seconds of the best run; peak resident memory, including mapped files (of the separate process,
 * or of this one so far); the size of the input.  A wrong result ends the program:
 * bench_require. */
#ifndef ORR_BENCH_BENCH_H
#define ORR_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_RUNS = 5 };

typedef struct bench_run {
    double work, cpu, wall, peak_mb;
} bench_run;

typedef struct bench_job {
    const char *name; /* command__input_size */
    const char *unit; /* "Mnodes", "MB": unit of the number that run returns */
    double (*run)(void *context);
    void (*prepare)(void *context); /* before the clock starts; may be NULL */
    void *context;
    const char *input; /* a file, for the column of sizes; NULL: see input_mb */
    double input_mb;
    int runs; /* 0: BENCH_RUNS; 1: without warm-up */
} bench_job;

static inline double bench_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double bench_peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024 / 1e6;
}

static inline double bench_file_mb(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 ? (double)st.st_size / 1e6 : 0;
}

/* A figure for a wrong result would be worthless. */
static inline void bench_require(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline int bench_compare(const void *a, const void *b)
{
    const bench_run *x = (const bench_run *)a, *y = (const bench_run *)b;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

/* Four significant digits. */
static inline void bench_rate(double v)
{
    printf(" %9.*f", v < 100 ? 2 : v < 10000 ? 1 : 0, v);
}

static inline void bench_row(const char *name, const char *unit, bench_run *runs, int n, double mb)
{
    double peak = 0;
    qsort(runs, (size_t)n, sizeof *runs, bench_compare);
    for (int i = 0; i < n; i++)
        peak = runs[i].peak_mb > peak ? runs[i].peak_mb : peak;
    const bench_run *best = &runs[0], *median = &runs[n / 2];
    printf("%-38s", name);
    bench_rate(best->work / best->cpu);
    bench_rate(median->work / median->cpu);
    printf(" %-8s %7.3f %7.3f %8.1f", unit, best->cpu, best->wall, peak);
    if (mb > 0)
        printf(" %8.1f", mb);
    putchar('\n');
    fflush(stdout);
}

static inline void bench_measure(
    const char *name, const char *unit, double work, void (*run)(void *context), void *context)
{
    bench_run runs[BENCH_RUNS];
    run(context);
    for (int i = 0; i < BENCH_RUNS; i++) {
        const double cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID),
                     wall = bench_clock(CLOCK_MONOTONIC);
        run(context);
        runs[i].cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        runs[i].wall = bench_clock(CLOCK_MONOTONIC) - wall;
        runs[i].work = work;
        runs[i].peak_mb = bench_peak_mb();
    }
    bench_row(name, unit, runs, BENCH_RUNS, 0);
}

static inline void bench_child(const bench_job *job, int to)
{
    bench_run r;
    if (job->prepare)
        job->prepare(job->context);
    const double cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID), wall = bench_clock(CLOCK_MONOTONIC);
    r.work = job->run(job->context);
    r.cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    r.wall = bench_clock(CLOCK_MONOTONIC) - wall;
    r.peak_mb = bench_peak_mb();
    _exit(write(to, &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
}

static inline bench_run bench_once(const bench_job *job)
{
    bench_run r = {0, 0, 0, 0};
    int ends[2], status = 1;
    fflush(stdout);
    bench_require(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    bench_require(child >= 0, "no process");
    if (child == 0)
        bench_child(job, ends[1]);
    close(ends[1]);
    const ssize_t got = read(ends[0], &r, sizeof r);
    close(ends[0]);
    bench_require(waitpid(child, &status, 0) == child && status == 0 && got == (ssize_t)sizeof r,
                  job->name);
    return r;
}

/* Returns the best run. */
static inline bench_run bench_apart(const bench_job *job)
{
    bench_run runs[64];
    const int n = job->runs ? job->runs : BENCH_RUNS;
    if (n > 1)
        bench_once(job);
    for (int i = 0; i < n; i++)
        runs[i] = bench_once(job);
    bench_row(job->name, job->unit, runs, n,
              job->input ? bench_file_mb(job->input) : job->input_mb);
    return runs[0];
}

#endif
