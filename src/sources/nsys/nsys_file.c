/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_file.c - an export's rows, one at a time.
 *
 * Versions of the export differ in which columns NVTX_EVENTS has and where a text lies (in the row,
 * or by number in StringIds); tables that would be empty are not there at all.  So the queries are
 * put together from what the file has. Why CROSS JOIN: it keeps kernels in the order of their
 * table, which decides between kernels that start together. Cost: one pass over two tables; one row
 * in memory. */
#include "nsys_impl.h"

#include "base/memory/buffer.h"
#include "base/text/text.h"

struct orr_nsys {
    orr_sqlite *db;
    orr_sqlite_rows *rows; /* of the table that is being read; NULL: none */
    orr__payloads *payloads;
    orr_nsys_options opt;
    char *path;
    uint64_t row;
    int table; /* which of `tables` */
    char hash[ORR__HASH_ROOM];
};

/* ---- queries ---- */

static void add_column(orr_buf *sql, const orr_sqlite *db, const char *table, const char *column)
{
    if (orr_sqlite_has_column(db, table, column))
        orr_buf_print(sql, ", t.[%s]", column);
    else
        orr_buf_text(sql, ", NULL");
}

static bool has_strings(const orr_sqlite *db)
{
    return orr_sqlite_has_column(db, "StringIds", "id") &&
           orr_sqlite_has_column(db, "StringIds", "value");
}

/* A text of the row, or by its number in a column of StringIds' ids, joined under a name; "": it
 * has none. */
static void add_text(orr_buf *sql, const orr_sqlite *db, const char *text, const char *joined)
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

static const char *join_name(const orr_sqlite *db, const char *column, const char *name)
{
    return has_strings(db) && orr_sqlite_has_column(db, "NVTX_EVENTS", column) ? name : "";
}

enum { START, END, TEXT, THREAD, JSON, BINARY };
enum { DEVICE = 3, STREAM, PROCESS, GRID };

static void nvtx_query(orr_buf *sql, const orr_sqlite *db)
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

static void kernel_query(orr_buf *sql, const orr_sqlite *db, bool all)
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

static bool has_kernels(const orr_sqlite *db)
{
    return has_strings(db) && orr_sqlite_has_column(db, kernels, "start") &&
           orr_sqlite_has_column(db, kernels, "end") &&
           orr_sqlite_has_column(db, kernels, "globalPid") &&
           orr_sqlite_has_column(db, kernels, "demangledName");
}

/* ---- rows ---- */

static orr_code bad_row(const orr_nsys *n, const char *table, const char *words, orr_error *err)
{
    const orr_where at = orr_where_line(n->path, 0, 0);
    return orr_fail(err, ORR_EINPUT, &at, "row %llu of %s: %s", (unsigned long long)n->row, table,
                    words);
}

/* Start and end.  Times are nanoseconds since the capture began: far from the ends of 64 bits, so
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
    if (code == ORR_END && !orr__payload_row(n->payloads, out->text, orr_sqlite_text(n->rows, JSON),
                                             orr_sqlite_blob(n->rows, BINARY), out, n->hash)) {
        out->kind = ORR_NSYS_OTHER;
        out->pid = orr__nsys_pid((int64_t)out->thread);
    }
    return ORR_OK;
}

/* The letters behind "ncclDevKernel_", wherever that is: the collective. */
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

/* ORR_END: the table is not there. */
static orr_code begin_table(orr_nsys *n, orr_error *err)
{
    orr_buf sql = {0};
    const bool is_nvtx = n->table == 0;
    if (is_nvtx ? !orr_sqlite_has_column(n->db, "NVTX_EVENTS", "start") : !has_kernels(n->db))
        return ORR_END;
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
    const orr_where at = orr_where_line(n->path, 0, 0);
    if (orr_sqlite_has_table(n->db, "NVTX_EVENTS") || orr_sqlite_has_table(n->db, kernels))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &at,
                    "neither NVTX_EVENTS nor %s is in it: not an export of Nsight Systems, or one "
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
        code = orr__payloads_read(n->db, &n->payloads, err);
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
    orr__payloads_free(n->payloads);
    orr_free(n->path);
    orr_free(n);
}
