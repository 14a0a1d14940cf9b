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

/* Process groups defined by a METADATA node (metadata_groups.c). */
typedef struct work_group_table work_group_table;

/* Uncertainty of the times on a chip: 90 % bounds for one pass through the graph's computations. */
typedef struct work_spread {
    double us;              /* of all computations, including waits for the host */
    double low_us, high_us; /* possible deviation downwards and upwards */
    double host_share;      /* of the computations: the device waits for the host */
    double guessed_us;      /* of kernels unlike any measured one */
    double guessed_most_us; /* of the one with the largest total time */
    char guessed[120];      /* which; "": there is none */
    bool has_experts;       /* products of experts, with uneven sizes */
} work_spread;

/* Ticks where the memory of the device and the host are faster by these factors. */
typedef struct work_pace {
    double memory, host;
    uint64_t *ticks;
} work_pace;

typedef struct work_graph work_graph;
struct work_graph {
    const orr_trace *t;
    const work_group_table **tables;
    uint32_t table_count;
    uint32_t count;        /* nodes, in the order of their ids */
    uint32_t *node;        /* place -> index in the trace */
    uint32_t *child_first; /* by place */
    uint32_t *child;       /* places */
    uint32_t *parents;     /* number of distinct ones, by place */
    uint8_t *slot;         /* work_slot, by place */
    uint64_t *ticks;       /* by node: on a chip; 0: as recorded.  NULL: no chip */
    work_spread spread;    /* of ticks */
    work_pace *paces;      /* ticks on devices and hosts of other speeds */
    size_t pace_count, pace_room;
    unsigned slot_count; /* slots in use, at least WORK_SLOT_STREAMS */
    /* of a communication slot: the number in the trace; NO_VALUE: any */
    int64_t stream[WORK_SLOTS];
};

orr_code work_graph_make(const orr_trace *t,
                         const orr_rules_run *rules,
                         work_graph *out,
                         orr_error *err);
void work_graph_fini(work_graph *g);
/* Times computations on a chip (kernel_times.c), for a job of so many ranks.  software NULL: as
 * recorded in the trace.
 * *timed is increased by the number of timed nodes. */
struct orr_chip;
struct work_comm;
struct orr_software;
/* A chip known only by these peaks. */
typedef struct work_peaks {
    double flops, bytes_per_s; /* per second, bf16 */
} work_peaks;
typedef struct work_timing {
    const struct orr_chip *chip;
    const struct orr_software *software;
    const work_peaks *peaks; /* NULL: those of the chip */
    double memory, host;     /* speed factors of the device's memory and of the host; 0: 1 */
    struct work_comm *comm;  /* of the class of the graph */
} work_timing;
orr_code work_graph_time(
    work_graph *g, const work_timing *how, uint32_t ranks, uint32_t *timed, orr_error *err);
/* The ticks for a rank whose memory and host are faster than that by these factors. */
orr_code work_graph_pace(work_graph *g,
                         const work_timing *how,
                         double memory,
                         double host,
                         uint32_t ranks,
                         const uint64_t **out,
                         orr_error *err);
/* ---- times of collectives alone, before the run (comm_times.c) ---- */

typedef struct work_comm work_comm;
work_comm *work_comm_create(struct orr_sim *s); /* once groups are known; NULL: out of memory */
void work_comm_destroy(work_comm *c);
/* From here on for this class of the set.  False: out of memory. */
bool work_comm_begin(work_comm *c, uint32_t class_index);
/* The number of the collective at this place; equal ones have the same.  False: out of memory. */
bool work_comm_find(work_comm *c, uint32_t place, uint32_t *out);
const double *work_comm_us(const work_comm *c); /* by number, once all were found */

/* The same as work_graph_time with the caller's model (run.h), which overrides a chip. */
struct orr_compute_ops;
orr_code work_graph_ask(work_graph *g, const struct orr_compute_ops *model, orr_error *err);

/* The kernels of a node, at the chip's highest clock. */
struct orr_kernel;
typedef struct work_kernel_sum {
    double fixed_us, clocked_us; /* independent of the clock, and scaling with it */
    double flops;                /* that draw power and lower the clock */
    double host_us;
} work_kernel_sum;
/* The device that times them. */
typedef struct work_device {
    const struct orr_chip *chip;
    const struct orr_software *software;
} work_device;
/* Adds a kernel; false: the chip cannot run it. */
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
                       uint64_t place); /* the same for compute that may be slowed by collectives */
/* A collective of this rank starts or stops moving data: computation is slower meanwhile
 * (system.overlap_cost). */
void work_moving(run_npu *n, bool begins);
/* A message of the node is in flight until the node ends (system.message_overlap_cost). */
void work_message_moves(run_npu *n, uint32_t place);

uint64_t work_replay_time(const run_npu *n, uint64_t duration);
uint64_t work_at_speed(uint64_t duration, double speed); /* of a rank with another speed */
/* A compute node of this many operations on this many bytes. */
typedef struct work_roofline {
    double intensity, perf, compute_use, memory_use;
} work_roofline;
work_roofline work_roofline_of(const run_npu *n, int64_t ops, int64_t size);

/* ---- process groups from traces (metadata_groups.c) ---- */

orr_code work_read_metadata_groups(orr_sim *s, orr_error *err);
/* The group with this number in a trace; false: the trace does not define it.  *out NULL: all
 * ranks. */
bool work_metadata_group(const orr_sim *s,
                         const work_graph *g,
                         int64_t name,
                         const cfg_group **out);

/* ---- remote memory (remote_memory.c, astra-sim.md 7) ---- */

struct work_remote *work_remote_create(orr_sim *s);
void work_remote_access(run_npu *n, uint64_t size, uint32_t place);

#endif
