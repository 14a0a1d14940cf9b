/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_rings.c - patterns in which every rank does the same: rings, dissemination, all-to-all,
 * all-reduce (goal.md 4).  The order of the lines is SchedGen's; all messages of a pattern have tag 0. */
#include "schedgen_impl.h"

#include <math.h>

/* r + by and r - by, on a ring of n. */
static uint32_t ahead(uint32_t r, uint64_t by, uint32_t n)
{
    return (uint32_t)((r + by % n) % n);
}

static uint32_t behind(uint32_t r, uint64_t by, uint32_t n)
{
    return (uint32_t)((r + n - by % n) % n);
}

/* A send that waits for what came before (label 0: nothing), then a receive. */
static uint64_t exchange(goal_pen *pen, uint64_t bytes, uint32_t to, uint32_t from, uint64_t after)
{
    const uint64_t send = sgen_gpen_send(pen, bytes, to);
    if (after)
        sgen_gpen_require(pen, send, after);
    return sgen_gpen_recv(pen, bytes, from);
}

void sgen_dissemination(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes)
{
    uint64_t recv = 0;
    for (uint64_t dist = 1; dist < n; dist *= 2)
        recv = exchange(pen, bytes, ahead(rank, dist, n), behind(rank, dist, n), recv);
}

void sgen_linear_alltoall(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes)
{
    for (uint32_t step = 1; step < n && !sgen_gpen_has_failed(pen); step++)
        exchange(pen, bytes, ahead(rank, step, n), behind(rank, step, n), 0);
}

void sgen_pattern_dissemination(const schedgen *s, uint32_t rank)
{
    sgen_dissemination(s->pen, rank, s->ranks, s->opt->data_bytes);
}

void sgen_pattern_linear_alltoall(const schedgen *s, uint32_t rank)
{
    sgen_linear_alltoall(s->pen, rank, s->ranks, s->opt->data_bytes);
}

/* ---- n-way dissemination ---- */

/* SchedGen takes the logarithm in floating point; where n is a power of w+1 the quotient may be just above a
 * whole number, and there is one round more, of messages to oneself (125 ranks, 4 ways). */
static uint32_t nway_rounds(uint32_t ways, uint32_t n)
{
    return (uint32_t)ceil(log((double)n) / log((double)ways + 1));
}

/* The calculations that join the receives first..first+ways-1 of the round before, and the edges to the
 * sends of this one, which are sends..sends+ways-1. */
static void nway_join(goal_pen *pen, uint64_t bytes, uint32_t ways, uint64_t sends, uint64_t recvs)
{
    uint64_t last = recvs;
    for (uint32_t w = 1; w < ways; w++) {
        const uint64_t sum = sgen_gpen_calc(pen, bytes);
        sgen_gpen_require(pen, sum, recvs + w);
        sgen_gpen_require(pen, sum, last);
        last = sum;
    }
    const uint64_t sum = sgen_gpen_calc(pen, bytes);
    sgen_gpen_require(pen, sum, recvs);
    sgen_gpen_require(pen, sends + ways - 1, last);
    for (uint32_t w = 0; w < ways; w++)
        sgen_gpen_require(pen, sends + w, sum);
}

void sgen_pattern_nwaydissemination(const schedgen *s, uint32_t rank)
{
    const uint32_t n = s->ranks, ways = s->opt->nway, rounds = nway_rounds(ways, n);
    const uint64_t bytes = s->opt->data_bytes;
    uint64_t recvs = 0, reach = 1; /* (w+1)^k: below n * (w+1), so within 64 bits */
    for (uint32_t k = 0; k < rounds && !sgen_gpen_has_failed(s->pen); k++) {
        const uint64_t sends = s->pen->label + 1;
        for (uint64_t w = 1; w <= ways; w++)
            sgen_gpen_send(s->pen, bytes, ahead(rank, w * reach, n));
        if (k > 0)
            nway_join(s->pen, bytes, ways, sends, recvs);
        recvs = s->pen->label + 1;
        for (uint64_t w = 1; w <= ways; w++)
            sgen_gpen_recv(s->pen, bytes, behind(rank, w * reach, n));
        reach *= (uint64_t)ways + 1;
    }
}

/* ---- rings ---- */

/* Segments go from the root to its neighbour and on.  With is_tight a rank has room for one segment only:
 * it receives the next when it has sent the last. */
static void pipelined_ring(const schedgen *s, uint32_t rank, bool is_tight)
{
    const uint32_t root = (uint32_t)s->opt->root;
    const uint64_t v = sgen_swap_root(rank, root), segment = s->opt->segment_bytes;
    const uint64_t rounds = s->opt->data_bytes / segment + (s->opt->data_bytes % segment != 0);
    uint64_t send = 0;
    for (uint64_t k = 0; k < rounds && !sgen_gpen_has_failed(s->pen); k++) {
        const uint64_t bytes = k + 1 < rounds ? segment : s->opt->data_bytes - segment * k;
        const uint64_t last_send = send;
        uint64_t recv = 0;
        send = 0;
        if (v > 0)
            recv = sgen_gpen_recv(s->pen, bytes, sgen_swap_root((uint32_t)v - 1, root));
        if (v + 1 < s->ranks)
            send = sgen_gpen_send(s->pen, bytes, sgen_swap_root((uint32_t)v + 1, root));
        if (send && recv)
            sgen_gpen_require(s->pen, send, recv);
        if (is_tight && last_send && recv)
            sgen_gpen_require(s->pen, recv, last_send);
    }
}

void sgen_pattern_pipelinedring(const schedgen *s, uint32_t rank)
{
    pipelined_ring(s, rank, false);
}

void sgen_pattern_pipelinedringdep(const schedgen *s, uint32_t rank)
{
    pipelined_ring(s, rank, true);
}

/* Once round each way; rank 0 begins both. */
void sgen_pattern_doublering(const schedgen *s, uint32_t rank)
{
    const uint32_t next = ahead(rank, 1, s->ranks), previous = behind(rank, 1, s->ranks);
    const uint32_t to[2] = {next, previous}, from[2] = {previous, next};
    for (int way = 0; way < 2; way++) {
        const uint64_t send = sgen_gpen_send(s->pen, s->opt->data_bytes, to[way]);
        const uint64_t recv = sgen_gpen_recv(s->pen, s->opt->data_bytes, from[way]);
        if (rank > 0)
            sgen_gpen_require(s->pen, send, recv);
    }
}

/* Reduce-scatter and all-gather are the same steps.  ATLAHS sends all of the data in each. */
void sgen_pattern_allreduce_ring(const schedgen *s, uint32_t rank)
{
    const uint32_t n = s->ranks, to = ahead(rank, 1, n), from = behind(rank, 1, n);
    const uint64_t all = s->opt->data_bytes;
    const uint64_t bytes = s->rules->has_whole_ring ? all : all / n;
    uint64_t recv = 0;
    for (uint64_t step = 0; step < 2 * ((uint64_t)n - 1) && !sgen_gpen_has_failed(s->pen); step++)
        recv = exchange(s->pen, bytes, to, from, recv);
}

/* ---- all-to-all with sizes of its own ---- */

/* 0 stands for all of the data. */
static uint64_t size_between(const schedgen *s, uint32_t from, uint32_t to)
{
    const uint32_t drawn = s->table[(size_t)from * s->ranks + to];
    return drawn ? drawn : s->opt->data_bytes;
}

void sgen_pattern_linear_alltoallv(const schedgen *s, uint32_t rank)
{
    for (uint32_t step = 1; step < s->ranks && !sgen_gpen_has_failed(s->pen); step++) {
        const uint32_t to = ahead(rank, step, s->ranks), from = behind(rank, step, s->ranks);
        sgen_gpen_send(s->pen, size_between(s, rank, to), to);
        sgen_gpen_recv(s->pen, size_between(s, from, rank), from);
    }
}

/* ---- all-reduce by halving and doubling ---- */

/* Ranks of the power of two below n take part; the `rest` others, even ranks below twice that, give their data
 * to the rank above them first and get the result from it at the end. */
typedef struct folded {
    uint32_t power, rest;
    uint32_t number; /* among those who take part; UINT32_MAX: does not */
} folded;

static folded fold(uint32_t rank, uint32_t n)
{
    folded f = {.power = sgen_power_below(n)};
    f.rest = n - f.power;
    if (rank >= 2 * f.rest)
        f.number = rank - f.rest;
    else
        f.number = rank % 2 ? rank / 2 : UINT32_MAX;
    return f;
}

static uint32_t unfold(const folded *f, uint32_t number)
{
    return number < f->rest ? 2 * number + 1 : number + f->rest;
}

/* An even rank that takes no part: gives and gets all of the data. */
static void stand_aside(goal_pen *pen, uint32_t rank, uint64_t bytes)
{
    sgen_gpen_send(pen, bytes, rank + 1);
    sgen_gpen_recv(pen, bytes, rank + 1);
}

/* The result to the rank below, which stood aside. */
static void hand_back(goal_pen *pen, uint32_t rank, uint64_t bytes, uint64_t after)
{
    const uint64_t send = sgen_gpen_send(pen, bytes, rank - 1);
    if (after)
        sgen_gpen_require(pen, send, after);
}

/* As ATLAHS does it for traces: all of the data in each of log2 steps. */
void sgen_recursive_doubling(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes)
{
    const folded f = fold(rank, n);
    uint64_t recv = 0;
    if (f.number == UINT32_MAX) {
        stand_aside(pen, rank, bytes);
        return;
    }
    if (rank < 2 * f.rest)
        recv = sgen_gpen_recv(pen, bytes, rank - 1);
    for (uint32_t mask = 1; mask < f.power; mask *= 2) {
        const uint32_t peer = unfold(&f, f.number ^ mask);
        recv = exchange(pen, bytes, peer, peer, recv);
    }
    if (rank < 2 * f.rest)
        hand_back(pen, rank, bytes, recv);
}

/* What the next send waits for: the receive, or a calculation of fixed length in its place. */
static uint64_t gap_after(const schedgen *s, uint64_t recv)
{
    return s->opt->has_gap ? sgen_gpen_calc_on(s->pen, s->opt->gap_ns, 0) : recv;
}

/* Halves down, then doubles up, with the same peers in the opposite order. */
static uint64_t halve_and_double(const schedgen *s, const folded *f, uint64_t after)
{
    uint64_t bytes = s->opt->data_bytes;
    uint32_t mask = 1;
    for (; mask < f->power; mask *= 2) {
        const uint32_t peer = unfold(f, f->number ^ mask);
        bytes /= 2;
        after = gap_after(s, exchange(s->pen, bytes, peer, peer, after));
    }
    while (mask > 1) {
        mask /= 2;
        const uint32_t peer = unfold(f, f->number ^ mask);
        after = exchange(s->pen, bytes, peer, peer, after);
        if (mask > 1)
            after = gap_after(s, after);
        bytes *= 2;
    }
    return after;
}

/* SchedGen has no rule for numbers that are not powers of two: it sends to ranks that are not there, which
 * is kept with keeps_invalid.  Ours folds the ranks above the power into those below. */
void sgen_pattern_allreduce_recdoub(const schedgen *s, uint32_t rank)
{
    folded f = fold(rank, s->ranks);
    if (s->opt->keeps_invalid)
        f = (folded){.power = f.power, .rest = 0, .number = rank};
    uint64_t after = 0;
    if (f.number == UINT32_MAX) {
        stand_aside(s->pen, rank, s->opt->data_bytes);
        return;
    }
    if (rank < 2 * f.rest)
        after = gap_after(s, sgen_gpen_recv(s->pen, s->opt->data_bytes, rank - 1));
    after = halve_and_double(s, &f, after);
    if (rank < 2 * f.rest)
        hand_back(s->pen, rank, s->opt->data_bytes, gap_after(s, after));
}
