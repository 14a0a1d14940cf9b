/* SPDX-License-Identifier: Apache-2.0 */
/* alone_time.c - the time of an nccl-tests operation on a machine: placement of the ranks, then the
 * NCCL model. */
#include "alone.h"

#include "base/dtypes.h"
#include "base/io/input.h"
#include "base/memory/memory.h"

#include <inttypes.h>
#include <string.h>

static const orr_alone_op ops[] = {
    {"all_reduce", ORR_COLL_ALL_REDUCE, false, true, false, false},
    {"all_gather", ORR_COLL_ALL_GATHER, false, false, false, true},
    {"reduce_scatter", ORR_COLL_REDUCE_SCATTER, false, true, false, true},
    {"alltoall", ORR_COLL_ALL_TO_ALL, false, false, false, true},
    {"broadcast", ORR_COLL_BROADCAST, false, false, true, false},
    {"reduce", ORR_COLL_REDUCE, false, true, true, false},
    {"gather", ORR_COLL_GATHER, false, false, true, true},
    {"scatter", ORR_COLL_SCATTER, false, false, true, true},
    {"sendrecv", ORR_COLL_GATHER, true, true, false, false},
};

const orr_alone_op *alone_op_at(size_t index)
{
    return index < sizeof ops / sizeof *ops ? &ops[index] : NULL;
}

const orr_alone_op *orr_alone_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

uint32_t orr_alone_type_bytes(const char *type)
{
    return orr__dtype_nccl_bytes(orr_str_of(type));
}

double orr_alone_bus_factor(const orr_alone_op *op, uint32_t ranks)
{
    const double part = ranks ? (double)(ranks - 1) / ranks : 0;
    if (op->kind == ORR_COLL_ALL_REDUCE)
        return 2 * part;
    return op->in_parts ? part : 1;
}

/* ---- placement ---- */

/* Bandwidth of the NICs that one rank can use: those local to its device, or its share. */
static double out_rate(const orr_machine *m,
                       const orr_alone_op *op,
                       uint32_t per_node,
                       uint32_t nodes)
{
    const double beside = m->nics > m->devices ? (double)m->nics / m->devices : 1;
    const double shared = (double)m->nics / per_node;
    const uint32_t leaf = m->nodes_per_leaf ? m->nodes_per_leaf : m->nodes;
    double rate = m->nic_GBps * (beside < shared ? beside : shared);
    /* Of an all-to-all this part crosses the leaf's uplinks; of rings and trees what one of its
     * nodes sends. */
    if (nodes > leaf) {
        const double crowded = op->kind == ORR_COLL_ALL_TO_ALL
                                   ? m->oversubscription * (nodes - leaf) / (nodes - 1)
                                   : m->oversubscription / leaf;
        rate /= crowded > 1 ? crowded : 1;
    }
    return rate;
}

/* The first ranks of each node. */
static orr_code place_on_torus(const orr_machine *m,
                               const orr_alone_op *op,
                               uint32_t ranks,
                               uint32_t per_node,
                               torus_shape *out,
                               orr_error *err)
{
    orr_net_config dims;
    const orr_code code = orr_machine_dims(m, &dims, err);
    if (code)
        return code;
    uint32_t *members = orr_alloc(ranks, sizeof *members);
    for (uint32_t i = 0; members && i < ranks; i++)
        members[i] = i / per_node * m->devices + i % per_node;
    const bool ok = members && (op->is_message ? torus_ring_of(&dims, members, ranks, out)
                                               : torus_shape_of(&dims, members, ranks, out));
    orr_free(members);
    return ok ? ORR_OK : orr_no_memory(err);
}

orr_code alone_shape(const orr_machine *m,
                     const orr_alone_op *op,
                     uint32_t ranks,
                     uint32_t per_node,
                     nccl_shape *out,
                     orr_error *err)
{
    const uint32_t devices = orr_machine_devices(m);
    const bool is_given = per_node != 0;
    if (ranks == 0)
        ranks = devices;
    if (ranks > devices)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu32 " ranks, but %s has %" PRIu32 " devices",
                        ranks, m->name, devices);
    if (per_node > m->devices)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%" PRIu32 " ranks on a node, but a node of %s has %" PRIu32, per_node,
                        m->name, m->devices);
    if (!per_node)
        per_node = m->devices < ranks ? m->devices : ranks;
    const uint32_t nodes = (ranks + per_node - 1) / per_node;
    if (nodes > m->nodes)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%" PRIu32 " ranks with %" PRIu32 " on a node need %" PRIu32
                        " nodes; %s has %" PRIu32,
                        ranks, per_node, nodes, m->name, m->nodes);
    if (is_given && nodes == 1)
        per_node = ranks;
    *out = (nccl_shape){.ranks = ranks, .nodes = nodes, .most_per_node = per_node};
    out->least_per_node = ranks % per_node ? ranks % per_node : per_node;
    out->up_GBps = m->up == ORR_MACHINE_UP_NONE ? 0 : m->up_GBps;
    /* In a mesh only the links to other ranks of the group contribute. */
    if (m->up == ORR_MACHINE_UP_MESH && m->devices > 1 && per_node > 1)
        out->up_GBps *= (double)(per_node - 1) / (m->devices - 1);
    out->up_latency_ns = m->up_latency_ns;
    out->up_reduces = m->up_reduces;
    out->out_GBps = m->nics ? out_rate(m, op, per_node, nodes) : 0;
    out->out_latency_ns = orr_machine_out_latency_ns(m);
    out->out_reduces = m->fabric_reduces;
    out->generation = nccl_generation_of(m->architecture);
    if (strcmp(m->collectives, "torus") == 0)
        return place_on_torus(m, op, ranks, per_node, &out->torus, err);
    if (nodes > 1 && !(out->out_GBps > 0))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s has no NICs between its nodes", m->name);
    return ORR_OK;
}

/* ---- life cycle ---- */

orr_code orr_alone_open(const orr_machine *m, orr_alone **out, orr_error *err)
{
    orr_alone *a;
    orr_code code = ORR_OK;
    *out = NULL;
    if (strcmp(m->collectives, "none") == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s has 'collectives: none'; no model applies to it",
                        m->name);
    a = orr_alloc(1, sizeof *a);
    if (!a)
        return orr_no_memory(err);
    a->machine = *m;
    nccl_custom *table;
    code = nccl_custom_open(m->collectives, &table, err);
    if (table) {
        a->table = *table;
        a->has_table = true;
        orr_free(table);
    }
    if (code)
        orr_free(a);
    else
        *out = a;
    return code;
}

void orr_alone_close(orr_alone *a)
{
    orr_free(a);
}

/* ---- times ---- */

static orr_code refuse(const orr_alone_ask *ask, const nccl_shape *s, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "%s%s%s cannot do %s on %" PRIu32 " ranks of %" PRIu32 " node%s",
                    ask->algorithm ? ask->algorithm : "",
                    ask->algorithm && ask->protocol ? " " : "", ask->protocol ? ask->protocol : "",
                    ask->op->name, s->ranks, s->nodes, s->nodes == 1 ? "" : "s");
}

orr_code orr_alone_time_of(const orr_alone *a,
                           const orr_alone_ask *ask,
                           orr_alone_time *out,
                           orr_error *err)
{
    nccl_shape s;
    nccl_cost cost;
    const nccl_forced forced = {.algorithm = ask->algorithm,
                                .protocol = ask->protocol,
                                .channels = ask->channels,
                                .collnet = ask->collnet,
                                .table = a->has_table ? &a->table : NULL};
    const orr_code code = alone_shape(&a->machine, ask->op, ask->ranks, ask->per_node, &s, err);
    if (code)
        return code;
    if (ask->op->is_message ? !nccl_send_cost_of(&s, ask->bytes, &forced, &cost)
                            : !nccl_cost_of(&s, ask->op->kind, ask->bytes, &forced, &cost))
        return refuse(ask, &s, err);
    *out = (orr_alone_time){.algorithm = cost.algorithm,
                            .protocol = cost.protocol,
                            .channels = cost.channels,
                            .ranks = s.ranks,
                            .nodes = s.nodes,
                            .ns = cost.time_ns,
                            .low_ns = cost.low_ns,
                            .high_ns = cost.high_ns,
                            .latency_ns = cost.latency_ns,
                            .up_bytes = cost.up_bytes,
                            .out_bytes = cost.out_bytes,
                            .extrapolates = cost.extrapolates};
    return ORR_OK;
}
