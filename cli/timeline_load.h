/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_load.h - a run that was recorded, in whatever form it is kept: what diff, report and
 * view share. */
#ifndef ORR_CLI_TIMELINE_LOAD_H
#define ORR_CLI_TIMELINE_LOAD_H

#include "command.h"

typedef enum cli_run_kind {
    CLI_RUN_OTHER, /* no timeline: traces, as it seems */
    CLI_RUN_TIMED, /* trace events, a folder of them, an export of Nsight Systems */
    CLI_RUN_LOG    /* a log of issued nodes, in cycles: the command's --frequency */
} cli_run_kind;

/* What it is shows in what it holds.  *out is NULL for CLI_RUN_OTHER. */
orr_code cli_timeline_load(
    const cli_context *c, const char *path, cli_run_kind *kind, orr_timeline **out, orr_error *err);
/* The same for what is known to be a log, or trace events. */
orr_code cli_timeline_load_log(const cli_context *c,
                               const char *path,
                               orr_timeline **out,
                               orr_error *err);
orr_code cli_timeline_load_events(const char *path, orr_timeline **out, orr_error *err);

#endif
