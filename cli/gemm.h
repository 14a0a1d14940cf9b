/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - what orrery gemm --compat and the old generator's name have in common. */
#ifndef ORR_CLI_GEMM_H
#define ORR_CLI_GEMM_H

#include "command.h"

#include <orrery/lab/gemm.h>
#include <orrery/lab/scalesim.h>

/* By the name of a simulator, v1 or v2; NULL: ours. */
orr_code cli_gemm_rules(const char *name, const orr_rules_gemm **out, orr_error *err);
/* One of the five ways to share out layers; another word: fails with `otherwise`. */
orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err);

/* Write the intermediate files into outputs/POLICY/RUN_NAME, which is made when it is not there;
 * shapes: the path of the CSV file, from whose name theirs are made. */
orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err);

#endif
