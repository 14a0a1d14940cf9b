/* SPDX-License-Identifier: Apache-2.0 */
/* layer_passes.c - both passes of a list of steps.
 *
 * Backward, a product becomes two: one for the gradient of what went in, one for that of the weights, which needs
 * all tokens again where only a part of them was kept (sequence parallelism).  The two are apart so that the
 * second may run while the first one's result travels, or much later (zero bubble). */
#include "layer_steps.h"

enum { NAME_MOST = 64, GRADS_MOST = 6 };

typedef struct name {
    char text[NAME_MOST];
} name;

/* For every node, so without printf. */
static name with(const char *base, const char *suffix)
{
    name n;
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
    uint64_t out[LLM_STEPS_MOST];
} forward;

static uint64_t enter(llm_pen *p, const char *label, uint64_t numbers, llm_deps after)
{
    const llm_job *g = p->g;
    if (!g->is_sequence_parallel)
        return after.ids[0]; /* every rank has all tokens already */
    return llm_put_collect(p, label, ORR_COLL_ALL_GATHER, numbers / g->opt.tp * g->act, LLM_AXIS_TP,
                           after);
}

static uint64_t leave(llm_pen *p, const char *label, uint64_t numbers, llm_deps after)
{
    const llm_job *g = p->g;
    return llm_put_collect(p, label,
                           g->is_sequence_parallel ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE,
                           numbers * g->act, LLM_AXIS_TP, after);
}

static uint64_t forward_step(forward *f, const llm_step *s)
{
    const llm_job *g = f->p->g;
    const uint64_t also = s->also >= 0 ? f->out[s->also] : 0;
    const llm_deps after = LLM_AFTER(f->out[s->from], also);
    const name label = with(s->name, f->suffix);
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
    default:
        return llm_put_collect(f->p, label.text, ORR_COLL_ALL_TO_ALL, s->numbers * g->act,
                               LLM_AXIS_EP, LLM_AFTER(f->out[s->from]));
    }
}

uint64_t llm_steps_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, uint64_t input)
{
    forward f = {.p = p, .s = s, .suffix = suffix, .tag = tag};
    f.out[0] = input;
    for (int i = 1; i < s->count; i++)
        f.out[i] = forward_step(&f, &s->list[i]);
    return f.out[s->count - 1];
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

/* The result is added to what other micro-batches gave: read and written. */
static void put_weight_grad(backward *b, const llm_step *s, llm_deps after)
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
    note_grad(
        b, s,
        put_product(p, with(s->name, ".wgrad").text, s, bytes, (llm_deps){ids, after.count + 1}));
}

static void backward_product(backward *b, const llm_step *s, llm_deps after)
{
    const llm_job *g = b->p->g;
    const uint64_t bytes = g->mat * (out_numbers(s) + weight_numbers(s)) + g->act * in_numbers(s);
    if (b->parts & LLM_INPUT_GRADS)
        give(b, s->from, put_product(b->p, with(s->name, ".grad").text, s, bytes, after));
    if (b->parts & LLM_WEIGHT_GRADS)
        put_weight_grad(b, s, after);
}

static void backward_step(backward *b, int i)
{
    const llm_step *s = &b->s->list[i];
    const llm_job *g = b->p->g;
    const llm_deps after = {b->of[i].ids, b->of[i].count};
    const name label = with(s->name ? s->name : "", ".grad");
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
    if (s->kind == LLM_STEP_ELEMENTWISE)
        id = llm_put_elementwise(b->p, label.text, s->numbers, 2 * s->operations, 3, after);
    else if (s->kind == LLM_STEP_ATTENTION)
        id = llm_attention_backward(b->p, b->s, b->tag, after);
    else if (s->kind == LLM_STEP_ENTER)
        id = leave(b->p, label.text, s->numbers, after);
    else if (s->kind == LLM_STEP_LEAVE)
        id = enter(b->p, label.text, s->numbers, after);
    else
        id = llm_put_collect(b->p, label.text, ORR_COLL_ALL_TO_ALL, s->numbers * g->act,
                             LLM_AXIS_EP, after);
    give(b, s->from, id);
    give(b, s->also, id);
}

/* Weights alone have no gradients to start from: they wait for the pass that had them. */
static void start_from(backward *b, uint64_t output_grad)
{
    if (b->parts & LLM_INPUT_GRADS) {
        give(b, b->s->count - 1, output_grad);
        return;
    }
    for (int i = 1; i < b->s->count; i++)
        give(b, i, output_grad);
}

uint64_t llm_steps_backward(
    llm_pen *p, const llm_steps *s, uint64_t tag, int parts, uint64_t output_grad, llm_grads *grads)
{
    backward b = {.p = p, .s = s, .tag = tag, .parts = parts, .grads = grads};
    start_from(&b, output_grad);
    for (int i = s->count; i-- > 1;)
        backward_step(&b, i);
    const llm_deps sum = {b.of[0].ids, b.of[0].count};
    if (sum.count < 2)
        return sum.count ? sum.ids[0] : 0;
    return llm_put_elementwise(p, "input.grad", p->g->thin_tokens * p->g->m->hidden, 1, 3, sum);
}

uint64_t llm_layer_backward(
    llm_pen *p, uint64_t layer, uint64_t tag, int parts, uint64_t output_grad, llm_grads *grads)
{
    llm_steps s;
    llm_describe_layer(p->g, layer, &s);
    if (p->g->opt.recompute == ORR_RECOMPUTE_FULL && parts & LLM_INPUT_GRADS)
        output_grad = llm_steps_forward(p, &s, ".again", tag + 4, output_grad);
    return llm_steps_backward(p, &s, tag, parts, output_grad, grads);
}
