/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - coordinates in a network of several dimensions: the product of rings, switches and
 * fully connected groups described by ASTRA-sim's network file.
 *
 * Devices are the ranks, then the switches, dimension by dimension.  A rank's coordinate in
 * dimension k is rank / stride[k] % npus[k].  The ranks that differ in dimension k only form a
 * group; a dimension of the shape Switch has one switch per group. */
#ifndef ORR_MODELS_PRODUCT_H
#define ORR_MODELS_PRODUCT_H

#include <orrery/network.h>

typedef struct net_product {
    uint32_t dims, ranks, devices;
    orr_net_shape shape[ORR_NET_DIMS];
    bool is_open[ORR_NET_DIMS]; /* a ring without its last link: a line */
    uint32_t npus[ORR_NET_DIMS], stride[ORR_NET_DIMS];
    uint32_t first_switch[ORR_NET_DIMS]; /* device of group 0's, of a dimension of switches */
} net_product;

/* Bytes per nanosecond of a link of `gb` GB/s, 1 GB being 2^30 bytes here. */
static inline double net_link_speed(double gb)
{
    return gb * (double)(1 << 30) / 1e9; /* in this order: the reference's rounding */
}

/* Links on which a rank can send along a dimension of n ranks: of a ring both ways, but one to the
 * other rank of two. */
static inline uint32_t net_rank_links(orr_net_shape shape, uint32_t n)
{
    const uint32_t most = n > 1 ? n - 1 : 1;
    const uint32_t links = shape == ORR_NET_FULLY_CONNECTED ? most : shape == ORR_NET_RING ? 2 : 1;
    return links < most ? links : most;
}

/* Of two ranks that are neighbours in dimension k: the difference of their numbers. */
static inline uint32_t net_stride_of(const orr_net_config *c, uint32_t k)
{
    uint32_t stride = 1;
    for (uint32_t i = 0; i < k; i++)
        stride *= c->npus[i];
    return stride;
}

void net_product_init(net_product *p, const orr_net_config *cfg);

static inline uint32_t net_product_coordinate(const net_product *p, uint32_t k, uint32_t rank)
{
    return rank / p->stride[k] % p->npus[k];
}

/* The rank that differs from `rank` only in dimension k, with this coordinate there. */
static inline uint32_t net_product_neighbour(const net_product *p,
                                             uint32_t k,
                                             uint32_t rank,
                                             uint32_t coordinate)
{
    return rank + (coordinate - net_product_coordinate(p, k, rank)) * p->stride[k];
}

uint32_t net_product_switch(const net_product *p, uint32_t k, uint32_t rank);
uint32_t net_product_switch_dim(const net_product *p, uint32_t device);
/* The member of a switch's group with this coordinate. */
uint32_t net_product_member(const net_product *p, uint32_t k, uint32_t device, uint32_t coordinate);
/* Is the clockwise direction at most as long as the other?  On a line there is only one. */
bool net_product_is_clockwise(const net_product *p, uint32_t k, uint32_t from, uint32_t to);

/* "12" for a rank, "switch1.3" for the switch of group 3 in dimension 1. */
enum { NET_DEVICE_NAME = 44 };
void net_product_name(const net_product *p, uint32_t device, char out[NET_DEVICE_NAME]);

#endif
