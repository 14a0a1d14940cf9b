/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/rng.h"

/* The first numbers of the authors' reference programs. */
TEST(test_rng__splitmix64_gives_the_published_numbers)
{
    uint64_t from = 1234567;
    CHECK_EQ_U(orr_splitmix64(&from), 6457827717110365317u);
    CHECK_EQ_U(orr_splitmix64(&from), 3203168211198807973u);
    CHECK_EQ_U(orr_splitmix64(&from), 9817491932198370423u);
}

TEST(test_rng__xoshiro_gives_the_published_numbers)
{
    orr_rng r = {.s = {1, 2, 3, 4}};
    CHECK_EQ_U(orr_rng_next(&r), 11520); /* rotl(2 * 5, 7) * 9 */
    CHECK_EQ_U(orr_rng_next(&r), 0);
    CHECK_EQ_U(orr_rng_next(&r), 1509978240);
    CHECK_EQ_U(orr_rng_next(&r), 1215971899390074240u);
}

TEST(test_rng__streams_differ_and_repeat)
{
    orr_rng a, b, c;
    orr_rng_init(&a, 7, 0);
    orr_rng_init(&b, 7, 1);
    orr_rng_init(&c, 7, 1);
    for (int i = 0; i < 100; i++) {
        const uint64_t from_b = orr_rng_next(&b);
        CHECK(orr_rng_next(&a) != from_b);
        CHECK_EQ_U(orr_rng_next(&c), from_b);
    }
}

TEST(test_rng__below_is_even)
{
    orr_rng r;
    unsigned seen[6] = {0};
    orr_rng_init(&r, 1, 0);
    for (int i = 0; i < 60000; i++) {
        const uint64_t v = orr_rng_below(&r, 6);
        CHECK(v < 6);
        seen[v]++;
    }
    for (int i = 0; i < 6; i++) /* 10000 each; 5 standard deviations are 456 */
        CHECK(seen[i] > 9500 && seen[i] < 10500);
    CHECK_EQ_U(orr_rng_below(&r, 1), 0);
    for (int i = 0; i < 100; i++)
        CHECK(orr_rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

TEST(test_rng__double_is_below_one)
{
    orr_rng r;
    double sum = 0;
    orr_rng_init(&r, 2, 0);
    for (int i = 0; i < 100000; i++) {
        const double v = orr_rng_double(&r);
        CHECK(v >= 0 && v < 1);
        sum += v;
    }
    CHECK(sum > 49500 && sum < 50500); /* 5 standard deviations are 456 */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_rng__splitmix64_gives_the_published_numbers),
        RUN(test_rng__xoshiro_gives_the_published_numbers),
        RUN(test_rng__streams_differ_and_repeat),
        RUN(test_rng__below_is_even),
        RUN(test_rng__double_is_below_one),
    };
    return RUN_ALL(tests);
}
