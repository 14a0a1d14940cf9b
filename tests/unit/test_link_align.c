/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_align.c - two rows of names: what is in both, in order, finds its partner; time grows
 * with the rows. */
#include "check.h"

#include "base/rng.h"
#include "sources/torch/link/link_impl.h"

#include <string.h>
#include <time.h>

enum { LARGE = 200000 };

static uint32_t align(
    const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m, uint32_t *partner)
{
    orr_error err;
    uint32_t found = 0;
    CHECK_OK(link_align_rows(a, n, b, m, partner, &err), &err);
    for (uint32_t i = 0; i < n; i++)
        found += partner[i] != LINK_NONE;
    return found;
}

/* Two names changed places: one of them has no partner, and what follows is not lost. */
TEST(test_link_align__goes_on_behind_a_swap)
{
    static const uint32_t a[] = {1, 2, 3, 4, 5, 1, 2, 3}, b[] = {1, 3, 2, 4, 5, 1, 2, 3};
    uint32_t partner[8];
    CHECK_EQ(align(a, 8, b, 8, partner), 7);
    for (uint32_t i = 3; i < 8; i++)
        CHECK_EQ(partner[i], i);
}

/* One step of three: the first is as good as any, and nothing is paired across steps. */
TEST(test_link_align__takes_one_step_of_several)
{
    static const uint32_t step[] = {7, 1, 2, 1, 3, 1, 4};
    uint32_t b[21], partner[7];
    for (int i = 0; i < 3; i++)
        memcpy(b + (size_t)7 * (size_t)i, step, sizeof step);
    CHECK_EQ(align(step, 7, b, 21, partner), 7);
    for (uint32_t i = 1; i < 7; i++)
        CHECK_EQ(partner[i], partner[i - 1] + 1);
}

/* 200,000 operators of 50 names, one in 100 missing on either side: more edits than are searched at
 * once, so rows are cut at what is unique.  At least 99.6 % of what is in both is found. */
TEST(test_link_align__large_rows_with_gaps)
{
    uint32_t *a = orr_alloc(LARGE, sizeof *a), *b = orr_alloc(LARGE, sizeof *b);
    uint32_t *partner = orr_alloc(LARGE, sizeof *partner);
    uint32_t n = 0, m = 0, both = 0;
    orr_rng rng;
    CHECK(a && b && partner);
    orr_rng_init(&rng, 1, 0);
    for (uint32_t i = 0; i < LARGE; i++) {
        const uint32_t name = (uint32_t)orr_rng_below(&rng, 50);
        const bool in_a = orr_rng_below(&rng, 100) != 0, in_b = orr_rng_below(&rng, 100) != 0;
        if (in_a)
            a[n++] = name;
        if (in_b)
            b[m++] = name;
        both += in_a && in_b;
    }
    const clock_t before = clock();
    CHECK(align(a, n, b, m, partner) >= both / 1000 * 996);
    CHECK(clock() - before < 20 * CLOCKS_PER_SEC);
    orr_free(a);
    orr_free(b);
    orr_free(partner);
}

/* Nothing in common but a few names: an end in linear time. */
TEST(test_link_align__different_rows)
{
    uint32_t *a = orr_alloc(LARGE, sizeof *a), *b = orr_alloc(LARGE, sizeof *b);
    uint32_t *partner = orr_alloc(LARGE, sizeof *partner);
    CHECK(a && b && partner);
    for (uint32_t i = 0; i < LARGE; i++) {
        a[i] = i % 2 ? 1 : 2 + i % 7;
        b[i] = i % 3 ? 1 : 10 + i % 5;
    }
    const clock_t before = clock();
    CHECK(align(a, LARGE, b, LARGE, partner) > LARGE / 4);
    CHECK(clock() - before < 20 * CLOCKS_PER_SEC);
    orr_free(a);
    orr_free(b);
    orr_free(partner);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_link_align__goes_on_behind_a_swap),
        RUN(test_link_align__takes_one_step_of_several),
        RUN(test_link_align__large_rows_with_gaps),
        RUN(test_link_align__different_rows),
    };
    return RUN_ALL(tests);
}
