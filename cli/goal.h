/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h - what the commands that handle GOAL schedules share. */
#ifndef ORR_CLI_GOAL_H
#define ORR_CLI_GOAL_H

#include "command.h"

#include <orrery/lab/goal.h>

/* Read a schedule; what is odd about it is remarked. */
orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err);

bool cli_is_goal(const char *path); /* by its name or its first bytes */
/* The same, of what is to be run: standard input and pipes bring schedules, since traces are
 * several files. */
bool cli_brings_goal(const char *path);

/* A schedule from GOAL or from traces; of the latter the options system, topology and groups say
 * what becomes of collectives. */
orr_code cli_goal_load(cli_context *c, const char *path, orr_goal **out, orr_error *err);

/* The files that a schedule comes from, for results; paths lie in the command line. */
enum { CLI_MOST_JOBS = 256, CLI_GOAL_INPUTS = CLI_MOST_JOBS + 5 };
typedef struct cli_goal_inputs {
    orr_run_source list[CLI_GOAL_INPUTS];
    size_t count;
} cli_goal_inputs;
/* The first argument and the jobs beside it, placed as the options job, placement, hosts and seed
 * say.  `inputs`, which may be NULL, must be empty before. */
orr_code cli_goal_jobs(cli_context *c, cli_goal_inputs *inputs, orr_goal **out, orr_error *err);

#endif
