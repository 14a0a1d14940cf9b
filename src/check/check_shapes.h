/* SPDX-License-Identifier: Apache-2.0 */
/* check_shapes.h - ranks of a class that are the same up to renaming of their own groups or
 * peers. */
#ifndef ORR_CHECK_SHAPES_H
#define ORR_CHECK_SHAPES_H

#include "check_impl.h"

#include "base/memory/intern.h"

typedef struct chk_shape {
    uint32_t class_index;
    uint32_t first, rank_count; /* shapes.ranks[first ..], ascending */
    const int64_t *pattern;
} chk_shape;

typedef struct chk_shapes {
    chk_shape *all; /* by class, then by their lowest ranks */
    uint32_t count;
    uint32_t *of_rank; /* ORR_NO_NODE: could not be read */
    uint32_t *ranks;
} chk_shapes;

/* What tells the ranks of a class apart: so many numbers, the same for ranks of one shape. */
typedef struct chk_splitter {
    size_t (*begin)(void *context, uint32_t class_index); /* how many; 0: nothing does */
    void (*fill)(void *context, uint32_t rank, int64_t *pattern);
    void *context;
} chk_splitter;

/* In k's scratch.  False: no memory. */
bool chk_shapes_make(chk_run *k, const chk_splitter *by, chk_shapes *out);

#endif
