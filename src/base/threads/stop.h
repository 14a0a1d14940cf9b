/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - what orr_stop_when (orrery/lab/stop.h) set for this thread.
 *
 * Every request for memory asks, which is often enough for nearly all work; a loop that asks for none over millions of
 * items looks itself, every thousand items or so:
 *
 *     if (i % 1024 == 0 && orr__stop_asked())
 *         return orr_no_memory(err); */
#ifndef ORR_BASE_STOP_H
#define ORR_BASE_STOP_H

#include <orrery/lab/stop.h>

#include <stdbool.h>
#include <stddef.h>

extern _Thread_local const int *orr__stop_flag;

static inline bool orr__stop_asked(void)
{
    const int *flag = orr__stop_flag;
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

#endif
