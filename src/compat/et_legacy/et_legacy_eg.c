/* SPDX-License-Identifier: Apache-2.0 */
/* et_legacy_eg.c - nodes of the first generation ("eg", 2023-01 to 2023-06), both ways.
 *
 * These nodes have no attributes but a numeric field for everything anyone wanted to say.  In
 * memory each field is an attribute of the same name, but for the run time, which is the node's
 * duration.  A field that was written is an attribute, also when it is zero; so writing gives the
 * same bytes again. */
#include "et_legacy.h"

enum { EG_RUN_TIME = 7, EG_COMM_TYPE = 13, EG_INVOLVED_DIM = 14, EG_LAST = 20, MEMORY_TYPES = 3 };

typedef struct eg_field {
    const char *name;
    uint8_t kind;   /* of the attribute */
    bool is_memory; /* one of the MemoryType numbers */
} eg_field;

static const eg_field eg_fields[EG_LAST + 1] = {
    [5] = {"tensor_loc", ORR_VALUE_UINT32, true},
    [6] = {"tensor_size", ORR_VALUE_UINT64, false},
    [EG_RUN_TIME] = {"simulated_run_time", ORR_VALUE_UINT64, false},
    [8] = {"input_tensor_loc", ORR_VALUE_UINT32, true},
    [9] = {"input_tensor_size", ORR_VALUE_UINT64, false},
    [10] = {"output_tensor_loc", ORR_VALUE_UINT32, true},
    [11] = {"output_tensor_size", ORR_VALUE_UINT64, false},
    [12] = {"num_ops", ORR_VALUE_UINT64, false},
    [EG_COMM_TYPE] = {"comm_type", ORR_VALUE_INT64, false},
    [EG_INVOLVED_DIM] = {"involved_dim", ORR_VALUE_BOOL, false},
    [15] = {"communicator_id", ORR_VALUE_UINT32, false},
    [16] = {"comm_src", ORR_VALUE_UINT32, false},
    [17] = {"comm_dst", ORR_VALUE_UINT32, false},
    [18] = {"comm_size", ORR_VALUE_UINT32, false},
    [19] = {"comm_tag", ORR_VALUE_UINT32, false},
    [20] = {"comm_priority", ORR_VALUE_UINT32, false},
};

/* The numbers of one node.  The first index is the field's number. */
typedef struct eg_values {
    uint64_t value[EG_LAST + 1];
    uint32_t present; /* bit k: value[k] */
} eg_values;

static bool has(const eg_values *v, unsigned field)
{
    return v->present >> field & 1;
}

/* ---- reading ---- */

static bool take_number(eto_reader *r, const orr_field *f, eg_values *v)
{
    const eg_field *e = &eg_fields[f->number];
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    if (e->is_memory && f->value >= MEMORY_TYPES && !r->is_lenient)
        return eto_bad(r, f->start, "the memory type is not one that this generation has");
    if (e->kind == ORR_VALUE_UINT32 && f->value > UINT32_MAX)
        return eto_bad(r, f->start, "a number does not fit in 32 bits");
    v->value[f->number] = f->value;
    v->present |= 1u << f->number;
    return true;
}

/* INVALID_COMM is no collective; all others are one more than in the generations that follow. */
static bool take_comm_type(eto_reader *r, const orr_field *f, eto_node *n, eg_values *v)
{
    int64_t now = 0;
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    v->present &= ~(1u << EG_COMM_TYPE);
    n->note &= ~(uint32_t)NOTE_NO_COLLECTIVE;
    if (f->value == 0) {
        n->note |= NOTE_NO_COLLECTIVE;
        return true;
    }
    if (f->value > INT32_MAX ||
        !eto_collective_in(r->g, r->is_lenient, (int64_t)f->value - 1, &now))
        return eto_bad(r, f->start, "the collective is not one that this generation has");
    v->value[EG_COMM_TYPE] = (uint64_t)now;
    v->present |= 1u << EG_COMM_TYPE;
    return true;
}

static bool check_dims(eto_reader *r, const orr_field *f, eg_values *v)
{
    uint64_t ignored;
    if (f->type != ORR_WIRE_VARINT && f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a number field does not hold a number");
    orr_wire w = orr_wire_of(f->bytes);
    while (f->type == ORR_WIRE_LEN && w.at < w.end)
        if (!orr_wire_varint(&w, &ignored))
            return eto_bad(r, w.at, w.why);
    v->present |= 1u << EG_INVOLVED_DIM;
    return true;
}

static bool take_field(eto_reader *r, const orr_field *f, eto_node *n, eg_values *v)
{
    if (f->number <= OLD_PARENT)
        return eto_common(r, f, n);
    if (f->number > EG_LAST)
        return eto_unknown(r, f, "a node has a field that this generation does not know");
    if (f->number == EG_COMM_TYPE)
        return take_comm_type(r, f, n, v);
    if (f->number == EG_INVOLVED_DIM)
        return check_dims(r, f, v);
    return take_number(r, f, v);
}

static void encode_dims(orr_span body, orr_buf *b)
{
    orr_list it = {.at = body.ptr,
                   .end = body.ptr + body.len,
                   .field = EG_INVOLVED_DIM,
                   .kind = ORR_VALUE_BOOL};
    orr_value v;
    const eto_member m = {ORR_VALUE_BOOL, true};
    orr_put_tag(b, eto_member_field(m), ORR_WIRE_LEN);
    const size_t list = orr_put_begin(b);
    orr_put_tag(b, LIST_VALUES, ORR_WIRE_LEN);
    const size_t items = orr_put_begin(b);
    while (orr_list_next(&it, &v))
        orr_put_varint(b, v.u);
    orr_put_end(b, items);
    orr_put_end(b, list);
}

static void encode_field(unsigned field, const eg_values *v, orr_span body, orr_buf *b)
{
    const eg_field *e = &eg_fields[field];
    orr_put_tag(b, NODE_ATTR, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    orr_put_bytes(b, ATTR_NAME, e->name, strlen(e->name));
    if (field == EG_INVOLVED_DIM)
        encode_dims(body, b);
    else
        orr_put_uint(b, eto_member_field((eto_member){e->kind, false}), v->value[field]);
    orr_put_end(b, begin);
}

static void take_run_time(const eg_values *v, eto_node *n)
{
    const bool is_comp = n->type == ORR_NODE_COMP;
    n->duration = has(v, EG_RUN_TIME) ? v->value[EG_RUN_TIME] : 0;
    if (has(v, EG_RUN_TIME) && n->duration == 0 && !is_comp)
        n->note |= NOTE_ZERO_RUN_TIME;
    if (!has(v, EG_RUN_TIME) && is_comp)
        n->note |= NOTE_NO_RUN_TIME;
}

bool eto_eg_read(eto_reader *r, orr_span body, eto_node *n)
{
    eg_values v;
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    v.present = 0;
    while (orr_wire_next(&w, &f))
        if (!take_field(r, &f, n, &v))
            return false;
    if (w.why)
        return eto_bad(r, w.at, w.why);
    if (!n->has_type)
        n->note |= NOTE_NO_TYPE;
    take_run_time(&v, n);
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (has(&v, k) && k != EG_RUN_TIME)
            encode_field(k, &v, body, &r->tail);
    return true;
}

/* ---- writing ---- */

static unsigned find_field(orr_str name)
{
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (k != EG_RUN_TIME && eto_is_word(name, eg_fields[k].name))
            return k;
    return 0;
}

static orr_code collect_number(eto_writer *w, const orr_attr *a, unsigned field, eg_values *v)
{
    const eg_field *e = &eg_fields[field];
    uint64_t number;
    bool is_negative;
    int64_t old;
    if (!eto_attr_whole(a, &number, &is_negative))
        return eto_refuse(w, a->name, "it is not one whole number");
    if (field == EG_COMM_TYPE) {
        if (number > INT32_MAX || !eto_collective_out(w->g, w->is_same, (int64_t)number, &old))
            return eto_refuse(w, a->name, "the collective has no number there");
        number = (uint64_t)old + 1;
    }
    if (is_negative || (e->kind == ORR_VALUE_UINT32 && number > UINT32_MAX))
        return eto_refuse(w, a->name, "its number is out of range");
    if (e->is_memory && number >= MEMORY_TYPES && !w->is_same)
        return eto_refuse(w, a->name, "the memory type has no number there");
    v->value[field] = number;
    return ORR_OK;
}

/* Dimensions are booleans; 0.0.2 had to write them as 0 and 1. */
static orr_code check_dim_list(eto_writer *w, const orr_attr *a)
{
    const bool is_whole = a->kind >= ORR_VALUE_INT32 && a->kind <= ORR_VALUE_BOOL;
    if (!a->is_list || !is_whole)
        return eto_refuse(w, a->name, "it is not a list of booleans");
    orr_list it = orr_attr_items(a);
    orr_value v;
    while (orr_list_next(&it, &v))
        if (v.u > 1)
            return eto_refuse(w, a->name, "it is not a list of booleans");
    return ORR_OK;
}

/* The attribute `runtime` of later generations is the duration, which has its field. */
static bool is_the_duration(const orr_attr *a, const eto_parts *p)
{
    uint64_t number;
    bool is_negative;
    return eto_is_word(a->name, "runtime") && eto_attr_whole(a, &number, &is_negative) &&
           !is_negative && number == p->node.duration_us;
}

static orr_code collect(
    eto_writer *w, const orr_field *f, const eto_parts *p, eg_values *v, orr_attr *dims)
{
    eto_raw_attr raw;
    orr_code code = eto_raw_attr_split(w, f, &raw);
    if (code)
        return code;
    const orr_attr *a = &raw.attr;
    const unsigned field = find_field(a->name);
    if (!field && is_the_duration(a, p))
        return ORR_OK;
    if (!field)
        return eto_refuse(w, a->name, "there is no field for it");
    if (has(v, field))
        return eto_refuse(w, a->name, "the node has it more than once");
    if (a->doc.len)
        return eto_refuse(w, a->name, "there is no place for its doc_string");
    v->present |= 1u << field;
    if (field != EG_INVOLVED_DIM)
        return collect_number(w, a, field, v);
    *dims = *a;
    return check_dim_list(w, a);
}

static void put_dims(orr_buf *b, const orr_attr *dims)
{
    orr_list it = orr_attr_items(dims);
    orr_value v;
    while (orr_list_next(&it, &v))
        orr_put_uint(b, EG_INVOLVED_DIM, v.u);
}

orr_code eto_eg_write(eto_writer *w, const eto_parts *p)
{
    eg_values v;
    orr_attr dims = {.kind = ORR_VALUE_NONE};
    orr_wire wire = orr_wire_of(p->node.body);
    orr_field f = {0};
    orr_code code = ORR_OK;
    v.present = 0;
    while (!code && orr_wire_next(&wire, &f))
        if (f.number == NODE_ATTR)
            code = collect(w, &f, p, &v, &dims);
    if (code)
        return code;
    if (eto_writes_run_time(p)) {
        v.value[EG_RUN_TIME] = p->node.duration_us;
        v.present |= 1u << EG_RUN_TIME;
    }
    if (p->note & NOTE_NO_COLLECTIVE && !has(&v, EG_COMM_TYPE)) {
        v.value[EG_COMM_TYPE] = 0;
        v.present |= 1u << EG_COMM_TYPE;
    }
    for (unsigned k = OLD_PARENT + 1; k <= EG_LAST; k++)
        if (has(&v, k) && k == EG_INVOLVED_DIM)
            put_dims(&w->out, &dims);
        else if (has(&v, k))
            orr_put_uint(&w->out, k, v.value[k]);
    return ORR_OK;
}
