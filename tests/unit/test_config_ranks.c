/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks that compute, send and load.  Rank 0: 10 us of compute; then a message of 10^6 bytes to
 * rank 1, which takes 1 ms and 1 us over a link of 1 byte a ns. */
#include "files.h"

#include "run/run_state.h"

static orr_attr integer(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static void append(orr_trace *t, orr_draft d, const orr_attr *attrs, size_t count)
{
    orr_error err;
    const uint64_t before = d.id - 1;
    d.attrs = attrs;
    d.attr_count = count;
    d.data_deps = &before;
    d.data_count = d.id > 1;
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static orr_trace *trace_of(int64_t rank)
{
    orr_trace *t;
    orr_error err;
    const orr_attr work[] = {integer("num_ops", 1000000), integer("tensor_size", 1000)};
    const orr_attr message[] = {integer("comm_src", 0), integer("comm_dst", 1),
                                integer("comm_size", 1000000), integer("comm_tag", 0)};
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    append(t, (orr_draft){.id = 1, .type = ORR_NODE_COMP, .duration_us = 10}, work, 2);
    append(t, (orr_draft){.id = 2, .type = rank ? ORR_NODE_COMM_RECV : ORR_NODE_COMM_SEND}, message,
           4);
    append(t, (orr_draft){.id = 3, .type = ORR_NODE_MEM_LOAD}, work, 2);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static orr_set *two_ranks(void)
{
    orr_set *s;
    orr_error err;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(0), &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(1), &err), &err);
    return s;
}

static void put(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

/* When the ranks finish.  ranks NULL: no file. */
static orr_code run(
    const char *ranks, const char *more, const char *network, uint64_t end[2], orr_error *err)
{
    orr_sim *s;
    orr_set *set = two_ranks();
    char system[200];
    snprintf(system, sizeof system, "{\"scheduling-policy\": \"LIFO\"%s}", more);
    put("sys.json", system);
    put("mem.json", "{\"memory-type\": \"PER_NPU_MEMORY_EXPANSION\", \"remote-mem-latency\": 50, "
                    "\"remote-mem-bw\": 10}");
    put("net.yml",
        "ranks: 2\nswitches: [s]\nlinks: [{from: 0-1, to: s, bandwidth: 2GB/s, latency: 250ns}, "
        "{from: 0, to: 1, bandwidth: 1GB/s, latency: 1us}]\n");
    put("astra.yml",
        "topology: [FullyConnected]\nnpus_count: [2]\nbandwidth: [0.931322574615478515625]\n"
        "latency: [1000]\n");
    if (ranks)
        put("ranks.yml", ranks);
    const orr_sim_options opt = {.set = set,
                                 .system = "sys.json",
                                 .memory = "mem.json",
                                 .network = network ? "astra.yml" : "net.yml",
                                 .fidelity = network ? network : "graph",
                                 .ranks_file = ranks ? "ranks.yml" : NULL};
    orr_code code = orr_sim_create(&opt, &s, err);
    if (!code)
        code = orr_sim_run(s, err);
    for (uint32_t r = 0; r < 2 && !code; r++)
        end[r] = orr_sim_rank(s, r)->finished_at;
    orr_sim_destroy(s);
    orr_set_close(set);
    return code;
}

static void check_run(
    const char *ranks, const char *more, const char *network, uint64_t first, uint64_t second)
{
    uint64_t end[2];
    orr_error err;
    CHECK_OK(run(ranks, more, network, end, &err), &err);
    CHECK_EQ_U(end[0], first);
    CHECK_EQ_U(end[1], second);
}

/* 10000 compute, 1001000 message, 50 + 1000 / 10 load. */
TEST(test_config_ranks__plain_ranks_are_alike)
{
    check_run(NULL, "", NULL, 1011150, 1011150);
    check_run("{}", "", NULL, 1011150, 1011150);
    check_run("ranks: [{ranks: 0-1, compute: 1, memory: 1, delay: 0}]", "", NULL, 1011150, 1011150);
}

TEST(test_config_ranks__slow_compute_makes_the_other_wait)
{
    check_run("ranks: [{ranks: 0, compute: 0.5}]", "", NULL, 1021150, 1021150);
    check_run("ranks: [{ranks: 1, compute: 0.5}]", "", NULL, 1011150, 1011150); /* hidden */
    check_run("ranks: [{ranks: [0], compute: 4}]", "", NULL, 1003650, 1003650);
}

TEST(test_config_ranks__memory_and_delay)
{
    check_run("ranks: [{ranks: 1, memory: 0.5}]", "", NULL, 1011150, 1011250);
    check_run("ranks: [{ranks: 0, delay: 10us}]", "", NULL, 1021150, 1021150);
    check_run("ranks: [{ranks: 0-1, delay: 1us}, {ranks: 0, delay: 3us}]", "", NULL, 1014150,
              1014150);
}

/* 10^6 operations on 1000 bytes: at 100 operations a ns 10 us; at 50 GB/s the bytes allow 50000 a
 * ns. */
TEST(test_config_ranks__roofline)
{
    static const char more[] =
        ", \"roofline-enabled\": 1, \"peak-perf\": 0.1, \"local-mem-bw\": 50";
    check_run(NULL, more, NULL, 1011150, 1011150);
    check_run("ranks: [{ranks: 0, compute: 0.5}]", more, NULL, 1021150, 1021150);
    check_run("ranks: [{ranks: 0, memory: 0.5}]", more, NULL, 1011250, 1011150); /* the load only */
    /* 50 bytes a ns * 1000 operations a byte * 0.000001 = 0.05 a ns: 20 ms; the load takes 50 +
     * 10^8. */
    check_run("ranks: [{ranks: 0, memory: 0.000001}]", more, NULL,
              20000000 + 1001000 + 50 + 100000000, 20000000 + 1001000 + 150);
}

TEST(test_config_ranks__slow_links)
{
    check_run("links: [{from: 0, to: 1, bandwidth: 0.5}]", "", NULL, 2011150, 2011150);
    check_run("links: [{from: 0, to: 1, latency: 3}]", "", NULL, 1013150, 1013150);
    check_run("links: [{from: 1, to: 0, bandwidth: 0.5, one_way: true}]", "", NULL, 1011150,
              1011150);
    check_run("links: [{from: 0, to: 1, bandwidth: 0.5}]", "", "aware", 2011150, 2011150);
    check_run("links: [{from: 0, to: 1, bandwidth: 0.5}]", "", "graph", 2011150, 2011150);
}

static void refuse(const char *ranks, const char *network, const char *words)
{
    uint64_t end[2];
    orr_error err;
    CHECK_CODE(run(ranks, "", network, end, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
}

/* A link that is named twice in one entry is slowed once; all ways of rank 0 fail at once. */
TEST(test_config_ranks__links_by_lists)
{
    check_run("links: [{from: [0, 0-1], to: [1, 1, s], bandwidth: 0.5}]", "", NULL, 2011150,
              2011150);
    check_run("links: [{from: [1, s], to: [0], latency: 3, one_way: true}]", "", NULL, 1011150,
              1011150);
    refuse("links: [{from: 0, to: [1, s], failed: true}]", NULL,
           "there is no route from rank 0 to rank 1");
    refuse("links: [{from: [0, [1]], to: s}]", NULL,
           "ranks.yml:1:20: from: expected a rank or the name of a switch");
    refuse("links: [{from: 0, to: []}]", NULL, "ranks.yml:1:23: to: the list is empty");
}

/* Around over the switch: twice 500000 + 250. */
TEST(test_config_ranks__failed_links_are_gone_around)
{
    check_run("links: [{from: 0, to: 1, failed: true}]", "", NULL, 10000 + 1000500 + 150,
              10000 + 1000500 + 150);
}

TEST(test_config_ranks__errors_name_the_place)
{
    refuse("- 1", NULL, "ranks.yml:1:1: expected a map of keys and values");
    refuse("ranks: 1", NULL, "ranks.yml:1:8: ranks: expected a list");
    refuse("ranks: [{compute: 1}]", NULL, "ranks.yml:1:9: the key \"ranks\" is missing");
    refuse("ranks: [{ranks: 2}]", NULL, "ranks.yml:1:17: rank 2: the last of the 2 ranks is 1");
    refuse("ranks: [{ranks: 1-0}]", NULL, "ranks: \"1-0\" is not a rank or a range");
    refuse("ranks: [{ranks: 0, compute: 0}]", NULL,
           "compute: \"0\" is not a number from 1e-06 to 1e+06");
    refuse("ranks: [{ranks: 0, compute: fast}]", NULL, "compute: \"fast\" is not a number");
    refuse("ranks: [{ranks: 0, delay: 5}]", NULL, "delay: \"5\" is not a time with a unit");
    refuse("ranks: [{ranks: 0, power: 5}]", NULL, "unknown key \"power\"");
    refuse("links: [{from: 0}]", NULL, "the key \"to\" is missing");
    refuse("links: [{from: 0, to: t, failed: true}]", NULL, "ranks.yml:1:9: \"t\" is not a rank");
    refuse("links: [{from: 0, to: 1, failed: 2}]", NULL, "failed: \"2\" is not false or true");
    refuse("links: [{from: 0, to: 1, bandwidth: 0.5}]", "unaware",
           "the network model unaware does not model links");
    refuse("links: [{from: 0, to: 1, failed: true}]", "aware",
           "there is no route from rank 0 to rank 1");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_config_ranks__plain_ranks_are_alike),
        RUN(test_config_ranks__slow_compute_makes_the_other_wait),
        RUN(test_config_ranks__memory_and_delay),
        RUN(test_config_ranks__roofline),
        RUN(test_config_ranks__slow_links),
        RUN(test_config_ranks__links_by_lists),
        RUN(test_config_ranks__failed_links_are_gone_around),
        RUN(test_config_ranks__errors_name_the_place),
    };
    return RUN_ALL(tests);
}
