/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_impl.h - what the patterns are written in, and those that traces of MPI are expanded
 * with. */
#ifndef ORR_SOURCES_SCHEDGEN_SCHEDGEN_IMPL_H
#define ORR_SOURCES_SCHEDGEN_SCHEDGEN_IMPL_H

#include "goal_pen.h"

#include "base/short_forms.h"

/* A pattern at work: the options, and what is drawn once for all ranks. */
typedef struct schedgen {
    const orr_schedgen_options *opt;
    const orr_rules_schedgen *rules;
    uint32_t ranks;  /* of the schedule */
    uint32_t *table; /* sizes[from * ranks + to], or the partner of each rank; NULL */
    goal_pen *pen;
} schedgen;

/* One rank's part of a collective, n ranks (schedgen.c). */
void sgen_binomial_bcast(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_binomial_reduce(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_dissemination(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_linear_alltoall(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_recursive_doubling(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);

/* Ranks 0 and root change places; the same function goes there and back. */
static inline uint32_t sgen_swap_root(uint32_t rank, uint32_t root)
{
    if (rank == root)
        return 0;
    return rank == 0 ? root : rank;
}

static inline bool sgen_is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

/* The largest power of two that is not above n > 0. */
static inline uint32_t sgen_power_below(uint32_t n)
{
    return UINT32_C(1) << (31 - __builtin_clz(n));
}

#endif
