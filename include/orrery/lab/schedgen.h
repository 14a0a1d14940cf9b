/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen.h - GOAL schedules of well-known communication patterns: trees, rings, all-to-all,
 * all-reduce.
 *
 *     const orr_schedgen_pattern *p = orr_schedgen_find("dissemination");
 *     orr_schedgen_options opt = orr_schedgen_defaults();
 *     opt.ranks = 1 << 20;
 *     orr_schedgen_totals done;
 *     if (orr_schedgen_write(p, &opt, "barrier.goal", &done, &err)) return report(&err);
 *
 * The text is that of SchedGen (LogGOPSim 2023, and the one of ATLAHS where the two differ),
 * byte for byte, wherever SchedGen's schedule can run to its end.  Where it cannot (a message
 * nobody receives, a rank that does not exist), ours is the schedule that was intended;
 * orr_schedgen_repair says what was wrong.  Ranks are written one after the other: memory does
 * not grow with their number, except for the two random patterns and the all-to-all with
 * individual sizes.  docs/design/goal_patterns.md describes what each pattern sends. */
#ifndef ORRERY_LAB_SCHEDGEN_H
#define ORRERY_LAB_SCHEDGEN_H

#include <orrery/error.h>
#include <orrery/lab/goal.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where another generator differs; orrery/lab/compat.h has the rules of LogGOPSim and ATLAHS. */
typedef struct orr_rules_schedgen orr_rules_schedgen;

/* Options that a pattern uses. */
enum {
    ORR_SCHEDGEN_SIZE = 1,    /* data_bytes */
    ORR_SCHEDGEN_ROOT = 2,    /* root */
    ORR_SCHEDGEN_NWAY = 4,    /* nway */
    ORR_SCHEDGEN_SEGMENT = 8, /* segment_bytes */
    ORR_SCHEDGEN_GAP = 16,    /* gap_ns */
    ORR_SCHEDGEN_SKEW = 32,   /* skew, outcast */
    ORR_SCHEDGEN_RANDOM = 64  /* seed */
};

typedef struct orr_schedgen_pattern {
    const char *name;
    const char *help; /* one line */
    uint32_t uses;
} orr_schedgen_pattern;

typedef struct orr_schedgen_options {
    uint32_t ranks;
    uint64_t data_bytes;
    int64_t root;
    uint32_t nway; /* messages a rank sends per round of nwaydissemination */
    uint64_t segment_bytes;
    bool has_overlap; /* each rank computes during the pattern: */
    uint64_t overlap_ns,
        poll_ns;     /* in one piece, or in a chain of pieces of poll_ns when that is not 0 */
    uint32_t cpu;    /* where it computes, 0 to 255 */
    bool has_gap;    /* allreduce_recdoub: a message does not wait for the previous one, */
    uint64_t gap_ns; /* only for a calculation of this length */
    uint64_t skew;   /* linear_alltoallv: how much smaller than data_bytes most messages are */
    bool is_outcast;
    uint32_t seed;
    const orr_rules_schedgen *rules; /* NULL: ours */
    bool keeps_invalid;              /* write SchedGen's output even if it cannot run */
    bool is_binary; /* write binary GOAL; the schedule is kept in memory until then */
    bool is_quiet;  /* no progress line */
} orr_schedgen_options;

typedef struct orr_schedgen_totals {
    uint64_t ranks, sends, recvs, calcs, edges;
    uint64_t bytes_sent; /* of all sends */
    uint64_t text_bytes; /* 0: no text was written */
} orr_schedgen_totals;

ORR_API orr_schedgen_options orr_schedgen_defaults(void);
ORR_API const orr_schedgen_pattern *orr_schedgen_at(size_t i); /* NULL past the last */
ORR_API const orr_schedgen_pattern *orr_schedgen_find(const char *name);

/* What is wrong with SchedGen's own schedule for these options, as text; NULL: nothing. */
ORR_API const char *orr_schedgen_repair(const orr_schedgen_pattern *p,
                                        const orr_schedgen_options *opt);

/* Into a file ("-": standard output; .gz and .zst compress), which appears whole or not at all.
 * path NULL: count only.  out may be NULL. */
ORR_API orr_code orr_schedgen_write(const orr_schedgen_pattern *p,
                                    const orr_schedgen_options *opt,
                                    const char *path,
                                    orr_schedgen_totals *out,
                                    orr_error *err) ORR_MUST_CHECK;

/* Into memory, to run it directly. */
ORR_API orr_code orr_schedgen_goal(const orr_schedgen_pattern *p,
                                   const orr_schedgen_options *opt,
                                   orr_goal **out,
                                   orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
