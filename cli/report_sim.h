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

/* The links of a network for a report: the busiest 2,000, whatever the order in which they are visited. */
typedef struct cli_links {
    orr_net_link *links;
    orr_report_link *list;           /* the busiest first */
    char (*ends)[ORR_NET_LINK_NAME]; /* two each */
    size_t count, seen;
} cli_links;
orr_code cli_links_begin(cli_links *l, orr_error *err);
void cli_links_take(void *links, const orr_net_link *link); /* an orr_net_link_visit */
void cli_links_end(cli_links *l);
void cli_links_fini(cli_links *l);

/* Flows that have run: one page.  why: what ended the run early; NULL: all flows are done. */
orr_code cli_report_flows(const cli_context *c,
                          const orr_packet *p,
                          const orr_error *why,
                          const char *path,
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
