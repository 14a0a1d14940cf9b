/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.c - the table of patterns, and the traces or trace sets made from its rows.
 *
 * A pattern is a name, a line of help, the options it uses, and a function that adds one rank's
 * nodes. Cost of a set: one trace if all ranks are equal, else one per rank. */
#include <orrery/lab/gen.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "trace/builder.h"
#include "trace/set_impl.h"

#include <inttypes.h>
#include <stdio.h>

struct orr_gen {
    const orr_pattern *pattern;
    const orr_gen_options *opt;
    uint32_t rank;
    orr__builder b;
};

typedef struct pat_after {
    const uint64_t *ids;
    size_t count;
} pat_after;

#define NOTHING ((pat_after){NULL, 0})
#define AFTER(...)                                \
    ((pat_after){(const uint64_t[]){__VA_ARGS__}, \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)})

enum { PAT_NAME_MAX = 64, PAT_DIMS_MAX = 64 };

typedef struct pat_transfer {
    orr_node_type type; /* COMM_SEND or COMM_RECV */
    const char *name;
    uint32_t src, dst, tag;
    uint64_t size;
} pat_transfer;

/* The nodes that patterns are made of, with the attributes each style gives them.
 *
 * Only this part distinguishes the styles (chakra.md 5); a pattern asks for "an all-reduce of 64
 * KiB" and gets it as the current generator, or one of its predecessors, would write it.
 *
 *     const uint64_t fwd = pat_comp(g, "FWD", 5, NOTHING);
 *     const uint64_t bwd = pat_comp(g, "BWD", 5, AFTER(fwd));
 *     pat_collective(g, "GRAD", ORR_COLL_ALL_REDUCE, 65536, AFTER(fwd, bwd));
 *
 * Ids count up from 0.  The first failure sticks and turns all later calls into no-ops, so a
 * pattern reads as a list of nodes; orr_pattern_trace checks once at the end. */

static bool is_eg(const orr_gen *g)
{
    return g->opt->style == ORR_GEN_EG;
}

/* Marks the node as running on the device.  The first generation had no such attribute. */
static void put_device(orr_gen *g)
{
    if (!is_eg(g))
        orr__put_on_device(&g->b);
}

static void put_comm_size(orr_gen *g, uint64_t size)
{
    static const orr_value_kind kind[] = {
        [ORR_GEN_CURRENT] = ORR_VALUE_INT64,
        [ORR_GEN_0_0_4] = ORR_VALUE_UINT64,
        [ORR_GEN_EG] = ORR_VALUE_UINT32,
    };
    orr__put_as(&g->b, ORR__ATTR_COMM_SIZE, kind[g->opt->style], (int64_t)size);
}

/* Begins a node, to be ended by orr__build_add. */
static orr__builder *pat_begin(orr_gen *g, orr_node_type type, const char *name, pat_after after)
{
    orr__build_node(&g->b, type, orr_str_of(name));
    orr__build_deps(&g->b, after.ids, after.count);
    return &g->b;
}

/* All return the new node's id. */
static uint64_t pat_invalid(orr_gen *g, pat_after after)
{
    return orr__build_add(pat_begin(g, ORR_NODE_INVALID, "INVALID_NODE", after));
}

static uint64_t pat_comp(orr_gen *g, const char *name, uint64_t runtime_us, pat_after after)
{
    pat_begin(g, ORR_NODE_COMP, name, after)->node.duration_us = runtime_us;
    put_device(g);
    return orr__build_add(&g->b);
}

/* A node that carries tensor_size: memory, or a send or receive without peer. */
static uint64_t pat_tensor(orr_gen *g, orr_node_type type)
{
    pat_begin(g, type, orr_node_type_name(type), NOTHING);
    put_device(g);
    orr__put_uint(&g->b, ORR__ATTR_TENSOR_SIZE, g->opt->tensor_size);
    return orr__build_add(&g->b);
}

/* All dimensions of the network take part.  The 0.0.4 generator writes the list even when it is
 * empty. */
static uint64_t pat_collective(
    orr_gen *g, const char *name, orr_collective kind, uint64_t size, pat_after after)
{
    orr_value dims[PAT_DIMS_MAX];
    orr__builder *b = pat_begin(g, ORR_NODE_COMM_COLL, name, after);
    put_device(g);
    orr__put_int(b, ORR__ATTR_COMM_TYPE, (int64_t)kind);
    put_comm_size(g, size);
    for (uint32_t i = 0; i < g->opt->dims; i++)
        dims[i].u = 1;
    if (g->opt->dims || g->opt->style == ORR_GEN_0_0_4)
        orr__put_list(b, ORR__ATTR_INVOLVED_DIM, dims, g->opt->dims);
    return orr__build_add(b);
}

/* Peers and tag are int32 because the C++ feeder reads that (chakra.md 6.1). */
static uint64_t pat_message(orr_gen *g, const pat_transfer *m, pat_after after)
{
    const orr_value_kind kind = is_eg(g) ? ORR_VALUE_UINT32 : ORR_VALUE_INT32;
    /* Tags of many ranks use all 32 bits; as int32 the same bits read as a negative number. */
    const int64_t tag = is_eg(g) ? (int64_t)m->tag : (int32_t)m->tag;
    orr__builder *b = pat_begin(g, m->type, m->name, after);
    put_device(g);
    orr__put_as(b, ORR__ATTR_COMM_SRC, kind, m->src);
    orr__put_as(b, ORR__ATTR_COMM_DST, kind, m->dst);
    put_comm_size(g, m->size);
    orr__put_as(b, ORR__ATTR_COMM_TAG, kind, tag);
    return orr__build_add(b);
}

/* The smallest traces: a node or two each, to test a reader or a simulator.
 *
 * Contents as in chakra.md 5; the bytes of the current ones are fixed by tests/golden. */

static const orr_value doubles[] = {{.d = 1.2345}, {.d = 2.3456}};
static const orr_value small[] = {{.u = 12345}, {.u = 23456}};
static const orr_value large[] = {{.u = 9876543210}, {.u = 1234567890}};
static const orr_value small_signed[] = {{.i = 12345}, {.i = -23456}};
static const orr_value large_signed[] = {{.i = 9876543210}, {.i = -1234567890}};
static const orr_value bools[] = {{.u = 1}, {.u = 0}, {.u = 1}, {.u = 0}, {.u = 1},
                                  {.u = 0}, {.u = 1}, {.u = 0}, {.u = 1}, {.u = 0}};
static const orr_value texts[] = {{.s = {"12345", 5}}, {.s = {"12346", 5}}, {.s = {"12347", 5}},
                                  {.s = {"12348", 5}}, {.s = {"12349", 5}}, {.s = {"12350", 5}},
                                  {.s = {"12351", 5}}, {.s = {"12352", 5}}, {.s = {"12353", 5}},
                                  {.s = {"12354", 5}}};

/* A value and a list of every kind an attribute can have. */
typedef struct kind_row {
    const char *name, *list_name;
    orr_value_kind kind;
    bool has_doc;
    orr_value value;
    const orr_value *items;
    size_t item_count;
} kind_row;

static const kind_row kinds[] = {
    {"double", "double_list", ORR_VALUE_DOUBLE, true, {.d = 1.2345}, doubles, 2},
    {"float", "float_list", ORR_VALUE_FLOAT, true, {.d = 1.2345}, doubles, 2},
    {"int32", "int32_list", ORR_VALUE_INT32, true, {.i = 12345}, small, 2},
    {"int64", "int64_list", ORR_VALUE_INT64, true, {.i = 9876543210}, large, 2},
    {"uint32", "uint32_list", ORR_VALUE_UINT32, true, {.u = 12345}, small, 2},
    {"uint64", "uint64_list", ORR_VALUE_UINT64, true, {.u = 9876543210}, large, 2},
    {"sint32", "sint32_list", ORR_VALUE_SINT32, true, {.i = -12345}, small_signed, 2},
    {"sint64", "sint64_list", ORR_VALUE_SINT64, true, {.i = -9876543210}, large_signed, 2},
    {"fixed32", "fixed32_list", ORR_VALUE_FIXED32, false, {.u = 12345}, small, 2},
    {"fixed64", "fixed64_list", ORR_VALUE_FIXED64, false, {.u = 9876543210}, large, 2},
    {"sfixed32", "sfixed32_list", ORR_VALUE_SFIXED32, false, {.i = -12345}, small_signed, 2},
    {"sfixed64", "sfixed64_list", ORR_VALUE_SFIXED64, false, {.i = -9876543210}, large_signed, 2},
    {"bool", "bool_list", ORR_VALUE_BOOL, true, {.u = 1}, bools, 10},
    {"string", "string_list", ORR_VALUE_STRING, true, {.s = {"12345", 5}}, texts, 10},
    {"bytes", "bytes_list", ORR_VALUE_BYTES, false, {.s = {"12345", 5}}, texts, 10},
};

enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(2 * KINDS <= ORR__BUILD_ATTRS, "one node has an attribute of every kind");

static void pat_build_metadata_all_types(orr_gen *g)
{
    orr__builder *b = pat_begin(g, ORR_NODE_METADATA, "METADATA_NODE", NOTHING);
    for (size_t i = 0; i < KINDS; i++) {
        const kind_row *k = &kinds[i];
        b->attrs[b->attr_count++] = (orr_attr){.name = orr_str_of(k->name),
                                               .doc = orr_str_of(k->has_doc ? k->name : ""),
                                               .kind = k->kind,
                                               .value = k->value};
        b->attrs[b->attr_count++] = (orr_attr){.name = orr_str_of(k->list_name),
                                               .kind = k->kind,
                                               .is_list = true,
                                               .items = k->items,
                                               .item_count = k->item_count};
    }
    orr__build_add(b);
}

static void pat_build_tensor(orr_gen *g)
{
    pat_tensor(g, (orr_node_type)g->pattern->what);
}

static uint64_t comp_node(orr_gen *g, pat_after after)
{
    return pat_comp(g, "COMP_NODE", g->opt->runtime_us, after);
}

static void pat_build_one_comp(orr_gen *g)
{
    comp_node(g, NOTHING);
}

/* The patterns, by file. */
static void pat_build_two_comp_independent(orr_gen *g)
{
    comp_node(g, NOTHING);
    comp_node(g, NOTHING);
}

static void pat_build_two_comp_dependent(orr_gen *g)
{
    const uint64_t first = comp_node(g, NOTHING);
    comp_node(g, AFTER(first));
}

/* The Python generators name the node after the collective, the first generation after its type. */
static void pat_build_collective(orr_gen *g)
{
    const orr_collective kind = (orr_collective)g->pattern->what;
    const char *name =
        g->opt->style == ORR_GEN_EG ? "COMM_COLL_NODE" : orr_collective_name((uint32_t)kind);
    pat_collective(g, name, kind, kind == ORR_COLL_BARRIER ? 0 : g->opt->comm_size, NOTHING);
}

static void pat_build_send_recv_ring(orr_gen *g)
{
    const uint32_t rank = g->rank, last = g->opt->ranks - 1;
    const pat_transfer send = {.type = ORR_NODE_COMM_SEND,
                               .name = "COMM_SEND_NODE",
                               .src = rank,
                               .dst = rank == last ? 0 : rank + 1,
                               .size = g->opt->comm_size};
    const pat_transfer recv = {.type = ORR_NODE_COMM_RECV,
                               .name = "COMM_RECV_NODE",
                               .src = rank == 0 ? last : rank - 1,
                               .dst = rank,
                               .size = g->opt->comm_size};
    pat_message(g, &send, NOTHING);
    pat_message(g, &recv, NOTHING);
}

static void pat_build_invalid_last(orr_gen *g)
{
    const uint64_t comp = comp_node(g, NOTHING);
    pat_invalid(g, AFTER(comp));
}

static void pat_build_invalid_between(orr_gen *g)
{
    const uint64_t comp = comp_node(g, NOTHING);
    const uint64_t invalid = pat_invalid(g, AFTER(comp));
    comp_node(g, AFTER(invalid));
}

static void pat_build_invalid_first(orr_gen *g)
{
    const uint64_t invalid = pat_invalid(g, NOTHING);
    comp_node(g, AFTER(invalid));
}

static void pat_build_invalid_fork(orr_gen *g)
{
    const uint64_t invalid = pat_invalid(g, NOTHING);
    comp_node(g, AFTER(invalid));
    comp_node(g, AFTER(invalid));
}

/* Training steps: three layers, the three kinds of parallelism, a realistic data-parallel step.
 *
 * Abbreviations in node names, as in the first generator: FWD forward, WG gradient of the weights,
 * IG gradient of the inputs.  Invariant: a node's parents are added before it, so every trace is in
 * topological order. */

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

/* Gradients are reduced while the next layer is computed. */
static void pat_build_three_layers(orr_gen *g)
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

/* Every node depends on the one before. */
static void pat_build_three_layers_in_sequence(orr_gen *g)
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

/* ---- one network, parallelised in three ways (chakra.md 5) ---- */

/* Each layer multiplies m x k by k x n, two bytes per element, at FLOPS operations per unit of
 * time. */
enum { M = 512, K = 512, N = 512, ELEMENT = 2, FLOPS = 2 * 512 * 512 };

/* orr_pattern_trace has bounded the numbers of layers and pieces. */
static uint32_t layer_count(const orr_gen *g)
{
    return g->opt->layers ? (uint32_t)g->opt->layers : g->opt->ranks;
}

/* Every rank has all layers and its share of the batch. */
static void pat_build_compare_data(orr_gen *g)
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
static void pat_build_compare_model(orr_gen *g)
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

/* One rank of the pipeline, and the nodes its next ones depend on. */
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

/* The first stage sends no input gradient, so it computes none. */
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

/* Every rank has one stage; the batch is split into micro-batches: all forward, then all
 * backward. */
static void pat_build_compare_pipeline(orr_gen *g)
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

/* Products must fit an int64 attribute. */
static bool step_fits(orr_gen *g)
{
    int64_t product;
    if (__builtin_mul_overflow(g->opt->runtime_us, FLOPS_PER_US, &product))
        g->b.code =
            orr_fail(g->b.err, ORR_EUSAGE, NULL,
                     "a run time of %" PRIu64 " us per layer is too long", g->opt->runtime_us);
    else if (__builtin_mul_overflow(g->opt->comm_size, g->opt->bucket, &product))
        g->b.code = orr_fail(g->b.err, ORR_EUSAGE, NULL,
                             "gradients of %" PRIu64 " bytes per layer, %" PRIu64
                             " layers at a time, are too large",
                             g->opt->comm_size, g->opt->bucket);
    return !g->b.code;
}

/* Load a batch; forward; loss; backward, with an all-reduce as soon as the gradients of `bucket`
 * layers are complete; the optimizer on each bucket as soon as its sum is. */
static void pat_build_data_parallel(orr_gen *g)
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

/* A large random graph in the shape of a real trace, for benchmarks.
 *
 * Layers of `width` nodes; each node comes after one to three different nodes of the layer before:
 *
 *     layer 0    o   o   o   o      no parents
 *                 \ / \ /|   |
 *     layer 1    o   o   o   o      16 in 20 compute, 2 collective, 1 load, 1 store
 *
 * Names, attributes (four or five) and sizes are like those of a PyTorch trace that went through
 * Chakra's converter: 131 bytes per node on average.  The numbers come from the seed alone
 * (splitmix64), so the same options give the same file everywhere.  Cost: O(nodes). */

enum { PARENTS_MAX = 3, KIND_COUNT = 20 };

static const char *const compute_names[] = {
    "aten::mm",
    "aten::convolution_backward",
    "aten::native_layer_norm_backward",
    "aten::_scaled_dot_product_flash_attention_backward",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nt",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16>",
};

static const char *const collective_names[] = {
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "ncclDevKernel_AllGather_RING_LL",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
    "ncclDevKernel_SendRecv",
};

static const uint8_t collective_kinds[] = {
    ORR_COLL_ALL_REDUCE,
    ORR_COLL_ALL_GATHER,
    ORR_COLL_REDUCE_SCATTER,
    ORR_COLL_ALL_TO_ALL,
};

/* A deck of node types to draw from. */
static const uint8_t types[KIND_COUNT] = {
    ORR_NODE_COMP, ORR_NODE_COMP,     ORR_NODE_COMP,      ORR_NODE_COMP,      ORR_NODE_COMP,
    ORR_NODE_COMP, ORR_NODE_COMP,     ORR_NODE_COMP,      ORR_NODE_COMP,      ORR_NODE_COMP,
    ORR_NODE_COMP, ORR_NODE_COMP,     ORR_NODE_COMP,      ORR_NODE_COMP,      ORR_NODE_COMP,
    ORR_NODE_COMP, ORR_NODE_MEM_LOAD, ORR_NODE_MEM_STORE, ORR_NODE_COMM_COLL, ORR_NODE_COMM_COLL,
};

#define PICK(table, bits) ((table)[(bits) % (sizeof(table) / sizeof *(table))])

/* Distinct nodes of the layer before, in ascending order: a duplicate parent would block some
 * readers forever (chakra.md 6.1).  Steps around a ring of `width` places never collide while their
 * sum is below `width`. */
static size_t pick_parents(uint64_t random, uint32_t width, uint64_t layer_at, uint64_t *out)
{
    const size_t want = 1 + random % PARENTS_MAX;
    const size_t count = want < width ? want : width;
    const uint32_t stride = width < PARENTS_MAX ? 1 : width / PARENTS_MAX;
    uint64_t place = (random >> 8) % width;
    for (size_t i = 0; i < count; i++) {
        const uint64_t id = layer_at + place;
        size_t at = i;
        for (; at > 0 && out[at - 1] > id; at--)
            out[at] = out[at - 1];
        out[at] = id;
        place = (place + 1 + (random >> (40 + 8 * i)) % stride) % width;
    }
    return count;
}

static uint64_t size_of(uint64_t random)
{
    return (uint64_t)4096 << random % 12;
}

static void put_compute(orr__builder *b, uint64_t random)
{
    orr__put_on_device(b);
    orr__put_work(b, size_of(random >> 16) * 1024, size_of(random >> 24));
    orr__put_int(b, ORR__ATTR_STREAM, 7);
}

static void put_memory(orr__builder *b, uint64_t random)
{
    orr__put_on_device(b);
    orr__put_uint(b, ORR__ATTR_TENSOR_SIZE, size_of(random >> 16));
    orr__put_uint(b, ORR__ATTR_TENSOR_LOC, 1 + (random >> 24) % 2);
    orr__put_int(b, ORR__ATTR_STREAM, 13);
}

static void put_collective(orr__builder *b, uint64_t random)
{
    orr__put_on_device(b);
    orr__put_collective(b, PICK(collective_kinds, random), size_of(random >> 16));
    orr__put_text(b, ORR__ATTR_PG_NAME, orr_str_of("0"));
    orr__put_int(b, ORR__ATTR_STREAM, 20);
}

static void add_node(orr_gen *g, uint64_t *state, pat_after after)
{
    const uint64_t shape = orr_splitmix64(state), values = orr_splitmix64(state);
    const orr_node_type type = PICK(types, shape >> 32);
    const char *name = type == ORR_NODE_COMM_COLL  ? PICK(collective_names, shape)
                       : type == ORR_NODE_COMP     ? PICK(compute_names, shape)
                       : type == ORR_NODE_MEM_LOAD ? "Memcpy HtoD (Pinned -> Device)"
                                                   : "Memcpy DtoH (Device -> Pinned)";
    orr__builder *b = pat_begin(g, type, name, after);
    b->node.duration_us = 1 + values % 1000;
    if (type == ORR_NODE_COMM_COLL)
        put_collective(b, shape);
    else if (type == ORR_NODE_COMP)
        put_compute(b, values);
    else
        put_memory(b, values);
    orr__build_add(b);
}

static void pat_build_layered(orr_gen *g)
{
    const uint32_t width = (uint32_t)g->opt->width; /* checked by orr_pattern_trace */
    uint64_t state = g->opt->seed;
    uint64_t parents[PARENTS_MAX];
    for (uint64_t i = 0; i < g->opt->nodes && !g->b.code; i++) {
        const uint64_t random = orr_splitmix64(&state);
        const size_t count =
            i < width ? 0 : pick_parents(random, width, i - i % width - width, parents);
        add_node(g, &state, (pat_after){parents, count});
    }
}

/* ---- the table ---- */

/* Defaults of Chakra's generators, which most patterns share. */
#define SAMPLE                                                               \
    {                                                                        \
        .ranks = 1, .runtime_us = 5, .tensor_size = 1024, .comm_size = 65536 \
    }

static const orr_pattern table[] = {
    {"one_comp_node", "oneCompNode", "one compute node", ORR_GEN_RUNTIME, 0, false, SAMPLE,
     pat_build_one_comp, 0},
    {"two_comp_nodes_independent", "twoCompNodesIndependent",
     "two compute nodes that may run together", ORR_GEN_RUNTIME, 0, false, SAMPLE,
     pat_build_two_comp_independent, 0},
    {"two_comp_nodes_dependent", "twoCompNodesDependent", "two compute nodes, one after the other",
     ORR_GEN_RUNTIME, 0, false, SAMPLE, pat_build_two_comp_dependent, 0},
    {"one_metadata_node_all_types", "one_metadata_node_all_types",
     "a metadata node, an attribute of every kind", 0, 0, false, SAMPLE,
     pat_build_metadata_all_types, 0},
    {"one_remote_mem_load_node", "one_remote_mem_load_node", "one load from memory",
     ORR_GEN_TENSOR_SIZE, 0, false, SAMPLE, pat_build_tensor, ORR_NODE_MEM_LOAD},
    {"one_remote_mem_store_node", "one_remote_mem_store_node", "one store to memory",
     ORR_GEN_TENSOR_SIZE, 0, false, SAMPLE, pat_build_tensor, ORR_NODE_MEM_STORE},
    {"all_reduce", "ALL_REDUCE", "one all-reduce", ORR_GEN_COMM_SIZE | ORR_GEN_DIMS, 0, false,
     SAMPLE, pat_build_collective, ORR_COLL_ALL_REDUCE},
    {"all_to_all", "ALL_TO_ALL", "one all-to-all", ORR_GEN_COMM_SIZE | ORR_GEN_DIMS, 0, false,
     SAMPLE, pat_build_collective, ORR_COLL_ALL_TO_ALL},
    {"all_gather", "ALL_GATHER", "one all-gather", ORR_GEN_COMM_SIZE | ORR_GEN_DIMS, 0, false,
     SAMPLE, pat_build_collective, ORR_COLL_ALL_GATHER},
    {"reduce_scatter", "REDUCE_SCATTER", "one reduce-scatter", ORR_GEN_COMM_SIZE | ORR_GEN_DIMS, 0,
     false, SAMPLE, pat_build_collective, ORR_COLL_REDUCE_SCATTER},
    {"broadcast", "BROADCAST", "one broadcast", ORR_GEN_COMM_SIZE | ORR_GEN_DIMS, 0, false, SAMPLE,
     pat_build_collective, ORR_COLL_BROADCAST},
    {"barrier", "BARRIER", "one barrier: a collective without data", ORR_GEN_DIMS, 0, false, SAMPLE,
     pat_build_collective, ORR_COLL_BARRIER},
    {"one_comm_send_node", "one_comm_send_node", "one send that names no peer (for readers only)",
     ORR_GEN_TENSOR_SIZE, 0, false, SAMPLE, pat_build_tensor, ORR_NODE_COMM_SEND},
    {"one_comm_recv_node", "one_comm_recv_node",
     "one receive that names no peer (for readers only)", ORR_GEN_TENSOR_SIZE, 0, false, SAMPLE,
     pat_build_tensor, ORR_NODE_COMM_RECV},
    {.name = "send_recv_ring",
     .old_name = "commNodesSingleSendSingleRecv",
     .help = "each rank sends to the next one, in a ring",
     .uses = ORR_GEN_COMM_SIZE,
     .ranks_differ = true,
     .defaults = SAMPLE,
     .build = pat_build_send_recv_ring},
    {"invalid_node_last", "invalidNodeCase1", "compute, then an INVALID node", ORR_GEN_RUNTIME, 0,
     false, SAMPLE, pat_build_invalid_last, 0},
    {"invalid_node_between", "invalidNodeCase2", "compute, then an INVALID node, then compute",
     ORR_GEN_RUNTIME, 0, false, SAMPLE, pat_build_invalid_between, 0},
    {"invalid_node_first", "invalidNodeCase3", "an INVALID node, then compute", ORR_GEN_RUNTIME, 0,
     false, SAMPLE, pat_build_invalid_first, 0},
    {"invalid_node_fork", "invalidNodeCase4", "an INVALID node, then two compute nodes",
     ORR_GEN_RUNTIME, 0, false, SAMPLE, pat_build_invalid_fork, 0},
    {"three_layer_data_parallel", "threeLayerDataParallel",
     "three layers, communication overlapped", ORR_GEN_RUNTIME | ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     0, false, SAMPLE, pat_build_three_layers, 0},
    {"three_layer_sequential", "threeLayerDataParallelSequentiallyDependent",
     "three layers, nodes strictly in sequence", ORR_GEN_RUNTIME | ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     0, false, SAMPLE, pat_build_three_layers_in_sequence, 0},
    {"compare_data_parallel", "parallelismComparisonDataParallel",
     "one layer per rank, the batch split among "
     "ranks",
     ORR_GEN_LAYERS | ORR_GEN_DIMS, 0, false, SAMPLE, pat_build_compare_data, 0},
    {"compare_model_parallel", "parallelismComparisonModelParallel",
     "one layer per rank, each layer split among "
     "ranks",
     ORR_GEN_LAYERS | ORR_GEN_DIMS, 0, false, SAMPLE, pat_build_compare_model, 0},
    {.name = "compare_pipeline_parallel",
     .old_name = "parallelismComparisonPipelineParallel",
     .help = "one layer per rank, micro-batches in a pipeline",
     .uses = ORR_GEN_MICROBATCHES,
     .min_ranks = 2,
     .ranks_differ = true,
     .defaults = {.ranks = 4, .microbatches = 64},
     .build = pat_build_compare_pipeline},
    {.name = "data_parallel",
     .help = "a training step with all-reduces in buckets",
     .uses = ORR_GEN_RUNTIME | ORR_GEN_TENSOR_SIZE | ORR_GEN_COMM_SIZE | ORR_GEN_LAYERS |
             ORR_GEN_BUCKET,
     .defaults = {.ranks = 16,
                  .runtime_us = 2000,
                  .tensor_size = 33554432,
                  .comm_size = 100663296,
                  .layers = 12,
                  .bucket = 3},
     .build = pat_build_data_parallel},
    {.name = "layered",
     .help = "a large random graph in the shape of a real trace",
     .uses = ORR_GEN_NODES | ORR_GEN_WIDTH | ORR_GEN_SEED,
     .defaults = {.ranks = 1, .nodes = 1000, .width = 64, .seed = 1},
     .build = pat_build_layered},
};

enum { PATTERNS = sizeof table / sizeof *table };

const orr_pattern *orr_pattern_at(size_t index)
{
    return index < PATTERNS ? &table[index] : NULL;
}

const orr_pattern *orr_pattern_find(const char *name)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        const orr_pattern *p = &table[i];
        if (strcmp(p->name, name) == 0 || (p->old_name && strcmp(p->old_name, name) == 0))
            return p;
    }
    return NULL;
}

/* ---- validation of options ---- */

/* An option's name, location and range, `min` to `max` inclusive. */
typedef struct option_row {
    uint32_t bit;
    const char *name;
    size_t at;
    uint64_t min, max;
} option_row;

/* Bounds on ranks and nodes turn a typing error into a message instead of running out of memory. */
enum { RANKS_MAX = 1 << 20, NODES_MAX = 1 << 26, PIECES_MAX = 1 << 22 };

#define AT(field) offsetof(orr_gen_options, field)
static const option_row rows[] = {
    {ORR_GEN_DIMS, "dims", AT(dims), 0, PAT_DIMS_MAX},
    {ORR_GEN_RUNTIME, "runtime", AT(runtime_us), 0, UINT64_MAX},
    {ORR_GEN_TENSOR_SIZE, "tensor-size", AT(tensor_size), 0, UINT64_MAX},
    {ORR_GEN_COMM_SIZE, "comm-size", AT(comm_size), 0, INT64_MAX},
    {ORR_GEN_LAYERS, "layers", AT(layers), 0, 1 << 20},
    {ORR_GEN_MICROBATCHES, "microbatches", AT(microbatches), 1, 512}, /* the batch is 512 */
    {ORR_GEN_BUCKET, "bucket", AT(bucket), 1, 1 << 20},
    {ORR_GEN_NODES, "nodes", AT(nodes), 1, NODES_MAX},
    {ORR_GEN_WIDTH, "width", AT(width), 1, 1 << 24},
    {ORR_GEN_SEED, "seed", AT(seed), 0, UINT64_MAX},
};

static uint64_t value_of(const orr_gen_options *opt, const option_row *row)
{
    uint64_t v;
    memcpy(&v, (const char *)opt + row->at, sizeof v);
    return v;
}

static orr_code check_options(const orr_pattern *p, const orr_gen_options *opt, orr_error *err)
{
    /* The first generation accepted a pipeline of one rank. */
    const uint32_t min_ranks = p->min_ranks && opt->style != ORR_GEN_EG ? p->min_ranks : 1;
    if (opt->ranks < min_ranks || opt->ranks > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s: ranks is %u; expected %u to %d", p->name,
                        opt->ranks, min_ranks, RANKS_MAX);
    if (opt->style == ORR_GEN_EG && (p->uses & ORR_GEN_COMM_SIZE) && opt->comm_size > UINT32_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s: comm-size is %" PRIu64 "; the schema eg has 32 bits for it", p->name,
                        opt->comm_size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t v = value_of(opt, &rows[i]);
        if ((p->uses & rows[i].bit) && (v < rows[i].min || v > rows[i].max))
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "%s: %s is %" PRIu64 "; expected %" PRIu64 " to %" PRIu64, p->name,
                            rows[i].name, v, rows[i].min, rows[i].max);
    }
    if (p->ranks_differ && (p->uses & ORR_GEN_MICROBATCHES) &&
        opt->ranks * opt->microbatches > PIECES_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s: %u ranks of %" PRIu64 " micro-batches are more than %d pieces",
                        p->name, opt->ranks, opt->microbatches, PIECES_MAX);
    return ORR_OK;
}

/* ---- traces ---- */

/* Ours record how they were made; imitated ones carry what their originals carry. */
static void describe(const orr_pattern *p, const orr_gen_options *opt, char *out, size_t size)
{
    int len = snprintf(out, size, "orrery gen %s --ranks %u", p->name, opt->ranks);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && len > 0 && (size_t)len < size; i++) {
        if (p->uses & rows[i].bit)
            len += snprintf(out + len, size - (size_t)len, " --%s %" PRIu64, rows[i].name,
                            value_of(opt, &rows[i]));
    }
}

static void create_trace(const orr_pattern *p, const orr_gen_options *opt, orr__builder *b)
{
    char words[400];
    if (opt->style != ORR_GEN_EG && !p->old_name) {
        describe(p, opt, words, sizeof words);
        orr__put_text(b, ORR__ATTR_GENERATOR, orr_str_of(words));
    }
    orr__build_trace(b, opt->style == ORR_GEN_EG      ? NULL
                        : opt->style == ORR_GEN_0_0_4 ? "0.0.4"
                                                      : "1.0.0");
}

orr_code orr_pattern_trace(const orr_pattern *p,
                           const orr_gen_options *opt,
                           uint32_t rank,
                           orr_trace **out,
                           orr_error *err)
{
    orr_gen g = {.pattern = p, .opt = opt, .rank = rank};
    *out = NULL;
    orr_code code = check_options(p, opt, err);
    if (!code && rank >= opt->ranks)
        code = orr_fail(err, ORR_EUSAGE, NULL, "%s: there is no rank %u among %u", p->name, rank,
                        opt->ranks);
    if (code)
        return code;
    orr__build_open(&g.b, err);
    create_trace(p, opt, &g.b);
    p->build(&g);
    return orr__build_seal(&g.b, out);
}

/* Traces of the first ranks show what differs between ranks; later ones are mostly equal to one of
 * them and are not kept. */
enum { FIRST_RANKS = 1024 };

static orr_code add_rank(
    const orr_pattern *p, const orr_gen_options *opt, uint32_t rank, orr_set *set, orr_error *err)
{
    orr_trace *t;
    if (rank > 0 && !p->ranks_differ)
        return orr_set_add_rank(set, 0, 0, err);
    orr_code code = orr_pattern_trace(p, opt, rank, &t, err);
    const bool joins = opt->style == ORR_GEN_CURRENT && rank >= FIRST_RANKS;
    bool is_added = false;
    if (!code && joins && rank == FIRST_RANKS)
        code = orr__set_join_alike(set, err);
    if (!code && joins)
        code = orr__set_add_alike(set, t, &is_added, err);
    if (!code && !is_added)
        return orr_set_add(set, t, err);
    orr_trace_destroy(t);
    return code;
}

orr_code orr_pattern_set(const orr_pattern *p,
                         const orr_gen_options *opt,
                         orr_set **out,
                         orr_error *err)
{
    *out = NULL;
    orr_set *set;
    orr_code code = check_options(p, opt, err);
    if (code || (code = orr_set_create(&set, err)))
        return code;
    for (uint32_t rank = 0; rank < opt->ranks && !code; rank++)
        code = add_rank(p, opt, rank, set, err);
    if (!code && opt->style == ORR_GEN_CURRENT)
        code = orr__set_join_alike(set, err);
    if (code) {
        orr_set_close(set);
        return code;
    }
    *out = set;
    return ORR_OK;
}
