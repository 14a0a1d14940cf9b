/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_front.h - AstraSimNetwork, the front end of ns-3: its run, for the table of programs. */
#ifndef ORR_COMPAT_NS3_FRONT_H
#define ORR_COMPAT_NS3_FRONT_H

#include "models/network/packet/packet_rules.h"
#include "run/run_rules.h"

/* ---- the packet network as AstraSimNetwork, the ns-3 front end, has it ---- */

extern const struct orr_rules_packet orr__ns3_rules;

extern const orr_rules_run ns3_run_rules;
extern const run_byte_matching ns3_byte_matching;

#endif
