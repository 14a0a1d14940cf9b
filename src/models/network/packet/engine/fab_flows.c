/* SPDX-License-Identifier: Apache-2.0 */
/* fab_flows.c - start and end of flows, from a list or on request.
 *
 *     list:   by start time; one event: the next flow.  With lanes there is none: those that
 *             start in a window are given to the lanes of their hosts before it (fab_start_before)
 *     asked:  starts in the instant of the request, after everything else in it
 *
 * rules.starts_in_two_events: a flow starts two events later, which are the reference's.  Otherwise
 * results do not depend on the slot of a flow, only on its number: the order of creation
 * (fab_flows_under_way). */
#include "fabric_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static uint32_t new_flow(fab *f)
{
    uint32_t id = f->free_flow;
    if (id != FAB_NONE) {
        f->free_flow = f->flows[id].place;
        return id;
    }
    /* The lowest free slot, so that flows stay dense in memory; the reference takes the one freed
     * last, and its order of flows after a failure is that of slots. */
    id = f->rules.reuses_last_flow ? FAB_NO_PLACE
                                   : fab_places_first(&f->free_flows, 0, (uint32_t)f->flow_count);
    if (id != FAB_NO_PLACE) {
        fab_places_remove(&f->free_flows, id);
        return id;
    }
    if (f->flow_count == f->flow_room || !fab_places_need(&f->free_flows, f->flow_count + 1))
        return FAB_NONE;
    return (uint32_t)f->flow_count++;
}

/* FAB_NONE: out of memory. */
static uint32_t make_flow(fab *f, const fab_send_request *r)
{
    const uint64_t pair = (uint64_t)r->src << 32 | r->dst;
    const uint32_t before = orr_map_find(f->pair_ports, pair, 0);
    const uint32_t id = new_flow(f);
    const uint32_t before_it = r->in_order ? orr_map_find(f->pair_last, pair, FAB_NONE) : FAB_NONE;
    if (id == FAB_NONE || !orr_map_put(f->pair_ports, pair, before + 1, NULL) ||
        (r->in_order && !orr_map_put(f->pair_last, pair, id, NULL)) || !fab_tell_flow_made(f, id))
        return FAB_NONE;
    f->flows[id] = (fab_flow){.size = r->size,
                              .size_rx = r->size,
                              .src = r->src,
                              .dst = r->dst,
                              .src_port = (uint16_t)(FAB_FIRST_PORT + before),
                              .dst_port = r->port ? r->port : FAB_FLOW_PORT,
                              .class = r->class ? r->class : FAB_FLOW_CLASS,
                              .is_used = true,
                              .timeout = FAB_NO_EVENT,
                              .before = before_it,
                              .after = FAB_NONE,
                              .token = r->token,
                              .number = f->figures.flows++};
    f->under_way++;
    return id;
}

/* Such a flow ends the run, or waits for a repair; everything before it is the same with any number
 * of lanes. */
static bool may_not_start(const fab *f, const fab_flow *w)
{
    fab_path path;
    return (f->config.back_to_zero && f->config.has_window) ||
           !fab_find_path(f, w->src, w->dst, &path);
}

/* The lane of the sender's host starts it. */
static bool start_at(fab *f, uint32_t flow, uint64_t at, uint64_t order)
{
    const fab_flow *w = &f->flows[flow];
    fab_wheel *wheel = f->lanes ? fab_lanes_wheel(f, w->src) : &f->wheel;
    const uint32_t event = fab_wheel_new(wheel, FAB_EV_START, flow);
    if (event == FAB_NO_EVENT)
        return false;
    if (f->lanes) { /* in a window nothing shared may be created */
        fab_need_routes(f, w->src);
        fab_need_routes(f, w->dst);
        if (may_not_start(f, w))
            fab_lanes_expect_of(f, w->src, at);
    }
    fab_wheel_at(wheel, event, at, order);
    return true;
}

static bool start_now(fab *f, uint32_t flow)
{
    if (f->rules.starts_in_two_events)
        return fab_after(f, 0, FAB_EV_HOP, flow) != FAB_NO_EVENT;
    return start_at(f, flow, f->now, fab_global_order(f));
}

/* A few bytes of input must not request days of simulation. */
static bool is_too_long(const fab *f, uint64_t bytes)
{
    const uint64_t most = f->rules.most_packets;
    return most && bytes > 0 && (bytes - 1) / most >= f->config.payload;
}

/* end: the kind of sender, a rank or a host. */
static orr_code fail_length(
    const fab *f, const char *end, const fab_send_request *r, const orr_where *at, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, at,
                    "%s %" PRIu32 " sends %" PRIu64 " bytes to %s %" PRIu32
                    ": that is more than %" PRIu64 " packets of %" PRIu64
                    " bytes; the networks fluid and graph take any size",
                    end, r->src, r->size, end, r->dst, f->rules.most_packets, f->config.payload);
}

orr_code fab_send(fab *f, const fab_send_request *r, orr_error *err)
{
    const uint64_t now = f->now;
    if (is_too_long(f, r->size))
        return fail_length(f, "rank", r, NULL, err);
    f->now = f->line->now * (f->line == &f->own_line ? 1 : f->unit);
    const uint32_t id = make_flow(f, r);
    if (id == FAB_NONE)
        return orr_no_memory(err);
    fab_looks_arm(f);
    const bool has_memory = start_now(f, id);
    if (f->is_in_event)
        f->now = now; /* the clock may be unable to represent the time of the running event */
    return has_memory ? ORR_OK : orr_no_memory(err);
}

/* ---- from a list ---- */

static uint64_t start_of(const fab *f, const orr__flow_line *l)
{
    return (uint64_t)rint(l->start_s * 1e9 * (double)f->unit);
}

static int by_start(const void *a, const void *b, void *list)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const orr__flow_line *lines = list;
    if (lines[x].start_s != lines[y].start_s)
        return lines[x].start_s < lines[y].start_s ? -1 : 1;
    return x < y ? -1 : 1;
}

orr_code fab_send_list(fab *f, const orr__flow_list *l, orr_error *err)
{
    if (l->count == 0)
        return ORR_OK;
    for (size_t i = 0; i < l->count; i++) {
        const orr__flow_line *w = &l->lines[i];
        if (is_too_long(f, w->bytes)) {
            const fab_send_request r = {.src = w->src, .dst = w->dst, .size = w->bytes};
            const orr_where at = orr_where_line(l->path ? l->path : "", w->line, 1);
            return fail_length(f, "host", &r, l->path ? &at : NULL, err);
        }
    }
    f->list.order = orr_alloc(l->count, sizeof *f->list.order);
    if (!f->list.order)
        return orr_no_memory(err);
    for (size_t i = 0; i < l->count; i++)
        if (l->lines[i].start_s >= 0)
            f->list.order[f->list.count++] = (uint32_t)i;
    if (f->list.count == 0)
        return ORR_OK;
    f->list.event = fab_wheel_new(&f->wheel, FAB_EV_LIST, 0);
    if (f->list.event == FAB_NO_EVENT)
        return orr_no_memory(err);
    f->list.flows = l;
    qsort_r(f->list.order, f->list.count, sizeof *f->list.order, by_start, l->lines);
    f->list.base = fab_global_order(f);
    /* A number for each line: flows of one instant start in the order of the file. */
    f->line->order += l->count;
    f->under_way = f->list.count; /* so that the run continues until all are done */
    /* before any window: none must extend beyond a sample */
    fab_looks_arm_silent(f, fab_next_start(f));
    return ORR_OK;
}

uint64_t fab_next_start(const fab *f)
{
    if (f->list.at == f->list.count)
        return UINT64_MAX;
    return start_of(f, &f->list.flows->lines[f->list.order[f->list.at]]);
}

void fab_await_list(fab *f)
{
    if (f->list.at < f->list.count)
        fab_wheel_at(&f->wheel, f->list.event, fab_next_start(f),
                     f->list.base + f->list.order[f->list.at]);
}

static fab_send_request next_request(const fab *f)
{
    const uint32_t number = f->list.order[f->list.at];
    const orr__flow_line *l = &f->list.flows->lines[number];
    return (fab_send_request){.src = l->src,
                              .dst = l->dst,
                              .size = l->bytes,
                              .token = number,
                              .port = l->port,
                              .class = l->class};
}

void fab_send_next(fab *f)
{
    const fab_send_request r = next_request(f);
    f->list.at++;
    f->under_way--; /* it is counted again when it is made */
    const uint32_t id = make_flow(f, &r);
    if (id == FAB_NONE) {
        fab_no_memory(f);
        return;
    }
    fab_looks_arm(f);
    if (f->rules.starts_in_two_events)
        (void)fab_after(f, 0, FAB_EV_HOP, id);
    else
        fab_host_ready(fab_acting(f, r.src), id);
    /* With lanes the others are handed out before their windows (fab_start_before). */
    if (!f->lanes || fab_next_start(f) == f->now)
        fab_await_list(f);
}

void fab_start_before(fab *f, uint64_t end)
{
    for (uint64_t at; !f->end.is_stopped && (at = fab_next_start(f)) < end;) {
        const uint64_t order = f->list.base + f->list.order[f->list.at];
        const fab_send_request r = next_request(f);
        f->list.at++;
        f->under_way--;
        const uint32_t id = make_flow(f, &r);
        if (id == FAB_NONE || !start_at(f, id, at, order))
            fab_no_memory(f);
    }
}

/* ---- active flows ---- */

int fab_by_number(const void *a, const void *b, void *flows)
{
    const fab_flow *all = flows;
    const uint64_t x = all[*(const uint32_t *)a].number, y = all[*(const uint32_t *)b].number;
    return x < y ? -1 : x > y;
}

bool fab_flows_under_way(const fab *f, uint32_t **out, size_t *count)
{
    *count = 0;
    *out = orr_alloc(f->flow_count + 1, sizeof **out);
    for (uint32_t i = 0; *out && i < f->flow_count; i++)
        if (f->flows[i].is_used && !f->flows[i].is_complete)
            (*out)[(*count)++] = i;
    if (*out && !f->rules.reuses_last_flow)
        qsort_r(*out, *count, sizeof **out, fab_by_number, f->flows);
    return *out != NULL;
}

void fab_flow_let_go(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    if (!w->is_used || !w->is_complete || w->frames || w->is_listed)
        return;
    if (f->is_in_window) {
        fab_lanes_let_go(f, flow);
        return;
    }
    w->is_used = false;
    fab_selective_forget(w);
    if (f->rules.reuses_last_flow) {
        w->place = f->free_flow;
        f->free_flow = flow;
    } else {
        fab_places_add(&f->main->free_flows, flow);
    }
}

uint64_t fab_flow_ideal(const fab *f, const fab_flow *w)
{
    fab_path path;
    if (!fab_find_path(f, w->src, w->dst, &path))
        return 0;
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    /* 48 bytes of headers each, which no packet has (packet-network.md 6.2): the ideal is a fixed
     * formula that makes runs comparable, whatever their congestion control adds. */
    uint64_t bytes = w->size + packets * 48;
    if (f->rules.narrows_ideal)
        bytes &= UINT32_MAX;
    return fab_path_rtt(&path) +
           (uint64_t)((unsigned __int128)bytes * 8 * 1000000000u * f->unit / path.bandwidth);
}

static void count_time(fab_figures *g, uint64_t fct)
{
    g->fct_min = g->flows_done == 1 || fct < g->fct_min ? fct : g->fct_min;
    g->fct_max = fct > g->fct_max ? fct : g->fct_max;
    g->fct_sum += fct;
}

void fab_flow_report_done(fab *main, const fab_flow_end *end)
{
    const fab_listener *w = &main->listener;
    main->under_way--;
    main->figures.flows_done++;
    main->figures.last_done = main->now;
    count_time(&main->figures, end->took);
    if (!fab_flow_times_add(&main->times, end->size, end->took, end->ideal))
        fab_fail(main, ORR_ENOMEM, "out of memory");
    if (w->sent)
        w->sent(w->context, end->token);
    /* The sender is notified first, then the receiver (packet-network.md 6.1). */
    if (main->rules.tells_receiver_at_ack && w->arrived)
        w->arrived(w->context, end->token);
}
