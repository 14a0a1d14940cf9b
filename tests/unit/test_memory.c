/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory.h"

/* Arrays that begin anywhere in a reserve, also near its end and behind it: all of it is there, and zero. */
TEST(test_memory__arrays_of_a_reserve_begin_anywhere)
{
    static const size_t places[] = {0, 1, 4096, 5000000, (32u << 20) - 1, 32u << 20, 40u << 20};
    orr_reserve r;
    CHECK(orr_reserve_init(&r, 32u << 20));
    uint8_t *bytes = r.base;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        orr_reserve_begin(&r, places[i]);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] >= r.bytes)
            continue;
        CHECK_EQ_U(bytes[places[i]], 0);
        bytes[places[i]] = 7;
        CHECK_EQ_U(bytes[places[i]], 7);
    }
    orr_reserve_fini(&r);
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
        RUN(test_memory__arrays_of_a_reserve_begin_anywhere),
        RUN(test_memory__no_reserve_is_fine),
    };
    return RUN_ALL(tests);
}
