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
 * (orr__rank), so that it does not depend on what happens elsewhere in the network. */
#ifndef ORR_MODELS_FABRIC_IMPL_H
#define ORR_MODELS_FABRIC_IMPL_H

#include "fab_rules.h"
#include "fabric.h"

#include "base/io/output.h"
#include "base/memory/map.h"
#include "base/rng.h"
#include "event_wheel.h"
#include "flow_times.h"
#include "place_bits.h"

#define ORR__NOBODY UINT32_MAX
#define ORR__PORT_MASK 0x0fffffffu    /* a port and, above ORR__CLASS_SHIFT, a class */
#define ORR__LATE ((uint64_t)1 << 58) /* ticks: nothing takes longer; sums of a few still fit */

enum {
    ORR__CLASSES = 8,
    ORR__CLASS_SHIFT = 28,
    ORR__PFC_BYTES = 31,       /* packet-network.md 6.2 */
    ORR__HEADER_BYTES = 36,    /* of a data packet, without INT */
    ORR__RESERVE = 4096,       /* packet-network.md 7.1: of each port and class */
    ORR__RESUME_OFFSET = 3072, /* packet-network.md 7.2 */
    ORR__FIRST_PORT = 10000,
    ORR__GOOD_WAYS = 8,  /* that a flow remembers */
    ORR__CHAIN_MOST = 16 /* pauses in a chain that are told apart */
};

typedef enum orr__event_kind {
    ORR__EV_DEAD, /* a timer that was taken back */
    ORR__EV_ARRIVE,
    ORR__EV_END,
    ORR__EV_WAKE,
    ORR__EV_HOP, /* a message on its way into the NIC: two of them */
    ORR__EV_START,
    ORR__EV_LIST, /* the next flow of a list */
    ORR__EV_ALPHA,
    ORR__EV_DECREASE,
    ORR__EV_INCREASE,
    ORR__EV_TIMEOUT,
    ORR__EV_SAMPLE,
    ORR__EV_DOWN,
    ORR__EV_UP,
    ORR__EV_STOP,
    ORR__EV_NIC_RESUME,
    ORR__EV_NIC_READY,
    ORR__EV_PAUSE_OVER, /* of a port: all classes; or one, with ORR__CLASS_SHIFT */
    ORR__EV_LOOK,       /* of monitor.c */
    ORR__EV_HISTORY     /* of history.c */
} orr__event_kind;

/* The order of events that fall on one instant, unless rules.orders_by_schedule: ends of
 * transmissions and arrivals by port, then what a host does by itself, by node and in the order in
 * which it was scheduled there, then what concerns all. */
typedef enum orr__rank { ORR__RANK_END, ORR__RANK_ARRIVE, ORR__RANK_HOST, ORR__RANK_ALL } orr__rank;
enum { ORR__RANK_SHIFT = ORR__ORDER_BITS - 2 };

typedef enum orr__frame_kind {
    ORR__FRAME_DATA,
    ORR__FRAME_ACK,
    ORR__FRAME_NACK,
    ORR__FRAME_PFC,
    ORR__FRAME_TRIMMED /* data that a switch has cut to its header */
} orr__frame_kind;

/* A packet: a line of the cache. */
typedef struct orr__frame {
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
    uint8_t kind;      /* orr__frame_kind */
    uint8_t class;     /* of a PFC frame: the one that it pauses */
    bool is_marked;    /* by ECN */
    bool echoes_mark;  /* ACK: what it acknowledges was marked */
    bool pauses;       /* PFC */
    bool asks_ack;     /* data: nothing follows it before it is acknowledged */
    uint8_t hop_count; /* HPCC */
    bool is_last;      /* data: the flow's last bytes; ACK and NACK: nothing more is expected */
} orr__frame;

/* What a switch tells HPCC of itself (packet-network.md 8.2). */
typedef struct orr__hop {
    uint64_t time, bytes;
    uint32_t queue;
    uint32_t port;
} orr__hop;

/* A frame on a wire. */
typedef struct orr__flight {
    uint64_t at, order; /* of its arrival */
    uint32_t frame;
    uint32_t flow; /* ORR__NOBODY: it has none; the highest bit: it goes back to the sender */
} orr__flight;

/* One class of one switch port. */
typedef struct orr__queue {
    _Alignas(32) uint32_t ingress, headroom, egress; /* bytes */
    uint32_t head, tail;                             /* frames */
    uint32_t expiries;                               /* ORR__EV_PAUSE_OVER to come, of this class */
} orr__queue;

/* In lines of the cache: what every frame needs, what most need, and the rest. */
typedef struct orr__port {
    _Alignas(64) uint64_t busy_until;
    uint64_t end_order; /* of the transmission that began last */
    orr__flight *wire;  /* frames on the wire to the peer: a ring */
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
    bool is_lossy;               /* error is not 0 */
    bool is_between, is_watched; /* of fab_lanes.c: the wire leads to another lane; to a host */
    uint8_t urgent;              /* frames of class 0 sent in a row (TRIMMING) */

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
    uint32_t pause_count;                /* pauses received */
    uint64_t paused_since, paused_ticks; /* some class of it; without the pause that lasts */
    uint64_t dead_until; /* what arrives here up to then was on the link when it failed */
} orr__port;

typedef struct orr__node {
    uint32_t first_port, port_count; /* in ports_of */
    uint32_t available, shared;      /* bytes of buffer, 32 bit as the reference has it */
    uint8_t kind;
    uint64_t events; /* of rank ORR__RANK_HOST that it has scheduled */
} orr__node;

/* Flows by their place at the NIC, a bit each: see fab_nic.c. */
typedef struct orr__nic {
    uint32_t *flows; /* by place */
    size_t flow_room;
    uint32_t places, count; /* places given out; flows in the list */
    uint32_t last;          /* the flow served last: its place, or its number in the list */
    bool last_is_number;
    uint8_t classes; /* that flows have had: a bit each */
    orr__place_bits listed, done, ready[ORR__CLASSES];
    uint32_t ack_head, ack_tail;
    uint32_t wake;   /* an event, or ORR__NO_EVENT */
    uint32_t *paced; /* a heap of the flows that are not due, by the time at which they are */
    size_t paced_count, paced_room;
    uint32_t pauses_made;
    uint8_t pause_class; /* of the latest pause it made */
    bool is_between_pauses;
} orr__nic;

/* TRANSPORT selective, the sender of a flow: see fab_selective.c. */
typedef struct orr__repeat {
    uint64_t missing_count; /* packets to send again */
    uint64_t missing_from;  /* no packet before it is to be sent again */
    uint64_t recovered;     /* the order of packets tells no more of those before this one */
    uint64_t settled;       /* packets before this one were told of */
    uint64_t farthest;      /* packet that was told of */
    uint64_t resent_at;     /* when a packet was sent again last */
    uint64_t news,
        losses; /* bytes that the latest acknowledgement told of first, or made missing */
    uint64_t *told, *missing; /* a bit a packet */
} orr__repeat;

/* In lines of the cache, by who needs them when: with many flows each touch comes from memory. */
typedef struct orr__flow {
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
    bool awaits_way : 1;    /* it starts when a repair gives it one */
    uint8_t good_count;
    /* The receiver. */
    _Alignas(64) uint64_t expected;
    uint64_t last_nacked, nack_at;
    uint64_t whole;    /* size, again */
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
    orr__repeat *repeat;   /* NULL: not selective */
    uint16_t good[ORR__GOOD_WAYS];
} orr__flow;
_Static_assert(sizeof(orr__flow) == 256, "a flow is four lines of the cache");

/* Of a flow that is done. */
typedef struct orr__flow_end {
    uint64_t token, size;
    uint64_t took, ideal; /* ticks; alone it would have taken: 0, not known */
} orr__flow_end;

/* A flow starts, or is done: what a series hears of it. */
typedef struct orr__series_note {
    uint64_t at, order;                /* of the event in which it did */
    uint64_t acked, window, in_flight; /* then: bytes */
    uint32_t flow;
    bool is_over;
} orr__series_note;

typedef struct orr__path {
    uint64_t delay, transmission, bandwidth;
} orr__path;

typedef struct orr__routes_table orr__routes_table;
typedef struct orr__writer orr__writer;
typedef struct orr__monitor orr__monitor;
typedef struct orr__series orr__series;
typedef struct orr__history orr__history;
typedef struct orr__approx orr__approx;
typedef struct orr__lanes orr__lanes;

/* A way to adjust the rate of flows.  State is `size` bytes a flow, or `bytes` of them, zeroed. */
typedef struct orr__control_ops {
    size_t size;
    size_t (*bytes)(const orr__fabric *f);
    unsigned int_bytes; /* that it adds to data packets */
    void (*start)(orr__fabric *f, uint32_t flow);
    void (*acked)(orr__fabric *f, uint32_t flow, const orr__frame *ack); /* or a NACK */
    void (*timed_out)(orr__fabric *f, uint32_t flow);
    void (*stop)(orr__fabric *f, uint32_t flow);
    void (*timer)(orr__fabric *f, uint32_t flow, orr__event_kind which);
    void (*forward)(orr__fabric *f, orr__port *out, orr__frame *data); /* a switch sends it on */
} orr__control_ops;

extern const orr__control_ops orr__dcqcn, orr__hpcc, orr__timely, orr__dctcp, orr__pint, orr__nscc;

struct orr__fabric {
    uint64_t now, order; /* of the event that runs */
    fab_rules rules;
    orr_event_line *line, own_line;
    uint64_t unit;       /* ticks a ns */
    unsigned node_shift; /* of a node in the order of its events */
    bool is_in_event;
    orr__fabric *main; /* the whole: this one, or the one whose lane this is */
    orr__lanes *lanes; /* NULL: it is not parted */
    uint32_t lane;     /* which */
    bool is_in_window; /* other lanes run at the same time */
    bool has_begun;
    /* its fixed events are those of the ports: ORR__EV_ARRIVE and ORR__EV_END of each */
    orr__wheel wheel;
    orr__port *ports;
    uint32_t port_count;
    orr__queue *queues; /* 8 a port */
    orr__frame *frames;
    orr_reserve frame_space, hop_space, flow_space, state_space;
    orr_reserve port_space; /* with queues and events */
    size_t frame_count, frame_room;
    uint32_t free_frame;
    orr__flow *flows;
    size_t flow_count, flow_room;
    uint32_t free_flow;         /* rules.reuses_last_flow: the last one first */
    orr__place_bits free_flows; /* else the lowest number first, whoever let it go */
    const orr__control_ops *control;
    void *states; /* of the control, by flow */
    size_t state_bytes;
    orr__hop *hops; /* hops_each a frame */
    uint32_t hops_each;
    uint32_t int_bytes, ack_bytes;
    orr__node *nodes;
    uint32_t node_count;
    uint32_t *ports_of; /* by node */
    /* ORR__CHAIN_MOST a port: by depth, the port that its last such pause was for */
    uint32_t *chains;
    orr__nic *nics;
    uint32_t nic_count;
    orr__routes_table *routes;
    orr_map *pair_ports; /* how many flows a pair has had */
    void *draws;         /* of rules.draws */
    uint64_t max_rtt, max_bdp;
    orr__writer *writer;
    orr__monitor *monitor; /* NULL: nothing is watched */
    orr__series *series;   /* NULL: none is wanted */
    orr__history *history; /* NULL: none is wanted */
    uint8_t *met;          /* by port, of history: it was used */
    orr__approx *approx;   /* NULL: every event is run */
    uint64_t events_of_batch;
    orr__fabric_watcher watcher;
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
    bool is_stopped, is_stalled, has_trace, is_sampling, is_out_of_time;
    orr_code code;
    orr_error error;
    orr__fabric_figures figures;
    orr__flow_times times; /* of flows that are done; of the whole: main->times */
    orr__packet_config config;
};

/* ---- events ---- */

/* Of an event that concerns all. */
static inline uint64_t orr__fabric_order(orr__fabric *f)
{
    const uint64_t number = f->line->order++;
    return f->rules.orders_by_schedule ? number
                                       : (uint64_t)ORR__RANK_ALL << ORR__RANK_SHIFT | number;
}

static inline uint64_t orr__order_within(const orr__fabric *f, uint64_t order)
{
    return order & (((uint64_t)1 << f->node_shift) - 1);
}

/* Of an event of a host. */
static inline uint64_t orr__node_order(orr__fabric *f, uint32_t node)
{
    return (uint64_t)ORR__RANK_HOST << ORR__RANK_SHIFT | (uint64_t)node << f->node_shift |
           orr__order_within(f, f->nodes[node].events++);
}

/* Whose event it is; ORR__NOBODY: it concerns all. */
static inline uint32_t orr__event_node(const orr__fabric *f, orr__event_kind kind, uint32_t who)
{
    switch (kind) {
    case ORR__EV_WAKE:
    case ORR__EV_NIC_RESUME:
    case ORR__EV_NIC_READY:
        return f->ports[who].node;
    case ORR__EV_PAUSE_OVER:
        return f->ports[who & ORR__PORT_MASK].node;
    case ORR__EV_ALPHA:
    case ORR__EV_DECREASE:
    case ORR__EV_INCREASE:
    case ORR__EV_TIMEOUT:
        return f->flows[who].src;
    default:
        return ORR__NOBODY;
    }
}

static inline uint64_t orr__event_order(orr__fabric *f, orr__event_kind kind, uint32_t who)
{
    const uint32_t node = f->rules.orders_by_schedule ? ORR__NOBODY : orr__event_node(f, kind, who);
    return node == ORR__NOBODY ? orr__fabric_order(f) : orr__node_order(f, node);
}

/* An event of its own; ORR__NO_EVENT: out of memory, and the run ends. */
static inline uint32_t orr__fabric_after(orr__fabric *f,
                                         uint64_t ticks,
                                         orr__event_kind kind,
                                         uint32_t who)
{
    const bool is_for_all = orr__event_node(f, kind, who) == ORR__NOBODY;
    orr__wheel *wheel = is_for_all ? &f->main->wheel : &f->wheel;
    const uint32_t id = orr__wheel_new(wheel, (uint8_t)kind, who);
    if (id != ORR__NO_EVENT)
        orr__wheel_at(wheel, id, f->now + ticks, orr__event_order(f, kind, who));
    return id;
}

static inline void orr__fabric_cancel(orr__fabric *f, uint32_t *id)
{
    if (*id != ORR__NO_EVENT)
        orr__wheel_event(&f->wheel, *id)->kind = ORR__EV_DEAD;
    *id = ORR__NO_EVENT;
}

void orr__fabric_fail(orr__fabric *f, orr_code code, const char *fmt, ...) ORR_PRINTF(3, 4);
void orr__fabric_run_event(orr__fabric *f, uint32_t id); /* that was taken from the wheel */
uint64_t orr__fabric_bound(const orr__fabric *f);        /* the clock's, in ticks */

/* ---- frames ---- */

uint32_t orr__frame_new_slow(orr__fabric *f);

/* ORR__NOBODY: out of memory. */
static inline uint32_t orr__frame_new(orr__fabric *f)
{
    const uint32_t id = f->free_frame;
    if (id == ORR__NOBODY)
        return orr__frame_new_slow(f);
    f->free_frame = f->frames[id].next;
    /* for the next time; if there is none, no harm is done */
    __builtin_prefetch(&f->frames[f->free_frame], 1);
    return id;
}

/* ---- flows that come and go (fab_flows.c) ---- */

uint64_t orr__fabric_next_start(const orr__fabric *f); /* of a list; UINT64_MAX: none is left */
void orr__fabric_await_list(orr__fabric *f);           /* its event is pending from now on */
void orr__fabric_send_next(orr__fabric *f);            /* that event */
void orr__fabric_start_before(orr__fabric *f, uint64_t end); /* lanes will start those of a list */
/* Those that are not done, in an order that does not depend on lanes; to be freed.  False: out of
 * memory. */
bool orr__flows_under_way(const orr__fabric *f, uint32_t **out, size_t *count);
void orr__flow_let_go(orr__fabric *f, uint32_t flow); /* it may be gone then */
/* It is done, now: the whole counts it and tells those who wait. */
void orr__flow_tell_done(orr__fabric *main, const orr__flow_end *end);
void orr__fabric_start_sampling(orr__fabric *f);
/* Does it take no samples, but will if a flow starts or sends again, or a link is repaired? */
bool orr__fabric_may_start_sampling(const orr__fabric *f, uint64_t now);

/* ---- lanes (fab_lanes.h) ---- */

/* Who is in which lane, and how many there are (0: out of memory); *window: the shortest time in
 * which anything gets from one to another, or becomes known of a host (fab_lane_plan.c). */
unsigned orr__lanes_plan(const orr__fabric *f, uint32_t *of_node, uint64_t *window);
unsigned orr__lanes_threads(const orr__fabric *f);

orr_code orr__lanes_create(orr__fabric *f, orr_error *err) ORR_MUST_CHECK; /* if they pay */
void orr__lanes_destroy(orr__fabric *f);
uint64_t orr__lanes_run(orr__fabric *f, uint64_t most); /* as orr__fabric_run */
bool orr__lanes_next_at(const orr__fabric *f, uint64_t *at);
orr__fabric *orr__lanes_acting(orr__fabric *f, uint32_t node);
void orr__lanes_follow_routes(orr__fabric *f); /* they have been found anew */
void orr__lanes_cross(orr__fabric *f, const orr__port *p, const orr__flight *flight);
void orr__lanes_watch(orr__fabric *f, const orr__port *p, const orr__flight *flight);
void orr__lanes_expect(orr__fabric *f, uint64_t at); /* then something may concern all */
void orr__lanes_expect_of(orr__fabric *f,
                          uint32_t node,
                          uint64_t at);                            /* of a node, while none runs */
orr__wheel *orr__lanes_wheel(const orr__fabric *f, uint32_t node); /* with the events of a node */
/* In a window: what the whole will hear of when it is over. */
void orr__lanes_note_done(orr__fabric *f, const orr__flow *w, const orr__flow_end *end);
void orr__lanes_note_arrival(orr__fabric *f, const orr__flow *w);
void orr__lanes_drop(orr__fabric *f, uint32_t frame);
void orr__lanes_let_go(orr__fabric *f, uint32_t flow);
void orr__lanes_note_pause(orr__fabric *f, const orr__port *p, bool pauses);
void orr__lanes_note_series(orr__fabric *f, const orr__series_note *n);

/* Who does what a node does, at the time of the event that runs; in a window whoever runs it. */
static inline orr__fabric *orr__acting(orr__fabric *f, uint32_t node)
{
    return f->lanes && !f->is_in_window ? orr__lanes_acting(f, node) : f;
}

static inline void orr__frame_drop(orr__fabric *f, uint32_t id)
{
    orr__frame *p = &f->frames[id];
    const uint32_t flow = p->flow;
    if (f->lanes) {
        orr__lanes_drop(f, id);
        return;
    }
    p->next = f->free_frame;
    f->free_frame = id;
    if (flow != ORR__NOBODY && --f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        orr__flow_let_go(f, flow);
}

/* ---- ports (fab_port.c) ---- */

uint64_t orr__transmission_time(const orr__fabric *f, uint64_t bytes, uint64_t rate);

/* Is it sending, as seen by the event that runs? */
static inline bool orr__port_is_busy(const orr__fabric *f, const orr__port *p)
{
    return p->busy_until > f->now || (p->busy_until == f->now && p->end_order > f->order);
}

static inline uint32_t orr__port_of(const orr__fabric *f, const orr__port *p)
{
    return (uint32_t)(p - f->ports);
}

/* Somebody waits for the end of the transmission. */
static inline void orr__port_await(orr__fabric *f, orr__port *p)
{
    if (p->has_end)
        return;
    p->has_end = true;
    orr__wheel_at(&f->wheel, 2 * orr__port_of(f, p) + 1, p->busy_until, p->end_order);
}

/* It sends, or is paused, for the first time. */
static inline void orr__port_meet(const orr__fabric *f, const orr__port *p)
{
    if (f->met && !f->met[orr__port_of(f, p)])
        f->met[orr__port_of(f, p)] = 1;
}

/* From 0 to below 1, drawn from the port's own numbers. */
static inline double orr__port_coin(orr__port *p)
{
    return (double)(orr_splitmix64(&p->coins) >> 11) * 0x1p-53;
}

void orr__port_transmit(orr__fabric *f, orr__port *p, uint32_t frame);
/* Onto the wire; `owner` has the arrivals at its other end. */
void orr__port_put_on_wire(orr__fabric *owner, orr__port *p, const orr__flight *flight);
void orr__port_arrive(orr__fabric *f, uint32_t from); /* the first frame on the wire of a port */
void orr__port_take_down(orr__fabric *f, orr__port *p);
void orr__port_bring_up(orr__fabric *f, orr__port *p);
void orr__port_set_paused(orr__fabric *f, orr__port *p, uint8_t classes);

/* How long it was paused, up to now. */
static inline uint64_t orr__port_paused_ticks(const orr__fabric *f, const orr__port *p)
{
    return p->paused_ticks + (p->paused ? f->now - p->paused_since : 0);
}

void orr__fabric_watch_for_stall(orr__fabric *f); /* nothing but timers runs: is that all? */

static inline void orr__queue_push(orr__fabric *f, uint32_t *head, uint32_t *tail, uint32_t frame)
{
    f->frames[frame].next = ORR__NOBODY;
    if (*head == ORR__NOBODY)
        *head = frame;
    else
        f->frames[*tail].next = frame;
    *tail = frame;
}

static inline uint32_t orr__queue_pop(orr__fabric *f, uint32_t *head)
{
    const uint32_t frame = *head;
    *head = f->frames[frame].next;
    return frame;
}

/* ---- hosts (fab_host.c, fab_nic.c) ---- */

void orr__host_try(orr__fabric *f, orr__port *p);
void orr__host_receive(orr__fabric *f, uint32_t frame);
void orr__host_forward(orr__fabric *f, uint32_t node, uint32_t frame);
void orr__host_ready(orr__fabric *f, uint32_t flow); /* it starts */
void orr__host_timeout(orr__fabric *f, uint32_t flow);
orr__nic *orr__host_pauser(orr__fabric *f, uint32_t port);
void orr__host_pause_ends(orr__fabric *f, uint32_t port);
void orr__host_pause_came(orr__fabric *f, orr__port *p); /* from a host, to the port it is for */
orr_code orr__host_redistribute(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;

/* TRANSPORT selective (fab_selective.c). */
static inline bool orr__flow_misses(const orr__flow *w)
{
    return w->is_selective && w->repeat->missing_count;
}
bool orr__selective_start(orr__fabric *f, uint32_t flow); /* false: out of memory */
void orr__selective_forget(orr__flow *w);
/* The first byte of the packet to send again now; there is one. */
uint64_t orr__selective_again(const orr__fabric *f, orr__flow *w);
void orr__selective_take(orr__fabric *f, orr__flow *w, const orr__frame *data);
void orr__selective_told(orr__fabric *f, orr__flow *w, const orr__frame *ack);
void orr__selective_all_again(const orr__fabric *f, orr__flow *w); /* a timeout */

bool orr__nic_add(orr__fabric *f, orr__nic *n, uint32_t flow); /* false: out of memory */
/* The flow to serve now, or ORR__NOBODY; finished flows are let go as the reference does
 * (packet-network.md 6.5). */
uint32_t orr__nic_choose(orr__fabric *f, orr__port *p);
void orr__nic_update(orr__fabric *f, uint32_t flow); /* bytes, window or state of it have changed */
void orr__nic_pace(orr__fabric *f, uint32_t flow, uint64_t known_until); /* next_at has */
/* When some flow may send: false if one might already, or there is none. */
bool orr__nic_next(const orr__fabric *f, const orr__nic *n, uint64_t *at);
void orr__nic_clear(orr__fabric *f, orr__nic *n);
void orr__nic_fini(orr__nic *n);

void orr__flow_change_rate(orr__fabric *f, uint32_t flow, uint64_t rate);
/* and move next_at (packet-network.md 8.2) */
void orr__flow_set_rate(orr__fabric *f, uint32_t flow, uint64_t rate);

/* A rate that came out of real numbers, cut off; never above `most`. */
static inline uint64_t orr__whole_rate(double rate, uint64_t most)
{
    return rate < (double)most ? rate > 0 ? (uint64_t)rate : 0 : most;
}

static inline uint64_t orr__at_least(uint64_t rate, uint64_t least)
{
    return rate < least ? least : rate;
}

static inline uint64_t orr__at_most(uint64_t rate, uint64_t most)
{
    return rate > most ? most : rate;
}

static inline void *orr__control_state(const orr__fabric *f, uint32_t flow)
{
    return (char *)f->states + flow * f->state_bytes;
}

/* ---- failures (fab_failures.c) ---- */

orr_code orr__fabric_plan_failure(orr__fabric *f, orr_error *err) ORR_MUST_CHECK; /* LINK_DOWN */
void orr__link_take_down(orr__fabric *f, uint32_t port); /* the link at that port */
void orr__link_repair(orr__fabric *f, uint32_t port);

/* ---- switches (fab_switch.c) ---- */

void orr__switch_set_up(orr__fabric *f, uint64_t nic_rate);
void orr__switch_receive(orr__fabric *f, orr__port *in, uint32_t frame);
void orr__switch_try(orr__fabric *f, orr__port *p);
void orr__switch_forget(orr__fabric *f, orr__port *p, uint32_t frame); /* it never leaves here */

/* A port may be able to send. */
static inline void orr__port_try(orr__fabric *f, orr__port *p)
{
    f = orr__acting(f, p->node);
    if (p->is_switch)
        orr__switch_try(f, p);
    else
        orr__host_try(f, p);
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

orr_code orr__fabric_find_routes(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
void orr__fabric_drop_routes(orr__routes_table *r);
/* The port of a switch, or of a host, towards a host; ORR__NOBODY: there is no way. */
uint32_t orr__fabric_route(const orr__fabric *f, uint32_t node, const orr__frame *p);
uint32_t orr__fabric_nic_towards(
    const orr__fabric *f, uint32_t from, uint32_t to, uint32_t ports, uint32_t seed);
/* From now on nothing is made when somebody asks for the way to this host. */
void orr__fabric_need_ways(const orr__fabric *f, uint32_t host);
bool orr__fabric_path(const orr__fabric *f, uint32_t src, uint32_t dst, orr__path *out);
uint32_t orr__fabric_longest(const orr__fabric *f); /* the most links on a way */
/* Paths of all pairs stand in a table; else they are found one by one, which takes longer. */
bool orr__fabric_knows_paths(const orr__fabric *f);
uint64_t orr__fabric_pairs(
    const orr__fabric *f); /* places to go to times places that choose ways */

static inline uint64_t orr__path_rtt(const orr__path *p)
{
    return 2 * p->delay + p->transmission;
}
static inline uint64_t orr__path_bdp(const orr__fabric *f, const orr__path *p)
{
    return (uint64_t)((unsigned __int128)orr__path_rtt(p) * p->bandwidth / (1000000000u * f->unit) /
                      8);
}

static inline uint32_t orr__host_address(uint32_t node)
{
    return 0x0b000001u + node / 256 * 0x10000u + node % 256 * 0x100u;
}

/* ---- who pauses whom (fab_pauses.c) ---- */

void orr__pause_note_cause(const orr__fabric *f, const orr__port *from, orr__frame *pfc);
void orr__pause_begins(orr__fabric *f, orr__port *p, const orr__frame *pfc);
void orr__pause_ends(orr__fabric *f, orr__port *p);
void orr__pause_is_unresumed(orr__fabric *f, orr__port *p, const orr__frame *pfc); /* it was lost */
void orr__pause_is_over(orr__fabric *f, uint32_t who); /* ORR__EV_PAUSE_OVER */
void orr__fabric_name_port(const orr__fabric *f, uint32_t port, char *out, size_t room);

/* ---- looks at fixed times (monitor.c) ---- */

orr_code orr__monitor_create(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
void orr__monitor_destroy(orr__fabric *f);
orr_code orr__monitor_commit(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
void orr__monitor_arm(orr__fabric *f); /* a flow is under way */
void orr__monitor_look(orr__fabric *f, uint32_t event, uint32_t what);
bool orr__monitor_flow_comes(const orr__fabric *f, uint32_t flow); /* false: out of memory */
void orr__monitor_mark(const orr__fabric *f,
                       uint32_t flow); /* an acknowledgement says that one was marked */

/* ---- files (output_files.c) ---- */

enum { ORR__TRACE_RECEIVE, ORR__TRACE_ENQUEUE, ORR__TRACE_DEQUEUE, ORR__TRACE_DROP };

orr_code orr__writer_create(orr__fabric *f,
                            const orr__fabric_paths *paths,
                            orr_error *err) ORR_MUST_CHECK;
void orr__writer_destroy(orr__writer *w);
orr_code orr__writer_commit(orr__writer *w, orr_error *err) ORR_MUST_CHECK;
uint64_t orr__flow_ideal(const orr__fabric *f, const orr__flow *w); /* ticks alone; 0: no way */
bool orr__writer_lists_flows(const orr__fabric *f);                 /* fct.txt is wanted */
/* Its line. */
void orr__put_fct(orr_buf *b, const orr__fabric *f, const orr__flow *w, uint64_t ideal);
void orr__write_fct(orr__fabric *f, const orr__flow *w, uint64_t ideal);
void orr__write_fct_lines(orr__fabric *f, const uint8_t *lines, size_t length);
void orr__write_pfc(orr__fabric *f, const orr__port *p, bool pauses);
void orr__write_sample(orr__fabric *f);
bool orr__writer_samples(const orr__fabric *f);
bool orr__writer_lists_pauses(const orr__fabric *f); /* pfc.txt is wanted */
void orr__fabric_write_trace(
    orr__fabric *f, const orr__port *p, const orr__frame *frame, unsigned event, unsigned queue);
static inline bool orr__writer_traces(const orr__fabric *f)
{
    return f->has_trace;
}

#endif
