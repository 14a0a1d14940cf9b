/* SPDX-License-Identifier: Apache-2.0 */
/* convert_data.c - what waits for what because of tensors: work of different streams on one storage.
 *
 * Streams are held together by events, which most traces do not show.  What they are there for is in the operators'
 * values: a bucket of gradients is filled by kernels of one stream, reduced by one of another, and unpacked by the first
 * again, all of them naming the same storage.  So work depends on the last work of another stream on a storage of its
 * own, where the clock agrees.  A collective that was run by a thread of its backend is waited for by the first operator
 * that touches what it works on.
 *
 * Cost: one pass over the values of what is on streams; over those of operators only when there are such calls. */
#include "conversion.h"

typedef struct flow {
    conv_state *c;
    orr_map *last; /* storage -> place of the last work on it */
    uint64_t *ids;
    size_t count, room;
} flow;

static bool add_storages(flow *f, uint32_t place)
{
    const linked_node *n = conv_node(f->c, place);
    return conv_io_storages(n->inputs, &f->ids, &f->count, &f->room) &&
           conv_io_storages(n->outputs, &f->ids, &f->count, &f->room);
}

/* A call's tensors are also those of the operator that made it: outputs stand there only. */
static bool find_storages(flow *f, uint32_t place)
{
    const uint32_t partner = f->c->partner[place];
    f->count = 0;
    if (!add_storages(f, place))
        return false;
    return f->c->role[place] != CONV_CALL || partner == CONV_NONE || !conv_is_host(f->c, partner) ||
           add_storages(f, partner);
}

static bool is_other_lane(const conv_state *c, uint32_t a, uint32_t b)
{
    const bool is_call = c->role[a] == CONV_CALL || c->role[b] == CONV_CALL;
    return is_call || conv_node(c, a)->stream != conv_node(c, b)->stream;
}

static bool see_work(flow *f, uint32_t place)
{
    if (!find_storages(f, place))
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t from = orr_map_find(f->last, f->ids[i], CONV_NONE);
        if (from != CONV_NONE && from != place && is_other_lane(f->c, from, place) &&
            conv_clock_allows(f->c, from, place) && !conv_link_add(f->c, from, place, false))
            return false;
        if (!orr_map_put(f->last, f->ids[i], place, NULL))
            return false;
    }
    return true;
}

/* An operator waits for calls only: kernels it does not see. */
static bool see_operator(flow *f, uint32_t place)
{
    if (!find_storages(f, place))
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t from = orr_map_find(f->last, f->ids[i], CONV_NONE);
        if (from == CONV_NONE || f->c->role[from] != CONV_CALL ||
            !conv_clock_allows(f->c, from, place))
            continue;
        if (!conv_link_add(f->c, from, place, false))
            return false;
        orr_map_remove(f->last, f->ids[i]); /* who comes later comes after this one */
    }
    return true;
}

static bool see_all(flow *f, bool has_calls)
{
    const conv_state *c = f->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const bool is_work = conv_is_device(c, p) || c->role[p] == CONV_CALL;
        if (is_work && !see_work(f, p))
            return false;
        if (has_calls && conv_is_host(c, p) && !see_operator(f, p))
            return false;
    }
    return true;
}

/* With one stream and no calls there is nothing to find. */
static bool has_lanes(const conv_state *c, bool *has_calls)
{
    int64_t stream = 0;
    bool has_stream = false, has_more = false;
    *has_calls = false;
    for (uint32_t p = 0; p < c->count; p++) {
        *has_calls |= c->role[p] == CONV_CALL;
        if (!conv_is_device(c, p))
            continue;
        has_more |= has_stream && conv_node(c, p)->stream != stream;
        stream = conv_node(c, p)->stream;
        has_stream = true;
    }
    return has_more || *has_calls;
}

orr_code conv_find_data(conv_state *c)
{
    bool has_calls;
    if (!has_lanes(c, &has_calls))
        return ORR_OK;
    flow f = {.c = c, .last = orr_map_create(1024)};
    const bool ok = f.last && see_all(&f, has_calls);
    orr_map_destroy(f.last);
    orr_free(f.ids);
    return ok ? ORR_OK : orr_no_memory(c->err);
}
