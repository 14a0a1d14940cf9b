/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - simulate the traces of a job on a model of a cluster.
 *
 *     orr_sim_options opt = {.workload = "traces/step", .system = "sys.json", .network = "net.yml",
 *                            .memory = "mem.json", .fidelity = "unaware"};
 *     orr_sim *sim;
 *     if (orr_sim_create(&opt, &sim, &err) || orr_sim_run(sim, &err)) return report(&err);
 *     for (uint32_t r = 0; r < orr_sim_ranks(sim); r++)
 *         printf("%u: %" PRIu64 " ns\n", r, orr_sim_rank(sim, r)->finished_at);
 *     orr_sim_destroy(sim);
 *
 * A simulation is an object: many may live in one process, and the caller may own the loop
 * (orr_sim_step).  Same inputs give the same result, always.  One tick is one nanosecond. */
#ifndef ORR_RUN_SIM_H
#define ORR_RUN_SIM_H

#include "models/network/packet/packet.h"
#include <orrery/collective.h>
#include <orrery/lab/goal.h>
#include <orrery/network.h>
#include <orrery/run.h>
#include <orrery/set.h>
#include <orrery/timeline.h>

typedef struct orr_sim orr_sim;
struct orr_stall;
struct orr_critical_path;

#define ORR_NEVER UINT64_MAX

/* What is recorded. */
typedef enum orr_sim_record {
    ORR_SIM_RECORD_FIGURES = 0, /* sums only */
    /* start and end of each node, and the step that released it: 44 bytes per node */
    ORR_SIM_RECORD_NODES,
    ORR_SIM_RECORD_PHASES /* and each phase of each chunk of each collective */
} orr_sim_record;

/* Equal ranks: simulated once, individually, or both with an error if they differ (fold/fold.h). */
typedef enum orr_sim_fold {
    ORR_SIM_FOLD_AUTO = 0,
    ORR_SIM_FOLD_OFF,
    ORR_SIM_FOLD_VERIFY
} orr_sim_fold;

/* What-if: factors on the files' values; 0 means 1. */
typedef struct orr_sim_change {
    /* bandwidth and latency: of this dimension alone, not of the whole network */
    bool has_dimension;
    uint32_t dimension;
    double bandwidth, latency; /* of links */
    double compute, memory;    /* speeds of all ranks */
} orr_sim_change;

typedef struct orr_sim_options {
    const char *workload; /* a prefix, a directory or a .orr: the traces of all ranks */
    const char *system;   /* JSON */
    const char *network;  /* YAML: ASTRA-sim's, or a link-level topology (YAML or JSON) */
                          /* or, for the model packet, config.txt (docs/format/packet.md) */
    const struct orr_system *own_system; /* instead of `system` (run.h) */
    const orr_net_config *dims;          /* instead of `network` */
    const char *packet; /* config.txt for the model packet, if network is a topology; NULL: none */
    const char *packet_keys; /* more keys and values of config.txt, which override it; NULL: none */
    const char *logical;    /* JSON: the dimensions of the ranks, for the model packet; NULL: one */
    const char *memory;     /* JSON; NULL: no remote memory, or the host's: */
    double host_GBps;       /* of each rank, both ways; 0: none */
    const char *groups;     /* JSON; NULL: none */
    const char *plans;      /* of collectives, comma-separated paths (MSCCL, MSCCL++); NULL: none */
    const char *ranks_file; /* YAML: heterogeneous ranks, slow or failed links; NULL: none */
    const char *logging;    /* TOML: log sinks of the old programs; NULL: the default */
    const char *fidelity;   /* a name of orr_net_at; NULL: "graph" for a link-level topology, else
                             * "unaware" */
    const orr_net_ops *custom_network;     /* a custom one instead of fidelity */
    const orr_coll_ops *const *algorithms; /* custom ones besides those of orr_coll_at,
                                            * NULL-terminated; must outlive the run; NULL: none */
    const orr_set *set;                    /* the traces, when already read; instead of workload */
    uint32_t queues_per_dim;               /* 0: 1 */
    double injection_scale;                /* of endpoint-delay; 0: 1, below 0: 0 */
    bool rendezvous;
    orr_sim_fold fold;
    uint32_t steps;     /* consecutive runs of the traces (run_state.h); 0: 1 */
    bool trace_log;     /* keep when each node was issued and ended: orr_sim_write_trace_log */
    bool wants_history; /* the model packet records links and queues over time, for reports */
    bool wants_links;   /* a network model without links is refused */
    const struct orr_rules_run *rules; /* of a replaced program (lab/compat.h); NULL: ours */
    const struct orr_rules_packet *packet_rules; /* the same for the packet network */
    unsigned threads;     /* for reading traces, 0: one per core; and for ranks, 0: one (parts.h) */
    uint32_t most_trails; /* per thread, between meetings (parts.c); 0: automatic */
    orr_sim_record record;  /* beyond statistics: orr_sim_timeline, orr_sim_critical_path */
    uint32_t critical_path; /* steps listed in reports; 0: none */
    bool records_goal;      /* for orr_sim_goal */
    bool shows_progress;    /* a line on stderr, if it is a terminal */
    uint64_t max_events;    /* stops there, with ORR_ESTOP; 0: no limit */
    const char
        *program; /* the program's name for the head of results: "orrery 0.1.0"; NULL: left out */
    orr_sim_change change;
    /* times computations, instead of roofline and recorded durations */
    const struct orr_chip *chip;
    /* the caller's model, overrides all of these; NULL: none */
    const struct orr_compute_ops *compute;
    const char *machine;  /* its name and nodes, for results; NULL: none */
    bool is_ideal;        /* without a chip: computing runs at the peaks of the system */
    bool chip_is_default; /* the machine's: traces without anything for it to time are fine */
    const struct orr_software *software; /* NULL: as recorded in the traces */
    /* Collectives as NCCL runs them (joint.h): whose constants, and which networks reduce. */
    int nccl_generation;                  /* nccl_generation */
    bool is_torus;                        /* collectives of a torus of links (coll_torus.h) */
    const struct nccl_custom *nccl_table; /* of the machine's file; NULL: that of the generation */
    bool up_reduces, out_reduces;
} orr_sim_options;

/* Results of one rank. */
typedef struct orr_sim_rank_result {
    uint64_t finished_at;         /* ticks; ORR_NEVER: it did not */
    uint64_t gpu_total;           /* sum of compute (and replayed) durations on the device */
    uint64_t wall;                /* end of its last node */
    uint64_t gpu_time, comm_time; /* length of the union of their intervals */
    uint64_t cpu_time, memory_time;
    bool has_other_nodes;  /* it ran host, remote-memory or invalid nodes */
    orr_bytes peak_memory; /* of live tensors; 0 unless the system file has track-local-mem */
    double compute_bound, compute_use, memory_use,
        intensity; /* roofline averages, see astra-sim.md 10.1 */
} orr_sim_rank_result;

orr_code orr_sim_create(const orr_sim_options *opt, orr_sim **out, orr_error *err) ORR_MUST_CHECK;
void orr_sim_destroy(orr_sim *s); /* NULL is fine */

/* Runs one event.  ORR_END: none is left. */
orr_code orr_sim_step(orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* Runs all events.  A stall is an error that says who waits for whom. */
orr_code orr_sim_run(orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* orr_sim_run returns ORR_ESTOP soon, and may be called again to continue.  Results so far are
 * available.  Safe in a signal handler and from another thread. */
void orr_sim_stop(orr_sim *s);

uint32_t orr_sim_ranks(const orr_sim *s);
uint32_t orr_sim_finished(const orr_sim *s);                      /* how many have finished */
uint32_t orr_sim_finished_rank(const orr_sim *s, uint32_t place); /* the place-th to finish */
const orr_sim_rank_result *orr_sim_rank(const orr_sim *s, uint32_t rank);
/* Ranks simulated on behalf of all, and why not fewer, or "". */
uint32_t orr_sim_simulated(const orr_sim *s);
uint32_t orr_sim_simulated_last(const orr_sim *s); /* of these, remaining at the end */
const char *orr_sim_fold_why(const orr_sim *s);
uint32_t orr_sim_threads(const orr_sim *s); /* that shared the ranks; 1: not divided */
/* Why fewer than requested; "": as many, or none requested. */
const char *orr_sim_threads_why(const orr_sim *s);
uint64_t orr_sim_events(const orr_sim *s);
uint64_t orr_sim_messages(const orr_sim *s);

/* A run of several consecutive steps.  All other results are those of the last step, with times
 * from its first start on any rank. */
typedef struct orr_sim_steps {
    uint32_t asked, simulated; /* steps beyond `simulated` repeat the last one */
    uint64_t total;            /* ns, of all requested steps */
    uint64_t first,
        last; /* ns, of one: from the end of the previous step on the last rank to its own */
} orr_sim_steps;
orr_sim_steps orr_sim_steps_of(const orr_sim *s);

/* The output of the old programs (astra-sim.md 10.1), to a file or "-". */
typedef enum orr_sim_log {
    ORR_SIM_LOG_CONSOLE, /* level info and above, with the sinks for standard output */
    ORR_SIM_LOG_FILE,    /* with the issue and callback lines, if they were kept */
    ORR_SIM_LOG_ERRORS   /* level error and above */
} orr_sim_log;
orr_code orr_sim_write_old_log(const orr_sim *s,
                               const char *path,
                               orr_sim_log which,
                               orr_error *err) ORR_MUST_CHECK;
/* The sinks of orr_sim_options.logging, except standard output, which is the console's. */
orr_code orr_sim_write_log_sinks(const orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* True if the logging file sets patterns that the rules override. */
bool orr_sim_ignores_log_patterns(const orr_sim *s);
/* The issue and callback lines alone, in the format of chakra_timeline_visualizer.  Needs
 * orr_sim_options.trace_log, or trace-enabled in the system file. */
orr_code orr_sim_write_trace_log(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;

/* Tensors in a rank's memory over time, as a Chrome trace (astra-sim.md 10.2), if the system file
 * has track-local-mem: the prefix of the files PREFIX.<rank>.json (NULL: not tracked), and one of
 * them. */
const char *orr_sim_memory_trace(const orr_sim *s);
orr_code orr_sim_write_memory_trace(const orr_sim *s,
                                    uint32_t rank,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;
/* Link traffic, for networks with links: each link that carried traffic; and the same as CSV, one
 * row per link, to a file or "-". */
void orr_sim_visit_links(const orr_sim *s, orr_net_link_visit visit, void *context);
orr_code orr_sim_write_links(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* One dimension of the network, and its traffic: a message counts for the innermost dimension in
 * which sender and receiver differ. */
typedef struct orr_sim_dimension {
    /* "Ring"; NULL: a link-level topology, whose dimensions are those of collectives */
    const char *shape;
    uint32_t ranks;    /* along it */
    uint32_t links;    /* on which a rank can send along it */
    double bandwidth;  /* bytes per second, of one link; 0: unknown */
    double latency_ns; /* of one link; below 0: unknown */
    uint64_t messages, bytes;
} orr_sim_dimension;
uint32_t orr_sim_dimension_count(const orr_sim *s);
orr_sim_dimension orr_sim_dimension_at(const orr_sim *s, uint32_t index);
/* When the last rank finished, or now if the run has not ended; ns. */
uint64_t orr_sim_time(const orr_sim *s);

/* Statistics of a packet network, after or during a run; false: another model. */
bool orr_sim_packets(const orr_sim *s, orr_packet_figures *out);
/* After a stall, the network's explanation, line by line; NULL after the last. */
const char *orr_sim_network_stall(const orr_sim *s, size_t line);
/* Warnings about the inputs of the network; NULL after the last. */
const char *orr_sim_warning(const orr_sim *s, size_t line);
/* The results as a short table or as one JSON object, to a file or "-". */
orr_code orr_sim_write_text(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
orr_code orr_sim_write_json(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* The object without provenance, and one of each set of equal ranks and links. */
orr_code orr_sim_write_figures(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* One row per rank; alike: one for all ranks with equal statistics. */
orr_code orr_sim_write_csv(const orr_sim *s, bool is_alike, const char *path, orr_error *err)
    ORR_MUST_CHECK;
/* What was run, as a schedule of sends, receives and calculations: collectives as the messages of
 * the system layer, compute as its duration.  Needs orr_sim_options.records_goal and a finished
 * run. */
orr_code orr_sim_goal(const orr_sim *s, orr_goal **out, orr_error *err) ORR_MUST_CHECK;
/* Valid after orr_sim_run has failed or orr_sim_step has returned ORR_END.  NULL: it has not
 * stalled, or out of memory. */
const struct orr_stall *orr_sim_stall(orr_sim *s);
/* Needs a finished simulation with orr_sim_options.record set.  ORR_EUSAGE: it has not. */
orr_code orr_sim_critical_path(const orr_sim *s,
                               struct orr_critical_path **out,
                               orr_error *err) ORR_MUST_CHECK;
/* When each node ran, sealed; the caller destroys it.  Needs orr_sim_options.record.  See also
 * critical_path.h. */
/* like: by rank, whose spans represent its own; NULL: each has its own. */
orr_code orr_sim_timeline(const orr_sim *s,
                          const uint32_t *like,
                          orr_timeline **out,
                          orr_error *err) ORR_MUST_CHECK;
/* ranks: "all", or a list of those with their own spans; NULL: one of each set of ranks with equal
 * times, the one that is longest on the path (or NULL). */
struct orr_critical_path;
orr_code orr_sim_timeline_of(const orr_sim *s,
                             const char *ranks,
                             const struct orr_critical_path *path,
                             orr_timeline **out,
                             orr_error *err) ORR_MUST_CHECK;
orr_code orr_sim_timeline_to_show(const orr_sim *s,
                                  orr_run_rows rows,
                                  orr_timeline **out,
                                  orr_error *err) ORR_MUST_CHECK;

#endif
