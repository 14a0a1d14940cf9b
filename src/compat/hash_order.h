/* SPDX-License-Identifier: Apache-2.0 */
/* hash_order.h - a set of ids in the iteration order of GNU's std::unordered_set<uint64_t>.
 *
 * The reference issues the free nodes of a custom collective in that order, so exact cycles need it
 * (astra-sim.md 12).  Members are small numbers (indices); their ids decide the order.  Its tables
 * of tensors and of a rank's starts have the same order. */
#ifndef ORR_COMPAT_HASH_ORDER_H
#define ORR_COMPAT_HASH_ORDER_H

#include "base/memory/memory.h"
#include "run/run_rules.h"

typedef struct hash_order {
    const uint64_t *ids; /* of all possible members */
    uint32_t possible;
    uint32_t *next, *previous; /* by member; members not in the set: see is_in */
    bool *is_in;
    uint32_t *bucket_first; /* by bucket: its first member, or UINT32_MAX */
    size_t bucket_room;
    uint64_t buckets, limit, count;
    uint32_t first;
} hash_order;

bool hash_order_init(hash_order *s,
                     const uint64_t *ids,
                     uint32_t possible); /* false: out of memory */
void hash_order_fini(hash_order *s);
bool hash_order_add(hash_order *s, uint32_t member); /* false: out of memory */
/* Iterate from s->first along s->next to UINT32_MAX. */

extern const run_node_order orr__hash_order;

#endif
