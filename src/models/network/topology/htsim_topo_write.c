/* SPDX-License-Identifier: Apache-2.0 */
/* htsim_topo_write.c - cables as htsim's .topo file, if they are one of its fat trees.
 *
 * Tier 0 are the switches with hosts, tier 1 those next to them, tier 2 the rest.  The tree must be
 * regular, and its hosts numbered along its switches.  What remains free are the names: the
 * aggregation switches of a pod all see the same hosts, so any order of them will do, as long as
 * each core switch has one of every pod and those that share a core switch in one pod do so in
 * all. */
#include "topology_kinds.h"

#include "base/memory/map.h"

#include <inttypes.h>

enum { TIERS = 3, NO_TIER = 255 };

typedef struct shape {
    const orr__cabling *c;
    uint8_t *tier;       /* by node; hosts NO_TIER */
    uint32_t *up, *down; /* cables, by node */
    uint32_t *pod;       /* by node: a switch that stands for its pod, then the pod's number */
    uint32_t *group;     /* by node: of hosts their switch; of aggs and cores their group */
    orr_map *pairs;      /* of two switches: cables between them */
    uint64_t switches[TIERS], radix_down[TIERS], radix_up[TIERS], bundle[TIERS];
    uint64_t rate[TIERS], delay_ps[TIERS]; /* of the cables below a tier */
    uint64_t pods;
    uint32_t first_pod;
    const char *odd; /* why it is no such tree */
} shape;

static void refuse(shape *s, const char *why)
{
    if (!s->odd)
        s->odd = why;
}

static bool is_host(const shape *s, uint32_t node)
{
    return s->c->kinds[node] == ORR__HOST;
}

/* ---- tiers ---- */

static void lift(shape *s, uint8_t below, uint8_t to)
{
    for (size_t i = 0; i < 2 * s->c->cable_count; i++) {
        const orr__cable *l = &s->c->cables[i / 2];
        const uint32_t a = i % 2 ? l->b : l->a, b = i % 2 ? l->a : l->b;
        const bool is_below = below == NO_TIER ? is_host(s, a) : s->tier[a] == below;
        if (is_below && !is_host(s, b) && s->tier[b] == NO_TIER)
            s->tier[b] = to;
    }
}

static void find_tiers(shape *s)
{
    memset(s->tier, NO_TIER, s->c->nodes);
    lift(s, NO_TIER, 0);
    lift(s, 0, 1);
    lift(s, 1, 2);
    for (uint32_t n = 0; n < s->c->nodes; n++) {
        if (is_host(s, n))
            continue;
        if (s->tier[n] == NO_TIER)
            refuse(s, "it has more than three tiers of switches");
        else
            s->switches[s->tier[n]]++;
    }
    if (!s->switches[1])
        refuse(s, "it has fewer than two tiers of switches");
}

/* One speed and one latency a tier; cables join a tier with the one below. */
static void take_cable(shape *s, const orr__cable *l)
{
    uint32_t low = l->a, high = l->b;
    if (is_host(s, high) || (!is_host(s, low) && s->tier[low] > s->tier[high])) {
        low = l->b;
        high = l->a;
    }
    const unsigned k = is_host(s, high) ? NO_TIER : s->tier[high];
    if (k >= TIERS || (is_host(s, low) ? k != 0 : s->tier[low] + 1u != k)) {
        refuse(s, "a link is not between one tier and the next");
        return;
    }
    if (!s->rate[k]) {
        s->rate[k] = l->rate;
        s->delay_ps[k] = l->delay_ps;
    }
    if (s->rate[k] != l->rate || s->delay_ps[k] != l->delay_ps || l->error > 0)
        refuse(s, "links of one tier differ, or lose packets");
    s->up[low]++;
    s->down[high]++;
    if (k == 0)
        s->group[low] = high;
}

static void take_radixes(shape *s)
{
    for (uint32_t n = 0; n < s->c->nodes && !s->odd; n++) {
        if (is_host(s, n)) {
            if (s->up[n] != 1)
                refuse(s, "a host has more than one link");
            continue;
        }
        const unsigned k = s->tier[n];
        if (!s->radix_down[k]) {
            s->radix_down[k] = s->down[n];
            s->radix_up[k] = s->up[n];
        }
        if (s->radix_down[k] != s->down[n] || s->radix_up[k] != s->up[n])
            refuse(s, "switches of one tier have different numbers of links");
    }
}

/* ---- pods ---- */

static uint32_t root_of(uint32_t *pod, uint32_t n)
{
    while (pod[n] != n)
        n = pod[n] = pod[pod[n]];
    return n;
}

static bool join_pods(shape *s)
{
    const orr__cabling *c = s->c;
    bool is_well = true;
    for (uint32_t n = 0; n < c->nodes; n++)
        s->pod[n] = n;
    for (size_t i = 0; i < c->cable_count && is_well; i++) {
        const orr__cable *l = &c->cables[i];
        if (is_host(s, l->a) || is_host(s, l->b))
            continue;
        const bool is_a_low = s->tier[l->a] < s->tier[l->b];
        const uint32_t low = is_a_low ? l->a : l->b, high = is_a_low ? l->b : l->a;
        const uint64_t pair = (uint64_t)low << 32 | high;
        is_well = orr_map_put(s->pairs, pair, orr_map_find(s->pairs, pair, 0) + 1, NULL);
        if (s->tier[high] == 1)
            s->pod[root_of(s->pod, high)] = root_of(s->pod, low);
    }
    return is_well;
}

/* Side by side: as many between any two that have any. */
static void take_bundles(shape *s)
{
    s->bundle[0] = 1;
    for (size_t i = 0; i < s->c->cable_count && !s->odd; i++) {
        const orr__cable *l = &s->c->cables[i];
        if (is_host(s, l->a) || is_host(s, l->b))
            continue;
        const bool is_a_low = s->tier[l->a] < s->tier[l->b];
        const uint32_t low = is_a_low ? l->a : l->b, high = is_a_low ? l->b : l->a;
        const uint32_t n = orr_map_find(s->pairs, (uint64_t)low << 32 | high, 0);
        const unsigned k = s->tier[high];
        if (!s->bundle[k])
            s->bundle[k] = n;
        if (s->bundle[k] != n)
            refuse(s, "the numbers of links between two switches differ");
    }
}

/* Hosts follow their switches, and these their pods; each tor has every agg of its pod. */
static void check_pods(shape *s)
{
    const orr__cabling *c = s->c;
    uint32_t last_tor = UINT32_MAX, last_pod = UINT32_MAX;
    const uint64_t aggs = s->radix_up[0] / s->bundle[1], tors = s->radix_down[1] / s->bundle[1];
    for (uint32_t host = 0; host < c->hosts && !s->odd; host++) {
        const uint32_t tor = s->group[host], pod = root_of(s->pod, tor);
        if ((tor != last_tor) != (host % s->radix_down[0] == 0))
            refuse(s, "its hosts are not numbered along its switches");
        if ((pod != last_pod) != (host % (s->radix_down[0] * tors) == 0))
            refuse(s, "its hosts are not numbered along its pods");
        s->pods += pod != last_pod;
        if (host == 0)
            s->first_pod = pod;
        last_tor = tor;
        last_pod = pod;
    }
    if (s->switches[0] != s->pods * tors || s->switches[1] != s->pods * aggs)
        refuse(s,
               "its pods are not alike, or not every switch of a pod is joined with those above");
    if (!s->switches[2] && s->pods != 1)
        refuse(s, "its leaves do not all meet");
}

/* A group are the aggs, one of each pod, that have the same cores. */
static void check_cores(shape *s)
{
    const orr__cabling *c = s->c;
    for (unsigned pass = 0; pass < 2 && s->switches[2]; pass++)
        for (size_t i = 0; i < c->cable_count && !s->odd; i++) {
            const orr__cable *l = &c->cables[i];
            if (is_host(s, l->a) || is_host(s, l->b) || s->tier[l->a] + s->tier[l->b] != 3)
                continue;
            const uint32_t core = s->tier[l->a] == 2 ? l->a : l->b,
                           agg = core == l->a ? l->b : l->a;
            const bool is_first = root_of(s->pod, agg) == s->first_pod;
            uint32_t *own = pass == 0 ? &s->group[core] : &s->group[agg];
            const uint32_t group = pass == 0 ? agg + 1 : s->group[core];
            if (pass == 0 && !is_first)
                continue;
            if ((*own && *own != group) || !group)
                refuse(s, "its core switches do not have one switch of each pod in common");
            *own = group;
        }
    if (s->switches[2] && s->radix_down[2] != s->pods * s->bundle[2])
        refuse(s, "its core switches do not have one switch of each pod");
}

/* ---- words ---- */

static void check_numbers(shape *s, unsigned tiers)
{
    for (unsigned k = 0; k < tiers; k++) {
        if (s->rate[k] % 1000000000 || s->delay_ps[k] % 1000 || !s->delay_ps[k])
            refuse(s, "htsim has whole Gb/s, and whole nanoseconds above 0");
        if (k + 1 == tiers)
            continue;
        const uint64_t down = s->radix_down[k] * (s->rate[k] / 1000000000);
        const uint64_t up = s->radix_up[k] * (s->rate[k + 1] / 1000000000);
        if (!up || down % up)
            refuse(s, "htsim has whole ratios of oversubscription");
    }
}

static void write_words(const shape *s, unsigned tiers, orr_buf *b)
{
    const uint64_t hosts = s->c->hosts;
    orr_buf_print(b, "Nodes %" PRIu64 "\nTiers %u\nPodsize %" PRIu64 "\n", hosts, tiers,
                  hosts / s->pods);
    for (unsigned k = 0; k < tiers; k++) {
        const uint64_t gbps = s->rate[k] / 1000000000;
        orr_buf_print(b,
                      "\nTier %u\nDownlink_speed_Gbps %" PRIu64 "\nDownlink_Latency_ns %" PRIu64
                      "\nSwitch_Latency_ns 0\nRadix_Down %" PRIu64 "\n",
                      k, gbps, s->delay_ps[k] / 1000, s->radix_down[k]);
        if (k > 0)
            orr_buf_print(b, "Bundle %" PRIu64 "\n", s->bundle[k]);
        if (k + 1 < tiers)
            orr_buf_print(b, "Radix_Up %" PRIu64 "\nOversubscribed %" PRIu64 "\n", s->radix_up[k],
                          s->radix_down[k] * gbps /
                              (s->radix_up[k] * (s->rate[k + 1] / 1000000000)));
    }
}

static bool examine(shape *s)
{
    find_tiers(s);
    for (size_t i = 0; i < s->c->cable_count && !s->odd; i++)
        take_cable(s, &s->c->cables[i]);
    if (!s->odd)
        take_radixes(s);
    if (s->odd)
        return true;
    if (!join_pods(s))
        return false;
    take_bundles(s);
    if (!s->odd)
        check_pods(s);
    if (!s->odd)
        check_cores(s);
    if (!s->odd)
        check_numbers(s, s->switches[2] ? 3 : 2);
    return true;
}

orr_code orr__htsim_topo_words(const orr__cabling *c, orr_buf *out, orr_error *err)
{
    shape s = {.c = c, .pairs = orr_map_create(c->cable_count)};
    s.tier = orr_alloc(c->nodes, 1);
    s.up = orr_alloc(c->nodes, sizeof *s.up);
    s.down = orr_alloc(c->nodes, sizeof *s.down);
    s.pod = orr_alloc(c->nodes, sizeof *s.pod);
    s.group = orr_alloc(c->nodes, sizeof *s.group);
    const bool is_well = s.pairs && s.tier && s.up && s.down && s.pod && s.group && examine(&s);
    if (is_well && !s.odd)
        write_words(&s, s.switches[2] ? 3 : 2, out);
    orr_map_destroy(s.pairs);
    orr_free(s.tier);
    orr_free(s.up);
    orr_free(s.down);
    orr_free(s.pod);
    orr_free(s.group);
    if (!is_well)
        return orr_no_memory(err);
    return s.odd ? orr_fail(err, ORR_EUSAGE, NULL, "this is no fat tree of htsim's: %s", s.odd)
                 : ORR_OK;
}
