/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_convert.c - a trace exactly as Chakra's converter writes it (chakra.md 4.1). */
#include "chakra_convert.h"
#include "chakra.h"
#include "sources/torch/convert/python_text.h"

#include "base/formats/json.h"
#include "trace/attrs.h"

#include <inttypes.h>

typedef struct writer {
    const chakra_plan *p;
    orr_trace *t;
    orr_buf text[6]; /* of inputs, then outputs: values, shapes, types */
    orr_buf plain;   /* the name of a kernel without what does not matter */
    uint64_t *deps;
    size_t dep_room;
    orr_error *err;
} writer;

/* ---- collectives ---- */

/* By the kernel's name in lower case, without '_' and '-'; the first of these words that occurs
 * counts. */
static bool find_collective(orr_buf *plain, orr_str name, int64_t *out)
{
    static const struct {
        const char *word;
        orr_collective kind;
    } words[] = {
        {"allreduce", ORR_COLL_ALL_REDUCE}, {"alltoall", ORR_COLL_ALL_TO_ALL},
        {"allgather", ORR_COLL_ALL_GATHER}, {"reducescatter", ORR_COLL_REDUCE_SCATTER},
        {"broadcast", ORR_COLL_BROADCAST},  {"sendrecv", ORR_COLL_ALL_TO_ALL},
    };
    plain->len = 0;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (c != '_' && c != '-')
            orr_buf_byte(plain, (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c));
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (orr_str_has((orr_str){(const char *)plain->ptr, plain->len}, words[i].word)) {
            *out = words[i].kind;
            return true;
        }
    }
    return false;
}

static orr_code unknown_collective(const writer *w, const linked_node *n)
{
    const orr_where at = linked_where(w->p->l, n);
    return orr_fail(w->err, ORR_EINPUT, &at,
                    "node %" PRIu64
                    ": chakra_converter knows no collective by the name of the kernel "
                    "'%.*s'",
                    n->id, n->name.len < 80 ? (int)n->name.len : 80, n->name.ptr);
}

/* ---- sizes: [tensor id, storage id, offset, elements, bytes of one, device] ---- */

static bool tensor_bytes(orr_json_value v, int64_t *sum)
{
    int64_t field[5] = {0}, bytes;
    orr_json_value item;
    int i = 0;
    for (orr_json_iter it = orr_json_iterate(v); i < 5 && orr_json_next_value(&it, &item); i++) {
        if (i >= 3 && orr_json_get_i64(item, &field[i], NULL))
            return false;
    }
    return i == 5 && orr_json_type_of(v) == ORR_JSON_ARRAY &&
           !__builtin_mul_overflow(field[3], field[4], &bytes) &&
           !__builtin_add_overflow(*sum, bytes, sum);
}

static bool list_bytes(orr_json_value v, int64_t *sum)
{
    orr_json_value item;
    if (orr_json_type_of(v) != ORR_JSON_ARRAY)
        return false;
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_value(&it, &item);) {
        if (!tensor_bytes(item, sum))
            return false;
    }
    return true;
}

static bool value_bytes(orr_json_value v, orr_json_value type, int64_t *sum)
{
    static const char list[] = "GenericList[Tensor";
    orr_str s;
    if (orr_json_type_of(type) != ORR_JSON_STRING || orr_json_get_str(type, &s, NULL))
        return false;
    if (s.len >= sizeof list - 1 && memcmp(s.ptr, list, sizeof list - 1) == 0)
        return list_bytes(v, sum);
    return !orr_str_has(s, "Tensor") || tensor_bytes(v, sum);
}

static bool sum_values(orr_json_value values, orr_json_value types, int64_t *sum)
{
    orr_json_value v, type;
    orr_json_iter a = orr_json_iterate(values), b = orr_json_iterate(types);
    while (orr_json_next_value(&a, &v) && orr_json_next_value(&b, &type)) {
        if (!value_bytes(v, type, sum))
            return false;
    }
    return true;
}

static orr_code open_json(orr_str text, orr_json **j, orr_json_value *root, orr_error *err)
{
    const orr_span bytes = {(const uint8_t *)text.ptr, text.len};
    const orr_code code = orr_json_open(bytes, NULL, j, err);
    return code ? code : orr_json_only(*j, root, err);
}

static orr_code find_size(const writer *w, const linked_node *n, int64_t *out)
{
    orr_json *values = NULL, *types = NULL;
    orr_json_value v, t;
    *out = 0;
    orr_code code = open_json(n->inputs->values, &values, &v, w->err);
    if (!code)
        code = open_json(n->inputs->types, &types, &t, w->err);
    const bool ok = !code && sum_values(v, t, out);
    orr_json_close(values);
    orr_json_close(types);
    if (ok || code == ORR_ENOMEM)
        return code;
    const orr_where at = linked_where(w->p->l, n);
    return orr_fail(w->err, ORR_EINPUT, &at,
                    "node %" PRIu64 ": among its inputs is a tensor that is not a list of 6 values",
                    n->id);
}

/* ---- nodes ---- */

static orr_attr whole(orr__attr_key key, int64_t v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_attr text(orr__attr_key key, orr_str v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_STRING, .value.s = v};
}

static orr_code put_comm(writer *w, uint32_t item, orr_attr *attrs, size_t *count)
{
    const linked_node *n = chakra_node(w->p, item);
    int64_t kind, size;
    if (w->p->type[item] == ORR_NODE_COMM_COLL) {
        if (!find_collective(&w->plain, n->name, &kind))
            return w->plain.failed ? orr_no_memory(w->err) : unknown_collective(w, n);
        attrs[(*count)++] = whole(ORR__ATTR_COMM_TYPE, kind);
    }
    const orr_code code = find_size(w, n, &size);
    attrs[(*count)++] = whole(ORR__ATTR_COMM_SIZE, size);
    if (w->p->group[item].len)
        attrs[(*count)++] = text(ORR__ATTR_PG_NAME, w->p->group[item]);
    return code;
}

static orr_str python(orr_buf *b, orr_str json)
{
    b->len = 0;
    python_text(b, json);
    return (orr_str){(const char *)b->ptr, b->len};
}

static orr_io put_io(writer *w, const linked_io *io, unsigned at)
{
    return (orr_io){.values = python(&w->text[at], io->values),
                    .shapes = python(&w->text[at + 1], io->shapes),
                    .types = python(&w->text[at + 2], io->types)};
}

static bool put_deps(writer *w, uint32_t item, orr_draft *d)
{
    for (uint32_t e = w->p->dep_first[item]; e != CHAKRA_NONE; e = w->p->deps[e].next) {
        if (!orr_grow(&w->deps, &w->dep_room, d->data_count + 1))
            return false;
        w->deps[d->data_count++] = chakra_node(w->p, w->p->deps[e].from)->id;
    }
    d->data_deps = w->deps;
    return true;
}

static orr_code put_node(writer *w, uint32_t item)
{
    const linked_node *n = chakra_node(w->p, item);
    orr_attr stream = whole(ORR__ATTR_STREAM, n->stream);
    if (n->stream == ORR_NO_VALUE)
        stream.kind = ORR_VALUE_NONE; /* null: the attribute is there, its value is not */
    orr_attr attrs[12] = {
        whole(ORR__ATTR_RF_ID, n->rf_id),
        whole(ORR__ATTR_FW_PARENT, n->fw_parent),
        whole(ORR__ATTR_SEQ_ID, n->seq_id),
        whole(ORR__ATTR_SCOPE, n->scope),
        whole(ORR__ATTR_TID, n->tid),
        whole(ORR__ATTR_FW_TID, n->fw_tid),
        text(ORR__ATTR_OP_SCHEMA, n->op_schema),
        {.name = orr__attr_rows[ORR__ATTR_IS_CPU_OP].name,
         .kind = ORR_VALUE_BOOL,
         .value.u = n->kind != LINKED_ON_DEVICE},
        stream,
    };
    const orr_io inputs = put_io(w, n->inputs, 0), outputs = put_io(w, n->outputs, 3);
    orr_draft d = {.id = n->id,
                   .name = n->name,
                   .type = w->p->type[item],
                   .ctrl_deps = &n->parent,
                   .ctrl_count = (w->p->state[item] & CHAKRA_HAS_CTRL) != 0,
                   .duration_us = chakra_duration(n),
                   .inputs = &inputs,
                   .outputs = &outputs,
                   .attrs = attrs,
                   .attr_count = 9};
    if (!put_deps(w, item, &d))
        return orr_no_memory(w->err);
    for (unsigned i = 0; i < 6; i++) {
        if (w->text[i].failed)
            return orr_no_memory(w->err);
    }
    orr_code code = ORR_OK;
    if (d.type >= ORR_NODE_COMM_SEND)
        code = put_comm(w, item, attrs, &d.attr_count);
    return code ? code : orr_trace_append(w->t, &d, w->err);
}

/* Nodes that are left out in the end must be right as well. */
static orr_code put_nodes(writer *w)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < w->p->count && !code; k++) {
        const uint32_t item = w->p->by_id[k];
        if (chakra_is_written(w->p, item))
            code = put_node(w, item);
    }
    return code ? code : orr_trace_seal(w->t, w->err);
}

static orr_attr unsigned_number(orr__attr_key key, uint64_t v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_UINT64, .value.u = v};
}

static orr_code write_plan(const chakra_plan *p, orr_trace **out, orr_error *err)
{
    writer w = {.p = p, .err = err};
    const orr_attr about[] = {
        text(ORR__ATTR_SCHEMA, p->l->schema), unsigned_number(ORR__ATTR_PID, p->l->pid),
        text(ORR__ATTR_TIME, p->l->time), unsigned_number(ORR__ATTR_START_TS, p->l->start_ts),
        unsigned_number(ORR__ATTR_FINISH_TS, p->l->finish_ts)};
    const orr_meta meta = {.attrs = about, .attr_count = 5};
    orr_code code = orr_trace_create(&meta, &w.t, err);
    if (code)
        return code;
    code = put_nodes(&w);
    for (unsigned i = 0; i < 6; i++)
        orr_buf_fini(&w.text[i]);
    orr_buf_fini(&w.plain);
    orr_free(w.deps);
    if (code)
        orr_trace_destroy(w.t);
    *out = code ? NULL : w.t;
    return code;
}

static orr_code make_trace(const orr_linked *l, orr_trace **out, orr_error *err)
{
    chakra_plan p;
    *out = NULL;
    orr_code code = chakra_plan_make(l, &p, err);
    if (code)
        return code;
    code = write_plan(&p, out, err);
    chakra_plan_end(&p);
    return code;
}

static const char *const schemas[] = {"1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4",
                                      "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", NULL};

const orr_rules_convert chakra_convert_rules = {
    .schemas = schemas, .trace = make_trace, .simulate = chakra_simulate};
