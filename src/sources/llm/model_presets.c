/* SPDX-License-Identifier: Apache-2.0 */
/* model_presets.c - the models that are built in: published figures, one row each.
 *
 * Families share what their rows would repeat.  The tests hold each row to the number of parameters that its
 * makers publish, to the unit where they do.  Two rows of the GPT-3 paper contradict themselves and are written
 * as their totals say: "XL" has 16 heads (24 of 128 would not be 2048), "13B" is 5120 wide (40 heads of 128; the
 * paper prints 5140). */
#include "model_impl.h"

/* GPT-2 and GPT-3: everything has a bias, the FFN is four times as wide. */
#define GPT(n, l, h, heads_, dim, positions_)                                                \
    {                                                                                        \
        .name = n, .layers = l, .hidden = h, .vocab = 50257, .max_positions = positions_,    \
        .is_tied = true, .position = ORR_MODEL_LEARNED, .position_rows = positions_,         \
        .norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .heads = heads_, .kv_heads = heads_, \
        .head_dim = dim, .has_qkv_bias = true, .has_output_bias = true, .ffn = 4 * (h),      \
        .has_ffn_bias = true                                                                 \
    }

/* RMS norms, rotary positions, gated FFN: nearly all since Llama. */
#define GATED(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_)                      \
    .name = n, .layers = l, .hidden = h, .vocab = vocab_, .max_positions = positions_, \
    .heads = heads_, .kv_heads = kv, .head_dim = dim, .ffn = ffn_, .is_gated = true

#define LLAMA(...) GATED(__VA_ARGS__), .block_norms = 2

#define EXPERTS(count, used, width) .experts = count, .experts_per_token = used, .expert_ffn = width

#define MLA(n, l, h, heads_, ffn_, vocab_, positions_)           \
    LLAMA(n, l, h, heads_, heads_, 0, ffn_, vocab_, positions_), \
        .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128

static const orr_model presets[] = {
    GPT("gpt2", 12, 768, 12, 64, 1024),
    GPT("gpt2-medium", 24, 1024, 16, 64, 1024),
    GPT("gpt2-large", 36, 1280, 20, 64, 1024),
    GPT("gpt2-xl", 48, 1600, 25, 64, 1024),

    GPT("gpt3-125m", 12, 768, 12, 64, 2048),
    GPT("gpt3-350m", 24, 1024, 16, 64, 2048),
    GPT("gpt3-760m", 24, 1536, 16, 96, 2048),
    GPT("gpt3-1.3b", 24, 2048, 16, 128, 2048),
    GPT("gpt3-2.7b", 32, 2560, 32, 80, 2048),
    GPT("gpt3-6.7b", 32, 4096, 32, 128, 2048),
    GPT("gpt3-13b", 40, 5120, 40, 128, 2048),
    GPT("gpt3-175b", 96, 12288, 96, 128, 2048),

    {LLAMA("llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096)},
    {LLAMA("llama-2-13b", 40, 5120, 40, 40, 128, 13824, 32000, 4096)},
    {LLAMA("llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000, 4096)},
    {LLAMA("llama-3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 8192)},
    {LLAMA("llama-3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 8192)},
    {LLAMA("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)},
    {LLAMA("llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, 131072)},
    {LLAMA("llama-3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, 131072)},
    {LLAMA("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072), .is_tied = true},
    {LLAMA("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, 131072), .is_tied = true},

    {LLAMA("mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768), .window = 4096},
    {LLAMA("mixtral-8x7b", 32, 4096, 32, 8, 128, 0, 32000, 32768), EXPERTS(8, 2, 14336)},
    {LLAMA("mixtral-8x22b", 56, 6144, 48, 8, 128, 0, 32000, 65536), EXPERTS(8, 2, 16384)},

#define QWEN25(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_) \
    LLAMA(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_), .has_qkv_bias = true
    {QWEN25("qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 131072)},
    {QWEN25("qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064, 131072)},
    {QWEN25("qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064, 131072)},
    {QWEN25("qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064, 131072)},

#define QWEN3(n, l, h, heads_, kv, ffn_) \
    LLAMA(n, l, h, heads_, kv, 128, ffn_, 151936, 40960), .qk_norm = ORR_MODEL_QK_NORM_HEAD
    {QWEN3("qwen3-0.6b", 28, 1024, 16, 8, 3072), .is_tied = true},
    {QWEN3("qwen3-1.7b", 28, 2048, 16, 8, 6144), .is_tied = true},
    {QWEN3("qwen3-4b", 36, 2560, 32, 8, 9728), .is_tied = true},
    {QWEN3("qwen3-8b", 36, 4096, 32, 8, 12288)},
    {QWEN3("qwen3-14b", 40, 5120, 40, 8, 17408)},
    {QWEN3("qwen3-32b", 64, 5120, 64, 8, 25600)},
    {QWEN3("qwen3-30b-a3b", 48, 2048, 32, 4, 0), EXPERTS(128, 8, 768)},
    {QWEN3("qwen3-235b-a22b", 94, 4096, 64, 4, 0), EXPERTS(128, 8, 1536)},

    {MLA("deepseek-v2-lite", 27, 2048, 16, 10944, 102400, 163840), EXPERTS(64, 6, 1408),
     .shared_experts = 2, .shared_ffn = 1408, .dense_first = 1},
    {MLA("deepseek-v2", 60, 5120, 128, 12288, 102400, 163840), .q_lora_rank = 1536,
     EXPERTS(160, 6, 1536), .shared_experts = 2, .shared_ffn = 1536, .dense_first = 1},
    {MLA("deepseek-v3", 61, 7168, 128, 18432, 129280, 163840), .q_lora_rank = 1536,
     EXPERTS(256, 8, 2048), .shared_experts = 1, .shared_ffn = 2048, .has_router_bias = true,
     .dense_first = 3, .mtp_layers = 1},

#define GEMMA2(n, l, h, heads_, kv, dim, ffn_)           \
    GATED(n, l, h, heads_, kv, dim, ffn_, 256000, 8192), \
        .block_norms = 4, .is_tied = true, .window = 4096, .global_every = 2, .global_at = 1
    {GEMMA2("gemma-2-2b", 26, 2304, 8, 4, 256, 9216)},
    {GEMMA2("gemma-2-9b", 42, 3584, 16, 8, 256, 14336)},
    {GEMMA2("gemma-2-27b", 46, 4608, 32, 16, 128, 36864)},

#define GPT_OSS(n, l, experts_)                                                       \
    LLAMA(n, l, 2880, 64, 8, 64, 0, 201088, 131072), EXPERTS(experts_, 4, 2880),      \
        .has_qkv_bias = true, .has_output_bias = true, .has_ffn_bias = true,          \
        .has_router_bias = true, .has_sinks = true, .window = 128, .global_every = 2, \
        .global_at = 1
    {GPT_OSS("gpt-oss-20b", 24, 32)},
    {GPT_OSS("gpt-oss-120b", 36, 128)},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const orr_model *orr_model_at(size_t index)
{
    return index < PRESETS ? &presets[index] : NULL;
}
