/* SPDX-License-Identifier: Apache-2.0 */
/* graphml_view.c - a trace as GraphML, for networkx, yEd, Gephi and their like (chakra.md section
 * 7).
 *
 * A vertex is an id.  Vertices stand in the order in which the file first names them, as node or as
 * dependency; one that is only a dependency has no label.  Edges stand by source, and of each
 * source in the order in which the file names them; of several between the same two vertices one is
 * left, with the kind that came last. That is the graph, in its order, that the old visualizer
 * writes through networkx.
 *
 *     from, to, kind of every dependency  ->  counting sort by `from`  ->  parallel edges merged in place
 *
 * Cost: O(nodes + dependencies); about 28 bytes a vertex and 24 a dependency beside the trace. */
#include "graph_view_impl.h"

#include "base/memory/map.h"

enum { DRAIN_AT = 1 << 18 };

typedef struct edge {
    uint32_t to;
    bool is_control;
} edge;

typedef struct graph {
    const orr_trace *t;
    orr_map *by_id;
    uint64_t *id;   /* of each vertex */
    uint32_t *node; /* its (last) node; ORR_NO_NODE: it is only mentioned */
    uint32_t *from; /* of each edge, until they are sorted */
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

/* place[w]: where an edge to w was kept.  Only believed when it points at such an edge of the same
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

static void put_escaped(orr_buf *b, orr_str c)
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
            put_escaped(b, c);
        }
        s = (orr_str){s.ptr + n, s.len - n};
    }
}

typedef struct key {
    const char *name, *target, *name_of, *type;
} key;

/* The old visualizer has the first two; networkx puts the later key in front. */
static const key keys[] = {
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

/* What only our own form has. */
static void put_figures(orr_buf *b, const orr_columns *c, uint32_t i)
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
        put_figures(b, orr_trace_columns(g->t), g->node[v]);
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

orr_code orr__graphml_write(const orr_trace *t,
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
