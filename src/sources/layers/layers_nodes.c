/* SPDX-License-Identifier: Apache-2.0 */
/* layers_nodes.c - one node of an expanded table: its name, its attributes, and the dimensions it reaches.
 *
 * Two ways of writing the same node live here.  Ours leaves out what sends nothing (NONE, no bytes, a group of one
 * rank), splits ALLREDUCEALLTOALL in two, and gives collectives names that tell the passes apart.  That of
 * chakra_converter (chakra.md 4.3) writes a node for every collective, an all-reduce for every word it does not
 * know, and no is_cpu_op. */
#include "layers_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"

void lay_wait_for(lay_after *d, uint64_t id)
{
    if (id == ORR__NO_ID)
        return;
    for (size_t k = 0; k < d->count; k++) {
        if (d->ids[k] == id)
            return;
    }
    d->ids[d->count++] = id;
}

/* ---- names ---- */

static const char *const pass_names[ORR__PASSES] = {"FWD", "BWD_IG", "BWD_WG"};

static void name_begin(lay_expander *x, const char *kind, orr_str layer)
{
    orr_buf *name = &x->b.name;
    name->len = 0;
    orr_buf_text(name, kind);
    orr_buf_add(name, layer.ptr, layer.len);
    orr_buf_byte(name, '_');
}

static const orr_layer_pass *pass_of(const lay_expander *x, size_t i, lay_pass pass)
{
    const orr_layer *l = &x->t->layers[i];
    return pass == ORR__FWD ? &l->forward : pass == ORR__IG ? &l->input_grad : &l->weight_grad;
}

static void begin_node(lay_expander *x, const char *kind, size_t i)
{
    orr__build_node(&x->b, 0, (orr_str){0});
    name_begin(x, kind, x->t->layers[i].name);
}

/* The old converter has one name for a layer's collectives, but for one case that it marks (chakra.md 4.3). */
static void name_comm(lay_expander *x, size_t i, const char *pass, orr_str word)
{
    begin_node(x, "COMM_COLL_NODE_", i);
    if (!x->rules->has_bare_nodes) {
        orr_buf_text(&x->b.name, pass);
        orr_buf_byte(&x->b.name, '_');
    } else if (x->t->policy == ORR_POLICY_HYBRID_DATA_MODEL && pass == pass_names[ORR__IG]) {
        orr_buf_text(&x->b.name, "IG_COMM__");
    }
    orr_buf_add(&x->b.name, word.ptr, word.len);
}

/* ---- nodes ---- */

static uint64_t add_node(lay_expander *x, const lay_after *d)
{
    orr__build_deps(&x->b, d->ids, d->count);
    return orr__build_add(&x->b);
}

static uint64_t add_comp(lay_expander *x, uint64_t time, const lay_after *d)
{
    x->b.node.type = ORR_NODE_COMP;
    x->b.node.duration_us = time;
    if (!x->rules->has_bare_nodes)
        orr__put_on_device(&x->b);
    return add_node(x, d);
}

/* ---- which dimensions ---- */

typedef enum reach { REACH_NONE, REACH_ALL, REACH_INNER, REACH_OUTER } reach;

/* The table of scale-sim.md 8.  DLRM reaches everywhere: its layers differ in what they send, not in where to. */
static reach reach_of(orr_policy policy, lay_pass pass)
{
    const bool is_wg = pass == ORR__WG;
    switch (policy) {
    case ORR_POLICY_MICRO:
    case ORR_POLICY_DATA:
        return is_wg ? REACH_ALL : REACH_NONE;
    case ORR_POLICY_MODEL:
    case ORR_POLICY_DISTRIBUTED_INFERENCE:
        return is_wg ? REACH_NONE : REACH_ALL;
    case ORR_POLICY_HYBRID_DATA_MODEL:
    case ORR_POLICY_HYBRID_TRANSFORMER:
    case ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD:
        return is_wg ? REACH_OUTER : REACH_INNER;
    case ORR_POLICY_HYBRID_MODEL_DATA:
        return is_wg ? REACH_INNER : REACH_OUTER;
    default:
        return REACH_ALL;
    }
}

static orr_policy policy_of(const lay_expander *x, size_t i)
{
    return x->t->policy == ORR_POLICY_HYBRID_CUSTOMIZED ? x->t->layers[i].policy : x->t->policy;
}

static bool reaches_nobody(const lay_expander *x, reach where)
{
    return where == REACH_NONE || (where == REACH_INNER && x->is_inner_alone) ||
           (where == REACH_OUTER && x->is_outer_alone);
}

static void put_involved(lay_expander *x, reach where, orr_value *items)
{
    for (uint32_t k = 0; k < x->opt->dims; k++) {
        const bool is_inner = k < x->inner_dims;
        items[k].u = where == REACH_ALL || (where == REACH_INNER ? is_inner : !is_inner);
    }
    orr__put_list(&x->b, ORR__ATTR_INVOLVED_DIM, items, x->opt->dims);
}

/* ---- collectives ---- */

static uint64_t add_collective(
    lay_expander *x, orr_collective kind, uint64_t bytes, reach where, const lay_after *d)
{
    orr_value items[ORR__LAYER_DIMS_MAX];
    x->b.node.type = ORR_NODE_COMM_COLL;
    if (!x->rules->has_bare_nodes)
        orr__put_on_device(&x->b);
    orr__put_int(&x->b, ORR__ATTR_COMM_TYPE, (int64_t)kind);
    orr__put_as(&x->b, ORR__ATTR_COMM_SIZE, x->is_early ? ORR_VALUE_UINT64 : ORR_VALUE_INT64,
                (int64_t)bytes);
    if (x->opt->dims)
        put_involved(x, where, items);
    return add_node(x, d);
}

static orr_collective collective_of(lay_comm comm)
{
    switch (comm) {
    case ORR__COMM_ALL_GATHER:
        return ORR_COLL_ALL_GATHER;
    case ORR__COMM_REDUCE_SCATTER:
        return ORR_COLL_REDUCE_SCATTER;
    case ORR__COMM_ALL_TO_ALL:
        return ORR_COLL_ALL_TO_ALL;
    default:
        return ORR_COLL_ALL_REDUCE;
    }
}

/* As chakra_converter: every word is a collective, an all-reduce when it is none of the four it knows. */
static uint64_t comm_always(lay_expander *x, size_t i, lay_pass pass, const lay_after *d)
{
    const orr_layer_pass *p = pass_of(x, i, pass);
    lay_comm comm;
    if (!lay_comm_find(p->comm, &comm))
        comm = ORR__COMM_NONE;
    name_comm(x, i, pass_names[pass], p->comm);
    const reach where = reach_of(x->t->policy, pass);
    return add_collective(x, collective_of(comm), p->bytes, where == REACH_NONE ? REACH_ALL : where,
                          d);
}

/* A collective's result is used only after it was put in its place; ASTRA-sim 1.0 waits as long after each. */
static uint64_t add_update(lay_expander *x, size_t i, const char *pass, uint64_t comm)
{
    const orr_layer *l = &x->t->layers[i];
    uint64_t time = 0;
    if (!x->opt->with_updates || !orr_text_u64(l->update_time, &time) || time == 0)
        return comm;
    begin_node(x, "COMP_NODE_", i);
    orr_buf_text(&x->b.name, pass);
    orr_buf_text(&x->b.name, "_UPDATE");
    return add_comp(x, time, &(lay_after){{comm}, 1});
}

static uint64_t comm_ours(
    lay_expander *x, size_t i, lay_pass pass, const char *pass_name, const lay_after *d)
{
    const orr_layer_pass *p = pass_of(x, i, pass);
    const reach where = reach_of(policy_of(x, i), pass);
    lay_comm comm;
    if (!lay_comm_find(p->comm, &comm) || comm == ORR__COMM_NONE || p->bytes == 0 ||
        reaches_nobody(x, where))
        return ORR__NO_ID;
    const bool is_pair = comm == ORR__COMM_ALL_REDUCE_ALL_TO_ALL;
    name_comm(x, i, pass_name, is_pair ? orr_str_of("ALLREDUCE") : p->comm);
    uint64_t id = add_collective(x, collective_of(comm), p->bytes, where, d);
    if (is_pair) {
        name_comm(x, i, pass_name, orr_str_of("ALLTOALL"));
        id = add_collective(x, ORR_COLL_ALL_TO_ALL, p->bytes, where, &(lay_after){{id}, 1});
    }
    return add_update(x, i, pass_name, id);
}

/* ---- what policies call ---- */

uint64_t lay_layer_comp(lay_expander *x, size_t i, lay_pass pass, const lay_after *d)
{
    lay_layer_ids *ids = &x->now[i];
    begin_node(x, "COMP_NODE_", i);
    orr_buf_text(&x->b.name, pass_names[pass]);
    ids->comp[pass] = ids->comm[pass] = add_comp(x, pass_of(x, i, pass)->time, d);
    return ids->comp[pass];
}

uint64_t lay_layer_comm_after(lay_expander *x, size_t i, lay_pass pass, const lay_after *d)
{
    return x->rules->has_all_collectives ? comm_always(x, i, pass, d)
                                         : comm_ours(x, i, pass, pass_names[pass], d);
}

uint64_t lay_layer_comm(lay_expander *x, size_t i, lay_pass pass)
{
    lay_layer_ids *ids = &x->now[i];
    const uint64_t id = lay_layer_comm_after(x, i, pass, &(lay_after){{ids->comp[pass]}, 1});
    if (id != ORR__NO_ID)
        ids->comm[pass] = id;
    return id;
}

uint64_t lay_layer_again(lay_expander *x, size_t i, const lay_after *d)
{
    static const char pass[] = "FWD_IN_BWD";
    begin_node(x, "COMP_NODE_", i);
    orr_buf_text(&x->b.name, pass);
    const uint64_t comp = add_comp(x, x->t->layers[i].forward.time, d);
    const uint64_t comm = comm_ours(x, i, ORR__FWD, pass, &(lay_after){{comp}, 1});
    return comm == ORR__NO_ID ? comp : comm;
}
