/* SPDX-License-Identifier: Apache-2.0 */
/* toml_impl.h - between toml.c, which knows tables and lists, and toml_scalar.c, which knows all other values. */
#ifndef ORR_BASE_TOML_IMPL_H
#define ORR_BASE_TOML_IMPL_H

#include "base/memory/map.h"
#include "toml.h"

/* Valid UTF-8 without control characters but tab and line ends. */
typedef struct orr_toml_source {
    const uint8_t *ptr;
    size_t len, at;
    orr_arena *arena; /* for texts that are not in the file as they are meant */
    size_t problem_at;
    bool no_memory;
    orr_error *err;
} orr_toml_source;

typedef struct orr_toml_scalar {
    uint8_t type;
    orr_str text;
    int64_t number; /* also of a bool */
    double real;
} orr_toml_scalar;

/* Read what begins at `at`.  NULL: well done.  Otherwise what is wrong, at problem_at. */
const char *orr__toml_scalar(orr_toml_source *in, orr_toml_scalar *out);
const char *orr__toml_line_string(orr_toml_source *in, orr_str *out); /* "..." or '...' */

#endif
