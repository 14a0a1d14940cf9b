/* SPDX-License-Identifier: Apache-2.0 */
/* run_facts.h - what came out of a run, as plain figures: all that its text, JSON and CSV are made
 * of.
 *
 *     orr__run_facts *f;
 *     if (orr__run_facts_take(sim, &f, err)) return code;
 *     ... f->end_ns, f->spread[ORR__FIGURE_COMPUTE].median ...
 *     orr__run_facts_destroy(f);
 *
 * Facts are copies: src/views makes bytes of them without seeing the simulation. */
#ifndef ORR_EXPLAIN_RUN_FACTS_H
#define ORR_EXPLAIN_RUN_FACTS_H

#include "base/memory/memory.h"
#include "flow_facts.h"
#include "trace/input_files.h"

#include "run/sim.h"
#include <orrery/lab/critical_path.h>
#include <orrery/lab/stall.h>

/* Times of a rank, in ns (docs/accounting.md). */
typedef enum orr__figure {
    ORR__FIGURE_FINISHED,
    ORR__FIGURE_COMPUTE,
    ORR__FIGURE_COMMUNICATION,
    ORR__FIGURE_EXPOSED,
    ORR__FIGURE_MEMORY,
    ORR__FIGURE_HOST,
    ORR__FIGURE_WAITING,
    ORR__FIGURE_BUBBLE,
    ORR__FIGURE_IDLE,
    ORR__FIGURES
} orr__figure;

/* One figure over the ranks that have it. */
typedef struct orr__figure_spread {
    uint32_t ranks;
    uint64_t least, median, most;
    double mean;
} orr__figure_spread;

/* Nodes that are alike, all ranks together. */
typedef struct orr__comm_facts {
    uint64_t count, bytes;
    uint64_t time, longest, exposed; /* ns; exposed: the part in which the rank computed nothing */
    uint64_t waited; /* before it: until all members had come, or the message left */
    /* Collectives only. */
    uint8_t type;         /* orr_collective */
    uint32_t group_ranks; /* 0: not known */
    uint32_t groups;      /* how many groups of that size were seen */
    orr_str group;        /* its name, when there is one group */
    uint64_t size;        /* of one call */
    uint32_t ranks;       /* that take part */
} orr__comm_facts;

/* What a training step gives; 0 in what is not known. */
typedef struct orr__throughput {
    uint32_t steps;      /* of the run; 0: the traces say nothing of tokens */
    double step_seconds; /* of the finished run, over its steps */
    double tokens_per_s;
    double flops_per_s;  /* that the model needs, per rank */
    double peak_flops;   /* of a rank, per second */
    double mfu;          /* 0 to 1 */
    const char *peak_of; /* whose peak: "h100, bf16 dense" */
} orr__throughput;

/* What a finished run of serving gives: as orrery serve prints them; requests 0: none were
 * served. */
typedef struct orr__serving {
    uint64_t requests, tokens;
    double first_mean_ns; /* from when a request came to its first token */
    double next_mean_ns;  /* from a token of a request to its next; 0: none has two */
    uint64_t first_max_ns;
    uint64_t end_ns;     /* the last token is there */
    double tokens_per_s; /* of all until then */
} orr__serving;

/* How sure a finished run on a chip is: 90 % of the errors stay within. */
typedef struct orr__interval {
    uint64_t low_ns, high_ns; /* both 0: not known */
    /* Without what all jobs of the same software on the same machine are off by together: for those
     * who compare. */
    uint64_t own_low_ns, own_high_ns;
    double guessed;           /* part of computing: kernels that none that was measured resembles */
    const char *guessed_most; /* the one that takes longest of them; NULL: none */
} orr__interval;

/* One of several jobs on a machine; means over its ranks. */
typedef struct orr__run_job {
    const uint32_t *hosts; /* the ranks of the machine that it has, in its own order */
    uint32_t ranks;
    bool is_finished;
    uint64_t finished_ns;            /* 0 of steps in a row, which jobs begin at different times */
    uint64_t compute_ns, exposed_ns; /* of a finished one */
    double tokens_per_s;             /* 0: not known */
} orr__run_job;

enum { ORR__FACTS_LINKS = 100, ORR__FACTS_INPUTS = 6, ORR__FACTS_WARNINGS = 8 };

/* Where a result comes from. */
typedef struct orr__provenance {
    const char *program;        /* NULL: not said */
    const char *status;         /* "finished", "interrupted", "stalled" or "failed" */
    const char *network;        /* the model's name */
    const char *machine, *chip; /* NULL: none */
    uint32_t queues_per_dim;
    bool rendezvous;
    double injection_scale;
    orr__input_file inputs[ORR__FACTS_INPUTS];
    size_t input_count;
} orr__provenance;

typedef struct orr__run_facts {
    orr_arena *arena;
    const char *status, *network; /* as in orr__provenance */
    uint64_t end_ns;              /* when the last rank finished; else now */
    uint32_t ranks, classes, finished;
    uint32_t devices;        /* that jobs are on: a machine may have more */
    uint32_t simulated;      /* that stood for all */
    uint32_t simulated_last; /* of these, at the end */
    orr_sim_steps steps;     /* in a row; what follows is of the last one */
    const uint32_t *finish_order;
    uint64_t messages, events;

    const uint64_t (*times)[ORR__FIGURES]; /* by rank; ORR_NEVER: it has not finished */
    const orr_bytes *peak_memory;          /* by rank; NULL: not tracked */
    orr__figure_spread spread[ORR__FIGURES];
    bool is_split; /* exposed communication and waiting are told apart */

    const orr__run_job *jobs; /* NULL: the run is of one job */
    size_t job_count;

    const orr__comm_facts *collectives;
    const uint32_t *by_time, *by_bytes; /* indices of them, the largest first */
    uint32_t collective_count;
    orr__comm_facts sends, receives;

    const orr_sim_dimension *dimensions;
    uint32_t dimension_count;
    bool has_links;            /* the network model knows its links */
    const orr_net_link *links; /* the busiest first, at most ORR__FACTS_LINKS */
    uint32_t link_count;
    uint64_t links_used;              /* that carried something */
    const orr__fabric_facts *packets; /* NULL: the network has none */

    const char *machine; /* name and nodes; NULL: none */
    const char *compute; /* how computing was timed: "measured kernels of h100" */
    orr__throughput throughput;
    orr__serving serving;
    orr__interval interval;
    const char *warnings[ORR__FACTS_WARNINGS]; /* what cannot be: cause and remedy, a line each */
    size_t warning_count;

    orr_critical_path *path; /* NULL: not asked for, or the run did not finish */
    uint32_t path_shown;     /* how many of its steps to list */
    const orr_stall *stall;  /* NULL: it did not stall */
} orr__run_facts;

/* ORR_EUSAGE: the simulation runs under another program's rules and keeps no figures. */
orr_code orr__run_facts_take(const orr_sim *s, orr__run_facts **out, orr_error *err) ORR_MUST_CHECK;
void orr__run_facts_destroy(orr__run_facts *f); /* NULL is fine */

/* Of a finished run whose last rank this is.  guessed_most lives as long as the simulation. */
void orr__interval_of(const orr_sim *s, uint32_t last, orr__interval *out);

/* A number of the traces' metadata; 0: there is none, or it is of one of several jobs. */
double orr__metadata_of(const orr_set *set, const char *name);

/* ORR_EUSAGE: the network model does not model links. */
orr_code orr__check_links(const orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* The explanation of a stall, once it was asked for. */
const orr_stall *orr__stall_known(const orr_sim *s);

/* Reads the input files again, for their hashes.  False: out of memory. */
bool orr__provenance_take(const orr_sim *s, orr__provenance *out);
/* The same as keys and values; false: out of memory. */
enum { ORR__PROVENANCE_LINES = ORR__FACTS_INPUTS + 4 };
typedef struct orr__provenance_line {
    const char *key, *value;
} orr__provenance_line;
bool orr__provenance_lines(const orr__provenance *p,
                           orr_arena *a,
                           orr__provenance_line out[ORR__PROVENANCE_LINES],
                           size_t *count);

#endif
