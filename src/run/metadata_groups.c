/* SPDX-License-Identifier: Apache-2.0 */
/* metadata_groups.c - process groups defined by PyTorch traces (astra-sim.md 6.3).
 *
 * A METADATA node, named process_group:init as a rule, has a JSON list of groups as the text of its
 * inputs, wrapped in a Python list: ['[{"pg_name": "1", "ranks": [0, 2]}, ...]']. Group k gets the
 * number k + 1; no ranks means all of them.  The traces of one job mostly have equal texts, so each
 * text is parsed once, however many ranks have it. */
#include "run_state.h"

#include "base/formats/json.h"
#include "base/memory/hash.h"
#include "base/text/number.h"

typedef struct named_group {
    int64_t name;
    uint32_t index; /* in the groups of the run; NONE: all ranks */
} named_group;

struct work_group_table {
    orr_str text;
    named_group *groups;
    uint32_t count;
};

typedef struct reader {
    orr_sim *s;
    work_group_table **tables;
    size_t count, room;
    orr_map *by_text; /* hash -> table */
    orr_where where;  /* of the node */
    orr_error *err;
} reader;

/* ---- one group ---- */

static orr_code refuse(const reader *r, const char *what)
{
    return orr_fail(r->err, ORR_EINPUT, &r->where, "process groups: %s", what);
}

static orr_code take_members(reader *r, orr_json_value ranks, cfg_group *g)
{
    orr_arena *a = r->s->arena;
    const size_t count = orr_json_count(ranks);
    orr_json_value v;
    uint64_t rank;
    uint32_t twice;
    g->members = orr_arena_new(a, count, uint32_t);
    g->sorted = orr_arena_new(a, count, uint32_t);
    g->place = orr_arena_new(a, count, uint32_t);
    if (!g->members || !g->sorted || !g->place)
        return orr_no_memory(r->err);
    for (orr_json_iter it = orr_json_iterate(ranks); orr_json_next_value(&it, &v);) {
        if (orr_json_type_of(v) != ORR_JSON_INT || orr_json_get_u64(v, &rank, r->err))
            return refuse(r, "a rank is not a number");
        /* A trace of a larger job on a smaller network: a group that extends beyond it is
         * unusable. */
        if (rank >= r->s->npu_count)
            return ORR_END;
        g->members[g->count++] = (uint32_t)rank;
    }
    return cfg_group_sort(g, &twice) ? ORR_OK : refuse(r, "a rank is in a group twice");
}

/* Names by which collectives can refer to a group are small numbers. */
static bool find_name(orr_json_value entry, int64_t *out)
{
    orr_error ignored;
    orr_json_value v;
    orr_str s;
    return orr_json_type_of(entry) == ORR_JSON_OBJECT && orr_json_find(entry, "pg_name", &v) &&
           orr_json_type_of(v) == ORR_JSON_STRING && !orr_json_get_str(v, &s, &ignored) &&
           orr_text_i64(s, out) && *out >= 0 && *out < INT64_C(1) << 40;
}

/* ORR_END: not a usable group. */
static orr_code take_group(reader *r, orr_json_value entry, named_group *out)
{
    cfg_groups *all = &r->s->groups;
    orr_json_value ranks;
    if (!find_name(entry, &out->name))
        return ORR_END;
    if (!orr_json_find(entry, "ranks", &ranks) || orr_json_type_of(ranks) != ORR_JSON_ARRAY)
        return refuse(r, "an entry has no list of ranks");
    out->index = RUN_NONE;
    if (orr_json_count(ranks) == 0)
        return ORR_OK;
    if (all->count >= RUN_NONE || !orr_grow(&all->groups, &all->room, all->count + 1))
        return orr_no_memory(r->err);
    cfg_group *g = &all->groups[all->count];
    /* Number 0 means all ranks (astra-sim.md 6.3). */
    *g = (cfg_group){.id = out->name + 1};
    /* Counted only when it is complete: one that is unusable leaves no gap. */
    const orr_code code = take_members(r, ranks, g);
    if (!code)
        out->index = (uint32_t)all->count++;
    return code;
}

/* ---- one text ---- */

static orr_code take_groups(reader *r, orr_json_value list, work_group_table *t)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    if (orr_json_type_of(list) != ORR_JSON_ARRAY)
        return refuse(r, "expected a list");
    t->groups = orr_arena_new(r->s->arena, orr_json_count(list), named_group);
    if (!t->groups)
        return orr_no_memory(r->err);
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);) {
        code = take_group(r, v, &t->groups[t->count]);
        t->count += code == ORR_OK;
        code = code == ORR_END ? ORR_OK : code;
    }
    return code;
}

static orr_code parse(reader *r, orr_str text, work_group_table *t)
{
    orr_json *j;
    orr_json_value root;
    /* Python's brackets and quotes on both sides. */
    if (text.len >= 4 && text.ptr[0] == '[' && (text.ptr[1] == '\'' || text.ptr[1] == '"')) {
        text.ptr += 2;
        text.len -= 4;
    }
    orr_code code =
        orr_json_open((orr_span){(const uint8_t *)text.ptr, text.len}, NULL, &j, r->err);
    if (!code)
        code = orr_json_only(j, &root, r->err);
    if (code && code != ORR_ENOMEM)
        code = refuse(r, "the inputs of the node are not a list of groups in JSON");
    if (!code)
        code = take_groups(r, root, t);
    orr_json_close(j);
    return code;
}

static orr_code read_text(reader *r, orr_str text, const work_group_table **out)
{
    const uint64_t hash = orr_hash_bytes(text.ptr, text.len, 0);
    const uint32_t known = orr_map_find(r->by_text, hash, RUN_NONE);
    if (known != RUN_NONE) {
        *out = r->tables[known];
        if ((*out)->text.len == text.len && memcmp((*out)->text.ptr, text.ptr, text.len) == 0)
            return ORR_OK;
    }
    /* New, or another text with this hash, which then takes the place in the map. */
    work_group_table *t = orr_arena_new(r->s->arena, 1, work_group_table);
    if (!t || !orr_grow(&r->tables, &r->room, r->count + 1) ||
        !orr_map_put(r->by_text, hash, (uint32_t)r->count, NULL))
        return orr_no_memory(r->err);
    t->text = text;
    r->tables[r->count++] = t;
    *out = t;
    return parse(r, text, t);
}

/* ---- all traces ---- */

static bool names_groups(const orr_node *node)
{
    static const char word[] = "process_group:init", key[] = "pg_name";
    return node->has_inputs && node->inputs.values.len &&
           (memmem(node->name.ptr, node->name.len, word, sizeof word - 1) ||
            memmem(node->inputs.values.ptr, node->inputs.values.len, key, sizeof key - 1));
}

static orr_code read_trace(reader *r, work_graph *g)
{
    const orr_columns *c = &g->t->columns;
    orr_node node;
    orr_code code = ORR_OK;
    size_t room = 0;
    for (uint32_t i = 0; i < c->count && !code; i++) {
        if (c->type[i] != ORR_NODE_METADATA)
            continue;
        orr_trace_node(g->t, i, &node);
        if (!names_groups(&node))
            continue;
        if (!orr_grow(&g->tables, &room, g->table_count + 1))
            return orr_no_memory(r->err);
        r->where = orr_trace_where(g->t, i);
        code = read_text(r, node.inputs.values, &g->tables[g->table_count]);
        g->table_count += !code;
    }
    return code;
}

orr_code work_read_metadata_groups(orr_sim *s, orr_error *err)
{
    reader r = {.s = s, .by_text = orr_map_create(0), .err = err};
    orr_code code = r.by_text ? ORR_OK : orr_no_memory(err);
    for (uint32_t k = 0; k < orr_set_class_count(s->set) && !code; k++)
        if (s->graphs[k].t)
            code = read_trace(&r, &s->graphs[k]);
    orr_map_destroy(r.by_text);
    orr_free(r.tables);
    return code;
}

bool work_metadata_group(const orr_sim *s, const work_graph *g, int64_t name, const cfg_group **out)
{
    for (uint32_t i = 0; i < g->table_count; i++)
        for (uint32_t k = 0; k < g->tables[i]->count; k++) {
            const named_group *n = &g->tables[i]->groups[k];
            if (n->name != name)
                continue;
            *out = n->index == RUN_NONE ? NULL : &s->groups.groups[n->index];
            return true;
        }
    return false;
}
