/* SPDX-License-Identifier: Apache-2.0 */
/* convert_trace.c - what was found out, written down as the nodes of a trace.
 *
 * Times in a trace are whole microseconds, and most kernels last a few: what rounding cuts off one node of a thread or a
 * stream is carried over to the next, so that sums are right to a microsecond.  The attribute duration_ns has the
 * time as it was measured. */
#include "conversion.h"
#include "python_text.h"

typedef struct writer {
    conv_state *c;
    orr_trace *t;
    orr_buf text[6]; /* of inputs, then outputs: values, shapes, types */
    uint64_t *deps;
    size_t dep_room;
    orr_map *lanes; /* thread or stream -> place in carry */
    int64_t *carry; /* nanoseconds that are still to be counted */
    size_t carry_count, carry_room;
    int64_t first_ns; /* the trace begins here */
} writer;

enum { ATTRS = 18 };

/* ---- times ---- */

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
    return ns;
}

static int64_t *carry_of(writer *w, uint32_t place)
{
    const linked_node *n = conv_node(w->c, place);
    const bool is_host = w->c->role[place] == CONV_HOST;
    const uint64_t lane = (uint64_t)(is_host ? n->tid : n->stream) << 1 | is_host;
    uint32_t i = orr_map_find(w->lanes, lane, CONV_NONE);
    if (i == CONV_NONE) {
        i = (uint32_t)w->carry_count;
        if (!orr_grow(&w->carry, &w->carry_room, w->carry_count + 1) ||
            !orr_map_put(w->lanes, lane, i, NULL))
            return NULL;
        w->carry[w->carry_count++] = 0;
    }
    return &w->carry[i];
}

static bool round_time(writer *w, uint32_t place, int64_t ns, uint64_t *us)
{
    int64_t *carry = carry_of(w, place);
    if (!carry)
        return false;
    const int64_t all = ns > INT64_MAX - 1000 ? ns : ns + *carry;
    *us = (uint64_t)all / 1000;
    *carry = all % 1000;
    return true;
}

static void find_first(writer *w)
{
    const orr_linked *l = w->c->l;
    w->first_ns = LINKED_NO_TIME;
    for (size_t i = 0; i < l->node_count; i++) {
        const int64_t at = l->nodes[i].start_ns;
        if (at != LINKED_NO_TIME && (w->first_ns == LINKED_NO_TIME || at < w->first_ns))
            w->first_ns = at;
    }
    if (w->c->opt->has_origin)
        w->first_ns = w->c->opt->origin_ns;
}

/* Counted from the beginning; what lies before it, or was not measured, has none. */
static uint64_t start_us(const writer *w, const linked_node *n)
{
    int64_t since;
    if (n->start_ns == LINKED_NO_TIME || __builtin_sub_overflow(n->start_ns, w->first_ns, &since))
        return 0;
    return since > 0 ? (uint64_t)since / 1000 : 0;
}

/* ---- attributes ---- */

static orr_attr whole(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_attr small(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT32, .value.i = v};
}

static orr_attr text(const char *name, orr_str v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = v};
}

static orr_attr flag(const char *name, bool v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_BOOL, .value.u = v};
}

/* Those that the operator has, in the old order. */
static size_t put_known(const linked_node *n, orr_attr *attrs)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"rf_id", n->rf_id},   {"fw_parent", n->fw_parent},
                   {"seq_id", n->seq_id}, {"scope", n->scope},
                   {"tid", n->tid},       {"fw_tid", n->fw_tid}};
    size_t count = 0;
    for (unsigned i = 0; i < 6; i++) {
        if (!(n->lacks & 1u << i))
            attrs[count++] = whole(numbers[i].name, numbers[i].value);
    }
    if (!(n->lacks & 1u << 6))
        attrs[count++] = text("op_schema", n->op_schema);
    return count;
}

static int64_t stream_of(const conv_state *c, uint32_t place)
{
    const uint32_t partner = c->partner[place];
    if (c->role[place] == CONV_CALL)
        place = partner != CONV_NONE && c->role[partner] == CONV_TOGETHER ? partner : place;
    const int64_t stream = conv_node(c, place)->stream;
    return c->role[place] == CONV_HOST || stream == ORR_NO_VALUE ? 0 : stream;
}

static size_t put_call(const conv_call *call, orr_attr *attrs)
{
    const bool is_message = call->type != ORR_NODE_COMM_COLL;
    size_t count = 0;
    if (!is_message)
        attrs[count++] = whole("comm_type", call->kind);
    attrs[count++] = whole("comm_size", call->bytes);
    if (call->src >= 0 && call->src <= INT32_MAX)
        attrs[count++] = small("comm_src", call->src);
    if (call->dst >= 0 && call->dst <= INT32_MAX)
        attrs[count++] = small("comm_dst", call->dst);
    if (is_message)
        attrs[count++] = small("comm_tag", call->tag & INT32_MAX);
    if (call->group.len)
        attrs[count++] = text("pg_name", call->group);
    return count;
}

/* ---- a node ---- */

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

static bool put_deps(writer *w, uint32_t place, orr_draft *d)
{
    const conv_state *c = w->c;
    d->data_count = c->dep_first[place + 1] - c->dep_first[place];
    if (!orr_grow(&w->deps, &w->dep_room, d->data_count + 1))
        return false;
    for (size_t i = 0; i < d->data_count; i++)
        w->deps[i] = conv_node(c, c->dep[c->dep_first[place] + i])->id;
    d->data_deps = w->deps;
    return true;
}

/* A parent that begins after its child is none; a call's parent has nothing to do with when it runs. */
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

static bool has_failed(const writer *w)
{
    bool failed = false;
    for (unsigned i = 0; i < 6; i++)
        failed |= w->text[i].failed;
    return failed;
}

static orr_code put_node(writer *w, uint32_t place)
{
    const conv_state *c = w->c;
    const linked_node *n = conv_node(c, place);
    const bool is_host = c->role[place] == CONV_HOST || c->role[place] == CONV_GROUPS;
    int64_t ns = work_ns(c, place);
    orr_attr attrs[ATTRS];
    orr_io inputs, outputs;
    orr_draft d = {.id = n->id,
                   .name = n->name,
                   .type = type_of(c, place),
                   .start_us = start_us(w, n),
                   .attrs = attrs};
    if (ns < 0) {
        c->report->durations_negative++;
        ns = 0;
    }
    d.attr_count = put_known(n, attrs);
    attrs[d.attr_count++] = flag("is_cpu_op", is_host);
    attrs[d.attr_count++] = whole("stream", stream_of(c, place));
    if (c->call[place] != LINKED_NO_COMM)
        d.attr_count += put_call(&c->calls[c->call[place]], attrs + d.attr_count);
    if (ns)
        attrs[d.attr_count++] = whole("duration_ns", ns);
    if (has_ctrl(c, place)) {
        d.ctrl_deps = &conv_node(c, c->parent[place])->id;
        d.ctrl_count = 1;
    }
    if (n->inputs) {
        inputs = put_io(w, n->inputs, 0);
        d.inputs = &inputs;
    }
    if (n->outputs) {
        outputs = put_io(w, n->outputs, 3);
        d.outputs = &outputs;
    }
    if (!round_time(w, place, ns, &d.duration_us) || !put_deps(w, place, &d) || has_failed(w))
        return orr_no_memory(c->err);
    return orr_trace_append(w->t, &d, c->err);
}

static orr_code put_nodes(writer *w)
{
    orr_code code = ORR_OK;
    find_first(w);
    for (uint32_t p = 0; p < w->c->count && !code; p++)
        code = put_node(w, p);
    return code ? code : orr_trace_seal(w->t, w->c->err);
}

/* ---- all of it ---- */

static orr_code create(writer *w)
{
    const orr_linked *l = w->c->l;
    const orr_attr about[] = {
        text("schema", l->schema),
        {.name = orr_str_of("pid"), .kind = ORR_VALUE_UINT64, .value.u = l->pid},
        text("time", l->time),
        {.name = orr_str_of("start_ts"), .kind = ORR_VALUE_UINT64, .value.u = l->start_ts},
        {.name = orr_str_of("finish_ts"), .kind = ORR_VALUE_UINT64, .value.u = l->finish_ts},
    };
    const orr_meta meta = {.version = orr_str_of("1.0.0"), .attrs = about, .attr_count = 5};
    return orr_trace_create(&meta, &w->t, w->c->err);
}

orr_code conv_write_trace(conv_state *c, orr_trace **out)
{
    writer w = {.c = c, .lanes = orr_map_create(64)};
    orr_code code = w.lanes ? create(&w) : orr_no_memory(c->err);
    if (!code)
        code = put_nodes(&w);
    for (unsigned i = 0; i < 6; i++)
        orr_buf_fini(&w.text[i]);
    orr_free(w.deps);
    orr_free(w.carry);
    orr_map_destroy(w.lanes);
    if (code) {
        orr_trace_destroy(w.t);
        w.t = NULL;
    }
    *out = w.t;
    return code;
}
