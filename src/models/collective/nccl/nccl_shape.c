/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_shape.c - the placement of a group on a network of dimensions: how many members a host has,
 * and the rates and latencies between them.
 *
 * One rule for runs (src/run/joint.c), bounds on steps (src/plan) and estimates of serving
 * (src/sources/llm); nccl-tests chooses its ranks by node (src/run/alone/alone_time.c).
 *
 * Cost: linear in the members; times the places of a dimension if that is a mesh. */
#include "nccl_model.h"

#include "models/network/product.h"

/* A single dimension is the network between hosts if it is slower than any links inside hosts ever
 * were. */
enum { SLOWEST_INSIDE = 100 };

uint32_t nccl_ranks_per_node(const orr_net_config *c)
{
    /* With several dimensions the innermost one is the inside of hosts (docs/design/fluid.md). */
    if (c->dims > 1)
        return c->npus[0];
    if (c->ranks_per_node) /* set by a machine */
        return c->ranks_per_node;
    return net_link_speed(c->bandwidth[0]) >= SLOWEST_INSIDE ? c->npus[0] : 1;
}

/* What one rank can send along a dimension, to all its neighbours at once; bytes per ns.  used: at
 * how many places of it the group has members. */
static double dim_rate(const orr_net_config *c, uint32_t k, uint32_t used)
{
    /* Links of a mesh to ranks outside the group are of no use to it. */
    const uint32_t n = c->shape[k] == ORR_NET_FULLY_CONNECTED ? used : c->npus[k];
    return net_link_speed(c->bandwidth[k]) * net_rank_links(c->shape[k], n);
}

static double dim_latency(const orr_net_config *c, uint32_t k)
{
    /* Through a switch: a link up and a link down. */
    return c->latency_ns[k] * (c->shape[k] == ORR_NET_SWITCH ? 2 : 1);
}

bool nccl_differ_along(const orr_net_config *c, const uint32_t *members, uint32_t count, uint32_t k)
{
    const uint32_t stride = net_stride_of(c, k), n = c->npus[k], first = members[0] / stride % n;
    for (uint32_t i = 1; i < count; i++)
        if (members[i] / stride % n != first)
            return true;
    return false;
}

/* At how many places of a dimension there are members. */
static uint32_t places_along(const orr_net_config *c,
                             const uint32_t *members,
                             uint32_t count,
                             uint32_t k)
{
    const uint32_t stride = net_stride_of(c, k), n = c->npus[k];
    uint32_t places = 0;
    for (uint32_t at = 0; at < n; at++) {
        uint32_t i = 0;
        while (i < count && members[i] / stride % n != at)
            i++;
        places += i < count;
    }
    return places;
}

void nccl_count_nodes(const uint32_t *members, uint32_t count, uint32_t per, nccl_shape *h)
{
    h->ranks = count;
    h->least_per_node = count;
    /* Members ascend and hosts are blocks of ranks, so those of a host are contiguous. */
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && members[end] / per == members[i] / per;)
            end++;
        h->nodes++;
        h->most_per_node = end - i > h->most_per_node ? end - i : h->most_per_node;
        h->least_per_node = end - i < h->least_per_node ? end - i : h->least_per_node;
    }
}

void nccl_shape_by_dims(const orr_net_config *c,
                        uint32_t per_node,
                        const uint32_t *members,
                        uint32_t count,
                        nccl_shape *h)
{
    if (per_node > 1) {
        h->up_GBps = dim_rate(c, 0, h->most_per_node);
        h->up_latency_ns = dim_latency(c, 0);
    }
    for (uint32_t k = per_node > 1 ? 1 : 0; k < c->dims; k++)
        if (h->nodes > 1 && nccl_differ_along(c, members, count, k)) {
            const bool all_linked = c->shape[k] == ORR_NET_FULLY_CONNECTED;
            const double own =
                dim_rate(c, k, all_linked ? places_along(c, members, count, k) : c->npus[k]);
            /* Latencies add up along the dimensions that are crossed; of rates the least one
             * counts. */
            h->out_GBps = h->out_GBps == 0 || own < h->out_GBps ? own : h->out_GBps;
            h->out_latency_ns += dim_latency(c, k);
        }
}

void nccl_shape_of(const orr_net_config *c, const uint32_t *members, uint32_t count, nccl_shape *h)
{
    const uint32_t per_node = nccl_ranks_per_node(c);
    nccl_count_nodes(members, count, per_node, h);
    nccl_shape_by_dims(c, per_node, members, count, h);
}
