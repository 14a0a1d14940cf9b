/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/threads/pool.h"

#include <stdatomic.h>

typedef struct job {
    atomic_int runs[1000];
    uint64_t slots[1000];
    size_t fails_from; /* every item from here on fails */
} job;

static orr_code square(void *context, size_t i, orr_error *err)
{
    job *j = context;
    atomic_fetch_add(&j->runs[i], 1);
    if (i >= j->fails_from) {
        usleep((useconds_t)(i % 3) * 1000); /* so that later items often fail first */
        return orr_fail(err, ORR_EINPUT, NULL, "item %zu", i);
    }
    j->slots[i] = (uint64_t)i * i;
    return ORR_OK;
}

TEST(test_pool__every_item_runs_once_whatever_the_threads)
{
    static const unsigned threads[] = {0, 1, 2, 7, 300};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        job j = {.fails_from = SIZE_MAX};
        orr_error err;
        CHECK_OK(orr_pool_for(threads[t], 1000, square, &j, &err), &err);
        for (size_t i = 0; i < 1000; i++) {
            CHECK_EQ(atomic_load(&j.runs[i]), 1);
            CHECK_EQ_U(j.slots[i], i * i);
        }
    }
}

TEST(test_pool__the_failure_with_the_smallest_index_is_reported)
{
    for (int again = 0; again < 20; again++) {
        job j = {.fails_from = 100};
        orr_error err;
        CHECK_CODE(orr_pool_for(8, 1000, square, &j, &err), ORR_EINPUT, &err);
        CHECK_TEXT(err.message, "item 100");
        CHECK_EQ(atomic_load(&j.runs[999]), 0); /* the rest was not begun */
    }
}

TEST(test_pool__nothing_to_do_is_done)
{
    job j = {.fails_from = 0};
    CHECK(orr_pool_for(4, 0, square, &j, NULL) == ORR_OK);
    CHECK(orr_pool_for(4, 1, square, &j, NULL) == ORR_EINPUT); /* err may be NULL */
    CHECK_EQ_U(orr_pool_threads(3), 3);
    CHECK(orr_pool_threads(0) >= 1);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_pool__every_item_runs_once_whatever_the_threads),
        RUN(test_pool__the_failure_with_the_smallest_index_is_reported),
        RUN(test_pool__nothing_to_do_is_done),
    };
    return RUN_ALL(tests);
}
