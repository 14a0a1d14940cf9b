/* SPDX-License-Identifier: Apache-2.0 */
/* software.h - how training software uses a chip: which work it joins in one kernel, and what its
 * host needs to issue them.
 *
 *     const orr_software *s = orr_software_find("megatron-core");
 *
 * A step of the same model on the same machine took twice as long in 2020 as it does now; the
 * software of the time is part of what was measured.  `orrery stage --software` writes the kernels
 * that a preset launches; a run on a chip takes the host from it.  docs/recipes.md has the presets
 * and where their figures come from.  Experimental: may change in the next release. */
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
    bool unfused_attention; /* products, mask, softmax, dropout and products, each by itself */
    bool has_flash2; /* FlashAttention 2, made for Ampere: slower than today's kernels on Hopper */
    bool has_triton_attention; /* FlashAttention of 2022, in Triton */
    bool mixes_prompts;        /* serving: prompts and sequences that decode in one launch */
    bool sends_once;           /* serving: a token goes once to each rank that has experts of it */
    bool merges_blocks;   /* rings of PyTorch: blocks are merged in 32 bits by single operators, and
                           keys and values travel for every head, their gradients in 32 bits */
    bool corrects_blocks; /* rings of Transformer Engine: parts are copied out of the sequence, and
                             what blocks give is scaled and added up, in the type between products */
    bool repeats_keys;    /* keys and values are written once for every head that shares them */
    bool has_dropout;     /* hidden and attention dropout are on, as in the recipes of the time */
    bool joins_bias;      /* bias, dropout and residual, bias and activation in one kernel each */
    bool joins_elementwise; /* compiled: what lies between products is one pass */
    bool is_compiled;       /* by torch.compile: kernels of Triton, layer by layer */
    bool splits_products;   /* queries, keys, values, gate and up are products of their own */
    bool adds_in_product;   /* gradients of weights are added up by the product that makes them */
    bool lists_optimizer;   /* the optimizer goes over lists of tensors, an operation at a time */
    bool upcasts_logits;    /* the loss is computed in 32 bits */
    bool keeps_logits;      /* and its logits are written so, pass by pass */
    /* Tensor-parallel ranks hold a multiple of so many rows of the vocabulary. */
    uint64_t vocab_rows;
    double expert_capacity; /* experts take so many times an even share, padded; 0: what comes */
    bool joins_experts;     /* their activation and casts are done by the products around it */
    bool adds_expert_bias;  /* the bias of what experts give is added by passes */
    bool compiles_gates;    /* gated activations are functions that torch.compile made */
    bool separates_experts; /* a product for each expert, not one kernel for all */
    bool joins_permutation; /* tokens to places of their experts and back by a kernel each */
    double
        expert_bias_slowdown; /* joined with the gradient of a bias, that of experts takes so many times as long; 0: 1 */
    bool stashes_experts; /* what experts keep for the backward pass is copied away and back */
    bool shares_first;    /* shared experts come before the router where tokens are sent once */
    bool copies_heads;    /* queries of several groups are copied out, their gradients back */
    bool leaves_scales;   /* rotations that scale and clamped gates are done operator by operator */
    bool pure;            /* weights and moments are kept in the type of the products */
    bool gathers_ahead;   /* ZeRO 1 and 2: new weights are gathered under the next forward pass */
    bool overlaps_wgrad;  /* gradients of inputs travel while those of weights are computed */
    bool grads_fp32;      /* gradients are added up and reduced in 32 bits */
    bool grads_fp32_of_bf16; /* the same, where weights are bf16 */
    bool casts_grads;        /* to 32 bits by a pass of its own, before another adds them up */
    bool frees_grads;        /* gradients are there from their backward pass to the update */
    /* ---- the host ---- */
    double host;          /* times what eager PyTorch needs to issue a kernel; 0: graphs */
    double block_us;      /* and once for each pass of a layer */
    double step_us;       /* and once for each training step: its start, loss and optimizer */
    double cache_us;      /* and for a layer's keys and values in a cache, beside the copies */
    double collective_us; /* to issue a collective or a message */
    double experts_us; /* and for a product of all experts of a device, with its share of the rest
                                of the layer: router, exchanges, attention; and for each expert: */
    double expert_us;  /* in 16 bits; twice that where what goes in is cast before */
    bool waits_for_experts;  /* the host waits to hear how many tokens each expert gets */
    double micro_batch_us;   /* and for each micro-batch, when the device has done the one before */
    bool waits_for_messages; /* the host waits for the device where stages exchange */
    bool knows_host;         /* how fast the host is was given: intervals are narrower */
} orr_software;

/* In the order in which they are best read; NULL past the last. */
ORR_API const orr_software *orr_software_at(size_t index);
/* By name; NULL: there is none. */
ORR_API const orr_software *orr_software_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
