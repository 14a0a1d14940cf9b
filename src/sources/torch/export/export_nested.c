/* SPDX-License-Identifier: Apache-2.0 */
/* export_nested.c - graphs inside the graph.
 *
 * Those that run exactly once (a block under torch.no_grad()) are entered as if they stood there, with the names of
 * their inputs bound to the tensors that are passed.  Branches and loops are refused: how much they do is known only
 * when they run. */
#include "export_impl.h"

static orr_code bind(
    export_reader *r, export_scope *s, orr_json_value name, uint32_t tensor, orr_error *err)
{
    export_named *n = NULL;
    (void)r;
    const orr_code code = export_new(s, name, false, &n, err);
    if (code)
        return code;
    n->tensor = tensor;
    n->is_made = true;
    return ORR_OK;
}

/* Names that two lists of Arguments mean must be as many; those of the first have tensors in `from`, the others get
 * them in `to`. */
static orr_code bind_names(export_reader *r,
                           const export_scope *from,
                           size_t split,
                           export_scope *to,
                           orr_json_value node,
                           orr_error *err)
{
    uint32_t tensor = 0;
    orr_code code = ORR_OK;
    if (split * 2 != r->names.count) {
        const orr_where w = orr_json_where(node);
        return orr_fail(err, ORR_EINPUT, &w,
                        "a nested graph and the node that runs it differ in their tensors: %zu and "
                        "%zu",
                        split, r->names.count - split);
    }
    for (size_t i = 0; i < split && !code; i++) {
        code = export_find(from, r->names.at[i], &tensor, err);
        if (!code)
            code = bind(r, to, r->names.at[split + i], tensor, err);
    }
    return code;
}

/* The last arguments of the node are the inputs of the graph, as many as it has. */
static orr_code bind_inputs(export_reader *r,
                            const export_scope *s,
                            export_scope *inner,
                            const export_call *c,
                            orr_json_value graph,
                            orr_error *err)
{
    orr_json_value outer, list, input, arg;
    orr_code code = export_member(c->node, "inputs", ORR_JSON_ARRAY, &outer, err);
    if (code || (code = export_member(graph, "inputs", ORR_JSON_ARRAY, &list, err)))
        return code;
    const uint32_t given = orr_json_count(outer), wanted = orr_json_count(list);
    uint32_t skip = given > wanted ? given - wanted : 0;
    r->names.count = 0;
    for (orr_json_iter it = orr_json_iterate(outer); !code && orr_json_next_value(&it, &input);) {
        if (skip) {
            skip--;
            continue;
        }
        if (!(code = export_member(input, "arg", ORR_JSON_OBJECT, &arg, err)))
            code = export_collect(r, arg, err);
    }
    const size_t split = r->names.count;
    if (!code)
        code = export_each(r, list, export_collect, err);
    return code ? code : bind_names(r, s, split, inner, c->node, err);
}

static orr_code bind_outputs(export_reader *r,
                             export_scope *s,
                             const export_scope *inner,
                             const export_call *c,
                             orr_json_value graph,
                             orr_error *err)
{
    orr_json_value outer, list;
    orr_code code = export_member(c->node, "outputs", ORR_JSON_ARRAY, &outer, err);
    if (code || (code = export_member(graph, "outputs", ORR_JSON_ARRAY, &list, err)))
        return code;
    r->names.count = 0;
    if ((code = export_each(r, list, export_collect, err)))
        return code;
    const size_t split = r->names.count;
    if ((code = export_each(r, outer, export_collect, err)))
        return code;
    return bind_names(r, inner, split, s, c->node, err);
}

static orr_code enter_graph(
    export_reader *r, export_scope *s, const export_call *c, orr_json_value graph, orr_error *err)
{
    export_scope inner;
    orr_code code = export_scope_open(r, &inner, graph, err);
    if (code)
        return code;
    r->report->nested++;
    code = bind_inputs(r, s, &inner, c, graph, err);
    if (!code)
        code = export_nodes(r, &inner, graph, err);
    if (!code)
        code = bind_outputs(r, s, &inner, c, graph, err);
    export_scope_close(&inner);
    return code;
}

/* The graphs among the arguments: how many, and the last of them. */
static uint32_t count_graphs(orr_json_value node, orr_json_value *graph)
{
    orr_json_value inputs, input, arg, holder;
    uint32_t count = 0;
    if (!orr_json_find(node, "inputs", &inputs))
        return 0;
    for (orr_json_iter it = orr_json_iterate(inputs); orr_json_next_value(&it, &input);) {
        count += orr_json_find(input, "arg", &arg) && orr_json_find(arg, "as_graph", &holder) &&
                 orr_json_find(holder, "graph", graph);
    }
    return count;
}

static const struct {
    const char *name, *words; /* words NULL: its graph runs exactly once */
} nested[] = {
    {"wrap_with_set_grad_enabled", NULL},
    {"wrap_with_autocast", NULL},
    {"wrap", NULL},
    {"strict_mode", NULL},
    {"hints_wrapper", NULL},
    {"invoke_subgraph", NULL},
    {"invoke_quant", NULL},
    {"invoke_quant_packed", NULL},
    {"tag_activation_checkpoint", NULL},
    {"cond", "which branch runs depends on data; export the model with the condition decided"},
    {"while_loop",
     "how often the loop runs depends on data; export the model with a loop of fixed length"},
    {"scan", "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"associative_scan",
     "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"map", "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"map_impl",
     "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
};

/* "torch.ops.higher_order.NAME": done here, or not (*is_done false) when it is like any other operator. */
orr_code export_nested(
    export_reader *r, export_scope *s, export_call *c, bool *is_done, orr_error *err)
{
    static const char front[] = "higher_order.";
    const size_t f = sizeof front - 1;
    orr_json_value graph, v;
    *is_done = false;
    if (c->op.len <= f || memcmp(c->op.ptr, front, f) != 0)
        return ORR_OK;
    const orr_str name = {c->op.ptr + f, c->op.len - f};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        if (!orr_str_is(name, nested[i].name))
            continue;
        *is_done = true;
        if (nested[i].words)
            return export_fail(c->node, c->op, nested[i].words, err);
        if (count_graphs(c->node, &graph) == 1)
            return enter_graph(r, s, c, graph, err);
        return export_fail(c->node, c->op, "one nested graph is expected among its arguments", err);
    }
    /* auto_functionalized: an operator that writes its arguments, made into one that does not */
    if (export_argument(c->node, "_mutable_op", "as_operator", &v) ||
        export_argument(c->node, "", "as_operator", &v)) {
        orr_str op;
        const orr_code code = orr_json_get_str(v, &op, err);
        if (code)
            return code;
        c->op = export_op(op);
    }
    return ORR_OK;
}
