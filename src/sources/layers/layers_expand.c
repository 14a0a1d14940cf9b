/* SPDX-License-Identifier: Apache-2.0 */
/* layers_expand.c - a table of layers, so many ranks and passes: the traces.
 *
 * All ranks of a table do the same, so one trace is made and the others are like it; under the old converter's
 * rules their ids count on, which is a shift.  Everything that can be wrong is found before the first node.
 * Cost: linear in layers times passes, whatever the number of ranks. */
#include "layers_impl.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

/* Nodes that a layer can have in a pass: three compute nodes, three pairs of collectives with an update each,
 * and forward once more. */
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
    const orr_where at = lay_where(x->t, x->t->header_line, x->t->args_column);
    return orr_fail(err, ORR_EINPUT, &at, words, v);
}

static orr_code layer_error(
    const lay_expander *x, size_t i, orr_error *err, orr_str found, const char *expected)
{
    const orr_where at = lay_layer_where(x->t, i, 1);
    return orr_fail(err, ORR_EINPUT, &at, "layer %zu: '%.*s' is not %s", i, (int)found.len,
                    found.ptr, expected);
}

static orr_code size_error(const lay_expander *x, size_t i, orr_error *err, uint64_t bytes)
{
    const orr_where at = lay_layer_where(x->t, i, 1);
    if (x->rules->reads_loosely)
        return orr_fail(err, ORR_EINPUT, &at, "layer %zu: %" PRIi64 " bytes: a size was expected",
                        i, (int64_t)bytes);
    return orr_fail(err, ORR_EINPUT, &at, "layer %zu: %" PRIu64 " bytes are too many", i, bytes);
}

/* What was read is right already; a table that was made may say anything. */
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

/* The converter lets a layer wait for a collective that it has left out when the announced number of layers is
 * too small; the reference ends there with an error too. */
static orr_code check_declared(const lay_expander *x, orr_error *err)
{
    const orr_where at = lay_where(x->t, x->t->count_line, 1);
    const bool matters = x->rules->believes_count && x->t->policy >= ORR_POLICY_MODEL &&
                         x->t->policy <= ORR_POLICY_HYBRID_MODEL_DATA;
    if (!matters || x->opt->passes == 0 || x->declared < 1 || x->declared >= (int64_t)x->count)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &at, "the number of layers is %" PRIi64 ", but %zu follow",
                    x->declared, x->count);
}

static bool is_dlrm(const lay_expander *x)
{
    return x->t->policy == ORR_POLICY_HYBRID_DLRM ||
           x->t->policy == ORR_POLICY_HYBRID_DLRM_ENHANCED;
}

/* The converter has no use for an index past the layers or below -1, and does not mind; with no passes at all it
 * minds nothing. */
static orr_code check_dlrm(const lay_expander *x, orr_error *err)
{
    const int64_t last = x->t->args.last_bottom, n = (int64_t)x->count;
    const bool is_outside = last < -1 || last >= n;
    if (!is_dlrm(x) || n == 0 || x->opt->passes == 0 || (x->rules->reads_loosely && is_outside))
        return ORR_OK;
    if (is_outside || last < 1) {
        const orr_where at = lay_where(x->t, x->t->header_line, x->t->args_column);
        return orr_fail(err, ORR_EINPUT, &at,
                        "the last bottom layer is %" PRIi64 "; it must be one of the layers 1 to "
                        "%" PRIi64,
                        last, n - 1);
    }
    if (orr_str_is(x->t->layers[0].forward.comm, "ALLTOALL"))
        return ORR_OK;
    const orr_where at = lay_layer_where(x->t, 0, x->t->first_comm_column);
    return orr_fail(err, ORR_EINPUT, &at,
                    "the forward collective of layer 0 is '%.*s'; %s needs ALLTOALL there",
                    (int)x->t->layers[0].forward.comm.len, x->t->layers[0].forward.comm.ptr,
                    orr_policy_name(x->t->policy));
}

/* ---- transformers ---- */

static bool is_transformer(const orr_layers *t)
{
    return t->policy == ORR_POLICY_HYBRID_TRANSFORMER ||
           t->policy == ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD;
}

/* How many dimensions make up a model-parallel group.  ASTRA-sim 1.0 splits a dimension that the group ends in
 * the middle of; a trace cannot, so the user must. */
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
    if (ranks % group) {
        const orr_where at = lay_where(x->t, x->t->header_line, x->t->args_column);
        return orr_fail(err, ORR_EINPUT, &at,
                        "model-parallel groups of %" PRIu32 " do not make up %" PRIu32 " ranks",
                        group, ranks);
    }
    x->is_inner_alone = group == 1;
    x->is_outer_alone = group == ranks;
    return find_boundary(x, err);
}

/* For each layer that starts a recomputation: where it begins.  marks: bit 0 checkpoint, bit 1 starts one. */
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

/* Are policy, arguments, dimensions and ranks possible together?  Fills what x derives from them. */
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

/* The converters name their schema and carry the whole input along; ours says what it was made from as well. */
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
        code = orr_set_add_like(set, class_index, rank * step, err);
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

/* ---- what a user may want to be told ---- */

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

/* Which passes of layer i send something, as bits: 1 forward, 2 input gradient, 4 weight gradient.  That nobody
 * needs the input gradient of layer 0 goes without saying. */
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
