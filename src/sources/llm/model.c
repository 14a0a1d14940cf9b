/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the tensors of a model: one list per layer and one for the two ends.
 *
 * Why one list: parameters, active parameters and FLOPs are sums over it.  Separate formulas would
 * have to be kept consistent, for every kind of attention and FFN. Invariants: names are constants;
 * a tensor without parameters of its own is either tied or not listed. Cost: a layer has at most
 * ORR_MODEL_TENSORS tensors, no memory is taken. */
#include "model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- questions ---- */

static bool has_experts_here(const orr_model *m, uint64_t layer)
{
    if (m->experts == 0 || layer < m->dense_first)
        return false;
    return m->moe_every == 0 || layer % m->moe_every == m->moe_at;
}

static bool has_window_here(const orr_model *m, uint64_t layer)
{
    if (layer < m->window_from || (m->global_every && layer % m->global_every == m->global_at))
        return false;
    return m->window > 0;
}

orr_model_mixer orr_model_mixer_of(const orr_model *m, uint64_t layer)
{
    const size_t n = strnlen(m->mixers, ORR_MODEL_PATTERN);
    if (n)
        return (orr_model_mixer)m->mixers[layer % n];
    return has_window_here(m, layer) ? ORR_MIX_WINDOW : ORR_MIX_ALL;
}

orr_model_ffn orr_model_ffn_of(const orr_model *m, uint64_t layer)
{
    const size_t n = strnlen(m->ffns, ORR_MODEL_PATTERN);
    if (n)
        return (orr_model_ffn)m->ffns[layer % n];
    return has_experts_here(m, layer) ? ORR_FFN_EXPERTS : ORR_FFN_DENSE;
}

bool orr_model_is_moe(const orr_model *m, uint64_t layer)
{
    const orr_model_ffn ffn = orr_model_ffn_of(m, layer);
    return ffn == ORR_FFN_EXPERTS || ffn == ORR_FFN_BOTH;
}

bool orr_model_is_attention(const orr_model *m, uint64_t layer)
{
    const orr_model_mixer mixer = orr_model_mixer_of(m, layer);
    return mixer == ORR_MIX_ALL || mixer == ORR_MIX_WINDOW || mixer == ORR_MIX_BOTH ||
           mixer == ORR_MIX_BLOCK;
}

uint64_t orr_model_window(const orr_model *m, uint64_t layer)
{
    return orr_model_mixer_of(m, layer) == ORR_MIX_WINDOW ? m->window : 0;
}

/* ---- widths that differ between layers ---- */

static bool is_global(const orr_model *m, uint64_t layer)
{
    return orr_model_mixer_of(m, layer) == ORR_MIX_ALL;
}

static uint64_t head_dim_of(const orr_model *m, uint64_t layer)
{
    return is_global(m, layer) && m->global_head_dim ? m->global_head_dim : m->head_dim;
}

static uint64_t kv_heads_of(const orr_model *m, uint64_t layer)
{
    return is_global(m, layer) && m->global_kv_heads ? m->global_kv_heads : m->kv_heads;
}

static bool is_kv_shared(const orr_model *m, uint64_t layer)
{
    return m->kv_shared_layers && layer + m->kv_shared_layers >= m->layers;
}

/* Has it keys and values of its own? */
static bool has_own_kv(const orr_model *m, uint64_t layer)
{
    return !is_kv_shared(m, layer) && (m->kv_share_every == 0 || layer % m->kv_share_every == 0);
}

static bool has_indexer(const orr_model *m, uint64_t layer)
{
    return m->index_heads && layer >= m->index_from;
}

/* Which of the layers with a shared block, from 0, is this one?  By the list's period. */
static uint64_t block_number(const orr_model *m, uint64_t layer)
{
    const uint64_t n = strnlen(m->mixers, ORR_MODEL_PATTERN);
    uint64_t before = 0, all = 0;
    for (uint64_t i = 0; i < n; i++) {
        all += m->mixers[i] == ORR_MIX_BLOCK;
        before += i < layer % n && m->mixers[i] == ORR_MIX_BLOCK;
    }
    return n ? layer / n * all + before : 0;
}

static bool owns_block(const orr_model *m, uint64_t layer)
{
    return block_number(m, layer) < (m->shared_blocks ? m->shared_blocks : 1);
}

bool orr_model_is_alike(const orr_model *m, uint64_t one, uint64_t other)
{
    const orr_model_mixer mixer = orr_model_mixer_of(m, one);
    return mixer == orr_model_mixer_of(m, other) &&
           orr_model_ffn_of(m, one) == orr_model_ffn_of(m, other) &&
           is_kv_shared(m, one) == is_kv_shared(m, other) &&
           has_own_kv(m, one) == has_own_kv(m, other) &&
           has_indexer(m, one) == has_indexer(m, other) &&
           (mixer != ORR_MIX_BLOCK || owns_block(m, one) == owns_block(m, other));
}

static const char *mixer_name(const orr_model *m, uint64_t layer)
{
    switch (orr_model_mixer_of(m, layer)) {
    case ORR_MIX_WINDOW:
        return "window ";
    case ORR_MIX_DELTA:
        return "gated delta net ";
    case ORR_MIX_KDA:
        return "KDA ";
    case ORR_MIX_LIGHTNING:
        return "lightning attention ";
    case ORR_MIX_MAMBA:
        return "Mamba ";
    case ORR_MIX_MAMBA2:
        return "Mamba-2 ";
    case ORR_MIX_BOTH:
        return "attention and Mamba-2 ";
    case ORR_MIX_BLOCK:
        return owns_block(m, layer) ? "Mamba and block " : "Mamba and shared block ";
    case ORR_MIX_RECURRENT:
        return "RG-LRU ";
    case ORR_MIX_CONVOLUTION:
        return "short convolution ";
    case ORR_MIX_RWKV:
        return "RWKV ";
    case ORR_MIX_IMAGE:
        return "image attention ";
    case ORR_MIX_NONE:
        return "FFN-only ";
    default:
        return is_kv_shared(m, layer) ? "KV-sharing " : m->mixers[0] ? "attention " : "";
    }
}

const char *orr_model_layer_name(const orr_model *m, uint64_t layer, char out[ORR_MODEL_NAME])
{
    const bool is_plain = m->mixers[0] == '\0' && m->window == 0;
    snprintf(out, ORR_MODEL_NAME, "%s%slayer", is_plain ? "" : mixer_name(m, layer),
             orr_model_is_moe(m, layer) ? "MoE " : "");
    return out;
}

bool model_set_letters(char out[ORR_MODEL_PATTERN], const char *letters, uint64_t layers)
{
    for (uint64_t period = 1; period <= layers && period < ORR_MODEL_PATTERN; period++) {
        uint64_t i = period;
        while (i < layers && letters[i] == letters[i - period])
            i++;
        if (i < layers)
            continue;
        memset(out, 0, ORR_MODEL_PATTERN);
        memcpy(out, letters, period);
        return true;
    }
    return false;
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

uint64_t orr_model_layer_kv(const orr_model *m, uint64_t layer)
{
    const uint64_t index = has_indexer(m, layer) ? m->index_head_dim : 0;
    if (!orr_model_is_attention(m, layer) || !has_own_kv(m, layer))
        return 0;
    if (orr_model_is_mla(m))
        return orr_model_kv_elements(m) + index;
    const bool is_half = m->has_no_global_v && is_global(m, layer);
    return (is_half ? 1 : 2) * kv_heads_of(m, layer) * head_dim_of(m, layer) + index;
}

uint64_t orr_model_layer_state(const orr_model *m, uint64_t layer)
{
    const orr_model_mixer mixer = orr_model_mixer_of(m, layer);
    return model_state(m, mixer) + model_conv_state(m, mixer);
}

uint64_t orr_model_state_flops(const orr_model *m, uint64_t layer)
{
    const orr_model_mixer mixer = orr_model_mixer_of(m, layer);
    return model_has_state(mixer) ? model_state_flops(m, mixer) : 0;
}

const char *orr_model_part_name(orr_model_part part)
{
    static const char *const names[ORR_MODEL_PARTS] = {
        "embedding", "positions", "attention",      "linear and SSM", "FFN",
        "router",    "experts",   "shared experts", "norms",          "head",
    };
    return part < ORR_MODEL_PARTS ? names[part] : "?";
}

/* ---- lists ---- */

orr_model_tensor *model_add(
    model_list *l, const char *name, orr_model_part part, uint64_t rows, uint64_t columns)
{
    orr_model_tensor *t = &l->out[l->count++];
    *t = (orr_model_tensor){
        .name = name, .part = part, .rows = rows, .columns = columns, .copies = 1, .active = 1};
    return t;
}

orr_model_tensor *model_add_product(model_list *l,
                                    const char *name,
                                    orr_model_part part,
                                    uint64_t rows,
                                    uint64_t columns,
                                    bool has_bias)
{
    orr_model_tensor *t = model_add(l, name, part, rows, columns);
    t->is_product = true;
    t->has_bias = has_bias;
    return t;
}

void model_add_norm(model_list *l, const char *name, uint64_t width)
{
    if (l->m->norm == ORR_MODEL_PLAIN_NORM)
        return;
    model_add(l, name, ORR_MODEL_NORMS, 1, width)->has_bias = l->m->norm == ORR_MODEL_LAYER_NORM;
}

static void add_qk_norm(model_list *l, const char *name, uint64_t heads, uint64_t width)
{
    if (l->m->qk_norm == ORR_MODEL_QK_NORM_EACH_HEAD)
        model_add(l, name, ORR_MODEL_NORMS, 1, heads * width);
    else if (l->m->qk_norm != ORR_MODEL_NO_QK_NORM)
        model_add_norm(l, name, l->m->qk_norm == ORR_MODEL_QK_NORM_HEAD ? width : heads * width);
}

static void add_heads(model_list *l, uint64_t layer)
{
    const orr_model *m = l->m;
    const uint64_t dim = head_dim_of(m, layer), kv_heads = kv_heads_of(m, layer);
    const bool has_kv = has_own_kv(m, layer);
    model_add_product(l, "q", ORR_MODEL_ATTENTION, m->hidden, m->heads * dim, m->has_qkv_bias);
    if (has_kv)
        model_add_product(l, "k", ORR_MODEL_ATTENTION, m->hidden, kv_heads * dim, m->has_qkv_bias);
    if (has_kv && !(m->has_no_global_v && is_global(m, layer)))
        model_add_product(l, "v", ORR_MODEL_ATTENTION, m->hidden, kv_heads * dim, m->has_qkv_bias);
    add_qk_norm(l, "q_norm", m->heads, dim);
    if (has_kv)
        add_qk_norm(l, "k_norm", kv_heads, dim);
}

/* Queries, keys and values through narrow matrices, with a norm between the two.  These norms are
 * RMS norms whatever the others are; biases are on the first of two matrices only (DeepSeek-V2,
 * equations 9 to 18). */
static void add_latent(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t q = m->heads * orr_model_qk_dim(m);
    const uint64_t kv = m->heads * (m->qk_nope_head_dim + m->v_head_dim);
    if (m->q_lora_rank) {
        model_add_product(l, "q_a", ORR_MODEL_ATTENTION, m->hidden, m->q_lora_rank,
                          m->has_qkv_bias);
        model_add(l, "q_a_norm", ORR_MODEL_NORMS, 1, m->q_lora_rank);
        model_add_product(l, "q_b", ORR_MODEL_ATTENTION, m->q_lora_rank, q, false);
    } else {
        model_add_product(l, "q", ORR_MODEL_ATTENTION, m->hidden, q, false);
    }
    model_add_product(l, "kv_a", ORR_MODEL_ATTENTION, m->hidden,
                      m->kv_lora_rank + m->qk_rope_head_dim, m->has_qkv_bias);
    model_add(l, "kv_a_norm", ORR_MODEL_NORMS, 1, m->kv_lora_rank);
    model_add_product(l, KV_B, ORR_MODEL_ATTENTION, m->kv_lora_rank, kv, false);
}

/* Scores of its own, of narrow queries with one narrow key a token.  Queries come from the
 * compressed ones and are weighed (DeepSeek-V3.2), or from the input and are normed (MiniMax-M3).
 */
static void add_indexer(model_list *l)
{
    const orr_model *m = l->m;
    const bool is_latent = m->q_lora_rank > 0;
    const uint64_t dim = m->index_head_dim;
    model_add_product(l, "index_q", ORR_MODEL_ATTENTION, is_latent ? m->q_lora_rank : m->hidden,
                      m->index_heads * dim, false);
    model_add_product(l, "index_k", ORR_MODEL_ATTENTION, m->hidden, dim, false);
    model_add(l, "index_k_norm", ORR_MODEL_NORMS, 1, dim)->has_bias = is_latent;
    if (is_latent)
        model_add_product(l, "index_weights", ORR_MODEL_ATTENTION, m->hidden, m->index_heads,
                          false);
    else
        model_add(l, "index_q_norm", ORR_MODEL_NORMS, 1, dim);
}

static void add_attention(model_list *l, uint64_t layer)
{
    const orr_model *m = l->m;
    const uint64_t out = m->heads * (orr_model_is_mla(m) ? m->v_head_dim : head_dim_of(m, layer));
    if (orr_model_is_mla(m))
        add_latent(l);
    else
        add_heads(l, layer);
    if (m->has_sinks)
        model_add(l, "sinks", ORR_MODEL_ATTENTION, 1, m->heads);
    if (has_indexer(m, layer))
        add_indexer(l);
    if (m->attention_gate)
        model_add_product(l, "attention_gate", ORR_MODEL_ATTENTION, m->hidden,
                          m->attention_gate == ORR_MODEL_GATE_WIDE ? out : m->heads, false);
    model_add_product(l, "o", ORR_MODEL_ATTENTION, out, m->hidden, m->has_output_bias);
}

/* Keys and values come from the image: their matrices are not applied to text tokens.  Queries and
 * keys have norms, the output has two gates. */
static void add_image_attention(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    model_add_product(l, "q", ORR_MODEL_ATTENTION, m->hidden, q, false);
    model_add(l, "image_k", ORR_MODEL_ATTENTION, m->hidden, kv);
    model_add(l, "image_v", ORR_MODEL_ATTENTION, m->hidden, kv);
    model_add(l, "image_norms", ORR_MODEL_NORMS, 1, 2 * m->head_dim);
    model_add(l, "image_gates", ORR_MODEL_ATTENTION, 1, 2);
    model_add_product(l, "o", ORR_MODEL_ATTENTION, q, m->hidden, false);
}

static void add_mixer(model_list *l, uint64_t layer)
{
    const orr_model *m = l->m;
    const orr_model_mixer mixer = orr_model_mixer_of(m, layer);
    if (mixer == ORR_MIX_IMAGE)
        add_image_attention(l);
    else if (mixer == ORR_MIX_BLOCK)
        model_add_block(l, owns_block(m, layer));
    else if (orr_model_is_attention(m, layer))
        add_attention(l, layer);
    if (model_has_state(mixer))
        model_add_mixer(l, mixer);
}

/* Two or three matrices, and how many there are of them. */
typedef struct ffn_shape {
    const char *gate, *up, *down;
    orr_model_part part;
    uint64_t hidden, width, copies, active;
} ffn_shape;

static void add_ffn(model_list *l, const ffn_shape *f)
{
    const orr_model *m = l->m;
    const size_t from = l->count;
    if (m->is_gated)
        model_add_product(l, f->gate, f->part, f->hidden, f->width, m->has_ffn_bias);
    model_add_product(l, f->up, f->part, f->hidden, f->width, m->has_ffn_bias);
    model_add_product(l, f->down, f->part, f->width, f->hidden, m->has_ffn_bias);
    for (size_t i = from; i < l->count; i++) {
        l->out[i].copies = f->copies;
        l->out[i].active = f->active;
    }
}

static void add_dense(model_list *l, uint64_t layer)
{
    const orr_model *m = l->m;
    const bool is_wide = m->has_wide_shared_ffn && is_kv_shared(m, layer);
    const ffn_shape f = {"ffn_gate", "ffn_up",          "ffn_down", ORR_MODEL_FFN,
                         m->hidden,  m->ffn << is_wide, 1,          1};
    add_ffn(l, &f);
}

static void add_moe(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t narrow = m->expert_hidden ? m->expert_hidden : m->hidden;
    const ffn_shape routed = {"expert_gate", "expert_up",   "expert_down", ORR_MODEL_EXPERTS,
                              narrow,        m->expert_ffn, m->experts,    m->experts_per_token};
    const ffn_shape shared = {"shared_gate", "shared_up",   "shared_down",     ORR_MODEL_SHARED,
                              m->hidden,     m->shared_ffn, m->shared_experts, m->shared_experts};
    model_add_product(l, "router", ORR_MODEL_ROUTER, m->hidden, m->experts + m->idle_experts,
                      m->has_router_bias);
    if (m->expert_hidden)
        model_add_product(l, "expert_in", ORR_MODEL_ROUTER, m->hidden, narrow, false);
    add_ffn(l, &routed);
    if (m->expert_hidden && m->has_expert_norm)
        model_add_norm(l, "expert_norm", narrow);
    if (m->expert_hidden)
        model_add_product(l, "expert_out", ORR_MODEL_ROUTER, narrow, m->hidden, false);
    if (m->shared_experts)
        add_ffn(l, &shared);
    if (m->shared_experts && m->has_shared_gate)
        model_add_product(l, "shared_scale", ORR_MODEL_ROUTER, m->hidden, 1, false);
}

/* Gemma 3n: several streams beside each other (AltUp), and a narrow way past a layer (LAuReL). */
static void add_altup(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t n = m->altup_inputs;
    if (n) {
        model_add_product(l, "altup_router", ORR_MODEL_FFN, m->hidden, n, false);
        model_add_product(l, "altup_predict", ORR_MODEL_FFN, n, n * n, false);
        model_add_product(l, "altup_correct", ORR_MODEL_FFN, n, n, false);
        model_add_norm(l, "altup_norm", m->hidden);
        model_add(l, "altup_scale", ORR_MODEL_NORMS, 1, m->hidden);
    }
    if (m->laurel_rank) {
        model_add_product(l, "laurel_a", ORR_MODEL_FFN, m->hidden, m->laurel_rank, false);
        model_add_product(l, "laurel_b", ORR_MODEL_FFN, m->laurel_rank, m->hidden, false);
        model_add_norm(l, "laurel_norm", m->hidden);
    }
}

static void add_extras(model_list *l, uint64_t layer)
{
    const orr_model *m = l->m;
    if (orr_model_is_moe(m, layer) && m->moe_norms)
        model_add(l, "moe_norms", ORR_MODEL_NORMS, 1, m->moe_norms * m->hidden);
    add_altup(l);
    if (m->per_layer_dim) {
        model_add_product(l, "per_layer_gate", ORR_MODEL_FFN, m->hidden, m->per_layer_dim, false);
        model_add_product(l, "per_layer_out", ORR_MODEL_FFN, m->per_layer_dim, m->hidden, false);
        model_add_norm(l, "per_layer_norm", m->hidden);
    }
    if (m->has_residual_reads)
        model_add(l, "residual_reads", ORR_MODEL_NORMS, 1, 4 * m->hidden);
}

/* A layer without one of its halves has no norms for it either. */
size_t orr_model_layer_tensors(const orr_model *m,
                               uint64_t layer,
                               orr_model_tensor out[ORR_MODEL_TENSORS])
{
    const orr_model_ffn ffn = orr_model_ffn_of(m, layer);
    const bool has_mixer = orr_model_mixer_of(m, layer) != ORR_MIX_NONE;
    const bool has_ffn = ffn != ORR_FFN_NONE;
    model_list l = {.m = m, .out = out};
    if (has_mixer || m->block_norms == 1)
        model_add_norm(&l, m->block_norms == 1 ? "norm" : "attention_norm", m->hidden);
    if (has_mixer)
        add_mixer(&l, layer);
    if (has_mixer && m->block_norms == 4)
        model_add_norm(&l, "attention_post_norm", m->hidden);
    if (has_ffn && m->block_norms >= 2)
        model_add_norm(&l, "ffn_norm", m->hidden);
    if (ffn == ORR_FFN_DENSE || ffn == ORR_FFN_BOTH)
        add_dense(&l, layer);
    if (ffn == ORR_FFN_EXPERTS || ffn == ORR_FFN_BOTH)
        add_moe(&l);
    if (has_ffn && m->block_norms == 4)
        model_add_norm(&l, "ffn_post_norm", m->hidden);
    add_extras(&l, layer);
    return l.count;
}

static void add_per_layer_ends(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t all = m->layers * m->per_layer_dim;
    const uint64_t extra = m->altup_inputs ? m->altup_inputs - 1 : 0;
    if (m->per_layer_dim) {
        model_add(l, "per_layer_embedding", ORR_MODEL_EMBEDDING, m->per_layer_vocab, all);
        model_add_product(l, "per_layer_in", ORR_MODEL_FFN, m->hidden, all, false);
        model_add(l, "per_layer_in_norm", ORR_MODEL_NORMS, 1, m->per_layer_dim);
    }
    if (extra) {
        orr_model_tensor *t =
            model_add_product(l, "altup_ends", ORR_MODEL_FFN, m->hidden, m->hidden, false);
        t->copies = t->active = 2 * extra;
    }
}

size_t orr_model_end_tensors(const orr_model *m, orr_model_tensor out[ORR_MODEL_TENSORS])
{
    const uint64_t rows = orr_model_vocab_rows(m);
    const uint64_t width = m->embedding_dim ? m->embedding_dim : m->hidden;
    model_list l = {.m = m, .out = out};
    model_add(&l, "embedding", ORR_MODEL_EMBEDDING, rows, width);
    if (m->embedding_dim)
        model_add_product(&l, "embedding_in", ORR_MODEL_HEAD, width, m->hidden, false);
    if (m->position == ORR_MODEL_LEARNED)
        model_add(&l, "positions", ORR_MODEL_POSITIONS, m->position_rows, m->hidden);
    if (m->has_embedding_norm)
        model_add_norm(&l, "embedding_norm", m->hidden);
    add_per_layer_ends(&l);
    if (m->has_residual_reads)
        model_add(&l, "last_residual_read", ORR_MODEL_NORMS, 1, 2 * m->hidden);
    if (!m->has_no_final_norm)
        model_add_norm(&l, "final_norm", m->hidden);
    if (m->embedding_dim)
        model_add_product(&l, "head_in", ORR_MODEL_HEAD, m->hidden, width, false);
    model_add_product(&l, "head", ORR_MODEL_HEAD, width, rows, m->has_head_bias)->is_tied =
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

uint64_t model_mtp_layer(const orr_model *m)
{
    uint64_t layer = m->layers;
    do
        layer--;
    while (layer && !orr_model_is_attention(m, layer));
    return layer;
}

uint64_t orr_model_mtp_count(const orr_model *m)
{
    orr_model_counts n;
    if (m->mtp_layers == 0)
        return 0;
    orr_model_layer_count(m, model_mtp_layer(m), &n);
    const uint64_t joint = (2 * m->hidden + 3) * m->hidden; /* both below 2^32 */
    uint64_t one, all;
    return __builtin_add_overflow(n.total, joint, &one) ||
                   __builtin_mul_overflow(one, m->mtp_layers, &all)
               ? UINT64_MAX
               : all;
}

/* FLOPs and KV cache for some tokens of one sequence.
 *
 * Products with matrices are 2 * rows * columns for each token and come from the list of tensors.
 * Attention adds the visible pairs of tokens: counted exactly, including masks and windows.  Every
 * step is checked for overflow: a long sequence through a large model easily exceeds 64 bits. */

/* A number with a sticky overflow flag. */
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
                    "%" PRIu64 " tokens after %" PRIu64
                    " others are too many: the result does not fit into 64 bits",
                    w->tokens, w->past);
}

static orr_code no_tokens(orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "expected at least one token");
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
    case ORR_MODEL_MIXING:
        return &f->attention;
    case ORR_MODEL_ROUTER:
        return &f->router;
    case ORR_MODEL_HEAD:
        return &f->head;
    default:
        return &f->ffn; /* dense, routed or shared: no other part has products */
    }
}

/* A cache of MLA does not keep expanded keys and values, so those of the past are expanded
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
static uint64_t pair_flops(const orr_model *m, uint64_t layer, const orr_model_work *w)
{
    if (orr_model_is_mla(m) && w->is_mla_absorbed)
        return 2 * (2 * m->kv_lora_rank + m->qk_rope_head_dim);
    if (orr_model_is_mla(m))
        return 2 * (orr_model_qk_dim(m) + orr_model_v_dim(m));
    return 4 * head_dim_of(m, layer);
}

/* Of the tokens that it may see, a layer with an indexer attends to index_topk. */
static uint64_t widest_sight(const orr_model *m, uint64_t layer)
{
    const uint64_t window = orr_model_window(m, layer);
    return has_indexer(m, layer) && m->index_topk ? m->index_topk : window;
}

/* Scores of attention and of its indexer, and what a state costs. */
static sum mixing_flops(const orr_model *m, uint64_t layer, const orr_model_work *w)
{
    const orr_model_mixer mixer = orr_model_mixer_of(m, layer);
    sum all = {0};
    if (orr_model_is_attention(m, layer)) {
        const sum pairs = count_pairs(w, widest_sight(m, layer));
        all = times(times(pairs, m->heads), pair_flops(m, layer, w));
        if (has_indexer(m, layer))
            all = plus(all, times(times(count_pairs(w, 0), m->index_heads), 2 * m->index_head_dim));
    }
    return model_has_state(mixer) ? plus(all, times(just(w->tokens), model_state_flops(m, mixer)))
                                  : all;
}

static void add_layer(flops *to, const orr_model *m, uint64_t layer, const orr_model_work *w)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    add_products(to, tensors, orr_model_layer_tensors(m, layer, tensors), w);
    to->scores = plus(to->scores, mixing_flops(m, layer, w));
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
    const size_t ends = orr_model_end_tensors(m, tensors);
    add_products(&f, tensors, ends, work);
    for (uint64_t i = 0; work->has_mtp && i < m->mtp_layers; i++) {
        add_layer(&f, m, model_mtp_layer(m), work);
        add_products(&f, tensors, ends, work);
        /* what joins two inputs of the width hidden: both below 2^32 */
        f.head = plus(f.head, times(times(just(work->tokens), 4 * m->hidden), m->hidden));
    }
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
        all = plus(all, times(just(kept), orr_model_layer_kv(m, i)));
        all = plus(all, just(orr_model_layer_state(m, i)));
    }
    if (all.is_over)
        return too_large(&w, err);
    *elements_out = all.value;
    return ORR_OK;
}

/* The built-in models: published figures, one row each.
 *
 * Families share what their rows would repeat.  Tests check each row against the published number
 * of parameters, exactly if that is exact.  Two rows of the GPT-3 paper contradict themselves and
 * are written as their totals say: "XL" has 16 heads (24 of 128 would not be 2048), "13B" is 5120
 * wide (40 heads of 128; the paper prints 5140). */

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
     EXPERTS(160, 6, 1536), .expert_groups = 8, .groups_per_token = 3, .shared_experts = 2,
     .shared_ffn = 1536, .dense_first = 1},
    {MLA("deepseek-v3", 61, 7168, 128, 18432, 129280, 163840), .q_lora_rank = 1536,
     EXPERTS(256, 8, 2048), .expert_groups = 8, .groups_per_token = 4, .shared_experts = 1,
     .shared_ffn = 2048, .has_router_bias = true, .dense_first = 3, .mtp_layers = 1},

#define GEMMA2(n, l, h, heads_, kv, dim, ffn_)           \
    GATED(n, l, h, heads_, kv, dim, ffn_, 256000, 8192), \
        .block_norms = 4, .is_tied = true, .window = 4096, .global_every = 2, .global_at = 1
    {GEMMA2("gemma-2-2b", 26, 2304, 8, 4, 256, 9216)},
    {GEMMA2("gemma-2-9b", 42, 3584, 16, 8, 256, 14336)},
    {GEMMA2("gemma-2-27b", 46, 4608, 32, 16, 128, 36864)},

#define GPT_OSS(n, l, experts_)                                                  \
    LLAMA(n, l, 2880, 64, 8, 64, 0, 201088, 131072), EXPERTS(experts_, 4, 2880), \
        .has_qkv_bias = true, .has_output_bias = true, .has_ffn_bias = true,     \
        .has_router_bias = true, .has_sinks = true, .has_scaled_rotary = true,   \
        .has_clamped_gate = true, .window = 128, .global_every = 2, .global_at = 1
    {GPT_OSS("gpt-oss-20b", 24, 32)},
    {GPT_OSS("gpt-oss-120b", 36, 128)},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const orr_model *orr_model_at(size_t index)
{
    return index < PRESETS ? &presets[index] : NULL;
}

/* ---- custom sizes ---- */

orr_code orr_model_resize(orr_model *m, const orr_model_sizes *sizes, orr_error *err)
{
    const struct {
        uint64_t size, *field;
    } rows[] = {{sizes->layers, &m->layers}, {sizes->hidden, &m->hidden},
                {sizes->heads, &m->heads},   {sizes->kv_heads, &m->kv_heads},
                {sizes->ffn, &m->ffn},       {sizes->vocab, &m->vocab}};
    const bool has_own_kv = m->kv_heads == m->heads;
    const bool fills = m->heads && m->heads * m->head_dim == m->hidden;
    const bool is_fourfold = m->ffn == 4 * m->hidden;
    bool is_changed = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].size)
            continue;
        *rows[i].field = rows[i].size;
        is_changed = true;
    }
    if (!is_changed)
        return ORR_OK;
    if (m->layers > MODEL_MOST_LAYERS)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu64 " layers are more than %u", m->layers,
                        MODEL_MOST_LAYERS);
    if (fills && m->hidden % m->heads)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a width of %" PRIu64 " does not divide evenly into %" PRIu64 " heads",
                        m->hidden, m->heads);
    if (has_own_kv && !sizes->kv_heads)
        m->kv_heads = m->heads;
    if (fills)
        m->head_dim = m->hidden / m->heads;
    if (is_fourfold && !sizes->ffn)
        m->ffn = 4 * m->hidden;
    const size_t used = strlen(m->name);
    snprintf(m->name + used, sizeof m->name - used, ", changed");
    return ORR_OK;
}
