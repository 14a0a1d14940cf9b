/* SPDX-License-Identifier: Apache-2.0 */
/* The families of model_families.h: their parameters, what is not certain, and layers that do not
 * attend. */
#include "check.h"
#include "model_families.h"

#include <orrery/lab/llm.h>
#include <orrery/lab/model.h>

enum { CONFIG = 4000 };

/* JSON in C is easier to read with ' for ". */
static const char *quoted(const char *text, char out[CONFIG])
{
    size_t i = 0;
    for (; text[i] && i + 1 < CONFIG; i++)
        out[i] = text[i] == '\'' ? '"' : text[i];
    out[i] = '\0';
    return out;
}

static orr_model read_config(const char *config)
{
    char text[CONFIG];
    orr_model m;
    orr_error err;
    quoted(config, text);
    CHECK_OK(
        orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "x/config.json", &m, &err),
        &err);
    CHECK_OK(orr_model_check(&m, &err), &err);
    return m;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

TEST(test_model_families__have_the_published_number_of_parameters)
{
    for (size_t i = 0; i < MODEL_ROWS; i++) {
        const orr_model m = read_config(model_rows[i].config);
        orr_model_counts n;
        orr_model_count(&m, &n);
        CHECK_EQ_U(n.total, model_rows[i].counted);
        CHECK(distance(n.total, model_rows[i].published) <= model_rows[i].within);
        CHECK(!m.is_uncertain);
        if (model_rows[i].origin == ORIGIN_WEIGHTS)
            CHECK_EQ_U(n.total, model_rows[i].published);
    }
}

TEST(test_model_families__are_the_same_when_written_and_read)
{
    for (size_t i = 0; i < MODEL_ROWS; i++) {
        char a[ORR_MODEL_TEXT], b[ORR_MODEL_TEXT];
        const orr_model m = read_config(model_rows[i].config);
        orr_model again;
        orr_error err;
        const size_t n = orr_model_text(&m, a, sizeof a);
        CHECK(n < sizeof a);
        CHECK_OK(orr_model_parse((orr_span){(const uint8_t *)a, n}, "a.yml", &again, &err), &err);
        CHECK_EQ_U(orr_model_text(&again, b, sizeof b), n);
        CHECK_TEXT(b, a);
    }
}

static const char *config_of(const char *name)
{
    for (size_t i = 0; i < MODEL_ROWS; i++)
        if (strcmp(model_rows[i].name, name) == 0)
            return model_rows[i].config;
    return "";
}

/* The products and states of all layers and the head are the FLOPs of the whole; a state does not
 * grow with the past, a cache does. */
TEST(test_model_families__cost_of_states)
{
    const orr_model m = read_config(config_of("Qwen3-Next 80B-A3B"));
    const orr_model_work near = {.tokens = 1}, far = {.tokens = 1, .past = 100000};
    orr_model_flops a, b;
    orr_error err;
    CHECK(orr_model_mixer_of(&m, 0) == ORR_MIX_DELTA && orr_model_mixer_of(&m, 3) == ORR_MIX_ALL);
    CHECK_OK(orr_model_layer_flops(&m, 0, &near, &a, &err), &err);
    CHECK_OK(orr_model_layer_flops(&m, 0, &far, &b, &err), &err);
    CHECK(!orr_model_is_attention(&m, 0) && orr_model_is_attention(&m, 3));
    CHECK(orr_model_ffn_of(&m, 0) == ORR_FFN_EXPERTS);
    CHECK_EQ_U(orr_model_state_flops(&m, 0), 6ull * 32 * 128 * 128);
    CHECK_EQ_U(a.scores, 6ull * 32 * 128 * 128);
    CHECK_EQ_U(b.scores, a.scores);
    CHECK_EQ_U(a.attention, 2ull * (2048 * (12288 + 64) + 4 * 8192 + 4096 * 2048));
    CHECK_OK(orr_model_layer_flops(&m, 3, &far, &b, &err), &err);
    CHECK_EQ_U(b.scores, 100001ull * 16 * 4 * 256);
    CHECK_EQ_U(orr_model_layer_state(&m, 0), 32ull * 128 * 128 + 8192 * 3);
    CHECK_EQ_U(orr_model_layer_kv(&m, 0), 0);
    CHECK_EQ_U(orr_model_layer_kv(&m, 3), 2 * 2 * 256);
    uint64_t cache;
    CHECK_OK(orr_model_kv_cache(&m, 1000, &cache, &err), &err);
    CHECK_EQ_U(cache, 12ull * 1000 * 1024 + 36ull * (32 * 128 * 128 + 8192 * 3));
}

/* Of the tokens that it may see, sparse attention attends to 2,048; its indexer sees all. */
TEST(test_model_families__cost_of_an_indexer)
{
    const orr_model m = read_config(config_of("DeepSeek-V3.2"));
    const orr_model_work far = {.tokens = 1, .past = 99999};
    orr_model_flops f;
    orr_error err;
    CHECK_OK(orr_model_layer_flops(&m, 0, &far, &f, &err), &err);
    CHECK_EQ_U(f.scores, 2048ull * 128 * 2 * (192 + 128) + 100000ull * 64 * 2 * 128);
    CHECK_EQ_U(orr_model_layer_kv(&m, 0), 512 + 64 + 128);
}

TEST(test_model_families__layers_for_further_tokens_are_counted_apart)
{
    const orr_model m = read_config(config_of("DeepSeek-V3"));
    orr_model_counts layer;
    orr_model_layer_count(&m, 60, &layer);
    CHECK_EQ_U(orr_model_mtp_count(&m), layer.total + 2ull * 7168 * 7168 + 3 * 7168);
    const orr_model none = read_config(config_of("Kimi K2"));
    CHECK_EQ_U(orr_model_mtp_count(&none), 0);
}

/* ---- what is not certain, and what is refused ---- */

#define SIZES                                                               \
    "'hidden_size': 64, 'num_hidden_layers': 4, 'num_attention_heads': 4, " \
    "'vocab_size': 100, 'intermediate_size': 128"

/* Every layer has full attention: sizes of linear attention are those of nothing. */
TEST(test_model_families__sizes_of_no_layer_are_forgotten)
{
    const orr_model m =
        read_config("{'model_type': 'qwen3_next', 'num_key_value_heads': 2, 'head_dim': 16,"
                    " 'full_attention_interval': 1, 'linear_num_value_heads': 6,"
                    " 'linear_key_head_dim': 8, 'linear_conv_kernel_dim': 4, " SIZES "}");
    CHECK_EQ_U(m.linear_heads, 0);
    CHECK_EQ_U(m.linear_key_dim, 0);
    CHECK_EQ_U(m.linear_conv, 0);
}

TEST(test_model_families__doubt_has_words)
{
    orr_model m = read_config("{'model_type': 'brand_new', " SIZES "}");
    CHECK(m.is_uncertain && strstr(m.note, "unknown model_type brand_new"));
    m = read_config("{'model_type': 'llama', 'moe_inter_dim': 2048, 'n_routed_exp': 256, " SIZES
                    "}");
    CHECK(m.is_uncertain);
    CHECK_TEXT(m.note, "unknown keys, so counts may be wrong: moe_inter_dim, n_routed_exp");
    m = read_config("{'model_type': 'llama', 'moe_aux_loss_coef': 3, 'num_local_experts': 0, " SIZES
                    "}");
    CHECK(!m.is_uncertain);
    CHECK_TEXT(m.note, "");
    char text[ORR_MODEL_TEXT];
    m = read_config("{'model_type': 'brand_new', " SIZES "}");
    orr_model_text(&m, text, sizeof text);
    CHECK(strstr(text, "is_uncertain: true") != NULL);
}

static void refuse(const char *config, const char *words)
{
    char text[CONFIG];
    orr_model m;
    orr_error err;
    quoted(config, text);
    CHECK_CODE(orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "c.json", &m, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK(err.where.line > 0);
}

TEST(test_model_families__refused_in_words)
{
    refuse("{'model_type': 't5', 'd_model': 512}", "only decoders");
    refuse("{'model_type': 'bert', " SIZES "}", "encoders are not supported");
    refuse("{'model_type': 'jetmoe', " SIZES "}", "experts of attention");
    refuse("{'model_type': 'rwkv6', " SIZES "}", "only version 4 of RWKV is supported");
    refuse(
        "{'model_type': 'nemotron_h', 'num_key_value_heads': 2, 'hybrid_override_pattern': 'M-M',"
        " " SIZES "}",
        "hybrid_override_pattern: \"M-M\" is not a string of 4 signs");
    refuse("{'model_type': 'nemotron_h', 'num_key_value_heads': 2, 'hybrid_override_pattern':"
           " 'M-MX', " SIZES "}",
           "expected signs M, *, - and E");
    refuse("{'model_type': 'bamba', 'num_key_value_heads': 2, 'attn_layer_indices': [4], " SIZES
           "}",
           "attn_layer_indices: 4 is not the number of a layer");
    refuse("{'model_type': 'jamba', 'num_key_value_heads': 2, 'attn_layer_period': 2,"
           " 'attn_layer_offset': 2, " SIZES "}",
           "attn_layer_period: at least 1, and more than its offset");
    refuse(
        "{'model_type': 'minimax', 'num_key_value_heads': 2, 'attn_type_list': [0, 1, 2, 1], " SIZES
        "}",
        "attn_type_list: 2 is not 0 or 1");
    refuse("{'model_type': 'qwen3_next', 'num_key_value_heads': 2, " SIZES "}",
           "expected at least 1 with linear attention (linear_heads)");
    refuse("{'model_type': 'mamba2', 'hidden_size': 64, 'num_hidden_layers': 2, 'vocab_size': 9,"
           " 'num_heads': 0}",
           "num_heads: expected at least 1 with Mamba-2");
}

/* ---- traces ---- */

static orr_llm_options degrees(uint32_t tp, uint32_t cp)
{
    return (orr_llm_options){.tp = tp, .cp = cp, .dp = 1, .pp = 1, .ep = 1, .seq = 256};
}

static const char *refused_by_stage(const char *name, uint32_t tp, uint32_t cp, orr_error *err)
{
    const orr_model m = read_config(config_of(name));
    orr_llm_options o = degrees(tp, cp);
    CHECK_CODE(orr_llm_complete(&m, &o, err), ORR_EUSAGE, err);
    return err->message;
}

TEST(test_model_families__stage_names_what_it_cannot_share_out)
{
    orr_error err;
    CHECK(strstr(refused_by_stage("Zamba2 2.7B", 1, 1, &err), "layers that share a block"));
    CHECK(strstr(refused_by_stage("RWKV-4 Pile 7B", 1, 1, &err), "RWKV layers"));
    CHECK(strstr(refused_by_stage("Gemma 3n E4B (text)", 1, 1, &err), "share keys and values"));
    CHECK(strstr(refused_by_stage("Gemma 4 26B-A4B (text)", 1, 1, &err), "heads differ in width"));
    CHECK(strstr(refused_by_stage("DeepSeek-V3.2", 1, 1, &err), "with an indexer"));
    CHECK(strstr(refused_by_stage("Kimi K3 (text)", 1, 1, &err), "experts of another width"));
    CHECK(strstr(refused_by_stage("OPT 350M", 1, 1, &err), "an embedding narrower"));
    CHECK(
        strstr(refused_by_stage("Llama 3.2 11B Vision (text)", 1, 1, &err), "attend to an image"));
    CHECK(strstr(refused_by_stage("Qwen3-Next 80B-A3B", 1, 2, &err), "cannot be sharded yet"));
    CHECK(strstr(refused_by_stage("Jamba v0.1", 2, 1, &err), "Mamba layers cannot be sharded yet"));
}

static bool ends_in(orr_str name, const char *tail)
{
    const size_t n = strlen(tail);
    return name.len >= n && memcmp(name.ptr + name.len - n, tail, n) == 0;
}

static uint64_t sum_operations(const orr_set *s, const char *const *tails)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_trace *t = orr_set_trace(s, k);
        const orr_columns *c = orr_trace_columns(t);
        for (uint32_t i = 0; i < c->count; i++) {
            bool is_one = false;
            for (const char *const *tail = tails; *tail; tail++)
                is_one |= ends_in(orr_trace_name(t, i), *tail);
            if (c->type[i] == ORR_NODE_COMP && is_one)
                sum += (uint64_t)c->num_ops[i] * orr_set_class_ranks(s, k);
        }
    }
    return sum;
}

/* Every operation of the model is done once, however its heads are shared out: the products and
 * convolutions, and the scores and states. */
static void check_operations(const char *name, uint32_t tp, uint32_t layers)
{
    static const char *const products[] = {
        ".attn.qkv",     ".attn.gate",   ".attn.q",     ".attn.kv_down",
        ".attn.kv_up",   ".attn.out",    ".mixer.in",   ".mixer.conv",
        ".mixer.dt",     ".mixer.decay", ".mixer.gate", ".mixer.out",
        ".mixer.gates",  ".ffn.up",      ".ffn.down",   ".moe.router",
        ".moe.up",       ".moe.down",    ".shared.up",  ".shared.down",
        ".shared.scale", ".head.logits", NULL};
    static const char *const scores[] = {".attn.core", ".mixer.scan", NULL};
    orr_model m = read_config(config_of(name));
    orr_llm_options o = degrees(tp, 1);
    orr_error err;
    orr_set *s;
    m.layers = layers; /* the lists of layers repeat, or are longer */
    m.vocab = (m.vocab + 128 * tp - 1) / (128 * tp) * (128 * tp); /* as Megatron pads it */
    CHECK_OK(orr_llm_complete(&m, &o, &err), &err);
    CHECK_OK(orr_llm_training(&m, &o, &s, &err), &err);
    const orr_model_work work = {.tokens = o.seq};
    orr_model_flops f;
    CHECK_OK(orr_model_compute(&m, &work, &f, &err), &err);
    CHECK_EQ_U(sum_operations(s, products), (f.forward - f.scores) * o.batch);
    CHECK_EQ_U(sum_operations(s, scores), f.scores * o.batch);
    orr_set_close(s);
}

TEST(test_model_families__traces_do_all_operations_once)
{
    check_operations("Qwen3-Next 80B-A3B", 1, 4);
    check_operations("Qwen3-Next 80B-A3B", 2, 4);
    check_operations("MiniMax-Text-01", 8, 8);
    check_operations("Kimi Linear 48B-A3B", 1, 4);
    check_operations("Jamba v0.1", 1, 8);
    check_operations("Mamba 2.8B", 1, 2);
    check_operations("Mamba Codestral 7B", 8, 2);
    check_operations("Falcon-H1 34B", 2, 2);
    check_operations("Nemotron-H 8B", 8, 8);
    check_operations("Granite 4.0 H Small", 1, 6);
    check_operations("RecurrentGemma 2B", 1, 3);
    check_operations("LFM2 1.2B", 4, 3);
    check_operations("Snowflake Arctic", 2, 2);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_model_families__have_the_published_number_of_parameters),
        RUN(test_model_families__are_the_same_when_written_and_read),
        RUN(test_model_families__cost_of_states),
        RUN(test_model_families__cost_of_an_indexer),
        RUN(test_model_families__layers_for_further_tokens_are_counted_apart),
        RUN(test_model_families__sizes_of_no_layer_are_forgotten),
        RUN(test_model_families__doubt_has_words),
        RUN(test_model_families__refused_in_words),
        RUN(test_model_families__stage_names_what_it_cannot_share_out),
        RUN(test_model_families__traces_do_all_operations_once),
    };
    return RUN_ALL(tests);
}
