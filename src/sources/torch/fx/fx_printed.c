/* SPDX-License-Identifier: Apache-2.0 */
/* fx_printed.c - graphs as PyTorch's FX prints them: a list of passes, each a list of nodes.
 *
 *     [{"pass": "forward", "nodes": [{"name": "mm", "op": "call_function", "target": "aten.mm.default",
 *       "inputs": ["view", "t"], "args": "(view, t)", "val": {"shape": [64, 512], "dtype": "torch.float32"}}, ...]}, ...]
 *
 * There are values and no storages: a value gets its own, a view that of its input.  A placeholder
 * is a value of an earlier pass with the same name, else something that is there before the step.
 * Names of groups stand in the printed arguments; who is in them is nowhere, so each is all ranks.
 * All passes are one step of rank 0, which all ranks do. */
#include "fx_impl.h"

#include "base/formats/json.h"
#include "base/memory/intern.h"
#include "base/text/text.h"
#include "models/compute/operators/operator_cost.h"
#include "trace/dtypes.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct value {
    uint32_t first, count; /* tensors; 0: none */
} value;

typedef struct printed {
    orr_fx *c;
    fx_graph *g;
    orr_error *err;
    orr_intern *names, *ops, *groups;
    value *values; /* by name */
    size_t value_count, value_room;
    uint32_t *in;
    size_t in_count, in_room;
    uint32_t *out;
    size_t out_count, out_room;
} printed;

static orr_code fail_at(printed *p, orr_json_value v, const char *what)
{
    const orr_where at = orr_json_where(v);
    return orr_fail(p->err, ORR_EINPUT, &at, "%s", what);
}

static orr_code get_member(
    printed *p, orr_json_value v, const char *key, orr_json_type type, orr_json_value *out)
{
    if (orr_json_find(v, key, out) && orr_json_type_of(*out) == type)
        return ORR_OK;
    const orr_where at = orr_json_where(v);
    return orr_fail(p->err, ORR_EINPUT, &at, "\"%s\" is expected here, %s", key,
                    orr_json_type_name(type));
}

static orr_code get_text(printed *p, orr_json_value v, const char *key, orr_str *out)
{
    orr_json_value text;
    const orr_code code = get_member(p, v, key, ORR_JSON_STRING, &text);
    return code ? code : orr_json_get_str(text, out, p->err);
}

static orr_code number_of(printed *p, orr_str name, uint32_t *out)
{
    if (!orr_intern_add(p->names, name, out) ||
        !orr_grow(&p->values, &p->value_room, (size_t)*out + 1))
        return orr_no_memory(p->err);
    while (p->value_count <= *out)
        p->values[p->value_count++] = (value){0, 0};
    return ORR_OK;
}

/* ---- tensors ---- */

/* A tensor of this shape; storage FX_NONE: a new one. */
static orr_code add_tensor(
    printed *p, orr_json_value val, uint32_t storage, fx_kept kept, uint32_t *out)
{
    uint64_t shape[FX_DIMS_MOST];
    orr_json_value list, v;
    orr_str dtype;
    fx_tensor_draft t = {.shape = shape, .storage = storage, .byte = orr_json_byte(val)};
    orr_code code = get_member(p, val, "shape", ORR_JSON_ARRAY, &list);
    if (code || (code = get_text(p, val, "dtype", &dtype)))
        return code;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);) {
        if (t.rank == FX_DIMS_MOST)
            return fail_at(p, v, "a tensor has 64 dimensions at most");
        if (orr_json_type_of(v) == ORR_JSON_STRING)
            return fail_at(p, v, "a size that depends on data: give fixed shapes there");
        code = orr_json_get_u64(v, &shape[t.rank++], p->err);
    }
    t.element_bytes = orr__dtype_bytes(dtype);
    uint64_t bytes = t.element_bytes ? t.element_bytes : 1;
    for (uint32_t i = 0; i < t.rank && !code; i++) {
        if (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > INT64_MAX)
            return fail_at(p, val, "a tensor of more than 2^63 bytes");
    }
    if (!code && storage == FX_NONE)
        code = fx_add_storage(p->g, bytes, kept, &t.storage, p->err);
    return code ? code : fx_add_tensor(p->g, &t, out, p->err);
}

/* "val" is a tensor, a list of them, or something else in words. */
static orr_code add_values(
    printed *p, orr_json_value node, uint32_t storage, fx_kept kept, value *out)
{
    orr_json_value val, item;
    uint32_t number;
    orr_code code = ORR_OK;
    *out = (value){(uint32_t)p->g->tensor_count, 0};
    if (!orr_json_find(node, "val", &val))
        return ORR_OK;
    if (orr_json_type_of(val) == ORR_JSON_OBJECT) {
        out->count = 1;
        return add_tensor(p, val, storage, kept, &number);
    }
    if (orr_json_type_of(val) != ORR_JSON_ARRAY)
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(val); !code && orr_json_next_value(&it, &item);) {
        if (orr_json_type_of(item) != ORR_JSON_OBJECT)
            continue;
        code = add_tensor(p, item, storage, kept, &number);
        out->count++;
    }
    return code;
}

/* ---- arguments ---- */

/* The last text in quotes: of a collective, the name of its group. */
static bool last_quoted(orr_str args, orr_str *out)
{
    size_t end = args.len;
    while (end > 0 && args.ptr[end - 1] != '\'')
        end--;
    if (end < 2)
        return false;
    size_t first = end - 1;
    while (first > 0 && args.ptr[first - 1] != '\'')
        first--;
    *out = (orr_str){args.ptr + first, end - 1 - first};
    return first > 0;
}

/* "(x, 2, '5')": the first argument that is a whole number; of a broadcast, the root. */
static int64_t first_number(orr_str args)
{
    for (size_t i = 0; i + 2 < args.len; i++) {
        if (args.ptr[i] != ',' || args.ptr[i + 1] != ' ')
            continue;
        int64_t n = 0;
        size_t k = i + 2;
        for (; k < args.len && args.ptr[k] >= '0' && args.ptr[k] <= '9' && n < INT32_MAX; k++)
            n = n * 10 + (args.ptr[k] - '0');
        if (k > i + 2 && k < args.len && (args.ptr[k] == ',' || args.ptr[k] == ')'))
            return n;
    }
    return FX_NO_PEER;
}

/* A group that was not named yet is one more with all ranks, of its own family. */
static orr_code find_group(printed *p, orr_str name, uint32_t *out)
{
    const uint32_t before = orr_intern_count(p->groups);
    uint32_t number;
    if (!orr_intern_add(p->groups, name, &number))
        return orr_no_memory(p->err);
    *out = number + 1;
    if (number < before)
        return ORR_OK;
    uint32_t *ranks = orr_alloc(p->c->world_size, sizeof *ranks);
    for (uint32_t r = 0; ranks && r < p->c->world_size; r++)
        ranks[r] = r;
    const orr_code code = ranks ? fx_add_group(p->c, ranks, p->c->world_size, number + 1, 0, p->err)
                                : orr_no_memory(p->err);
    orr_free(ranks);
    return code;
}

static orr_code read_communication(printed *p,
                                   orr_json_value node,
                                   orr_str target,
                                   fx_node_draft *n)
{
    orr_str args = {0}, group;
    const bool is_wait = orr_str_has(target, ".wait_tensor");
    const bool is_comm = fx_is_comm_op(target);
    orr_json_value v;
    if (orr_json_find(node, "args", &v) && orr_json_type_of(v) == ORR_JSON_STRING) {
        const orr_code code = orr_json_get_str(v, &args, p->err);
        if (code)
            return code;
    }
    n->is_causal = orr_str_has(args, "is_causal=True") ||
                   (orr_str_has(target, "scaled_dot_product") && orr_str_has(args, ", True"));
    if (!is_comm || is_wait)
        return ORR_OK;
    if (!p->c->world_size)
        return fail_at(p, node,
                       "communication, but a printed graph does not say among how many ranks: give "
                       "--world-size");
    if (orr_str_has(target, ".broadcast"))
        n->peer = first_number(args);
    if (!last_quoted(args, &group))
        group = orr_str_of("");
    return find_group(p, group, &n->group);
}

/* ---- nodes ---- */

static orr_code add_op(printed *p, orr_str target, uint32_t *out)
{
    const uint32_t before = orr_intern_count(p->ops);
    if (!orr_intern_add(p->ops, target, out))
        return orr_no_memory(p->err);
    return *out < before ? ORR_OK : fx_add_text(p->g, FX_OPS, target, out, p->err);
}

static orr_code add_inputs(printed *p, orr_json_value node)
{
    orr_json_value inputs, v;
    orr_str name;
    uint32_t number;
    orr_code code = get_member(p, node, "inputs", ORR_JSON_ARRAY, &inputs);
    if (code)
        return code;
    p->in_count = 0;
    for (orr_json_iter it = orr_json_iterate(inputs); !code && orr_json_next_value(&it, &v);) {
        if ((code = orr_json_get_str(v, &name, p->err)))
            return code;
        if (!orr_intern_find(p->names, name, &number))
            return fail_at(p, v, "no node with this name comes before");
        const value *from = &p->values[number];
        if (!orr_grow(&p->in, &p->in_room, p->in_count + from->count))
            return orr_no_memory(p->err);
        for (uint32_t i = 0; i < from->count; i++)
            p->in[p->in_count++] = from->first + i;
    }
    return code;
}

static bool is_getitem(orr_str target)
{
    return orr_str_has(target, "getitem");
}

/* Does what comes out lie where the input lies?  By the table of costs, as nothing else says it. */
static bool is_view(orr_str target, size_t inputs)
{
    const operator_call call = {.name = target};
    return inputs && !orr_str_has(target, "empty") && !orr_str_has(target, ".new_") &&
           (is_getitem(target) || orr__operator_cost(&call).kind == OPERATOR_FREE);
}

/* getitem takes one of several values: the one with the number that stands in its arguments. */
static void pick_item(printed *p, orr_json_value node)
{
    orr_json_value v;
    orr_str args;
    if (p->in_count < 2 || !orr_json_find(node, "args", &v) ||
        orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &args, NULL))
        return;
    const int64_t item = first_number(args);
    if (item >= 0 && (size_t)item < p->in_count) {
        p->in[0] = p->in[item];
        p->in_count = 1;
    }
}

static orr_code add_call(printed *p, orr_json_value node, orr_str name, fx_phase phase)
{
    fx_node_draft n = {.module = FX_NONE,
                       .line = FX_NONE,
                       .phase = phase,
                       .group = FX_NONE,
                       .peer = FX_NO_PEER,
                       .tag = FX_NO_PEER,
                       .byte = orr_json_byte(node)};
    orr_str target;
    uint32_t number;
    value made;
    orr_code code = get_text(p, node, "target", &target);
    if (code || (code = add_inputs(p, node)) || (code = add_op(p, target, &n.op)) ||
        (code = read_communication(p, node, target, &n)) || (code = number_of(p, name, &number)))
        return code;
    if (is_getitem(target))
        pick_item(p, node);
    n.is_view = is_view(target, p->in_count);
    const uint32_t storage = n.is_view ? p->g->tensors[p->in[0]].storage : FX_NONE;
    if ((code = add_values(p, node, storage, FX_KEPT_NOT, &made)))
        return code;
    p->values[number] = made;
    p->out_count = 0;
    if (!orr_grow(&p->out, &p->out_room, (size_t)made.count + 1) ||
        !orr_grow(&p->in, &p->in_room, 1))
        return orr_no_memory(p->err);
    for (uint32_t i = 0; i < made.count; i++)
        p->out[p->out_count++] = made.first + i;
    n.in = p->in;
    n.in_count = p->in_count;
    n.out = p->out;
    n.out_count = p->out_count;
    return fx_add_node(p->g, &n, p->err);
}

/* A value of an earlier pass keeps its tensors. */
static orr_code add_placeholder(printed *p, orr_json_value node, orr_str name, bool is_first)
{
    uint32_t number;
    orr_code code = number_of(p, name, &number);
    if (code || (!is_first && p->values[number].count))
        return code;
    value made;
    code = add_values(p, node, FX_NONE, is_first ? FX_KEPT_PARAMETER : FX_KEPT_NOT, &made);
    if (!code)
        p->values[number] = made;
    return code;
}

static orr_code add_node(printed *p, orr_json_value node, fx_phase phase, bool is_first)
{
    orr_str name, op;
    if (orr_json_type_of(node) != ORR_JSON_OBJECT)
        return fail_at(p, node, "a node is an object");
    orr_code code = get_text(p, node, "op", &op);
    if (code || (code = get_text(p, node, "name", &name)))
        return code;
    if (orr_str_is(op, "placeholder") || orr_str_is(op, "get_attr"))
        return add_placeholder(p, node, name, is_first);
    if (orr_str_is(op, "output"))
        return ORR_OK;
    if (orr_str_is(op, "call_function"))
        return add_call(p, node, name, phase);
    return fail_at(
        p, node,
        "\"op\" is \"placeholder\", \"get_attr\", \"call_function\" or \"output\": print the "
        "graph after it was lowered to operators");
}

static fx_phase phase_of(orr_str pass)
{
    return orr_str_has(pass, "backward")    ? FX_BACKWARD
           : orr_str_has(pass, "optimizer") ? FX_OPTIMIZER
                                            : FX_FORWARD;
}

static orr_code add_pass(printed *p, orr_json_value pass, bool is_first)
{
    orr_json_value nodes, node;
    orr_str name;
    if (orr_json_type_of(pass) != ORR_JSON_OBJECT)
        return fail_at(p, pass, "a pass is an object with \"pass\" and \"nodes\"");
    orr_code code = get_text(p, pass, "pass", &name);
    if (!code)
        code = get_member(p, pass, "nodes", ORR_JSON_ARRAY, &nodes);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(nodes); !code && orr_json_next_value(&it, &node);)
        code = add_node(p, node, phase_of(name), is_first);
    return code;
}

/* ---- the whole ---- */

static orr_code add_world(printed *p)
{
    const uint32_t size = p->c->world_size ? p->c->world_size : 1;
    uint32_t *ranks = orr_alloc(size, sizeof *ranks);
    for (uint32_t r = 0; ranks && r < size; r++)
        ranks[r] = r;
    const orr_code code =
        ranks ? fx_add_group(p->c, ranks, size, 0, 0, p->err) : orr_no_memory(p->err);
    orr_free(ranks);
    return code ? code : fx_add_graph(p->c, 0, 0, &p->g, p->err);
}

/* Only names of groups are printed: who is in them is a guess, which is said. */
static orr_code note_groups(printed *p)
{
    const uint32_t count = orr_intern_count(p->groups);
    char text[200];
    if (count == 0 || p->c->world_size < 2)
        return ORR_OK;
    const int n =
        snprintf(text, sizeof text,
                 "the graph does not say which ranks are in its %u process group%s: taken "
                 "as all %u ranks; 'orrery capture' records them",
                 (unsigned)count, count == 1 ? "" : "s", (unsigned)p->c->world_size);
    return fx_add_note(p->c, (orr_str){text, (size_t)n}, 1, p->err);
}

static orr_code read_all(printed *p, orr_json *j)
{
    orr_json_value root, pass;
    orr_json_item item;
    bool is_first = true;
    orr_code code = orr_json_load(j, &root, p->err);
    if (code || (code = add_world(p)))
        return code;
    if (orr_json_count(root) == 0)
        return fail_at(p, root, "a list without passes");
    for (orr_json_iter it = orr_json_iterate(root); !code && orr_json_next_value(&it, &pass);) {
        code = add_pass(p, pass, is_first);
        is_first = false;
    }
    if (code)
        return code;
    p->c->world_size = p->c->world_size ? p->c->world_size : 1;
    if ((code = note_groups(p)))
        return code;
    code = fx_check(p->c, p->err);
    if (code == ORR_EINPUT && p->err)
        p->err->where = orr_json_place(j, p->err->where.byte);
    if (code)
        return code;
    code = orr_json_next(j, &item, p->err);
    const orr_where at = orr_json_place(j, item.byte);
    return code == ORR_END ? ORR_OK
           : code          ? code
                  : orr_fail(p->err, ORR_EINPUT, &at, "something follows the list of passes");
}

orr_code fx_read_printed(orr_json *j, orr_fx *c, orr_error *err)
{
    printed p = {.c = c,
                 .err = err,
                 .names = orr_intern_create(),
                 .ops = orr_intern_create(),
                 .groups = orr_intern_create()};
    const orr_code code = p.names && p.ops && p.groups ? read_all(&p, j) : orr_no_memory(err);
    orr_intern_destroy(p.names);
    orr_intern_destroy(p.ops);
    orr_intern_destroy(p.groups);
    orr_free(p.values);
    orr_free(p.in);
    orr_free(p.out);
    return code;
}
