/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/units.h>

static orr_error err;

static int64_t ps(const char *text)
{
    orr_ps t = -1;
    CHECK_OK(orr_time_parse(text, &t, &err), &err);
    return t;
}

static uint64_t bytes(const char *text)
{
    orr_bytes n = 1;
    CHECK_OK(orr_bytes_parse(text, &n, &err), &err);
    return n;
}

static uint64_t rate(const char *text)
{
    orr_Bps r = 1;
    CHECK_OK(orr_rate_parse(text, &r, &err), &err);
    return r;
}

static uint64_t hz(const char *text)
{
    uint64_t f = 1;
    CHECK_OK(orr_frequency_parse(text, &f, &err), &err);
    return f;
}

TEST(test_units__times_become_picoseconds)
{
    CHECK_EQ_PS(ps("25us"), 25000000);
    CHECK_EQ_PS(ps("1 ps"), 1);
    CHECK_EQ_PS(ps("0.1us"), 100000);
    CHECK_EQ_PS(ps("1.5ns"), 1500);
    CHECK_EQ_PS(ps(".5ns"), 500);
    CHECK_EQ_PS(ps("2µs"), 2000000);
    CHECK_EQ_PS(ps("2min"), 120000000000000);
    CHECK_EQ_PS(ps("1h"), 3600000000000000);
    CHECK_EQ_PS(ps("0"), 0);
    CHECK_EQ_PS(ps("0ns"), 0);
    CHECK_EQ_PS(ps("936.25ns"), 936250);
    CHECK_EQ_PS(ps("0.0005ns"), 1); /* half a picosecond, up */
    CHECK_EQ_PS(ps("1.0004ns"), 1000);
    CHECK_EQ_PS(ps("0.333333333333333333333333us"), 333333);
    CHECK_EQ_PS(ps("9223372036854775807ps"), INT64_MAX);
}

TEST(test_units__sizes_are_decimal_or_binary)
{
    CHECK_EQ_U(bytes("64MiB"), 64u << 20);
    CHECK_EQ_U(bytes("64 MB"), 64000000);
    CHECK_EQ_U(bytes("1kB"), 1000);
    CHECK_EQ_U(bytes("1KB"), 1000);
    CHECK_EQ_U(bytes("1.5KiB"), 1536);
    CHECK_EQ_U(bytes("17B"), 17);
    CHECK_EQ_U(bytes("15EiB"), 15ull << 60);
    CHECK_EQ_U(bytes("18446744073709551615B"), UINT64_MAX);
}

TEST(test_units__rates_are_in_bytes_or_bits)
{
    CHECK_EQ_U(rate("400Gb/s"), 50000000000u); /* 400e9 / 8 */
    CHECK_EQ_U(rate("400Gbps"), 50000000000u);
    CHECK_EQ_U(rate("400Gbit/s"), 50000000000u);
    CHECK_EQ_U(rate("900GB/s"), 900000000000u);
    CHECK_EQ_U(rate("1GiB/s"), 1u << 30);
    CHECK_EQ_U(rate("33.3 GB/s"), 33300000000u);
    CHECK_EQ_U(rate("8b/s"), 1);
    CHECK_EQ_U(rate("5MBps"), 5000000);
}

TEST(test_units__frequencies_are_in_hertz)
{
    CHECK_EQ_U(hz("1.5GHz"), 1500000000);
    CHECK_EQ_U(hz("700 MHz"), 700000000);
    CHECK_EQ_U(hz("1Hz"), 1);
}

static void refuses_time(const char *text, const char *words)
{
    orr_ps t = 42;
    CHECK_CODE(orr_time_parse(text, &t, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
    CHECK_EQ(t, 42);
}

TEST(test_units__nonsense_is_refused_with_words)
{
    orr_Bps r;
    orr_bytes n;
    refuses_time("",
                 "\"\" is not a time: expected a number and a unit (ps, ns, us, ms, s, min or h)");
    refuses_time("us", "is not a time");
    refuses_time("25", "\"25\" has no unit");
    refuses_time("25 parsec", "unknown unit \"parsec\"");
    refuses_time("25usx", "unknown unit \"usx\"");
    refuses_time("-5us", "is negative");
    refuses_time("1.2.3us", "unknown unit \".3us\"");
    refuses_time("1.us", "is not a time");
    refuses_time("9223372036854775808ps", "is too large");
    refuses_time("107days", "unknown unit");
    refuses_time("99999999999999999999999999999999999999999us", "is not a time");
    refuses_time("0.0001ps", "is too small");
    CHECK_CODE(orr_rate_parse("4O0 GB/s", &r, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "\"4O0 GB/s\" has an unknown unit \"O0 GB/s\"; expected a rate");
    CHECK_CODE(orr_bytes_parse("64Mb", &n, &err), ORR_EUSAGE, &err); /* bits are not a size */
    CHECK_CODE(orr_bytes_parse("16EiB", &n, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "is too large for a size in bytes");
    CHECK(orr_bytes_parse("1", &n, NULL) == ORR_EUSAGE);
}

TEST(test_units__times_print_with_three_digits)
{
    char t[ORR_UNIT_ROOM];
    CHECK_TEXT(orr_time_text(12300000000, t), "12.3 ms");
    CHECK_TEXT(orr_time_text(0, t), "0 ps");
    CHECK_TEXT(orr_time_text(7, t), "7 ps");
    CHECK_TEXT(orr_time_text(999, t), "999 ps");
    CHECK_TEXT(orr_time_text(1000, t), "1.00 ns");
    CHECK_TEXT(orr_time_text(9995, t), "10.0 ns"); /* 9.995 rounds up and needs one digit less */
    CHECK_TEXT(orr_time_text(99950, t), "100 ns");
    CHECK_TEXT(orr_time_text(999500, t), "1.00 us"); /* 999.5 ns */
    CHECK_TEXT(orr_time_text(999499, t), "999 ns");
    CHECK_TEXT(orr_time_text(-1500000, t), "-1.50 us");
    CHECK_TEXT(orr_time_text(INT64_MAX, t), "9,223,372 s");
    CHECK_TEXT(orr_time_text(INT64_MIN, t), "-9,223,372 s");
}

TEST(test_units__the_rest_prints_for_people)
{
    char t[ORR_UNIT_ROOM];
    CHECK_TEXT(orr_bytes_text(1610612736, t), "1.50 GiB");
    CHECK_TEXT(orr_bytes_text(0, t), "0 B");
    CHECK_TEXT(orr_bytes_text(1023, t), "1,023 B");
    CHECK_TEXT(orr_bytes_text(1024, t), "1.00 KiB");
    CHECK_TEXT(orr_bytes_text(1048575, t), "1.00 MiB");
    CHECK_TEXT(orr_bytes_text(1000 * 1024, t), "1,000 KiB");
    CHECK_TEXT(orr_bytes_text(UINT64_MAX, t), "16.0 EiB");
    CHECK_TEXT(orr_rate_text(50000000000, t), "50.0 GB/s");
    CHECK_TEXT(orr_frequency_text(1500000000, t), "1.50 GHz");
    CHECK_TEXT(orr_count_text(1234567, t), "1,234,567");
    CHECK_TEXT(orr_count_text(0, t), "0");
    CHECK_TEXT(orr_count_text(999, t), "999");
    CHECK_TEXT(orr_count_text(UINT64_MAX, t), "18,446,744,073,709,551,615");
    CHECK_TEXT(orr_figure_text(0.29052, t), "0.2905");
    CHECK_TEXT(orr_figure_text(9999.4, t), "9999");
    CHECK_TEXT(orr_figure_text(9999.6, t), "10,000");
    CHECK_TEXT(orr_figure_text(12944.4, t), "12,944");
    CHECK_TEXT(orr_short_text(1234567, t), "1.23 M");
    CHECK_TEXT(orr_short_text(12, t), "12");
    CHECK_TEXT(orr_percent_text(1, 8, t), "12.5%");
    CHECK_TEXT(orr_percent_text(1, 3, t), "33.3%");
    CHECK_TEXT(orr_percent_text(1, 100000, t), "<0.1%");
    CHECK_TEXT(orr_percent_text(0, 5, t), "0.0%");
    CHECK_TEXT(orr_percent_text(5, 0, t), "-");
    CHECK_TEXT(orr_percent_text(UINT64_MAX, UINT64_MAX, t), "100.0%");
    CHECK_TEXT(orr_percent_text(UINT64_MAX, 1, t), "18,446,744,073,709,551,615.0%");
}

TEST(test_units__sizes_as_people_type_them)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } same[] = {{"80G", 80000000000u},
                {"80gb", 80000000000u},
                {"80GB", 80000000000u},
                {"80g", 80000000000u},
                {"2gib", 2147483648u},
                {"2Gi", 2147483648u},
                {"7k", 7000},
                {"7 kb", 7000},
                {"7b", 7},
                {"1.5T", 1500000000000u}};
    orr_bytes n;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        CHECK_OK(orr_bytes_parse(same[i].text, &n, &err), &err);
        CHECK_EQ_U(n, same[i].bytes);
    }
    CHECK_CODE(orr_bytes_parse("80Gb", &n, &err), ORR_EUSAGE, &err); /* bits? */
    CHECK_CODE(orr_bytes_parse("80x", &n, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_bytes_parse("80ggb", &n, &err), ORR_EUSAGE, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_units__times_become_picoseconds),
        RUN(test_units__sizes_are_decimal_or_binary),
        RUN(test_units__rates_are_in_bytes_or_bits),
        RUN(test_units__frequencies_are_in_hertz),
        RUN(test_units__nonsense_is_refused_with_words),
        RUN(test_units__times_print_with_three_digits),
        RUN(test_units__the_rest_prints_for_people),
        RUN(test_units__sizes_as_people_type_them),
    };
    return RUN_ALL(tests);
}
