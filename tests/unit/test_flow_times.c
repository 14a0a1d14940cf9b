/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow_times.c - percentiles of flow times: exact for few flows, within 1 % for many, in
 * bounded memory. */
#include "check.h"

#include "models/network/packet/engine/fab_parts.h"

static uint64_t at(const fab_spread *s, unsigned permille)
{
    return fab_spread_at(&s, 1, permille);
}

/* Nearest rank: of ten values 50 % is the fifth, 95 % and 99 % the tenth. */
TEST(test_flow_times__few_values_are_exact)
{
    fab_spread s = {0};
    for (uint64_t i = 1; i <= 10; i++)
        CHECK(fab_spread_add(&s, i * 1000003));
    CHECK_EQ_U(at(&s, 0), 1000003);
    CHECK_EQ_U(at(&s, 100), 1000003);
    CHECK_EQ_U(at(&s, 101), 2 * 1000003);
    CHECK_EQ_U(at(&s, 500), 5 * 1000003);
    CHECK_EQ_U(at(&s, 950), 10 * 1000003);
    CHECK_EQ_U(at(&s, 1000), 10 * 1000003);
    fab_spread_fini(&s);
}

/* 1000000 and 1000001 lie in one bin. */
TEST(test_flow_times__two_in_a_bin_are_told_apart)
{
    fab_spread s = {0};
    CHECK(fab_spread_add(&s, 1000001));
    CHECK(fab_spread_add(&s, 1000000));
    CHECK_EQ_U(at(&s, 500), 1000000);
    CHECK_EQ_U(at(&s, 1000), 1000001);
    fab_spread_fini(&s);
}

TEST(test_flow_times__no_values_and_the_ends_of_the_range)
{
    fab_spread s = {0};
    CHECK_EQ_U(at(&s, 500), 0);
    CHECK(fab_spread_add(&s, 0));
    CHECK(fab_spread_add(&s, UINT64_MAX));
    CHECK_EQ_U(at(&s, 0), 0);
    CHECK_EQ_U(at(&s, 500), 0);
    CHECK_EQ_U(at(&s, 1000), UINT64_MAX);
    fab_spread_fini(&s);
}

/* The numbers from 1 to n: k/1000 of them are at most n k/1000. */
TEST(test_flow_times__many_values_are_within_a_hundredth)
{
    enum { MANY = 300000 };
    fab_spread s = {0};
    for (uint64_t i = MANY; i; i--)
        CHECK(fab_spread_add(&s, i));
    for (unsigned k = 1; k <= 1000; k++) {
        const double exact = (double)MANY * k / 1000, got = (double)at(&s, k);
        CHECK(got > exact * 0.99 && got < exact * 1.01);
    }
    CHECK_EQ_U(at(&s, 1000), MANY);
    fab_spread_fini(&s);
}

/* Three flows of 1000 bytes at 1, 2 and 4 times the ideal, one of 100,000 at 1.5 times, one of 2
 * GiB whose ideal nobody knows, one of exactly 4096 bytes that was better than the ideal. */
TEST(test_flow_times__by_size)
{
    static const struct {
        uint64_t size, ticks, ideal;
    } flows[] = {{1000, 500, 500},     {1000, 2000, 500},         {1000, 1000, 500},
                 {100000, 1500, 1000}, {(uint64_t)1 << 31, 7, 0}, {4096, 300, 400}};
    orr_fabric_flows all, classes[ORR_FABRIC_CLASSES];
    fab_flow_times t = {0};
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++)
        CHECK(fab_flow_times_add(&t, flows[i].size, flows[i].ticks, flows[i].ideal));
    fab_flow_times_fill(&t, 1000, &all, classes);
    CHECK_EQ_U(all.flows, 6);
    CHECK_EQ_U(all.bytes, 3000 + 100000 + ((uint64_t)1 << 31) + 4096);
    CHECK_EQ_U(all.fct_ps[0], 7000);
    CHECK_EQ_U(all.fct_ps[20], 500000); /* 7, 300, 500 of 7 300 500 1000 1500 2000 */
    CHECK_EQ_U(all.fct_ps[ORR_FABRIC_TIMES - 1], 2000000);
    CHECK(all.slowdown_p50 == 1.5 && all.slowdown_max == 4); /* 1 1 1.5 2 4 */
    CHECK_EQ_U(classes[0].above, 0);
    CHECK_EQ_U(classes[0].up_to, 4096);
    CHECK_EQ_U(classes[0].flows, 4);
    CHECK(classes[0].slowdown_p50 == 1 && classes[0].slowdown_p95 == 4);
    CHECK_EQ_U(classes[1].flows, 0);
    CHECK_EQ_U(classes[2].above, 65536);
    CHECK_EQ_U(classes[2].up_to, 1048576);
    CHECK(classes[2].flows == 1 && classes[2].slowdown_p99 == 1.5);
    CHECK_EQ_U(classes[4].above, 16777216);
    CHECK_EQ_U(classes[4].up_to, 0);
    CHECK(classes[4].flows == 1 && classes[4].slowdown_max == 0);
    fab_flow_times_fini(&t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_flow_times__few_values_are_exact),
        RUN(test_flow_times__two_in_a_bin_are_told_apart),
        RUN(test_flow_times__no_values_and_the_ends_of_the_range),
        RUN(test_flow_times__many_values_are_within_a_hundredth),
        RUN(test_flow_times__by_size),
    };
    return RUN_ALL(tests);
}
