/* SPDX-License-Identifier: Apache-2.0 */
/* check_salvage.c - the sound records of a damaged file.
 *
 * All records in front of the damage are sound, because the reader came that far.  Behind it records are taken
 * up again only when their lengths lead from one to the next exactly to the end of the file and most of them
 * are sound: then one record was bad and the framing was not.  Otherwise everything from the damage on is
 * dropped, because records that start at a wrong byte may look like nodes that nobody wrote.
 * Compressed data that is cut short is used as far as it unpacks.  JSON is not repaired. */
#include "check_impl.h"

#include "trace/trace_impl.h"

#include <inttypes.h>

enum { TRIES = 4 };

/* As much as can be had. */
static orr_code read_file(const char *path, orr_buf *out, orr_error *err)
{
    orr_stream *s;
    orr_span part = {0};
    orr_error ignored;
    const orr_code code = orr_stream_open(path, &s, err);
    if (code)
        return code;
    while (orr_stream_peek(s, 1, &part, &ignored) == ORR_OK && part.len) {
        orr_buf_add(out, part.ptr, part.len);
        orr_stream_skip(s, part.len);
    }
    orr_stream_close(s);
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

/* The record at `at`: where its fields begin and where it ends.  False: there is no whole one. */
static bool frame(orr_span bytes, size_t at, orr_span *body)
{
    if (at >= bytes.len)
        return false;
    orr_wire w = {bytes.ptr + at, bytes.ptr + bytes.len, NULL};
    return orr_wire_bytes(&w, body);
}

static size_t end_of(orr_span bytes, orr_span body)
{
    return (size_t)(body.ptr - bytes.ptr) + body.len;
}

/* The end of the last record that ends at `limit` or before. */
static size_t whole_records(orr_span bytes, uint64_t limit)
{
    size_t at = 0;
    orr_span body;
    while (frame(bytes, at, &body) && end_of(bytes, body) <= limit)
        at = end_of(bytes, body);
    return at;
}

typedef struct salvage {
    chk_run *k;
    uint32_t rank;
    const char *path;
    const orr_read_options *opt;
    orr_span bytes; /* the file */
    size_t sound;   /* so many bytes from the start are sound records */
    uint64_t good, bad, bad_bytes;
    uint64_t first_bad; /* where the first bad record is */
} salvage;

/* Read what is in front of the damage.  Where that was is known from the reader; a shorter file may be taken
 * for another generation and then break elsewhere, so this is tried a few times. */
static orr_code read_front(salvage *s, uint64_t limit, orr_trace **out, orr_error *err)
{
    orr_code code = ORR_EINPUT;
    for (int i = 0; i < TRIES && code == ORR_EINPUT; i++) {
        s->sound = whole_records(s->bytes, limit);
        if (s->sound == 0)
            break;
        code = orr_trace_parse((orr_span){s->bytes.ptr, s->sound}, s->path, s->opt, out, err);
        if (code == ORR_EINPUT)
            limit = err->where.byte < s->sound ? err->where.byte : s->sound - 1;
    }
    return code;
}

/* ---- behind the damage ---- */

/* Out of step, a few bytes may pass for a node by chance; one with neither id nor name is not believed. */
static bool is_sound(const salvage *s, orr__scan *scan, orr_span body)
{
    scan->is_lenient = s->opt && s->opt->leniency != ORR_STRICT;
    return body.len && orr__scan_node(scan, body) && (scan->node.id || scan->node.name.len);
}

/* Count sound and bad records from the damage to the end; false when they do not lead there. */
static bool survey(salvage *s, orr__scan *scan)
{
    size_t at = s->sound;
    orr_span body;
    while (frame(s->bytes, at, &body)) {
        const bool is_good = is_sound(s, scan, body);
        s->good += is_good;
        s->bad += !is_good;
        s->bad_bytes += is_good ? 0 : end_of(s->bytes, body) - at;
        at = end_of(s->bytes, body);
    }
    return at == s->bytes.len && s->good >= s->bad;
}

static void take_sound(const salvage *s, orr__scan *scan, orr_buf *out)
{
    size_t at = s->sound;
    orr_span body;
    orr_buf_add(out, s->bytes.ptr, s->sound);
    while (frame(s->bytes, at, &body)) {
        if (is_sound(s, scan, body))
            orr_buf_add(out, s->bytes.ptr + at, end_of(s->bytes, body) - at);
        at = end_of(s->bytes, body);
    }
}

/* Replace the front by all sound records, where that is possible. */
static orr_code read_rest(salvage *s, orr_buf *bytes, orr_trace **t, orr_error *err)
{
    orr__scan scan = {0};
    orr_buf all = {0};
    orr_code code = ORR_OK;
    if (orr_trace_schema(*t) == ORR_SCHEMA_CURRENT && s->sound < s->bytes.len && survey(s, &scan)) {
        take_sound(s, &scan, &all);
        orr_trace_destroy(*t);
        *t = NULL;
        orr_buf_fini(bytes);
        *bytes = all;
        code = all.failed ? orr_no_memory(err)
                          : orr_trace_parse((orr_span){all.ptr, all.len}, s->path, s->opt, t, err);
    } else {
        s->bad = 0;
        s->bad_bytes = s->bytes.len - s->sound;
    }
    orr__scan_fini(&scan);
    return code;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void report(salvage *s, const orr_trace *t)
{
    const orr_where where = orr_where_byte(s->path, s->first_bad);
    const uint32_t kept = orr_trace_columns(t)->count;
    if (s->bad)
        chk_add_file(
            s->k, s->rank, ORR_CHECK_DAMAGED, &where,
            "dropped %" PRIu64 " record%s (%" PRIu64 " byte%s) that cannot be read; %u node%s kept",
            s->bad, plural(s->bad), s->bad_bytes, plural(s->bad_bytes), kept, plural(kept));
    else
        chk_add_file(s->k, s->rank, ORR_CHECK_DAMAGED, &where,
                     "dropped everything from here on (%" PRIu64 " byte%s); %u node%s kept",
                     s->bad_bytes, plural(s->bad_bytes), kept, plural(kept));
}

orr_code chk_salvage_file(chk_run *k,
                          uint32_t rank,
                          const orr_error *why,
                          const orr_read_options *opt,
                          orr_buf *bytes,
                          orr_trace **out,
                          orr_error *err)
{
    salvage s = {.k = k, .rank = rank, .path = orr_set_rank_path(k->set, rank), .opt = opt};
    *out = NULL;
    orr_code code = read_file(s.path, bytes, err);
    if (code)
        return code;
    s.bytes = (orr_span){bytes->ptr, bytes->len};
    if (!orr__is_json(s.bytes))
        code = read_front(&s, why->where.byte, out, err);
    if (!*out) {
        if (code == ORR_OK || code == ORR_EINPUT)
            *err = *why;
        return code == ORR_ENOMEM ? code : orr_because(err, ORR_EINPUT, "nothing can be saved");
    }
    s.first_bad = s.sound;
    code = read_rest(&s, bytes, out, err);
    if (!code)
        report(&s, *out);
    return code;
}
