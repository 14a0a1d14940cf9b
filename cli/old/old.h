/* SPDX-License-Identifier: Apache-2.0 */
/* old.h - the old programs, one table each; those of parts of src/compat that are not built are not
 * defined. */
#ifndef ORR_CLI_OLD_H
#define ORR_CLI_OLD_H

#include "command.h"

extern const cli_command cli_old_astra_aware, cli_old_astra_packet, cli_old_astra_unaware;
extern const cli_command cli_old_astra_congestion, cli_old_astra_early;
extern const cli_command cli_old_astra_htsim, cli_old_astra_ns3;
extern const cli_command cli_old_bin2txt, cli_old_loggopsim, cli_old_txt2bin;
extern const cli_command cli_old_chakra_converter, cli_old_et_converter;
extern const cli_command cli_old_chakra_generator, cli_old_et_generator;
extern const cli_command cli_old_chakra_jsonizer, cli_old_chakra_visualizer, cli_old_et_visualizer;
extern const cli_command cli_old_chakra_timeline, cli_old_chakra_trace_link;
extern const cli_command cli_old_gemm, cli_old_gemm_script;
extern const cli_command cli_old_nccl;
extern const cli_command cli_old_scalesim;
extern const cli_command cli_old_schedgen;
extern const cli_command cli_old_stage, cli_stage_compat;

#endif
