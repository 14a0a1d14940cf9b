/* SPDX-License-Identifier: Apache-2.0 */
/* et_encode.c - nodes and metadata as records of the current schema.
 *
 * Byte for byte as the reference's protobuf library: fields in number order, defaults omitted,
 * repeated numbers packed, a set member of an attribute's value written even if it is zero. */
#include "base/inline.h"
#include "base/text/text.h"
#include "trace/trace_impl.h"

static void put_text(orr_buf *b, uint32_t field, orr_str s)
{
    if (s.len)
        orr_put_bytes(b, field, s.ptr, s.len);
}

static void put_nonzero(orr_buf *b, uint32_t field, uint64_t v)
{
    if (v)
        orr_put_uint(b, field, v);
}

static void put_ids(orr_buf *b, uint32_t field, const uint64_t *ids, size_t count)
{
    if (count == 0)
        return;
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    for (size_t i = 0; i < count; i++)
        orr_put_varint(b, ids[i]);
    orr_put_end(b, begin);
}

static void put_io(orr_buf *b, uint32_t field, const orr_io *io)
{
    if (!io)
        return;
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    put_text(b, IO_VALUES, io->values);
    put_text(b, IO_SHAPES, io->shapes);
    put_text(b, IO_TYPES, io->types);
    orr_put_end(b, begin);
}

static uint64_t bits_of(orr_value_kind kind, orr_value v)
{
    uint64_t bits = v.u;
    if (kind == ORR_VALUE_DOUBLE) {
        memcpy(&bits, &v.d, 8);
    } else if (kind == ORR_VALUE_FLOAT) {
        const float f = (float)v.d;
        uint32_t low;
        memcpy(&low, &f, 4);
        bits = low;
    }
    return bits;
}

/* One value without its tag. */
static void put_value(orr_buf *b, orr_value_kind kind, orr_value v)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FIXED64:
    case ORR_VALUE_SFIXED64:
        orr_put_fixed(b, 8, bits_of(kind, v));
        break;
    case ORR_VALUE_FLOAT:
    case ORR_VALUE_FIXED32:
    case ORR_VALUE_SFIXED32:
        orr_put_fixed(b, 4, bits_of(kind, v));
        break;
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SINT64:
        orr_put_varint(b, orr_zigzag(v.i));
        break;
    case ORR_VALUE_STRING:
    case ORR_VALUE_BYTES:
        orr_put_varint(b, v.s.len);
        orr_buf_add(b, v.s.ptr, v.s.len);
        break;
    default:
        orr_put_varint(b, v.u);
    }
}

static void put_items(orr_buf *b, const orr_attr *a)
{
    if (!a->items)
        return;
    if (a->kind == ORR_VALUE_STRING || a->kind == ORR_VALUE_BYTES) {
        for (size_t i = 0; i < a->item_count; i++)
            orr_put_bytes(b, LIST_VALUES, a->items[i].s.ptr, a->items[i].s.len);
        return;
    }
    if (a->item_count == 0)
        return;
    orr_put_tag(b, LIST_VALUES, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    for (size_t i = 0; i < a->item_count; i++)
        put_value(b, a->kind, a->items[i]);
    orr_put_end(b, begin);
}

static void put_member(orr_buf *b, const orr_attr *a)
{
    const uint32_t field = ATTR_FIRST_MEMBER + 2 * ((uint32_t)a->kind - 1) + a->is_list;
    if (a->kind == ORR_VALUE_NONE)
        return;
    if (!a->is_list) {
        orr_put_tag(b, field, orr__kind_wire_type(a->kind));
        put_value(b, a->kind, a->value);
        return;
    }
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    if (a->items || !a->list.len)
        put_items(b, a);
    else
        orr_buf_add(b, a->list.ptr, a->list.len);
    orr_put_end(b, begin);
}

/* A short name and one number or short text, as most attributes are: its length is known at once,
 * so nothing moves up afterwards.  False: it is another one. */
ORR_INLINE bool put_plain_attr(orr_buf *b, uint32_t field, const orr_attr *a)
{
    /* Beside name and text at most 22 bytes, so its length is one byte. */
    enum { NAME_MOST = 56, TEXT_MOST = 48, ROOM = 128 };
    const bool is_text = a->kind == ORR_VALUE_STRING;
    const bool is_number =
        a->kind == ORR_VALUE_INT64 || a->kind == ORR_VALUE_UINT64 || a->kind == ORR_VALUE_BOOL;
    if (a->is_list || a->doc.len || !a->name.len || a->name.len > NAME_MOST ||
        !(is_number || (is_text && a->value.s.len <= TEXT_MOST)))
        return false;
    uint8_t *p = orr_buf_reserve(b, ROOM);
    if (!p)
        return true; /* b->failed says it */
    /* After the tag stands the number, or the length of the text. */
    const size_t text_len = is_text ? a->value.s.len : 0;
    const uint64_t number = is_text ? text_len : a->value.u;
    const uint32_t tag = (ATTR_FIRST_MEMBER + 2 * ((uint32_t)a->kind - 1)) << 3 |
                         (is_text ? ORR_WIRE_LEN : ORR_WIRE_VARINT);
    const size_t len = 2 + a->name.len + orr_varint_size(tag) + orr_varint_size(number) + text_len;
    p = orr_varint_store(p, (uint64_t)field << 3 | ORR_WIRE_LEN);
    *p++ = (uint8_t)len;
    *p++ = ATTR_NAME << 3 | ORR_WIRE_LEN;
    *p++ = (uint8_t)a->name.len;
    memcpy(p, a->name.ptr, a->name.len);
    p = orr_varint_store(orr_varint_store(p + a->name.len, tag), number);
    if (text_len)
        memcpy(p, a->value.s.ptr, text_len);
    b->len = (size_t)(p + text_len - b->ptr);
    return true;
}

ORR_APART void put_any_attr(orr_buf *b, uint32_t field, const orr_attr *a)
{
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    put_text(b, ATTR_NAME, a->name);
    put_text(b, ATTR_DOC, a->doc);
    put_member(b, a);
    orr_put_end(b, begin);
}

void orr__encode_attr(orr_buf *b, uint32_t field, const orr_attr *a)
{
    if (!put_plain_attr(b, field, a))
        put_any_attr(b, field, a);
}

/* ---- nodes ----
 *
 * The fields that nearly all nodes have go where there is room for all of them: nothing is asked
 * field by field. */

enum { NUMBER_MOST = 10, FIELD_MOST = 1 + NUMBER_MOST }; /* bytes of a number; with its tag */

static inline uint8_t *store_nonzero(uint8_t *p, uint32_t field, uint64_t v)
{
    return v ? orr_varint_store(orr_varint_store(p, field << 3 | ORR_WIRE_VARINT), v) : p;
}

static inline uint8_t *store_text(uint8_t *p, uint32_t field, orr_str s)
{
    if (!s.len)
        return p;
    p = orr_varint_store(orr_varint_store(p, field << 3 | ORR_WIRE_LEN), s.len);
    memcpy(p, s.ptr, s.len);
    return p + s.len;
}

static inline uint8_t *store_ids(uint8_t *p, uint32_t field, const uint64_t *ids, size_t count)
{
    size_t len = 0;
    if (!count)
        return p;
    for (size_t i = 0; i < count; i++)
        len += orr_varint_size(ids[i]);
    p = orr_varint_store(orr_varint_store(p, field << 3 | ORR_WIRE_LEN), len);
    for (size_t i = 0; i < count; i++)
        p = orr_varint_store(p, ids[i]);
    return p;
}

void orr__encode_node(orr_buf *b, const orr_draft *d)
{
    const size_t ids = d->ctrl_count + d->data_count;
    uint8_t *p = orr_buf_reserve(b, 7 * FIELD_MOST + d->name.len + ids * NUMBER_MOST);
    if (!p)
        return; /* b->failed says it */
    p = store_nonzero(p, NODE_ID, d->id);
    p = store_text(p, NODE_NAME, d->name);
    p = store_nonzero(p, NODE_TYPE, d->type);
    p = store_ids(p, NODE_CTRL_DEPS, d->ctrl_deps, d->ctrl_count);
    p = store_ids(p, NODE_DATA_DEPS, d->data_deps, d->data_count);
    p = store_nonzero(p, NODE_START, d->start_us);
    p = store_nonzero(p, NODE_DURATION, d->duration_us);
    b->len = (size_t)(p - b->ptr);
    put_io(b, NODE_INPUTS, d->inputs);
    put_io(b, NODE_OUTPUTS, d->outputs);
    for (size_t i = 0; i < d->attr_count; i++)
        if (!put_plain_attr(b, NODE_ATTR, &d->attrs[i]))
            put_any_attr(b, NODE_ATTR, &d->attrs[i]);
    orr_buf_add(b, d->unknown.ptr, d->unknown.len);
}

void orr__encode_meta(orr_buf *b, const orr_meta *m)
{
    put_text(b, META_VERSION, m->version);
    for (size_t i = 0; i < m->attr_count; i++)
        orr__encode_attr(b, META_ATTR, &m->attrs[i]);
}

/* ---- copying with changes ---- */

static orr_str attr_name(orr_span message)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    orr_str name = {"", 0};
    while (orr_wire_next(&w, &f))
        if (f.number == ATTR_NAME && f.type == ORR_WIRE_LEN)
            name = (orr_str){(const char *)f.bytes.ptr, f.bytes.len};
    return name;
}

static bool is_replaced(const orr_edit *e, const orr_field *f)
{
    if (f->number == NODE_ID)
        return e->sets_id;
    if (f->number == NODE_CTRL_DEPS)
        return e->sets_ctrl_deps;
    if (f->number == NODE_DATA_DEPS)
        return e->sets_data_deps;
    if (f->number != NODE_ATTR || f->type != ORR_WIRE_LEN || e->attr_count == 0)
        return false;
    const orr_str name = attr_name(f->bytes);
    for (size_t i = 0; i < e->attr_count; i++)
        if (orr_str_equal(e->attrs[i].name, name))
            return true;
    return false;
}

/* New fields go where number order requires, so a copy of a canonical record stays canonical. */
static void put_due(orr_buf *b, const orr_edit *e, uint32_t after, uint32_t before)
{
    if (e->sets_id && after < NODE_ID && NODE_ID <= before)
        put_nonzero(b, NODE_ID, e->id);
    if (e->sets_ctrl_deps && after < NODE_CTRL_DEPS && NODE_CTRL_DEPS <= before)
        put_ids(b, NODE_CTRL_DEPS, e->ctrl_deps, e->ctrl_count);
    if (e->sets_data_deps && after < NODE_DATA_DEPS && NODE_DATA_DEPS <= before)
        put_ids(b, NODE_DATA_DEPS, e->data_deps, e->data_count);
    if (after <= NODE_ATTR && NODE_ATTR < before)
        for (size_t i = 0; i < e->attr_count; i++)
            if (e->attrs[i].kind != ORR_VALUE_NONE)
                orr__encode_attr(b, NODE_ATTR, &e->attrs[i]);
}

void orr__encode_copy(orr_buf *b, orr_span body, const orr_edit *e)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    uint32_t done = 0;
    while (e && orr_wire_next(&w, &f)) {
        if (f.number > done) {
            put_due(b, e, done, f.number);
            done = f.number;
        }
        if (!is_replaced(e, &f))
            orr_buf_add(b, f.start, (size_t)(w.at - f.start));
    }
    if (e)
        put_due(b, e, done, UINT32_MAX);
    else
        orr_buf_add(b, body.ptr, body.len);
}

/* ---- copying with shifted ids ---- */

static void put_shifted_deps(orr_buf *b, const orr_field *f, uint64_t shift)
{
    orr_put_tag(b, f->number, f->type);
    if (f->type == ORR_WIRE_VARINT) {
        orr_put_varint(b, f->value + shift);
        return;
    }
    const size_t begin = orr_put_begin(b);
    orr_wire w = orr_wire_of(f->bytes);
    uint64_t id;
    while (w.at < w.end && orr_wire_varint(&w, &id))
        orr_put_varint(b, id + shift);
    orr_put_end(b, begin);
}

/* An id of 0 is not written, so a shift may have to add or remove the field.  Only the first id of
 * a record may be removed: the last one counts, and one that is not in its usual first place comes
 * after the added one. */
void orr__encode_shifted(orr_buf *b, orr_span body, uint64_t shift)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    bool has_id = shift == 0;
    while (orr_wire_next(&w, &f)) {
        const bool is_id = f.number == NODE_ID && f.type == ORR_WIRE_VARINT;
        const bool is_dep = (f.number == NODE_CTRL_DEPS || f.number == NODE_DATA_DEPS) &&
                            (f.type == ORR_WIRE_VARINT || f.type == ORR_WIRE_LEN);
        if (is_id && has_id)
            orr_put_uint(b, NODE_ID, f.value + shift);
        else if (is_id)
            put_nonzero(b, NODE_ID, f.value + shift);
        else if (!has_id)
            put_nonzero(b, NODE_ID, shift);
        has_id = true;
        if (is_dep)
            put_shifted_deps(b, &f, shift);
        else if (!is_id)
            orr_buf_add(b, f.start, (size_t)(w.at - f.start));
    }
    if (!has_id)
        put_nonzero(b, NODE_ID, shift);
}
