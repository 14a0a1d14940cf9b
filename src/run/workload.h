/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - the workload layer: the graph of a trace, and which node of a rank runs when
 * (astra-sim.md 6). */
#ifndef ORR_RUN_WORKLOAD_H
#define ORR_RUN_WORKLOAD_H

#include "run/config/config.h"
#include "run_rules.h"

typedef struct orr__npu orr__npu;

/* ---- one trace's graph, shared by all ranks of its class (graph.c) ---- */

typedef enum orr__slot {
    ORR__SLOT_CPU,
    ORR__SLOT_COMP,
    ORR__SLOT_COMM,
    ORR__SLOT_RECV,
    ORR__SLOT_STREAMS, /* communication of a trace's second stream, and further ones */
    ORR__SLOTS = ORR__SLOT_STREAMS + 8
} orr__slot;

static inline bool orr__is_comm_slot(uint8_t slot)
{
    return slot == ORR__SLOT_COMM || slot >= ORR__SLOT_STREAMS;
}

/* What a METADATA node says about process groups (metadata_groups.c). */
typedef struct orr__group_table orr__group_table;

typedef struct orr__graph {
    const orr_trace *t;
    const orr__group_table **tables;
    uint32_t table_count;
    uint32_t count;        /* nodes, in the order of their ids */
    uint32_t *node;        /* place -> index in the trace */
    uint32_t *child_first; /* by place */
    uint32_t *child;       /* places */
    uint32_t *parents;     /* number of distinct ones, by place */
    uint8_t *slot;         /* orr__slot, by place */
    unsigned slot_count;   /* of slots in use, ORR__SLOT_STREAMS at least */
    int64_t
        stream[ORR__SLOTS]; /* of a communication slot: the number in the trace; NO_VALUE: any */
} orr__graph;

orr_code orr__graph_make(const orr_trace *t,
                         const orr_rules_run *rules,
                         orr__graph *out,
                         orr_error *err);
void orr__graph_fini(orr__graph *g);

/* ---- nodes (workload.c) ---- */

orr_code orr__workload_init(orr__npu *n, const orr__graph *g, orr_error *err);
void orr__workload_fini(orr__npu *n);
void orr__issue(orr__npu *n);
/* The collective that is simulated for one of a trace; -1: none. */
int orr__kind_of(int type, const orr_rules_run *rules);
void orr__node_done(void *npu, uint64_t place); /* as an action */

uint64_t orr__replay_time(uint64_t duration_us);
uint64_t orr__at_speed(uint64_t duration, double speed); /* of a rank that is not plain */
/* A compute node of this many operations on this many bytes. */
typedef struct orr__roofline {
    double intensity, perf, compute_use, memory_use;
} orr__roofline;
orr__roofline orr__roofline_of(const orr__npu *n, int64_t ops, int64_t size);

/* ---- process groups from traces (metadata_groups.c) ---- */

orr_code orr__read_metadata_groups(orr_sim *s, orr_error *err);
/* The group that this number means in a trace; false: the trace does not define it.  *out NULL: all
 * ranks. */
bool orr__metadata_group(const orr_sim *s,
                         const orr__graph *g,
                         int64_t name,
                         const orr__group **out);

/* ---- remote memory (remote_memory.c, astra-sim.md 7) ---- */

struct orr__remote *orr__remote_create(orr_sim *s);
void orr__remote_access(orr__npu *n, uint64_t size, uint32_t place);

#endif
