/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - traces from JSON, recognised by their structure (docs/format/json.md).
 *
 *     document   {"format": "orrery-trace", "version": 1, "metadata": {..}, "nodes": [..]}
 *     lines      {"format": "orrery-trace", "version": 1, "metadata": {..}}, then one node per line
 *     objects    {..}{..}{..}: the old jsonizer's output; the first may be metadata
 *     array      [{..}, {..}]: the same between brackets
 *     feeder     {"workload_graph": [..]}: the C++ feeder's own format
 *
 * One record at a time is parsed to a tree, encoded in the current schema and appended like any
 * other; so the memory needed is that of the trace, independent of the file's size. */
#include "base/formats/json.h"
#include "base/short_forms.h"
#include "base/text/base64.h"
#include "base/text/number.h"
#include "trace/trace_impl.h"

#include <inttypes.h>

/* One read.  What is decoded for a record lives until the next one. */
typedef struct json_source {
    orr_trace *t;
    orr_json *json;
    bool is_lenient;    /* unknown keys are ignored */
    orr_arena *scratch; /* bytes out of base64 */
    orr_value *items;   /* of a list attribute */
    size_t item_room;
    orr_buf part, list; /* messages with unknown fields appended */
    uint64_t released;  /* of the mapped file, up to this byte */
    orr_error *err;
} json_source;

/* Names of a field: protobuf's JSON accepts lowerCamelCase and the schema's own spelling. */
typedef struct json_key {
    const char *camel, *snake;
    uint32_t number;
} json_key;

enum { JSON_SLOTS = 24, JSON_UNKNOWN = 0 };

/* The members of an object by field number; slot 0 is "unknownFields". */
typedef struct json_members {
    uint32_t present;
    orr_json_value at[JSON_SLOTS];
} json_members;

static inline bool json_has(const json_members *m, uint32_t number)
{
    return m->present >> number & 1;
}

/* Reports an error at a value: json_bad(s, v, "expected %s", ...). */
#define json_bad(s, v, ...) \
    orr_fail((s)->err, ORR_EINPUT, json_at(v, &(orr_where){.byte = 0}), __VA_ARGS__)
static inline const orr_where *json_at(orr_json_value v, orr_where *out)
{
    *out = orr_json_where(v);
    return out;
}

static orr_code json_unknown(json_source *s, const json_members *m, orr_span *out);
static orr_code json_put_node(json_source *s, const json_members *m, orr_buf *to);
static orr_code json_append(json_source *s, size_t begin, orr_json_value v);

/* ---- values and attributes from protobuf's JSON (docs/format/json.md).
 *
 * Everything that protobuf's own JSON reader accepts is accepted: 64-bit integers as text or as
 * numbers, 3.0 for 3, "NaN" and "Infinity", enumerators by name or number, null for absent, both
 * spellings of a key.  All errors have the line and column of the value. */

static orr_code json_unknown_key(json_source *s, orr_json_value v, const char *what, orr_str key)
{
    const int shown = key.len < 60 ? (int)key.len : 60;
    if (orr_str_is(key, "schemaVersion") || orr_str_is(key, "traceEvents") ||
        orr_str_is(key, "deviceProperties"))
        return json_bad(s, v,
                        "a timeline of events, such as PyTorch's profiler (Kineto) writes, not a "
                        "trace of nodes; 'orrery link' makes a trace of PyTorch's");
    if (orr_str_is(key, "schema") && what[2] == 't')
        return json_bad(s, v,
                        "an execution trace of PyTorch; 'orrery link' makes a trace of it, alone "
                        "or with the profiler's");
    if (s->is_lenient)
        return ORR_OK;
    return json_bad(s, v, "%s has no member \"%.*s\"", what, shown, key.ptr);
}

static orr_code expected(json_source *s, orr_json_value v, const char *what)
{
    const orr_str raw = orr_json_raw(v);
    const int shown = raw.len < 40 ? (int)raw.len : 40;
    return json_bad(s, v, "expected %s, found %.*s%s", what, shown, raw.ptr,
                    shown < 40 ? "" : "...");
}

/* ---- members ---- */

static const json_key *find_key(const json_key *keys, orr_str name)
{
    for (; keys->camel; keys++)
        if (orr_str_is(name, keys->camel) || (keys->snake && orr_str_is(name, keys->snake)))
            return keys;
    return NULL;
}

static orr_code put_slot(
    json_source *s, json_members *m, uint32_t number, orr_str key, orr_json_value v)
{
    if (json_has(m, number))
        return json_bad(s, v, "duplicate key \"%.*s\"", (int)key.len, key.ptr);
    m->present |= 1u << number;
    m->at[number] = v;
    return ORR_OK;
}

/* Sorts the members of an object into slots.  A duplicate or unknown key is an error with its
 * location; null means absent. */
static orr_code json_sort(json_source *s,
                          orr_json_value object,
                          const char *what,
                          const json_key *keys,
                          json_members *out)
{
    orr_json_iter it = orr_json_iterate(object);
    orr_json_value v;
    orr_str key;
    orr_code code = ORR_OK;
    out->present = 0;
    if (orr_json_type_of(object) != ORR_JSON_OBJECT)
        return expected(s, object, "an object");
    while (!code && orr_json_next_member(&it, &key, &v)) {
        const json_key *k = find_key(keys, key);
        if (!k)
            code = json_unknown_key(s, v, what, key);
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

/* 3.0 and 3e2 are integers too; values that a double cannot represent exactly are not. */
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

/* Values as protobuf's JSON allows them: integers also as text or as 3.0, real numbers also as
 * text. */
static orr_code json_u64(json_source *s, orr_json_value v, uint64_t *out)
{
    if (text_is_integer(number_text(v), false, out))
        return ORR_OK;
    return expected(s, v, "a whole number from 0 to 18446744073709551615");
}

static orr_code read_i64(json_source *s, orr_json_value v, int64_t *out)
{
    uint64_t bits;
    if (!text_is_integer(number_text(v), true, &bits))
        return expected(s, v, "a whole number of 64 bits");
    *out = (int64_t)bits;
    return ORR_OK;
}

static orr_code read_i32(json_source *s, orr_json_value v, int64_t *out)
{
    const orr_code code = read_i64(s, v, out);
    if (!code && (*out < INT32_MIN || *out > INT32_MAX))
        return expected(s, v, "a whole number from -2147483648 to 2147483647");
    return code;
}

static orr_code read_u32(json_source *s, orr_json_value v, uint64_t *out)
{
    const orr_code code = json_u64(s, v, out);
    if (!code && *out > UINT32_MAX)
        return expected(s, v, "a whole number from 0 to 4294967295");
    return code;
}

static bool is_finite(double d)
{
    return d - d == 0;
}

static orr_code read_real(json_source *s, orr_json_value v, bool is_float, double *out)
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

static orr_code read_bytes(json_source *s, orr_json_value v, orr_str *out)
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
        return json_bad(s, v, "not base64: wrong at character %zu of the text", bad + 1);
    *out = (orr_str){(const char *)bytes, len};
    return ORR_OK;
}

static orr_code read_bool(json_source *s, orr_json_value v, uint64_t *out)
{
    bool b = false;
    const orr_code code = orr_json_get_bool(v, &b, s->err);
    *out = b;
    return code;
}

static orr_code json_scalar(json_source *s, orr_json_value v, orr_value_kind kind, orr_value *out)
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
        return json_u64(s, v, &out->u);
    }
}

static orr_code json_node_type(json_source *s, orr_json_value v, uint32_t *out)
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

static orr_code need_array(json_source *s, orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_ARRAY ? ORR_OK : expected(s, v, "an array");
}

static orr_code json_ids(json_source *s, orr_json_value v, uint32_t field, orr_buf *to)
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
        code = json_u64(s, item, &id);
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

static orr_code read_items(json_source *s, orr_json_value array, orr_attr *a)
{
    orr_json_iter it = orr_json_iterate(array);
    orr_json_value v;
    orr_code code = need_array(s, array);
    if (!code && !orr_grow(&s->items, &s->item_room, (size_t)orr_json_count(array) + 1))
        return orr_no_memory(s->err);
    while (!code && orr_json_next_value(&it, &v))
        code = json_scalar(s, v, a->kind, &s->items[a->item_count++]);
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

/* A list with unknown fields is encoded here, as orr__encode_attr does not support them. */
static orr_code append_to_list(json_source *s, orr_span unknown, orr_attr *a)
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

/* {"values": [...]}; a bare array is accepted too. */
static orr_code read_list(json_source *s, orr_json_value v, orr_attr *a)
{
    static const json_key keys[] = {
        {"values", NULL, LIST_VALUES}, {"unknownFields", NULL, JSON_UNKNOWN}, {0}};
    json_members m;
    orr_span unknown;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY)
        return read_items(s, v, a);
    orr_code code = json_sort(s, v, "a list", keys, &m);
    if (!code && json_has(&m, LIST_VALUES))
        code = read_items(s, m.at[LIST_VALUES], a);
    if (!code)
        code = json_unknown(s, &m, &unknown);
    if (!code && unknown.len)
        code = append_to_list(s, unknown, a);
    return code;
}

static orr_code read_member(json_source *s, orr_json_value v, uint32_t member, orr_attr *a)
{
    a->kind = (orr_value_kind)((member - ATTR_FIRST_MEMBER) / 2 + 1);
    a->is_list = (member & 1) == 0;
    return a->is_list ? read_list(s, v, a) : json_scalar(s, v, a->kind, &a->value);
}

static const json_key attr_keys[] = {
    {"name", NULL, ATTR_NAME},
    {"docString", "doc_string", ATTR_DOC},
    {"unknownFields", NULL, JSON_UNKNOWN},
    {0},
};

static orr_code attr_member(
    json_source *s, orr_json_value v, orr_str key, json_members *m, orr_attr *a)
{
    const json_key *k = find_key(attr_keys, key);
    const uint32_t member = k ? 0 : member_of(key);
    if (orr_json_type_of(v) == ORR_JSON_NULL && (k || member))
        return ORR_OK;
    if (k)
        return put_slot(s, m, k->number, key, v);
    if (!member)
        return json_unknown_key(s, v, "an attribute", key);
    if (a->kind != ORR_VALUE_NONE)
        return json_bad(s, v, "an attribute has one value, \"%.*s\" is a second one", (int)key.len,
                        key.ptr);
    return read_member(s, v, member, a);
}

static orr_code read_attr(json_source *s, orr_json_value v, orr_attr *a, orr_span *unknown)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value value;
    json_members m = {.present = 0};
    orr_str key;
    orr_code code =
        orr_json_type_of(v) == ORR_JSON_OBJECT ? ORR_OK : expected(s, v, "an attribute, an object");
    while (!code && orr_json_next_member(&it, &key, &value))
        code = attr_member(s, value, key, &m, a);
    if (!code && json_has(&m, ATTR_NAME))
        code = orr_json_get_str(m.at[ATTR_NAME], &a->name, s->err);
    if (!code && json_has(&m, ATTR_DOC))
        code = orr_json_get_str(m.at[ATTR_DOC], &a->doc, s->err);
    return code ? code : json_unknown(s, &m, unknown);
}

static void put_attr(
    json_source *s, const orr_attr *a, orr_span unknown, uint32_t field, orr_buf *to)
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

/* Attributes of a record, concatenated as field `field`. */
static orr_code json_attrs(json_source *s, orr_json_value v, uint32_t field, orr_buf *to)
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

/* The bytes behind "unknownFields". */
static orr_code json_unknown(json_source *s, const json_members *m, orr_span *out)
{
    orr_str bytes = {"", 0};
    orr_code code = ORR_OK;
    if (json_has(m, JSON_UNKNOWN))
        code = read_bytes(s, m->at[JSON_UNKNOWN], &bytes);
    *out = (orr_span){(const uint8_t *)bytes.ptr, bytes.len};
    return code;
}

/* ---- nodes in the C++ feeder's own JSON, {"workload_graph": [..]} (chakra.md 6.1).
 *
 * Ids and types are numbers there, and attributes are plain keys.  They get the types that the
 * feeder expects in an .et file: is_cpu_op bool, sizes and types 64 bits, peers and priority 32. */

/* Slots: fields under their own numbers, then attributes. */
enum {
    IS_CPU_OP = NODE_ATTR + 1,
    NUM_OPS,
    TENSOR_SIZE,
    COMM_TYPE,
    COMM_PRIORITY,
    COMM_SIZE,
    COMM_SRC,
    COMM_DST,
    COMM_TAG,
    PG_NAME
};

static const json_key keys[] = {
    {"Id", "id", NODE_ID},
    {"Name", "name", NODE_NAME},
    {"NodeType", "node_type", NODE_TYPE},
    {"runtime", NULL, NODE_DURATION},
    {"ctrlDeps", "ctrl_deps", NODE_CTRL_DEPS},
    {"dataDeps", "data_deps", NODE_DATA_DEPS},
    {"is_cpu_op", NULL, IS_CPU_OP},
    {"num_ops", NULL, NUM_OPS},
    {"tensor_size", NULL, TENSOR_SIZE},
    {"comm_type", NULL, COMM_TYPE},
    {"comm_priority", NULL, COMM_PRIORITY},
    {"comm_size", NULL, COMM_SIZE},
    {"comm_src", NULL, COMM_SRC},
    {"comm_dst", NULL, COMM_DST},
    {"comm_tag", NULL, COMM_TAG},
    {"pg_name", NULL, PG_NAME},
    {0},
};

static orr_value_kind kind_of(uint32_t slot)
{
    switch (slot) {
    case IS_CPU_OP:
        return ORR_VALUE_BOOL;
    case TENSOR_SIZE:
        return ORR_VALUE_UINT64;
    case PG_NAME:
        return ORR_VALUE_STRING;
    case COMM_PRIORITY:
    case COMM_SRC:
    case COMM_DST:
    case COMM_TAG:
        return ORR_VALUE_INT32;
    default:
        return ORR_VALUE_INT64;
    }
}

/* 0 and 1 stand for false and true in some of these files. */
static orr_code read_value(json_source *s, orr_json_value v, orr_value_kind kind, orr_value *out)
{
    uint64_t bit;
    const bool is_number = orr_json_type_of(v) == ORR_JSON_INT;
    if (kind != ORR_VALUE_BOOL || !is_number || orr_json_get_u64(v, &bit, NULL) || bit > 1)
        return json_scalar(s, v, kind, out);
    out->u = bit;
    return ORR_OK;
}

static orr_code put_flat_attrs(json_source *s, const json_members *m, orr_buf *to)
{
    for (const json_key *k = keys; k->camel; k++) {
        if (k->number <= NODE_ATTR || !json_has(m, k->number))
            continue;
        orr_attr a = {.name = orr_str_of(k->camel), .doc = {"", 0}, .kind = kind_of(k->number)};
        const orr_code code = read_value(s, m->at[k->number], a.kind, &a.value);
        if (code)
            return code;
        orr__encode_attr(to, NODE_ATTR, &a);
    }
    return ORR_OK;
}

static orr_code need(
    json_source *s, orr_json_value node, const json_members *m, uint32_t slot, const char *key)
{
    return json_has(m, slot) ? ORR_OK : json_bad(s, node, "the node has no \"%s\"", key);
}

/* A node of the C++ feeder's own JSON, chakra.md 6.1. */
static orr_code json_feeder_node(json_source *s, orr_json_value node)
{
    json_members m;
    orr_code code;
    if ((code = json_sort(s, node, "a node of a workload graph", keys, &m)) ||
        (code = need(s, node, &m, NODE_ID, "Id")) ||
        (code = need(s, node, &m, NODE_TYPE, "NodeType")))
        return code;
    const size_t begin = orr_put_begin(&s->t->owned);
    code = json_put_node(s, &m, &s->t->owned);
    if (!code)
        code = put_flat_attrs(s, &m, &s->t->owned);
    return code ? code : json_append(s, begin, node);
}

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

/* An .et file whose first record has 123 bytes begins with '{' too, and 0x0a, a line break, is the
 * tag of the version that follows.  So the whole first key is checked: a text with a length of 34,
 * a quote, would have to contain another quote and a colon, without any control character
 * before. */
bool orr__is_json(orr_span bytes)
{
    if (bytes.len == 0)
        return false; /* also avoids arithmetic on NULL */
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

static const json_key meta_keys[] = {
    {"version", NULL, META_VERSION},
    {"attr", NULL, META_ATTR},
    {"unknownFields", NULL, JSON_UNKNOWN},
    {0},
};

static const json_key node_keys[] = {
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
    {"unknownFields", NULL, JSON_UNKNOWN},
    {0},
};

static const json_key io_keys[] = {
    {"values", NULL, IO_VALUES},
    {"shapes", NULL, IO_SHAPES},
    {"types", NULL, IO_TYPES},
    {"unknownFields", NULL, JSON_UNKNOWN},
    {0},
};

static orr_code put_text(json_source *s, const json_members *m, uint32_t field, orr_buf *to)
{
    orr_str text;
    if (!json_has(m, field))
        return ORR_OK;
    const orr_code code = orr_json_get_str(m->at[field], &text, s->err);
    if (!code && text.len)
        orr_put_bytes(to, field, text.ptr, text.len);
    return code;
}

static orr_code put_u64(json_source *s, const json_members *m, uint32_t field, orr_buf *to)
{
    uint64_t v;
    if (!json_has(m, field))
        return ORR_OK;
    const orr_code code = json_u64(s, m->at[field], &v);
    if (!code && v)
        orr_put_uint(to, field, v);
    return code;
}

static orr_code put_type(json_source *s, const json_members *m, orr_buf *to)
{
    uint32_t type = 0;
    if (!json_has(m, NODE_TYPE))
        return ORR_OK;
    const orr_code code = json_node_type(s, m->at[NODE_TYPE], &type);
    if (!code && type)
        orr_put_uint(to, NODE_TYPE, (uint64_t)(int64_t)(int32_t)type);
    return code;
}

static orr_code put_ids(json_source *s, const json_members *m, uint32_t field, orr_buf *to)
{
    return json_has(m, field) ? json_ids(s, m->at[field], field, to) : ORR_OK;
}

static orr_code put_attrs(json_source *s, const json_members *m, uint32_t field, orr_buf *to)
{
    return json_has(m, field) ? json_attrs(s, m->at[field], field, to) : ORR_OK;
}

static orr_code put_unknown(json_source *s, const json_members *m, orr_buf *to)
{
    orr_span unknown;
    const orr_code code = json_unknown(s, m, &unknown);
    if (!code)
        orr_buf_add(to, unknown.ptr, unknown.len);
    return code;
}

static orr_code put_io(json_source *s, const json_members *m, uint32_t field, orr_buf *to)
{
    json_members io;
    if (!json_has(m, field))
        return ORR_OK;
    orr_code code = json_sort(s, m->at[field], "inputs and outputs", io_keys, &io);
    orr_put_tag(to, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(to);
    for (uint32_t i = IO_VALUES; i <= IO_TYPES && !code; i++)
        code = put_text(s, &io, i, to);
    if (!code)
        code = put_unknown(s, &io, to);
    orr_put_end(to, begin);
    return code;
}

/* The fields of a node, in number order, like every protobuf library. */
static orr_code json_put_node(json_source *s, const json_members *m, orr_buf *to)
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

/* Makes a record of what was encoded into s->t->owned since begin; v is its source. */
static orr_code json_append(json_source *s, size_t begin, orr_json_value v)
{
    if (s->t->owned.len == begin)
        orr_put_uint(&s->t->owned, NODE_ID,
                     0); /* an empty record would end the file for some readers */
    const orr_code code = orr__trace_append_body(s->t, begin, orr_json_byte(v), s->err);
    if (code == ORR_EINPUT && s->err)
        s->err->where = orr_json_where(v); /* only unknownFields can be wrong here: show the line */
    return code;
}

static orr_code read_node(json_source *s, orr_json_value v)
{
    json_members m;
    orr_code code = json_sort(s, v, "a node", node_keys, &m);
    if (code)
        return code;
    const size_t begin = orr_put_begin(&s->t->owned);
    code = json_put_node(s, &m, &s->t->owned);
    return code ? code : json_append(s, begin, v);
}

/* unknownFields may hold anything: the finished record is checked like one from a file. */
static orr_code check_meta(json_source *s, orr_json_value v)
{
    orr__scan *scan = &s->t->scan;
    if (s->t->owned.failed)
        return orr_no_memory(s->err);
    if (orr__scan_meta(scan, orr__trace_meta_body(s->t)))
        return ORR_OK;
    return json_bad(s, v, "the metadata: %s", scan->why);
}

static orr_code read_meta(json_source *s, orr_json_value v)
{
    orr_trace *t = s->t;
    json_members m;
    if (t->has_metadata || t->count)
        return json_bad(s, v, "the metadata must come before all nodes, once");
    orr_code code = json_sort(s, v, "metadata", meta_keys, &m);
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

typedef orr_code record_reader(json_source *s, orr_json_value v);

/* Releases pages of a mapped file that have been read; memory is for the trace. */
static void release_behind(json_source *s, uint64_t byte)
{
    if (s->t->source && byte >= s->released + RELEASE_EVERY) {
        orr_input_release(s->t->source, s->released, byte);
        s->released = byte;
    }
}

/* All items of what was entered last, or all remaining documents. */
static orr_code read_records(json_source *s, record_reader *read)
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

/* A first object with only metadata's keys is metadata: the old jsonizer always writes one. */
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

static orr_code read_meta_or_node(json_source *s, orr_json_value v)
{
    const bool is_first = !s->t->has_metadata && s->t->count == 0;
    return is_first && looks_like_meta(v) ? read_meta(s, v) : read_node(s, v);
}

static orr_code enter_array(json_source *s, const orr_json_item *item)
{
    if (item->type == ORR_JSON_ARRAY)
        return orr_json_enter(s->json, s->err);
    return orr_fail(s->err, ORR_EINPUT, ORR_AT(orr_json_place(s->json, item->byte)),
                    "expected an array of nodes, found %s", orr_json_type_name(item->type));
}

static orr_code check_format(json_source *s, orr_json_value v)
{
    orr_str name;
    const orr_code code = orr_json_get_str(v, &name, s->err);
    if (code || orr_str_is(name, "orrery-trace"))
        return code;
    return json_bad(s, v, "the format is \"%.*s\", not \"orrery-trace\"", ORR_SHOWN(name, 60));
}

static orr_code check_version(json_source *s, orr_json_value v)
{
    uint64_t version;
    const orr_code code = json_u64(s, v, &version);
    if (code || version == 1)
        return code;
    return json_bad(s, v, "version %" PRIu64 " of the format; this program knows version 1",
                    version);
}

/* A member of a document that is small enough to be a tree. */
static orr_code read_heading(json_source *s, const orr_json_item *item)
{
    orr_json_value v;
    char key[60];
    const size_t len = item->key.len < sizeof key ? item->key.len : sizeof key;
    memcpy(key, item->key.ptr, len); /* invalid after the value is loaded */
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
    return json_unknown_key(s, v, "a trace", name);
}

static orr_code read_nodes(json_source *s, const orr_json_item *item, record_reader *read)
{
    const orr_code code = enter_array(s, item);
    return code ? code : read_records(s, read);
}

/* The members of the object just entered. */
static orr_code read_document(json_source *s, bool *has_nodes)
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

/* Other members of a feeder's file (a name, a number of ranks) are not part of a trace. */
static orr_code read_workload(json_source *s)
{
    orr_json_item item;
    orr_code code;
    while ((code = orr_json_next(s->json, &item, s->err)) == ORR_OK)
        if (orr_str_is(item.key, "workload_graph") &&
            (code = read_nodes(s, &item, json_feeder_node)))
            return code;
    return code == ORR_END ? ORR_OK : code;
}

static orr_code refuse_more(json_source *s)
{
    orr_json_item item;
    const orr_code code = orr_json_next(s->json, &item, s->err);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    return orr_fail(s->err, ORR_EINPUT, ORR_AT(orr_json_place(s->json, item.byte)),
                    "there is data after the end of the trace");
}

/* Enters the single or first document of the file. */
static orr_code enter_document(json_source *s)
{
    orr_json_item item;
    const orr_code code = orr_json_next(s->json, &item, s->err);
    return code ? code : orr_json_enter(s->json, s->err);
}

static orr_code read_document_file(json_source *s)
{
    bool has_nodes = false;
    orr_code code = enter_document(s);
    if (!code)
        code = read_document(s, &has_nodes);
    if (code)
        return code;
    return has_nodes ? refuse_more(s) : read_records(s, read_node);
}

static orr_code read_feeder_file(json_source *s)
{
    orr_code code = enter_document(s);
    if (!code)
        code = read_workload(s);
    return code ? code : refuse_more(s);
}

static orr_code read_array_file(json_source *s)
{
    orr_code code = enter_document(s);
    if (!code)
        code = read_records(s, read_meta_or_node);
    return code ? code : refuse_more(s);
}

static orr_code read_object_file(json_source *s)
{
    return read_records(s, read_meta_or_node);
}

typedef orr_code file_reader(json_source *s);

/* The format implied by a key of the first object; NULL: not by this one. */
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

/* The first item of the file determines its format; json must be fresh and is consumed. */
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

static orr_code read_all(json_source *s, orr_span bytes, const orr_read_options *opt)
{
    file_reader *read;
    orr_code code = recognise_bytes(s->t, bytes, &read, s->err);
    if (code || (code = orr_json_open(bytes, s->t->path, &s->json, s->err)))
        return code;
    if (!(s->scratch = orr_arena_create()))
        return orr_no_memory(s->err);
    if ((code = read(s)) || s->t->has_metadata || !opt->first_is_metadata)
        return code;
    return orr_fail(s->err, ORR_EINPUT, ORR_AT(orr_json_place(s->json, 0)),
                    "the first record is not metadata");
}

orr_code orr__json_read(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err)
{
    json_source s = {.t = t, .is_lenient = opt->leniency != ORR_STRICT, .err = err};
    t->scan.is_lenient = s.is_lenient;
    const orr_code code = read_all(&s, bytes, opt);
    orr_json_close(s.json);
    orr_arena_destroy(s.scratch);
    orr_free(s.items);
    orr_buf_fini(&s.part);
    orr_buf_fini(&s.list);
    return code;
}
