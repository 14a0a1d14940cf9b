/* SPDX-License-Identifier: Apache-2.0 */
/* bench_feeder.c - reads a trace of a million nodes and feeds all of them.
 *
 * The C++ feeders on the same shape of input (1,000,000 nodes, 131 MB, CPU time on one 2.8 GHz
 * core): V2 9.7 s and 1.93 GB, V3 15.4 s and 1.27 GB. */
#include "bench_input.h"

#include <orrery/feeder.h>

typedef struct job {
    const char *path;
    uint32_t window;
} job;

static double run_read(void *context)
{
    const job *j = context;
    orr_trace *t;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    const uint32_t count = orr_trace_columns(t)->count;
    bench_require(count == LAYERED_NODES, "nodes are missing");
    orr_trace_destroy(t);
    return count / 1e6;
}

/* By id, like a simulator that does not use columns. */
static double run_feed(void *context)
{
    const job *j = context;
    const orr_feeder_options opt = {.size = sizeof opt, .window = j->window};
    orr_feeder *f;
    orr_error err;
    orr_node node;
    orr_code code;
    uint32_t count = 0;
    bench_check(orr_feeder_open(j->path, &opt, &f, &err), &err);
    while ((code = orr_feeder_next(f, &node, &err)) == ORR_OK) {
        bench_check(orr_feeder_finish(f, node.id, &err), &err);
        count++;
    }
    bench_check(code, &err);
    bench_require(count == LAYERED_NODES && orr_feeder_left(f) == 0, "nodes are left");
    orr_feeder_close(f);
    return count / 1e6;
}

/* By index, without decoding records. */
static double run_feed_index(void *context)
{
    const job *j = context;
    orr_feeder *f;
    orr_error err;
    uint32_t count = 0;
    bench_check(orr_feeder_open(j->path, NULL, &f, &err), &err);
    for (uint32_t i; (i = orr_feeder_take(f)) != ORR_NO_NODE; count++)
        orr_feeder_done(f, i);
    bench_require(count == LAYERED_NODES && orr_feeder_left(f) == 0, "nodes are left");
    orr_feeder_close(f);
    return count / 1e6;
}

int main(void)
{
    job all = {.path = bench_layered_file()}, window = {.path = all.path, .window = 65536};
    bench_apart(&(bench_job){"read__layered_1m", "Mnodes", run_read, NULL, &all, all.path});
    bench_apart(&(bench_job){"feed__layered_1m", "Mnodes", run_feed, NULL, &all, all.path});
    bench_apart(
        &(bench_job){"feed__layered_1m_by_index", "Mnodes", run_feed_index, NULL, &all, all.path});
    bench_apart(
        &(bench_job){"feed__layered_1m_window_64k", "Mnodes", run_feed, NULL, &window, all.path});
    return 0;
}
