/* SPDX-License-Identifier: Apache-2.0 */
#include "net_run.h"

#include "models/network/routes.h"

/* ---- files that are right ---- */

TEST(test_topology_file__reads_devices_and_links)
{
    char name[NET_DEVICE_NAME];
    orr__topology *t =
        net_run_parse("format: orrery-topology\nversion: 1\nranks: 4\n"
                      "switches: ['leaf[0-1]', top]\nlatency: 1.5us\ndims: [2, 2]\nlinks:\n"
                      "  - {from: 0-1, to: leaf0, bandwidth: 400Gb/s}\n"
                      "  - {from: [2, 3], to: leaf1, bandwidth: 50GB/s, latency: 20ns}\n"
                      "  - {from: 'leaf[0-1]', to: top, bandwidth: 1GiB/s, count: 2, cost: 7}\n"
                      "  - {from: 0, to: 3, bandwidth: 1B/s, one_way: true}\n");
    CHECK_EQ_U(t->ranks, 4);
    CHECK_EQ_U(orr__topology_devices(t), 7);
    CHECK_EQ_U(t->link_count, 4 + 4 + 8 + 1);
    CHECK_EQ_U(t->dims, 2);
    CHECK_EQ(t->routing, ORR__ROUTE_BY_MESSAGE);
    orr__topology_name(t, 5, name);
    CHECK_TEXT(name, "leaf1");
    const orr__wire *l = &t->links[0];
    CHECK(l->from == 0 && l->to == 4 && l->cost == 1 && l->speed == 50 && l->latency == 1500);
    CHECK(t->links[4].speed == 50 && t->links[4].latency == 20);
    CHECK(t->links[8].speed == 1.073741824 && t->links[8].cost == 7 && t->links[8].to == 6);
    CHECK(t->links[16].from == 0 && t->links[16].to == 3 && t->links[16].speed == 1e-9);
    orr__topology_destroy(t);
}

TEST(test_topology_file__json_is_yaml_too)
{
    orr__topology *t = net_run_parse(
        "{\n\t\"ranks\": [\"a\", \"b-c\"], \"routing\": \"first\",\n"
        "\t\"links\": [{\"from\": \"a\", \"to\": \"b-c\", \"bandwidth\": \"1GB/s\"}]\n}\n");
    char name[NET_DEVICE_NAME];
    CHECK_EQ_U(t->link_count, 2);
    CHECK_EQ(t->routing, ORR__ROUTE_FIRST);
    orr__topology_name(t, t->links[0].to, name);
    CHECK_TEXT(name, "b-c");
    orr__topology_destroy(t);
}

TEST(test_topology_file__links_join_what_was_generated)
{
    orr__topology *t = net_run_parse(
        "bandwidth: 1GB/s\ngenerate: {type: leaf-spine, ranks: 4, ranks_per_leaf: 2, spines: 1}\n"
        "switches: [extra]\nlinks: [{from: spine0, to: extra}]\n");
    CHECK_EQ_U(orr__topology_devices(t), 4 + 2 + 1 + 1);
    CHECK_EQ_U(t->link_count, 2 * (4 + 2 + 1));
    orr__topology_destroy(t);
}

TEST(test_topology_file__file_of_astra_sim_is_none)
{
    static const char text[] =
        "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n";
    orr__topology *t;
    orr_error err;
    CHECK_OK(orr__topology_parse((orr_span){(const uint8_t *)text, strlen(text)}, "net.yml",
                                 ORR__MOST_LINKS, &t, &err),
             &err);
    CHECK(t == NULL);
}

/* ---- shapes: counts and distances by hand ---- */

typedef struct shape {
    const char *text;
    uint32_t ranks, switches;
    size_t cables;
} shape;

static orr__topology *check_shape(const shape *s)
{
    orr__topology *t = net_run_parse(s->text);
    CHECK_EQ_U(t->ranks, s->ranks);
    CHECK_EQ_U(orr_intern_count(t->switches), s->switches);
    CHECK_EQ_U(t->link_count, 2 * s->cables);
    return t;
}

static uint32_t hops(const orr__topology *t, uint32_t from, uint32_t to)
{
    double latency;
    return net_run_way(t, from, to, &latency);
}

TEST(test_topology_file__leaf_spine)
{
    const shape s = {
        "generate: {type: leaf-spine, ranks: 10, ranks_per_leaf: 4, spines: 2, "
        "links_per_spine: 3, bandwidth: 50GB/s, spine_bandwidth: 100GB/s, spine_latency: 1us}",
        10, 3 + 2, 10 + 3 * 2 * 3};
    orr__topology *t = check_shape(&s);
    CHECK_EQ_U(hops(t, 0, 3), 2);
    CHECK_EQ_U(hops(t, 0, 4), 4);
    CHECK(t->links[0].speed == 50 && t->links[0].latency == 0);
    CHECK(t->links[20].speed == 100 && t->links[20].latency == 1000);
    orr__topology_destroy(t);
}

/* k = 4: 4 pods of 2 edge and 2 aggregation switches, 4 core switches; 16 cables between any two
 * tiers. */
TEST(test_topology_file__fat_tree)
{
    const shape s = {"generate: {type: fat-tree, k: 4, bandwidth: 50GB/s}", 16, 8 + 8 + 4, 48};
    orr__topology *t = check_shape(&s);
    CHECK_EQ_U(hops(t, 0, 1), 2);  /* same edge switch */
    CHECK_EQ_U(hops(t, 0, 2), 4);  /* same pod */
    CHECK_EQ_U(hops(t, 0, 15), 6); /* through the core */
    orr__topology_destroy(t);
}

/* 4 x 4 x 2: two rings of four and one pair a rank: 32 * (1 + 1 + 1/2) cables. */
TEST(test_topology_file__torus)
{
    const shape s = {
        "generate: {type: torus, size: [4, 4, 2], bandwidth: [50GB/s, 25GB/s, 10GB/s], latency: 1us}",
        32, 0, 80};
    orr__topology *t = check_shape(&s);
    CHECK_EQ_U(hops(t, 0, 3), 1);          /* around the ring */
    CHECK_EQ_U(hops(t, 0, 2 + 2 * 4), 4);  /* two and two */
    CHECK_EQ_U(hops(t, 0, 2 + 8 + 16), 5); /* and the third dimension */
    CHECK(t->links[0].speed == 50 && t->links[64].speed == 25 && t->links[128].speed == 10);
    orr__topology_destroy(t);
}

/* 4 routers with 2 ranks and 2 global links: 9 groups.  In a group 6 cables; between groups 9 * 8 /
 * 2. */
TEST(test_topology_file__dragonfly)
{
    const shape s = {
        "generate: {type: dragonfly, routers: 4, ranks_per_router: 2, global_links: 2, "
        "bandwidth: 50GB/s}",
        72, 36, 72 + 9 * 6 + 36};
    orr__topology *t = check_shape(&s);
    uint32_t ports[36] = {0}, pairs[9][9] = {{0}};
    for (size_t i = 2 * (72 + 9 * 6); i < t->link_count; i++) {
        const uint32_t from = t->links[i].from - 72, to = t->links[i].to - 72;
        ports[from]++;
        pairs[from / 4][to / 4]++;
    }
    for (uint32_t i = 0; i < 36; i++)
        CHECK_EQ_U(ports[i], 2);
    for (uint32_t i = 0; i < 81; i++)
        CHECK_EQ_U(pairs[i / 9][i % 9], i / 9 != i % 9);
    for (uint32_t i = 1; i < 72; i++)
        CHECK(hops(t, 0, i) <= 5); /* local, global, local at most */
    orr__topology_destroy(t);
}

/* 3 groups of 4 routers with a global link each: 2 to either other group. */
TEST(test_topology_file__dragonfly_with_few_groups)
{
    const shape s = {
        "generate: {type: dragonfly, groups: 3, routers: 4, ranks_per_router: 1, bandwidth: 50GB/s}",
        12, 12, 12 + 3 * 6 + 3 * 2};
    orr__topology_destroy(check_shape(&s));
}

TEST(test_topology_file__rails)
{
    const shape s = {"generate: {type: rails, domains: 4, ranks_per_domain: 4, spines: 2, "
                     "bandwidth: 50GB/s, nvlink_bandwidth: 450GB/s}",
                     16, 4 + 4 + 2, 16 + 16 + 4 * 2};
    orr__topology *t = check_shape(&s);
    CHECK_EQ_U(hops(t, 0, 3), 2); /* nvlink */
    CHECK_EQ_U(hops(t, 0, 4), 2); /* the rail */
    CHECK_EQ_U(hops(t, 0, 5), 4); /* both */
    CHECK(t->ranks_forward);
    CHECK(t->links[0].speed == 450 && t->links[32].speed == 50);
    orr__topology_destroy(t);
}

/* With cross_rail spine no rank passes on what is not for it. */
TEST(test_topology_file__rails_that_meet_at_the_spine)
{
    const shape s = {
        "generate: {type: rails, domains: 4, ranks_per_domain: 2, domains_per_leaf: 2, spines: 2, "
        "cross_rail: spine, bandwidth: 50GB/s}",
        8, 4 + 4 + 2, 8 + 8 + 4 * 2};
    orr__topology *t = check_shape(&s);
    orr__routes *r;
    orr_error err;
    CHECK_OK(orr__routes_create(t, 0, &r, &err), &err);
    for (uint32_t hash = 0; hash < 50; hash++) {
        const uint32_t first = orr__routes_next(r, 0, 3, hash, &err);
        CHECK_EQ_U(t->links[first].to, 8 + 4); /* rail0.0, not nvswitch0 */
    }
    CHECK_EQ_U(hops(t, 0, 1), 2); /* inside the domain */
    CHECK_EQ_U(hops(t, 0, 3), 4);
    orr__routes_destroy(r);
    orr__topology_destroy(t);
}

/* ---- changes ---- */

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(test_topology_file__links_change)
{
    orr_error err;
    orr__topology *t = net_run_parse("bandwidth: 40GB/s\nlatency: 100ns\nranks: 3\nswitches: [s]\n"
                                     "links: [{from: 0-2, to: s}]\n");
    const orr__link_change some[] = {
        {.from = TEXTS("0-1"), .to = TEXTS("s"), .bandwidth = 0.5, .latency = 1},
        {.from = TEXTS("s"), .to = TEXTS("1"), .is_one_way = true, .bandwidth = 1, .latency = 3},
        {.from = TEXTS("2"),
         .to = TEXTS("s"),
         .is_one_way = true,
         .is_failed = true,
         .bandwidth = 1,
         .latency = 1}};
    CHECK_OK(orr__topology_change(t, some, 3, &err), &err);
    CHECK(t->links[0].speed == 20 && t->links[1].speed == 20 && t->links[4].speed == 40);
    CHECK(t->links[2].latency == 100 && t->links[3].latency == 300);
    CHECK(t->links[4].is_failed && !t->links[5].is_failed);
    const orr__link_change none = {
        .from = TEXTS("0"), .to = TEXTS("1", "2"), .bandwidth = 1, .latency = 1};
    CHECK_CODE(orr__topology_change(t, &none, 1, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "there is no link from 0 to 1, ...");
    orr__topology_destroy(t);
}

/* ---- files that are wrong: the place and the words ---- */

static void refuse(const char *text, const char *words)
{
    orr__topology *t;
    orr_error err;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_CODE(orr__topology_parse(bytes, "net.yml", 1000, &t, &err), ORR_EINPUT, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, words);
}

#define TWO "ranks: 2\nbandwidth: 1GB/s\n"

TEST(test_topology_file__errors_name_the_place)
{
    refuse("links: []\n", "net.yml:1:1: the key \"ranks\" is missing");
    refuse("format: other\nranks: 2\n", "net.yml:1:9: format: \"other\" is not orrery-topology");
    refuse("ranks: 1\nlinks: []\n", "net.yml:1:8: ranks: \"1\" is not a whole number from 2");
    refuse("ranks: [a, a]\nlinks: []\n", "net.yml:1:12: duplicate rank \"a\"");
    refuse(TWO "switches: [s, s]\nlinks: []\n", "net.yml:3:15: duplicate switch \"s\"");
    refuse("ranks: [a, b]\nswitches: [b]\nlinks: []\n", "\"b\" is already the name of a rank");
    refuse(TWO "links: 3\n", "net.yml:3:8: links: expected a list");
    refuse(TWO "links: [3]\n", "net.yml:3:9: expected a map of keys and values");
    refuse(TWO "links: [{from: 0}]\n", "net.yml:3:9: the key \"to\" is missing");
    refuse(TWO "links: [{from: 0, to: 2}]\n", "net.yml:3:23: rank 2: the last of the 2 ranks is 1");
    refuse(TWO "links: [{from: 0, to: x}]\n",
           "\"x\" is not a rank, nor the name of a rank or switch");
    refuse(TWO "links: [{from: 0, to: 'x[0-1]'}]\n", "\"x0\" is not the name of a rank or switch");
    refuse(TWO "links: [{from: 0, to: 'x[1-0]'}]\n", "range that is empty or too large");
    refuse(TWO "links: [{from: 0, to: 'x[0'}]\n", "not a name with a range");
    refuse(TWO "links: [{from: 1-0, to: 1}]\n", "\"1-0\" is an empty range");
    refuse(TWO "links: [{from: 0-1, to: 1}]\n", "net.yml:3:9: a link from a device to itself");
    refuse("ranks: 2\nlinks: [{from: 0, to: 1}]\n",
           "net.yml:2:9: the key \"bandwidth\" is missing");
    refuse(TWO "links: [{from: 0, to: 1, bandwidth: 5}]\n",
           "bandwidth: \"5\" is not a rate above 0");
    refuse(TWO "links: [{from: 0, to: 1, bandwidth: 0GB/s}]\n", "is not a rate above 0");
    refuse(TWO "links: [{from: 0, to: 1, latency: 5}]\n",
           "latency: \"5\" is not a time with a unit");
    refuse(TWO "links: [{from: 0, to: 1, count: 0}]\n",
           "count: \"0\" is not a whole number from 1");
    refuse(TWO "links: [{from: 0, to: 1, one_way: maybe}]\n", "\"maybe\" is not false or true");
    refuse(TWO "links: [{from: 0, to: 1, speed: 3}]\n", "unknown key \"speed\"");
    refuse(TWO "links: [{from: 0, to: 1, from: 1}]\n", "duplicate key \"from\"");
    refuse(TWO "links: [{from: 0, to: 1, count: 600}]\n", "net.yml:3:9: more than 1000 links");
    refuse(TWO "dims: [3]\nlinks: []\n", "dims: their product is not the number of ranks, 2");
    refuse(TWO "dims: 2\nlinks: []\n", "dims: expected a list of 1 to 16 numbers");
    refuse(TWO "routing: best\nlinks: []\n", "routing: \"best\" is not ecmp or ecmp-pair or first");
    refuse("ranks: 2000\nlinks: []\n", "ranks: \"2000\" is not a whole number from 2 to 1000");
}

TEST(test_topology_file__errors_of_shapes_name_the_place)
{
    refuse("generate: {}\n", "net.yml:1:11: the key \"type\" is missing");
    refuse("generate: {type: cube}\n",
           "type: \"cube\" is not switch or leaf-spine or fat-tree or torus");
    refuse("ranks: 2\ngenerate: {type: torus}\n", "cannot be used together");
    refuse("generate: {type: torus, size: [4]}\n", "torus: the key \"bandwidth\" is missing");
    refuse("generate: {type: torus, size: 4, bandwidth: 1GB/s}\n",
           "torus: size: expected a list of 1 to 16 numbers of ranks");
    refuse("generate: {type: torus, size: [4, 1], bandwidth: 1GB/s}\n",
           "size: \"1\" is not a whole number");
    refuse("generate: {type: torus, size: [4, 4], bandwidth: [1GB/s]}\n",
           "torus: bandwidth: expected a rate above 0 with a unit");
    refuse("generate: {type: torus, size: [64, 64], bandwidth: 1GB/s}\n",
           "4096 ranks; expected 2 to 1000");
    refuse("generate: {type: fat-tree, k: 3, bandwidth: 1GB/s}\n", "an even number of ports");
    refuse("generate: {type: fat-tree, k: 4, ranks: 17, bandwidth: 1GB/s}\n",
           "ranks: \"17\" is not");
    refuse("generate: {type: leaf-spine, ranks: 4, bandwidth: 1GB/s}\n",
           "\"ranks_per_leaf\" is missing");
    refuse(
        "generate: {type: dragonfly, groups: 6, routers: 2, ranks_per_router: 1, global_links: 2, "
        "bandwidth: 1GB/s}\n",
        "groups: \"6\" is not a whole number from 1 to 5");
    refuse(
        "generate: {type: rails, domains: 4, ranks_per_domain: 2, domains_per_leaf: 2, bandwidth: 1GB/s}\n",
        "without spines there is one leaf per rail");
    refuse("generate: {type: rails, domains: 4, ranks_per_domain: 2, k: 2, bandwidth: 1GB/s}\n",
           "unknown key \"k\"");
    refuse(
        "generate: {type: leaf-spine, ranks: 400, ranks_per_leaf: 1, spines: 400, bandwidth: 1GB/s}\n",
        "leaf-spine: more than 1000 links");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_topology_file__reads_devices_and_links),
        RUN(test_topology_file__json_is_yaml_too),
        RUN(test_topology_file__links_join_what_was_generated),
        RUN(test_topology_file__file_of_astra_sim_is_none),
        RUN(test_topology_file__leaf_spine),
        RUN(test_topology_file__fat_tree),
        RUN(test_topology_file__torus),
        RUN(test_topology_file__dragonfly),
        RUN(test_topology_file__dragonfly_with_few_groups),
        RUN(test_topology_file__rails),
        RUN(test_topology_file__rails_that_meet_at_the_spine),
        RUN(test_topology_file__links_change),
        RUN(test_topology_file__errors_name_the_place),
        RUN(test_topology_file__errors_of_shapes_name_the_place),
    };
    return RUN_ALL(tests);
}
