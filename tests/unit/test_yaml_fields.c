/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/yaml.h"

static orr_error err;
static orr_yaml *doc;

static orr_yaml_value open_text(const char *text)
{
    CHECK_OK(orr_yaml_open((orr_span){(const uint8_t *)text, strlen(text)}, "f.yml", &doc, &err),
             &err);
    return orr_yaml_root(doc);
}

TEST(test_yaml_fields__values_are_taken_with_their_units)
{
    const orr_yaml_value m =
        open_text("n: 12\nt: 1.5us\nr: 400Gb/s\nb: true\nx: 0.25\nw: two\nzero: 0\n");
    static const char *const words[] = {"one", "two", NULL};
    uint64_t n = 0;
    double t = 0, r = 0, x = 0, zero = 1;
    bool b = false;
    unsigned w = 0;
    CHECK_OK(orr_yaml_take_u64(m, "n", 1, 12, &n, &err), &err);
    CHECK_OK(orr_yaml_take_ns(m, "t", &t, &err), &err);
    CHECK_OK(orr_yaml_take_ns(m, "zero", &zero, &err), &err);
    CHECK_OK(orr_yaml_take_rate(m, "r", &r, &err), &err);
    CHECK_OK(orr_yaml_take_bool(m, "b", &b, &err), &err);
    CHECK_OK(orr_yaml_take_number(m, "x", 0, 1, &x, &err), &err);
    CHECK_OK(orr_yaml_take_word(m, "w", words, &w, &err), &err);
    CHECK(n == 12 && t == 1500 && r == 50 && b && x == 0.25 && w == 1 && zero == 0);
    orr_yaml_close(doc);
}

TEST(test_yaml_fields__what_is_missing_or_wrong_stays)
{
    const orr_yaml_value m = open_text("n: 13\n");
    uint64_t n = 5;
    double x = 7;
    CHECK_OK(orr_yaml_take_number(m, "x", 0, 1, &x, &err), &err);
    CHECK_CODE(orr_yaml_take_u64(m, "n", 1, 12, &n, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:1:4: n: \"13\" is not a whole number from 1 to 12");
    CHECK(n == 5 && x == 7);
    orr_yaml_close(doc);
}

TEST(test_yaml_fields__errors_say_what_was_expected)
{
    const orr_yaml_value m = open_text("t: 5\nr: [1]\nb: 2\nx: nan\n");
    double d = 0;
    bool b = false;
    orr_yaml_value v;
    CHECK_CODE(orr_yaml_take_ns(m, "t", &d, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:1:4: t: \"5\" is not a time with a unit, as 500ns");
    CHECK_CODE(orr_yaml_take_rate(m, "r", &d, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:2:4: r: expected a rate above 0 with a unit, as 400Gb/s or 50GB/s");
    CHECK_CODE(orr_yaml_take_bool(m, "b", &b, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "b: \"2\" is not false or true");
    CHECK_CODE(orr_yaml_take_number(m, "x", 0, 1, &d, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "x: \"nan\" is not a number from 0 to 1");
    CHECK_CODE(orr_yaml_need(m, "none", &v, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:1:1: the key \"none\" is missing");
    orr_yaml_close(doc);
}

TEST(test_yaml_fields__only_known_keys_once)
{
    static const char *const keys[] = {"a", "b", NULL};
    CHECK_OK(orr_yaml_check_keys(open_text("{b: 1, a: 2}"), keys, &err), &err);
    orr_yaml_close(doc);
    CHECK_CODE(orr_yaml_check_keys(open_text("{b: 1, c: 2}"), keys, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:1:8: unknown key \"c\"");
    orr_yaml_close(doc);
    CHECK_CODE(orr_yaml_check_keys(open_text("{b: 1, a: 2, b: 3}"), keys, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.yml:1:14: duplicate key \"b\"");
    orr_yaml_close(doc);
    CHECK_CODE(orr_yaml_check_keys(open_text("[a]"), keys, &err), ORR_EINPUT, &err);
    orr_yaml_close(doc);
}

TEST(test_yaml_fields__ranges)
{
    uint64_t from, to;
    CHECK(orr_text_range(orr_str_of("12"), &from, &to) && from == 12 && to == 12);
    CHECK(orr_text_range(orr_str_of("3-7"), &from, &to) && from == 3 && to == 7);
    CHECK(!orr_text_range(orr_str_of(""), &from, &to));
    CHECK(!orr_text_range(orr_str_of("-3"), &from, &to));
    CHECK(!orr_text_range(orr_str_of("3-"), &from, &to));
    CHECK(!orr_text_range(orr_str_of("1-2-3"), &from, &to));
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_yaml_fields__values_are_taken_with_their_units),
        RUN(test_yaml_fields__what_is_missing_or_wrong_stays),
        RUN(test_yaml_fields__errors_say_what_was_expected),
        RUN(test_yaml_fields__only_known_keys_once),
        RUN(test_yaml_fields__ranges),
    };
    return RUN_ALL(tests);
}
