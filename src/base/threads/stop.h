/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - what orr_stop_when (orrery/lab/stop.h) set for this thread.
 *
 * Every request for memory asks, which is often enough for nearly all work; a loop that asks for
 * none over millions of items looks itself, every thousand items or so:
 *
 *     if (i % 1024 == 0 && orr__stop_asked())
 *         return orr_no_memory(err); */
#ifndef ORR_BASE_STOP_H
#define ORR_BASE_STOP_H

#include <orrery/lab/stop.h>

#include <stdbool.h>
#include <stddef.h>

/* Of a library that is loaded late, variables of a thread are allocated at its first use of one,
 * and glibc ends the process where that fails: initial-exec gives them their place at once.  A few
 * bytes may be so. */
#define ORR_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local
extern ORR_THREAD_LOCAL const int *orr__stop_flag;

static inline bool orr__stop_asked(void)
{
    const int *flag = orr__stop_flag;
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

#endif
