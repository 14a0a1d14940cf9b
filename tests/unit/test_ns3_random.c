/* SPDX-License-Identifier: Apache-2.0 */
/* room: ns3 */
/* Expected values: the executable specification of the packet network, and the GNU C library. */
#include "check.h"

#include "compat/ns3/ns3_front.h"

TEST(test_ns3_random__streams_are_those_of_the_reference)
{
    static const struct {
        uint64_t stream;
        double first;
    } known[] = {{0, 0.816532044168251},
                 {1, 0.835150073680844},
                 {56, 0.005490265819703995},
                 {(uint64_t)1 << 63, 0.9564440159453907}};
    ns3_mrg m;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ns3_mrg_init(&m, known[i].stream);
        CHECK(ns3_mrg_next(&m) == known[i].first);
    }
}

TEST(test_ns3_random__one_stream_goes_on)
{
    static const double known[] = {0.46039245737754536, 0.05666046538049747, 0.09433582718992888};
    ns3_mrg m;
    ns3_mrg_init(&m, ((uint64_t)1 << 63) + 50);
    for (int i = 0; i < 3; i++)
        CHECK(ns3_mrg_next(&m) == known[i]);
}

TEST(test_ns3_random__coins_are_first_numbers_of_streams)
{
    ns3_streams c;
    ns3_mrg m;
    ns3_streams_init(&c, 54);
    for (uint64_t stream = 54; stream < 60; stream++) {
        ns3_mrg_init(&m, stream);
        CHECK(ns3_streams_next(&c) == ns3_mrg_next(&m));
    }
}

TEST(test_ns3_random__rand_is_that_of_the_c_library)
{
    ns3_libc_rand r;
    ns3_libc_rand_init(&r, 1);
    CHECK_EQ_U(ns3_libc_rand_next(&r), 1804289383);
    CHECK_EQ_U(ns3_libc_rand_next(&r), 846930886);
    CHECK_EQ_U(ns3_libc_rand_next(&r), 1681692777);
    CHECK_EQ_U(ns3_libc_rand_next(&r), 1714636915);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_ns3_random__streams_are_those_of_the_reference),
        RUN(test_ns3_random__one_stream_goes_on),
        RUN(test_ns3_random__coins_are_first_numbers_of_streams),
        RUN(test_ns3_random__rand_is_that_of_the_c_library),
    };
    return RUN_ALL(tests);
}
