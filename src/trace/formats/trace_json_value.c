/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json_value.c - values and attributes from protobuf's JSON (docs/format/json.md).
 *
 * Everything that protobuf's own JSON reader takes is taken: 64-bit integers as text or as numbers, 3.0 for
 * 3, "NaN" and "Infinity", enumerators by name or number, null for absent, both spellings of a key.  All
 * complaints name the line and column of the value. */
#include "trace_json_impl.h"

#include "base/text/base64.h"
#include "base/text/number.h"

orr_code orr__json_unknown_key(orr__json_source *s, orr_json_value v, const char *what, orr_str key)
{
    const int shown = key.len < 60 ? (int)key.len : 60;
    if (s->is_lenient)
        return ORR_OK;
    return orr__json_bad(s, v, "%s has no member \"%.*s\"", what, shown, key.ptr);
}

static orr_code expected(orr__json_source *s, orr_json_value v, const char *what)
{
    const orr_str raw = orr_json_raw(v);
    const int shown = raw.len < 40 ? (int)raw.len : 40;
    return orr__json_bad(s, v, "expected %s, found %.*s%s", what, shown, raw.ptr,
                         shown < 40 ? "" : "...");
}

/* ---- members ---- */

static const orr__json_key *find_key(const orr__json_key *keys, orr_str name)
{
    for (; keys->camel; keys++)
        if (orr_str_is(name, keys->camel) || (keys->snake && orr_str_is(name, keys->snake)))
            return keys;
    return NULL;
}

static orr_code put_slot(
    orr__json_source *s, orr__json_members *m, uint32_t number, orr_str key, orr_json_value v)
{
    if (orr__json_has(m, number))
        return orr__json_bad(s, v, "\"%.*s\" is there twice", (int)key.len, key.ptr);
    m->present |= 1u << number;
    m->at[number] = v;
    return ORR_OK;
}

orr_code orr__json_sort(orr__json_source *s,
                        orr_json_value object,
                        const char *what,
                        const orr__json_key *keys,
                        orr__json_members *out)
{
    orr_json_iter it = orr_json_iterate(object);
    orr_json_value v;
    orr_str key;
    orr_code code = ORR_OK;
    out->present = 0;
    if (orr_json_type_of(object) != ORR_JSON_OBJECT)
        return expected(s, object, "an object");
    while (!code && orr_json_next_member(&it, &key, &v)) {
        const orr__json_key *k = find_key(keys, key);
        if (!k)
            code = orr__json_unknown_key(s, v, what, key);
        else if (orr_json_type_of(v) != ORR_JSON_NULL)
            code = put_slot(s, out, k->number, key, v);
    }
    return code;
}

/* ---- numbers ---- */

static double limit_of(bool is_signed)
{
    return is_signed ? 9223372036854775808.0 : 18446744073709551616.0;
}

/* 3.0 and 3e2 are integers too; what a double cannot hold exactly is not. */
static bool real_is_integer(orr_str text, bool is_signed, uint64_t *out)
{
    double d;
    if (!orr_text_double(text, &d) || !(d < limit_of(is_signed)) ||
        !(d >= (is_signed ? -limit_of(true) : 0)))
        return false;
    *out = is_signed ? (uint64_t)(int64_t)d : (uint64_t)d;
    return d == (is_signed ? (double)(int64_t)*out : (double)*out);
}

static bool text_is_integer(orr_str text, bool is_signed, uint64_t *out)
{
    int64_t i;
    if (!is_signed && orr_text_u64(text, out))
        return true;
    if (orr_text_i64(text, &i) && (is_signed || i == 0)) {
        *out = (uint64_t)i;
        return true;
    }
    return real_is_integer(text, is_signed, out);
}

static orr_str number_text(orr_json_value v)
{
    orr_str text = {"", 0};
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_INT || type == ORR_JSON_REAL)
        return orr_json_raw(v);
    return orr_json_get_str(v, &text, NULL) ? (orr_str){"", 0} : text;
}

orr_code orr__json_u64(orr__json_source *s, orr_json_value v, uint64_t *out)
{
    if (text_is_integer(number_text(v), false, out))
        return ORR_OK;
    return expected(s, v, "a whole number from 0 to 18446744073709551615");
}

static orr_code read_i64(orr__json_source *s, orr_json_value v, int64_t *out)
{
    uint64_t bits;
    if (!text_is_integer(number_text(v), true, &bits))
        return expected(s, v, "a whole number of 64 bits");
    *out = (int64_t)bits;
    return ORR_OK;
}

static orr_code read_i32(orr__json_source *s, orr_json_value v, int64_t *out)
{
    const orr_code code = read_i64(s, v, out);
    if (!code && (*out < INT32_MIN || *out > INT32_MAX))
        return expected(s, v, "a whole number from -2147483648 to 2147483647");
    return code;
}

static orr_code read_u32(orr__json_source *s, orr_json_value v, uint64_t *out)
{
    const orr_code code = orr__json_u64(s, v, out);
    if (!code && *out > UINT32_MAX)
        return expected(s, v, "a whole number from 0 to 4294967295");
    return code;
}

static bool is_finite(double d)
{
    return d - d == 0;
}

static orr_code read_real(orr__json_source *s, orr_json_value v, bool is_float, double *out)
{
    const orr_str text = number_text(v);
    if (!orr_text_double(text, out))
        return expected(s, v, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
    const bool is_digits =
        text.len && (text.ptr[text.len - 1] >= '0' && text.ptr[text.len - 1] <= '9');
    if (is_digits && !is_finite(is_float ? (double)(float)*out : *out))
        return expected(s, v,
                        is_float ? "a number that fits a float" : "a number that fits a double");
    return ORR_OK;
}

static orr_code read_bytes(orr__json_source *s, orr_json_value v, orr_str *out)
{
    orr_str text;
    size_t len = 0, bad;
    const orr_code code = orr_json_get_str(v, &text, s->err);
    if (code)
        return code;
    uint8_t *bytes = orr_arena_take(s->scratch, text.len / 4 * 3 + 3);
    if (!bytes)
        return orr_no_memory(s->err);
    if (!orr_base64_get(text, bytes, &len, &bad))
        return orr__json_bad(s, v, "not base64: wrong at character %zu of the text", bad + 1);
    *out = (orr_str){(const char *)bytes, len};
    return ORR_OK;
}

static orr_code read_bool(orr__json_source *s, orr_json_value v, uint64_t *out)
{
    bool b = false;
    const orr_code code = orr_json_get_bool(v, &b, s->err);
    *out = b;
    return code;
}

orr_code orr__json_scalar(orr__json_source *s,
                          orr_json_value v,
                          orr_value_kind kind,
                          orr_value *out)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        return read_real(s, v, kind == ORR_VALUE_FLOAT, &out->d);
    case ORR_VALUE_INT32:
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SFIXED32:
        return read_i32(s, v, &out->i);
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        return read_u32(s, v, &out->u);
    case ORR_VALUE_INT64:
    case ORR_VALUE_SINT64:
    case ORR_VALUE_SFIXED64:
        return read_i64(s, v, &out->i);
    case ORR_VALUE_BOOL:
        return read_bool(s, v, &out->u);
    case ORR_VALUE_STRING:
        return orr_json_get_str(v, &out->s, s->err);
    case ORR_VALUE_BYTES:
        return read_bytes(s, v, &out->s);
    default:
        return orr__json_u64(s, v, &out->u);
    }
}

orr_code orr__json_node_type(orr__json_source *s, orr_json_value v, uint32_t *out)
{
    orr_str name;
    int64_t number = 0;
    if (orr_json_type_of(v) == ORR_JSON_STRING && !orr_json_get_str(v, &name, NULL)) {
        for (uint32_t i = 0; i < ORR_NODE_TYPE_COUNT; i++)
            if (orr_str_is(name, orr_node_type_name(i))) {
                *out = i;
                return ORR_OK;
            }
    }
    if (orr_json_type_of(v) != ORR_JSON_INT)
        return expected(s, v, "a node type: a name such as \"COMP_NODE\", or its number");
    const orr_code code = read_i32(s, v, &number);
    if (!code && !s->is_lenient && (number < 0 || number >= ORR_NODE_TYPE_COUNT))
        return expected(s, v, "the number of a node type, 0 to 10");
    *out = (uint32_t)number;
    return code;
}

static orr_code need_array(orr__json_source *s, orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_ARRAY ? ORR_OK : expected(s, v, "an array");
}

orr_code orr__json_ids(orr__json_source *s, orr_json_value v, uint32_t field, orr_buf *to)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value item;
    uint64_t id = 0;
    orr_code code = need_array(s, v);
    if (code || orr_json_count(v) == 0)
        return code;
    orr_put_tag(to, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(to);
    while (!code && orr_json_next_value(&it, &item)) {
        code = orr__json_u64(s, item, &id);
        orr_put_varint(to, id);
    }
    orr_put_end(to, begin);
    return code;
}

/* ---- attributes ---- */

/* "int64Val", "int64_val", "int64List", "int64_list": the number of the member; 0: none of them. */
static uint32_t member_of(orr_str key)
{
    static const char *const kinds[] = {
        "",       "double",  "float",   "int32",    "int64",    "uint32", "uint64", "sint32",
        "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",   "string", "bytes"};
    static const struct {
        const char *text;
        size_t len;
        bool is_list;
    } tails[] = {{"Val", 3, false}, {"List", 4, true}, {"_val", 4, false}, {"_list", 5, true}};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        if (key.len <= tails[i].len ||
            memcmp(key.ptr + key.len - tails[i].len, tails[i].text, tails[i].len) != 0)
            continue;
        const orr_str kind = {key.ptr, key.len - tails[i].len};
        for (uint32_t k = ORR_VALUE_DOUBLE; k < ORR_VALUE_KIND_COUNT; k++)
            if (orr_str_is(kind, kinds[k]))
                return ATTR_FIRST_MEMBER + 2 * (k - 1) + tails[i].is_list;
    }
    return 0;
}

static orr_code read_items(orr__json_source *s, orr_json_value array, orr_attr *a)
{
    orr_json_iter it = orr_json_iterate(array);
    orr_json_value v;
    orr_code code = need_array(s, array);
    if (!code && !orr_grow(&s->items, &s->item_room, (size_t)orr_json_count(array) + 1))
        return orr_no_memory(s->err);
    while (!code && orr_json_next_value(&it, &v))
        code = orr__json_scalar(s, v, a->kind, &s->items[a->item_count++]);
    a->items = s->items;
    return code;
}

/* The message inside an encoded field: what follows its tag and length. */
static orr_span message_of(const orr_buf *b)
{
    orr_wire w = {b->ptr, b->ptr + b->len, NULL};
    orr_field f = {.bytes = {NULL, 0}};
    return b->len && orr_wire_next(&w, &f) ? f.bytes : (orr_span){NULL, 0};
}

/* A list that carries unknown fields is encoded here, as orr__encode_attr knows nothing of them. */
static orr_code append_to_list(orr__json_source *s, orr_span unknown, orr_attr *a)
{
    orr_attr bare = *a;
    orr_wire w;
    orr_field f = {.bytes = {NULL, 0}};
    bare.name = bare.doc = (orr_str){"", 0};
    s->list.len = 0;
    orr__encode_attr(&s->list, ATTR_NAME, &bare);
    if (s->list.failed)
        return orr_no_memory(s->err);
    w = orr_wire_of(message_of(&s->list));
    if (!orr_wire_next(&w, &f))
        return orr_fail(s->err, ORR_EBUG, NULL, "an encoded list cannot be read back");
    const size_t from = (size_t)(f.bytes.ptr - s->list.ptr), len = f.bytes.len;
    orr_buf_add(&s->list, unknown.ptr, unknown.len);
    if (s->list.failed)
        return orr_no_memory(s->err);
    a->items = NULL;
    a->list = (orr_span){s->list.ptr + from, len + unknown.len};
    return ORR_OK;
}

/* {"values": [...]}; the array alone is understood too. */
static orr_code read_list(orr__json_source *s, orr_json_value v, orr_attr *a)
{
    static const orr__json_key keys[] = {
        {"values", NULL, LIST_VALUES}, {"unknownFields", NULL, ORR__JSON_UNKNOWN}, {0}};
    orr__json_members m;
    orr_span unknown;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY)
        return read_items(s, v, a);
    orr_code code = orr__json_sort(s, v, "a list", keys, &m);
    if (!code && orr__json_has(&m, LIST_VALUES))
        code = read_items(s, m.at[LIST_VALUES], a);
    if (!code)
        code = orr__json_unknown(s, &m, &unknown);
    if (!code && unknown.len)
        code = append_to_list(s, unknown, a);
    return code;
}

static orr_code read_member(orr__json_source *s, orr_json_value v, uint32_t member, orr_attr *a)
{
    a->kind = (orr_value_kind)((member - ATTR_FIRST_MEMBER) / 2 + 1);
    a->is_list = (member & 1) == 0;
    return a->is_list ? read_list(s, v, a) : orr__json_scalar(s, v, a->kind, &a->value);
}

static const orr__json_key attr_keys[] = {
    {"name", NULL, ATTR_NAME},
    {"docString", "doc_string", ATTR_DOC},
    {"unknownFields", NULL, ORR__JSON_UNKNOWN},
    {0},
};

static orr_code attr_member(
    orr__json_source *s, orr_json_value v, orr_str key, orr__json_members *m, orr_attr *a)
{
    const orr__json_key *k = find_key(attr_keys, key);
    const uint32_t member = k ? 0 : member_of(key);
    if (orr_json_type_of(v) == ORR_JSON_NULL && (k || member))
        return ORR_OK;
    if (k)
        return put_slot(s, m, k->number, key, v);
    if (!member)
        return orr__json_unknown_key(s, v, "an attribute", key);
    if (a->kind != ORR_VALUE_NONE)
        return orr__json_bad(s, v, "an attribute has one value, \"%.*s\" is a second one",
                             (int)key.len, key.ptr);
    return read_member(s, v, member, a);
}

static orr_code read_attr(orr__json_source *s, orr_json_value v, orr_attr *a, orr_span *unknown)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value value;
    orr__json_members m = {.present = 0};
    orr_str key;
    orr_code code =
        orr_json_type_of(v) == ORR_JSON_OBJECT ? ORR_OK : expected(s, v, "an attribute, an object");
    while (!code && orr_json_next_member(&it, &key, &value))
        code = attr_member(s, value, key, &m, a);
    if (!code && orr__json_has(&m, ATTR_NAME))
        code = orr_json_get_str(m.at[ATTR_NAME], &a->name, s->err);
    if (!code && orr__json_has(&m, ATTR_DOC))
        code = orr_json_get_str(m.at[ATTR_DOC], &a->doc, s->err);
    return code ? code : orr__json_unknown(s, &m, unknown);
}

static void put_attr(
    orr__json_source *s, const orr_attr *a, orr_span unknown, uint32_t field, orr_buf *to)
{
    if (unknown.len == 0) {
        orr__encode_attr(to, field, a);
        return;
    }
    s->part.len = 0;
    orr__encode_attr(&s->part, field, a);
    to->failed |= s->part.failed;
    const orr_span own = message_of(&s->part);
    orr_put_tag(to, field, ORR_WIRE_LEN);
    orr_put_varint(to, own.len + unknown.len);
    orr_buf_add(to, own.ptr, own.len);
    orr_buf_add(to, unknown.ptr, unknown.len);
}

orr_code orr__json_attrs(orr__json_source *s, orr_json_value v, uint32_t field, orr_buf *to)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value item;
    orr_code code = need_array(s, v);
    while (!code && orr_json_next_value(&it, &item)) {
        orr_attr a = {.name = {"", 0}, .doc = {"", 0}};
        orr_span unknown;
        code = read_attr(s, item, &a, &unknown);
        if (!code)
            put_attr(s, &a, unknown, field, to);
    }
    return code;
}

orr_code orr__json_unknown(orr__json_source *s, const orr__json_members *m, orr_span *out)
{
    orr_str bytes = {"", 0};
    orr_code code = ORR_OK;
    if (orr__json_has(m, ORR__JSON_UNKNOWN))
        code = read_bytes(s, m->at[ORR__JSON_UNKNOWN], &bytes);
    *out = (orr_span){(const uint8_t *)bytes.ptr, bytes.len};
    return code;
}
