/* SPDX-License-Identifier: Apache-2.0 */
/* fab_rules.h - where the packet network may behave in more than one way: one member each, read by
 * the engine.
 *
 * config_file.c has ours, which a run without further options uses.  src/compat/ns3 has the set of
 * the reference simulator; the numbers in brackets are rows of the table of quirks in
 * packet-network.md 14. */
#ifndef ORR_MODELS_FAB_RULES_H
#define ORR_MODELS_FAB_RULES_H

#include <orrery/types.h>

/* Random numbers that do not come from each port's own generator (packet-network.md 1.2). */
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
    /* Time.  Ticks of 1 ns: a transmission takes the nearest number of them, an exact half goes
     * down.  Finer ticks: it is rounded up, because the last bit must be there (packet-network.md
     * 1.1) [1]. */
    uint32_t ticks_per_ns;
    /* Events of one instant run in the order in which they were scheduled, over the network and the
     * simulator (packet-network.md 1).  Otherwise they are ordered by who acts (fab_tie), which
     * lets parts of the network run on several threads with the same result. */
    bool orders_by_schedule;
    const fab_draws *draws; /* NULL: each port has its own generator */

    /* ---- routes (packet-network.md 5) ---- */
    bool measures_all_pairs; /* longest round trip and largest BDP, even if no flow needs them */
    bool routes_by_address;  /* equal routes in the order of the reference's std::map [8] */
    bool waits_for_repair;   /* a flow without a route waits for one, and does not end the run */
    /* us that LINK_DOWN is later than it says (packet-network.md 9) [15] */
    uint64_t link_down_offset;
    bool frees_lost_buffer; /* what a failing link loses leaves the buffer's counters [15] */

    /* ---- hosts (packet-network.md 6) ---- */
    /* a message reaches its NIC through two events (packet-network.md 6.1) */
    bool starts_in_two_events;
    /* the receiver has a message when the sender has its last ACK [3] */
    bool tells_receiver_at_ack;
    bool acks_all_after_first; /* L2_ACK_INTERVAL counts once; then every packet is ACKed [4] */
    /* messages from a rank to another are one connection, as a queue pair is: one after the other
     * [19] */
    bool keeps_order;
    bool has_timeouts;    /* retransmission timer [5] */
    bool acks_duplicates; /* the ACK of what has arrived before may be lost [5] */
    bool accepts_overlap; /* a packet may begin with bytes that have arrived before */
    bool skips_acked;     /* what an ACK covers is not sent again */
    /* when a flow is done its receiver's state begins again (packet-network.md 6.1) */
    bool forgets_receiver;
    bool completes_chunks; /* L2_BACK_TO_ZERO: windows and the last bytes fit its chunks */
    /* one pause, of class 3 or 0, holds all that is not data (packet-network.md 6.5) */
    bool holds_all_acks;
    /* a host that passes packets on sends them and its own in turn, not its own last [13] */
    bool forwards_in_turn;
    bool acks_high_in_switches; /* ACK_HIGH_PRIO reaches switches [12] */
    /* a pause that a host asked for ends even if the resume is lost [18] */
    bool host_pauses_expire;
    /* a NIC sleeps on while any flow is due but held back (packet-network.md 6.5) [16] */
    bool hides_paced_flows;
    bool reuses_last_flow;    /* slots of flows: the one freed last is next, and orders reports */
    uint64_t largest_message; /* bytes that the simulator may send at once [14] */
    uint64_t most_packets;    /* of a message or flow; 0: any number */

    /* ---- switches and congestion control (packet-network.md 7, 8) ---- */
    /* smaller than headroom and reserves: they would wrap (packet-network.md 7.1) [11] */
    bool refuses_small_buffers;
    uint32_t hpcc_hops;         /* the most that HPCC can carry (packet-network.md 8.2) [17] */
    const uint64_t *hpcc_rates; /* Gb/s that HPCC has a code for, ending in 0; NULL: any [17] */
    /* telemetry is cut to the bits of its header (packet-network.md 8.2) */
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
