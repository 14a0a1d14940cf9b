/* SPDX-License-Identifier: Apache-2.0 */
/* toml.h - small TOML files as a tree.
 *
 *     orr_toml *t;
 *     orr_toml_value v;
 *     if (orr_toml_open(bytes, "log.toml", &t, &err)) ...
 *     if (orr_toml_find(orr_toml_root(t), "sink", &v))
 *         for (bool more = orr_toml_first(v, &v); more; more = orr_toml_next(&v)) use(v);
 *     orr_toml_close(t);
 *
 * TOML 1.0, except that dates and times are kept as text and not validated.  `bytes` must outlive
 * the tree. */
#ifndef ORR_BASE_TOML_H
#define ORR_BASE_TOML_H

#include "base/memory/memory.h"

typedef struct orr_toml orr_toml;
typedef struct orr_toml_value {
    const orr_toml *doc;
    uint32_t node;
} orr_toml_value;

typedef enum orr_toml_type {
    ORR_TOML_STRING,
    ORR_TOML_INT,
    ORR_TOML_REAL,
    ORR_TOML_BOOL,
    ORR_TOML_DATE,
    ORR_TOML_ARRAY, /* also of [[name]] */
    ORR_TOML_TABLE
} orr_toml_type;

orr_code orr_toml_open(orr_span bytes, const char *path, orr_toml **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_toml_close(orr_toml *t); /* NULL is fine */

orr_toml_value orr_toml_root(const orr_toml *t);
orr_toml_type orr_toml_type_of(orr_toml_value v);
const char *orr_toml_type_name(orr_toml_type type); /* "a text", "a list", ... */
orr_where orr_toml_where(orr_toml_value v);

orr_str orr_toml_text(orr_toml_value v); /* of a string or date, else empty */
int64_t orr_toml_int(orr_toml_value v);  /* of an integer, else 0 */
double orr_toml_real(orr_toml_value v);  /* of a real, else 0 */
bool orr_toml_bool(orr_toml_value v);

/* Items of an array or table, in file order. */
uint32_t orr_toml_count(orr_toml_value v);
bool orr_toml_first(orr_toml_value v, orr_toml_value *out); /* false: empty */
bool orr_toml_next(orr_toml_value *v);                      /* false: no more */
orr_str orr_toml_key(orr_toml_value v);                     /* of a table's member */
orr_where orr_toml_key_where(orr_toml_value v);
bool orr_toml_find(orr_toml_value table, const char *key, orr_toml_value *out);

#endif
