/* SPDX-License-Identifier: Apache-2.0 */
/* coll_halving_doubling.c - halving-doubling: the distance to the partner doubles and the data
 * halves with each step; an all-gather runs in reverse, an all-reduce both ways (astra-sim.md
 * 5.7). */
#include "coll_exchange.h"

#include <math.h>

typedef struct walk {
    uint64_t size;
    uint32_t distance; /* of the partner */
    bool is_halving;
} walk;

typedef struct halving {
    coll_exchange x;
    walk made, sent;
} halving;

/* With a power of two of members this is index ^ distance. It is written as a walk around the
 * ring because other counts are not refused: their partners do not agree with each other, the
 * phase never ends, and the run must stall exactly where the reference does. Distance 0 comes
 * after the last step: of the packet that the last receive makes and nobody sends. */
static uint32_t partner_of(const orr_coll *c, uint32_t distance)
{
    if (distance == 0)
        return c->index;
    if (c->index / distance % 2 == 0)
        return (c->index + distance) % c->count;
    return (c->index + c->count - distance % c->count) % c->count;
}

static void scale(walk *w)
{
    w->distance = w->is_halving ? w->distance * 2 : w->distance / 2;
    w->size = w->is_halving ? w->size / 2 : w->size * 2;
}

static inline coll_packet next_partner(orr_coll *c, void *context)
{
    walk *w = context;
    const uint32_t partner = partner_of(c, w->distance);
    const coll_packet p = {w->size, partner, partner};
    scale(w);
    /* The turning point of an all-reduce: the step just scaled past the last halving is taken
     * back, and the same distances follow in reverse. */
    if (c->kind == ORR_COLL_ALL_REDUCE && w->distance == c->count) {
        w->is_halving = false;
        scale(w);
    }
    return p;
}

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    halving *h = orr_coll_state(c);
    /* In floating point, as in the reference: for counts that are no power of two, truncating
     * twice the logarithm gives another number than twice the truncated one. */
    const double levels = log2((double)c->count);
    const bool is_gather = p->kind == ORR_COLL_ALL_GATHER;
    h->x.left = (uint64_t)(p->kind == ORR_COLL_ALL_REDUCE ? 2 * levels : levels);
    h->x.parallel = 1;
    /* One less than the receives of a half: the last of them is not charged for its reduction
     * (astra-sim.md 5.7), because the round is over before it comes. */
    h->x.round = (uint64_t)(levels - 1);
    h->made = (walk){.size = is_gather ? p->data : p->data / 2,
                     .distance = is_gather ? c->count / 2 : 1,
                     .is_halving = !is_gather};
    h->sent = h->made;
    return true;
}

static void start(orr_coll *c)
{
    halving *h = orr_coll_state(c);
    coll_start_exchange(c, &h->x, next_partner, &h->made);
}

static void received(orr_coll *c, orr_bytes size)
{
    halving *h = orr_coll_state(c);
    (void)size;
    coll_make_packet(c, &h->x, next_partner, &h->made);
}

static void timer(orr_coll *c)
{
    halving *h = orr_coll_state(c);
    h->x.free++;
    coll_send_packet(c, &h->x, next_partner, &h->sent);
    coll_end_if_through(c, &h->x);
}

static double messages(orr_collective kind, uint32_t count)
{
    return (kind == ORR_COLL_ALL_REDUCE ? 2 : 1) * floor(log2((double)count));
}

const orr_coll_ops coll_halving_doubling = {
    .name = "halvingDoubling",
    .label = "halving-doubling",
    .help = "distance to the partner doubles; a power of two members",
    .kinds = COLL_ROOTLESS & ~ORR_COLL_BIT(ORR_COLL_ALL_TO_ALL),
    .has_one = true,
    .needs_power_of_two = true,
    .state_size = sizeof(halving),
    .setup = setup,
    .start = start,
    .received = received,
    .timer = timer,
    .messages = messages,
};
