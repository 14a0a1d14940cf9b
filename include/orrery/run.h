/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - simulate: traces on a model of a cluster, a GOAL schedule under LogGOPS, or flows packet
 * by packet.
 *
 *     orr_run_config config = {.size = sizeof config, .traces = "traces/step", .system = "sys.json",
 *                              .topology = "net.yml"};
 *     orr_run *run;
 *     if (orr_run_create(&config, &run, &err) || orr_run_to_end(run, &err)) return report(&err);
 *     for (uint32_t r = 0; r < orr_run_ranks(run); r++)
 *         printf("%u: %" PRId64 " ps\n", r, orr_run_rank_at(run, r)->finished_at);
 *     orr_run_destroy(run);
 *
 * The input selects the engine: traces (or a set), a schedule, or flows.  All three have the life
 * cycle above; unsupported features are ORR_EUSAGE (orr_run_supports).  Same inputs give the same
 * results, always.
 *
 * Threads: runs share nothing, so each may be used by its own thread, and sets, schedules and rules
 * may be shared by several runs.  One run is used by one thread at a time, except for orr_run_stop,
 * which any thread and any signal handler may call.  Times are picoseconds; the engines count whole
 * nanoseconds (packets: finer where needed). */
#ifndef ORRERY_RUN_H
#define ORRERY_RUN_H

#include <orrery/collective.h>
#include <orrery/error.h>
#include <orrery/network.h>
#include <orrery/set.h>
#include <orrery/timeline.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_run orr_run;

/* See lab/goal.h, lab/stall.h, lab/critical_path.h, lab/fabric_view.h, lab/compat.h. */
struct orr_goal;
struct orr_stall;
struct orr_critical_path;
struct orr_packet_figures;
struct orr_fabric_view;
struct orr_rules_run;
struct orr_rules_loggops;
struct orr_rules_packet;

#define ORR_RUN_NEVER INT64_MAX /* never happens */

/* A custom compute model, instead of chip, roofline and recorded durations.  Called once per
 * compute node of each distinct rank, before the run starts; slower ranks (ranks_file, change) take
 * proportionally longer.  *out is the time, at least 1 ns; 0: the default for this node.  A failure
 * ends the run. */
typedef struct orr_compute_ops {
    orr_code (*time)(void *context, const orr_trace *t, uint32_t node, orr_ps *out, orr_error *err);
    void *context;
} orr_compute_ops;

/* Capabilities of runs, as bits: for orr_run_config.records, what to record; for orr_run_supports,
 * what an engine can do. */
enum {
    ORR_RUN_SPANS = 1 << 0,  /* when each operation ran: orr_run_timeline, orr_run_critical_path */
    ORR_RUN_PHASES = 1 << 1, /* and each phase of each chunk of each collective */
    ORR_RUN_SCHEDULE = 1 << 2, /* what was sent and computed: orr_run_goal */
    ORR_RUN_ISSUES = 1 << 3,   /* when each node was issued and ended: the writer "trace-log" */
    ORR_RUN_LINKS = 1 << 4,    /* traffic of each link; networks without links are refused */
    ORR_RUN_HISTORY = 1 << 5,  /* links and queues over time: orr_run_fabric_view */
    ORR_RUN_QUEUES = 1 << 6,   /* lengths of the queues of messages: the writer "queues" */
    ORR_RUN_PAIRS = 1 << 7,    /* which send matched which receive: the writer "pairs" */
    ORR_RUN_RECORDS = (1 << 8) - 1,

    ORR_RUN_SYSTEM = 1 << 8,   /* collectives, queues, heterogeneous ranks: the system layer */
    ORR_RUN_PACKETS = 1 << 9,  /* packet_config, packet_keys */
    ORR_RUN_LOGGOPS = 1 << 10, /* loggops, noise */
    ORR_RUN_PATH = 1 << 11,    /* orr_run_critical_path */
    ORR_RUN_WHAT_IF = 1 << 12, /* change */
    ORR_RUN_ROWS = 1 << 13,    /* the writer "csv": one row per rank */
    ORR_RUN_REPORT = 1 << 14,  /* all that the HTML report needs */
    ORR_RUN_FOLDS = 1 << 15    /* fold */
};

/* The system layer of a rank, as the system file has it (docs/format/system.md).  All-zero is the
 * default: NCCL's collectives on the network fluid, on others rings in one chunk, and trees for
 * broadcast and other rooted collectives; no roofline. */
typedef struct orr_system {
    size_t size;              /* sizeof(orr_system) */
    const char *policy;       /* "LIFO", "FIFO" or "EXPLICIT"; NULL: LIFO */
    bool is_bandwidth_aware;  /* collective-optimization: localBWAware, else baseline */
    bool has_endpoint_delay;  /* else 10 ns */
    orr_ps endpoint_delay;    /* per message; whole nanoseconds */
    uint32_t chunks;          /* preferred-dataset-splits; 0: 1 */
    uint32_t active_chunks;   /* per dimension; 0: 1 */
    orr_Bps memory_bandwidth; /* 0: 1600 GB/s */
    double peak_flops;        /* with roofline: operations per second */
    bool has_roofline;
    bool replays_measured; /* with roofline: a node without num_ops takes its recorded time */
    /* By dimension, as in the system file: "ring", "direct", "halvingDoubling", "doubleBinaryTree";
     * rooted collectives: "ring", "direct", "tree".  A list ends with NULL; an empty one selects
     * the default. */
    const char *all_reduce[ORR_NET_DIMS + 1];
    const char *all_gather[ORR_NET_DIMS + 1];
    const char *reduce_scatter[ORR_NET_DIMS + 1];
    const char *all_to_all[ORR_NET_DIMS + 1];
    const char *broadcast[ORR_NET_DIMS + 1];
    const char *reduce[ORR_NET_DIMS + 1];
    const char *gather[ORR_NET_DIMS + 1];
    const char *scatter[ORR_NET_DIMS + 1];
    const char *barrier[ORR_NET_DIMS + 1];
    /* Share of compute speed lost while a collective of the rank moves data: its channels occupy
     * multiprocessors and memory bandwidth.  On the network fluid; 0: none. */
    double overlap_cost;
    double message_overlap_cost; /* the same for each message of the rank, sent or received */
} orr_system;

/* LogGOPS: L is the latency, o the CPU cost and g the NIC cost of a message; O and G the same per
 * byte; above S bytes a send completes only when the message has been received (rendezvous).
 * Nanoseconds and bytes, as in the literature. */
typedef struct orr_loggops_model {
    uint64_t L, o, g, O;
    double G;
    uint32_t S;
} orr_loggops_model;
/* "default", "ai", "hpc", or "L=2500,o=1500,g=1000,G=6,O=0,S=65535", missing parameters are those
 * of "default". */
ORR_API orr_code orr_loggops_parse(const char *text,
                                   orr_loggops_model *out,
                                   orr_error *err) ORR_MUST_CHECK;

/* A what-if change: speed factors, 0 for 1. */
typedef struct orr_run_change {
    /* Bandwidth and latency of this dimension alone, not of the whole network. */
    bool has_dimension;
    uint32_t dimension;
    double bandwidth, latency; /* of links */
    double compute, memory;    /* speeds of all ranks */
} orr_run_change;

/* An input file of a schedule, listed in results. */
typedef struct orr_run_source {
    const char *role; /* "schedule", "traces", "system", ... */
    orr_str path;     /* "-": standard input, which has no hash */
} orr_run_source;

/* Folding of equal ranks (docs/design/folding.md). */
typedef enum orr_run_fold {
    ORR_RUN_FOLD_AUTO = 0, /* simulated once, where that gives exactly the same results */
    ORR_RUN_FOLD_OFF,      /* every rank is simulated */
    ORR_RUN_FOLD_VERIFY    /* both; a run that differs ends with ORR_EBUG */
} orr_run_fold;

/* Strings and lists are copied; sets, schedules, rules and network operations are not, and must
 * outlive the run. */
typedef struct orr_run_config {
    size_t size; /* sizeof(orr_run_config) */

    /* What runs: exactly one of traces, set, schedule and is_flows. */
    const char *traces; /* a prefix, a directory or a .orr: the traces of all ranks */
    const orr_set *set; /* the same, already read; `traces` may give its origin */
    const struct orr_goal *schedule;
    bool is_flows;
    const char
        *flows;       /* NULL: FLOW_FILE of the packet configuration; ns-3's form, or htsim's .cm */
    const char *name; /* of a schedule, in results; NULL: "schedule" */
    const char *program;           /* name and version for results: "orrery 0.1.0"; NULL: omitted */
    const orr_run_source *sources; /* of a schedule */
    size_t source_count;

    /* The machine, by name (lab/machine.h: "dgx-h100:16"), files, or structs, which take
     * precedence.  A machine without a number of nodes gets as many as the traces need.  Without
     * any: the default system on one switch. */
    const char *machine;
    bool is_ideal;      /* compute at peak rates, of the machine or the system; not by kernels */
    const char *system; /* JSON */
    const orr_system *own_system;
    const char *topology; /* YAML of ASTRA-sim, a link-level topology, or a packet configuration */
    const orr_net_config *dims;     /* shapes, ranks, bandwidths and latencies by dimension */
    const char *network;            /* a name of orr_net_at; NULL: "fluid" */
    const orr_net_ops *own_network; /* a custom one instead */
    const orr_coll_ops *const
        *own_algorithms; /* besides those of orr_coll_at, ending in NULL; NULL: none */
    const orr_compute_ops *own_compute; /* of traces; NULL: none */
    const char *memory;                 /* remote memory, JSON; NULL: none */
    const char *groups;                 /* communicator groups, JSON; NULL: none */
    const char *plans; /* collectives as plans of MSCCL or MSCCL++, comma-separated; NULL: none */
    const char *ranks_file; /* heterogeneous ranks, slow or failed links, YAML; NULL: none */
    const char *hardware;   /* traces: a chip (lab/chip.h) that times kernels; NULL: none */
    const char *software; /* its host software (lab/software.h); NULL: as recorded in the traces */
    const char *logical;  /* packets: the dimensions of the ranks, JSON; NULL: one */
    const char *packet_config; /* packets: config.txt when topology has links */
    const char *packet_keys;   /* packets: keys and values over those of the configuration */
    uint32_t queues_per_dim;   /* 0: 1 */
    bool rendezvous;           /* a message starts when its receiver is ready */
    double injection_scale;    /* of the endpoint delay; 0: 1, below 0: 0 */
    orr_run_fold fold;         /* of traces, and of schedules */
    orr_run_change change;

    const orr_loggops_model *loggops; /* NULL: "default" */
    const char *noise;        /* LogGOPS: a file of interruptions, "start duration" per line, ns */
    bool has_common_noise;    /* every rank is interrupted at the same times */
    uint64_t noise_seed;      /* offset of each rank in the file */
    const char *simple_links; /* rules of LogGOPSim of 2023: links that messages share, DOT */

    /* Rules of another program (lab/compat.h); NULL: ours. */
    const struct orr_rules_run *rules; /* of traces */
    const struct orr_rules_loggops *loggops_rules;
    const struct orr_rules_packet *packet_rules;
    const char *logging; /* TOML: log sinks of ASTRA-sim; NULL: the default */

    uint32_t records;     /* bits: ORR_RUN_SPANS etc. */
    uint32_t path_steps;  /* steps of the critical path listed in results; 0: none */
    unsigned threads;     /* to read traces, run packets and LogGOPS; 0: one per core */
    bool shows_progress;  /* a line on stderr, if it is a terminal */
    bool prints_progress; /* LogGOPSim's: one line per percent, in the writer "log" */

    /* Limits, 0: none.  A limit that is reached stops the run like orr_run_stop, and the error
     * names it; results so far are available. */
    double max_seconds;  /* wall clock, in orr_run_to_end */
    uint64_t max_bytes;  /* memory of the whole process */
    uint64_t max_events; /* the same run always stops at the same event */

    uint32_t steps; /* traces: this many times in sequence (orr_run_steps_of); 0: once */

    /* Part of max_seconds that earlier runs have used, where several share one limit; errors
     * name the whole limit. */
    double used_seconds;
} orr_run_config;

/* Capabilities of an engine, as bits.  engine: "traces", "schedule" or "flows"; network: see
 * orr_run_config.  0: there is no such engine. */
ORR_API uint32_t orr_run_supports(const char *engine, const char *network);

/* ---- life cycle */

/* On failure *out is NULL. */
ORR_API orr_code orr_run_create(const orr_run_config *config,
                                orr_run **out,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_run_destroy(orr_run *r); /* NULL is fine */

/* Process one event.  ORR_END: no events are left. */
ORR_API orr_code orr_run_step(orr_run *r, orr_error *err) ORR_MUST_CHECK;
/* Process all events.  A deadlock is an error; orr_run_stall_line explains it. */
ORR_API orr_code orr_run_to_end(orr_run *r, orr_error *err) ORR_MUST_CHECK;
/* orr_run_to_end returns ORR_ESTOP soon, and may be called again to continue.  Results so far are
 * available.  Safe in a signal handler and from another thread. */
ORR_API void orr_run_stop(orr_run *r);

/* ---- results */

/* Results of one rank or host. */
typedef struct orr_run_rank {
    orr_ps finished_at;         /* ORR_RUN_NEVER: it did not finish */
    orr_ps wall;                /* end of its last node */
    orr_ps gpu_time, comm_time; /* length of the union of their intervals */
    orr_ps cpu_time, memory_time;
    orr_ps gpu_total;      /* sum of compute (and replayed) durations on the device */
    orr_ps noise;          /* LogGOPS: total time of interruptions */
    orr_bytes peak_memory; /* of live tensors; 0 unless the system file has track-local-mem */
} orr_run_rank;

ORR_API uint32_t orr_run_ranks(const orr_run *r);    /* flows: 0 */
ORR_API uint32_t orr_run_finished(const orr_run *r); /* ranks that have finished */
/* How many ranks were simulated on behalf of all, and why not fewer, or what was verified ("":
 * nothing to say). */
ORR_API uint32_t orr_run_ranks_simulated(const orr_run *r);
/* Of these, how many remained at the end: classes that were split may merge again. */
ORR_API uint32_t orr_run_ranks_simulated_last(const orr_run *r);
ORR_API const char *orr_run_fold_why(const orr_run *r);
/* Traces and schedules: the number of threads that shared the ranks, and why fewer than requested
 * ("": nothing to say).  0: not known for this kind of run. */
ORR_API uint32_t orr_run_threads(const orr_run *r, const char **why);
/* Several steps in sequence (orr_run_config.steps) and their times.  All other results are those of
 * the last step, with times from its first start on any rank. */
typedef struct orr_run_steps {
    uint32_t asked, simulated; /* steps beyond `simulated` repeat the last one */
    orr_ps total;              /* of all steps asked for */
    /* of one step: from the end of the previous one until the last rank ends it */
    orr_ps first, last;
} orr_run_steps;
ORR_API orr_run_steps orr_run_steps_of(const orr_run *r);
/* Valid until the next call on this run.  NULL: there is no such rank. */
ORR_API const orr_run_rank *orr_run_rank_at(orr_run *r, uint32_t rank);
/* When the last rank or flow finished; before the end of the run: now. */
ORR_API orr_ps orr_run_time(const orr_run *r);
ORR_API double orr_run_seconds(const orr_run *r); /* wall-clock time of orr_run_to_end */
ORR_API uint64_t orr_run_events(const orr_run *r);
ORR_API uint64_t orr_run_messages(const orr_run *r); /* flows: 0 */

/* Oddities in the inputs that are not errors; NULL past the last. */
ORR_API const char *orr_run_warning(const orr_run *r, size_t i);
/* After a stall: who waits for what, line by line; NULL past the last, or
 * without a stall. */
ORR_API const char *orr_run_stall_line(orr_run *r, size_t i);
/* The same for traces, item by item; NULL: another engine, or no stall. */
ORR_API const struct orr_stall *orr_run_stall(orr_run *r);

/* A file that was read. */
typedef struct orr_run_input {
    const char *role; /* "traces", "system", "configuration", ... */
    const char *path;
    char hash[36]; /* MurmurHash3, 128 bits; "": it cannot be reread */
    uint64_t bytes;
} orr_run_input;
/* Reads the file again for its hash.  ORR_END past the last. */
ORR_API orr_code orr_run_input_at(const orr_run *r, size_t i, orr_run_input *out, orr_error *err)
    ORR_MUST_CHECK;

/* Every link that carried traffic, per direction. */
ORR_API void orr_run_visit_links(const orr_run *r, orr_net_link_visit visit, void *context);
/* One dimension of the network, and its traffic: a message counts for the innermost dimension in
 * which sender and receiver differ. */
typedef struct orr_run_dimension {
    /* "Ring"; NULL: a link-level network, whose dimensions are those of collectives */
    const char *shape;
    uint32_t ranks;    /* along it */
    double bandwidth;  /* bytes per second and link; 0: not known */
    double latency_ns; /* of a link; below 0: not known */
    uint64_t messages, bytes;
    uint32_t links; /* on which a rank can send along it: ranks - 1 if all are connected */
} orr_run_dimension;
ORR_API uint32_t orr_run_dimensions(const orr_run *r);
/* Valid until the next call on this run.  NULL: there is no such dimension. */
ORR_API const orr_run_dimension *orr_run_dimension_at(orr_run *r, uint32_t i);
/* Traffic of a packet network so far; false: not a packet network. */
ORR_API bool orr_run_packets(const orr_run *r, struct orr_packet_figures *out);
/* The same for the report, over time with ORR_RUN_HISTORY; *out is NULL if it is not a packet
 * network. */
ORR_API orr_code orr_run_fabric_view(const orr_run *r,
                                     struct orr_fabric_view **out,
                                     orr_error *err) ORR_MUST_CHECK;

/* The traces it runs, owned by the run; NULL: it runs something else. */
ORR_API const orr_set *orr_run_traces(const orr_run *r);
ORR_API double orr_run_peak_flops(const orr_run *r); /* per rank, from the system; 0: no roofline */
/* When each operation ran, sealed; the caller destroys it.  Needs ORR_RUN_SPANS. */
ORR_API orr_code orr_run_timeline(const orr_run *r,
                                  orr_timeline **out,
                                  orr_error *err) ORR_MUST_CHECK;
/* Which ranks of a timeline have spans of their own.  One rank may represent all that did the
 * same at the same times; see orr_timeline_parts.alike. */
typedef enum orr_run_rows {
    ORR_RUN_ROWS_AUTO = 0, /* all, unless that exceeds a million spans */
    ORR_RUN_ROWS_ALL,
    ORR_RUN_ROWS_ALIKE, /* one per group of equal ranks; only folded runs know them */
} orr_run_rows;
ORR_API orr_code orr_run_timeline_rows(const orr_run *r,
                                       orr_run_rows rows,
                                       orr_timeline **out,
                                       orr_error *err) ORR_MUST_CHECK;
/* The critical path.  Needs ORR_RUN_SPANS and a run that has finished. */
ORR_API orr_code orr_run_critical_path(const orr_run *r,
                                       struct orr_critical_path **out,
                                       orr_error *err) ORR_MUST_CHECK;
/* What was run, as a schedule: collectives as their messages, compute as its duration.  Needs
 * ORR_RUN_SCHEDULE and a run that has finished; the caller frees it. */
ORR_API orr_code orr_run_goal(const orr_run *r,
                              struct orr_goal **out,
                              orr_error *err) ORR_MUST_CHECK;

/* Write results to a file or "-":
 *
 *     "text"       a short table                          "json"     one object
 *     "csv"        one row per rank                       "links"    one row per link
 *     "csv-alike"  one row for all ranks with the same figures, and which ranks these are
 *     "figures"    "json" of traces without provenance; one of each set of equal ranks and links
 *     "trace-log"  issue and end of each node, for chakra_timeline_visualizer
 *     "memory"     tensors over time, one Chrome trace per rank; path NULL: where the system file says
 *
 * and the output files of programs whose rules it follows (src/compat).  ORR_EUSAGE: not available
 * for this run. */
ORR_API orr_code orr_run_write(const orr_run *r, const char *what, const char *path, orr_error *err)
    ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
