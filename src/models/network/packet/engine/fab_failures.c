/* SPDX-License-Identifier: Apache-2.0 */
/* fab_failures.c - links that fail and are repaired (packet-network.md 9): when, and what becomes
 * of routes, flows and pauses then.
 *
 * Cost: planning is linear in links and events; each event finds the routes again. */
#include "fabric_impl.h"

static void take_down(fab *f, uint32_t port)
{
    orr_error err;
    if (f->ports[port].is_down)
        return;
    f->ports[port].is_down = f->ports[f->ports[port].peer].is_down = true;
    orr_code code = fab_find_routes(f, &err);
    fab_lanes_follow_routes(f);
    fab_port_take_down(f, &f->ports[port]);
    fab_port_take_down(f, &f->ports[f->ports[port].peer]);
    if (!code)
        code = fab_host_redistribute(f, &err);
    if (code) {
        f->end.code = code;
        f->end.error = err;
        f->end.is_stopped = true;
    }
}

static void repair(fab *f, uint32_t port)
{
    fab_port *p = &f->ports[port], *q = &f->ports[p->peer];
    orr_error err;
    if (!p->is_down)
        return;
    fab_port_bring_up(f, p);
    fab_port_bring_up(f, q);
    orr_code code = fab_find_routes(f, &err);
    fab_lanes_follow_routes(f);
    if (!code)
        code = fab_host_redistribute(f, &err);
    if (code) {
        f->end.code = code;
        f->end.error = err;
        f->end.is_stopped = true;
        return;
    }
    fab_port_try(f, p);
    fab_port_try(f, q);
}

/* Flows that had no route when they should have started try again; if nothing more is planned, they
 * say so. */
static void wake_waiting(fab *f)
{
    uint32_t *flows;
    size_t count;
    if (!fab_flows_under_way(f, &flows, &count)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!f->flows[flows[i]].awaits_route)
            continue;
        fab *by = fab_acting(f, f->flows[flows[i]].src);
        fab_host_ready(by, flows[i]);
        if (by->end.code)
            break; /* the first error is reported, whoever has it */
    }
    orr_free(flows);
}

void fab_link_take_down(fab *f, uint32_t port)
{
    f->planned--;
    take_down(f, port);
    if (!f->planned)
        wake_waiting(f);
}

void fab_link_repair(fab *f, uint32_t port)
{
    f->planned--;
    repair(f, port);
    wake_waiting(f);
}

/* ---- when ---- */

/* LINK_DOWN. */
orr_code fab_plan_failure(fab *f, orr_error *err)
{
    const orr_where w = orr__packet_config_where(&f->config, "LINK_DOWN");
    const uint64_t after_us = f->config.down_us + f->rules.link_down_offset;
    if (!f->config.has_down)
        return ORR_OK;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (p->node == f->config.down_a && q->node == f->config.down_b) {
            f->planned++;
            (void)fab_after(f, after_us * 1000 * f->unit, FAB_EV_DOWN, i);
            return ORR_OK;
        }
    }
    return orr_fail(err, ORR_EINPUT, &w, "LINK_DOWN: there is no link from %llu to %llu",
                    (unsigned long long)f->config.down_a, (unsigned long long)f->config.down_b);
}

/* The cables of each pair of nodes: the first in `first`, the others in `next` behind it, in the
 * order of the file. */
static bool gather_cables(const fab *f, orr_map *first, uint32_t *next)
{
    for (uint32_t i = f->port_count; i > 0; i -= 2) {
        const uint32_t port = i - 2;
        const uint64_t pair = orr__pair_key(f->ports[port].node, f->ports[port + 1].node);
        next[port / 2] = orr_map_find(first, pair, FAB_NONE);
        if (!orr_map_put(first, pair, port, NULL))
            return false;
    }
    return true;
}

static bool plan_events(fab *f,
                        const orr__link_events *e,
                        const orr_map *first,
                        const uint32_t *next)
{
    for (size_t i = 0; i < e->count; i++) {
        const orr__link_event *one = &e->events[i];
        const uint64_t at = f->unit == 1 ? (one->at_ps + 500) / 1000 : one->at_ps;
        uint32_t port = orr_map_find(first, orr__pair_key(one->a, one->b), FAB_NONE);
        for (; port != FAB_NONE; port = next[port / 2]) {
            f->planned++;
            if (fab_after(f, at, one->is_up ? FAB_EV_UP : FAB_EV_DOWN, port) == FAB_NO_EVENT)
                return false;
        }
    }
    return true;
}

orr_code fab_plan(fab *f, const orr__link_events *e, orr_error *err)
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
