/* SPDX-License-Identifier: Apache-2.0 */
/* html_report.h - a run as one HTML page: what run --report, report and demo share. */
#ifndef ORR_CLI_HTML_REPORT_H
#define ORR_CLI_HTML_REPORT_H

#include "command.h"

#include <orrery/lab/explain.h>
#include <orrery/lab/sim.h>
#include <orrery/report.h>

/* "auto", "off", "estimate" or "simulate"; the option table has checked the word. */
orr_what_if cli_what_if_of(const char *word);

/* Add a simulation that has run, was stopped or has stalled to a report. */
orr_code cli_report_add_sim(orr_report *r,
                            orr_sim *s,
                            const orr_explain_options *opt,
                            orr_error *err);

/* One simulation, one page; its title is opt->name. */
orr_code cli_report_one(const cli_context *c,
                        orr_sim *s,
                        const orr_explain_options *opt,
                        const char *path,
                        orr_error *err);
/* Flows that have run, one page.  why: what ended the run early; NULL: all flows are done. */
orr_code cli_report_flows(const cli_context *c,
                          const orr_packet *p,
                          const orr_error *why,
                          const char *path,
                          orr_error *err);

/* The command as it was given: "orrery run step.orr --system sys.json".  The caller frees it; NULL: out of memory. */
char *cli_command_line(const cli_context *c);

double cli_seconds(void); /* of a monotonic clock */

#endif
