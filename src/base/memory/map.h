/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - a hash map from 64-bit keys to 32-bit values; the last value put for a key counts.
 *
 * Open addressing with linear probing, at most 7/8 full.  There is no way to walk it: nothing may
 * depend on the order of hashes. */
#ifndef ORR_BASE_MAP_H
#define ORR_BASE_MAP_H

#include "memory.h"

typedef struct orr_map orr_map;

orr_map *orr_map_create(size_t expected); /* NULL: out of memory */
void orr_map_destroy(orr_map *m);         /* NULL is fine */
bool orr_map_put(orr_map *m,
                 uint64_t key,
                 uint32_t value,
                 bool *is_new); /* false: out of memory; is_new may be NULL */
uint32_t orr_map_find(const orr_map *m, uint64_t key, uint32_t otherwise);
bool orr_map_remove(orr_map *m, uint64_t key); /* false: was not there */
size_t orr_map_count(const orr_map *m);

/* ---- texts as small numbers: the first text is 0, the next new one 1, and so on ---- */

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
