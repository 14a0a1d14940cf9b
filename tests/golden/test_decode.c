/* SPDX-License-Identifier: Apache-2.0 */
/* room: et_legacy */
/* test_decode.c - every trace of the golden data that comes with its contents as JSON lines: what
 * the public accessors give, written in that form, must be the same bytes. */
#include "golden.h"

#include <orrery/trace.h>

#include "base/formats/json.h"

static const orr_json_style style = {.spaced = true, .ascii = true};

/* Bytes as text, each a character of its own. */
static void put_latin1(orr_json_writer *w, orr_str bytes)
{
    orr_buf text = {0};
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t utf8[4];
        orr_buf_add(&text, utf8, orr_utf8_put((uint8_t)bytes.ptr[i], utf8));
    }
    orr_json_str(w, (orr_str){(const char *)text.ptr, text.len});
    orr_buf_fini(&text);
}

static void put_value(orr_json_writer *w, orr_value_kind kind, orr_value v)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        orr_json_double(w, v.d);
        break;
    case ORR_VALUE_BOOL:
        orr_json_bool(w, v.u != 0);
        break;
    case ORR_VALUE_STRING:
        orr_json_str(w, v.s);
        break;
    case ORR_VALUE_BYTES:
        put_latin1(w, v.s);
        break;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED32:
    case ORR_VALUE_FIXED64:
        orr_json_u64(w, v.u);
        break;
    default:
        orr_json_i64(w, v.i);
    }
}

static void put_attr(orr_json_writer *w, const orr_attr *a)
{
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, a->name);
    if (a->doc.len) {
        orr_json_key(w, "doc");
        orr_json_str(w, a->doc);
    }
    if (a->kind)
        orr_json_key(w, orr_value_member(a->kind, a->is_list));
    if (a->kind && !a->is_list)
        put_value(w, a->kind, a->value);
    if (a->is_list) {
        orr_list it = orr_attr_items(a);
        orr_value v;
        orr_json_begin_array(w);
        while (orr_list_next(&it, &v))
            put_value(w, a->kind, v);
        orr_json_end_array(w);
    }
    orr_json_end_object(w);
}

static void put_attrs(orr_json_writer *w, orr_attrs it)
{
    orr_attr a;
    orr_json_key(w, "attr");
    orr_json_begin_array(w);
    while (orr_attrs_next(&it, &a))
        put_attr(w, &a);
    orr_json_end_array(w);
}

static void put_ids(orr_json_writer *w, const char *key, orr_list it)
{
    orr_value v;
    orr_json_key(w, key);
    orr_json_begin_array(w);
    while (orr_list_next(&it, &v))
        orr_json_u64(w, v.u);
    orr_json_end_array(w);
}

static void put_io(orr_json_writer *w, const char *key, bool is_there, const orr_io *io)
{
    if (!is_there)
        return;
    orr_json_key(w, key);
    orr_json_begin_object(w);
    orr_json_key(w, "values");
    orr_json_str(w, io->values);
    orr_json_key(w, "shapes");
    orr_json_str(w, io->shapes);
    orr_json_key(w, "types");
    orr_json_str(w, io->types);
    orr_json_end_object(w);
}

static void put_node(orr_json_writer *w, const orr_node *n)
{
    orr_json_begin_object(w);
    orr_json_key(w, "id");
    orr_json_u64(w, n->id);
    orr_json_key(w, "name");
    orr_json_str(w, n->name);
    orr_json_key(w, "type");
    orr_json_text(w, orr_node_type_name(n->type));
    put_ids(w, "ctrl_deps", orr_node_ctrl_deps(n));
    put_ids(w, "data_deps", orr_node_data_deps(n));
    orr_json_key(w, "start_time_micros");
    orr_json_u64(w, n->start_us);
    orr_json_key(w, "duration_micros");
    orr_json_u64(w, n->duration_us);
    put_io(w, "inputs", n->has_inputs, &n->inputs);
    put_io(w, "outputs", n->has_outputs, &n->outputs);
    put_attrs(w, orr_node_attrs(n));
    orr_json_end_object(w);
}

static void put_meta(orr_json_writer *w, const orr_trace *t)
{
    orr_json_begin_object(w);
    orr_json_key(w, "global");
    orr_json_begin_object(w);
    orr_json_key(w, "version");
    orr_json_str(w, orr_trace_version(t));
    put_attrs(w, orr_trace_attrs(t));
    orr_json_end_object(w);
    orr_json_end_object(w);
}

static void render(const orr_trace *t, orr_buf *out)
{
    orr_json_writer w;
    if (orr_trace_has_metadata(t)) {
        orr_json_writer_init(&w, out, &style);
        put_meta(&w, t);
        orr_buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        orr_json_writer_init(&w, out, &style);
        put_node(&w, &node);
        orr_buf_byte(out, '\n');
    }
}

static size_t first_difference(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0;
    while (i < n && i < m && a[i] == b[i])
        i++;
    return i;
}

static bool compare(const orr_trace *t, const char *jsonl, char *why, size_t size)
{
    size_t len = 0;
    char *want = golden_file(jsonl, &len);
    orr_buf got = {0};
    render(t, &got);
    const char *text = (const char *)got.ptr;
    const bool is_same = want && got.len == len && memcmp(want, text, len) == 0;
    if (!is_same && want) {
        const size_t at = first_difference(want, len, text, got.len), from = at < 40 ? 0 : at - 40;
        snprintf(why, size, "byte %zu: expected ...%.80s, found ...%.80s", at, want + from,
                 text + from);
    }
    free(want);
    orr_buf_fini(&got);
    return is_same;
}

static bool check_one(const char *jsonl, char *why, size_t size)
{
    char path[4096];
    orr_error err;
    orr_trace *t;
    snprintf(path, sizeof path, "%.*s.et", (int)(strlen(jsonl) - strlen(".jsonl")), jsonl);
    if (orr_trace_read(path, NULL, &t, &err)) {
        orr_error_text(&err, why, size);
        return false;
    }
    const bool is_same = compare(t, jsonl, why, size);
    orr_trace_destroy(t);
    return is_same;
}

int main(void)
{
    return golden_each("chakra", ".jsonl", check_one);
}
