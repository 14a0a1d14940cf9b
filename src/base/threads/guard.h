/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - limits of time and memory on a piece of work that can be asked to stop.
 *
 *     orr_guard *g;
 *     code = orr_guard_start(10, 0, stop_it, it, &g, &err);    ten seconds
 *     code = work(it, &err);                                   stop_it(it) may be called meanwhile
 *     if (orr_guard_end(g) == ORR_GUARD_TIME) ...
 *
 * A thread looks at the clock and at the memory of the process some fifty times a second. */
#ifndef ORR_BASE_GUARD_H
#define ORR_BASE_GUARD_H

#include "base/memory/memory.h"

typedef enum orr_guard_limit {
    ORR_GUARD_NONE = 0,
    ORR_GUARD_TIME,
    ORR_GUARD_MEMORY
} orr_guard_limit;

typedef struct orr_guard orr_guard;

/* Zero: no limit; without any *out is NULL.  `stop` is called once, from another thread. */
orr_code orr_guard_start(double seconds,
                         uint64_t bytes,
                         void (*stop)(void *context),
                         void *context,
                         orr_guard **out,
                         orr_error *err) ORR_MUST_CHECK;
orr_guard_limit orr_guard_end(orr_guard *g); /* which limit was reached; NULL is fine */

#endif
