/* SPDX-License-Identifier: Apache-2.0 */
/* fab_rules.h - alternative behaviours of the packet network: one member each, read by the engine.
 *
 * config_file.c has ours, the default.  src/compat/ns3 has those of the reference simulator;
 * numbers in brackets are rows of the table of quirks in packet-network.md 14. */
#ifndef ORR_MODELS_FAB_RULES_H
#define ORR_MODELS_FAB_RULES_H

#include <orrery/types.h>

/* A source of random numbers instead of each port's own generator (packet-network.md 1.2). */
typedef struct fab_draws {
    /* NULL: out of memory.  Lossy links are numbered from 1 in the order of the topology file; 0
     * stands for all links that lose packets by ERROR_RATE_PER_LINK. */
    void *(*create)(uint32_t nodes, uint32_t lossy_links);
    void (*destroy)(void *draws);                /* NULL is fine */
    double (*mark)(void *draws);                 /* ECN: from 0 to below 1 */
    double (*lose)(void *draws, uint32_t lossy); /* a frame on that link */
    uint32_t (*pint)(void *draws);               /* 31 bits */
    void (*pfc_sent)(void *draws);               /* a pause frame was made */
} fab_draws;

typedef struct fab_rules {
    /* Time.  Ticks of 1 ns: a transmission time is rounded to the nearest tick, ties down.  Finer
     * ticks: it is rounded up, because the last bit must have arrived (packet-network.md 1.1)
     * [1]. */
    uint32_t ticks_per_ns;
    /* Events of one instant run in the order in which they were scheduled, across network and
     * simulator (packet-network.md 1).  Otherwise they are ordered by actor (fab_tie), which lets
     * parts of the network run on several threads with the same result. */
    bool orders_by_schedule;
    const fab_draws *draws; /* NULL: each port has its own generator */

    /* ---- routes (packet-network.md 5) ---- */
    bool measures_all_pairs; /* longest round trip and largest BDP, even if no flow needs them */
    bool routes_by_address;  /* equal routes in the order of the reference's std::map [8] */
    bool waits_for_repair;   /* a flow without a route waits for one instead of ending the run */
    /* us by which LINK_DOWN is delayed (packet-network.md 9) [15] */
    uint64_t link_down_offset;
    bool frees_lost_buffer; /* frames lost on a failing link leave the buffer's counters [15] */

    /* ---- hosts (packet-network.md 6) ---- */
    /* a message reaches its NIC through two events (packet-network.md 6.1) */
    bool starts_in_two_events;
    /* the receiver gets a message when the sender has its last ACK [3] */
    bool tells_receiver_at_ack;
    bool acks_all_after_first; /* L2_ACK_INTERVAL counts once; then every packet is ACKed [4] */
    /* messages between two ranks share a connection, like a queue pair: sequential [19] */
    bool keeps_order;
    bool has_timeouts;    /* retransmission timer [5] */
    bool acks_duplicates; /* ACK duplicates, since the first ACK may be lost [5] */
    bool accepts_overlap; /* a packet may begin with bytes that have already arrived */
    bool skips_acked;     /* acknowledged bytes are not retransmitted */
    /* a completed flow resets its receiver's state (packet-network.md 6.1) */
    bool forgets_receiver;
    /* L2_BACK_TO_ZERO: windows and the last bytes are aligned to its chunks */
    bool completes_chunks;
    /* one pause, of class 3 or 0, blocks everything but data (packet-network.md 6.5) */
    bool holds_all_acks;
    /* a forwarding host alternates between forwarded packets and its own, instead of sending its
     * own last [13] */
    bool forwards_in_turn;
    bool acks_high_in_switches; /* ACK_HIGH_PRIO reaches switches [12] */
    /* a pause requested by a host ends even if the resume is lost [18] */
    bool host_pauses_expire;
    /* a NIC stays asleep while any flow is due but blocked (packet-network.md 6.5) [16] */
    bool hides_paced_flows;
    bool reuses_last_flow;    /* flow slots are reused LIFO, which orders reports */
    uint64_t largest_message; /* maximum bytes per message of the simulator [14] */
    uint64_t most_packets;    /* per message or flow; 0: unlimited */

    /* ---- switches and congestion control (packet-network.md 7, 8) ---- */
    /* buffers smaller than headroom and reserves: they would wrap (packet-network.md 7.1) [11] */
    bool refuses_small_buffers;
    uint32_t hpcc_hops;         /* maximum hops of HPCC's header (packet-network.md 8.2) [17] */
    const uint64_t *hpcc_rates; /* Gb/s with a code in HPCC's header, ending in 0; NULL: any [17] */
    /* telemetry is truncated to the bits of its header (packet-network.md 8.2) */
    bool hpcc_wraps;
    /* the RTT is the time since the start of the run (packet-network.md 8.3) [7] */
    bool timely_sees_clock;
    bool has_nscc; /* CC_MODE 11 is a congestion control (packet-network.md 8.6) */

    /* ---- the end of a run, and its files (packet-network.md 11) ---- */
    bool honours_ends; /* SIMULATOR_STOP_TIME and QLEN_MON_END [10] */
    /* 32 bits of bytes in the ideal time of fct.txt (packet-network.md 11.1) */
    bool narrows_ideal;
    bool can_skip_periods; /* APPROX */
} fab_rules;

#endif
