/* SPDX-License-Identifier: Apache-2.0 */
/* conversion.c - from a linked trace to a trace: the steps one after another, and what they share. */
#include "conversion.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- places ---- */

typedef struct keyed {
    uint64_t id;
    uint32_t node;
} keyed;

static int by_number(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static bool is_ascending(const orr_linked *l)
{
    for (size_t i = 1; i < l->node_count; i++) {
        if (l->nodes[i - 1].id >= l->nodes[i].id)
            return false;
    }
    return true;
}

static orr_code sort_nodes(conv_state *c)
{
    keyed *keys = is_ascending(c->l) ? NULL : orr_alloc(c->count, sizeof *keys);
    for (uint32_t i = 0; i < c->count; i++)
        c->node[i] = i;
    if (is_ascending(c->l))
        return ORR_OK;
    if (!keys)
        return orr_no_memory(c->err);
    for (uint32_t i = 0; i < c->count; i++)
        keys[i] = (keyed){c->l->nodes[i].id, i};
    qsort(keys, c->count, sizeof *keys, by_number);
    for (uint32_t i = 0; i < c->count; i++)
        c->node[i] = keys[i].node;
    orr_free(keys);
    return ORR_OK;
}

static orr_code say_twice(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const orr_where at = linked_where(c->l, n);
    return orr_fail(c->err, ORR_EINPUT, &at, "node %" PRIu64 " is there twice", n->id);
}

static orr_code index_nodes(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        if (p && conv_node(c, p - 1)->id == conv_node(c, p)->id)
            return say_twice(c, p);
        if (!orr_map_put(c->by_id, conv_node(c, p)->id, p, NULL))
            return orr_no_memory(c->err);
    }
    return ORR_OK;
}

static void note_later(conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const uint64_t known = c->report->parents_later++;
    if (known < ORR_PYTORCH_SHOWN)
        c->report->later_nodes[known] = (orr_pytorch_later){n->id, n->parent};
}

/* The process has no parent, or is its own.  Any other parent comes before its children, or there may be a circle. */
static void find_parents(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        const linked_node *n = conv_node(c, p);
        const uint32_t parent =
            n->parent == LINKED_NO_ID ? CONV_NONE : orr_map_find(c->by_id, n->parent, CONV_NONE);
        c->parent[p] = parent == p ? CONV_NONE : parent;
        c->partner[p] = CONV_NONE;
        if (parent != CONV_NONE && (parent > p || (parent == p && p != 0)))
            note_later(c, p);
        c->report->parents_missing += parent == CONV_NONE && n->parent != LINKED_NO_ID && p != 0;
    }
}

static bool make_room(conv_state *c)
{
    const size_t n = (size_t)c->count + 1;
    c->arena = orr_arena_create();
    c->by_id = orr_map_create(n);
    if (!c->arena || !c->by_id)
        return false;
    c->node = orr_arena_new(c->arena, n, uint32_t);
    c->parent = orr_arena_new(c->arena, n, uint32_t);
    c->role = orr_arena_new(c->arena, n, uint8_t);
    c->said = orr_arena_new(c->arena, n, uint8_t);
    c->partner = orr_arena_new(c->arena, n, uint32_t);
    c->call = orr_arena_new(c->arena, n, uint32_t);
    c->before = orr_arena_new(c->arena, n, uint32_t);
    return c->node && c->parent && c->role && c->said && c->partner && c->call && c->before;
}

/* ---- the steps ---- */

static orr_code convert(conv_state *c, orr_trace **out)
{
    if (!make_room(c))
        return orr_no_memory(c->err);
    orr_code code = sort_nodes(c);
    if (code || (code = index_nodes(c)))
        return code;
    find_parents(c);
    if ((code = conv_find_calls(c)) || (code = conv_find_comm(c)))
        return code;
    if (*c->lacks_memory)
        return orr_no_memory(c->err);
    if ((code = conv_find_order(c)) || (code = conv_find_data(c)) || (code = conv_settle_order(c)))
        return code;
    return conv_write_trace(c, out);
}

static void count_nodes(conv_state *c)
{
    for (uint32_t p = 0; p < c->count && c->role; p++) {
        c->report->host_nodes += c->role[p] == CONV_HOST;
        c->report->device_nodes += conv_is_device(c, p);
    }
}

static orr_code new_trace(const orr_linked *l,
                          const orr_pytorch_options *opt,
                          orr_trace **out,
                          orr_pytorch_report *report,
                          orr_error *err)
{
    bool lacks_memory = false;
    conv_state c = {.l = l,
                    .lacks_memory = &lacks_memory,
                    .opt = opt,
                    .report = report,
                    .count = (uint32_t)l->node_count, /* linked_add keeps it in range */
                    .err = err};
    const orr_code code = convert(&c, out);
    if (!code)
        count_nodes(&c);
    orr_free(c.calls);
    orr_free(c.links);
    orr_map_destroy(c.by_id);
    orr_arena_destroy(c.arena);
    return code;
}

orr_code orr_linked_trace(const orr_linked *l,
                          const orr_pytorch_options *opt,
                          orr_trace **out,
                          orr_pytorch_report *report,
                          orr_error *err)
{
    const orr_pytorch_options defaults = {0};
    orr_pytorch_report own;
    *out = NULL;
    report = report ? report : &own;
    *report = (orr_pytorch_report){0};
    if (l->rules)
        return l->rules->trace(l, out, err);
    return new_trace(l, opt ? opt : &defaults, out, report, err);
}

orr_code orr_linked_simulate(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err)
{
    if (l->rules && l->rules->simulate)
        return l->rules->simulate(l, say, sink, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "%s: these rules do not play a trace through", l->path);
}
