/* SPDX-License-Identifier: Apache-2.0 */
/* fab_flows.c - flows come, from a list or from whoever asks for one, and go.
 *
 *     list:   by start time; one event stands for the first that has not started.  With lanes there is none: those that
 *             start in a window are given to the lanes of their hosts before it (orr__fabric_start_before)
 *     asked:  starts in the instant in which it was asked for, behind all else that happens then
 *
 * rules.starts_in_two_events: a flow starts two events later, which are the reference's.  Otherwise
 * what happens does not depend on the slot of a flow, only on its number: the order in which flows
 * came (orr__flows_under_way). */
#include "models/network/packet/watch/history.h"

#include <math.h>
#include <stdlib.h>

static uint32_t new_flow(orr__fabric *f)
{
    uint32_t id = f->free_flow;
    if (id != ORR__NOBODY) {
        f->free_flow = f->flows[id].place;
        return id;
    }
    id = f->rules.reuses_last_flow ? ORR__NO_PLACE
                                   : orr__places_first(&f->free_flows, 0, (uint32_t)f->flow_count);
    if (id != ORR__NO_PLACE) {
        orr__places_remove(&f->free_flows, id);
        return id;
    }
    if (f->flow_count == f->flow_room || !orr__places_need(&f->free_flows, f->flow_count + 1))
        return ORR__NOBODY;
    return (uint32_t)f->flow_count++;
}

/* ORR__NOBODY: out of memory. */
static uint32_t make_flow(orr__fabric *f, const orr__send_request *r)
{
    const uint64_t pair = (uint64_t)r->src << 32 | r->dst;
    const uint32_t before = orr_map_find(f->pair_ports, pair, 0);
    const uint32_t id = new_flow(f);
    if (id == ORR__NOBODY || !orr_map_put(f->pair_ports, pair, before + 1, NULL) ||
        (f->monitor && !orr__monitor_flow_comes(f, id)))
        return ORR__NOBODY;
    f->flows[id] = (orr__flow){.size = r->size,
                               .whole = r->size,
                               .src = r->src,
                               .dst = r->dst,
                               .src_port = (uint16_t)(ORR__FIRST_PORT + before),
                               .dst_port = r->port ? r->port : ORR__FLOW_PORT,
                               .class = r->class ? r->class : ORR__FLOW_CLASS,
                               .is_used = true,
                               .timeout = ORR__NO_EVENT,
                               .token = r->token,
                               .number = f->figures.flows++};
    f->under_way++;
    return id;
}

static void begin_to_look(orr__fabric *f)
{
    orr__fabric_start_sampling(f);
    if (f->monitor)
        orr__monitor_arm(f);
    if (f->history)
        orr__history_arm(f, f->now);
}

/* Such a flow ends the run, or waits for a repair; what goes before it is the same with any
 * lanes. */
static bool may_not_start(const orr__fabric *f, const orr__flow *w)
{
    orr__path path;
    return (f->config.back_to_zero && f->config.has_window) ||
           !orr__fabric_path(f, w->src, w->dst, &path);
}

/* Whoever runs the sender's host lets it start. */
static bool start_at(orr__fabric *f, uint32_t flow, uint64_t at, uint64_t order)
{
    const orr__flow *w = &f->flows[flow];
    orr__wheel *wheel = f->lanes ? orr__lanes_wheel(f, w->src) : &f->wheel;
    const uint32_t event = orr__wheel_new(wheel, ORR__EV_START, flow);
    if (event == ORR__NO_EVENT)
        return false;
    if (f->lanes) { /* in a window nobody makes anything that others use */
        orr__fabric_need_ways(f, w->src);
        orr__fabric_need_ways(f, w->dst);
        if (may_not_start(f, w))
            orr__lanes_expect_of(f, w->src, at);
    }
    orr__wheel_at(wheel, event, at, order);
    return true;
}

static bool start_now(orr__fabric *f, uint32_t flow)
{
    if (f->rules.starts_in_two_events)
        return orr__fabric_after(f, 0, ORR__EV_HOP, flow) != ORR__NO_EVENT;
    return start_at(f, flow, f->now, orr__fabric_order(f));
}

orr_code orr__fabric_send(orr__fabric *f, const orr__send_request *r, orr_error *err)
{
    const uint64_t now = f->now;
    f->now = f->line->now * (f->line == &f->own_line ? 1 : f->unit);
    const uint32_t id = make_flow(f, r);
    if (id == ORR__NOBODY)
        return orr_no_memory(err);
    begin_to_look(f);
    const bool has_memory = start_now(f, id);
    if (f->is_in_event)
        f->now = now; /* the clock may have no name for the time of the event that runs */
    return has_memory ? ORR_OK : orr_no_memory(err);
}

/* ---- from a list ---- */

static uint64_t start_of(const orr__fabric *f, const orr__flow_line *l)
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

orr_code orr__fabric_send_list(orr__fabric *f, const orr__flow_list *l, orr_error *err)
{
    if (l->count == 0)
        return ORR_OK;
    f->list_order = orr_alloc(l->count, sizeof *f->list_order);
    if (!f->list_order)
        return orr_no_memory(err);
    for (size_t i = 0; i < l->count; i++)
        if (l->lines[i].start_s >= 0)
            f->list_order[f->list_count++] = (uint32_t)i;
    if (f->list_count == 0)
        return ORR_OK;
    f->list_event = orr__wheel_new(&f->wheel, ORR__EV_LIST, 0);
    if (f->list_event == ORR__NO_EVENT)
        return orr_no_memory(err);
    f->list = l;
    qsort_r(f->list_order, f->list_count, sizeof *f->list_order, by_start, l->lines);
    f->list_base = orr__fabric_order(f);
    f->line->order += l->count;
    f->under_way = f->list_count; /* so that the run goes on until all are done */
    if (f->history)               /* before any window: none must go beyond a look */
        orr__history_arm(f, orr__fabric_next_start(f));
    return ORR_OK;
}

uint64_t orr__fabric_next_start(const orr__fabric *f)
{
    if (f->list_at == f->list_count)
        return UINT64_MAX;
    return start_of(f, &f->list->lines[f->list_order[f->list_at]]);
}

void orr__fabric_await_list(orr__fabric *f)
{
    if (f->list_at < f->list_count)
        orr__wheel_at(&f->wheel, f->list_event, orr__fabric_next_start(f),
                      f->list_base + f->list_order[f->list_at]);
}

static orr__send_request next_request(const orr__fabric *f)
{
    const uint32_t number = f->list_order[f->list_at];
    const orr__flow_line *l = &f->list->lines[number];
    return (orr__send_request){.src = l->src,
                               .dst = l->dst,
                               .size = l->bytes,
                               .token = number,
                               .port = l->port,
                               .class = l->class};
}

static void lack_memory(orr__fabric *f)
{
    orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
}

void orr__fabric_send_next(orr__fabric *f)
{
    const orr__send_request r = next_request(f);
    f->list_at++;
    f->under_way--; /* it is counted again when it is made */
    const uint32_t id = make_flow(f, &r);
    if (id == ORR__NOBODY) {
        lack_memory(f);
        return;
    }
    begin_to_look(f);
    if (f->rules.starts_in_two_events)
        (void)orr__fabric_after(f, 0, ORR__EV_HOP, id);
    else
        orr__host_ready(orr__acting(f, r.src), id);
    if (!f->lanes || orr__fabric_next_start(f) == f->now)
        orr__fabric_await_list(f);
}

void orr__fabric_start_before(orr__fabric *f, uint64_t end)
{
    for (uint64_t at; !f->is_stopped && (at = orr__fabric_next_start(f)) < end;) {
        const uint64_t order = f->list_base + f->list_order[f->list_at];
        const orr__send_request r = next_request(f);
        f->list_at++;
        f->under_way--;
        const uint32_t id = make_flow(f, &r);
        if (id == ORR__NOBODY || !start_at(f, id, at, order))
            lack_memory(f);
    }
}

/* ---- those that are there ---- */

static int by_number(const void *a, const void *b, void *flows)
{
    const orr__flow *all = flows;
    const uint64_t x = all[*(const uint32_t *)a].number, y = all[*(const uint32_t *)b].number;
    return x < y ? -1 : x > y;
}

bool orr__flows_under_way(const orr__fabric *f, uint32_t **out, size_t *count)
{
    *count = 0;
    *out = orr_alloc(f->flow_count + 1, sizeof **out);
    for (uint32_t i = 0; *out && i < f->flow_count; i++)
        if (f->flows[i].is_used && !f->flows[i].is_complete)
            (*out)[(*count)++] = i;
    if (*out && !f->rules.reuses_last_flow)
        qsort_r(*out, *count, sizeof **out, by_number, f->flows);
    return *out != NULL;
}

void orr__flow_let_go(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    if (!w->is_used || !w->is_complete || w->frames || w->is_listed)
        return;
    if (f->is_in_window) {
        orr__lanes_let_go(f, flow);
        return;
    }
    w->is_used = false;
    orr__selective_forget(w);
    if (f->rules.reuses_last_flow) {
        w->place = f->free_flow;
        f->free_flow = flow;
    } else {
        orr__places_add(&f->main->free_flows, flow);
    }
}

static void count_time(orr__fabric_figures *g, uint64_t fct)
{
    g->fct_min = g->flows_done == 1 || fct < g->fct_min ? fct : g->fct_min;
    g->fct_max = fct > g->fct_max ? fct : g->fct_max;
    g->fct_sum += fct;
}

void orr__flow_tell_done(orr__fabric *main, const orr__flow_end *end)
{
    const orr__fabric_watcher *w = &main->watcher;
    main->under_way--;
    main->figures.flows_done++;
    main->figures.last_done = main->now;
    count_time(&main->figures, end->took);
    if (!orr__flow_times_add(&main->times, end->size, end->took, end->ideal))
        orr__fabric_fail(main, ORR_ENOMEM, "out of memory");
    if (w->sent)
        w->sent(w->context, end->token);
    if (main->rules.tells_receiver_at_ack && w->arrived)
        w->arrived(w->context, end->token);
}
