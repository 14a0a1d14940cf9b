/* SPDX-License-Identifier: Apache-2.0 */
/* fx_read.c - the file that orrery_capture.py writes (docs/format/capture.md).
 *
 * Tensors and nodes, of which there are many, are streamed; everything else is small. Keys may come
 * in any order, so numbers are checked at the end; unknown keys are skipped.
 * Cost: linear in the file; memory for what is kept of it, and for one tensor or node. */
#include "fx_impl.h"

#include "base/dtypes.h"
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "models/compute/operators/operator_cost.h"

#include <inttypes.h>
#include <stdio.h>

/* ==== graphs as PyTorch's FX prints them: a list of passes, each a list of nodes.
 *
 *     [{"pass": "forward", "nodes": [{"name": "mm", "op": "call_function", "target": "aten.mm.default",
 *       "inputs": ["view", "t"], "args": "(view, t)", "val": {"shape": [64, 512], "dtype": "torch.float32"}}, ...]}, ...]
 *
 * There are values but no storages: a value gets its own, a view that of its input.  A placeholder
 * is a value of an earlier pass with the same name, else something that exists before the step.
 * Names of groups are in the printed arguments, their members are not, so each is all ranks. All
 * passes are one step of rank 0, which all ranks execute. */

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

static orr_code fail_node(printed *p, orr_json_value v, const char *what)
{
    return orr_fail(p->err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "%s", what);
}

static orr_code get_member(
    printed *p, orr_json_value v, const char *key, orr_json_type type, orr_json_value *out)
{
    if (orr_json_find(v, key, out) && orr_json_type_of(*out) == type)
        return ORR_OK;
    return orr_fail(p->err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "\"%s\" is expected here, %s",
                    key, orr_json_type_name(type));
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
            return fail_node(p, v, "a tensor has at most 64 dimensions");
        if (orr_json_type_of(v) == ORR_JSON_STRING)
            return fail_node(p, v, "a size that depends on data: give fixed shapes there");
        code = orr_json_get_u64(v, &shape[t.rank++], p->err);
    }
    t.element_bytes = orr__dtype_torch_bytes(dtype);
    uint64_t bytes = t.element_bytes ? t.element_bytes : 1;
    for (uint32_t i = 0; i < t.rank && !code; i++) {
        if (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > INT64_MAX)
            return fail_node(p, val, "a tensor of more than 2^63 bytes");
    }
    if (!code && storage == FX_NONE)
        code = fx_add_storage(p->g, bytes, kept, &t.storage, p->err);
    return code ? code : fx_add_tensor(p->g, &t, out, p->err);
}

/* "val" is a tensor, a list of them, or some other text. */
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

/* The last quoted string: the name of a collective's group. */
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

/* "(x, 2, '5')": the first integer argument; of a broadcast, the root. */
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

/* A new name is a new group of all ranks, of its own family. */
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
        return fail_node(
            p, node,
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
            return fail_node(p, v, "no node with this name comes before");
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

/* Does the output share the input's memory?  Only the table of costs tells. */
static bool is_view(orr_str target, size_t inputs)
{
    const operator_call call = {.name = target};
    return inputs && !orr_str_has(target, "empty") && !orr_str_has(target, ".new_") &&
           (is_getitem(target) || orr__operator_cost(&call).kind == OPERATOR_FREE);
}

/* getitem selects one of several values, by the index in its arguments. */
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
        return fail_node(p, node, "a node is an object");
    orr_code code = get_text(p, node, "op", &op);
    if (code || (code = get_text(p, node, "name", &name)))
        return code;
    if (orr_str_is(op, "placeholder") || orr_str_is(op, "get_attr"))
        return add_placeholder(p, node, name, is_first);
    if (orr_str_is(op, "output"))
        return ORR_OK;
    if (orr_str_is(op, "call_function"))
        return add_call(p, node, name, phase);
    return fail_node(
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
        return fail_node(p, pass, "a pass is an object with \"pass\" and \"nodes\"");
    orr_code code = get_text(p, pass, "pass", &name);
    if (!code)
        code = get_member(p, pass, "nodes", ORR_JSON_ARRAY, &nodes);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(nodes); !code && orr_json_next_value(&it, &node);)
        code = add_node(p, node, phase_of(name), is_first);
    return code;
}

/* ---- everything ---- */

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

/* Only names of groups are printed: their members are a guess, which is reported. */
static orr_code note_groups(printed *p)
{
    const uint32_t count = orr_intern_count(p->groups);
    char text[200];
    if (count == 0 || p->c->world_size < 2)
        return ORR_OK;
    const int n =
        snprintf(text, sizeof text,
                 "the graph does not say which ranks are in its %u process group%s: all %u ranks "
                 "assumed; 'orrery capture' records them",
                 (unsigned)count, count == 1 ? "" : "s", (unsigned)p->c->world_size);
    return fx_add_note(p->c, (orr_str){text, (size_t)n}, 1, p->err);
}

static orr_code read_lines(printed *p, orr_json *j)
{
    orr_json_value root, pass;
    orr_json_item item;
    bool is_first = true;
    orr_code code = orr_json_load(j, &root, p->err);
    if (code || (code = add_world(p)))
        return code;
    if (orr_json_count(root) == 0)
        return fail_node(p, root, "a list without passes");
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
    return code == ORR_END ? ORR_OK
           : code          ? code
                           : orr_fail(p->err, ORR_EINPUT, ORR_AT(orr_json_place(j, item.byte)),
                                      "unexpected data after the list of passes");
}

static orr_code read_printed(orr_json *j, orr_fx *c, orr_error *err)
{
    printed p = {.c = c,
                 .err = err,
                 .names = orr_intern_create(),
                 .ops = orr_intern_create(),
                 .groups = orr_intern_create()};
    const orr_code code = p.names && p.ops && p.groups ? read_lines(&p, j) : orr_no_memory(err);
    orr_intern_destroy(p.names);
    orr_intern_destroy(p.ops);
    orr_intern_destroy(p.groups);
    orr_free(p.values);
    orr_free(p.in);
    orr_free(p.out);
    return code;
}

enum { VERSION = 1 };

typedef struct pair {
    uint32_t storage;
    fx_kept kept;
    uint64_t byte;
} pair;

typedef struct reader {
    orr_json *j;
    orr_fx *c;
    fx_graph *g;
    orr_error *err;
    uint32_t *numbers; /* scratch: a list of tensors or ranks */
    size_t number_count, number_room;
    pair *pairs; /* "kept" of the current graph */
    size_t pair_count, pair_room;
    fx_texts table; /* of the texts that are being read */
    bool has_rank;
} reader;

static orr_code fail_at(reader *r, uint64_t byte, const char *what)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_place(r->j, byte)), "%s", what);
}

/* ---- values ---- */

static orr_code get_number(reader *r, orr_json_value v, uint32_t *out)
{
    uint64_t number;
    const orr_code code = orr_json_get_u64(v, &number, r->err);
    if (code)
        return code;
    if (number >= FX_NONE)
        return fail_at(r, orr_json_byte(v), "a number below 4,294,967,295 is expected");
    *out = (uint32_t)number;
    return ORR_OK;
}

static orr_code expect(reader *r, orr_json_value v, orr_json_type type, const char *what)
{
    if (orr_json_type_of(v) == type)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "%s is %s; %s is expected", what,
                    orr_json_type_name(orr_json_type_of(v)), orr_json_type_name(type));
}

/* Appends to the scratch list. */
static orr_code get_numbers(reader *r, orr_json_value v, const char *what, size_t *count)
{
    const size_t before = r->number_count;
    orr_json_value item;
    orr_code code = expect(r, v, ORR_JSON_ARRAY, what);
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_value(&it, &item);) {
        if (!orr_grow(&r->numbers, &r->number_room, r->number_count + 1))
            return orr_no_memory(r->err);
        code = get_number(r, item, &r->numbers[r->number_count++]);
    }
    *count = r->number_count - before;
    return code;
}

static orr_code get_dims(
    reader *r, orr_json_value v, const char *what, uint64_t *dims, uint32_t *count)
{
    orr_json_value item;
    orr_code code = expect(r, v, ORR_JSON_ARRAY, what);
    *count = 0;
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_value(&it, &item);) {
        if (*count == FX_DIMS_MOST)
            return fail_at(r, orr_json_byte(item), "a tensor has at most 64 dimensions");
        if (orr_json_type_of(item) == ORR_JSON_STRING)
            return fail_at(
                r, orr_json_byte(item),
                "a size that depends on data: give fixed shapes there and capture again");
        code = orr_json_get_u64(item, &dims[(*count)++], r->err);
    }
    return code;
}

/* Calls `read` for each item of a small list. */
static orr_code read_items(reader *r, const char *what, orr_code (*read)(reader *, orr_json_value))
{
    orr_json_value list, item;
    orr_code code = orr_json_load(r->j, &list, r->err);
    if (!code)
        code = expect(r, list, ORR_JSON_ARRAY, what);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &item);)
        code = read(r, item);
    return code;
}

/* ---- before the graphs ---- */

static orr_code read_group(reader *r, orr_json_value group)
{
    orr_json_value ranks, family;
    uint32_t number = 0;
    size_t count;
    orr_code code = expect(r, group, ORR_JSON_OBJECT, "a group");
    if (code)
        return code;
    if (!orr_json_find(group, "ranks", &ranks) || !orr_json_find(group, "family", &family))
        return fail_at(r, orr_json_byte(group), "a group has \"ranks\" and \"family\"");
    r->number_count = 0;
    if ((code = get_numbers(r, ranks, "\"ranks\"", &count)) ||
        (code = get_number(r, family, &number)))
        return code;
    return fx_add_group(r->c, r->numbers, count, number, orr_json_byte(group), r->err);
}

static orr_code read_note(reader *r, orr_json_value note)
{
    orr_json_value v;
    orr_str text;
    uint64_t count = 1;
    orr_code code = expect(r, note, ORR_JSON_OBJECT, "a note");
    if (code)
        return code;
    if (!orr_json_find(note, "text", &v))
        return fail_at(r, orr_json_byte(note), "a note has \"text\"");
    if ((code = orr_json_get_str(v, &text, r->err)))
        return code;
    if (orr_json_find(note, "count", &v) && (code = orr_json_get_u64(v, &count, r->err)))
        return code;
    return fx_add_note(r->c, text, count, r->err);
}

/* ---- the tables of a graph ---- */

static orr_code read_text(reader *r, orr_json_value v)
{
    orr_str text;
    uint32_t number;
    const orr_code code = orr_json_get_str(v, &text, r->err);
    return code ? code : fx_add_text(r->g, r->table, text, &number, r->err);
}

static orr_code read_storage(reader *r, orr_json_value v)
{
    uint64_t bytes;
    uint32_t number;
    const orr_code code = orr_json_get_u64(v, &bytes, r->err);
    if (code)
        return code;
    if (bytes > INT64_MAX)
        return fail_at(r, orr_json_byte(v), "a storage has less than 2^63 bytes");
    return fx_add_storage(r->g, bytes, FX_KEPT_NOT, &number, r->err);
}

static orr_code read_pair(reader *r, orr_json_value v)
{
    static const char *const words[] = {"", "parameter", "buffer", "state"};
    orr_json_value number, word;
    orr_json_iter it = orr_json_iterate(v);
    orr_str text;
    pair p = {.byte = orr_json_byte(v)};
    if (orr_json_type_of(v) != ORR_JSON_ARRAY || orr_json_count(v) != 2)
        return fail_at(r, p.byte, "an entry of \"kept\" is a pair: a storage and why it is kept");
    orr_json_next_value(&it, &number);
    orr_json_next_value(&it, &word);
    orr_code code = get_number(r, number, &p.storage);
    if (code || (code = orr_json_get_str(word, &text, r->err)))
        return code;
    for (int k = FX_KEPT_PARAMETER; k <= FX_KEPT_STATE; k++) {
        if (orr_str_is(text, words[k]))
            p.kept = (fx_kept)k;
    }
    if (p.kept == FX_KEPT_NOT)
        return fail_at(r, orr_json_byte(word),
                       "\"parameter\", \"buffer\" or \"state\" is expected");
    return orr_push(r->pairs, r->pair_count, r->pair_room, p) ? ORR_OK : orr_no_memory(r->err);
}

/* ---- tensors ---- */

static orr_code read_tensor(reader *r, orr_json_value tensor)
{
    uint64_t shape[FX_DIMS_MOST], stride[FX_DIMS_MOST];
    fx_tensor_draft t = {.shape = shape, .storage = FX_NONE, .byte = orr_json_byte(tensor)};
    uint32_t strides = 0, number;
    bool has_shape = false;
    orr_json_value v;
    orr_str key, dtype = {0};
    orr_code code = expect(r, tensor, ORR_JSON_OBJECT, "a tensor");
    for (orr_json_iter it = orr_json_iterate(tensor);
         !code && orr_json_next_member(&it, &key, &v);) {
        if (orr_str_is(key, "shape")) {
            code = get_dims(r, v, "\"shape\"", shape, &t.rank);
            has_shape = true;
        } else if (orr_str_is(key, "stride"))
            code = get_dims(r, v, "\"stride\"", stride, &strides);
        else if (orr_str_is(key, "dtype"))
            code = orr_json_get_str(v, &dtype, r->err);
        else if (orr_str_is(key, "offset"))
            code = orr_json_get_u64(v, &t.offset, r->err);
        else if (orr_str_is(key, "storage"))
            code = get_number(r, v, &t.storage);
    }
    if (code)
        return code;
    if (!has_shape || t.storage == FX_NONE || !dtype.len)
        return fail_at(r, t.byte, "a tensor has \"shape\", \"dtype\" and \"storage\"");
    if (strides && strides != t.rank)
        return fail_at(r, t.byte, "\"shape\" and \"stride\" are of different lengths");
    t.stride = strides ? stride : NULL;
    t.element_bytes = orr__dtype_torch_bytes(dtype);
    return fx_add_tensor(r->g, &t, &number, r->err);
}

/* ---- nodes ---- */

static orr_code read_phase(reader *r, orr_json_value v, fx_phase *out)
{
    static const char *const words[] = {"setup", "forward", "backward", "optimizer"};
    orr_str text;
    const orr_code code = orr_json_get_str(v, &text, r->err);
    if (code)
        return code;
    for (int k = FX_SETUP; k <= FX_OPTIMIZER; k++) {
        if (orr_str_is(text, words[k])) {
            *out = (fx_phase)k;
            return ORR_OK;
        }
    }
    return fail_at(r, orr_json_byte(v),
                   "a phase is \"forward\", \"backward\", \"optimizer\" or \"setup\"");
}

/* The arguments that define communication; the others do not matter here.  Other operators may use
 * the same names for something else: fx_check removes those. */
static orr_code read_args(reader *r, orr_json_value args, fx_node_draft *n)
{
    orr_json_value v;
    orr_str key;
    orr_code code = expect(r, args, ORR_JSON_OBJECT, "\"args\"");
    for (orr_json_iter it = orr_json_iterate(args); !code && orr_json_next_member(&it, &key, &v);) {
        const orr_json_type type = orr_json_type_of(v);
        if (orr_str_is(key, "is_causal") && type == ORR_JSON_BOOL)
            code = orr_json_get_bool(v, &n->is_causal, r->err);
        else if (orr_str_is(key, "transposed") && type == ORR_JSON_BOOL)
            code = orr_json_get_bool(v, &n->is_transposed, r->err);
        else if (orr_str_is(key, "equation") && type == ORR_JSON_STRING)
            code = orr_json_get_str(v, &n->equation, r->err);
        else if (type != ORR_JSON_INT)
            continue;
        else if (orr_str_is(key, "group"))
            code = get_number(r, v, &n->group);
        else if (orr_str_is(key, "dst") || orr_str_is(key, "src") || orr_str_is(key, "root_rank"))
            code = orr_json_get_i64(v, &n->peer, r->err);
        else if (orr_str_is(key, "tag"))
            code = orr_json_get_i64(v, &n->tag, r->err);
    }
    return code;
}

/* Lists of a node in the scratch list. */
enum { LIST_IN, LIST_OUT, LIST_WRITES, NODE_LISTS };

static orr_code read_view(reader *r, orr_json_value v, fx_node_draft *n)
{
    uint64_t number = 0;
    if (orr_json_type_of(v) == ORR_JSON_BOOL)
        return orr_json_get_bool(v, &n->is_view, r->err);
    const orr_code code = orr_json_get_u64(v, &number, r->err);
    n->is_view = number != 0;
    return code;
}

static orr_code read_member(
    reader *r, orr_str key, orr_json_value v, fx_node_draft *n, size_t at[NODE_LISTS])
{
    static const char *const names[] = {"in", "out", "writes"};
    static const char *const whats[] = {"\"in\"", "\"out\"", "\"writes\""};
    size_t *counts[] = {&n->in_count, &n->out_count, &n->writes_count};
    for (int i = 0; i < NODE_LISTS; i++) {
        if (!orr_str_is(key, names[i]))
            continue;
        at[i] = r->number_count;
        return get_numbers(r, v, whats[i], counts[i]);
    }
    if (orr_str_is(key, "op"))
        return get_number(r, v, &n->op);
    if (orr_str_is(key, "module"))
        return get_number(r, v, &n->module);
    if (orr_str_is(key, "line"))
        return get_number(r, v, &n->line);
    if (orr_str_is(key, "phase"))
        return read_phase(r, v, &n->phase);
    if (orr_str_is(key, "args"))
        return read_args(r, v, n);
    return orr_str_is(key, "view") ? read_view(r, v, n) : ORR_OK;
}

static orr_code read_node(reader *r, orr_json_value node)
{
    fx_node_draft n = {.op = FX_NONE,
                       .module = FX_NONE,
                       .line = FX_NONE,
                       .phase = FX_FORWARD,
                       .group = FX_NONE,
                       .peer = FX_NO_PEER,
                       .tag = FX_NO_PEER,
                       .byte = orr_json_byte(node)};
    size_t at[NODE_LISTS] = {0};
    orr_json_value v;
    orr_str key;
    orr_code code = expect(r, node, ORR_JSON_OBJECT, "a node");
    r->number_count = 0;
    for (orr_json_iter it = orr_json_iterate(node); !code && orr_json_next_member(&it, &key, &v);)
        code = read_member(r, key, v, &n, at);
    if (code)
        return code;
    if (n.op == FX_NONE)
        return fail_at(r, n.byte, "a node has \"op\", a number of the list \"ops\"");
    n.in = r->numbers + at[LIST_IN];
    n.out = r->numbers + at[LIST_OUT];
    n.writes = r->numbers + at[LIST_WRITES];
    return fx_add_node(r->g, &n, r->err);
}

/* ---- a graph ---- */

static orr_code read_each(reader *r, const char *what, orr_code (*read)(reader *, orr_json_value))
{
    orr_json_item item;
    orr_json_value v;
    orr_code code = orr_json_enter(r->j, r->err);
    if (code)
        return code;
    while ((code = orr_json_next(r->j, &item, r->err)) == ORR_OK) {
        if ((code = orr_json_load(r->j, &v, r->err)) || (code = read(r, v)))
            return orr_because(r->err, code, "%s", what);
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code read_rank(reader *r)
{
    orr_json_value v;
    const orr_code code = orr_json_load(r->j, &v, r->err);
    r->has_rank = true;
    return code ? code : get_number(r, v, &r->g->rank);
}

static orr_code read_graph_member(reader *r, const orr_json_item *item)
{
    static const struct {
        const char *key, *what; /* what: of a small list */
        orr_code (*read)(reader *, orr_json_value);
        fx_texts table;
    } lists[] = {
        {"ops", "\"ops\"", read_text, FX_OPS},
        {"modules", "\"modules\"", read_text, FX_MODULES},
        {"lines", "\"lines\"", read_text, FX_LINES},
        {"storages", "\"storages\"", read_storage, FX_OPS},
        {"kept", "\"kept\"", read_pair, FX_OPS},
        {"tensors", NULL, read_tensor, FX_OPS},
        {"nodes", NULL, read_node, FX_OPS},
    };
    if (orr_str_is(item->key, "rank"))
        return read_rank(r);
    for (size_t i = 0; i < ORR_COUNT(lists); i++) {
        if (!orr_str_is(item->key, lists[i].key))
            continue;
        r->table = lists[i].table;
        if (lists[i].what)
            return read_items(r, lists[i].what, lists[i].read);
        if (item->type != ORR_JSON_ARRAY)
            return fail_at(r, item->byte, "\"tensors\" and \"nodes\" are lists");
        return read_each(r, lists[i].key, lists[i].read);
    }
    return ORR_OK;
}

static orr_code mark_kept(reader *r)
{
    for (size_t i = 0; i < r->pair_count; i++) {
        if (r->pairs[i].storage >= r->g->storage_count)
            return fail_at(r, r->pairs[i].byte, "\"kept\" refers to a storage that does not exist");
        r->g->storages[r->pairs[i].storage].kept = r->pairs[i].kept;
    }
    return ORR_OK;
}

static orr_code read_graph(reader *r, const orr_json_item *graph)
{
    orr_json_item item;
    orr_code code;
    if (graph->type != ORR_JSON_OBJECT)
        return fail_at(r, graph->byte, "a graph is an object");
    r->has_rank = false;
    r->pair_count = 0;
    const uint64_t byte = graph->byte;
    if ((code = fx_add_graph(r->c, 0, byte, &r->g, r->err)) ||
        (code = orr_json_enter(r->j, r->err)))
        return code;
    while ((code = orr_json_next(r->j, &item, r->err)) == ORR_OK) {
        if ((code = read_graph_member(r, &item)))
            return code;
    }
    if (code != ORR_END)
        return code;
    if (!r->has_rank)
        return fail_at(r, byte, "a graph says whose it is: \"rank\"");
    return mark_kept(r);
}

static orr_code read_graphs(reader *r, const orr_json_item *list)
{
    orr_json_item item;
    orr_code code;
    if (list->type != ORR_JSON_ARRAY)
        return fail_at(r, list->byte, "\"graphs\" is a list");
    if ((code = orr_json_enter(r->j, r->err)))
        return code;
    for (size_t i = 0; (code = orr_json_next(r->j, &item, r->err)) == ORR_OK; i++) {
        if ((code = read_graph(r, &item)))
            return orr_because(r->err, code, "graph %zu", i);
    }
    return code == ORR_END ? ORR_OK : code;
}

/* ---- everything ---- */

static orr_code check_version(reader *r)
{
    orr_json_value v;
    uint64_t version;
    orr_code code = orr_json_load(r->j, &v, r->err);
    if (code || (code = orr_json_get_u64(v, &version, r->err)))
        return code;
    if (version != VERSION)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                        "version %" PRIu64 " of the format; this program reads version %d: use an "
                        "orrery_capture.py that came with it",
                        version, VERSION);
    return ORR_OK;
}

static orr_code check_format(reader *r)
{
    orr_json_value v;
    orr_str text;
    orr_code code = orr_json_load(r->j, &v, r->err);
    if (code || (code = orr_json_get_str(v, &text, r->err)))
        return code;
    if (!orr_str_is(text, "orrery-capture"))
        return fail_at(r, orr_json_byte(v), "\"orrery-capture\" is expected here");
    return ORR_OK;
}

static orr_code read_size(reader *r)
{
    orr_json_value v;
    uint32_t size = 0;
    orr_code code = orr_json_load(r->j, &v, r->err);
    if (code || (code = get_number(r, v, &size)))
        return code;
    if (r->c->world_size && r->c->world_size != size)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                        "captured for %" PRIu32 " ranks, not %" PRIu32
                        ": capture again with --world-size %" PRIu32,
                        size, r->c->world_size, r->c->world_size);
    r->c->world_size = size;
    return ORR_OK;
}

static orr_code read_group_list(reader *r)
{
    return read_items(r, "\"groups\"", read_group);
}

static orr_code read_note_list(reader *r)
{
    return read_items(r, "\"notes\"", read_note);
}

static const struct {
    const char *key;
    orr_code (*read)(reader *); /* NULL: the graphs */
    const char *missing;        /* NULL: optional */
} top_keys[] = {
    {"format", check_format, "not a capture: \"format\" is missing"},
    {"version", check_version, "\"version\" is missing"},
    {"world_size", read_size, "\"world_size\" is missing"},
    {"groups", read_group_list, "\"groups\" is missing"},
    {"graphs", NULL, "\"graphs\" is missing"},
    {"notes", read_note_list, NULL},
};

static orr_code read_top(reader *r, const orr_json_item *item, unsigned *has)
{
    for (size_t i = 0; i < ORR_COUNT(top_keys); i++) {
        if (!orr_str_is(item->key, top_keys[i].key))
            continue;
        if (*has >> i & 1)
            return fail_at(r, item->byte,
                           top_keys[i].read ? "duplicate key" : "a second \"graphs\"");
        *has |= 1u << i;
        return top_keys[i].read ? top_keys[i].read(r) : read_graphs(r, item);
    }
    return ORR_OK;
}

static orr_code read_all(reader *r)
{
    unsigned has = 0;
    orr_json_item item;
    orr_code code = orr_json_enter(r->j, r->err);
    if (code)
        return code;
    while ((code = orr_json_next(r->j, &item, r->err)) == ORR_OK) {
        if ((code = read_top(r, &item, &has)))
            return code;
    }
    if (code != ORR_END)
        return code;
    for (size_t i = 0; i < ORR_COUNT(top_keys); i++)
        if (top_keys[i].missing && !(has >> i & 1))
            return fail_at(r, 0, top_keys[i].missing);
    code = fx_check(r->c, r->err);
    if (code == ORR_EINPUT && r->err) /* now with line and column */
        r->err->where = orr_json_place(r->j, r->err->where.byte);
    return code;
}

static orr_code read_capture(orr_json *j, orr_fx *c, orr_error *err)
{
    orr_error own;
    reader r = {.j = j, .c = c, .err = err ? err : &own};
    const orr_code code =
        orr_grow(&r.numbers, &r.number_room, 1) ? read_all(&r) : orr_no_memory(err);
    orr_free(r.numbers);
    orr_free(r.pairs);
    return code;
}

/* An object is a capture, a list is what FX prints. */
static orr_code read_either(orr_json *j, orr_fx *c, orr_error *err)
{
    orr_json_item item;
    orr_code code = orr_json_next(j, &item, err);
    const orr_where start = orr_json_place(j, 0);
    if (code == ORR_END)
        return orr_fail(err, ORR_EINPUT, &start, "the file is empty; a captured step is expected");
    if (code)
        return code;
    if (item.type == ORR_JSON_ARRAY)
        return read_printed(j, c, err);
    orr_json_value scalar;
    if (item.type != ORR_JSON_OBJECT)
        return (code = orr_json_load(j, &scalar, err))
                   ? code
                   : orr_fail(err, ORR_EINPUT, &start,
                              "%s; a captured step is an object, a printed graph a list",
                              orr_json_type_name(item.type));
    code = read_capture(j, c, err);
    if (!code && (code = orr_json_next(j, &item, err)) == ORR_END)
        return ORR_OK;
    return code ? code
                : orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_place(j, item.byte)),
                           "unexpected data after the capture");
}

orr_code orr_fx_parse(
    orr_span bytes, const char *label, uint32_t world_size, orr_fx **out, orr_error *err)
{
    orr_json *j;
    orr_fx *c = NULL;
    orr_code code = orr_json_open(bytes, label, &j, err);
    *out = NULL;
    if (code)
        return code;
    code = fx_create(label, &c, err);
    if (!code) {
        c->world_size = world_size;
        code = read_either(j, c, err);
    }
    orr_json_close(j);
    if (code)
        orr_fx_close(c);
    else
        *out = c;
    return code;
}

orr_code orr_fx_read(const char *path, uint32_t world_size, orr_fx **out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    *out = NULL;
    if (code)
        return code;
    code = orr_fx_parse(orr_input_bytes(in), path, world_size, out, err);
    orr_input_close(in);
    return code;
}
