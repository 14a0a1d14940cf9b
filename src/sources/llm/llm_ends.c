/* SPDX-License-Identifier: Apache-2.0 */
/* llm_ends.c - before the first layer and after the last: embedding, head and loss.
 *
 * Both matrices are shared out by rows of the vocabulary.  A rank looks up the tokens it has rows for, and the
 * results are added up; for the loss, the largest logit and the sum of exponentials go round, never the logits. */
#include "layer_steps.h"

static uint64_t hidden_numbers(const llm_job *g)
{
    return g->tokens * g->m->hidden;
}

static uint64_t logits(const llm_job *g)
{
    return g->tokens * llm_vocab_share(g);
}

uint64_t llm_embedding_forward(llm_pen *p)
{
    return llm_embedding_after(p, LLM_AFTER(0));
}

uint64_t llm_embedding_after(llm_pen *p, llm_deps tokens)
{
    const llm_job *g = p->g;
    const bool is_sp = g->is_sequence_parallel;
    uint64_t at = llm_put_elementwise(p, "embedding.lookup", hidden_numbers(g), 1, 2, tokens);
    at = llm_put_collect(p, "embedding.sum", is_sp ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE,
                         hidden_numbers(g) * g->act, LLM_AXIS_TP, LLM_AFTER(at));
    if (g->m->position == ORR_MODEL_LEARNED)
        at = llm_put_elementwise(p, "embedding.positions", g->thin_tokens * g->m->hidden, 1, 3,
                                 LLM_AFTER(at));
    return at;
}

void llm_embedding_backward(llm_pen *p, uint64_t output_grad, llm_grads *grads)
{
    const llm_job *g = p->g;
    uint64_t at = output_grad;
    if (g->is_sequence_parallel)
        at = llm_put_collect(p, "embedding.gather.grad", ORR_COLL_ALL_GATHER,
                             g->thin_tokens * g->m->hidden * g->act, LLM_AXIS_TP, LLM_AFTER(at));
    const uint64_t bytes = hidden_numbers(g) * (g->act + 2 * g->grad);
    grads->dense[grads->dense_count++] =
        llm_put_compute(p, "embedding.wgrad", hidden_numbers(g), bytes, LLM_AFTER(at));
}

uint64_t llm_head_forward(llm_pen *p, uint64_t input)
{
    const llm_job *g = p->g;
    llm_steps s;
    llm_describe_head(g, &s);
    uint64_t at = llm_steps_forward(p, &s, "", 0, input);
    at = llm_put_elementwise(p, "loss.max", logits(g), 1, 1, LLM_AFTER(at));
    at = llm_put_collect(p, "loss.max_all", ORR_COLL_ALL_REDUCE, g->tokens * 4, LLM_AXIS_TP,
                         LLM_AFTER(at));
    at = llm_put_elementwise(p, "loss.exponentials", logits(g), 4, 2, LLM_AFTER(at));
    at = llm_put_collect(p, "loss.sum_all", ORR_COLL_ALL_REDUCE, g->tokens * 8, LLM_AXIS_TP,
                         LLM_AFTER(at));
    return llm_put_elementwise(p, "loss.mean", g->tokens, 2, 2, LLM_AFTER(at));
}

uint64_t llm_head_backward(llm_pen *p, int parts, uint64_t loss, llm_grads *grads)
{
    llm_steps s;
    llm_describe_head(p->g, &s);
    uint64_t at = loss;
    if (parts & LLM_INPUT_GRADS)
        at = llm_put_elementwise(p, "loss.grad", logits(p->g), 2, 2, LLM_AFTER(loss));
    return llm_steps_backward(p, &s, 0, parts, at, grads);
}
