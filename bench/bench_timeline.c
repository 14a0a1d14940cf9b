/* SPDX-License-Identifier: Apache-2.0 */
/* bench_timeline.c - converts a log of a million nodes on 64 ranks to Perfetto's format, to the old
 * program's, and to a drawing. A row is a whole run of the command without program start. */
#include "bench_input.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/issue_log.h>
#include <orrery/view.h>

enum { NODES = 1000000, RANKS = 64, NAMES = 1000 };

typedef struct job {
    const char *from, *to;
    bool is_drawn;
} job;

static void write_log(const char *path)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "the log cannot be written");
    for (int i = 0; i < NODES; i++) {
        fprintf(f,
                "issue,sys->id=%d, tick=%d, node->id=%d, node->name=COMP_NODE_%d, node->type=4\n",
                i % RANKS, i * 10, i, i % NAMES);
        fprintf(
            f, "callback,sys->id=%d, tick=%d, node->id=%d, node->name=COMP_NODE_%d, node->type=4\n",
            i % RANKS, i * 10 + 600, i, i % NAMES);
    }
    bench_require(fclose(f) == 0, "the log cannot be written");
}

static double run_view(void *context)
{
    const job *j = context;
    orr_issue_log *log;
    orr_timeline *t;
    orr_error err;
    bench_check(orr_issue_log_read(j->from, NULL, &log, &err), &err);
    bench_require(orr_issue_log_count(log) == NODES, "nodes are missing");
    bench_check(orr_issue_log_timeline(log, 1500000000, &t, &err), &err);
    orr_issue_log_free(log);
    if (j->is_drawn)
        bench_check(orr_view_gantt(t, j->to, NULL, &err), &err);
    else
        bench_check(orr_view_chrome(t, j->to, &err), &err);
    orr_timeline_destroy(t);
    return NODES;
}

static double run_old(void *context)
{
    const job *j = context;
    const orr_issue_log_options opt = {.ranks = RANKS,
                                       .rules = orr_compat_at(ORR_RULES_ISSUE_LOG, 0)->issue_log};
    orr_issue_log *log;
    orr_error err;
    bench_check(orr_issue_log_read(j->from, &opt, &log, &err), &err);
    bench_check(orr_issue_log_write_old(log, RANKS, 1500, j->to, &err), &err);
    orr_issue_log_free(log);
    return NODES;
}

int main(void)
{
    char from[300], json[300], text[300];
    job view = {.from = bench_path(from, sizeof from, "issue_log.csv"),
                .to = bench_path(json, sizeof json, "timeline.json")};
    job drawing = {
        .from = view.from, .to = bench_path(text, sizeof text, "gantt.txt"), .is_drawn = true};
    write_log(view.from);
    bench_apart(&(bench_job){
        .name = "timeline__log_1m_perfetto", .unit = "events", .run = run_view, .context = &view});
    bench_apart(&(bench_job){
        .name = "timeline__log_1m_old_name", .unit = "events", .run = run_old, .context = &view});
    bench_apart(&(bench_job){.name = "timeline__log_1m_drawing",
                             .unit = "events",
                             .run = run_view,
                             .context = &drawing});
    remove(view.from);
    remove(view.to);
    remove(drawing.to);
    return 0;
}
