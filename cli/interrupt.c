/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - Ctrl-C during a simulation: it stops between two events, so that what is known can be printed.
 *
 * A signal handler has no argument of ours, so the simulation that runs is in a variable of this file: a
 * program runs one at a time.  A second Ctrl-C meets the default action. */
#include "command.h"
#include "goal.h"

#include <signal.h>

static orr_sim *volatile running;
static orr_loggops *volatile running_loggops;

static void stop_running(int signal_number)
{
    orr_sim *s = running;
    orr_loggops *l = running_loggops;
    (void)signal_number;
    if (s)
        orr_sim_stop(s);
    if (l)
        orr_loggops_stop(l);
}

static orr_code run_one(orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_running, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code =
        running ? orr_sim_run(running, err) : orr_loggops_run(running_loggops, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    running = NULL;
    running_loggops = NULL;
    return code;
}

orr_code cli_run_until_stopped(orr_sim *s, orr_error *err)
{
    running = s;
    return run_one(err);
}

orr_code cli_run_loggops_until_stopped(orr_loggops *s, orr_error *err)
{
    running_loggops = s;
    return run_one(err);
}
