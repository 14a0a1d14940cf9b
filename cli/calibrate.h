/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - the commands below orrery calibrate. */
#ifndef ORR_CLI_CALIBRATE_H
#define ORR_CLI_CALIBRATE_H

#include "option.h"

extern const cli_command cli_cmd_calibrate_nccl;
extern const cli_command cli_cmd_calibrate_kernels;
extern const cli_command cli_cmd_calibrate_steps;

#endif
