/* SPDX-License-Identifier: Apache-2.0 */
/* Times worked out by hand.  Unless said otherwise a link has 50 bytes a ns and 500 ns, so that
 * 1000 bytes take 20 ns on the wire and are there after 520. */
#include "net_run.h"

static net_run r;

#define SPEEDS "bandwidth: 50GB/s\nlatency: 500ns\n"

TEST(test_link_servers__second_message_waits_for_the_wire)
{
    net_run_open_file(&r, SPEEDS "ranks: 2\nlinks: [{from: 0, to: 1}]\n");
    const uint32_t a = net_run_send(&r, 0, 0, 1, 1000), b = net_run_send(&r, 0, 0, 1, 1000);
    const uint32_t c = net_run_send(&r, 0, 0, 1, 500), back = net_run_send(&r, 0, 1, 0, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 520);
    CHECK_EQ_U(r.arrived[b], 540);    /* starts at 20 */
    CHECK_EQ_U(r.arrived[c], 550);    /* starts at 40, 10 ns on the wire */
    CHECK_EQ_U(r.arrived[back], 520); /* the other direction is another link */
    const orr_net_link l = net_run_link(&r, "0 -> 1");
    CHECK_EQ_U(l.messages, 3);
    CHECK_EQ_U(l.bytes, 2500);
    CHECK_EQ_U(l.busy_ns, 50);
    CHECK_EQ_U(l.max_queue, 2);
    CHECK_EQ_U(net_run_link(&r, "1 -> 0").max_queue, 0);
    net_run_close(&r);
}

TEST(test_link_servers__whole_message_arrives_before_the_next_hop)
{
    net_run_open_file(&r, SPEEDS "ranks: 2\nswitches: [s]\nlinks: [{from: 0-1, to: s}]\n");
    const uint32_t a = net_run_send(&r, 100, 0, 1, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 100 + 520 + 520);
    net_run_close(&r);
}

TEST(test_link_servers__incast_waits_at_the_last_link)
{
    net_run_open_file(&r, SPEEDS "ranks: 3\nswitches: [s]\nlinks: [{from: 0-2, to: s}]\n");
    const uint32_t a = net_run_send(&r, 0, 0, 2, 1000), b = net_run_send(&r, 0, 1, 2, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 1040);
    CHECK_EQ_U(r.arrived[b], 1060); /* both are at the switch at 520 */
    CHECK_EQ_U(net_run_link(&r, "s -> 2").max_queue, 1);
    net_run_close(&r);
}

TEST(test_link_servers__each_link_has_its_own_speed)
{
    net_run_open_file(&r, "ranks: 2\nswitches: [s]\nlinks:\n"
                          "  - {from: 0, to: s, bandwidth: 80Gb/s, latency: 1us}\n"
                          "  - {from: s, to: 1, bandwidth: 1GB/s, latency: 0}\n");
    const uint32_t a = net_run_send(&r, 0, 0, 1, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 1000 + 100 + 1000); /* 10 bytes a ns, then 1 */
    net_run_close(&r);
}

/* Fractions are cut off at each hop, as the reference does. */
TEST(test_link_servers__fractions_of_a_tick_are_cut_off)
{
    net_run_open_file(&r,
                      "bandwidth: 3GB/s\nlatency: 500ps\nranks: 2\nlinks: [{from: 0, to: 1}]\n");
    const uint32_t a = net_run_send(&r, 0, 0, 1, 4), b = net_run_send(&r, 0, 0, 1, 2);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 1); /* 0.5 + 1.33; the wire is free after 1 */
    CHECK_EQ_U(r.arrived[b], 2); /* 0.5 + 0.67 = 1.17 from 1 on */
    net_run_close(&r);
}

static const orr_net_config ring_by_switch = {
    .dims = 2,
    .shape = {ORR_NET_RING, ORR_NET_SWITCH},
    .npus = {3, 2},
    .bandwidth = {0.931322574615478515625, 0.931322574615478515625}, /* 1 byte a ns: 10^9 / 2^30 */
    .latency_ns = {10, 100},
};

/* Rank 0 is (0, 0), rank 5 is (2, 1): one step back on the ring, then up and down. */
TEST(test_link_servers__aware_goes_dimension_by_dimension)
{
    net_run_open(&r, &orr__net_aware, &ring_by_switch, 6);
    const uint32_t a = net_run_send(&r, 0, 0, 5, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 1010 + 1100 + 1100);
    CHECK_EQ_U(net_run_link(&r, "0 -> 2").messages, 1);
    CHECK_EQ_U(net_run_link(&r, "2 -> switch1.2").messages, 1);
    CHECK_EQ_U(net_run_link(&r, "switch1.2 -> 5").messages, 1);
    net_run_close(&r);
}

TEST(test_link_servers__aware_ring_breaks_ties_clockwise)
{
    const orr_net_config ring = {.dims = 1,
                                 .shape = {ORR_NET_RING},
                                 .npus = {4},
                                 .bandwidth = {0.931322574615478515625},
                                 .latency_ns = {10}};
    net_run_open(&r, &orr__net_aware, &ring, 4);
    net_run_send(&r, 0, 0, 2, 1000);
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(net_run_link(&r, "0 -> 1").messages, 1);
    CHECK_EQ_U(net_run_link(&r, "1 -> 2").messages, 1);
    net_run_close(&r);
}

/* The same random messages through both models, on a product of all three shapes. */
TEST(test_link_servers__aware_and_graph_agree)
{
    static net_run other;
    orr__topology *t;
    orr_error err;
    uint64_t seed = 7;
    orr_net_config c = {.dims = 3,
                        .shape = {ORR_NET_FULLY_CONNECTED, ORR_NET_RING, ORR_NET_SWITCH},
                        .npus = {3, 5, 4},
                        .bandwidth = {50, 25.5, 12},
                        .latency_ns = {10, 123.4, 500}};
    net_run_open(&r, &orr__net_aware, &c, 60);
    CHECK_OK(orr__topology_of_product(&c, &t, &err), &err);
    net_run_open_topology(&other, t);
    for (uint32_t i = 0; i < 2000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint32_t src = (uint32_t)(seed >> 33) % 60, step = 1 + (uint32_t)(seed >> 40) % 59;
        const uint64_t at = (seed >> 20) % 20000, size = 1 + (seed >> 30) % 50000;
        net_run_send(&r, at, src, (src + step) % 60, size);
        net_run_send(&other, at, src, (src + step) % 60, size);
    }
    CHECK_EQ(net_run_all(&r), ORR_OK);
    CHECK_EQ(net_run_all(&other), ORR_OK);
    for (uint32_t i = 0; i < 2000; i++)
        CHECK_EQ_U(r.arrived[i], other.arrived[i]);
    net_run_close(&r);
    net_run_close(&other);
}

TEST(test_link_servers__no_way_is_an_error_of_the_run)
{
    net_run_open_file(&r, SPEEDS "ranks: 3\nlinks: [{from: 0, to: 1}]\n");
    net_run_send(&r, 0, 0, 2, 1000);
    CHECK_EQ(net_run_all(&r), ORR_EINPUT);
    CHECK_SAYS(&r.sim.error, "net.yml: there is no route from rank 0 to rank 2");
    net_run_close(&r);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_link_servers__second_message_waits_for_the_wire),
        RUN(test_link_servers__whole_message_arrives_before_the_next_hop),
        RUN(test_link_servers__incast_waits_at_the_last_link),
        RUN(test_link_servers__each_link_has_its_own_speed),
        RUN(test_link_servers__fractions_of_a_tick_are_cut_off),
        RUN(test_link_servers__aware_goes_dimension_by_dimension),
        RUN(test_link_servers__aware_ring_breaks_ties_clockwise),
        RUN(test_link_servers__aware_and_graph_agree),
        RUN(test_link_servers__no_way_is_an_error_of_the_run),
    };
    return RUN_ALL(tests);
}
