/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_parts.c - into how many lanes a network is parted, and who is in which (fabric_lanes.c).
 *
 * Hosts are with their switch, because most of what they send or get goes no further than that in one step; and each
 * lane gets as many ports, because the work is that of ports.  Cost: a few looks at each node and port, once. */
#include "../../../base/pool.h"
#include "fabric_impl.h"

enum {
    MOST_LANES = 64,
    HOSTS_A_THREAD = 64,
    PORTS_A_LANE = 96, /* and what they have on their wires: some hundred KiB */
    PIECES_THAT_PAY = 4,
    PACKETS_THAT_PAY = 2 /* at a port, in a window */
};

/* A host is with the switch of its first link, unless there are too few switches for that. */
static uint32_t home_of(const orr__fabric *f, uint32_t node, bool are_apart)
{
    const orr__node *n = &f->nodes[node];
    if (n->kind != ORR__HOST || n->port_count == 0 || are_apart)
        return node;
    const uint32_t at = f->ports[f->ports[f->ports_of[n->first_port]].peer].node;
    return f->nodes[at].kind == ORR__HOST ? node : at;
}

/* Neighbours in number are neighbours in space, mostly; each lane gets as many ports.  How many lanes there are. */
static unsigned part(const orr__fabric *f, uint32_t *of_node, unsigned wanted)
{
    uint64_t *weights = orr_alloc(f->node_count, sizeof *weights);
    uint64_t before = 0;
    uint32_t homes = 0, last = ORR__NOBODY;
    unsigned used = 0;
    if (!weights)
        return 0;
    for (uint32_t n = 0; n < f->node_count; n++)
        homes += home_of(f, n, false) == n;
    const bool are_apart = homes < wanted;
    for (uint32_t n = 0; n < f->node_count; n++)
        weights[home_of(f, n, are_apart)] += f->nodes[n].port_count;
    for (uint32_t n = 0; n < f->node_count; n++) {
        const uint32_t at = (uint32_t)((before + weights[n] / 2) * wanted / f->port_count);
        if (!weights[n])
            continue;
        before += weights[n];
        used += at != last;
        last = at;
        of_node[n] = used - 1;
    }
    for (uint32_t n = 0; n < f->node_count; n++)
        of_node[n] = of_node[home_of(f, n, are_apart)];
    orr_free(weights);
    return used;
}

/* The shortest time in which anything can get from one lane to another, or become known of a host. */
static uint64_t shortest_way(const orr__fabric *f, const uint32_t *of_node)
{
    uint64_t shortest = ORR__LATE;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const orr__port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (of_node[p->node] != of_node[q->node] || !q->is_switch)
            shortest = p->delay < shortest ? p->delay : shortest;
    }
    return shortest;
}

static bool can_be_parted(const orr__fabric *f)
{
    return !f->config.is_compat && !f->approx && !f->monitor && !f->series && !f->has_trace &&
           !orr__writer_samples(f) && f->config.control != ORR__CONTROL_PINT;
}

unsigned orr__lanes_threads(const orr__fabric *f)
{
    uint32_t hosts = 0;
    if (f->config.threads)
        return f->config.threads < MOST_LANES ? f->config.threads : MOST_LANES;
    for (uint32_t n = 0; n < f->node_count; n++)
        hosts += f->nodes[n].kind == ORR__HOST;
    const unsigned cores = orr_pool_threads(0), most = hosts / HOSTS_A_THREAD;
    return cores < most ? cores : most ? most : 1;
}

/* Who listens cuts windows short: so short that changing from lane to lane costs more than caches save. */
static bool has_listeners(const orr__fabric *f)
{
    return (f->watcher.sent || f->watcher.arrived) && !f->watcher.hears;
}

/* Lanes that fit the caches pay on one thread, too, if each port sends some packets in a window. */
static unsigned lanes_for_caches(const orr__fabric *f)
{
    const uint32_t pieces = f->port_count / PORTS_A_LANE;
    if (pieces < PIECES_THAT_PAY || has_listeners(f))
        return 1;
    return pieces < MOST_LANES ? pieces : MOST_LANES;
}

static bool is_long_enough(const orr__fabric *f, uint64_t window)
{
    uint64_t fastest = 1;
    for (uint32_t i = 0; i < f->port_count; i++)
        fastest = f->ports[i].rate > fastest ? f->ports[i].rate : fastest;
    return window >= PACKETS_THAT_PAY * orr__transmission_time(f, f->config.payload, fastest);
}

unsigned orr__lanes_plan(const orr__fabric *f, uint32_t *of_node, uint64_t *window)
{
    const unsigned threads = orr__lanes_threads(f), pieces = lanes_for_caches(f);
    *window = 0;
    if (!can_be_parted(f))
        return 1;
    if (pieces > threads) {
        const unsigned used = part(f, of_node, pieces);
        *window = used ? shortest_way(f, of_node) : 0;
        if (!used || is_long_enough(f, *window))
            return used;
    }
    if (threads < 2)
        return 1;
    const unsigned used = part(f, of_node, threads);
    *window = used ? shortest_way(f, of_node) : 0;
    return used;
}
