/* SPDX-License-Identifier: Apache-2.0 */
/* linked_read.c - a linked trace from JSON: what chakra_trace_link or orrery link wrote, or a host
 * trace alone.
 *
 * One node of the file at a time becomes a tree, is taken apart and forgotten; inputs and outputs
 * stay the text they are in the file.  An entry of `attrs` overrides the field of the same name
 * (chakra.md 4.1), so attrs come last.
 *
 * Fields that are there must be of the right type, with the place in the message; which fields must
 * be there is a matter of the rules, ours need id and name.  The form is chosen by what a node has,
 * not by the name of the schema: before 1.0.2 attributes were fields, and the parent was called so.
 *
 * Memory: a few hundred bytes per node, beside the file's pages, which are given back as the
 * reading goes on. */
#include "linked.h"

#include "base/formats/json_list.h"
#include "trace/formats/micros.h"

#include <inttypes.h>
#include <stdio.h>

enum { RELEASE_STEP = 8 << 20 };

typedef struct reader {
    orr_linked *l;
    orr_json *json;
    orr_span bytes;
    orr_error *err;
    const char *const *schemas; /* by other rules: only these, in one form */
    uint64_t released;          /* pages before this byte were given back */
    unsigned has;               /* bit per top-level key */
} reader;

enum { SCHEMA, PID, TIME, START_TS, FINISH_TS, NODES, TOP_KEYS };
static const char *const top_names[TOP_KEYS] = {"schema",   "pid",       "time",
                                                "start_ts", "finish_ts", "nodes"};

/* A node while it is read. */
typedef struct draft {
    linked_node node;
    linked_comm comm;
    linked_io inputs, outputs;
    orr_json_value attrs, sync; /* tree NULL: not there */
    orr_json_value value;       /* the node */
    uint64_t thread_dep;        /* LINKED_NO_ID */
    bool has_id, has_name, has_parent, has_inputs, has_outputs, has_comm;
} draft;

/* ---- values ---- */

static orr_code wrong(const reader *r, orr_json_value v, orr_str key, const char *expected)
{
    const orr_where at = orr_json_where(v);
    const orr_str raw = orr_json_raw(v);
    const int key_shown = key.len < 60 ? (int)key.len : 60,
              shown = raw.len < 40 ? (int)raw.len : 40;
    return orr_fail(r->err, ORR_EINPUT, &at, "%.*s: %.*s where %s was expected", key_shown, key.ptr,
                    shown, raw.ptr, expected);
}

static bool is_null(orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_NULL;
}

/* Where it lies in the file it stays; what had to be decoded is kept. */
static orr_code keep_text(const reader *r, orr_str s, orr_str *out)
{
    const uintptr_t at = (uintptr_t)s.ptr, from = (uintptr_t)r->bytes.ptr;
    *out = s;
    if (at >= from && at - from < r->bytes.len)
        return ORR_OK;
    out->ptr = orr_arena_text(r->l->arena, s);
    return out->ptr ? ORR_OK : orr_no_memory(r->err);
}

static orr_code take_text(const reader *r, orr_str key, orr_json_value v, orr_str *out)
{
    orr_str s;
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return wrong(r, v, key, "a text");
    const orr_code code = orr_json_get_str(v, &s, r->err);
    return code ? code : keep_text(r, s, out);
}

/* To Python true is 1. */
static orr_code take_int(const reader *r, orr_str key, orr_json_value v, int64_t *out)
{
    bool is_true;
    if (orr_json_type_of(v) == ORR_JSON_BOOL && !orr_json_get_bool(v, &is_true, NULL)) {
        *out = is_true;
        return ORR_OK;
    }
    if (orr_json_type_of(v) != ORR_JSON_INT || orr_json_get_i64(v, out, NULL))
        return wrong(r, v, key, "a whole number of 64 bits");
    return ORR_OK;
}

static orr_code take_id(const reader *r, orr_str key, orr_json_value v, uint64_t *out)
{
    if (orr_json_type_of(v) != ORR_JSON_INT || orr_json_get_u64(v, out, NULL) ||
        *out == LINKED_NO_ID)
        return wrong(r, v, key, "the number of a node, 0 or more,");
    return ORR_OK;
}

static orr_code take_time(const reader *r, orr_str key, orr_json_value v, int64_t *out)
{
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_NULL && !r->schemas)
        return ORR_OK;
    if ((type == ORR_JSON_INT || type == ORR_JSON_REAL) && orr__micros_ns(orr_json_raw(v), out))
        return ORR_OK;
    return wrong(r, v, key, "a time in microseconds");
}

/* The parent: one number; -1, null and the like mean none.  Newer tools may write a list. */
static orr_code take_parent(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    orr_json_value first;
    orr_json_iter it = orr_json_iterate(v);
    int64_t number;
    d->has_parent = true;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !r->schemas)
        return orr_json_next_value(&it, &first) ? take_parent(r, key, first, d) : ORR_OK;
    if (is_null(v) || (!orr_json_get_i64(v, &number, NULL) && number < 0))
        return ORR_OK;
    return take_id(r, key, v, &d->node.parent);
}

/* ---- inputs and outputs ---- */

static orr_code take_io(const reader *r, orr_str key, orr_json_value v, linked_io *io, bool *has)
{
    orr_str name;
    orr_json_value member;
    *has = true;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !r->schemas) {
        io->values = orr_json_raw(v);
        return ORR_OK;
    }
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        return wrong(r, v, key, "an object of values, shapes and types");
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_member(&it, &name, &member);) {
        if (orr_str_is(name, "values"))
            io->values = orr_json_raw(member);
        else if (orr_str_is(name, "shapes"))
            io->shapes = orr_json_raw(member);
        else if (orr_str_is(name, "types"))
            io->types = orr_json_raw(member);
    }
    if (r->schemas && (!io->values.len || !io->shapes.len || !io->types.len))
        return wrong(r, v, key, "an object of values, shapes and types");
    return ORR_OK;
}

/* ---- fields ---- */

typedef enum field {
    F_ID,
    F_NAME,
    F_CTRL_DEPS,
    F_INPUTS,
    F_OUTPUTS,
    F_ATTRS,
    F_EXCLUSIVE_DUR,
    F_INCLUSIVE_DUR,
    F_WAIT_DUR,
    F_TS,
    F_INTER_THREAD_DEP,
    F_SYNC_DEP,
    F_CAT,
    F_STREAM,
    F_RF_ID,
    F_FW_PARENT,
    F_SEQ_ID,
    F_SCOPE,
    F_TID,
    F_FW_TID,
    F_OP_SCHEMA,
    F_PG_NAME,
    F_PG_DESC,
    F_PG_SIZE,
    F_RANK_START,
    F_RANK_STRIDE,
    F_COLLECTIVE,
    F_DTYPE,
    F_IN_ELEMENTS,
    F_OUT_ELEMENTS,
    F_IN_SPLIT,
    F_OUT_SPLIT,
    F_RANKS,
    F_SRC,
    F_DST,
    F_TAG,
    F_SEQUENCE,
    F_OLD_PARENT,
    F_INPUT_SHAPES,
    F_INPUT_TYPES,
    F_OUTPUT_SHAPES,
    F_OUTPUT_TYPES,
    F_NONE
} field;

static const char *const field_names[F_NONE] = {
    [F_ID] = "id",
    [F_NAME] = "name",
    [F_CTRL_DEPS] = "ctrl_deps",
    [F_INPUTS] = "inputs",
    [F_OUTPUTS] = "outputs",
    [F_ATTRS] = "attrs",
    [F_EXCLUSIVE_DUR] = "exclusive_dur",
    [F_INCLUSIVE_DUR] = "inclusive_dur",
    [F_WAIT_DUR] = "wait_dur",
    [F_TS] = "ts",
    [F_INTER_THREAD_DEP] = "inter_thread_dep",
    [F_SYNC_DEP] = "sync_dep",
    [F_CAT] = "cat",
    [F_STREAM] = "stream",
    [F_RF_ID] = "rf_id",
    [F_FW_PARENT] = "fw_parent",
    [F_SEQ_ID] = "seq_id",
    [F_SCOPE] = "scope",
    [F_TID] = "tid",
    [F_FW_TID] = "fw_tid",
    [F_OP_SCHEMA] = "op_schema",
    [F_PG_NAME] = "pg_name",
    [F_PG_DESC] = "pg_desc",
    [F_PG_SIZE] = "pg_size",
    [F_RANK_START] = "global_rank_start",
    [F_RANK_STRIDE] = "global_rank_stride",
    [F_COLLECTIVE] = "collective_name",
    [F_DTYPE] = "dtype",
    [F_IN_ELEMENTS] = "in_msg_nelems",
    [F_OUT_ELEMENTS] = "out_msg_nelems",
    [F_IN_SPLIT] = "in_split_size",
    [F_OUT_SPLIT] = "out_split_size",
    [F_RANKS] = "pg_ranks",
    [F_SRC] = "src_rank",
    [F_DST] = "dst_rank",
    [F_TAG] = "comm_tag",
    [F_SEQUENCE] = "comm_seq",
    [F_OLD_PARENT] = "parent",
    [F_INPUT_SHAPES] = "input_shapes",
    [F_INPUT_TYPES] = "input_types",
    [F_OUTPUT_SHAPES] = "output_shapes",
    [F_OUTPUT_TYPES] = "output_types",
};

/* Length and first letter leave one or two candidates. */
static field find_field(orr_str key)
{
    for (int f = 0; f < F_NONE; f++) {
        if (key.len && field_names[f][0] == key.ptr[0] && orr_str_is(key, field_names[f]))
            return (field)f;
    }
    return F_NONE;
}

static int64_t *number_of(draft *d, field f)
{
    switch (f) {
    case F_RF_ID:
        return &d->node.rf_id;
    case F_FW_PARENT:
        return &d->node.fw_parent;
    case F_SEQ_ID:
        return &d->node.seq_id;
    case F_SCOPE:
        return &d->node.scope;
    case F_TID:
        return &d->node.tid;
    default:
        return &d->node.fw_tid;
    }
}

static int64_t *comm_number(draft *d, field f)
{
    switch (f) {
    case F_PG_SIZE:
        return &d->comm.group_size;
    case F_RANK_START:
        return &d->comm.rank_start;
    case F_RANK_STRIDE:
        return &d->comm.rank_stride;
    case F_IN_ELEMENTS:
        return &d->comm.in_elements;
    case F_OUT_ELEMENTS:
        return &d->comm.out_elements;
    case F_SRC:
        return &d->comm.src;
    case F_DST:
        return &d->comm.dst;
    case F_TAG:
        return &d->comm.tag;
    case F_SEQUENCE:
        return &d->comm.sequence;
    default:
        return NULL;
    }
}

static orr_str *comm_text(draft *d, field f)
{
    switch (f) {
    case F_PG_NAME:
        return &d->comm.group;
    case F_PG_DESC:
        return &d->comm.group_about;
    case F_COLLECTIVE:
        return &d->comm.collective;
    case F_DTYPE:
        return &d->comm.dtype;
    case F_IN_SPLIT:
        return &d->comm.in_split;
    case F_OUT_SPLIT:
        return &d->comm.out_split;
    default:
        return &d->comm.ranks;
    }
}

/* What only the new converter looks at may be of any type: what is not understood is not there. */
static orr_code take_comm(const reader *r, orr_str key, orr_json_value v, draft *d, field f)
{
    int64_t *number = comm_number(d, f);
    d->has_comm = true;
    if (number) {
        if (orr_json_get_i64(v, number, NULL))
            *number = -1;
        return ORR_OK;
    }
    if (orr_json_type_of(v) == ORR_JSON_STRING)
        return take_text(r, key, v, comm_text(d, f));
    if (f == F_PG_NAME && r->schemas && !is_null(v))
        return wrong(r, v, key, "a text");
    if (!is_null(v))
        *comm_text(d, f) = orr_json_raw(v); /* a list of ranks; a group that is a number */
    return ORR_OK;
}

static orr_code take_stream(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    d->node.stream = ORR_NO_VALUE;
    return is_null(v) ? ORR_OK : take_int(r, key, v, &d->node.stream);
}

static orr_code take_attribute(const reader *r, orr_str key, orr_json_value v, draft *d, field f)
{
    d->node.lacks &= (uint8_t) ~(1u << (f - F_RF_ID));
    if (f == F_OP_SCHEMA)
        return is_null(v) && !r->schemas ? ORR_OK : take_text(r, key, v, &d->node.op_schema);
    return is_null(v) && !r->schemas ? ORR_OK : take_int(r, key, v, number_of(d, f));
}

static orr_code take_cat(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    orr_str cat;
    d->node.kind = is_null(v) ? LINKED_ON_HOST : LINKED_ON_DEVICE;
    if (is_null(v))
        return ORR_OK;
    const orr_code code = take_text(r, key, v, &cat);
    d->node.is_memory = !code && (orr_str_is(cat, "gpu_memcpy") || orr_str_is(cat, "gpu_memset"));
    return code;
}

static orr_code take_thread_dep(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    d->thread_dep = LINKED_NO_ID;
    return is_null(v) ? ORR_OK : take_id(r, key, v, &d->thread_dep);
}

static orr_code take_old_form(const reader *r, orr_str key, orr_json_value v, draft *d, field f)
{
    if (r->schemas)
        return ORR_OK;
    if (f == F_OLD_PARENT)
        return d->has_parent ? ORR_OK : take_parent(r, key, v, d);
    linked_io *io = f == F_INPUT_SHAPES || f == F_INPUT_TYPES ? &d->inputs : &d->outputs;
    *(f == F_INPUT_SHAPES || f == F_OUTPUT_SHAPES ? &io->shapes : &io->types) = orr_json_raw(v);
    return ORR_OK;
}

static orr_code take_field(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    const field f = find_field(key);
    switch (f) {
    case F_ID:
        d->has_id = true;
        return take_id(r, key, v, &d->node.id);
    case F_NAME:
        d->has_name = true;
        return take_text(r, key, v, &d->node.name);
    case F_CTRL_DEPS:
        d->node.parent = LINKED_NO_ID;
        return take_parent(r, key, v, d);
    case F_INPUTS:
        return take_io(r, key, v, &d->inputs, &d->has_inputs);
    case F_OUTPUTS:
        return take_io(r, key, v, &d->outputs, &d->has_outputs);
    case F_ATTRS:
        d->attrs = v;
        return ORR_OK;
    case F_EXCLUSIVE_DUR:
        return take_time(r, key, v, &d->node.own_ns);
    case F_INCLUSIVE_DUR:
        return r->schemas ? ORR_OK : take_time(r, key, v, &d->node.duration_ns);
    case F_WAIT_DUR:
        return r->schemas ? ORR_OK : take_time(r, key, v, &d->node.wait_ns);
    case F_TS:
        return r->schemas ? ORR_OK : take_time(r, key, v, &d->node.start_ns);
    case F_INTER_THREAD_DEP:
        return take_thread_dep(r, key, v, d);
    case F_SYNC_DEP:
        d->sync = v;
        return ORR_OK;
    case F_CAT:
        return take_cat(r, key, v, d);
    case F_STREAM:
        return take_stream(r, key, v, d);
    case F_NONE:
        return ORR_OK;
    default:
        break;
    }
    if (f >= F_OLD_PARENT)
        return take_old_form(r, key, v, d, f);
    if (f >= F_PG_NAME)
        return take_comm(r, key, v, d, f);
    return take_attribute(r, key, v, d, f);
}

/* An attribute is {"name": ..., "type": ..., "value": ...}. */
static orr_code take_attr(const reader *r, orr_json_value v, draft *d)
{
    orr_json_value name, value;
    orr_str key;
    const orr_str what = orr_str_of("attrs");
    if (!orr_json_find(v, "name", &name) || orr_json_type_of(name) != ORR_JSON_STRING ||
        orr_json_get_str(name, &key, NULL) || !orr_json_find(v, "value", &value))
        return wrong(r, v, what, "an object with name and value");
    if (orr_str_is(key, "id") || orr_str_is(key, "attrs"))
        return ORR_OK;
    return take_field(r, key, value, d);
}

static orr_code take_attrs(const reader *r, draft *d)
{
    orr_json_value item;
    orr_code code = ORR_OK;
    if (!d->attrs.tree)
        return ORR_OK;
    if (orr_json_type_of(d->attrs) != ORR_JSON_ARRAY)
        return wrong(r, d->attrs, orr_str_of("attrs"), "an array");
    for (orr_json_iter it = orr_json_iterate(d->attrs); !code && orr_json_next_value(&it, &item);)
        code = take_attr(r, item, d);
    return code;
}

/* ---- a node ---- */

static orr_code lacking(const reader *r, const draft *d, const char *name)
{
    const orr_where at = orr_json_where(d->value);
    return orr_fail(r->err, ORR_EINPUT, &at, "a node without %s", name);
}

static orr_code check_complete(const reader *r, const draft *d)
{
    if (!d->has_id)
        return lacking(r, d, "id");
    if (!d->has_name)
        return lacking(r, d, "name");
    if (!r->schemas)
        return ORR_OK;
    if (!d->has_parent)
        return lacking(r, d, "ctrl_deps");
    return d->has_inputs ? d->has_outputs ? ORR_OK : lacking(r, d, "outputs")
                         : lacking(r, d, "inputs");
}

static orr_code keep_io(const reader *r, const linked_io *io, const linked_io **out)
{
    linked_io *kept = orr_arena_take(r->l->arena, sizeof *kept);
    if (!kept)
        return orr_no_memory(r->err);
    *kept = *io;
    *out = kept;
    return ORR_OK;
}

/* Waiting for the device is the host's business; what a device node waits for is on the device. */
static orr_code join_sync(const reader *r, const draft *d)
{
    orr_json_value item;
    uint64_t from;
    const linked_edge_kind kind =
        d->node.kind == LINKED_ON_DEVICE ? LINKED_EDGE_EVENT : LINKED_EDGE_SYNC;
    if (!d->sync.tree || is_null(d->sync))
        return ORR_OK;
    if (orr_json_type_of(d->sync) != ORR_JSON_ARRAY)
        return wrong(r, d->sync, orr_str_of("sync_dep"), "an array of numbers of nodes");
    for (orr_json_iter it = orr_json_iterate(d->sync); orr_json_next_value(&it, &item);) {
        const orr_code code = take_id(r, orr_str_of("sync_dep"), item, &from);
        if (code)
            return code;
        if (!linked_join(r->l, from, d->node.id, kind))
            return orr_no_memory(r->err);
    }
    return ORR_OK;
}

/* A device node is a copy of its host node, inter_thread_dep and all; to it that means nothing. */
static orr_code join(const reader *r, const draft *d)
{
    if (d->thread_dep != LINKED_NO_ID && d->node.kind != LINKED_ON_DEVICE &&
        !linked_join(r->l, d->thread_dep, d->node.id, LINKED_EDGE_THREAD))
        return orr_no_memory(r->err);
    return join_sync(r, d);
}

/* The list of groups is a text among the node's values. */
static void read_groups(const reader *r, orr_json_value node)
{
    orr_json_value inputs, values, item;
    orr_str list;
    if (!orr_json_find(node, "inputs", &inputs))
        return;
    if (!orr_json_find(inputs, "values", &values))
        values = inputs;
    for (orr_json_iter it = orr_json_iterate(values); orr_json_next_value(&it, &item);) {
        if (orr_json_type_of(item) == ORR_JSON_STRING && !orr_json_get_str(item, &list, NULL))
            (void)linked_read_groups(r->l, list);
    }
}

static orr_code keep_node(const reader *r, draft *d)
{
    orr_code code = check_complete(r, d);
    if (!code && d->inputs.values.len)
        code = keep_io(r, &d->inputs, &d->node.inputs);
    if (!code && d->outputs.values.len)
        code = keep_io(r, &d->outputs, &d->node.outputs);
    if (!code)
        code = join(r, d);
    if (code)
        return code;
    if (orr_str_has(d->node.name, "process_group:init")) {
        d->node.kind = LINKED_GROUPS;
        read_groups(r, d->value);
    }
    if (r->l->lacks_memory || !linked_add(r->l, &d->node, d->has_comm ? &d->comm : NULL))
        return orr_no_memory(r->err);
    return ORR_OK;
}

static void give_back(reader *r, uint64_t byte)
{
    if (!r->l->input[0] || byte - r->released < RELEASE_STEP)
        return;
    orr_input_release(r->l->input[0], r->released, byte);
    r->released = byte;
}

static orr_code read_node(void *context, orr_json_value v)
{
    reader *r = context;
    draft d = {.value = v, .comm = linked_no_comm(), .thread_dep = LINKED_NO_ID};
    orr_str key;
    orr_json_value member;
    orr_code code = ORR_OK;
    give_back(r, orr_json_byte(v));
    d.node = (linked_node){.parent = LINKED_NO_ID,
                           .start_ns = LINKED_NO_TIME,
                           .duration_ns = LINKED_NO_TIME,
                           .lacks = 0x7F,
                           .byte = orr_json_byte(v)};
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        return wrong(r, v, orr_str_of("nodes"), "a node");
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_member(&it, &key, &member);)
        code = take_field(r, key, member, &d);
    if (!code)
        code = take_attrs(r, &d);
    return code ? code : keep_node(r, &d);
}

/* ---- the file ---- */

/* Given twice, the last list counts. */
static orr_code begin_nodes(void *context, const orr_json_item *list)
{
    reader *r = context;
    (void)list;
    r->has |= 1u << NODES;
    r->l->node_count = r->l->edge_count = r->l->comm_count = 0;
    return ORR_OK;
}

/* Numbers that are not understood are not there, unless the rules want them. */
static orr_code take_top_number(const reader *r, int key, orr_json_value v, uint64_t *out)
{
    if (orr_json_type_of(v) == ORR_JSON_INT && !orr_json_get_u64(v, out, NULL))
        return ORR_OK;
    return r->schemas ? wrong(r, v, orr_str_of(top_names[key]), "a whole number, 0 or more,")
                      : ORR_OK;
}

static orr_code read_top(reader *r, int key, const orr_json_item *item)
{
    orr_json_value v;
    if (key == NODES) {
        const orr_where at = orr_json_place(r->json, item->byte);
        return orr_fail(r->err, ORR_EINPUT, &at, "nodes: %s where an array was expected",
                        orr_json_type_name(item->type));
    }
    const orr_code code = orr_json_load(r->json, &v, r->err);
    if (code)
        return code;
    if (key == SCHEMA || key == TIME)
        return take_text(r, orr_str_of(top_names[key]), v,
                         key == SCHEMA ? &r->l->schema : &r->l->time);
    return take_top_number(r, key, v,
                           key == PID        ? &r->l->pid
                           : key == START_TS ? &r->l->start_ts
                                             : &r->l->finish_ts);
}

/* Which rank of how many this is, and the groups, as device traces have it; orrery link carries it
 * over. */
static orr_code read_job(reader *r)
{
    orr_json_value info, v;
    const orr_code code = orr_json_load(r->json, &info, r->err);
    if (code)
        return code;
    if (orr_json_find(info, "rank", &v) && orr_json_get_i64(v, &r->l->rank, NULL))
        r->l->rank = -1;
    if (orr_json_find(info, "world_size", &v) && orr_json_get_i64(v, &r->l->world, NULL))
        r->l->world = -1;
    if (orr_json_find(info, "pg_config", &v))
        (void)linked_read_groups(r->l, orr_json_raw(v));
    return ORR_OK;
}

static orr_code read_member(void *context, const orr_json_item *item)
{
    reader *r = context;
    if (!r->schemas && orr_str_is(item->key, "distributedInfo"))
        return read_job(r);
    for (int key = 0; key < TOP_KEYS; key++) {
        if (!orr_str_is(item->key, top_names[key]))
            continue;
        r->has |= 1u << key;
        return read_top(r, key, item);
    }
    return ORR_OK;
}

static orr_code check_schema(const reader *r)
{
    const orr_where at = orr_json_place(r->json, 0);
    char list[200] = "";
    size_t n = 0;
    for (size_t i = 0; r->schemas[i]; i++) {
        if (orr_str_is(r->l->schema, r->schemas[i]))
            return ORR_OK;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", r->schemas[i]);
    }
    return orr_fail(
        r->err, ORR_EINPUT, &at,
        "schema '%.*s' is none of those that are read: %s; orrery convert pytorch takes "
        "any schema",
        r->l->schema.len < 60 ? (int)r->l->schema.len : 60, r->l->schema.ptr, list);
}

static orr_code check_top(const reader *r)
{
    const orr_where at = orr_json_place(r->json, 0);
    for (int key = 0; key < TOP_KEYS; key++) {
        if (!(r->has & 1u << key) && (r->schemas || key == NODES))
            return orr_fail(r->err, ORR_EINPUT, &at,
                            "this is not a linked trace: there is no \"%s\" at the top",
                            top_names[key]);
    }
    return r->schemas ? check_schema(r) : ORR_OK;
}

static orr_code read_bytes(orr_linked *l,
                           orr_span bytes,
                           const orr_linked_options *opt,
                           orr_error *err)
{
    orr_error own;
    const orr_rules_convert *rules = opt ? opt->rules : NULL;
    l->rules = rules;
    reader r = {
        .l = l, .bytes = bytes, .err = err ? err : &own, .schemas = rules ? rules->schemas : NULL};
    l->text = bytes;
    orr_code code = orr_json_open(bytes, l->path, &r.json, err);
    if (code)
        return code;
    static const orr_json_list how = {.key = "nodes",
                                      .what = "a linked trace",
                                      .begin = begin_nodes,
                                      .item = read_node,
                                      .member = read_member};
    if (!(code = orr_json_walk_list(r.json, &how, &r, r.err)))
        code = check_top(&r);
    else if (code == ORR_EINPUT && r.schemas && (r.has & 1u << SCHEMA))
        code = check_schema(&r) ? ORR_EINPUT : code; /* a node of another schema: that is why */
    orr_json_close(r.json);
    return !code && l->is_out_of_memory ? orr_no_memory(err) : code;
}

orr_code orr_linked_parse(orr_span bytes,
                          const char *label,
                          const orr_linked_options *opt,
                          orr_linked **out,
                          orr_error *err)
{
    *out = linked_create(label);
    if (!*out)
        return orr_no_memory(err);
    const orr_code code = read_bytes(*out, bytes, opt, err);
    if (code) {
        orr_linked_free(*out);
        *out = NULL;
    }
    return code;
}

orr_code orr_linked_read(const char *path,
                         const orr_linked_options *opt,
                         orr_linked **out,
                         orr_error *err)
{
    *out = linked_create(path);
    if (!*out)
        return orr_no_memory(err);
    orr_code code = orr_input_open(path, &(*out)->input[0], err);
    if (!code)
        code = read_bytes(*out, orr_input_bytes((*out)->input[0]), opt, err);
    if (code) {
        orr_linked_free(*out);
        *out = NULL;
    }
    return code;
}
