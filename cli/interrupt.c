/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - Ctrl-C during a run: it stops between two events, so that what is known can be
 * printed.
 *
 * A signal handler has no argument of ours, so the run is in a variable of this file: a program
 * runs one at a time.  A second Ctrl-C meets the default action. */
#include "command.h"

#include <signal.h>

static orr_run *volatile running;

static void stop_running(int signal_number)
{
    orr_run *r = running;
    (void)signal_number;
    if (r)
        orr_run_stop(r);
}

orr_code cli_run_to_end(orr_run *r, orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_running, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    running = r;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code = orr_run_to_end(r, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    running = NULL;
    return code;
}

orr_code cli_run_start(const cli_context *c,
                       const orr_run_config *config,
                       orr_run **out,
                       orr_error *err)
{
    const char *line;
    const orr_code code = orr_run_create(config, out, err);
    for (size_t i = 0; !code && (line = orr_run_warning(*out, i)); i++)
        cli_note(c, "%s\n", line);
    return code ? code : cli_run_to_end(*out, err);
}

void cli_explain(cli_context *c, orr_run *r, const orr_error *err)
{
    const char *line;
    if (!r || !orr_run_stall_line(r, 0))
        return;
    cli_report(c, err);
    for (size_t i = 0; (line = orr_run_stall_line(r, i)); i++)
        fprintf(stderr, "%s\n", line);
}
