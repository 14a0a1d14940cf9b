/* SPDX-License-Identifier: Apache-2.0 */
/* room: drawing */
/* fuzz_view.c - any bytes as a trace, drawn as DOT or GraphML in every way; one in 256 is laid out as
 * SVG, which takes Graphviz milliseconds.  The first two bytes say how. */
#include "fuzz_trace.h"

#include <orrery/view.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_trace *t;
    orr_error err = {0};
    orr_view_graph_result r;
    if (size < 3 || size > 4096)
        return 0;
    const unsigned how = data[0], how2 = data[1];
    if (orr_trace_parse((orr_span){data + 2, size - 2}, "fuzz.et", NULL, &t, &err))
        return 0;
    const orr_view_graph_options opt = {.size = sizeof opt,
                                        .form = how == 15 ? ORR_GRAPH_SVG
                                                : how % 2 ? ORR_GRAPH_GRAPHML
                                                          : ORR_GRAPH_DOT,
                                        .has_around = how2 & 8,
                                        .around = 1,
                                        .depth = how2 >> 6,
                                        .critical_path = how2 & 16,
                                        .collapse = how2 & 32,
                                        .limit = how2 & 64 ? 3 : 40};
    const orr_code code = orr_view_graph(t, "/dev/null", &opt, &r, &err);
    REQUIRE(code == ORR_OK || err.message[0]);
    REQUIRE(code || r.boxes <= r.nodes);
    orr_trace_destroy(t);
    return 0;
}
