/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/csv.h"
#include "base/text/text.h"

static orr_error err;
static orr_csv csv;
static orr_csv_row row;

static void begin(const char *text)
{
    orr_csv_init(&csv, (orr_span){(const uint8_t *)text, strlen(text)}, "t.csv");
}

static bool field_is(size_t i, const char *text, uint32_t line, uint32_t column)
{
    const orr_csv_field *f = &row.fields[i];
    return orr_str_is(f->text, text) && f->line == line && f->column == column;
}

TEST(test_csv__fields_have_their_places)
{
    begin("a,bc, d \n12 ,\t,x");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 3);
    CHECK(field_is(0, "a", 1, 1) && field_is(1, "bc", 1, 3) && field_is(2, "d", 1, 7));
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.line, 2);
    CHECK(field_is(0, "12", 2, 1) && field_is(1, "", 2, 6) && field_is(2, "x", 2, 7));
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_END, &err);
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_END, &err);
    orr_csv_fini(&csv);
}

TEST(test_csv__tabs_may_separate)
{
    begin("a, b\t\tc \n\"x\ty\" \t1\n");
    csv.separator = '\t';
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 3);
    CHECK(field_is(0, "a, b", 1, 1) && field_is(1, "", 1, 6) && field_is(2, "c", 1, 7));
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 2);
    CHECK(field_is(0, "x\ty", 2, 1) && field_is(1, "1", 2, 8));
    orr_csv_fini(&csv);
}

TEST(test_csv__comma_at_the_end_is_one_more_field)
{
    begin("a,b,\nc\n,\n");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 3);
    CHECK(field_is(2, "", 1, 5));
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 1);
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 2);
    orr_csv_fini(&csv);
}

TEST(test_csv__blank_and_comment_lines_are_skipped_and_counted)
{
    begin("\xEF\xBB\xBF# head\n\n  \t \r\n  # more\na,b\r\n#x");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 2);
    CHECK(field_is(0, "a", 5, 1) && field_is(1, "b", 5, 3));
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_END, &err);
    orr_csv_fini(&csv);
}

TEST(test_csv__quotes_hold_commas_and_quotes)
{
    begin("\"a, b\" ,\"say \"\"hi\"\"\",\"\",\" x \"\n");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_EQ_U(row.count, 4);
    CHECK(field_is(0, "a, b", 1, 1) && field_is(1, "say \"hi\"", 1, 9) && field_is(2, "", 1, 22) &&
          field_is(3, " x ", 1, 25));
    CHECK(orr_str_is(row.fields[0].raw, "\"a, b\" ") && orr_str_is(row.fields[2].raw, "\"\""));
    orr_csv_fini(&csv);
}

TEST(test_csv__quotes_that_do_not_close_are_refused_where_they_open)
{
    begin("a,\"b\nc\"\n");
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.csv:1:3: this quoted field has no end on its line");
    orr_csv_fini(&csv);
    begin("x\n \"b\"c,d\n");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.csv:2:2: expected a comma after this quoted field");
    orr_csv_fini(&csv);
}

TEST(test_csv__numbers_are_checked)
{
    uint64_t n = 7;
    begin("12,x,0,99999999999999999999");
    CHECK_OK(orr_csv_next(&csv, &row, &err), &err);
    CHECK_OK(orr_csv_u64(&csv, &row.fields[0], "width", 1, 12, &n, &err), &err);
    CHECK_EQ_U(n, 12);
    for (size_t i = 1; i < 4; i++)
        CHECK_CODE(orr_csv_u64(&csv, &row.fields[i], "width", 1, 12, &n, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err,
               "t.csv:1:8: width: \"99999999999999999999\" is not a whole number from 1 to 12");
    CHECK_EQ_U(n, 12);
    orr_csv_fini(&csv);
}

TEST(test_csv__nothing_has_no_rows)
{
    begin("");
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_END, &err);
    orr_csv_fini(&csv);
    orr_csv_init(&csv, (orr_span){NULL, 0}, "t.csv");
    CHECK_CODE(orr_csv_next(&csv, &row, &err), ORR_END, &err);
    orr_csv_fini(&csv);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_csv__fields_have_their_places),
        RUN(test_csv__tabs_may_separate),
        RUN(test_csv__comma_at_the_end_is_one_more_field),
        RUN(test_csv__blank_and_comment_lines_are_skipped_and_counted),
        RUN(test_csv__quotes_hold_commas_and_quotes),
        RUN(test_csv__quotes_that_do_not_close_are_refused_where_they_open),
        RUN(test_csv__numbers_are_checked),
        RUN(test_csv__nothing_has_no_rows),
    };
    return RUN_ALL(tests);
}
