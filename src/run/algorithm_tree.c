/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_tree.c - the double binary tree: an all-reduce of the whole chunk up and down one of two trees
 * (astra-sim.md 5.8).
 *
 * Under a root with one child hangs a perfect binary tree, numbered in order: the root is the last index (MAX)
 * or the first (MIN).  Parents and children follow from the index, no tree is built. */
#include "sim_impl.h"

/* Index i (from 0) of a perfect tree of 2^k - 1 nodes in order: the height is the number of low ones in i. */
static uint32_t height_of(uint32_t i)
{
    return (uint32_t)__builtin_ctz(~i);
}

static uint32_t subtree_parent(uint32_t i)
{
    const uint32_t bit = 1u << height_of(i);
    return (i & (bit << 1)) ? i - bit : i + bit;
}

static bool find_self(orr__stream *s, const orr__dim *d, uint32_t *index)
{
    const uint32_t rank = s->npu->rank;
    s->offset = d->offset;
    s->count = d->count;
    /* The last entry of the list starts at rank % offset, right only for the outermost dimension (5.1). */
    s->first = d->is_last ? rank % d->offset : rank - rank / d->offset % d->count * d->offset;
    *index = (rank - s->first) / d->offset;
    return *index < d->count;
}

bool orr__tree_setup(orr__stream *s, const orr__phase *p)
{
    const orr__dim *d = p->dim;
    uint32_t me = 0;
    if (d->group || (d->count & (d->count - 1)) || !find_self(s, d, &me)) {
        orr__sim_fail_text(
            s->npu->sim, s->npu, s->set->place,
            "a double binary tree needs a power of two of ranks, all of one outermost dimension, and no group");
        return false;
    }
    s->size = p->data;
    s->child_count = s->timers = s->receives = 0;
    const uint32_t n = d->count, root = p->is_max_tree ? n - 1 : 0, shift = p->is_max_tree ? 0 : 1;
    const uint32_t top = n / 2 - 1; /* of the perfect subtree of n - 1 nodes */
    if (me == root) {
        s->parent = ORR__NONE;
        s->child[s->child_count++] = s->first + (top + shift) * s->offset;
        return true;
    }
    const uint32_t i = me - shift;
    const uint32_t parent = i == top ? root : subtree_parent(i) + shift;
    s->parent = s->first + parent * s->offset;
    if (height_of(i)) {
        const uint32_t half = 1u << (height_of(i) - 1);
        s->child[s->child_count++] = s->first + (i - half + shift) * s->offset;
        s->child[s->child_count++] = s->first + (i + half + shift) * s->offset;
    }
    return true;
}

static void receive_from(orr__stream *s, uint32_t rank)
{
    orr__recv(s->npu, s->tag, rank, s->size, (orr__call){orr__phase_received, s, 0});
}

void orr__tree_start(orr__stream *s)
{
    if (s->child_count == 0)
        orr__bundle(s, s->size, false, true, false);
    for (uint32_t i = 0; i < s->child_count; i++)
        receive_from(s, s->child[i]);
}

void orr__tree_received(orr__stream *s)
{
    const bool is_leaf = s->child_count == 0;
    const bool is_first_of_two = s->child_count == 2 && s->receives == 0;
    s->receives++;
    orr__bundle(s, s->size, !is_leaf, false, !is_leaf && !is_first_of_two);
}

void orr__tree_timer(orr__stream *s)
{
    const uint32_t children_in = s->child_count ? s->child_count : 1;
    s->timers++;
    if (s->parent != ORR__NONE && s->timers == children_in) {
        orr__stream_send(s, s->parent, s->size);
        receive_from(s, s->parent);
    } else if (s->parent == ORR__NONE || s->timers > children_in) {
        for (uint32_t i = 0; i < s->child_count; i++)
            orr__stream_send(s, s->child[i], s->size);
        orr__stream_advance(s);
    }
}
