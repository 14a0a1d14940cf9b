/* SPDX-License-Identifier: Apache-2.0 */
/* layer_steps.h - a layer as a small graph of steps, from which both passes are written.
 *
 * A step takes the result of one step, or of two, that stand before it in the list.  The forward pass writes the
 * list from front to back; the backward pass from back to front, each step giving gradients to those it took from. */
#ifndef ORR_LAYER_STEPS_H
#define ORR_LAYER_STEPS_H

#include "llm_impl.h"

typedef enum orr__step_kind {
    ORR__STEP_INPUT,       /* what the layer gets */
    ORR__STEP_ELEMENTWISE, /* norms, activations, sums */
    ORR__STEP_PRODUCT,     /* with weights */
    ORR__STEP_ATTENTION,
    ORR__STEP_ENTER,    /* all tokens for a part of the columns: tensor parallelism begins */
    ORR__STEP_LEAVE,    /* ... and ends, adding up */
    ORR__STEP_EXCHANGE, /* all to all between experts */
    ORR__STEP_GATHER    /* tokens of which each tensor-parallel rank has some: serving */
} orr__step_kind;

typedef struct orr__step {
    orr__step_kind kind;
    const char *name;
    int from, also;   /* steps; also -1: none */
    bool is_expert;   /* its weights belong to experts */
    bool is_sum;      /* of two: gradients pass through it */
    uint64_t m, n, k; /* product: of all copies together m rows */
    uint64_t copies;  /* of the weights */
    uint64_t
        numbers; /* elementwise: how many; exchange, gather: how many a rank sends; enter, leave: of all tokens */
    uint64_t operations; /* elementwise: for each number */
    uint64_t bytes;      /* elementwise: moved, where it is not the usual */
} orr__step;

enum { ORR__STEPS_MOST = 48 };

typedef struct orr__steps {
    const orr__llm *g;
    uint64_t layer;
    orr__step list[ORR__STEPS_MOST];
    int count;
} orr__steps;

void orr__describe_layer(const orr__llm *g, uint64_t layer, orr__steps *out);
void orr__describe_head(const orr__llm *g, orr__steps *out);
/* Serving: what a replica without tokens of its own does for those that share its experts; no steps: nothing. */
void orr__describe_idle_layer(const orr__llm *g, uint64_t layer, orr__steps *out);

/* The steps after the input, from front to back.  suffix: behind every name. */
uint64_t orr__steps_forward(
    orr__pen *p, const orr__steps *s, const char *suffix, uint64_t tag, uint64_t input);
uint64_t orr__steps_backward(orr__pen *p,
                             const orr__steps *s,
                             uint64_t tag,
                             int parts,
                             uint64_t output_grad,
                             orr__grads *grads);

/* Attention with all its communication between context-parallel ranks. */
uint64_t orr__attention_forward(
    orr__pen *p, const orr__steps *s, const char *suffix, uint64_t tag, orr__deps after);
uint64_t orr__attention_backward(orr__pen *p, const orr__steps *s, uint64_t tag, orr__deps after);

#endif
