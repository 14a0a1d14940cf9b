/* SPDX-License-Identifier: Apache-2.0 */
/* report_sim.h - a simulation as a run of a report: what run --report, report and demo share. */
#ifndef ORR_CLI_REPORT_SIM_H
#define ORR_CLI_REPORT_SIM_H

#include "command.h"

#include <orrery/report.h>
#include <orrery/sim.h>

typedef enum cli_what_if {
    CLI_WHAT_IF_AUTO, /* simulate when that takes seconds */
    CLI_WHAT_IF_OFF,
    CLI_WHAT_IF_ESTIMATE,
    CLI_WHAT_IF_SIMULATE
} cli_what_if;

typedef struct cli_report_wishes {
    const char *name;  /* of the run */
    const char *ranks; /* see orr_report_run.ranks_shown */
    cli_what_if what_if;
    double seconds; /* that the run took: for AUTO */
} cli_report_wishes;

/* "auto", "off", "estimate" or "simulate", which the option's table has checked. */
cli_what_if cli_what_if_of(const char *word);

/* Add a simulation that has run, or has come to a standstill, to a report.  opt: those it was made with. */
orr_code cli_report_add_sim(orr_report *r,
                            orr_sim *s,
                            const orr_sim_options *opt,
                            const cli_report_wishes *wishes,
                            orr_error *err);

/* One simulation, one page. */
orr_code cli_report_one(const cli_context *c,
                        orr_sim *s,
                        const orr_sim_options *opt,
                        const cli_report_wishes *wishes,
                        const char *path,
                        orr_error *err);

/* The command as it was given: "orrery run step.orr --system sys.json".  The caller frees it; NULL: no memory. */
char *cli_command_line(const cli_context *c);

double cli_seconds(void); /* of a clock that only runs forwards */

#endif
