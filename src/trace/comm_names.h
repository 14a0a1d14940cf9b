/* SPDX-License-Identifier: Apache-2.0 */
/* comm_names.h - what names and marks say a thing is: communication, an annotation, or work. */
#ifndef ORR_TRACE_COMM_NAMES_H
#define ORR_TRACE_COMM_NAMES_H

#include <orrery/trace.h>

typedef enum orr__comm_by {
    ORR__COMM_NOT,
    ORR__COMM_NCCL, /* NCCL, RCCL, MSCCL, oneCCL: one kernel for each call */
    /* Kernels that write to other devices by themselves: DeepEP, NVSHMEM, symmetric memory, custom
     * all-reduces.  No record says how much, or to whom. */
    ORR__COMM_ONE_SIDED
} orr__comm_by;

orr__comm_by orr__comm_kernel(orr_str name);

/* Collective of a one-sided kernel plus 1; 0: its name does not say it. */
uint8_t orr__comm_one_sided_kind(orr_str name);

/* What a back end without a device did, on a thread of its own: "gloo:all_reduce". */
bool orr__comm_on_host(orr_str name);

/* A host node that is no operator: what a user named (record_function, ProfilerStep), the threads
 * and the process of an execution trace. */
bool orr__is_annotation(const orr_trace *t, uint32_t node);

#endif
