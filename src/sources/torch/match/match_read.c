/* SPDX-License-Identifier: Apache-2.0 */
/* match_read.c - the calls of both sides: a captured step; a measured one as CSV, host trace or
 * profiler trace. */
#include "match_impl.h"

#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "trace/formats/chrome_event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tensors of one recorded call while its JSON is read.  Counts from the file are bounded before
 * allocating. */
typedef struct tensor_list {
    operator_tensor *list; /* shapes and strides are set at the end: dims may move until then */
    size_t count, room;
    uint64_t *dims;
    size_t dim_count, dim_room;
    orr_error *err;
} tensor_list;

enum { RANK_MOST = 64, TENSORS_MOST = 1 << 20 };

static void tensors_fini(tensor_list *t)
{
    orr_free(t->list);
    orr_free(t->dims);
}

/* An error at the place of v; lines are counted only here. */
static orr_code fail_at_value(orr_error *err, orr_json_value v, const char *fmt, ...)
{
    char words[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "%s", words);
}

/* The numbers of a list, appended. */
static orr_code take_sizes(tensor_list *t, orr_json_value list, uint32_t *count)
{
    orr_json_value v;
    *count = 0;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v); ++*count) {
        if (*count == RANK_MOST)
            return fail_at_value(t->err, v, "a tensor of more than %d dimensions", RANK_MOST);
        if (!orr_grow(&t->dims, &t->dim_room, t->dim_count + 1))
            return orr_no_memory(t->err);
        const orr_code code = orr_json_get_u64(v, &t->dims[t->dim_count++], t->err);
        if (code)
            return code;
    }
    return ORR_OK;
}

static orr_code take_tensor(tensor_list *t, const operator_tensor *one, orr_json_value place)
{
    if (t->count == TENSORS_MOST)
        return fail_at_value(t->err, place, "an operator with more than %d tensors", TENSORS_MOST);
    return orr_push(t->list, t->count, t->room, *one) ? ORR_OK : orr_no_memory(t->err);
}

/* ==== the calls of a captured step. */

typedef struct room {
    operator_tensor *tensors;
    size_t count;
} room;

static operator_tensor tensor_of(const fx_graph *g, uint32_t number)
{
    const fx_tensor *t = &g->tensors[number];
    return (operator_tensor){.shape = fx_shape(g, t),
                             .stride = fx_stride(g, t),
                             .rank = t->rank,
                             .element_bytes = t->element_bytes};
}

static bool is_written(const fx_graph *g, const fx_node *n, uint32_t tensor)
{
    const uint32_t *writes = fx_writes(g, n);
    for (uint32_t i = 0; i < n->writes_count; i++) {
        if (writes[i] == tensor)
            return true;
    }
    return false;
}

static orr_code add_node(match *m, const fx_graph *g, const fx_node *n, room *r, orr_error *err)
{
    if (!orr_grow(&r->tensors, &r->count, (size_t)n->in_count + n->out_count + 1))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n->in_count; i++) {
        r->tensors[i] = tensor_of(g, fx_in(g, n)[i]);
        r->tensors[i].is_written = is_written(g, n, fx_in(g, n)[i]);
    }
    for (uint32_t i = 0; i < n->out_count; i++)
        r->tensors[n->in_count + i] = tensor_of(g, fx_out(g, n)[i]);
    const match_draft draft = {.call = {.name = fx_text(g, FX_OPS, n->op),
                                        .in = r->tensors,
                                        .out = r->tensors + n->in_count,
                                        .in_count = n->in_count,
                                        .out_count = n->out_count,
                                        .is_view = n->is_view,
                                        .is_causal = n->is_causal,
                                        .is_transposed = n->is_transposed,
                                        .equation = fx_equation(n)},
                               .caller = MATCH_NONE,
                               .count = 1};
    return match_add(m, MATCH_CAPTURED, &draft, err);
}

orr_code match_captured(match *m, const fx_graph *g, orr_error *err)
{
    room r = {0};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < g->node_count && !code; i++) {
        if (g->nodes[i].phase != FX_SETUP)
            code = add_node(m, g, &g->nodes[i], &r, err);
    }
    orr_free(r.tensors);
    m->sides[MATCH_CAPTURED].has_bytes = true;
    return code;
}

/* ==== measured operators from a CSV file: docs/format/operators.md.
 *
 * The header row names the columns, so tables with extra ones can be used unchanged.  Rows are in
 * the order in which operators started, so a caller is above its callees. */

enum { OP, SHAPES, COUNT, GPU_US, PARENT, COLUMNS };
enum { TABLE_RANK_MOST = 64, TABLE_TENSORS_MOST = 4096, SHOWN = 60 };
#define TABLE_US_MOST 1e12 /* microseconds */

static const char *const columns[COLUMNS] = {"op", "shapes", "count", "gpu_us", "parent"};

typedef struct table {
    match *m;
    orr_csv csv;
    size_t place[COLUMNS];
    operator_tensor *tensors;
    size_t tensor_room;
    uint64_t *dims;
    size_t dim_count, dim_room;
    orr_intern *ops;  /* names verbatim */
    uint32_t *latest; /* by name: the last row that has it */
    size_t latest_room;
    orr_error *err;
} table;

static orr_code fail_at(const table *t, const orr_csv_field *f, const char *expected)
{
    const size_t n = f->text.len < SHOWN ? f->text.len : SHOWN;
    return orr_fail(t->err, ORR_EINPUT, ORR_AT(orr_csv_where(&t->csv, f)), "\"%.*s\": %s", (int)n,
                    f->text.ptr, expected);
}

/* ---- the header row ---- */

static orr_code read_names(table *t, const orr_csv_row *row)
{
    const orr_where top = orr_where_line(t->csv.path, row->line, 1);
    for (int i = 0; i < COLUMNS; i++) {
        t->place[i] = SIZE_MAX;
        for (size_t k = 0; k < row->count; k++) {
            if (!orr_str_is(row->fields[k].text, columns[i]))
                continue;
            if (t->place[i] != SIZE_MAX)
                return fail_at(t, &row->fields[k], "a second column of this name");
            t->place[i] = k;
        }
        if (t->place[i] == SIZE_MAX)
            return orr_fail(
                t->err, ORR_EINPUT, &top,
                "no column %s: the first line names the columns op, shapes, count, gpu_us and "
                "parent",
                columns[i]);
    }
    return ORR_OK;
}

/* ---- rows ---- */

/* 8x1024x768|768: digits, 'x' between the sizes of a tensor, '|' between tensors. */
static orr_code read_sizes(table *t, const orr_csv_field *f, size_t *tensors)
{
    const char *at = f->text.ptr, *end = at + f->text.len;
    t->dim_count = 0;
    *tensors = 0;
    while (at < end) {
        uint64_t size = 0;
        const char *first = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*at - '0'), &size))
                return fail_at(t, f, "a size does not fit into 64 bits");
        }
        const bool ends = at == end || *at == '|', goes_on = at < end && *at == 'x';
        if (at == first || !(ends || goes_on) || (at < end && at + 1 == end))
            return fail_at(t, f, "expected shapes, e.g. 8x1024x768|768");
        if (!orr_grow(&t->dims, &t->dim_room, t->dim_count + 1) ||
            !orr_grow(&t->tensors, &t->tensor_room, *tensors + 1))
            return orr_no_memory(t->err);
        if (t->dim_count == 0 || first[-1] == '|')
            t->tensors[*tensors] = (operator_tensor){.rank = 0};
        t->dims[t->dim_count++] = size;
        if (++t->tensors[*tensors].rank > TABLE_RANK_MOST)
            return fail_at(t, f, "a tensor of more than 64 dimensions");
        if (ends && ++*tensors > TABLE_TENSORS_MOST)
            return fail_at(t, f, "more than 4,096 tensors");
        at += at < end;
    }
    return ORR_OK;
}

/* Pointers are set now: dims no longer moves. */
static void place_shapes(table *t, size_t tensors)
{
    const uint64_t *at = t->dims;
    for (size_t i = 0; i < tensors; i++) {
        t->tensors[i].shape = at;
        at += t->tensors[i].rank;
    }
}

static orr_code read_time(table *t, const orr_csv_field *f, orr_ps *out)
{
    double us;
    if (!orr_text_double(f->text, &us) || !(us >= 0 && us <= TABLE_US_MOST))
        return fail_at(t, f, "expected microseconds, 0 to 1e12");
    *out = (orr_ps)(us * 1e6 + 0.5);
    t->m->sides[MATCH_MEASURED].has_times |= *out > 0;
    return ORR_OK;
}

static orr_code read_caller(table *t, const orr_csv_field *f, uint32_t *out)
{
    uint32_t name;
    *out = MATCH_NONE;
    if (f->text.len == 0)
        return ORR_OK;
    if (!orr_intern_find(t->ops, f->text, &name) || t->latest[name] == MATCH_NONE)
        return fail_at(t, f, "no earlier row has this parent operator");
    *out = t->latest[name];
    return ORR_OK;
}

static orr_code note_row(table *t, orr_str op)
{
    uint32_t name;
    if (!orr_intern_add(t->ops, op, &name) ||
        !orr_grow(&t->latest, &t->latest_room, (size_t)name + 1))
        return orr_no_memory(t->err);
    t->latest[name] = (uint32_t)(t->m->sides[MATCH_MEASURED].count - 1);
    return ORR_OK;
}

static orr_code read_row(table *t, const orr_csv_row *row)
{
    match_draft draft = {.count = 0};
    const orr_csv_field *f[COLUMNS];
    size_t tensors = 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (t->place[i] >= row->count)
            return orr_fail(t->err, ORR_EINPUT, ORR_AT(orr_where_line(t->csv.path, row->line, 1)),
                            "%zu fields: there is none for %s", row->count, columns[i]);
        f[i] = &row->fields[t->place[i]];
    }
    if (f[OP]->text.len == 0)
        return fail_at(t, f[OP], "expected the name of an operator");
    orr_code code = read_sizes(t, f[SHAPES], &tensors);
    if (code ||
        (code = orr_csv_u64(&t->csv, f[COUNT], "count", 0, UINT32_MAX, &draft.count, t->err)) ||
        (code = read_time(t, f[GPU_US], &draft.time)) ||
        (code = read_caller(t, f[PARENT], &draft.caller)))
        return code;
    place_shapes(t, tensors);
    draft.call =
        (operator_call){.name = f[OP]->text, .in = t->tensors, .in_count = (uint32_t)tensors};
    if ((code = match_add(t->m, MATCH_MEASURED, &draft, t->err)))
        return code;
    return note_row(t, f[OP]->text);
}

static orr_code read_table(table *t)
{
    const orr_where top = orr_where_line(t->csv.path, 1, 1);
    orr_csv_row row;
    orr_code code = orr_csv_next(&t->csv, &row, t->err);
    if (code == ORR_END)
        return orr_fail(t->err, ORR_EINPUT, &top,
                        "empty: expected a line \"op,shapes,count,gpu_us,parent\" and operators");
    if (code || (code = read_names(t, &row)))
        return code;
    while ((code = orr_csv_next(&t->csv, &row, t->err)) == ORR_OK) {
        if ((code = read_row(t, &row)))
            return code;
    }
    if (code == ORR_END && t->m->sides[MATCH_MEASURED].count == 0)
        return orr_fail(t->err, ORR_EINPUT, &top, "no operators after the header row");
    return code == ORR_END ? ORR_OK : code;
}

orr_code match_table(match *m, orr_span bytes, const char *label, orr_error *err)
{
    table t = {.m = m, .ops = orr_intern_create(), .err = err};
    if (!t.ops)
        return orr_no_memory(err);
    orr_csv_init(&t.csv, bytes, label);
    const orr_code code = read_table(&t);
    orr_csv_fini(&t.csv);
    orr_intern_destroy(t.ops);
    orr_free(t.tensors);
    orr_free(t.dims);
    orr_free(t.latest);
    return code;
}

/* ==== measured operators from a host trace of PyTorch's (ExecutionTraceObserver).
 *
 * It has shapes, strides and element sizes of inputs and outputs, but no times.  Nodes are in the
 * order in which they ended, so a caller may be below its callees: callers are resolved at the
 * end. */

enum { ITEM_BYTES = 4, VALUE_PARTS = 6, DEPTH_MOST = 1000 };

typedef struct node {
    int64_t id, parent;
    uint32_t call; /* MATCH_NONE: not an operator of PyTorch */
} node;

typedef struct host {
    match *m;
    orr_json *j;
    node *nodes;
    size_t count, room;
    tensor_list tensors;
    orr_error *err;
} host;

/* ---- tensors ---- */

/* value: [id, storage, offset, elements, bytes per element, device] */
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
        return fail_at_value(
            h->err, value,
            "expected a tensor: id, storage, offset, elements, bytes of one, device");
    for (orr_json_iter it = orr_json_iterate(value); orr_json_next_value(&it, &v); at++) {
        const orr_code code = at == ITEM_BYTES ? orr_json_get_u64(v, &bytes, h->err) : ORR_OK;
        if (code)
            return code;
    }
    orr_code code = take_sizes(&h->tensors, shape, &t.rank);
    if (!code && stride)
        code = take_sizes(&h->tensors, *stride, &strides);
    if (code)
        return code;
    if (stride && strides != t.rank)
        return fail_at_value(h->err, value, "%" PRIu32 " dimensions, but %" PRIu32 " strides",
                             t.rank, strides);
    t.element_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : 0;
    t.is_written = stride != NULL; /* temporarily: it has strides */
    return take_tensor(&h->tensors, &t, value);
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
            return fail_at_value(h->err, value, "a tensor of a list without a shape");
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
        return fail_at_value(h->err, sides, "expected \"values\", \"shapes\" and \"types\"");
    orr_json_iter s = orr_json_iterate(all[1]), t = orr_json_iterate(all[2]), d = {0};
    if (has_strides)
        d = orr_json_iterate(all[3]);
    for (orr_json_iter v = orr_json_iterate(all[0]); orr_json_next_value(&v, &value);) {
        orr_str word;
        if (!orr_json_next_value(&s, &shape) || !orr_json_next_value(&t, &type) ||
            (has_strides && !orr_json_next_value(&d, &stride)))
            return fail_at_value(h->err, sides, "more values than shapes, types or strides");
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

/* Pointers are set now: dims no longer moves. */
static void place_sizes(host *h)
{
    const uint64_t *at = h->tensors.dims;
    for (size_t i = 0; i < h->tensors.count; i++) {
        operator_tensor *t = &h->tensors.list[i];
        t->shape = at;
        if (t->rank) /* without sizes there is no address */
            at += t->rank;
        if (t->is_written) {
            t->stride = at;
            if (t->rank)
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
        return fail_at_value(h->err, v, "expected \"inputs\" and \"outputs\"");
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

static orr_code read_node(void *context, orr_json_value v)
{
    host *h = context;
    node n = {.call = MATCH_NONE};
    orr_json_value id, name;
    orr_str word;
    orr_code code;
    if (!orr_json_find(v, "id", &id) || !orr_json_find(v, "name", &name))
        return fail_at_value(h->err, v, "a node without \"id\" or \"name\"");
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

static orr_code read_document(host *h)
{
    static const orr_json_list how = {.key = "nodes", .what = "a host trace", .item = read_node};
    const orr_code code = orr_json_walk_list(h->j, &how, h, h->err);
    if (code || h->m->sides[MATCH_MEASURED].count)
        return code;
    return orr_fail(h->err, ORR_EINPUT, ORR_AT(orr_json_place(h->j, 0)),
                    "no operators (aten::...) among \"nodes\"");
}

/* ---- callers ---- */

/* The nearest operator above; other nodes are skipped.  Cycles terminate. */
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
    tensors_fini(&h.tensors);
    return code;
}

/* ==== measured operators from a trace of PyTorch's profiler (Kineto), recorded with record_shapes.
 *
 * Callers follow from times: on one thread, an operator that starts and ends inside another was
 * called by it.  A kernel's time goes to the operator with its "External id".  Of several steps
 * (ProfilerStep#) the last counts.  Outputs are not recorded, so bytes are unknown.  Cost: a sort
 * over the operators. */

#define TIME_MOST 1e15 /* microseconds */
#define KERNEL_PS_MOST ((__int128)9000000000000000000)

/* An operator, or a step, on its thread. */
typedef struct interval {
    int64_t from, to; /* nanoseconds */
    int64_t thread;
    uint32_t call;
} interval;

typedef struct kernel {
    uint64_t external;
    orr_ps time;
} kernel;

typedef struct kineto {
    match *m;
    orr_json *j;
    interval *intervals;
    size_t interval_count, interval_room;
    kernel *kernels;
    size_t kernel_count, kernel_room;
    orr_map *by_external; /* to a call */
    interval step;        /* to <= from: there is none */
    tensor_list tensors;
    orr_error *err;
} kineto;

/* ---- tensors ---- */

static orr_code add_shape_tensor(kineto *k, orr_json_value shape)
{
    operator_tensor t = {0};
    const orr_code code = take_sizes(&k->tensors, shape, &t.rank);
    return code ? code : take_tensor(&k->tensors, &t, shape);
}

/* Numbers and lists of numbers have types, too, but no shapes. */
static bool is_tensor_type(orr_str type)
{
    return type.len && !orr_str_is(type, "Scalar") && !orr_str_is(type, "ScalarList") &&
           !orr_str_is(type, "GenericList");
}

static orr_code add_shape(kineto *k, orr_json_value shape, orr_str type)
{
    orr_json_iter it = orr_json_iterate(shape);
    orr_json_value first, v;
    const bool is_list =
        orr_json_next_value(&it, &first) && orr_json_type_of(first) == ORR_JSON_ARRAY;
    if (!is_list)
        return is_tensor_type(type) || orr_json_count(shape) ? add_shape_tensor(k, shape) : ORR_OK;
    orr_code code = ORR_OK;
    for (it = orr_json_iterate(shape); !code && orr_json_next_value(&it, &v);)
        code = add_shape_tensor(k, v);
    return code;
}

static orr_code add_shapes(kineto *k, orr_json_value args)
{
    orr_json_value shapes, types, shape, type;
    orr_json_iter t = {0};
    k->tensors.count = k->tensors.dim_count = 0;
    if (!orr_json_find(args, "Input Dims", &shapes))
        return ORR_OK;
    const bool has_types = orr_json_find(args, "Input type", &types);
    if (has_types)
        t = orr_json_iterate(types);
    for (orr_json_iter s = orr_json_iterate(shapes); orr_json_next_value(&s, &shape);) {
        orr_str word = {"", 0};
        orr_code code = ORR_OK;
        if (has_types && orr_json_next_value(&t, &type))
            code = orr_json_get_str(type, &word, k->err);
        if (code || (code = add_shape(k, shape, word)))
            return code;
    }
    const uint64_t *at = k->tensors.dims; /* dims no longer moves */
    for (size_t i = 0; i < k->tensors.count; i++) {
        k->tensors.list[i].shape = at;
        if (k->tensors.list[i].rank) /* without sizes there is no address */
            at += k->tensors.list[i].rank;
    }
    return ORR_OK;
}

/* ---- events ---- */

static orr_code get_ps(kineto *k, const chrome_event *e, chrome_field f, __int128 *out)
{
    const char *key = f == CHROME_TS ? "ts" : "dur";
    double us;
    if (!chrome_has(e, f))
        return fail_at_value(k->err, e->self, "a complete event without \"%s\"", key);
    const orr_code code = orr_json_get_double(e->of[f], &us, k->err);
    if (code)
        return code;
    if (us >= -TIME_MOST && us <= TIME_MOST && orr__micros_ps(orr_json_raw(e->of[f]), out))
        return ORR_OK;
    return fail_at_value(k->err, e->self, "\"%s\" is out of range: expected microseconds", key);
}

static orr_code get_interval(kineto *k, const chrome_event *e, interval *out)
{
    __int128 from = 0, length = 0;
    *out = (interval){.call = MATCH_NONE};
    orr_code code = get_ps(k, e, CHROME_TS, &from);
    if (code || (code = get_ps(k, e, CHROME_DUR, &length)))
        return code;
    out->from = (int64_t)(from / 1000);
    out->to = (int64_t)((from + (length > 0 ? length : 0)) / 1000);
    if (chrome_has(e, CHROME_TID) && orr_json_type_of(e->of[CHROME_TID]) == ORR_JSON_INT)
        return orr_json_get_i64(e->of[CHROME_TID], &out->thread, k->err);
    return ORR_OK;
}

/* 0: there is none. */
static uint64_t external_of(orr_json_value args)
{
    orr_json_value v;
    uint64_t id;
    return orr_json_find(args, "External id", &v) && !orr_json_get_u64(v, &id, NULL) ? id : 0;
}

static orr_code add_operator(kineto *k, const chrome_event *e, orr_json_value args)
{
    interval span;
    match_side *s = &k->m->sides[MATCH_MEASURED];
    orr_code code = get_interval(k, e, &span);
    if (code || (code = add_shapes(k, args)))
        return code;
    const match_draft draft = {
        .call = {.name = e->name, .in = k->tensors.list, .in_count = (uint32_t)k->tensors.count},
        .caller = MATCH_NONE,
        .count = 1};
    span.call = (uint32_t)s->count;
    if ((code = match_add(k->m, MATCH_MEASURED, &draft, k->err)) || s->count == span.call)
        return code;
    if (!orr_grow(&k->intervals, &k->interval_room, k->interval_count + 1) ||
        !orr_map_put(k->by_external, external_of(args), span.call, NULL))
        return orr_no_memory(k->err);
    k->intervals[k->interval_count++] = span;
    return ORR_OK;
}

static orr_code add_kernel(kineto *k, const chrome_event *e, orr_json_value args)
{
    __int128 ps;
    const orr_code code = get_ps(k, e, CHROME_DUR, &ps);
    if (code)
        return code;
    if (!orr_grow(&k->kernels, &k->kernel_room, k->kernel_count + 1))
        return orr_no_memory(k->err);
    ps = ps < 0 ? 0 : ps > KERNEL_PS_MOST ? KERNEL_PS_MOST : ps;
    k->kernels[k->kernel_count++] = (kernel){external_of(args), (orr_ps)ps};
    return ORR_OK;
}

static orr_code read_event(void *context, orr_json_value event)
{
    kineto *k = context;
    chrome_event e;
    (void)chrome_event_read(event, &e);
    const orr_json_value args = chrome_has(&e, CHROME_ARGS) ? e.of[CHROME_ARGS] : event;
    if (!orr_str_is(e.ph, "X"))
        return ORR_OK;
    if (orr_str_is(e.cat, "cpu_op") && orr_str_begins(e.name, "aten::"))
        return add_operator(k, &e, args);
    if (chrome_has(&e, CHROME_NAME) &&
        (orr_str_is(e.cat, "kernel") || orr_str_begins(e.cat, "gpu_mem")))
        return add_kernel(k, &e, args);
    if (orr_str_is(e.cat, "user_annotation") && orr_str_begins(e.name, "ProfilerStep#")) {
        interval step;
        const orr_code code = get_interval(k, &e, &step);
        if (!code && (k->step.to <= k->step.from || step.from > k->step.from))
            k->step = step;
        return code;
    }
    return ORR_OK;
}

static orr_code read_profile(kineto *k)
{
    static const orr_json_list how = {
        .key = "traceEvents", .what = "a profiler trace", .takes_bare = true, .item = read_event};
    const orr_code code = orr_json_walk_list(k->j, &how, k, k->err);
    if (code || k->interval_count)
        return code;
    return orr_fail(
        k->err, ORR_EINPUT, ORR_AT(orr_json_place(k->j, 0)),
        "no operators (\"cat\": \"cpu_op\", \"name\": \"aten::...\") among \"traceEvents\"");
}

/* ---- after all events ---- */

static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->from < y->from || x->from > y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to < y->to || x->to > y->to)
        return x->to > y->to ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* The stack of open operators is in the list itself: callers lead from the innermost outwards. */
static void find_enclosing(kineto *k)
{
    match_call *calls = k->m->sides[MATCH_MEASURED].calls;
    size_t depth = 0;
    interval *open = k->intervals; /* entries before the current one are no longer needed */
    orr_sort(k->intervals, k->interval_count, sizeof *k->intervals, by_start);
    for (size_t i = 0; i < k->interval_count; i++) {
        const interval at = k->intervals[i];
        while (depth && (open[depth - 1].thread != at.thread || open[depth - 1].to <= at.from))
            depth--;
        calls[at.call].caller = depth ? open[depth - 1].call : MATCH_NONE;
        open[depth++] = at;
    }
}

static void give_times(kineto *k)
{
    match_side *s = &k->m->sides[MATCH_MEASURED];
    for (size_t i = 0; i < k->kernel_count; i++) {
        const uint32_t call = orr_map_find(k->by_external, k->kernels[i].external, MATCH_NONE);
        if (call == MATCH_NONE || k->kernels[i].external == 0)
            continue;
        if (__builtin_add_overflow(s->calls[call].time, k->kernels[i].time, &s->calls[call].time))
            s->calls[call].time = INT64_MAX;
        s->has_times |= k->kernels[i].time > 0;
    }
}

/* Operators outside of the last step do not count. */
static void keep_step(kineto *k)
{
    match_call *calls = k->m->sides[MATCH_MEASURED].calls;
    for (size_t i = 0; k->step.to > k->step.from && i < k->interval_count; i++) {
        const interval *at = &k->intervals[i];
        if (at->from >= k->step.from && at->from < k->step.to)
            continue;
        match_call *c = &calls[at->call];
        c->count = c->flops = c->bytes = 0;
        c->time = 0;
        c->is_free = true;
    }
}

orr_code match_kineto(match *m, orr_span bytes, const char *label, orr_error *err)
{
    kineto k = {.m = m, .by_external = orr_map_create(1024), .tensors = {.err = err}, .err = err};
    orr_code code = k.by_external ? orr_json_open(bytes, label, &k.j, err) : orr_no_memory(err);
    if (!code && !(code = read_profile(&k))) {
        give_times(&k);
        keep_step(&k);
        find_enclosing(&k);
    }
    orr_json_close(k.j);
    orr_map_destroy(k.by_external);
    orr_free(k.intervals);
    orr_free(k.kernels);
    tensors_fini(&k.tensors);
    return code;
}
