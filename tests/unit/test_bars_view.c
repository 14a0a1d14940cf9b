/* SPDX-License-Identifier: Apache-2.0 */
/* test_bars_view.c - times as bars: 220 units high is the largest share. */
#include "check.h"

#include <orrery/view.h>

static char text[1 << 16];

static const char *draw(const orr_view_bars *v)
{
    orr_error err;
    CHECK_OK(orr_view_bars_svg(v, "bars.svg", &err), &err);
    FILE *in = fopen("bars.svg", "r");
    CHECK(in);
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    unlink("bars.svg");
    return text;
}

/* 10 and 20 us, then 4 and 3: shares of 1, 2, 1 and 0.75, so 110, 220, 110 and 82.5 units. */
TEST(test_bars_view__bars_are_shares_of_the_first)
{
    static const char *const groups[] = {"a & b", "c<d"}, *const bars[] = {"one", "two"};
    static const uint64_t ps[] = {10000000, 20000000, 4000000, 3000000};
    const orr_view_bars v = {"t", groups, bars, 2, 2, ps};
    const char *svg = draw(&v);
    CHECK(strstr(svg, "height=\"110.0\"/>"));
    CHECK(strstr(svg, "height=\"220.0\"/>"));
    CHECK(strstr(svg, "height=\"82.5\"/>"));
    CHECK(strstr(svg, ">200</text>") && strstr(svg, ">75</text>"));
    CHECK(strstr(svg, "a &amp; b") && strstr(svg, "c&lt;d"));
    CHECK(strstr(svg, ">10.0 us</text>") && strstr(svg, ">4.00 us</text>"));
}

TEST(test_bars_view__nothing_is_refused_and_zero_is_drawn)
{
    static const char *const names[] = {"x"};
    static const uint64_t none[] = {0};
    orr_view_bars v = {"t", names, names, 1, 1, none};
    orr_error err;
    CHECK(strstr(draw(&v), "</svg>"));
    v.bar_count = 0;
    CHECK_CODE(orr_view_bars_svg(&v, "bars.svg", &err), ORR_EUSAGE, &err);
    CHECK(access("bars.svg", F_OK) != 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_bars_view__bars_are_shares_of_the_first),
        RUN(test_bars_view__nothing_is_refused_and_zero_is_drawn),
    };
    return RUN_ALL(tests);
}
