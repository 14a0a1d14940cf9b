/* SPDX-License-Identifier: Apache-2.0 */
/* coll_relay.c - broadcast, reduce, scatter and gather: data travels along the edges of a tree,
 * away from its root or towards it (docs/design/collectives.md).
 *
 * Three trees (coll.h): a chain ("ring"), a star ("direct") and a binomial tree
 * ("tree").  A member waits for an endpoint delay per received message, and one for its own data,
 * and then forwards what it has: all at once, or, if a chain carries one piece per member, piece by
 * piece. */
#include "coll.h"

typedef struct relay {
    uint64_t size;   /* of a member's data, or of a piece */
    uint64_t pieces; /* to forward */
    uint32_t root, seat;
    uint32_t delays; /* pending endpoint delays */
    bool is_added_up;
} relay;

static coll_relay_tree tree_of(const orr_coll *c)
{
    return (coll_relay_tree){c->ops, c->count, (orr_collective)c->kind};
}

/* ---- messages ---- */

static uint32_t member_at(orr_coll *c, uint32_t seat)
{
    const relay *r = orr_coll_state(c);
    return (uint32_t)(((uint64_t)seat + r->root) % c->count);
}

static void post_receives(orr_coll *c, uint32_t peer, uint32_t child)
{
    relay *r = orr_coll_state(c);
    const coll_relay_tree t = tree_of(c);
    const uint64_t size = coll_relay_edge_size(&t, r->size, child);
    /* The delay is counted when the receive is posted, so that `delays` reaches 0 only after
     * everything that is expected has come. */
    for (uint32_t i = coll_relay_edge_messages(&t, child); i-- > 0;) {
        r->delays++;
        orr_coll_receive(c, member_at(c, peer), size);
    }
}

static void send_one(orr_coll *c, uint32_t peer, uint32_t child)
{
    const relay *r = orr_coll_state(c);
    const coll_relay_tree t = tree_of(c);
    orr_coll_send(c, member_at(c, peer), coll_relay_edge_size(&t, r->size, child));
}

/* ---- state machine ---- */

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    relay *r = orr_coll_state(c);
    const coll_relay_tree t = tree_of(c);
    r->size = coll_relay_size(&t, p->data);
    r->root = p->root;
    r->seat = c->index >= p->root ? c->index - p->root : c->index + c->count - p->root;
    r->is_added_up = p->kind == ORR_COLL_REDUCE && !p->is_barrier;
    return true;
}

static void start(orr_coll *c)
{
    relay *r = orr_coll_state(c);
    const coll_relay_tree t = tree_of(c);
    const uint32_t me = r->seat, first = coll_relay_child(&t, me, 0);
    /* How many delays begin now, and for what: towards the root, a leaf has its own data, and
     * every member of a chain but the root its own piece; away from it, only the root has data,
     * for a chain one piece per member further on. */
    uint32_t own = 1; /* endpoint delays for data that is local from the start */
    if (coll_relay_is_inward(&t)) {
        for (uint32_t child = first; child; child = coll_relay_child(&t, me, child))
            post_receives(c, child, child);
        if (coll_relay_is_piecewise(&t) && me)
            r->pieces = coll_relay_below(&t, me);
        own = coll_relay_is_piecewise(&t) ? me != 0 : r->delays == 0;
    } else if (me) {
        post_receives(c, coll_relay_parent(&t, me), me);
        own = 0;
    }
    /* The pieces of all members behind this one come through it; its own piece is the last to
     * come, and pass_on_piece keeps it. */
    if (!coll_relay_is_inward(&t) && coll_relay_is_piecewise(&t) && first) {
        r->pieces = coll_relay_below(&t, first);
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
        return; /* the last piece is its own, or it is the gathering root */
    r->pieces--;
    const coll_relay_tree t = tree_of(c);
    const uint32_t child = coll_relay_child(&t, r->seat, 0);
    if (coll_relay_is_inward(&t))
        send_one(c, coll_relay_parent(&t, r->seat), r->seat);
    else
        send_one(c, child, child);
}

/* A message on an edge carries the data of the whole subtree below it (coll_relay_edge_size), so
 * it leaves only when all of it is there. */
static void pass_on_all(orr_coll *c, const relay *r)
{
    const coll_relay_tree t = tree_of(c);
    const uint32_t me = r->seat;
    if (coll_relay_is_inward(&t)) {
        if (me)
            send_one(c, coll_relay_parent(&t, me), me);
        return;
    }
    for (uint32_t child = coll_relay_child(&t, me, 0); child;
         child = coll_relay_child(&t, me, child))
        send_one(c, child, child);
}

static void timer(orr_coll *c)
{
    relay *r = orr_coll_state(c);
    const coll_relay_tree t = tree_of(c);
    r->delays--;
    if (coll_relay_is_piecewise(&t))
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
