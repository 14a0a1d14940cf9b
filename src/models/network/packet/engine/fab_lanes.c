/* SPDX-License-Identifier: Apache-2.0 */
/* fab_lanes.c - parts of a network that run at the same time, in windows.
 *
 *     lane 0:  ####.##|   |######.|  #  |###...     a window: events before its end, each lane its own
 *     lane 1:  ##.####|   |#..####|     |######     between windows, one thread: frames move to other lanes, news are
 *     all:            |ooo|       |o o o|           told; then, if it concerns all, one instant event by event
 *
 * A lane is a set of nodes, mostly hosts with their switch, and a copy of the fabric with a
 * calendar, free frames and figures of its own; ports, frames and flows are shared, and each field
 * is written by one lane.  What leaves a lane arrives after the delay of a link, so lanes need not
 * look at each other for the shortest such delay.
 *
 * That a flow is done is for its lane, which takes note of it; lines of fct.txt, figures and those
 * who listen (triggers, the simulator) get their news between windows, in the order of the whole
 * network.  What listeners set off happens in the same instant at the earliest, behind all else of
 * it, so a window must not go beyond an instant with news for them. It is known a delay before: a
 * frame with which a flow may be done is noted when it gets onto the wire (fab_lanes_watch). Flows
 * start in the lanes of their hosts; those of a list are given to them before a window.
 *
 * What concerns all (failures, repairs, looks at fixed times, the end: of a time, by many timeouts,
 * by the last flow) is done event by event in the order of the whole network while no lane runs.
 *
 * Why results do not depend on lanes: what a node does in one instant is ordered by fab_tie,
 * whoever runs it, and no node acts on another but over a wire.  Where several lanes have something
 * for all, it is put in order between windows (news, lines of pfc.txt) or nothing depends on its
 * order (flows that are let go: their places mean nothing).
 *
 * Cost: a window costs two meetings of the threads, some microseconds; where windows have few
 * events, one thread runs the lanes one after the other. */
#include "fab_lanes.h"
#include "models/network/packet/watch/history.h"

#include <stdlib.h>

/* A window of so many events is worth a meeting; builds that look for races say 0. */
#ifndef FAB_EVENTS_THAT_PAY
#define FAB_EVENTS_THAT_PAY 256
#endif

/* ---- a window ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t first_of(const orr_heap *times)
{
    return times->count ? times->entries[0].key : UINT64_MAX;
}

static void look_out(fab_lanes *s, const fab_lane *l)
{
    fab_outlook *o = &s->outlooks[l->f.lane];
    if (!fab_wheel_peek(&l->f.wheel, &o->next))
        o->next = UINT64_MAX;
    o->stop = first_of(&l->stops);
    o->call = first_of(&l->calls);
    o->ends = l->ends.count;
    o->first_time = least(least(o->stop, o->call), first_of(&l->ends));
    o->is_known = true;
}

static void forget_before(orr_heap *times, uint64_t now)
{
    orr_heap_entry e;
    while (times->count && times->entries[0].key < now)
        (void)orr_heap_pop(times, &e);
}

static void forget_times(fab_lane *l, uint64_t now)
{
    forget_before(&l->stops, now);
    forget_before(&l->calls, now);
    forget_before(&l->ends, now);
}

static void run_lane(fab_lane *l, uint64_t end)
{
    uint32_t id;
    l->done = 0;
    while (!l->f.is_stopped && fab_wheel_next(&l->f.wheel, end - 1, UINT64_MAX, &id)) {
        fab_run_event(&l->f, id);
        l->done++;
    }
    forget_times(l, end);
    look_out(l->f.lanes, l);
}

static void run_some(void *context, unsigned who, unsigned members)
{
    fab_lanes *s = context;
    for (unsigned i = who; i < s->awake_count; i += members)
        run_lane(s->awake[i], s->end);
}

static uint64_t end_window(fab_lanes *s)
{
    uint64_t done = 0, now = s->main->now;
    fab_lanes_write_pauses(s);
    fab_lanes_tell_series(s);
    for (unsigned i = 0; i < s->awake_count; i++)
        s->awake[i]->f.is_in_window = false;
    fab_lanes_tell(s);
    for (unsigned i = 0; i < s->awake_count; i++) {
        const fab_lane *l = s->awake[i];
        done += l->done;
        if (l->done && l->f.now > now)
            now = l->f.now;
        if (l->f.last_arrival > s->main->last_arrival)
            s->main->last_arrival = l->f.last_arrival;
    }
    fab_lanes_set_time(s->main, now);
    fab_lanes_settle(s);
    s->recent = (7 * s->recent + done) / 8;
    return done;
}

static uint64_t run_window(fab_lanes *s, uint64_t end)
{
    s->end = end;
    s->awake_count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        if (s->outlooks[i].next < end) {
            s->awake[s->awake_count++] = s->of[i];
            s->of[i]->f.is_in_window = true;
        } else if (s->outlooks[i].first_time < end) {
            forget_times(s->of[i], end);
            look_out(s, s->of[i]);
        }
    }
    if (s->recent >= FAB_EVENTS_THAT_PAY && s->crew)
        orr_crew_run(s->crew);
    else
        run_some(s, 0, 1);
    return end_window(s);
}

/* ---- one instant, event by event ---- */

fab *fab_lanes_acting(fab *f, uint32_t node)
{
    const uint32_t which = f->lanes->of_node[node];
    fab *to = &f->lanes->of[which]->f;
    f->lanes->outlooks[which].is_known = false;
    to->now = f->now;
    to->order = f->order;
    return to;
}

fab_wheel *fab_lanes_wheel(const fab *f, uint32_t node)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    return &f->lanes->of[which]->f.wheel;
}

void fab_lanes_follow_routes(fab *f)
{
    const fab_lanes *s = f->lanes;
    for (unsigned i = 0; s && i < s->count; i++)
        s->of[i]->f.routes = f->routes;
    for (uint32_t i = 0; s && i < f->flow_count && f->routes; i++)
        if (f->flows[i].is_used) {
            fab_need_routes(f, f->flows[i].src);
            fab_need_routes(f, f->flows[i].dst);
        }
}

/* Who has the first event of the instant; NULL: there is none left. */
static fab *first_at(fab_lanes *s, uint64_t at)
{
    fab *first = NULL;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i <= s->count; i++) {
        fab *f = i < s->count ? &s->of[i]->f : s->main;
        const fab_due *e = fab_wheel_look(&f->wheel, at);
        if (!e || fab_wheel_order_of(e) >= least)
            continue;
        least = fab_wheel_order_of(e);
        first = f;
    }
    return first;
}

static void run_for_all(fab_lanes *s, fab *f, uint32_t id)
{
    fab *main = s->main;
    const fab_event *e = fab_wheel_event(&f->wheel, id);
    if (e->kind == FAB_EV_HISTORY && fab_history_ends(main, id))
        return;
    fab_lanes_set_time(main, e->at);
    main->order = e->order;
    fab_run_event(f, id);
    if (f->last_arrival > main->last_arrival)
        main->last_arrival = f->last_arrival;
    if (main->list && main->under_way == 0)
        main->is_stopped = true;
    if (f == main || f->is_stopped || f->wheel.has_failed) /* what all do may end in any fab_lane */
        fab_lanes_take_over_ends(s);
}

static void wake_all(fab_lanes *s)
{
    for (unsigned i = 0; i < s->count; i++)
        s->awake[i] = s->of[i];
    s->awake_count = s->count;
}

static uint64_t run_instant(fab_lanes *s, uint64_t at)
{
    uint64_t done = 0;
    uint32_t id;
    fab *f;
    wake_all(s);
    if (fab_next_start(s->main) == at)
        fab_await_list(s->main);
    while (!s->main->is_stopped && (f = first_at(s, at)) != NULL) {
        if (!fab_wheel_next(&f->wheel, at, UINT64_MAX, &id))
            break;
        done += fab_wheel_event(&f->wheel, id)->kind != FAB_EV_HISTORY;
        run_for_all(s, f, id);
    }
    fab_lanes_settle(s);
    for (unsigned i = 0; i < s->count; i++) {
        forget_times(s->of[i], at + 1);
        look_out(s, s->of[i]);
    }
    return done;
}

/* ---- how far ---- */

static bool earliest(fab_lanes *s, uint64_t *at, fab **who)
{
    uint64_t one;
    *who = NULL;
    *at = UINT64_MAX;
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        if (s->outlooks[i].next >= *at)
            continue;
        *at = s->outlooks[i].next;
        *who = &s->of[i]->f;
    }
    if (fab_wheel_peek(&s->main->wheel, &one) && one < *at) {
        *at = one;
        *who = s->main;
    }
    return *who != NULL;
}

bool fab_lanes_next_at(const fab *f, uint64_t *at)
{
    const uint64_t start = fab_next_start(f);
    fab *who;
    if (!earliest(f->lanes, at, &who) || start < *at)
        *at = start;
    return *at < UINT64_MAX;
}

/* The time of the first event, if it comes not after the bound.  A slot that is not open says only
 * when it begins, so it is opened; nothing can come before it any more. */
static bool find_first(fab_lanes *s, uint64_t bound, uint64_t *at)
{
    const uint64_t start = fab_next_start(s->main);
    fab *who;
    while (earliest(s, at, &who) && *at <= bound && *at < start) {
        if (fab_wheel_has_open(&who->wheel))
            return true;
        if (who != s->main)
            s->outlooks[who->lane].is_known = false;
        if (!fab_wheel_open(&who->wheel, *at))
            break;
    }
    *at = start;
    return start < UINT64_MAX && start <= bound;
}

static int by_time(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The run ends with the last flow of a list, and no event later: so fewer may be done in a window
 * than there are. */
static uint64_t before_last_flow(fab_lanes *s, uint64_t end)
{
    const uint64_t under_way = s->main->under_way;
    size_t known = 0, count = 0;
    for (unsigned i = 0; i < s->count; i++)
        known += s->outlooks[i].ends;
    if (known < under_way || under_way == 0 || !s->main->list)
        return end;
    if (!orr_grow(&s->times, &s->time_room, known)) {
        fab_lanes_lack_memory(s->main);
        return end;
    }
    for (unsigned i = 0; i < s->count; i++)
        for (size_t k = 0; k < s->of[i]->ends.count; k++)
            if (s->of[i]->ends.entries[k].key < end)
                s->times[count++] = s->of[i]->ends.entries[k].key;
    if (count < under_way)
        return end;
    qsort(s->times, count, sizeof *s->times, by_time);
    return s->times[under_way - 1];
}

/* *call: when somebody may hear of something. */
static uint64_t end_of_window(fab_lanes *s, uint64_t first, uint64_t bound, uint64_t *call)
{
    uint64_t at, end = first + s->longest;
    *call = UINT64_MAX;
    if (fab_may_start_sampling(s->main, first))
        return first; /* any lane may start it; all is at rest, so there is little to do */
    if (bound < UINT64_MAX)
        end = least(end, bound + 1);
    if (fab_wheel_peek(&s->main->wheel, &at))
        end = least(end, at);
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        end = least(end, s->outlooks[i].stop);
        *call = least(*call, s->outlooks[i].call);
    }
    if (*call < UINT64_MAX)
        end = least(end, *call + 1);
    if (s->main->list_at == 0) /* with the first flow of a list looks at the network begin */
        end = least(end, fab_next_start(s->main));
    /* whether the network stands still is a question for all (fab_watch_for_stall) */
    end = least(end, s->main->last_arrival + s->main->longest_silence + 1);
    return before_last_flow(s, end);
}

/* Flows of a list that start in the window are given to their lanes.  Where it ends then: a flow
 * may have no way. */
static uint64_t start_flows(fab_lanes *s, uint64_t end, uint64_t call)
{
    const size_t before = s->main->list_at;
    /* what is set off by news comes before those of a list that start in the same instant */
    fab_start_before(s->main, least(end, call));
    for (unsigned i = 0; i < s->count && s->main->list_at != before; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        end = least(end, s->outlooks[i].stop);
    }
    return end;
}

/* ---- figures ---- */

static void add_figures(fab_figures *to, fab_figures *g)
{
    to->data_packets += g->data_packets;
    to->data_bytes += g->data_bytes;
    to->acks += g->acks;
    to->nacks += g->nacks;
    to->retransmitted_bytes += g->retransmitted_bytes;
    to->pauses += g->pauses;
    to->resumes += g->resumes;
    to->marked += g->marked;
    to->dropped += g->dropped;
    to->lost += g->lost;
    to->trimmed += g->trimmed;
    to->timeouts += g->timeouts;
    *g = (fab_figures){0};
}

uint64_t fab_lanes_run(fab *f, uint64_t most)
{
    fab_lanes *s = f->lanes;
    uint64_t done = 0, first = 0, call;
    f->is_in_event = true;
    while (done < most && !f->is_stopped && !f->wheel.has_failed) {
        const uint64_t bound = fab_bound(f);
        if (!find_first(s, bound, &first))
            break;
        uint64_t end = end_of_window(s, first, bound, &call);
        if (end > first)
            end = start_flows(s, end, call);
        done += end > first ? run_window(s, end) : run_instant(s, first);
    }
    f->is_in_event = false;
    wake_all(s);
    fab_lanes_take_over_ends(s);
    if (f->wheel.has_failed)
        fab_lanes_lack_memory(f);
    for (unsigned i = 0; i < s->count; i++)
        add_figures(&f->figures, &s->of[i]->f.figures);
    f->figures.events += done;
    return done;
}

/* ---- life ---- */

static fab_lane *make_lane(fab *f, unsigned which)
{
    fab_lane *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->f = *f;
    l->f.lane = which;
    l->f.figures = (fab_figures){0};
    l->f.frame_count = (size_t)which * f->lanes->frames_each;
    l->f.frame_room = l->f.frame_count + f->lanes->frames_each;
    l->foreign_free = FAB_NONE;
    if (fab_wheel_init(&l->f.wheel, f->wheel.shift)) {
        fab_wheel_share(&l->f.wheel, f->wheel.fixed, f->wheel.fixed_count);
        return l;
    }
    fab_wheel_fini(&l->f.wheel);
    orr_free(l);
    return NULL;
}

static bool make_lanes(fab *f, fab_lanes *s)
{
    s->of = orr_alloc(s->count, sizeof *s->of);
    s->awake = orr_alloc(s->count, sizeof *s->awake);
    s->outlooks = orr_alloc(s->count, sizeof *s->outlooks);
    if (!s->of || !s->awake || !s->outlooks)
        return false;
    s->frames_each = (uint32_t)(f->frame_room / s->count);
    orr_reserve_large(&f->frame_space);
    orr_reserve_large(&f->flow_space);
    for (uint32_t i = 0; i < f->port_count; i++) {
        fab_port *p = &f->ports[i];
        const fab_port *q = &f->ports[p->peer];
        p->crosses_lanes = s->of_node[p->node] != s->of_node[q->node];
        p->leads_to_host = !q->is_switch;
    }
    f->lanes = s;
    for (unsigned i = 0; i < s->count; i++)
        if (!(s->of[i] = make_lane(f, i)))
            return false;
    const unsigned threads = fab_lanes_threads(f);
    if (threads == 1)
        return true;
    s->crew = orr_crew_create(threads < s->count ? threads : s->count, run_some, s);
    return s->crew != NULL;
}

orr_code fab_lanes_create(fab *f, orr_error *err)
{
    fab_lanes *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->main = f;
    s->of_node = orr_alloc(f->node_count, sizeof *s->of_node);
    s->count = s->of_node ? fab_lanes_plan(f, s->of_node, &s->longest) : 0;
    const bool pays = s->count > 1 && s->longest > 0;
    const bool has_memory = s->count > 0 && (!pays || make_lanes(f, s));
    if (pays && has_memory)
        return ORR_OK;
    f->lanes = s;
    fab_lanes_destroy(f);
    return has_memory ? ORR_OK : orr_no_memory(err);
}

static void destroy_lane(fab_lane *l)
{
    if (!l)
        return;
    fab_wheel_fini(&l->f.wheel);
    orr_heap_fini(&l->stops);
    orr_heap_fini(&l->calls);
    orr_heap_fini(&l->ends);
    orr_free(l->news);
    orr_buf_fini(&l->lines);
    orr_free(l->out);
    orr_free(l->drops);
    orr_free(l->gone);
    orr_free(l->pauses);
    orr_free(l->notes);
    orr_free(l);
}

void fab_lanes_destroy(fab *f)
{
    fab_lanes *s = f->lanes;
    if (!s)
        return;
    orr_crew_destroy(s->crew);
    for (unsigned i = 0; s->of && i < s->count; i++)
        destroy_lane(s->of[i]);
    orr_free(s->of);
    orr_free(s->awake);
    orr_free(s->outlooks);
    orr_free(s->of_node);
    orr_free(s->pauses);
    orr_free(s->notes);
    orr_free(s->times);
    orr_free(s);
    f->lanes = NULL;
}
