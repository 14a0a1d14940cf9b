/* SPDX-License-Identifier: Apache-2.0 */
/* fx_body.c - the nodes of one captured rank, with holes where the ranks that do the same differ.
 *
 * Ids count up from 1 in the order of the program.  The collectives of a family of groups are one stream and come one
 * after the other, as all ranks of a group must agree on their order; so are the messages to one rank, and those from
 * one rank.  Streams go on beside each other and beside computation.
 * A hole is a group ("mine of this family") or a rank ("the third of mine of this family"). */
#include "fx_impl.h"

#include "base/text/text.h"
#include "models/compute/operators/operator_cost.h"
#include "trace/trace_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { ATTRS_MOST = 14, RECORD_LEAST = 80 }; /* bytes: its name and attributes, all of them short */

typedef struct pen {
    fx_body *b;
    fx_values *values;
    orr_map *slots;    /* family and place -> slot */
    orr_map *streams;  /* family, place and direction -> stream */
    uint64_t *last_on; /* of each stream */
    size_t stream_count, stream_room;
    uint64_t next_id;
    uint64_t held; /* what the last node said */
    double carry;  /* ps that were rounded off so far */
    orr_error *err;
    orr_attr attrs[ATTRS_MOST];
    size_t attr_count;
} pen;

/* ---- attributes ---- */

static void add_number(pen *p, const char *name, orr_value_kind kind, uint64_t v)
{
    p->attrs[p->attr_count++] =
        (orr_attr){.name = orr_str_of(name), .kind = kind, .value.i = (int64_t)v};
}

static void add_text(pen *p, const char *name, orr_str text)
{
    if (text.len)
        p->attrs[p->attr_count++] =
            (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = text};
}

static uint64_t limit(uint64_t v)
{
    return v < 1 ? 1 : v > INT64_MAX ? INT64_MAX : v;
}

/* ---- holes ---- */

/* Below 2^24 ranks, so a place and its direction fit beside the family. */
static uint64_t key_of(uint32_t family, int64_t place, unsigned direction)
{
    return (uint64_t)family << 28 | (uint64_t)(place == FX_NO_PEER ? 0 : place + 1) << 2 |
           direction;
}

static orr_code add_hole(pen *p, orr_hole_field field, uint32_t family, int64_t place)
{
    fx_body *b = p->b;
    const uint64_t key = key_of(family, place, 0);
    uint32_t slot = orr_map_find(p->slots, key, UINT32_MAX);
    if (slot == UINT32_MAX) {
        slot = (uint32_t)b->slot_count;
        if (!orr_grow(&b->slots, &b->slot_room, b->slot_count + 1) ||
            !orr_map_put(p->slots, key, slot, NULL))
            return orr_no_memory(p->err);
        b->slots[b->slot_count++] = (fx_slot){family, place};
    }
    if (!orr_grow(&b->holes, &b->hole_room, b->hole_count + 1))
        return orr_no_memory(p->err);
    b->holes[b->hole_count++] =
        (orr_hole){.node = (uint32_t)(p->next_id - 1), .field = field, .slot = slot};
    return ORR_OK;
}

static orr_code find_stream(pen *p, uint64_t key, uint32_t *out)
{
    *out = orr_map_find(p->streams, key, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = (uint32_t)p->stream_count;
    if (!orr_grow(&p->last_on, &p->stream_room, p->stream_count + 1) ||
        !orr_map_put(p->streams, key, *out, NULL))
        return orr_no_memory(p->err);
    p->last_on[p->stream_count++] = 0;
    return ORR_OK;
}

/* ---- one node ---- */

static void add_origin(pen *p, const fx_node *n)
{
    static const char *const phases[] = {"setup", "forward", "backward", "optimizer"};
    const fx_graph *g = p->b->g;
    add_text(p, "phase", orr_str_of(phases[n->phase]));
    if (n->module != FX_NONE)
        add_text(p, "module", fx_text(g, FX_MODULES, n->module));
    if (n->line != FX_NONE)
        add_text(p, "line", fx_text(g, FX_LINES, n->line));
}

static void add_held(pen *p, size_t i)
{
    const uint64_t held = p->b->held[i];
    if (held != p->held)
        add_number(p, "held_bytes", ORR_VALUE_UINT64, held);
    p->held = held;
}

/* In microseconds; what is rounded off is made up for by the nodes that follow. */
static uint64_t duration_of(pen *p, const fx_call *call)
{
    const orr_fx_options *o = p->b->opt;
    if (!(o->peak_flops > 0))
        return 0;
    const operator_cost cost = {.flops = call->flops,
                                .bytes_read = call->bytes_read,
                                .bytes_written = call->bytes_written,
                                .vector_work = call->vector_work,
                                .is_product = call->is_product};
    const operator_rates rates = {o->peak_flops, o->vector_flops, (double)o->memory_rate};
    const double work = orr__operator_seconds(&cost, &rates) * 1e12;
    const double ps = work + (double)o->overhead + p->carry;
    const double us = ps / 1e6 < 9e15 ? ps / 1e6 : 9e15;
    const uint64_t whole = (uint64_t)us;
    p->carry = us < 9e15 ? ps - (double)whole * 1e6 : 0;
    return whole;
}

static orr_code put(pen *p, size_t i, orr_draft *d, uint32_t stream, uint64_t after)
{
    const fx_graph *g = p->b->g;
    const fx_deps *deps;
    orr_code code =
        fx_values_next(p->values, (uint32_t)i, p->next_id, after, stream, &deps, p->err);
    if (code)
        return code;
    add_origin(p, &g->nodes[i]);
    p->attrs[p->attr_count++] =
        (orr_attr){.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value.u = 0};
    d->id = p->next_id;
    d->name = fx_text(g, FX_OPS, g->nodes[i].op);
    d->data_deps = deps->data;
    d->data_count = deps->data_count;
    d->ctrl_deps = deps->ctrl;
    d->ctrl_count = deps->ctrl_count;
    d->attrs = p->attrs;
    d->attr_count = p->attr_count;
    code = orr_trace_append(p->b->trace, d, p->err);
    p->next_id++;
    return code;
}

static orr_code put_compute(pen *p, size_t i)
{
    const fx_call *call = &p->b->calls->at[i];
    uint64_t bytes;
    if (__builtin_add_overflow(call->bytes_read, call->bytes_written, &bytes))
        bytes = INT64_MAX;
    orr_draft d = {.type = ORR_NODE_COMP, .duration_us = duration_of(p, call)};
    add_number(p, "num_ops", ORR_VALUE_INT64, limit(call->flops));
    add_number(p, "tensor_size", ORR_VALUE_UINT64, limit(bytes));
    add_held(p, i);
    add_number(p, "stream", ORR_VALUE_INT64, 0);
    return put(p, i, &d, 0, 0);
}

/* The root of a broadcast or scatter is where it comes from, of a reduce or gather where it goes to. */
static orr_code add_root(pen *p, const fx_node *n, uint8_t collective, uint32_t family)
{
    const bool is_source = collective == ORR_COLL_BROADCAST || collective == ORR_COLL_SCATTER;
    const bool is_target = collective == ORR_COLL_REDUCE || collective == ORR_COLL_GATHER;
    if (n->peer == FX_NO_PEER || (!is_source && !is_target))
        return ORR_OK;
    add_number(p, is_source ? "comm_src" : "comm_dst", ORR_VALUE_INT64, 0);
    return add_hole(p, is_source ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST, family, n->peer);
}

static orr_code put_collective(pen *p, size_t i)
{
    const fx_node *n = &p->b->g->nodes[i];
    const fx_call *call = &p->b->calls->at[i];
    const uint32_t family = p->b->c->groups[n->group].family;
    orr_draft d = {.type = ORR_NODE_COMM_COLL};
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, FX_NO_PEER, 0), &stream);
    if (code)
        return code;
    add_number(p, "comm_type", ORR_VALUE_INT64, call->collective);
    add_number(p, "comm_size", ORR_VALUE_INT64, call->bytes);
    add_text(p, "pg_name", orr_str_of("1"));
    if ((code = add_hole(p, ORR_HOLE_PG_NAME, family, FX_NO_PEER)) ||
        (code = add_root(p, n, call->collective, family)))
        return code;
    add_number(p, "stream", ORR_VALUE_INT64, (uint64_t)stream + 1);
    const uint64_t after = p->last_on[stream];
    p->last_on[stream] = p->next_id;
    return put(p, i, &d, stream, after);
}

static orr_code put_message(pen *p, size_t i)
{
    const fx_node *n = &p->b->g->nodes[i];
    const fx_call *call = &p->b->calls->at[i];
    const uint32_t family = p->b->c->groups[n->group].family;
    const bool is_send = call->role == FX_SEND;
    orr_draft d = {.type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV};
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, n->peer, is_send ? 1 : 2), &stream);
    if (code)
        return code;
    add_number(p, "comm_size", ORR_VALUE_INT64, call->bytes);
    add_number(p, is_send ? "comm_dst" : "comm_src", ORR_VALUE_INT64, 0);
    add_number(p, "comm_tag", ORR_VALUE_INT64, (uint64_t)(n->tag == FX_NO_PEER ? 0 : n->tag));
    if ((code = add_hole(p, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, family, n->peer)))
        return code;
    add_number(p, "stream", ORR_VALUE_INT64, (uint64_t)stream + 1);
    const uint64_t after = p->last_on[stream];
    p->last_on[stream] = p->next_id;
    return put(p, i, &d, stream, after);
}

static orr_code put_node(pen *p, size_t i)
{
    const fx_deps *none;
    p->attr_count = 0;
    switch (p->b->calls->at[i].role) {
    case FX_COMPUTE:
        return put_compute(p, i);
    case FX_COLLECT:
        return put_collective(p, i);
    case FX_SEND:
    case FX_RECV:
        return put_message(p, i);
    case FX_OUTSIDE:
        return ORR_OK;
    default:
        return fx_values_next(p->values, (uint32_t)i, 0, 0, 0, &none, p->err);
    }
}

/* ---- all of them ---- */

static size_t count_nodes(const fx_body *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->g->node_count; i++) {
        const uint8_t role = b->calls->at[i].role;
        count += role == FX_COMPUTE || fx_is_communication(role);
    }
    return count;
}

static orr_code open_trace(fx_body *b, orr_error *err)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("schema"),
         .kind = ORR_VALUE_STRING,
         .value.s = orr_str_of("orrery capture 1")},
        {.name = orr_str_of("streams"), .kind = ORR_VALUE_BOOL, .value.u = 1}};
    const size_t nodes = count_nodes(b); /* their records were bytes of a file: no overflow */
    const orr_code code = orr_trace_create(
        &(orr_meta){.version = orr_str_of("1.0.0"), .attrs = attrs, .attr_count = 2}, &b->trace,
        err);
    return code ? code : orr__trace_expect(b->trace, nodes, nodes * RECORD_LEAST, err);
}

orr_code fx_body_make(fx_body *b, orr_error *err)
{
    pen p = {.b = b,
             .slots = orr_map_create(16),
             .streams = orr_map_create(16),
             .next_id = 1,
             .err = err};
    orr_code code = p.slots && p.streams ? open_trace(b, err) : orr_no_memory(err);
    if (!code)
        code = fx_values_create(b->g, b->calls, &p.values, err);
    for (size_t i = 0; i < b->g->node_count && !code; i++)
        code = put_node(&p, i);
    if (!code)
        code = orr_trace_seal(b->trace, err);
    fx_values_destroy(p.values);
    orr_map_destroy(p.slots);
    orr_map_destroy(p.streams);
    orr_free(p.last_on);
    return code;
}

void fx_body_fini(fx_body *b)
{
    orr_trace_destroy(b->trace);
    orr_free(b->slots);
    orr_free(b->holes);
    b->trace = NULL;
    b->slots = NULL;
    b->holes = NULL;
}
