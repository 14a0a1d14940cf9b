/* SPDX-License-Identifier: Apache-2.0 */
/* fab_failures.c - links that fail and are repaired (packet-network.md 9): when, and what becomes
 * of routes, flows and pauses then.
 *
 * Cost: planning is linear in links and events; each event finds the routes anew. */
#include "fabric_impl.h"

static void take_down(orr__fabric *f, uint32_t port)
{
    orr_error err;
    if (f->ports[port].is_down)
        return;
    f->ports[port].is_down = f->ports[f->ports[port].peer].is_down = true;
    orr_code code = orr__fabric_find_routes(f, &err);
    orr__lanes_follow_routes(f);
    orr__port_take_down(f, &f->ports[port]);
    orr__port_take_down(f, &f->ports[f->ports[port].peer]);
    if (!code)
        code = orr__host_redistribute(f, &err);
    if (code) {
        f->code = code;
        f->error = err;
        f->is_stopped = true;
    }
}

static void repair(orr__fabric *f, uint32_t port)
{
    orr__port *p = &f->ports[port], *q = &f->ports[p->peer];
    orr_error err;
    if (!p->is_down)
        return;
    orr__port_bring_up(f, p);
    orr__port_bring_up(f, q);
    orr_code code = orr__fabric_find_routes(f, &err);
    orr__lanes_follow_routes(f);
    if (!code)
        code = orr__host_redistribute(f, &err);
    if (code) {
        f->code = code;
        f->error = err;
        f->is_stopped = true;
        return;
    }
    orr__port_try(f, p);
    orr__port_try(f, q);
}

/* Flows that had no way when they should have started try again; if nothing more is planned, they
 * say so. */
static void wake_waiting(orr__fabric *f)
{
    uint32_t *flows;
    size_t count;
    if (!orr__flows_under_way(f, &flows, &count)) {
        orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!f->flows[flows[i]].awaits_way)
            continue;
        orr__fabric *by = orr__acting(f, f->flows[flows[i]].src);
        orr__host_ready(by, flows[i]);
        if (by->code)
            break; /* the first one is told of, whoever has it */
    }
    orr_free(flows);
}

void orr__link_take_down(orr__fabric *f, uint32_t port)
{
    f->planned--;
    take_down(f, port);
    if (!f->planned)
        wake_waiting(f);
}

void orr__link_repair(orr__fabric *f, uint32_t port)
{
    f->planned--;
    repair(f, port);
    wake_waiting(f);
}

/* ---- when ---- */

/* LINK_DOWN. */
orr_code orr__fabric_plan_failure(orr__fabric *f, orr_error *err)
{
    const orr_where w = orr__packet_config_where(&f->config, "LINK_DOWN");
    const uint64_t after_us = f->config.down_us + f->rules.link_down_offset;
    if (!f->config.has_down)
        return ORR_OK;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const orr__port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (p->node == f->config.down_a && q->node == f->config.down_b) {
            f->planned++;
            (void)orr__fabric_after(f, after_us * 1000 * f->unit, ORR__EV_DOWN, i);
            return ORR_OK;
        }
    }
    return orr_fail(err, ORR_EINPUT, &w, "LINK_DOWN: there is no link from %llu to %llu",
                    (unsigned long long)f->config.down_a, (unsigned long long)f->config.down_b);
}

/* The cables of each pair of nodes: the first in `first`, the others in `next` behind it, in the
 * order of the file. */
static bool gather_cables(const orr__fabric *f, orr_map *first, uint32_t *next)
{
    for (uint32_t i = f->port_count; i > 0; i -= 2) {
        const uint32_t port = i - 2;
        const uint64_t pair = orr__pair_key(f->ports[port].node, f->ports[port + 1].node);
        next[port / 2] = orr_map_find(first, pair, ORR__NOBODY);
        if (!orr_map_put(first, pair, port, NULL))
            return false;
    }
    return true;
}

static bool plan_events(orr__fabric *f,
                        const orr__link_events *e,
                        const orr_map *first,
                        const uint32_t *next)
{
    for (size_t i = 0; i < e->count; i++) {
        const orr__link_event *one = &e->events[i];
        const uint64_t at = f->unit == 1 ? (one->at_ps + 500) / 1000 : one->at_ps;
        uint32_t port = orr_map_find(first, orr__pair_key(one->a, one->b), ORR__NOBODY);
        for (; port != ORR__NOBODY; port = next[port / 2]) {
            f->planned++;
            if (orr__fabric_after(f, at, one->is_up ? ORR__EV_UP : ORR__EV_DOWN, port) ==
                ORR__NO_EVENT)
                return false;
        }
    }
    return true;
}

orr_code orr__fabric_plan(orr__fabric *f, const orr__link_events *e, orr_error *err)
{
    if (e->count == 0)
        return ORR_OK;
    orr_map *first = orr_map_create(f->port_count / 2);
    uint32_t *next = orr_alloc(f->port_count / 2, sizeof *next);
    const bool has_memory =
        first && next && gather_cables(f, first, next) && plan_events(f, e, first, next);
    orr_map_destroy(first);
    orr_free(next);
    return has_memory ? ORR_OK : orr_no_memory(err);
}
