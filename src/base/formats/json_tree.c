/* SPDX-License-Identifier: Apache-2.0 */
/* json_tree.c - access to the values of a loaded tree.
 *
 * A tree exists only if all of it is valid JSON.  A value may still have the wrong type; then its
 * place is in the message. */
#include "base/text/number.h"
#include "json_impl.h"

#include <inttypes.h>
#include <stdio.h>

const char *orr_json_type_name(orr_json_type type)
{
    static const char *const names[] = {
        [ORR_JSON_NULL] = "null",       [ORR_JSON_BOOL] = "true or false",
        [ORR_JSON_INT] = "an integer",  [ORR_JSON_REAL] = "a number",
        [ORR_JSON_STRING] = "a string", [ORR_JSON_ARRAY] = "an array",
        [ORR_JSON_OBJECT] = "an object"};
    return names[type];
}

orr_where orr_json_place(const orr_json *j, uint64_t byte)
{
    orr_where where = orr_where_byte(j->path, byte);
    uint64_t lines = 0, columns = 0;
    const char *p = j->text, *end = j->text + (byte < j->len ? byte : j->len);
    for (const char *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
        lines++;
    for (; p < end; p++)
        columns += !orr__utf8_follows((uint8_t)*p);
    where.line = lines < UINT32_MAX ? (uint32_t)lines + 1 : UINT32_MAX;
    where.column = columns < UINT32_MAX ? (uint32_t)columns + 1 : UINT32_MAX;
    return where;
}

uint64_t orr_json_byte(orr_json_value v)
{
    const orr__json_tree *t = v.tree;
    return (uint64_t)(t->text - t->reader->text) + t->nodes[v.node].at;
}

orr_where orr_json_where(orr_json_value v)
{
    return orr_json_place(v.tree->reader, orr_json_byte(v));
}

static uint32_t scalar_length(const orr__json_tree *t, uint32_t node)
{
    return t->nodes[node].info & ~ORR__JSON_FLAG;
}

orr_str orr_json_raw(orr_json_value v)
{
    const orr__json_tree *t = v.tree;
    const orr__json_node n = t->nodes[v.node];
    const char *p = t->text + n.at;
    if (*p == '"') {
        const bool escaped = n.info & ORR__JSON_FLAG;
        const uint32_t length = escaped ? t->decoded[n.info & ~ORR__JSON_FLAG].raw_length : n.info;
        return (orr_str){.ptr = p, .len = (size_t)length + 2};
    }
    if (orr__json_is_container(t, v.node))
        return (orr_str){.ptr = p, .len = (size_t)(t->nodes[n.info - 1].at - n.at) + 1};
    return (orr_str){.ptr = p, .len = scalar_length(t, v.node)};
}

uint32_t orr_json_count(orr_json_value v)
{
    const orr__json_tree *t = v.tree;
    return orr__json_is_container(t, v.node) ? t->nodes[t->nodes[v.node].info - 1].info : 0;
}

/* A key as it stands in the file has the length of its text: nearly all others differ in that. */
static inline bool is_key(const orr__json_tree *t, uint32_t node, orr_str key)
{
    const orr__json_node n = t->nodes[node];
    if (n.info & ORR__JSON_FLAG)
        return orr_str_equal(orr__json_string(t, node), key);
    return n.info == key.len && memcmp(t->text + n.at + 1, key.ptr, key.len) == 0;
}

bool orr_json_find(orr_json_value v, const char *key, orr_json_value *out)
{
    const orr_str wanted = {key, strlen(key)};
    const orr__json_tree *t = v.tree;
    uint32_t found = 0; /* none: a value stands after its object */
    orr_json_iter it = orr_json_iterate(v);
    if (!it.keyed)
        return false;
    while (it.node < it.end) {
        const uint32_t value = it.node + 1;
        if (is_key(t, it.node, wanted))
            found = value;
        it.node = orr__json_is_container(t, value) ? t->nodes[value].info : value + 1;
    }
    if (found)
        *out = (orr_json_value){.tree = t, .node = found};
    return found != 0;
}

static orr_code wrong(orr_json_value v, const char *expected, orr_error *err)
{
    const orr_json_type type = orr_json_type_of(v);
    const orr_where where = orr_json_where(v);
    const orr_str raw = orr_json_raw(v);
    const int shown = raw.len < 40 ? (int)raw.len : 40;
    if (type >= ORR_JSON_ARRAY)
        return orr_fail(err, ORR_EINPUT, &where, "expected %s, found %s", expected,
                        orr_json_type_name(type));
    return orr_fail(err, ORR_EINPUT, &where, "expected %s, found %.*s%s", expected, shown, raw.ptr,
                    shown < 40 ? "" : "...");
}

orr_code orr_json_get_bool(orr_json_value v, bool *out, orr_error *err)
{
    if (orr_json_type_of(v) != ORR_JSON_BOOL)
        return wrong(v, "true or false", err);
    *out = v.tree->text[v.tree->nodes[v.node].at] == 't';
    return ORR_OK;
}

orr_code orr_json_get_i64(orr_json_value v, int64_t *out, orr_error *err)
{
    if (orr_json_type_of(v) != ORR_JSON_INT)
        return wrong(v, "an integer", err);
    return orr_text_i64(orr_json_raw(v), out) ? ORR_OK : wrong(v, "an integer of 64 bits", err);
}

/* An unsigned integer that fits for any digits: nearly all of them.  The reader checked the
 * digits. */
static bool get_short(orr_json_value v, uint64_t *out)
{
    enum { DIGITS = 19 }; /* 10^19 is below 2^64 */
    const orr__json_node n = v.tree->nodes[v.node];
    const char *p = v.tree->text + n.at;
    uint64_t value = 0;
    if (n.info > DIGITS ||
        (uint8_t)(*p - '0') > 9) /* the flag of a real number is above all lengths */
        return false;
    for (uint32_t i = 0; i < n.info; i++)
        value = value * 10 + (uint64_t)(p[i] - '0');
    *out = value;
    return true;
}

orr_code orr_json_get_u64(orr_json_value v, uint64_t *out, orr_error *err)
{
    if (get_short(v, out))
        return ORR_OK;
    if (orr_json_type_of(v) != ORR_JSON_INT)
        return wrong(v, "an integer", err);
    return orr_text_u64(orr_json_raw(v), out)
               ? ORR_OK
               : wrong(v, "an integer from 0 to 18446744073709551615", err);
}

orr_code orr_json_get_double(orr_json_value v, double *out, orr_error *err)
{
    const orr_json_type type = orr_json_type_of(v);
    if (type != ORR_JSON_INT && type != ORR_JSON_REAL)
        return wrong(v, "a number", err);
    return orr_text_double(orr_json_raw(v), out) ? ORR_OK : wrong(v, "a number", err);
}

orr_code orr_json_get_str(orr_json_value v, orr_str *out, orr_error *err)
{
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return wrong(v, "a string", err);
    *out = orr__json_string(v.tree, v.node);
    return ORR_OK;
}
