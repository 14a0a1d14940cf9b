/* SPDX-License-Identifier: Apache-2.0 */
/* linked_read.c - a linked trace from JSON: what chakra_trace_link or orrery link wrote, or a host
 * trace alone.
 *
 * One node at a time is parsed as a tree, evaluated and freed; inputs and outputs remain text of
 * the file.  An entry of `attrs` overrides the field of the same name (chakra.md 4.1), so attrs
 * come last.
 *
 * Fields must be of the right type if present; which ones are required depends on the rules, ours
 * need id and name.  The form is recognised by a node's fields, not by the schema's name: before
 * 1.0.2 attributes were fields, and the parent was called so.
 *
 * Memory: a few hundred bytes per node, and the file's pages, which are released while reading. */
#include "linked.h"

#include "base/formats/json.h"
#include "trace/formats/chrome_event.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { RELEASE_STEP = 8 << 20 };

typedef struct reader {
    orr_linked *l;
    orr_json *json;
    orr_span bytes;
    orr_error *err;
    const char *const *schemas; /* by other rules: only these, in one form */
    uint64_t released;          /* pages before this byte were released */
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
    orr_json_value attrs, sync; /* tree NULL: missing */
    orr_json_value value;       /* the node */
    uint64_t thread_dep;        /* LINKED_NO_ID */
    unsigned has;               /* HAS_... */
    bool has_comm;
} draft;

enum { HAS_ID = 1, HAS_NAME = 2, HAS_PARENT = 4, HAS_INPUTS = 8, HAS_OUTPUTS = 16 };

typedef struct field field;

/* A field of a node, or an attribute of that name. */
struct field {
    const char *name;
    orr_code (*take)(const reader *r, const field *f, orr_json_value v, draft *d);
    size_t at;    /* in the draft */
    uint8_t bit;  /* of draft.has, or of linked_node.lacks */
    bool is_ours; /* ignored by other rules */
};

/* ---- values ---- */

static orr_code wrong(const reader *r, orr_json_value v, const char *name, const char *expected)
{
    const orr_str raw = orr_json_raw(v);
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "%s: found %.*s, expected %s",
                    name, ORR_SHOWN(raw, 40), expected);
}

static bool is_null(orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_NULL;
}

static void *place_of(draft *d, const field *f)
{
    return (char *)d + f->at;
}

/* Borrowed from the file if possible; decoded strings are kept. */
static orr_code get_text(const reader *r, const char *name, orr_json_value v, orr_str *out)
{
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return wrong(r, v, name, "a text");
    const orr_code code = orr_json_get_str(v, out, r->err);
    const uintptr_t at = (uintptr_t)out->ptr, from = (uintptr_t)r->bytes.ptr;
    if (code || (at >= from && at - from < r->bytes.len))
        return code;
    out->ptr = orr_arena_text(r->l->arena, *out);
    return out->ptr ? ORR_OK : orr_no_memory(r->err);
}

/* In Python true is 1. */
static orr_code get_int(const reader *r, const char *name, orr_json_value v, int64_t *out)
{
    bool is_true;
    if (orr_json_type_of(v) == ORR_JSON_BOOL && !orr_json_get_bool(v, &is_true, NULL)) {
        *out = is_true;
        return ORR_OK;
    }
    if (orr_json_type_of(v) != ORR_JSON_INT || orr_json_get_i64(v, out, NULL))
        return wrong(r, v, name, "a whole number of 64 bits");
    return ORR_OK;
}

static orr_code get_id(const reader *r, const char *name, orr_json_value v, uint64_t *out)
{
    if (orr_json_type_of(v) != ORR_JSON_INT || orr_json_get_u64(v, out, NULL) ||
        *out == LINKED_NO_ID)
        return wrong(r, v, name, "the number of a node, 0 or more");
    return ORR_OK;
}

/* ---- fields ---- */

static orr_code take_id(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->has |= HAS_ID;
    return get_id(r, f->name, v, &d->node.id);
}

static orr_code take_name(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->has |= HAS_NAME;
    return get_text(r, f->name, v, &d->node.name);
}

/* For later, after all fields. */
static orr_code take_value(const reader *r, const field *f, orr_json_value v, draft *d)
{
    (void)r;
    *(orr_json_value *)place_of(d, f) = v;
    return ORR_OK;
}

static orr_code take_time(const reader *r, const field *f, orr_json_value v, draft *d)
{
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_NULL && !r->schemas)
        return ORR_OK;
    if ((type == ORR_JSON_INT || type == ORR_JSON_REAL) &&
        orr__micros_ns(orr_json_raw(v), place_of(d, f)))
        return ORR_OK;
    return wrong(r, v, f->name, "a time in microseconds");
}

/* The parent: one number; -1, null and similar mean none.  Newer tools may write a list. */
static orr_code get_parent(const reader *r, const field *f, orr_json_value v, draft *d)
{
    orr_json_value first;
    orr_json_iter it = orr_json_iterate(v);
    int64_t number;
    d->has |= HAS_PARENT;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !r->schemas)
        return orr_json_next_value(&it, &first) ? get_parent(r, f, first, d) : ORR_OK;
    if (is_null(v) || (!orr_json_get_i64(v, &number, NULL) && number < 0))
        return ORR_OK;
    return get_id(r, f->name, v, &d->node.parent);
}

static orr_code take_parent(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->node.parent = LINKED_NO_ID;
    return get_parent(r, f, v, d);
}

static orr_code take_old_parent(const reader *r, const field *f, orr_json_value v, draft *d)
{
    /* Where a node has both, ctrl_deps counts, whichever comes first (take_parent). */
    return d->has & HAS_PARENT ? ORR_OK : get_parent(r, f, v, d);
}

static orr_code take_io(const reader *r, const field *f, orr_json_value v, draft *d)
{
    static const char expected[] = "an object of values, shapes and types";
    linked_io *io = place_of(d, f);
    orr_str name;
    orr_json_value member;
    d->has |= f->bit;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !r->schemas) {
        io->values = orr_json_raw(v);
        return ORR_OK;
    }
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        return wrong(r, v, f->name, expected);
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_member(&it, &name, &member);) {
        if (orr_str_is(name, "values"))
            io->values = orr_json_raw(member);
        else if (orr_str_is(name, "shapes"))
            io->shapes = orr_json_raw(member);
        else if (orr_str_is(name, "types"))
            io->types = orr_json_raw(member);
    }
    if (r->schemas && (!io->values.len || !io->shapes.len || !io->types.len))
        return wrong(r, v, f->name, expected);
    return ORR_OK;
}

static orr_code take_raw(const reader *r, const field *f, orr_json_value v, draft *d)
{
    (void)r;
    *(orr_str *)place_of(d, f) = orr_json_raw(v);
    return ORR_OK;
}

static orr_code take_thread_dep(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->thread_dep = LINKED_NO_ID;
    return is_null(v) ? ORR_OK : get_id(r, f->name, v, &d->thread_dep);
}

static orr_code take_stream(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->node.stream = ORR_NO_VALUE;
    return is_null(v) ? ORR_OK : get_int(r, f->name, v, &d->node.stream);
}

static orr_code take_cat(const reader *r, const field *f, orr_json_value v, draft *d)
{
    orr_str cat;
    d->node.kind = is_null(v) ? LINKED_ON_HOST : LINKED_ON_DEVICE;
    if (is_null(v))
        return ORR_OK;
    const orr_code code = get_text(r, f->name, v, &cat);
    d->node.is_memory = !code && (orr_str_is(cat, "gpu_memcpy") || orr_str_is(cat, "gpu_memset"));
    return code;
}

static orr_code take_number(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->node.lacks &= (uint8_t)~f->bit;
    return is_null(v) && !r->schemas ? ORR_OK : get_int(r, f->name, v, place_of(d, f));
}

static orr_code take_op_schema(const reader *r, const field *f, orr_json_value v, draft *d)
{
    d->node.lacks &= (uint8_t)~f->bit;
    return is_null(v) && !r->schemas ? ORR_OK : get_text(r, f->name, v, &d->node.op_schema);
}

/* Fields that only the new converter reads may be of any type: what is not understood counts as
 * missing. */
static orr_code take_comm_number(const reader *r, const field *f, orr_json_value v, draft *d)
{
    int64_t *number = place_of(d, f);
    (void)r;
    d->has_comm = true;
    if (orr_json_get_i64(v, number, NULL))
        *number = -1;
    return ORR_OK;
}

static orr_code take_comm_text(const reader *r, const field *f, orr_json_value v, draft *d)
{
    orr_str *text = place_of(d, f);
    d->has_comm = true;
    if (orr_json_type_of(v) == ORR_JSON_STRING)
        return get_text(r, f->name, v, text);
    if (text == &d->comm.group && r->schemas && !is_null(v))
        return wrong(r, v, f->name, "a text");
    if (!is_null(v))
        *text = orr_json_raw(v); /* a list of ranks; a group that is a number */
    return ORR_OK;
}

#define AT(member) offsetof(draft, member)
static const field fields[] = {
    {"id", take_id, 0, 0, false},
    {"name", take_name, 0, 0, false},
    {"ctrl_deps", take_parent, 0, 0, false},
    {"inputs", take_io, AT(inputs), HAS_INPUTS, false},
    {"outputs", take_io, AT(outputs), HAS_OUTPUTS, false},
    {"attrs", take_value, AT(attrs), 0, false},
    {"exclusive_dur", take_time, AT(node.own_ns), 0, false},
    {"inclusive_dur", take_time, AT(node.duration_ns), 0, true},
    {"wait_dur", take_time, AT(node.wait_ns), 0, true},
    {"ts", take_time, AT(node.start_ns), 0, true},
    {"inter_thread_dep", take_thread_dep, 0, 0, false},
    {"sync_dep", take_value, AT(sync), 0, false},
    {"cat", take_cat, 0, 0, false},
    {"stream", take_stream, 0, 0, false},
    {"rf_id", take_number, AT(node.rf_id), 1 << 0, false},
    {"fw_parent", take_number, AT(node.fw_parent), 1 << 1, false},
    {"seq_id", take_number, AT(node.seq_id), 1 << 2, false},
    {"scope", take_number, AT(node.scope), 1 << 3, false},
    {"tid", take_number, AT(node.tid), 1 << 4, false},
    {"fw_tid", take_number, AT(node.fw_tid), 1 << 5, false},
    {"op_schema", take_op_schema, 0, 1 << 6, false},
    {"pg_name", take_comm_text, AT(comm.group), 0, false},
    {"pg_desc", take_comm_text, AT(comm.group_about), 0, false},
    {"pg_size", take_comm_number, AT(comm.group_size), 0, false},
    {"global_rank_start", take_comm_number, AT(comm.rank_start), 0, false},
    {"global_rank_stride", take_comm_number, AT(comm.rank_stride), 0, false},
    {"collective_name", take_comm_text, AT(comm.collective), 0, false},
    {"dtype", take_comm_text, AT(comm.dtype), 0, false},
    {"in_msg_nelems", take_comm_number, AT(comm.in_elements), 0, false},
    {"out_msg_nelems", take_comm_number, AT(comm.out_elements), 0, false},
    {"in_split_size", take_comm_text, AT(comm.in_split), 0, false},
    {"out_split_size", take_comm_text, AT(comm.out_split), 0, false},
    {"pg_ranks", take_comm_text, AT(comm.ranks), 0, false},
    {"src_rank", take_comm_number, AT(comm.src), 0, false},
    {"dst_rank", take_comm_number, AT(comm.dst), 0, false},
    {"comm_tag", take_comm_number, AT(comm.tag), 0, false},
    {"comm_seq", take_comm_number, AT(comm.sequence), 0, false},
    {"parent", take_old_parent, 0, 0, true},
    {"input_shapes", take_raw, AT(inputs.shapes), 0, true},
    {"input_types", take_raw, AT(inputs.types), 0, true},
    {"output_shapes", take_raw, AT(outputs.shapes), 0, true},
    {"output_types", take_raw, AT(outputs.types), 0, true},
};

static orr_code take_field(const reader *r, orr_str key, orr_json_value v, draft *d)
{
    for (size_t i = 0; key.len && i < ORR_COUNT(fields); i++) {
        const field *f = &fields[i];
        /* Most rows are rejected by their first letter. */
        if (f->name[0] == key.ptr[0] && orr_str_is(key, f->name))
            return f->is_ours && r->schemas ? ORR_OK : f->take(r, f, v, d);
    }
    return ORR_OK;
}

/* An attribute is {"name": ..., "type": ..., "value": ...}. */
static orr_code take_attr(const reader *r, orr_json_value v, draft *d)
{
    orr_json_value name, value;
    orr_str key;
    if (!orr_json_find(v, "name", &name) || orr_json_type_of(name) != ORR_JSON_STRING ||
        orr_json_get_str(name, &key, NULL) || !orr_json_find(v, "value", &value))
        return wrong(r, v, "attrs", "an object with name and value");
    /* Fields that describe the node itself cannot be overridden. */
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
        return wrong(r, d->attrs, "attrs", "an array");
    for (orr_json_iter it = orr_json_iterate(d->attrs); !code && orr_json_next_value(&it, &item);)
        code = take_attr(r, item, d);
    return code;
}

/* ---- a node ---- */

static orr_code check_complete(const reader *r, const draft *d)
{
    static const char *const names[] = {"id", "name", "ctrl_deps", "inputs", "outputs"};
    for (size_t i = 0; i < (r->schemas ? ORR_COUNT(names) : 2); i++)
        if (!(d->has >> i & 1))
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(d->value)),
                            "a node without %s", names[i]);
    return ORR_OK;
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

/* Only the host waits for the device; what a device node waits for is on the device. */
static orr_code join_sync(const reader *r, const draft *d)
{
    orr_json_value item;
    uint64_t from;
    const linked_edge_kind kind =
        d->node.kind == LINKED_ON_DEVICE ? LINKED_EDGE_EVENT : LINKED_EDGE_SYNC;
    if (!d->sync.tree || is_null(d->sync))
        return ORR_OK;
    if (orr_json_type_of(d->sync) != ORR_JSON_ARRAY)
        return wrong(r, d->sync, "sync_dep", "an array of numbers of nodes");
    for (orr_json_iter it = orr_json_iterate(d->sync); orr_json_next_value(&it, &item);) {
        const orr_code code = get_id(r, "sync_dep", item, &from);
        if (code)
            return code;
        if (!linked_join(r->l, from, d->node.id, kind))
            return orr_no_memory(r->err);
    }
    return ORR_OK;
}

/* A device node is a copy of its host node including inter_thread_dep, which does not apply to
 * it. */
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
    if (r->l->is_out_of_memory || !linked_add(r->l, &d->node, d->has_comm ? &d->comm : NULL))
        return orr_no_memory(r->err);
    return ORR_OK;
}

static void give_back(reader *r, uint64_t byte)
{
    /* In steps of some MiB, as each is a system call; what is needed again is loaded again. */
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
        return wrong(r, v, "nodes", "a node");
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_member(&it, &key, &member);)
        code = take_field(r, key, member, &d);
    if (!code)
        code = take_attrs(r, &d);
    return code ? code : keep_node(r, &d);
}

/* ---- the file ---- */

/* If given twice, the last list counts. */
static orr_code begin_nodes(void *context, const orr_json_item *list)
{
    reader *r = context;
    (void)list;
    r->has |= 1u << NODES;
    r->l->node_count = r->l->edge_count = r->l->comm_count = 0;
    return ORR_OK;
}

/* Numbers that are not understood count as missing, unless the rules require them. */
static orr_code take_top_number(const reader *r, int key, orr_json_value v, uint64_t *out)
{
    if (orr_json_type_of(v) == ORR_JSON_INT && !orr_json_get_u64(v, out, NULL))
        return ORR_OK;
    return r->schemas ? wrong(r, v, top_names[key], "a whole number, 0 or more") : ORR_OK;
}

static orr_code read_top(reader *r, int key, const orr_json_item *item)
{
    orr_json_value v;
    if (key == NODES)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_place(r->json, item->byte)),
                        "nodes: found %s, expected an array", orr_json_type_name(item->type));
    const orr_code code = orr_json_load(r->json, &v, r->err);
    if (code)
        return code;
    if (key == SCHEMA || key == TIME)
        return get_text(r, top_names[key], v, key == SCHEMA ? &r->l->schema : &r->l->time);
    return take_top_number(r, key, v,
                           key == PID        ? &r->l->pid
                           : key == START_TS ? &r->l->start_ts
                                             : &r->l->finish_ts);
}

/* The rank, number of ranks and groups, as in device traces; orrery link carries them over. */
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
    char list[200] = "";
    size_t n = 0;
    for (size_t i = 0; r->schemas[i]; i++) {
        if (orr_str_is(r->l->schema, r->schemas[i]))
            return ORR_OK;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", r->schemas[i]);
    }
    return orr_fail(
        r->err, ORR_EINPUT, ORR_AT(orr_json_place(r->json, 0)),
        "schema '%.*s' is none of those that are read: %s; orrery convert pytorch takes "
        "any schema",
        ORR_SHOWN(r->l->schema, 60), list);
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

static orr_code finish(orr_linked **out, orr_code code)
{
    if (code) {
        orr_linked_free(*out);
        *out = NULL;
    }
    return code;
}

orr_code orr_linked_parse(orr_span bytes,
                          const char *label,
                          const orr_linked_options *opt,
                          orr_linked **out,
                          orr_error *err)
{
    *out = linked_create(label);
    return *out ? finish(out, read_bytes(*out, bytes, opt, err)) : orr_no_memory(err);
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
    return finish(out, code);
}
