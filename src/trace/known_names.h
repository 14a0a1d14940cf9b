/* SPDX-License-Identifier: Apache-2.0 */
/* known_names.h - classification by name: communication, annotation, work. */
#ifndef ORR_TRACE_KNOWN_NAMES_H
#define ORR_TRACE_KNOWN_NAMES_H

#include <orrery/trace.h>
#include <orrery/types.h>

typedef enum orr__comm_by {
    ORR__COMM_NOT,
    ORR__COMM_NCCL, /* NCCL, RCCL, MSCCL, oneCCL: one kernel per call */
    /* Kernels that write directly to other devices: DeepEP, NVSHMEM, symmetric memory, custom
     * all-reduces.  Size and peers are not recorded. */
    ORR__COMM_ONE_SIDED
} orr__comm_by;

orr__comm_by orr__comm_kernel(orr_str name);

/* 1 + the collective of a one-sided kernel; 0: not known from its name. */
uint8_t orr__comm_one_sided_kind(orr_str name);

/* The letters and digits of a name in lower case, NUL-terminated, as much as fits: then
 * "_reduce_scatter_base" and "ReduceScatter" have a word in common.  Returns the length. */
size_t orr__plain_letters(orr_str name, char *out, size_t room);
/* 1 + the collective of which such a text contains the name; 0: none. */
uint8_t orr__collective_in(const char *plain);

/* Communication of a back end without a device, on its own thread: "gloo:all_reduce". */
bool orr__comm_on_host(orr_str name);

/* A host node that is not an operator: user annotations (record_function, ProfilerStep), the
 * threads and the process of an execution trace. */
bool orr__is_annotation(const orr_trace *t, uint32_t node);

#endif
