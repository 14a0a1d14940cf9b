/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_guess.c - how NCCL likely does a call of which only the name and the size are known.
 *
 * NCCL's own payloads say what was asked for, not how it was done.  All ranks of a call must come to the same answer, so it
 * depends on the call's size and on what is the same for the whole job: rings; LL up to 64 KiB, LL128 up to 1 MiB, Simple
 * beyond; a channel for each 64 KiB, up to the largest grid of any NCCL kernel; steps of 512 KiB, as NCCL's defaults are.
 * docs/design/nccl_goal.md says so to users. */
#include "nccl_write.h"

enum {
    STEP = 512 << 10, /* 4 MiB of buffer in 8 steps */
    SHORT_STEP = 32 << 10,
    CHANNEL_BYTES = 64 << 10,
    MOST_CHANNELS = 32,
    LINE = 16
};

static uint64_t protocol_for(uint64_t bytes)
{
    return bytes <= 64u << 10 ? ORR__LL : bytes <= 1u << 20 ? ORR__LL128 : ORR__SIMPLE;
}

nccl_guess nccl_guess_collective(const nccl_job *j, const nccl_call *c)
{
    const uint64_t protocol = protocol_for(c->bytes);
    const bool is_simple = protocol == ORR__SIMPLE;
    const bool is_reduction = c->op == ORR_NCCL_ALL_REDUCE || c->op == ORR_NCCL_ALL_GATHER ||
                              c->op == ORR_NCCL_REDUCE_SCATTER;
    uint64_t most = j->most_grid ? j->most_grid : MOST_CHANNELS;
    most = most < MOST_CHANNELS ? most : MOST_CHANNELS;
    const uint64_t wanted = c->bytes / CHANNEL_BYTES;
    nccl_guess g = {.channels = (uint32_t)(wanted < 1 ? 1 : wanted < most ? wanted : most)};
    g.info = (nccl_info){.root = c->root,
                         .algorithm = ORR__RING,
                         .protocol = protocol,
                         .bytes = c->bytes,
                         .width = 1,
                         .chunk_steps = is_simple && is_reduction ? 4 : 1,
                         .slice_steps = is_simple && is_reduction ? 2 : 1,
                         .step = is_simple ? STEP : SHORT_STEP};
    return g;
}

static uint64_t lines(uint64_t bytes)
{
    return bytes / LINE + (bytes % LINE != 0);
}

/* An even share of whole lines; the last channel has what is left. */
nccl_work nccl_guess_work(const nccl_guess *g, const nccl_call *c, uint64_t ranks, uint32_t channel)
{
    const uint64_t each =
        (lines(c->bytes) / g->channels + (lines(c->bytes) % g->channels != 0)) * LINE;
    const uint64_t from = (each * channel) < c->bytes ? each * channel : c->bytes;
    const uint64_t total = each < c->bytes - from ? each : c->bytes - from;
    const uint64_t most = g->info.chunk_steps * g->info.step;
    const uint64_t split = c->op == ORR_NCCL_ALL_REDUCE ? ranks : 1;
    const uint64_t even = lines(total / split + (total % split != 0)) * LINE;
    const uint64_t chunk = even < most ? even : most;
    const uint64_t left = chunk && split ? total % (chunk * split) : 0;
    return (nccl_work){.count = c->bytes,
                       .chunk = chunk ? chunk : 1,
                       .total = total,
                       .last = lines(left / split + (left % split != 0)) * LINE,
                       .send_buffer = 1}; /* not in place */
}

nccl_transfer nccl_guess_transfer(const nccl_call *c)
{
    return (nccl_transfer){.bytes = c->bytes,
                           .peer = c->peer,
                           .protocol = protocol_for(c->bytes),
                           .size = c->bytes,
                           .first_id = c->sequence};
}
