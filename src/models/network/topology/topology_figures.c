/* SPDX-License-Identifier: Apache-2.0 */
/* topology_figures.c - statistics of a topology, and distances of its ranks from the first one.
 *
 * Links are sorted by source; then a search from rank 0 by distance.  Of equally short routes the
 * fewest hops count.  Cost: links times a logarithm. */
#include <orrery/lab/topology.h>

#include "base/memory/heap.h"
#include "topology.h"

typedef struct spread {
    const orr__topology *t;
    uint32_t *first, *links; /* of a device: links[first[d]] to links[first[d + 1] - 1] */
    uint64_t *distance;
    uint32_t *hops;
    double *latency;
    orr_heap heap;
} spread;

#define FAR UINT64_MAX

static void spread_fini(spread *s)
{
    orr_free(s->first);
    orr_free(s->links);
    orr_free(s->distance);
    orr_free(s->hops);
    orr_free(s->latency);
    orr_heap_fini(&s->heap);
}

static bool spread_init(spread *s)
{
    const size_t devices = orr__topology_devices(s->t), links = s->t->link_count;
    s->first = orr_alloc(devices + 2, sizeof *s->first);
    s->links = orr_alloc(links + 1, sizeof *s->links);
    s->distance = orr_alloc(devices, sizeof *s->distance);
    s->hops = orr_alloc(devices, sizeof *s->hops);
    s->latency = orr_alloc(devices, sizeof *s->latency);
    if (!s->first || !s->links || !s->distance || !s->hops || !s->latency)
        return false;
    for (size_t i = 0; i < links; i++)
        s->first[s->t->links[i].from + 2]++;
    for (size_t d = 0; d < devices; d++) {
        s->first[d + 2] += s->first[d + 1];
        s->distance[d] = FAR;
    }
    for (size_t i = 0; i < links; i++)
        s->links[s->first[s->t->links[i].from + 1]++] = (uint32_t)i;
    return true;
}

static bool reach(spread *s, uint32_t here, const orr__wire *l)
{
    const uint64_t distance = s->distance[here] + l->cost;
    const uint32_t hops = s->hops[here] + 1;
    if (l->is_failed || distance > s->distance[l->to] ||
        (distance == s->distance[l->to] && hops >= s->hops[l->to]))
        return true;
    s->distance[l->to] = distance;
    s->hops[l->to] = hops;
    s->latency[l->to] = s->latency[here] + l->latency;
    return orr_heap_push(&s->heap, distance, l->to);
}

static bool search(spread *s)
{
    orr_heap_entry next;
    s->distance[0] = 0;
    bool is_well = orr_heap_push(&s->heap, 0, 0);
    while (is_well && orr_heap_pop(&s->heap, &next)) {
        const uint32_t here = next.value;
        if (next.key != s->distance[here] || (here && here < s->t->ranks && !s->t->ranks_forward))
            continue;
        for (uint32_t i = s->first[here]; i < s->first[here + 1] && is_well; i++)
            is_well = reach(s, here, &s->t->links[s->links[i]]);
    }
    return is_well;
}

static void count(const spread *s, orr_topology_figures *out)
{
    const orr__topology *t = s->t;
    for (uint32_t d = t->ranks; d < orr__topology_devices(t); d++) {
        const uint64_t ports = s->first[d + 1] - s->first[d];
        out->most_ports = ports > out->most_ports ? ports : out->most_ports;
        out->nvswitches += orr__topology_is_nvswitch(t, d);
    }
    for (uint32_t r = 1; r < t->ranks; r++) {
        if (s->distance[r] == FAR)
            continue;
        out->reached++;
        out->hops += s->hops[r];
        out->most_hops = s->hops[r] > out->most_hops ? s->hops[r] : out->most_hops;
        if (s->latency[r] > out->most_latency_ns)
            out->most_latency_ns = s->latency[r];
    }
    for (size_t i = 0; i < t->link_count; i++)
        out->has_costs |= t->links[i].cost > 1;
}

orr_code orr_topology_measure(const orr_topology *t, orr_topology_figures *out, orr_error *err)
{
    spread s = {.t = t};
    *out = (orr_topology_figures){.ranks = t->ranks,
                                  .switches = orr__topology_devices(t) - t->ranks,
                                  .links = t->link_count,
                                  .ranks_forward = t->ranks_forward};
    const bool is_well = spread_init(&s) && search(&s);
    if (is_well)
        count(&s, out);
    spread_fini(&s);
    return is_well ? ORR_OK : orr_no_memory(err);
}
