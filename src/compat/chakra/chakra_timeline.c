/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_timeline.c - chakra_timeline_visualizer: how it reads a log, and the file that it writes
 * (chakra.md 9).
 *
 * The file holds doubles divided in its order: cycle / MHz / 1000, and cycles / (MHz * 1000),
 * milliseconds where viewers expect microseconds. */
#include "chakra.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "trace/formats/issue_log_impl.h"

enum { DRAIN_AT = 1 << 16 };

static void put_double(orr_buf *b, const char *key, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_text(b, key);
    orr_buf_add(b, text, orr_double_text(v, text));
}

static void put_number(orr_buf *b, const char *key, uint64_t v)
{
    orr_buf_text(b, key);
    orr_buf_u64(b, v);
}

static void put_event(orr_buf *b, const orr_issue_log *log, const issue_row *i, uint32_t mhz)
{
    const double ms = (double)(i->ended - i->issued) / ((double)mhz * 1000.0);
    put_number(b, "{\"pid\": ", i->rank);
    put_number(b, ", \"tid\": ", i->kind);
    put_double(b, ", \"ts\": ", (double)i->issued / (double)mhz / 1000.0);
    put_double(b, ", \"dur\": ", ms);
    orr_buf_text(b, ", \"ph\": \"X\", \"name\": ");
    orr_json_quote(b, orr_intern_get(log->names, i->name), true);
    put_double(b, ", \"args\": {\"ms\": ", ms);
    orr_buf_text(b, "}}");
}

static void put_events(orr_output *o, orr_buf *b, const orr_issue_log *log, uint32_t mhz)
{
    for (size_t k = 0; k < log->done_count && !orr_output_has_failed(o); k++) {
        if (k)
            orr_buf_text(b, ", ");
        put_event(b, log, &log->issues[log->done[k]], mhz);
        if (b->len >= DRAIN_AT)
            orr_output_drain(o, b);
    }
}

static orr_code write_file(
    const orr_issue_log *log, uint32_t ranks, uint32_t mhz, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_output *o;
    if (mhz == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a frequency of 0 MHz");
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_buf_text(&b, "{\"meta_user\": \"aras\", \"traceEvents\": [");
    put_events(o, &b, log, mhz);
    put_number(&b, "], \"meta_cpu_count\": ", ranks);
    orr_buf_byte(&b, '}');
    const bool failed = b.failed;
    orr_output_drain(o, &b);
    orr_buf_fini(&b);
    if (!failed)
        return orr_output_commit(&o, err);
    orr_output_discard(o);
    return orr_no_memory(err);
}

const orr_rules_issue_log chakra_timeline_rules = {.any_line = true,
                                                   .any_time = true,
                                                   .short_names = true,
                                                   .needs_kind = true,
                                                   .write = write_file};
