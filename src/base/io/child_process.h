/* SPDX-License-Identifier: Apache-2.0 */
/* child_process.h - another program, run to its end.
 *
 *     orr_held_signals held;
 *     orr_signals_hold(&held);                       // from here on an interrupt waits ...
 *     orr_child_end end;
 *     code = orr_child_run(&(orr_child){.path = "/usr/bin/python3", .arguments = args}, &held, &end, err);
 *     ... remove what was left in temporary folders ...
 *     orr_signals_release(&held);                    // ... until here
 *
 * The child has an empty standard input and a process group of its own.  An interrupt (SIGINT,
 * SIGTERM, SIGHUP) is passed on to all of that group; a second one kills it.  Programs of one
 * thread only: signals belong to threads. */
#ifndef ORR_BASE_CHILD_PROCESS_H
#define ORR_BASE_CHILD_PROCESS_H

#include "base/memory/memory.h"

#include <dirent.h>
#include <signal.h>

typedef struct orr_held_signals {
    sigset_t before, held;
} orr_held_signals;

void orr_signals_hold(orr_held_signals *h);
void orr_signals_release(const orr_held_signals *h); /* what came meanwhile is acted upon now */

typedef struct orr_child {
    const char *path;             /* the program, with its folder */
    const char *const *arguments; /* the first is the program's name; NULL ends */
    const char *const
        *environment;   /* "NAME=VALUE", beside ours or in place of it; NULL ends; may be NULL */
    const char *output; /* a file for all that it prints; NULL: our standard error */
} orr_child;

typedef struct orr_child_end {
    int status; /* of exit; -1: ended by a signal */
    int signal; /* 0: none */
} orr_child_end;

/* ORR_ESTOP: interrupted; ORR_EIO: it could not be started. */
orr_code orr_child_run(const orr_child *child,
                       const orr_held_signals *held,
                       orr_child_end *end,
                       orr_error *err) ORR_MUST_CHECK;

/* Where a program of this name is, as a shell finds it, in a; *out is NULL when it is nowhere. */
orr_code orr_program_find(orr_arena *a, const char *name, char **out, orr_error *err)
    ORR_MUST_CHECK;

/* A temporary folder, open from the start: removing it needs neither memory nor a descriptor. */
typedef struct orr_folder {
    char *path; /* NULL: there is none */
    DIR *entries;
} orr_folder;

/* A new one that only we can look into, under $TMPDIR or /tmp; its path in a. */
orr_code orr_folder_create(orr_arena *a, orr_folder *out, orr_error *err) ORR_MUST_CHECK;
void orr_folder_remove(orr_folder *f); /* with all that is in it; an empty or removed one is fine */

#endif
