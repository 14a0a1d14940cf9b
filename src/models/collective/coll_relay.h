/* SPDX-License-Identifier: Apache-2.0 */
/* coll_relay.h - the trees of collectives with a root: a chain ("ring"), a star ("direct") and a
 * binomial tree ("tree"). Members count from the root: a *seat* is how far a member is from it,
 * the root has seat 0.  A parent has a smaller seat than its children. */
#ifndef ORR_COLL_RELAY_H
#define ORR_COLL_RELAY_H

#include "coll.h"

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

/* The children of a member, the one with most below it first; 0 after the last. */
static inline uint32_t coll_relay_child(const coll_relay_tree *t, uint32_t seat, uint32_t before)
{
    if (coll_relay_is_chain(t))
        return before == 0 && seat + 1 < t->count ? seat + 1 : 0;
    if (coll_relay_is_star(t))
        return seat == 0 && before + 1 < t->count ? before + 1 : 0;
    uint32_t step = before ? (before - seat) / 2 : seat ? (seat & -seat) / 2 : 1u << 31;
    while (step && (uint64_t)seat + step >= t->count)
        step /= 2;
    return step ? seat + step : 0;
}

/* How many members hang on the edge above this one, itself included. */
static inline uint32_t coll_relay_below(const coll_relay_tree *t, uint32_t seat)
{
    const uint32_t rest = t->count - seat;
    if (coll_relay_is_chain(t))
        return rest;
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

/* Pieces travel one by one. */
static inline bool coll_relay_is_piecewise(const coll_relay_tree *t)
{
    return coll_relay_has_pieces(t) && coll_relay_is_chain(t);
}

/* Of a piece, or of what a member has. */
static inline uint64_t coll_relay_size(const coll_relay_tree *t, uint64_t data)
{
    return t->kind == ORR_COLL_SCATTER ? data / t->count : data;
}

/* A message along the edge above this seat, and how many there are. */
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
