/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c - the phases of a chunk of a collective, each on one dimension, in one queue and one
 * direction (astra-sim.md 5.2; rooted collectives: docs/design/collectives.md); and how a phase
 * runs: the functions called by the algorithms of models/collective (collective.h).
 *
 * The order of the dimensions is given (schedule.c); here it becomes reduce-scatters, all-gathers
 * and so on, with the data size of each phase. */
#include "fold/fold.h"
#include "match.h"
#include "run_state.h"

#include "base/arithmetic.h"
#include "base/inline.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- queues and directions ---- */

typedef enum half { BOTH, FIRST_HALF, SECOND_HALF } half;

static void allocate(const sys_stream *st, half h, sys_phase *p)
{
    run_npu *n = st->npu;
    const uint32_t all = n->sim->opt.queues_per_dim;
    /* Each stream of a trace has its own queues, so that its collectives do not wait for those of
     * another. */
    const uint32_t k = run_lane_of(n, st->set->place) * n->sim->dims + p->dim->position;
    uint32_t place;
    if (h == BOTH) {
        place = n->next_general[k];
        n->next_general[k] = (place + 1) % all;
        /* With several queues each direction gets half of them, so that both directions of a ring
         * are used (astra-sim.md 5.2). */
        p->is_clockwise = !(all > 1 && place >= all / 2);
    } else if (h == FIRST_HALF) {
        place = n->next_first[k];
        /* With one queue all / 2 is 0: both halves share it. */
        n->next_first[k] = place + 1 >= all / 2 ? 0 : place + 1;
        p->is_clockwise = true;
    } else {
        place = n->next_second[k];
        n->next_second[k] = place + 1 >= all ? all / 2 : place + 1;
        p->is_clockwise = false;
    }
    p->queue = k * all + place;
}

/* ---- the reference's collectives ---- */

static void add_phase(
    sys_stream *st, const sys_dim *dim, orr_collective kind, half h, uint64_t *data)
{
    run_npu *n = st->npu;
    sys_phase *p = &st->phases[st->phase_count++];
    *p = (sys_phase){.dim = dim, .kind = kind, .data = *data};
    allocate(st, h, p);
    if (dim->ops->variants > 1) /* rotating per rank, collective and dimension */
        p->variant = n->variants_made[(size_t)st->whole * (ORR_NET_DIMS + 1) + dim->position]++ %
                     dim->ops->variants;
    if (dim->ops->keeps_data)
        return;
    if (kind == ORR_COLL_ALL_GATHER || kind == ORR_COLL_GATHER) {
        *data *= dim->count;
    } else if (kind == ORR_COLL_REDUCE_SCATTER || kind == ORR_COLL_SCATTER) {
        *data /= dim->count;
    }
}

/* Down to the last dimension and back up.  The last reduce-scatter and the first all-gather are
 * merged into one all-reduce there, unless is_unmerged. */
static void add_halves(sys_stream *st, const sys_route *r)
{
    const uint32_t apart = r->is_unmerged ? r->count : r->count - 1;
    uint64_t data = r->data;
    for (uint32_t i = 0; i < apart; i++)
        add_phase(st, r->dims[i], ORR_COLL_REDUCE_SCATTER, FIRST_HALF, &data);
    if (!r->is_unmerged)
        add_phase(st, r->dims[apart], ORR_COLL_ALL_REDUCE, FIRST_HALF, &data);
    for (uint32_t i = apart; i-- > 0;)
        add_phase(st, r->dims[i], ORR_COLL_ALL_GATHER, SECOND_HALF, &data);
}

/* ---- rooted collectives ---- */

static uint32_t dim_index(const sys_dim *d, uint32_t rank)
{
    return d->group ? cfg_group_index(d->group, rank) : rank / d->offset % d->count;
}

/* Ranks that share the root's position in the inner dimensions are between the root and the outer
 * dimensions. */
static bool is_on_the_way(const sys_stream *st, const sys_route *r, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (dim_index(r->dims[i], st->npu->rank) != dim_index(r->dims[i], r->root))
            return false;
    return true;
}

/* Every rank passes through all phases here, also those it is not involved in: sizes and queue
 * allocation depend on them, and must not differ between ranks. */
static void add_rooted(sys_stream *st, const sys_route *r, orr_collective kind, uint64_t data)
{
    const bool is_outward =
        kind == ORR_COLL_REDUCE || kind == ORR_COLL_GATHER; /* inner dimensions first */
    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t k = is_outward ? i : r->count - 1 - i;
        add_phase(st, r->dims[k], kind, BOTH, &data);
        st->phases[st->phase_count - 1].root = dim_index(r->dims[k], r->root);
        if (!is_on_the_way(st, r, k))
            /* Removed after its queue was allocated: allocators must stay in step on all ranks. */
            st->phase_count--;
    }
}

/* ---- all of them ---- */

void sys_add_phases(sys_stream *st, const sys_route *r)
{
    uint64_t data = r->data;
    st->whole = (uint8_t)r->kind;
    if (r->kind == ORR_COLL_BARRIER) {
        add_rooted(st, r, ORR_COLL_REDUCE, data);
        add_rooted(st, r, ORR_COLL_BROADCAST, data);
    } else if (coll_has_root(r->kind)) {
        add_rooted(st, r, r->kind, data);
    } else if (r->kind == ORR_COLL_ALL_REDUCE && st->npu->sim->system.is_bw_aware) {
        add_halves(st, r);
    } else {
        for (uint32_t i = 0; i < r->count; i++)
            add_phase(st, r->dims[i], r->kind, BOTH, &data);
    }
}

/* ---- running a phase ---- */

const char *sys_algorithm_label(const orr_sim *s, uint8_t number)
{
    const orr_coll_ops *ops = coll_get(s->opt.algorithms, number);
    return ops ? ops->label : sys_coll_custom.label;
}

static bool find_self(sys_stream *st, const sys_dim *d)
{
    const uint32_t rank = st->npu->rank;
    orr_coll *c = &st->coll;
    c->count = d->count;
    st->group = d->group;
    if (d->group) {
        c->index = cfg_group_index(d->group, rank);
        if (c->index == RUN_NONE)
            orr_coll_fail(c, "rank %u is not a member of communicator group %lld", rank,
                          (long long)d->group->id);
        return c->index != RUN_NONE;
    }
    st->offset = d->offset;
    c->index = rank / d->offset % d->count;
    st->first = rank - c->index * d->offset;
    return true;
}

static bool set_up(sys_stream *st)
{
    const sys_phase *p = &st->phases[st->phase];
    const sys_dim *d = p->dim;
    orr_coll *c = &st->coll;
    c->ops = d->ops;
    c->kind = (uint8_t)p->kind;
    c->is_forward = p->is_clockwise;
    if (!find_self(st, d))
        return false;
    if (!(d->ops->kinds & ORR_COLL_BIT(p->kind))) {
        const char *kind = coll_kind_name(p->kind);
        orr_coll_fail(c, "%s cannot run %s %s", d->ops->label, kind[0] == 'a' ? "an" : "a", kind);
        return false;
    }
    /* Streams are reused: clear the state of the previous phase. */
    memset(orr_coll_state(c), 0, d->ops->state_size);
    const orr_coll_phase phase = {.kind = p->kind,
                                  .data = p->data,
                                  .root = p->root,
                                  .number = d->number,
                                  .variant = p->variant,
                                  .is_group = d->group != NULL,
                                  .is_barrier = st->whole == ORR_COLL_BARRIER,
                                  .has_outsider = !d->group && d->is_last &&
                                                  st->npu->rank / d->offset >= d->count};
    return !d->ops->setup || d->ops->setup(c, &phase);
}

void sys_phase_start(sys_stream *st)
{
    if (st->npu->sim->fold) {
        fold_phase_start(st);
        return;
    }
    if (st->custom_prefix) {
        st->coll.ops = st->plan ? &sys_coll_plan : &sys_coll_custom;
        memset(orr_coll_state(&st->coll), 0, st->coll.ops->state_size);
    } else if (!set_up(st)) {
        return;
    }
    st->coll.ops->start(&st->coll);
}

void sys_phase_received(void *stream, uint64_t size)
{
    sys_stream *st = stream;
    st->coll.ops->received(&st->coll, size);
}

/* ---- functions called by algorithms ---- */

static uint32_t rank_of(const sys_stream *st, uint32_t member)
{
    return st->group ? st->group->members[member] : st->first + member * st->offset;
}

void orr_coll_send(orr_coll *c, uint32_t member, orr_bytes size)
{
    sys_stream *st = sys_stream_of(c);
    msg_stream_send(st, rank_of(st, member), size);
}

void orr_coll_receive(orr_coll *c, uint32_t member, orr_bytes size)
{
    sys_stream *st = sys_stream_of(c);
    msg_recv(st->npu, st->tag, rank_of(st, member), size, (clk_call){sys_phase_received, st, size});
}

void orr_coll_done(orr_coll *c)
{
    sys_stream_advance(sys_stream_of(c));
}

void orr_coll_fail(orr_coll *c, const char *fmt, ...)
{
    const sys_stream *st = sys_stream_of(c);
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    run_fail_text(st->npu->sim, st->npu, st->set->place, "%s", text);
}

/* ---- endpoint and reduction delay (astra-sim.md 5.5, 5.9) ---- */

static void timer_fired(void *stream, uint64_t unused)
{
    sys_stream *st = stream;
    (void)unused;
    st->coll.ops->timer(&st->coll);
}

/* argument: twice the size, plus one if it is reduced. */
static void endpoint_passed(void *stream, uint64_t argument)
{
    sys_stream *st = stream;
    if (!(argument & 1) || st->npu->sim->rules->reduces_for_free) {
        st->coll.ops->timer(&st->coll);
        return;
    }
    const double bw = st->npu->sim->system.local_mem_bw * st->npu->speed->memory;
    if (!(bw > 0)) {
        orr_coll_fail(&st->coll,
                      "local-mem-bw is missing or 0: the time of a reduction is undefined");
        return;
    }
    const uint64_t once = orr_ticks((double)(argument >> 1) / bw * 1e9);
    /* Two operands are read and one result is written, each rounded by itself (astra-sim.md
     * 5.5). */
    run_npu_timer(st->npu, 3 * once, timer_fired, st, 0);
}

uint64_t sys_endpoint_delay(const sys_stream *st)
{
    return st->group ? SYS_GROUP_RING_DELAY : st->npu->sim->system.endpoint_delay;
}

ORR_APART void charge_bus(sys_stream *st, orr_bytes size, unsigned how, uint64_t argument)
{
    sys_bus_request(st->npu->bus, how & ORR_COLL_FROM_NPU, size, how & ORR_COLL_REDUCED,
                    how & ORR_COLL_SENT_BACK, (clk_call){endpoint_passed, st, argument});
}

void orr_coll_charge(orr_coll *c, orr_bytes size, unsigned how)
{
    sys_stream *st = sys_stream_of(c);
    run_npu *n = st->npu;
    /* Both in one number, as an event carries one. */
    const uint64_t argument = size << 1 | (how & ORR_COLL_REDUCED ? 1 : 0);
    if (n->bus && !st->group)
        charge_bus(st, size, how, argument);
    else
        run_npu_timer(n, sys_endpoint_delay(st), endpoint_passed, st, argument);
}
