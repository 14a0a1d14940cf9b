/* SPDX-License-Identifier: Apache-2.0 */
/* llm_layer.c - the layers of a model: their steps (llm_impl.h), and both passes.
 *
 * The attention core (scores, softmax, weighted values) is never written to memory.  Each
 * context-parallel rank has a part of the sequence, cut so that causal masks leave all of them the
 * same work. Ring: keys and values of one block are sent to the next rank while the current block
 * is computed; backward, their gradients travel along and return after a full round. All-gather:
 * keys and values of all blocks at once; backward they are gathered again, and their gradients
 * reduced and scattered. */
#include "llm_impl.h"
#include "serve_impl.h"

#include <stdio.h>
#include <string.h>

static uint64_t kv_numbers(const llm_job *g);

/* Pairs of a query and a key it sees, of one sequence in one head. */
static uint64_t attention_pairs(const llm_job *g, uint64_t layer)
{
    const orr_model_work work = {.tokens = g->opt.seq, .is_square = g->opt.full_attention};
    orr_error unused;
    uint64_t pairs = 0;
    /* The options were refused if this could fail. */
    return orr_model_pairs(g->m, layer, &work, &pairs, &unused) ? 0 : pairs;
}

/* Operations with queries or keys (qk) and with values (v), so many per pair. */
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

static uint64_t value_numbers(const llm_job *g)
{
    return g->tokens * (g->m->heads / g->opt.tp) * orr_model_v_dim(g->m);
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
    uint64_t operations, bytes;    /* of one block */
    uint64_t kv_bytes, grad_bytes; /* that travel: keys and values, their gradients */
    uint64_t tag;
    uint64_t pairs;        /* training: in one head of one sequence */
    const llm_sight *seen; /* serving */
    bool is_backward;
    bool is_whole; /* the mask leaves all of its pairs */
} core;

static void launch_core(const core *c)
{
    if (c->seen)
        llm_launch_served_attention(c->p, c->seen);
    else
        llm_launch_attention(c->p, c->pairs, c->is_backward, c->is_whole);
}

/* Extra work per block of a ring: none with one block, or when serving. */
static void launch_beside(const core *c, uint32_t block, bool is_backward)
{
    const llm_job *g = c->p->g;
    const bool has_halves = !g->opt.full_attention && g->opt.context_form != ORR_CONTEXT_CONTIGUOUS;
    if (g->opt.cp == 1 || c->seen)
        return;
    if (g->software->merges_blocks && block)
        llm_launch_merge(c->p, value_numbers(g), has_halves && block % 2 == 0, is_backward);
    if (g->software->corrects_blocks)
        llm_launch_correction(c->p, value_numbers(g), kv_numbers(g), block, has_halves,
                              is_backward);
}

/* The blocks after the first, as the busiest rank has them. */
static core later_block(const core *c)
{
    core next = *c;
    const llm_job *g = c->p->g;
    if (g->opt.context_form == ORR_CONTEXT_CONTIGUOUS && !g->opt.full_attention && !g->pass) {
        next.is_whole = true;
        next.operations *= 2;
    }
    return next;
}

/* The next block's keys and values: from the previous rank, or once with those of all others. */
static uint64_t next_keys(const core *c,
                          uint64_t arrived,
                          const char *send,
                          const char *receive,
                          uint64_t tag,
                          llm_deps after)
{
    const llm_deps have = arrived ? LLM_AFTER(arrived) : after;
    if (c->p->g->opt.context_form == ORR_CONTEXT_BLOCKS)
        return arrived ? arrived
                       : llm_put_collect(c->p, receive, ORR_COLL_ALL_GATHER, c->kv_bytes,
                                         LLM_AXIS_CP, after);
    llm_put_send(c->p, send, c->kv_bytes, tag, LLM_PEER_CP_NEXT, have);
    return llm_put_receive(c->p, receive, c->kv_bytes, tag, LLM_PEER_CP_PREVIOUS, have);
}

static uint64_t forward_ring(const core *c, llm_deps after)
{
    const uint32_t blocks = c->p->g->opt.cp;
    const core next = later_block(c);
    char room[64], other[64];
    uint64_t arrived = 0;
    launch_core(c);
    launch_beside(c, 0, false);
    uint64_t done =
        llm_put_compute(c->p, label(room, "core", c->suffix), c->operations, c->bytes, after);
    for (uint32_t i = 1; i < blocks; i++) {
        arrived = next_keys(c, arrived, label(room, "kv_send", c->suffix),
                            label(other, "kv_receive", c->suffix), c->tag, after);
        launch_core(&next);
        launch_beside(c, i, false);
        done = llm_put_compute(c->p, label(room, "core", c->suffix), next.operations, c->bytes,
                               LLM_AFTER(done, arrived));
    }
    return done;
}

/* How many heads share keys and values that travel once for each of them. */
static uint64_t copies_of_keys(const llm_job *g)
{
    const uint64_t kv = g->m->kv_heads < g->opt.tp ? g->opt.tp : g->m->kv_heads;
    return g->software->merges_blocks && g->opt.cp > 1 ? g->m->heads / kv : 1;
}

static core trained_core(const llm_steps *s)
{
    const llm_job *g = s->g;
    const bool is_ring = g->opt.context_form != ORR_CONTEXT_ALL_GATHER;
    const uint64_t kv = kv_numbers(g) * g->act;
    return (core){.operations = operations(s, 1, 1) / (is_ring ? g->opt.cp : 1),
                  .bytes = query_numbers(g) * g->act + (is_ring ? kv : kv * g->opt.cp),
                  .pairs = attention_pairs(g, s->layer),
                  .kv_bytes = kv * copies_of_keys(g)};
}

/* Prefill and decode together.  Every visible key and value is read once: from the cache, except
 * for MLA prompts, whose keys and values were just expanded. */
static core served_core(const llm_steps *s)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const bool is_mla = orr_model_is_mla(m),
               is_ring = g->opt.context_form != ORR_CONTEXT_ALL_GATHER;
    const llm_sight *seen = &g->pass->sight[llm_layer_sees(m, s->layer)];
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
                  .seen = seen,
                  .kv_bytes = block};
}

/* Attention including communication between context-parallel ranks. */
static uint64_t llm_attention_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, llm_deps after)
{
    const llm_job *g = p->g;
    core c = g->pass ? served_core(s) : trained_core(s);
    char room[64];
    c.p = p;
    c.suffix = suffix;
    c.tag = tag;
    llm_launch_repeat(p, false);
    if (g->opt.context_form != ORR_CONTEXT_ALL_GATHER)
        return forward_ring(&c, after);
    const uint64_t all = llm_put_collect(p, label(room, "kv_gather", suffix), ORR_COLL_ALL_GATHER,
                                         c.kv_bytes, LLM_AXIS_CP, after);
    const uint64_t from = after.count ? after.ids[0] : 0;
    launch_core(&c);
    return llm_put_compute(p, label(room, "core", suffix), c.operations, c.bytes,
                           LLM_AFTER(from, all));
}

/* ---- backward: scores again, then four products ---- */

static uint64_t backward_ring(const core *c, llm_deps after)
{
    llm_pen *p = c->p;
    const uint32_t blocks = p->g->opt.cp;
    const core next = later_block(c);
    uint64_t kv = 0, grads = 0;
    launch_core(c);
    launch_beside(c, 0, true);
    uint64_t done = llm_put_compute(p, "attn.core.grad", c->operations, c->bytes, after);
    for (uint32_t i = 1; i < blocks; i++) {
        kv = next_keys(c, kv, "attn.kv_send.grad", "attn.kv_receive.grad", c->tag + 1, after);
        llm_put_send(p, "attn.dkv_send.grad", c->grad_bytes, c->tag + 2, LLM_PEER_CP_NEXT,
                     LLM_AFTER(done, grads));
        grads = llm_put_receive(p, "attn.dkv_receive.grad", c->grad_bytes, c->tag + 2,
                                LLM_PEER_CP_PREVIOUS, LLM_AFTER(done));
        launch_core(&next);
        launch_beside(c, i, true);
        done = llm_put_compute(p, "attn.core.grad", next.operations, c->bytes, LLM_AFTER(done, kv));
    }
    if (blocks == 1)
        return done;
    llm_put_send(p, "attn.dkv_send.grad", c->grad_bytes, c->tag + 2, LLM_PEER_CP_NEXT,
                 LLM_AFTER(done, grads));
    grads = llm_put_receive(p, "attn.dkv_receive.grad", c->grad_bytes, c->tag + 2,
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
    launch_core(c);
    const uint64_t done =
        llm_put_compute(p, "attn.core.grad", c->operations, c->bytes, LLM_AFTER(from, all));
    return llm_put_collect(p, "attn.dkv_scatter.grad", ORR_COLL_REDUCE_SCATTER,
                           c->kv_bytes * p->g->opt.cp, LLM_AXIS_CP, LLM_AFTER(done));
}

static uint64_t llm_attention_backward(llm_pen *p, const llm_steps *s, uint64_t tag, llm_deps after)
{
    const llm_job *g = p->g;
    const bool is_ring = g->opt.context_form != ORR_CONTEXT_ALL_GATHER;
    const uint32_t blocks = is_ring ? g->opt.cp : 1;
    const uint64_t kv = kv_numbers(g) * g->act;
    const core c = {.p = p,
                    .operations = operations(s, 3, 2) / blocks,
                    .bytes = 2 * (query_numbers(g) * g->act + (is_ring ? kv : kv * g->opt.cp)),
                    .kv_bytes = kv * copies_of_keys(g),
                    .grad_bytes =
                        kv * copies_of_keys(g) * (g->software->merges_blocks ? 4 / g->act : 1),
                    .pairs = attention_pairs(g, s->layer),
                    .is_backward = true,
                    .tag = tag};
    uint64_t again = 0;
    if (g->opt.recompute == ORR_RECOMPUTE_SELECTIVE)
        again = llm_attention_forward(p, s, ".again", tag + 3, after);
    const llm_deps start = again ? LLM_AFTER(again) : after;
    llm_launch_repeat(p, true);
    return is_ring ? backward_ring(&c, start) : backward_gathered(&c, start);
}

/* Both passes of a list of steps.
 *
 * Backward, a product becomes two: one for the input gradient, one for the weight gradient, which
 * needs all tokens again if only a part was kept (sequence parallelism).  They are separate nodes
 * so that the second may overlap with the first one's communication, or run much later (zero
 * bubble). */

enum { NAME_MOST = 64, GRADS_MOST = 12 };

typedef struct step_name {
    char text[NAME_MOST];
} step_name;

/* For every node, so without printf. */
static step_name with(const char *base, const char *suffix)
{
    step_name n;
    const size_t a = strnlen(base, NAME_MOST - 1), b = strnlen(suffix, NAME_MOST - 1 - a);
    memcpy(n.text, base, a);
    memcpy(n.text + a, suffix, b);
    n.text[a + b] = '\0';
    return n;
}

static uint64_t put_product(
    llm_pen *p, const char *label, const llm_step *s, uint64_t bytes, llm_deps after)
{
    return llm_put_compute(p, label, 2 * s->m * s->n * s->k, bytes, after);
}

/* Numbers of the three matrices of a product. */
static uint64_t in_numbers(const llm_step *s)
{
    return s->m * s->k;
}

static uint64_t weight_numbers(const llm_step *s)
{
    return s->copies * s->k * s->n;
}

static uint64_t out_numbers(const llm_step *s)
{
    return s->m * s->n;
}

/* ---- forward ---- */

typedef struct forward {
    llm_pen *p;
    const llm_steps *s;
    const char *suffix;
    uint64_t tag;
    bool is_partial; /* only what is not kept: ORR_RECOMPUTE_OPERATORS and _PARTS */
    int products;    /* so far */
    uint64_t out[LLM_STEPS_MOST];
} forward;

/* If communication is pipelined with its product in tp pieces, only the first piece is exposed; the
 * rest overlaps with the product. */
static uint64_t put_exposed(
    llm_pen *p, const char *label, orr_collective kind, uint64_t bytes, llm_deps after)
{
    const llm_job *g = p->g;
    const bool is_cut = g->opt.overlaps_tensor && g->is_sequence_parallel && !g->pass;
    const uint64_t hidden = is_cut ? bytes / g->opt.tp * (g->opt.tp - 1) : 0;
    const uint64_t id = llm_put_collect(p, label, kind, bytes - hidden, LLM_AXIS_TP, after);
    if (hidden)
        llm_put_collect(p, with(label, ".hidden").text, kind, hidden, LLM_AXIS_TP, after);
    return id;
}

static uint64_t enter(llm_pen *p, const char *label, uint64_t numbers, llm_deps after)
{
    const llm_job *g = p->g;
    if (!g->is_sequence_parallel)
        return after.ids[0]; /* every rank already has all tokens */
    /* 8-bit products: inputs are cast before they are sent; logits are not. */
    const bool is_cast = g->mat < g->act && !g->pass && strncmp(label, "head.", 5) != 0;
    return put_exposed(p, label, ORR_COLL_ALL_GATHER,
                       numbers / g->opt.tp * (is_cast ? g->mat : g->act), after);
}

static uint64_t leave(llm_pen *p, const char *label, uint64_t numbers, llm_deps after)
{
    const llm_job *g = p->g;
    return put_exposed(p, label,
                       g->is_sequence_parallel ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE,
                       numbers * g->act, after);
}

/* DeepSeek-V3 (arXiv 2412.19437), section 3.3.3: what goes to experts is cast before it is sent,
 * with a scale of 4 bytes for 128 numbers; what comes back is not, for it is added up. */
static uint64_t exchanged_bytes(const llm_job *g, const llm_step *s, bool is_out)
{
    const uint64_t n = s->numbers;
    return s->bytes + (is_out && g->opt.sends_fp8 ? n + n / 128 * 4 : n * g->act);
}

/* HybridEP: a byte for each token and expert, gathered by all ranks before tokens are sent
 * (allgather_routing_map; the host waits behind it). */
static uint64_t gather_map(forward *f, const char *label, llm_deps after)
{
    const llm_job *g = f->p->g;
    return llm_put_collect(f->p, label, ORR_COLL_ALL_GATHER, g->thin_tokens * g->m->experts,
                           LLM_AXIS_EP, after);
}

static uint64_t forward_step(forward *f, const llm_step *s)
{
    const llm_job *g = f->p->g;
    const uint64_t also = s->also >= 0 ? f->out[s->also] : 0;
    const llm_deps after = LLM_AFTER(f->out[s->from], also, s->behind ? f->out[s->behind] : 0);
    const step_name label = with(s->name, f->suffix);
    if (s->kind == LLM_STEP_ELEMENTWISE || s->kind == LLM_STEP_PRODUCT)
        llm_launch_forward(f->p, s);
    switch (s->kind) {
    case LLM_STEP_ELEMENTWISE:
        if (s->bytes)
            return llm_put_compute(f->p, label.text, s->numbers * s->operations, s->bytes, after);
        return llm_put_elementwise(f->p, label.text, s->numbers, s->operations, s->is_sum ? 3 : 2,
                                   after);
    case LLM_STEP_PRODUCT:
        return put_product(f->p, label.text, s,
                           g->mat * (in_numbers(s) + weight_numbers(s)) + g->act * out_numbers(s),
                           after);
    case LLM_STEP_ATTENTION:
        return llm_attention_forward(f->p, f->s, f->suffix, f->tag, after);
    case LLM_STEP_ENTER:
        return enter(f->p, label.text, s->numbers, after);
    case LLM_STEP_LEAVE:
        return leave(f->p, label.text, s->numbers, LLM_AFTER(f->out[s->from]));
    case LLM_STEP_GATHER:
        return llm_put_collect(f->p, label.text, ORR_COLL_ALL_GATHER, s->numbers * g->act,
                               LLM_AXIS_TP, LLM_AFTER(f->out[s->from]));
    default: {
        uint64_t before = f->out[s->from];
        if (s->is_dispatch && g->opt.sends_weights)
            before = gather_map(f, with("moe.dispatch.map", f->suffix).text, LLM_AFTER(before));
        return llm_put_collect(f->p, label.text, ORR_COLL_ALL_TO_ALL,
                               exchanged_bytes(g, s, s->is_dispatch), LLM_AXIS_EP,
                               LLM_AFTER(before));
    }
    }
}

/* Attention, every second product and reductions over ranks are kept. */
bool llm_keeps_result(const llm_step *s, int *products)
{
    if (s->kind == LLM_STEP_PRODUCT)
        return ++*products % 2 == 0;
    return s->kind == LLM_STEP_ATTENTION || s->kind == LLM_STEP_LEAVE ||
           s->kind == LLM_STEP_EXCHANGE;
}

static bool starts_with(const llm_step *s, const char *start)
{
    return strncmp(s->name, start, strlen(start)) == 0;
}

bool llm_is_in_parts(const llm_step *s, uint32_t parts)
{
    const bool is_up = strcmp(s->name, "attn.q_up") == 0 || strcmp(s->name, "attn.kv_up") == 0;
    return (parts & ORR_PART_NORM && s->role == LLM_ROLE_NORM) ||
           (parts & ORR_PART_ATTENTION && s->kind == LLM_STEP_ATTENTION) ||
           (parts & ORR_PART_LATENT && (is_up || s->role == LLM_ROLE_ROTARY)) ||
           (parts & ORR_PART_ACTIVATION && s->role == LLM_ROLE_ACTIVATION) ||
           (parts & ORR_PART_FFN && starts_with(s, "ffn.")) ||
           (parts & ORR_PART_EXPERTS && starts_with(s, "moe.")) ||
           (parts & ORR_PART_SHARED && starts_with(s, "shared."));
}

/* Steps [first, end). */
static void run_forward_range(forward *f, int first, int end)
{
    const orr_llm_options *o = &f->p->g->opt;
    for (int i = first; i < end; i++) {
        const llm_step *step = &f->s->list[i];
        const bool is_kept = f->is_partial && (o->recompute == ORR_RECOMPUTE_PARTS
                                                   ? !llm_is_in_parts(step, o->recompute_parts)
                                                   : llm_keeps_result(step, &f->products));
        f->out[i] = is_kept ? f->out[step->from] : forward_step(f, step);
    }
}

static uint64_t run_forward_steps(forward *f, uint64_t input)
{
    f->out[0] = input;
    run_forward_range(f, 1, f->s->count);
    return f->out[f->s->count - 1];
}

uint64_t llm_steps_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, uint64_t input)
{
    forward f = {.p = p, .s = s, .suffix = suffix, .tag = tag};
    return run_forward_steps(&f, input);
}

uint64_t llm_layer_forward(llm_pen *p, uint64_t layer, uint64_t tag, uint64_t input)
{
    llm_steps s;
    llm_describe_layer(p->g, layer, &s);
    return llm_steps_forward(p, &s, "", tag, input);
}

/* ---- backward ---- */

typedef struct grad_list {
    uint64_t ids[GRADS_MOST];
    size_t count;
} grad_list;

typedef struct backward {
    llm_pen *p;
    const llm_steps *s;
    uint64_t tag;
    int parts;
    grad_list of[LLM_STEPS_MOST]; /* nodes that give a part of the gradient of a step's result */
    llm_grads *grads;
} backward;

static void give(backward *b, int to, uint64_t id)
{
    if (to >= 0 && id && b->of[to].count < GRADS_MOST)
        b->of[to].ids[b->of[to].count++] = id;
}

static void give_all(backward *b, int to, const grad_list *from)
{
    for (size_t i = 0; to >= 0 && i < from->count; i++)
        give(b, to, from->ids[i]);
}

static void note_grad(backward *b, const llm_step *s, uint64_t id)
{
    llm_grads *g = b->grads;
    uint64_t *list = s->is_expert ? g->expert : g->dense;
    size_t *count = s->is_expert ? &g->expert_count : &g->dense_count;
    if (*count < LLM_GRADS_OF_LAYER)
        list[(*count)++] = id;
}

/* Accumulates into the gradients of other micro-batches: read and written. */
static uint64_t put_weight_grad(backward *b, const llm_step *s, llm_deps after)
{
    llm_pen *p = b->p;
    const llm_job *g = p->g;
    const llm_step *source = &b->s->list[s->from];
    uint64_t again = 0;
    if (source->kind == LLM_STEP_ENTER && g->is_sequence_parallel)
        again = enter(p, with(source->name, ".again").text, source->numbers, after);
    uint64_t ids[GRADS_MOST + 1] = {again};
    for (size_t i = 0; i < after.count && i < GRADS_MOST; i++)
        ids[i + 1] = after.ids[i];
    const uint64_t bytes =
        g->mat * (in_numbers(s) + out_numbers(s)) + 2 * g->grad * weight_numbers(s);
    llm_launch_backward(p, s, LLM_WEIGHT_GRADS);
    const uint64_t id =
        put_product(p, with(s->name, ".wgrad").text, s, bytes, (llm_deps){ids, after.count + 1});
    note_grad(b, s, id);
    return id;
}

static void backward_product(backward *b, const llm_step *s, llm_deps after)
{
    const llm_job *g = b->p->g;
    const uint64_t bytes = g->mat * (out_numbers(s) + weight_numbers(s)) + g->act * in_numbers(s);
    if (b->parts & LLM_INPUT_GRADS) {
        llm_launch_backward(b->p, s, LLM_INPUT_GRADS);
        const uint64_t id = put_product(b->p, with(s->name, ".grad").text, s, bytes, after);
        give(b, s->from, id);
        if (s->behind) /* autograd goes the same way back */
            give(b, s->behind, id);
    }
    if (!(b->parts & LLM_WEIGHT_GRADS))
        return;
    const uint64_t weights = put_weight_grad(b, s, after);
    /* Autograd continues once both gradients of a layer are available, and so does the reduction
     * over ranks. */
    if (b->parts & LLM_INPUT_GRADS && !g->software->overlaps_wgrad)
        give(b, s->from, weights);
}

static void backward_step(backward *b, int i)
{
    const llm_step *s = &b->s->list[i];
    const llm_job *g = b->p->g;
    const llm_deps after = {b->of[i].ids, b->of[i].count};
    const step_name label = with(s->name ? s->name : "", ".grad");
    uint64_t id = 0;
    if (s->kind == LLM_STEP_PRODUCT) {
        backward_product(b, s, after);
        return;
    }
    if (!(b->parts & LLM_INPUT_GRADS) || after.count == 0)
        return;
    if (s->is_sum || (s->kind == LLM_STEP_LEAVE && !g->is_sequence_parallel)) {
        give_all(b, s->from, &b->of[i]);
        give_all(b, s->also, &b->of[i]);
        return;
    }
    if (s->kind == LLM_STEP_ELEMENTWISE) {
        llm_launch_backward(b->p, s, LLM_INPUT_GRADS);
        id = llm_put_elementwise(b->p, label.text, s->numbers, 2 * s->operations, 3, after);
    } else if (s->kind == LLM_STEP_ATTENTION)
        id = llm_attention_backward(b->p, b->s, b->tag, after);
    else if (s->kind == LLM_STEP_ENTER)
        id = leave(b->p, label.text, s->numbers, after);
    else if (s->kind == LLM_STEP_LEAVE)
        id = enter(b->p, label.text, s->numbers, after);
    else
        id = llm_put_collect(b->p, label.text, ORR_COLL_ALL_TO_ALL,
                             exchanged_bytes(g, s, !s->is_dispatch), LLM_AXIS_EP, after);
    give(b, s->from, id);
    give(b, s->also, id);
}

/* Weight gradients alone have no incoming gradients: they wait for the pass that had them. */
static void start_from(backward *b, uint64_t output_grad)
{
    if (b->parts & LLM_INPUT_GRADS) {
        give(b, b->s->count - 1, output_grad);
        return;
    }
    for (int i = 1; i < b->s->count; i++)
        give(b, i, output_grad);
}

/* Steps from last down to first. */
static void run_backward_range(backward *b, int last, int first)
{
    for (int i = last; i >= first; i--)
        backward_step(b, i);
}

/* The gradient of what the steps took. */
static uint64_t input_grad(backward *b)
{
    const llm_pen *p = b->p;
    const llm_deps sum = {b->of[0].ids, b->of[0].count};
    if (sum.count < 2)
        return sum.count ? sum.ids[0] : 0;
    return llm_put_elementwise(b->p, "input.grad", p->g->thin_tokens * p->g->m->hidden, 1, 3, sum);
}

uint64_t llm_steps_backward(
    llm_pen *p, const llm_steps *s, uint64_t tag, int parts, uint64_t output_grad, llm_grads *grads)
{
    backward b = {.p = p, .s = s, .tag = tag, .parts = parts, .grads = grads};
    start_from(&b, output_grad);
    run_backward_range(&b, s->count - 1, 1);
    return input_grad(&b);
}

bool llm_is_recomputed(const llm_job *g, uint64_t layer)
{
    const uint64_t all = g->m->layers, some = g->opt.recompute_layers;
    if (g->opt.recompute != ORR_RECOMPUTE_FULL)
        return false;
    return !some || some >= all || (layer + 1) * some / all > layer * some / all;
}

/* What is recomputed before a backward pass: what that one starts after. */
static uint64_t run_again(llm_pen *p, const llm_steps *s, uint64_t tag, uint64_t output_grad)
{
    forward again = {.p = p,
                     .s = s,
                     .suffix = ".again",
                     .tag = tag + 4,
                     .is_partial = p->g->opt.recompute >= ORR_RECOMPUTE_OPERATORS};
    if (again.is_partial || llm_is_recomputed(p->g, s->layer))
        return run_forward_steps(&again, output_grad);
    return output_grad;
}

uint64_t llm_layer_backward(
    llm_pen *p, uint64_t layer, uint64_t tag, int parts, uint64_t output_grad, llm_grads *grads)
{
    llm_steps s;
    llm_describe_layer(p->g, layer, &s);
    if (parts & LLM_INPUT_GRADS)
        output_grad = run_again(p, &s, tag, output_grad);
    return llm_steps_backward(p, &s, tag, parts, output_grad, grads);
}

/* ---- a forward and a backward pass in turns ----
 *
 * As Megatron-Core issues them (TransformerLayerSchedulePlan.run): what travels to or from experts
 * of one pass goes under the computation of the other.
 *
 *     exchanges       combine back |  dispatch, dispatch back     |  combine
 *     computation     to the router |  experts back, experts      |  attention back
 */

/* Where tokens are sent to experts, or come back; else where the list ends, or begins. */
static int exchange_at(const llm_steps *s, bool is_dispatch, int otherwise)
{
    for (int i = 1; i < s->count; i++)
        if (s->list[i].kind == LLM_STEP_EXCHANGE && s->list[i].is_dispatch == is_dispatch)
            return i;
    return otherwise;
}

static void take_turn(llm_pen *p, llm_side *t)
{
    memcpy(p->prefix, t->prefix, sizeof p->prefix);
    for (size_t i = 0; i < sizeof t->barrier / sizeof *t->barrier; i++) {
        if (t->barrier[i])
            p->barrier[i] = t->barrier[i];
        t->barrier[i] = 0;
    }
}

void llm_layer_turns(llm_pen *p, llm_side *forth, llm_side *back, int parts, llm_grads *grads)
{
    llm_steps fs, bs;
    llm_describe_layer(p->g, forth->layer, &fs);
    llm_describe_layer(p->g, back->layer, &bs);
    forward f = {.p = p, .s = &fs, .suffix = "", .tag = forth->tag, .out = {forth->at}};
    backward b = {.p = p, .s = &bs, .tag = back->tag, .parts = parts, .grads = grads};
    const int sent = exchange_at(&fs, true, fs.count), returned = exchange_at(&fs, false, fs.count);
    const int b_sent = exchange_at(&bs, true, 0), b_returned = exchange_at(&bs, false, 1);
    take_turn(p, back);
    start_from(&b, run_again(p, &bs, back->tag, back->at));
    run_backward_range(&b, bs.count - 1, b_returned);
    take_turn(p, forth);
    run_forward_range(&f, 1, sent);
    take_turn(p, back);
    run_backward_range(&b, b_returned - 1, b_sent + 1);
    take_turn(p, forth);
    run_forward_range(&f, sent, sent < returned ? sent + 1 : sent);
    take_turn(p, back);
    run_backward_range(&b, b_sent, b_sent > 0 ? b_sent : 1);
    take_turn(p, forth);
    run_forward_range(&f, sent + 1, returned < fs.count ? returned + 1 : returned);
    take_turn(p, back);
    run_backward_range(&b, b_sent - 1, 1);
    back->at = input_grad(&b);
    take_turn(p, forth);
    run_forward_range(&f, returned + 1, fs.count);
    forth->at = f.out[fs.count - 1];
}

/* What a layer is made of, on one rank: norm, attention, FFN or experts, and the sums between.
 *
 * Between tensor-parallel regions a rank holds `thin_tokens` whole tokens (with sequence
 * parallelism; all of them without), inside them all `tokens` and 1 / tp of the columns.  Experts
 * are reached by an all-to-all and are themselves tensor-parallel; tokens are assumed to be evenly
 * distributed over them. */

static int add(llm_steps *s, llm_step step)
{
    s->list[s->count] = step;
    return s->count++;
}

static int add_elementwise(
    llm_steps *s, const char *name, int from, uint64_t numbers, uint64_t operations)
{
    return add(s, (llm_step){.kind = LLM_STEP_ELEMENTWISE,
                             .name = name,
                             .from = from,
                             .also = -1,
                             .numbers = numbers,
                             .operations = operations});
}

static int add_norm(llm_steps *s, const char *name, int from, uint64_t numbers)
{
    const bool is_rms = s->g->m->norm == ORR_MODEL_RMS_NORM;
    const int i = add_elementwise(s, name, from, numbers, is_rms ? 4 : 7);
    s->list[i].role = LLM_ROLE_NORM;
    return i;
}

static int add_sum(llm_steps *s, const char *name, int from, int also, uint64_t numbers)
{
    const int i = add_elementwise(s, name, from, numbers, 1);
    s->list[i].also = also;
    s->list[i].is_sum = true;
    s->list[i].role = LLM_ROLE_SUM;
    return i;
}

static int add_product(llm_steps *s, const char *name, int from, uint64_t m, uint64_t n, uint64_t k)
{
    return add(s, (llm_step){.kind = LLM_STEP_PRODUCT,
                             .name = name,
                             .is_gathered = s->list[from].kind == LLM_STEP_ENTER,
                             .from = from,
                             .also = -1,
                             .m = m,
                             .n = n,
                             .k = k,
                             .copies = 1});
}

static int add_move(llm_steps *s, llm_step_kind kind, const char *name, int from, uint64_t numbers)
{
    if (kind == LLM_STEP_LEAVE)
        s->list[from].is_scattered = true;
    return add(
        s, (llm_step){.kind = kind, .name = name, .from = from, .also = -1, .numbers = numbers});
}

/* ---- attention ---- */

/* Numbers of keys and values of the tokens on a rank. */
static uint64_t kv_numbers(const llm_job *g)
{
    const orr_model *m = g->m;
    if (orr_model_is_mla(m))
        return g->tokens * m->heads / g->opt.tp * (orr_model_qk_dim(m) + orr_model_v_dim(m));
    return g->tokens * kv_kept(g);
}

uint64_t kv_kept(const llm_job *g)
{
    const orr_model *m = g->m;
    if (orr_model_is_mla(m))
        return m->kv_lora_rank + m->qk_rope_head_dim; /* every rank has all of it */
    return (m->kv_heads < g->opt.tp ? 1 : m->kv_heads / g->opt.tp) * 2 * m->head_dim;
}

static int add_latent_queries(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t columns = m->heads / g->opt.tp * orr_model_qk_dim(m);
    if (!m->q_lora_rank)
        return add_product(s, "attn.q", from, g->tokens, columns, m->hidden);
    const int down = add_product(s, "attn.q_down", from, g->tokens, m->q_lora_rank, m->hidden);
    const int norm = add_norm(s, "attn.q_norm", down, g->tokens * m->q_lora_rank);
    s->list[norm].width = m->q_lora_rank;
    return add_product(s, "attn.q_up", norm, g->tokens, columns, m->q_lora_rank);
}

/* Tokens whose keys and values are expanded: the prompts' and, again, those before them in the
 * cache.  Decode attends to the compressed cache directly. */
static uint64_t expanded_tokens(const llm_job *g)
{
    if (!g->pass)
        return g->tokens;
    return (g->pass->sight[LLM_SEES_ALL].prompt_keys + g->opt.cp - 1) / g->opt.cp;
}

/* *kept: the step that has what goes into the cache. */
static int add_latent_keys(llm_steps *s, int from, int *kept)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t rows = expanded_tokens(g);
    const uint64_t columns = m->heads / g->opt.tp * (m->qk_nope_head_dim + m->v_head_dim);
    const int down = add_product(s, "attn.kv_down", from, g->tokens,
                                 m->kv_lora_rank + m->qk_rope_head_dim, m->hidden);
    const int norm = *kept = add_norm(s, "attn.kv_norm", down, g->tokens * m->kv_lora_rank);
    s->list[norm].width = m->kv_lora_rank;
    return rows ? add_product(s, "attn.kv_up", norm, rows, columns, m->kv_lora_rank) : -1;
}

/* Queries, keys and values; `also` is set when they come from two products, *kept when what goes
 * into the cache comes from a step of its own. */
static int add_queries(llm_steps *s, int from, int *also, int *kept)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    *also = *kept = -1;
    if (orr_model_is_mla(m)) {
        *also = add_latent_keys(s, from, kept);
        return add_latent_queries(s, from);
    }
    const uint64_t queries = m->heads / g->opt.tp * m->head_dim;
    const uint64_t columns = queries + kv_numbers(g) / g->tokens;
    int at = add_product(s, "attn.qkv", from, g->tokens, columns, m->hidden);
    s->list[at].has_bias = m->has_qkv_bias;
    if (m->qk_norm != ORR_MODEL_NO_QK_NORM) {
        at = add_norm(s, "attn.qk_norm", at, g->tokens * (columns + queries) / 2);
        s->list[at].width = m->head_dim;
    }
    return at;
}

static uint64_t rotated_numbers(const llm_job *g)
{
    const orr_model *m = g->m;
    const uint64_t heads = m->heads / g->opt.tp;
    if (orr_model_is_mla(m))
        return g->tokens * (heads + 1) * m->qk_rope_head_dim;
    return g->tokens * heads * m->head_dim + kv_numbers(g) / 2;
}

/* Keys and values, or what stands for them, go into the cache. */
static int add_cache_write(llm_steps *s, int from, int kept)
{
    const llm_job *g = s->g;
    const uint64_t numbers = g->tokens * kv_kept(g);
    const int at = add_elementwise(s, "attn.kv_write", from, numbers, 1);
    s->list[at].also = kept;
    s->list[at].role = LLM_ROLE_CACHE;
    s->list[at].bytes = numbers * (g->act + g->kv);
    return at;
}

/* One product per head, for decode: queries into the compressed space, and attention results out of
 * it.  Together they are the matrix that would expand the cache (DeepSeek-V2, 2.1.2). */
static int add_absorbed(llm_steps *s, const char *name, int from, uint64_t n, uint64_t k)
{
    const llm_job *g = s->g;
    const uint64_t heads = g->m->heads / g->opt.tp;
    if (!g->pass || !g->pass->decode_tokens || !orr_model_is_mla(g->m))
        return from;
    const int at = add_product(s, name, from, g->pass->decode_tokens * heads, n, k);
    s->list[at].copies = heads;
    return at;
}

/* The output of attention is gated by the input: per column, or per head. */
static int add_gate(llm_steps *s, int input, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t heads = m->heads / g->opt.tp, width = heads * orr_model_v_dim(m);
    if (m->attention_gate == ORR_MODEL_NO_GATE)
        return from;
    const int gate =
        add_product(s, "attn.gate", input, g->tokens,
                    m->attention_gate == ORR_MODEL_GATE_WIDE ? width : heads, m->hidden);
    const int at = add_elementwise(s, "attn.scale", from, g->tokens * width, 5);
    s->list[at].also = gate;
    return at;
}

static int add_attention(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t all = g->tokens * m->hidden;
    int also, kept;
    const int input = add_move(s, LLM_STEP_ENTER, "attn.gather", from, all);
    int at = add_queries(s, input, &also, &kept);
    if (m->position == ORR_MODEL_ROTARY) {
        at = add_elementwise(s, "attn.rotary", at, rotated_numbers(g), 3);
        s->list[at].role = LLM_ROLE_ROTARY;
    }
    if (g->pass)
        at = add_cache_write(s, at, kept);
    at = add_absorbed(s, "attn.q_absorb", at, m->kv_lora_rank, m->qk_nope_head_dim);
    at = add(s,
             (llm_step){.kind = LLM_STEP_ATTENTION, .name = "attn.core", .from = at, .also = also});
    at = add_absorbed(s, "attn.v_absorb", at, m->v_head_dim, m->kv_lora_rank);
    at = add_gate(s, input, at);
    at = add_product(s, "attn.out", at, g->tokens, m->hidden,
                     m->heads / g->opt.tp * orr_model_v_dim(m));
    s->list[at].has_bias = m->has_output_bias;
    s->list[at].joins_next = s->list[at].is_dropped = true;
    return add_move(s, LLM_STEP_LEAVE, "attn.scatter", at, all);
}

/* ---- linear attention and state spaces ----
 *
 * The products of the list of tensors, a convolution, the scan, a norm with a gate, and the product
 * back.  The scan reads what the products gave and keeps its state on the chip; it needs none of
 * the tokens before, but in order. */

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), e = strlen(end);
    return n >= e && strcmp(name + n - e, end) == 0;
}

static bool is_named(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Every tensor-parallel rank has all of these. */
static bool is_mixer_whole(const llm_job *g, const orr_model_tensor *t)
{
    static const char *const narrow[] = {"decay_a", "gate_a", NULL};
    static const char *const groups[] = {"mamba_bc", "mamba_bc_conv", NULL};
    return is_named(t->name, narrow) || (is_named(t->name, groups) && g->m->ssm_groups % g->opt.tp);
}

/* Widths of a mixer on one rank. */
typedef struct mixer {
    uint64_t in, conv, conv_width, out;
    orr_model_tensor inner[4]; /* products inside it */
    size_t inner_count;
} mixer;

static mixer measure_mixer(const llm_job *g, uint64_t layer)
{
    static const char *const inside[] = {"mamba_x", "mamba_dt",        "decay_b",
                                         "gate_b",  "recurrent_gates", NULL};
    orr_model_tensor t[ORR_MODEL_TENSORS];
    const size_t count = orr_model_layer_tensors(g->m, layer, t);
    mixer x = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t columns = t[i].columns / (is_mixer_whole(g, &t[i]) ? 1 : g->opt.tp);
        if (t[i].part != ORR_MODEL_MIXING || !t[i].is_product)
            continue;
        if (ends_in(t[i].name, "_conv")) {
            x.conv += columns;
            x.conv_width = t[i].rows;
        } else if (ends_in(t[i].name, "_out")) {
            x.out = t[i].rows / g->opt.tp;
        } else if (is_named(t[i].name, inside)) {
            x.inner[x.inner_count++] = t[i];
        } else {
            x.in += columns;
        }
    }
    return x;
}

static int add_inner(llm_steps *s, int from, const orr_model_tensor *t)
{
    const llm_job *g = s->g;
    const uint64_t copies = t->copies > 1 ? t->copies / g->opt.tp : 1;
    const uint64_t columns = t->copies > 1 ? t->columns : t->columns / g->opt.tp;
    const int at = add_product(s,
                               t->copies > 1       ? "mixer.gates"
                               : t->name[0] == 'm' ? "mixer.dt"
                               : t->name[0] == 'd' ? "mixer.decay"
                                                   : "mixer.gate",
                               from, g->tokens * copies, columns, t->rows);
    s->list[at].copies = copies;
    return at;
}

uint64_t llm_state_bytes(const llm_job *g, uint64_t layer)
{
    return 4 * orr_model_layer_state(g->m, layer) / g->opt.tp;
}

static int add_state_mixer(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const mixer x = measure_mixer(g, s->layer);
    const uint64_t all = g->tokens * m->hidden, width = g->tokens * x.out;
    const uint64_t flops = orr_model_state_flops(m, s->layer) / (x.out * g->opt.tp);
    int at = add_move(s, LLM_STEP_ENTER, "mixer.gather", from, all);
    at = add_product(s, "mixer.in", at, g->tokens, x.in, m->hidden);
    if (x.conv)
        at = add_elementwise(s, "mixer.conv", at, g->tokens * x.conv, 2 * x.conv_width);
    for (size_t i = 0; i < x.inner_count; i++)
        at = add_inner(s, at, &x.inner[i]);
    at = add_elementwise(s, flops ? "mixer.scan" : "mixer.scale", at, width, flops ? flops : 2);
    s->list[at].bytes = (g->tokens * x.in + width) * g->act;
    if (g->pass) /* every sequence's state is read and written back */
        s->list[at].bytes += 2 * llm_state_bytes(g, s->layer) *
                             (g->pass->sight[LLM_SEES_STATE].prompt_keys +
                              g->pass->sight[LLM_SEES_STATE].decode_keys);
    at = add_elementwise(s, "mixer.norm", at, width, 6);
    at = add_product(s, "mixer.out", at, g->tokens, m->hidden, x.out);
    return add_move(s, LLM_STEP_LEAVE, "mixer.scatter", at, all);
}

/* Attention, a state, or both beside each other. */
static int add_mixer(llm_steps *s, int from)
{
    const orr_model *m = s->g->m;
    const bool is_attention = orr_model_is_attention(m, s->layer);
    const int attention = is_attention ? add_attention(s, from) : -1;
    if (orr_model_layer_state(m, s->layer) == 0)
        return attention;
    const int state = add_state_mixer(s, from);
    return is_attention ? add_sum(s, "mixer.add", attention, state, s->g->thin_tokens * m->hidden)
                        : state;
}

/* ---- FFN and experts ---- */

typedef struct ffn {
    const char *up, *activation, *down;
    uint64_t rows, width, copies;
    bool is_expert;
} ffn;

static int add_ffn_products(llm_steps *s, int from, const ffn *f)
{
    const llm_job *g = s->g;
    const uint64_t tp = f->is_expert && g->expert_tp ? g->expert_tp : g->opt.tp;
    const uint64_t width = f->width / tp, hidden = g->m->hidden;
    const int up = add_product(s, f->up, from, f->rows, g->m->is_gated ? 2 * width : width, hidden);
    const int act = add_elementwise(s, f->activation, up, f->rows * width, g->m->is_gated ? 6 : 8);
    const int down = add_product(s, f->down, act, f->rows, hidden, width);
    s->list[act].role = LLM_ROLE_ACTIVATION;
    s->list[act].is_expert = f->is_expert;
    s->list[up].has_bias = s->list[down].has_bias = g->m->has_ffn_bias;
    s->list[up].joins_next = s->list[down].joins_next = s->list[down].is_dropped = true;
    s->list[up].is_pair = g->m->is_gated;
    s->list[down].is_down = true;
    s->list[up].copies = s->list[down].copies = f->copies;
    s->list[up].is_expert = s->list[down].is_expert = f->is_expert;
    return down;
}

static int add_ffn(llm_steps *s, int from, const ffn *f, const char *enter, const char *leave)
{
    const uint64_t all = f->rows * s->g->m->hidden;
    int at = add_move(s, LLM_STEP_ENTER, enter, from, all);
    at = add_ffn_products(s, at, f);
    return add_move(s, LLM_STEP_LEAVE, leave, at, all);
}

/* Expected number of distinct places out of n hit by k uniformly placed experts. */
static double places_met(uint64_t n, uint64_t k)
{
    double missed = 1;
    for (uint64_t i = 0; i < k; i++)
        missed *= 1 - 1 / (double)n;
    return (double)n * (1 - missed);
}

/* The same if a token's experts are in `chosen` of `groups` groups, laid out over the places in
 * order: DeepSeek-V3 (arXiv 2412.19437), section 2.1.2, limits the nodes of a token this way.
 */
static double places_met_in_groups(uint64_t n, uint64_t k, uint64_t groups, uint64_t chosen)
{
    if (n >= groups) { /* a group is on n / groups places */
        const double open = (double)(chosen * n) / (double)groups;
        double missed = 1;
        for (uint64_t i = 0; i < k; i++)
            missed *= 1 - 1 / open;
        return open * (1 - missed);
    }
    /* A place has several groups: j of those chosen with a chance of the hypergeometric
     * distribution, and then none of k experts with that of (1 - j / chosen)^k. */
    const uint64_t own = (groups + n - 1) / n;
    double missed = 0;
    for (uint64_t j = 0; j <= chosen && j <= own; j++) {
        double chance = 1;
        if (chosen - j > groups - own)
            continue;
        for (uint64_t i = 0; i < j; i++) /* C(own, j) */
            chance *= (double)(own - i) / (double)(i + 1);
        for (uint64_t i = 0; i < chosen - j; i++) /* C(groups - own, chosen - j) */
            chance *= (double)(groups - own - i) / (double)(i + 1);
        for (uint64_t i = 0; i < chosen; i++) /* / C(groups, chosen) */
            chance *= (double)(i + 1) / (double)(groups - i);
        for (uint64_t i = 0; i < k; i++)
            chance *= 1 - (double)j / (double)chosen;
        missed += chance;
    }
    return (double)n * (1 - missed);
}

/* How often a token is sent: per expert, or once per rank, and over the network once per node,
 * where it is forwarded. */
static double copies_sent(const llm_job *g)
{
    const orr_model *m = g->m;
    const uint64_t k = m->experts_per_token, ep = g->opt.ep, node = g->opt.node_ranks;
    const uint64_t places = ep <= node ? ep : (ep + node - 1) / node;
    if (!g->opt.sends_once || ep < 2)
        return (double)k;
    if (m->expert_groups > 1 && m->groups_per_token < m->expert_groups)
        return places_met_in_groups(places, k, m->expert_groups, m->groups_per_token);
    return places_met(places, k);
}

/* HybridEP: each copy of a token takes 4 bytes for every expert of a node with it
 * (hybrid_ep_backend.cuh: NUM_OF_EXPERTS_PER_RANK * NUM_OF_RANKS_PER_NODE), and its gradient brings
 * as many back. */
static uint64_t weight_bytes(const llm_job *g, double copies)
{
    const uint64_t ep = g->opt.ep, node = g->opt.node_ranks < ep ? g->opt.node_ranks : ep;
    return g->opt.sends_weights && ep > 1
               ? (uint64_t)(copies * (double)(g->m->experts / ep * node * 4) + 0.5)
               : 0;
}

static int add_routed(llm_steps *s, int from, int behind)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t copies = g->thin_tokens * m->experts_per_token * m->hidden;
    const double load = (double)g->opt.expert_load / 100;
    const uint64_t sent =
        (uint64_t)((double)(g->thin_tokens * m->hidden) * copies_sent(g) * load + 0.5);
    const uint64_t weights = weight_bytes(g, (double)g->thin_tokens * copies_sent(g) * load);
    const ffn experts = {.up = "moe.up",
                         .activation = "moe.activation",
                         .down = "moe.down",
                         .rows = (g->expert_tp ? g->thin_tokens : g->tokens) *
                                 m->experts_per_token * g->opt.expert_load / 100,
                         .width = m->expert_ffn,
                         .copies = m->experts / g->opt.ep,
                         .is_expert = true};
    int at = add_product(s, "moe.router", from, g->thin_tokens, m->experts, m->hidden);
    s->list[at].behind = behind;
    at = add_elementwise(s, "moe.select", at, g->thin_tokens * m->experts, 4);
    s->list[at].role = LLM_ROLE_SELECT;
    at = add_elementwise(s, "moe.permute", at, copies, 1);
    s->list[at].role = LLM_ROLE_PERMUTE;
    s->list[at].also = from;
    at = add_move(s, LLM_STEP_EXCHANGE, "moe.dispatch", at, sent);
    s->list[at].is_dispatch = true;
    s->list[at].bytes = weights;
    at = g->expert_tp ? add_ffn_products(s, at, &experts)
                      : add_ffn(s, at, &experts, "moe.gather", "moe.scatter");
    at = add_move(s, LLM_STEP_EXCHANGE, "moe.combine", at, sent);
    at = add_elementwise(s, "moe.weigh", at, copies, 2);
    s->list[at].role = LLM_ROLE_WEIGH;
    return at;
}

/* All shared experts of a layer, as one wide one. */
static ffn shared_experts(const llm_job *g)
{
    return (ffn){.up = "shared.up",
                 .activation = "shared.activation",
                 .down = "shared.down",
                 .rows = g->tokens,
                 .width = g->m->shared_ffn * g->m->shared_experts,
                 .copies = 1};
}

static int add_shared_ffn(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const ffn shared = shared_experts(g);
    int at = add_ffn(s, from, &shared, "shared.gather", "shared.scatter");
    if (m->has_shared_gate) {
        const int gate = add_product(s, "shared.scale", from, g->thin_tokens, 1, m->hidden);
        at = add_elementwise(s, "shared.weigh", at, g->thin_tokens * m->hidden, 1);
        s->list[at].also = gate;
    }
    return at;
}

/* Megatron-Core computes shared experts under the exchanges only where copies travel; its flex
 * dispatcher has no such overlap (set_shared_experts of MoEFlexTokenDispatcher), so they come
 * before the router there. */
static int add_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    /* DeepSeek's own schedules are not Megatron's. */
    const bool is_dual = llm_is_dual(&g->opt) || g->opt.pipeline == ORR_PIPELINE_DUALPIPE_V;
    const bool is_first =
        g->software->shares_first && !is_dual && g->opt.sends_once && g->opt.ep > 1;
    if (!g->m->shared_experts)
        return add_routed(s, from, 0);
    const int before = is_first ? add_shared_ffn(s, from) : 0;
    const int routed = add_routed(s, from, before);
    const int shared = is_first ? before : add_shared_ffn(s, from);
    return add_sum(s, "moe.sum", shared, routed, g->thin_tokens * g->m->hidden);
}

/* ---- experts while serving ----
 *
 * Experts on the ranks of one replica (ep <= tp): every rank has all tokens, computes what its
 * experts have to do with them, and the sum over the ranks puts it together.  Experts on several
 * replicas: a rank sends its share of the tokens to where their experts are, which are whole. */

static uint64_t round_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Expected number of `copies` experts with at least one token, all equally likely: 1 - (1 - k /
 * E)^tokens of them. Multiplications only, so that it is the same everywhere; rounded up. */
static uint64_t experts_met(const orr_model *m, uint64_t copies, uint64_t tokens)
{
    double missed = 1, power = 1 - (double)m->experts_per_token / (double)m->experts;
    for (; tokens; tokens >>= 1, power *= power)
        if (tokens & 1)
            missed *= power;
    const double met = (double)copies * (1 - missed);
    const uint64_t whole = (uint64_t)met;
    return whole + (met > (double)whole + 1e-9);
}

/* rows: how many of the tokens' copies come to this rank. */
static int add_expert_products(llm_steps *s, int from, uint64_t rows)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const ffn experts = {.up = "moe.up",
                         .activation = "moe.activation",
                         .down = "moe.down",
                         .rows = rows,
                         .width = m->expert_ffn,
                         .copies = experts_met(m, m->experts / g->opt.ep, g->pass->shared_tokens),
                         .is_expert = true};
    return add_ffn_products(s, from, &experts);
}

static int add_routing(llm_steps *s, int from, uint64_t tokens)
{
    const orr_model *m = s->g->m;
    const int at = add_product(s, "moe.router", from, tokens, m->experts, m->hidden);
    const int select = add_elementwise(s, "moe.select", at, tokens * m->experts, 4);
    s->list[select].role = LLM_ROLE_SELECT;
    return select;
}

static int add_shared(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const ffn shared = shared_experts(g);
    const int at = add_ffn_products(s, from, &shared);
    if (!m->has_shared_gate)
        return at;
    const int scale = add_product(s, "shared.scale", from, g->tokens, 1, m->hidden);
    return add_sum(s, "shared.weigh", at, scale, g->tokens * m->hidden);
}

static int add_near_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t all = g->tokens * m->hidden;
    const uint64_t rows = round_up(g->tokens * m->experts_per_token, g->opt.ep);
    const int start = add_move(s, LLM_STEP_ENTER, "moe.gather", from, all);
    int at = add_routing(s, start, g->tokens);
    at = add_elementwise(s, "moe.permute", at, rows * m->hidden, 1);
    s->list[at].role = LLM_ROLE_PERMUTE;
    s->list[at].also = start;
    at = add_expert_products(s, at, rows);
    at = add_elementwise(s, "moe.weigh", at, rows * m->hidden, 2);
    if (m->shared_experts)
        at = add_sum(s, "moe.sum", add_shared(s, start), at, all);
    return add_move(s, LLM_STEP_LEAVE, "moe.scatter", at, all);
}

/* Tokens to the experts, through them, and back: the busiest replica determines the size. */
static int add_trip(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const double tokens = (double)round_up(g->pass->busiest, g->opt.tp);
    const uint64_t sent = (uint64_t)(tokens * (double)m->hidden * copies_sent(g) + 0.5);
    const uint64_t rows = round_up(g->pass->shared_tokens * m->experts_per_token, g->opt.ep);
    const int at = add_move(s, LLM_STEP_EXCHANGE, "moe.dispatch", from, sent);
    return add_move(s, LLM_STEP_EXCHANGE, "moe.combine", add_expert_products(s, at, rows), sent);
}

static int add_far_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t share =
        g->is_sequence_parallel ? g->thin_tokens : round_up(g->tokens, g->opt.tp);
    const uint64_t copies = share * m->experts_per_token * m->hidden;
    int at = add_routing(s, from, share);
    at = add_elementwise(s, "moe.permute", at, copies, 1);
    s->list[at].role = LLM_ROLE_PERMUTE;
    s->list[at].also = from;
    at = add_elementwise(s, "moe.weigh", add_trip(s, at), copies, 2);
    if (!g->is_sequence_parallel)
        at = add_move(s, LLM_STEP_GATHER, "moe.gather", at, share * m->hidden);
    if (!m->shared_experts)
        return at;
    const uint64_t all = g->tokens * m->hidden;
    int shared = add_move(s, LLM_STEP_ENTER, "shared.gather", from, all);
    shared = add_move(s, LLM_STEP_LEAVE, "shared.scatter", add_shared(s, shared), all);
    return add_sum(s, "moe.sum", shared, at, g->thin_tokens * m->hidden);
}

static int add_served_experts(llm_steps *s, int from)
{
    return s->g->opt.ep > s->g->opt.tp ? add_far_experts(s, from) : add_near_experts(s, from);
}

static int add_second_half(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const ffn dense = {.up = "ffn.up",
                       .activation = "ffn.activation",
                       .down = "ffn.down",
                       .rows = g->tokens,
                       .width = g->m->ffn,
                       .copies = 1};
    const int experts = !orr_model_is_moe(g->m, s->layer) ? -1
                        : g->pass                         ? add_served_experts(s, from)
                                                          : add_experts(s, from);
    if (orr_model_ffn_of(g->m, s->layer) == ORR_FFN_EXPERTS)
        return experts;
    const int both = add_ffn(s, from, &dense, "ffn.gather", "ffn.scatter");
    return experts < 0 ? both
                       : add_sum(s, "ffn.both", both, experts, g->thin_tokens * g->m->hidden);
}

/* ---- everything ---- */

/* A layer may lack one of its halves. */
void llm_describe_layer(const llm_job *g, uint64_t layer, llm_steps *out)
{
    const orr_model *m = g->m;
    const uint64_t thin = g->thin_tokens * m->hidden;
    const bool norms_results = m->block_norms == 4;
    *out = (llm_steps){.g = g, .layer = layer};
    const int input = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    int middle = input, norm = input;
    if (orr_model_mixer_of(m, layer) != ORR_MIX_NONE) {
        norm = add_norm(out, "attn.norm", input, thin);
        int attention = add_mixer(out, norm);
        if (norms_results)
            attention = add_norm(out, "attn.norm_after", attention, thin);
        middle = add_sum(out, "attn.add", attention, input, thin);
        out->list[middle].is_residual = true;
    }
    if (orr_model_ffn_of(m, layer) == ORR_FFN_NONE)
        return;
    int start = m->is_parallel ? input : middle;
    start = m->is_parallel && m->block_norms == 1 ? norm : add_norm(out, "ffn.norm", start, thin);
    out->list[start].is_residual = start != norm && middle != input;
    int second = add_second_half(out, start);
    if (norms_results)
        second = add_norm(out, "ffn.norm_after", second, thin);
    const int sum = add_sum(out, "ffn.add", second, middle, thin);
    out->list[sum].is_residual = true;
}

void llm_describe_idle_layer(const llm_job *g, uint64_t layer, llm_steps *out)
{
    *out = (llm_steps){.g = g, .layer = layer};
    const int input = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    if (orr_model_is_moe(g->m, layer) && g->opt.ep > g->opt.tp)
        add_trip(out, input);
}

/* Serving needs only the logits of each sequence's last token. */
void llm_describe_head(const llm_job *g, llm_steps *out)
{
    const orr_model *m = g->m;
    const uint64_t tokens = g->pass ? g->pass->sampled : g->tokens;
    const uint64_t thin = g->pass ? tokens : g->thin_tokens;
    *out = (llm_steps){.g = g};
    int at = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    at = add_norm(out, "head.norm", at, thin * m->hidden);
    at = add_move(out, LLM_STEP_ENTER, "head.gather", at, tokens * m->hidden);
    add_product(out, "head.logits", at, tokens, llm_vocab_share(g), m->hidden);
}

void llm_describe_join(const llm_job *g, llm_steps *out)
{
    const uint64_t hidden = g->m->hidden;
    *out = (llm_steps){.g = g};
    int at = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    at = add_norm(out, "norms", at, 2 * g->thin_tokens * hidden);
    add_product(out, "join", at, g->thin_tokens, hidden, 2 * hidden);
}

/* ---- parameters ---- */

/* Products are sharded over tensor-parallel ranks, except those into a latent space and the
 * router. */
static bool is_split(const llm_job *g, const orr_model_tensor *t)
{
    static const char *const whole[] = {"q_a", "kv_a", "router", "shared_scale"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(t->name, whole[i]) == 0)
            return false;
    return t->part == ORR_MODEL_MIXING ? !is_mixer_whole(g, t) : t->is_product;
}

/* Row-parallel products (their columns are hidden) keep their bias whole. */
uint64_t llm_tensor_share(const llm_job *g, const orr_model_tensor *t)
{
    const bool is_expert = t->part == ORR_MODEL_EXPERTS;
    const uint64_t tp = !is_split(g, t) ? 1 : is_expert && g->expert_tp ? g->expert_tp : g->opt.tp;
    const bool is_kv = t->name[0] == 'k' || t->name[0] == 'v';
    const uint64_t ways = is_kv && t->name[1] == '\0' && g->m->kv_heads < tp ? g->m->kv_heads : tp;
    const bool is_by_rows =
        strcmp(t->name, "o") == 0 || strstr(t->name, "_down") != NULL || ends_in(t->name, "_out");
    const uint64_t copies = is_expert ? t->copies / g->opt.ep : t->copies;
    const uint64_t bias = !t->has_bias ? 0 : is_by_rows ? t->columns : t->columns / ways;
    return copies * (t->rows * t->columns / ways + bias);
}

void llm_layer_parameters(const llm_job *g, uint64_t layer, uint64_t *dense, uint64_t *expert)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const size_t count = orr_model_layer_tensors(g->m, layer, tensors);
    *dense = *expert = 0;
    for (size_t i = 0; i < count; i++)
        *(tensors[i].part == ORR_MODEL_EXPERTS ? expert : dense) +=
            llm_tensor_share(g, &tensors[i]);
}

uint64_t llm_vocab_share(const llm_job *g)
{
    const uint64_t rows = g->software && g->software->vocab_rows ? g->software->vocab_rows : 1;
    const uint64_t step = rows * g->opt.tp;
    return (orr_model_vocab_rows(g->m) + step - 1) / step * rows;
}

/* The embedding, positions and its norm with it; the head and the last norm. */
static uint64_t end_parameters(const llm_job *g, bool wants_head)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const size_t count = orr_model_end_tensors(g->m, tensors);
    uint64_t sum = 0;
    bool is_behind = false; /* what follows the last layer: from the final norm on */
    for (size_t i = 0; i < count; i++) {
        const orr_model_tensor *t = &tensors[i];
        is_behind |= strcmp(t->name, "final_norm") == 0 || t->part == ORR_MODEL_HEAD;
        const bool is_vocab = t->part == ORR_MODEL_EMBEDDING || t->part == ORR_MODEL_HEAD;
        const uint64_t share = llm_vocab_share(g) * (g->m->hidden + (t->has_bias ? 1 : 0));
        const uint64_t whole = t->rows * t->columns + (t->has_bias ? t->columns : 0);
        if (is_behind == wants_head && !(t->is_tied && llm_ends_meet(&g->opt)))
            sum += is_vocab ? share : whole;
    }
    return sum;
}

uint64_t llm_embedding_parameters(const llm_job *g)
{
    return end_parameters(g, false);
}

uint64_t llm_head_parameters(const llm_job *g)
{
    return end_parameters(g, true);
}
