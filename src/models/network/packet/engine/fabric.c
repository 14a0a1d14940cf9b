/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - the packet network as a whole: built from cables, run event by event.
 *
 * Every port has two events with fixed ids in the wheel: 2p, the first frame on its wire arrives;
 * 2p + 1, its transmission ends.  All others are made on demand. */
#include "fabric_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fab_fail(fab *f, orr_code code, const char *fmt, ...)
{
    char text[240];
    va_list args;
    const orr_where w = orr_where_byte(f->config.path, ORR_NO_BYTE);
    /* The first failure is the cause; later ones are its consequences. */
    if (f->end.code)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    f->end.code = orr_fail(&f->end.error, code, f->config.path[0] ? &w : NULL, "%s", text);
    f->end.is_stopped = true;
}

uint32_t fab_frame_new_slow(fab *f)
{
    if (f->frame_count == f->frame_room) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return FAB_NONE;
    }
    return (uint32_t)f->frame_count++;
}

/* ---- building ---- */

/* In total 800 bytes per port: small networks do not need a huge page. */
enum { PORTS_FOR_LARGE_PAGES = 256 };

/* Every event touches ports, their queues and their events: they are contiguous, in as few pages as
 * possible. */
static bool make_ports(fab *f, const orr__cabling *c)
{
    f->node_count = c->nodes;
    /* The remaining bits count the events of a node, which are part of the tie order. */
    f->node_shift = FAB_TIE_SHIFT - (32 - (unsigned)__builtin_clz(c->nodes | 1));
    f->port_count = (uint32_t)(2 * c->cable_count);
    f->nodes = orr_alloc(c->nodes, sizeof *f->nodes);
    f->ports_of = orr_alloc(f->port_count, sizeof *f->ports_of);
    f->chains = orr_alloc((size_t)f->port_count * FAB_CHAIN_MOST, sizeof *f->chains);
    if (!f->nodes || !f->ports_of || !f->chains)
        return false;
    const size_t queue_count = (size_t)f->port_count * FAB_CLASSES;
    const size_t bytes = f->port_count * sizeof *f->ports + queue_count * sizeof *f->queues +
                         2 * (size_t)f->port_count * sizeof(fab_event);
    if (!orr_reserve_init(&f->space.ports, bytes) || f->space.ports.bytes < bytes)
        return false;
    if (f->port_count >= PORTS_FOR_LARGE_PAGES)
        orr_reserve_large(&f->space.ports);
    f->ports = f->space.ports.base;
    f->queues = (fab_queue *)(f->ports + f->port_count);
    for (size_t i = 0; i < queue_count; i++)
        f->queues[i].head = FAB_NONE;
    fab_event *events = (fab_event *)(f->queues + queue_count);
    for (uint32_t i = 0; i < f->port_count; i++) {
        events[2 * i] = (fab_event){.kind = FAB_EV_ARRIVE, .who = i};
        events[2 * i + 1] = (fab_event){.kind = FAB_EV_END, .who = i};
    }
    fab_wheel_share(&f->wheel, events, 2 * f->port_count);
    return true;
}

/* One port per end of a cable, in file order; the ports of a node are numbered from 1. */
static void place_ports(fab *f, const orr__cabling *c)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const orr__cable *l = &c->cables[i / 2];
        const uint32_t node = i % 2 ? l->b : l->a;
        f->ports[i] = (fab_port){.rate = l->rate,
                                 .delay = f->unit == 1 ? (l->delay_ps + 500) / 1000 : l->delay_ps,
                                 .peer = i ^ 1,
                                 .node = node,
                                 .is_switch = c->kinds[node] != ORR__HOST,
                                 .error = l->error,
                                 .cost = l->cost ? l->cost : 1,
                                 .number = ++f->nodes[node].port_count};
        /* By actor: tie class FAB_TIE_END and the port, constant.  By schedule: nothing was sent
         * yet. */
        f->ports[i].end_order = f->rules.orders_by_schedule ? 0 : i;
        /* A stream of its own: draws do not depend on what other ports do. */
        f->ports[i].coins = i;
        f->nic_count += !f->ports[i].is_switch;
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->nodes[n].kind = c->kinds[n];
        f->nodes[n].first_port = at;
        at += f->nodes[n].port_count;
    }
    for (uint32_t i = 0; i < f->port_count; i++)
        f->ports_of[f->nodes[f->ports[i].node].first_port + f->ports[i].number - 1] = i;
}

/* Frames and flows never move, however many there are. */
static bool make_space(fab *f)
{
    const size_t most = (size_t)1 << 30; /* of each */
    const size_t hop_bytes = f->hops_each * sizeof *f->hops;
    const size_t state_bytes = !f->control         ? 0
                               : f->control->bytes ? f->control->bytes(f)
                                                   : f->control->size;
    f->state_bytes = state_bytes;
    if (!orr_reserve_init(&f->space.frames, most * sizeof *f->frames) ||
        !orr_reserve_init(&f->space.flows, most * sizeof *f->flows) ||
        (hop_bytes && !orr_reserve_init(&f->space.hops, most * hop_bytes)) ||
        (state_bytes && !orr_reserve_init(&f->space.states, most * state_bytes)))
        return false;
    f->frames = f->space.frames.base;
    f->flows = f->space.flows.base;
    f->hops = f->space.hops.base;
    f->states = f->space.states.base;
    f->frame_room = f->space.frames.bytes / sizeof *f->frames;
    f->flow_room = f->space.flows.bytes / sizeof *f->flows;
    /* A frame has its hops at the same index, and a flow its control state: the smaller reservation
     * limits both. */
    if (hop_bytes && f->space.hops.bytes / hop_bytes < f->frame_room)
        f->frame_room = f->space.hops.bytes / hop_bytes;
    if (state_bytes && f->space.states.bytes / state_bytes < f->flow_room)
        f->flow_room = f->space.states.bytes / state_bytes;
    return true;
}

static bool make_nics(fab *f)
{
    uint32_t at = 0;
    f->nics = orr_alloc(f->nic_count, sizeof *f->nics);
    for (uint32_t i = 0; i < f->port_count && f->nics; i++) {
        if (f->ports[i].is_switch)
            continue;
        f->nics[at] = (fab_nic){.ack_head = FAB_NONE,
                                .urgent_tail = FAB_NONE,
                                .wake = FAB_NO_EVENT,
                                .last_is_number = true};
        f->ports[i].nic = at++;
    }
    return f->nics != NULL;
}

/* Links with their own loss rate are numbered from 1; 0 stands for all others (fab_draws). */
static bool make_losses(fab *f, const orr__cabling *c)
{
    uint32_t lossy = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        fab_port *p = &f->ports[i];
        if (c->cables[i / 2].error > 0) {
            /* Both ports of a cable have its number. */
            lossy += i % 2 == 0;
            p->loss = lossy;
        } else {
            p->error = f->config.error_rate;
        }
        p->is_lossy = p->error > 0;
    }
    if (f->rules.draws)
        f->draws = f->rules.draws->create(f->node_count, lossy);
    return !f->rules.draws || f->draws;
}

static const fab_control *control_of(const fab *f)
{
    switch (f->config.control) {
    case ORR__CONTROL_DCQCN:
        return &fab_dcqcn;
    case ORR__CONTROL_HPCC:
        return &fab_hpcc;
    case ORR__CONTROL_TIMELY:
        return &fab_timely;
    case ORR__CONTROL_DCTCP:
        return &fab_dctcp;
    case ORR__CONTROL_PINT:
        return &fab_pint;
    case ORR__CONTROL_NSCC:
        return f->rules.has_nscc ? &fab_nscc : NULL;
    default:
        return NULL;
    }
}

/* Hosts at one switch with equal links have equal routes: two of them represent all.  Returns their
 * number. */
static uint32_t choose_examples(const fab *f, uint32_t *out, uint32_t *first, uint8_t *seen)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < f->node_count; n++) {
        if (f->nodes[n].kind != ORR__HOST)
            continue;
        const fab_port *p = &f->ports[f->ports_of[f->nodes[n].first_port]];
        const uint32_t at = f->ports[p->peer].node;
        const bool is_plain = f->nodes[n].port_count == 1 && f->nodes[at].kind != ORR__HOST;
        if (is_plain && seen[at]) {
            const fab_port *q = &f->ports[f->ports_of[f->nodes[first[at]].first_port]];
            const bool is_alike = p->rate == q->rate && p->delay == q->delay;
            if (is_alike && seen[at] >= 2)
                continue;
            seen[at] = (uint8_t)(seen[at] + is_alike);
        } else if (is_plain) {
            first[at] = n;
            seen[at] = 1;
        }
        out[count++] = n;
    }
    return count;
}

static void measure_between(fab *f, const uint32_t *hosts, uint32_t count)
{
    fab_path path;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++) {
            if (i == k || !fab_find_path(f, hosts[i], hosts[k], &path))
                continue;
            const uint64_t rtt = fab_path_rtt(&path), bdp = fab_path_bdp(f, &path);
            f->max_rtt = rtt > f->max_rtt ? rtt : f->max_rtt;
            f->max_bdp = bdp > f->max_bdp ? bdp : f->max_bdp;
        }
}

/* Is the longest route needed? */
static bool wants_longest(const fab *f)
{
    const uint64_t control = f->config.control;
    return f->rules.measures_all_pairs || f->config.global_t || control == ORR__CONTROL_PINT ||
           control == ORR__CONTROL_NSCC;
}

/* The maximum RTT and BDP over all pairs of hosts (packet-network.md 5); in a large network only if
 * flows depend on it. */
static bool measure_paths(fab *f)
{
    if (!fab_knows_paths(f) && !wants_longest(f))
        return true;
    uint32_t *hosts = orr_alloc(f->node_count, sizeof *hosts);
    uint32_t *first = orr_alloc(f->node_count, sizeof *first);
    uint8_t *seen = orr_alloc(f->node_count, 1);
    const bool has_memory = hosts && first && seen;
    if (has_memory)
        measure_between(f, hosts, choose_examples(f, hosts, first, seen));
    orr_free(hosts);
    orr_free(first);
    orr_free(seen);
    f->figures.max_rtt_ns = f->max_rtt / f->unit;
    f->figures.max_bdp = f->max_bdp;
    return has_memory;
}

/* NULL without a file. */
static const orr_where *place(const orr_where *w)
{
    return w->path[0] ? w : NULL;
}

/* What the reference cannot express, or what wraps in its counters (packet-network.md 14). */
static orr_code check(const fab *f, orr_error *err)
{
    const orr_where mode = orr__packet_config_where(&f->config, "CC_MODE");
    const orr_where limit = orr__packet_config_where(&f->config, "QUEUE_LIMIT");
    const orr_where buffer = orr__packet_config_where(&f->config, "BUFFER_SIZE");
    const bool is_hpcc = f->config.control == ORR__CONTROL_HPCC;
    const uint32_t most_hops = f->rules.hpcc_hops;
    if (is_hpcc && fab_longest(f) > most_hops)
        return orr_fail(err, ORR_EINPUT, place(&mode),
                        "HPCC (CC_MODE 3): a route has more than %u switches", most_hops);
    for (uint32_t i = 0; i < f->port_count; i++) {
        const uint64_t *known = f->rules.hpcc_rates;
        bool is_known = !known || !is_hpcc || !f->ports[i].is_switch;
        for (; !is_known && *known; known++)
            is_known = f->ports[i].rate == *known * 1000000000u;
        if (!is_known)
            return orr_fail(
                err, ORR_EINPUT, place(&mode),
                "HPCC (CC_MODE 3) of the reference supports links of 25, 50, 100, 200, 400, 1200 and "
                "2400 Gb/s only; one here has %llu bit/s",
                (unsigned long long)f->ports[i].rate);
    }
    const uint64_t frame = f->config.payload + FAB_HEADER_BYTES + f->int_bytes;
    if (!f->config.enable_pfc && f->config.queue_limit && f->config.queue_limit < frame)
        return orr_fail(
            err, ORR_EINPUT, place(&limit),
            "QUEUE_LIMIT %llu is less than a packet of %llu bytes: none would ever pass",
            (unsigned long long)f->config.queue_limit, (unsigned long long)frame);
    for (uint32_t n = 0; n < f->node_count && f->rules.refuses_small_buffers; n++)
        if (f->nodes[n].kind != ORR__HOST && f->nodes[n].available > f->config.buffer_mib << 20)
            return orr_fail(err, ORR_EINPUT, place(&buffer),
                            "the buffer of switch %u (BUFFER_SIZE %llu MiB) is smaller than the "
                            "headroom and reserves of its %u ports",
                            n, (unsigned long long)f->config.buffer_mib, f->nodes[n].port_count);
    return ORR_OK;
}

static uint64_t first_nic_rate(const fab *f)
{
    for (uint32_t n = 0; n < f->node_count; n++)
        if (f->nodes[n].kind == ORR__HOST)
            return f->ports[f->ports_of[f->nodes[n].first_port]].rate;
    return 0;
}

static orr_code build(fab *f, const orr__cabling *c, orr_error *err)
{
    enum { MOST_PAIRS = 1 << 28 };
    const orr_where w = orr__packet_config_where(&f->config, "GLOBAL_T");
    if (!fab_wheel_init(&f->wheel, f->unit == 1 ? 0 : 10) || !make_ports(f, c))
        return orr_no_memory(err);
    place_ports(f, c);
    f->pair_ports = orr_map_create(64);
    f->pair_last = orr_map_create(64);
    if (!f->pair_ports || !f->pair_last || !make_nics(f) || !make_losses(f, c))
        return orr_no_memory(err);
    orr_code code = fab_find_routes(f, err);
    if (code)
        return code;
    fab_switch_set_up(f, first_nic_rate(f));
    if (wants_longest(f) && fab_pairs(f) > MOST_PAIRS)
        return orr_fail(
            err, ORR_EINPUT, place(&w),
            "GLOBAL_T, --compat and HPCC-PINT need the longest route of all pairs, of which this "
            "network has too many: set GLOBAL_T 0");
    if (!measure_paths(f))
        return orr_no_memory(err);
    f->control = control_of(f);
    f->int_bytes = f->control ? f->control->int_bytes : 0;
    const uint32_t reply = 12 + f->int_bytes;
    f->ack_bytes = 22 + (reply > 26 ? reply : 26);
    if (f->config.control == ORR__CONTROL_HPCC)
        f->hops_each = fab_longest(f);
    if (!make_space(f))
        return orr_no_memory(err);
    if (f->rules.honours_ends && f->config.has_stop && f->config.stop_s < 1e6)
        (void)fab_after(f, (uint64_t)(f->config.stop_s * 1e9) * f->unit, FAB_EV_STOP, 0);
    code = check(f, err);
    return code;
}

orr_code fab_prepare(fab *f, orr_error *err)
{
    const orr_code code = fab_approx_create(f, err);
    return code ? code : fab_plan_failure(f, err);
}

orr_code fab_create(const orr__packet_config *config,
                    const orr__cabling *cabling,
                    fab **out,
                    orr_error *err)
{
    fab *f = orr_alloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return orr_no_memory(err);
    f->config = *config;
    f->rules = orr__packet_rules(config->rules)->engine;
    f->unit = f->rules.ticks_per_ns;
    f->longest_silence = 1000000 * f->unit;
    f->main = f;
    f->line = &f->own_line;
    f->own_line.bound_at = f->own_line.bound_order = UINT64_MAX;
    f->free_frame = f->free_flow = FAB_NONE;
    const orr_code code = build(f, cabling, err);
    if (code)
        fab_destroy(f);
    else
        *out = f;
    return code;
}

void fab_destroy(fab *f)
{
    if (!f)
        return;
    fab_lanes_destroy(f);
    for (unsigned i = 0; i < f->watch.count; i++)
        f->watch.list[i].ops->destroy(f->watch.list[i].state);
    fab_flow_times_fini(&f->times);
    fab_approx_destroy(f->approx);
    for (uint32_t i = 0; f->nics && i < f->nic_count; i++)
        fab_nic_fini(&f->nics[i]);
    fab_routes_free(f->routes);
    orr_map_destroy(f->pair_ports);
    orr_map_destroy(f->pair_last);
    fab_wheel_fini(&f->wheel);
    for (uint32_t i = 0; f->ports && i < f->port_count; i++)
        orr_free(f->ports[i].wire);
    orr_free(f->nodes);
    orr_reserve_fini(&f->space.ports);
    orr_free(f->ports_of);
    orr_free(f->chains);
    orr_free(f->nics);
    if (f->rules.draws)
        f->rules.draws->destroy(f->draws);
    for (size_t i = 0; i < f->flow_count; i++)
        fab_selective_forget(&f->flows[i]);
    orr_reserve_fini(&f->space.frames);
    orr_reserve_fini(&f->space.flows);
    orr_reserve_fini(&f->space.hops);
    orr_reserve_fini(&f->space.states);
    fab_places_fini(&f->free_flows);
    orr_free(f->list.order);
    orr_free(f);
}

void fab_listen(fab *f, const fab_listener *w)
{
    f->listener = *w;
}

void fab_join(fab *f, orr_event_line *line)
{
    line->order += f->line->order; /* events already scheduled come first */
    f->line = line;
}

/* ---- running ---- */

/* Will some flow's timer make it retransmit?  Not if it is paused, or has no route. */
static bool will_send_again(const fab *f)
{
    for (size_t i = 0; i < f->flow_count; i++) {
        const fab_flow *w = &f->flows[i];
        if (w->is_used && !w->is_complete && w->timeout != FAB_NO_EVENT && w->is_listed &&
            !(f->ports[w->port].paused >> w->class & 1))
            return true;
    }
    return false;
}

/* Can anything still move?  Timers of rates and samples move nothing. */
static bool can_move(const fab *f)
{
    if (f->planned)
        return true;
    if (f->list.flows && f->list.at < f->list.count)
        return true;
    for (uint32_t i = 0; i < f->port_count; i++)
        if (f->ports[i].wire_count || f->ports[i].has_end)
            return true;
    for (uint32_t i = 0; i < f->nic_count; i++)
        if (f->nics[i].wake != FAB_NO_EVENT)
            return true;
    return f->rules.has_timeouts && will_send_again(f);
}

/* An event that moves nothing: is it the only one left?  Checked when nothing has arrived for a
 * millisecond, and then with exponential back-off: the check scans all flows, and slow flows or
 * long links must not make a large run check again and again. */
void fab_watch_for_stall(fab *f)
{
    if (f->is_in_window)
        return; /* a window ends before */
    f = f->main;
    const uint64_t silence = f->now - f->last_arrival;
    uint64_t next;
    if (silence <= f->longest_silence || f->under_way == 0)
        return;
    if (f->rules.starts_in_two_events && fab_next_at(f, &next) && next <= f->now)
        return; /* more happens now: a flow may be between its two events */
    f->longest_silence = 2 * silence;
    if (!can_move(f))
        f->end.is_stalled = f->end.is_stopped = true;
}

static void run_port_event(fab *f, uint8_t kind, uint32_t port)
{
    fab_port *p = &f->ports[port];
    if (kind == FAB_EV_WAKE)
        f->nics[p->nic].wake = FAB_NO_EVENT;
    else
        p->has_end = false;
    fab_port_try(f, p);
}

/* Events that reschedule themselves. */
static bool run_lasting(fab *f, uint32_t id, uint8_t kind, uint32_t who)
{
    switch (kind) {
    case FAB_EV_LIST:
        fab_send_next(f);
        return true;
    case FAB_EV_LOOK:
    case FAB_EV_SILENT_LOOK:
        fab_look_run(f, id, who);
        return true;
    default:
        return false;
    }
}

/* Events made on demand; most are freed after running. */
static void run_rare(fab *f, uint32_t id)
{
    /* A copy: the entry is free before the event runs, and may be taken or moved by what it
     * schedules. */
    const fab_event e = *fab_wheel_event(&f->wheel, id);
    if (run_lasting(f, id, e.kind, e.who))
        return;
    fab_wheel_drop(&f->wheel, id);
    switch (e.kind) {
    case FAB_EV_WAKE:
        run_port_event(f, e.kind, e.who);
        break;
    case FAB_EV_HOP:
        /* The second of the reference's two events. */
        (void)fab_after(f, 0, FAB_EV_START, e.who);
        break;
    case FAB_EV_START:
        fab_looks_wake(f);
        fab_host_ready(fab_acting(f, f->flows[e.who].src), e.who);
        break;
    case FAB_EV_ALPHA:
    case FAB_EV_DECREASE:
    case FAB_EV_INCREASE:
        f->control->timer(f, e.who, (fab_event_kind)e.kind);
        fab_watch_for_stall(f);
        break;
    case FAB_EV_TIMEOUT:
        fab_looks_wake(f);
        fab_host_timeout(f, e.who);
        break;
    case FAB_EV_DOWN:
        fab_link_take_down(f, e.who);
        break;
    case FAB_EV_UP:
        fab_looks_wake(f);
        fab_link_repair(f, e.who);
        break;
    case FAB_EV_STOP:
        f->end.is_out_of_time = f->end.is_stopped = true;
        break;
    case FAB_EV_NIC_RESUME:
        fab_host_pause_ends(f, e.who);
        break;
    case FAB_EV_NIC_READY:
        fab_host_pauser(f, e.who)->is_between_pauses = false;
        break;
    case FAB_EV_PAUSE_OVER:
        fab_pause_is_over(f, e.who);
        break;
    default: /* cancelled */
        break;
    }
}

uint64_t fab_bound(const fab *f)
{
    /* In ns; a bound beyond the range of ticks is none. */
    return f->line->bound_at > UINT64_MAX / f->unit ? UINT64_MAX : f->line->bound_at * f->unit;
}

/* By schedule there is one order for network and clock; otherwise the network's events precede the
 * clock's in the same instant. */
static bool next_event(fab *f, uint32_t *id)
{
    return fab_wheel_next(&f->wheel, fab_bound(f),
                          f->rules.orders_by_schedule ? f->line->bound_order : UINT64_MAX, id);
}

/* After an event of this kind; returns the number of skipped events. */
static uint64_t watch_for_periods(fab *f, uint8_t kind, uint32_t who, uint64_t done)
{
    fab_approx *a = f->approx;
    const uint64_t before = a->passed;
    f->events_of_batch = done;
    /* Timers are irregular: a period with one is not representative. */
    if (!a->is_asked && kind != FAB_EV_ARRIVE && kind != FAB_EV_END && kind != FAB_EV_WAKE)
        a->before.len = 0;
    if (kind == FAB_EV_ARRIVE && who == a->anchor)
        fab_approx_look(f);
    if (--a->wait == 0)
        fab_approx_choose(f);
    return a->passed - before;
}

static inline void run_event(fab *f, uint32_t id, uint8_t kind, uint32_t who)
{
    if (kind == FAB_EV_ARRIVE) {
        f->last_arrival = f->now;
        fab_port_arrive(f, who);
    } else if (kind == FAB_EV_END) {
        run_port_event(f, kind, who);
    } else {
        run_rare(f, id);
    }
}

static bool is_too_late(fab *f, const fab_event *e)
{
    if (e->at <= 8 * FAB_LATE)
        return false;
    fab_fail(f, ORR_EINPUT,
             "something takes longer than a month of simulated time; is a unit wrong?");
    return true;
}

void fab_run_event(fab *f, uint32_t id)
{
    const fab_event *e = fab_wheel_event(&f->wheel, id);
    if (is_too_late(f, e))
        return;
    f->now = e->at;
    f->order = e->order;
    run_event(f, id, e->kind, e->who);
}

/* At the first run everything that determines the mode of execution is known. */
static void begin(fab *f)
{
    f->has_begun = true;
    if (f->end.code)
        return;
    orr_code code = fab_lanes_create(f, &f->end.error);
    if (!code && !f->lanes)
        code = fab_approx_begin(f, &f->end.error);
    if (code) {
        f->end.code = code;
        f->end.is_stopped = true;
        return;
    }
    if (!f->lanes)
        fab_await_list(f);
}

uint64_t fab_run(fab *f, uint64_t most)
{
    uint64_t done = 0;
    uint32_t id;
    if (!f->has_begun)
        begin(f);
    if (f->lanes)
        return fab_lanes_run(f, most);
    f->is_in_event = true;
    while (done < most && !f->end.is_stopped && next_event(f, &id)) {
        const fab_event *e = fab_wheel_event(&f->wheel, id);
        if (is_too_late(f, e))
            break;
        const uint8_t kind = e->kind;
        const uint32_t who = e->who;
        done += kind != FAB_EV_SILENT_LOOK;
        if (kind == FAB_EV_SILENT_LOOK && fab_look_is_last(f, id, who))
            continue;
        f->now = e->at;
        f->order = e->order;
        /* Rounded up: the simulator must not hear of anything before it has happened. */
        f->line->now =
            f->unit == 1 || f->line == &f->own_line ? f->now : (f->now + f->unit - 1) / f->unit;
        run_event(f, id, kind, who);
        if (f->list.flows && f->under_way == 0)
            f->end.is_stopped = true;
        if (f->approx)
            done += watch_for_periods(f, kind, who, done);
    }
    f->is_in_event = false;
    if (f->wheel.has_failed)
        fab_fail(f, ORR_ENOMEM, "out of memory");
    f->figures.events += done;
    return done;
}

bool fab_next_at(const fab *f, uint64_t *at)
{
    if (f->lanes)
        return !f->end.is_stopped && fab_lanes_next_at(f, at);
    return !f->end.is_stopped && fab_wheel_peek(&f->wheel, at);
}

bool fab_has_stopped_in_time(const fab *f)
{
    return f->end.is_out_of_time;
}

orr_code fab_status(const fab *f, orr_error *err)
{
    if (f->end.code && err)
        *err = f->end.error;
    return f->end.code;
}

orr_code fab_commit(fab *f, orr_error *err)
{
    orr_code code = ORR_OK;
    for (unsigned i = 0; i < f->watch.count && !code; i++)
        if (f->watch.list[i].ops->commit)
            code = f->watch.list[i].ops->commit(f, f->watch.list[i].state, err);
    return code;
}

unsigned fab_unit(const fab *f)
{
    return (unsigned)f->unit;
}

uint64_t fab_now(const fab *f)
{
    return f->now;
}

const fab_figures *fab_figures_of(const fab *f)
{
    return &f->figures;
}

/* ---- traffic statistics ---- */

void fab_report(const fab *f, orr_net_link_visit visit, void *context)
{
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i], *q = &f->ports[p->peer];
        orr_net_link l = {.messages = p->frames_sent,
                          .bytes = p->bytes_sent,
                          .bandwidth = (double)p->rate / 8e9,
                          .busy_ns = p->busy_ticks / f->unit,
                          .max_queue = fab_port_longest_queue(p)};
        if (!p->frames_sent)
            continue;
        snprintf(l.name, sizeof l.name, p->is_switch ? "switch%u.%u -> %s%u" : "%u.%u -> %s%u",
                 p->node, p->number, q->is_switch ? "switch" : "", q->node);
        visit(context, &l);
    }
}
