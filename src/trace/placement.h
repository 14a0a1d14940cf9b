/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - the host of each rank of each job, for jobs combined as schedules (goal_combine.c)
 * or as traces (set_combine.c). */
#ifndef ORR_TRACE_PLACEMENT_H
#define ORR_TRACE_PLACEMENT_H

#include <orrery/lab/goal.h>

#include "base/memory/memory.h"

typedef struct orr__placement {
    size_t job_count;
    uint32_t ranks, hosts;
    uint32_t *host_of; /* by rank, job after job */
    uint32_t *rank_on; /* by host: 1 + the rank; 0: unused */
    uint32_t *job_of;  /* by rank */
    uint32_t *first;   /* by job: its first rank; then the total */
} orr__placement;

/* Lists are in the arena.  counts: ranks of each job. */
orr_code orr__place_jobs(const uint32_t *counts,
                         size_t job_count,
                         const orr_goal_machine *machine,
                         orr_arena *a,
                         orr__placement *out,
                         orr_error *err) ORR_MUST_CHECK;

#endif
