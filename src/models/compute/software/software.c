/* SPDX-License-Identifier: Apache-2.0 */
/* software.c - the presets of software.h.
 *
 * What is fused comes from the sources of the programs; host times are those of single operators on
 * one host, times a factor that is fitted: torch-* to the measured steps of one H200, megatron-*
 * before megatron-core and what a micro-batch costs (its tokens are copied to the device and
 * broadcast, masks are made, the loss is read) to every seventh row of vTrain's single-node table.
 * megatron-core, layers of experts: calls like those of Megatron-Core 0.15 and Transformer Engine
 * 2.9, issued on one host (truth/measure/experts_host.csv): 1.4 ms for attention, 4 for what goes
 * with experts, and what each of them adds, both passes together; a sixth of it with each product
 * of experts.  A linear layer of PyTorch takes that host 1.47 times as long as that of a DGX H100,
 * Transformer Engine's own is 1.5 times as far from it as those calls (its issue 2053): the two
 * cancel.  Dense layers were not measured: 0.4 is a guess.  Where the router alone is a graph,
 * attention costs its 1.4 ms: a sixth of it more than with both. */
#include "software_costs.h"

#include <string.h>

/* Microseconds of eager PyTorch 2.11 on a host of 2.1 GHz: chains of 40 calls on tiny tensors, one
 * backward pass; views, slices and calls of modules that go with an operator are in it, with a top
 * k all that sends tokens to experts.  alone: no graph of gradients is built, as in inference;
 * small models on three hosts (truth/measure), beside what their training steps took. */
typedef struct host_cost {
    double forward, backward, alone;
} host_cost;

static const host_cost host_costs[ORR_KERNEL_KINDS] = {
    [ORR_KERNEL_LAUNCH] = {10, 10, 8},
    [ORR_KERNEL_GEMM] = {40, 48, 24},
    [ORR_KERNEL_GROUPED] = {60, 60, 40},
    [ORR_KERNEL_MOE] = {300, 600, 230},
    [ORR_KERNEL_ATTENTION] = {60, 95, 40},
    [ORR_KERNEL_DECODE] = {40, 40, 40},
    [ORR_KERNEL_NORM] = {30, 68, 22},
    [ORR_KERNEL_SOFTMAX] = {14, 33, 12},
    [ORR_KERNEL_CROSS_ENTROPY] = {60, 120, 15},
    [ORR_KERNEL_ACTIVATION] = {14, 22, 12},
    [ORR_KERNEL_EMBEDDING] = {20, 60, 16},
    [ORR_KERNEL_ELEMENTWISE] = {14, 14, 12},
    [ORR_KERNEL_DROPOUT] = {23, 26, 20},
    [ORR_KERNEL_COPY] = {10, 12, 9},
    [ORR_KERNEL_FILL] = {8, 8, 7},
    [ORR_KERNEL_REDUCE] = {40, 40, 18},
    [ORR_KERNEL_GATHER] = {16, 26, 15},
    [ORR_KERNEL_ROPE] = {85, 150, 60},
    [ORR_KERNEL_OPTIMIZER] = {45, 45, 45},
    [ORR_KERNEL_TOPK] = {76, 40, 180},
    [ORR_KERNEL_SORT] = {30, 30, 25},
    [ORR_KERNEL_SCAN] = {25, 25, 20},
    [ORR_KERNEL_CONV] = {33, 58, 25},
    [ORR_KERNEL_POOL] = {25, 30, 18},
};

double orr__software_host_us(const orr_software *s, const orr_kernel *k, bool has_grads)
{
    const host_cost *c = &host_costs[k->kind];
    const double count = (double)(k->count ? k->count : 1);
    double us = !has_grads                                     ? c->alone
                : k->is_backward || k->layout != ORR_LAYOUT_NT ? c->backward
                                                               : c->forward;
    if (k->kind == ORR_KERNEL_ACTIVATION && k->is_gated) /* two operators and halves; four */
        us = k->is_backward ? 77 : has_grads ? 35 : 20;
    if (k->kind == ORR_KERNEL_NORM && k->form == ORR_FORM_CHANNELS) /* and its running means */
        us = k->is_backward ? 54 : has_grads ? 43 : 39;
    if (k->kind == ORR_KERNEL_OPTIMIZER) /* by tensor */
        us += (double)k->k * (k->form == ORR_FORM_FOREACH ? 7.8
                              : k->form == ORR_FORM_CLIP  ? 5
                                                          : 2.3);
    us = us * s->host * count + (k->form == ORR_FORM_CACHE ? s->cache_us : 0);
    if (k->kind == ORR_KERNEL_GROUPED)
        us += s->experts_us +
              s->expert_us * (double)k->groups * (orr_kernel_type_bytes(k->type) < 2 ? 2 : 1);
    return us;
}

/* FlashAttention 2 beside cuDNN's kernels, as PyTorch 2.11 has both, on our H200 at the same clock
 * (truth/measure/flash2.csv): seven shapes with heads of 128, 1.71 to 1.97 and 1.71 to 1.88
 * backward; one with heads of 64.  (FlashAttention-3, arXiv 2407.08608, figures 5 and 6: 1.65 and
 * 1.75.) */
static double flash2_slowdown(const orr_chip *chip, const orr_kernel *k)
{
    if (chip->peak_tflops[ORR_TYPE_FP8] <= 0)
        return 1;
    if (k->head <= 64)
        return k->is_backward ? 1.50 : 1.37;
    return k->is_backward ? 1.80 : 1.82;
}

/* FlashAttention-2 (arXiv 2307.08691), section 4.1: 1.3 to 2.5 times as fast as FlashAttention in
 * Triton; their geometric mean. */
static const double TRITON_SLOWDOWN = 1.8;

/* Transformer Engine, multi_stream_cublas_gemm: a product of cuBLAS for each expert, on four
 * streams, which together take as long as one after the other (its issue 2203: 24 experts, 5.02 and
 * 4.94 ms, backward 10.0 and 10.1), not one kernel for all. */
static double separate_slowdown(const orr_chip *chip, const orr_kernel *k)
{
    const bool is_wgrad = k->layout == ORR_LAYOUT_TN;
    const uint64_t rows = k->m / k->groups ? k->m / k->groups : 1;
    const orr_kernel one = {.kind = ORR_KERNEL_GEMM,
                            .type = k->type,
                            .m = is_wgrad ? k->n : rows,
                            .n = is_wgrad ? k->k : k->n,
                            .k = is_wgrad ? rows : k->k,
                            .layout = k->layout,
                            .accumulates = k->accumulates};
    orr_kernel_time all, each;
    if (!orr_chip_time(chip, k, &all) || !orr_chip_time(chip, &one, &each) || !(all.us > 0))
        return 1;
    return (double)k->groups * each.us / all.us;
}

double orr__software_slowdown(const orr_software *s, const orr_chip *chip, const orr_kernel *k)
{
    if (k->kind == ORR_KERNEL_GROUPED && k->groups && s->separates_experts)
        return separate_slowdown(chip, k);
    /* cudnn-frontend, pull request 322: on a GB200 139 us without the gradient of the bias, 1,363
     * with it, 156 once its sum was a loop that the compiler unrolls. */
    if (k->kind == ORR_KERNEL_GROUPED && k->layout == ORR_LAYOUT_NN && k->form == ORR_FORM_BIAS &&
        s->expert_bias_slowdown > 0)
        return s->expert_bias_slowdown;
    if (k->kind != ORR_KERNEL_ATTENTION || !(s->has_flash2 || s->has_triton_attention))
        return 1;
    return flash2_slowdown(chip, k) * (s->has_triton_attention ? TRITON_SLOWDOWN : 1);
}

/* Ten of those kernels, FlashAttention 2 beside cuDNN's: watts above 150 at rest for as many
 * operations at the same clock (what one draws grows with its square), 1.20 to 1.46 times as many;
 * geometric mean.  Six whose power was read over a part of the time only, below 600 W, do not
 * count. */
static const double FLASH2_DRAW = 1.35;

double orr__software_draw(const orr_software *s, const orr_chip *chip, const orr_kernel *k)
{
    const bool is_flash2 = k->kind == ORR_KERNEL_ATTENTION && s->has_flash2;
    return is_flash2 && chip->peak_tflops[ORR_TYPE_FP8] > 0 ? FLASH2_DRAW : 1;
}

/* What all presets of Megatron-Core have in common. */
#define MEGATRON_CORE                                                                          \
    .corrects_blocks = true, .joins_bias = true, .joins_elementwise = true,                    \
    .adds_in_product = true, .overlaps_wgrad = true, .upcasts_logits = true,                   \
    .compiles_gates = true, .copies_heads = true, .shares_first = true, .leaves_scales = true, \
    .vocab_rows = 128, .gathers_ahead = true, .keeps_fp8 = true

/* PyTorch's FSDP around each layer: truth/measure/collectives_host.csv, layers of nine to twelve
 * parameters, on a host of the speed that `host` stands for. */
#define FSDP .copies_grads = true, .gather_us = 600, .again_us = 280, .reduce_us = 620
#define FSDP2 FSDP, .copies_weights = true

/* Layers compiled by torch.compile in 2024. */
#define COMPILED_2024                                                                    \
    .has_flash2 = true, .merges_blocks = true, .repeats_keys = true, .joins_bias = true, \
    .joins_elementwise = true, .is_compiled = true, .gathers_ahead = true,               \
    .splits_products = true, .upcasts_logits = true, .frees_grads = true, .host = 1.0,   \
    .block_us = 160, .collective_us = 30

/* Megatron-Core before Transformer Engine had a loss. */
#define MEGATRON_CORE_2024                                                                     \
    MEGATRON_CORE, .keeps_logits = true, .adds_expert_bias = true, .separates_experts = true,  \
                   .host = 0.4, .experts_us = 820, .expert_us = 30, .waits_for_experts = true, \
                   .collective_us = 12

static const orr_software presets[] = {
    {.name = "megatron-core",
     .note = "Megatron-Core with Transformer Engine: fused attention, overlapped communication",
     MEGATRON_CORE,
     .adds_expert_bias = true,
     .joins_permutation = true,
     .weighs_early = true,
     .separates_experts = true,
     .host = 0.4,
     .experts_us = 820,
     .expert_us = 30,
     .waits_for_experts = true,
     .collective_us = 12},
    {.name = "megatron-core-layers",
     .note = "megatron-core with attention and router of each layer as CUDA graphs",
     MEGATRON_CORE,
     .joins_permutation = true,
     .weighs_early = true,
     .separates_experts = true,
     .adds_expert_bias = true,
     .host = 0.4,
     .experts_us = 420,
     .expert_us = 30,
     .waits_for_experts = true,
     .collective_us = 12},
    {.name = "megatron-core-router",
     .note = "megatron-core with the router of each layer as a CUDA graph, attention eager",
     MEGATRON_CORE,
     .joins_permutation = true,
     .weighs_early = true,
     .separates_experts = true,
     .adds_expert_bias = true,
     .host = 0.4,
     .experts_us = 650,
     .expert_us = 30,
     .waits_for_experts = true,
     .collective_us = 12},
    {.name = "megatron-core-graph",
     .note = "megatron-core of 2026, all passes as one CUDA graph: no host time; activations and "
             "casts of experts fused into their GEMMs",
     MEGATRON_CORE,
     .joins_permutation = true,
     .weighs_early = true,
     .joins_experts = true,
     .stashes_experts = true},
    {.name = "megatron-core-graph-2026-06",
     .note =
         "megatron-core-graph with cudnn-frontend 1.24, slow where experts have a bias (its issue 256)",
     MEGATRON_CORE,
     .joins_permutation = true,
     .weighs_early = true,
     .joins_experts = true,
     .expert_bias_slowdown = 9.8,
     .stashes_experts = true},
    {.name = "megatron-core-2024",
     .note = "megatron-core of 2024 and early 2025: the loss by compiled kernels over fp32 logits",
     MEGATRON_CORE_2024},
    {.name = "megatron-core-2024-flash2",
     .note = "megatron-core-2024 with FlashAttention 2 (NVTE_FUSED_ATTN=0, as NeMo's launcher of "
             "February to August 2024)",
     MEGATRON_CORE_2024,
     .has_flash2 = true},
    {.name = "megatron-2022",
     .note = "Megatron-LM of 2022: the same attention; GEMMs accumulate gradients in fp32 and "
             "overlap with tensor-parallel reductions",
     .unfused_attention = true,
     .has_dropout = true,
     .joins_bias = true,
     .adds_in_product = true,
     .overlaps_wgrad = true,
     .grads_fp32 = true,
     .upcasts_logits = true,
     .vocab_rows = 128,
     .host = 1.75,
     .collective_us = 25,
     .waits_for_messages = true},
    {.name = "megatron-2021",
     .note = "Megatron-LM of 2020 and 2021: attention as products and softmax, dropout, apex",
     .unfused_attention = true,
     .has_dropout = true,
     .joins_bias = true,
     .upcasts_logits = true,
     .vocab_rows = 128,
     .host = 1.75,
     .collective_us = 25,
     .waits_for_messages = true},
    {.name = "megatron-deepspeed",
     .note = "Megatron-DeepSpeed of 2021 and 2022: kernels of megatron-2021, gradients of bf16 "
             "weights accumulated in fp32, micro-batches loaded one by one",
     .unfused_attention = true,
     .has_dropout = true,
     .joins_bias = true,
     .grads_fp32_of_bf16 = true,
     .casts_grads = true,
     .upcasts_logits = true,
     .vocab_rows = 128,
     .host = 1.75,
     .micro_batch_us = 3000,
     .collective_us = 25,
     .waits_for_messages = true},
    {.name = "deepspeed",
     .note = "DeepSpeed with ZeRO, eager PyTorch, flash attention",
     .joins_bias = true,
     .adds_in_product = false,
     .upcasts_logits = true,
     .host = 1.0,
     .collective_us = 40},
    {.name = "fsdp2-eager",
     .note = "PyTorch FSDP2, eager: every operator a kernel, flash attention",
     .splits_products = true,
     .upcasts_logits = true,
     .gathers_ahead = true,
     .frees_grads = true,
     FSDP2,
     .host = 1.0,
     .collective_us = 40,
     .tensor_us = 250},
    {.name = "fsdp2-fused",
     .note =
         "FSDP2 around tensor-parallel layers of fused kernels (Llama 3): gradients accumulated "
         "in fp32 by a kernel after each GEMM",
     .corrects_blocks = true,
     .joins_bias = true,
     .joins_elementwise = true,
     .grads_fp32 = true,
     .upcasts_logits = true,
     .gathers_ahead = true,
     FSDP2,
     .host = 1.0,
     .collective_us = 40},
    {.name = "torch-compile",
     .note = "PyTorch with its layers compiled by torch.compile; loss and optimizer are eager",
     .joins_elementwise = true,
     .is_compiled = true,
     .gathers_ahead = true,
     .frees_grads = true,
     FSDP2,
     .expert_capacity = 1.25,
     .host = 1.0,
     .block_us = 160,
     .step_us = 300,
     .collective_us = 30},
    {.name = "torch-compile-whole",
     .note = "torch-compile with the whole model as one graph",
     .joins_elementwise = true,
     .is_compiled = true,
     .gathers_ahead = true,
     .frees_grads = true,
     FSDP2,
     .expert_capacity = 1.25,
     .host = 1.0,
     .step_us = 780,
     .collective_us = 30},
    {.name = "fsdp2-eager-2024",
     .note = "fsdp2-eager with the attention of 2024 (FlashAttention 2)",
     .has_flash2 = true,
     .merges_blocks = true,
     .repeats_keys = true,
     .splits_products = true,
     .upcasts_logits = true,
     .gathers_ahead = true,
     .frees_grads = true,
     FSDP2,
     .host = 1.0,
     .collective_us = 40,
     .tensor_us = 250},
    {.name = "torch-compile-2024",
     .note = "torch-compile with the attention of 2024 (FlashAttention 2)",
     COMPILED_2024,
     FSDP2},
    {.name = "fsdp-compile-2024",
     .note = "PyTorch FSDP (flat parameters) of 2024, layers compiled, FlashAttention 2",
     COMPILED_2024,
     FSDP},
    {.name = "fsdp-2023",
     .note = "PyTorch FSDP of 2023, eager, FlashAttention in Triton, fused QKV",
     .has_triton_attention = true,
     .upcasts_logits = true,
     .gathers_ahead = true,
     .frees_grads = true,
     FSDP,
     .host = 1.0,
     .collective_us = 40},
    {.name = "torch-eager",
     .note = "plain PyTorch on one device, weights and optimizer in the type of the GEMMs",
     .pure = true,
     .frees_grads = true,
     .expert_capacity = 1.25,
     .host = 1.12,
     .cache_us = 170,
     .collective_us = 40},
    {.name = "vllm",
     .note = "vLLM: fused kernels, decoding replayed as CUDA graphs",
     .joins_bias = true,
     .joins_elementwise = true,
     .mixes_prompts = true,
     .sends_once = true},
    {.name = "cuda-graph",
     .note = "torch-eager replayed as a CUDA graph: no host time",
     .pure = true,
     .frees_grads = true,
     .expert_capacity = 1.25},
};

const orr_software *orr_software_at(size_t index)
{
    return index < sizeof presets / sizeof *presets ? &presets[index] : NULL;
}

const orr_software *orr_software_find(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}
