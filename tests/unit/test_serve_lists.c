/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of requests in every notation that is read: all say the same three requests. */
#include "check.h"

#include <orrery/lab/serve.h>

static orr_error err;

typedef struct requests {
    orr_serve_request *list;
    size_t count;
} requests;

static requests read_list(const char *text)
{
    requests r;
    CHECK_OK(orr_requests_parse((orr_span){(const uint8_t *)text, strlen(text)}, "q", &r.list,
                                &r.count, &err),
             &err);
    return r;
}

/* 812 tokens at once, 95 after 3.1 ms, 2,210 after 1 s and 9.8 ms. */
static void check_same(const char *text)
{
    static const orr_serve_request want[] = {{0, 812, 24}, {3100, 95, 40}, {1009800, 2210, 16}};
    requests r = read_list(text);
    CHECK_EQ_U(r.count, 3);
    for (size_t i = 0; i < 3 && i < r.count; i++) {
        CHECK_EQ_U(r.list[i].arrival_us, want[i].arrival_us);
        CHECK_EQ_U(r.list[i].prompt, want[i].prompt);
        CHECK_EQ_U(r.list[i].output, want[i].output);
    }
    orr_requests_free(r.list);
}

TEST(test_serve_lists__tables)
{
    check_same("arrival_us,prompt,output\n3100,95,40\n0,812,24\n1009800,2210,16\n");
    /* Azure, 2023 and 2024. */
    check_same("TIMESTAMP,ContextTokens,GeneratedTokens\n"
               "2023-12-31 23:59:59.5000000,812,24\n2023-12-31 23:59:59.5031004,95,40\n"
               "2024-01-01 00:00:00.5098,2210,16\n");
    check_same("TIMESTAMP,ContextTokens,GeneratedTokens\n"
               "2024-05-10 00:00:00.009930+00:00,812,24\n2024-05-10 02:00:00.013030+02:00,95,40\n"
               "2024-05-09T23:00:01.01973-01:00,2210,16\n");
    /* Splitwise. */
    check_same("request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,"
               "token_size\n0,2,0,0.0,1,812,24\n1,2,0,0.0031,1,95,40\n2,2,0,1.0098,1,2210,16\n");
    /* Vidur. */
    check_same("arrived_at,num_prefill_tokens,num_decode_tokens\n0,812,24\n0.0031,95,40\n"
               "1.0098,2210,16\n");
    /* BurstGPT: a request without an answer failed. */
    check_same("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
               "0,ChatGPT,812,24,836,API log\n0.0031,GPT-4,95,40,135,API log\n"
               "0.5,ChatGPT,17,0,17,API log\n1.0098,ChatGPT,2210,16,2226,API log\n");
    /* LLMServingSim, with tabs. */
    check_same("input_toks\toutput_toks\tarrival_time_ns\n812\t24\t0\n95\t40\t3100000\n"
               "2210\t16\t1009800400\n");
}

TEST(test_serve_lists__json)
{
    /* Mooncake. */
    check_same(
        "{\"timestamp\": 0, \"input_length\": 812, \"output_length\": 24, \"hash_ids\": [1]}\n"
        "{\"timestamp\": 3.1, \"input_length\": 95, \"output_length\": 40, \"hash_ids\": []}\n"
        "{\"timestamp\": 1009.8, \"input_length\": 2210, \"output_length\": 16}\n");
    /* LLMServingSim. */
    check_same("{\"input_toks\": 812, \"output_toks\": 24, \"arrival_time_ns\": 0}\n"
               "{\"input_toks\": 95, \"output_toks\": 40, \"arrival_time_ns\": 3100000, "
               "\"input_tok_ids\": [1, 2]}\n"
               "{\"input_toks\": 2210, \"output_toks\": 16, \"arrival_time_ns\": 1009800000}\n");
    check_same("[{\"arrival_us\": 0, \"prompt\": 812, \"output\": 24}, {\"arrival_us\": 3100, "
               "\"prompt\": 95, \"output\": 40}, {\"arrival_us\": 1009800, \"prompt\": 2210, "
               "\"output\": 16}]");
    /* vLLM. */
    check_same(
        "{\"backend\": \"vllm\", \"request_rate\": \"inf\", \"input_lens\": [812, 95, 3, 2210],"
        " \"output_lens\": [24, 40, 0, 16], \"start_times\": [8000000.5, 8000000.5031, "
        "8000000.6, 8000001.5098]}");
}

TEST(test_serve_lists__without_times)
{
    requests r =
        read_list("num_prefill_tokens,num_decode_tokens,pd_ratio\n812,24,33.8\n95,40,2.3\n");
    CHECK(r.count == 2 && r.list[0].arrival_us == 0 && r.list[1].arrival_us == 0);
    orr_requests_free(r.list);
    r = read_list("{\"request_rate\": 4, \"input_lens\": [812, 95], \"output_lens\": [24, 40]}");
    CHECK(r.count == 2 && r.list[0].arrival_us == 0 && r.list[1].arrival_us == 250000);
    orr_requests_free(r.list);
}

static void refuse(const char *text, const char *words)
{
    orr_serve_request *list;
    size_t count;
    CHECK_CODE(orr_requests_parse((orr_span){(const uint8_t *)text, strlen(text)}, "q", &list,
                                  &count, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK(err.where.line > 0);
}

TEST(test_serve_lists__faults_have_a_place)
{
    refuse("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-31 00:00:00,1,1\n",
           "q:2:1: TIMESTAMP: \"2023-13-31 00:00:00\" is not a date");
    refuse("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 00:00:00,1,1\n"
           "2024-12-31 00:00:00,1,1\n",
           "more than 92 days from the first request to the last");
    refuse("arrived_at,num_prefill_tokens,num_decode_tokens\n-1,2,3\n",
           "arrived_at: \"-1\" is not seconds of at most 92 days");
    refuse("arrived_at,num_prefill_tokens,num_decode_tokens\n1,2.5,3\n",
           "q:2:3: num_prefill_tokens: \"2.5\" is not a whole number");
    refuse("arrived_at,prompt,num_prefill_tokens,output\n", "a second column prompt");
    refuse("{\"timestamp\": 0, \"input_length\": 8}\n", "q:1:1: no output: expected timestamp");
    refuse("{\"timestamp\": 0, \"input_length\": \"many\", \"output_length\": 1}",
           "input_length: \"many\" is not a whole number");
    refuse("[{\"conversations\": []}]", "no arrival_us: expected timestamp");
    refuse("{\"input_lens\": [1, 2], \"output_lens\": [1]}",
           "input_lens and output_lens of the same");
    refuse("{\"input_lens\": [1, 1], \"output_lens\": [1, 1], \"request_rate\": 1e-303}",
           "request_rate: the last request would come");
    refuse("{\"input_lens\": [1], \"output_lens\": [1], \"start_times\": [\"x\"]}",
           "start_times: expected seconds");
    refuse("{\"timestamp\": 0, \"timestamp\": 1}", "a second arrival_us");
    refuse("[]", "no requests");
    refuse("{\"timestamp\": 0,", "q:1:");
}

/* More than can be kept as traces: figures alone have no limit. */
TEST(test_serve_lists__many_iterations)
{
    const orr_model m = {.name = "small",
                         .layers = 1 << 14,
                         .hidden = 8,
                         .vocab = 40,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 2,
                         .block_norms = 2,
                         .ffn = 16};
    const orr_serve_options o = {.prompt = 1, .output = 600, .batch = 1, .only_figures = true};
    orr_serve_report r;
    orr_set *s;
    CHECK_OK(orr_serve(&m, &o, &s, &r, &err), &err);
    CHECK(s == NULL);
    CHECK_EQ_U(r.pools[0].iterations, 600);
    CHECK_EQ_U(r.output_tokens, 600);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_lists__tables),          RUN(test_serve_lists__json),
        RUN(test_serve_lists__without_times),   RUN(test_serve_lists__faults_have_a_place),
        RUN(test_serve_lists__many_iterations),
    };
    return RUN_ALL(tests);
}
