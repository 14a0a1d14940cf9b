/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_nodes.c - the nodes that patterns are made of, with the attributes each style gives them.
 *
 * This is the only place that knows the styles apart (chakra.md 5); a pattern says "an all-reduce of 64 KiB"
 * and gets it as the current generator, or one of its predecessors, would write it. */
#include "patterns_impl.h"

static bool is_eg(const orr_gen *g)
{
    return g->opt->style == ORR_GEN_EG;
}

/* Says that the node runs on the device.  The first generation had no such attribute. */
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

orr__builder *pat_begin(orr_gen *g, orr_node_type type, const char *name, pat_after after)
{
    orr__build_node(&g->b, type, orr_str_of(name));
    orr__build_deps(&g->b, after.ids, after.count);
    return &g->b;
}

uint64_t pat_invalid(orr_gen *g, pat_after after)
{
    return orr__build_add(pat_begin(g, ORR_NODE_INVALID, "INVALID_NODE", after));
}

uint64_t pat_comp(orr_gen *g, const char *name, uint64_t runtime_us, pat_after after)
{
    pat_begin(g, ORR_NODE_COMP, name, after)->node.duration_us = runtime_us;
    put_device(g);
    return orr__build_add(&g->b);
}

uint64_t pat_tensor(orr_gen *g, orr_node_type type)
{
    pat_begin(g, type, orr_node_type_name(type), NOTHING);
    put_device(g);
    orr__put_uint(&g->b, ORR__ATTR_TENSOR_SIZE, g->opt->tensor_size);
    return orr__build_add(&g->b);
}

/* All dimensions of the network take part.  The 0.0.4 generator writes the list even when it is empty. */
uint64_t pat_collective(
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

/* The peers and the tag are int32 today because that is what the C++ feeder reads (chakra.md 6.1). */
uint64_t pat_message(orr_gen *g, const pat_transfer *m, pat_after after)
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
