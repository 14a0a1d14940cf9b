/* SPDX-License-Identifier: Apache-2.0 */
/* layout_graphviz.h - draws a DOT graph: the only interface to Graphviz. */
#ifndef ORR_BASE_LAYOUT_GRAPHVIZ_H
#define ORR_BASE_LAYOUT_GRAPHVIZ_H

#include "base/memory/buffer.h"

/* Lays out the graph with Graphviz's "dot" and appends it to `out` in one of its formats ("dot",
 * "svg", "pdf", "png").  The text must be ours: an error in it is ORR_EBUG.  A graph that would
 * take longer than some seconds is not laid out: *is_plain is set, "dot" is the text itself, and
 * drawings have one row per level of dependencies and straight lines. */
orr_code orr_layout_render(
    orr_str text, const char *format, orr_buf *out, bool *is_plain, orr_error *err) ORR_MUST_CHECK;

#endif
