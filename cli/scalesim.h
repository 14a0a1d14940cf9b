/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim.h - what orrery scalesim and SCALE-Sim's own name, scale.py, have in common. */
#ifndef ORR_CLI_SCALESIM_H
#define ORR_CLI_SCALESIM_H

#include <orrery/lab/scalesim.h>

/* By the name of a generation; NULL: ours. */
orr_code cli_scalesim_rules(const char *name, const orr_rules_systolic **out, orr_error *err);
/* BASE/RUN_NAME, which is made; without a name of the run that of the table and the dataflow. */
orr_code cli_scalesim_folder(const char *base,
                             const orr_scalesim_config *config,
                             const orr_scalesim_network *net,
                             char *out,
                             size_t size,
                             orr_error *err);
/* v1: into the folder layer_wise of the reports; v2 and v3: into layer0, layer1, ... */
orr_code cli_scalesim_traces(const orr_scalesim *r,
                             int generation,
                             const char *reports,
                             orr_error *err);

#endif
