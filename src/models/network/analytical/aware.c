/* SPDX-License-Identifier: Apache-2.0 */
/* aware.c - the congestion-aware network: store and forward, every link a first-come-first-served server
 * (astra-sim.md 8.2).  One dimension.
 *
 * Devices are the NPUs and, for a switch, one more.  Links are numbered so that a route needs no table:
 * ring: 2 * i is i -> i + 1, 2 * i + 1 is i -> i - 1; switch: 2 * i up, 2 * i + 1 down; fully connected:
 * src * n + dst, made when first used.  A packet is a message on its way: where it is, how far it still has
 * to go. */
#include "analytical.h"

#include "../../../base/map.h"
#include "../../../base/memory.h"

#define NONE UINT32_MAX

typedef struct link {
    bool is_busy;
    uint32_t first, last; /* packets that wait */
} link;

typedef struct packet {
    orr_message m;
    uint32_t at, hops_left;
    int32_t step; /* ring: +1 or -1 */
    uint32_t next;
} packet;

typedef struct aware {
    orr_net_config cfg;
    double speed;
    orr_sim *sim; /* of the last send: one simulation owns this network */
    link *links;
    size_t link_count, link_room;
    orr_map *pairs; /* fully connected: src * n + dst -> link */
    packet *packets;
    size_t packet_count, packet_room;
    uint32_t free_packet;
    bool has_failed;
} aware;

static void aware_destroy(void *net)
{
    aware *a = net;
    if (!a)
        return;
    orr_free(a->links);
    orr_free(a->packets);
    orr_map_destroy(a->pairs);
    orr_free(a);
}

static orr_code check_config(const orr_net_config *cfg, orr_error *err)
{
    if (cfg->dims != 1)
        return orr_fail(err, ORR_EINPUT, &cfg->where,
                        "the congestion-aware network has one dimension; this file has %u",
                        cfg->dims);
    if (cfg->shape[0] == ORR_NET_RING && cfg->npus[0] == 2 && cfg->is_compat)
        return orr_fail(err, ORR_EINPUT, &cfg->where,
                        "a congestion-aware ring needs at least 3 NPUs");
    return ORR_OK;
}

static orr_code aware_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    const orr_code code = check_config(cfg, err);
    if (code)
        return code;
    aware *a = orr_alloc(1, sizeof *a);
    if (!a)
        return orr_no_memory(err);
    a->cfg = *cfg;
    a->speed = orr__link_speed(cfg->bandwidth[0]);
    a->free_packet = NONE;
    const bool is_full = cfg->shape[0] == ORR_NET_FULLY_CONNECTED;
    a->link_count = is_full ? 0 : 2 * (size_t)cfg->npus[0];
    a->pairs = is_full ? orr_map_create(0) : NULL;
    if ((is_full && !a->pairs) || !orr_grow(&a->links, &a->link_room, a->link_count + 1)) {
        aware_destroy(a);
        return orr_no_memory(err);
    }
    for (size_t i = 0; i < a->link_count; i++)
        a->links[i] = (link){false, NONE, NONE};
    *out = a;
    return ORR_OK;
}

/* ---- packets ---- */

static uint32_t new_packet(aware *a)
{
    uint32_t p = a->free_packet;
    if (p != NONE) {
        a->free_packet = a->packets[p].next;
        return p;
    }
    if (a->packet_count >= NONE || !orr_grow(&a->packets, &a->packet_room, a->packet_count + 1))
        return NONE;
    return (uint32_t)a->packet_count++;
}

static void drop_packet(aware *a, uint32_t p)
{
    a->packets[p].next = a->free_packet;
    a->free_packet = p;
}

/* ---- routes ---- */

static void set_route(const aware *a, packet *p)
{
    const uint32_t n = a->cfg.npus[0], clockwise = (p->m.dst + n - p->m.src) % n;
    p->at = p->m.src;
    p->step = 1;
    p->hops_left = 1;
    if (a->cfg.shape[0] == ORR_NET_SWITCH)
        p->hops_left = 2;
    if (a->cfg.shape[0] == ORR_NET_RING) {
        p->step = clockwise <= n - clockwise ? 1 : -1; /* a tie goes clockwise */
        p->hops_left = p->step > 0 ? clockwise : n - clockwise;
    }
}

static uint32_t pair_link(aware *a, uint32_t src, uint32_t dst)
{
    const uint64_t key = (uint64_t)src * a->cfg.npus[0] + dst;
    uint32_t l = orr_map_find(a->pairs, key, NONE);
    if (l != NONE)
        return l;
    if (!orr_grow(&a->links, &a->link_room, a->link_count + 1) ||
        !orr_map_put(a->pairs, key, (uint32_t)a->link_count, NULL))
        return NONE;
    a->links[a->link_count] = (link){false, NONE, NONE};
    return (uint32_t)a->link_count++;
}

static uint32_t next_link(aware *a, const packet *p)
{
    if (a->cfg.shape[0] == ORR_NET_RING)
        return 2 * p->at + (p->step < 0);
    if (a->cfg.shape[0] == ORR_NET_SWITCH)
        return p->hops_left == 2 ? 2 * p->m.src : 2 * p->m.dst + 1;
    return pair_link(a, p->m.src, p->m.dst);
}

/* ---- links ---- */

static void arrive(void *net, uint64_t p);
static void become_free(void *net, uint64_t l);

/* The arrival is scheduled before the link's release: ties depend on it. */
static void start(aware *a, uint32_t l, uint32_t p)
{
    const double serialisation = (double)a->packets[p].m.size / a->speed;
    a->links[l].is_busy = true;
    orr_sim_after(a->sim, (uint64_t)(a->cfg.latency_ns[0] + serialisation), arrive, a, p);
    orr_sim_after(a->sim, (uint64_t)serialisation, become_free, a, l);
}

static bool forward(aware *a, uint32_t p)
{
    const uint32_t l = next_link(a, &a->packets[p]);
    if (l == NONE)
        return false;
    if (!a->links[l].is_busy) {
        start(a, l, p);
        return true;
    }
    a->packets[p].next = NONE;
    if (a->links[l].last == NONE)
        a->links[l].first = p;
    else
        a->packets[a->links[l].last].next = p;
    a->links[l].last = p;
    return true;
}

static void become_free(void *net, uint64_t index)
{
    aware *a = net;
    link *l = &a->links[index];
    const uint32_t p = l->first;
    l->is_busy = false;
    if (p == NONE)
        return;
    l->first = a->packets[p].next;
    if (l->first == NONE)
        l->last = NONE;
    start(a, (uint32_t)index, p);
}

static void arrive(void *net, uint64_t index)
{
    aware *a = net;
    packet *p = &a->packets[index];
    const uint32_t n = a->cfg.npus[0];
    p->at = (p->at + n + (uint32_t)p->step) % n;
    if (--p->hops_left) {
        a->has_failed |= !forward(a, (uint32_t)index);
        return;
    }
    const uint64_t token = p->m.token;
    drop_packet(a, (uint32_t)index);
    orr_sim_deliver(a->sim, token);
}

static orr_code aware_send(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    aware *a = net;
    const uint32_t p = new_packet(a);
    if (p == NONE || a->has_failed)
        return orr_no_memory(err);
    a->sim = sim;
    a->packets[p] = (packet){.m = *m};
    set_route(a, &a->packets[p]);
    return forward(a, p) ? ORR_OK : orr_no_memory(err);
}

const orr_net_ops orr__net_aware = {
    .name = "aware",
    .help = "store and forward; every link serves one message at a time",
    .create = aware_create,
    .send = aware_send,
    .destroy = aware_destroy,
};
