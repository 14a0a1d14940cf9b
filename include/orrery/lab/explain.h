/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - the facts of a run that a report shows: where the time went, what it waited for, what
 * would make it faster.
 *
 *     orr_explanation *e;
 *     if (orr_run_to_end(run, &err) || orr_run_explain(run, NULL, &e, &err)) return fail(&err);
 *     if (!orr_report_create(NULL, &r, &err) && !orr_report_add(r, orr_explanation_run(e), &err))
 *         code = orr_report_write(r, "out.html", &err);
 *     orr_report_destroy(r);
 *     orr_explanation_destroy(e);
 *
 * Traces need ORR_RUN_SPANS, and flows have more to show with ORR_RUN_HISTORY; schedules have no
 * report.  A run that was stopped or has stalled is explained as far as it got.  Experimental: may
 * change in the next release. */
#ifndef ORRERY_LAB_EXPLAIN_H
#define ORRERY_LAB_EXPLAIN_H

#include <orrery/error.h>
#include <orrery/lab/fabric_view.h>
#include <orrery/set.h>
#include <orrery/timeline.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct orr_run;

/* One step of the chain of operations that sets the run time. */
typedef struct orr_report_step {
    uint64_t from_ns, to_ns;
    uint32_t rank;
    uint8_t kind;  /* orr_span_kind */
    uint64_t node; /* its id; see has_node */
    bool has_node;
    const char *name;
    const char *what; /* the kind of work: "compute", "ALL_REDUCE" */
    const char *why;  /* what it waited for; NULL: nothing */
} orr_report_step;

/* One dimension of a network. */
typedef struct orr_report_dimension {
    const char *name;  /* "Ring 8" */
    uint32_t size;     /* ranks along it */
    double bandwidth;  /* bytes per second, per link; 0: not known */
    double latency_ns; /* per link; below 0: not known */
    /* 0 to 1: bytes sent per rank, over what its links could carry; below 0: not known. */
    double utilisation;
} orr_report_dimension;

/* One direction of one link; ends by name: a rank's number, or the name of a switch. */
typedef struct orr_report_link {
    const char *from, *to;
    double bandwidth; /* bytes per second; 0: not known */
    orr_bytes bytes;
    uint64_t busy_ns;
} orr_report_link;

/* The run time if something were faster. */
typedef struct orr_report_what_if {
    const char *change; /* "network bandwidth x 2" */
    uint64_t time_ns;   /* of the whole run */
    bool is_simulated;  /* simulated again; else an estimate from the critical path */
} orr_report_what_if;

typedef struct orr_report_input {
    const char *what, *path;
    const char *hash; /* NULL: not known */
    bool has_bytes;
    uint64_t bytes;
} orr_report_input;

typedef struct orr_report_option {
    const char *name, *value;
} orr_report_option;

/* Requests that were served. */
typedef struct orr_report_serving {
    uint64_t requests;
    double first_token_ns, first_token_max_ns; /* from the arrival of a request; mean, longest */
    double next_token_ns;                      /* between tokens; 0: no request has two */
    double tokens_per_s;                       /* up to the last token */
} orr_report_serving;

/* Where the time of a rank goes, on average over ranks (docs/accounting.md). */
typedef struct orr_report_times {
    orr_ps compute, exposed, overlapped, memory, host, waiting, bubble, idle;
} orr_report_times;

typedef struct orr_report_run {
    const char *name;
    bool is_measured;
    bool is_flows;                /* flows on a network: no ranks and no timeline */
    orr_ps length_ps;             /* its run time, when there is no timeline; 0: not known */
    const orr_timeline *timeline; /* sealed */
    const char
        *ranks_shown; /* NULL: one of each group of identical ranks; "all"; or ranks as "0-7,12" */
    uint32_t ranks;   /* of the job; 0: those of the timeline */
    uint64_t events;  /* simulated; 0: not known */
    uint32_t ranks_simulated; /* ranks simulated on behalf of all ranks; 0: not known */
    uint32_t devices;         /* devices in use by jobs; 0: all ranks */
    /* marginal time of a step in a sequence of steps; 0: it is the only one */
    orr_ps step_ps;
    double tokens;                /* processed by the run; 0: not known */
    double flops;                 /* FLOPs the model needs for them, over all ranks; 0: not known */
    double low_ns, high_ns;       /* 90 % interval of the run time; both 0: not known */
    double peak_flops;            /* per second per rank; 0: not known */
    const char *peak_of;          /* whose peak that is: "h100, bf16 dense"; NULL: omitted */
    orr_bytes memory_capacity;    /* of one rank; 0: not known */
    const orr_report_step *steps; /* the critical path, in the order of time */
    size_t step_count;
    const orr_report_dimension *dimensions;
    size_t dimension_count;
    const orr_report_link *links; /* the busiest first */
    size_t link_count, links_left_out;
    const orr_fabric_view *fabric; /* of the packet network; NULL: another one */
    const orr_report_what_if *what_ifs;
    size_t what_if_count;
    const char *stall; /* why it stalled, in short; NULL: it did not */
    const char *const *stall_lines;
    size_t stall_line_count;
    const orr_report_input *inputs;
    size_t input_count;
    const orr_report_option *options;
    size_t option_count;
    const char *const *notes;
    size_t note_count;
    const orr_report_serving *serving; /* NULL: it serves no requests */
    const orr_report_times *times;     /* when there is no timeline; NULL: not known */
} orr_report_run;

/* What a faster machine would change. */
typedef enum orr_what_if {
    ORR_WHAT_IF_AUTO = 0, /* simulate if that takes seconds; else estimate */
    ORR_WHAT_IF_OFF,
    ORR_WHAT_IF_ESTIMATE, /* from the critical path: an upper bound of the gain */
    ORR_WHAT_IF_SIMULATE  /* one run per change */
} orr_what_if;

typedef struct orr_explain_options {
    const char *name;        /* of the run; NULL: "run" */
    const char *ranks_shown; /* see orr_report_run */
    orr_what_if what_if;
    const orr_error *why; /* why the run ended early; NULL: it did not */
    /* How to run an experiment if it must be interruptible; NULL: orr_run_to_end. */
    orr_code (*run)(struct orr_run *r, orr_error *err);
    /* Variants of the same workload to be tried as well: orr_llm_variant or similar; NULL: none. */
    orr_code (*variant)(const orr_set *traces,
                        size_t *number,
                        char *words,
                        size_t room,
                        orr_set **out,
                        orr_error *err);
} orr_explain_options;

typedef struct orr_explanation orr_explanation;

/* opt is needed during the call only; NULL: all defaults. */
ORR_API orr_code orr_run_explain(struct orr_run *r,
                                 const orr_explain_options *opt,
                                 orr_explanation **out,
                                 orr_error *err) ORR_MUST_CHECK;
/* The facts, valid until destroy, and no longer than the run. */
ORR_API const orr_report_run *orr_explanation_run(const orr_explanation *e);
ORR_API void orr_explanation_destroy(orr_explanation *e); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
