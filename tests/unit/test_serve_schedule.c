/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens go through the model together.  The numbers are those of each iteration, worked out
 * by hand. */
#include "serve_make.h"

static void check_tokens(const orr_model *m,
                         orr_serve_options o,
                         uint32_t rank,
                         const char *expected)
{
    char text[400];
    orr_set *s = make_set(m, &o, NULL);
    CHECK_TEXT(tokens_text(s, rank, m->hidden, text, sizeof text), expected);
    orr_set_close(s);
}

TEST(test_serve_schedule__equal_requests_go_together)
{
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.batch = 3, .prompt = 10, .output = 4}, 0, "30 3 3 3");
}

TEST(test_serve_schedule__phases_alone)
{
    const orr_model m = small_model();
    check_tokens(
        &m, (orr_serve_options){.phase = ORR_SERVE_PREFILL, .batch = 3, .prompt = 10, .output = 4},
        0, "30");
    check_tokens(
        &m, (orr_serve_options){.phase = ORR_SERVE_DECODE, .batch = 3, .prompt = 10, .output = 4},
        0, "3 3 3 3");
}

TEST(test_serve_schedule__batch_is_bounded)
{
    /* The third waits until the first two are done. */
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.batch = 3, .prompt = 10, .output = 3, .max_batch = 2}, 0,
                 "20 2 2 10 1 1");
}

TEST(test_serve_schedule__whole_prompts_wait_for_tokens)
{
    /* Two of 10 fit into 25; the third goes with the two that decode. */
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.batch = 3, .prompt = 10, .output = 3, .max_tokens = 25},
                 0, "20 12 3 1");
}

TEST(test_serve_schedule__long_prompt_goes_alone)
{
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.batch = 2, .prompt = 50, .output = 2, .max_tokens = 25},
                 0, "50 1 50 1");
}

TEST(test_serve_schedule__prompts_are_cut)
{
    /* 40 + 40 + 20; then three steps. */
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.prompt = 100, .output = 4, .chunk = 40}, 0,
                 "40 40 20 1 1 1");
}

TEST(test_serve_schedule__decoding_goes_first_then_begun_prompts)
{
    /* A: 4 in, 4 out; B: 20 in, 2 out; 10 tokens an iteration.
     * A4 B6 | a B9 | a B5 | a b: A is done after 4 tokens, B after 2. */
    const orr_model m = small_model();
    const orr_serve_request requests[] = {{0, 4, 4}, {0, 20, 2}};
    check_tokens(&m,
                 (orr_serve_options){
                     .requests = requests, .request_count = 2, .chunk = 100, .max_tokens = 10},
                 0, "10 10 6 2");
}

TEST(test_serve_schedule__requests_that_come_late_find_nobody)
{
    /* A second apart, an iteration takes nanoseconds. */
    const orr_model m = small_model();
    const orr_serve_request requests[] = {{0, 5, 2}, {1000000, 6, 2}, {2500000, 7, 1}};
    const orr_serve_options o = {.requests = requests, .request_count = 3};
    orr_serve_report r;
    check_tokens(&m, o, 0, "5 1 6 1 7");
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(count_nodes(&n, "", "arrival"), 2);
    const uint32_t second = find_node(&n, "prefill3.", "arrival", 0);
    const uint32_t third = find_node(&n, "prefill5.", "arrival", 0);
    CHECK_EQ_U(n.c->duration_us[second], 1000000);
    CHECK_EQ_U(n.c->duration_us[third], 1500000);
    CHECK_EQ(n.c->is_cpu_op[second], 1);
    CHECK(r.time >= INT64_C(2500000000000)); /* ps */
    CHECK(r.first_token_most < INT64_C(1000000000));
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve_schedule__request_joins_those_that_decode)
{
    /* Memory at 1 GB/s: a token through 1,824 weights of 2 bytes takes some 4 us, so the second
     * request, 2 us after the first, comes during the first iteration and joins in the second. */
    const orr_model m = small_model();
    const orr_serve_request requests[] = {{0, 5, 4}, {2, 6, 2}};
    check_tokens(
        &m,
        (orr_serve_options){.requests = requests, .request_count = 2, .memory_rate = 1000000000}, 0,
        "5 7 2 1");
}

TEST(test_serve_schedule__caches_need_room)
{
    /* 10 + 3 tokens, of which the last is not kept: a block of 16, 8 numbers of 2 bytes, 2
     * layers. */
    const orr_model m = small_model();
    orr_serve_options o = {.batch = 2, .prompt = 10, .output = 3, .kv_bytes = 512};
    check_tokens(&m, o, 0, "10 1 1 10 1 1");
    o.kv_bytes = 1024;
    check_tokens(&m, o, 0, "20 2 2");
    o.kv_bytes = 511;
    check_refused(&m, o,
                  "request 1: its cache of 12 tokens takes 512 B per rank, but there is room "
                  "for 511 B");
}

TEST(test_serve_schedule__stages_share_the_sequences)
{
    /* Two stages: two iterations at a time, of two sequences each. */
    const orr_model m = small_model();
    check_tokens(&m, (orr_serve_options){.ranks = {.pp = 2}, .batch = 4, .prompt = 10, .output = 3},
                 0, "20 20 2 2 2 2");
}

TEST(test_serve_schedule__replicas_take_turns)
{
    const orr_model m = small_model();
    const orr_serve_request requests[] = {{0, 5, 1}, {0, 6, 1}, {0, 7, 1}};
    const orr_serve_options o = {.ranks = {.dp = 2}, .requests = requests, .request_count = 3};
    check_tokens(&m, o, 0, "12");
    check_tokens(&m, o, 1, "6");
}

TEST(test_serve_schedule__replica_without_requests_has_a_node)
{
    const orr_model m = small_model();
    const orr_serve_options o = {.ranks = {.dp = 2}, .batch = 1, .prompt = 3, .output = 1};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 1);
    CHECK_EQ_U(n.c->count, 1);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve_schedule__replicas_in_step_have_the_same_iterations)
{
    /* The first has two prompts one after the other, the second one; both take part in all
     * iterations. */
    const orr_model m = small_experts();
    const orr_serve_options o = {.ranks = {.dp = 2, .ep = 2},
                                 .phase = ORR_SERVE_PREFILL,
                                 .batch = 3,
                                 .prompt = 5,
                                 .max_batch = 1};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 1);
    CHECK_EQ_U(count_nodes(&n, "prefill1.", "moe.dispatch"), 1);
    CHECK_EQ_U(count_nodes(&n, "idle2.", "moe.dispatch"), 1);
    CHECK_EQ_U(r.pools[0].iterations, 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve_schedule__too_long_is_refused)
{
    orr_model m = small_model();
    m.layers = 1 << 14;
    check_refused(&m, (orr_serve_options){.prompt = 1, .output = 300},
                  "traces of more than 256 iterations of 16384 layers");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_schedule__equal_requests_go_together),
        RUN(test_serve_schedule__phases_alone),
        RUN(test_serve_schedule__batch_is_bounded),
        RUN(test_serve_schedule__whole_prompts_wait_for_tokens),
        RUN(test_serve_schedule__long_prompt_goes_alone),
        RUN(test_serve_schedule__prompts_are_cut),
        RUN(test_serve_schedule__decoding_goes_first_then_begun_prompts),
        RUN(test_serve_schedule__requests_that_come_late_find_nobody),
        RUN(test_serve_schedule__request_joins_those_that_decode),
        RUN(test_serve_schedule__caches_need_room),
        RUN(test_serve_schedule__stages_share_the_sequences),
        RUN(test_serve_schedule__replicas_take_turns),
        RUN(test_serve_schedule__replica_without_requests_has_a_node),
        RUN(test_serve_schedule__replicas_in_step_have_the_same_iterations),
        RUN(test_serve_schedule__too_long_is_refused),
    };
    return RUN_ALL(tests);
}
