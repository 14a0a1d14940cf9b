/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* What spdlog 1.10 printed for these patterns: logger "workload", level warning, text "sys[0] 5%",
 * 2026-03-07 15:04:09.087654321 UTC, in a zone 5:30 east of it. */
#include "check.h"

#include "compat/astra_sim/config_logging.h"

static const orr__log_stamp stamp = {
    .local = {.tm_year = 126,
              .tm_mon = 2,
              .tm_mday = 7,
              .tm_hour = 20,
              .tm_min = 34,
              .tm_sec = 9,
              .tm_wday = 6,
              .tm_gmtoff = 19800},
    .seconds = 1772895849,
    .nanoseconds = 87654321,
    .process = 41,
    .thread = 77,
};

static void check_at(const char *pattern, const orr__log_stamp *s, const char *want)
{
    const orr__log_record record = {"workload", ORR__LOG_WARNING, orr_str_of("sys[0] 5%")};
    orr_buf fixed = {0}, out = {0};
    char line[300];
    orr__log_fix(pattern, s, &fixed);
    orr__log_line((orr_str){(const char *)fixed.ptr, fixed.len}, &record, &out);
    snprintf(line, sizeof line, "%.*s", (int)out.len - 1, (const char *)out.ptr);
    CHECK_EQ(out.ptr[out.len - 1], '\n');
    CHECK_TEXT(line, want);
    orr_buf_fini(&fixed);
    orr_buf_fini(&out);
}

static void check(const char *pattern, const char *want)
{
    check_at(pattern, &stamp, want);
}

TEST(test_log_pattern__each_flag)
{
    static const struct {
        char flag;
        const char *want;
    } flags[] = {
        {'v', "sys[0] 5%"},
        {'t', "77"},
        {'n', "workload"},
        {'l', "warning"},
        {'L', "W"},
        {'a', "Sat"},
        {'A', "Saturday"},
        {'b', "Mar"},
        {'h', "Mar"},
        {'B', "March"},
        {'C', "26"},
        {'c', "Sat Mar 7 20:34:09 2026"},
        {'Y', "2026"},
        {'D', "03/07/26"},
        {'x', "03/07/26"},
        {'m', "03"},
        {'d', "07"},
        {'H', "20"},
        {'I', "08"},
        {'M', "34"},
        {'S', "09"},
        {'e', "087"},
        {'f', "087654"},
        {'F', "087654321"},
        {'E', "1772895849"},
        {'p', "PM"},
        {'r', "08:34:09 PM"},
        {'R', "20:34"},
        {'T', "20:34:09"},
        {'X', "20:34:09"},
        {'z', "+05:30"},
        {'+', "[2026-03-07 20:34:09.087] [workload] [warning] sys[0] 5%"},
        {'^', ""},
        {'$', ""},
        {'%', "%"},
        {'s', ""},
        {'g', ""},
        {'#', ""},
        {'!', ""},
        {'@', ""},
        {'q', "%q"},
        {'P', "41"},
        {'i', "0"},
        {'u', "0"},
        {'o', "0"},
        {'O', "0"},
    };
    char pattern[8], want[100];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        snprintf(pattern, sizeof pattern, "[%%%c]", flags[i].flag);
        snprintf(want, sizeof want, "[%s]", flags[i].want);
        check(pattern, want);
    }
}

TEST(test_log_pattern__widths)
{
    check("%8l|%-8l|%=8l|%=9l", " warning|warning |warning | warning ");
    check("%3l|%3!l|%-3!v|%=3!v", "warning|war|sys|sys");
    check("%12T|%-12e|%=5d", "    20:34:09|087         | 07  ");
    check("%0l|%00008l|%200n", "warning| warning|"
                               "                                                        workload");
    check("%-l|%=l", "warning|warning");
    check("%8%|%8^x|%8$x", "%|x|x");
    check("%8@|%5s|%-5#|", "        |     |     |");
    check("%20c|%12D|%14r|%6R|%8z|%12F|%8f|%8p|%3!A",
          "Sat Mar 7 20:34:09 2026|  03/07/26|   08:34:09 PM| 20:34|  +05:30|   087654321|  087654|"
          "      PM|Sat");
    check("%5+|", "[2026-03-07 20:34:09.087] [workload] [warning] sys[0] 5%|");
}

TEST(test_log_pattern__what_is_no_flag_stands)
{
    check("plain", "plain");
    check("", "");
    check("%", "");
    check("a%", "a");
    check("[%10!] %v|[%3!!] %v", "[          ] sys[0] 5%|[   ] sys[0] 5%");
    check("%10q|%10!q", "%q|          q");
    check("%!|%!v|%8!", "|v|");
    check("\xC3\xA4%v\xC3\x9F", "\xC3\xA4sys[0] 5%\xC3\x9F");
}

TEST(test_log_pattern__the_two_of_the_old_program)
{
    check("[%Y-%m-%dT%T%z] [%L] <%n>: %v", "[2026-03-07T20:34:09+05:30] [W] <workload>: sys[0] 5%");
    check(orr__log_plain, "[2026-03-07 20:34:09.087] [workload] [warning] sys[0] 5%");
}

/* The same time, 3:30 west. */
TEST(test_log_pattern__before_noon_and_west)
{
    orr__log_stamp s = stamp;
    s.local.tm_hour = 11;
    s.local.tm_gmtoff = -12600;
    check_at("%z %c %I %p %r", &s, "-03:30 Sat Mar 7 11:34:09 2026 11 AM 11:34:09 AM");
}

TEST(test_log_pattern__now_is_now)
{
    orr__log_stamp s;
    struct timespec before, after; /* time() may be some milliseconds behind */
    clock_gettime(CLOCK_REALTIME, &before);
    orr__log_now(&s);
    clock_gettime(CLOCK_REALTIME, &after);
    CHECK(s.seconds >= before.tv_sec && s.seconds <= after.tv_sec);
    CHECK(s.nanoseconds < 1000000000);
    CHECK_EQ_U(s.process, getpid());
    CHECK(s.local.tm_year + 1900 >= 2024);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_log_pattern__each_flag),
        RUN(test_log_pattern__widths),
        RUN(test_log_pattern__what_is_no_flag_stands),
        RUN(test_log_pattern__the_two_of_the_old_program),
        RUN(test_log_pattern__before_noon_and_west),
        RUN(test_log_pattern__now_is_now),
    };
    return RUN_ALL(tests);
}
