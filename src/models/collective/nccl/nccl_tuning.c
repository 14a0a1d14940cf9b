/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_tuning.c - which algorithm and protocol NCCL takes: its published tuning model.
 *
 * For every way NCCL draws a line, latency + bytes / bandwidth, and takes the lowest.  The lines
 * are not what operations take (nccl_times.c is), but they decide, also where they are wrong: on
 * 8 x A100 an all-gather of 16 MiB takes 135 us with Simple where LL128 would take 100.
 *
 * Facts from NCCL 2.28 (github.com/NVIDIA/nccl, src/graph/tuning.cc, topo.h, search.cc and
 * enqueue.cc at 5067397c, Apache-2.0): latencies in us of each algorithm, protocol and link; limits
 * per channel in GB/s; efficiency of NVLS; correction of trees; the rates per channel that its
 * search tries.  The graph that the search finds is taken from the generation's usual machine
 * (DGX: 6, 12, 18 NVLinks, one NIC per GPU), not from the rates at hand: nccl_model.h says why. */
#include "models/collective/nccl/nccl_parts.h"

#include <math.h>

enum { LINK_UP, LINK_OUT };

typedef struct graph {
    double up_GBps, out_GBps; /* NVLink as NCCL counts it, NIC of a GPU */
    double channels;          /* of a ring */
    double ll_most[3];        /* GB/s on 1, 2, more nodes */
    double ll128_channel;     /* GB/s per channel */
    double tree_ll128_channel[3], tree_channel[3], nvls_tree_channel[3];
    double nvls_efficiency;
    const double *speeds; /* that the search tries per channel, descending, ends in 0 */
} graph;

static const double speeds_old[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 0};
static const double speeds_sm90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3, 0};
static const double speeds_sm100[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18, 0};

/* Channels: 40 x 6, 60 x 6 and 90 x 8, the first two doubled.  Blackwell's LL128 is limited to 8
 * channels of 40 here: in the measured rows it is never taken. */
static const graph graphs[NCCL_GENERATIONS] = {
    [NCCL_VOLTA] = {120,
                    12.5,
                    12,
                    {39.0, 39.0, 20.4},
                    20.0,
                    {20.0, 20.0, 20.0},
                    {26.5, 18.5, 10.0},
                    {26.5, 18.5, 10.0},
                    0.0,
                    speeds_old},
    [NCCL_AMPERE] = {240,
                     25,
                     12,
                     {87.7, 22.5, 19.0},
                     20.0,
                     {20.0, 20.0, 20.0},
                     {24.0, 23.6, 17.8},
                     {24.0, 23.6, 17.8},
                     0.0,
                     speeds_old},
    [NCCL_HOPPER] = {360,
                     50,
                     12,
                     {141.0, 45.0, 35.0},
                     36.7,
                     {36.7, 36.7, 29.0},
                     {38.7, 41.4, 36.0},
                     {0.0, 57.7, 45.5},
                     0.85,
                     speeds_sm90},
    [NCCL_BLACKWELL] = {720,
                        50,
                        8,
                        {282.0, 90.0, 70.0},
                        40.0,
                        {55.6, 31.67, 20.0},
                        {70.0, 42.8, 24.0},
                        {0.0, 96.0, 80.0},
                        0.74,
                        speeds_sm100},
    [NCCL_OTHER] = {360,
                    50,
                    12,
                    {141.0, 45.0, 35.0},
                    36.7,
                    {36.7, 36.7, 29.0},
                    {38.7, 41.4, 36.0},
                    {0.0, 57.7, 45.5},
                    0.85,
                    speeds_sm90},
};

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

/* Trees reach less of their line at medium sizes; powers of two from 64 bytes on. */
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

uint32_t nccl_ways(const nccl_shape *s, orr_collective kind, nccl_tuned *out)
{
    /* Where two lines are equal, the first of NCCL's order is taken. */
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

double nccl_correction(const nccl_shape *s, nccl_way way, orr_collective kind, uint64_t bytes)
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
