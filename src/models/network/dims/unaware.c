/* SPDX-License-Identifier: Apache-2.0 */
/* unaware.c - the congestion-unaware network: hops x latency + size / bandwidth, no contention.
 *
 * In several dimensions only the lowest one in which the two ranks differ is charged (astra-sim.md
 * 8.1). */
#include "models/network/net_table.h"
#include "models/network/net_time.h"

#include "base/arithmetic.h"
#include "base/memory/memory.h"
#include "models/network/product.h"

typedef struct unaware {
    orr_net_config cfg;
    double speed[ORR_NET_DIMS];
} unaware;

static orr_code unaware_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    unaware *u = orr_alloc(1, sizeof *u);
    *out = u;
    if (!u)
        return orr_no_memory(err);
    u->cfg = *cfg;
    for (uint32_t k = 0; k < cfg->dims; k++)
        u->speed[k] = net_link_speed(cfg->bandwidth[k]);
    return ORR_OK;
}

static uint32_t hops(const orr_net_config *cfg, uint32_t k, uint32_t from, uint32_t to)
{
    if (cfg->shape[k] == ORR_NET_FULLY_CONNECTED)
        return 1;
    if (cfg->shape[k] == ORR_NET_SWITCH)
        return 2;
    const uint32_t n = cfg->npus[k], clockwise = (to + n - from) % n;
    if (cfg->is_open[k])
        return from < to ? to - from : from - to;
    return clockwise < n - clockwise ? clockwise : n - clockwise;
}

orr_code orr__unaware_path(const void *net, uint32_t src, uint32_t dst, net_path *out)
{
    const unaware *u = net;
    uint32_t k = 0;
    while (src % u->cfg.npus[k] == dst % u->cfg.npus[k]) {
        src /= u->cfg.npus[k];
        dst /= u->cfg.npus[k];
        k++;
    }
    const uint32_t n = u->cfg.npus[k];
    *out = (net_path){hops(&u->cfg, k, src % n, dst % n) * u->cfg.latency_ns[k], u->speed[k]};
    return ORR_OK;
}

static orr_code unaware_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    net_path p;
    (void)err;
    orr__unaware_path(net, m->src, m->dst, &p);
    orr__net_deliver_after(sim, orr_ticks(p.latency_ns + (double)m->size / p.speed), m->token);
    return ORR_OK;
}

static void unaware_destroy(void *net)
{
    orr_free(net);
}

const orr_net_ops orr__net_unaware = {
    .name = "unaware",
    .help = "latency per hop + size / bandwidth; no contention between messages",
    .create = unaware_create,
    .send = unaware_send,
    .destroy = unaware_destroy,
};
