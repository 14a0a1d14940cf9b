/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_file.h - tables in SQLite files: reading them as untrusted data, and writing small ones.
 *
 *     orr_sqlite *db;
 *     orr_sqlite_rows *rows;
 *     if (orr_sqlite_open("trace.sqlite", &db, &err)) ...
 *     if (orr_sqlite_has_column(db, "NVTX_EVENTS", "text"))
 *         if (orr_sqlite_select(db, "SELECT start, text FROM NVTX_EVENTS", &rows, &err)) ...
 *     while ((code = orr_sqlite_next(rows, &err)) == ORR_OK)
 *         use(orr_sqlite_i64(rows, 0, -1), orr_sqlite_text(rows, 1));
 *     orr_sqlite_end(rows);
 *     orr_sqlite_close(db);
 *
 * A file opened for reading is never written, locked or given a journal, and nothing stored in it
 * is executed: views, triggers, virtual tables and functions of a schema are ignored.  SQL comes
 * from our own constants; outside values are bound by orr_sqlite_insert only. */
#ifndef ORR_BASE_SQLITE_FILE_H
#define ORR_BASE_SQLITE_FILE_H

#include "base/memory/memory.h"

typedef struct orr_sqlite orr_sqlite;
typedef struct orr_sqlite_rows orr_sqlite_rows;

orr_code orr_sqlite_open(const char *path, orr_sqlite **out, orr_error *err) ORR_MUST_CHECK;
/* Creates or replaces a file.  orr_sqlite_run takes CREATE and similar. */
orr_code orr_sqlite_create(const char *path, orr_sqlite **out, orr_error *err) ORR_MUST_CHECK;
/* A file that several processes may read while one writes (WAL); created if missing.  Committed
 * data survive a crash of the process at any moment.  A writer waits for another, up to ten
 * seconds. */
orr_code orr_sqlite_edit(const char *path, orr_sqlite **out, orr_error *err) ORR_MUST_CHECK;
/* Such a file for reading only, also while it is being written. */
orr_code orr_sqlite_watch(const char *path, orr_sqlite **out, orr_error *err) ORR_MUST_CHECK;
void orr_sqlite_close(orr_sqlite *db); /* NULL is fine; after all rows were ended */

/* Plain tables only. */
bool orr_sqlite_has_table(orr_sqlite *db, const char *table);
bool orr_sqlite_has_column(orr_sqlite *db, const char *table, const char *column);
/* Did all of these lookups, and all texts, succeed?  What could not be looked up seems absent; the
 * fault is kept, and every later row or statement fails with it.  Call it before concluding from
 * absence. */
orr_code orr_sqlite_state(const orr_sqlite *db, orr_error *err);

orr_code orr_sqlite_select(orr_sqlite *db, const char *sql, orr_sqlite_rows **out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr_sqlite_next(orr_sqlite_rows *rows, orr_error *err) ORR_MUST_CHECK; /* ORR_END: last */
void orr_sqlite_end(orr_sqlite_rows *rows);                                     /* NULL is fine */

/* The row's columns, from 0; valid until next.  Values of another type count as missing. */
bool orr_sqlite_is_int(const orr_sqlite_rows *rows, int column);
int64_t orr_sqlite_i64(const orr_sqlite_rows *rows, int column, int64_t otherwise);
orr_str orr_sqlite_text(const orr_sqlite_rows *rows, int column); /* empty: none */
orr_span orr_sqlite_blob(const orr_sqlite_rows *rows, int column);

orr_code orr_sqlite_run(orr_sqlite *db, const char *sql, orr_error *err) ORR_MUST_CHECK;

/* One value of a row to insert; neither: NULL. */
typedef struct orr_sqlite_value {
    bool is_int;
    int64_t number;
    orr_str text;  /* with ptr */
    orr_span blob; /* with ptr */
} orr_sqlite_value;

/* rows: an INSERT with a ? per value, from orr_sqlite_select; may be used again and again. */
orr_code orr_sqlite_insert(orr_sqlite_rows *rows,
                           const orr_sqlite_value *values,
                           int count,
                           orr_error *err) ORR_MUST_CHECK;

/* Restarts a SELECT with ?, with these values, which must stay valid until the last
 * orr_sqlite_next. */
orr_code orr_sqlite_restart(orr_sqlite_rows *rows,
                            const orr_sqlite_value *values,
                            int count,
                            orr_error *err) ORR_MUST_CHECK;

#endif
