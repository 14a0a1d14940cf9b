/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/memory.h"

/* All of it is there, and zero, in pages of whatever size. */
TEST(test_memory__all_of_a_reserve_is_there)
{
    static const size_t places[] = {0, 1, 4096, 1u << 20, 5000000, (32u << 20) - 1};
    for (int is_large = 0; is_large < 2; is_large++) {
        orr_reserve r;
        CHECK(orr_reserve_init(&r, 32u << 20));
        CHECK_EQ_U(r.bytes, 32u << 20);
        uint8_t *bytes = r.base;
        if (is_large)
            orr_reserve_large(&r);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            CHECK_EQ_U(bytes[places[i]], 0);
            bytes[places[i]] = 7;
            CHECK_EQ_U(bytes[places[i]], 7);
        }
        orr_reserve_fini(&r);
    }
}

TEST(test_memory__no_reserve_is_fine)
{
    orr_reserve r = {0};
    orr_reserve_fini(&r);
    CHECK(r.base == NULL);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_memory__all_of_a_reserve_is_there),
        RUN(test_memory__no_reserve_is_fine),
    };
    return RUN_ALL(tests);
}
