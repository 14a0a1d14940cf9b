/* SPDX-License-Identifier: Apache-2.0 */
/* coll_tree.c - the double binary tree: an all-reduce of the whole chunk up and down one of two
 * trees (astra-sim.md 5.8).
 *
 * Chunks alternate between the two trees (variants).  A member counts timers: after those of its
 * children, or its own if it is a leaf, it sends up and posts the receive from its parent; the next
 * timer, or at the root this one, sends down and ends the phase. */

#include "coll.h"

typedef struct tree {
    uint64_t size;
    coll_tree_place at;
    uint32_t timers, receives;
} tree;

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    tree *t = orr_coll_state(c);
    /* Refused, since other counts leave members without a place in the perfect tree: no parent
     * would ever wait for them. */
    if (p->is_group || (c->count & (c->count - 1)) || p->has_outsider) {
        orr_coll_fail(c, "a double binary tree needs a power of two of ranks, all of one outermost "
                         "dimension, and no group");
        return false;
    }
    t->size = p->data;
    t->at = coll_tree_at(c->count, p->variant, c->index);
    return true;
}

static void start(orr_coll *c)
{
    const tree *t = orr_coll_state(c);
    if (t->at.child_count == 0)
        orr_coll_charge(c, t->size, ORR_COLL_FROM_NPU);
    for (uint32_t i = 0; i < t->at.child_count; i++)
        orr_coll_receive(c, t->at.child[i], t->size);
}

static void received(orr_coll *c, orr_bytes size)
{
    tree *t = orr_coll_state(c);
    const bool is_leaf = t->at.child_count == 0;
    /* Only the sum of both children goes on, so on a shared bus the first to arrive stays in
     * memory and is not charged for the way back to the network. */
    const bool is_first_of_two = t->at.child_count == 2 && t->receives == 0;
    (void)size;
    t->receives++;
    orr_coll_charge(c, t->size,
                    is_leaf           ? 0u
                    : is_first_of_two ? ORR_COLL_REDUCED
                                      : ORR_COLL_REDUCED | ORR_COLL_SENT_BACK);
}

static void timer(orr_coll *c)
{
    tree *t = orr_coll_state(c);
    const uint32_t children_in = t->at.child_count ? t->at.child_count : 1;
    t->timers++;
    if (t->at.parent != COLL_TREE_NOBODY && t->timers == children_in) {
        orr_coll_send(c, t->at.parent, t->size);
        orr_coll_receive(c, t->at.parent, t->size);
        /* A leaf passes here with no child to send to. The others end when they have sent, not
         * when it has arrived: what their children do is the children's time. */
    } else if (t->at.parent == COLL_TREE_NOBODY || t->timers > children_in) {
        for (uint32_t i = 0; i < t->at.child_count; i++)
            orr_coll_send(c, t->at.child[i], t->size);
        orr_coll_done(c);
    }
}

static double messages(orr_collective kind, uint32_t count)
{
    (void)kind;
    return 2 * ((double)count - 1) / count;
}

const orr_coll_ops coll_tree = {
    .name = "doubleBinaryTree",
    .label = "tree",
    .help = "up and down one of two binary trees; a power of two members",
    .kinds = COLL_ROOTLESS,
    .keeps_data = true,
    .variants = 2,
    .state_size = sizeof(tree),
    .setup = setup,
    .start = start,
    .received = received,
    .timer = timer,
    .messages = messages,
};
