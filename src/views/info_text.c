/* SPDX-License-Identifier: Apache-2.0 */
/* info_text.c - the figures as short tables in 80 columns; absent ones are left out.
 *
 * Each section is one function that prints nothing if it is empty. */
#include "base/formats/json.h"
#include "info_impl.h"
#include "views_impl.h"

#include <string.h>

/* The figures as JSON: one object, docs/format/info.md.
 *
 * Keys are always present; unknown values are null.  Keys name their units.  Counts and sums are
 * integers up to 2^64 - 1; only averages and shares are fractions. */

enum { FORMAT_VERSION = 1 };

typedef orr_json_writer writer;

/* a / b, or null. */
static void put_ratio(writer *w, const char *key, uint64_t a, uint64_t b)
{
    orr_json_put_known_double(w, key, b, (double)a / (double)b);
}

/* A number that may be absent. */
static void begin_object(writer *w, const char *key)
{
    orr_json_put_object(w, key);
}

static void begin_array(writer *w, const char *key)
{
    orr_json_put_array(w, key);
}

static void put_duration(writer *w, const orr__stat *s)
{
    orr_json_put_fields(w, ORR_U("count", s->count), ORR_U("duration_us_total", s->total));
    put_ratio(w, "duration_us_average", s->total, s->count);
    orr_json_put_known(w, "duration_us_max", s->count, s->max);
}

static void put_sizes(writer *w, const orr__stat *s)
{
    orr_json_put_fields(w, ORR_U("with_size", s->count),
                        ORR_KU("size_bytes_min", s->count, s->min));
    put_ratio(w, "size_bytes_average", s->total, s->count);
    orr_json_put_fields(w, ORR_KU("size_bytes_max", s->count, s->max),
                        ORR_U("size_bytes_total", s->total));
}

/* ---- the head ---- */

static void put_provenance(writer *w, const orr_info *o)
{
    char hash[ORR_CONTENT_HASH_ROOM];
    begin_object(w, "provenance");
    orr_json_put_fields(
        w, ORR_T("program", o->options.program), ORR_T("input", o->options.path),
        ORR_T("content_hash_murmur3_128", orr_content_hash_text(o->content_hash, hash)));
    begin_object(w, "options");
    orr_json_put_fields(w, ORR_KU("rank", o->options.one_rank, o->options.rank),
                        ORR_KU("ranks", o->options.job_ranks, o->options.job_ranks),
                        ORR_U("top", o->options.top), ORR_B("by_name", o->options.by_name),
                        ORR_B("per_rank", o->options.per_rank));
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
    orr_json_put_fields(w, ORR_T("format", "orrery-info"), ORR_U("version", FORMAT_VERSION));
    put_provenance(w, o);
    orr_json_put_fields(w, ORR_B("is_saturated", o->is_saturated), ORR_U("ranks", o->ranks),
                        ORR_U("ranks_distinct", o->classes),
                        ORR_U("ranks_counted", o->counted_ranks));
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
        orr_json_put_fields(w, ORR_T("type", orr_node_type_name(i)), ORR_U("type_number", i));
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
    orr_json_put_fields(w, ORR_U("operations_total", o->num_ops.total),
                        ORR_U("nodes_with_operations", o->num_ops.count));
    orr_json_end_object(w);
}

static void put_size_rows(writer *w, const char *attribute, const orr__stat stats[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        if (stats[i].count == 0)
            continue;
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_T("attribute", attribute), ORR_T("type", orr_node_type_name(i)),
                            ORR_U("type_number", i));
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
    orr_json_put_fields(w, ORR_T("type", orr_collective_name(row->kind)),
                        ORR_KU("type_number", row->kind != ORR__NO_KIND, row->kind),
                        ORR_KU("group_ranks", row->ranks, row->ranks), ORR_U("count", row->count));
    put_sizes(w, &row->size);
    put_ratio(w, "size_bytes_per_rank", row->size.total, orr__info_members(o, row));
    orr_json_put_fields(w, ORR_T("moved_formula", orr__moved_formula(row->kind)),
                        ORR_KU("moved_bytes_total", is_known, row->moved));
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
    const uint64_t total = orr_sat_add(o->moved_coll, o->moved_p2p);
    begin_object(w, "moved");
    orr_json_put_fields(w, ORR_B("is_complete", !o->has_unknown_moved),
                        ORR_U("collective_bytes", o->moved_coll),
                        ORR_U("point_to_point_bytes", o->moved_p2p), ORR_U("total_bytes", total));
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
    orr_json_put_fields(
        w, ORR_U("data", o->data_deps), ORR_U("control", o->ctrl_deps),
        ORR_U("data_missing", o->data_missing), ORR_U("control_missing", o->ctrl_missing),
        ORR_U("duplicate_ids", o->duplicate_ids), ORR_U("roots", o->roots),
        ORR_U("leaves", o->leaves), ORR_U("ranks_with_cycle", o->cyclic_ranks),
        ORR_KU("levels_max", o->levels, o->levels), ORR_KU("width_nodes_max", o->width, o->width));
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
    orr_json_put_fields(w, ORR_U("rank", o->path_rank), ORR_U("duration_us", o->path_us),
                        ORR_U("nodes", o->path_nodes), ORR_U("rank_duration_us", o->path_rank_us));
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
        orr_json_put_row(w, ORR_T("ranks", row->ranks), ORR_U("rank_first", row->first),
                         ORR_U("rank_count", row->count), ORR_U("nodes", row->nodes),
                         ORR_U("duration_us", row->duration_us),
                         ORR_U("compute_us", row->compute_us), ORR_U("size_bytes", row->sent_bytes),
                         ORR_KU("moved_bytes", !o->has_unknown_moved, row->moved_bytes),
                         ORR_KU("critical_path_us", !row->is_cyclic, row->critical_us),
                         ORR_KU("critical_path_nodes", !row->is_cyclic, row->critical_nodes),
                         ORR_KU("levels", !row->is_cyclic, row->levels),
                         ORR_KU("width_nodes", !row->is_cyclic, row->width));
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

typedef struct page {
    const orr_info *o;
    orr_buf *to;
    orr_arena *a; /* for cells */
} page;

/* A cell inside a sentence; records running out of memory. */
static const char *said(const page *p, const char *cell)
{
    p->to->failed |= !cell;
    return cell ? cell : "";
}

static const char *count_of(const page *p, uint64_t v)
{
    return said(p, orr__cell_count(p->a, v));
}

static const char *bytes_of(const page *p, uint64_t v)
{
    return said(p, orr__cell_bytes(p->a, v));
}

static const char *average_of(const page *p, uint64_t total, uint64_t count)
{
    return said(p, orr__cell_average(p->a, total, count));
}

static const char *text_of(const page *p, orr_str s)
{
    return said(p, orr__cell_text(p->a, s));
}

static orr__table table_of(const page *p, uint32_t left, const char *const *heads, uint32_t columns)
{
    orr__table t = {.arena = p->a, .columns = columns, .left = left};
    for (uint32_t k = 0; k < columns; k++)
        orr__table_add(&t, heads[k]);
    return t;
}

#define TABLE(p, left, ...)                               \
    table_of(p, left, (const char *const[]){__VA_ARGS__}, \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void title(const page *p, const char *text)
{
    orr_buf_print(p->to, "\n%s\n", text);
}

static const char *type_name(const page *p, uint32_t type)
{
    const char *name = orr_node_type_name(type);
    return name ? name : type == 255 ? "other" : orr_arena_print(p->a, "type %u", type);
}

static const char *kind_name(const page *p, uint32_t kind)
{
    const char *name = orr_collective_name(kind);
    if (kind == ORR__NO_KIND)
        return "(no comm_type)";
    return name ? name : orr_arena_print(p->a, "comm_type %u", kind);
}

/* ---- the head ---- */

static void print_ranks(const page *p)
{
    const orr_info *o = p->o;
    if (o->options.one_rank) {
        orr_buf_print(p->to, "  rank %u of %s, ", o->options.rank, count_of(p, o->ranks));
    } else {
        orr_buf_print(p->to, "  %s rank%s, ", count_of(p, o->ranks), o->ranks == 1 ? "" : "s");
        if (o->ranks != 1)
            orr_buf_print(p->to, "%s distinct, ", count_of(p, o->classes));
    }
    orr_buf_print(p->to, "%s node%s", count_of(p, o->nodes), o->nodes == 1 ? "" : "s");
    if (o->counted_ranks > 1)
        orr_buf_print(p->to, ", %s per rank", average_of(p, o->nodes, o->counted_ranks));
    orr_buf_byte(p->to, '\n');
    if (!o->options.one_rank && o->counted_ranks < o->ranks)
        orr_buf_print(p->to, "  %s of the ranks could not be read and are not counted\n",
                      count_of(p, o->ranks - o->counted_ranks));
}

static void print_schema(const page *p)
{
    const orr_info *o = p->o;
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < ORR_SCHEMA_COUNT; i++)
        kinds += o->schema_ranks[i] != 0;
    orr_buf_text(p->to, "  schema");
    for (uint32_t i = 0; i < ORR_SCHEMA_COUNT; i++) {
        if (o->schema_ranks[i] == 0)
            continue;
        orr_buf_print(p->to, " %s", orr_schema_name((orr_schema)i));
        if (kinds > 1)
            orr_buf_print(p->to, " (%s)", count_of(p, o->schema_ranks[i]));
    }
    if (!o->has_metadata)
        orr_buf_text(p->to, ", no metadata");
    else if (o->meta_version.len)
        orr_buf_print(p->to, ", version %.40s", text_of(p, o->meta_version));
    orr_buf_byte(p->to, '\n');
}

static void print_metadata(const page *p)
{
    const orr_info *o = p->o;
    if (o->meta_count == 0)
        return;
    title(p,
          o->metadata_differs ? "Metadata of the first rank (others have their own)" : "Metadata");
    orr__table t = {.arena = p->a, .columns = 2, .left = 2};
    for (size_t i = 0; i < o->meta_count; i++) {
        orr__table_add(&t, text_of(p, o->meta[i].name));
        orr__table_add(&t, text_of(p, o->meta[i].value));
    }
    orr__table_print(&t, p->to);
}

static void print_head(const page *p)
{
    const orr_info *o = p->o;
    char hash[ORR_CONTENT_HASH_ROOM];
    if (o->options.path)
        orr_buf_print(p->to, "%s\n", text_of(p, orr_str_of(o->options.path)));
    print_ranks(p);
    if (o->counted_ranks)
        print_schema(p);
    orr_buf_print(p->to, "  content %s%s%s\n", orr_content_hash_text(o->content_hash, hash),
                  o->options.program ? ", read by " : "",
                  o->options.program ? o->options.program : "");
    orr_buf_text(
        p->to, "  Times are microseconds (us), as files have them; cycles where a trace was made\n"
               "  from a text file.\n");
    if (o->is_saturated)
        orr_buf_text(p->to, "  Some sums exceed 64 bits; they are shown as the largest number.\n");
    print_metadata(p);
}

/* ---- nodes ---- */

static uint64_t all_time(const orr_info *o)
{
    uint64_t total = 0;
    for (size_t i = 0; i < 256; i++)
        total = orr_sat_add(total, o->by_type[i].total);
    return total;
}

static void duration_row(const page *p, orr__table *t, const char *name, const orr__stat *s)
{
    orr__table_add(t, name);
    orr__table_add(t, count_of(p, s->count));
    orr__table_add(t, orr__cell_share(p->a, s->count, p->o->nodes));
    orr__table_add(t, count_of(p, s->total));
    orr__table_add(t, average_of(p, s->total, s->count));
    orr__table_add(t, count_of(p, s->max));
    orr__table_add(t, orr__cell_bar(p->a, s->count, p->o->nodes));
}

static void print_types(const page *p)
{
    const orr_info *o = p->o;
    if (o->nodes == 0)
        return;
    title(p, "Nodes by type");
    orr__table t = TABLE(p, 1, "", "count", "share", "total us", "average us", "max us", "");
    t.has_bars = true;
    for (uint32_t i = 0; i < 256; i++)
        if (o->by_type[i].count)
            duration_row(p, &t, type_name(p, i), &o->by_type[i]);
    orr__table_print(&t, p->to);
}

static void print_places(const page *p)
{
    static const char *const names[] = {"device", "host (is_cpu_op)", "not said"};
    const orr_info *o = p->o;
    if (o->by_place[0].count == 0 && o->by_place[1].count == 0)
        return;
    title(p, "Host and device");
    orr__table t = TABLE(p, 1, "", "count", "share", "total us", "average us", "max us", "");
    t.has_bars = true;
    for (uint32_t i = 0; i < 3; i++) {
        if (o->by_place[i].count)
            duration_row(p, &t, names[i], &o->by_place[i]);
        if (i == 0 && o->one_sided.count) /* DeepEP, NVSHMEM and similar */
            duration_row(p, &t, "  of it, communication", &o->one_sided);
        if (i == 1 && o->annotations.count)
            duration_row(p, &t, "  of it, no operators", &o->annotations);
    }
    orr__table_print(&t, p->to);
}

static void operator_row(
    const page *p, orr__table *t, orr_str name, const orr__stat *s, uint64_t whole)
{
    orr__table_add(t, name.len ? text_of(p, name) : "(no name)");
    orr__table_add(t, count_of(p, s->count));
    orr__table_add(t, count_of(p, s->total));
    orr__table_add(t, orr__cell_share(p->a, s->total, whole));
    orr__table_add(t, average_of(p, s->total, s->count));
    orr__table_add(t, count_of(p, s->max));
    orr__table_add(t, orr__cell_bar(p->a, s->total, whole));
}

static void operator_table(const page *p, const char *what, const uint32_t *numbers, size_t count)
{
    const orr__operators *ops = &p->o->operators;
    const uint64_t whole = all_time(p->o);
    const uint32_t distinct = orr_intern_count(ops->names);
    orr_buf_print(p->to, "\nOperators by %s", what);
    if (count < distinct)
        orr_buf_print(p->to, ", the first %s of %s", count_of(p, count), count_of(p, distinct));
    orr_buf_byte(p->to, '\n');
    orr__table t = TABLE(p, 1, "", "count", "total us", "of all", "average us", "max us", "");
    t.has_bars = true;
    for (size_t k = 0; k < count; k++)
        operator_row(p, &t, orr_intern_get(ops->names, numbers[k]), &ops->stats[numbers[k]], whole);
    orr__table_print(&t, p->to);
}

/* One table suffices if it has every operator; without times it is sorted by count. */
static void print_operators(const page *p)
{
    const orr_info *o = p->o;
    if (o->nodes == 0)
        return;
    const bool has_time = all_time(o) != 0;
    const bool is_all = o->by_time_count == orr_intern_count(o->operators.names);
    if (has_time)
        operator_table(p, "time", o->by_time, o->by_time_count);
    if (!has_time || !is_all)
        operator_table(p, "count", o->by_count, o->by_count_count);
    if (!o->options.by_name)
        orr_buf_text(p->to, "  (trailing numbers are removed from names; --by-name keeps them)\n");
}

/* ---- sizes and communication ---- */

static void size_rows(const page *p,
                      orr__table *t,
                      const char *attribute,
                      const orr__stat stats[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        const orr__stat *s = &stats[i];
        if (s->count == 0)
            continue;
        orr__table_add(t, attribute);
        orr__table_add(t, type_name(p, i));
        orr__table_add(t, count_of(p, s->count));
        orr__table_add(t, bytes_of(p, s->min));
        orr__table_add(t, bytes_of(p, s->total / s->count));
        orr__table_add(t, bytes_of(p, s->max));
        orr__table_add(t, bytes_of(p, s->total));
    }
}

static void print_sizes(const page *p)
{
    orr__table t = TABLE(p, 2, "", "", "nodes", "min", "average", "max", "total");
    const size_t empty = t.count;
    size_rows(p, &t, "tensor_size", p->o->tensor_size);
    size_rows(p, &t, "comm_size", p->o->comm_size);
    if (t.count > empty) {
        title(p, "Sizes");
        orr__table_print(&t, p->to);
    }
    orr_free(t.cells);
}

static const char *group_name(const page *p, const orr__coll_row *row)
{
    const orr_info *o = p->o;
    return row->group == ORR_NO_NAME ? "-" : text_of(p, orr_intern_get(o->groups, row->group));
}

static void coll_row(const page *p, orr__table *t, const orr__coll_row *row, const char *group)
{
    const orr_info *o = p->o;
    const bool has_size = row->size.count != 0;
    orr__table_add(t, group);
    orr__table_add(t, kind_name(p, row->kind));
    orr__table_add(t, row->ranks ? count_of(p, row->ranks) : "?");
    orr__table_add(t, count_of(p, row->count));
    orr__table_add(t, has_size ? bytes_of(p, row->size.min) : "-");
    orr__table_add(t, has_size ? bytes_of(p, row->size.max) : "-");
    orr__table_add(t, has_size ? bytes_of(p, row->size.total / orr__info_members(o, row)) : "-");
}

/* ---- many groups: equal ones in one row ---- */

enum { COLLS_MOST = 32, ALIKE_MOST = 64 };

static bool is_alike(const orr__coll_row *a, const orr__coll_row *b)
{
    return a->kind == b->kind && a->ranks == b->ranks && a->count == b->count &&
           a->size.min == b->size.min && a->size.max == b->size.max &&
           a->size.total == b->size.total;
}

/* False: too many of them differ. */
static bool print_alike(const page *p)
{
    const orr_info *o = p->o;
    const orr__coll_row *first[ALIKE_MOST];
    uint64_t groups[ALIKE_MOST];
    size_t count = 0;
    for (size_t i = 0; i < o->coll_count; i++) {
        size_t k = 0;
        while (k < count && !is_alike(first[k], &o->colls[i]))
            k++;
        if (k == ALIKE_MOST)
            return false;
        if (k == count) {
            first[count] = &o->colls[i];
            groups[count++] = 0;
        }
        groups[k]++;
    }
    orr_buf_text(p->to, "\nCollectives by group, each group's own count and sizes\n");
    orr__table t = TABLE(p, 2, "groups", "type", "ranks", "count", "min", "max", "bytes per rank");
    for (size_t k = 0; k < count; k++)
        coll_row(p, &t, first[k],
                 groups[k] == 1 ? group_name(p, first[k])
                                : orr_arena_print(p->a, "%s alike", count_of(p, groups[k])));
    orr__table_print(&t, p->to);
    return true;
}

static void print_collectives(const page *p)
{
    const orr_info *o = p->o;
    if (o->coll_count == 0)
        return;
    if (o->coll_count > COLLS_MOST && print_alike(p))
        return;
    title(p, "Collectives by group");
    orr__table t = TABLE(p, 2, "group", "type", "ranks", "count", "min", "max", "bytes per rank");
    for (size_t i = 0; i < o->coll_count; i++)
        coll_row(p, &t, &o->colls[i], group_name(p, &o->colls[i]));
    orr__table_print(&t, p->to);
}

static const char *peer_name(const page *p, int64_t rank)
{
    return rank == ORR_NO_VALUE ? "?" : orr_arena_print(p->a, "%lld", (long long)rank);
}

static void print_pairs(const page *p)
{
    const orr_info *o = p->o;
    const size_t count = o->peer_count < o->options.top ? o->peer_count : o->options.top;
    orr_buf_print(p->to, "\nPeers by bytes");
    if (count < o->peer_count)
        orr_buf_print(p->to, ", the first %s of %s", count_of(p, count),
                      count_of(p, o->peer_count));
    orr_buf_byte(p->to, '\n');
    orr__table t = TABLE(p, 1, "", "from", "to", "count", "min", "max", "bytes");
    for (size_t i = 0; i < count; i++) {
        const orr__peer_row *row = &o->peers[i];
        orr__table_add(&t, row->type == ORR_NODE_COMM_SEND ? "send" : "receive");
        orr__table_add(&t, peer_name(p, row->src));
        orr__table_add(&t, peer_name(p, row->dst));
        orr__table_add(&t, count_of(p, row->count));
        orr__table_add(&t, row->size.count ? bytes_of(p, row->size.min) : "-");
        orr__table_add(&t, row->size.count ? bytes_of(p, row->size.max) : "-");
        orr__table_add(&t, row->size.count ? bytes_of(p, row->size.total) : "-");
    }
    orr__table_print(&t, p->to);
}

static void print_messages(const page *p)
{
    const orr_info *o = p->o;
    if (o->peer_count == 0)
        return;
    title(p, "Point to point");
    orr__table t = TABLE(p, 1, "", "count", "min", "average", "max", "bytes");
    for (uint32_t k = 0; k < 2; k++) {
        const orr__stat *s = &o->p2p[k];
        if (o->p2p_nodes[k] == 0)
            continue;
        orr__table_add(&t, k == 0 ? "send" : "receive");
        orr__table_add(&t, count_of(p, o->p2p_nodes[k]));
        orr__table_add(&t, s->count ? bytes_of(p, s->min) : "-");
        orr__table_add(&t, s->count ? bytes_of(p, s->total / s->count) : "-");
        orr__table_add(&t, s->count ? bytes_of(p, s->max) : "-");
        orr__table_add(&t, s->count ? bytes_of(p, s->total) : "-");
    }
    orr__table_print(&t, p->to);
    print_pairs(p);
}

static void moved_row(
    const page *p, orr__table *t, const char *name, const char *formula, uint64_t moved)
{
    orr__table_add(t, name);
    orr__table_add(t, formula);
    orr__table_add(t, bytes_of(p, moved / p->o->counted_ranks));
    orr__table_add(t, bytes_of(p, moved));
}

static void moved_rows(const page *p, orr__table *t)
{
    const orr_info *o = p->o;
    for (uint32_t kind = 0; kind < ORR_COLL_COUNT; kind++) {
        bool is_there = false;
        uint64_t moved = 0;
        for (size_t i = 0; i < o->coll_count; i++) {
            if (o->colls[i].kind != kind || o->colls[i].ranks == 0)
                continue;
            is_there = true;
            moved = orr_sat_add(moved, o->colls[i].moved);
        }
        if (is_there)
            moved_row(p, t, kind_name(p, kind), orr__moved_formula(kind), moved);
    }
    if (o->p2p_nodes[0])
        moved_row(p, t, "send", "size", o->moved_p2p);
}

static void print_moved(const page *p)
{
    const orr_info *o = p->o;
    if (o->coll_count == 0 && o->p2p_nodes[0] == 0)
        return;
    title(p, "Bytes moved, estimated (n: ranks of the group)");
    orr__table t = TABLE(p, 2, "", "each rank sends", "per rank", "all ranks");
    const size_t empty = t.count;
    moved_rows(p, &t);
    if (t.count > empty)
        moved_row(p, &t, "all", "", orr_sat_add(o->moved_coll, o->moved_p2p));
    if (t.count > empty)
        orr__table_print(&t, p->to);
    orr_free(t.cells);
    if (o->has_unknown_moved && o->ranks == 1 && o->options.job_ranks == 0)
        orr_buf_text(
            p->to,
            "  collectives are not estimated: this is one rank; --ranks N gives the number of "
            "ranks\n");
    else if (o->has_unknown_moved)
        orr_buf_text(p->to, "  collectives of an unknown type are not in these sums\n");
}

/* ---- the graph ---- */

static void print_dependencies(const page *p)
{
    const orr_info *o = p->o;
    if (o->nodes == 0)
        return;
    title(p, "Dependencies");
    orr__table t = {.arena = p->a, .columns = 3, .left = 3};
    const uint64_t figures[][2] = {{o->data_deps, o->data_missing},
                                   {o->ctrl_deps, o->ctrl_missing}};
    for (uint32_t k = 0; k < 2; k++) {
        orr__table_add(&t, k == 0 ? "data" : "control");
        orr__table_add(&t, count_of(p, figures[k][0]));
        orr__table_add(&t, figures[k][1] == 0 ? ""
                                              : orr_arena_print(p->a, "%s of them on missing nodes",
                                                                count_of(p, figures[k][1])));
    }
    orr__table_add(&t, "roots");
    orr__table_add(&t, count_of(p, o->roots));
    orr__table_add(&t, "nodes without parents");
    orr__table_add(&t, "leaves");
    orr__table_add(&t, count_of(p, o->leaves));
    orr__table_add(&t, "nodes without children");
    if (o->levels) {
        orr__table_add(&t, "levels");
        orr__table_add(&t, count_of(p, o->levels));
        orr__table_add(&t, "longest chain per rank, nodes");
        orr__table_add(&t, "width");
        orr__table_add(&t, count_of(p, o->width));
        orr__table_add(&t, "widest level per rank, nodes");
    }
    if (o->duplicate_ids) {
        orr__table_add(&t, "same id");
        orr__table_add(&t, count_of(p, o->duplicate_ids));
        orr__table_add(&t, "nodes with the id of an earlier one");
    }
    orr__table_print(&t, p->to);
}

static void print_cycles(const page *p)
{
    const orr_info *o = p->o;
    if (o->cyclic_ranks == 0)
        return;
    orr_buf_text(p->to, "  no critical path: dependencies form a cycle");
    if (o->counted_ranks > 1)
        orr_buf_print(p->to, " (%s rank%s, the first is %u)", count_of(p, o->cyclic_ranks),
                      o->cyclic_ranks == 1 ? "" : "s", o->first_cyclic);
    orr_buf_text(p->to, "\n  (orrery check shows it)\n");
}

static void print_longest(const page *p)
{
    const orr_info *o = p->o;
    orr_buf_print(p->to, "  %s us in %s node%s", count_of(p, o->path_us),
                  count_of(p, o->path_nodes), o->path_nodes == 1 ? "" : "s");
    if (o->counted_ranks > 1)
        orr_buf_print(p->to, ", rank %u; %s us on average", o->path_rank,
                      average_of(p, o->critical_sum_us, o->critical_ranks));
    orr_buf_print(p->to, "\n  all nodes of that rank: %s us, %s times as much (parallelism)\n",
                  count_of(p, o->path_rank_us), average_of(p, o->path_rank_us, o->path_us));
    orr__table t = TABLE(p, 1, "", "count", "total us", "of path", "average us", "max us", "");
    t.has_bars = true;
    for (size_t k = 0; k < o->path_op_count; k++)
        operator_row(p, &t, o->path_ops[k].name, &o->path_ops[k].duration_us, o->path_us);
    orr__table_print(&t, p->to);
}

static void print_path(const page *p)
{
    const orr_info *o = p->o;
    if (o->nodes == 0)
        return;
    title(p, "Critical path (longest chain in time, without waits for other ranks)");
    print_cycles(p);
    if (o->has_path && o->path_us == 0)
        orr_buf_text(p->to, "  the trace has no durations, so no critical path\n");
    else if (o->has_path)
        print_longest(p);
}

static void print_compute(const page *p)
{
    const orr_info *o = p->o;
    const orr__stat *s = &o->by_type[ORR_NODE_COMP];
    if (s->count == 0)
        return;
    title(p, "Compute");
    orr_buf_print(p->to, "  %s us in total, %s us per rank, %s us per node\n",
                  count_of(p, s->total), average_of(p, s->total, o->counted_ranks),
                  average_of(p, s->total, s->count));
    if (o->num_ops.count)
        orr_buf_print(p->to, "  %s operations (num_ops of %s nodes)\n",
                      count_of(p, o->num_ops.total), count_of(p, o->num_ops.count));
}

static void print_per_rank(const page *p)
{
    const orr_info *o = p->o;
    if (!o->options.per_rank || o->row_count == 0)
        return;
    title(p, "Ranks (identical ones share a row; a-b/s: every s-th)");
    orr__table t =
        TABLE(p, 1, "ranks", "nodes", "total us", "compute us", "critical us", "bytes", "moved");
    for (size_t i = 0; i < o->row_count; i++) {
        const orr__class_row *row = &o->rows[i];
        orr__table_add(&t, row->ranks);
        orr__table_add(&t, count_of(p, row->nodes));
        orr__table_add(&t, count_of(p, row->duration_us));
        orr__table_add(&t, count_of(p, row->compute_us));
        orr__table_add(&t, row->is_cyclic ? "cycle" : count_of(p, row->critical_us));
        orr__table_add(&t, bytes_of(p, row->sent_bytes));
        orr__table_add(&t, o->has_unknown_moved ? "?" : bytes_of(p, row->moved_bytes));
    }
    orr__table_print(&t, p->to);
}

orr_code orr_info_text(orr_info *info, orr_str *out, orr_error *err)
{
    info->printed.len = 0;
    const page p = {.o = info, .to = &info->printed, .a = orr_arena_create()};
    if (!p.a)
        return orr_no_memory(err);
    print_head(&p);
    print_types(&p);
    print_places(&p);
    print_operators(&p);
    print_compute(&p);
    print_sizes(&p);
    print_collectives(&p);
    print_messages(&p);
    print_moved(&p);
    print_dependencies(&p);
    print_path(&p);
    print_per_rank(&p);
    orr_arena_destroy(p.a);
    *out = (orr_str){(const char *)info->printed.ptr, info->printed.len};
    return info->printed.failed ? orr_no_memory(err) : ORR_OK;
}
