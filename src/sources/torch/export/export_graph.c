/* SPDX-License-Identifier: Apache-2.0 */
/* export_graph.c - the nodes of an exported graph, one after the other.
 *
 * Invariant: a node reads what an earlier one made, so the order of the file is an order of
 * execution.
 * Cost: linear in the text. */
#include "export_impl.h"

/* Graphs hold calls, and calls graphs. */
static orr_code read_nested(
    export_reader *r, export_scope *s, export_call *c, bool *is_done, orr_error *err);

/* ---- texts ---- */

static orr_code text_number(
    export_reader *r, fx_texts table, orr_str text, uint32_t *out, orr_error *err)
{
    const uint32_t before = orr_intern_count(r->texts[table]);
    if (!orr_intern_add(r->texts[table], text, out))
        return orr_no_memory(err);
    return *out == before ? fx_add_text(r->g, table, text, out, err) : ORR_OK;
}

/* What a text of the node's metadata becomes; FX_NONE when there is none. */
static orr_code note_place(export_reader *r,
                           orr_json_value node,
                           const char *key,
                           fx_texts table,
                           uint32_t *out,
                           orr_error *err)
{
    orr_json_value metadata, v;
    orr_str text;
    *out = FX_NONE;
    if (!orr_json_find(node, "metadata", &metadata) || !orr_json_find(metadata, key, &v) ||
        orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &text, NULL))
        return ORR_OK;
    r->text.len = 0;
    if (table == FX_LINES)
        export_line(text, &r->text);
    else
        export_module(text, &r->text);
    if (r->text.failed)
        return orr_no_memory(err);
    if (r->text.len == 0)
        return ORR_OK;
    return text_number(r, table, (orr_str){(const char *)r->text.ptr, r->text.len}, out, err);
}

/* ---- one operator ---- */

static bool is_true(orr_json_value node, const char *name)
{
    orr_json_value v;
    bool is = false;
    return export_argument(node, name, "as_bool", &v) && orr_json_type_of(v) == ORR_JSON_BOOL &&
           !orr_json_get_bool(v, &is, NULL) && is;
}

static orr_str text_of(orr_json_value node, const char *name)
{
    orr_json_value v;
    orr_str text;
    if (!export_argument(node, name, "as_string", &v) || orr_json_type_of(v) != ORR_JSON_STRING ||
        orr_json_get_str(v, &text, NULL))
        return (orr_str){NULL, 0};
    return text;
}

static orr_code read_inputs(export_reader *r, const export_scope *s, export_call *c, orr_error *err)
{
    orr_json_value inputs, input, arg;
    uint32_t tensor = 0;
    orr_code code = export_member(c->node, "inputs", ORR_JSON_ARRAY, &inputs, err);
    if (code)
        return code;
    r->in.count = c->first = 0;
    for (orr_json_iter it = orr_json_iterate(inputs); !code && orr_json_next_value(&it, &input);) {
        r->names.count = 0;
        if ((code = export_member(input, "arg", ORR_JSON_OBJECT, &arg, err)) ||
            (code = export_collect(r, arg, err)))
            break;
        for (size_t i = 0; i < r->names.count && !code; i++) {
            code = export_find(s, r->names.at[i], &tensor, err);
            if (!code)
                code = export_ref(&r->in, tensor, err);
        }
        if (c->first == 0)
            c->first = r->in.count;
    }
    return code;
}

/* Names of all outputs, in r->names. */
static orr_code collect_outputs(export_reader *r, orr_json_value node, orr_error *err)
{
    orr_json_value outputs;
    const orr_code code = export_member(node, "outputs", ORR_JSON_ARRAY, &outputs, err);
    r->names.count = 0;
    return code ? code : export_each(r, outputs, export_collect, err);
}

static bool is_equal_form(const fx_graph *g, const fx_tensor *t, const export_form *f)
{
    const uint64_t *shape = fx_shape(g, t), *stride = fx_stride(g, t);
    if (t->rank != f->rank || t->element_bytes != f->element_bytes)
        return false;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (shape[d] != f->shape[d] || (shape[d] != 1 && stride && stride[d] != f->stride[d]))
            return false;
    }
    return true;
}

/* Type and device of the first input, by its own entry. */
static bool is_same_kind(const export_scope *s, const export_call *c, const export_form *f)
{
    orr_json_value inputs, input, arg, tensor, key, there, here;
    orr_str name;
    uint32_t number;
    if (!orr_json_find(c->node, "inputs", &inputs))
        return false;
    orr_json_iter it = orr_json_iterate(inputs);
    if (!orr_json_next_value(&it, &input) || !orr_json_find(input, "arg", &arg) ||
        !orr_json_find(arg, "as_tensor", &tensor) || !orr_json_find(tensor, "name", &key) ||
        orr_json_get_str(key, &name, NULL) || !orr_intern_find(s->names, name, &number) ||
        !s->at[number].has_meta)
        return false;
    const orr_json_value meta = s->at[number].meta;
    if (!orr_json_find(meta, "dtype", &there) || !orr_json_find(f->meta, "dtype", &here) ||
        !orr_str_equal(orr_json_raw(there), orr_json_raw(here)))
        return false;
    return orr_json_find(meta, "device", &there) && orr_json_find(f->meta, "device", &here) &&
           orr_str_equal(orr_json_raw(there), orr_json_raw(here));
}

/* Does this output lie in the memory of the first input? */
static bool shares(const export_reader *r,
                   const export_scope *s,
                   const export_call *c,
                   const export_form *f)
{
    if (r->in.count == 0)
        return false;
    const fx_graph *g = r->g;
    const fx_tensor *t = &g->tensors[r->in.at[0]];
    switch (c->alias) {
    case EXPORT_NEW:
        return false;
    case EXPORT_VIEW:
    case EXPORT_WRITES:
        return true;
    case EXPORT_RESHAPE:
        return export_can_view(fx_shape(g, t), fx_stride(g, t), t->rank, f->shape, f->rank);
    case EXPORT_SAME:
        return is_equal_form(g, t, f) && !is_true(c->node, "copy") && is_same_kind(s, c, f);
    case EXPORT_DROPOUT:
        return !is_true(c->node, "train");
    }
    return false;
}

/* An output, whose name is number i of r->names, in its own memory or that of an input.  What is
 * written in place and looks as before is the tensor that it was. */
static orr_code make_output(
    export_reader *r, export_scope *s, export_call *c, size_t i, orr_error *err)
{
    export_named *n = NULL;
    export_form f;
    orr_code code = export_new(s, r->names.at[i], true, &n, err);
    if (code || (code = export_read_form(r, n, &f, err)))
        return code;
    const bool is_written = c->alias == EXPORT_WRITES, is_shared = shares(r, s, c, &f);
    const uint32_t from = is_shared ? r->in.at[is_written && i < c->first ? i : 0] : FX_NONE;
    if (is_written && is_shared && is_equal_form(r->g, &r->g->tensors[from], &f))
        n->tensor = from;
    else
        code = export_tensor(r, &f, is_shared ? r->g->tensors[from].storage : FX_NONE, FX_KEPT_NOT,
                             &n->tensor, err);
    n->is_made = true;
    c->draft.is_view = is_shared && !is_written;
    return code ? code : export_ref(&r->out, n->tensor, err);
}

static orr_code make_outputs(export_reader *r, export_scope *s, export_call *c, orr_error *err)
{
    orr_code code = ORR_OK;
    r->out.count = 0;
    for (size_t i = 0; i < r->names.count && !code; i++)
        code = make_output(r, s, c, i, err);
    return code;
}

/* The loss is the last thing of the forward pass. */
static void note_loss(export_reader *r)
{
    orr_str name;
    for (size_t i = 0; i < r->names.count && r->loss.len; i++) {
        if (!orr_json_get_str(r->names.at[i], &name, NULL) && orr_str_equal(name, r->loss))
            r->phase = FX_BACKWARD;
    }
}

/* ---- communication ---- */

/* A collective names its process group; of these the file knows nothing but that "0" is all
 * ranks. */
static orr_code read_group(export_reader *r, export_call *c, orr_error *err)
{
    orr_json_value v;
    orr_str name;
    int64_t size = 0;
    orr_code code;
    if (!export_argument(c->node, "group_name", "as_string", &v))
        return ORR_OK;
    if ((code = orr_json_get_str(v, &name, err)))
        return code;
    if (!orr_str_is(name, "0"))
        return export_fail(c->node, c->op,
                           "the archive does not say which ranks are in its process group; capture "
                           "the model with 'orrery capture' instead",
                           err);
    if (r->fx->world_size == 1)
        return export_fail(c->node, c->op,
                           "the program communicates: say among how many ranks with "
                           "--world-size N",
                           err);
    if (export_argument(c->node, "group_size", "as_int", &v)) {
        if ((code = orr_json_get_i64(v, &size, err)))
            return code;
        if (size != (int64_t)r->fx->world_size)
            return export_fail(c->node, c->op,
                               "its process group has another size than --world-size says", err);
    }
    c->draft.group = 0;
    return ORR_OK;
}

/* ---- nodes ---- */

static orr_code add_node(export_reader *r, export_call *c, orr_error *err)
{
    fx_node_draft *d = &c->draft;
    orr_code code;
    if ((code = text_number(r, FX_OPS, c->op, &d->op, err)) ||
        (code = note_place(r, c->node, "nn_module_stack", FX_MODULES, &d->module, err)) ||
        (code = note_place(r, c->node, "stack_trace", FX_LINES, &d->line, err)))
        return code;
    d->phase = r->phase;
    d->in = r->in.at;
    d->in_count = r->in.count;
    d->out = r->out.at;
    d->out_count = r->out.count;
    d->writes = r->in.at; /* those of the first argument come first */
    d->writes_count = c->alias == EXPORT_WRITES ? c->first : 0;
    d->is_causal = is_true(c->node, "is_causal");
    d->is_transposed = is_true(c->node, "transposed");
    d->equation = text_of(c->node, "equation");
    d->byte = orr_json_byte(c->node);
    return fx_add_node(r->g, d, err);
}

static orr_code read_node(export_reader *r, export_scope *s, orr_json_value node, orr_error *err)
{
    export_call c = {.node = node,
                     .draft = {.group = FX_NONE, .peer = FX_NO_PEER, .tag = FX_NO_PEER}};
    orr_json_value v;
    orr_str target;
    bool is_done = false;
    orr_code code = export_member(node, "target", ORR_JSON_STRING, &v, err);
    if (code || (code = orr_json_get_str(v, &target, err)))
        return code;
    r->report->nodes++;
    c.op = export_op(target);
    if (c.op.len == 0)
        return export_fail(node, c.op, "an operator without a name", err);
    if ((code = read_nested(r, s, &c, &is_done, err)) || is_done)
        return code;
    c.alias = export_alias_of(c.op);
    if ((code = read_inputs(r, s, &c, err)) || (code = collect_outputs(r, node, err)))
        return code;
    if (export_is_bookkeeping(c.op) && r->names.count == 0)
        return ORR_OK;
    if ((code = read_group(r, &c, err)) || (code = make_outputs(r, s, &c, err)) ||
        (code = add_node(r, &c, err)))
        return code;
    note_loss(r);
    return ORR_OK;
}

orr_code export_nodes(export_reader *r, export_scope *s, orr_json_value graph, orr_error *err)
{
    orr_json_value nodes, node;
    orr_code code = export_member(graph, "nodes", ORR_JSON_ARRAY, &nodes, err);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(nodes); !code && orr_json_next_value(&it, &node);)
        code = read_node(r, s, node, err);
    return code;
}

orr_code export_extra(
    export_reader *r, const char *op, const fx_node_draft *like, orr_json_value at, orr_error *err)
{
    fx_node_draft d = *like;
    const orr_code code = text_number(r, FX_OPS, orr_str_of(op), &d.op, err);
    if (code)
        return code;
    d.module = d.line = d.group = FX_NONE;
    d.peer = d.tag = FX_NO_PEER;
    d.phase = r->phase;
    d.byte = orr_json_byte(at);
    return fx_add_node(r->g, &d, err);
}

/* ==== graphs inside the graph.
 *
 * Those that run exactly once (a block under torch.no_grad()) are entered as if they stood there,
 * with the names of their inputs bound to the tensors that are passed.  Branches and loops are
 * refused: how much they do is known only when they run. */

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

/* Names that two lists of Arguments mean must be as many; those of the first have tensors in
 * `from`, the others get them in `to`. */
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

/* "torch.ops.higher_order.NAME": done here, or not (*is_done false) when it is like any other
 * operator. */
/* "higher_order.NAME": done here, or not (*is_done false) when it is like any other operator. */
static orr_code read_nested(
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
