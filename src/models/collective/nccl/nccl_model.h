/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model.h - the time of a collective with NCCL, and the algorithm and protocol it chooses.
 *
 *     nccl_shape shape = {.ranks = 16, .nodes = 2, .most_per_node = 8, .least_per_node = 8,
 *                         .up_GBps = 450, .out_GBps = 50, .up_reduces = true,
 *                         .generation = NCCL_HOPPER};
 *     nccl_cost cost;
 *     if (nccl_cost_of(&shape, ORR_COLL_ALL_REDUCE, 1 << 30, NULL, &cost))
 *         printf("%s %s %.1f us\n", cost.algorithm, cost.protocol, cost.time_ns / 1e3);
 *
 * A pure function: no state, no events.  Choice follows NCCL's published tuning
 * model and depends on the generation, the shape and the bytes, never on the rates of the actual
 * machine: so a faster link never takes longer.  Time uses constants
 * fitted to measurements (nccl_constants.c).
 *
 * Invariants: time is monotone in bytes; not below the bytes of the busiest port at its rate; not
 * below the latency of the hops; low <= time <= high; better rates or latencies never increase
 * it. */
#ifndef ORR_MODELS_NCCL_MODEL_H
#define ORR_MODELS_NCCL_MODEL_H

#include "models/collective/coll_torus.h"

#include <orrery/error.h>
#include <orrery/types.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum nccl_generation {
    NCCL_OTHER, /* not NVIDIA, or not measured: Hopper's behaviour at given rates, wide interval */
    NCCL_VOLTA,
    NCCL_AMPERE,
    NCCL_HOPPER,
    NCCL_BLACKWELL,
    NCCL_GENERATIONS
} nccl_generation;

struct nccl_custom;

/* Placement of a group and its interconnect. */
typedef struct nccl_shape {
    uint32_t ranks, nodes; /* of the group, and hosts (scale-up domains) they are on */
    uint32_t most_per_node, least_per_node; /* of the group, per host */
    double up_GBps;        /* scale-up port of a rank, one direction, 10^9 B/s; 0: none */
    double up_latency_ns;  /* one hop; 0: that of the machines measured */
    bool up_reduces;       /* the switch reduces: NVLS */
    double out_GBps;       /* NIC bandwidth available to one rank of the group: its share if ranks
                           * share NICs, more if a rank can use several */
    double out_latency_ns; /* between two hosts; 0: that of the constants */
    bool out_reduces;      /* the network reduces: SHARP */
    nccl_generation generation;
    const struct nccl_custom
        *table; /* constants and choice of a machine's file; NULL: the generation's */
    /* On a torus of links there is no NCCL: if torus.ranks is not 0, that counts alone. */
    torus_shape torus;
} nccl_shape;

typedef enum nccl_algorithm {
    NCCL_RING,
    NCCL_TREE, /* double binary between nodes, a chain inside */
    NCCL_NVLS,
    NCCL_NVLS_TREE,
    NCCL_COLLNET_DIRECT,
    NCCL_COLLNET_CHAIN,
    NCCL_PAT,
    NCCL_DIRECT, /* grouped send and receive */
    NCCL_ALGORITHMS
} nccl_algorithm;

typedef enum nccl_protocol { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, NCCL_PROTOCOLS } nccl_protocol;

/* The user's choice; impossible ones are refused. */
typedef struct nccl_forced {
    const char *algorithm; /* "ring"; NULL: NCCL chooses */
    const char *protocol;  /* "LL128"; NULL: NCCL chooses */
    uint32_t channels;     /* 0: NCCL's choice; fewer limit the rate */
    bool collnet; /* NCCL_COLLNET_ENABLE=1: SHARP is off unless this or the name requests it */
    const struct nccl_custom *table; /* instead of the shape's; NULL: that one */
} nccl_forced;

typedef struct nccl_cost {
    const char *algorithm, *protocol; /* "ring", "LL128" */
    uint32_t channels;
    double time_ns, low_ns, high_ns; /* without contention; 90 % */
    double latency_ns;               /* the part independent of bytes */
    double up_bytes, out_bytes;      /* largest load of a rank's port, one direction */
    bool extrapolates;               /* the shape or size is outside the measured range */
} nccl_cost;

/* bytes as nccl-tests counts them: all-reduce, broadcast, reduce: the buffer; all-gather: the
 * result on a rank; reduce-scatter: the input of a rank; all-to-all: what a rank sends, its own
 * part included; gather, scatter: the data of the root.  A barrier ignores them.  False: the forced
 * algorithm or protocol cannot do this, or the shape is invalid. */
bool nccl_cost_of(const nccl_shape *shape,
                  orr_collective kind,
                  uint64_t bytes,
                  const nccl_forced *forced,
                  nccl_cost *out);

/* One message from a rank to another of the group's machine; nodes 1: inside a host. */
bool nccl_send_cost_of(const nccl_shape *shape,
                       uint64_t bytes,
                       const nccl_forced *forced,
                       nccl_cost *out);

/* ---- placement of a group (nccl_shape.c) ----
 *
 * members: ascending.  Counts, rates and latencies; those of *h must be
 * 0, the caller fills in the rest. */
void nccl_shape_of(const orr_net_config *c, const uint32_t *members, uint32_t count, nccl_shape *h);
/* Its two halves, where hosts are not those of the dimensions. */
void nccl_count_nodes(const uint32_t *members, uint32_t count, uint32_t per_node, nccl_shape *h);
void nccl_shape_by_dims(const orr_net_config *c,
                        uint32_t per_node,
                        const uint32_t *members,
                        uint32_t count,
                        nccl_shape *h);
/* Ranks of a host: those along the innermost dimension. */
uint32_t nccl_ranks_per_node(const orr_net_config *c);
/* Do the members differ in dimension k? */
bool nccl_differ_along(const orr_net_config *c,
                       const uint32_t *members,
                       uint32_t count,
                       uint32_t k);

/* ---- names ---- */

/* The table named by the machine's key `collectives`, to be freed; NULL: none. */
orr_code nccl_custom_open(const char *collectives, struct nccl_custom **out, orr_error *err);

/* "A100", "ampere", "sm_80", ...: by family names only; NCCL_OTHER if unknown. */
nccl_generation nccl_generation_of(const char *name);

#endif
