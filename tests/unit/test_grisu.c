/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* What nlohmann's JSON library 3.10 prints for these. */
#include "check.h"

#include "compat/astra_sim/grisu.h"

static void check(double value, const char *want)
{
    char text[ORR__GRISU_ROOM + 1];
    text[orr__grisu_text(value, text)] = '\0';
    CHECK_TEXT(text, want);
}

TEST(test_grisu__plain_numbers)
{
    check(0, "0.0");
    check(-0.0, "-0.0");
    check(1, "1.0");
    check(-2.5, "-2.5");
    check(0.1, "0.1");
    check(0.3, "0.3");
    check(100, "100.0");
    check(1e-4, "0.0001");
    check(0.00012, "0.00012");
    check(999999999999999.0, "999999999999999.0");
    check(123456789012345.6, "123456789012345.6");
}

TEST(test_grisu__exponents)
{
    check(1e-5, "1e-05");
    check(1.5e-7, "1.5e-07");
    check(1e15, "1e+15");
    check(1e22, "1e+22");
    check(5e-324, "5e-324");
    check(2.2250738585072014e-308, "2.2250738585072014e-308");
    check(1.7976931348623157e308, "1.7976931348623157e+308");
}

/* Half way between two texts of 16 digits; and texts with a digit more than are needed. */
TEST(test_grisu__not_always_the_shortest_nor_the_even_one)
{
    check(0.60242462158203125, "0.6024246215820313");
    check(0.62693023681640625, "0.6269302368164063");
    check(1e-3 * 7174775, "7174.7750000000005");
    check(474781.21361732483, "474781.21361732483");
    check(3703850211.5953302, "3703850211.5953302");
}

TEST(test_grisu__no_number)
{
    check(1 / 0.0, "null");
    check(0 / 0.0, "null");
}

/* Whatever it prints, it reads back. */
TEST(test_grisu__reads_back)
{
    char text[ORR__GRISU_ROOM + 1];
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        double value;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (value - value != 0)
            continue;
        text[orr__grisu_text(value, text)] = '\0';
        CHECK(strtod(text, NULL) == value);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_grisu__plain_numbers),
        RUN(test_grisu__exponents),
        RUN(test_grisu__not_always_the_shortest_nor_the_even_one),
        RUN(test_grisu__no_number),
        RUN(test_grisu__reads_back),
    };
    return RUN_ALL(tests);
}
