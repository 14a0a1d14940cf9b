/* SPDX-License-Identifier: Apache-2.0 */
/* coll_times_impl.h - what coll_times.c and coll_times_tree.c share. */
#ifndef ORR_COLL_TIMES_IMPL_H
#define ORR_COLL_TIMES_IMPL_H

#include "coll_times.h"

#include "base/ticks.h"

/* Who wants to know of each message; NULL: nobody. */
typedef struct coll_times_listener {
    coll_times_sent visit;
    void *context;
} coll_times_listener;

static inline uint64_t coll_times_reduction(const coll_times_phase *p, uint64_t size)
{
    return 3 * orr_ticks((double)size / p->memory_speed * 1e9);
}

static inline uint64_t coll_times_on_the_wire(uint64_t size)
{
    return size ? size : 1; /* as match.c has it */
}

static inline bool coll_times_no_memory(coll_times_net *net)
{
    net->is_out_of_memory = true;
    return false;
}

/* Of trees. */
bool coll_times_knows_tree(const coll_times_phase *p);
bool coll_times_tree_ends(const coll_times_phase *p,
                          coll_times_net *net,
                          const int64_t *start,
                          int64_t *end,
                          const coll_times_listener *l);
coll_times_lag coll_times_tree_lag(const coll_times_phase *p);

#endif
