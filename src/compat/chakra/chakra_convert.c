/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_convert.c - chakra_converter: which nodes it makes of a linked trace, the lines of
 * --simulate, text workloads, and the trace byte for byte (chakra.md 4). */
#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "chakra.h"
#include "sources/flexflow/flexflow_impl.h"
#include "sources/layers/layers_impl.h"
#include "sources/torch/convert/conversion.h"
#include "sources/torch/read/linked.h"
#include "trace/attrs.h"
#include "trace/dag.h"

#include <inttypes.h>
#include <stdlib.h>

#define CHAKRA_NONE UINT32_MAX

/* Dependencies of an item: a linked list, in the order in which they were found. */
typedef struct chakra_dep {
    uint32_t from, next; /* items; next: the item's next edge */
} chakra_dep;

/* Items are the nodes of the file without duplicate ids, in file order; all arrays are indexed by
 * item. */
typedef struct chakra_plan {
    const orr_linked *l;
    uint32_t count;
    uint32_t *node;   /* the item's node in l */
    uint32_t *parent; /* item, or NONE */
    uint8_t *type;    /* orr_node_type */
    uint8_t *state;   /* bits below */
    orr_str *group;   /* pg_name; a send or receive inherits that of its parent */
    uint32_t *dep_first;
    uint32_t *thread_dep;          /* inter_thread_dep; NONE: none, MISSING: not in the file */
    uint32_t *child_first, *child; /* children in file order */
    uint32_t *by_id;               /* all items, ascending by id */
    uint32_t *created; /* items in the order in which chakra_converter creates their nodes */
    uint32_t created_count;
    chakra_dep *deps;
    size_t dep_count, dep_room;
    orr_map *by_key; /* id -> item */
    orr_arena *arena;
} chakra_plan;

enum {
    CHAKRA_CREATED = 1,  /* becomes a node */
    CHAKRA_HAS_CTRL = 2, /* its parent was created before it */
    CHAKRA_NEEDED = 4,   /* some node depends on it */
};
#define CHAKRA_MISSING (UINT32_MAX - 1)

static inline const linked_node *chakra_node(const chakra_plan *p, uint32_t item)
{
    return &p->l->nodes[p->node[item]];
}

/* Nodes without parents and children are dropped. */
static inline bool chakra_is_written(const chakra_plan *p, uint32_t item)
{
    return (p->state[item] & CHAKRA_CREATED) &&
           (p->dep_first[item] != CHAKRA_NONE || (p->state[item] & CHAKRA_NEEDED));
}

static void chakra_plan_end(chakra_plan *p);

/* Which nodes chakra_converter creates, their types, and their dependencies (chakra.md 4.1).
 *
 * Its rules including its defects: control dependencies only on parents that precede the node in
 * the file, one chain of host nodes per thread, no order between kernels.  Our own converter is in
 * convert_graph.c.
 *
 * Cost: linear, plus one sort by id if the file is not in that order. */

/* Whole microseconds; optimizer steps count as 0. */
static uint64_t chakra_duration(const linked_node *n)
{
    return orr_str_has(n->name, "Optimizer.step") ? 0 : (uint64_t)(n->own_ns / 1000);
}

/* ---- items: unique ids ---- */

static bool make_room(chakra_plan *p, size_t n)
{
    orr_arena *a = p->arena;
    p->node = orr_arena_new(a, n, uint32_t);
    p->parent = orr_arena_new(a, n, uint32_t);
    p->type = orr_arena_new(a, n, uint8_t);
    p->state = orr_arena_new(a, n, uint8_t);
    p->group = orr_arena_new(a, n, orr_str);
    p->dep_first = orr_arena_new(a, n, uint32_t);
    p->thread_dep = orr_arena_new(a, n, uint32_t);
    p->child_first = orr_arena_new(a, n + 1, uint32_t);
    p->by_id = orr_arena_new(a, n, uint32_t);
    p->created = orr_arena_new(a, n, uint32_t);
    return p->node && p->parent && p->type && p->state && p->group && p->dep_first &&
           p->thread_dep && p->child_first && p->by_id && p->created;
}

/* As in a Python dict: a duplicate id keeps the position of the first node and the value of the
 * last. */
static bool take_items(chakra_plan *p)
{
    for (uint32_t i = 0; i < p->l->node_count; i++) {
        const uint64_t id = p->l->nodes[i].id;
        const uint32_t known = orr_map_find(p->by_key, id, CHAKRA_NONE);
        const uint32_t item = known == CHAKRA_NONE ? p->count++ : known;
        p->node[item] = i;
        if (known == CHAKRA_NONE && !orr_map_put(p->by_key, id, item, NULL))
            return false;
    }
    return true;
}

static void find_parents(chakra_plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const linked_node *n = chakra_node(p, i);
        p->parent[i] = n->parent == LINKED_NO_ID ? CHAKRA_NONE
                                                 : orr_map_find(p->by_key, n->parent, CHAKRA_NONE);
        p->group[i] = n->comm == LINKED_NO_COMM ? (orr_str){"", 0} : p->l->comms[n->comm].group;
        p->dep_first[i] = p->thread_dep[i] = CHAKRA_NONE;
    }
}

/* Id 0 means none. */
static void find_thread_deps(chakra_plan *p)
{
    for (size_t e = 0; e < p->l->edge_count; e++) {
        const linked_edge *edge = &p->l->edges[e];
        if (edge->kind == LINKED_EDGE_THREAD && edge->from != 0)
            p->thread_dep[orr_map_find(p->by_key, edge->to, 0)] =
                orr_map_find(p->by_key, edge->from, CHAKRA_MISSING);
    }
}

/* Children grouped by parent, within a group in `order` (NULL: file order).  NULL: out of
 * memory. */
static uint32_t *children_in(const chakra_plan *p, const uint32_t *order)
{
    uint32_t *child = orr_arena_new(p->arena, (size_t)p->count + 1, uint32_t);
    uint32_t *at = orr_arena_new(p->arena, (size_t)p->count + 1, uint32_t);
    if (!child || !at)
        return NULL;
    memcpy(at, p->child_first, p->count * sizeof *at);
    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t item = order ? order[k] : k;
        if (p->parent[item] != CHAKRA_NONE)
            child[at[p->parent[item]]++] = item;
    }
    return child;
}

static bool find_children(chakra_plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->parent[i] != CHAKRA_NONE)
            p->child_first[p->parent[i] + 1]++;
    }
    for (uint32_t i = 0; i < p->count; i++)
        p->child_first[i + 1] += p->child_first[i];
    return (p->child = children_in(p, NULL)) != NULL;
}

typedef struct keyed {
    uint64_t id;
    uint32_t item;
} keyed;

static int by_number(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool sort_items(chakra_plan *p)
{
    bool is_ascending = true;
    for (uint32_t i = 0; i < p->count; i++) {
        p->by_id[i] = i;
        is_ascending &= i == 0 || chakra_node(p, i - 1)->id < chakra_node(p, i)->id;
    }
    if (is_ascending)
        return true;
    keyed *keys = orr_alloc(p->count, sizeof *keys);
    if (!keys)
        return false;
    for (uint32_t i = 0; i < p->count; i++)
        keys[i] = (keyed){chakra_node(p, i)->id, i};
    orr_sort(keys, p->count, sizeof *keys, by_number);
    for (uint32_t i = 0; i < p->count; i++)
        p->by_id[i] = keys[i].item;
    orr_free(keys);
    return true;
}

/* ---- creating ---- */

static const char *const required[] = {"rf_id", "fw_parent", "seq_id",   "scope",
                                       "tid",   "fw_tid",    "op_schema"};

static orr_code refuse_node(
    const chakra_plan *p, const linked_node *n, const char *what, const char *which, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(linked_where(p->l, n)),
                    "node %" PRIu64 " \"%.*s\" %s%s", n->id, ORR_SHOWN(n->name, 80), what, which);
}

static orr_code check_item(const chakra_plan *p, const linked_node *n, orr_error *err)
{
    for (unsigned i = 0; i < sizeof required / sizeof *required; i++) {
        if (n->lacks & 1u << i)
            return refuse_node(p, n, "has no attribute ", required[i], err);
    }
    return n->own_ns <= -1000 ? refuse_node(p, n, "lasts less than nothing", "", err) : ORR_OK;
}

/* Kernels of sends and receives do not say which of the two they are; the operator they are called
 * from does. */
static orr_code send_recv_type(chakra_plan *p, uint32_t item, uint8_t *out, orr_error *err)
{
    uint32_t caller = p->parent[item];
    *out = 0;
    if (orr_str_is(chakra_node(p, caller)->name, "record_param_comms")) {
        if (p->group[caller].len)
            p->group[item] = p->group[caller];
        caller = p->parent[caller];
    }
    if (caller == CHAKRA_NONE) {
        return refuse_node(p, chakra_node(p, item), "is under a record_param_comms",
                           " without a parent", err);
    }
    const orr_str word = chakra_node(p, caller)->name;
    if (orr_str_has(word, "send"))
        *out = ORR_NODE_COMM_SEND;
    else if (orr_str_has(word, "recv"))
        *out = ORR_NODE_COMM_RECV;
    else if (orr_str_has(word, "nccl:all_to_all"))
        *out = ORR_NODE_COMM_COLL;
    return ORR_OK;
}

static orr_code find_type(chakra_plan *p, uint32_t item, orr_error *err)
{
    const linked_node *n = chakra_node(p, item);
    uint8_t type = 0;
    if (n->kind != LINKED_ON_DEVICE) {
        p->type[item] = n->kind == LINKED_GROUPS ? ORR_NODE_METADATA : ORR_NODE_COMP;
        return ORR_OK;
    }
    if (orr_str_has(n->name, "ncclDevKernel_SendRecv")) {
        const orr_code code = send_recv_type(p, item, &type, err);
        if (code)
            return code;
    }
    const bool is_nccl =
        orr_str_has(n->name, "ncclKernel") || orr_str_has(n->name, "ncclDevKernel");
    p->type[item] = type ? type : is_nccl ? ORR_NODE_COMM_COLL : ORR_NODE_COMP;
    return ORR_OK;
}

static orr_code create(chakra_plan *p, uint32_t item, orr_error *err)
{
    const uint32_t parent = p->parent[item];
    orr_code code = check_item(p, chakra_node(p, item), err);
    if (!code)
        code = find_type(p, item, err);
    if (code)
        return code;
    if (parent != CHAKRA_NONE && (p->state[parent] & CHAKRA_CREATED))
        p->state[item] |= CHAKRA_HAS_CTRL;
    p->state[item] |= CHAKRA_CREATED;
    p->created[p->created_count++] = item;
    return ORR_OK;
}

/* Host nodes in file order, each followed by its device nodes. */
static orr_code create_all(chakra_plan *p, orr_error *err)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (chakra_node(p, i)->kind == LINKED_ON_DEVICE)
            continue;
        orr_code code = create(p, i, err);
        for (uint32_t c = p->child_first[i]; c < p->child_first[i + 1] && !code; c++) {
            if (chakra_node(p, p->child[c])->kind == LINKED_ON_DEVICE)
                code = create(p, p->child[c], err);
        }
        if (code)
            return code;
    }
    return ORR_OK;
}

/* ---- dependencies ---- */

/* Depth-first walk of one thread: parents before children, children ascending by id, each node
 * once. */
typedef struct walk {
    chakra_plan *p;
    uint32_t *first, *child; /* children ascending by id; `first` as in the plan */
    uint32_t *stamp, round;  /* the last walk that visited an item */
    uint32_t *stack; /* items whose children are being visited, and the next child of each */
    size_t depth, room;
    uint32_t host; /* the host node visited last */
    orr_error *err;
} walk;

static orr_code add_dep(walk *w, uint32_t item, uint32_t from)
{
    chakra_plan *p = w->p;
    uint32_t *link = &p->dep_first[item];
    if (from == CHAKRA_NONE)
        return ORR_OK;
    if (from == CHAKRA_MISSING) {
        const linked_node *n = chakra_node(p, item);
        return orr_fail(w->err, ORR_EINPUT, ORR_AT(linked_where(p->l, n)),
                        "node %" PRIu64 ": its inter_thread_dep is not in the file", n->id);
    }
    for (; *link != CHAKRA_NONE; link = &p->deps[*link].next) {
        if (p->deps[*link].from == from)
            return ORR_OK;
    }
    const size_t at = p->dep_count;
    if (at >= CHAKRA_MISSING)
        return orr_no_memory(w->err);
    *link = (uint32_t)at; /* before deps is reallocated: link may point into it */
    if (!orr_grow(&p->deps, &p->dep_room, at + 1))
        return orr_no_memory(w->err);
    p->deps[p->dep_count++] = (chakra_dep){from, CHAKRA_NONE};
    p->state[from] |= CHAKRA_NEEDED;
    return ORR_OK;
}

static orr_code visit(walk *w, uint32_t item)
{
    const bool is_device = chakra_node(w->p, item)->kind == LINKED_ON_DEVICE;
    orr_code code = is_device ? ORR_OK : add_dep(w, item, w->p->thread_dep[item]);
    if (!code)
        code = add_dep(w, item, w->host);
    if (!is_device)
        w->host = item;
    w->stamp[item] = w->round;
    if (code)
        return code;
    if (!orr_grow(&w->stack, &w->room, 2 * w->depth + 2))
        return orr_no_memory(w->err);
    w->stack[2 * w->depth] = item;
    w->stack[2 * w->depth++ + 1] = w->first[item];
    return ORR_OK;
}

static orr_code walk_from(walk *w, uint32_t root)
{
    w->host = CHAKRA_NONE;
    w->round++;
    orr_code code = visit(w, root);
    while (!code && w->depth) {
        const uint32_t item = w->stack[2 * w->depth - 2];
        const uint32_t next = w->stack[2 * w->depth - 1]++;
        if (next == w->first[item + 1]) {
            w->depth--;
            continue;
        }
        const uint32_t child = w->child[next];
        if ((w->p->state[child] & CHAKRA_CREATED) && w->stamp[child] != w->round)
            code = visit(w, child);
    }
    return code;
}

static bool is_thread(orr_str name)
{
    return orr_str_is(name, "[pytorch|profiler|execution_trace|thread]") ||
           orr_str_is(name, "[pytorch|profiler|execution_graph|thread]");
}

static orr_code find_deps(chakra_plan *p, orr_error *err)
{
    walk w = {.p = p, .first = p->child_first, .err = err};
    w.child = children_in(p, p->by_id);
    w.stamp = orr_arena_new(p->arena, p->count, uint32_t);
    orr_code code = w.child && w.stamp ? ORR_OK : orr_no_memory(err);
    for (uint32_t i = 0; i < p->count && !code; i++) {
        if (is_thread(chakra_node(p, i)->name) && (p->state[i] & CHAKRA_CREATED))
            code = walk_from(&w, i);
    }
    orr_free(w.stack);
    return code;
}

/* ---- can the graph be run? ---- */

static orr_code say_missing(const chakra_plan *p, uint32_t item, uint32_t from, orr_error *err)
{
    const linked_node *n = chakra_node(p, item);
    return orr_fail(err, ORR_EINPUT, ORR_AT(linked_where(p->l, n)),
                    "node %" PRIu64 " depends on node %" PRIu64
                    ", which is a device node without a "
                    "parent",
                    n->id, chakra_node(p, from)->id);
}

static orr_code say_cycle(const chakra_plan *p, const uint32_t *waits, orr_error *err)
{
    uint32_t item = 0;
    while (item < p->count && (!chakra_is_written(p, item) || waits[item] == 0))
        item++;
    const linked_node *n = chakra_node(p, item);
    return orr_fail(err, ORR_EINPUT, ORR_AT(linked_where(p->l, n)),
                    "node %" PRIu64 " \"%.*s\" waits for itself, through its thread and "
                    "inter_thread_dep",
                    n->id, ORR_SHOWN(n->name, 80));
}

/* The children of each item, in the order of creation. */
static bool find_followers(const chakra_plan *p, orr__dag *g)
{
    orr_arena *a = p->arena;
    uint32_t *at = orr_arena_new(a, (size_t)p->count + 1, uint32_t);
    *g = (orr__dag){.count = p->count,
                    .first = orr_arena_new(a, (size_t)p->count + 1, uint32_t),
                    .child = orr_arena_new(a, p->dep_count + 1, uint32_t),
                    .waits = orr_arena_new(a, (size_t)p->count + 1, uint32_t)};
    if (!at || !g->first || !g->child || !g->waits)
        return false;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t e = p->dep_first[i]; e != CHAKRA_NONE; e = p->deps[e].next) {
            g->waits[i]++;
            g->first[p->deps[e].from + 1]++;
        }
    for (uint32_t i = 0; i < p->count; i++)
        g->first[i + 1] += g->first[i];
    memcpy(at, g->first, p->count * sizeof *at);
    for (uint32_t k = 0; k < p->created_count; k++)
        for (uint32_t e = p->dep_first[p->created[k]]; e != CHAKRA_NONE; e = p->deps[e].next)
            g->child[at[p->deps[e].from]++] = p->created[k];
    return true;
}

static orr_code check_graph(const chakra_plan *p, orr_error *err)
{
    uint32_t *left = orr_arena_new(p->arena, p->count, uint32_t);
    uint32_t *order = orr_arena_new(p->arena, p->count, uint32_t);
    orr__dag g;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t e = p->dep_first[i]; e != CHAKRA_NONE; e = p->deps[e].next)
            if (!(p->state[p->deps[e].from] & CHAKRA_CREATED))
                return say_missing(p, i, p->deps[e].from, err);
    if (!left || !order || !find_followers(p, &g))
        return orr_no_memory(err);
    return orr__dag_order(&g, left, order) == p->count ? ORR_OK : say_cycle(p, left, err);
}

/* ---- the whole plan ---- */

static orr_code make(chakra_plan *p, orr_error *err)
{
    p->arena = orr_arena_create();
    p->by_key = orr_map_create(p->l->node_count);
    if (!p->arena || !p->by_key || !make_room(p, p->l->node_count + 1) || !take_items(p))
        return orr_no_memory(err);
    find_parents(p);
    find_thread_deps(p);
    if (!find_children(p) || !sort_items(p))
        return orr_no_memory(err);
    orr_code code = create_all(p, err);
    if (!code)
        code = find_deps(p, err);
    return code ? code : check_graph(p, err);
}

/* On failure there is nothing to free. */
static orr_code chakra_plan_make(const orr_linked *l, chakra_plan *p, orr_error *err)
{
    *p = (chakra_plan){.l = l};
    const orr_code code = make(p, err);
    if (code)
        chakra_plan_end(p);
    return code;
}

static void chakra_plan_end(chakra_plan *p)
{
    orr_free(p->deps);
    orr_map_destroy(p->by_key);
    orr_arena_destroy(p->arena);
    *p = (chakra_plan){0};
}

/* The output of chakra_converter --simulate: the nodes executed on one host and any number of
 * streams (chakra.md 4.1).
 *
 * The original ticks every microsecond.  We skip ticks: after one in which nothing starts, nothing
 * changes until something ends.  Two of its quirks are kept: a node without duration takes one
 * tick, and children are released when their parent is issued, not when it ends.
 *
 * Cost: linear in nodes and dependencies, times the streams that run at once. */

/* The ready nodes of one stream, first come first served, and the running one. */
typedef struct lane {
    int64_t stream;
    uint32_t first, last; /* ready: a list linked by `next` */
    uint32_t running;     /* NONE: idle */
    uint64_t since;
    uint64_t order; /* when it last became busy: within a tick, streams end in this order */
} lane;

typedef struct player {
    const chakra_plan *p;
    orr__dag g;        /* waits: dependencies not yet issued */
    uint32_t *next;    /* link in the list of ready nodes */
    uint64_t *arrival; /* order in which nodes became ready */
    uint64_t arrived, issued_order;
    lane host;
    lane *lanes;
    size_t lane_count, lane_room;
    uint32_t *issued; /* in this tick */
    size_t issued_count, issued_room;
    uint64_t now;
    orr_buf line;
    orr_line_sink say;
    void *sink;
    bool has_memory;
} player;

/* ---- output ---- */

static void tell(player *s)
{
    orr_buf_byte(&s->line, '\0');
    if (!s->line.failed)
        s->say(s->sink, (const char *)s->line.ptr);
    s->line.len = 0;
}

static void put_name(player *s, uint32_t item)
{
    const orr_str name = chakra_node(s->p, item)->name;
    orr_buf_add(&s->line, name.ptr, name.len);
}

static void put_stream(player *s, int64_t stream)
{
    if (stream == ORR_NO_VALUE)
        orr_buf_text(&s->line, "None");
    else
        orr_buf_i64(&s->line, stream);
}

static void tell_issue(player *s, const lane *l)
{
    const linked_node *n = chakra_node(s->p, l->running);
    const bool is_host = l == &s->host;
    orr_buf_print(&s->line, "Issuing %s Node ID %" PRIu64 " (", is_host ? "CPU" : "GPU", n->id);
    put_name(s, l->running);
    orr_buf_print(&s->line, ") at %" PRIu64 "us ", s->now);
    if (!is_host) {
        orr_buf_text(&s->line, "on stream ");
        put_stream(s, l->stream);
        orr_buf_byte(&s->line, ' ');
    }
    orr_buf_print(&s->line, "with duration %" PRIu64 "us, tid: ", chakra_duration(n));
    if (is_host) {
        orr_buf_i64(&s->line, n->tid);
    } else {
        orr_buf_text(&s->line, "stream ");
        put_stream(s, l->stream);
    }
    tell(s);
}

static void tell_end(player *s, const lane *l)
{
    const linked_node *n = chakra_node(s->p, l->running);
    if (l == &s->host) {
        orr_buf_print(&s->line, "CPU Node ID %" PRIu64 " completed at %" PRIu64 "us, tid: %" PRId64,
                      n->id, s->now, n->tid);
    } else {
        orr_buf_print(&s->line, "GPU Node ID %" PRIu64 " on stream ", n->id);
        put_stream(s, l->stream);
        orr_buf_print(&s->line, " completed at %" PRIu64 "us, tid: stream ", s->now);
        put_stream(s, l->stream);
    }
    tell(s);
}

/* ---- ready nodes ---- */

static lane *lane_of(player *s, uint32_t item)
{
    const linked_node *n = chakra_node(s->p, item);
    if (n->kind != LINKED_ON_DEVICE)
        return &s->host;
    for (size_t i = 0; i < s->lane_count; i++) {
        if (s->lanes[i].stream == n->stream)
            return &s->lanes[i];
    }
    if (!orr_grow(&s->lanes, &s->lane_room, s->lane_count + 1)) {
        s->has_memory = false;
        return NULL;
    }
    s->lanes[s->lane_count] = (lane){n->stream, CHAKRA_NONE, CHAKRA_NONE, CHAKRA_NONE, 0, 0};
    return &s->lanes[s->lane_count++];
}

static void make_ready(player *s, uint32_t item)
{
    lane *l = lane_of(s, item);
    if (!l)
        return;
    s->arrival[item] = s->arrived++;
    s->next[item] = CHAKRA_NONE;
    if (l->first == CHAKRA_NONE)
        l->first = item;
    else
        s->next[l->last] = item;
    l->last = item;
}

/* ---- a tick ---- */

static void issue(player *s, lane *l)
{
    l->running = l->first;
    l->first = s->next[l->first];
    l->since = s->now;
    l->order = s->issued_order++;
    tell_issue(s, l);
    if (!orr_grow(&s->issued, &s->issued_room, s->issued_count + 1))
        s->has_memory = false;
    else
        s->issued[s->issued_count++] = l->running;
}

static bool can_issue(const lane *l)
{
    return l->running == CHAKRA_NONE && l->first != CHAKRA_NONE;
}

/* Streams in the order in which their first nodes became ready. */
static void issue_devices(player *s)
{
    for (;;) {
        lane *best = NULL;
        for (size_t i = 0; i < s->lane_count; i++) {
            lane *l = &s->lanes[i];
            if (can_issue(l) && (!best || s->arrival[l->first] < s->arrival[best->first]))
                best = l;
        }
        if (!best)
            return;
        issue(s, best);
    }
}

static uint64_t end_of(const player *s, const lane *l)
{
    const uint64_t duration = chakra_duration(chakra_node(s->p, l->running));
    return l->since + (duration ? duration : 1);
}

static void end_lane(player *s, lane *l)
{
    tell_end(s, l);
    l->running = CHAKRA_NONE;
}

static void end_devices(player *s)
{
    for (;;) {
        lane *first = NULL;
        for (size_t i = 0; i < s->lane_count; i++) {
            lane *l = &s->lanes[i];
            if (l->running != CHAKRA_NONE && end_of(s, l) <= s->now &&
                (!first || l->order < first->order))
                first = l;
        }
        if (!first)
            return;
        end_lane(s, first);
    }
}

static void release_children(player *s)
{
    for (size_t i = 0; i < s->issued_count; i++) {
        const uint32_t item = s->issued[i];
        for (uint32_t c = s->g.first[item]; c < s->g.first[item + 1]; c++) {
            if (--s->g.waits[s->g.child[c]] == 0)
                make_ready(s, s->g.child[c]);
        }
    }
    s->issued_count = 0;
}

/* Advance to the next tick in which something happens; false: there is none. */
static bool advance(player *s)
{
    uint64_t next = s->host.running == CHAKRA_NONE ? UINT64_MAX : end_of(s, &s->host);
    for (size_t i = 0; i < s->lane_count; i++) {
        const lane *l = &s->lanes[i];
        if (l->running != CHAKRA_NONE && end_of(s, l) < next)
            next = end_of(s, l);
    }
    if (s->issued_count)
        next = s->now + 1;
    s->now = next;
    return next != UINT64_MAX;
}

static void play(player *s)
{
    for (;;) {
        if (can_issue(&s->host))
            issue(s, &s->host);
        issue_devices(s);
        if (!s->has_memory || !advance(s))
            return;
        if (s->host.running != CHAKRA_NONE && end_of(s, &s->host) <= s->now)
            end_lane(s, &s->host);
        end_devices(s);
        release_children(s);
    }
}

/* ---- running a plan ---- */

static bool prepare(player *s)
{
    const chakra_plan *p = s->p;
    orr_arena *a = p->arena;
    s->next = orr_arena_new(a, (size_t)p->count + 1, uint32_t);
    s->arrival = orr_arena_new(a, (size_t)p->count + 1, uint64_t);
    if (!s->next || !s->arrival || !find_followers(p, &s->g))
        return false;
    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t item = p->by_id[k];
        if (chakra_is_written(p, item) && s->g.waits[item] == 0)
            make_ready(s, item);
    }
    return s->has_memory;
}

static orr_code chakra_simulate(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err)
{
    chakra_plan p;
    orr_code code = chakra_plan_make(l, &p, err);
    if (code)
        return code;
    player s = {.p = &p,
                .host = {0, CHAKRA_NONE, CHAKRA_NONE, CHAKRA_NONE, 0, 0},
                .say = say,
                .sink = sink,
                .has_memory = true};
    s.has_memory = prepare(&s);
    if (s.has_memory)
        play(&s);
    const bool is_whole = s.has_memory && !s.line.failed;
    orr_free(s.lanes);
    orr_free(s.issued);
    orr_buf_fini(&s.line);
    chakra_plan_end(&p);
    return is_whole ? ORR_OK : orr_no_memory(err);
}

/* Text workloads and task graphs as chakra_converter converts them (chakra.md 4.2 to 4.4). */

const orr_rules_layers chakra_text_rules = {
    .reads_loosely = true,
    .has_few_policies = true,
    .has_all_collectives = true,
    .has_bare_nodes = true,
    .believes_count = true,
    .counts_ids_on = true,
};

/* Versions before September 2024. */
const orr_rules_layers chakra_early_text_rules = {
    .reads_loosely = true,
    .has_few_policies = true,
    .has_all_collectives = true,
    .has_bare_nodes = true,
    .believes_count = true,
    .counts_ids_on = true,
    .has_early_form = true,
};

const orr_rules_flexflow chakra_flexflow_rules = {
    .has_gaps = true,
    .keeps_crossings = true,
    .has_bare_nodes = true,
    .has_empty_sends = true,
    .has_wide_numbers = true,
};

/* ---- the trace ---- */

typedef struct writer {
    const chakra_plan *p;
    orr_trace *t;
    orr_buf text[6]; /* inputs, then outputs: values, shapes, types */
    orr_buf plain;   /* a kernel's name, normalized */
    uint64_t *deps;
    size_t dep_room;
    orr_error *err;
} writer;

/* ---- collectives ---- */

/* The first of these words that occurs in the kernel's name, which is lowered and stripped of '_'
 * and '-'. */
static bool find_collective(orr_buf *plain, orr_str name, int64_t *out)
{
    static const struct {
        const char *word;
        orr_collective kind;
    } words[] = {
        {"allreduce", ORR_COLL_ALL_REDUCE}, {"alltoall", ORR_COLL_ALL_TO_ALL},
        {"allgather", ORR_COLL_ALL_GATHER}, {"reducescatter", ORR_COLL_REDUCE_SCATTER},
        {"broadcast", ORR_COLL_BROADCAST},  {"sendrecv", ORR_COLL_ALL_TO_ALL},
    };
    plain->len = 0;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (c != '_' && c != '-')
            orr_buf_byte(plain, (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c));
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (orr_str_has((orr_str){(const char *)plain->ptr, plain->len}, words[i].word)) {
            *out = words[i].kind;
            return true;
        }
    }
    return false;
}

static orr_code unknown_collective(const writer *w, const linked_node *n)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(linked_where(w->p->l, n)),
                    "node %" PRIu64
                    ": chakra_converter knows no collective by the name of the kernel "
                    "'%.*s'",
                    n->id, ORR_SHOWN(n->name, 80));
}

/* ---- sizes: [tensor id, storage id, offset, elements, bytes per element, device] ---- */

static bool tensor_bytes(orr_json_value v, int64_t *sum)
{
    int64_t field[5] = {0}, bytes;
    orr_json_value item;
    int i = 0;
    for (orr_json_iter it = orr_json_iterate(v); i < 5 && orr_json_next_value(&it, &item); i++) {
        if (i >= 3 && orr_json_get_i64(item, &field[i], NULL))
            return false;
    }
    return i == 5 && orr_json_type_of(v) == ORR_JSON_ARRAY &&
           !__builtin_mul_overflow(field[3], field[4], &bytes) &&
           !__builtin_add_overflow(*sum, bytes, sum);
}

static bool list_bytes(orr_json_value v, int64_t *sum)
{
    orr_json_value item;
    if (orr_json_type_of(v) != ORR_JSON_ARRAY)
        return false;
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_value(&it, &item);) {
        if (!tensor_bytes(item, sum))
            return false;
    }
    return true;
}

static bool value_bytes(orr_json_value v, orr_json_value type, int64_t *sum)
{
    static const char list[] = "GenericList[Tensor";
    orr_str s;
    if (orr_json_type_of(type) != ORR_JSON_STRING || orr_json_get_str(type, &s, NULL))
        return false;
    if (s.len >= sizeof list - 1 && memcmp(s.ptr, list, sizeof list - 1) == 0)
        return list_bytes(v, sum);
    return !orr_str_has(s, "Tensor") || tensor_bytes(v, sum);
}

static bool sum_values(orr_json_value values, orr_json_value types, int64_t *sum)
{
    orr_json_value v, type;
    orr_json_iter a = orr_json_iterate(values), b = orr_json_iterate(types);
    while (orr_json_next_value(&a, &v) && orr_json_next_value(&b, &type)) {
        if (!value_bytes(v, type, sum))
            return false;
    }
    return true;
}

static orr_code open_json(orr_str text, orr_json **j, orr_json_value *root, orr_error *err)
{
    const orr_span bytes = {(const uint8_t *)text.ptr, text.len};
    const orr_code code = orr_json_open(bytes, NULL, j, err);
    return code ? code : orr_json_only(*j, root, err);
}

static orr_code find_size(const writer *w, const linked_node *n, int64_t *out)
{
    orr_json *values = NULL, *types = NULL;
    orr_json_value v, t;
    *out = 0;
    orr_code code = open_json(n->inputs->values, &values, &v, w->err);
    if (!code)
        code = open_json(n->inputs->types, &types, &t, w->err);
    const bool ok = !code && sum_values(v, t, out);
    orr_json_close(values);
    orr_json_close(types);
    if (ok || code == ORR_ENOMEM)
        return code;
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(linked_where(w->p->l, n)),
                    "node %" PRIu64 ": among its inputs is a tensor that is not a list of 6 values",
                    n->id);
}

/* ---- nodes ---- */

static orr_attr whole(orr__attr_key key, int64_t v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_attr text(orr__attr_key key, orr_str v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_STRING, .value.s = v};
}

static orr_code put_comm(writer *w, uint32_t item, orr_attr *attrs, size_t *count)
{
    const linked_node *n = chakra_node(w->p, item);
    int64_t kind, size;
    if (w->p->type[item] == ORR_NODE_COMM_COLL) {
        if (!find_collective(&w->plain, n->name, &kind))
            return w->plain.failed ? orr_no_memory(w->err) : unknown_collective(w, n);
        attrs[(*count)++] = whole(ORR__ATTR_COMM_TYPE, kind);
    }
    const orr_code code = find_size(w, n, &size);
    attrs[(*count)++] = whole(ORR__ATTR_COMM_SIZE, size);
    if (w->p->group[item].len)
        attrs[(*count)++] = text(ORR__ATTR_PG_NAME, w->p->group[item]);
    return code;
}

static bool put_deps(writer *w, uint32_t item, orr_draft *d)
{
    for (uint32_t e = w->p->dep_first[item]; e != CHAKRA_NONE; e = w->p->deps[e].next) {
        if (!orr_push(w->deps, d->data_count, w->dep_room,
                      chakra_node(w->p, w->p->deps[e].from)->id))
            return false;
    }
    d->data_deps = w->deps;
    return true;
}

static orr_code put_node(writer *w, uint32_t item)
{
    const linked_node *n = chakra_node(w->p, item);
    orr_attr stream = whole(ORR__ATTR_STREAM, n->stream);
    if (n->stream == ORR_NO_VALUE)
        stream.kind = ORR_VALUE_NONE; /* null: the attribute is present, without a value */
    orr_attr attrs[12] = {
        whole(ORR__ATTR_RF_ID, n->rf_id),
        whole(ORR__ATTR_FW_PARENT, n->fw_parent),
        whole(ORR__ATTR_SEQ_ID, n->seq_id),
        whole(ORR__ATTR_SCOPE, n->scope),
        whole(ORR__ATTR_TID, n->tid),
        whole(ORR__ATTR_FW_TID, n->fw_tid),
        text(ORR__ATTR_OP_SCHEMA, n->op_schema),
        {.name = orr__attr_rows[ORR__ATTR_IS_CPU_OP].name,
         .kind = ORR_VALUE_BOOL,
         .value.u = n->kind != LINKED_ON_DEVICE},
        stream,
    };
    const orr_io inputs = python_io(w->text, n->inputs),
                 outputs = python_io(w->text + 3, n->outputs);
    orr_draft d = {.id = n->id,
                   .name = n->name,
                   .type = w->p->type[item],
                   .ctrl_deps = &n->parent,
                   .ctrl_count = (w->p->state[item] & CHAKRA_HAS_CTRL) != 0,
                   .duration_us = chakra_duration(n),
                   .inputs = &inputs,
                   .outputs = &outputs,
                   .attrs = attrs,
                   .attr_count = 9};
    if (!put_deps(w, item, &d))
        return orr_no_memory(w->err);
    for (unsigned i = 0; i < 6; i++) {
        if (w->text[i].failed)
            return orr_no_memory(w->err);
    }
    orr_code code = ORR_OK;
    if (d.type >= ORR_NODE_COMM_SEND)
        code = put_comm(w, item, attrs, &d.attr_count);
    return code ? code : orr_trace_append(w->t, &d, w->err);
}

/* Nodes that are dropped at the end are validated, too. */
static orr_code put_nodes(writer *w)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < w->p->count && !code; k++) {
        const uint32_t item = w->p->by_id[k];
        if (chakra_is_written(w->p, item))
            code = put_node(w, item);
    }
    return code ? code : orr_trace_seal(w->t, w->err);
}

static orr_attr unsigned_number(orr__attr_key key, uint64_t v)
{
    return (orr_attr){.name = orr__attr_rows[key].name, .kind = ORR_VALUE_UINT64, .value.u = v};
}

static orr_code write_plan(const chakra_plan *p, orr_trace **out, orr_error *err)
{
    writer w = {.p = p, .err = err};
    const orr_attr about[] = {
        text(ORR__ATTR_SCHEMA, p->l->schema), unsigned_number(ORR__ATTR_PID, p->l->pid),
        text(ORR__ATTR_TIME, p->l->time), unsigned_number(ORR__ATTR_START_TS, p->l->start_ts),
        unsigned_number(ORR__ATTR_FINISH_TS, p->l->finish_ts)};
    const orr_meta meta = {.attrs = about, .attr_count = 5};
    orr_code code = orr_trace_create(&meta, &w.t, err);
    if (code)
        return code;
    code = put_nodes(&w);
    for (unsigned i = 0; i < 6; i++)
        orr_buf_fini(&w.text[i]);
    orr_buf_fini(&w.plain);
    orr_free(w.deps);
    if (code)
        orr_trace_destroy(w.t);
    *out = code ? NULL : w.t;
    return code;
}

static orr_code make_trace(const orr_linked *l, orr_trace **out, orr_error *err)
{
    chakra_plan p;
    *out = NULL;
    orr_code code = chakra_plan_make(l, &p, err);
    if (code)
        return code;
    code = write_plan(&p, out, err);
    chakra_plan_end(&p);
    return code;
}

static const char *const schemas[] = {"1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4",
                                      "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", NULL};

const orr_rules_convert chakra_convert_rules = {
    .schemas = schemas, .trace = make_trace, .simulate = chakra_simulate};
