/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_missing.c - in place of sqlite_file.c in a build without SQLite: no file can be opened, and
 * the error says what is missing.  The rest is never called. */
#include "sqlite_file.h"

static orr_code missing(const char *path, orr_sqlite **out, orr_error *err)
{
    *out = NULL;
    return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_where_line(path, 0, 0)),
                    "this build cannot read Nsight Systems exports: SQLite is missing; build with "
                    "-Dnsight=enabled");
}

orr_code orr_sqlite_open(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, out, err);
}

orr_code orr_sqlite_create(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, out, err);
}

static orr_code no_sweeps(const char *path, orr_sqlite **out, orr_error *err)
{
    *out = NULL;
    return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_where_line(path, 0, 0)),
                    "this build cannot keep the results of sweeps: SQLite is missing; build with "
                    "-Dnsight=enabled");
}

orr_code orr_sqlite_edit(const char *path, orr_sqlite **out, orr_error *err)
{
    return no_sweeps(path, out, err);
}

orr_code orr_sqlite_watch(const char *path, orr_sqlite **out, orr_error *err)
{
    return no_sweeps(path, out, err);
}

void orr_sqlite_close(orr_sqlite *db)
{
    (void)db;
}

bool orr_sqlite_has_table(const orr_sqlite *db, const char *table)
{
    (void)db, (void)table;
    return false;
}

bool orr_sqlite_has_column(const orr_sqlite *db, const char *table, const char *column)
{
    (void)db, (void)table, (void)column;
    return false;
}

orr_code orr_sqlite_select(orr_sqlite *db, const char *sql, orr_sqlite_rows **out, orr_error *err)
{
    (void)db, (void)sql;
    *out = NULL;
    return orr_fail(err, ORR_EBUG, NULL, "no SQLite file is open");
}

orr_code orr_sqlite_next(orr_sqlite_rows *rows, orr_error *err)
{
    (void)rows, (void)err;
    return ORR_END;
}

void orr_sqlite_end(orr_sqlite_rows *rows)
{
    (void)rows;
}

bool orr_sqlite_is_int(const orr_sqlite_rows *rows, int column)
{
    (void)rows, (void)column;
    return false;
}

int64_t orr_sqlite_i64(const orr_sqlite_rows *rows, int column, int64_t otherwise)
{
    (void)rows, (void)column;
    return otherwise;
}

orr_str orr_sqlite_text(const orr_sqlite_rows *rows, int column)
{
    (void)rows, (void)column;
    return (orr_str){.ptr = "", .len = 0};
}

orr_span orr_sqlite_blob(const orr_sqlite_rows *rows, int column)
{
    (void)rows, (void)column;
    return (orr_span){0};
}

orr_code orr_sqlite_run(orr_sqlite *db, const char *sql, orr_error *err)
{
    (void)db, (void)sql;
    return orr_fail(err, ORR_EBUG, NULL, "no SQLite file is open");
}

orr_code orr_sqlite_insert(orr_sqlite_rows *rows,
                           const orr_sqlite_value *values,
                           int count,
                           orr_error *err)
{
    (void)rows, (void)values, (void)count;
    return orr_fail(err, ORR_EBUG, NULL, "no SQLite file is open");
}

orr_code orr_sqlite_restart(orr_sqlite_rows *rows,
                            const orr_sqlite_value *values,
                            int count,
                            orr_error *err)
{
    (void)rows, (void)values, (void)count;
    return orr_fail(err, ORR_EBUG, NULL, "no SQLite file is open");
}
