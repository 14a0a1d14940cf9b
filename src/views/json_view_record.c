/* SPDX-License-Identifier: Apache-2.0 */
/* json_view_record.c - one record, from its bytes to text, without a tree in between.
 *
 * Records were checked when the trace was read, so walking them cannot fail.  What protobuf allows and no
 * writer does (fields in any order, lists in pieces, a value twice) is honoured: each message is surveyed
 * first, which takes its single values and notes where the occurrences of its repeated fields begin and end;
 * then its members are written in the order of their numbers.  In records as the reference writes them these
 * stretches hold nothing else, so that every byte is looked at twice and no more. */
#include "json_view_impl.h"

/* Where the occurrences of a field begin and end in its message; from NULL: there are none. */
typedef struct range {
    const uint8_t *from, *to;
} range;

static inline void extend(range *r, const orr_field *f, const orr_wire *w)
{
    if (!r->from)
        r->from = f->start;
    r->to = w->at;
}

static inline orr_wire wire_of(range r)
{
    return (orr_wire){r.from, r.to, NULL};
}

static inline bool next_numbered(orr_wire *w, orr_field *f, uint32_t number)
{
    while (orr_wire_next(w, f))
        if (f->number == number)
            return true;
    return false;
}

static inline bool is_varint(const orr_field *f)
{
    return f->type == ORR_WIRE_VARINT;
}

static inline bool is_len(const orr_field *f)
{
    return f->type == ORR_WIRE_LEN;
}

/* ---- fields that the schema does not have ---- */

typedef bool known_test(const orr_field *f, uint32_t detail);

static void gather_unknown(orr__show *v, orr_span message, known_test *is_known, uint32_t detail)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (!is_known(&f, detail))
            orr_buf_add(&v->unknown, f.start, (size_t)(w.at - f.start));
}

static uint8_t *put_unknown(orr__show *v, uint8_t *p, const orr__lead *l, char *open)
{
    if (v->keeps_unknown) {
        p = orr__show_lead(v, p, l, open);
        p = orr__show_base64(v, p, (orr_span){v->unknown.ptr, v->unknown.len});
    }
    v->unknown.len = 0;
    return p;
}

/* ---- values ---- */

static uint32_t wire_type_of(orr_value_kind kind)
{
    static const uint8_t types[ORR_VALUE_KIND_COUNT] = {
        [ORR_VALUE_DOUBLE] = ORR_WIRE_I64,   [ORR_VALUE_FLOAT] = ORR_WIRE_I32,
        [ORR_VALUE_FIXED32] = ORR_WIRE_I32,  [ORR_VALUE_FIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_SFIXED32] = ORR_WIRE_I32, [ORR_VALUE_SFIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_STRING] = ORR_WIRE_LEN,   [ORR_VALUE_BYTES] = ORR_WIRE_LEN,
    };
    return types[kind]; /* all others: ORR_WIRE_VARINT == 0 */
}

static uint8_t *put_quoted_i64(uint8_t *p, int64_t v)
{
    *p++ = '"';
    p = orr__show_i64(p, v);
    *p++ = '"';
    return p;
}

static uint8_t *put_number(uint8_t *p, orr_value_kind kind, uint64_t raw)
{
    const uint32_t low = (uint32_t)raw;
    switch (kind) {
    case ORR_VALUE_DOUBLE:
        return orr__show_double(p, raw);
    case ORR_VALUE_FLOAT:
        return orr__show_float(p, low);
    case ORR_VALUE_INT32:
    case ORR_VALUE_SFIXED32:
        return orr__show_i64(p, (int32_t)low);
    case ORR_VALUE_SINT32:
        return orr__show_i64(p, (int32_t)orr_unzigzag(low));
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        return orr__show_u64(p, low);
    case ORR_VALUE_INT64:
    case ORR_VALUE_SFIXED64:
        return put_quoted_i64(p, (int64_t)raw);
    case ORR_VALUE_SINT64:
        return put_quoted_i64(p, orr_unzigzag(raw));
    case ORR_VALUE_BOOL:
        return orr__show_word(p, raw ? "true" : "false");
    default:
        return orr__show_quoted(p, raw);
    }
}

static uint8_t *put_value(const orr__show *v, uint8_t *p, orr_value_kind kind, const orr_field *f)
{
    if (kind == ORR_VALUE_STRING)
        return orr__show_text(v, p, f->bytes);
    if (kind == ORR_VALUE_BYTES)
        return orr__show_base64(v, p, f->bytes);
    return put_number(p, kind, f->value);
}

static inline uint8_t *put_text_member(
    const orr__show *v, uint8_t *p, orr_span s, const orr__lead *l, char *open)
{
    if (s.len == 0)
        return p;
    p = orr__show_lead(v, p, l, open);
    return orr__show_text(v, p, s);
}

static inline uint8_t *put_u64_member(
    const orr__show *v, uint8_t *p, uint64_t value, const orr__lead *l, char *open)
{
    if (value == 0)
        return p;
    p = orr__show_lead(v, p, l, open);
    return orr__show_quoted(p, value);
}

/* ---- arrays ---- */

/* One that is being written; without items it does not appear at all. */
typedef struct array {
    const orr__lead *key, *item, *end;
    char *open; /* of the object around it */
    char next;  /* '[' in front of the first item, ',' in front of the others */
} array;

static inline uint8_t *begin_item(const orr__show *v, uint8_t *p, array *a)
{
    if (a->next == '[')
        p = orr__show_lead(v, p, a->key, a->open);
    return orr__show_lead(v, p, a->item, &a->next);
}

static inline uint8_t *end_array(const orr__show *v, uint8_t *p, const array *a)
{
    return a->next == '[' ? p : orr__show_end(v, p, a->end, ',', ']');
}

/* ---- list attributes ---- */

static uint8_t *put_packed(
    const orr__show *v, uint8_t *p, array *a, orr_span packed, orr_value_kind kind)
{
    orr_wire w = orr_wire_of(packed);
    orr_field f = {.type = wire_type_of(kind)};
    while (w.at < w.end && orr_wire_value(&w, &f)) {
        p = begin_item(v, p, a);
        p = put_number(p, kind, f.value);
    }
    return p;
}

static bool is_list_field(const orr_field *f, uint32_t kind)
{
    return f->number == LIST_VALUES && (is_len(f) || f->type == wire_type_of((orr_value_kind)kind));
}

static uint8_t *put_list_items(
    orr__show *v, uint8_t *p, array *a, orr_span list, orr_value_kind kind)
{
    const bool is_packable = wire_type_of(kind) != ORR_WIRE_LEN;
    orr_wire w = orr_wire_of(list);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (!is_list_field(&f, kind))
            continue;
        if (is_len(&f) && is_packable) {
            p = put_packed(v, p, a, f.bytes, kind);
            continue;
        }
        p = begin_item(v, p, a);
        p = put_value(v, p, kind, &f);
    }
    return p;
}

/* All occurrences of the member in `pieces` are one list. */
static uint8_t *put_list(
    orr__show *v, uint8_t *p, range pieces, uint32_t member, orr_value_kind kind)
{
    char open = '{';
    array a = {&v->lay->values, &v->lay->list_item, &v->lay->end_values, &open, '['};
    orr_field f;
    orr_wire w = wire_of(pieces);
    while (next_numbered(&w, &f, member))
        p = put_list_items(v, p, &a, f.bytes, kind);
    p = end_array(v, p, &a);
    w = wire_of(pieces);
    while (next_numbered(&w, &f, member))
        gather_unknown(v, f.bytes, is_list_field, kind);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->list_unknown, &open);
    return orr__show_end(v, p, &v->lay->end_list, open, '}');
}

/* ---- attributes ---- */

typedef struct attr_survey {
    orr_span name, doc;
    orr_field value; /* the last member counts */
    range pieces;    /* of a list: what is merged */
    bool has_unknown;
} attr_survey;

static inline bool is_list_member(uint32_t number)
{
    return (number & 1) == 0;
}

static inline orr_value_kind kind_of(uint32_t number)
{
    return (orr_value_kind)((number - ATTR_FIRST_MEMBER) / 2 + 1);
}

static inline bool is_attr_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    if (f->number < ATTR_FIRST_MEMBER)
        return is_len(f);
    if (f->number > ATTR_LAST_MEMBER)
        return false;
    return is_list_member(f->number) ? is_len(f) : f->type == wire_type_of(kind_of(f->number));
}

static inline void survey_attr(orr_span message, attr_survey *s)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (!is_attr_field(&f, 0)) {
            s->has_unknown = true;
        } else if (f.number == ATTR_NAME) {
            s->name = f.bytes;
        } else if (f.number == ATTR_DOC) {
            s->doc = f.bytes;
        } else {
            if (s->value.number != f.number)
                s->pieces.from = NULL;
            s->value = f;
            extend(&s->pieces, &f, &w);
        }
    }
}

static uint8_t *put_attr(orr__show *v, uint8_t *p, orr_span message)
{
    attr_survey s = {.has_unknown = false};
    char open = '{';
    survey_attr(message, &s);
    p = put_text_member(v, p, s.name, &v->lay->attr_name, &open);
    p = put_text_member(v, p, s.doc, &v->lay->doc, &open);
    const uint32_t member = s.value.number;
    if (member) {
        p = orr__show_lead(v, p, &v->lay->member[member], &open);
        p = is_list_member(member) ? put_list(v, p, s.pieces, member, kind_of(member))
                                   : put_value(v, p, kind_of(member), &s.value);
    }
    if (s.has_unknown) {
        gather_unknown(v, message, is_attr_field, 0);
        p = put_unknown(v, p, &v->lay->attr_unknown, &open);
    }
    return orr__show_end(v, p, &v->lay->end_attr, open, '}');
}

static uint8_t *put_attrs(
    orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    array a = {key, &v->lay->part_item, &v->lay->end_part, open, '['};
    orr_wire w = wire_of(r);
    orr_field f;
    while (next_numbered(&w, &f, number)) {
        if (!is_len(&f))
            continue;
        p = begin_item(v, p, &a);
        p = put_attr(v, p, f.bytes);
    }
    return end_array(v, p, &a);
}

/* ---- inputs and outputs ---- */

static bool is_io_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    return f->number <= IO_TYPES && is_len(f);
}

static void survey_io(orr__show *v, orr_span message, orr_span part[IO_TYPES + 1])
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (is_io_field(&f, 0))
            part[f.number] = f.bytes;
    gather_unknown(v, message, is_io_field, 0);
}

/* Several in one record are one, as protobuf merges messages. */
static uint8_t *put_io(
    orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    orr_span part[IO_TYPES + 1] = {{NULL, 0}};
    orr_wire w = wire_of(r);
    orr_field f;
    char inner = '{';
    if (!r.from)
        return p;
    while (next_numbered(&w, &f, number))
        if (is_len(&f))
            survey_io(v, f.bytes, part);
    p = orr__show_lead(v, p, key, open);
    for (uint32_t i = IO_VALUES; i <= IO_TYPES; i++)
        p = put_text_member(v, p, part[i], &v->lay->io[i], &inner);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->io_unknown, &inner);
    return orr__show_end(v, p, &v->lay->end_part, inner, '}');
}

/* ---- nodes ---- */

typedef struct node_survey {
    uint64_t id, start, duration;
    uint32_t type;
    orr_span name;
    range ctrl, data, inputs, outputs, attr;
    bool has_unknown;
} node_survey;

static inline bool is_node_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    switch (f->number) {
    case NODE_ID:
    case NODE_TYPE:
    case NODE_START:
    case NODE_DURATION:
        return is_varint(f);
    case NODE_CTRL_DEPS:
    case NODE_DATA_DEPS:
        return is_varint(f) || is_len(f);
    case NODE_NAME:
    case NODE_INPUTS:
    case NODE_OUTPUTS:
    case NODE_ATTR:
        return is_len(f);
    default:
        return false;
    }
}

static inline void survey_field(node_survey *s, const orr_field *f, const orr_wire *w)
{
    switch (f->number) {
    case NODE_ID:
        s->id = f->value;
        break;
    case NODE_NAME:
        s->name = f->bytes;
        break;
    case NODE_TYPE:
        s->type = (uint32_t)f->value;
        break;
    case NODE_CTRL_DEPS:
        extend(&s->ctrl, f, w);
        break;
    case NODE_DATA_DEPS:
        extend(&s->data, f, w);
        break;
    case NODE_START:
        s->start = f->value;
        break;
    case NODE_DURATION:
        s->duration = f->value;
        break;
    case NODE_INPUTS:
        extend(&s->inputs, f, w);
        break;
    case NODE_OUTPUTS:
        extend(&s->outputs, f, w);
        break;
    default:
        extend(&s->attr, f, w);
        break;
    }
}

static inline void survey_node(orr_span body, node_survey *s)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (is_node_field(&f, 0))
            survey_field(s, &f, &w);
        else
            s->has_unknown = true;
    }
}

static inline uint8_t *put_type(const orr__show *v, uint8_t *p, uint32_t type, char *open)
{
    const uint32_t last = v->names_all_types ? ORR_NODE_TYPE_COUNT - 1 : ORR_NODE_COMM_COLL;
    if (type == 0)
        return p;
    p = orr__show_lead(v, p, &v->lay->type, open);
    if (type > last)
        return orr__show_i64(p, (int32_t)type);
    *p++ = '"';
    p = orr__show_word(p, orr_node_type_name(type));
    *p++ = '"';
    return p;
}

static inline uint8_t *put_dep(const orr__show *v, uint8_t *p, array *a, uint64_t id)
{
    p = begin_item(v, p, a);
    return orr__show_quoted(p, id + v->shift);
}

static inline uint8_t *put_deps(
    const orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    array a = {key, &v->lay->part_item, &v->lay->end_part, open, '['};
    orr_wire w = wire_of(r);
    orr_field f;
    uint64_t id;
    while (next_numbered(&w, &f, number)) {
        if (is_varint(&f))
            p = put_dep(v, p, &a, f.value);
        if (!is_len(&f))
            continue;
        orr_wire packed = orr_wire_of(f.bytes);
        while (packed.at < packed.end && orr_wire_varint(&packed, &id))
            p = put_dep(v, p, &a, id);
    }
    return end_array(v, p, &a);
}

uint8_t *orr__show_node(orr__show *v, uint8_t *p, orr_span body)
{
    const orr__layout *lay = v->lay;
    node_survey s = {.id = 0};
    char open = '{';
    survey_node(body, &s);
    p = put_u64_member(v, p, s.id + v->shift, &lay->id, &open);
    p = put_text_member(v, p, s.name, &lay->name, &open);
    p = put_type(v, p, s.type, &open);
    p = put_deps(v, p, s.ctrl, NODE_CTRL_DEPS, &lay->ctrl, &open);
    p = put_deps(v, p, s.data, NODE_DATA_DEPS, &lay->data, &open);
    p = put_u64_member(v, p, s.start, &lay->start, &open);
    p = put_u64_member(v, p, s.duration, &lay->duration, &open);
    p = put_io(v, p, s.inputs, NODE_INPUTS, &lay->inputs, &open);
    p = put_io(v, p, s.outputs, NODE_OUTPUTS, &lay->outputs, &open);
    p = put_attrs(v, p, s.attr, NODE_ATTR, &lay->attr, &open);
    if (s.has_unknown) {
        gather_unknown(v, body, is_node_field, 0);
        p = put_unknown(v, p, &lay->record_unknown, &open);
    }
    return orr__show_end(v, p, &lay->end_record, open, '}');
}

/* ---- metadata ---- */

static bool is_meta_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    return f->number <= META_ATTR && is_len(f);
}

uint8_t *orr__show_meta(orr__show *v, uint8_t *p, orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    orr_span version = {NULL, 0};
    range attr = {NULL, NULL};
    char open = '{';
    while (orr_wire_next(&w, &f)) {
        if (!is_meta_field(&f, 0))
            continue;
        if (f.number == META_ATTR)
            extend(&attr, &f, &w);
        else
            version = f.bytes;
    }
    p = put_text_member(v, p, version, &v->lay->version, &open);
    p = put_attrs(v, p, attr, META_ATTR, &v->lay->meta_attr, &open);
    gather_unknown(v, body, is_meta_field, 0);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->record_unknown, &open);
    return orr__show_end(v, p, &v->lay->end_record, open, '}');
}
