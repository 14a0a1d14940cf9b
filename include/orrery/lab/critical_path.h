/* SPDX-License-Identifier: Apache-2.0 */
/* critical_path.h - what set the run time: one chain of operations across nodes and ranks that
 * covers the time from the start to the end of the last rank without a gap.
 *
 *     orr_critical_path *p;
 *     if (orr_run_critical_path(run, &p, &err)) return report(&err);
 *     for (size_t i = 0; i < p->step_count; i++)
 *         printf("%" PRIu64 " ns on rank %u: %s\n", p->steps[i].to - p->steps[i].from, p->steps[i].rank, ...);
 *     orr_critical_path_destroy(p);
 *
 * Experimental: may change in the next release. */
#ifndef ORRERY_LAB_CRITICAL_PATH_H
#define ORRERY_LAB_CRITICAL_PATH_H

#include <orrery/error.h>
#include <orrery/timeline.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a step follows its predecessor in the list. */
typedef enum orr_path_after {
    ORR_PATH_START = 0,  /* it is the first */
    ORR_PATH_DEPENDENCY, /* it depends on it */
    ORR_PATH_SLOT,       /* it needs the slot that the other held */
    /* it was ready, but nodes start only when another node of their rank ends */
    ORR_PATH_TURN,
    ORR_PATH_SERVER, /* the memory server was busy with the predecessor */
    ORR_PATH_AFTERS
} orr_path_after;

/* What else delayed a step: another rank, where the chain continues. */
typedef enum orr_path_held {
    ORR_PATH_NOT_HELD = 0,
    ORR_PATH_MESSAGE,   /* the message came from there */
    ORR_PATH_RECEIVER,  /* a rendezvous: the receiver was not ready earlier */
    ORR_PATH_LAST_RANK, /* that rank joined the collective last */
    ORR_PATH_HELDS
} orr_path_held;

ORR_API const char *orr_path_after_name(orr_path_after after); /* "dependency" */
ORR_API const char *orr_path_held_name(orr_path_held held);    /* "message"; NOT_HELD: NULL */

typedef struct orr_path_step {
    uint64_t from, to; /* ns: the part of the run attributed to it; the next step starts at `to` */
    uint32_t rank;
    uint8_t kind; /* orr_span_kind */
    uint8_t after, held;
    /* the step of this rank that delayed it, which began at `from`; see held */
    uint32_t held_rank;
    uint64_t node, held_node; /* ids */
    const char *name;         /* of the node */
    const char *what;         /* "compute", "message", "ALL_REDUCE" */
    orr_bytes size;           /* 0: not known */
} orr_path_step;

/* The share of one kind of work in the path. */
typedef struct orr_path_share {
    const char *what;
    uint64_t time; /* ns */
    size_t steps;
} orr_path_share;

typedef struct orr_critical_path {
    const orr_path_step *steps; /* in the order of time */
    size_t step_count;
    const orr_path_share *shares; /* the largest first */
    size_t share_count;
    uint32_t ranks; /* number of ranks it visits */
    uint64_t total; /* ns */
} orr_critical_path;

ORR_API void orr_critical_path_destroy(orr_critical_path *p); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
