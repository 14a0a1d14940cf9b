/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_file.c - the one file that knows SQLite.
 *
 * Why immutable: exports are in other people's folders, often read-only, and many readers share
 * them.  SQLite would otherwise lock the file, look for a journal and replay it. Why plain tables
 * only: a view or a virtual table of that name could compute forever; a plain table is as long as
 * its file. Errors: a file that is not a database, or a damaged one, is bad input; system errors
 * are ORR_EIO. Cost: one page cache of 2 MB per open file. */
#include "sqlite_file.h"

#include "base/io/late_library.h"
#include "base/late_names.h"
#include "base/memory/buffer.h"
#include "base/text/text.h"

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the library: loaded once, when the first file is opened ---- */

#define CALLS(X)                     \
    X(sqlite3_bind_blob)             \
    X(sqlite3_bind_int64)            \
    X(sqlite3_bind_null)             \
    X(sqlite3_bind_text)             \
    X(sqlite3_busy_timeout)          \
    X(sqlite3_close)                 \
    X(sqlite3_column_blob)           \
    X(sqlite3_column_bytes)          \
    X(sqlite3_column_int64)          \
    X(sqlite3_column_text)           \
    X(sqlite3_column_type)           \
    X(sqlite3_db_config)             \
    X(sqlite3_errmsg)                \
    X(sqlite3_errstr)                \
    X(sqlite3_exec)                  \
    X(sqlite3_extended_result_codes) \
    X(sqlite3_finalize)              \
    X(sqlite3_limit)                 \
    X(sqlite3_open_v2)               \
    X(sqlite3_prepare_v2)            \
    X(sqlite3_reset)                 \
    X(sqlite3_step)                  \
    X(sqlite3_table_column_metadata)

static struct {
    ORR_LATE_FIELDS(CALLS)
} lib;
static char why_not[256]; /* why it could not be loaded; empty: it was */

static void load_library(void)
{
    static const char *const names[] = {ORR_LATE_NAMES(CALLS)};
    const char *why;
    if (!orr_late_load(ORR_LIBSQLITE3, names, sizeof names / sizeof *names, &lib, &why))
        snprintf(why_not, sizeof why_not, "%s", why ? why : ORR_LIBSQLITE3);
}

static bool is_loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_library);
    return !*why_not;
}

/* ---- opening ---- */

struct orr_sqlite {
    sqlite3 *db;
    sqlite3_stmt *find_table; /* used for every column of an export: compiled once */
    int lost;                 /* status of the first failed lookup */
    char path[sizeof(((orr_where *)0)->path)];
};

struct orr_sqlite_rows {
    sqlite3_stmt *statement;
    orr_sqlite *db;
};

enum {
    LONGEST_VALUE = 64 << 20, /* bytes of a text or a blob */
    BUSY_MS = 10000           /* how long a writer waits for another */
};

static bool is_systems_fault(int status)
{
    switch (status & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_FULL:
    case SQLITE_READONLY:
        return true;
    case SQLITE_IOERR:
        return status != SQLITE_IOERR_SHORT_READ;
    default:
        return false;
    }
}

static orr_code sqlite_failed(const orr_sqlite *db, int status, orr_error *err)
{
    const orr_where at = orr_where_line(db->path, 0, 0);
    if ((status & 0xff) ==
        SQLITE_NOMEM) /* also the result of a damaged record that claims to be huge */
        return orr_fail(err, ORR_ENOMEM, &at, "out of memory, or a damaged SQLite file");
    if ((status & 0xff) == SQLITE_NOTADB)
        return orr_fail(err, ORR_EINPUT, &at, "not an SQLite file");
    if ((status & 0xff) == SQLITE_BUSY || (status & 0xff) == SQLITE_LOCKED)
        return orr_fail(err, ORR_EIO, &at, "another process is writing to it");
    if (is_systems_fault(status))
        return orr_fail(err, ORR_EIO, &at, "%s", lib.sqlite3_errstr(status));
    return orr_fail(err, ORR_EINPUT, &at, "damaged SQLite file: %s",
                    db->db ? lib.sqlite3_errmsg(db->db) : lib.sqlite3_errstr(status));
}

/* "file:" and the path, with reserved characters as %XX. */
static void add_uri(orr_buf *to, const char *path)
{
    orr_buf_text(to, "file:");
    for (const char *p = path; *p; p++) {
        const bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                              (*p >= '0' && *p <= '9') || strchr("/._-", *p);
        if (is_plain)
            orr_buf_byte(to, (uint8_t)*p);
        else
            orr_buf_print(to, "%%%02X", (unsigned)(uint8_t)*p);
    }
}

typedef enum open_mode {
    OPEN_FOREIGN, /* read-only, as if never written */
    OPEN_WRITE,
    OPEN_EXISTING, /* the same, but nothing is made */
    OPEN_WATCH     /* read what another process may be writing */
} open_mode;

static int open_by_uri(orr_sqlite *db, const char *path, open_mode mode)
{
    orr_buf uri = {0};
    add_uri(&uri, path);
    orr_buf_text(&uri, mode == OPEN_FOREIGN ? "?immutable=1" : "");
    orr_buf_byte(&uri, 0);
    const int how = mode == OPEN_WRITE      ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                    : mode == OPEN_EXISTING ? SQLITE_OPEN_READWRITE
                                            : SQLITE_OPEN_READONLY;
    const int status = uri.failed
                           ? SQLITE_NOMEM
                           : lib.sqlite3_open_v2((const char *)uri.ptr, &db->db,
                                                 how | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    orr_buf_fini(&uri);
    return status;
}

static void distrust(sqlite3 *db)
{
    lib.sqlite3_extended_result_codes(db, 1);
    lib.sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    lib.sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    lib.sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    lib.sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    lib.sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
}

/* SQLITE_ROW: a plain table of this name exists.  SQLITE_OK: it does not.  Anything else is a
 * fault. */
static int find_table(const orr_sqlite *db, const char *table)
{
    int status = lib.sqlite3_bind_text(db->find_table, 1, table, -1, SQLITE_STATIC);
    if (!status)
        status = lib.sqlite3_step(db->find_table);
    lib.sqlite3_reset(db->find_table);
    return status == SQLITE_DONE ? SQLITE_OK : status;
}

static int look_at_schema(orr_sqlite *db)
{
    const int status = lib.sqlite3_prepare_v2(
        db->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0",
        -1, &db->find_table, NULL);
    return status ? status : find_table(db, "");
}

static orr_code open_any(const char *path, open_mode mode, orr_sqlite **out, orr_error *err)
{
    *out = NULL;
    const orr_where at = orr_where_line(path, 0, 0);
    struct stat about;
    /* A pipe cannot be searched, and opening one waits for its writer. */
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
        return orr_fail(err, ORR_EINPUT, &at, "an SQLite file must be a regular file");
    if (!is_loaded())
        return orr_fail(err, ORR_EIO, &at, "SQLite's library cannot be loaded: %s", why_not);
    orr_sqlite *db = orr_alloc(1, sizeof *db);
    if (!db)
        return orr_no_memory(err);
    memcpy(db->path, at.path, sizeof db->path);
    int status = open_by_uri(db, path, mode);
    if (!status) {
        distrust(db->db);
        lib.sqlite3_busy_timeout(db->db, BUSY_MS);
        /* Opening reads nothing yet: the first use of the schema tells whether this is a
         * database. */
        status = look_at_schema(db);
    }
    if (status) {
        const orr_code code = sqlite_failed(db, status, err);
        orr_sqlite_close(db);
        return code;
    }
    *out = db;
    return ORR_OK;
}

orr_code orr_sqlite_open(const char *path, orr_sqlite **out, orr_error *err)
{
    return open_any(path, OPEN_FOREIGN, out, err);
}

orr_code orr_sqlite_create(const char *path, orr_sqlite **out, orr_error *err)
{
    unlink(path);
    return open_any(path, OPEN_WRITE, out, err);
}

/* NORMAL: a commit is in the log at once and on disk with the next checkpoint, so a crash of the
 * process loses nothing and a power failure at most the latest commits, never the file. */
orr_code orr_sqlite_edit(const char *path, orr_sqlite **out, orr_error *err)
{
    orr_code code = open_any(path, OPEN_WRITE, out, err);
    if (!code)
        code = orr_sqlite_run(*out, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", err);
    if (code) {
        orr_sqlite_close(*out);
        *out = NULL;
    }
    return code;
}

/* For writing if permitted: only then the last to close a file can remove its log. */
orr_code orr_sqlite_watch(const char *path, orr_sqlite **out, orr_error *err)
{
    if (access(path, W_OK) == 0 && open_any(path, OPEN_EXISTING, out, NULL) == ORR_OK)
        return ORR_OK;
    return open_any(path, OPEN_WATCH, out, err);
}

void orr_sqlite_close(orr_sqlite *db)
{
    if (!db)
        return;
    lib.sqlite3_finalize(db->find_table);
    lib.sqlite3_close(db->db);
    orr_free(db);
}

/* ---- the schema ---- */

static bool note_lost(orr_sqlite *db, int status)
{
    db->lost = db->lost ? db->lost : status;
    return false;
}

bool orr_sqlite_has_table(orr_sqlite *db, const char *table)
{
    const int status = find_table(db, table);
    return status == SQLITE_ROW || (status != SQLITE_OK && note_lost(db, status));
}

bool orr_sqlite_has_column(orr_sqlite *db, const char *table, const char *column)
{
    if (!orr_sqlite_has_table(db, table))
        return false;
    const int status = lib.sqlite3_table_column_metadata(db->db, NULL, table, column, NULL, NULL,
                                                         NULL, NULL, NULL);
    /* A column that is not there is a plain error. */
    return status == SQLITE_OK || (status != SQLITE_ERROR && note_lost(db, status));
}

orr_code orr_sqlite_state(const orr_sqlite *db, orr_error *err)
{
    return db->lost ? sqlite_failed(db, db->lost, err) : ORR_OK;
}

/* ---- rows ---- */

orr_code orr_sqlite_select(orr_sqlite *db, const char *sql, orr_sqlite_rows **out, orr_error *err)
{
    *out = NULL;
    const orr_code state = orr_sqlite_state(db, err);
    if (state)
        return state;
    orr_sqlite_rows *rows = orr_alloc(1, sizeof *rows);
    if (!rows)
        return orr_no_memory(err);
    rows->db = db;
    const int status = lib.sqlite3_prepare_v2(db->db, sql, -1, &rows->statement, NULL);
    if (status) {
        orr_sqlite_end(rows);
        return sqlite_failed(db, status, err);
    }
    *out = rows;
    return ORR_OK;
}

orr_code orr_sqlite_next(orr_sqlite_rows *rows, orr_error *err)
{
    if (rows->db->lost)
        return orr_sqlite_state(rows->db, err);
    const int status = lib.sqlite3_step(rows->statement);
    if (status == SQLITE_ROW)
        return ORR_OK;
    return status == SQLITE_DONE ? ORR_END : sqlite_failed(rows->db, status, err);
}

void orr_sqlite_end(orr_sqlite_rows *rows)
{
    if (!rows)
        return;
    lib.sqlite3_finalize(rows->statement);
    orr_free(rows);
}

bool orr_sqlite_is_int(const orr_sqlite_rows *rows, int column)
{
    return lib.sqlite3_column_type(rows->statement, column) == SQLITE_INTEGER;
}

int64_t orr_sqlite_i64(const orr_sqlite_rows *rows, int column, int64_t otherwise)
{
    return orr_sqlite_is_int(rows, column) ? lib.sqlite3_column_int64(rows->statement, column)
                                           : otherwise;
}

orr_str orr_sqlite_text(const orr_sqlite_rows *rows, int column)
{
    if (lib.sqlite3_column_type(rows->statement, column) != SQLITE_TEXT)
        return (orr_str){.ptr = "", .len = 0};
    const char *text = (const char *)lib.sqlite3_column_text(rows->statement, column);
    if (!text) {
        note_lost(rows->db, SQLITE_NOMEM);
        return (orr_str){.ptr = "", .len = 0};
    }
    return (orr_str){.ptr = text, .len = (size_t)lib.sqlite3_column_bytes(rows->statement, column)};
}

orr_span orr_sqlite_blob(const orr_sqlite_rows *rows, int column)
{
    if (lib.sqlite3_column_type(rows->statement, column) != SQLITE_BLOB)
        return (orr_span){0};
    const void *bytes = lib.sqlite3_column_blob(rows->statement, column);
    if (!bytes)
        return (orr_span){0};
    return (orr_span){.ptr = bytes,
                      .len = (size_t)lib.sqlite3_column_bytes(rows->statement, column)};
}

/* ---- writing ---- */

orr_code orr_sqlite_run(orr_sqlite *db, const char *sql, orr_error *err)
{
    const int status = lib.sqlite3_exec(db->db, sql, NULL, NULL, NULL);
    return status ? sqlite_failed(db, status, err) : ORR_OK;
}

static int bind_value(sqlite3_stmt *s, int place, const orr_sqlite_value *v)
{
    if (v->is_int)
        return lib.sqlite3_bind_int64(s, place, v->number);
    if (v->text.ptr && v->text.len <= LONGEST_VALUE)
        return lib.sqlite3_bind_text(s, place, v->text.ptr, (int)v->text.len, SQLITE_STATIC);
    if (v->blob.ptr && v->blob.len <= LONGEST_VALUE)
        return lib.sqlite3_bind_blob(s, place, v->blob.ptr, (int)v->blob.len, SQLITE_STATIC);
    return lib.sqlite3_bind_null(s, place);
}

orr_code orr_sqlite_insert(orr_sqlite_rows *rows,
                           const orr_sqlite_value *values,
                           int count,
                           orr_error *err)
{
    int status = SQLITE_OK;
    for (int i = 0; i < count && !status; i++)
        status = bind_value(rows->statement, i + 1, &values[i]);
    if (!status)
        status = lib.sqlite3_step(rows->statement);
    lib.sqlite3_reset(rows->statement);
    return status == SQLITE_DONE ? ORR_OK : sqlite_failed(rows->db, status, err);
}

orr_code orr_sqlite_restart(orr_sqlite_rows *rows,
                            const orr_sqlite_value *values,
                            int count,
                            orr_error *err)
{
    lib.sqlite3_reset(rows->statement);
    int status = SQLITE_OK;
    for (int i = 0; i < count && !status; i++)
        status = bind_value(rows->statement, i + 1, &values[i]);
    return status ? sqlite_failed(rows->db, status, err) : ORR_OK;
}
