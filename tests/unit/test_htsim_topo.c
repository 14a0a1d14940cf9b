/* SPDX-License-Identifier: Apache-2.0 */
#include "net_run.h"

#include "models/network/routes.h"
#include "models/network/topology/topology_kinds.h"

static orr__topology *parse(const char *text)
{
    orr__topology *t;
    orr_error err;
    CHECK_OK(orr__htsim_topo_parse((orr_span){(const uint8_t *)text, strlen(text)}, "x.topo",
                                   ORR__MOST_LINKS, &t, &err),
             &err);
    return t;
}

static const char two_tiers[] =
    "# a comment\n"
    "Nodes 24\nTiers 2\nPodsize 24\n"
    "Tier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n"
    "Oversubscribed 4\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 301\n"
    "Queue_Down 100000\nQueue_Up 100000\n"
    "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 3\n"
    "DOWNLINK_LATENCY_NS 500\nswitch_latency_ns 50\n";

/* 3 tors of 8 hosts, 2 aggs with a port for each tor. */
TEST(test_htsim_topo__two_tiers)
{
    orr__topology *t = parse(two_tiers);
    double latency;
    char name[NET_DEVICE_NAME];
    CHECK_EQ_U(t->ranks, 24);
    CHECK_EQ_U(orr_intern_count(t->switches), 3 + 2);
    CHECK_EQ_U(t->link_count, 2 * (24 + 3 * 2));
    orr__topology_name(t, 24 + 3, name);
    CHECK_TEXT(name, "agg0");
    CHECK(t->links[0].speed == 12.5 && !t->ranks_forward);
    CHECK_EQ_U(net_run_way(t, 0, 7, &latency), 2);
    CHECK(latency == 1000 + 301 + 1000); /* one switch, once */
    CHECK_EQ_U(net_run_way(t, 0, 8, &latency), 4);
    CHECK(latency == 1000 + 301 + 500 + 50 + 500 + 301 + 1000);
    orr__topology_destroy(t);
}

/* 3 pods of 4 hosts: 2 tors with 2 aggs each; an agg has 4 cables up, two to each of 2 cores: 4
 * cores of 3 pods x 2. */
static const char three_tiers[] =
    "Nodes 12\nTiers 3\nPodsize 4\n"
    "Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 100\n"
    "Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 200\n"
    "Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 6\nDownlink_Latency_ns 300\nBundle 2\n";

TEST(test_htsim_topo__three_tiers)
{
    orr__topology *t = parse(three_tiers);
    double latency;
    CHECK_EQ_U(orr_intern_count(t->switches), 6 + 6 + 4);
    CHECK_EQ_U(t->link_count, 2 * (12 + 12 + 6 * 4));
    CHECK_EQ_U(net_run_way(t, 0, 1, &latency), 2);
    CHECK_EQ_U(net_run_way(t, 0, 3, &latency), 4);
    CHECK(latency == 600);
    CHECK_EQ_U(net_run_way(t, 0, 11, &latency), 6);
    CHECK(latency == 1200);
    /* agg1 (pod 0, place 1) has cores 1 and 3, two cables each; agg2 (pod 1, place 0) cores 0 and
     * 2 */
    const uint32_t agg = 12 + 6, core = agg + 6;
    uint32_t found[6][4] = {{0}};
    for (size_t i = 0; i < t->link_count; i++)
        if (t->links[i].to >= core)
            found[t->links[i].from - agg][t->links[i].to - core]++;
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t c = 0; c < 4; c++)
            CHECK_EQ_U(found[a][c], c % 2 == a % 2 ? 2 : 0);
    orr__topology_destroy(t);
}

TEST(test_htsim_topo__links_fail)
{
    orr__topology *t = parse(three_tiers);
    orr_error err;
    uint32_t failed = 0;
    const orr_where w = orr_where_line("x.cm", 5, 1);
    CHECK_OK(orr__htsim_topo_fail(t, 1, 1, &w, &err), &err); /* the first cable of agg1 to core3 */
    for (size_t i = 0; i < t->link_count; i++)
        failed += t->links[i].is_failed;
    CHECK_EQ_U(failed, 2);
    CHECK_CODE(orr__htsim_topo_fail(t, 1, 2, &w, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "x.cm:5:1: aggregation switch 1 has 2 core switches, no link 2");
    CHECK_CODE(orr__htsim_topo_fail(t, 6, 0, &w, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "there is no aggregation switch 6");
    orr__topology_destroy(t);
}

static void refuse(const char *text, const char *words)
{
    orr__topology *t;
    orr_error err;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_CODE(orr__htsim_topo_parse(bytes, "x.topo", 1 << 20, &t, &err), ORR_EINPUT, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, words);
}

#define HEAD "Nodes 8\nTiers 2\nPodsize 8\n"
#define TIER0 "Tier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\nDownlink_Latency_ns 1\n"
#define TIER1 "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1\n"

TEST(test_htsim_topo__errors_name_the_line)
{
    orr__topology_destroy(parse(HEAD TIER0 TIER1));
    refuse("", "x.topo: the key Nodes is missing");
    refuse("Nodes 8\nTiers 4\n", "x.topo:2:7: 4 is out of range: a number is 2 to 3");
    refuse("Nodes 8\nTiers 2\nPodsize 3\n" TIER0 TIER1, "Nodes 8 is not a multiple of Podsize 3");
    refuse("Nodes 8\nTiers 2\nPodsize 4\n" TIER0 TIER1, "two tiers are one pod");
    refuse("Nodes 8\nNodes 8\n", "x.topo:2:1: duplicate Nodes");
    refuse("Nodes 1\n", "x.topo:1:7: 1 is out of range");
    refuse("Nodes 99999999999\n", "out of range");
    refuse("Nodes\n", "x.topo:2:1: the file ends; expected a number");
    refuse("Nodes eight\n", "x.topo:1:7: \"eight\" is not a number");
    refuse(HEAD "Radix_Up 4\n", "x.topo:4:1: Radix_Up stands before the first Tier");
    refuse(HEAD "Tier 3\n", "x.topo:4:6: 3 is out of range");
    refuse(HEAD TIER0 TIER0, "x.topo:9:6: duplicate tier 0");
    refuse(HEAD TIER0, "x.topo: there is no Tier 1, of 2 tiers");
    refuse(HEAD TIER0 "Radix_Up 4\n", "x.topo:9:1: duplicate Radix_Up");
    refuse(HEAD TIER0 "Colour 4\n", "x.topo:9:1: \"Colour\" is not a key of a .topo file");
    refuse(HEAD "Tier 0\nRadix_Down 4\n" TIER1,
           "x.topo:4:1: tier 0: the key downlink_speed_gbps is missing");
    refuse(HEAD TIER0 TIER1 "Radix_Up 2\n", "x.topo:9:1: tier 1: radix_up: there is nothing above");
    refuse(HEAD TIER0 "Oversubscribed 2\n" TIER1,
           "tier 0: 4 x 100 Gb/s down and 4 x 100 Gb/s up are 1 to 1; oversubscribed is 2");
    refuse(HEAD TIER0 "Bundle 2\n" TIER1, "tier 0: bundle: a host has one cable");
    refuse(HEAD TIER0 "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 3\nDownlink_Latency_ns 1\n",
           "x.topo:9:1: tier 1: radix_down is 3, but 2 switches below have 1 cables each to it");
    refuse(HEAD TIER0 TIER1 "Bundle 3\n", "tier 1: radix_down is not a multiple of bundle");
    refuse(HEAD "Tier 0\nDownlink_speed_Gbps 0\n", "x.topo:5:21: 0 is out of range");
    refuse(
        "Nodes 1000000\nTiers 2\nPodsize 1000000\n"
        "Tier 0\nDownlink_speed_Gbps 100\nRadix_Down 1000\nRadix_Up 1000\nDownlink_Latency_ns 1\n"
        "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 1000\nDownlink_Latency_ns 1\n",
        "this makes more than 524288 cables");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_htsim_topo__two_tiers),
        RUN(test_htsim_topo__three_tiers),
        RUN(test_htsim_topo__links_fail),
        RUN(test_htsim_topo__errors_name_the_line),
    };
    return RUN_ALL(tests);
}
