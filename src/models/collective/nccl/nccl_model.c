/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model.c - choice and time together.
 *
 * NCCL's choice changes as bytes grow, and a later choice may be faster than the previous one:
 * naively, more bytes could take less time.  So the sizes where the choice changes are visited in
 * ascending order, and the time is the running maximum.  Within a power of two all tuning lines are
 * straight, so the lowest is found from their intersections. */
#include "nccl_model.h"

#include "nccl_parts.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- NCCL's choice of algorithm and protocol: its published tuning model.
 *
 * For every choice NCCL has a line, latency + bytes / bandwidth, and takes the lowest.  The lines
 * are not the actual times (those are in the next part), but they decide, even where they are
 * wrong: on 8 x A100 an all-gather of 16 MiB takes 135 us with Simple where LL128 would take 100.
 *
 * Facts from NCCL 2.28 (github.com/NVIDIA/nccl, src/graph/tuning.cc, topo.h, search.cc and
 * enqueue.cc at 5067397c, Apache-2.0): latencies in us of each algorithm, protocol and link; limits
 * per channel in GB/s; efficiency of NVLS; correction of trees; the rates per channel that its
 * search tries.  The graph that its search would find is that of the generation's usual machine
 * (DGX: 6, 12, 18 NVLinks, one NIC per GPU), not of the actual rates: nccl_model.h says why. */

enum { LINK_UP, LINK_OUT };

typedef struct graph {
    double up_GBps, out_GBps; /* NVLink as NCCL counts it, NIC of a GPU */
    double channels;          /* of a ring */
    double ll_most[3];        /* GB/s on 1, 2, more nodes */
    double ll128_channel;     /* GB/s per channel */
    double tree_ll128_channel[3], tree_channel[3], nvls_tree_channel[3];
    double nvls_efficiency;
    const double *speeds; /* tried by the search per channel, descending, ends in 0 */
} graph;

static const double speeds_old[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 0};
static const double speeds_sm90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3, 0};
static const double speeds_sm100[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18, 0};

/* Channels: 40 x 6, 60 x 6 and 90 x 8, the first two doubled.  Blackwell's LL128 is limited to 8
 * channels of 40 here: in the measured rows it is never chosen.  Unknown chips are treated as
 * Hopper. */
/* clang-format off */
#define HOPPER_GRAPH                                                                              \
    {360, 50, 12, {141.0, 45.0, 35.0}, 36.7, {36.7, 36.7, 29.0}, {38.7, 41.4, 36.0},              \
     {0.0, 57.7, 45.5}, 0.85, speeds_sm90}
static const graph graphs[NCCL_GENERATIONS] = {
    [NCCL_VOLTA] = {120, 12.5, 12, {39.0, 39.0, 20.4}, 20.0, {20.0, 20.0, 20.0},
                    {26.5, 18.5, 10.0}, {26.5, 18.5, 10.0}, 0.0, speeds_old},
    [NCCL_AMPERE] = {240, 25, 12, {87.7, 22.5, 19.0}, 20.0, {20.0, 20.0, 20.0},
                     {24.0, 23.6, 17.8}, {24.0, 23.6, 17.8}, 0.0, speeds_old},
    [NCCL_HOPPER] = HOPPER_GRAPH,
    [NCCL_BLACKWELL] = {720, 50, 8, {282.0, 90.0, 70.0}, 40.0, {55.6, 31.67, 20.0},
                        {70.0, 42.8, 24.0}, {0.0, 96.0, 80.0}, 0.74, speeds_sm100},
    [NCCL_OTHER] = HOPPER_GRAPH,
};
/* clang-format on */

/* Microseconds: LL, LL128, Simple. */
static const double base_us[NCCL_ALGORITHMS][NCCL_PROTOCOLS] = {
    [NCCL_RING] = {6.6, 14.0, 8.4},
    [NCCL_TREE] = {6.8, 14.0, 8.4},
    [NCCL_PAT] = {8.0, 8.0, 8.0},
};
static const double hop_us[2][NCCL_ALGORITHMS][NCCL_PROTOCOLS] = {
    [LINK_UP] = {[NCCL_RING] = {0.6, 1.9, 3.4},
                 [NCCL_TREE] = {0.6, 1.25, 4.0},
                 [NCCL_COLLNET_DIRECT] = {0, 0, 3.7},
                 [NCCL_COLLNET_CHAIN] = {0, 0, 2.8},
                 [NCCL_NVLS] = {0, 0, 25},
                 [NCCL_NVLS_TREE] = {0, 0, 25},
                 [NCCL_PAT] = {0, 0, 4.0}},
    [LINK_OUT] = {[NCCL_RING] = {2.7, 4.0, 14.0},
                  [NCCL_TREE] = {5.0, 8.5, 14.0},
                  [NCCL_COLLNET_DIRECT] = {0, 0, 31},
                  [NCCL_COLLNET_CHAIN] = {0, 0, 30},
                  [NCCL_NVLS] = {0, 0, 18},
                  [NCCL_NVLS_TREE] = {0, 0, 20.9},
                  [NCCL_PAT] = {0, 0, 14}},
};
static const double post_us = 1.0; /* a network post, three times with Simple */

/* Trees reach less of their line at medium sizes; by powers of two from 64 bytes on. */
enum { CORRECTIONS = 24 };
static const double tree_correction[NCCL_PROTOCOLS][CORRECTIONS] = {
    {1., 1., 1., 1., .9, .8, .7, .7, .7, .7, .6, .5,
     .4, .4, .5, .6, .7, .8, .9, 1., 1., 1., 1., 1.},
    {1., 1., 1., 1., 1., .9, .8, .8, .8, .7, .6, .6,
     .6, .6, .6, .6, .8, .9, .9, .9, .9, 1., 1., 1.},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
};

static double log2_floor(double x)
{
    return x < 1 ? 0 : floor(log2(x));
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double quantised(const graph *g, double GBps)
{
    const double *s = g->speeds;
    while (s[0] > 0 && s[0] > GBps)
        s++;
    return s[0] > 0 ? s[0] : GBps;
}

static bool possible(const nccl_shape *s, orr_collective kind, nccl_algorithm a)
{
    bool one = s->nodes == 1, sum = kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_BARRIER;
    bool half = kind == ORR_COLL_ALL_GATHER || kind == ORR_COLL_REDUCE_SCATTER;
    bool nvls = s->up_reduces && s->least_per_node > 2;
    bool direct =
        kind == ORR_COLL_ALL_TO_ALL || kind == ORR_COLL_GATHER || kind == ORR_COLL_SCATTER;
    switch (a) {
    case NCCL_RING:
        return !direct;
    case NCCL_TREE:
        return sum;
    case NCCL_NVLS:
        return nvls && ((one && (sum || half)) || (!one && sum && s->out_reduces));
    case NCCL_NVLS_TREE:
        return nvls && !one && sum;
    case NCCL_COLLNET_DIRECT:
        return s->out_reduces && !one && sum && s->most_per_node > 1 && s->most_per_node <= 8;
    case NCCL_COLLNET_CHAIN:
        return s->out_reduces && !one && sum && s->most_per_node <= 8;
    case NCCL_PAT:
        return half && s->nodes == s->ranks && !one;
    case NCCL_DIRECT:
        return direct;
    case NCCL_ALGORITHMS:
        break;
    }
    return false;
}

/* The rate of the line, as an algorithm's bandwidth. */
static double rate_of(const nccl_shape *s, const graph *g, orr_collective kind, nccl_way w)
{
    bool sum = kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_BARRIER;
    bool half = kind == ORR_COLL_ALL_GATHER || kind == ORR_COLL_REDUCE_SCATTER;
    double n = s->ranks, nodes = s->nodes, per_node = n / nodes;
    double steps = sum ? 2 * (n - 1) : half ? n - 1 : n;
    int at = nodes <= 2 ? (int)nodes - 1 : 2;
    double nics = s->least_per_node * g->out_GBps;
    double inside = s->most_per_node > 1 ? g->up_GBps : nics;
    double bus = nodes <= 2 ? (nodes > 1 ? least(inside, 2 * nics) : inside) : least(inside, nics);
    if (w.algorithm == NCCL_RING && nodes == 2)
        bus = least(inside, nics);
    switch (w.algorithm) {
    case NCCL_RING:
        if (w.protocol == NCCL_LL)
            bus = least(g->ll_most[at], bus * 0.5);
        else if (w.protocol == NCCL_LL128)
            bus = least(bus * 0.92, g->channels * g->ll128_channel);
        return bus * n / steps;
    case NCCL_TREE:
        bus = least(bus * 0.92, g->channels * g->tree_channel[at]);
        if (w.protocol == NCCL_LL)
            bus = least(bus / 3.8, g->ll_most[at]);
        else if (w.protocol == NCCL_LL128)
            bus = least(bus * (nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                        g->channels * g->tree_ll128_channel[at]);
        return bus * 0.5;
    case NCCL_NVLS:
    case NCCL_NVLS_TREE: {
        double heads = s->least_per_node;
        double channel = heads <= 16 ? quantised(g, g->up_GBps * 1.03 / (heads + 1))
                                     : g->up_GBps * 1.03 / (heads + 1);
        double up = channel * g->nvls_efficiency * (heads - 1) / heads;
        up *= sum ? 2.0 : (per_node - 1) / per_node;
        if (nodes > 1) {
            double out = g->out_GBps * (nodes <= 2 && w.algorithm == NCCL_NVLS_TREE ? 2 : 1);
            up = least(up, out);
            if (w.algorithm == NCCL_NVLS_TREE)
                up = least(up, g->nvls_tree_channel[at]);
        }
        bus = heads * up;
        return sum ? bus * n / steps : bus;
    }
    case NCCL_COLLNET_DIRECT:
        bus = least(g->up_GBps, nics);
        return bus * 0.5 * (s->generation >= NCCL_HOPPER ? 0.85 : 1.0);
    case NCCL_COLLNET_CHAIN:
        return least(g->up_GBps, nics) * 0.5;
    case NCCL_PAT:
        return bus * 0.75;
    default:
        return 1;
    }
}

static double latency_of(const nccl_shape *s, orr_collective kind, nccl_way w)
{
    bool sum = kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_BARRIER;
    bool half = kind == ORR_COLL_ALL_GATHER || kind == ORR_COLL_REDUCE_SCATTER;
    double n = s->ranks, nodes = s->nodes, others = floor(n / nodes) - 1;
    double base = base_us[w.algorithm][w.protocol];
    double up = hop_us[LINK_UP][w.algorithm][w.protocol];
    double out = hop_us[LINK_OUT][n == nodes ? NCCL_TREE : w.algorithm][w.protocol];
    double steps = sum ? 2 * (n - 1) : half ? n - 1 : n;
    double between = nodes == 1 ? 0 : sum ? 2 * (nodes - 1) : nodes - 1;
    double post = nodes == 1 ? 0 : w.protocol == NCCL_SIMPLE ? 3 * post_us : post_us;
    switch (w.algorithm) {
    case NCCL_RING:
        if (!sum && !half) {
            double hop =
                hop_us[nodes > 1][w.protocol == NCCL_SIMPLE ? NCCL_TREE : NCCL_RING][w.protocol];
            return base + steps * hop;
        }
        return base + (steps - between) * (up > post ? up : post) + between * out;
    case NCCL_TREE:
        return base + 2 * (others * up + log2_floor(nodes) * out);
    case NCCL_COLLNET_DIRECT:
        return base + 2 * ((others < 1 ? others : 1) * up + others * 0.4) + out;
    case NCCL_COLLNET_CHAIN:
        return base + 2 * others * up + out;
    case NCCL_NVLS:
        return up + (nodes > 1 ? out : 0);
    case NCCL_NVLS_TREE:
        return base + up + 2 * log2_floor(nodes) * out;
    case NCCL_PAT:
        return base + log2_floor(nodes) * (out / 3.5) + n * 2.8;
    default:
        return 0;
    }
}

/* The possible choices for this shape, in NCCL's order; at most NCCL_WAYS_MOST. */
static uint32_t ways_of(const nccl_shape *s, orr_collective kind, nccl_tuned *out)
{
    /* If two lines are equal, the first in NCCL's order wins. */
    static const uint8_t order[] = {NCCL_TREE,          NCCL_RING,  NCCL_COLLNET_DIRECT,
                                    NCCL_COLLNET_CHAIN, NCCL_NVLS,  NCCL_NVLS_TREE,
                                    NCCL_PAT,           NCCL_DIRECT};
    const graph *g = &graphs[s->generation];
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizeof order; i++) {
        bool all = order[i] == NCCL_RING || order[i] == NCCL_TREE;
        if (!possible(s, kind, order[i]))
            continue;
        for (uint32_t p = all ? NCCL_LL : NCCL_SIMPLE; p < NCCL_PROTOCOLS; p++) {
            nccl_way way = {order[i], (uint8_t)p};
            double rate = rate_of(s, g, kind, way);
            if (rate > 0)
                out[count++] = (nccl_tuned){way, latency_of(s, kind, way), rate};
        }
    }
    return count;
}

/* NCCL's correction of a line's rate by size (trees). */
static double correction_of(const nccl_shape *s, nccl_way way, orr_collective kind, uint64_t bytes)
{
    int at = 0;
    if (kind != ORR_COLL_ALL_REDUCE || bytes < 64)
        return 1;
    if (way.algorithm != NCCL_TREE &&
        !(way.algorithm == NCCL_NVLS_TREE && s->generation == NCCL_BLACKWELL))
        return 1;
    for (uint64_t b = bytes >> 6; b > 1; b >>= 1)
        at++;
    return at < CORRECTIONS - 1 ? tree_correction[way.protocol][at] : 1;
}

/* ---- The time of a collective with a given algorithm and protocol.
 *
 * A ring of n ranks moves n chunks in n - 1 steps (all-reduce: twice as many).  A step of Simple
 * takes chunk / rate, but at least half of that plus its latency: a chunk travels as two slices,
 * and the second is sent while the first is in flight.  Measured rows have that shape: flat until a
 * step's latency is hidden, then linear.  LL and LL128 have no slices: the latency adds up.  Few
 * bytes use few threads and channels of LL, so a step grows by up_grow_ns around 4 KiB of chunk.
 * The ends of a ring read and write once more than they pass on.
 *
 * Bytes per port are counted exactly; rates are fractions of the ports' rates, at most 1: nothing
 * can be faster than its bisection allows. */

/* Chunk bytes at which half of a growth is reached.  LL uses more threads from 512 x 8 bytes on;
 * grouped messages change from LL to Simple at 16 KiB (NCCL's defaults). */
static const double grow_knee = 4096, drain_knee = 16 << 20;
static const double direct_knee = 24 << 10, direct_drain_knee = 2 << 20;

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double times_least(double a, double b)
{
    return a < b ? a : b;
}

/* Time of a hop: the constant's excess over the latency of the measured machine, plus this
 * machine's. */
static double hop(double ns, double nominal_ns, double ns_here)
{
    return most(ns - nominal_ns, 0) + (ns_here > 0 ? ns_here : nominal_ns);
}

/* Wire bytes per payload: LL sends 4 bytes of flag with 4 of data, LL128 8 with 120. */
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
    return f->most_per > 1 ? times_least(f->up_rate, f->out_rate) : f->out_rate;
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
    /* Of the steps into a host's ranks all but one stay inside. */
    out->up_bytes =
        f->most_per > 1 ? moved * (f->nodes > 1 ? (f->most_per - 1) / f->most_per : 1) : 0;
    /* Channels leave a host from different ranks, so its NICs share the load. */
    out->out_bytes = f->nodes > 1 ? moved / f->least_per : 0;
}

/* Broadcast and reduce: a pipelined chain that all bytes pass. */
static void chain(const frame *f, nccl_time *out)
{
    double between = f->nodes - 1, steps = f->n - 1;
    double rate = ring_rate(f);
    out->latency_ns = f->line->base_ns + (steps - between) * f->up_hop + between * f->out_hop;
    out->ns = out->latency_ns + f->bytes / rate;
    out->up_bytes = f->most_per > 1 ? f->bytes : 0;
    out->out_bytes = f->nodes > 1 ? f->bytes / f->least_per : 0;
}

/* Bytes sent by a host in two trees with half of the bytes each: everything up, and as much down
 * where it is an inner node.  Of two hosts each is the root of one tree. */
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

/* Loops over all channels and heads: the chunk grows with the bytes (NCCL's enqueue.cc: 16, 32, 64,
 * 128 KiB from 2, 8 and 64 loops on).  Reducing and broadcasting are two pipeline stages, so there
 * is one loop more than the bytes need. */
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

/* A larger chunk saves loops: without this, more bytes could take less time at its threshold. */
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

/* SHARP: the network reduces what each NIC sends once. */
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

/* One rank per node: logarithmic, plus a linear part for the posts (NCCL: 2.8 us per rank, which
 * its tuning model calls temporary). */
static void pat(const frame *f, nccl_time *out)
{
    double moved = f->bytes * (f->n - 1) / f->n;
    out->latency_ns = f->line->base_ns + ceil(log2(f->nodes)) * f->tree_hop + f->n * 2800.0;
    out->out_bytes = moved;
    out->up_bytes = 0;
    out->ns = out->latency_ns + moved / (f->out_rate * 0.75);
}

/* Grouped send and receive: all-to-all, gather, scatter.  The busiest rank, of the last two the
 * root, exchanges a part with each other one: through its NIC with those on other hosts, the most
 * if its own is the smallest.
 *
 * PXN (NCCL_P2P_PXN_LEVEL, 2 unless said otherwise): data for another host first goes over NVLink
 * to the rank on the receiver's rail, so that a NIC only sends to its own rail.  Of the bytes that
 * leave a host with n ranks, (n - 1) / n cross NVLink as well. */
static void direct(const frame *f, orr_collective kind, nccl_time *out)
{
    double part = f->bytes / f->n, peers = f->n - 1;
    double up_rate = f->s->up_GBps * f->k->direct_rate;
    double nic = f->s->out_GBps * f->k->out_rate;
    bool all = kind == ORR_COLL_ALL_TO_ALL;
    double local = f->most_per - 1, far = f->nodes > 1 ? f->n - f->least_per : 0;
    double start = f->k->direct_grow_ns * growth(part, direct_knee) +
                   f->k->direct_drain_ns * part / (part + direct_drain_knee);
    double move = 0;
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

static void time_of(const nccl_constants *k,
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
    /* Fewer channels carry less in proportion; more than usual gain nothing here. */
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

const char *const nccl_algorithm_words[NCCL_ALGORITHMS + 1] = {
    "ring", "tree", "nvls", "nvls-tree", "collnet-direct", "collnet-chain", "pat", "direct", NULL,
};
const char *const nccl_protocol_words[NCCL_PROTOCOLS + 1] = {"LL", "LL128", "Simple", NULL};

nccl_generation nccl_generation_of(const char *name)
{
    static const struct {
        const char *part;
        nccl_generation generation;
    } parts[] = {
        {"volta", NCCL_VOLTA},     {"v100", NCCL_VOLTA},     {"ampere", NCCL_AMPERE},
        {"a100", NCCL_AMPERE},     {"a800", NCCL_AMPERE},    {"hopper", NCCL_HOPPER},
        {"h100", NCCL_HOPPER},     {"h200", NCCL_HOPPER},    {"h800", NCCL_HOPPER},
        {"h20", NCCL_HOPPER},      {"gh200", NCCL_HOPPER},   {"blackwell", NCCL_BLACKWELL},
        {"b200", NCCL_BLACKWELL},  {"b300", NCCL_BLACKWELL}, {"gb200", NCCL_BLACKWELL},
        {"gb300", NCCL_BLACKWELL}, {"b100", NCCL_BLACKWELL},
    };
    for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i].part);
        for (const char *at = name; *at; at++) {
            /* Anywhere in the name: "gh200" contains "h200", but both are Hopper. */
            if (strncasecmp(at, parts[i].part, length) == 0)
                return parts[i].generation;
        }
    }
    return NCCL_OTHER;
}

/* False: invalid shape. */
static bool normal(const nccl_shape *in, nccl_shape *out)
{
    *out = *in;
    if (in->ranks == 0 || in->generation < 0 || in->generation >= NCCL_GENERATIONS)
        return false;
    if (out->nodes == 0)
        out->nodes = 1;
    if (out->nodes > out->ranks)
        return false;
    if (out->nodes == 1)
        out->most_per_node = out->least_per_node = out->ranks;
    if (out->nodes == out->ranks)
        out->most_per_node = out->least_per_node = 1;
    if (out->most_per_node == 0)
        out->most_per_node = (out->ranks + out->nodes - 1) / out->nodes;
    if (out->least_per_node == 0)
        out->least_per_node = out->ranks / out->nodes;
    if (!(in->up_GBps > 0) && out->most_per_node > 1) { /* everything goes through the NICs */
        out->nodes = out->ranks;
        out->most_per_node = out->least_per_node = 1;
        out->up_reduces = false;
    }
    if (out->least_per_node > out->most_per_node)
        return false;
    return out->ranks == 1 || out->nodes == 1 || out->out_GBps > 0;
}

static uint32_t keep_forced(const nccl_forced *forced, nccl_tuned *ways, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        nccl_way w = ways[i].way;
        if (forced && forced->algorithm &&
            strcasecmp(forced->algorithm, nccl_algorithm_words[w.algorithm]))
            continue;
        if (forced && forced->protocol &&
            strcasecmp(forced->protocol, nccl_protocol_words[w.protocol]))
            continue;
        ways[kept++] = ways[i];
    }
    return kept;
}

/* Off by default in NCCL, even if the switches support it. */
static bool wants_collnet(const nccl_forced *forced)
{
    return forced && (forced->collnet ||
                      (forced->algorithm && strncasecmp(forced->algorithm, "collnet", 7) == 0));
}

typedef struct lines {
    const nccl_shape *s;
    orr_collective kind;
    nccl_tuned ways[NCCL_WAYS_MOST];
    uint32_t count;
} lines;

/* The lowest line at `bytes`; with the corrections of the power of two `power`.  *until: where
 * another becomes lower, or infinity. */
static uint32_t lowest(const lines *l, double bytes, uint64_t power, double *until)
{
    double rate[NCCL_WAYS_MOST], best_us = INFINITY;
    uint32_t best = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        double us;
        rate[i] = 1000 * l->ways[i].GBps * correction_of(l->s, l->ways[i].way, l->kind, power);
        us = l->ways[i].us + bytes / rate[i];
        /* At an intersection, the one with the higher rate continues. */
        if (us < best_us * (1 - 1e-12) || (us <= best_us * (1 + 1e-12) && rate[i] > rate[best])) {
            best = i;
            best_us = us < best_us ? us : best_us;
        }
    }
    *until = INFINITY;
    for (uint32_t i = 0; i < l->count; i++) {
        if (rate[i] > rate[best]) {
            double meet = (l->ways[i].us - l->ways[best].us) / (1 / rate[best] - 1 / rate[i]);
            if (meet > bytes && meet < *until)
                *until = meet;
        }
    }
    return best;
}

/* The choice at `bytes`, and the maximum time of smaller sizes in *floor_ns. */
static uint32_t walk(
    const nccl_constants *k, const lines *l, double bytes, uint32_t channels, double *floor_ns)
{
    double at = 0;
    uint32_t best = 0, before = UINT32_MAX;
    *floor_ns = 0;
    /* Below 64 bytes there is no correction: the first interval is [0, 64). */
    for (uint64_t power = 32;; power *= 2) {
        /* Above 2^32 there is no correction: one interval to the end. */
        double end = power < (1ull << 32) ? (double)(power * 2) : INFINITY;
        for (;;) {
            double until;
            best = lowest(l, at, power, &until);
            if (before != UINT32_MAX && before != best) {
                nccl_time t;
                time_of(k, l->s, l->kind, at, l->ways[before].way, channels, &t);
                *floor_ns = t.ns > *floor_ns ? t.ns : *floor_ns;
            }
            before = best;
            if (bytes < until && bytes < end)
                return best;
            if (until >= end)
                break;
            at = until;
        }
        at = end;
    }
}

/* The first matching rule of the table, as an index into l->ways; UINT32_MAX: none.  Rules for
 * smaller sizes raise *floor_ns to their time at their limit. */
static uint32_t by_rule(
    const nccl_custom *c, const lines *l, double bytes, uint32_t channels, double *floor_ns)
{
    *floor_ns = 0;
    for (uint32_t i = 0; i < c->rules; i++) {
        const nccl_rule *r = &c->rule[i];
        uint32_t at = 0;
        nccl_time t;
        if (r->kind != l->kind || l->s->ranks < r->least_ranks || l->s->ranks > r->most_ranks ||
            l->s->nodes < r->least_nodes || l->s->nodes > r->most_nodes)
            continue;
        while (at < l->count && (l->ways[at].way.algorithm != r->way.algorithm ||
                                 l->ways[at].way.protocol != r->way.protocol))
            at++;
        if (at == l->count)
            continue;
        if (r->below == UINT64_MAX || bytes < (double)r->below)
            return at;
        time_of(&c->k, l->s, l->kind, (double)r->below, r->way, channels, &t);
        *floor_ns = t.ns > *floor_ns ? t.ns : *floor_ns;
    }
    return UINT32_MAX;
}

static void interval(const nccl_constants *k,
                     const nccl_shape *s,
                     orr_collective kind,
                     double bytes,
                     nccl_way way,
                     nccl_cost *out)
{
    int at = nccl_size_class(bytes);
    double low = log(k->spread[at].low), high = log(k->spread[at].high), wide = 1;
    bool measured = kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_ALL_GATHER ||
                    kind == ORR_COLL_REDUCE_SCATTER || kind == ORR_COLL_ALL_TO_ALL;
    out->extrapolates = k->rows == 0 || s->nodes > 1 || !measured || s->ranks > k->ranks_most ||
                        bytes > 4.0 * (double)k->bytes_most ||
                        (way.algorithm != NCCL_RING && way.algorithm != NCCL_DIRECT);
    /* Measured inside hosts only (nccl_constants.c): twice as wide between them. */
    if (s->nodes > 1)
        wide += 1;
    if (k->rows && out->extrapolates)
        wide += 0.5;
    out->low_ns = out->time_ns * exp(low * wide);
    out->high_ns = out->time_ns * exp(high * wide);
}

static bool is_forced(const nccl_forced *f)
{
    return f && (f->algorithm || f->protocol || f->channels || f->collnet);
}

bool nccl_cost_of(const nccl_shape *given,
                  orr_collective kind,
                  uint64_t bytes,
                  const nccl_forced *forced,
                  nccl_cost *out)
{
    nccl_shape s;
    lines l;
    nccl_time t;
    double floor_ns = 0, rule_ns = 0;
    uint32_t best, channels = forced ? forced->channels : 0;
    *out = (nccl_cost){.algorithm = "none", .protocol = "none"};
    if (given->torus.ranks)
        return !is_forced(forced) && torus_cost_of(&given->torus, kind, bytes, out);
    if (!normal(given, &s) || kind >= ORR_COLL_COUNT)
        return false;
    const nccl_custom *custom = forced && forced->table ? forced->table : s.table;
    if (custom)
        s.generation = custom->generation;
    if (!wants_collnet(forced))
        s.out_reduces = false;
    if (kind == ORR_COLL_REDUCE_SCATTER_BLOCK)
        kind = ORR_COLL_REDUCE_SCATTER;
    if (kind == ORR_COLL_BARRIER)
        /* One float, all-reduced, as torch.distributed does it. */
        bytes = 4;
    l.s = &s;
    l.kind = kind;
    l.count = keep_forced(forced, l.ways, s.ranks > 1 ? ways_of(&s, kind, l.ways) : 0);
    if (s.ranks == 1)
        return true;
    if (l.count == 0)
        return false;
    const nccl_constants *k = custom ? &custom->k : &nccl_table[s.generation];
    best = UINT32_MAX;
    if (custom && !(forced && (forced->algorithm || forced->protocol)))
        best = by_rule(custom, &l, (double)bytes, channels, &rule_ns);
    if (best == UINT32_MAX)
        best = walk(k, &l, (double)bytes, channels, &floor_ns);
    /* Rules for smaller sizes count even if none is for this one. */
    floor_ns = rule_ns > floor_ns ? rule_ns : floor_ns;
    time_of(k, &s, kind, (double)bytes, l.ways[best].way, channels, &t);
    out->algorithm = nccl_algorithm_words[l.ways[best].way.algorithm];
    out->protocol = nccl_protocol_words[l.ways[best].way.protocol];
    out->channels = t.channels;
    out->time_ns = t.ns > floor_ns ? t.ns : floor_ns;
    out->latency_ns = t.latency_ns;
    out->up_bytes = t.up_bytes;
    out->out_bytes = t.out_bytes;
    interval(k, &s, kind, (double)bytes, l.ways[best].way, out);
    return true;
}

bool nccl_send_cost_of(const nccl_shape *given,
                       uint64_t bytes,
                       const nccl_forced *forced,
                       nccl_cost *out)
{
    nccl_shape two = *given;
    if (given->torus.ranks)
        return !is_forced(forced) && torus_send_cost_of(&given->torus, bytes, out);
    two.ranks = 2;
    /* Without links inside hosts everything goes through NICs. */
    two.nodes = given->nodes > 1 || !(given->up_GBps > 0) ? 2 : 1;
    two.most_per_node = two.least_per_node = two.nodes == 1 ? 2 : 1;
    /* As a gather of two: the root receives half of the bytes. */
    return nccl_cost_of(&two, ORR_COLL_GATHER, bytes > UINT64_MAX / 2 ? bytes : bytes * 2, forced,
                        out);
}
