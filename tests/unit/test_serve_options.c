/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be served is refused with the numbers that do not go together. */
#include "serve_make.h"

TEST(test_serve_options__defaults)
{
    const orr_model m = small_model();
    orr_serve_options o = {.ranks = {.dp = 3}};
    orr_error err;
    CHECK_OK(orr_serve_complete(&m, &o, &err), &err);
    CHECK_EQ_U(o.ranks.tp, 1);
    CHECK_EQ_U(o.batch, 3);
    CHECK_EQ_U(o.prompt, 1024);
    CHECK_EQ_U(o.output, 128);
    CHECK_EQ_U(o.max_batch, 256);
    CHECK_EQ_U(o.kv_block, 16);
    CHECK_EQ_U(o.peak, UINT64_C(989000000000000));
    CHECK_EQ_U(o.device_bytes, UINT64_C(80000000000));
    CHECK_EQ_U(orr_serve_rank_count(&o), 3);
}

TEST(test_serve_options__degrees_must_divide)
{
    const orr_model m = small_model(), e = small_experts();
    check_refused(&m, (orr_serve_options){.ranks = {.tp = 3}},
                  "tp 3 does not divide the heads of small, 4");
    check_refused(&m, (orr_serve_options){.decode = {.tp = 3}},
                  "decode tp 3 does not divide the heads of small, 4");
    check_refused(&m, (orr_serve_options){.ranks = {.pp = 3}},
                  "small has 2 layers: too few for pp 3");
    check_refused(&m, (orr_serve_options){.ranks = {.ep = 2}}, "ep 2: small has no experts");
    check_refused(&e, (orr_serve_options){.ranks = {.dp = 16, .ep = 16}},
                  "ep 16 does not divide the experts of small, 8");
    check_refused(
        &e, (orr_serve_options){.ranks = {.tp = 2, .dp = 3, .ep = 4}},
        "ep 4 neither divides tp 2 nor is a multiple of it that divides tp x cp x dp = 6");
    check_refused(&e, (orr_serve_options){.ranks = {.dp = 1u << 21, .tp = 4}}, "ranks");
}

TEST(test_serve_options__key_and_value_heads)
{
    orr_model m = small_model();
    m.heads = 12;
    m.kv_heads = 4;
    m.head_dim = 2;
    check_refused(&m, (orr_serve_options){.ranks = {.tp = 6}},
                  "tp 6 does not divide the key and value heads of small, 4");
}

TEST(test_serve_options__context_parallelism_is_for_prompts)
{
    const orr_model m = small_model();
    check_refused(&m, (orr_serve_options){.ranks = {.cp = 2}},
                  "cp 2: context parallelism applies to prefill only");
    check_refused(&m, (orr_serve_options){.decode = {.cp = 2}},
                  "decode cp 2: context parallelism applies to prefill only");
    check_refused(&m, (orr_serve_options){.decode = {.tp = 1}, .phase = ORR_SERVE_DECODE},
                  "separate decode ranks require both phases");
}

TEST(test_serve_options__experts_over_parts_of_prompts)
{
    orr_model m = small_experts();
    m.experts = 12;
    const orr_serve_options o = {.ranks = {.cp = 2, .dp = 3, .ep = 3}, .phase = ORR_SERVE_PREFILL};
    check_refused(&m, o, "neither a part of cp 2 nor whole replicas");
}

TEST(test_serve_options__requests)
{
    orr_model m = small_model();
    const orr_serve_request late[] = {{5, 1, 1}, {4, 1, 1}}, empty[] = {{0, 0, 1}};
    check_refused(&m, (orr_serve_options){.requests = late, .request_count = 2},
                  "request 2 comes at 4 us");
    check_refused(&m, (orr_serve_options){.requests = empty, .request_count = 1},
                  "request 1: 0 and 1 tokens");
    check_refused(&m, (orr_serve_options){.requests = late}, "expected 1 to 67108864 requests");
    m.position = ORR_MODEL_LEARNED;
    m.max_positions = m.position_rows = 100;
    check_refused(&m, (orr_serve_options){.prompt = 90, .output = 12},
                  "request 1: 90 + 12 tokens; small has positions for 100");
}

TEST(test_serve_options__weights_need_room)
{
    const orr_model *m = orr_model_find("llama-3-70b");
    check_refused(m, (orr_serve_options){.prompt = 10},
                  "the weights of llama-3-70b take 131 GiB per rank, but 90 % of its memory is "
                  "67.1 GiB: use more tp or pp, or more memory");
}

TEST(test_serve_options__figures_are_bounded)
{
    const orr_model m = small_model();
    check_refused(&m, (orr_serve_options){.max_batch = 1 << 17}, "max_batch is 131072");
    check_refused(&m, (orr_serve_options){.memory_rate = UINT64_MAX}, "memory_rate");
    check_refused(&m, (orr_serve_options){.phase = (orr_serve_phase)7}, "unknown phase");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_options__defaults),
        RUN(test_serve_options__degrees_must_divide),
        RUN(test_serve_options__key_and_value_heads),
        RUN(test_serve_options__context_parallelism_is_for_prompts),
        RUN(test_serve_options__experts_over_parts_of_prompts),
        RUN(test_serve_options__requests),
        RUN(test_serve_options__weights_need_room),
        RUN(test_serve_options__figures_are_bounded),
    };
    return RUN_ALL(tests);
}
