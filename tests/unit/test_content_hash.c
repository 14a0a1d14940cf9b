/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/hash.h"

static const char *hash_of(const char *text)
{
    static char out[ORR_CONTENT_HASH_ROOM];
    const orr_span bytes = {.ptr = (const uint8_t *)text, .len = strlen(text)};
    return orr_content_hash_text(orr_content_hash_of(bytes), out);
}

/* Values published for MurmurHash3_x64_128 with seed 0. */
TEST(test_content_hash__is_murmur3)
{
    CHECK_TEXT(hash_of(""), "00000000000000000000000000000000");
    CHECK_TEXT(hash_of("hello"), "cbd8a7b341bd9b025b1e906a48ae1d19");
    CHECK_TEXT(hash_of("The quick brown fox jumps over the lazy dog"),
               "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST(test_content_hash__every_bit_counts)
{
    uint8_t bytes[67];
    memset(bytes, 0x5a, sizeof bytes);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        const orr_content_hash plain = orr_content_hash_of((orr_span){.ptr = bytes, .len = len});
        for (size_t bit = 0; bit < len * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            const orr_content_hash other =
                orr_content_hash_of((orr_span){.ptr = bytes, .len = len});
            CHECK(other.high != plain.high && other.low != plain.low);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_content_hash__is_murmur3),
        RUN(test_content_hash__every_bit_counts),
    };
    return RUN_ALL(tests);
}
