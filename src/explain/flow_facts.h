/* SPDX-License-Identifier: Apache-2.0 */
/* flow_facts.h - what views see of a run of flows: its figures, and the network that they flowed
 * through. */
#ifndef ORR_EXPLAIN_FLOW_FACTS_H
#define ORR_EXPLAIN_FLOW_FACTS_H

#include "models/network/packet/packet.h"
#include "models/network/packet/packet_run.h"

#endif
