/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/io/progress_impl.h"

#include <fcntl.h>

static const uint64_t second = 1000000000;

static const char *line_of(orr_progress p, uint64_t now)
{
    static char out[200];
    orr__progress_line(&p, now, out, sizeof out);
    return out;
}

TEST(test_progress__line_has_share_rate_and_time_left)
{
    const orr_progress p = {.what = "reading",
                            .unit = "nodes",
                            .done = 250000,
                            .total = 1000000,
                            .started_ns = 5 * second};
    /* 250,000 in 2 s: 125 k/s, and 750,000 / 125,000 = 6 s to go */
    CHECK_TEXT(line_of(p, 7 * second),
               "reading  25% 250,000 of 1,000,000 nodes, 125 k nodes/s, 0:06 left");
}

TEST(test_progress__line_does_without_a_total)
{
    const orr_progress p = {.what = "reading", .unit = "bytes", .done = 3u << 20};
    CHECK_TEXT(line_of(p, 2 * second), "reading 3.00 MiB, 1.57 MB/s"); /* 3 * 1048576 / 2 */
}

TEST(test_progress__line_survives_odd_numbers)
{
    orr_progress p = {.what = "w", .unit = "items", .total = 10};
    CHECK_TEXT(line_of(p, 0), "w   0% 0 of 10 items, 0 items/s");
    p.done = 20; /* more than was announced: no share, nothing left to say */
    CHECK_TEXT(line_of(p, second), "w 20 of 10 items, 20 items/s");
    p = (orr_progress){.what = "w", .unit = "items", .total = UINT64_MAX, .done = 1};
    CHECK(strstr(line_of(p, second), " left"));
}

TEST(test_progress__a_note_takes_the_place_of_amounts)
{
    orr_progress p = {.what = "simulating",
                      .unit = "events",
                      .done = 250000,
                      .total = 1000000,
                      .note = "; at 3 ms",
                      .started_ns = 5 * second};
    CHECK_TEXT(line_of(p, 7 * second), "simulating  25%, 125 k events/s, 0:06 left; at 3 ms");
    p.total = 0; /* without an estimate the amount is what there is to say */
    CHECK_TEXT(line_of(p, 7 * second), "simulating 250,000 events, 125 k events/s; at 3 ms");
}

TEST(test_progress__line_is_cut_to_the_terminal)
{
    const orr_progress p = {.what = "reading", .unit = "nodes", .done = 1};
    char out[16];
    memset(out, 'x', sizeof out);
    CHECK_EQ_U(orr__progress_line(&p, second, out, 12), 11);
    CHECK_TEXT(out, "reading 1 n");
}

/* What is written when 1.2 seconds pass while items are added. */
TEST(test_progress__shows_a_few_lines_and_takes_them_away)
{
    int ends[2];
    char text[8192];
    orr_progress p;
    CHECK(pipe(ends) == 0);
    orr__progress_start_on(&p, "w", "items", 0, ends[1]);
    for (int i = 0; i < 240; i++) {
        usleep(5000);
        orr_progress_add(&p, 1);
    }
    orr_progress_end(&p);
    CHECK(p.fd == -1);
    close(ends[1]);
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    CHECK(n > 4);
    close(ends[0]);
    text[n] = '\0';
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "\r\x1b[K")); at++)
        lines++;
    CHECK(lines >= 3);  /* 0.5 s and at most every 0.1 s after it, and the last one erased */
    CHECK(lines <= 30); /* a slow machine only makes 1.2 s longer */
    CHECK_TEXT(text + n - 4, "\r\x1b[K");
}

TEST(test_progress__off_it_never_asks_the_clock)
{
    orr_progress p;
    orr_progress_start(&p, "w", "items", 0, true);
    for (int i = 0; i < 1000; i++)
        orr_progress_add(&p, 1);
    CHECK(p.look == UINT64_MAX && p.started_ns == 0);
    CHECK_EQ_U(p.done, 1000);
    orr_progress_end(&p);
}

TEST(test_progress__short_work_shows_nothing)
{
    int ends[2];
    char c;
    orr_progress p;
    CHECK(pipe(ends) == 0);
    orr__progress_start_on(&p, "w", "items", 10, ends[1]);
    for (int i = 0; i < 10; i++)
        orr_progress_add(&p, 1);
    orr_progress_end(&p);
    close(ends[1]);
    CHECK_EQ(read(ends[0], &c, 1), 0);
    close(ends[0]);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_progress__line_has_share_rate_and_time_left),
        RUN(test_progress__line_does_without_a_total),
        RUN(test_progress__line_survives_odd_numbers),
        RUN(test_progress__a_note_takes_the_place_of_amounts),
        RUN(test_progress__line_is_cut_to_the_terminal),
        RUN(test_progress__shows_a_few_lines_and_takes_them_away),
        RUN(test_progress__off_it_never_asks_the_clock),
        RUN(test_progress__short_work_shows_nothing),
    };
    return RUN_ALL(tests);
}
