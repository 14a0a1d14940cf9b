/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace_json.c - any text into the reader of traces in JSON, whatever its form.
 *
 * A trace that comes out is looked at, fed and written: as .et and in each form of JSON, and read
 * back. */
#include "fuzz_trace.h"

#include "trace/trace_impl.h"

#include <orrery/view.h>

enum { JSON_MAX = 1 << 13 }; /* JSON may be thirty times as long as the records */

static void check_same(const orr_trace *t, const orr_trace *again)
{
    REQUIRE(orr_trace_columns(t)->count == orr_trace_columns(again)->count);
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++) {
        const orr_span a = orr__trace_body(t, i), b = orr__trace_body(again, i);
        REQUIRE(a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0));
    }
}

/* JSON and JSON lines lose nothing.  The old form leaves out unknown fields, and its first object
 * may be metadata or a node; it only has to be read without harm. */
static void view_back(const orr_trace *t, orr_view_form form)
{
    fuzz_sink *sink = fuzz_writable();
    const orr_view_json_options view = {.size = sizeof view, .form = form};
    const orr_read_options read = {.size = sizeof read, .leniency = ORR_KEEP_UNKNOWN};
    orr_trace *again;
    orr_error err;
    REQUIRE(orr_view_json(t, sink->path, &view, &err) == ORR_OK);
    const orr_code code = orr_trace_parse(fuzz_take(sink), "again.json", &read, &again, &err);
    REQUIRE(code == ORR_OK || form == ORR_VIEW_CONCAT);
    if (form != ORR_VIEW_CONCAT)
        check_same(t, again);
    orr_trace_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const orr_leniency ways[] = {ORR_STRICT, ORR_KEEP_UNKNOWN};
    const orr_span in = {data, size};
    if (!orr__is_json(in))
        return 0;
    FUZZ_WAYS(i, 2, data, size)
    {
        orr_trace *t;
        orr_error err;
        const orr_code code = orr_trace_parse(
            in, "fuzz.json",
            &(orr_read_options){.size = sizeof(orr_read_options), .leniency = ways[i]}, &t, &err);
        if (code != ORR_OK) {
            REQUIRE(code == ORR_EINPUT && !t && err.message[0]);
            REQUIRE(err.where.byte == ORR_NO_BYTE || err.where.byte <= size);
            continue;
        }
        fuzz_look_at(t, size);
        fuzz_feed(t);
        if (size <= JSON_MAX) {
            fuzz_write_back(t,
                            &(orr_write_options){.size = sizeof(orr_write_options),
                                                 .schema = ORR_SCHEMA_CURRENT},
                            ways[i]);
            FUZZ_WAYS(form, ORR_VIEW_CONCAT - ORR_VIEW_JSON + 1, data, size)
            view_back(t, (orr_view_form)(ORR_VIEW_JSON + form));
        }
        fuzz_sum_up(t);
    }
    return 0;
}
