/* SPDX-License-Identifier: Apache-2.0 */
/* intern.h - texts as small numbers: the first text is 0, the next new one 1, and so on. */
#ifndef ORR_BASE_INTERN_H
#define ORR_BASE_INTERN_H

#include "memory.h"

typedef struct orr_intern orr_intern;

orr_intern *orr_intern_create(void); /* NULL: out of memory */
void orr_intern_destroy(orr_intern *in);
bool orr_intern_add(orr_intern *in,
                    orr_str text,
                    uint32_t *number); /* copies a new text; false: out of memory */
bool orr_intern_find(const orr_intern *in, orr_str text, uint32_t *number);
orr_str orr_intern_get(const orr_intern *in, uint32_t number); /* also NUL-terminated */
uint32_t orr_intern_count(const orr_intern *in);

#endif
