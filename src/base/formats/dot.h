/* SPDX-License-Identifier: Apache-2.0 */
/* dot.h - the subset of DOT that programs write when they dump a graph: one digraph, nodes with
 * labels, edges with comments.
 *
 *     orr__dot d;
 *     orr_code code = orr__dot_read(&d, bytes, "tasks.dot", &err);
 *     for (size_t i = 0; i < d.node_count; i++) use(d.nodes[i].name, d.nodes[i].label);
 *     orr__dot_fini(&d);
 *
 * Understood: comments of all three kinds, names with and without quotes, attribute lists, chains
 * of edges, defaults (`node [...]`) and graph attributes, which are skipped.  Subgraphs, ports,
 * undirected edges and glued strings are errors: graphs that programs write have none. */
#ifndef ORR_BASE_DOT_H
#define ORR_BASE_DOT_H

#include "base/memory/memory.h"

typedef struct orr__dot_node {
    orr_str name;
    orr_str label;         /* verbatim between its quotes; ptr NULL: none */
    uint32_t line, column; /* of its name */
} orr__dot_node;

typedef struct orr__dot_edge {
    orr_str from, to;
    orr_str comment; /* an attribute; ptr NULL: none */
} orr__dot_edge;

typedef struct orr__dot {
    const char *path; /* borrowed, as are the bytes that all texts point into */
    const char *text, *end;
    orr__dot_node *nodes; /* one for each node statement, in file order */
    size_t node_count, node_room;
    orr__dot_edge *edges;
    size_t edge_count, edge_room;
} orr__dot;

/* Call fini even on failure. */
orr_code orr__dot_read(orr__dot *d, orr_span bytes, const char *path, orr_error *err)
    ORR_MUST_CHECK;
void orr__dot_fini(orr__dot *d);

/* The place of a text of this file, counted from the start: for errors. */
orr_where orr__dot_where(const orr__dot *d, const char *at);

#endif
