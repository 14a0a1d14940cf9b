/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* fuzz_template.c - any bytes as a module: a table, a line of three dashes, and what is said of it.  A module that
 * is accepted has layouts and operations for all its tensors, also after a symbol has been replaced. */
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

static void use(orr__tgraph *g)
{
    orr_error err;
    orr__layout made;
    orr__expr ops;
    for (uint32_t i = 0; i < g->count; i++) {
        require(orr__tensor_made(g, i, &made, &err) == ORR_OK);
        require(orr__tensor_ops(g, i, &ops, &err) == ORR_OK);
        require(orr__layout_text(g->space, made).len > 0);
    }
    if (orr__tgraph_replace(g, 0, "Batch", "(MicroBatch + 1)*Seq", false, &err) != ORR_OK)
        return;
    for (uint32_t i = 0; i < g->count; i++) {
        if (orr__tensor_ops(g, i, &ops, &err) != ORR_OK)
            require(err.message[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t cut = find_cut(data, size), rest = cut < size ? cut + 4 : size;
    orr__space space;
    orr__tgraph g;
    orr_error err;
    require(orr__space_init(&space));
    orr__tgraph_init_named(&g, &space);
    if (orr__module_parse(&g, (orr_span){data, cut}, "m.csv", (orr_span){data + rest, size - rest},
                          "m.json", &err))
        require(err.message[0] && err.where.path[0]);
    else
        use(&g);
    orr__tgraph_fini(&g);
    orr__space_fini(&space);
    return 0;
}
