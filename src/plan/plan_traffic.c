/* SPDX-License-Identifier: Apache-2.0 */
/* plan_traffic.c - what a step moves, counted without running it, and its heaviest collectives as traces of their own.
 *
 * Ranks of a class do the same in groups that lie alike, so the first rank of each class is looked at and counts for all.
 * Counts are what simulations cost: they are the same on every computer, which a clock is not. */
#include "search_impl.h"

#include "trace/builder.h"

#include <stdlib.h>
#include <string.h>

/* Of packets that cross: out of the device and into the other; and two tiers of switches between nodes. */
enum { PAYLOAD = 4096, HOPS_INSIDE = 2, HOPS_OUTSIDE = 4, CHUNKS = 4, MOST_KINDS = 256 };
enum { NOBODY = -1, EVERYBODY = -2 }; /* in place of a group or a rank */

/* ---- groups ---- */

typedef struct members {
    const uint32_t *ranks; /* NULL: all */
    uint32_t count;
} members;

static members find_group(const orr_set *set, int64_t id)
{
    uint32_t low = 0, high = orr_set_group_count(set);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const orr_group g = orr_set_group(set, middle);
        if (g.id == (uint64_t)id)
            return (members){g.ranks, g.count};
        if (g.id < (uint64_t)id)
            low = middle + 1;
        else
            high = middle;
    }
    return (members){NULL, orr_set_rank_count(set)};
}

/* The group of a collective; false: it names none, all ranks take part. */
static bool group_of(const orr_set *set, uint32_t rank, uint32_t node, int64_t *id)
{
    const orr_trace *t = orr_set_trace(set, orr_set_class_of(set, rank));
    const orr_columns *c = orr_trace_columns(t);
    if (orr_set_hole(set, rank, ORR_HOLE_PG_NAME, node, id))
        return true;
    if (!c->pg_name || c->pg_name[node] == ORR_NO_NAME)
        return false;
    const orr_str name = orr_trace_text(t, c->pg_name[node]);
    char text[24];
    if (!name.len || name.len >= sizeof text)
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    *id = (int64_t)strtoull(text, NULL, 10);
    return true;
}

static uint32_t count_inside(members m, uint32_t rank, uint32_t node_ranks)
{
    uint32_t sum = 0;
    if (!m.ranks)
        return m.count < node_ranks ? m.count : node_ranks;
    for (uint32_t i = 0; i < m.count; i++)
        sum += m.ranks[i] / node_ranks == rank / node_ranks;
    return sum ? sum : 1;
}

/* ---- counts ---- */

static int64_t value_at(const int64_t *column, uint32_t i)
{
    return column && column[i] != ORR_NO_VALUE ? column[i] : 0;
}

/* A rank's part of a collective along the node and between nodes, in rings. */
static void count_collective(
    int8_t kind, double bytes, uint32_t inside, uint32_t outside, search_traffic *out)
{
    const double passes = kind == ORR_COLL_ALL_REDUCE ? 2 : 1;
    const double packets = passes * bytes / PAYLOAD;
    out->messages += passes * CHUNKS * ((inside - 1.0) + (outside - 1.0));
    out->hops += packets * HOPS_INSIDE * (inside - 1) / inside +
                 packets * HOPS_OUTSIDE * (outside - 1) / outside / inside;
}

static void count_class(const orr_set *set, uint32_t k, uint32_t node_ranks, search_traffic *out)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(set, k));
    const uint32_t rank = orr_set_class_first(set, k);
    int64_t last = NOBODY;
    uint32_t inside = 1, outside = 1;
    for (uint32_t i = 0; i < c->count; i++) {
        const double bytes = (double)value_at(c->comm_size, i);
        int64_t id = EVERYBODY, to;
        if (c->type[i] == ORR_NODE_COMM_SEND) {
            const bool is_known = orr_set_hole(set, rank, ORR_HOLE_COMM_DST, i, &to);
            const bool is_near = is_known && to / node_ranks == rank / node_ranks;
            out->messages++;
            out->hops += bytes / PAYLOAD * (is_near ? HOPS_INSIDE : HOPS_OUTSIDE);
        }
        if (c->type[i] != ORR_NODE_COMM_COLL)
            continue;
        if (!group_of(set, rank, i, &id) || id != last) {
            const members m = find_group(set, id);
            inside = count_inside(m, rank, node_ranks);
            outside = (m.count + inside - 1) / inside;
            last = id;
        }
        count_collective(c->comm_type ? c->comm_type[i] : 0, bytes, inside, outside, out);
    }
    out->nodes += c->count;
}

void search_count(const orr_set *set, uint32_t node_ranks, search_traffic *out)
{
    *out = (search_traffic){0};
    for (uint32_t k = 0; k < orr_set_class_count(set); k++) {
        search_traffic one = {0};
        const double ranks = orr_set_class_ranks(set, k);
        count_class(set, k, node_ranks, &one);
        out->nodes += one.nodes * ranks;
        out->messages += one.messages * ranks;
        out->hops += one.hops * ranks;
    }
}

/* ---- the heaviest of each axis ---- */

typedef struct kind {
    search_axis axis;
    uint8_t type;
    int8_t collective;
    search_piece piece;
} kind;

static kind *find_kind(kind *all, size_t *count, const kind *wanted)
{
    size_t i = 0;
    for (; i < *count; i++)
        if (all[i].axis == wanted->axis && all[i].type == wanted->type &&
            all[i].collective == wanted->collective && all[i].piece.bytes == wanted->piece.bytes &&
            all[i].piece.members == wanted->piece.members)
            return &all[i];
    if (i == MOST_KINDS)
        return NULL; /* there are heavier ones among so many */
    all[i] = *wanted;
    ++*count;
    return &all[i];
}

static void add_kinds(const orr_set *set, uint32_t k, kind *all, size_t *count)
{
    const orr_trace *t = orr_set_trace(set, k);
    const orr_columns *c = orr_trace_columns(t);
    const uint32_t rank = orr_set_class_first(set, k);
    for (uint32_t i = 0; i < c->count; i++) {
        const bool is_collective = c->type[i] == ORR_NODE_COMM_COLL;
        if (!is_collective && c->type[i] != ORR_NODE_COMM_SEND)
            continue;
        int64_t id = EVERYBODY;
        const uint64_t bytes = (uint64_t)value_at(c->comm_size, i);
        if (is_collective && !group_of(set, rank, i, &id))
            id = EVERYBODY;
        const kind one = {.axis = search_axis_of(orr_trace_name(t, i), c->type[i]),
                          .type = c->type[i],
                          .collective = is_collective && c->comm_type ? c->comm_type[i] : -1,
                          .piece = {.class_index = k,
                                    .node = i,
                                    .bytes = bytes,
                                    .is_message = !is_collective,
                                    .members = is_collective ? find_group(set, id).count : 2}};
        kind *found = find_kind(all, count, &one);
        if (found)
            found->piece.weight += (double)bytes * orr_set_class_ranks(set, k);
    }
}

orr_code search_pieces(const orr_set *set, search_piece out[SEARCH_AXES], orr_error *err)
{
    size_t count = 0;
    kind *all = orr_alloc(MOST_KINDS, sizeof *all);
    memset(out, 0, SEARCH_AXES * sizeof *out);
    if (!all)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < orr_set_class_count(set); k++)
        add_kinds(set, k, all, &count);
    for (size_t i = 0; i < count; i++)
        if (all[i].piece.members > 1 && all[i].piece.weight > out[all[i].axis].weight)
            out[all[i].axis] = all[i].piece;
    orr_free(all);
    return ORR_OK;
}

/* ---- as traces of their own ---- */

typedef struct range {
    uint32_t from, to; /* ranks of whole nodes */
} range;

static void widen(range *r, uint32_t rank, uint32_t node_ranks, uint32_t all)
{
    const uint32_t from = rank / node_ranks * node_ranks, to = from + node_ranks;
    if (from < r->from)
        r->from = from;
    if (to > r->to)
        r->to = to < all ? to : all;
}

/* The node of the first rank, and the nodes of all whom ranks of these meet. */
static range find_range(const orr_set *set, const search_piece *p, uint32_t node_ranks)
{
    const uint32_t all = orr_set_rank_count(set), first = orr_set_class_first(set, p->class_index);
    range r = {first / node_ranks * node_ranks, first / node_ranks * node_ranks}, old;
    widen(&r, first, node_ranks, all);
    do {
        old = r;
        for (uint32_t rank = old.from; rank < old.to; rank++) {
            int64_t id = EVERYBODY;
            if (orr_set_class_of(set, rank) != p->class_index)
                continue;
            if (p->is_message) {
                if (orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &id) && id >= 0 && id < all)
                    widen(&r, (uint32_t)id, node_ranks, all);
                continue;
            }
            const members m = find_group(set, group_of(set, rank, p->node, &id) ? id : EVERYBODY);
            for (uint32_t i = 0; i < m.count; i++)
                widen(&r, m.ranks ? m.ranks[i] : i, node_ranks, all);
        }
    } while (r.from != old.from || r.to != old.to);
    return r;
}

static orr_code add_groups(
    const orr_set *set, range r, const int64_t *with, orr_set *out, orr_error *err)
{
    orr_code code = ORR_OK;
    uint32_t *moved = orr_alloc(orr_set_rank_count(set), sizeof *moved);
    if (!moved)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < orr_set_group_count(set) && !code; i++) {
        const orr_group g = orr_set_group(set, i);
        if (!g.count || with[g.ranks[0]] != (int64_t)g.id)
            continue;
        for (uint32_t k = 0; k < g.count; k++)
            moved[k] = g.ranks[k] - r.from;
        code = orr_set_add_group(out, g.id, moved, g.count, err);
    }
    orr_free(moved);
    return code;
}

/* What one rank does: its collective, or its messages, or nothing. */
static orr_code add_rank(const orr_set *set,
                         const search_piece *p,
                         uint64_t bytes,
                         range r,
                         uint32_t rank,
                         const int64_t *with,
                         orr_set *out,
                         orr_error *err)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(set, p->class_index));
    const bool is_sender = p->is_message && orr_set_class_of(set, rank) == p->class_index;
    orr__builder b;
    int64_t to;
    orr__build_open(&b, err);
    orr__build_trace(&b, "0.0.4");
    b.next_id = 1;
    if (!p->is_message && with[rank] != NOBODY) {
        orr__build_node(&b, ORR_NODE_COMM_COLL, orr_str_of("collective"));
        orr__put_on_device(&b);
        orr__put_collective(&b, (orr_collective)c->comm_type[p->node], bytes);
        if (with[rank] != EVERYBODY)
            orr__put_group(&b, (uint64_t)with[rank]);
        orr__build_add(&b);
    }
    if (is_sender && orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &to)) {
        orr__build_node(&b, ORR_NODE_COMM_SEND, orr_str_of("send"));
        orr__put_on_device(&b);
        orr__put_message(&b, ORR_VALUE_INT64, rank - r.from, to - r.from, bytes, 0);
        orr__build_add(&b);
    }
    if (p->is_message && with[rank] != NOBODY) {
        orr__build_node(&b, ORR_NODE_COMM_RECV, orr_str_of("receive"));
        orr__put_on_device(&b);
        orr__put_message(&b, ORR_VALUE_INT64, with[rank] - r.from, rank - r.from, bytes, 0);
        orr__build_add(&b);
    }
    if (!b.count) {
        orr__build_node(&b, ORR_NODE_COMP, orr_str_of("idle"));
        b.node.duration_us = 1;
        orr__put_on_device(&b);
        orr__build_add(&b);
    }
    return orr__build_rank(&b, out);
}

/* From whom each rank receives, or the group in which it takes part: groups may have ranks of several classes. */
static orr_code find_partners(
    const orr_set *set, const search_piece *p, range r, int64_t **out, orr_error *err)
{
    const uint32_t all = orr_set_rank_count(set);
    int64_t *with = *out = orr_alloc(all, sizeof *with);
    if (!with)
        return orr_no_memory(err);
    for (uint32_t rank = 0; rank < all; rank++)
        with[rank] = NOBODY;
    for (uint32_t rank = r.from; rank < r.to; rank++) {
        int64_t id = EVERYBODY;
        if (orr_set_class_of(set, rank) != p->class_index)
            continue;
        if (p->is_message) {
            if (orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &id) && id >= 0 && id < all)
                with[id] = rank;
            continue;
        }
        const members m = find_group(set, group_of(set, rank, p->node, &id) ? id : EVERYBODY);
        for (uint32_t i = 0; i < m.count; i++)
            with[m.ranks ? m.ranks[i] : i] = m.ranks ? id : EVERYBODY;
    }
    return ORR_OK;
}

orr_code search_piece_set(const orr_set *set,
                          const search_piece *piece,
                          uint64_t bytes,
                          uint32_t node_ranks,
                          orr_set **out,
                          orr_error *err)
{
    const range r = find_range(set, piece, node_ranks);
    int64_t *with = NULL;
    *out = NULL;
    orr_code code = orr_set_create(out, err);
    if (!code)
        code = find_partners(set, piece, r, &with, err);
    for (uint32_t rank = r.from; rank < r.to && !code; rank++)
        code = add_rank(set, piece, bytes, r, rank, with, *out, err);
    if (!code && !piece->is_message)
        code = add_groups(set, r, with, *out, err);
    orr_free(with);
    if (code) {
        orr_set_close(*out);
        *out = NULL;
    }
    return code;
}
