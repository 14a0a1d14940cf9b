/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - libyaml's document tree behind our names.  Configuration files only, and bounded: a
 * network of 100,000 links written one by one has about 8 MB.  An alias is one node more, so that
 * it cannot blow up a reader that goes as deep as its file format and no deeper. */
#include "yaml.h"

#include "base/short_forms.h"

#include <string.h>
#include <yaml.h>

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

/* libyaml looks at every open bracket for every token, so that a file of brackets takes the square
 * of its size.  Brackets in quotes and comments count as well: no file has a hundred open ones. */
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
        code = parser.error == YAML_MEMORY_ERROR
                   ? orr_no_memory(err)
                   : orr_fail(err, ORR_EINPUT,
                              ORR_AT(orr_where_line(y->path, as_line(parser.problem_mark.line),
                                                    as_line(parser.problem_mark.column))),
                              "not valid YAML: %s",
                              parser.problem ? parser.problem : "unknown trouble");
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
