/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_ways.c - how packets are spread over equally short ways, and what the receiver makes
 * of their order.
 *
 * Two leaves with four hosts each and four spines: four ways from a host to one of the other
 * leaf. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"

#define PACKET 82880u /* ps: 1036 bytes at 100 Gb/s */
#define LINK "100Gbps 1us 0"

enum { HOSTS = 4, SPINES = 4, PACKETS = 1000 };

static fabric_told told;

/* Packets that the first leaf sent to a spine: its cables come behind those of the hosts, every
 * other one. */
static uint64_t sent_to_spine(unsigned spine)
{
    return told.fabric->ports[2 * (2 * HOSTS + 2 * spine)].frames_sent;
}

/* Each host of the first leaf sends to one of the second. */
static uint64_t permutation(const char *rule)
{
    char config[400];
    uint64_t last = 0;
    snprintf(config, sizeof config, FABRIC_CONFIG "HAS_WIN 0 %s", rule);
    fabric_make(config, fabric_leaves(HOSTS, SPINES, LINK), &told);
    for (uint32_t i = 0; i < HOSTS; i++)
        fabric_send(&told, i, i + HOSTS, PACKETS * 1000, i);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived, HOSTS);
    for (unsigned i = 0; i < HOSTS; i++)
        last = told.arrived_at[i] > last ? told.arrived_at[i] : last;
    return last;
}

/* A hash puts two of the four on one spine, whose link then takes twice as long; spread, each spine
 * carries a quarter. */
TEST(test_fabric_ways__spray_resolves_a_collision)
{
    const uint64_t hashed = permutation("");
    uint64_t most = 0;
    for (unsigned s = 0; s < SPINES; s++) {
        CHECK_EQ_U(sent_to_spine(s) % PACKETS, 0);
        most = sent_to_spine(s) > most ? sent_to_spine(s) : most;
    }
    CHECK(most >= 2 * PACKETS);
    CHECK(hashed >= most * PACKET);
    fab_destroy(told.fabric);
    const uint64_t spread = permutation("LOAD_BALANCE spray TRANSPORT selective ");
    for (unsigned s = 0; s < SPINES; s++)
        CHECK(sent_to_spine(s) > 900 && sent_to_spine(s) < 1100);
    CHECK(spread < 1250 * PACKET + 4000000);
    fab_destroy(told.fabric);
}

/* What is spread comes out of order.  Going back takes that for loss; a receiver that keeps it does
 * not. */
TEST(test_fabric_ways__selective_repeat_tolerates_disorder)
{
    (void)permutation("LOAD_BALANCE spray ");
    CHECK(fab_figures_of(told.fabric)->nacks > 0);
    CHECK(fab_figures_of(told.fabric)->retransmitted_bytes > 0);
    fab_destroy(told.fabric);
    (void)permutation("LOAD_BALANCE spray TRANSPORT selective ");
    CHECK_EQ_U(fab_figures_of(told.fabric)->nacks, 0);
    CHECK_EQ_U(fab_figures_of(told.fabric)->retransmitted_bytes, 0);
    CHECK_EQ_U(fab_figures_of(told.fabric)->data_packets, HOSTS * PACKETS);
    fab_destroy(told.fabric);
}

static unsigned spines_used(const char *config)
{
    unsigned used = 0;
    fabric_make(config, fabric_leaves(HOSTS, SPINES, LINK), &told);
    fabric_send(&told, 0, HOSTS, PACKETS * 1000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived, 1);
    CHECK_EQ_U(fab_figures_of(told.fabric)->retransmitted_bytes, 0);
    for (unsigned s = 0; s < SPINES; s++)
        used += sent_to_spine(s) > 0;
    fab_destroy(told.fabric);
    return used;
}

/* A stream without gaps stays on its way.  With an acknowledgement every 50 packets a window of
 * about 100 comes in bursts, some microseconds apart: each burst may take another way. */
TEST(test_fabric_ways__flowlets_change_ways_in_gaps_only)
{
    CHECK_EQ_U(spines_used(FABRIC_CONFIG "HAS_WIN 0 LOAD_BALANCE flowlet "), 1);
    CHECK(spines_used("CC_MODE 0 RATE_AI 1Gbps RATE_HAI 1Gbps ENABLE_QCN 0 L2_CHUNK_SIZE 50000 "
                      "L2_ACK_INTERVAL 50000 LOAD_BALANCE flowlet ") > 1);
}

/* One spine has links of 10 Gb/s and marks what waits there: the ways that come back unmarked are
 * taken again, so it gets little more than it can carry, a tenth, instead of a quarter, and all is
 * done sooner. */
TEST(test_fabric_ways__reps_avoids_marked_ways)
{
    static const char *const rules[] = {"spray", "reps"};
    uint64_t slow[2], took[2];
    char config[600], topology[4000];
    const char *even = fabric_leaves(HOSTS, SPINES, LINK);
    const char *last = strstr(even, "\n8 13 "); /* the links of the last spine, node 13 */
    CHECK(last);
    snprintf(topology, sizeof topology, "%.*s\n8 13 10Gbps 1us 0\n9 13 10Gbps 1us 0\n",
             (int)(last - even), even);
    for (int i = 0; i < 2; i++) {
        snprintf(config, sizeof config,
                 "CC_MODE 0 RATE_AI 1Gbps RATE_HAI 1Gbps L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 "
                 "KMIN_MAP 2 100000000000 100 10000000000 5 KMAX_MAP 2 100000000000 400 "
                 "10000000000 10 PMAX_MAP 2 100000000000 1 10000000000 1 TRANSPORT selective "
                 "LOAD_BALANCE %s ",
                 rules[i]);
        fabric_make(config, topology, &told);
        fabric_send(&told, 0, HOSTS, 5 * PACKETS * 1000, 0);
        fabric_run_all(&told);
        CHECK_EQ_U(told.arrived, 1);
        slow[i] = sent_to_spine(SPINES - 1);
        took[i] = told.arrived_at[0];
        fab_destroy(told.fabric);
    }
    CHECK(slow[0] > PACKETS && slow[0] < 2 * PACKETS);
    CHECK(slow[1] * 3 < slow[0] * 2);
    CHECK(took[1] * 3 < took[0] * 2);
}

/* In order, what is lost again is found out by what left later, not by timers: one packet in ten of
 * either direction is lost, and all but the last few cost no time. */
TEST(test_fabric_ways__what_is_lost_again_is_found_out)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 TRANSPORT selective ", "2 0 1\n\n0 1 100Gbps 1us 0.1\n",
                &told);
    fabric_send(&told, 0, 1, 3000000, 0);
    fabric_run_all(&told);
    const fab_figures *g = fab_figures_of(told.fabric);
    CHECK_EQ_U(told.arrived, 1);
    CHECK(g->lost > 400);
    CHECK(g->timeouts <= 3);
    CHECK(g->data_packets < 3000 + 2 * g->lost);
    fab_destroy(told.fabric);
}

TEST(test_fabric_ways__hash_is_murmur3)
{
    CHECK_EQ_U(net_ecmp_hash(0x0b000001, 0x0b000401, 10000 | 100u << 16, 5), 0xf3e0b697);
    CHECK_EQ_U(net_ecmp_hash(0, 0, 0, 0), 0xd941144b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_ways__spray_resolves_a_collision),
        RUN(test_fabric_ways__selective_repeat_tolerates_disorder),
        RUN(test_fabric_ways__flowlets_change_ways_in_gaps_only),
        RUN(test_fabric_ways__reps_avoids_marked_ways),
        RUN(test_fabric_ways__what_is_lost_again_is_found_out),
        RUN(test_fabric_ways__hash_is_murmur3),
    };
    return RUN_ALL(tests);
}
