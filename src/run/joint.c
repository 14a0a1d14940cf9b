/* SPDX-License-Identifier: Apache-2.0 */
/* joint.c - see joint.h.
 *
 * A *group* here is a set of ranks that have met: a communicator, all ranks, or those that differ
 * in some dimensions only (involved_dim).  It has the placement of its members, as input of the
 * NCCL model, and caches the load of its collectives on each port.  The k-th collective of a member
 * matches the k-th of the others. */
#include "joint.h"

#include "fold/fold.h"
#include "fold/fold_links.h"
#include "watch.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "models/collective/coll.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/network/fluid/fluid.h"
#include "models/network/net_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Above this many pairs of members each gets 64 partners, evenly spread: links of a large network
 * see the same load, and a group is set up in linear time. */
enum { ALL_PAIRS = 1 << 22, PARTNERS = 64 };

/* The load of a collective on the ports, for a given mix of traffic inside and between hosts. */
typedef struct traffic {
    double up, out; /* relative to the larger of the two */
    bool is_pairs;  /* all pairs; else neighbours */
    fluid_use *use; /* load of a flow of this mix on each resource */
} traffic;

/* The cost of a collective without contention. */
typedef struct known_cost {
    orr_collective kind;
    uint64_t bytes; /* as the NCCL model counts them (joint_bytes_of) */
    nccl_cost cost;
} known_cost;

typedef struct meeting_of_ranks {
    struct meeting_of_ranks *next; /* in the group, or free list */
    struct joint_group *group;
    uint64_t number, size; /* its index within the group; bytes */
    orr_collective kind;
    uint32_t come;            /* members that have arrived */
    uint32_t *ranks, *places; /* of those that have arrived */
    uint64_t latency;         /* time after the last byte, once it has begun */
} meeting_of_ranks;

typedef struct joint_group {
    struct joint *j;
    const cfg_group *group; /* NULL: ranks along dimensions */
    uint32_t *members;      /* ascending */
    uint32_t count;
    uint32_t *simulated; /* ranks simulated on their behalf, ascending */
    uint32_t *calls;     /* by index there: how often it has arrived */
    uint32_t expected;   /* number of these */
    uint32_t groups;     /* groups that this one represents, itself included */
    nccl_shape shape;    /* placement of the members, input of the model */
    traffic *traffics;
    size_t traffic_count, traffic_room;
    known_cost *costs; /* a step repeats the same few */
    size_t cost_count, cost_room;
    meeting_of_ranks *waiting, *free; /* waiting: some members have arrived */
} joint_group;

struct joint {
    orr_sim *s;
    orr_arena *arena;
    fluid *f;
    fluid_paths *paths;
    uint32_t per_node; /* ranks of a host */
    joint_group **groups;
    size_t group_count, group_room;
    orr_map *by_key;
};

static void price_message(void *joint, const orr_message *m, double *latency, double *most);

static uint32_t ranks_per_node(const orr_sim *s)
{
    const orr__topology *t = s->topology;
    if (s->dims == 1 && t)
        return t->gpus_per_server ? t->gpus_per_server : 1;
    return nccl_ranks_per_node(&s->net_config);
}

/* ---- life cycle ---- */

orr_code joint_create(orr_sim *s, orr_error *err)
{
    bool is_needed = false, is_all = true;
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++) {
        is_needed = is_needed || s->plans[k].is_joint;
        is_all = is_all && s->plans[k].is_joint;
    }
    if (!is_needed)
        return ORR_OK;
    struct joint *j = orr_alloc(1, sizeof *j);
    /* In the simulation at once, which frees it if anything below fails. */
    s->joint = j;
    if (!j || !(j->arena = orr_arena_create()) || !(j->by_key = orr_map_create(0)))
        return orr_no_memory(err);
    j->s = s;
    j->f = fluid_network_flows(s->net);
    j->paths = fluid_network_paths(s->net);
    j->per_node = ranks_per_node(s);
    if (is_all && !s->opt.plans &&
        !s->opt.is_torus) /* a user who names an algorithm wants its plain messages */
        fluid_network_price(s->net, price_message, j);
    return ORR_OK;
}

void joint_destroy(struct joint *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->group_count; i++) {
        orr_free(j->groups[i]->traffics);
        orr_free(j->groups[i]->costs);
    }
    orr_free(j->groups);
    orr_map_destroy(j->by_key);
    orr_arena_destroy(j->arena);
    orr_free(j);
}

/* ---- placement of a group ---- */

static bool differ_in(const orr_sim *s, const joint_group *g, uint32_t k)
{
    return nccl_differ_along(&s->net_config, g->members, g->count, k);
}

/* Rate and latency of a route from one member to another: the slowest resource on it decides,
 * weighted by its share of the bytes. */
static orr_code measure_route(
    struct joint *j, uint32_t from, uint32_t to, double *rate, double *latency, orr_error *err)
{
    *rate = INFINITY;
    *latency = 0;
    j->paths->part_count = 0;
    const orr_code code = fluid_paths_add(j->paths, from, to, 1, latency, err);
    for (size_t i = 0; !code && i < j->paths->part_count; i++) {
        const fluid_part *p = &j->paths->parts[i];
        const double own = fluid_figures_of(j->f, p->resource).capacity / p->share;
        *rate = own < *rate ? own : *rate;
    }
    return code;
}

static orr_code shape_by_links(joint_group *g, orr_error *err)
{
    struct joint *j = g->j;
    orr_code code = ORR_OK;
    /* One pair of members inside a host and one between hosts: hosts of a topology are assumed
     * equal. */
    if (g->shape.most_per_node > 1)
        for (uint32_t i = 0; i + 1 < g->count && g->shape.up_GBps == 0 && !code; i++)
            if (g->members[i] / j->per_node == g->members[i + 1] / j->per_node)
                code = measure_route(j, g->members[i], g->members[i + 1], &g->shape.up_GBps,
                                     &g->shape.up_latency_ns, err);
    for (uint32_t i = 1; i < g->count && g->shape.nodes > 1 && g->shape.out_GBps == 0 && !code; i++)
        if (g->members[i] / j->per_node != g->members[0] / j->per_node)
            code = measure_route(j, g->members[0], g->members[i], &g->shape.out_GBps,
                                 &g->shape.out_latency_ns, err);
    return code;
}

static orr_code find_shape(joint_group *g, orr_error *err)
{
    struct joint *j = g->j;
    if (j->s->opt.is_torus)
        return torus_shape_of(&j->s->net_config, g->members, g->count, &g->shape.torus)
                   ? ORR_OK
                   : orr_no_memory(err);
    nccl_count_nodes(g->members, g->count, j->per_node, &g->shape);
    g->shape.generation = (nccl_generation)j->s->opt.nccl_generation;
    g->shape.table = j->s->opt.nccl_table;
    g->shape.up_reduces = j->s->opt.up_reduces;
    g->shape.out_reduces = j->s->opt.out_reduces;
    if (j->s->topology && j->paths)
        return shape_by_links(g, err);
    nccl_shape_by_dims(&j->s->net_config, j->per_node, g->members, g->count, &g->shape);
    return ORR_OK;
}

bool joint_shape_of(orr_sim *s, const uint32_t *members, uint32_t count, nccl_shape *out)
{
    const bool is_fluid = s->net_ops == &orr__net_fluid;
    orr_error unused;
    /* Dimensions that became links are still known; a file of links is not. */
    if (!is_fluid && s->is_link_level)
        return false;
    struct joint j = {.s = s,
                      .f = is_fluid ? fluid_network_flows(s->net) : NULL,
                      .paths = is_fluid ? fluid_network_paths(s->net) : NULL,
                      .per_node = ranks_per_node(s)};
    /* The members are only read; the cast saves a second struct. */
    joint_group g = {.j = &j, .members = (uint32_t *)members, .count = count};
    if (find_shape(&g, &unused))
        return false; /* the run reports it */
    *out = g.shape;
    return true;
}

/* ---- groups ---- */

bool joint_is_member(const orr_sim *s, uint32_t rank, uint32_t base, uint32_t mask)
{
    for (uint32_t k = 0; k < s->dims; k++) {
        const uint32_t n = s->net_config.npus[k];
        if (!(mask & 1u << k) && rank % n != base % n)
            return false;
        rank /= n;
        base /= n;
    }
    return true;
}

static bool list_members(joint_group *g, uint32_t base, uint32_t mask)
{
    const orr_sim *s = g->j->s;
    const uint32_t room = g->group ? g->group->count : s->npu_count;
    if (!(g->members = orr_arena_take(g->j->arena, room * sizeof *g->members)))
        return false;
    if (g->group) {
        memcpy(g->members, g->group->sorted, room * sizeof *g->members);
        g->count = room;
        return true;
    }
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (joint_is_member(s, r, base, mask))
            g->members[g->count++] = r;
    return true;
}

/* In lockstep only simulated ranks have a place. */
static uint32_t place_in(const joint_group *g, uint32_t rank)
{
    const uint32_t *found =
        bsearch(&rank, g->simulated, g->expected, sizeof *g->simulated, orr_by_u32);
    return found ? (uint32_t)(found - g->simulated) : RUN_NONE;
}

/* The simulated members, one per class in lockstep. */
static bool list_simulated(joint_group *g)
{
    const fold_lockstep *l = g->j->s->lockstep;
    g->expected = g->count;
    g->groups = 1;
    g->simulated = g->members;
    if (l) {
        if (!(g->simulated = orr_arena_take(g->j->arena, g->count * sizeof *g->simulated)))
            return false;
        for (uint32_t i = 0; i < g->count; i++)
            g->simulated[i] = l->stands_for[g->members[i]];
        orr_sort(g->simulated, g->count, sizeof *g->simulated, orr_by_u32);
        uint32_t kept = 0, of_first = 0;
        for (uint32_t i = 0; i < g->count; i++) {
            /* Members of the first class here: its size divided by that is the number of equal
             * groups. */
            of_first += g->simulated[i] == g->simulated[0];
            if (i == 0 || g->simulated[i] != g->simulated[kept - 1])
                g->simulated[kept++] = g->simulated[i];
        }
        g->expected = kept;
        g->groups = l->size[g->simulated[0]] / of_first;
    }
    return (g->calls = orr_arena_new(g->j->arena, g->expected, uint32_t)) != NULL;
}

static joint_group *make_group(struct joint *j,
                               const cfg_group *group,
                               uint32_t base,
                               uint32_t mask)
{
    orr_error err;
    joint_group *g = orr_arena_new(j->arena, 1, joint_group);
    if (!g || !orr_grow(&j->groups, &j->group_room, j->group_count + 1)) {
        run_no_memory(j->s);
        return NULL;
    }
    *g = (joint_group){.j = j, .group = group};
    if (!list_members(g, base, mask) || !list_simulated(g)) {
        run_no_memory(j->s);
        return NULL;
    }
    const orr_code code = find_shape(g, &err);
    if (code) {
        run_fail(j->s, code, &err);
        return NULL;
    }
    return j->groups[j->group_count++] = g;
}

/* mask: the dimensions it spans; 0: given by the group. */
static joint_group *find_group(struct joint *j,
                               const cfg_group *group,
                               uint32_t rank,
                               uint32_t mask)
{
    const orr_sim *s = j->s;
    uint32_t base = 0, stride = 1;
    if (group && s->lockstep)
        group = &s->groups.groups[s->lockstep->like[group - s->groups.groups]];
    /* A group of all ranks is the same communicator as no group: their collectives must match. */
    if (group && group->count == s->npu_count) {
        group = NULL;
        mask = UINT32_MAX;
    }
    for (uint32_t k = 0; k < s->dims && !group; k++) {
        const uint32_t n = s->net_config.npus[k];
        if (!(mask & 1u << k))
            base += rank / stride % n * stride;
        stride *= n;
    }
    /* Groups have keys from 1 on, lines of ranks keys above 2^40: they never collide. */
    const uint64_t key =
        group ? (uint64_t)(group - s->groups.groups) + 1 : ((uint64_t)mask + 1) << 40 | base;
    const uint32_t at = orr_map_find(j->by_key, key, RUN_NONE);
    if (at != RUN_NONE)
        return j->groups[at];
    const uint32_t count = (uint32_t)j->group_count;
    joint_group *g = make_group(j, group, base, mask);
    if (g && !orr_map_put(j->by_key, key, count, NULL)) {
        run_no_memory(j->s);
        return NULL;
    }
    return g;
}

/* ---- load on ports and links ---- */

/* Switches in every dimension: then a member sends everything through its own ports, whoever
 * receives it. */
static bool has_ports(const struct joint *j)
{
    const orr_sim *s = j->s;
    for (uint32_t k = 0; k < s->dims; k++)
        if (s->net_config.shape[k] != ORR_NET_SWITCH)
            return false;
    return !s->topology;
}

static bool add_port(struct joint *j, uint32_t k, uint32_t rank, double share)
{
    fluid_paths *p = j->paths;
    /* A collective within one host does not use the ports between hosts. */
    if (share <= 0)
        return true;
    if (!orr_grow(&p->parts, &p->part_room, p->part_count + 2))
        return false;
    /* A port is two resources, out and in (fluid_paths.c); a member receives as much as it
     * sends. */
    p->parts[p->part_count++] = (fluid_part){.resource = p->first[k] + 2 * rank, .share = share};
    p->parts[p->part_count++] =
        (fluid_part){.resource = p->first[k] + 2 * rank + 1, .share = share};
    return true;
}

/* Ports of switches: a member sends everything through its own. */
static orr_code add_ports(joint_group *g, const traffic *t, orr_error *err)
{
    struct joint *j = g->j;
    const orr_sim *s = j->s;
    bool ok = true;
    for (uint32_t k = 0; k < s->dims; k++) {
        const bool is_up = k == 0 && j->per_node > 1;
        if (!is_up && !(g->shape.nodes > 1 && differ_in(s, g, k)))
            continue;
        for (uint32_t i = 0; ok && i < g->expected; i++)
            ok = add_port(j, k, g->simulated[i], is_up ? t->up : t->out);
    }
    return ok ? ORR_OK : orr_no_memory(err);
}

/* The members of a node, as indices in the group. */
typedef struct span {
    uint32_t first, count;
} span;

static span node_at(const joint_group *g, uint32_t first)
{
    const uint32_t per = g->j->per_node;
    span n = {first, 0};
    while (first + n.count < g->count &&
           g->members[first + n.count] / per == g->members[first] / per)
        n.count++;
    return n;
}

static orr_code add_pair(joint_group *g, uint32_t a, uint32_t b, double share, orr_error *err)
{
    /* Unused: the latency of a collective is the model's. */
    double latency = 0;
    if (a == b || share <= 0)
        return ORR_OK;
    return fluid_paths_add(g->j->paths, g->members[a], g->members[b], share, &latency, err);
}

/* Is every dimension of this group's traffic a mesh?  There channels take different rings, which
 * together load all links alike (every complete graph divides into rings, but for a pairing); and a
 * rate of all links at once is what the model was asked for (dim_rate). */
static bool is_mesh(const joint_group *g, bool is_inside)
{
    const orr_sim *s = g->j->s;
    const uint32_t first = g->j->per_node > 1;
    /* So many pairs would take longer to list than the run takes. */
    if (s->topology || (uint64_t)g->count * g->count > ALL_PAIRS)
        return false;
    if (is_inside)
        return first && s->net_config.shape[0] == ORR_NET_FULLY_CONNECTED;
    for (uint32_t k = first; k < s->dims; k++)
        if (s->net_config.shape[k] != ORR_NET_FULLY_CONNECTED && differ_in(s, g, k))
            return false;
    return true;
}

/* One member to all others of its host, or to those in its place on all other hosts. */
static orr_code add_mesh(joint_group *g, span n, uint32_t i, double share, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < n.count && !code; k++)
        code = add_pair(g, n.first + i, n.first + k, share / (n.count - 1), err);
    return code;
}

static orr_code add_far_mesh(joint_group *g, span n, uint32_t i, double share, orr_error *err)
{
    orr_code code = ORR_OK;
    /* Beyond the last member node_at finds none, which ends the loop. */
    for (span to = node_at(g, 0); to.count && !code; to = node_at(g, to.first + to.count))
        if (to.first != n.first)
            code = add_pair(g, n.first + i, to.first + i % to.count, share / (g->shape.nodes - 1),
                            err);
    return code;
}

/* Rings: to both neighbours inside a host; between hosts each member to the one in its place, both
 * ways. */
static orr_code add_rings(joint_group *g, const traffic *t, orr_error *err)
{
    orr_code code = ORR_OK;
    const bool is_near = is_mesh(g, true), is_far = g->shape.nodes > 1 && is_mesh(g, false);
    for (span n = node_at(g, 0), next; n.first < g->count && !code; n = next) {
        const uint32_t after = n.first + n.count;
        next = after < g->count ? node_at(g, after) : (span){g->count, 0};
        /* The last host's neighbour is the first: a ring. */
        const span to = after < g->count ? next : node_at(g, 0);
        for (uint32_t i = 0; i < n.count && !code; i++) {
            const uint32_t right = n.first + (i + 1) % n.count,
                           left = n.first + (i + n.count - 1) % n.count;
            code = is_near ? add_mesh(g, n, i, t->up, err)
                           : add_pair(g, n.first + i, right, t->up / 2, err);
            if (!code && !is_near)
                code = add_pair(g, n.first + i, left, t->up / 2, err);
            if (!code && is_far)
                code = add_far_mesh(g, n, i, t->out, err);
            if (g->shape.nodes < 2 || is_far || code)
                continue;
            /* Hosts may have unequal numbers of members: those of the smaller one are used several
             * times. */
            const uint32_t there = to.first + i % to.count;
            code = add_pair(g, n.first + i, there, t->out / 2, err);
            if (!code)
                code = add_pair(g, there, n.first + i, t->out / 2, err);
        }
    }
    return code;
}

/* All pairs; for very many members, each with evenly spread partners. */
static orr_code add_all_pairs(joint_group *g, const traffic *t, orr_error *err)
{
    const uint64_t n = g->count;
    const uint32_t per = g->j->per_node;
    const uint32_t partners = n * n <= ALL_PAIRS ? (uint32_t)n - 1 : PARTNERS;
    /* Odd, so that it shares few factors with powers of two and partners do not repeat early. */
    const uint32_t step = partners == n - 1 ? 1 : (uint32_t)(n / (PARTNERS + 1)) | 1;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < n && !code; i++) {
        uint32_t inside = 0;
        for (uint32_t k = 1; k <= partners; k++)
            inside += g->members[(i + (uint64_t)k * step) % n] / per == g->members[i] / per;
        for (uint32_t k = 1; k <= partners && !code; k++) {
            const uint32_t to = (uint32_t)((i + (uint64_t)k * step) % n);
            const bool is_inside = g->members[to] / per == g->members[i] / per;
            /* Neither divisor is 0 here: this partner is one of those that it counts. */
            const double share = is_inside ? t->up / inside : t->out / (partners - inside);
            code = add_pair(g, i, to, share, err);
        }
    }
    return code;
}

/* Both directions of every axis of a torus that the members span. */
static orr_code add_axis(
    joint_group *g, uint32_t k, const torus_axis *a, double share, orr_error *err)
{
    const orr_net_config *c = &g->j->s->net_config;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < g->count && share > 0 && !code; i++)
        for (int forward = 0; forward < 2 && !code; forward++) {
            uint32_t at = g->members[i];
            const uint32_t next = torus_step(c, k, a->hops, at, forward);
            /* The end of a line: nothing goes further. */
            if (!bsearch(&next, g->members, g->count, sizeof next, orr_by_u32))
                continue;
            /* Link by link: halfway around a ring a route would choose one direction. */
            for (uint32_t hop = 0; hop < a->hops && !code; hop++) {
                double latency = 0;
                const uint32_t to = torus_step(c, k, 1, at, forward);
                code = fluid_paths_add(g->j->paths, at, to, share, &latency, err);
                at = to;
            }
        }
    return code;
}

/* Along a dimension of switches: each member to the next. */
static orr_code add_outside(joint_group *g, uint32_t k, double share, orr_error *err)
{
    const orr_net_config *c = &g->j->s->net_config;
    const uint32_t stride = net_stride_of(c, k), n = c->npus[k];
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < g->count && share > 0 && !code; i++) {
        const uint32_t rank = g->members[i], at = rank / stride % n;
        uint32_t to = rank;
        for (uint32_t by = 1; by < n && to == rank; by++) {
            const uint32_t next = rank - at * stride + (at + by) % n * stride;
            if (bsearch(&next, g->members, g->count, sizeof next, orr_by_u32))
                to = next;
        }
        double latency = 0;
        if (to != rank)
            code = fluid_paths_add(g->j->paths, rank, to, share, &latency, err);
    }
    return code;
}

static orr_code add_torus(joint_group *g, const traffic *t, orr_error *err)
{
    const orr_net_config *c = &g->j->s->net_config;
    const torus_shape *s = &g->shape.torus;
    double load[TORUS_AXES];
    orr_code code = ORR_OK;
    if (s->is_ring) {
        for (uint32_t i = 0; i < g->count && !code; i++) {
            const uint32_t next = i + 1 < g->count ? i + 1 : 0;
            code = add_pair(g, i, next, t->up / 2, err);
            if (!code)
                code = add_pair(g, next, i, t->up / 2, err);
        }
        return code;
    }
    torus_loads(s, t->is_pairs, load);
    for (uint32_t k = 0, axis = 0; k < c->dims && !code; k++) {
        if (!differ_in(g->j->s, g, k))
            continue;
        if (c->shape[k] != ORR_NET_RING) {
            code = add_outside(g, k, t->out, err);
            continue;
        }
        code = add_axis(g, k, &s->axis[axis], t->up * load[axis], err);
        axis++;
    }
    return code;
}

orr_code joint_add_links(struct joint *j,
                         const uint32_t *members,
                         uint32_t count,
                         bool is_pairs,
                         double up,
                         double out,
                         orr_error *err)
{
    /* The members are only read; the cast saves a second struct. */
    joint_group g = {.j = j, .members = (uint32_t *)members, .count = count};
    const traffic t = {.up = up, .out = out, .is_pairs = is_pairs};
    const orr_code code = find_shape(&g, err);
    if (code)
        return code;
    if (g.shape.torus.ranks)
        return add_torus(&g, &t, err);
    return is_pairs ? add_all_pairs(&g, &t, err) : add_rings(&g, &t, err);
}

uint64_t joint_mark(struct joint *j, const uint32_t *members, uint32_t count)
{
    torus_shape s;
    if (!j->s->opt.is_torus || !torus_shape_of(&j->s->net_config, members, count, &s))
        return 0;
    return orr_hash_bytes(&s, sizeof s, 0);
}

/* In lockstep, for all groups represented by this one: their load on the representative links. */
static orr_code add_alike(const joint_group *g, const traffic *t, orr_error *err)
{
    struct joint *j = g->j;
    const orr_sim *s = j->s;
    const uint32_t *like = s->lockstep->like;
    orr_code code = ORR_OK;
    for (size_t i = 0; !code && i < (g->group ? s->groups.count : 1); i++) {
        const size_t from = j->paths->part_count;
        const cfg_group *other = g->group ? &s->groups.groups[i] : NULL;
        if (other && like[i] != like[g->group - s->groups.groups])
            continue;
        code = joint_add_links(j, other ? other->sorted : g->members, g->count, t->is_pairs, t->up,
                               t->out, err);
        fold_links_keep(j->paths, from);
    }
    return code;
}

/* A few mixes per group and step, each with its list of loads: computed once, then looked up. */
static traffic *find_traffic(joint_group *g, traffic like, orr_error *err)
{
    struct joint *j = g->j;
    orr_code code;
    for (size_t i = 0; i < g->traffic_count; i++) {
        traffic *t = &g->traffics[i];
        /* Shares come from the same formula for the same mix: rounding noise must not create
         * another entry. */
        if (t->is_pairs == like.is_pairs && fabs(t->up - like.up) < 1e-9 &&
            fabs(t->out - like.out) < 1e-9)
            return t;
    }
    j->paths->part_count = 0;
    if (has_ports(j))
        code = add_ports(g, &like, err);
    else if (j->s->lockstep)
        code = add_alike(g, &like, err);
    else if (g->shape.torus.ranks)
        code = add_torus(g, &like, err);
    else if (like.is_pairs)
        code = add_all_pairs(g, &like, err);
    else
        code = add_rings(g, &like, err);
    if (code)
        return NULL;
    like.use = fluid_use_make(j->f, j->paths->parts, j->paths->part_count);
    if (!like.use || !orr_grow(&g->traffics, &g->traffic_room, g->traffic_count + 1)) {
        orr_no_memory(err);
        return NULL;
    }
    g->traffics[g->traffic_count] = like;
    return &g->traffics[g->traffic_count++];
}

/* ---- a collective ---- */

/* Channels of a collective in flight slow down the compute of its members. */
static void tell_moving(const meeting_of_ranks *m, bool begins)
{
    orr_sim *s = m->group->j->s;
    for (uint32_t i = 0; s->system.overlap_cost > 0 && i < m->come; i++)
        work_moving(run_npu_of(s, m->ranks[i]), begins);
}

static void finish(void *meeting, uint64_t unused)
{
    meeting_of_ranks *m = meeting;
    joint_group *g = m->group;
    orr_sim *s = g->j->s;
    (void)unused;
    tell_moving(m, false);
    /* In order of arrival: the end of a node starts others, and that order must not depend on a
     * table. */
    for (uint32_t i = 0; i < m->come && !s->code; i++)
        work_node_done(run_npu_of(s, m->ranks[i]), m->places[i]);
    /* Not before the loop: an end may start the group's next collective, which would take this
     * meeting while its lists are being read. */
    m->next = g->free;
    g->free = m;
}

static void sent(void *meeting, uint64_t unused)
{
    meeting_of_ranks *m = meeting;
    orr_sim *s = m->group->j->s;
    (void)unused;
    /* Latency follows the bytes: meanwhile the ports are free for others. */
    clk_after(s->clock, m->latency, finish, m, 0);
}

uint64_t joint_bytes_of(orr_collective kind, uint64_t size, uint32_t count)
{
    const bool is_shard = kind == ORR_COLL_ALL_GATHER || kind == ORR_COLL_GATHER;
    const uint64_t n = is_shard ? count : 1;
    /* Sizes come from files: a product that wraps would be a short collective instead of an absurd
     * one. */
    return size > UINT64_MAX / n ? UINT64_MAX : size * n;
}

enum { MOST_COSTS = 64 };

/* NULL: none is known, or out of memory. */
static const nccl_cost *find_cost(joint_group *g, orr_collective kind, uint64_t bytes)
{
    for (size_t i = 0; i < g->cost_count; i++)
        if (g->costs[i].kind == kind && g->costs[i].bytes == bytes)
            return &g->costs[i].cost;
    /* A full table replaces its first entry: a program with more sizes repeats none soon. */
    const size_t at = g->cost_count < MOST_COSTS ? g->cost_count : 0;
    if (!orr_grow(&g->costs, &g->cost_room, at + 1)) {
        run_no_memory(g->j->s);
        return NULL;
    }
    known_cost *k = &g->costs[at];
    *k = (known_cost){.kind = kind, .bytes = bytes};
    if (!nccl_cost_of(&g->shape, kind, bytes, NULL, &k->cost))
        return NULL;
    g->cost_count += at == g->cost_count;
    return &k->cost;
}

/* What the members send along each dimension. */
/* In a step of a ring bytes also move during its latency (nccl_model.c: step): what the ports need
 * at their rate is not latency. */
static double latency_of(const nccl_shape *s, const nccl_cost *c)
{
    const double up = s->up_GBps > 0 ? c->up_bytes / s->up_GBps : 0;
    const double out = s->out_GBps > 0 ? c->out_bytes / s->out_GBps : 0;
    return fmin(c->latency_ns, fmax(c->time_ns - fmax(up, out), 0));
}

static void tell_axes(const meeting_of_ranks *m, const nccl_cost *c)
{
    const joint_group *g = m->group;
    const torus_shape *t = &g->shape.torus;
    const orr_net_config *dims = &g->j->s->net_config;
    double part[TORUS_AXES] = {1};
    if (!t->is_ring)
        torus_parts(t, m->kind == ORR_COLL_ALL_TO_ALL, part);
    for (uint32_t k = 0, axis = 0; k < dims->dims; k++) {
        if (!differ_in(g->j->s, g, k))
            continue;
        const bool is_axis = dims->shape[k] == ORR_NET_RING;
        const double bytes = is_axis || t->is_ring ? c->up_bytes * part[axis] : c->out_bytes;
        watch_along(g->j->s, k, g->count, g->groups, bytes);
        axis += is_axis;
        if (t->is_ring) /* all of it for the innermost dimension of a group that is no box */
            return;
    }
}

static void begin(meeting_of_ranks *m)
{
    joint_group *g = m->group;
    orr_sim *s = g->j->s;
    orr_error err;
    const nccl_cost *known = find_cost(g, m->kind, joint_bytes_of(m->kind, m->size, g->count));
    if (s->code)
        return;
    if (!known) {
        orr_fail(&err, ORR_EBUG, NULL, "no time is known for a %s of %u ranks",
                 coll_kind_name(m->kind), g->count);
        run_fail(s, ORR_EBUG, &err);
        return;
    }
    /* A copy: a later collective may reuse the row. */
    const nccl_cost c = *known;
    tell_moving(m, true);
    if (run_is_recorded(run_npu_of(s, m->ranks[0])) && g->shape.torus.ranks)
        tell_axes(m, &c);
    else if (run_is_recorded(run_npu_of(s, m->ranks[0])))
        watch_joint(s, g->members, g->count, g->groups, c.up_bytes, c.out_bytes, g->j->per_node);
    const double most = c.up_bytes > c.out_bytes ? c.up_bytes : c.out_bytes;
    const double latency = latency_of(&g->shape, &c), moving = c.time_ns - latency;
    /* A barrier, or less than a byte: latency only. */
    if (!(most > 0) || !(moving > 0)) {
        clk_after(s->clock, (uint64_t)llround(c.time_ns), finish, m, 0);
        return;
    }
    const bool is_inside = g->shape.up_GBps > 0 || g->shape.torus.ranks;
    const traffic like = {.up = is_inside ? c.up_bytes / most : 0,
                          .out = c.out_bytes / most,
                          .is_pairs = m->kind == ORR_COLL_ALL_TO_ALL};
    const traffic *t = find_traffic(g, like, &err);
    if (!t) {
        run_fail(s, err.code, &err);
        return;
    }
    m->latency = (uint64_t)llround(latency);
    /* Before the flow starts, since the figures of links count it from then on. */
    fluid_counts(g->j->f, run_is_recorded(run_npu_of(s, m->ranks[0])));
    /* Alone it takes exactly the model's time: that is its maximum rate.  Contention makes it
     * slower. */
    if (!fluid_start(g->j->f, s, t->use, most, most / moving, sent, m, 0))
        run_no_memory(s);
}

static meeting_of_ranks *find_meeting(joint_group *g, uint64_t number)
{
    meeting_of_ranks **at = &g->waiting, *m;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    if ((m = *at))
        return m;
    if ((m = g->free)) {
        g->free = m->next;
    } else {
        m = orr_arena_new(g->j->arena, 1, meeting_of_ranks);
        uint32_t *lists = orr_arena_new(g->j->arena, 2 * (size_t)g->expected, uint32_t);
        if (!m || !lists) {
            run_no_memory(g->j->s);
            return NULL;
        }
        *m = (meeting_of_ranks){.ranks = lists, .places = lists + g->expected};
    }
    /* The lists stay: all meetings of a group need the same room. */
    *m = (meeting_of_ranks){.group = g, .number = number, .ranks = m->ranks, .places = m->places};
    return *at = m;
}

/* All members must call the same collective. */
static bool agrees(
    const meeting_of_ranks *m, const run_npu *n, uint32_t place, orr_collective kind, uint64_t size)
{
    if (m->come == 0 || (m->kind == kind && (m->size == size || kind == ORR_COLL_ALL_TO_ALL ||
                                             kind == ORR_COLL_BARRIER)))
        return true;
    run_fail_text(n->sim, n, place,
                  "this rank calls %s of %" PRIu64 " bytes where rank %u calls %s of %" PRIu64
                  " bytes: the members of a group must call the same collectives in the same order",
                  coll_kind_name(kind), size, m->ranks[0], coll_kind_name(m->kind), m->size);
    return false;
}

void joint_collective(run_npu *n,
                      uint32_t place,
                      orr_collective kind,
                      const cfg_group *group,
                      uint32_t mask,
                      uint64_t size)
{
    orr_sim *s = n->sim;
    joint_group *g = find_group(s->joint, group, n->rank, mask);
    if (!g)
        return;
    const uint32_t own = place_in(g, n->rank);
    if (own == RUN_NONE) {
        run_fail_text(s, n, place, "this rank is not a member of the group of its %s",
                      coll_kind_name(kind));
        return;
    }
    if (g->count == 1) { /* no communication */
        run_npu_timer(n, 0, work_node_done, n, place);
        return;
    }
    meeting_of_ranks *m = find_meeting(g, g->calls[own]++);
    if (!m || !agrees(m, n, place, kind, size))
        return;
    /* An id that all members agree on: the first of them, and how many collectives came before. */
    RUN_TELL(s, collective, n, place, (uint64_t)g->members[0] << 32 | m->number, group, NULL);
    m->kind = kind;
    /* In an all-to-all members may have different sizes: the largest decides when all have
     * finished. */
    m->size = size > m->size ? size : m->size;
    m->ranks[m->come] = n->rank;
    m->places[m->come++] = place;
    /* Members before the last wait, and are shown as waiting; the last one starts it. */
    if (m->come < g->expected) {
        RUN_TELL(s, node_held, n, place);
        return;
    }
    /* The last one never waited. */
    for (uint32_t i = 0; i + 1 < m->come; i++)
        RUN_TELL(s, node_flows, run_npu_of(s, m->ranks[i]), m->places[i]);
    meeting_of_ranks **at = &g->waiting;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    begin(m);
}

/* ---- messages ---- */

/* By NCCL as well: kernels on both ranks, and the protocol between them. */
static void price_message(void *joint, const orr_message *m, double *latency, double *most)
{
    struct joint *j = joint;
    uint32_t members[2] = {m->src < m->dst ? m->src : m->dst, m->src < m->dst ? m->dst : m->src};
    /* To the model a message is a collective of two; ascending, as shapes require. */
    joint_group pair = {.j = j, .members = members, .count = 2};
    nccl_cost c;
    orr_error err;
    if (find_shape(&pair, &err) || !nccl_send_cost_of(&pair.shape, m->size, NULL, &c))
        return; /* the route reports the error */
    *latency = c.latency_ns > *latency ? c.latency_ns : *latency;
    if (c.time_ns > c.latency_ns)
        *most = (double)m->size / (c.time_ns - c.latency_ns);
}

/* ---- the state ---- */

size_t joint_state(const struct joint *j, uint64_t *out)
{
    size_t count = 0;
#define PUT(word)              \
    do {                       \
        if (out)               \
            out[count] = word; \
        count++;               \
    } while (0)
    for (size_t i = 0; i < j->group_count; i++) {
        const joint_group *g = j->groups[i];
        for (uint32_t k = 1; k < g->expected; k++)
            /* Relative to the first member, so that moments in different steps can have equal
             * states. */
            PUT(g->calls[k] - g->calls[0]);
        for (const meeting_of_ranks *m = g->waiting; m; m = m->next) {
            PUT(i);
            PUT(m->number - g->calls[0]);
            PUT(m->size);
            PUT((uint64_t)m->kind << 32 | m->come);
            for (uint32_t k = 0; k < m->come; k++)
                PUT((uint64_t)m->ranks[k] << 32 | m->places[k]);
        }
    }
#undef PUT
    return count;
}
