/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h - qsort for lists that may be empty: the C library's must not get a null pointer. */
#ifndef BASE_MEMORY_SORT_H
#define BASE_MEMORY_SORT_H

#include <stdlib.h>

static inline void orr_sort(void *list,
                            size_t count,
                            size_t size,
                            int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(list, count, size, compare);
}

#endif
