/* SPDX-License-Identifier: Apache-2.0 */
/* et_decode.c - decodes one record of a trace.  Current schema; docs/format/et.md has the fields.
 *
 * A record is checked completely when its trace is read: every field, every attribute, every list
 * item, every text.  So the functions that decode records later (orr_attrs_next, orr_list_next) see
 * only valid bytes and cannot fail.  This is the hot path of reading: about thirty fields per
 * record. */
#include "trace/trace_impl.h"

static bool scan_bad(orr__scan *s, const uint8_t *at, const char *why)
{
    s->bad = at;
    s->why = why;
    return false;
}

static bool scan_wire_bad(orr__scan *s, const orr_wire *w)
{
    return scan_bad(s, w->at, w->why);
}

/* The wire type of a known field.  With a wrong one it is an unknown field to protobuf, and damage
 * to us. */
static bool has_type(orr__scan *s, const orr_field *f, uint32_t type, const char *why)
{
    if (f->type == type)
        return true;
    if (!s->is_lenient)
        scan_bad(s, f->start, why);
    return false;
}

static bool take_text(orr__scan *s, const orr_field *f, orr_str *out)
{
    if (!has_type(s, f, ORR_WIRE_LEN, "a text field does not hold text"))
        return s->is_lenient;
    if (!orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return scan_bad(s, orr_utf8_bad(f->bytes.ptr, f->bytes.len), "a text is not valid UTF-8");
    *out = (orr_str){(const char *)f->bytes.ptr, f->bytes.len};
    return true;
}

static bool take_uint(orr__scan *s, const orr_field *f, uint64_t *out)
{
    if (!has_type(s, f, ORR_WIRE_VARINT, "a number field does not hold a number"))
        return s->is_lenient;
    *out = f->value;
    return true;
}

static bool add_dep(uint64_t **list, size_t *count, size_t *room, uint64_t id)
{
    if (!orr_grow(list, room, *count + 1))
        return false;
    (*list)[(*count)++] = id;
    return true;
}

/* Repeated numbers may be packed or not; both are accepted. */
static bool take_deps(
    orr__scan *s, const orr_field *f, uint64_t **list, size_t *count, size_t *room)
{
    if (f->type == ORR_WIRE_VARINT)
        return add_dep(list, count, room, f->value) || scan_bad(s, f->start, NULL);
    if (!has_type(s, f, ORR_WIRE_LEN, "a dependency list does not hold numbers"))
        return s->is_lenient;
    orr_wire w = orr_wire_of(f->bytes);
    while (w.at < w.end) {
        uint64_t id;
        if (!orr_wire_varint(&w, &id))
            return scan_wire_bad(s, &w);
        if (!add_dep(list, count, room, id))
            return scan_bad(s, f->start, NULL);
    }
    return true;
}

static bool take_io(orr__scan *s, const orr_field *f, orr_io *io, bool *has_io)
{
    if (!has_type(s, f, ORR_WIRE_LEN, "inputs or outputs are not a message"))
        return s->is_lenient;
    *has_io = true;
    orr_wire w = orr_wire_of(f->bytes);
    orr_field g;
    while (orr_wire_next(&w, &g)) {
        orr_str *to = g.number == IO_VALUES   ? &io->values
                      : g.number == IO_SHAPES ? &io->shapes
                      : g.number == IO_TYPES  ? &io->types
                                              : NULL;
        if (to && !take_text(s, &g, to))
            return false;
    }
    return w.why ? scan_wire_bad(s, &w) : true;
}

/* ---- attributes ---- */

static orr_value_kind member_kind(uint32_t field)
{
    return (orr_value_kind)((field - ATTR_FIRST_MEMBER) / 2 + 1);
}

static orr_value value_of(orr_value_kind kind, uint64_t raw)
{
    orr_value v = {.u = raw};
    uint32_t low = (uint32_t)raw;
    float f;
    switch (kind) {
    case ORR_VALUE_DOUBLE:
        memcpy(&v.d, &raw, 8);
        break;
    case ORR_VALUE_FLOAT:
        memcpy(&f, &low, 4);
        v.d = (double)f;
        break;
    case ORR_VALUE_INT32:
    case ORR_VALUE_SFIXED32:
        v.i = (int32_t)low;
        break;
    case ORR_VALUE_UINT32:
        v.u = low;
        break;
    case ORR_VALUE_SINT32:
        v.i = (int32_t)orr_unzigzag(low);
        break;
    case ORR_VALUE_SINT64:
        v.i = orr_unzigzag(raw);
        break;
    case ORR_VALUE_BOOL:
        v.u = raw != 0;
        break;
    default:
        break;
    }
    return v;
}

static bool is_text_kind(orr_value_kind kind)
{
    return kind == ORR_VALUE_STRING || kind == ORR_VALUE_BYTES;
}

/* Packed items of a list. */
static bool check_packed(orr__scan *s, orr_span bytes, uint32_t type)
{
    if (type != ORR_WIRE_VARINT) {
        const size_t size = type == ORR_WIRE_I64 ? 8 : 4;
        return bytes.len % size == 0 || scan_bad(s, bytes.ptr, "a list ends inside a number");
    }
    orr_wire w = orr_wire_of(bytes);
    uint64_t v;
    while (w.at < w.end)
        if (!orr_wire_varint(&w, &v))
            return scan_wire_bad(s, &w);
    return true;
}

static bool check_list(orr__scan *s, orr_span message, orr_value_kind kind)
{
    const uint32_t type = orr__kind_wire_type(kind);
    orr_wire w = orr_wire_of(message);
    orr_field f;
    orr_str ignored;
    while (orr_wire_next(&w, &f)) {
        if (f.number != LIST_VALUES)
            continue;
        if (kind == ORR_VALUE_STRING && !take_text(s, &f, &ignored))
            return false;
        if (!is_text_kind(kind) && f.type == ORR_WIRE_LEN) {
            if (!check_packed(s, f.bytes, type))
                return false;
        } else if (f.type != type && !s->is_lenient) {
            return scan_bad(s, f.start, "a list item has the wrong type");
        }
    }
    return w.why ? scan_wire_bad(s, &w) : true;
}

/* Length first: most names differ in it. */
static int find_key(orr_str n)
{
#define IS(text) (memcmp(n.ptr, text, sizeof text - 1) == 0)
    switch (n.len) {
    case 6:
        return IS("stream") ? ORR__ATTR_STREAM : -1;
    case 7:
        return IS("num_ops") ? ORR__ATTR_NUM_OPS : IS("pg_name") ? ORR__ATTR_PG_NAME : -1;
    case 8:
        return IS("comm_src")   ? ORR__ATTR_COMM_SRC
               : IS("comm_dst") ? ORR__ATTR_COMM_DST
               : IS("comm_tag") ? ORR__ATTR_COMM_TAG
                                : -1;
    case 9:
        return IS("is_cpu_op")   ? ORR__ATTR_IS_CPU_OP
               : IS("comm_size") ? ORR__ATTR_COMM_SIZE
               : IS("comm_type") ? ORR__ATTR_COMM_TYPE
                                 : -1;
    case 10:
        return IS("tensor_loc") ? ORR__ATTR_TENSOR_LOC : -1;
    case 11:
        return IS("tensor_size") ? ORR__ATTR_TENSOR_SIZE : -1;
    case 13:
        return IS("comm_priority") ? ORR__ATTR_COMM_PRIORITY : -1;
    default:
        return -1;
    }
#undef IS
}

static bool int_of(orr_value_kind kind, uint64_t raw, int64_t *out)
{
    if (kind < ORR_VALUE_INT32 || kind > ORR_VALUE_BOOL)
        return false;
    const orr_value v = value_of(kind, raw);
    const bool is_unsigned = kind == ORR_VALUE_UINT64 || kind == ORR_VALUE_FIXED64;
    *out = is_unsigned && v.u > INT64_MAX ? INT64_MAX : v.i;
    return true;
}

/* The first attribute of a name counts. */
static void note_known(orr__scan *s, int key, uint32_t member, const orr_field *value)
{
    if (key < 0 || s->present >> key & 1 || (member & 1) == 0)
        return;
    const orr_value_kind kind = member_kind(member);
    if (key == ORR__ATTR_PG_NAME) {
        if (kind != ORR_VALUE_STRING)
            return;
        s->pg_name = (orr_str){(const char *)value->bytes.ptr, value->bytes.len};
    } else if (!int_of(kind, value->value, &s->known[key])) {
        return;
    }
    s->present |= 1u << key;
}

static bool check_member(orr__scan *s, const orr_field *f)
{
    const orr_value_kind kind = member_kind(f->number);
    const bool is_list = (f->number & 1) == 0;
    const uint32_t wanted = is_list ? (uint32_t)ORR_WIRE_LEN : orr__kind_wire_type(kind);
    if (!has_type(s, f, wanted, "an attribute's value has the wrong wire type"))
        return false;
    if (is_list)
        return check_list(s, f->bytes, kind);
    if (kind == ORR_VALUE_STRING && !orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return scan_bad(s, orr_utf8_bad(f->bytes.ptr, f->bytes.len), "a text is not valid UTF-8");
    return true;
}

/* A varint value up to the end of its attribute; returns its member, or 0: it is something else. */
static uint32_t plain_number(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
    uint32_t tag = *p++;
    if (tag >= 0x80) {
        if (p == end || *p >= 0x80)
            return 0;
        tag = (tag & 0x7f) | (uint32_t)*p++ << 7;
    }
    const uint32_t member = tag >> 3;
    const uint64_t numbers =
        1u << 7 | 1u << 9 | 1u << 11 | 1u << 13 | 1u << 15 | 1u << 17 | 1u << 27;
    if ((tag & 7) != ORR_WIRE_VARINT || member > ATTR_LAST_MEMBER || !(numbers >> member & 1))
        return 0;
    uint64_t value = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        const uint64_t b = *p++;
        value |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *out = value;
            return p == end ? member : 0;
        }
    }
    return 0;
}

/* Nearly every attribute is a short name and one value, in this order.  False: it is not, or it is
 * invalid; the general code below decides. */
static inline bool scan_plain_attr(orr__scan *s, orr_span message)
{
    const uint8_t *p = message.ptr;
    if (message.len < 4 || p[0] != (ATTR_NAME << 3 | ORR_WIRE_LEN) || p[1] >= 0x80 ||
        message.len <= 2u + p[1])
        return false;
    const orr_str name = {(const char *)p + 2, p[1]};
    const int key = find_key(name);
    orr_wire w = {p + 2 + p[1], p + message.len, NULL};
    orr_field f;
    const uint32_t member = key >= 0 ? plain_number(w.at, w.end, &f.value) : 0;
    if (member) {
        note_known(s, key, member, &f);
        return true;
    }
    if ((key < 0 && !orr_is_utf8(p + 2, name.len)) || !orr_wire_next(&w, &f) || w.at != w.end ||
        f.number < ATTR_FIRST_MEMBER || f.number > ATTR_LAST_MEMBER || !check_member(s, &f)) {
        s->why = NULL;
        return false;
    }
    note_known(s, key, f.number, &f);
    return true;
}

bool orr__scan_attr(orr__scan *s, orr_span message)
{
    if (scan_plain_attr(s, message))
        return true;
    orr_wire w = orr_wire_of(message);
    orr_field f, value = {0};
    orr_str name = {"", 0}, doc;
    uint32_t member = 0;
    while (orr_wire_next(&w, &f)) {
        if (f.number == ATTR_NAME) {
            if (!take_text(s, &f, &name))
                return false;
        } else if (f.number == ATTR_DOC) {
            if (!take_text(s, &f, &doc))
                return false;
        } else if (f.number <= ATTR_LAST_MEMBER) {
            if (check_member(s, &f)) {
                member = f.number; /* the last member of the oneof wins */
                value = f;
            } else if (s->why || !s->is_lenient) {
                return false;
            }
        }
    }
    if (w.why)
        return scan_wire_bad(s, &w);
    if (member)
        note_known(s, find_key(name), member, &value);
    return true;
}

/* ---- records ---- */

static bool take_type(orr__scan *s, const orr_field *f)
{
    uint64_t v = s->node.type;
    if (!take_uint(s, f, &v))
        return false;
    s->node.type = (uint32_t)v;
    if (s->node.type >= ORR_NODE_TYPE_COUNT && !s->is_lenient)
        return scan_bad(s, f->start, "the node type is not one this schema has");
    return true;
}

static bool take_field(orr__scan *s, const orr_field *f)
{
    switch (f->number) {
    case NODE_ID:
        return take_uint(s, f, &s->node.id);
    case NODE_NAME:
        s->repeats_name |= s->has_name;
        s->has_name = true;
        return take_text(s, f, &s->node.name);
    case NODE_TYPE:
        return take_type(s, f);
    case NODE_CTRL_DEPS:
        return take_deps(s, f, &s->ctrl, &s->ctrl_count, &s->ctrl_room);
    case NODE_DATA_DEPS:
        return take_deps(s, f, &s->data, &s->data_count, &s->data_room);
    case NODE_START:
        return take_uint(s, f, &s->node.start_us);
    case NODE_DURATION:
        return take_uint(s, f, &s->node.duration_us);
    case NODE_INPUTS:
        return take_io(s, f, &s->node.inputs, &s->node.has_inputs);
    case NODE_OUTPUTS:
        return take_io(s, f, &s->node.outputs, &s->node.has_outputs);
    case NODE_ATTR:
        if (!has_type(s, f, ORR_WIRE_LEN, "an attribute is not a message"))
            return s->is_lenient;
        return orr__scan_attr(s, f->bytes);
    default:
        return true; /* preserved in the record, see orr_trace_copy */
    }
}

/* Copied as a whole: building one on the stack each time takes a quarter of the time of reading a
 * file. */
#define NO_TEXT \
    {           \
        "", 0   \
    }
static const orr_node empty_node = {
    .name = NO_TEXT, .inputs = {NO_TEXT, NO_TEXT, NO_TEXT}, .outputs = {NO_TEXT, NO_TEXT, NO_TEXT}};

static void scan_reset(orr__scan *s, orr_span body)
{
    s->node = empty_node;
    s->node.body = body;
    s->data_count = s->ctrl_count = 0;
    s->present = 0;
    s->has_name = s->repeats_name = false;
    s->why = NULL;
}

/* A varint of at most five bytes; NULL: it is longer.  p has that many. */
static const uint8_t *short_number(const uint8_t *p, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        const uint64_t b = *p++;
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return p;
        }
    }
    return NULL;
}

/* The usual record: an id, a name and a type, dependencies, a duration, attributes.  It goes as far
 * as everything is short and valid; the general loop over fields takes the rest, which may be
 * everything.  False: s->why. */
static bool scan_usual(orr__scan *s, orr_wire *w)
{
    enum {
        ID = NODE_ID << 3,
        NAME = NODE_NAME << 3 | ORR_WIRE_LEN,
        TYPE = NODE_TYPE << 3,
        DATA = NODE_DATA_DEPS << 3 | ORR_WIRE_LEN,
        DURATION = NODE_DURATION << 3,
        ATTR = NODE_ATTR << 3 | ORR_WIRE_LEN,
        ROOM = 8 /* of a tag and a short number, or a tag, a length and more */
    };
    const uint8_t *p = w->at;
    for (; w->end - p >= ROOM; w->at = p) {
        const uint8_t tag = p[0];
        if (tag == ATTR) {
            if (p[1] >= 0x80 || w->end - p < p[1] + 2 ||
                !scan_plain_attr(s, (orr_span){p + 2, p[1]}))
                return true;
            p += 2 + p[1];
        } else if (tag == ID || tag == DURATION) {
            p = short_number(p + 1, tag == ID ? &s->node.id : &s->node.duration_us);
            if (!p)
                return true;
        } else if (tag == NAME) {
            if (p[1] >= 0x80 || w->end - p < p[1] + 2 || s->has_name || !orr_is_utf8(p + 2, p[1]))
                return true;
            s->node.name = (orr_str){(const char *)p + 2, p[1]};
            s->has_name = true;
            p += 2 + p[1];
        } else if (tag == DATA) {
            const orr_field f = {.type = ORR_WIRE_LEN, .bytes = {p + 2, p[1]}};
            if (p[1] >= 0x80 || w->end - p < p[1] + 2)
                return true;
            if (!take_deps(s, &f, &s->data, &s->data_count, &s->data_room))
                return false;
            p += 2 + p[1];
        } else if (tag == TYPE) {
            if (p[1] >= ORR_NODE_TYPE_COUNT)
                return true;
            s->node.type = p[1];
            p += 2;
        } else {
            return true;
        }
    }
    return true;
}

bool orr__scan_node(orr__scan *s, orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    scan_reset(s, body);
    if (!scan_usual(s, &w))
        return false;
    while (orr_wire_next(&w, &f))
        if (!take_field(s, &f))
            return false;
    return w.why ? scan_wire_bad(s, &w) : true;
}

/* ---- drafts, before encoding ---- */

static bool is_text(orr_str text)
{
    return orr_is_utf8((const uint8_t *)text.ptr, text.len);
}

/* One value of a kind whose bits are the same in memory and in the record. */
static bool scan_draft_attr(orr__scan *s, const orr_attr *a)
{
    const bool is_number =
        a->kind == ORR_VALUE_INT64 || a->kind == ORR_VALUE_UINT64 || a->kind == ORR_VALUE_BOOL;
    const bool is_string = a->kind == ORR_VALUE_STRING;
    if (a->is_list || a->doc.len || !(is_number || is_string))
        return false;
    const int key = find_key(a->name);
    if ((key < 0 && !is_text(a->name)) || (is_string && !is_text(a->value.s)))
        return false;
    if (key < 0)
        return true; /* not one that a trace has a column for */
    orr_field f = {.value = is_number ? a->value.u : 0};
    if (is_string)
        f.bytes = (orr_span){(const uint8_t *)a->value.s.ptr, a->value.s.len};
    note_known(s, key, ATTR_FIRST_MEMBER + 2 * ((uint32_t)a->kind - 1), &f);
    return true;
}

static bool copy_deps(const uint64_t *from, size_t n, uint64_t **list, size_t *count, size_t *room)
{
    if (!orr_grow(list, room, n))
        return false;
    if (n)
        memcpy(*list, from, n * sizeof *from);
    *count = n;
    return true;
}

bool orr__scan_draft(orr__scan *s, const orr_draft *d)
{
    scan_reset(s, (orr_span){NULL, 0});
    if (d->type >= ORR_NODE_TYPE_COUNT || d->inputs || d->outputs || d->unknown.len ||
        !is_text(d->name))
        return false;
    for (size_t i = 0; i < d->attr_count; i++) {
        if (!scan_draft_attr(s, &d->attrs[i]))
            return false;
    }
    s->node.id = d->id;
    s->node.name = d->name;
    s->node.type = d->type;
    s->node.start_us = d->start_us;
    s->node.duration_us = d->duration_us;
    return true;
}

bool orr__scan_draft_deps(orr__scan *s, const orr_draft *d)
{
    return copy_deps(d->data_deps, d->data_count, &s->data, &s->data_count, &s->data_room) &&
           copy_deps(d->ctrl_deps, d->ctrl_count, &s->ctrl, &s->ctrl_count, &s->ctrl_room);
}

bool orr__scan_meta(orr__scan *s, orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    orr_str version;
    scan_reset(s, body);
    while (orr_wire_next(&w, &f)) {
        if (f.number == META_VERSION && !take_text(s, &f, &version))
            return false;
        if (f.number != META_ATTR)
            continue;
        if (!has_type(s, &f, ORR_WIRE_LEN, "a metadata attribute is not a message")) {
            if (!s->is_lenient)
                return false;
        } else if (!orr__scan_attr(s, f.bytes)) {
            return false;
        }
    }
    return w.why ? scan_wire_bad(s, &w) : true;
}

void orr__scan_fini(orr__scan *s)
{
    orr_free(s->data);
    orr_free(s->ctrl);
    s->data = s->ctrl = NULL;
    s->data_room = s->ctrl_room = 0;
}

/* ---- reading checked records ---- */

static orr_str text_of(orr_span s)
{
    return (orr_str){(const char *)s.ptr, s.len};
}

static bool is_member(const orr_field *f)
{
    if (f->number < ATTR_FIRST_MEMBER || f->number > ATTR_LAST_MEMBER)
        return false;
    return f->type ==
           ((f->number & 1) ? orr__kind_wire_type(member_kind(f->number)) : (uint32_t)ORR_WIRE_LEN);
}

static void decode_attr(orr_span message, orr_attr *out)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    *out = (orr_attr){.name = {"", 0}, .doc = {"", 0}};
    while (orr_wire_next(&w, &f)) {
        if (f.number == ATTR_NAME && f.type == ORR_WIRE_LEN) {
            out->name = text_of(f.bytes);
        } else if (f.number == ATTR_DOC && f.type == ORR_WIRE_LEN) {
            out->doc = text_of(f.bytes);
        } else if (is_member(&f)) {
            out->kind = member_kind(f.number);
            out->is_list = (f.number & 1) == 0;
            if (out->is_list)
                out->list = f.bytes;
            else if (is_text_kind(out->kind))
                out->value.s = text_of(f.bytes);
            else
                out->value = value_of(out->kind, f.value);
        }
    }
}

static void decode_io(orr_span message, orr_io *io)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (f.type != ORR_WIRE_LEN)
            continue;
        if (f.number == IO_VALUES)
            io->values = text_of(f.bytes);
        else if (f.number == IO_SHAPES)
            io->shapes = text_of(f.bytes);
        else if (f.number == IO_TYPES)
            io->types = text_of(f.bytes);
    }
}

static void decode_message_field(const orr_field *f, orr_node *out)
{
    if (f->number == NODE_NAME) {
        out->name = text_of(f->bytes);
    } else if (f->number == NODE_INPUTS) {
        out->has_inputs = true;
        decode_io(f->bytes, &out->inputs);
    } else if (f->number == NODE_OUTPUTS) {
        out->has_outputs = true;
        decode_io(f->bytes, &out->outputs);
    }
}

static void decode_number_field(const orr_field *f, orr_node *out)
{
    if (f->number == NODE_ID)
        out->id = f->value;
    else if (f->number == NODE_TYPE)
        out->type = (uint32_t)f->value;
    else if (f->number == NODE_START)
        out->start_us = f->value;
    else if (f->number == NODE_DURATION)
        out->duration_us = f->value;
}

void orr__node_decode(orr_span body, orr_node *out)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    *out = empty_node;
    out->body = body;
    while (orr_wire_next(&w, &f)) {
        if (f.type == ORR_WIRE_LEN)
            decode_message_field(&f, out);
        else if (f.type == ORR_WIRE_VARINT)
            decode_number_field(&f, out);
    }
}

bool orr_attrs_next(orr_attrs *it, orr_attr *out)
{
    orr_wire w = {it->at, it->end, NULL};
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (f.number != it->field || f.type != ORR_WIRE_LEN)
            continue;
        it->at = w.at;
        decode_attr(f.bytes, out);
        return true;
    }
    it->at = it->end;
    return false;
}

orr_attrs orr_node_attrs(const orr_node *node)
{
    return (orr_attrs){node->body.ptr, node->body.ptr + node->body.len, NODE_ATTR};
}

/* Does an attribute have another name?  Nearly all begin with their name and hold no byte that
 * could be the tag of a second one, so most need no decoding. */
static bool has_other_name(orr_span attr, const char *name, size_t len)
{
    const uint8_t *p = attr.ptr;
    if (attr.len < 2 || p[0] != (ATTR_NAME << 3 | ORR_WIRE_LEN) || p[1] >= 0x80)
        return false;
    const size_t rest = attr.len - 2, n = p[1];
    if (rest < n || (n == len && memcmp(p + 2, name, n) == 0))
        return false;
    return rest == n || !memchr(p + 2 + n, p[0], rest - n);
}

bool orr_node_attr(const orr_node *node, const char *name, orr_attr *out)
{
    orr_wire w = orr_wire_of(node->body);
    orr_field f;
    const size_t len = strlen(name);
    while (orr_wire_next(&w, &f)) {
        if (f.number != NODE_ATTR || f.type != ORR_WIRE_LEN || has_other_name(f.bytes, name, len))
            continue;
        decode_attr(f.bytes, out);
        if (out->name.len == len && memcmp(out->name.ptr, name, len) == 0)
            return true;
    }
    return false;
}

orr_list orr_attr_items(const orr_attr *attr)
{
    const orr_span none = {(const uint8_t *)"", 0};
    const orr_span s = attr->is_list && attr->list.len ? attr->list : none;
    return (orr_list){.at = s.ptr, .end = s.ptr + s.len, .field = LIST_VALUES, .kind = attr->kind};
}

static orr_list node_deps(const orr_node *node, uint32_t field)
{
    const orr_span s = node->body;
    return (orr_list){.at = s.ptr, .end = s.ptr + s.len, .field = field, .kind = ORR_VALUE_UINT64};
}

orr_list orr_node_data_deps(const orr_node *node)
{
    return node_deps(node, NODE_DATA_DEPS);
}

orr_list orr_node_ctrl_deps(const orr_node *node)
{
    return node_deps(node, NODE_CTRL_DEPS);
}

static bool next_packed(orr_list *it, orr_value *out)
{
    orr_wire w = {it->packed_at, it->packed_end, NULL};
    const uint32_t type = orr__kind_wire_type(it->kind);
    uint64_t raw = 0;
    const bool got = type == ORR_WIRE_VARINT
                         ? orr_wire_varint(&w, &raw)
                         : orr_wire_fixed(&w, type == ORR_WIRE_I64 ? 8 : 4, &raw);
    it->packed_at = got ? w.at : it->packed_end;
    *out = value_of(it->kind, raw);
    return got;
}

bool orr_list_next(orr_list *it, orr_value *out)
{
    orr_field f;
    for (;;) {
        if (it->packed_at != it->packed_end)
            return next_packed(it, out);
        orr_wire w = {it->at, it->end, NULL};
        if (!orr_wire_next(&w, &f))
            return false;
        it->at = w.at;
        if (f.number != it->field)
            continue;
        if (f.type == ORR_WIRE_LEN && !is_text_kind(it->kind)) {
            it->packed_at = f.bytes.ptr;
            it->packed_end = f.bytes.ptr + f.bytes.len;
        } else if (f.type == orr__kind_wire_type(it->kind)) {
            if (is_text_kind(it->kind))
                out->s = text_of(f.bytes);
            else
                *out = value_of(it->kind, f.value);
            return true;
        }
    }
}

bool orr_attr_int(const orr_attr *a, int64_t *out)
{
    if (a->is_list || a->kind < ORR_VALUE_INT32 || a->kind > ORR_VALUE_BOOL)
        return false;
    const bool is_unsigned = a->kind == ORR_VALUE_UINT64 || a->kind == ORR_VALUE_FIXED64;
    *out = is_unsigned && a->value.u > INT64_MAX ? INT64_MAX : a->value.i;
    return true;
}

const char *orr_value_member(orr_value_kind kind, bool is_list)
{
    static const char *const names[ORR_VALUE_KIND_COUNT][2] = {
        {"none", "none"},
        {"double_val", "double_list"},
        {"float_val", "float_list"},
        {"int32_val", "int32_list"},
        {"int64_val", "int64_list"},
        {"uint32_val", "uint32_list"},
        {"uint64_val", "uint64_list"},
        {"sint32_val", "sint32_list"},
        {"sint64_val", "sint64_list"},
        {"fixed32_val", "fixed32_list"},
        {"fixed64_val", "fixed64_list"},
        {"sfixed32_val", "sfixed32_list"},
        {"sfixed64_val", "sfixed64_list"},
        {"bool_val", "bool_list"},
        {"string_val", "string_list"},
        {"bytes_val", "bytes_list"},
    };
    return kind < ORR_VALUE_KIND_COUNT ? names[kind][is_list] : NULL;
}
