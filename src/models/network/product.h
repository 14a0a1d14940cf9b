/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - where things are in a network of several dimensions: the product of rings, switches
 * and fully connected groups that ASTRA-sim's network file describes.
 *
 * Devices are the ranks, then the switches, dimension by dimension.  A rank's coordinate in
 * dimension k is rank / stride[k] % npus[k].  The ranks that differ in dimension k only form a
 * group; a dimension of the shape Switch has one switch for each group. */
#ifndef ORR_MODELS_PRODUCT_H
#define ORR_MODELS_PRODUCT_H

#include <orrery/network.h>

typedef struct orr__product {
    uint32_t dims, ranks, devices;
    orr_net_shape shape[ORR_NET_DIMS];
    uint32_t npus[ORR_NET_DIMS], stride[ORR_NET_DIMS];
    uint32_t first_switch[ORR_NET_DIMS]; /* device of group 0's, of a dimension of switches */
} orr__product;

/* Bytes per nanosecond of a link of `gb` GB/s, 1 GB being 2^30 bytes here. */
static inline double orr__link_speed(double gb)
{
    return gb * (double)(1 << 30) / 1e9; /* in this order: the reference's rounding */
}

void orr__product_init(orr__product *p, const orr_net_config *cfg);

static inline uint32_t orr__product_coordinate(const orr__product *p, uint32_t k, uint32_t rank)
{
    return rank / p->stride[k] % p->npus[k];
}

/* The rank that differs from `rank` in dimension k only, and has this coordinate there. */
static inline uint32_t orr__product_neighbour(const orr__product *p,
                                              uint32_t k,
                                              uint32_t rank,
                                              uint32_t coordinate)
{
    return rank + (coordinate - orr__product_coordinate(p, k, rank)) * p->stride[k];
}

uint32_t orr__product_switch(const orr__product *p, uint32_t k, uint32_t rank);
uint32_t orr__product_switch_dim(const orr__product *p, uint32_t device);
/* The member of a switch's group with this coordinate. */
uint32_t orr__product_member(const orr__product *p,
                             uint32_t k,
                             uint32_t device,
                             uint32_t coordinate);
/* One step clockwise is shorter than, or as short as, one step back. */
bool orr__product_is_clockwise(const orr__product *p, uint32_t k, uint32_t from, uint32_t to);

/* "12" for a rank, "switch1.3" for the switch of group 3 in dimension 1. */
enum { ORR__DEVICE_NAME = 44 };
void orr__product_name(const orr__product *p, uint32_t device, char out[ORR__DEVICE_NAME]);

#endif
