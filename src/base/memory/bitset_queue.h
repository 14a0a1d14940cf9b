/* SPDX-License-Identifier: Apache-2.0 */
/* bitset_queue.h - a set of numbers below n that gives out its smallest member.
 *
 * A tree of bitmaps, 64 ways: bit i of level 0 says that i is a member, bit j of level k + 1 that
 * word j of level k is not zero.  Four levels hold 16 million members; insert and pop touch one
 * word per level, without comparisons and in n/8 bytes, which is why the feeder uses it and not a
 * heap. */
#ifndef ORR_BASE_BITSET_QUEUE_H
#define ORR_BASE_BITSET_QUEUE_H

#include "memory.h"

enum { ORR_BITSET_LEVELS = 6 }; /* 64^6 > 2^32 */

typedef struct orr_bitset_queue {
    uint64_t *level[ORR_BITSET_LEVELS];
    uint32_t words[ORR_BITSET_LEVELS]; /* of each level */
    unsigned levels;
} orr_bitset_queue;

bool orr_bitset_init(orr_bitset_queue *q, uint32_t n); /* false: out of memory */
void orr_bitset_fini(orr_bitset_queue *q);

static inline void orr_bitset_insert(orr_bitset_queue *q, uint32_t i)
{
    for (unsigned k = 0; k < q->levels; k++, i >>= 6) {
        uint64_t *word = &q->level[k][i >> 6];
        const uint64_t old = *word;
        *word = old | 1ull << (i & 63);
        if (old)
            return; /* the levels above know already */
    }
}

static inline bool orr_bitset_is_empty(const orr_bitset_queue *q)
{
    return q->level[q->levels - 1][0] == 0;
}

static inline bool orr_bitset_has(const orr_bitset_queue *q, uint32_t i)
{
    return q->level[0][i >> 6] >> (i & 63) & 1;
}

static inline void orr_bitset_remove(orr_bitset_queue *q, uint32_t i)
{
    for (unsigned k = 0; k < q->levels; k++, i >>= 6) {
        uint64_t *word = &q->level[k][i >> 6];
        *word &= ~(1ull << (i & 63));
        if (*word)
            return;
    }
}

/* Removes and returns the smallest member; the set must not be empty. */
static inline uint32_t orr_bitset_pop(orr_bitset_queue *q)
{
    uint32_t i = 0;
    for (unsigned k = q->levels; k-- > 0;)
        i = i << 6 | (uint32_t)__builtin_ctzll(q->level[k][i]);
    orr_bitset_remove(q, i);
    return i;
}

/* The smallest member not below `from`; UINT32_MAX when there is none. */
uint32_t orr_bitset_next(const orr_bitset_queue *q, uint32_t from);

#endif
