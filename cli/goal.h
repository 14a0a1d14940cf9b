/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h - what the commands that handle GOAL schedules share. */
#ifndef ORR_CLI_GOAL_H
#define ORR_CLI_GOAL_H

#include "command.h"

#include <orrery/lab/loggops.h>

/* Read a schedule; what is odd about it is remarked. */
orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err);

bool cli_is_goal(const char *path); /* by its name or its first bytes */
/* The same, of what is to be run: standard input and pipes bring schedules, since traces are several files. */
bool cli_brings_goal(const char *path);

/* A schedule from GOAL or from traces; of the latter the options system, topology and groups say what becomes of
 * collectives. */
orr_code cli_goal_load(cli_context *c, const char *path, orr_goal **out, orr_error *err);

/* The files that a schedule comes from, for results; paths lie in the command line. */
enum { CLI_MOST_JOBS = 256, CLI_GOAL_INPUTS = CLI_MOST_JOBS + 5 };
typedef struct cli_goal_inputs {
    orr_loggops_input list[CLI_GOAL_INPUTS];
    size_t count;
} cli_goal_inputs;
/* The first argument and the jobs beside it, placed as the options job, placement, hosts and seed say.  `inputs`,
 * which may be NULL, must be empty before. */
orr_code cli_goal_jobs(cli_context *c, cli_goal_inputs *inputs, orr_goal **out, orr_error *err);

/* The options system and topology; without them a plain system and one switch, whose text is put into `text`. */
enum { CLI_PLAIN_ROOM = 160 };
void cli_plain_files(const cli_context *c, uint32_t ranks, char *text, orr_sim_options *opt);

/* orr_loggops_run; an interrupt stops it, with ORR_ESTOP. */
orr_code cli_run_loggops_until_stopped(orr_loggops *s, orr_error *err);

/* A run that stands still explains itself below the error; nothing happens when it does not. */
void cli_explain_stall(cli_context *c, orr_sim *s, const orr_error *err);
void cli_explain_loggops(cli_context *c, const orr_loggops *s, const orr_error *err);

/* orrery check of a schedule. */
orr_code cli_check_goal(cli_context *c, orr_error *err);
/* orrery run --compare. */
orr_code cli_run_compare(cli_context *c, orr_error *err);
/* orrery run --network loggops, and its parameters. */
orr_code cli_run_loggops(cli_context *c, orr_error *err);
orr_code cli_loggops_options(const cli_context *c, orr_loggops_options *o, orr_error *err);

#endif
