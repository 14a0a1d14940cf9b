/* SPDX-License-Identifier: Apache-2.0 */
/* fx_memory.c - what a device holds while the step runs: which values are alive when.
 *
 * A value lives from the node that makes it to the last that uses it; one that nobody makes was there before.  Writing
 * all of a storage without reading it begins a new value, so a buffer that is filled again counts only while what
 * is in it is needed (sharded parameters are freed between their uses in this way).  Parameters, buffers
 * and the optimizer's state are always there.  This is the least that is possible; a program that keeps a name
 * for something longer holds more.
 * Gradients are what the optimizer reads and neither keeps nor makes.  Cost: linear. */
#include "fx_impl.h"

enum { BEFORE = 0 }; /* node i is moment i + 1; moment 0 is before the step */

/* There is one for each value: small, as memory that is touched first costs more than what is done with it. */
typedef struct range {
    uint32_t storage;
    uint32_t from, to; /* moments, both included; a graph has less than 2^32 - 1 nodes */
} range;

typedef struct life {
    uint64_t bytes;
    uint32_t from, to;
    uint32_t same_as; /* a storage that is this one under another number */
    bool is_live, is_gradient, is_made_by_optimizer;
} life;

typedef struct liveness {
    const fx_graph *g;
    const fx_calls *calls;
    life *lives;
    range *ranges;
    size_t range_count, range_room;
} liveness;

static uint32_t root_of(liveness *l, uint32_t s)
{
    life *lives = l->lives;
    while (lives[s].same_as != s) {
        lives[s].same_as = lives[lives[s].same_as].same_as; /* the next way is half as long */
        s = lives[s].same_as;
    }
    return s;
}

static life *life_of(liveness *l, uint32_t tensor, uint32_t *storage)
{
    *storage = root_of(l, l->g->tensors[tensor].storage);
    return &l->lives[*storage];
}

static bool end_range(liveness *l, uint32_t storage)
{
    life *v = &l->lives[storage];
    if (!v->is_live)
        return true;
    if (!orr_grow(&l->ranges, &l->range_room, l->range_count + 1))
        return false;
    l->ranges[l->range_count++] = (range){storage, v->from, v->to};
    v->is_live = false;
    return true;
}

static void use(liveness *l, uint32_t tensor, uint32_t moment, const fx_node *n)
{
    uint32_t s;
    life *v = life_of(l, tensor, &s);
    if (!v->is_live) {
        v->is_live = true;
        v->from = BEFORE;
        v->is_made_by_optimizer = false;
    }
    v->to = moment;
    v->is_gradient |= n->phase == FX_OPTIMIZER && !v->is_made_by_optimizer;
}

static bool make(liveness *l, uint32_t tensor, uint32_t moment, const fx_node *n, bool is_fresh)
{
    uint32_t s;
    uint64_t first, end;
    life *v = life_of(l, tensor, &s);
    const bool is_whole =
        fx_extent(l->g, &l->g->tensors[tensor], &first, &end) && first == 0 && end >= v->bytes;
    if (v->is_live && v->to < moment && is_fresh && is_whole && !end_range(l, s))
        return false;
    if (!v->is_live) {
        v->is_live = true;
        v->from = moment;
        v->is_made_by_optimizer = n->phase == FX_OPTIMIZER;
    }
    v->to = moment;
    return true;
}

/* A view, a wait: outputs with storages of their own are the input under another number. */
static void rename_outputs(liveness *l, const fx_node *n)
{
    const uint32_t *in = fx_in(l->g, n), *out = fx_out(l->g, n);
    uint32_t from, to;
    if (n->in_count == 0)
        return;
    for (uint32_t i = 0; i < n->out_count; i++) {
        life_of(l, in[0], &from);
        life *v = life_of(l, out[i], &to);
        if (from != to && !v->is_live && l->g->storages[to].kept == FX_KEPT_NOT)
            v->same_as = from;
    }
}

static bool live_through(liveness *l, size_t i)
{
    const fx_graph *g = l->g;
    const fx_node *n = &g->nodes[i];
    const fx_call *call = &l->calls->at[i];
    const uint32_t *in = fx_in(g, n), *out = fx_out(g, n), *writes = fx_writes(g, n);
    const bool makes = call->role == FX_COMPUTE || fx_is_communication(call->role);
    const bool *is_read = l->calls->is_read + n->refs;
    const uint32_t moment = (uint32_t)i + 1;
    bool is_fine = true;
    for (uint32_t k = 0; k < n->in_count; k++) {
        if (is_read[k])
            use(l, in[k], moment, n);
    }
    if (call->role == FX_WAIT_VALUE || n->is_view)
        rename_outputs(l, n);
    for (uint32_t k = 0; k < n->writes_count && is_fine; k++)
        is_fine = make(l, writes[k], moment, n, call->is_fresh);
    for (uint32_t k = 0; k < n->out_count && is_fine; k++)
        is_fine = make(l, out[k], moment, n, makes);
    return is_fine;
}

/* What the caller gets is held until the end. */
static void hold_results(liveness *l)
{
    for (uint32_t s = 0; s < l->g->storage_count; s++) {
        life *v = &l->lives[root_of(l, s)];
        if (l->g->storages[s].is_result && v->is_live)
            v->to = (uint32_t)l->g->node_count;
    }
}

/* ---- sums ---- */

static void init_lives(liveness *l)
{
    const fx_graph *g = l->g;
    uint64_t total = 0; /* fx_check saw that it fits */
    for (uint32_t s = 0; s < g->storage_count; s++) {
        l->lives[s] = (life){.bytes = g->storages[s].bytes, .same_as = s};
        total += g->storages[s].bytes;
    }
    for (size_t t = 0; t < g->tensor_count;
         t++) { /* seen first when it was freed: as large as its tensors */
        life *v = &l->lives[g->tensors[t].storage];
        const uint64_t bytes = fx_tensor_bytes(g, &g->tensors[t]);
        uint64_t first, end;
        if (g->storages[g->tensors[t].storage].bytes || bytes <= v->bytes ||
            bytes - v->bytes > INT64_MAX - total || !fx_extent(g, &g->tensors[t], &first, &end))
            continue;
        total += bytes - v->bytes;
        v->bytes = bytes;
    }
}

static uint64_t *part_of(const liveness *l, uint32_t storage, orr_fx_memory *m)
{
    switch (l->g->storages[storage].kept) {
    case FX_KEPT_PARAMETER:
        return &m->parameters;
    case FX_KEPT_BUFFER:
        return &m->buffers;
    case FX_KEPT_STATE:
        return &m->optimizer;
    case FX_KEPT_NOT:
        break;
    }
    return l->lives[storage].is_gradient ? &m->gradients : &m->activations;
}

static uint64_t kept_bytes(const liveness *l)
{
    uint64_t sum = 0;
    for (size_t s = 0; s < l->g->storage_count; s++)
        sum += l->g->storages[s].kept != FX_KEPT_NOT ? l->lives[s].bytes : 0;
    return sum;
}

/* held[i]: differences first, then their sums. */
static size_t sum_up(const liveness *l, uint64_t *held)
{
    const size_t count = l->g->node_count;
    size_t peak = 0;
    held[0] += kept_bytes(l);
    for (size_t i = 0; i < l->range_count; i++) {
        const range *r = &l->ranges[i];
        if (l->g->storages[r->storage].kept != FX_KEPT_NOT)
            continue;
        held[r->from ? r->from - 1 : 0] += l->lives[r->storage].bytes;
        held[r->to] -= l->lives[r->storage].bytes; /* modulo 2^64, as are the sums */
    }
    for (size_t i = 1; i < count; i++) {
        held[i] += held[i - 1];
        peak = held[i] > held[peak] ? i : peak;
    }
    return peak;
}

static void split(const liveness *l, size_t peak, uint64_t bytes, orr_fx_memory *out)
{
    *out = (orr_fx_memory){.peak = bytes};
    for (uint32_t s = 0; s < l->g->storage_count; s++) {
        if (l->g->storages[s].kept != FX_KEPT_NOT)
            *part_of(l, s, out) += l->lives[s].bytes;
    }
    for (size_t i = 0; i < l->range_count; i++) {
        const range *r = &l->ranges[i];
        if (l->g->storages[r->storage].kept == FX_KEPT_NOT && r->from <= peak + 1 &&
            r->to >= peak + 1)
            *part_of(l, r->storage, out) += l->lives[r->storage].bytes;
    }
}

orr_code fx_memory(
    const fx_graph *g, const fx_calls *calls, uint64_t **held, orr_fx_memory *out, orr_error *err)
{
    liveness l = {
        .g = g, .calls = calls, .lives = orr_alloc(g->storage_count + 1, sizeof *l.lives)};
    uint64_t *moments = orr_alloc(g->node_count + 2, sizeof *moments);
    bool is_fine = l.lives && moments;
    *held = NULL;
    if (is_fine)
        init_lives(&l);
    for (size_t i = 0; i < g->node_count && is_fine; i++)
        is_fine = calls->at[i].role == FX_OUTSIDE || live_through(&l, i);
    if (is_fine)
        hold_results(&l);
    for (uint32_t s = 0; s < g->storage_count && is_fine; s++)
        is_fine = end_range(&l, s);
    if (is_fine) {
        const size_t peak = sum_up(&l, moments);
        split(&l, peak, moments[peak], out);
        *held = moments;
    } else
        orr_free(moments);
    orr_free(l.lives);
    orr_free(l.ranges);
    return is_fine ? ORR_OK : orr_no_memory(err);
}
