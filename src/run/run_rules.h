/* SPDX-License-Identifier: Apache-2.0 */
/* run_rules.h - where a run may differ from ours: what it refuses, what it leaves out, how messages
 * match.
 *
 * All-zero is ours.  src/compat supplies the rules of replaced programs; orr_sim_options.rules
 * names them. */
#ifndef ORR_RUN_RULES_H
#define ORR_RUN_RULES_H

#include "clock.h"
#include "sim.h"

struct orr_arena;
struct msg_unmatched;

/* An order of the nodes of a trace: a set of their indices, of which one at a time is taken. */
typedef struct run_node_order {
    void *(*create)(const uint64_t *ids, uint32_t count); /* of all nodes; NULL: out of memory */
    void (*destroy)(void *set);                           /* NULL is fine */
    bool (*add)(void *set, uint32_t node);                /* again: nothing; false: out of memory */
    uint32_t (*take)(void *set);                          /* UINT32_MAX: it is empty */
    void (*clear)(void *set);                             /* as after create */
} run_node_order;

typedef struct orr_rules_run {
    /* Traces. */
    bool needs_both_roots;     /* a trace without a root in its data or its control dependencies
                                * alone is an error (astra-sim.md 2) */
    bool merges_equal_ids;     /* nodes with equal ids are merged; else an error (astra-sim.md 2) */
    bool has_one_stream;       /* a rank runs one communication at a time, whatever streams its
                                * trace has (astra-sim.md 6.1) */
    bool needs_peers;          /* a send or receive without a peer is an error; else its duration is
                                * replayed (astra-sim.md 6.3) */
    bool reads_leading_digits; /* a tensor's size ends at the first non-digit; else only a fraction
                                * may follow (astra-sim.md 10.2) */
    /* Collectives. */
    bool has_no_roots;  /* only all-reduce, reduce-scatter, all-gather and all-to-all; a broadcast
                         * is replayed (astra-sim.md 6.3) */
    bool runs_lonely;   /* a single-member collective passes through its phases like any other
                         * (astra-sim.md 5.2) */
    bool sends_nothing; /* pieces that round down to 0 bytes are an error instead of one byte
                         * (astra-sim.md 8) */
    /* collectives of all ranks are numbered together with those of groups, so that ranks with a
     * different history of groups never match (astra-sim.md 6.4) */
    bool has_one_count;
    /* messages of custom collectives have the tags of nodes, and match theirs if peers and sizes
     * are equal, too (astra-sim.md 5.10) */
    bool shares_tags;
    /* in which the free nodes of a custom collective start; NULL: by id (astra-sim.md 12) */
    const run_node_order *node_order;
    /* Files. */
    bool ignores_new_keys; /* schedulers and rooted collectives in the system file: a file that the
                            * reference accepts is never refused (astra-sim.md 3) */
    bool ignores_group_file; /* P.json beside the traces P.0.et, ...: groups come only from an
                              * option (astra-sim.md 3) */
    bool has_no_topologies;  /* the network file has dimensions (packets: is config.txt) and is not
                              * checked for links (astra-sim.md 3) */
    /* Limits of the congestion-aware network on dimensions and ring size; 0: none (astra-sim.md
     * 8.2). */
    uint32_t aware_most_dims, aware_least_ring;
    bool refuses_one_rank;   /* also for the trace of one rank (astra-sim.md 3) */
    bool overrides_patterns; /* patterns of the logging file are ignored (astra-sim.md 10.1) */
    /* The run. */
    bool has_ns_durations;  /* durations of traces are nanoseconds, not microseconds
                             * (docs/figures.md) */
    bool reduces_for_free;  /* a reduction takes no time (docs/figures.md) */
    bool refuses_tick_zero; /* an event at tick 0 is an error (astra-sim.md 4.1) */
    bool orders_by_hash;    /* a rank's times are printed in hash-table order (astra-sim.md 10.1) */
    bool keeps_no_figures;  /* nothing is recorded for reports */
} orr_rules_run;

extern const orr_rules_run run_rules_ours;

/* The output of a replaced program, made from a run; see src/compat/table.c. */
typedef struct run_old_output {
    orr_code (*read_logging)(const char *path,
                             bool keeps_patterns,
                             struct orr_arena *a,
                             const void **out,
                             orr_error *err);
    const struct run_observer *lines;   /* observes every run */
    const struct run_observer *starts;  /* and those whose rules print in hash order */
    const struct run_observer *issues;  /* and those that keep starts and ends of nodes */
    void (*destroy_notes)(void *notes); /* orr_sim.old_notes; NULL is fine */
    bool (*ignores_patterns)(const orr_sim *s);
    orr_code (*write_log)(const orr_sim *s, const char *path, orr_sim_log which, orr_error *err);
    orr_code (*write_sinks)(const orr_sim *s, orr_error *err);
    orr_code (*write_trace_log)(const orr_sim *s, const char *path, orr_error *err);
    orr_code (*write_memory)(const orr_sim *s, uint32_t rank, const char *path, orr_error *err);
} run_old_output;
extern const run_old_output *const run_old_outputs; /* NULL: left out of the build */

typedef struct run_bytes_key {
    uint32_t tag, src, dst;
} run_bytes_key;

/* Messages with equal tag, source and destination are matched by bytes, not one by one
 * (packet-network.md 6.1). */
typedef struct run_byte_matching {
    void *(*create)(void); /* NULL: out of memory */
    void (*destroy)(void *m);
    /* Both: false: out of memory.  *is_there: the bytes have already arrived, and nothing waits. */
    bool (*receive)(
        void *m, const run_bytes_key *k, uint64_t size, clk_call on_received, bool *is_there);
    bool (*arrive)(void *m, const run_bytes_key *k, uint64_t size, clk_call *then);
    size_t (*count)(const void *m);
    bool (*describe)(const void *m, size_t i, struct msg_unmatched *out);
} run_byte_matching;
extern const run_byte_matching *const run_byte_matchings; /* NULL: left out of the build */

#endif
