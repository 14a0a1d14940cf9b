/* SPDX-License-Identifier: Apache-2.0 */
/* graph_network.c - an arbitrary network of devices and links: store and forward over shortest
 * routes, every link a FIFO server.  On the graph of a network that aware.c supports, it gives the
 * same times. */
#include "models/network/symmetry.h"

#include "models/network/net_table.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "models/network/link_servers.h"
#include "models/network/net_time.h"
#include "models/network/routes.h"
#include "models/network/topology/topology.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

/* Images of devices and links under one translation; NONE: not known, or not used. */
typedef struct graph_move {
    net_digit digit;
    uint32_t by, order; /* order: applications until everything is back */
    uint32_t *device, *link, *gate;
    uint32_t *queue, queued; /* devices with a known image */
} graph_move;

typedef struct graph {
    net_servers servers; /* links have the same numbers as in the topology */
    const orr__topology *t;
    orr__routes *routes;
    uint64_t messages;
    orr_where where;
    const net_symmetry *symmetry; /* NULL: no link represents others */
    uint32_t *home;               /* by link: its representative */
    uint32_t *far;                /* by link: a rank at the same distance from home */
    graph_move *moves;
    size_t move_count, move_room;
    uint32_t *keepers; /* by link: the rank whose part serves it; only in a part of a run */
} graph;

static void drop_move(graph_move *m)
{
    orr_free(m->device);
    orr_free(m->link);
    orr_free(m->gate);
    orr_free(m->queue);
}

static void drop_moves(graph *g, size_t keep)
{
    while (g->move_count > keep)
        drop_move(&g->moves[--g->move_count]);
}

static void graph_destroy(void *net)
{
    graph *g = net;
    if (!g)
        return;
    net_servers_fini(&g->servers);
    orr__routes_destroy(g->routes);
    orr_free(g->home);
    orr_free(g->far);
    orr_free(g->keepers);
    drop_moves(g, 0);
    orr_free(g->moves);
    orr_free(g);
}

static uint32_t next_link(void *net, net_packet *p, orr_error *err)
{
    graph *g = net;
    const uint32_t link = orr__routes_next(g->routes, p->at, p->m.dst, p->hash, err);
    if (link == NET_LINK_NONE && err->code == ORR_EINPUT) /* only at the source */
        orr_fail(err, ORR_EINPUT, &g->where,
                 "there is no route from rank %u to rank %u over working links", p->m.src,
                 p->m.dst);
    if (!g->symmetry || link >= NET_LINK_ARRIVED)
        return link;
    p->m.dst = net_sym_with(g->symmetry, g->far[link], p->m.dst);
    orr__net_move_origin(g->servers.sim, g->far[link]);
    return g->home[link];
}

static orr_code graph_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    const orr__net_config *own = orr__net_config_of(cfg);
    if (!own || !own->topology)
        return orr_fail(err, ORR_EBUG, &cfg->where, "the network graph has no topology");
    graph *g = orr_alloc(1, sizeof *g);
    if (!g)
        return orr_no_memory(err);
    g->t = own->topology;
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

/* ---- links that represent others ----
 *
 * A translation of ranks is extended along the routes: the image of a rank determines that of its
 * switch, and so on.  It must map each link to one of the same speed and latency, and the next link
 * of each route to that of the mapped route, which must be the only shortest one, or the first in
 * the file.  No link may be mapped to itself: it would carry messages of several equivalent ranks.
 * So the leaves of a leaf-spine network can be permuted, the ranks of one leaf cannot. */

static bool set_image(uint32_t *images, uint32_t from, uint32_t to)
{
    const bool is_good = images[from] == NONE || images[from] == to;
    images[from] = to;
    return is_good;
}

static uint32_t only_next(graph *g, uint32_t at, uint32_t dst)
{
    uint32_t found[2];
    orr_error unused;
    if (g->t->routing == ORR__ROUTE_FIRST)
        return orr__routes_next(g->routes, at, dst, 0, &unused);
    return orr__routes_choices(g->routes, at, dst, found, 2, &unused) == 1 ? found[0]
                                                                           : NET_LINK_NONE;
}

static bool follow(graph *g, graph_move *m, uint32_t at, uint32_t dst)
{
    const uint32_t to = m->device[at], dst_to = net_digit_add(&m->digit, dst, m->by);
    const uint32_t a = only_next(g, at, dst), b = only_next(g, to, dst_to);
    if (a >= NET_LINK_ARRIVED || b >= NET_LINK_ARRIVED)
        return false;
    const orr__wire *x = &g->t->links[a], *y = &g->t->links[b];
    if (x->speed != y->speed || x->latency != y->latency || !set_image(m->link, a, b))
        return false;
    if (m->device[x->to] == NONE)
        m->queue[m->queued++] = x->to;
    return set_image(m->device, x->to, y->to);
}

static bool follow_all(graph *g, graph_move *m)
{
    const uint32_t ranks = g->t->ranks, devices = orr__topology_devices(g->t);
    bool ok = true;
    memset(m->device, 0xff, devices * sizeof *m->device);
    memset(m->gate, 0xff, devices * sizeof *m->gate);
    memset(m->link, 0xff, (g->t->link_count + 1) * sizeof *m->link);
    for (uint32_t r = 0; r < ranks && ok; r++) {
        const uint32_t to = net_digit_add(&m->digit, r, m->by);
        m->device[r] = to;
        m->queue[r] = r;
        ok = set_image(m->gate, orr__routes_gate(g->routes, r), orr__routes_gate(g->routes, to));
    }
    m->queued = ranks;
    for (uint32_t i = 0; i < m->queued && ok; i++) {
        const uint32_t at = m->queue[i];
        uint32_t last = NONE;
        for (uint32_t dst = 0; dst < ranks && ok; dst++) {
            const uint32_t gate = orr__routes_gate(g->routes, dst);
            if (at == dst || (gate == last && gate != at))
                continue; /* one determines the other */
            last = gate;
            ok = follow(g, m, at, dst);
        }
    }
    return ok;
}

static bool add_move(graph *g, const net_digit *d, uint32_t by, uint32_t order)
{
    const uint32_t devices = orr__topology_devices(g->t);
    graph_move m = {.digit = *d,
                    .by = by,
                    .order = order,
                    .device = orr_alloc((size_t)devices + 1, sizeof *m.device),
                    .link = orr_alloc(g->t->link_count + 1, sizeof *m.link),
                    .gate = orr_alloc((size_t)devices + 1, sizeof *m.gate),
                    .queue = orr_alloc((size_t)devices + 1, sizeof *m.queue)};
    if (m.device && m.link && m.gate && m.queue && follow_all(g, &m) &&
        orr_grow(&g->moves, &g->move_room, g->move_count + 1)) {
        g->moves[g->move_count++] = m;
        return true;
    }
    drop_move(&m);
    return false;
}

/* The orbit of this link, each link once; list: room for all links. */
static bool take_apart(graph *g, uint32_t link, uint32_t *list)
{
    uint32_t count = 1;
    list[0] = g->home[link] = link;
    for (size_t k = 0; k < g->move_count; k++) {
        const graph_move *m = &g->moves[k];
        const uint32_t before = count;
        for (uint32_t i = 0; i < before; i++) {
            uint32_t at = list[i];
            for (uint32_t n = 1; n < m->order; n++) {
                const uint32_t next = m->link[at];
                if (next == NONE || g->home[next] != NONE)
                    return false;
                g->home[next] = link;
                g->far[next] = net_digit_add(&m->digit, g->far[at], m->by);
                list[count++] = at = next;
            }
            if (m->link[at] != list[i])
                return false;
        }
    }
    return true;
}

static bool find_homes(graph *g)
{
    const size_t links = g->t->link_count;
    uint32_t *list = orr_alloc(links + 1, sizeof *list);
    bool ok = list != NULL;
    if (!g->home)
        g->home = orr_alloc(links + 1, sizeof *g->home);
    if (!g->far)
        g->far = orr_alloc(links + 1, sizeof *g->far);
    ok = ok && g->home && g->far;
    if (ok) {
        memset(g->home, 0xff, links * sizeof *g->home);
        memset(g->far, 0, links * sizeof *g->far);
    }
    for (uint32_t l = 0; l < links && ok; l++)
        if (g->move_count && g->moves[0].link[l] == NONE)
            g->home[l] = l; /* on no route */
        else if (g->home[l] == NONE)
            ok = take_apart(g, l, list);
    orr_free(list);
    return ok;
}

bool orr__graph_holds(void *net, const net_symmetry *before, const net_digit *d)
{
    graph *g = net;
    drop_moves(g, before->count ? g->move_count : 0);
    const size_t known = g->move_count;
    bool ok = true;
    /* An xor is made of those by powers of two, a rotation of steps by one. */
    for (uint32_t by = 1; by < d->radix && ok; by *= 2) {
        ok = add_move(g, d, by, d->is_xor ? 2 : d->radix);
        if (!d->is_xor)
            break;
    }
    ok = ok && find_homes(g);
    if (!ok)
        drop_moves(g, known);
    return ok;
}

bool orr__graph_fold(void *net, const net_symmetry *symmetry)
{
    graph *g = net;
    g->symmetry = symmetry;
    return find_homes(g) && net_servers_fold(&g->servers);
}

void orr__graph_spread(void *net)
{
    graph *g = net;
    for (uint32_t l = 0; l < g->servers.link_count; l++) {
        const net_link *x = &g->servers.links[g->home[l]];
        net_link *y = &g->servers.links[l];
        y->messages = x->messages;
        y->bytes = x->bytes;
        y->busy = x->busy;
        y->max_waiting = x->max_waiting;
    }
}

/* ---- a run in parts ---- */

bool orr__graph_can_divide(const void *net)
{
    const graph *g = net;
    /* These routes follow a count of all messages, which parts do not share. */
    return g->t->routing != ORR__ROUTE_BY_MESSAGE;
}

static uint32_t keeper(void *net, const net_packet *p)
{
    graph *g = net;
    orr_error unused;
    if (p->at < g->t->ranks)
        return p->at;
    const uint32_t link = orr__routes_next(g->routes, p->at, p->m.dst, p->hash, &unused);
    /* Out of memory: the run fails when the packet needs its link. */
    return link >= NET_LINK_ARRIVED ? p->m.dst : g->keepers[link];
}

/* Each device is assigned to its nearest rank, and a link to the rank of its nearer end: so the
 * links of a leaf, up and down, are in the part of its ranks. */
static bool find_keepers(graph *g)
{
    const uint32_t devices = orr__topology_devices(g->t);
    const size_t links = g->t->link_count;
    uint32_t *near = orr_alloc((size_t)devices + 1, sizeof *near);
    uint32_t *far = orr_alloc((size_t)devices + 1, sizeof *far);
    g->keepers = orr_alloc(links + 1, sizeof *g->keepers);
    const bool ok = near && far && g->keepers;
    for (uint32_t d = 0; ok && d < devices; d++) {
        near[d] = d < g->t->ranks ? d : 0;
        far[d] = d < g->t->ranks ? 0 : NONE;
    }
    bool is_new = ok;
    for (uint32_t round = 0; is_new; round++) {
        is_new = false;
        for (size_t i = 0; i < links; i++) {
            const orr__wire *l = &g->t->links[i];
            if (far[l->from] != round || far[l->to] != NONE)
                continue;
            near[l->to] = near[l->from];
            far[l->to] = round + 1;
            is_new = true;
        }
    }
    for (size_t i = 0; ok && i < links; i++) {
        const orr__wire *l = &g->t->links[i];
        const uint32_t end = l->from < g->t->ranks || far[l->from] <= far[l->to] ? l->from : l->to;
        g->keepers[i] = near[end];
    }
    orr_free(near);
    orr_free(far);
    return ok;
}

net_servers *orr__graph_divide(void *net, orr_net *sim, const net_division *division)
{
    graph *g = net;
    net_division own = *division;
    own.keeper = keeper;
    if (!find_keepers(g))
        return NULL;
    net_servers_divide(&g->servers, sim, &own);
    return &g->servers;
}

uint64_t orr__graph_least_delay(const void *net)
{
    const graph *g = net;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < g->t->link_count; i++) {
        const orr__wire *l = &g->t->links[i];
        /* Of one byte, as in aware.c. */
        const uint64_t delay = l->is_failed ? UINT64_MAX : orr_ticks(l->latency + 1 / l->speed);
        if (delay < least)
            least = delay;
    }
    return least;
}

void orr__graph_add(void *net, const void *part)
{
    graph *g = net;
    const graph *of = part;
    for (uint32_t i = 0; i < of->servers.link_count; i++)
        net_servers_add_figures(&g->servers, i, &of->servers.links[i]);
}

const orr_net_ops orr__net_graph = {
    .name = "graph",
    .help = "as aware, over any devices and links, by shortest routes",
    .create = graph_create,
    .send = graph_send,
    .destroy = graph_destroy,
    .report = graph_report,
};

/* ======== Without congestion ========
 *
 * The latencies of a shortest route, and the message once over its slowest link; on the graph of
 * one dimension this is unaware.c.  Which of several equally short routes is used depends only on
 * the pair: without congestion spreading has no effect.  Cost: the links of each device on the
 * route. */

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
    const orr__net_config *own = orr__net_config_of(cfg);
    if (!own || !own->topology)
        return orr_fail(err, ORR_EBUG, &cfg->where, "the network has no topology");
    plain *p = orr_alloc(1, sizeof *p);
    if (!p)
        return orr_no_memory(err);
    p->t = own->topology;
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
                            "there is no route from rank %u to rank %u over working links", src,
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
