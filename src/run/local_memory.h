/* SPDX-License-Identifier: Apache-2.0 */
/* local_memory.h - the tensors of a rank: who wrote and read them, how long they lived
 * (astra-sim.md 10.2). */
#ifndef ORR_LOCAL_MEMORY_H
#define ORR_LOCAL_MEMORY_H

#include "run_state.h"

struct mem_tensor_log {
    uint32_t *done;     /* places, in the order of their ends */
    uint64_t *ended_at; /* by place: tick */
    uint32_t count;
};

typedef struct mem_tensor {
    uint64_t size;          /* bytes */
    uint32_t writer;        /* a place, or NONE */
    uint64_t born, written; /* ticks: start and end of its writer */
    uint64_t last_read;     /* end of the last read; NEVER: none */
    uint32_t first, last;   /* of its reads */
} mem_tensor;

typedef struct mem_read {
    uint32_t place, next;
} mem_read;

typedef struct mem_point {
    uint64_t tick, usage; /* while being made: what is added at this tick, modulo 2^64 */
} mem_point;

typedef struct mem_ledger {
    const run_npu *n;
    orr_intern *names;
    mem_tensor *tensors;
    mem_read *reads;
    uint32_t *readable; /* tensors in the order of their first read */
    mem_point *points;  /* ascending ticks, each once */
    size_t count, room, read_count, read_room, readable_count, readable_room, point_count;
    orr_error *err;
} mem_ledger;

orr_code mem_ledger_make(const run_npu *n,
                         mem_ledger *l,
                         orr_error *err); /* fini also after failure */
void mem_ledger_fini(mem_ledger *l);

struct mem_tensor_log *mem_tensor_log_create(uint32_t nodes); /* NULL: out of memory */
void mem_tensor_log_destroy(struct mem_tensor_log *l);
extern const run_observer mem_observer;
/* Bytes in use by the tensors of a finished rank, tick by tick. */
typedef void (*mem_usage_visit)(void *context, uint64_t tick, uint64_t bytes);
orr_code mem_usage(const run_npu *n, mem_usage_visit visit, void *context, orr_error *err);
/* The tensors that a node reads, then those that it writes.  Ends at the first that cannot be
 * read. */
typedef void (*mem_tensor_visit)(void *context, bool is_write, orr_str name);
void mem_visit_tensors(const run_npu *n, uint32_t place, mem_tensor_visit visit, void *context);

#endif
