/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pt2.c - any bytes as an archive of torch.export or as the JSON in one.  What is refused has
 * words and a place; what is read holds together, and becomes traces or is refused with words
 * there. */
#include <orrery/lab/export.h>

#include "sources/torch/fx/fx_graph.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_graph(const fx_graph *g)
{
    for (size_t i = 0; i < g->tensor_count; i++)
        require(g->tensors[i].storage < g->storage_count && g->tensors[i].element_bytes > 0);
    for (size_t i = 0; i < g->ref_count; i++)
        require(g->refs[i] < g->tensor_count);
}

static void check_traces(const orr_fx *fx)
{
    orr_set *set;
    orr_fx_report report;
    orr_error err = {0};
    if (orr_fx_convert(fx, NULL, &set, &report, &err)) {
        require(err.message[0]);
        return;
    }
    require(orr_set_rank_count(set) == fx->world_size && orr_set_class_count(set) == 1);
    orr_fx_report_fini(&report);
    orr_set_close(set);
}

static void read_with(orr_span bytes, const orr_export_options *opt)
{
    orr_fx *fx;
    orr_export_report r;
    orr_error err = {0};
    if (orr_export_parse(bytes, "fuzz.pt2", opt, &fx, &r, &err)) {
        require(!fx && err.message[0] && err.where.path[0]);
        return;
    }
    require(fx->graph_count == 1);
    check_graph(fx->graphs[0]);
    check_traces(fx);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span bytes = {data, size};
    read_with(bytes, NULL);
    read_with(bytes, &(orr_export_options){.sizes = "s0=7", .ranks = 3});
    return 0;
}
