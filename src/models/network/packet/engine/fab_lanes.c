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
 * frame with which a flow may be done is noted when it gets onto the wire (orr__lanes_watch). Flows
 * start in the lanes of their hosts; those of a list are given to them before a window.
 *
 * What concerns all (failures, repairs, looks at fixed times, the end: of a time, by many timeouts,
 * by the last flow) is done event by event in the order of the whole network while no lane runs.
 *
 * Why results do not depend on lanes: what a node does in one instant is ordered by orr__rank,
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
#ifndef ORR__EVENTS_THAT_PAY
#define ORR__EVENTS_THAT_PAY 256
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

static void look_out(orr__lanes *s, const orr__lane *l)
{
    orr__outlook *o = &s->outlooks[l->f.lane];
    if (!orr__wheel_peek(&l->f.wheel, &o->next))
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

static void forget_times(orr__lane *l, uint64_t now)
{
    forget_before(&l->stops, now);
    forget_before(&l->calls, now);
    forget_before(&l->ends, now);
}

static void run_lane(orr__lane *l, uint64_t end)
{
    uint32_t id;
    l->done = 0;
    while (!l->f.is_stopped && orr__wheel_next(&l->f.wheel, end - 1, UINT64_MAX, &id)) {
        orr__fabric_run_event(&l->f, id);
        l->done++;
    }
    forget_times(l, end);
    look_out(l->f.lanes, l);
}

static void run_some(void *context, unsigned who, unsigned members)
{
    orr__lanes *s = context;
    for (unsigned i = who; i < s->awake_count; i += members)
        run_lane(s->awake[i], s->end);
}

static uint64_t end_window(orr__lanes *s)
{
    uint64_t done = 0, now = s->main->now;
    orr__lanes_write_pauses(s);
    orr__lanes_tell_series(s);
    for (unsigned i = 0; i < s->awake_count; i++)
        s->awake[i]->f.is_in_window = false;
    orr__lanes_tell(s);
    for (unsigned i = 0; i < s->awake_count; i++) {
        const orr__lane *l = s->awake[i];
        done += l->done;
        if (l->done && l->f.now > now)
            now = l->f.now;
        if (l->f.last_arrival > s->main->last_arrival)
            s->main->last_arrival = l->f.last_arrival;
    }
    orr__lanes_set_time(s->main, now);
    orr__lanes_settle(s);
    s->recent = (7 * s->recent + done) / 8;
    return done;
}

static uint64_t run_window(orr__lanes *s, uint64_t end)
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
    if (s->recent >= ORR__EVENTS_THAT_PAY && s->crew)
        orr_crew_run(s->crew);
    else
        run_some(s, 0, 1);
    return end_window(s);
}

/* ---- one instant, event by event ---- */

orr__fabric *orr__lanes_acting(orr__fabric *f, uint32_t node)
{
    const uint32_t which = f->lanes->of_node[node];
    orr__fabric *to = &f->lanes->of[which]->f;
    f->lanes->outlooks[which].is_known = false;
    to->now = f->now;
    to->order = f->order;
    return to;
}

orr__wheel *orr__lanes_wheel(const orr__fabric *f, uint32_t node)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    return &f->lanes->of[which]->f.wheel;
}

void orr__lanes_follow_routes(orr__fabric *f)
{
    const orr__lanes *s = f->lanes;
    for (unsigned i = 0; s && i < s->count; i++)
        s->of[i]->f.routes = f->routes;
    for (uint32_t i = 0; s && i < f->flow_count && f->routes; i++)
        if (f->flows[i].is_used) {
            orr__fabric_need_ways(f, f->flows[i].src);
            orr__fabric_need_ways(f, f->flows[i].dst);
        }
}

/* Who has the first event of the instant; NULL: there is none left. */
static orr__fabric *first_at(orr__lanes *s, uint64_t at)
{
    orr__fabric *first = NULL;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i <= s->count; i++) {
        orr__fabric *f = i < s->count ? &s->of[i]->f : s->main;
        const orr__due *e = orr__wheel_look(&f->wheel, at);
        if (!e || orr__wheel_order_of(e) >= least)
            continue;
        least = orr__wheel_order_of(e);
        first = f;
    }
    return first;
}

static void run_for_all(orr__lanes *s, orr__fabric *f, uint32_t id)
{
    orr__fabric *main = s->main;
    const orr__event *e = orr__wheel_event(&f->wheel, id);
    if (e->kind == ORR__EV_HISTORY && orr__history_ends(main, id))
        return;
    orr__lanes_set_time(main, e->at);
    main->order = e->order;
    orr__fabric_run_event(f, id);
    if (f->last_arrival > main->last_arrival)
        main->last_arrival = f->last_arrival;
    if (main->list && main->under_way == 0)
        main->is_stopped = true;
    if (f == main || f->is_stopped ||
        f->wheel.has_failed) /* what all do may end in any orr__lane */
        orr__lanes_take_over_ends(s);
}

static void wake_all(orr__lanes *s)
{
    for (unsigned i = 0; i < s->count; i++)
        s->awake[i] = s->of[i];
    s->awake_count = s->count;
}

static uint64_t run_instant(orr__lanes *s, uint64_t at)
{
    uint64_t done = 0;
    uint32_t id;
    orr__fabric *f;
    wake_all(s);
    if (orr__fabric_next_start(s->main) == at)
        orr__fabric_await_list(s->main);
    while (!s->main->is_stopped && (f = first_at(s, at)) != NULL) {
        if (!orr__wheel_next(&f->wheel, at, UINT64_MAX, &id))
            break;
        done += orr__wheel_event(&f->wheel, id)->kind != ORR__EV_HISTORY;
        run_for_all(s, f, id);
    }
    orr__lanes_settle(s);
    for (unsigned i = 0; i < s->count; i++) {
        forget_times(s->of[i], at + 1);
        look_out(s, s->of[i]);
    }
    return done;
}

/* ---- how far ---- */

static bool earliest(orr__lanes *s, uint64_t *at, orr__fabric **who)
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
    if (orr__wheel_peek(&s->main->wheel, &one) && one < *at) {
        *at = one;
        *who = s->main;
    }
    return *who != NULL;
}

bool orr__lanes_next_at(const orr__fabric *f, uint64_t *at)
{
    const uint64_t start = orr__fabric_next_start(f);
    orr__fabric *who;
    if (!earliest(f->lanes, at, &who) || start < *at)
        *at = start;
    return *at < UINT64_MAX;
}

/* The time of the first event, if it comes not after the bound.  A slot that is not open says only
 * when it begins, so it is opened; nothing can come before it any more. */
static bool find_first(orr__lanes *s, uint64_t bound, uint64_t *at)
{
    const uint64_t start = orr__fabric_next_start(s->main);
    orr__fabric *who;
    while (earliest(s, at, &who) && *at <= bound && *at < start) {
        if (orr__wheel_has_open(&who->wheel))
            return true;
        if (who != s->main)
            s->outlooks[who->lane].is_known = false;
        if (!orr__wheel_open(&who->wheel, *at))
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
static uint64_t before_last_flow(orr__lanes *s, uint64_t end)
{
    const uint64_t under_way = s->main->under_way;
    size_t known = 0, count = 0;
    for (unsigned i = 0; i < s->count; i++)
        known += s->outlooks[i].ends;
    if (known < under_way || under_way == 0 || !s->main->list)
        return end;
    if (!orr_grow(&s->times, &s->time_room, known)) {
        orr__lanes_lack_memory(s->main);
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
static uint64_t end_of_window(orr__lanes *s, uint64_t first, uint64_t bound, uint64_t *call)
{
    uint64_t at, end = first + s->longest;
    *call = UINT64_MAX;
    if (orr__fabric_may_start_sampling(s->main, first))
        return first; /* any lane may start it; all is at rest, so there is little to do */
    if (bound < UINT64_MAX)
        end = least(end, bound + 1);
    if (orr__wheel_peek(&s->main->wheel, &at))
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
        end = least(end, orr__fabric_next_start(s->main));
    /* whether the network stands still is a question for all (orr__fabric_watch_for_stall) */
    end = least(end, s->main->last_arrival + s->main->longest_silence + 1);
    return before_last_flow(s, end);
}

/* Flows of a list that start in the window are given to their lanes.  Where it ends then: a flow
 * may have no way. */
static uint64_t start_flows(orr__lanes *s, uint64_t end, uint64_t call)
{
    const size_t before = s->main->list_at;
    /* what is set off by news comes before those of a list that start in the same instant */
    orr__fabric_start_before(s->main, least(end, call));
    for (unsigned i = 0; i < s->count && s->main->list_at != before; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        end = least(end, s->outlooks[i].stop);
    }
    return end;
}

/* ---- figures ---- */

static void add_figures(orr__fabric_figures *to, orr__fabric_figures *g)
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
    *g = (orr__fabric_figures){0};
}

uint64_t orr__lanes_run(orr__fabric *f, uint64_t most)
{
    orr__lanes *s = f->lanes;
    uint64_t done = 0, first = 0, call;
    f->is_in_event = true;
    while (done < most && !f->is_stopped && !f->wheel.has_failed) {
        const uint64_t bound = orr__fabric_bound(f);
        if (!find_first(s, bound, &first))
            break;
        uint64_t end = end_of_window(s, first, bound, &call);
        if (end > first)
            end = start_flows(s, end, call);
        done += end > first ? run_window(s, end) : run_instant(s, first);
    }
    f->is_in_event = false;
    wake_all(s);
    orr__lanes_take_over_ends(s);
    if (f->wheel.has_failed)
        orr__lanes_lack_memory(f);
    for (unsigned i = 0; i < s->count; i++)
        add_figures(&f->figures, &s->of[i]->f.figures);
    f->figures.events += done;
    return done;
}

/* ---- life ---- */

static orr__lane *make_lane(orr__fabric *f, unsigned which)
{
    orr__lane *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->f = *f;
    l->f.lane = which;
    l->f.figures = (orr__fabric_figures){0};
    l->f.frame_count = (size_t)which * f->lanes->frames_each;
    l->f.frame_room = l->f.frame_count + f->lanes->frames_each;
    l->strange = ORR__NOBODY;
    if (orr__wheel_init(&l->f.wheel, f->wheel.shift)) {
        orr__wheel_share(&l->f.wheel, f->wheel.fixed, f->wheel.fixed_count);
        return l;
    }
    orr__wheel_fini(&l->f.wheel);
    orr_free(l);
    return NULL;
}

static bool make_lanes(orr__fabric *f, orr__lanes *s)
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
        orr__port *p = &f->ports[i];
        const orr__port *q = &f->ports[p->peer];
        p->is_between = s->of_node[p->node] != s->of_node[q->node];
        p->is_watched = !q->is_switch;
    }
    f->lanes = s;
    for (unsigned i = 0; i < s->count; i++)
        if (!(s->of[i] = make_lane(f, i)))
            return false;
    const unsigned threads = orr__lanes_threads(f);
    if (threads == 1)
        return true;
    s->crew = orr_crew_create(threads < s->count ? threads : s->count, run_some, s);
    return s->crew != NULL;
}

orr_code orr__lanes_create(orr__fabric *f, orr_error *err)
{
    orr__lanes *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->main = f;
    s->of_node = orr_alloc(f->node_count, sizeof *s->of_node);
    s->count = s->of_node ? orr__lanes_plan(f, s->of_node, &s->longest) : 0;
    const bool pays = s->count > 1 && s->longest > 0;
    const bool has_memory = s->count > 0 && (!pays || make_lanes(f, s));
    if (pays && has_memory)
        return ORR_OK;
    f->lanes = s;
    orr__lanes_destroy(f);
    return has_memory ? ORR_OK : orr_no_memory(err);
}

static void destroy_lane(orr__lane *l)
{
    if (!l)
        return;
    orr__wheel_fini(&l->f.wheel);
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

void orr__lanes_destroy(orr__fabric *f)
{
    orr__lanes *s = f->lanes;
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
