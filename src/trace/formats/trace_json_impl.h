/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json_impl.h - what the files that read traces from JSON share.  Never installed. */
#ifndef ORR_TRACE_JSON_IMPL_H
#define ORR_TRACE_JSON_IMPL_H

#include "base/formats/json.h"
#include "trace/trace_impl.h"

/* One reading.  What is decoded for a record lives until the next one. */
typedef struct orr__json_source {
    orr_trace *t;
    orr_json *json;
    bool is_lenient;    /* keys that the schema does not have are passed over */
    orr_arena *scratch; /* bytes out of base64 */
    orr_value *items;   /* of a list attribute */
    size_t item_room;
    orr_buf part, list; /* messages that get unknown fields behind their own */
    uint64_t released;  /* of the mapped file, up to this byte */
    orr_error *err;
} orr__json_source;

/* A name of a field: protobuf's JSON reads lowerCamelCase and the schema's own spelling. */
typedef struct orr__json_key {
    const char *camel, *snake;
    uint32_t number;
} orr__json_key;

enum { ORR__JSON_SLOTS = 24, ORR__JSON_UNKNOWN = 0 };

/* The members of an object by field number; slot 0 is "unknownFields". */
typedef struct orr__json_members {
    uint32_t present;
    orr_json_value at[ORR__JSON_SLOTS];
} orr__json_members;

static inline bool orr__json_has(const orr__json_members *m, uint32_t number)
{
    return m->present >> number & 1;
}

/* Sort the members of an object into slots.  A key twice or without a name is an error with its place; null
 * means absent. */
orr_code orr__json_sort(orr__json_source *s,
                        orr_json_value object,
                        const char *what,
                        const orr__json_key *keys,
                        orr__json_members *out);
/* Complain about a value: orr__json_bad(s, v, "expected %s", ...). */
#define orr__json_bad(s, v, ...) \
    orr_fail((s)->err, ORR_EINPUT, orr__json_at(v, &(orr_where){.byte = 0}), __VA_ARGS__)
static inline const orr_where *orr__json_at(orr_json_value v, orr_where *out)
{
    *out = orr_json_where(v);
    return out;
}
orr_code orr__json_unknown_key(orr__json_source *s,
                               orr_json_value v,
                               const char *what,
                               orr_str key);

/* Values as protobuf's JSON allows them: integers also as text or as 3.0, real numbers also as text. */
orr_code orr__json_u64(orr__json_source *s, orr_json_value v, uint64_t *out);
orr_code orr__json_scalar(orr__json_source *s,
                          orr_json_value v,
                          orr_value_kind kind,
                          orr_value *out);
orr_code orr__json_ids(orr__json_source *s, orr_json_value v, uint32_t field, orr_buf *to);
orr_code orr__json_node_type(orr__json_source *s, orr_json_value v, uint32_t *out);
/* Attributes of a record, encoded behind one another as field `field`. */
orr_code orr__json_attrs(orr__json_source *s, orr_json_value v, uint32_t field, orr_buf *to);
/* The bytes behind "unknownFields". */
orr_code orr__json_unknown(orr__json_source *s, const orr__json_members *m, orr_span *out);

/* The fields of a node, in the order of their numbers, as every protobuf library writes them. */
orr_code orr__json_put_node(orr__json_source *s, const orr__json_members *m, orr_buf *to);

/* What was encoded into s->t->owned since begin becomes a record; v is where it came from. */
orr_code orr__json_append(orr__json_source *s, size_t begin, orr_json_value v);

/* A node of the C++ feeder's own JSON, chakra.md 6.1. */
orr_code orr__json_feeder_node(orr__json_source *s, orr_json_value node);

#endif
