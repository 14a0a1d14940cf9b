/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_file.c - an export's rows, one at a time.
 *
 * Versions of the export differ in which columns NVTX_EVENTS has and where a text lies (in the row,
 * or by number in StringIds); tables that would be empty are not there at all.  So the queries are
 * built from the columns the file has. Why CROSS JOIN: it keeps kernels in the order of their
 * table, which decides between kernels that start together. Cost: one pass over two tables; one row
 * in memory. */
#include "nsys_impl.h"

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/short_forms.h"
#include "base/text/number.h"

/* ==== NVTX ranges of NCCL 2.22 and later: named after the function, with a payload.
 *
 * An export has the payload as JSON text, keyed by entry name, or as bytes after a 32-byte header:
 *
 *     0 u32 domain   8 u32 schema   16 u64 bytes of the payload   24 u64 bytes in all   32 the payload
 *
 * whose entries (name, type, offset) are rows of NVTX_PAYLOAD_SCHEMA_ENTRIES.  Names differ a
 * little between releases, so an entry is known by its leading words.  A malformed payload is
 * ignored. Invariant: offsets and sizes from the file are checked against the bytes available. */

typedef enum field {
    COMMUNICATOR,
    BYTES,
    ROOT,
    PEER,
    RANKS,
    RANK,
    FIELDS,
    NO_FIELD = FIELDS
} field;

typedef struct entry {
    int64_t domain, schema;
    uint64_t offset;
    uint8_t size; /* bytes of the number */
    uint8_t what; /* field */
} entry;

struct orr__payloads {
    entry *entries; /* few: one per kind of call and field */
    size_t count, room;
};

typedef struct values {
    bool has[FIELDS];
    uint64_t of[FIELDS];
} values;

static field field_of(orr_str name)
{
    static const struct {
        const char *words;
        field what;
    } names[] = {
        {"NCCL communicator ID", COMMUNICATOR},
        {"NCCL communicator id", COMMUNICATOR},
        {"Message size", BYTES},
        {"Bytes", BYTES},
        {"Root", ROOT},
        {"Peer", PEER},
        {"No. of ranks", RANKS},
        {"Number of ranks", RANKS},
        {"Rank", RANK},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (orr_str_begins(name, names[i].words))
            return names[i].what;
    return NO_FIELD;
}

/* Bytes of an entry's type; 0: not an integer.  NVTX numbers C's types first, then those of fixed
 * width. */
static uint8_t size_of_type(int64_t type)
{
    static const uint8_t sizes[] = {
        [1] = 1,  [2] = 1,  [3] = 2,  [4] = 2,  [5] = 4,  [6] = 4, /* char, short, int */
        [7] = 8,  [8] = 8,  [9] = 8,  [10] = 8,                    /* long, long long */
        [11] = 1, [12] = 1, [13] = 2, [14] = 2, [15] = 4, [16] = 4,
        [17] = 8, [18] = 8, [22] = 8, /* size_t */
        [23] = 8,                     /* an address */
    };
    return type >= 0 && type < (int64_t)sizeof sizes ? sizes[type] : 0;
}

static orr_code add_entry(orr__payloads *p, const orr_sqlite_rows *rows, orr_error *err)
{
    const field what = field_of(orr_sqlite_text(rows, 3));
    const uint8_t size = size_of_type(orr_sqlite_i64(rows, 2, -1));
    const int64_t offset = orr_sqlite_i64(rows, 4, 0);
    if (what == NO_FIELD || !size || offset < 0)
        return ORR_OK;
    return orr_push(p->entries, p->count, p->room,
                    (entry){
                        .domain = orr_sqlite_i64(rows, 0, 0),
                        .schema = orr_sqlite_i64(rows, 1, 0),
                        .offset = (uint64_t)offset,
                        .size = size,
                        .what = (uint8_t)what,
                    })
               ? ORR_OK
               : orr_no_memory(err);
}

static bool has_schemas(orr_sqlite *db)
{
    static const char *const columns[] = {"domainId", "schemaId", "type", "name", "offset"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!orr_sqlite_has_column(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns[i]))
            return false;
    return true;
}

/* NULL is fine */
static void payloads_free(orr__payloads *p)
{
    if (!p)
        return;
    orr_free(p->entries);
    orr_free(p);
}

static orr_code payloads_read(orr_sqlite *db, orr__payloads **out, orr_error *err)
{
    orr_sqlite_rows *rows = NULL;
    *out = orr_alloc(1, sizeof **out);
    if (!*out)
        return orr_no_memory(err);
    if (!has_schemas(db))
        return orr_sqlite_state(db, err);
    orr_code code = orr_sqlite_select(
        db,
        "SELECT domainId, schemaId, type, name, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES LIMIT 65536",
        &rows, err);
    while (!code && (code = orr_sqlite_next(rows, err)) == ORR_OK)
        code = add_entry(*out, rows, err);
    orr_sqlite_end(rows);
    if (code == ORR_END)
        return ORR_OK;
    payloads_free(*out);
    *out = NULL;
    return code;
}

/* ---- as bytes ---- */

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void read_bytes(const orr__payloads *p, orr_span all, values *out)
{
    enum { HEADER = 32 };
    if (all.len < HEADER)
        return;
    const int64_t domain = (int64_t)little_endian(all.ptr, 4);
    const int64_t schema = (int64_t)little_endian(all.ptr + 8, 4);
    const size_t size = all.len - HEADER;
    for (size_t i = 0; i < p->count; i++) {
        const entry *e = &p->entries[i];
        if (e->domain != domain || e->schema != schema || e->offset > size ||
            size - e->offset < e->size)
            continue;
        out->has[e->what] = true;
        out->of[e->what] = little_endian(all.ptr + HEADER + e->offset, e->size);
    }
}

/* ---- as JSON ---- */

/* A number, or a string with one: some exports write 1,048,576. */
static bool json_number(orr_json_value v, uint64_t *out)
{
    char plain[32];
    size_t n = 0;
    orr_str text;
    if (orr_json_type_of(v) == ORR_JSON_INT)
        return orr_json_get_u64(v, out, NULL) == ORR_OK;
    if (orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &text, NULL))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ',' && n < sizeof plain)
            plain[n++] = text.ptr[i];
    return orr_text_u64((orr_str){.ptr = plain, .len = n}, out);
}

static void read_members(orr_json_value object, values *out)
{
    orr_str key;
    orr_json_value v;
    for (orr_json_iter it = orr_json_iterate(object); orr_json_next_member(&it, &key, &v);) {
        const field what = field_of(key);
        if (what != NO_FIELD && json_number(v, &out->of[what]))
            out->has[what] = true;
    }
}

static void read_json(orr_str text, values *out)
{
    orr_json *j = NULL;
    orr_json_value root;
    const orr_span bytes = {.ptr = (const uint8_t *)text.ptr, .len = text.len};
    if (orr_json_open(bytes, NULL, &j, NULL) == ORR_OK && orr_json_only(j, &root, NULL) == ORR_OK)
        read_members(root, out);
    orr_json_close(j);
}

/* ---- a row ---- */

static orr_str write_hash(uint64_t v, char room[ORR__HASH_ROOM])
{
    static const char hex[] = "0123456789abcdef";
    char *p = room + ORR__HASH_ROOM;
    do {
        *--p = hex[v & 15];
        v >>= 4;
    } while (v);
    *--p = 'x';
    *--p = '0';
    return (orr_str){.ptr = p, .len = (size_t)(room + ORR__HASH_ROOM - p)};
}

static bool is_rank_init(orr_str name)
{
    return orr_str_is(name, "ncclCommInitRank") || orr_str_is(name, "ncclCommInitRankConfig") ||
           orr_str_is(name, "ncclCommInitRankScalable");
}

static void fill(orr_nsys_row *row, const values *v, char room[ORR__HASH_ROOM])
{
    row->is_payload = true;
    row->pid = orr__nsys_pid((int64_t)row->thread);
    row->hash = write_hash(v->of[COMMUNICATOR], room);
    row->id = row->hash;
    row->bytes = v->of[BYTES];
    row->root = v->of[ROOT];
    row->peer = v->of[PEER];
    row->rank = v->of[RANK];
    row->ranks = v->of[RANKS];
    row->width = 1;
}

static bool payload_row(const orr__payloads *p,
                        orr_str name,
                        orr_str json,
                        orr_span bytes,
                        orr_nsys_row *row,
                        char room[ORR__HASH_ROOM])
{
    values v = {0};
    if (!orr_str_begins(name, "nccl"))
        return false;
    if (bytes.len)
        read_bytes(p, bytes, &v);
    else if (json.len)
        read_json(json, &v);
    fill(row, &v, room);
    if (orr_str_is(name, "ncclGroupStart") || orr_str_is(name, "ncclGroupEnd")) {
        row->kind = orr_str_is(name, "ncclGroupEnd") ? ORR_NSYS_GROUP_END : ORR_NSYS_GROUP_START;
        return true;
    }
    if (is_rank_init(name) && v.has[COMMUNICATOR] && v.has[RANK]) {
        row->kind = ORR_NSYS_COMM;
        return true;
    }
    row->op = orr_nccl_op_find((orr_str){.ptr = name.ptr + 4, .len = name.len - 4});
    row->kind = ORR_NSYS_CALL;
    return row->op != ORR_NCCL_OTHER && row->op != ORR_NCCL_SEND_RECV && v.has[BYTES];
}

struct orr_nsys {
    orr_sqlite *db;
    orr_sqlite_rows *rows; /* of the current table; NULL: none */
    orr__payloads *payloads;
    orr_nsys_options opt;
    char *path;
    uint64_t row;
    int table; /* which of `tables` */
    char hash[ORR__HASH_ROOM];
};

/* ---- queries ---- */

static void add_column(orr_buf *sql, orr_sqlite *db, const char *table, const char *column)
{
    if (orr_sqlite_has_column(db, table, column))
        orr_buf_print(sql, ", t.[%s]", column);
    else
        orr_buf_text(sql, ", NULL");
}

static bool has_strings(orr_sqlite *db)
{
    return orr_sqlite_has_column(db, "StringIds", "id") &&
           orr_sqlite_has_column(db, "StringIds", "value");
}

/* A text column of the row, or one joined from StringIds by its number; "" if there is neither. */
static void add_text(orr_buf *sql, orr_sqlite *db, const char *text, const char *joined)
{
    const bool is_here = orr_sqlite_has_column(db, "NVTX_EVENTS", text);
    if (is_here && *joined)
        orr_buf_print(sql, ", coalesce(t.[%s], %s.value)", text, joined);
    else if (is_here)
        orr_buf_print(sql, ", t.[%s]", text);
    else if (*joined)
        orr_buf_print(sql, ", %s.value", joined);
    else
        orr_buf_text(sql, ", NULL");
}

static const char *join_name(orr_sqlite *db, const char *column, const char *name)
{
    return has_strings(db) && orr_sqlite_has_column(db, "NVTX_EVENTS", column) ? name : "";
}

enum { START, END, TEXT, THREAD, JSON, BINARY };
enum { DEVICE = 3, STREAM, PROCESS, GRID };

static void nvtx_query(orr_buf *sql, orr_sqlite *db)
{
    const char *texts = join_name(db, "textId", "s"), *jsons = join_name(db, "jsonTextId", "j");
    orr_buf_text(sql, "SELECT t.[start]");
    add_column(sql, db, "NVTX_EVENTS", "end");
    add_text(sql, db, "text", texts);
    add_column(sql, db, "NVTX_EVENTS", "globalTid");
    add_text(sql, db, "jsonText", jsons);
    add_column(sql, db, "NVTX_EVENTS", "binaryData");
    orr_buf_text(sql, " FROM NVTX_EVENTS t");
    if (*texts)
        orr_buf_text(sql, " LEFT JOIN StringIds s ON s.id = t.textId");
    if (*jsons)
        orr_buf_text(sql, " LEFT JOIN StringIds j ON j.id = t.jsonTextId");
}

static const char kernels[] = "CUPTI_ACTIVITY_KIND_KERNEL";

static void kernel_query(orr_buf *sql, orr_sqlite *db, bool all)
{
    orr_buf_text(sql, "SELECT t.[start], t.[end], s.value");
    add_column(sql, db, kernels, "deviceId");
    add_column(sql, db, kernels, "streamId");
    add_column(sql, db, kernels, "globalPid");
    add_column(sql, db, kernels, "gridX");
    orr_buf_print(sql, " FROM %s t CROSS JOIN StringIds s WHERE s.id = t.demangledName", kernels);
    if (!all)
        orr_buf_text(sql, " AND s.value LIKE 'nccl%'");
}

static bool has_kernels(orr_sqlite *db)
{
    return has_strings(db) && orr_sqlite_has_column(db, kernels, "start") &&
           orr_sqlite_has_column(db, kernels, "end") &&
           orr_sqlite_has_column(db, kernels, "globalPid") &&
           orr_sqlite_has_column(db, kernels, "demangledName");
}

/* ---- rows ---- */

static orr_code bad_row(const orr_nsys *n, const char *table, const char *words, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(n->path, 0, 0)), "row %llu of %s: %s",
                    (unsigned long long)n->row, table, words);
}

/* Start and end.  Times are nanoseconds since the capture began, far from the 64-bit limits, so
 * that differences fit. */
static orr_code read_times(const orr_nsys *n, const char *table, orr_nsys_row *out, orr_error *err)
{
    const int64_t most = INT64_MAX / 4;
    if (!orr_sqlite_is_int(n->rows, START))
        return bad_row(n, table, "start is not an integer", err);
    out->start = orr_sqlite_i64(n->rows, START, 0);
    out->has_end = orr_sqlite_is_int(n->rows, END);
    out->end = orr_sqlite_i64(n->rows, END, out->start);
    if (out->start < -most || out->start > most || out->end < -most || out->end > most)
        return bad_row(n, table, "a time is out of range", err);
    return ORR_OK;
}

static orr_code nvtx_row(orr_nsys *n, orr_nsys_row *out, orr_error *err)
{
    orr_code code = read_times(n, "NVTX_EVENTS", out, err);
    if (code)
        return code;
    out->text = orr_sqlite_text(n->rows, TEXT);
    out->thread = (uint64_t)orr_sqlite_i64(n->rows, THREAD, 0);
    code = orr_nsys_marker(out->text, out, err);
    if (code == ORR_EINPUT)
        return bad_row(n, "NVTX_EVENTS", "a number is larger than 64 bits", err);
    if (code == ORR_END && !payload_row(n->payloads, out->text, orr_sqlite_text(n->rows, JSON),
                                        orr_sqlite_blob(n->rows, BINARY), out, n->hash)) {
        out->kind = ORR_NSYS_OTHER;
        out->pid = orr__nsys_pid((int64_t)out->thread);
    }
    return ORR_OK;
}

/* The collective: the letters after "ncclDevKernel_", wherever that is. */
static orr_nccl_op kernel_op(orr_str name)
{
    static const char before[] = "ncclDevKernel_";
    const char *at = memmem(name.ptr, name.len, before, sizeof before - 1);
    if (!at)
        return ORR_NCCL_OTHER;
    const char *from = at + sizeof before - 1, *to = from, *end = name.ptr + name.len;
    while (to < end && ((*to >= 'a' && *to <= 'z') || (*to >= 'A' && *to <= 'Z')))
        to++;
    return orr_nccl_op_find((orr_str){.ptr = from, .len = (size_t)(to - from)});
}

static orr_code kernel_row(orr_nsys *n, orr_nsys_row *out, orr_error *err)
{
    const orr_code code = read_times(n, kernels, out, err);
    if (code)
        return code;
    if (!out->has_end || out->end < out->start)
        return bad_row(n, kernels, "a kernel without an end, or one before its start", err);
    out->kind = ORR_NSYS_KERNEL;
    out->text = orr_sqlite_text(n->rows, TEXT);
    out->op = kernel_op(out->text);
    out->device = orr_sqlite_i64(n->rows, DEVICE, 0);
    out->cuda_stream = orr_sqlite_i64(n->rows, STREAM, 0);
    out->pid = orr__nsys_pid(orr_sqlite_i64(n->rows, PROCESS, 0));
    const int64_t grid = orr_sqlite_i64(n->rows, GRID, 0);
    out->grid = grid > 0 ? (uint64_t)grid : 0;
    return ORR_OK;
}

/* ---- the file ---- */

/* ORR_END: no such table. */
static orr_code begin_table(orr_nsys *n, orr_error *err)
{
    orr_buf sql = {0};
    const bool is_nvtx = n->table == 0;
    if (is_nvtx ? !orr_sqlite_has_column(n->db, "NVTX_EVENTS", "start") : !has_kernels(n->db)) {
        const orr_code state = orr_sqlite_state(n->db, err);
        return state ? state : ORR_END;
    }
    if (is_nvtx)
        nvtx_query(&sql, n->db);
    else
        kernel_query(&sql, n->db, n->opt.all_kernels);
    orr_buf_byte(&sql, 0);
    const orr_code code = sql.failed
                              ? orr_no_memory(err)
                              : orr_sqlite_select(n->db, (const char *)sql.ptr, &n->rows, err);
    orr_buf_fini(&sql);
    n->row = 0;
    return code;
}

orr_code orr_nsys_next(orr_nsys *n, orr_nsys_row *out, orr_error *err)
{
    for (; n->table < 2; n->table++) {
        orr_code code = n->rows ? ORR_OK : begin_table(n, err);
        if (!code)
            code = orr_sqlite_next(n->rows, err);
        if (!code) {
            *out = (orr_nsys_row){.row = ++n->row};
            return n->table == 0 ? nvtx_row(n, out, err) : kernel_row(n, out, err);
        }
        orr_sqlite_end(n->rows);
        n->rows = NULL;
        if (code != ORR_END)
            return code;
    }
    return ORR_END;
}

static orr_code check_tables(const orr_nsys *n, orr_error *err)
{
    if (orr_sqlite_has_table(n->db, "NVTX_EVENTS") || orr_sqlite_has_table(n->db, kernels))
        return ORR_OK;
    const orr_code state = orr_sqlite_state(n->db, err);
    if (state)
        return state;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(n->path, 0, 0)),
                    "contains neither NVTX_EVENTS nor %s: not an export of Nsight Systems, or one "
                    "without NVTX and CUDA",
                    kernels);
}

orr_code orr_nsys_open(const char *path,
                       const orr_nsys_options *opt,
                       orr_nsys **out,
                       orr_error *err)
{
    *out = NULL;
    const size_t length = strlen(path) + 1;
    orr_nsys *n = orr_alloc(1, sizeof *n);
    char *name = orr_alloc(length, 1);
    if (!n || !name) {
        orr_free(n);
        orr_free(name);
        return orr_no_memory(err);
    }
    memcpy(name, path, length);
    n->path = name;
    n->opt = opt ? *opt : (orr_nsys_options){0};
    orr_code code = orr_sqlite_open(path, &n->db, err);
    if (!code)
        code = check_tables(n, err);
    if (!code)
        code = payloads_read(n->db, &n->payloads, err);
    if (code) {
        orr_nsys_close(n);
        return code;
    }
    *out = n;
    return ORR_OK;
}

void orr_nsys_close(orr_nsys *n)
{
    if (!n)
        return;
    orr_sqlite_end(n->rows);
    orr_sqlite_close(n->db);
    payloads_free(n->payloads);
    orr_free(n->path);
    orr_free(n);
}
