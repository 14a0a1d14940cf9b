/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - traces from JSON, recognised by their structure (docs/format/json.md).
 *
 *     document   {"format": "orrery-trace", "version": 1, "metadata": {..}, "nodes": [..]}
 *     lines      {"format": "orrery-trace", "version": 1, "metadata": {..}}, then one node a line
 *     objects    {..}{..}{..}: what the old jsonizer writes; the first may be metadata
 *     array      [{..}, {..}]: the same between brackets
 *     feeder     {"workload_graph": [..]}: the C++ feeder's own form
 *
 * One record is a tree at a time, is encoded at once as the current schema and appended like any other; so
 * the memory needed is that of the trace, whatever the size of the file. */
#include "trace_json_impl.h"

#include <inttypes.h>

enum { RELEASE_EVERY = 1 << 22 };

/* ---- is it JSON? ---- */

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* "key" : with the colon. */
static bool is_member_start(const uint8_t *p, const uint8_t *end)
{
    if (p == end || *p++ != '"')
        return false;
    while (p < end && *p != '"' && *p >= 0x20)
        p += *p == '\\' && end - p > 1 ? 2 : 1;
    if (p == end || *p++ != '"')
        return false;
    p = skip_space(p, end);
    return p < end && *p == ':';
}

/* An .et file whose first record has 123 bytes begins with '{' too, and 0x0a, a line break, is the tag of
 * the version that follows.  So the whole first key is looked at: in a text that a length of 34, a quote,
 * announces, there would have to be another quote and a colon, and no control character before. */
bool orr__is_json(orr_span bytes)
{
    if (bytes.len == 0)
        return false; /* and there may be no address to count from */
    const uint8_t *p = bytes.ptr, *const end = bytes.ptr + bytes.len;
    if (bytes.len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    p = skip_space(p, end);
    if (p < end && *p == '[') {
        p = skip_space(p + 1, end);
        if (p < end && *p == ']')
            return skip_space(p + 1, end) == end;
    }
    if (p == end || *p != '{')
        return false;
    p = skip_space(p + 1, end);
    return p < end && (*p == '}' || is_member_start(p, end));
}

/* ---- records ---- */

static const orr__json_key meta_keys[] = {
    {"version", NULL, META_VERSION},
    {"attr", NULL, META_ATTR},
    {"unknownFields", NULL, ORR__JSON_UNKNOWN},
    {0},
};

static const orr__json_key node_keys[] = {
    {"id", NULL, NODE_ID},
    {"name", NULL, NODE_NAME},
    {"type", NULL, NODE_TYPE},
    {"ctrlDeps", "ctrl_deps", NODE_CTRL_DEPS},
    {"dataDeps", "data_deps", NODE_DATA_DEPS},
    {"startTimeMicros", "start_time_micros", NODE_START},
    {"durationMicros", "duration_micros", NODE_DURATION},
    {"inputs", NULL, NODE_INPUTS},
    {"outputs", NULL, NODE_OUTPUTS},
    {"attr", NULL, NODE_ATTR},
    {"unknownFields", NULL, ORR__JSON_UNKNOWN},
    {0},
};

static const orr__json_key io_keys[] = {
    {"values", NULL, IO_VALUES},
    {"shapes", NULL, IO_SHAPES},
    {"types", NULL, IO_TYPES},
    {"unknownFields", NULL, ORR__JSON_UNKNOWN},
    {0},
};

static orr_code put_text(orr__json_source *s,
                         const orr__json_members *m,
                         uint32_t field,
                         orr_buf *to)
{
    orr_str text;
    if (!orr__json_has(m, field))
        return ORR_OK;
    const orr_code code = orr_json_get_str(m->at[field], &text, s->err);
    if (!code && text.len)
        orr_put_bytes(to, field, text.ptr, text.len);
    return code;
}

static orr_code put_u64(orr__json_source *s,
                        const orr__json_members *m,
                        uint32_t field,
                        orr_buf *to)
{
    uint64_t v;
    if (!orr__json_has(m, field))
        return ORR_OK;
    const orr_code code = orr__json_u64(s, m->at[field], &v);
    if (!code && v)
        orr_put_uint(to, field, v);
    return code;
}

static orr_code put_type(orr__json_source *s, const orr__json_members *m, orr_buf *to)
{
    uint32_t type = 0;
    if (!orr__json_has(m, NODE_TYPE))
        return ORR_OK;
    const orr_code code = orr__json_node_type(s, m->at[NODE_TYPE], &type);
    if (!code && type)
        orr_put_uint(to, NODE_TYPE, (uint64_t)(int64_t)(int32_t)type);
    return code;
}

static orr_code put_ids(orr__json_source *s,
                        const orr__json_members *m,
                        uint32_t field,
                        orr_buf *to)
{
    return orr__json_has(m, field) ? orr__json_ids(s, m->at[field], field, to) : ORR_OK;
}

static orr_code put_attrs(orr__json_source *s,
                          const orr__json_members *m,
                          uint32_t field,
                          orr_buf *to)
{
    return orr__json_has(m, field) ? orr__json_attrs(s, m->at[field], field, to) : ORR_OK;
}

static orr_code put_unknown(orr__json_source *s, const orr__json_members *m, orr_buf *to)
{
    orr_span unknown;
    const orr_code code = orr__json_unknown(s, m, &unknown);
    if (!code)
        orr_buf_add(to, unknown.ptr, unknown.len);
    return code;
}

static orr_code put_io(orr__json_source *s, const orr__json_members *m, uint32_t field, orr_buf *to)
{
    orr__json_members io;
    if (!orr__json_has(m, field))
        return ORR_OK;
    orr_code code = orr__json_sort(s, m->at[field], "inputs and outputs", io_keys, &io);
    orr_put_tag(to, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(to);
    for (uint32_t i = IO_VALUES; i <= IO_TYPES && !code; i++)
        code = put_text(s, &io, i, to);
    if (!code)
        code = put_unknown(s, &io, to);
    orr_put_end(to, begin);
    return code;
}

orr_code orr__json_put_node(orr__json_source *s, const orr__json_members *m, orr_buf *to)
{
    orr_code code;
    if ((code = put_u64(s, m, NODE_ID, to)) || (code = put_text(s, m, NODE_NAME, to)) ||
        (code = put_type(s, m, to)) || (code = put_ids(s, m, NODE_CTRL_DEPS, to)) ||
        (code = put_ids(s, m, NODE_DATA_DEPS, to)) || (code = put_u64(s, m, NODE_START, to)) ||
        (code = put_u64(s, m, NODE_DURATION, to)) || (code = put_io(s, m, NODE_INPUTS, to)) ||
        (code = put_io(s, m, NODE_OUTPUTS, to)) || (code = put_attrs(s, m, NODE_ATTR, to)))
        return code;
    return put_unknown(s, m, to);
}

orr_code orr__json_append(orr__json_source *s, size_t begin, orr_json_value v)
{
    if (s->t->owned.len == begin)
        orr_put_uint(&s->t->owned, NODE_ID,
                     0); /* an empty record would end the file for some readers */
    const orr_code code = orr__trace_append_body(s->t, begin, orr_json_byte(v), s->err);
    if (code == ORR_EINPUT && s->err)
        s->err->where = orr_json_where(v); /* only unknownFields can be at fault: show the line */
    return code;
}

static orr_code read_node(orr__json_source *s, orr_json_value v)
{
    orr__json_members m;
    orr_code code = orr__json_sort(s, v, "a node", node_keys, &m);
    if (code)
        return code;
    const size_t begin = orr_put_begin(&s->t->owned);
    code = orr__json_put_node(s, &m, &s->t->owned);
    return code ? code : orr__json_append(s, begin, v);
}

/* unknownFields may hold anything: the finished record is checked like one from a file. */
static orr_code check_meta(orr__json_source *s, orr_json_value v)
{
    orr__scan *scan = &s->t->scan;
    if (s->t->owned.failed)
        return orr_no_memory(s->err);
    if (orr__scan_meta(scan, orr__trace_meta_body(s->t)))
        return ORR_OK;
    return orr__json_bad(s, v, "the metadata: %s", scan->why);
}

static orr_code read_meta(orr__json_source *s, orr_json_value v)
{
    orr_trace *t = s->t;
    orr__json_members m;
    if (t->has_metadata || t->count)
        return orr__json_bad(s, v, "the metadata must stand in front of all nodes, once");
    orr_code code = orr__json_sort(s, v, "metadata", meta_keys, &m);
    const size_t begin = orr_put_begin(&t->owned);
    if (!code)
        code = put_text(s, &m, META_VERSION, &t->owned);
    if (!code)
        code = put_attrs(s, &m, META_ATTR, &t->owned);
    if (!code)
        code = put_unknown(s, &m, &t->owned);
    if (code)
        return code;
    orr_put_end(&t->owned, begin);
    t->has_metadata = true;
    return check_meta(s, v);
}

/* ---- files ---- */

typedef orr_code record_reader(orr__json_source *s, orr_json_value v);

/* The pages of a mapped file that are read may go; memory is for the trace. */
static void release_behind(orr__json_source *s, uint64_t byte)
{
    if (s->t->source && byte >= s->released + RELEASE_EVERY) {
        orr_input_release(s->t->source, s->released, byte);
        s->released = byte;
    }
}

/* All items of what was entered last, or all documents that are left. */
static orr_code read_records(orr__json_source *s, record_reader *read)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code;
    while ((code = orr_json_next(s->json, &item, s->err)) == ORR_OK) {
        release_behind(s, item.byte);
        orr_arena_reset(s->scratch);
        if ((code = orr_json_load(s->json, &v, s->err)) || (code = read(s, v)))
            return code;
    }
    return code == ORR_END ? ORR_OK : code;
}

/* An object with nothing but what metadata has is metadata, if it comes first: the old jsonizer always
 * writes one. */
static bool looks_like_meta(orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value value;
    orr_str key;
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        return false;
    while (orr_json_next_member(&it, &key, &value))
        if (!orr_str_is(key, "version") && !orr_str_is(key, "attr") &&
            !orr_str_is(key, "unknownFields"))
            return false;
    return true;
}

static orr_code read_meta_or_node(orr__json_source *s, orr_json_value v)
{
    const bool is_first = !s->t->has_metadata && s->t->count == 0;
    return is_first && looks_like_meta(v) ? read_meta(s, v) : read_node(s, v);
}

static orr_code enter_array(orr__json_source *s, const orr_json_item *item)
{
    if (item->type == ORR_JSON_ARRAY)
        return orr_json_enter(s->json, s->err);
    const orr_where where = orr_json_place(s->json, item->byte);
    return orr_fail(s->err, ORR_EINPUT, &where, "expected an array of nodes, found %s",
                    orr_json_type_name(item->type));
}

static orr_code check_format(orr__json_source *s, orr_json_value v)
{
    orr_str name;
    const orr_code code = orr_json_get_str(v, &name, s->err);
    if (code || orr_str_is(name, "orrery-trace"))
        return code;
    return orr__json_bad(s, v, "the format is \"%.*s\", not \"orrery-trace\"",
                         name.len < 60 ? (int)name.len : 60, name.ptr);
}

static orr_code check_version(orr__json_source *s, orr_json_value v)
{
    uint64_t version;
    const orr_code code = orr__json_u64(s, v, &version);
    if (code || version == 1)
        return code;
    return orr__json_bad(s, v, "version %" PRIu64 " of the format; this program knows version 1",
                         version);
}

/* A member of a document that is small enough to be a tree. */
static orr_code read_heading(orr__json_source *s, const orr_json_item *item)
{
    orr_json_value v;
    char key[60];
    const size_t len = item->key.len < sizeof key ? item->key.len : sizeof key;
    memcpy(key, item->key.ptr, len); /* gone when the value is loaded */
    const orr_str name = {key, len};
    const orr_code code = orr_json_load(s->json, &v, s->err);
    if (code)
        return code;
    if (orr_str_is(name, "format"))
        return check_format(s, v);
    if (orr_str_is(name, "version"))
        return check_version(s, v);
    if (orr_str_is(name, "metadata"))
        return orr_json_type_of(v) == ORR_JSON_NULL ? ORR_OK : read_meta(s, v);
    return orr__json_unknown_key(s, v, "a trace", name);
}

static orr_code read_nodes(orr__json_source *s, const orr_json_item *item, record_reader *read)
{
    const orr_code code = enter_array(s, item);
    return code ? code : read_records(s, read);
}

/* The members of the object just entered. */
static orr_code read_document(orr__json_source *s, bool *has_nodes)
{
    orr_json_item item;
    orr_code code;
    while ((code = orr_json_next(s->json, &item, s->err)) == ORR_OK) {
        const bool is_nodes = orr_str_is(item.key, "nodes");
        *has_nodes |= is_nodes;
        orr_arena_reset(s->scratch);
        code = is_nodes ? read_nodes(s, &item, read_node) : read_heading(s, &item);
        if (code)
            return code;
    }
    return code == ORR_END ? ORR_OK : code;
}

/* What else stands in a feeder's file (a name, a number of ranks) is not part of a trace. */
static orr_code read_workload(orr__json_source *s)
{
    orr_json_item item;
    orr_code code;
    while ((code = orr_json_next(s->json, &item, s->err)) == ORR_OK)
        if (orr_str_is(item.key, "workload_graph") &&
            (code = read_nodes(s, &item, orr__json_feeder_node)))
            return code;
    return code == ORR_END ? ORR_OK : code;
}

static orr_code refuse_more(orr__json_source *s)
{
    orr_json_item item;
    const orr_code code = orr_json_next(s->json, &item, s->err);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    const orr_where where = orr_json_place(s->json, item.byte);
    return orr_fail(s->err, ORR_EINPUT, &where, "something stands behind the end of the trace");
}

/* Into the one document, or the first one, of the file. */
static orr_code enter_document(orr__json_source *s)
{
    orr_json_item item;
    const orr_code code = orr_json_next(s->json, &item, s->err);
    return code ? code : orr_json_enter(s->json, s->err);
}

static orr_code read_document_file(orr__json_source *s)
{
    bool has_nodes = false;
    orr_code code = enter_document(s);
    if (!code)
        code = read_document(s, &has_nodes);
    if (code)
        return code;
    return has_nodes ? refuse_more(s) : read_records(s, read_node);
}

static orr_code read_feeder_file(orr__json_source *s)
{
    orr_code code = enter_document(s);
    if (!code)
        code = read_workload(s);
    return code ? code : refuse_more(s);
}

static orr_code read_array_file(orr__json_source *s)
{
    orr_code code = enter_document(s);
    if (!code)
        code = read_records(s, read_meta_or_node);
    return code ? code : refuse_more(s);
}

static orr_code read_object_file(orr__json_source *s)
{
    return read_records(s, read_meta_or_node);
}

typedef orr_code file_reader(orr__json_source *s);

/* The form that a key of the first object gives away; NULL: not this one. */
static file_reader *form_of(const orr_json_item *item)
{
    if (orr_str_is(item->key, "workload_graph"))
        return read_feeder_file;
    if (orr_str_is(item->key, "version") && item->type == ORR_JSON_INT)
        return read_document_file; /* that of metadata is text */
    if (orr_str_is(item->key, "format") || orr_str_is(item->key, "metadata") ||
        orr_str_is(item->key, "nodes"))
        return read_document_file;
    return NULL;
}

/* What stands first in the file decides its form; json has nothing read yet and is spent afterwards. */
static orr_code recognise(orr_json *json, file_reader **out, orr_error *err)
{
    orr_json_item item;
    *out = read_object_file;
    orr_code code = orr_json_next(json, &item, err);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    if (item.type == ORR_JSON_ARRAY)
        *out = read_array_file;
    if (item.type != ORR_JSON_OBJECT)
        return ORR_OK;
    code = orr_json_enter(json, err);
    while (!code && (code = orr_json_next(json, &item, err)) == ORR_OK) {
        file_reader *form = form_of(&item);
        if (form) {
            *out = form;
            return ORR_OK;
        }
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code recognise_bytes(orr_trace *t, orr_span bytes, file_reader **out, orr_error *err)
{
    orr_json *json;
    orr_code code = orr_json_open(bytes, t->path, &json, err);
    if (code)
        return code;
    code = recognise(json, out, err);
    orr_json_close(json);
    return code;
}

static orr_code read_all(orr__json_source *s, orr_span bytes, const orr_read_options *opt)
{
    file_reader *read;
    orr_code code = recognise_bytes(s->t, bytes, &read, s->err);
    if (code || (code = orr_json_open(bytes, s->t->path, &s->json, s->err)))
        return code;
    if (!(s->scratch = orr_arena_create()))
        return orr_no_memory(s->err);
    if ((code = read(s)) || s->t->has_metadata || !opt->first_is_metadata)
        return code;
    const orr_where where = orr_json_place(s->json, 0);
    return orr_fail(s->err, ORR_EINPUT, &where, "the first record is not metadata");
}

orr_code orr__json_read(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err)
{
    orr__json_source s = {.t = t, .is_lenient = opt->leniency != ORR_STRICT, .err = err};
    t->scan.is_lenient = s.is_lenient;
    const orr_code code = read_all(&s, bytes, opt);
    orr_json_close(s.json);
    orr_arena_destroy(s.scratch);
    orr_free(s.items);
    orr_buf_fini(&s.part);
    orr_buf_fini(&s.list);
    return code;
}
