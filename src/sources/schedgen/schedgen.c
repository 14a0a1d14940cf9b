/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen.c - the table of patterns, and schedules made from its rows (goal.md 4).
 *
 * A row holds the options the pattern uses, what is drawn at random for all ranks, how a rank's
 * part is written, and whether SchedGen's own schedule for the options is invalid.  Ranks are
 * written in order, independently. */
#include <orrery/lab/progress.h>

#include "base/rng.h"
#include "schedgen_impl.h"

#include <math.h>

/* Patterns in which every rank does the same: rings, dissemination, all-to-all, all-reduce
 * (goal.md 4).  The order of the lines is SchedGen's; all messages of a pattern have tag 0. */

/* (r + by) and (r - by) modulo n. */
static uint32_t ahead(uint32_t r, uint64_t by, uint32_t n)
{
    return (uint32_t)((r + by % n) % n);
}

static uint32_t behind(uint32_t r, uint64_t by, uint32_t n)
{
    return (uint32_t)((r + n - by % n) % n);
}

/* A send after `after` (label 0: nothing), then a receive. */
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

static void sgen_pattern_dissemination(const schedgen *s, uint32_t rank)
{
    sgen_dissemination(s->pen, rank, s->ranks, s->opt->data_bytes);
}

static void sgen_pattern_linear_alltoall(const schedgen *s, uint32_t rank)
{
    sgen_linear_alltoall(s->pen, rank, s->ranks, s->opt->data_bytes);
}

/* ---- n-way dissemination ---- */

/* SchedGen takes the logarithm in floating point; if n is a power of w+1 the quotient may be just
 * above a whole number, which gives an extra round of messages to oneself (125 ranks, 4 ways). */
static uint32_t nway_rounds(uint32_t ways, uint32_t n)
{
    return (uint32_t)ceil(log((double)n) / log((double)ways + 1));
}

/* Calculations that join the receives first..first+ways-1 of the last round, and edges to the sends
 * of this one, sends..sends+ways-1. */
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

static void sgen_pattern_nwaydissemination(const schedgen *s, uint32_t rank)
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

/* Segments go from the root around the ring.  With is_tight a rank can buffer only one segment: it
 * receives the next after sending the last. */
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

static void sgen_pattern_pipelinedring(const schedgen *s, uint32_t rank)
{
    pipelined_ring(s, rank, false);
}

static void sgen_pattern_pipelinedringdep(const schedgen *s, uint32_t rank)
{
    pipelined_ring(s, rank, true);
}

/* Once around in each direction; rank 0 starts both. */
static void sgen_pattern_doublering(const schedgen *s, uint32_t rank)
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

/* Reduce-scatter and all-gather have the same steps.  ATLAHS sends all of the data in each. */
static void sgen_pattern_allreduce_ring(const schedgen *s, uint32_t rank)
{
    const uint32_t n = s->ranks, to = ahead(rank, 1, n), from = behind(rank, 1, n);
    const uint64_t all = s->opt->data_bytes;
    const uint64_t bytes = s->rules->has_whole_ring ? all : all / n;
    uint64_t recv = 0;
    for (uint64_t step = 0; step < 2 * ((uint64_t)n - 1) && !sgen_gpen_has_failed(s->pen); step++)
        recv = exchange(s->pen, bytes, to, from, recv);
}

/* ---- all-to-all with individual sizes ---- */

/* 0: all of the data. */
static uint64_t size_between(const schedgen *s, uint32_t from, uint32_t to)
{
    const uint32_t drawn = s->table[(size_t)from * s->ranks + to];
    return drawn ? drawn : s->opt->data_bytes;
}

static void sgen_pattern_linear_alltoallv(const schedgen *s, uint32_t rank)
{
    for (uint32_t step = 1; step < s->ranks && !sgen_gpen_has_failed(s->pen); step++) {
        const uint32_t to = ahead(rank, step, s->ranks), from = behind(rank, step, s->ranks);
        sgen_gpen_send(s->pen, size_between(s, rank, to), to);
        sgen_gpen_recv(s->pen, size_between(s, from, rank), from);
    }
}

/* ---- all-reduce by halving and doubling ---- */

/* Only a power of two of ranks takes part; the `rest` others, even ranks below 2 * rest, give their
 * data to the rank above first and get the result from it at the end. */
typedef struct folded {
    uint32_t power, rest;
    uint32_t number; /* among the participants; UINT32_MAX: none */
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

/* An even rank that does not take part: sends its data and receives the result. */
static void stand_aside(goal_pen *pen, uint32_t rank, uint64_t bytes)
{
    sgen_gpen_send(pen, bytes, rank + 1);
    sgen_gpen_recv(pen, bytes, rank + 1);
}

/* The result to the rank below, which did not take part. */
static void hand_back(goal_pen *pen, uint32_t rank, uint64_t bytes, uint64_t after)
{
    const uint64_t send = sgen_gpen_send(pen, bytes, rank - 1);
    if (after)
        sgen_gpen_require(pen, send, after);
}

/* As ATLAHS does for traces: all of the data in each of log2 steps. */
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

/* What the next send depends on: the receive, or a calculation of fixed length after it. */
static uint64_t gap_after(const schedgen *s, uint64_t recv)
{
    return s->opt->has_gap ? sgen_gpen_calc_on(s->pen, s->opt->gap_ns, 0) : recv;
}

/* Halving down, then doubling up, with the same peers in reverse order. */
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

/* SchedGen has no rule for other numbers than powers of two: it sends to ranks that do not exist,
 * which keeps_invalid preserves.  Ours folds the ranks above the power into those below. */
static void sgen_pattern_allreduce_recdoub(const schedgen *s, uint32_t rank)
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

/* Patterns with a root: trees, scatter and gather, the barrier at one rank (goal.md 4).
 *
 * Each rank's part follows from its number alone, in O(log n) steps, so a million ranks need no
 * memory. The order of the lines is SchedGen's. */

/* Round k goes from the first 2^k ranks to as many more; a reduction is the same tree reversed,
 * whose send, written first, depends on the receives below it.  SchedGen repeats that edge in every
 * later round. */
static void binomial_tree(
    goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes, bool is_up)
{
    const uint64_t v = sgen_swap_root(rank, root);
    uint64_t below = 0, above = 0;
    for (uint64_t reach = 1; reach < n; reach *= 2) {
        if (v < reach && v + reach < n)
            below = (is_up ? sgen_gpen_recv : sgen_gpen_send)(
                pen, bytes, sgen_swap_root((uint32_t)(v + reach), root));
        if (above && below)
            sgen_gpen_require(pen, is_up ? above : below, is_up ? below : above);
        if (v >= reach && v < 2 * reach)
            above = (is_up ? sgen_gpen_send : sgen_gpen_recv)(
                pen, bytes, sgen_swap_root((uint32_t)(v - reach), root));
    }
}

void sgen_binomial_bcast(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes)
{
    binomial_tree(pen, root, rank, n, bytes, false);
}

void sgen_binomial_reduce(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes)
{
    binomial_tree(pen, root, rank, n, bytes, true);
}

static uint32_t root_of(const schedgen *s)
{
    return (uint32_t)s->opt->root;
}

static void sgen_pattern_binomialtreebcast(const schedgen *s, uint32_t rank)
{
    sgen_binomial_bcast(s->pen, root_of(s), rank, s->ranks, s->opt->data_bytes);
}

static void sgen_pattern_binomialtreereduce(const schedgen *s, uint32_t rank)
{
    sgen_binomial_reduce(s->pen, root_of(s), rank, s->ranks, s->opt->data_bytes);
}

static void star(const schedgen *s, uint32_t rank, bool is_up)
{
    const uint32_t root = root_of(s);
    if (rank != root) {
        (is_up ? sgen_gpen_send : sgen_gpen_recv)(s->pen, s->opt->data_bytes, root);
        return;
    }
    for (uint32_t v = 1; v < s->ranks && !sgen_gpen_has_failed(s->pen); v++)
        (is_up ? sgen_gpen_recv : sgen_gpen_send)(s->pen, s->opt->data_bytes,
                                                  sgen_swap_root(v, root));
}

static void sgen_pattern_scatter(const schedgen *s, uint32_t rank)
{
    star(s, rank, false);
}

static void sgen_pattern_gather(const schedgen *s, uint32_t rank)
{
    star(s, rank, true);
}

/* The children of v are 2v+1 and 2v+2.  SchedGen renumbers the peers but not the rank itself, so
 * with a root other than 0 messages do not match; only with keeps_invalid. */
static void sgen_pattern_binarytreebcast(const schedgen *s, uint32_t rank)
{
    const uint32_t root = root_of(s);
    const uint64_t bytes = s->opt->data_bytes;
    const uint64_t v = s->opt->keeps_invalid ? rank : sgen_swap_root(rank, root);
    uint64_t recv = 0, sends[2] = {0, 0};
    if (v > 0)
        recv = sgen_gpen_recv(s->pen, bytes, sgen_swap_root((uint32_t)((v - 1) / 2), root));
    for (uint32_t i = 0; i < 2; i++) {
        if (2 * v + 1 + i < s->ranks)
            sends[i] =
                sgen_gpen_send(s->pen, bytes, sgen_swap_root((uint32_t)(2 * v + 1 + i), root));
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (recv && sends[i])
            sgen_gpen_require(s->pen, sends[i], recv);
    }
}

/* Every rank notifies rank 0 and waits; a calculation of length 0 joins the receives. */
static void sgen_pattern_linbarrier(const schedgen *s, uint32_t rank)
{
    if (rank != 0) {
        sgen_gpen_send(s->pen, 1, 0);
        sgen_gpen_recv(s->pen, 1, 0);
        return;
    }
    const uint64_t all = sgen_gpen_calc(s->pen, 0);
    for (uint32_t i = 1; i < s->ranks && !sgen_gpen_has_failed(s->pen); i++) {
        const uint64_t recv = sgen_gpen_recv(s->pen, 1, i);
        const uint64_t send = sgen_gpen_send(s->pen, 1, i);
        sgen_gpen_require(s->pen, all, recv);
        sgen_gpen_require(s->pen, send, all);
    }
}

/* Patterns made of several all-reduces: a training step of ResNet-152, and disseminations
 * that wait for each other (goal.md 4). */

enum {
    FIRST_TAG = 100000,
    FORWARD_NS = 119000,
    BACKWARD_NS = 23800,
    CHAIN = 5,
    CHAIN_BYTES = 10000
};

/* SchedGen's chain waits with an empty message to a rank that does not exist. */
enum { NOBODY = 9999999 };

/* Elements of 4 bytes in each all-reduce of gradients. */
static const uint64_t gradients[] = {6511592, 6567936, 5905920, 6113280, 6176256,
                                     6112768, 6176256, 6112768, 5321216, 5194816};

enum { GRADIENTS = sizeof gradients / sizeof *gradients };

/* The communicator, 1, is in the upper byte; ATLAHS counts communicators from 0. */
static uint64_t tag_of(const schedgen *s, uint64_t number)
{
    const uint64_t communicator = s->rules->counts_communicators ? 0 : 1;
    return communicator << 24 | (FIRST_TAG + number);
}

static void reduce(const schedgen *s, uint32_t rank, uint64_t tag, uint64_t bytes)
{
    sgen_gpen_comment(s->pen, "Iallreduce begin");
    s->pen->tag = tag_of(s, tag);
    sgen_gpen_open(s->pen);
    sgen_dissemination(s->pen, rank, s->ranks, bytes);
    sgen_gpen_close(s->pen);
}

/* Edges between `other` and the marked messages of the last group. */
static void require_marked(goal_pen *pen, uint8_t mark, uint64_t other, bool marked_waits)
{
    for (size_t i = 0; i < pen->marks.len; i++) {
        if (!(pen->marks.ptr[i] & mark))
            continue;
        if (marked_waits)
            sgen_gpen_require(pen, pen->base + i, other);
        else
            sgen_gpen_require(pen, other, pen->base + i);
    }
}

/* ATLAHS continues the tags from rank to rank, so no message matches its receive; kept with
 * keeps_invalid. */
static void sgen_pattern_resnet(const schedgen *s, uint32_t rank)
{
    const bool counts_on = s->opt->keeps_invalid && s->rules->counts_tags_on;
    const uint64_t first = counts_on ? (uint64_t)rank * GRADIENTS : 0;
    const uint64_t forward = sgen_gpen_calc_on(s->pen, FORWARD_NS, 0);
    for (uint64_t i = 0; i < GRADIENTS; i++) {
        const uint64_t backward = sgen_gpen_calc_on(s->pen, BACKWARD_NS, 0);
        sgen_gpen_require(s->pen, backward, forward);
        const uint64_t ready = sgen_gpen_calc_on(s->pen, 0, 0);
        sgen_gpen_require(s->pen, ready, backward);
        reduce(s, rank, first + i, 4 * gradients[i]);
        require_marked(s->pen, ORR__PEN_LAST, ready, true);
        sgen_gpen_comment(s->pen, "Iallreduce end");
    }
}

/* Between two disseminations: a calculation of length 0, where SchedGen has a message to a missing
 * rank. */
static void sgen_pattern_chained_dissem(const schedgen *s, uint32_t rank)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < CHAIN; i++) {
        reduce(s, rank, i, CHAIN_BYTES);
        sgen_gpen_comment(s->pen, "Iallreduce end");
        const uint64_t done =
            s->opt->keeps_invalid ? sgen_gpen_send(s->pen, 0, NOBODY) : sgen_gpen_calc(s->pen, 0);
        if (last)
            require_marked(s->pen, ORR__PEN_FIRST, last, true);
        require_marked(s->pen, ORR__PEN_LAST, done, false);
        last = done;
    }
}

/* Random patterns, and SchedGen's random number generators (goal.md 4).
 *
 * glibc's rand(), never seeded, gives the sizes of linear_alltoallv: the same in every run, so they
 * can be reproduced.  The pairs of random_bisect come from a Mersenne Twister that SchedGen seeds
 * with the clock (LogGOPSim) or the system's noise (ATLAHS); ours is the same twister with a
 * user-defined seed. Memory: 4 bytes per pair of ranks, or 8 per rank. */

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

/* 0 to most: LogGOPSim scales; ATLAHS masks and retries. */
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

/* Draw s->table (schedgen.c). */
static orr_code sgen_draw_sizes(schedgen *s, orr_error *err)
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

/* Fenwick tree over a power of two that counts free places: the k-th free place is found and taken
 * in O(log n); SchedGen walks. */
static void fill_free(uint32_t *tree, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++)
        tree[i] = i & (0 - i); /* all are free: a node counts what it covers */
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

/* order[i]: the rank at place i.  Place i of the first half is paired with place i of the second;
 * the table holds each rank's partner, with the high bit set for senders. */
static void pair_up(schedgen *s, const uint32_t *order)
{
    const uint32_t half = s->ranks / 2;
    for (uint32_t i = 0; i < half; i++) {
        s->table[order[i]] = order[half + i] | UINT32_C(1) << 31;
        s->table[order[half + i]] = order[i];
    }
}

static orr_code sgen_draw_pairs(schedgen *s, orr_error *err)
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

static void sgen_pattern_random_bisect(const schedgen *s, uint32_t rank)
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

static void sgen_pattern_random_bisect_fd_sym(const schedgen *s, uint32_t rank)
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

/* ---- the table ---- */

typedef struct row {
    orr_schedgen_pattern shown;
    void (*write_rank)(const schedgen *s, uint32_t rank);
    orr_code (*draw)(schedgen *s, orr_error *err);
    const char *(*repair)(const orr_schedgen_options *opt); /* NULL: SchedGen's schedule is valid */
} row;

static const char *repair_binary_tree(const orr_schedgen_options *opt)
{
    return opt->root ? "SchedGen renames peers but not the rank itself when the root is not 0, and "
                       "messages miss each other"
                     : NULL;
}

static const char *repair_recdoub(const orr_schedgen_options *opt)
{
    return sgen_is_power_of_two(opt->ranks)
               ? NULL
               : "SchedGen sends to ranks that are not there when their number is not a power of two";
}

static const char *repair_chain(const orr_schedgen_options *opt)
{
    (void)opt;
    return "SchedGen waits at a message to rank 9999999, which is not there";
}

static const char *repair_resnet(const orr_schedgen_options *opt)
{
    return sgen_schedgen_rules(opt->rules)->counts_tags_on && opt->ranks > 1
               ? "SchedGen of ATLAHS gives each rank other tags, and messages miss each other"
               : NULL;
}

static const char *repair_pairs(const orr_schedgen_options *opt)
{
    return opt->ranks == 1 ? "SchedGen writes a schedule of no ranks" : NULL;
}

enum {
    SIZE = ORR_SCHEDGEN_SIZE,
    ROOTED = ORR_SCHEDGEN_SIZE | ORR_SCHEDGEN_ROOT,
    SEGMENTED = ORR_SCHEDGEN_SIZE | ORR_SCHEDGEN_ROOT | ORR_SCHEDGEN_SEGMENT
};

static const row rows[] = {
    {{"binomialtreebcast", "broadcast down a binomial tree", ROOTED},
     sgen_pattern_binomialtreebcast,
     NULL,
     NULL},
    {{"binarytreebcast", "broadcast down a binary tree", ROOTED},
     sgen_pattern_binarytreebcast,
     NULL,
     repair_binary_tree},
    {{"binomialtreereduce", "reduction up a binomial tree", ROOTED},
     sgen_pattern_binomialtreereduce,
     NULL,
     NULL},
    {{"scatter", "the root sends to each of the others", ROOTED}, sgen_pattern_scatter, NULL, NULL},
    {{"gather", "each of the others sends to the root", ROOTED}, sgen_pattern_gather, NULL, NULL},
    {{"pipelinedring", "broadcast along a ring, in segments", SEGMENTED},
     sgen_pattern_pipelinedring,
     NULL,
     NULL},
    {{"pipelinedringdep", "the same, a rank keeping one segment only", SEGMENTED},
     sgen_pattern_pipelinedringdep,
     NULL,
     NULL},
    {{"doublering", "once round a ring, and once back", SIZE}, sgen_pattern_doublering, NULL, NULL},
    {{"linbarrier", "barrier: all send to rank 0, rank 0 sends to all", 0},
     sgen_pattern_linbarrier,
     NULL,
     NULL},
    {{"dissemination", "barrier or all-reduce in log2 rounds", SIZE},
     sgen_pattern_dissemination,
     NULL,
     NULL},
    {{"nwaydissemination", "the same with N messages per round", SIZE | ORR_SCHEDGEN_NWAY},
     sgen_pattern_nwaydissemination,
     NULL,
     NULL},
    {{"linear_alltoall", "each rank sends to each other", SIZE},
     sgen_pattern_linear_alltoall,
     NULL,
     NULL},
    {{"linear_alltoallv", "the same, with random sizes",
      SIZE | ORR_SCHEDGEN_ROOT | ORR_SCHEDGEN_SKEW},
     sgen_pattern_linear_alltoallv,
     sgen_draw_sizes,
     NULL},
    {{"allreduce_recdoub", "all-reduce by halving and doubling", SIZE | ORR_SCHEDGEN_GAP},
     sgen_pattern_allreduce_recdoub,
     NULL,
     repair_recdoub},
    {{"allreduce_ring", "all-reduce on a ring", SIZE}, sgen_pattern_allreduce_ring, NULL, NULL},
    {{"random_bisect", "half of the ranks send to the other half, in random pairs",
      SIZE | ORR_SCHEDGEN_RANDOM},
     sgen_pattern_random_bisect,
     sgen_draw_pairs,
     repair_pairs},
    {{"random_bisect_fd_sym", "the same, both ways at once", SIZE | ORR_SCHEDGEN_RANDOM},
     sgen_pattern_random_bisect_fd_sym,
     sgen_draw_pairs,
     repair_pairs},
    {{"resnet", "a training step of ResNet-152, ten all-reduces", 0},
     sgen_pattern_resnet,
     NULL,
     repair_resnet},
    {{"chained_dissem", "five disseminations, one after the other", 0},
     sgen_pattern_chained_dissem,
     NULL,
     repair_chain},
};

enum { ROWS = sizeof rows / sizeof *rows, RANKS_MAX = INT32_MAX, CPU_MAX = 255 };

static const row *row_of(const orr_schedgen_pattern *p)
{
    return (const row *)(const void *)p; /* `shown` is the first member */
}

orr_schedgen_options orr_schedgen_defaults(void)
{
    return (orr_schedgen_options){
        .ranks = 8, .data_bytes = 1, .nway = 1, .segment_bytes = 1, .skew = 1, .seed = 1};
}

const orr_schedgen_pattern *orr_schedgen_at(size_t i)
{
    return i < ROWS ? &rows[i].shown : NULL;
}

const orr_schedgen_pattern *orr_schedgen_find(const char *name)
{
    if (strcmp(name, "resnet152") == 0)
        name = "resnet"; /* ATLAHS's name for it */
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].shown.name, name) == 0)
            return &rows[i].shown;
    }
    return NULL;
}

static bool has_odd_one_out(const row *r, const orr_schedgen_options *opt)
{
    return r->shown.uses & ORR_SCHEDGEN_RANDOM && opt->ranks % 2;
}

/* With an odd number of ranks the last finds no partner and is left out, as in SchedGen; a single
 * rank stays. */
static uint32_t ranks_of(const row *r, const orr_schedgen_options *opt)
{
    return opt->ranks > 1 || opt->keeps_invalid ? opt->ranks - has_odd_one_out(r, opt) : opt->ranks;
}

static orr_code check_root(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (!(r->shown.uses & ORR_SCHEDGEN_ROOT) || r->shown.uses & ORR_SCHEDGEN_SKEW)
        return ORR_OK; /* linear_alltoallv does not use the root */
    if (opt->root >= 0 && opt->root < (int64_t)opt->ranks)
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "root %lld out of range 0..%u", (long long)opt->root,
                    opt->ranks - 1);
}

static orr_code check_skew(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (!(r->shown.uses & ORR_SCHEDGEN_SKEW))
        return ORR_OK;
    if (opt->skew == 0 || opt->skew > opt->data_bytes)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "the skew ratio, %llu, must be between 1 and the data size, %llu bytes",
                        (unsigned long long)opt->skew, (unsigned long long)opt->data_bytes);
    return ORR_OK;
}

/* ORR_EUSAGE for options that no schedule can satisfy. */
static orr_code check_options(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (opt->ranks == 0 || opt->ranks > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%u ranks: there must be 1 to %d", opt->ranks,
                        RANKS_MAX);
    if (opt->cpu > CPU_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "cpu %u: GOAL allows 0 to %d", opt->cpu, CPU_MAX);
    if (r->shown.uses & ORR_SCHEDGEN_NWAY && opt->nway == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a rank must send at least one message per round");
    if (r->shown.uses & ORR_SCHEDGEN_SEGMENT && opt->segment_bytes == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a segment must have at least one byte");
    const orr_code code = check_root(r, opt, err);
    return code ? code : check_skew(r, opt, err);
}

const char *orr_schedgen_repair(const orr_schedgen_pattern *p, const orr_schedgen_options *opt)
{
    const row *r = row_of(p);
    return r->repair ? r->repair(opt) : NULL;
}

static void write_ranks(const row *r, const schedgen *s)
{
    orr_progress progress;
    orr_progress_start(&progress, r->shown.name, "ranks", s->ranks, s->opt->is_quiet);
    sgen_gpen_head(s->pen, s->ranks);
    for (uint32_t rank = 0; rank < s->ranks && !sgen_gpen_has_failed(s->pen); rank++) {
        sgen_gpen_begin(s->pen, rank);
        r->write_rank(s, rank);
        sgen_gpen_end(s->pen);
        orr_progress_add(&progress, 1);
    }
    orr_progress_end(&progress);
}

/* goal NULL: to a path; otherwise into memory. */
static orr_code make_schedule(const row *r,
                              const orr_schedgen_options *opt,
                              const char *path,
                              orr_goal **goal,
                              orr_schedgen_totals *out,
                              orr_error *err)
{
    orr_error own;
    goal_pen pen;
    orr_code code = check_options(r, opt, err);
    if (code || (code = sgen_gpen_init(&pen, path, goal || opt->is_binary, err ? err : &own)))
        return code;
    schedgen s = {.opt = opt,
                  .rules = sgen_schedgen_rules(opt->rules),
                  .ranks = ranks_of(r, opt),
                  .pen = &pen};
    pen.cpu = opt->cpu;
    pen.has_overlap = opt->has_overlap;
    pen.overlap_ns = opt->overlap_ns;
    pen.poll_ns = opt->poll_ns;
    pen.totals_out = out;
    if (r->draw && s.ranks)
        code = r->draw(&s, err);
    if (!code)
        write_ranks(r, &s);
    orr_free(s.table);
    if (code) {
        sgen_gpen_discard(&pen);
        return code;
    }
    if (goal)
        *goal = sgen_gpen_take(&pen);
    return sgen_gpen_finish(&pen, err);
}

orr_code orr_schedgen_write(const orr_schedgen_pattern *p,
                            const orr_schedgen_options *opt,
                            const char *path,
                            orr_schedgen_totals *out,
                            orr_error *err)
{
    return make_schedule(row_of(p), opt, path, NULL, out, err);
}

orr_code orr_schedgen_goal(const orr_schedgen_pattern *p,
                           const orr_schedgen_options *opt,
                           orr_goal **out,
                           orr_error *err)
{
    *out = NULL;
    return make_schedule(row_of(p), opt, NULL, out, NULL, err);
}
