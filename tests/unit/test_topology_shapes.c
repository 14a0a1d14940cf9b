/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes against what is known of them: how many devices and cables, how far apart, how much passes
 * between halves. */
#include "files.h"
#include "net_run.h"

#include "models/network/routes.h"

#include "models/network/packet/packet.h"
#include <orrery/lab/topology.h>

enum { MOST = 4096 };

/* ---- distances ---- */

/* The farthest two ranks; every rank reaches every other one. */
static uint32_t diameter(const orr__topology *t)
{
    orr__routes *r;
    orr_error err;
    uint32_t most = 0;
    CHECK_OK(orr__routes_create(t, 0, &r, &err), &err);
    for (uint32_t from = 0; from < t->ranks; from++)
        for (uint32_t to = 0; to < t->ranks; to++) {
            uint32_t at = from, hops = 0;
            while (at != to && hops < MOST) {
                const uint32_t l = orr__routes_next(r, at, to, (uint64_t)from * 31 + to, &err);
                CHECK(l != NET_LINK_NONE);
                at = t->links[l].to;
                hops++;
            }
            CHECK_EQ_U(at, to);
            most = hops > most ? hops : most;
        }
    orr__routes_destroy(r);
    return most;
}

/* The largest flow from the ranks below `half` to the others: paths that add something, one by
 * one */

typedef struct cut {
    const orr__topology *t;
    double left[MOST]; /* of each link */
    uint32_t by[MOST /
                4]; /* the link a device was reached by; one more than the last: from the source */
    bool is_seen[MOST / 4];
} cut;

static bool find_path(cut *c, uint32_t half, uint32_t *end)
{
    uint32_t queue[MOST / 4], head = 0, tail = 0;
    const uint32_t devices = orr__topology_devices(c->t);
    for (uint32_t d = 0; d < devices; d++)
        c->is_seen[d] = false;
    for (uint32_t r = 0; r < half; r++) {
        c->is_seen[r] = true;
        c->by[r] = MOST;
        queue[tail++] = r;
    }
    while (head < tail) {
        const uint32_t here = queue[head++];
        for (uint32_t i = 0; i < c->t->link_count; i++) {
            const orr__wire *l = &c->t->links[i];
            if (l->from != here || c->left[i] < 1e-9 || c->is_seen[l->to])
                continue;
            c->is_seen[l->to] = true;
            c->by[l->to] = i;
            queue[tail++] = l->to;
            *end = l->to;
            if (l->to < c->t->ranks)
                return true;
        }
    }
    return false;
}

/* Ranks of the other half end a path, and none passes on. */
static double flow_between(const orr__topology *t, uint32_t half)
{
    static cut c;
    double sum = 0;
    uint32_t end = 0;
    CHECK(t->link_count < MOST && orr__topology_devices(t) < MOST / 4);
    c.t = t;
    for (size_t i = 0; i < t->link_count; i++)
        c.left[i] = t->links[i].speed;
    while (find_path(&c, half, &end)) {
        double least = 1e300;
        for (uint32_t d = end; c.by[d] != MOST; d = t->links[c.by[d]].from)
            least = c.left[c.by[d]] < least ? c.left[c.by[d]] : least;
        for (uint32_t d = end; c.by[d] != MOST; d = t->links[c.by[d]].from) {
            c.left[c.by[d]] -= least;
            c.left[c.by[d] ^ 1] += least; /* cables are two links, side by side */
        }
        sum += least;
    }
    return sum;
}

/* ---- shapes ---- */

typedef struct shape {
    const char *text;
    uint32_t ranks, switches;
    size_t cables;
    uint32_t diameter;
    uint32_t half; /* ranks of one side */
    double flow;   /* GB/s from there to the others */
} shape;

static const shape shapes[] = {
    /* n cables; half of them carry */
    {"generate: {type: switch, ranks: 12, bandwidth: 50GB/s}", 12, 1, 12, 2, 6, 300},
    /* 4 leaves of 4, 2 spines: 16 + 4 * 2; two leaves send 2 * 2 * 50 upwards, 2 to 1 */
    {"generate: {type: leaf-spine, ranks: 16, ranks_per_leaf: 4, spines: 2, bandwidth: 50GB/s}", 16,
     6, 24, 4, 8, 200},
    /* the same, said otherwise: 4 * 50 down, 2 * 25 up */
    {"generate: {type: leaf-spine, ranks: 16, ranks_per_leaf: 4, spines: 2, oversubscription: 4, "
     "bandwidth: 50GB/s}",
     16, 6, 24, 4, 8, 100},
    /* k = 4: 16 ranks, 20 switches, 3 * 16 cables, nothing in the way of 8 ranks */
    {"generate: {type: fat-tree, k: 4, bandwidth: 50GB/s}", 16, 20, 48, 6, 8, 400},
    /* k = 6: 54 ranks, 18 + 18 + 9 switches, 3 * 54 cables; three of six pods */
    {"generate: {type: fat-tree, k: 6, bandwidth: 50GB/s}", 54, 45, 162, 6, 27, 1350},
    /* 9 groups of 4 routers: 4 groups have 4 * 5 cables to the other 5 */
    {"generate: {type: dragonfly, routers: 4, ranks_per_router: 2, global_links: 2, bandwidth: 50GB/s}",
     72, 36, 72 + 54 + 36, 5, 32, 1000},
    /* 4 servers of 4, two a leaf: 32 cables of ranks and 2 * 2 to spines; 2 * 50 leave a leaf */
    {"generate: {type: servers, domains: 4, ranks_per_domain: 4, domains_per_leaf: 2, spines: 2, "
     "bandwidth: 50GB/s, nvlink_bandwidth: 450GB/s}",
     16, 4 + 2 + 2, 16 + 16 + 4, 4, 8, 100},
    /* one leaf: no spines needed, and all 8 NICs carry */
    {"generate: {type: servers, domains: 4, ranks_per_domain: 4, bandwidth: 50GB/s}", 16, 5, 32, 2,
     8, 400},
    /* 4 rails: 8 NICs carry from two servers to the others */
    {"generate: {type: rails, domains: 4, ranks_per_domain: 4, spines: 2, bandwidth: 50GB/s, "
     "nvlink_bandwidth: 450GB/s}",
     16, 4 + 4 + 2, 32 + 8, 4, 8, 400},
    /* 2 rails for 4 GPUs: ranks 0 and 2 on one */
    {"generate: {type: rails, domains: 4, ranks_per_domain: 4, rails: 2, spines: 1, cross_rail: spine, "
     "bandwidth: 50GB/s, nvlink_bandwidth: 450GB/s}",
     16, 4 + 2 + 1, 32 + 2, 4, 8, 400},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST(test_topology_shapes__counts_and_distances_are_the_known_ones)
{
    for (size_t i = 0; i < SHAPES; i++) {
        orr__topology *t = net_run_parse(shapes[i].text);
        CHECK_EQ_U(t->ranks, shapes[i].ranks);
        CHECK_EQ_U(orr_intern_count(t->switches), shapes[i].switches);
        CHECK_EQ_U(t->link_count, 2 * shapes[i].cables);
        CHECK_EQ_U(diameter(t), shapes[i].diameter);
        orr__topology_destroy(t);
    }
}

TEST(test_topology_shapes__halves_exchange_what_theory_says)
{
    for (size_t i = 0; i < SHAPES; i++) {
        orr__topology *t = net_run_parse(shapes[i].text);
        const double flow = flow_between(t, shapes[i].half);
        CHECK(flow > shapes[i].flow - 1e-6 && flow < shapes[i].flow + 1e-6);
        orr__topology_destroy(t);
    }
}

/* A torus of a x b x c: a diameter of the sum of halves; 2 * b * c cables are cut in the outermost
 * dimension.  Its links are not side by side, so they are counted here. */
TEST(test_topology_shapes__torus)
{
    orr__topology *t = net_run_parse("generate: {type: torus, size: [5, 4, 6], bandwidth: 50GB/s}");
    uint32_t between = 0;
    CHECK_EQ_U(t->ranks, 120);
    CHECK_EQ_U(t->link_count, 2 * 3 * 120);
    CHECK_EQ_U(diameter(t), 2 + 2 + 3);
    for (size_t i = 0; i < t->link_count; i++)
        between += t->links[i].from < 60 && t->links[i].to >= 60;
    CHECK_EQ_U(between, 2 * 5 * 4);
    orr__topology_destroy(t);
}

/* Two ranks of a server have the leaf, or a rail, in common as well; NVLink is nearer. */
TEST(test_topology_shapes__nvlink_comes_first)
{
    static const char *const texts[] = {
        "generate: {type: servers, domains: 2, ranks_per_domain: 4, bandwidth: 50GB/s}",
        "generate: {type: rails, domains: 2, ranks_per_domain: 4, rails: 2, bandwidth: 50GB/s}"};
    for (unsigned i = 0; i < 2; i++) {
        orr__topology *t = net_run_parse(texts[i]);
        orr__routes *r;
        orr_error err;
        CHECK_OK(orr__routes_create(t, 0, &r, &err), &err);
        for (uint64_t hash = 0; hash < 50; hash++)
            CHECK_EQ_U(t->links[orr__routes_next(r, 0, 2, hash, &err)].to, 8); /* nvswitch0 */
        orr__routes_destroy(r);
        orr__topology_destroy(t);
    }
}

/* SimAI's file has no costs; its rule is that of equally short ways those through an NVSwitch are
 * taken. */
TEST(test_topology_shapes__nvlink_comes_first_in_files_of_simai)
{
    static const char text[] = "6 2 1 1 8 H100\n4 5\n0 4 7200Gbps 100ns 0\n1 4 7200Gbps 100ns 0\n"
                               "2 4 7200Gbps 100ns 0\n3 4 7200Gbps 100ns 0\n0 5 100Gbps 1us 0\n"
                               "1 5 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n";
    static const char flow[] = "1\n0 3 3 100 1000 0\n";
    const orr_packet_options opt = {
        .topology = "simai.txt", .flows = "flow.txt", .fct = "", .pfc = ""};
    orr_topology *t;
    orr_topology_figures g;
    orr__routes *r;
    orr_packet *p;
    orr_error err;
    CHECK_OK(orr_topology_parse((orr_span){(const uint8_t *)text, strlen(text)}, "simai", &t, &err),
             &err);
    CHECK_OK(orr_topology_measure(t, &g, &err), &err);
    CHECK(g.nvswitches == 1 && g.switches == 2 && g.most_hops == 2 && g.most_latency_ns == 200);
    CHECK_OK(orr__routes_create(t, 0, &r, &err), &err);
    for (uint64_t hash = 0; hash < 50; hash++)
        CHECK_EQ_U(t->links[orr__routes_next(r, 0, 3, hash, &err)].to, 4);
    orr__routes_destroy(r);
    orr_topology_destroy(t);
    write_file("simai.txt", text, strlen(text));
    write_file("flow.txt", flow, strlen(flow));
    CHECK_OK(orr_packet_create(&opt, &p, &err), &err);
    CHECK_OK(orr_packet_run(p, &err), &err);
    /* 4 * 100 ns, 2 * 1,036 bytes and 2 * 48 at 7.2 Tb/s, each cut or rounded to a picosecond:
     * 402.4 ns */
    const uint64_t ps = orr_packet_result(p)->finished_at_ps;
    CHECK(ps > 402400 && ps < 402420);
    orr_packet_destroy(p);
}

/* Ranks of different rails: through a neighbour is cheaper than over spines, which are as many
 * links away and here 1 ms long; so no flow, wherever its hash sends it, takes as much. */
TEST(test_topology_shapes__costs_count_for_packets)
{
    static const char text[] =
        "generate: {type: rails, domains: 2, ranks_per_domain: 2, spines: 4, "
        "bandwidth: 100Gb/s, latency: 1us, spine_latency: 1ms}\n";
    static const char flows[] =
        "Nodes 4\nConnections 8\n0->3 start 0 size 1000\n0->3 start 0 size 1000\n"
        "0->3 start 0 size 1000\n0->3 start 0 size 1000\n1->2 start 0 size 1000\n"
        "1->2 start 0 size 1000\n3->0 start 0 size 1000\n3->0 start 0 size 1000\n";
    const orr_packet_options opt = {.topology = "net.yml", .flows = "x.cm", .fct = "", .pfc = ""};
    orr_packet *p;
    orr_error err;
    write_file("net.yml", text, strlen(text));
    write_file("x.cm", flows, strlen(flows));
    CHECK_OK(orr_packet_create(&opt, &p, &err), &err);
    CHECK_OK(orr_packet_run(p, &err), &err);
    CHECK_EQ_U(orr_packet_result(p)->flows_done, 8);
    CHECK(orr_packet_result(p)->fct_min_ps > 8000000); /* four links there, four back */
    CHECK(orr_packet_result(p)->fct_max_ps < 10000000);
    orr_packet_destroy(p);
}

/* The time of one packet and its acknowledgement between the farthest hosts of a torus: 82.88 ns,
 * 3.84 ns and two times 1 us a link. */
static void check_torus(unsigned a, unsigned b)
{
    const orr_packet_options opt = {.topology = "net.yml", .flows = "x.cm", .fct = "", .pfc = ""};
    char text[200];
    orr_packet *p;
    orr_error err;
    snprintf(text, sizeof text,
             "generate: {type: torus, size: [%u, %u], bandwidth: 100Gb/s, latency: 1us}", a, b);
    write_file("net.yml", text, strlen(text));
    snprintf(text, sizeof text, "Nodes %u\nConnections 1\n0->%u start 0 size 1000\n", a * b,
             a / 2 + b / 2 * a);
    write_file("x.cm", text, strlen(text));
    CHECK_OK(orr_packet_create(&opt, &p, &err), &err);
    CHECK_OK(orr_packet_run(p, &err), &err);
    CHECK_EQ_U(orr_packet_result(p)->finished_at_ps, 2086720 * (a / 2 + b / 2));
    CHECK_EQ_U(orr_packet_result(p)->max_rtt_ns > 0, a * b <= 1024); /* else it is not measured */
    orr_packet_destroy(p);
}

/* More than 1,024 places that choose, and as many to go to: ways are found one by one. */
TEST(test_topology_shapes__large_networks_are_like_small_ones)
{
    check_torus(32, 31);
    check_torus(33, 32);
    check_torus(64, 64);
}

/* ---- the same network in every kind of file ---- */

static void check_same(const orr_topology_figures *a, const orr_topology_figures *b, bool has_costs)
{
    CHECK_EQ_U(a->ranks, b->ranks);
    CHECK_EQ_U(a->switches, b->switches);
    CHECK_EQ_U(a->links, b->links);
    CHECK_EQ_U(a->most_ports, b->most_ports);
    CHECK_EQ_U(a->reached, a->ranks - 1);
    CHECK_EQ_U(b->reached, b->ranks - 1);
    CHECK(has_costs || a->hops == b->hops);
    CHECK(a->most_latency_ns == b->most_latency_ns || has_costs);
}

static void check_kind(orr_topology *t, orr_topology_format format, bool has_costs)
{
    orr_topology *back;
    orr_topology_figures a, b;
    orr_error err;
    CHECK_OK(orr_topology_write(t, format, NULL, "topology", &err), &err);
    CHECK(orr_topology_recognise("topology"));
    CHECK_OK(orr_topology_open("topology", &back, &err), &err);
    CHECK_OK(orr_topology_measure(t, &a, &err), &err);
    CHECK_OK(orr_topology_measure(back, &b, &err), &err);
    check_same(&a, &b, has_costs);
    CHECK(format == ORR_TOPOLOGY_HTSIM ||
          flow_between(back, a.ranks > 16 ? 8 : 4) == flow_between(t, a.ranks > 16 ? 8 : 4));
    orr_topology_destroy(back);
}

TEST(test_topology_shapes__files_of_all_kinds_read_back)
{
    for (size_t i = 0; i < SHAPES; i++) {
        orr_topology *t;
        orr_topology_figures g;
        orr_error err;
        const orr_span text = {(const uint8_t *)shapes[i].text, strlen(shapes[i].text)};
        CHECK_OK(orr_topology_parse(text, "shape", &t, &err), &err);
        CHECK_OK(orr_topology_measure(t, &g, &err), &err);
        check_kind(t, ORR_TOPOLOGY_NS3, g.has_costs);
        check_kind(t, ORR_TOPOLOGY_SIMAI, g.has_costs);
        check_kind(t, ORR_TOPOLOGY_YAML, false);
        orr_free(t->description); /* link by link, then */
        t->description = NULL;
        check_kind(t, ORR_TOPOLOGY_YAML, false);
        orr_topology_destroy(t);
    }
}

TEST(test_topology_shapes__fat_trees_go_to_htsim_and_back)
{
    static const char *const trees[] = {
        "generate: {type: leaf-spine, ranks: 16, ranks_per_leaf: 4, spines: 2, bandwidth: 400Gb/s, "
        "latency: 1us}",
        "generate: {type: leaf-spine, ranks: 48, ranks_per_leaf: 16, spines: 4, links_per_spine: 2, "
        "bandwidth: 100Gb/s, latency: 500ns, spine_latency: 700ns}",
        "generate: {type: fat-tree, k: 4, bandwidth: 100Gb/s, latency: 1us}",
        "generate: {type: fat-tree, k: 8, bandwidth: 400Gb/s, latency: 1us}"};
    for (unsigned i = 0; i < 4; i++) {
        orr_topology *t;
        orr_error err;
        const orr_span text = {(const uint8_t *)trees[i], strlen(trees[i])};
        CHECK_OK(orr_topology_parse(text, "tree", &t, &err), &err);
        check_kind(t, ORR_TOPOLOGY_HTSIM, false);
        orr_topology_destroy(t);
    }
}

static void no_tree(const char *text, const char *why)
{
    orr_topology *t;
    orr_error err;
    CHECK_OK(orr_topology_parse((orr_span){(const uint8_t *)text, strlen(text)}, "net", &t, &err),
             &err);
    CHECK_CODE(orr_topology_write(t, ORR_TOPOLOGY_HTSIM, NULL, "no.topo", &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, why);
    CHECK(!orr_topology_recognise("no.topo"));
    orr_topology_destroy(t);
}

TEST(test_topology_shapes__other_networks_are_no_trees_of_htsim)
{
    no_tree("generate: {type: switch, ranks: 4, bandwidth: 8Gb/s, latency: 1ns}",
            "fewer than two tiers");
    no_tree("generate: {type: torus, size: [4], bandwidth: 8Gb/s, latency: 1ns}",
            "fewer than two tiers");
    no_tree("generate: {type: dragonfly, routers: 2, ranks_per_router: 1, bandwidth: 8Gb/s}",
            "fewer than two tiers");
    no_tree("generate: {type: rails, domains: 2, ranks_per_domain: 2, spines: 1, bandwidth: 8Gb/s, "
            "latency: 1ns}",
            "a host has more than one link");
    no_tree(
        "generate: {type: leaf-spine, ranks: 5, ranks_per_leaf: 4, spines: 2, bandwidth: 8Gb/s, "
        "latency: 1ns}",
        "different numbers of links");
    no_tree("generate: {type: fat-tree, k: 4, bandwidth: 8Gb/s}", "whole nanoseconds above 0");
    no_tree(
        "generate: {type: leaf-spine, ranks: 6, ranks_per_leaf: 3, spines: 2, bandwidth: 8Gb/s, "
        "latency: 1ns}",
        "whole ratios");
    no_tree(
        "{ranks: 4, switches: [a, b, c], bandwidth: 8Gb/s, latency: 1ns, links: [{from: [0, 2], to: a}, "
        "{from: [1, 3], to: b}, {from: [a, b], to: c, bandwidth: 16Gb/s}]}",
        "not numbered along its switches");
}

TEST(test_topology_shapes__errors_have_a_place)
{
    orr_topology *t;
    orr_error err;
    static const char *const texts[][2] = {
        {"generate: {type: switch, ranks: 99999999999, bandwidth: 1GB/s}",
         "x:1:33: switch: ranks: \"99999999999\" is not a whole number"},
        {"generate: {type: leaf-spine, ranks: 16000000, ranks_per_leaf: 1, spines: 4096, bandwidth: 1GB/s}",
         "x:1:11: leaf-spine: more than 16777216 links"},
        {"generate: {type: leaf-spine, ranks: 8, ranks_per_leaf: 4, spines: 2, oversubscription: 2, "
         "spine_bandwidth: 1GB/s, bandwidth: 1GB/s}",
         "one determines the other"},
        {"generate: {type: servers, domains: 4, ranks_per_domain: 2, domains_per_leaf: 2, bandwidth: 1GB/s}",
         "leaves are connected through spines only"},
        {"generate: {type: rails, domains: 4, ranks_per_domain: 4, rails: 3, bandwidth: 1GB/s}",
         "must be a multiple"},
        {"generate: {type: switch, ranks: 4, bandwidth: 0GB/s}", "a rate above 0"},
        {"topology: [Ring]\nnpus_count: [4]\n",
         "not a topology with links (docs/format/topology.md)"},
        {"TOPOLOGY_FILE x\n", "not a topology with links (docs/format/topology.md)"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const orr_span text = {(const uint8_t *)texts[i][0], strlen(texts[i][0])};
        CHECK_CODE(orr_topology_parse(text, "x", &t, &err), ORR_EINPUT, &err);
        CHECK(t == NULL);
        CHECK_SAYS(&err, texts[i][1]);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_topology_shapes__counts_and_distances_are_the_known_ones),
        RUN(test_topology_shapes__halves_exchange_what_theory_says),
        RUN(test_topology_shapes__torus),
        RUN(test_topology_shapes__nvlink_comes_first),
        RUN(test_topology_shapes__nvlink_comes_first_in_files_of_simai),
        RUN(test_topology_shapes__costs_count_for_packets),
        RUN(test_topology_shapes__large_networks_are_like_small_ones),
        RUN(test_topology_shapes__files_of_all_kinds_read_back),
        RUN(test_topology_shapes__fat_trees_go_to_htsim_and_back),
        RUN(test_topology_shapes__other_networks_are_no_trees_of_htsim),
        RUN(test_topology_shapes__errors_have_a_place),
    };
    return RUN_ALL(tests);
}
