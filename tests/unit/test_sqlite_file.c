/* SPDX-License-Identifier: Apache-2.0 */
/* room: nsight */
/* test_sqlite_file.c - what is written is read; what is not a plain table is not there; damage is
 * told, never met. */
#include "check.h"

#include "base/formats/sqlite_file.h"
#include "base/text/text.h"

static orr_error err;

static void write_file(const char *path, const char *sql)
{
    orr_sqlite *db;
    CHECK_OK(orr_sqlite_create(path, &db, &err), &err);
    CHECK_OK(orr_sqlite_run(db, sql, &err), &err);
    orr_sqlite_close(db);
}

TEST(test_sqlite_file__values_come_back)
{
    orr_sqlite *db;
    orr_sqlite_rows *rows;
    const uint8_t blob[] = {0, 1, 0};
    CHECK_OK(orr_sqlite_create("a?b %41.sqlite", &db, &err),
             &err); /* what a URI would take for something else */
    CHECK_OK(orr_sqlite_run(db, "CREATE TABLE t (a, b, c, d)", &err), &err);
    CHECK_OK(orr_sqlite_select(db, "INSERT INTO t VALUES (?, ?, ?, ?)", &rows, &err), &err);
    const orr_sqlite_value v[] = {
        {.is_int = true, .number = INT64_MIN}, {.text = {"x'; DROP", 8}}, {.blob = {blob, 3}}, {0}};
    CHECK_OK(orr_sqlite_insert(rows, v, 4, &err), &err);
    orr_sqlite_end(rows);
    orr_sqlite_close(db);

    CHECK_OK(orr_sqlite_open("a?b %41.sqlite", &db, &err), &err);
    CHECK_OK(orr_sqlite_select(db, "SELECT a, b, c, d FROM t", &rows, &err), &err);
    CHECK_OK(orr_sqlite_next(rows, &err), &err);
    CHECK(orr_sqlite_i64(rows, 0, 0) == INT64_MIN && orr_sqlite_is_int(rows, 0));
    CHECK(orr_str_is(orr_sqlite_text(rows, 1), "x'; DROP"));
    CHECK_EQ_U(orr_sqlite_blob(rows, 2).len, 3);
    CHECK(orr_sqlite_i64(rows, 3, 5) == 5 && orr_sqlite_text(rows, 0).len == 0 &&
          orr_sqlite_blob(rows, 1).len == 0);
    CHECK(orr_sqlite_next(rows, &err) == ORR_END);
    orr_sqlite_end(rows);
    orr_sqlite_close(db);
}

TEST(test_sqlite_file__only_plain_tables_are_there)
{
    orr_sqlite *db;
    write_file("v.sqlite",
               "CREATE TABLE t (a INTEGER, [end] TEXT); CREATE VIEW v AS SELECT 1 AS a");
    CHECK_OK(orr_sqlite_open("v.sqlite", &db, &err), &err);
    CHECK(orr_sqlite_has_table(db, "t") && !orr_sqlite_has_table(db, "v") &&
          !orr_sqlite_has_table(db, "x"));
    CHECK(orr_sqlite_has_column(db, "t", "end") && orr_sqlite_has_column(db, "t", "A"));
    CHECK(!orr_sqlite_has_column(db, "t", "b") && !orr_sqlite_has_column(db, "v", "a"));
    orr_sqlite_close(db);
}

TEST(test_sqlite_file__a_file_that_is_read_is_not_written)
{
    orr_sqlite *db;
    write_file("r.sqlite", "CREATE TABLE t (a)");
    CHECK_OK(orr_sqlite_open("r.sqlite", &db, &err), &err);
    CHECK(orr_sqlite_run(db, "INSERT INTO t VALUES (1)", &err) != ORR_OK);
    orr_sqlite_close(db);
    CHECK(access("r.sqlite-journal", F_OK) != 0 && access("r.sqlite-wal", F_OK) != 0);
}

static void cut_file(const char *path, long size)
{
    CHECK(truncate(path, size) == 0);
}

TEST(test_sqlite_file__damage_is_bad_input)
{
    orr_sqlite *db;
    FILE *f = fopen("text.sqlite", "w");
    CHECK(
        f &&
        fputs(
            "this is no database, but long enough to be taken for one, if one does not look at it very "
            "closely, as somebody might",
            f) >= 0);
    fclose(f);
    CHECK_CODE(orr_sqlite_open("text.sqlite", &db, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "not an SQLite file");
    CHECK(!db);
    CHECK_CODE(orr_sqlite_open("nowhere.sqlite", &db, &err), ORR_EIO, &err);
    for (long size = 16; size < 12288; size += 508) {
        write_file(
            "cut.sqlite",
            "CREATE TABLE t (a); WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
            "INSERT INTO t SELECT 'a text of some length' FROM n");
        cut_file("cut.sqlite", size);
        orr_sqlite_rows *rows = NULL;
        orr_code code = orr_sqlite_open("cut.sqlite", &db, &err);
        if (!code)
            code = orr_sqlite_select(db, "SELECT a FROM t", &rows, &err);
        while (!code)
            code = orr_sqlite_next(rows, &err);
        CHECK(code == ORR_EINPUT);
        CHECK(strstr(err.where.path, "cut.sqlite"));
        orr_sqlite_end(rows);
        orr_sqlite_close(db);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_sqlite_file__values_come_back),
        RUN(test_sqlite_file__only_plain_tables_are_there),
        RUN(test_sqlite_file__a_file_that_is_read_is_not_written),
        RUN(test_sqlite_file__damage_is_bad_input),
    };
    return RUN_ALL(tests);
}
