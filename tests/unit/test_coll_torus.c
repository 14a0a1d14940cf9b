/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives on a torus: their times against times calculated by hand, and against what the links
 * of the network can carry, which is counted here link by link. */
#include "check.h"

#include "models/collective/coll_torus.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/network/product.h"

#include <math.h>

enum { MOST = 512 };

/* Rings of 1 byte per ns and 100 ns per link; open: a bit per dimension. */
static orr_net_config net(uint32_t a, uint32_t b, uint32_t c, uint32_t open)
{
    orr_net_config n = {.size = sizeof n, .dims = 3, .npus = {a, b, c}};
    for (uint32_t k = 0; k < 3; k++) {
        n.bandwidth[k] = 1e9 / (1 << 30);
        n.latency_ns[k] = 100;
        n.is_open[k] = open >> k & 1;
    }
    return n;
}

static uint32_t all_of(const orr_net_config *n, uint32_t *members)
{
    const uint32_t count = n->npus[0] * n->npus[1] * n->npus[2];
    for (uint32_t i = 0; i < count; i++)
        members[i] = i;
    return count;
}

static torus_shape shape_of(const orr_net_config *n, const uint32_t *members, uint32_t count)
{
    torus_shape s;
    CHECK(torus_shape_of(n, members, count, &s));
    return s;
}

static double ns_of(const torus_shape *s, orr_collective kind, uint64_t bytes)
{
    nccl_cost c;
    CHECK(torus_cost_of(s, kind, bytes, &c));
    return c.time_ns;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- what links can do at best ---- */

/* Links on which a rank can send. */
static double links_of(const orr_net_config *n, uint32_t rank)
{
    double links = 0;
    for (uint32_t k = 0; k < 3; k++)
        for (int forward = 0; forward < 2; forward++) {
            const uint32_t to = torus_step(n, k, 1, rank, forward);
            /* Of two ranks the second direction is the same link. */
            links += to != UINT32_MAX && to != rank &&
                     !(n->npus[k] == 2 && !forward && torus_step(n, k, 1, rank, true) == to);
        }
    return links;
}

static uint32_t distance(const orr_net_config *n, uint32_t a, uint32_t b)
{
    uint32_t sum = 0, stride = 1;
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t m = n->npus[k], x = a / stride % m, y = b / stride % m;
        const uint32_t way = x > y ? x - y : y - x;
        sum += n->is_open[k] || m - way > way ? way : m - way;
        stride *= m;
    }
    return sum;
}

typedef struct bounds {
    double half, pairs, hops; /* ns per byte; links between the most distant members */
} bounds;

static bounds bounds_of(const orr_net_config *n, const uint32_t *members, uint32_t count)
{
    double least = INFINITY, all = 0, way = 0;
    uint32_t hops = 0;
    for (uint32_t r = 0; r < n->npus[0] * n->npus[1] * n->npus[2]; r++)
        all += links_of(n, r);
    for (uint32_t i = 0; i < count; i++) {
        least = fmin(least, links_of(n, members[i]));
        for (uint32_t j = 0; j < count; j++) {
            const uint32_t d = distance(n, members[i], members[j]);
            way += d;
            hops = d > hops ? d : hops;
        }
    }
    /* Every member must receive all but its own part through its own links; in an all-to-all each
     * byte crosses at least the links of a shortest way. */
    return (bounds){(1 - 1.0 / count) / least, way / count / all, hops};
}

static void is_possible(const orr_net_config *n, const uint32_t *members, uint32_t count)
{
    static const uint64_t sizes[] = {1, 1000, 1000003, 1ull << 32};
    const torus_shape s = shape_of(n, members, count);
    const bounds b = bounds_of(n, members, count);
    double before[3] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double bytes = (double)sizes[i], slack = 1 - 1e-9;
        const double half = ns_of(&s, ORR_COLL_ALL_GATHER, sizes[i]);
        const double whole = ns_of(&s, ORR_COLL_ALL_REDUCE, sizes[i]);
        const double pairs = ns_of(&s, ORR_COLL_ALL_TO_ALL, sizes[i]);
        CHECK(half >= slack * bytes * b.half);
        CHECK(is_near(ns_of(&s, ORR_COLL_REDUCE_SCATTER, sizes[i]), half));
        CHECK(is_near(whole, 2 * half));
        CHECK(pairs >= slack * bytes * b.pairs);
        CHECK(half >= 100 * b.hops && pairs >= 100 * b.hops);
        CHECK(half >= before[0] && whole >= before[1] && pairs >= before[2]);
        before[0] = half;
        before[1] = whole;
        before[2] = pairs;
    }
    /* Nor may the loads that it puts on links be less than it sends. */
    for (int is_pairs = 0; is_pairs < 2 && !s.is_ring; is_pairs++) {
        double load[TORUS_AXES], part[TORUS_AXES], sum = 0;
        nccl_cost c;
        torus_loads(&s, is_pairs, load);
        torus_parts(&s, is_pairs, part);
        CHECK(torus_cost_of(&s, is_pairs ? ORR_COLL_ALL_TO_ALL : ORR_COLL_ALL_GATHER, 1 << 20, &c));
        for (uint32_t i = 0; i < s.axes; i++) {
            const torus_axis *a = &s.axis[i];
            const double ends =
                a->is_closed ? 2 : 2 - 2.0 / a->count; /* directed links per place */
            CHECK(load[i] * ends >= part[i] * (1 - 1e-9));
            /* Alone it must get its own time: no link is asked for more than its rate. */
            CHECK(load[i] * c.up_bytes <= a->rate * (c.time_ns - c.latency_ns) * (1 + 1e-9));
            sum += part[i];
        }
        CHECK(is_near(sum, 1));
    }
}

/* A torus may have as many axes as a network has dimensions.  Nine of two places and one link each:
 * a ninth of the data goes over each link, half of what is left in each of nine phases.  An
 * all-gather of 9 x 512 bytes takes 511 ns, and nine hops of 100 ns. */
TEST(test_coll_torus__more_than_eight_axes)
{
    orr_net_config n = {.size = sizeof n, .dims = 9};
    uint32_t members[MOST];
    for (uint32_t k = 0; k < n.dims; k++) {
        n.npus[k] = 2;
        n.bandwidth[k] = 1e9 / (1 << 30);
        n.latency_ns[k] = 100;
    }
    for (uint32_t i = 0; i < MOST; i++)
        members[i] = i;
    const torus_shape s = shape_of(&n, members, MOST);
    CHECK_EQ_U(s.axes, 9);
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 9 * 512), 511 + 900));
}

TEST(test_coll_torus__never_faster_than_all_links)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    uint32_t members[MOST];
    for (uint32_t i = 0; i < SIZES * SIZES * SIZES; i++)
        for (uint32_t open = 0; open < 8; open++) {
            const orr_net_config n =
                net(sizes[i % SIZES], sizes[i / SIZES % SIZES], sizes[i / SIZES / SIZES], open);
            const uint32_t count = all_of(&n, members);
            if (count > 1)
                is_possible(&n, members, count);
        }
}

TEST(test_coll_torus__parts_of_a_torus_are_possible)
{
    const orr_net_config n = net(4, 4, 8, 0), mesh = net(4, 4, 8, 7);
    uint32_t members[MOST], seed = 1;
    /* Every box of every stride, and sets of ranks that are no box. */
    for (uint32_t box = 0; box < 4 * 4 * 8 * 2; box++) {
        const uint32_t a = 1 + box % 4, b = 1 + box / 4 % 4, c = 1 + box / 16 % 8,
                       by = 1 + box / 128;
        uint32_t count = 0;
        for (uint32_t z = 0; z < c; z++)
            for (uint32_t y = 0; y < b; y++)
                for (uint32_t x = 0; x < a; x++)
                    if (z * by < 8 && y * by < 4 && x * by < 4)
                        members[count++] = x * by + 4 * (y * by) + 16 * (z * by);
        if (count > 1) {
            is_possible(&n, members, count);
            is_possible(&mesh, members, count);
        }
    }
    for (uint32_t set = 0; set < 100; set++) {
        uint32_t count = 0;
        for (uint32_t r = 0; r < 128; r++) {
            seed = seed * 1664525 + 1013904223;
            if (seed >> 28 < 3)
                members[count++] = r;
        }
        if (count > 1) {
            is_possible(&n, members, count);
            is_possible(&mesh, members, count);
        }
    }
}

/* Two along an axis have one link, whichever of them sends. */
TEST(test_coll_torus__any_ranks_of_small_tori)
{
    static const uint32_t sizes[][3] = {{2, 2, 2}, {2, 3, 2}, {4, 2, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t open = 0; open < 8; open++) {
            const orr_net_config n = net(sizes[i][0], sizes[i][1], sizes[i][2], open);
            uint32_t members[MOST];
            const uint32_t all = all_of(&n, members);
            for (uint32_t set = 0; set < 1u << all; set++) {
                uint32_t count = 0;
                for (uint32_t r = 0; r < all; r++)
                    if (set >> r & 1)
                        members[count++] = r;
                if (count > 1)
                    is_possible(&n, members, count);
            }
        }
}

TEST(test_coll_torus__all_links_of_a_cube_are_busy)
{
    /* 4 x 4 x 4: 6 links of 1 byte per ns; (1 - 1/64) of the bytes; 2 + 2 + 2 hops of 100 ns. */
    const orr_net_config n = net(4, 4, 4, 0);
    uint32_t members[MOST];
    const torus_shape s = shape_of(&n, members, all_of(&n, members));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 6400000), 6300000 / 6.0 + 600));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_REDUCE, 6400000), 2 * 6300000 / 6.0 + 1200));
    /* A line of 4 in a ring has to carry 4 / 8 of what a rank sends, in each direction. */
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_TO_ALL, 6400000), 6400000 / 2.0 + 600));
    CHECK(is_near(ns_of(&s, ORR_COLL_BARRIER, 77), 1200));
}

TEST(test_coll_torus__without_wrap_half_the_rate)
{
    /* A line: the last link carries 3 of 4 parts, over 3 hops. */
    const orr_net_config ring = net(4, 1, 1, 0), line = net(4, 1, 1, 1), two = net(2, 1, 1, 0);
    uint32_t members[MOST];
    torus_shape s = shape_of(&ring, members, all_of(&ring, members));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 3000 / 2.0 + 200));
    s = shape_of(&line, members, all_of(&line, members));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 3000 + 300));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_TO_ALL, 4000), 4000 + 300)); /* 2 x 2 parts of 1,000 */
    /* Two neighbours have one link. */
    s = shape_of(&two, members, all_of(&two, members));
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 2000 + 100));
}

TEST(test_coll_torus__a_group_uses_only_its_axes)
{
    const orr_net_config n = net(4, 4, 4, 0);
    static const uint32_t row[] = {4, 5, 6, 7}, half[] = {4, 5}, far[] = {4, 6}, ends[] = {4, 7},
                          plane[] = {0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51};
    torus_shape s = shape_of(&n, row, 4);
    CHECK_EQ_U(s.axes, 1);
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 3000 / 2.0 + 200));
    s = shape_of(&n, half, 2);
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 2000 + 100));
    s = shape_of(&n, far, 2); /* both ways round, two links each */
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 2000 / 2.0 + 200));
    s = shape_of(&n, ends, 2); /* neighbours by the link that closes the ring */
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 4000), 2000 + 100));
    s = shape_of(&n, plane, 16);
    CHECK_EQ_U(s.axes, 2);
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 16000), 15000 / 4.0 + 400));
}

TEST(test_coll_torus__members_that_are_no_box_form_a_ring)
{
    /* Three of a host of 2 x 2: two messages share the link from 1 to 0, and 1 and 2 are two links
     * apart. */
    static const uint32_t corner[] = {0, 1, 2};
    const orr_net_config host = net(2, 2, 1, 0);
    const torus_shape s = shape_of(&host, corner, 3);
    CHECK(s.is_ring);
    CHECK(is_near(ns_of(&s, ORR_COLL_ALL_GATHER, 3000), 2000 / 2.0 * 2 + 200));
    /* Any members of any small torus: no step is longer than the torus. */
    for (uint32_t axes = 0; axes < 27 * 8; axes++) {
        const uint32_t a = axes % 3 + 1, b = axes / 3 % 3 + 1, c = axes / 9 % 3 + 1;
        const orr_net_config n = net(a, b, c, axes / 27);
        for (uint32_t set = 3; set < 1u << (a * b * c) && set < 1 << 12; set += 5) {
            uint32_t members[MOST], count = 0;
            for (uint32_t i = 0; i < a * b * c; i++)
                if (set >> i & 1)
                    members[count++] = i;
            torus_shape ring;
            CHECK(torus_ring_of(&n, members, count, &ring));
            CHECK(ring.ring_latency_ns <= 100.0 * (a + b + c - 3));
            CHECK(count < 2 || ring.ring_cost >= 1);
        }
    }
}

TEST(test_coll_torus__published_pod_rates)
{
    /* Google's pages state all-reduce bandwidths of pods: v5e 51.2 TB/s (256 chips, 16 x 16, 4 links
     * of 50 GB/s), v4 1.1 PB/s (4,096 chips; 6 links of 50 GB/s are 1.23).  Bytes of a rank over the
     * time of half an all-reduce, times chips; not fitted. */
    orr_net_config v5e = net(16, 16, 1, 0);
    uint32_t members[MOST];
    for (uint32_t k = 0; k < 3; k++)
        v5e.bandwidth[k] *= 50;
    const torus_shape s = shape_of(&v5e, members, all_of(&v5e, members));
    const double bytes = 1e12, ns = ns_of(&s, ORR_COLL_ALL_REDUCE, (uint64_t)bytes);
    const double TBps = 256 * 2 * bytes / ns / 1e3;
    CHECK(TBps > 51 && TBps < 51.5);
}

TEST(test_coll_torus__tori_behind_switches)
{
    /* Two rings of 4 joined by ports of 0.5 bytes per ns and 2 x 50 ns: a quarter of the bytes goes
     * outside, half of that to the other. */
    orr_net_config n = net(4, 2, 1, 0);
    uint32_t members[MOST];
    n.shape[1] = ORR_NET_SWITCH;
    n.bandwidth[1] /= 2;
    n.latency_ns[1] = 50;
    const torus_shape s = shape_of(&n, members, all_of(&n, members));
    CHECK_EQ_U(s.nodes, 2);
    const double inside = 8000 * 0.75 / 2, outside = 8000 / 4.0 / 2 / 0.5;
    CHECK(is_near(ns_of(&s, ORR_COLL_REDUCE_SCATTER, 8000), inside + outside / 4 + 200 + 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_coll_torus__more_than_eight_axes),
        RUN(test_coll_torus__never_faster_than_all_links),
        RUN(test_coll_torus__parts_of_a_torus_are_possible),
        RUN(test_coll_torus__any_ranks_of_small_tori),
        RUN(test_coll_torus__all_links_of_a_cube_are_busy),
        RUN(test_coll_torus__without_wrap_half_the_rate),
        RUN(test_coll_torus__a_group_uses_only_its_axes),
        RUN(test_coll_torus__members_that_are_no_box_form_a_ring),
        RUN(test_coll_torus__published_pod_rates),
        RUN(test_coll_torus__tori_behind_switches),
    };
    return RUN_ALL(tests);
}
