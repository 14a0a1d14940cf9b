/* SPDX-License-Identifier: Apache-2.0 */
/* torch_trace.h - PyTorch host and device traces of data-parallel training, made up from a seed.
 *
 *     const torch_job job = {.prefix = "train", .ranks = 2, .steps = 3, .layers = 4};
 *     torch_totals all = torch_make(&job);          // train.0.host.json, train.0.device.json, ...
 *
 * What they have in them is what real ones have (PyTorch 2.11, schema 1.1.1): a main thread with
 * forward pass and optimizer and a second one with the backward pass; kernels, copies and fills on
 * a compute stream, NCCL kernels on another, with events between the two; annotations, process
 * groups, messages between neighbours, a synchronisation at the end of each step.  Time is one
 * schedule for all ranks, on clocks that differ by 1.234567 ms from rank to rank, as if they had
 * been started apart.  A real one differs in three more things, which is_real adds: about 1,000
 * bytes and six lines for each host node, no annotation of steps, and gaps - launches that the
 * profiler missed, host nodes that were never measured. The totals are what was written, so that a
 * test can hold a result against them. */
#ifndef ORR_BENCH_TORCH_TRACE_H
#define ORR_BENCH_TORCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum { TORCH_CLOCK_STEP_NS = 1234567 };

typedef struct torch_job {
    const char *prefix;
    uint32_t ranks, steps, layers; /* ranks: even, or 1: then nothing is sent or reduced */
    uint64_t seed;
    bool is_real;
} torch_job;

/* Of one rank: all are alike. */
typedef struct torch_totals {
    uint64_t host_nodes, device_events;
    uint64_t kernels, copies, fills;
    uint64_t collectives, messages;
    int64_t busy_ns; /* kernels, copies and fills, added up */
} torch_totals;

/* What cannot be written ends the program. */
torch_totals torch_make(const torch_job *job);

#endif
