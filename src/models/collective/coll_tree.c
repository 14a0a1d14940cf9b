/* SPDX-License-Identifier: Apache-2.0 */
/* coll_tree.c - the double binary tree: an all-reduce of the whole chunk up and down one of two
 * trees (astra-sim.md 5.8).
 *
 * Under a root with one child hangs a perfect binary tree, numbered in order: the root is the last
 * index (MAX) or the first (MIN), from chunk to chunk in turn.  Parents and children follow from
 * the index, no tree is built. */
#include "coll.h"

enum { NOBODY = UINT32_MAX };

typedef struct tree {
    uint64_t size;
    uint32_t parent, child[2], child_count; /* members */
    uint32_t timers, receives;
} tree;

/* Index i (from 0) of a perfect tree of 2^k - 1 nodes in order: the height is the number of low
 * ones in i. */
static uint32_t height_of(uint32_t i)
{
    return (uint32_t)__builtin_ctz(~i);
}

static uint32_t subtree_parent(uint32_t i)
{
    const uint32_t bit = 1u << height_of(i);
    return (i & (bit << 1)) ? i - bit : i + bit;
}

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    tree *t = orr_coll_state(c);
    if (p->is_group || (c->count & (c->count - 1)) || p->has_outsider) {
        orr_coll_fail(c, "a double binary tree needs a power of two of ranks, all of one outermost "
                         "dimension, and no group");
        return false;
    }
    t->size = p->data;
    const bool is_max = p->variant == 0;
    const uint32_t n = c->count, root = is_max ? n - 1 : 0, shift = is_max ? 0 : 1;
    const uint32_t top = n / 2 - 1; /* of the perfect subtree of n - 1 nodes */
    if (c->index == root) {
        t->parent = NOBODY;
        t->child[t->child_count++] = top + shift;
        return true;
    }
    const uint32_t i = c->index - shift;
    t->parent = i == top ? root : subtree_parent(i) + shift;
    if (height_of(i)) {
        const uint32_t half = 1u << (height_of(i) - 1);
        t->child[t->child_count++] = i - half + shift;
        t->child[t->child_count++] = i + half + shift;
    }
    return true;
}

static void start(orr_coll *c)
{
    const tree *t = orr_coll_state(c);
    if (t->child_count == 0)
        orr_coll_charge(c, t->size, ORR_COLL_FROM_NPU);
    for (uint32_t i = 0; i < t->child_count; i++)
        orr_coll_receive(c, t->child[i], t->size);
}

static void received(orr_coll *c, orr_bytes size)
{
    tree *t = orr_coll_state(c);
    const bool is_leaf = t->child_count == 0;
    const bool is_first_of_two = t->child_count == 2 && t->receives == 0;
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
    const uint32_t children_in = t->child_count ? t->child_count : 1;
    t->timers++;
    if (t->parent != NOBODY && t->timers == children_in) {
        orr_coll_send(c, t->parent, t->size);
        orr_coll_receive(c, t->parent, t->size);
    } else if (t->parent == NOBODY || t->timers > children_in) {
        for (uint32_t i = 0; i < t->child_count; i++)
            orr_coll_send(c, t->child[i], t->size);
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
    .help = "the whole chunk up and down one of two binary trees; members: a power of two",
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
