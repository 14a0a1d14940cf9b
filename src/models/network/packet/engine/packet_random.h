/* SPDX-License-Identifier: Apache-2.0 */
/* packet_random.h - the coins and hashes of the reference (packet-network.md 1.2, 5, 8.5). */
#ifndef ORR_MODELS_PACKET_RANDOM_H
#define ORR_MODELS_PACKET_RANDOM_H

#include <orrery/types.h>

/* The state of L'Ecuyer's MRG32k3a: three numbers a half. */
typedef struct orr__mrg {
    uint64_t x[3], y[3];
} orr__mrg;

/* A generator: stream k of run 1. */
void orr__mrg_init(orr__mrg *m, uint64_t stream);
double orr__mrg_next(orr__mrg *m); /* from 0 to below 1 */

/* The first number of stream k, then of stream k + 1, and so on: what a program draws that makes a generator for
 * every number. */
typedef struct orr__coins {
    orr__mrg state;                      /* of the next stream, one step on */
    uint64_t jump_x[3][3], jump_y[3][3]; /* from a stream to the next */
} orr__coins;
void orr__coins_init(orr__coins *c, uint64_t stream);
double orr__coins_next(orr__coins *c);

/* rand() of the GNU C library, from its start: additive feedback over 31 numbers. */
typedef struct orr__libc_rand {
    uint32_t r[34];
    unsigned at;
} orr__libc_rand;
void orr__libc_rand_init(orr__libc_rand *r, uint32_t seed);
uint32_t orr__libc_rand_next(orr__libc_rand *r);

/* 32-bit Murmur3 of three words. */
static inline uint32_t orr__murmur_mix(uint32_t h, uint32_t word)
{
    uint32_t k = word * 0xcc9e2d51u;
    k = (k << 15 | k >> 17) * 0x1b873593u;
    h ^= k;
    return (h << 13 | h >> 19) * 5 + 0xe6546b64u;
}

static inline uint32_t orr__murmur(uint32_t a, uint32_t b, uint32_t c, uint32_t seed)
{
    uint32_t h = orr__murmur_mix(orr__murmur_mix(orr__murmur_mix(seed, a), b), c) ^ 12;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

#endif
