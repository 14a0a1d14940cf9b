/* SPDX-License-Identifier: Apache-2.0 */
/* llm_ends.c - before the first layer and after the last: embedding, head and loss.
 *
 * Both matrices are shared out by rows of the vocabulary.  A rank looks up the tokens it has rows for, and the
 * results are added up; for the loss, the largest logit and the sum of exponentials go round, never the logits. */
#include "layer_steps.h"

static uint64_t hidden_numbers(const orr__llm *g)
{
    return g->tokens * g->m->hidden;
}

static uint64_t logits(const orr__llm *g)
{
    return g->tokens * orr__vocab_share(g);
}

uint64_t orr__embedding_forward(orr__pen *p)
{
    return orr__embedding_after(p, ORR__AFTER(0));
}

uint64_t orr__embedding_after(orr__pen *p, orr__deps tokens)
{
    const orr__llm *g = p->g;
    const bool is_sp = g->is_sequence_parallel;
    uint64_t at = orr__put_elementwise(p, "embedding.lookup", hidden_numbers(g), 1, 2, tokens);
    at = orr__put_collect(p, "embedding.sum", is_sp ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE,
                          hidden_numbers(g) * g->act, ORR__AXIS_TP, ORR__AFTER(at));
    if (g->m->position == ORR_MODEL_LEARNED)
        at = orr__put_elementwise(p, "embedding.positions", g->thin_tokens * g->m->hidden, 1, 3,
                                  ORR__AFTER(at));
    return at;
}

void orr__embedding_backward(orr__pen *p, uint64_t output_grad, orr__grads *grads)
{
    const orr__llm *g = p->g;
    uint64_t at = output_grad;
    if (g->is_sequence_parallel)
        at = orr__put_collect(p, "embedding.gather.grad", ORR_COLL_ALL_GATHER,
                              g->thin_tokens * g->m->hidden * g->act, ORR__AXIS_TP, ORR__AFTER(at));
    const uint64_t bytes = hidden_numbers(g) * (g->act + 2 * g->grad);
    grads->dense[grads->dense_count++] =
        orr__put_compute(p, "embedding.wgrad", hidden_numbers(g), bytes, ORR__AFTER(at));
}

uint64_t orr__head_forward(orr__pen *p, uint64_t input)
{
    const orr__llm *g = p->g;
    orr__steps s;
    orr__describe_head(g, &s);
    uint64_t at = orr__steps_forward(p, &s, "", 0, input);
    at = orr__put_elementwise(p, "loss.max", logits(g), 1, 1, ORR__AFTER(at));
    at = orr__put_collect(p, "loss.max_all", ORR_COLL_ALL_REDUCE, g->tokens * 4, ORR__AXIS_TP,
                          ORR__AFTER(at));
    at = orr__put_elementwise(p, "loss.exponentials", logits(g), 4, 2, ORR__AFTER(at));
    at = orr__put_collect(p, "loss.sum_all", ORR_COLL_ALL_REDUCE, g->tokens * 8, ORR__AXIS_TP,
                          ORR__AFTER(at));
    return orr__put_elementwise(p, "loss.mean", g->tokens, 2, 2, ORR__AFTER(at));
}

uint64_t orr__head_backward(orr__pen *p, int parts, uint64_t loss, orr__grads *grads)
{
    orr__steps s;
    orr__describe_head(p->g, &s);
    uint64_t at = loss;
    if (parts & ORR__INPUT_GRADS)
        at = orr__put_elementwise(p, "loss.grad", logits(p->g), 2, 2, ORR__AFTER(loss));
    return orr__steps_backward(p, &s, 0, parts, at, grads);
}
