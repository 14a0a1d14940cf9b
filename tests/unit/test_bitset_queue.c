/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/bitset_queue.h"
#include "base/rng.h"

static uint32_t least_of(const bool *model, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && !model[i])
        i++;
    return i;
}

static void compare_with_flags(uint32_t n, uint64_t seed)
{
    orr_bitset_queue q;
    bool *model = calloc(n, sizeof *model);
    uint32_t count = 0;
    orr_rng r;
    CHECK(model && orr_bitset_init(&q, n));
    orr_rng_init(&r, seed, n);
    for (int i = 0; i < 20000; i++) {
        const uint32_t k = (uint32_t)orr_rng_below(&r, n);
        switch (orr_rng_below(&r, 4)) {
        case 0:
        case 1:
            orr_bitset_insert(&q, k);
            count += !model[k];
            model[k] = true;
            break;
        case 2:
            orr_bitset_remove(&q, k);
            count -= model[k];
            model[k] = false;
            break;
        default:
            if (count) {
                const uint32_t least = least_of(model, n);
                CHECK_EQ_U(orr_bitset_pop(&q), least);
                model[least] = false;
                count--;
            }
        }
        CHECK(orr_bitset_is_empty(&q) == (count == 0));
        CHECK(orr_bitset_has(&q, k) == model[k]);
    }
    orr_bitset_fini(&q);
    free(model);
}

TEST(test_bitset_queue__behaves_as_flags_would)
{
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 10000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        compare_with_flags(sizes[i], i);
}

/* 64^3 + 1 members need four levels: the last one is alone in its word on each. */
TEST(test_bitset_queue__reaches_the_last_of_many)
{
    orr_bitset_queue q;
    const uint32_t n = 64 * 64 * 64 + 1;
    CHECK(orr_bitset_init(&q, n));
    orr_bitset_insert(&q, n - 1);
    orr_bitset_insert(&q, n - 2);
    orr_bitset_insert(&q, 0);
    CHECK_EQ_U(orr_bitset_pop(&q), 0);
    CHECK_EQ_U(orr_bitset_pop(&q), n - 2);
    CHECK_EQ_U(orr_bitset_pop(&q), n - 1);
    CHECK(orr_bitset_is_empty(&q));
    orr_bitset_fini(&q);
}

TEST(test_bitset_queue__an_empty_set_is_a_set)
{
    orr_bitset_queue q;
    CHECK(orr_bitset_init(&q, 0));
    CHECK(orr_bitset_is_empty(&q));
    orr_bitset_fini(&q);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_bitset_queue__behaves_as_flags_would),
        RUN(test_bitset_queue__reaches_the_last_of_many),
        RUN(test_bitset_queue__an_empty_set_is_a_set),
    };
    return RUN_ALL(tests);
}
