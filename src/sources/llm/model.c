/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - what a model is made of: one list of tensors for each layer and one for the two ends.
 *
 * Why one list: parameters, active parameters and FLOPs are sums over it.  A formula for each would have to be
 * kept in step with all the others, for every kind of attention and FFN.
 * Invariants: names are constants; a tensor without parameters of its own is either tied or not listed.
 * Cost: a layer has at most ORR_MODEL_TENSORS tensors, no memory is taken. */
#include "model_impl.h"

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

/* Queries, keys and values through narrow matrices, with a norm between the two.  These norms are RMS norms
 * whatever the others are; biases are on the first of two matrices only (DeepSeek-V2, equations 9 to 18). */
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
