/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - libyaml's document tree behind our names.  Configuration files only, and bounded: a
 * network of 100,000 links written one by one has about 8 MB.  An alias is one node more, so that
 * it cannot blow up a reader that goes as deep as its file format and no deeper. */
#include "yaml.h"

#include "base/short_forms.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include <orrery/lab/units.h>

enum { MOST_BYTES = 16 << 20, MOST_DEPTH = 100 };

struct orr_yaml {
    yaml_document_t document;
    bool is_loaded;
    char *path;
};

static uint32_t as_line(size_t n)
{
    return n < UINT32_MAX ? (uint32_t)n + 1 : UINT32_MAX;
}

/* libyaml visits every open bracket for every token, so a file of brackets takes quadratic time.
 * Brackets in quotes and comments count as well: no real file has a hundred open ones. */
static orr_code check_depth(const orr_yaml *y, orr_span bytes, orr_error *err)
{
    uint32_t depth = 0, line = 1;
    for (size_t i = 0; i < bytes.len; i++) {
        const uint8_t c = bytes.ptr[i];
        line += c == '\n';
        depth += c == '[' || c == '{';
        depth -= depth && (c == ']' || c == '}');
        if (depth > MOST_DEPTH)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(y->path, line, 1)),
                            "brackets are nested deeper than %d levels", MOST_DEPTH);
    }
    return ORR_OK;
}

static orr_code load(orr_yaml *y, orr_span bytes, orr_error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return orr_no_memory(err);
    yaml_parser_set_input_string(&parser, bytes.ptr, bytes.len);
    orr_code code = ORR_OK;
    if (!yaml_parser_load(&parser, &y->document)) {
        code =
            parser.error == YAML_MEMORY_ERROR
                ? orr_no_memory(err)
                : orr_fail(err, ORR_EINPUT,
                           ORR_AT(orr_where_line(y->path, as_line(parser.problem_mark.line),
                                                 as_line(parser.problem_mark.column))),
                           "not valid YAML: %s", parser.problem ? parser.problem : "unknown error");
    } else {
        y->is_loaded = true;
    }
    yaml_parser_delete(&parser);
    return code;
}

orr_code orr_yaml_open(orr_span bytes, const char *path, orr_yaml **out, orr_error *err)
{
    *out = NULL;
    if (bytes.len > MOST_BYTES)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
                        "larger than 16 MiB: not a configuration file");
    orr_yaml *y = orr_alloc(1, sizeof *y);
    if (!y || !(y->path = orr_alloc(strlen(path) + 1, 1))) {
        orr_free(y);
        return orr_no_memory(err);
    }
    memcpy(y->path, path, strlen(path) + 1);
    orr_code code = check_depth(y, bytes, err);
    if (!code)
        code = load(y, bytes, err);
    if (code)
        orr_yaml_close(y);
    else
        *out = y;
    return code;
}

void orr_yaml_close(orr_yaml *y)
{
    if (!y)
        return;
    if (y->is_loaded)
        yaml_document_delete(&y->document);
    orr_free(y->path);
    orr_free(y);
}

static yaml_node_t *node_of(orr_yaml_value v)
{
    return v.node > 0 ? yaml_document_get_node(&v.doc->document, v.node) : NULL;
}

orr_yaml_value orr_yaml_root(orr_yaml *y)
{
    const bool has_root = yaml_document_get_root_node(&y->document) != NULL;
    return (orr_yaml_value){y, has_root ? 1 : 0};
}

orr_yaml_type orr_yaml_type_of(orr_yaml_value v)
{
    const yaml_node_t *n = node_of(v);
    if (!n)
        return ORR_YAML_NOTHING;
    switch (n->type) {
    case YAML_SCALAR_NODE:
        return ORR_YAML_SCALAR;
    case YAML_SEQUENCE_NODE:
        return ORR_YAML_LIST;
    case YAML_MAPPING_NODE:
        return ORR_YAML_MAP;
    default:
        return ORR_YAML_NOTHING;
    }
}

orr_str orr_yaml_text(orr_yaml_value v)
{
    const yaml_node_t *n = node_of(v);
    if (!n || n->type != YAML_SCALAR_NODE)
        return (orr_str){"", 0};
    return (orr_str){(const char *)n->data.scalar.value, n->data.scalar.length};
}

uint32_t orr_yaml_count(orr_yaml_value v)
{
    const yaml_node_t *n = node_of(v);
    if (n && n->type == YAML_SEQUENCE_NODE)
        return (uint32_t)(n->data.sequence.items.top - n->data.sequence.items.start);
    if (n && n->type == YAML_MAPPING_NODE)
        return (uint32_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start);
    return 0;
}

orr_yaml_value orr_yaml_item(orr_yaml_value v, uint32_t i)
{
    const yaml_node_t *n = node_of(v);
    if (i >= orr_yaml_count(v))
        return (orr_yaml_value){v.doc, 0};
    if (n->type == YAML_SEQUENCE_NODE)
        return (orr_yaml_value){v.doc, n->data.sequence.items.start[i]};
    return (orr_yaml_value){v.doc, n->data.mapping.pairs.start[i].value};
}

orr_yaml_value orr_yaml_key(orr_yaml_value v, uint32_t i)
{
    const yaml_node_t *n = node_of(v);
    if (i >= orr_yaml_count(v) || n->type != YAML_MAPPING_NODE)
        return (orr_yaml_value){v.doc, 0};
    return (orr_yaml_value){v.doc, n->data.mapping.pairs.start[i].key};
}

bool orr_yaml_find(orr_yaml_value map, const char *key, orr_yaml_value *out)
{
    const size_t len = strlen(key);
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return false;
    for (uint32_t i = 0; i < orr_yaml_count(map); i++) {
        const orr_str k = orr_yaml_text(orr_yaml_key(map, i));
        if (k.len == len && memcmp(k.ptr, key, len) == 0) {
            *out = orr_yaml_item(map, i);
            return true;
        }
    }
    return false;
}

orr_where orr_yaml_where(orr_yaml_value v)
{
    const yaml_node_t *n = node_of(v);
    if (!n)
        return orr_where_line(v.doc->path, 1, 1);
    return orr_where_line(v.doc->path, as_line(n->start_mark.line), as_line(n->start_mark.column));
}

/* ---- maps, key by key ----
 *
 * Values of configuration files, checked as they are taken. */

enum { SHOWN = 60 };

orr_code orr_yaml_refuse(orr_yaml_value v, const char *key, const char *what, orr_error *err)
{
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected %s", key, what);
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not %s", key, ORR_SHOWN(s, SHOWN), what);
}

bool orr_text_range(orr_str s, uint64_t *from, uint64_t *to)
{
    const char *dash = s.len ? memchr(s.ptr, '-', s.len) : NULL;
    if (!dash)
        return orr_text_u64(s, from) && orr_text_u64(s, to);
    const size_t at = (size_t)(dash - s.ptr);
    return orr_text_u64((orr_str){s.ptr, at}, from) &&
           orr_text_u64((orr_str){dash + 1, s.len - at - 1}, to);
}

static bool is_known(orr_str key, const char *const *keys)
{
    while (*keys && !orr_str_is(key, *keys))
        keys++;
    return *keys != NULL;
}

static orr_code refuse_key(orr_yaml_value key, const char *const *keys, orr_error *err)
{
    const orr_where w = orr_yaml_where(key);
    const orr_str s = orr_yaml_text(key);
    const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
    const char *near = orr_nearest(s, keys);
    char list[200];
    orr_list_words(keys, list, sizeof list);
    if (near)
        return orr_fail(err, ORR_EINPUT, &w, "unknown key \"%.*s\"; did you mean \"%s\"?", shown,
                        s.ptr, near);
    return orr_fail(err, ORR_EINPUT, &w, "unknown key \"%.*s\" (%s)", shown, s.ptr, list);
}

orr_code orr_yaml_check_keys(orr_yaml_value map, const char *const *keys, orr_error *err)
{
    const orr_where top = orr_yaml_where(map);
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return orr_fail(err, ORR_EINPUT, &top, "expected a map of keys and values");
    for (uint32_t i = 0; i < orr_yaml_count(map); i++) {
        const orr_yaml_value k = orr_yaml_key(map, i);
        const orr_where w = orr_yaml_where(k);
        const orr_str s = orr_yaml_text(k);
        const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
        if (!is_known(s, keys))
            return refuse_key(k, keys, err);
        for (uint32_t j = 0; j < i; j++)
            if (orr_str_equal(s, orr_yaml_text(orr_yaml_key(map, j))))
                return orr_fail(err, ORR_EINPUT, &w, "duplicate key \"%.*s\"", shown, s.ptr);
    }
    return ORR_OK;
}

orr_code orr_yaml_need(orr_yaml_value map, const char *key, orr_yaml_value *out, orr_error *err)
{
    const orr_where w = orr_yaml_where(map);
    if (orr_yaml_find(map, key, out))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

orr_code orr_yaml_get_u64(
    orr_yaml_value v, const char *what, uint64_t min, uint64_t max, uint64_t *out, orr_error *err)
{
    char words[80];
    uint64_t n;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_text_u64(orr_yaml_text(v), &n) && n >= min &&
        n <= max) {
        *out = n;
        return ORR_OK;
    }
    snprintf(words, sizeof words, "a whole number from %llu to %llu", (unsigned long long)min,
             (unsigned long long)max);
    return orr_yaml_refuse(v, what, words, err);
}

/* The parsers of units need a C string; a text too long for any number is rejected. */
static bool as_text(orr_yaml_value v, char out[ORR_UNIT_ROOM])
{
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR || s.len >= ORR_UNIT_ROOM ||
        memchr(s.ptr, '\0', s.len))
        return false;
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return true;
}

orr_code orr_yaml_get_ns(orr_yaml_value v, const char *what, double *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_ps ps;
    if (!as_text(v, text) || orr_time_parse(text, &ps, NULL) || ps < 0)
        return orr_yaml_refuse(v, what, "a time with a unit, as 500ns", err);
    *out = (double)ps / 1000;
    return ORR_OK;
}

orr_code orr_yaml_get_rate(orr_yaml_value v, const char *what, double *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_Bps rate;
    if (!as_text(v, text) || orr_rate_parse(text, &rate, NULL) || rate == 0)
        return orr_yaml_refuse(v, what, "a rate above 0 with a unit, as 400Gb/s or 50GB/s", err);
    *out = (double)rate / 1e9;
    return ORR_OK;
}

orr_code orr_yaml_take_u64(
    orr_yaml_value map, const char *key, uint64_t min, uint64_t max, uint64_t *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_u64(v, key, min, max, out, err) : ORR_OK;
}

orr_code orr_yaml_take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_ns(v, key, out, err) : ORR_OK;
}

orr_code orr_yaml_take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_rate(v, key, out, err) : ORR_OK;
}

orr_code orr_yaml_take_number(
    orr_yaml_value map, const char *key, double min, double max, double *out, orr_error *err)
{
    char words[80];
    orr_yaml_value v;
    double d;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_text_double(orr_yaml_text(v), &d) &&
        d >= min && d <= max) {
        *out = d;
        return ORR_OK;
    }
    snprintf(words, sizeof words, "a number from %g to %g", min, max);
    return orr_yaml_refuse(v, key, words, err);
}

orr_code orr_yaml_take_word(
    orr_yaml_value map, const char *key, const char *const *words, unsigned *out, orr_error *err)
{
    char all[160];
    size_t n = 0;
    orr_yaml_value v;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    for (unsigned i = 0; words[i]; i++)
        if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_str_is(orr_yaml_text(v), words[i])) {
            *out = i;
            return ORR_OK;
        }
    for (unsigned i = 0; words[i] && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? " or " : "", words[i]);
    return orr_yaml_refuse(v, key, all, err);
}

orr_code orr_yaml_take_bool(orr_yaml_value map, const char *key, bool *out, orr_error *err)
{
    static const char *const words[] = {"false", "true", NULL};
    unsigned value = *out;
    const orr_code code = orr_yaml_take_word(map, key, words, &value, err);
    *out = value;
    return code;
}

orr_code orr_yaml_take_text(
    orr_yaml_value map, const char *key, char *out, size_t room, orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    bool is_fine = orr_yaml_type_of(v) == ORR_YAML_SCALAR && s.len > 0 && s.len < room;
    for (size_t i = 0; is_fine && i < s.len; i++)
        is_fine = s.ptr[i] >= ' ' && s.ptr[i] < 0x7F && s.ptr[i] != '"' && s.ptr[i] != '\\';
    if (!is_fine)
        return orr_fail(err, ORR_EINPUT, &w,
                        "%s: expected 1 to %zu plain characters, without \" and \\", key, room - 1);
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return ORR_OK;
}
