/* SPDX-License-Identifier: Apache-2.0 */
/* compat.h - the programs that Orrery replaces, by name, with the rules for each.
 *
 *     const orr_compat *old;
 *     if (orr_compat_find(ORR_RULES_SCHEDGEN, "atlahs", &old, &err)) return report(&err);
 *     orr_schedgen_options opt = {.rules = old->schedgen, ...};
 *
 * An engine that can behave like another program takes a pointer to its rules; NULL means ours.  A
 * library can be built without some of these programs (meson option `compat`): then they are not
 * found, and the error lists those that are built in.  Rules are constants with static lifetime. */
#ifndef ORRERY_LAB_COMPAT_H
#define ORRERY_LAB_COMPAT_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The engines that take rules. */
typedef enum orr_compat_part {
    ORR_RULES_RUN,       /* traces on a system */
    ORR_RULES_LOGGOPS,   /* schedules under LogGOPS */
    ORR_RULES_PACKET,    /* the packet network */
    ORR_RULES_SYSTOLIC,  /* systolic arrays */
    ORR_RULES_GEMM,      /* matrix shapes to text workloads */
    ORR_RULES_LAYERS,    /* text workloads */
    ORR_RULES_FLEXFLOW,  /* task graphs */
    ORR_RULES_LINK,      /* host and device traces, linked */
    ORR_RULES_CONVERT,   /* linked traces, converted */
    ORR_RULES_ISSUE_LOG, /* logs of issued nodes */
    ORR_RULES_VIEW,      /* drawn graphs */
    ORR_RULES_STAGE,     /* symbolic training steps */
    ORR_RULES_NCCL,      /* Nsight exports to schedules */
    ORR_RULES_SCHEDGEN,  /* patterns and MPI traces to schedules */
    ORR_RULES_PARTS
} orr_compat_part;

/* One program; NULL: no rules for that part. */
typedef struct orr_compat {
    const char *name;    /* as --compat takes it: "atlahs" */
    const char *program; /* "LogGOPSim of ATLAHS" */
    const struct orr_rules_run *run;
    const struct orr_rules_loggops *loggops;
    const struct orr_rules_packet *packet;
    const struct orr_rules_systolic *systolic;
    const struct orr_rules_gemm *gemm;
    const struct orr_rules_layers *layers;
    const struct orr_rules_flexflow *flexflow;
    const struct orr_rules_link *link;
    const struct orr_rules_convert *convert;
    const struct orr_rules_issue_log *issue_log;
    const struct orr_rules_view *view;
    const struct orr_rules_stage *stage;
    const struct orr_rules_nccl *nccl;
    const struct orr_rules_schedgen *schedgen;
} orr_compat;

/* The program with rules for this part; name NULL: the first one.  ORR_EUSAGE when it is unknown or
 * not built in; the message lists those that are. */
ORR_API orr_code orr_compat_find(orr_compat_part part,
                                 const char *name,
                                 const orr_compat **out,
                                 orr_error *err) ORR_MUST_CHECK;
/* The i-th program with rules for this part; NULL after the last. */
ORR_API const orr_compat *orr_compat_at(orr_compat_part part, size_t i);

#ifdef __cplusplus
}
#endif
#endif
