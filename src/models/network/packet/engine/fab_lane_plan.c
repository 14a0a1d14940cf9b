/* SPDX-License-Identifier: Apache-2.0 */
/* fab_lane_plan.c - into how many lanes a network is parted, and who is in which (fab_lanes.c).
 *
 * Hosts are with their switch, because most of what they send or get goes no further than that in
 * one step.  Each lane gets as much of the work: of the packets that pass a node if the flows are
 * known beforehand (a sample of them is followed along its routes), else of the ports. Cost: a few
 * looks at each node and port, and the routes of some thousand flows, once. */
#include "base/threads/pool.h"
#include "fabric_impl.h"

enum {
    MOST_LANES = 64,
    HOSTS_A_THREAD = 64,
    PORTS_A_LANE = 96, /* and what they have on their wires: some hundred KiB */
    PIECES_THAT_PAY = 4,
    PACKETS_THAT_PAY = 2, /* at a port, in a window */
    FLOWS_FOLLOWED = 4096,
    MOST_HOPS = 64,
    PACKET_WEIGHT = 1024
};

typedef struct parting {
    const fab *f;
    unsigned wanted;   /* lanes */
    uint32_t *of_node; /* lane */
    uint64_t *weights; /* by node: its share of the work; 0: it goes with another */
    bool *is_home;     /* of a host */
} parting;

/* A host is with the switch of its first link, unless there are too few switches for that. */
static uint32_t home_of(const fab *f, uint32_t node, bool are_apart)
{
    const fab_node *n = &f->nodes[node];
    if (n->kind != ORR__HOST || n->port_count == 0 || are_apart)
        return node;
    const uint32_t at = f->ports[f->ports[f->ports_of[n->first_port]].peer].node;
    return f->nodes[at].kind == ORR__HOST ? node : at;
}

/* Packets of a flow are work for all nodes on its way. */
static void follow_flow(const fab *f, const orr__flow_line *l, uint64_t *weights)
{
    const uint64_t most = (uint64_t)1 << 32, all = l->bytes / f->config.payload + 1;
    const uint64_t packets = all < most ? all : most;
    const fab_frame m = {.from = l->src,
                         .to = l->dst,
                         .ports = FAB_FIRST_PORT | (uint32_t)(l->port ? l->port : FAB_FLOW_PORT)
                                                       << 16};
    uint32_t node = l->src;
    for (unsigned hops = 0; hops < MOST_HOPS && node != l->dst; hops++) {
        const uint32_t port =
            hops ? fab_route(f, node, &m) : fab_nic_towards(f, node, l->dst, m.ports, node);
        weights[node] += packets * PACKET_WEIGHT;
        if (port == FAB_NONE)
            return;
        node = f->ports[f->ports[port].peer].node;
    }
    weights[node] += packets * PACKET_WEIGHT;
}

static void weigh(const fab *f, uint64_t *weights)
{
    uint64_t seed = 1;
    for (uint32_t n = 0; n < f->node_count; n++)
        weights[n] = f->list.flows ? f->nodes[n].port_count > 0 : f->nodes[n].port_count;
    if (!f->list.flows)
        return;
    for (size_t i = 0; i < f->list.flows->count && i < FLOWS_FOLLOWED; i++) {
        const bool are_few = f->list.flows->count <= FLOWS_FOLLOWED;
        const size_t which = are_few ? i : orr_splitmix64(&seed) % f->list.flows->count;
        follow_flow(f, &f->list.flows->lines[which], weights);
    }
}

/* Nodes bring their weight to their homes.  False: homes are too few, or one of them is more than
 * half a thread too much for a thread. */
static bool bring_home(const fab *f, uint64_t *weights, unsigned wanted)
{
    uint64_t total = 0, heaviest = 0;
    uint32_t homes = 0;
    for (uint32_t n = 0; n < f->node_count; n++) {
        total += weights[n];
        homes += home_of(f, n, false) == n;
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        const uint32_t home = home_of(f, n, false);
        if (home == n)
            continue;
        weights[home] += weights[n];
        weights[n] = 0;
    }
    for (uint32_t n = 0; n < f->node_count; n++)
        heaviest = weights[n] > heaviest ? weights[n] : heaviest;
    return homes >= wanted && heaviest / 3 <= total / fab_lanes_threads(f) / 2;
}

/* Nodes of one kind, hosts or homes of some, or not: each lane gets neighbours in number, which are
 * neighbours in space mostly, until it is full.  What does not fit anywhere is for the last one. */
static void fill(const parting *p, bool are_homes, const uint64_t *room)
{
    uint64_t before = 0;
    for (uint32_t n = 0; n < p->f->node_count; n++) {
        if (!p->weights[n] || p->is_home[n] != are_homes)
            continue;
        const uint64_t middle = before + p->weights[n] / 2;
        unsigned lane = 0;
        for (uint64_t end = room[0]; lane + 1 < p->wanted && middle >= end;)
            end += room[++lane];
        before += p->weights[n];
        p->of_node[n] = lane;
    }
}

static uint64_t sum_of(const parting *p, bool are_homes)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < p->f->node_count; n++)
        sum += p->is_home[n] == are_homes ? p->weights[n] : 0;
    return sum;
}

/* Switches without hosts are shared out first, and alike; hosts and their switches fill the lanes
 * up. */
static void share_out(const parting *p)
{
    const uint64_t others = sum_of(p, false), fair = (others + sum_of(p, true)) / p->wanted + 1;
    uint64_t room[MOST_LANES], left[MOST_LANES];
    for (unsigned i = 0; i < p->wanted; i++) {
        room[i] = others / p->wanted + 1;
        left[i] = fair;
    }
    fill(p, false, room);
    for (uint32_t n = 0; n < p->f->node_count; n++)
        if (p->weights[n] && !p->is_home[n]) {
            uint64_t *of_lane = &left[p->of_node[n]];
            *of_lane -= *of_lane < p->weights[n] ? *of_lane : p->weights[n];
        }
    fill(p, true, left);
}

/* Lanes in which somebody is, numbered again. */
static unsigned count_lanes(const parting *p)
{
    unsigned used = 0, number[MOST_LANES] = {0};
    for (uint32_t n = 0; n < p->f->node_count; n++)
        number[p->of_node[n]] = 1;
    for (unsigned i = 0; i < p->wanted; i++) {
        const unsigned is_used = number[i];
        number[i] = used;
        used += is_used;
    }
    for (uint32_t n = 0; n < p->f->node_count; n++)
        p->of_node[n] = number[p->of_node[n]];
    return used;
}

static void place_all(const parting *p)
{
    weigh(p->f, p->weights);
    const bool are_apart = !bring_home(p->f, p->weights, p->wanted);
    if (are_apart)
        weigh(p->f, p->weights);
    for (uint32_t n = 0; n < p->f->node_count; n++)
        if (p->f->nodes[n].kind == ORR__HOST)
            p->is_home[home_of(p->f, n, are_apart)] = true;
    share_out(p);
    for (uint32_t n = 0; n < p->f->node_count; n++)
        p->of_node[n] = p->of_node[home_of(p->f, n, are_apart)];
}

static unsigned part(const fab *f, uint32_t *of_node, unsigned wanted)
{
    const parting p = {f, wanted, of_node, orr_alloc(f->node_count, sizeof *p.weights),
                       orr_alloc(f->node_count, sizeof *p.is_home)};
    unsigned used = 0;
    if (p.weights && p.is_home) {
        place_all(&p);
        used = count_lanes(&p);
    }
    orr_free(p.weights);
    orr_free(p.is_home);
    return used;
}

/* The shortest time in which anything can get from one lane to another, or become known of a
 * host. */
static uint64_t shortest_delay(const fab *f, const uint32_t *of_node)
{
    uint64_t shortest = FAB_LATE;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (of_node[p->node] != of_node[q->node] || !q->is_switch)
            shortest = p->delay < shortest ? p->delay : shortest;
    }
    return shortest;
}

static bool can_be_parted(const fab *f)
{
    return !f->rules.orders_by_schedule && !f->approx && !(f->watch.hears & FAB_HEARS_FRAMES);
}

unsigned fab_lanes_threads(const fab *f)
{
    uint32_t hosts = 0;
    if (f->config.threads)
        return f->config.threads < MOST_LANES ? f->config.threads : MOST_LANES;
    for (uint32_t n = 0; n < f->node_count; n++)
        hosts += f->nodes[n].kind == ORR__HOST;
    const unsigned cores = orr_pool_threads(0), most = hosts / HOSTS_A_THREAD;
    return cores < most ? cores : most ? most : 1;
}

/* Who listens cuts windows short: so short that changing from lane to lane costs more than caches
 * save. */
static bool has_listeners(const fab *f)
{
    return (f->listener.sent || f->listener.arrived) && !f->listener.hears;
}

/* Lanes that fit the caches pay on one thread, too, if each port sends some packets in a window. */
static unsigned lanes_for_caches(const fab *f)
{
    const uint32_t pieces = f->port_count / PORTS_A_LANE;
    if (pieces < PIECES_THAT_PAY || has_listeners(f))
        return 1;
    return pieces < MOST_LANES ? pieces : MOST_LANES;
}

static bool is_long_enough(const fab *f, uint64_t window)
{
    uint64_t fastest = 1;
    for (uint32_t i = 0; i < f->port_count; i++)
        fastest = f->ports[i].rate > fastest ? f->ports[i].rate : fastest;
    return window >= PACKETS_THAT_PAY * fab_transmission_time(f, f->config.payload, fastest);
}

unsigned fab_lanes_plan(const fab *f, uint32_t *of_node, uint64_t *window)
{
    const unsigned threads = fab_lanes_threads(f), pieces = lanes_for_caches(f);
    *window = 0;
    if (!can_be_parted(f))
        return 1;
    if (pieces > threads) {
        const unsigned used = part(f, of_node, pieces);
        *window = used ? shortest_delay(f, of_node) : 0;
        if (!used || is_long_enough(f, *window))
            return used;
    }
    if (threads < 2)
        return 1;
    const unsigned used = part(f, of_node, threads);
    *window = used ? shortest_delay(f, of_node) : 0;
    return used;
}
