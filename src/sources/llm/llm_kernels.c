/* SPDX-License-Identifier: Apache-2.0 */
/* llm_kernels.c - kernels of the nodes of a generated step, as launched by the software preset
 * (software.h), in the syntax of chip.h.
 *
 * A node's operations and bytes are the minimum for its work; its kernels are what programs really
 * launch: a residual sum alone or fused with bias and dropout, attention as one kernel or as five,
 * bias gradients as a sum over rows.  Each function adds kernels of the next computation to the
 * pen; a measuring pen accumulates their times on its chip instead. */
#include "llm_impl.h"
#include "models/compute/atlas/chip_cost.h"
#include "models/compute/software/software_costs.h"
#include "serve_impl.h"

#include "base/arithmetic.h"

#include <orrery/lab/chip.h>

#include <string.h>

/* ---- one kernel ---- */

static void measure(llm_meter *t, const orr_software *software, const orr_kernel *k)
{
    chip_cost cost;
    if (!t->chip || t->is_impossible)
        return;
    if (!orr__chip_cost(t->chip, k, orr__software_slowdown(software, t->chip, k), &cost)) {
        t->is_impossible = true;
        t->kind = k->kind;
        t->type = k->type;
        return;
    }
    t->pending += (uint64_t)((cost.fixed_us + cost.clocked_us) * 1e6 + 0.5);
    t->clocked_us += cost.clocked_us;
    t->flops += cost.flops * orr__software_draw(software, t->chip, k);
    if (cost.is_assumed) {
        t->deviation.assumed_low += cost.low_us;
        t->deviation.assumed_high += cost.high_us;
    } else {
        t->deviation.low2 += cost.low_us * cost.low_us;
        t->deviation.high2 += cost.high_us * cost.high_us;
    }
    t->host_us += orr__software_host_us(software, k, false);
}

/* Layers and micro-batches launch the same few kernels again and again: their texts are cached,
 * which saves two thirds of the time.  A direct-mapped cache. */
enum { KNOWN_KERNELS = 64 };
typedef struct llm_known_kernel {
    orr_kernel k;
    size_t length; /* 0: the place is free */
    char text[ORR_KERNEL_TEXT];
} llm_known_kernel;

static size_t place_of(const orr_kernel *k)
{
    const uint64_t mix = k->m + 3 * k->n + 5 * k->k + 7 * k->read + 11 * k->write + 13 * k->q +
                         17 * k->heads + 19 * k->kv + (k->is_backward ? 23 : 0) +
                         29 * (uint64_t)k->kind + 31 * (uint64_t)k->form +
                         37 * (uint64_t)k->layout + 41 * k->count;
    return (size_t)(mix * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

/* Field by field where the compiler may leave gaps. */
static bool is_same(const orr_kernel *a, const orr_kernel *b)
{
    const size_t sizes = offsetof(orr_kernel, batch);
    return memcmp(&a->batch, &b->batch, sizeof *a - sizes) == 0 && a->kind == b->kind &&
           a->type == b->type && a->form == b->form && a->layout == b->layout &&
           a->is_backward == b->is_backward && a->is_causal == b->is_causal &&
           a->is_unfused == b->is_unfused && a->is_gated == b->is_gated &&
           a->is_strided == b->is_strided && a->accumulates == b->accumulates &&
           a->is_cold == b->is_cold && a->is_turned == b->is_turned && a->casts == b->casts;
}

static void add_text(llm_pen *p, const orr_kernel *k)
{
    if (!p->known && !(p->known = orr_alloc(KNOWN_KERNELS, sizeof *p->known))) {
        p->kernels.failed = true;
        return;
    }
    llm_known_kernel *at = &p->known[place_of(k)];
    if (!at->length || !is_same(&at->k, k)) {
        at->k = *k;
        at->length = orr_kernel_text(k, at->text, sizeof at->text);
    }
    orr_buf_add(&p->kernels, at->text, at->length);
}

static void launch(llm_pen *p, orr_kernel k)
{
    if (p->meter) {
        measure(p->meter, p->g->software, &k);
        return;
    }
    if (p->tape) {
        llm_tape_kernel(p->tape, &k);
        return;
    }
    if (p->kernels.len)
        orr_buf_text(&p->kernels, "; ");
    add_text(p, &k);
}

static orr_kernel_type type_between(const llm_job *g)
{
    return g->opt.dtype == ORR_DTYPE_FP16   ? ORR_TYPE_FP16
           : g->opt.dtype == ORR_DTYPE_FP32 ? ORR_TYPE_FP32
                                            : ORR_TYPE_BF16;
}

static bool is_narrow(const llm_job *g)
{
    return g->opt.dtype == ORR_DTYPE_FP8 || g->opt.dtype == ORR_DTYPE_MXFP8 ||
           g->opt.dtype == ORR_DTYPE_NVFP4;
}

/* 8- and 4-bit recipes do not apply to logits and router. */
static bool is_wide(const llm_step *s)
{
    return strcmp(s->name, "head.logits") == 0 || strcmp(s->name, "moe.router") == 0;
}

/* Scales of 32 numbers are free in the units: MXFP8 takes as long as FP8, which was measured on
 * more chips. */
static orr_kernel_type type_of_products(const llm_job *g, const llm_step *s)
{
    if (!is_narrow(g) || is_wide(s))
        return type_between(g);
    return g->opt.dtype == ORR_DTYPE_NVFP4 ? ORR_TYPE_NVFP4
           : g->opt.dtype == ORR_DTYPE_FP8 && g->opt.fp8_scaling == ORR_FP8_BLOCK
               ? ORR_TYPE_FP8_BLOCK
               : ORR_TYPE_FP8;
}

static void pass_over(llm_pen *p, uint64_t read, uint64_t write, bool is_strided)
{
    if (read || write)
        launch(p, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                               .type = type_between(p->g),
                               .read = read,
                               .write = write,
                               .is_strided = is_strided});
}

/* Bytes copied as they are, or to another type. */
void llm_launch_move(llm_pen *p, uint64_t read, uint64_t write)
{
    pass_over(p, read, write, false);
}

/* Operands lie in other orders: an index of so many dimensions for each number. */
static void pass_along(llm_pen *p, uint64_t read, uint64_t write, uint64_t dims)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                           .type = type_between(p->g),
                           .read = read,
                           .write = write,
                           .is_strided = true,
                           .dims = dims});
}

/* So many numbers read and written, in the type between products. */
static void pass(llm_pen *p, uint64_t read, uint64_t write)
{
    pass_over(p, read * p->g->act, write * p->g->act, false);
}

void llm_launch_elementwise(llm_pen *p, uint64_t numbers, uint64_t moved)
{
    if (!p->kernels.len && !(p->meter && p->meter->pending) &&
        !(p->tape && p->tape->kernel_count > p->tape->pending))
        pass(p, (moved > 1 ? moved - 1 : 1) * numbers, moved > 1 ? numbers : 0);
}

/* ---- products ---- */

enum { PIECES_MOST = 3 };

/* Columns of the products that a step represents. */
static size_t pieces_of(const llm_job *g, const llm_step *s, uint64_t columns[PIECES_MOST])
{
    const uint64_t queries = g->m->heads / g->opt.tp * g->m->head_dim;
    columns[0] = s->n;
    if (!g->software->splits_products || s->is_expert)
        return 1;
    if (strcmp(s->name, "attn.qkv") == 0 && s->n > queries) {
        columns[0] = queries;
        columns[1] = columns[2] = (s->n - queries) / 2;
        return 3;
    }
    if (s->is_pair) {
        columns[0] = columns[1] = s->n / 2;
        return 2;
    }
    return 1;
}

/* Rows that one expert of a padded batch takes. */
static uint64_t expert_rows(const llm_job *g, uint64_t rows, uint64_t copies)
{
    return (uint64_t)((double)rows / (double)copies * g->software->expert_capacity + 0.999);
}

/* Experts as one batch of equal products. */
static void launch_batch(llm_pen *p, const llm_step *s, orr_kernel k)
{
    const uint64_t rows = expert_rows(p->g, s->m, s->copies);
    k.kind = ORR_KERNEL_GEMM;
    k.type = type_of_products(p->g, s);
    k.batch = s->copies;
    if (k.layout == ORR_LAYOUT_TN) { /* k x n of each, over its rows */
        k.m = k.k;
        k.k = rows;
    } else {
        k.m = rows;
    }
    launch(p, k);
}

/* When serving, every pass reads all weights once: a layer's weights have left the cache before
 * their next use, and with few tokens they dominate the traffic of a product.  (Weights larger than
 * any cache are read from memory in all measurements.) */
static bool reads_cold_weights(const llm_job *g, const orr_kernel *k)
{
    const uint64_t cached = 64u << 20;
    return g->pass && k->n > 4 * k->m && k->n * k->k < cached / g->act;
}

static void launch_product(llm_pen *p, const llm_step *s, orr_kernel k)
{
    k.is_cold = reads_cold_weights(p->g, &k);
    if (s->copies > 1 && s->is_expert && p->g->software->expert_capacity > 0) {
        launch_batch(p, s, k);
        return;
    }
    k.kind = s->copies > 1 ? ORR_KERNEL_GROUPED : ORR_KERNEL_GEMM;
    k.type = type_of_products(p->g, s);
    k.groups = s->copies > 1 ? s->copies : 0;
    launch(p, k);
}

/* What goes into a product is scaled and cast, once as it is and once transposed, which is slow
 * (Transformer Engine's pull request 101: 4,096 x 4,096 numbers in 51.5 us on an H100, 1.3 TB/s, as
 * other strided kernels); units that take scales of 32 or 16 numbers need no transposed copy, but
 * scales both ways: 8,192 x 8,192 numbers to MXFP8 in 52 us on a B200, where a plain pass over as
 * many bytes takes 40 (ROCm/TransformerEngine's pull request 598, cast only).  NVFP4 looks for the
 * largest of the whole tensor first. */
static void cast(llm_pen *p, uint64_t numbers)
{
    const orr_dtype dtype = p->g->opt.dtype;
    if (dtype == ORR_DTYPE_NVFP4)
        pass_over(p, numbers * 2, 4, false);
    if (dtype == ORR_DTYPE_MXFP8)
        pass_over(p, numbers * 2 * 21 / 16, numbers * 2 * 21 / 16, false);
    else
        pass_over(p, numbers * 2, dtype == ORR_DTYPE_NVFP4 ? numbers * 9 / 8 : numbers * 2,
                  dtype == ORR_DTYPE_FP8);
}

static void cast_for(llm_pen *p, const llm_step *s, uint64_t numbers, bool is_from_activation)
{
    if (!is_narrow(p->g) || is_wide(s) ||
        (is_from_activation && s->is_expert && p->g->software->joins_experts))
        return;
    cast(p, numbers);
}

/* Gathered inputs of a product are cast before the gather. */
static uint64_t cast_share(const llm_job *g, bool is_gathered)
{
    return is_gathered && g->is_sequence_parallel ? g->opt.tp : 1;
}

/* Megatron-Core 0.15, TEGroupedMLP._apply_bias: torch.cat([t + b * p ...]).to(dtype), and what
 * autograd makes of it.  p, what the router thinks of an expert, has 32 bits with DeepEP and its
 * kin (transformer/moe/token_dispatcher.py: token_probs.float()), else the type of the router, that
 * between products. */
static void expert_bias(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    const bool is_wide = g->opt.sends_once;
    const uint64_t narrow = s->m * s->n * g->act, wide = is_wide ? s->m * s->n * 4 : narrow;
    if (!s->is_expert || !s->is_down || !s->has_bias || !g->software->adds_expert_bias)
        return;
    if (is_backward) {
        if (is_wide) {
            pass_over(p, narrow, wide, false); /* to */
            pass_over(p, wide, narrow, false); /* of t */
        }
        pass_over(p, 2 * wide, wide, false); /* of b: a product, and its sum over tokens */
        pass_over(p, 2 * wide, wide, false); /* of p: the same along a token */
        pass_over(p, narrow, narrow, false); /* parts into one */
    } else {
        pass_over(p, 4, wide, false); /* b * p */
        pass_over(p, narrow + wide, wide, false);
        pass_over(p, wide, wide, false); /* cat */
        if (is_wide)
            pass_over(p, wide, narrow, false);
    }
}

/* With what travels in pieces a product is done in pieces, too.  Transformer Engine's userbuffers
 * (module/base.py): forward in tp of them where its input is gathered, in 4 where its result is
 * added up; backward, what was added up is gathered in tp pieces, all else is done as a whole
 * beside the traffic.  The head is not among its layers.  PyTorch's async TP, which needs
 * torch.compile, cuts every such product into as many pieces as ranks
 * (torch/distributed/_symmetric_memory, _pipelined_*). */
static uint64_t pieces_under_traffic(const llm_job *g, const llm_step *s, bool is_backward)
{
    if (!g->opt.overlaps_tensor || !g->is_sequence_parallel || g->pass || s->copies > 1 ||
        strncmp(s->name, "head", 4) == 0)
        return 0;
    const bool is_gathered = is_backward ? s->is_scattered : s->is_gathered;
    const bool is_added_up = is_backward ? s->is_gathered : s->is_scattered;
    if (g->software->is_compiled)
        return is_gathered || is_added_up ? g->opt.tp : 0;
    return is_gathered ? g->opt.tp : is_added_up && !is_backward ? 4 : 0;
}

/* Megatron-Core, transformer/attention.py: queries are views between the keys and values of their
 * groups, which reshape copies where there are several; Transformer Engine's SplitAlongDim joins
 * the gradients, unless all three lie in one matrix already, as without rotations. */
static bool has_heads_to_copy(const llm_job *g, const llm_step *s)
{
    return g->software->copies_heads && !g->pass && !orr_model_is_mla(g->m) &&
           strcmp(s->name, "attn.qkv") == 0;
}

static void copy_queries(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    const uint64_t queries = g->m->heads / g->opt.tp * g->m->head_dim;
    if (has_heads_to_copy(g, s) && g->m->kv_heads < g->m->heads && g->m->kv_heads > g->opt.tp)
        pass_over(p, s->m * queries * g->act, s->m * queries * g->act, true);
}

static void product_forward(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    uint64_t columns[PIECES_MOST];
    const size_t count = pieces_of(g, s, columns);
    const bool has_bias = s->has_bias && (!g->software->joins_bias || !s->joins_next);
    cast_for(p, s, s->m * s->k / cast_share(g, s->is_gathered), s->is_down);
    for (size_t i = 0; i < count; i++)
        launch_product(p, s,
                       (orr_kernel){.m = s->m,
                                    .n = columns[i],
                                    .k = s->k,
                                    .pieces = pieces_under_traffic(g, s, false),
                                    .form = has_bias ? ORR_FORM_BIAS : ORR_FORM_PLAIN});
    expert_bias(p, s, false);
    copy_queries(p, s);
}

/* The fused experts take the gradient through the activation in this product, with that of the
 * first bias. */
static bool gives_bias_too(const llm_job *g, const llm_step *s)
{
    return g->software->expert_bias_slowdown > 0 && s->is_expert && s->is_down && s->has_bias;
}

static void product_input_grad(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    uint64_t columns[PIECES_MOST];
    const size_t count = pieces_of(g, s, columns);
    const bool is_joined = g->software->is_compiled ? g->m->position == ORR_MODEL_ROTARY
                                                    : g->software->joins_elementwise;
    if (strcmp(s->name, "attn.qkv") == 0 && count == 1 && !is_joined &&
        !g->software->unfused_attention)
        pass(p, s->m * s->n, s->m * s->n); /* gradients of all three into one matrix */
    else if (has_heads_to_copy(g, s) && g->m->position == ORR_MODEL_ROTARY)
        pass(p, s->m * s->n, s->m * s->n);
    expert_bias(p, s, true);
    if (s->is_dropped && g->has_dropout) /* what comes back through dropout, with its mask */
        pass_over(p, s->m * s->n * (g->act + 1), s->m * s->n * g->act, false);
    cast_for(p, s, s->m * s->n / cast_share(g, s->is_scattered), s->is_pair);
    for (size_t i = 0; i < count; i++)
        launch_product(p, s,
                       (orr_kernel){.m = s->m,
                                    .n = s->k,
                                    .k = columns[i],
                                    .pieces = pieces_under_traffic(g, s, true),
                                    .layout = ORR_LAYOUT_NN,
                                    .form = gives_bias_too(g, s) ? ORR_FORM_BIAS : ORR_FORM_PLAIN});
    for (size_t i = 1; i < count; i++) /* their gradients of the same input are added up */
        pass(p, 2 * s->m * s->k, s->m * s->k);
}

/* torch.compile: sums of columns come in parts of 128 rows, which a second kernel adds up. */
static void sum_parts(llm_pen *p, uint64_t rows, uint64_t width)
{
    enum { ROWS_OF_A_PART = 128 };
    pass_over(p, orr_div_up(rows, ROWS_OF_A_PART) * width * 4, width * p->g->act, false);
}

static void sum_columns(llm_pen *p, uint64_t rows, uint64_t width)
{
    pass_over(p, rows * width * p->g->act, width * 4, false);
    sum_parts(p, rows, width);
}

static void product_weight_grad(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    uint64_t columns[PIECES_MOST];
    const size_t count = pieces_of(g, s, columns);
    const bool adds = g->software->adds_in_product;
    const uint64_t weights = s->copies * s->k * s->n;
    for (size_t i = 0; i < count; i++)
        launch_product(p, s,
                       (orr_kernel){.m = s->copies > 1 ? s->m : columns[i],
                                    .n = s->copies > 1 ? columns[i] : s->k,
                                    .k = s->copies > 1 ? s->k : s->m,
                                    .layout = ORR_LAYOUT_TN,
                                    .accumulates = adds && g->grad == 4});
    if (s->has_bias && g->software->is_compiled)
        sum_columns(p, s->m, s->n);
    else if (s->has_bias)
        launch(p, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                               .type = type_between(g),
                               .form = ORR_FORM_ROWS,
                               .is_cold = true, /* in profiled steps as long as after a flush */
                               .m = s->m,
                               .n = s->n});
    if (adds || g->micro_batches == 1)
        return;
    const bool is_cast = g->software->casts_grads && g->grad > g->weight;
    if (is_cast)
        pass_over(p, weights * g->weight, weights * g->grad, false);
    pass_over(p, weights * ((is_cast ? g->grad : g->weight) + g->grad), weights * g->grad, false);
}

/* ---- attention ---- */

static orr_kernel attention_kernel(const llm_job *g)
{
    const orr_model *m = g->m;
    const uint64_t kv = m->kv_heads < g->opt.tp ? 1 : m->kv_heads / g->opt.tp;
    const bool is_mla = orr_model_is_mla(m);
    return (orr_kernel){.kind = ORR_KERNEL_ATTENTION,
                        .type = g->opt.attends_fp8 && is_narrow(g) ? ORR_TYPE_FP8 : type_between(g),
                        .batch = g->opt.micro_batch,
                        .heads = m->heads / g->opt.tp,
                        .kv_heads = is_mla ? m->heads / g->opt.tp : kv,
                        .head = orr_model_qk_dim(m),
                        .head_v = orr_model_v_dim(m)};
}

static void score_product(
    llm_pen *p, const orr_kernel *a, uint64_t m, uint64_t n, uint64_t k, orr_kernel_layout layout)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_GEMM,
                           .type = a->type,
                           .batch = a->batch * a->heads,
                           .m = m,
                           .n = n,
                           .k = k,
                           .layout = layout});
}

/* Under a causal mask Megatron's kernel reads the lower half only and writes all. */
static void softmax(llm_pen *p, const orr_kernel *a, bool is_backward)
{
    const uint64_t bytes = a->batch * a->heads * a->q * a->kv * p->g->act;
    if (a->is_causal) {
        pass_over(p, is_backward ? bytes : bytes / 2, bytes, false);
        return;
    }
    launch(p, (orr_kernel){.kind = ORR_KERNEL_SOFTMAX,
                           .type = a->type,
                           .m = a->batch * a->heads * a->q,
                           .n = a->kv,
                           .is_backward = is_backward});
}

/* Scores are written and read again by mask and softmax, dropout, and the product with values. */
static void unfused_forward(llm_pen *p, const orr_kernel *a)
{
    const uint64_t scores = a->batch * a->heads * a->q * a->kv;
    const uint64_t results = a->batch * a->heads * a->q * a->head_v;
    score_product(p, a, a->q, a->kv, a->head, ORR_LAYOUT_NT);
    softmax(p, a, false);
    if (p->g->has_dropout)
        pass_over(p, scores * p->g->act, scores * (p->g->act + 1), false);
    score_product(p, a, a->q, a->head_v, a->kv, ORR_LAYOUT_NN);
    pass_over(p, results * p->g->act, results * p->g->act, true); /* heads beside each other */
}

static void unfused_backward(llm_pen *p, const orr_kernel *a)
{
    const uint64_t scores = a->batch * a->heads * a->q * a->kv;
    const uint64_t results = a->batch * a->heads * a->q * a->head_v;
    const uint64_t inputs = a->batch * a->heads * (a->q * a->head + a->kv * (a->head + a->head_v));
    pass_over(p, results * p->g->act, results * p->g->act, true);
    score_product(p, a, a->q, a->kv, a->head_v, ORR_LAYOUT_NT);
    score_product(p, a, a->kv, a->head_v, a->q, ORR_LAYOUT_TN);
    if (p->g->has_dropout)
        pass_over(p, scores * (p->g->act + 1), scores * p->g->act, false);
    softmax(p, a, true);
    score_product(p, a, a->q, a->head, a->kv, ORR_LAYOUT_NN);
    score_product(p, a, a->kv, a->head, a->q, ORR_LAYOUT_TN);
    pass_over(p, inputs * p->g->act, inputs * p->g->act,
              true); /* into one matrix for the product */
}

void llm_launch_attention(llm_pen *p, uint64_t pairs, bool is_backward, bool is_whole)
{
    const llm_job *g = p->g;
    const bool is_ring = g->opt.context_form != ORR_CONTEXT_ALL_GATHER;
    const uint64_t seq = g->opt.seq, cp = g->opt.cp;
    orr_kernel k = attention_kernel(g);
    k.is_backward = is_backward;
    k.q = seq / cp;
    k.kv = is_ring ? seq / cp : seq;
    k.is_causal = !g->opt.full_attention && k.q == k.kv && !is_whole;
    if (!g->software->unfused_attention && !g->opt.full_attention && k.q != k.kv)
        k.kv = seq / 2; /* an even share of what a causal mask leaves */
    if (pairs < seq * (seq + 1) / 2 * 9 / 10 && is_ring && cp == 1) { /* a window */
        k.is_causal = false;
        k.kv = pairs / seq ? pairs / seq : 1;
    }
    if (k.type == ORR_TYPE_FP8) /* queries, keys and values, or the gradient of what they gave */
        cast(p, is_backward
                    ? k.batch * k.q * k.heads * k.head_v
                    : k.batch * (k.q * k.heads * k.head + k.q * k.kv_heads * (k.head + k.head_v)));
    if (!g->software->unfused_attention)
        launch(p, k);
    else if (is_backward)
        unfused_backward(p, &k);
    else
        unfused_forward(p, &k);
}

/* Attention of PyTorch had no grouped queries before 2.5, and models did not use them at once:
 * repeat_kv of torchtitan, fms.  Their gradients are added up. */
void llm_launch_repeat(llm_pen *p, bool is_backward)
{
    const llm_job *g = p->g;
    const orr_kernel a = attention_kernel(g);
    if (!g->software->repeats_keys || g->pass || a.heads == a.kv_heads)
        return;
    const uint64_t heads[2] = {a.kv_heads, a.heads}, width[2] = {a.head, a.head_v};
    for (int i = 0; i < 2; i++)
        pass(p, g->tokens * width[i] * heads[is_backward],
             g->tokens * width[i] * heads[!is_backward]);
}

/* PyTorch 2.6, distributed/tensor/experimental/_attention.py: _SDPAMerger takes what a block gives
 * to 32 bits and does out - sigmoid(...) * (out - block); a block that only half of the queries see
 * is put back with the other half.  Backward, gradients of queries, keys and values are added up in
 * 32 bits, and the latter two joined to be passed on. */
void llm_launch_merge(llm_pen *p, uint64_t numbers, bool is_half, bool is_backward)
{
    const uint64_t narrow = numbers * p->g->act, wide = numbers * 4;
    const uint64_t part = is_half ? 2 : 1;
    if (is_backward) {
        for (int i = 0; i < 3; i++)
            pass_over(p, narrow + wide, wide, false);
        pass_over(p, 2 * wide, 2 * wide, false);
    } else {
        pass_over(p, narrow / part, wide / part, false);
        pass_over(p, 2 * wide / part, wide / part, false);
        pass_over(p, wide / part, wide / part, false);
        pass_over(p, 2 * wide / part, wide / part, false);
    }
    if (is_half)
        pass_over(p, wide, wide, false);
}

/* Transformer Engine 2, attention/dot_product_attention/context_parallel.py,
 * AttnFuncWithCPAndKVP2P: keys and values are joined to travel.  With a causal mask a later block
 * has half of the keys and values, or half of the queries, by turns, and these are copied out.
 * Results are scaled and added up, over all queries or half of them; so are the gradients of
 * queries, and those of keys and values.  Blocks without halves (no mask, or tokens not dealt out
 * evenly) need no copies. */
void llm_launch_correction(llm_pen *p,
                           uint64_t queries,
                           uint64_t keys_values,
                           uint32_t block,
                           bool has_halves,
                           bool is_backward)
{
    const uint64_t q = queries * p->g->act, kv = keys_values * p->g->act;
    const bool is_half = has_halves && block % 2 == 0; /* of the queries */
    const uint64_t copied = is_half ? q / 2 : kv / 2, summed = is_half ? q / 2 : q;
    if (block == 0) {
        pass_over(p, kv, kv, false);
        pass_over(p, q, q, false); /* scaled; backward: into what they are added up in */
        if (is_backward)
            pass_over(p, kv, kv, false);
        return;
    }
    const bool is_kv_half = has_halves && !is_half;
    const int copies = !has_halves ? 0 : is_half && is_backward ? 3 : 1; /* out, and its gradient */
    for (int i = 0; i < copies; i++)
        pass_over(p, copied, copied, true);
    pass_over(p, 2 * summed, summed, is_half);
    if (is_backward)
        pass_over(p, is_kv_half ? kv : 2 * kv, is_kv_half ? kv / 2 : kv, is_kv_half);
}

/* Prompts that see `pairs` of queries and keys, as if all were of one length. */
static void serve_prompts(llm_pen *p, uint64_t tokens, uint64_t pairs)
{
    orr_kernel k = attention_kernel(p->g);
    const uint64_t length = tokens ? 2 * pairs / tokens : 0;
    if (!tokens)
        return;
    k.is_causal = length <= tokens;
    k.batch = k.is_causal && length ? (tokens + length / 2) / length : 1;
    k.batch = k.batch ? k.batch : 1;
    k.q = tokens / k.batch ? tokens / k.batch : 1;
    k.kv = k.is_causal ? k.q : (pairs / tokens ? pairs / tokens : 1);
    launch(p, k);
}

void llm_launch_served_attention(llm_pen *p, const llm_sight *seen)
{
    const llm_job *g = p->g;
    const uint64_t decode = g->pass->decode_tokens;
    /* g->tokens are this rank's, `seen` is of all ranks; a ring goes through its keys in blocks. */
    const uint64_t blocks = g->opt.context_form != ORR_CONTEXT_ALL_GATHER ? g->opt.cp : 1;
    serve_prompts(p, g->tokens - decode, seen->prompt_pairs / g->opt.cp / blocks);
    if (!decode)
        return;
    orr_kernel k = attention_kernel(g);
    k.kind = ORR_KERNEL_DECODE;
    k.is_cold = true; /* keys and values of a layer, too, are long out of the cache */
    if (g->tokens > decode && g->software->mixes_prompts)
        k.form = ORR_FORM_MIXED;
    k.batch = decode;
    k.q = 1;
    k.kv = seen->decode_keys / decode ? seen->decode_keys / decode : 1;
    if (g->reads_fp8)
        k.type = ORR_TYPE_FP8;
    else if (g->kv == 4)
        k.type = ORR_TYPE_FP32;
    if (orr_model_is_mla(g->m)) {
        k.kv_heads = 1;
        k.head = g->m->kv_lora_rank + g->m->qk_rope_head_dim;
        k.head_v = g->m->kv_lora_rank;
    }
    launch(p, k);
}

/* ---- between products ---- */

static orr_kernel rows_kernel(const llm_job *g, const llm_step *s, orr_kernel_kind kind)
{
    const uint64_t width = s->width ? s->width : g->m->hidden;
    return (orr_kernel){.kind = kind, .type = type_between(g), .m = s->numbers / width, .n = width};
}

/* ---- kernels that torch.compile makes ----
 *
 * As profiled in blocks of GPT, Llama and expert models on an H200 (truth/measure/compiled.csv).  A
 * row longer than 1,024 does not fit into registers and is read twice; a layer norm then also sums
 * more slowly.  If results are concatenated (`cat`), each half is computed from all inputs. */

/* Instructions of each number that such a kernel writes, where these take longer than the memory:
 * 20 models, at 1,500 to 1,980 MHz (compiled.csv, compiled_graphs.csv). */
enum { GELU_OPS = 48, GELU_GRAD_OPS = 65, GATE_GRAD_OPS = 65 };

static void compute_over(llm_pen *p, uint64_t read, uint64_t write, uint64_t ops)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                           .type = type_between(p->g),
                           .read = read,
                           .write = write,
                           .ops = ops});
}

/* torch/_inductor/scheduler.py, MixOrderReduction: one kernel sums along rows and down columns.
 * Each block adds up 16 rows (all seven models of compiled.csv: 512 sums of 8,192 tokens, 1,024 of
 * 16,384, 1,536 of 24,576), eager's kernel these, and a third casts.  Else another kernel reads
 * all again, at half of the memory's rate (4 models of compiled_graphs.csv). */
static void norm_weight_grad(llm_pen *p, uint64_t rows, uint64_t width)
{
    enum { ROWS_OF_A_BLOCK = 16, LEAST_ROWS = 4096, LEAST = 5 << 20 };
    const bool has_bias = p->g->m->norm != ORR_MODEL_RMS_NORM;
    const bool is_mixed = rows >= LEAST_ROWS && rows >= 2 * width && rows * width >= LEAST;
    if (!is_mixed)
        pass(p, 4 * rows * width, 0);
    for (int i = 0; i < 1 + has_bias; i++) {
        if (!is_mixed) {
            sum_parts(p, rows, width);
            continue;
        }
        launch(p, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                               .type = ORR_TYPE_FP32,
                               .form = ORR_FORM_ROWS,
                               .m = orr_div_up(rows, ROWS_OF_A_BLOCK),
                               .n = width});
        pass_over(p, width * 4, width * p->g->act, false);
    }
}

static void compiled_norm(llm_pen *p, const llm_step *s, bool is_backward)
{
    const uint64_t n = s->numbers, width = s->width ? s->width : p->g->m->hidden, act = p->g->act;
    const bool is_long = width > 1024, is_layer = p->g->m->norm != ORR_MODEL_RMS_NORM;
    if (!is_backward) {
        pass_over(p, (is_long ? 2 : 1) * n * act, n * act, is_long && is_layer);
        return;
    }
    pass(p, (s->is_residual ? 5 : 4) * n, n);
    norm_weight_grad(p, n / width, width);
}

static void compiled_activation(llm_pen *p, uint64_t n, bool is_backward)
{
    const uint64_t half = n * p->g->act;
    if (p->g->m->is_gated && !is_backward)
        pass(p, 2 * n, n);
    else if (p->g->m->is_gated)
        compute_over(p, 3 * half, 2 * half, GATE_GRAD_OPS);
    else
        compute_over(p, is_backward ? 2 * half : half, half,
                     is_backward ? GELU_GRAD_OPS : GELU_OPS);
}

/* Backward, into one matrix with the gradients of values: what a number is made of depends on its
 * column, which is uniform for threads beside each other, and found with few instructions, if a
 * large power of two divides the width (16 models of compiled.csv and compiled_graphs.csv: 126
 * billion numbers per second with 2^7, 134 to 148 with 2^8, 234 to 265 with 2^9, 490 to 560 with
 * 2^10 and more). */
static void compiled_rotation(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    const uint64_t kv = g->m->kv_heads < g->opt.tp ? 1 : g->m->kv_heads / g->opt.tp;
    const uint64_t values = g->tokens * kv * orr_model_v_dim(g->m);
    const uint64_t width = g->tokens ? (s->numbers + values) / g->tokens : 0;
    if (!is_backward) {
        pass(p, s->numbers, s->numbers);
        return;
    }
    const uint64_t ops = width % 1024 == 0  ? 61
                         : width % 512 == 0 ? 134
                         : width % 256 == 0 ? 239
                                            : 265;
    const uint64_t bytes = (s->numbers + values) * g->act;
    compute_over(p, bytes, bytes, ops);
}

static void norm(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    if (g->software->is_compiled) {
        compiled_norm(p, s, is_backward);
        return;
    }
    orr_kernel k = rows_kernel(g, s, ORR_KERNEL_NORM);
    k.form = g->m->norm == ORR_MODEL_RMS_NORM ? ORR_FORM_RMS : ORR_FORM_LAYER;
    k.is_backward = is_backward;
    if (!g->software->joins_elementwise)
        launch(p, k);
    else if (is_backward)
        pass(p, 2 * s->numbers + (s->is_residual ? s->numbers : 0), s->numbers);
    else
        pass(p, s->numbers, s->numbers);
    if (is_backward && s->is_residual && !g->software->joins_elementwise)
        pass(p, 2 * s->numbers, s->numbers); /* with what came past it */
}

static void residual_sum(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    const uint64_t n = s->numbers;
    if (!g->has_dropout || !s->is_residual) {
        pass(p, 2 * n, n);
    } else if (g->software->joins_bias) {
        pass_over(p, 2 * n * g->act, n * (g->act + 1), false);
    } else {
        launch(p, (orr_kernel){.kind = ORR_KERNEL_DROPOUT, .type = type_between(g), .m = n});
        pass(p, 2 * n, n);
    }
}

/* Megatron-Core, weighted_bias_quick_geglu_impl: both halves of what experts multiplied are
 * clamped, views of one matrix, and joined again, before the compiled function.  Backward PyTorch
 * compares (once for a bound above, twice and an and for two), chooses, and joins the halves.  n:
 * numbers of a half. */
static void clamp_gate(llm_pen *p, uint64_t n, bool is_backward)
{
    const uint64_t half = n * p->g->act;
    if (!is_backward) {
        pass_over(p, half, half, true);
        pass_over(p, half, half, true);
    } else {
        for (int i = 0; i < 3; i++)
            pass_over(p, half, n, true);
        pass_over(p, 2 * n, n, false);
        for (int i = 0; i < 2; i++)
            pass_over(p, half + n, half, true);
    }
    pass_over(p, 2 * half, 2 * half, false);
}

/* Megatron-Core, fusions/fused_bias_swiglu.py: functions of torch.compile; with them what the
 * router thinks of an expert is multiplied, whose gradient is a sum along each row. */
static void compiled_gate(llm_pen *p, const llm_step *s, uint64_t n, bool is_backward)
{
    if (p->g->m->has_clamped_gate && p->g->software->leaves_scales && !is_backward)
        clamp_gate(p, n, false);
    compiled_activation(p, n, is_backward);
    if (is_backward && s->is_expert)
        pass(p, 3 * n, n / (p->g->m->expert_ffn ? p->g->m->expert_ffn : n));
    if (p->g->m->has_clamped_gate && p->g->software->leaves_scales && is_backward)
        clamp_gate(p, n, true);
}

/* Megatron-Core, transformer/moe/paged_stash.py (moe_paged_stash): graphs need buffers for the most
 * tokens that may come, so what the fused experts keep (their input and that of the second product
 * in 8 bits, that of the activation in 16) is copied to pages behind the forward pass and back
 * before the backward one. */
static void stash(llm_pen *p, uint64_t n)
{
    const llm_job *g = p->g;
    const uint64_t rows = g->m->expert_ffn ? n / g->m->expert_ffn : 0;
    const uint64_t narrow = is_narrow(g) ? 1 : g->act;
    const uint64_t bytes = rows * g->m->hidden * narrow + n * narrow + 2 * n * g->act;
    pass_over(p, bytes, bytes, false);
}

static void activation(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    const bool is_padded = s->is_expert && g->software->expert_capacity > 0;
    const uint64_t n =
        is_padded ? (uint64_t)((double)s->numbers * g->software->expert_capacity) : s->numbers;
    const bool is_gated = g->m->is_gated;
    if (s->is_expert && g->software->stashes_experts)
        stash(p, n);
    else if (s->is_expert && g->software->joins_experts)
        pass_over(p, g->act, g->act, false); /* a node of its own in the trace */
    else if (g->software->compiles_gates && is_gated && !g->pass)
        compiled_gate(p, s, n, is_backward);
    else if (g->software->is_compiled)
        compiled_activation(p, n, is_backward);
    else if (!g->software->joins_elementwise && (is_gated || !g->software->joins_bias))
        launch(p, (orr_kernel){.kind = ORR_KERNEL_ACTIVATION,
                               .type = type_between(g),
                               .form = is_gated ? ORR_FORM_SILU : ORR_FORM_GELU,
                               .m = n,
                               .is_gated = is_gated,
                               .is_strided = is_gated && !g->software->splits_products &&
                                             (s->is_expert || g->tokens > 1),
                               .is_backward = is_backward});
    else if (is_backward)
        pass(p, is_gated ? 3 * n : 2 * n, is_gated ? 2 * n : n);
    else
        pass(p, is_gated ? 2 * n : n, n);
}

/* x * cos + cat(-x2, x1) * sin, operator by operator, on views of heads, which lie in another order
 * than what cat makes: not so where each sequence has one token. */
static void rotate_eagerly(llm_pen *p, uint64_t bytes)
{
    const llm_pass *pass = p->g->pass;
    pass_along(p, bytes, bytes, 4);
    pass_along(p, bytes / 2, bytes / 2, 3);
    pass_over(p, bytes, bytes, true);
    pass_along(p, bytes, bytes, 2);
    if (pass && !pass->prompt_tokens)
        pass_over(p, 2 * bytes, bytes, false);
    else
        pass_along(p, 2 * bytes, bytes, 4);
}

/* Halves are written into zero tensors, which are then added. */
static void rotate_back(llm_pen *p, uint64_t bytes)
{
    const orr_kernel zeros = {
        .kind = ORR_KERNEL_FILL, .type = type_between(p->g), .write = bytes, .count = 2};
    if (!bytes)
        return;
    pass_over(p, bytes, bytes, true);
    pass_over(p, bytes, bytes, true);
    for (int i = 0; i < 3; i++)
        pass_over(p, bytes / 2, bytes / 2, true);
    launch(p, zeros);
    pass_over(p, 2 * bytes, bytes, true);
    pass_over(p, 2 * bytes, bytes, false);
    pass_over(p, bytes, bytes, true);
}

/* Megatron-Core, fused_apply_mla_rope_for_kv: what the up-projection gives is split into values and
 * keys, which get their rotated part, the same for all heads. */
static void split_latents(llm_pen *p, bool is_backward)
{
    const orr_model *m = p->g->m;
    const uint64_t rows = p->g->tokens * (m->heads / p->g->opt.tp);
    const uint64_t joined = rows * (m->qk_nope_head_dim + orr_model_v_dim(m));
    const uint64_t split = rows * (orr_model_qk_dim(m) + orr_model_v_dim(m));
    pass(p, is_backward ? split : joined, is_backward ? joined : split);
}

/* Queries, then keys. */
static void rotate(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    const orr_model *m = g->m;
    const uint64_t width = orr_model_is_mla(m) ? m->qk_rope_head_dim : m->head_dim;
    const uint64_t queries = g->tokens * (m->heads / g->opt.tp);
    const uint64_t rows[2] = {queries, s->numbers / width - queries};
    if (g->software->is_compiled) {
        compiled_rotation(p, s, is_backward);
        return;
    }
    /* Megatron-Core, embeddings/rope_utils.py: Transformer Engine's kernel does not scale, so that
     * of PyTorch's operators is taken, which also joins what is rotated with the rest of a head,
     * even if there is none. */
    const bool is_scaled = m->has_scaled_rotary && g->software->leaves_scales && !g->pass;
    if (g->software->joins_elementwise && !is_scaled) {
        pass(p, s->numbers, s->numbers);
        if (g->software->copies_heads && orr_model_is_mla(m) && !g->pass)
            split_latents(p, is_backward);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (is_backward)
            rotate_back(p, rows[i] * width * g->act);
        else
            rotate_eagerly(p, rows[i] * width * g->act);
    if (is_scaled && !is_backward)
        pass(p, s->numbers, s->numbers);
}

/* ---- experts of a fixed capacity, operator by operator ----
 *
 * What a plain module of PyTorch does: a place in the batch of its expert for each copy of a token,
 * by a running sum down a table of copies by experts (a step after the other: on a GPU this is the
 * longest kernel of the layer); copies to their places in zeros, one row for those that found none;
 * and back. */

static bool is_padded_eagerly(const llm_job *g)
{
    return g->software->expert_capacity > 0 && !g->software->joins_elementwise;
}

typedef struct padded {
    uint64_t tokens, copies, experts, places, width;
} padded;

static padded padded_of(const llm_job *g, uint64_t tokens)
{
    const orr_model *m = g->m;
    const uint64_t copies = tokens * m->experts_per_token, experts = m->experts / g->opt.ep;
    return (padded){tokens, copies, m->experts, expert_rows(g, copies, experts) * experts + 1,
                    m->hidden};
}

/* So many kernels over a few numbers for each copy of a token. */
static void small_passes(llm_pen *p, uint64_t read, uint64_t write, uint64_t count)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                           .type = ORR_TYPE_FP32,
                           .read = read,
                           .write = write,
                           .is_strided = true,
                           .count = count > 1 ? count : 0});
}

static void rows_by_index(llm_pen *p, uint64_t rows, orr_kernel_form form, bool is_backward)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_GATHER,
                           .type = type_between(p->g),
                           .form = form,
                           .m = rows,
                           .n = p->g->m->hidden,
                           .is_backward = is_backward});
}

static void copy_rows(llm_pen *p, uint64_t read, uint64_t write, orr_kernel_form form)
{
    const uint64_t row = p->g->m->hidden * p->g->act;
    launch(p, (orr_kernel){.kind = ORR_KERNEL_COPY,
                           .type = type_between(p->g),
                           .form = form,
                           .read = read == write ? 0 : read * row,
                           .write = write * row,
                           .is_strided = read != write});
}

static void zero_rows(llm_pen *p, uint64_t rows)
{
    launch(p, (orr_kernel){.kind = ORR_KERNEL_FILL,
                           .type = type_between(p->g),
                           .write = rows * p->g->m->hidden * p->g->act});
}

static void sum_of_copies(llm_pen *p, const padded *e, orr_kernel_form form)
{
    const uint64_t each = p->g->m->experts_per_token;
    const bool is_rows = form == ORR_FORM_ROWS; /* copies of a token, or numbers of a row */
    launch(p, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                           .type = type_between(p->g),
                           .form = form,
                           .is_cold = true,
                           .m = is_rows ? each : e->copies,
                           .n = is_rows ? e->tokens * e->width : e->width});
}

static void place_copies(llm_pen *p, const padded *e)
{
    const uint64_t table = e->copies * e->experts, each = p->g->m->experts_per_token;
    const orr_kernel rows = {.type = ORR_TYPE_FP32, .m = e->tokens, .n = e->experts};
    orr_kernel k = rows;
    small_passes(p, e->tokens * e->experts * 2, e->tokens * e->experts * 4, 1);
    k.kind = ORR_KERNEL_SOFTMAX;
    launch(p, k);
    k.kind = ORR_KERNEL_TOPK;
    k.topk = each;
    launch(p, k);
    launch(p, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                           .type = ORR_TYPE_FP32,
                           .form = ORR_FORM_COLUMNS,
                           .m = e->tokens,
                           .n = each});
    small_passes(p, 4 * e->copies, 4 * e->copies, 2);
    small_passes(p, 8 * e->copies, table, 1);
    small_passes(p, 3 * table, 6 * table, 2);
    launch(p, (orr_kernel){.kind = ORR_KERNEL_SCAN,
                           .type = ORR_TYPE_FP64,
                           .form = ORR_FORM_COLUMNS,
                           .m = e->copies,
                           .n = e->experts});
    small_passes(p, 8 * table, 8 * table, 1);
    small_passes(p, 8 * e->copies, 8 * e->copies, 7);
}

static void place_copies_back(llm_pen *p, const padded *e)
{
    small_passes(p, 4 * e->copies, 4 * e->copies, 8);
    small_passes(p, 4 * e->tokens * e->experts, 4 * e->tokens * e->experts, 4);
    launch(p, (orr_kernel){.kind = ORR_KERNEL_SOFTMAX,
                           .type = ORR_TYPE_FP32,
                           .m = e->tokens,
                           .n = e->experts,
                           .is_backward = true});
}

static void fill_places(llm_pen *p, const padded *e)
{
    copy_rows(p, e->tokens, e->copies, ORR_FORM_PLAIN);
    zero_rows(p, e->places);
    copy_rows(p, e->places, e->places, ORR_FORM_PLAIN);
    rows_by_index(p, e->copies, ORR_FORM_SCATTER, false);
}

static void fill_places_back(llm_pen *p, const padded *e)
{
    zero_rows(p, e->places);
    copy_rows(p, e->places, e->places, ORR_FORM_PLAIN);
    rows_by_index(p, e->copies, ORR_FORM_PLAIN, false);
    sum_of_copies(p, e, ORR_FORM_ROWS);
}

static void weigh_copies(llm_pen *p, const padded *e)
{
    const uint64_t bytes = e->copies * e->width * p->g->act;
    zero_rows(p, 1);
    copy_rows(p, e->places, e->places, ORR_FORM_JOINED);
    rows_by_index(p, e->copies, ORR_FORM_PLAIN, false);
    pass_over(p, bytes, bytes, true);
    sum_of_copies(p, e, ORR_FORM_ROWS);
}

static void weigh_copies_back(llm_pen *p, const padded *e)
{
    const uint64_t bytes = e->copies * e->width * p->g->act;
    copy_rows(p, e->tokens, e->copies, ORR_FORM_PLAIN);
    pass_over(p, bytes, bytes, true);
    pass_over(p, 2 * bytes, bytes, false);
    sum_of_copies(p, e, ORR_FORM_COLUMNS);
    zero_rows(p, e->places);
    rows_by_index(p, e->copies, ORR_FORM_PLAIN, true);
}

/* false: the experts do not run this way. */
static bool experts_eagerly(llm_pen *p, const llm_step *s, bool is_backward)
{
    const orr_model *m = p->g->m;
    const bool is_ours =
        s->role == LLM_ROLE_SELECT || s->role == LLM_ROLE_PERMUTE || s->role == LLM_ROLE_WEIGH;
    if (!is_ours || !is_padded_eagerly(p->g))
        return false;
    const uint64_t tokens = s->role == LLM_ROLE_SELECT
                                ? s->numbers / m->experts
                                : s->numbers / m->hidden / m->experts_per_token;
    const padded e = padded_of(p->g, tokens);
    switch (s->role) {
    case LLM_ROLE_SELECT:
        (is_backward ? place_copies_back : place_copies)(p, &e);
        return true;
    case LLM_ROLE_PERMUTE:
        (is_backward ? fill_places_back : fill_places)(p, &e);
        return true;
    case LLM_ROLE_WEIGH:
        (is_backward ? weigh_copies_back : weigh_copies)(p, &e);
        return true;
    default:
        return false;
    }
}

static void select_experts(llm_pen *p, const llm_step *s)
{
    const orr_model *m = p->g->m;
    const uint64_t tokens = s->numbers / m->experts;
    orr_kernel k = {
        .kind = ORR_KERNEL_SOFTMAX, .type = ORR_TYPE_FP32, .m = tokens, .n = m->experts};
    launch(p, k);
    k.kind = ORR_KERNEL_TOPK;
    k.topk = m->experts_per_token;
    launch(p, k);
    if (p->g->software->expert_capacity > 0) /* places in the batches of experts */
        launch(p, (orr_kernel){.kind = ORR_KERNEL_SCAN,
                               .type = ORR_TYPE_FP32,
                               .m = tokens * m->experts_per_token,
                               .n = m->experts});
}

/* Transformer Engine's permutations (moe_permute_fusion of Megatron-Core), rows of tokens and their
 * copies.  Exchanged copy by copy, tokens are copied before; what comes from each rank is then put
 * together by expert (sort_chunks_by_idxs), and in 8 or 4 bits each expert's rows are padded
 * (Fp8Padding).  Sent once to a rank, they are copied behind the exchange, to padded places. */
static void permute(llm_pen *p, const llm_step *s)
{
    const llm_job *g = p->g;
    launch(p, rows_kernel(g, s, ORR_KERNEL_GATHER));
    if (g->opt.sends_once && g->opt.ep > 1)
        return;
    if (g->opt.ep > 1 && g->m->experts > g->opt.ep)
        pass(p, s->numbers, s->numbers);
    if (is_narrow(g))
        pass(p, s->numbers, s->numbers);
}

static void gather_rows(llm_pen *p, const llm_step *s, bool is_backward)
{
    if (p->g->software->joins_permutation && !p->g->pass) {
        permute(p, s);
        return;
    }
    if (p->g->software->expert_capacity > 0)
        pass(p, s->numbers, 2 * s->numbers); /* copies of tokens, and zeros */
    orr_kernel k = rows_kernel(p->g, s, ORR_KERNEL_GATHER);
    k.is_backward = is_backward;
    launch(p, k);
}

/* The bytes of the node, half of them read. */
static void plain_pass(llm_pen *p, const llm_step *s, uint64_t moved)
{
    if (s->bytes)
        pass_over(p, s->bytes - s->bytes / 2, s->bytes / 2, false);
    else
        pass(p, (moved - 1) * s->numbers, s->numbers);
}

static void weigh_rows(llm_pen *p, const llm_step *s, bool is_backward)
{
    if (p->g->software->joins_permutation && !p->g->pass)
        permute(p, s);
    else
        plain_pass(p, s, is_backward ? 3 : 2);
}

/* Keys and values: one kernel, or a copy of each. */
static void cache_tokens(llm_pen *p, uint64_t bytes)
{
    const bool is_joined = p->g->software->joins_elementwise;
    launch(p, (orr_kernel){.kind = ORR_KERNEL_COPY,
                           .type = type_between(p->g),
                           .form = ORR_FORM_CACHE,
                           .write = is_joined ? bytes : bytes - bytes / 2,
                           .is_strided = true,
                           .count = is_joined ? 0 : 2});
}

/* Megatron-Core's activation_func_fp8_input_store: casts of their own, both ways. */
static void cast_kept_input(llm_pen *p, const llm_step *s, bool is_backward)
{
    const llm_job *g = p->g;
    const uint64_t numbers = s->numbers * (g->m->is_gated ? 2 : 1);
    if (g->kept != ORR_KEPT_ACTIVATIONS || (s->is_expert && g->software->joins_experts))
        return;
    pass_over(p, is_backward ? numbers : numbers * g->act, is_backward ? numbers * g->act : numbers,
              false);
}

static void elementwise_forward(llm_pen *p, const llm_step *s)
{
    if (experts_eagerly(p, s, false))
        return;
    switch (s->role) {
    case LLM_ROLE_NORM:
        norm(p, s, false);
        break;
    case LLM_ROLE_SUM:
        residual_sum(p, s);
        break;
    case LLM_ROLE_ACTIVATION:
        activation(p, s, false);
        cast_kept_input(p, s, false);
        break;
    case LLM_ROLE_ROTARY:
        rotate(p, s, false);
        break;
    case LLM_ROLE_SELECT:
        select_experts(p, s);
        break;
    case LLM_ROLE_PERMUTE:
        gather_rows(p, s, false);
        break;
    case LLM_ROLE_WEIGH:
        weigh_rows(p, s, false);
        break;
    case LLM_ROLE_CACHE:
        cache_tokens(p, s->numbers * p->g->kv);
        break;
    default:
        plain_pass(p, s, s->is_sum ? 3 : 2);
    }
}

static void elementwise_backward(llm_pen *p, const llm_step *s)
{
    if (experts_eagerly(p, s, true))
        return;
    switch (s->role) {
    case LLM_ROLE_NORM:
        norm(p, s, true);
        break;
    case LLM_ROLE_ACTIVATION:
        cast_kept_input(p, s, true);
        activation(p, s, true);
        break;
    case LLM_ROLE_ROTARY:
        rotate(p, s, true);
        break;
    case LLM_ROLE_PERMUTE:
        gather_rows(p, s, true);
        break;
    case LLM_ROLE_WEIGH:
        weigh_rows(p, s, true);
        break;
    default:
        plain_pass(p, s, 3);
    }
}

void llm_launch_forward(llm_pen *p, const llm_step *s)
{
    if (s->kind == LLM_STEP_PRODUCT)
        product_forward(p, s);
    else
        elementwise_forward(p, s);
}

void llm_launch_backward(llm_pen *p, const llm_step *s, int part)
{
    if (s->kind != LLM_STEP_PRODUCT)
        elementwise_backward(p, s);
    else if (part == LLM_INPUT_GRADS)
        product_input_grad(p, s);
    else
        product_weight_grad(p, s);
}

/* ---- both ends ---- */

/* The gradient of the table is a matrix of its own, which is added to what is there: that of the
 * head, whose table it is, those of the micro-batches before, or Megatron's main gradients. */
static void add_table_grad(llm_pen *p)
{
    const llm_job *g = p->g;
    const uint64_t table = llm_vocab_share(g) * g->m->hidden;
    const bool has_head = g->m->is_tied && llm_ends_meet(&g->opt);
    if (g->software->adds_in_product || g->micro_batches > 1)
        pass_over(p, table * (g->weight + g->grad), table * g->grad, false);
    else if (has_head)
        pass_over(p, 2 * table * g->weight, table * g->weight, false);
}

void llm_launch_embedding(llm_pen *p, bool is_backward)
{
    const llm_job *g = p->g;
    const uint64_t numbers = g->tokens * g->m->hidden;
    launch(p, (orr_kernel){.kind = ORR_KERNEL_EMBEDDING,
                           .type = type_between(g),
                           .m = g->tokens,
                           .n = g->m->hidden,
                           .k = llm_vocab_share(g),
                           .is_backward = is_backward});
    if (is_backward)
        add_table_grad(p);
    if (g->has_dropout && !g->pass) {
        orr_kernel k = {.kind = ORR_KERNEL_DROPOUT, .type = type_between(g), .m = numbers};
        k.is_backward = is_backward;
        launch(p, k);
    }
}

/* Largest logit, exponentials and their sum, the loss, and the gradient. */
void llm_launch_loss(llm_pen *p, llm_loss_part part)
{
    const llm_job *g = p->g;
    const uint64_t tokens = g->tokens, n = tokens * llm_vocab_share(g);
    const orr_kernel whole = {.kind = ORR_KERNEL_CROSS_ENTROPY,
                              .type = type_between(g),
                              .m = tokens,
                              .n = llm_vocab_share(g),
                              .is_backward = part == LLM_LOSS_GRAD};
    if (part == LLM_LOSS_MEAN) {
        pass(p, 2 * tokens, tokens);
        if (g->software->keeps_logits)
            pass_over(p, n * 4, n * 4, false);
    } else if (g->software->keeps_logits) {
        /* Megatron-Core, fusions/fused_cross_entropy.py: a compiled function for each line between
         * two reductions; cast and largest, exponentials and sum, (above) over their sum,
         * gradient. */
        pass_over(p, part == LLM_LOSS_MAX ? n * 2 : n * 4, part == LLM_LOSS_GRAD ? n * 2 : n * 4,
                  false);
    } else if (!g->software->upcasts_logits) {
        if (part != LLM_LOSS_EXPONENTIALS)
            launch(p, whole);
        else
            pass(p, tokens, tokens);
    } else if (g->software->joins_elementwise) {
        pass_over(p, n * 2, part == LLM_LOSS_GRAD ? n * 2 : tokens * 4, false);
    } else if (part == LLM_LOSS_MAX) {
        pass_over(p, n * 2, n * 4, false);
        pass_over(p, n * 4, tokens * 4, false);
    } else if (part == LLM_LOSS_EXPONENTIALS) {
        pass_over(p, n * 4, n * 4, false);
        pass_over(p, n * 4, n * 4, false);
        pass_over(p, n * 4, tokens * 4, false);
        pass_over(p, n * 4, n * 4, false);
    } else {
        pass_over(p, n * 4, n * 4, false);
        pass_over(p, n * 4, n * 2, false);
    }
}

/* ---- the update ---- */

static orr_kernel optimizer_kernel(const llm_job *g, uint64_t own, uint64_t tensors)
{
    return (orr_kernel){.kind = ORR_KERNEL_OPTIMIZER,
                        .type = g->is_pure ? type_between(g) : ORR_TYPE_FP32,
                        .m = own,
                        .k = tensors};
}

void llm_launch_clipping(llm_pen *p, uint64_t own, uint64_t tensors)
{
    if (!own) /* a stage without layers */
        return;
    orr_kernel k = optimizer_kernel(p->g, own, tensors);
    k.form = ORR_FORM_CLIP;
    k.type = p->g->grad == 4 ? ORR_TYPE_FP32 : type_between(p->g);
    launch(p, k);
}

void llm_launch_update(llm_pen *p, uint64_t own, uint64_t tensors)
{
    const llm_job *g = p->g;
    if (!own)
        return;
    orr_kernel k = optimizer_kernel(g, own, tensors);
    k.form =
        g->opt.lists_optimizer || g->software->lists_optimizer ? ORR_FORM_FOREACH : ORR_FORM_FUSED;
    if (g->opt.moments_bf16) /* 20 bytes a parameter are read and written, not 28 */
        k.m = own * 5 / 7;
    if (!g->is_pure && g->grad < 4)
        pass_over(p, own * g->grad, own * 4, false); /* gradients to 32 bits */
    launch(p, k);
    if (k.form == ORR_FORM_FOREACH && g->software->host <= 0 && tensors) /* steps on the device */
        launch(p, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                               .type = k.type,
                               .read = own / tensors * g->weight + 4,
                               .write = own / tensors * g->weight + 4,
                               .is_strided = true,
                               .count = 2 * tensors});
    if (!g->is_pure && g->weight < 4)
        pass_over(p, own * 4, own * g->weight, false); /* and the weights back */
}
