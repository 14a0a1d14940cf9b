/* SPDX-License-Identifier: Apache-2.0 */
/* coll_tree.h - who is whose parent in a double binary tree (astra-sim.md 5.8).
 *
 * Under a root with one child hangs a perfect binary tree, numbered in order: the root is the last
 * index (MAX) or the first (MIN), from chunk to chunk in turn.  Parents and children follow from
 * the index, no tree is built. */
#ifndef ORR_COLL_TREE_H
#define ORR_COLL_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { COLL_TREE_NOBODY = UINT32_MAX };

typedef struct coll_tree_place {
    uint32_t parent, child[2], child_count; /* members */
} coll_tree_place;

/* Index i (from 0) of a perfect tree of 2^k - 1 nodes in order: the height is the number of low
 * ones in i. */
static inline uint32_t coll_tree_height(uint32_t i)
{
    return (uint32_t)__builtin_ctz(~i);
}

/* count: a power of two, at least 2. */
static inline coll_tree_place coll_tree_at(uint32_t count, uint32_t variant, uint32_t index)
{
    coll_tree_place p = {.parent = COLL_TREE_NOBODY};
    const bool is_max = variant == 0;
    const uint32_t root = is_max ? count - 1 : 0, shift = is_max ? 0 : 1;
    const uint32_t top = count / 2 - 1; /* of the perfect subtree of count - 1 nodes */
    if (index == root) {
        p.child[p.child_count++] = top + shift;
        return p;
    }
    const uint32_t i = index - shift, bit = 1u << coll_tree_height(i);
    p.parent = i == top ? root : ((i & (bit << 1)) ? i - bit : i + bit) + shift;
    if (coll_tree_height(i)) {
        p.child[p.child_count++] = i - bit / 2 + shift;
        p.child[p.child_count++] = i + bit / 2 + shift;
    }
    return p;
}

#endif
