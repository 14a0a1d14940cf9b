/* SPDX-License-Identifier: Apache-2.0 */
/* model_families.h - models of every family that a config.json is understood of: the sizes that
 * their files state, the parameters that we count, and the number that is published.
 *
 * JSON is written with ' for ".  docs/format/families.md lists the same models. */
#ifndef ORR_TESTS_MODEL_FAMILIES_H
#define ORR_TESTS_MODEL_FAMILIES_H

#include <stdint.h>

typedef enum model_origin {
    ORIGIN_WEIGHTS, /* counted over the published weights */
    ORIGIN_BUILT,   /* of the model that transformers 5.16 builds of the same file, rounded */
    ORIGIN_CARD,    /* stated by its makers, rounded */
    ORIGIN_CLOSED   /* not published to a thousandth: a closed form over the same sizes */
} model_origin;

typedef struct model_row {
    const char *family, *name;
    model_origin origin;
    uint64_t counted;
    uint64_t published, within; /* a thousandth, or half of its last digit */
    const char *config;
} model_row;

static const model_row model_rows[] = {
    {"GPT-2", "GPT-2 XL", ORIGIN_WEIGHTS, 1557611200ull, 1557611200ull, 1557611ull,
     "{'model_type': 'gpt2', 'n_embd': 1600, 'n_layer': 48, 'n_head': 25, 'vocab_size': "
     "50257, 'n_positions': 1024, 'n_ctx': 1024}"},
    {"GPT-2", "Cerebras-GPT 13B", ORIGIN_BUILT, 12853386240ull, 12850000000ull, 12850000ull,
     "{'model_type': 'gpt2', 'n_embd': 5120, 'n_layer': 40, 'n_head': 40, 'n_inner': "
     "20480, 'vocab_size': 50257, 'n_positions': 2048}"},
    {"GPT", "GPT (2018)", ORIGIN_WEIGHTS, 116534784ull, 116534784ull, 116534ull,
     "{'model_type': 'openai-gpt', 'n_embd': 768, 'n_layer': 12, 'n_head': 12, "
     "'vocab_size': 40478, 'n_positions': 512}"},
    {"GPT-Neo", "GPT-Neo 2.7B", ORIGIN_WEIGHTS, 2651307520ull, 2651307520ull, 2651307ull,
     "{'model_type': 'gpt_neo', 'hidden_size': 2560, 'num_layers': 32, 'num_heads': 20, "
     "'vocab_size': 50257, 'max_position_embeddings': 2048, 'window_size': 256, "
     "'attention_types': [[['global', 'local'], 16]]}"},
    {"GPT-J", "GPT-J 6B", ORIGIN_WEIGHTS, 6050882784ull, 6050882784ull, 6050882ull,
     "{'model_type': 'gptj', 'n_embd': 4096, 'n_layer': 28, 'n_head': 16, 'vocab_size': "
     "50400, 'n_positions': 2048, 'tie_word_embeddings': false}"},
    {"CodeGen", "CodeGen 16B", ORIGIN_BUILT, 16032155648ull, 16030000000ull, 16030000ull,
     "{'model_type': 'codegen', 'n_embd': 6144, 'n_layer': 34, 'n_head': 24, 'vocab_size':"
     " 51200, 'n_positions': 2048, 'tie_word_embeddings': false}"},
    {"GPT-NeoX", "GPT-NeoX 20B", ORIGIN_WEIGHTS, 20554567680ull, 20554567680ull, 20554567ull,
     "{'model_type': 'gpt_neox', 'hidden_size': 6144, 'num_hidden_layers': 44, "
     "'num_attention_heads': 64, 'intermediate_size': 24576, 'vocab_size': 50432, "
     "'max_position_embeddings': 2048}"},
    {"GPT-NeoX", "Pythia 12B", ORIGIN_WEIGHTS, 11846072320ull, 11846072320ull, 11846072ull,
     "{'model_type': 'gpt_neox', 'hidden_size': 5120, 'num_hidden_layers': 36, "
     "'num_attention_heads': 40, 'intermediate_size': 20480, 'vocab_size': 50688, "
     "'max_position_embeddings': 2048}"},
    {"OPT", "OPT 125M", ORIGIN_WEIGHTS, 125239296ull, 125239296ull, 125239ull,
     "{'model_type': 'opt', 'hidden_size': 768, 'num_hidden_layers': 12, "
     "'num_attention_heads': 12, 'ffn_dim': 3072, 'vocab_size': 50272, "
     "'max_position_embeddings': 2048, 'word_embed_proj_dim': 768}"},
    {"OPT", "OPT 350M", ORIGIN_WEIGHTS, 331196416ull, 331196416ull, 331196ull,
     "{'model_type': 'opt', 'hidden_size': 1024, 'num_hidden_layers': 24, "
     "'num_attention_heads': 16, 'ffn_dim': 4096, 'vocab_size': 50272, "
     "'max_position_embeddings': 2048, 'word_embed_proj_dim': 512, 'do_layer_norm_before':"
     " false}"},
    {"OPT", "OPT 66B", ORIGIN_BUILT, 65719701504ull, 65700000000ull, 65700000ull,
     "{'model_type': 'opt', 'hidden_size': 9216, 'num_hidden_layers': 64, "
     "'num_attention_heads': 72, 'ffn_dim': 36864, 'vocab_size': 50272, "
     "'max_position_embeddings': 2048, 'word_embed_proj_dim': 9216}"},
    {"BLOOM", "BLOOM 176B", ORIGIN_WEIGHTS, 176247271424ull, 176247271424ull, 176247271ull,
     "{'model_type': 'bloom', 'n_layer': 70, 'n_head': 112, 'hidden_size': 14336, "
     "'vocab_size': 250880, 'seq_length': 2048}"},
    {"BLOOM", "BLOOM 7B1", ORIGIN_WEIGHTS, 7069016064ull, 7069016064ull, 7069016ull,
     "{'model_type': 'bloom', 'n_layer': 30, 'n_head': 32, 'hidden_size': 4096, "
     "'vocab_size': 250880, 'seq_length': 2048}"},
    {"Falcon", "Falcon 7B", ORIGIN_WEIGHTS, 6921720704ull, 6921720704ull, 6921720ull,
     "{'model_type': 'falcon', 'hidden_size': 4544, 'num_hidden_layers': 32, "
     "'num_attention_heads': 71, 'vocab_size': 65024, 'multi_query': true, "
     "'parallel_attn': true, 'new_decoder_architecture': false, 'bias': false, 'alibi': "
     "false}"},
    {"Falcon", "Falcon 180B", ORIGIN_WEIGHTS, 179522565120ull, 179522565120ull, 179522565ull,
     "{'model_type': 'falcon', 'hidden_size': 14848, 'num_hidden_layers': 80, "
     "'num_attention_heads': 232, 'num_kv_heads': 8, 'vocab_size': 65024, "
     "'tie_word_embeddings': false, 'parallel_attn': true, 'new_decoder_architecture': "
     "true, 'bias': false, 'alibi': false}"},
    {"Falcon", "Falcon2 11B", ORIGIN_BUILT, 11102822400ull, 11100000000ull, 11100000ull,
     "{'model_type': 'falcon', 'hidden_size': 4096, 'num_hidden_layers': 60, "
     "'num_attention_heads': 32, 'num_kv_heads': 8, 'vocab_size': 65024, 'parallel_attn': "
     "true, 'new_decoder_architecture': true, 'num_ln_in_parallel_attn': 1, "
     "'ffn_hidden_size': 16384, 'bias': false, 'alibi': false, 'tie_word_embeddings': "
     "false}"},
    {"MPT", "MPT 7B", ORIGIN_WEIGHTS, 6649286656ull, 6649286656ull, 6649286ull,
     "{'model_type': 'mpt', 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, "
     "'expansion_ratio': 4, 'vocab_size': 50432, 'max_seq_len': 2048, 'no_bias': true, "
     "'attn_config': {'alibi': true, 'attn_type': 'multihead_attention', 'qk_ln': false}}"},
    {"MPT", "MPT 30B", ORIGIN_BUILT, 29957200896ull, 29960000000ull, 29960000ull,
     "{'model_type': 'mpt', 'd_model': 7168, 'n_layers': 48, 'n_heads': 64, "
     "'expansion_ratio': 4, 'vocab_size': 50432, 'max_seq_len': 8192, 'no_bias': true, "
     "'attn_config': {'alibi': true, 'qk_ln': false}}"},
    {"Llama", "LLaMA 65B", ORIGIN_WEIGHTS, 65285660672ull, 65285660672ull, 65285660ull,
     "{'model_type': 'llama', 'hidden_size': 8192, 'num_hidden_layers': 80, "
     "'num_attention_heads': 64, 'intermediate_size': 22016, 'vocab_size': 32000, "
     "'max_position_embeddings': 2048}"},
    {"Llama", "Llama 2 7B", ORIGIN_WEIGHTS, 6738415616ull, 6738415616ull, 6738415ull,
     "{'model_type': 'llama', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 32000, "
     "'num_key_value_heads': 32}"},
    {"Llama", "Llama 3.1 405B", ORIGIN_WEIGHTS, 405853388800ull, 405853388800ull, 405853388ull,
     "{'model_type': 'llama', 'hidden_size': 16384, 'num_hidden_layers': 126, "
     "'num_attention_heads': 128, 'intermediate_size': 53248, 'vocab_size': 128256, "
     "'num_key_value_heads': 8}"},
    {"Llama", "Llama 3.2 1B", ORIGIN_WEIGHTS, 1235814400ull, 1235814400ull, 1235814ull,
     "{'model_type': 'llama', 'hidden_size': 2048, 'num_hidden_layers': 16, "
     "'num_attention_heads': 32, 'intermediate_size': 8192, 'vocab_size': 128256, "
     "'num_key_value_heads': 8, 'head_dim': 64, 'tie_word_embeddings': true}"},
    {"Llama", "Yi 34B", ORIGIN_WEIGHTS, 34388917248ull, 34388917248ull, 34388917ull,
     "{'model_type': 'llama', 'hidden_size': 7168, 'num_hidden_layers': 60, "
     "'num_attention_heads': 56, 'intermediate_size': 20480, 'vocab_size': 64000, "
     "'num_key_value_heads': 8}"},
    {"Llama", "DeepSeek LLM 67B", ORIGIN_BUILT, 67425001472ull, 67400000000ull, 67400000ull,
     "{'model_type': 'llama', 'hidden_size': 8192, 'num_hidden_layers': 95, "
     "'num_attention_heads': 64, 'intermediate_size': 22016, 'vocab_size': 102400, "
     "'num_key_value_heads': 8}"},
    {"Llama", "SmolLM2 1.7B", ORIGIN_WEIGHTS, 1711376384ull, 1711376384ull, 1711376ull,
     "{'model_type': 'llama', 'hidden_size': 2048, 'num_hidden_layers': 24, "
     "'num_attention_heads': 32, 'intermediate_size': 8192, 'vocab_size': 49152, "
     "'num_key_value_heads': 32, 'tie_word_embeddings': true}"},
    {"Llama", "Falcon3 10B", ORIGIN_WEIGHTS, 10305653760ull, 10305653760ull, 10305653ull,
     "{'model_type': 'llama', 'hidden_size': 3072, 'num_hidden_layers': 40, "
     "'num_attention_heads': 12, 'intermediate_size': 23040, 'vocab_size': 131072, "
     "'num_key_value_heads': 4, 'head_dim': 256}"},
    {"Llama 4", "Llama 4 Scout (text)", ORIGIN_BUILT, 107769861120ull, 107800000000ull,
     107800000ull,
     "{'model_type': 'llama4', 'text_config': {'model_type': 'llama4_text', 'hidden_size':"
     " 5120, 'num_hidden_layers': 48, 'num_attention_heads': 40, 'intermediate_size': "
     "8192, 'vocab_size': 202048, 'num_key_value_heads': 8, 'head_dim': 128, "
     "'intermediate_size_mlp': 16384, 'num_local_experts': 16, 'num_experts_per_tok': 1, "
     "'interleave_moe_layer_step': 1, 'attention_chunk_size': 8192, 'attention_bias': "
     "false}}"},
    {"Llama 4", "Llama 4 Maverick (text)", ORIGIN_BUILT, 400711848960ull, 400700000000ull,
     400700000ull,
     "{'model_type': 'llama4', 'text_config': {'model_type': 'llama4_text', 'hidden_size':"
     " 5120, 'num_hidden_layers': 48, 'num_attention_heads': 40, 'intermediate_size': "
     "8192, 'vocab_size': 202048, 'num_key_value_heads': 8, 'head_dim': 128, "
     "'intermediate_size_mlp': 16384, 'num_local_experts': 128, 'num_experts_per_tok': 1, "
     "'interleave_moe_layer_step': 2, 'attention_chunk_size': 8192, 'attention_bias': "
     "false}}"},
    {"Llama 3.2 Vision", "Llama 3.2 11B Vision (text)", ORIGIN_BUILT, 9775159312ull, 9780000000ull,
     9780000ull,
     "{'model_type': 'mllama', 'text_config': {'model_type': 'mllama_text_model', "
     "'hidden_size': 4096, 'num_hidden_layers': 40, 'num_attention_heads': 32, "
     "'intermediate_size': 14336, 'vocab_size': 128256, 'num_key_value_heads': 8, "
     "'cross_attention_layers': [3, 8, 13, 18, 23, 28, 33, 38], 'tie_word_embeddings': "
     "false}}"},
    {"Mistral", "Mistral 7B v0.1", ORIGIN_WEIGHTS, 7241732096ull, 7241732096ull, 7241732ull,
     "{'model_type': 'mistral', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 32000, "
     "'num_key_value_heads': 8, 'sliding_window': 4096}"},
    {"Mistral", "Mistral Nemo 12B", ORIGIN_WEIGHTS, 12247782400ull, 12247782400ull, 12247782ull,
     "{'model_type': 'mistral', 'hidden_size': 5120, 'num_hidden_layers': 40, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 131072, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'sliding_window': null}"},
    {"Mistral", "Mistral Small 3.1 24B (text)", ORIGIN_BUILT, 23572403200ull, 23600000000ull,
     50000000ull,
     "{'model_type': 'mistral3', 'text_config': {'model_type': 'mistral', 'hidden_size': "
     "5120, 'num_hidden_layers': 40, 'num_attention_heads': 32, 'intermediate_size': "
     "32768, 'vocab_size': 131072, 'num_key_value_heads': 8, 'head_dim': 128, "
     "'sliding_window': null}}"},
    {"Mistral", "Mistral Large 2 123B", ORIGIN_WEIGHTS, 122610069504ull, 122610069504ull,
     122610069ull,
     "{'model_type': 'mistral', 'hidden_size': 12288, 'num_hidden_layers': 88, "
     "'num_attention_heads': 96, 'intermediate_size': 28672, 'vocab_size': 32768, "
     "'num_key_value_heads': 8, 'sliding_window': null}"},
    {"Mistral", "Ministral 3 8B (text)", ORIGIN_BUILT, 8489553920ull, 8490000000ull, 8490000ull,
     "{'model_type': 'mistral3', 'text_config': {'model_type': 'ministral3', "
     "'hidden_size': 4096, 'num_hidden_layers': 34, 'num_attention_heads': 32, "
     "'intermediate_size': 14336, 'vocab_size': 131072, 'num_key_value_heads': 8, "
     "'head_dim': 128, 'sliding_window': null, 'tie_word_embeddings': false}}"},
    {"Mixtral", "Mixtral 8x7B", ORIGIN_WEIGHTS, 46702792704ull, 46702792704ull, 46702792ull,
     "{'model_type': 'mixtral', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 32000, "
     "'num_key_value_heads': 8, 'num_local_experts': 8, 'num_experts_per_tok': 2, "
     "'sliding_window': null}"},
    {"Mixtral", "Mixtral 8x22B", ORIGIN_WEIGHTS, 140630071296ull, 140630071296ull, 140630071ull,
     "{'model_type': 'mixtral', 'hidden_size': 6144, 'num_hidden_layers': 56, "
     "'num_attention_heads': 48, 'intermediate_size': 16384, 'vocab_size': 32768, "
     "'num_key_value_heads': 8, 'num_local_experts': 8, 'num_experts_per_tok': 2, "
     "'sliding_window': null}"},
    {"Phi", "Phi-1.5", ORIGIN_WEIGHTS, 1418270720ull, 1418270720ull, 1418270ull,
     "{'model_type': 'phi', 'hidden_size': 2048, 'num_hidden_layers': 24, "
     "'num_attention_heads': 32, 'intermediate_size': 8192, 'vocab_size': 51200, "
     "'num_key_value_heads': 32, 'qk_layernorm': false}"},
    {"Phi", "Phi-2", ORIGIN_WEIGHTS, 2779683840ull, 2779683840ull, 2779683ull,
     "{'model_type': 'phi', 'hidden_size': 2560, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 10240, 'vocab_size': 51200, "
     "'num_key_value_heads': 32, 'qk_layernorm': false}"},
    {"Phi-3", "Phi-3 mini", ORIGIN_WEIGHTS, 3821079552ull, 3821079552ull, 3821079ull,
     "{'model_type': 'phi3', 'hidden_size': 3072, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 8192, 'vocab_size': 32064, "
     "'num_key_value_heads': 32, 'sliding_window': 2047}"},
    {"Phi-3", "Phi-3 small", ORIGIN_WEIGHTS, 7392272384ull, 7392272384ull, 7392272ull,
     "{'model_type': 'phi3small', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'num_key_value_heads': 8, 'ff_intermediate_size': 14336, "
     "'vocab_size': 100352}"},
    {"Phi-3", "Phi-4", ORIGIN_WEIGHTS, 14659507200ull, 14659507200ull, 14659507ull,
     "{'model_type': 'phi3', 'hidden_size': 5120, 'num_hidden_layers': 40, "
     "'num_attention_heads': 40, 'intermediate_size': 17920, 'vocab_size': 100352, "
     "'num_key_value_heads': 10, 'sliding_window': null}"},
    {"Phi-3", "Phi-4-mini", ORIGIN_WEIGHTS, 3836021760ull, 3836021760ull, 3836021ull,
     "{'model_type': 'phi3', 'hidden_size': 3072, 'num_hidden_layers': 32, "
     "'num_attention_heads': 24, 'intermediate_size': 8192, 'vocab_size': 200064, "
     "'num_key_value_heads': 8, 'sliding_window': 262144, 'tie_word_embeddings': true}"},
    {"Phi-MoE", "Phi-3.5-MoE", ORIGIN_WEIGHTS, 41873153344ull, 41873153344ull, 41873153ull,
     "{'model_type': 'phimoe', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 6400, 'vocab_size': 32064, "
     "'num_key_value_heads': 8, 'num_local_experts': 16, 'num_experts_per_tok': 2, "
     "'attention_bias': true, 'lm_head_bias': true}"},
    {"Qwen", "Qwen 7B", ORIGIN_WEIGHTS, 7721324544ull, 7721324544ull, 7721324ull,
     "{'model_type': 'qwen', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 22016, 'vocab_size': 151936, "
     "'kv_channels': 128, 'seq_length': 8192, 'max_position_embeddings': 32768, 'no_bias':"
     " true}"},
    {"Qwen", "Qwen 72B", ORIGIN_WEIGHTS, 72287920128ull, 72287920128ull, 72287920ull,
     "{'model_type': 'qwen', 'hidden_size': 8192, 'num_hidden_layers': 80, "
     "'num_attention_heads': 64, 'intermediate_size': 49152, 'vocab_size': 152064, "
     "'kv_channels': 128, 'seq_length': 32768, 'max_position_embeddings': 32768, "
     "'no_bias': true}"},
    {"Qwen2", "Qwen2.5 0.5B", ORIGIN_WEIGHTS, 494032768ull, 494032768ull, 494032ull,
     "{'model_type': 'qwen2', 'hidden_size': 896, 'num_hidden_layers': 24, "
     "'num_attention_heads': 14, 'intermediate_size': 4864, 'vocab_size': 151936, "
     "'num_key_value_heads': 2, 'use_sliding_window': false, 'max_window_layers': 21, "
     "'tie_word_embeddings': true}"},
    {"Qwen2", "Qwen1.5 110B", ORIGIN_WEIGHTS, 111209914368ull, 111209914368ull, 111209914ull,
     "{'model_type': 'qwen2', 'hidden_size': 8192, 'num_hidden_layers': 80, "
     "'num_attention_heads': 64, 'intermediate_size': 49152, 'vocab_size': 152064, "
     "'num_key_value_heads': 8, 'use_sliding_window': false}"},
    {"Qwen2", "Qwen2.5-VL 7B (text)", ORIGIN_WEIGHTS, 7615616512ull, 7615616512ull, 7615616ull,
     "{'model_type': 'qwen2_5_vl', 'hidden_size': 3584, 'num_hidden_layers': 28, "
     "'num_attention_heads': 28, 'intermediate_size': 18944, 'vocab_size': 152064, "
     "'num_key_value_heads': 4, 'use_sliding_window': false, 'vision_config': {'depth': "
     "32}}"},
    {"Qwen2-MoE", "Qwen1.5-MoE A2.7B", ORIGIN_WEIGHTS, 14315784192ull, 14315784192ull, 14315784ull,
     "{'model_type': 'qwen2_moe', 'hidden_size': 2048, 'num_hidden_layers': 24, "
     "'num_attention_heads': 16, 'intermediate_size': 5632, 'vocab_size': 151936, "
     "'num_key_value_heads': 16, 'moe_intermediate_size': 1408, "
     "'shared_expert_intermediate_size': 5632, 'num_experts': 60, 'num_experts_per_tok': "
     "4, 'decoder_sparse_step': 1, 'use_sliding_window': false}"},
    {"Qwen2-MoE", "Qwen2 57B-A14B", ORIGIN_WEIGHTS, 57408658944ull, 57408658944ull, 57408658ull,
     "{'model_type': 'qwen2_moe', 'hidden_size': 3584, 'num_hidden_layers': 28, "
     "'num_attention_heads': 28, 'intermediate_size': 18944, 'vocab_size': 151936, "
     "'num_key_value_heads': 4, 'moe_intermediate_size': 2560, "
     "'shared_expert_intermediate_size': 20480, 'num_experts': 64, 'num_experts_per_tok': "
     "8, 'decoder_sparse_step': 1, 'use_sliding_window': false}"},
    {"Qwen3", "Qwen3 8B", ORIGIN_WEIGHTS, 8190735360ull, 8190735360ull, 8190735ull,
     "{'model_type': 'qwen3', 'hidden_size': 4096, 'num_hidden_layers': 36, "
     "'num_attention_heads': 32, 'intermediate_size': 12288, 'vocab_size': 151936, "
     "'num_key_value_heads': 8, 'head_dim': 128}"},
    {"Qwen3", "Qwen3-VL 8B (text)", ORIGIN_WEIGHTS, 8190735360ull, 8190735360ull, 8190735ull,
     "{'model_type': 'qwen3_vl', 'text_config': {'model_type': 'qwen3_vl_text', "
     "'hidden_size': 4096, 'num_hidden_layers': 36, 'num_attention_heads': 32, "
     "'intermediate_size': 12288, 'vocab_size': 151936, 'num_key_value_heads': 8, "
     "'head_dim': 128}}"},
    {"Qwen3-MoE", "Qwen3 235B-A22B", ORIGIN_WEIGHTS, 235093634560ull, 235093634560ull, 235093634ull,
     "{'model_type': 'qwen3_moe', 'hidden_size': 4096, 'num_hidden_layers': 94, "
     "'num_attention_heads': 64, 'intermediate_size': 12288, 'vocab_size': 151936, "
     "'num_key_value_heads': 4, 'head_dim': 128, 'moe_intermediate_size': 1536, "
     "'num_experts': 128, 'num_experts_per_tok': 8, 'decoder_sparse_step': 1, "
     "'mlp_only_layers': []}"},
    {"Qwen3-MoE", "Qwen3-Coder 480B-A35B", ORIGIN_WEIGHTS, 480154875392ull, 480154875392ull,
     480154875ull,
     "{'model_type': 'qwen3_moe', 'hidden_size': 6144, 'num_hidden_layers': 62, "
     "'num_attention_heads': 96, 'intermediate_size': 8192, 'vocab_size': 151936, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'moe_intermediate_size': 2560, "
     "'num_experts': 160, 'num_experts_per_tok': 8, 'decoder_sparse_step': 1, "
     "'mlp_only_layers': []}"},
    {"Qwen3-Next", "Qwen3-Next 80B-A3B", ORIGIN_WEIGHTS, 79674391296ull, 79674391296ull,
     79674391ull,
     "{'model_type': 'qwen3_next', 'hidden_size': 2048, 'num_hidden_layers': 48, "
     "'num_attention_heads': 16, 'intermediate_size': 5120, 'vocab_size': 151936, "
     "'num_key_value_heads': 2, 'head_dim': 256, 'full_attention_interval': 4, "
     "'linear_conv_kernel_dim': 4, 'linear_key_head_dim': 128, 'linear_value_head_dim': "
     "128, 'linear_num_key_heads': 16, 'linear_num_value_heads': 32, "
     "'decoder_sparse_step': 1, 'moe_intermediate_size': 512, "
     "'shared_expert_intermediate_size': 512, 'num_experts': 512, 'num_experts_per_tok': "
     "10, 'mlp_only_layers': []}"},
    {"Qwen3.5", "Qwen3.6 27B (text)", ORIGIN_WEIGHTS, 26895998464ull, 26895998464ull, 26895998ull,
     "{'model_type': 'qwen3_5', 'text_config': {'model_type': 'qwen3_5_text', "
     "'hidden_size': 5120, 'num_hidden_layers': 64, 'num_attention_heads': 24, "
     "'intermediate_size': 17408, 'vocab_size': 248320, 'num_key_value_heads': 4, "
     "'head_dim': 256, 'full_attention_interval': 4, 'layer_types': ['linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention', 'linear_attention', "
     "'linear_attention', 'linear_attention', 'full_attention'], 'linear_conv_kernel_dim':"
     " 4, 'linear_key_head_dim': 128, 'linear_value_head_dim': 128, "
     "'linear_num_key_heads': 16, 'linear_num_value_heads': 48, 'attn_output_gate': true, "
     "'mtp_num_hidden_layers': 1, 'tie_word_embeddings': false}}"},
    {"Qwen3.5", "Qwen3.5 35B-A3B (text)", ORIGIN_WEIGHTS, 34660610688ull, 34660610688ull,
     34660610ull,
     "{'model_type': 'qwen3_5_moe', 'text_config': {'model_type': 'qwen3_5_moe_text', "
     "'hidden_size': 2048, 'num_hidden_layers': 40, 'num_attention_heads': 16, "
     "'vocab_size': 248320, 'num_key_value_heads': 2, 'head_dim': 256, "
     "'full_attention_interval': 4, 'linear_conv_kernel_dim': 4, 'linear_key_head_dim': "
     "128, 'linear_value_head_dim': 128, 'linear_num_key_heads': 16, "
     "'linear_num_value_heads': 32, 'moe_intermediate_size': 512, "
     "'shared_expert_intermediate_size': 512, 'num_experts': 256, 'num_experts_per_tok': "
     "8, 'attn_output_gate': true, 'mtp_num_hidden_layers': 1, 'tie_word_embeddings': "
     "false}}"},
    {"DBRX", "DBRX 132B", ORIGIN_WEIGHTS, 131596523520ull, 131596523520ull, 131596523ull,
     "{'model_type': 'dbrx', 'd_model': 6144, 'n_heads': 48, 'n_layers': 40, 'vocab_size':"
     " 100352, 'max_seq_len': 32768, 'attn_config': {'kv_n_heads': 8, 'clip_qkv': 8}, "
     "'ffn_config': {'ffn_hidden_size': 10752, 'moe_num_experts': 16, 'moe_top_k': 4}}"},
    {"ChatGLM", "ChatGLM 6B", ORIGIN_WEIGHTS, 6173286400ull, 6173286400ull, 6173286ull,
     "{'model_type': 'chatglm', 'hidden_size': 4096, 'inner_hidden_size': 16384, "
     "'num_layers': 28, 'num_attention_heads': 32, 'vocab_size': 130528, "
     "'max_sequence_length': 2048, 'position_encoding_2d': true}"},
    {"ChatGLM", "ChatGLM3 6B", ORIGIN_WEIGHTS, 6243584000ull, 6243584000ull, 6243584ull,
     "{'model_type': 'chatglm', 'hidden_size': 4096, 'ffn_hidden_size': 13696, "
     "'num_layers': 28, 'num_attention_heads': 32, 'kv_channels': 128, "
     "'multi_query_attention': true, 'multi_query_group_num': 2, 'padded_vocab_size': "
     "65024, 'seq_length': 8192, 'add_qkv_bias': true, 'add_bias_linear': false}"},
    {"ChatGLM", "GLM-4 9B", ORIGIN_WEIGHTS, 9399951360ull, 9399951360ull, 9399951ull,
     "{'model_type': 'chatglm', 'hidden_size': 4096, 'ffn_hidden_size': 13696, "
     "'num_layers': 40, 'num_attention_heads': 32, 'kv_channels': 128, "
     "'multi_query_attention': true, 'multi_query_group_num': 2, 'padded_vocab_size': "
     "151552, 'seq_length': 131072, 'add_qkv_bias': true, 'add_bias_linear': false}"},
    {"GLM", "GLM-4 9B (glm)", ORIGIN_WEIGHTS, 9399951360ull, 9399951360ull, 9399951ull,
     "{'model_type': 'glm', 'hidden_size': 4096, 'num_hidden_layers': 40, "
     "'num_attention_heads': 32, 'intermediate_size': 13696, 'vocab_size': 151552, "
     "'num_key_value_heads': 2, 'head_dim': 128, 'attention_bias': true}"},
    {"GLM", "GLM-4 32B 0414", ORIGIN_BUILT, 32566081536ull, 32600000000ull, 50000000ull,
     "{'model_type': 'glm4', 'hidden_size': 6144, 'num_hidden_layers': 61, "
     "'num_attention_heads': 48, 'intermediate_size': 23040, 'vocab_size': 151552, "
     "'num_key_value_heads': 2, 'head_dim': 128, 'attention_bias': false}"},
    {"GLM-4.5", "GLM-4.5 Air", ORIGIN_WEIGHTS, 106852251264ull, 106852251264ull, 106852251ull,
     "{'model_type': 'glm4_moe', 'hidden_size': 4096, 'num_hidden_layers': 46, "
     "'num_attention_heads': 96, 'intermediate_size': 10944, 'vocab_size': 151552, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'moe_intermediate_size': 1408, "
     "'n_routed_experts': 128, 'n_shared_experts': 1, 'num_experts_per_tok': 8, "
     "'first_k_dense_replace': 1, 'attention_bias': true, 'use_qk_norm': false, "
     "'num_nextn_predict_layers': 1}"},
    {"GLM-4.5", "GLM-4.6", ORIGIN_BUILT, 352797829024ull, 353000000000ull, 500000000ull,
     "{'model_type': 'glm4_moe', 'hidden_size': 5120, 'num_hidden_layers': 92, "
     "'num_attention_heads': 96, 'intermediate_size': 12288, 'vocab_size': 151552, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'moe_intermediate_size': 1536, "
     "'n_routed_experts': 160, 'n_shared_experts': 1, 'num_experts_per_tok': 8, "
     "'first_k_dense_replace': 3, 'attention_bias': true, 'use_qk_norm': true, "
     "'num_nextn_predict_layers': 1}"},
    {"GLM-4.7-Flash", "GLM-4.7-Flash", ORIGIN_WEIGHTS, 29943393920ull, 29943393920ull, 29943393ull,
     "{'model_type': 'glm4_moe_lite', 'hidden_size': 2048, 'num_hidden_layers': 47, "
     "'num_attention_heads': 20, 'intermediate_size': 10240, 'vocab_size': 154880, "
     "'num_key_value_heads': 20, 'moe_intermediate_size': 1536, 'n_routed_experts': 64, "
     "'n_shared_experts': 1, 'num_experts_per_tok': 4, 'first_k_dense_replace': 1, "
     "'q_lora_rank': 768, 'kv_lora_rank': 512, 'qk_nope_head_dim': 192, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 256, 'topk_method': 'noaux_tc', "
     "'num_nextn_predict_layers': 1}"},
    {"GLM-5", "GLM-5", ORIGIN_BUILT, 743911218432ull, 744000000000ull, 744000000ull,
     "{'model_type': 'glm_moe_dsa', 'hidden_size': 6144, 'num_hidden_layers': 78, "
     "'num_attention_heads': 64, 'intermediate_size': 12288, 'vocab_size': 154880, "
     "'num_key_value_heads': 64, 'moe_intermediate_size': 2048, 'n_routed_experts': 256, "
     "'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 3, "
     "'q_lora_rank': 2048, 'kv_lora_rank': 512, 'qk_nope_head_dim': 192, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 256, 'index_n_heads': 32, 'index_head_dim': "
     "128, 'index_topk': 2048, 'num_nextn_predict_layers': 1}"},
    {"Gemma", "Gemma 7B", ORIGIN_WEIGHTS, 8537680896ull, 8537680896ull, 8537680ull,
     "{'model_type': 'gemma', 'hidden_size': 3072, 'num_hidden_layers': 28, "
     "'num_attention_heads': 16, 'intermediate_size': 24576, 'vocab_size': 256000, "
     "'num_key_value_heads': 16, 'head_dim': 256}"},
    {"Gemma 2", "Gemma 2 27B", ORIGIN_WEIGHTS, 27227128320ull, 27227128320ull, 27227128ull,
     "{'model_type': 'gemma2', 'hidden_size': 4608, 'num_hidden_layers': 46, "
     "'num_attention_heads': 32, 'intermediate_size': 36864, 'vocab_size': 256000, "
     "'num_key_value_heads': 16, 'head_dim': 128, 'sliding_window': 4096}"},
    {"Gemma 3", "Gemma 3 1B", ORIGIN_WEIGHTS, 999885952ull, 999885952ull, 999885ull,
     "{'model_type': 'gemma3_text', 'hidden_size': 1152, 'num_hidden_layers': 26, "
     "'num_attention_heads': 4, 'intermediate_size': 6912, 'vocab_size': 262144, "
     "'num_key_value_heads': 1, 'head_dim': 256, 'sliding_window': 512, "
     "'sliding_window_pattern': 6}"},
    {"Gemma 3", "Gemma 3 27B (text)", ORIGIN_WEIGHTS, 27009346304ull, 27009346304ull, 27009346ull,
     "{'model_type': 'gemma3', 'text_config': {'model_type': 'gemma3_text', 'hidden_size':"
     " 5376, 'num_hidden_layers': 62, 'num_attention_heads': 32, 'num_key_value_heads': "
     "16, 'head_dim': 128, 'intermediate_size': 21504, 'sliding_window': 1024, "
     "'vocab_size': 262208}}"},
    {"Gemma 3n", "Gemma 3n E4B (text)", ORIGIN_BUILT, 6835235568ull, 6840000000ull, 6840000ull,
     "{'model_type': 'gemma3n', 'text_config': {'model_type': 'gemma3n_text', "
     "'hidden_size': 2048, 'num_hidden_layers': 35, 'num_attention_heads': 8, "
     "'num_key_value_heads': 2, 'head_dim': 256, 'intermediate_size': [16384, 16384, "
     "16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, "
     "16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, "
     "16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384], 'vocab_size': "
     "262400, 'vocab_size_per_layer_input': 262144, 'hidden_size_per_layer_input': 256, "
     "'altup_num_inputs': 4, 'laurel_rank': 64, 'num_kv_shared_layers': 15, "
     "'sliding_window': 512, 'layer_types': ['sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'full_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'full_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'full_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'full_attention']}}"},
    {"Gemma 4", "Gemma 4 26B-A4B (text)", ORIGIN_CARD, 25233141760ull, 25200000000ull, 50000000ull,
     "{'model_type': 'gemma4', 'text_config': {'model_type': 'gemma4_text', 'hidden_size':"
     " 2816, 'num_hidden_layers': 30, 'num_attention_heads': 16, 'intermediate_size': "
     "2112, 'vocab_size': 262144, 'num_key_value_heads': 8, 'num_global_key_value_heads': "
     "2, 'head_dim': 256, 'global_head_dim': 512, 'attention_k_eq_v': true, "
     "'enable_moe_block': true, 'num_experts': 128, 'top_k_experts': 8, "
     "'moe_intermediate_size': 704, 'hidden_size_per_layer_input': 0, "
     "'num_kv_shared_layers': 0, 'sliding_window': 1024, 'layer_types': "
     "['sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention',"
     " 'sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention'], 'vocab_size_per_layer_input': 262144, "
     "'tie_word_embeddings': true}}"},
    {"Gemma 4", "Gemma 4 E2B (text)", ORIGIN_CLOSED, 4628569344ull, 4628569344ull, 0ull,
     "{'model_type': 'gemma4', 'text_config': {'model_type': 'gemma4_text', 'hidden_size':"
     " 1536, 'num_hidden_layers': 35, 'num_attention_heads': 8, 'intermediate_size': 6144,"
     " 'vocab_size': 262144, 'num_key_value_heads': 1, 'num_global_key_value_heads': null,"
     " 'head_dim': 256, 'global_head_dim': 512, 'attention_k_eq_v': false, "
     "'enable_moe_block': false, 'hidden_size_per_layer_input': 256, "
     "'num_kv_shared_layers': 20, 'use_double_wide_mlp': true, 'sliding_window': 512, "
     "'layer_types': ['sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'full_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'full_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'full_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention'], "
     "'vocab_size_per_layer_input': 262144, 'tie_word_embeddings': true}}"},
    {"MiniMax", "MiniMax-Text-01", ORIGIN_WEIGHTS, 456089655296ull, 456089655296ull, 456089655ull,
     "{'model_type': 'minimax_text_01', 'hidden_size': 6144, 'num_hidden_layers': 80, "
     "'num_attention_heads': 64, 'intermediate_size': 9216, 'vocab_size': 200064, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'attn_type_list': [0, 0, 0, 0, 0, 0, 0, "
     "1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, "
     "0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, "
     "1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], 'num_local_experts': 32, "
     "'num_experts_per_tok': 2, 'shared_intermediate_size': 0}"},
    {"MiniMax", "MiniMax-M2", ORIGIN_WEIGHTS, 228689764864ull, 228689764864ull, 228689764ull,
     "{'model_type': 'minimax_m2', 'hidden_size': 3072, 'num_hidden_layers': 62, "
     "'num_attention_heads': 48, 'intermediate_size': 1536, 'vocab_size': 200064, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'num_local_experts': 256, "
     "'num_experts_per_tok': 8, 'use_qk_norm': true, 'qk_norm_type': 'per_layer', "
     "'use_routing_bias': true, 'num_mtp_modules': 3, 'use_mtp': true, "
     "'shared_intermediate_size': 0}"},
    {"MiniMax", "MiniMax-M3 (text)", ORIGIN_CLOSED, 426174572928ull, 426174572928ull, 0ull,
     "{'model_type': 'minimax_m3', 'hidden_size': 6144, 'num_hidden_layers': 60, "
     "'num_attention_heads': 64, 'intermediate_size': 3072, 'vocab_size': 200064, "
     "'num_key_value_heads': 4, 'head_dim': 128, 'dense_intermediate_size': 12288, "
     "'shared_intermediate_size': 3072, 'num_local_experts': 128, 'num_experts_per_tok': "
     "4, 'n_shared_experts': 1, 'use_routing_bias': true, 'moe_layer_freq': [0, 0, 0, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],"
     " 'sparse_attention_config': {'sparse_block_size': 128, 'sparse_topk_blocks': 16, "
     "'sparse_num_index_heads': 4, 'sparse_index_dim': 128, 'sparse_attention_freq': [0, "
     "0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1]}, 'num_mtp_modules': 7, 'num_nextn_predict_layers': 1}"},
    {"Kimi", "Kimi K2", ORIGIN_WEIGHTS, 1026408232448ull, 1026408232448ull, 1026408232ull,
     "{'model_type': 'kimi_k2', 'hidden_size': 7168, 'num_hidden_layers': 61, "
     "'num_attention_heads': 64, 'intermediate_size': 18432, 'vocab_size': 163840, "
     "'num_key_value_heads': 64, 'moe_intermediate_size': 2048, 'n_routed_experts': 384, "
     "'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 1, "
     "'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128, 'topk_method': 'noaux_tc', "
     "'num_nextn_predict_layers': 0}"},
    {"Kimi", "Moonlight 16B-A3B", ORIGIN_CARD, 15960110208ull, 15960000000ull, 15960000ull,
     "{'model_type': 'deepseek_v3', 'hidden_size': 2048, 'num_hidden_layers': 27, "
     "'num_attention_heads': 16, 'intermediate_size': 11264, 'vocab_size': 163840, "
     "'num_key_value_heads': 16, 'moe_intermediate_size': 1408, 'n_routed_experts': 64, "
     "'n_shared_experts': 2, 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, "
     "'q_lora_rank': null, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128, 'topk_method': 'noaux_tc', "
     "'num_nextn_predict_layers': 0}"},
    {"Kimi Linear", "Kimi Linear 48B-A3B", ORIGIN_CARD, 49122681728ull, 49100000000ull, 50000000ull,
     "{'model_type': 'kimi_linear', 'hidden_size': 2304, 'num_hidden_layers': 27, "
     "'num_attention_heads': 32, 'intermediate_size': 9216, 'vocab_size': 163840, "
     "'num_key_value_heads': 32, 'moe_intermediate_size': 1024, 'num_experts': 256, "
     "'num_experts_per_token': 8, 'num_shared_experts': 1, 'first_k_dense_replace': 1, "
     "'moe_layer_freq': 1, 'q_lora_rank': null, 'kv_lora_rank': 512, 'qk_nope_head_dim': "
     "128, 'qk_rope_head_dim': 64, 'v_head_dim': 128, 'head_dim': 72, 'mla_use_nope': "
     "true, 'linear_attn_config': {'num_heads': 32, 'head_dim': 128, "
     "'short_conv_kernel_size': 4, 'full_attn_layers': [4, 8, 12, 16, 20, 24, 27], "
     "'kda_layers': [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, "
     "26]}}"},
    {"Kimi Linear", "Kimi K3 (text)", ORIGIN_CLOSED, 2779484476000ull, 2779484476000ull, 0ull,
     "{'model_type': 'kimi_k3', 'text_config': {'model_type': 'kimi_linear', "
     "'hidden_size': 7168, 'num_hidden_layers': 93, 'num_attention_heads': 96, "
     "'intermediate_size': 33792, 'vocab_size': 163840, 'num_key_value_heads': 96, "
     "'moe_intermediate_size': 3072, 'num_experts': 896, 'num_experts_per_token': 16, "
     "'num_shared_experts': 2, 'first_k_dense_replace': 1, 'moe_layer_freq': 1, "
     "'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128, 'mla_use_nope': true, "
     "'mla_use_output_gate': true, 'routed_expert_hidden_size': 3584, "
     "'latent_moe_use_norm': true, 'attn_res_block_size': 12, 'linear_attn_config': "
     "{'num_heads': 96, 'head_dim': 128, 'short_conv_kernel_size': 4, "
     "'use_full_rank_gate': true, 'full_attn_layers': [4, 8, 12, 16, 20, 24, 28, 32, 36, "
     "40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 93], 'kda_layers': [1, 2, 3,"
     " 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26, 27, 29, 30, 31, 33,"
     " 34, 35, 37, 38, 39, 41, 42, 43, 45, 46, 47, 49, 50, 51, 53, 54, 55, 57, 58, 59, 61,"
     " 62, 63, 65, 66, 67, 69, 70, 71, 73, 74, 75, 77, 78, 79, 81, 82, 83, 85, 86, 87, 89,"
     " 90, 91]}}}"},
    {"DeepSeek MoE", "DeepSeekMoE 16B", ORIGIN_WEIGHTS, 16375728128ull, 16375728128ull, 16375728ull,
     "{'model_type': 'deepseek', 'hidden_size': 2048, 'num_hidden_layers': 28, "
     "'num_attention_heads': 16, 'intermediate_size': 10944, 'vocab_size': 102400, "
     "'num_key_value_heads': 16, 'moe_intermediate_size': 1408, 'n_routed_experts': 64, "
     "'n_shared_experts': 2, 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, "
     "'moe_layer_freq': 1}"},
    {"DeepSeek-V2", "DeepSeek-V2-Lite", ORIGIN_WEIGHTS, 15706484224ull, 15706484224ull, 15706484ull,
     "{'model_type': 'deepseek_v2', 'hidden_size': 2048, 'num_hidden_layers': 27, "
     "'num_attention_heads': 16, 'intermediate_size': 10944, 'vocab_size': 102400, "
     "'num_key_value_heads': 16, 'moe_intermediate_size': 1408, 'n_routed_experts': 64, "
     "'n_shared_experts': 2, 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, "
     "'moe_layer_freq': 1, 'q_lora_rank': null, 'kv_lora_rank': 512, 'qk_nope_head_dim': "
     "128, 'qk_rope_head_dim': 64, 'v_head_dim': 128}"},
    {"DeepSeek-V2", "DeepSeek-V2", ORIGIN_WEIGHTS, 235741434880ull, 235741434880ull, 235741434ull,
     "{'model_type': 'deepseek_v2', 'hidden_size': 5120, 'num_hidden_layers': 60, "
     "'num_attention_heads': 128, 'intermediate_size': 12288, 'vocab_size': 102400, "
     "'num_key_value_heads': 128, 'moe_intermediate_size': 1536, 'n_routed_experts': 160, "
     "'n_shared_experts': 2, 'num_experts_per_tok': 6, 'first_k_dense_replace': 1, "
     "'moe_layer_freq': 1, 'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': "
     "128, 'qk_rope_head_dim': 64, 'v_head_dim': 128}"},
    {"DeepSeek-V3", "DeepSeek-V3", ORIGIN_WEIGHTS, 671026419200ull, 671026419200ull, 671026419ull,
     "{'model_type': 'deepseek_v3', 'hidden_size': 7168, 'num_hidden_layers': 61, "
     "'num_attention_heads': 128, 'intermediate_size': 18432, 'vocab_size': 129280, "
     "'num_key_value_heads': 128, 'moe_intermediate_size': 2048, 'n_routed_experts': 256, "
     "'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 3, "
     "'moe_layer_freq': 1, 'topk_method': 'noaux_tc', 'num_nextn_predict_layers': 1, "
     "'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128}"},
    {"DeepSeek-V3", "DeepSeek-V3.2", ORIGIN_BUILT, 671877944064ull, 671900000000ull, 671900000ull,
     "{'model_type': 'deepseek_v32', 'hidden_size': 7168, 'num_hidden_layers': 61, "
     "'num_attention_heads': 128, 'intermediate_size': 18432, 'vocab_size': 129280, "
     "'num_key_value_heads': 128, 'moe_intermediate_size': 2048, 'n_routed_experts': 256, "
     "'n_shared_experts': 1, 'num_experts_per_tok': 8, 'first_k_dense_replace': 3, "
     "'moe_layer_freq': 1, 'topk_method': 'noaux_tc', 'num_nextn_predict_layers': 1, "
     "'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128, 'index_n_heads': 64, 'index_head_dim': "
     "128, 'index_topk': 2048}"},
    {"DeepSeek-V3", "DeepSeek-VL2 small (text)", ORIGIN_WEIGHTS, 15706484224ull, 15706484224ull,
     15706484ull,
     "{'model_type': 'deepseek_vl_v2', 'language_config': {'model_type': 'deepseek_v2', "
     "'hidden_size': 2048, 'num_hidden_layers': 27, 'num_attention_heads': 16, "
     "'intermediate_size': 10944, 'vocab_size': 102400, 'num_key_value_heads': 16, "
     "'moe_intermediate_size': 1408, 'n_routed_experts': 64, 'n_shared_experts': 2, "
     "'num_experts_per_tok': 6, 'first_k_dense_replace': 1, 'moe_layer_freq': 1, "
     "'q_lora_rank': null, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128}}"},
    {"Jamba", "Jamba v0.1", ORIGIN_WEIGHTS, 51570323328ull, 51570323328ull, 51570323ull,
     "{'model_type': 'jamba', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 65536, "
     "'num_key_value_heads': 8, 'attn_layer_period': 8, 'attn_layer_offset': 4, "
     "'expert_layer_period': 2, 'expert_layer_offset': 1, 'num_experts': 16, "
     "'num_experts_per_tok': 2, 'mamba_d_state': 16, 'mamba_d_conv': 4, 'mamba_expand': 2,"
     " 'mamba_dt_rank': 256, 'mamba_conv_bias': true, 'mamba_proj_bias': false}"},
    {"Jamba", "Jamba 1.5 Large", ORIGIN_BUILT, 398555145696ull, 398600000000ull, 398600000ull,
     "{'model_type': 'jamba', 'hidden_size': 8192, 'num_hidden_layers': 72, "
     "'num_attention_heads': 64, 'intermediate_size': 24576, 'vocab_size': 65536, "
     "'num_key_value_heads': 8, 'attn_layer_period': 8, 'attn_layer_offset': 4, "
     "'expert_layer_period': 2, 'expert_layer_offset': 1, 'num_experts': 16, "
     "'num_experts_per_tok': 2, 'mamba_d_state': 16, 'mamba_d_conv': 4, 'mamba_expand': 2,"
     " 'mamba_dt_rank': 512, 'mamba_conv_bias': true, 'mamba_proj_bias': false}"},
    {"Mamba", "Mamba 2.8B", ORIGIN_WEIGHTS, 2768345600ull, 2768345600ull, 2768345ull,
     "{'model_type': 'mamba', 'hidden_size': 2560, 'num_hidden_layers': 64, 'vocab_size': "
     "50280, 'state_size': 16, 'expand': 2, 'conv_kernel': 4, 'time_step_rank': 160, "
     "'intermediate_size': 5120, 'use_conv_bias': true, 'use_bias': false, "
     "'tie_word_embeddings': true}"},
    {"Mamba", "Mamba 2.8B (mamba_ssm)", ORIGIN_WEIGHTS, 2768345600ull, 2768345600ull, 2768345ull,
     "{'d_model': 2560, 'n_layer': 64, 'vocab_size': 50277, 'ssm_cfg': {}, 'rms_norm': "
     "true, 'fused_add_norm': true, 'pad_vocab_size_multiple': 8}"},
    {"Mamba", "Falcon Mamba 7B", ORIGIN_WEIGHTS, 7272665088ull, 7272665088ull, 7272665ull,
     "{'model_type': 'falcon_mamba', 'hidden_size': 4096, 'num_hidden_layers': 64, "
     "'vocab_size': 65024, 'state_size': 16, 'expand': 16, 'conv_kernel': 4, "
     "'time_step_rank': 256, 'intermediate_size': 8192, 'use_conv_bias': true, 'use_bias':"
     " false, 'tie_word_embeddings': false}"},
    {"Mamba-2", "Mamba-2 2.7B (mamba_ssm)", ORIGIN_WEIGHTS, 2702599680ull, 2702599680ull,
     2702599ull,
     "{'d_model': 2560, 'n_layer': 64, 'vocab_size': 50277, 'd_intermediate': 0, "
     "'ssm_cfg': {'layer': 'Mamba2'}, 'attn_layer_idx': [], 'rms_norm': true, "
     "'tie_embeddings': true, 'pad_vocab_size_multiple': 16}"},
    {"Mamba-2", "Mamba Codestral 7B", ORIGIN_WEIGHTS, 7285403648ull, 7285403648ull, 7285403ull,
     "{'model_type': 'mamba2', 'hidden_size': 4096, 'num_hidden_layers': 64, 'vocab_size':"
     " 32768, 'num_heads': 128, 'head_dim': 64, 'state_size': 128, 'n_groups': 8, "
     "'expand': 2, 'conv_kernel': 4, 'use_conv_bias': true, 'use_bias': false, "
     "'intermediate_size': 8192, 'tie_word_embeddings': false, 'chunk_size': 256}"},
    {"Falcon-H1", "Falcon-H1 34B", ORIGIN_BUILT, 33642221312ull, 33600000000ull, 50000000ull,
     "{'model_type': 'falcon_h1', 'hidden_size': 5120, 'num_hidden_layers': 72, "
     "'num_attention_heads': 20, 'intermediate_size': 21504, 'vocab_size': 261120, "
     "'num_key_value_heads': 4, 'head_dim': 128, 'mamba_d_ssm': 4096, 'mamba_n_heads': 32,"
     " 'mamba_d_head': 128, 'mamba_n_groups': 2, 'mamba_d_state': 256, 'mamba_d_conv': 4, "
     "'mamba_expand': 2, 'mamba_conv_bias': true, 'mamba_proj_bias': false, "
     "'mamba_rms_norm': false, 'attention_bias': false, 'mlp_bias': false, "
     "'tie_word_embeddings': false}"},
    {"Bamba", "Bamba 9B", ORIGIN_BUILT, 9780235392ull, 9780000000ull, 9780000ull,
     "{'model_type': 'bamba', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 128256, "
     "'num_key_value_heads': 8, 'attn_layer_indices': [9, 18, 27], 'mamba_n_heads': 128, "
     "'mamba_d_head': 64, 'mamba_n_groups': 1, 'mamba_d_state': 128, 'mamba_d_conv': 4, "
     "'mamba_expand': 2, 'mamba_conv_bias': true, 'mamba_proj_bias': false, "
     "'tie_word_embeddings': false}"},
    {"Zamba", "Zamba2 2.7B", ORIGIN_BUILT, 2491813280ull, 2490000000ull, 5000000ull,
     "{'model_type': 'zamba2', 'hidden_size': 2560, 'num_hidden_layers': 54, "
     "'num_attention_heads': 32, 'intermediate_size': 10240, 'vocab_size': 32000, "
     "'num_key_value_heads': 32, 'attention_head_dim': 160, 'hybrid_layer_ids': [6, 12, "
     "18, 24, 30, 36, 42, 47, 51], 'num_mem_blocks': 1, 'mamba_d_state': 64, "
     "'mamba_d_conv': 4, 'mamba_expand': 2, 'mamba_ngroups': 1, 'n_mamba_heads': 80, "
     "'mamba_headdim': 64, 'use_shared_mlp_adapter': true, 'use_shared_attention_adapter':"
     " false, 'adapter_rank': 128, 'tie_word_embeddings': true}"},
    {"Zamba", "Zamba 7B", ORIGIN_BUILT, 7232490496ull, 7230000000ull, 7230000ull,
     "{'model_type': 'zamba', 'hidden_size': 3712, 'num_hidden_layers': 76, "
     "'num_attention_heads': 16, 'intermediate_size': 14848, 'vocab_size': 32000, "
     "'num_key_value_heads': 16, 'attention_head_dim': 464, 'mamba_d_state': 16, "
     "'mamba_d_conv': 4, 'mamba_expand': 2, 'mamba_dt_rank': 232, 'n_mamba_heads': 2, "
     "'attn_layer_period': 6, 'attn_layer_offset': 4, 'tie_word_embeddings': true}"},
    {"RWKV", "RWKV-4 Pile 7B", ORIGIN_WEIGHTS, 7392649216ull, 7392649216ull, 7392649ull,
     "{'model_type': 'rwkv', 'hidden_size': 4096, 'num_hidden_layers': 32, 'vocab_size': "
     "50277, 'attention_hidden_size': 4096, 'intermediate_size': 16384, 'context_length': "
     "1024, 'tie_word_embeddings': false}"},
    {"RecurrentGemma", "RecurrentGemma 2B", ORIGIN_WEIGHTS, 2682862080ull, 2682862080ull,
     2682862ull,
     "{'model_type': 'recurrent_gemma', 'hidden_size': 2560, 'num_hidden_layers': 26, "
     "'num_attention_heads': 10, 'num_key_value_heads': 1, 'intermediate_size': 15360, "
     "'vocab_size': 256000, 'lru_width': 2560, 'conv1d_width': 4, 'attention_window_size':"
     " 2048, 'block_types': ['recurrent', 'recurrent', 'attention']}"},
    {"Granite", "Granite 3.1 8B", ORIGIN_WEIGHTS, 8170848256ull, 8170848256ull, 8170848ull,
     "{'model_type': 'granite', 'hidden_size': 4096, 'num_hidden_layers': 40, "
     "'num_attention_heads': 32, 'intermediate_size': 12800, 'vocab_size': 49155, "
     "'num_key_value_heads': 8, 'tie_word_embeddings': true}"},
    {"Granite", "Granite 3.0 1B-A400M", ORIGIN_WEIGHTS, 1334628352ull, 1334628352ull, 1334628ull,
     "{'model_type': 'granitemoe', 'hidden_size': 1024, 'num_hidden_layers': 24, "
     "'num_attention_heads': 16, 'intermediate_size': 512, 'vocab_size': 49155, "
     "'num_key_value_heads': 8, 'num_local_experts': 32, 'num_experts_per_tok': 8, "
     "'tie_word_embeddings': true}"},
    {"Granite", "Granite 4.0 H Small", ORIGIN_WEIGHTS, 32207337984ull, 32207337984ull, 32207337ull,
     "{'model_type': 'granitemoehybrid', 'hidden_size': 4096, 'num_hidden_layers': 40, "
     "'num_attention_heads': 32, 'intermediate_size': 768, 'vocab_size': 100352, "
     "'num_key_value_heads': 8, 'num_local_experts': 72, 'num_experts_per_tok': 10, "
     "'shared_intermediate_size': 1536, 'layer_types': ['mamba', 'mamba', 'mamba', "
     "'mamba', 'mamba', 'attention', 'mamba', 'mamba', 'mamba', 'mamba', 'mamba', 'mamba',"
     " 'mamba', 'mamba', 'mamba', 'attention', 'mamba', 'mamba', 'mamba', 'mamba', "
     "'mamba', 'mamba', 'mamba', 'mamba', 'mamba', 'attention', 'mamba', 'mamba', 'mamba',"
     " 'mamba', 'mamba', 'mamba', 'mamba', 'mamba', 'mamba', 'attention', 'mamba', "
     "'mamba', 'mamba', 'mamba'], 'mamba_n_heads': 128, 'mamba_d_head': 64, "
     "'mamba_n_groups': 1, 'mamba_d_state': 128, 'mamba_d_conv': 4, 'mamba_expand': 2, "
     "'mamba_conv_bias': true, 'mamba_proj_bias': false, 'tie_word_embeddings': true}"},
    {"OLMo", "OLMo 7B", ORIGIN_WEIGHTS, 6888095744ull, 6888095744ull, 6888095ull,
     "{'model_type': 'olmo', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 50304}"},
    {"OLMo", "OLMo 7B (hf_olmo)", ORIGIN_WEIGHTS, 6888095744ull, 6888095744ull, 6888095ull,
     "{'model_type': 'hf_olmo', 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, "
     "'mlp_hidden_size': 22016, 'vocab_size': 50280, 'embedding_size': 50304, "
     "'weight_tying': false, 'include_bias': false, 'max_sequence_length': 2048}"},
    {"OLMo", "OLMo 2 32B", ORIGIN_WEIGHTS, 32234279936ull, 32234279936ull, 32234279ull,
     "{'model_type': 'olmo2', 'hidden_size': 5120, 'num_hidden_layers': 64, "
     "'num_attention_heads': 40, 'intermediate_size': 27648, 'vocab_size': 100352, "
     "'num_key_value_heads': 8}"},
    {"OLMo", "OLMo 3 7B", ORIGIN_WEIGHTS, 7298011136ull, 7298011136ull, 7298011ull,
     "{'model_type': 'olmo3', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 100278, "
     "'num_key_value_heads': 32, 'sliding_window': 4096, 'layer_types': "
     "['sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention', 'full_attention']}"},
    {"OLMo", "OLMoE 1B-7B", ORIGIN_WEIGHTS, 6919161856ull, 6919161856ull, 6919161ull,
     "{'model_type': 'olmoe', 'hidden_size': 2048, 'num_hidden_layers': 16, "
     "'num_attention_heads': 16, 'intermediate_size': 1024, 'vocab_size': 50304, "
     "'num_experts': 64, 'num_experts_per_tok': 8}"},
    {"OLMo", "OLMo Hybrid 7B", ORIGIN_BUILT, 7430870688ull, 7430000000ull, 7430000ull,
     "{'model_type': 'olmo_hybrid', 'hidden_size': 3840, 'num_hidden_layers': 32, "
     "'num_attention_heads': 30, 'intermediate_size': 11008, 'vocab_size': 100352, "
     "'num_key_value_heads': 30, 'linear_num_key_heads': 30, 'linear_num_value_heads': 30,"
     " 'linear_key_head_dim': 96, 'linear_value_head_dim': 192, 'linear_conv_kernel_dim': "
     "4, 'layer_types': ['linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention', 'linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention']}"},
    {"Cohere", "Command R 35B", ORIGIN_WEIGHTS, 34980831232ull, 34980831232ull, 34980831ull,
     "{'model_type': 'cohere', 'hidden_size': 8192, 'num_hidden_layers': 40, "
     "'num_attention_heads': 64, 'intermediate_size': 22528, 'vocab_size': 256000, "
     "'num_key_value_heads': 64}"},
    {"Cohere", "Command R+ 104B", ORIGIN_WEIGHTS, 103810674688ull, 103810674688ull, 103810674ull,
     "{'model_type': 'cohere', 'hidden_size': 12288, 'num_hidden_layers': 64, "
     "'num_attention_heads': 96, 'intermediate_size': 33792, 'vocab_size': 256000, "
     "'num_key_value_heads': 8, 'use_qk_norm': true}"},
    {"Cohere", "Command R7B", ORIGIN_WEIGHTS, 8028033024ull, 8028033024ull, 8028033ull,
     "{'model_type': 'cohere2', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 256000, "
     "'num_key_value_heads': 8}"},
    {"Cohere", "Command A 111B", ORIGIN_WEIGHTS, 111057580032ull, 111057580032ull, 111057580ull,
     "{'model_type': 'cohere2', 'hidden_size': 12288, 'num_hidden_layers': 64, "
     "'num_attention_heads': 96, 'intermediate_size': 36864, 'vocab_size': 256000, "
     "'num_key_value_heads': 8, 'sliding_window': 4096, 'sliding_window_pattern': 4}"},
    {"StarCoder", "StarCoder 15B", ORIGIN_WEIGHTS, 15517456384ull, 15517456384ull, 15517456ull,
     "{'model_type': 'gpt_bigcode', 'n_embd': 6144, 'n_layer': 40, 'n_head': 48, "
     "'n_inner': 24576, 'vocab_size': 49152, 'n_positions': 8192, 'multi_query': true}"},
    {"StarCoder", "StarCoder2 15B", ORIGIN_WEIGHTS, 15957889024ull, 15957889024ull, 15957889ull,
     "{'model_type': 'starcoder2', 'hidden_size': 6144, 'num_hidden_layers': 40, "
     "'num_attention_heads': 48, 'intermediate_size': 24576, 'vocab_size': 49152, "
     "'num_key_value_heads': 4, 'use_bias': true, 'sliding_window': 4096, "
     "'tie_word_embeddings': false}"},
    {"StableLM", "StableLM 2 1.6B", ORIGIN_WEIGHTS, 1644515328ull, 1644515328ull, 1644515ull,
     "{'model_type': 'stablelm', 'hidden_size': 2048, 'num_hidden_layers': 24, "
     "'num_attention_heads': 32, 'intermediate_size': 5632, 'vocab_size': 100352, "
     "'num_key_value_heads': 32, 'use_qkv_bias': true}"},
    {"StableLM", "StableLM 2 12B", ORIGIN_BUILT, 12143185920ull, 12140000000ull, 12140000ull,
     "{'model_type': 'stablelm', 'hidden_size': 5120, 'num_hidden_layers': 40, "
     "'num_attention_heads': 32, 'intermediate_size': 13824, 'vocab_size': 100352, "
     "'num_key_value_heads': 8, 'use_qkv_bias': false, 'qk_layernorm': true, "
     "'use_parallel_residual': true}"},
    {"InternLM", "InternLM 7B", ORIGIN_CARD, 7321948160ull, 7320000000ull, 7320000ull,
     "{'model_type': 'internlm', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 103168, 'bias':"
     " true}"},
    {"InternLM", "InternLM2 7B", ORIGIN_WEIGHTS, 7737708544ull, 7737708544ull, 7737708ull,
     "{'model_type': 'internlm2', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 92544, "
     "'num_key_value_heads': 8, 'bias': false}"},
    {"InternLM", "InternLM3 8B", ORIGIN_WEIGHTS, 8804241408ull, 8804241408ull, 8804241ull,
     "{'model_type': 'internlm3', 'hidden_size': 4096, 'num_hidden_layers': 48, "
     "'num_attention_heads': 32, 'intermediate_size': 10240, 'vocab_size': 128512, "
     "'num_key_value_heads': 2, 'head_dim': 128, 'bias': false, 'qkv_bias': false}"},
    {"InternLM", "InternVL2 8B (text)", ORIGIN_WEIGHTS, 7737708544ull, 7737708544ull, 7737708ull,
     "{'model_type': 'internvl_chat', 'llm_config': {'model_type': 'internlm2', "
     "'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, "
     "'intermediate_size': 14336, 'vocab_size': 92544, 'num_key_value_heads': 8, 'bias': "
     "false}}"},
    {"Baichuan", "Baichuan2 7B", ORIGIN_WEIGHTS, 7505973248ull, 7505973248ull, 7505973ull,
     "{'model_type': 'baichuan', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 125696}"},
    {"Baichuan", "Baichuan 13B", ORIGIN_WEIGHTS, 13264901120ull, 13264901120ull, 13264901ull,
     "{'model_type': 'baichuan', 'hidden_size': 5120, 'num_hidden_layers': 40, "
     "'num_attention_heads': 40, 'intermediate_size': 13696, 'vocab_size': 64000}"},
    {"Yi", "Yi 6B (Yi)", ORIGIN_WEIGHTS, 6061035520ull, 6061035520ull, 6061035ull,
     "{'model_type': 'Yi', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 64000, "
     "'num_key_value_heads': 4}"},
    {"Nemotron", "Minitron 8B", ORIGIN_CARD, 8271699968ull, 8270000000ull, 8270000ull,
     "{'model_type': 'nemotron', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 48, 'intermediate_size': 16384, 'vocab_size': 256000, "
     "'num_key_value_heads': 8, 'head_dim': 128}"},
    {"Nemotron", "Nemotron-4 340B", ORIGIN_CARD, 341029195776ull, 341000000000ull, 500000000ull,
     "{'model_type': 'nemotron', 'hidden_size': 18432, 'num_hidden_layers': 96, "
     "'num_attention_heads': 96, 'intermediate_size': 73728, 'vocab_size': 256000, "
     "'num_key_value_heads': 8, 'head_dim': 192}"},
    {"Nemotron-H", "Nemotron-H 8B", ORIGIN_BUILT, 8100852736ull, 8100000000ull, 8100000ull,
     "{'model_type': 'nemotron_h', 'hidden_size': 4096, 'num_hidden_layers': 52, "
     "'num_attention_heads': 32, 'intermediate_size': 21504, 'vocab_size': 131072, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'hybrid_override_pattern': "
     "'M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-', 'mamba_num_heads': 128, "
     "'mamba_head_dim': 64, 'ssm_state_size': 128, 'n_groups': 8, 'conv_kernel': 4, "
     "'expand': 2, 'use_conv_bias': true, 'use_bias': false}"},
    {"Nemotron-H", "Nemotron Nano 9B v2", ORIGIN_WEIGHTS, 8888227328ull, 8888227328ull, 8888227ull,
     "{'model_type': 'nemotron_h', 'hidden_size': 4480, 'num_hidden_layers': 56, "
     "'num_attention_heads': 40, 'intermediate_size': 15680, 'vocab_size': 131072, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'hybrid_override_pattern': "
     "'M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-', 'mamba_num_heads': 128, "
     "'mamba_head_dim': 80, 'ssm_state_size': 128, 'n_groups': 8, 'conv_kernel': 4, "
     "'expand': 2, 'use_conv_bias': true, 'use_bias': false}"},
    {"Nemotron-H", "Nemotron 3 Nano 30B-A3B", ORIGIN_BUILT, 31577940288ull, 31600000000ull,
     50000000ull,
     "{'model_type': 'nemotron_h', 'hidden_size': 2688, 'num_hidden_layers': 52, "
     "'num_attention_heads': 32, 'intermediate_size': 1856, 'vocab_size': 131072, "
     "'num_key_value_heads': 2, 'head_dim': 128, 'hybrid_override_pattern': "
     "'MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME', 'mamba_num_heads': 64, "
     "'mamba_head_dim': 64, 'ssm_state_size': 128, 'n_groups': 8, 'conv_kernel': 4, "
     "'expand': 2, 'use_conv_bias': true, 'use_bias': false, 'n_routed_experts': 128, "
     "'num_experts_per_tok': 6, 'n_shared_experts': 1, 'moe_intermediate_size': 1856, "
     "'moe_shared_expert_intermediate_size': 3712}"},
    {"gpt-oss", "gpt-oss 20B", ORIGIN_WEIGHTS, 20914757184ull, 20914757184ull, 20914757ull,
     "{'model_type': 'gpt_oss', 'hidden_size': 2880, 'num_hidden_layers': 24, "
     "'num_attention_heads': 64, 'intermediate_size': 2880, 'vocab_size': 201088, "
     "'num_key_value_heads': 8, 'head_dim': 64, 'num_local_experts': 32, "
     "'num_experts_per_tok': 4, 'experts_per_token': 4, 'sliding_window': 128, "
     "'attention_bias': true, 'layer_types': ['sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'full_attention']}"},
    {"gpt-oss", "gpt-oss 120B", ORIGIN_WEIGHTS, 116829156672ull, 116829156672ull, 116829156ull,
     "{'model_type': 'gpt_oss', 'hidden_size': 2880, 'num_hidden_layers': 36, "
     "'num_attention_heads': 64, 'intermediate_size': 2880, 'vocab_size': 201088, "
     "'num_key_value_heads': 8, 'head_dim': 64, 'num_local_experts': 128, "
     "'num_experts_per_tok': 4, 'experts_per_token': 4, 'sliding_window': 128, "
     "'attention_bias': true}"},
    {"Arctic", "Snowflake Arctic", ORIGIN_CARD, 478584608768ull, 479000000000ull, 500000000ull,
     "{'model_type': 'arctic', 'hidden_size': 7168, 'num_hidden_layers': 35, "
     "'num_attention_heads': 56, 'intermediate_size': 4864, 'vocab_size': 32000, "
     "'num_key_value_heads': 8, 'num_local_experts': 128, 'num_experts_per_tok': 2, "
     "'moe_layer_frequency': 1, 'parallel_attn_mlp_res': true}"},
    {"Grok", "Grok-1", ORIGIN_CLOSED, 315684820992ull, 315684820992ull, 0ull,
     "{'model_type': 'grok-1', 'hidden_size': 6144, 'num_hidden_layers': 64, "
     "'num_attention_heads': 48, 'intermediate_size': 32768, 'vocab_size': 131072, "
     "'num_key_value_heads': 8, 'num_experts': 8, 'num_experts_per_tok': 2}"},
    {"Hunyuan", "Hunyuan 7B", ORIGIN_BUILT, 7504568320ull, 7500000000ull, 7500000ull,
     "{'model_type': 'hunyuan_v1_dense', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 14336, 'vocab_size': 128167, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'use_qk_norm': true, "
     "'tie_word_embeddings': true}"},
    {"Hunyuan", "Hunyuan A13B", ORIGIN_BUILT, 80393183232ull, 80400000000ull, 80400000ull,
     "{'model_type': 'hunyuan_v1_moe', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 3072, 'vocab_size': 128167, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'num_experts': 64, 'moe_topk': [8, 8, 8, "
     "8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, "
     "8], 'num_shared_expert': [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 'moe_intermediate_size': [3072, 3072, 3072, "
     "3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, "
     "3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, "
     "3072], 'use_qk_norm': true, 'use_cla': false, 'cla_share_factor': 2, "
     "'use_mixed_mlp_moe': true, 'tie_word_embeddings': true}"},
    {"Hunyuan", "Hunyuan Large", ORIGIN_CARD, 388701402880ull, 389000000000ull, 500000000ull,
     "{'model_type': 'hunyuan', 'hidden_size': 6400, 'num_hidden_layers': 64, "
     "'num_attention_heads': 80, 'intermediate_size': 18304, 'vocab_size': 129024, "
     "'num_key_value_heads': 8, 'num_experts': 16, 'moe_topk': 1, 'num_shared_expert': 1, "
     "'use_qk_norm': true, 'use_cla': true, 'cla_share_factor': 2, 'use_mixed_mlp_moe': "
     "true, 'tie_word_embeddings': true}"},
    {"Ernie", "ERNIE 4.5 0.3B", ORIGIN_WEIGHTS, 360748032ull, 360748032ull, 360748ull,
     "{'model_type': 'ernie4_5', 'hidden_size': 1024, 'num_hidden_layers': 18, "
     "'num_attention_heads': 16, 'intermediate_size': 3072, 'vocab_size': 103424, "
     "'num_key_value_heads': 2, 'head_dim': 128, 'use_bias': false, 'tie_word_embeddings':"
     " true}"},
    {"Ernie", "ERNIE 4.5 21B-A3B", ORIGIN_BUILT, 21825437888ull, 21800000000ull, 50000000ull,
     "{'model_type': 'ernie4_5_moe', 'hidden_size': 2560, 'num_hidden_layers': 28, "
     "'num_attention_heads': 20, 'intermediate_size': 12288, 'vocab_size': 103424, "
     "'num_key_value_heads': 4, 'moe_intermediate_size': 1536, 'moe_num_experts': 64, "
     "'moe_k': 6, 'moe_num_shared_experts': 2, 'moe_layer_start_index': 1, "
     "'moe_layer_end_index': -1, 'moe_layer_interval': 1, 'use_bias': false, "
     "'tie_word_embeddings': true}"},
    {"Ernie", "ERNIE 4.5 300B-A47B", ORIGIN_BUILT, 299484163264ull, 299500000000ull, 299500000ull,
     "{'model_type': 'ernie4_5_moe', 'hidden_size': 8192, 'num_hidden_layers': 54, "
     "'num_attention_heads': 64, 'intermediate_size': 28672, 'vocab_size': 103424, "
     "'num_key_value_heads': 8, 'moe_intermediate_size': 3584, 'moe_num_experts': 64, "
     "'moe_k': 8, 'moe_num_shared_experts': 0, 'moe_layer_start_index': 3, "
     "'moe_layer_end_index': 53, 'moe_layer_interval': 1, 'use_bias': false, "
     "'tie_word_embeddings': false}"},
    {"Seed-OSS", "Seed-OSS 36B", ORIGIN_WEIGHTS, 36151104512ull, 36151104512ull, 36151104ull,
     "{'model_type': 'seed_oss', 'hidden_size': 5120, 'num_hidden_layers': 64, "
     "'num_attention_heads': 80, 'intermediate_size': 27648, 'vocab_size': 155136, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'attention_bias': true, "
     "'attention_out_bias': false, 'mlp_bias': false, 'tie_word_embeddings': false}"},
    {"SmolLM3", "SmolLM3 3B", ORIGIN_WEIGHTS, 3075098624ull, 3075098624ull, 3075098ull,
     "{'model_type': 'smollm3', 'hidden_size': 2048, 'num_hidden_layers': 36, "
     "'num_attention_heads': 16, 'intermediate_size': 11008, 'vocab_size': 128256, "
     "'num_key_value_heads': 4}"},
    {"LFM2", "LFM2 1.2B", ORIGIN_WEIGHTS, 1170340608ull, 1170340608ull, 1170340ull,
     "{'model_type': 'lfm2', 'hidden_size': 2048, 'num_hidden_layers': 16, "
     "'num_attention_heads': 32, 'num_key_value_heads': 8, 'block_ff_dim': 12288, "
     "'intermediate_size': 12288, 'block_auto_adjust_ff_dim': true, 'block_multiple_of': "
     "256, 'conv_L_cache': 3, 'conv_bias': false, 'full_attn_idxs': [2, 5, 8, 10, 12, 14],"
     " 'vocab_size': 65536}"},
    {"LFM2", "LFM2 8B-A1B", ORIGIN_BUILT, 8339930560ull, 8340000000ull, 8340000ull,
     "{'model_type': 'lfm2_moe', 'hidden_size': 2048, 'num_hidden_layers': 24, "
     "'num_attention_heads': 32, 'intermediate_size': 7168, 'vocab_size': 65536, "
     "'num_key_value_heads': 8, 'conv_L_cache': 3, 'conv_bias': false, 'num_dense_layers':"
     " 2, 'num_experts': 32, 'num_experts_per_tok': 4, 'moe_intermediate_size': 1792, "
     "'use_expert_bias': true, 'layer_types': ['conv', 'conv', 'full_attention', 'conv', "
     "'conv', 'conv', 'full_attention', 'conv', 'conv', 'conv', 'full_attention', 'conv', "
     "'conv', 'conv', 'full_attention', 'conv', 'conv', 'conv', 'full_attention', 'conv', "
     "'conv', 'full_attention', 'conv', 'conv']}"},
    {"EXAONE", "EXAONE 3.5 7.8B", ORIGIN_WEIGHTS, 7818448896ull, 7818448896ull, 7818448ull,
     "{'model_type': 'exaone', 'hidden_size': 4096, 'num_layers': 32, "
     "'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 14336, "
     "'vocab_size': 102400, 'max_position_embeddings': 32768}"},
    {"EXAONE", "EXAONE 4.0 32B", ORIGIN_WEIGHTS, 32003216384ull, 32003216384ull, 32003216ull,
     "{'model_type': 'exaone4', 'hidden_size': 5120, 'num_hidden_layers': 64, "
     "'num_attention_heads': 40, 'intermediate_size': 27392, 'vocab_size': 102400, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'sliding_window': 4096, "
     "'sliding_window_pattern': 'LLLG'}"},
    {"Apertus", "Apertus 8B", ORIGIN_BUILT, 8053338112ull, 8050000000ull, 8050000ull,
     "{'model_type': 'apertus', 'hidden_size': 4096, 'num_hidden_layers': 32, "
     "'num_attention_heads': 32, 'intermediate_size': 21504, 'vocab_size': 131072, "
     "'num_key_value_heads': 8, 'qk_norm': true}"},
    {"Arcee", "AFM 4.5B", ORIGIN_BUILT, 4619184640ull, 4620000000ull, 5000000ull,
     "{'model_type': 'arcee', 'hidden_size': 2560, 'num_hidden_layers': 36, "
     "'num_attention_heads': 20, 'intermediate_size': 18432, 'vocab_size': 128004, "
     "'num_key_value_heads': 4, 'head_dim': 128}"},
    {"dots.llm1", "dots.llm1", ORIGIN_BUILT, 142774381696ull, 142800000000ull, 142800000ull,
     "{'model_type': 'dots1', 'hidden_size': 4096, 'num_hidden_layers': 62, "
     "'num_attention_heads': 32, 'intermediate_size': 10944, 'vocab_size': 152064, "
     "'num_key_value_heads': 32, 'head_dim': 128, 'moe_intermediate_size': 1408, "
     "'n_routed_experts': 128, 'n_shared_experts': 2, 'num_experts_per_tok': 6, "
     "'first_k_dense_replace': 1, 'topk_method': 'noaux_tc'}"},
    {"LongCat", "LongCat-Flash", ORIGIN_CLOSED, 560664980480ull, 560664980480ull, 0ull,
     "{'model_type': 'longcat_flash', 'hidden_size': 6144, 'num_layers': 28, "
     "'num_attention_heads': 64, 'ffn_hidden_size': 12288, 'expert_ffn_hidden_size': 2048,"
     " 'n_routed_experts': 512, 'zero_expert_num': 256, 'moe_topk': 12, 'vocab_size': "
     "131072, 'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_nope_head_dim': 128, "
     "'qk_rope_head_dim': 64, 'v_head_dim': 128}"},
    {"MiniCPM", "MiniCPM 2B", ORIGIN_WEIGHTS, 2724880896ull, 2724880896ull, 2724880ull,
     "{'model_type': 'minicpm', 'hidden_size': 2304, 'num_hidden_layers': 40, "
     "'num_attention_heads': 36, 'intermediate_size': 5760, 'vocab_size': 122753, "
     "'num_key_value_heads': 36, 'tie_word_embeddings': true}"},
    {"MiniCPM", "MiniCPM3 4B", ORIGIN_WEIGHTS, 4073875968ull, 4073875968ull, 4073875ull,
     "{'model_type': 'minicpm3', 'hidden_size': 2560, 'num_hidden_layers': 62, "
     "'num_attention_heads': 40, 'intermediate_size': 6400, 'vocab_size': 73448, "
     "'num_key_value_heads': 40, 'q_lora_rank': 768, 'kv_lora_rank': 256, "
     "'qk_nope_head_dim': 64, 'qk_rope_head_dim': 32, 'v_head_dim': 64, "
     "'tie_word_embeddings': true}"},
    {"Bailing", "Ling Lite 16.8B", ORIGIN_CARD, 16801974272ull, 16800000000ull, 50000000ull,
     "{'model_type': 'bailing_moe', 'hidden_size': 2048, 'num_hidden_layers': 28, "
     "'num_attention_heads': 16, 'intermediate_size': 5632, 'vocab_size': 126464, "
     "'num_key_value_heads': 4, 'head_dim': 128, 'num_experts': 64, 'num_experts_per_tok':"
     " 6, 'num_shared_experts': 2, 'moe_intermediate_size': 1408, 'first_k_dense_replace':"
     " 0, 'use_qkv_bias': false, 'use_bias': false}"},
    {"Bailing", "Ling 2.0 mini", ORIGIN_WEIGHTS, 16255643392ull, 16255643392ull, 16255643ull,
     "{'model_type': 'bailing_moe_v2', 'hidden_size': 2048, 'num_hidden_layers': 20, "
     "'num_attention_heads': 16, 'intermediate_size': 5120, 'vocab_size': 157184, "
     "'num_key_value_heads': 4, 'head_dim': 128, 'num_experts': 256, "
     "'num_experts_per_tok': 8, 'num_shared_experts': 1, 'moe_intermediate_size': 512, "
     "'first_k_dense_replace': 1, 'use_qkv_bias': false, 'use_bias': false, 'use_qk_norm':"
     " true, 'moe_router_enable_expert_bias': true, 'num_nextn_predict_layers': 0}"},
    {"HY", "HY-V3", ORIGIN_BUILT, 295033543488ull, 295000000000ull, 500000000ull,
     "{'model_type': 'hy_v3', 'hidden_size': 4096, 'num_hidden_layers': 80, "
     "'num_attention_heads': 64, 'intermediate_size': 13312, 'vocab_size': 120832, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'num_experts': 192, "
     "'num_experts_per_tok': 8, 'num_shared_experts': 1, 'moe_intermediate_size': 1536, "
     "'first_k_dense_replace': 1}"},
    {"Persimmon", "Persimmon 8B", ORIGIN_BUILT, 9397175296ull, 9400000000ull, 9400000ull,
     "{'model_type': 'persimmon', 'hidden_size': 4096, 'num_hidden_layers': 36, "
     "'num_attention_heads': 64, 'intermediate_size': 16384, 'vocab_size': 262144, "
     "'qk_layernorm': true}"},
    {"Orion", "Orion 14B", ORIGIN_CARD, 14498703360ull, 14500000000ull, 50000000ull,
     "{'model_type': 'orion', 'hidden_size': 5120, 'num_hidden_layers': 40, "
     "'num_attention_heads': 40, 'intermediate_size': 15360, 'vocab_size': 84608, "
     "'num_key_value_heads': 40}"},
    {"MiMo", "MiMo 7B", ORIGIN_CLOSED, 7622619136ull, 7622619136ull, 0ull,
     "{'model_type': 'mimo', 'hidden_size': 4096, 'num_hidden_layers': 36, "
     "'num_attention_heads': 32, 'intermediate_size': 11008, 'vocab_size': 151680, "
     "'num_key_value_heads': 8, 'head_dim': 128, 'attention_bias': true, "
     "'num_nextn_predict_layers': 1, 'use_sliding_window': false}"},
};

enum { MODEL_ROWS = sizeof model_rows / sizeof *model_rows };

#endif
