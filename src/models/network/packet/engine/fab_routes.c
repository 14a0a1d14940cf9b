/* SPDX-License-Identifier: Apache-2.0 */
/* fab_routes.c - the port towards a host, and the length of the route (packet-network.md 5).
 *
 *     columns: a switch with single-homed hosts, or a multi-homed host
 *     cells:   per column and router: one port, or a list of equal-cost ports
 *
 * One search per column, breadth-first or, if links have costs, Dijkstra; hosts at one switch share
 * it, so that the cells are quadratic in switches, not in hosts.  Routers are the switches, and
 * hosts with several links.  Equal lists, such as those upwards in a tree, are stored once. A
 * network with many cells makes its columns on demand, and stores no paths: the first ports are
 * followed instead.  So set-up is linear in the links, and run time depends on the destinations in
 * use. Candidates are in port order; with the reference's rules, in the order of a search that
 * visits hosts ascending and then switches descending. */
#include "fabric_impl.h"

#include "base/memory/hash.h"
#include "base/memory/heap.h"

#include <string.h>

/* Link failures and repairs (packet-network.md 9): their times, and the effect
 * on routes, flows and pauses.
 *
 * Cost: planning is linear in links and events; each event recomputes the routes. */

static void take_down(fab *f, uint32_t port)
{
    orr_error err;
    if (f->ports[port].is_down)
        return;
    /* The order is that of packet-network.md 9: down, so that the search avoids it; new routes;
     * flush queues; reassign flows to NICs. */
    f->ports[port].is_down = f->ports[f->ports[port].peer].is_down = true;
    orr_code code = fab_find_routes(f, &err);
    fab_lanes_follow_routes(f);
    fab_port_take_down(f, &f->ports[port]);
    fab_port_take_down(f, &f->ports[f->ports[port].peer]);
    if (!code)
        code = fab_host_redistribute(f, &err);
    if (code) {
        f->end.code = code;
        f->end.error = err;
        f->end.is_stopped = true;
    }
}

static void repair(fab *f, uint32_t port)
{
    fab_port *p = &f->ports[port], *q = &f->ports[p->peer];
    orr_error err;
    if (!p->is_down)
        return;
    /* Both ends first: the search and the reassignment of flows must see the repaired link. */
    fab_port_bring_up(f, p);
    fab_port_bring_up(f, q);
    orr_code code = fab_find_routes(f, &err);
    fab_lanes_follow_routes(f);
    if (!code)
        code = fab_host_redistribute(f, &err);
    if (code) {
        f->end.code = code;
        f->end.error = err;
        f->end.is_stopped = true;
        return;
    }
    fab_port_try(f, p);
    fab_port_try(f, q);
}

/* Flows without a route at their start try again; if nothing more is planned, they fail. */
static void wake_waiting(fab *f)
{
    uint32_t *flows;
    size_t count;
    if (!fab_flows_under_way(f, &flows, &count)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!f->flows[flows[i]].awaits_route)
            continue;
        fab *by = fab_acting(f, f->flows[flows[i]].src);
        fab_host_ready(by, flows[i]);
        if (by->end.code)
            break; /* the first error is reported */
    }
    orr_free(flows);
}

void fab_link_take_down(fab *f, uint32_t port)
{
    f->planned--;
    take_down(f, port);
    if (!f->planned)
        wake_waiting(f);
}

void fab_link_repair(fab *f, uint32_t port)
{
    f->planned--;
    repair(f, port);
    wake_waiting(f);
}

/* ---- when ---- */

/* LINK_DOWN. */
orr_code fab_plan_failure(fab *f, orr_error *err)
{
    const orr_where w = orr__packet_config_where(&f->config, "LINK_DOWN");
    const uint64_t after_us = f->config.down_us + f->rules.link_down_offset;
    if (!f->config.has_down)
        return ORR_OK;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i], *q = &f->ports[p->peer];
        if (p->node == f->config.down_a && q->node == f->config.down_b) {
            f->planned++;
            (void)fab_after(f, after_us * 1000 * f->unit, FAB_EV_DOWN, i);
            return ORR_OK;
        }
    }
    return orr_fail(err, ORR_EINPUT, &w, "LINK_DOWN: there is no link from %llu to %llu",
                    (unsigned long long)f->config.down_a, (unsigned long long)f->config.down_b);
}

/* The cables of each pair of nodes: the first in `first`, the others chained in `next`, in file
 * order. */
static bool gather_cables(const fab *f, orr_map *first, uint32_t *next)
{
    /* Backwards, so that prepending preserves file order. */
    for (uint32_t i = f->port_count; i > 0; i -= 2) {
        const uint32_t port = i - 2;
        const uint64_t pair = orr__pair_key(f->ports[port].node, f->ports[port + 1].node);
        next[port / 2] = orr_map_find(first, pair, FAB_NONE);
        if (!orr_map_put(first, pair, port, NULL))
            return false;
    }
    return true;
}

static bool plan_events(fab *f,
                        const orr__link_events *e,
                        const orr_map *first,
                        const uint32_t *next)
{
    for (size_t i = 0; i < e->count; i++) {
        const orr__link_event *one = &e->events[i];
        const uint64_t at = f->unit == 1 ? (one->at_ps + 500) / 1000 : one->at_ps; /* nearest ns */
        uint32_t port = orr_map_find(first, orr__pair_key(one->a, one->b), FAB_NONE);
        for (; port != FAB_NONE; port = next[port / 2]) {
            f->planned++;
            if (fab_after(f, at, one->is_up ? FAB_EV_UP : FAB_EV_DOWN, port) == FAB_NO_EVENT)
                return false;
        }
    }
    return true;
}

orr_code fab_plan(fab *f, const orr__link_events *e, orr_error *err)
{
    if (e->count == 0)
        return ORR_OK;
    orr_map *first = orr_map_create(f->port_count / 2);
    uint32_t *next = orr_alloc(f->port_count / 2, sizeof *next);
    const bool has_memory =
        first && next && gather_cables(f, first, next) && plan_events(f, e, first, next);
    orr_map_destroy(first);
    orr_free(next);
    return has_memory ? ORR_OK : orr_no_memory(err);
}

#define IS_LIST 0x80000000u /* of a cell: an offset in `lists`; FAB_NONE has this bit, too */

enum { MOST_CELLS = 1 << 20 }; /* limit for making all columns at once */

typedef struct neighbour {
    uint32_t node, port;
} neighbour;

typedef struct search search;

struct fab_routes {
    uint32_t columns, routers;
    uint32_t *column_of; /* by host */
    /* by host: the port from the switch of its column; FAB_NONE: it is a column itself */
    uint32_t *root_port;
    uint32_t *router_of; /* by node; FAB_NONE: it has a single link, to a switch */
    uint32_t **cells;    /* by column: by router; NULL: not made yet */
    /* the same; bandwidth 0: no route.  NULL if columns are made on demand */
    fab_path **paths;
    uint32_t *roots; /* by column: the start of its search */
    uint32_t *lists; /* a count, then ports */
    size_t list_count, list_room;
    orr_map *list_at; /* by a hash of what is in it */
    uint32_t longest; /* hops of the longest shortest route */
    search *search;   /* for columns on demand; NULL: all exist */
};

/* Working memory of a search. */
struct search {
    const fab *f;
    fab_routes *r;
    uint32_t *first; /* of a node, in neighbours; one more at the end */
    neighbour *neighbours;
    uint32_t *distance, *waiting;
    fab_path *paths;      /* by node */
    neighbour *found;     /* candidates in the order found */
    uint32_t *found_next; /* of the same node */
    size_t found_count, found_room, next_room;
    uint32_t *sorted; /* candidates of one node */
    size_t sorted_room;
    uint32_t *found_first, *found_last; /* by router */
    orr_heap heap;                      /* with costs: nodes by distance */
    /* with costs: maximum hops of a shortest route, by node */
    uint32_t *hops;
    bool has_nvswitches, has_costs;
};

static void drop_search(search *s);

void fab_routes_free(fab_routes *r)
{
    if (!r)
        return;
    orr_free(r->column_of);
    orr_free(r->root_port);
    orr_free(r->router_of);
    for (uint32_t i = 0; i < r->columns; i++) {
        if (r->cells)
            orr_free(r->cells[i]);
        if (r->paths)
            orr_free(r->paths[i]);
    }
    orr_free(r->cells);
    orr_free(r->paths);
    orr_free(r->roots);
    orr_free(r->lists);
    orr_map_destroy(r->list_at);
    drop_search(r->search);
    orr_free(r);
}

/* ---- neighbours ---- */

static bool visits_before(const fab *f, neighbour a, neighbour b)
{
    const bool a_switch = f->nodes[a.node].kind != ORR__HOST;
    const bool b_switch = f->nodes[b.node].kind != ORR__HOST;
    if (a_switch != b_switch)
        return b_switch;
    if (a.node != b.node)
        return a_switch ? a.node > b.node : a.node < b.node;
    return a.port > b.port; /* of two cables the reference knows the later one */
}

static void sort_neighbours(const fab *f, neighbour *n, uint32_t count)
{
    for (uint32_t gap = count / 2; gap; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            const neighbour one = n[i];
            uint32_t j = i;
            for (; j >= gap && visits_before(f, one, n[j - gap]); j -= gap)
                n[j] = n[j - gap];
            n[j] = one;
        }
}

static uint32_t list_neighbours(search *s, uint32_t node, uint32_t at)
{
    const fab *f = s->f;
    const fab_node *n = &f->nodes[node];
    const uint32_t from = at;
    for (uint32_t i = 0; i < n->port_count; i++) {
        const uint32_t port = f->ports_of[n->first_port + i];
        s->has_costs |= f->ports[port].cost > 1;
        if (!f->ports[port].is_down)
            s->neighbours[at++] = (neighbour){f->ports[f->ports[port].peer].node, port};
    }
    if (!f->rules.routes_by_address)
        return at; /* by port */
    sort_neighbours(f, s->neighbours + from, at - from);
    uint32_t kept = from;
    /* Of several cables to one neighbour the first in this order is kept. */
    for (uint32_t i = from; i < at; i++)
        if (i == from || s->neighbours[i].node != s->neighbours[kept - 1].node)
            s->neighbours[kept++] = s->neighbours[i];
    return kept;
}

static void find_neighbours(search *s)
{
    uint32_t at = 0;
    for (uint32_t node = 0; node < s->f->node_count; node++) {
        s->has_nvswitches |= s->f->nodes[node].kind == ORR__NVSWITCH;
        s->first[node] = at;
        at = list_neighbours(s, node, at);
    }
    s->first[s->f->node_count] = at;
}

/* ---- columns and routers ---- */

/* The switch of a single-homed host; FAB_NONE: it is not single-homed. */
static uint32_t only_switch(const search *s, uint32_t host)
{
    const uint32_t from = s->first[host];
    if (s->first[host + 1] - from != 1)
        return FAB_NONE;
    const uint32_t node = s->neighbours[from].node;
    return s->f->nodes[node].kind == ORR__HOST ? FAB_NONE : node;
}

static bool name_columns(search *s)
{
    fab_routes *r = s->r;
    const fab *f = s->f;
    uint32_t *by_switch = orr_alloc(f->node_count, sizeof *by_switch);
    if (!by_switch)
        return false;
    memset(by_switch, 0xff, f->node_count * sizeof *by_switch);
    for (uint32_t n = 0; n < f->node_count; n++) {
        r->router_of[n] = r->root_port[n] = r->column_of[n] = FAB_NONE;
        if (f->nodes[n].kind != ORR__HOST) {
            r->router_of[n] = r->routers++;
            continue;
        }
        const uint32_t root = only_switch(s, n);
        if (root == FAB_NONE) {
            r->router_of[n] = r->routers++;
            r->column_of[n] = r->columns++;
            continue;
        }
        if (by_switch[root] == FAB_NONE)
            by_switch[root] = r->columns++;
        r->column_of[n] = by_switch[root];
        r->root_port[n] = f->ports[s->neighbours[s->first[n]].port].peer;
    }
    orr_free(by_switch);
    return true;
}

/* ---- one search ---- */

static fab_path extended(const fab *f, const fab_path *p, const fab_port *by)
{
    const uint64_t bits = f->config.payload * 8 * 1000000000u;
    return (fab_path){p->delay + by->delay,
                      p->transmission + (uint64_t)((unsigned __int128)bits * f->unit / by->rate),
                      p->bandwidth < by->rate ? p->bandwidth : by->rate};
}

static bool note_candidate(search *s, uint32_t router, uint32_t port)
{
    if (!orr_grow(&s->found, &s->found_room, s->found_count + 1) ||
        !orr_grow(&s->found_next, &s->next_room, s->found_count + 1))
        return false;
    const uint32_t i = (uint32_t)s->found_count++;
    s->found[i] = (neighbour){router, port};
    s->found_next[i] = FAB_NONE;
    if (s->found_first[router] == FAB_NONE)
        s->found_first[router] = i;
    else
        s->found_next[s->found_last[router]] = i;
    s->found_last[router] = i;
    return true;
}

static void begin_at(search *s, uint32_t root)
{
    memset(s->distance, 0xff, s->f->node_count * sizeof *s->distance);
    memset(s->found_first, 0xff, s->r->routers * sizeof *s->found_first);
    s->found_count = 0;
    s->distance[root] = 0;
    s->paths[root] = (fab_path){0, 0, UINT64_MAX};
}

/* Relaxes one link from a settled node: a shorter route, an equal one, or neither. */
static bool reach(search *s, uint32_t here, neighbour n)
{
    const fab *f = s->f;
    const uint32_t there = n.node, router = s->r->router_of[there];
    const uint32_t distance = s->distance[here] + f->ports[n.port].cost;
    if (distance < s->distance[there]) {
        s->distance[there] = distance;
        s->hops[there] = 0;
        s->paths[there] = extended(f, &s->paths[here], &f->ports[n.port]);
        if (router != FAB_NONE)
            s->found_first[router] = FAB_NONE;
        if ((f->nodes[there].kind != ORR__HOST || f->config.forward_hosts) &&
            !orr_heap_push(&s->heap, distance, there))
            return false;
    }
    if (distance != s->distance[there])
        return true;
    /* Of equally short routes the one with most links, as telemetry has a place per link. */
    if (s->hops[there] < s->hops[here] + 1)
        s->hops[there] = s->hops[here] + 1;
    if (s->hops[there] > s->r->longest)
        s->r->longest = s->hops[there];
    return router == FAB_NONE || note_candidate(s, router, f->ports[n.port].peer);
}

static bool search_by_cost(search *s, uint32_t root)
{
    orr_heap_entry next;
    begin_at(s, root);
    s->hops[root] = 0;
    if (!orr_heap_push(&s->heap, 0, root))
        return false;
    while (orr_heap_pop(&s->heap, &next)) {
        const uint32_t here = next.value;
        /* Stale entry: a shorter route was found after it was pushed. */
        if (next.key != s->distance[here])
            continue;
        for (uint32_t i = s->first[here]; i < s->first[here + 1]; i++)
            if (!reach(s, here, s->neighbours[i]))
                return false;
    }
    return true;
}

static bool search_by_breadth(search *s, uint32_t root)
{
    const fab *f = s->f;
    size_t head = 0, tail = 0;
    begin_at(s, root);
    s->waiting[tail++] = root;
    while (head < tail) {
        const uint32_t here = s->waiting[head++];
        for (uint32_t i = s->first[here]; i < s->first[here + 1]; i++) {
            const uint32_t there = s->neighbours[i].node, port = s->neighbours[i].port;
            if (s->distance[there] == FAB_NONE) {
                s->distance[there] = s->distance[here] + 1;
                s->paths[there] = extended(f, &s->paths[here], &f->ports[port]);
                if (f->nodes[there].kind != ORR__HOST || f->config.forward_hosts)
                    s->waiting[tail++] = there;
            }
            const uint32_t router = s->r->router_of[there];
            /* Every neighbour that is one step nearer is a candidate, not only the one that found
             * the node. */
            if (s->distance[there] == s->distance[here] + 1 && router != FAB_NONE &&
                !note_candidate(s, router, f->ports[port].peer))
                return false;
            if (s->distance[there] > s->r->longest)
                s->r->longest = s->distance[there];
        }
    }
    return true;
}

static bool leads_to_nvswitch(const search *s, uint32_t i)
{
    const fab *f = s->f;
    return f->nodes[f->ports[f->ports[s->found[i].port].peer].node].kind == ORR__NVSWITCH;
}

/* Of equally short routes, those through an NVSwitch are preferred (packet-network.md 13): remove
 * the others. */
static void prefer_nvswitches(search *s, uint32_t router)
{
    uint32_t *at = &s->found_first[router];
    bool has_any = false;
    for (uint32_t i = *at; i != FAB_NONE; i = s->found_next[i])
        has_any |= leads_to_nvswitch(s, i);
    while (has_any && *at != FAB_NONE)
        if (leads_to_nvswitch(s, *at))
            at = &s->found_next[*at];
        else
            *at = s->found_next[*at];
}

static uint32_t list_length(const search *s, uint32_t router)
{
    uint32_t count = 0;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i])
        count++;
    return count;
}

static uint64_t hash_list(const search *s, uint32_t router, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i])
        /* Order matters: a list is indexed by a hash, so the same ports in another order are a
         * different list. */
        hash = orr_hash_mix(hash, s->found[i].port);
    return hash;
}

static bool is_list(const search *s, uint32_t router, const uint32_t *list, uint32_t count)
{
    if (*list++ != count)
        return false;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i])
        if (*list++ != s->found[i].port)
            return false;
    return true;
}

static bool add_list(search *s, uint32_t router, uint32_t count, uint32_t *out)
{
    fab_routes *r = s->r;
    const uint64_t hash = hash_list(s, router, count);
    const uint32_t known = orr_map_find(r->list_at, hash, FAB_NONE);
    /* The hash only finds a candidate.  Two lists with one hash both work: the later takes the
     * entry, and the earlier stays referenced by its cells. */
    if (known != FAB_NONE && is_list(s, router, &r->lists[known], count)) {
        *out = IS_LIST | known;
        return true;
    }
    if (r->list_count + count + 1 >= IS_LIST ||
        !orr_grow(&r->lists, &r->list_room, r->list_count + count + 1) ||
        !orr_map_put(r->list_at, hash, (uint32_t)r->list_count, NULL))
        return false;
    *out = IS_LIST | (uint32_t)r->list_count;
    r->lists[r->list_count++] = count;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i])
        r->lists[r->list_count++] = s->found[i].port;
    return true;
}

static void sort_ports(uint32_t *ports, uint32_t count)
{
    for (uint32_t gap = count / 2; gap; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            const uint32_t one = ports[i];
            uint32_t j = i;
            for (; j >= gap && one < ports[j - gap]; j -= gap)
                ports[j] = ports[j - gap];
            ports[j] = one;
        }
}

/* By port number (packet-network.md 14 row 8); mostly they are found in that order.  Ports of a
 * node have ascending numbers. */
static bool order_candidates(search *s, uint32_t router, uint32_t count)
{
    uint32_t at = 0;
    bool is_ordered = true;
    if (!orr_grow(&s->sorted, &s->sorted_room, count))
        return false;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i]) {
        is_ordered &= at == 0 || s->sorted[at - 1] < s->found[i].port;
        s->sorted[at++] = s->found[i].port;
    }
    if (is_ordered)
        return true;
    sort_ports(s->sorted, count);
    at = 0;
    for (uint32_t i = s->found_first[router]; i != FAB_NONE; i = s->found_next[i])
        s->found[i].port = s->sorted[at++];
    return true;
}

static bool keep_candidates(search *s, uint32_t router, uint32_t *out)
{
    if (s->has_nvswitches)
        prefer_nvswitches(s, router);
    const uint32_t count = list_length(s, router);
    if (count > 1 && !s->f->rules.routes_by_address && !order_candidates(s, router, count))
        return false;
    *out = FAB_NONE;
    if (count == 1)
        *out = s->found[s->found_first[router]].port;
    return count <= 1 || add_list(s, router, count, out);
}

/* Follows the first port at each node. */
static fab_path follow(
    const fab *f, const fab_routes *r, const uint32_t *cells, uint32_t node, uint32_t root)
{
    fab_path path = {0, 0, UINT64_MAX};
    for (uint32_t hops = 0; node != root; hops++) {
        const uint32_t found = cells[r->router_of[node]];
        /* A cycle is possible only with costs of 0, which do not occur; the limit keeps a bug from
         * hanging the program. */
        if (found == FAB_NONE || hops > f->node_count)
            return (fab_path){0};
        const uint32_t port = found & IS_LIST ? r->lists[(found & ~IS_LIST) + 1] : found;
        path = extended(f, &path, &f->ports[port]);
        node = f->ports[f->ports[port].peer].node;
    }
    return path;
}

/* With the reference's rules, the route found first. */
static bool keep_paths(search *s, uint32_t column, const uint32_t *cells)
{
    fab_routes *r = s->r;
    const bool is_first_found = s->f->rules.routes_by_address;
    fab_path *paths = r->paths[column] = orr_alloc(r->routers, sizeof *paths);
    for (uint32_t n = 0; n < s->f->node_count && paths; n++)
        if (r->router_of[n] != FAB_NONE && s->distance[n] != FAB_NONE)
            paths[r->router_of[n]] =
                is_first_found ? s->paths[n] : follow(s->f, r, cells, n, r->roots[column]);
    return paths != NULL;
}

static bool make_column(search *s, uint32_t column)
{
    fab_routes *r = s->r;
    const uint32_t root = r->roots[column];
    if (!(s->has_costs ? search_by_cost(s, root) : search_by_breadth(s, root)))
        return false;
    uint32_t *cells = orr_alloc(r->routers, sizeof *cells);
    bool is_well = cells != NULL;
    for (uint32_t i = 0; i < r->routers && is_well; i++)
        is_well = keep_candidates(s, i, &cells[i]);
    if (is_well && r->paths)
        is_well = keep_paths(s, column, cells);
    if (is_well)
        r->cells[column] = cells;
    else
        orr_free(cells);
    return is_well;
}

/* NULL: out of memory. */
static const uint32_t *cells_of(fab_routes *r, uint32_t column)
{
    if (!r->cells[column] && (!r->search || !make_column(r->search, column)))
        return NULL;
    return r->cells[column];
}

/* ---- everything ---- */

static bool make_search(search *s)
{
    const size_t nodes = s->f->node_count, ports = s->f->port_count;
    s->first = orr_alloc(nodes + 1, sizeof *s->first);
    s->neighbours = orr_alloc(ports, sizeof *s->neighbours);
    s->distance = orr_alloc(nodes, sizeof *s->distance);
    s->waiting = orr_alloc(nodes, sizeof *s->waiting);
    s->paths = orr_alloc(nodes, sizeof *s->paths);
    s->hops = orr_alloc(nodes, sizeof *s->hops);
    s->r->column_of = orr_alloc(nodes, sizeof *s->r->column_of);
    s->r->root_port = orr_alloc(nodes, sizeof *s->r->root_port);
    s->r->router_of = orr_alloc(nodes, sizeof *s->r->router_of);
    return s->first && s->neighbours && s->distance && s->waiting && s->paths && s->hops &&
           s->r->column_of && s->r->root_port && s->r->router_of;
}

/* Columns are numbered in the order of their first hosts. */
static void find_roots(search *s)
{
    fab_routes *r = s->r;
    uint32_t done = 0;
    for (uint32_t n = 0; n < s->f->node_count; n++)
        if (r->column_of[n] == done)
            r->roots[done++] = r->root_port[n] == FAB_NONE ? n : only_switch(s, n);
}

static bool make_table(search *s)
{
    fab_routes *r = s->r;
    s->found_first = orr_alloc(r->routers + 1, sizeof *s->found_first);
    s->found_last = orr_alloc(r->routers + 1, sizeof *s->found_last);
    r->cells = orr_alloc(r->columns + 1, sizeof *r->cells);
    r->roots = orr_alloc(r->columns + 1, sizeof *r->roots);
    r->list_at = orr_map_create(16);
    if (!s->found_first || !s->found_last || !r->cells || !r->roots || !r->list_at)
        return false;
    find_roots(s);
    /* Too many to make them all: the search is kept, and columns are made on demand (cells_of). */
    if ((uint64_t)r->columns * r->routers > MOST_CELLS)
        return true;
    r->paths = orr_alloc(r->columns + 1, sizeof *r->paths);
    bool is_well = r->paths != NULL;
    for (uint32_t i = 0; i < r->columns && is_well; i++)
        is_well = make_column(s, i);
    return is_well;
}

static void drop_search(search *s)
{
    if (!s)
        return;
    orr_free(s->first);
    orr_free(s->neighbours);
    orr_free(s->distance);
    orr_free(s->waiting);
    orr_free(s->paths);
    orr_free(s->found);
    orr_free(s->found_next);
    orr_free(s->sorted);
    orr_free(s->found_first);
    orr_free(s->found_last);
    orr_free(s->hops);
    orr_heap_fini(&s->heap);
    orr_free(s);
}

orr_code fab_find_routes(fab *f, orr_error *err)
{
    fab_routes *r = orr_alloc(1, sizeof *r);
    search *s = orr_alloc(1, sizeof *s);
    bool is_made = r && s;
    if (is_made) {
        s->f = f;
        s->r = r;
        is_made = make_search(s);
    }
    if (is_made) {
        find_neighbours(s);
        is_made = name_columns(s) && make_table(s);
    }
    if (is_made && !r->paths)
        r->search = s;
    else
        drop_search(s);
    if (!is_made) {
        fab_routes_free(r);
        return orr_no_memory(err);
    }
    /* The old routes stay until the new ones are complete: a search that runs out of memory leaves
     * a network that can still be queried and freed. */
    fab_routes_free(f->routes);
    f->routes = r;
    return ORR_OK;
}

/* ---- queries ---- */

uint32_t fab_longest(const fab *f)
{
    fab_routes *r = f->routes;
    /* Without a table every column is searched again, only to find the longest. */
    for (uint32_t i = 0; i < r->columns && r->search; i++)
        (void)!(r->search->has_costs ? search_by_cost(r->search, r->roots[i])
                                     : search_by_breadth(r->search, r->roots[i]));
    return r->longest;
}

bool fab_knows_paths(const fab *f)
{
    return f->routes->paths != NULL;
}

uint64_t fab_pairs(const fab *f)
{
    return (uint64_t)f->routes->columns * f->routes->routers;
}

/* Source, destination and ports as in the packet. */
static uint32_t hash_of(const fab *f, const fab_frame *p, uint32_t seed)
{
    /* Entropy values are small consecutive numbers; spread over all bits, neighbours take different
     * ports. */
    const uint32_t more = f->config.load_balance ? p->power * 0x9e3779b1u : 0;
    return net_ecmp_hash(net_ecmp_address(p->from), net_ecmp_address(p->to), p->ports ^ more, seed);
}

uint32_t fab_route(const fab *f, uint32_t node, const fab_frame *p)
{
    fab_routes *r = f->routes;
    const uint32_t *cells = cells_of(r, r->column_of[p->to]);
    const uint32_t found = cells ? cells[r->router_of[node]] : FAB_NONE;
    /* FAB_NONE has the list bit too: one test for the common case of a single port. */
    if (!(found & IS_LIST))
        return found;
    if (found == FAB_NONE) {
        /* The root of a column has no cell there: it is the destination's own switch. */
        const uint32_t last = r->root_port[p->to];
        return last != FAB_NONE && f->ports[last].node == node ? last : FAB_NONE;
    }
    const uint32_t *list = &r->lists[found & ~IS_LIST];
    return list[1 + hash_of(f, p, node) % list[0]];
}

uint32_t fab_nic_towards(const fab *f, uint32_t from, uint32_t to, uint32_t ports, uint32_t seed)
{
    fab_routes *r = f->routes;
    if (r->router_of[from] == FAB_NONE)
        return f->ports[r->root_port[from]].peer;
    const uint32_t *cells = cells_of(r, r->column_of[to]);
    const uint32_t found = cells ? cells[r->router_of[from]] : FAB_NONE;
    if (found == FAB_NONE || !(found & IS_LIST))
        return found;
    const uint32_t *list = &r->lists[found & ~IS_LIST];
    const uint32_t hash = net_ecmp_hash(net_ecmp_address(from), net_ecmp_address(to), ports, seed);
    return list[1 + hash % list[0]];
}

void fab_need_routes(const fab *f, uint32_t host)
{
    (void)cells_of(f->routes, f->routes->column_of[host]);
}

bool fab_find_path(const fab *f, uint32_t src, uint32_t dst, fab_path *out)
{
    fab_routes *r = f->routes;
    const uint32_t router = r->router_of[src], column = r->column_of[dst];
    const fab_port *up = router == FAB_NONE ? &f->ports[r->root_port[src]] : NULL;
    const uint32_t *cells = cells_of(r, column);
    *out = (fab_path){0};
    if (cells && r->paths)
        *out = r->paths[column][up ? r->router_of[up->node] : router];
    else if (cells)
        *out = follow(f, r, cells, up ? up->node : src, r->roots[column]);
    if (out->bandwidth == 0)
        return false;
    if (r->root_port[dst] != FAB_NONE)
        *out = extended(f, out, &f->ports[r->root_port[dst]]);
    if (up)
        *out = extended(f, out, up);
    return true;
}
