/* SPDX-License-Identifier: Apache-2.0 */
/* convert_trace.c - writes the nodes of the trace.
 *
 * Times in a trace are whole microseconds, and most kernels last a few: the rounding error of a
 * node is carried over to the next of its thread or stream, so sums are right to a microsecond.
 * The attribute duration_ns has the measured time.
 *
 * A thread does more than its operators: the interpreter runs between them.  In times as recorded
 * (or multiplied by a factor that was given) that is a node of its own, so that a replay takes as
 * long as the recording and operators keep their figures.  The estimated factor is for operators
 * and what lies between them. */
#include "conversion.h"

#include "trace/builder.h"

typedef struct writer {
    const conv_state *c;
    orr__builder b;
    orr_buf text[6];  /* of inputs, then outputs: values, shapes, types */
    int64_t first_ns; /* the trace begins here */
    uint64_t next_id; /* of what lies between operators: after all others; 0: none is left */
} writer;

/* ---- times ---- */

static int64_t scaled(int64_t ns, double by)
{
    const double v = (double)ns * by + 0.5;
    return ns <= 0 ? ns : v < 9e18 ? (int64_t)v : INT64_MAX;
}

static int64_t work_ns(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    int64_t ns = n->own_ns;
    if (c->role[place] == CONV_TOGETHER)
        return 0; /* its calls have the time */
    if (c->role[place] != CONV_HOST && n->duration_ns != LINKED_NO_TIME)
        ns = n->duration_ns;
    else if (n->wait_ns > 0)
        ns -= n->wait_ns;
    if (c->role[place] == CONV_HOST && c->report->host.scale != 1)
        return scaled(ns, c->report->host.scale);
    return ns;
}

static uint64_t lane_of(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const bool is_host = c->role[place] == CONV_HOST;
    return (uint64_t)(is_host ? n->tid : n->stream) << 1 | is_host;
}

static void find_first(writer *w)
{
    const orr_linked *l = w->c->l;
    w->first_ns = LINKED_NO_TIME;
    for (size_t i = 0; i < l->node_count; i++) {
        const int64_t at = l->nodes[i].start_ns;
        if (at != LINKED_NO_TIME && (w->first_ns == LINKED_NO_TIME || at < w->first_ns))
            w->first_ns = at;
        if (l->nodes[i].id >= w->next_id)
            w->next_id = l->nodes[i].id + 1;
    }
    if (w->c->opt.has_origin)
        w->first_ns = w->c->opt.origin_ns;
}

/* From the start of the trace; none for nodes before it or without a time. */
static uint64_t start_us(const writer *w, const linked_node *n)
{
    int64_t since;
    if (n->start_ns == LINKED_NO_TIME || __builtin_sub_overflow(n->start_ns, w->first_ns, &since))
        return 0;
    return since > 0 ? (uint64_t)since / 1000 : 0;
}

/* ---- attributes ---- */

/* Those of the operator, in the order of Chakra's converter. */
static void put_known(orr__builder *b, const linked_node *n)
{
    const int64_t numbers[] = {n->rf_id, n->fw_parent, n->seq_id, n->scope, n->tid, n->fw_tid};
    for (int i = 0; i < 6; i++) {
        if (!(n->lacks & 1u << i))
            orr__put_int(b, (orr__attr_key)(ORR__ATTR_RF_ID + i), numbers[i]);
    }
    if (!(n->lacks & 1u << 6))
        orr__put_text(b, ORR__ATTR_OP_SCHEMA, n->op_schema);
}

static int64_t stream_of(const conv_state *c, uint32_t place)
{
    const uint32_t partner = c->partner[place];
    if (c->role[place] == CONV_CALL)
        place = partner != CONV_NONE && c->role[partner] == CONV_TOGETHER ? partner : place;
    const int64_t stream = conv_node(c, place)->stream;
    return c->role[place] == CONV_HOST || stream == ORR_NO_VALUE ? 0 : stream;
}

static void put_call(orr__builder *b, const conv_call *call)
{
    const bool is_message = call->type != ORR_NODE_COMM_COLL;
    if (!is_message)
        orr__put_int(b, ORR__ATTR_COMM_TYPE, call->kind);
    orr__put_int(b, ORR__ATTR_COMM_SIZE, call->bytes);
    if (call->src >= 0 && call->src <= INT32_MAX)
        orr__put_int(b, ORR__ATTR_COMM_SRC, call->src);
    if (call->dst >= 0 && call->dst <= INT32_MAX)
        orr__put_int(b, ORR__ATTR_COMM_DST, call->dst);
    if (is_message)
        orr__put_int(b, ORR__ATTR_COMM_TAG, call->tag & INT32_MAX);
    if (call->group.len && !call->is_renumbered)
        orr__put_text(b, ORR__ATTR_PG_NAME, call->group);
}

/* ---- a node ---- */

static void put_deps(writer *w, uint32_t place)
{
    const conv_state *c = w->c;
    for (uint32_t i = c->dep_first[place]; i < c->dep_first[place + 1]; i++)
        orr__build_deps(&w->b, &conv_node(c, c->dep[i])->id, 1);
}

/* A parent that starts after its child is no dependency; nor is a call's parent. */
static bool has_ctrl(const conv_state *c, uint32_t place)
{
    const uint32_t parent = c->parent[place];
    return parent != CONV_NONE && parent < place && c->role[parent] == CONV_HOST;
}

static uint32_t type_of(const conv_state *c, uint32_t place)
{
    if (c->call[place] != LINKED_NO_COMM)
        return c->calls[c->call[place]].type;
    return c->role[place] == CONV_GROUPS ? ORR_NODE_METADATA : ORR_NODE_COMP;
}

/* ---- between operators ---- */

/* What a thread did by itself before this operator: since its last one, and since what it waited
 * for elsewhere. */
static int64_t pause_ns(const writer *w, uint32_t place)
{
    const conv_state *c = w->c;
    const linked_node *n = conv_node(c, place);
    int64_t ns;
    if (c->opt.host_scale <= 0 || !w->next_id || c->role[place] != CONV_HOST || !conv_has_time(n) ||
        c->idle_since[place] == LINKED_NO_TIME)
        return 0;
    int64_t from = c->idle_since[place];
    for (uint32_t i = c->dep_first[place]; i < c->dep_first[place + 1]; i++) {
        const linked_node *d = conv_node(c, c->dep[i]);
        const int64_t end = conv_has_time(d) ? conv_end(d) : from;
        from = end > from ? end : from;
    }
    if (__builtin_sub_overflow(n->start_ns, from, &ns) || ns <= 0)
        return 0;
    return scaled(ns, c->report->host.scale);
}

/* Returns its id. */
static uint64_t put_pause(writer *w, uint32_t place, int64_t ns)
{
    enum { SCOPE = ORR__ATTR_RF_ID + 3, TID = ORR__ATTR_RF_ID + 4, USER_SCOPE = 7 };
    orr__builder *b = &w->b;
    const linked_node *n = conv_node(w->c, place);
    const uint64_t id = w->next_id++;
    b->next_id = id;
    orr__build_node(b, ORR_NODE_COMP, orr_str_of("[between operators]"));
    const uint64_t start = start_us(w, n), before = (uint64_t)ns / 1000;
    b->node.start_us = start > before ? start - before : 0;
    orr__put_int(b, (orr__attr_key)SCOPE, USER_SCOPE);
    if (!(n->lacks & 1u << 4))
        orr__put_int(b, (orr__attr_key)TID, n->tid);
    orr__put_is_cpu_op(b, true);
    orr__put_int(b, ORR__ATTR_STREAM, 0);
    orr__put_int(b, ORR__ATTR_DURATION_NS, ns);
    orr__build_duration_ns(b, lane_of(w->c, place), (uint64_t)ns);
    put_deps(w, place);
    orr__build_add(b);
    return id;
}

static void put_node(writer *w, uint32_t place)
{
    const conv_state *c = w->c;
    orr__builder *b = &w->b;
    const linked_node *n = conv_node(c, place);
    const conv_call *call = c->call[place] == LINKED_NO_COMM ? NULL : &c->calls[c->call[place]];
    int64_t ns = work_ns(c, place);
    orr_io inputs, outputs;
    const int64_t pause = pause_ns(w, place);
    const uint64_t paused = pause ? put_pause(w, place, pause) : 0;
    b->next_id = n->id;
    orr__build_node(b, type_of(c, place), n->name);
    b->node.start_us = start_us(w, n);
    if (ns < 0) {
        c->report->durations_negative++;
        ns = 0;
    }
    put_known(b, n);
    orr__put_is_cpu_op(b, c->role[place] == CONV_HOST || c->role[place] == CONV_GROUPS);
    orr__put_int(b, ORR__ATTR_STREAM, stream_of(c, place));
    if (call)
        put_call(b, call);
    if (ns)
        orr__put_int(b, ORR__ATTR_DURATION_NS, ns);
    if (call && call->is_renumbered)
        orr__put_text(b, ORR__ATTR_PG_NAME, call->group);
    if (has_ctrl(c, place)) {
        b->node.ctrl_deps = &conv_node(c, c->parent[place])->id;
        b->node.ctrl_count = 1;
    }
    if (n->inputs) {
        inputs = python_io(w->text, n->inputs);
        b->node.inputs = &inputs;
    }
    if (n->outputs) {
        outputs = python_io(w->text + 3, n->outputs);
        b->node.outputs = &outputs;
    }
    orr__build_duration_ns(b, lane_of(c, place), (uint64_t)ns);
    put_deps(w, place);
    if (paused)
        orr__build_deps(b, &paused, 1);
    orr__build_add(b);
}

static bool has_failed(const writer *w)
{
    bool failed = false;
    for (unsigned i = 0; i < 6; i++)
        failed |= w->text[i].failed;
    return failed;
}

/* ---- everything ---- */

orr_code conv_write(conv_state *c, orr_trace **out, orr_error *err)
{
    writer w = {.c = c};
    orr__builder *b = &w.b;
    orr__build_open(b, err);
    orr__put_text(b, ORR__ATTR_SCHEMA, c->l->schema);
    orr__put_uint(b, ORR__ATTR_PID, c->l->pid);
    orr__put_text(b, ORR__ATTR_TIME, c->l->time);
    orr__put_uint(b, ORR__ATTR_START_TS, c->l->start_ts);
    orr__put_uint(b, ORR__ATTR_FINISH_TS, c->l->finish_ts);
    orr__build_trace(b, "1.0.0");
    find_first(&w);
    for (uint32_t p = 0; p < c->count && !b->code && !has_failed(&w); p++)
        put_node(&w, p);
    if (has_failed(&w) && !b->code)
        b->code = orr_no_memory(err);
    for (unsigned i = 0; i < 6; i++)
        orr_buf_fini(&w.text[i]);
    return orr__build_seal(b, out);
}
