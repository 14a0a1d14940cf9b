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

void orr__wait_for(orr__after *d, uint64_t id)
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

static void name_begin(orr__expander *x, const char *kind, orr_str layer)
{
    x->name.len = 0;
    orr_buf_text(&x->name, kind);
    orr_buf_add(&x->name, layer.ptr, layer.len);
    orr_buf_byte(&x->name, '_');
}

static const orr_layer_pass *pass_of(const orr__expander *x, size_t i, orr__pass pass)
{
    const orr_layer *l = &x->t->layers[i];
    return pass == ORR__FWD ? &l->forward : pass == ORR__IG ? &l->input_grad : &l->weight_grad;
}

/* The old converter has one name for a layer's collectives, but for one case that it marks (chakra.md 4.3). */
static void name_comm(orr__expander *x, size_t i, const char *pass, orr_str word)
{
    const orr_str layer = x->t->layers[i].name;
    name_begin(x, "COMM_COLL_NODE_", layer);
    if (!x->opt->is_compat) {
        orr_buf_text(&x->name, pass);
        orr_buf_byte(&x->name, '_');
    } else if (x->t->policy == ORR_POLICY_HYBRID_DATA_MODEL && pass == pass_names[ORR__IG]) {
        orr_buf_text(&x->name, "IG_COMM__");
    }
    orr_buf_add(&x->name, word.ptr, word.len);
}

/* ---- nodes ---- */

static uint64_t add_node(orr__expander *x, orr_draft *draft, const orr__after *d)
{
    if (x->code)
        return ORR__NO_ID;
    if (x->name.failed) {
        x->code = orr_no_memory(x->err);
        return ORR__NO_ID;
    }
    draft->id = x->next_id;
    draft->name = (orr_str){(const char *)x->name.ptr, x->name.len};
    draft->data_deps = d->ids;
    draft->data_count = d->count;
    x->code = orr_trace_append(x->trace, draft, x->err);
    return x->next_id++;
}

static orr_attr attr_int(const char *name, orr_value_kind kind, uint64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = kind, .value.u = v};
}

static uint64_t add_comp(orr__expander *x, uint64_t time, const orr__after *d)
{
    const orr_attr on_device = attr_int("is_cpu_op", ORR_VALUE_BOOL, 0);
    orr_draft draft = {.type = ORR_NODE_COMP, .duration_us = time};
    if (!x->opt->is_compat) {
        draft.attrs = &on_device;
        draft.attr_count = 1;
    }
    return add_node(x, &draft, d);
}

/* ---- which dimensions ---- */

typedef enum reach { REACH_NONE, REACH_ALL, REACH_INNER, REACH_OUTER } reach;

/* The table of scale-sim.md 8.  DLRM reaches everywhere: its layers differ in what they send, not in where to. */
static reach reach_of(orr_policy policy, orr__pass pass)
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

static orr_policy policy_of(const orr__expander *x, size_t i)
{
    return x->t->policy == ORR_POLICY_HYBRID_CUSTOMIZED ? x->t->layers[i].policy : x->t->policy;
}

static bool reaches_nobody(const orr__expander *x, reach where)
{
    return where == REACH_NONE || (where == REACH_INNER && x->is_inner_alone) ||
           (where == REACH_OUTER && x->is_outer_alone);
}

static orr_attr attr_involved(const orr__expander *x, reach where, orr_value *items)
{
    for (uint32_t k = 0; k < x->opt->dims; k++) {
        const bool is_inner = k < x->inner_dims;
        items[k].u = where == REACH_ALL || (where == REACH_INNER ? is_inner : !is_inner);
    }
    return (orr_attr){.name = orr_str_of("involved_dim"),
                      .kind = ORR_VALUE_BOOL,
                      .is_list = true,
                      .items = items,
                      .item_count = x->opt->dims};
}

/* ---- collectives ---- */

static uint64_t add_collective(
    orr__expander *x, orr_collective kind, uint64_t bytes, reach where, const orr__after *d)
{
    const bool is_early = x->opt->is_compat && (x->opt->is_early || x->opt->dims);
    orr_value items[ORR__LAYER_DIMS_MAX];
    orr_attr attrs[4];
    size_t n = 0;
    if (!x->opt->is_compat)
        attrs[n++] = attr_int("is_cpu_op", ORR_VALUE_BOOL, 0);
    attrs[n++] = attr_int("comm_type", ORR_VALUE_INT64, kind);
    attrs[n++] = attr_int("comm_size", is_early ? ORR_VALUE_UINT64 : ORR_VALUE_INT64, bytes);
    if (x->opt->dims)
        attrs[n++] = attr_involved(x, where, items);
    orr_draft draft = {.type = ORR_NODE_COMM_COLL, .attrs = attrs, .attr_count = n};
    return add_node(x, &draft, d);
}

static orr_collective collective_of(orr__comm comm)
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
static uint64_t comm_compat(orr__expander *x, size_t i, orr__pass pass, const orr__after *d)
{
    const orr_layer_pass *p = pass_of(x, i, pass);
    orr__comm comm;
    if (!orr__comm_find(p->comm, &comm))
        comm = ORR__COMM_NONE;
    name_comm(x, i, pass_names[pass], p->comm);
    const reach where = reach_of(x->t->policy, pass);
    return add_collective(x, collective_of(comm), p->bytes, where == REACH_NONE ? REACH_ALL : where,
                          d);
}

/* A collective's result is used only after it was put in its place; ASTRA-sim 1.0 waits as long after each. */
static uint64_t add_update(orr__expander *x, size_t i, const char *pass, uint64_t comm)
{
    const orr_layer *l = &x->t->layers[i];
    uint64_t time = 0;
    if (!x->opt->with_updates || !orr_text_u64(l->update_time, &time) || time == 0)
        return comm;
    name_begin(x, "COMP_NODE_", l->name);
    orr_buf_text(&x->name, pass);
    orr_buf_text(&x->name, "_UPDATE");
    return add_comp(x, time, &(orr__after){{comm}, 1});
}

static uint64_t comm_ours(
    orr__expander *x, size_t i, orr__pass pass, const char *pass_name, const orr__after *d)
{
    const orr_layer_pass *p = pass_of(x, i, pass);
    const reach where = reach_of(policy_of(x, i), pass);
    orr__comm comm;
    if (!orr__comm_find(p->comm, &comm) || comm == ORR__COMM_NONE || p->bytes == 0 ||
        reaches_nobody(x, where))
        return ORR__NO_ID;
    const bool is_pair = comm == ORR__COMM_ALL_REDUCE_ALL_TO_ALL;
    name_comm(x, i, pass_name, is_pair ? orr_str_of("ALLREDUCE") : p->comm);
    uint64_t id = add_collective(x, collective_of(comm), p->bytes, where, d);
    if (is_pair) {
        name_comm(x, i, pass_name, orr_str_of("ALLTOALL"));
        id = add_collective(x, ORR_COLL_ALL_TO_ALL, p->bytes, where, &(orr__after){{id}, 1});
    }
    return add_update(x, i, pass_name, id);
}

/* ---- what policies call ---- */

uint64_t orr__layer_comp(orr__expander *x, size_t i, orr__pass pass, const orr__after *d)
{
    orr__layer_ids *ids = &x->now[i];
    name_begin(x, "COMP_NODE_", x->t->layers[i].name);
    orr_buf_text(&x->name, pass_names[pass]);
    ids->comp[pass] = ids->comm[pass] = add_comp(x, pass_of(x, i, pass)->time, d);
    return ids->comp[pass];
}

uint64_t orr__layer_comm_after(orr__expander *x, size_t i, orr__pass pass, const orr__after *d)
{
    return x->opt->is_compat ? comm_compat(x, i, pass, d)
                             : comm_ours(x, i, pass, pass_names[pass], d);
}

uint64_t orr__layer_comm(orr__expander *x, size_t i, orr__pass pass)
{
    orr__layer_ids *ids = &x->now[i];
    const uint64_t id = orr__layer_comm_after(x, i, pass, &(orr__after){{ids->comp[pass]}, 1});
    if (id != ORR__NO_ID)
        ids->comm[pass] = id;
    return id;
}

uint64_t orr__layer_again(orr__expander *x, size_t i, const orr__after *d)
{
    static const char pass[] = "FWD_IN_BWD";
    name_begin(x, "COMP_NODE_", x->t->layers[i].name);
    orr_buf_text(&x->name, pass);
    const uint64_t comp = add_comp(x, x->t->layers[i].forward.time, d);
    const uint64_t comm = comm_ours(x, i, ORR__FWD, pass, &(orr__after){{comp}, 1});
    return comm == ORR__NO_ID ? comp : comm;
}
