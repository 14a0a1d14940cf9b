/* SPDX-License-Identifier: Apache-2.0 */
/* packet_rules.h - all that another program may decide about the packet network: its engine and its
 * files.
 *
 * Callers hand around a `const struct orr_rules_packet *`; NULL means ours (orr__packet_rules).
 * src/compat/ns3 has the other set. */
#ifndef ORR_MODELS_PACKET_RULES_H
#define ORR_MODELS_PACKET_RULES_H

#include "models/network/packet/engine/fab_rules.h"

struct orr_rules_packet {
    fab_rules engine;
    /* words of config.txt that are no key: a warning (packet-network.md 3, 14 row 9) */
    bool counts_unknown_keys;
    bool refuses_new_keys; /* keys that only Orrery has */
    bool checks_values;    /* thresholds, gains and timers that cannot work are errors */
    /* L2_ACK_INTERVAL 0 would acknowledge nothing (packet-network.md 6.3) */
    bool needs_ack_interval;
    /* a link speed that KMIN_MAP lacks has thresholds of 0 (packet-network.md 7.3, 14 row 9) */
    bool marks_all_unmapped;
    bool ignores_more_traced; /* nodes after the count of the trace file (packet-network.md 4.2) */
    bool allows_islands;      /* hosts that no route joins */
    uint32_t most_ports;      /* per switch; 0: any number (packet-network.md 7) */
    /* receives take bytes of a pair of ranks, not messages (packet-network.md 6.1) */
    bool matches_bytes;
};

/* The given ones, or ours. */
const struct orr_rules_packet *orr__packet_rules(const struct orr_rules_packet *given);

#endif
