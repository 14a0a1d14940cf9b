/* SPDX-License-Identifier: Apache-2.0 */
/* sg_rules.h - SchedGen of LogGOPSim (2023) and of ATLAHS (goal.md 4). */
#ifndef ORR_COMPAT_SG_RULES_H
#define ORR_COMPAT_SG_RULES_H

#include <orrery/lab/schedgen.h>

extern const orr_rules_schedgen sg_lgs2023, sg_atlahs;

#endif
