/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "sweep/expression.h"

#include "base/text/text.h"

static orr_error err;

static const char *const names[] = {"tp", "pp", "micro-batch", "machine", "none", NULL};
static const swp_value values[] = {{SWP_NUMBER, 8, {0}},
                                   {SWP_NUMBER, 3, {0}},
                                   {SWP_NUMBER, 2, {0}},
                                   {SWP_TEXT, 0, {"dgx", 3}},
                                   {SWP_NONE, 0, {0}}};

static swp_value evaluate(const char *text)
{
    swp_expr *e;
    CHECK_OK(swp_expr_parse(orr_str_of(text), NULL, &e, &err), &err);
    CHECK_OK(swp_expr_bind(e, names, &err), &err);
    const swp_value v = swp_expr_evaluate(e, values);
    swp_expr_free(e);
    return v;
}

static double number(const char *text)
{
    const swp_value v = evaluate(text);
    CHECK_EQ(v.kind, SWP_NUMBER);
    return v.number;
}

static orr_code parse_code(const char *text)
{
    swp_expr *e;
    const orr_where w = orr_where_line("s.yaml", 7, 5);
    const orr_code code = swp_expr_parse(orr_str_of(text), &w, &e, &err);
    swp_expr_free(e);
    return code;
}

TEST(test_sweep_expression__has_the_precedence_of_python)
{
    CHECK(number("1 + 2 * 3") == 7);
    CHECK(number("(1 + 2) * 3") == 9);
    CHECK(number("-2 ** 2") == -4); /* the power first */
    CHECK(number("2 ** 3 ** 2") == 512);
    CHECK(number("7 // 2 * 2") == 6);
    CHECK(number("-7 // 2") == -4);
    CHECK(number("-7 % 4") == 1);
    CHECK(number("10 - 2 - 3") == 5);
    CHECK(number("not 1 == 2") == 1);
    CHECK(number("1 or 0 and 0") == 1);
    CHECK(number("1 < tp <= 8") == 1);
    CHECK(number("1 < tp < 8") == 0);
    CHECK(number("5 if tp > 4 else 6") == 5);
    CHECK(number("5 if tp > 40 else 6 if pp == 3 else 7") == 6);
}

TEST(test_sweep_expression__knows_names_texts_and_functions)
{
    CHECK(number("tp * pp") == 24);
    CHECK(number("micro_batch * 2") == 4);
    CHECK(number("machine == 'dgx'") == 1);
    CHECK(number("machine != \"dgx\"") == 0);
    CHECK(number("machine == 8") == 0);
    CHECK(number("min(tp, pp, 2) + max(1, pp)") == 5);
    CHECK(number("log2(tp) + sqrt(16) + floor(2.5) + ceil(2.5) + abs(-1)") == 13);
    CHECK(number("1e3 + 0.5") == 1000.5);
}

TEST(test_sweep_expression__what_has_no_answer_is_none)
{
    CHECK_EQ(evaluate("1 / 0").kind, SWP_NONE);
    CHECK_EQ(evaluate("machine * 2").kind, SWP_NONE);
    CHECK_EQ(evaluate("none + 1").kind, SWP_NONE);
    CHECK_EQ(evaluate("machine < 3").kind, SWP_NONE);
    /* One side decides. */
    CHECK(number("tp == 9 and none == 1") == 0);
    CHECK(number("tp == 8 or none == 1") == 1);
    CHECK_EQ(evaluate("tp == 8 and none == 1").kind, SWP_NONE);
}

TEST(test_sweep_expression__says_where_it_is_wrong)
{
    CHECK_EQ(parse_code("tp * (2 + "), ORR_EINPUT);
    CHECK_EQ(err.where.line, 7);
    CHECK_EQ(err.where.column, 15); /* ten characters after column 5 */
    CHECK_EQ(parse_code("tp ** * 2"), ORR_EINPUT);
    CHECK_EQ(err.where.column, 11);
    CHECK_EQ(parse_code("tp tp"), ORR_EINPUT);
    CHECK_EQ(err.where.column, 8);
    CHECK_EQ(parse_code(""), ORR_EINPUT);
    CHECK_EQ(parse_code("'abc"), ORR_EINPUT);
    CHECK_EQ(parse_code("1 if 2"), ORR_EINPUT);
    CHECK_EQ(parse_code("min(1)"), ORR_EINPUT);
    CHECK_EQ(parse_code("1.2.3"), ORR_EINPUT);
    CHECK_EQ(parse_code("12abc"), ORR_EINPUT);
}

TEST(test_sweep_expression__refuses_depth_not_by_crashing)
{
    char deep[4001];
    memset(deep, '(', 4000);
    deep[4000] = 0;
    CHECK_EQ(parse_code(deep), ORR_EINPUT);
    memset(deep, '-', 4000);
    CHECK_EQ(parse_code(deep), ORR_EINPUT);
}

TEST(test_sweep_expression__suggests_names)
{
    swp_expr *e;
    CHECK_OK(swp_expr_parse(orr_str_of("machin == 3"), NULL, &e, &err), &err);
    CHECK_EQ(swp_expr_bind(e, names, &err), ORR_EINPUT);
    CHECK(strstr(err.message, "did you mean 'machine'?"));
    swp_expr_free(e);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_expression__has_the_precedence_of_python),
        cmocka_unit_test(test_sweep_expression__knows_names_texts_and_functions),
        cmocka_unit_test(test_sweep_expression__what_has_no_answer_is_none),
        cmocka_unit_test(test_sweep_expression__says_where_it_is_wrong),
        cmocka_unit_test(test_sweep_expression__refuses_depth_not_by_crashing),
        cmocka_unit_test(test_sweep_expression__suggests_names),
    };
    return RUN_ALL(tests);
}
