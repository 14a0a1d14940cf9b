/* SPDX-License-Identifier: Apache-2.0 */
/* graph_view_impl.h - shared by the graph views of a trace.  Never installed. */
#ifndef ORR_GRAPH_VIEW_IMPL_H
#define ORR_GRAPH_VIEW_IMPL_H

#include <orrery/view.h>

#include "base/io/output.h"
#include "base/memory/buffer.h"
#include "base/text/text.h"

/* What chakra_visualizer does differently (chakra.md 7). */
typedef struct orr_rules_view {
    orr_code (*write_dot)(const orr_trace *t, uint64_t id_shift, orr_buf *out, orr_error *err);
    bool has_bare_nodes; /* GraphML: no type, duration or bytes */
} orr_rules_view;

/* The size of a node's message or tensor; 0: unknown. */
static inline orr_bytes orr__node_bytes(const orr_columns *c, uint32_t i)
{
    if (c->comm_size && c->comm_size[i] > 0)
        return (orr_bytes)c->comm_size[i];
    return c->tensor_size && c->tensor_size[i] > 0 ? (orr_bytes)c->tensor_size[i] : 0;
}

/* One character of an arbitrary name, as valid UTF-8; invalid bytes and control characters become
 * U+FFFD.  Returns the bytes of s consumed. */
static inline size_t orr__take_character(orr_str s, orr_str *out)
{
    static const orr_str replacement = {"\xEF\xBF\xBD", 3};
    const size_t n = orr_utf8_length((const uint8_t *)s.ptr, s.len);
    const uint8_t c = (uint8_t)s.ptr[0];
    const bool is_control = c < 0x20 ? c != '\t' && c != '\n' && c != '\r' : c == 0x7F;
    *out = n == 0 || is_control ? replacement : (orr_str){s.ptr, n};
    return n ? n : 1;
}

#endif
