/* SPDX-License-Identifier: Apache-2.0 */
/* test_algorithm_relay.c - broadcast, reduce, scatter, gather and barrier take the time and the
 * messages that docs/design/collectives.md says, on one dimension, on two, and in groups.
 *
 * A switch of 50 GB/s (53.687 bytes a ns) and 500 ns a link: a message of b bytes takes
 * floor(1000 + b / 53.687) ns.  Before anything is sent stand 10 ns at the endpoint. */
#include "sim_make.h"

enum { D = ENDPOINT, SIZE = 8192 };

static uint64_t time_of(uint64_t bytes)
{
    return (uint64_t)(1000 + (double)bytes / (50.0 * (double)(1 << 30) / 1e9));
}

static maker job(int64_t kind, int64_t root, const char *system)
{
    return (maker){.ranks = 8,
                   .system = system,
                   .nodes = {{ORR_NODE_COMM_COLL, .kind = kind, .size = SIZE, .root = root}}};
}

static uint32_t place_of(uint32_t rank, uint32_t root)
{
    return (rank + 8 - root) % 8;
}

static uint32_t height_of(uint32_t place) /* in the binomial tree of 8 */
{
    return place ? (uint32_t)__builtin_ctz(place) : 3;
}

TEST(test_algorithm_relay__broadcasts_down_a_binomial_tree)
{
    const maker m = job(ORR_COLL_BROADCAST, 3, NULL);
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++) { /* as many hops as bits */
        const uint64_t hops = (uint64_t)__builtin_popcount(place_of(r, 3));
        CHECK_EQ_U(out.finished[r], hops * (D + time_of(SIZE)) + D);
    }
    CHECK_EQ_U(out.messages, 7);
}

TEST(test_algorithm_relay__broadcasts_along_a_chain)
{
    const maker m = job(ORR_COLL_BROADCAST, 3, ", \"broadcast-implementation\": [\"ring\"]");
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r], place_of(r, 3) * (D + time_of(SIZE)) + D);
    CHECK_EQ_U(out.messages, 7);
}

TEST(test_algorithm_relay__broadcasts_from_one_to_all)
{
    const maker m = job(ORR_COLL_BROADCAST, -1, ", \"broadcast-implementation\": [\"direct\"]");
    const made out = make_run(&m);
    CHECK_EQ_U(out.finished[0], D);
    for (uint32_t r = 1; r < 8; r++)
        CHECK_EQ_U(out.finished[r], D + time_of(SIZE) + D);
    CHECK_EQ_U(out.messages, 7);
}

/* 3 x floor(8192 / 50) ns for each message that is added. */
TEST(test_algorithm_relay__reduces_up_a_binomial_tree)
{
    const maker m = job(ORR_COLL_REDUCE, 5, NULL);
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r],
                   D + height_of(place_of(r, 5)) * (time_of(SIZE) + D + 3 * (SIZE / 50)));
    CHECK_EQ_U(out.messages, 7);
}

TEST(test_algorithm_relay__reduces_along_a_chain)
{
    const maker m = job(ORR_COLL_REDUCE, 5, ", \"reduce-implementation\": [\"ring\"]");
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r],
                   D + (7 - place_of(r, 5)) * (time_of(SIZE) + D + 3 * (SIZE / 50)));
}

/* Each rank ends with an eighth.  An inner member gets what is for all below it in one message. */
TEST(test_algorithm_relay__scatters_down_a_binomial_tree)
{
    const maker m = job(ORR_COLL_SCATTER, 0, NULL);
    const made out = make_run(&m);
    const uint64_t four = D + time_of(4096), two = D + time_of(2048), one = D + time_of(1024);
    const uint64_t want[8] = {D,        one + D,        two + D,        two + one + D,
                              four + D, four + one + D, four + two + D, four + two + one + D};
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r], want[r]);
    CHECK_EQ_U(out.messages, 7);
}

/* The pieces leave together and travel alone: 7 + 6 + ... + 1 messages. */
TEST(test_algorithm_relay__scatters_along_a_chain_piece_by_piece)
{
    const maker m = job(ORR_COLL_SCATTER, 2, ", \"scatter-implementation\": [\"ring\"]");
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r], place_of(r, 2) * (D + time_of(1024)) + D);
    CHECK_EQ_U(out.messages, 28);
}

/* Each rank brings 8192 bytes. */
TEST(test_algorithm_relay__gathers_up_a_binomial_tree)
{
    const maker m = job(ORR_COLL_GATHER, 0, NULL);
    const made out = make_run(&m);
    const uint64_t one = time_of(SIZE) + D, two = time_of(2 * SIZE) + D,
                   four = time_of(4 * SIZE) + D;
    const uint64_t want[8] = {D + one + two + four, D, D + one, D, D + one + two, D, D + one, D};
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r], want[r]);
    CHECK_EQ_U(out.messages, 7);
}

TEST(test_algorithm_relay__gathers_along_a_chain_piece_by_piece)
{
    const maker m = job(ORR_COLL_GATHER, 1, ", \"gather-implementation\": [\"ring\"]");
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r], (7 - place_of(r, 1)) * (D + time_of(SIZE)) + D);
    CHECK_EQ_U(out.messages, 28);
}

TEST(test_algorithm_relay__gathers_from_all_to_one)
{
    const maker m = job(ORR_COLL_GATHER, 7, ", \"gather-implementation\": [\"direct\"]");
    const made out = make_run(&m);
    for (uint32_t r = 0; r < 7; r++)
        CHECK_EQ_U(out.finished[r], D);
    CHECK_EQ_U(out.finished[7], D + time_of(SIZE) + D);
}

/* Up and down the same tree with 8 bytes: nobody leaves before the last has come. */
TEST(test_algorithm_relay__barrier_is_a_reduce_and_a_broadcast)
{
    const maker m = job(ORR_COLL_BARRIER, -1, NULL);
    const made out = make_run(&m);
    const uint64_t all_here = D + 3 * (time_of(8) + D);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_EQ_U(out.finished[r],
                   all_here + (uint64_t)__builtin_popcount(r) * (D + time_of(8)) + D);
    CHECK_EQ_U(out.messages, 14);
}

/* Four by two, root 5 = (1, 1): first to (1, 0) over the outer dimension, then both feed their
 * four. */
TEST(test_algorithm_relay__crosses_outer_dimensions_once)
{
    maker m = job(ORR_COLL_BROADCAST, 5, NULL);
    m.shapes = "[ Switch, Switch ]";
    m.npus = "[ 4, 2 ]";
    m.bandwidths = "[ 50, 50 ]";
    const made out = make_run(&m);
    const uint64_t hop = D + time_of(SIZE);
    /* The root has sent on both dimensions, one after the other. */
    CHECK_EQ_U(out.finished[5], 2 * D);
    for (uint32_t r = 0; r < 8; r++) {
        const uint64_t inner = (uint64_t)__builtin_popcount((r % 4 + 4 - 1) % 4);
        if (r >= 4)
            CHECK_EQ_U(out.finished[r], inner ? D + inner * hop + D : 2 * D);
        else
            CHECK_EQ_U(out.finished[r], inner ? hop + D + inner * hop + D : hop + D + D);
    }
    CHECK_EQ_U(out.messages, 7);
}

TEST(test_algorithm_relay__any_shape_sends_what_it_must)
{
    static const struct {
        int64_t kind;
        uint64_t messages; /* over 4 x 2 x 3 */
    } cases[] = {{ORR_COLL_BROADCAST, 23},
                 {ORR_COLL_REDUCE, 23},
                 {ORR_COLL_SCATTER, 23},
                 {ORR_COLL_GATHER, 23},
                 {ORR_COLL_BARRIER, 46}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t root = 0; root < 24; root += 5) {
            maker m = job(cases[i].kind, root, NULL);
            m.ranks = 24;
            m.shapes = "[ Switch, Ring, FullyConnected ]";
            m.npus = "[ 4, 2, 3 ]";
            m.bandwidths = "[ 50, 25, 12 ]";
            CHECK_EQ_U(make_run(&m).messages, cases[i].messages);
        }
}

TEST(test_algorithm_relay__chunks_follow_each_other)
{
    maker m = job(ORR_COLL_BROADCAST, 0, ", \"broadcast-implementation\": [\"ring\"]");
    m.splits = 4;
    const made out = make_run(&m);
    CHECK_EQ_U(out.messages, 28);
    /* A member begins with a chunk when it is done with the one before: the last chunk leaves the
     * root at 4 x D, and is held up by nobody. */
    CHECK_EQ_U(out.finished[0], 4 * D);
    CHECK_EQ_U(out.finished[7], 7 * (D + time_of(SIZE / 4)) + 4 * D);
}

/* Ranks that have no part in a phase must not fall behind in the choice of queues: those who agree
 * on the order of chunks agree on it queue by queue. */
TEST(test_algorithm_relay__leaves_all_ranks_with_the_same_queues)
{
    maker m = job(ORR_COLL_BROADCAST, 5,
                  ", \"all-gather-implementation\": [\"ring\", \"ring\"], "
                  "\"chunk-order\": \"agreed\"");
    m.shapes = "[ Ring, Ring ]";
    m.npus = "[ 4, 2 ]";
    m.bandwidths = "[ 50, 50 ]";
    m.queues = 2;
    m.splits = 3; /* an odd number of chunks over two queues */
    m.nodes[0].size = 3 * SIZE;
    m.nodes[1] =
        (make_node){ORR_NODE_COMM_COLL, .kind = ORR_COLL_ALL_GATHER, .size = 3 * SIZE, .root = -1};
    CHECK_EQ_U(make_run(&m).messages, 3 * (7 + 8 * (1 + 3)));
}

TEST(test_algorithm_relay__refuses_a_root_that_is_not_there)
{
    const maker m = job(ORR_COLL_BROADCAST, 8, NULL);
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the root of the broadcast, rank 8, is not one of its ranks");
}

TEST(test_algorithm_relay__refuses_an_unknown_algorithm)
{
    const maker m = job(ORR_COLL_BROADCAST, 0, ", \"broadcast-implementation\": [\"halving\"]");
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
    CHECK_SAYS(
        &err,
        "broadcast-implementation: \"halving\" is not a collective algorithm (ring, direct, tree)");
}

/* The reference replays a broadcast and refuses the others. */
TEST(test_algorithm_relay__old_names_know_nothing_of_it)
{
    maker m = job(ORR_COLL_BROADCAST, 0, ", \"broadcast-implementation\": [\"nonsense\"]");
    m.is_compat = true;
    m.nodes[0].duration_us = 3;
    CHECK_EQ_U(make_run(&m).finished[7], 3000);
    m.nodes[0].kind = ORR_COLL_GATHER;
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_algorithm_relay__broadcasts_down_a_binomial_tree),
        RUN(test_algorithm_relay__broadcasts_along_a_chain),
        RUN(test_algorithm_relay__broadcasts_from_one_to_all),
        RUN(test_algorithm_relay__reduces_up_a_binomial_tree),
        RUN(test_algorithm_relay__reduces_along_a_chain),
        RUN(test_algorithm_relay__scatters_down_a_binomial_tree),
        RUN(test_algorithm_relay__scatters_along_a_chain_piece_by_piece),
        RUN(test_algorithm_relay__gathers_up_a_binomial_tree),
        RUN(test_algorithm_relay__gathers_along_a_chain_piece_by_piece),
        RUN(test_algorithm_relay__gathers_from_all_to_one),
        RUN(test_algorithm_relay__barrier_is_a_reduce_and_a_broadcast),
        RUN(test_algorithm_relay__crosses_outer_dimensions_once),
        RUN(test_algorithm_relay__any_shape_sends_what_it_must),
        RUN(test_algorithm_relay__chunks_follow_each_other),
        RUN(test_algorithm_relay__leaves_all_ranks_with_the_same_queues),
        RUN(test_algorithm_relay__refuses_a_root_that_is_not_there),
        RUN(test_algorithm_relay__refuses_an_unknown_algorithm),
        RUN(test_algorithm_relay__old_names_know_nothing_of_it),
    };
    return RUN_ALL(tests);
}
