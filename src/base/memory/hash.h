/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - a fast 64-bit hash of bytes, the same on every machine and in every run.
 *
 * Eight bytes at a time through a 64 x 64 -> 128 bit multiplication folded to 64 bits (the mixing
 * step of the wyhash family).  For tables and for finding equal files; equality itself is always
 * checked. */
#ifndef ORR_BASE_HASH_H
#define ORR_BASE_HASH_H

#include <orrery/types.h>

#include <string.h>

static inline uint64_t orr_hash_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t orr__hash_load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* The same of 1 to 7 bytes, without a call: loads that overlap see the same bytes twice. */
static inline uint64_t orr__hash_load_few(const uint8_t *p, size_t n)
{
    if (n >= 4)
        return orr__hash_load(p, 4) | orr__hash_load(p + n - 4, 4) << 8 * (n - 4);
    return p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
}

static inline uint64_t orr_hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const uint64_t k0 = 0xa0761d6478bd642fu, k1 = 0xe7037ed1a0b428dbu, k2 = 0x8ebc6af09c88c6e3u;
    const uint8_t *p = bytes;
    uint64_t h = seed ^ k2 ^ len, g = seed + k0;
    size_t left = len;
    for (; left >= 32; left -= 32, p += 32) {
        h = orr_hash_mix(orr__hash_load(p, 8) ^ k0, orr__hash_load(p + 8, 8) ^ h);
        g = orr_hash_mix(orr__hash_load(p + 16, 8) ^ k1, orr__hash_load(p + 24, 8) ^ g);
    }
    h ^= orr_hash_mix(g, k2);
    for (; left >= 8; left -= 8, p += 8)
        h = orr_hash_mix(orr__hash_load(p, 8) ^ k0, h ^ k1);
    if (left)
        h = orr_hash_mix(orr__hash_load_few(p, left) ^ k1, h ^ k0);
    return orr_hash_mix(h ^ k1, k2);
}

/* ---- hash of content ----
 *
 * 128 bits that stand for the content of a file: for provenance and classes of equal files.
 *
 * MurmurHash3, 128-bit form for 64-bit machines (Appleby 2011): the same on every machine, and the
 * value other tools of that name print.  Two different files agree by accident about once in 2^128,
 * but someone can make them agree on purpose: where that matters, compare the bytes. */

typedef struct orr_content_hash {
    uint64_t high, low;
} orr_content_hash;

orr_content_hash orr_content_hash_of(orr_span bytes);

enum { ORR_CONTENT_HASH_ROOM = 33 };
char *orr_content_hash_text(orr_content_hash h,
                            char out[ORR_CONTENT_HASH_ROOM]); /* 32 hex digits */

#endif
