/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_samples.c - the smallest traces: a node or two each, for trying out a reader or a simulator.
 *
 * Contents as in chakra.md 5; the bytes of the current ones are fixed by tests/golden. */
#include "patterns_impl.h"

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

void pat_build_metadata_all_types(orr_gen *g)
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

void pat_build_mem_load(orr_gen *g)
{
    pat_tensor(g, ORR_NODE_MEM_LOAD);
}

void pat_build_mem_store(orr_gen *g)
{
    pat_tensor(g, ORR_NODE_MEM_STORE);
}

void pat_build_send(orr_gen *g)
{
    pat_tensor(g, ORR_NODE_COMM_SEND);
}

void pat_build_recv(orr_gen *g)
{
    pat_tensor(g, ORR_NODE_COMM_RECV);
}

static uint64_t comp_node(orr_gen *g, pat_after after)
{
    return pat_comp(g, "COMP_NODE", g->opt->runtime_us, after);
}

void pat_build_one_comp(orr_gen *g)
{
    comp_node(g, NOTHING);
}

void pat_build_two_comp_independent(orr_gen *g)
{
    comp_node(g, NOTHING);
    comp_node(g, NOTHING);
}

void pat_build_two_comp_dependent(orr_gen *g)
{
    const uint64_t first = comp_node(g, NOTHING);
    comp_node(g, AFTER(first));
}

/* The Python generators name the node after the collective, the first generation after its type. */
static void one_collective(orr_gen *g, orr_collective kind, uint64_t size)
{
    const char *name =
        g->opt->style == ORR_GEN_EG ? "COMM_COLL_NODE" : orr_collective_name((uint32_t)kind);
    pat_collective(g, name, kind, size, NOTHING);
}

void pat_build_all_reduce(orr_gen *g)
{
    one_collective(g, ORR_COLL_ALL_REDUCE, g->opt->comm_size);
}

void pat_build_all_to_all(orr_gen *g)
{
    one_collective(g, ORR_COLL_ALL_TO_ALL, g->opt->comm_size);
}

void pat_build_all_gather(orr_gen *g)
{
    one_collective(g, ORR_COLL_ALL_GATHER, g->opt->comm_size);
}

void pat_build_reduce_scatter(orr_gen *g)
{
    one_collective(g, ORR_COLL_REDUCE_SCATTER, g->opt->comm_size);
}

void pat_build_broadcast(orr_gen *g)
{
    one_collective(g, ORR_COLL_BROADCAST, g->opt->comm_size);
}

void pat_build_barrier(orr_gen *g)
{
    one_collective(g, ORR_COLL_BARRIER, 0);
}

void pat_build_send_recv_ring(orr_gen *g)
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

void pat_build_invalid_last(orr_gen *g)
{
    const uint64_t comp = comp_node(g, NOTHING);
    pat_invalid(g, AFTER(comp));
}

void pat_build_invalid_between(orr_gen *g)
{
    const uint64_t comp = comp_node(g, NOTHING);
    const uint64_t invalid = pat_invalid(g, AFTER(comp));
    comp_node(g, AFTER(invalid));
}

void pat_build_invalid_first(orr_gen *g)
{
    const uint64_t invalid = pat_invalid(g, NOTHING);
    comp_node(g, AFTER(invalid));
}

void pat_build_invalid_fork(orr_gen *g)
{
    const uint64_t invalid = pat_invalid(g, NOTHING);
    comp_node(g, AFTER(invalid));
    comp_node(g, AFTER(invalid));
}
