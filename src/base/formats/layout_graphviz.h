/* SPDX-License-Identifier: Apache-2.0 */
/* layout_graphviz.h - a drawing out of a graph in DOT: the only door to Graphviz. */
#ifndef ORR_BASE_LAYOUT_GRAPHVIZ_H
#define ORR_BASE_LAYOUT_GRAPHVIZ_H

#include "base/memory/buffer.h"

/* Lay out the graph with Graphviz's "dot" and append it to `out` in one of its formats ("dot",
 * "svg", "pdf", "png").  The text must be ours: a mistake in it is ORR_EBUG.  A graph that would
 * take longer than some seconds is not laid out: *is_plain is set, "dot" is the text itself, and
 * drawings have a row for each level of dependencies and straight lines. */
orr_code orr_layout_render(
    orr_str text, const char *format, orr_buf *out, bool *is_plain, orr_error *err) ORR_MUST_CHECK;

#endif
