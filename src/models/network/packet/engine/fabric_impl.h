/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_impl.h - what the files of the packet network share.
 *
 *     host:   flows -> NIC (who is next?) -> port ~~wire~~> port of a switch
 *     switch: port in -> buffer (may it stay? pause?) -> queue by class -> port out ~~wire~~> ...
 *
 * A port owns its transmitter and the frames on its outgoing wire: they arrive in order, so only
 * the first of them is a pending event.  The end of a transmission is an event only if something
 * waits for it; until then it is just a time.  With rules.orders_by_schedule events have the
 * numbers that the reference would have assigned, so none of this changes any order.  Otherwise the
 * order within an instant is determined by the actor (fab_tie), so that it does not depend on the
 * rest of the network. */
#ifndef ORR_MODELS_FABRIC_IMPL_H
#define ORR_MODELS_FABRIC_IMPL_H

#include "fab_rules.h"
#include "fabric.h"

#include "base/memory/map.h"
#include "base/rng.h"
#include "event_wheel.h"
#include "fab_observe.h"
#include "fab_parts.h"
#include "models/network/ecmp.h"

#define FAB_NONE UINT32_MAX
#define FAB_PORT_MASK 0x0fffffffu    /* a port and, above FAB_CLASS_SHIFT, a class */
#define FAB_LATE ((uint64_t)1 << 58) /* ticks: upper limit of any time; sums of a few still fit */

typedef enum fab_event_kind {
    FAB_EV_DEAD, /* a cancelled timer */
    FAB_EV_ARRIVE,
    FAB_EV_END,
    FAB_EV_WAKE,
    FAB_EV_HOP, /* a message on its way to the NIC: two of them */
    FAB_EV_START,
    FAB_EV_LIST, /* the next flow of a list */
    FAB_EV_ALPHA,
    FAB_EV_DECREASE,
    FAB_EV_INCREASE,
    FAB_EV_TIMEOUT,
    FAB_EV_DOWN,
    FAB_EV_UP,
    FAB_EV_STOP,
    FAB_EV_NIC_RESUME,
    FAB_EV_NIC_READY,
    FAB_EV_PAUSE_OVER, /* of a port: all classes; or one, with FAB_CLASS_SHIFT */
    FAB_EV_LOOK,       /* of fab_observe.c */
    FAB_EV_SILENT_LOOK /* the same, uncounted */
} fab_event_kind;

/* The order of events in one instant, unless rules.orders_by_schedule: ends of transmissions and
 * arrivals by port, then events of hosts, by node and in the order of scheduling, then global
 * ones. */
typedef enum fab_tie { FAB_TIE_END, FAB_TIE_ARRIVE, FAB_TIE_HOST, FAB_TIE_ALL } fab_tie;
enum { FAB_TIE_SHIFT = FAB_ORDER_BITS - 2 };

typedef struct fab_path {
    uint64_t delay, transmission, bandwidth;
} fab_path;

typedef struct fab_routes fab_routes;
typedef struct fab_approx fab_approx;
typedef struct fab_lanes fab_lanes;

/* A congestion control.  Its state is zeroed: `size` bytes per flow, or as returned by `bytes`. */
typedef struct fab_control {
    size_t size;
    size_t (*bytes)(const fab *f);
    unsigned int_bytes; /* telemetry added to data packets */
    void (*start)(fab *f, uint32_t flow);
    void (*acked)(fab *f, uint32_t flow, const fab_frame *ack); /* or a NACK */
    void (*timed_out)(fab *f, uint32_t flow);
    void (*stop)(fab *f, uint32_t flow);
    void (*timer)(fab *f, uint32_t flow, fab_event_kind which);
    void (*forward)(fab *f, fab_port *out, fab_frame *data); /* a switch forwards it */
} fab_control;

extern const fab_control fab_dcqcn, fab_hpcc, fab_timely, fab_dctcp, fab_pint, fab_nscc;

/* The whole network, or a lane of it: a lane is a copy with its own calendar, free frames and
 * statistics; what it points to is shared, and each field is written by one lane only
 * (fab_lanes.c). */
struct fab {
    uint64_t now, order; /* of the running event */
    fab_rules rules;
    fab_watch watch; /* observers */
    orr_event_line *line, own_line;
    uint64_t unit;       /* ticks per ns */
    unsigned node_shift; /* of a node in the order key of its events */
    bool is_in_event, has_begun;

    /* Lanes. */
    fab *main;         /* the whole: this one, or the one this lane belongs to */
    fab_lanes *lanes;  /* NULL: no lanes */
    uint32_t lane;     /* which */
    bool is_in_window; /* other lanes run at the same time */

    /* Pending events; the fixed ones are FAB_EV_ARRIVE and FAB_EV_END of each port. */
    fab_wheel wheel;

    /* What there is. */
    fab_port *ports;
    uint32_t port_count;
    fab_queue *queues; /* FAB_CLASSES per port */
    fab_frame *frames;
    size_t frame_count, frame_room;
    uint32_t free_frame;
    fab_flow *flows;
    size_t flow_count, flow_room;
    uint32_t free_flow;    /* rules.reuses_last_flow: a LIFO list */
    fab_places free_flows; /* otherwise the lowest slot first, whichever lane freed it */
    fab_node *nodes;
    uint32_t node_count;
    uint32_t *ports_of; /* by node */
    fab_nic *nics;
    uint32_t nic_count;
    /* FAB_CHAIN_MOST per port: by depth, the port that caused its last such pause */
    uint32_t *chains;
    fab_routes *routes;
    orr_map *pair_ports; /* number of flows of a pair of hosts so far */
    orr_map *pair_last;  /* its latest ordered flow */
    struct {             /* address space of the above: nothing ever moves */
        orr_reserve frames, hops, flows, states;
        orr_reserve ports; /* with queues and events */
    } space;

    /* Congestion control. */
    const fab_control *control;
    void *states; /* by flow */
    size_t state_bytes;
    fab_hop *hops; /* hops_each per frame */
    uint32_t hops_each;
    uint32_t int_bytes, ack_bytes;
    void *draws; /* of rules.draws */
    uint64_t max_rtt, max_bdp;

    /* Listener for completed flows, and flows with given start times. */
    fab_listener listener;
    struct {
        const orr__flow_list *flows; /* NULL: none */
        uint32_t *order;             /* those with a start time, sorted */
        size_t at, count;
        uint64_t base; /* order key of its first flow */
        uint32_t event;
    } list;
    uint64_t under_way; /* flows */

    /* How the run ends. */
    struct {
        bool is_stopped, is_stalled, is_out_of_time;
        orr_code code;
        orr_error error;
    } end;
    uint64_t planned;         /* pending failures and repairs */
    uint64_t last_arrival;    /* of a frame, anywhere */
    uint64_t longest_silence; /* ticks without arrivals before can_move is checked */

    fab_approx *approx; /* NULL: every event is run */
    uint64_t events_of_batch;
    fab_figures figures;
    fab_flow_times times; /* of completed flows; main has them all */
    orr__packet_config config;
};

/* ---- events ---- */

/* Order key of a global event. */
static inline uint64_t fab_global_order(fab *f)
{
    const uint64_t number = f->line->order++;
    return f->rules.orders_by_schedule ? number : (uint64_t)FAB_TIE_ALL << FAB_TIE_SHIFT | number;
}

static inline uint64_t fab_order_within(const fab *f, uint64_t order)
{
    return order & (((uint64_t)1 << f->node_shift) - 1);
}

/* Order key of a host's event. */
static inline uint64_t fab_node_order(fab *f, uint32_t node)
{
    return (uint64_t)FAB_TIE_HOST << FAB_TIE_SHIFT | (uint64_t)node << f->node_shift |
           fab_order_within(f, f->nodes[node].events++);
}

/* The node of an event; FAB_NONE: global. */
static inline uint32_t fab_event_node(const fab *f, fab_event_kind kind, uint32_t who)
{
    switch (kind) {
    case FAB_EV_WAKE:
    case FAB_EV_NIC_RESUME:
    case FAB_EV_NIC_READY:
        return f->ports[who].node;
    case FAB_EV_PAUSE_OVER:
        return f->ports[who & FAB_PORT_MASK].node;
    case FAB_EV_ALPHA:
    case FAB_EV_DECREASE:
    case FAB_EV_INCREASE:
    case FAB_EV_TIMEOUT:
        return f->flows[who].src;
    default:
        return FAB_NONE;
    }
}

static inline uint64_t fab_event_order(fab *f, fab_event_kind kind, uint32_t who)
{
    const uint32_t node = f->rules.orders_by_schedule ? FAB_NONE : fab_event_node(f, kind, who);
    return node == FAB_NONE ? fab_global_order(f) : fab_node_order(f, node);
}

/* A new event; FAB_NO_EVENT: out of memory, and the run ends. */
static inline uint32_t fab_after(fab *f, uint64_t ticks, fab_event_kind kind, uint32_t who)
{
    const bool is_for_all = fab_event_node(f, kind, who) == FAB_NONE;
    fab_wheel *wheel = is_for_all ? &f->main->wheel : &f->wheel;
    const uint32_t id = fab_wheel_new(wheel, (uint8_t)kind, who);
    if (id != FAB_NO_EVENT)
        fab_wheel_at(wheel, id, f->now + ticks, fab_event_order(f, kind, who));
    return id;
}

static inline void fab_cancel(fab *f, uint32_t *id)
{
    if (*id != FAB_NO_EVENT)
        fab_wheel_event(&f->wheel, *id)->kind = FAB_EV_DEAD;
    *id = FAB_NO_EVENT;
}

void fab_fail(fab *f, orr_code code, const char *fmt, ...) ORR_PRINTF(3, 4);
static inline void fab_no_memory(fab *f)
{
    fab_fail(f, ORR_ENOMEM, "out of memory");
}
void fab_run_event(fab *f, uint32_t id); /* after it was taken from the wheel */
uint64_t fab_bound(const fab *f);        /* the clock's, in ticks */

/* ---- frames ---- */

uint32_t fab_frame_new_slow(fab *f);

/* FAB_NONE: out of memory. */
static inline uint32_t fab_frame_new(fab *f)
{
    const uint32_t id = f->free_frame;
    if (id == FAB_NONE)
        return fab_frame_new_slow(f);
    f->free_frame = f->frames[id].next;
    /* for the next call; harmless if there is none */
    __builtin_prefetch(&f->frames[f->free_frame], 1);
    return id;
}

/* ---- start and end of flows (fab_flows.c) ---- */

uint64_t fab_next_start(const fab *f);       /* of a list; UINT64_MAX: none is left */
void fab_await_list(fab *f);                 /* schedules its event */
void fab_send_next(fab *f);                  /* that event */
void fab_start_before(fab *f, uint64_t end); /* hands those of a list to lanes */
/* Unfinished flows, in an order that does not depend on lanes; to be freed.  False: out of
 * memory. */
int fab_by_number(const void *a, const void *b, void *flows); /* for qsort_r: ids of flows */
bool fab_flows_under_way(const fab *f, uint32_t **out, size_t *count);
void fab_flow_let_go(fab *f, uint32_t flow); /* it may be freed then */
/* It has completed: counts it and notifies listeners. */
void fab_flow_report_done(fab *main, const fab_flow_end *end);

/* ---- lanes (fab_lanes.c) ---- */

orr_code fab_lanes_create(fab *f, orr_error *err) ORR_MUST_CHECK; /* if they pay */
void fab_lanes_destroy(fab *f);
uint64_t fab_lanes_run(fab *f, uint64_t most); /* as fab_run */
bool fab_lanes_next_at(const fab *f, uint64_t *at);
fab *fab_lanes_acting(fab *f, uint32_t node);
void fab_lanes_follow_routes(fab *f); /* after routes have been recomputed */
void fab_lanes_cross(fab *f, const fab_port *p, const fab_flight *flight);
void fab_lanes_watch(fab *f, const fab_port *p, const fab_flight *flight);
void fab_lanes_expect(fab *f, uint64_t at);                   /* a global event is possible then */
void fab_lanes_expect_of(fab *f, uint32_t node, uint64_t at); /* of a node, while no lane runs */
/* the wheel with the events of a node */
fab_wheel *fab_lanes_wheel(const fab *f, uint32_t node);
/* In a window: recorded for delivery after it. */
void fab_lanes_note_done(fab *f, const fab_flow *w, const fab_flow_end *end);
void fab_lanes_note_arrival(fab *f, const fab_flow *w);
void fab_lanes_drop(fab *f, uint32_t frame);
void fab_lanes_let_go(fab *f, uint32_t flow);
void fab_lanes_note_pause(fab *f, const fab_port *p, bool pauses);
void fab_lanes_note_flow(fab *f, const fab_flow_note *n);

/* The fabric that acts for a node, at the time of the running event; in a window the current
 * lane. */
static inline fab *fab_acting(fab *f, uint32_t node)
{
    return f->lanes && !f->is_in_window ? fab_lanes_acting(f, node) : f;
}

static inline void fab_frame_drop(fab *f, uint32_t id)
{
    fab_frame *p = &f->frames[id];
    const uint32_t flow = p->flow;
    if (f->lanes) {
        fab_lanes_drop(f, id);
        return;
    }
    p->next = f->free_frame;
    f->free_frame = id;
    if (flow != FAB_NONE && --f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        fab_flow_let_go(f, flow);
}

/* ---- ports (fab_port.c) ---- */

uint64_t fab_transmission_time(const fab *f, uint64_t bytes, uint64_t rate);

/* Is it sending, as seen by the running event? */
static inline bool fab_port_is_busy(const fab *f, const fab_port *p)
{
    return p->busy_until > f->now || (p->busy_until == f->now && p->end_order > f->order);
}

static inline uint32_t fab_port_of(const fab *f, const fab_port *p)
{
    return (uint32_t)(p - f->ports);
}

/* Requests an event at the end of the transmission. */
static inline void fab_port_await(fab *f, fab_port *p)
{
    if (p->has_end)
        return;
    p->has_end = true;
    fab_wheel_at(&f->wheel, 2 * fab_port_of(f, p) + 1, p->busy_until, p->end_order);
}

/* It sends, or is paused, for the first time. */
static inline void fab_port_mark_used(const fab *f, const fab_port *p)
{
    uint8_t *used = f->watch.port_used;
    if (used && !used[fab_port_of(f, p)])
        used[fab_port_of(f, p)] = 1;
}

/* Uniform in [0, 1), from the port's generator. */
static inline double fab_port_coin(fab_port *p)
{
    return (double)(orr_splitmix64(&p->coins) >> 11) * 0x1p-53;
}

void fab_port_transmit(fab *f, fab_port *p, uint32_t frame);
/* Puts a frame on the wire; `owner` has the arrivals at its other end. */
void fab_port_put_on_wire(fab *owner, fab_port *p, const fab_flight *flight);
void fab_port_arrive(fab *f, uint32_t from); /* the first frame on the wire of a port */
void fab_port_take_down(fab *f, fab_port *p);
void fab_port_bring_up(fab *f, fab_port *p);
void fab_port_set_paused(fab *f, fab_port *p, uint8_t classes);

/* Time spent sending, up to now. */
static inline uint64_t fab_port_busy_ticks(const fab *f, const fab_port *p)
{
    return p->busy_ticks - (p->busy_until > f->now ? p->busy_until - f->now : 0);
}

/* The longest queue ever: samplers may reset max_queued in between. */
static inline uint64_t fab_port_longest_queue(const fab_port *p)
{
    return p->longest_queue > p->max_queued ? p->longest_queue : p->max_queued;
}

/* The longest queue since the last call. */
static inline uint64_t fab_port_take_longest(fab_port *p)
{
    const uint64_t longest = p->max_queued;
    p->longest_queue = fab_port_longest_queue(p);
    p->max_queued = p->queued_bytes;
    return longest;
}

/* Time spent paused, up to now. */
static inline uint64_t fab_port_paused_ticks(const fab *f, const fab_port *p)
{
    return p->paused_ticks + (p->paused ? f->now - p->paused_since : 0);
}

void fab_watch_for_stall(fab *f); /* only timers run: is it stalled? */

static inline void fab_queue_push(fab *f, uint32_t *head, uint32_t *tail, uint32_t frame)
{
    f->frames[frame].next = FAB_NONE;
    if (*head == FAB_NONE)
        *head = frame;
    else
        f->frames[*tail].next = frame;
    *tail = frame;
}

static inline uint32_t fab_queue_pop(fab *f, uint32_t *head)
{
    const uint32_t frame = *head;
    *head = f->frames[frame].next;
    return frame;
}

/* ---- hosts (fab_host.c) ---- */

void fab_host_try(fab *f, fab_port *p);
void fab_host_receive(fab *f, uint32_t frame);
void fab_host_forward(fab *f, uint32_t node, uint32_t frame);
void fab_host_ready(fab *f, uint32_t flow); /* it starts */
void fab_host_timeout(fab *f, uint32_t flow);
fab_nic *fab_host_pauser(fab *f, uint32_t port);
void fab_host_pause_ends(fab *f, uint32_t port);
void fab_host_pause_came(fab *f, fab_port *p); /* from a host, at the port it is for */
orr_code fab_host_redistribute(fab *f, orr_error *err) ORR_MUST_CHECK;

/* TRANSPORT selective (fab_host.c). */
static inline bool fab_flow_misses(const fab_flow *w)
{
    return w->is_selective && w->repeat->missing_count;
}
void fab_selective_forget(fab_flow *w);

void fab_nic_update(fab *f, uint32_t flow); /* its bytes, window or state have changed */
void fab_nic_fini(fab_nic *n);

/* With its next_at (packet-network.md 8.2). */
void fab_flow_change_rate(fab *f, uint32_t flow, uint64_t rate);
void fab_flow_set_rate(fab *f, uint32_t flow, uint64_t rate);

/* A rate from a real number, truncated; never above `most`. */
static inline uint64_t fab_whole_rate(double rate, uint64_t most)
{
    return rate < (double)most ? rate > 0 ? (uint64_t)rate : 0 : most;
}

static inline uint64_t fab_at_least(uint64_t rate, uint64_t least)
{
    return rate < least ? least : rate;
}

static inline uint64_t fab_at_most(uint64_t rate, uint64_t most)
{
    return rate > most ? most : rate;
}

static inline void *fab_control_state(const fab *f, uint32_t flow)
{
    return (char *)f->states + flow * f->state_bytes;
}

/* ---- failures (fab_routes.c) ---- */

orr_code fab_plan_failure(fab *f, orr_error *err) ORR_MUST_CHECK; /* LINK_DOWN */
void fab_link_take_down(fab *f, uint32_t port);                   /* the link at that port */
void fab_link_repair(fab *f, uint32_t port);

/* ---- switches (fab_switch.c) ---- */

void fab_switch_set_up(fab *f, uint64_t nic_rate);
void fab_switch_receive(fab *f, fab_port *in, uint32_t frame);
void fab_switch_try(fab *f, fab_port *p);
void fab_switch_forget(fab *f, fab_port *p, uint32_t frame); /* it never leaves here */

/* A port may be able to send. */
static inline void fab_port_try(fab *f, fab_port *p)
{
    f = fab_acting(f, p->node);
    if (p->is_switch)
        fab_switch_try(f, p);
    else
        fab_host_try(f, p);
}

/* ---- routes (fab_routes.c) ---- */

orr_code fab_find_routes(fab *f, orr_error *err) ORR_MUST_CHECK;
void fab_routes_free(fab_routes *r);
/* The port of a switch, or of a host, towards a host; FAB_NONE: there is no route. */
uint32_t fab_route(const fab *f, uint32_t node, const fab_frame *p);
uint32_t fab_nic_towards(const fab *f, uint32_t from, uint32_t to, uint32_t ports, uint32_t seed);
/* Prepares routes to this host, so that later lookups create nothing (they may run in a window). */
void fab_need_routes(const fab *f, uint32_t host);
bool fab_find_path(const fab *f, uint32_t src, uint32_t dst, fab_path *out);
uint32_t fab_longest(const fab *f); /* the most links on a route */
/* Are the paths of all pairs in a table?  Otherwise each is followed, which is slower. */
bool fab_knows_paths(const fab *f);
uint64_t fab_pairs(const fab *f); /* destinations times routers */

static inline uint64_t fab_path_rtt(const fab_path *p)
{
    return 2 * p->delay + p->transmission;
}
static inline uint64_t fab_path_bdp(const fab *f, const fab_path *p)
{
    return (uint64_t)((unsigned __int128)fab_path_rtt(p) * p->bandwidth / (1000000000u * f->unit) /
                      8);
}

/* ---- pause chains (fab_stall.c) ---- */

void fab_pause_note_cause(const fab *f, const fab_port *from, fab_frame *pfc);
void fab_pause_begins(fab *f, fab_port *p, const fab_frame *pfc);
void fab_pause_ends(fab *f, fab_port *p);
/* its resume frame was lost */
void fab_pause_is_unresumed(fab *f, fab_port *p, const fab_frame *pfc);
void fab_pause_is_over(fab *f, uint32_t who); /* FAB_EV_PAUSE_OVER */

/* Ticks a flow would take on an idle network; 0: there is no route. */
uint64_t fab_flow_ideal(const fab *f, const fab_flow *w);

/* ---- skipping of exact periods (fab_approx.c) ---- */

/* Counters before and after a period. */
typedef struct fab_port_counts {
    uint64_t frames, busy, bytes, paused;
    uint32_t pauses;
} fab_port_counts;

struct fab_approx {
    uint64_t wait;     /* events until an anchor flow is chosen */
    uint32_t anchor;   /* port at the end of whose wire it is received; FAB_NONE: none chosen */
    uint64_t patience; /* events to wait after a failure */
    bool is_asked;     /* else only what leaves no trace is skipped */
    uint64_t passed;   /* skipped events; not counted if asked */
    uint64_t begun_events;
    uint64_t compare, tries; /* event from which states are compared again; number of comparisons */
    orr_buf before, after;   /* states as words; before.len 0: none yet */
    uint64_t begun_at;
    fab_figures figures;
    fab_port_counts *ports;
    uint64_t *acked; /* by flow */
    size_t acked_room;
    uint32_t *ids; /* pending events */
    size_t id_room;
};

orr_code fab_approx_create(fab *f, orr_error *err) ORR_MUST_CHECK; /* if requested */
/* Of a run that has begun: for long ones, if it has no visible effect. */
orr_code fab_approx_begin(fab *f, orr_error *err) ORR_MUST_CHECK;
void fab_approx_destroy(fab_approx *a); /* NULL is fine */
void fab_approx_choose(fab *f);         /* time to choose an anchor */
void fab_approx_look(fab *f);           /* a packet has arrived over the anchor's wire */

#endif
