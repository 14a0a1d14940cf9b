/* SPDX-License-Identifier: Apache-2.0 */
/* goal_check.h - what is wrong with a GOAL schedule, without running it.
 *
 *     orr_goal_report r;
 *     if (orr_goal_check(schedule, &r, &err)) return report(&err);
 *     for (size_t i = 0; i < r.finding_count; i++)
 *         puts(orr_goal_finding_text(schedule, &r.findings[i], line, sizeof line)); */
#ifndef ORRERY_LAB_GOAL_CHECK_H
#define ORRERY_LAB_GOAL_CHECK_H

#include <orrery/lab/goal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_goal_finding_kind {
    ORR_GOAL_NO_SUCH_RANK = 0, /* the peer is not a rank of the schedule */
    ORR_GOAL_CYCLE,            /* it waits for itself, through others of its rank */
    ORR_GOAL_NOT_RECEIVED,     /* more sends than receives of its source, target and tag */
    ORR_GOAL_NOT_SENT,         /* more receives than sends */
    ORR_GOAL_FINDING_KINDS
} orr_goal_finding_kind;

enum { ORR_GOAL_FINDINGS_SHOWN = 10 }; /* of each kind */

typedef struct orr_goal_finding {
    orr_goal_finding_kind kind;
    uint32_t rank, op; /* the first that is concerned; operations from 0 */
    uint64_t count;    /* surplus; for a cycle: operations that never start */
} orr_goal_finding;

typedef struct orr_goal_report {
    uint64_t counts[ORR_GOAL_FINDING_KINDS]; /* all findings */
    orr_goal_finding findings[ORR_GOAL_FINDING_KINDS * ORR_GOAL_FINDINGS_SHOWN];
    size_t finding_count;
} orr_goal_report;

ORR_API orr_code orr_goal_check(const orr_goal *g,
                                orr_goal_report *out,
                                orr_error *err) ORR_MUST_CHECK;

ORR_API const char *orr_goal_finding_name(orr_goal_finding_kind kind); /* "not_received" */
/* As text; returns buf. */
ORR_API char *orr_goal_finding_text(const orr_goal *g,
                                    const orr_goal_finding *f,
                                    char *buf,
                                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
