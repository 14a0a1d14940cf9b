/* SPDX-License-Identifier: Apache-2.0 */
/* coll_direct.c - direct: every member sends to every other one, all at once or N at a time
 * (astra-sim.md 5.7). */
#include "coll_exchange.h"

typedef struct peers {
    uint32_t to, from;
} peers;

typedef struct direct {
    coll_exchange x;
    uint64_t size;
    peers made, sent;
} direct;

/* The second half of an all-reduce goes around the members once more, so the walk comes past the
 * member itself, which sends itself nothing. */
static uint32_t step_past_self(const orr_coll *c, uint32_t index, bool is_forward)
{
    index = coll_step(c, index, is_forward);
    return index == c->index ? coll_step(c, index, is_forward) : index;
}

/* To the next member, from the previous one: in each step the senders and receivers are paired
 * one to one, so no member gets two packets of the same step. That keeps the load of a switch
 * even. */
static inline coll_packet next_peers(orr_coll *c, void *walk)
{
    const direct *d = orr_coll_state(c);
    peers *w = walk;
    const coll_packet p = {d->size, w->to, w->from};
    w->to = step_past_self(c, w->to, true);
    w->from = step_past_self(c, w->from, false);
    return p;
}

static bool setup(orr_coll *c, const orr_coll_phase *p)
{
    direct *d = orr_coll_state(c);
    const uint64_t n = c->count, steps = n - 1;
    d->size = p->kind == ORR_COLL_ALL_GATHER ? p->data : p->data / n;
    d->made.to = d->sent.to = coll_step(c, c->index, true);
    d->made.from = d->sent.from = coll_step(c, c->index, false);
    d->x.left = p->kind == ORR_COLL_ALL_REDUCE ? 2 * steps : steps;
    /* Without a number, or with one that bounds nothing, all packets are in flight at once. */
    d->x.parallel = p->number && p->number < steps ? p->number : c->count - 1;
    d->x.round = p->is_group ? steps * d->x.parallel : d->x.parallel;
    return true;
}

static void start(orr_coll *c)
{
    direct *d = orr_coll_state(c);
    coll_start_exchange(c, &d->x, next_peers, &d->made);
}

static void received(orr_coll *c, orr_bytes size)
{
    direct *d = orr_coll_state(c);
    (void)size;
    /* A packet is made even when none is left to send: its delay is what the phase ends after
     * (coll_end_if_through). */
    d->x.received++;
    coll_make_packet(c, &d->x, next_peers, &d->made);
}

static void timer(orr_coll *c)
{
    direct *d = orr_coll_state(c);
    const uint32_t others = c->count - 1;
    d->x.free++;
    if (c->kind == ORR_COLL_ALL_REDUCE && d->x.left <= others) {
        /* The second half begins when everything of the first has arrived. */
        if (d->x.received < others)
            return;
        /* The timers that came too early sent nothing, so this one makes up for them; later ones
         * find no packet that may leave and do nothing more than a normal send. */
        for (uint32_t i = 0; i < d->x.parallel; i++)
            coll_send_packet(c, &d->x, next_peers, &d->sent);
    } else {
        coll_send_packet(c, &d->x, next_peers, &d->sent);
    }
    coll_end_if_through(c, &d->x);
}

/* Peers are at fixed distances from the member, so those of another member differ by a shift.
 * Nothing else in the state names a member. */
static void turn(const orr_coll *c, peers *p, uint32_t by)
{
    p->to = (p->to + by) % c->count;
    p->from = (p->from + by) % c->count;
}

void coll_direct_turn(orr_coll *c, uint32_t by)
{
    direct *d = orr_coll_state(c);
    turn(c, &d->made, by);
    turn(c, &d->sent, by);
}

static double messages(orr_collective kind, uint32_t count)
{
    return (kind == ORR_COLL_ALL_REDUCE ? 2 : 1) * ((double)count - 1);
}

const orr_coll_ops coll_direct = {
    .name = "direct",
    .label = "direct",
    .help = "each member sends to all others, N at a time",
    .kinds = COLL_ROOTLESS,
    .takes_number = true,
    .has_one = true,
    .state_size = sizeof(direct),
    .setup = setup,
    .start = start,
    .received = received,
    .timer = timer,
    .messages = messages,
};
