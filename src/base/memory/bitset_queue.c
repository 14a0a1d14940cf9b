/* SPDX-License-Identifier: Apache-2.0 */
/* bitset_queue.c - making and freeing the bitmap tree; the rest is inline in its header. */
#include "bitset_queue.h"

bool orr_bitset_init(orr_bitset_queue *q, uint32_t n)
{
    size_t words = ((size_t)n + 63) / 64;
    *q = (orr_bitset_queue){.levels = 0};
    do {
        words = words ? words : 1;
        q->level[q->levels] = orr_alloc(words, sizeof(uint64_t));
        if (!q->level[q->levels]) {
            orr_bitset_fini(q);
            return false;
        }
        q->words[q->levels++] = (uint32_t)words;
        if (words == 1)
            return true;
        words = (words + 63) / 64;
    } while (q->levels < ORR_BITSET_LEVELS);
    return true;
}

void orr_bitset_fini(orr_bitset_queue *q)
{
    for (unsigned k = 0; k < ORR_BITSET_LEVELS; k++)
        orr_free(q->level[k]);
    *q = (orr_bitset_queue){.levels = 0};
}

/* Up the tree until a word has a bit at or after the position, then down along the lowest bits. */
uint32_t orr_bitset_next(const orr_bitset_queue *q, uint32_t from)
{
    uint64_t i = from;
    for (unsigned k = 0; k < q->levels; k++, i = (i >> 6) + 1) {
        const size_t words = (size_t)(q->words[k]);
        if (i >> 6 >= words)
            return UINT32_MAX;
        const uint64_t word = q->level[k][i >> 6] >> (i & 63);
        if (!word)
            continue;
        i += (unsigned)__builtin_ctzll(word);
        while (k-- > 0)
            i = i << 6 | (unsigned)__builtin_ctzll(q->level[k][i]);
        return (uint32_t)i;
    }
    return UINT32_MAX;
}
