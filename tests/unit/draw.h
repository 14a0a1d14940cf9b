/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - random choices of tests that draw their cases; d points to anything with a uint64_t
 * `state`. */
#ifndef ORR_TEST_DRAW_H
#define ORR_TEST_DRAW_H

#include <stdint.h>

static inline uint32_t draw_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

#define below(d, n) draw_below(&(d)->state, n)
#define chance(d, percent) (below(d, 100) < (percent))

#endif
