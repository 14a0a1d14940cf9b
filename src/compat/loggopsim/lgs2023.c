/* SPDX-License-Identifier: Apache-2.0 */
/* lgs2023.c - the rules of the LogGOPSim of 2023 (goal.md 3.3 and 3.4): our engine with its bugs
 * put back; and what it shares with the LogGOPSim of ATLAHS. */
#include "loggopsim.h"

#include "base/formats/dot.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"
#include "compat/library_sort.h"
#include "run/loggops/lgs_body.h"

#include <math.h>
#include <stdlib.h>

/* ==== LogGOPSim's network "simple": messages share the links of their routes (goal.md 3.5).
 *
 * The graph is in DOT: nodes whose names begin with H are hosts, in order of appearance; an edge is
 * a link, and its comment lists the nodes reached over it, or is "*" if there is no choice.  A
 * message occupies all links of its route from the start and moves at one byte per nanosecond,
 * divided by the number of messages on its busiest link.  Its remaining size is counted in 1/10000
 * of a byte and updated whenever its share changes.  LogGOPSim forgets a message at the first query
 * and aborts at the second, which happens if the receiver was busy; here a message that has arrived
 * stays arrived. */

enum { UNITS = 10000 };

typedef struct simple_link {
    uint32_t from, to;
    uint32_t *messages;
    size_t count, room;
} simple_link;

typedef struct simple_message {
    int64_t left;            /* in UNITS of a byte */
    uint64_t at;             /* time of that value */
    uint64_t expected;       /* arrival time on idle links */
    uint32_t source, target; /* nodes */
    uint32_t share;          /* messages on its busiest link */
    bool is_there;
} simple_message;

struct simple_links {
    simple_link *links;
    size_t link_count, link_room;
    orr_map *next;  /* (node, target) -> link, where a comment names the target */
    uint32_t *only; /* per node: its only link; UINT32_MAX: none; UINT32_MAX - 1: several */
    uint32_t *host; /* per rank: its node */
    uint32_t nodes, hosts;
    simple_message *messages;
    size_t message_count, message_room;
    orr_map *known; /* (host, operation) -> message */
    uint32_t *way;  /* scratch: the links of a route */
    size_t way_count, way_room;
    uint32_t *pending; /* messages whose `expected` is not past, by start */
    size_t pending_count, pending_room;
};

/* ---- reading the graph */

typedef struct simple_reader {
    struct simple_links *l;
    orr__dot dot;
    orr_intern *names;
    orr_error *err;
} simple_reader;

static int by_place(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

typedef struct simple_name {
    const char *ptr;
    size_t len;
} simple_name;

/* Nodes are numbered by first appearance; names are slices of the file, so sorting by address does
 * it. */
static orr_code number_nodes(simple_reader *r)
{
    const orr__dot *d = &r->dot;
    const size_t count = d->node_count + 2 * d->edge_count;
    simple_name *names = orr_alloc(count, sizeof *names);
    if (!names)
        return orr_no_memory(r->err);
    size_t n = 0;
    for (size_t i = 0; i < d->node_count; i++)
        names[n++] = (simple_name){d->nodes[i].name.ptr, d->nodes[i].name.len};
    for (size_t i = 0; i < d->edge_count; i++) {
        names[n++] = (simple_name){d->edges[i].from.ptr, d->edges[i].from.len};
        names[n++] = (simple_name){d->edges[i].to.ptr, d->edges[i].to.len};
    }
    orr_sort(names, count, sizeof *names, by_place);
    bool is_good = true;
    for (size_t i = 0; is_good && i < count; i++) {
        uint32_t number;
        is_good = orr_intern_add(r->names, (orr_str){names[i].ptr, names[i].len}, &number);
    }
    orr_free(names);
    r->l->nodes = orr_intern_count(r->names);
    return is_good ? ORR_OK : orr_no_memory(r->err);
}

static orr_code number_hosts(simple_reader *r, uint32_t hosts)
{
    struct simple_links *l = r->l;
    l->host = orr_alloc(l->nodes, sizeof *l->host);
    l->only = orr_alloc(l->nodes, sizeof *l->only);
    if (!l->host || !l->only)
        return orr_no_memory(r->err);
    for (uint32_t i = 0; i < l->nodes; i++) {
        l->only[i] = UINT32_MAX;
        const orr_str name = orr_intern_get(r->names, i);
        if (name.len && name.ptr[0] == 'H')
            l->host[l->hosts++] = i;
    }
    if (l->hosts >= hosts)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_where_line(r->dot.path, 1, 1)),
                    "%u hosts (nodes whose names begin with H) for %u ranks", l->hosts, hosts);
}

static uint64_t pair_of(uint32_t node, uint32_t target)
{
    return (uint64_t)node << 32 | target;
}

/* "H0, H1 H2": the nodes reached over a link.  The first link that names a node wins. */
static orr_code add_targets(simple_reader *r, uint32_t number, orr_str list)
{
    const simple_link *k = &r->l->links[number];
    for (size_t i = 0; i < list.len;) {
        size_t n = 0;
        while (i + n < list.len && !strchr(", \t\n", list.ptr[i + n]))
            n++;
        const orr_str name = {list.ptr + i, n};
        i += n + 1;
        uint32_t target;
        if (n == 0)
            continue;
        if (!orr_intern_find(r->names, name, &target))
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&r->dot, name.ptr)),
                            "\"%.*s\" is not a node of this graph", (int)(n < 60 ? n : 60),
                            name.ptr);
        const uint64_t key = pair_of(k->from, target);
        if (orr_map_find(r->l->next, key, UINT32_MAX) == UINT32_MAX &&
            !orr_map_put(r->l->next, key, number, NULL))
            return orr_no_memory(r->err);
    }
    return ORR_OK;
}

static orr_code add_link(simple_reader *r, const orr__dot_edge *e)
{
    struct simple_links *l = r->l;
    const uint32_t number = (uint32_t)l->link_count;
    if (!e->comment.ptr)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&r->dot, e->from.ptr)),
                        "this edge has no comment: it must be \"*\" or a list of nodes");
    if (!orr_grow(&l->links, &l->link_room, l->link_count + 1))
        return orr_no_memory(r->err);
    simple_link k = {0};
    orr_intern_find(r->names, e->from, &k.from);
    orr_intern_find(r->names, e->to, &k.to);
    l->links[l->link_count++] = k;
    uint32_t *only = &l->only[k.from];
    *only = *only == UINT32_MAX ? number : UINT32_MAX - 1;
    return orr_str_is(e->comment, "*") ? ORR_OK : add_targets(r, number, e->comment);
}

static orr_code read_graph(simple_reader *r, orr_span bytes, const char *path, uint32_t hosts)
{
    orr_code code = orr__dot_read(&r->dot, bytes, path, r->err);
    if (code || (code = number_nodes(r)) || (code = number_hosts(r, hosts)))
        return code;
    for (size_t i = 0; !code && i < r->dot.edge_count; i++)
        code = add_link(r, &r->dot.edges[i]);
    return code;
}

static orr_code simple_links_open(const char *path,
                                  uint32_t hosts,
                                  struct simple_links **out,
                                  orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    struct simple_links *l = orr_alloc(1, sizeof *l);
    *out = l;
    simple_reader r = {.l = l, .names = orr_intern_create(), .err = err};
    if (l) {
        l->next = orr_map_create(64);
        l->known = orr_map_create(64);
    }
    if (!l || !r.names || !l->next || !l->known)
        code = orr_no_memory(err);
    else
        code = read_graph(&r, orr_input_bytes(in), path, hosts);
    orr__dot_fini(&r.dot);
    orr_intern_destroy(r.names);
    orr_input_close(in);
    return code;
}

static void simple_links_close(struct simple_links *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->link_count; i++)
        orr_free(l->links[i].messages);
    orr_free(l->links);
    orr_map_destroy(l->next);
    orr_map_destroy(l->known);
    orr_free(l->only);
    orr_free(l->host);
    orr_free(l->messages);
    orr_free(l->way);
    orr_free(l->pending);
    orr_free(l);
}

/* ---- messages in flight */

/* The route between two nodes, into l->way. */
static orr_code find_way(struct simple_links *l, uint32_t from, uint32_t to, orr_error *err)
{
    l->way_count = 0;
    for (uint32_t at = from; at != to;) {
        uint32_t k = l->only[at];
        if (k == UINT32_MAX - 1)
            k = orr_map_find(l->next, pair_of(at, to), UINT32_MAX);
        if (k == UINT32_MAX || l->way_count >= l->link_count)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "the network has no route from node %u to node %u (counted from 0)",
                            from, to);
        if (!orr_push(l->way, l->way_count, l->way_room, k))
            return orr_no_memory(err);
        at = l->links[k].to;
    }
    return ORR_OK;
}

static void bring_up_to_date(simple_message *m, uint64_t now)
{
    const uint64_t passed = now - m->at;
    m->left -= (int64_t)floor((double)passed * UNITS / m->share);
    m->at = now;
}

static void leave_link(simple_link *k, uint32_t number)
{
    size_t n = 0;
    for (size_t i = 0; i < k->count; i++) {
        if (k->messages[i] != number)
            k->messages[n++] = k->messages[i];
    }
    k->count = n;
}

static orr_code find_share(struct simple_links *l, simple_message *m, orr_error *err)
{
    const orr_code code = find_way(l, m->source, m->target, err);
    m->share = 1;
    for (size_t i = 0; i < l->way_count; i++) {
        if (l->links[l->way[i]].count > m->share)
            m->share = (uint32_t)l->links[l->way[i]].count;
    }
    return code;
}

/* A message has arrived: those that share links with it speed up. */
static orr_code arrive(struct simple_links *l, uint32_t number, uint64_t now, orr_error *err)
{
    simple_message *m = &l->messages[number];
    orr_code code = find_way(l, m->source, m->target, err);
    m->is_there = true;
    const size_t count = l->way_count;
    uint32_t *ways = orr_alloc(count, sizeof *ways);
    if (!ways)
        return orr_no_memory(err);
    if (count)
        memcpy(ways, l->way, count * sizeof *ways);
    for (size_t i = 0; i < count; i++)
        leave_link(&l->links[ways[i]], number);
    for (size_t i = 0; i < count; i++) {
        const simple_link *k = &l->links[ways[i]];
        for (size_t j = 0; j < k->count && !code; j++) {
            bring_up_to_date(&l->messages[k->messages[j]], now);
            code = find_share(l, &l->messages[k->messages[j]], err);
        }
    }
    orr_free(ways);
    return code;
}

static orr_code query(
    struct simple_links *l, uint32_t number, uint64_t now, uint64_t *out, orr_error *err)
{
    simple_message *m = &l->messages[number];
    *out = now;
    if (m->is_there)
        return ORR_OK;
    bring_up_to_date(m, now);
    if (m->left <= 0)
        return arrive(l, number, now, err);
    *out = now + (uint64_t)ceil((double)m->left / UNITS);
    return ORR_OK;
}

/* Before a message starts, those due exactly now are asked whether they have arrived. */
static orr_code settle(struct simple_links *l, uint64_t now, orr_error *err)
{
    orr_code code = ORR_OK;
    size_t kept = 0;
    uint64_t unused;
    for (size_t i = 0; i < l->pending_count; i++) {
        const uint32_t number = l->pending[i];
        if (l->messages[number].expected == now && !code)
            code = query(l, number, now, &unused, err);
        else if (l->messages[number].expected > now)
            l->pending[kept++] = number;
    }
    l->pending_count = kept;
    return code;
}

static bool join_link(struct simple_links *l, simple_link *k, uint32_t number, uint64_t now)
{
    simple_message *m = &l->messages[number];
    if (m->share < k->count + 1)
        m->share = (uint32_t)k->count + 1;
    for (size_t i = 0; i < k->count; i++) {
        simple_message *other = &l->messages[k->messages[i]];
        bring_up_to_date(other, now);
        if (other->share == k->count)
            other->share++;
    }
    return orr_push(k->messages, k->count, k->room, number);
}

static orr_code lgs_link_send(
    lgs_sim *s, uint64_t now, uint32_t from, uint32_t node, const orr__goal_node *n, orr_error *err)
{
    struct simple_links *l = lgs_extra(s)->links;
    const uint32_t number = (uint32_t)l->message_count;
    orr_code code = settle(l, now, err);
    if (code || (code = find_way(l, l->host[from], l->host[n->peer], err)))
        return code;
    if (!orr_grow(&l->messages, &l->message_room, l->message_count + 1) ||
        !orr_grow(&l->pending, &l->pending_room, l->pending_count + 1) ||
        !orr_map_put(l->known, pair_of(from, node), number, NULL))
        return orr_no_memory(err);
    l->messages[l->message_count++] =
        (simple_message){.left = n->size > INT64_MAX / UNITS ? INT64_MAX : (int64_t)n->size * UNITS,
                         .at = now,
                         .expected = now + n->size,
                         .source = l->host[from],
                         .target = l->host[n->peer],
                         .share = 1};
    l->pending[l->pending_count++] = number;
    for (size_t i = 0; i < l->way_count; i++) {
        if (!join_link(l, &l->links[l->way[i]], number, now))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

static orr_code lgs_link_arrival(
    lgs_sim *s, uint64_t now, uint32_t from, uint32_t node, uint64_t *out, orr_error *err)
{
    struct simple_links *l = lgs_extra(s)->links;
    *out = now;
    const uint32_t number = orr_map_find(l->known, pair_of(from, node), UINT32_MAX);
    if (number == UINT32_MAX)
        return orr_fail(err, ORR_EBUG, NULL, "a message that never set out");
    const orr_code code = query(l, number, now, out, err);
    orr_buf_print(&lgs_extra(s)->talk, "query returned %llu\n", (unsigned long long)*out);
    return code;
}

#define TOO_LONG 0x1p62 /* ns; beyond this, sums may overflow */

/* ---- shared by both programs */

orr_code lgs_extra_open(lgs_sim *s, orr_error *err)
{
    lgs_old_extra *x = s->extra = orr_alloc(1, sizeof *x);
    if (!x)
        return orr_no_memory(err);
    return s->opt.simple_links ? simple_links_open(s->opt.simple_links, s->hosts, &x->links, err)
                               : ORR_OK;
}

void lgs_extra_close(lgs_sim *s)
{
    lgs_old_extra *x = s->extra;
    if (!x)
        return;
    simple_links_close(x->links);
    orr_buf_fini(&x->talk);
    orr_free(x->heap.entries);
    orr_free(x);
}

/* The total counts a message when it is sent. */
void lgs_old_progress(lgs_sim *s, size_t pending)
{
    const orr_goal_totals t = s->goal->totals;
    const uint64_t total = t.sends + t.recvs + t.calcs + s->messages;
    if (total / 100 * lgs_extra(s)->percent >= s->events)
        return;
    uint32_t longest[2] = {0, 0};
    for (uint32_t host = 0; host < s->hosts; host++) {
        for (int side = 0; side < 2; side++) {
            if (s->match.count[side][host] > longest[side])
                longest[side] = s->match.count[side][host];
        }
    }
    orr_buf_print(&lgs_extra(s)->talk,
                  "progress: %u %% (%llu) [sizes: aq: %zu max rq: %u max uq: %u]\n",
                  lgs_extra(s)->percent++, (unsigned long long)s->events, pending,
                  longest[LGS_RECEIVES], longest[LGS_MESSAGES]);
}

/* ---- differences from ours */

static orr_code check(const lgs_options *o, orr_error *err)
{
    return o->G == floor(o->G)
               ? ORR_OK
               : orr_fail(err, ORR_EUSAGE, NULL,
                          "LogGOPSim of 2023 has whole numbers for G, not %g", o->G);
}

/* Sends before receives before calculations; ties in the order of std::sort (goal.md 3.4), which is
 * stable up to 16 elements. */
static bool order(lgs_sim *s, lgs_batch *b)
{
    if (b->count <= 16) {
        lgs_sort_batch(s, b);
        return !s->has_failed;
    }
    s->sort_room.len = 0;
    const size_t bytes = b->count * (sizeof(lgs_ready) + sizeof(orr__sort_item));
    lgs_ready *copy = (lgs_ready *)(void *)orr_buf_reserve(&s->sort_room, bytes);
    if (!copy)
        return false;
    memcpy(copy, b->items, b->count * sizeof *copy);
    orr__sort_item *items = (orr__sort_item *)(void *)(copy + b->count);
    for (uint32_t i = 0; i < b->count; i++)
        items[i] = (orr__sort_item){(uint64_t)(ORR_GOAL_CALC - copy[i].kind), i};
    orr__library_sort(items, b->count);
    for (uint32_t i = 0; i < b->count; i++)
        b->items[i] = copy[items[i].index];
    return true;
}

/* Zero bytes count as minus one, and large products wrap (goal.md 3.3).  Where that makes a cost
 * negative, a clock would go back. */
static bool clocks_go_back(const lgs_sim *s)
{
    const double o = (double)s->opt.o, g = (double)s->opt.g, O = (double)s->opt.O, G = s->opt.G;
    const bool none_is_cheap = O > o || G > o || G > g;
    for (size_t i = 0; i < s->goal->node_count; i++) {
        const orr__goal_node *n = &s->nodes[i];
        if (n->size == 0 ? n->kind == ORR_GOAL_SEND && none_is_cheap
                         : (double)n->size * (1 + O + G) > TOO_LONG)
            return true;
    }
    return false;
}

static const char *extra(const lgs_sim *s, orr_buf *text, bool *is_list)
{
    *is_list = true;
    return lgs_put_left(s, text) ? "left_in_queues" : NULL;
}

static orr_code run(lgs_sim *s, orr_error *err)
{
    return lgs_run_events(s, &lgs_2023_rules, err);
}

const lgs_rules lgs_2023_rules = {
    .name = "lgs2023",
    .order = order,
    .counts_all_edges = true,
    .repeats_last_noise = true,
    .skips_first_noise = true,
    .check = check,
    .clocks_go_back = clocks_go_back,
    .open = lgs_extra_open,
    .close = lgs_extra_close,
    .link_send = lgs_link_send,
    .link_arrival = lgs_link_arrival,
    .run = run,
    .after_event = lgs_old_progress,
    .extra = extra,
};
