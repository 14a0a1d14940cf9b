/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - the workload layer: the graph of a trace, and which node of a rank runs when
 * (astra-sim.md 6). */
#ifndef ORR_RUN_WORKLOAD_H
#define ORR_RUN_WORKLOAD_H

#include "run/config/config.h"
#include "run_rules.h"

typedef struct run_npu run_npu;

/* ---- one trace's graph, shared by all ranks of its class (graph.c) ---- */

typedef enum work_slot {
    WORK_SLOT_CPU,
    WORK_SLOT_COMP,
    WORK_SLOT_COMM,
    WORK_SLOT_RECV,
    WORK_SLOT_STREAMS, /* communication of a trace's second stream, and further ones */
    WORK_SLOTS = WORK_SLOT_STREAMS + 8
} work_slot;

static inline bool work_is_comm_slot(uint8_t slot)
{
    return slot == WORK_SLOT_COMM || slot >= WORK_SLOT_STREAMS;
}

/* What a METADATA node says about process groups (metadata_groups.c). */
typedef struct work_group_table work_group_table;

/* How sure the times on a chip are: what 90 % of the errors stay within, of one pass through the
 * graph's computations. */
typedef struct work_spread {
    double us;              /* of all computations, the host's waits with them */
    double low_us, high_us; /* that it may be less, and more */
    double guessed_us;      /* of kernels that none that was measured resembles */
    double guessed_most_us; /* of the one that takes longest in all */
    char guessed[120];      /* which; "": there is none */
    bool has_experts;       /* products of experts, of uneven sizes */
} work_spread;

typedef struct work_graph {
    const orr_trace *t;
    const work_group_table **tables;
    uint32_t table_count;
    uint32_t count;        /* nodes, in the order of their ids */
    uint32_t *node;        /* place -> index in the trace */
    uint32_t *child_first; /* by place */
    uint32_t *child;       /* places */
    uint32_t *parents;     /* number of distinct ones, by place */
    uint8_t *slot;         /* work_slot, by place */
    uint64_t *ticks;       /* by place: on a chip; 0: as recorded.  NULL: there is no chip */
    work_spread spread;    /* of ticks */
    unsigned slot_count;   /* of slots in use, WORK_SLOT_STREAMS at least */
    /* of a communication slot: the number in the trace; NO_VALUE: any */
    int64_t stream[WORK_SLOTS];
} work_graph;

orr_code work_graph_make(const orr_trace *t,
                         const orr_rules_run *rules,
                         work_graph *out,
                         orr_error *err);
void work_graph_fini(work_graph *g);
/* How long computations take on a chip (kernel_times.c), of a job of so many ranks.  software NULL:
 * what the trace says.
 * *timed grows by the nodes that have a time now. */
struct orr_chip;
struct orr_software;
/* Of a chip that is known by these figures only. */
typedef struct work_peaks {
    double flops, bytes_per_s; /* per second, bf16 */
} work_peaks;
/* peaks NULL: those of the chip.  memory: its memory is so many times as fast. */
orr_code work_graph_time(work_graph *g,
                         const struct orr_chip *chip,
                         const struct orr_software *software,
                         const work_peaks *peaks,
                         double memory,
                         double link_GBps,
                         uint32_t ranks,
                         uint32_t *timed,
                         orr_error *err);
/* The same by a model of the caller's (run.h), over what a chip has said. */
struct orr_compute_ops;
orr_code work_graph_ask(work_graph *g, const struct orr_compute_ops *model, orr_error *err);

/* What a node launches, at the chip's highest clock. */
struct orr_kernel;
typedef struct work_kernel_sum {
    double fixed_us, clocked_us; /* that does not, and that does, scale with the clock */
    double flops;                /* that hold the clock down */
    double host_us;
    double low_us2, high_us2; /* squares of what it may be less and more, 90 % */
} work_kernel_sum;
/* What times them. */
typedef struct work_device {
    const struct orr_chip *chip;
    const struct orr_software *software;
} work_device;
/* One kernel more; false: the chip cannot run it. */
bool work_add_kernel(const work_device *d, const struct orr_kernel *k, work_kernel_sum *out);
/* A node of which only operations and bytes are known. */
void work_add_roofline(const work_device *d, double ops, double bytes, work_kernel_sum *out);

/* ---- nodes (workload.c) ---- */

orr_code work_init(run_npu *n, const work_graph *g, orr_error *err);
void work_fini(run_npu *n);
void work_copy(run_npu *n, const run_npu *from); /* between events; both were initialised */
void work_issue(run_npu *n);
/* The collective that is simulated for one of a trace; -1: none. */
int work_kind_of(int type, const orr_rules_run *rules);
void work_node_done(void *npu, uint64_t place); /* as an action */
void work_compute_ends(void *npu,
                       uint64_t place); /* the same of compute that collectives may hold up */
/* A collective of this rank begins or ends to move data: what computes meanwhile is slower
 * (system.overlap_cost). */
void work_moving(run_npu *n, bool begins);
/* From now until the node ends a message of it moves (system.message_overlap_cost). */
void work_message_moves(run_npu *n, uint32_t place);

uint64_t work_replay_time(const run_npu *n, uint64_t duration);
uint64_t work_at_speed(uint64_t duration, double speed); /* of a rank that is not plain */
/* A compute node of this many operations on this many bytes. */
typedef struct work_roofline {
    double intensity, perf, compute_use, memory_use;
} work_roofline;
work_roofline work_roofline_of(const run_npu *n, int64_t ops, int64_t size);

/* ---- process groups from traces (metadata_groups.c) ---- */

orr_code work_read_metadata_groups(orr_sim *s, orr_error *err);
/* The group that this number means in a trace; false: the trace does not define it.  *out NULL: all
 * ranks. */
bool work_metadata_group(const orr_sim *s,
                         const work_graph *g,
                         int64_t name,
                         const cfg_group **out);

/* ---- remote memory (remote_memory.c, astra-sim.md 7) ---- */

struct work_remote *work_remote_create(orr_sim *s);
void work_remote_access(run_npu *n, uint64_t size, uint32_t place);

#endif
