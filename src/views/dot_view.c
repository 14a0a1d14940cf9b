/* SPDX-License-Identifier: Apache-2.0 */
/* dot_view.c - a trace as a graph in DOT or as a drawing.
 * Drawings are laid out by Graphviz (base/layout_graphviz.c). */
#include <orrery/lab/units.h>

#include "base/formats/layout_graphviz.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/options.h"
#include "base/text/text.h"
#include "graph_view_impl.h"
#include "info_impl.h"

#include <stdlib.h>

enum { ORR__MIXED = 255 }; /* a box of several node types */

typedef struct orr__box {
    uint32_t first, count; /* the first of its nodes; how many there are */
    uint64_t duration_us;  /* of all */
    orr_bytes bytes;
    uint8_t type;
    bool is_slice; /* nodes of one type from a part of the file, not a chain */
} orr__box;

typedef struct orr__link {
    uint32_t from, to; /* boxes */
    uint32_t count;    /* dependencies it stands for */
    bool is_control;   /* all of them are */
} orr__link;

typedef struct orr__picture {
    orr_arena *arena;
    const orr_trace *t;
    const orr_columns *c;
    const orr_view_graph_options *opt;
    uint32_t *box; /* per node; ORR_NO_NODE: not shown */
    orr__box *boxes;
    orr__link *links; /* by `to`, then `from` */
    uint32_t box_count, shown;
    size_t link_count;
} orr__picture;

/* Reduces a trace of any size to a readable picture.
 *
 *     nodes  ->  shown: all, those near one, those of the longest chain
 *            ->  boxes: one each; chains of like nodes; or, when there are too many, slices
 *            ->  links: dependencies between boxes, parallel ones merged
 *
 * A chain continues while a node has one dependency, whose only dependent it is, and both have the
 * same type and the same name up to numbers.  A slice holds the nodes of one type in one part of
 * the file: files are nearly always written in time order, so slices read from top to bottom like
 * the run.  Slices depend on each other many to many, and only the strongest links into each are
 * kept; a hundred slices fill a page of some 1.6 m, so there are no more. Cost: O((nodes +
 * dependencies) log dependencies). */

enum { DEFAULT_LIMIT = 300, SLICE_BOXES = 100, SLICE_LINKS = 3, TYPES = ORR_NODE_TYPE_COUNT + 1 };

static uint32_t dep_at(const orr_columns *c, uint32_t i, uint32_t k, bool *is_control)
{
    *is_control = k >= c->data_first[i + 1] - c->data_first[i];
    return orr__dep_at(c, i, k);
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
        for (uint32_t k = 0; k < orr__dep_count(p->c, i); k++) {
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
        for (uint32_t k = 0; k < orr__dep_count(p->c, i); k++) {
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
        for (uint32_t k = 0; k < orr__dep_count(p->c, i); k++)
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
    box->duration_us = orr_sat_add(box->duration_us, p->c->duration_us[i]);
    box->bytes = orr_sat_add(box->bytes, orr__node_bytes(p->c, i));
    p->box[i] = b;
}

static bool is_like(const orr__picture *p, uint32_t a, uint32_t b)
{
    char room_a[ORR__NAME_ROOM], room_b[ORR__NAME_ROOM];
    return p->c->type[a] == p->c->type[b] &&
           orr_str_equal(orr__operator_group(orr_trace_name(p->t, a), room_a),
                         orr__operator_group(orr_trace_name(p->t, b), room_b));
}

/* The only node that i waits for; ORR_NO_NODE: none or several. */
static uint32_t only_dep(const orr__picture *p, const uint8_t *shown, uint32_t i)
{
    uint32_t only = ORR_NO_NODE;
    bool is_control;
    for (uint32_t k = 0; k < orr__dep_count(p->c, i); k++) {
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

/* The only node that waits for each; SEVERAL, or ORR_NO_NODE for none. */
static void find_followers(const orr__picture *p, const uint8_t *shown, uint32_t *follower)
{
    bool is_control;
    memset(follower, 0xFF, (size_t)p->c->count * sizeof *follower);
    for (uint32_t i = 0; i < p->c->count; i++)
        for (uint32_t k = 0; shown[i] && k < orr__dep_count(p->c, i); k++) {
            const uint32_t dep = dep_at(p->c, i, k, &is_control);
            if (dep != ORR_NO_NODE && follower[dep] != i)
                follower[dep] = follower[dep] == ORR_NO_NODE ? i : SEVERAL;
        }
}

/* Does i continue the chain of its predecessor? */
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
    for (uint32_t i = 0; i < n; i++) /* the rest are rings of like nodes */
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
        for (uint32_t k = 0; k < orr__dep_count(p->c, i); k++) {
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
    orr_sort(p->links, p->link_count, sizeof *p->links, by_ends);
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
    orr_sort(p->links, p->link_count, sizeof *p->links, by_strength);
    for (size_t k = 0; k < p->link_count; k++) {
        into = k && p->links[k].to == p->links[k - 1].to ? into + 1 : 0;
        if (into < SLICE_LINKS)
            p->links[kept++] = p->links[k];
    }
    p->link_count = kept;
    orr_sort(p->links, p->link_count, sizeof *p->links, by_ends);
}

/* Fills a picture whose arena, trace, columns and options are set. */
static orr_code picture_fold(orr__picture *p, orr_error *err)
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

/* A trace as GraphML, for networkx, yEd, Gephi and similar (chakra.md section
 * 7).
 *
 * A vertex is an id.  Vertices are in the order in which the file first names them, as node or as
 * dependency; one that is only a dependency has no label.  Edges are sorted by source, then in file
 * order; of parallel edges one remains, with the kind of the last. This is the graph, in the order,
 * that the old visualizer writes through networkx.
 *
 *     from, to, kind of every dependency  ->  counting sort by `from`  ->  parallel edges merged in place
 *
 * Cost: O(nodes + dependencies); about 28 bytes per vertex and 24 per dependency beside the
 * trace. */

enum { DRAIN_AT = 1 << 18 };

typedef struct edge {
    uint32_t to;
    bool is_control;
} edge;

typedef struct graph {
    const orr_trace *t;
    orr_map *by_id;
    uint64_t *id;   /* of each vertex */
    uint32_t *node; /* its (last) node; ORR_NO_NODE: only a dependency */
    uint32_t *from; /* of each edge, until sorted */
    edge *edges;
    edge *sorted;
    size_t *first; /* sorted edges of vertex v: first[v] .. first[v] + left[v] */
    uint32_t *left;
    size_t vertices, id_room, node_room, edge_count, from_room, edge_room;
} graph;

static void fini_graph(graph *g)
{
    orr_map_destroy(g->by_id);
    orr_free(g->id);
    orr_free(g->node);
    orr_free(g->from);
    orr_free(g->edges);
    orr_free(g->sorted);
    orr_free(g->first);
    orr_free(g->left);
}

/* ---- gathering ---- */

static bool find_vertex(graph *g, uint64_t id, uint32_t *out)
{
    *out = orr_map_find(g->by_id, id, UINT32_MAX);
    if (*out != UINT32_MAX)
        return true;
    const size_t n = g->vertices;
    if (n >= UINT32_MAX - 1 || !orr_grow(&g->id, &g->id_room, n + 1) ||
        !orr_grow(&g->node, &g->node_room, n + 1) || !orr_map_put(g->by_id, id, (uint32_t)n, NULL))
        return false;
    g->id[n] = id;
    g->node[n] = ORR_NO_NODE;
    g->vertices++;
    *out = (uint32_t)n;
    return true;
}

static bool add_edges(graph *g, orr_list deps, uint32_t to, bool is_control)
{
    orr_value dep;
    while (orr_list_next(&deps, &dep)) {
        const size_t n = g->edge_count;
        uint32_t from;
        if (!find_vertex(g, dep.u, &from) || !orr_grow(&g->from, &g->from_room, n + 1) ||
            !orr_grow(&g->edges, &g->edge_room, n + 1))
            return false;
        g->from[n] = from;
        g->edges[n] = (edge){to, is_control};
        g->edge_count++;
    }
    return true;
}

static bool gather(graph *g)
{
    const uint32_t count = orr_trace_columns(g->t)->count;
    if (!(g->by_id = orr_map_create(count)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        orr_node node;
        uint32_t v;
        orr_trace_node(g->t, i, &node);
        if (!find_vertex(g, node.id, &v))
            return false;
        g->node[v] = i;
        if (!add_edges(g, orr_node_data_deps(&node), v, false) ||
            !add_edges(g, orr_node_ctrl_deps(&node), v, true))
            return false;
    }
    orr_map_destroy(g->by_id);
    g->by_id = NULL;
    return true;
}

/* ---- sorting and merging ---- */

static bool sort_edges(graph *g)
{
    g->sorted = orr_alloc(g->edge_count + 1, sizeof *g->sorted);
    g->first = orr_alloc(g->vertices + 1, sizeof *g->first);
    g->left = orr_alloc(g->vertices + 1, sizeof *g->left);
    if (!g->sorted || !g->first || !g->left)
        return false;
    for (size_t e = 0; e < g->edge_count; e++)
        g->first[g->from[e] + 1]++;
    for (size_t v = 0; v < g->vertices; v++)
        g->first[v + 1] += g->first[v];
    for (size_t e = 0; e < g->edge_count; e++) {
        const uint32_t v = g->from[e];
        g->sorted[g->first[v] + g->left[v]++] = g->edges[e];
    }
    return true;
}

/* place[w]: where an edge to w was kept.  Valid only if it points at such an edge of the same
 * source, so it need not be cleared between sources. */
static void merge_of(graph *g, size_t v, size_t *place)
{
    edge *list = g->sorted + g->first[v];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < g->left[v]; k++) {
        const edge e = list[k];
        const size_t p = place[e.to];
        if (p < kept && list[p].to == e.to) {
            list[p].is_control = e.is_control;
            continue;
        }
        place[e.to] = kept;
        list[kept++] = e;
    }
    g->left[v] = kept;
}

static bool merge_edges(graph *g)
{
    size_t *place = orr_alloc(g->vertices + 1, sizeof *place);
    if (!place)
        return false;
    for (size_t v = 0; v < g->vertices; v++)
        merge_of(g, v, place);
    orr_free(place);
    return true;
}

/* ---- text ---- */

static void put_xml_text(orr_buf *b, orr_str c)
{
    switch (c.ptr[0]) {
    case '&':
        orr_buf_text(b, "&amp;");
        break;
    case '<':
        orr_buf_text(b, "&lt;");
        break;
    case '>':
        orr_buf_text(b, "&gt;");
        break;
    case '\r': /* a bare one would be read back as a line end */
        orr_buf_text(b, "&#13;");
        break;
    default:
        orr_buf_add(b, c.ptr, c.len);
    }
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '&' && c != '<' && c != '>';
}

static void put_xml(orr_buf *b, orr_str s)
{
    while (s.len) {
        size_t n = 0;
        while (n < s.len && is_plain(s.ptr[n]))
            n++;
        orr_buf_add(b, s.ptr, n);
        if (n < s.len) {
            orr_str c;
            const orr_str rest = {s.ptr + n, s.len - n};
            n += orr__take_character(rest, &c);
            put_xml_text(b, c);
        }
        s = (orr_str){s.ptr + n, s.len - n};
    }
}

typedef struct attribute_key {
    const char *name, *target, *name_of, *type;
} attribute_key;

/* The old visualizer has the first two; networkx writes later keys first. */
static const attribute_key keys[] = {
    {"d4", "node", "bytes", "long"},   {"d3", "node", "duration_us", "long"},
    {"d2", "node", "type", "string"},  {"d1", "edge", "dependency", "string"},
    {"d0", "node", "label", "string"},
};
enum { OWN_KEYS = 3 };

static bool is_bare(const orr_view_graph_options *opt)
{
    return opt->rules && opt->rules->has_bare_nodes;
}

static void put_head(orr_buf *b, const graph *g, bool is_bare_graph)
{
    const bool is_empty[] = {g->vertices == 0, g->vertices == 0, g->vertices == 0,
                             g->edge_count == 0, g->vertices == 0};
    orr_buf_text(b, "<?xml version='1.0' encoding='utf-8'?>\n"
                    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\""
                    " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""
                    " xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns"
                    " http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">");
    for (size_t i = is_bare_graph ? OWN_KEYS : 0; i < sizeof keys / sizeof *keys; i++)
        if (!is_empty[i])
            orr_buf_print(b, "<key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>\n",
                          keys[i].name, keys[i].target, keys[i].name_of, keys[i].type);
    orr_buf_text(b, "<graph edgedefault=\"directed\">");
}

/* Only in our own form. */
static void put_data(orr_buf *b, const orr_columns *c, uint32_t i)
{
    const char *type = orr_node_type_name(c->type[i]);
    const orr_bytes bytes = orr__node_bytes(c, i);
    if (type)
        orr_buf_print(b, "  <data key=\"d2\">%s</data>\n", type);
    orr_buf_text(b, "  <data key=\"d3\">");
    orr_buf_u64(b, c->duration_us[i]);
    orr_buf_text(b, "</data>\n");
    if (bytes) {
        orr_buf_text(b, "  <data key=\"d4\">");
        orr_buf_u64(b, bytes);
        orr_buf_text(b, "</data>\n");
    }
}

static void put_vertex(orr_buf *b, const graph *g, size_t v, const orr_view_graph_options *opt)
{
    orr_buf_text(b, "<node id=\"");
    orr_buf_u64(b, g->id[v] + opt->id_shift);
    if (g->node[v] == ORR_NO_NODE) {
        orr_buf_text(b, "\"/>\n");
        return;
    }
    orr_buf_text(b, "\">\n  <data key=\"d0\">");
    put_xml(b, orr_trace_name(g->t, g->node[v]));
    orr_buf_text(b, "</data>\n");
    if (!is_bare(opt))
        put_data(b, orr_trace_columns(g->t), g->node[v]);
    orr_buf_text(b, "</node>\n");
}

static void put_edges(orr_buf *b, const graph *g, size_t v, uint64_t shift)
{
    const edge *list = g->sorted + g->first[v];
    for (uint32_t k = 0; k < g->left[v]; k++) {
        orr_buf_text(b, "<edge source=\"");
        orr_buf_u64(b, g->id[v] + shift);
        orr_buf_text(b, "\" target=\"");
        orr_buf_u64(b, g->id[list[k].to] + shift);
        orr_buf_text(b, list[k].is_control ? "\">\n  <data key=\"d1\">control</data>\n</edge>\n"
                                           : "\">\n  <data key=\"d1\">data</data>\n</edge>\n");
    }
}

static void drain_full(orr_output *o, orr_buf *b)
{
    if (b->len >= DRAIN_AT)
        orr_output_drain(o, b);
}

static void put_graph(orr_output *o, orr_buf *b, const graph *g, const orr_view_graph_options *opt)
{
    put_head(b, g, is_bare(opt));
    for (size_t v = 0; v < g->vertices && !orr_output_has_failed(o); v++) {
        put_vertex(b, g, v, opt);
        drain_full(o, b);
    }
    for (size_t v = 0; v < g->vertices && !orr_output_has_failed(o); v++) {
        put_edges(b, g, v, opt->id_shift);
        drain_full(o, b);
    }
    orr_buf_text(b, "</graph></graphml>");
    orr_output_drain(o, b);
}

static orr_code write_graph(const graph *g,
                            const char *path,
                            const orr_view_graph_options *opt,
                            orr_error *err)
{
    orr_buf b = {0};
    orr_output *o;
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    put_graph(o, &b, g, opt);
    const bool has_memory = !b.failed;
    orr_buf_fini(&b);
    if (has_memory)
        return orr_output_commit(&o, err);
    orr_output_discard(o);
    return orr_no_memory(err);
}

static orr_code graphml_write(const orr_trace *t,
                              const char *path,
                              const orr_view_graph_options *opt,
                              orr_view_graph_result *result,
                              orr_error *err)
{
    graph g = {.t = t};
    const bool is_built = gather(&g) && sort_edges(&g) && merge_edges(&g);
    const orr_code code = is_built ? write_graph(&g, path, opt, err) : orr_no_memory(err);
    result->nodes = result->boxes = (uint32_t)g.vertices;
    fini_graph(&g);
    return code;
}

/* Several ranks in one drawing: their traces joined to one, with an arrow for each
 * message.
 *
 *     rank 0  [ a ] -> [ send ]            ids of rank r are moved behind those of the ranks before it;
 *                          :               a receive gets a control dependency on its send
 *     rank 1          [ receive ] -> [ b ]
 *
 * The n-th receive of a rank from a peer with a tag belongs to the n-th send of that peer to it
 * with that tag, in file order: a run may match them in another order, but a drawing only needs a
 * consistent one. Cost: O(n log n) time, and memory for a second copy of the traces. */

enum { MOST_NODES = 1 << 22 };

/* A send or a receive. */
typedef struct message {
    uint32_t src, dst;
    int64_t tag;
    uint64_t id; /* in the joined trace */
} message;

typedef struct joiner {
    const orr_set *set;
    orr_trace *t;
    orr_error *err;
    message *sends, *receives;
    size_t send_count, send_room, receive_count, receive_room;
    uint64_t *first_id; /* by rank: the offset of its ids */
    uint32_t *rank_of;
    size_t rank_room;
    uint32_t count;
} joiner;

static int compare_messages(const void *a, const void *b)
{
    const message *x = a, *y = b;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* ---- messages ---- */

static bool note_message(joiner *j, const orr_columns *c, uint32_t rank, uint32_t i)
{
    const bool is_send = c->type[i] == ORR_NODE_COMM_SEND;
    const int64_t *column = is_send ? c->comm_dst : c->comm_src;
    if ((!is_send && c->type[i] != ORR_NODE_COMM_RECV) || !column || column[i] < 0 ||
        column[i] >= UINT32_MAX)
        return true;
    const uint32_t peer = (uint32_t)column[i];
    const message m = {.src = is_send ? rank : peer,
                       .dst = is_send ? peer : rank,
                       .tag = c->comm_tag ? c->comm_tag[i] : 0,
                       .id = c->id[i] + j->first_id[rank]};
    message **list = is_send ? &j->sends : &j->receives;
    size_t *count = is_send ? &j->send_count : &j->receive_count;
    if (!orr_grow(list, is_send ? &j->send_room : &j->receive_room, *count + 1))
        return false;
    (*list)[(*count)++] = m;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const message *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Receives get the ids of their sends as tags, and are then found by their own ids. */
static void match(joiner *j)
{
    if (j->send_count)
        orr_sort(j->sends, j->send_count, sizeof *j->sends, compare_messages);
    if (j->receive_count)
        orr_sort(j->receives, j->receive_count, sizeof *j->receives, compare_messages);
    size_t s = 0, kept = 0;
    for (size_t r = 0; r < j->receive_count; r++) {
        message key = j->receives[r];
        key.id = 0;
        while (s < j->send_count && compare_messages(&j->sends[s], &key) < 0)
            s++;
        const bool is_it = s < j->send_count && j->sends[s].src == key.src &&
                           j->sends[s].dst == key.dst && j->sends[s].tag == key.tag;
        if (is_it)
            j->receives[kept++] =
                (message){.tag = (int64_t)j->sends[s++].id, .id = j->receives[r].id};
    }
    j->receive_count = kept;
    if (kept)
        orr_sort(j->receives, kept, sizeof *j->receives, compare_ids);
}

/* ---- both passes over the ranks ---- */

typedef orr_code (*rank_visit)(joiner *j, uint32_t rank, const orr_trace *t);

static orr_code for_ranks(joiner *j, rank_visit visit)
{
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < orr_set_rank_count(j->set) && !code; rank++) {
        const orr_trace *t;
        orr_trace *owned = NULL;
        code = orr_set_rank_trace(j->set, rank, &t, &owned, j->err);
        if (!code)
            code = visit(j, rank, t);
        orr_trace_destroy(owned);
    }
    return code;
}

static orr_code look(joiner *j, uint32_t rank, const orr_trace *t)
{
    const orr_columns *c = orr_trace_columns(t);
    uint64_t most = 0;
    if (c->count > MOST_NODES - j->count)
        return orr_fail(j->err, ORR_EUSAGE, NULL,
                        "more than %d nodes in one drawing: choose a rank with --rank", MOST_NODES);
    j->count += c->count;
    for (uint32_t i = 0; i < c->count; i++) {
        most = c->id[i] > most ? c->id[i] : most;
        if (!note_message(j, c, rank, i))
            return orr_no_memory(j->err);
    }
    if (most >= UINT64_MAX - j->first_id[rank])
        return orr_fail(j->err, ORR_EINPUT, NULL, "rank %u: its ids are too large to be joined",
                        rank);
    j->first_id[rank + 1] = j->first_id[rank] + most + 1;
    return ORR_OK;
}

/* Dependencies moved by `by`, and one more behind them; NULL: no memory. */
static uint64_t *move_deps(orr_arena *a, orr_list deps, uint64_t by, uint64_t more, size_t *count)
{
    size_t n = 0;
    orr_value v;
    for (orr_list it = deps; orr_list_next(&it, &v);)
        n++;
    uint64_t *out = orr_arena_new(a, n + 1, uint64_t);
    *count = 0;
    for (orr_list it = deps; out && orr_list_next(&it, &v);)
        out[(*count)++] = v.u + by;
    if (out && more)
        out[(*count)++] = more - 1;
    return out;
}

static orr_code copy_node(joiner *j, uint32_t rank, const orr_node *node, orr_arena *a)
{
    const uint64_t by = j->first_id[rank];
    const message key = {.id = node->id + by};
    const message *m = j->receive_count
                           ? bsearch(&key, j->receives, j->receive_count, sizeof key, compare_ids)
                           : NULL;
    orr_edit edit = {.sets_id = true, .id = key.id, .sets_data_deps = true, .sets_ctrl_deps = true};
    edit.data_deps = move_deps(a, orr_node_data_deps(node), by, 0, &edit.data_count);
    edit.ctrl_deps =
        move_deps(a, orr_node_ctrl_deps(node), by, m ? (uint64_t)m->tag + 1 : 0, &edit.ctrl_count);
    if (!edit.data_deps || !edit.ctrl_deps)
        return orr_no_memory(j->err);
    return orr_trace_copy(j->t, node, &edit, j->err);
}

static orr_code copy(joiner *j, uint32_t rank, const orr_trace *t)
{
    const uint32_t count = orr_trace_columns(t)->count;
    orr_arena *a = orr_arena_create();
    orr_code code = a && orr_grow(&j->rank_of, &j->rank_room, (size_t)j->count + count)
                        ? ORR_OK
                        : orr_no_memory(j->err);
    for (uint32_t i = 0; i < count && !code; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        j->rank_of[j->count++] = rank;
        code = copy_node(j, rank, &node, a);
        orr_arena_reset(a);
    }
    orr_arena_destroy(a);
    return code;
}

static orr_code join(joiner *j)
{
    j->first_id = orr_alloc((size_t)orr_set_rank_count(j->set) + 1, sizeof *j->first_id);
    orr_code code = j->first_id ? for_ranks(j, look) : orr_no_memory(j->err);
    if (code)
        return code;
    match(j);
    j->count = 0;
    if ((code = orr_trace_create(NULL, &j->t, j->err)) || (code = for_ranks(j, copy)))
        return code;
    return orr_trace_seal(j->t, j->err);
}

orr_code orr_view_graph_ranks(const orr_set *set,
                              const char *path,
                              const orr_view_graph_options *opt,
                              orr_view_graph_result *result,
                              orr_error *err)
{
    joiner j = {.set = set, .err = err};
    orr_view_graph_options all;
    orr_code code = ORR__TAKE_OPTIONS(&all, opt, orr_view_graph_options, err);
    if (!code)
        code = join(&j);
    all.cluster = ORR_CLUSTER_RANK;
    all.rank_of = j.rank_of;
    if (!code)
        code = orr_view_graph(j.t, path, &all, result, err);
    orr_trace_destroy(j.t);
    orr_free(j.sends);
    orr_free(j.receives);
    orr_free(j.first_id);
    orr_free(j.rank_of);
    return code;
}

/* ======== A picture of a trace (dot_view.c) as DOT, for people.
 *
 * A box has the colour of its kind; the kind is also written, so that colour is never the only
 * sign.  Frames come in the order in which the file first needs them, boxes in the order of the
 * file.  Names are cut, escaped for labels and cannot reach Graphviz's escape sequences or
 * entities. */

enum { NAME_LENGTH = 48, NO_FRAME = UINT32_MAX };

/* ---- words ---- */

/* Dark text is readable on all of them. */
static const char *color_of(uint8_t type)
{
    static const char *const colors[ORR_NODE_TYPE_COUNT] = {
        [ORR_NODE_INVALID] = "#dddddd",   [ORR_NODE_METADATA] = "#dddddd",
        [ORR_NODE_MEM_LOAD] = "#f6d5a8",  [ORR_NODE_MEM_STORE] = "#f2c078",
        [ORR_NODE_COMP] = "#b7d7f0",      [ORR_NODE_COMM_SEND] = "#c5e5b4",
        [ORR_NODE_COMM_RECV] = "#a4d49a", [ORR_NODE_COMM_COLL] = "#e8b9c9",
        [ORR_NODE_STORAGE] = "#d9cbe8",   [ORR_NODE_BATCH] = "#d9cbe8",
        [ORR_NODE_CHECKPOINT] = "#d9cbe8"};
    return type < ORR_NODE_TYPE_COUNT ? colors[type] : "#ffffff";
}

static void put_character(orr_buf *b, orr_str c)
{
    switch (c.ptr[0]) {
    case '"':
    case '\\':
        orr_buf_byte(b, '\\');
        orr_buf_byte(b, (uint8_t)c.ptr[0]);
        break;
    case '&':
        orr_buf_text(b, "&amp;");
        break;
    case '\t':
    case '\n':
    case '\r':
        orr_buf_byte(b, ' ');
        break;
    default:
        orr_buf_add(b, c.ptr, c.len);
    }
}

static void put_escaped(orr_buf *b, orr_str s)
{
    for (uint32_t n = 0; s.len; n++) {
        orr_str c;
        if (n == NAME_LENGTH) {
            orr_buf_text(b, "...");
            return;
        }
        const size_t took = orr__take_character(s, &c);
        put_character(b, c);
        s = (orr_str){s.ptr + took, s.len - took};
    }
}

static void put_kind(orr_buf *b, const orr_columns *c, const orr__box *box)
{
    const uint32_t i = box->first;
    const char *type = box->type == ORR__MIXED ? "other kinds" : orr_node_type_name(box->type);
    const bool has_collective =
        box->type == ORR_NODE_COMM_COLL && box->count == 1 && c->comm_type && c->comm_type[i] >= 0;
    const char *collective = has_collective ? orr_collective_name((uint32_t)c->comm_type[i]) : NULL;
    orr_buf_text(b, collective ? collective : type ? type : "unknown kind");
}

static void put_figures(orr_buf *b, const orr__box *box)
{
    char text[ORR_UNIT_ROOM];
    const uint64_t most_us = INT64_MAX / 1000000;
    if (box->duration_us || box->bytes)
        orr_buf_text(b, "\\n");
    if (box->duration_us) {
        const uint64_t us = box->duration_us < most_us ? box->duration_us : most_us;
        orr_buf_text(b, orr_time_text((orr_ps)us * 1000000, text));
    }
    if (box->duration_us && box->bytes)
        orr_buf_text(b, ", ");
    if (box->bytes)
        orr_buf_text(b, orr_bytes_text(box->bytes, text));
}

static void put_label(orr_buf *b, const orr__picture *p, const orr__box *box)
{
    char room[ORR__NAME_ROOM], text[ORR_UNIT_ROOM];
    const orr_str name = orr_trace_name(p->t, box->first);
    if (box->is_slice)
        orr_buf_text(b, "nodes");
    else
        put_escaped(b, box->count > 1 ? orr__operator_group(name, room) : name);
    if (box->count > 1 || box->is_slice)
        orr_buf_print(b, " x %s", orr_count_text(box->count, text));
    orr_buf_text(b, "\\n");
    put_kind(b, p->c, box);
    put_figures(b, box);
}

/* ---- frames ---- */

/* "layers.12.mlp", "layer3_fwd", "blocks/0": the number behind the word; false: there is none. */
static bool find_layer(orr_str name, orr_str *out)
{
    static const char *const words[] = {"layer", "block"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const char *at = memmem(name.ptr, name.len, words[w], strlen(words[w]));
        if (!at)
            continue;
        const char *end = name.ptr + name.len;
        at += strlen(words[w]);
        while (at < end && strchr("s._/:- ", *at) && *at)
            at++;
        const char *begin = at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        *out = (orr_str){begin, (size_t)(at - begin)};
        if (out->len)
            return true;
    }
    return false;
}

/* What the frame of node i says; nothing: it has none. */
static void name_frame(const orr__picture *p, uint32_t i, orr_buf *b)
{
    const orr_columns *c = p->c;
    orr_str layer;
    b->len = 0;
    if (p->opt->cluster == ORR_CLUSTER_STREAM && c->stream && c->stream[i] != ORR_NO_VALUE) {
        orr_buf_text(b, "stream ");
        orr_buf_i64(b, c->stream[i]);
    }
    if (p->opt->cluster == ORR_CLUSTER_LAYER && find_layer(orr_trace_name(p->t, i), &layer)) {
        orr_buf_text(b, "layer ");
        orr_buf_add(b, layer.ptr, layer.len);
    }
    if (p->opt->cluster == ORR_CLUSTER_RANK && p->opt->rank_of) {
        orr_buf_text(b, "rank ");
        orr_buf_u64(b, p->opt->rank_of[i]);
    }
    if (p->opt->cluster == ORR_CLUSTER_GROUP && c->pg_name && c->pg_name[i] != ORR_NO_NAME) {
        const orr_str group = orr_trace_text(p->t, c->pg_name[i]);
        orr_buf_text(b, "group ");
        orr_buf_add(b, group.ptr, group.len);
    }
}

/* A box has the frame that all its nodes have. */
static bool find_frames(const orr__picture *p, orr_intern *names, uint32_t *frame)
{
    orr_buf b = {0};
    bool is_done = true;
    for (uint32_t i = 0; i < p->c->count && is_done; i++) {
        const uint32_t at = p->box[i];
        uint32_t number = NO_FRAME;
        if (at == ORR_NO_NODE)
            continue;
        name_frame(p, i, &b);
        if (b.len)
            is_done = orr_intern_add(names, (orr_str){(const char *)b.ptr, b.len}, &number);
        if (p->boxes[at].first == i)
            frame[at] = number;
        else if (frame[at] != number)
            frame[at] = NO_FRAME;
    }
    is_done = is_done && !b.failed;
    orr_buf_fini(&b);
    return is_done;
}

/* ---- statements ---- */

static void put_box(orr_buf *b, const orr__picture *p, uint32_t at)
{
    const orr__box *box = &p->boxes[at];
    orr_buf_print(b, "\tb%lu [label=\"", (unsigned long)at);
    put_label(b, p, box);
    orr_buf_text(b, "\" id=\"");
    orr_buf_u64(b, p->c->id[box->first] + p->opt->id_shift);
    orr_buf_print(b, "\" fillcolor=\"%s\"]\n", color_of(box->type));
}

/* Boxes by frame: a list per frame, each in the order of the file. */
static orr_code put_frames(orr_buf *b, const orr__picture *p, orr_intern *names, orr_error *err)
{
    uint32_t *frame = orr_arena_new(p->arena, (size_t)p->box_count + 1, uint32_t);
    if (!frame || !find_frames(p, names, frame))
        return orr_no_memory(err);
    const uint32_t count = orr_intern_count(names);
    uint32_t *head = orr_arena_new(p->arena, (size_t)count + 1, uint32_t); /* box + 1 */
    uint32_t *next = orr_arena_new(p->arena, (size_t)p->box_count + 1, uint32_t);
    if (!head || !next)
        return orr_no_memory(err);
    for (uint32_t at = p->box_count; at-- > 0;) {
        uint32_t *list = &head[frame[at] == NO_FRAME ? count : frame[at]];
        next[at] = *list;
        *list = at + 1;
    }
    for (uint32_t f = 0; f <= count; f++) {
        if (f < count && head[f]) {
            orr_buf_print(b, "\tsubgraph cluster_%lu {\n\tlabel=\"", (unsigned long)f);
            put_escaped(b, orr_intern_get(names, f));
            orr_buf_text(b, "\" color=\"#888888\" style=rounded\n");
        }
        for (uint32_t at = head[f]; at; at = next[at - 1])
            put_box(b, p, at - 1);
        if (f < count && head[f])
            orr_buf_text(b, "\t}\n");
    }
    return ORR_OK;
}

static void put_links(orr_buf *b, const orr__picture *p)
{
    for (size_t k = 0; k < p->link_count; k++) {
        const orr__link *l = &p->links[k];
        orr_buf_print(b, "\tb%lu -> b%lu", (unsigned long)l->from, (unsigned long)l->to);
        orr_buf_text(b, l->is_control ? " [style=dashed arrowhead=tee]\n" : "\n");
    }
}

static orr_code put_picture(orr_buf *b, const orr__picture *p, orr_error *err)
{
    orr_intern *names = orr_intern_create();
    if (!names)
        return orr_no_memory(err);
    orr_buf_text(b,
                 "digraph {\n"
                 "\tgraph [fontname=\"Helvetica\" fontsize=11 nodesep=0.2 ranksep=0.35]\n"
                 "\tnode [shape=box style=\"rounded,filled\" fontname=\"Helvetica\" fontsize=10]\n"
                 "\tedge [arrowsize=0.7 color=\"#555555\"]\n");
    const orr_code code = put_frames(b, p, names, err);
    put_links(b, p);
    orr_buf_text(b, "}\n");
    orr_intern_destroy(names);
    return code ? code : b->failed ? orr_no_memory(err) : ORR_OK;
}

static orr_code dot_text(const orr_trace *t,
                         const orr_view_graph_options *opt,
                         orr_buf *b,
                         orr_view_graph_result *result,
                         orr_error *err)
{
    orr__picture p = {.arena = orr_arena_create(), .t = t, .c = orr_trace_columns(t), .opt = opt};
    if (!p.arena)
        return orr_no_memory(err);
    orr_code code = picture_fold(&p, err);
    if (!code)
        code = put_picture(b, &p, err);
    *result = (orr_view_graph_result){.nodes = p.shown, .boxes = p.box_count};
    orr_arena_destroy(p.arena);
    return code;
}

/* ---- to a file ---- */

static const char *const form_names[] = {"dot", "graphml", "svg", "pdf", "png"};

bool orr_graph_form_find(orr_str name, orr_graph_form *out)
{
    for (unsigned i = 0; i < sizeof form_names / sizeof *form_names; i++)
        if (orr_str_is(name, form_names[i])) {
            *out = (orr_graph_form)i;
            return true;
        }
    return false;
}

static orr_code write_whole(const orr_buf *b, const char *path, orr_error *err)
{
    orr_output *o;
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_add(o, b->ptr, b->len);
    return orr_output_commit(&o, err);
}

static orr_code draw(const orr_buf *text,
                     const char *path,
                     const orr_view_graph_options *opt,
                     orr_view_graph_result *result,
                     orr_error *err)
{
    if (opt->form == ORR_GRAPH_DOT && !opt->with_layout)
        return write_whole(text, path, err);
    orr_buf drawing = {0};
    const orr_str s = {(const char *)text->ptr, text->len};
    orr_code code = orr_layout_render(s, form_names[opt->form], &drawing, &result->is_plain, err);
    if (!code)
        code = write_whole(&drawing, path, err);
    orr_buf_fini(&drawing);
    return code;
}

orr_code orr_view_graph(const orr_trace *t,
                        const char *path,
                        const orr_view_graph_options *opt,
                        orr_view_graph_result *result,
                        orr_error *err)
{
    orr_view_graph_options own;
    orr_view_graph_result ignored;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_view_graph_options, err);
    if (code)
        return code;
    opt = &own;
    result = result ? result : &ignored;
    *result = (orr_view_graph_result){.nodes = orr_trace_columns(t)->count};
    result->boxes = result->nodes;
    if (opt->form == ORR_GRAPH_GRAPHML)
        return graphml_write(t, path, opt, result, err);
    orr_buf text = {0};
    code = opt->rules ? opt->rules->write_dot(t, opt->id_shift, &text, err)
                      : dot_text(t, opt, &text, result, err);
    if (!code)
        code = draw(&text, path, opt, result, err);
    orr_buf_fini(&text);
    return code;
}
