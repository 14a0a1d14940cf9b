/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_nodes.c - the nodes that patterns are made of, with the attributes each style gives them.
 *
 * This is the only place that knows the styles apart (chakra.md 5); a pattern says "an all-reduce of 64 KiB"
 * and gets it as the current generator, or one of its predecessors, would write it. */
#include "patterns_impl.h"

enum { ATTRS_MAX = 8 };

/* The attributes of one node, while they are collected. */
typedef struct attrs {
    orr_attr row[ATTRS_MAX];
    size_t count;
    orr_value dims[ORR__DIMS_MAX];
} attrs;

static void attrs_add(attrs *a, orr_attr attr)
{
    a->row[a->count++] = attr;
}

static bool is_eg(const orr_gen *g)
{
    return g->opt->style == ORR_GEN_EG;
}

/* Says that the node runs on the device.  The first generation had no such attribute. */
static void attrs_add_device(attrs *a, const orr_gen *g)
{
    if (!is_eg(g))
        attrs_add(a, orr__attr_uint("is_cpu_op", ORR_VALUE_BOOL, 0));
}

static void attrs_add_comm_size(attrs *a, const orr_gen *g, uint64_t size)
{
    static const orr_value_kind kind[] = {
        [ORR_GEN_CURRENT] = ORR_VALUE_INT64,
        [ORR_GEN_0_0_4] = ORR_VALUE_UINT64,
        [ORR_GEN_EG] = ORR_VALUE_UINT32,
    };
    attrs_add(a, orr__attr_uint("comm_size", kind[g->opt->style], size));
}

/* All dimensions of the network take part.  The 0.0.4 generator writes the list even when it is empty. */
static void attrs_add_dims(attrs *a, const orr_gen *g)
{
    if (g->opt->dims == 0 && g->opt->style != ORR_GEN_0_0_4)
        return;
    for (uint32_t i = 0; i < g->opt->dims; i++)
        a->dims[i].u = 1;
    attrs_add(a, (orr_attr){.name = orr_str_of("involved_dim"),
                            .kind = ORR_VALUE_BOOL,
                            .is_list = true,
                            .items = a->dims,
                            .item_count = g->opt->dims});
}

uint64_t orr__gen_add(orr_gen *g, orr_draft *d, orr__after after)
{
    if (g->code)
        return 0;
    d->id = g->next_id++;
    d->data_deps = after.ids;
    d->data_count = after.count;
    g->code = orr_trace_append(g->trace, d, g->err);
    return d->id;
}

static uint64_t add_with(orr_gen *g, orr_draft d, const attrs *a, orr__after after)
{
    d.attrs = a->row;
    d.attr_count = a->count;
    return orr__gen_add(g, &d, after);
}

uint64_t orr__gen_invalid(orr_gen *g, orr__after after)
{
    orr_draft d = {.name = orr_str_of("INVALID_NODE"), .type = ORR_NODE_INVALID};
    return orr__gen_add(g, &d, after);
}

uint64_t orr__gen_comp(orr_gen *g, const char *name, uint64_t runtime_us, orr__after after)
{
    attrs a = {.count = 0};
    attrs_add_device(&a, g);
    return add_with(
        g, (orr_draft){.name = orr_str_of(name), .type = ORR_NODE_COMP, .duration_us = runtime_us},
        &a, after);
}

uint64_t orr__gen_tensor(orr_gen *g, orr_node_type type)
{
    attrs a = {.count = 0};
    attrs_add_device(&a, g);
    attrs_add(&a, orr__attr_uint("tensor_size", ORR_VALUE_UINT64, g->opt->tensor_size));
    return add_with(g, (orr_draft){.name = orr_str_of(orr_node_type_name(type)), .type = type}, &a,
                    NOTHING);
}

uint64_t orr__gen_collective(
    orr_gen *g, const char *name, orr_collective kind, uint64_t size, orr__after after)
{
    attrs a = {.count = 0};
    attrs_add_device(&a, g);
    attrs_add(&a, orr__attr_int("comm_type", ORR_VALUE_INT64, kind));
    attrs_add_comm_size(&a, g, size);
    attrs_add_dims(&a, g);
    return add_with(g, (orr_draft){.name = orr_str_of(name), .type = ORR_NODE_COMM_COLL}, &a,
                    after);
}

/* The peers and the tag are int32 today because that is what the C++ feeder reads (chakra.md 6.1). */
uint64_t orr__gen_message(orr_gen *g, const orr__message *m, orr__after after)
{
    const orr_value_kind kind = is_eg(g) ? ORR_VALUE_UINT32 : ORR_VALUE_INT32;
    /* Tags of many ranks use all 32 bits; as int32 the same bits read as a negative number. */
    const int64_t tag = is_eg(g) ? (int64_t)m->tag : (int32_t)m->tag;
    attrs a = {.count = 0};
    attrs_add_device(&a, g);
    attrs_add(&a, orr__attr_int("comm_src", kind, m->src));
    attrs_add(&a, orr__attr_int("comm_dst", kind, m->dst));
    attrs_add_comm_size(&a, g, m->size);
    attrs_add(&a, orr__attr_int("comm_tag", kind, tag));
    return add_with(g, (orr_draft){.name = orr_str_of(m->name), .type = m->type}, &a, after);
}
