/* SPDX-License-Identifier: Apache-2.0 */
/* aware.c - the congestion-aware network: store and forward, every link a FIFO server (astra-sim.md
 * 8.2).  The reference has one dimension; here a message crosses several in ascending order, and
 * ranks forward it.
 *
 * Links are numbered so that a route needs no table: a ring or a switch has two per rank, 2 * rank
 * to the next rank or up to the switch, 2 * rank + 1 to the previous rank or down from the switch.
 * Those of fully connected groups, one per pair of ranks, are made on first use. */
#include "models/network/symmetry.h"

#include "models/network/net_table.h"

#include "base/arithmetic.h"
#include "base/memory/map.h"
#include "models/network/link_servers.h"
#include "models/network/net_time.h"
#include "models/network/product.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct aware {
    net_servers servers;
    net_product shape;
    double speed[ORR_NET_DIMS], latency[ORR_NET_DIMS];
    uint32_t first_link[ORR_NET_DIMS]; /* of rings and switches */
    orr_map *pairs;                    /* fully connected: key of a pair -> link */
    uint32_t made_later;               /* the first of those */
    uint32_t *order;                   /* room for all links, sorted for listing */
    size_t order_room;
    const net_symmetry *symmetry; /* NULL: no link represents others */
} aware;

static void aware_destroy(void *net)
{
    aware *a = net;
    if (!a)
        return;
    net_servers_fini(&a->servers);
    orr_map_destroy(a->pairs);
    orr_free(a->order);
    orr_free(a);
}

static orr_code check_config(const orr_net_config *cfg, orr_error *err)
{
    if (cfg->most_dims && cfg->dims > cfg->most_dims)
        return orr_fail(
            err, ORR_EINPUT, &cfg->where,
            "the congestion-aware network of the reference has %u dimension%s; this file has %u",
            cfg->most_dims, cfg->most_dims == 1 ? "" : "s", cfg->dims);
    if (cfg->shape[0] == ORR_NET_RING && cfg->npus[0] > 1 && cfg->npus[0] < cfg->least_ring)
        return orr_fail(err, ORR_EINPUT, &cfg->where,
                        "a congestion-aware ring needs at least %u NPUs", cfg->least_ring);
    return ORR_OK;
}

/* ---- links ---- */

static bool add_link(aware *a, uint32_t k, uint32_t from, uint32_t to, uint32_t *out)
{
    const net_link like = {.from = from, .to = to, .speed = a->speed[k], .latency = a->latency[k]};
    return net_servers_add(&a->servers, &like, out);
}

static bool add_ring(aware *a, uint32_t k)
{
    const net_product *s = &a->shape;
    const uint32_t n = s->npus[k];
    bool ok = true;
    for (uint32_t r = 0; r < s->ranks && ok; r++) {
        const uint32_t c = net_product_coordinate(s, k, r);
        ok = add_link(a, k, r, net_product_neighbour(s, k, r, (c + 1) % n), NULL) &&
             add_link(a, k, r, net_product_neighbour(s, k, r, (c + n - 1) % n), NULL);
    }
    return ok;
}

static bool add_switches(aware *a, uint32_t k)
{
    const net_product *s = &a->shape;
    bool ok = true;
    for (uint32_t r = 0; r < s->ranks && ok; r++) {
        const uint32_t device = net_product_switch(s, k, r);
        ok = add_link(a, k, r, device, NULL) && add_link(a, k, device, r, NULL);
    }
    return ok;
}

static uint32_t pair_link(aware *a, uint32_t k, uint32_t from, uint32_t to, orr_error *err)
{
    const uint64_t key = (uint64_t)from * a->shape.ranks + to;
    uint32_t l = orr_map_find(a->pairs, key, NET_LINK_NONE);
    if (l != NET_LINK_NONE)
        return l;
    if (add_link(a, k, from, to, &l) && orr_map_put(a->pairs, key, l, NULL) &&
        orr_grow(&a->order, &a->order_room, (size_t)l + 1))
        return l;
    orr_no_memory(err);
    return NET_LINK_NONE;
}

static bool add_links(aware *a)
{
    bool ok = true;
    for (uint32_t k = 0; k < a->shape.dims && ok; k++) {
        a->first_link[k] = (uint32_t)a->servers.link_count;
        if (a->shape.shape[k] == ORR_NET_RING)
            ok = add_ring(a, k);
        else if (a->shape.shape[k] == ORR_NET_SWITCH)
            ok = add_switches(a, k);
        else if (!a->pairs)
            ok = (a->pairs = orr_map_create(0)) != NULL;
    }
    return ok;
}

/* ---- routes ---- */

/* If links represent others: the link of this rank's home, and the packet continues from there. */
static uint32_t move_home(const aware *a, net_packet *p, uint32_t rank)
{
    if (!a->symmetry)
        return rank;
    p->m.dst = net_sym_with(a->symmetry, rank, p->m.dst);
    orr__net_move_origin(a->servers.sim, rank);
    return net_sym_home(a->symmetry, rank);
}

static uint32_t next_link(void *net, net_packet *p, orr_error *err)
{
    aware *a = net;
    const net_product *s = &a->shape;
    uint32_t at = p->at;
    if (at >= s->ranks) {
        const uint32_t k = net_product_switch_dim(s, at);
        const uint32_t to = net_product_member(s, k, at, net_product_coordinate(s, k, p->m.dst));
        return a->first_link[k] + 2 * move_home(a, p, to) + 1;
    }
    if (at == p->m.dst)
        return NET_LINK_ARRIVED;
    at = move_home(a, p, at);
    uint32_t k = 0;
    /* They differ in some dimension: it has not arrived. */
    while (net_product_coordinate(s, k, at) == net_product_coordinate(s, k, p->m.dst))
        k++;
    if (s->shape[k] == ORR_NET_SWITCH)
        return a->first_link[k] + 2 * at;
    if (s->shape[k] == ORR_NET_RING)
        return a->first_link[k] + 2 * at + !net_product_is_clockwise(s, k, at, p->m.dst);
    const uint32_t c = net_product_coordinate(s, k, p->m.dst);
    return pair_link(a, k, at, net_product_neighbour(s, k, at, c), err);
}

static orr_code aware_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    aware *a = net;
    return net_servers_send(&a->servers, sim, m, 0, err);
}

static orr_code aware_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    const orr_code code = check_config(cfg, err);
    if (code)
        return code;
    aware *a = orr_alloc(1, sizeof *a);
    if (!a)
        return orr_no_memory(err);
    net_servers_init(&a->servers, next_link, a);
    net_product_init(&a->shape, cfg);
    for (uint32_t k = 0; k < cfg->dims; k++) {
        a->speed[k] = net_link_speed(cfg->bandwidth[k]);
        a->latency[k] = cfg->latency_ns[k];
    }
    const bool ok = add_links(a);
    a->made_later = (uint32_t)a->servers.link_count;
    if (!ok) {
        aware_destroy(a);
        return orr_no_memory(err);
    }
    *out = a;
    return ORR_OK;
}

static void name_link(const void *net, uint32_t link, char out[ORR_NET_LINK_NAME])
{
    const aware *a = net;
    char from[NET_DEVICE_NAME], to[NET_DEVICE_NAME];
    net_product_name(&a->shape, a->servers.links[link].from, from);
    net_product_name(&a->shape, a->servers.links[link].to, to);
    snprintf(out, ORR_NET_LINK_NAME, "%s -> %s", from, to);
}

/* Links of fully connected groups are numbered by first use; they are listed by rank, after the
 * others. */
static int by_ends(const void *x, const void *y, void *net)
{
    const aware *a = net;
    const uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const net_link *l = &a->servers.links[i], *m = &a->servers.links[k];
    const bool is_pair = i >= a->made_later, is_other_pair = k >= a->made_later;
    if (!is_pair || !is_other_pair)
        return i < k ? -1 : i > k;
    return l->from != m->from ? (l->from < m->from ? -1 : 1) : l->to < m->to ? -1 : l->to > m->to;
}

static void aware_report(const void *net, orr_net_link_visit visit, void *context)
{
    const aware *a = net;
    const bool has_pairs = a->servers.link_count > a->made_later;
    for (uint32_t i = 0; has_pairs && i < a->servers.link_count; i++)
        a->order[i] = i;
    if (has_pairs)
        qsort_r(a->order, a->servers.link_count, sizeof *a->order, by_ends, (void *)a);
    net_servers_report(&a->servers, has_pairs ? a->order : NULL, name_link, visit, context);
}

/* ---- links that represent others ---- */

bool orr__aware_fold(void *net, const net_symmetry *symmetry)
{
    aware *a = net;
    a->symmetry = symmetry;
    return net_servers_fold(&a->servers);
}

static void copy_figures(aware *a, uint32_t from, uint32_t to)
{
    const net_link *x = &a->servers.links[from];
    net_link *y = &a->servers.links[to];
    y->messages = x->messages;
    y->bytes = x->bytes;
    y->busy = x->busy;
    y->max_waiting = x->max_waiting;
}

/* NET_LINK_ARRIVED: the link is not at home, and represents nothing. */
static uint32_t copy_of_link(void *net, const net_copier *c, uint32_t k, uint32_t index)
{
    aware *a = net;
    orr_error unused;
    uint32_t d = 0;
    if (index >= a->made_later) {
        const net_link l = a->servers.links[index];
        while (net_product_coordinate(&a->shape, d, l.from) ==
               net_product_coordinate(&a->shape, d, l.to))
            d++;
        return pair_link(a, d, c->moved(c->context, k, l.from), c->moved(c->context, k, l.to),
                         &unused);
    }
    for (uint32_t i = 0; i < a->shape.dims; i++)
        if (a->shape.shape[i] != ORR_NET_FULLY_CONNECTED && index >= a->first_link[i])
            d = i;
    const uint32_t rank = (index - a->first_link[d]) / 2, side = (index - a->first_link[d]) % 2;
    if (net_sym_home(a->symmetry, rank) != rank)
        return NET_LINK_ARRIVED;
    return a->first_link[d] + 2 * c->moved(c->context, k, rank) + side;
}

static uint32_t copy_of_device(void *net, const net_copier *c, uint32_t k, uint32_t device)
{
    const aware *a = net;
    if (device < a->shape.ranks)
        return c->moved(c->context, k, device);
    const uint32_t d = net_product_switch_dim(&a->shape, device);
    const uint32_t member = net_product_member(&a->shape, d, device, 0);
    return net_product_switch(&a->shape, d, c->moved(c->context, k, member));
}

bool orr__aware_multiply(void *net, const net_copier *c)
{
    aware *a = net;
    return net_servers_multiply(&a->servers, c, copy_of_link, copy_of_device);
}

bool orr__aware_copy_call(void *net,
                          void (*call)(void *context, uint64_t argument),
                          uint32_t k,
                          uint64_t *argument)
{
    const aware *a = net;
    return net_servers_copy_call(&a->servers, call, k, argument);
}

void orr__aware_end_copies(void *net)
{
    aware *a = net;
    net_servers_end_copies(&a->servers);
}

/* Links of fully connected groups were made for home ranks only. */
static bool spread_pairs(aware *a)
{
    const size_t known = a->servers.link_count;
    orr_error unused;
    for (uint32_t i = a->made_later; i < known; i++) {
        const net_link l = a->servers.links[i];
        uint32_t k = 0;
        while (net_product_coordinate(&a->shape, k, l.from) ==
               net_product_coordinate(&a->shape, k, l.to))
            k++;
        for (uint32_t r = 0; r < a->shape.ranks; r++) {
            if (r == l.from || net_sym_home(a->symmetry, r) != l.from)
                continue;
            const uint32_t to = net_sym_back(a->symmetry, r, l.to);
            const uint32_t twin = pair_link(a, k, r, to, &unused);
            if (twin == NET_LINK_NONE)
                return false;
            copy_figures(a, i, twin);
        }
    }
    return true;
}

bool orr__aware_spread(void *net)
{
    aware *a = net;
    for (uint32_t k = 0; k < a->shape.dims; k++)
        for (uint32_t r = 0; r < a->shape.ranks && a->shape.shape[k] != ORR_NET_FULLY_CONNECTED;
             r++) {
            const uint32_t home = a->first_link[k] + 2 * net_sym_home(a->symmetry, r);
            copy_figures(a, home, a->first_link[k] + 2 * r);
            copy_figures(a, home + 1, a->first_link[k] + 2 * r + 1);
        }
    return !a->pairs || spread_pairs(a);
}

/* ---- a run in parts ---- */

static uint32_t keeper(void *net, const net_packet *p)
{
    const net_product *s = &((const aware *)net)->shape;
    if (p->at < s->ranks)
        return p->at;
    const uint32_t k = net_product_switch_dim(s, p->at);
    return net_product_member(s, k, p->at, net_product_coordinate(s, k, p->m.dst));
}

net_servers *orr__aware_divide(void *net, orr_net *sim, const net_division *division)
{
    aware *a = net;
    net_division own = *division;
    own.keeper = keeper;
    net_servers_divide(&a->servers, sim, &own);
    return &a->servers;
}

/* A message crosses the lowest dimensions first.  So it stays in the part of its source up to a
 * dimension whose groups, with everything inside them, each lie in one part. */
uint64_t orr__aware_least_delay(const void *net, const uint8_t *part_of)
{
    const aware *a = net;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < a->shape.dims; k++) {
        const uint32_t size = a->shape.stride[k] * a->shape.npus[k];
        bool is_inside = true;
        for (uint32_t r = 0; r < a->shape.ranks && is_inside; r++)
            is_inside = part_of[r] == part_of[r - r % size];
        /* Of one byte: no message has fewer (match.c). */
        const uint64_t delay = orr_ticks(a->latency[k] + 1 / a->speed[k]);
        if (!is_inside && delay < least)
            least = delay;
    }
    return least;
}

bool orr__aware_add(void *net, const void *part)
{
    aware *a = net;
    const aware *of = part;
    orr_error unused;
    for (uint32_t i = 0; i < of->servers.link_count; i++) {
        const net_link *l = &of->servers.links[i];
        uint32_t to = i, k = 0;
        if (!l->messages)
            continue;
        if (i >= a->made_later) {
            while (net_product_coordinate(&a->shape, k, l->from) ==
                   net_product_coordinate(&a->shape, k, l->to))
                k++;
            to = pair_link(a, k, l->from, l->to, &unused);
            if (to == NET_LINK_NONE)
                return false;
        }
        net_servers_add_figures(&a->servers, to, l);
    }
    return true;
}

const orr_net_ops orr__net_aware = {
    .name = "aware",
    .help = "store and forward; every link serves one message at a time",
    .create = aware_create,
    .send = aware_send,
    .destroy = aware_destroy,
    .report = aware_report,
};
