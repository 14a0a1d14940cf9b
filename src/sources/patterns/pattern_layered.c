/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_layered.c - a large random graph in the shape of a real trace, for benchmarks.
 *
 * Layers of `width` nodes; each node comes after one to three different nodes of the layer before:
 *
 *     layer 0    o   o   o   o      no parents
 *                 \ / \ /|   |
 *     layer 1    o   o   o   o      16 in 20 compute, 2 collective, 1 load, 1 store
 *
 * Names, attributes (four or five) and sizes are like those of a PyTorch trace that went through Chakra's
 * converter: 131 bytes a node on average.  The numbers come from the seed alone (splitmix64), so the same
 * options give the same file everywhere.  Cost: O(nodes). */
#include "patterns_impl.h"

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

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Different nodes of the layer before, in ascending order: a parent named twice would block some readers for
 * ever (chakra.md 6.1).  Steps around a circle of `width` places never meet when they add up to less. */
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
    const uint64_t shape = next_random(state), values = next_random(state);
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

void pat_build_layered(orr_gen *g)
{
    const uint32_t width = (uint32_t)g->opt->width; /* orr_pattern_trace has seen that it fits */
    uint64_t state = g->opt->seed;
    uint64_t parents[PARENTS_MAX];
    for (uint64_t i = 0; i < g->opt->nodes && !g->b.code; i++) {
        const uint64_t random = next_random(&state);
        const size_t count =
            i < width ? 0 : pick_parents(random, width, i - i % width - width, parents);
        add_node(g, &state, (pat_after){parents, count});
    }
}
