/* SPDX-License-Identifier: Apache-2.0 */
/* place_bits.h - a growing set of places with a fast search for the next member.
 *
 *     words:  one bit per place
 *     tops:   one bit per nonzero word
 *
 * A search reads one word and one top per 4,096 places, so that a NIC with a hundred thousand flows
 * is as fast as one with ten.  Counting members before a place is linear in the words, but rarely
 * needed. */
#ifndef ORR_MODELS_PLACE_BITS_H
#define ORR_MODELS_PLACE_BITS_H

#include "base/memory/memory.h"

#include <string.h>

#define FAB_NO_PLACE UINT32_MAX

typedef struct fab_places {
    uint64_t *words, *tops;
    size_t count, room, top_count, top_room; /* of words and tops */
} fab_places;

static inline void fab_places_fini(fab_places *b)
{
    orr_free(b->words);
    orr_free(b->tops);
}

/* Room for places below `places`; false: out of memory. */
static inline bool fab_places_need(fab_places *b, size_t places)
{
    const size_t words = (places + 63) / 64, tops = (words + 63) / 64;
    if (words <= b->count)
        return true;
    if (!orr_grow(&b->words, &b->room, words) || !orr_grow(&b->tops, &b->top_room, tops))
        return false;
    memset(b->words + b->count, 0, (words - b->count) * sizeof *b->words);
    memset(b->tops + b->top_count, 0, (tops - b->top_count) * sizeof *b->tops);
    b->count = words;
    b->top_count = tops;
    return true;
}

static inline void fab_places_add(fab_places *b, uint32_t place)
{
    b->words[place / 64] |= (uint64_t)1 << place % 64;
    b->tops[place / 4096] |= (uint64_t)1 << place / 64 % 64;
}

/* Removing a place that was never added is fine. */
static inline void fab_places_remove(fab_places *b, uint32_t place)
{
    if (place / 64 >= b->count)
        return;
    b->words[place / 64] &= ~((uint64_t)1 << place % 64);
    if (!b->words[place / 64])
        b->tops[place / 4096] &= ~((uint64_t)1 << place / 64 % 64);
}

static inline bool fab_places_has(const fab_places *b, uint32_t place)
{
    return place / 64 < b->count && (b->words[place / 64] >> place % 64 & 1);
}

static inline void fab_places_clear(fab_places *b)
{
    if (!b->count)
        return;
    memset(b->words, 0, b->count * sizeof *b->words);
    memset(b->tops, 0, b->top_count * sizeof *b->tops);
}

/* The first nonzero word after `word`; at least b->count: none. */
static inline size_t fab_places_word_behind(const fab_places *b, size_t word)
{
    size_t top = (word + 1) / 64;
    if (top >= b->top_count)
        return b->count;
    uint64_t bits = b->tops[top] & ~(uint64_t)0 << (word + 1) % 64;
    while (!bits) {
        if (++top >= b->top_count)
            return b->count;
        bits = b->tops[top];
    }
    return top * 64 + (size_t)__builtin_ctzll(bits);
}

/* The first member from `from` to `to` - 1, or FAB_NO_PLACE. */
static inline uint32_t fab_places_first(const fab_places *b, uint32_t from, uint32_t to)
{
    size_t word = from / 64;
    if (from >= to || word >= b->count)
        return FAB_NO_PLACE;
    uint64_t bits = b->words[word] & ~(uint64_t)0 << from % 64;
    if (!bits) {
        word = fab_places_word_behind(b, word);
        if (word >= b->count)
            return FAB_NO_PLACE;
        bits = b->words[word];
    }
    const size_t place = word * 64 + (size_t)__builtin_ctzll(bits);
    return place < to ? (uint32_t)place : FAB_NO_PLACE;
}

/* Number of members before a place. */
static inline uint32_t fab_places_rank(const fab_places *b, uint32_t place)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < place / 64; i++)
        rank += (uint32_t)__builtin_popcountll(b->words[i]);
    if (place % 64)
        rank += (uint32_t)__builtin_popcountll(b->words[place / 64] &
                                               (((uint64_t)1 << place % 64) - 1));
    return rank;
}

/* The member with this rank; it must exist. */
static inline uint32_t fab_places_select(const fab_places *b, uint32_t rank)
{
    uint32_t word = 0;
    for (uint32_t here; (here = (uint32_t)__builtin_popcountll(b->words[word])) <= rank; word++)
        rank -= here;
    uint64_t bits = b->words[word];
    while (rank--)
        bits &= bits - 1;
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

#endif
