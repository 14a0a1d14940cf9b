/* SPDX-License-Identifier: Apache-2.0 */
/* loggops.h - simulate a GOAL schedule by the LogGOPS model of a network.
 *
 *     lgs_options opt = lgs_defaults();
 *     opt.L = 3700;
 *     lgs_sim *s;
 *     if (lgs_create(schedule, &opt, &s, &err) || lgs_run(s, &err)) return report(&err);
 *     printf("%" PRIu64 " ns\n", lgs_finished_at(s, 0));
 *     lgs_destroy(s);
 *
 * L is the latency, o the CPU cost and g the NIC cost of a message; O and G the same per byte;
 * above S bytes a send completes only when the message has been received.  Times are nanoseconds.
 * docs/design/loggops.md has the rules. */
#ifndef ORR_RUN_LOGGOPS_H
#define ORR_RUN_LOGGOPS_H

#include <orrery/lab/goal.h>
#include <orrery/timeline.h>

/* An input file of the schedule, listed in JSON results with its hash. */
typedef struct lgs_input {
    const char
        *role;    /* "schedule", "traces", "system", "network", "memory", "groups", "placement" */
    orr_str path; /* as given; "-": standard input, which has no hash */
} lgs_input;

typedef enum lgs_fold { LGS_FOLD_AUTO, LGS_FOLD_OFF, LGS_FOLD_VERIFY } lgs_fold;

typedef struct lgs_options {
    const struct orr_rules_loggops *rules; /* of another program (lab/compat.h); NULL: ours */
    uint64_t L, o, g, O;
    double G;   /* of LogGOPSim of 2023: a whole number */
    uint32_t S; /* the largest message sent eagerly */

    const char *noise;     /* a file of interruptions, "start duration" per line; NULL: none */
    bool has_common_noise; /* every rank is interrupted at the same times */
    uint64_t noise_seed;   /* offset of each rank in the file */
    /* LGS2023: a network of links shared by messages, in the DOT language */
    const char *simple_links;

    /* simulate equal ranks once; only by our rules (loggops.c) */
    lgs_fold fold;

    /* only by our rules; 0: one per core for a large schedule of ranks without messages between
     * them */
    unsigned threads;
    /* minimum events per round for threads to continue; 0: as long as they pay */
    uint64_t least_per_round;

    const lgs_input *inputs; /* must outlive the simulation; noise and links are known from above */
    size_t input_count;

    bool keeps_spans;     /* for lgs_timeline and "viz" */
    bool keeps_queues;    /* for "queues"; makes matching linear in queue lengths */
    bool keeps_pairs;     /* for "pairs" */
    bool shows_progress;  /* a line on stderr, if it is a terminal */
    uint64_t max_events;  /* stops there, with ORR_ESTOP; 0: no limit */
    bool prints_progress; /* a line on standard output per percent, as LogGOPSim does */
} lgs_options;

lgs_options lgs_defaults(void); /* L 2500, o 1500, g 1000, G 6, O 0, S 65535; one thread */

typedef struct lgs_sim lgs_sim;

/* The schedule must outlive the simulation.  Every peer must be a rank of it. */
orr_code lgs_create(const orr_goal *g, const lgs_options *opt, lgs_sim **out, orr_error *err)
    ORR_MUST_CHECK;
/* Runs to the end.  By our rules unfinished operations are an error, which names those that block
 * the others; lgs_stall_line has the details. */
orr_code lgs_run(lgs_sim *s, orr_error *err) ORR_MUST_CHECK;
/* Runs one event; ORR_END: none is left. */
orr_code lgs_step_once(lgs_sim *s, orr_error *err) ORR_MUST_CHECK;
bool lgs_is_complete(const lgs_sim *s); /* all operations have ended */
void lgs_stop(lgs_sim *s);              /* soon, with ORR_ESTOP; safe in a signal handler */
void lgs_destroy(lgs_sim *s);           /* NULL is fine */

uint32_t lgs_simulated(const lgs_sim *s);   /* ranks simulated on behalf of all */
const char *lgs_fold_why(const lgs_sim *s); /* why not fewer; "": nothing to say */
/* Threads that shared the ranks, and why fewer than requested; "": nothing to say. */
uint32_t lgs_threads(const lgs_sim *s);
const char *lgs_threads_why(const lgs_sim *s);

uint64_t lgs_events(const lgs_sim *s); /* operations started, and messages arrived */
uint64_t lgs_messages(const lgs_sim *s);
uint64_t lgs_finished_at(const lgs_sim *s, uint32_t rank); /* maximum over its CPUs */
uint64_t lgs_noise_of(const lgs_sim *s, uint32_t rank);    /* total time of interruptions */

/* After a stall: who waits for what, line by line; NULL past the last. */
const char *lgs_stall_line(const lgs_sim *s, size_t i);

/* Results: a short table, one JSON object, one row per rank; to a file or "-".  `program` and
 * `source` appear in the header: the program's name, and the file of the schedule. */
orr_code lgs_write_text(const lgs_sim *s, const char *path, const char *source, orr_error *err)
    ORR_MUST_CHECK;
orr_code lgs_write_json(const lgs_sim *s,
                        const char *path,
                        const char *source,
                        const char *program,
                        orr_error *err) ORR_MUST_CHECK;
orr_code lgs_write_csv(const lgs_sim *s, bool is_alike, const char *path, orr_error *err)
    ORR_MUST_CHECK;

/* Files of LogGOPSim: "log" and "log-batch" (its output), "viz" (the timeline of DrawViz), "pairs"
 * (which send matched which receive), "queues" (their lengths; path is the prefix of six files). */
orr_code lgs_write_old(const lgs_sim *s, const char *what, const char *path, orr_error *err)
    ORR_MUST_CHECK;

/* When each operation ran, sealed; the caller destroys it. */
orr_code lgs_timeline(const lgs_sim *s, orr_timeline **out, orr_error *err) ORR_MUST_CHECK;

#endif
