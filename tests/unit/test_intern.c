/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/memory/map.h"
#include "base/text/text.h"

TEST(test_intern__numbers_are_dense_and_stay)
{
    orr_intern *in = orr_intern_create();
    uint32_t n = 99;
    CHECK(in);
    CHECK(orr_intern_add(in, orr_str_of("aten::add"), &n) && n == 0);
    CHECK(orr_intern_add(in, orr_str_of(""), &n) && n == 1);
    CHECK(orr_intern_add(in, (orr_str){0}, &n) && n == 1); /* no text is the empty one */
    CHECK(orr_intern_add(in, orr_str_of("aten::mul"), &n) && n == 2);
    CHECK(orr_intern_add(in, orr_str_of("aten::add"), &n) && n == 0);
    CHECK(orr_intern_add(in, (orr_str){.ptr = "a\0b", .len = 3}, &n) && n == 3);
    CHECK(orr_intern_add(in, (orr_str){.ptr = "a\0c", .len = 3}, &n) && n == 4);
    CHECK_EQ_U(orr_intern_count(in), 5);
    CHECK(orr_str_is(orr_intern_get(in, 2), "aten::mul"));
    CHECK_TEXT(orr_intern_get(in, 0).ptr, "aten::add"); /* ends in NUL */
    CHECK_EQ_U(orr_intern_get(in, 1).len, 0);
    CHECK(orr_intern_find(in, orr_str_of("aten::mul"), &n) && n == 2);
    CHECK(!orr_intern_find(in, orr_str_of("aten::mu"), &n));
    orr_intern_destroy(in);
    orr_intern_destroy(NULL);
}

TEST(test_intern__keeps_many_apart)
{
    enum { MANY = 100000 };
    orr_intern *in = orr_intern_create();
    char text[32];
    uint32_t n;
    CHECK(in);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "node_%u", i * 7);
        CHECK(orr_intern_add(in, orr_str_of(text), &n));
        CHECK_EQ_U(n, i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "node_%u", i * 7);
        CHECK(orr_intern_find(in, orr_str_of(text), &n));
        CHECK_EQ_U(n, i);
        CHECK_TEXT(orr_intern_get(in, i).ptr, text);
        snprintf(text, sizeof text, "node_%u", i * 7 + 1);
        CHECK(!orr_intern_find(in, orr_str_of(text), &n));
    }
    orr_intern_destroy(in);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_intern__numbers_are_dense_and_stay),
        RUN(test_intern__keeps_many_apart),
    };
    return RUN_ALL(tests);
}
