/* SPDX-License-Identifier: Apache-2.0 */
/* What std::sort of GCC 12 made of the same keys, largest first. */
#include "check.h"

#include "compat/library_sort.h"

enum { MOST = 4000 };

typedef uint64_t (*key_of)(size_t i, size_t count);

static uint64_t equal(size_t i, size_t count)
{
    (void)i;
    (void)count;
    return 1;
}

static uint64_t three(size_t i, size_t count)
{
    (void)count;
    return (i * 7 + i / 3) % 3;
}

static uint64_t up_and_down(size_t i, size_t count)
{
    return (i < count - i ? i : count - i) / 4;
}

/* Splits are so uneven that the heap sort takes over. */
static uint64_t uneven(size_t i, size_t count)
{
    const size_t half = count / 2;
    if (i >= half)
        return (count - 2 * (i - half + 1)) / 3;
    return (i % 2 == 0 ? count - i : count - (half + i - 1 - i % 2)) / 3;
}

static const orr__sort_item *sorted(key_of key, size_t count)
{
    static orr__sort_item items[MOST];
    for (size_t i = 0; i < count; i++)
        items[i] = (orr__sort_item){key(i, count), (uint32_t)i};
    orr__library_sort(items, count);
    for (size_t i = 1; i < count; i++)
        CHECK(items[i - 1].key >= items[i].key);
    return items;
}

static void check_order(key_of key, const uint32_t *want, size_t count)
{
    const orr__sort_item *items = sorted(key, count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_U(items[i].index, want[i]);
}

static void check_sum(key_of key, size_t count, uint64_t want)
{
    const orr__sort_item *items = sorted(key, count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + items[i].index;
    CHECK_EQ_U(sum, want);
}

TEST(test_library_sort__few_stay_in_order)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t n = 0; n <= 16; n++)
        check_order(equal, order, n);
}

TEST(test_library_sort__more_do_not)
{
    static const uint32_t of_17[] = {8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1};
    static const uint32_t of_40[] = {30, 21, 22, 23, 24, 25, 26, 27, 28, 29, 20, 31, 32, 33,
                                     34, 35, 36, 37, 38, 39, 10, 1,  2,  3,  4,  5,  6,  7,
                                     8,  9,  0,  11, 12, 13, 14, 15, 16, 17, 18, 19};
    static const uint32_t of_30[] = {15, 29, 24, 22, 20, 13, 11, 6, 2,  4, 8,  1,  28, 26, 3,
                                     21, 19, 17, 12, 10, 18, 16, 0, 14, 5, 23, 25, 27, 9,  7};
    check_order(equal, of_17, 17);
    check_order(equal, of_40, 40);
    check_order(three, of_30, 30);
}

TEST(test_library_sort__many)
{
    check_sum(three, 1000, UINT64_C(7729531951108426490));
    check_sum(up_and_down, 1000, UINT64_C(18408840930196036284));
    check_sum(uneven, 4000, UINT64_C(9202426354793366902));
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_library_sort__few_stay_in_order),
        RUN(test_library_sort__more_do_not),
        RUN(test_library_sort__many),
    };
    return RUN_ALL(tests);
}
