/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model.h - how long NCCL takes for a collective, and which algorithm and protocol it takes.
 *
 *     nccl_shape shape = {.ranks = 16, .nodes = 2, .most_per_node = 8, .least_per_node = 8,
 *                         .up_GBps = 450, .out_GBps = 50, .up_reduces = true,
 *                         .generation = NCCL_HOPPER};
 *     nccl_cost cost;
 *     if (nccl_cost_of(&shape, ORR_COLL_ALL_REDUCE, 1 << 30, NULL, &cost))
 *         printf("%s %s %.1f us\n", cost.algorithm, cost.protocol, cost.time_ns / 1e3);
 *
 * A pure function: no state, no events.  Choice follows NCCL's published tuning
 * model and depends on the generation, the shape and the bytes, never on the rates of the machine
 * at hand: so a faster link is never slower.  Time has the constants that were
 * fitted to measurements (nccl_constants.c).
 *
 * What always holds: time is monotone in bytes; not below the bytes of the busiest port at its
 * rate; not below the latency of the hops; low <= time <= high; no rate or latency that gets
 * better makes time longer. */
#ifndef ORR_MODELS_NCCL_MODEL_H
#define ORR_MODELS_NCCL_MODEL_H

#include <orrery/error.h>
#include <orrery/types.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum nccl_generation {
    NCCL_OTHER, /* not NVIDIA, or not measured: Hopper's behaviour at the rates given, wide interval */
    NCCL_VOLTA,
    NCCL_AMPERE,
    NCCL_HOPPER,
    NCCL_BLACKWELL,
    NCCL_GENERATIONS
} nccl_generation;

struct nccl_custom;

/* Where a group lies and what connects it. */
typedef struct nccl_shape {
    uint32_t ranks, nodes; /* of the group, and hosts (scale-up domains) they are on */
    uint32_t most_per_node, least_per_node; /* ranks of the group on a host */
    double up_GBps;       /* scale-up port of a rank, one direction, 10^9 B/s; 0: there is none */
    double up_latency_ns; /* one hop; 0: that of the machines measured */
    bool up_reduces;      /* the switch adds up: NVLS */
    double out_GBps;      /* NIC rate that one rank of the group can use: its share when ranks share
                               NICs, more when a rank can use several */
    double out_latency_ns; /* between two hosts; 0: that of the constants */
    bool out_reduces;      /* the network adds up: SHARP */
    nccl_generation generation;
    const struct nccl_custom
        *table; /* constants and choice of a machine's file; NULL: the generation's */
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

/* What the user insists on; a name that cannot do it is refused. */
typedef struct nccl_forced {
    const char *algorithm; /* "ring"; NULL: NCCL chooses */
    const char *protocol;  /* "LL128"; NULL: NCCL chooses */
    uint32_t channels;     /* 0: as NCCL does; fewer than its own limit the rate */
    bool collnet; /* NCCL_COLLNET_ENABLE=1: SHARP is off unless this or the name asks for it */
    const struct nccl_custom *table; /* instead of the shape's; NULL: that one */
} nccl_forced;

typedef struct nccl_cost {
    const char *algorithm, *protocol; /* "ring", "LL128" */
    uint32_t channels;
    double time_ns, low_ns, high_ns; /* alone; 90 % */
    double latency_ns;               /* the part that does not grow with bytes */
    double up_bytes, out_bytes;      /* largest load of a rank's port, one direction */
    bool extrapolates;               /* the shape or size lies outside of what was measured */
} nccl_cost;

/* bytes as nccl-tests counts them: all-reduce, broadcast, reduce: the buffer; all-gather: all that
 * a rank has at the end; reduce-scatter: all that a rank has at the start; all-to-all: all that a
 * rank sends, its own part included; gather, scatter: all that the root has.  A barrier ignores
 * them.  False: an algorithm or protocol was forced that cannot do this, or the shape is none. */
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

/* The table that the machine's key `collectives` names, to be freed; NULL: it has none. */
orr_code nccl_custom_open(const char *collectives, struct nccl_custom **out, orr_error *err);

/* "A100", "ampere", "sm_80", ...: by family names only; NCCL_OTHER when unknown. */
nccl_generation nccl_generation_of(const char *name);

#endif
