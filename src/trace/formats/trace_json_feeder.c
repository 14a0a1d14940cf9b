/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json_feeder.c - nodes in the C++ feeder's own JSON, {"workload_graph": [..]} (chakra.md 6.1).
 *
 * Ids and types are numbers there, and attributes stand beside the rest.  They get the members that the
 * feeder reads from an .et file: is_cpu_op bool, sizes and types 64 bits, peers and priority 32. */
#include "trace_json_impl.h"

/* Slots: fields under their own numbers, attributes behind. */
enum {
    IS_CPU_OP = NODE_ATTR + 1,
    NUM_OPS,
    TENSOR_SIZE,
    COMM_TYPE,
    COMM_PRIORITY,
    COMM_SIZE,
    COMM_SRC,
    COMM_DST,
    COMM_TAG,
    PG_NAME
};

static const orr__json_key keys[] = {
    {"Id", "id", NODE_ID},
    {"Name", "name", NODE_NAME},
    {"NodeType", "node_type", NODE_TYPE},
    {"runtime", NULL, NODE_DURATION},
    {"ctrlDeps", "ctrl_deps", NODE_CTRL_DEPS},
    {"dataDeps", "data_deps", NODE_DATA_DEPS},
    {"is_cpu_op", NULL, IS_CPU_OP},
    {"num_ops", NULL, NUM_OPS},
    {"tensor_size", NULL, TENSOR_SIZE},
    {"comm_type", NULL, COMM_TYPE},
    {"comm_priority", NULL, COMM_PRIORITY},
    {"comm_size", NULL, COMM_SIZE},
    {"comm_src", NULL, COMM_SRC},
    {"comm_dst", NULL, COMM_DST},
    {"comm_tag", NULL, COMM_TAG},
    {"pg_name", NULL, PG_NAME},
    {0},
};

static orr_value_kind kind_of(uint32_t slot)
{
    switch (slot) {
    case IS_CPU_OP:
        return ORR_VALUE_BOOL;
    case TENSOR_SIZE:
        return ORR_VALUE_UINT64;
    case PG_NAME:
        return ORR_VALUE_STRING;
    case COMM_PRIORITY:
    case COMM_SRC:
    case COMM_DST:
    case COMM_TAG:
        return ORR_VALUE_INT32;
    default:
        return ORR_VALUE_INT64;
    }
}

/* 0 and 1 stand for false and true in some of these files. */
static orr_code read_value(orr__json_source *s,
                           orr_json_value v,
                           orr_value_kind kind,
                           orr_value *out)
{
    uint64_t bit;
    const bool is_number = orr_json_type_of(v) == ORR_JSON_INT;
    if (kind != ORR_VALUE_BOOL || !is_number || orr_json_get_u64(v, &bit, NULL) || bit > 1)
        return orr__json_scalar(s, v, kind, out);
    out->u = bit;
    return ORR_OK;
}

static orr_code put_attrs(orr__json_source *s, const orr__json_members *m, orr_buf *to)
{
    for (const orr__json_key *k = keys; k->camel; k++) {
        if (k->number <= NODE_ATTR || !orr__json_has(m, k->number))
            continue;
        orr_attr a = {.name = orr_str_of(k->camel), .doc = {"", 0}, .kind = kind_of(k->number)};
        const orr_code code = read_value(s, m->at[k->number], a.kind, &a.value);
        if (code)
            return code;
        orr__encode_attr(to, NODE_ATTR, &a);
    }
    return ORR_OK;
}

static orr_code need(orr__json_source *s,
                     orr_json_value node,
                     const orr__json_members *m,
                     uint32_t slot,
                     const char *key)
{
    return orr__json_has(m, slot) ? ORR_OK : orr__json_bad(s, node, "the node has no \"%s\"", key);
}

orr_code orr__json_feeder_node(orr__json_source *s, orr_json_value node)
{
    orr__json_members m;
    orr_code code;
    if ((code = orr__json_sort(s, node, "a node of a workload graph", keys, &m)) ||
        (code = need(s, node, &m, NODE_ID, "Id")) ||
        (code = need(s, node, &m, NODE_TYPE, "NodeType")))
        return code;
    const size_t begin = orr_put_begin(&s->t->owned);
    code = orr__json_put_node(s, &m, &s->t->owned);
    if (!code)
        code = put_attrs(s, &m, &s->t->owned);
    return code ? code : orr__json_append(s, begin, node);
}
