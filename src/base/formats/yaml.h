/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - small YAML files as a tree (libyaml behind it).
 *
 *     orr_yaml *y;
 *     if (orr_yaml_open(bytes, "net.yml", &y, &err)) ...
 *     orr_yaml_value v;
 *     if (orr_yaml_find(orr_yaml_root(y), "bandwidth", &v)) ...
 *     orr_yaml_close(y);
 *
 * One document; anchors and aliases are followed.  Scalars are text: the caller knows what they
 * should be. */
#ifndef ORR_BASE_YAML_H
#define ORR_BASE_YAML_H

#include "base/memory/memory.h"

typedef struct orr_yaml orr_yaml;
typedef struct orr_yaml_value {
    orr_yaml *doc;
    int node; /* 0: nothing */
} orr_yaml_value;

typedef enum orr_yaml_type {
    ORR_YAML_NOTHING,
    ORR_YAML_SCALAR,
    ORR_YAML_LIST,
    ORR_YAML_MAP
} orr_yaml_type;

orr_code orr_yaml_open(orr_span bytes, const char *path, orr_yaml **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_yaml_close(orr_yaml *y); /* NULL is fine */

orr_yaml_value orr_yaml_root(orr_yaml *y);
orr_yaml_type orr_yaml_type_of(orr_yaml_value v);
orr_str orr_yaml_text(orr_yaml_value v);                    /* of a scalar; empty otherwise */
uint32_t orr_yaml_count(orr_yaml_value v);                  /* items of a list or pairs of a map */
orr_yaml_value orr_yaml_item(orr_yaml_value v, uint32_t i); /* of a list; the value of a pair */
orr_yaml_value orr_yaml_key(orr_yaml_value v, uint32_t i);  /* of a map */
bool orr_yaml_find(orr_yaml_value map, const char *key, orr_yaml_value *out);
orr_where orr_yaml_where(orr_yaml_value v);

/* ---- maps, key by key ----
 *
 * A map of a configuration file, read key by key.
 *
 *     static const char *const keys[] = {"spines", "latency", NULL};
 *     uint64_t spines = 1;
 *     double latency_ns = 500;                                             // what it is when not said
 *     if ((code = orr_yaml_check_keys(map, keys, err)) ||                  // and no others
 *         (code = orr_yaml_take_u64(map, "spines", 1, 1024, &spines, err)) ||
 *         (code = orr_yaml_take_ns(map, "latency", &latency_ns, err))) return code;
 *
 * A key that is not there, or an error, leaves the value as it is.  Errors name the key, what was
 * found and what was expected, with line and column. */

/* "12" or "3-7"; from may be above to. */
bool orr_text_range(orr_str s, uint64_t *from, uint64_t *to);

/* The error: key: "found" is not what. */
orr_code orr_yaml_refuse(orr_yaml_value v, const char *key, const char *what, orr_error *err)
    ORR_MUST_CHECK;
/* It is a map, each of its keys is one of these, and none is a duplicate. */
orr_code orr_yaml_check_keys(orr_yaml_value map,
                             const char *const *keys,
                             orr_error *err) ORR_MUST_CHECK;
orr_code orr_yaml_need(orr_yaml_value map, const char *key, orr_yaml_value *out, orr_error *err)
    ORR_MUST_CHECK;

orr_code orr_yaml_get_u64(orr_yaml_value v,
                          const char *what,
                          uint64_t min,
                          uint64_t max,
                          uint64_t *out,
                          orr_error *err) ORR_MUST_CHECK;
orr_code orr_yaml_get_ns(orr_yaml_value v, const char *what, double *out, orr_error *err)
    ORR_MUST_CHECK; /* a time with a unit */
orr_code orr_yaml_get_rate(orr_yaml_value v, const char *what, double *out, orr_error *err)
    ORR_MUST_CHECK; /* a rate with a unit, above 0; in bytes a ns */

orr_code orr_yaml_take_u64(orr_yaml_value map,
                           const char *key,
                           uint64_t min,
                           uint64_t max,
                           uint64_t *out,
                           orr_error *err) ORR_MUST_CHECK;
orr_code orr_yaml_take_bool(orr_yaml_value map, const char *key, bool *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr_yaml_take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr_yaml_take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
    ORR_MUST_CHECK;
/* A name for tables, messages and files: printable, without " and \, shorter than room. */
orr_code orr_yaml_take_text(
    orr_yaml_value map, const char *key, char *out, size_t room, orr_error *err) ORR_MUST_CHECK;
/* A plain number, min to max. */
orr_code orr_yaml_take_number(orr_yaml_value map,
                              const char *key,
                              double min,
                              double max,
                              double *out,
                              orr_error *err) ORR_MUST_CHECK;
/* One of these words, as its index. */
orr_code orr_yaml_take_word(orr_yaml_value map,
                            const char *key,
                            const char *const *words,
                            unsigned *out,
                            orr_error *err) ORR_MUST_CHECK;

#endif
