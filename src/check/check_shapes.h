/* SPDX-License-Identifier: Apache-2.0 */
/* check_shapes.h - ranks of a class that are the same up to renaming of their own groups or peers. */
#ifndef ORR_CHECK_SHAPES_H
#define ORR_CHECK_SHAPES_H

#include "check_impl.h"

#include "base/memory/intern.h"

typedef struct orr__shape {
    uint32_t class_index;
    uint32_t first, rank_count; /* shapes.ranks[first ..], ascending */
    const int64_t *pattern;
} orr__shape;

typedef struct orr__shapes {
    orr__shape *all; /* by class, then by their lowest ranks */
    uint32_t count;
    uint32_t *of_rank; /* ORR_NO_NODE: could not be read */
    uint32_t *ranks;
} orr__shapes;

/* What tells the ranks of a class apart: so many numbers, the same for ranks of one shape. */
typedef struct orr__splitter {
    size_t (*begin)(void *context, uint32_t class_index); /* how many; 0: nothing does */
    void (*fill)(void *context, uint32_t rank, int64_t *pattern);
    void *context;
} orr__splitter;

/* In k's scratch.  False: no memory. */
bool orr__shapes_make(orr__check *k, const orr__splitter *by, orr__shapes *out);

static inline uint32_t orr__shape_rank(const orr__shapes *s, uint32_t shape)
{
    return s->ranks[s->all[shape].first];
}

#endif
