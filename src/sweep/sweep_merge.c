/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_merge.c - merges shards of a sweep into one database, and reports progress.
 *
 * Shards hold all points and some results.  They belong to one sweep if the hash of the
 * specification and the program agree, and each point has the same content; anything else is an
 * error before anything is written.  A merge is one transaction. */
#include "store.h"

#include "base/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct merge_job {
    orr_arena *arena;
    orr_sqlite *to;
    orr_sqlite_rows *put_point, *put_result, *put_head, *get_point;
    const char *spec, *program; /* of the sweep; NULL: not known yet */
    orr_error *err;
} merge_job;

/* Same sweep, same program? */
static orr_code check_source(merge_job *m, orr_sqlite *db, const char *path)
{
    const orr_where w = orr_where_line(path, 0, 0);
    const char *spec, *program;
    orr_code code = swp_store_head(db, "spec_hash", m->arena, &spec, m->err);
    if (!code)
        code = swp_store_head(db, "program", m->arena, &program, m->err);
    if (code)
        return code;
    if (!spec || !program)
        return orr_fail(m->err, ORR_EINPUT, &w, "a cache of results, not the database of a sweep");
    if (m->spec && strcmp(m->spec, spec) != 0)
        return orr_fail(m->err, ORR_EINPUT, &w, "this is the database of another sweep");
    if (m->program && strcmp(m->program, program) != 0)
        return orr_fail(m->err, ORR_EINPUT, &w, "computed by %s, but the others by %s", program,
                        m->program);
    m->spec = spec;
    m->program = program;
    return ORR_OK;
}

static orr_code copy_head(merge_job *m, orr_sqlite *db)
{
    orr_sqlite_rows *rows;
    orr_code code = orr_sqlite_select(db, "SELECT key, value FROM head", &rows, m->err);
    while (!code && (code = orr_sqlite_next(rows, m->err)) == ORR_OK) {
        const orr_sqlite_value values[] = {swp_text_value(orr_sqlite_text(rows, 0)),
                                           swp_text_value(orr_sqlite_text(rows, 1))};
        code = orr_sqlite_insert(m->put_head, values, 2, m->err);
    }
    orr_sqlite_end(rows);
    return code == ORR_END ? ORR_OK : code;
}

static orr_code copy_point(merge_job *m, orr_sqlite_rows *from, const char *path)
{
    const int64_t point = orr_sqlite_i64(from, 0, -1);
    const orr_str hash = orr_sqlite_text(from, 1);
    const orr_sqlite_value key[] = {swp_int_value(point)};
    orr_code code = orr_sqlite_restart(m->get_point, key, 1, m->err);
    if (!code)
        code = orr_sqlite_next(m->get_point, m->err);
    if (!code && !orr_str_equal(orr_sqlite_text(m->get_point, 0), hash)) {
        const orr_where w = orr_where_line(path, 0, 0);
        return orr_fail(m->err, ORR_EINPUT, &w,
                        "point %lld was computed from other input files than in the first database",
                        (long long)point);
    }
    if (code != ORR_END)
        return code;
    const orr_sqlite_value values[] = {swp_int_value(point), swp_text_value(hash),
                                       swp_text_value(orr_sqlite_text(from, 2))};
    return orr_sqlite_insert(m->put_point, values, 3, m->err);
}

static orr_code copy_points(merge_job *m, orr_sqlite *db, const char *path)
{
    orr_sqlite_rows *rows;
    orr_code code = orr_sqlite_select(db, "SELECT point, hash, axes FROM points", &rows, m->err);
    while (!code && (code = orr_sqlite_next(rows, m->err)) == ORR_OK)
        code = copy_point(m, rows, path);
    orr_sqlite_end(rows);
    return code == ORR_END ? ORR_OK : code;
}

/* A permanent result replaces a lost one. */
static orr_code copy_results(merge_job *m, orr_sqlite *db)
{
    orr_sqlite_rows *rows;
    orr_code code =
        orr_sqlite_select(db, "SELECT hash, status, ns, data FROM results", &rows, m->err);
    while (!code && (code = orr_sqlite_next(rows, m->err)) == ORR_OK) {
        const orr_sqlite_value values[] = {swp_text_value(orr_sqlite_text(rows, 0)),
                                           swp_int_value(orr_sqlite_i64(rows, 1, SWP_LOST)),
                                           swp_int_value(orr_sqlite_i64(rows, 2, 0)),
                                           swp_text_value(orr_sqlite_text(rows, 3))};
        code = orr_sqlite_insert(m->put_result, values, 4, m->err);
    }
    orr_sqlite_end(rows);
    return code == ORR_END ? ORR_OK : code;
}

static orr_code copy_all(merge_job *m, const char *path)
{
    orr_sqlite *db;
    orr_code code = swp_store_look(path, &db, m->err);
    if (code)
        return code;
    code = check_source(m, db, path);
    if (!code)
        code = copy_head(m, db);
    if (!code)
        code = copy_points(m, db, path);
    if (!code)
        code = copy_results(m, db);
    orr_sqlite_close(db);
    return code;
}

static orr_code prepare_target(merge_job *m, const char *to)
{
    orr_code code = ORR_OK;
    if (orr_sqlite_has_table(m->to, "head"))
        code = check_source(m, m->to, to);
    if (!code)
        code = orr_sqlite_run(
            m->to,
            "BEGIN IMMEDIATE;"
            "CREATE TABLE IF NOT EXISTS head(key TEXT PRIMARY KEY, value TEXT);"
            "CREATE TABLE IF NOT EXISTS points(point INTEGER PRIMARY KEY, hash TEXT, axes TEXT);"
            "CREATE TABLE IF NOT EXISTS results(hash TEXT PRIMARY KEY, status INTEGER, ns INTEGER, "
            "data TEXT)",
            m->err);
    if (!code)
        code = orr_sqlite_select(m->to, "INSERT OR REPLACE INTO head VALUES(?,?)", &m->put_head,
                                 m->err);
    if (!code)
        code = orr_sqlite_select(m->to, "INSERT INTO points VALUES(?,?,?)", &m->put_point, m->err);
    if (!code)
        code = orr_sqlite_select(m->to, "SELECT hash FROM points WHERE point = ?", &m->get_point,
                                 m->err);
    if (!code)
        code = orr_sqlite_select(m->to,
                                 "INSERT INTO results(hash, status, ns, data) VALUES(?,?,?,?) ON "
                                 "CONFLICT(hash) DO UPDATE SET status = excluded.status, ns = "
                                 "excluded.ns, data = excluded.data WHERE excluded.status < status",
                                 &m->put_result, m->err);
    return code;
}

orr_code orr_sweep_merge(
    const char *to, const char *const *from, size_t count, orr_sweep_state *out, orr_error *err)
{
    merge_job m = {.arena = orr_arena_create(), .err = err};
    struct stat st;
    orr_code code = m.arena ? ORR_OK : orr_no_memory(err);
    const bool is_new = stat(to, &st) != 0;
    for (size_t i = 0; i < count && !code; i++) /* nothing is created if an input file is missing */
        if (stat(from[i], &st) != 0) {
            const orr_where w = orr_where_line(from[i], 0, 0);
            code = orr_fail(err, ORR_EIO, &w, "cannot read: %s", strerror(errno));
        }
    if (!code && swp_store_is_locked(to)) {
        const orr_where w = orr_where_line(to, 0, 0);
        code = orr_fail(err, ORR_EIO, &w, "a sweep is writing to this file");
    }
    if (!code)
        code = orr_sqlite_edit(to, &m.to, err);
    if (!code)
        code = prepare_target(&m, to);
    for (size_t i = 0; i < count && !code; i++)
        code = copy_all(&m, from[i]);
    orr_sqlite_end(m.put_head);
    orr_sqlite_end(m.put_point);
    orr_sqlite_end(m.get_point);
    orr_sqlite_end(m.put_result);
    if (!code)
        code = orr_sqlite_run(m.to, "COMMIT", err);
    orr_sqlite_close(m.to);
    if (code && is_new && m.to)
        remove(to);
    orr_arena_destroy(m.arena);
    return code ? code : orr_sweep_status(to, out, err);
}

/* ---- progress ---- */

static orr_code count_rows(orr_sqlite *db, orr_sweep_state *out, orr_error *err)
{
    orr_sqlite_rows *rows;
    orr_code code = orr_sqlite_select(
        db,
        "SELECT count(*), count(r.hash), coalesce(sum(r.status > 0), 0), "
        "(SELECT count(*) FROM results) FROM points p LEFT JOIN results r ON r.hash = p.hash",
        &rows, err);
    if (!code)
        code = orr_sqlite_next(rows, err);
    if (!code) {
        out->points = (uint64_t)orr_sqlite_i64(rows, 0, 0);
        out->failed = (uint64_t)orr_sqlite_i64(rows, 2, 0);
        out->done = (uint64_t)orr_sqlite_i64(rows, 1, 0);
        out->results = (uint64_t)orr_sqlite_i64(rows, 3, 0);
    }
    orr_sqlite_end(rows);
    return code;
}

static orr_code first_failure(orr_sqlite *db, orr_sweep_state *out, orr_error *err)
{
    orr_sqlite_rows *rows;
    orr_code code = orr_sqlite_select(db,
                                      "SELECT p.point, r.data FROM points p JOIN results r ON "
                                      "r.hash = p.hash WHERE r.status > 0 ORDER BY p.point LIMIT 1",
                                      &rows, err);
    if (!code)
        code = orr_sqlite_next(rows, err);
    if (!code) {
        const orr_str text = orr_sqlite_text(rows, 1);
        snprintf(out->failure, sizeof out->failure, "point %lld: %.*s",
                 (long long)orr_sqlite_i64(rows, 0, 0), (int)text.len, text.ptr);
    }
    orr_sqlite_end(rows);
    return code == ORR_END ? ORR_OK : code;
}

orr_code orr_sweep_status(const char *database, orr_sweep_state *out, orr_error *err)
{
    orr_sqlite *db;
    *out = (orr_sweep_state){.is_running = swp_store_is_locked(database)};
    orr_code code = swp_store_look(database, &db, err);
    if (code)
        return code;
    orr_arena *a = orr_arena_create();
    const char *program = NULL, *commands = NULL;
    code = a ? swp_store_head(db, "program", a, &program, err) : orr_no_memory(err);
    if (!code)
        code = swp_store_head(db, "commands", a, &commands, err);
    if (!code) {
        snprintf(out->program, sizeof out->program, "%s", program ? program : "");
        snprintf(out->commands, sizeof out->commands, "%s", commands ? commands : "");
        code = count_rows(db, out, err);
    }
    if (!code)
        code = first_failure(db, out, err);
    orr_arena_destroy(a);
    orr_sqlite_close(db);
    return code;
}
