/* SPDX-License-Identifier: Apache-2.0 */
/* software.h - how training software uses a chip: what it fuses into one kernel, and the host time
 * to issue kernels.
 *
 *     const orr_software *s = orr_software_find("megatron-core");
 *
 * A step of the same model on the same machine took twice as long in 2020 as it does now; the
 * software of the time is part of what was measured.  `orrery stage --software` writes the kernels
 * that a preset launches; a run on a chip takes host times from it.  docs/recipes.md has the
 * presets and where their figures come from.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_SOFTWARE_H
#define ORRERY_LAB_SOFTWARE_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_software {
    const char *name, *note;
    /* ---- the device ---- */
    bool unfused_attention; /* matmul, mask, softmax, dropout and matmul as separate kernels */
    bool has_flash2; /* FlashAttention 2, tuned for Ampere: slower than today's kernels on Hopper */
    bool has_triton_attention; /* the Triton FlashAttention of 2022 */
    bool mixes_prompts;        /* serving: prefill and decode in one launch */
    /* serving: a token is sent once to each rank that has experts for it */
    bool sends_once;
    bool merges_blocks;   /* PyTorch's ring attention: blocks are merged in 32 bits by separate
                           * operators; keys and values are sent for every head, their gradients in
                           * 32 bits */
    bool corrects_blocks; /* Transformer Engine's ring attention: parts are copied out of the
                           * sequence, and block results are scaled and accumulated in the
                           * activation type */
    bool repeats_keys;    /* keys and values are replicated for every head that shares them */
    bool has_dropout;     /* hidden and attention dropout are on, as in recipes of the time */
    bool joins_bias;      /* bias + dropout + residual, and bias + activation, in one kernel each */
    bool joins_elementwise; /* compiled: everything between products is one pass */
    bool is_compiled;       /* by torch.compile: Triton kernels, layer by layer */
    bool splits_products;   /* separate products for queries, keys, values, gate and up */
    bool adds_in_product;   /* weight gradients are accumulated by the product itself */
    bool lists_optimizer;   /* the optimizer runs over lists of tensors, one operation at a time */
    bool upcasts_logits;    /* the loss is computed in 32 bits */
    bool keeps_logits;      /* and its logits are stored so, pass by pass */
    /* Rows of the vocabulary per tensor-parallel rank are a multiple of this. */
    uint64_t vocab_rows;
    /* capacity factor: experts are padded to this multiple of an even share; 0: no padding */
    double expert_capacity;
    /* expert activation and casts are fused into the products around them */
    bool joins_experts;
    bool adds_expert_bias;  /* expert biases are added by separate passes */
    bool compiles_gates;    /* gated activations are compiled by torch.compile */
    bool separates_experts; /* one product per expert, not one kernel for all */
    /* the router's weights apply in the activation: its gradient needs no results of experts */
    bool weighs_early;
    bool keeps_fp8; /* inputs of 8-bit products are kept in 8 bits, weights also in 8 bits */
    bool joins_permutation; /* tokens are permuted to their experts and back by one kernel each */
    /* slowdown of the expert activation gradient when fused with the bias gradient; 0: 1 */
    double expert_bias_slowdown;
    bool stashes_experts; /* what experts save for the backward pass is copied away and back */
    bool shares_first;    /* shared experts run before the router if tokens are sent once */
    bool copies_heads;    /* queries of several groups are copied out, their gradients back */
    bool leaves_scales;   /* scaled rotations and clamped gates run operator by operator */
    bool pure;            /* weights and moments are kept in the type of the products */
    bool gathers_ahead;   /* ZeRO 1 and 2: new weights are gathered during the next forward pass */
    bool overlaps_wgrad;  /* input gradients are communicated while weight gradients are computed */
    bool grads_fp32;      /* gradients are accumulated and reduced in 32 bits */
    bool grads_fp32_of_bf16; /* the same, where weights are bf16 */
    bool casts_grads;        /* to 32 bits in a separate pass, before they are accumulated */
    /* FSDP: with zero 2 and 3 a layer's gradients are copied, and reduced on their own. */
    bool copies_grads;
    bool copies_weights; /* FSDP2: gathered weights are copied to where they are read */
    bool frees_grads;    /* gradients are allocated from their backward pass to the update */
    /* ---- the host ---- */
    double host;     /* relative to eager PyTorch's time to issue a kernel; 0: CUDA graphs */
    double block_us; /* plus, per pass of a layer */
    double step_us;  /* plus, per training step: its start, loss and optimizer */
    /* plus, per layer whose keys and values go to a cache, beside the copies */
    double cache_us;
    double collective_us; /* to issue a collective or a message */
    double tensor_us;     /* one of tensor parallelism, if above that (DTensor) */
    /* plus, per layer whose weights are gathered for its forward pass, for its backward pass, and
     * whose gradients are reduced with zero 2 and 3 */
    double gather_us, again_us, reduce_us;
    double experts_us; /* plus, per product over all experts of a device, with its share of the rest
                        * of the layer: router, exchanges, attention; and per expert: */
    double expert_us;  /* in 16 bits; doubled if the input is cast first */
    bool waits_for_experts; /* the host waits for the token counts of the experts */
    /* plus, per micro-batch, after the device has finished the previous one */
    double micro_batch_us;
    bool waits_for_messages; /* the host waits for the device where stages exchange messages */
    bool knows_host;         /* the speed of the host was given: intervals are narrower */
} orr_software;

/* In reading order; NULL past the last. */
ORR_API const orr_software *orr_software_at(size_t index);
/* By name; NULL: there is none. */
ORR_API const orr_software *orr_software_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
