/* SPDX-License-Identifier: Apache-2.0 */
/* et_legacy_attr.c - attributes of the generations 0.0.2 to 0.0.3u, both ways.
 *
 * An old attribute declares its type and has one optional or repeated field per type.  Type number
 * c always belongs to field 4 + c, so a generation is a list of kinds and nothing else.  proto2
 * lets the declaration and the value disagree, and real files have both cases: a type without any
 * value, and a text declared as INT.  Then a note in the attribute keeps the declaration.
 *
 * Writing an attribute that came from elsewhere picks the nearest type that holds the value
 * exactly; a value that no type holds is an error, never a rounded number. */
#include "et_legacy.h"

static const eto_member members_0_0_2[] = {
    {ORR_VALUE_FLOAT, false}, {ORR_VALUE_INT64, false}, {ORR_VALUE_STRING, false},
    {ORR_VALUE_FLOAT, true},  {ORR_VALUE_INT64, true},  {ORR_VALUE_BYTES, true},
};

static const eto_member members_0_0_3[] = {
    {ORR_VALUE_BOOL, false},   {ORR_VALUE_FLOAT, false}, {ORR_VALUE_INT64, false},
    {ORR_VALUE_STRING, false}, {ORR_VALUE_BOOL, true},   {ORR_VALUE_FLOAT, true},
    {ORR_VALUE_INT64, true},   {ORR_VALUE_STRING, true},
};

static const eto_member members_0_0_3u[] = {
    {ORR_VALUE_BOOL, false},  {ORR_VALUE_FLOAT, false},  {ORR_VALUE_UINT64, false},
    {ORR_VALUE_INT64, false}, {ORR_VALUE_STRING, false}, {ORR_VALUE_BOOL, true},
    {ORR_VALUE_FLOAT, true},  {ORR_VALUE_UINT64, true},  {ORR_VALUE_INT64, true},
    {ORR_VALUE_STRING, true},
};

const eto_generation *eto_generation_of(orr_schema schema)
{
    static const eto_generation all[ORR_SCHEMA_COUNT] = {
        [ORR_SCHEMA_2023_10] = {.schema = ORR_SCHEMA_2023_10, .has_metadata = true},
        [ORR_SCHEMA_0_0_3U] = {ORR_SCHEMA_0_0_3U, members_0_0_3u, 10, 5, false, true},
        [ORR_SCHEMA_0_0_3] = {ORR_SCHEMA_0_0_3, members_0_0_3, 8, 4, false, true},
        [ORR_SCHEMA_0_0_2] = {ORR_SCHEMA_0_0_2, members_0_0_2, 6, 4, true, false},
        [ORR_SCHEMA_EG] = {ORR_SCHEMA_EG, NULL, 0, 4, true, false},
    };
    return &all[schema];
}

/* ---- numbers that changed their meaning ---- */

enum { OLD_COLLECTIVES = 5, UNNAMED_COLLECTIVE = ORR_COLL_COUNT - OLD_COLLECTIVES };

static const uint8_t collective_now[OLD_COLLECTIVES] = {
    ORR_COLL_ALL_REDUCE,     ORR_COLL_ALL_TO_ALL, ORR_COLL_ALL_GATHER,
    ORR_COLL_REDUCE_SCATTER, ORR_COLL_BROADCAST,
};

/* A lenient reader moves numbers without a name to where today's schema has no names either, so
 * that they are not taken for something else and find their way back. */
bool eto_collective_in(const eto_generation *g, bool is_lenient, int64_t old, int64_t *now)
{
    const bool is_known = old >= 0 && old < g->collective_count;
    if (!is_known && (!is_lenient || old > INT64_MAX - UNNAMED_COLLECTIVE))
        return false;
    *now = old < 0 ? old : old < OLD_COLLECTIVES ? collective_now[old] : old + UNNAMED_COLLECTIVE;
    return true;
}

bool eto_collective_out(const eto_generation *g, bool is_same, int64_t now, int64_t *old)
{
    for (unsigned i = 0; i < OLD_COLLECTIVES; i++)
        if (now == collective_now[i]) {
            *old = i;
            return i < g->collective_count || is_same;
        }
    if (!is_same || (now >= 0 && now < ORR_COLL_COUNT))
        return false;
    *old = now < 0 ? now : now - UNNAMED_COLLECTIVE;
    return true;
}

enum { OLD_TYPES = ORR_NODE_COMM_COLL, UNNAMED_TYPE = ORR_NODE_TYPE_COUNT - OLD_TYPES };

/* As for collectives. */
bool eto_type_in(const eto_generation *g, bool is_lenient, uint64_t old, uint32_t *now)
{
    const uint64_t count = g->has_old_types ? OLD_TYPES : OLD_TYPES + 1;
    if (old >= count && (!is_lenient || old > INT32_MAX - UNNAMED_TYPE))
        return false;
    *now = (uint32_t)old;
    if (g->has_old_types && old)
        *now += old < count ? 1 : UNNAMED_TYPE;
    return true;
}

bool eto_type_out(const eto_generation *g, bool is_same, uint32_t now, uint32_t *old)
{
    *old = now;
    if (!g->has_old_types)
        return now <= ORR_NODE_COMM_COLL || is_same;
    if (now == ORR_NODE_INVALID)
        return true;
    if (now >= ORR_NODE_MEM_LOAD && now <= ORR_NODE_COMM_COLL)
        *old = now - 1;
    else if (now >= ORR_NODE_TYPE_COUNT && is_same)
        *old = now - UNNAMED_TYPE;
    else
        return false;
    return true;
}

/* ---- reading ---- */

static bool check_packed(eto_reader *r, orr_span bytes, uint32_t type)
{
    orr_wire w = orr_wire_of(bytes);
    uint64_t v;
    while (w.at < w.end) {
        const bool got = type == ORR_WIRE_I32 ? orr_wire_fixed(&w, 4, &v) : orr_wire_varint(&w, &v);
        if (!got)
            return eto_bad(r, w.at, w.why);
    }
    return true;
}

/* Note that the strings of 0.0.3 were bytes for three weeks: what is not UTF-8 there becomes a list
 * of bytes. */
static bool check_utf8(eto_reader *r, const orr_field *f, eto_member m, eto_attr *a)
{
    if (m.kind != ORR_VALUE_STRING || orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return true;
    a->is_utf8 = false;
    if (m.is_list && r->g->schema == ORR_SCHEMA_0_0_3)
        return true;
    return eto_bad(r, f->bytes.ptr, "a text is not valid UTF-8");
}

static bool take_member(eto_reader *r, const orr_field *f, eto_attr *a)
{
    const uint32_t row = f->number - OLD_ATTR_MEMBER;
    if (row >= r->g->member_count)
        return eto_unknown(r, f, "an attribute has a field that this generation does not know");
    const eto_member m = r->g->members[row];
    const uint32_t wire = eto_member_wire(m.kind);
    const bool is_packed = m.is_list && f->type == ORR_WIRE_LEN && wire != ORR_WIRE_LEN;
    if (f->type != wire && !is_packed)
        return eto_unknown(r, f, "an attribute's value has the wrong wire type");
    if (a->has_value && a->row != row)
        return eto_bad(r, f->start, "an attribute has values of two types");
    if (is_packed && !check_packed(r, f->bytes, wire))
        return false;
    if (wire == ORR_WIRE_LEN && !check_utf8(r, f, m, a))
        return false;
    a->has_value = true;
    a->row = row;
    a->value = m.kind == ORR_VALUE_BOOL ? f->value != 0 : f->value;
    a->text = f->bytes;
    return true;
}

static bool take_code(eto_reader *r, const orr_field *f, eto_attr *a, bool *has_code)
{
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "an attribute's type is not a number");
    if (f->value >= r->g->member_count)
        return eto_bad(r, f->start, "an attribute's type is not one that this generation has");
    a->code = (uint32_t)f->value;
    *has_code = true;
    return true;
}

static bool take_attr_field(
    eto_reader *r, const orr_field *f, eto_attr *a, bool *has_name, bool *has_code)
{
    switch (f->number) {
    case OLD_ATTR_NAME:
        *has_name |= f->type == ORR_WIRE_LEN;
        return eto_text(r, f, &a->name);
    case OLD_ATTR_TYPE:
        return take_code(r, f, a, has_code);
    case OLD_ATTR_DOC:
        a->has_doc |= f->type == ORR_WIRE_LEN;
        return eto_text(r, f, &a->doc);
    default:
        return take_member(r, f, a);
    }
}

bool eto_attr_read(eto_reader *r, orr_span message, eto_attr *out)
{
    orr_wire w = orr_wire_of(message);
    orr_field f = {0};
    bool has_name = false, has_code = false;
    *out = (eto_attr){.name = {"", 0}, .doc = {"", 0}, .is_utf8 = true, .message = message};
    while (orr_wire_next(&w, &f))
        if (!take_attr_field(r, &f, out, &has_name, &has_code))
            return false;
    if (w.why)
        return eto_bad(r, w.at, w.why);
    if (!has_name || !has_code)
        return eto_bad(r, message.ptr,
                       has_name ? "an attribute without a type" : "an attribute without a name");
    if (!out->has_value && r->g->members[out->code].is_list) {
        out->has_value = true; /* an empty list has no fields */
        out->row = out->code;
    }
    return true;
}

bool eto_attr_int(const eto_generation *g, const eto_attr *a)
{
    const eto_member m = g->members[a->row];
    return a->has_value && !m.is_list && (m.kind == ORR_VALUE_INT64 || m.kind == ORR_VALUE_UINT64);
}

static void put_packed(orr_buf *b, orr_wire w, uint32_t type)
{
    uint64_t v = 0;
    while (w.at < w.end)
        if (type == ORR_WIRE_I32) {
            orr_wire_fixed(&w, 4, &v);
            orr_put_fixed(b, 4, v);
        } else {
            orr_wire_varint(&w, &v);
            orr_put_varint(b, v);
        }
}

/* The items of a list, which stand among the attribute's fields, as one packed field. */
static void encode_numbers(const eto_attr *a, uint32_t type, orr_buf *b)
{
    orr_wire w = orr_wire_of(a->message);
    orr_field f = {0};
    const size_t before = b->len;
    orr_put_tag(b, LIST_VALUES, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    while (orr_wire_next(&w, &f)) {
        if (f.number != a->row + OLD_ATTR_MEMBER)
            continue;
        if (f.type == ORR_WIRE_LEN)
            put_packed(b, orr_wire_of(f.bytes), type);
        else if (f.type == ORR_WIRE_I32 && f.type == type)
            orr_put_fixed(b, 4, f.value);
        else if (f.type == type)
            orr_put_varint(b, f.value);
    }
    if (b->len > begin)
        orr_put_end(b, begin);
    else
        b->len = before;
}

static void encode_texts(const eto_attr *a, orr_buf *b)
{
    orr_wire w = orr_wire_of(a->message);
    orr_field f = {0};
    while (orr_wire_next(&w, &f))
        if (f.number == a->row + OLD_ATTR_MEMBER && f.type == ORR_WIRE_LEN)
            orr_put_bytes(b, LIST_VALUES, f.bytes.ptr, f.bytes.len);
}

static void encode_value(const eto_attr *a, eto_member m, orr_buf *b)
{
    const uint32_t wire = eto_member_wire(m.kind);
    const uint32_t field = eto_member_field(m);
    if (m.is_list) {
        orr_put_tag(b, field, ORR_WIRE_LEN);
        const size_t begin = orr_put_begin(b);
        if (wire == ORR_WIRE_LEN)
            encode_texts(a, b);
        else
            encode_numbers(a, wire, b);
        orr_put_end(b, begin);
    } else if (wire == ORR_WIRE_LEN) {
        orr_put_bytes(b, field, a->text.ptr, a->text.len);
    } else if (wire == ORR_WIRE_I32) {
        orr_put_tag(b, field, ORR_WIRE_I32);
        orr_put_fixed(b, 4, a->value);
    } else {
        orr_put_uint(b, field, a->value);
    }
}

void eto_attr_encode(const eto_generation *g, const eto_attr *a, uint32_t field, orr_buf *b)
{
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    if (a->name.len)
        orr_put_bytes(b, ATTR_NAME, a->name.ptr, a->name.len);
    if (a->has_doc)
        orr_put_bytes(b, ATTR_DOC, a->doc.ptr, a->doc.len);
    if (a->has_value) {
        eto_member m = g->members[a->row];
        if (!a->is_utf8)
            m.kind = ORR_VALUE_BYTES;
        encode_value(a, m, b);
    }
    if (!a->has_value || a->row != a->code)
        orr_put_uint(b, ATTR_NOTE, eto_member_field(g->members[a->code]));
    orr_put_end(b, begin);
}

/* ---- writing ---- */

enum { FLOAT_MEMBER = ATTR_FIRST_MEMBER + 2 * (ORR_VALUE_FLOAT - 1) };

/* orr_attrs_next decodes what readers ask for; the rest is what writing the old bytes again
 * takes. */
orr_code eto_raw_attr_split(eto_writer *w, const orr_field *field, eto_raw_attr *out)
{
    const uint8_t *end = field->bytes.ptr + field->bytes.len;
    orr_attrs it = {field->start, end, field->number};
    orr_wire wire = orr_wire_of(field->bytes);
    orr_field f = {0};
    *out = (eto_raw_attr){.note = 0};
    orr_attrs_next(&it, &out->attr);
    while (orr_wire_next(&wire, &f)) {
        if (f.number == ATTR_DOC)
            out->has_doc = true;
        else if (f.number == FLOAT_MEMBER && f.type == ORR_WIRE_I32)
            out->float_bits = (uint32_t)f.value;
        else if (f.number == ATTR_NOTE && f.type == ORR_WIRE_VARINT &&
                 f.value >= ATTR_FIRST_MEMBER && f.value <= ATTR_LAST_MEMBER)
            out->note = (uint32_t)f.value;
        else if (f.number > ATTR_LAST_MEMBER)
            return eto_refuse(w, out->attr.name, "it has a field outside the schema");
    }
    return ORR_OK;
}

bool eto_attr_whole(const orr_attr *a, uint64_t *out, bool *is_negative)
{
    if (a->is_list || a->kind < ORR_VALUE_INT32 || a->kind >= ORR_VALUE_BOOL)
        return false;
    const bool is_unsigned = a->kind == ORR_VALUE_UINT64 || a->kind == ORR_VALUE_FIXED64;
    *is_negative = !is_unsigned && a->value.i < 0;
    *out = a->value.u;
    return true;
}

/* What to write a kind as, in order of preference. */
static const uint8_t choices[ORR_VALUE_KIND_COUNT][2] = {
    [ORR_VALUE_DOUBLE] = {ORR_VALUE_FLOAT},
    [ORR_VALUE_FLOAT] = {ORR_VALUE_FLOAT},
    [ORR_VALUE_INT32] = {ORR_VALUE_INT64},
    [ORR_VALUE_INT64] = {ORR_VALUE_INT64},
    [ORR_VALUE_UINT32] = {ORR_VALUE_UINT64, ORR_VALUE_INT64},
    [ORR_VALUE_UINT64] = {ORR_VALUE_UINT64, ORR_VALUE_INT64},
    [ORR_VALUE_SINT32] = {ORR_VALUE_INT64},
    [ORR_VALUE_SINT64] = {ORR_VALUE_INT64},
    [ORR_VALUE_FIXED32] = {ORR_VALUE_UINT64, ORR_VALUE_INT64},
    [ORR_VALUE_FIXED64] = {ORR_VALUE_UINT64, ORR_VALUE_INT64},
    [ORR_VALUE_SFIXED32] = {ORR_VALUE_INT64},
    [ORR_VALUE_SFIXED64] = {ORR_VALUE_INT64},
    [ORR_VALUE_BOOL] = {ORR_VALUE_BOOL, ORR_VALUE_INT64},
    [ORR_VALUE_STRING] = {ORR_VALUE_STRING, ORR_VALUE_BYTES},
    [ORR_VALUE_BYTES] = {ORR_VALUE_BYTES, ORR_VALUE_STRING},
};

/* Every generation has a member for one of the choices. */
static uint32_t choose(const eto_generation *g, orr_value_kind kind, bool is_list)
{
    for (unsigned k = 0; k < 2; k++)
        for (uint32_t row = 0; row < g->member_count; row++)
            if (g->members[row].kind == choices[kind][k] && g->members[row].is_list == is_list)
                return row;
    return 0;
}

static const char *put_float(orr_buf *b, double d)
{
    const float f = (float)d;
    uint32_t bits;
    if ((double)f != d && d == d)
        return "it is a double that no float holds";
    memcpy(&bits, &f, 4);
    orr_put_fixed(b, 4, bits);
    return NULL;
}

/* One value of kind `from`, without its tag, as kind `to`.  Returns what is wrong with it, or
 * NULL.  Floats come as FIXED32, that is as bits, so that no NaN changes on its way. */
static const char *put_as(orr_buf *b, orr_value_kind from, uint8_t to, orr_value v)
{
    if (to == ORR_VALUE_STRING || to == ORR_VALUE_BYTES) {
        orr_put_varint(b, v.s.len);
        orr_buf_add(b, v.s.ptr, v.s.len);
        return NULL;
    }
    if (from == ORR_VALUE_DOUBLE)
        return put_float(b, v.d);
    if (to == ORR_VALUE_FLOAT) {
        orr_put_fixed(b, 4, v.u);
        return NULL;
    }
    const bool is_unsigned = from == ORR_VALUE_UINT64 || from == ORR_VALUE_FIXED64;
    if (is_unsigned && to == ORR_VALUE_INT64 && v.u > INT64_MAX)
        return "its number is too large";
    orr_put_varint(b, v.u);
    return NULL;
}

static const char *put_field(eto_writer *w, uint32_t row, orr_value_kind from, orr_value v)
{
    const uint8_t to = w->g->members[row].kind;
    const bool was_bytes = w->g->schema == ORR_SCHEMA_0_0_3 && w->g->members[row].is_list;
    const bool takes_bytes = to == ORR_VALUE_BYTES || was_bytes;
    if (from == ORR_VALUE_BYTES && !takes_bytes && !orr_is_utf8((const uint8_t *)v.s.ptr, v.s.len))
        return "its bytes are not text";
    orr_put_tag(&w->out, row + OLD_ATTR_MEMBER, eto_member_wire(to));
    return put_as(&w->out, from, to, v);
}

static const char *put_value(eto_writer *w, const eto_raw_attr *a)
{
    const bool is_float = a->attr.kind == ORR_VALUE_FLOAT;
    const orr_value_kind from = is_float ? ORR_VALUE_FIXED32 : a->attr.kind;
    const uint32_t row = choose(w->g, a->attr.kind, a->attr.is_list);
    orr_value v = a->attr.value;
    if (!a->attr.is_list) {
        if (is_float)
            v.u = a->float_bits;
        return put_field(w, row, from, v);
    }
    orr_list it = orr_attr_items(&a->attr);
    it.kind = from;
    const char *why = NULL;
    while (!why && orr_list_next(&it, &v))
        why = put_field(w, row, from, v);
    return why;
}

static uint32_t declared_code(const eto_generation *g, const eto_raw_attr *a)
{
    if (a->note == 0)
        return choose(g, a->attr.kind, a->attr.is_list);
    return choose(g, (orr_value_kind)((a->note - 1) / 2), (a->note & 1) == 0);
}

orr_code eto_attr_write(eto_writer *w, uint32_t field, const eto_raw_attr *a)
{
    const orr_attr *attr = &a->attr;
    if (attr->kind == ORR_VALUE_NONE && a->note == 0)
        return eto_refuse(w, attr->name, "it has no value");
    orr_put_tag(&w->out, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(&w->out);
    orr_put_bytes(&w->out, OLD_ATTR_NAME, attr->name.ptr, attr->name.len);
    orr_put_uint(&w->out, OLD_ATTR_TYPE, declared_code(w->g, a));
    if (a->has_doc)
        orr_put_bytes(&w->out, OLD_ATTR_DOC, attr->doc.ptr, attr->doc.len);
    const char *why = attr->kind == ORR_VALUE_NONE ? NULL : put_value(w, a);
    orr_put_end(&w->out, begin);
    return why ? eto_refuse(w, attr->name, why) : ORR_OK;
}
