/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - arithmetic of ranks, groups and switches; no tables, so that it costs nothing to
 * have. */
#include "product.h"

#include <stdio.h>

void orr__product_init(orr__product *p, const orr_net_config *cfg)
{
    *p = (orr__product){.dims = cfg->dims, .ranks = 1};
    for (uint32_t k = 0; k < cfg->dims; k++) {
        p->shape[k] = cfg->shape[k];
        p->npus[k] = cfg->npus[k];
        p->stride[k] = p->ranks;
        p->ranks *= cfg->npus[k];
    }
    p->devices = p->ranks;
    for (uint32_t k = 0; k < cfg->dims; k++) {
        p->first_switch[k] = p->devices;
        if (p->shape[k] == ORR_NET_SWITCH)
            p->devices += p->ranks / p->npus[k];
    }
}

uint32_t orr__product_switch(const orr__product *p, uint32_t k, uint32_t rank)
{
    const uint32_t stride = p->stride[k];
    return p->first_switch[k] + rank / (stride * p->npus[k]) * stride + rank % stride;
}

uint32_t orr__product_switch_dim(const orr__product *p, uint32_t device)
{
    uint32_t k = p->dims - 1;
    while (k && (p->shape[k] != ORR_NET_SWITCH || device < p->first_switch[k]))
        k--;
    return k;
}

uint32_t orr__product_member(const orr__product *p,
                             uint32_t k,
                             uint32_t device,
                             uint32_t coordinate)
{
    const uint32_t stride = p->stride[k], group = device - p->first_switch[k];
    return group / stride * stride * p->npus[k] + group % stride + coordinate * stride;
}

bool orr__product_is_clockwise(const orr__product *p, uint32_t k, uint32_t from, uint32_t to)
{
    const uint32_t n = p->npus[k];
    const uint32_t clockwise =
        (orr__product_coordinate(p, k, to) + n - orr__product_coordinate(p, k, from)) % n;
    return clockwise <= n - clockwise;
}

void orr__product_name(const orr__product *p, uint32_t device, char out[ORR__DEVICE_NAME])
{
    if (device < p->ranks) {
        snprintf(out, ORR__DEVICE_NAME, "%u", device);
        return;
    }
    const uint32_t k = orr__product_switch_dim(p, device);
    snprintf(out, ORR__DEVICE_NAME, "switch%u.%u", k, device - p->first_switch[k]);
}
