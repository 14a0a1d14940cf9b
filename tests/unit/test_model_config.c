/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/model.h>

static orr_model read_config(const char *text)
{
    orr_model m;
    orr_error err;
    CHECK_OK(
        orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "x/config.json", &m, &err),
        &err);
    CHECK_OK(orr_model_check(&m, &err), &err);
    return m;
}

static uint64_t parameters(const char *text)
{
    const orr_model m = read_config(text);
    orr_model_counts n;
    orr_model_count(&m, &n);
    return n.total;
}

/* ---- families ---- */

typedef struct row {
    const char *text;
    uint64_t total;
} row;

#define MOONLIGHT(type)                                                                           \
    "{'model_type': '" type "', 'hidden_size': 2048, 'num_hidden_layers': 27, 'vocab_size':"      \
    " 163840, 'num_attention_heads': 16, 'num_key_value_heads': 16, 'intermediate_size': 11264,"  \
    " 'moe_intermediate_size': 1408, 'n_routed_experts': 64, 'n_shared_experts': 2,"              \
    " 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, 'q_lora_rank': null, 'kv_lora_rank':" \
    " 512, 'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64, 'v_head_dim': 128, 'topk_method':"    \
    " 'noaux_tc', 'num_nextn_predict_layers': 0}"

/* Attention and norms of 27 layers, a dense FFN, 26 times router and 66 experts, embedding and head. */
#define MOONLIGHT_SIZE                                                                            \
    (27 * (2048ull * 16 * 192 + 2048 * 576 + 512 + 512 * 16 * 256 + 16 * 128 * 2048 + 2 * 2048) + \
     3 * 2048ull * 11264 + 26 * (2048 * 64 + 64 + 66 * 3 * 2048ull * 1408) +                      \
     2 * 163840ull * 2048 + 2048)

/* The sizes in the files of published models, in the words of their type, and the parameters
 * counted over their weights; where those are not published to the unit, a closed form. */
static const row rows[] = {
    {"{'model_type': 'gpt2', 'n_embd': 768, 'n_layer': 12, 'n_head': 12, 'vocab_size': 50257,"
     " 'n_positions': 1024, 'n_ctx': 1024}",
     124439808},
    {"{'model_type': 'gpt_neo', 'hidden_size': 768, 'num_layers': 12, 'num_heads': 12, 'vocab_size':"
     " 50257, 'max_position_embeddings': 2048, 'intermediate_size': null, 'window_size': 256,"
     " 'attention_types': [[['global', 'local'], 6]]}",
     125198592},
    {"{'model_type': 'gpt_neox', 'hidden_size': 6144, 'num_hidden_layers': 44, 'vocab_size': 50432,"
     " 'num_attention_heads': 64, 'intermediate_size': 24576, 'max_position_embeddings': 2048}",
     20554567680},
    {"{'model_type': 'gpt_neox', 'hidden_size': 512, 'num_hidden_layers': 6, 'vocab_size': 50304,"
     " 'num_attention_heads': 8, 'intermediate_size': 2048, 'use_parallel_residual': true}",
     70426624}, /* Pythia 70M */
    {"{'model_type': 'gptj', 'n_embd': 4096, 'n_layer': 28, 'n_head': 16, 'n_inner': null,"
     " 'vocab_size': 50400, 'n_positions': 2048, 'tie_word_embeddings': false}",
     6050882784},
    {"{'model_type': 'opt', 'hidden_size': 768, 'num_hidden_layers': 12, 'num_attention_heads': 12,"
     " 'ffn_dim': 3072, 'vocab_size': 50272, 'max_position_embeddings': 2048,"
     " 'word_embed_proj_dim': 768, 'do_layer_norm_before': true}",
     125239296},
    {"{'model_type': 'opt', 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32,"
     " 'ffn_dim': 16384, 'vocab_size': 50272, 'max_position_embeddings': 2048}",
     6658473984},
    {"{'model_type': 'bloom', 'n_layer': 70, 'n_head': 112, 'hidden_size': 14336, 'vocab_size':"
     " 250880, 'seq_length': 2048}",
     176247271424},
    {"{'model_type': 'bloom', 'n_layer': 24, 'n_head': 16, 'n_embed': 1024, 'vocab_size': 250880}",
     559214592},
    {"{'model_type': 'falcon', 'hidden_size': 4544, 'num_hidden_layers': 32, 'vocab_size': 65024,"
     " 'num_attention_heads': 71, 'num_kv_heads': 71, 'multi_query': true, 'parallel_attn': true,"
     " 'new_decoder_architecture': false, 'bias': false, 'alibi': false}",
     32 * (4544ull * (4544 + 2 * 64) + 9 * 4544ull * 4544 + 2 * 4544) + 65024ull * 4544 +
         2 * 4544}, /* Falcon 7B */
    {"{'model_type': 'falcon', 'hidden_size': 8192, 'num_hidden_layers': 60, 'vocab_size': 65024,"
     " 'num_attention_heads': 128, 'num_kv_heads': 8, 'new_decoder_architecture': true}",
     60 * (8192ull * (8192 + 2 * 8 * 64) + 9 * 8192ull * 8192 + 4 * 8192) + 65024ull * 8192 +
         2 * 8192}, /* Falcon 40B */
    {"{'model_type': 'RefinedWeb', 'hidden_size': 8192, 'n_layer': 60, 'n_head': 128, 'n_head_kv': 8,"
     " 'vocab_size': 65024, 'bias': false, 'alibi': false}",
     60 * (8192ull * (8192 + 2 * 8 * 64) + 9 * 8192ull * 8192 + 4 * 8192) + 65024ull * 8192 +
         2 * 8192}, /* Falcon 40B */
    {"{'model_type': 'llama', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 32000,"
     " 'num_attention_heads': 32, 'intermediate_size': 11008}",
     6738415616},
    {"{'model_type': 'mistral', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 32000,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 14336}",
     7241732096},
    {"{'model_type': 'mixtral', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 32000,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 14336,"
     " 'num_local_experts': 8, 'num_experts_per_tok': 2, 'sliding_window': null}",
     46702792704},
    {"{'model_type': 'qwen2', 'hidden_size': 3584, 'num_hidden_layers': 28, 'vocab_size': 152064,"
     " 'num_attention_heads': 28, 'num_key_value_heads': 4, 'intermediate_size': 18944,"
     " 'use_sliding_window': false, 'sliding_window': 131072, 'max_window_layers': 28}",
     7615616512},
    {"{'model_type': 'qwen2_moe', 'hidden_size': 2048, 'num_hidden_layers': 24, 'vocab_size': 151936,"
     " 'num_attention_heads': 16, 'num_key_value_heads': 16, 'intermediate_size': 5632,"
     " 'moe_intermediate_size': 1408, 'shared_expert_intermediate_size': 5632, 'num_experts': 60,"
     " 'num_experts_per_tok': 4, 'decoder_sparse_step': 1, 'use_sliding_window': false}",
     14315784192},
    {"{'model_type': 'qwen3', 'hidden_size': 4096, 'num_hidden_layers': 36, 'vocab_size': 151936,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'head_dim': 128,"
     " 'intermediate_size': 12288, 'attention_bias': false}",
     8190735360},
    {"{'model_type': 'qwen3_moe', 'hidden_size': 2048, 'num_hidden_layers': 48, 'vocab_size': 151936,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 4, 'head_dim': 128,"
     " 'intermediate_size': 6144, 'moe_intermediate_size': 768, 'num_experts': 128,"
     " 'num_experts_per_tok': 8, 'decoder_sparse_step': 1, 'mlp_only_layers': []}",
     30532122624},
    {"{'model_type': 'deepseek', 'hidden_size': 2048, 'num_hidden_layers': 28, 'vocab_size': 102400,"
     " 'num_attention_heads': 16, 'num_key_value_heads': 16, 'intermediate_size': 10944,"
     " 'moe_intermediate_size': 1408, 'n_routed_experts': 64, 'n_shared_experts': 2,"
     " 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, 'moe_layer_freq': 1}",
     16375728128},
    {"{'model_type': 'deepseek_v2', 'hidden_size': 2048, 'num_hidden_layers': 27, 'vocab_size':"
     " 102400, 'num_attention_heads': 16, 'num_key_value_heads': 16, 'intermediate_size': 10944,"
     " 'moe_intermediate_size': 1408, 'n_routed_experts': 64, 'n_shared_experts': 2,"
     " 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, 'q_lora_rank': null, 'kv_lora_rank':"
     " 512, 'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64, 'v_head_dim': 128}",
     15706484224},
    {MOONLIGHT("deepseek_v3"), MOONLIGHT_SIZE},
    {MOONLIGHT("kimi_k2"), MOONLIGHT_SIZE},
    {"{'model_type': 'gemma', 'hidden_size': 2048, 'num_hidden_layers': 18, 'vocab_size': 256000,"
     " 'num_attention_heads': 8, 'num_key_value_heads': 1, 'head_dim': 256,"
     " 'intermediate_size': 16384}",
     2506172416},
    {"{'model_type': 'gemma2', 'hidden_size': 3584, 'num_hidden_layers': 42, 'vocab_size': 256000,"
     " 'num_attention_heads': 16, 'num_key_value_heads': 8, 'head_dim': 256,"
     " 'intermediate_size': 14336, 'sliding_window': 4096}",
     9241705984},
    {"{'model_type': 'gemma3_text', 'hidden_size': 1152, 'num_hidden_layers': 26, 'vocab_size':"
     " 262144, 'num_attention_heads': 4, 'num_key_value_heads': 1, 'head_dim': 256,"
     " 'intermediate_size': 6912, 'sliding_window': 512, 'sliding_window_pattern': 6}",
     999885952},
    {"{'model_type': 'phi', 'hidden_size': 2560, 'num_hidden_layers': 32, 'vocab_size': 51200,"
     " 'num_attention_heads': 32, 'intermediate_size': 10240, 'qk_layernorm': false}",
     2779683840},
    {"{'model_type': 'phi3', 'hidden_size': 3072, 'num_hidden_layers': 32, 'vocab_size': 32064,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 32, 'intermediate_size': 8192,"
     " 'sliding_window': 2047}",
     3821079552},
    {"{'model_type': 'phimoe', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 32064,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 6400,"
     " 'num_local_experts': 16, 'num_experts_per_tok': 2, 'attention_bias': true,"
     " 'lm_head_bias': true}",
     32 * (2 * 4096ull * (4096 + 1024) + 2 * (4096 + 1024) + 4 * 4096 + 4096 * 16 +
           16 * 3 * 4096ull * 6400) +
         2 * 32064ull * 4096 + 32064 + 2 * 4096}, /* Phi 3.5 MoE */
    {"{'model_type': 'starcoder2', 'hidden_size': 3072, 'num_hidden_layers': 30, 'vocab_size': 49152,"
     " 'num_attention_heads': 24, 'num_key_value_heads': 2, 'intermediate_size': 12288,"
     " 'use_bias': true, 'sliding_window': 4096}",
     3030371328},
    {"{'model_type': 'gpt_bigcode', 'n_embd': 6144, 'n_layer': 40, 'n_head': 48, 'n_inner': 24576,"
     " 'vocab_size': 49152, 'n_positions': 8192, 'multi_query': true}",
     15517456384},
    {"{'model_type': 'olmo', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 50304,"
     " 'num_attention_heads': 32, 'intermediate_size': 11008}",
     6888095744},
    {"{'model_type': 'olmo2', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 100352,"
     " 'num_attention_heads': 32, 'intermediate_size': 11008}",
     7298617344},
    {"{'model_type': 'olmoe', 'hidden_size': 2048, 'num_hidden_layers': 16, 'vocab_size': 50304,"
     " 'num_attention_heads': 16, 'intermediate_size': 1024, 'num_experts': 64,"
     " 'num_experts_per_tok': 8}",
     6919161856},
    {"{'model_type': 'mpt', 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, 'expansion_ratio': 4,"
     " 'vocab_size': 50432, 'max_seq_len': 2048}",
     32 * (12 * 4096ull * 4096 + 2 * 4096) + 50432ull * 4096 + 4096}, /* MPT 7B */
    {"{'model_type': 'cohere', 'hidden_size': 8192, 'num_hidden_layers': 40, 'vocab_size': 256000,"
     " 'num_attention_heads': 64, 'num_key_value_heads': 64, 'intermediate_size': 22528}",
     40 * (4 * 8192ull * 8192 + 3 * 8192ull * 22528 + 8192) + 256000ull * 8192 +
         8192}, /* Command R */
    {"{'model_type': 'cohere2', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': 256000,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 14336}",
     8028033024},
    {"{'model_type': 'stablelm', 'hidden_size': 2048, 'num_hidden_layers': 24, 'vocab_size': 100352,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 32, 'intermediate_size': 5632,"
     " 'use_qkv_bias': true}",
     1644515328},
    {"{'model_type': 'granite', 'hidden_size': 2048, 'num_hidden_layers': 40, 'vocab_size': 49155,"
     " 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 8192,"
     " 'tie_word_embeddings': true}",
     2533531648},
    {"{'model_type': 'granitemoe', 'hidden_size': 1024, 'num_hidden_layers': 24, 'vocab_size': 49155,"
     " 'num_attention_heads': 16, 'num_key_value_heads': 8, 'intermediate_size': 512,"
     " 'num_local_experts': 32, 'num_experts_per_tok': 8, 'tie_word_embeddings': true}",
     1334628352},
    {"{'model_type': 'smollm3', 'hidden_size': 2048, 'num_hidden_layers': 36, 'vocab_size': 128256,"
     " 'num_attention_heads': 16, 'num_key_value_heads': 4, 'intermediate_size': 11008}",
     3075098624},
    {"{'model_type': 'gpt_oss', 'hidden_size': 2880, 'num_hidden_layers': 24, 'vocab_size': 201088,"
     " 'num_attention_heads': 64, 'num_key_value_heads': 8, 'head_dim': 64,"
     " 'intermediate_size': 2880, 'num_local_experts': 32, 'num_experts_per_tok': 4,"
     " 'experts_per_token': 4, 'sliding_window': 128, 'attention_bias': true}",
     20914757184},
    /* GLM 4.5 Air as trained further without its layer for further tokens (INTELLECT-3). */
    {"{'model_type': 'glm4_moe', 'hidden_size': 4096, 'num_hidden_layers': 46, 'vocab_size': 151552,"
     " 'num_attention_heads': 96, 'num_key_value_heads': 8, 'head_dim': 128,"
     " 'intermediate_size': 10944, 'moe_intermediate_size': 1408, 'n_routed_experts': 128,"
     " 'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 1,"
     " 'attention_bias': true, 'use_qk_norm': false, 'num_nextn_predict_layers': 1}",
     106852251264},
};

/* JSON in C is easier to read with ' for ". */
static const char *quoted(const char *text, char *out, size_t size)
{
    size_t i = 0;
    for (; text[i] && i + 1 < size; i++)
        out[i] = text[i];
    out[i] = '\0';
    for (char *p = out; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return out;
}

TEST(test_model_config__families_have_the_published_number_of_parameters)
{
    char text[1200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_EQ_U(parameters(quoted(rows[i].text, text, sizeof text)), rows[i].total);
}

static void check_same(const char *preset, const char *config)
{
    char text[1200], a[ORR_MODEL_TEXT], b[ORR_MODEL_TEXT];
    orr_model want = *orr_model_find(preset), m = read_config(quoted(config, text, sizeof text));
    memcpy(m.name, want.name, sizeof m.name);
    CHECK(orr_model_text(&want, a, sizeof a) < sizeof a);
    CHECK(orr_model_text(&m, b, sizeof b) < sizeof b);
    CHECK_TEXT(b, a);
}

TEST(test_model_config__is_the_same_model_as_the_preset)
{
    check_same("gpt2", "{'model_type': 'gpt2', 'n_embd': 768, 'n_layer': 12, 'n_head': 12,"
                       " 'vocab_size': 50257, 'n_positions': 1024}");
    check_same("mistral-7b",
               "{'model_type': 'mistral', 'hidden_size': 4096, 'num_hidden_layers': 32,"
               " 'vocab_size': 32000, 'num_attention_heads': 32,"
               " 'num_key_value_heads': 8, 'intermediate_size': 14336,"
               " 'max_position_embeddings': 32768, 'sliding_window': 4096}");
    check_same("mixtral-8x7b",
               "{'model_type': 'mixtral', 'hidden_size': 4096, 'num_hidden_layers': 32,"
               " 'vocab_size': 32000, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
               " 'intermediate_size': 14336, 'num_local_experts': 8, 'num_experts_per_tok': 2,"
               " 'max_position_embeddings': 32768, 'sliding_window': null}");
    check_same(
        "deepseek-v3",
        "{'model_type': 'deepseek_v3', 'hidden_size': 7168, 'num_hidden_layers': 61,"
        " 'vocab_size': 129280, 'num_attention_heads': 128, 'num_key_value_heads': 128,"
        " 'intermediate_size': 18432, 'moe_intermediate_size': 2048, 'n_routed_experts': 256,"
        " 'n_group': 8, 'topk_group': 4,"
        " 'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 3,"
        " 'moe_layer_freq': 1, 'q_lora_rank': 1536, 'kv_lora_rank': 512, 'head_dim': 64,"
        " 'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64, 'v_head_dim': 128,"
        " 'topk_method': 'noaux_tc', 'num_nextn_predict_layers': 1,"
        " 'max_position_embeddings': 163840}");
    check_same("gemma-2-9b",
               "{'model_type': 'gemma2', 'hidden_size': 3584, 'num_hidden_layers': 42,"
               " 'vocab_size': 256000, 'num_attention_heads': 16, 'head_dim': 256,"
               " 'num_key_value_heads': 8, 'intermediate_size': 14336,"
               " 'max_position_embeddings': 8192, 'sliding_window': 4096}");
}

/* ---- what lies in files ---- */

#define LLAMA "'model_type': 'llama', " SIZES
#define SIZES                                                               \
    "'hidden_size': 64, 'num_hidden_layers': 6, 'num_attention_heads': 4, " \
    "'vocab_size': 100, 'intermediate_size': 128"

static orr_model read_quoted(const char *text)
{
    char out[1200];
    return read_config(quoted(text, out, sizeof out));
}

TEST(test_model_config__flags)
{
    const orr_model m = read_quoted("{" LLAMA ", 'attention_bias': true, 'mlp_bias': true,"
                                    " 'tie_word_embeddings': true, 'head_dim': 32}");
    CHECK(m.has_qkv_bias && m.has_output_bias && m.has_ffn_bias && m.is_tied);
    CHECK_EQ_U(m.head_dim, 32);
    CHECK_EQ_U(m.kv_heads, 4);
    CHECK_TEXT(m.name, "x");
    CHECK_TEXT(m.note, "");
}

TEST(test_model_config__name_is_the_last_part_of_the_path)
{
    CHECK_TEXT(read_quoted("{" LLAMA ", '_name_or_path': 'org/My-Model/'}").name, "My-Model");
    CHECK_TEXT(read_quoted("{" LLAMA ", '_name_or_path': ''}").name, "x");
    CHECK_TEXT(read_quoted("{" LLAMA ", '_name_or_path': 'a\\u00e9b'}").name, "a__b");
}

TEST(test_model_config__unknown_type_is_read_as_llama_and_says_so)
{
    const orr_model m = read_quoted("{'model_type': 'brand\\nnew', " SIZES "}");
    CHECK_TEXT(m.note, "unknown model_type brand_new: read as a Llama, counts may be wrong");
    CHECK(m.is_gated);
    const orr_model without = read_quoted("{" SIZES "}");
    CHECK_TEXT(without.note, "no model_type: read as a Llama, counts may be wrong");
}

TEST(test_model_config__text_part_of_a_model_of_images)
{
    const orr_model m =
        read_quoted("{'model_type': 'llava', 'hidden_size': 1, 'text_config': {" LLAMA
                    "}, 'tie_word_embeddings': true, 'vision_config': {}}");
    CHECK_EQ_U(m.hidden, 64);
    CHECK(m.is_tied);
    CHECK_TEXT(m.note, "only the keys of text_config are counted");
    /* Gemma 3 4B leaves out what is usual: 8 heads of 256, 4 of them for keys, a vocabulary of
     * 262,208. */
    CHECK_EQ_U(parameters("{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": "
                          "\"gemma3_text\", \"hidden_size\": 2560, \"num_hidden_layers\": 34, "
                          "\"intermediate_size\": 10240, \"sliding_window\": 1024}}"),
               3880263168);
}

#define QWEN "'model_type': 'qwen2', 'num_key_value_heads': 2, " SIZES

TEST(test_model_config__windows)
{
    orr_model m = read_quoted("{" QWEN ", 'use_sliding_window': true, 'sliding_window': 16,"
                              " 'max_window_layers': 4}");
    CHECK(m.window == 16 && m.window_from == 4 && m.global_every == 0);
    m = read_quoted("{" QWEN ", 'use_sliding_window': true, 'max_window_layers': 6}");
    CHECK(m.window == 0 && m.window_from == 0);
    m = read_quoted("{" QWEN ", 'sliding_window': 16}"); /* not asked for */
    CHECK_EQ_U(m.window, 0);
    m = read_quoted("{" LLAMA ", 'sliding_window': 16}"); /* means nothing to a Llama */
    CHECK_EQ_U(m.window, 0);
    m = read_quoted("{'model_type': 'brand_new', 'sliding_window': 16, " SIZES "}");
    CHECK_EQ_U(m.window, 16);
    m = read_quoted(
        "{'model_type': 'gemma2', 'num_key_value_heads': 2, 'sliding_window': null, " SIZES "}");
    CHECK(m.window == 0 && m.global_every == 0);
}

#define FULL "'full_attention'"
#define SLIDE "'sliding_attention'"
#define TYPED(list) \
    "{'model_type': 'gemma3_text', 'sliding_window': 8, 'layer_types': [" list "], " SIZES "}"

TEST(test_model_config__layer_types)
{
    orr_model m = read_quoted(TYPED(SLIDE "," SLIDE "," FULL "," SLIDE "," SLIDE "," FULL));
    CHECK(m.window == 8 && m.global_every == 3 && m.global_at == 2 && m.window_from == 0);
    m = read_quoted(TYPED(FULL "," FULL "," SLIDE "," SLIDE "," SLIDE "," SLIDE));
    CHECK(m.window == 8 && m.global_every == 0 && m.window_from == 2);
    m = read_quoted(TYPED(FULL "," FULL "," FULL "," FULL "," FULL "," FULL));
    CHECK(m.window == 0 && m.global_every == 0);
    m = read_quoted(TYPED(SLIDE "," SLIDE "," SLIDE "," SLIDE "," SLIDE "," SLIDE));
    CHECK(m.window == 8 && m.global_every == 0 && m.window_from == 0);
    m = read_quoted(TYPED(SLIDE "," SLIDE "," SLIDE "," SLIDE "," FULL "," SLIDE));
    CHECK(m.window == 8 && m.global_every == 6 && m.global_at == 4);
    m = read_quoted(TYPED(FULL "," SLIDE "," FULL "," SLIDE "," FULL "," SLIDE));
    CHECK(m.global_every == 2 && m.global_at == 0);
    m = read_quoted(TYPED(FULL "," SLIDE "," FULL "," FULL "," SLIDE "," SLIDE));
    CHECK(m.global_every == 0 && m.window == 8);
    CHECK_TEXT(m.mixers, "awaaww");
}

#define MOE                                                                   \
    "'model_type': 'qwen3_moe', 'num_key_value_heads': 2, 'num_experts': 4, " \
    "'num_experts_per_tok': 2, 'moe_intermediate_size': 32, " SIZES

TEST(test_model_config__experts_in_some_layers)
{
    orr_model m = read_quoted("{" MOE ", 'decoder_sparse_step': 2, 'mlp_only_layers': [1, 0]}");
    CHECK(m.moe_every == 2 && m.moe_at == 1 && m.dense_first == 2 && m.ffn == 128);
    CHECK(!orr_model_is_moe(&m, 1) && orr_model_is_moe(&m, 3) && !orr_model_is_moe(&m, 4));
    m = read_quoted("{" MOE "}");
    CHECK(m.ffn == 0 && m.expert_ffn == 32);
    m = read_quoted("{" MOE ", 'mlp_only_layers': [2]}");
    CHECK_TEXT(m.ffns, "eefe");
    m = read_quoted("{'model_type': 'deepseek', 'n_routed_experts': 4, 'num_experts_per_tok': 1,"
                    " 'moe_intermediate_size': 8, 'moe_layer_freq': 3, " SIZES "}");
    CHECK(m.moe_every == 3 && m.moe_at == 0);
    m = read_quoted("{'model_type': 'deepseek', 'n_routed_experts': null, 'num_experts_per_tok': 1,"
                    " 'moe_intermediate_size': 8, " SIZES "}");
    CHECK(m.experts == 0 && m.experts_per_token == 0 && m.expert_ffn == 0);
}

TEST(test_model_config__falcon_of_all_ages)
{
#define FALCON "{'model_type': 'falcon', " SIZES
    orr_model m = read_quoted(FALCON "}");
    CHECK(m.kv_heads == 1 && m.block_norms == 1 && m.is_parallel);
    m = read_quoted(FALCON ", 'multi_query': false, 'parallel_attn': false, 'alibi': true}");
    CHECK(m.kv_heads == 4 && m.block_norms == 2 && m.position == ORR_MODEL_ALIBI);
    m = read_quoted(FALCON ", 'new_decoder_architecture': true, 'num_kv_heads': 2, 'bias': true}");
    CHECK(m.kv_heads == 2 && m.block_norms == 2 && m.has_ffn_bias);
    m = read_quoted(FALCON ", 'new_decoder_architecture': true, 'num_ln_in_parallel_attn': 1}");
    CHECK(m.kv_heads == 4 && m.block_norms == 1);
}

TEST(test_model_config__last_of_two_keys_counts)
{
    CHECK_EQ_U(read_quoted("{'vocab_size': 7, " LLAMA "}").vocab, 100);
}

/* ---- errors ---- */

static void refuse(const char *config, const char *words)
{
    char text[1200];
    orr_model m;
    orr_error err;
    quoted(config, text, sizeof text);
    CHECK_CODE(orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "c.json", &m, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK(err.where.line > 0);
}

TEST(test_model_config__what_is_missing_is_named)
{
    refuse("{'model_type': 'llama'}", "c.json:1:1: the key \"num_hidden_layers\" is missing");
    refuse("{'model_type': 'gpt2', 'n_layer': 2}", "\"hidden_size\" is missing");
    refuse("{'model_type': 'mistral', " SIZES "}", "\"num_key_value_heads\" is missing");
    refuse("{'model_type': 'deepseek_v3', " SIZES "}", "\"kv_lora_rank\" is missing");
    refuse("{'hidden_size': 64, 'num_hidden_layers': 6, 'num_attention_heads': 4, 'vocab_size': 9}",
           "\"intermediate_size\" is missing");
    refuse("{'num_experts': 4, " LLAMA "}", "\"num_experts_per_tok\" is missing");
    refuse("{'model_type': 'llava',\n 'text_config': {'model_type': 'llama'}}",
           "c.json:2:17: the key \"num_hidden_layers\" is missing");
}

TEST(test_model_config__wrong_values_have_a_place)
{
    refuse("{'num_hidden_layers': 6,\n'hidden_size': '64'}",
           "c.json:2:16: hidden_size: \"64\" is not a whole number");
    refuse("{" LLAMA ", 'head_dim': 12.5}", "head_dim: 12.5 is not a whole number");
    refuse("{" LLAMA ", 'head_dim': -1}", "head_dim: -1 is not a whole number");
    refuse("{" LLAMA ", 'head_dim': 2147483648}", "head_dim: 2147483648 is not a whole number");
    refuse("{" LLAMA ", 'head_dim': 99999999999999999999}", "head_dim: 99999999999999999999 is");
    refuse("{" LLAMA ", 'head_dim': [1]}", "head_dim: found an array");
    refuse("{" LLAMA ", 'mlp_bias': 1}", "mlp_bias: 1 is not true or false");
    refuse("{'model_type': 3}", "model_type: 3 is not a string");
    refuse("{" LLAMA ", 'is_encoder_decoder': true}", "models with an encoder");
    refuse("[]", "c.json:1:1: expected a map of keys and values");
    refuse("{'hidden_size': 64,}", "c.json:1:");
    refuse("{'model_type': 'gpt2', " SIZES "}",
           "position_rows"); /* how many there are is not said */
    refuse(
        "{'model_type': 'deepseek_v3', 'topk_method': 1, 'kv_lora_rank': 1, 'qk_nope_head_dim': 1,"
        " 'qk_rope_head_dim': 1, 'v_head_dim': 1, " SIZES "}",
        "topk_method: expected a string");
    refuse(
        "{'model_type': 'qwen2_moe', 'num_key_value_heads': 4, 'use_sliding_window': true, " SIZES
        "}",
        "use_sliding_window: layer_types is missing, so the layers are not determined");
}

TEST(test_model_config__contradictions_have_a_place)
{
    refuse("{" LLAMA ",\n'n_embd': 65}",
           "c.json:2:11: n_embd: not the number that \"hidden_size\"");
    refuse("{" LLAMA ", 'num_key_value_heads': 3}",
           "num_key_value_heads: 3 does not divide the number of heads, 4");
    refuse("{" LLAMA ", 'num_key_value_heads': 0}", "num_key_value_heads: expected at least 1");
    refuse("{'model_type': 'llama', 'hidden_size': 63, 'num_hidden_layers': 6, 'vocab_size': 9,"
           " 'num_attention_heads': 4, 'intermediate_size': 8}",
           "hidden_size: not a multiple of the number of heads, and there is no head_dim");
    refuse("{" MOE ", 'experts_per_token': 3}", "experts_per_token: not the number that");
    refuse("{'model_type': 'mixtral', 'num_key_value_heads': 4, 'num_local_experts': 2,"
           " 'num_experts_per_tok': 3, " SIZES "}",
           "num_experts_per_tok: 3 of only 2 experts");
    refuse(
        "{'num_hidden_layers': 20000, 'hidden_size': 64, 'num_attention_heads': 4, 'vocab_size': 9,"
        " 'intermediate_size': 8}",
        "num_hidden_layers: 20000 is more than 16384");
    refuse("{'num_hidden_layers': 2, 'hidden_size': 2147483647, 'num_attention_heads': 1,"
           " 'vocab_size': 9, 'intermediate_size': 8}",
           "hidden_size: all together more than 2^60 parameters");
    refuse("{" MOE ", 'mlp_only_layers': [6]}", "mlp_only_layers: 6 is not the number of a layer");
    refuse("{" MOE ", 'mlp_only_layers': ['x']}", "mlp_only_layers: \"x\" is not a whole number");
}

TEST(test_model_config__layer_types_that_are_not_understood)
{
    refuse(TYPED(FULL "," FULL),
           "layer_types: found an array, expected a list of one string for each of 6 layers");
    refuse(TYPED("1,2,3,4,5,6"), "layer_types: 1 is not a string");
    refuse(TYPED("'linear_attention',1,1,1,1,1"), "layer_types: \"linear_attention\" is not");
    refuse(
        "{'model_type': 'gpt_neo', 'max_position_embeddings': 9, 'attention_types': [[['global'],"
        " 7]], " SIZES "}",
        "attention_types: expected a list such as [[[\"global\"");
    refuse("{'model_type': 'gpt_neo', 'max_position_embeddings': 9, 'attention_types': 3, " SIZES
           "}",
           "attention_types: expected a list such as [[[\"global\"");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_model_config__families_have_the_published_number_of_parameters),
        RUN(test_model_config__is_the_same_model_as_the_preset),
        RUN(test_model_config__flags),
        RUN(test_model_config__name_is_the_last_part_of_the_path),
        RUN(test_model_config__unknown_type_is_read_as_llama_and_says_so),
        RUN(test_model_config__text_part_of_a_model_of_images),
        RUN(test_model_config__windows),
        RUN(test_model_config__layer_types),
        RUN(test_model_config__experts_in_some_layers),
        RUN(test_model_config__falcon_of_all_ages),
        RUN(test_model_config__last_of_two_keys_counts),
        RUN(test_model_config__what_is_missing_is_named),
        RUN(test_model_config__wrong_values_have_a_place),
        RUN(test_model_config__contradictions_have_a_place),
        RUN(test_model_config__layer_types_that_are_not_understood),
    };
    return RUN_ALL(tests);
}
