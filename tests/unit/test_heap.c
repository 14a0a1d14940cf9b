/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/heap.h"
#include "base/rng.h"

TEST(test_heap__equal_keys_leave_in_order_of_value)
{
    orr_heap h = {0};
    orr_heap_entry e;
    static const uint32_t values[] = {5, 1, 4, 1, 3};
    for (size_t i = 0; i < 5; i++)
        CHECK(orr_heap_push(&h, 9, values[i]));
    CHECK(orr_heap_push(&h, 8, 100));
    CHECK(orr_heap_pop(&h, &e) && e.key == 8 && e.value == 100);
    CHECK(orr_heap_pop(&h, &e) && e.value == 1);
    CHECK(orr_heap_pop(&h, &e) && e.value == 1);
    CHECK(orr_heap_pop(&h, &e) && e.value == 3);
    CHECK(orr_heap_pop(&h, &e) && e.value == 4);
    CHECK(orr_heap_pop(&h, &e) && e.value == 5);
    CHECK(!orr_heap_pop(&h, &e));
    orr_heap_fini(&h);
}

/* The smallest of an unordered list, removed. */
static orr_heap_entry take_least(orr_heap_entry *list, size_t *count)
{
    size_t best = 0;
    for (size_t i = 1; i < *count; i++) {
        const orr_heap_entry a = list[i], b = list[best];
        if (a.key < b.key || (a.key == b.key && a.value < b.value))
            best = i;
    }
    const orr_heap_entry out = list[best];
    list[best] = list[--*count];
    return out;
}

TEST(test_heap__behaves_as_a_list_would)
{
    enum { MOST = 300 };
    orr_heap h = {0};
    orr_heap_entry list[MOST], e;
    orr_rng r;
    size_t count = 0;
    orr_rng_init(&r, 1, 0);
    for (int i = 0; i < 100000; i++) {
        const uint64_t bias = (uint64_t)(i / 1000) % 2; /* fill, then drain */
        if (count < MOST && orr_rng_below(&r, 4) > bias) {
            const orr_heap_entry add = {.key = orr_rng_below(&r, 50),
                                        .value = (uint32_t)orr_rng_below(&r, 20)};
            list[count++] = add;
            CHECK(orr_heap_push(&h, add.key, add.value));
        } else if (count) {
            const orr_heap_entry want = take_least(list, &count);
            CHECK(orr_heap_pop(&h, &e));
            CHECK_EQ_U(e.key, want.key);
            CHECK_EQ_U(e.value, want.value);
        }
        CHECK_EQ_U(h.count, count);
    }
    orr_heap_fini(&h);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_heap__equal_keys_leave_in_order_of_value),
        RUN(test_heap__behaves_as_a_list_would),
    };
    return RUN_ALL(tests);
}
