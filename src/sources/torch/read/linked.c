/* SPDX-License-Identifier: Apache-2.0 */
/* linked.c - a linked trace in memory: adding nodes, edges and process groups. */
#include "linked.h"

#include "base/formats/json.h"

enum { GROUP_RANKS_MAX = 1 << 22 };

orr_linked *linked_create(const char *path)
{
    orr_linked *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->rank = l->world = -1;
    l->arena = orr_arena_create();
    l->group_names = orr_intern_create();
    l->path = l->arena ? orr_arena_text(l->arena, orr_str_of(path)) : NULL;
    if (l->path && l->group_names)
        return l;
    orr_linked_free(l);
    return NULL;
}

void orr_linked_free(orr_linked *l)
{
    if (!l)
        return;
    orr_free(l->nodes);
    orr_free(l->edges);
    orr_free(l->comms);
    orr_free(l->groups);
    orr_intern_destroy(l->group_names);
    orr_arena_destroy(l->arena);
    for (size_t i = 0; i < sizeof l->input / sizeof *l->input; i++)
        orr_input_close(l->input[i]);
    orr_free(l);
}

bool linked_add(orr_linked *l, const linked_node *node, const linked_comm *comm)
{
    if (l->node_count >= UINT32_MAX || l->comm_count >= UINT32_MAX ||
        !orr_grow(&l->nodes, &l->node_room, l->node_count + 1) ||
        (comm && !orr_grow(&l->comms, &l->comm_room, l->comm_count + 1)))
        return false;
    l->nodes[l->node_count] = *node;
    l->nodes[l->node_count++].comm = comm ? (uint32_t)l->comm_count : LINKED_NO_COMM;
    if (comm)
        l->comms[l->comm_count++] = *comm;
    return true;
}

bool linked_join(orr_linked *l, uint64_t from, uint64_t to, linked_edge_kind kind)
{
    return orr_push(l->edges, l->edge_count, l->edge_room,
                    (linked_edge){.from = from, .to = to, .kind = (uint8_t)kind});
}

linked_comm linked_no_comm(void)
{
    return (linked_comm){.in_elements = -1,
                         .out_elements = -1,
                         .group_size = -1,
                         .rank_start = -1,
                         .rank_stride = -1,
                         .src = -1,
                         .dst = -1,
                         .tag = -1,
                         .sequence = -1};
}

/* Lines are counted only when an error needs them. */
orr_where linked_where(const orr_linked *l, const linked_node *n)
{
    orr_where at = orr_where_byte(l->path, n->byte);
    if (n->byte >= l->text.len)
        return at;
    at.line = at.column = 1;
    for (uint64_t i = 0; i < n->byte; i++) {
        at.column++;
        if (l->text.ptr[i] == '\n') {
            at.line++;
            at.column = 1;
        }
    }
    return at;
}

/* ---- process groups ---- */

const linked_group *linked_find_group(const orr_linked *l, orr_str name)
{
    uint32_t which;
    return orr_intern_find(l->group_names, name, &which) ? &l->groups[which] : NULL;
}

static orr_str keep(const orr_linked *l, orr_str s)
{
    return (orr_str){orr_arena_text(l->arena, s), s.len};
}

static bool no_room(orr_linked *l)
{
    l->is_out_of_memory = true;
    return false;
}

static bool find_text(orr_json_value v, const char *key, orr_str *out)
{
    orr_json_value found;
    return orr_json_find(v, key, &found) && orr_json_type_of(found) == ORR_JSON_STRING &&
           !orr_json_get_str(found, out, NULL);
}

/* Names are strings in all versions seen, except where a tool in between made them numbers. */
static bool find_name(orr_json_value v, orr_str *out)
{
    orr_json_value found;
    if (find_text(v, "pg_name", out))
        return true;
    if (!orr_json_find(v, "pg_name", &found) || orr_json_type_of(found) != ORR_JSON_INT)
        return false;
    *out = orr_json_raw(found);
    return true;
}

/* An empty list means all ranks of the job: no array. */
static bool read_ranks(orr_linked *l, orr_json_value v, linked_group *out)
{
    orr_json_value list, item;
    int64_t rank;
    if (!orr_json_find(v, "ranks", &list) || orr_json_type_of(list) != ORR_JSON_ARRAY)
        return true;
    const uint32_t count = orr_json_count(list);
    if (count == 0 || count > GROUP_RANKS_MAX)
        return count == 0;
    uint32_t *ranks = orr_arena_new(l->arena, count, uint32_t);
    if (!ranks)
        return no_room(l);
    uint32_t n = 0;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &item);) {
        if (orr_json_get_i64(item, &rank, NULL) || rank < 0 || rank >= INT32_MAX)
            return false;
        ranks[n++] = (uint32_t)rank;
    }
    out->ranks = ranks;
    out->count = count;
    return true;
}

static bool read_group(orr_linked *l, orr_json_value v, linked_group *out)
{
    orr_json_value size;
    orr_str about = {"", 0};
    int64_t count;
    *out = (linked_group){0};
    if (!find_name(v, &out->name) || !read_ranks(l, v, out))
        return false;
    find_text(v, "pg_desc", &about);
    if (!out->count && orr_json_find(v, "group_size", &size) &&
        !orr_json_get_i64(size, &count, NULL) && count > 0 && count <= GROUP_RANKS_MAX)
        out->count = (uint32_t)count;
    out->name = keep(l, out->name);
    out->about = keep(l, about);
    return (out->name.ptr && out->about.ptr) || no_room(l);
}

/* The same groups are described again at the end of a trace; the more complete description wins. */
static bool add_group(orr_linked *l, const linked_group *g)
{
    linked_group *known = (linked_group *)linked_find_group(l, g->name);
    if (known) {
        if (!known->ranks && (g->ranks || !known->count))
            *known = *g;
        return true;
    }
    uint32_t which;
    if (!orr_grow(&l->groups, &l->group_room, l->group_count + 1) ||
        !orr_intern_add(l->group_names, g->name, &which))
        return no_room(l);
    l->groups[l->group_count++] = *g;
    return true;
}

static bool add_groups(orr_linked *l, orr_json_value list)
{
    orr_json_value item;
    size_t count = 0;
    linked_group *groups = orr_arena_new(l->arena, (size_t)orr_json_count(list) + 1, linked_group);
    if (!groups)
        return no_room(l);
    /* All or nothing: first every entry must be readable. */
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &item);) {
        if (!read_group(l, item, &groups[count++]))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_group(l, &groups[i]))
            return false;
    }
    return true;
}

bool linked_read_groups(orr_linked *l, orr_str list)
{
    orr_json *j;
    orr_json_value root;
    const orr_span bytes = {(const uint8_t *)list.ptr, list.len};
    orr_code code = orr_json_open(bytes, l->path, &j, NULL);
    if (!code)
        code = orr_json_only(j, &root, NULL);
    if (code == ORR_ENOMEM)
        no_room(l);
    const bool ok = !code && orr_json_type_of(root) == ORR_JSON_ARRAY && add_groups(l, root);
    orr_json_close(j);
    return ok;
}
