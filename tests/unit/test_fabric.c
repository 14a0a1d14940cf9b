/* SPDX-License-Identifier: Apache-2.0 */
/* The packet network by hand: sizes are 36 bytes and the payload for data, 48 for an
 * acknowledgement. */
#include "rooms.h"

#include "models/network/packet/engine/fabric.h"
#include "models/network/packet/watch/watchers.h"

#define CONFIG                                                                        \
    "CC_MODE 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 " \
    "ENABLE_QCN 0 "

typedef struct told {
    fab *fabric;
    uint64_t sent_at, arrived_at; /* ticks, of the message told of last */
    unsigned sent, arrived;
} told;

static void note_sent(void *context, uint64_t token)
{
    told *t = context;
    (void)token;
    t->sent_at = fab_now(t->fabric);
    t->sent++;
}

static void note_arrived(void *context, uint64_t token)
{
    told *t = context;
    (void)token;
    t->arrived_at = fab_now(t->fabric);
    t->arrived++;
}

static orr_span span_of(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

/* A network of these words, which tells `t`. */
static fab *make(const char *config, const char *topology, bool is_compat, told *t)
{
    static orr__packet_config c;
    orr__cabling cabling = {0};
    orr_error err;
    const fab_listener watcher = {t, note_sent, note_arrived};
    orr__packet_config_defaults(&c, is_compat ? program_of(ORR_RULES_PACKET, "ns3")->packet : NULL);
    CHECK_OK(orr__packet_config_parse(&c, span_of(config), "c.txt", &err), &err);
    CHECK_OK(orr__cabling_parse(&cabling, span_of(topology), "t.txt", &err), &err);
    *t = (told){0};
    CHECK_OK(fab_create_watched(&c, &cabling, NULL, &t->fabric, &err), &err);
    fab_listen(t->fabric, &watcher);
    orr__cabling_fini(&cabling);
    return t->fabric;
}

static void send_one(fab *f, uint32_t src, uint32_t dst, uint64_t size)
{
    orr_error err;
    const fab_send_request r = {.src = src, .dst = dst, .size = size};
    CHECK_OK(fab_send(f, &r, &err), &err);
}

static void run_all(fab *f)
{
    orr_error err;
    while (fab_run(f, 100))
        ;
    CHECK_OK(fab_status(f, &err), &err);
}

/* 1036 bytes at 100 Gb/s take 82.88 ns, 48 take 3.84; the cable takes 1 us each way. */
TEST(test_fabric__one_packet_over_a_cable)
{
    told t;
    fab *f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", false, &t);
    CHECK_EQ_U(fab_unit(f), 1000);
    send_one(f, 0, 1, 1000);
    run_all(f);
    CHECK_EQ_U(t.arrived_at, 1082880);
    CHECK_EQ_U(t.sent_at, 2086720);
    fab_destroy(f);
}

/* The same in whole nanoseconds, 83 and 4, and the receiver hears of it with the sender. */
TEST(test_fabric__one_packet_as_the_reference_has_it)
{
    told t;
    fab *f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", true, &t);
    CHECK_EQ_U(fab_unit(f), 1);
    send_one(f, 0, 1, 1000);
    run_all(f);
    CHECK_EQ_U(t.arrived_at, 2087);
    CHECK_EQ_U(t.sent_at, 2087);
    fab_destroy(f);
}

/* Store and forward: 82.88 ns twice; then three packets follow each other at the speed of the
 * wire. */
TEST(test_fabric__packets_follow_each_other_through_a_switch)
{
    told t;
    const char *star = "3 1 2\n2\n2 0 100Gbps 1us 0\n2 1 100Gbps 1us 0\n";
    fab *f = make(CONFIG "HAS_WIN 0 ", star, false, &t);
    send_one(f, 0, 1, 3000);
    run_all(f);
    CHECK_EQ_U(t.arrived_at, 2 * 1000000 + 4 * 82880);
    CHECK_EQ_U(fab_figures_of(f)->data_packets, 3);
    CHECK_EQ_U(fab_figures_of(f)->acks, 3);
    fab_destroy(f);
}

/* Preamble, frame check and gap: 24 more bytes, so 1060 and 72 bytes: 84.8 and 5.76 ns. */
TEST(test_fabric__wire_overhead)
{
    told t;
    fab *f = make(CONFIG "WIRE_OVERHEAD 24 ", "2 0 1\n\n0 1 100Gbps 1us 0\n", false, &t);
    send_one(f, 0, 1, 1000);
    run_all(f);
    CHECK_EQ_U(t.arrived_at, 1084800);
    CHECK_EQ_U(t.sent_at, 2090560);
    fab_destroy(f);
}

/* An acknowledgement every 4000 bytes and one at the end: 4000, 8000, 10000. */
TEST(test_fabric__acknowledges_by_interval)
{
    told t;
    fab *f = make("CC_MODE 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 1000000 "
                  "L2_ACK_INTERVAL 4000 ENABLE_QCN 0 HAS_WIN 0",
                  "2 0 1\n\n0 1 100Gbps 1us 0\n", false, &t);
    send_one(f, 0, 1, 10000);
    run_all(f);
    CHECK_EQ_U(t.sent, 1);
    CHECK_EQ_U(fab_figures_of(f)->acks, 3);
    fab_destroy(f);
}

/* Half of all packets are lost, in both directions: timers make up for it, and everything arrives
 * once. */
TEST(test_fabric__loss_is_made_up_for)
{
    told t;
    fab *f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0.5\n", false, &t);
    send_one(f, 0, 1, 20000);
    run_all(f);
    CHECK_EQ_U(t.sent, 1);
    CHECK_EQ_U(t.arrived, 1);
    CHECK(fab_figures_of(f)->lost > 0 && fab_figures_of(f)->timeouts > 0);
    fab_destroy(f);
}

static void count_line(void *context, const char *line)
{
    unsigned *count = context;
    *count += line[0] != 0;
}

/* Everything is lost: the run ends and says which flow it was. */
TEST(test_fabric__a_dead_wire_is_a_stall)
{
    told t;
    unsigned lines = 0;
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        fab *f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 1\n", is_compat, &t);
        send_one(f, 0, 1, 1000);
        run_all(f);
        CHECK_EQ_U(t.sent, 0);
        fab_explain(f, count_line, &lines);
        fab_destroy(f);
    }
    CHECK_EQ_U(lines, 4); /* each time the flow, and the link on which all is lost */
}

/* A line of hosts: 0 - 1 - 2.  Three wires would be needed without the host between: two, and
 * stored once. */
TEST(test_fabric__hosts_pass_on_if_they_are_told_to)
{
    told t;
    orr_error err;
    const char *line = "3 0 2\n\n0 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
    fab *f = make(CONFIG "FORWARDING_HOSTS 1 ", line, false, &t);
    send_one(f, 0, 2, 1000);
    run_all(f);
    CHECK_EQ_U(t.arrived_at, 2 * 1082880);
    fab_destroy(f);
    f = make(CONFIG, line, false, &t);
    send_one(f, 0, 2, 1000);
    while (fab_run(f, 100))
        ;
    CHECK_CODE(fab_status(f, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "no route from host 0 to host 2");
    fab_destroy(f);
}

/* Down at 10 us, up at 300 us; without the repair it would stand still. */
TEST(test_fabric__a_link_fails_and_is_repaired)
{
    told t;
    orr_error err;
    orr__link_event list[] = {{10000000, 0, 1, false, 1}, {300000000, 1, 0, true, 2}};
    orr__link_events plan = {.events = list, .count = 2};
    fab *f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", false, &t);
    CHECK_OK(fab_plan(f, &plan, &err), &err);
    send_one(f, 0, 1, 1000000);
    run_all(f);
    CHECK_EQ_U(t.sent, 1);
    CHECK(t.arrived_at > 300000000);
    fab_destroy(f);
    plan.count = 1;
    f = make(CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", false, &t);
    CHECK_OK(fab_plan(f, &plan, &err), &err);
    send_one(f, 0, 1, 1000000);
    run_all(f);
    CHECK_EQ_U(t.sent, 0);
    fab_destroy(f);
}

TEST(test_fabric__reservations_must_fit_into_the_buffer)
{
    orr__packet_config c;
    orr__cabling cabling = {0};
    fab *f;
    orr_error err;
    /* 400 Gb/s over 100 us are 5 MB on the wire, three times that is the headroom of each port */
    const char *star = "3 1 2\n2\n2 0 400Gbps 100us 0\n2 1 400Gbps 100us 0\n";
    orr__packet_config_defaults(&c, NULL);
    CHECK_OK(orr__packet_config_parse(&c, span_of(CONFIG), "c.txt", &err), &err);
    CHECK_OK(orr__cabling_parse(&cabling, span_of(star), "t.txt", &err), &err);
    CHECK_CODE(fab_create_watched(&c, &cabling, NULL, &f, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "BUFFER_SIZE 16 MiB");
    c.rules =
        program_of(ORR_RULES_PACKET, "ns3")->packet; /* there it wraps around, and pauses are off */
    CHECK_OK(fab_create_watched(&c, &cabling, NULL, &f, &err), &err);
    fab_destroy(f);
    orr__cabling_fini(&cabling);
}

/* Four senders at full speed into one receiver, and little buffer: nothing is dropped, because they
 * are paused. */
TEST(test_fabric__pauses_keep_buffers_from_overflowing)
{
    told t;
    const char *star = "6 1 5\n5\n5 0 100Gbps 1us 0\n5 1 100Gbps 1us 0\n5 2 100Gbps 1us 0\n"
                       "5 3 100Gbps 1us 0\n5 4 100Gbps 1us 0\n";
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        fab *f = make(CONFIG "HAS_WIN 0 BUFFER_SIZE 1 ", star, is_compat, &t);
        for (uint32_t i = 0; i < 4; i++)
            send_one(f, i, 4, 2000000);
        run_all(f);
        const fab_figures *g = fab_figures_of(f);
        CHECK_EQ_U(t.sent, 4);
        CHECK(g->pauses > 0);
        CHECK_EQ_U(g->pauses, g->resumes);
        CHECK_EQ_U(g->dropped, 0);
        CHECK_EQ_U(g->data_packets, 8000);
        fab_destroy(f);
    }
}

/* Two leaves, four spines, and flows that a hash might put on the same spine: spread over all of
 * them, four flows of one leaf to the other take little longer than one alone. */
TEST(test_fabric__packets_are_spread_over_ways)
{
    static const char *const rules[] = {"LOAD_BALANCE spray TRANSPORT selective ",
                                        "LOAD_BALANCE reps TRANSPORT selective ",
                                        "LOAD_BALANCE flowlet TRANSPORT selective "};
    const char *leaves =
        "14 6 16\n8 9 10 11 12 13\n0 8 100Gbps 1us 0\n1 8 100Gbps 1us 0\n2 8 100Gbps 1us 0\n"
        "3 8 100Gbps 1us 0\n4 9 100Gbps 1us 0\n5 9 100Gbps 1us 0\n6 9 100Gbps 1us 0\n"
        "7 9 100Gbps 1us 0\n8 10 100Gbps 1us 0\n8 11 100Gbps 1us 0\n8 12 100Gbps 1us 0\n"
        "8 13 100Gbps 1us 0\n9 10 100Gbps 1us 0\n9 11 100Gbps 1us 0\n9 12 100Gbps 1us 0\n"
        "9 13 100Gbps 1us 0\n";
    char config[400];
    told t;
    for (size_t i = 0; i < 3; i++) {
        snprintf(config, sizeof config, CONFIG "HAS_WIN 0 %s", rules[i]);
        fab *f = make(config, leaves, false, &t);
        for (uint32_t host = 0; host < 4; host++)
            send_one(f, host, host + 4, 1000000);
        run_all(f);
        CHECK_EQ_U(t.sent, 4);
        CHECK_EQ_U(t.arrived, 4);
        CHECK_EQ_U(fab_figures_of(f)->nacks, 0);
        if (i <
            2) /* 1000 packets of 82.88 ns, and 4 us on the way; a quarter more for those that meet */
            CHECK(t.arrived_at < 1250 * 82880 + 4000000);
        fab_destroy(f);
    }
}

/* Of 100 packets one in fifty is lost.  Going back sends what was in flight again each time; here
 * only what is lost. */
TEST(test_fabric__only_what_is_lost_is_sent_again)
{
    told t;
    fab *f = make(CONFIG "TRANSPORT selective ", "2 0 1\n\n0 1 100Gbps 1us 0.02\n", false, &t);
    send_one(f, 0, 1, 1000000);
    run_all(f);
    const fab_figures *g = fab_figures_of(f);
    CHECK(t.sent == 1 && t.arrived == 1);
    CHECK(g->lost > 10 && g->nacks == 0);
    CHECK(g->data_packets < 1000 + 2 * g->lost);
    fab_destroy(f);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric__one_packet_over_a_cable),
        RUN(test_fabric__one_packet_as_the_reference_has_it),
        RUN(test_fabric__packets_follow_each_other_through_a_switch),
        RUN(test_fabric__wire_overhead),
        RUN(test_fabric__acknowledges_by_interval),
        RUN(test_fabric__loss_is_made_up_for),
        RUN(test_fabric__a_dead_wire_is_a_stall),
        RUN(test_fabric__hosts_pass_on_if_they_are_told_to),
        RUN(test_fabric__a_link_fails_and_is_repaired),
        RUN(test_fabric__reservations_must_fit_into_the_buffer),
        RUN(test_fabric__pauses_keep_buffers_from_overflowing),
        RUN(test_fabric__packets_are_spread_over_ways),
        RUN(test_fabric__only_what_is_lost_is_sent_again),
    };
    return RUN_ALL(tests);
}
