/* SPDX-License-Identifier: Apache-2.0 */
/* coll_exchange.h - common part of ring, direct and halving-doubling (astra-sim.md 5.4, 5.5, 5.7).
 *
 * A phase makes packets (a member to send to, one to receive from, a size), waits out an endpoint
 * delay for each and then sends the oldest.  Packets leave in the order they are made, so none is
 * stored: an algorithm has two cursors into the same sequence, one for packets made and one for
 * packets sent, and a function that returns the packet at a cursor and advances it.
 *
 * The functions are inline, so that each algorithm gets its own specialised copy: this is the
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
    uint64_t left; /* packets to send */
    /* of a round, packets forwarded from the network: remaining, and in total */
    uint64_t later, round;
    uint32_t parallel; /* packets in flight at a time */
    uint32_t own;      /* of a round, packets with the member's own data: remaining */
    uint32_t free, packets;
    uint32_t received;  /* used by direct only */
    bool is_first_half; /* of an all-reduce: incoming data is reduced */
} coll_exchange;

/* One hop around the ring, with or against the direction of the chunk. */
static inline uint32_t coll_step(const orr_coll *c, uint32_t index, bool is_forward)
{
    if (c->is_forward == is_forward)
        return index + 1 == c->count ? 0 : index + 1;
    return index == 0 ? c->count - 1 : index - 1;
}

/* Makes the next packet: its endpoint delay begins.  A round starts with `parallel` packets of the
 * member's own data; the others forward received data (astra-sim.md 5.5). */
static inline void coll_make_packet(orr_coll *c, coll_exchange *x, coll_next next, void *made)
{
    /* An all-reduce has two rounds, a reduce-scatter and an all-gather; the flag tells them apart,
     * because received data is added up in the first only. */
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
    /* The last `parallel` packets of a round stay here; all before them are forwarded. */
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

/* Send, then receive: the order determines ties within a tick. */
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

/* `free` counts delays that have passed and were not spent on a send. Every receive makes a
 * packet, after the `parallel` made at the start, so when all are sent and all delays have
 * passed, that of the last receive included, `parallel` of them are left over. Ending at the
 * last send instead would drop the reduction of what comes last. */
static inline void coll_end_if_through(orr_coll *c, const coll_exchange *x)
{
    if (x->left == 0 && x->free == x->parallel)
        orr_coll_done(c);
}

#endif
