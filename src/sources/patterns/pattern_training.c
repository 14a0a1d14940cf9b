/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_training.c - training steps: three layers, the three kinds of parallelism, a realistic data-parallel
 * step.
 *
 * Words in node names, as the first generator has them: FWD forward, WG gradient of the weights, IG gradient
 * of the inputs.  Invariant: a node's parents are added before it, so every trace is in topological order. */
#include "patterns_impl.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t comp_layer(
    orr_gen *g, const char *what, uint32_t layer, uint64_t runtime_us, pat_after after)
{
    char name[PAT_NAME_MAX];
    snprintf(name, sizeof name, "COMP_NODE_%s_%u", what, layer);
    return pat_comp(g, name, runtime_us, after);
}

static uint64_t coll_layer(orr_gen *g,
                           const char *what,
                           uint32_t layer,
                           orr_collective kind,
                           uint64_t size,
                           pat_after after)
{
    char name[PAT_NAME_MAX];
    snprintf(name, sizeof name, "COMM_COLL_NODE_%s_%u", what, layer);
    return pat_collective(g, name, kind, size, after);
}

/* ---- three layers ---- */

static uint64_t three_forward(orr_gen *g)
{
    const uint64_t t = g->opt->runtime_us;
    const uint64_t f0 = comp_layer(g, "FWD", 0, t, NOTHING);
    const uint64_t f1 = comp_layer(g, "FWD", 1, t, AFTER(f0));
    return comp_layer(g, "FWD", 2, t, AFTER(f1));
}

static uint64_t three_all_reduce(orr_gen *g, uint32_t layer, uint64_t after)
{
    return coll_layer(g, "BWD_ALL_REDUCE", layer, ORR_COLL_ALL_REDUCE, g->opt->comm_size,
                      AFTER(after));
}

/* Gradients travel while the next layer is computed. */
void pat_build_three_layers(orr_gen *g)
{
    const uint64_t t = g->opt->runtime_us;
    uint64_t before = three_forward(g);
    for (uint32_t layer = 2; layer > 0; layer--) {
        const uint64_t wg = comp_layer(g, "BWD_WG", layer, t, AFTER(before));
        before = comp_layer(g, "BWD_IG", layer, t, AFTER(wg));
        three_all_reduce(g, layer, wg);
    }
    three_all_reduce(g, 0, comp_layer(g, "BWD_WG", 0, t, AFTER(before)));
}

/* Everything waits for everything before it. */
void pat_build_three_layers_in_sequence(orr_gen *g)
{
    const uint64_t t = g->opt->runtime_us;
    uint64_t before = three_forward(g);
    for (uint32_t layer = 2; layer > 0; layer--) {
        const uint64_t wg = comp_layer(g, "BWD_WG", layer, t, AFTER(before));
        const uint64_t comm = three_all_reduce(g, layer, wg);
        before = comp_layer(g, "BWD_IG", layer, t, AFTER(comm));
    }
    three_all_reduce(g, 0, comp_layer(g, "BWD_WG", 0, t, AFTER(before)));
}

/* ---- one network, three ways to share it out (chakra.md 5) ---- */

/* Each layer multiplies m x k by k x n, two bytes an element, at FLOPS operations per unit of time. */
enum { M = 512, K = 512, N = 512, ELEMENT = 2, FLOPS = 2 * 512 * 512 };

/* Numbers of layers and pieces are small: orr_pattern_trace has seen to it. */
static uint32_t layer_count(const orr_gen *g)
{
    return g->opt->layers ? (uint32_t)g->opt->layers : g->opt->ranks;
}

/* Every rank has all layers and its share of the batch. */
void pat_build_compare_data(orr_gen *g)
{
    const uint32_t layers = layer_count(g);
    const uint64_t t = 2 * (uint64_t)(M / g->opt->ranks) * K * N / FLOPS;
    uint64_t before = 0;
    for (uint32_t i = 0; i < layers; i++)
        before = comp_layer(g, "FWD", i, t, i ? AFTER(before) : NOTHING);
    for (uint32_t i = layers; i-- > 0;) {
        const uint64_t wg = comp_layer(g, "BWD_WG", i, t, AFTER(before));
        coll_layer(g, "BWD_WG_ALL_REDUCE", i, ORR_COLL_ALL_REDUCE, N * K * ELEMENT, AFTER(wg));
        if (i > 0)
            before = comp_layer(g, "BWD_IG", i, t, AFTER(wg));
    }
}

/* Every rank has its share of each layer. */
void pat_build_compare_model(orr_gen *g)
{
    const uint32_t layers = layer_count(g);
    const uint64_t share = N / g->opt->ranks;
    const uint64_t t = 2 * (uint64_t)M * K * share / FLOPS;
    uint64_t wg = 0, comm = 0;
    for (uint32_t i = 0; i < layers; i++) {
        const uint64_t fwd = comp_layer(g, "FWD", i, t, i ? AFTER(comm) : NOTHING);
        comm = coll_layer(g, "FWD_ALL_GATHER", i, ORR_COLL_ALL_GATHER, M * share * ELEMENT,
                          AFTER(fwd));
    }
    for (uint32_t i = layers; i-- > 0;) {
        const bool is_first = i == layers - 1;
        const uint64_t ig = comp_layer(g, "BWD_IG", i, t, is_first ? AFTER(comm) : AFTER(wg, comm));
        wg = comp_layer(g, "BWD_WG", i, t, AFTER(ig));
        comm = coll_layer(g, "BWD_IG", i, ORR_COLL_ALL_REDUCE, M * K * ELEMENT, AFTER(ig));
    }
}

/* One rank of the pipeline, and the nodes the next ones come after. */
typedef struct stage {
    orr_gen *g;
    bool is_first, is_last;
    uint64_t runtime_us, forward_size, backward_size;
    uint64_t comp, send, recv, wg;
} stage;

static uint64_t stage_comp(stage *s, uint32_t mb, const char *what, pat_after after)
{
    char name[PAT_NAME_MAX];
    snprintf(name, sizeof name, "COMP_NODE_MB_%u_%s", mb, what);
    return pat_comp(s->g, name, s->runtime_us, after);
}

static uint64_t stage_message(
    stage *s, orr_node_type type, bool is_forward, uint32_t mb, const char *what, pat_after after)
{
    char name[PAT_NAME_MAX];
    const uint32_t rank = s->g->rank;
    const bool is_send = type == ORR_NODE_COMM_SEND;
    const uint32_t peer = is_forward == is_send ? rank + 1 : rank - 1;
    const uint32_t src = is_send ? rank : peer, dst = is_send ? peer : rank;
    const uint32_t tag =
        (src & 0x3ff) << 22 | (dst & 0x3ff) << 12 | (mb & 0x3ff) << 2 | (is_forward ? 1 : 0);
    snprintf(name, sizeof name, "%s_MB_%u_%s", orr_node_type_name(type), mb, what);
    const pat_transfer m = {.type = type,
                            .name = name,
                            .src = src,
                            .dst = dst,
                            .tag = tag,
                            .size = is_forward ? s->forward_size : s->backward_size};
    return pat_message(s->g, &m, after);
}

static void stage_forward(stage *s, uint32_t mb)
{
    if (!s->is_first)
        s->recv =
            stage_message(s, ORR_NODE_COMM_RECV, true, mb, "FWD", mb ? AFTER(s->recv) : NOTHING);
    const uint64_t before = s->is_first ? s->comp : s->recv;
    const bool is_root = s->is_first && mb == 0;
    s->comp = stage_comp(s, mb, s->is_last ? "FWD_COMP" : "FWD", is_root ? NOTHING : AFTER(before));
    if (!s->is_last)
        s->send = stage_message(s, ORR_NODE_COMM_SEND, true, mb, "FWD", AFTER(s->comp));
}

/* The first stage has nobody to send a gradient of its inputs to, so it has none to compute. */
static void stage_backward(stage *s, uint32_t mb)
{
    uint64_t before = mb ? s->wg : s->comp;
    if (!s->is_last)
        before = s->recv =
            stage_message(s, ORR_NODE_COMM_RECV, false, mb, s->is_first ? "BWD" : "BWD_IG",
                          mb ? AFTER(s->recv) : AFTER(s->send));
    if (s->is_first) {
        s->wg = stage_comp(s, mb, "BWD_WG", AFTER(before));
        return;
    }
    const uint64_t ig = stage_comp(s, mb, "BWD_IG", AFTER(before));
    s->wg = stage_comp(s, mb, "BWD_WG", AFTER(ig));
    stage_message(s, ORR_NODE_COMM_SEND, false, mb, "BWD_IG", AFTER(ig));
}

/* Every rank has one stage; the batch comes in pieces: all forward, then all backward. */
void pat_build_compare_pipeline(orr_gen *g)
{
    const uint32_t pieces = (uint32_t)g->opt->microbatches;
    const uint64_t rows = M / pieces;
    stage s = {.g = g,
               .is_first = g->rank == 0,
               .is_last = g->rank > 0 && g->rank == g->opt->ranks - 1,
               .runtime_us = 2 * rows * K * N / FLOPS,
               .forward_size = rows * N * ELEMENT,
               .backward_size = rows * K * ELEMENT};
    for (uint32_t mb = 0; mb < pieces; mb++)
        stage_forward(&s, mb);
    for (uint32_t mb = 0; mb < pieces; mb++)
        stage_backward(&s, mb);
}

/* ---- a realistic data-parallel step ---- */

enum {
    COMPUTE_STREAM = 7,
    COMM_STREAM = 20,
    FLOPS_PER_US = 400000000, /* 400 TFLOP/s, what a good kernel reaches on a current device */
    SMALL_SHARE = 8           /* loss and optimizer take an eighth of a layer's forward time */
};

static uint64_t step_comp(orr_gen *g, const char *name, uint64_t runtime_us, pat_after after)
{
    orr__builder *b = pat_begin(g, ORR_NODE_COMP, name, after);
    b->node.duration_us = runtime_us;
    orr__put_on_device(b);
    orr__put_work(b, runtime_us * FLOPS_PER_US, g->opt->tensor_size);
    orr__put_int(b, ORR__ATTR_STREAM, COMPUTE_STREAM);
    return orr__build_add(b);
}

static uint64_t step_layer(
    orr_gen *g, uint32_t layer, const char *what, uint64_t runtime_us, pat_after after)
{
    char name[PAT_NAME_MAX];
    snprintf(name, sizeof name, "layer%u/%s", layer, what);
    return step_comp(g, name, runtime_us, after);
}

/* Collectives of one group run in order on their own stream: that is a control dependency. */
static uint64_t step_all_reduce(
    orr_gen *g, uint32_t bucket, uint32_t layers, uint64_t previous, pat_after after)
{
    char name[PAT_NAME_MAX];
    snprintf(name, sizeof name, "all_reduce/bucket%u", bucket);
    orr__builder *b = pat_begin(g, ORR_NODE_COMM_COLL, name, after);
    if (bucket > 0)
        orr__build_after_ctrl(b, previous);
    orr__put_on_device(b);
    orr__put_collective(b, ORR_COLL_ALL_REDUCE, layers * g->opt->comm_size);
    orr__put_group(b, 0);
    orr__put_int(b, ORR__ATTR_STREAM, COMM_STREAM);
    return orr__build_add(b);
}

static uint64_t step_load(orr_gen *g)
{
    orr__builder *b = pat_begin(g, ORR_NODE_MEM_LOAD, "batch/load", NOTHING);
    orr__put_on_device(b);
    orr__put_uint(b, ORR__ATTR_TENSOR_SIZE, g->opt->tensor_size);
    return orr__build_add(b);
}

/* What is multiplied must stay a number that an int64 attribute can hold. */
static bool step_fits(orr_gen *g)
{
    int64_t product;
    if (__builtin_mul_overflow(g->opt->runtime_us, FLOPS_PER_US, &product))
        g->b.code =
            orr_fail(g->b.err, ORR_EUSAGE, NULL, "a run time of %" PRIu64 " us a layer is too long",
                     g->opt->runtime_us);
    else if (__builtin_mul_overflow(g->opt->comm_size, g->opt->bucket, &product))
        g->b.code = orr_fail(g->b.err, ORR_EUSAGE, NULL,
                             "gradients of %" PRIu64 " bytes a layer, %" PRIu64
                             " layers at a time, are too large",
                             g->opt->comm_size, g->opt->bucket);
    return !g->b.code;
}

/* Load a batch; forward; loss; backward, with an all-reduce as soon as the gradients of `bucket` layers are
 * there; the optimizer on each bucket as soon as its sum is. */
void pat_build_data_parallel(orr_gen *g)
{
    const uint64_t t = g->opt->runtime_us;
    const uint32_t layers = layer_count(g);
    if (!step_fits(g))
        return;
    uint64_t before = step_load(g), comm = 0;
    uint32_t bucket = 0, waiting = 0;
    for (uint32_t i = 0; i < layers; i++)
        before = step_layer(g, i, "forward", t, AFTER(before));
    before = step_comp(g, "loss", t / SMALL_SHARE, AFTER(before));
    for (uint32_t i = layers; i-- > 0;) {
        const uint64_t wg = step_layer(g, i, "backward_weight", t, AFTER(before));
        if (i > 0)
            before = step_layer(g, i, "backward_input", t, AFTER(wg));
        if (++waiting < g->opt->bucket && i > 0)
            continue;
        comm = step_all_reduce(g, bucket, waiting, comm, AFTER(wg));
        char name[PAT_NAME_MAX];
        snprintf(name, sizeof name, "optimizer/bucket%u", bucket++);
        step_comp(g, name, t / SMALL_SHARE, AFTER(comm));
        waiting = 0;
    }
}
