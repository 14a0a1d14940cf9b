/* SPDX-License-Identifier: Apache-2.0 */
/* match_host.c - measured operators from a host trace of PyTorch's (ExecutionTraceObserver).
 *
 * Tensors come with shapes, strides and bytes of an element, inputs and results; times are not in it.  Nodes are in the
 * order of ends, so an operator may stand below those it calls: callers are found when all nodes are there. */
#include "match_impl.h"
#include "match_tensors.h"

#include <inttypes.h>

enum { ITEM_BYTES = 4, VALUE_PARTS = 6, DEPTH_MOST = 1000 };

typedef struct node {
    int64_t id, parent;
    uint32_t call; /* MATCH_NONE: no operator of PyTorch's */
} node;

typedef struct host {
    match *m;
    orr_json *j;
    node *nodes;
    size_t count, room;
    match_tensors tensors;
    orr_error *err;
} host;

/* ---- tensors ---- */

/* value: [id, storage, offset, elements, bytes of an element, device] */
static orr_code add_tensor(host *h,
                           orr_json_value value,
                           orr_json_value shape,
                           orr_json_value *stride)
{
    operator_tensor t = {.rank = 0};
    orr_json_value v;
    uint64_t bytes = 0;
    uint32_t strides = 0, at = 0;
    if (orr_json_count(value) < VALUE_PARTS)
        return match_fail(
            h->err, value,
            "a tensor was expected: id, storage, offset, elements, bytes of one, device");
    for (orr_json_iter it = orr_json_iterate(value); orr_json_next_value(&it, &v); at++) {
        const orr_code code = at == ITEM_BYTES ? orr_json_get_u64(v, &bytes, h->err) : ORR_OK;
        if (code)
            return code;
    }
    orr_code code = match_sizes(&h->tensors, shape, &t.rank);
    if (!code && stride)
        code = match_sizes(&h->tensors, *stride, &strides);
    if (code)
        return code;
    if (stride && strides != t.rank)
        return match_fail(h->err, value, "%" PRIu32 " dimensions, but %" PRIu32 " strides", t.rank,
                          strides);
    t.element_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : 0;
    t.is_written = stride != NULL; /* for now: it has strides */
    return match_tensor(&h->tensors, &t, value);
}

/* A list of tensors, one value and shape each. */
static orr_code add_list(host *h,
                         orr_json_value values,
                         orr_json_value shapes,
                         orr_json_value *strides)
{
    orr_json_iter v = orr_json_iterate(values), s = orr_json_iterate(shapes), d = {0};
    orr_json_value value, shape, stride;
    orr_code code = ORR_OK;
    if (strides)
        d = orr_json_iterate(*strides);
    while (!code && orr_json_next_value(&v, &value)) {
        if (!orr_json_next_value(&s, &shape) || (strides && !orr_json_next_value(&d, &stride)))
            return match_fail(h->err, value, "a tensor of a list without a shape");
        code = add_tensor(h, value, shape, strides ? &stride : NULL);
    }
    return code;
}

/* "inputs" or "outputs": values, shapes, types and, in newer traces, strides side by side. */
static orr_code add_tensors(host *h, orr_json_value sides)
{
    orr_json_value all[4], value, shape, type, stride;
    const bool has_strides = orr_json_find(sides, "strides", &all[3]);
    if (!orr_json_find(sides, "values", &all[0]) || !orr_json_find(sides, "shapes", &all[1]) ||
        !orr_json_find(sides, "types", &all[2]))
        return match_fail(h->err, sides, "\"values\", \"shapes\" and \"types\" were expected");
    orr_json_iter s = orr_json_iterate(all[1]), t = orr_json_iterate(all[2]), d = {0};
    if (has_strides)
        d = orr_json_iterate(all[3]);
    for (orr_json_iter v = orr_json_iterate(all[0]); orr_json_next_value(&v, &value);) {
        orr_str word;
        if (!orr_json_next_value(&s, &shape) || !orr_json_next_value(&t, &type) ||
            (has_strides && !orr_json_next_value(&d, &stride)))
            return match_fail(h->err, sides, "more values than shapes, types or strides");
        orr_code code = orr_json_get_str(type, &word, h->err);
        if (!code && orr_str_begins(word, "Tensor"))
            code = add_tensor(h, value, shape, has_strides ? &stride : NULL);
        else if (!code && orr_str_begins(word, "GenericList[Tensor"))
            code = add_list(h, value, shape, has_strides ? &stride : NULL);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* Only now do the sizes stay where they are. */
static void place_sizes(host *h)
{
    const uint64_t *at = h->tensors.dims;
    for (size_t i = 0; i < h->tensors.count; i++) {
        operator_tensor *t = &h->tensors.list[i];
        t->shape = at;
        at += t->rank;
        if (t->is_written) {
            t->stride = at;
            at += t->rank;
        }
        t->is_written = false;
    }
}

/* ---- nodes ---- */

static orr_code add_call(host *h, orr_json_value v, orr_str name, uint32_t *call)
{
    orr_json_value inputs, outputs;
    h->tensors.count = h->tensors.dim_count = 0;
    if (!orr_json_find(v, "inputs", &inputs) || !orr_json_find(v, "outputs", &outputs))
        return match_fail(h->err, v, "\"inputs\" and \"outputs\" were expected");
    orr_code code = add_tensors(h, inputs);
    const size_t count = h->tensors.count;
    if (code || (code = add_tensors(h, outputs)))
        return code;
    place_sizes(h);
    const match_draft draft = {.call = {.name = name,
                                        .in = h->tensors.list,
                                        .in_count = (uint32_t)count,
                                        .out = h->tensors.count ? h->tensors.list + count : NULL,
                                        .out_count = (uint32_t)(h->tensors.count - count)},
                               .caller = MATCH_NONE,
                               .count = 1};
    *call = (uint32_t)h->m->sides[MATCH_MEASURED].count;
    code = match_add(h->m, MATCH_MEASURED, &draft, h->err);
    if (h->m->sides[MATCH_MEASURED].count == *call)
        *call = MATCH_NONE; /* nothing that counts */
    return code;
}

/* One number, or a list with one. */
static orr_code read_parent(host *h, orr_json_value v, int64_t *out)
{
    orr_json_value p, first;
    *out = 0;
    if (!orr_json_find(v, "ctrl_deps", &p) && !orr_json_find(v, "parent", &p))
        return ORR_OK;
    if (orr_json_type_of(p) == ORR_JSON_ARRAY) {
        orr_json_iter it = orr_json_iterate(p);
        if (!orr_json_next_value(&it, &first))
            return ORR_OK;
        p = first;
    }
    return orr_json_get_i64(p, out, h->err);
}

static orr_code read_node(host *h, orr_json_value v)
{
    node n = {.call = MATCH_NONE};
    orr_json_value id, name;
    orr_str word;
    orr_code code;
    if (!orr_json_find(v, "id", &id) || !orr_json_find(v, "name", &name))
        return match_fail(h->err, v, "a node without \"id\" or \"name\"");
    if ((code = orr_json_get_i64(id, &n.id, h->err)) ||
        (code = orr_json_get_str(name, &word, h->err)) || (code = read_parent(h, v, &n.parent)))
        return code;
    if (orr_str_begins(word, "aten::") && (code = add_call(h, v, word, &n.call)))
        return code;
    if (h->count == MATCH_NONE - 1 || !orr_grow(&h->nodes, &h->room, h->count + 1))
        return orr_no_memory(h->err);
    h->nodes[h->count++] = n;
    return ORR_OK;
}

static orr_code read_nodes(host *h)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code = orr_json_enter(h->j, h->err);
    while (!code && !(code = orr_json_next(h->j, &item, h->err))) {
        if (!(code = orr_json_load(h->j, &v, h->err)))
            code = read_node(h, v);
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code read_document(host *h)
{
    orr_json_item item;
    bool has_nodes = false;
    orr_code code = orr_json_next(h->j, &item, h->err);
    if (code || (code = orr_json_enter(h->j, h->err)))
        return code;
    while ((code = orr_json_next(h->j, &item, h->err)) == ORR_OK) {
        if (!orr_str_is(item.key, "nodes") || item.type != ORR_JSON_ARRAY)
            continue;
        has_nodes = true;
        if ((code = read_nodes(h)))
            return code;
    }
    if (code != ORR_END)
        return code;
    const orr_where w = orr_json_place(h->j, 0);
    if (!has_nodes || h->m->sides[MATCH_MEASURED].count == 0)
        return orr_fail(h->err, ORR_EINPUT, &w, "no operators (aten::...) among \"nodes\"");
    return ORR_OK;
}

/* ---- callers ---- */

/* The nearest operator above; nodes of other kinds are passed through.  Circles end, too. */
static uint32_t nearest_call(const host *h, const orr_map *by_id, const node *n)
{
    for (size_t steps = 0; steps < DEPTH_MOST; steps++) {
        const uint32_t at = orr_map_find(by_id, (uint64_t)n->parent, MATCH_NONE);
        if (at == MATCH_NONE || &h->nodes[at] == n)
            return MATCH_NONE;
        n = &h->nodes[at];
        if (n->call != MATCH_NONE)
            return n->call;
    }
    return MATCH_NONE;
}

static orr_code find_callers(host *h)
{
    match_call *calls = h->m->sides[MATCH_MEASURED].calls;
    orr_map *by_id = orr_map_create(h->count);
    bool ok = by_id != NULL;
    for (size_t i = 0; ok && i < h->count; i++)
        ok = orr_map_put(by_id, (uint64_t)h->nodes[i].id, (uint32_t)i, NULL);
    for (size_t i = 0; ok && i < h->count; i++) {
        if (h->nodes[i].call != MATCH_NONE)
            calls[h->nodes[i].call].caller = nearest_call(h, by_id, &h->nodes[i]);
    }
    orr_map_destroy(by_id);
    return ok ? ORR_OK : orr_no_memory(h->err);
}

orr_code match_host(match *m, orr_span bytes, const char *label, orr_error *err)
{
    host h = {.m = m, .tensors = {.err = err}, .err = err};
    orr_code code = orr_json_open(bytes, label, &h.j, err);
    if (!code)
        code = read_document(&h);
    if (!code)
        code = find_callers(&h);
    m->sides[MATCH_MEASURED].has_bytes = true;
    orr_json_close(h.j);
    orr_free(h.nodes);
    match_tensors_fini(&h.tensors);
    return code;
}
