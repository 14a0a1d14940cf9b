/* SPDX-License-Identifier: Apache-2.0 */
/* check_groups.c - the members of groups, and the collectives they run there.
 *
 * Class by class the collectives are listed; a class with holes has some whose group is a rank's
 * own value. Its ranks are split into shapes by which of those values are equal to each other or to
 * a group that the body names (check_shapes.c), so that all ranks of a shape have the same *ports*:
 * groups that they are in, each with a list of what they run there.  Then every group gets its
 * entries: a port with one rank, or with all ranks of its shape when the body names the group.
 * Cost: O(c log c) for c collectives of distinct shapes, plus one step per value of a rank. */
#include "check_impl.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <stdlib.h>

/* A collective of a class. */
typedef struct call {
    uint32_t node;
    uint32_t own;   /* which of the rank's own groups; ORR_NO_NODE: none */
    uint32_t group; /* when the rank has none of its own; ORR_NO_NODE: over part of the network */
    int16_t type;
    int64_t size, key_size;
} call;

typedef struct gathering {
    chk_run *k;
    chk_issues *s;
    call *calls;
    size_t call_count, call_room;
    size_t *call_first;  /* by class */
    uint32_t **own_slot; /* by class: the slots that name groups */
    uint32_t *own_count; /* by class */
    orr_map *by_value;   /* group of a value */
    /* By group: its role for the current class, rank or shape; valid where the mark is its number +
     * 1. */
    uint32_t *class_mark, *rank_mark, *rank_own, *shape_mark, *shape_port;
    size_t issue_room, port_room;
} gathering;

/* ---- the collectives of the classes ---- */

/* In these, ranks may move different amounts (a root, or splits of different lengths). */
static bool may_be_uneven(int type)
{
    return type == ORR_COLL_ALL_TO_ALL || type == ORR_COLL_GATHER || type == ORR_COLL_SCATTER;
}

/* own_of: by slot, its number + 1 among those of the class. */
static uint32_t own_of_slot(gathering *g, uint32_t class_index, uint32_t slot, uint32_t *own_of)
{
    if (own_of[slot] == 0) {
        g->own_slot[class_index][g->own_count[class_index]++] = slot;
        own_of[slot] = g->own_count[class_index];
    }
    return own_of[slot] - 1;
}

static bool add_call(gathering *g, const chk_class *cls, uint32_t node, uint32_t *own_of)
{
    const orr_columns *c = cls->c;
    const uint32_t slot = chk_slot(cls, ORR_HOLE_PG_NAME, node);
    char room[24];
    orr_str name;
    if (!c->comm_type || c->comm_type[node] < 0)
        return true; /* reported already */
    if (!orr_grow(&g->calls, &g->call_room, g->call_count + 1))
        return false;
    const int64_t size =
        c->comm_size && c->comm_size[node] >= 0 ? c->comm_size[node] : ORR_NO_VALUE;
    const int16_t type = c->comm_type[node];
    call *q = &g->calls[g->call_count++];
    *q = (call){.node = node,
                .own = slot == ORR_NO_NODE ? ORR_NO_NODE : own_of_slot(g, cls->index, slot, own_of),
                .group = ORR_NO_NODE,
                .type = type,
                .size = type == ORR_COLL_BARRIER ? 0 : size,
                .key_size = may_be_uneven(type) || type == ORR_COLL_BARRIER ? 0 : size};
    const bool has_group = slot == ORR_NO_NODE ? chk_collective_group(cls->t, node, room, &name)
                                               : chk_unnamed_group(cls->t, node, room, &name);
    return !has_group || orr_intern_add(g->s->groups, name, &q->group);
}

static bool list_calls(gathering *g, const chk_class *cls)
{
    const bool has_own = cls->holes && cls->holes->slot[ORR_HOLE_PG_NAME];
    const size_t slots = has_own ? cls->holes->slot_count : 0;
    uint32_t *own_of = orr_arena_new(g->k->scratch, slots + 1, uint32_t);
    g->own_slot[cls->index] = orr_arena_new(g->k->scratch, slots + 1, uint32_t);
    if (!own_of || !g->own_slot[cls->index])
        return false;
    for (uint32_t node = 0; node < cls->c->count; node++)
        if (cls->c->type[node] == ORR_NODE_COMM_COLL && !add_call(g, cls, node, own_of))
            return false;
    return true;
}

static bool list_all_calls(gathering *g)
{
    const chk_run *k = g->k;
    const size_t classes = (size_t)k->class_count + 1;
    uint32_t all_ranks;
    g->call_first = orr_arena_new(k->scratch, classes, size_t);
    g->own_slot = orr_arena_new(k->scratch, classes, uint32_t *);
    g->own_count = orr_arena_new(k->scratch, classes, uint32_t);
    if (!g->call_first || !g->own_slot || !g->own_count ||
        !orr_intern_add(g->s->groups, (orr_str){"", 0}, &all_ranks))
        return false;
    for (uint32_t i = 0; i < k->class_count; i++) {
        if (k->classes[i].rank_count && !list_calls(g, &k->classes[i]))
            return false;
        g->call_first[i + 1] = g->call_count;
    }
    return true;
}

/* ---- groups given by ranks' own values ---- */

static bool group_of_value(gathering *g, int64_t value, uint32_t *out)
{
    *out = ORR_NO_NODE;
    if (value == 0)
        return true; /* 0 names no group (astra-sim.md 6.4) */
    *out = orr_map_find(g->by_value, (uint64_t)value, ORR_NO_NODE);
    if (*out != ORR_NO_NODE)
        return true;
    orr_buf text = {0};
    orr_buf_i64(&text, value);
    const bool ok =
        !text.failed &&
        orr_intern_add(g->s->groups, (orr_str){(const char *)text.ptr, text.len}, out) &&
        orr_map_put(g->by_value, (uint64_t)value, *out, NULL);
    orr_buf_fini(&text);
    return ok;
}

static bool list_own_groups(gathering *g)
{
    const chk_run *k = g->k;
    chk_issues *s = g->s;
    size_t total = 0;
    for (uint32_t i = 0; i < k->class_count; i++)
        total += (size_t)k->classes[i].rank_count * g->own_count[i];
    s->own_groups = orr_arena_new(k->scratch, total + 1, uint32_t);
    s->own_at = orr_arena_new(k->scratch, (size_t)k->report->rank_count + 1, size_t);
    if (!s->own_groups || !s->own_at)
        return false;
    size_t at = 0;
    for (uint32_t r = 0; r < k->report->rank_count; r++) {
        const uint32_t c = orr_set_class_of(k->set, r);
        s->own_at[r] = at;
        for (uint32_t i = 0; c != ORR_NO_NODE && i < g->own_count[c]; i++)
            if (!group_of_value(g, chk_value(k, r, g->own_slot[c][i]), &s->own_groups[at++]))
                return false;
    }
    return true;
}

/* ---- shapes ---- */

/* An entry of a pattern: none, a group that the body names, or the first of the rank's own that is
 * equal. */
enum { NO_GROUP = -1, NAMED_GROUP = -2 };

static size_t begin_class(void *context, uint32_t class_index)
{
    gathering *g = context;
    for (size_t i = g->call_first[class_index]; i < g->call_first[class_index + 1]; i++)
        if (g->calls[i].group != ORR_NO_NODE)
            g->class_mark[g->calls[i].group] = class_index + 1;
    return g->own_count[class_index];
}

static void fill_pattern(void *context, uint32_t rank, int64_t *pattern)
{
    gathering *g = context;
    const uint32_t c = orr_set_class_of(g->k->set, rank);
    const uint32_t *own = g->s->own_groups + g->s->own_at[rank];
    for (uint32_t i = 0; i < g->own_count[c]; i++) {
        const uint32_t group = own[i];
        pattern[i] = i;
        if (group == ORR_NO_NODE) {
            pattern[i] = NO_GROUP;
        } else if (g->class_mark[group] == c + 1) {
            pattern[i] = NAMED_GROUP - (int64_t)group;
        } else if (g->rank_mark[group] == rank + 1) {
            pattern[i] = g->rank_own[group];
        } else {
            g->rank_mark[group] = rank + 1;
            g->rank_own[group] = i;
        }
    }
}

static bool make_shapes(gathering *g)
{
    const chk_splitter by = {begin_class, fill_pattern, g};
    uint32_t **const marks[] = {&g->class_mark, &g->rank_mark, &g->rank_own, &g->shape_mark,
                                &g->shape_port};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!(*marks[i] = orr_arena_new(g->k->scratch, orr_intern_count(g->s->groups), uint32_t)))
            return false;
    return chk_shapes_make(g->k, &by, &g->s->shapes);
}

/* ---- ports ---- */

static bool add_port(gathering *g, uint32_t shape, uint32_t group, uint32_t own, uint32_t *out)
{
    chk_issues *s = g->s;
    if (s->port_count == ORR_NO_NODE ||
        !orr_grow(&s->ports, &g->port_room, (size_t)s->port_count + 1))
        return false;
    *out = s->port_count;
    s->has_own |= group == ORR_NO_NODE;
    s->ports[s->port_count++] = (chk_port){.shape = shape, .group = group, .own = own};
    return true;
}

static bool port_of_group(gathering *g, uint32_t shape, uint32_t group, uint32_t *out)
{
    if (g->shape_mark[group] != shape + 1) {
        g->shape_mark[group] = shape + 1;
        if (!add_port(g, shape, group, ORR_NO_NODE, &g->shape_port[group]))
            return false;
    }
    *out = g->shape_port[group];
    return true;
}

/* own_port: by own group, its port + 1. */
static bool add_issue(gathering *g, uint32_t shape, const call *q, uint32_t *own_port)
{
    chk_issues *s = g->s;
    const int64_t like = q->own == ORR_NO_NODE ? NO_GROUP : s->shapes.all[shape].pattern[q->own];
    const uint32_t group =
        like <= NAMED_GROUP ? (uint32_t)(NAMED_GROUP - like) : q->group; /* unless it has its own */
    uint32_t port;
    if (like >= 0) {
        if (own_port[like] == 0 && !add_port(g, shape, ORR_NO_NODE, (uint32_t)like, &port))
            return false;
        own_port[like] = own_port[like] ? own_port[like] : port + 1;
        port = own_port[like] - 1;
    } else if (group == ORR_NO_NODE) {
        s->has_partial = true;
        return true;
    } else if (!port_of_group(g, shape, group, &port)) {
        return false;
    }
    return orr_push(s->all, s->count, g->issue_room,
                    (chk_issue){.shape = shape,
                                .port = port,
                                .node = q->node,
                                .type = q->type,
                                .size = q->size,
                                .key_size = q->key_size});
}

static bool build_shape(gathering *g, uint32_t shape)
{
    const uint32_t c = g->s->shapes.all[shape].class_index;
    uint32_t port;
    uint32_t *own_port = orr_arena_new(g->k->scratch, (size_t)g->own_count[c] + 1, uint32_t);
    if (!own_port || !port_of_group(g, shape, 0, &port))
        return false;
    for (size_t i = g->call_first[c]; i < g->call_first[c + 1]; i++)
        if (!add_issue(g, shape, &g->calls[i], own_port))
            return false;
    return true;
}

static bool build_shapes(gathering *g)
{
    chk_issues *s = g->s;
    s->shape_first = orr_arena_new(g->k->scratch, (size_t)s->shapes.count + 1, size_t);
    s->port_first = orr_arena_new(g->k->scratch, (size_t)s->shapes.count + 1, uint32_t);
    if (!s->shape_first || !s->port_first)
        return false;
    for (uint32_t i = 0; i < s->shapes.count; i++) {
        if (!build_shape(g, i))
            return false;
        s->shape_first[i + 1] = s->count;
        s->port_first[i + 1] = s->port_count;
    }
    return true;
}

static int compare_issues(const void *a, const void *b)
{
    const chk_issue *x = a, *y = b;
    if (x->port != y->port)
        return x->port < y->port ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->key_size != y->key_size)
        return x->key_size < y->key_size ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void add_to_port(chk_port *p, const chk_issue *q)
{
    const uint64_t type =
        orr_hash_mix((uint64_t)q->type + 0x9e3779b97f4a7c15u, 0xa0761d6478bd642fu);
    p->loose += orr_hash_mix(type ^ (uint64_t)q->key_size, 0xe7037ed1a0b428dbu);
    p->strict += orr_hash_mix(type ^ (uint64_t)q->size, 0x8ebc6af09c88c6e3u);
    p->count++;
}

static bool sort_issues(gathering *g)
{
    chk_issues *s = g->s;
    s->sorted = orr_arena_new(g->k->scratch, s->count + 1, chk_issue);
    if (!s->sorted)
        return false;
    if (s->count)
        memcpy(s->sorted, s->all, s->count * sizeof *s->all);
    orr_sort(s->sorted, s->count, sizeof *s->sorted, compare_issues);
    for (size_t i = 0; i < s->count; i++) {
        chk_port *p = &s->ports[s->sorted[i].port];
        if (p->count == 0)
            p->first = i;
        add_to_port(p, &s->sorted[i]);
    }
    return true;
}

/* ---- entries ---- */

/* Counts (entries NULL) or places the entries of a port. */
static void add_entries(const chk_issues *s, uint32_t port, size_t *at, chk_entry *entries)
{
    const chk_port *p = &s->ports[port];
    const chk_shape *shape = &s->shapes.all[p->shape];
    const uint32_t times = p->group != ORR_NO_NODE ? 1 : shape->rank_count;
    for (uint32_t i = 0; i < times; i++) {
        const uint32_t rank = s->shapes.ranks[shape->first + i];
        const size_t to = at[chk_group_of(s, p, rank)]++;
        if (entries)
            entries[to] = (chk_entry){port, p->group != ORR_NO_NODE ? ORR_NO_NODE : rank};
    }
}

static bool list_entries(gathering *g)
{
    chk_issues *s = g->s;
    const size_t groups = orr_intern_count(s->groups);
    s->group_first = orr_arena_new(g->k->scratch, groups + 2, size_t);
    if (!s->group_first)
        return false;
    size_t *at = s->group_first + 1; /* placing advances each start to the next one's */
    for (uint32_t port = 0; port < s->port_count; port++)
        add_entries(s, port, at + 1, NULL);
    for (size_t i = 0; i < groups; i++)
        at[i + 1] += at[i];
    s->entries = orr_arena_new(g->k->scratch, at[groups] + 1, chk_entry);
    if (!s->entries)
        return false;
    for (uint32_t port = 0; port < s->port_count; port++)
        add_entries(s, port, at, s->entries);
    return true;
}

void chk_issues_gather(chk_run *k, chk_issues *s)
{
    gathering g = {.k = k, .s = s, .by_value = orr_map_create(0)};
    s->groups = orr_intern_create();
    const bool ok = s->groups && g.by_value && list_all_calls(&g) && list_own_groups(&g) &&
                    make_shapes(&g) && build_shapes(&g) && sort_issues(&g) && list_entries(&g);
    k->no_memory |= !ok;
    orr_map_destroy(g.by_value);
    orr_free(g.calls);
}

void chk_issues_fini(chk_issues *s)
{
    orr_intern_destroy(s->groups);
    orr_free(s->all);
    orr_free(s->ports);
}
