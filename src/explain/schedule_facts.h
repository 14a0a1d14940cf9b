/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_facts.h - what came out of a schedule under LogGOPS, as plain figures: all that its
 * text, JSON and CSV are made of (src/views/schedule_report.c). */
#ifndef ORR_EXPLAIN_SCHEDULE_FACTS_H
#define ORR_EXPLAIN_SCHEDULE_FACTS_H

#include "base/memory/buffer.h"
#include "base/memory/memory.h"
#include "run/loggops/loggops.h"

/* The ranks of several schedules on one machine. */
typedef struct orr__job_facts {
    const uint32_t *hosts;
    uint32_t count;
    uint64_t finished;
} orr__job_facts;

typedef struct orr__schedule_facts {
    lgs_options options; /* parameters, noise, inputs */
    const char *rules;   /* their name */
    bool is_own;         /* they are ours */
    orr_goal_totals totals;
    uint32_t ranks, cpus, nics;
    uint32_t simulated; /* ranks that were simulated */
    uint64_t events, messages;
    bool is_complete;
    const char *status; /* finished, interrupted or stalled */
    uint64_t *finished; /* by rank, ns */
    uint64_t *noise;    /* by rank, ns; NULL: there was none */
    uint64_t last, first;
    uint32_t last_rank, first_rank;
    orr__job_facts *jobs;
    size_t job_count;
    const char *const *stall;
    size_t stall_count;
    /* What the rules have beside that: a text, or lines that end in newlines.  NULL: nothing. */
    const char *extra_key;
    bool is_extra_list;
    orr_buf extra;
} orr__schedule_facts;

orr_code orr__schedule_facts_take(const lgs_sim *s,
                                  orr__schedule_facts *out,
                                  orr_error *err) ORR_MUST_CHECK;
void orr__schedule_facts_fini(orr__schedule_facts *f);

#endif
