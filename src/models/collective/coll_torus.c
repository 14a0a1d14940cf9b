/* SPDX-License-Identifier: Apache-2.0 */
/* coll_torus.c - see coll_torus.h.
 *
 * The data of a collective are cut into one part per axis, in proportion to the rates of the axes.
 * Part i is reduce-scattered along axis i, then i + 1, and so on around the axes, each time in both
 * directions; so at any time every axis carries one part.  A phase of all parts ends before the
 * next begins: the sum over phases of the slowest part is a schedule that exists, so no time is
 * below what the links can do.  With axes of one length it is the bound: all links busy all the
 * time.
 *
 * Between tori (Trainium's instances) a rank goes through its NICs, in chunks that follow each
 * other, so that both networks are busy at once but for the first chunk.
 *
 * Cost: axes squared; a shape is linear in the members. */
#include "coll_torus.h"

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/network/product.h"

#include <math.h>
#include <string.h>

/* Chunks that follow each other from the torus to the network outside. */
enum { CHUNKS = 4 };

/* Nobody has published measured times of single collectives by size: links may reach this part of
 * their rate, and hops take this much longer or shorter. */
static const double LEAST_RATE = 0.6, HOP_SPREAD = 2;

/* ---- the shape ---- */

/* Along one dimension: the places that have members. */
typedef struct places {
    uint32_t count, hops;
    bool is_even; /* equally far apart */
    bool is_closed;
} places;

static double hop_latency(const orr_net_config *c, uint32_t k)
{
    /* Through a switch: a link up and a link down. */
    return c->latency_ns[k] * (c->shape[k] == ORR_NET_SWITCH ? 2 : 1);
}

/* Two neighbours have one link, which wraps no more than a line does. */
static bool has_wraparound(const orr_net_config *c, uint32_t k)
{
    return !c->is_open[k] && c->npus[k] > 2;
}

static bool find_places(
    const orr_net_config *c, uint32_t k, const uint32_t *members, uint32_t count, places *out)
{
    const uint32_t n = c->npus[k], stride = net_stride_of(c, k);
    uint64_t *seen = orr_alloc(n / 64 + 1, sizeof *seen);
    uint32_t before = UINT32_MAX, step = 0;
    *out = (places){.is_even = true, .hops = 1};
    if (!seen)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = members[i] / stride % n;
        seen[at / 64] |= UINT64_C(1) << at % 64;
    }
    for (uint32_t at = 0; at < n; at++) {
        if (!(seen[at / 64] >> at % 64 & 1))
            continue;
        if (before != UINT32_MAX && step && at - before != step)
            out->is_even = false;
        step = before == UINT32_MAX ? 0 : at - before;
        before = at;
        out->count++;
    }
    orr_free(seen);
    const bool wraps = c->shape[k] == ORR_NET_RING && has_wraparound(c, k);
    if (out->count == 2 && wraps && step > n - step)
        step = n - step; /* the shorter way round */
    out->hops = step ? step : 1;
    /* Only if the last place is as far from the first as all others from their next. */
    out->is_closed = wraps && out->is_even && (uint64_t)out->count * out->hops == n;
    return true;
}

uint32_t torus_step(
    const orr_net_config *c, uint32_t k, uint32_t hops, uint32_t rank, bool is_forward)
{
    const uint32_t n = c->npus[k], stride = net_stride_of(c, k), at = rank / stride % n;
    const bool wraps = has_wraparound(c, k), ends = is_forward ? at + hops >= n : at < hops;
    if (ends && !wraps)
        return UINT32_MAX;
    const uint32_t to = (is_forward ? at + hops : at + n - hops) % n;
    return rank - at * stride + to * stride;
}

/* ---- one ring through members that are no box ---- */

/* Adds one crossing of each link on the way; the largest number of crossings per rate so far. */
static bool cross(const orr_net_config *c,
                  orr_map *crossings,
                  uint32_t from,
                  uint32_t to,
                  double *most,
                  double *latency)
{
    double ns = 0;
    for (uint32_t k = 0, at = from; k < c->dims; k++) {
        const uint32_t n = c->npus[k], stride = net_stride_of(c, k);
        const uint32_t here = at / stride % n, end = to / stride % n;
        const bool is_ring = c->shape[k] == ORR_NET_RING;
        const uint32_t way = (end + n - here) % n;
        /* Without wraparound there is one way only; on a ring a tie goes clockwise. */
        const bool is_cw = has_wraparound(c, k) ? way <= n - way : here < end;
        while (at / stride % n != end) {
            /* By dimension, the rank it leaves, and direction. */
            const uint64_t link = ((uint64_t)k << 32 | at) * 2 + (is_ring && !is_cw);
            const uint32_t count = orr_map_find(crossings, link, 0) + 1;
            if (!orr_map_put(crossings, link, count, NULL))
                return false;
            const double cost = count / net_link_speed(c->bandwidth[k]);
            *most = cost > *most ? cost : *most;
            ns += hop_latency(c, k);
            at = is_ring ? torus_step(c, k, 1, at, is_cw) : at - here * stride + end * stride;
        }
    }
    *latency = ns > *latency ? ns : *latency;
    return true;
}

/* With data to both neighbours, or to the next one only. */
static bool find_ring(const orr_net_config *c,
                      const uint32_t *members,
                      uint32_t count,
                      bool is_both,
                      torus_shape *out)
{
    memset(out, 0, sizeof *out);
    out->ranks = count;
    out->nodes = 1;
    out->is_ring = 1;
    orr_map *crossings = orr_map_create(0);
    bool ok = crossings != NULL;
    for (uint32_t i = 0; ok && i < count; i++) {
        const uint32_t a = members[i], b = members[i + 1 < count ? i + 1 : 0];
        /* Half of the data goes either way round (half_of). */
        ok = cross(c, crossings, a, b, &out->ring_cost, &out->ring_latency_ns);
        if (ok && is_both)
            ok = cross(c, crossings, b, a, &out->ring_cost, &out->ring_latency_ns);
    }
    orr_map_destroy(crossings);
    return ok;
}

bool torus_ring_of(const orr_net_config *c,
                   const uint32_t *members,
                   uint32_t count,
                   torus_shape *out)
{
    return find_ring(c, members, count, false, out);
}

bool torus_shape_of(const orr_net_config *c,
                    const uint32_t *members,
                    uint32_t count,
                    torus_shape *out)
{
    uint64_t volume = 1;
    bool is_box = true;
    memset(out, 0, sizeof *out);
    out->ranks = count;
    out->nodes = 1;
    for (uint32_t k = 0; k < c->dims; k++) {
        places at;
        if (!find_places(c, k, members, count, &at))
            return false;
        volume *= at.count;
        if (at.count < 2)
            continue;
        if (c->shape[k] != ORR_NET_RING) {
            const double links = c->shape[k] == ORR_NET_SWITCH ? 1 : at.count - 1;
            const double rate = net_link_speed(c->bandwidth[k]) * links;
            out->out_rate = out->nodes == 1 || rate < out->out_rate ? rate : out->out_rate;
            out->out_latency_ns += hop_latency(c, k);
            out->nodes *= at.count;
            continue;
        }
        /* Only along rings: elsewhere all places are equally far from each other. */
        is_box = is_box && at.is_even;
        torus_axis *a = &out->axis[out->axes++];
        a->count = at.count;
        a->hops = at.hops;
        a->is_closed = at.is_closed;
        a->rate = net_link_speed(c->bandwidth[k]);
        a->latency_ns = c->latency_ns[k];
    }
    /* As many members as places: every combination of places has one. */
    if (is_box && volume == count)
        return true;
    return find_ring(c, members, count, true, out);
}

/* ---- times ---- */

static double axis_rate(const torus_axis *a)
{
    return a->is_closed ? 2 * a->rate : a->rate; /* a line's ends have one link */
}

static double all_rates(const torus_shape *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->axes; i++)
        sum += axis_rate(&s->axis[i]);
    return sum;
}

/* Half an all-reduce of a byte: its time without latency, and bytes a rank sends on each axis. */
static double half_ns(const torus_shape *s, double sent[TORUS_AXES])
{
    double left[TORUS_AXES], ns = 0;
    for (uint32_t i = 0; i < s->axes; i++) {
        left[i] = axis_rate(&s->axis[i]) / all_rates(s);
        sent[i] = 0;
    }
    for (uint32_t phase = 0; phase < s->axes; phase++) {
        double slowest = 0;
        for (uint32_t i = 0; i < s->axes; i++) {
            const uint32_t k = (i + phase) % s->axes;
            const torus_axis *a = &s->axis[k];
            const double bytes = left[i] * (1 - 1.0 / a->count);
            const double own = bytes / axis_rate(a);
            sent[k] += bytes;
            left[i] /= a->count;
            slowest = own > slowest ? own : slowest;
        }
        ns += slowest;
    }
    return ns;
}

/* Of an all-to-all of a byte per rank: the load of the busiest link of an axis in one direction,
 * and what a rank sends and forwards on it on average. */
static double pair_load(const torus_axis *a, double *sent)
{
    const double n = a->count;
    if (a->is_closed) {
        /* Distances in both directions add up to n^2 / 4, or (n^2 - 1) / 4. */
        *sent = (n * n - (a->count & 1)) / 4 / n;
        return *sent / 2;
    }
    *sent = (n * n - 1) / 3 / n;
    /* All pairs on different sides of the middle. */
    return (double)(a->count / 2) * ((a->count + 1) / 2) / n;
}

static double pairs_ns(const torus_shape *s, double sent[TORUS_AXES])
{
    double slowest = 0;
    for (uint32_t i = 0; i < s->axes; i++) {
        const double own = pair_load(&s->axis[i], &sent[i]) / s->axis[i].rate;
        slowest = own > slowest ? own : slowest;
    }
    return slowest; /* each phase: a part on each axis */
}

/* The most distant members along all axes. */
static double hops_ns(const torus_shape *s)
{
    double ns = 0;
    for (uint32_t i = 0; i < s->axes; i++) {
        const torus_axis *a = &s->axis[i];
        ns += (a->is_closed ? a->count / 2 : a->count - 1) * (double)a->hops * a->latency_ns;
    }
    return ns;
}

static double sum_of(const torus_shape *s, const double *list)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->axes; i++)
        sum += list[i];
    return sum;
}

void torus_parts(const torus_shape *s, bool is_pairs, double part[TORUS_AXES])
{
    if (is_pairs)
        pairs_ns(s, part);
    else
        half_ns(s, part);
    const double sum = sum_of(s, part);
    for (uint32_t i = 0; i < s->axes; i++)
        part[i] /= sum;
}

void torus_loads(const torus_shape *s, bool is_pairs, double load[TORUS_AXES])
{
    double sent[TORUS_AXES];
    if (is_pairs)
        pairs_ns(s, sent);
    else
        half_ns(s, sent);
    const double sum = sum_of(s, sent);
    for (uint32_t i = 0; i < s->axes; i++) {
        double unused;
        const double bytes = is_pairs               ? pair_load(&s->axis[i], &unused)
                             : s->axis[i].is_closed ? sent[i] / 2
                                                    : sent[i];
        load[i] = bytes / sum;
    }
}

/* Steps outside: doubling distances. */
static unsigned doublings(uint64_t n)
{
    unsigned steps = 0;
    while (steps < 63 && UINT64_C(1) << steps < n)
        steps++;
    return steps;
}

typedef struct parts {
    double inside_ns, outside_ns, latency_ns, inside_bytes, outside_bytes;
} parts;

/* An all-gather or reduce-scatter. */
static parts half_of(const torus_shape *s, double bytes)
{
    parts p = {0};
    double sent[TORUS_AXES], volume = 1;
    const double n = s->ranks;
    if (s->is_ring) {
        /* Half goes either way, and the farthest member is half a lap away. */
        p.inside_ns = bytes * (1 - 1 / n) / 2 * s->ring_cost;
        p.inside_bytes = bytes * (1 - 1 / n);
        p.latency_ns = s->ranks / 2 * s->ring_latency_ns;
        return p;
    }
    for (uint32_t i = 0; i < s->axes; i++)
        volume *= s->axis[i].count;
    p.inside_ns = bytes * half_ns(s, sent);
    p.inside_bytes = bytes * sum_of(s, sent);
    p.latency_ns = hops_ns(s);
    if (s->nodes > 1) {
        /* Only what is left after the reduce-scatter inside. */
        p.outside_bytes = bytes / volume * (1 - 1.0 / (double)s->nodes);
        p.outside_ns = p.outside_bytes / s->out_rate;
        p.latency_ns += doublings(s->nodes) * s->out_latency_ns;
    }
    return p;
}

static parts pairs_of(const torus_shape *s, double bytes)
{
    parts p = {0};
    double sent[TORUS_AXES];
    if (s->is_ring) {
        /* A byte travels a quarter of the lap on average; each direction carries half. */
        p.inside_ns = bytes * s->ranks / 8 * s->ring_cost;
        p.inside_bytes = bytes * s->ranks / 4;
        p.latency_ns = s->ranks / 2 * s->ring_latency_ns;
        return p;
    }
    p.inside_ns = bytes * pairs_ns(s, sent);
    p.inside_bytes = bytes * sum_of(s, sent);
    p.latency_ns = hops_ns(s);
    if (s->nodes > 1) {
        p.outside_bytes = bytes * (1 - 1.0 / (double)s->nodes);
        p.outside_ns = p.outside_bytes / s->out_rate;
        p.latency_ns += s->out_latency_ns;
    }
    return p;
}

static parts twice(parts p)
{
    return (parts){2 * p.inside_ns, 2 * p.outside_ns, 2 * p.latency_ns, 2 * p.inside_bytes,
                   2 * p.outside_bytes};
}

bool torus_cost_of(const torus_shape *s, orr_collective kind, uint64_t bytes, nccl_cost *out)
{
    parts p;
    const double all = (double)bytes;
    *out = (nccl_cost){.algorithm = "torus", .protocol = "none", .extrapolates = true};
    if (s->ranks < 2)
        return s->ranks == 1;
    switch (kind) {
    case ORR_COLL_ALL_TO_ALL:
        p = pairs_of(s, all);
        break;
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_REDUCE_SCATTER_BLOCK:
    case ORR_COLL_GATHER:
    case ORR_COLL_SCATTER:
        p = half_of(s, all);
        break;
    case ORR_COLL_ALL_REDUCE:
    case ORR_COLL_BROADCAST: /* a scatter and an all-gather */
    case ORR_COLL_REDUCE:
        p = twice(half_of(s, all));
        break;
    case ORR_COLL_BARRIER:
        p = twice(half_of(s, 0));
        break;
    default:
        return false;
    }
    const double slower = p.inside_ns > p.outside_ns ? p.inside_ns : p.outside_ns;
    /* The faster network is hidden behind the slower but for one chunk. */
    const double moving = slower + (p.inside_ns + p.outside_ns - slower) / CHUNKS;
    out->latency_ns = p.latency_ns;
    out->time_ns = p.latency_ns + moving;
    out->low_ns = p.latency_ns / HOP_SPREAD + moving;
    out->high_ns = p.latency_ns * HOP_SPREAD + moving / LEAST_RATE;
    out->up_bytes = p.inside_bytes;
    out->out_bytes = p.outside_bytes;
    return true;
}

bool torus_send_cost_of(const torus_shape *s, uint64_t bytes, nccl_cost *out)
{
    *out = (nccl_cost){.algorithm = "torus", .protocol = "none", .extrapolates = true};
    if (!s->is_ring)
        return false;
    const double moving = (double)bytes * s->ring_cost;
    out->latency_ns = s->ring_latency_ns;
    out->time_ns = out->latency_ns + moving;
    out->low_ns = out->latency_ns / HOP_SPREAD + moving;
    out->high_ns = out->latency_ns * HOP_SPREAD + moving / LEAST_RATE;
    out->up_bytes = (double)bytes;
    return true;
}
