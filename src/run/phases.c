/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c - what one chunk of a collective goes through: phases, each on one dimension, in one queue and one
 * direction (astra-sim.md 5.2; broadcast and its like: docs/design/collectives.md).
 *
 * The order of the dimensions is given (schedule.c); here it becomes reduce-scatters, all-gathers and so on, and
 * the data grows and shrinks on the way. */
#include "sim_impl.h"

/* ---- queues and directions ---- */

typedef enum half { BOTH, FIRST_HALF, SECOND_HALF } half;

static void allocate(const orr__stream *st, half h, orr__phase *p)
{
    orr__npu *n = st->npu;
    const uint32_t all = n->sim->opt.queues_per_dim;
    const uint32_t k = orr__lane_of(n, st->set->place) * n->sim->dims + p->dim->position;
    uint32_t place;
    if (h == BOTH) {
        place = n->next_general[k];
        n->next_general[k] = (place + 1) % all;
        p->is_clockwise = !(all > 1 && place >= all / 2);
    } else if (h == FIRST_HALF) {
        place = n->next_first[k];
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

static void add_phase(orr__stream *st, const orr__dim *dim, orr__kind kind, half h, uint64_t *data)
{
    orr__npu *n = st->npu;
    orr__phase *p = &st->phases[st->phase_count++];
    *p = (orr__phase){.dim = dim, .kind = kind, .data = *data};
    allocate(st, h, p);
    if (dim->algorithm == ORR__TREE) {
        /* Trees alternate per rank, collective and dimension. */
        uint32_t *made =
            &n->trees_made[(size_t)st->toggle_kind * (ORR_NET_DIMS + 1) + dim->position];
        p->is_max_tree = (*made)++ % 2 == 0;
    } else if (kind == ORR__AG || kind == ORR__GT) {
        *data *= dim->count;
    } else if (kind == ORR__RS || kind == ORR__SC) {
        *data /= dim->count;
    }
}

/* Down to the last dimension and back up.  The last reduce-scatter and the first all-gather are one all-reduce
 * there, unless each is to be a phase of its own. */
static void add_halves(orr__stream *st, const orr__route *r)
{
    const uint32_t apart = r->is_unmerged ? r->count : r->count - 1;
    uint64_t data = r->data;
    for (uint32_t i = 0; i < apart; i++)
        add_phase(st, r->dims[i], ORR__RS, FIRST_HALF, &data);
    if (!r->is_unmerged)
        add_phase(st, r->dims[apart], ORR__AR, FIRST_HALF, &data);
    for (uint32_t i = apart; i-- > 0;)
        add_phase(st, r->dims[i], ORR__AG, SECOND_HALF, &data);
}

/* ---- collectives with a root ---- */

static uint32_t dim_index(const orr__dim *d, uint32_t rank)
{
    return d->group ? orr__group_index(d->group, rank) : rank / d->offset % d->count;
}

/* Between the root and the outer dimensions stand the ranks that share the root's place in the inner ones. */
static bool is_on_the_way(const orr__stream *st, const orr__route *r, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (dim_index(r->dims[i], st->npu->rank) != dim_index(r->dims[i], r->root))
            return false;
    return true;
}

/* Every rank goes through all phases here, also those it has no part in: what it gets and which queue is next
 * depend on them, and must not differ between ranks. */
static void add_rooted(orr__stream *st, const orr__route *r, orr__kind kind, uint64_t data)
{
    const bool is_outward = kind == ORR__RD || kind == ORR__GT; /* inner dimensions first */
    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t k = is_outward ? i : r->count - 1 - i;
        add_phase(st, r->dims[k], kind, BOTH, &data);
        st->phases[st->phase_count - 1].root = dim_index(r->dims[k], r->root);
        if (!is_on_the_way(st, r, k))
            st->phase_count--;
    }
}

/* ---- all of them ---- */

void orr__add_phases(orr__stream *st, const orr__route *r)
{
    uint64_t data = r->data;
    st->toggle_kind = r->kind;
    if (r->kind == ORR__BARRIER) {
        add_rooted(st, r, ORR__RD, data);
        add_rooted(st, r, ORR__BC, data);
    } else if (r->kind >= ORR__REFERENCE_KINDS) {
        add_rooted(st, r, r->kind, data);
    } else if (r->kind == ORR__AR && st->npu->sim->system.is_bw_aware) {
        add_halves(st, r);
    } else {
        for (uint32_t i = 0; i < r->count; i++)
            add_phase(st, r->dims[i], r->kind, BOTH, &data);
    }
}
