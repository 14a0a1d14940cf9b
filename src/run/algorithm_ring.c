/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_ring.c - ring, direct and halving-doubling: one state machine (astra-sim.md 5.4, 5.5, 5.7).
 *
 * A phase makes packets (a peer to send to, one to receive from, a size), waits out an endpoint delay for each
 * and then sends the oldest.  Packets leave in the order they are made, so none is stored: two walks over the
 * same sequence, one ahead of the other, and a count of what lies between. */
#include "sim_impl.h"

#include "base/ticks.h"

#include <math.h>

enum { GROUP_RING_DELAY = 10 };

static const orr__phase *phase_of(const orr__stream *s)
{
    return &s->phases[s->phase];
}

/* ---- who is where ---- */

uint32_t orr__ring_rank(const orr__stream *s, uint32_t index)
{
    return s->group ? s->group->members[index] : s->first + index * s->offset;
}

static bool find_self(orr__stream *s)
{
    const orr__dim *d = phase_of(s)->dim;
    s->count = d->count;
    if (d->group) {
        s->index = orr__group_index(d->group, s->npu->rank);
        if (s->index != ORR__NONE)
            return true;
        orr__sim_fail_text(s->npu->sim, s->npu, s->set->place,
                           "rank %u is not a member of communicator group %lld", s->npu->rank,
                           (long long)d->group->id);
        return false;
    }
    s->offset = d->offset;
    s->index = s->npu->rank / d->offset % d->count;
    s->first = s->npu->rank - s->index * d->offset;
    return true;
}

static uint32_t step(const orr__stream *s, uint32_t index, bool is_forward)
{
    if (s->is_clockwise == is_forward)
        return index + 1 == s->count ? 0 : index + 1;
    return index == 0 ? s->count - 1 : index - 1;
}

static uint32_t step_past_self(const orr__stream *s, uint32_t index, bool is_forward)
{
    index = step(s, index, is_forward);
    return index == s->index ? step(s, index, is_forward) : index;
}

/* ---- the sequence of packets ---- */

static uint32_t halving_peer(const orr__stream *s, const orr__walk *w)
{
    if (w->offset == 0)
        return s->index;
    if (s->index / w->offset % 2 == 0)
        return (s->index + w->offset) % s->count;
    return (s->index + s->count - w->offset % s->count) % s->count;
}

static void scale(orr__walk *w)
{
    if (w->is_halving) {
        w->offset *= 2;
        w->size /= 2;
    } else {
        w->offset /= 2;
        w->size *= 2;
    }
}

/* The packet where the walk stands; then the walk goes on. */
static void next_packet(
    const orr__stream *s, orr__walk *w, uint32_t *to, uint32_t *from, uint64_t *size)
{
    *size = w->size;
    if (s->algorithm == ORR__HALVING) {
        *to = *from = halving_peer(s, w);
        scale(w);
        if (s->kind == ORR__AR && w->offset == s->count) {
            w->is_halving = false;
            scale(w);
        }
        return;
    }
    *to = w->to;
    *from = w->from;
    if (s->algorithm == ORR__DIRECT) {
        w->to = step_past_self(s, w->to, true);
        w->from = step_past_self(s, w->from, false);
    }
}

/* ---- setting up (5.7) ---- */

static void setup_ring(orr__stream *s, bool is_direct)
{
    const orr__phase *p = phase_of(s);
    const uint64_t n = s->count, steps = n - 1;
    s->made.size = p->kind == ORR__AG ? p->data : p->data / n;
    s->left = p->kind == ORR__AR ? 2 * steps : steps;
    if (p->kind == ORR__A2A && !is_direct)
        s->left = n * steps / 2;
    s->parallel = 1;
    if (is_direct)
        s->parallel = p->dim->window && p->dim->window < steps ? p->dim->window : s->count - 1;
    s->nonzero_round = is_direct && !p->dim->group ? s->parallel : steps * s->parallel;
    s->made.to = step(s, s->index, true);
    s->made.from = step(s, s->index, false);
}

static bool setup_halving(orr__stream *s)
{
    const orr__phase *p = phase_of(s);
    const double levels = log2((double)s->count);
    const bool is_gather = p->kind == ORR__AG;
    if (p->kind == ORR__A2A) {
        orr__sim_fail_text(s->npu->sim, s->npu, s->set->place,
                           "halving-doubling cannot run an all-to-all");
        return false;
    }
    s->left = (uint64_t)(p->kind == ORR__AR ? 2 * levels : levels);
    s->parallel = 1;
    s->nonzero_round = (uint64_t)(levels - 1);
    s->made.size = is_gather ? p->data : p->data / 2;
    s->made.is_halving = !is_gather;
    s->made.offset = is_gather ? s->count / 2 : 1;
    return true;
}

static bool setup(orr__stream *s)
{
    const orr__phase *p = phase_of(s);
    s->zero = s->free = s->packets = 0;
    s->nonzero = s->received = 0;
    s->toggle = false;
    s->made = (orr__walk){0};
    s->algorithm = (uint8_t)p->dim->algorithm;
    s->kind = (uint8_t)p->kind;
    s->group = p->dim->group;
    s->is_clockwise = p->is_clockwise;
    if (p->dim->algorithm == ORR__TREE)
        return orr__tree_setup(s, p);
    if (!find_self(s))
        return false;
    if (p->dim->algorithm == ORR__HALVING) {
        if (!setup_halving(s))
            return false;
    } else if (p->dim->algorithm < ORR__CHAIN) {
        setup_ring(s, p->dim->algorithm == ORR__DIRECT);
    }
    s->sent = s->made;
    return true;
}

/* ---- endpoint and reduction delay (5.5) ---- */

static void phase_timer(orr__stream *s);

static void timer_fired(void *stream, uint64_t unused)
{
    (void)unused;
    phase_timer(stream);
}

/* argument: twice the size, plus one when it is reduced. */
static void endpoint_passed(void *stream, uint64_t argument)
{
    orr__stream *s = stream;
    const double bw = s->npu->sim->system.local_mem_bw * s->npu->speed->memory;
    if (!(argument & 1)) {
        phase_timer(s);
    } else if (!(bw > 0)) {
        orr__sim_fail_text(s->npu->sim, s->npu, s->set->place,
                           "local-mem-bw is missing or 0: the time of a reduction is undefined");
    } else {
        const uint64_t once = orr_ticks((double)(argument >> 1) / bw * 1e9);
        orr__npu_timer(s->npu, 3 * once, timer_fired, s, 0);
    }
}

void orr__bundle(orr__stream *s, uint64_t size, bool is_reduced, bool from_npu, bool sends_back)
{
    orr__npu *n = s->npu;
    const uint64_t argument = size << 1 | is_reduced;
    if (s->group)
        orr__npu_timer(n, GROUP_RING_DELAY, endpoint_passed, s, argument);
    else if (n->bus)
        orr__bus_request(n->bus, from_npu, size, is_reduced, sends_back,
                         (orr__call){endpoint_passed, s, argument});
    else
        orr__npu_timer(n, n->sim->system.endpoint_delay, endpoint_passed, s, argument);
}

/* ---- the machine ---- */

static void insert(orr__stream *s)
{
    uint32_t to, from;
    uint64_t size;
    if (s->zero == 0 && s->nonzero == 0) {
        s->zero = s->parallel;
        s->nonzero = s->nonzero_round;
        s->toggle = !s->toggle;
    }
    next_packet(s, &s->made, &to, &from, &size);
    s->packets++;
    if (s->zero) {
        s->zero--;
        orr__bundle(s, size, false, true, false);
        return;
    }
    const bool sends_back = s->nonzero > s->parallel;
    s->nonzero--;
    orr__bundle(s, size, s->kind == ORR__RS || (s->kind == ORR__AR && s->toggle), false,
                sends_back);
}

/* Send, then receive: the order matters. */
static void try_send(orr__stream *s)
{
    uint32_t to, from;
    uint64_t size;
    if (s->packets == 0 || s->left == 0 || s->free == 0)
        return;
    next_packet(s, &s->sent, &to, &from, &size);
    s->packets--;
    orr__stream_send(s, orr__ring_rank(s, to), size);
    orr__recv(s->npu, s->tag, orr__ring_rank(s, from), size,
              (orr__call){orr__phase_received, s, 0});
    s->left--;
    s->free--;
}

void orr__phase_start(orr__stream *s)
{
    if (s->custom_prefix) {
        orr__custom_start(s);
        return;
    }
    if (!setup(s))
        return;
    if (s->algorithm == ORR__TREE) {
        orr__tree_start(s);
        return;
    }
    if (s->algorithm >= ORR__CHAIN) {
        orr__relay_start(s);
        return;
    }
    for (uint32_t i = 0; i < s->parallel; i++)
        insert(s);
}

void orr__phase_received(void *stream, uint64_t size)
{
    orr__stream *s = stream;
    if (s->algorithm == ORR__TREE) {
        orr__tree_received(s);
        return;
    }
    if (s->algorithm >= ORR__CHAIN) {
        orr__relay_received(s, size);
        return;
    }
    s->received++;
    insert(s);
}

static void phase_timer(orr__stream *s)
{
    if (s->algorithm == ORR__TREE) {
        orr__tree_timer(s);
        return;
    }
    if (s->algorithm >= ORR__CHAIN) {
        orr__relay_timer(s);
        return;
    }
    s->free++;
    if (s->algorithm == ORR__DIRECT && s->kind == ORR__AR && s->left <= s->count - 1) {
        if (s->received < s->count - 1)
            return;
        for (uint32_t i = 0; i < s->parallel; i++)
            try_send(s);
    } else {
        try_send(s);
    }
    if (s->left == 0 && s->free == s->parallel)
        orr__stream_advance(s);
}
