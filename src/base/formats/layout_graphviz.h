/* SPDX-License-Identifier: Apache-2.0 */
/* layout_graphviz.h - a drawing out of a graph in DOT: the only door to Graphviz. */
#ifndef ORR_BASE_LAYOUT_GRAPHVIZ_H
#define ORR_BASE_LAYOUT_GRAPHVIZ_H

#include "base/memory/buffer.h"

/* Lay out the graph with Graphviz's "dot" and append it to `out` in one of its formats ("dot",
 * "svg", "pdf", "png").  The text must be ours: a mistake in it is ORR_EBUG. */
orr_code orr_layout_render(orr_str text, const char *format, orr_buf *out, orr_error *err)
    ORR_MUST_CHECK;

#endif
