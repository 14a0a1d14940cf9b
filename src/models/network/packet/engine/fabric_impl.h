/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_impl.h - what the files of the packet network share.
 *
 *     host:   flows -> NIC (who is next?) -> port ~~wire~~> port of a switch
 *     switch: port in -> buffer (may it stay? pause?) -> queue by class -> port out ~~wire~~> ...
 *
 * A port owns its transmitter and the frames on the wire that leads away from it: they arrive in
 * the order in which they left, so only the first of them is a pending event.  The end of a
 * transmission is an event only if somebody waits for it; until then it is a time.  With
 * rules.orders_by_schedule events have the numbers that the reference would have given them, so
 * none of this changes any order.  Otherwise the order of one instant is fixed by who acts
 * (fab_tie), so that it does not depend on what happens elsewhere in the network. */
#ifndef ORR_MODELS_FABRIC_IMPL_H
#define ORR_MODELS_FABRIC_IMPL_H

#include "fab_rules.h"
#include "fabric.h"

#include "base/memory/map.h"
#include "base/rng.h"
#include "event_wheel.h"
#include "fab_observe.h"
#include "flow_times.h"
#include "place_bits.h"

#define FAB_NONE UINT32_MAX
#define FAB_PORT_MASK 0x0fffffffu    /* a port and, above FAB_CLASS_SHIFT, a class */
#define FAB_LATE ((uint64_t)1 << 58) /* ticks: nothing takes longer; sums of a few still fit */

enum {
    FAB_CLASSES = 8,
    FAB_CLASS_SHIFT = 28,
    FAB_PFC_BYTES = 31,       /* packet-network.md 6.2 */
    FAB_HEADER_BYTES = 36,    /* of a data packet, without INT */
    FAB_RESERVE = 4096,       /* packet-network.md 7.1: of each port and class */
    FAB_RESUME_OFFSET = 3072, /* packet-network.md 7.2 */
    FAB_FIRST_PORT = 10000,
    FAB_GOOD_ROUTES = 8, /* that a flow remembers */
    FAB_CHAIN_MOST = 16  /* pauses in a chain that are told apart */
};

typedef enum fab_event_kind {
    FAB_EV_DEAD, /* a timer that was taken back */
    FAB_EV_ARRIVE,
    FAB_EV_END,
    FAB_EV_WAKE,
    FAB_EV_HOP, /* a message on its way into the NIC: two of them */
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

/* The order of events that fall on one instant, unless rules.orders_by_schedule: ends of
 * transmissions and arrivals by port, then what a host does by itself, by node and in the order in
 * which it was scheduled there, then what concerns all. */
typedef enum fab_tie { FAB_TIE_END, FAB_TIE_ARRIVE, FAB_TIE_HOST, FAB_TIE_ALL } fab_tie;
enum { FAB_TIE_SHIFT = FAB_ORDER_BITS - 2 };

typedef enum fab_frame_kind {
    FAB_FRAME_DATA,
    FAB_FRAME_ACK,
    FAB_FRAME_NACK,
    FAB_FRAME_PFC,
    FAB_FRAME_TRIMMED /* data that a switch has cut to its header */
} fab_frame_kind;

/* A packet: a line of the cache. */
typedef struct fab_frame {
    _Alignas(64) uint64_t sequence; /* data: its first byte; ACK and NACK: the byte expected next */
    uint64_t stamp;                 /* when the data left its host */
    uint32_t next;                  /* in the same queue; or free */
    uint32_t flow;
    uint32_t size; /* on the wire */
    uint32_t payload;
    uint32_t in;       /* the port it came in through */
    uint32_t from, to; /* hosts */
    uint32_t ports;    /* source | destination << 16, as they stand in the packet */
    uint16_t power;    /* HPCC-PINT; else what parts the packets of a flow (LOAD_BALANCE) */
    uint8_t kind;      /* fab_frame_kind */
    uint8_t class;     /* of a PFC frame: the one that it pauses */
    bool is_marked;    /* by ECN */
    bool echoes_mark;  /* ACK: what it acknowledges was marked */
    bool pauses;       /* PFC */
    bool asks_ack;     /* data: nothing follows it before it is acknowledged */
    uint8_t hop_count; /* HPCC */
    bool is_last;      /* data: the flow's last bytes; ACK and NACK: nothing more is expected */
} fab_frame;

/* What a switch tells HPCC of itself (packet-network.md 8.2). */
typedef struct fab_hop {
    uint64_t time, bytes;
    uint32_t queue;
    uint32_t port;
} fab_hop;

/* A frame on a wire. */
typedef struct fab_flight {
    uint64_t at, order; /* of its arrival */
    uint32_t frame;
    uint32_t flow; /* FAB_NONE: it has none; the highest bit: it goes back to the sender */
} fab_flight;

/* One class of one switch port. */
typedef struct fab_queue {
    _Alignas(32) uint32_t ingress, headroom, egress; /* bytes */
    uint32_t head, tail;                             /* frames */
    uint32_t expiries;                               /* FAB_EV_PAUSE_OVER to come, of this class */
} fab_queue;

/* In lines of the cache: what every frame needs, what most need, and the rest. */
typedef struct fab_port {
    _Alignas(64) uint64_t busy_until;
    uint64_t end_order; /* of the transmission that began last */
    fab_flight *wire;   /* frames on the wire to the peer: a ring */
    uint32_t wire_first, wire_count, wire_room;
    uint32_t wire_frame; /* the first of them */
    uint32_t peer, node;
    union {
        uint32_t nic;      /* of a host's port */
        uint32_t headroom; /* of a switch's port: bytes */
    };
    uint8_t paused;     /* classes that must not be sent: a bit each */
    uint8_t pause_sent; /* classes that the peer was told not to send */
    uint8_t queued;     /* classes with frames */
    uint8_t last_class; /* served */
    uint8_t shift;      /* of the threshold */
    bool has_end;       /* the end of the transmission is a pending event */
    bool is_switch, is_down;
    bool is_lossy; /* error is not 0 */
    bool crosses_lanes,
        leads_to_host; /* of fab_lanes.c: the wire leads to another lane; to a host */
    uint8_t urgent;    /* frames of class 0 sent in a row (TRIMMING) */

    _Alignas(64) uint64_t delay; /* ticks */
    uint32_t size_known[2];      /* how long frames of these sizes take */
    uint32_t time_known[2];
    uint64_t queued_bytes, max_queued;
    uint64_t kmin;
    uint64_t bytes_sent, frames_sent;

    _Alignas(64) uint64_t busy_ticks;
    uint64_t rate; /* bit/s */
    uint64_t kmax;
    double pmax;
    double error;    /* of frames that arrive here; 0: none is lost */
    uint64_t coins;  /* its own generator: what it marks and loses, unless rules.draws */
    uint32_t loss;   /* number of the lossy link (fab_draws) */
    uint32_t number; /* from 1, at its node */
    uint32_t cost;   /* of the way over its cable */
    double pint_u;   /* HPCC-PINT: how much it is used (packet-network.md 8.5) */
    uint64_t last_at;
    uint32_t last_size;
    uint8_t unresumed;            /* paused classes whose frame to go on was lost (PAUSE_EXPIRES) */
    uint8_t pause_depth, deepest; /* of its pause: how many behind each other; the most ever */
    uint32_t lost;                /* frames that should have arrived here */
    uint32_t pause_head;          /* port at the head of that chain */
    uint32_t main_head;           /* the head of most of its pauses, by time */
    uint64_t main_head_ticks, longest_pause;
    uint64_t longest_queue;              /* bytes, up to the latest fab_port_take_longest */
    uint32_t pause_count;                /* pauses received */
    uint64_t paused_since, paused_ticks; /* some class of it; without the pause that lasts */
    uint64_t dead_until; /* what arrives here up to then was on the link when it failed */
} fab_port;

typedef struct fab_node {
    uint32_t first_port, port_count; /* in ports_of */
    uint32_t available, shared;      /* bytes of buffer, 32 bit as the reference has it */
    uint8_t kind;
    uint64_t events; /* of rank FAB_TIE_HOST that it has scheduled */
} fab_node;

/* Flows by their place at the NIC, a bit each: see fab_nic.c. */
typedef struct fab_nic {
    uint32_t *flows; /* by place */
    size_t flow_room;
    uint32_t places, count; /* places given out; flows in the list */
    uint32_t last;          /* the flow served last: its place, or its number in the list */
    bool last_is_number;
    uint8_t classes; /* that flows have had: a bit each */
    fab_places listed, done, ready[FAB_CLASSES];
    uint32_t ack_head, ack_tail;
    uint32_t wake;   /* an event, or FAB_NO_EVENT */
    uint32_t *paced; /* a heap of the flows that are not due, by the time at which they are */
    size_t paced_count, paced_room;
    uint32_t pauses_made;
    uint8_t pause_class; /* of the latest pause it made */
    bool is_between_pauses;
} fab_nic;

/* TRANSPORT selective, the sender of a flow: see fab_selective.c. */
typedef struct fab_resend {
    uint64_t missing_count; /* packets to send again */
    uint64_t missing_from;  /* no packet before it is to be sent again */
    uint64_t recovered;     /* the order of packets tells no more of those before this one */
    uint64_t settled;       /* packets before this one were told of */
    uint64_t farthest;      /* packet that was told of */
    uint64_t resent_at;     /* when a packet was sent again last */
    uint64_t news,
        losses; /* bytes that the latest acknowledgement told of first, or made missing */
    uint64_t *told, *missing; /* a bit a packet */
} fab_resend;

/* In lines of the cache, by who needs them when: with many flows each touch comes from memory. */
typedef struct fab_flow {
    /* The sender, for every packet and acknowledgement. */
    _Alignas(64) uint64_t size; /* bytes */
    uint64_t sent, acked;       /* bytes; sent: the next one to go */
    uint64_t rate, line_rate;
    uint64_t window;
    uint64_t next_at;              /* not before this time */
    uint32_t port;                 /* its NIC */
    uint32_t place;                /* at the NIC; or the next flow that is free */
    _Alignas(64) uint64_t highest; /* bytes sent ever */
    uint64_t in_flight;            /* bytes */
    uint64_t heard_at; /* when anything was acknowledged; 0: not since the timer was set */
    uint32_t heap_place;
    uint32_t frames; /* on their way */
    uint32_t last_size;
    uint32_t timeout; /* an event */
    uint32_t src, dst;
    uint16_t src_port, dst_port;
    uint16_t entropy;
    uint8_t timeouts; /* since anything was acknowledged */
    uint8_t class;
    bool is_complete, is_listed;
    bool is_open, is_due; /* there is something to send; its time has come */
    bool is_used : 1;
    bool is_selective : 1;  /* TRANSPORT selective */
    bool counts_flight : 1; /* the window limits in_flight, also for what is sent again */
    bool awaits_route : 1;  /* it starts when a repair gives it one */
    uint8_t good_count;
    /* The receiver. */
    _Alignas(64) uint64_t expected;
    uint64_t last_nacked, nack_at;
    uint64_t size_rx;  /* copy of size in the receiver's cache line */
    uint64_t *got;     /* TRANSPORT selective: a bit a packet */
    uint64_t gained;   /* packets of `got` */
    uint32_t ack_port; /* its NIC */
    bool has_arrived;
    /* The sender, seldom. */
    _Alignas(64) uint64_t started_at;
    uint64_t token;
    uint64_t base_rtt;
    uint64_t last_sent_at; /* with LOAD_BALANCE */
    uint64_t number;       /* of flows that came before it */
    fab_resend *repeat;    /* NULL: not selective */
    uint16_t good[FAB_GOOD_ROUTES];
} fab_flow;
_Static_assert(sizeof(fab_flow) == 256, "a flow is four lines of the cache");

/* Of a flow that is done. */
typedef struct fab_flow_end {
    uint64_t token, size;
    uint64_t took, ideal; /* ticks; alone it would have taken: 0, not known */
} fab_flow_end;

typedef struct fab_path {
    uint64_t delay, transmission, bandwidth;
} fab_path;

typedef struct fab_routes fab_routes;
typedef struct fab_approx fab_approx;
typedef struct fab_lanes fab_lanes;

/* A way to adjust the rate of flows.  State is `size` bytes a flow, or `bytes` of them, zeroed. */
typedef struct fab_control {
    size_t size;
    size_t (*bytes)(const fab *f);
    unsigned int_bytes; /* that it adds to data packets */
    void (*start)(fab *f, uint32_t flow);
    void (*acked)(fab *f, uint32_t flow, const fab_frame *ack); /* or a NACK */
    void (*timed_out)(fab *f, uint32_t flow);
    void (*stop)(fab *f, uint32_t flow);
    void (*timer)(fab *f, uint32_t flow, fab_event_kind which);
    void (*forward)(fab *f, fab_port *out, fab_frame *data); /* a switch sends it on */
} fab_control;

extern const fab_control fab_dcqcn, fab_hpcc, fab_timely, fab_dctcp, fab_pint, fab_nscc;

struct fab {
    uint64_t now, order; /* of the event that runs */
    fab_rules rules;
    orr_event_line *line, own_line;
    uint64_t unit;       /* ticks a ns */
    unsigned node_shift; /* of a node in the order of its events */
    bool is_in_event;
    fab *main;         /* the whole: this one, or the one whose lane this is */
    fab_lanes *lanes;  /* NULL: it is not parted */
    uint32_t lane;     /* which */
    bool is_in_window; /* other lanes run at the same time */
    bool has_begun;
    /* its fixed events are those of the ports: FAB_EV_ARRIVE and FAB_EV_END of each */
    fab_wheel wheel;
    fab_port *ports;
    uint32_t port_count;
    fab_queue *queues; /* 8 a port */
    fab_frame *frames;
    orr_reserve frame_space, hop_space, flow_space, state_space;
    orr_reserve port_space; /* with queues and events */
    size_t frame_count, frame_room;
    uint32_t free_frame;
    fab_flow *flows;
    size_t flow_count, flow_room;
    uint32_t free_flow;    /* rules.reuses_last_flow: the last one first */
    fab_places free_flows; /* else the lowest number first, whoever let it go */
    const fab_control *control;
    void *states; /* of the control, by flow */
    size_t state_bytes;
    fab_hop *hops; /* hops_each a frame */
    uint32_t hops_each;
    uint32_t int_bytes, ack_bytes;
    fab_node *nodes;
    uint32_t node_count;
    uint32_t *ports_of; /* by node */
    /* FAB_CHAIN_MOST a port: by depth, the port that its last such pause was for */
    uint32_t *chains;
    fab_nic *nics;
    uint32_t nic_count;
    fab_routes *routes;
    orr_map *pair_ports; /* how many flows a pair has had */
    void *draws;         /* of rules.draws */
    uint64_t max_rtt, max_bdp;
    fab_watch watch;    /* who listens */
    fab_approx *approx; /* NULL: every event is run */
    uint64_t events_of_batch;
    fab_listener listener;
    const orr__flow_list *list;
    uint32_t *list_order; /* those with a start time, by it */
    size_t list_at, list_count;
    uint64_t list_base; /* the order of its first flow */
    uint32_t list_event;
    uint64_t under_way; /* flows */
    uint64_t stop_at;
    uint64_t planned;      /* failures and repairs to come */
    uint64_t last_arrival; /* of a frame, anywhere */
    /* ticks without arrivals, up to which nobody asks if all stands still */
    uint64_t longest_silence;
    bool is_stopped, is_stalled, is_out_of_time;
    orr_code code;
    orr_error error;
    fab_figures figures;
    fab_flow_times times; /* of flows that are done; of the whole: main->times */
    orr__packet_config config;
};

/* ---- events ---- */

/* Of an event that concerns all. */
static inline uint64_t fab_global_order(fab *f)
{
    const uint64_t number = f->line->order++;
    return f->rules.orders_by_schedule ? number : (uint64_t)FAB_TIE_ALL << FAB_TIE_SHIFT | number;
}

static inline uint64_t fab_order_within(const fab *f, uint64_t order)
{
    return order & (((uint64_t)1 << f->node_shift) - 1);
}

/* Of an event of a host. */
static inline uint64_t fab_node_order(fab *f, uint32_t node)
{
    return (uint64_t)FAB_TIE_HOST << FAB_TIE_SHIFT | (uint64_t)node << f->node_shift |
           fab_order_within(f, f->nodes[node].events++);
}

/* Whose event it is; FAB_NONE: it concerns all. */
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

/* An event of its own; FAB_NO_EVENT: out of memory, and the run ends. */
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
void fab_run_event(fab *f, uint32_t id); /* that was taken from the wheel */
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
    /* for the next time; if there is none, no harm is done */
    __builtin_prefetch(&f->frames[f->free_frame], 1);
    return id;
}

/* ---- flows that come and go (fab_flows.c) ---- */

uint64_t fab_next_start(const fab *f);       /* of a list; UINT64_MAX: none is left */
void fab_await_list(fab *f);                 /* its event is pending from now on */
void fab_send_next(fab *f);                  /* that event */
void fab_start_before(fab *f, uint64_t end); /* lanes will start those of a list */
/* Those that are not done, in an order that does not depend on lanes; to be freed.  False: out of
 * memory. */
bool fab_flows_under_way(const fab *f, uint32_t **out, size_t *count);
void fab_flow_let_go(fab *f, uint32_t flow); /* it may be gone then */
/* It is done, now: the whole counts it and tells those who wait. */
void fab_flow_report_done(fab *main, const fab_flow_end *end);

/* ---- lanes (fab_lanes.h) ---- */

/* Who is in which lane, and how many there are (0: out of memory); *window: the shortest time in
 * which anything gets from one to another, or becomes known of a host (fab_lane_plan.c). */
unsigned fab_lanes_plan(const fab *f, uint32_t *of_node, uint64_t *window);
unsigned fab_lanes_threads(const fab *f);

orr_code fab_lanes_create(fab *f, orr_error *err) ORR_MUST_CHECK; /* if they pay */
void fab_lanes_destroy(fab *f);
uint64_t fab_lanes_run(fab *f, uint64_t most); /* as fab_run */
bool fab_lanes_next_at(const fab *f, uint64_t *at);
fab *fab_lanes_acting(fab *f, uint32_t node);
void fab_lanes_follow_routes(fab *f); /* they have been found anew */
void fab_lanes_cross(fab *f, const fab_port *p, const fab_flight *flight);
void fab_lanes_watch(fab *f, const fab_port *p, const fab_flight *flight);
void fab_lanes_expect(fab *f, uint64_t at);                   /* then something may concern all */
void fab_lanes_expect_of(fab *f, uint32_t node, uint64_t at); /* of a node, while none runs */
fab_wheel *fab_lanes_wheel(const fab *f, uint32_t node);      /* with the events of a node */
/* In a window: what the whole will hear of when it is over. */
void fab_lanes_note_done(fab *f, const fab_flow *w, const fab_flow_end *end);
void fab_lanes_note_arrival(fab *f, const fab_flow *w);
void fab_lanes_drop(fab *f, uint32_t frame);
void fab_lanes_let_go(fab *f, uint32_t flow);
void fab_lanes_note_pause(fab *f, const fab_port *p, bool pauses);
void fab_lanes_note_flow(fab *f, const fab_flow_note *n);

/* Who does what a node does, at the time of the event that runs; in a window whoever runs it. */
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

/* Is it sending, as seen by the event that runs? */
static inline bool fab_port_is_busy(const fab *f, const fab_port *p)
{
    return p->busy_until > f->now || (p->busy_until == f->now && p->end_order > f->order);
}

static inline uint32_t fab_port_of(const fab *f, const fab_port *p)
{
    return (uint32_t)(p - f->ports);
}

/* Somebody waits for the end of the transmission. */
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

/* From 0 to below 1, drawn from the port's own numbers. */
static inline double fab_port_coin(fab_port *p)
{
    return (double)(orr_splitmix64(&p->coins) >> 11) * 0x1p-53;
}

void fab_port_transmit(fab *f, fab_port *p, uint32_t frame);
/* Onto the wire; `owner` has the arrivals at its other end. */
void fab_port_put_on_wire(fab *owner, fab_port *p, const fab_flight *flight);
void fab_port_arrive(fab *f, uint32_t from); /* the first frame on the wire of a port */
void fab_port_take_down(fab *f, fab_port *p);
void fab_port_bring_up(fab *f, fab_port *p);
void fab_port_set_paused(fab *f, fab_port *p, uint8_t classes);

/* How long it was sending, up to now. */
static inline uint64_t fab_port_busy_ticks(const fab *f, const fab_port *p)
{
    return p->busy_ticks - (p->busy_until > f->now ? p->busy_until - f->now : 0);
}

/* The longest queue ever: who looks in between may let max_queued begin again. */
static inline uint64_t fab_port_longest_queue(const fab_port *p)
{
    return p->longest_queue > p->max_queued ? p->longest_queue : p->max_queued;
}

/* The longest since it was asked last. */
static inline uint64_t fab_port_take_longest(fab_port *p)
{
    const uint64_t longest = p->max_queued;
    p->longest_queue = fab_port_longest_queue(p);
    p->max_queued = p->queued_bytes;
    return longest;
}

/* How long it was paused, up to now. */
static inline uint64_t fab_port_paused_ticks(const fab *f, const fab_port *p)
{
    return p->paused_ticks + (p->paused ? f->now - p->paused_since : 0);
}

void fab_watch_for_stall(fab *f); /* nothing but timers runs: is that all? */

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

/* ---- hosts (fab_host.c, fab_nic.c) ---- */

void fab_host_try(fab *f, fab_port *p);
void fab_host_receive(fab *f, uint32_t frame);
void fab_host_forward(fab *f, uint32_t node, uint32_t frame);
void fab_host_ready(fab *f, uint32_t flow); /* it starts */
void fab_host_timeout(fab *f, uint32_t flow);
fab_nic *fab_host_pauser(fab *f, uint32_t port);
void fab_host_pause_ends(fab *f, uint32_t port);
void fab_host_pause_came(fab *f, fab_port *p); /* from a host, to the port it is for */
orr_code fab_host_redistribute(fab *f, orr_error *err) ORR_MUST_CHECK;

/* TRANSPORT selective (fab_selective.c). */
static inline bool fab_flow_misses(const fab_flow *w)
{
    return w->is_selective && w->repeat->missing_count;
}
bool fab_selective_start(fab *f, uint32_t flow); /* false: out of memory */
void fab_selective_forget(fab_flow *w);
/* The first byte of the packet to send again now; there is one. */
uint64_t fab_selective_again(const fab *f, fab_flow *w);
void fab_selective_take(fab *f, fab_flow *w, const fab_frame *data);
void fab_selective_acked(fab *f, fab_flow *w, const fab_frame *ack);
void fab_selective_all_again(const fab *f, fab_flow *w); /* a timeout */

bool fab_nic_add(fab *f, fab_nic *n, uint32_t flow); /* false: out of memory */
/* The flow to serve now, or FAB_NONE; finished flows are let go as the reference does
 * (packet-network.md 6.5). */
uint32_t fab_nic_choose(fab *f, fab_port *p);
void fab_nic_update(fab *f, uint32_t flow); /* bytes, window or state of it have changed */
void fab_nic_pace(fab *f, uint32_t flow, uint64_t known_until); /* next_at has */
/* When some flow may send: false if one might already, or there is none. */
bool fab_nic_next(const fab *f, const fab_nic *n, uint64_t *at);
void fab_nic_clear(fab *f, fab_nic *n);
void fab_nic_fini(fab_nic *n);

void fab_flow_change_rate(fab *f, uint32_t flow, uint64_t rate);
/* and move next_at (packet-network.md 8.2) */
void fab_flow_set_rate(fab *f, uint32_t flow, uint64_t rate);

/* A rate that came out of real numbers, cut off; never above `most`. */
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

/* ---- failures (fab_failures.c) ---- */

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

/* ECMP: 32-bit Murmur3 of three words (packet-network.md 5). */
static inline uint32_t fab_hash_mix(uint32_t h, uint32_t word)
{
    uint32_t k = word * 0xcc9e2d51u;
    k = (k << 15 | k >> 17) * 0x1b873593u;
    h ^= k;
    return (h << 13 | h >> 19) * 5 + 0xe6546b64u;
}

static inline uint32_t fab_hash(uint32_t a, uint32_t b, uint32_t c, uint32_t seed)
{
    uint32_t h = fab_hash_mix(fab_hash_mix(fab_hash_mix(seed, a), b), c) ^ 12;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

orr_code fab_find_routes(fab *f, orr_error *err) ORR_MUST_CHECK;
void fab_routes_free(fab_routes *r);
/* The port of a switch, or of a host, towards a host; FAB_NONE: there is no way. */
uint32_t fab_route(const fab *f, uint32_t node, const fab_frame *p);
uint32_t fab_nic_towards(const fab *f, uint32_t from, uint32_t to, uint32_t ports, uint32_t seed);
/* From now on nothing is made when somebody asks for the way to this host. */
void fab_need_routes(const fab *f, uint32_t host);
bool fab_find_path(const fab *f, uint32_t src, uint32_t dst, fab_path *out);
uint32_t fab_longest(const fab *f); /* the most links on a way */
/* Paths of all pairs stand in a table; else they are found one by one, which takes longer. */
bool fab_knows_paths(const fab *f);
uint64_t fab_pairs(const fab *f); /* places to go to times places that choose ways */

static inline uint64_t fab_path_rtt(const fab_path *p)
{
    return 2 * p->delay + p->transmission;
}
static inline uint64_t fab_path_bdp(const fab *f, const fab_path *p)
{
    return (uint64_t)((unsigned __int128)fab_path_rtt(p) * p->bandwidth / (1000000000u * f->unit) /
                      8);
}

static inline uint32_t fab_host_address(uint32_t node)
{
    return 0x0b000001u + node / 256 * 0x10000u + node % 256 * 0x100u;
}

/* ---- who pauses whom (fab_pauses.c) ---- */

void fab_pause_note_cause(const fab *f, const fab_port *from, fab_frame *pfc);
void fab_pause_begins(fab *f, fab_port *p, const fab_frame *pfc);
void fab_pause_ends(fab *f, fab_port *p);
void fab_pause_is_unresumed(fab *f, fab_port *p, const fab_frame *pfc); /* it was lost */
void fab_pause_is_over(fab *f, uint32_t who);                           /* FAB_EV_PAUSE_OVER */
void fab_name_port(const fab *f, uint32_t port, char *out, size_t room);

/* Ticks that a flow would take alone; 0: there is no route. */
uint64_t fab_flow_ideal(const fab *f, const fab_flow *w);

#endif
