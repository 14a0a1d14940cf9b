/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_times.c - what a collective takes with a given algorithm and protocol.
 *
 * A ring of n ranks moves n chunks in n - 1 steps (all-reduce: twice as many).  A step of Simple
 * takes chunk / rate, but not less than half of that and its latency: a chunk travels as two
 * slices, and the second is sent while the first is waited for.  That shape (flat until a step's
 * latency is covered, then the line) is what measured rows show.  LL and LL128 have no slices: the
 * latency adds up.  Few bytes use few threads and channels of LL, so a step grows by up_grow_ns
 * around 4 KiB of chunk.  The ends of a ring read and write once more than they pass on.
 *
 * Bytes of the ports are counted exactly; rates are parts of the ports' rates, at most 1: nothing
 * can be faster than its cut. */
#include "models/collective/nccl/nccl_parts.h"

#include <math.h>

/* Bytes of a chunk at which half of a growth is there.  LL takes more threads from 512 x 8 bytes
 * on; grouped messages change from LL to Simple at 16 KiB (NCCL's defaults). */
static const double grow_knee = 4096, drain_knee = 16 << 20;
static const double direct_knee = 24 << 10, direct_drain_knee = 2 << 20;

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* A hop: what the constants say beyond the latency of the machine measured, and this one's. */
static double hop(double ns, double nominal_ns, double ns_here)
{
    return most(ns - nominal_ns, 0) + (ns_here > 0 ? ns_here : nominal_ns);
}

/* Payload of what travels: LL sends 4 bytes of flag with 4 of data, LL128 8 with 120. */
static double payload(uint32_t protocol)
{
    return protocol == NCCL_LL ? 0.5 : protocol == NCCL_LL128 ? 0.9375 : 1.0;
}

static double growth(double bytes, double knee)
{
    return bytes * bytes / (bytes * bytes + knee * knee);
}

static double step(uint32_t protocol, const nccl_line *line, double chunk, double rate, double ns)
{
    double move = chunk / rate;
    if (protocol == NCCL_SIMPLE)
        return most(move, move / 2 + ns);
    return ns + most(move, line->up_grow_ns * growth(chunk, grow_knee));
}

typedef struct frame {
    const nccl_constants *k;
    const nccl_shape *s;
    const nccl_line *line;
    double bytes, n, nodes, most_per, least_per;
    double up_hop, out_hop, tree_hop; /* ns */
    double up_rate, out_rate;         /* bytes/ns: of a port, of the NICs of the smallest host */
    uint32_t protocol;
} frame;

static bool is_sum(orr_collective kind)
{
    return kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_BARRIER;
}

static double ring_rate(const frame *f)
{
    if (f->nodes == 1)
        return f->up_rate;
    return f->most_per > 1 ? least(f->up_rate, f->out_rate) : f->out_rate;
}

static void ring(const frame *f, orr_collective kind, nccl_time *out)
{
    double n = f->n, rate = ring_rate(f), steps = is_sum(kind) ? 2 * (n - 1) : n - 1;
    double between = f->nodes == 1 ? 0 : is_sum(kind) ? 2 * (f->nodes - 1) : f->nodes - 1;
    double chunk = f->bytes / n, moved = steps * chunk;
    out->latency_ns = f->line->base_ns + (steps - between) * f->up_hop + between * f->out_hop;
    out->ns = f->line->base_ns + f->line->grow_ns * growth(chunk, grow_knee) +
              (steps - between) * step(f->protocol, f->line, chunk, rate, f->up_hop) +
              between * step(f->protocol, f->line, chunk, rate, f->out_hop) +
              f->line->ends * chunk / rate + f->line->drain_ns * chunk / (chunk + drain_knee);
    out->up_bytes =
        f->most_per > 1 ? moved * (f->nodes > 1 ? (f->most_per - 1) / f->most_per : 1) : 0;
    out->out_bytes = f->nodes > 1 ? moved / f->least_per : 0;
}

/* Broadcast and reduce: a chain that all bytes pass, in pieces. */
static void chain(const frame *f, nccl_time *out)
{
    double between = f->nodes - 1, steps = f->n - 1;
    double rate = ring_rate(f);
    out->latency_ns = f->line->base_ns + (steps - between) * f->up_hop + between * f->out_hop;
    out->ns = out->latency_ns + f->bytes / rate;
    out->up_bytes = f->most_per > 1 ? f->bytes : 0;
    out->out_bytes = f->nodes > 1 ? f->bytes / f->least_per : 0;
}

/* What a host sends in two trees of half of the bytes each: all of it up, and down as much again
 * where it is inside of one of them.  Of two hosts each is the root of one tree. */
static double tree_bytes(const frame *f)
{
    return f->nodes > 2 ? 2 * f->bytes : f->bytes;
}

/* Up and down: each rank sends its bytes to its parent and the sum to its children. */
static void tree(const frame *f, nccl_time *out)
{
    /* NCCL's tuning model: 0.92 of a ring; LL 1 / 3.8 of it where the ring's LL has 1 / 2; LL128
     * 7 / 9 inside a node. */
    double part = f->protocol == NCCL_LL                       ? 0.92 / 1.9
                  : f->protocol == NCCL_LL128 && f->nodes == 1 ? 0.92 * 7 / 9
                                                               : 0.92;
    double levels = ceil(log2(f->nodes)), move;
    out->latency_ns = f->line->base_ns + 2 * ((f->most_per - 1) * f->up_hop + levels * f->tree_hop);
    move = f->most_per > 1 ? 2 * f->bytes / (f->up_rate * part) : 0;
    if (f->nodes > 1)
        move = most(move, tree_bytes(f) / (f->out_rate * part));
    out->ns = out->latency_ns + move;
    out->up_bytes = f->most_per > 1 ? 2 * f->bytes : 0;
    out->out_bytes = f->nodes > 1 ? tree_bytes(f) / f->least_per : 0;
}

/* Turns of all channels and heads: the chunk grows with the bytes (NCCL's enqueue.cc: 16, 32, 64,
 * 128 KiB from 2, 8 and 64 turns on).  Adding up and handing out are two stages of a pipeline, so
 * there is one turn more than the bytes need. */
static double nvls_loops(double bytes, double heads)
{
    static const double chunks[] = {131072, 65536, 32768, 16384};
    static const double turns[] = {64, 8, 2};
    double lanes = 16 * heads;
    int at = 0;
    while (at < 3 && bytes < turns[at] * lanes * chunks[at])
        at++;
    return ceil(bytes / (lanes * chunks[at]));
}

static double nvls_ns(const frame *f, double bytes, double move)
{
    double loops = nvls_loops(bytes, f->least_per);
    return move * bytes * (1 + (loops > 0 ? 1 / loops : 0)) + f->k->nvls_loop_ns * (loops + 1);
}

/* A larger chunk saves turns: without this, more bytes could take less time at its threshold. */
static double nvls_monotone(const frame *f, double move)
{
    double ns = nvls_ns(f, f->bytes, move), lanes = 16 * f->least_per;
    const double edges[] = {2 * lanes * 32768, 8 * lanes * 65536, 64 * lanes * 131072};
    for (int i = 0; i < 3; i++) {
        if (f->bytes >= edges[i])
            ns = most(ns, nvls_ns(f, edges[i] - 1, move));
    }
    return ns;
}

static void nvls(const frame *f, orr_collective kind, uint32_t algorithm, nccl_time *out)
{
    double up = is_sum(kind) ? f->bytes * (1 + 1 / f->least_per) : f->bytes;
    double wire = algorithm == NCCL_NVLS_TREE ? tree_bytes(f) : f->nodes > 1 ? f->bytes : 0;
    double move = 0;
    out->up_bytes = up;
    out->out_bytes = wire / f->least_per;
    if (f->bytes > 0) {
        move = up / (f->s->up_GBps * f->k->nvls_rate) / f->bytes;
        if (f->nodes > 1)
            move = most(move, wire / f->out_rate / f->bytes);
    }
    out->latency_ns =
        f->k->nvls_ns + hop(f->k->up_latency_ns, f->k->up_latency_ns, f->s->up_latency_ns) * 2;
    if (algorithm == NCCL_NVLS_TREE)
        out->latency_ns += 2 * ceil(log2(f->nodes)) * f->tree_hop;
    else if (f->nodes > 1)
        out->latency_ns += 2 * f->tree_hop;
    out->ns = out->latency_ns + nvls_monotone(f, move);
}

/* SHARP: the network adds up what each NIC sends once. */
static void collnet(const frame *f, uint32_t algorithm, nccl_time *out)
{
    bool direct = algorithm == NCCL_COLLNET_DIRECT;
    double others = f->most_per - 1;
    double hops = direct ? 2 * (others > 0 ? 1 : 0) : 2 * others;
    out->up_bytes = direct ? 2 * f->bytes * others / f->most_per : others > 0 ? 2 * f->bytes : 0;
    out->out_bytes = f->bytes / f->least_per;
    out->latency_ns =
        f->line->base_ns + hops * f->up_hop + (direct ? others * 800.0 : 0) + 2 * f->tree_hop;
    out->ns =
        out->latency_ns + most(others > 0 ? out->up_bytes / f->up_rate : 0, f->bytes / f->out_rate);
}

/* One rank on each node: logarithmic, and a linear part for the posts (NCCL: 2.8 us a rank, of
 * which its tuning model says that it is to go). */
static void pat(const frame *f, nccl_time *out)
{
    double moved = f->bytes * (f->n - 1) / f->n;
    out->latency_ns = f->line->base_ns + ceil(log2(f->nodes)) * f->tree_hop + f->n * 2800.0;
    out->out_bytes = moved;
    out->up_bytes = 0;
    out->ns = out->latency_ns + moved / (f->out_rate * 0.75);
}

/* Grouped send and receive: all-to-all, gather, scatter.
 *
 * PXN (NCCL_P2P_PXN_LEVEL, 2 unless said otherwise): what is for another host goes by NVLink to the
 * rank on the receiver's rail first, so that a NIC sends to its own rail only.  Of the bytes that
 * leave the host all but one part in as many as the host has ranks cross NVLink as well. */
static void direct(const frame *f, orr_collective kind, nccl_time *out)
{
    double part = f->bytes / f->n, peers = f->n - 1;
    double up_rate = f->s->up_GBps * f->k->direct_rate;
    double nic = f->s->out_GBps * f->k->out_rate;
    bool all = kind == ORR_COLL_ALL_TO_ALL;
    double local = f->most_per - 1, far = f->n - (all ? f->least_per : 1);
    double start = f->k->direct_grow_ns * growth(part, direct_knee) +
                   f->k->direct_drain_ns * part / (part + direct_drain_knee);
    double move = 0;
    if (!all)
        far = f->nodes > 1 ? f->n - 1 : 0;
    if (f->nodes == 1)
        far = 0;
    const double relayed =
        all && f->nodes > 1 && f->s->up_GBps > 0 ? far * (f->most_per - 1) / f->most_per : 0;
    if (f->s->up_GBps > 0)
        move = most((all ? local + 1 : local) * part, (local + relayed) * part) / up_rate;
    if (f->nodes > 1)
        move = most(move, far * part / nic);
    out->latency_ns = f->k->direct_ns + peers * f->k->peer_ns +
                      (f->nodes > 1 ? f->out_hop : hop(0, 0, f->s->up_latency_ns));
    out->ns = out->latency_ns + start + move;
    out->up_bytes = f->s->up_GBps > 0 ? (local + relayed) * part : 0;
    out->out_bytes = far * part;
}

void nccl_time_of(const nccl_constants *k,
                  const nccl_shape *s,
                  orr_collective kind,
                  double bytes,
                  nccl_way way,
                  uint32_t channels,
                  nccl_time *out)
{
    const nccl_line *line = &k->line[way.protocol];
    uint32_t usual =
        way.algorithm == NCCL_NVLS || way.algorithm == NCCL_NVLS_TREE ? 16 : k->channels;
    double share = channels && channels < usual ? (double)channels / usual : 1;
    frame f = {.k = k, .s = s, .line = line, .bytes = kind == ORR_COLL_BARRIER ? 4 : bytes};
    f.protocol = way.protocol;
    f.n = s->ranks;
    f.nodes = s->nodes;
    f.most_per = s->most_per_node;
    f.least_per = s->least_per_node;
    f.up_hop = hop(line->up_ns, k->up_latency_ns, s->up_latency_ns);
    f.out_hop = hop(line->out_ns, k->out_latency_ns, s->out_latency_ns);
    f.tree_hop = hop(line->tree_ns, k->out_latency_ns, s->out_latency_ns);
    f.up_rate = s->up_GBps * line->rate * share;
    f.out_rate = f.least_per * s->out_GBps * k->out_rate * payload(way.protocol) * share;
    *out = (nccl_time){.channels = channels ? channels : usual};
    switch (way.algorithm) {
    case NCCL_RING:
        if (kind == ORR_COLL_BROADCAST || kind == ORR_COLL_REDUCE)
            chain(&f, out);
        else
            ring(&f, kind, out);
        break;
    case NCCL_TREE:
        tree(&f, out);
        break;
    case NCCL_NVLS:
    case NCCL_NVLS_TREE:
        nvls(&f, kind, way.algorithm, out);
        break;
    case NCCL_COLLNET_DIRECT:
    case NCCL_COLLNET_CHAIN:
        collnet(&f, way.algorithm, out);
        break;
    case NCCL_PAT:
        pat(&f, out);
        break;
    default:
        direct(&f, kind, out);
        break;
    }
}
