/* SPDX-License-Identifier: Apache-2.0 */
/* twister.h - the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), for results that must
 * be those of programs that use it.
 *
 *     orr_twister t;
 *     orr_twister_init(&t, 5489);
 *     const uint32_t v = orr_twister_next(&t);
 *
 * For anything of our own take rng.h, which is smaller and faster. */
#ifndef ORR_BASE_TWISTER_H
#define ORR_BASE_TWISTER_H

#include <stdint.h>

enum { ORR_TWISTER_WORDS = 624 };

typedef struct orr_twister {
    uint32_t word[ORR_TWISTER_WORDS];
    uint32_t at;
} orr_twister;

void orr_twister_init(orr_twister *t, uint32_t seed);
uint32_t orr_twister_next(orr_twister *t);

#endif
