/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "models/collective/nccl/nccl_model.h"

#include <math.h>

/* ---- random shapes ---- */

static uint64_t seed = 88172645463325252u;

static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static double between(double low, double high)
{
    return low * pow(high / low, (double)any(1000001) / 1e6);
}

static nccl_shape random_shape(void)
{
    nccl_shape s = {.nodes = any(3) ? 1 + (uint32_t)any(64) : 1};
    s.least_per_node = 1 + (uint32_t)any(8);
    s.most_per_node = s.least_per_node + (s.nodes > 1 && any(4) == 0 ? (uint32_t)any(3) : 0);
    s.ranks =
        s.nodes * s.least_per_node +
        (s.nodes > 1 ? (s.most_per_node - s.least_per_node) * (1 + (uint32_t)any(s.nodes - 1)) : 0);
    s.up_GBps = between(20, 1800);
    s.up_latency_ns = any(2) ? between(100, 3000) : 0;
    s.out_GBps = between(1, 200);
    s.out_latency_ns = any(2) ? between(500, 20000) : 0;
    s.up_reduces = any(2);
    s.out_reduces = any(4) == 0;
    s.generation = (nccl_generation)any(NCCL_GENERATIONS);
    return s;
}

static uint64_t random_bytes(void)
{
    return (uint64_t)between(1, 1.7e10);
}

static const orr_collective kinds[] = {
    ORR_COLL_ALL_REDUCE, ORR_COLL_REDUCE,         ORR_COLL_ALL_GATHER,
    ORR_COLL_GATHER,     ORR_COLL_SCATTER,        ORR_COLL_BROADCAST,
    ORR_COLL_ALL_TO_ALL, ORR_COLL_REDUCE_SCATTER, ORR_COLL_BARRIER,
};
enum { KINDS = sizeof kinds / sizeof *kinds, ROUNDS = 20000 };

static nccl_cost cost_of(const nccl_shape *s, orr_collective kind, uint64_t bytes)
{
    const nccl_forced with = {.collnet = s->out_reduces};
    nccl_cost c;
    if (!nccl_cost_of(s, kind, bytes, &with, &c))
        check_fail(__FILE__, __LINE__, "no cost: kind %d, %u ranks on %u nodes", kind, s->ranks,
                   s->nodes);
    return c;
}

/* Bytes that must cross the ports of a rank or of a host in one direction, whatever the algorithm,
 * unless the network adds up. */
static double bound_ns(const nccl_shape *s, orr_collective kind, double bytes)
{
    double n = s->ranks, nodes = s->nodes, port = s->up_GBps, nics = s->most_per_node * s->out_GBps;
    double in_host = 0, between_hosts = 0, port_all = nodes > 1 ? port + s->out_GBps : port;
    if (s->ranks == 1)
        return 0;
    switch (kind) {
    case ORR_COLL_ALL_REDUCE:
        in_host = s->up_reduces || s->out_reduces ? bytes : 2 * (n - 1) / n * bytes;
        between_hosts = s->out_reduces ? bytes : 2 * (nodes - 1) / nodes * bytes;
        break;
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_REDUCE_SCATTER:
        in_host = (n - 1) / n * bytes;
        between_hosts = (n - s->most_per_node) / n * bytes;
        break;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_REDUCE:
        in_host = bytes;
        between_hosts = bytes;
        break;
    case ORR_COLL_ALL_TO_ALL:
        in_host = (n - 1) / n * bytes;
        /* The smallest host's ranks send to all others. */
        nics = s->out_GBps;
        between_hosts = (n - s->most_per_node) / n * bytes;
        break;
    case ORR_COLL_GATHER:
    case ORR_COLL_SCATTER:
        in_host = (n - 1) / n * bytes;
        between_hosts = (n - s->most_per_node) / n * bytes;
        nics = s->out_GBps;
        break;
    default:
        return 0;
    }
    in_host /= port_all;
    between_hosts = nodes > 1 ? between_hosts / nics : 0;
    return in_host > between_hosts ? in_host : between_hosts;
}

TEST(test_nccl_model__nothing_beats_its_cut)
{
    for (int i = 0; i < ROUNDS; i++) {
        nccl_shape s = random_shape();
        orr_collective kind = kinds[any(KINDS)];
        uint64_t bytes = random_bytes();
        nccl_cost c = cost_of(&s, kind, bytes);
        double bound = bound_ns(&s, kind, (double)bytes);
        if (c.time_ns < bound * (1 - 1e-9))
            check_fail(__FILE__, __LINE__,
                       "kind %d, %u ranks on %u nodes, %" PRIu64 " bytes: %g ns, bound %g (%s)",
                       kind, s.ranks, s.nodes, bytes, c.time_ns, bound, c.algorithm);
        /* The loads of the ports fit into the time, too. */
        CHECK(c.up_bytes <= c.time_ns * s.up_GBps * (1 + 1e-9));
        CHECK(c.out_bytes <= c.time_ns * s.out_GBps * (1 + 1e-9));
        CHECK(c.low_ns <= c.time_ns && c.time_ns <= c.high_ns);
        CHECK(c.latency_ns <= c.time_ns);
    }
}

TEST(test_nccl_model__nothing_beats_light)
{
    for (int i = 0; i < ROUNDS; i++) {
        nccl_shape s = random_shape();
        orr_collective kind = kinds[any(KINDS)];
        nccl_cost c;
        double hops;
        s.up_latency_ns = between(100, 1e5);
        s.out_latency_ns = between(100, 1e5);
        c = cost_of(&s, kind, random_bytes());
        hops = s.ranks == 1 ? 0 : s.nodes > 1 ? s.out_latency_ns : s.up_latency_ns;
        CHECK(c.time_ns >= hops);
    }
}

TEST(test_nccl_model__more_bytes_take_longer)
{
    for (int i = 0; i < ROUNDS; i++) {
        nccl_shape s = random_shape();
        orr_collective kind = kinds[any(KINDS)];
        uint64_t bytes = random_bytes(), more = bytes + 1 + (uint64_t)between(1, (double)bytes + 1);
        nccl_cost a = cost_of(&s, kind, bytes), b = cost_of(&s, kind, more);
        if (b.time_ns < a.time_ns * (1 - 1e-9))
            check_fail(__FILE__, __LINE__,
                       "kind %d, %u ranks on %u nodes: %" PRIu64 " bytes %g ns (%s %s), %" PRIu64
                       " bytes %g ns (%s %s)",
                       kind, s.ranks, s.nodes, bytes, a.time_ns, a.algorithm, a.protocol, more,
                       b.time_ns, b.algorithm, b.protocol);
    }
}

TEST(test_nccl_model__more_capacity_is_never_slower)
{
    for (int i = 0; i < ROUNDS; i++) {
        nccl_shape s = random_shape(), better;
        orr_collective kind = kinds[any(KINDS)];
        uint64_t bytes = random_bytes();
        nccl_cost a, b;
        s.up_latency_ns = between(100, 3000);
        s.out_latency_ns = between(500, 20000);
        better = s;
        switch (any(4)) {
        case 0:
            better.up_GBps *= between(1, 10);
            break;
        case 1:
            better.out_GBps *= between(1, 10);
            break;
        case 2:
            better.up_latency_ns /= between(1, 10);
            break;
        default:
            better.out_latency_ns /= between(1, 10);
            break;
        }
        a = cost_of(&s, kind, bytes);
        b = cost_of(&better, kind, bytes);
        CHECK(b.time_ns <= a.time_ns * (1 + 1e-9));
    }
}

TEST(test_nccl_model__doubling_every_rate_halves_the_bandwidth_part)
{
    for (int i = 0; i < 200; i++) {
        nccl_shape s = random_shape(), twice;
        orr_collective kind = kinds[any(KINDS - 1)];
        uint64_t bytes = 1ull << 40; /* latencies do not matter any more */
        double a, b;
        twice = s;
        twice.up_GBps *= 2;
        twice.out_GBps *= 2;
        a = cost_of(&s, kind, bytes).time_ns;
        b = cost_of(&twice, kind, bytes).time_ns;
        CHECK(s.ranks == 1 || fabs(b / a - 0.5) < 0.15);
    }
}

/* ---- choice ---- */

static const nccl_shape dgx_a100 = {
    .ranks = 8, .nodes = 1, .up_GBps = 300, .out_GBps = 25, .generation = NCCL_AMPERE};
static const nccl_shape dgx_h100 = {.ranks = 8,
                                    .nodes = 1,
                                    .up_GBps = 450,
                                    .out_GBps = 50,
                                    .up_reduces = true,
                                    .generation = NCCL_HOPPER};

static void check_choice(const nccl_shape *s,
                         orr_collective kind,
                         uint64_t bytes,
                         const char *algorithm,
                         const char *protocol)
{
    nccl_cost c = cost_of(s, kind, bytes);
    CHECK_TEXT(c.algorithm, algorithm);
    CHECK_TEXT(c.protocol, protocol);
}

/* Crossings calculated by hand from NCCL's lines: 8 x A100, all-gather: LL 10.8 us + B / 100.2
 * GB/s, LL128 27.3 + B / 252.3, Simple 32.2 + B / 274.3. */
TEST(test_nccl_model__protocols_change_where_lines_cross)
{
    check_choice(&dgx_a100, ORR_COLL_ALL_GATHER, 1 << 10, "ring", "LL");
    check_choice(&dgx_a100, ORR_COLL_ALL_GATHER, 2700000, "ring", "LL");
    check_choice(&dgx_a100, ORR_COLL_ALL_GATHER, 2850000, "ring", "LL128");
    check_choice(&dgx_a100, ORR_COLL_ALL_GATHER, 14 << 20, "ring", "LL128");
    check_choice(&dgx_a100, ORR_COLL_ALL_GATHER, 16 << 20, "ring", "Simple");
}

TEST(test_nccl_model__switches_that_add_up_are_used)
{
    nccl_shape s = dgx_h100;
    nccl_cost c;
    check_choice(&s, ORR_COLL_ALL_REDUCE, 1 << 20, "ring", "LL");
    check_choice(&s, ORR_COLL_ALL_REDUCE, 2 << 20, "nvls", "Simple");
    s.up_reduces = false;
    check_choice(&s, ORR_COLL_ALL_REDUCE, 1 << 30, "ring", "Simple");
    s.up_reduces = true;
    s.ranks = 32;
    s.nodes = 4;
    s.most_per_node = s.least_per_node = 8;
    check_choice(&s, ORR_COLL_ALL_REDUCE, 1 << 30, "nvls-tree", "Simple");
    s.out_reduces = true; /* off unless asked for */
    CHECK(nccl_cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 30, NULL, &c));
    CHECK_TEXT(c.algorithm, "nvls-tree");
    CHECK(nccl_cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 30, &(nccl_forced){.collnet = true}, &c));
    CHECK_TEXT(c.algorithm, "nvls");
    CHECK(nccl_cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 30,
                       &(nccl_forced){.algorithm = "collnet-chain"}, &c));
    check_choice(&s, ORR_COLL_ALL_TO_ALL, 1 << 30, "direct", "Simple");
}

TEST(test_nccl_model__what_is_forced_is_taken_or_refused)
{
    nccl_forced f = {.algorithm = "Ring", .protocol = "LL128"};
    nccl_cost c, fewer;
    CHECK(nccl_cost_of(&dgx_h100, ORR_COLL_ALL_REDUCE, 1 << 30, &f, &c));
    CHECK_TEXT(c.algorithm, "ring");
    CHECK_TEXT(c.protocol, "LL128");
    f.channels = 4;
    CHECK(nccl_cost_of(&dgx_h100, ORR_COLL_ALL_REDUCE, 1 << 30, &f, &fewer));
    CHECK(fewer.time_ns > 2 * c.time_ns);
    f = (nccl_forced){.algorithm = "tree"};
    CHECK(!nccl_cost_of(&dgx_h100, ORR_COLL_ALL_GATHER, 1 << 30, &f, &c));
    f = (nccl_forced){.algorithm = "nvls", .protocol = "LL"};
    CHECK(!nccl_cost_of(&dgx_h100, ORR_COLL_ALL_REDUCE, 1 << 30, &f, &c));
}

/* Four ranks a host use four NICs: half of the time of two ranks a host. */
TEST(test_nccl_model__a_group_uses_the_nics_of_its_ranks)
{
    nccl_shape four = {.ranks = 16,
                       .nodes = 4,
                       .most_per_node = 4,
                       .least_per_node = 4,
                       .up_GBps = 450,
                       .out_GBps = 50,
                       .generation = NCCL_HOPPER};
    nccl_shape two = {.ranks = 8,
                      .nodes = 4,
                      .most_per_node = 2,
                      .least_per_node = 2,
                      .up_GBps = 450,
                      .out_GBps = 50,
                      .generation = NCCL_HOPPER};
    nccl_forced ring = {.algorithm = "ring", .protocol = "Simple"};
    nccl_cost a, b;
    CHECK(nccl_cost_of(&four, ORR_COLL_ALL_GATHER, 4ull << 30, &ring, &a));
    CHECK(nccl_cost_of(&two, ORR_COLL_ALL_GATHER, 4ull << 30, &ring, &b));
    CHECK(fabs(b.time_ns / a.time_ns - 2) < 0.15);
}

/* Two hosts of eight, 64 MiB for each rank.  A NIC sends what is for the 8 ranks of the other host.
 * By PXN 7 of these 8 parts come to it by NVLink, which also carries the 7 for the ranks beside
 * it. */
TEST(test_nccl_model__all_to_all_goes_by_rails)
{
    const double part = 64 << 20;
    nccl_shape s = {.ranks = 16,
                    .nodes = 2,
                    .most_per_node = 8,
                    .least_per_node = 8,
                    .up_GBps = 450,
                    .out_GBps = 50,
                    .generation = NCCL_HOPPER};
    nccl_cost c = cost_of(&s, ORR_COLL_ALL_TO_ALL, (uint64_t)(16 * part));
    CHECK(fabs(c.out_bytes - 8 * part) < 1);
    CHECK(fabs(c.up_bytes - (7 + 7) * part) < 1);
    CHECK(c.time_ns >= 8 * part / 50 && c.time_ns < 1.25 * 8 * part / 50);
    /* Where NVLink is slow, PXN is what takes longest. */
    s.up_GBps = 20;
    c = cost_of(&s, ORR_COLL_ALL_TO_ALL, (uint64_t)(16 * part));
    CHECK(c.time_ns >= 14 * part / 20);
    /* One rank on each host has nobody to hand anything to. */
    s = (nccl_shape){.ranks = 4,
                     .nodes = 4,
                     .most_per_node = 1,
                     .least_per_node = 1,
                     .up_GBps = 450,
                     .out_GBps = 50,
                     .generation = NCCL_HOPPER};
    c = cost_of(&s, ORR_COLL_ALL_TO_ALL, (uint64_t)(4 * part));
    CHECK(c.up_bytes == 0 && fabs(c.out_bytes - 3 * part) < 1);
}

TEST(test_nccl_model__one_rank_takes_no_time)
{
    nccl_shape s = {.ranks = 1, .nodes = 1, .generation = NCCL_HOPPER};
    CHECK(cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 20).time_ns == 0);
    s.ranks = 0;
    CHECK(!nccl_cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 20, NULL, &(nccl_cost){0}));
    s = (nccl_shape){.ranks = 2, .nodes = 2}; /* nothing connects them */
    CHECK(!nccl_cost_of(&s, ORR_COLL_ALL_REDUCE, 1 << 20, NULL, &(nccl_cost){0}));
}

TEST(test_nccl_model__a_message_takes_its_bytes)
{
    nccl_cost c;
    CHECK(nccl_send_cost_of(&dgx_h100, 1 << 30, NULL, &c));
    CHECK(c.time_ns >= 1073741824 / 450.0 && c.time_ns < 2 * 1073741824.0 / 450);
}

TEST(test_nccl_model__generations_have_names)
{
    CHECK_EQ(nccl_generation_of("H100-SXM"), NCCL_HOPPER);
    CHECK_EQ(nccl_generation_of("gb200-nvl72"), NCCL_BLACKWELL);
    CHECK_EQ(nccl_generation_of("dgx-a100"), NCCL_AMPERE);
    CHECK_EQ(nccl_generation_of("tpu-v4"), NCCL_OTHER);
    CHECK_EQ(nccl_generation_of(NULL), NCCL_OTHER);
}

/* Of 16 ranks on two hosts the root has 7 on its own and exchanges a part with each of the other 8
 * through its NIC: as much as a root of 9 ranks on 9 hosts, and in the same time. */
TEST(test_nccl_model__a_root_reaches_its_own_host_without_nics)
{
    const uint32_t part = 64 << 20;
    const nccl_shape two = {.ranks = 16,
                            .nodes = 2,
                            .most_per_node = 8,
                            .least_per_node = 8,
                            .up_GBps = 450,
                            .out_GBps = 50,
                            .generation = NCCL_HOPPER};
    nccl_shape nine = two;
    nine.ranks = nine.nodes = 9;
    nine.most_per_node = nine.least_per_node = 1;
    for (int i = 0; i < 2; i++) {
        const orr_collective kind = i ? ORR_COLL_SCATTER : ORR_COLL_GATHER;
        const nccl_cost a = cost_of(&two, kind, (uint64_t)16 * part);
        const nccl_cost b = cost_of(&nine, kind, (uint64_t)9 * part);
        CHECK(fabs(a.out_bytes - 8.0 * part) < 1);
        CHECK(fabs(a.up_bytes - 7.0 * part) < 1);
        CHECK(fabs(a.time_ns - a.latency_ns - (b.time_ns - b.latency_ns)) < 1);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_nccl_model__nothing_beats_its_cut),
        RUN(test_nccl_model__nothing_beats_light),
        RUN(test_nccl_model__more_bytes_take_longer),
        RUN(test_nccl_model__more_capacity_is_never_slower),
        RUN(test_nccl_model__doubling_every_rate_halves_the_bandwidth_part),
        RUN(test_nccl_model__protocols_change_where_lines_cross),
        RUN(test_nccl_model__switches_that_add_up_are_used),
        RUN(test_nccl_model__what_is_forced_is_taken_or_refused),
        RUN(test_nccl_model__a_group_uses_the_nics_of_its_ranks),
        RUN(test_nccl_model__a_root_reaches_its_own_host_without_nics),
        RUN(test_nccl_model__all_to_all_goes_by_rails),
        RUN(test_nccl_model__one_rank_takes_no_time),
        RUN(test_nccl_model__a_message_takes_its_bytes),
        RUN(test_nccl_model__generations_have_names),
    };
    return RUN_ALL(tests);
}
