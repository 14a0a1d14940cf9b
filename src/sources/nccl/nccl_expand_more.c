/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_expand_more.c - algorithms that the old generator does not know: NVLS, CollNet, PAT.
 *
 * GOAL has ranks and messages, and no switch that adds up.  So NVLS and CollNet Direct are what they replace: everybody sends
 * everybody its share, and gets the shares of the others.  CollNet Chain is a chain to the first rank and back.  PAT is
 * what its authors describe as Bruck's algorithm turned round: distances double, and with them the pieces.
 * Invariant: as in nccl_expand.c, both ends of a message write a pair's messages in the same order. */
#include "nccl_write.h"

static uint32_t place_of(const nccl_plan *p)
{
    const nccl_comms *c = &p->w->job->comms;
    const uint32_t me = (uint32_t)(p->seat - c->seats.at);
    uint32_t at = 0;
    while (at < p->comm->seats && c->by_rank.at[p->comm->first_seat + at] != me)
        at++;
    return at;
}

static uint32_t gpu_at(const nccl_plan *p, uint64_t place)
{
    const nccl_comms *c = &p->w->job->comms;
    return c->seats.at[c->by_rank.at[p->comm->first_seat + place % p->comm->seats]].gpu;
}

static nccl_ends piece(nccl_plan *p, nccl_lane *l, unsigned what, uint32_t peer, uint64_t bytes)
{
    const nccl_step s = {.what = what, .from = peer, .to = peer};
    return nccl_lane_slices(l, &s, bytes, p->cap, p->slices);
}

/* What one chunk of so many bytes becomes. */
typedef nccl_ends expand_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes);

static nccl_ends each_chunk(
    nccl_plan *p, nccl_lane *l, const nccl_work *work, uint64_t width, expand_chunk *expand)
{
    nccl_pen *pen = &p->w->pen;
    const uint64_t chunk = work->chunk ? work->chunk : work->total ? work->total : 1;
    if (work->total / chunk > 1u << 20)
        nccl_writer_fail(p->w, "a work of more than 1,048,576 chunks is out of bounds");
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    for (uint64_t from = 0; from < work->total && !p->w->code;) {
        const uint64_t elements = chunk < work->total - from ? chunk : work->total - from;
        nccl_pen_branch(pen, &f, expand(p, l, elements * width));
        from += elements;
    }
    return nccl_pen_join(pen, &f, l->cpu);
}

/* ---- everybody with everybody ---- */

/* Bytes of a chunk that are the share of the rank at a place. */
static uint64_t share(const nccl_plan *p, uint64_t bytes, uint64_t place)
{
    const unsigned __int128 all = bytes;
    const uint64_t n = p->comm->seats;
    return (uint64_t)(all * (place + 1) / n) - (uint64_t)(all * place / n);
}

/* To each of the others what is meant for it, and `what` with what each of them has for this one. */
typedef struct exchange {
    unsigned what;
    bool is_mine;  /* what is sent is the share of the sender, else that of the receiver */
    bool is_whole; /* no shares: all of it */
    uint64_t bytes;
} exchange;

static nccl_ends swap(nccl_plan *p, nccl_lane *l, const exchange *x)
{
    nccl_pen *pen = &p->w->pen;
    const uint32_t n = p->comm->seats, me = place_of(p);
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    for (uint32_t k = 1; k < n && !p->w->code; k++) {
        const uint32_t other = (me + k) % n;
        const uint64_t bytes = x->is_whole ? x->bytes : share(p, x->bytes, x->is_mine ? me : other);
        nccl_pen_branch(pen, &f, piece(p, l, ORR__SEND, gpu_at(p, other), bytes));
    }
    for (uint32_t k = 1; k < n && !p->w->code; k++) {
        const uint32_t other = (me + n - k) % n;
        const uint64_t bytes = x->is_whole ? x->bytes : share(p, x->bytes, x->is_mine ? other : me);
        nccl_pen_branch(pen, &f, piece(p, l, x->what, gpu_at(p, other), bytes));
    }
    return nccl_pen_join(pen, &f, l->cpu);
}

static nccl_ends direct_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    nccl_pen *pen = &p->w->pen;
    nccl_pen_then(pen, &steps,
                  swap(p, l, &(exchange){.what = ORR__RECV | ORR__REDUCE, .bytes = bytes}));
    nccl_pen_then(
        pen, &steps,
        swap(p, l, &(exchange){.what = ORR__RECV | ORR__COPY, .is_mine = true, .bytes = bytes}));
    return nccl_pen_chained(&steps);
}

static nccl_ends direct_all_reduce(nccl_plan *p,
                                   nccl_lane *l,
                                   uint32_t channel,
                                   const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, p->info->width, direct_chunk);
}

static nccl_ends gather_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    return swap(p, l, &(exchange){.what = ORR__RECV | ORR__COPY, .is_whole = true, .bytes = bytes});
}

static nccl_ends direct_all_gather(nccl_plan *p,
                                   nccl_lane *l,
                                   uint32_t channel,
                                   const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, 1, gather_chunk);
}

static nccl_ends scatter_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    return swap(p, l,
                &(exchange){.what = ORR__RECV | ORR__REDUCE, .is_whole = true, .bytes = bytes});
}

static nccl_ends direct_reduce_scatter(nccl_plan *p,
                                       nccl_lane *l,
                                       uint32_t channel,
                                       const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, p->info->width, scatter_chunk);
}

/* ---- a chain ---- */

static nccl_ends chain_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    nccl_chain steps = {0};
    const uint32_t me = place_of(p);
    const bool is_first = me == 0, is_last = me + 1 == p->comm->seats;
    if (!is_last)
        nccl_pen_then(pen, &steps, piece(p, l, ORR__RECV | ORR__REDUCE, gpu_at(p, me + 1), bytes));
    if (!is_first) {
        nccl_pen_then(pen, &steps, piece(p, l, ORR__SEND, gpu_at(p, me - 1), bytes));
        nccl_pen_then(pen, &steps, piece(p, l, ORR__RECV | ORR__COPY, gpu_at(p, me - 1), bytes));
    }
    if (!is_last)
        nccl_pen_then(pen, &steps, piece(p, l, ORR__SEND, gpu_at(p, me + 1), bytes));
    return nccl_pen_chained(&steps);
}

static nccl_ends chain_all_reduce(nccl_plan *p,
                                  nccl_lane *l,
                                  uint32_t channel,
                                  const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, p->info->width, chain_chunk);
}

/* ---- PAT ---- */

static uint64_t blocks_at(const nccl_plan *p, uint64_t distance)
{
    const uint64_t n = p->comm->seats;
    return distance < n - distance ? distance : n - distance;
}

/* One step: send that way, get from the other side. */
static nccl_ends pat_step(
    nccl_plan *p, nccl_lane *l, unsigned what, uint64_t distance, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    const uint64_t n = p->comm->seats, me = place_of(p), size = bytes * blocks_at(p, distance);
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    nccl_pen_branch(pen, &f, piece(p, l, ORR__SEND, gpu_at(p, me + distance), size));
    nccl_pen_branch(pen, &f, piece(p, l, what, gpu_at(p, me + n - distance), size));
    return nccl_pen_join(pen, &f, l->cpu);
}

static nccl_ends pat_gather_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    for (uint64_t d = 1; d < p->comm->seats; d *= 2)
        nccl_pen_then(&p->w->pen, &steps, pat_step(p, l, ORR__RECV | ORR__COPY, d, bytes));
    return nccl_pen_chained(&steps);
}

static nccl_ends pat_scatter_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    uint64_t d = 1;
    while (d < p->comm->seats)
        d *= 2;
    for (d /= 2; d; d /= 2)
        nccl_pen_then(&p->w->pen, &steps, pat_step(p, l, ORR__RECV | ORR__REDUCE, d, bytes));
    return nccl_pen_chained(&steps);
}

static nccl_ends pat_all_gather(nccl_plan *p, nccl_lane *l, uint32_t channel, const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, 1, pat_gather_chunk);
}

static nccl_ends pat_reduce_scatter(nccl_plan *p,
                                    nccl_lane *l,
                                    uint32_t channel,
                                    const nccl_work *work)
{
    (void)channel;
    return each_chunk(p, l, work, p->info->width, pat_scatter_chunk);
}

/* ---- which ---- */

nccl_expand_channel *nccl_expansion_of(uint64_t algorithm, uint8_t op)
{
    static const struct {
        uint8_t algorithm, op;
        nccl_expand_channel *expand;
    } all[] = {
        {ORR__NVLS, ORR_NCCL_ALL_REDUCE, direct_all_reduce},
        {ORR__NVLS, ORR_NCCL_ALL_GATHER, direct_all_gather},
        {ORR__NVLS, ORR_NCCL_REDUCE_SCATTER, direct_reduce_scatter},
        {ORR__COLLNET_DIRECT, ORR_NCCL_ALL_REDUCE, direct_all_reduce},
        {ORR__COLLNET_DIRECT, ORR_NCCL_ALL_GATHER, direct_all_gather},
        {ORR__COLLNET_DIRECT, ORR_NCCL_REDUCE_SCATTER, direct_reduce_scatter},
        {ORR__COLLNET_CHAIN, ORR_NCCL_ALL_REDUCE, chain_all_reduce},
        {ORR__PAT, ORR_NCCL_ALL_GATHER, pat_all_gather},
        {ORR__PAT, ORR_NCCL_REDUCE_SCATTER, pat_reduce_scatter},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].algorithm == algorithm && all[i].op == op)
            return all[i].expand;
    return NULL;
}
