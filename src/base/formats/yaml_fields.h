/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_fields.h - a map of a configuration file, read key by key.
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
#ifndef ORR_BASE_YAML_FIELDS_H
#define ORR_BASE_YAML_FIELDS_H

#include "yaml.h"

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
/* One of these words, by its place. */
orr_code orr_yaml_take_word(orr_yaml_value map,
                            const char *key,
                            const char *const *words,
                            unsigned *out,
                            orr_error *err) ORR_MUST_CHECK;

#endif
