/* SPDX-License-Identifier: Apache-2.0 */
/* layer_attention.c - the attention core: scores, softmax and weighted values, never written to memory, and what
 * context-parallel ranks exchange for it.
 *
 * Each context-parallel rank has a part of the sequence, cut so that causal masks leave all of them the same work.
 * Ring: keys and values of one block travel to the next rank while the block that is there is computed; backward,
 * their gradients travel along and arrive home after a full round.  All-gather: keys and values of all blocks at
 * once; backward they are gathered again, and their gradients reduced and scattered. */
#include "layer_steps.h"
#include "serve_impl.h"

#include <stdio.h>

/* Pairs of a query and a key it sees, of one sequence in one head. */
static uint64_t attention_pairs(const llm_job *g, uint64_t layer)
{
    const orr_model_work work = {.tokens = g->opt.seq, .is_square = g->opt.full_attention};
    orr_error unused;
    uint64_t pairs = 0;
    /* The options were refused if this could fail. */
    return orr_model_pairs(g->m, layer, &work, &pairs, &unused) ? 0 : pairs;
}

/* Multiplications with queries or keys (qk) and with values (v), so many of each a pair. */
static uint64_t operations(const llm_steps *s, uint64_t qk, uint64_t v)
{
    const llm_job *g = s->g;
    const uint64_t heads = g->m->heads / g->opt.tp;
    return 2 * attention_pairs(g, s->layer) * g->opt.micro_batch / g->opt.cp * heads *
           (qk * orr_model_qk_dim(g->m) + v * orr_model_v_dim(g->m));
}

static uint64_t query_numbers(const llm_job *g)
{
    return g->tokens * (g->m->heads / g->opt.tp) * (orr_model_qk_dim(g->m) + orr_model_v_dim(g->m));
}

static const char *label(char room[64], const char *base, const char *suffix)
{
    snprintf(room, 64, "attn.%s%s", base, suffix);
    return room;
}

/* ---- forward ---- */

typedef struct core {
    llm_pen *p;
    const char *suffix;
    uint64_t operations, bytes; /* of one block */
    uint64_t kv_bytes;
    uint64_t tag;
} core;

static uint64_t forward_ring(const core *c, llm_deps after)
{
    const uint32_t blocks = c->p->g->opt.cp;
    char room[64];
    uint64_t arrived = 0;
    uint64_t done =
        llm_put_compute(c->p, label(room, "core", c->suffix), c->operations, c->bytes, after);
    for (uint32_t i = 1; i < blocks; i++) {
        const llm_deps have = arrived ? LLM_AFTER(arrived) : after;
        llm_put_send(c->p, label(room, "kv_send", c->suffix), c->kv_bytes, c->tag, LLM_PEER_CP_NEXT,
                     have);
        arrived = llm_put_receive(c->p, label(room, "kv_receive", c->suffix), c->kv_bytes, c->tag,
                                  LLM_PEER_CP_PREVIOUS, have);
        done = llm_put_compute(c->p, label(room, "core", c->suffix), c->operations, c->bytes,
                               LLM_AFTER(done, arrived));
    }
    return done;
}

static core trained_core(const llm_steps *s)
{
    const llm_job *g = s->g;
    const bool is_ring = g->opt.context_form == ORR_CONTEXT_RING;
    const uint64_t kv = kv_numbers(g) * g->act;
    return (core){.operations = operations(s, 1, 1) / (is_ring ? g->opt.cp : 1),
                  .bytes = query_numbers(g) * g->act + (is_ring ? kv : kv * g->opt.cp),
                  .kv_bytes = kv};
}

/* Prompts and sequences that decode in one go.  Every key and value that is seen is read once: from the cache, but for
 * the prompts of MLA, whose keys and values were just expanded. */
static core served_core(const llm_steps *s)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const bool is_mla = orr_model_is_mla(m), is_ring = g->opt.context_form == ORR_CONTEXT_RING;
    const llm_sight *seen =
        &g->pass->sight[orr_model_window(m, s->layer) ? LLM_SEES_WINDOW : LLM_SEES_ALL];
    const uint64_t heads = m->heads / g->opt.tp, cp = g->opt.cp;
    const uint64_t width = orr_model_qk_dim(m) + orr_model_v_dim(m);
    const uint64_t narrow = is_mla ? 2 * m->kv_lora_rank + m->qk_rope_head_dim : width;
    const uint64_t prompt_tokens = g->tokens - g->pass->decode_tokens;
    const uint64_t queries = heads * (prompt_tokens * width + g->pass->decode_tokens * narrow);
    const uint64_t key_bytes = is_mla ? heads * width * g->act : kv_kept(g) * g->kv;
    const uint64_t block = (seen->prompt_keys + cp - 1) / cp * key_bytes;
    const uint64_t work = heads * (seen->prompt_pairs * width + seen->decode_pairs * narrow);
    return (core){.operations = 2 * work / cp / (is_ring ? cp : 1),
                  .bytes = queries * g->act + (is_ring ? block : block * cp) +
                           seen->decode_keys * kv_kept(g) * g->kv,
                  .kv_bytes = block};
}

uint64_t llm_attention_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, llm_deps after)
{
    const llm_job *g = p->g;
    core c = g->pass ? served_core(s) : trained_core(s);
    char room[64];
    c.p = p;
    c.suffix = suffix;
    c.tag = tag;
    if (g->opt.context_form == ORR_CONTEXT_RING)
        return forward_ring(&c, after);
    const uint64_t all = llm_put_collect(p, label(room, "kv_gather", suffix), ORR_COLL_ALL_GATHER,
                                         c.kv_bytes, LLM_AXIS_CP, after);
    const uint64_t from = after.count ? after.ids[0] : 0;
    return llm_put_compute(p, label(room, "core", suffix), c.operations, c.bytes,
                           LLM_AFTER(from, all));
}

/* ---- backward: scores again, then four products ---- */

static uint64_t backward_ring(const core *c, llm_deps after)
{
    llm_pen *p = c->p;
    const uint32_t blocks = p->g->opt.cp;
    uint64_t kv = 0, grads = 0;
    uint64_t done = llm_put_compute(p, "attn.core.grad", c->operations, c->bytes, after);
    for (uint32_t i = 1; i < blocks; i++) {
        const llm_deps have = kv ? LLM_AFTER(kv) : after;
        llm_put_send(p, "attn.kv_send.grad", c->kv_bytes, c->tag + 1, LLM_PEER_CP_NEXT, have);
        kv = llm_put_receive(p, "attn.kv_receive.grad", c->kv_bytes, c->tag + 1,
                             LLM_PEER_CP_PREVIOUS, have);
        llm_put_send(p, "attn.dkv_send.grad", c->kv_bytes, c->tag + 2, LLM_PEER_CP_NEXT,
                     LLM_AFTER(done, grads));
        grads = llm_put_receive(p, "attn.dkv_receive.grad", c->kv_bytes, c->tag + 2,
                                LLM_PEER_CP_PREVIOUS, LLM_AFTER(done));
        done = llm_put_compute(p, "attn.core.grad", c->operations, c->bytes, LLM_AFTER(done, kv));
    }
    if (blocks == 1)
        return done;
    llm_put_send(p, "attn.dkv_send.grad", c->kv_bytes, c->tag + 2, LLM_PEER_CP_NEXT,
                 LLM_AFTER(done, grads));
    grads = llm_put_receive(p, "attn.dkv_receive.grad", c->kv_bytes, c->tag + 2,
                            LLM_PEER_CP_PREVIOUS, LLM_AFTER(done));
    return llm_put_elementwise(p, "attn.dkv_add.grad", kv_numbers(p->g), 1, 3,
                               LLM_AFTER(done, grads));
}

static uint64_t backward_gathered(const core *c, llm_deps after)
{
    llm_pen *p = c->p;
    const uint64_t from = after.count ? after.ids[0] : 0;
    const uint64_t all = llm_put_collect(p, "attn.kv_gather.grad", ORR_COLL_ALL_GATHER, c->kv_bytes,
                                         LLM_AXIS_CP, after);
    const uint64_t done =
        llm_put_compute(p, "attn.core.grad", c->operations, c->bytes, LLM_AFTER(from, all));
    return llm_put_collect(p, "attn.dkv_scatter.grad", ORR_COLL_REDUCE_SCATTER,
                           c->kv_bytes * p->g->opt.cp, LLM_AXIS_CP, LLM_AFTER(done));
}

uint64_t llm_attention_backward(llm_pen *p, const llm_steps *s, uint64_t tag, llm_deps after)
{
    const llm_job *g = p->g;
    const bool is_ring = g->opt.context_form == ORR_CONTEXT_RING;
    const uint32_t blocks = is_ring ? g->opt.cp : 1;
    const uint64_t kv = kv_numbers(g) * g->act;
    const core c = {.p = p,
                    .operations = operations(s, 3, 2) / blocks,
                    .bytes = 2 * (query_numbers(g) * g->act + (is_ring ? kv : kv * g->opt.cp)),
                    .kv_bytes = kv,
                    .tag = tag};
    uint64_t again = 0;
    if (g->opt.recompute == ORR_RECOMPUTE_SELECTIVE)
        again = llm_attention_forward(p, s, ".again", tag + 3, after);
    const llm_deps start = again ? LLM_AFTER(again) : after;
    return is_ring ? backward_ring(&c, start) : backward_gathered(&c, start);
}
