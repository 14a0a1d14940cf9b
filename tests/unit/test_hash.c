/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/hash.h"

/* How many of the 64 result bits change when one input bit does: 32 on average for a good hash. */
TEST(test_hash__one_bit_changes_half_of_all)
{
    uint8_t bytes[70];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        const uint64_t plain = orr_hash_bytes(bytes, len, 0);
        uint64_t changed = 0;
        for (size_t bit = 0; bit < len * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            const uint64_t difference = plain ^ orr_hash_bytes(bytes, len, 0);
            CHECK(difference != 0);
            changed += (uint64_t)__builtin_popcountll(difference);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK(changed > len * 8 * 27 && changed < len * 8 * 37);
    }
}

TEST(test_hash__length_and_seed_count)
{
    static const uint8_t zeros[100];
    for (size_t len = 0; len < 100; len++) {
        CHECK(orr_hash_bytes(zeros, len, 0) !=
              orr_hash_bytes(zeros, len + 1 > 99 ? 0 : len + 1, 0));
        CHECK(orr_hash_bytes(zeros, len, 0) != orr_hash_bytes(zeros, len, 1));
    }
}

/* The lowest bits choose the slot of a table: dense texts must not crowd.  65,536 texts over 65,536
 * slots fill 63.2 % of them (1 - 1/e) when all is random. */
TEST(test_hash__low_bits_are_spread)
{
    static uint8_t used[65536];
    char text[32];
    size_t filled = 0;
    for (unsigned i = 0; i < 65536; i++) {
        const int n = snprintf(text, sizeof text, "COMP_NODE_%u", i);
        uint8_t *slot = &used[orr_hash_bytes(text, (size_t)n, 0) & 65535];
        filled += !*slot;
        *slot = 1;
    }
    CHECK(filled > 41000 && filled < 41900); /* 41,427 expected */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_hash__one_bit_changes_half_of_all),
        RUN(test_hash__length_and_seed_count),
        RUN(test_hash__low_bits_are_spread),
    };
    return RUN_ALL(tests);
}
