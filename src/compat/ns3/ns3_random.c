/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_random.c - MRG32k3a with jumps between streams; rand() of glibc.
 *
 * Streams are 2^127 steps apart, and run 1 starts 2^76 steps into its stream.  A step is a linear
 * map, so any number of steps is one, too, and those of one component commute: the start of the
 * next stream is the start of this one times the matrix of 2^127 steps. */
#include "ns3_front.h"

#include "base/memory/memory.h"

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

/* The one-step matrices {0, 1, 0}, {0, 0, 1} and {-810728, 1403580, 0} or {-1370589, 0, 527612} to
 * the powers of 2^76 and 2^127.  Constants, because computing them took longer than building a
 * small network. */
static const matrix run_x = {{82758667, 1871391091, 4127413238},
                             {3672831523, 69195019, 1871391091},
                             {3672091415, 3528743235, 69195019}};
static const matrix run_y = {{1511326704, 3759209742, 1610795712},
                             {4292754251, 1511326704, 3889917532},
                             {3859662829, 4292754251, 3708466080}};
static const matrix stream_x = {{2427906178, 3580155704, 949770784},
                                {226153695, 1230515664, 3580155704},
                                {1988835001, 986791581, 1230515664}};
static const matrix stream_y = {{1464411153, 277697599, 1610723613},
                                {32183930, 1464411153, 1022607788},
                                {2824425944, 32183930, 2093834863}};

static inline void apply_half(const uint64_t a[3][3], uint64_t v[3], uint64_t m)
{
    uint64_t r[3];
    for (int i = 0; i < 3; i++)
        r[i] = (a[i][0] * v[0] % m + a[i][1] * v[1] % m + a[i][2] * v[2] % m) % m;
    memcpy(v, r, sizeof r);
}

static void apply(const matrix x, const matrix y, ns3_mrg *m)
{
    apply_half(x, m->x, M1);
    apply_half(y, m->y, M2);
}

void ns3_mrg_init(ns3_mrg *m, uint64_t stream)
{
    matrix x, y;
    *m = (ns3_mrg){{1, 1, 1}, {1, 1, 1}};
    apply(run_x, run_y, m);
    memcpy(x, stream_x, sizeof x);
    memcpy(y, stream_y, sizeof y);
    for (; stream; stream >>= 1) {
        if (stream & 1)
            apply(x, y, m);
        multiply(x, x, x, M1);
        multiply(y, y, y, M2);
    }
}

static double number_of(const ns3_mrg *m)
{
    const uint64_t x = m->x[2], y = m->y[2];
    return (double)(x > y ? x - y : x + M1 - y) * 2.328306549295727688e-10;
}

static void step(ns3_mrg *m)
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

double ns3_mrg_next(ns3_mrg *m)
{
    step(m);
    return number_of(m);
}

void ns3_streams_init(ns3_streams *c, uint64_t stream)
{
    ns3_mrg_init(&c->state, stream);
    step(&c->state);
}

double ns3_streams_next(ns3_streams *c)
{
    const double u = number_of(&c->state);
    apply(stream_x, stream_y, &c->state);
    return u;
}

void ns3_libc_rand_init(ns3_libc_rand *r, uint32_t seed)
{
    int64_t word = seed ? seed : 1;
    r->r[0] = (uint32_t)word;
    for (unsigned i = 1; i < 31; i++) {
        word = 16807 * word % 2147483647;
        r->r[i] = (uint32_t)word;
    }
    for (unsigned i = 31; i < 34; i++)
        r->r[i] = r->r[i - 31];
    r->at = 0; /* the ring holds the last 34 numbers; the oldest is here */
    for (unsigned i = 0; i < 310; i++)
        (void)ns3_libc_rand_next(r);
}

/* r[n] = r[n-3] + r[n-31]; the lowest bit is dropped. */
uint32_t ns3_libc_rand_next(ns3_libc_rand *r)
{
    const uint32_t n = r->r[(r->at + 31) % 34] + r->r[(r->at + 3) % 34];
    r->r[r->at] = n;
    r->at = (r->at + 1) % 34;
    return n >> 1;
}

/* ---- interface of the engine ---- */

/* First stream of the links' loss models (packet-network.md 10). */
#define LOSS_STREAM (((uint64_t)1 << 63) + 50)

typedef struct ns3_state {
    ns3_streams marks;
    ns3_libc_rand libc_rand;
    bool has_losses; /* created when the first packet may be lost */
    uint32_t lossy_links;
    ns3_mrg losses[]; /* per lossy link */
} ns3_state;

static void *create(uint32_t nodes, uint32_t lossy_links)
{
    ns3_state *s = orr_alloc(1, sizeof *s + ((size_t)lossy_links + 1) * sizeof *s->losses);
    if (!s)
        return NULL;
    s->lossy_links = lossy_links;
    /* After the streams that nodes and links take when they are built (packet-network.md 1.2). */
    ns3_streams_init(&s->marks, 9 * (uint64_t)nodes + 2 + 2 * (uint64_t)lossy_links);
    ns3_libc_rand_init(&s->libc_rand, 1);
    return s;
}

static void destroy(void *draws)
{
    orr_free(draws);
}

static double mark(void *draws)
{
    return ns3_streams_next(&((ns3_state *)draws)->marks);
}

static void make_losses(ns3_state *s)
{
    ns3_mrg_init(&s->losses[0], LOSS_STREAM);
    for (uint32_t i = 1; i <= s->lossy_links; i++)
        s->losses[i] = s->losses[0];
    s->has_losses = true;
}

/* Both directions of a link draw from one generator. */
static double lose(void *draws, uint32_t lossy)
{
    ns3_state *s = draws;
    if (!s->has_losses)
        make_losses(s);
    return ns3_mrg_next(&s->losses[lossy]);
}

static uint32_t pint(void *draws)
{
    return ns3_libc_rand_next(&((ns3_state *)draws)->libc_rand);
}

/* A PFC frame consumes one stream (packet-network.md 1.2). */
static void pfc_sent(void *draws)
{
    (void)mark(draws);
}

const fab_draws orr__ns3_draws = {create, destroy, mark, lose, pint, pfc_sent};
