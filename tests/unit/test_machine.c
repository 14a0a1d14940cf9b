/* SPDX-License-Identifier: Apache-2.0 */
/* Machines: those that are built in, the file, and the dimensions that follow. */
#include "check.h"

#include <orrery/lab/machine.h>

#include <math.h>

static orr_code parse(const char *text, orr_machine *m, orr_error *err)
{
    return orr_machine_parse((orr_span){(const uint8_t *)text, strlen(text)}, "m.yml", m, err);
}

static orr_machine find(const char *text)
{
    orr_machine m = {0};
    orr_error err;
    CHECK_OK(orr_machine_find(text, &m, &err), &err);
    return m;
}

static orr_net_config dims_of(const char *text)
{
    const orr_machine m = find(text);
    orr_net_config c = {0};
    orr_error err;
    CHECK_OK(orr_machine_dims(&m, &c, &err), &err);
    return c;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* The text is refused with these words, at this place. */
static void refuse(const char *text, uint32_t line, uint32_t column, const char *words)
{
    orr_machine m = {.nodes = 77};
    orr_error err;
    CHECK_CODE(parse(text, &m, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
    CHECK_EQ_U(m.nodes, 77); /* untouched */
}

TEST(test_machine__rates_are_those_published)
{
    /* Per device, both directions of the scale-up network and the NICs of a node, of data
     * sheets. */
    static const struct {
        const char *name;
        uint32_t devices;
        double both_GBps, nics_Gbps;
    } published[] = {{"dgx-a100", 8, 600, 1600},
                     {"dgx-h100", 8, 900, 3200},
                     {"hgx-h100", 8, 900, 3200},
                     {"hgx-h200", 8, 900, 3200},
                     {"h800-deepseek", 8, 400, 3200},
                     {"dgx-b200", 8, 1800, 3200},
                     {"gb200-nvl72", 72, 1800, 28800},
                     {"mi300x", 8, 896, 3200},
                     {"tpu-v4", 4, 600, 0},
                     {"tpu-v5e", 4, 400, 0},
                     {"tpu-v5p", 4, 1200, 0},
                     {"trainium2", 16, 1024, 3200}};
    size_t count = 0;
    while (orr_machine_at(count))
        count++;
    CHECK_EQ_U(count, sizeof published / sizeof *published);
    for (size_t i = 0; i < count; i++) {
        const orr_machine m = find(published[i].name);
        CHECK_TEXT(m.name, published[i].name);
        CHECK_EQ_U(m.devices, published[i].devices);
        CHECK_EQ_U(m.nodes, 1);
        CHECK(is_near(2 * m.up_GBps, published[i].both_GBps));
        CHECK(is_near(8 * m.nics * m.nic_GBps, published[i].nics_Gbps));
        CHECK(m.chip[0] && m.note[0] && m.memory && m.peak_tflops > 0 && m.memory_GBps > 0);
    }
}

TEST(test_machine__text_reads_back_the_same)
{
    for (size_t i = 0; orr_machine_at(i); i++) {
        const orr_machine m = find(orr_machine_at(i));
        orr_machine again;
        orr_error err;
        char text[3000], text_again[3000];
        CHECK(orr_machine_text(&m, text, sizeof text) < sizeof text);
        CHECK_OK(parse(text, &again, &err), &err);
        CHECK(orr_machine_text(&again, text_again, sizeof text_again) < sizeof text_again);
        CHECK_TEXT(text, text_again);
        CHECK(memcmp(&m.up_GBps, &again.up_GBps, sizeof m.up_GBps) == 0);
        CHECK(m.memory == again.memory && m.nic_latency_ns == again.nic_latency_ns);
    }
}

TEST(test_machine__switch_and_fabric_are_two_dimensions)
{
    const orr_net_config c = dims_of("dgx-h100:128");
    CHECK_EQ_U(c.dims, 2);
    CHECK(c.shape[0] == ORR_NET_SWITCH && c.shape[1] == ORR_NET_SWITCH);
    CHECK_EQ_U(c.npus[0], 8);
    CHECK_EQ_U(c.npus[1], 128);
    CHECK(is_near(c.bandwidth[0] * (1 << 30), 450e9));
    CHECK(is_near(c.bandwidth[1] * (1 << 30), 50e9));
    CHECK(is_near(2 * c.latency_ns[0], 500));            /* two links: to the switch and from it */
    CHECK(is_near(2 * c.latency_ns[1], 1000 + 3 * 450)); /* NICs, and leaf, spine, leaf */
    CHECK(is_near(2 * dims_of("dgx-h100:32").latency_ns[1], 1000 + 450)); /* one leaf */
}

TEST(test_machine__mesh_shares_its_rate_over_its_links)
{
    const orr_net_config c = dims_of("mi300x");
    CHECK_EQ_U(c.dims, 1);
    CHECK(c.shape[0] == ORR_NET_FULLY_CONNECTED);
    CHECK(is_near(c.bandwidth[0] * (1 << 30), 64e9));
}

TEST(test_machine__part_of_a_node_keeps_its_links)
{
    static const struct {
        const char *text;
        uint32_t ranks;
        double link; /* bytes per second */
    } cases[] = {{"mi300x", 2, 64e9},
                 {"mi300x", 5, 64e9},
                 {"trainium2", 2, 128e9},
                 {"trainium2", 8, 128e9},
                 {"dgx-h100", 2, 450e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        orr_machine m;
        orr_net_config c;
        orr_error err;
        CHECK_OK(orr_machine_for(cases[i].text, cases[i].ranks, &m, &err), &err);
        CHECK_OK(orr_machine_dims(&m, &c, &err), &err);
        uint32_t all = 1;
        for (uint32_t k = 0; k < c.dims; k++) {
            all *= c.npus[k];
            CHECK(is_near(c.bandwidth[k] * (1 << 30), cases[i].link));
        }
        CHECK_EQ_U(all, cases[i].ranks);
    }
}

TEST(test_machine__torus_grows_as_a_cube)
{
    static const struct {
        const char *text;
        uint32_t size[3];
    } cases[] = {{"tpu-v4:16", {4, 4, 4}},
                 {"tpu-v4:128", {8, 8, 8}},
                 {"tpu-v5p:48", {12, 4, 4}}, /* whole cubes */
                 {"tpu-v5p:12", {4, 4, 3}},
                 {"tpu-v4:2", {2, 2, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const orr_net_config c = dims_of(cases[i].text);
        CHECK_EQ_U(c.dims, 3);
        for (uint32_t k = 0; k < 3; k++) {
            CHECK(c.shape[k] == ORR_NET_RING);
            CHECK_EQ_U(c.npus[k], cases[i].size[k]);
        }
    }
    CHECK(is_near(dims_of("tpu-v4:16").bandwidth[0] * (1 << 30), 50e9));
    CHECK_EQ_U(dims_of("tpu-v4").dims, 2); /* 2 x 2 */
    CHECK_EQ_U(dims_of("tpu-v4:16").npus[1], 4);
    const orr_net_config c = dims_of("trainium2:4");
    CHECK_EQ_U(c.dims, 3);
    CHECK_EQ_U(c.npus[2], 4);
    CHECK(is_near(c.bandwidth[0] * (1 << 30), 128e9));
    CHECK(is_near(c.bandwidth[2] * (1 << 30), 25e9));
}

TEST(test_machine__axes_close_to_rings_as_published)
{
    /* v4 and v5p: whole cubes in all axes, others in none; v5e: only an axis of 16.  Part of a node
     * has the wrap of the axes that it has whole. */
    static const struct {
        const char *text;
        uint32_t open; /* a bit per dimension */
    } cases[] = {{"tpu-v4:16", 0},   {"tpu-v4:8", 7},
                 {"tpu-v5p:32", 0},  {"tpu-v5p:24", 7},
                 {"tpu-v5e:4", 3},   {"tpu-v5e:32", 2},
                 {"tpu-v5e:64", 0},  {"trainium2", 0},
                 {"trainium2:2", 0}, {"tpu-v5e:4,scale_up.wrap=4", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const orr_net_config c = dims_of(cases[i].text);
        for (uint32_t k = 0; k < c.dims; k++)
            CHECK_EQ_U(c.is_open[k], cases[i].open >> k & 1);
    }
    const orr_machine all = find("trainium2");
    orr_machine part;
    orr_net_config c;
    orr_error err;
    CHECK_OK(orr_machine_fit(&all, 8, &part, &err), &err);
    CHECK_OK(orr_machine_dims(&part, &c, &err), &err);
    CHECK_EQ_U(c.npus[0], 4);
    CHECK(!c.is_open[0] && c.is_open[1]);
}

TEST(test_machine__oversubscription_counts_beyond_one_leaf)
{
    static const char text[] =
        "chip: x\ndevices: 8\nnodes: %d\nscale_up: {bandwidth: 100GB/s}\n"
        "nics: {count: 4, bandwidth: 400Gb/s}\n"
        "fabric: {kind: leaf-spine, nodes_per_leaf: 4, oversubscription: 2}\n";
    char buffer[400];
    orr_machine m;
    orr_net_config c;
    orr_error err;
    for (int nodes = 4; nodes <= 16; nodes *= 2) {
        /* Of what a node sends, 4 of 7 or 12 of 15 parts are for nodes of other leaves. */
        const double crowded = nodes == 4 ? 1 : nodes == 8 ? 2 * 4 / 7.0 : 2 * 12 / 15.0;
        snprintf(buffer, sizeof buffer, text, nodes);
        CHECK_OK(parse(buffer, &m, &err), &err);
        CHECK(is_near(orr_machine_out_GBps(&m), 25)); /* two devices share a NIC */
        CHECK_OK(orr_machine_dims(&m, &c, &err), &err);
        CHECK(is_near(c.bandwidth[1] * (1 << 30), 25e9 / crowded));
    }
}

TEST(test_machine__one_device_and_no_scale_up)
{
    orr_machine m;
    orr_net_config c;
    orr_error err;
    CHECK_OK(parse("chip: x\n", &m, &err), &err);
    CHECK_OK(orr_machine_dims(&m, &c, &err), &err);
    CHECK(c.dims == 1 && c.npus[0] == 1);
    CHECK_OK(parse("chip: x\nnodes: 4\ndevices: 2\nnics: {bandwidth: 100Gb/s}\n", &m, &err), &err);
    CHECK_OK(orr_machine_dims(&m, &c, &err), &err);
    CHECK(c.dims == 1 && c.npus[0] == 8 && is_near(c.bandwidth[0] * (1 << 30), 6.25e9));
}

TEST(test_machine__refuses_with_a_place)
{
    refuse("chip: h100\ndevises: 8\n", 2, 1, "did you mean \"devices\"");
    refuse("chip: h100\nscale_up: {bandwith: 1GB/s}\n", 2, 12, "did you mean \"bandwidth\"");
    refuse("chip: h100\nscale_up: {kind: cube, bandwidth: 1GB/s}\n", 2, 18, "switch or mesh");
    refuse("devices: 8\n", 1, 1, "\"chip\" is missing");
    refuse("chip: h100\nscale_up: {kind: switch}\n", 2, 11, "\"bandwidth\" is missing");
    refuse("chip: h100\nmemory: 80\n", 2, 9, "80GB");
    refuse("chip: h100\nnics: {bandwidth: 400}\n", 2, 19, "400Gb/s");
    refuse("chip: h100\ndevices: 8\nnodes: 2\nscale_up: {bandwidth: 1GB/s}\n", 1, 1, "no fabric");
    refuse("chip: h100\ndevices: 8\n", 1, 1, "neither");
    refuse("chip: x\ndevices: 8\nscale_up: {kind: torus, size: [2, 2], bandwidth: 1GB/s}\n", 1, 1,
           "product");
    refuse("chip: x\nnics: {bandwidth: 1GB/s}\nfabric: {kind: torus}\n", 1, 1, "torus");
}

TEST(test_machine__names_and_numbers_of_nodes)
{
    orr_machine m = {0};
    orr_error err;
    CHECK_EQ_U(orr_machine_devices(&(orr_machine){.nodes = 128, .devices = 8}), 1024);
    CHECK_EQ_U(find("dgx-h100:128").nodes, 128);
    CHECK_CODE(orr_machine_find("dgx-h10", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "did you mean 'dgx-h100'");
    CHECK_CODE(orr_machine_find("xyzzy:3", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "orrery machine list");
    CHECK_CODE(orr_machine_find("dgx-h100:0", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "number of nodes");
    CHECK_CODE(orr_machine_find("dgx-h100:many", &m, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_machine_find("gb200-nvl72:1048576", &m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "devices");
    CHECK_CODE(orr_machine_find("", &m, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_machine_find("no/such.yml", &m, &err), ORR_EIO, &err);
    CHECK_CODE(orr_machine_read("no/such.yml", &m, &err), ORR_EIO, &err);
    CHECK(orr_machine_source("dgx-h100") && !orr_machine_source("none"));
}

TEST(test_machine__kinds_have_words)
{
    CHECK_TEXT(orr_machine_up_name(ORR_MACHINE_UP_TORUS), "torus");
    CHECK_TEXT(orr_machine_fabric_name(ORR_MACHINE_FABRIC_LEAF_SPINE), "leaf-spine");
    const orr_machine m = find("dgx-h100:33");
    CHECK(is_near(orr_machine_out_latency_ns(&m), 1000 + 3 * 450));
}

static orr_machine parsed(const char *text)
{
    orr_machine m = {0};
    orr_error err;
    CHECK_OK(parse(text, &m, &err), &err);
    return m;
}

/* Of a DGX A100 6.5 kW for 8, of a DGX H100 10.2 kW, of a GB200 NVL72 120 kW for 72; 132, 108 and
 * 80 multiprocessors. */
TEST(test_machine__what_belongs_to_the_chip_follows_it)
{
    const orr_machine a100 = find("dgx-a100"), h100 = find("dgx-h100");
    const orr_machine m = parsed("base: dgx-h100\nchip: a100\n");
    CHECK(is_near(m.watts, 6500));
    CHECK(is_near(m.host_GBps, a100.host_GBps));
    CHECK_EQ_U(m.memory, a100.memory);
    CHECK_TEXT(m.architecture, "ampere");
    CHECK(m.memory_GBps == 0 && m.peak_tflops == 0);
    CHECK(is_near(m.overlap_cost, h100.overlap_cost * 132 / 108));
    CHECK(is_near(m.message_overlap_cost, h100.message_overlap_cost * 132 / 108));
    CHECK(is_near(m.up_GBps, h100.up_GBps) && is_near(m.nic_GBps, h100.nic_GBps));
    CHECK(is_near(find("dgx-h100,chip=a100").watts, 6500));
    CHECK(is_near(find("dgx-h100,chip=a100,devices=4").watts, 3250));
    CHECK(is_near(find("dgx-h100,devices=4,chip=gb200").watts, 120000. / 72 * 4));
    CHECK(is_near(parsed("base: dgx-h100\nchip: a100\ndevices: 4\n").watts, 3250));
    /* what is given counts, in any order */
    const char *const given[] = {
        "dgx-h100,chip=a100,watts=7000,memory=64GiB,host_bandwidth=12GB/s,overlap_cost=0.2",
        "dgx-h100,watts=7000,memory=64GiB,host_bandwidth=12GB/s,overlap_cost=0.2,chip=a100"};
    for (size_t i = 0; i < 2; i++) {
        const orr_machine own = find(given[i]);
        CHECK(is_near(own.watts, 7000) && is_near(own.host_GBps, 12));
        CHECK(own.memory == 64ull << 30 && is_near(own.overlap_cost, 0.2));
    }
    CHECK(is_near(parsed("base: dgx-h100\nwatts: 7000\nchip: a100\n").watts, 7000));
    /* no machine has it: 32 GB and 12 GB/s of the list, no power and no price */
    const orr_machine v100 = find("dgx-h100,chip=v100,architecture=volta");
    CHECK(v100.watts == 0 && v100.memory == 32000000000 && is_near(v100.host_GBps, 12));
    CHECK(is_near(v100.overlap_cost, h100.overlap_cost * 132 / 80));
    CHECK(find("dgx-h100,chip=unheard-of").watts == 0);
    CHECK(find("dgx-h100,usd_per_hour=2").usd_per_hour == 2);
    CHECK(find("dgx-h100,usd_per_hour=2,chip=h800").usd_per_hour == 2); /* the same chip */
    CHECK(is_near(find("dgx-h100,chip=h800").watts, h100.watts));
    CHECK(is_near(find("dgx-h100,chip=mine.yml").watts, h100.watts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_machine__what_belongs_to_the_chip_follows_it),
        RUN(test_machine__rates_are_those_published),
        RUN(test_machine__text_reads_back_the_same),
        RUN(test_machine__switch_and_fabric_are_two_dimensions),
        RUN(test_machine__mesh_shares_its_rate_over_its_links),
        RUN(test_machine__part_of_a_node_keeps_its_links),
        RUN(test_machine__torus_grows_as_a_cube),
        RUN(test_machine__axes_close_to_rings_as_published),
        RUN(test_machine__oversubscription_counts_beyond_one_leaf),
        RUN(test_machine__one_device_and_no_scale_up),
        RUN(test_machine__refuses_with_a_place),
        RUN(test_machine__names_and_numbers_of_nodes),
        RUN(test_machine__kinds_have_words),
    };
    return RUN_ALL(tests);
}
