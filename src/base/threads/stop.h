/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - work that can be asked to stop: what orr_stop_when (orrery/lab/stop.h) set for this
 * thread, and limits of time and memory.
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

#include "base/memory/memory.h"

/* In a library loaded with dlopen, thread-local variables are allocated on first use, and glibc
 * aborts if that fails; initial-exec allocates them when the thread starts.  The static reserve is
 * enough for a few bytes. */
#define ORR_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local
extern ORR_THREAD_LOCAL const int *orr__stop_flag;

static inline bool orr__stop_asked(void)
{
    const int *flag = orr__stop_flag;
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* ---- guard ----
 *
 * Limits of time and memory on a piece of work that can be asked to stop.
 *
 *     orr_guard *g;
 *     code = orr_guard_start(10, 0, stop_it, it, &g, &err);    ten seconds
 *     code = work(it, &err);                                   stop_it(it) may be called meanwhile
 *     if (orr_guard_end(g) == ORR_GUARD_TIME) ...
 *
 * A thread looks at the clock and at the memory of the process some fifty times a second. */

typedef enum orr_guard_limit {
    ORR_GUARD_NONE = 0,
    ORR_GUARD_TIME,
    ORR_GUARD_MEMORY
} orr_guard_limit;

typedef struct orr_guard orr_guard;

/* Zero: no limit; without any, *out is NULL.  `stop` is called once, from another thread. */
orr_code orr_guard_start(double seconds,
                         uint64_t bytes,
                         void (*stop)(void *context),
                         void *context,
                         orr_guard **out,
                         orr_error *err) ORR_MUST_CHECK;
orr_guard_limit orr_guard_end(orr_guard *g); /* which limit was reached; NULL is fine */

#endif
