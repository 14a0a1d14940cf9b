/* SPDX-License-Identifier: Apache-2.0 */
/* unaware_graph.c - the congestion-unaware network over any devices and links: the latencies of a
 * shortest route, and the message once over its slowest link.
 *
 * On the graph of one dimension this is unaware.c.  Which of several equally short routes is
 * charged depends on the pair alone: without congestion there is nothing to spread.  Cost: a look
 * at the links of each device on the way. */
#include "models/network/net_own.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"

#include "base/memory/hash.h"
#include "base/ticks.h"
#include "models/network/routes.h"
#include "models/network/topology/topology.h"

typedef struct plain {
    const orr__topology *t;
    orr__routes *routes;
    orr_where where;
} plain;

static void plain_destroy(void *net)
{
    plain *p = net;
    if (!p)
        return;
    orr__routes_destroy(p->routes);
    orr_free(p);
}

static orr_code plain_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    if (!cfg->own || !cfg->own->topology)
        return orr_fail(err, ORR_EBUG, &cfg->where, "the network has no topology");
    plain *p = orr_alloc(1, sizeof *p);
    if (!p)
        return orr_no_memory(err);
    p->t = cfg->own->topology;
    p->where = cfg->where;
    const orr_code code = orr__routes_create(p->t, 0, &p->routes, err);
    if (code)
        plain_destroy(p);
    else
        *out = p;
    return code;
}

orr_code orr__unaware_graph_path(
    void *net, uint32_t src, uint32_t dst, net_path *out, orr_error *err)
{
    plain *p = net;
    const uint64_t hash = orr_hash_mix((uint64_t)src << 32 | dst, 0xe7037ed1a0b428dbu);
    uint32_t at = src;
    *out = (net_path){0, 0};
    while (at != dst) {
        const uint32_t link = orr__routes_next(p->routes, at, dst, hash, err);
        if (link == NET_LINK_NONE && err->code == ORR_EINPUT)
            return orr_fail(err, ORR_EINPUT, &p->where,
                            "there is no route from rank %u to rank %u over links that work", src,
                            dst);
        if (link == NET_LINK_NONE)
            return err->code;
        const orr__wire *l = &p->t->links[link];
        out->latency_ns += l->latency;
        out->speed = out->speed == 0 || l->speed < out->speed ? l->speed : out->speed;
        at = l->to;
    }
    return ORR_OK;
}

static orr_code plain_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    net_path p;
    const orr_code code = orr__unaware_graph_path(net, m->src, m->dst, &p, err);
    if (!code)
        orr__net_deliver_after(sim, orr_ticks(p.latency_ns + (double)m->size / p.speed), m->token);
    return code;
}

const orr_net_ops orr__net_unaware_graph = {
    .name = "unaware",
    .help = "as unaware, over any devices and links, by shortest routes",
    .create = plain_create,
    .send = plain_send,
    .destroy = plain_destroy,
};
