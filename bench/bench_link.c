/* SPDX-License-Identifier: Apache-2.0 */
/* bench_link.c - PyTorch's host and device traces linked; work is megabytes of both.
 *
 * Chakra's linker takes 35 s CPU time and 479 MB for a device trace of 21 MB and a host trace of 25
 * MB, and does not finish one of 109 MB and 128 MB in 258 s.  Three sizes, each four times the
 * previous one, show that time and memory grow linearly with the input; the largest is about as
 * large as the latter.
 *
 *     compat   to the linked JSON, as chakra_trace_link
 *     trace    to a Chakra trace, without a file in between
 *     job      two ranks to a set
 *     real     to a Chakra trace, from traces with the layout and the gaps of real ones
 *
 * A megabyte of the largest real one must take no longer than three times a megabyte of the one
 * with 3,700 nodes: the work per node must not depend on the size of the file.  `bench_link HOST
 * DEVICE` measures your own files. */
#include "bench_input.h"
#include "torch_trace.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/link.h>

typedef struct pair {
    char prefix[560], host[600], device[600], folder[560];
    uint32_t steps, layers;
    uint64_t nodes; /* of the host trace */
    bool is_real, is_given;
} pair;

static double size_of(const pair *p)
{
    return bench_file_mb(p->host) + bench_file_mb(p->device);
}

static double run_compat(void *context)
{
    const pair *p = context;
    orr_link *l;
    orr_error err;
    bench_check(orr_link_open(p->host, p->device,
                              &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link},
                              &l, &err),
                &err);
    bench_require(orr_link_counts_of(l)->of[ORR_LINK_HOST_NODES] == p->nodes,
                  "host nodes are missing");
    bench_check(orr_link_write(l, "/dev/null", &err), &err);
    orr_link_close(l);
    return size_of(p);
}

static orr_link_job *open_job(const char *const *paths, size_t count, const orr_set **set)
{
    orr_link_job *job;
    orr_error err;
    bench_check(orr_link_job_open(paths, count, NULL, &job, &err), &err);
    bench_check(orr_link_job_set(job, set, &err), &err);
    return job;
}

static double run_trace(void *context)
{
    const pair *p = context;
    const char *const paths[] = {p->host, p->device};
    const orr_set *s;
    orr_error err;
    orr_link_job *job = open_job(paths, 2, &s);
    bench_require(p->is_given || orr_link_job_rank(job, 0)->counts.of[ORR_LINK_UNTRACED] == 0,
                  "nodes are missing");
    bench_check(orr_trace_write(orr_set_trace(s, 0), "/dev/null", NULL, &err), &err);
    orr_link_job_close(job);
    return size_of(p);
}

static double run_job(void *context)
{
    const pair *p = context;
    const char *const paths[] = {p->folder};
    const orr_set *s;
    orr_error err;
    orr_link_job *job = open_job(paths, 1, &s);
    bench_require(orr_set_rank_count(s) == 2, "a rank is missing");
    bench_check(orr_set_save(s, "/dev/null", NULL, &err), &err);
    orr_link_job_close(job);
    return 2 * size_of(p);
}

/* In a separate process, so that its memory is not counted here; a pipe returns the number of host
 * nodes. */
static void make_files(pair *p)
{
    int status = 1, ends[2];
    fflush(stdout);
    bench_require(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    bench_require(child >= 0, "no process");
    if (child == 0) {
        const torch_totals t = torch_make(&(torch_job){.prefix = p->prefix,
                                                       .ranks = p->is_real ? 1 : 2,
                                                       .steps = p->steps,
                                                       .layers = p->layers,
                                                       .seed = 1,
                                                       .is_real = p->is_real});
        _exit(write(ends[1], &t.host_nodes, sizeof t.host_nodes) != sizeof t.host_nodes);
    }
    bench_require(read(ends[0], &p->nodes, sizeof p->nodes) == sizeof p->nodes &&
                      waitpid(child, &status, 0) == child && status == 0,
                  "cannot make the input");
    close(ends[0]);
    close(ends[1]);
}

static void take_away(const pair *p)
{
    char path[640];
    static const char *const kinds[] = {"host", "device"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s.%d.%s.json", p->prefix, i / 2, kinds[i % 2]);
        unlink(path);
    }
    rmdir(p->folder);
}

static void measure(pair *p, const char *size)
{
    static const struct {
        const char *name;
        double (*run)(void *context);
    } rows[] = {{"compat", run_compat}, {"trace", run_trace}, {"job", run_job}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[80];
        snprintf(name, sizeof name, "link__%s_%s", rows[i].name, size);
        bench_apart(&(bench_job){name, "MB", rows[i].run, NULL, p, p->device});
    }
}

static void make_pair(pair *p)
{
    bench_path(p->folder, sizeof p->folder - 20, "torch_pairs");
    mkdir(p->folder, 0777);
    snprintf(p->prefix, sizeof p->prefix, "%.500s/t", p->folder);
    snprintf(p->host, sizeof p->host, "%s.0.host.json", p->prefix);
    snprintf(p->device, sizeof p->device, "%s.0.device.json", p->prefix);
    make_files(p);
}

/* The best of several runs after a warm-up: seconds of CPU time per megabyte. */
static double measure_one(pair *p, const char *name)
{
    bench_run runs[BENCH_RUNS];
    double best = 1e9;
    const bench_job job = {name, "MB", run_trace, NULL, p, p->device};
    bench_once(&job);
    for (int i = 0; i < BENCH_RUNS; i++) {
        runs[i] = bench_once(&job);
        best = runs[i].cpu / runs[i].work < best ? runs[i].cpu / runs[i].work : best;
    }
    bench_row(name, "MB", runs, BENCH_RUNS, size_of(p));
    return best;
}

static void measure_real(void)
{
    static const struct {
        const char *name;
        uint32_t steps, layers;
    } sizes[] = {{"link__real_731_nodes", 1, 55},
                 {"link__real_3706_nodes", 1, 284},
                 {"link__real_7411_nodes", 2, 284},
                 {"link__real_100mb", 17, 284}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    double per_mb[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        pair p = {.steps = sizes[i].steps, .layers = sizes[i].layers, .is_real = true};
        make_pair(&p);
        per_mb[i] = measure_one(&p, sizes[i].name);
        take_away(&p);
    }
    bench_require(per_mb[SIZES - 1] < 3 * per_mb[1], "linking a large trace is not linear");
}

static void measure_given(const char *host, const char *device)
{
    pair p = {.is_given = true};
    snprintf(p.host, sizeof p.host, "%s", host);
    snprintf(p.device, sizeof p.device, "%s", device);
    measure_one(&p, "link__given");
}

int main(int argc, char **argv)
{
    static const struct {
        uint32_t steps;
        const char *name;
    } sizes[] = {{16, "16mb"}, {64, "64mb"}, {256, "254mb"}};
    if (argc == 3) {
        measure_given(argv[1], argv[2]);
        return 0;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pair p = {.steps = sizes[i].steps, .layers = 48};
        make_pair(&p);
        measure(&p, sizes[i].name);
        take_away(&p);
    }
    measure_real();
    return 0;
}
