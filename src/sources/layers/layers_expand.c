/* SPDX-License-Identifier: Apache-2.0 */
/* layers_expand.c - a table of layers, so many ranks and passes: the traces.
 *
 * All ranks of a table do the same, so one trace serves all; under the old converter's rules ids
 * continue from rank to rank, which is a shift.  All errors are found before the first node. Cost:
 * linear in layers times passes, for any number of ranks. */
#include "base/text/number.h"
#include "base/text/text.h"
#include "layers_impl.h"

#include <inttypes.h>
#include <stdio.h>

typedef enum lay_pass { ORR__FWD, ORR__IG, ORR__WG, ORR__PASSES } lay_pass;

#define ORR__NO_ID UINT64_MAX

enum { ORR__LAYER_DIMS_MAX = 64 };

/* The nodes of one layer in one pass.  comm is what to wait for if the collective is meant: its
 * (last) node, or the compute node if there is nothing to send. */
typedef struct lay_layer_ids {
    uint64_t comp[ORR__PASSES], comm[ORR__PASSES];
} lay_layer_ids;

typedef struct lay_expander {
    const orr_layers *t;
    const orr_layers_expand *opt;
    const orr_rules_layers *rules;
    bool is_early;       /* rules->has_early_form, here */
    size_t count;        /* of layers */
    int64_t declared;    /* what the second line says, or count */
    uint32_t inner_dims; /* the dimensions 0 to inner_dims - 1 are those of a hybrid's first kind */
    bool is_inner_alone; /* a group of the first kind has one rank: nothing to send */
    bool is_outer_alone; /* the same for the second kind */
    const uint32_t *restart; /* by layer: the first to run forward again, or its own number */
    orr_trace *trace;
    orr__builder b;
    lay_layer_ids *now, *before; /* this pass and the previous one, by layer */
} lay_expander;

typedef struct lay_after {
    uint64_t ids[4];
    size_t count;
} lay_after;

/* One node of an expanded table: its name, attributes and dimensions.
 *
 * There are two ways to write a node.  Ours leaves out collectives that send nothing (NONE, no
 * bytes, a group of one rank), splits ALLREDUCEALLTOALL in two, and names collectives by pass.
 * That of chakra_converter (chakra.md 4.3) writes a node for every collective, an all-reduce for
 * every word it does not know, and no is_cpu_op. */

/* Without duplicates, and only if there is such a node. */
static void lay_wait_for(lay_after *d, uint64_t id)
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

/* The old converter has one name for a layer's collectives, except for one case that it marks
 * (chakra.md 4.3). */
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

/* The table of scale-sim.md 8.  DLRM spans all dimensions: its layers differ in what they send, not
 * in where to. */
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

/* As chakra_converter: every word is a collective, an all-reduce when it is none of the four it
 * knows. */
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

/* A collective's result is usable only after an update; ASTRA-sim 1.0 waits that long after
 * each. */
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

/* The compute node of layer i; its id stands in x->now. */
static uint64_t lay_layer_comp(lay_expander *x, size_t i, lay_pass pass, const lay_after *d)
{
    lay_layer_ids *ids = &x->now[i];
    begin_node(x, "COMP_NODE_", i);
    orr_buf_text(&x->b.name, pass_names[pass]);
    ids->comp[pass] = ids->comm[pass] = add_comp(x, pass_of(x, i, pass)->time, d);
    return ids->comp[pass];
}

/* The collective after some other node; ORR__NO_ID if there is nothing to send.  Does not change
 * x->now. */
static uint64_t lay_layer_comm_after(lay_expander *x, size_t i, lay_pass pass, const lay_after *d)
{
    return x->rules->has_all_collectives ? comm_always(x, i, pass, d)
                                         : comm_ours(x, i, pass, pass_names[pass], d);
}

/* The collective after the compute node; likewise. */
static uint64_t lay_layer_comm(lay_expander *x, size_t i, lay_pass pass)
{
    lay_layer_ids *ids = &x->now[i];
    const uint64_t id = lay_layer_comm_after(x, i, pass, &(lay_after){{ids->comp[pass]}, 1});
    if (id != ORR__NO_ID)
        ids->comm[pass] = id;
    return id;
}

/* Forward again, compute and collective, after d; returns what to wait for. */
static uint64_t lay_layer_again(lay_expander *x, size_t i, const lay_after *d)
{
    static const char pass[] = "FWD_IN_BWD";
    begin_node(x, "COMP_NODE_", i);
    orr_buf_text(&x->b.name, pass);
    const uint64_t comp = add_comp(x, x->t->layers[i].forward.time, d);
    const uint64_t comm = comm_ours(x, i, ORR__FWD, pass, &(lay_after){{comp}, 1});
    return comm == ORR__NO_ID ? comp : comm;
}

/* The nodes of one pass through the network for each policy, in order, with their dependencies.
 *
 * The policies that chakra_converter knows are its graphs (chakra.md 4.3); the others are the
 * training loops of ASTRA-sim 1.0, in which the compute nodes of a rank form a chain and a
 * collective is waited for where its result is used.  docs/format/text.md draws them.  Invariant: a
 * node's parents are added before it.
 *
 *     lay_after d = {0};
 *     lay_wait_for(&d, x->now[i - 1].comm[ORR__FWD]);     // nothing happens when that node does not exist
 *     lay_layer_comp(x, i, ORR__FWD, &d);
 *     lay_layer_comm(x, i, ORR__FWD);
 *
 * Ids count up from 0.  The first failure sticks and turns all later calls into no-ops, so a policy
 * reads as a list of nodes. */

/* ---- collectives alone, data, inference ---- */

static void pass_micro(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++)
        lay_layer_comm_after(x, i, ORR__WG, &(lay_after){0});
}

static void pass_data(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        if (i > 0)
            lay_wait_for(&d, x->now[i - 1].comp[ORR__FWD]);
        lay_wait_for(&d, x->before[i].comm[ORR__WG]);
        lay_layer_comp(x, i, ORR__FWD, &d);
    }
    for (size_t i = x->count; i-- > 0;) {
        const bool is_last = i == x->count - 1;
        lay_after d = {0};
        lay_wait_for(&d, is_last ? x->now[i].comp[ORR__FWD] : x->now[i + 1].comp[ORR__IG]);
        const uint64_t wg = lay_layer_comp(x, i, ORR__WG, &d);
        lay_layer_comm(x, i, ORR__WG);
        if (i > 0)
            lay_layer_comp(x, i, ORR__IG, &(lay_after){{wg}, 1});
    }
}

/* Forward only; a pass begins when the one before is through. */
static void pass_inference(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        lay_wait_for(&d,
                     i > 0 ? x->now[i - 1].comm[ORR__FWD] : x->before[x->count - 1].comm[ORR__FWD]);
        lay_layer_comp(x, i, ORR__FWD, &d);
        lay_layer_comm(x, i, ORR__FWD);
    }
}

/* ---- model and hybrids ---- */

static void model_forward(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        if (i > 0)
            lay_wait_for(&d, x->now[i - 1].comm[ORR__FWD]);
        lay_wait_for(&d, x->before[i].comp[ORR__WG]);
        lay_layer_comp(x, i, ORR__FWD, &d);
        lay_layer_comm(x, i, ORR__FWD);
    }
}

static bool is_transformer(const orr_layers *t)
{
    return t->policy == ORR_POLICY_HYBRID_TRANSFORMER ||
           t->policy == ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD;
}

/* With transformers layer 0 too has a collective of its input gradients: then the next pass waits
 * for it. */
static void hybrid_forward(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        lay_wait_for(&d, x->before[i].comm[ORR__WG]);
        if (i > 0)
            lay_wait_for(&d, x->now[i - 1].comm[ORR__FWD]);
        else if (is_transformer(x->t) && x->before[0].comm[ORR__IG] != x->before[0].comp[ORR__IG])
            lay_wait_for(&d, x->before[0].comm[ORR__IG]);
        lay_layer_comp(x, i, ORR__FWD, &d);
        lay_layer_comm(x, i, ORR__FWD);
    }
}

/* What the backward pass of layer i depends on.  The weight gradient of the layer above follows its
 * input gradient, so the latter need not be listed if nothing was sent. */
static lay_after above(const lay_expander *x, size_t i)
{
    lay_after d = {0};
    if (i == x->count - 1) {
        lay_wait_for(&d, x->now[i].comm[ORR__FWD]);
        return d;
    }
    const lay_layer_ids *up = &x->now[i + 1];
    lay_wait_for(&d, up->comp[ORR__WG]);
    if (up->comm[ORR__IG] != up->comp[ORR__IG])
        lay_wait_for(&d, up->comm[ORR__IG]);
    return d;
}

/* The gradient of the first layer's input is not needed; the converter finds that layer by the
 * announced number of layers, right or wrong. */
static bool sends_input_grad(const lay_expander *x, size_t i)
{
    if (x->rules->believes_count)
        return (int64_t)(x->count - i) != x->declared;
    return i > 0 || is_transformer(x->t);
}

/* Recompute from the nearest checkpoint to the layer below i. */
static void run_again(lay_expander *x, size_t i, lay_after *d)
{
    for (size_t j = x->restart ? x->restart[i] : i; j < i; j++)
        *d = (lay_after){{lay_layer_again(x, j, d)}, 1};
}

static void backward(lay_expander *x, bool has_wg_comm)
{
    for (size_t i = x->count; i-- > 0;) {
        lay_after d = above(x, i);
        run_again(x, i, &d);
        const uint64_t ig = lay_layer_comp(x, i, ORR__IG, &d);
        if (sends_input_grad(x, i))
            lay_layer_comm(x, i, ORR__IG);
        lay_layer_comp(x, i, ORR__WG, &(lay_after){{ig}, 1});
        if (has_wg_comm)
            lay_layer_comm(x, i, ORR__WG);
    }
}

static void pass_model(lay_expander *x)
{
    model_forward(x);
    backward(x, false);
}

static void pass_hybrid(lay_expander *x)
{
    hybrid_forward(x);
    backward(x, true);
}

/* ---- DLRM ---- */

/* Layer 0 is the embedding; its all-to-all runs beside the bottom network, whose last layer waits
 * for it. */
static void dlrm_forward(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        lay_wait_for(&d, x->before[i].comm[ORR__WG]);
        if (i > 0)
            lay_wait_for(&d, x->now[i - 1].comp[ORR__FWD]);
        if ((int64_t)i == x->t->args.last_bottom)
            lay_wait_for(&d, x->now[0].comm[ORR__FWD]);
        lay_layer_comp(x, i, ORR__FWD, &d);
        if (orr_str_is(x->t->layers[i].forward.comm, "ALLTOALL"))
            lay_layer_comm(x, i, ORR__FWD);
    }
}

static void dlrm_backward(lay_expander *x)
{
    uint64_t embedding = ORR__NO_ID; /* its gradients, when they are sent */
    for (size_t i = x->count; i-- > 0;) {
        const bool is_last = i == x->count - 1;
        lay_after d = {0};
        lay_wait_for(&d, is_last ? x->now[i].comp[ORR__FWD] : x->now[i + 1].comp[ORR__IG]);
        if (i == 0)
            lay_wait_for(&d, embedding);
        const uint64_t wg = lay_layer_comp(x, i, ORR__WG, &d);
        if (!orr_str_is(x->t->layers[i].weight_grad.comm, "NONE"))
            lay_layer_comm(x, i, ORR__WG);
        if (i == 0)
            return;
        const uint64_t ig = lay_layer_comp(x, i, ORR__IG, &(lay_after){{wg}, 1});
        if ((int64_t)i - 1 == x->t->args.last_bottom)
            embedding = lay_layer_comm_after(x, 0, ORR__IG, &(lay_after){{ig}, 1});
    }
}

static void pass_dlrm(lay_expander *x)
{
    dlrm_forward(x);
    dlrm_backward(x);
}

/* All nodes of one pass through the network. */
static void lay_expand_pass(lay_expander *x)
{
    static void (*const passes[ORR_POLICY_COUNT])(lay_expander *) = {
        [ORR_POLICY_MICRO] = pass_micro,
        [ORR_POLICY_DATA] = pass_data,
        [ORR_POLICY_MODEL] = pass_model,
        [ORR_POLICY_HYBRID_DATA_MODEL] = pass_hybrid,
        [ORR_POLICY_HYBRID_MODEL_DATA] = pass_hybrid,
        [ORR_POLICY_HYBRID_DLRM] = pass_dlrm,
        [ORR_POLICY_HYBRID_DLRM_ENHANCED] = pass_dlrm,
        [ORR_POLICY_HYBRID_TRANSFORMER] = pass_hybrid,
        [ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD] = pass_hybrid,
        [ORR_POLICY_HYBRID_CUSTOMIZED] = pass_hybrid,
        [ORR_POLICY_DISTRIBUTED_INFERENCE] = pass_inference,
    };
    passes[x->t->policy](x);
}

/* ---- expand ---- */

/* Nodes that a layer can have in a pass: three compute nodes, three pairs of collectives with an
 * update each, and forward once more. */
enum { NODES_MOST = 16, RANKS_MOST = 1 << 20 };

/* ---- is it possible? ---- */

static orr_code check_options(const lay_expander *x, orr_error *err)
{
    const orr_layers_expand *opt = x->opt;
    const uint64_t most = (UINT32_MAX - 1) / NODES_MOST;
    if (opt->ranks == 0 || opt->ranks > RANKS_MOST)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu32 " ranks; there may be 1 to %d",
                        opt->ranks, RANKS_MOST);
    if (opt->dims > ORR__LAYER_DIMS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu32 " dimensions; there may be up to %d",
                        opt->dims, ORR__LAYER_DIMS_MAX);
    if (!x->rules->has_all_collectives && opt->passes == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "0 passes; there must be one at least");
    if (x->count && opt->passes > most / x->count)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%zu layers in %" PRIu32 " passes are more nodes than a trace can hold",
                        x->count, opt->passes);
    if (!x->rules->has_few_policies || lay_policy_is_converted(x->t->policy))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "chakra_converter does not know the policy %s",
                    orr_policy_name(x->t->policy));
}

static orr_code check_sizes(const lay_expander *x, orr_error *err)
{
    const uint32_t *sizes = x->opt->dim_sizes;
    uint64_t product = 1;
    if (!sizes)
        return ORR_OK;
    for (uint32_t k = 0; k < x->opt->dims && product <= RANKS_MOST; k++)
        product *= sizes[k];
    if (product == x->opt->ranks)
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "the sizes of the dimensions do not multiply to %" PRIu32 " ranks",
                    x->opt->ranks);
}

static orr_code args_error(const lay_expander *x, orr_error *err, const char *words, uint64_t v)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(lay_where(x->t, x->t->header_line, x->t->args_column)),
                    words, v);
}

static orr_code layer_error(
    const lay_expander *x, size_t i, orr_error *err, orr_str found, const char *expected)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(lay_layer_where(x->t, i, 1)),
                    "layer %zu: '%.*s' is not %s", i, (int)found.len, found.ptr, expected);
}

static orr_code size_error(const lay_expander *x, size_t i, orr_error *err, uint64_t bytes)
{
    const orr_where at = lay_layer_where(x->t, i, 1);
    if (x->rules->reads_loosely)
        return orr_fail(err, ORR_EINPUT, &at, "layer %zu: %" PRIi64 " bytes: expected a size", i,
                        (int64_t)bytes);
    return orr_fail(err, ORR_EINPUT, &at, "layer %zu: %" PRIu64 " bytes are too many", i, bytes);
}

/* Tables from files are valid; a table built by a program may contain anything. */
static orr_code check_words(const lay_expander *x, size_t i, orr_error *err)
{
    const orr_layer *l = &x->t->layers[i];
    const orr_layer_pass *const passes[] = {&l->forward, &l->input_grad, &l->weight_grad};
    const bool is_own = x->t->policy == ORR_POLICY_HYBRID_CUSTOMIZED;
    /* The attribute of today has a sign, that of the earlier converters had none. */
    const bool has_sign = x->rules->reads_loosely && !x->is_early;
    lay_comm comm;
    for (size_t k = 0; k < ORR__PASSES; k++) {
        if (!x->rules->has_all_collectives && !lay_comm_find(passes[k]->comm, &comm))
            return layer_error(x, i, err, passes[k]->comm, "a collective");
        if (passes[k]->bytes > INT64_MAX && !has_sign)
            return size_error(x, i, err, passes[k]->bytes);
    }
    if (is_own && !lay_policy_is_for_layers(l->policy))
        return layer_error(x, i, err, orr_str_of(orr_policy_name(l->policy)),
                           "the policy of a layer");
    return ORR_OK;
}

/* If the announced number of layers is too small, the converter makes a layer wait for a collective
 * that it has left out; the reference also fails there. */
static orr_code check_declared(const lay_expander *x, orr_error *err)
{
    const bool matters = x->rules->believes_count && x->t->policy >= ORR_POLICY_MODEL &&
                         x->t->policy <= ORR_POLICY_HYBRID_MODEL_DATA;
    if (!matters || x->opt->passes == 0 || x->declared < 1 || x->declared >= (int64_t)x->count)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(lay_where(x->t, x->t->count_line, 1)),
                    "the number of layers is %" PRIi64 ", but %zu follow", x->declared, x->count);
}

static bool is_dlrm(const lay_expander *x)
{
    return x->t->policy == ORR_POLICY_HYBRID_DLRM ||
           x->t->policy == ORR_POLICY_HYBRID_DLRM_ENHANCED;
}

/* The converter accepts an index past the layers or below -1, which has no effect; with no passes
 * at all it accepts anything. */
static orr_code check_dlrm(const lay_expander *x, orr_error *err)
{
    const int64_t last = x->t->args.last_bottom, n = (int64_t)x->count;
    const bool is_outside = last < -1 || last >= n;
    if (!is_dlrm(x) || n == 0 || x->opt->passes == 0 || (x->rules->reads_loosely && is_outside))
        return ORR_OK;
    if (is_outside || last < 1)
        return orr_fail(err, ORR_EINPUT,
                        ORR_AT(lay_where(x->t, x->t->header_line, x->t->args_column)),
                        "the last bottom layer is %" PRIi64 "; it must be one of the layers 1 to "
                        "%" PRIi64,
                        last, n - 1);
    if (orr_str_is(x->t->layers[0].forward.comm, "ALLTOALL"))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(lay_layer_where(x->t, 0, x->t->first_comm_column)),
                    "the forward collective of layer 0 is '%.*s'; %s needs ALLTOALL there",
                    (int)x->t->layers[0].forward.comm.len, x->t->layers[0].forward.comm.ptr,
                    orr_policy_name(x->t->policy));
}

/* ---- transformers ---- */

/* The number of dimensions in a model-parallel group.  ASTRA-sim 1.0 splits a dimension if the
 * group ends in the middle of it; a trace cannot, so the user must. */
static orr_code find_boundary(lay_expander *x, orr_error *err)
{
    const uint32_t group = x->t->args.model_group, dims = x->opt->dims;
    const uint32_t whole[] = {x->opt->ranks};
    const uint32_t *sizes = x->opt->dim_sizes ? x->opt->dim_sizes : whole;
    uint64_t ranks = 1;
    x->inner_dims = 0;
    if (dims > 1 && !x->opt->dim_sizes)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s needs the sizes of the dimensions (such as 8x4), not their number",
                        orr_policy_name(x->t->policy));
    while (ranks < group && x->inner_dims < dims)
        ranks *= sizes[x->inner_dims++];
    if (dims == 0 || ranks == group)
        return ORR_OK;
    return args_error(x, err,
                      "the model-parallel group of %" PRIu64
                      " ranks ends in the middle of a dimension; split that dimension in two",
                      group);
}

static orr_code check_group(lay_expander *x, orr_error *err)
{
    const uint32_t group = x->t->args.model_group, ranks = x->opt->ranks;
    if (!is_transformer(x->t))
        return ORR_OK;
    if (group == 0)
        return args_error(x, err, "a model-parallel group has %" PRIu64 " ranks", 0);
    if (ranks % group)
        return orr_fail(
            err, ORR_EINPUT, ORR_AT(lay_where(x->t, x->t->header_line, x->t->args_column)),
            "model-parallel groups of %" PRIu32 " do not make up %" PRIu32 " ranks", group, ranks);
    x->is_inner_alone = group == 1;
    x->is_outer_alone = group == ranks;
    return find_boundary(x, err);
}

/* For each layer that starts a recomputation: where it begins.  marks: bit 0 checkpoint, bit 1
 * starts one. */
static orr_code find_restart(
    const lay_expander *x, const uint8_t *marks, uint32_t i, uint32_t *out, orr_error *err)
{
    uint32_t k = i;
    if (marks[i] & 1)
        return args_error(x, err, "layer %" PRIu64 " is a checkpoint and starts a recomputation",
                          i);
    while (k > 0 && !(marks[k] & 1)) {
        k--;
        if (marks[k] & 2 && !(marks[k] & 1))
            return args_error(x, err, "layer %" PRIu64 " starts a recomputation inside another one",
                              k);
    }
    if (!(marks[k] & 1))
        return args_error(x, err, "no checkpoint comes before layer %" PRIu64, i);
    *out = k;
    return ORR_OK;
}

static orr_code mark(const lay_expander *x,
                     uint8_t *marks,
                     const uint32_t *list,
                     size_t count,
                     uint8_t bit,
                     orr_error *err)
{
    for (size_t k = 0; k < count; k++) {
        if (list[k] >= x->count)
            return args_error(x, err, "there is no layer %" PRIu64 "; the first is 0", list[k]);
        marks[list[k]] |= bit;
    }
    return ORR_OK;
}

static orr_code check_restarts(lay_expander *x, orr_arena *a, orr_error *err)
{
    const orr_policy_args *args = &x->t->args;
    if (x->t->policy != ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD)
        return ORR_OK;
    uint8_t *marks = orr_arena_new(a, x->count + 1, uint8_t);
    uint32_t *restart = orr_arena_new(a, x->count + 1, uint32_t);
    if (!marks || !restart)
        return orr_no_memory(err);
    orr_code code = mark(x, marks, args->checkpoints, args->checkpoint_count, 1, err);
    if (!code)
        code = mark(x, marks, args->initiates, args->initiate_count, 2, err);
    for (size_t i = 0; i < x->count && !code; i++) {
        restart[i] = (uint32_t)i;
        if (marks[i] & 2)
            code = find_restart(x, marks, (uint32_t)i, &restart[i], err);
    }
    x->restart = restart;
    return code;
}

/* Are policy, arguments, dimensions and ranks possible together?  Fills what x derives from
 * them. */
static orr_code check_all(lay_expander *x, orr_arena *a, orr_error *err)
{
    const uint32_t dims = x->opt->dims;
    x->count = x->t->count;
    x->declared = x->t->label ? x->t->declared_count : (int64_t)x->count;
    x->inner_dims = 1;
    x->is_outer_alone = dims == 1;
    orr_code code = check_options(x, err);
    if (!code)
        code = check_sizes(x, err);
    for (size_t i = 0; i < x->count && !code; i++)
        code = check_words(x, i, err);
    if (!code)
        code = check_declared(x, err);
    if (!code)
        code = check_dlrm(x, err);
    if (!code)
        code = check_group(x, err);
    return code ? code : check_restarts(x, a, err);
}

/* ---- traces ---- */

/* The converters name their schema and carry the whole input along; ours says what it was made from
 * as well. */
static void create_trace(lay_expander *x)
{
    char words[200];
    snprintf(words, sizeof words, "orrery: %s, %zu layers, %" PRIu32 " passes",
             orr_policy_name(x->t->policy), x->count, x->opt->passes);
    if (x->rules->has_bare_nodes)
        orr__put_text(&x->b, ORR__ATTR_SCHEMA,
                      orr_str_of(x->is_early ? "1.0.2-chakra.0.0.4" : "1.0.2-chakra.1.0.0"));
    else
        orr__put_text(&x->b, ORR__ATTR_GENERATOR, orr_str_of(words));
    if (x->rules->has_bare_nodes || x->t->label)
        orr__put_text(&x->b, ORR__ATTR_INPUT_FILE, x->t->source);
    orr__build_trace(&x->b, x->rules->has_bare_nodes ? "" : "1.0.0");
}

static void expand_passes(lay_expander *x)
{
    const size_t bytes = x->count * sizeof *x->now;
    memset(x->now, 0xff, bytes);
    for (uint32_t pass = 0; pass < x->opt->passes && !x->b.code && x->count; pass++) {
        lay_layer_ids *old = x->before;
        x->before = x->now;
        x->now = old;
        memset(x->now, 0xff, bytes);
        lay_expand_pass(x);
    }
}

static orr_code make_trace(lay_expander *x, orr_arena *a, orr_error *err)
{
    x->now = orr_arena_new(a, x->count + 1, lay_layer_ids);
    x->before = orr_arena_new(a, x->count + 1, lay_layer_ids);
    if (!x->now || !x->before)
        return orr_no_memory(err);
    orr__build_open(&x->b, err);
    create_trace(x);
    x->b.next_id = 0;
    expand_passes(x);
    return orr__build_seal(&x->b, &x->trace);
}

static orr_code make_set(const lay_expander *x, orr_set **out, orr_error *err)
{
    const uint64_t step = x->rules->counts_ids_on ? orr_trace_columns(x->trace)->count : 0;
    uint32_t class_index;
    orr_set *set;
    orr_code code = orr_set_create(&set, err);
    if (code) {
        orr_trace_destroy(x->trace);
        return code;
    }
    code = orr_set_add_class(set, x->trace, NULL, 0, 0, &class_index, err);
    for (uint32_t rank = 0; rank < x->opt->ranks && !code; rank++)
        code = orr_set_add_rank(set, class_index, rank * step, err);
    if (code) {
        orr_set_close(set);
        return code;
    }
    *out = set;
    return ORR_OK;
}

orr_code orr_layers_set(const orr_layers *t,
                        const orr_layers_expand *opt,
                        orr_set **out,
                        orr_error *err)
{
    lay_expander x = {.t = t, .opt = opt, .rules = lay_rules(opt->rules)};
    orr_arena *a = orr_arena_create();
    *out = NULL;
    x.is_early = x.rules->has_early_form || (x.rules->has_bare_nodes && opt->dims);
    orr_code code = a ? check_all(&x, a, err) : orr_no_memory(err);
    if (!code)
        code = make_trace(&x, a, err);
    if (!code)
        code = make_set(&x, out, err);
    orr__build_fini(&x.b);
    orr_arena_destroy(a);
    return code;
}

/* ---- warnings ---- */

static bool splits_dims(orr_policy p)
{
    return p == ORR_POLICY_HYBRID_DATA_MODEL || p == ORR_POLICY_HYBRID_MODEL_DATA;
}

bool orr_layers_needs_dims(const orr_layers *t)
{
    if (t->policy != ORR_POLICY_HYBRID_CUSTOMIZED)
        return splits_dims(t->policy) || is_transformer(t);
    for (size_t i = 0; i < t->count; i++) {
        if (splits_dims(t->layers[i].policy))
            return true;
    }
    return false;
}

static bool says_something(const orr_layer_pass *p)
{
    lay_comm comm;
    return p->bytes > 0 && lay_comm_find(p->comm, &comm) && comm != ORR__COMM_NONE;
}

/* Which passes of layer i send something, as bits: 1 forward, 2 input gradient, 4 weight gradient.
 * The input gradient of layer 0, which is never needed, does not count. */
static unsigned sending_passes(const orr_layers *t, size_t i)
{
    const orr_policy p =
        t->policy == ORR_POLICY_HYBRID_CUSTOMIZED ? t->layers[i].policy : t->policy;
    switch (p) {
    case ORR_POLICY_MICRO:
    case ORR_POLICY_DATA:
        return 4;
    case ORR_POLICY_MODEL:
        return 3;
    case ORR_POLICY_DISTRIBUTED_INFERENCE:
        return 1;
    case ORR_POLICY_HYBRID_DLRM:
    case ORR_POLICY_HYBRID_DLRM_ENHANCED:
        return 4 | (orr_str_is(t->layers[i].forward.comm, "ALLTOALL") ? 1 : 0) | (i == 0 ? 2 : 0);
    default:
        return 7;
    }
}

size_t orr_layers_idle(const orr_layers *t)
{
    size_t idle = 0;
    for (size_t i = 0; i < t->count; i++) {
        const orr_layer *l = &t->layers[i];
        const unsigned sends = sending_passes(t, i);
        idle += !(sends & 1) && says_something(&l->forward);
        idle += !(sends & 2) && says_something(&l->input_grad);
        idle += !(sends & 4) && says_something(&l->weight_grad);
    }
    return idle;
}
