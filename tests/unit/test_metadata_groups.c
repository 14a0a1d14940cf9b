/* SPDX-License-Identifier: Apache-2.0 */
/* test_metadata_groups.c - traces converted from PyTorch bring their process groups along, and lack
 * some things that others have. */
#include "sim_make.h"

#define INIT "## process_group:init ##"

static maker job(const char *groups, const char *name)
{
    return (maker){.ranks = 4,
                   .system = ", \"all-reduce-implementation\": [\"ring\"]",
                   .nodes = {{ORR_NODE_METADATA, .name = INIT, .inputs = groups, .duration_us = 5},
                             {ORR_NODE_COMM_COLL, .kind = ORR_COLL_ALL_REDUCE, .size = 4096,
                              .root = -1, .group = name}}};
}

/* Rings of two: two messages a rank.  The metadata take no time; a step takes 10 + 1038 ns for 2048
 * bytes, the first one 3 x 40 ns more to reduce; and 10 at the end. */
TEST(test_metadata_groups__define_groups)
{
    maker m = job("['[{\"pg_name\": \"3\", \"ranks\": [0, 1]}, "
                  "{\"pg_name\": \"7\", \"ranks\": [3, 2], \"x\": null}]']",
                  "3");
    m.upper_group = "7";
    const made out = make_run(&m);
    CHECK_EQ_U(out.messages, 4 * 2);
    for (unsigned r = 0; r < 4; r++)
        CHECK_EQ_U(out.finished[r], 2 * 1048 + 120 + 10);
}

TEST(test_metadata_groups__a_group_of_all_is_the_whole_system)
{
    const maker m = job("['[{\"pg_name\": \"7\", \"ranks\": [3, 2, 1, 0]}]']", "7");
    const made all = make_run(&m);
    CHECK_EQ_U(all.messages, 4 * 6);
    /* 6 steps of 10 + 1019 ns for 1024 bytes, 3 x 20 ns to reduce in half of them, and 10 at the
     * end. */
    CHECK_EQ_U(all.last, 6 * 1029 + 3 * 60 + 10);
}

TEST(test_metadata_groups__no_ranks_means_all)
{
    const maker m = job("['[{\"pg_name\": \"1\", \"ranks\": []}]']", "1");
    CHECK_EQ_U(make_run(&m).messages, 4 * 6);
}

TEST(test_metadata_groups__plain_json_will_do)
{
    const maker m = job("[{\"pg_name\": \"1\", \"ranks\": [0, 1, 2, 3]}]", "1");
    CHECK_EQ_U(make_run(&m).messages, 4 * 6);
}

TEST(test_metadata_groups__a_group_of_one_is_done_at_once)
{
    maker m = job("['[{\"pg_name\": \"1\", \"ranks\": [0]}]']", "1");
    m.nodes[2] = (make_node){ORR_NODE_COMP, .duration_us = 1};
    orr_set *set = make_set(&m);
    orr_sim *s;
    CHECK_OK(make_sim(&m, set, &s), &err);
    while (orr_sim_rank(s, 0)->finished_at == ORR_NEVER)
        CHECK_OK(orr_sim_step(s, &err), &err);
    CHECK_EQ_U(orr_sim_rank(s, 0)->finished_at, 1000);
    orr_sim_destroy(s);
    orr_set_close(set);
}

TEST(test_metadata_groups__names_a_group_that_is_nowhere)
{
    const maker m =
        job("['[{\"pg_name\": \"1\", \"ranks\": [0, 9]}, {}, {\"pg_name\": \"x\"}]']", "1");
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "communicator group \"1\"");
}

TEST(test_metadata_groups__says_what_is_wrong_with_the_text)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"['[{\"pg_name\": ']", "process groups: the inputs of the node are not a list"},
        {"['{}']", "process groups: expected a list"},
        {"['[{\"pg_name\": \"1\"}]']", "process groups: an entry has no list of ranks"},
        {"['[{\"pg_name\": \"1\", \"ranks\": [\"a\"]}]']",
         "process groups: a rank is not a number"},
        {"['[{\"pg_name\": \"1\", \"ranks\": [2, 2]}]']",
         "process groups: a rank is in a group twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const maker m = job(cases[i].text, "1");
        CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
        CHECK_SAYS(&err, cases[i].words);
    }
}

/* The converter drops the process node and leaves control dependencies on it; also by the old
 * names, as the releases of the documents look at data dependencies only. */
TEST(test_metadata_groups__a_lost_control_parent_is_forgiven)
{
    maker m = {.ranks = 4, .nodes = {{ORR_NODE_COMP, .duration_us = 2, .ctrl_dep = 99}}};
    CHECK_EQ_U(make_run(&m).last, 2000);
    m.is_compat = true;
    CHECK_EQ_U(make_run(&m).last, 2000);
}

TEST(test_metadata_groups__a_send_without_a_peer_takes_its_time)
{
    maker m = {
        .ranks = 4,
        .nodes = {{ORR_NODE_COMM_SEND, .duration_us = 3}, {ORR_NODE_COMM_RECV, .duration_us = 4}}};
    CHECK_EQ_U(make_run(&m).last, 7000);
    m.is_compat = true;
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "comm_dst");
}

TEST(test_metadata_groups__old_names_pass_over_metadata)
{
    maker m = job("['[]']", NULL);
    const uint64_t ours = make_run(&m).last;
    m.is_compat = true;
    CHECK_EQ_U(make_run(&m).last, ours + 1); /* 1 ns, as a node that takes no time */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_metadata_groups__define_groups),
        RUN(test_metadata_groups__a_group_of_all_is_the_whole_system),
        RUN(test_metadata_groups__no_ranks_means_all),
        RUN(test_metadata_groups__plain_json_will_do),
        RUN(test_metadata_groups__a_group_of_one_is_done_at_once),
        RUN(test_metadata_groups__names_a_group_that_is_nowhere),
        RUN(test_metadata_groups__says_what_is_wrong_with_the_text),
        RUN(test_metadata_groups__a_lost_control_parent_is_forgiven),
        RUN(test_metadata_groups__a_send_without_a_peer_takes_its_time),
        RUN(test_metadata_groups__old_names_pass_over_metadata),
    };
    return RUN_ALL(tests);
}
