/* SPDX-License-Identifier: Apache-2.0 */
/* bench_set.c - 1,024 rank files, all equal and all different, with one thread and with two.
 *
 * Compare wall seconds between one thread and two; work per CPU second says what sharing costs. */
#include "bench_input.h"

#include <orrery/set.h>

enum { RANKS = 1024, NODES = 1000 };

typedef struct job {
    const char *path, *to;
    unsigned threads;
    uint32_t classes;
    orr_set *s;
} job;

static orr_set *open_set(const job *j)
{
    const orr_set_options opt = {.threads = j->threads};
    orr_set *s;
    orr_error err;
    bench_check(orr_set_open(j->path, &opt, &s, &err), &err);
    bench_require(orr_set_rank_count(s) == RANKS && orr_set_class_count(s) == j->classes,
                  "ranks are missing");
    return s;
}

static double run_open(void *context)
{
    orr_set_close(open_set(context));
    return RANKS;
}

static void prepare(void *context)
{
    job *j = context;
    j->s = open_set(j);
}

static double run_save(void *context)
{
    const job *j = context;
    orr_error err;
    bench_check(orr_set_save(j->s, j->to, NULL, &err), &err);
    return RANKS;
}

/* One rank out of the middle of a .orr. */
static double run_read_rank(void *context)
{
    const job *j = context;
    orr_error err;
    uint64_t shift;
    for (uint32_t r = 0; r < RANKS; r++) {
        orr_trace *t;
        bench_check(orr_set_read_rank(j->to, r, NULL, &t, &shift, &err), &err);
        bench_require(orr_trace_columns(t)->count == NODES, "nodes are missing");
        orr_trace_destroy(t);
    }
    return RANKS;
}

static void measure(const char *kind, const char *prefix, uint32_t classes)
{
    char orr[600], name[80];
    const double mb = bench_need(
        &(bench_files){.prefix = prefix, .count = RANKS, .nodes = NODES, .is_equal = classes == 1});
    snprintf(orr, sizeof orr, "%s.orr", prefix);
    for (unsigned threads = 1; threads <= 2; threads++) {
        job j = {.path = prefix, .threads = threads, .classes = classes};
        snprintf(name, sizeof name, "set__open_1024_%s_%uthread", kind, threads);
        bench_apart(&(bench_job){name, "ranks", run_open, NULL, &j, NULL, mb});
    }
    job save = {.path = prefix, .to = orr, .threads = 1, .classes = classes};
    snprintf(name, sizeof name, "set__save_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_save, prepare, &save, NULL, mb});
    job load = {.path = orr, .threads = 1, .classes = classes};
    snprintf(name, sizeof name, "set__open_orr_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_open, NULL, &load, orr});
    snprintf(name, sizeof name, "set__read_rank_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_read_rank, NULL, &save, orr});
    unlink(orr);
}

int main(void)
{
    char equal[512], distinct[512];
    measure("equal", bench_path(equal, sizeof equal, "equal"), 1);
    measure("distinct", bench_path(distinct, sizeof distinct, "distinct"), RANKS);
    return 0;
}
