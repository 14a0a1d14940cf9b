/* SPDX-License-Identifier: Apache-2.0 */
/* cabling.h - a network as nodes and the cables between them (packet-network.md 4.1, 13). */
#ifndef ORR_MODELS_CABLING_H
#define ORR_MODELS_CABLING_H

#include "base/memory/memory.h"

typedef enum orr__node_kind { ORR__HOST, ORR__SWITCH, ORR__NVSWITCH } orr__node_kind;

/* A full-duplex link. */
typedef struct orr__cable {
    uint32_t a, b;
    uint64_t rate; /* bit/s */
    uint64_t delay_ps;
    double error;  /* probability that a packet is lost, in each direction */
    uint32_t cost; /* what it adds to the length of a route; 0 is 1 */
    uint32_t line; /* of the file; 0: of none */
} orr__cable;

typedef struct orr__cabling {
    uint32_t nodes;
    uint8_t *kinds; /* orr__node_kind by node */
    uint32_t hosts; /* how many of them */
    orr__cable *cables;
    size_t cable_count, cable_room;
    uint32_t gpus_per_server; /* SimAI's dialect; 0 otherwise */
    uint32_t surplus; /* the line after the links that the head announces; 0: there is none */
} orr__cabling;

orr_code orr__cabling_parse(orr__cabling *c, orr_span bytes, const char *path, orr_error *err)
    ORR_MUST_CHECK;
void orr__cabling_fini(orr__cabling *c); /* an all-zero one is empty */
orr_where orr__cable_where(const orr__cable *l, const char *path);
/* Every host has a link, no switch more than `most`.  A file that was read has passed without that
 * limit. */
orr_code orr__cabling_check_ports(const orr__cabling *c,
                                  uint32_t most,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;

/* The same for both directions of a link. */
static inline uint64_t orr__pair_key(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

#endif
