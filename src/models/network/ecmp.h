/* SPDX-License-Identifier: Apache-2.0 */
/* ecmp.h - which of several equally short routes a flow takes: a hash of addresses and ports, with
 * the number of the switch as its seed.  The packet engine and the network fluid use the same hash,
 * so that flows collide on the same links. */
#ifndef ORR_MODELS_ECMP_H
#define ORR_MODELS_ECMP_H

#include <stdint.h>

enum { NET_ECMP_FIRST_PORT = 10000, NET_ECMP_PORT = 100 };
#define NET_ECMP_HOST_SEED 0x8BADF00Du /* of a host with several links */

/* 32-bit Murmur3 of three words (packet-network.md 5). */
static inline uint32_t net_ecmp_mix(uint32_t h, uint32_t word)
{
    uint32_t k = word * 0xcc9e2d51u;
    k = (k << 15 | k >> 17) * 0x1b873593u;
    h ^= k;
    return (h << 13 | h >> 19) * 5 + 0xe6546b64u;
}

static inline uint32_t net_ecmp_hash(uint32_t a, uint32_t b, uint32_t c, uint32_t seed)
{
    uint32_t h = net_ecmp_mix(net_ecmp_mix(net_ecmp_mix(seed, a), b), c) ^ 12;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* The address of a host. */
static inline uint32_t net_ecmp_address(uint32_t node)
{
    return 0x0b000001u + node / 256 * 0x10000u + node % 256 * 0x100u;
}

#endif
