/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_right.c - where the packet network is right and the old program is not
 * (packet-network.md 14): what has no test elsewhere.  Rows are named by their numbers there. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"

#define US 1000000u   /* ticks */
#define PACKET 82880u /* of 1000 bytes at 100 Gb/s */

static fabric_told told;

static void run_until(uint64_t ticks)
{
    while (fab_now(told.fabric) < ticks && fab_run(told.fabric, 1))
        ;
}

/* 4: 100 us of wire hold 2.5 MB, so a window of 100 packets is short; what is acknowledged only
 * after 200 of them would stand until the timer, if the packet that fills the window did not ask
 * for it.  Then it is a window a round trip: 10 of 200 us and 100 packets of 82.88 ns each; and an
 * acknowledgement a window. */
TEST(test_fabric_right__a_window_smaller_than_the_interval_goes_on)
{
    fabric_make(FABRIC_CONFIG "L2_ACK_INTERVAL 200000 L2_CHUNK_SIZE 4000000 ",
                "2 0 1\n\n0 1 100Gbps 100us 0\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    while (!told.fabric->flows[0].rate && fab_run(told.fabric, 1))
        ;
    told.fabric->flows[0].window = 100000;
    fabric_run_all(&told);
    CHECK_EQ_U(fab_figures_of(told.fabric)->timeouts, 0);
    CHECK_EQ_U(fab_figures_of(told.fabric)->acks, 10);
    CHECK_EQ_U(told.sent_at[0], 10 * (200 * US + 100 * 82880 + 3840));
    fab_destroy(told.fabric);
}

/* 7: four hosts send 500 kB each to one, 1 ms after the start.  Their link is busy for 2,000 x 1044
 * bytes, 167 us; the old program, whose round trips are times since 0, takes 21 ms. */
TEST(test_fabric_right__timely_measures_round_trips)
{
    fabric_make(FABRIC_CONFIG "CC_MODE 7 ", fabric_star(6, "100Gbps 1us 0"), &told);
    fabric_send(&told, 5, 4, 20000000, 9);
    run_until(1000 * US);
    for (unsigned i = 0; i < 4; i++)
        fabric_send(&told, i, 5, 500000, i);
    fabric_run_all(&told);
    for (unsigned i = 0; i < 4; i++)
        CHECK(told.sent_at[i] > 1167 * US && told.sent_at[i] < 1400 * US);
    fab_destroy(told.fabric);
}

/* 8: of equally short ways the hash takes one by the number of its port.  Leaf 2 has its links to
 * spines 5, 6 and 4 in this order.  Murmur3 with seed 2 of addresses 11.0.0.1 and 11.0.1.1 and
 * ports 10000 on and 100 is 150554262, 1512900316, 1419624159, 2171593708, 223296381, 1370297453:
 * 0, 1, 0, 1, 0 and 2 modulo 3.  Under --compat it is spines in descending order (section 5): 6, 5,
 * 4. */
TEST(test_fabric_right__ways_are_ordered_by_port)
{
    static const char *const spines = "7 5 8\n2 3 4 5 6\n0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n"
                                      "2 5 100Gbps 1us 0\n2 6 100Gbps 1us 0\n2 4 100Gbps 1us 0\n"
                                      "3 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n3 6 100Gbps 1us 0\n";
    static const uint64_t packets[] = {3, 2, 1}; /* by port 4, 6 and 8: to spines 5, 6 and 4 */
    fabric_make(FABRIC_CONFIG, spines, &told);
    for (unsigned i = 0; i < 6; i++)
        fabric_send(&told, 0, 1, 1000, i);
    fabric_run_all(&told);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ_U(told.fabric->ports[4 + 2 * i].bytes_sent / 1036, packets[i]);
    fab_destroy(told.fabric);
}

/* 12: two hosts fill the queue of the port to host 0.  One packet from 0 to 1 takes 2 x 1082.88 ns,
 * and its acknowledgement 2 x 1003.84 ns: 4173.44 ns, if it need not wait for more than a frame or
 * two. */
TEST(test_fabric_right__acknowledgements_overtake_in_switches)
{
    static const char *const ways[] = {FABRIC_CONFIG "HAS_WIN 0 ",
                                       FABRIC_CONFIG "HAS_WIN 0 ACK_HIGH_PRIO 1 "};
    for (unsigned k = 0; k < 2; k++) {
        fabric_make(ways[k], fabric_star(4, "100Gbps 1us 0"), &told);
        fabric_send(&told, 2, 0, 1000000, 1);
        fabric_send(&told, 3, 0, 1000000, 2);
        run_until(50 * US);
        const uint64_t start = fab_now(told.fabric);
        fabric_send(&told, 0, 1, 1000, 3);
        fabric_run_all(&told);
        const uint64_t took = told.sent_at[3] - start;
        CHECK(took >= 4173440);
        CHECK(k ? took < 4173440 + 3 * 82880 : took > 20 * US);
        fab_destroy(told.fabric);
    }
}

/* 14: 5 GB are more than 32 bits count.  76,923 packets of 65,000 bytes, 520.288 ns each at 1 Tb/s,
 * and one of 5,000, 40.288 ns; 1 us on the wire. */
TEST(test_fabric_right__messages_of_more_than_32_bits)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 PACKET_PAYLOAD_SIZE 65000 ", "2 0 1\n\n0 1 1Tbps 1us 0\n",
                &told);
    fabric_send(&told, 0, 1, 5000000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived_at[0], 76923 * (uint64_t)520288 + 40288 + US);
    fab_destroy(told.fabric);
}

/* 14: more messages of one pair than there are ports of 16 bits; all are told of, and none is taken
 * for another. */
TEST(test_fabric_right__more_messages_than_ports)
{
    enum { MESSAGES = 60000 };
    fabric_make(FABRIC_CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", &told);
    for (unsigned i = 0; i < MESSAGES; i++)
        fabric_send(&told, 0, 1, 1, i % FABRIC_TOKENS);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, MESSAGES);
    CHECK_EQ_U(told.arrived, MESSAGES);
    CHECK_EQ_U(fab_figures_of(told.fabric)->data_packets, MESSAGES);
    fab_destroy(told.fabric);
}

/* 19: messages of one pair are sent in turn.  The k-th of 100 packets arrives after 100 k packets of
 * 82.88 ns and 1 us, and its time counts from when it was handed over, also at tick 0. */
TEST(test_fabric_right__times_count_waiting_for_ones_turn)
{
    orr_fabric_flows all, classes[ORR_FABRIC_CLASSES];
    fabric_make(FABRIC_CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", &told);
    for (unsigned k = 0; k < 4; k++) {
        orr_error err;
        const fab_send_request r = {
            .src = 0, .dst = 1, .size = 100000, .token = k, .in_order = true};
        CHECK_OK(fab_send(told.fabric, &r, &err), &err);
    }
    fabric_run_all(&told);
    fab_flow_times_fill(&told.fabric->times, 1, &all, classes);
    CHECK_EQ_U(all.flows, 4);
    for (unsigned k = 0; k < 4; k++) {
        CHECK_EQ_U(told.arrived_at[k], (k + 1) * 100 * (uint64_t)PACKET + US);
        /* Nearest rank: the quantiles 25, 50, 75 and 100 % are the four. */
        CHECK_EQ_U(all.fct_ps[(k + 1) * (ORR_FABRIC_TIMES - 1) / 4], told.sent_at[k]);
    }
    fab_destroy(told.fabric);
}

/* 15: what a failing link takes away leaves the buffer.  Two hosts fill the queue of the port to
 * host 2, whose link fails and is repaired; in the end nothing is counted any more, and nobody is
 * paused. */
TEST(test_fabric_right__failures_leave_nothing_in_buffers)
{
    orr_error err;
    orr__link_event list[] = {{50 * US, 2, 3, false, 1}, {500 * US, 2, 3, true, 2}};
    const orr__link_events plan = {.events = list, .count = 2};
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 1 ", fabric_star(3, "100Gbps 1us 0"), &told);
    CHECK_OK(fab_plan(told.fabric, &plan, &err), &err);
    fabric_send(&told, 0, 2, 2000000, 0);
    fabric_send(&told, 1, 2, 2000000, 1);
    run_until(49 * US);
    CHECK(told.fabric->nodes[3].shared > 50000);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 2);
    CHECK_EQ_U(told.fabric->nodes[3].shared, 0);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ_U(told.fabric->queues[i * FAB_CLASSES + FAB_FLOW_CLASS].ingress, 0);
        CHECK_EQ_U(told.fabric->queues[i * FAB_CLASSES + FAB_FLOW_CLASS].egress, 0);
        CHECK(!told.fabric->ports[i].paused);
    }
    fab_destroy(told.fabric);
}

/* 16: of two flows of a NIC one is held by its window, the other by its rate, a tenth of the
 * link's: 100 packets of 828.8 ns, each at most a frame of the other late, and 200 us there and
 * back.  The old program wakes the second one only when something arrives for the first. */
TEST(test_fabric_right__a_window_holds_nobody_else)
{
    fabric_make(FABRIC_CONFIG "GLOBAL_T 0 ", "2 0 1\n\n0 1 100Gbps 100us 0\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_send(&told, 0, 1, 100000, 1);
    while (!told.fabric->flows[1].rate && fab_run(told.fabric, 1))
        ;
    told.fabric->flows[0].window = 20000;
    told.fabric->flows[1].rate /= 10;
    fabric_run_all(&told);
    CHECK(told.sent_at[1] >= 99 * 828800 + 200 * US);
    CHECK(told.sent_at[1] <= 100 * (828800 + 82880) + 201 * US);
    CHECK(told.sent_at[0] > 1000 * US);
    fab_destroy(told.fabric);
}

/* Hosts 0 and 1 at embedding and head of a row of switches. */
static const char *row_of(unsigned switches)
{
    static char text[FABRIC_WORDS];
    int at = snprintf(text, sizeof text, "%u %u %u\n", switches + 2, switches, switches + 1);
    for (unsigned i = 0; i < switches; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%u ", i + 2);
    for (unsigned i = 0; i <= switches; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "\n%u %u 40Gbps 1us 0", i ? i + 1 : 0,
                       i < switches ? i + 2 : 1);
    return text;
}

/* 17: HPCC over 7 and 40 switches at 40 Gb/s.  Alone a flow stays near the speed of its link: 1000
 * x 1078 bytes are 215.6 us, of which HPCC aims at 95 %; there and back it takes 1 us a link, and
 * at each switch 215.6 ns for a packet and less for its acknowledgement. */
TEST(test_fabric_right__hpcc_takes_any_rate_and_number_of_hops)
{
    static const char *const configs[] = {FABRIC_CONFIG "CC_MODE 3 MULTI_RATE 0 ",
                                          FABRIC_CONFIG "CC_MODE 3 MULTI_RATE 1 "};
    static const unsigned switches[] = {7, 40};
    for (unsigned i = 0; i < 4; i++) {
        const unsigned n = switches[i / 2];
        const uint64_t least = 215600000 + 2 * (n + 1) * US + n * 215600;
        fabric_make(configs[i % 2], row_of(n), &told);
        fabric_send(&told, 0, 1, 1000000, 0);
        fabric_run_all(&told);
        CHECK(told.sent_at[0] > least && told.sent_at[0] < least + least / 4);
        fab_destroy(told.fabric);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_right__a_window_smaller_than_the_interval_goes_on),
        RUN(test_fabric_right__timely_measures_round_trips),
        RUN(test_fabric_right__ways_are_ordered_by_port),
        RUN(test_fabric_right__acknowledgements_overtake_in_switches),
        RUN(test_fabric_right__messages_of_more_than_32_bits),
        RUN(test_fabric_right__more_messages_than_ports),
        RUN(test_fabric_right__times_count_waiting_for_ones_turn),
        RUN(test_fabric_right__failures_leave_nothing_in_buffers),
        RUN(test_fabric_right__a_window_holds_nobody_else),
        RUN(test_fabric_right__hpcc_takes_any_rate_and_number_of_hops),
    };
    return RUN_ALL(tests);
}
