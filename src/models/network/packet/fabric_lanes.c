/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_lanes.c - parts of a network that run at the same time, in windows.
 *
 *     lane 0:  ####.##|   |######.|  #  |###...     a window: events before its end, each lane its own
 *     lane 1:  ##.####|   |#..####|     |######     between windows, one thread: frames move to other lanes, news are
 *     all:            |ooo|       |o o o|           told; then, if it concerns all, one instant event by event
 *
 * A lane is a set of nodes, mostly hosts with their switch, and a copy of the fabric with a calendar, free frames and figures
 * of its own; ports, frames and flows are shared, and each field is written by one lane.  What leaves a lane arrives
 * after the delay of a link, so lanes need not look at each other for the shortest such delay.
 *
 * That a flow is done is for its lane, which takes note of it; lines of fct.txt, figures and those who listen (triggers,
 * the simulator) get their news between windows, in the order of the whole network.  What listeners set off happens in
 * the same instant at the earliest, behind all else of it, so a window must not go beyond an instant with news for them.
 * It is known a delay before: a frame with which a flow may be done is noted when it gets onto the wire
 * (orr__lanes_watch).  Flows start in the lanes of their hosts; those of a list are given to them before a window.
 *
 * What concerns all (failures, repairs, the end: of a time, by many timeouts, by the last flow) is done event by event
 * in the order of the whole network while no lane runs.
 *
 * Why results do not depend on lanes: what a node does in one instant is ordered by orr__rank, whoever runs it, and no
 * node acts on another but over a wire.  Where several lanes have something for all, it is put in order between windows
 * (news, lines of pfc.txt) or nothing depends on its order (flows that are let go: their places mean nothing).
 *
 * Cost: a window costs two meetings of the threads, some microseconds; where windows have few events, one thread runs
 * the lanes one after the other. */
#include "../../../base/crew.h"
#include "../../../base/heap.h"
#include "link_history.h"

#include <stdlib.h>

/* A window of so many events is worth a meeting; builds that look for races say 0. */
#ifndef ORR__EVENTS_THAT_PAY
#define ORR__EVENTS_THAT_PAY 256
#endif

/* A frame on its way to another lane. */
typedef struct crossing {
    orr__flight flight;
    uint32_t port;
} crossing;

typedef struct pause_line {
    uint64_t at;
    uint32_t port;
    bool pauses;
} pause_line;

/* A flow is done, or all of it has arrived. */
typedef struct news {
    uint64_t at, order; /* of the event that brought it */
    orr__flow_end end;  /* of an arrival only the token */
    uint32_t length;    /* of its line in fct.txt */
    bool is_done;
} news;

typedef struct lane {
    orr__fabric f;  /* first, so that the one is found from the other */
    orr_heap stops; /* times at which something may concern all */
    orr_heap calls; /* times of news that may have listeners, as these have them */
    orr_heap ends;  /* times at which a flow of a list may be done */
    crossing *out;  /* since the window began, as all below */
    news *news;
    orr_buf lines;   /* of fct.txt */
    uint32_t *drops; /* flows of other lanes of which a frame was dropped here */
    uint32_t *gone;  /* flows that may be let go */
    pause_line *pauses;
    size_t out_count, out_room, drop_count, drop_room, gone_count, gone_room;
    size_t pause_count, pause_room, news_count, news_room;
    size_t told, told_bytes; /* of the news, and of their lines */
    uint32_t strange;        /* frames of other lanes that are free: a list */
    uint64_t done;           /* events */
} lane;

/* What every window asks of every lane, side by side. */
typedef struct outlook {
    uint64_t next;       /* no event of it comes before */
    uint64_t stop, call; /* the first of these times */
    uint64_t first_time; /* of all three kinds */
    size_t ends;
    bool is_known; /* no: somebody else has done something there since */
} outlook;

struct orr__lanes {
    orr__fabric *main;
    unsigned count;
    lane **of;
    outlook *outlooks;
    lane **awake; /* those with events in the window */
    unsigned awake_count;
    uint32_t *of_node;
    uint64_t longest; /* window, ticks */
    uint64_t end;     /* of the window: before it */
    uint64_t recent;  /* events a window */
    uint32_t frames_each;
    orr_crew *crew;
    pause_line *pauses; /* of all lanes */
    uint64_t *times;    /* of before_last_flow */
    size_t pause_room, time_room;
};

static lane *lane_of(orr__fabric *f)
{
    return (lane *)f;
}

static void lack_memory(orr__fabric *f)
{
    orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
}

/* ---- what happens in a window ---- */

static void expect(orr__fabric *f, orr_heap *times, uint64_t at)
{
    if (!orr_heap_push(times, at, 0))
        lack_memory(f);
}

void orr__lanes_expect(orr__fabric *f, uint64_t at)
{
    expect(f, &lane_of(f)->stops, at);
}

void orr__lanes_expect_of(orr__fabric *f, uint32_t node, uint64_t at)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    expect(f, &f->lanes->of[which]->stops, at);
}

/* The simulator has whole nanoseconds: what happens between two of them it hears of at the later one. */
static uint64_t told_at(const orr__fabric *f, uint64_t at)
{
    return f->line == &f->main->own_line ? at : (at + f->unit - 1) / f->unit * f->unit;
}

static bool is_heard(const orr__fabric *f, const orr__flow *w, bool is_arrival)
{
    const orr__fabric_watcher *by = &f->watcher;
    if (is_arrival ? !by->arrived : !by->sent)
        return false;
    return !by->hears || by->hears(by->context, w->token, is_arrival);
}

/* Can it be the last packet that its receiver waits for?  Those before it on the wire may bring one each. */
static bool may_be_last(const orr__fabric *f, const orr__port *p, const orr__frame *m)
{
    if (!f->config.selective)
        return m->is_last;
    if (p->is_between || f->nodes[m->to].port_count > 1)
        return true; /* others bring some, too */
    const orr__flow *w = &f->flows[m->flow];
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    return packets - w->gained <= (uint64_t)p->wire_count + 1;
}

/* The frame is asked before its flow, which has left the caches. */
static bool may_bring_news(const orr__fabric *f, const orr__port *p, const orr__frame *m)
{
    switch (m->kind) {
    case ORR__FRAME_DATA:
        return f->watcher.arrived && may_be_last(f, p, m) && m->to == f->ports[p->peer].node;
    case ORR__FRAME_ACK:
    case ORR__FRAME_NACK:
        return m->is_last && m->to == f->ports[p->peer].node;
    default:
        return false;
    }
}

void orr__lanes_watch(orr__fabric *f, const orr__port *p, const orr__flight *flight)
{
    const orr__frame *m = &f->frames[flight->frame];
    const bool is_arrival = m->kind == ORR__FRAME_DATA;
    lane *l = lane_of(f);
    if (!may_bring_news(f, p, m))
        return;
    if (is_heard(f, &f->flows[m->flow], is_arrival))
        expect(f, &l->calls, told_at(f, flight->at));
    if (f->list && !is_arrival)
        expect(f, &l->ends, flight->at);
}

static void note_news(orr__fabric *f, const orr__flow_end *end, bool is_done, size_t length)
{
    lane *l = lane_of(f);
    if (!orr_grow(&l->news, &l->news_room, l->news_count + 1)) {
        lack_memory(f);
        return;
    }
    l->news[l->news_count++] = (news){.at = f->now,
                                      .order = f->order,
                                      .end = *end,
                                      .length = (uint32_t)length,
                                      .is_done = is_done};
}

void orr__lanes_note_done(orr__fabric *f, const orr__flow *w, const orr__flow_end *end)
{
    orr_buf *b = &lane_of(f)->lines;
    const size_t before = b->len;
    if (orr__writer_lists_flows(f))
        orr__put_fct(b, f, w, end->ideal);
    if (b->failed)
        lack_memory(f);
    note_news(f, end, true, b->len - before);
}

void orr__lanes_note_arrival(orr__fabric *f, const orr__flow *w)
{
    if (is_heard(f, w, true))
        note_news(f, &(orr__flow_end){.token = w->token}, false, 0);
}

void orr__lanes_cross(orr__fabric *f, const orr__port *p, const orr__flight *flight)
{
    lane *l = lane_of(f);
    if (!orr_grow(&l->out, &l->out_room, l->out_count + 1)) {
        lack_memory(f);
        return;
    }
    l->out[l->out_count++] = (crossing){*flight, orr__port_of(f, p)};
}

static void note_flow(orr__fabric *f, uint32_t **list, size_t *count, size_t *room, uint32_t flow)
{
    if (orr_grow(list, room, *count + 1))
        (*list)[(*count)++] = flow;
    else
        lack_memory(f);
}

void orr__lanes_let_go(orr__fabric *f, uint32_t flow)
{
    lane *l = lane_of(f);
    note_flow(f, &l->gone, &l->gone_count, &l->gone_room, flow);
}

static void give_back_frame(orr__fabric *owner, uint32_t id)
{
    owner->frames[id].next = owner->free_frame;
    owner->free_frame = id;
}

static void drop_of_flow(orr__fabric *f, uint32_t flow)
{
    if (--f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        orr__flow_let_go(f, flow);
}

void orr__lanes_drop(orr__fabric *f, uint32_t id)
{
    const orr__lanes *s = f->lanes;
    const uint32_t flow = f->frames[id].flow, owner = id / s->frames_each;
    lane *l = s->of[f->lane];
    if (!f->is_in_window || owner == f->lane) {
        give_back_frame(&s->of[owner]->f, id);
    } else {
        f->frames[id].next = l->strange;
        l->strange = id;
    }
    if (flow == ORR__NOBODY)
        return;
    if (!f->is_in_window || s->of_node[f->flows[flow].src] == f->lane)
        drop_of_flow(f, flow);
    else
        note_flow(f, &l->drops, &l->drop_count, &l->drop_room, flow);
}

void orr__lanes_note_pause(orr__fabric *f, const orr__port *p, bool pauses)
{
    lane *l = lane_of(f);
    if (!orr_grow(&l->pauses, &l->pause_room, l->pause_count + 1)) {
        lack_memory(f);
        return;
    }
    l->pauses[l->pause_count++] = (pause_line){f->now, orr__port_of(f, p), pauses};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t first_of(const orr_heap *times)
{
    return times->count ? times->entries[0].key : UINT64_MAX;
}

static void look_out(orr__lanes *s, const lane *l)
{
    outlook *o = &s->outlooks[l->f.lane];
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

static void forget_times(lane *l, uint64_t now)
{
    forget_before(&l->stops, now);
    forget_before(&l->calls, now);
    forget_before(&l->ends, now);
}

static void run_lane(lane *l, uint64_t end)
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

/* ---- between windows ---- */

static void move_crossings(orr__lanes *s, lane *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        const orr__flight *flight = &l->out[i].flight;
        orr__port *p = &s->main->ports[l->out[i].port];
        const uint32_t to = s->of_node[s->main->ports[p->peer].node];
        orr__port_put_on_wire(&s->of[to]->f, p, flight);
        if (flight->at < s->outlooks[to].next)
            s->outlooks[to].next = flight->at;
    }
    l->out_count = 0;
}

static void settle_flows(orr__lanes *s, lane *l)
{
    for (size_t i = 0; i < l->drop_count; i++)
        drop_of_flow(s->main, l->drops[i]);
    for (size_t i = 0; i < l->gone_count; i++)
        orr__flow_let_go(s->main, l->gone[i]);
    l->drop_count = l->gone_count = 0;
    while (l->strange != ORR__NOBODY) {
        const uint32_t id = l->strange;
        l->strange = s->main->frames[id].next;
        give_back_frame(&s->of[id / s->frames_each]->f, id);
    }
}

/* Pauses of one instant stand in the order in which their frames arrived: by the port that sent them. */
static int compare_pauses(const void *a, const void *b)
{
    const pause_line *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->port ^ 1) < (y->port ^ 1) ? -1 : 1;
}

static void write_pauses(orr__lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->pause_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->pauses, &s->pause_room, count)) {
        lack_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        for (size_t k = 0; k < s->awake[i]->pause_count; k++)
            s->pauses[count++] = s->awake[i]->pauses[k];
        s->awake[i]->pause_count = 0;
    }
    qsort(s->pauses, count, sizeof *s->pauses, compare_pauses);
    for (size_t i = 0; i < count; i++) {
        s->main->now = s->pauses[i].at;
        orr__write_pfc(s->main, &s->main->ports[s->pauses[i].port], s->pauses[i].pauses);
    }
}

static bool is_before(const orr__fabric *a, const orr__fabric *b)
{
    return a->now != b->now ? a->now < b->now : a->order < b->order;
}

/* NULL: all is well. */
static const orr__fabric *first_failure(const orr__lanes *s)
{
    const orr__fabric *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        const orr__fabric *f = &s->awake[i]->f;
        if (f->code && (!first || is_before(f, first)))
            first = f;
    }
    return first;
}

/* What ends a lane ends the run; of several failures the first in time is told. */
static void take_over_ends(orr__lanes *s)
{
    orr__fabric *main = s->main;
    for (unsigned i = 0; i < s->awake_count; i++) {
        orr__fabric *f = &s->awake[i]->f;
        if (f->wheel.has_failed)
            lack_memory(f);
        main->is_stopped |= f->is_stopped;
        main->is_stalled |= f->is_stalled;
    }
    const orr__fabric *first = first_failure(s);
    if (first && !main->code) {
        main->code = first->code;
        main->error = first->error;
    }
}

static void set_time(orr__fabric *main, uint64_t now)
{
    main->now = now;
    main->line->now = main->line == &main->own_line ? now : (now + main->unit - 1) / main->unit;
}

/* Who has the first of the news that were not told yet; NULL: there are none. */
static lane *first_to_tell(const orr__lanes *s)
{
    lane *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        lane *l = s->awake[i];
        if (l->told == l->news_count)
            continue;
        const news *n = &l->news[l->told], *least = first ? &first->news[first->told] : NULL;
        if (!first || n->at < least->at || (n->at == least->at && n->order < least->order))
            first = l;
    }
    return first;
}

/* What listeners do in the instant of their news must not be too late. */
static bool is_too_late(const orr__lanes *s, const news *n)
{
    const orr__fabric_watcher *by = &s->main->watcher;
    if (n->is_done ? !by->sent : !by->arrived)
        return false;
    if (by->hears && !by->hears(by->context, n->end.token, !n->is_done))
        return false;
    return told_at(s->main, n->at) + 1 < s->end;
}

static void tell(orr__lanes *s, lane *l)
{
    orr__fabric *main = s->main;
    const news *n = &l->news[l->told++];
    bool is_late = is_too_late(s, n);
    set_time(main, n->at);
    main->order = n->order;
    if (n->is_done) {
        if (n->length)
            orr__write_fct_lines(main, l->lines.ptr + l->told_bytes, n->length);
        l->told_bytes += n->length;
        orr__flow_tell_done(main, &n->end);
        is_late |= main->list && main->under_way == 0;
    } else {
        main->watcher.arrived(main->watcher.context, n->end.token);
    }
    if (is_late)
        orr__fabric_fail(main, ORR_EBUG, "a flow is done before anybody could know");
}

static void tell_all(orr__lanes *s)
{
    const orr__fabric *failed = first_failure(s);
    lane *l;
    while (!s->main->code && (l = first_to_tell(s)) != NULL) {
        const news *n = &l->news[l->told];
        if (failed && (n->at != failed->now ? n->at > failed->now : n->order > failed->order))
            break; /* it never happened */
        tell(s, l);
    }
    for (unsigned i = 0; i < s->awake_count; i++) {
        l = s->awake[i];
        l->news_count = l->told = l->told_bytes = l->lines.len = 0;
    }
}

static void settle(orr__lanes *s)
{
    for (unsigned i = 0; i < s->awake_count; i++) {
        move_crossings(s, s->awake[i]);
        settle_flows(s, s->awake[i]);
    }
    take_over_ends(s);
}

static uint64_t end_window(orr__lanes *s)
{
    uint64_t done = 0, now = s->main->now;
    write_pauses(s);
    for (unsigned i = 0; i < s->awake_count; i++)
        s->awake[i]->f.is_in_window = false;
    tell_all(s);
    for (unsigned i = 0; i < s->awake_count; i++) {
        const lane *l = s->awake[i];
        done += l->done;
        if (l->done && l->f.now > now)
            now = l->f.now;
        if (l->f.last_arrival > s->main->last_arrival)
            s->main->last_arrival = l->f.last_arrival;
    }
    set_time(s->main, now);
    settle(s);
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
    set_time(main, e->at);
    main->order = e->order;
    orr__fabric_run_event(f, id);
    if (f->last_arrival > main->last_arrival)
        main->last_arrival = f->last_arrival;
    if (main->list && main->under_way == 0)
        main->is_stopped = true;
    if (f == main || f->is_stopped || f->wheel.has_failed) /* what all do may end in any lane */
        take_over_ends(s);
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
    settle(s);
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

/* The time of the first event, if it comes not after the bound.  A slot that is not open says only when it begins, so
 * it is opened; nothing can come before it any more. */
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

/* The run ends with the last flow of a list, and no event later: so fewer may be done in a window than there are. */
static uint64_t before_last_flow(orr__lanes *s, uint64_t end)
{
    const uint64_t under_way = s->main->under_way;
    size_t known = 0, count = 0;
    for (unsigned i = 0; i < s->count; i++)
        known += s->outlooks[i].ends;
    if (known < under_way || under_way == 0 || !s->main->list)
        return end;
    if (!orr_grow(&s->times, &s->time_room, known)) {
        lack_memory(s->main);
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
    /* whether the network stands still is a question for all (orr__fabric_watch_for_stall) */
    end = least(end, s->main->last_arrival + s->main->longest_silence + 1);
    return before_last_flow(s, end);
}

/* Flows of a list that start in the window are given to their lanes.  Where it ends then: a flow may have no way. */
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
    take_over_ends(s);
    if (f->wheel.has_failed)
        lack_memory(f);
    for (unsigned i = 0; i < s->count; i++)
        add_figures(&f->figures, &s->of[i]->f.figures);
    f->figures.events += done;
    return done;
}

/* ---- life ---- */

static lane *make_lane(orr__fabric *f, unsigned which)
{
    lane *l = orr_alloc(1, sizeof *l);
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

static void destroy_lane(lane *l)
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
    orr_free(s->times);
    orr_free(s);
    f->lanes = NULL;
}
