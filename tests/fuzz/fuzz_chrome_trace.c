/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chrome_trace.c - any bytes as a file of trace events.  What is refused must have a place and
 * words; what is taken is a timeline that holds together and can be reported on. */
#include <orrery/lab/chrome_trace.h>
#include <orrery/report.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_report(const orr_timeline *t)
{
    orr_report *r;
    orr_error err;
    const orr_report_run run = {.name = "fuzz", .timeline = t, .is_measured = true};
    require(orr_report_create(NULL, &r, &err) == ORR_OK);
    require(orr_report_add(r, &run, &err) == ORR_OK);
    orr_report_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_timeline *t;
    orr_error err;
    if (orr_chrome_trace_parse((orr_span){data, size}, "trace.json", NULL, &t, &err)) {
        require(!t && err.message[0]);
        return 0;
    }
    const orr_timeline_parts *p = orr_timeline_view(t);
    for (uint32_t i = 0; i < p->span_count; i++)
        require(p->spans[i].start <= p->spans[i].end && p->spans[i].track < p->track_count);
    for (uint32_t i = 0; i < p->arrow_count; i++)
        require(p->arrows[i].from < p->span_count && p->arrows[i].to < p->span_count);
    check_report(t);
    orr_timeline_destroy(t);
    return 0;
}
