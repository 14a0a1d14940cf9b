/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_missing.c - in place of sqlite_file.c in a build without SQLite: no file can be opened,
 * and the error says what is missing.  The rest is never called. */
#include "sqlite_file.h"

#include "base/short_forms.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* nobody looks at them here */

static orr_code missing(const char *path, const char *what, orr_sqlite **out, orr_error *err)
{
    *out = NULL;
    return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_where_line(path, 0, 0)),
                    "this build cannot %s: SQLite is missing; build with -Dnsight=enabled", what);
}

orr_code orr_sqlite_open(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, "read Nsight Systems exports", out, err);
}

orr_code orr_sqlite_create(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, "read Nsight Systems exports", out, err);
}

orr_code orr_sqlite_edit(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, "keep the results of sweeps", out, err);
}

orr_code orr_sqlite_watch(const char *path, orr_sqlite **out, orr_error *err)
{
    return missing(path, "keep the results of sweeps", out, err);
}

static orr_code not_open(orr_error *err)
{
    return orr_fail(err, ORR_EBUG, NULL, "no SQLite file is open");
}

void orr_sqlite_close(orr_sqlite *db) {}

bool orr_sqlite_has_table(orr_sqlite *db, const char *table)
{
    return false;
}

bool orr_sqlite_has_column(orr_sqlite *db, const char *table, const char *column)
{
    return false;
}

orr_code orr_sqlite_state(const orr_sqlite *db, orr_error *err)
{
    (void)db;
    (void)err;
    return ORR_OK;
}

orr_code orr_sqlite_select(orr_sqlite *db, const char *sql, orr_sqlite_rows **out, orr_error *err)
{
    *out = NULL;
    return not_open(err);
}

orr_code orr_sqlite_next(orr_sqlite_rows *rows, orr_error *err)
{
    return ORR_END;
}

void orr_sqlite_end(orr_sqlite_rows *rows) {}

bool orr_sqlite_is_int(const orr_sqlite_rows *rows, int column)
{
    return false;
}

int64_t orr_sqlite_i64(const orr_sqlite_rows *rows, int column, int64_t otherwise)
{
    return otherwise;
}

orr_str orr_sqlite_text(const orr_sqlite_rows *rows, int column)
{
    return (orr_str){.ptr = "", .len = 0};
}

orr_span orr_sqlite_blob(const orr_sqlite_rows *rows, int column)
{
    return (orr_span){0};
}

orr_code orr_sqlite_run(orr_sqlite *db, const char *sql, orr_error *err)
{
    return not_open(err);
}

orr_code orr_sqlite_insert(orr_sqlite_rows *rows,
                           const orr_sqlite_value *values,
                           int count,
                           orr_error *err)
{
    return not_open(err);
}

orr_code orr_sqlite_restart(orr_sqlite_rows *rows,
                            const orr_sqlite_value *values,
                            int count,
                            orr_error *err)
{
    return not_open(err);
}
