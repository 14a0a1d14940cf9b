/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_series.c - what flows, queues and links did over time: known rates give known rows,
 * whatever the length of the run, and memory stays within its limit. */
#include "fabrics.h"

#include "models/network/packet/watch/watchers.h"

#define LINK "100Gbps 1us 0"

static fabric_told told;
static char text[1 << 20];

static const char *read_back(const char *path)
{
    FILE *in = fopen(path, "r");
    CHECK(in);
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    return text;
}

static void commit(void)
{
    orr_error err;
    CHECK_OK(fab_commit(told.fabric, &err), &err);
    fab_destroy(told.fabric);
}

/* A stream of 1000 packets over a cable, 82.88 ns each, from 0 on: 82.88 us in all.  Intervals of
 * 10 us: eight are full, the ninth is busy for 2.88 us.  All is acknowledged 2 us later; the look
 * after that is the last. */
TEST(test_fabric_series__a_link_is_busy_while_packets_leave)
{
    char expected[200];
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 SERIES_FILE s.csv SERIES_WHAT links ",
                "2 0 1\n\n0 1 " LINK "\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    commit();
    const char *rows = read_back("s.csv");
    for (int i = 0; i < 8; i++) {
        snprintf(expected, sizeof expected, "link,0.1 -> 1,%d.000,%d.000,1.000000,0.000000,,,,,\n",
                 i * 10000, (i + 1) * 10000);
        CHECK(strstr(rows, expected));
    }
    CHECK(strstr(rows, "link,0.1 -> 1,80000.000,90000.000,0.288000,0.000000,,,,,\n"));
    CHECK(!strstr(rows, "queue,") && !strstr(rows, "flow,"));
    unlink("s.csv");
}

/* Eight slots for 84.88 us in steps of 1 us: they have become 16 us each, and the sums are as
 * before.  The last look is at 85 us, 5 us into the sixth. */
TEST(test_fabric_series__slots_are_merged_when_they_are_used_up)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 SERIES_FILE s.json SERIES_INTERVAL 1us SERIES_SAMPLES 8 "
                              "SERIES_WHAT links,flows ",
                "2 0 1\n\n0 1 " LINK "\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_series_of(told.fabric)->merged, 16);
    CHECK(fab_series_of(told.fabric)->count < 8);
    uint64_t busy = 0;
    const fab_series_watch *w = &fab_series_of(told.fabric)->ports.list[0];
    for (size_t i = 0; i < 8; i++)
        busy += w->slots[i].a;
    CHECK_EQ_U(busy, 82880000);
    commit();
    CHECK(strstr(read_back("s.json"), "\"interval_ps\":16000000,\"intervals\":6"));
    CHECK(strstr(text, "\"utilisation\":[1.0,1.0,1.0,1.0,1.0,0.576"));
    CHECK(strstr(text, "\"bytes\":1000000"));
    unlink("s.json");
}

/* The same run in steps of 1 ps: a slot ends up 2^24 ps wide.  Until there are so wide ones, 8
 * slots are filled 24 times, with 64 looks each. */
TEST(test_fabric_series__fine_steps_cost_a_long_run_no_more)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 SERIES_FILE s.json SERIES_INTERVAL 1ps SERIES_SAMPLES 8 ",
                "2 0 1\n\n0 1 " LINK "\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_series_of(told.fabric)->merged, 1 << 24);
    uint64_t busy = 0, looks = 0;
    const fab_series_watch *w = &fab_series_of(told.fabric)->ports.list[0];
    for (size_t i = 0; i < 8; i++) {
        busy += w->slots[i].a;
        looks += w->slots[i].samples;
    }
    CHECK_EQ_U(busy, 82880000);
    CHECK(looks <= 8 * 24 * 64);
    commit();
    unlink("s.json");
}

/* As many slots as there may be, and steps of 1 ps: 85 us are 2^10 ps a slot.  Each doubling takes
 * no more looks than half of the slots, so there are 100,000 of the first time and ten times
 * 50,000. */
TEST(test_fabric_series__many_slots_cost_a_look_each)
{
    fabric_make(FABRIC_CONFIG
                "HAS_WIN 0 SERIES_FILE s.json SERIES_INTERVAL 1ps SERIES_SAMPLES 100000 ",
                "2 0 1\n\n0 1 " LINK "\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_series_of(told.fabric)->merged, 1 << 10);
    CHECK(fab_series_of(told.fabric)->samples <= 100000 + 10 * 50000);
    fab_destroy(told.fabric);
}

/* Two flows of 100 Gb/s into one link: the queue grows by a packet each 82.88 ns, and each flow
 * gets half. */
TEST(test_fabric_series__queues_and_flows)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 SERIES_FILE s.csv SERIES_WATCH 3.3 SERIES_TOP 0 "
                              "SERIES_WHAT queues ",
                fabric_star(3, LINK), &told);
    fabric_send(&told, 0, 2, 1000000, 0);
    fabric_send(&told, 1, 2, 1000000, 1);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_series_of(told.fabric)->ports.count, 1);
    /* after 10 us: packets have arrived from 1.08288 us on, two at a time: 108 each, 216, and 107
     * have left */
    CHECK_EQ_U(fab_series_of(told.fabric)->ports.list[0].slots[0].max, 108 * 1036);
    commit();
    CHECK(strstr(read_back("s.csv"), "queue,switch3.3 -> 2,0.000,10000.000,,,111888,111888,,,\n"));
    unlink("s.csv");
}

/* The busiest port is watched whatever comes first; the largest flows are kept. */
TEST(test_fabric_series__the_busiest_are_kept)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 SERIES_FILE s.json SERIES_INTERVAL 5us SERIES_TOP 2 ",
                fabric_star(8, LINK), &told);
    for (uint32_t i = 0; i < 7; i++)
        fabric_send(&told, i, 7, 20000 * (i + 1), i);
    fabric_run_all(&told);
    const fab_series *s = fab_series_of(told.fabric);
    CHECK_EQ_U(s->ports.count, 2);
    CHECK(s->ports.list[0].id == 14 || s->ports.list[1].id == 14); /* the switch to host 7 */
    CHECK_EQ_U(s->flows.count, 2);
    CHECK_EQ_U(s->flows.list[0].size + s->flows.list[1].size, 120000 + 140000);
    uint64_t bytes = 0;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < s->limit; i++)
            bytes += s->flows.list[k].slots[i].a;
    CHECK_EQ_U(bytes, 260000);
    commit();
    unlink("s.json");
}

TEST(test_fabric_series__names_are_checked)
{
    static const char *const wrong[] = {"9.1", "3.4", "3.0", "0-9", "x", "3.", "1-"};
    static orr__packet_config c;
    orr__cabling cabling = {0};
    fab *f;
    orr_error err;
    char config[400];
    CHECK_OK(orr__cabling_parse(&cabling, fabric_span(fabric_star(3, LINK)), "t", &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(config, sizeof config, FABRIC_CONFIG "SERIES_FILE s.csv SERIES_WATCH %s",
                 wrong[i]);
        orr__packet_config_defaults(&c, NULL);
        CHECK_OK(orr__packet_config_parse(&c, fabric_span(config), "c", &err), &err);
        CHECK_CODE(fab_create_watched(&c, &cabling, NULL, &f, &err), ORR_EINPUT, &err);
        CHECK_SAYS(&err, "SERIES_WATCH");
    }
    orr__cabling_fini(&cabling);
    CHECK(access("s.csv", F_OK) != 0);
}

/* SimAI's files.  Half the speed of the wire is used up by two flows in turn; 10 us of 100 Gb/s are
 * 125,000 bytes, in packets of 1036: 120 have left and one is on its way, so 121, 125,356 bytes and
 * 100.2848 Gb/s. */
TEST(test_fabric_series__simai_monitors)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 BW_MON_FILE bw.txt RATE_MON_FILE rate.txt CNP_MON_FILE "
                              "cnp.txt QLEN_MON_FILE q.txt BW_MON_INTERVAL 10 QP_MON_INTERVAL 10 "
                              "QLEN_MON_INTERVAL 10 MON_END 25 ",
                fabric_star(3, LINK), &told);
    fabric_send(&told, 0, 2, 1000000, 0);
    fabric_send(&told, 1, 2, 1000000, 1);
    fabric_run_all(&told);
    commit();
    CHECK(strstr(read_back("bw.txt"),
                 "time, node_id, port_id, bandwidth\n10000, 0, 1, 100.284800\n"));
    CHECK(!strstr(text, "\n30000,"));
    CHECK_TEXT(read_back("rate.txt"), "time, src, dst, sport, dport, size, curr_rate\n"
                                      "10000, 0, 2, 10000, 100, 1000000, 100000000000\n"
                                      "10000, 1, 2, 10000, 100, 1000000, 100000000000\n");
    CHECK_TEXT(read_back("cnp.txt"), "time, src, dst, sport, dport, size, cnp_number\n");
    CHECK(
        strstr(read_back("q.txt"), "10000, 3, 3, 3, 111888, 111888\n10000, 3, 3, 4, 0, 111888\n"));
    unlink("bw.txt"), unlink("rate.txt"), unlink("cnp.txt"), unlink("q.txt");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_series__a_link_is_busy_while_packets_leave),
        RUN(test_fabric_series__slots_are_merged_when_they_are_used_up),
        RUN(test_fabric_series__fine_steps_cost_a_long_run_no_more),
        RUN(test_fabric_series__many_slots_cost_a_look_each),
        RUN(test_fabric_series__queues_and_flows),
        RUN(test_fabric_series__the_busiest_are_kept),
        RUN(test_fabric_series__names_are_checked),
        RUN(test_fabric_series__simai_monitors),
    };
    return RUN_ALL(tests);
}
