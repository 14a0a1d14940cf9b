/* SPDX-License-Identifier: Apache-2.0 */
/* info_json.c - the figures for programs: one object, docs/format/info.md.
 *
 * Keys are always there; what is not known is null.  Units stand in the names of keys.  Counts and
 * sums are whole numbers up to 2^64 - 1 and are written as such; averages and shares are the only
 * fractions. */
#include "info_impl.h"

#include "base/formats/json.h"

enum { FORMAT_VERSION = 1 };

typedef orr_json_writer writer;

/* a / b, or null. */
static void put_ratio(writer *w, const char *key, uint64_t a, uint64_t b)
{
    orr_json_key(w, key);
    if (b)
        orr_json_double(w, (double)a / (double)b);
    else
        orr_json_null(w);
}

/* A number that may be absent. */
static void put_maybe(writer *w, const char *key, bool has, uint64_t v)
{
    orr_json_key(w, key);
    if (has)
        orr_json_u64(w, v);
    else
        orr_json_null(w);
}

static void begin_object(writer *w, const char *key)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
}

static void begin_array(writer *w, const char *key)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
}

static void put_duration(writer *w, const orr__stat *s)
{
    orr_json_put_u64(w, "count", s->count);
    orr_json_put_u64(w, "duration_us_total", s->total);
    put_ratio(w, "duration_us_average", s->total, s->count);
    put_maybe(w, "duration_us_max", s->count, s->max);
}

static void put_sizes(writer *w, const orr__stat *s)
{
    orr_json_put_u64(w, "with_size", s->count);
    put_maybe(w, "size_bytes_min", s->count, s->min);
    put_ratio(w, "size_bytes_average", s->total, s->count);
    put_maybe(w, "size_bytes_max", s->count, s->max);
    orr_json_put_u64(w, "size_bytes_total", s->total);
}

/* ---- the head ---- */

static void put_provenance(writer *w, const orr_info *o)
{
    char hash[ORR_CONTENT_HASH_ROOM];
    begin_object(w, "provenance");
    orr_json_put_text(w, "program", o->options.program);
    orr_json_put_text(w, "input", o->options.path);
    orr_json_put_text(w, "content_hash_murmur3_128", orr_content_hash_text(o->content_hash, hash));
    begin_object(w, "options");
    put_maybe(w, "rank", o->options.one_rank, o->options.rank);
    put_maybe(w, "ranks", o->options.job_ranks, o->options.job_ranks);
    orr_json_put_u64(w, "top", o->options.top);
    orr_json_put_bool(w, "by_name", o->options.by_name);
    orr_json_put_bool(w, "per_rank", o->options.per_rank);
    orr_json_end_object(w);
    orr_json_end_object(w);
}

static void put_metadata(writer *w, const orr_info *o)
{
    orr_json_key(w, "metadata");
    if (!o->has_metadata) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_key(w, "version");
    orr_json_str(w, o->meta_version);
    orr_json_put_bool(w, "differs_between_ranks", o->metadata_differs);
    begin_array(w, "attributes");
    for (size_t i = 0; i < o->meta_count; i++) {
        orr_json_begin_object(w);
        orr_json_key(w, "name");
        orr_json_str(w, o->meta[i].name);
        orr_json_put_text(w, "member", o->meta[i].member);
        orr_json_key(w, "value");
        orr_json_raw_text(w, o->meta[i].value);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_head(writer *w, const orr_info *o)
{
    orr_json_put_text(w, "format", "orrery-info");
    orr_json_put_u64(w, "version", FORMAT_VERSION);
    put_provenance(w, o);
    orr_json_put_bool(w, "is_saturated", o->is_saturated);
    orr_json_put_u64(w, "ranks", o->ranks);
    orr_json_put_u64(w, "ranks_distinct", o->classes);
    orr_json_put_u64(w, "ranks_counted", o->counted_ranks);
    begin_object(w, "schemas");
    for (uint32_t i = 0; i < ORR_SCHEMA_COUNT; i++)
        if (o->schema_ranks[i])
            orr_json_put_u64(w, orr_schema_name((orr_schema)i), o->schema_ranks[i]);
    orr_json_end_object(w);
    put_metadata(w, o);
}

/* ---- nodes ---- */

static void put_types(writer *w, const orr_info *o)
{
    orr_json_put_u64(w, "nodes", o->nodes);
    begin_array(w, "nodes_by_type");
    for (uint32_t i = 0; i < 256; i++) {
        if (o->by_type[i].count == 0)
            continue;
        orr_json_begin_object(w);
        orr_json_put_text(w, "type", orr_node_type_name(i));
        orr_json_put_u64(w, "type_number", i);
        put_duration(w, &o->by_type[i]);
        put_ratio(w, "share_of_nodes", o->by_type[i].count, o->nodes);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    static const char *const places[] = {"device", "host", "not_said"};
    begin_object(w, "nodes_by_place");
    for (uint32_t i = 0; i < 3; i++) {
        begin_object(w, places[i]);
        put_duration(w, &o->by_place[i]);
        orr_json_end_object(w);
    }
    orr_json_end_object(w);
    begin_object(w, "annotations");
    put_duration(w, &o->annotations);
    orr_json_end_object(w);
    begin_object(w, "one_sided_kernels");
    put_duration(w, &o->one_sided);
    orr_json_end_object(w);
}

static void put_operator(writer *w, orr_str name, const orr__stat *s)
{
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, name);
    put_duration(w, s);
    orr_json_end_object(w);
}

static void put_operator_list(
    writer *w, const char *key, const orr__operators *ops, const uint32_t *numbers, size_t n)
{
    begin_array(w, key);
    for (size_t k = 0; k < n; k++)
        put_operator(w, orr_intern_get(ops->names, numbers[k]), &ops->stats[numbers[k]]);
    orr_json_end_array(w);
}

static void put_operators(writer *w, const orr_info *o)
{
    begin_object(w, "operators");
    orr_json_put_u64(w, "distinct", o->operators.names ? orr_intern_count(o->operators.names) : 0);
    put_operator_list(w, "by_duration", &o->operators, o->by_time, o->by_time_count);
    put_operator_list(w, "by_count", &o->operators, o->by_count, o->by_count_count);
    orr_json_end_object(w);
}

static void put_compute(writer *w, const orr_info *o)
{
    const orr__stat *s = &o->by_type[ORR_NODE_COMP];
    begin_object(w, "compute");
    put_duration(w, s);
    put_ratio(w, "duration_us_per_rank", s->total, o->counted_ranks);
    orr_json_put_u64(w, "operations_total", o->num_ops.total);
    orr_json_put_u64(w, "nodes_with_operations", o->num_ops.count);
    orr_json_end_object(w);
}

static void put_size_rows(writer *w, const char *attribute, const orr__stat stats[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        if (stats[i].count == 0)
            continue;
        orr_json_begin_object(w);
        orr_json_put_text(w, "attribute", attribute);
        orr_json_put_text(w, "type", orr_node_type_name(i));
        orr_json_put_u64(w, "type_number", i);
        put_sizes(w, &stats[i]);
        orr_json_end_object(w);
    }
}

/* ---- communication ---- */

static void put_collective(writer *w, const orr_info *o, const orr__coll_row *row)
{
    const bool is_known = row->ranks && orr__moved_formula(row->kind);
    orr_json_begin_object(w);
    orr_json_key(w, "group");
    if (row->group == ORR_NO_NAME)
        orr_json_null(w);
    else
        orr_json_str(w, orr_intern_get(o->groups, row->group));
    orr_json_put_text(w, "type", orr_collective_name(row->kind));
    put_maybe(w, "type_number", row->kind != ORR__NO_KIND, row->kind);
    put_maybe(w, "group_ranks", row->ranks, row->ranks);
    orr_json_put_u64(w, "count", row->count);
    put_sizes(w, &row->size);
    put_ratio(w, "size_bytes_per_rank", row->size.total, orr__info_members(o, row));
    orr_json_put_text(w, "moved_formula", orr__moved_formula(row->kind));
    put_maybe(w, "moved_bytes_total", is_known, row->moved);
    orr_json_end_object(w);
}

static void put_rank(writer *w, const char *key, int64_t rank)
{
    orr_json_key(w, key);
    if (rank == ORR_NO_VALUE)
        orr_json_null(w);
    else
        orr_json_i64(w, rank);
}

static void put_peers(writer *w, const orr_info *o)
{
    const size_t count = o->peer_count < o->options.top ? o->peer_count : o->options.top;
    orr_json_put_u64(w, "peers_distinct", o->peer_count);
    begin_array(w, "peers_by_bytes");
    for (size_t i = 0; i < count; i++) {
        const orr__peer_row *row = &o->peers[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "direction", row->type == ORR_NODE_COMM_SEND ? "send" : "receive");
        put_rank(w, "from_rank", row->src);
        put_rank(w, "to_rank", row->dst);
        orr_json_put_u64(w, "count", row->count);
        put_sizes(w, &row->size);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_messages(writer *w, const orr_info *o)
{
    begin_object(w, "point_to_point");
    for (uint32_t k = 0; k < 2; k++) {
        begin_object(w, k == 0 ? "send" : "receive");
        orr_json_put_u64(w, "count", o->p2p_nodes[k]);
        put_sizes(w, &o->p2p[k]);
        orr_json_end_object(w);
    }
    put_peers(w, o);
    orr_json_end_object(w);
}

static void put_moved(writer *w, const orr_info *o)
{
    const uint64_t total = orr__sat_add(o->moved_coll, o->moved_p2p);
    begin_object(w, "moved");
    orr_json_put_bool(w, "is_complete", !o->has_unknown_moved);
    orr_json_put_u64(w, "collective_bytes", o->moved_coll);
    orr_json_put_u64(w, "point_to_point_bytes", o->moved_p2p);
    orr_json_put_u64(w, "total_bytes", total);
    put_ratio(w, "per_rank_bytes", total, o->counted_ranks);
    orr_json_end_object(w);
}

static void put_communication(writer *w, const orr_info *o)
{
    begin_array(w, "sizes");
    put_size_rows(w, "tensor_size", o->tensor_size);
    put_size_rows(w, "comm_size", o->comm_size);
    orr_json_end_array(w);
    begin_array(w, "collectives");
    for (size_t i = 0; i < o->coll_count; i++)
        put_collective(w, o, &o->colls[i]);
    orr_json_end_array(w);
    put_messages(w, o);
    put_moved(w, o);
}

/* ---- the graph ---- */

static void put_dependencies(writer *w, const orr_info *o)
{
    begin_object(w, "dependencies");
    orr_json_put_u64(w, "data", o->data_deps);
    orr_json_put_u64(w, "control", o->ctrl_deps);
    orr_json_put_u64(w, "data_missing", o->data_missing);
    orr_json_put_u64(w, "control_missing", o->ctrl_missing);
    orr_json_put_u64(w, "duplicate_ids", o->duplicate_ids);
    orr_json_put_u64(w, "roots", o->roots);
    orr_json_put_u64(w, "leaves", o->leaves);
    orr_json_put_u64(w, "ranks_with_cycle", o->cyclic_ranks);
    put_maybe(w, "levels_max", o->levels, o->levels);
    put_maybe(w, "width_nodes_max", o->width, o->width);
    orr_json_end_object(w);
}

static void put_path(writer *w, const orr_info *o)
{
    orr_json_key(w, "critical_path");
    if (!o->has_path) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_put_u64(w, "rank", o->path_rank);
    orr_json_put_u64(w, "duration_us", o->path_us);
    orr_json_put_u64(w, "nodes", o->path_nodes);
    orr_json_put_u64(w, "rank_duration_us", o->path_rank_us);
    put_ratio(w, "parallelism", o->path_rank_us, o->path_us);
    put_ratio(w, "duration_us_average", o->critical_sum_us, o->critical_ranks);
    begin_array(w, "operators");
    for (size_t k = 0; k < o->path_op_count; k++)
        put_operator(w, o->path_ops[k].name, &o->path_ops[k].duration_us);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_per_rank(writer *w, const orr_info *o)
{
    if (!o->options.per_rank)
        return;
    begin_array(w, "per_rank");
    for (size_t i = 0; i < o->row_count; i++) {
        const orr__class_row *row = &o->rows[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "ranks", row->ranks);
        orr_json_put_u64(w, "rank_first", row->first);
        orr_json_put_u64(w, "rank_count", row->count);
        orr_json_put_u64(w, "nodes", row->nodes);
        orr_json_put_u64(w, "duration_us", row->duration_us);
        orr_json_put_u64(w, "compute_us", row->compute_us);
        orr_json_put_u64(w, "size_bytes", row->sent_bytes);
        put_maybe(w, "moved_bytes", !o->has_unknown_moved, row->moved_bytes);
        put_maybe(w, "critical_path_us", !row->is_cyclic, row->critical_us);
        put_maybe(w, "critical_path_nodes", !row->is_cyclic, row->critical_nodes);
        put_maybe(w, "levels", !row->is_cyclic, row->levels);
        put_maybe(w, "width_nodes", !row->is_cyclic, row->width);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

orr_code orr_info_json(orr_info *info, orr_str *out, orr_error *err)
{
    static const orr_json_style style = {.indent = 2};
    writer w;
    info->printed.len = 0;
    orr_json_writer_init(&w, &info->printed, &style);
    orr_json_begin_object(&w);
    put_head(&w, info);
    put_types(&w, info);
    put_operators(&w, info);
    put_compute(&w, info);
    put_communication(&w, info);
    put_dependencies(&w, info);
    put_path(&w, info);
    put_per_rank(&w, info);
    orr_json_end_object(&w);
    orr_buf_byte(&info->printed, '\n');
    *out = (orr_str){(const char *)info->printed.ptr, info->printed.len};
    return info->printed.failed ? orr_no_memory(err) : ORR_OK;
}
