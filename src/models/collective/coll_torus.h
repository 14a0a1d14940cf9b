/* SPDX-License-Identifier: Apache-2.0 */
/* coll_torus.h - collectives on a torus of links (TPU, Trainium), all axes and both directions at
 * once.
 *
 *     torus_shape shape;
 *     nccl_cost cost;
 *     if (torus_shape_of(&dims, members, count, &shape) &&
 *         torus_cost_of(&shape, ORR_COLL_ALL_REDUCE, 1 << 30, &cost))
 *         printf("%.1f us\n", cost.time_ns / 1e3);
 *
 * docs/design/collectives.md, "On a torus", has the algorithm, its formulas and their sources.
 *
 * Invariants: time is monotone in bytes; never below what all links of a chip that lead to members
 * carry at their rates, nor below the hops between the farthest members. */
#ifndef ORR_MODELS_COLL_TORUS_H
#define ORR_MODELS_COLL_TORUS_H

#include <orrery/network.h>
#include <orrery/types.h>

#include <stdbool.h>
#include <stdint.h>

struct nccl_cost;

enum { TORUS_AXES = ORR_NET_DIMS };

/* An axis along which the members of a group differ. */
typedef struct torus_axis {
    uint32_t count;     /* places of the group along it */
    uint32_t hops;      /* links from one place to the next */
    double rate;        /* of a link and direction, bytes per ns */
    double latency_ns;  /* of a link */
    uint64_t is_closed; /* a ring; else a line: part of an axis, or one without wraparound links */
} torus_axis;

/* Placement of a group.  All bytes are set, so that equal shapes compare equal by memcmp. */
typedef struct torus_shape {
    uint32_t ranks; /* 0: not on a torus */
    uint32_t axes;
    torus_axis axis[TORUS_AXES];     /* the innermost first */
    uint64_t nodes;                  /* tori that the group spans, joined by switches */
    double out_rate, out_latency_ns; /* of a rank between them */
    /* The members are no box: one ring through all of them.  Of it: ns per byte that each member
     * sends to both neighbours (of torus_ring_of: to the next), and its longest step's time. */
    uint64_t is_ring;
    double ring_cost, ring_latency_ns;
} torus_shape;

/* members: ascending.  False: out of memory. */
bool torus_shape_of(const orr_net_config *dims,
                    const uint32_t *members,
                    uint32_t count,
                    torus_shape *out);

/* One ring through the members, whatever their placement: for messages from each to the next. */
bool torus_ring_of(const orr_net_config *dims,
                   const uint32_t *members,
                   uint32_t count,
                   torus_shape *out);
bool torus_send_cost_of(const torus_shape *ring, uint64_t bytes, struct nccl_cost *out);

/* bytes as nccl_cost_of counts them. */
bool torus_cost_of(const torus_shape *s,
                   orr_collective kind,
                   uint64_t bytes,
                   struct nccl_cost *out);

/* Bytes on each link and direction of each axis, for each byte that a rank sends on links
 * (nccl_cost.up_bytes). */
void torus_loads(const torus_shape *s, bool is_pairs, double load[TORUS_AXES]);
/* The part of these bytes that goes along each axis; they add up to 1. */
void torus_parts(const torus_shape *s, bool is_pairs, double part[TORUS_AXES]);

/* The rank `hops` links from this one along dimension k; UINT32_MAX: the line ends before. */
uint32_t torus_step(
    const orr_net_config *dims, uint32_t k, uint32_t hops, uint32_t rank, bool is_forward);

#endif
