/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/rng.h"
#include "models/network/packet/engine/place_bits.h"

enum { PLACES = 9000 }; /* more than two words of tops */

static uint32_t first_by_walk(const bool *is_in, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (is_in[i])
            return i;
    return FAB_NO_PLACE;
}

static void compare(const fab_places *b, const bool *is_in, uint32_t from, uint32_t to)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < from; i++)
        before += is_in[i];
    CHECK_EQ_U(fab_places_first(b, from, to), first_by_walk(is_in, from, to));
    CHECK_EQ_U(fab_places_rank(b, from), before);
    CHECK(fab_places_has(b, from) == is_in[from]);
    if (is_in[from])
        CHECK_EQ_U(fab_places_select(b, before), from);
}

static void compare_with_walk(unsigned one_in)
{
    static bool is_in[PLACES];
    fab_places b = {0};
    orr_rng r;
    orr_rng_init(&r, one_in, 0);
    memset(is_in, 0, sizeof is_in);
    CHECK(fab_places_need(&b, 1));
    CHECK(fab_places_need(&b, PLACES));
    for (unsigned i = 0; i < 4000; i++) {
        const uint32_t place = (uint32_t)orr_rng_below(&r, PLACES);
        is_in[place] = orr_rng_below(&r, one_in) == 0;
        if (is_in[place])
            fab_places_add(&b, place);
        else
            fab_places_remove(&b, place);
        const uint32_t from = (uint32_t)orr_rng_below(&r, PLACES);
        compare(&b, is_in, from, from + (uint32_t)orr_rng_below(&r, PLACES - from));
    }
    fab_places_clear(&b);
    CHECK_EQ_U(fab_places_first(&b, 0, PLACES), FAB_NO_PLACE);
    fab_places_fini(&b);
}

TEST(test_place_bits__answers_as_a_walk_would)
{
    compare_with_walk(1);
    compare_with_walk(2);
    compare_with_walk(500);
}

TEST(test_place_bits__takes_out_what_was_never_there)
{
    fab_places b = {0};
    fab_places_remove(&b, 70);
    fab_places_clear(&b);
    CHECK(!fab_places_has(&b, 70));
    CHECK_EQ_U(fab_places_first(&b, 0, 100), FAB_NO_PLACE);
    fab_places_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_place_bits__answers_as_a_walk_would),
        RUN(test_place_bits__takes_out_what_was_never_there),
    };
    return RUN_ALL(tests);
}
