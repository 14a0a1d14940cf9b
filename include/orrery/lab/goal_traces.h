/* SPDX-License-Identifier: Apache-2.0 */
/* goal_traces.h - GOAL schedules as traces, so that they run on every network model.
 *
 *     orr_set *set;
 *     if (orr_goal_traces(schedule, "ring.goal", &set, &err)) return report(&err);
 *
 * The reverse is orr_run_goal (run.h), which needs a system to expand collectives. */
#ifndef ORRERY_LAB_GOAL_TRACES_H
#define ORRERY_LAB_GOAL_TRACES_H

#include <orrery/lab/goal.h>
#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each operation becomes a node: a calculation compute, a send a send, a receive a receive.  Traces
 * count time in microseconds: the rounding error of a calculation is carried over to the next one
 * on its CPU.  An operation that waits for the start of another waits for what that one waits for.
 * Receives from any source are refused.  A rank without operations gets one node, a calculation of
 * zero length.  Errors and the explanation of a stall call the traces `name`. */
ORR_API orr_code orr_goal_traces(const orr_goal *g, const char *name, orr_set **out, orr_error *err)
    ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
