/* SPDX-License-Identifier: Apache-2.0 */
/* json_repaint.h - JSON text that is known to be valid, written again as Python's
 * json.dump(indent=4) does: four spaces a level, ASCII only, numbers in their shortest form, keys
 * in the order they have. */
#ifndef ORR_PYTORCH_JSON_REPAINT_H
#define ORR_PYTORCH_JSON_REPAINT_H

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/text/text.h"

/* The value at p, inside of `depth` containers; returns the place after it. */
const char *repaint_value(orr_buf *to, const char *p, uint32_t depth);

/* Another value for a key: JSON text, as it is to be written.  In the object its place is that of
 * the key; a key that the object does not have is added at the end. */
typedef struct repaint_override {
    const char *key;
    orr_str value;
    bool only_if_there; /* not added */
    bool is_written;
} repaint_override;

const char *repaint_object(
    orr_buf *to, const char *p, uint32_t depth, repaint_override *overrides, size_t count);

/* Overrides whose values are written one after the other into one buffer.  They are noted as
 * offsets, since it moves as it grows; finish makes texts of them, before repaint_object. */
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
