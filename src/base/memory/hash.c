/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - MurmurHash3 x64 128, seed 0.
 *
 * Two lanes of 64 bits, each fed eight of every sixteen bytes and stirred into the other.  Words
 * are read as little-endian on any machine, so a hash written in a file means the same
 * everywhere. */
#include "hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t c1 = 0x87c37b91114253d5u, c2 = 0x4cf5ad432745937fu;

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline uint64_t first_lane(uint64_t k)
{
    return rotate(k * c1, 31) * c2;
}

static inline uint64_t second_lane(uint64_t k)
{
    return rotate(k * c2, 33) * c1;
}

/* Every bit of k affects about half the bits of the result. */
static uint64_t avalanche(uint64_t k)
{
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdu;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53u;
    return k ^ k >> 33;
}

orr_content_hash orr_content_hash_of(orr_span bytes)
{
    const uint8_t *p = bytes.ptr;
    uint64_t h1 = 0, h2 = 0;
    size_t left = bytes.len;
    for (; left >= 16; left -= 16, p += 16) {
        h1 ^= first_lane(load(p));
        h1 = (rotate(h1, 27) + h2) * 5 + 0x52dce729;
        h2 ^= second_lane(load(p + 8));
        h2 = (rotate(h2, 31) + h1) * 5 + 0x38495ab5;
    }
    uint8_t tail[16] = {0}; /* zeros change neither lane */
    if (left)
        memcpy(tail, p, left);
    h2 ^= second_lane(load(tail + 8));
    h1 ^= first_lane(load(tail));
    h1 ^= bytes.len;
    h2 ^= bytes.len;
    h1 += h2;
    h2 += h1;
    h1 = avalanche(h1);
    h2 = avalanche(h2);
    h1 += h2;
    h2 += h1;
    return (orr_content_hash){.high = h1, .low = h2};
}

char *orr_content_hash_text(orr_content_hash h, char out[ORR_CONTENT_HASH_ROOM])
{
    snprintf(out, ORR_CONTENT_HASH_ROOM, "%016" PRIx64 "%016" PRIx64, h.high, h.low);
    return out;
}
