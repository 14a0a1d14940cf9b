/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_random.c - patterns that are drawn by lot, and the generators SchedGen draws with (goal.md 4).
 *
 * glibc's rand(), never seeded, gives the sizes of linear_alltoallv: the same in every run, so that its bytes
 * can be met.  The pairs of random_bisect come from a Mersenne Twister that SchedGen seeds with the clock
 * (LogGOPSim) or the system's noise (ATLAHS); ours is the same twister with a seed of the user's.
 * Memory: 4 bytes for each pair of ranks, or 8 for each rank. */
#include "schedgen_impl.h"

#include "base/twister.h"

/* ---- rand() of glibc, seed 1: additive feedback r[i] = r[i-3] + r[i-31], one bit dropped ---- */

enum { LAG = 31, NEAR = 3, DISCARDED = 310 };

typedef struct glibc_rand {
    uint32_t r[LAG];
    uint32_t at; /* the oldest */
} glibc_rand;

static uint32_t glibc_next(glibc_rand *g)
{
    const uint32_t v = g->r[g->at] += g->r[(g->at + LAG - NEAR) % LAG];
    g->at = (g->at + 1) % LAG;
    return v >> 1;
}

static void glibc_init(glibc_rand *g)
{
    int64_t word = 1;
    g->r[0] = 1;
    for (int i = 1; i < LAG; i++) {
        word = 16807 * word % 2147483647;
        g->r[i] = (uint32_t)word;
    }
    g->at = NEAR;
    for (int i = 0; i < DISCARDED; i++)
        glibc_next(g);
}

/* 0 to most, as LogGOPSim scales and as ATLAHS masks and tries again. */
static uint32_t draw_scaled(orr_twister *t, uint32_t most)
{
    return (uint32_t)((double)orr_twister_next(t) / 4294967295.0 * most);
}

static uint32_t draw_masked(orr_twister *t, uint32_t most)
{
    const uint32_t mask = most ? UINT32_MAX >> __builtin_clz(most) : 0;
    uint32_t v;
    do
        v = orr_twister_next(t) & mask;
    while (v > most);
    return v;
}

/* ---- sizes of linear_alltoallv ---- */

static uint32_t draw_size(const schedgen *s, glibc_rand *g, uint32_t from, uint32_t to)
{
    const int64_t root = s->opt->root;
    if ((int64_t)to == root)
        return 0;
    if (s->opt->is_outcast && (int64_t)from == (root + 1) % (int64_t)s->ranks)
        return 0;
    return (uint32_t)(glibc_next(g) % (s->opt->data_bytes / s->opt->skew)) + 1;
}

orr_code sgen_draw_sizes(schedgen *s, orr_error *err)
{
    glibc_rand g;
    const size_t n = s->ranks;
    if (!(s->table = orr_alloc(n * n, sizeof *s->table)))
        return orr_no_memory(err);
    glibc_init(&g);
    for (uint32_t from = 0; from < n; from++) {
        for (uint32_t to = 0; to < n; to++)
            s->table[from * n + to] = draw_size(s, &g, from, to);
    }
    return ORR_OK;
}

/* ---- pairs ---- */

/* How many of the places are free, in a Fenwick tree over a power of two: the k-th free place is found and
 * taken in O(log n), where SchedGen walks. */
static void fill_free(uint32_t *tree, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++)
        tree[i] = i & (0 - i); /* all are free: a node counts as many as it covers */
}

static uint32_t take_free(uint32_t *tree, uint32_t n, uint32_t power, uint32_t k)
{
    uint32_t at = 0;
    for (uint32_t step = power; step; step /= 2) {
        if (at + step <= n && tree[at + step] <= k)
            k -= tree[at += step];
    }
    for (uint32_t i = at + 1; i <= n; i += i & (0 - i))
        tree[i]--;
    return at;
}

/* order[i]: the rank at place i.  Place i of the first half is paired with place i of the second; in the
 * table each rank gets its partner, and the high bit when it sends. */
static void pair_up(schedgen *s, const uint32_t *order)
{
    const uint32_t half = s->ranks / 2;
    for (uint32_t i = 0; i < half; i++) {
        s->table[order[i]] = order[half + i] | UINT32_C(1) << 31;
        s->table[order[half + i]] = order[i];
    }
}

orr_code sgen_draw_pairs(schedgen *s, orr_error *err)
{
    const uint32_t n = s->ranks;
    orr_twister t;
    uint32_t *tree = orr_alloc((size_t)n + 1, sizeof *tree);
    uint32_t *order = orr_alloc((size_t)n + 1, sizeof *order);
    s->table = orr_alloc((size_t)n + 1, sizeof *s->table);
    if (tree && order && s->table) {
        orr_twister_init(&t, s->opt->seed);
        fill_free(tree, n);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t most = n - i - 1;
            const uint32_t k =
                s->rules->masks_draws ? draw_masked(&t, most) : draw_scaled(&t, most);
            order[i] = take_free(tree, n, sgen_power_below(n), k);
        }
        pair_up(s, order);
    }
    const bool has_memory = tree && order && s->table;
    orr_free(tree);
    orr_free(order);
    return has_memory ? ORR_OK : orr_no_memory(err);
}

/* One rank alone has no partner. */
static bool partner_of(const schedgen *s, uint32_t rank, uint32_t *peer, bool *is_sender)
{
    *peer = s->table[rank] & UINT32_MAX >> 1;
    *is_sender = s->table[rank] >> 31;
    return s->ranks > 1;
}

void sgen_pattern_random_bisect(const schedgen *s, uint32_t rank)
{
    uint32_t peer;
    bool is_sender;
    if (!partner_of(s, rank, &peer, &is_sender))
        return;
    if (is_sender)
        sgen_gpen_send(s->pen, s->opt->data_bytes, peer);
    else
        sgen_gpen_recv(s->pen, s->opt->data_bytes, peer);
}

void sgen_pattern_random_bisect_fd_sym(const schedgen *s, uint32_t rank)
{
    uint32_t peer;
    bool is_sender;
    if (!partner_of(s, rank, &peer, &is_sender))
        return;
    if (is_sender)
        sgen_gpen_send(s->pen, s->opt->data_bytes, peer);
    sgen_gpen_recv(s->pen, s->opt->data_bytes, peer);
    if (!is_sender)
        sgen_gpen_send(s->pen, s->opt->data_bytes, peer);
}
