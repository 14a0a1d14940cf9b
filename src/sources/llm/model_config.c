/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.c - the fields of a model by name: the one table that our file is read and written
 * by. */
#include "model_config.h"
#include "base/text/text.h"
#include "model_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static orr_code llm_config_bool(const llm_config *c, const char *key, bool *out);
static bool llm_config_find(const llm_config *c, const char *key, orr_json_value *out);
static orr_code llm_config_number(const llm_config *c, const char *key, uint64_t *out);
static orr_code llm_config_refuse(const llm_config *c,
                                  orr_json_value v,
                                  const char *key,
                                  const char *words);
static bool llm_config_set_globals(orr_model *m, const bool *is_global);

static const char *const norm_words[] = {"rms", "layer", "layer-no-bias", "plain", NULL};
static const char *const qk_norms[] = {"none", "head", "all-heads", NULL};
static const char *const positions[] = {"rotary", "learned", "alibi", "none", NULL};

#define NUMBER(field)                                          \
    {                                                          \
#field, MODEL_NUMBER, offsetof(orr_model, field), NULL \
    }
#define FLAG(field)                                          \
    {                                                        \
#field, MODEL_FLAG, offsetof(orr_model, field), NULL \
    }
#define WORD(field, words)                                    \
    {                                                         \
#field, MODEL_WORD, offsetof(orr_model, field), words \
    }

/* An enum is read and written as the int it is stored as. */
_Static_assert(sizeof(orr_model_norm) == sizeof(int), "norm");
_Static_assert(sizeof(orr_model_qk_norm) == sizeof(int), "qk_norm");
_Static_assert(sizeof(orr_model_position) == sizeof(int), "position");

static const model_field fields[] = {
    NUMBER(layers),
    NUMBER(hidden),
    NUMBER(vocab),
    NUMBER(vocab_multiple),
    NUMBER(max_positions),
    FLAG(is_tied),
    FLAG(has_head_bias),
    FLAG(has_embedding_norm),
    WORD(position, positions),
    NUMBER(position_rows),
    WORD(norm, norm_words),
    NUMBER(block_norms),
    WORD(qk_norm, qk_norms),
    FLAG(is_parallel),
    NUMBER(heads),
    NUMBER(kv_heads),
    NUMBER(head_dim),
    FLAG(has_qkv_bias),
    FLAG(has_output_bias),
    FLAG(has_sinks),
    NUMBER(window),
    NUMBER(window_from),
    NUMBER(global_every),
    NUMBER(global_at),
    NUMBER(kv_lora_rank),
    NUMBER(q_lora_rank),
    NUMBER(qk_nope_head_dim),
    NUMBER(qk_rope_head_dim),
    NUMBER(v_head_dim),
    NUMBER(ffn),
    FLAG(is_gated),
    FLAG(has_ffn_bias),
    NUMBER(experts),
    NUMBER(experts_per_token),
    NUMBER(expert_ffn),
    NUMBER(shared_experts),
    NUMBER(shared_ffn),
    FLAG(has_shared_gate),
    FLAG(has_router_bias),
    NUMBER(dense_first),
    NUMBER(moe_every),
    NUMBER(moe_at),
    NUMBER(mtp_layers),
};

_Static_assert(sizeof fields / sizeof *fields == MODEL_FIELDS, "MODEL_FIELDS");

const model_field *model_field_at(size_t index)
{
    return index < MODEL_FIELDS ? &fields[index] : NULL;
}

/* MODEL_FIELDS: there is none */
static size_t model_field_find(const char *key)
{
    size_t i = 0;
    while (i < MODEL_FIELDS && strcmp(fields[i].key, key) != 0)
        i++;
    return i;
}

uint64_t model_get(const orr_model *m, const model_field *f)
{
    const char *at = (const char *)m + f->at;
    uint64_t number;
    bool flag;
    int word;
    switch (f->kind) {
    case MODEL_NUMBER:
        memcpy(&number, at, sizeof number);
        return number;
    case MODEL_FLAG:
        memcpy(&flag, at, sizeof flag);
        return flag;
    default:
        memcpy(&word, at, sizeof word);
        return word < 0 ? UINT64_MAX : (uint64_t)word;
    }
}

void model_set(orr_model *m, const model_field *f, uint64_t value)
{
    char *at = (char *)m + f->at;
    const bool flag = value != 0;
    const int word = (int)value; /* its place in `words` */
    switch (f->kind) {
    case MODEL_NUMBER:
        memcpy(at, &value, sizeof value);
        return;
    case MODEL_FLAG:
        memcpy(at, &flag, sizeof flag);
        return;
    default:
        memcpy(at, &word, sizeof word);
    }
}

void model_plain_text(char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text >= 0x7F || *text == '"' || *text == '\\')
            *text = '_';
    }
}

static bool strip_end(orr_str *s, const char *end)
{
    const size_t n = strlen(end);
    if (s->len < n || memcmp(s->ptr + s->len - n, end, n) != 0)
        return false;
    s->len -= n;
    return true;
}

void model_name_path(orr_model *m, orr_str path)
{
    static const char *const ends[] = {".gz", ".zst", ".json", ".yaml", ".yml"};
    while (strip_end(&path, "/config.json") || strip_end(&path, "/"))
        continue;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        strip_end(&path, ends[i]);
    size_t from = path.len;
    while (from && path.ptr[from - 1] != '/')
        from--;
    const size_t all = path.len - from;
    const size_t n = all < ORR_MODEL_NAME - 1 ? all : ORR_MODEL_NAME - 1;
    memset(m->name, 0, sizeof m->name);
    memcpy(m->name, path.ptr + from, n);
    model_plain_text(m->name);
    if (m->name[0] == '\0' || strcmp(m->name, "-") == 0)
        memcpy(m->name, "unnamed", sizeof "unnamed");
}

/* What each model_type of a config.json stands for: a row of a table.
 *
 * The rows follow what the transformers library builds for such a file: which norms, biases and
 * positions there are, which head is tied when the file is silent.  Sizes have no defaults here: a
 * file that lacks them is more likely wrong than meant (Gemma 3's is the exception, its files do
 * leave them out). */

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

/* Falcon-40B and later (new_decoder_architecture) have groups of heads and a norm each for
 * attention and FFN; before that all heads shared one key and value, and parallel parts one
 * norm. */
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

/* By model_type; NULL: not known. */
static const llm_family *llm_family_find(orr_str type)
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
static const llm_family *llm_family_fallback(void)
{
    static const llm_family other = {
        .base = {LLAMA_BASE}, .flags = llama_flags, .windows = LLM_WINDOWS_ALL};
    return &other;
}

/* A model from a Hugging Face config.json.
 *
 * Sizes go by many names; each of them is looked for under all, and two that contradict each other
 * are an error. What a family means beyond its sizes is a row of model_config.c.  Each field
 * remembers the value that set it, so that a fault found at the end still points at its place in
 * the file. Invariant: numbers are at most MODEL_MOST, so that products of two fit into 64 bits. */

enum { SHOWN = 60, KEYS = 4 };

/* ---- values ---- */

static bool llm_config_find(const llm_config *c, const char *key, orr_json_value *out)
{
    return orr_json_find(c->map, key, out) && orr_json_type_of(*out) != ORR_JSON_NULL;
}

/* A key that is there and not null. */
static orr_code llm_config_refuse(const llm_config *c,
                                  orr_json_value v,
                                  const char *key,
                                  const char *words)
{
    const orr_where w = orr_json_where(v);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s", key, words);
}

/* "key: 12.5 is not ..." with the value as it stands in the file. */
static orr_code not_what(const llm_config *c, orr_json_value v, const char *key, const char *what)
{
    const orr_where w = orr_json_where(v);
    const orr_str text = orr_json_raw(v);
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_ARRAY || type == ORR_JSON_OBJECT || text.len > SHOWN)
        return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s was found, %s was expected", key,
                        orr_json_type_name(type), what);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %.*s is not %s", key, (int)text.len, text.ptr,
                    what);
}

static orr_code get_number(const llm_config *c, orr_json_value v, const char *key, uint64_t *out)
{
    uint64_t n;
    if (orr_json_get_u64(v, &n, NULL) || n > MODEL_MOST)
        return not_what(c, v, key, "a whole number from 0 to 2147483647");
    *out = n;
    return ORR_OK;
}

/* Where a key is not there these leave *out as it is. */
static orr_code llm_config_number(const llm_config *c, const char *key, uint64_t *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? get_number(c, v, key, out) : ORR_OK;
}

static orr_code get_bool(const llm_config *c, orr_json_value v, const char *key, bool *out)
{
    return orr_json_get_bool(v, out, NULL) ? not_what(c, v, key, "true or false") : ORR_OK;
}

static orr_code llm_config_bool(const llm_config *c, const char *key, bool *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? get_bool(c, v, key, out) : ORR_OK;
}

static orr_code missing(const llm_config *c, const char *key)
{
    const orr_where w = orr_json_where(c->map);
    return orr_fail(c->err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

/* What is in a note may come from the file, and goes into tables and JSON. */
ORR_PRINTF(2, 3) static void note(orr_model *m, const char *fmt, ...)
{
    size_t used = strlen(m->note);
    va_list args;
    if (used && used + 2 < sizeof m->note) {
        memcpy(m->note + used, "; ", 3);
        used += 2;
    }
    va_start(args, fmt);
    vsnprintf(m->note + used, sizeof m->note - used, fmt, args);
    va_end(args);
    model_plain_text(m->note);
}

/* ---- sizes ---- */

/* A field, and the keys it goes by. */
typedef struct slot {
    const char *field;
    const char *keys[KEYS];
    bool is_needed;
} slot;

static const slot slots[] = {
    {"layers", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, true},
    {"hidden", {"hidden_size", "n_embd", "d_model", "n_embed"}, true},
    {"vocab", {"vocab_size"}, true},
    {"heads", {"num_attention_heads", "n_head", "num_heads", "n_heads"}, true},
    {"kv_heads", {"num_key_value_heads", "num_kv_heads", "n_head_kv"}, false},
    {"head_dim", {"head_dim"}, false},
    {"ffn", {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, false},
    {"max_positions",
     {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"},
     false},
    {"kv_lora_rank", {"kv_lora_rank"}, false},
    {"q_lora_rank", {"q_lora_rank"}, false},
    {"qk_nope_head_dim", {"qk_nope_head_dim"}, false},
    {"qk_rope_head_dim", {"qk_rope_head_dim"}, false},
    {"v_head_dim", {"v_head_dim"}, false},
    {"experts", {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, false},
    {"experts_per_token", {"num_experts_per_tok", "experts_per_token", "moe_top_k"}, false},
    {"expert_ffn", {"moe_intermediate_size"}, false},
    {"shared_experts", {"n_shared_experts", "num_shared_experts"}, false},
    {"dense_first", {"first_k_dense_replace"}, false},
    {"moe_every", {"moe_layer_freq"}, false},
    {"mtp_layers", {"num_nextn_predict_layers", "num_mtp_layers"}, false},
};

static void remember(llm_config *c, const char *field, const char *key, orr_json_value from)
{
    const size_t i = model_field_find(field);
    c->key[i] = key;
    c->from[i] = from;
}

static orr_code contradict(const llm_config *c,
                           orr_json_value v,
                           const char *key,
                           const char *other)
{
    char words[100];
    snprintf(words, sizeof words, "not the number that \"%s\" says", other);
    return llm_config_refuse(c, v, key, words);
}

static orr_code take_slot(llm_config *c, const slot *s)
{
    const model_field *field = model_field_at(model_field_find(s->field));
    const char *seen = NULL;
    uint64_t value = model_get(&c->m, field), n = 0;
    for (size_t i = 0; i < KEYS && s->keys[i]; i++) {
        orr_json_value v;
        if (!llm_config_find(c, s->keys[i], &v))
            continue;
        const orr_code code = get_number(c, v, s->keys[i], &n);
        if (code)
            return code;
        if (seen && n != value)
            return contradict(c, v, s->keys[i], seen);
        if (!seen)
            remember(c, s->field, s->keys[i], v);
        seen = s->keys[i];
        value = n;
    }
    model_set(&c->m, field, value);
    return !seen && s->is_needed && value == 0 ? missing(c, s->keys[0]) : ORR_OK;
}

static orr_code take_flag(llm_config *c, const llm_config_flag *f)
{
    const model_field *field = model_field_at(model_field_find(f->field));
    orr_json_value v;
    bool is_set;
    /* With several parts, some files say of the whole whether the head is tied. */
    if (!llm_config_find(c, f->key, &v) &&
        !(strcmp(f->field, "is_tied") == 0 && orr_json_find(c->root, f->key, &v) &&
          orr_json_type_of(v) != ORR_JSON_NULL))
        return ORR_OK;
    const orr_code code = get_bool(c, v, f->key, &is_set);
    if (code)
        return code;
    remember(c, f->field, f->key, v);
    model_set(&c->m, field, is_set ? f->if_true : f->if_false);
    return ORR_OK;
}

static orr_code take_sizes(llm_config *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof slots / sizeof *slots && !code; i++)
        code = take_slot(c, &slots[i]);
    for (const llm_config_flag *f = c->family->flags; f->key && !code; f++)
        code = take_flag(c, f);
    return code;
}

/* ---- attention ---- */

static bool was_said(const llm_config *c, const char *field)
{
    return c->key[model_field_find(field)] != NULL;
}

/* Keys of MLA that the file of such a model must have. */
static orr_code complete_latent(llm_config *c)
{
    static const char *const needed[] = {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                         "v_head_dim"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!was_said(c, needed[i]))
            return missing(c, needed[i]);
    }
    c->m.kv_heads = c->m.heads;
    c->m.head_dim = 0;
    return ORR_OK;
}

static orr_code complete_heads(llm_config *c)
{
    orr_model *m = &c->m;
    if (orr_model_is_mla(m))
        return complete_latent(c);
    if (m->kv_heads == 0 && !was_said(c, "kv_heads")) {
        if (c->family->needs_kv_heads)
            return missing(c, "num_key_value_heads");
        m->kv_heads = m->heads;
    }
    if (m->head_dim)
        return ORR_OK;
    const size_t hidden = model_field_find("hidden");
    if (m->heads && m->hidden % m->heads)
        return llm_config_refuse(c, c->from[hidden], c->key[hidden],
                                 "not a multiple of the number of heads, and there is no head_dim");
    m->head_dim = m->heads ? m->hidden / m->heads : 0;
    return ORR_OK;
}

/* ---- windows ---- */

/* Which layers see all, from a list of one flag a layer, as window_from, global_every and
 * global_at.  False: they follow no such pattern. */
static bool llm_config_set_globals(orr_model *m, const bool *is_global)
{
    uint64_t first = 0, second, last = m->layers;
    while (last && !is_global[last - 1])
        last--;
    while (first < m->layers && is_global[first])
        first++;
    m->window_from = m->global_every = m->global_at = 0;
    if (first == m->layers) { /* no layer has the window */
        m->window = 0;
        return true;
    }
    if (first == last) { /* all from one on have it, or all */
        m->window_from = first;
        return true;
    }
    for (first = 0; !is_global[first];)
        first++;
    for (second = first + 1; second < m->layers && !is_global[second];)
        second++;
    m->global_every = second < m->layers ? second - first : m->layers;
    m->global_at = first;
    for (uint64_t i = 0; i < m->layers; i++) {
        if (is_global[i] != (i % m->global_every == m->global_at))
            return false;
    }
    return true;
}

static orr_code read_layer_type(const llm_config *c, orr_json_value v, bool *is_global)
{
    orr_str type;
    if (orr_json_get_str(v, &type, NULL))
        return not_what(c, v, "layer_types", "a string");
    *is_global = orr_str_is(type, "full_attention");
    if (*is_global || orr_str_is(type, "sliding_attention"))
        return ORR_OK;
    return not_what(c, v, "layer_types", "understood: full_attention and sliding_attention are");
}

static orr_code take_layer_types(llm_config *c, orr_json_value list)
{
    bool is_global[MODEL_MOST_LAYERS];
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    char words[80];
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) != c->m.layers) {
        snprintf(words, sizeof words, "a list of one string for each of %" PRIu64 " layers",
                 c->m.layers);
        return not_what(c, list, "layer_types", words);
    }
    for (uint64_t i = 0; orr_json_next_value(&it, &v); i++) {
        const orr_code code = read_layer_type(c, v, &is_global[i]);
        if (code)
            return code;
    }
    if (!llm_config_set_globals(&c->m, is_global))
        return llm_config_refuse(c, list, "layer_types",
                                 "full_attention does not come every so many layers");
    return ORR_OK;
}

/* Is there a window at all?  A null says no as well. */
static orr_code read_window(llm_config *c, bool *out)
{
    const bool is_asked =
        c->family->windows == LLM_WINDOWS_ASKED || c->family->windows == LLM_WINDOWS_LATE;
    orr_json_value v;
    bool is_used = !is_asked;
    orr_code code = llm_config_bool(c, "use_sliding_window", &is_used);
    if (!code)
        code = llm_config_number(c, "sliding_window", &c->m.window);
    if (orr_json_find(c->map, "sliding_window", &v)) {
        remember(c, "window", "sliding_window", v);
        if (orr_json_type_of(v) == ORR_JSON_NULL)
            c->m.window = 0;
    }
    *out = is_used && c->m.window;
    return code;
}

static orr_code take_pattern(llm_config *c)
{
    orr_code code = ORR_OK;
    c->m.window_from = c->family->windows == LLM_WINDOWS_LATE ? 28 : 0;
    if (c->family->windows == LLM_WINDOWS_LATE)
        code = llm_config_number(c, "max_window_layers", &c->m.window_from);
    if (!code && c->family->windows == LLM_WINDOWS_MIXED)
        code = llm_config_number(c, "sliding_window_pattern", &c->m.global_every);
    c->m.global_at = c->m.global_every ? c->m.global_every - 1 : 0;
    if (c->m.window_from < c->m.layers)
        return code;
    c->m.window = c->m.window_from = 0; /* no layer comes that late */
    return code;
}

static orr_code take_windows(llm_config *c)
{
    bool has_window = false;
    orr_json_value types;
    if (c->family->windows == LLM_WINDOWS_NONE)
        return ORR_OK;
    orr_code code = read_window(c, &has_window);
    if (code)
        return code;
    if (!has_window) {
        c->m.window = c->m.window_from = c->m.global_every = c->m.global_at = 0;
        return ORR_OK;
    }
    return llm_config_find(c, "layer_types", &types) ? take_layer_types(c, types) : take_pattern(c);
}

/* ---- experts ---- */

/* Layers 0 to k - 1, in any order: these are dense. */
static orr_code take_dense_layers(llm_config *c)
{
    orr_json_value list, v;
    uint64_t largest = 0, n = 0;
    if (!llm_config_find(c, "mlp_only_layers", &list) || orr_json_count(list) == 0)
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        const orr_code code = get_number(c, v, "mlp_only_layers", &n);
        if (code)
            return code;
        largest = n > largest ? n : largest;
    }
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || largest != orr_json_count(list) - 1)
        return llm_config_refuse(c, list, "mlp_only_layers",
                                 "only the first layers of a model are understood here");
    c->m.dense_first = largest + 1;
    return ORR_OK;
}

/* decoder_sparse_step n: layers n - 1, 2n - 1, ... */
static orr_code take_sparse_step(llm_config *c)
{
    uint64_t step = 0;
    const orr_code code = llm_config_number(c, "decoder_sparse_step", &step);
    if (step > 1) {
        c->m.moe_every = step;
        c->m.moe_at = step - 1;
    }
    return code;
}

static bool is_all_moe(const orr_model *m)
{
    uint64_t i = 0;
    while (i < m->layers && i < MODEL_MOST_LAYERS && orr_model_is_moe(m, i))
        i++;
    return i == m->layers;
}

static orr_code complete_experts(llm_config *c)
{
    orr_model *m = &c->m;
    if (!was_said(c, "experts_per_token"))
        return missing(c, "num_experts_per_tok");
    if (m->expert_ffn == 0)
        m->expert_ffn = m->ffn; /* where all layers are alike there is one width only */
    if (m->shared_experts && m->shared_ffn == 0)
        m->shared_ffn = m->expert_ffn;
    if (m->moe_every == 1)
        m->moe_every = 0;
    orr_code code = take_sparse_step(c);
    if (!code)
        code = take_dense_layers(c);
    if (!code && is_all_moe(m))
        m->ffn = 0;
    return code;
}

static void forget_experts(orr_model *m)
{
    m->experts_per_token = m->expert_ffn = m->shared_experts = m->shared_ffn = 0;
    m->dense_first = m->moe_every = m->moe_at = 0;
    m->has_shared_gate = m->has_router_bias = false;
}

/* ---- the whole ---- */

static orr_code find_family(llm_config *c)
{
    orr_json_value v;
    orr_str type = {0};
    const bool is_there = llm_config_find(c, "model_type", &v);
    if (is_there && orr_json_get_str(v, &type, NULL))
        return not_what(c, v, "model_type", "a string");
    c->family = llm_family_find(type);
    if (c->family)
        return ORR_OK;
    c->family = llm_family_fallback();
    if (is_there)
        note(&c->m, "the model_type %.*s is not known: read as if it were a Llama",
             (int)(type.len < SHOWN ? type.len : SHOWN), type.ptr);
    else
        note(&c->m, "there is no model_type: read as if it were a Llama");
    return ORR_OK;
}

/* Models of more than text describe their parts one by one. */
static void find_text_part(llm_config *c)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    c->map = c->root;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        orr_json_value v;
        if (!orr_json_find(c->root, keys[i], &v) || orr_json_type_of(v) != ORR_JSON_OBJECT)
            continue;
        c->map = v;
        note(&c->m, "only what %s says is counted", keys[i]);
        return;
    }
}

static orr_code check_kind(llm_config *c)
{
    orr_json_value v;
    bool has_encoder = false;
    const orr_code code = llm_config_bool(c, "is_encoder_decoder", &has_encoder);
    if (!code && has_encoder && llm_config_find(c, "is_encoder_decoder", &v))
        return llm_config_refuse(c, v, "is_encoder_decoder",
                                 "models with an encoder are not understood");
    return code;
}

static void take_name(llm_config *c, const char *label)
{
    orr_json_value v;
    orr_str name = {0};
    if (orr_json_find(c->root, "_name_or_path", &v) && !orr_json_get_str(v, &name, NULL) &&
        name.len)
        model_name_path(&c->m, name);
    else
        model_name_path(&c->m, orr_str_of(label));
}

/* A fault of the model as a whole, at the place of the field it is about. */
static orr_code check_model(const llm_config *c)
{
    model_fault f;
    if (!model_find_fault(&c->m, &f))
        return ORR_OK;
    const size_t i = model_field_find(f.field);
    const bool was_set = i < MODEL_FIELDS && c->key[i];
    const orr_where w = orr_json_where(was_set ? c->from[i] : c->map);
    if (was_set)
        return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s", c->key[i], f.words);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s (%s)", f.words, f.field);
}

static orr_code complete_ffn(llm_config *c)
{
    if (c->m.ffn == 0 && c->family->has_default_ffn)
        c->m.ffn = 4 * c->m.hidden;
    return c->m.ffn == 0 && c->m.expert_ffn == 0 ? missing(c, "intermediate_size") : ORR_OK;
}

static orr_code take_model(llm_config *c)
{
    orr_code code = take_sizes(c);
    if (!code && c->m.layers > MODEL_MOST_LAYERS)
        return check_model(c);
    if (!code)
        code = complete_heads(c);
    if (!code)
        code = complete_ffn(c);
    if (!code)
        code = take_windows(c);
    if (!code && c->family->finish)
        code = c->family->finish(c);
    if (code)
        return code;
    if (c->m.experts == 0)
        forget_experts(&c->m);
    else
        code = complete_experts(c);
    return code ? code : check_model(c);
}

static orr_code take_config(llm_config *c, const char *label)
{
    char kept[ORR_MODEL_NOTE];
    find_text_part(c);
    orr_code code = check_kind(c);
    if (!code)
        code = find_family(c);
    if (code)
        return code;
    memcpy(kept, c->m.note, sizeof kept);
    c->m = c->family->base;
    memcpy(c->m.note, kept, sizeof kept);
    take_name(c, label);
    return take_model(c);
}

orr_code model_parse_config(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    llm_config c = {.err = err};
    orr_json *j;
    orr_code code = orr_json_open(bytes, label, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &c.root, err);
    if (!code)
        code = take_config(&c, label);
    orr_json_close(j);
    if (!code)
        *out = c.m;
    return code;
}
