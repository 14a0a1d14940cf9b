/* SPDX-License-Identifier: Apache-2.0 */
/* Communication streams, and sets that carry holes and groups, in the simulator. */
#include "sim_make.h"

#include <orrery/lab/llm.h>

enum { BYTES = 536870912, TOOK = 10001000 }; /* 2^29 bytes at 50 GiB/s: 10 ms; two hops of 500 ns */

static orr_trace *message_trace(bool is_send, bool has_streams, const int64_t *streams, int count)
{
    const orr_attr says = {
        .name = orr_str_of("streams"), .kind = ORR_VALUE_BOOL, .value.u = has_streams};
    const orr_meta meta = {.version = orr_str_of("1.0.0"), .attrs = &says, .attr_count = 1};
    orr_trace *t;
    CHECK_OK(orr_trace_create(&meta, &t, &err), &err);
    for (int i = 0; i < count; i++) {
        const orr_attr attrs[] = {make_int("comm_size", BYTES), make_int("comm_tag", i),
                                  make_int(is_send ? "comm_dst" : "comm_src", is_send ? 1 : 0),
                                  make_int("stream", streams[i])};
        const orr_draft d = {.id = (uint64_t)i + 1,
                             .name = orr_str_of("message"),
                             .type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV,
                             .attrs = attrs,
                             .attr_count = 4};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static uint64_t run_set(const maker *m, const orr_set *set)
{
    orr_sim *s;
    uint64_t last = 0;
    CHECK_OK(make_sim(m, set, &s), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    for (uint32_t r = 0; r < orr_sim_ranks(s); r++)
        if (orr_sim_rank(s, r)->finished_at > last)
            last = orr_sim_rank(s, r)->finished_at;
    orr_sim_destroy(s);
    return last;
}

/* Rank 0 sends that many messages to rank 1, on these streams. */
static uint64_t run_messages(bool has_streams, bool is_compat, const int64_t *streams, int count)
{
    const maker m = {.ranks = 2, .is_compat = is_compat};
    orr_set *set;
    CHECK_OK(orr_set_create(&set, &err), &err);
    CHECK_OK(orr_set_add(set, message_trace(true, has_streams, streams, count), &err), &err);
    CHECK_OK(orr_set_add(set, message_trace(false, has_streams, streams, count), &err), &err);
    const uint64_t last = run_set(&m, set);
    orr_set_close(set);
    return last;
}

TEST(test_streams__go_on_at_the_same_time_where_the_trace_says_so)
{
    const int64_t apart[] = {1, 2, 3}, shared[] = {1, 2, 1};
    CHECK_EQ_U(run_messages(true, false, apart, 3), TOOK);
    CHECK_EQ_U(run_messages(true, false, shared, 3), 2 * TOOK);
    CHECK_EQ_U(run_messages(false, false, apart, 3), 3 * TOOK);
    CHECK_EQ_U(run_messages(true, true, apart, 3), 3 * TOOK); /* as the reference */
}

TEST(test_streams__past_the_last_slot_they_share_it)
{
    const int64_t many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    CHECK_EQ_U(run_messages(true, false, many, 9), TOOK);
    CHECK_EQ_U(run_messages(true, false, many, 12), 4 * TOOK); /* the ninth to the twelfth */
}

/* One step from a set with holes and groups, and from its files with a group file. */
TEST(test_streams__holes_and_groups_run_as_files_do)
{
    orr_model model;
    orr_set *set, *files;
    orr_sim *s;
    const orr_llm_options opt = {.tp = 2, .pp = 2, .dp = 2, .batch = 4, .seq = 256, .zero = 1};
    const maker m = {.ranks = 8,
                     .system = ", \"all-reduce-implementation\": [\"ring\"], "
                               "\"all-gather-implementation\": [\"ring\"], "
                               "\"reduce-scatter-implementation\": [\"ring\"], "
                               "\"roofline-enabled\": 1, \"peak-perf\": 100"};
    CHECK_OK(orr_model_load("gpt2", &model, &err), &err);
    CHECK_OK(orr_llm_training(&model, &opt, &set, &err), &err);
    CHECK_OK(orr_set_write_files(set, "step", NULL, 1, &err), &err);
    CHECK_OK(orr_set_write_groups(set, "groups.json", &err), &err);
    CHECK_OK(orr_set_open("step", NULL, &files, &err), &err);
    CHECK(orr_set_class_count(files) > orr_set_class_count(set));
    make_files(&m);
    const orr_sim_options from_files = {.set = files,
                                        .system = "system.json",
                                        .network = "network.yml",
                                        .fidelity = "unaware",
                                        .groups = "groups.json"};
    uint64_t last = 0;
    CHECK_OK(orr_sim_create(&from_files, &s, &err), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    for (uint32_t r = 0; r < 8; r++)
        if (orr_sim_rank(s, r)->finished_at > last)
            last = orr_sim_rank(s, r)->finished_at;
    orr_sim_destroy(s);
    CHECK_EQ_U(run_set(&m, set), last);
    orr_set_close(files);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_streams__go_on_at_the_same_time_where_the_trace_says_so),
        RUN(test_streams__past_the_last_slot_they_share_it),
        RUN(test_streams__holes_and_groups_run_as_files_do),
    };
    return RUN_ALL(tests);
}
