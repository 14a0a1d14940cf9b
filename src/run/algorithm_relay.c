/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_relay.c - broadcast, reduce, scatter and gather: data goes along the edges of a tree, away from its
 * root or towards it (docs/design/collectives.md).
 *
 * Three trees: a chain ("ring"), a star ("direct") and a binomial tree ("tree").  Members count from the root:
 * the root is 0.  A member waits out an endpoint delay for each message it gets, and one for data of its own, and
 * then passes on what it has: all at once, or, where a chain carries a piece for each member, piece by piece. */
#include "sim_impl.h"

/* ---- trees ---- */

static uint32_t own_place(const orr__stream *s)
{
    const uint32_t root = s->phases[s->phase].root;
    return s->index >= root ? s->index - root : s->index + s->count - root;
}

static uint32_t rank_of(const orr__stream *s, uint32_t place)
{
    return orr__ring_rank(s, (uint32_t)(((uint64_t)place + s->phases[s->phase].root) % s->count));
}

static uint32_t parent_of(const orr__stream *s, uint32_t place)
{
    if (s->algorithm == ORR__CHAIN)
        return place - 1;
    return s->algorithm == ORR__STAR ? 0 : place & (place - 1);
}

/* The children of a member, the one with most below it first; 0 after the last. */
static uint32_t next_child(const orr__stream *s, uint32_t place, uint32_t before)
{
    if (s->algorithm == ORR__CHAIN)
        return before == 0 && place + 1 < s->count ? place + 1 : 0;
    if (s->algorithm == ORR__STAR)
        return place == 0 && before + 1 < s->count ? before + 1 : 0;
    uint32_t step = before ? (before - place) / 2 : place ? (place & -place) / 2 : 1u << 31;
    while (step && (uint64_t)place + step >= s->count)
        step /= 2;
    return step ? place + step : 0;
}

/* How many members hang on the edge above this one, itself included. */
static uint32_t size_below(const orr__stream *s, uint32_t place)
{
    const uint32_t rest = s->count - place;
    if (s->algorithm == ORR__CHAIN)
        return rest;
    const uint32_t most = s->algorithm == ORR__STAR ? 1 : place & -place;
    return most < rest ? most : rest;
}

/* ---- messages ---- */

static bool is_inward(const orr__stream *s) /* towards the root */
{
    return s->kind == ORR__RD || s->kind == ORR__GT;
}

static bool has_pieces(const orr__stream *s)
{
    return s->kind == ORR__SC || s->kind == ORR__GT;
}

/* Pieces travel one by one. */
static bool is_piecewise(const orr__stream *s)
{
    return has_pieces(s) && s->algorithm == ORR__CHAIN;
}

static uint32_t edge_messages(const orr__stream *s, uint32_t child)
{
    return is_piecewise(s) ? size_below(s, child) : 1;
}

static uint64_t edge_size(const orr__stream *s, uint32_t child)
{
    return has_pieces(s) && !is_piecewise(s) ? s->size * size_below(s, child) : s->size;
}

static void post_receives(orr__stream *s, uint32_t peer, uint32_t child)
{
    const uint64_t size = edge_size(s, child);
    for (uint32_t i = edge_messages(s, child); i-- > 0;) {
        s->packets++;
        orr__recv(s->npu, s->tag, rank_of(s, peer), size,
                  (orr__call){orr__phase_received, s, size});
    }
}

static void send_one(orr__stream *s, uint32_t peer, uint32_t child)
{
    orr__stream_send(s, rank_of(s, peer), edge_size(s, child));
}

/* ---- the machine ---- */

/* packets counts the endpoint delays to come, left the pieces to pass on. */
void orr__relay_start(orr__stream *s)
{
    const orr__phase *p = &s->phases[s->phase];
    const uint32_t me = own_place(s), first = next_child(s, me, 0);
    s->size = p->kind == ORR__SC ? p->data / s->count : p->data;
    s->left = 0;
    uint32_t own = 1; /* bundles for data that is there from the start */
    if (is_inward(s)) {
        for (uint32_t c = first; c; c = next_child(s, me, c))
            post_receives(s, c, c);
        if (is_piecewise(s) && me)
            s->left = size_below(s, me);
        own = is_piecewise(s) ? me != 0 : s->packets == 0;
    } else if (me) {
        post_receives(s, parent_of(s, me), me);
        own = 0;
    }
    if (!is_inward(s) && is_piecewise(s) && first) {
        s->left = size_below(s, first);
        own = me ? 0 : (uint32_t)s->left;
    }
    s->packets += own;
    for (uint32_t i = 0; i < own; i++)
        orr__bundle(s, s->size, false, true, false);
}

void orr__relay_received(orr__stream *s, uint64_t size)
{
    /* The first half of a barrier looks like a reduce, but there is nothing to add up. */
    orr__bundle(s, size, s->kind == ORR__RD && s->toggle_kind == ORR__RD, false, false);
}

static void pass_on_piece(orr__stream *s, uint32_t me)
{
    if (s->left == 0)
        return; /* the last piece is its own, or it is the root that gathers */
    s->left--;
    if (is_inward(s))
        send_one(s, parent_of(s, me), me);
    else
        send_one(s, next_child(s, me, 0), next_child(s, me, 0));
}

static void pass_on_all(orr__stream *s, uint32_t me)
{
    if (is_inward(s)) {
        if (me)
            send_one(s, parent_of(s, me), me);
        return;
    }
    for (uint32_t c = next_child(s, me, 0); c; c = next_child(s, me, c))
        send_one(s, c, c);
}

void orr__relay_timer(orr__stream *s)
{
    const uint32_t me = own_place(s);
    s->packets--;
    if (is_piecewise(s))
        pass_on_piece(s, me);
    else if (s->packets == 0)
        pass_on_all(s, me);
    if (s->packets == 0)
        orr__stream_advance(s);
}
