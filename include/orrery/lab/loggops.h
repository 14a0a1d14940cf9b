/* SPDX-License-Identifier: Apache-2.0 */
/* loggops.h - simulate a GOAL schedule by the LogGOPS model of a network.
 *
 *     orr_loggops_options opt = orr_loggops_defaults();
 *     opt.L = 3700;
 *     orr_loggops *s;
 *     if (orr_loggops_create(schedule, &opt, &s, &err) || orr_loggops_run(s, &err)) return report(&err);
 *     printf("%" PRIu64 " ns\n", orr_loggops_finished_at(s, 0));
 *     orr_loggops_destroy(s);
 *
 * L is the latency, o what a message costs a CPU and g what it costs a NIC, each once; O and G the same for
 * every byte; a message above S bytes is over for its sender only when it has been received.  Times are
 * nanoseconds.  docs/design/loggops.md has the rules. */
#ifndef ORRERY_LAB_LOGGOPS_H
#define ORRERY_LAB_LOGGOPS_H

#include <orrery/lab/goal.h>
#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file that the schedule comes from: for JSON results, where the hash of its content stands beside it. */
typedef struct orr_loggops_input {
    const char
        *role;    /* "schedule", "traces", "system", "network", "memory", "groups", "placement" */
    orr_str path; /* as given; "-": standard input, which has no hash */
} orr_loggops_input;

typedef struct orr_loggops_options {
    const struct orr_rules_loggops *rules; /* of another program (lab/compat.h); NULL: ours */
    uint64_t L, o, g, O;
    double G;   /* of LogGOPSim of 2023: a whole number */
    uint32_t S; /* the largest message that does not wait for its receiver */

    const char *noise;     /* a file of interruptions, "start duration" a line; NULL: none */
    bool has_common_noise; /* every rank is interrupted at the same times */
    uint64_t noise_seed;   /* where in the file a rank starts */
    const char
        *simple_links; /* LGS2023: a network of links that messages share, in the DOT language */

    const orr_loggops_input *inputs; /* must stay; noise and links are known from above */
    size_t input_count;

    bool keeps_spans;     /* for orr_loggops_timeline and "viz" */
    bool keeps_queues;    /* for "queues"; makes matching as slow as its queues are long */
    bool keeps_pairs;     /* for "pairs" */
    bool shows_progress;  /* a line on stderr, when that is a terminal */
    bool prints_progress; /* a line on standard output for each percent, as LogGOPSim does */
} orr_loggops_options;

ORR_API orr_loggops_options
orr_loggops_defaults(void); /* L 2500, o 1500, g 1000, G 6, O 0, S 65535 */

typedef struct orr_loggops orr_loggops;

/* The schedule must outlive the simulation.  Every peer must be a rank of it. */
ORR_API orr_code orr_loggops_create(const orr_goal *g,
                                    const orr_loggops_options *opt,
                                    orr_loggops **out,
                                    orr_error *err) ORR_MUST_CHECK;
/* To the end.  By our own rules a schedule whose operations are not all over then is an error, which names
 * those that block the others; orr_loggops_stall_line has the whole story. */
ORR_API orr_code orr_loggops_run(orr_loggops *s, orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_loggops_stop(orr_loggops *s); /* soon, with ORR_ESTOP; safe in a signal handler */
ORR_API void orr_loggops_destroy(orr_loggops *s); /* NULL is fine */

ORR_API uint64_t
orr_loggops_events(const orr_loggops *s); /* operations that could start, and messages */
ORR_API uint64_t orr_loggops_messages(const orr_loggops *s);
ORR_API uint64_t orr_loggops_finished_at(const orr_loggops *s,
                                         uint32_t rank); /* the last of its CPUs */
ORR_API uint64_t orr_loggops_noise(const orr_loggops *s,
                                   uint32_t rank); /* how long it was interrupted */

/* A run that did not come to its end: who waits for what, line by line; NULL behind the last. */
ORR_API const char *orr_loggops_stall_line(const orr_loggops *s, size_t i);

/* What came out: a short table, one JSON object, one row a rank; to a file or "-".  `program` and `source` stand in
 * the head of results: who asks, and the file of the schedule. */
ORR_API orr_code orr_loggops_write_text(const orr_loggops *s,
                                        const char *path,
                                        const char *source,
                                        orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_loggops_write_json(const orr_loggops *s,
                                        const char *path,
                                        const char *source,
                                        const char *program,
                                        orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_loggops_write_csv(const orr_loggops *s,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

/* Files of LogGOPSim: "log" and "log-batch" (what it prints), "viz" (the timeline of DrawViz), "pairs" (which send met
 * which receive), "queues" (their lengths; path is the prefix of six files). */
ORR_API orr_code orr_loggops_write_old(const orr_loggops *s,
                                       const char *what,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

/* When each operation ran, sealed; the caller destroys it. */
ORR_API orr_code orr_loggops_timeline(const orr_loggops *s,
                                      orr_timeline **out,
                                      orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
