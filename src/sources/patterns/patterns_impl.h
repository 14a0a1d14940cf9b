/* SPDX-License-Identifier: Apache-2.0 */
/* patterns_impl.h - how patterns are written down: nodes added one after the other, each after others.
 *
 *     const uint64_t fwd = pat_comp(g, "FWD", 5, NOTHING);
 *     const uint64_t bwd = pat_comp(g, "BWD", 5, AFTER(fwd));
 *     pat_collective(g, "GRAD", ORR_COLL_ALL_REDUCE, 65536, AFTER(fwd, bwd));
 *
 * Ids count up from 0.  The first failure sticks and turns all later calls into nothing, so a pattern reads
 * as a list of nodes; orr_pattern_trace asks once at the end. */
#ifndef ORR_PATTERNS_IMPL_H
#define ORR_PATTERNS_IMPL_H

#include <orrery/lab/gen.h>

#include "trace/builder.h"

struct orr_gen {
    const orr_gen_options *opt;
    uint32_t rank;
    orr__builder b;
};

typedef struct pat_after {
    const uint64_t *ids;
    size_t count;
} pat_after;

#define NOTHING ((pat_after){NULL, 0})
#define AFTER(...)                                \
    ((pat_after){(const uint64_t[]){__VA_ARGS__}, \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)})

enum { PAT_NAME_MAX = 64, PAT_DIMS_MAX = 64 };

#endif
