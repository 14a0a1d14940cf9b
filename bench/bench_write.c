/* SPDX-License-Identifier: Apache-2.0 */
/* bench_write.c - writes a trace of a million nodes: unchanged, with other ids, and newly built.
 *
 * Reading before the clock starts is not part of the times, but of the peak memory. */
#include "bench_input.h"

typedef struct job {
    const char *path, *to;
    orr_write_options write;
    orr_trace *t;
} job;

static void prepare(void *context)
{
    job *j = context;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &j->t, &err), &err);
    bench_require(orr_trace_columns(j->t)->count == LAYERED_NODES, "nodes are missing");
}

static double run_write(void *context)
{
    job *j = context;
    orr_error err;
    j->write.size = sizeof j->write;
    bench_check(orr_trace_write(j->t, j->to, &j->write, &err), &err);
    return bench_file_mb(j->path);
}

/* Node by node from drafts: every attribute is encoded. */
static double run_make(void *context)
{
    job *j = context;
    orr_error err;
    orr_trace *t = bench_layered(LAYERED_NODES, 1);
    bench_check(orr_trace_write(t, j->to, NULL, &err), &err);
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

/* Node by node, decoded and encoded again through the public interface. */
static double run_copy(void *context)
{
    job *j = context;
    orr_error err;
    orr_trace *t;
    orr_node node;
    bench_check(orr_trace_create(NULL, &t, &err), &err);
    for (uint32_t i = 0; i < LAYERED_NODES; i++) {
        orr_trace_node(j->t, i, &node);
        bench_check(orr_trace_copy(t, &node, NULL, &err), &err);
    }
    bench_check(orr_trace_seal(t, &err), &err);
    bench_check(orr_trace_write(t, j->to, NULL, &err), &err);
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

int main(void)
{
    char file[600];
    job null = {.path = bench_layered_file(), .to = "/dev/null"};
    job disk = {.path = null.path, .to = bench_path(file, sizeof file, "written.et")};
    job shifted = {.path = null.path, .to = "/dev/null", .write = {.id_shift = 5000000}};
    bench_apart(&(bench_job){"write__layered_1m", "MB", run_write, prepare, &disk, null.path});
    bench_apart(
        &(bench_job){"write__layered_1m_other_ids", "MB", run_write, prepare, &shifted, null.path});
    bench_apart(
        &(bench_job){"write__layered_1m_copied", "MB", run_copy, prepare, &null, null.path});
    bench_apart(&(bench_job){"gen__layered_1m_and_write", "MB", run_make, NULL, &null, null.path});
    unlink(file);
    return 0;
}
