/* SPDX-License-Identifier: Apache-2.0 */
/* library_sort.h - the order in which GNU's std::sort leaves elements that compare equal.
 *
 * std::sort promises nothing for those, but what it does is fixed by its steps, and the reference's
 * files show it (local_memory.c). */
#ifndef ORR_LIBRARY_SORT_H
#define ORR_LIBRARY_SORT_H

#include <orrery/types.h>

typedef struct orr__sort_item {
    uint64_t key;
    uint32_t index;
} orr__sort_item;

/* Largest keys first. */
void orr__library_sort(orr__sort_item *items, size_t count);

#endif
