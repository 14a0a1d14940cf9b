/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - what orrery gemm --compat and the old generator's name have in common. */
#ifndef ORR_CLI_GEMM_H
#define ORR_CLI_GEMM_H

#include "command.h"

#include <orrery/lab/gemm.h>
#include <orrery/lab/scalesim.h>

orr_systolic_rules cli_gemm_rules(const char *compat); /* v1, v2; NULL: our own */
orr_layers_style cli_gemm_style(orr_systolic_rules rules);
/* One of the five ways to share out layers; another word: fails with `otherwise`. */
orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err);

/* The old simulators put the run's name into a folder name; in the wrong spelling for their generation the old
 * generator did not find their reports again (spec scale-sim.md, 7.6). */
orr_code cli_gemm_check_run(const char *path,
                            const orr_scalesim_config *config,
                            orr_systolic_rules rules,
                            orr_error *err);

/* Write the intermediate files into outputs/POLICY/RUN_NAME, which is made when it is not there; shapes: the path of
 * the CSV file, from whose name theirs are made. */
orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err);

#endif
