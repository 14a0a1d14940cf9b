/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - MT19937: 624 words, all turned at once when they are used up. */
#include "rng.h"

enum { SHIFT = 397 };

void orr_twister_init(orr_twister *t, uint32_t seed)
{
    t->word[0] = seed;
    for (uint32_t i = 1; i < ORR_TWISTER_WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->at = ORR_TWISTER_WORDS;
}

static void turn(orr_twister *t)
{
    for (uint32_t i = 0; i < ORR_TWISTER_WORDS; i++) {
        const uint32_t y =
            (t->word[i] & 0x80000000u) | (t->word[(i + 1) % ORR_TWISTER_WORDS] & 0x7fffffffu);
        t->word[i] = t->word[(i + SHIFT) % ORR_TWISTER_WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

uint32_t orr_twister_next(orr_twister *t)
{
    if (t->at == ORR_TWISTER_WORDS)
        turn(t);
    uint32_t y = t->word[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}
