/* SPDX-License-Identifier: Apache-2.0 */
/* library_sort.h - the order in which std::sort of libstdc++ leaves equal elements.
 *
 * The standard leaves it open, but the implementation determines it, and it shows in files of the
 * programs we replace (astra_sim/memory_trace.c). */
#ifndef ORR_LIBRARY_SORT_H
#define ORR_LIBRARY_SORT_H

#include <orrery/types.h>

typedef struct orr__sort_item {
    uint64_t key;
    uint32_t index;
} orr__sort_item;

/* Descending by key. */
void orr__library_sort(orr__sort_item *items, size_t count);

#endif
