/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_trees.c - patterns with a root: trees, scatter and gather, the barrier at one rank (goal.md 4).
 *
 * Each rank's part follows from its number alone, in O(log n) steps, so that a million ranks cost no memory.
 * The order of the lines is SchedGen's. */
#include "schedgen_impl.h"

/* Round k reaches from the first 2^k ranks to as many more.  SchedGen repeats the edge from the receive to
 * the latest send in every round that follows. */
void sgen_binomial_bcast(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes)
{
    const uint64_t v = sgen_swap_root(rank, root);
    uint64_t recv = 0, send = 0;
    for (uint64_t reach = 1; reach < n; reach *= 2) {
        if (v < reach && v + reach < n)
            send = sgen_gpen_send(pen, bytes, sgen_swap_root((uint32_t)(v + reach), root));
        if (send && recv)
            sgen_gpen_require(pen, send, recv);
        if (v >= reach && v < 2 * reach)
            recv = sgen_gpen_recv(pen, bytes, sgen_swap_root((uint32_t)(v - reach), root));
    }
}

/* The same tree the other way: the send, whose line comes first, waits for the receives below it. */
void sgen_binomial_reduce(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes)
{
    const uint64_t v = sgen_swap_root(rank, root);
    uint64_t recv = 0, send = 0;
    for (uint64_t reach = 1; reach < n; reach *= 2) {
        if (v < reach && v + reach < n)
            recv = sgen_gpen_recv(pen, bytes, sgen_swap_root((uint32_t)(v + reach), root));
        if (send && recv)
            sgen_gpen_require(pen, send, recv);
        if (v >= reach && v < 2 * reach)
            send = sgen_gpen_send(pen, bytes, sgen_swap_root((uint32_t)(v - reach), root));
    }
}

static uint32_t root_of(const schedgen *s)
{
    return (uint32_t)s->opt->root;
}

void sgen_pattern_binomialtreebcast(const schedgen *s, uint32_t rank)
{
    sgen_binomial_bcast(s->pen, root_of(s), rank, s->ranks, s->opt->data_bytes);
}

void sgen_pattern_binomialtreereduce(const schedgen *s, uint32_t rank)
{
    sgen_binomial_reduce(s->pen, root_of(s), rank, s->ranks, s->opt->data_bytes);
}

void sgen_pattern_scatter(const schedgen *s, uint32_t rank)
{
    const uint32_t root = root_of(s);
    if (rank != root) {
        sgen_gpen_recv(s->pen, s->opt->data_bytes, root);
        return;
    }
    for (uint32_t v = 1; v < s->ranks && !sgen_gpen_has_failed(s->pen); v++)
        sgen_gpen_send(s->pen, s->opt->data_bytes, sgen_swap_root(v, root));
}

void sgen_pattern_gather(const schedgen *s, uint32_t rank)
{
    const uint32_t root = root_of(s);
    if (rank != root) {
        sgen_gpen_send(s->pen, s->opt->data_bytes, root);
        return;
    }
    for (uint32_t v = 1; v < s->ranks && !sgen_gpen_has_failed(s->pen); v++)
        sgen_gpen_recv(s->pen, s->opt->data_bytes, sgen_swap_root(v, root));
}

/* Children of v are 2v+1 and 2v+2.  SchedGen renames the peers but not the rank itself, so that with another
 * root than 0 its messages miss each other; that only with keeps_invalid. */
void sgen_pattern_binarytreebcast(const schedgen *s, uint32_t rank)
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

/* Everybody tells rank 0 and waits; a calculation of no length joins the receives. */
void sgen_pattern_linbarrier(const schedgen *s, uint32_t rank)
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
