/* SPDX-License-Identifier: Apache-2.0 */
/* fab_lanes.c - parts of a network that run in parallel, in windows.
 *
 *     lane 0:  ####.##|   |######.|  #  |###...     a window: each lane runs its own events
 *     lane 1:  ##.####|   |#..####|     |######     between windows, one thread: frames move to other lanes, listeners
 *     all:            |ooo|       |o o o|           are notified; then global events, one by one
 *
 * A lane is a set of nodes, mostly hosts with their switch, and a copy of the fabric with its own
 * calendar, free frames and statistics; ports, frames and flows are shared, and each field is
 * written by one lane.  A frame that leaves a lane arrives after the delay of a link, so lanes are
 * independent for the shortest such delay (the lookahead).
 *
 * A completed flow is recorded by its lane; lines of fct.txt, statistics and
 * listeners (triggers, the simulator) are updated between windows, in the global order.  What
 * listeners start happens in the same instant at the earliest, after everything else in it, so a
 * window must not extend beyond an instant in which they are notified.  That instant is known one
 * link delay before: a frame that may complete a flow is recorded when it is put on the wire
 * (fab_lanes_watch).  Flows start in the lanes of their hosts; those of a list are given to them
 * before a window.
 *
 * Global events (failures, repairs, samples at fixed times, the end: by time, by many timeouts, by
 * the last flow) run one by one in the global order while no lane runs.
 *
 * Why results do not depend on lanes: what a node does in one instant is ordered by fab_tie,
 * whichever lane runs it, and nodes interact only over wires.  Global effects of several lanes are
 * sorted between windows (notifications, lines of pfc.txt), or their order does not matter (freed
 * flows: their slots have no meaning).
 *
 * Cost: a window costs two barriers, some microseconds; where windows have few
 * events, one thread runs the lanes one after the other. */
#include "base/arithmetic.h"
#include "base/memory/heap.h"
#include "base/memory/sort.h"
#include "base/threads/pool.h"
#include "fabric_impl.h"

#include <stdlib.h>
#include <string.h>

/* A window of this many events is worth a barrier; race-detection builds use 0. */
#ifndef FAB_EVENTS_THAT_PAY
#define FAB_EVENTS_THAT_PAY 256
#endif

/* A frame in flight to another lane. */
typedef struct fab_crossing {
    fab_flight flight;
    uint32_t port;
} fab_crossing;

typedef struct fab_pause_line {
    uint64_t at;
    uint32_t port;
    bool pauses;
} fab_pause_line;

/* A flow has completed, or all of it has arrived. */
typedef struct fab_news {
    uint64_t at, order; /* of the event that caused it */
    fab_flow_end end;   /* of an arrival only the token */
    uint32_t length;    /* of its line in fct.txt */
    bool is_done;
} fab_news;

typedef struct fab_lane {
    fab f;             /* first, so that a lane can be found from its fabric */
    orr_heap stops;    /* times of possible global events */
    orr_heap calls;    /* times of notifications with possible listeners, as seen by these */
    orr_heap ends;     /* times at which a flow of a list may complete */
    fab_crossing *out; /* since the window began, like everything below */
    fab_news *news;
    orr_buf lines;   /* of fct.txt */
    uint32_t *drops; /* flows of other lanes with a frame dropped here */
    uint32_t *gone;  /* flows that may be freed */
    fab_pause_line *pauses;
    fab_flow_note *notes;
    size_t out_count, out_room, drop_count, drop_room, gone_count, gone_room;
    size_t pause_count, pause_room, note_count, note_room, news_count, news_room;
    size_t told, told_bytes; /* delivered notifications, and bytes of their lines */
    uint32_t foreign_free;   /* free frames of other lanes: a list */
    uint64_t done;           /* events */
} fab_lane;

/* What every window needs from every lane, stored contiguously. */
typedef struct fab_outlook {
    uint64_t next;       /* lower bound on its next event */
    uint64_t stop, call; /* minimum of these times */
    uint64_t first_time; /* minimum over all three */
    size_t ends;
    bool is_known; /* false: another thread has changed it since */
} fab_outlook;

struct fab_lanes {
    fab *main;
    unsigned count;
    fab_lane **of;
    fab_outlook *outlooks;
    fab_lane **awake; /* those with events in the window */
    unsigned awake_count;
    uint32_t *of_node;
    uint64_t longest; /* window, ticks */
    uint64_t end;     /* of the window, exclusive */
    uint64_t recent;  /* events per window */
    uint32_t frames_each;
    orr_crew *crew;
    fab_pause_line *pauses; /* of all lanes */
    fab_flow_note *notes;   /* of all lanes */
    uint64_t *times;        /* of before_last_flow */
    size_t pause_room, note_room, time_room;
};

static fab_lane *lane_of(fab *f)
{
    return (fab_lane *)f;
}

/* The simulator has whole nanoseconds: it hears of an event between two of them at the later
 * one. */
static uint64_t heard_at(const fab *f, uint64_t at)
{
    return f->line == &f->main->own_line ? at : (at + f->unit - 1) / f->unit * f->unit;
}

static void give_back(fab *owner, uint32_t frame)
{
    owner->frames[frame].next = owner->free_frame;
    owner->free_frame = frame;
}

static void drop_of_flow(fab *f, uint32_t flow)
{
    if (--f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        fab_flow_let_go(f, flow);
}

static void set_time(fab *main, uint64_t now)
{
    main->now = now;
    main->line->now = main->line == &main->own_line ? now : (now + main->unit - 1) / main->unit;
}

/* Notes: what a lane records in a window for others.  Each lane writes its own lists; nobody else
 * reads them before the window ends */

static void expect(fab *f, orr_heap *times, uint64_t at)
{
    if (!orr_heap_push(times, at, 0))
        fab_no_memory(f);
}

void fab_lanes_expect(fab *f, uint64_t at)
{
    expect(f, &lane_of(f)->stops, at);
}

void fab_lanes_expect_of(fab *f, uint32_t node, uint64_t at)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    expect(f, &f->lanes->of[which]->stops, at);
}

static bool is_heard(const fab *f, const fab_flow *w, bool is_arrival)
{
    const fab_listener *by = &f->listener;
    if (is_arrival ? !by->arrived : !by->sent)
        return false;
    return !by->hears || by->hears(by->context, w->token, is_arrival);
}

/* Can it be the last packet its receiver waits for?  Earlier ones on the wire may bring one
 * each. */
static bool may_be_last(const fab *f, const fab_port *p, const fab_frame *m)
{
    if (!f->config.selective)
        return m->is_last;
    if (p->crosses_lanes || f->nodes[m->to].port_count > 1)
        return true; /* others also bring some */
    const fab_flow *w = &f->flows[m->flow];
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    return packets - w->gained <= (uint64_t)p->wire_count + 1;
}

/* The frame is checked before its flow, which is no longer cached. */
static bool may_bring_news(const fab *f, const fab_port *p, const fab_frame *m)
{
    switch (m->kind) {
    case FAB_FRAME_DATA:
        return f->listener.arrived && may_be_last(f, p, m) && m->to == f->ports[p->peer].node;
    case FAB_FRAME_ACK:
    case FAB_FRAME_NACK:
        return m->is_last && m->to == f->ports[p->peer].node;
    default:
        return false;
    }
}

void fab_lanes_watch(fab *f, const fab_port *p, const fab_flight *flight)
{
    const fab_frame *m = &f->frames[flight->frame];
    const bool is_arrival = m->kind == FAB_FRAME_DATA;
    fab_lane *l = lane_of(f);
    if (!may_bring_news(f, p, m))
        return;
    if (is_heard(f, &f->flows[m->flow], is_arrival))
        expect(f, &l->calls, heard_at(f, flight->at));
    if (f->list.flows && !is_arrival)
        expect(f, &l->ends, flight->at);
}

static void note_news(fab *f, const fab_flow_end *end, bool is_done, size_t length)
{
    fab_lane *l = lane_of(f);
    if (!orr_grow(&l->news, &l->news_room, l->news_count + 1)) {
        fab_no_memory(f);
        return;
    }
    l->news[l->news_count++] = (fab_news){.at = f->now,
                                          .order = f->order,
                                          .end = *end,
                                          .length = (uint32_t)length,
                                          .is_done = is_done};
}

void fab_lanes_note_done(fab *f, const fab_flow *w, const fab_flow_end *end)
{
    orr_buf *b = &lane_of(f)->lines;
    const size_t before = b->len;
    if (f->watch.hears & FAB_HEARS_LINES)
        fab_tell_line(f, w, end->ideal, b);
    if (b->failed)
        fab_no_memory(f);
    note_news(f, end, true, b->len - before);
}

void fab_lanes_note_arrival(fab *f, const fab_flow *w)
{
    if (is_heard(f, w, true))
        note_news(f, &(fab_flow_end){.token = w->token}, false, 0);
}

void fab_lanes_cross(fab *f, const fab_port *p, const fab_flight *flight)
{
    fab_lane *l = lane_of(f);
    if (!orr_grow(&l->out, &l->out_room, l->out_count + 1)) {
        fab_no_memory(f);
        return;
    }
    l->out[l->out_count++] = (fab_crossing){*flight, fab_port_of(f, p)};
}

static void note_flow(fab *f, uint32_t **list, size_t *count, size_t *room, uint32_t flow)
{
    if (orr_grow(list, room, *count + 1))
        (*list)[(*count)++] = flow;
    else
        fab_no_memory(f);
}

void fab_lanes_let_go(fab *f, uint32_t flow)
{
    fab_lane *l = lane_of(f);
    note_flow(f, &l->gone, &l->gone_count, &l->gone_room, flow);
}

void fab_lanes_drop(fab *f, uint32_t id)
{
    const fab_lanes *s = f->lanes;
    /* The lane that made a frame follows from its number (make_lane). */
    const uint32_t flow = f->frames[id].flow, owner = id / s->frames_each;
    fab_lane *l = s->of[f->lane];
    if (!f->is_in_window || owner == f->lane) {
        give_back(&s->of[owner]->f, id);
    } else {
        f->frames[id].next = l->foreign_free;
        l->foreign_free = id;
    }
    if (flow == FAB_NONE)
        return;
    if (!f->is_in_window || s->of_node[f->flows[flow].src] == f->lane)
        drop_of_flow(f, flow);
    else
        note_flow(f, &l->drops, &l->drop_count, &l->drop_room, flow);
}

void fab_lanes_note_pause(fab *f, const fab_port *p, bool pauses)
{
    fab_lane *l = lane_of(f);
    if (!orr_grow(&l->pauses, &l->pause_room, l->pause_count + 1)) {
        fab_no_memory(f);
        return;
    }
    l->pauses[l->pause_count++] = (fab_pause_line){f->now, fab_port_of(f, p), pauses};
}

void fab_lanes_note_flow(fab *f, const fab_flow_note *n)
{
    fab_lane *l = lane_of(f);
    if (orr_grow(&l->notes, &l->note_room, l->note_count + 1))
        l->notes[l->note_count++] = *n;
    else
        fab_no_memory(f);
}

/* Between windows notes are sorted into the global order, written and delivered. */

static void move_crossings(fab_lanes *s, fab_lane *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        const fab_flight *flight = &l->out[i].flight;
        fab_port *p = &s->main->ports[l->out[i].port];
        const uint32_t to = s->of_node[s->main->ports[p->peer].node];
        fab_port_put_on_wire(&s->of[to]->f, p, flight);
        if (flight->at < s->outlooks[to].next)
            s->outlooks[to].next = flight->at;
    }
    l->out_count = 0;
}

static void settle_flows(fab_lanes *s, fab_lane *l)
{
    for (size_t i = 0; i < l->drop_count; i++)
        drop_of_flow(s->main, l->drops[i]);
    for (size_t i = 0; i < l->gone_count; i++)
        fab_flow_let_go(s->main, l->gone[i]);
    l->drop_count = l->gone_count = 0;
    while (l->foreign_free != FAB_NONE) {
        const uint32_t id = l->foreign_free;
        l->foreign_free = s->main->frames[id].next;
        give_back(&s->of[id / s->frames_each]->f, id);
    }
}

/* Pauses of one instant are in the order of arrival of their frames: by the sending port. */
static int compare_pauses(const void *a, const void *b)
{
    const fab_pause_line *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->port ^ 1) < (y->port ^ 1) ? -1 : 1;
}

static void write_pauses(fab_lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->pause_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->pauses, &s->pause_room, count)) {
        fab_no_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        for (size_t k = 0; k < s->awake[i]->pause_count; k++)
            s->pauses[count++] = s->awake[i]->pauses[k];
        s->awake[i]->pause_count = 0;
    }
    orr_sort(s->pauses, count, sizeof *s->pauses, compare_pauses);
    for (size_t i = 0; i < count; i++) {
        s->main->now = s->pauses[i].at;
        fab_tell_pause(s->main, &s->main->ports[s->pauses[i].port], s->pauses[i].pauses);
    }
}

static int compare_notes(const void *a, const void *b)
{
    const fab_flow_note *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void tell_flows(fab_lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->note_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->notes, &s->note_room, count)) {
        fab_no_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab_lane *l = s->awake[i];
        if (l->note_count)
            memcpy(s->notes + count, l->notes, l->note_count * sizeof *l->notes);
        count += l->note_count;
        l->note_count = 0;
    }
    orr_sort(s->notes, count, sizeof *s->notes, compare_notes);
    for (size_t i = 0; i < count; i++)
        fab_hear_flow(s->main, &s->notes[i]);
}

static bool is_before(const fab *a, const fab *b)
{
    return a->now != b->now ? a->now < b->now : a->order < b->order;
}

/* NULL: no failure. */
static const fab *first_failure(const fab_lanes *s)
{
    const fab *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        const fab *f = &s->awake[i]->f;
        if (f->end.code && (!first || is_before(f, first)))
            first = f;
    }
    return first;
}

/* A lane's failure ends the run; of several the first in time is reported. */
static void take_over_ends(fab_lanes *s)
{
    fab *main = s->main;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab *f = &s->awake[i]->f;
        if (f->wheel.has_failed)
            fab_no_memory(f);
        main->end.is_stopped |= f->end.is_stopped;
        main->end.is_stalled |= f->end.is_stalled;
    }
    const fab *first = first_failure(s);
    if (first && !main->end.code) {
        main->end.code = first->end.code;
        main->end.error = first->end.error;
    }
}

/* The lane with the earliest undelivered notification; NULL: none. */
static fab_lane *first_to_tell(const fab_lanes *s)
{
    fab_lane *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab_lane *l = s->awake[i];
        if (l->told == l->news_count)
            continue;
        const fab_news *n = &l->news[l->told], *least = first ? &first->news[first->told] : NULL;
        if (!first || n->at < least->at || (n->at == least->at && n->order < least->order))
            first = l;
    }
    return first;
}

/* Actions of listeners in the instant of notification must not be too late. */
static bool is_too_late(const fab_lanes *s, const fab_news *n)
{
    const fab_listener *by = &s->main->listener;
    if (n->is_done ? !by->sent : !by->arrived)
        return false;
    if (by->hears && !by->hears(by->context, n->end.token, !n->is_done))
        return false;
    /* The instant itself may be in the window (end_of_window). */
    return heard_at(s->main, n->at) + 1 < s->end;
}

static void tell(fab_lanes *s, fab_lane *l)
{
    fab *main = s->main;
    const fab_news *n = &l->news[l->told++];
    bool is_late = is_too_late(s, n);
    set_time(main, n->at);
    main->order = n->order;
    if (n->is_done) {
        if (n->length)
            fab_hear_lines(main, l->lines.ptr + l->told_bytes, n->length);
        l->told_bytes += n->length;
        fab_flow_report_done(main, &n->end);
        is_late |= main->list.flows && main->under_way == 0;
    } else {
        main->listener.arrived(main->listener.context, n->end.token);
    }
    if (is_late)
        fab_fail(main, ORR_EBUG, "a flow is done before anybody could know");
}

static void tell_news(fab_lanes *s)
{
    const fab *failed = first_failure(s);
    fab_lane *l;
    while (!s->main->end.code && (l = first_to_tell(s)) != NULL) {
        const fab_news *n = &l->news[l->told];
        if (failed && (n->at != failed->now ? n->at > failed->now : n->order > failed->order))
            break; /* it did not happen */
        tell(s, l);
    }
    for (unsigned i = 0; i < s->awake_count; i++) {
        l = s->awake[i];
        l->news_count = l->told = l->told_bytes = l->lines.len = 0;
    }
}

static void settle(fab_lanes *s)
{
    for (unsigned i = 0; i < s->awake_count; i++) {
        move_crossings(s, s->awake[i]);
        settle_flows(s, s->awake[i]);
    }
    take_over_ends(s);
}

/* Plan: assignment of nodes to lanes.
 *
 * Hosts stay with their switch, to keep their first hop inside a lane.  Each lane gets an equal
 * share of the work: of the packets that pass a node if the flows are known in advance (a sample of
 * them is followed along its routes), otherwise of the ports.  Cost: linear in nodes and ports,
 * plus the routes of some thousand flows */

enum {
    MOST_LANES = 64,
    HOSTS_A_THREAD = 64,
    PORTS_A_LANE = 96, /* with the frames on their wires: some hundred KiB */
    PIECES_THAT_PAY = 4,
    PACKETS_THAT_PAY = 2, /* per port and window */
    FLOWS_FOLLOWED = 4096,
    MOST_HOPS = 64,
    PACKET_WEIGHT = 1024
};

typedef struct parting {
    const fab *f;
    unsigned wanted;   /* lanes */
    uint32_t *of_node; /* lane */
    uint64_t *weights; /* by node: its share of the work; 0: it follows another */
    bool *is_home;     /* of a host */
} parting;

/* A host belongs to the switch of its first link, unless there are too few switches. */
static uint32_t home_of(const fab *f, uint32_t node, bool are_apart)
{
    const fab_node *n = &f->nodes[node];
    if (n->kind != ORR__HOST || n->port_count == 0 || are_apart)
        return node;
    const uint32_t at = f->ports[f->ports[f->ports_of[n->first_port]].peer].node;
    return f->nodes[at].kind == ORR__HOST ? node : at;
}

/* Packets of a flow are work for all nodes on its route. */
static void follow_flow(const fab *f, const orr__flow_line *l, uint64_t *weights)
{
    /* Limited, so that sums fit: FLOWS_FOLLOWED flows of so many packets of PACKET_WEIGHT make
     * 2^54. */
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

static unsigned lane_threads(const fab *f)
{
    uint32_t hosts = 0;
    if (f->config.threads)
        return f->config.threads < MOST_LANES ? f->config.threads : MOST_LANES;
    for (uint32_t n = 0; n < f->node_count; n++)
        hosts += f->nodes[n].kind == ORR__HOST;
    const unsigned cores = orr_pool_threads(0), most = hosts / HOSTS_A_THREAD;
    return cores < most ? cores : most ? most : 1;
}

/* Adds the weight of nodes to their homes.  False: too few homes, or one of them exceeds a thread's
 * share by more than half. */
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
    return homes >= wanted && heaviest / 3 <= total / lane_threads(f) / 2;
}

/* Assigns nodes of one kind, homes or not: each lane gets neighbours by number, which are mostly
 * close, until it is full.  The rest goes to the last one. */
static void fill(const parting *p, bool are_homes, const uint64_t *room)
{
    uint64_t before = 0;
    for (uint32_t n = 0; n < p->f->node_count; n++) {
        if (!p->weights[n] || p->is_home[n] != are_homes)
            continue;
        /* By its middle: a node that crosses a limit goes where most of it lies. */
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

/* Switches without hosts are distributed first, evenly; then hosts and their switches fill the
 * lanes. */
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

/* Renumbers the non-empty lanes. */
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

/* The minimum time for anything to get from one lane to another, or to become known at a host. */
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

/* A limit on events is a position in the global order, which lanes do not have. */
static bool can_be_parted(const fab *f)
{
    return !f->rules.orders_by_schedule && !f->approx && !f->config.counts_events &&
           !(f->watch.hears & FAB_HEARS_FRAMES);
}

/* Listeners make windows so short that switching between lanes costs more than caches save. */
static bool has_listeners(const fab *f)
{
    return (f->listener.sent || f->listener.arrived) && !f->listener.hears;
}

/* Lanes that fit the caches pay even on one thread, if each port sends some packets per window. */
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

static unsigned plan_lanes(const fab *f, uint32_t *of_node, uint64_t *window)
{
    const unsigned threads = lane_threads(f), pieces = lanes_for_caches(f);
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

/* ---- a window ---- */

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
    o->first_time = orr_min_u64(orr_min_u64(o->stop, o->call), first_of(&l->ends));
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
    while (!l->f.end.is_stopped && fab_wheel_next(&l->f.wheel, end - 1, UINT64_MAX, &id)) {
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
    write_pauses(s);
    tell_flows(s);
    for (unsigned i = 0; i < s->awake_count; i++)
        s->awake[i]->f.is_in_window = false;
    tell_news(s);
    for (unsigned i = 0; i < s->awake_count; i++) {
        const fab_lane *l = s->awake[i];
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
            /* Without events of its own it may expect frames that have crossed to another lane. */
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

/* The fabric with the first event of the instant; NULL: none is left. */
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
    if (e->kind == FAB_EV_SILENT_LOOK && fab_look_is_last(main, id, e->who))
        return;
    set_time(main, e->at);
    main->order = e->order;
    fab_run_event(f, id);
    if (f->last_arrival > main->last_arrival)
        main->last_arrival = f->last_arrival;
    if (main->list.flows && main->under_way == 0)
        main->end.is_stopped = true;
    if (f == main || f->end.is_stopped ||
        f->wheel.has_failed) /* a global event may end in any lane */
        take_over_ends(s);
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
    while (!s->main->end.is_stopped && (f = first_at(s, at)) != NULL) {
        if (!fab_wheel_next(&f->wheel, at, UINT64_MAX, &id))
            break;
        done += fab_wheel_event(&f->wheel, id)->kind != FAB_EV_SILENT_LOOK;
        run_for_all(s, f, id);
    }
    settle(s);
    for (unsigned i = 0; i < s->count; i++) {
        forget_times(s->of[i], at + 1);
        look_out(s, s->of[i]);
    }
    return done;
}

/* ---- length of a window ---- */

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

/* The time of the first event, if it is at or before the bound.  A closed slot only gives a lower
 * bound, so it is opened; nothing earlier can be inserted any more. */
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

/* The run ends with the last flow of a list, and no event later: so not all remaining flows may
 * complete in a window. */
static uint64_t before_last_flow(fab_lanes *s, uint64_t end)
{
    const uint64_t under_way = s->main->under_way;
    size_t known = 0, count = 0;
    for (unsigned i = 0; i < s->count; i++)
        known += s->outlooks[i].ends;
    if (known < under_way || under_way == 0 || !s->main->list.flows)
        return end;
    if (!orr_grow(&s->times, &s->time_room, known)) {
        fab_no_memory(s->main);
        return end;
    }
    for (unsigned i = 0; i < s->count; i++)
        for (size_t k = 0; k < s->of[i]->ends.count; k++)
            if (s->of[i]->ends.entries[k].key < end)
                s->times[count++] = s->of[i]->ends.entries[k].key;
    if (count < under_way)
        return end;
    orr_sort(s->times, count, sizeof *s->times, orr_by_u64);
    /* Exclusive: that instant runs event by event, so that the run can end within it. */
    return s->times[under_way - 1];
}

/* *call: when a listener may be notified. */
static uint64_t end_of_window(fab_lanes *s, uint64_t first, uint64_t bound, uint64_t *call)
{
    uint64_t at, end = first + s->longest;
    *call = UINT64_MAX;
    if (fab_looks_may_wake(s->main, first))
        return first; /* any lane may start it; nothing is in flight, so there is little to do */
    if (bound < UINT64_MAX)
        end = orr_min_u64(end, bound + 1);
    if (fab_wheel_peek(&s->main->wheel, &at))
        end = orr_min_u64(end, at);
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        end = orr_min_u64(end, s->outlooks[i].stop);
        *call = orr_min_u64(*call, s->outlooks[i].call);
    }
    if (*call < UINT64_MAX)
        end = orr_min_u64(end, *call + 1);
    if (s->main->list.at == 0) /* sampling begins with the first flow of a list */
        end = orr_min_u64(end, fab_next_start(s->main));
    /* whether the network is stalled is a global question (fab_watch_for_stall) */
    end = orr_min_u64(end, s->main->last_arrival + s->main->longest_silence + 1);
    return before_last_flow(s, end);
}

/* Hands flows of a list that start in the window to their lanes.  Returns its end: a flow may have
 * no route. */
static uint64_t start_flows(fab_lanes *s, uint64_t end, uint64_t call)
{
    const size_t before = s->main->list.at;
    /* flows started by listeners come before those of a list in the same instant */
    fab_start_before(s->main, orr_min_u64(end, call));
    for (unsigned i = 0; i < s->count && s->main->list.at != before; i++) {
        if (!s->outlooks[i].is_known)
            look_out(s, s->of[i]);
        end = orr_min_u64(end, s->outlooks[i].stop);
    }
    return end;
}

/* ---- statistics ---- */

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
    while (done < most && !f->end.is_stopped && !f->wheel.has_failed) {
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
    take_over_ends(s);
    if (f->wheel.has_failed)
        fab_no_memory(f);
    for (unsigned i = 0; i < s->count; i++)
        add_figures(&f->figures, &s->of[i]->f.figures);
    f->figures.events += done;
    return done;
}

/* ---- life cycle ---- */

static fab_lane *make_lane(fab *f, unsigned which)
{
    fab_lane *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->f = *f;
    l->f.lane = which;
    l->f.figures = (fab_figures){0};
    /* Each lane has a range of the frames' numbers (fab_lanes_drop). */
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
    orr_reserve_large(&f->space.frames);
    orr_reserve_large(&f->space.flows);
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
    const unsigned threads = lane_threads(f);
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
    s->count = s->of_node ? plan_lanes(f, s->of_node, &s->longest) : 0;
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
