/* SPDX-License-Identifier: Apache-2.0 */
/* graph_fold.c - from a trace of any size to a picture that can be looked at.
 *
 *     nodes  ->  shown: all, those near one, those of the longest chain
 *            ->  boxes: one each; chains of like nodes; or, when there are too many, slices
 *            ->  links: dependencies between boxes, parallel ones merged
 *
 * A chain goes on while a node has one dependency, whose only dependent it is, and both have the
 * same type and the same name up to numbers.  A slice is what one part of the file has of one node
 * type: files are nearly always written in the order of time, so slices read from top to bottom
 * like the run.  Slices are many to many, and only the strongest links into each are kept; a
 * hundred of them make a page of some 1.6 m, so there are no more. Cost: O((nodes + dependencies)
 * log dependencies). */
#include "graph_fold.h"

#include <stdlib.h>

enum { DEFAULT_LIMIT = 300, SLICE_BOXES = 100, SLICE_LINKS = 3, TYPES = ORR_NODE_TYPE_COUNT + 1 };

static uint32_t dep_count(const orr_columns *c, uint32_t i)
{
    const uint32_t ctrl = c->ctrl_first ? c->ctrl_first[i + 1] - c->ctrl_first[i] : 0;
    return c->data_first[i + 1] - c->data_first[i] + ctrl;
}

static uint32_t dep_at(const orr_columns *c, uint32_t i, uint32_t k, bool *is_control)
{
    const uint32_t data = c->data_first[i + 1] - c->data_first[i];
    *is_control = k >= data;
    return k < data ? c->data_dep[c->data_first[i] + k] : c->ctrl_dep[c->ctrl_first[i] + k - data];
}

/* ---- shown ---- */

/* The nodes that wait for node i: list[first[i] .. first[i + 1]). */
typedef struct dependents {
    size_t *first;
    uint32_t *list;
} dependents;

static bool find_dependents(const orr__picture *p, dependents *d)
{
    const uint32_t n = p->c->count;
    bool is_control;
    size_t edges = 0;
    if (!(d->first = orr_arena_new(p->arena, (size_t)n + 2, size_t)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < dep_count(p->c, i); k++) {
            const uint32_t dep = dep_at(p->c, i, k, &is_control);
            if (dep != ORR_NO_NODE) {
                d->first[dep + 2]++;
                edges++;
            }
        }
    if (!(d->list = orr_arena_new(p->arena, edges + 1, uint32_t)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        d->first[i + 1] += d->first[i];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < dep_count(p->c, i); k++) {
            const uint32_t dep = dep_at(p->c, i, k, &is_control);
            if (dep != ORR_NO_NODE)
                d->list[d->first[dep + 1]++] = i;
        }
    return true;
}

typedef struct front {
    uint32_t *nodes, *distance; /* distance: from the middle, plus one; 0: not reached */
    uint32_t count;
} front;

static void reach(front *f, uint32_t node, uint32_t distance)
{
    if (node == ORR_NO_NODE || f->distance[node])
        return;
    f->distance[node] = distance;
    f->nodes[f->count++] = node;
}

static orr_code show_around(orr__picture *p, uint8_t *shown, orr_error *err)
{
    const uint32_t middle = orr_trace_find(p->t, p->opt->around - p->opt->id_shift);
    dependents d;
    bool is_control;
    if (middle == ORR_NO_NODE)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s has no node %llu", orr_trace_path(p->t),
                        (unsigned long long)p->opt->around);
    front f = {.nodes = orr_arena_new(p->arena, p->c->count, uint32_t),
               .distance = orr_arena_new(p->arena, p->c->count, uint32_t)};
    if (!f.nodes || !f.distance || !find_dependents(p, &d))
        return orr_no_memory(err);
    reach(&f, middle, 1);
    for (uint32_t at = 0; at < f.count; at++) {
        const uint32_t i = f.nodes[at], next = f.distance[i] + 1;
        if (next - 2 >= p->opt->depth)
            break;
        for (uint32_t k = 0; k < dep_count(p->c, i); k++)
            reach(&f, dep_at(p->c, i, k, &is_control), next);
        for (size_t e = d.first[i]; e < d.first[i + 1]; e++)
            reach(&f, d.list[e], next);
    }
    for (uint32_t i = 0; i < p->c->count; i++)
        shown[i] &= f.distance[i] != 0;
    return ORR_OK;
}

static orr_code show_path(orr__picture *p, uint8_t *shown, orr_error *err)
{
    orr__graph_shape g;
    const orr_code code = orr__graph_measure(p->c, p->arena, &g, err);
    if (code)
        return code;
    if (g.is_cyclic)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%s: the dependencies have a cycle, so there is no longest chain",
                        orr_trace_path(p->t));
    for (uint32_t k = 0; k < g.path_count; k++)
        shown[g.path[k]] |= 2;
    for (uint32_t i = 0; i < p->c->count; i++)
        shown[i] = shown[i] == 3;
    return ORR_OK;
}

static orr_code find_shown(orr__picture *p, uint8_t **out, orr_error *err)
{
    uint8_t *shown = orr_arena_new(p->arena, (size_t)p->c->count + 1, uint8_t);
    orr_code code = ORR_OK;
    if (!shown)
        return orr_no_memory(err);
    memset(shown, 1, p->c->count);
    if (p->opt->has_around)
        code = show_around(p, shown, err);
    if (!code && p->opt->critical_path)
        code = show_path(p, shown, err);
    for (uint32_t i = 0; i < p->c->count; i++)
        p->shown += shown[i];
    *out = shown;
    return code;
}

/* ---- boxes ---- */

static void add_to_box(orr__picture *p, uint32_t b, uint32_t i)
{
    orr__box *box = &p->boxes[b];
    if (box->count++ == 0) {
        box->first = i;
        box->type = p->c->type[i];
    }
    if (box->type != p->c->type[i])
        box->type = ORR__MIXED;
    box->duration_us = orr__sat_add(box->duration_us, p->c->duration_us[i]);
    box->bytes = orr__sat_add(box->bytes, orr__node_bytes(p->c, i));
    p->box[i] = b;
}

static bool is_like(const orr__picture *p, uint32_t a, uint32_t b)
{
    char room_a[ORR__NAME_ROOM], room_b[ORR__NAME_ROOM];
    return p->c->type[a] == p->c->type[b] &&
           orr_str_equal(orr__operator_group(orr_trace_name(p->t, a), room_a),
                         orr__operator_group(orr_trace_name(p->t, b), room_b));
}

/* The one node that i waits for; ORR_NO_NODE: none or several. */
static uint32_t only_dep(const orr__picture *p, const uint8_t *shown, uint32_t i)
{
    uint32_t only = ORR_NO_NODE;
    bool is_control;
    for (uint32_t k = 0; k < dep_count(p->c, i); k++) {
        const uint32_t dep = dep_at(p->c, i, k, &is_control);
        if (dep == ORR_NO_NODE || !shown[dep] || dep == only)
            continue;
        if (only != ORR_NO_NODE)
            return ORR_NO_NODE;
        only = dep;
    }
    return only;
}

enum { SEVERAL = UINT32_MAX - 1 };

/* The one node that waits for each; SEVERAL, or ORR_NO_NODE for none. */
static void find_followers(const orr__picture *p, const uint8_t *shown, uint32_t *follower)
{
    bool is_control;
    memset(follower, 0xFF, (size_t)p->c->count * sizeof *follower);
    for (uint32_t i = 0; i < p->c->count; i++)
        for (uint32_t k = 0; shown[i] && k < dep_count(p->c, i); k++) {
            const uint32_t dep = dep_at(p->c, i, k, &is_control);
            if (dep != ORR_NO_NODE && follower[dep] != i)
                follower[dep] = follower[dep] == ORR_NO_NODE ? i : SEVERAL;
        }
}

/* Does i go on with the chain of the node before it? */
static bool goes_on(const orr__picture *p,
                    const uint8_t *shown,
                    const uint32_t *follower,
                    uint32_t i)
{
    const uint32_t before = only_dep(p, shown, i);
    return before != ORR_NO_NODE && before != i && follower[before] == i && is_like(p, before, i);
}

static orr_code box_chains(orr__picture *p, const uint8_t *shown, orr_error *err)
{
    const uint32_t n = p->c->count;
    uint32_t *follower = orr_arena_new(p->arena, (size_t)n + 1, uint32_t);
    uint8_t *goes = orr_arena_new(p->arena, (size_t)n + 1, uint8_t);
    if (!follower || !goes)
        return orr_no_memory(err);
    find_followers(p, shown, follower);
    for (uint32_t i = 0; i < n; i++)
        goes[i] = shown[i] && goes_on(p, shown, follower, i);
    for (uint32_t i = 0; i < n; i++) {
        if (!shown[i] || goes[i])
            continue;
        const uint32_t b = p->box_count++;
        add_to_box(p, b, i);
        for (uint32_t k = follower[i]; k < n && goes[k]; k = follower[k])
            add_to_box(p, b, k);
    }
    for (uint32_t i = 0; i < n; i++) /* what is left is a ring of like nodes */
        if (shown[i] && p->box[i] == ORR_NO_NODE)
            add_to_box(p, p->box_count++, i);
    return ORR_OK;
}

static void box_singly(orr__picture *p, const uint8_t *shown)
{
    for (uint32_t i = 0; i < p->c->count; i++)
        if (shown[i])
            add_to_box(p, p->box_count++, i);
}

static void unbox(orr__picture *p)
{
    memset(p->box, 0xFF, (size_t)p->c->count * sizeof *p->box);
    memset(p->boxes, 0, (size_t)p->box_count * sizeof *p->boxes);
    p->box_count = 0;
}

static uint32_t type_row(const orr__picture *p, uint32_t i)
{
    return p->c->type[i] < TYPES - 1 ? p->c->type[i] : TYPES - 1;
}

static orr_code box_slices(orr__picture *p, const uint8_t *shown, uint32_t limit, orr_error *err)
{
    uint32_t types = 0, rank = 0;
    bool is_there[TYPES] = {false};
    for (uint32_t i = 0; i < p->c->count; i++)
        if (shown[i])
            is_there[type_row(p, i)] = true;
    for (uint32_t k = 0; k < TYPES; k++)
        types += is_there[k];
    const uint32_t slices = limit > types ? limit / types : 1;
    uint32_t *of = orr_arena_new(p->arena, (size_t)slices * TYPES, uint32_t); /* box + 1 */
    if (!of)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < p->c->count; i++) {
        if (!shown[i])
            continue;
        const size_t slice = (size_t)((uint64_t)rank++ * slices / p->shown);
        uint32_t *b = &of[slice * TYPES + type_row(p, i)];
        if (!*b)
            *b = ++p->box_count;
        add_to_box(p, *b - 1, i);
        p->boxes[*b - 1].is_slice = true;
    }
    return ORR_OK;
}

static orr_code make_boxes(orr__picture *p, const uint8_t *shown, orr_error *err)
{
    const uint32_t limit = p->opt->limit ? p->opt->limit : DEFAULT_LIMIT;
    orr_code code = ORR_OK;
    p->box = orr_arena_new(p->arena, (size_t)p->c->count + 1, uint32_t);
    p->boxes = orr_arena_new(p->arena, (size_t)p->shown + 1, orr__box);
    if (!p->box || !p->boxes)
        return orr_no_memory(err);
    unbox(p);
    if (p->opt->collapse || p->shown > limit)
        code = box_chains(p, shown, err);
    else
        box_singly(p, shown);
    if (code || p->box_count <= limit)
        return code;
    unbox(p);
    return box_slices(p, shown, limit < SLICE_BOXES ? limit : SLICE_BOXES, err);
}

/* ---- links ---- */

static int by_ends(const void *a, const void *b)
{
    const orr__link *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int by_strength(const void *a, const void *b)
{
    const orr__link *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void gather_links(orr__picture *p)
{
    for (uint32_t i = 0; i < p->c->count; i++) {
        if (p->box[i] == ORR_NO_NODE)
            continue;
        for (uint32_t k = 0; k < dep_count(p->c, i); k++) {
            bool is_control;
            const uint32_t dep = dep_at(p->c, i, k, &is_control);
            if (dep != ORR_NO_NODE && p->box[dep] != ORR_NO_NODE && p->box[dep] != p->box[i])
                p->links[p->link_count++] = (orr__link){p->box[dep], p->box[i], 1, is_control};
        }
    }
}

static void merge_links(orr__picture *p)
{
    size_t kept = 0;
    qsort(p->links, p->link_count, sizeof *p->links, by_ends);
    for (size_t k = 0; k < p->link_count; k++) {
        orr__link *last = kept ? &p->links[kept - 1] : NULL;
        if (!last || by_ends(last, &p->links[k])) {
            p->links[kept++] = p->links[k];
            continue;
        }
        last->count++;
        last->is_control = last->is_control && p->links[k].is_control;
    }
    p->link_count = kept;
}

static void thin_links(orr__picture *p)
{
    size_t kept = 0, into = 0;
    qsort(p->links, p->link_count, sizeof *p->links, by_strength);
    for (size_t k = 0; k < p->link_count; k++) {
        into = k && p->links[k].to == p->links[k - 1].to ? into + 1 : 0;
        if (into < SLICE_LINKS)
            p->links[kept++] = p->links[k];
    }
    p->link_count = kept;
    qsort(p->links, p->link_count, sizeof *p->links, by_ends);
}

orr_code orr__picture_fold(orr__picture *p, orr_error *err)
{
    const orr_columns *c = p->c;
    const size_t edges =
        (size_t)c->data_first[c->count] + (c->ctrl_first ? c->ctrl_first[c->count] : 0);
    uint8_t *shown = NULL;
    orr_code code = find_shown(p, &shown, err);
    if (code || (code = make_boxes(p, shown, err)))
        return code;
    if (!(p->links = orr_arena_new(p->arena, edges + 1, orr__link)))
        return orr_no_memory(err);
    gather_links(p);
    merge_links(p);
    if (p->box_count && p->boxes[0].is_slice)
        thin_links(p);
    return ORR_OK;
}
