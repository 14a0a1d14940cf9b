/* SPDX-License-Identifier: Apache-2.0 */
/* fab_parts.h - the data structures of a packet network: frames, ports, NICs, flows.  The functions
 * are in fabric_impl.h.
 *
 * Members are grouped by cache line: with many flows and packets each first access misses the
 * cache, and the number of lines per event determines the speed (docs/design/packet.md). */
#ifndef ORR_MODELS_FAB_PARTS_H
#define ORR_MODELS_FAB_PARTS_H

#include "place_bits.h"

#include <orrery/lab/fabric_view.h>

enum {
    FAB_CLASSES = 8,
    FAB_CLASS_SHIFT = 28,
    FAB_PFC_BYTES = 31,       /* packet-network.md 6.2 */
    FAB_HEADER_BYTES = 36,    /* of a data packet, without INT */
    FAB_RESERVE = 4096,       /* bytes per port and class (packet-network.md 7.1) */
    FAB_RESUME_OFFSET = 3072, /* packet-network.md 7.2 */
    FAB_FIRST_PORT = 10000,
    FAB_GOOD_ROUTES = 8, /* remembered by a flow (LOAD_BALANCE reps) */
    FAB_CHAIN_MOST = 16  /* tracked length of a chain of pauses */
};

/* ---- frames ---- */

typedef enum fab_frame_kind {
    FAB_FRAME_DATA,
    FAB_FRAME_ACK,
    FAB_FRAME_NACK,
    FAB_FRAME_PFC,
    FAB_FRAME_TRIMMED /* data cut to its header by a switch */
} fab_frame_kind;

/* One packet is one cache line.  A data frame returns to its sender as its own ACK. */
typedef struct fab_frame {
    _Alignas(64) uint64_t sequence; /* data: its first byte; ACK and NACK: the byte expected next */
    uint64_t stamp;                 /* when the data left its host: gives the sender the RTT */
    uint32_t next;                  /* in the same queue, or in the list of free frames */
    uint32_t flow;
    uint32_t size; /* on the wire */
    uint32_t payload;
    /* ingress port of the switch that holds it, whose account is released later */
    uint32_t in;
    uint32_t from, to; /* hosts */
    uint32_t ports;    /* source | destination << 16, as in the packet: ECMP hashes them */
    uint16_t power;    /* HPCC-PINT: the telemetry; otherwise the entropy value (LOAD_BALANCE) */
    uint8_t kind;      /* fab_frame_kind */
    uint8_t class;     /* of a PFC frame: the class that it pauses */
    bool is_marked;    /* by ECN */
    bool echoes_mark;  /* ACK: the data was marked */
    bool pauses;       /* PFC: a pause, not a resume */
    bool asks_ack;     /* data: it fills the window, so its ACK must not be coalesced */
    uint8_t hop_count; /* HPCC */
    bool is_last;      /* data: the flow's last bytes; ACK and NACK: nothing more is expected */
} fab_frame;
_Static_assert(sizeof(fab_frame) == 64, "one packet is one cache line");

/* HPCC: telemetry written by a switch into a passing packet (packet-network.md 8.2). */
typedef struct fab_hop {
    uint64_t time, bytes;
    uint32_t queue;
    uint32_t port;
} fab_hop;

/* A frame on a wire. */
typedef struct fab_flight {
    uint64_t at, order; /* of its arrival */
    uint32_t frame;
    uint32_t flow; /* to prefetch; FAB_NONE: none; the highest bit: it returns to the sender */
} fab_flight;

/* ---- ports and nodes ---- */

/* One class of one switch port. */
typedef struct fab_queue {
    _Alignas(32) uint32_t ingress, headroom, egress; /* bytes */
    uint32_t head, tail;                             /* frames */
    uint32_t expiries;                               /* pending FAB_EV_PAUSE_OVER of this class */
} fab_queue;

/* First cache line: needed by every frame; second: by most; the rest rarely. */
typedef struct fab_port {
    _Alignas(64) uint64_t busy_until;
    uint64_t end_order; /* order key of the end of the latest transmission */
    fab_flight *wire;   /* ring buffer: frames on the wire to the peer, earliest arrival first */
    uint32_t wire_first, wire_count, wire_room;
    uint32_t wire_frame; /* the first of them */
    uint32_t peer, node;
    union {
        uint32_t nic;      /* of a host's port */
        uint32_t headroom; /* of a switch's port: bytes */
    };
    uint8_t paused;     /* bit set: classes that must not be sent */
    uint8_t pause_sent; /* bit set: classes for which the peer is paused */
    uint8_t queued;     /* bit set: classes with frames */
    uint8_t last_class; /* served last: round robin continues after it */
    uint8_t shift;      /* of the PFC threshold (packet-network.md 7.1) */
    bool has_end;       /* the end of the transmission is a pending event */
    bool is_switch, is_down;
    bool is_lossy;      /* frames that arrive here may be lost */
    bool crosses_lanes; /* the wire leads to another lane (fab_lanes.c) */
    bool leads_to_host; /* the wire leads to a host; set only if there are lanes */
    uint8_t urgent;     /* consecutive frames of class 0 (TRIMMING) */

    _Alignas(64) uint64_t delay; /* ticks */
    uint32_t size_known[2];      /* a cache of two transmission times: full packets and ACKs */
    uint32_t time_known[2];
    uint64_t queued_bytes, max_queued;
    uint64_t kmin;
    uint64_t bytes_sent, frames_sent;

    _Alignas(64) uint64_t busy_ticks;
    uint64_t rate; /* bit/s */
    uint64_t kmax;
    double pmax;
    double error;    /* probability that a frame that arrives here is lost */
    uint64_t coins;  /* state of its generator: marks and losses, unless rules.draws */
    uint32_t loss;   /* number of the lossy link (fab_draws) */
    uint32_t number; /* from 1, at its node */
    uint32_t cost;   /* of its link, for shortest routes */
    double pint_u;   /* HPCC-PINT: utilisation (packet-network.md 8.5) */
    uint64_t last_at;
    uint32_t last_size;
    uint8_t unresumed;   /* paused classes whose resume frame was lost (PAUSE_EXPIRES) */
    uint8_t pause_depth; /* its position in the chain of pauses; 1: the last */
    uint8_t deepest;     /* the largest pause_depth ever */
    uint32_t lost;       /* frames lost on arrival here */
    uint32_t pause_head; /* the port where that chain began */
    uint32_t main_head;  /* the head responsible for most of its paused time */
    uint64_t main_head_ticks, longest_pause;
    uint64_t longest_queue; /* bytes, since the latest fab_port_take_longest */
    uint32_t pause_count;   /* pause frames received */
    uint64_t paused_since;  /* any class */
    uint64_t paused_ticks;  /* without the current pause */
    uint64_t dead_until;    /* frames that arrive until then were on the link when it failed */
} fab_port;

typedef struct fab_node {
    uint32_t first_port, port_count; /* in ports_of */
    uint32_t available, shared;      /* bytes of buffer; 32 bits, wrapping as in the reference */
    uint8_t kind;
    uint64_t events; /* of tie class FAB_TIE_HOST scheduled so far */
} fab_node;

/* Flows by their place at the NIC, one bit each: see fab_host.c. */
typedef struct fab_nic {
    uint32_t *flows; /* by place */
    size_t flow_room;
    uint32_t places, count; /* places in use; flows in the list */
    uint32_t last;          /* the flow served last: its place, or its index in the list */
    bool last_is_number;
    uint8_t classes; /* bit set: classes flows have had */
    fab_places listed, done, ready[FAB_CLASSES];
    uint32_t ack_head, ack_tail; /* waiting ACKs, NACKs and PFC frames, and forwarded packets */
    uint32_t urgent_tail;        /* the last of those before all others, or FAB_NONE */
    uint32_t wake;               /* a pending event, or FAB_NO_EVENT */
    uint32_t *paced;             /* heap of the flows that are not due, by next_at */
    size_t paced_count, paced_room;
    uint32_t pauses_made;
    uint8_t pause_class; /* of its latest pause request */
    bool is_between_pauses;
    bool has_forwarded; /* the packet sent last was forwarded */
} fab_nic;

/* ---- flows ---- */

/* TRANSPORT selective, at the sender: see fab_host.c. */
typedef struct fab_resend {
    uint64_t missing_count; /* packets to send again */
    uint64_t missing_from;  /* no earlier packet needs retransmission */
    uint64_t recovered;     /* reordering no longer signals loss for packets before this one */
    uint64_t settled;       /* all packets before this one are acknowledged */
    uint64_t farthest;      /* the highest packet acknowledged */
    uint64_t resent_at;     /* time of the last retransmission */
    uint64_t news, losses;  /* bytes newly acknowledged / newly declared lost by the latest ACK */
    uint64_t *told;         /* one bit per packet: acknowledged */
    uint64_t *missing;      /* one bit per packet: to be retransmitted */
} fab_resend;

typedef struct fab_flow {
    /* The sender, for every packet and ACK: two lines. */
    _Alignas(64) uint64_t size; /* bytes */
    uint64_t sent, acked;       /* bytes; sent: the next one to send */
    uint64_t rate, line_rate;
    uint64_t window;
    uint64_t next_at;              /* pacing: earliest time of the next packet */
    uint32_t port;                 /* its NIC */
    uint32_t place;                /* at the NIC; of a free slot: the next free one */
    _Alignas(64) uint64_t highest; /* highest byte sent */
    uint64_t in_flight;            /* bytes */
    uint64_t heard_at; /* when anything was last acknowledged; 0: not since the timer was set */
    uint32_t heap_place;
    uint32_t frames; /* in flight: they keep the slot in use */
    uint32_t last_size;
    uint32_t timeout; /* a pending event */
    uint32_t src, dst;
    uint16_t src_port, dst_port;
    uint16_t entropy;
    uint8_t timeouts; /* consecutive */
    uint8_t class;
    bool is_complete, is_listed;
    bool is_open, is_due; /* it has something to send; it is due */
    bool is_used : 1;
    bool is_ready : 1;      /* handed to its host, at started_at */
    bool is_selective : 1;  /* TRANSPORT selective */
    bool counts_flight : 1; /* the window limits in_flight, also for retransmissions */
    bool awaits_route : 1;  /* it starts when a repair gives it one */
    uint8_t good_count;
    /* The receiver. */
    _Alignas(64) uint64_t expected;
    uint64_t last_nacked, nack_at;
    uint64_t size_rx;  /* copy of size in the receiver's cache line */
    uint64_t *got;     /* TRANSPORT selective: one bit per packet */
    uint64_t gained;   /* bits set in `got` */
    uint32_t ack_port; /* its NIC */
    bool has_arrived;
    /* The sender: messages of one connection are ordered (fab_send_request.in_order). */
    uint32_t before, after; /* FAB_NONE: none */
    /* The sender, rarely. */
    _Alignas(64) uint64_t started_at;
    uint64_t token;
    uint64_t base_rtt;
    uint64_t last_sent_at; /* with LOAD_BALANCE */
    uint64_t number;       /* number of earlier flows */
    fab_resend *repeat;    /* NULL: not selective */
    uint16_t good[FAB_GOOD_ROUTES];
} fab_flow;
_Static_assert(sizeof(fab_flow) == 256, "a flow is four cache lines");

/* A completed flow. */
typedef struct fab_flow_end {
    uint64_t token, size;
    uint64_t took, ideal; /* ticks; ideal: on an idle network, 0 if unknown */
} fab_flow_end;

/* ---- times of flows ----
 *
 * Completion times and slowdowns of flows: percentiles by size class, in bounded memory.
 *
 *     if (!fab_flow_times_add(&f->times, size, ticks, ideal)) ...   // out of memory
 *     fab_flow_times_fill(&f->times, ps, &all, classes); */

enum { FAB_SPREAD_BITS = 7, FAB_SPREAD_PAGES = 65 - FAB_SPREAD_BITS };

typedef struct fab_spread_bin {
    uint64_t count, least, most;
} fab_spread_bin;

/* A histogram: bins no wider than 1/128 of their values, allocated on demand. */
typedef struct fab_spread {
    uint64_t count, least;
    fab_spread_bin *pages[FAB_SPREAD_PAGES];
} fab_spread;

typedef struct fab_flow_times {
    struct fab_flow_class {
        uint64_t flows, bytes;
        fab_spread times;     /* ticks */
        fab_spread slowdowns; /* millionths */
    } classes[ORR_FABRIC_CLASSES];
} fab_flow_times;

/* False: out of memory.  ideal 0: not known. */
bool fab_flow_times_add(fab_flow_times *t, uint64_t size, uint64_t ticks, uint64_t ideal);
void fab_flow_times_fini(fab_flow_times *t);
/* ps: of a tick. */
void fab_flow_times_fill(const fab_flow_times *t,
                         uint64_t ps,
                         orr_fabric_flows *all,
                         orr_fabric_flows classes[ORR_FABRIC_CLASSES]);

bool fab_spread_add(fab_spread *s, uint64_t value); /* false: out of memory */
void fab_spread_fini(fab_spread *s);
/* The value that permille of 1000 do not exceed, over `count` histograms; 0: the minimum.  0 if
 * they are empty. */
uint64_t fab_spread_at(const fab_spread *const *list, size_t count, unsigned permille);

#endif
