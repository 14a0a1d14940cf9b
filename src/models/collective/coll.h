/* SPDX-License-Identifier: Apache-2.0 */
/* coll.h - the collective algorithms of this library.  One file per algorithm; coll_table.c lists
 * them. */
#ifndef ORR_MODELS_COLL_H
#define ORR_MODELS_COLL_H

#include <orrery/collective.h>

#include "base/memory/buffer.h"

#include <stdbool.h>
#include <stdint.h>

extern const orr_coll_ops coll_ring, coll_direct, coll_halving_doubling, coll_tree;
extern const orr_coll_ops coll_chain, coll_star, coll_binomial; /* rooted */

/* Rooted collectives, and the others. */
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

/* Adjusts a phase of ring, direct or halving-doubling that was copied from a member `by` positions
 * before this one. */
void coll_turn(orr_coll *c, uint32_t by);
void coll_ring_turn(orr_coll *c, uint32_t by);
void coll_direct_turn(orr_coll *c, uint32_t by);

/* ---- the table (coll_table.c) ---- */

/* The i-th algorithm of ours and `more`, which is NULL-terminated or NULL; NULL past the last. */
const orr_coll_ops *coll_get(const orr_coll_ops *const *more, size_t i);
/* Its number in that list. */
uint8_t coll_number(const orr_coll_ops *const *more, const orr_coll_ops *ops);
/* Used if the system file has no list, and for groups. */
const orr_coll_ops *coll_default(orr_collective kind);
size_t coll_largest_state(const orr_coll_ops *const *more);
const char *coll_kind_name(orr_collective kind); /* "all-reduce" */

/* One entry of a list in the system file. */
typedef struct coll_choice {
    const orr_coll_ops *ops;
    bool is_one;     /* one phase over all ranks */
    uint32_t number; /* 0: none */
} coll_choice;

/* False: no algorithm of that name for this collective. */
bool coll_parse(const orr_coll_ops *const *more,
                orr_collective kind,
                orr_str word,
                coll_choice *out);
/* "ring, direct[N], ...": all names known to coll_parse. */
void coll_put_words(const orr_coll_ops *const *more, orr_collective kind, orr_buf *out);

/* ---- double binary trees ----
 *
 * Parents and children in a double binary tree (astra-sim.md 5.8).
 *
 * The root has one child, the top of a perfect binary tree numbered in order; the root is the last
 * index (MAX) or the first (MIN), alternating from chunk to chunk.  Parents and children are
 * computed from the index, no tree is built. */

enum { COLL_TREE_NOBODY = UINT32_MAX };

typedef struct coll_tree_place {
    uint32_t parent, child[2], child_count; /* members */
} coll_tree_place;

/* Index i (from 0) of a perfect tree of 2^k - 1 nodes in order: the height is the number of
 * trailing ones in i. */
static inline uint32_t coll_tree_height(uint32_t i)
{
    return (uint32_t)__builtin_ctz(~i);
}

/* count: a power of two, at least 2. */
static inline coll_tree_place coll_tree_at(uint32_t count, uint32_t variant, uint32_t index)
{
    coll_tree_place p = {.parent = COLL_TREE_NOBODY};
    const bool is_max = variant == 0;
    const uint32_t root = is_max ? count - 1 : 0, shift = is_max ? 0 : 1;
    const uint32_t top = count / 2 - 1; /* of the perfect subtree of count - 1 nodes */
    if (index == root) {
        p.child[p.child_count++] = top + shift;
        return p;
    }
    const uint32_t i = index - shift, bit = 1u << coll_tree_height(i);
    p.parent = i == top ? root : ((i & (bit << 1)) ? i - bit : i + bit) + shift;
    if (coll_tree_height(i)) {
        p.child[p.child_count++] = i - bit / 2 + shift;
        p.child[p.child_count++] = i + bit / 2 + shift;
    }
    return p;
}

/* ---- trees of rooted collectives ----
 *
 * A chain ("ring"), a star ("direct") and a binomial tree ("tree").  Members are numbered from the
 * root: the *seat* of a member is its distance, modulo count, and the root has seat 0.  A parent
 * has a smaller seat than its children. */

typedef struct coll_relay_tree {
    const orr_coll_ops *ops;
    uint32_t count; /* members */
    orr_collective kind;
} coll_relay_tree;

static inline bool coll_relay_is_chain(const coll_relay_tree *t)
{
    return t->ops == &coll_chain;
}

static inline bool coll_relay_is_star(const coll_relay_tree *t)
{
    return t->ops == &coll_star;
}

static inline uint32_t coll_relay_parent(const coll_relay_tree *t, uint32_t seat)
{
    if (coll_relay_is_chain(t))
        return seat - 1;
    return coll_relay_is_star(t) ? 0 : seat & (seat - 1);
}

/* The children of a member, largest subtree first; 0 after the last. */
static inline uint32_t coll_relay_child(const coll_relay_tree *t, uint32_t seat, uint32_t before)
{
    if (coll_relay_is_chain(t))
        return before == 0 && seat + 1 < t->count ? seat + 1 : 0;
    if (coll_relay_is_star(t))
        return seat == 0 && before + 1 < t->count ? before + 1 : 0;
    /* At its seat plus each power of two below its lowest set bit; of the root, below anything. */
    uint32_t step = before ? (before - seat) / 2 : seat ? (seat & -seat) / 2 : 1u << 31;
    while (step && (uint64_t)seat + step >= t->count)
        step /= 2;
    return step ? seat + step : 0;
}

/* Size of the subtree of this member, itself included. */
static inline uint32_t coll_relay_below(const coll_relay_tree *t, uint32_t seat)
{
    const uint32_t rest = t->count - seat;
    if (coll_relay_is_chain(t))
        return rest;
    /* Not for the root, whose subtree is everything. */
    const uint32_t most = coll_relay_is_star(t) ? 1 : seat & -seat;
    return most < rest ? most : rest;
}

static inline bool coll_relay_is_inward(const coll_relay_tree *t) /* towards the root */
{
    return t->kind == ORR_COLL_REDUCE || t->kind == ORR_COLL_GATHER;
}

static inline bool coll_relay_has_pieces(const coll_relay_tree *t)
{
    return t->kind == ORR_COLL_SCATTER || t->kind == ORR_COLL_GATHER;
}

/* Are pieces sent one by one? */
static inline bool coll_relay_is_piecewise(const coll_relay_tree *t)
{
    return coll_relay_has_pieces(t) && coll_relay_is_chain(t);
}

/* Size of a piece, or of the data of a member. */
static inline uint64_t coll_relay_size(const coll_relay_tree *t, uint64_t data)
{
    return t->kind == ORR_COLL_SCATTER ? data / t->count : data;
}

/* Size of a message along the edge above this seat, and how many there are. */
static inline uint64_t coll_relay_edge_size(const coll_relay_tree *t, uint64_t size, uint32_t seat)
{
    return coll_relay_has_pieces(t) && !coll_relay_is_piecewise(t)
               ? size * coll_relay_below(t, seat)
               : size;
}

static inline uint32_t coll_relay_edge_messages(const coll_relay_tree *t, uint32_t seat)
{
    return coll_relay_is_piecewise(t) ? coll_relay_below(t, seat) : 1;
}

#endif
