/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* Expected texts are those of the specification's sections 2.2 and 2.3, or worked out by its
 * rules. */
#include "check.h"
#include "compat/stage/expr.h"

static stg_algebra a;
static orr_error err;
static orr_where where;

static int begin(void **state)
{
    (void)state;
    where = orr_where_line("t.csv", 7, 3);
    return stg_algebra_init(&a) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    stg_algebra_fini(&a);
    return 0;
}

static stg_expr parse(const char *text)
{
    stg_expr x;
    CHECK_OK(stg_expr_parse(&a, orr_str_of(text), &where, &x, &err), &err);
    return x;
}

static const char *text_of(stg_expr x)
{
    return stg_expr_text(&a, x).ptr; /* ends in NUL: it is interned */
}

static void check_canonical(const char *text, const char *want)
{
    CHECK_TEXT(text_of(parse(text)), want);
}

TEST(test_expr__prints_terms_as_the_format_has_them)
{
    check_canonical("Batch/dp", "Batch/dp");
    check_canonical("(Seq/cp)/tp", "Seq/(cp*tp)");
    check_canonical("Dmodel/1", "Dmodel");
    check_canonical("(Head+2*Head)/tp", "3*Head/tp");
    check_canonical("(2*KVHead+Head)/tp", "(Head + 2*KVHead)/tp");
    check_canonical("(Seq/cp)*KExperts/(Experts*tp*ep)", "KExperts*Seq/(Experts*cp*ep*tp)");
    check_canonical("1/1", "1");
    check_canonical("1/cp", "1/cp");
    check_canonical("Dmodel*Dmodel", "Dmodel**2");
    check_canonical("a/(2*b**3*3)", "a/(6*b**3)");
    check_canonical("tp/tp", "1");
    check_canonical("a - a", "0");
}

/* The order of terms: exponents, over all symbols in the order of their names, go down. */
TEST(test_expr__orders_sums_by_descending_exponents)
{
    check_canonical("4*Dmodel**2/tp + 2*Dff*Dmodel/tp", "2*Dff*Dmodel/tp + 4*Dmodel**2/tp");
    check_canonical("Dmodel*Dmodel/Head*(Head+2*KVHead)/tp + Dmodel**2/tp + 3*Dmodel*Dff/tp",
                    "3*Dff*Dmodel/tp + Dmodel**2/tp + Dmodel**2*(Head + 2*KVHead)/(Head*tp)");
    check_canonical("1 + x + x**2 + 1/x", "x**2 + x + 1 + 1/x");
    check_canonical("b + a", "a + b");
}

TEST(test_expr__keeps_sums_as_factors_and_spreads_numbers_over_them)
{
    check_canonical("2*(a+b)", "2*a + 2*b");
    check_canonical("(a+b)*x", "x*(a + b)");
    check_canonical("(a+b)/x*x", "a + b");
    check_canonical("(a+b)*(b+a)", "(a + b)**2");
    check_canonical("(a+b)*(a-b)", "(a + b)*(a - b)");
    check_canonical("x/(a+b)", "x/(a + b)");
    check_canonical("(a+b)/(b+a)", "1");
    check_canonical("(2*Dff*Dmodel/tp + 4*Dmodel**2/tp)/dp",
                    "(2*Dff*Dmodel/tp + 4*Dmodel**2/tp)/dp");
}

TEST(test_expr__reads_pythons_precedence)
{
    check_canonical("-a**2", "-a**2");
    check_canonical("2*-a", "-2*a");
    check_canonical("a - -b", "a + b");
    check_canonical("a/b/c", "a/(b*c)");
    check_canonical("a/b*c", "a*c/b");
    check_canonical("2**3*a", "8*a");
    check_canonical("a**-2", "1/a**2");
    check_canonical("a - b + c - d", "a - b + c - d");
}

TEST(test_expr__reads_numbers_exactly)
{
    check_canonical("5.0", "5");
    check_canonical("1.00000000000000", "1");
    check_canonical("0.25*a", "a/4");
    check_canonical(".5", "1/2");
    check_canonical("1.50*x", "3*x/2");
    check_canonical("0", "0");
    check_canonical("000012", "12");
}

TEST(test_expr__gives_equal_expressions_the_same_number)
{
    CHECK_EQ_U(parse("Seq/(cp*tp)"), parse("(Seq/cp)/tp"));
    CHECK_EQ_U(parse("(Head+2*KVHead)/tp"), parse("(2*KVHead + Head)*(1/tp)"));
    CHECK(parse("a/b") != parse("b/a"));
    CHECK_EQ_U(parse("1"), ORR__ONE);
    CHECK_EQ_U(parse("x - x"), ORR__ZERO);
}

static stg_expr replace(const char *text, const char *symbol, const char *by)
{
    return stg_expr_replace(&a, parse(text), stg_symbol(&a, orr_str_of(symbol)), parse(by));
}

TEST(test_expr__replaces_symbols)
{
    CHECK_TEXT(text_of(replace("Batch/dp", "Batch", "MicroBatch")), "MicroBatch/dp");
    CHECK_TEXT(text_of(replace("(Head + 2*KVHead)/tp", "tp", "1")), "Head + 2*KVHead");
    CHECK_TEXT(text_of(replace("(Head + 2*KVHead)/tp", "KVHead", "Head")), "3*Head/tp");
    CHECK_TEXT(text_of(replace("x*(a+b)/fsdp", "fsdp", "dp")), "x*(a + b)/dp");
    CHECK_TEXT(text_of(replace("Seq/cp", "Seq", "Seq*KExperts/(Experts*ep)")),
               "KExperts*Seq/(Experts*cp*ep)");
    CHECK_TEXT(text_of(replace("a", "b", "c")), "a");
}

/* Values of symbols in the order in which they were first met. */
static double value(const char *text, const int64_t *values, size_t count)
{
    stg_ratio v = {0, 1};
    CHECK(stg_expr_value(&a, parse(text), values, count, &v));
    return stg_ratio_double(v);
}

TEST(test_expr__is_evaluated_exactly)
{
    parse("b");
    parse("s");
    parse("t"); /* numbers 0, 1, 2 */
    const int64_t values[] = {10, 100, 3};
    CHECK(value("b/t*t", values, 3) == 10);
    CHECK(value("b*s/t", values, 3) == 1000.0 / 3);
    CHECK(value("(b + s)**2/t - s", values, 3) == 11800.0 / 3); /* (110^2 - 300) / 3 */
    CHECK(value("1/(b - t)", values, 3) == 1.0 / 7);
    CHECK(value("7", values, 3) == 7);
}

TEST(test_expr__says_when_a_value_cannot_be)
{
    const int64_t values[] = {3, 3};
    stg_ratio v;
    const stg_expr zero_below = parse("1/(p - q)"), unknown = parse("r"),
                   large = parse("p**64*q**30"); /* 3^94, which has 149 bits */
    CHECK(!stg_expr_value(&a, zero_below, values, 2, &v));
    CHECK(!stg_expr_value(&a, unknown, values, 2, &v));
    CHECK(!stg_expr_value(&a, large, values, 2, &v));
}

static void check_bad(const char *text, const char *says)
{
    stg_expr x;
    CHECK_CODE(stg_expr_parse(&a, orr_str_of(text), &where, &x, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.csv:7:3: ");
    CHECK_SAYS(&err, says);
}

TEST(test_expr__names_what_it_cannot_read)
{
    check_bad("", "ends where a name, a number or '(' is expected");
    check_bad("a+", "'a+' ends where a name, a number or '(' is expected");
    check_bad("(a", "ends where ')' is expected");
    check_bad("a b", "'b' at character 3 where an operator or the end is expected");
    check_bad("a^2", "'^' at character 2");
    check_bad("a**b", "'b' at character 4 where a whole number is expected");
    check_bad("f(x)", "'(' at character 2");
    check_bad("1234567890123456789", "more than 18 digits");
}

TEST(test_expr__counts_parentheses)
{
    char text[200];
    memset(text, '(', 65);
    memcpy(text + 65, "a", 2);
    check_bad(text, "less deep than 64 parentheses");
}

TEST(test_expr__refuses_numbers_and_exponents_past_their_limits)
{
    check_bad("999999999999999999*999999999999999999", "a number or an exponent is too large");
}

TEST(test_expr__refuses_large_exponents)
{
    check_bad("a**65", "a number or an exponent is too large");
}

TEST(test_expr__refuses_division_by_zero)
{
    check_bad("1/(a-a)", "a division by zero");
}

TEST(test_expr__refuses_more_than_64_symbols)
{
    char name[16];
    stg_expr x = ORR__ZERO;
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "s%d", i);
        x = parse(name);
    }
    CHECK_TEXT(text_of(x), "s63");
    check_bad("s64", "more than 64 different symbols");
}

#define SET(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const CMUnitTest tests[] = {
        SET(test_expr__prints_terms_as_the_format_has_them),
        SET(test_expr__orders_sums_by_descending_exponents),
        SET(test_expr__keeps_sums_as_factors_and_spreads_numbers_over_them),
        SET(test_expr__reads_pythons_precedence),
        SET(test_expr__reads_numbers_exactly),
        SET(test_expr__gives_equal_expressions_the_same_number),
        SET(test_expr__replaces_symbols),
        SET(test_expr__is_evaluated_exactly),
        SET(test_expr__says_when_a_value_cannot_be),
        SET(test_expr__names_what_it_cannot_read),
        SET(test_expr__counts_parentheses),
        SET(test_expr__refuses_numbers_and_exponents_past_their_limits),
        SET(test_expr__refuses_large_exponents),
        SET(test_expr__refuses_division_by_zero),
        SET(test_expr__refuses_more_than_64_symbols),
    };
    return RUN_ALL(tests);
}
