/* SPDX-License-Identifier: Apache-2.0 */
/* What serving computes, reads and sends, against sums done by hand and against
 * orr_model_compute. */
#include "serve_make.h"

/* ---- one rank ---- */

TEST(test_serve__prefill_computes_the_last_logits_only)
{
    /* 3 tokens: 2 layers x (3 x 2 x 576 + 6 pairs x 32) + one row of logits, 2 x 8 x 40. */
    const orr_model m = small_model();
    const orr_serve_options o = {.prompt = 3, .output = 2};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(sum_flops(&n, "prefill1."), 2 * (3 * 1152 + 6 * 32) + 640);
    CHECK_EQ_U(r.pools[0].iterations, 2);
    CHECK_EQ_U(r.prompt_tokens, 3);
    CHECK_EQ_U(r.output_tokens, 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__decode_sees_the_cache)
{
    /* The second iteration: one token behind 3. */
    const orr_model m = small_model();
    const orr_serve_options o = {.prompt = 3, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(sum_flops(&n, "decode2."), 2 * (1152 + 4 * 32) + 640);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__decode_reads_weights_and_cache)
{
    const orr_model m = small_model();
    const orr_serve_options o = {.phase = ORR_SERVE_DECODE, .prompt = 3, .output = 1};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    /* Queries and results 4 heads x (2 + 2) numbers, 4 keys of 8 numbers, 2 bytes each. */
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.core", 0)],
             2 * 16 + 2 * 4 * 8);
    /* 8 numbers come and go. */
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.kv_write", 0)], 8 * (2 + 2));
    /* 8 numbers in, 8 x 16 weights, 16 numbers out. */
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.qkv", 0)],
             2 * (8 + 8 * 16 + 16));
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__fp8_weights_and_caches_are_one_byte)
{
    const orr_model m = small_model();
    const orr_serve_options o = {.phase = ORR_SERVE_DECODE,
                                 .prompt = 3,
                                 .output = 1,
                                 .dtype = ORR_DTYPE_FP8,
                                 .kv_dtype = ORR_DTYPE_FP8};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.core", 0)], 2 * 16 + 4 * 8);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.kv_write", 0)], 8 * (2 + 1));
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer1.", "attn.qkv", 0)],
             8 + 8 * 16 + 2 * 16);
    /* 2 layers of 576 weights and two norms of 8; embedding and head of 320, a norm. */
    CHECK_EQ_U(r.pools[0].weight_bytes, 2 * (576 + 16) + 2 * 320 + 8);
    /* 4 tokens: a block of 16, 8 numbers, 2 layers. */
    CHECK_EQ_U(r.pools[0].kv_peak, 16 * 8 * 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__window_bounds_keys)
{
    /* A window of 4 behind 9 tokens: the token itself and 3 others; the cache keeps 4 of 10
     * tokens. */
    orr_model m = small_model();
    m.window = 4;
    const orr_serve_options o = {
        .phase = ORR_SERVE_DECODE, .prompt = 9, .output = 1, .kv_block = 1};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.layer0.", "attn.core", 0)],
             2 * 16 + 2 * 4 * 8);
    CHECK_EQ(n.c->num_ops[find_node(&n, "decode1.layer0.", "attn.core", 0)], 4 * 32);
    CHECK_EQ_U(r.pools[0].kv_peak, 4 * 8 * 2 * 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__mla_decodes_in_the_compressed_space)
{
    /* 3 tokens before.  Queries 8 x 20; 4 heads: 3 x 4 into the compressed space, 4 pairs of 2 x 4
     * + 2 numbers there, and 4 x 3 out of it. */
    const orr_model m = small_latent();
    const orr_serve_options o = {.phase = ORR_SERVE_DECODE, .prompt = 3, .output = 1};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ(n.c->num_ops[find_node(&n, "decode1.", "attn.q_absorb", 0)], 2 * 4 * 3 * 4);
    CHECK_EQ(n.c->num_ops[find_node(&n, "decode1.", "attn.v_absorb", 0)], 2 * 4 * 4 * 3);
    CHECK_EQ(n.c->num_ops[find_node(&n, "decode1.", "attn.core", 0)], 4 * 4 * 2 * 10);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "decode1.", "attn.core", 0)], 2 * 4 * 10 + 2 * 4 * 6);
    CHECK_EQ_U(count_nodes(&n, "", "kv_up"), 0);
    CHECK_EQ_U(r.pools[0].kv_peak, 16 * 6 * 2);
    close_rank(&n);
    orr_set_close(s);
}

/* ---- against the model's own count ---- */

static uint64_t model_flops(const orr_model *m, uint64_t tokens, uint64_t past, bool is_decode)
{
    const orr_model_work work = {.tokens = tokens, .past = past, .is_mla_absorbed = is_decode};
    orr_model_flops f;
    orr_error err;
    CHECK_OK(orr_model_compute(m, &work, &f, &err), &err);
    return f.forward - f.head + f.head / tokens; /* the last token's logits */
}

static void check_flops(const char *name)
{
    const orr_model *m = orr_model_find(name);
    /* Longer than the windows of those that have one. */
    const orr_serve_options o = {.prompt = 5000, .output = 3, .device_bytes = UINT64_C(1) << 42};
    CHECK(m != NULL);
    orr_set *s = make_set(m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(sum_flops(&n, "prefill1."), model_flops(m, 5000, 0, false));
    CHECK_EQ_U(sum_flops(&n, "decode2."), model_flops(m, 1, 5000, true));
    CHECK_EQ_U(sum_flops(&n, "decode3."), model_flops(m, 1, 5001, true));
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__flops_are_those_of_the_model)
{
    check_flops("llama-3-8b");
    check_flops("mistral-7b");
    check_flops("gemma-2-9b");
    check_flops("mixtral-8x7b");
    check_flops("qwen3-30b-a3b");
    check_flops("gpt-oss-20b");
    check_flops("deepseek-v2-lite");
    check_flops("deepseek-v3");
}

TEST(test_serve__cut_prompts_expand_their_past_again)
{
    /* 100 tokens by 40: each part is what orr_model_compute counts behind the ones before it,
     * logits in the last. */
    const orr_model m = small_latent();
    const orr_serve_options o = {.phase = ORR_SERVE_PREFILL, .prompt = 100, .chunk = 40};
    const uint64_t logits = 2 * 8 * 40;
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(sum_flops(&n, "prefill1."), model_flops(&m, 40, 0, false) - logits);
    CHECK_EQ_U(sum_flops(&n, "prefill2."), model_flops(&m, 40, 40, false) - logits);
    CHECK_EQ_U(sum_flops(&n, "prefill3."), model_flops(&m, 20, 80, false));
    CHECK_EQ_U(count_nodes(&n, "", "sample"), 1);
    close_rank(&n);
    orr_set_close(s);
}

/* ---- collectives and messages ---- */

TEST(test_serve__tensor_parallel_ranks_add_up)
{
    /* 3 sequences decode: 3 x 8 numbers of 2 bytes after the embedding, attention and FFN; 3 x 20
     * logits. */
    const orr_model m = small_model();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .phase = ORR_SERVE_DECODE, .batch = 3, .prompt = 5, .output = 1};
    orr_set *s = make_set(&m, &o, NULL);
    CHECK_EQ_U(orr_set_rank_count(s), 2);
    CHECK_EQ_U(orr_set_class_count(s), 1);
    CHECK_EQ_U(orr_set_group_count(s), 1);
    rank_nodes n = open_rank(s, 1);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_REDUCE, 3 * 8 * 2), 1 + 2 * 2);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_GATHER, 3 * 20 * 2), 1);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__sequence_parallel_where_tokens_divide)
{
    /* 4 tokens of a prompt: 64 bytes scattered, 2 tokens gathered from each; then one token, which
     * cannot be cut. */
    const orr_model m = small_model();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .prompt = 4, .output = 2, .sequence_parallel = true};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_REDUCE_SCATTER, 4 * 8 * 2), 1 + 2 * 2);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_GATHER, 2 * 8 * 2), 2 * 2);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_REDUCE, 8 * 2), 1 + 2 * 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__stages_send_on_and_tokens_back)
{
    const orr_model m = small_model();
    const orr_serve_options o = {.ranks = {.pp = 2}, .prompt = 3, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes first = open_rank(s, 0), last = open_rank(s, 1);
    const uint32_t sent = find_node(&first, "prefill1.", "send", 0);
    const uint32_t back = find_node(&last, "prefill1.", "token.send", 0);
    CHECK_EQ(first.c->comm_size[sent], 3 * 8 * 2);
    CHECK_EQ(first.c->comm_dst[sent], 1);
    CHECK_EQ(last.c->comm_size[back], 4);
    CHECK_EQ(last.c->comm_dst[back], 0);
    CHECK_EQ(first.c->comm_size[find_node(&first, "decode2.", "send", 0)], 8 * 2);
    CHECK_EQ_U(count_nodes(&first, "", "token.receive"), 2);
    close_rank(&first);
    close_rank(&last);
    orr_set_close(s);
}

TEST(test_serve__context_parallel_prompts_go_round)
{
    /* 6 tokens over 3 ranks: 2 keys of 8 numbers go round twice in each of 2 layers. */
    const orr_model m = small_model();
    orr_serve_options o = {.ranks = {.cp = 3}, .phase = ORR_SERVE_PREFILL, .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 2);
    CHECK_EQ_U(count_nodes(&n, "", "kv_send"), 2 * 2);
    CHECK_EQ(n.c->comm_size[find_node(&n, "", "kv_send", 0)], 2 * 8 * 2);
    CHECK_EQ(n.c->comm_dst[find_node(&n, "", "kv_send", 0)], 0);
    close_rank(&n);
    orr_set_close(s);
    o.context_form = ORR_CONTEXT_ALL_GATHER;
    s = make_set(&m, &o, NULL);
    n = open_rank(s, 0);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_GATHER, 2 * 8 * 2), 2);
    close_rank(&n);
    orr_set_close(s);
}

/* ---- experts ---- */

TEST(test_serve__experts_of_several_replicas_are_reached_by_all_to_all)
{
    /* 4 replicas of one rank, 6 tokens each: 6 x 2 copies of 8 numbers go; 4 x 12 / 4 come to 2
     * experts. */
    const orr_model m = small_experts();
    const orr_serve_options o = {.ranks = {.dp = 4, .ep = 4},
                                 .software = orr_software_find("torch-eager"),
                                 .phase = ORR_SERVE_PREFILL,
                                 .batch = 4,
                                 .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    CHECK_EQ_U(orr_set_class_count(s), 1);
    rank_nodes n = open_rank(s, 3);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_TO_ALL, 6 * 2 * 8 * 2), 2);
    CHECK_EQ(n.c->num_ops[find_node(&n, "", "moe.up", 0)], 2 * 12 * 8 * 8);
    CHECK_EQ(n.c->num_ops[find_node(&n, "", "moe.router", 0)], 2 * 6 * 8 * 8);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__vllm_sends_a_token_once_to_a_rank)
{
    /* Two of 8 experts lie on 4 x (1 - (3/4)^2) = 1.75 of 4 ranks on average. */
    const orr_model m = small_experts();
    const orr_serve_options o = {
        .ranks = {.dp = 4, .ep = 4}, .phase = ORR_SERVE_PREFILL, .batch = 4, .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 3);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_TO_ALL, 6 * 175 * 8 * 2 / 100), 2);
    CHECK_EQ(n.c->num_ops[find_node(&n, "", "moe.up", 0)], 2 * 12 * 8 * 8);
    close_rank(&n);
    orr_set_close(s);
}

static bool is_within(orr_str s, const char *words)
{
    return memmem(s.ptr, s.len, words, strlen(words)) != NULL;
}

/* Nodes that launch such a kernel: it begins like this, and the node's list has the other word. */
static unsigned count_kernels(const rank_nodes *n, const char *begin, const char *word)
{
    unsigned count = 0;
    for (uint32_t k = 0; k < n->c->count; k++) {
        orr_node node;
        orr_attr a;
        orr_trace_node(n->t, k, &node);
        orr_attrs it = orr_node_attrs(&node);
        while (orr_attrs_next(&it, &a))
            count += a.kind == ORR_VALUE_STRING && a.name.len == 7 &&
                     memcmp(a.name.ptr, "kernels", 7) == 0 && is_within(a.value.s, begin) &&
                     is_within(a.value.s, word);
    }
    return count;
}

TEST(test_serve__only_vllm_mixes_prompts_with_decoding)
{
    /* Seven tokens an iteration: the second prompt ends while the first sequence decodes. */
    const orr_model m = small_model();
    for (int is_vllm = 0; is_vllm < 2; is_vllm++) {
        const orr_serve_options o = {.software = orr_software_find(is_vllm ? "vllm" : "cuda-graph"),
                                     .batch = 2,
                                     .prompt = 6,
                                     .chunk = 6,
                                     .max_tokens = 7,
                                     .output = 4};
        orr_set *s = make_set(&m, &o, NULL);
        rank_nodes n = open_rank(s, 0);
        CHECK_EQ_U(count_kernels(&n, "decode bf16", " mixed") > 0, is_vllm);
        CHECK(count_kernels(&n, "decode bf16", "") > count_kernels(&n, "decode bf16", " mixed"));
        close_rank(&n);
        orr_set_close(s);
    }
}

TEST(test_serve__tensor_parallel_ranks_each_send_their_share)
{
    /* 2 replicas of 2 ranks: each rank sends 3 of the 6 tokens, and the replica gathers what comes
     * back. */
    const orr_model m = small_experts();
    const orr_serve_options o = {.ranks = {.tp = 2, .dp = 2, .ep = 4},
                                 .software = orr_software_find("torch-eager"),
                                 .phase = ORR_SERVE_PREFILL,
                                 .batch = 2,
                                 .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 1);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_TO_ALL, 3 * 2 * 8 * 2), 2);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_GATHER, 3 * 8 * 2), 1);
    CHECK_EQ(n.c->num_ops[find_node(&n, "", "moe.up", 0)], 2 * 6 * 8 * 8);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__experts_of_one_replica_need_no_all_to_all)
{
    /* 4 ranks, 2 sets of 4 experts, each expert on 2 ranks: 6 copies, a width of 2. */
    const orr_model m = small_experts();
    const orr_serve_options o = {
        .ranks = {.tp = 4, .ep = 2}, .phase = ORR_SERVE_PREFILL, .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ_U(count_nodes(&n, "", "moe.dispatch"), 0);
    CHECK_EQ(n.c->num_ops[find_node(&n, "", "moe.up", 0)], 2 * 6 * 4 * 8);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_REDUCE, 6 * 8 * 2), 3);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__replica_without_requests_works_for_the_others)
{
    /* 3 prompts for 4 replicas that share experts: 18 tokens, 36 copies, 9 for each rank. */
    const orr_model m = small_experts();
    const orr_serve_options o = {
        .ranks = {.dp = 4, .ep = 4}, .phase = ORR_SERVE_PREFILL, .batch = 3, .prompt = 6};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 3);
    CHECK_EQ_U(count_collectives(&n, ORR_COLL_ALL_TO_ALL, 6 * 175 * 8 * 2 / 100), 2);
    CHECK_EQ(n.c->num_ops[find_node(&n, "idle1.", "moe.up", 0)], 2 * 9 * 8 * 8);
    CHECK_EQ_U(count_nodes(&n, "", "attn.core"), 0);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__few_tokens_read_few_experts)
{
    /* One token meets 2 of 8 experts; two meet 8 x (1 - (3/4)^2) = 3.5 on average, rounded up. */
    const orr_model m = small_experts();
    orr_serve_options o = {.phase = ORR_SERVE_DECODE, .batch = 1, .prompt = 5, .output = 1};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 0);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "", "moe.up", 0)], 2 * (2 * 8 + 2 * 64 + 2 * 8));
    close_rank(&n);
    orr_set_close(s);
    o.batch = 2;
    s = make_set(&m, &o, NULL);
    n = open_rank(s, 0);
    CHECK_EQ(n.c->tensor_size[find_node(&n, "", "moe.up", 0)], 2 * (4 * 8 + 4 * 64 + 4 * 8));
    close_rank(&n);
    orr_set_close(s);
}

/* ---- the set and the report ---- */

TEST(test_serve__equal_replicas_are_stored_once)
{
    const orr_model m = small_model();
    const orr_serve_options o = {
        .ranks = {.tp = 2, .pp = 2, .dp = 64}, .batch = 128, .prompt = 9, .output = 4};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    CHECK_EQ_U(orr_set_rank_count(s), 256);
    CHECK_EQ_U(orr_serve_rank_count(&o), 256);
    CHECK_EQ_U(orr_set_class_count(s), 2);
    CHECK_EQ_U(orr_set_group_count(s), 128);
    CHECK_EQ_U(r.output_tokens, 128 * 4);
    orr_set_close(s);
}

TEST(test_serve__estimate_adds_up_operations)
{
    /* One operation a ps, and memory that takes no time: the estimate is the sum of all
     * operations. */
    const orr_model m = small_model();
    const orr_serve_options o = {.prompt = 7,
                                 .output = 3,
                                 .peak = UINT64_C(1000000000000),
                                 .memory_rate = UINT64_C(1) << 60};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    rank_nodes n = open_rank(s, 0);
    uint64_t sum = 0, first = 0;
    for (uint32_t i = 0; i < n.c->count; i++) {
        sum += (uint64_t)n.c->num_ops[i];
        first += is_named(orr_trace_name(n.t, i), "prefill1.", "") ? (uint64_t)n.c->num_ops[i] : 0;
    }
    CHECK_EQ(r.time, sum);
    CHECK_EQ(r.first_token_mean, first);
    CHECK_EQ(r.next_token_mean, (sum - first) / 2);
    close_rank(&n);
    orr_set_close(s);
}

TEST(test_serve__memory_is_that_of_the_fullest_rank)
{
    /* 5 prompts of 20 tokens, 4 more are kept of each answer: 2 blocks of 16, 8 numbers of 2 bytes,
     * 2 layers. */
    const orr_model m = small_model();
    const orr_serve_options o = {.batch = 5, .prompt = 20, .output = 5, .device_bytes = 20000};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    const uint64_t weights = 2 * (2 * (576 + 16) + 2 * 320 + 8);
    CHECK_EQ_U(r.pools[0].weight_bytes, weights);
    CHECK_EQ_U(r.pools[0].kv_room, 18000 - weights);
    CHECK_EQ_U(r.pools[0].kv_peak, 5 * 32 * 8 * 2 * 2);
    /* 100 tokens into the FFN: 8 numbers in, 32 out. */
    CHECK_EQ_U(r.pools[0].working_bytes, 2 * 100 * 40);
    CHECK(r.pools[0].fits); /* 3,664 + 5,120 + 8,000 bytes */
    orr_set_close(s);
}

TEST(test_serve__memory_that_is_given_to_caches_may_be_too_much)
{
    const orr_model m = small_model();
    const orr_serve_options o = {
        .batch = 5, .prompt = 20, .output = 5, .device_bytes = 16783, .kv_bytes = 5120};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    CHECK_EQ_U(r.pools[0].kv_room, 5120);
    CHECK(!r.pools[0].fits);
    orr_set_close(s);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve__prefill_computes_the_last_logits_only),
        RUN(test_serve__decode_sees_the_cache),
        RUN(test_serve__decode_reads_weights_and_cache),
        RUN(test_serve__fp8_weights_and_caches_are_one_byte),
        RUN(test_serve__window_bounds_keys),
        RUN(test_serve__mla_decodes_in_the_compressed_space),
        RUN(test_serve__flops_are_those_of_the_model),
        RUN(test_serve__cut_prompts_expand_their_past_again),
        RUN(test_serve__tensor_parallel_ranks_add_up),
        RUN(test_serve__sequence_parallel_where_tokens_divide),
        RUN(test_serve__stages_send_on_and_tokens_back),
        RUN(test_serve__context_parallel_prompts_go_round),
        RUN(test_serve__experts_of_several_replicas_are_reached_by_all_to_all),
        RUN(test_serve__vllm_sends_a_token_once_to_a_rank),
        RUN(test_serve__only_vllm_mixes_prompts_with_decoding),
        RUN(test_serve__tensor_parallel_ranks_each_send_their_share),
        RUN(test_serve__experts_of_one_replica_need_no_all_to_all),
        RUN(test_serve__replica_without_requests_works_for_the_others),
        RUN(test_serve__few_tokens_read_few_experts),
        RUN(test_serve__equal_replicas_are_stored_once),
        RUN(test_serve__estimate_adds_up_operations),
        RUN(test_serve__memory_is_that_of_the_fullest_rank),
        RUN(test_serve__memory_that_is_given_to_caches_may_be_too_much),
    };
    return RUN_ALL(tests);
}
