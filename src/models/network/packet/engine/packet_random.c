/* SPDX-License-Identifier: Apache-2.0 */
/* packet_random.c - MRG32k3a with jumps between streams; rand() of the GNU C library.
 *
 * A stream begins 2^127 steps behind the one before, and run 1 2^76 steps into it.  A step is a linear map, so is
 * any number of them, and maps of one half commute: the first number of the next stream is one product with the
 * matrix of 2^127 steps away from the first number of this one. */
#include "packet_random.h"

#include <string.h>

#define M1 4294967087u
#define M2 4294944443u

typedef uint64_t matrix[3][3];

static void multiply(matrix out, matrix a, matrix b, uint64_t m)
{
    matrix r;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            r[i][j] = 0;
            for (int k = 0; k < 3; k++)
                r[i][j] = (r[i][j] + a[i][k] * b[k][j] % m) % m;
        }
    memcpy(out, r, sizeof r);
}

static void step_matrices(matrix x, matrix y)
{
    const matrix a = {{0, 1, 0}, {0, 0, 1}, {M1 - 810728, 1403580, 0}};
    const matrix b = {{0, 1, 0}, {0, 0, 1}, {M2 - 1370589, 0, 527612}};
    memcpy(x, a, sizeof a);
    memcpy(y, b, sizeof b);
}

/* 2^exponent steps. */
static void power_matrices(unsigned exponent, matrix x, matrix y)
{
    step_matrices(x, y);
    for (unsigned i = 0; i < exponent; i++) {
        multiply(x, x, x, M1);
        multiply(y, y, y, M2);
    }
}

static inline void apply_half(uint64_t a[3][3], uint64_t v[3], uint64_t m)
{
    uint64_t r[3];
    for (int i = 0; i < 3; i++)
        r[i] = (a[i][0] * v[0] % m + a[i][1] * v[1] % m + a[i][2] * v[2] % m) % m;
    memcpy(v, r, sizeof r);
}

static void apply(matrix x, matrix y, orr__mrg *m)
{
    apply_half(x, m->x, M1);
    apply_half(y, m->y, M2);
}

void orr__mrg_init(orr__mrg *m, uint64_t stream)
{
    matrix x, y;
    *m = (orr__mrg){{1, 1, 1}, {1, 1, 1}};
    power_matrices(76, x, y);
    apply(x, y, m);
    power_matrices(127, x, y);
    for (; stream; stream >>= 1) {
        if (stream & 1)
            apply(x, y, m);
        multiply(x, x, x, M1);
        multiply(y, y, y, M2);
    }
}

static double number_of(const orr__mrg *m)
{
    const uint64_t x = m->x[2], y = m->y[2];
    return (double)(x > y ? x - y : x + M1 - y) * 2.328306549295727688e-10;
}

static void step(orr__mrg *m)
{
    const uint64_t x = (1403580u * m->x[1] + (M1 - 810728u) * m->x[0] % M1) % M1;
    const uint64_t y = (527612u * m->y[2] + (M2 - 1370589u) * m->y[0] % M2) % M2;
    m->x[0] = m->x[1];
    m->x[1] = m->x[2];
    m->x[2] = x;
    m->y[0] = m->y[1];
    m->y[1] = m->y[2];
    m->y[2] = y;
}

double orr__mrg_next(orr__mrg *m)
{
    step(m);
    return number_of(m);
}

void orr__coins_init(orr__coins *c, uint64_t stream)
{
    orr__mrg_init(&c->state, stream);
    step(&c->state);
    power_matrices(127, c->jump_x, c->jump_y);
}

double orr__coins_next(orr__coins *c)
{
    const double u = number_of(&c->state);
    apply(c->jump_x, c->jump_y, &c->state);
    return u;
}

void orr__libc_rand_init(orr__libc_rand *r, uint32_t seed)
{
    int64_t word = seed ? seed : 1;
    r->r[0] = (uint32_t)word;
    for (unsigned i = 1; i < 31; i++) {
        word = 16807 * word % 2147483647;
        r->r[i] = (uint32_t)word;
    }
    for (unsigned i = 31; i < 34; i++)
        r->r[i] = r->r[i - 31];
    r->at = 0; /* the ring holds the last 34 numbers, the oldest here */
    for (unsigned i = 0; i < 310; i++)
        (void)orr__libc_rand_next(r);
}

/* r[n] = r[n-3] + r[n-31], without its lowest bit. */
uint32_t orr__libc_rand_next(orr__libc_rand *r)
{
    const uint32_t n = r->r[(r->at + 31) % 34] + r->r[(r->at + 3) % 34];
    r->r[r->at] = n;
    r->at = (r->at + 1) % 34;
    return n >> 1;
}
