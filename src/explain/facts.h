/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - the results of a run as plain figures: the source of its text, JSON and CSV.
 *
 *     orr__run_facts *f;
 *     if (orr__run_facts_take(sim, &f, err)) return code;
 *     ... f->end_ns, f->spread[ORR__FIGURE_COMPUTE].median ...
 *     orr__run_facts_destroy(f);
 *
 * Facts are copies: src/views renders them without access to the simulation. */
#ifndef ORR_EXPLAIN_FACTS_H
#define ORR_EXPLAIN_FACTS_H

#include "base/memory/memory.h"
#include "trace/input_files.h"

#include "base/memory/buffer.h"
#include "models/network/packet/packet.h"
#include "run/loggops/loggops.h"
#include "run/sim.h"
#include <orrery/lab/critical_path.h>
#include <orrery/lab/stall.h>

/* ---- packet networks ----
 *
 * Traffic of a packet network as plain figures: the source of the text and JSON of a run of flows
 * (src/views/packet_report.c), and of "packets" of a run of traces.
 *
 *     orr__fabric_facts f;
 *     if (!orr__fabric_facts_take(fabric, figures, arena, &f)) return orr_no_memory(err);
 *     ... f.busiest[0].name, f.busiest[0].busy_ps ...
 *
 * Facts are copies, in the arena: views render them without access to the network.  packet.h is
 * included because it declares the writers of a run of flows. */

struct fab;

enum { ORR__FABRIC_SHOWN = 16 }; /* links, queues and ports at most, of each list */

/* A port that was paused. */
typedef struct orr__paused_port {
    const char *port, *head; /* as text; head: where most of its pauses began */
    uint64_t pauses, paused_ps, longest_ps;
    unsigned chain; /* maximum length: 1, the port that caused it was not paused itself */
    double share;   /* of the run */
} orr__paused_port;

/* Lines about a run, in words. */
typedef struct orr__fabric_notes {
    const char **lines;
    size_t count, room;
    bool failed; /* out of memory */
} orr__fabric_notes;

typedef struct orr__fabric_facts {
    orr_packet_figures figures;
    uint64_t end_ticks, tick_ps; /* of the last frame; length of a tick */
    orr_fabric_flows flows;      /* all of them */
    orr_fabric_flows classes[ORR_FABRIC_CLASSES];
    orr_fabric_link busiest[ORR__FABRIC_SHOWN]; /* the busiest first */
    orr_fabric_link queues[ORR__FABRIC_SHOWN];  /* the longest queue first */
    size_t busiest_count, queue_count;
    size_t links_used;                          /* with traffic */
    orr__paused_port paused[ORR__FABRIC_SHOWN]; /* paused longest first */
    unsigned paused_count;
    uint32_t paused_ports;    /* all of them */
    orr__fabric_notes storm;  /* storms and chains of pauses */
    orr__fabric_notes approx; /* skipped periods */
} orr__fabric_facts;

/* False: out of memory. */
bool orr__fabric_facts_take(const struct fab *f,
                            const orr_packet_figures *figures,
                            orr_arena *a,
                            orr__fabric_facts *out);

/* A run of flows, with the header of its results. */
typedef struct orr__flow_facts {
    orr_arena *arena;
    orr__fabric_facts fabric;
    const char *program, *config; /* NULL: omitted; none */
    bool has_rules;               /* of another program */
} orr__flow_facts;

orr_code orr__flow_facts_take(const orr_packet *p,
                              orr__flow_facts *out,
                              orr_error *err) ORR_MUST_CHECK;
void orr__flow_facts_fini(orr__flow_facts *f); /* also after a take that failed */

/* ---- runs of traces ---- */

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

/* Equal nodes, over all ranks. */
typedef struct orr__comm_facts {
    uint64_t count, bytes;
    uint64_t time, longest, exposed; /* ns; exposed: without computation on the rank */
    uint64_t waited; /* before that: until all members had arrived, or the message was sent */
    /* Collectives only. */
    uint8_t type;         /* orr_collective */
    uint32_t group_ranks; /* 0: not known */
    uint32_t groups;      /* number of distinct groups of that size */
    orr_str group;        /* its name, if there is one group */
    uint64_t size;        /* of one call */
    uint32_t ranks;       /* number of participants */
} orr__comm_facts;

/* Throughput of a training step; 0: not known. */
typedef struct orr__throughput {
    uint32_t steps;      /* of the run; 0: the traces have no tokens */
    double step_seconds; /* of the finished run, over its steps */
    double tokens_per_s;
    double flops_per_s;  /* needed by the model, per rank */
    double peak_flops;   /* of a rank, per second */
    double mfu;          /* 0 to 1 */
    const char *peak_of; /* whose peak: "h100, bf16 dense" */
} orr__throughput;

/* Results of a finished serving run, as printed by orrery serve; requests 0: none. */
typedef struct orr__serving {
    uint64_t requests, tokens;
    double first_mean_ns; /* from arrival to first token */
    double next_mean_ns;  /* between tokens of a request; 0: none has two */
    uint64_t first_max_ns;
    uint64_t end_ns;     /* of the last token */
    double tokens_per_s; /* up to then */
} orr__serving;

/* Uncertainty of a finished run on a chip: the 90 % interval. */
typedef struct orr__interval {
    uint64_t low_ns, high_ns; /* both 0: not known */
    /* Without the error common to all jobs of the same software on the same machine: for
     * comparisons. */
    uint64_t own_low_ns, own_high_ns;
    double low_share, high_share; /* deviations as shares of a time without idle parts */
    double guessed;               /* share of compute: kernels unlike any measured one */
    double host;                  /* share of compute: the device waits for the host */
    const char *guessed_most;     /* the one with the longest total time; NULL: none */
} orr__interval;

/* One of several jobs on a machine; means over its ranks. */
typedef struct orr__run_job {
    const uint32_t *hosts; /* its ranks of the machine, in its own order */
    uint32_t ranks;
    bool is_finished;
    /* 0 for consecutive steps, which jobs begin at different times */
    uint64_t finished_ns;
    uint64_t compute_ns, exposed_ns; /* of a finished one */
    double tokens_per_s;             /* 0: not known */
} orr__run_job;

enum { ORR__FACTS_LINKS = 100, ORR__FACTS_INPUTS = 6, ORR__FACTS_WARNINGS = 8 };

/* Where a result comes from. */
typedef struct orr__provenance {
    const char *program;        /* NULL: omitted */
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
    uint32_t devices;        /* in use by jobs: a machine may have more */
    uint32_t simulated;      /* ranks simulated on behalf of all */
    uint32_t simulated_last; /* of these, remaining at the end */
    orr_sim_steps steps;     /* consecutive; everything below is of the last one */
    const uint32_t *finish_order;
    uint64_t messages, events;

    const uint64_t (*times)[ORR__FIGURES]; /* by rank; ORR_NEVER: it has not finished */
    const orr_bytes *peak_memory;          /* by rank; NULL: not tracked */
    orr__figure_spread spread[ORR__FIGURES];
    bool is_split; /* exposed communication and waiting are separate */

    const orr__run_job *jobs; /* NULL: the run is of one job */
    size_t job_count;

    const orr__comm_facts *collectives;
    const uint32_t *by_time, *by_bytes; /* indices of them, descending */
    uint32_t collective_count;
    orr__comm_facts sends, receives;

    const orr_sim_dimension *dimensions;
    uint32_t dimension_count;
    bool has_links;            /* the network model has links */
    const orr_net_link *links; /* the busiest first, at most ORR__FACTS_LINKS */
    uint32_t link_count;
    uint64_t links_used;              /* that carried something */
    const orr__fabric_facts *packets; /* NULL: the network has none */

    const char *machine; /* name and nodes; NULL: none */
    const char *compute; /* source of compute times: "measured kernels of h100" */
    orr__throughput throughput;
    orr__serving serving;
    orr__interval interval;
    /* implausible results: cause and remedy, one line each */
    const char *warnings[ORR__FACTS_WARNINGS];
    size_t warning_count;

    orr_critical_path *path; /* NULL: not requested, or the run did not finish */
    uint32_t path_shown;     /* number of steps to list */
    const orr_stall *stall;  /* NULL: it did not stall */
} orr__run_facts;

/* ORR_EUSAGE: the simulation runs under another program's rules and keeps no statistics. */
orr_code orr__run_facts_take(const orr_sim *s, orr__run_facts **out, orr_error *err) ORR_MUST_CHECK;
void orr__run_facts_destroy(orr__run_facts *f); /* NULL is fine */

/* Of a finished run whose last rank this is.  guessed_most lives as long as the simulation. */
void orr__interval_of(const orr_sim *s, uint32_t last, orr__interval *out);

/* A number from the traces' metadata; 0: missing, or specific to one of several jobs. */
double orr__metadata_of(const orr_set *set, const char *name);

/* ORR_EUSAGE: the network model does not model links. */
orr_code orr__check_links(const orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* The explanation of a stall, if it was requested. */
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

/* ---- schedules ----
 *
 * The results of a schedule under LogGOPS as plain figures: the source of its text, JSON and CSV
 * (src/views/schedule_report.c). */

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
    /* Additional results of the rules: a text, or lines with newlines.  NULL: none. */
    const char *extra_key;
    bool is_extra_list;
    orr_buf extra;
} orr__schedule_facts;

orr_code orr__schedule_facts_take(const lgs_sim *s,
                                  orr__schedule_facts *out,
                                  orr_error *err) ORR_MUST_CHECK;
void orr__schedule_facts_fini(orr__schedule_facts *f);

#endif
