/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h - what the commands that handle GOAL schedules share. */
#ifndef ORR_CLI_GOAL_H
#define ORR_CLI_GOAL_H

#include "command.h"

#include <orrery/loggops.h>

/* Read a schedule; what is odd about it is remarked. */
orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err);

/* orr_loggops_run; an interrupt stops it, with ORR_ESTOP. */
orr_code cli_run_loggops_until_stopped(orr_loggops *s, orr_error *err);

/* orrery run --network loggops, and its parameters. */
orr_code cli_run_loggops(cli_context *c, orr_error *err);
orr_code cli_loggops_options(const cli_context *c, orr_loggops_options *o, orr_error *err);

#endif
