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

#endif
