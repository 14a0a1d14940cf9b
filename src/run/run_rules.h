/* SPDX-License-Identifier: Apache-2.0 */
/* run_rules.h - where a run may differ from ours: what it refuses, what it leaves out, how messages
 * meet.
 *
 * All-zero is ours.  src/compat supplies the rules of replaced programs; orr_sim_options.rules
 * names them. */
#ifndef ORR_RUN_RULES_H
#define ORR_RUN_RULES_H

#include "clock.h"
#include "sim.h"

struct orr_arena;
struct msg_unmatched;

typedef struct orr_rules_run {
    /* Traces. */
    bool needs_both_roots;     /* traces in which data or control alone have no node to begin with
                                  are an error (astra-sim.md 2) */
    bool merges_equal_ids;     /* nodes of one id are one; an error otherwise (astra-sim.md 2) */
    bool has_one_stream;       /* a rank communicates once at a time, whatever streams its trace
                                  names (astra-sim.md 6.1) */
    bool needs_peers;          /* a send or receive that names no peer is an error; its duration is
                                  replayed otherwise (astra-sim.md 6.3) */
    bool reads_leading_digits; /* a tensor's size ends at the first character that is no digit; only
                                  a fraction may follow otherwise (astra-sim.md 10.2) */
    /* Collectives. */
    bool has_no_roots;  /* all-reduce, reduce-scatter, all-gather and all-to-all only; a broadcast
                               is replayed (astra-sim.md 6.3) */
    bool runs_lonely;   /* a collective of one member goes through its phases like any other
                               (astra-sim.md 5.2) */
    bool sends_nothing; /* pieces that round down to 0 bytes are an error, not one byte
                               (astra-sim.md 8) */
    /* a collective of all ranks is numbered together with those of groups, so that ranks that were
     * in other groups before never meet (astra-sim.md 6.4) */
    bool has_one_count;
    /* Files. */
    bool ignores_new_keys; /* schedulers and collectives with a root in the system file: a file that
                               the reference takes is never refused (astra-sim.md 3) */
    bool ignores_group_file; /* P.json beside the traces P.0.et, ...: groups are given by an option
                                only (astra-sim.md 3) */
    bool has_no_topologies;  /* the network file has dimensions (packets: is config.txt), it is not
                               looked at for links (astra-sim.md 3) */
    /* The congestion-aware network refuses more dimensions and smaller rings; 0: nothing
     * (astra-sim.md 8.2). */
    uint32_t aware_most_dims, aware_least_ring;
    bool refuses_one_rank;   /* also for the trace of one rank (astra-sim.md 3) */
    bool overrides_patterns; /* patterns of the logging file do not count (astra-sim.md 10.1) */
    /* The run. */
    bool has_ns_durations;  /* durations of traces count nanoseconds, not microseconds
                               (docs/figures.md) */
    bool reduces_for_free;  /* a reduction takes no time (docs/figures.md) */
    bool refuses_tick_zero; /* an event at the very start is an error (astra-sim.md 4.1) */
    bool orders_by_hash;    /* the lines of a rank's times follow a hash table (astra-sim.md
                               10.1) */
    bool keeps_no_figures;  /* nothing is recorded for reports */
} orr_rules_run;

extern const orr_rules_run run_rules_ours;

/* What a replaced program printed, made from a run.  src/compat/table.c says who does it. */
typedef struct run_old_output {
    orr_code (*read_logging)(const char *path,
                             bool keeps_patterns,
                             struct orr_arena *a,
                             const void **out,
                             orr_error *err);
    const struct run_observer *lines;   /* listens to every run */
    const struct run_observer *starts;  /* and those whose rules order lines by a hash table */
    const struct run_observer *issues;  /* and when starts and ends of nodes are kept */
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

/* Messages of one tag, source and destination meet by their bytes, not one by one
 * (packet-network.md 6.1). */
typedef struct run_byte_matching {
    void *(*create)(void); /* NULL: out of memory */
    void (*destroy)(void *m);
    /* Both: false: out of memory.  *is_there: the bytes have arrived already, and nothing waits. */
    bool (*receive)(
        void *m, const run_bytes_key *k, uint64_t size, clk_call on_received, bool *is_there);
    bool (*arrive)(void *m, const run_bytes_key *k, uint64_t size, clk_call *then);
    size_t (*count)(const void *m);
    bool (*describe)(const void *m, size_t i, struct msg_unmatched *out);
} run_byte_matching;
extern const run_byte_matching *const run_byte_matchings; /* NULL: left out of the build */

#endif
