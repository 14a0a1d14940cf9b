/* SPDX-License-Identifier: Apache-2.0 */
/* astra_sim.h - what this room exports to table.c. */
#ifndef ORR_COMPAT_ASTRA_SIM_H
#define ORR_COMPAT_ASTRA_SIM_H

#include "run/run_rules.h"

extern const orr_rules_run astra_sim_rules, astra_sim_2023_rules, astra_sim_1_rules; /* rules.c */
extern const run_old_output astra_sim_output;                                        /* old_log.c */

orr_code astra_sim_write_memory(const orr_sim *s,
                                uint32_t rank,
                                const char *path,
                                orr_error *err); /* memory_trace.c */

#endif
