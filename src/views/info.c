/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - gathers the figures of a set of traces.
 *
 * One pass over the columns of each class of equal ranks; what it adds counts as often as the class has
 * ranks.  Groups come first, over the whole set: a collective's cost depends on how many ranks its group has,
 * and a group is known by the ranks that name it.
 * Sizes below zero count as absent.  Memory: what one class needs for its graph (info_graph.c) plus one entry
 * per operator, group and pair of peers. */
#include "info_meta.h"

#include "../base/map.h"

#include <stdlib.h>
#include <string.h>

typedef struct gatherer {
    orr_info *o;
    const orr_set *set;
    orr_arena *scratch;    /* per class */
    orr_map *coll_rows;    /* (group, kind) -> row */
    orr_intern *peer_keys; /* (type, src, dst) -> row */
    uint32_t *group_ranks; /* by number of the group */
    size_t group_room;
    uint32_t *group_of; /* of the class: number of a text -> number of the group */
} gatherer;

/* One class while it is being added. */
typedef struct adding {
    gatherer *g;
    const orr_trace *t;
    const orr_columns *c;
    orr__class_row *row;
    uint64_t times;
} adding;

/* ---- groups ---- */

static bool count_group(gatherer *g, orr_str name, uint32_t ranks, uint32_t *number)
{
    const size_t old = g->group_room;
    if (!orr_intern_add(g->o->groups, name, number) ||
        !orr_grow(&g->group_ranks, &g->group_room, (size_t)*number + 1))
        return false;
    if (g->group_room > old)
        memset(g->group_ranks + old, 0, (g->group_room - old) * sizeof *g->group_ranks);
    g->group_ranks[*number] += ranks;
    return true;
}

/* The texts of a trace are the names of the groups its nodes name. */
static orr_code count_groups(gatherer *g, orr_error *err)
{
    for (uint32_t k = 0; k < orr_set_class_count(g->set); k++) {
        const orr_trace *t = orr_set_trace(g->set, k);
        for (uint32_t i = 0; i < orr_trace_text_count(t); i++) {
            uint32_t number;
            if (!count_group(g, orr_trace_text(t, i), orr_set_class_ranks(g->set, k), &number))
                return orr_no_memory(err);
        }
    }
    return ORR_OK;
}

static orr_code map_groups(gatherer *g, const orr_trace *t, orr_error *err)
{
    const uint32_t count = orr_trace_text_count(t);
    if (!(g->group_of = orr_arena_new(g->scratch, count ? count : 1, uint32_t)))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        orr_intern_find(g->o->groups, orr_trace_text(t, i), &g->group_of[i]);
    return ORR_OK;
}

/* How many ranks take part; 0: not known, because the set is one rank of a job. */
static uint32_t ranks_of(const gatherer *g, uint32_t group)
{
    if (g->o->ranks == 1)
        return g->o->options.job_ranks;
    return group == ORR_NO_NAME ? g->o->ranks : g->group_ranks[group];
}

/* ---- nodes ---- */

static int64_t wide_value(const int64_t *column, uint32_t i)
{
    return column ? column[i] : ORR_NO_VALUE;
}

static orr__coll_row *find_coll(gatherer *g, uint32_t group, uint32_t kind)
{
    orr_info *o = g->o;
    const uint64_t key = (uint64_t)group << 8 | kind;
    const uint32_t found = orr_map_find(g->coll_rows, key, UINT32_MAX);
    if (found != UINT32_MAX)
        return &o->colls[found];
    if (!orr_grow(&o->colls, &o->coll_room, o->coll_count + 1) ||
        !orr_map_put(g->coll_rows, key, (uint32_t)o->coll_count, NULL))
        return NULL;
    o->colls[o->coll_count] =
        (orr__coll_row){.group = group, .kind = kind, .ranks = ranks_of(g, group)};
    return &o->colls[o->coll_count++];
}

static bool add_collective(adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    const uint32_t text = c->pg_name ? c->pg_name[i] : ORR_NO_NAME;
    const uint32_t group = text == ORR_NO_NAME ? ORR_NO_NAME : a->g->group_of[text];
    const uint32_t kind =
        c->comm_type && c->comm_type[i] >= 0 ? (uint32_t)c->comm_type[i] : ORR__NO_KIND;
    orr__coll_row *row = find_coll(a->g, group, kind);
    if (!row)
        return false;
    row->count += a->times;
    const int64_t size = wide_value(c->comm_size, i);
    uint64_t moved;
    if (!orr__moved_bytes(kind, size < 0 ? 0 : (uint64_t)size, row->ranks, &moved))
        a->g->o->has_unknown_moved = true;
    if (size < 0)
        return true;
    orr__stat_add(&row->size, (uint64_t)size, a->times);
    row->moved = orr__sat_add(row->moved, orr__sat_mul(moved, a->times));
    a->row->sent_bytes = orr__sat_add(a->row->sent_bytes, (uint64_t)size);
    a->row->moved_bytes = orr__sat_add(a->row->moved_bytes, moved);
    a->g->o->moved_coll = orr__sat_add(a->g->o->moved_coll, orr__sat_mul(moved, a->times));
    return true;
}

static orr__peer_row *find_peer(gatherer *g, uint32_t type, int64_t src, int64_t dst)
{
    orr_info *o = g->o;
    uint32_t number;
    const int64_t key[3] = {type, src, dst};
    if (!orr_intern_add(g->peer_keys, (orr_str){(const char *)key, sizeof key}, &number))
        return NULL;
    if (number < o->peer_count)
        return &o->peers[number];
    if (!orr_grow(&o->peers, &o->peer_room, o->peer_count + 1))
        return NULL;
    o->peers[o->peer_count] = (orr__peer_row){.type = type, .src = src, .dst = dst};
    return &o->peers[o->peer_count++];
}

static bool add_message(adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    orr_info *o = a->g->o;
    const bool is_send = c->type[i] == ORR_NODE_COMM_SEND;
    orr__peer_row *row =
        find_peer(a->g, c->type[i], wide_value(c->comm_src, i), wide_value(c->comm_dst, i));
    if (!row)
        return false;
    row->count += a->times;
    o->p2p_nodes[!is_send] += a->times;
    int64_t size = wide_value(c->comm_size, i);
    if (size < 0)
        size = wide_value(c->tensor_size, i); /* the sample generators put it there */
    if (size < 0)
        return true;
    orr__stat_add(&row->size, (uint64_t)size, a->times);
    orr__stat_add(&o->p2p[!is_send], (uint64_t)size, a->times);
    if (!is_send)
        return true; /* counted where it is sent */
    a->row->sent_bytes = orr__sat_add(a->row->sent_bytes, (uint64_t)size);
    a->row->moved_bytes = orr__sat_add(a->row->moved_bytes, (uint64_t)size);
    o->moved_p2p = orr__sat_add(o->moved_p2p, orr__sat_mul((uint64_t)size, a->times));
    return true;
}

static void add_size(orr__stat *s, const int64_t *column, uint32_t i, uint64_t times)
{
    if (column && column[i] >= 0)
        orr__stat_add(s, (uint64_t)column[i], times);
}

static bool add_node(adding *a, uint32_t i)
{
    const orr_columns *c = a->c;
    orr_info *o = a->g->o;
    const uint8_t type = c->type[i];
    const uint64_t duration = c->duration_us[i];
    const int place = c->is_cpu_op ? c->is_cpu_op[i] : -1;
    orr__stat_add(&o->by_type[type], duration, a->times);
    orr__stat_add(&o->by_place[place < 0 ? 2 : place], duration, a->times);
    add_size(&o->tensor_size[type], c->tensor_size, i, a->times);
    add_size(&o->comm_size[type], c->comm_size, i, a->times);
    add_size(&o->num_ops, c->num_ops, i, a->times);
    a->row->duration_us = orr__sat_add(a->row->duration_us, duration);
    if (type == ORR_NODE_COMP)
        a->row->compute_us = orr__sat_add(a->row->compute_us, duration);
    if (!orr__operators_add(&o->operators, orr_trace_name(a->t, i), duration, a->times))
        return false;
    if (type == ORR_NODE_COMM_COLL)
        return add_collective(a, i);
    if (type == ORR_NODE_COMM_SEND || type == ORR_NODE_COMM_RECV)
        return add_message(a, i);
    return true;
}

/* ---- the graph of a class ---- */

/* The operators of the longest critical path so far. */
static orr_code keep_path(adding *a, const orr__graph *graph, orr_error *err)
{
    orr_info *o = a->g->o;
    orr__operators ops = {.by_name = o->options.by_name};
    bool ok = true;
    for (uint32_t k = 0; ok && k < graph->path_count; k++)
        ok = orr__operators_add(&ops, orr_trace_name(a->t, graph->path[k]),
                                a->c->duration_us[graph->path[k]], 1);
    uint32_t *top =
        ok ? orr__operators_top(&ops, a->g->scratch, false, o->options.top, &o->path_op_count)
           : NULL;
    ok = top && (o->path_ops = orr_arena_new(o->arena, o->path_op_count, orr__operator));
    for (size_t k = 0; ok && k < o->path_op_count; k++) {
        const orr_str name = orr_intern_get(ops.names, top[k]);
        o->path_ops[k] =
            (orr__operator){{orr_arena_text(o->arena, name), name.len}, ops.stats[top[k]]};
        ok = o->path_ops[k].name.ptr != NULL;
    }
    orr__operators_fini(&ops);
    return ok ? ORR_OK : orr_no_memory(err);
}

static orr_code add_path(adding *a, const orr__graph *graph, orr_error *err)
{
    orr_info *o = a->g->o;
    o->critical_ranks += (uint32_t)a->times;
    o->critical_sum_us = orr__sat_add(o->critical_sum_us, orr__sat_mul(graph->length_us, a->times));
    if (o->has_path && graph->length_us <= o->path_us)
        return ORR_OK;
    o->has_path = true;
    o->path_us = graph->length_us;
    o->path_nodes = graph->path_count;
    o->path_rank = a->row->first;
    o->path_rank_us = a->row->duration_us;
    return keep_path(a, graph, err);
}

static orr_code add_graph(adding *a, orr_error *err)
{
    orr_info *o = a->g->o;
    const orr_columns *c = a->c;
    orr__graph graph;
    const orr_code code = orr__graph_measure(c, a->g->scratch, &graph, err);
    if (code)
        return code;
    o->roots += graph.roots * a->times;
    o->leaves += graph.leaves * a->times;
    o->data_deps += c->data_first[c->count] * a->times;
    o->ctrl_deps += (c->ctrl_first ? c->ctrl_first[c->count] : 0) * a->times;
    o->data_missing += c->data_missing * a->times;
    o->ctrl_missing += c->ctrl_missing * a->times;
    o->duplicate_ids += c->duplicate_ids * a->times;
    o->levels = graph.levels > o->levels ? graph.levels : o->levels;
    o->width = graph.width > o->width ? graph.width : o->width;
    a->row->is_cyclic = graph.is_cyclic;
    a->row->critical_us = graph.length_us;
    a->row->critical_nodes = graph.path_count;
    a->row->levels = graph.levels;
    a->row->width = graph.width;
    if (graph.is_cyclic) {
        o->first_cyclic = o->cyclic_ranks ? o->first_cyclic : a->row->first;
        o->cyclic_ranks += (uint32_t)a->times;
    }
    return graph.path_count ? add_path(a, &graph, err) : ORR_OK;
}

static orr_code add_class(gatherer *g, const orr_trace *t, orr__class_row *row, orr_error *err)
{
    adding a = {.g = g, .t = t, .c = orr_trace_columns(t), .row = row, .times = row->count};
    orr_arena_reset(g->scratch);
    const orr_code code = map_groups(g, t, err);
    if (code)
        return code;
    row->nodes = a.c->count;
    g->o->nodes += row->nodes * a.times;
    g->o->schema_ranks[orr_trace_schema(t)] += row->count;
    for (uint32_t i = 0; i < a.c->count; i++)
        if (!add_node(&a, i))
            return orr_no_memory(err);
    return add_graph(&a, err);
}

/* ---- the set ---- */

/* The hashes of the classes, and room for one entry a rank. */
static orr_content_hash *hash_classes(gatherer *g, orr__rank_hash **ranks)
{
    const uint32_t classes = orr_set_class_count(g->set);
    orr_content_hash *hashes = orr_arena_new(g->scratch, classes, orr_content_hash);
    *ranks = orr_arena_new(g->scratch, g->o->ranks, orr__rank_hash);
    if (!hashes || !*ranks)
        return NULL;
    for (uint32_t k = 0; k < classes; k++)
        hashes[k] = orr__info_hash_trace(orr_set_trace(g->set, k));
    return hashes;
}

/* Hash and metadata of what is counted, first rank to last. */
static orr_code describe_inputs(gatherer *g, orr_error *err)
{
    orr_info *o = g->o;
    const orr_trace *head = NULL;
    orr__rank_hash *ranks;
    const orr_content_hash *hashes = hash_classes(g, &ranks);
    if (!hashes)
        return orr_no_memory(err);
    for (uint32_t r = 0; r < o->ranks; r++) {
        const uint32_t k = orr_set_class_of(g->set, r);
        if (k == ORR_NO_NODE || (o->options.one_rank && r != o->options.rank))
            continue;
        const orr_trace *t = orr_set_trace(g->set, k);
        ranks[o->counted_ranks++] = (orr__rank_hash){hashes[k], orr_set_id_shift(g->set, r)};
        if (!head)
            head = t;
        else if (t != head && !o->metadata_differs)
            o->metadata_differs = !orr__info_same_metadata(head, t);
    }
    o->content_hash = orr__info_hash_ranks(ranks, o->counted_ranks);
    return head ? orr__info_metadata(o, head, err) : ORR_OK;
}

/* The ranks of every class, one class behind the other; first[k] is where class k begins. */
static orr_code list_members(const gatherer *g,
                             uint32_t **members_out,
                             uint32_t **first_out,
                             orr_error *err)
{
    const uint32_t classes = orr_set_class_count(g->set);
    uint32_t *members = orr_arena_new(g->scratch, g->o->ranks ? g->o->ranks : 1, uint32_t);
    uint32_t *first = orr_arena_new(g->scratch, (size_t)classes + 2, uint32_t);
    if (!members || !first)
        return orr_no_memory(err);
    for (uint32_t r = 0; r < g->o->ranks; r++)
        if (orr_set_class_of(g->set, r) != ORR_NO_NODE)
            first[orr_set_class_of(g->set, r) + 2]++;
    for (uint32_t k = 0; k < classes; k++)
        first[k + 2] += first[k + 1];
    for (uint32_t r = 0; r < g->o->ranks; r++)
        if (orr_set_class_of(g->set, r) != ORR_NO_NODE)
            members[first[orr_set_class_of(g->set, r) + 1]++] = r;
    *members_out = members;
    *first_out = first;
    return ORR_OK;
}

static orr_code name_rows(gatherer *g, orr_error *err)
{
    orr_info *o = g->o;
    uint32_t *members = NULL, *first = NULL;
    const orr_code code = list_members(g, &members, &first, err);
    if (code)
        return code;
    const uint32_t classes = orr_set_class_count(g->set);
    for (uint32_t k = 0; k < classes; k++) {
        orr__class_row *row = &o->rows[k];
        row->count = first[k + 1] - first[k];
        row->first = row->count ? members[first[k]] : 0;
        if (!(row->ranks = orr__rank_ranges(o->arena, members + first[k], row->count)))
            return orr_no_memory(err);
    }
    o->row_count = classes;
    return ORR_OK;
}

static orr_code name_one_row(gatherer *g, orr_error *err)
{
    orr_info *o = g->o;
    const uint32_t rank = o->options.rank;
    o->rows[0] =
        (orr__class_row){.first = rank, .count = 1, .ranks = orr__rank_ranges(o->arena, &rank, 1)};
    o->row_count = 1;
    return o->rows[0].ranks ? ORR_OK : orr_no_memory(err);
}

static orr_code add_classes(gatherer *g, orr_error *err)
{
    orr_info *o = g->o;
    if (!(o->rows = orr_arena_new(o->arena, (size_t)o->classes + 1, orr__class_row)))
        return orr_no_memory(err);
    orr_code code = o->options.one_rank ? name_one_row(g, err) : name_rows(g, err);
    for (size_t k = 0; !code && k < o->row_count; k++) {
        const uint32_t from =
            o->options.one_rank ? orr_set_class_of(g->set, o->options.rank) : (uint32_t)k;
        if (from != ORR_NO_NODE && o->rows[k].count)
            code = add_class(g, orr_set_trace(g->set, from), &o->rows[k], err);
    }
    return code;
}

/* ---- order of the results ---- */

/* Groups are numbers written as text more often than not: shorter first, then by bytes, orders those. */
static int compare_colls(const void *a, const void *b, void *context)
{
    const orr__coll_row *x = a, *y = b;
    const orr_info *o = context;
    if (x->group == y->group)
        return (x->kind > y->kind) - (x->kind < y->kind);
    if (x->group == ORR_NO_NAME || y->group == ORR_NO_NAME)
        return x->group == ORR_NO_NAME ? -1 : 1;
    const orr_str p = orr_intern_get(o->groups, x->group), q = orr_intern_get(o->groups, y->group);
    if (p.len != q.len)
        return p.len < q.len ? -1 : 1;
    return memcmp(p.ptr, q.ptr, p.len);
}

static int compare_peers(const void *a, const void *b)
{
    const orr__peer_row *x = a, *y = b;
    if (x->size.total != y->size.total)
        return x->size.total > y->size.total ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static bool is_full(uint64_t v)
{
    return v == UINT64_MAX;
}

static void note_saturation(orr_info *o)
{
    bool full = is_full(o->moved_coll) || is_full(o->moved_p2p) || is_full(o->critical_sum_us) ||
                is_full(o->num_ops.total) || is_full(o->path_us);
    for (size_t i = 0; i < 256; i++)
        full |= is_full(o->by_type[i].total) || is_full(o->tensor_size[i].total) ||
                is_full(o->comm_size[i].total);
    o->is_saturated = full;
}

static orr_code order_results(orr_info *o, orr_error *err)
{
    const size_t top = o->options.top;
    if (o->coll_count)
        qsort_r(o->colls, o->coll_count, sizeof *o->colls, compare_colls, o);
    if (o->peer_count)
        qsort(o->peers, o->peer_count, sizeof *o->peers, compare_peers);
    o->by_time = orr__operators_top(&o->operators, o->arena, false, top, &o->by_time_count);
    o->by_count = orr__operators_top(&o->operators, o->arena, true, top, &o->by_count_count);
    note_saturation(o);
    return o->by_time && o->by_count ? ORR_OK : orr_no_memory(err);
}

/* ---- making one ---- */

static orr_code copy_options(orr_info *o, const orr_info_options *opt, orr_error *err)
{
    static const orr_info_options defaults = {0};
    o->options = opt ? *opt : defaults;
    if (o->options.top == 0)
        o->options.top = ORR__TOP_DEFAULT;
    o->operators.by_name = o->options.by_name;
    const char **texts[] = {&o->options.path, &o->options.program};
    for (size_t i = 0; i < 2; i++)
        if (*texts[i] && !(*texts[i] = orr_arena_text(o->arena, orr_str_of(*texts[i]))))
            return orr_no_memory(err);
    return ORR_OK;
}

static orr_code check_rank(const orr_info *o, const orr_set *s, orr_error *err)
{
    if (!o->options.one_rank)
        return ORR_OK;
    if (o->options.rank >= o->ranks)
        return orr_fail(err, ORR_EUSAGE, NULL, "no rank %u: there are %u, counted from 0",
                        o->options.rank, o->ranks);
    if (orr_set_class_of(s, o->options.rank) == ORR_NO_NODE)
        return orr_fail(err, ORR_EINPUT, NULL, "rank %u could not be read", o->options.rank);
    return ORR_OK;
}

static orr_code gather(gatherer *g, orr_error *err)
{
    g->scratch = orr_arena_create();
    g->coll_rows = orr_map_create(64);
    g->peer_keys = orr_intern_create();
    if (!g->scratch || !g->coll_rows || !g->peer_keys)
        return orr_no_memory(err);
    orr_code code = describe_inputs(g, err);
    if (!code)
        code = count_groups(g, err);
    if (!code)
        code = add_classes(g, err);
    return code ? code : order_results(g->o, err);
}

static orr_code start(orr_info *o, const orr_set *s, const orr_info_options *opt, orr_error *err)
{
    o->arena = orr_arena_create();
    o->groups = orr_intern_create();
    if (!o->arena || !o->groups)
        return orr_no_memory(err);
    o->ranks = orr_set_rank_count(s);
    o->classes = orr_set_class_count(s);
    const orr_code code = copy_options(o, opt, err);
    return code ? code : check_rank(o, s, err);
}

orr_code orr_info_create(const orr_set *s,
                         const orr_info_options *opt,
                         orr_info **out,
                         orr_error *err)
{
    *out = NULL;
    orr_info *o = orr_alloc(1, sizeof *o);
    if (!o)
        return orr_no_memory(err);
    orr_code code = start(o, s, opt, err);
    gatherer g = {.o = o, .set = s};
    if (!code)
        code = gather(&g, err);
    orr_arena_destroy(g.scratch);
    orr_map_destroy(g.coll_rows);
    orr_intern_destroy(g.peer_keys);
    orr_free(g.group_ranks);
    if (code) {
        orr_info_destroy(o);
        return code;
    }
    *out = o;
    return ORR_OK;
}

void orr_info_destroy(orr_info *o)
{
    if (!o)
        return;
    orr__operators_fini(&o->operators);
    orr_intern_destroy(o->groups);
    orr_free(o->colls);
    orr_free(o->peers);
    orr_buf_fini(&o->printed);
    orr_arena_destroy(o->arena);
    orr_free(o);
}
