/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* Orders that CPython 3.11 prints for: s = set(...) ... [s.pop() for ...], with floats. */
#include "check.h"

#include "compat/scale_sim/ss_impl.h"

static void add_range(python_set *s, uint64_t from, uint64_t count, uint64_t step)
{
    for (uint64_t i = 0; i < count; i++)
        python_set_add(s, from + i * step);
}

static void expect_pops(python_set *s, const uint64_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_U(python_set_pop(s), keys[i]);
}

/* Keys come back by place.  Place 1 is taken by 33 when 1 comes, and in a table of 8 neighbours are
 * not tried: it goes on to 1 * 5 + 1. */
TEST(test_python_set__keys_come_back_by_place)
{
    python_set s;
    python_set_init(&s);
    python_set_add(&s, 8);
    python_set_add(&s, 3);
    python_set_add(&s, 33);
    python_set_add(&s, 1);
    expect_pops(&s, (const uint64_t[]){8, 33, 3, 1}, 4);
    CHECK_EQ_U(s.used, 0);
    python_set_fini(&s);
}

TEST(test_python_set__a_key_is_held_once)
{
    python_set s;
    python_set_init(&s);
    add_range(&s, 0, 1000, 7);
    add_range(&s, 0, 1000, 7);
    CHECK_EQ_U(s.used, 1000);
    CHECK(python_set_has(&s, 6993) && !python_set_has(&s, 6994));
    python_set_fini(&s);
}

/* s = {10000000.0 + 3 * i for i in range(40)}, seven pops, s.update(5.0 * i for i in range(12)),
 * pops: marks of what was taken out are used again, and popping goes on where it stopped. */
TEST(test_python_set__marks_are_used_again)
{
    static const uint64_t first[] = {10000000, 10000003, 10000006, 10000009,
                                     10000012, 10000015, 10000018};
    static const uint64_t then[] = {
        20,       10000021, 10000024, 25,       10000027, 10000030, 30,       10000033, 35,
        10000036, 10000039, 40,       10000042, 10000045, 45,       10000048, 50,       10000051,
        10000054, 55,       10000057, 10000060, 10000063, 10000066, 10000069, 10000072, 10000075,
        10000078, 10000081, 10000084, 10000087, 10000090, 10000093, 10000096, 10000099, 10000102,
        10000105, 10000108, 10000111, 10000114, 10000117, 0,        5,        10,       15};
    python_set s;
    python_set_init(&s);
    add_range(&s, 10000000, 40, 3);
    expect_pops(&s, first, sizeof first / sizeof *first);
    add_range(&s, 0, 12, 5);
    expect_pops(&s, then, sizeof then / sizeof *then);
    python_set_fini(&s);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_python_set__keys_come_back_by_place),
        RUN(test_python_set__a_key_is_held_once),
        RUN(test_python_set__marks_are_used_again),
    };
    return RUN_ALL(tests);
}
