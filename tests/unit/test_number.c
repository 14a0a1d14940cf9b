/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>

static const char *double_text(double v)
{
    static char out[ORR_NUMBER_ROOM + 1];
    out[orr_double_text(v, out)] = '\0';
    return out;
}

static const char *float_text(float v)
{
    static char out[ORR_NUMBER_ROOM + 1];
    out[orr_float_text(v, out)] = '\0';
    return out;
}

static double read_double(const char *s)
{
    double v = -12345;
    CHECK(orr_text_double(orr_str_of(s), &v));
    return v;
}

TEST(test_number__doubles_print_as_python_prints_them)
{
    CHECK_TEXT(double_text(0.0), "0.0");
    CHECK_TEXT(double_text(-0.0), "-0.0");
    CHECK_TEXT(double_text(1), "1.0");
    CHECK_TEXT(double_text(0.1), "0.1");
    CHECK_TEXT(double_text(1.0 / 3), "0.3333333333333333");
    CHECK_TEXT(double_text(-123.456), "-123.456");
    CHECK_TEXT(double_text(16777216), "16777216.0");
    CHECK_TEXT(double_text(3868350895893.466), "3868350895893.466");
    CHECK_TEXT(double_text(0.0001), "0.0001");
    CHECK_TEXT(double_text(0.00012345), "0.00012345");
    CHECK_TEXT(double_text(0.00001), "1e-05");
    CHECK_TEXT(double_text(1.5e-7), "1.5e-07");
    CHECK_TEXT(double_text(1e15), "1000000000000000.0");
    CHECK_TEXT(double_text(9007199254740993.0), "9007199254740992.0");
    CHECK_TEXT(double_text(1e16), "1e+16");
    CHECK_TEXT(double_text(1.2345e22), "1.2345e+22");
    CHECK_TEXT(double_text(1.7976931348623157e308), "1.7976931348623157e+308");
    CHECK_TEXT(double_text(5e-324), "5e-324");
    CHECK_TEXT(double_text(INFINITY), "inf");
    CHECK_TEXT(double_text(-INFINITY), "-inf");
    CHECK_TEXT(double_text(NAN), "nan");
}

/* Python: json_format's float, which is float('%.6g' % v) when that reads back, else with 7, 8, 9
 * digits. */
TEST(test_number__floats_print_as_the_protobuf_library_prints_them)
{
    CHECK_TEXT(float_text(0.1f), "0.1");
    CHECK_TEXT(float_text(1.0f / 3), "0.33333334");
    CHECK_TEXT(float_text(16777216.0f), "16777216.0");
    CHECK_TEXT(float_text(3.1415927f), "3.1415927");
    CHECK_TEXT(float_text(1e-7f), "1e-07");
    CHECK_TEXT(float_text(1.4e-45f), "1.4013e-45"); /* six digits, though one would do */
    CHECK_TEXT(float_text(3.4028235e38f), "3.4028235e+38");
    CHECK_TEXT(float_text(-INFINITY), "-inf");
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s ^ *s >> 29;
}

TEST(test_number__every_double_reads_back_the_same)
{
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = next_random(&seed);
        double v, back;
        char out[ORR_NUMBER_ROOM];
        memcpy(&v, &bits, sizeof v);
        const orr_str text = {.ptr = out, .len = orr_double_text(v, out)};
        CHECK(text.len <= ORR_NUMBER_ROOM);
        CHECK(orr_text_double(text, &back));
        CHECK((v != v && back != back) || memcmp(&v, &back, sizeof v) == 0);
    }
}

/* Against the C library's reader, whose result is correctly rounded. */
TEST(test_number__decimal_text_is_rounded_once)
{
    uint64_t seed = 2;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        const uint64_t whole = next_random(&seed) >> (next_random(&seed) % 64);
        const int fraction = (int)(next_random(&seed) % 12);
        const uint64_t part = next_random(&seed) % 1000000000000u;
        snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64, whole, fraction + 1, part);
        const double want = strtod(text, NULL), got = read_double(text);
        CHECK(memcmp(&want, &got, sizeof want) == 0);
    }
}

TEST(test_number__out_of_range_text_is_infinity_or_zero)
{
    CHECK(read_double("1e400") == INFINITY);
    CHECK(read_double("-1e400") == -INFINITY);
    CHECK(read_double("1e99999999999999999999") == INFINITY);
    CHECK(read_double("0.001e400") == INFINITY);
    CHECK(read_double("1e-400") == 0 && !signbit(read_double("1e-400")));
    CHECK(signbit(read_double("-1000e-400")));
    CHECK(read_double("0e999") == 0);
    CHECK(read_double("Infinity") == INFINITY);
    CHECK(read_double("-inf") == -INFINITY);
    CHECK(isnan(read_double("NaN")));
}

TEST(test_number__text_that_is_no_number_is_refused)
{
    static const char *const bad[] = {"",    "-",    "+1",     ".5",      "5.",   "01",
                                      "1e",  "1e+",  "0x10",   " 1",      "1 ",   "1,5",
                                      "--1", "1.e5", "nan(1)", "infinit", "1_000"};
    double v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!orr_text_double(orr_str_of(bad[i]), &v));
}

TEST(test_number__integers_are_exact_to_their_limits)
{
    uint64_t u;
    int64_t i;
    CHECK(orr_text_u64(orr_str_of("18446744073709551615"), &u) && u == UINT64_MAX);
    CHECK(!orr_text_u64(orr_str_of("18446744073709551616"), &u));
    CHECK(!orr_text_u64(orr_str_of("-1"), &u));
    CHECK(!orr_text_u64(orr_str_of(""), &u));
    CHECK(!orr_text_u64(orr_str_of("12a"), &u));
    CHECK(orr_text_i64(orr_str_of("-9223372036854775808"), &i) && i == INT64_MIN);
    CHECK(orr_text_i64(orr_str_of("+7"), &i) && i == 7);
    CHECK(!orr_text_i64(orr_str_of("9223372036854775808"), &i));
    CHECK(!orr_text_i64(orr_str_of("+-7"), &i));
    CHECK(!orr_text_i64(orr_str_of("+"), &i));
    CHECK(!orr_text_i64(orr_str_of("-"), &i));
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_number__doubles_print_as_python_prints_them),
        RUN(test_number__floats_print_as_the_protobuf_library_prints_them),
        RUN(test_number__every_double_reads_back_the_same),
        RUN(test_number__decimal_text_is_rounded_once),
        RUN(test_number__out_of_range_text_is_infinity_or_zero),
        RUN(test_number__text_that_is_no_number_is_refused),
        RUN(test_number__integers_are_exact_to_their_limits),
    };
    return RUN_ALL(tests);
}
