/* SPDX-License-Identifier: Apache-2.0 */
/* json_repaint.h - reformats valid JSON like Python's json.dump(indent=4): four spaces per level,
 * ASCII only, numbers in shortest form, keys in their order. */
#ifndef ORR_PYTORCH_JSON_REPAINT_H
#define ORR_PYTORCH_JSON_REPAINT_H

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/text/text.h"

/* The value at p, inside of `depth` containers; returns the place after it. */
const char *repaint_value(orr_buf *to, const char *p, uint32_t depth);

/* A replacement value for a key: JSON text, verbatim.  It takes the position of the key; a key that
 * the object lacks is appended. */
typedef struct repaint_override {
    const char *key;
    orr_str value;
    bool only_if_there; /* not added */
    bool is_written;
} repaint_override;

const char *repaint_object(
    orr_buf *to, const char *p, uint32_t depth, repaint_override *overrides, size_t count);

/* Overrides whose values are written consecutively into one buffer.  They are stored as offsets,
 * since it may be reallocated; finish turns them into texts, before repaint_object. */
enum { REPAINT_OVERRIDES = 32 };
typedef struct repaint_overrides {
    repaint_override of[REPAINT_OVERRIDES];
    size_t from[REPAINT_OVERRIDES], count;
} repaint_overrides;

orr_json_writer repaint_override_begin(repaint_overrides *v, orr_buf *values, const char *key);
void repaint_override_finish(repaint_overrides *v, const orr_buf *values);

void repaint_line(orr_buf *to, uint32_t depth); /* a line break and the indent of a level */
const char *repaint_space(const char *p);       /* past white space */

#endif
