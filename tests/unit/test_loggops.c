/* SPDX-License-Identifier: Apache-2.0 */
/* Times by our own rules, worked out by hand with LogGOPSim's parameters: L 2500, o 1500, g 1000, G
 * 6, S 65535. */
#include "files.h"
#include "rooms.h"

#include "run/loggops/loggops.h"

#include <math.h>

static orr_error err;
static orr_goal *schedule;

static const struct orr_rules_loggops *rules_of(const char *name)
{
    return program_of(ORR_RULES_LOGGOPS, name)->loggops;
}

static lgs_sim *start(const char *text, const lgs_options *opt)
{
    lgs_sim *s;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_OK(orr_goal_parse(bytes, "x.goal", NULL, &schedule, &err), &err);
    CHECK_OK(lgs_create(schedule, opt, &s, &err), &err);
    return s;
}

static void end(lgs_sim *s)
{
    lgs_destroy(s);
    orr_goal_free(schedule);
}

static lgs_sim *run(const char *text, const lgs_options *opt)
{
    lgs_sim *s = start(text, opt);
    CHECK_OK(lgs_run(s, &err), &err);
    return s;
}

static void check_times(const char *text, const lgs_options *opt, uint64_t a, uint64_t b)
{
    lgs_sim *s = run(text, opt);
    CHECK_EQ_U(lgs_finished_at(s, 0), a);
    CHECK_EQ_U(lgs_finished_at(s, 1), b);
    end(s);
}

/* There: sent at 0, first byte there at o + L = 4000, taken in after o + 99 G = 2094 more; and
 * back. */
TEST(test_loggops__a_message_there_and_back)
{
    static const char text[] =
        "num_ranks 2\nrank 0 {\na: send 100b to 1\nb: recv 100b from 1\n}\n"
        "rank 1 {\na: recv 100b from 0\nb: send 100b to 0\nb requires a\n}\n";
    lgs_sim *s = run(text, NULL);
    CHECK_EQ_U(lgs_finished_at(s, 1), 6094 + 1500);
    CHECK_EQ_U(lgs_finished_at(s, 0), 6094 + 4000 + 2094);
    CHECK_EQ_U(lgs_events(s), 6);
    CHECK_EQ_U(lgs_messages(s), 2);
    end(s);
}

/* LogGOPSim lets the second start before the first is over, because its own CPU is free. */
TEST(test_loggops__an_operation_waits_for_those_on_other_cpus)
{
    static const char text[] =
        "num_ranks 2\nrank 0 {\na: calc 100\nb: calc 50 cpu 1\nb requires a\n}\n"
        "rank 1 {\n}\n";
    lgs_options opt = lgs_defaults();
    check_times(text, &opt, 150, 0);
    opt.rules = rules_of("lgs2023");
    check_times(text, &opt, 100, 0);
}

#define PAIR(send, recv) "num_ranks 2\nrank 0 {\n" send "\n}\nrank 1 {\n" recv "\n}\n"

TEST(test_loggops__an_empty_message_costs_as_much_as_one_byte)
{
    check_times(PAIR("send 0b to 1", "recv 0b from 0"), NULL, 1500, 5500);
    check_times(PAIR("send 1b to 1", "recv 1b from 0"), NULL, 1500, 5500);
}

/* LogGOPSim takes the time of minus one byte, so that clocks go back: O 7 and G 1 make the first
 * send busy until 63; the others both try then, and leave the CPU at 63 - 7.  Messages come at 0,
 * 63 and 63 and leave it at 63 - 1. */
TEST(test_loggops__by_old_rules_an_empty_message_sets_clocks_back)
{
    lgs_options opt = {.rules = rules_of("lgs2023"), .G = 1, .O = 7, .S = 65535};
    check_times(PAIR("send 10b to 1 tag 1\nsend 0b to 1 tag 2\nsend 0b to 1 tag 3",
                     "recv 10b from 0 tag 1\nrecv 0b from 0 tag 2\nrecv 0b from 0 tag 3"),
                &opt, 56, 62);
}

/* 16,383 bytes more than one at 0.04 ns are 655.32 ns, rounded down. */
TEST(test_loggops__g_may_be_a_fraction)
{
    lgs_options opt = lgs_defaults();
    opt.G = 0.04;
    check_times(PAIR("send 16384b to 1", "recv 16384b from 0"), &opt, 1500, 5500 + 655);
    opt.rules = rules_of("lgs2023");
    lgs_sim *s;
    CHECK_CODE(lgs_create(schedule, &opt, &s, &err), ORR_EUSAGE, &err);
}

/* A send above S is over when it meets its receive: at 100,000 ns, when that is posted and the
 * receiver has its CPU for the message. */
TEST(test_loggops__a_large_send_waits_for_its_receive)
{
    lgs_options opt = lgs_defaults();
    opt.S = 10;
    check_times(PAIR("a: send 100b to 1\nb: calc 5\nb requires a",
                     "a: calc 100000\nb: recv 100b from 0\nb requires a"),
                &opt, 100000 + 5, 100000 + 1500 + 594);
}

TEST(test_loggops__wildcards_take_what_came_first)
{
    static const char text[] = "num_ranks 3\nrank 0 {\na: recv 1b from -1 tag -1\n"
                               "b: recv 1b from 2 tag 9\nb requires a\n}\n"
                               "rank 1 {\nsend 1b to 0 tag 5\n}\n"
                               "rank 2 {\na: calc 9000\nb: send 1b to 0 tag 9\nb requires a\n}\n";
    lgs_sim *s = run(text, NULL);
    CHECK_EQ_U(lgs_finished_at(s, 0), 9000 + 5500);
    end(s);
}

static void check_stall(const char *text, const char *words, const char *line)
{
    lgs_sim *s = start(text, NULL);
    CHECK_CODE(lgs_run(s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK(lgs_stall_line(s, 0) != NULL);
    CHECK_TEXT(lgs_stall_line(s, 0), line);
    end(s);
}

TEST(test_loggops__what_does_not_come_to_an_end_says_why)
{
    check_stall(
        PAIR("send 8b to 1 tag 6", "a: recv 8b from 0 tag 5\nb: calc 1\nb requires a"),
        "2 of 3 operations never finish: rank 1: operation 1 (recv 8b from 0 tag 5): no rank "
        "sends it",
        "rank 1: operation 1 (recv 8b from 0 tag 5): no rank sends it; one from rank 0 with tag "
        "6 waits there");
    check_stall(PAIR("send 8b to 1", ""), "1 messages are never received",
                "rank 0: operation 1 (send 8b to 1 tag 0): its message is never received");
    check_stall(PAIR("a: calc 1\nb: calc 2\na requires b\nb requires a", ""),
                "operation 1 (calc 1) waits for itself, in a cycle",
                "rank 0: operation 1 (calc 1) waits for rank 0: operation 2 (calc 2)");
    check_stall(
        PAIR("a: recv 1b from 1\nb: send 1b to 1\nb requires a",
             "a: recv 1b from 0\nb: send 1b to 0\nb requires a"),
        "waits for itself, in a cycle",
        "rank 0: operation 1 (recv 1b from 1 tag 0) waits for rank 1: operation 2 (send 1b to 0 "
        "tag 0)");
}

TEST(test_loggops__peers_must_exist)
{
    lgs_sim *s;
    const char text[] = PAIR("send 8b to 7", "");
    const orr_span bytes = {(const uint8_t *)text, sizeof text - 1};
    CHECK_OK(orr_goal_parse(bytes, "x.goal", NULL, &schedule, &err), &err);
    CHECK_CODE(lgs_create(schedule, NULL, &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 0: operation 1 (send 8b to 7 tag 0): there are only 2 ranks");
    orr_goal_free(schedule);
}

/* Seed 5489 draws 3499211612 first, so ranks start at 3499211612 / (2^32 - 1) * 1000 = 814 in the
 * file.  An operation of 200 ns at 0 is then at 814 mod 800 = 14 and meets the interruption at 100;
 * one of 2500 meets all of them twice, and at 814 mod 500 = 314 none for the rest. */
TEST(test_loggops__interruptions_lengthen_operations)
{
    static const char noise[] = "# start duration\n0\t0\n100\t10\n1000\t5\n";
    write_file("noise.txt", noise, sizeof noise - 1);
    lgs_options opt = lgs_defaults();
    opt.noise = "noise.txt";
    opt.has_common_noise = true;
    opt.noise_seed = 5489;
    lgs_sim *s = run(PAIR("calc 200", "calc 2500"), &opt);
    CHECK_EQ_U(lgs_finished_at(s, 0), 210);
    CHECK_EQ_U(lgs_finished_at(s, 1), 2520);
    CHECK_EQ_U(lgs_noise_of(s, 1), 20);
    lgs_destroy(s);
    write_file("noise.txt", "0 1\n50 x\n", 9);
    CHECK_CODE(lgs_create(schedule, &opt, &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "noise.txt:2:1: expected the duration of an interruption");
    write_file("noise.txt", "50 1\n20 1\n", 10);
    CHECK_CODE(lgs_create(schedule, &opt, &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "noise.txt:2:1: an interruption at 20 ns after one at 50 ns");
    orr_goal_free(schedule);
}

TEST(test_loggops__a_timeline_has_a_span_for_each_operation_and_an_arrow_for_each_message)
{
    lgs_options opt = lgs_defaults();
    orr_timeline *t;
    opt.keeps_spans = true;
    lgs_sim *s = run(PAIR("a: calc 10\nb: send 1b to 1\nb requires a", "recv 1b from 0"), &opt);
    CHECK_OK(lgs_timeline(s, &t, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->span_count, 3);
    CHECK_EQ_U(p->track_count, 2);
    CHECK_EQ_U(p->arrow_count, 1);
    CHECK_EQ(p->arrows[0].left, 1510 * 1000);
    CHECK_EQ(p->arrows[0].arrived, 4010 * 1000);
    CHECK_EQ(p->end, 5510 * 1000);
    orr_timeline_destroy(t);
    end(s);
}

/* 2,000 messages at once: the CPU takes one in every o = 1500 ns from 4000 on.  Also from ranks in
 * turn, so that events come back out of order. */
TEST(test_loggops__messages_queue_for_a_busy_cpu)
{
    enum { SENDERS = 8, EACH = 250 };
    orr_buf b = {0};
    orr_buf_print(&b, "num_ranks %d\nrank 0 {\n", SENDERS + 1);
    for (int i = 0; i < SENDERS * EACH; i++)
        orr_buf_print(&b, "recv 1b from %d tag %d\n", i % SENDERS + 1, i / SENDERS);
    orr_buf_text(&b, "}\n");
    for (int r = 1; r <= SENDERS; r++) {
        orr_buf_print(&b, "rank %d {\n", r);
        for (int i = EACH; i-- > 0;)
            orr_buf_print(&b, "send 1b to 0 tag %d\n", i);
        orr_buf_text(&b, "}\n");
    }
    orr_buf_byte(&b, 0);
    lgs_sim *s = run((const char *)b.ptr, NULL);
    CHECK_EQ_U(lgs_finished_at(s, 0), 4000 + 1500 * SENDERS * EACH);
    CHECK_EQ_U(lgs_finished_at(s, 1), 1500 * EACH);
    end(s);
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_loggops__a_message_there_and_back),
        RUN(test_loggops__an_operation_waits_for_those_on_other_cpus),
        RUN(test_loggops__an_empty_message_costs_as_much_as_one_byte),
        RUN(test_loggops__by_old_rules_an_empty_message_sets_clocks_back),
        RUN(test_loggops__g_may_be_a_fraction),
        RUN(test_loggops__a_large_send_waits_for_its_receive),
        RUN(test_loggops__wildcards_take_what_came_first),
        RUN(test_loggops__what_does_not_come_to_an_end_says_why),
        RUN(test_loggops__peers_must_exist),
        RUN(test_loggops__interruptions_lengthen_operations),
        RUN(test_loggops__a_timeline_has_a_span_for_each_operation_and_an_arrow_for_each_message),
        RUN(test_loggops__messages_queue_for_a_busy_cpu),
    };
    return RUN_ALL(tests);
}
