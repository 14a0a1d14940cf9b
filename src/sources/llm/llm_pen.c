/* SPDX-License-Identifier: Apache-2.0 */
/* llm_pen.c - writes the nodes of one class of ranks, one after the other.
 *
 * Ids count up from 1 in the order of writing, which is the order of the program: a simulator that starts the
 * smallest id first runs what comes first.  Communication waits for the one before it in its stream, so all ranks
 * of a group issue their collectives in the same order.  The first failure sticks. */
#include "llm_impl.h"

#include <stdarg.h>
#include <stdio.h>

enum { ATTRS_MOST = 9, DEPS_MOST = 64 };

void orr__pen_open(orr__pen *p, const orr__llm *g, orr_error *err)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("schema"),
         .kind = ORR_VALUE_STRING,
         .value.s = orr_str_of("orrery llm 1")},
        {.name = orr_str_of("streams"), .kind = ORR_VALUE_BOOL, .value.u = 1},
        {.name = orr_str_of("tokens"), .kind = ORR_VALUE_UINT64, .value.u = g->job_tokens},
        {.name = orr_str_of("model_flops"), .kind = ORR_VALUE_DOUBLE, .value.d = g->job_flops},
        {.name = orr_str_of("device_bytes"),
         .kind = ORR_VALUE_UINT64,
         .value.u = g->opt.device_bytes}};
    const size_t count = g->job_tokens ? sizeof attrs / sizeof *attrs : 2;
    *p = (orr__pen){.g = g, .slot_count = ORR__LLM_SLOTS, .next_id = 1, .err = err};
    p->code = orr_trace_create(
        &(orr_meta){.version = orr_str_of("1.0.0"), .attrs = attrs, .attr_count = count}, &p->t,
        err);
}

orr_code orr__pen_close(orr__pen *p, orr_set *s, uint32_t *class_index)
{
    if (!p->code)
        p->code = orr_trace_seal(p->t, p->err);
    if (p->code)
        orr_trace_destroy(p->t);
    else
        p->code =
            orr_set_add_class(s, p->t, p->holes, p->hole_count, p->slot_count, class_index, p->err);
    orr_free(p->holes);
    orr_buf_fini(&p->name);
    const orr_code code = p->code;
    *p = (orr__pen){0};
    return code;
}

void orr__pen_prefix(orr__pen *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(p->prefix, sizeof p->prefix, fmt, args);
    va_end(args);
}

/* ---- one node ---- */

typedef struct node {
    uint32_t type;
    bool is_on_host;
    uint64_t duration_us;
    orr__stream_of stream;
    const char *name;
    orr_attr attrs[ATTRS_MOST];
    size_t attr_count;
    uint64_t data[DEPS_MOST], ctrl[8];
    size_t data_count, ctrl_count;
} node;

static void add_int(node *n, const char *name, orr_value_kind kind, uint64_t v)
{
    n->attrs[n->attr_count++] =
        (orr_attr){.name = orr_str_of(name), .kind = kind, .value.i = (int64_t)v};
}

static void add_data(orr__pen *p, node *n, orr__deps after)
{
    for (size_t i = 0; i < after.count; i++) {
        bool is_there = after.ids[i] == 0;
        for (size_t k = 0; k < n->data_count && !is_there; k++)
            is_there = n->data[k] == after.ids[i];
        if (is_there)
            continue;
        if (n->data_count == DEPS_MOST) {
            p->code = orr_fail(p->err, ORR_EBUG, NULL, "%s waits for too many nodes", n->name);
            return;
        }
        n->data[n->data_count++] = after.ids[i];
    }
}

static void add_ctrl(node *n, uint64_t id)
{
    bool is_there = id == 0;
    for (size_t k = 0; k < n->data_count && !is_there; k++)
        is_there = n->data[k] == id;
    for (size_t k = 0; k < n->ctrl_count && !is_there; k++)
        is_there = n->ctrl[k] == id;
    if (!is_there)
        n->ctrl[n->ctrl_count++] = id;
}

static uint64_t put(orr__pen *p, node *n)
{
    if (p->code)
        return 0;
    p->name.len = 0;
    orr_buf_text(&p->name, p->prefix);
    orr_buf_text(&p->name, n->name);
    if (p->name.failed) {
        p->code = orr_no_memory(p->err);
        return 0;
    }
    if (p->has_held &&
        n->type != ORR_NODE_COMM_RECV) { /* a receive may start long before its task */
        add_int(n, "held_bytes", ORR_VALUE_UINT64, p->held);
        p->has_held = false;
    }
    add_int(n, "stream", ORR_VALUE_INT64, n->stream);
    n->attrs[n->attr_count++] = (orr_attr){
        .name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value.u = n->is_on_host};
    const orr_draft d = {.id = p->next_id,
                         .name = {(const char *)p->name.ptr, p->name.len},
                         .type = n->type,
                         .duration_us = n->duration_us,
                         .data_deps = n->data,
                         .data_count = n->data_count,
                         .ctrl_deps = n->ctrl,
                         .ctrl_count = n->ctrl_count,
                         .attrs = n->attrs,
                         .attr_count = n->attr_count};
    p->code = orr_trace_append(p->t, &d, p->err);
    return p->next_id++;
}

static void add_hole(orr__pen *p, orr_hole_field field, uint32_t slot)
{
    if (p->code)
        return;
    if (!orr_grow(&p->holes, &p->hole_room, p->hole_count + 1)) {
        p->code = orr_no_memory(p->err);
        return;
    }
    p->holes[p->hole_count++] =
        (orr_hole){.node = (uint32_t)(p->next_id - 1), .field = field, .slot = slot};
}

/* ---- measuring ---- */

/* So much at so much a second, in ps, rounded up.  Past 106 days it is 106 days. */
static uint64_t ps_of(unsigned __int128 amount, uint64_t rate)
{
    const unsigned __int128 most = INT64_MAX;
    if (amount > most)
        return INT64_MAX;
    const unsigned __int128 ps = (amount * 1000000000000u + (rate - 1)) / rate;
    return ps < most ? (uint64_t)ps : INT64_MAX;
}

static uint64_t add_time(orr__meter *t, uint64_t ps)
{
    t->time = ps < INT64_MAX - t->time ? t->time + ps : INT64_MAX;
    return 1; /* any id that is not 0 does: nobody writes what depends on it */
}

static uint64_t measure_compute(orr__meter *t, uint64_t operations, uint64_t bytes)
{
    const uint64_t by_work = ps_of(operations, t->peak);
    const uint64_t by_memory = ps_of(bytes, t->memory_rate);
    return add_time(t, by_work > by_memory ? by_work : by_memory);
}

/* Of n ranks in a ring: an all-reduce goes round twice, all others once, and a rank keeps its own part.  An
 * all-gather is given by what one rank has, the others by what all have. */
static uint64_t measure_collect(orr__meter *t, orr_collective kind, uint64_t bytes, uint32_t n)
{
    const unsigned __int128 round = (unsigned __int128)bytes * (n - 1);
    const unsigned __int128 sent = kind == ORR_COLL_ALL_GATHER   ? round
                                   : kind == ORR_COLL_ALL_REDUCE ? 2 * round / n
                                                                 : round / n;
    return add_time(t, ps_of(sent, t->link_rate));
}

/* ---- computation ---- */

uint64_t orr__put_compute(
    orr__pen *p, const char *name, uint64_t operations, uint64_t bytes, orr__deps after)
{
    if (p->meter)
        return measure_compute(p->meter, operations, bytes);
    node n = {.type = ORR_NODE_COMP, .stream = ORR__ON_COMPUTE, .name = name};
    add_int(&n, "num_ops", ORR_VALUE_INT64, operations ? operations : 1);
    add_int(&n, "tensor_size", ORR_VALUE_UINT64, bytes ? bytes : 1);
    add_data(p, &n, after);
    for (size_t i = 0; i < sizeof p->barrier / sizeof *p->barrier; i++) {
        add_ctrl(&n, p->barrier[i]);
        p->barrier[i] = 0;
    }
    return put(p, &n);
}

uint64_t orr__put_elementwise(orr__pen *p,
                              const char *name,
                              uint64_t numbers,
                              uint64_t operations,
                              uint64_t moved,
                              orr__deps after)
{
    return orr__put_compute(p, name, numbers * operations, numbers * moved * p->g->act, after);
}

uint64_t orr__put_wait(orr__pen *p, const char *name, uint64_t duration_us, orr__deps after)
{
    node n = {.type = ORR_NODE_COMP,
              .is_on_host = true,
              .duration_us = duration_us,
              .stream = ORR__ON_COMPUTE,
              .name = name};
    add_data(p, &n, after);
    return put(p, &n);
}

/* ---- communication ---- */

static orr__stream_of stream_of_axis(orr__axis axis)
{
    static const orr__stream_of streams[ORR__AXES] = {
        [ORR__AXIS_TP] = ORR__ON_TP,
        [ORR__AXIS_CP] = ORR__ON_CP,
        [ORR__AXIS_DATA] = ORR__ON_DATA,
        [ORR__AXIS_EP] = ORR__ON_EP,
        [ORR__AXIS_EXPERT_DATA] = ORR__ON_DATA,
        [ORR__AXIS_TIED] = ORR__ON_DATA,
        [ORR__AXIS_WORLD] = ORR__ON_DATA,
    };
    return streams[axis];
}

uint64_t orr__put_collect(orr__pen *p,
                          const char *name,
                          orr_collective kind,
                          uint64_t bytes,
                          orr__axis axis,
                          orr__deps after)
{
    if (p->g->layout.degree[axis] == 1)
        return after.count ? after.ids[after.count - 1] : 0;
    if (p->meter)
        return measure_collect(p->meter, kind, bytes, p->g->layout.degree[axis]);
    node n = {.type = ORR_NODE_COMM_COLL, .stream = stream_of_axis(axis), .name = name};
    add_int(&n, "comm_type", ORR_VALUE_INT64, kind);
    add_int(&n, "comm_size", ORR_VALUE_INT64, bytes);
    n.attrs[n.attr_count++] = (orr_attr){
        .name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("0")};
    add_data(p, &n, after);
    add_ctrl(&n, p->last_on[n.stream]);
    add_hole(p, ORR_HOLE_PG_NAME, axis);
    return p->last_on[n.stream] = put(p, &n);
}

static uint64_t put_message(orr__pen *p, node *n, uint64_t bytes, uint64_t tag, orr__peer peer)
{
    const bool is_send = n->type == ORR_NODE_COMM_SEND;
    add_int(n, "comm_size", ORR_VALUE_INT64, bytes);
    add_int(n, "comm_tag", ORR_VALUE_INT64, tag);
    add_int(n, is_send ? "comm_dst" : "comm_src", ORR_VALUE_INT64, 0);
    add_hole(p, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, peer);
    return put(p, n);
}

static orr__stream_of stream_of_peer(orr__peer peer)
{
    if ((unsigned)peer >= ORR__LLM_SLOTS)
        return ORR__ON_KV;
    return peer == ORR__PEER_NEXT       ? ORR__ON_NEXT
           : peer == ORR__PEER_PREVIOUS ? ORR__ON_PREVIOUS
                                        : ORR__ON_CP;
}

uint64_t orr__put_send(
    orr__pen *p, const char *name, uint64_t bytes, uint64_t tag, orr__peer to, orr__deps after)
{
    if (p->meter)
        return add_time(p->meter, ps_of(bytes, p->meter->link_rate));
    node n = {.type = ORR_NODE_COMM_SEND, .stream = stream_of_peer(to), .name = name};
    add_data(p, &n, after);
    add_ctrl(&n, p->last_on[n.stream]);
    return p->last_on[n.stream] = put_message(p, &n, bytes, tag, to);
}

uint64_t orr__put_receive(
    orr__pen *p, const char *name, uint64_t bytes, uint64_t tag, orr__peer from, orr__deps after)
{
    if (p->meter)
        return 1; /* the sender takes the time */
    node n = {.type = ORR_NODE_COMM_RECV, .stream = stream_of_peer(from), .name = name};
    add_data(p, &n, after);
    return put_message(p, &n, bytes, tag, from);
}
