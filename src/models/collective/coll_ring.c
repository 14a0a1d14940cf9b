/* SPDX-License-Identifier: Apache-2.0 */
/* coll_ring.c - ring: every member sends to its neighbour, one packet at a time (astra-sim.md 5.7).
 *
 * The shared state machine is in coll_exchange.h.  The first packet of a round is the member's own
 * data, every other one forwards what was just received, so a member is paced by its slower
 * neighbour.  Packets: count - 1, twice that for an all-reduce, and count (count - 1) / 2 for an
 * all-to-all, where data for distant members is forwarded on every hop. */
#include "coll_exchange.h"

/* The cursor has no state: all packets have the same peers and size. */
typedef struct ring {
    coll_exchange x;
    coll_packet packet;
} ring;

static coll_packet same_packet(orr_coll *c, void *walk)
{
    (void)c;
    return *(const coll_packet *)walk;
}

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    ring *r = orr_coll_state(c);
    const uint64_t n = c->count, steps = n - 1;
    r->packet.size = p->kind == ORR_COLL_ALL_GATHER ? p->data : p->data / n;
    r->packet.to = coll_step(c, c->index, true);
    r->packet.from = coll_step(c, c->index, false);
    r->x.left = p->kind == ORR_COLL_ALL_REDUCE ? 2 * steps : steps;
    /* Data for the member k places on travels k hops; the sum over all distances is n (n - 1) / 2
     * packets past each member. */
    if (p->kind == ORR_COLL_ALL_TO_ALL)
        r->x.left = n * steps / 2;
    r->x.parallel = 1;
    r->x.round = steps;
    return true;
}

static void start(orr_coll *c)
{
    ring *r = orr_coll_state(c);
    coll_start_exchange(c, &r->x, same_packet, &r->packet);
}

static void received(orr_coll *c, orr_bytes size)
{
    ring *r = orr_coll_state(c);
    (void)size;
    coll_make_packet(c, &r->x, same_packet, &r->packet);
}

static void timer(orr_coll *c)
{
    ring *r = orr_coll_state(c);
    r->x.free++;
    coll_send_packet(c, &r->x, same_packet, &r->packet);
    coll_end_if_through(c, &r->x);
}

/* The two neighbours are all that differs between members; see coll_turn. */
void coll_ring_turn(orr_coll *c, uint32_t by)
{
    ring *r = orr_coll_state(c);
    r->packet.to = (r->packet.to + by) % c->count;
    r->packet.from = (r->packet.from + by) % c->count;
}

static double messages(orr_collective kind, uint32_t count)
{
    const double n = count;
    if (kind == ORR_COLL_ALL_TO_ALL)
        return n * (n - 1) / 2;
    return (kind == ORR_COLL_ALL_REDUCE ? 2 : 1) * (n - 1);
}

const orr_coll_ops coll_ring = {
    .name = "ring",
    .label = "ring",
    .help = "each member sends to its neighbour, one packet at a time",
    .kinds = COLL_ROOTLESS,
    .has_one = true,
    .state_size = sizeof(ring),
    .setup = setup,
    .start = start,
    .received = received,
    .timer = timer,
    .messages = messages,
};
