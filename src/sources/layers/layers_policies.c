/* SPDX-License-Identifier: Apache-2.0 */
/* layers_policies.c - what each policy makes of one pass through the network: the nodes, in order, and who waits
 * for whom.
 *
 * The policies that chakra_converter knows are its graphs (chakra.md 4.3); the others are the training loops of
 * ASTRA-sim 1.0, in which the compute nodes of a rank form a chain and a collective is waited for where its
 * result is used.  docs/format/text.md draws them.  Invariant: a node's parents are added before it. */
#include "layers_impl.h"

#include "base/text/text.h"

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

static bool is_transformer(const lay_expander *x)
{
    return x->t->policy == ORR_POLICY_HYBRID_TRANSFORMER ||
           x->t->policy == ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD;
}

/* With transformers layer 0 too has a collective of its input gradients: then the next pass waits for it. */
static void hybrid_forward(lay_expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        lay_after d = {0};
        lay_wait_for(&d, x->before[i].comm[ORR__WG]);
        if (i > 0)
            lay_wait_for(&d, x->now[i - 1].comm[ORR__FWD]);
        else if (is_transformer(x) && x->before[0].comm[ORR__IG] != x->before[0].comp[ORR__IG])
            lay_wait_for(&d, x->before[0].comm[ORR__IG]);
        lay_layer_comp(x, i, ORR__FWD, &d);
        lay_layer_comm(x, i, ORR__FWD);
    }
}

/* What the backward pass of layer i comes after.  The weight gradient of the layer above follows its input
 * gradient, so the latter need not be named when nothing was sent. */
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

/* Nobody needs the gradient of the first layer's input; the converter finds that layer by the number of layers
 * that the file announces, right or wrong. */
static bool sends_input_grad(const lay_expander *x, size_t i)
{
    if (x->rules->believes_count)
        return (int64_t)(x->count - i) != x->declared;
    return i > 0 || is_transformer(x);
}

/* Run forward again from the nearest checkpoint to the layer below i. */
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

/* Layer 0 is the embedding; its all-to-all runs beside the bottom network, whose last layer waits for it. */
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

void lay_expand_pass(lay_expander *x)
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
