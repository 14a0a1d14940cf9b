/* SPDX-License-Identifier: Apache-2.0 */
/* layer_steps.h - a layer as a small graph of steps, from which both passes are written.
 *
 * A step takes the result of one step, or of two, that stand before it in the list.  The forward
 * pass writes the list from front to back; the backward pass from back to front, each step giving
 * gradients to those it took from. */
#ifndef ORR_LAYER_STEPS_H
#define ORR_LAYER_STEPS_H

#include "llm_impl.h"

typedef enum llm_step_kind {
    LLM_STEP_INPUT,       /* what the layer gets */
    LLM_STEP_ELEMENTWISE, /* norms, activations, sums */
    LLM_STEP_PRODUCT,     /* with weights */
    LLM_STEP_ATTENTION,
    LLM_STEP_ENTER,    /* all tokens for a part of the columns: tensor parallelism begins */
    LLM_STEP_LEAVE,    /* ... and ends, adding up */
    LLM_STEP_EXCHANGE, /* all to all between experts */
    LLM_STEP_GATHER    /* tokens of which each tensor-parallel rank has some: serving */
} llm_step_kind;

/* What an elementwise step is, for the kernels that it launches. */
typedef enum llm_role {
    LLM_ROLE_PLAIN = 0,
    LLM_ROLE_NORM,
    LLM_ROLE_SUM,
    LLM_ROLE_ACTIVATION,
    LLM_ROLE_ROTARY,
    LLM_ROLE_SELECT,  /* experts of a token */
    LLM_ROLE_PERMUTE, /* rows by index */
    LLM_ROLE_WEIGH,   /* and back, each with its weight */
    LLM_ROLE_CACHE    /* into the cache of keys and values */
} llm_role;

typedef struct llm_step {
    llm_step_kind kind;
    llm_role role;
    const char *name;
    int from, also;                 /* steps; also -1: none */
    bool is_expert;                 /* its weights belong to experts */
    bool is_dispatch;               /* exchange: to the experts, not back */
    bool is_sum;                    /* of two: gradients pass through it */
    bool is_residual;               /* a sum with the layer's input; a norm of such a sum */
    bool has_bias;                  /* product */
    bool joins_next;                /* product: its bias can be added by what comes next */
    bool is_dropped;                /* product: dropout follows, before the residual sum */
    bool is_pair;                   /* product: gate and up */
    bool is_down;                   /* product: back from the width of an FFN */
    bool is_gathered, is_scattered; /* product: its input was gathered, its result will be added up
                                       over tensor-parallel ranks */
    uint64_t width;                 /* elementwise: of a row; 0: hidden */
    uint64_t m, n, k;               /* product: of all copies together m rows */
    uint64_t copies;                /* of the weights */
    /* Elementwise: how many; exchange, gather: how many a rank sends; enter, leave: of all tokens.
     * */
    uint64_t numbers;
    uint64_t operations; /* elementwise: for each number */
    uint64_t bytes;      /* elementwise: moved, where it is not the usual */
} llm_step;

enum { LLM_STEPS_MOST = 64 };

typedef struct llm_steps {
    const llm_job *g;
    uint64_t layer;
    llm_step list[LLM_STEPS_MOST];
    int count;
} llm_steps;

void llm_describe_layer(const llm_job *g, uint64_t layer, llm_steps *out);
void llm_describe_head(const llm_job *g, llm_steps *out);
void llm_describe_join(const llm_job *g, llm_steps *out); /* before a layer of further tokens */
/* Serving: what a replica without tokens of its own does for those that share its experts; no
 * steps: nothing. */
void llm_describe_idle_layer(const llm_job *g, uint64_t layer, llm_steps *out);

/* ---- what the next computation launches (llm_kernels.c) ---- */

void llm_launch_forward(llm_pen *p, const llm_step *s);
void llm_launch_backward(llm_pen *p, const llm_step *s, int part);

/* Recomputing by operators: is the result of this step kept?  *products counts, from 0. */
bool llm_keeps_result(const llm_step *s, int *products);
/* Recomputing by parts: is this step in one of them? */
bool llm_is_in_parts(const llm_step *s, uint32_t parts);
/* The steps after the input, from front to back.  suffix: behind every name. */
uint64_t llm_steps_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, uint64_t input);
uint64_t llm_steps_backward(llm_pen *p,
                            const llm_steps *s,
                            uint64_t tag,
                            int parts,
                            uint64_t output_grad,
                            llm_grads *grads);

#endif
