/* SPDX-License-Identifier: Apache-2.0 */
/* torch_trace.h - synthetic PyTorch host and device traces of data-parallel training, from a seed.
 *
 *     const torch_job job = {.prefix = "train", .ranks = 2, .steps = 3, .layers = 4};
 *     torch_totals all = torch_make(&job);          // train.0.host.json, train.0.device.json, ...
 *
 * They contain what real traces contain (PyTorch 2.11, schema 1.1.1): a main thread with forward
 * pass and optimizer and a second one with the backward pass; kernels, copies and fills on a
 * compute stream, NCCL kernels on another, with events between the two; annotations, process
 * groups, messages between neighbours, a synchronisation at the end of each step.  All ranks share
 * one schedule, on clocks that differ by 1.234567 ms from rank to rank.  Real traces differ in
 * three more ways, which is_real adds: about 1,000 bytes and six lines for each host node, no
 * annotation of steps, and gaps - launches that the profiler missed, host nodes that were never
 * measured.  The totals describe the output, so that a test can compare results with them. */
#ifndef ORR_BENCH_TORCH_TRACE_H
#define ORR_BENCH_TORCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum { TORCH_CLOCK_STEP_NS = 1234567 };

typedef struct torch_job {
    const char *prefix;
    uint32_t ranks, steps, layers; /* ranks: even, or 1: no communication */
    uint64_t seed;
    bool is_real;
} torch_job;

/* Of one rank: all are equal. */
typedef struct torch_totals {
    uint64_t host_nodes, device_events;
    uint64_t kernels, copies, fills;
    uint64_t collectives, messages;
    int64_t busy_ns; /* total of kernels, copies and fills */
} torch_totals;

/* A write error ends the program. */
torch_totals torch_make(const torch_job *job);

#endif
