/* SPDX-License-Identifier: Apache-2.0 */
/* info_meta.c - the metadata of the traces; values are kept as JSON text, which serves both printers. */
#include "info_meta.h"

#include "base/formats/json.h"
#include "base/text/base64.h"
#include "trace/trace_impl.h"

static void put_bytes(orr_json_writer *w, orr_str s)
{
    orr_buf text = {0};
    uint8_t *room = orr_buf_reserve(&text, orr_base64_length(s.len) + 1);
    if (room) {
        const orr_span in = {(const uint8_t *)s.ptr, s.len};
        text.len = (size_t)(orr_base64_put(room, in) - text.ptr);
        orr_json_str(w, (orr_str){(const char *)text.ptr, text.len});
    } else {
        w->to->failed = true;
    }
    orr_buf_fini(&text);
}

static void put_double(orr_json_writer *w, double v)
{
    if (v != v)
        orr_json_text(w, "NaN"); /* JSON has no such number */
    else if (v - v != 0)
        orr_json_text(w, v < 0 ? "-Infinity" : "Infinity");
    else
        orr_json_double(w, v);
}

static void put_value(orr_json_writer *w, orr_value_kind kind, const orr_value *v)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        put_double(w, v->d);
        return;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED32:
    case ORR_VALUE_FIXED64:
        orr_json_u64(w, v->u);
        return;
    case ORR_VALUE_BOOL:
        orr_json_bool(w, v->u != 0);
        return;
    case ORR_VALUE_STRING:
        orr_json_str(w, v->s);
        return;
    case ORR_VALUE_BYTES:
        put_bytes(w, v->s);
        return;
    case ORR_VALUE_NONE:
    case ORR_VALUE_KIND_COUNT:
        orr_json_null(w);
        return;
    default:
        orr_json_i64(w, v->i);
    }
}

static void put_attr(orr_json_writer *w, const orr_attr *attr)
{
    if (!attr->is_list) {
        put_value(w, attr->kind, &attr->value);
        return;
    }
    orr_list items = orr_attr_items(attr);
    orr_value item;
    orr_json_begin_array(w);
    while (orr_list_next(&items, &item))
        put_value(w, attr->kind, &item);
    orr_json_end_array(w);
}

static bool copy_text(orr_arena *a, orr_str from, orr_str *out)
{
    out->ptr = orr_arena_text(a, from);
    out->len = from.len;
    return out->ptr != NULL;
}

static bool copy_attr(orr_info *o, const orr_attr *attr, orr__meta_row *row)
{
    static const orr_json_style style = {.spaced = true};
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, &style);
    put_attr(&w, attr);
    const bool ok = !b.failed &&
                    copy_text(o->arena, (orr_str){(const char *)b.ptr, b.len}, &row->value) &&
                    copy_text(o->arena, attr->name, &row->name);
    row->member = attr->kind == ORR_VALUE_NONE ? NULL : orr_value_member(attr->kind, attr->is_list);
    orr_buf_fini(&b);
    return ok;
}

orr_code orr__info_metadata(orr_info *o, const orr_trace *t, orr_error *err)
{
    orr_attr attr;
    size_t count = 0;
    o->has_metadata = orr_trace_has_metadata(t);
    if (!copy_text(o->arena, orr_trace_version(t), &o->meta_version))
        return orr_no_memory(err);
    for (orr_attrs it = orr_trace_attrs(t); orr_attrs_next(&it, &attr);)
        count++;
    if (!(o->meta = orr_arena_new(o->arena, count, orr__meta_row)))
        return orr_no_memory(err);
    for (orr_attrs it = orr_trace_attrs(t); orr_attrs_next(&it, &attr);)
        if (!copy_attr(o, &attr, &o->meta[o->meta_count++]))
            return orr_no_memory(err);
    return ORR_OK;
}

bool orr__info_same_metadata(const orr_trace *a, const orr_trace *b)
{
    const orr_span x = orr__trace_meta_body(a), y = orr__trace_meta_body(b);
    return a->has_metadata == b->has_metadata && x.len == y.len &&
           (x.len == 0 || memcmp(x.ptr, y.ptr, x.len) == 0);
}
