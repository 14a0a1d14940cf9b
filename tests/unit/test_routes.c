/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"
#include "net_run.h"

#include "models/network/routes.h"

static orr__routes *routes_of(const orr__topology *t, size_t most_bytes)
{
    orr__routes *r;
    orr_error err;
    CHECK_OK(orr__routes_create(t, most_bytes, &r, &err), &err);
    return r;
}

/* The sum of the costs on the way; UINT32_MAX: there is none. */
static uint32_t walk(
    orr__routes *r, const orr__topology *t, uint32_t from, uint32_t to, uint64_t hash)
{
    uint32_t cost = 0;
    orr_error err;
    for (unsigned steps = 0; steps < 1000; steps++) {
        const uint32_t l = orr__routes_next(r, from, to, hash, &err);
        if (l == NET_LINK_ARRIVED)
            return cost;
        if (l == NET_LINK_NONE)
            return UINT32_MAX;
        CHECK_EQ_U(t->links[l].from, from);
        CHECK(!t->links[l].is_failed);
        cost += t->links[l].cost;
        from = t->links[l].to;
    }
    check_fail(__FILE__, __LINE__, "no end of the way");
    return 0;
}

/* All distances by Floyd and Warshall's way. */
enum { RANKS = 9, DEVICES = 14 };

static void all_distances(const orr__topology *t, uint32_t d[DEVICES][DEVICES])
{
    memset(d, 0x3f, DEVICES * DEVICES * sizeof d[0][0]);
    for (uint32_t i = 0; i < DEVICES; i++)
        d[i][i] = 0;
    for (size_t i = 0; i < t->link_count; i++) {
        const orr__wire *l = &t->links[i];
        if (!l->is_failed && l->cost < d[l->from][l->to])
            d[l->from][l->to] = l->cost;
    }
    for (uint32_t k = 0; k < DEVICES; k++)
        for (uint32_t i = 0; i < DEVICES && (k >= RANKS || t->ranks_forward); i++)
            for (uint32_t j = 0; j < DEVICES; j++)
                if (d[i][k] + d[k][j] < d[i][j])
                    d[i][j] = d[i][k] + d[k][j];
}

static orr__topology *random_topology(uint64_t *seed)
{
    orr__topology *t;
    orr_error err;
    CHECK_OK(orr__topology_create(&t, &err), &err);
    t->ranks = RANKS;
    t->ranks_forward = next_random(seed) % 2;
    t->routing = (orr__routing)(next_random(seed) % 3);
    for (uint32_t i = RANKS; i < DEVICES; i++) {
        const char name[2] = {(char)('a' + i), 0};
        CHECK_OK(orr__topology_add_switch(t, orr_str_of(name), NULL, &err), &err);
    }
    for (uint64_t n = 12 + next_random(seed) % 30; n; n--) {
        const uint32_t from = (uint32_t)(next_random(seed) % DEVICES);
        const uint32_t to = (from + 1 + (uint32_t)(next_random(seed) % (DEVICES - 1))) % DEVICES;
        const orr__wire l = {.from = from,
                             .to = to,
                             .cost = 1 + (uint32_t)(next_random(seed) % 3),
                             .is_failed = next_random(seed) % 8 == 0};
        CHECK_OK(next_random(seed) % 3 ? orr__topology_add_cable(t, &l, &err)
                                       : orr__topology_add_link(t, &l, &err),
                 &err);
    }
    return t;
}

TEST(test_routes__ways_are_shortest_on_any_graph)
{
    uint32_t d[DEVICES][DEVICES];
    uint64_t seed = 1;
    for (unsigned round = 0; round < 300; round++) {
        orr__topology *t = random_topology(&seed);
        orr__routes *r = routes_of(t, 0), *small = routes_of(t, 1);
        all_distances(t, d);
        for (uint32_t i = 0; i < RANKS * RANKS; i++) {
            const uint32_t from = i / RANKS, to = i % RANKS;
            const uint32_t want = d[from][to] < 0x3f3f3f3f ? d[from][to] : UINT32_MAX;
            const uint64_t hash = next_random(&seed);
            CHECK_EQ_U(walk(r, t, from, to, hash), want);
            CHECK_EQ_U(walk(small, t, from, to, hash), want);
        }
        orr__routes_destroy(r);
        orr__routes_destroy(small);
        orr__topology_destroy(t);
    }
}

static const char two_tiers[] =
    "generate: {type: leaf-spine, ranks: 32, ranks_per_leaf: 8, spines: 4, bandwidth: 1GB/s}\n";

/* 32 ranks on 4 leaves: what goes to a rank needs the table of its leaf only. */
TEST(test_routes__one_table_for_the_ranks_of_a_leaf)
{
    orr__topology *t = net_run_parse(two_tiers);
    orr__routes *r = routes_of(t, 0);
    for (uint32_t i = 0; i < 32 * 32; i++)
        CHECK_EQ_U(walk(r, t, i / 32, i % 32, i), i / 32 == i % 32           ? 0
                                                  : i / 32 / 8 == i % 32 / 8 ? 2
                                                                             : 4);
    CHECK_EQ_U(orr__routes_made(r), 4);
    CHECK_EQ_U(orr__routes_kept(r), 4);
    orr__routes_destroy(r);
    orr__topology_destroy(t);
}

/* 40 devices are 164 bytes a table.  The table used last stays. */
TEST(test_routes__tables_are_bounded)
{
    orr__topology *t = net_run_parse(two_tiers);
    orr__routes *r = routes_of(t, 164 * 3);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t leaf = 0; leaf < 4; leaf++)
            CHECK_EQ_U(walk(r, t, (leaf * 8 + 9) % 32, leaf * 8, 0), 4);
    CHECK_EQ_U(orr__routes_kept(r), 3);
    CHECK_EQ_U(orr__routes_made(r),
               8); /* four in turn with room for three: each one is made anew */
    CHECK_EQ_U(walk(r, t, 0, 24, 0), 4);
    CHECK_EQ_U(orr__routes_made(r), 8);
    orr__routes_destroy(r);
    orr__topology_destroy(t);
}

static net_run run;

/* Between two leaves with 4 spines: 2000 messages, 500 for each spine; the deviation is about
 * 19. */
static void check_spread(uint64_t least, uint64_t most)
{
    for (uint32_t s = 0; s < 4; s++) {
        char name[40];
        snprintf(name, sizeof name, "leaf0 -> spine%u", s);
        const uint64_t n = net_run_link(&run, name).messages;
        CHECK(n >= least && n <= most);
    }
}

TEST(test_routes__ecmp_spreads_messages)
{
    net_run_open_file(&run, two_tiers);
    for (uint32_t i = 0; i < 2000; i++)
        net_run_send(&run, i, 0, 8, 100);
    CHECK_EQ(net_run_all(&run), ORR_OK);
    check_spread(425, 575);
    net_run_close(&run);
}

TEST(test_routes__ecmp_pair_keeps_a_pair_on_one_way)
{
    char text[300];
    unsigned used = 0;
    snprintf(text, sizeof text, "routing: ecmp-pair\n%s", two_tiers);
    net_run_open_file(&run, text);
    for (uint32_t i = 0; i < 100; i++)
        net_run_send(&run, i, 0, 8, 100);
    CHECK_EQ(net_run_all(&run), ORR_OK);
    for (uint32_t s = 0; s < 4; s++) {
        snprintf(text, sizeof text, "leaf0 -> spine%u", s);
        const uint64_t n = net_run_link(&run, text).messages;
        CHECK(n == 0 || n == 100);
        used += n > 0;
    }
    CHECK_EQ_U(used, 1);
    net_run_close(&run);
}

TEST(test_routes__first_takes_the_first_of_the_file)
{
    char text[300];
    snprintf(text, sizeof text, "routing: first\n%s", two_tiers);
    net_run_open_file(&run, text);
    for (uint32_t i = 0; i < 64; i++)
        net_run_send(&run, i, i / 8, 8 + i % 8, 100);
    CHECK_EQ(net_run_all(&run), ORR_OK);
    CHECK_EQ_U(net_run_link(&run, "leaf0 -> spine0").messages, 64);
    net_run_close(&run);
}

TEST(test_routes__same_run_same_times)
{
    static uint64_t before[400];
    for (unsigned round = 0; round < 2; round++) {
        net_run_open_file(&run, two_tiers);
        for (uint32_t i = 0; i < 400; i++)
            net_run_send(&run, i, i % 32,
                         (i * 7 + 13) % 32 == i % 32 ? (i + 1) % 32 : (i * 7 + 13) % 32, 1 + i);
        CHECK_EQ(net_run_all(&run), ORR_OK);
        for (uint32_t i = 0; i < 400 && round; i++)
            CHECK_EQ_U(run.arrived[i], before[i]);
        memcpy(before, run.arrived, sizeof before);
        net_run_close(&run);
    }
}

TEST(test_routes__parallel_links_share_the_load)
{
    net_run_open_file(&run, "bandwidth: 1GB/s\nranks: 2\nlinks: [{from: 0, to: 1, count: 2}]\n");
    for (uint32_t i = 0; i < 200; i++)
        net_run_send(&run, 0, 0, 1, 100);
    CHECK_EQ(net_run_all(&run), ORR_OK);
    const uint64_t first = net_run_link(&run, "0 -> 1").messages;
    const uint64_t second = net_run_link(&run, "0 -> 1 #2").messages;
    CHECK_EQ_U(first + second, 200);
    CHECK(first > 60 && second > 60);
    net_run_close(&run);
}

TEST(test_routes__failed_links_are_gone_around)
{
    orr_error err;
    orr__topology *t = net_run_parse(two_tiers);
    const orr__link_change changes[] = {{.from = (const char *const[]){"leaf0", NULL},
                                         .to = (const char *const[]){"spine[0-2]", NULL},
                                         .is_failed = true,
                                         .bandwidth = 1,
                                         .latency = 1}};
    CHECK_OK(orr__topology_change(t, changes, 1, &err), &err);
    net_run_open_topology(&run, t);
    for (uint32_t i = 0; i < 50; i++) {
        net_run_send(&run, i, 0, 8, 100);
        net_run_send(&run, i, 8, 0, 100);
    }
    CHECK_EQ(net_run_all(&run), ORR_OK);
    CHECK_EQ_U(net_run_link(&run, "leaf0 -> spine3").messages, 50);
    CHECK_EQ_U(net_run_link(&run, "spine3 -> leaf0").messages, 50);
    net_run_close(&run);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_routes__ways_are_shortest_on_any_graph),
        RUN(test_routes__one_table_for_the_ranks_of_a_leaf),
        RUN(test_routes__tables_are_bounded),
        RUN(test_routes__ecmp_spreads_messages),
        RUN(test_routes__ecmp_pair_keeps_a_pair_on_one_way),
        RUN(test_routes__first_takes_the_first_of_the_file),
        RUN(test_routes__same_run_same_times),
        RUN(test_routes__parallel_links_share_the_load),
        RUN(test_routes__failed_links_are_gone_around),
    };
    return RUN_ALL(tests);
}
