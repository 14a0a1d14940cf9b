/* SPDX-License-Identifier: Apache-2.0 */
/* et_file.c - .et files: a stream of records, each after its length; first the metadata, then the
 * nodes.
 *
 * Reading maps the file and indexes record after record; pages behind the reader are released as it
 * goes, so a trace costs the memory of its columns, not of its file.  Writing the schema in memory
 * is copying bytes.  Framing damage is found here and reported with its byte; the two ways in which
 * the old tools overlook damage (chakra.md 1.1) are in next_as_jsonizer and next_as_feeder. */
#include "trace/set_impl.h"
#include "trace/trace_impl.h"

#include "base/options.h"
#include "base/short_forms.h"
#include "base/threads/stop.h"
#include <inttypes.h>

enum { RELEASE_EVERY = 1 << 22 };

typedef struct reader {
    orr_trace *t;
    orr_span bytes;
    uint64_t at; /* the next record's length */
    orr_leniency leniency;
    uint64_t body_len; /* of the record found by next_record */
    uint64_t body_at;
    bool is_short; /* its length exceeds the file */
} reader;

static orr_code damage(const reader *r, uint64_t byte, orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(r->t->path, r->t->source_at + byte)),
                    "%s", what);
}

/* ORR_END at the end of the file; ORR_EINPUT when the length cannot be read. */
static orr_code read_length(reader *r)
{
    orr_wire w = {r->bytes.ptr + r->at, r->bytes.ptr + r->bytes.len, NULL};
    if (w.at == w.end)
        return ORR_END;
    if (!orr_wire_varint(&w, &r->body_len))
        return ORR_EINPUT;
    r->body_at = (uint64_t)(w.at - r->bytes.ptr);
    return ORR_OK;
}

static uint64_t bytes_left(const reader *r)
{
    return r->bytes.len - r->body_at;
}

static orr_code next_strict(reader *r, orr_error *err)
{
    if (r->at == 0 && orr__is_orr(r->bytes))
        return damage(r, 0, err, "this is a set of traces (.orr), not the trace of one rank");
    const orr_code code = read_length(r);
    if (code == ORR_EINPUT)
        return damage(r, r->at, err,
                      "the file ends inside a record's length, or the length is not a number");
    if (code)
        return code;
    if (r->body_len > bytes_left(r))
        return orr_fail(err, ORR_EINPUT,
                        ORR_AT(orr_where_byte(r->t->path, r->t->source_at + r->at)),
                        "a record of %" PRIu64 " bytes is announced, but only %" PRIu64
                        " are left: the file is cut short or damaged",
                        r->body_len, bytes_left(r));
    if (r->body_len == 0 && r->at)
        return damage(r, r->at, err,
                      "an empty record: a node has at least an id, a name or a type");
    return ORR_OK;
}

/* The Python tools: a length of 0 or an unreadable one ends the file, and a truncated record is
 * parsed as far as possible (chakra.md 1.1). */
static orr_code next_as_jsonizer(reader *r)
{
    const orr_code code = read_length(r);
    if (code)
        return ORR_END;
    if (r->body_len == 0 && r->at)
        return ORR_END;
    r->is_short = r->body_len > bytes_left(r);
    if (r->is_short)
        r->body_len = bytes_left(r);
    return ORR_OK;
}

/* The C++ feeder: anything unreadable ends the file (chakra.md 1.1). */
static orr_code next_as_feeder(reader *r)
{
    return read_length(r) || r->body_len > bytes_left(r) ? ORR_END : ORR_OK;
}

static orr_code next_record(reader *r, orr_error *err)
{
    if (r->leniency == ORR_AS_JSONIZER)
        return next_as_jsonizer(r);
    if (r->leniency == ORR_AS_FEEDER_V2)
        return next_as_feeder(r);
    return next_strict(r, err);
}

/* Is the first record metadata?  Files without it exist (chakra.md 1.4): there the first record is
 * a node. Text in field 1 is a version, a number there is a node's id.  Without field 1 it is
 * metadata if it has only valid attributes; a node would have a type or a field that metadata
 * lacks. */
bool orr__is_metadata(orr__scan *s, orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    bool is_first = true;
    while (orr_wire_next(&w, &f)) {
        if (is_first && f.number == META_VERSION)
            return f.type == ORR_WIRE_LEN;
        if (f.type != ORR_WIRE_LEN || f.number > META_ATTR)
            return false;
        is_first = false;
    }
    return !w.why && orr__scan_meta(s, body);
}

/* The length of a truncated record is wrong, which later readers must not see: append the available
 * bytes, with their true length, to a copy of everything before.  Returns its new position. */
static uint64_t copy_short(const reader *r)
{
    orr_buf *b = &r->t->owned;
    orr_buf_add(b, r->bytes.ptr, r->at);
    const uint64_t record = b->len;
    orr_put_varint(b, r->body_len);
    orr_buf_add(b, r->bytes.ptr + r->body_at, r->body_len);
    return record;
}

static orr_code take_metadata(reader *r, orr_error *err)
{
    orr_trace *t = r->t;
    r->at = r->body_at + r->body_len;
    t->has_metadata = true;
    if (!r->is_short)
        return ORR_OK;
    r->at = 0;
    copy_short(r);
    r->at = r->bytes.len;
    return t->owned.failed ? orr_no_memory(err) : ORR_OK;
}

static orr_code refuse_metadata(const reader *r, bool is_meta, orr_error *err)
{
    const orr__scan *s = &r->t->scan;
    const orr_where w =
        orr_where_byte(r->t->path, r->t->source_at + (uint64_t)(s->bad - r->bytes.ptr));
    const char *what = is_meta ? "the metadata is damaged" : "the first record is not metadata";
    return orr_fail(err, ORR_EINPUT, &w, "%s: %s", what, s->why);
}

static orr_code read_metadata(reader *r, bool is_required, orr_error *err)
{
    orr__scan *s = &r->t->scan;
    const orr_code code = next_record(r, err);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    const orr_span body = {r->bytes.ptr + r->body_at, (size_t)r->body_len};
    const bool must =
        is_required || r->leniency == ORR_AS_JSONIZER || r->leniency == ORR_AS_FEEDER_V2;
    const bool is_meta = orr__is_metadata(s, body);
    if (!is_meta && !must)
        return ORR_OK; /* a node */
    if (orr__scan_meta(s, body))
        return take_metadata(r, err);
    if (r->leniency != ORR_AS_FEEDER_V2)
        return refuse_metadata(r, is_meta, err);
    r->at = r->body_at + r->body_len; /* ignored by V2 */
    return ORR_OK;
}

static void release_behind(const reader *r, uint64_t *released)
{
    if (r->t->source && r->at - *released >= RELEASE_EVERY) {
        orr_input_release(r->t->source, r->t->source_at + *released, r->t->source_at + r->at);
        *released = r->at;
    }
}

static orr_code index_short(reader *r, orr_error *err)
{
    orr_trace *t = r->t;
    const uint64_t record = copy_short(r);
    if (t->owned.failed)
        return orr_no_memory(err);
    const orr_code code = orr__trace_index(t, record, r->at, err);
    if (code == ORR_EINPUT && err) /* the true length may take fewer bytes than the wrong one */
        err->where.byte += r->body_at - r->at - orr_varint_size(r->body_len);
    return code;
}

/* Estimates the number of records from the first ones.  Columns of that size do not move while they
 * grow, and unneeded memory is never touched; a few short records before long ones must not
 * allocate more than the file is worth. */
static orr_code expect_rest(const reader *r, orr_error *err)
{
    enum { LEAST_RECORD = 32 };
    const uint64_t mean = r->at / r->t->count;
    const uint64_t rest = r->bytes.len / (mean > LEAST_RECORD ? mean : LEAST_RECORD);
    return orr__trace_expect(r->t, (size_t)(rest + rest / 32), 0, err);
}

static orr_code read_nodes(reader *r, orr_error *err)
{
    enum { SAMPLE = 64, LOOK_EVERY = 1024 };
    orr_trace *t = r->t;
    uint64_t released = 0;
    orr_code code;
    while ((code = next_record(r, err)) == ORR_OK) {
        code = r->is_short ? index_short(r, err) : orr__trace_index(t, r->at, 0, err);
        if (code == ORR_EINPUT && r->leniency == ORR_AS_FEEDER_V2)
            break;
        if (code)
            return code;
        r->at = r->body_at + r->body_len;
        release_behind(r, &released);
        if (t->count == SAMPLE && (code = expect_rest(r, err)))
            return code;
        if (t->count % LOOK_EVERY == 0 && orr__stop_asked())
            return orr_no_memory(err);
    }
    return code == ORR_END || r->leniency == ORR_AS_FEEDER_V2 ? ORR_OK : code;
}

/* Records begin with their length and contain lengths: the first bytes of a trace are never all
 * text. */
static bool is_text(orr_span bytes)
{
    enum { SEEN = 256, LEAST = 8 };
    for (size_t i = 0; i < bytes.len && i < SEEN; i++) {
        const uint8_t c = bytes.ptr[i];
        if (c == 0x7F || (c < ' ' && c != '\n' && c != '\r' && c != '\t'))
            return false;
    }
    return bytes.len >= LEAST;
}

static bool is_xml(orr_span bytes)
{
    return bytes.len > 1 && bytes.ptr[0] == '<' && bytes.ptr[1] != '\n';
}

/* Among the first bytes. */
static bool has_word(orr_span bytes, const char *word)
{
    enum { SEEN = 4096 };
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= bytes.len && i < SEEN; i++)
        if (memcmp(bytes.ptr + i, word, n) == 0)
            return true;
    return false;
}

static const char *other_kind(orr_span bytes)
{
    if (!is_xml(bytes))
        return "this is text, not a trace";
    return has_word(bytes, "<algo ")
               ? "this is a plan of MSCCL, not a trace: orrery run --plan takes it"
           : has_word(bytes, "<system ")
               ? "this is a topology of NCCL, not a trace: orrery run -t takes it"
               : "this is XML, not a trace";
}

/* A better message for input that is something else. */
static orr_code refuse_other(const reader *r, orr_code code, orr_error *err)
{
    const bool is_ours = r->leniency == ORR_STRICT || r->leniency == ORR_KEEP_UNKNOWN;
    if (code != ORR_EINPUT || !is_ours || !is_text(r->bytes))
        return code;
    return damage(r, 0, err, other_kind(r->bytes));
}

static orr_code read_current(orr_trace *t,
                             orr_span bytes,
                             const orr_read_options *opt,
                             orr_error *err)
{
    reader r = {.t = t, .bytes = bytes, .leniency = opt->leniency};
    t->bytes = bytes;
    t->scan.is_lenient = opt->leniency != ORR_STRICT;
    if (bytes.len == 0 && (opt->leniency == ORR_STRICT || opt->leniency == ORR_KEEP_UNKNOWN))
        return damage(&r, 0, err, "the file is empty");
    orr_code code = read_metadata(&r, opt->first_is_metadata, err);
    if (!code)
        code = read_nodes(&r, err);
    t->bytes.len = (size_t)r.at;
    return refuse_other(&r, code, err);
}

static orr_code no_old_forms(orr_schema schema, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "schema %s is not built in; this build has the current one only",
                    orr_schema_name(schema));
}

static orr_code read_bytes(orr_trace *t,
                           orr_span bytes,
                           const orr_read_options *opt,
                           orr_error *err)
{
    if (orr__is_json(bytes)) {
        t->is_transcoded = true;
        return orr__json_read(t, bytes, opt, err);
    }
    t->schema = opt->schema ? opt->schema : orr__et_recognise(bytes, t->path);
    if (t->schema == ORR_SCHEMA_CURRENT)
        return read_current(t, bytes, opt, err);
    if (!orr__et_old_forms)
        return no_old_forms(t->schema, err);
    t->is_transcoded = true;
    return orr__et_old_forms->read(t, bytes, opt, err);
}

orr_code orr__trace_load(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err)
{
    orr_read_options own;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_read_options, err);
    t->is_from_file = true;
    if (!code)
        code = read_bytes(t, bytes, &own, err);
    return code ? code : orr_trace_seal(t, err);
}

orr_code orr_trace_parse(
    orr_span bytes, const char *label, const orr_read_options *opt, orr_trace **out, orr_error *err)
{
    orr_code code = orr__trace_new(label, out, err);
    if (code)
        return code;
    if (bytes.len == 0)
        bytes.ptr = (const uint8_t *)""; /* no NULL for empty input */
    code = orr__trace_load(*out, bytes, opt, err);
    if (code) {
        orr_trace_destroy(*out);
        *out = NULL;
    }
    return code;
}

orr_code orr_trace_read(const char *path,
                        const orr_read_options *opt,
                        orr_trace **out,
                        orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr__trace_new(path, out, err);
    if (code) {
        orr_input_close(in);
        return code;
    }
    (*out)->source = in;
    code = orr__trace_load(*out, orr_input_bytes(in), opt, err);
    if (code) {
        orr_trace_destroy(*out);
        *out = NULL;
    } else if ((*out)->is_transcoded) {
        orr_input_close(in);
        (*out)->source = NULL;
    }
    return code;
}

/* ---- writing ---- */

static void emit_shifted(const orr_trace *t, uint64_t shift, orr_output *o)
{
    orr_buf record = {0};
    const uint64_t head = t->count ? t->body_at[0] : t->bytes.len; /* the metadata */
    orr_output_add(o, t->bytes.ptr, head);
    for (uint32_t i = 0; i < t->count; i++) {
        const size_t begin = orr_put_begin(&record);
        orr__encode_shifted(&record, orr__trace_body(t, i), shift);
        orr_put_end(&record, begin);
        orr_output_drain(o, &record);
    }
    orr_buf_fini(&record);
}

static void emit_bytes(const orr_trace *t, orr_output *o)
{
    for (size_t at = 0; at < t->bytes.len; at += RELEASE_EVERY) {
        const size_t left = t->bytes.len - at;
        const size_t part = left < RELEASE_EVERY ? left : RELEASE_EVERY;
        orr_output_add(o, t->bytes.ptr + at, part);
        if (t->source)
            orr_input_release(t->source, t->source_at + at, t->source_at + at + part);
    }
}

orr_code orr__trace_write_open(const orr_trace *t,
                               const char *path,
                               const orr_write_options *opt,
                               orr_output **out,
                               orr_error *err)
{
    orr_write_options own;
    *out = NULL;
    if (!t->is_sealed)
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be written");
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_write_options, err);
    if (code)
        return code;
    opt = &own;
    const orr_schema schema = opt->same_schema ? t->schema
                              : opt->schema    ? opt->schema
                                               : ORR_SCHEMA_CURRENT;
    if (schema != ORR_SCHEMA_CURRENT && !orr__et_old_forms)
        return no_old_forms(schema, err);
    code = orr_output_open(path, out, err);
    if (code)
        return code;
    if (schema != ORR_SCHEMA_CURRENT)
        code = orr__et_old_forms->emit(t, schema, opt->id_shift, *out, err);
    else if (opt->id_shift)
        emit_shifted(t, opt->id_shift, *out);
    else
        emit_bytes(t, *out);
    if (code) {
        orr_output_discard(*out);
        *out = NULL;
    }
    return code;
}

orr_code orr_trace_write(const orr_trace *t,
                         const char *path,
                         const orr_write_options *opt,
                         orr_error *err)
{
    orr_output *o;
    const orr_code code = orr__trace_write_open(t, path, opt, &o, err);
    return code ? code : orr_output_commit(&o, err);
}
