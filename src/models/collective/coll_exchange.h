/* SPDX-License-Identifier: Apache-2.0 */
/* coll_exchange.h - what ring, direct and halving-doubling have in common (astra-sim.md 5.4, 5.5,
 * 5.7).
 *
 * A phase makes packets (a member to send to, one to receive from, a size), waits out an endpoint
 * delay for each and then sends the oldest.  Packets leave in the order they are made, so none is
 * stored: an algorithm has two walks over the same sequence, one for packets made and one for
 * packets sent, and a function that gives the packet where a walk stands and moves it on.
 *
 * The functions are inline: in each algorithm the compiler sees its own walk, and this is the
 * innermost loop of a run. */
#ifndef ORR_COLL_EXCHANGE_H
#define ORR_COLL_EXCHANGE_H

#include "coll.h"

typedef struct coll_packet {
    uint64_t size;
    uint32_t to, from; /* members */
} coll_packet;

typedef coll_packet (*coll_next)(orr_coll *c, void *walk);

typedef struct coll_exchange {
    uint64_t left;         /* packets to send */
    uint64_t later, round; /* packets of a round that come from the network: left of it, and all */
    uint32_t parallel;     /* packets under way at a time */
    uint32_t own;          /* packets of a round that come from the member itself, left of it */
    uint32_t free, packets;
    uint32_t received;  /* counted by direct alone */
    bool is_first_half; /* of an all-reduce: what comes in is added up */
} coll_exchange;

/* One step along the ring, in the direction of the chunk or against it. */
static inline uint32_t coll_step(const orr_coll *c, uint32_t index, bool is_forward)
{
    if (c->is_forward == is_forward)
        return index + 1 == c->count ? 0 : index + 1;
    return index == 0 ? c->count - 1 : index - 1;
}

/* The next packet is made: its endpoint delay begins.  A round starts with `parallel` packets of
 * the member's own data; the others pass on what came in (astra-sim.md 5.5). */
static inline void coll_make_packet(orr_coll *c, coll_exchange *x, coll_next next, void *made)
{
    if (x->own == 0 && x->later == 0) {
        x->own = x->parallel;
        x->later = x->round;
        x->is_first_half = !x->is_first_half;
    }
    const uint64_t size = next(c, made).size;
    x->packets++;
    if (x->own) {
        x->own--;
        orr_coll_charge(c, size, ORR_COLL_FROM_NPU);
        return;
    }
    const bool is_sent_back = x->later > x->parallel;
    const bool is_reduced =
        c->kind == ORR_COLL_REDUCE_SCATTER || (c->kind == ORR_COLL_ALL_REDUCE && x->is_first_half);
    x->later--;
    orr_coll_charge(
        c, size, (is_reduced ? ORR_COLL_REDUCED : 0u) | (is_sent_back ? ORR_COLL_SENT_BACK : 0u));
}

static inline void coll_start_exchange(orr_coll *c, coll_exchange *x, coll_next next, void *made)
{
    for (uint32_t i = 0; i < x->parallel; i++)
        coll_make_packet(c, x, next, made);
}

/* Send, then receive: the order matters. */
static inline void coll_send_packet(orr_coll *c, coll_exchange *x, coll_next next, void *sent)
{
    if (x->packets == 0 || x->left == 0 || x->free == 0)
        return;
    const coll_packet p = next(c, sent);
    x->packets--;
    orr_coll_send(c, p.to, p.size);
    orr_coll_receive(c, p.from, p.size);
    x->left--;
    x->free--;
}

static inline void coll_end_if_through(orr_coll *c, const coll_exchange *x)
{
    if (x->left == 0 && x->free == x->parallel)
        orr_coll_done(c);
}

#endif
