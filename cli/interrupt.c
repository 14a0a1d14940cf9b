/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - Ctrl-C during a simulation: it stops between two events, so that what is known can be printed.
 *
 * A signal handler has no argument of ours, so the simulation that runs is in a variable of this file: a
 * program runs one at a time.  A second Ctrl-C meets the default action. */
#include "command.h"

#include <signal.h>

static orr_sim *volatile running;

static void stop_running(int signal_number)
{
    orr_sim *s = running;
    (void)signal_number;
    if (s)
        orr_sim_stop(s);
}

orr_code cli_run_until_stopped(orr_sim *s, orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_running, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    running = s;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code = orr_sim_run(s, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    running = NULL;
    return code;
}
