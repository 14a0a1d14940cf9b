/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - arithmetic of ranks, groups and switches; without tables, so that it costs no
 * memory. */
#include "product.h"

#include "base/text/number.h"

#include <string.h>

void net_product_init(net_product *p, const orr_net_config *cfg)
{
    *p = (net_product){.dims = cfg->dims, .ranks = 1};
    for (uint32_t k = 0; k < cfg->dims; k++) {
        p->shape[k] = cfg->shape[k];
        p->npus[k] = cfg->npus[k];
        p->is_open[k] = cfg->is_open[k] && cfg->npus[k] > 2; /* two are one link either way */
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

uint32_t net_product_switch(const net_product *p, uint32_t k, uint32_t rank)
{
    const uint32_t stride = p->stride[k];
    return p->first_switch[k] + rank / (stride * p->npus[k]) * stride + rank % stride;
}

uint32_t net_product_switch_dim(const net_product *p, uint32_t device)
{
    uint32_t k = p->dims - 1;
    while (k && (p->shape[k] != ORR_NET_SWITCH || device < p->first_switch[k]))
        k--;
    return k;
}

uint32_t net_product_member(const net_product *p, uint32_t k, uint32_t device, uint32_t coordinate)
{
    const uint32_t stride = p->stride[k], group = device - p->first_switch[k];
    return group / stride * stride * p->npus[k] + group % stride + coordinate * stride;
}

bool net_product_is_clockwise(const net_product *p, uint32_t k, uint32_t from, uint32_t to)
{
    const uint32_t n = p->npus[k];
    const uint32_t here = net_product_coordinate(p, k, from);
    const uint32_t there = net_product_coordinate(p, k, to), clockwise = (there + n - here) % n;
    return p->is_open[k] ? here <= there : clockwise <= n - clockwise;
}

void net_product_name(const net_product *p, uint32_t device, char out[NET_DEVICE_NAME])
{
    if (device < p->ranks) {
        out[orr_u64_text(device, out)] = 0;
        return;
    }
    const uint32_t k = net_product_switch_dim(p, device);
    size_t n = strlen("switch");
    memcpy(out, "switch", n);
    n += orr_u64_text(k, out + n);
    out[n++] = '.';
    n += orr_u64_text(device - p->first_switch[k], out + n);
    out[n] = 0;
}
