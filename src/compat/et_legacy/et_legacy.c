/* SPDX-License-Identifier: Apache-2.0 */
/* et_legacy.c - the older generations of .et: their framing, metadata and nodes, both ways.
 *
 *     2023-10           today's records; only the metadata is numbered differently
 *     0.0.3u 0.0.3 0.0.2  one list of parents, texts beside it, attributes with a declared type
 *     eg                one list of parents, a field for everything
 *
 * Reading validates each record and appends its translation, so a trace from an old file is like
 * any other.  Writing translates the records back.  Files of the old libraries survive the round
 * trip byte for byte; whatever an old generation cannot express is an error that names node and
 * attribute.  Cost: O(bytes), one record at a time. */
#include "et_legacy.h"

#include "base/arithmetic.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== attributes of the generations 0.0.2 to 0.0.3u, both ways.
 *
 * An old attribute declares its type and has one optional or repeated field per type.  Type c is
 * field 4 + c, so a generation is just a list of kinds.  proto2 allows declaration and value to
 * disagree, and real files have both cases: a type without a value, and a string declared as
 * INT.  Then a note in the attribute preserves the declaration.
 *
 * Attributes from elsewhere are written with the nearest type that represents the value exactly; if
 * there is none, that is an error: nothing is rounded. */

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

/* ---- renumbered enums ---- */

enum { OLD_COLLECTIVES = 5, UNNAMED_COLLECTIVE = ORR_COLL_COUNT - OLD_COLLECTIVES };

static const uint8_t collective_now[OLD_COLLECTIVES] = {
    ORR_COLL_ALL_REDUCE,     ORR_COLL_ALL_TO_ALL, ORR_COLL_ALL_GATHER,
    ORR_COLL_REDUCE_SCATTER, ORR_COLL_BROADCAST,
};

/* A lenient reader maps unnamed numbers to a range without names in today's schema, so that they
 * are not mistaken for others and can be mapped back. */
static bool collective_in(const eto_generation *g, bool is_lenient, int64_t old, int64_t *now)
{
    const bool is_known = old >= 0 && old < g->collective_count;
    if (!is_known && (!is_lenient || old > INT64_MAX - UNNAMED_COLLECTIVE))
        return false;
    *now = old < 0 ? old : old < OLD_COLLECTIVES ? collective_now[old] : old + UNNAMED_COLLECTIVE;
    return true;
}

static bool collective_out(const eto_generation *g, bool is_same, int64_t now, int64_t *old)
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

/* As collective_in(). */
static bool type_in(const eto_generation *g, bool is_lenient, uint64_t old, uint32_t *now)
{
    const uint64_t count = g->has_old_types ? OLD_TYPES : OLD_TYPES + 1;
    if (old >= count && (!is_lenient || old > INT32_MAX - UNNAMED_TYPE))
        return false;
    *now = (uint32_t)old;
    if (g->has_old_types && old)
        *now += old < count ? 1 : UNNAMED_TYPE;
    return true;
}

static bool type_out(const eto_generation *g, bool is_same, uint32_t now, uint32_t *old)
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

/* Returns false. */
static bool eto_bad(eto_reader *r, const uint8_t *at, const char *why)
{
    r->bad = at;
    r->why = why;
    return false;
}

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

/* The strings of 0.0.3 were bytes for three weeks: those that are not UTF-8 become lists of
 * bytes. */
static bool check_utf8(eto_reader *r, const orr_field *f, eto_member m, eto_attr *a)
{
    if (m.kind != ORR_VALUE_STRING || orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return true;
    a->is_utf8 = false;
    if (m.is_list && r->g->schema == ORR_SCHEMA_0_0_3)
        return true;
    return eto_bad(r, f->bytes.ptr, "a text is not valid UTF-8");
}

/* True: skip it. */
static bool eto_unknown(eto_reader *r, const orr_field *f, const char *why)
{
    return r->is_lenient || eto_bad(r, f->start, why);
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

static bool eto_text(eto_reader *r, const orr_field *f, orr_str *out)
{
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a text field does not hold text");
    if (!orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return eto_bad(r, f->bytes.ptr, "a text is not valid UTF-8");
    *out = (orr_str){(const char *)f->bytes.ptr, f->bytes.len};
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

static bool attr_read(eto_reader *r, orr_span message, eto_attr *out)
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

/* A single integer. */
static bool attr_int(const eto_generation *g, const eto_attr *a)
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

/* Pack the items of a list, which are separate fields of the old attribute, into one field. */
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

static void attr_encode(const eto_generation *g, const eto_attr *a, uint32_t field, orr_buf *b)
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

/* attr: its name, or "". */
static orr_code refuse(eto_writer *w, orr_str attr, const char *why)
{
    const bool is_node = w->index != ORR_NO_NODE;
    const orr_where at =
        is_node ? orr_trace_where(w->t, w->index) : orr_where_byte(w->t->path, ORR_NO_BYTE);
    const orr_code code = orr_fail(
        w->err, ORR_EUSAGE, &at, "%s%.*s cannot be written as generation %s: %s",
        attr.len ? "attribute " : "it", ORR_SHOWN(attr, 80), orr_schema_name(w->g->schema), why);
    return is_node ? orr_because(w->err, code, "node %" PRIu64, w->t->id[w->index])
                   : orr_because(w->err, code, "metadata");
}

/* orr_attrs_next() decodes what readers need; this is what rewriting the old bytes takes in
 * addition. */
static orr_code raw_attr_split(eto_writer *w, const orr_field *field, eto_raw_attr *out)
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
            return refuse(w, out->attr.name, "it has a field outside the schema");
    }
    return ORR_OK;
}

/* False: not a single integer. */
static bool attr_whole(const orr_attr *a, uint64_t *out, bool *is_negative)
{
    if (a->is_list || a->kind < ORR_VALUE_INT32 || a->kind >= ORR_VALUE_BOOL)
        return false;
    const bool is_unsigned = a->kind == ORR_VALUE_UINT64 || a->kind == ORR_VALUE_FIXED64;
    *is_negative = !is_unsigned && a->value.i < 0;
    *out = a->value.u;
    return true;
}

/* Kinds to write a kind as, in order of preference. */
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

/* Every generation has a member for one of them. */
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

/* Write a value of kind `from` as kind `to`, without its tag.  Returns what is wrong, or
 * NULL.  Floats come as FIXED32, as bits, so that NaNs keep their payload. */
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

static orr_code attr_write(eto_writer *w, uint32_t field, const eto_raw_attr *a)
{
    const orr_attr *attr = &a->attr;
    if (attr->kind == ORR_VALUE_NONE && a->note == 0)
        return refuse(w, attr->name, "it has no value");
    orr_put_tag(&w->out, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(&w->out);
    orr_put_bytes(&w->out, OLD_ATTR_NAME, attr->name.ptr, attr->name.len);
    orr_put_uint(&w->out, OLD_ATTR_TYPE, declared_code(w->g, a));
    if (a->has_doc)
        orr_put_bytes(&w->out, OLD_ATTR_DOC, attr->doc.ptr, attr->doc.len);
    const char *why = attr->kind == ORR_VALUE_NONE ? NULL : put_value(w, a);
    orr_put_end(&w->out, begin);
    return why ? refuse(w, attr->name, why) : ORR_OK;
}

/* ==== nodes of the first generation ("eg", 2023-01 to 2023-06), both ways.
 *
 * These nodes have no attributes but one numeric field per property.  In memory each field is an
 * attribute of the same name, except for the run time, which is the node's duration.  A field that
 * is present is an attribute even if it is zero, so that the bytes survive the round trip. */

enum { EG_RUN_TIME = 7, EG_COMM_TYPE = 13, EG_INVOLVED_DIM = 14, EG_LAST = 20, MEMORY_TYPES = 3 };

typedef struct eg_field {
    const char *name;
    uint8_t kind;   /* of the attribute */
    bool is_memory; /* a MemoryType */
} eg_field;

static const eg_field eg_fields[EG_LAST + 1] = {
    [5] = {"tensor_loc", ORR_VALUE_UINT32, true},
    [6] = {"tensor_size", ORR_VALUE_UINT64, false},
    [EG_RUN_TIME] = {"simulated_run_time", ORR_VALUE_UINT64, false},
    [8] = {"input_tensor_loc", ORR_VALUE_UINT32, true},
    [9] = {"input_tensor_size", ORR_VALUE_UINT64, false},
    [10] = {"output_tensor_loc", ORR_VALUE_UINT32, true},
    [11] = {"output_tensor_size", ORR_VALUE_UINT64, false},
    [12] = {"num_ops", ORR_VALUE_UINT64, false},
    [EG_COMM_TYPE] = {"comm_type", ORR_VALUE_INT64, false},
    [EG_INVOLVED_DIM] = {"involved_dim", ORR_VALUE_BOOL, false},
    [15] = {"communicator_id", ORR_VALUE_UINT32, false},
    [16] = {"comm_src", ORR_VALUE_UINT32, false},
    [17] = {"comm_dst", ORR_VALUE_UINT32, false},
    [18] = {"comm_size", ORR_VALUE_UINT32, false},
    [19] = {"comm_tag", ORR_VALUE_UINT32, false},
    [20] = {"comm_priority", ORR_VALUE_UINT32, false},
};

/* The numbers of one node, indexed by field number. */
typedef struct eg_values {
    uint64_t value[EG_LAST + 1];
    uint32_t present; /* bit k: value[k] is set */
} eg_values;

static bool has(const eg_values *v, unsigned field)
{
    return v->present >> field & 1;
}

/* ---- reading ---- */

static bool take_number(eto_reader *r, const orr_field *f, eg_values *v)
{
    const eg_field *e = &eg_fields[f->number];
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    if (e->is_memory && f->value >= MEMORY_TYPES && !r->is_lenient)
        return eto_bad(r, f->start, "the memory type is not one that this generation has");
    if (e->kind == ORR_VALUE_UINT32 && f->value > UINT32_MAX)
        return eto_bad(r, f->start, "a number does not fit in 32 bits");
    v->value[f->number] = f->value;
    v->present |= 1u << f->number;
    return true;
}

/* INVALID_COMM means no collective; all others are one more than in later generations. */
static bool take_comm_type(eto_reader *r, const orr_field *f, eto_node *n, eg_values *v)
{
    int64_t now = 0;
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    v->present &= ~(1u << EG_COMM_TYPE);
    n->note &= ~(uint32_t)NOTE_NO_COLLECTIVE;
    if (f->value == 0) {
        n->note |= NOTE_NO_COLLECTIVE;
        return true;
    }
    if (f->value > INT32_MAX || !collective_in(r->g, r->is_lenient, (int64_t)f->value - 1, &now))
        return eto_bad(r, f->start, "the collective is not one that this generation has");
    v->value[EG_COMM_TYPE] = (uint64_t)now;
    v->present |= 1u << EG_COMM_TYPE;
    return true;
}

static bool check_dims(eto_reader *r, const orr_field *f, eg_values *v)
{
    uint64_t ignored;
    if (f->type != ORR_WIRE_VARINT && f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a number field does not hold a number");
    orr_wire w = orr_wire_of(f->bytes);
    while (f->type == ORR_WIRE_LEN && w.at < w.end)
        if (!orr_wire_varint(&w, &ignored))
            return eto_bad(r, w.at, w.why);
    v->present |= 1u << EG_INVOLVED_DIM;
    return true;
}

static bool add_parent(eto_reader *r, uint64_t id)
{
    if (!orr_grow(&r->parents, &r->parent_room, r->parent_count + 1))
        return eto_bad(r, NULL, NULL);
    r->parents[r->parent_count++] = id;
    return true;
}

static bool take_parents(eto_reader *r, const orr_field *f)
{
    if (f->type == ORR_WIRE_VARINT)
        return add_parent(r, f->value);
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "the list of parents does not hold numbers");
    orr_wire w = orr_wire_of(f->bytes);
    uint64_t id;
    while (w.at < w.end) {
        if (!orr_wire_varint(&w, &id))
            return eto_bad(r, w.at, w.why);
        if (!add_parent(r, id))
            return false;
    }
    return true;
}

static bool take_type(eto_reader *r, const orr_field *f, eto_node *n)
{
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    if (!type_in(r->g, r->is_lenient, f->value, &n->type))
        return eto_bad(r, f->start, "the node type is not one that this generation has");
    n->has_type = true;
    return true;
}

/* Fields 1 to 4. */
static bool common(eto_reader *r, const orr_field *f, eto_node *n)
{
    switch (f->number) {
    case OLD_ID:
        if (f->type != ORR_WIRE_VARINT)
            return eto_unknown(r, f, "a number field does not hold a number");
        n->id = f->value;
        n->has_id = true;
        return true;
    case OLD_NAME:
        n->has_name |= f->type == ORR_WIRE_LEN;
        return eto_text(r, f, &n->name);
    case OLD_TYPE:
        return take_type(r, f, n);
    default:
        return take_parents(r, f);
    }
}

static bool take_eg_field(eto_reader *r, const orr_field *f, eto_node *n, eg_values *v)
{
    if (f->number <= OLD_PARENT)
        return common(r, f, n);
    if (f->number > EG_LAST)
        return eto_unknown(r, f, "a node has a field that this generation does not know");
    if (f->number == EG_COMM_TYPE)
        return take_comm_type(r, f, n, v);
    if (f->number == EG_INVOLVED_DIM)
        return check_dims(r, f, v);
    return take_number(r, f, v);
}

static void encode_dims(orr_span body, orr_buf *b)
{
    orr_list it = {.at = body.ptr,
                   .end = body.ptr + body.len,
                   .field = EG_INVOLVED_DIM,
                   .kind = ORR_VALUE_BOOL};
    orr_value v;
    const eto_member m = {ORR_VALUE_BOOL, true};
    orr_put_tag(b, eto_member_field(m), ORR_WIRE_LEN);
    const size_t list = orr_put_begin(b);
    orr_put_tag(b, LIST_VALUES, ORR_WIRE_LEN);
    const size_t items = orr_put_begin(b);
    while (orr_list_next(&it, &v))
        orr_put_varint(b, v.u);
    orr_put_end(b, items);
    orr_put_end(b, list);
}

static void encode_field(unsigned field, const eg_values *v, orr_span body, orr_buf *b)
{
    const eg_field *e = &eg_fields[field];
    orr_put_tag(b, NODE_ATTR, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    orr_put_bytes(b, ATTR_NAME, e->name, strlen(e->name));
    if (field == EG_INVOLVED_DIM)
        encode_dims(body, b);
    else
        orr_put_uint(b, eto_member_field((eto_member){e->kind, false}), v->value[field]);
    orr_put_end(b, begin);
}

static void take_run_time(const eg_values *v, eto_node *n)
{
    const bool is_comp = n->type == ORR_NODE_COMP;
    n->duration = has(v, EG_RUN_TIME) ? v->value[EG_RUN_TIME] : 0;
    if (has(v, EG_RUN_TIME) && n->duration == 0 && !is_comp)
        n->note |= NOTE_ZERO_RUN_TIME;
    if (!has(v, EG_RUN_TIME) && is_comp)
        n->note |= NOTE_NO_RUN_TIME;
}

/* A whole "eg" node. */
static bool eg_read(eto_reader *r, orr_span body, eto_node *n)
{
    eg_values v;
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    v.present = 0;
    while (orr_wire_next(&w, &f))
        if (!take_eg_field(r, &f, n, &v))
            return false;
    if (w.why)
        return eto_bad(r, w.at, w.why);
    if (!n->has_type)
        n->note |= NOTE_NO_TYPE;
    take_run_time(&v, n);
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (has(&v, k) && k != EG_RUN_TIME)
            encode_field(k, &v, body, &r->tail);
    return true;
}

/* ---- writing ---- */

static unsigned find_field(orr_str name)
{
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (k != EG_RUN_TIME && orr_str_is(name, eg_fields[k].name))
            return k;
    return 0;
}

static orr_code collect_number(eto_writer *w, const orr_attr *a, unsigned field, eg_values *v)
{
    const eg_field *e = &eg_fields[field];
    uint64_t number;
    bool is_negative;
    int64_t old;
    if (!attr_whole(a, &number, &is_negative))
        return refuse(w, a->name, "it is not one whole number");
    if (field == EG_COMM_TYPE) {
        if (number > INT32_MAX || !collective_out(w->g, w->is_same, (int64_t)number, &old))
            return refuse(w, a->name, "the collective has no number there");
        number = (uint64_t)old + 1;
    }
    if (is_negative || (e->kind == ORR_VALUE_UINT32 && number > UINT32_MAX))
        return refuse(w, a->name, "its number is out of range");
    if (e->is_memory && number >= MEMORY_TYPES && !w->is_same)
        return refuse(w, a->name, "the memory type has no number there");
    v->value[field] = number;
    return ORR_OK;
}

/* Dimensions are booleans; 0.0.2 had to write them as 0 and 1. */
static orr_code check_dim_list(eto_writer *w, const orr_attr *a)
{
    const bool is_whole = a->kind >= ORR_VALUE_INT32 && a->kind <= ORR_VALUE_BOOL;
    if (!a->is_list || !is_whole)
        return refuse(w, a->name, "it is not a list of booleans");
    orr_list it = orr_attr_items(a);
    orr_value v;
    while (orr_list_next(&it, &v))
        if (v.u > 1)
            return refuse(w, a->name, "it is not a list of booleans");
    return ORR_OK;
}

/* The attribute `runtime` of later generations is the duration, which has its own field. */
static bool is_the_duration(const orr_attr *a, const eto_parts *p)
{
    uint64_t number;
    bool is_negative;
    return orr_str_is(a->name, "runtime") && attr_whole(a, &number, &is_negative) && !is_negative &&
           number == p->node.duration_us;
}

static orr_code collect(
    eto_writer *w, const orr_field *f, const eto_parts *p, eg_values *v, orr_attr *dims)
{
    eto_raw_attr raw;
    orr_code code = raw_attr_split(w, f, &raw);
    if (code)
        return code;
    const orr_attr *a = &raw.attr;
    const unsigned field = find_field(a->name);
    if (!field && is_the_duration(a, p))
        return ORR_OK;
    if (!field)
        return refuse(w, a->name, "there is no field for it");
    if (has(v, field))
        return refuse(w, a->name, "the node has it more than once");
    if (a->doc.len)
        return refuse(w, a->name, "there is no place for its doc_string");
    v->present |= 1u << field;
    if (field != EG_INVOLVED_DIM)
        return collect_number(w, a, field, v);
    *dims = *a;
    return check_dim_list(w, a);
}

static void put_dims(orr_buf *b, const orr_attr *dims)
{
    orr_list it = orr_attr_items(dims);
    orr_value v;
    while (orr_list_next(&it, &v))
        orr_put_uint(b, EG_INVOLVED_DIM, v.u);
}

static bool writes_run_time(const eto_parts *p)
{
    if (p->node.duration_us || p->note & NOTE_ZERO_RUN_TIME)
        return true;
    return p->node.type == ORR_NODE_COMP && !(p->note & NOTE_NO_RUN_TIME);
}

static orr_code eg_write(eto_writer *w, const eto_parts *p)
{
    eg_values v;
    orr_attr dims = {.kind = ORR_VALUE_NONE};
    orr_wire wire = orr_wire_of(p->node.body);
    orr_field f = {0};
    orr_code code = ORR_OK;
    v.present = 0;
    while (!code && orr_wire_next(&wire, &f))
        if (f.number == NODE_ATTR)
            code = collect(w, &f, p, &v, &dims);
    if (code)
        return code;
    if (writes_run_time(p)) {
        v.value[EG_RUN_TIME] = p->node.duration_us;
        v.present |= 1u << EG_RUN_TIME;
    }
    if (p->note & NOTE_NO_COLLECTIVE && !has(&v, EG_COMM_TYPE)) {
        v.value[EG_COMM_TYPE] = 0;
        v.present |= 1u << EG_COMM_TYPE;
    }
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (has(&v, k) && k == EG_INVOLVED_DIM)
            put_dims(&w->out, &dims);
        else if (has(&v, k))
            orr_put_uint(&w->out, k, v.value[k]);
    return ORR_OK;
}

enum { DRAIN_AT = 1 << 16 };

static const uint8_t no_bytes[1];

/* ---- reading: what all generations share ---- */

/* ---- reading: nodes of 0.0.2 to 0.0.3u ---- */

static bool take_attr(eto_reader *r, const orr_field *f)
{
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "an attribute is not a message");
    if (!orr_grow(&r->attrs, &r->attr_room, r->attr_count + 1))
        return eto_bad(r, NULL, NULL);
    r->attrs[r->attr_count++] = f->bytes;
    return true;
}

/* texts: inputs, input_shapes, input_types, outputs, output_shapes, output_types; ptr NULL:
 * absent. */
static bool take_field(eto_reader *r, const orr_field *f, eto_node *n, orr_str texts[6])
{
    if (f->number <= OLD_PARENT)
        return common(r, f, n);
    if (f->number < OLD_ATTR)
        return eto_text(r, f, &texts[f->number - OLD_INPUTS]);
    if (f->number == OLD_ATTR)
        return take_attr(r, f);
    return eto_unknown(r, f, "a node has a field that this generation does not know");
}

/* Strings that are present are written again even if empty. */
static void encode_io(orr_buf *b, uint32_t field, const orr_str texts[3])
{
    if (!texts[0].ptr && !texts[1].ptr && !texts[2].ptr)
        return;
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    for (uint32_t i = 0; i < 3; i++)
        if (texts[i].ptr)
            orr_put_bytes(b, IO_VALUES + i, texts[i].ptr, texts[i].len);
    orr_put_end(b, begin);
}

static bool map_comm_type(eto_reader *r, eto_attr *a)
{
    int64_t now;
    if (!orr_str_is(a->name, "comm_type") || !attr_int(r->g, a))
        return true;
    if (!collective_in(r->g, r->is_lenient, (int64_t)a->value, &now))
        return eto_bad(r, a->message.ptr, "comm_type is not a collective that this generation has");
    a->value = (uint64_t)now;
    return true;
}

/* Is the attribute exactly what the writer would produce from the duration?  Then it is not
 * kept. */
static bool is_plain_run_time(const eto_generation *g, const eto_node *n, const eto_attr *a)
{
    return g->members[a->row].kind == ORR_VALUE_INT64 && a->row == a->code && !a->has_doc &&
           (int64_t)a->value >= 0 && (a->value || n->type == ORR_NODE_COMP);
}

/* The first attribute `runtime` is the duration.  True: it must be kept as an attribute, too. */
static bool keeps_run_time(
    const eto_generation *g, const eto_attr *a, bool is_last, eto_node *n, bool *has_run_time)
{
    if (!orr_str_is(a->name, "runtime") || !attr_int(g, a))
        return true;
    if (*has_run_time)
        return true;
    const bool is_negative = g->members[a->row].kind == ORR_VALUE_INT64 && (int64_t)a->value < 0;
    *has_run_time = true;
    n->duration = is_negative ? 0 : a->value;
    return !is_last || !is_plain_run_time(g, n, a);
}

static bool encode_attrs(eto_reader *r, eto_node *n)
{
    bool has_run_time = false;
    eto_attr a;
    for (size_t i = 0; i < r->attr_count; i++) {
        if (!attr_read(r, r->attrs[i], &a) || !map_comm_type(r, &a))
            return false;
        if (keeps_run_time(r->g, &a, i + 1 == r->attr_count, n, &has_run_time))
            attr_encode(r->g, &a, NODE_ATTR, &r->tail);
    }
    if (!has_run_time && n->type == ORR_NODE_COMP)
        n->note |= NOTE_NO_RUN_TIME;
    return true;
}

static bool read_node(eto_reader *r, orr_span body, eto_node *n)
{
    orr_str texts[6] = {{NULL, 0}};
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    while (orr_wire_next(&w, &f))
        if (!take_field(r, &f, n, texts))
            return false;
    if (w.why)
        return eto_bad(r, w.at, w.why);
    if (!n->has_type)
        return eto_bad(r, body.ptr, "a node without a type");
    encode_io(&r->tail, NODE_INPUTS, texts);
    encode_io(&r->tail, NODE_OUTPUTS, texts + 3);
    return encode_attrs(r, n);
}

/* ---- reading: records ---- */

static orr_code damage(const eto_reader *r, uint64_t byte, orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(r->t->path, byte)), "%s", what);
}

static orr_code bad_node(const eto_reader *r, orr_error *err)
{
    if (!r->why)
        return orr_no_memory(err);
    return orr_fail(err, ORR_EINPUT,
                    ORR_AT(orr_where_byte(r->t->path, (uint64_t)(r->bad - r->bytes.ptr))),
                    "node %zu of the file: %s", r->t->count, r->why);
}

/* ORR_END at the end of the file. */
static orr_code next_record(eto_reader *r, orr_error *err)
{
    orr_wire w = {r->bytes.ptr + r->at, r->bytes.ptr + r->bytes.len, NULL};
    if (w.at == w.end)
        return ORR_END;
    if (!orr_wire_varint(&w, &r->body_len))
        return damage(r, r->at, err,
                      "the file ends inside a record's length, or the length is not a number");
    r->body_at = (uint64_t)(w.at - r->bytes.ptr);
    const uint64_t left = r->bytes.len - r->body_at;
    if (r->body_len > left)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(r->t->path, r->at)),
                        "a record of %" PRIu64 " bytes is announced, but only %" PRIu64
                        " are left: the file is cut short or damaged",
                        r->body_len, left);
    if (r->body_len == 0 && (r->at || !r->g->has_metadata))
        return damage(r, r->at, err, "an empty record: a node has at least an id and a name");
    return ORR_OK;
}

static orr_span record_body(const eto_reader *r)
{
    return (orr_span){r->bytes.ptr + r->body_at, (size_t)r->body_len};
}

static orr_code add_old_node(eto_reader *r, orr_error *err)
{
    eto_node n = {.name = {"", 0}};
    const orr_span body = record_body(r);
    r->parent_count = r->attr_count = r->tail.len = 0;
    if (!(r->g->schema == ORR_SCHEMA_EG ? eg_read(r, body, &n) : read_node(r, body, &n)))
        return bad_node(r, err);
    if (!n.has_id || !n.has_name) {
        eto_bad(r, body.ptr, n.has_id ? "a node without a name" : "a node without an id");
        return bad_node(r, err);
    }
    if (n.note)
        orr_put_uint(&r->tail, NODE_NOTE, n.note);
    if (!n.id && !n.name.len && !n.type && !n.duration && !r->parent_count && !r->tail.len)
        orr_put_uint(&r->tail, NODE_ID, 0); /* all fields are zero: without this the record would be
                                             * empty */
    if (r->tail.failed)
        return orr_no_memory(err);
    const orr_draft d = {.id = n.id,
                         .name = n.name,
                         .type = n.type,
                         .data_deps = r->parents,
                         .data_count = r->parent_count,
                         .duration_us = n.duration,
                         .unknown = {r->tail.ptr, r->tail.len}};
    return orr__trace_append_at(r->t, &d, r->at, err);
}

/* Nodes of 2023-10 are today's.  Errors are located in the file's record. */
static orr_code add_same_node(eto_reader *r, orr_error *err)
{
    orr_trace *t = r->t;
    const orr_span body = record_body(r);
    const size_t begin = orr_put_begin(&t->owned);
    orr_buf_add(&t->owned, body.ptr, body.len);
    const orr_code code = orr__trace_append_body(t, begin, r->at, err);
    if (code != ORR_EINPUT || orr__scan_node(&t->scan, body))
        return code;
    eto_bad(r, t->scan.bad, t->scan.why);
    return bad_node(r, err);
}

static orr_code read_nodes(eto_reader *r, orr_error *err)
{
    orr_code code;
    while ((code = next_record(r, err)) == ORR_OK) {
        code = r->g->schema == ORR_SCHEMA_2023_10 ? add_same_node(r, err) : add_old_node(r, err);
        if (code)
            break;
        r->at = r->body_at + r->body_len;
    }
    return code == ORR_END || (code == ORR_EINPUT && r->ends_at_damage) ? ORR_OK : code;
}

/* ---- reading: metadata ---- */

/* Metadata has only attributes in field 1, where a node has its id, a number. */
static bool is_metadata(const eto_reader *r)
{
    orr_wire w = orr_wire_of(record_body(r));
    orr_field f = {0};
    if (!r->g->has_metadata)
        return false;
    return w.at == w.end ||
           (orr_wire_next(&w, &f) && f.number == OLD_META_ATTR && f.type == ORR_WIRE_LEN);
}

static bool take_meta_attr(eto_reader *r, const orr_field *f)
{
    eto_attr a;
    if (f->number != OLD_META_ATTR || f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a field that this generation does not know");
    if (r->g->schema != ORR_SCHEMA_2023_10) {
        if (!attr_read(r, f->bytes, &a))
            return false;
        attr_encode(r->g, &a, META_ATTR, &r->t->owned);
        return true;
    }
    r->t->scan.why = NULL;
    if (!orr__scan_attr(&r->t->scan, f->bytes))
        return eto_bad(r, r->t->scan.bad, r->t->scan.why);
    orr_put_bytes(&r->t->owned, META_ATTR, f->bytes.ptr, f->bytes.len);
    return true;
}

static orr_code read_metadata(eto_reader *r, orr_error *err)
{
    orr_wire w = orr_wire_of(record_body(r));
    orr_field f = {0};
    const size_t begin = orr_put_begin(&r->t->owned);
    r->why = NULL;
    while (!r->why && orr_wire_next(&w, &f))
        take_meta_attr(r, &f);
    if (w.why)
        eto_bad(r, w.at, w.why);
    if (r->why)
        return orr_fail(err, ORR_EINPUT,
                        ORR_AT(orr_where_byte(r->t->path, (uint64_t)(r->bad - r->bytes.ptr))),
                        "metadata: %s", r->why);
    orr_put_end(&r->t->owned, begin);
    r->t->has_metadata = true;
    r->at = r->body_at + r->body_len;
    return r->t->owned.failed ? orr_no_memory(err) : ORR_OK;
}

static orr_code read_first(eto_reader *r, bool must_be_metadata, orr_error *err)
{
    const orr_code code = next_record(r, err);
    if (code)
        return code == ORR_END || (code == ORR_EINPUT && r->ends_at_damage) ? ORR_OK : code;
    if (is_metadata(r))
        return read_metadata(r, err);
    if (must_be_metadata && r->g->has_metadata)
        return damage(r, r->at, err, "the first record is not metadata");
    return ORR_OK;
}

static orr_code read_all(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err)
{
    const orr_leniency l = opt->leniency;
    eto_reader r = {.t = t,
                    .g = eto_generation_of(t->schema),
                    .bytes = bytes,
                    .is_lenient = l != ORR_STRICT,
                    .ends_at_damage = l == ORR_AS_JSONIZER || l == ORR_AS_FEEDER_V2};
    t->scan.is_lenient = r.is_lenient;
    if (bytes.len == 0 && !r.ends_at_damage)
        return damage(&r, 0, err, "the file is empty");
    orr_code code = read_first(&r, opt->first_is_metadata, err);
    if (!code)
        code = read_nodes(&r, err);
    orr_free(r.parents);
    orr_free(r.attrs);
    orr_buf_fini(&r.tail);
    return code;
}

/* ---- writing ---- */

static orr_code refuse_node(eto_writer *w, const char *why)
{
    return refuse(w, (orr_str){"", 0}, why);
}

static orr_code take_part(eto_writer *w, const orr_field *f, eto_parts *p)
{
    if (f->number == NODE_NOTE && f->type == ORR_WIRE_VARINT)
        p->note = (uint32_t)f->value;
    else if (f->number == NODE_INPUTS && f->type == ORR_WIRE_LEN)
        p->inputs = f->bytes;
    else if (f->number == NODE_OUTPUTS && f->type == ORR_WIRE_LEN)
        p->outputs = f->bytes;
    else if (f->number > NODE_ATTR || (f->number == NODE_ATTR && f->type != ORR_WIRE_LEN))
        return refuse_node(w, "it has a field outside the schema");
    return ORR_OK;
}

static orr_code split_node(eto_writer *w, eto_parts *p)
{
    orr_field f = {0};
    orr_code code = ORR_OK;
    *p = (eto_parts){.inputs = {no_bytes, 0}, .outputs = {no_bytes, 0}};
    orr_trace_node(w->t, w->index, &p->node);
    orr_wire wire = orr_wire_of(p->node.body);
    while (!code && orr_wire_next(&wire, &f))
        code = take_part(w, &f, p);
    if (!code && p->node.start_us)
        code = refuse_node(w, "it has no place for start_time_micros");
    return code;
}

/* Both kinds of dependency become parents, one of both kinds only once: the old feeders wait
 * forever for a parent that is listed twice. */
static orr_code put_parents(eto_writer *w, const orr_node *node)
{
    size_t count = 0;
    orr_value v;
    orr_list it = orr_node_data_deps(node);
    while (orr_list_next(&it, &v)) {
        orr_put_uint(&w->out, OLD_PARENT, v.u + w->shift);
        if (!orr_push(w->ids, count, w->id_room, v.u))
            return orr_no_memory(w->err);
    }
    bool is_sorted = false;
    it = orr_node_ctrl_deps(node);
    while (orr_list_next(&it, &v)) {
        if (count && !is_sorted)
            orr_sort(w->ids, count, sizeof *w->ids, orr_by_u64);
        is_sorted = true;
        if (!count || !bsearch(&v.u, w->ids, count, sizeof *w->ids, orr_by_u64))
            orr_put_uint(&w->out, OLD_PARENT, v.u + w->shift);
    }
    return ORR_OK;
}

static orr_code put_common(eto_writer *w, const eto_parts *p)
{
    uint32_t type;
    if (!type_out(w->g, w->is_same, p->node.type, &type))
        return refuse_node(w, "its node type has no number there");
    orr_put_uint(&w->out, OLD_ID, p->node.id + w->shift);
    orr_put_bytes(&w->out, OLD_NAME, p->node.name.ptr, p->node.name.len);
    if (type || w->g->schema != ORR_SCHEMA_EG || !(p->note & NOTE_NO_TYPE))
        orr_put_uint(&w->out, OLD_TYPE, type);
    return put_parents(w, &p->node);
}

static orr_code put_io(eto_writer *w, uint32_t first, orr_span io)
{
    orr_wire wire = orr_wire_of(io);
    orr_field f, texts[3] = {{0}};
    while (orr_wire_next(&wire, &f)) {
        if (f.number > IO_TYPES || f.type != ORR_WIRE_LEN)
            return refuse_node(w, "its inputs or outputs have a field outside the schema");
        texts[f.number - IO_VALUES] = f;
    }
    for (uint32_t i = 0; i < 3; i++)
        if (texts[i].number)
            orr_put_bytes(&w->out, first + i, texts[i].bytes.ptr, texts[i].bytes.len);
    return ORR_OK;
}

/* If they differ, the duration has been changed since. */
static orr_code adjust_run_time(eto_writer *w, const eto_parts *p, orr_attr *a)
{
    uint64_t number;
    bool is_negative;
    if (!attr_whole(a, &number, &is_negative))
        return ORR_OK;
    if ((is_negative ? 0 : number) == p->node.duration_us)
        return ORR_OK;
    if (p->node.duration_us > INT64_MAX)
        return refuse_node(w, "its duration is too large");
    a->kind = a->kind == ORR_VALUE_UINT64 ? ORR_VALUE_UINT64 : ORR_VALUE_INT64;
    a->value.u = p->node.duration_us;
    return ORR_OK;
}

static orr_code adjust_comm_type(eto_writer *w, orr_attr *a)
{
    uint64_t now;
    bool is_negative;
    int64_t old;
    if (!attr_whole(a, &now, &is_negative))
        return ORR_OK;
    if ((now > INT64_MAX && !is_negative) || !collective_out(w->g, w->is_same, (int64_t)now, &old))
        return refuse(w, a->name, "the collective has no number there");
    a->kind = a->kind == ORR_VALUE_UINT64 ? ORR_VALUE_UINT64 : ORR_VALUE_INT64;
    a->value.i = old;
    return ORR_OK;
}

static orr_code put_attr(eto_writer *w, const orr_field *f, const eto_parts *p, bool *has_run_time)
{
    eto_raw_attr a;
    orr_code code = raw_attr_split(w, f, &a);
    uint64_t ignored;
    bool is_negative;
    if (!code && orr_str_is(a.attr.name, "comm_type"))
        code = adjust_comm_type(w, &a.attr);
    if (!code && !*has_run_time && orr_str_is(a.attr.name, "runtime") &&
        attr_whole(&a.attr, &ignored, &is_negative)) {
        *has_run_time = true;
        code = adjust_run_time(w, p, &a.attr);
    }
    return code ? code : attr_write(w, OLD_ATTR, &a);
}

static orr_code put_run_time(eto_writer *w, const eto_parts *p)
{
    const eto_raw_attr a = {
        .attr = {.name = {"runtime", 7}, .kind = ORR_VALUE_INT64, .value.u = p->node.duration_us}};
    if (p->node.duration_us > INT64_MAX)
        return refuse_node(w, "its duration is too large");
    return attr_write(w, OLD_ATTR, &a);
}

static orr_code write_node(eto_writer *w, const eto_parts *p)
{
    orr_wire wire = orr_wire_of(p->node.body);
    orr_field f = {0};
    bool has_run_time = false;
    orr_code code = put_io(w, OLD_INPUTS, p->inputs);
    if (!code)
        code = put_io(w, OLD_OUTPUTS, p->outputs);
    while (!code && orr_wire_next(&wire, &f))
        if (f.number == NODE_ATTR)
            code = put_attr(w, &f, p, &has_run_time);
    if (!code && !has_run_time && writes_run_time(p))
        code = put_run_time(w, p);
    return code;
}

static orr_code emit_old_node(eto_writer *w)
{
    eto_parts p;
    const size_t begin = orr_put_begin(&w->out);
    orr_code code = split_node(w, &p);
    if (!code)
        code = put_common(w, &p);
    if (!code && w->g->schema != ORR_SCHEMA_EG)
        code = write_node(w, &p);
    else if (!code && p.inputs.len + p.outputs.len)
        code = refuse_node(w, "it has no place for inputs and outputs");
    else if (!code)
        code = eg_write(w, &p);
    orr_put_end(&w->out, begin);
    return code;
}

static orr_code gather(eto_writer *w, orr_list it, size_t *count)
{
    orr_value v;
    while (orr_list_next(&it, &v)) {
        if (!orr_grow(&w->ids, &w->id_room, *count + 1))
            return orr_no_memory(w->err);
        w->ids[(*count)++] = v.u + w->shift;
    }
    return ORR_OK;
}

/* 2023-10: today's node. */
static orr_code emit_same_node(eto_writer *w)
{
    orr_node node;
    orr_trace_node(w->t, w->index, &node);
    size_t data = 0;
    orr_code code = gather(w, orr_node_data_deps(&node), &data);
    size_t all = data;
    if (!code)
        code = gather(w, orr_node_ctrl_deps(&node), &all);
    if (code)
        return code;
    const orr_edit edit = {.sets_id = true,
                           .sets_data_deps = true,
                           .sets_ctrl_deps = true,
                           .id = node.id + w->shift,
                           .data_deps = w->ids,
                           .ctrl_deps = w->ids ? w->ids + data : NULL,
                           .data_count = data,
                           .ctrl_count = all - data};
    const size_t begin = orr_put_begin(&w->out);
    orr__encode_copy(&w->out, node.body, w->shift ? &edit : NULL);
    orr_put_end(&w->out, begin);
    return ORR_OK;
}

static orr_code emit_meta_attr(eto_writer *w, const orr_field *f)
{
    eto_raw_attr a;
    if (f->number == META_VERSION)
        return ORR_OK; /* the version of another generation */
    if (f->number != META_ATTR || f->type != ORR_WIRE_LEN)
        return refuse_node(w, "it has a field outside the schema");
    if (w->g->schema == ORR_SCHEMA_2023_10) {
        orr_put_bytes(&w->out, OLD_META_ATTR, f->bytes.ptr, f->bytes.len);
        return ORR_OK;
    }
    const orr_code code = raw_attr_split(w, f, &a);
    if (code)
        return code;
    if (!w->g->has_metadata)
        return refuse(w, a.attr.name, "there is no metadata");
    return attr_write(w, OLD_META_ATTR, &a);
}

static orr_code emit_metadata(eto_writer *w)
{
    orr_wire wire = orr_wire_of(orr__trace_meta_body(w->t));
    orr_field f = {0};
    orr_code code = ORR_OK;
    if (!w->t->has_metadata)
        return ORR_OK;
    const size_t begin = orr_put_begin(&w->out);
    w->index = ORR_NO_NODE;
    while (!code && orr_wire_next(&wire, &f))
        code = emit_meta_attr(w, &f);
    if (w->g->has_metadata)
        orr_put_end(&w->out, begin);
    return code;
}

static orr_code emit_all(
    const orr_trace *t, orr_schema schema, uint64_t id_shift, orr_output *o, orr_error *err)
{
    eto_writer w = {.t = t,
                    .g = eto_generation_of(schema),
                    .shift = id_shift,
                    .is_same = t->schema == schema,
                    .err = err};
    orr_code code = emit_metadata(&w);
    for (w.index = 0; !code && w.index < t->count && !orr_output_has_failed(o); w.index++) {
        code = schema == ORR_SCHEMA_2023_10 ? emit_same_node(&w) : emit_old_node(&w);
        if (!code && w.out.failed)
            code = orr_no_memory(err);
        if (w.out.len >= DRAIN_AT)
            orr_output_drain(o, &w.out);
    }
    if (!code && w.out.failed)
        code = orr_no_memory(err);
    orr_output_drain(o, &w.out);
    orr_buf_fini(&w.out);
    orr_free(w.ids);
    return code;
}

const orr__et_old orr__et_legacy = {eto_recognise, read_all, emit_all};
