/* SPDX-License-Identifier: Apache-2.0 */
/* coll.h - the collective algorithms of this library.  One file per algorithm; coll_table.c lists
 * them. */
#ifndef ORR_MODELS_COLL_H
#define ORR_MODELS_COLL_H

#include <orrery/collective.h>

#include "base/memory/buffer.h"

extern const orr_coll_ops coll_ring, coll_direct, coll_halving_doubling, coll_tree;
extern const orr_coll_ops coll_chain, coll_star, coll_binomial; /* with a root */

/* The collectives with a root, and the others. */
enum {
    COLL_ROOTED = ORR_COLL_BIT(ORR_COLL_BROADCAST) | ORR_COLL_BIT(ORR_COLL_REDUCE) |
                  ORR_COLL_BIT(ORR_COLL_GATHER) | ORR_COLL_BIT(ORR_COLL_SCATTER) |
                  ORR_COLL_BIT(ORR_COLL_BARRIER),
    COLL_ROOTLESS = ORR_COLL_BIT(ORR_COLL_ALL_REDUCE) | ORR_COLL_BIT(ORR_COLL_REDUCE_SCATTER) |
                    ORR_COLL_BIT(ORR_COLL_ALL_GATHER) | ORR_COLL_BIT(ORR_COLL_ALL_TO_ALL)
};

static inline bool coll_has_root(orr_collective kind)
{
    return ORR_COLL_BIT(kind) & COLL_ROOTED;
}

/* A phase of ring, direct or halving-doubling that was copied from a member `by` places before this
 * one. */
void coll_turn(orr_coll *c, uint32_t by);
void coll_ring_turn(orr_coll *c, uint32_t by);
void coll_direct_turn(orr_coll *c, uint32_t by);

/* ---- the table (coll_table.c) ---- */

/* The i-th algorithm of ours and `more`, which ends in NULL or is NULL; NULL past the last. */
const orr_coll_ops *coll_get(const orr_coll_ops *const *more, size_t i);
/* Its number in that list. */
uint8_t coll_number(const orr_coll_ops *const *more, const orr_coll_ops *ops);
/* Where the system file has no list, and for groups. */
const orr_coll_ops *coll_default(orr_collective kind);
size_t coll_largest_state(const orr_coll_ops *const *more);
const char *coll_kind_name(orr_collective kind); /* "all-reduce" */

/* One entry of a list of the system file. */
typedef struct coll_choice {
    const orr_coll_ops *ops;
    bool is_one;     /* one phase over all ranks */
    uint32_t number; /* 0: none */
} coll_choice;

/* False: no algorithm for this collective is called so. */
bool coll_parse(const orr_coll_ops *const *more,
                orr_collective kind,
                orr_str word,
                coll_choice *out);
/* "ring, direct[N], ...": all that coll_parse knows. */
void coll_put_words(const orr_coll_ops *const *more, orr_collective kind, orr_buf *out);

#endif
