/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
#include "check.h"
#include "compat/stage/expr.h"

#include <math.h>

static stg_ratio ratio(int64_t num, int64_t den)
{
    stg_ratio r;
    CHECK(stg_ratio_make(num, den, &r));
    return r;
}

TEST(test_ratio__is_kept_in_lowest_terms_with_its_sign_above)
{
    const stg_ratio r = ratio(6, -8);
    CHECK_EQ(r.num, -3);
    CHECK_EQ(r.den, 4);
    CHECK_EQ(ratio(0, -5).den, 1);
}

TEST(test_ratio__has_no_zero_below)
{
    stg_ratio r;
    CHECK(!stg_ratio_make(1, 0, &r));
    CHECK(!stg_ratio_power(stg_ratio_of(0), -1, &r));
}

TEST(test_ratio__thirds_add_up_and_multiply_exactly)
{
    stg_ratio r;
    CHECK(stg_ratio_mul(ratio(10, 3), stg_ratio_of(3), &r));
    CHECK(r.num == 10 && r.den == 1);
    CHECK(stg_ratio_add(ratio(1, 3), ratio(1, 6), &r));
    CHECK(r.num == 1 && r.den == 2);
    CHECK(stg_ratio_power(ratio(2, 3), -3, &r));
    CHECK(r.num == 27 && r.den == 8);
}

/* 2^120 * 2^10 does not fit into 127 bits; 2^120 / 2^10 * 2^10 does. */
TEST(test_ratio__refuses_what_does_not_fit)
{
    stg_ratio big, r;
    CHECK(stg_ratio_power(stg_ratio_of(2), 120, &big));
    CHECK(!stg_ratio_mul(big, stg_ratio_of(1024), &r));
    CHECK(stg_ratio_mul(big, ratio(1, 1024), &r));
    CHECK(stg_ratio_mul(r, stg_ratio_of(1024), &r));
    CHECK(r.num == big.num && r.den == 1);
    CHECK(!stg_ratio_power(stg_ratio_of(3), 100, &r));
}

TEST(test_ratio__small_ones_become_the_double_of_a_division)
{
    for (int64_t num = -40; num <= 40; num++) {
        for (int64_t den = 1; den <= 40;
             den++) /* both sides are exact: IEEE division rounds once */
            CHECK(stg_ratio_double(ratio(num, den)) == (double)num / (double)den);
    }
}

/* Above 2^53 every second integer, then every fourth, is a double; halves go to the even one. */
TEST(test_ratio__large_ones_go_to_the_nearest_double_and_ties_to_the_even_one)
{
    const int64_t p = INT64_C(1) << 53;
    CHECK(stg_ratio_double(stg_ratio_of(p + 1)) == (double)p);       /* a tie: down to even */
    CHECK(stg_ratio_double(stg_ratio_of(p + 3)) == (double)(p + 4)); /* a tie: up to even */
    CHECK(stg_ratio_double(ratio(2 * p + 3, 2)) == (double)(p + 2)); /* just above the tie */
    CHECK(stg_ratio_double(ratio(3 * p + 2, 3)) == (double)p);       /* just below it */
    CHECK(stg_ratio_double(stg_ratio_of(INT64_MAX)) == 0x1p63);
    CHECK(stg_ratio_double(stg_ratio_of(-p - 3)) == -(double)(p + 4));
}

TEST(test_ratio__takes_numbers_past_64_bits)
{
    stg_ratio r;
    CHECK(stg_ratio_power(stg_ratio_of(10), 38, &r));
    CHECK(stg_ratio_double(r) == 1e38);
    CHECK(stg_ratio_power(stg_ratio_of(10), -30, &r));
    CHECK(stg_ratio_double(r) == 1e-30);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_ratio__is_kept_in_lowest_terms_with_its_sign_above),
        RUN(test_ratio__has_no_zero_below),
        RUN(test_ratio__thirds_add_up_and_multiply_exactly),
        RUN(test_ratio__refuses_what_does_not_fit),
        RUN(test_ratio__small_ones_become_the_double_of_a_division),
        RUN(test_ratio__large_ones_go_to_the_nearest_double_and_ties_to_the_even_one),
        RUN(test_ratio__takes_numbers_past_64_bits),
    };
    return RUN_ALL(tests);
}
