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
 * A simulation is an object: many may live in one process, and the caller may own the loop (orr_sim_step).
 * Same inputs give the same result, always.  One tick is one nanosecond. */
#ifndef ORRERY_SIM_H
#define ORRERY_SIM_H

#include <orrery/network.h>
#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_NEVER UINT64_MAX

typedef struct orr_sim_options {
    const char *workload; /* a prefix, a directory or a .orr: the traces of all ranks */
    const char *system;   /* JSON */
    const char *network;  /* YAML */
    const char *memory;   /* JSON; NULL: no remote memory */
    const char *groups;   /* JSON; NULL: none */
    const char *fidelity; /* "unaware", "aware"; NULL: unaware */
    const orr_net_ops *custom_network; /* your own instead of fidelity */
    const orr_set *set;                /* the traces, when already read; instead of workload */
    uint32_t queues_per_dim;           /* 0: 1 */
    double injection_scale;            /* 0: 1 */
    bool rendezvous;
    bool
        is_compat; /* refuse what makes the reference crash, and behave as it does where it is odd */
    unsigned threads; /* for reading traces; 0: one per core */
} orr_sim_options;

/* What became of one rank. */
typedef struct orr_sim_rank_result {
    uint64_t finished_at;         /* ticks; ORR_NEVER: it did not */
    uint64_t gpu_total;           /* sum of compute (and replayed) durations on the device */
    uint64_t wall;                /* end of its last node */
    uint64_t gpu_time, comm_time; /* length of the union of their intervals */
    uint64_t cpu_time, memory_time;
    bool has_other_nodes; /* it ran host, remote-memory or invalid nodes */
    double compute_bound, compute_use, memory_use,
        intensity; /* roofline averages, see astra-sim.md 10.1 */
} orr_sim_rank_result;

ORR_API orr_code orr_sim_create(const orr_sim_options *opt,
                                orr_sim **out,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_sim_destroy(orr_sim *s); /* NULL is fine */

/* One event.  ORR_END: nothing is left to happen. */
ORR_API orr_code orr_sim_step(orr_sim *s, orr_error *err) ORR_MUST_CHECK;
/* All of them.  A simulation that stands still before all ranks have finished is an error that says who waits
 * for whom. */
ORR_API orr_code orr_sim_run(orr_sim *s, orr_error *err) ORR_MUST_CHECK;

ORR_API uint32_t orr_sim_ranks(const orr_sim *s);
ORR_API uint32_t orr_sim_finished(const orr_sim *s); /* how many have finished */
ORR_API uint32_t orr_sim_finished_rank(const orr_sim *s,
                                       uint32_t place); /* the place-th to finish */
ORR_API const orr_sim_rank_result *orr_sim_rank(const orr_sim *s, uint32_t rank);
ORR_API uint64_t orr_sim_events(const orr_sim *s);
ORR_API uint64_t orr_sim_messages(const orr_sim *s);

/* The lines that the old programs print (astra-sim.md 10.1), appended to nothing: the whole of them, to a file
 * or "-".  is_error: only those of level error and above. */
ORR_API orr_code orr_sim_write_old_log(const orr_sim *s,
                                       const char *path,
                                       bool is_error,
                                       orr_error *err) ORR_MUST_CHECK;
/* What came out, as a short table or as one JSON object; to a file or "-". */
ORR_API orr_code orr_sim_write_text(const orr_sim *s,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_sim_write_json(const orr_sim *s,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
