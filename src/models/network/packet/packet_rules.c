/* SPDX-License-Identifier: Apache-2.0 */
/* packet_rules.c - our side of each rule: "native default" of the table in packet-network.md 14. */
#include "packet_rules.h"

static const struct orr_rules_packet ours = {
    .engine = {.ticks_per_ns = 1000,
               .waits_for_repair = true,
               .frees_lost_buffer = true,
               .keeps_order = true,
               .has_timeouts = true,
               .acks_duplicates = true,
               .accepts_overlap = true,
               .skips_acked = true,
               .completes_chunks = true,
               .forwards_in_turn = true,
               .acks_high_in_switches = true,
               .host_pauses_expire = true,
               .largest_message = UINT64_MAX,
               .most_packets = 1ull << 32, /* hours */
               .refuses_small_buffers = true,
               .hpcc_hops = UINT8_MAX,
               .has_nscc = true,
               .honours_ends = true,
               .can_skip_periods = true},
    .checks_values = true,
};

const struct orr_rules_packet *orr__packet_rules(const struct orr_rules_packet *given)
{
    return given ? given : &ours;
}
