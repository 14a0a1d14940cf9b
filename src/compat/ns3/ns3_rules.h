/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_rules.h - the packet network as AstraSimNetwork, the ns-3 front end, has it. */
#ifndef ORR_COMPAT_NS3_RULES_H
#define ORR_COMPAT_NS3_RULES_H

#include "models/network/packet/packet_rules.h"

extern const struct orr_rules_packet orr__ns3_rules;

#endif
