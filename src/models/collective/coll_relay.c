/* SPDX-License-Identifier: Apache-2.0 */
/* coll_relay.c - broadcast, reduce, scatter and gather: data goes along the edges of a tree, away
 * from its root or towards it (docs/design/collectives.md).
 *
 * Three trees: a chain ("ring"), a star ("direct") and a binomial tree ("tree").  Members count
 * from the root: a *seat* is how far a member is from it, the root has seat 0.  A member waits out
 * an endpoint delay for each message it gets, and one for data of its own, and then passes on what
 * it has: all at once, or, where a chain carries a piece for each member, piece by piece. */
#include "coll.h"

typedef struct relay {
    uint64_t size;   /* of what a member has, or of a piece */
    uint64_t pieces; /* to pass on */
    uint32_t root, seat;
    uint32_t delays; /* endpoint delays to come */
    bool is_added_up;
} relay;

/* ---- trees ---- */

static bool is_chain(const orr_coll *c)
{
    return c->ops == &coll_chain;
}

static bool is_star(const orr_coll *c)
{
    return c->ops == &coll_star;
}

static uint32_t parent_of(const orr_coll *c, uint32_t seat)
{
    if (is_chain(c))
        return seat - 1;
    return is_star(c) ? 0 : seat & (seat - 1);
}

/* The children of a member, the one with most below it first; 0 after the last. */
static uint32_t next_child(const orr_coll *c, uint32_t seat, uint32_t before)
{
    if (is_chain(c))
        return before == 0 && seat + 1 < c->count ? seat + 1 : 0;
    if (is_star(c))
        return seat == 0 && before + 1 < c->count ? before + 1 : 0;
    uint32_t step = before ? (before - seat) / 2 : seat ? (seat & -seat) / 2 : 1u << 31;
    while (step && (uint64_t)seat + step >= c->count)
        step /= 2;
    return step ? seat + step : 0;
}

/* How many members hang on the edge above this one, itself included. */
static uint32_t size_below(const orr_coll *c, uint32_t seat)
{
    const uint32_t rest = c->count - seat;
    if (is_chain(c))
        return rest;
    const uint32_t most = is_star(c) ? 1 : seat & -seat;
    return most < rest ? most : rest;
}

/* ---- messages ---- */

static bool is_inward(const orr_coll *c) /* towards the root */
{
    return c->kind == ORR_COLL_REDUCE || c->kind == ORR_COLL_GATHER;
}

static bool has_pieces(const orr_coll *c)
{
    return c->kind == ORR_COLL_SCATTER || c->kind == ORR_COLL_GATHER;
}

/* Pieces travel one by one. */
static bool is_piecewise(const orr_coll *c)
{
    return has_pieces(c) && is_chain(c);
}

static uint64_t edge_size(orr_coll *c, uint32_t child)
{
    const relay *r = orr_coll_state(c);
    return has_pieces(c) && !is_piecewise(c) ? r->size * size_below(c, child) : r->size;
}

static uint32_t member_at(orr_coll *c, uint32_t seat)
{
    const relay *r = orr_coll_state(c);
    return (uint32_t)(((uint64_t)seat + r->root) % c->count);
}

static void post_receives(orr_coll *c, uint32_t peer, uint32_t child)
{
    relay *r = orr_coll_state(c);
    const uint64_t size = edge_size(c, child);
    for (uint32_t i = is_piecewise(c) ? size_below(c, child) : 1; i-- > 0;) {
        r->delays++;
        orr_coll_receive(c, member_at(c, peer), size);
    }
}

static void send_one(orr_coll *c, uint32_t peer, uint32_t child)
{
    orr_coll_send(c, member_at(c, peer), edge_size(c, child));
}

/* ---- the machine ---- */

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    relay *r = orr_coll_state(c);
    r->size = p->kind == ORR_COLL_SCATTER ? p->data / c->count : p->data;
    r->root = p->root;
    r->seat = c->index >= p->root ? c->index - p->root : c->index + c->count - p->root;
    r->is_added_up = p->kind == ORR_COLL_REDUCE && !p->is_barrier;
    return true;
}

static void start(orr_coll *c)
{
    relay *r = orr_coll_state(c);
    const uint32_t me = r->seat, first = next_child(c, me, 0);
    uint32_t own = 1; /* endpoint delays for data that is there from the start */
    if (is_inward(c)) {
        for (uint32_t child = first; child; child = next_child(c, me, child))
            post_receives(c, child, child);
        if (is_piecewise(c) && me)
            r->pieces = size_below(c, me);
        own = is_piecewise(c) ? me != 0 : r->delays == 0;
    } else if (me) {
        post_receives(c, parent_of(c, me), me);
        own = 0;
    }
    if (!is_inward(c) && is_piecewise(c) && first) {
        r->pieces = size_below(c, first);
        own = me ? 0 : (uint32_t)r->pieces;
    }
    r->delays += own;
    for (uint32_t i = 0; i < own; i++)
        orr_coll_charge(c, r->size, ORR_COLL_FROM_NPU);
}

static void received(orr_coll *c, orr_bytes size)
{
    const relay *r = orr_coll_state(c);
    orr_coll_charge(c, size, r->is_added_up ? ORR_COLL_REDUCED : 0u);
}

static void pass_on_piece(orr_coll *c, relay *r)
{
    if (r->pieces == 0)
        return; /* the last piece is its own, or it is the root that gathers */
    r->pieces--;
    if (is_inward(c))
        send_one(c, parent_of(c, r->seat), r->seat);
    else
        send_one(c, next_child(c, r->seat, 0), next_child(c, r->seat, 0));
}

static void pass_on_all(orr_coll *c, const relay *r)
{
    const uint32_t me = r->seat;
    if (is_inward(c)) {
        if (me)
            send_one(c, parent_of(c, me), me);
        return;
    }
    for (uint32_t child = next_child(c, me, 0); child; child = next_child(c, me, child))
        send_one(c, child, child);
}

static void timer(orr_coll *c)
{
    relay *r = orr_coll_state(c);
    r->delays--;
    if (is_piecewise(c))
        pass_on_piece(c, r);
    else if (r->delays == 0)
        pass_on_all(c, r);
    if (r->delays == 0)
        orr_coll_done(c);
}

static double messages(orr_collective kind, uint32_t count)
{
    return (kind == ORR_COLL_BARRIER ? 2 : 1) * ((double)count - 1) / count;
}

#define RELAY(NAME, LABEL, HELP)                                                           \
    {                                                                                      \
        .name = (NAME), .label = (LABEL), .help = (HELP), .kinds = COLL_ROOTED,            \
        .state_size = sizeof(relay), .setup = setup, .start = start, .received = received, \
        .timer = timer, .messages = messages                                               \
    }

const orr_coll_ops coll_chain =
    RELAY("ring", "chain", "from member to member, away from the root or towards it");
const orr_coll_ops coll_star = RELAY("direct", "star", "between the root and each member");
const orr_coll_ops coll_binomial =
    RELAY("tree", "binomial tree", "along a binomial tree; the default");
