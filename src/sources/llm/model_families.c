/* SPDX-License-Identifier: Apache-2.0 */
/* model_families.c - what each model_type of a config.json stands for: a row of a table.
 *
 * The rows follow what the transformers library builds for such a file: which norms, biases and positions there
 * are, which head is tied when the file is silent.  Sizes have no defaults here: a file that lacks them is more
 * likely wrong than meant (Gemma 3's is the exception, its files do leave them out). */
#include "model_config.h"

#include "base/text/text.h"

/* ---- flags ---- */

#define TIED                                   \
    {                                          \
        "tie_word_embeddings", "is_tied", 1, 0 \
    }
#define ATTENTION_BIAS                            \
    {"attention_bias", "has_qkv_bias", 1, 0},     \
    {                                             \
        "attention_bias", "has_output_bias", 1, 0 \
    }
#define ALL_BIASES(key)                                          \
    {key, "has_qkv_bias", 1, 0}, {key, "has_output_bias", 1, 0}, \
    {                                                            \
        key, "has_ffn_bias", 1, 0                                \
    }

static const llm_config_flag tied_only[] = {TIED, {0}};
static const llm_config_flag llama_flags[] = {
    TIED, ATTENTION_BIAS, {"mlp_bias", "has_ffn_bias", 1, 0}, {0}};
static const llm_config_flag attention_flags[] = {TIED, ATTENTION_BIAS, {0}};
static const llm_config_flag neox_flags[] = {
    TIED, ATTENTION_BIAS, {"use_parallel_residual", "is_parallel", 1, 0}, {0}};
static const llm_config_flag opt_flags[] = {
    TIED,
    ALL_BIASES("enable_bias"),
    {"layer_norm_elementwise_affine", "norm", ORR_MODEL_LAYER_NORM, ORR_MODEL_PLAIN_NORM},
    {0}};
static const llm_config_flag falcon_flags[] = {
    TIED,
    ALL_BIASES("bias"),
    {"parallel_attn", "is_parallel", 1, 0},
    {"alibi", "position", ORR_MODEL_ALIBI, ORR_MODEL_ROTARY},
    {0}};
static const llm_config_flag qwen2_moe_flags[] = {TIED, {"qkv_bias", "has_qkv_bias", 1, 0}, {0}};
static const llm_config_flag phi_flags[] = {
    TIED, {"qk_layernorm", "qk_norm", ORR_MODEL_QK_NORM_HEAD, ORR_MODEL_NO_QK_NORM}, {0}};
static const llm_config_flag phimoe_flags[] = {
    TIED, ATTENTION_BIAS, {"lm_head_bias", "has_head_bias", 1, 0}, {0}};
static const llm_config_flag stablelm_flags[] = {TIED,
                                                 {"use_qkv_bias", "has_qkv_bias", 1, 0},
                                                 {"use_parallel_residual", "is_parallel", 1, 0},
                                                 {"use_parallel_residual", "block_norms", 1, 2},
                                                 {0}};
static const llm_config_flag starcoder2_flags[] = {TIED, ALL_BIASES("use_bias"), {0}};
static const llm_config_flag cohere_flags[] = {
    TIED,
    ATTENTION_BIAS,
    {"use_qk_norm", "qk_norm", ORR_MODEL_QK_NORM_ALL_HEADS, ORR_MODEL_NO_QK_NORM},
    {0}};
static const llm_config_flag glm_flags[] = {
    TIED,
    {"attention_bias", "has_qkv_bias", 1, 0},
    {"use_qk_norm", "qk_norm", ORR_MODEL_QK_NORM_HEAD, ORR_MODEL_NO_QK_NORM},
    {0}};

/* ---- what a row cannot say ---- */

static orr_code finish_learned(llm_config *c)
{
    c->m.position_rows = c->m.max_positions;
    return ORR_OK;
}

/* One head of keys and values for all, unless multi_query says no. */
static orr_code finish_bigcode(llm_config *c)
{
    bool is_shared = true;
    const orr_code code = llm_config_bool(c, "multi_query", &is_shared);
    c->m.kv_heads = is_shared ? 1 : c->m.heads;
    return code ? code : finish_learned(c);
}

/* The first two rows of positions are for padding. */
static orr_code finish_opt(llm_config *c)
{
    orr_json_value v;
    bool is_before = true;
    uint64_t width = c->m.hidden;
    orr_code code = llm_config_bool(c, "do_layer_norm_before", &is_before);
    if (!code)
        code = llm_config_number(c, "word_embed_proj_dim", &width);
    if (code)
        return code;
    if (!is_before && llm_config_find(c, "do_layer_norm_before", &v))
        return llm_config_refuse(c, v, "do_layer_norm_before",
                                 "only true is understood: norms before their part");
    if (width != c->m.hidden && llm_config_find(c, "word_embed_proj_dim", &v))
        return llm_config_refuse(c, v, "word_embed_proj_dim",
                                 "an embedding narrower than the layers is not understood");
    c->m.position_rows = c->m.max_positions + 2;
    return ORR_OK;
}

/* Falcon-40B and later (new_decoder_architecture) have groups of heads and a norm each for attention and FFN;
 * before that all heads shared one key and value, and parallel parts one norm. */
static orr_code finish_falcon(llm_config *c)
{
    bool is_new = false, is_shared = true;
    orr_code code = llm_config_bool(c, "new_decoder_architecture", &is_new);
    uint64_t norms = is_new ? 2 : 1;
    if (!code)
        code = llm_config_bool(c, "multi_query", &is_shared);
    if (!code)
        code = llm_config_number(c, "num_ln_in_parallel_attn", &norms);
    if (!is_new)
        c->m.kv_heads = is_shared ? 1 : c->m.heads;
    c->m.block_norms = c->m.is_parallel ? norms : 2;
    return code;
}

/* attention_types: [[["global", "local"], 12]] is 24 layers, one of each in turn. */
typedef struct neo_layers {
    bool is_global[MODEL_MOST_LAYERS];
    uint64_t count;
} neo_layers;

static bool add_neo_group(neo_layers *l, uint64_t layers, orr_json_value names, uint64_t times)
{
    for (uint64_t n = 0; n < times; n++) {
        orr_json_iter it = orr_json_iterate(names);
        orr_json_value v;
        orr_str name;
        while (orr_json_next_value(&it, &v)) {
            if (orr_json_get_str(v, &name, NULL) || l->count >= layers)
                return false;
            l->is_global[l->count++] = orr_str_is(name, "global");
        }
    }
    return true;
}

static bool read_neo_types(neo_layers *l, uint64_t layers, orr_json_value types)
{
    orr_json_iter it = orr_json_iterate(types);
    orr_json_value group, names, times;
    while (orr_json_next_value(&it, &group)) {
        orr_json_iter pair = orr_json_iterate(group);
        uint64_t n;
        if (!orr_json_next_value(&pair, &names) || !orr_json_next_value(&pair, &times) ||
            orr_json_get_u64(times, &n, NULL) || orr_json_count(names) == 0 ||
            !add_neo_group(l, layers, names, n))
            return false;
    }
    return l->count == layers;
}

/* Layers alternate, the first sees all; window_size is the window of the others. */
static orr_code finish_neo(llm_config *c)
{
    neo_layers l = {.count = 0};
    orr_json_value v;
    c->m.window = 256;
    c->m.position_rows = c->m.max_positions;
    const orr_code code = llm_config_number(c, "window_size", &c->m.window);
    if (code || !llm_config_find(c, "attention_types", &v))
        return code;
    if (!read_neo_types(&l, c->m.layers, v) || !llm_config_set_globals(&c->m, l.is_global))
        return llm_config_refuse(c, v, "attention_types",
                                 "a list such as [[[\"global\", \"local\"], 12]] was expected, in "
                                 "all one entry a layer");
    return ORR_OK;
}

static orr_code finish_mpt(llm_config *c)
{
    uint64_t ratio = 4;
    const orr_code code = llm_config_number(c, "expansion_ratio", &ratio);
    c->m.ffn = ratio * c->m.hidden; /* each below 2^31 */
    return code;
}

/* One shared expert of its own width, scaled by a gate. */
static orr_code finish_qwen2_moe(llm_config *c)
{
    orr_json_value v;
    bool is_windowed = false;
    orr_code code = llm_config_number(c, "shared_expert_intermediate_size", &c->m.shared_ffn);
    if (!code)
        code = llm_config_bool(c, "use_sliding_window", &is_windowed);
    c->m.shared_experts = c->m.shared_ffn > 0;
    c->m.has_shared_gate = c->m.shared_ffn > 0;
    if (!code && is_windowed && !llm_config_find(c, "layer_types", &v) &&
        llm_config_find(c, "use_sliding_window", &v))
        return llm_config_refuse(c, v, "use_sliding_window",
                                 "without layer_types it is not said which layers are meant");
    return code;
}

/* The bias that balances experts came with topk_method noaux_tc. */
static orr_code finish_deepseek_v3(llm_config *c)
{
    orr_json_value v;
    orr_str method;
    c->m.has_router_bias = true;
    if (!llm_config_find(c, "topk_method", &v))
        return ORR_OK;
    if (orr_json_get_str(v, &method, NULL))
        return llm_config_refuse(c, v, "topk_method", "a string was expected");
    c->m.has_router_bias = orr_str_is(method, "noaux_tc");
    return ORR_OK;
}

/* Its norms of queries and keys are one a head and have no bias, which no other model has. */
static orr_code finish_stablelm(llm_config *c)
{
    orr_json_value v;
    bool has_norms = false;
    const orr_code code = llm_config_bool(c, "qk_layernorm", &has_norms);
    if (!code && has_norms && llm_config_find(c, "qk_layernorm", &v))
        return llm_config_refuse(c, v, "qk_layernorm", "only false is understood here");
    return code;
}

/* ---- the table ---- */

#define GPT_BASE \
    .norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .has_output_bias = true, .has_ffn_bias = true
#define LLAMA_BASE .block_norms = 2, .is_gated = true

static const llm_family families[] = {
    /* RMS norms, gated FFNs. */
    {.types = {"llama", "granite"}, .base = {LLAMA_BASE}, .flags = llama_flags},
    {.types = {"smollm3"},
     .base = {LLAMA_BASE, .is_tied = true},
     .flags = llama_flags,
     .windows = LLM_WINDOWS_ASKED},
    {.types = {"mistral"},
     .base = {LLAMA_BASE, .window = 4096},
     .flags = tied_only,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = {"mixtral"},
     .base = {LLAMA_BASE},
     .flags = tied_only,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = {"granitemoe"}, .base = {LLAMA_BASE}, .flags = attention_flags},
    {.types = {"phi3"}, .base = {LLAMA_BASE}, .flags = tied_only, .windows = LLM_WINDOWS_ALL},
    {.types = {"phimoe"},
     .base = {LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM},
     .flags = phimoe_flags,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = {"qwen2"},
     .base = {LLAMA_BASE, .has_qkv_bias = true, .window = 4096},
     .flags = tied_only,
     .windows = LLM_WINDOWS_LATE,
     .needs_kv_heads = true},
    {.types = {"qwen2_moe"},
     .base = {LLAMA_BASE, .has_qkv_bias = true, .window = 4096},
     .flags = qwen2_moe_flags,
     .windows = LLM_WINDOWS_ASKED,
     .needs_kv_heads = true,
     .finish = finish_qwen2_moe},
    {.types = {"qwen3"},
     .base = {LLAMA_BASE, .qk_norm = ORR_MODEL_QK_NORM_HEAD, .head_dim = 128, .window = 4096},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_LATE,
     .needs_kv_heads = true},
    {.types = {"qwen3_moe"},
     .base = {LLAMA_BASE, .qk_norm = ORR_MODEL_QK_NORM_HEAD, .window = 4096},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_ASKED,
     .needs_kv_heads = true},
    {.types = {"deepseek"}, .base = {LLAMA_BASE}, .flags = attention_flags},
    {.types = {"deepseek_v2"}, .base = {LLAMA_BASE, .kv_lora_rank = 512}, .flags = llama_flags},
    {.types = {"deepseek_v3", "kimi_k2"},
     .base = {LLAMA_BASE, .kv_lora_rank = 512},
     .flags = attention_flags,
     .finish = finish_deepseek_v3},
    {.types = {"glm4_moe"},
     .base = {LLAMA_BASE, .has_router_bias = true},
     .flags = glm_flags,
     .needs_kv_heads = true},
    {.types = {"gpt_oss"},
     .base = {LLAMA_BASE, .has_qkv_bias = true, .has_output_bias = true, .has_ffn_bias = true,
              .has_router_bias = true, .has_sinks = true, .head_dim = 64, .window = 128,
              .global_every = 2},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true},
    {.types = {"gemma"},
     .base = {LLAMA_BASE, .is_tied = true, .head_dim = 256},
     .flags = attention_flags,
     .needs_kv_heads = true},
    {.types = {"gemma2"},
     .base = {.block_norms = 4,
              .is_gated = true,
              .is_tied = true,
              .head_dim = 256,
              .window = 4096,
              .global_every = 2},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true},
    {.types = {"gemma3_text"},
     .base = {.block_norms = 4,
              .is_gated = true,
              .is_tied = true,
              .vocab = 262208,
              .max_positions = 131072,
              .heads = 8,
              .kv_heads = 4,
              .head_dim = 256,
              .qk_norm = ORR_MODEL_QK_NORM_HEAD,
              .window = 4096,
              .global_every = 6},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},
    {.types = {"olmo"},
     .base = {LLAMA_BASE, .norm = ORR_MODEL_PLAIN_NORM},
     .flags = attention_flags},
    {.types = {"olmo2", "olmoe"},
     .base = {LLAMA_BASE, .qk_norm = ORR_MODEL_QK_NORM_ALL_HEADS},
     .flags = attention_flags},

    /* Layer norms. */
    {.types = {"stablelm"},
     .base = {LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM},
     .flags = stablelm_flags,
     .needs_kv_heads = true,
     .finish = finish_stablelm},
    {.types = {"cohere"},
     .base = {.norm = ORR_MODEL_LAYER_NORM_NO_BIAS,
              .block_norms = 1,
              .is_parallel = true,
              .is_gated = true,
              .is_tied = true},
     .flags = cohere_flags},
    {.types = {"cohere2"},
     .base = {.norm = ORR_MODEL_LAYER_NORM_NO_BIAS,
              .block_norms = 1,
              .is_parallel = true,
              .is_gated = true,
              .is_tied = true,
              .window = 4096,
              .global_every = 4},
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},
    {.types = {"gpt2"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED},
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_learned},
    {.types = {"gpt_bigcode"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED},
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_bigcode},
    {.types = {"gpt_neo"},
     .base = {GPT_BASE, .is_tied = true, .position = ORR_MODEL_LEARNED, .global_every = 2},
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_neo},
    {.types = {"gpt_neox"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_parallel = true},
     .flags = neox_flags},
    {.types = {"gptj", "codegen"},
     .base = {.norm = ORR_MODEL_LAYER_NORM,
              .block_norms = 1,
              .is_parallel = true,
              .has_ffn_bias = true,
              .has_head_bias = true},
     .flags = tied_only,
     .has_default_ffn = true},
    {.types = {"phi"},
     .base = {.norm = ORR_MODEL_LAYER_NORM,
              .block_norms = 1,
              .is_parallel = true,
              .has_qkv_bias = true,
              .has_output_bias = true,
              .has_ffn_bias = true,
              .has_head_bias = true},
     .flags = phi_flags},
    {.types = {"opt"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED},
     .flags = opt_flags,
     .finish = finish_opt},
    {.types = {"bloom"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_ALIBI,
              .has_embedding_norm = true},
     .flags = tied_only,
     .has_default_ffn = true},
    {.types = {"falcon", "RefinedWebModel"},
     .base = {.norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .is_parallel = true, .is_tied = true},
     .flags = falcon_flags,
     .has_default_ffn = true,
     .finish = finish_falcon},
    /* Falcon-40B before it was called so: the new architecture, though its files do not say so. */
    {.types = {"RefinedWeb"},
     .base = {.norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .is_parallel = true, .is_tied = true},
     .flags = falcon_flags,
     .has_default_ffn = true},
    {.types = {"mpt"},
     .base = {.norm = ORR_MODEL_LAYER_NORM_NO_BIAS,
              .block_norms = 2,
              .is_tied = true,
              .position = ORR_MODEL_ALIBI},
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_mpt},
    {.types = {"starcoder2"},
     .base = {GPT_BASE, .has_qkv_bias = true, .is_tied = true},
     .flags = starcoder2_flags,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
};

const llm_family *llm_family_find(orr_str type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        for (const char *const *t = families[i].types; *t; t++) {
            if (orr_str_is(type, *t))
                return &families[i];
        }
    }
    return NULL;
}

/* As Llama, but windows that the file names are believed. */
const llm_family *llm_family_fallback(void)
{
    static const llm_family other = {
        .base = {LLAMA_BASE}, .flags = llama_flags, .windows = LLM_WINDOWS_ALL};
    return &other;
}
