/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/model.h>

static const orr_model *get(const char *name)
{
    const orr_model *m = orr_model_find(name);
    if (!m)
        check_fail(__FILE__, __LINE__, "there is no preset %s", name);
    return m;
}

static orr_model_counts count(const orr_model *m)
{
    orr_model_counts n;
    orr_error err;
    CHECK_OK(orr_model_check(m, &err), &err);
    orr_model_count(m, &n);
    return n;
}

/* ---- presets ---- */

typedef struct published {
    const char *name;
    uint64_t total, active; /* active 0: all */
} published;

/* Parameters as counted over the published weights.  Active ones: what is published is rounded
 * (Mixtral 12.9 B and 39 B, Qwen3 3.3 B and 22 B, DeepSeek-V2 21 B, V3 37 B), so those are the
 * total less the experts that a token does not meet: layers * (experts - used) * 3 * hidden *
 * width. */
static const published known[] = {
    {"gpt2", 124439808, 0},
    {"gpt2-medium", 354823168, 0},
    {"gpt2-large", 774030080, 0},
    {"gpt2-xl", 1557611200, 0},
    {"llama-2-7b", 6738415616, 0},
    {"llama-2-13b", 13015864320, 0},
    {"llama-2-70b", 68976648192, 0},
    {"llama-3-8b", 8030261248, 0},
    {"llama-3-70b", 70553706496, 0},
    {"llama-3.1-8b", 8030261248, 0},
    {"llama-3.1-70b", 70553706496, 0},
    {"llama-3.1-405b", 405853388800, 0},
    {"llama-3.2-1b", 1235814400, 0},
    {"llama-3.2-3b", 3212749824, 0},
    {"mistral-7b", 7241732096, 0},
    {"mixtral-8x7b", 46702792704, 46702792704 - 32ull * 6 * 3 * 4096 * 14336},
    {"mixtral-8x22b", 140620634112, 140620634112 - 56ull * 6 * 3 * 6144 * 16384},
    {"qwen2.5-0.5b", 494032768, 0},
    {"qwen2.5-1.5b", 1543714304, 0},
    {"qwen2.5-3b", 3085938688, 0},
    {"qwen2.5-7b", 7615616512, 0},
    {"qwen2.5-14b", 14770033664, 0},
    {"qwen2.5-32b", 32763876352, 0},
    {"qwen2.5-72b", 72706203648, 0},
    {"qwen3-0.6b", 596049920, 0},
    {"qwen3-1.7b", 1720574976, 0},
    {"qwen3-4b", 4022468096, 0},
    {"qwen3-8b", 8190735360, 0},
    {"qwen3-14b", 14768307200, 0},
    {"qwen3-32b", 32762123264, 0},
    {"qwen3-30b-a3b", 30532122624, 30532122624 - 48ull * 120 * 3 * 2048 * 768},
    {"qwen3-235b-a22b", 235093634560, 235093634560 - 94ull * 120 * 3 * 4096 * 1536},
    {"deepseek-v2-lite", 15706484224, 15706484224 - 26ull * 58 * 3 * 2048 * 1408},
    {"deepseek-v2", 235741434880, 235741434880 - 59ull * 154 * 3 * 5120 * 1536},
    {"deepseek-v3", 671026419200, 671026419200 - 58ull * 248 * 3 * 7168 * 2048},
    {"gemma-2-2b", 2614341888, 0},
    {"gemma-2-9b", 9241705984, 0},
    {"gemma-2-27b", 27227128320, 0},
    /* An expert of gpt-oss has biases: 3 * 2880 * 2880 + 3 * 2880. */
    {"gpt-oss-20b", 20914757184, 20914757184 - 24ull * 28 * 3 * 2880 * 2881},
    {"gpt-oss-120b", 116829156672, 116829156672 - 36ull * 124 * 3 * 2880 * 2881},
};

TEST(test_model__presets_have_the_published_number_of_parameters)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const orr_model_counts n = count(get(known[i].name));
        CHECK_EQ_U(n.total, known[i].total);
        CHECK_EQ_U(n.active, known[i].active ? known[i].active : known[i].total);
    }
}

/* GPT-3 is published to two or three digits.  In closed form: a layer has 4 h^2 + 4 h for
 * attention, 8 h^2 + 5 h for the FFN and 4 h for two norms; embedding and head have (50257 + 2048) h and 2
 * h. */
TEST(test_model__gpt3_follows_its_closed_form)
{
    static const struct {
        const char *name;
        uint64_t layers, hidden, billions_x100;
    } rows[] = {{"gpt3-125m", 12, 768, 13},   {"gpt3-350m", 24, 1024, 36},
                {"gpt3-760m", 24, 1536, 76},  {"gpt3-1.3b", 24, 2048, 132},
                {"gpt3-2.7b", 32, 2560, 265}, {"gpt3-6.7b", 32, 4096, 666},
                {"gpt3-13b", 40, 5120, 1285}, {"gpt3-175b", 96, 12288, 17460}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t h = rows[i].hidden;
        const uint64_t want = rows[i].layers * (12 * h * h + 13 * h) + (50257 + 2048) * h + 2 * h;
        CHECK_EQ_U(count(get(rows[i].name)).total, want);
        CHECK_EQ_U((want + 5000000) / 10000000, rows[i].billions_x100);
    }
}

TEST(test_model__every_preset_is_good_and_has_a_name_of_its_own)
{
    orr_error err;
    size_t n = 0;
    for (; orr_model_at(n); n++) {
        const orr_model *m = orr_model_at(n);
        CHECK_OK(orr_model_check(m, &err), &err);
        CHECK(orr_model_find(m->name) == m);
    }
    CHECK_EQ_U(n, 8 + sizeof known / sizeof *known);
    CHECK(orr_model_at(SIZE_MAX) == NULL);
}

TEST(test_model__names_may_be_spelled_as_one_likes)
{
    CHECK(orr_model_find("Llama-3-8B") == get("llama-3-8b"));
    CHECK(orr_model_find("LLAMA3_8b") == get("llama-3-8b"));
    CHECK(orr_model_find("DeepSeek V3") == get("deepseek-v3"));
    CHECK(orr_model_find("gpt3-1.3b") != orr_model_find("gpt3-13b"));
    CHECK(orr_model_find("") == NULL);
    CHECK(orr_model_find("llama") == NULL);
    CHECK(orr_model_find("a name that is longer than that of any model that anybody would want to "
                         "describe") == NULL);
}

/* ---- layers ---- */

TEST(test_model__first_layers_dense_then_experts)
{
    const orr_model *m = get("deepseek-v3");
    for (uint64_t i = 0; i < m->layers; i++)
        CHECK_EQ(orr_model_is_moe(m, i), i >= 3);
    orr_model every = *m;
    every.moe_every = 4;
    every.moe_at = 3;
    CHECK(orr_model_is_moe(&every, 3) && orr_model_is_moe(&every, 7));
    CHECK(!orr_model_is_moe(&every, 4) && !orr_model_is_moe(&every, 2));
    CHECK(!orr_model_is_moe(get("gpt2"), 0));
}

/* Of 61 layers the first three are dense; all others are alike. */
TEST(test_model__kinds_of_layers_and_their_names)
{
    const orr_model *m = get("deepseek-v3");
    char name[ORR_MODEL_NAME];
    CHECK(orr_model_is_alike(m, 0, 2) && orr_model_is_alike(m, 3, 60));
    CHECK(!orr_model_is_alike(m, 2, 3));
    CHECK(strcmp(orr_model_layer_name(m, 2, name), "layer") == 0);
    CHECK(strcmp(orr_model_layer_name(m, 3, name), "MoE layer") == 0);
}

TEST(test_model__windows_by_layer)
{
    const orr_model *gemma = get("gemma-2-9b");
    orr_model late = *get("qwen2.5-7b");
    CHECK_EQ_U(orr_model_window(gemma, 0), 4096);
    CHECK_EQ_U(orr_model_window(gemma, 1), 0);
    CHECK_EQ_U(orr_model_window(gemma, 40), 4096);
    CHECK_EQ_U(orr_model_window(get("mistral-7b"), 31), 4096);
    CHECK_EQ_U(orr_model_window(get("llama-3-8b"), 0), 0);
    late.window = 100;
    late.window_from = 20;
    CHECK_EQ_U(orr_model_window(&late, 19), 0);
    CHECK_EQ_U(orr_model_window(&late, 20), 100);
}

/* Of DeepSeek-V3: attention 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 *
 * 128 * 7168. */
TEST(test_model__parts_of_a_layer)
{
    const orr_model *m = get("deepseek-v3");
    orr_model_counts dense, moe;
    orr_model_layer_count(m, 2, &dense);
    orr_model_layer_count(m, 3, &moe);
    CHECK_EQ_U(dense.part[ORR_MODEL_ATTENTION],
               11010048 + 37748736 + 4128768 + 16777216 + 117440512);
    CHECK_EQ_U(moe.part[ORR_MODEL_ATTENTION], dense.part[ORR_MODEL_ATTENTION]);
    CHECK_EQ_U(dense.part[ORR_MODEL_NORMS], 2 * 7168 + 1536 + 512);
    CHECK_EQ_U(dense.part[ORR_MODEL_FFN], 3ull * 7168 * 18432);
    CHECK_EQ_U(dense.part[ORR_MODEL_EXPERTS], 0);
    CHECK_EQ_U(moe.part[ORR_MODEL_FFN], 0);
    CHECK_EQ_U(moe.part[ORR_MODEL_ROUTER], 7168 * 256 + 256);
    CHECK_EQ_U(moe.part[ORR_MODEL_EXPERTS], 256ull * 3 * 7168 * 2048);
    CHECK_EQ_U(moe.part[ORR_MODEL_SHARED], 3ull * 7168 * 2048);
    CHECK_EQ_U(moe.active, moe.total - 248ull * 3 * 7168 * 2048);
    CHECK_EQ_U(moe.part[ORR_MODEL_HEAD] + moe.part[ORR_MODEL_EMBEDDING], 0);
}

TEST(test_model__parts_add_up)
{
    for (size_t i = 0; orr_model_at(i); i++) {
        const orr_model *m = orr_model_at(i);
        const orr_model_counts n = count(m);
        uint64_t sum = 0, layers = 0;
        for (int p = 0; p < ORR_MODEL_PARTS; p++)
            sum += n.part[p];
        for (uint64_t k = 0; k < m->layers; k++) {
            orr_model_counts layer;
            orr_model_layer_count(m, k, &layer);
            layers += layer.total;
        }
        orr_model_tensor ends[ORR_MODEL_TENSORS];
        const size_t count_ends = orr_model_end_tensors(m, ends);
        for (size_t k = 0; k < count_ends; k++)
            layers += orr_model_tensor_size(&ends[k]);
        CHECK_EQ_U(sum, n.total);
        CHECK_EQ_U(layers, n.total);
    }
    CHECK_TEXT(orr_model_part_name(ORR_MODEL_SHARED), "shared experts");
    CHECK_TEXT(orr_model_part_name(ORR_MODEL_PARTS), "?");
}

static void check_tensor(const orr_model_tensor *t,
                         const char *name,
                         uint64_t rows,
                         uint64_t columns,
                         bool has_bias,
                         bool is_product)
{
    CHECK_TEXT(t->name, name);
    CHECK_EQ_U(t->rows, rows);
    CHECK_EQ_U(t->columns, columns);
    CHECK_EQ(t->has_bias, has_bias);
    CHECK_EQ(t->is_product, is_product);
}

TEST(test_model__tensors_in_the_order_a_token_meets_them)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    CHECK_EQ_U(orr_model_layer_tensors(get("gpt2"), 0, t), 8);
    check_tensor(&t[0], "attention_norm", 1, 768, true, false);
    check_tensor(&t[1], "q", 768, 768, true, true);
    check_tensor(&t[4], "o", 768, 768, true, true);
    check_tensor(&t[5], "ffn_norm", 1, 768, true, false);
    check_tensor(&t[6], "ffn_up", 768, 3072, true, true);
    check_tensor(&t[7], "ffn_down", 3072, 768, true, true);
    CHECK_EQ_U(orr_model_layer_tensors(get("qwen3-8b"), 0, t), 11);
    check_tensor(&t[2], "k", 4096, 1024, false, true);
    check_tensor(&t[4], "q_norm", 1, 128, false, false);
    check_tensor(&t[5], "k_norm", 1, 128, false, false);
    CHECK_EQ_U(orr_model_layer_tensors(get("gemma-2-9b"), 0, t), 11);
    check_tensor(&t[5], "attention_post_norm", 1, 3584, false, false);
    check_tensor(&t[10], "ffn_post_norm", 1, 3584, false, false);
    CHECK_EQ_U(orr_model_layer_tensors(get("deepseek-v3"), 60, t), 16);
    check_tensor(&t[4], "kv_a", 7168, 576, false, true);
    check_tensor(&t[6], "kv_b", 512, 128 * 256, false, true);
    check_tensor(&t[9], "router", 7168, 256, true, true);
    check_tensor(&t[10], "expert_gate", 7168, 2048, false, true);
    CHECK_EQ_U(t[10].copies, 256);
    CHECK_EQ_U(t[10].active, 8);
}

TEST(test_model__ends_tied_or_not)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    CHECK_EQ_U(orr_model_end_tensors(get("gpt2"), t), 4);
    check_tensor(&t[0], "embedding", 50257, 768, false, false);
    check_tensor(&t[1], "positions", 1024, 768, false, false);
    check_tensor(&t[3], "head", 768, 50257, false, true);
    CHECK(t[3].is_tied);
    CHECK_EQ_U(orr_model_tensor_size(&t[3]), 0);
    CHECK_EQ_U(orr_model_end_tensors(get("llama-3-8b"), t), 3);
    CHECK_EQ_U(orr_model_tensor_size(&t[2]), 128256ull * 4096);
}

TEST(test_model__padded_vocabulary_counts)
{
    orr_model m = *get("gpt2");
    m.vocab_multiple = 128;
    CHECK_EQ_U(orr_model_vocab_rows(&m), 50304);
    CHECK_EQ_U(count(&m).total, 124439808 + (50304 - 50257) * 768);
    CHECK_EQ_U(orr_model_vocab_rows(get("gpt2")), 50257);
}

/* A made-up model with everything that no preset has: heads that share one norm of all queries, a
 * gate for shared experts, norms without parameters, a bias on the head, an embedding norm. */
TEST(test_model__rare_parts)
{
    orr_model m = {.name = "odd",
                   .layers = 2,
                   .hidden = 8,
                   .vocab = 10,
                   .has_head_bias = true,
                   .has_embedding_norm = true,
                   .is_tied = true,
                   .norm = ORR_MODEL_LAYER_NORM,
                   .block_norms = 1,
                   .qk_norm = ORR_MODEL_QK_NORM_ALL_HEADS,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 3,
                   .has_sinks = true,
                   .ffn = 5,
                   .experts = 3,
                   .experts_per_token = 1,
                   .expert_ffn = 7,
                   .shared_experts = 2,
                   .shared_ffn = 6,
                   .has_shared_gate = true,
                   .dense_first = 1};
    /* layer: norm 16, q 96, k and v 48 each, q norm 24, k norm 12, sinks 4, o 96 = 344;
     * dense FFN 2 * 8 * 5 = 80; MoE: router 24, experts 3 * 112, shared 2 * 96, gate 8 = 560;
     * ends: embedding 80, its norm 16, final norm 16, bias of the head 10 = 122 */
    CHECK_EQ_U(count(&m).total, 2 * 344 + 80 + 560 + 122);
    CHECK_EQ_U(count(&m).active, 2 * 344 + 80 + 560 - 2 * 112 + 122);
    m.norm = ORR_MODEL_PLAIN_NORM;
    CHECK_EQ_U(count(&m).total, 2 * 344 + 80 + 560 + 122 - 2 * (16 + 24 + 12) - 32);
    m.norm = ORR_MODEL_LAYER_NORM_NO_BIAS;
    CHECK_EQ_U(count(&m).total, 2 * 344 + 80 + 560 + 122 - (16 + 24 + 12) - 16);
}

/* ---- FLOPs ---- */

static orr_model_flops compute(const orr_model *m, const orr_model_work *w)
{
    orr_model_flops f;
    orr_error err;
    CHECK_OK(orr_model_compute(m, w, &f, &err), &err);
    return f;
}

/* Llama 2 7B: all but embedding and 65 norms are products.  Scores: 2 * 2 * heads * head_dim for
 * each pair. */
TEST(test_model__flops_of_llama_2_7b)
{
    const orr_model *m = get("llama-2-7b");
    const uint64_t weights = 6738415616 - 32000ull * 4096 - 65ull * 4096, s = 4096;
    const orr_model_flops square = compute(m, &(orr_model_work){.tokens = s, .is_square = true});
    const orr_model_flops causal = compute(m, &(orr_model_work){.tokens = s});
    CHECK_EQ_U(count(m).matmul, weights);
    CHECK_EQ_U(square.scores, 32 * 4 * 4096 * s * s);
    CHECK_EQ_U(causal.scores, 32 * 4 * 4096 * (s * (s + 1) / 2));
    CHECK_EQ_U(causal.attention, 32 * 2 * 4 * 4096ull * 4096 * s);
    CHECK_EQ_U(causal.ffn, 32 * 2 * 3 * 4096ull * 11008 * s);
    CHECK_EQ_U(causal.head, 2 * 32000ull * 4096 * s);
    CHECK_EQ_U(causal.router, 0);
    CHECK_EQ_U(causal.forward, 2 * weights * s + causal.scores);
    CHECK_EQ_U(causal.training, 3 * causal.forward);
}

/* The tied head of GPT-2 computes though it has no parameters: 2 (12 * 12 h^2 + 50257 h) a
 * token. */
TEST(test_model__tied_head_computes)
{
    const orr_model_flops f = compute(get("gpt2"), &(orr_model_work){.tokens = 1});
    CHECK_EQ_U(f.forward, 2 * (12 * 12 * 768ull * 768 + 50257ull * 768) + 12 * 4 * 768);
}

/* Mixtral: a token goes through the router and two experts. */
TEST(test_model__flops_count_the_experts_in_use)
{
    const orr_model *m = get("mixtral-8x7b");
    const orr_model_flops f = compute(m, &(orr_model_work){.tokens = 10});
    CHECK_EQ_U(f.ffn, 10 * 32 * 2 * 2 * 3 * 4096ull * 14336);
    CHECK_EQ_U(f.router, 10 * 32 * 2 * 4096ull * 8);
}

static uint64_t pairs(const orr_model *m, uint64_t layer, orr_model_work w)
{
    uint64_t n;
    orr_error err;
    CHECK_OK(orr_model_pairs(m, layer, &w, &n, &err), &err);
    return n;
}

TEST(test_model__pairs_of_tokens)
{
    const orr_model *full = get("llama-3-8b");
    orr_model m = *get("gemma-2-9b");
    m.window = 4;
    CHECK_EQ_U(pairs(full, 0, (orr_model_work){.tokens = 5}), 15);
    CHECK_EQ_U(pairs(full, 0, (orr_model_work){.tokens = 5, .is_square = true}), 25);
    CHECK_EQ_U(pairs(full, 0, (orr_model_work){.tokens = 1, .past = 1000}), 1001);
    CHECK_EQ_U(pairs(full, 0, (orr_model_work){.tokens = 3, .past = 10}), 11 + 12 + 13);
    CHECK_EQ_U(pairs(full, 0, (orr_model_work){.tokens = 3, .past = 10, .is_square = true}), 39);
    CHECK_EQ_U(pairs(&m, 1, (orr_model_work){.tokens = 6}), 21); /* a global layer */
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 6}), 1 + 2 + 3 + 4 + 4 + 4);
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 4}), 1 + 2 + 3 + 4);
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 6, .is_square = true}), 24);
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 3, .past = 2}), 3 + 4 + 4);
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 3, .past = 4}), 12);
    CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = 1, .past = 99}), 4);
}

/* The same by counting one by one. */
TEST(test_model__pairs_agree_with_counting)
{
    orr_model m = *get("mistral-7b");
    for (m.window = 1; m.window < 9; m.window++)
        for (uint64_t past = 0; past < 12; past++)
            for (uint64_t tokens = 1; tokens < 12; tokens++) {
                uint64_t n = 0;
                for (uint64_t i = past + 1; i <= past + tokens; i++)
                    n += i < m.window ? i : m.window;
                CHECK_EQ_U(pairs(&m, 0, (orr_model_work){.tokens = tokens, .past = past}), n);
            }
}

/* MLA of DeepSeek-V3, one token behind 999: expanded, all 1,000 keys and values come out of kv_b
 * again, and a pair costs 2 * (192 + 128) a head; absorbed, kv_b is applied once and a pair costs 2
 * * (576 + 512). */
TEST(test_model__mla_expanded_and_absorbed)
{
    const orr_model *m = get("deepseek-v3");
    orr_model_work w = {.tokens = 1, .past = 999};
    orr_model_flops f;
    orr_error err;
    const uint64_t once = 2 * (11010048 + 37748736 + 4128768 + 117440512), kv_b = 2 * 16777216;
    CHECK_OK(orr_model_layer_flops(m, 0, &w, &f, &err), &err);
    CHECK_EQ_U(f.attention, once + 1000ull * kv_b);
    CHECK_EQ_U(f.scores, 1000ull * 128 * 2 * (192 + 128));
    CHECK_EQ_U(f.head, 0);
    w.is_mla_absorbed = true;
    CHECK_OK(orr_model_layer_flops(m, 0, &w, &f, &err), &err);
    CHECK_EQ_U(f.attention, once + kv_b);
    CHECK_EQ_U(f.scores, 1000ull * 128 * 2 * (576 + 512));
}

TEST(test_model__what_does_not_fit_is_an_error)
{
    const orr_model *m = get("llama-3.1-405b");
    orr_model_flops f;
    orr_error err;
    uint64_t n;
    CHECK_CODE(orr_model_compute(m, &(orr_model_work){.tokens = 0}, &f, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "at least one token");
    CHECK_CODE(orr_model_layer_flops(m, 0, &(orr_model_work){.tokens = 0}, &f, &err), ORR_EUSAGE,
               &err);
    CHECK_CODE(orr_model_compute(m, &(orr_model_work){.tokens = 1ull << 40}, &f, &err), ORR_EUSAGE,
               &err);
    CHECK_SAYS(&err, "does not fit into 64 bits");
    CHECK_CODE(orr_model_pairs(m, 0, &(orr_model_work){.tokens = UINT64_MAX}, &n, &err), ORR_EUSAGE,
               &err);
    CHECK_CODE(orr_model_pairs(m, 0, &(orr_model_work){.tokens = 2, .past = UINT64_MAX}, &n, &err),
               ORR_EUSAGE, &err);
    CHECK_CODE(orr_model_kv_cache(m, UINT64_MAX, &n, &err), ORR_EUSAGE, &err);
}

/* ---- the cache ---- */

TEST(test_model__kv_cache)
{
    uint64_t n;
    orr_error err;
    CHECK_EQ_U(orr_model_kv_elements(get("llama-2-7b")), 2 * 32 * 128);
    CHECK_EQ_U(orr_model_kv_elements(get("llama-3-8b")), 2 * 8 * 128);
    CHECK_EQ_U(orr_model_kv_elements(get("deepseek-v3")), 512 + 64);
    CHECK_OK(orr_model_kv_cache(get("llama-3-8b"), 1000, &n, &err), &err);
    CHECK_EQ_U(n, 1000 * 32 * 2048);
    CHECK_OK(orr_model_kv_cache(get("gemma-2-9b"), 8192, &n, &err), &err); /* half has 4096 only */
    CHECK_EQ_U(n, (21 * 8192 + 21 * 4096) * (2ull * 8 * 256));
    CHECK_EQ_U(orr_model_qk_dim(get("deepseek-v3")), 192);
    CHECK_EQ_U(orr_model_v_dim(get("deepseek-v3")), 128);
    CHECK_EQ_U(orr_model_qk_dim(get("gpt2")), 64);
    CHECK(orr_model_is_mla(get("deepseek-v2-lite")) && !orr_model_is_mla(get("gpt2")));
}

/* ---- what is no model ---- */

static void refuse(const orr_model *m, const char *words)
{
    orr_error err;
    CHECK_CODE(orr_model_check(m, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
}

#define BROKEN(preset, change, words) \
    do {                              \
        orr_model m_ = *get(preset);  \
        orr_model *m = &m_;           \
        change;                       \
        refuse(m, words);             \
    } while (0)

TEST(test_model__faults_name_their_field)
{
    BROKEN("gpt2", m->layers = 0, "layers: expected at least 1");
    BROKEN("gpt2", m->layers = 16385, "layers: 16385 is more than 16384");
    BROKEN("gpt2", m->hidden = 1ull << 31, "hidden: 2147483648 is more than 2147483647");
    BROKEN("gpt2", m->vocab = 0, "vocab: expected at least 1");
    BROKEN("gpt2", m->heads = 0, "heads: expected at least 1");
    BROKEN("gpt2", m->head_dim = 0, "head_dim: expected at least 1");
    BROKEN("gpt2", m->kv_heads = 5, "kv_heads: 5 does not divide the number of heads, 12");
    BROKEN("gpt2", m->kv_heads = 24, "kv_heads: 24 does not divide");
    BROKEN("gpt2", m->ffn = 0, "ffn: expected at least 1: layer 0 is not MoE");
    BROKEN("deepseek-v3", m->ffn = 0, "ffn: expected at least 1: layer 0");
    BROKEN("gpt2", m->block_norms = 3, "block_norms: 3 is not 1, 2 or 4");
    BROKEN("gpt2", m->position_rows = 0, "position_rows: expected at least 1");
    BROKEN("gpt2", m->position = ORR_MODEL_ROTARY, "position_rows: 1024, but");
    BROKEN("gpt2", m->max_positions = 2048, "max_positions: 2048, but only 1024 are learned");
    BROKEN("gpt2", m->norm = (orr_model_norm)9, "norm: no such value");
    BROKEN("gpt2", m->v_head_dim = 5, "v_head_dim: 5, but there is no MLA");
    BROKEN("gpt2", m->expert_ffn = 5, "expert_ffn: 5, but there are no experts");
    BROKEN("gpt2", m->global_every = 2, "global_every: 2, but there is no window");
    BROKEN("gemma-2-9b", m->global_at = 2, "global_at: 2 is not below global_every, 2");
    BROKEN("deepseek-v3", m->v_head_dim = 0, "v_head_dim: expected at least 1 with MLA");
    BROKEN("deepseek-v3", m->qk_norm = ORR_MODEL_QK_NORM_HEAD, "qk_norm: MLA has its own norms");
    BROKEN("deepseek-v3", m->experts_per_token = 300, "experts_per_token: 300 of only 256");
    BROKEN("deepseek-v3", m->experts_per_token = 0, "experts_per_token: expected at least 1");
    BROKEN("deepseek-v3", m->moe_at = 1, "moe_at: 1 is not below moe_every, 0");
    BROKEN("deepseek-v3", m->shared_ffn = 0, "shared_ffn: expected at least 1");
    BROKEN("deepseek-v3", m->shared_experts = 0, "shared_ffn: 2048, but there are no shared");
    BROKEN("mixtral-8x7b", m->has_shared_gate = true, "has_shared_gate: there are no shared");
    BROKEN("llama-3-8b", m->hidden = m->ffn = 2147483647, "more than 2^60 parameters");
    BROKEN("mixtral-8x7b", m->experts = 2147483647, "more than 2^60 parameters");
    BROKEN("gpt2", m->name[0] = '"', "name: expected printable ASCII");
    BROKEN("gpt2", memset(m->name, 'x', sizeof m->name), "name: expected printable ASCII");
}

/* GPT-2: 12 heads of 64, an FFN of 4 x 768. */
TEST(test_model__sizes_of_ones_own_keep_proportions)
{
    orr_model m = *orr_model_find("gpt2");
    CHECK_OK(orr_model_resize(&m, &(orr_model_sizes){.hidden = 1536, .layers = 3}, NULL), NULL);
    CHECK_EQ_U(m.layers, 3);
    CHECK_EQ_U(m.head_dim, 128);
    CHECK_EQ_U(m.ffn, 4 * 1536);
    CHECK_EQ_U(m.kv_heads, m.heads);
    CHECK(strstr(m.name, "changed") != NULL);
    m = *orr_model_find("gpt2");
    CHECK(orr_model_resize(&m, &(orr_model_sizes){.heads = 7}, NULL) == ORR_EUSAGE);
    m = *orr_model_find("gpt2");
    CHECK_OK(orr_model_resize(&m, &(orr_model_sizes){0}, NULL), NULL);
    CHECK(strcmp(m.name, orr_model_find("gpt2")->name) == 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_model__presets_have_the_published_number_of_parameters),
        RUN(test_model__gpt3_follows_its_closed_form),
        RUN(test_model__every_preset_is_good_and_has_a_name_of_its_own),
        RUN(test_model__names_may_be_spelled_as_one_likes),
        RUN(test_model__first_layers_dense_then_experts),
        RUN(test_model__kinds_of_layers_and_their_names),
        RUN(test_model__windows_by_layer),
        RUN(test_model__parts_of_a_layer),
        RUN(test_model__parts_add_up),
        RUN(test_model__tensors_in_the_order_a_token_meets_them),
        RUN(test_model__ends_tied_or_not),
        RUN(test_model__padded_vocabulary_counts),
        RUN(test_model__rare_parts),
        RUN(test_model__flops_of_llama_2_7b),
        RUN(test_model__tied_head_computes),
        RUN(test_model__flops_count_the_experts_in_use),
        RUN(test_model__pairs_of_tokens),
        RUN(test_model__pairs_agree_with_counting),
        RUN(test_model__mla_expanded_and_absorbed),
        RUN(test_model__what_does_not_fit_is_an_error),
        RUN(test_model__kv_cache),
        RUN(test_model__faults_name_their_field),
        RUN(test_model__sizes_of_ones_own_keep_proportions),
    };
    return RUN_ALL(tests);
}
