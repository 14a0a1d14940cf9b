/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - what a model is made of: one list of tensors for each layer and one for the two ends.
 *
 * Why one list: parameters, active parameters and FLOPs are sums over it.  A formula for each would
 * have to be kept in step with all the others, for every kind of attention and FFN. Invariants:
 * names are constants; a tensor without parameters of its own is either tied or not listed. Cost: a
 * layer has at most ORR_MODEL_TENSORS tensors, no memory is taken. */
#include "model_impl.h"

#include <inttypes.h>
#include <string.h>

/* ---- questions ---- */

bool orr_model_is_moe(const orr_model *m, uint64_t layer)
{
    if (m->experts == 0 || layer < m->dense_first)
        return false;
    return m->moe_every == 0 || layer % m->moe_every == m->moe_at;
}

uint64_t orr_model_window(const orr_model *m, uint64_t layer)
{
    if (layer < m->window_from || (m->global_every && layer % m->global_every == m->global_at))
        return 0;
    return m->window;
}

bool orr_model_is_mla(const orr_model *m)
{
    return m->kv_lora_rank > 0;
}

uint64_t orr_model_qk_dim(const orr_model *m)
{
    return orr_model_is_mla(m) ? m->qk_nope_head_dim + m->qk_rope_head_dim : m->head_dim;
}

uint64_t orr_model_v_dim(const orr_model *m)
{
    return orr_model_is_mla(m) ? m->v_head_dim : m->head_dim;
}

uint64_t orr_model_vocab_rows(const orr_model *m)
{
    const uint64_t multiple = m->vocab_multiple ? m->vocab_multiple : 1;
    return (m->vocab + multiple - 1) / multiple * multiple;
}

uint64_t orr_model_kv_elements(const orr_model *m)
{
    return orr_model_is_mla(m) ? m->kv_lora_rank + m->qk_rope_head_dim
                               : 2 * m->kv_heads * m->head_dim;
}

const char *orr_model_part_name(orr_model_part part)
{
    static const char *const names[ORR_MODEL_PARTS] = {
        "embedding", "positions",      "attention", "FFN",  "router",
        "experts",   "shared experts", "norms",     "head",
    };
    return part < ORR_MODEL_PARTS ? names[part] : "?";
}

/* ---- lists ---- */

/* A list being written. */
typedef struct list {
    const orr_model *m;
    orr_model_tensor *out;
    size_t count;
} list;

static orr_model_tensor *add(
    list *l, const char *name, orr_model_part part, uint64_t rows, uint64_t columns)
{
    orr_model_tensor *t = &l->out[l->count++];
    *t = (orr_model_tensor){
        .name = name, .part = part, .rows = rows, .columns = columns, .copies = 1, .active = 1};
    return t;
}

static orr_model_tensor *add_product(
    list *l, const char *name, orr_model_part part, uint64_t rows, uint64_t columns, bool has_bias)
{
    orr_model_tensor *t = add(l, name, part, rows, columns);
    t->is_product = true;
    t->has_bias = has_bias;
    return t;
}

static void add_norm(list *l, const char *name, uint64_t width)
{
    if (l->m->norm == ORR_MODEL_PLAIN_NORM)
        return;
    add(l, name, ORR_MODEL_NORMS, 1, width)->has_bias = l->m->norm == ORR_MODEL_LAYER_NORM;
}

static void add_qk_norms(list *l)
{
    const orr_model *m = l->m;
    const bool is_wide = m->qk_norm == ORR_MODEL_QK_NORM_ALL_HEADS;
    if (m->qk_norm == ORR_MODEL_NO_QK_NORM)
        return;
    add_norm(l, "q_norm", is_wide ? m->heads * m->head_dim : m->head_dim);
    add_norm(l, "k_norm", is_wide ? m->kv_heads * m->head_dim : m->head_dim);
}

static void add_heads(list *l)
{
    const orr_model *m = l->m;
    const uint64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    add_product(l, "q", ORR_MODEL_ATTENTION, m->hidden, q, m->has_qkv_bias);
    add_product(l, "k", ORR_MODEL_ATTENTION, m->hidden, kv, m->has_qkv_bias);
    add_product(l, "v", ORR_MODEL_ATTENTION, m->hidden, kv, m->has_qkv_bias);
    add_qk_norms(l);
}

/* Queries, keys and values through narrow matrices, with a norm between the two.  These norms are
 * RMS norms whatever the others are; biases are on the first of two matrices only (DeepSeek-V2,
 * equations 9 to 18). */
static void add_latent(list *l)
{
    const orr_model *m = l->m;
    const uint64_t q = m->heads * orr_model_qk_dim(m);
    const uint64_t kv = m->heads * (m->qk_nope_head_dim + m->v_head_dim);
    if (m->q_lora_rank) {
        add_product(l, "q_a", ORR_MODEL_ATTENTION, m->hidden, m->q_lora_rank, m->has_qkv_bias);
        add(l, "q_a_norm", ORR_MODEL_NORMS, 1, m->q_lora_rank);
        add_product(l, "q_b", ORR_MODEL_ATTENTION, m->q_lora_rank, q, false);
    } else {
        add_product(l, "q", ORR_MODEL_ATTENTION, m->hidden, q, false);
    }
    add_product(l, "kv_a", ORR_MODEL_ATTENTION, m->hidden, m->kv_lora_rank + m->qk_rope_head_dim,
                m->has_qkv_bias);
    add(l, "kv_a_norm", ORR_MODEL_NORMS, 1, m->kv_lora_rank);
    add_product(l, KV_B, ORR_MODEL_ATTENTION, m->kv_lora_rank, kv, false);
}

static void add_attention(list *l)
{
    const orr_model *m = l->m;
    if (orr_model_is_mla(m))
        add_latent(l);
    else
        add_heads(l);
    if (m->has_sinks)
        add(l, "sinks", ORR_MODEL_ATTENTION, 1, m->heads);
    add_product(l, "o", ORR_MODEL_ATTENTION, m->heads * orr_model_v_dim(m), m->hidden,
                m->has_output_bias);
}

/* Two or three matrices, and how many there are of them. */
typedef struct ffn_shape {
    const char *gate, *up, *down;
    orr_model_part part;
    uint64_t width, copies, active;
} ffn_shape;

static void add_ffn(list *l, const ffn_shape *f)
{
    const orr_model *m = l->m;
    const size_t from = l->count;
    if (m->is_gated)
        add_product(l, f->gate, f->part, m->hidden, f->width, m->has_ffn_bias);
    add_product(l, f->up, f->part, m->hidden, f->width, m->has_ffn_bias);
    add_product(l, f->down, f->part, f->width, m->hidden, m->has_ffn_bias);
    for (size_t i = from; i < l->count; i++) {
        l->out[i].copies = f->copies;
        l->out[i].active = f->active;
    }
}

static void add_dense(list *l)
{
    const ffn_shape f = {"ffn_gate", "ffn_up", "ffn_down", ORR_MODEL_FFN, l->m->ffn, 1, 1};
    add_ffn(l, &f);
}

static void add_moe(list *l)
{
    const orr_model *m = l->m;
    const ffn_shape routed = {"expert_gate", "expert_up", "expert_down",       ORR_MODEL_EXPERTS,
                              m->expert_ffn, m->experts,  m->experts_per_token};
    const ffn_shape shared = {"shared_gate", "shared_up",       "shared_down",    ORR_MODEL_SHARED,
                              m->shared_ffn, m->shared_experts, m->shared_experts};
    add_product(l, "router", ORR_MODEL_ROUTER, m->hidden, m->experts, m->has_router_bias);
    add_ffn(l, &routed);
    if (m->shared_experts == 0)
        return;
    add_ffn(l, &shared);
    if (m->has_shared_gate)
        add_product(l, "shared_scale", ORR_MODEL_ROUTER, m->hidden, 1, false);
}

size_t orr_model_layer_tensors(const orr_model *m,
                               uint64_t layer,
                               orr_model_tensor out[ORR_MODEL_TENSORS])
{
    list l = {.m = m, .out = out};
    add_norm(&l, m->block_norms == 1 ? "norm" : "attention_norm", m->hidden);
    add_attention(&l);
    if (m->block_norms == 4)
        add_norm(&l, "attention_post_norm", m->hidden);
    if (m->block_norms >= 2)
        add_norm(&l, "ffn_norm", m->hidden);
    if (orr_model_is_moe(m, layer))
        add_moe(&l);
    else
        add_dense(&l);
    if (m->block_norms == 4)
        add_norm(&l, "ffn_post_norm", m->hidden);
    return l.count;
}

size_t orr_model_end_tensors(const orr_model *m, orr_model_tensor out[ORR_MODEL_TENSORS])
{
    const uint64_t rows = orr_model_vocab_rows(m);
    list l = {.m = m, .out = out};
    add(&l, "embedding", ORR_MODEL_EMBEDDING, rows, m->hidden);
    if (m->position == ORR_MODEL_LEARNED)
        add(&l, "positions", ORR_MODEL_POSITIONS, m->position_rows, m->hidden);
    if (m->has_embedding_norm)
        add_norm(&l, "embedding_norm", m->hidden);
    add_norm(&l, "final_norm", m->hidden);
    add_product(&l, "head", ORR_MODEL_HEAD, m->hidden, rows, m->has_head_bias)->is_tied =
        m->is_tied;
    return l.count;
}

/* ---- sums ---- */

static uint64_t size_of_copies(const orr_model_tensor *t, uint64_t copies)
{
    const uint64_t matrix = t->is_tied ? 0 : t->rows * t->columns;
    return copies * (matrix + (t->has_bias ? t->columns : 0));
}

uint64_t orr_model_tensor_size(const orr_model_tensor *t)
{
    return size_of_copies(t, t->copies);
}

static void add_up(const orr_model_tensor *t, size_t count, orr_model_counts *to)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t size = orr_model_tensor_size(&t[i]);
        to->part[t[i].part] += size;
        to->total += size;
        to->active += size_of_copies(&t[i], t[i].active);
        if (t[i].is_product)
            to->matmul += t[i].active * t[i].rows * t[i].columns;
    }
}

void orr_model_layer_count(const orr_model *m, uint64_t layer, orr_model_counts *out)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    *out = (orr_model_counts){0};
    add_up(tensors, orr_model_layer_tensors(m, layer, tensors), out);
}

void orr_model_count(const orr_model *m, orr_model_counts *out)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    *out = (orr_model_counts){0};
    add_up(tensors, orr_model_end_tensors(m, tensors), out);
    for (uint64_t i = 0; i < m->layers; i++)
        add_up(tensors, orr_model_layer_tensors(m, i, tensors), out);
}

/* What a model computes and keeps for some tokens of one sequence.
 *
 * Products with matrices are 2 * rows * columns for each token and come from the list of
 * tensors.  Attention adds the pairs of tokens that see each other: counted exactly, masks and
 * windows heeded.  Every step is checked: a long sequence through a large model leaves 64 bits
 * sooner than one thinks. */

/* A number that remembers having overflowed. */
typedef struct sum {
    uint64_t value;
    bool is_over;
} sum;

static sum just(uint64_t v)
{
    return (sum){v, false};
}

static sum plus(sum a, sum b)
{
    sum out = {.is_over = a.is_over || b.is_over};
    out.is_over |= __builtin_add_overflow(a.value, b.value, &out.value);
    return out;
}

static sum times(sum a, uint64_t b)
{
    sum out = {.is_over = a.is_over};
    out.is_over |= __builtin_mul_overflow(a.value, b, &out.value);
    return out;
}

static orr_code too_large(const orr_model_work *w, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "%" PRIu64 " tokens behind %" PRIu64
                    " others are too many: the result does not fit into 64 bits",
                    w->tokens, w->past);
}

static orr_code no_tokens(orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "at least one token was expected");
}

/* ---- pairs ---- */

/* 1 + 2 + ... + n; one of two neighbours is even. */
static sum triangle(uint64_t n)
{
    if (n == UINT64_MAX)
        return (sum){0, true};
    return n % 2 ? times(just((n + 1) / 2), n) : times(just(n / 2), n + 1);
}

/* Token i of them, from 1, sees past + i, or the window if that is less. */
static sum count_pairs(const orr_model_work *w, uint64_t window)
{
    const sum seen = plus(just(w->past), just(w->tokens));
    const uint64_t widest = window ? window : UINT64_MAX;
    if (seen.is_over)
        return seen;
    if (w->is_square)
        return times(just(w->tokens), seen.value < widest ? seen.value : widest);
    if (w->past >= widest)
        return times(just(w->tokens), widest);
    const uint64_t growing = seen.value <= widest ? w->tokens : widest - w->past;
    const sum first = plus(times(just(growing), w->past), triangle(growing));
    return growing == w->tokens ? first : plus(first, times(just(w->tokens - growing), widest));
}

orr_code orr_model_pairs(
    const orr_model *m, uint64_t layer, const orr_model_work *work, uint64_t *out, orr_error *err)
{
    if (work->tokens == 0)
        return no_tokens(err);
    const sum pairs = count_pairs(work, orr_model_window(m, layer));
    if (pairs.is_over)
        return too_large(work, err);
    *out = pairs.value;
    return ORR_OK;
}

/* ---- FLOPs ---- */

typedef struct flops {
    sum attention, scores, router, ffn, head;
} flops;

static sum *place_of(flops *f, orr_model_part part)
{
    switch (part) {
    case ORR_MODEL_ATTENTION:
        return &f->attention;
    case ORR_MODEL_ROUTER:
        return &f->router;
    case ORR_MODEL_HEAD:
        return &f->head;
    default:
        return &f->ffn; /* dense, routed or shared: no other part has products */
    }
}

/* Expanded keys and values are not what a cache of MLA keeps, so those of the past are made
 * again. */
static sum tokens_through(const orr_model_tensor *t, const orr_model_work *w)
{
    const bool is_expanding = strcmp(t->name, KV_B) == 0 && !w->is_mla_absorbed;
    return is_expanding ? plus(just(w->tokens), just(w->past)) : just(w->tokens);
}

static void add_products(flops *to,
                         const orr_model_tensor *tensors,
                         size_t count,
                         const orr_model_work *w)
{
    for (size_t i = 0; i < count; i++) {
        const orr_model_tensor *t = &tensors[i];
        sum *place = place_of(to, t->part);
        if (!t->is_product)
            continue;
        *place = plus(*place, times(tokens_through(t, w), 2 * t->active * t->rows * t->columns));
    }
}

/* For one pair and one head: a query with a key, and a weight with a value.  Absorbed, both are of
 * the width of the compressed form, the key with its rotary part (DeepSeek-V2, section 2.1.2). */
static uint64_t pair_flops(const orr_model *m, const orr_model_work *w)
{
    if (orr_model_is_mla(m) && w->is_mla_absorbed)
        return 2 * (2 * m->kv_lora_rank + m->qk_rope_head_dim);
    return 2 * (orr_model_qk_dim(m) + orr_model_v_dim(m));
}

static void add_layer(flops *to, const orr_model *m, uint64_t layer, const orr_model_work *w)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const sum pairs = count_pairs(w, orr_model_window(m, layer));
    add_products(to, tensors, orr_model_layer_tensors(m, layer, tensors), w);
    to->scores = plus(to->scores, times(times(pairs, m->heads), pair_flops(m, w)));
}

static orr_code finish(const flops *f,
                       const orr_model_work *w,
                       orr_model_flops *out,
                       orr_error *err)
{
    const sum all = plus(plus(plus(f->attention, f->scores), plus(f->router, f->ffn)), f->head);
    const sum training = times(all, 3);
    if (training.is_over)
        return too_large(w, err);
    *out = (orr_model_flops){.attention = f->attention.value,
                             .scores = f->scores.value,
                             .router = f->router.value,
                             .ffn = f->ffn.value,
                             .head = f->head.value,
                             .forward = all.value,
                             .training = training.value};
    return ORR_OK;
}

orr_code orr_model_layer_flops(const orr_model *m,
                               uint64_t layer,
                               const orr_model_work *work,
                               orr_model_flops *out,
                               orr_error *err)
{
    flops f = {0};
    if (work->tokens == 0)
        return no_tokens(err);
    add_layer(&f, m, layer, work);
    return finish(&f, work, out, err);
}

orr_code orr_model_compute(const orr_model *m,
                           const orr_model_work *work,
                           orr_model_flops *out,
                           orr_error *err)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    flops f = {0};
    if (work->tokens == 0)
        return no_tokens(err);
    for (uint64_t i = 0; i < m->layers; i++)
        add_layer(&f, m, i, work);
    add_products(&f, tensors, orr_model_end_tensors(m, tensors), work);
    return finish(&f, work, out, err);
}

/* ---- the cache ---- */

orr_code orr_model_kv_cache(const orr_model *m,
                            uint64_t tokens,
                            uint64_t *elements_out,
                            orr_error *err)
{
    const orr_model_work w = {.tokens = tokens};
    sum all = {0};
    for (uint64_t i = 0; i < m->layers; i++) {
        const uint64_t window = orr_model_window(m, i);
        const uint64_t kept = window && window < tokens ? window : tokens;
        all = plus(all, times(just(kept), orr_model_kv_elements(m)));
    }
    if (all.is_over)
        return too_large(&w, err);
    *elements_out = all.value;
    return ORR_OK;
}

/* The models that are built in: published figures, one row each.
 *
 * Families share what their rows would repeat.  The tests hold each row to the number of parameters
 * that its makers publish, to the unit where they do.  Two rows of the GPT-3 paper contradict
 * themselves and are written as their totals say: "XL" has 16 heads (24 of 128 would not be 2048),
 * "13B" is 5120 wide (40 heads of 128; the paper prints 5140). */

/* GPT-2 and GPT-3: everything has a bias, the FFN is four times as wide. */
#define GPT(n, l, h, heads_, dim, positions_)                                                \
    {                                                                                        \
        .name = n, .layers = l, .hidden = h, .vocab = 50257, .max_positions = positions_,    \
        .is_tied = true, .position = ORR_MODEL_LEARNED, .position_rows = positions_,         \
        .norm = ORR_MODEL_LAYER_NORM, .block_norms = 2, .heads = heads_, .kv_heads = heads_, \
        .head_dim = dim, .has_qkv_bias = true, .has_output_bias = true, .ffn = 4 * (h),      \
        .has_ffn_bias = true                                                                 \
    }

/* RMS norms, rotary positions, gated FFN: nearly all since Llama. */
#define GATED(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_)                      \
    .name = n, .layers = l, .hidden = h, .vocab = vocab_, .max_positions = positions_, \
    .heads = heads_, .kv_heads = kv, .head_dim = dim, .ffn = ffn_, .is_gated = true

#define LLAMA(...) GATED(__VA_ARGS__), .block_norms = 2

#define EXPERTS(count, used, width) .experts = count, .experts_per_token = used, .expert_ffn = width

#define MLA(n, l, h, heads_, ffn_, vocab_, positions_)           \
    LLAMA(n, l, h, heads_, heads_, 0, ffn_, vocab_, positions_), \
        .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128

static const orr_model presets[] = {
    GPT("gpt2", 12, 768, 12, 64, 1024),
    GPT("gpt2-medium", 24, 1024, 16, 64, 1024),
    GPT("gpt2-large", 36, 1280, 20, 64, 1024),
    GPT("gpt2-xl", 48, 1600, 25, 64, 1024),

    GPT("gpt3-125m", 12, 768, 12, 64, 2048),
    GPT("gpt3-350m", 24, 1024, 16, 64, 2048),
    GPT("gpt3-760m", 24, 1536, 16, 96, 2048),
    GPT("gpt3-1.3b", 24, 2048, 16, 128, 2048),
    GPT("gpt3-2.7b", 32, 2560, 32, 80, 2048),
    GPT("gpt3-6.7b", 32, 4096, 32, 128, 2048),
    GPT("gpt3-13b", 40, 5120, 40, 128, 2048),
    GPT("gpt3-175b", 96, 12288, 96, 128, 2048),

    {LLAMA("llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096)},
    {LLAMA("llama-2-13b", 40, 5120, 40, 40, 128, 13824, 32000, 4096)},
    {LLAMA("llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000, 4096)},
    {LLAMA("llama-3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 8192)},
    {LLAMA("llama-3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 8192)},
    {LLAMA("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)},
    {LLAMA("llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, 131072)},
    {LLAMA("llama-3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, 131072)},
    {LLAMA("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072), .is_tied = true},
    {LLAMA("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, 131072), .is_tied = true},

    {LLAMA("mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768), .window = 4096},
    {LLAMA("mixtral-8x7b", 32, 4096, 32, 8, 128, 0, 32000, 32768), EXPERTS(8, 2, 14336)},
    {LLAMA("mixtral-8x22b", 56, 6144, 48, 8, 128, 0, 32000, 65536), EXPERTS(8, 2, 16384)},

#define QWEN25(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_) \
    LLAMA(n, l, h, heads_, kv, dim, ffn_, vocab_, positions_), .has_qkv_bias = true
    {QWEN25("qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, 32768), .is_tied = true},
    {QWEN25("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 131072)},
    {QWEN25("qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064, 131072)},
    {QWEN25("qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064, 131072)},
    {QWEN25("qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064, 131072)},

#define QWEN3(n, l, h, heads_, kv, ffn_) \
    LLAMA(n, l, h, heads_, kv, 128, ffn_, 151936, 40960), .qk_norm = ORR_MODEL_QK_NORM_HEAD
    {QWEN3("qwen3-0.6b", 28, 1024, 16, 8, 3072), .is_tied = true},
    {QWEN3("qwen3-1.7b", 28, 2048, 16, 8, 6144), .is_tied = true},
    {QWEN3("qwen3-4b", 36, 2560, 32, 8, 9728), .is_tied = true},
    {QWEN3("qwen3-8b", 36, 4096, 32, 8, 12288)},
    {QWEN3("qwen3-14b", 40, 5120, 40, 8, 17408)},
    {QWEN3("qwen3-32b", 64, 5120, 64, 8, 25600)},
    {QWEN3("qwen3-30b-a3b", 48, 2048, 32, 4, 0), EXPERTS(128, 8, 768)},
    {QWEN3("qwen3-235b-a22b", 94, 4096, 64, 4, 0), EXPERTS(128, 8, 1536)},

    {MLA("deepseek-v2-lite", 27, 2048, 16, 10944, 102400, 163840), EXPERTS(64, 6, 1408),
     .shared_experts = 2, .shared_ffn = 1408, .dense_first = 1},
    {MLA("deepseek-v2", 60, 5120, 128, 12288, 102400, 163840), .q_lora_rank = 1536,
     EXPERTS(160, 6, 1536), .shared_experts = 2, .shared_ffn = 1536, .dense_first = 1},
    {MLA("deepseek-v3", 61, 7168, 128, 18432, 129280, 163840), .q_lora_rank = 1536,
     EXPERTS(256, 8, 2048), .shared_experts = 1, .shared_ffn = 2048, .has_router_bias = true,
     .dense_first = 3, .mtp_layers = 1},

#define GEMMA2(n, l, h, heads_, kv, dim, ffn_)           \
    GATED(n, l, h, heads_, kv, dim, ffn_, 256000, 8192), \
        .block_norms = 4, .is_tied = true, .window = 4096, .global_every = 2, .global_at = 1
    {GEMMA2("gemma-2-2b", 26, 2304, 8, 4, 256, 9216)},
    {GEMMA2("gemma-2-9b", 42, 3584, 16, 8, 256, 14336)},
    {GEMMA2("gemma-2-27b", 46, 4608, 32, 16, 128, 36864)},

#define GPT_OSS(n, l, experts_)                                                       \
    LLAMA(n, l, 2880, 64, 8, 64, 0, 201088, 131072), EXPERTS(experts_, 4, 2880),      \
        .has_qkv_bias = true, .has_output_bias = true, .has_ffn_bias = true,          \
        .has_router_bias = true, .has_sinks = true, .window = 128, .global_every = 2, \
        .global_at = 1
    {GPT_OSS("gpt-oss-20b", 24, 32)},
    {GPT_OSS("gpt-oss-120b", 36, 128)},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const orr_model *orr_model_at(size_t index)
{
    return index < PRESETS ? &presets[index] : NULL;
}
