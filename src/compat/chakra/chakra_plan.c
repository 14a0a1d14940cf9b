/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_plan.c - which nodes Chakra's converter makes, of which type, and what depends on what
 * (chakra.md 4.1).
 *
 * Everything here is a rule of chakra_converter, defects included: control dependencies on a parent
 * that stands earlier in the file only, one chain of host nodes for each thread, no order between
 * kernels.  The new converter is in convert_graph.c.
 *
 * Cost: linear but for one sort by id, where the file is not in that order. */
#include "chakra_convert.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdlib.h>

static int shown(orr_str s)
{
    return s.len < 80 ? (int)s.len : 80;
}

uint64_t chakra_duration(const linked_node *n)
{
    return orr_str_has(n->name, "Optimizer.step") ? 0 : (uint64_t)(n->own_ns / 1000);
}

/* ---- items: each id once ---- */

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
    p->child = orr_arena_new(a, n, uint32_t);
    p->by_id = orr_arena_new(a, n, uint32_t);
    p->created = orr_arena_new(a, n, uint32_t);
    return p->node && p->parent && p->type && p->state && p->group && p->dep_first &&
           p->thread_dep && p->child_first && p->child && p->by_id && p->created;
}

/* As a dict of Python's: an id that comes again keeps its place and takes the later node. */
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

/* Number 0 counts as none. */
static void find_thread_deps(chakra_plan *p)
{
    for (size_t e = 0; e < p->l->edge_count; e++) {
        const linked_edge *edge = &p->l->edges[e];
        if (edge->kind == LINKED_EDGE_THREAD && edge->from != 0)
            p->thread_dep[orr_map_find(p->by_key, edge->to, 0)] =
                orr_map_find(p->by_key, edge->from, CHAKRA_MISSING);
    }
}

static void find_children(chakra_plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->parent[i] != CHAKRA_NONE)
            p->child_first[p->parent[i] + 1]++;
    }
    for (uint32_t i = 0; i < p->count; i++)
        p->child_first[i + 1] += p->child_first[i];
    for (uint32_t i = p->count; i-- > 0;) { /* backwards: the counts move to the beginnings */
        if (p->parent[i] != CHAKRA_NONE)
            p->child[--p->child_first[p->parent[i] + 1]] = i;
    }
    /* Each first now stands one place too far to the right. */
    for (uint32_t i = 0; i < p->count; i++)
        p->child_first[i] = p->child_first[i + 1];
    uint32_t total = 0;
    for (uint32_t i = 0; i < p->count; i++)
        total += p->parent[i] != CHAKRA_NONE;
    p->child_first[p->count] = total;
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
    qsort(keys, p->count, sizeof *keys, by_number);
    for (uint32_t i = 0; i < p->count; i++)
        p->by_id[i] = keys[i].item;
    orr_free(keys);
    return true;
}

/* ---- creating ---- */

static const char *const required[] = {"rf_id", "fw_parent", "seq_id",   "scope",
                                       "tid",   "fw_tid",    "op_schema"};

static orr_code say(
    const chakra_plan *p, const linked_node *n, const char *what, const char *which, orr_error *err)
{
    const orr_where at = linked_where(p->l, n);
    return orr_fail(err, ORR_EINPUT, &at, "node %" PRIu64 " \"%.*s\" %s%s", n->id, shown(n->name),
                    n->name.ptr, what, which);
}

static orr_code check_item(const chakra_plan *p, const linked_node *n, orr_error *err)
{
    for (unsigned i = 0; i < sizeof required / sizeof *required; i++) {
        if (n->lacks & 1u << i)
            return say(p, n, "has no attribute ", required[i], err);
    }
    return n->own_ns <= -1000 ? say(p, n, "lasts less than nothing", "", err) : ORR_OK;
}

/* A kernel that only sends and receives is told by the operator it is under. */
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
        return say(p, chakra_node(p, item), "is under a record_param_comms", " without a parent",
                   err);
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

/* One thread's walk: parents first, children ascending by id, each node once. */
typedef struct walk {
    chakra_plan *p;
    uint32_t *first, *child; /* children by id; `first` as in the plan */
    uint32_t *stamp, round;  /* in which walk an item was last seen */
    uint32_t *stack; /* items whose children are being walked, with the next child of each */
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
        const orr_where at = linked_where(p->l, n);
        return orr_fail(w->err, ORR_EINPUT, &at,
                        "node %" PRIu64 ": its inter_thread_dep is not in the file", n->id);
    }
    for (; *link != CHAKRA_NONE; link = &p->deps[*link].next) {
        if (p->deps[*link].from == from)
            return ORR_OK;
    }
    const size_t at = p->dep_count;
    if (at >= CHAKRA_MISSING)
        return orr_no_memory(w->err);
    *link = (uint32_t)at; /* before deps moves, as link may point into it */
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

/* The plan's children are in file order; here they are wanted by id. */
static bool sort_children(walk *w)
{
    const chakra_plan *p = w->p;
    uint32_t *at = orr_arena_new(p->arena, (size_t)p->count + 1, uint32_t);
    w->first = p->child_first;
    w->child = orr_arena_new(p->arena, p->count, uint32_t);
    w->stamp = orr_arena_new(p->arena, p->count, uint32_t);
    if (!at || !w->child || !w->stamp)
        return false;
    memcpy(at, p->child_first, p->count * sizeof *at);
    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t item = p->by_id[k];
        if (p->parent[item] != CHAKRA_NONE)
            w->child[at[p->parent[item]]++] = item;
    }
    return true;
}

static orr_code find_deps(chakra_plan *p, orr_error *err)
{
    walk w = {.p = p, .err = err};
    orr_code code = sort_children(&w) ? ORR_OK : orr_no_memory(err);
    for (uint32_t i = 0; i < p->count && !code; i++) {
        if (is_thread(chakra_node(p, i)->name) && (p->state[i] & CHAKRA_CREATED))
            code = walk_from(&w, i);
    }
    orr_free(w.stack);
    return code;
}

/* ---- is it a graph that can be run? ---- */

static orr_code say_missing(const chakra_plan *p, uint32_t item, uint32_t from, orr_error *err)
{
    const linked_node *n = chakra_node(p, item);
    const orr_where at = linked_where(p->l, n);
    return orr_fail(err, ORR_EINPUT, &at,
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
    const orr_where at = linked_where(p->l, n);
    return orr_fail(err, ORR_EINPUT, &at,
                    "node %" PRIu64 " \"%.*s\" waits for itself, through its thread and "
                    "inter_thread_dep",
                    n->id, shown(n->name), n->name.ptr);
}

/* Take away nodes whose parents are gone until none is left. */
static orr_code check_graph(const chakra_plan *p, orr_error *err)
{
    orr_arena *a = p->arena;
    uint32_t *waits = orr_arena_new(a, p->count, uint32_t);
    uint32_t *first = orr_arena_new(a, (size_t)p->count + 1, uint32_t);
    uint32_t *below = orr_arena_new(a, p->dep_count + 1, uint32_t);
    uint32_t *free_items = orr_arena_new(a, p->count, uint32_t);
    uint32_t nodes = 0, done = 0, known = 0;
    if (!waits || !first || !below || !free_items)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < p->count; i++) {
        nodes += chakra_is_written(p, i);
        for (uint32_t e = p->dep_first[i]; e != CHAKRA_NONE; e = p->deps[e].next) {
            if (!(p->state[p->deps[e].from] & CHAKRA_CREATED))
                return say_missing(p, i, p->deps[e].from, err);
            waits[i]++;
            first[p->deps[e].from + 1]++;
        }
    }
    for (uint32_t i = 0; i < p->count; i++)
        first[i + 1] += first[i];
    for (uint32_t i = p->count; i-- > 0;)
        for (uint32_t e = p->dep_first[i]; e != CHAKRA_NONE; e = p->deps[e].next)
            below[--first[p->deps[e].from + 1]] = i;
    for (uint32_t i = 0; i < p->count; i++) {
        if (chakra_is_written(p, i) && waits[i] == 0)
            free_items[known++] = i;
    }
    /* first[i + 1] is where the children of i begin now, those of i + 1 where they end. */
    while (done < known) {
        const uint32_t item = free_items[done++];
        const uint32_t end = item + 2 <= p->count ? first[item + 2] : (uint32_t)p->dep_count;
        for (uint32_t k = first[item + 1]; k < end; k++) {
            if (--waits[below[k]] == 0)
                free_items[known++] = below[k];
        }
    }
    return done == nodes ? ORR_OK : say_cycle(p, waits, err);
}

/* ---- all of it ---- */

static orr_code make(chakra_plan *p, orr_error *err)
{
    p->arena = orr_arena_create();
    p->by_key = orr_map_create(p->l->node_count);
    if (!p->arena || !p->by_key || !make_room(p, p->l->node_count + 1) || !take_items(p))
        return orr_no_memory(err);
    find_parents(p);
    find_thread_deps(p);
    find_children(p);
    if (!sort_items(p))
        return orr_no_memory(err);
    orr_code code = create_all(p, err);
    if (!code)
        code = find_deps(p, err);
    return code ? code : check_graph(p, err);
}

orr_code chakra_plan_make(const orr_linked *l, chakra_plan *p, orr_error *err)
{
    *p = (chakra_plan){.l = l};
    const orr_code code = make(p, err);
    if (code)
        chakra_plan_end(p);
    return code;
}

void chakra_plan_end(chakra_plan *p)
{
    orr_free(p->deps);
    orr_map_destroy(p->by_key);
    orr_arena_destroy(p->arena);
    *p = (chakra_plan){0};
}
