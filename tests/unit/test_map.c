/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/map.h"
#include "base/rng.h"

enum { ABSENT = 0xFFFFFFFF };

TEST(test_map__the_last_value_counts)
{
    orr_map *m = orr_map_create(0);
    bool is_new = false;
    CHECK(m);
    CHECK_EQ_U(orr_map_find(m, 7, ABSENT), ABSENT);
    CHECK(orr_map_put(m, 7, 1, &is_new) && is_new);
    CHECK(orr_map_put(m, 7, 2, &is_new) && !is_new);
    CHECK(orr_map_put(m, 0, 3, NULL)); /* keys that might be taken for "free" are keys */
    CHECK(orr_map_put(m, UINT64_MAX, 4, NULL));
    CHECK_EQ_U(orr_map_find(m, 7, ABSENT), 2);
    CHECK_EQ_U(orr_map_find(m, 0, ABSENT), 3);
    CHECK_EQ_U(orr_map_find(m, UINT64_MAX, ABSENT), 4);
    CHECK_EQ_U(orr_map_count(m), 3);
    orr_map_destroy(m);
    orr_map_destroy(NULL);
}

/* Against an array: keys below 4096, spread over the range in different ways. */
static void compare_with_array(uint64_t stride, uint64_t seed)
{
    enum { KEYS = 4096 };
    static uint32_t model[KEYS];
    orr_map *m = orr_map_create(0);
    orr_rng r;
    size_t count = 0;
    CHECK(m);
    memset(model, 0xFF, sizeof model);
    orr_rng_init(&r, seed, 0);
    for (int i = 0; i < 200000; i++) {
        const uint64_t k = orr_rng_below(&r, i < 100000 ? KEYS : 64), key = k * stride;
        const uint32_t value = (uint32_t)orr_rng_below(&r, 1000000);
        switch (orr_rng_below(&r, 3)) {
        case 0:
            count += model[k] == ABSENT;
            CHECK(orr_map_put(m, key, value, NULL));
            model[k] = value;
            break;
        case 1:
            CHECK(orr_map_remove(m, key) == (model[k] != ABSENT));
            count -= model[k] != ABSENT;
            model[k] = ABSENT;
            break;
        default:
            CHECK_EQ_U(orr_map_find(m, key, ABSENT), model[k]);
        }
        CHECK_EQ_U(orr_map_count(m), count);
    }
    for (uint64_t k = 0; k < KEYS; k++)
        CHECK_EQ_U(orr_map_find(m, k * stride, ABSENT), model[k]);
    orr_map_destroy(m);
}

TEST(test_map__behaves_as_an_array_would)
{
    compare_with_array(1, 1);
    compare_with_array(64, 2);
    compare_with_array(1ull << 32, 3);
    compare_with_array(1ull << 52, 4);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_map__the_last_value_counts),
        RUN(test_map__behaves_as_an_array_would),
    };
    return RUN_ALL(tests);
}
