/* SPDX-License-Identifier: Apache-2.0 */
/* html_report.h - a run as one HTML page: what run --report, report and demo share. */
#ifndef ORR_CLI_HTML_REPORT_H
#define ORR_CLI_HTML_REPORT_H

#include "command.h"

#include <orrery/lab/explain.h>
#include <orrery/report.h>

/* "auto", "off", "estimate" or "simulate"; the option table has checked the word. */
orr_what_if cli_what_if_of(const char *word);

/* Add a run that is over, was stopped or has stalled to a report. */
orr_code cli_report_add(orr_report *page,
                        orr_run *r,
                        const orr_explain_options *opt,
                        orr_error *err);

/* One run, one page; its title is opt->name, or that of its flows. */
orr_code cli_report_one(const cli_context *c,
                        orr_run *r,
                        const orr_explain_options *opt,
                        const char *path,
                        orr_error *err);
/* The command as it was given: "orrery run step.orr --system sys.json".  The caller frees it; NULL:
 * out of memory. */
char *cli_command_line(const cli_context *c);

#endif
