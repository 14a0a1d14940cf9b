/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* fuzz_template.c - any bytes as a module: a table, a line of three dashes, and what is said of
 * it.  A module that is accepted has layouts and operations for all its tensors, also after a
 * symbol has been replaced. */
#include "compat/stage/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Where the table ends. */
static size_t find_cut(const uint8_t *data, size_t size)
{
    const uint8_t *at = size ? memmem(data, size, "\n---\n", 5) : NULL;
    return at ? (size_t)(at - data) + 1 : size;
}

static void use(stg_tgraph *g)
{
    orr_error err;
    stg_layout made;
    stg_expr ops;
    for (uint32_t i = 0; i < g->count; i++) {
        require(stg_tensor_made(g, i, &made, &err) == ORR_OK);
        require(stg_tensor_ops(g, i, &ops, &err) == ORR_OK);
        require(stg_layout_text(g->space, made).len > 0);
    }
    if (stg_tgraph_replace(g, 0, "Batch", "(MicroBatch + 1)*Seq", false, &err) != ORR_OK)
        return;
    for (uint32_t i = 0; i < g->count; i++) {
        if (stg_tensor_ops(g, i, &ops, &err) != ORR_OK)
            require(err.message[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t cut = find_cut(data, size), rest = cut < size ? cut + 4 : size;
    stg_space space;
    stg_tgraph g;
    orr_error err;
    require(stg_space_init(&space));
    stg_tgraph_init_named(&g, &space);
    if (stg_module_parse(&g, (orr_span){data, cut}, "m.csv", (orr_span){data + rest, size - rest},
                         "m.json", &err))
        require(err.message[0] && err.where.path[0]);
    else
        use(&g);
    stg_tgraph_fini(&g);
    stg_space_fini(&space);
    return 0;
}
