/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_faults.c - memory that runs out at every single place where trace events are read and
 * a report is made of them: it must be said that memory ran out, no page may appear, and sanitizers
 * watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/report.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;

static const char events[] =
    "{\"otherData\":{\"from\":\"here\"},\"traceEvents\":["
    "{\"ph\":\"M\",\"pid\":0,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"compute\"}},"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":0,\"dur\":5,\"name\":\"gemm.1\",\"cat\":\"compute\",\"args\":{\"node\":1}},"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"ts\":3,\"dur\":5,\"name\":\"sum\",\"cat\":\"collective\","
    "\"args\":{\"collective\":\"ALL_REDUCE\",\"group\":\"g\",\"group_ranks\":2,\"bytes\":64}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":4,\"dur\":4,\"name\":\"sum\",\"cat\":\"collective\","
    "\"args\":{\"collective\":\"ALL_REDUCE\",\"group\":\"g\",\"group_ranks\":2,\"bytes\":64}},"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":3,\"ts\":8,\"dur\":2,\"name\":\"s\",\"cat\":\"send\",\"args\":{\"peer\":1}},"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":3,\"ts\":0,\"dur\":11,\"name\":\"r\",\"cat\":\"receive\",\"args\":{\"peer\":0}},"
    "{\"ph\":\"s\",\"pid\":0,\"tid\":3,\"ts\":8,\"id\":1,\"cat\":\"m\",\"name\":\"m\"},"
    "{\"ph\":\"f\",\"pid\":1,\"tid\":3,\"ts\":10,\"id\":1,\"cat\":\"m\",\"name\":\"m\",\"bp\":\"e\"},"
    "{\"ph\":\"B\",\"pid\":1,\"tid\":4,\"ts\":1,\"name\":\"call\",\"cat\":\"host\"},"
    "{\"ph\":\"E\",\"pid\":1,\"tid\":4,\"ts\":2},"
    "{\"ph\":\"C\",\"pid\":0,\"ts\":0,\"name\":\"memory\",\"args\":{\"bytes\":100}},"
    "{\"ph\":\"C\",\"pid\":1,\"ts\":1,\"name\":\"memory\",\"args\":{\"bytes\":200}}]}";

static orr_code make_report(orr_report *r, const orr_timeline *t)
{
    const orr_report_step steps[] = {
        {.to_ns = 5000, .has_node = true, .node = 1, .name = "gemm.1", .what = "compute"}};
    const orr_report_dimension dimensions[] = {{.name = "Ring 2", .size = 2}};
    const orr_report_link links[] = {{.from = "0", .to = "1", .bytes = 9}};
    static const double use[] = {1, 0.5};
    const orr_fabric_link link = {.name = "0.1 -> 1", .busy_ps = 5, .values = use};
    const orr_fabric_view fabric = {
        .end_ps = 10, .column_ps = 5, .columns = 2, .links = &link, .link_count = 1};
    const orr_report_run run = {.name = "run",
                                .fabric = &fabric,
                                .timeline = t,
                                .steps = steps,
                                .step_count = 1,
                                .dimensions = dimensions,
                                .dimension_count = 1,
                                .links = links,
                                .link_count = 1};
    orr_code code = orr_report_add(r, &run, &err);
    if (!code)
        code = orr_report_add(r, &run, &err);
    if (!code)
        code = orr_report_write(r, "page.html", &err);
    return code ? code : orr_report_write_json(r, "page.json", &err);
}

static orr_code work(void)
{
    orr_timeline *t = NULL;
    orr_report *r = NULL;
    orr_code code = orr_chrome_trace_parse((orr_span){(const uint8_t *)events, sizeof events - 1},
                                           "e.json", NULL, &t, &err);
    CHECK(!code == (t != NULL));
    if (!code)
        code = orr_report_create(
            &(orr_report_options){.size = sizeof(orr_report_options), .title = "t"}, &r, &err);
    if (!code)
        code = make_report(r, t);
    orr_report_destroy(r);
    orr_timeline_destroy(t);
    return code;
}

TEST(test_report_faults__memory_runs_out_anywhere)
{
    for (long n = 0;; n++) {
        err.code = ORR_OK;
        remove("page.html");
        orr__fail_alloc_after(n);
        const orr_code code = work();
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            break;
    }
    CHECK(access("page.html", F_OK) == 0);
}

int main(void)
{
    const CMUnitTest tests[] = {RUN(test_report_faults__memory_runs_out_anywhere)};
    return RUN_ALL(tests);
}
