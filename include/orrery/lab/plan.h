/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - the best parallelism for a model on a machine, found by searching every legal plan.
 *
 *     orr_plan_options opt = {.size = sizeof opt, .model = &model, .machine = "dgx-h100:128",
 *                             .batch = 1024, .seq = 8192};
 *     orr_plan_search *s;
 *     if (orr_plan_search_create(&opt, &s, &err) || orr_plan_search_run(s, &err)) return report(&err);
 *     for (size_t i = 0; i < orr_plan_count(s) && i < 10; i++)
 *         printf("tp %u pp %u: %.3f s\n", orr_plan_at(s, i)->options.tp, orr_plan_at(s, i)->options.pp,
 *                orr_plan_at(s, i)->step_s);
 *     orr_plan_search_destroy(s);
 *
 * A plan is a complete set of options of orr_llm_training.  Plans that need more memory than a
 * device has are dropped; the others are simulated in ascending order of a lower bound on their
 * time, until no remaining bound is below the best: so the result is the best of all legal plans
 * (docs/design/plan.md has the proof).  Same input, same result, for any number of threads.
 * Experimental: may change in the next release. */
#ifndef ORRERY_LAB_PLAN_H
#define ORRERY_LAB_PLAN_H

#include <orrery/error.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/model.h>
#include <orrery/lab/serve.h>
#include <orrery/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_plan_goal {
    ORR_PLAN_TIME = 0, /* of a step */
    ORR_PLAN_COST,     /* per token: the same as time, unless device counts are compared */
    ORR_PLAN_MEMORY    /* of the fullest device */
} orr_plan_goal;

/* The search axes, as named in orr_plan_options.fixed. */
typedef enum orr_plan_axis {
    ORR_PLAN_TP = 0,
    ORR_PLAN_CP,
    ORR_PLAN_PP,
    ORR_PLAN_DP,
    ORR_PLAN_EP,
    ORR_PLAN_ZERO,
    ORR_PLAN_MICRO_BATCH,
    ORR_PLAN_PIPELINE, /* orr_pipeline */
    ORR_PLAN_CHUNKS,
    ORR_PLAN_RECOMPUTE,         /* orr_recompute */
    ORR_PLAN_SEQUENCE_PARALLEL, /* 0 or 1 */
    ORR_PLAN_AXES
} orr_plan_axis;

/* Progress of the search. */
typedef struct orr_plan_counts {
    uint64_t legal;     /* plans that model, batch and machine allow */
    uint64_t fitting;   /* of these: fit into memory */
    uint64_t bounded;   /* of these: dropped by their lower bound */
    uint64_t simulated; /* of these: simulated */
    uint64_t failed;    /* of these: stalled in simulation; not among the results */
    /* Upper bound on remaining simulations: 0 at the end, unless it was stopped. */
    uint64_t to_do;
    double least_s;  /* stopped: no plan that was not simulated takes less; 0: not known */
    uint64_t events; /* of those that were simulated; with max_events only */
} orr_plan_counts;

typedef struct orr_plan_options {
    size_t size;            /* sizeof(orr_plan_options) */
    const orr_model *model; /* must outlive the search */
    const char *machine;    /* as orr_machine_find takes it */
    uint32_t devices;       /* devices used; 0: all of the machine */
    uint64_t batch;         /* sequences per step; 0: one per device */
    uint64_t seq;           /* tokens per sequence; 0: the model's maximum */
    /* What is not searched: dtype, software and all else that orr_llm_option_at lists.
     * recompute_parts is one more way to recompute; recompute_layers applies where it is full. */
    orr_llm_options base;
    bool is_fixed[ORR_PLAN_AXES];
    uint64_t fixed[ORR_PLAN_AXES];
    orr_plan_goal goal;
    uint32_t top;        /* simulate at least this many; 0: 10 */
    uint32_t sure;       /* of these, this many are proven best; 0: 1 */
    double usd_per_hour; /* per device; 0: that of the machine */
    uint64_t reserve;    /* bytes per device kept free: context, NCCL's buffers, fragmentation */
    bool no_prune;       /* simulate every plan that fits */
    unsigned threads;    /* 0: one per core */
    double max_seconds;  /* wall-clock limit of the search; 0: no limit */
    uint64_t max_bytes;  /* of memory, while plans are simulated; 0: no limit */
    uint64_t max_events; /* of all simulations of the search together; 0: no limit */
    /* Called by one thread at a time on every change; NULL: none. */
    void (*progress)(void *context, const orr_plan_counts *counts);
    void *context;
} orr_plan_options;

/* Shares of a step's time, averaged over all devices. */
typedef struct orr_plan_shares {
    double compute;
    double tensor, context, expert, data,
        pipeline;  /* communication that no computation hides, by axis */
    double bubble; /* waiting for other stages, and the rest */
} orr_plan_shares;

typedef struct orr_plan {
    orr_llm_options options;      /* complete: what orr_llm_training takes */
    double bound_s;               /* a lower bound on its time */
    double step_s;                /* simulated */
    double low_s, high_s;         /* 90 %, as orrery run reports it; 0: not known */
    double own_low_s, own_high_s; /* 90 %, without the error common to all plans on the machine */
    double tokens_per_s, mfu;     /* mfu 0: no peak is known */
    double usd_per_mtoken;        /* per 10^6 tokens; 0: no price is known */
    double watt_hours_per_mtoken; /* 0: not known */
    orr_llm_memory memory;        /* of the fullest stage */
    orr_plan_shares shares;
    char limit[80]; /* the largest loss: "pipeline bubble 12 %" */
} orr_plan;

typedef struct orr_plan_search orr_plan_search;

/* Lists the legal plans.  ORR_EUSAGE: there is none, and which constraint removed the last. */
ORR_API orr_code orr_plan_search_create(const orr_plan_options *opt,
                                        orr_plan_search **out,
                                        orr_error *err) ORR_MUST_CHECK;
/* ORR_ESTOP: it was stopped, or reached a limit, which err names; results so far are available. */
ORR_API orr_code orr_plan_search_run(orr_plan_search *s, orr_error *err) ORR_MUST_CHECK;
/* Callable from any thread and from a signal handler. */
ORR_API void orr_plan_search_stop(orr_plan_search *s);
ORR_API void orr_plan_search_destroy(orr_plan_search *s); /* NULL is fine */

ORR_API void orr_plan_search_counts(const orr_plan_search *s, orr_plan_counts *out);
/* Did it end because of max_seconds? */
ORR_API bool orr_plan_search_is_late(const orr_plan_search *s);
/* ... because of max_bytes or max_events?  The same search always ends at the same event. */
ORR_API bool orr_plan_search_is_full(const orr_plan_search *s);
ORR_API bool orr_plan_search_is_spent(const orr_plan_search *s);
/* Why the first failed plan failed; "": none did. */
ORR_API const char *orr_plan_search_failure(const orr_plan_search *s);
/* The machine, with the number of nodes in use. */
ORR_API const orr_machine *orr_plan_search_machine(const orr_plan_search *s);
/* Plans that were simulated, the best first.  NULL past the last; valid until destroy. */
ORR_API size_t orr_plan_count(const orr_plan_search *s);
ORR_API const orr_plan *orr_plan_at(const orr_plan_search *s, size_t i);

/* A plan to run again, on a changed machine or with another network model. */
typedef struct orr_plan_again {
    orr_run_change change;
    const char *network;  /* NULL: fluid */
    const char *topology; /* links, in place of the machine's dimensions; NULL: those */
    double max_seconds;   /* wall clock; then ORR_ESTOP.  0: no limit */
} orr_plan_again;
typedef struct orr_plan_rerun {
    const orr_plan *plan;
    orr_plan_again how;
    double step_s; /* 0: it did not finish, see err */
    orr_error err;
} orr_plan_rerun;
/* Run all, on the threads of the search.  done is called by one thread at a time after each; NULL:
 * none.  After orr_plan_search_stop no more are started. */
ORR_API orr_code orr_plan_rerun_all(orr_plan_search *s,
                                    orr_plan_rerun *list,
                                    size_t count,
                                    void (*done)(void *context),
                                    void *context,
                                    orr_error *err) ORR_MUST_CHECK;

/* The best plans again, on a more detailed network model.  What is simulated depends on counts
 * of nodes, messages and packets, never on the clock: the whole step if it is expected to stay
 * within the budget, else the same step with fewer micro-batches, layers and data-parallel
 * ranks, or, packet by packet, its heaviest collectives one by one.  The same part also runs on
 * the network model of the search, at its compute speed; the ratio of the two times, times the
 * plan's time, is step_s. */
typedef enum orr_plan_level {
    ORR_PLAN_LINKS = 0, /* fluid, each link */
    ORR_PLAN_MESSAGES,  /* aware: collectives as messages that wait for links */
    ORR_PLAN_PACKETS,
    ORR_PLAN_LEVELS
} orr_plan_level;
ORR_API const char *orr_plan_level_name(orr_plan_level level); /* "aware, message by message" */
typedef enum orr_plan_check_kind {
    ORR_PLAN_NOT_RUN = 0,
    ORR_PLAN_WHOLE,
    ORR_PLAN_PART,       /* a smaller step of the same tp, cp, pp and ep */
    ORR_PLAN_COLLECTIVES /* one by one */
} orr_plan_check_kind;
typedef struct orr_plan_check {
    const orr_plan *plan; /* the caller sets these two */
    orr_plan_level level;
    orr_plan_check_kind kind;
    char what[300];       /* what was run: "2 of 16 micro-batches, 40 of 80 layers" */
    double cost_s;        /* expected seconds on one 3 GHz core */
    double run_s, base_s; /* time on this network and on that of the search; 0: see what */
    double step_s;        /* estimated time of the whole step; 0: no answer, see why */
    char why[300];
} orr_plan_check;
typedef struct orr_plan_check_options {
    size_t size;     /* sizeof(orr_plan_check_options) */
    double budget_s; /* expected time per run at most; 0: 10 */
    /* Wall clock per run; 0: no limit.  Results then depend on the computer. */
    double max_seconds;
    /* Called by one thread at a time after each run, with the expected seconds done and in total;
     * NULL: none. */
    void (*progress)(void *context, double done_s, double all_s);
    void *context;
} orr_plan_check_options;
ORR_API orr_code orr_plan_check_all(orr_plan_search *s,
                                    const orr_plan_check_options *opt,
                                    orr_plan_check *list,
                                    size_t count,
                                    orr_error *err) ORR_MUST_CHECK;

/* Options of `orrery stage` that make its traces, without the model and --machine: "--tp 8 --pp 4
 * ..."; returns the length, as snprintf counts. */
enum { ORR_PLAN_COMMAND_ROOM = 2048 };
ORR_API size_t orr_plan_command(const orr_plan *p, char *out, size_t size);
/* "tp 8, pp 4, dp 32, zero 1, ...": what differs from a plain plan. */
ORR_API size_t orr_plan_words(const orr_plan *p, char *out, size_t size);

/* ---- serving ---- */

typedef struct orr_plan_serve_options {
    size_t size; /* sizeof(orr_plan_serve_options) */
    const orr_model *model;
    const char *machine;
    uint32_t devices; /* 0: all */
    orr_dtype dtype;
    uint64_t requests;             /* concurrent, over all replicas */
    uint64_t prompt, output;       /* tokens of a request and of its answer */
    double max_ttft_s, max_tpot_s; /* means; 0: no limit */
    double usd_per_hour;
    unsigned threads;
    double max_seconds; /* wall-clock; 0: no limit */
    /* Another thread or a signal handler may set it to 1, which ends the search.  With it or with
     * max_seconds, what orr_stop_when set is not looked at. */
    int *stop;
} orr_plan_serve_options;

typedef struct orr_plan_serving {
    orr_serve_ranks ranks; /* dp: replicas */
    uint64_t max_batch;    /* sequences batched by a replica */
    orr_serve_report report;
    double ttft_s, tpot_s; /* estimated means: TTFT, TPOT */
    double tokens_per_s;   /* of answers, all replicas */
    double usd_per_mtoken; /* of answers; 0: no price is known */
    /* The 90 % interval overlaps that of the first plan, without errors common to all plans. */
    bool is_undecided;
} orr_plan_serving;

/* Every plan that fits and meets the limits, highest tokens per second first.  ORR_EUSAGE: there is
 * none, and which limit removed the last.  ORR_ESTOP: the search was stopped; the list has the
 * plans so far, perhaps none. */
ORR_API orr_code orr_plan_serve(const orr_plan_serve_options *opt,
                                orr_plan_serving **out,
                                size_t *count,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_plan_serve_free(orr_plan_serving *list); /* NULL is fine */

/* Every plan that was simulated, one row each, as CSV.  "-" is standard output. */
ORR_API orr_code orr_plan_write_csv(const orr_plan_search *s,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API const char *orr_plan_axis_name(orr_plan_axis axis); /* "tp" */
/* "tp=8": ORR_EUSAGE names the mistake. */
ORR_API orr_code orr_plan_fix(orr_plan_options *opt,
                              const char *text,
                              orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
