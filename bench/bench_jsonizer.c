/* SPDX-License-Identifier: Apache-2.0 */
/* bench_jsonizer.c - converts a trace of a million nodes to JSON, including reading; work is the
 * text written.
 *
 * The Python jsonizer takes 102 s CPU time for 1,000,000 nodes on one 2.8 GHz core. */
#include "bench_input.h"

#include <orrery/view.h>

typedef struct job {
    const char *path;
    orr_view_form form;
    double text_mb;
} job;

static void write_json(const job *j, const char *to)
{
    const orr_view_json_options opt = {.size = sizeof opt, .form = j->form};
    orr_trace *t;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    bench_check(orr_view_json(t, to, &opt, &err), &err);
    orr_trace_destroy(t);
}

static double run_json(void *context)
{
    const job *j = context;
    write_json(j, "/dev/null");
    return j->text_mb;
}

/* The size of the text, measured by writing it to a file once. */
static double run_size(void *context)
{
    const job *j = context;
    char path[600];
    write_json(j, bench_path(path, sizeof path, "jsonizer.json"));
    const double mb = bench_file_mb(path);
    unlink(path);
    return mb;
}

static void measure(const char *name, orr_view_form form)
{
    job j = {.path = bench_layered_file(), .form = form};
    j.text_mb = bench_once(&(bench_job){name, "MB", run_size, NULL, &j}).work;
    bench_require(j.text_mb > 100, "text is missing");
    bench_apart(&(bench_job){name, "MB", run_json, NULL, &j, j.path});
}

int main(void)
{
    measure("view__jsonizer_layered_1m", ORR_VIEW_CONCAT);
    measure("view__json_layered_1m", ORR_VIEW_JSON);
    measure("view__jsonl_layered_1m", ORR_VIEW_JSONL);
    return 0;
}
