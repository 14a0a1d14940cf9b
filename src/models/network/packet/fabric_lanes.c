/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_lanes.c - parts of a network that run at the same time, in windows.
 *
 *     lane 0:  ####.##|   |######.|  #  |###...     a window: events before its end, each lane its own
 *     lane 1:  ##.####|   |#..####|     |######     between windows, one thread: frames move to other lanes,
 *     all:            |ooo|       |o o o|           then, if it concerns all, one instant event by event
 *
 * A lane is a set of nodes, mostly hosts with their switch, and a copy of the fabric with a calendar, free frames and figures
 * of its own; ports, frames and flows are shared, and each field is written by one lane.  What leaves a lane arrives
 * after the delay of a link, so lanes need not look at each other for the shortest such delay.
 *
 * What concerns all (a flow that is done, which may start others; starts, failures, samples, the end) is done in the
 * order of the whole network while no lane runs.  A flow is done when a frame arrives at a host, so it is known a
 * delay before: a frame with which a flow may be done is noted when it gets onto the wire (orr__lanes_watch).
 *
 * Why results do not depend on lanes: what a node does in one instant is ordered by orr__rank, whoever runs it, and no
 * node acts on another but over a wire.  Where several lanes have something for all, it is put in order between windows
 * (lines of pfc.txt) or does not depend on order (flows that are let go: the lowest number is used again first).
 *
 * Cost: a window costs two meetings of the threads, some microseconds; where windows have few events, one thread runs
 * the lanes one after the other. */
#include "../../../base/crew.h"
#include "../../../base/heap.h"
#include "../../../base/pool.h"
#include "fabric_impl.h"

#include <stdlib.h>

/* A window of so many events is worth a meeting; builds that look for races say 0. */
#ifndef ORR__EVENTS_THAT_PAY
#define ORR__EVENTS_THAT_PAY 256
#endif

enum { MOST_LANES = 64, HOSTS_A_LANE = 64 };

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

typedef struct lane {
    orr__fabric f;   /* first, so that the one is found from the other */
    orr_heap calls;  /* times at which something may concern all */
    crossing *out;   /* since the window began, as all below */
    uint32_t *drops; /* flows of other lanes of which a frame was dropped here */
    uint32_t *gone;  /* flows that may be let go */
    pause_line *pauses;
    size_t out_count, out_room, drop_count, drop_room, gone_count, gone_room;
    size_t pause_count, pause_room;
    uint32_t strange; /* frames of other lanes that are free: a list */
    uint64_t done;    /* events */
} lane;

struct orr__lanes {
    orr__fabric *main;
    unsigned count;
    lane **of;
    uint32_t *of_node;
    uint64_t longest; /* window, ticks */
    uint64_t end;     /* of the window: before it */
    uint64_t recent;  /* events a window */
    uint32_t frames_each;
    orr_crew *crew;
    pause_line *pauses; /* of all lanes */
    size_t pause_room;
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

void orr__lanes_expect(orr__fabric *f, uint64_t at)
{
    if (!orr_heap_push(&lane_of(f)->calls, at, 0))
        lack_memory(f);
}

/* Can it be the last packet that its receiver waits for?  Those before it on the wire may bring one each. */
static bool may_be_last(const orr__fabric *f, const orr__port *p, const orr__frame *m)
{
    const orr__flow *w = &f->flows[m->flow];
    if (!w->is_selective)
        return m->sequence + m->payload >= w->size;
    if (p->is_between || f->nodes[m->to].port_count > 1)
        return true; /* others bring some, too */
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    return packets - w->gained <= (uint64_t)p->wire_count + 1;
}

void orr__lanes_watch(orr__fabric *f, const orr__port *p, const orr__flight *flight)
{
    const orr__frame *m = &f->frames[flight->frame];
    bool may_call = false;
    if (m->flow == ORR__NOBODY || m->to != f->ports[p->peer].node)
        return;
    if (m->kind == ORR__FRAME_DATA)
        may_call = f->watcher.arrived && may_be_last(f, p, m);
    else if (m->kind != ORR__FRAME_TRIMMED)
        may_call = m->sequence >= f->flows[m->flow].size;
    if (may_call)
        orr__lanes_expect(f, flight->at);
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

static void run_lane(lane *l, uint64_t end)
{
    uint32_t id;
    l->done = 0;
    while (!l->f.is_stopped && orr__wheel_next(&l->f.wheel, end - 1, UINT64_MAX, &id)) {
        orr__fabric_run_event(&l->f, id);
        l->done++;
    }
}

static void run_some(void *context, unsigned who, unsigned members)
{
    orr__lanes *s = context;
    for (unsigned i = who; i < s->count; i += members)
        run_lane(s->of[i], s->end);
}

/* ---- between windows ---- */

static void move_crossings(orr__lanes *s, lane *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        orr__port *p = &s->main->ports[l->out[i].port];
        orr__fabric *to = &s->of[s->of_node[s->main->ports[p->peer].node]]->f;
        orr__port_put_on_wire(to, p, &l->out[i].flight);
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
    for (unsigned i = 0; i < s->count; i++)
        count += s->of[i]->pause_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->pauses, &s->pause_room, count)) {
        lack_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->of[i]->pause_count; k++)
            s->pauses[count++] = s->of[i]->pauses[k];
        s->of[i]->pause_count = 0;
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

/* What ends a lane ends the run; of several failures the first in time is told. */
static void take_over_ends(orr__lanes *s)
{
    orr__fabric *main = s->main;
    const orr__fabric *first = NULL;
    for (unsigned i = 0; i < s->count; i++) {
        orr__fabric *f = &s->of[i]->f;
        if (f->wheel.has_failed)
            lack_memory(f);
        main->is_stopped |= f->is_stopped;
        main->is_stalled |= f->is_stalled;
        if (f->code && (!first || is_before(f, first)))
            first = f;
    }
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

static uint64_t end_window(orr__lanes *s)
{
    uint64_t done = 0, now = s->main->now;
    write_pauses(s);
    for (unsigned i = 0; i < s->count; i++) {
        lane *l = s->of[i];
        l->f.is_in_window = false;
        done += l->done;
        if (l->done && l->f.now > now)
            now = l->f.now;
        if (l->f.last_arrival > s->main->last_arrival)
            s->main->last_arrival = l->f.last_arrival;
    }
    set_time(s->main, now);
    for (unsigned i = 0; i < s->count; i++) {
        move_crossings(s, s->of[i]);
        settle_flows(s, s->of[i]);
    }
    take_over_ends(s);
    s->recent = (7 * s->recent + done) / 8;
    return done;
}

static uint64_t run_window(orr__lanes *s, uint64_t end)
{
    s->end = end;
    for (unsigned i = 0; i < s->count; i++)
        s->of[i]->f.is_in_window = true;
    if (s->recent >= ORR__EVENTS_THAT_PAY && s->crew)
        orr_crew_run(s->crew);
    else
        run_some(s, 0, 1);
    return end_window(s);
}

/* ---- one instant, event by event ---- */

orr__fabric *orr__lanes_acting(orr__fabric *f, uint32_t node)
{
    orr__fabric *to = &f->lanes->of[f->lanes->of_node[node]]->f;
    to->now = f->now;
    to->order = f->order;
    return to;
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
    set_time(main, f->wheel.events[id].at);
    main->order = f->wheel.events[id].order;
    orr__fabric_run_event(f, id);
    if (f->last_arrival > main->last_arrival)
        main->last_arrival = f->last_arrival;
    if (main->list && main->under_way == 0)
        main->is_stopped = true;
    if (f->is_stopped || f->wheel.has_failed)
        take_over_ends(s);
}

static uint64_t run_instant(orr__lanes *s, uint64_t at)
{
    uint64_t done = 0;
    uint32_t id;
    orr__fabric *f;
    while (!s->main->is_stopped && (f = first_at(s, at)) != NULL) {
        if (!orr__wheel_next(&f->wheel, at, UINT64_MAX, &id))
            break;
        run_for_all(s, f, id);
        done++;
    }
    for (unsigned i = 0; i < s->count; i++) {
        move_crossings(s, s->of[i]);
        settle_flows(s, s->of[i]);
    }
    take_over_ends(s);
    return done;
}

/* ---- how far ---- */

static bool earliest(const orr__lanes *s, uint64_t *at, orr__fabric **who)
{
    uint64_t one;
    *who = NULL;
    for (unsigned i = 0; i <= s->count; i++) {
        orr__fabric *f = i < s->count ? &s->of[i]->f : s->main;
        if (!orr__wheel_peek(&f->wheel, &one) || (*who && one >= *at))
            continue;
        *at = one;
        *who = f;
    }
    return *who != NULL;
}

bool orr__lanes_next_at(const orr__fabric *f, uint64_t *at)
{
    orr__fabric *who;
    return earliest(f->lanes, at, &who);
}

/* The time of the first event, if it comes not after the bound.  A slot that is not open says only when it begins, so
 * it is opened; nothing can come before it any more. */
static bool find_first(orr__lanes *s, uint64_t bound, uint64_t *at)
{
    orr__fabric *who;
    while (earliest(s, at, &who) && *at <= bound) {
        if (orr__wheel_has_open(&who->wheel))
            return true;
        if (!orr__wheel_open(&who->wheel, *at))
            break;
    }
    return false;
}

/* When something may concern all; what lies before `now` has come to nothing. */
static uint64_t next_call(lane *l, uint64_t now)
{
    orr_heap_entry e;
    while (l->calls.count && l->calls.entries[0].key < now)
        (void)orr_heap_pop(&l->calls, &e);
    return l->calls.count ? l->calls.entries[0].key : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t end_of_window(orr__lanes *s, uint64_t first, uint64_t bound)
{
    uint64_t at, end = first + s->longest;
    if (bound < UINT64_MAX)
        end = least(end, bound + 1);
    if (orr__wheel_peek(&s->main->wheel, &at))
        end = least(end, at);
    for (unsigned i = 0; i < s->count; i++)
        end = least(end, next_call(s->of[i], first));
    /* whether the network stands still is a question for all (orr__fabric_watch_for_stall) */
    return least(end, s->main->last_arrival + s->main->longest_silence + 1);
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
    uint64_t done = 0, first = 0;
    f->is_in_event = true;
    while (done < most && !f->is_stopped) {
        const uint64_t bound = orr__fabric_bound(f);
        if (!find_first(s, bound, &first))
            break;
        const uint64_t end = end_of_window(s, first, bound);
        done += end > first ? run_window(s, end) : run_instant(s, first);
    }
    f->is_in_event = false;
    take_over_ends(s);
    if (f->wheel.has_failed)
        lack_memory(f);
    for (unsigned i = 0; i < s->count; i++)
        add_figures(&f->figures, &s->of[i]->f.figures);
    f->figures.events += done;
    return done;
}

/* ---- who is in which lane ---- */

/* A host is with the switch of its first link, unless there are too few switches for that. */
static uint32_t home_of(const orr__fabric *f, uint32_t node, bool are_apart)
{
    const orr__node *n = &f->nodes[node];
    if (n->kind != ORR__HOST || n->port_count == 0 || are_apart)
        return node;
    const uint32_t at = f->ports[f->ports[f->ports_of[n->first_port]].peer].node;
    return f->nodes[at].kind == ORR__HOST ? node : at;
}

/* Neighbours in number are neighbours in space, mostly; each lane gets as many ports.  How many lanes there are. */
static unsigned part_nodes(const orr__fabric *f, uint32_t *of_node, unsigned wanted)
{
    uint64_t *weights = orr_alloc(f->node_count, sizeof *weights);
    uint64_t before = 0;
    uint32_t homes = 0, last = ORR__NOBODY;
    unsigned used = 0;
    if (!weights)
        return 0;
    for (uint32_t n = 0; n < f->node_count; n++)
        homes += home_of(f, n, false) == n;
    const bool are_apart = homes < wanted;
    for (uint32_t n = 0; n < f->node_count; n++)
        weights[home_of(f, n, are_apart)] += f->nodes[n].port_count;
    for (uint32_t n = 0; n < f->node_count; n++) {
        const uint32_t at = (uint32_t)((before + weights[n] / 2) * wanted / f->port_count);
        if (!weights[n])
            continue;
        before += weights[n];
        used += at != last;
        last = at;
        of_node[n] = used - 1;
    }
    for (uint32_t n = 0; n < f->node_count; n++)
        of_node[n] = of_node[home_of(f, n, are_apart)];
    orr_free(weights);
    return used;
}

/* The shortest time in which anything can get from one lane to another, or become known of a host. */
static uint64_t longest_window(const orr__fabric *f, const uint32_t *of_node)
{
    uint64_t shortest = ORR__LATE;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const orr__port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (of_node[p->node] != of_node[q->node] || !q->is_switch)
            shortest = least(shortest, p->delay);
    }
    return shortest;
}

static unsigned lanes_wanted(const orr__fabric *f)
{
    const orr__packet_config *c = &f->config;
    uint32_t hosts = 0;
    if (c->is_compat || c->threads == 1 || f->approx || f->monitor || f->series || f->has_trace ||
        orr__writer_samples(f) || c->control == ORR__CONTROL_PINT)
        return 1;
    for (uint32_t n = 0; n < f->node_count; n++)
        hosts += f->nodes[n].kind == ORR__HOST;
    unsigned wanted = c->threads ? c->threads : orr_pool_threads(0);
    if (!c->threads && wanted > hosts / HOSTS_A_LANE)
        wanted = hosts / HOSTS_A_LANE;
    return wanted < MOST_LANES ? wanted : MOST_LANES;
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
    bool is_well = orr__wheel_init(&l->f.wheel, f->wheel.shift);
    for (uint32_t i = 0; i < f->port_count && is_well; i++) {
        (void)orr__wheel_new(&l->f.wheel, ORR__EV_ARRIVE, i);
        is_well = orr__wheel_new(&l->f.wheel, ORR__EV_END, i) != ORR__NO_EVENT;
    }
    if (is_well)
        return l;
    orr__wheel_fini(&l->f.wheel);
    orr_free(l);
    return NULL;
}

static bool make_lanes(orr__fabric *f, orr__lanes *s)
{
    s->frames_each = (uint32_t)(f->frame_room / s->count);
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
    s->crew = orr_crew_create(s->count, run_some, s);
    return s->crew != NULL;
}

orr_code orr__lanes_create(orr__fabric *f, orr_error *err)
{
    const unsigned wanted = lanes_wanted(f);
    if (wanted < 2)
        return ORR_OK;
    orr__lanes *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->main = f;
    s->of_node = orr_alloc(f->node_count, sizeof *s->of_node);
    s->of = orr_alloc(wanted, sizeof *s->of);
    s->count = s->of_node && s->of ? part_nodes(f, s->of_node, wanted) : 0;
    s->longest = s->count ? longest_window(f, s->of_node) : 0;
    if (s->count > 1 && s->longest > 0) {
        if (make_lanes(f, s))
            return ORR_OK;
        orr__lanes_destroy(f);
        return orr_no_memory(err);
    }
    const bool has_memory = s->count > 0;
    orr_free(s->of_node);
    orr_free(s->of);
    orr_free(s);
    return has_memory ? ORR_OK : orr_no_memory(err);
}

static void destroy_lane(lane *l)
{
    if (!l)
        return;
    orr__wheel_fini(&l->f.wheel);
    orr_heap_fini(&l->calls);
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
    for (unsigned i = 0; i < s->count; i++)
        destroy_lane(s->of[i]);
    orr_free(s->of);
    orr_free(s->of_node);
    orr_free(s->pauses);
    orr_free(s);
    f->lanes = NULL;
}
