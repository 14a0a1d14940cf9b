/* SPDX-License-Identifier: Apache-2.0 */
/* bench_graph.c - converts a trace of a million nodes to GraphML and to DOT, including reading;
 * work is nodes.
 *
 * The Python visualizer takes 61 s CPU time and 1.34 GB for GraphML of 1,000,000 nodes. */
#include "bench_input.h"

#include <orrery/lab/compat.h>
#include <orrery/view.h>

typedef struct job {
    const char *path;
    orr_view_graph_options opt;
    uint32_t most_boxes;
} job;

static double run_graph(void *context)
{
    job *j = context;
    orr_view_graph_result result;
    orr_trace *t;
    orr_error err;
    j->opt.size = sizeof j->opt;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    bench_check(orr_view_graph(t, "/dev/null", &j->opt, &result, &err), &err);
    orr_trace_destroy(t);
    bench_require(result.nodes >= 1000000 && result.boxes <= j->most_boxes, "another graph");
    return result.nodes;
}

int main(void)
{
    const orr_compat *chakra = orr_compat_at(ORR_RULES_VIEW, 0);
    job old = {.path = bench_layered_file(),
               .opt = {.size = sizeof old.opt,
                       .form = ORR_GRAPH_GRAPHML,
                       .rules = chakra ? chakra->view : NULL},
               .most_boxes = 2000000};
    job dot = {.path = old.path, .opt.size = sizeof dot.opt, .most_boxes = 300};
    bench_apart(&(bench_job){"view__graphml_layered_1m", "nodes", run_graph, NULL, &old, old.path});
    bench_apart(&(bench_job){"view__dot_layered_1m", "nodes", run_graph, NULL, &dot, dot.path});
    return 0;
}
