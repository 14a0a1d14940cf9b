/* SPDX-License-Identifier: Apache-2.0 */
/* graph_network.c - the network of any devices and links: store and forward over shortest routes,
 * every link a first-come-first-served server.  On the graph of a network that aware.c can run, it
 * gives the same times. */
#include "models/network/net_own.h"
#include "models/network/net_table.h"

#include "base/memory/hash.h"
#include "models/network/link_servers.h"
#include "models/network/routes.h"
#include "models/network/topology/topology.h"

#include <stdio.h>

typedef struct graph {
    net_servers servers; /* a link here has the number it has in the topology */
    const orr__topology *t;
    orr__routes *routes;
    uint64_t messages;
    orr_where where;
} graph;

static void graph_destroy(void *net)
{
    graph *g = net;
    if (!g)
        return;
    net_servers_fini(&g->servers);
    orr__routes_destroy(g->routes);
    orr_free(g);
}

static uint32_t next_link(void *net, net_packet *p, orr_error *err)
{
    graph *g = net;
    const uint32_t link = orr__routes_next(g->routes, p->at, p->m.dst, p->hash, err);
    if (link == NET_LINK_NONE && err->code == ORR_EINPUT) /* only at the source */
        orr_fail(err, ORR_EINPUT, &g->where,
                 "there is no route from rank %u to rank %u over links that work", p->m.src,
                 p->m.dst);
    return link;
}

static orr_code graph_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    if (!cfg->own || !cfg->own->topology)
        return orr_fail(err, ORR_EBUG, &cfg->where, "the network graph has no topology");
    graph *g = orr_alloc(1, sizeof *g);
    if (!g)
        return orr_no_memory(err);
    g->t = cfg->own->topology;
    g->where = cfg->where;
    net_servers_init(&g->servers, next_link, g);
    orr_code code = orr__routes_create(g->t, 0, &g->routes, err);
    for (size_t i = 0; i < g->t->link_count && !code; i++) {
        const orr__wire *l = &g->t->links[i];
        const net_link like = {
            .from = l->from, .to = l->to, .speed = l->speed, .latency = l->latency};
        if (!net_servers_add(&g->servers, &like, NULL))
            code = orr_no_memory(err);
    }
    if (code)
        graph_destroy(g);
    else
        *out = g;
    return code;
}

static orr_code graph_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    graph *g = net;
    const uint64_t pair = (uint64_t)m->src << 32 | m->dst;
    const uint64_t number = g->t->routing == ORR__ROUTE_BY_MESSAGE ? g->messages++ : 0;
    const uint64_t hash = orr_hash_mix(pair ^ 0xa0761d6478bd642fu, number + 0xe7037ed1a0b428dbu);
    return net_servers_send(&g->servers, sim, m, hash, err);
}

static void name_link(const void *net, uint32_t link, char out[ORR_NET_LINK_NAME])
{
    const graph *g = net;
    char from[NET_DEVICE_NAME], to[NET_DEVICE_NAME];
    const uint32_t twins = orr__routes_twin(g->routes, link);
    orr__topology_name(g->t, g->t->links[link].from, from);
    orr__topology_name(g->t, g->t->links[link].to, to);
    if (twins)
        snprintf(out, ORR_NET_LINK_NAME, "%s -> %s #%u", from, to, twins + 1);
    else
        snprintf(out, ORR_NET_LINK_NAME, "%s -> %s", from, to);
}

static void graph_report(const void *net, orr_net_link_visit visit, void *context)
{
    const graph *g = net;
    net_servers_report(&g->servers, NULL, name_link, visit, context);
}

const orr_net_ops orr__net_graph = {
    .name = "graph",
    .help = "as aware, over any devices and links, by shortest routes",
    .create = graph_create,
    .send = graph_send,
    .destroy = graph_destroy,
    .report = graph_report,
};
