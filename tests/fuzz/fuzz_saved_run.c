/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_saved_run.c - any bytes as what `orrery run --json` wrote, for a report that compares it with others.  A file that is
 * none adds nothing; one that is adds a run, and the report can be written. */
#include "fuzz_trace.h"

#include <orrery/report.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_report *r;
    orr_error err = {0};
    bool is_it = false;
    if (size > 1 << 13)
        return 0;
    REQUIRE(orr_report_create(NULL, &r, &err) == ORR_OK);
    const orr_code code = orr_report_add_saved(r, fuzz_file(0, data, size), "saved", &is_it, &err);
    REQUIRE(code != ORR_EBUG && (!code || err.message[0]));
    if (!code && is_it) {
        fuzz_sink *sink = fuzz_writable();
        REQUIRE(orr_report_write_json(r, sink->path, &err) == ORR_OK);
        REQUIRE(fuzz_take(sink).len > 2);
    }
    orr_report_destroy(r);
    return 0;
}
