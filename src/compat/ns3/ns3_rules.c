/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_rules.c - the reference's side of each rule, quirks and all (packet-network.md 14).
 *
 * Exact to the nanosecond and to the order of events of one instant, so that fct.txt is equal byte
 * for byte.  Only stalls differ: the reference would run forever where its retransmission is
 * missing; here the run ends with an error that says why (14 row 5). */
#include "ns3_front.h"

#include "ns3_random.h"

/* Line rates that its telemetry header has a code for (packet-network.md 8.2). */
static const uint64_t hpcc_rates[] = {25, 50, 100, 200, 400, 1200, 2400, 0};

const struct orr_rules_packet orr__ns3_rules = {
    .engine = {.ticks_per_ns = 1,
               .orders_by_schedule = true,
               .draws = &orr__ns3_draws,
               .measures_all_pairs = true,
               .routes_by_address = true,
               .link_down_offset = 2000000,
               .starts_in_two_events = true,
               .tells_receiver_at_ack = true,
               .acks_all_after_first = true,
               .forgets_receiver = true,
               .holds_all_acks = true,
               .hides_paced_flows = true,
               .reuses_last_flow = true,
               .largest_message = INT32_MAX,
               .hpcc_hops = 5,
               .hpcc_rates = hpcc_rates,
               .hpcc_wraps = true,
               .timely_sees_clock = true,
               .narrows_ideal = true},
    .counts_unknown_keys = true,
    .refuses_new_keys = true,
    .needs_ack_interval = true,
    .marks_all_unmapped = true,
    .ignores_more_traced = true,
    .allows_islands = true,
    .most_ports = 1024,
    .matches_bytes = true,
};
