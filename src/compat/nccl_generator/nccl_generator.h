/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_generator.h - nccl_generator_v2 (goal.md 5). */
#ifndef ORR_COMPAT_NCCL_GENERATOR_H
#define ORR_COMPAT_NCCL_GENERATOR_H

#include <orrery/lab/nccl.h>

extern const orr_rules_nccl ncg_rules, ncg_parallel_rules; /* the latter: with -p */

/* CPython's hash of a tuple of integers. */
uint64_t ncg_tuple_hash(const uint64_t *numbers, size_t count);
/* 2: data parallel, 1: pipeline parallel, 0: neither. */
uint32_t ncg_parallelism(const char *letters, size_t count);

#endif
