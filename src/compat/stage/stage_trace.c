/* SPDX-License-Identifier: Apache-2.0 */
/* stage_trace.c - a plan as a trace (specification, section 14.1), and all of them as a set.
 *
 * All ranks of a pipeline stage have the same nodes; they differ in the number of their group along each axis and
 * in the rank that has their place in a neighbouring stage.  Those are the holes of the body: a slot for each
 * axis, and one for each stage that messages go to or come from. */
#include "stage_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { ATTRS_MOST = 6, TEXTS_MOST = 8 };

typedef struct hole_list {
    orr_hole *list; /* slots are numbers of axes, then of pipeline stages */
    size_t count, room;
} hole_list;

/* One trace in the making.  Texts of a node lie behind each other in `text`, which may move while it grows, so
 * they are known by where they begin until the node is complete. */
typedef struct writer {
    orr_stage *job;
    const orr__plan *plan;
    const stg_spot *spot;
    orr_trace *trace;
    hole_list *holes; /* NULL: not wanted */
    orr_buf text;
    size_t begin[TEXTS_MOST + 1];
    size_t text_count;
    orr_value items[TEXTS_MOST];
    orr_attr attrs[ATTRS_MOST];
    size_t attr_count;
    char group[16];
    uint32_t index; /* of the node being written */
    uint64_t *deps;
    size_t dep_room;
    uint32_t *seen; /* by node: the last node that has it as a parent, + 1 */
    orr_error *err;
} writer;

static void end_text(writer *w)
{
    w->begin[++w->text_count] = w->text.len;
}

static orr_str text_at(const writer *w, size_t i)
{
    return (orr_str){(const char *)w->text.ptr + w->begin[i], w->begin[i + 1] - w->begin[i]};
}

static void add_attr(writer *w, const char *name, orr_value_kind kind, orr_value value)
{
    w->attrs[w->attr_count++] = (orr_attr){.name = orr_str_of(name), .kind = kind, .value = value};
}

static orr_code add_whole(writer *w, const char *name, orr_value_kind kind, double v)
{
    int64_t n;
    const orr_code code = stg_whole(v, &n, w->err);
    if (code)
        return code;
    if (kind == ORR_VALUE_UINT64 && n < 0)
        return orr_fail(w->err, ORR_EINPUT, NULL, "a size of %g is negative", v);
    add_attr(w, name, kind, (orr_value){.i = n});
    return ORR_OK;
}

static orr_code add_io(writer *w, uint32_t tensor)
{
    stg_size size;
    tensor = stg_io_tensor(w->job, tensor);
    orr_code code = stg_io_text(w->job, tensor, &w->text, w->err);
    end_text(w);
    if (!code)
        code = stg_io_size(w->job, tensor, &size, w->err);
    if (code)
        return code;
    stg_size_print(&w->text, size);
    end_text(w);
    return ORR_OK;
}

/* The texts from..to become a list; without any there is no value at all. */
static void add_list(writer *w, const char *name, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        w->items[i].s = text_at(w, i);
    w->attrs[w->attr_count++] = (orr_attr){.name = orr_str_of(name),
                                           .kind = to > from ? ORR_VALUE_STRING : ORR_VALUE_NONE,
                                           .is_list = to > from,
                                           .items = w->items + from,
                                           .item_count = to - from};
}

/* ---- inputs and outputs ---- */

static orr_code add_inputs(writer *w, const stg_plan_node *n)
{
    const stg_tensor *t = &w->job->graph.tensors[n->tensor];
    orr__layout needed;
    orr_code code = ORR_OK;
    switch ((stg_kind)n->kind) {
    case ORR__COMP:
        if (t->a != ORR__NONE)
            code = add_io(w, t->a);
        return !code && t->b != ORR__NONE ? add_io(w, t->b) : code;
    case ORR__COLL_A:
    case ORR__COLL_B:
        return add_io(w, stg_operand_of(w->job, n, &needed));
    case ORR__SEND:
        return add_io(w, n->tensor);
    default:
        return ORR_OK;
    }
}

/* The name is text 0. */
static orr_code add_lists(writer *w, const stg_plan_node *n)
{
    const size_t first = w->text_count;
    orr_code code = add_inputs(w, n);
    const size_t middle = w->text_count;
    if (!code && (n->kind == ORR__COMP || n->kind == ORR__RECV))
        code = add_io(w, n->tensor);
    if (!code && w->text.failed)
        code = orr_no_memory(w->err);
    if (code)
        return code;
    add_list(w, "inputs", first, middle);
    add_list(w, "outputs", middle, w->text_count);
    return ORR_OK;
}

/* ---- the rest of a node ---- */

static orr_code add_hole(writer *w, orr_hole_field field, uint32_t slot)
{
    hole_list *h = w->holes;
    if (!h)
        return ORR_OK;
    if (!orr_grow(&h->list, &h->room, h->count + 1))
        return orr_no_memory(w->err);
    h->list[h->count++] = (orr_hole){.node = w->index, .field = field, .slot = slot};
    return ORR_OK;
}

static orr_code add_compute(writer *w, const stg_plan_node *n)
{
    orr_stage *job = w->job;
    orr__layout made;
    stg_expr ops;
    double count, size;
    orr_code code = stg_tensor_made(&job->graph, n->tensor, &made, w->err);
    if (!code)
        code = stg_tensor_ops(&job->graph, n->tensor, &ops, w->err);
    if (!code)
        code = stg_measure_expr(&job->measure, ops, &count, w->err);
    if (!code)
        code = stg_measure_layout(&job->measure, made, &size, w->err);
    if (!code)
        code = add_whole(w, "num_ops", ORR_VALUE_INT64, count);
    if (!code)
        code = add_whole(w, "tensor_size", ORR_VALUE_UINT64, size);
    const char *op = stg_op_name((stg_op)job->graph.tensors[n->tensor].op);
    add_attr(w, "op_type", ORR_VALUE_STRING, (orr_value){.s = orr_str_of(op)});
    return code;
}

static orr_code add_size(writer *w, uint32_t tensor)
{
    orr__layout made;
    double size;
    orr_code code = stg_tensor_made(&w->job->graph, tensor, &made, w->err);
    if (!code)
        code = stg_measure_layout(&w->job->measure, made, &size, w->err);
    return code ? code : add_whole(w, "comm_size", ORR_VALUE_INT64, size);
}

static void add_group(writer *w, const stg_plan_node *n)
{
    const uint32_t group = stg_grid_group(&w->job->grid, w->spot, (stg_axis)n->axis);
    if (w->job->opt.legacy_attr) {
        add_attr(w, "comm_group", ORR_VALUE_INT32, (orr_value){.i = group});
        return;
    }
    snprintf(w->group, sizeof w->group, "%" PRIu32, group);
    add_attr(w, "pg_name", ORR_VALUE_STRING, (orr_value){.s = orr_str_of(w->group)});
}

static orr_code add_collective(writer *w, const stg_plan_node *n)
{
    orr__layout needed;
    const orr_code code = add_size(w, stg_operand_of(w->job, n, &needed));
    if (code)
        return code;
    add_attr(w, "comm_type", ORR_VALUE_INT64, (orr_value){.i = n->collective});
    add_group(w, n);
    return w->job->opt.legacy_attr ? ORR_OK : add_hole(w, ORR_HOLE_PG_NAME, n->axis);
}

static orr_code add_message(writer *w, const stg_plan_node *n)
{
    const bool is_send = n->kind == ORR__SEND;
    stg_spot peer = *w->spot;
    const orr_code code = add_size(w, n->tensor);
    if (code)
        return code;
    peer.stage = n->peer;
    add_attr(w, "comm_tag", ORR_VALUE_INT32, (orr_value){.i = (int64_t)n->tag});
    add_attr(w, is_send ? "comm_dst" : "comm_src", ORR_VALUE_INT32,
             (orr_value){.i = stg_grid_rank(&w->job->grid, &peer)});
    return add_hole(w, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, ORR__AXES + n->peer);
}

/* The ids of all parents, once each. */
static orr_code list_parents(writer *w, uint32_t index, orr_draft *d)
{
    const stg_plan_node *n = &w->plan->nodes[index];
    if (!orr_grow(&w->deps, &w->dep_room, n->dep_count))
        return orr_no_memory(w->err);
    for (uint32_t i = 0; i < n->dep_count; i++) {
        const uint32_t parent = w->plan->deps[n->dep + i];
        if (w->seen[parent] == index + 1)
            continue;
        w->seen[parent] = index + 1;
        w->deps[d->data_count++] = w->plan->nodes[parent].id;
    }
    d->data_deps = w->deps;
    return ORR_OK;
}

static orr_code add_node(writer *w, uint32_t index)
{
    static const orr_node_type types[] = {[ORR__COMP] = ORR_NODE_COMP,
                                          [ORR__COLL_A] = ORR_NODE_COMM_COLL,
                                          [ORR__COLL_B] = ORR_NODE_COMM_COLL,
                                          [ORR__SEND] = ORR_NODE_COMM_SEND,
                                          [ORR__RECV] = ORR_NODE_COMM_RECV};
    const stg_plan_node *n = &w->plan->nodes[index];
    orr_draft d = {.id = n->id, .type = types[n->kind], .attrs = w->attrs};
    w->index = index;
    w->text.len = w->text_count = w->attr_count = 0;
    stg_node_text(w->job, n, &w->text);
    end_text(w);
    orr_code code = add_lists(w, n);
    if (!code && n->kind == ORR__COMP)
        code = add_compute(w, n);
    else if (!code && (n->kind == ORR__SEND || n->kind == ORR__RECV))
        code = add_message(w, n);
    else if (!code)
        code = add_collective(w, n);
    if (!code && n->kind != ORR__COMP && !w->job->opt.legacy_attr)
        add_attr(w, "is_cpu_op", ORR_VALUE_INT32, (orr_value){.i = 0});
    if (!code)
        code = list_parents(w, index, &d);
    d.name = text_at(w, 0);
    d.attr_count = w->attr_count;
    return code ? code : orr_trace_append(w->trace, &d, w->err);
}

static orr_code write_nodes(writer *w, orr_arena *arena)
{
    const orr_attr schema = {.name = orr_str_of("schema"),
                             .kind = ORR_VALUE_STRING,
                             .value.s = orr_str_of("symbolic_tensor_network")};
    const orr_meta meta = {.attrs = &schema, .attr_count = 1};
    w->seen = orr_arena_new(arena, w->plan->count + 1, uint32_t);
    if (!w->seen)
        return orr_no_memory(w->err);
    orr_code code = orr_trace_create(&meta, &w->trace, w->err);
    for (uint32_t i = 0; i < w->plan->count && !code; i++)
        code = add_node(w, i);
    return code ? code : orr_trace_seal(w->trace, w->err);
}

/* The trace of a spot. */
static orr_code make_body(
    orr_stage *job, const stg_spot *spot, orr_trace **out, hole_list *holes, orr_error *err)
{
    writer w = {
        .job = job, .plan = &job->plans[spot->stage], .spot = spot, .holes = holes, .err = err};
    orr_arena *arena = orr_arena_create();
    const orr_code code = arena ? write_nodes(&w, arena) : orr_no_memory(err);
    orr_arena_destroy(arena);
    orr_buf_fini(&w.text);
    orr_free(w.deps);
    *out = w.trace;
    if (code) {
        orr_trace_destroy(w.trace);
        *out = NULL;
    }
    return code;
}

orr_code orr_stage_trace(orr_stage *job, uint32_t rank, orr_trace **out, orr_error *err)
{
    const stg_spot spot = stg_grid_spot(&job->grid, rank);
    *out = NULL;
    if (rank >= orr_stage_rank_count(job))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no rank %u", rank);
    return make_body(job, &spot, out, NULL, err);
}

/* ---- a set ---- */

/* The slots that holes use, closed up: slot numbers are handed out in the order of first use. */
typedef struct slots {
    uint32_t *number; /* of an axis or stage, + 1; 0: not used */
    uint32_t *source; /* the other way */
    uint32_t count;
    int64_t *values; /* of a rank */
} slots;

static void close_up(slots *s, hole_list *holes)
{
    for (size_t i = 0; i < holes->count; i++) {
        uint32_t *number = &s->number[holes->list[i].slot];
        if (!*number) {
            s->source[s->count] = holes->list[i].slot;
            *number = ++s->count;
        }
        holes->list[i].slot = *number - 1;
    }
}

static void fill(const orr_stage *job, const slots *s, const stg_spot *spot)
{
    for (uint32_t i = 0; i < s->count; i++) {
        stg_spot peer = *spot;
        if (s->source[i] < ORR__AXES) {
            s->values[i] = stg_grid_group(&job->grid, spot, (stg_axis)s->source[i]);
        } else {
            peer.stage = s->source[i] - ORR__AXES;
            s->values[i] = stg_grid_rank(&job->grid, &peer);
        }
    }
}

static orr_code add_ranks(orr_stage *job,
                          orr_set *set,
                          uint32_t stage,
                          uint32_t class_index,
                          const slots *s,
                          orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < job->grid.per_stage && !code; i++) {
        const stg_spot spot = stg_grid_spot(&job->grid, stage * job->grid.per_stage + i);
        fill(job, s, &spot);
        code = orr_set_add_filled(set, class_index, 0, s->values, err);
    }
    return code;
}

static orr_code add_stage(orr_stage *job, orr_set *set, uint32_t stage, orr_error *err)
{
    const stg_spot first = {.stage = stage};
    const size_t most = ORR__AXES + job->grid.stages;
    hole_list holes = {0};
    orr_trace *body = NULL;
    uint32_t class_index;
    orr_arena *arena = orr_arena_create();
    slots s = {0};
    if (arena) {
        s.number = orr_arena_new(arena, most, uint32_t);
        s.source = orr_arena_new(arena, most, uint32_t);
        s.values = orr_arena_new(arena, most, int64_t);
    }
    orr_code code = s.number && s.source && s.values ? make_body(job, &first, &body, &holes, err)
                                                     : orr_no_memory(err);
    if (!code) {
        close_up(&s, &holes);
        code = orr_set_add_class(set, body, holes.list, holes.count, s.count, &class_index, err);
    }
    if (!code)
        code = add_ranks(job, set, stage, class_index, &s, err);
    orr_free(holes.list);
    orr_arena_destroy(arena);
    return code;
}

/* comm_group is not among the fields that can be holes: every rank has a body. */
static orr_code add_legacy(orr_stage *job, orr_set *set, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < orr_stage_rank_count(job) && !code; r++) {
        orr_trace *t;
        code = orr_stage_trace(job, r, &t, err);
        if (!code)
            code = orr_set_add(set, t, err);
    }
    return code;
}

static orr_code add_groups(const orr_stage *job, orr_set *set, orr_error *err)
{
    const stg_grid *g = &job->grid;
    uint32_t *members = NULL;
    size_t room = 0;
    orr_code code = ORR_OK;
    for (uint32_t id = 1; id < g->first_group[ORR__AXES] && !code; id++) {
        uint32_t count, stride;
        uint32_t rank = stg_grid_members(g, id, &count, &stride);
        if (!orr_grow(&members, &room, count))
            code = orr_no_memory(err);
        for (uint32_t i = 0; i < count && !code; i++, rank += stride)
            members[i] = rank;
        if (!code)
            code = orr_set_add_group(set, id, members, count, err);
    }
    orr_free(members);
    return code;
}

orr_code orr_stage_set(orr_stage *job, orr_set **out, orr_error *err)
{
    orr_set *set;
    *out = NULL;
    orr_code code = orr_set_create(&set, err);
    if (code)
        return code;
    if (job->opt.legacy_attr)
        code = add_legacy(job, set, err);
    for (uint32_t s = 0; s < job->grid.stages && !code && !job->opt.legacy_attr; s++)
        code = add_stage(job, set, s, err);
    if (!code)
        code = add_groups(job, set, err);
    if (code)
        orr_set_close(set);
    else
        *out = set;
    return code;
}

orr_code orr_stage_write_groups(const orr_stage *job, const char *path, orr_error *err)
{
    orr_set *set;
    orr_code code = orr_set_create(&set, err);
    if (code)
        return code;
    code = add_groups(job, set, err);
    if (!code)
        code = orr_set_write_groups(set, path, err);
    orr_set_close(set);
    return code;
}
