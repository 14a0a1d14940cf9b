/* SPDX-License-Identifier: Apache-2.0 */
/* ini.h - configuration files in sections, as Python's configparser reads them.
 *
 *     orr_ini *ini;
 *     orr_ini_value v;
 *     if (orr_ini_open(bytes, "scale.cfg", &ini, &err)) ...
 *     if (orr_ini_find(ini, "architecture_presets", "ArrayHeight", &v)) ...
 *     orr_ini_close(ini);
 *
 * `key: value` or `key = value`, keys case-insensitive, sections case-sensitive; # and ; start a
 * comment at the start of a line.  A line indented more than its key continues the value.  A
 * duplicate key or section, a line without a delimiter and a key before the first section are
 * errors.  Values are text, without interpolation. */
#ifndef ORR_BASE_INI_H
#define ORR_BASE_INI_H

#include "base/memory/memory.h"

typedef struct orr_ini orr_ini;

typedef struct orr_ini_value {
    orr_str text;          /* without the blanks around it; lives as long as the bytes */
    uint32_t line, column; /* of its first byte, from 1 */
} orr_ini_value;

orr_code orr_ini_open(orr_span bytes, const char *path, orr_ini **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_ini_close(orr_ini *ini); /* NULL is fine */

bool orr_ini_find(const orr_ini *ini, const char *section, const char *key, orr_ini_value *out);
/* The same, where an absent key is an error. */
orr_code orr_ini_need(const orr_ini *ini,
                      const char *section,
                      const char *key,
                      orr_ini_value *out,
                      orr_error *err) ORR_MUST_CHECK;
orr_where orr_ini_where(const orr_ini *ini, const orr_ini_value *v);

/* The first item of a comma-separated list; the whole value if there is no comma. */
orr_ini_value orr_ini_first(orr_ini_value v);

#endif
