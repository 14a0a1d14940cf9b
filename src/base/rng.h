/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - random numbers from an explicit generator: the same on every machine, forever.
 *
 *     orr_rng r;
 *     orr_rng_init(&r, seed, rank);          // one stream per entity, so that none disturbs another
 *     if (orr_rng_below(&r, 6) == 0) ...
 *
 * xoshiro256** (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2021), its
 * state filled by splitmix64 as its authors advise.  Not for secrets. */
#ifndef ORR_BASE_RNG_H
#define ORR_BASE_RNG_H

#include <orrery/types.h>

#include <stdint.h>

typedef struct orr_rng {
    uint64_t s[4];
} orr_rng;

static inline uint64_t orr_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline void orr_rng_init(orr_rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t from_stream = stream;
    uint64_t state = seed ^ (stream ? orr_splitmix64(&from_stream) : 0);
    for (int i = 0; i < 4; i++)
        r->s[i] = orr_splitmix64(&state);
}

static inline uint64_t orr__rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t orr_rng_next(orr_rng *r)
{
    const uint64_t result = orr__rotate(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = orr__rotate(r->s[3], 45);
    return result;
}

/* From 0 to n - 1, each as likely as any other; n > 0.  (Lemire: "Fast random integer generation in
 * an interval", 2019: the few products that would favour a value are drawn again.) */
static inline uint64_t orr_rng_below(orr_rng *r, uint64_t n)
{
    unsigned __int128 m = (unsigned __int128)orr_rng_next(r) * n;
    if ((uint64_t)m < n) {
        const uint64_t least = (0 - n) % n;
        while ((uint64_t)m < least)
            m = (unsigned __int128)orr_rng_next(r) * n;
    }
    return (uint64_t)(m >> 64);
}

/* From 0 to below 1, in steps of 2^-53. */
static inline double orr_rng_double(orr_rng *r)
{
    return (double)(orr_rng_next(r) >> 11) * 0x1p-53;
}

/* ---- Mersenne Twister ----
 *
 * MT19937 (Matsumoto and Nishimura, 1998), for results that must be those of
 * programs that use it.
 *
 *     orr_twister t;
 *     orr_twister_init(&t, 5489);
 *     const uint32_t v = orr_twister_next(&t);
 *
 * For anything of our own take rng.h, which is smaller and faster. */

enum { ORR_TWISTER_WORDS = 624 };

typedef struct orr_twister {
    uint32_t word[ORR_TWISTER_WORDS];
    uint32_t at;
} orr_twister;

void orr_twister_init(orr_twister *t, uint32_t seed);
uint32_t orr_twister_next(orr_twister *t);

#endif
