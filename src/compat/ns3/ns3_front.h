/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_front.h - AstraSimNetwork, the front end of ns-3: its run, for the table of programs. */
#ifndef ORR_COMPAT_NS3_FRONT_H
#define ORR_COMPAT_NS3_FRONT_H

#include "run/run_rules.h"

extern const orr_rules_run ns3_run_rules;
extern const run_byte_matching ns3_byte_matching;

#endif
