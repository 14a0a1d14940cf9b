/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - one SQLite file per sweep.
 *
 *     head(key, value)              format, program, the specification and its hash
 *     points(point, hash, axes)     every point of the sweep, in order; axes is a JSON array
 *     results(hash, status, ns, data)  by content, so that equal points have one row, and a
 *                                   database serves another sweep as a cache
 *
 * Invariants: a result is stored whole or not at all, and is visible as soon as it is committed,
 * which the scheduler does per batch of arrivals.  One process writes: it holds a lock on a
 * companion file ending in -lock (SQLite's own locks must stay free for readers). */
#include "store.h"

#include "base/formats/json.h"
#include "base/io/lock_file.h"
#include "base/text/text.h"

#include <errno.h>
#include <sys/stat.h>

#define FORMAT "orrery-sweep 1"

struct swp_store {
    orr_sqlite *db;
    orr_sqlite_rows *put, *get;
    orr_buf data; /* of the latest swp_store_get */
    char *path, *lock_path;
    int lock;
    bool is_placed; /* the file is known by its number: */
    dev_t device;
    ino_t number;
};

enum { LOCK_WAIT_MS = 2000 };

/* ---- the lock ---- */

/* Workers of a killed sweep hold the lock until they have died too: retry for a moment. */
static orr_code take_lock(swp_store *st, orr_error *err)
{
    const orr_where w = orr_where_line(st->path, 0, 0);
    const orr_code code = orr_lock_take(st->lock_path, LOCK_WAIT_MS, &st->lock, err);
    if (code == ORR_END)
        return orr_fail(err, ORR_EIO, &w, "another sweep is writing to this file");
    if (code && err)
        err->where = w;
    return code;
}

bool swp_store_is_locked(const char *path)
{
    orr_buf lock = {0};
    orr_buf_text(&lock, path);
    orr_buf_text(&lock, "-lock");
    orr_buf_byte(&lock, 0);
    const bool is_held = !lock.failed && orr_lock_is_held((const char *)lock.ptr);
    orr_buf_fini(&lock);
    return is_held;
}

/* ---- opening ---- */

static orr_code prepare(swp_store *st, orr_error *err)
{
    orr_code code = orr_sqlite_select(
        st->db, "INSERT OR REPLACE INTO results(hash, status, ns, data) VALUES(?,?,?,?)", &st->put,
        err);
    return code ? code
                : orr_sqlite_select(st->db, "SELECT status, ns, data FROM results WHERE hash = ?",
                                    &st->get, err);
}

static orr_code make_tables(orr_sqlite *db, orr_error *err)
{
    return orr_sqlite_run(
        db,
        "CREATE TABLE IF NOT EXISTS head(key TEXT PRIMARY KEY, value TEXT);"
        "CREATE TABLE IF NOT EXISTS points(point INTEGER PRIMARY KEY, hash TEXT, axes TEXT);"
        "CREATE TABLE IF NOT EXISTS results(hash TEXT PRIMARY KEY, status INTEGER, ns INTEGER, "
        "data TEXT)",
        err);
}

static orr_code put_head(orr_sqlite *db, const char *key, orr_str value, orr_error *err)
{
    orr_sqlite_rows *rows;
    orr_code code =
        orr_sqlite_select(db, "INSERT OR REPLACE INTO head(key, value) VALUES(?,?)", &rows, err);
    if (code)
        return code;
    const orr_sqlite_value values[] = {swp_text_value(orr_str_of(key)), swp_text_value(value)};
    code = orr_sqlite_insert(rows, values, 2, err);
    orr_sqlite_end(rows);
    return code;
}

orr_code swp_store_head(
    orr_sqlite *db, const char *key, orr_arena *a, const char **out, orr_error *err)
{
    orr_sqlite_rows *rows;
    *out = NULL;
    orr_code code = orr_sqlite_select(db, "SELECT value FROM head WHERE key = ?", &rows, err);
    if (code)
        return code;
    const orr_sqlite_value values[] = {swp_text_value(orr_str_of(key))};
    code = orr_sqlite_restart(rows, values, 1, err);
    if (!code)
        code = orr_sqlite_next(rows, err);
    if (!code && !(*out = orr_arena_text(a, orr_sqlite_text(rows, 0))))
        code = orr_no_memory(err);
    orr_sqlite_end(rows);
    return code == ORR_END ? ORR_OK : code;
}

/* Is it ours, and of a version that we know? */
static orr_code check_format(orr_sqlite *db, const char *path, orr_arena *a, orr_error *err)
{
    const orr_where w = orr_where_line(path, 0, 0);
    const char *format = NULL;
    if (!orr_sqlite_has_table(db, "head") || !orr_sqlite_has_table(db, "results"))
        return orr_fail(err, ORR_EINPUT, &w, "not the database of a sweep");
    const orr_code code = swp_store_head(db, "format", a, &format, err);
    if (!code && (!format || strcmp(format, FORMAT) != 0))
        return orr_fail(err, ORR_EINPUT, &w, "format '%s'; this program knows '%s'",
                        format ? format : "unknown", FORMAT);
    return code;
}

orr_code swp_store_look(const char *path, orr_sqlite **out, orr_error *err)
{
    const orr_where w = orr_where_line(path, 0, 0);
    struct stat st;
    *out = NULL;
    if (stat(path, &st) != 0)
        return orr_fail(err, ORR_EIO, &w, "cannot read: %s", strerror(errno));
    orr_arena *a = orr_arena_create();
    orr_code code = a ? orr_sqlite_watch(path, out, err) : orr_no_memory(err);
    if (!code && (code = check_format(*out, path, a, err))) {
        orr_sqlite_close(*out);
        *out = NULL;
    }
    orr_arena_destroy(a);
    return code;
}

static orr_code open_store(const char *path, bool locks, swp_store **out, orr_error *err)
{
    *out = NULL;
    swp_store *st = orr_alloc(1, sizeof *st);
    if (!st)
        return orr_no_memory(err);
    st->lock = -1;
    const size_t n = strlen(path);
    st->path = orr_alloc(n + 1, 1);
    st->lock_path = orr_alloc(n + 8, 1);
    orr_code code = st->path && st->lock_path ? ORR_OK : orr_no_memory(err);
    if (!code) {
        memcpy(st->path, path, n);
        memcpy(st->lock_path, path, n);
        memcpy(st->lock_path + n, "-lock", 5);
    }
    if (!code && locks)
        code = take_lock(st, err);
    if (!code)
        code = orr_sqlite_edit(path, &st->db, err);
    if (code) {
        swp_store_close(st);
        return code;
    }
    *out = st;
    return ORR_OK;
}

void swp_store_close(swp_store *st)
{
    if (!st)
        return;
    orr_sqlite_end(st->put);
    orr_sqlite_end(st->get);
    orr_sqlite_close(st->db);
    orr_buf_fini(&st->data);
    orr_lock_give(st->lock, st->lock_path);
    orr_free(st->path);
    orr_free(st->lock_path);
    orr_free(st);
}

orr_code swp_store_open_cache(const char *path, swp_store **out, orr_error *err)
{
    swp_store *st;
    orr_arena *a = orr_arena_create();
    *out = NULL;
    if (!a)
        return orr_no_memory(err);
    orr_code code = open_store(path, false, &st, err);
    if (!code) {
        const bool is_new = !orr_sqlite_has_table(st->db, "head");
        code = orr_sqlite_run(st->db, "BEGIN IMMEDIATE", err);
        if (!code)
            code = make_tables(st->db, err);
        if (!code && is_new)
            code = put_head(st->db, "format", orr_str_of(FORMAT), err);
        if (!code)
            code = orr_sqlite_run(st->db, "COMMIT", err);
        if (!code)
            code = check_format(st->db, path, a, err);
        if (!code)
            code = prepare(st, err);
        if (code)
            swp_store_close(st);
        else
            *out = st;
    }
    orr_arena_destroy(a);
    return code;
}

/* ---- a sweep's own ---- */

static orr_code put_points(orr_sqlite *db,
                           const orr_sweep *s,
                           const char (*hashes)[SWP_HASH_ROOM],
                           orr_error *err)
{
    orr_sqlite_rows *rows;
    orr_buf axes = {0};
    orr_code code = orr_sqlite_select(
        db, "INSERT OR REPLACE INTO points(point, hash, axes) VALUES(?,?,?)", &rows, err);
    for (size_t i = 0; i < s->point_count && !code; i++) {
        orr_json_writer w;
        axes.len = 0;
        orr_json_writer_init(&w, &axes, NULL);
        orr_json_begin_array(&w);
        for (uint32_t k = 0; k < s->axis_name_count; k++)
            orr_json_text(&w, s->points[i * s->axis_name_count + k]);
        orr_json_end_array(&w);
        if (axes.failed) {
            code = orr_no_memory(err);
            break;
        }
        const orr_sqlite_value values[] = {
            swp_int_value((int64_t)i), swp_text_value(orr_str_of(hashes[i])),
            swp_text_value((orr_str){(const char *)axes.ptr, axes.len})};
        code = orr_sqlite_insert(rows, values, 3, err);
    }
    orr_buf_fini(&axes);
    orr_sqlite_end(rows);
    return code;
}

/* Measures and axes, for readers of the database without the specification. */
static orr_code put_measures(orr_sqlite *db, const orr_sweep *s, orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, NULL);
    orr_json_begin_array(&w);
    for (uint32_t i = 0; i < s->measure_count; i++) {
        orr_json_begin_array(&w);
        orr_json_text(&w, s->measures[i].name);
        orr_json_text(&w, s->measures[i].text);
        orr_json_end_array(&w);
    }
    orr_json_end_array(&w);
    orr_code code = b.failed ? orr_no_memory(err)
                             : put_head(db, "measures", (orr_str){(const char *)b.ptr, b.len}, err);
    orr_buf_fini(&b);
    if (!code)
        code = put_head(db, "goal", orr_str_of(s->goal ? s->goal : ""), err);
    return code ? code : put_head(db, "title", orr_str_of(s->title ? s->title : ""), err);
}

static orr_code put_description(orr_sqlite *db, orr_sweep *s, const char *hash, orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, NULL);
    orr_json_begin_array(&w);
    for (uint32_t k = 0; k < s->axis_name_count; k++)
        orr_json_text(&w, s->names[s->axis_names[k]].name);
    orr_json_end_array(&w);
    orr_code code = b.failed ? orr_no_memory(err) : ORR_OK;
    if (!code)
        code = put_head(db, "axes", (orr_str){(const char *)b.ptr, b.len}, err);
    b.len = 0;
    for (uint32_t i = 0; i < s->step_count; i++)
        orr_buf_print(&b, "%s%s", i ? ", " : "", s->steps[i].command);
    if (!code)
        code = b.failed ? orr_no_memory(err)
                        : put_head(db, "commands", (orr_str){(const char *)b.ptr, b.len}, err);
    orr_buf_fini(&b);
    if (!code)
        code = put_measures(db, s, err);
    if (!code)
        code = put_head(db, "format", orr_str_of(FORMAT), err);
    if (!code)
        code = put_head(db, "program", orr_str_of(s->hooks->program), err);
    if (!code)
        code = put_head(db, "spec_hash", orr_str_of(hash), err);
    return code ? code : put_head(db, "spec", s->text, err);
}

static orr_code check_same(const swp_store *st,
                           orr_sweep *s,
                           const char *hash,
                           bool recomputes,
                           orr_arena *a,
                           orr_error *err)
{
    const orr_where w = orr_where_line(st->path, 0, 0);
    const char *program, *spec;
    orr_code code = check_format(st->db, st->path, a, err);
    if (!code)
        code = swp_store_head(st->db, "spec_hash", a, &spec, err);
    if (!code && spec && strcmp(spec, hash) != 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "this database belongs to another sweep than %s; give another file with "
                        "-o, and this one with --cache to use its results",
                        s->path);
    if (!code)
        code = swp_store_head(st->db, "program", a, &program, err);
    if (!code && program && strcmp(program, s->hooks->program) != 0 && !recomputes)
        return orr_fail(err, ORR_EINPUT, &w,
                        "computed by %s, but this is %s; --recompute computes its points again",
                        program, s->hooks->program);
    return code;
}

/* SQLite goes on writing to a file that was unlinked, so compare it with the one first seen. */
static orr_code check_place(swp_store *st, orr_error *err)
{
    const orr_where w = orr_where_line(st->path, 0, 0);
    struct stat now;
    if (stat(st->path, &now) != 0 ||
        (st->is_placed && (now.st_dev != st->device || now.st_ino != st->number)))
        return orr_fail(err, ORR_EIO, &w,
                        "the file was removed or replaced during the sweep: its results are lost");
    st->is_placed = true;
    st->device = now.st_dev;
    st->number = now.st_ino;
    return ORR_OK;
}

static orr_code fill_store(swp_store *st,
                           orr_sweep *s,
                           const char (*hashes)[SWP_HASH_ROOM],
                           bool recomputes,
                           orr_arena *a,
                           orr_error *err)
{
    bool has_failed;
    char hash[SWP_HASH_ROOM];
    orr_content_hash_text(swp_spec_hash(s, &has_failed), hash);
    if (has_failed)
        return orr_no_memory(err);
    orr_code code = check_place(st, err);
    if (!code && orr_sqlite_has_table(st->db, "head"))
        code = check_same(st, s, hash, recomputes, a, err);
    if (!code)
        code = orr_sqlite_run(st->db, "BEGIN IMMEDIATE", err);
    if (!code)
        code = make_tables(st->db, err);
    if (!code)
        code = put_description(st->db, s, hash, err);
    if (!code)
        code = put_points(st->db, s, hashes, err);
    if (!code)
        code = swp_store_commit(st, err);
    return code ? code : prepare(st, err);
}

orr_code swp_store_open(const char *path,
                        orr_sweep *s,
                        const char (*hashes)[SWP_HASH_ROOM],
                        bool recomputes,
                        swp_store **out,
                        orr_error *err)
{
    swp_store *st;
    orr_arena *a = orr_arena_create();
    *out = NULL;
    if (!a)
        return orr_no_memory(err);
    orr_code code = open_store(path, true, &st, err);
    if (!code && (code = fill_store(st, s, hashes, recomputes, a, err)))
        swp_store_close(st);
    else if (!code)
        *out = st;
    orr_arena_destroy(a);
    return code;
}

/* ---- results ---- */

orr_code swp_store_begin(swp_store *st, orr_error *err)
{
    return orr_sqlite_run(st->db, "BEGIN IMMEDIATE", err);
}

orr_code swp_store_commit(swp_store *st, orr_error *err)
{
    const orr_code code = orr_sqlite_run(st->db, "COMMIT", err);
    return code ? code : check_place(st, err);
}

orr_code swp_store_put(swp_store *st, const char *hash, const swp_result *r, orr_error *err)
{
    const orr_sqlite_value values[] = {swp_text_value(orr_str_of(hash)),
                                       swp_int_value((int64_t)r->status),
                                       swp_int_value((int64_t)r->ns), swp_text_value(r->data)};
    return orr_sqlite_insert(st->put, values, 4, err);
}

orr_code swp_store_get(swp_store *st, const char *hash, swp_result *out, orr_error *err)
{
    const orr_sqlite_value values[] = {swp_text_value(orr_str_of(hash))};
    *out = (swp_result){.status = SWP_OPEN};
    orr_code code = orr_sqlite_restart(st->get, values, 1, err);
    if (!code)
        code = orr_sqlite_next(st->get, err);
    if (!code) {
        const int64_t status = orr_sqlite_i64(st->get, 0, SWP_LOST);
        const orr_str data = orr_sqlite_text(st->get, 2);
        out->status = status == SWP_OK || status == SWP_FAILED ? (swp_status)status : SWP_LOST;
        out->ns = (uint64_t)orr_sqlite_i64(st->get, 1, 0);
        st->data.len = 0;
        orr_buf_add(&st->data, data.ptr, data.len);
        out->data = (orr_str){(const char *)st->data.ptr, st->data.len};
    }
    /* A statement that is not reset would hold an old snapshot of the file. */
    const orr_code reset = orr_sqlite_restart(st->get, NULL, 0, err);
    if (st->data.failed)
        return orr_no_memory(err);
    return code && code != ORR_END ? code : reset;
}
