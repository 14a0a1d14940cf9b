/* SPDX-License-Identifier: Apache-2.0 */
/* software.c - the presets of software.h.
 *
 * What is fused comes from the sources of the programs; host times are fitted: torch-* to the
 * measured steps of one H200 (host of 2.1 GHz: 32 us a kernel in eager mode), megatron-2021 to 120
 * rows of vTrain's single-node table, the others by the ratio of operators. */
#include <orrery/lab/software.h>

#include <string.h>

static const orr_software presets[] = {
    {.name = "megatron-core",
     .note = "Megatron-Core with Transformer Engine: fused attention, overlapped communication",
     .joins_bias = true,
     .joins_elementwise = true,
     .adds_in_product = true,
     .upcasts_logits = true,
     .gathers_ahead = true,
     .forward_us = 12,
     .backward_us = 12,
     .collective_us = 12},
    {.name = "megatron-2021",
     .note = "Megatron-LM of 2020 to 2022: attention as products and softmax, dropout, apex",
     .unfused_attention = true,
     .has_dropout = true,
     .joins_bias = true,
     .upcasts_logits = true,
     .forward_us = 50,
     .backward_us = 50,
     .collective_us = 25,
     .waits_for_messages = true},
    {.name = "deepspeed",
     .note = "DeepSpeed with ZeRO, eager PyTorch, flash attention",
     .joins_bias = true,
     .adds_in_product = false,
     .upcasts_logits = true,
     .forward_us = 20,
     .backward_us = 20,
     .collective_us = 40},
    {.name = "fsdp2-eager",
     .note = "PyTorch FSDP2, eager: every operator a kernel, flash attention",
     .splits_products = true,
     .upcasts_logits = true,
     .forward_us = 20,
     .backward_us = 20,
     .collective_us = 40},
    {.name = "torch-compile",
     .note = "PyTorch with torch.compile: what lies between products is one kernel",
     .joins_bias = true,
     .joins_elementwise = true,
     .gathers_ahead = true,
     .expert_capacity = 1.25,
     .splits_products = true,
     .upcasts_logits = true,
     .forward_us = 8,
     .backward_us = 8,
     .collective_us = 30},
    {.name = "torch-eager",
     .note = "plain PyTorch on one device, weights and optimizer in the products' type",
     .pure = true,
     .expert_capacity = 1.25,
     .forward_us = 30,
     .backward_us = 30,
     .collective_us = 40},
    {.name = "vllm",
     .note = "vLLM: fused kernels, decoding replayed as CUDA graphs",
     .joins_bias = true,
     .joins_elementwise = true},
    {.name = "cuda-graph", .note = "torch-eager replayed as a CUDA graph: no host", .pure = true},
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
