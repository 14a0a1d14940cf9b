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

#endif
