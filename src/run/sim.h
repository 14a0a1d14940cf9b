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

/* How much of a run is kept for later. */
typedef enum orr_sim_record {
    ORR_SIM_RECORD_FIGURES = 0, /* sums only */
    ORR_SIM_RECORD_NODES,       /* when each node ran, and what released it: 44 bytes per node */
    ORR_SIM_RECORD_PHASES       /* and each phase of each chunk of each collective */
} orr_sim_record;

/* Ranks that do the same: simulated once, each, or both ways with an error where they differ
 * (fold/fold.h). */
typedef enum orr_sim_fold {
    ORR_SIM_FOLD_AUTO = 0,
    ORR_SIM_FOLD_OFF,
    ORR_SIM_FOLD_VERIFY
} orr_sim_fold;

/* What-if: factors on what the files say; 0 means 1. */
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
    const char
        *packet; /* config.txt for the model packet, when network is a topology; NULL: none */
    const char *packet_keys; /* more keys and values of config.txt, which override it; NULL: none */
    const char *logical;    /* JSON: the dimensions of the ranks, for the model packet; NULL: one */
    const char *memory;     /* JSON; NULL: no remote memory */
    const char *groups;     /* JSON; NULL: none */
    const char *plans;      /* of collectives, comma-separated paths (MSCCL, MSCCL++); NULL: none */
    const char *ranks_file; /* YAML: ranks that differ, links that are slow or failed; NULL: none */
    const char *logging;    /* TOML: where the lines of the old programs go; NULL: the default */
    const char *fidelity;   /* a name of orr_net_at; NULL: "graph" for a link-level topology, else
                             * "unaware" */
    const orr_net_ops *custom_network;     /* your own instead of fidelity */
    const orr_coll_ops *const *algorithms; /* your own besides those of orr_coll_at, ending in NULL;
                                            * must stay; NULL: none */
    const orr_set *set;                    /* the traces, when already read; instead of workload */
    uint32_t queues_per_dim;               /* 0: 1 */
    double injection_scale;                /* of endpoint-delay; 0: 1, below 0: 0 */
    bool rendezvous;
    orr_sim_fold fold;
    uint32_t steps;     /* the traces are run so often in a row (run_state.h); 0: 1 */
    bool trace_log;     /* keep when each node was issued and ended: orr_sim_write_trace_log */
    bool wants_history; /* the model packet records links and queues over time, for reports */
    bool wants_links;   /* a network model that knows no links is refused at once */
    const struct orr_rules_run *rules; /* of a replaced program (lab/compat.h); NULL: ours */
    const struct orr_rules_packet *packet_rules; /* the same for the packet network */
    unsigned threads;     /* for reading traces, 0: one per core; and for ranks, 0: one (parts.h) */
    uint32_t most_trails; /* of a thread, before all of them meet (parts.c); 0: as is good */
    orr_sim_record record;  /* more than figures: orr_sim_timeline, orr_sim_critical_path */
    uint32_t critical_path; /* how many steps of it reports list; 0: not in reports */
    bool records_goal;      /* for orr_sim_goal */
    bool shows_progress;    /* a line on stderr, when that is a terminal */
    uint64_t max_events;    /* stops there, with ORR_ESTOP; 0: no limit */
    const char
        *program; /* the program's name for the head of results: "orrery 0.1.0"; NULL: left out */
    orr_sim_change change;
    const struct orr_chip *chip; /* that computes, in place of roofline and recorded durations */
    const struct orr_compute_ops *compute; /* the caller's model, over all of these; NULL: none */
    const char *machine;                   /* its name and nodes, for results; NULL: none */
    bool is_ideal;        /* without a chip: computing runs at the peaks of the system */
    bool chip_is_default; /* the machine's: traces in which it has nothing to time are fine */
    const struct orr_software *software; /* NULL: what the traces say */
    /* Collectives as NCCL runs them (joint.h): whose constants, and which networks add up. */
    int nccl_generation;                  /* nccl_generation */
    const struct nccl_custom *nccl_table; /* of the machine's file; NULL: that of the generation */
    bool up_reduces, out_reduces;
} orr_sim_options;

/* What became of one rank. */
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

/* One event.  ORR_END: no event is left. */
orr_code orr_sim_step(orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* All of them.  A simulation that stands still before all ranks have finished is an error that says
 * who waits for whom. */
orr_code orr_sim_run(orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* orr_sim_run returns ORR_ESTOP soon, and may be called again to continue.  Results so far are
 * available.  Safe in a signal handler and from another thread. */
void orr_sim_stop(orr_sim *s);

uint32_t orr_sim_ranks(const orr_sim *s);
uint32_t orr_sim_finished(const orr_sim *s);                      /* how many have finished */
uint32_t orr_sim_finished_rank(const orr_sim *s, uint32_t place); /* the place-th to finish */
const orr_sim_rank_result *orr_sim_rank(const orr_sim *s, uint32_t rank);
/* How many ranks were simulated for all of them, and why not fewer, or "". */
uint32_t orr_sim_simulated(const orr_sim *s);
uint32_t orr_sim_simulated_last(const orr_sim *s); /* of these, at the end */
const char *orr_sim_fold_why(const orr_sim *s);
uint32_t orr_sim_threads(const orr_sim *s); /* that ranks were divided among; 1: they were not */
/* Why not as many as were asked for; "": they were, or nobody asked. */
const char *orr_sim_threads_why(const orr_sim *s);
uint64_t orr_sim_events(const orr_sim *s);
uint64_t orr_sim_messages(const orr_sim *s);

/* A run of several steps in a row.  All other results are those of the last step, its times from
 * when the first rank began it. */
typedef struct orr_sim_steps {
    uint32_t asked, simulated; /* the others are like the last one that was */
    uint64_t total;            /* ns, of all that were asked for */
    uint64_t first,
        last; /* ns, of one: from the end of the step before, on the last rank, to its own */
} orr_sim_steps;
orr_sim_steps orr_sim_steps_of(const orr_sim *s);

/* The lines that the old programs print (astra-sim.md 10.1), all of them, to a file or "-". */
typedef enum orr_sim_log {
    ORR_SIM_LOG_CONSOLE, /* level info and above, with what sinks send to standard output */
    ORR_SIM_LOG_FILE,    /* with the issue and callback lines, if they were kept */
    ORR_SIM_LOG_ERRORS   /* level error and above */
} orr_sim_log;
orr_code orr_sim_write_old_log(const orr_sim *s,
                               const char *path,
                               orr_sim_log which,
                               orr_error *err) ORR_MUST_CHECK;
/* What orr_sim_options.logging names, but for standard output, which is the console's. */
orr_code orr_sim_write_log_sinks(const orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* True if the logging file sets patterns that the rules override. */
bool orr_sim_ignores_log_patterns(const orr_sim *s);
/* The issue and callback lines alone, in the form that chakra_timeline_visualizer reads.  Needs
 * orr_sim_options.trace_log, or trace-enabled in the system file. */
orr_code orr_sim_write_trace_log(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;

/* Tensors in a rank's memory over time, as a Chrome trace (astra-sim.md 10.2), when the system file
 * has track-local-mem: the prefix it wants for the files PREFIX.<rank>.json (NULL: not tracked),
 * and one of them. */
const char *orr_sim_memory_trace(const orr_sim *s);
orr_code orr_sim_write_memory_trace(const orr_sim *s,
                                    uint32_t rank,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;
/* What went over the links, for networks that know their links: each link that carried something;
 * and the same as CSV, one row per link, to a file or "-". */
void orr_sim_visit_links(const orr_sim *s, orr_net_link_visit visit, void *context);
orr_code orr_sim_write_links(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* One dimension of the network, and what went along it: messages count for the innermost one in
 * which sender and receiver differ. */
typedef struct orr_sim_dimension {
    const char
        *shape; /* "Ring"; NULL: a link-level topology, whose dimensions are those of collectives */
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

/* Figures of a packet network, after or during a run; false: the model is another one. */
bool orr_sim_packets(const orr_sim *s, orr_packet_figures *out);
/* After a stall, what the network says about it, line by line; NULL after the last. */
const char *orr_sim_network_stall(const orr_sim *s, size_t line);
/* Warnings about the inputs of the network; NULL after the last. */
const char *orr_sim_warning(const orr_sim *s, size_t line);
/* The results as a short table or as one JSON object, to a file or "-". */
orr_code orr_sim_write_text(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
orr_code orr_sim_write_json(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* The object without where it comes from, and of ranks and links that are alike the first. */
orr_code orr_sim_write_figures(const orr_sim *s, const char *path, orr_error *err) ORR_MUST_CHECK;
/* One row per rank; alike: one for all ranks with the same figures. */
orr_code orr_sim_write_csv(const orr_sim *s, bool is_alike, const char *path, orr_error *err)
    ORR_MUST_CHECK;
/* What was run, as a schedule of sends, receives and calculations: collectives as the messages that
 * the system layer made of them, compute as the time it took.  Needs orr_sim_options.records_goal
 * and a run that came to its end. */
orr_code orr_sim_goal(const orr_sim *s, orr_goal **out, orr_error *err) ORR_MUST_CHECK;
/* Valid after orr_sim_run has failed or orr_sim_step has said ORR_END.  NULL: it does not stand
 * still, or memory ran out. */
const struct orr_stall *orr_sim_stall(orr_sim *s);
/* Needs a simulation that has run to its end with orr_sim_options.record set.  ORR_EUSAGE: it has
 * not. */
orr_code orr_sim_critical_path(const orr_sim *s,
                               struct orr_critical_path **out,
                               orr_error *err) ORR_MUST_CHECK;
/* When each node ran, sealed; the caller destroys it.  Needs orr_sim_options.record.  See also
 * critical_path.h. */
/* like: by rank, whose spans stand for its own; NULL: each has its own. */
orr_code orr_sim_timeline(const orr_sim *s,
                          const uint32_t *like,
                          orr_timeline **out,
                          orr_error *err) ORR_MUST_CHECK;
/* ranks: "all", or a list of those that have spans of their own; NULL: one of those that do the
 * same at the same times, the one that is longest on the path (or NULL). */
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
