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

static void pass_micro(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++)
        orr__layer_comm_after(x, i, ORR__WG, &(orr__after){0});
}

static void pass_data(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        orr__after d = {0};
        if (i > 0)
            orr__wait_for(&d, x->now[i - 1].comp[ORR__FWD]);
        orr__wait_for(&d, x->before[i].comm[ORR__WG]);
        orr__layer_comp(x, i, ORR__FWD, &d);
    }
    for (size_t i = x->count; i-- > 0;) {
        const bool is_last = i == x->count - 1;
        orr__after d = {0};
        orr__wait_for(&d, is_last ? x->now[i].comp[ORR__FWD] : x->now[i + 1].comp[ORR__IG]);
        const uint64_t wg = orr__layer_comp(x, i, ORR__WG, &d);
        orr__layer_comm(x, i, ORR__WG);
        if (i > 0)
            orr__layer_comp(x, i, ORR__IG, &(orr__after){{wg}, 1});
    }
}

/* Forward only; a pass begins when the one before is through. */
static void pass_inference(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        orr__after d = {0};
        orr__wait_for(&d, i > 0 ? x->now[i - 1].comm[ORR__FWD]
                                : x->before[x->count - 1].comm[ORR__FWD]);
        orr__layer_comp(x, i, ORR__FWD, &d);
        orr__layer_comm(x, i, ORR__FWD);
    }
}

/* ---- model and hybrids ---- */

static void model_forward(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        orr__after d = {0};
        if (i > 0)
            orr__wait_for(&d, x->now[i - 1].comm[ORR__FWD]);
        orr__wait_for(&d, x->before[i].comp[ORR__WG]);
        orr__layer_comp(x, i, ORR__FWD, &d);
        orr__layer_comm(x, i, ORR__FWD);
    }
}

static bool is_transformer(const orr__expander *x)
{
    return x->t->policy == ORR_POLICY_HYBRID_TRANSFORMER ||
           x->t->policy == ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD;
}

/* With transformers layer 0 too has a collective of its input gradients: then the next pass waits for it. */
static void hybrid_forward(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        orr__after d = {0};
        orr__wait_for(&d, x->before[i].comm[ORR__WG]);
        if (i > 0)
            orr__wait_for(&d, x->now[i - 1].comm[ORR__FWD]);
        else if (is_transformer(x) && x->before[0].comm[ORR__IG] != x->before[0].comp[ORR__IG])
            orr__wait_for(&d, x->before[0].comm[ORR__IG]);
        orr__layer_comp(x, i, ORR__FWD, &d);
        orr__layer_comm(x, i, ORR__FWD);
    }
}

/* What the backward pass of layer i comes after.  The weight gradient of the layer above follows its input
 * gradient, so the latter need not be named when nothing was sent. */
static orr__after above(const orr__expander *x, size_t i)
{
    orr__after d = {0};
    if (i == x->count - 1) {
        orr__wait_for(&d, x->now[i].comm[ORR__FWD]);
        return d;
    }
    const orr__layer_ids *up = &x->now[i + 1];
    orr__wait_for(&d, up->comp[ORR__WG]);
    if (up->comm[ORR__IG] != up->comp[ORR__IG])
        orr__wait_for(&d, up->comm[ORR__IG]);
    return d;
}

/* Nobody needs the gradient of the first layer's input; the converter finds that layer by the number of layers
 * that the file announces, right or wrong. */
static bool sends_input_grad(const orr__expander *x, size_t i)
{
    if (x->rules->believes_count)
        return (int64_t)(x->count - i) != x->declared;
    return i > 0 || is_transformer(x);
}

/* Run forward again from the nearest checkpoint to the layer below i. */
static void run_again(orr__expander *x, size_t i, orr__after *d)
{
    for (size_t j = x->restart ? x->restart[i] : i; j < i; j++)
        *d = (orr__after){{orr__layer_again(x, j, d)}, 1};
}

static void backward(orr__expander *x, bool has_wg_comm)
{
    for (size_t i = x->count; i-- > 0;) {
        orr__after d = above(x, i);
        run_again(x, i, &d);
        const uint64_t ig = orr__layer_comp(x, i, ORR__IG, &d);
        if (sends_input_grad(x, i))
            orr__layer_comm(x, i, ORR__IG);
        orr__layer_comp(x, i, ORR__WG, &(orr__after){{ig}, 1});
        if (has_wg_comm)
            orr__layer_comm(x, i, ORR__WG);
    }
}

static void pass_model(orr__expander *x)
{
    model_forward(x);
    backward(x, false);
}

static void pass_hybrid(orr__expander *x)
{
    hybrid_forward(x);
    backward(x, true);
}

/* ---- DLRM ---- */

/* Layer 0 is the embedding; its all-to-all runs beside the bottom network, whose last layer waits for it. */
static void dlrm_forward(orr__expander *x)
{
    for (size_t i = 0; i < x->count; i++) {
        orr__after d = {0};
        orr__wait_for(&d, x->before[i].comm[ORR__WG]);
        if (i > 0)
            orr__wait_for(&d, x->now[i - 1].comp[ORR__FWD]);
        if ((int64_t)i == x->t->args.last_bottom)
            orr__wait_for(&d, x->now[0].comm[ORR__FWD]);
        orr__layer_comp(x, i, ORR__FWD, &d);
        if (orr_str_is(x->t->layers[i].forward.comm, "ALLTOALL"))
            orr__layer_comm(x, i, ORR__FWD);
    }
}

static void dlrm_backward(orr__expander *x)
{
    uint64_t embedding = ORR__NO_ID; /* its gradients, when they are sent */
    for (size_t i = x->count; i-- > 0;) {
        const bool is_last = i == x->count - 1;
        orr__after d = {0};
        orr__wait_for(&d, is_last ? x->now[i].comp[ORR__FWD] : x->now[i + 1].comp[ORR__IG]);
        if (i == 0)
            orr__wait_for(&d, embedding);
        const uint64_t wg = orr__layer_comp(x, i, ORR__WG, &d);
        if (!orr_str_is(x->t->layers[i].weight_grad.comm, "NONE"))
            orr__layer_comm(x, i, ORR__WG);
        if (i == 0)
            return;
        const uint64_t ig = orr__layer_comp(x, i, ORR__IG, &(orr__after){{wg}, 1});
        if ((int64_t)i - 1 == x->t->args.last_bottom)
            embedding = orr__layer_comm_after(x, 0, ORR__IG, &(orr__after){{ig}, 1});
    }
}

static void pass_dlrm(orr__expander *x)
{
    dlrm_forward(x);
    dlrm_backward(x);
}

void orr__expand_pass(orr__expander *x)
{
    static void (*const passes[ORR_POLICY_COUNT])(orr__expander *) = {
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
