/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_front.h - what this room exports to table.c: AstraSimNetwork, the ns-3 front end. */
#ifndef ORR_COMPAT_NS3_FRONT_H
#define ORR_COMPAT_NS3_FRONT_H

#include "models/network/packet/engine/fab_rules.h"
#include "models/network/packet/packet_config.h"
#include "run/run_rules.h"

/* ---- the packet network ---- */

extern const struct orr_rules_packet orr__ns3_rules;

extern const orr_rules_run ns3_run_rules;
extern const run_byte_matching ns3_byte_matching;

/* ---- random numbers ----
 *
 * Those of ns-3 and of the C library (packet-network.md 1.2, 8.5). */

/* State of L'Ecuyer's MRG32k3a: its two components, three numbers each. */
typedef struct ns3_mrg {
    uint64_t x[3], y[3];
} ns3_mrg;

/* Stream k of run 1. */
void ns3_mrg_init(ns3_mrg *m, uint64_t stream);
double ns3_mrg_next(ns3_mrg *m); /* in [0, 1) */

/* The first number of stream k, then of stream k + 1, and so on: what a program draws that creates
 * a new generator for every number. */
typedef struct ns3_streams {
    ns3_mrg state; /* of the next stream, after one step */
} ns3_streams;
void ns3_streams_init(ns3_streams *c, uint64_t stream);
double ns3_streams_next(ns3_streams *c);

/* rand() of glibc with its default seed: additive feedback over 31 numbers. */
typedef struct ns3_libc_rand {
    uint32_t r[34];
    unsigned at;
} ns3_libc_rand;
void ns3_libc_rand_init(ns3_libc_rand *r, uint32_t seed);
uint32_t ns3_libc_rand_next(ns3_libc_rand *r);

/* The above as the engine uses them. */
extern const fab_draws orr__ns3_draws;

#endif
