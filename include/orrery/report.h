/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - one page that says where the time went and what to change: a self-contained HTML file.
 *
 *     orr_report *r;
 *     if (orr_report_create(&(orr_report_options){.title = "step on 8 ranks"}, &r, &err)) return report(&err);
 *     orr_report_run run = {.name = "simulated", .timeline = t};
 *     if (!orr_report_add(r, &run, &err)) code = orr_report_write(r, "out.html", &err);
 *     orr_report_destroy(r);
 *
 * A run is a timeline, simulated or measured, and whatever else is known of it: all fields but the name may be left
 * zero, and what is not known is not shown.  Two or more runs are compared, the first being what the others are
 * compared with.  docs/format/report.md has the data behind the page.  Experimental: may change in the next release. */
#ifndef ORRERY_REPORT_H
#define ORRERY_REPORT_H

#include <orrery/error.h>
#include <orrery/fabric_view.h>
#include <orrery/timeline.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of the chain of operations that decides how long a run takes. */
typedef struct orr_report_step {
    uint64_t from_ns, to_ns;
    uint32_t rank;
    uint8_t kind;  /* orr_span_kind */
    uint64_t node; /* its id; see has_node */
    bool has_node;
    const char *name;
    const char *what; /* the kind of work: "compute", "ALL_REDUCE" */
    const char *why;  /* what it waited for, in words; NULL: nothing */
} orr_report_step;

/* One dimension of a network. */
typedef struct orr_report_dimension {
    const char *name;  /* "Ring 8" */
    uint32_t size;     /* ranks along it */
    double bandwidth;  /* bytes a second, a link; 0: not known */
    double latency_ns; /* a link; below 0: not known */
    double
        utilisation; /* 0 to 1: bytes a rank sent over what its link could carry; below 0: not known */
} orr_report_dimension;

/* One direction of one link; its ends by name: a rank's number, or what the switch is called. */
typedef struct orr_report_link {
    const char *from, *to;
    double bandwidth; /* bytes a second; 0: not known */
    orr_bytes bytes;
    uint64_t busy_ns;
} orr_report_link;

/* What would be, if something were faster. */
typedef struct orr_report_what_if {
    const char *change; /* "network bandwidth x 2" */
    uint64_t time_ns;   /* of the whole run then */
    bool is_simulated;  /* it was run again; else an estimate from the critical path */
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

typedef struct orr_report_run {
    const char *name;
    bool is_measured;
    bool is_flows;                /* flows on a network: there are no ranks and no timeline */
    orr_ps length_ps;             /* how long it took, where no timeline says so; 0: not known */
    const orr_timeline *timeline; /* sealed */
    const char *ranks_shown; /* NULL: one of each kind of like ranks; "all"; or ranks as "0-7,12" */
    uint32_t ranks;          /* of the job; 0: those of the timeline */
    uint64_t events;         /* that were simulated; 0: not said */
    double tokens;           /* that the run takes in; 0: not known */
    double flops;            /* that the model needs for them, all ranks together; 0: not known */
    double peak_flops;       /* a second, of one rank; 0: not known */
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
    const char *stall; /* why it came to a standstill, in a few words; NULL: it did not */
    const char *const *stall_lines;
    size_t stall_line_count;
    const orr_report_input *inputs;
    size_t input_count;
    const orr_report_option *options;
    size_t option_count;
    const char *const *notes;
    size_t note_count;
} orr_report_run;

typedef struct orr_report_options {
    const char *title;     /* NULL: the names of the runs */
    const char *program;   /* "orrery 0.1.0" */
    const char *made_from; /* the command line; NULL: not said */
    uint32_t most_spans;   /* of one run in the file; 0: 1,000,000.  The shortest are left out */
} orr_report_options;

typedef struct orr_report orr_report;

/* opt is copied; NULL: all defaults. */
ORR_API orr_code orr_report_create(const orr_report_options *opt,
                                   orr_report **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_report_destroy(orr_report *r); /* NULL is fine */

/* Everything is worked out now; nothing of run needs to stay.  ORR_EUSAGE: ranks_shown is no list of ranks. */
ORR_API orr_code orr_report_add(orr_report *r,
                                const orr_report_run *run,
                                orr_error *err) ORR_MUST_CHECK;

/* The page, and its data alone as JSON (without the events).  "-" is standard output; the file appears whole. */
ORR_API orr_code orr_report_write(const orr_report *r,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_report_write_json(const orr_report *r,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
