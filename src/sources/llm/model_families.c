/* SPDX-License-Identifier: Apache-2.0 */
/* model_families.c - what each model_type of a config.json stands for: a row of a table.
 *
 * The rows follow what the transformers library builds for such a file: which norms, biases and
 * positions there are, which head is tied by default.  Sizes have no defaults here: a file that
 * lacks them is most likely broken (except Gemma 3's, which leave them out).
 * docs/format/families.md lists models each row was checked with. */
#include "base/text/text.h"
#include "model_config.h"

#include <string.h>

/* ---- flags ---- */

#define TIED                                   \
    {                                          \
        "tie_word_embeddings", "is_tied", 1, 0 \
    }
#define QKV_BIAS(key)             \
    {                             \
        key, "has_qkv_bias", 1, 0 \
    }
#define OUTPUT_BIAS(key)             \
    {                                \
        key, "has_output_bias", 1, 0 \
    }
#define FFN_BIAS(key)             \
    {                             \
        key, "has_ffn_bias", 1, 0 \
    }
#define ATTENTION_BIAS QKV_BIAS("attention_bias"), OUTPUT_BIAS("attention_bias")
#define ALL_BIASES(key) QKV_BIAS(key), OUTPUT_BIAS(key), FFN_BIAS(key)
#define QK_NORM(key, kind)                                             \
    {                                                                  \
        key, "qk_norm", ORR_MODEL_QK_NORM_##kind, ORR_MODEL_NO_QK_NORM \
    }

static const llm_config_flag tied_only[] = {TIED, {0}};
static const llm_config_flag llama_flags[] = {TIED, ATTENTION_BIAS, FFN_BIAS("mlp_bias"), {0}};
static const llm_config_flag attention_flags[] = {TIED, ATTENTION_BIAS, {0}};
static const llm_config_flag internlm_flags[] = {
    TIED, QKV_BIAS("bias"), OUTPUT_BIAS("bias"), QKV_BIAS("qkv_bias"), {0}};
static const llm_config_flag internlm3_flags[] = {
    TIED, OUTPUT_BIAS("bias"), FFN_BIAS("bias"), QKV_BIAS("qkv_bias"), {0}};
static const llm_config_flag seed_flags[] = {
    TIED, QKV_BIAS("attention_bias"), OUTPUT_BIAS("attention_out_bias"), FFN_BIAS("mlp_bias"), {0}};
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
static const llm_config_flag mpt_flags[] = {
    TIED,
    {"no_bias", "has_qkv_bias", 0, 1},
    {"no_bias", "has_output_bias", 0, 1},
    {"no_bias", "has_ffn_bias", 0, 1},
    {"no_bias", "norm", ORR_MODEL_LAYER_NORM_NO_BIAS, ORR_MODEL_LAYER_NORM},
    {"attn_config.alibi", "position", ORR_MODEL_ALIBI, ORR_MODEL_LEARNED},
    QK_NORM("attn_config.qk_ln", ALL_HEADS),
    {0}};
static const llm_config_flag qwen2_moe_flags[] = {TIED, QKV_BIAS("qkv_bias"), {0}};
static const llm_config_flag phi_flags[] = {TIED, QK_NORM("qk_layernorm", HEAD), {0}};
static const llm_config_flag phimoe_flags[] = {
    TIED, ATTENTION_BIAS, {"lm_head_bias", "has_head_bias", 1, 0}, {0}};
static const llm_config_flag stablelm_flags[] = {TIED,
                                                 QKV_BIAS("use_qkv_bias"),
                                                 {"use_parallel_residual", "is_parallel", 1, 0},
                                                 {"use_parallel_residual", "block_norms", 1, 2},
                                                 QK_NORM("qk_layernorm", EACH_HEAD),
                                                 {0}};
static const llm_config_flag starcoder2_flags[] = {TIED, ALL_BIASES("use_bias"), {0}};
static const llm_config_flag cohere_flags[] = {
    TIED, ATTENTION_BIAS, QK_NORM("use_qk_norm", ALL_HEADS), {0}};
static const llm_config_flag glm_flags[] = {
    TIED, QKV_BIAS("attention_bias"), QK_NORM("use_qk_norm", HEAD), {0}};
static const llm_config_flag hunyuan_flags[] = {
    TIED, ATTENTION_BIAS, FFN_BIAS("mlp_bias"), QK_NORM("use_qk_norm", HEAD), {0}};
static const llm_config_flag bailing_flags[] = {
    TIED,
    QKV_BIAS("use_qkv_bias"),
    OUTPUT_BIAS("use_bias"),
    QK_NORM("use_qk_norm", HEAD),
    {"moe_router_enable_expert_bias", "has_router_bias", 1, 0},
    {0}};
static const llm_config_flag chatglm_flags[] = {TIED,
                                                QKV_BIAS("add_qkv_bias"),
                                                OUTPUT_BIAS("add_bias_linear"),
                                                FFN_BIAS("add_bias_linear"),
                                                {0}};
static const llm_config_flag persimmon_flags[] = {TIED, QK_NORM("qk_layernorm", HEAD), {0}};
static const llm_config_flag minimax_flags[] = {
    TIED, {"use_routing_bias", "has_router_bias", 1, 0}, {0}};
static const llm_config_flag lfm2_flags[] = {TIED,
                                             {"tie_embedding", "is_tied", 1, 0},
                                             {"conv_bias", "has_conv_bias", 1, 0},
                                             {"use_expert_bias", "has_router_bias", 1, 0},
                                             {0}};
static const llm_config_flag ernie_flags[] = {
    TIED, ALL_BIASES("use_bias"), {"moe_use_aux_free", "has_router_bias", 1, 0}, {0}};
static const llm_config_flag mamba_flags[] = {TIED,
                                              {"tie_embeddings", "is_tied", 1, 0},
                                              {"use_bias", "has_ssm_bias", 1, 0},
                                              {"use_conv_bias", "has_conv_bias", 1, 0},
                                              {0}};
static const llm_config_flag hybrid_flags[] = {TIED,
                                               ATTENTION_BIAS,
                                               FFN_BIAS("mlp_bias"),
                                               {"mamba_proj_bias", "has_ssm_bias", 1, 0},
                                               {"mamba_conv_bias", "has_conv_bias", 1, 0},
                                               {"use_conv_bias", "has_conv_bias", 1, 0},
                                               {"use_bias", "has_ssm_bias", 1, 0},
                                               {"add_bias_linear", "has_ssm_bias", 1, 0},
                                               {"mamba_rms_norm", "has_no_ssm_gate_norm", 0, 1},
                                               {0}};
static const llm_config_flag kimi_linear_flags[] = {
    TIED,
    {"latent_moe_use_norm", "has_expert_norm", 1, 0},
    {"mla_use_output_gate", "attention_gate", ORR_MODEL_GATE_WIDE, ORR_MODEL_NO_GATE},
    {"linear_attn_config.use_full_rank_gate", "has_full_linear_gate", 1, 0},
    {0}};
static const llm_config_flag gemma4_flags[] = {TIED,
                                               ATTENTION_BIAS,
                                               {"attention_k_eq_v", "has_no_global_v", 1, 0},
                                               {"use_double_wide_mlp", "has_wide_shared_ffn", 1, 0},
                                               {0}};
static const llm_config_flag qwen_flags[] = {TIED, OUTPUT_BIAS("use_bias"), {0}};
static const llm_config_flag olmo_old_flags[] = {
    {"weight_tying", "is_tied", 1, 0}, ALL_BIASES("include_bias"), {0}};

/* ---- names of their own ---- */

static const llm_config_slot qwen_slots[] = {
    {"head_dim", "kv_channels"}, {"max_positions", "max_position_embeddings"}, {0}};
static const llm_config_slot chatglm_slots[] = {
    {"vocab", "padded_vocab_size"},  {"kv_heads", "multi_query_group_num"},
    {"head_dim", "kv_channels"},     {"ffn", "inner_hidden_size"},
    {"max_positions", "seq_length"}, {0}};
static const llm_config_slot dbrx_slots[] = {{"kv_heads", "attn_config.kv_n_heads"},
                                             {"ffn", "ffn_config.ffn_hidden_size"},
                                             {"experts", "ffn_config.moe_num_experts"},
                                             {"experts_per_token", "ffn_config.moe_top_k"},
                                             {0}};
static const llm_config_slot mpt_slots[] = {{"kv_heads", "attn_config.kv_n_heads"}, {0}};
static const llm_config_slot bloom_slots[] = {{"max_positions", "seq_length"}, {0}};
static const llm_config_slot phi3small_slots[] = {{"ffn", "ff_intermediate_size"}, {0}};
static const llm_config_slot llama4_slots[] = {
    {"ffn", "intermediate_size_mlp"}, {"expert_ffn", "intermediate_size"}, {0}};
static const llm_config_slot kimi_linear_slots[] = {
    {"experts_per_token", "num_experts_per_token"},
    {"expert_hidden", "routed_expert_hidden_size"},
    {"linear_heads", "linear_attn_config.num_heads"},
    {"linear_key_dim", "linear_attn_config.head_dim"},
    {"linear_conv", "linear_attn_config.short_conv_kernel_size"},
    {0}};
static const llm_config_slot delta_slots[] = {{"linear_heads", "linear_num_value_heads"},
                                              {"linear_key_heads", "linear_num_key_heads"},
                                              {"linear_key_dim", "linear_key_head_dim"},
                                              {"linear_value_dim", "linear_value_head_dim"},
                                              {"linear_conv", "linear_conv_kernel_dim"},
                                              {"mtp_layers", "mtp_num_hidden_layers"},
                                              {0}};
static const llm_config_slot index_slots[] = {{"index_heads", "index_n_heads"},
                                              {"index_head_dim", "index_head_dim"},
                                              {"index_topk", "index_topk"},
                                              {0}};
static const llm_config_slot minimax3_slots[] = {{"ffn", "dense_intermediate_size"},
                                                 {"expert_ffn", "intermediate_size"},
                                                 {"shared_ffn", "shared_intermediate_size"},
                                                 {"mtp_layers", "num_mtp_modules"},
                                                 {0}};
static const llm_config_slot minimax2_slots[] = {{"mtp_layers", "num_mtp_modules"}, {0}};
static const llm_config_slot ernie_slots[] = {{"experts", "moe_num_experts"},
                                              {"experts_per_token", "moe_k"},
                                              {"shared_experts", "moe_num_shared_experts"},
                                              {0}};
static const llm_config_slot hunyuan_slots[] = {{"experts_per_token", "moe_topk"},
                                                {"shared_experts", "num_shared_expert"},
                                                {"kv_share_every", "cla_share_factor"},
                                                {"dense_first", "moe_layer_num_skipped"},
                                                {0}};
static const llm_config_slot lfm2_slots[] = {{"ffn", "block_ff_dim"},
                                             {"ssm_conv", "conv_L_cache"},
                                             {"dense_first", "num_dense_layers"},
                                             {0}};
static const llm_config_slot mamba_slots[] = {{"ssm_inner", "intermediate_size"},
                                              {"ssm_state", "state_size"},
                                              {"ssm_conv", "conv_kernel"},
                                              {0}};
static const llm_config_slot mamba2_slots[] = {{"ssm_state", "state_size"},
                                               {"ssm_conv", "conv_kernel"},
                                               {"ssm_heads", "num_heads"},
                                               {"ssm_groups", "n_groups"},
                                               {0}};
static const llm_config_slot mamba_lab_slots[] = {{"ssm_state", "ssm_cfg.d_state"},
                                                  {"ssm_conv", "ssm_cfg.d_conv"},
                                                  {"ssm_groups", "ssm_cfg.ngroups"},
                                                  {"vocab_multiple", "pad_vocab_size_multiple"},
                                                  {0}};
static const llm_config_slot hybrid_slots[] = {
    {"ssm_inner", "mamba_d_ssm"},   {"ssm_state", "mamba_d_state"},   {"ssm_conv", "mamba_d_conv"},
    {"ssm_heads", "mamba_n_heads"}, {"ssm_groups", "mamba_n_groups"}, {0}};
static const llm_config_slot nemotron_h_slots[] = {
    {"ssm_state", "ssm_state_size"},
    {"ssm_conv", "conv_kernel"},
    {"ssm_heads", "mamba_num_heads"},
    {"ssm_groups", "n_groups"},
    {"expert_hidden", "moe_latent_size"},
    {"shared_ffn", "moe_shared_expert_intermediate_size"},
    {0}};
static const llm_config_slot zamba2_slots[] = {{"ssm_state", "mamba_d_state"},
                                               {"ssm_conv", "mamba_d_conv"},
                                               {"ssm_heads", "n_mamba_heads"},
                                               {"ssm_groups", "mamba_ngroups"},
                                               {"shared_blocks", "num_mem_blocks"},
                                               {"head_dim", "attention_head_dim"},
                                               {0}};
static const llm_config_slot zamba_slots[] = {{"ssm_state", "mamba_d_state"},
                                              {"ssm_conv", "mamba_d_conv"},
                                              {"ssm_dt_rank", "mamba_dt_rank"},
                                              {"head_dim", "attention_head_dim"},
                                              {0}};
static const llm_config_slot rwkv_slots[] = {
    {"ssm_inner", "attention_hidden_size"}, {"max_positions", "context_length"}, {0}};
static const llm_config_slot griffin_slots[] = {{"ssm_inner", "lru_width"},
                                                {"ssm_conv", "conv1d_width"},
                                                {"window", "attention_window_size"},
                                                {0}};
static const llm_config_slot gemma3n_slots[] = {{"per_layer_dim", "hidden_size_per_layer_input"},
                                                {"per_layer_vocab", "vocab_size_per_layer_input"},
                                                {"kv_shared_layers", "num_kv_shared_layers"},
                                                {"altup_inputs", "altup_num_inputs"},
                                                {"laurel_rank", "laurel_rank"},
                                                {0}};
static const llm_config_slot gemma4_slots[] = {{"per_layer_dim", "hidden_size_per_layer_input"},
                                               {"per_layer_vocab", "vocab_size_per_layer_input"},
                                               {"kv_shared_layers", "num_kv_shared_layers"},
                                               {"global_head_dim", "global_head_dim"},
                                               {"global_kv_heads", "num_global_key_value_heads"},
                                               {"experts_per_token", "top_k_experts"},
                                               {0}};
static const llm_config_slot longcat_slots[] = {{"layers", "num_layers"},
                                                {"ffn", "ffn_hidden_size"},
                                                {"expert_ffn", "expert_ffn_hidden_size"},
                                                {"experts_per_token", "moe_topk"},
                                                {"idle_experts", "zero_expert_num"},
                                                {0}};
static const llm_config_slot olmo_old_slots[] = {{"vocab", "embedding_size"},
                                                 {"ffn", "mlp_hidden_size"},
                                                 {"max_positions", "max_sequence_length"},
                                                 {0}};

/* ---- hooks ---- */

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

/* The first two rows of positions are for padding.  With norms behind their part (OPT-350M) there
 * is none at the end. */
static orr_code finish_opt(llm_config *c)
{
    bool is_before = true;
    uint64_t width = c->m.hidden;
    orr_code code = llm_config_bool(c, "do_layer_norm_before", &is_before);
    if (!code)
        code = llm_config_number(c, "word_embed_proj_dim", &width);
    c->m.has_no_final_norm = !is_before;
    c->m.embedding_dim = width != c->m.hidden ? width : 0;
    c->m.position_rows = c->m.max_positions + 2;
    return code;
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

/* Layers alternate, the first sees all; window_size is the window of the others. */
static orr_code finish_neo(llm_config *c)
{
    c->m.window = 256;
    c->m.position_rows = c->m.max_positions;
    const orr_code code = llm_config_number(c, "window_size", &c->m.window);
    return code ? code : llm_config_take_neo(c);
}

static orr_code finish_mpt(llm_config *c)
{
    uint64_t ratio = 4;
    const orr_code code = llm_config_number(c, "expansion_ratio", &ratio);
    c->m.ffn = ratio * c->m.hidden; /* each below 2^31 */
    if (c->m.position == ORR_MODEL_LEARNED)
        c->m.position_rows = c->m.max_positions;
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
                                 "layer_types is missing, so the layers are not determined");
    return code;
}

/* Half of the width that the file states, for each of gate and up. */
static orr_code finish_half_ffn(llm_config *c)
{
    c->m.ffn /= 2;
    return ORR_OK;
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
        return llm_config_refuse(c, v, "topk_method", "expected a string");
    c->m.has_router_bias = orr_str_is(method, "noaux_tc");
    return ORR_OK;
}

/* Up to version 1 an ordinary GPT with biases, an FFN that is not gated and positions in two
 * dimensions; its files have inner_hidden_size. */
static orr_code finish_chatglm(llm_config *c)
{
    bool is_shared = true;
    orr_json_value v;
    orr_code code = llm_config_bool(c, "multi_query_attention", &is_shared);
    if (!is_shared)
        c->m.kv_heads = c->m.heads;
    if (code || !llm_config_find(c, "inner_hidden_size", &v))
        return code;
    c->m.norm = ORR_MODEL_LAYER_NORM;
    c->m.is_gated = false;
    c->m.has_qkv_bias = c->m.has_output_bias = c->m.has_ffn_bias = true;
    c->m.kv_heads = c->m.heads;
    c->m.is_tied |= !llm_config_said(c, "is_tied");
    return ORR_OK;
}

/* A dense FFN of the hidden width beside the experts, with a norm of its own. */
static orr_code finish_arctic(llm_config *c)
{
    uint64_t every = 1;
    const orr_code code = llm_config_number(c, "moe_layer_frequency", &every);
    c->m.expert_ffn = c->m.ffn;
    c->m.ffn = c->m.hidden;
    c->m.moe_norms = 1;
    for (uint64_t i = 0; every && i < c->m.layers; i++)
        c->ffns[i] = (i + 1) % every ? ORR_FFN_DENSE : ORR_FFN_BOTH;
    c->has_ffns = true;
    return code;
}

static orr_code finish_llama4(llm_config *c)
{
    orr_json_value v;
    const orr_code code = llm_config_number(c, "attention_chunk_size", &c->m.window);
    if (llm_config_find(c, "attention_chunk_size", &v))
        llm_config_remember(c, "window", "attention_chunk_size", v);
    c->m.shared_experts = 1;
    c->m.shared_ffn = c->m.expert_ffn;
    c->m.global_every = c->m.window ? 4 : 0;
    c->m.global_at = c->m.window ? 3 : 0;
    return code;
}

/* Beside the dense FFN, each with its norms; the router scales its input and every expert. */
static orr_code finish_gemma4(llm_config *c)
{
    bool has_experts = false;
    const orr_code code = llm_config_bool(c, "enable_moe_block", &has_experts);
    if (!c->m.has_no_global_v)
        c->m.global_kv_heads = 0;
    if (!has_experts) {
        c->m.experts = 0;
        return code;
    }
    memset(c->ffns, ORR_FFN_BOTH, c->m.layers);
    c->has_ffns = true;
    c->m.moe_norms = 4;
    c->m.has_router_bias = true;
    return code;
}

/* KDA has as many heads of keys, as wide as its values. */
static orr_code finish_kimi_linear(llm_config *c)
{
    uint64_t reads = 0;
    c->m.linear_key_heads = c->m.linear_heads;
    c->m.linear_value_dim = c->m.linear_key_dim;
    const orr_code code = llm_config_number(c, "attn_res_block_size", &reads);
    c->m.has_residual_reads = reads > 0;
    c->m.has_router_bias = true;
    return code;
}

static orr_code finish_minimax(llm_config *c)
{
    c->m.linear_heads = c->m.linear_key_heads = c->m.heads;
    c->m.linear_key_dim = c->m.linear_value_dim = c->m.head_dim;
    const orr_code code = llm_config_number(c, "shared_intermediate_size", &c->m.shared_ffn);
    c->m.shared_experts = c->m.shared_ffn > 0;
    return code;
}

/* Blocks of keys that an indexer chooses, from the first layer that has one. */
static orr_code finish_minimax3(llm_config *c)
{
    orr_json_value list, v;
    uint64_t block = 0, blocks = 0, from = 0, is_on = 0;
    orr_code code =
        llm_config_number(c, "sparse_attention_config.sparse_num_index_heads", &c->m.index_heads);
    if (!code)
        code =
            llm_config_number(c, "sparse_attention_config.sparse_index_dim", &c->m.index_head_dim);
    if (!code)
        code = llm_config_number(c, "sparse_attention_config.sparse_block_size", &block);
    if (!code)
        code = llm_config_number(c, "sparse_attention_config.sparse_topk_blocks", &blocks);
    if (code || !llm_config_find(c, "sparse_attention_config.sparse_attention_freq", &list))
        return code;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v); from++)
        if (orr_json_get_u64(v, &is_on, NULL) == ORR_OK && is_on)
            break;
    c->m.index_from = from;
    c->m.index_topk = block * blocks; /* each below 2^31 */
    return ORR_OK;
}

/* The rank of dt is a sixteenth of the width, rounded up, where it is "auto". */
static orr_code take_dt_rank(llm_config *c, const char *key)
{
    orr_json_value v;
    c->m.ssm_dt_rank = (c->m.hidden + 15) / 16;
    if (!llm_config_find(c, key, &v) || orr_json_type_of(v) == ORR_JSON_STRING)
        return ORR_OK;
    return llm_config_get(c, v, key, &c->m.ssm_dt_rank);
}

/* The width inside is that of all heads, or twice the hidden one. */
static orr_code take_inner(llm_config *c, const char *expand_key, const char *dim_key)
{
    uint64_t expand = 2, dim = 0;
    orr_code code = llm_config_number(c, expand_key, &expand);
    if (!code && dim_key)
        code = llm_config_number(c, dim_key, &dim);
    if (code || c->m.ssm_inner)
        return code;
    c->m.ssm_inner = dim && c->m.ssm_heads ? dim * c->m.ssm_heads : expand * c->m.hidden;
    if (c->m.ssm_heads == 0 && dim)
        c->m.ssm_heads = c->m.ssm_inner / dim;
    return ORR_OK;
}

static orr_code finish_mamba(llm_config *c)
{
    const orr_code code = take_inner(c, "expand", NULL);
    return code ? code : take_dt_rank(c, "time_step_rank");
}

static orr_code finish_mamba2(llm_config *c)
{
    return take_inner(c, "expand", "head_dim");
}

/* The files of the mamba_ssm library; ssm_cfg.layer says which of the two it is. */
static orr_code finish_mamba_lab(llm_config *c)
{
    orr_json_value v;
    orr_str layer = {0};
    uint64_t dim = 64;
    if (llm_config_find(c, "ssm_cfg.layer", &v) && orr_json_get_str(v, &layer, NULL))
        return llm_config_not_what(c, v, "ssm_cfg.layer", "a string");
    const bool is_second = orr_str_is(layer, "Mamba2");
    if (llm_config_find(c, "attn_layer_idx", &v) && orr_json_count(v))
        return llm_config_refuse(c, v, "attn_layer_idx",
                                 "layers with attention are not supported here");
    orr_code code = take_inner(c, "ssm_cfg.expand", NULL);
    if (code || !is_second) {
        if (c->m.ssm_state == 0)
            c->m.ssm_state = 16;
        return code ? code : take_dt_rank(c, "ssm_cfg.dt_rank");
    }
    code = llm_config_number(c, "ssm_cfg.headdim", &dim);
    c->m.mixers[0] = ORR_MIX_MAMBA2;
    c->m.ssm_heads = dim ? c->m.ssm_inner / dim : 0;
    if (c->m.ssm_state == 0)
        c->m.ssm_state = 128;
    return code;
}

static orr_code finish_jamba(llm_config *c)
{
    c->m.ssm_groups = 0;
    const orr_code code = take_inner(c, "mamba_expand", NULL);
    return code ? code : take_dt_rank(c, "mamba_dt_rank");
}

static orr_code finish_bamba(llm_config *c)
{
    return take_inner(c, "mamba_expand", "mamba_d_head");
}

/* Its shared MLP is the only FFN where there are no experts. */
static orr_code finish_granite_hybrid(llm_config *c)
{
    uint64_t shared = 0;
    orr_code code = llm_config_number(c, "shared_intermediate_size", &shared);
    if (c->m.experts == 0) {
        c->m.ffn = shared ? shared : c->m.ffn;
    } else {
        c->m.shared_ffn = shared;
        c->m.shared_experts = shared > 0;
    }
    return code || !c->m.ssm_state ? code : take_inner(c, "mamba_expand", "mamba_d_head");
}

static orr_code finish_nemotron_h(llm_config *c)
{
    const orr_code code = take_inner(c, "expand", "mamba_head_dim");
    if (c->m.experts)
        c->m.has_router_bias = true;
    return code;
}

/* A shared block sees twice the width; heads are as wide as it takes. */
static void complete_block(llm_config *c)
{
    orr_model *m = &c->m;
    if (!llm_config_said(c, "head_dim") && m->heads)
        m->head_dim = 2 * m->hidden / m->heads;
    memset(m->ffns, 0, sizeof m->ffns);
    m->ffns[0] = ORR_FFN_NONE;
}

static orr_code finish_zamba2(llm_config *c)
{
    bool has_ffn = false, has_attention = false;
    uint64_t rank = 128;
    orr_code code = llm_config_number(c, "adapter_rank", &rank);
    if (!code)
        code = llm_config_bool(c, "use_shared_mlp_adapter", &has_ffn);
    if (!code)
        code = llm_config_bool(c, "use_shared_attention_adapter", &has_attention);
    c->m.block_ffn_rank = rank; /* the library builds them whatever the flag says */
    c->m.block_attention_rank = has_attention ? rank : 0;
    complete_block(c);
    return code ? code : take_inner(c, "mamba_expand", "mamba_headdim");
}

/* Blocks come in at layer 2 and then where the offset and period say (Zamba, 7B). */
static orr_code finish_zamba(llm_config *c)
{
    uint64_t heads = 1; /* each has its part of the matrices: as many parameters as one */
    orr_code code = llm_config_number(c, "n_mamba_heads", &heads);
    complete_block(c);
    for (uint64_t i = 0; i < c->m.layers; i++)
        c->mixers[i] = i == 2 || (i > 2 && i % 6 == 1) ? ORR_MIX_BLOCK : ORR_MIX_MAMBA;
    orr_json_value v;
    if (!llm_config_find(c, "layers_block_type", &v) &&
        !model_set_letters(c->m.mixers, c->mixers, c->m.layers))
        return llm_config_missing(c, "layers_block_type");
    if (!code)
        code = take_inner(c, "mamba_expand", NULL);
    return code || c->m.ssm_dt_rank ? code : take_dt_rank(c, "mamba_dt_rank");
}

static orr_code finish_rwkv(llm_config *c)
{
    if (c->m.ssm_inner == 0)
        c->m.ssm_inner = c->m.hidden;
    return ORR_OK;
}

static orr_code finish_griffin(llm_config *c)
{
    if (c->m.ssm_inner == 0)
        c->m.ssm_inner = c->m.hidden;
    c->m.ssm_heads = c->m.heads;
    for (size_t i = 0; c->m.mixers[i]; i++)
        if (c->m.mixers[i] == ORR_MIX_ALL)
            c->m.mixers[i] = ORR_MIX_WINDOW;
    c->m.window = 2048; /* all that attend have it, though the list of layers does not say so */
    const orr_code code = llm_config_number(c, "attention_window_size", &c->m.window);
    return code ? code : finish_half_ffn(c);
}

/* Two thirds of the width, rounded up to a multiple, unless the file says it is final. */
static orr_code finish_lfm2(llm_config *c)
{
    bool is_adjusted = true;
    uint64_t multiple = 256;
    orr_json_value v;
    orr_code code = llm_config_bool(c, "block_auto_adjust_ff_dim", &is_adjusted);
    if (!code)
        code = llm_config_number(c, "block_multiple_of", &multiple);
    if (code || !is_adjusted || multiple == 0 || llm_config_find(c, "num_experts", &v))
        return code;
    c->m.ffn = (2 * c->m.ffn / 3 + multiple - 1) / multiple * multiple;
    return ORR_OK;
}

/* Each of its layers is two of ours: experts beside the first FFN, none beside the second. */
static orr_code finish_longcat(llm_config *c)
{
    c->m.layers *= 2;
    c->m.has_router_bias = true;
    if (c->m.layers > MODEL_MOST_LAYERS)
        return ORR_OK;
    for (uint64_t i = 0; i < c->m.layers; i++)
        c->ffns[i] = i % 2 ? ORR_FFN_DENSE : ORR_FFN_BOTH;
    c->has_ffns = true;
    return ORR_OK;
}

/* Layers share keys and values in groups if use_cla says so. */
static orr_code finish_hunyuan(llm_config *c)
{
    bool is_shared = false, has_shared_expert = true;
    orr_code code = llm_config_bool(c, "use_cla", &is_shared);
    if (!code)
        code = llm_config_bool(c, "use_mixed_mlp_moe", &has_shared_expert);
    if (!is_shared)
        c->m.kv_share_every = 0;
    if (!has_shared_expert)
        c->m.shared_experts = 0;
    if (c->m.experts <= 1)
        c->m.experts = 0;
    return code;
}

static orr_code finish_baichuan(llm_config *c)
{
    if (c->m.hidden >= 5120)
        c->m.position = ORR_MODEL_ALIBI;
    return ORR_OK;
}

static orr_code finish_olmo_old(llm_config *c)
{
    uint64_t ratio = 4;
    const orr_code code = llm_config_number(c, "mlp_ratio", &ratio);
    if (!llm_config_said(c, "ffn"))
        c->m.ffn = ratio * c->m.hidden;
    c->m.ffn /= 2;
    return code;
}

/* ---- the table ---- */

#define GPT_BASE \
    .norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .has_output_bias = true, .has_ffn_bias = true
#define LLAMA_BASE .block_norms = 2, .is_gated = true
#define COHERE_BASE                                                                                \
    .norm = ORR_MODEL_LAYER_NORM_NO_BIAS, .block_norms = 1, .is_parallel = true, .is_gated = true, \
    .is_tied = true
#define GEMMA_BASE .block_norms = 4, .is_gated = true, .is_tied = true, .head_dim = 256
#define QK_HEAD .qk_norm = ORR_MODEL_QK_NORM_HEAD
#define QK_ALL .qk_norm = ORR_MODEL_QK_NORM_ALL_HEADS

#define BASE(...)      \
    &(const orr_model) \
    {                  \
        __VA_ARGS__    \
    }

static const llm_family families[] = {
    /* RMS norms, gated FFNs. */
    {.types =
         "llama llava granite Yi aquila aquila3 xverse helium cwm nanbeige exaone minicpm smollm",
     .base = BASE(LLAMA_BASE),
     .flags = llama_flags},
    {.types = "bitnet", .base = BASE(LLAMA_BASE, .is_tied = true), .flags = llama_flags},
    {.types = "arcee", .base = BASE(.block_norms = 2), .flags = llama_flags},
    {.types = "apertus", .base = BASE(.block_norms = 2, QK_HEAD), .flags = llama_flags},
    {.types = "internlm internlm2", .base = BASE(LLAMA_BASE), .flags = internlm_flags},
    {.types = "internlm3", .base = BASE(LLAMA_BASE), .flags = internlm3_flags},
    {.types = "baichuan", .base = BASE(LLAMA_BASE), .flags = tied_only, .finish = finish_baichuan},
    {.types = "seed_oss",
     .base = BASE(LLAMA_BASE, .has_qkv_bias = true),
     .flags = seed_flags,
     .needs_kv_heads = true},
    {.types = "smollm3",
     .base = BASE(LLAMA_BASE, .is_tied = true),
     .flags = llama_flags,
     .windows = LLM_WINDOWS_ASKED},
    {.types = "ernie4_5",
     .base = BASE(LLAMA_BASE, .is_tied = true),
     .flags = ernie_flags,
     .needs_kv_heads = true},
    {.types = "ernie4_5_moe",
     .base = BASE(LLAMA_BASE, .is_tied = true, .has_router_bias = true),
     .flags = ernie_flags,
     .slots = ernie_slots,
     .needs_kv_heads = true},
    {.types = "mistral ministral ministral3",
     .base = BASE(LLAMA_BASE, .window = 4096),
     .flags = tied_only,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = "mixtral",
     .base = BASE(LLAMA_BASE),
     .flags = tied_only,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = "llama4_text llama4",
     .base = BASE(LLAMA_BASE),
     .flags = attention_flags,
     .slots = llama4_slots,
     .needs_kv_heads = true,
     .finish = finish_llama4},
    {.types = "mllama_text_model",
     .base = BASE(LLAMA_BASE),
     .flags = tied_only,
     .mixer = ORR_MIX_IMAGE,
     .needs_kv_heads = true},
    {.types = "granitemoe", .base = BASE(LLAMA_BASE), .flags = attention_flags},
    {.types = "granitemoeshared",
     .base = BASE(LLAMA_BASE),
     .flags = attention_flags,
     .finish = finish_granite_hybrid},
    {.types = "phi3 phi4_multimodal phi4mm",
     .base = BASE(LLAMA_BASE),
     .flags = tied_only,
     .windows = LLM_WINDOWS_ALL},
    {.types = "phimoe",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM),
     .flags = phimoe_flags,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},
    {.types = "phi3small",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_gated = true, .is_tied = true),
     .flags = tied_only,
     .slots = phi3small_slots,
     .needs_kv_heads = true},
    {.types = "qwen",
     .base = BASE(LLAMA_BASE, .has_qkv_bias = true),
     .flags = qwen_flags,
     .slots = qwen_slots,
     .finish = finish_half_ffn},
    {.types = "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text mimo",
     .base = BASE(LLAMA_BASE, .has_qkv_bias = true, .window = 4096),
     .flags = tied_only,
     .windows = LLM_WINDOWS_LATE,
     .needs_kv_heads = true},
    {.types = "qwen2_moe",
     .base = BASE(LLAMA_BASE, .has_qkv_bias = true, .window = 4096),
     .flags = qwen2_moe_flags,
     .windows = LLM_WINDOWS_ASKED,
     .needs_kv_heads = true,
     .finish = finish_qwen2_moe},
    {.types = "qwen3 qwen3_vl_text qwen3_omni_text",
     .base = BASE(LLAMA_BASE, QK_HEAD, .head_dim = 128, .window = 4096),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_LATE,
     .needs_kv_heads = true},
    {.types = "qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text",
     .base = BASE(LLAMA_BASE, QK_HEAD, .window = 4096),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_ASKED,
     .needs_kv_heads = true},
    {.types = "qwen3_next qwen3_5_moe_text qwen3_5_text qwen3_5_moe qwen3_5",
     .base = BASE(LLAMA_BASE, QK_HEAD, .attention_gate = ORR_MODEL_GATE_WIDE, .mixers = "ddda"),
     .flags = attention_flags,
     .slots = delta_slots,
     .mixer = ORR_MIX_DELTA,
     .needs_kv_heads = true,
     .finish = finish_qwen2_moe},
    {.types = "olmo_hybrid",
     .base = BASE(LLAMA_BASE, QK_ALL, .mixers = "ddda"),
     .flags = attention_flags,
     .slots = delta_slots,
     .mixer = ORR_MIX_DELTA},
    {.types = "deepseek", .base = BASE(LLAMA_BASE), .flags = attention_flags},
    {.types = "deepseek_v2 minicpm3 mistral4",
     .base = BASE(LLAMA_BASE, .kv_lora_rank = 512),
     .flags = llama_flags},
    {.types = "deepseek_v3 kimi_k2 glm4_moe_lite deepseek_v32 glm_moe_dsa",
     .base = BASE(LLAMA_BASE, .kv_lora_rank = 512),
     .flags = attention_flags,
     .slots = index_slots,
     .finish = finish_deepseek_v3},
    {.types = "longcat_flash",
     .base = BASE(LLAMA_BASE, .kv_lora_rank = 512),
     .flags = attention_flags,
     .slots = longcat_slots,
     .finish = finish_longcat},
    {.types = "kimi_linear",
     .base =
         BASE(LLAMA_BASE, .kv_lora_rank = 512, .position = ORR_MODEL_NO_POSITION, .mixers = "a"),
     .flags = kimi_linear_flags,
     .slots = kimi_linear_slots,
     .mixer = ORR_MIX_KDA,
     .finish = finish_kimi_linear},
    {.types = "glm4_moe glm4v_moe glm4v_moe_text",
     .base = BASE(LLAMA_BASE, .has_router_bias = true),
     .flags = glm_flags,
     .needs_kv_heads = true},
    {.types = "glm", .base = BASE(LLAMA_BASE), .flags = glm_flags, .needs_kv_heads = true},
    {.types = "glm4 glm4v_text",
     .base = BASE(.block_norms = 4, .is_gated = true),
     .flags = glm_flags,
     .needs_kv_heads = true},
    {.types = "chatglm",
     .base = BASE(LLAMA_BASE),
     .flags = chatglm_flags,
     .slots = chatglm_slots,
     .finish = finish_chatglm},
    {.types = "dots1 hy_v3 exaone_moe",
     .base = BASE(LLAMA_BASE, QK_HEAD, .has_router_bias = true),
     .flags = attention_flags},
    {.types = "bailing_moe bailing_moe_v2", .base = BASE(LLAMA_BASE), .flags = bailing_flags},
    {.types = "hunyuan_v1_dense",
     .base = BASE(LLAMA_BASE, QK_HEAD),
     .flags = hunyuan_flags,
     .slots = hunyuan_slots},
    {.types = "hunyuan_v1_moe hunyuan",
     .base = BASE(LLAMA_BASE, QK_HEAD),
     .flags = hunyuan_flags,
     .slots = hunyuan_slots,
     .finish = finish_hunyuan},
    {.types = "exaone4",
     .base = BASE(LLAMA_BASE, QK_HEAD),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},
    {.types = "grok-1 grok",
     .base = BASE(.block_norms = 4, .is_gated = true, .is_tied = true),
     .flags = tied_only,
     .needs_kv_heads = true},
    {.types = "arctic",
     .base = BASE(LLAMA_BASE),
     .flags = tied_only,
     .needs_kv_heads = true,
     .finish = finish_arctic},
    {.types = "minimax_text_01 minimax minimax_m1",
     .base = BASE(LLAMA_BASE),
     .flags = tied_only,
     .mixer = ORR_MIX_LIGHTNING,
     .needs_kv_heads = true,
     .finish = finish_minimax},
    {.types = "minimax_m2",
     .base = BASE(LLAMA_BASE, QK_ALL, .has_router_bias = true),
     .flags = minimax_flags,
     .slots = minimax2_slots,
     .needs_kv_heads = true},
    {.types = "minimax_m3 minimax_m3_text minimax_m3_vl_text",
     .base = BASE(LLAMA_BASE, QK_HEAD, .has_router_bias = true, .shared_experts = 1),
     .flags = minimax_flags,
     .slots = minimax3_slots,
     .needs_kv_heads = true,
     .finish = finish_minimax3},
    {.types = "gpt_oss",
     .base = BASE(LLAMA_BASE,
                  .has_qkv_bias = true,
                  .has_output_bias = true,
                  .has_ffn_bias = true,
                  .has_router_bias = true,
                  .has_sinks = true,
                  .has_scaled_rotary = true,
                  .has_clamped_gate = true,
                  .head_dim = 64,
                  .window = 128,
                  .global_every = 2),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true},
    {.types = "gemma",
     .base = BASE(LLAMA_BASE, .is_tied = true, .head_dim = 256),
     .flags = attention_flags,
     .needs_kv_heads = true},
    {.types = "gemma2",
     .base = BASE(GEMMA_BASE, .window = 4096, .global_every = 2),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true},
    {.types = "gemma3_text",
     .base = BASE(GEMMA_BASE,
                  QK_HEAD,
                  .vocab = 262208,
                  .max_positions = 131072,
                  .heads = 8,
                  .kv_heads = 4,
                  .window = 4096,
                  .global_every = 6),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},
    {.types = "gemma3n_text",
     .base = BASE(GEMMA_BASE,
                  QK_HEAD,
                  .vocab = 262400,
                  .window = 512,
                  .global_every = 5,
                  .per_layer_vocab = 262144,
                  .per_layer_dim = 256,
                  .altup_inputs = 4,
                  .laurel_rank = 64),
     .flags = attention_flags,
     .slots = gemma3n_slots,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true},
    {.types = "gemma4_text",
     .base = BASE(GEMMA_BASE, QK_HEAD, .global_head_dim = 512, .window = 512, .global_every = 6),
     .flags = gemma4_flags,
     .slots = gemma4_slots,
     .windows = LLM_WINDOWS_MIXED,
     .needs_kv_heads = true,
     .finish = finish_gemma4},
    {.types = "olmo",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_PLAIN_NORM),
     .flags = attention_flags},
    {.types = "hf_olmo",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_PLAIN_NORM),
     .flags = olmo_old_flags,
     .slots = olmo_old_slots,
     .has_default_ffn = true,
     .finish = finish_olmo_old},
    {.types = "olmo2 olmoe flex_olmo", .base = BASE(LLAMA_BASE, QK_ALL), .flags = attention_flags},
    {.types = "olmo3",
     .base = BASE(LLAMA_BASE, QK_ALL, .window = 4096, .global_every = 4),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},

    /* Layer norms. */
    {.types = "stablelm stablelm_epoch",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM),
     .flags = stablelm_flags,
     .needs_kv_heads = true},
    {.types = "orion",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM),
     .flags = attention_flags},
    {.types = "dbrx",
     .base = BASE(LLAMA_BASE, .norm = ORR_MODEL_LAYER_NORM_NO_BIAS),
     .flags = tied_only,
     .slots = dbrx_slots},
    {.types = "nemotron",
     .base = BASE(.norm = ORR_MODEL_LAYER_NORM, .block_norms = 2),
     .flags = llama_flags,
     .needs_kv_heads = true},
    {.types = "cohere", .base = BASE(COHERE_BASE), .flags = cohere_flags},
    {.types = "cohere2",
     .base = BASE(COHERE_BASE, .window = 4096, .global_every = 4),
     .flags = attention_flags,
     .windows = LLM_WINDOWS_MIXED},
    {.types = "gpt2 gpt-sw3",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED),
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_learned},
    {.types = "openai-gpt",
     .base = BASE(GPT_BASE,
                  .has_qkv_bias = true,
                  .is_tied = true,
                  .has_no_final_norm = true,
                  .position = ORR_MODEL_LEARNED),
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_learned},
    {.types = "gpt_bigcode",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED),
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_bigcode},
    {.types = "gpt_neo",
     .base = BASE(GPT_BASE, .is_tied = true, .position = ORR_MODEL_LEARNED, .global_every = 2),
     .flags = tied_only,
     .has_default_ffn = true,
     .finish = finish_neo},
    {.types = "gpt_neox",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_parallel = true),
     .flags = neox_flags},
    {.types = "gptj codegen",
     .base = BASE(.norm = ORR_MODEL_LAYER_NORM,
                  .block_norms = 1,
                  .is_parallel = true,
                  .has_ffn_bias = true,
                  .has_head_bias = true),
     .flags = tied_only,
     .has_default_ffn = true},
    {.types = "phi",
     .base = BASE(.norm = ORR_MODEL_LAYER_NORM,
                  .block_norms = 1,
                  .is_parallel = true,
                  .has_qkv_bias = true,
                  .has_output_bias = true,
                  .has_ffn_bias = true,
                  .has_head_bias = true),
     .flags = phi_flags},
    {.types = "persimmon",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, QK_HEAD),
     .flags = persimmon_flags},
    {.types = "opt",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_tied = true, .position = ORR_MODEL_LEARNED),
     .flags = opt_flags,
     .finish = finish_opt},
    {.types = "bloom",
     .base = BASE(GPT_BASE,
                  .has_qkv_bias = true,
                  .is_tied = true,
                  .position = ORR_MODEL_ALIBI,
                  .has_embedding_norm = true),
     .flags = tied_only,
     .slots = bloom_slots,
     .has_default_ffn = true},
    {.types = "falcon RefinedWebModel",
     .base =
         BASE(.norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .is_parallel = true, .is_tied = true),
     .flags = falcon_flags,
     .has_default_ffn = true,
     .finish = finish_falcon},
    /* Falcon-40B before it was called so: the new architecture, though its files do not say so. */
    {.types = "RefinedWeb",
     .base =
         BASE(.norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .is_parallel = true, .is_tied = true),
     .flags = falcon_flags,
     .has_default_ffn = true},
    {.types = "mpt",
     .base = BASE(.norm = ORR_MODEL_LAYER_NORM_NO_BIAS,
                  .block_norms = 2,
                  .is_tied = true,
                  .position = ORR_MODEL_ALIBI),
     .flags = mpt_flags,
     .slots = mpt_slots,
     .has_default_ffn = true,
     .finish = finish_mpt},
    {.types = "starcoder2",
     .base = BASE(GPT_BASE, .has_qkv_bias = true, .is_tied = true),
     .flags = starcoder2_flags,
     .windows = LLM_WINDOWS_ALL,
     .needs_kv_heads = true},

    /* State spaces, and attention among them. */
    {.types = "mamba falcon_mamba",
     .base = BASE(.block_norms = 2,
                  .is_tied = true,
                  .has_conv_bias = true,
                  .ssm_state = 16,
                  .ssm_conv = 4,
                  .position = ORR_MODEL_NO_POSITION,
                  .ffns = "n"),
     .flags = mamba_flags,
     .slots = mamba_slots,
     .mixer = ORR_MIX_MAMBA,
     .has_no_heads = true,
     .has_no_ffn = true,
     .finish = finish_mamba},
    {.types = "mamba2",
     .base = BASE(.block_norms = 2,
                  .has_conv_bias = true,
                  .ssm_state = 128,
                  .ssm_conv = 4,
                  .ssm_groups = 8,
                  .position = ORR_MODEL_NO_POSITION,
                  .ffns = "n"),
     .flags = mamba_flags,
     .slots = mamba2_slots,
     .mixer = ORR_MIX_MAMBA2,
     .has_no_heads = true,
     .has_no_ffn = true,
     .finish = finish_mamba2},
    {.types = "mamba_ssm",
     .base = BASE(.block_norms = 2,
                  .is_tied = true,
                  .has_conv_bias = true,
                  .ssm_conv = 4,
                  .ssm_groups = 1,
                  .vocab_multiple = 8,
                  .position = ORR_MODEL_NO_POSITION,
                  .ffns = "n"),
     .flags = mamba_flags,
     .slots = mamba_lab_slots,
     .mixer = ORR_MIX_MAMBA,
     .has_no_heads = true,
     .has_no_ffn = true,
     .finish = finish_mamba_lab},
    {.types = "jamba",
     .base = BASE(LLAMA_BASE,
                  .has_conv_bias = true,
                  .has_ssm_norms = true,
                  .ssm_state = 16,
                  .ssm_conv = 4,
                  .position = ORR_MODEL_NO_POSITION,
                  .mixers = "mmmmammm"),
     .flags = hybrid_flags,
     .slots = hybrid_slots,
     .mixer = ORR_MIX_MAMBA,
     .needs_kv_heads = true,
     .finish = finish_jamba},
    {.types = "bamba",
     .base = BASE(LLAMA_BASE, .has_conv_bias = true, .ssm_conv = 4, .ssm_groups = 1),
     .flags = hybrid_flags,
     .slots = hybrid_slots,
     .mixer = ORR_MIX_MAMBA2,
     .needs_kv_heads = true,
     .finish = finish_bamba},
    {.types = "granitemoehybrid",
     .base = BASE(LLAMA_BASE, .has_conv_bias = true, .ssm_conv = 4, .ssm_groups = 1),
     .flags = hybrid_flags,
     .slots = hybrid_slots,
     .mixer = ORR_MIX_MAMBA2,
     .needs_kv_heads = true,
     .finish = finish_granite_hybrid},
    {.types = "falcon_h1",
     .base = BASE(LLAMA_BASE,
                  .has_conv_bias = true,
                  .has_no_ssm_gate_norm = true,
                  .ssm_conv = 4,
                  .ssm_groups = 1),
     .flags = hybrid_flags,
     .slots = hybrid_slots,
     .mixer = ORR_MIX_BOTH,
     .needs_kv_heads = true,
     .finish = finish_bamba},
    {.types = "nemotron_h",
     .base = BASE(.block_norms = 2,
                  .has_conv_bias = true,
                  .ssm_conv = 4,
                  .ssm_groups = 8,
                  .position = ORR_MODEL_NO_POSITION),
     .flags = hybrid_flags,
     .slots = nemotron_h_slots,
     .mixer = ORR_MIX_MAMBA2,
     .needs_kv_heads = true,
     .finish = finish_nemotron_h},
    {.types = "zamba2",
     .base =
         BASE(LLAMA_BASE, .is_tied = true, .has_conv_bias = true, .ssm_conv = 4, .ssm_groups = 1),
     .flags = tied_only,
     .slots = zamba2_slots,
     .mixer = ORR_MIX_MAMBA2,
     .finish = finish_zamba2},
    {.types = "zamba",
     .base =
         BASE(LLAMA_BASE, .is_tied = true, .has_conv_bias = true, .ssm_state = 16, .ssm_conv = 4),
     .flags = tied_only,
     .slots = zamba_slots,
     .mixer = ORR_MIX_MAMBA,
     .finish = finish_zamba},
    {.types = "recurrent_gemma",
     .base = BASE(LLAMA_BASE,
                  .is_tied = true,
                  .has_output_bias = true,
                  .has_ffn_bias = true,
                  .ssm_conv = 4,
                  .window = 2048,
                  .mixers = "rrw"),
     .flags = tied_only,
     .slots = griffin_slots,
     .mixer = ORR_MIX_RECURRENT,
     .finish = finish_griffin},
    {.types = "rwkv",
     .base = BASE(.norm = ORR_MODEL_LAYER_NORM,
                  .block_norms = 2,
                  .has_embedding_norm = true,
                  .position = ORR_MODEL_NO_POSITION),
     .flags = tied_only,
     .slots = rwkv_slots,
     .mixer = ORR_MIX_RWKV,
     .has_default_ffn = true,
     .has_no_heads = true,
     .finish = finish_rwkv},
    {.types = "lfm2 lfm2_moe",
     .base = BASE(LLAMA_BASE, QK_HEAD, .is_tied = true, .ssm_conv = 3),
     .flags = lfm2_flags,
     .slots = lfm2_slots,
     .mixer = ORR_MIX_CONVOLUTION,
     .needs_kv_heads = true,
     .finish = finish_lfm2},
};

/* Is a type one of those, with spaces between? */
static bool is_among(const char *types, orr_str type)
{
    for (const char *t = types; *t;) {
        const size_t n = strcspn(t, " ");
        if (n == type.len && memcmp(t, type.ptr, n) == 0)
            return true;
        t += n + (t[n] == ' ');
    }
    return false;
}

const llm_family *llm_family_find(orr_str type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (is_among(families[i].types, type))
            return &families[i];
    return NULL;
}

static const llm_family other = {
    .types = "", .base = BASE(LLAMA_BASE), .flags = llama_flags, .windows = LLM_WINDOWS_ALL};

const llm_family *llm_family_fallback(void)
{
    return &other;
}

/* ---- what is no such model, or more than the rows can say ---- */

static const struct {
    const char *types, *why;
} refused[] = {
    {"t5 mt5 umt5 byt5 longt5 switch_transformers bart mbart pegasus marian m2m_100 nllb-moe blenderbot"
     " led whisper t5gemma t5gemma2 encoder-decoder prophetnet fsmt bigbird_pegasus plbart mvp",
     "models with an encoder are not supported, only decoders"},
    {"bert roberta xlm-roberta distilbert albert electra deberta deberta-v2 modernbert nomic_bert"
     " camembert mpnet longformer ernie xlnet big_bird eurobert",
     "encoders are not supported, only decoders"},
    {"nemotron-nas deci decilm", "layers of different shapes are not supported"},
    {"jetmoe", "experts of attention are not supported"},
    {"rwkv5 rwkv6 rwkv7 rwkv_world", "only version 4 of RWKV is supported"},
    {"xlstm", "xLSTM is not supported"},
    {"deepseek_v4", "compressed attention and hyper-connections (DeepSeek-V4) are not supported"},
    {"phi4flash", "layers that share the memory of others (SambaY) are not supported"},
    {"ernie4_5_vl_moe_text", "experts of two sizes in one layer are not supported"},
};

const char *llm_family_refused(orr_str type)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_among(refused[i].types, type))
            return refused[i].why;
    return NULL;
}
