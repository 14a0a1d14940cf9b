/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - a trace in memory: records plus columns.
 *
 *     bytes    | meta | record 0 | record 1 | ...          as in the file, current schema
 *     body_at         ^          ^
 *     id, type, duration, known attributes                  one entry per node
 *     data_first  0 2 3 ...   data_dep  [.. indices ..]      CSR
 *
 * Indexing a record decodes it once and appends one entry to each column.  Dependencies are ids in
 * a file and indices here.  Nearly every trace numbers its nodes without gaps, so while that holds
 * a dependency is converted to an index at once by subtracting a constant; otherwise seal resolves
 * all of them through a hash map.  Cost: O(nodes + dependencies), one pass. */
#include "trace_impl.h"

#include "base/inline.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

#include <stdlib.h>

orr_code orr__trace_new(const char *path, orr_trace **out, orr_error *err)
{
    orr_trace *t = orr_alloc(1, sizeof *t);
    *out = t;
    if (!t)
        return orr_no_memory(err);
    t->path = orr_alloc(strlen(path) + 1, 1);
    t->texts = orr_intern_create();
    if (!t->path || !t->texts) {
        orr_trace_destroy(t);
        *out = NULL;
        return orr_no_memory(err);
    }
    memcpy(t->path, path, strlen(path) + 1);
    t->schema = ORR_SCHEMA_CURRENT;
    t->is_dense = true;
    return ORR_OK;
}

void orr_trace_destroy(orr_trace *t)
{
    if (!t)
        return;
    orr_input_close(t->source);
    orr_buf_fini(&t->owned);
    orr__scan_fini(&t->scan);
    void *const columns[] = {t->id,      t->body_at,  t->duration,   t->start,      t->origin,
                             t->type,    t->data_dep, t->ctrl_dep,   t->is_cpu_op,  t->comm_type,
                             t->pg_name, t->by_id,    t->data_first, t->ctrl_first, t->path};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        orr_free(columns[i]);
    for (size_t k = 0; k < ORR__WIDE_COLUMNS; k++)
        orr_free(t->wide[k]);
    orr_intern_destroy(t->texts);
    orr_free(t);
}

/* ---- columns ---- */

/* All columns share one capacity, so that adding a node checks one number.  An optional column
 * exists once it is in `active`; it starts with "none" for all earlier nodes. */
static bool resize(void *column, size_t old, size_t room, size_t size)
{
    void **p = column;
    return orr_grow_bytes(p, &old, room, size);
}

static bool widen_columns(orr_trace *t, size_t room)
{
    const size_t old = t->room;
    bool ok = resize(&t->id, old, room, 8) && resize(&t->body_at, old, room, 8) &&
              resize(&t->duration, old, room, 8) && resize(&t->type, old, room, 1) &&
              resize(&t->data_first, old ? old + 1 : 0, room + 1, 4);
    if (ok && t->start)
        ok = resize(&t->start, old, room, 8);
    if (ok && t->origin)
        ok = resize(&t->origin, old, room, 8);
    if (ok && t->ctrl_first)
        ok = resize(&t->ctrl_first, old + 1, room + 1, 4);
    for (unsigned k = 0; ok && k < ORR__WIDE_COLUMNS; k++)
        if (t->active >> k & 1)
            ok = resize(&t->wide[k], old, room, 8);
    if (ok && t->is_cpu_op)
        ok = resize(&t->is_cpu_op, old, room, 1);
    if (ok && t->comm_type)
        ok = resize(&t->comm_type, old, room, 1);
    if (ok && t->pg_name)
        ok = resize(&t->pg_name, old, room, 4);
    if (ok)
        t->room = room;
    return ok;
}

static bool grow_columns(orr_trace *t)
{
    return widen_columns(t, t->room + t->room / 2 + 64);
}

static bool activate(orr_trace *t, unsigned key)
{
    if (key < ORR__WIDE_COLUMNS) {
        if (!resize(&t->wide[key], 0, t->room, 8))
            return false;
        for (size_t i = 0; i < t->count; i++)
            t->wide[key][i] = ORR_NO_VALUE;
    } else if (key == ORR__ATTR_PG_NAME) {
        if (!resize(&t->pg_name, 0, t->room, 4))
            return false;
        memset(t->pg_name, 0xff, t->count * 4); /* ORR_NO_NAME */
    } else {
        int8_t **column = key == ORR__ATTR_IS_CPU_OP ? &t->is_cpu_op : &t->comm_type;
        if (!resize(column, 0, t->room, 1))
            return false;
        memset(*column, 0xff, t->count); /* -1 */
    }
    t->active |= 1u << key;
    return true;
}

static int8_t small_value(const orr__scan *s, unsigned key, int64_t most)
{
    if (!(s->present >> key & 1))
        return -1;
    const int64_t v = s->known[key];
    return (int8_t)(v < 0 || v > most ? most : v);
}

static bool store_known(orr_trace *t, size_t n)
{
    const orr__scan *s = &t->scan;
    for (uint32_t fresh = s->present & ~t->active; fresh; fresh &= fresh - 1)
        if (!activate(t, (unsigned)__builtin_ctz(fresh)))
            return false;
    for (uint32_t keys = t->active & ((1u << ORR__WIDE_COLUMNS) - 1); keys; keys &= keys - 1) {
        const unsigned k = (unsigned)__builtin_ctz(keys);
        t->wide[k][n] = s->present >> k & 1 ? s->known[k] : ORR_NO_VALUE;
    }
    if (t->is_cpu_op)
        t->is_cpu_op[n] = small_value(s, ORR__ATTR_IS_CPU_OP, 1);
    if (t->comm_type)
        t->comm_type[n] = small_value(s, ORR__ATTR_COMM_TYPE, 127);
    if (t->pg_name) {
        t->pg_name[n] = ORR_NO_NAME;
        if (s->present >> ORR__ATTR_PG_NAME & 1 &&
            !orr_intern_add(t->texts, s->pg_name, &t->pg_name[n]))
            return false;
    }
    return true;
}

static bool store_start(orr_trace *t, size_t n)
{
    const uint64_t start = t->scan.node.start_us;
    if (!t->start) {
        if (start == 0)
            return true;
        if (!resize(&t->start, 0, t->room, 8))
            return false;
        memset(t->start, 0, n * 8);
    }
    t->start[n] = start;
    return true;
}

/* While ids are dense a dependency is stored as id - id[0], its index if such a node follows. */
static bool store_deps(
    orr_trace *t, const uint64_t *ids, size_t n, uint32_t **deps, size_t *count, size_t *room)
{
    if (*count + n > UINT32_MAX || !orr_grow(deps, room, *count + n))
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint64_t rel = ids[i] - t->id[0];
        if (rel >= ORR_NO_NODE)
            t->is_dense = false;
        (*deps)[*count + i] = (uint32_t)rel;
    }
    *count += n;
    return true;
}

static bool store_ctrl(orr_trace *t, size_t n)
{
    if (!t->ctrl_first) {
        if (t->scan.ctrl_count == 0)
            return true;
        if (!resize(&t->ctrl_first, 0, t->room + 1, 4))
            return false;
        memset(t->ctrl_first, 0, n * 4);
    }
    t->ctrl_first[n] = (uint32_t)t->ctrl_count;
    return store_deps(t, t->scan.ctrl, t->scan.ctrl_count, &t->ctrl_dep, &t->ctrl_count,
                      &t->ctrl_room);
}

static bool store_origin(orr_trace *t, size_t n, uint64_t origin)
{
    if (!t->is_transcoded)
        return true;
    if (!t->origin && !resize(&t->origin, 0, t->room, 8))
        return false;
    t->origin[n] = origin;
    return true;
}

static bool store_node(orr_trace *t, uint64_t record, uint64_t origin)
{
    const orr_node *node = &t->scan.node;
    const size_t n = t->count;
    if (n == t->room && !grow_columns(t))
        return false;
    t->id[n] = node->id;
    t->body_at[n] = record;
    t->duration[n] = node->duration_us;
    t->type[n] = node->type > 254 ? 255 : (uint8_t)node->type;
    if (node->id - t->id[0] != n || node->id < t->id[0])
        t->is_dense = false;
    const size_t data_before = t->data_count, ctrl_before = t->ctrl_count;
    t->data_first[n] = (uint32_t)data_before;
    if (!store_deps(t, t->scan.data, t->scan.data_count, &t->data_dep, &t->data_count,
                    &t->data_room) ||
        !store_ctrl(t, n) || !store_start(t, n) || !store_known(t, n) ||
        !store_origin(t, n, origin)) {
        t->data_count = data_before; /* restore the trace */
        t->ctrl_count = ctrl_before;
        return false;
    }
    t->count = n + 1;
    return true;
}

static orr_span record_body(const uint8_t *record)
{
    orr_wire w = {record, record + 10, NULL};
    uint64_t len = 0;
    orr_wire_varint(&w, &len);
    return (orr_span){w.at, (size_t)len};
}

static const uint8_t *bytes_at(const orr_trace *t, uint64_t at)
{
    return (t->owned.ptr ? t->owned.ptr : t->bytes.ptr) + at;
}

static orr_code check_room(const orr_trace *t, uint64_t record, orr_error *err)
{
    if (t->count < ORR_NO_NODE - 1)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(t->path, record)),
                    "more than 4,294,967,294 nodes in one trace");
}

orr_code orr__trace_index(orr_trace *t, uint64_t record, uint64_t origin, orr_error *err)
{
    orr_wire w = {bytes_at(t, record), NULL, NULL};
    w.end = t->owned.ptr ? t->owned.ptr + t->owned.len : t->bytes.ptr + t->bytes.len;
    orr_span body;
    orr__scan *s = &t->scan;
    const orr_code code = check_room(t, record, err);
    if (code)
        return code;
    if (!orr_wire_bytes(&w, &body) || !orr__scan_node(s, body)) {
        if (!w.why && !s->why)
            return orr_no_memory(err);
        const uint8_t *bad = w.why ? w.at : s->bad;
        const uint64_t byte =
            t->is_transcoded ? origin : t->source_at + (uint64_t)(bad - bytes_at(t, 0));
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(t->path, byte)),
                        "node %zu of the file: %s", t->count, w.why ? w.why : s->why);
    }
    t->repeats_names |= s->repeats_name;
    return store_node(t, record, origin) ? ORR_OK : orr_no_memory(err);
}

/* ---- making a trace ---- */

static orr_code set_meta(orr_trace *t, const orr_meta *meta, orr_error *err)
{
    const size_t begin = orr_put_begin(&t->owned);
    orr__encode_meta(&t->owned, meta);
    orr_put_end(&t->owned, begin);
    t->has_metadata = true;
    return t->owned.failed ? orr_no_memory(err) : ORR_OK;
}

orr_code orr__trace_create(const char *name, const orr_meta *meta, orr_trace **out, orr_error *err)
{
    orr_code code = orr__trace_new(name, out, err);
    if (code || !meta)
        return code;
    code = set_meta(*out, meta, err);
    if (code) {
        orr_trace_destroy(*out);
        *out = NULL;
    }
    return code;
}

orr_code orr_trace_create(const orr_meta *meta, orr_trace **out, orr_error *err)
{
    return orr__trace_create("(new trace)", meta, out, err);
}

/* Puts the length in front of the fields written since begin. */
static orr_code end_body(orr_trace *t, size_t begin, uint64_t origin, orr_error *err)
{
    if (t->owned.len == begin && !t->owned.failed) {
        const orr_where at = orr_where_byte(t->path, origin);
        return orr_fail(err, t->is_transcoded ? ORR_EINPUT : ORR_EUSAGE, &at,
                        "node %zu is empty: a node has at least an id, a name or a type", t->count);
    }
    orr_put_end(&t->owned, begin);
    return t->owned.failed ? orr_no_memory(err) : ORR_OK;
}

orr_code orr__trace_expect(orr_trace *t, size_t nodes, size_t bytes, orr_error *err)
{
    const size_t deps = t->count ? t->data_count * (nodes / t->count) : 0; /* extrapolated */
    const bool is_fine = (nodes <= t->room || widen_columns(t, nodes)) &&
                         orr_grow(&t->data_dep, &t->data_room, deps) &&
                         (bytes == 0 || orr_buf_reserve(&t->owned, bytes));
    return is_fine ? ORR_OK : orr_no_memory(err);
}

orr_code orr__trace_append_body(orr_trace *t, size_t begin, uint64_t origin, orr_error *err)
{
    orr_code code = end_body(t, begin, origin, err);
    if (code)
        return code;
    code = orr__trace_index(t, begin, origin, err);
    if (code)
        t->owned.len = begin;
    return code;
}

/* A record encoded from a valid draft need not be decoded again. */
static orr_code append_scanned(
    orr_trace *t, const orr_draft *d, size_t begin, uint64_t origin, orr_error *err)
{
    orr_code code = end_body(t, begin, origin, err);
    if (code)
        return code;
    code = check_room(t, begin, err);
    if (!code && (!orr__scan_draft_deps(&t->scan, d) || !store_node(t, begin, origin)))
        code = orr_no_memory(err);
    if (code)
        t->owned.len = begin;
    return code;
}

static orr_code check_open(const orr_trace *t, orr_error *err)
{
    return t->is_sealed ? orr_fail(err, ORR_EUSAGE, NULL, "a sealed trace cannot change") : ORR_OK;
}

orr_code orr__trace_append_at(orr_trace *t, const orr_draft *d, uint64_t origin, orr_error *err)
{
    const orr_code code = check_open(t, err);
    if (code)
        return code;
    const size_t begin = orr_put_begin(&t->owned);
    orr__encode_node(&t->owned, d);
    return orr__scan_draft(&t->scan, d) ? append_scanned(t, d, begin, origin, err)
                                        : orr__trace_append_body(t, begin, origin, err);
}

orr_code orr_trace_append(orr_trace *t, const orr_draft *node, orr_error *err)
{
    return orr__trace_append_at(t, node, ORR_NO_BYTE, err);
}

orr_code orr_trace_copy(orr_trace *t, const orr_node *node, const orr_edit *edit, orr_error *err)
{
    const orr_code code = check_open(t, err);
    if (code)
        return code;
    const size_t begin = orr_put_begin(&t->owned);
    const bool is_lenient = t->scan.is_lenient;
    orr__encode_copy(&t->owned, node->body, edit);
    t->scan.is_lenient = true; /* accept whatever the source trace was allowed to contain */
    const orr_code copied = orr__trace_append_body(t, begin, ORR_NO_BYTE, err);
    t->scan.is_lenient = is_lenient;
    return copied;
}

/* ---- sealing: ids become indices ---- */

typedef struct resolver {
    const orr_trace *t;
    orr_map *map; /* NULL: ids are dense */
    uint32_t missing;
    bool is_topological;
} resolver;

static void count_edge(resolver *r, uint32_t node, uint32_t dep)
{
    if (dep == ORR_NO_NODE)
        r->missing++;
    else if (dep >= node)
        r->is_topological = false;
}

static void resolve_dense(resolver *r, const uint32_t *first, uint32_t *deps)
{
    const uint32_t n = (uint32_t)r->t->count;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            if (deps[e] >= n)
                deps[e] = ORR_NO_NODE;
            count_edge(r, i, deps[e]);
        }
}

static void resolve_mapped(resolver *r, const uint32_t *first, uint32_t *deps, uint32_t field)
{
    orr_value id;
    for (uint32_t i = 0; i < r->t->count; i++) {
        const orr_span body = orr__trace_body(r->t, i);
        orr_list it = {
            .at = body.ptr, .end = body.ptr + body.len, .field = field, .kind = ORR_VALUE_UINT64};
        for (uint32_t e = first[i]; e < first[i + 1] && orr_list_next(&it, &id); e++) {
            deps[e] = orr_map_find(r->map, id.u, ORR_NO_NODE);
            count_edge(r, i, deps[e]);
        }
    }
}

static void resolve(resolver *r, const uint32_t *first, uint32_t *deps, uint32_t field)
{
    r->missing = 0;
    if (!first)
        return;
    if (r->map)
        resolve_mapped(r, first, deps, field);
    else
        resolve_dense(r, first, deps);
}

static orr_map *map_ids(const orr_trace *t, uint32_t *duplicates)
{
    orr_map *map = orr_map_create(t->count);
    *duplicates = 0;
    for (size_t i = 0; map && i < t->count; i++) {
        bool is_new;
        if (!orr_map_put(map, t->id[i], (uint32_t)i, &is_new)) {
            orr_map_destroy(map);
            return NULL;
        }
        *duplicates += !is_new;
    }
    return map;
}

static int compare_ids(const void *a, const void *b, void *context)
{
    const uint64_t *id = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return id[i] != id[j] ? (id[i] < id[j] ? -1 : 1) : (i < j ? -1 : i > j);
}

static bool is_ascending(const orr_trace *t)
{
    for (size_t i = 1; i < t->count; i++)
        if (t->id[i] <= t->id[i - 1])
            return false;
    return true;
}

static bool sort_by_id(orr_trace *t)
{
    size_t room = 0;
    if (!orr_grow(&t->by_id, &room, t->count))
        return false;
    for (size_t i = 0; i < t->count; i++)
        t->by_id[i] = (uint32_t)i;
    qsort_r(t->by_id, t->count, sizeof *t->by_id, compare_ids, t->id);
    return true;
}

/* Returns the memory left unused by growth. */
static void trim(orr_trace *t)
{
    size_t room = t->data_room;
    orr_shrink(&t->data_dep, &room, t->data_count);
    room = t->ctrl_room;
    orr_shrink(&t->ctrl_dep, &room, t->ctrl_count);
    orr__scan_fini(&t->scan);
}

static void publish(orr_trace *t)
{
    orr_columns *c = &t->columns;
    c->count = (uint32_t)t->count;
    c->id = t->id;
    c->type = t->type;
    c->duration_us = t->duration;
    c->start_us = t->start;
    c->data_first = t->data_first;
    c->data_dep = t->data_dep;
    c->ctrl_first = t->ctrl_first;
    c->ctrl_dep = t->ctrl_dep;
    c->is_cpu_op = t->is_cpu_op;
    c->comm_type = t->comm_type;
    c->comm_size = t->wide[ORR__ATTR_COMM_SIZE];
    c->comm_src = t->wide[ORR__ATTR_COMM_SRC];
    c->comm_dst = t->wide[ORR__ATTR_COMM_DST];
    c->comm_tag = t->wide[ORR__ATTR_COMM_TAG];
    c->comm_priority = t->wide[ORR__ATTR_COMM_PRIORITY];
    c->tensor_size = t->wide[ORR__ATTR_TENSOR_SIZE];
    c->tensor_loc = t->wide[ORR__ATTR_TENSOR_LOC];
    c->num_ops = t->wide[ORR__ATTR_NUM_OPS];
    c->stream = t->wide[ORR__ATTR_STREAM];
    c->pg_name = t->pg_name;
}

orr_code orr_trace_seal(orr_trace *t, orr_error *err)
{
    orr_code code = check_open(t, err);
    if (code)
        return code;
    if (t->room == 0 && !grow_columns(t))
        return orr_no_memory(err);
    t->data_first[t->count] = (uint32_t)t->data_count;
    if (t->ctrl_first)
        t->ctrl_first[t->count] = (uint32_t)t->ctrl_count;
    if (t->owned.ptr)
        t->bytes = (orr_span){t->owned.ptr, t->owned.len};
    resolver r = {.t = t, .is_topological = true};
    t->columns.is_ascending = t->is_dense || is_ascending(t);
    if (!t->is_dense && !(r.map = map_ids(t, &t->columns.duplicate_ids)))
        return orr_no_memory(err);
    if (!t->columns.is_ascending && !sort_by_id(t)) {
        orr_map_destroy(r.map);
        return orr_no_memory(err);
    }
    resolve(&r, t->data_first, t->data_dep, NODE_DATA_DEPS);
    t->columns.data_missing = r.missing;
    resolve(&r, t->ctrl_first, t->ctrl_dep, NODE_CTRL_DEPS);
    t->columns.ctrl_missing = r.missing;
    t->columns.is_topological = r.is_topological;
    orr_map_destroy(r.map);
    trim(t);
    publish(t);
    t->is_sealed = true;
    return ORR_OK;
}

/* ---- queries ---- */

const orr_columns *orr_trace_columns(const orr_trace *t)
{
    return &t->columns;
}

const char *orr_trace_path(const orr_trace *t)
{
    return t->path;
}

orr_schema orr_trace_schema(const orr_trace *t)
{
    return t->schema;
}

bool orr_trace_has_metadata(const orr_trace *t)
{
    return t->has_metadata;
}

orr_span orr__trace_body(const orr_trace *t, uint32_t index)
{
    return record_body(bytes_at(t, t->body_at[index]));
}

/* Past fields before the attributes whose tags and lengths are single bytes, as nearly all are. */
static inline const uint8_t *skip_short_fields(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 2) {
        const uint8_t tag = p[0];
        const uint8_t *next = p + 1;
        if (tag >> 3 >= NODE_ATTR)
            break;
        if ((tag & 7) == ORR_WIRE_VARINT) {
            while (*next++ >= 0x80) /* ends inside the record, which was checked */
                ;
        } else if ((tag & 7) == ORR_WIRE_LEN && *next < 0x80) {
            next += 1 + *next;
        } else {
            break;
        }
        p = next;
    }
    return p;
}

/* From the first attribute at or after p, whatever fields come before it. */
ORR_APART orr_span attrs_after(const uint8_t *p, const uint8_t *end)
{
    orr_wire w = {p, end, NULL};
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (f.number == NODE_ATTR)
            return (orr_span){f.start, (size_t)(end - f.start)};
    return (orr_span){end, 0};
}

orr_span orr__trace_attr_bytes(const orr_trace *t, uint32_t index)
{
    const orr_span body = orr__trace_body(t, index);
    const uint8_t *const end = body.ptr + body.len;
    const uint8_t *const p = skip_short_fields(body.ptr, end);
    if (p < end && *p == (NODE_ATTR << 3 | ORR_WIRE_LEN))
        return (orr_span){p, (size_t)(end - p)};
    return attrs_after(p, end);
}

orr_span orr__trace_meta_body(const orr_trace *t)
{
    return t->has_metadata ? record_body(bytes_at(t, 0)) : (orr_span){(const uint8_t *)"", 0};
}

orr_attrs orr_trace_attrs(const orr_trace *t)
{
    const orr_span body = orr__trace_meta_body(t);
    return (orr_attrs){body.ptr, body.ptr + body.len, META_ATTR};
}

orr_str orr_trace_version(const orr_trace *t)
{
    orr_wire w = orr_wire_of(orr__trace_meta_body(t));
    orr_field f;
    orr_str version = {"", 0};
    while (orr_wire_next(&w, &f))
        if (f.number == META_VERSION && f.type == ORR_WIRE_LEN)
            version = (orr_str){(const char *)f.bytes.ptr, f.bytes.len};
    return version;
}

void orr_trace_node(const orr_trace *t, uint32_t index, orr_node *out)
{
    orr__node_decode(orr__trace_body(t, index), out);
}

orr_str orr_trace_name(const orr_trace *t, uint32_t index)
{
    orr_wire w = orr_wire_of(orr__trace_body(t, index));
    orr_field f;
    orr_str name = {"", 0};
    while (orr_wire_next(&w, &f))
        if (f.number == NODE_NAME && f.type == ORR_WIRE_LEN) {
            name = (orr_str){(const char *)f.bytes.ptr, f.bytes.len};
            if (!t->repeats_names)
                break;
        }
    return name;
}

uint32_t orr_trace_find(const orr_trace *t, uint64_t id)
{
    if (t->is_dense) {
        const uint64_t rel = t->count ? id - t->id[0] : UINT64_MAX;
        return rel < t->count ? (uint32_t)rel : ORR_NO_NODE;
    }
    size_t low = 0, high = t->count; /* the first entry past id */
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const uint32_t node = t->by_id ? t->by_id[mid] : (uint32_t)mid;
        if (t->id[node] <= id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return ORR_NO_NODE;
    const uint32_t node = t->by_id ? t->by_id[low - 1] : (uint32_t)(low - 1);
    return t->id[node] == id ? node : ORR_NO_NODE;
}

orr_str orr_trace_text(const orr_trace *t, uint32_t text)
{
    return orr_intern_get(t->texts, text);
}

uint32_t orr_trace_text_count(const orr_trace *t)
{
    return orr_intern_count(t->texts);
}

orr_where orr_trace_where(const orr_trace *t, uint32_t index)
{
    if (t->is_transcoded)
        return orr_where_byte(t->path, t->origin ? t->origin[index] : ORR_NO_BYTE);
    return orr_where_byte(t->path,
                          t->is_from_file ? t->source_at + t->body_at[index] : ORR_NO_BYTE);
}

const char *orr_node_type_name(uint32_t type)
{
    static const char *const names[ORR_NODE_TYPE_COUNT] = {
        "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",   "MEM_STORE_NODE",
        "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE",  "COMM_COLL_NODE",
        "STORAGE_NODE", "BATCH_NODE",     "CHECKPOINT_NODE",
    };
    return type < ORR_NODE_TYPE_COUNT ? names[type] : NULL;
}

const char *orr_collective_name(uint32_t kind)
{
    static const char *const names[ORR_COLL_COUNT] = {
        "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER",  "SCATTER", "BROADCAST",
        "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER",
    };
    return kind < ORR_COLL_COUNT ? names[kind] : NULL;
}

static const char *const schema_names[ORR_SCHEMA_COUNT] = {"auto",  "current", "2023-10", "0.0.3u",
                                                           "0.0.3", "0.0.2",   "eg"};

const char *orr_schema_name(orr_schema schema)
{
    return schema < ORR_SCHEMA_COUNT ? schema_names[schema] : NULL;
}

bool orr_schema_find(orr_str name, orr_schema *out)
{
    for (unsigned i = 0; i < ORR_SCHEMA_COUNT; i++)
        if (strlen(schema_names[i]) == name.len &&
            memcmp(schema_names[i], name.ptr, name.len) == 0) {
            *out = (orr_schema)i;
            return true;
        }
    return false;
}
