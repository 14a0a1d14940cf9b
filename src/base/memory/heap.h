/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - a queue that gives out the smallest key first; equal keys in order of their values. */
#ifndef ORR_BASE_HEAP_H
#define ORR_BASE_HEAP_H

#include "memory.h"

typedef struct orr_heap_entry {
    uint64_t key;
    uint32_t value;
} orr_heap_entry;

typedef struct orr_heap {
    orr_heap_entry *entries;
    size_t count, room;
} orr_heap;

void orr_heap_fini(orr_heap *h); /* an all-zero orr_heap is an empty one */
bool orr_heap_push(orr_heap *h, uint64_t key, uint32_t value); /* false: out of memory */
bool orr_heap_pop(orr_heap *h, orr_heap_entry *out);           /* false: empty */

#endif
