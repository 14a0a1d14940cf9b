/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_topology.c - any bytes as a link-level topology.  What is refused must have a place and
 * words; through what is taken some ways are walked, which must end, over links that are there. */
#include "models/network/routes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_LINKS = 3000, WAYS = 24 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_topology(const orr__topology *t)
{
    const uint32_t devices = orr__topology_devices(t);
    uint64_t ranks = 1;
    require(t->ranks >= 2 && t->link_count <= MOST_LINKS);
    for (uint32_t k = 0; k < t->dims; k++)
        ranks *= t->npus[k];
    require(ranks == t->ranks);
    for (size_t i = 0; i < t->link_count; i++) {
        const orr__wire *l = &t->links[i];
        require(l->from < devices && l->to < devices && l->from != l->to);
        require(l->speed > 0 && l->latency >= 0 && l->cost > 0);
    }
}

static void walk(orr__routes *r, const orr__topology *t, uint32_t from, uint32_t to)
{
    orr_error err;
    uint32_t steps = 0, link;
    while ((link = orr__routes_next(r, from, to, from, &err)) < NET_LINK_ARRIVED) {
        require(t->links[link].from == from && ++steps <= orr__topology_devices(t));
        from = t->links[link].to;
    }
    require(link == NET_LINK_ARRIVED ? from == to : err.code == ORR_EINPUT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr__topology *t;
    orr__routes *r;
    orr_error err;
    const orr_code code =
        orr__topology_parse((orr_span){data, size}, "net.yml", MOST_LINKS, &t, &err);
    if (code) {
        require(!t && err.message[0] && err.where.path[0]);
        return 0;
    }
    if (!t)
        return 0;
    check_topology(t);
    require(orr__routes_create(t, 4096, &r, &err) == ORR_OK);
    for (uint32_t i = 0; i < WAYS; i++)
        walk(r, t, i * 7 % t->ranks, (i * 13 + 1) % t->ranks);
    orr__routes_destroy(r);
    orr__topology_destroy(t);
    return 0;
}
