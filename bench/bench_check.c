/* SPDX-License-Identifier: Apache-2.0 */
/* bench_check.c - checking and summarizing a trace of a million nodes, including reading it.
 * Compare with read__layered_1m: checking should take no longer than reading. */
#include "bench_input.h"

#include <orrery/check.h>
#include <orrery/lab/info.h>

static orr_set *open_set(const char *path)
{
    orr_set *s;
    orr_error err;
    bench_check(orr_set_open(path, NULL, &s, &err), &err);
    bench_require(orr_set_rank_count(s) == 1, "one rank expected");
    return s;
}

static double run_check(void *context)
{
    orr_set *s = open_set(context);
    orr_check_report *r;
    orr_error err;
    bench_check(orr_check_set(s, NULL, &r, &err), &err);
    bench_require(r->errors == 0 && r->node_count == LAYERED_NODES, "the trace is sound");
    orr_check_report_destroy(r);
    orr_set_close(s);
    return LAYERED_NODES / 1e6;
}

static double run_info(void *context)
{
    orr_set *s = open_set(context);
    orr_info *info;
    orr_error err;
    orr_str text;
    bench_check(orr_info_create(s, NULL, &info, &err), &err);
    bench_check(orr_info_json(info, &text, &err), &err);
    bench_require(memmem(text.ptr, text.len, "\"nodes\": 1000000,", 17) != NULL,
                  "nodes are missing");
    orr_info_destroy(info);
    orr_set_close(s);
    return LAYERED_NODES / 1e6;
}

int main(void)
{
    const char *path = bench_layered_file();
    void *context = (void *)(uintptr_t)path;
    bench_apart(&(bench_job){"check__layered_1m", "Mnodes", run_check, NULL, context, path});
    bench_apart(&(bench_job){"info__layered_1m", "Mnodes", run_info, NULL, context, path});
    return 0;
}
