/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_parts.c - into how many lanes a network is parted, and who is in which (fabric_lanes.c).
 *
 * Hosts are with their switch, because most of what they send or get goes no further than that in one step; and each
 * lane gets as many ports, because the work is that of ports.  Cost: a few looks at each node and port, once. */
#include "../../../base/pool.h"
#include "fabric_impl.h"

enum { MOST_LANES = 64, HOSTS_A_LANE = 64 };

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
unsigned orr__lanes_part(const orr__fabric *f, uint32_t *of_node, unsigned wanted)
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
uint64_t orr__lanes_window(const orr__fabric *f, const uint32_t *of_node)
{
    uint64_t shortest = ORR__LATE;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const orr__port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (of_node[p->node] != of_node[q->node] || !q->is_switch)
            shortest = p->delay < shortest ? p->delay : shortest;
    }
    return shortest;
}

unsigned orr__lanes_wanted(const orr__fabric *f)
{
    const orr__packet_config *c = &f->config;
    uint32_t hosts = 0;
    if (c->is_compat || c->threads == 1 || f->approx || f->monitor || f->series || f->has_trace ||
        orr__writer_samples(f) || c->control == ORR__CONTROL_PINT)
        return 1;
    for (uint32_t n = 0; n < f->node_count; n++)
        hosts += f->nodes[n].kind == ORR__HOST;
    unsigned wanted = c->threads ? c->threads : orr_pool_threads(0);
    if (!c->threads && wanted > hosts / HOSTS_A_LANE)
        wanted = hosts / HOSTS_A_LANE;
    return wanted < MOST_LANES ? wanted : MOST_LANES;
}
