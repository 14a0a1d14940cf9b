/* SPDX-License-Identifier: Apache-2.0 */
/* model_mixers.c - what linear attention and state spaces are made of, what they keep and what they
 * compute: gated delta nets, KDA, lightning attention, Mamba, Mamba-2, RG-LRU, gated short
 * convolutions, RWKV-4.
 *
 * All have the same form: products out of the hidden width, a convolution over a few tokens, a
 * state of a fixed size that every token writes and reads, a product back.  The names of tensors
 * say so: *_in, *_conv, *_out.  A convolution is a product of its width with each channel.
 * Invariant: a mixer's tensors are of the part ORR_MODEL_MIXING, except for its norms. */
#include "model_impl.h"

#include <string.h>

/* ---- widths ---- */

static uint64_t key_width(const orr_model *m)
{
    return m->linear_key_heads * m->linear_key_dim;
}

static uint64_t value_width(const orr_model *m)
{
    return m->linear_heads * m->linear_value_dim;
}

/* B and C of Mamba-2, together. */
static uint64_t group_width(const orr_model *m)
{
    return 2 * m->ssm_groups * m->ssm_state;
}

static bool is_first_mamba(const orr_model *m, orr_model_mixer mixer)
{
    return mixer == ORR_MIX_MAMBA || (mixer == ORR_MIX_BLOCK && m->ssm_dt_rank > 0);
}

bool model_has_state(orr_model_mixer mixer)
{
    return mixer != ORR_MIX_ALL && mixer != ORR_MIX_WINDOW && mixer != ORR_MIX_IMAGE &&
           mixer != ORR_MIX_NONE;
}

/* ---- what is kept and computed ---- */

uint64_t model_state(const orr_model *m, orr_model_mixer mixer)
{
    switch (mixer) {
    case ORR_MIX_DELTA:
    case ORR_MIX_KDA:
    case ORR_MIX_LIGHTNING:
        return value_width(m) * m->linear_key_dim;
    case ORR_MIX_MAMBA:
    case ORR_MIX_MAMBA2:
    case ORR_MIX_BOTH:
    case ORR_MIX_BLOCK:
        return m->ssm_inner * m->ssm_state;
    case ORR_MIX_RECURRENT:
        return m->ssm_inner;
    case ORR_MIX_RWKV: /* numerator, denominator, exponent; the last token of both halves */
        return 3 * m->ssm_inner + 2 * m->hidden;
    default:
        return 0;
    }
}

static uint64_t conv_channels(const orr_model *m, orr_model_mixer mixer)
{
    switch (mixer) {
    case ORR_MIX_DELTA:
    case ORR_MIX_KDA:
        return m->linear_conv ? 2 * key_width(m) + value_width(m) : 0;
    case ORR_MIX_MAMBA:
    case ORR_MIX_RECURRENT:
        return m->ssm_inner;
    case ORR_MIX_MAMBA2:
    case ORR_MIX_BOTH:
    case ORR_MIX_BLOCK:
        return m->ssm_inner + (is_first_mamba(m, mixer) ? 0 : group_width(m));
    case ORR_MIX_CONVOLUTION:
        return m->hidden;
    default:
        return 0;
    }
}

uint64_t model_conv_state(const orr_model *m, orr_model_mixer mixer)
{
    const bool is_linear = mixer == ORR_MIX_DELTA || mixer == ORR_MIX_KDA;
    const uint64_t width = is_linear ? m->linear_conv : m->ssm_conv;
    return width ? conv_channels(m, mixer) * (width - 1) : 0;
}

uint64_t model_state_flops(const orr_model *m, orr_model_mixer mixer)
{
    const bool has_delta_rule = mixer == ORR_MIX_DELTA || mixer == ORR_MIX_KDA;
    return (has_delta_rule ? 6 : 4) * model_state(m, mixer);
}

/* ---- tensors ---- */

static orr_model_tensor *add_matrix(
    model_list *l, const char *name, uint64_t rows, uint64_t columns, bool has_bias)
{
    return model_add_product(l, name, ORR_MODEL_MIXING, rows, columns, has_bias);
}

static void add_vector(model_list *l, const char *name, uint64_t columns)
{
    model_add(l, name, ORR_MODEL_MIXING, 1, columns);
}

/* An RMS norm, whatever norms the layers have. */
static void add_rms(model_list *l, const char *name, uint64_t width)
{
    model_add(l, name, ORR_MODEL_NORMS, 1, width);
}

static void add_delta(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t key = key_width(m), value = value_width(m);
    add_matrix(l, "linear_in", m->hidden, 2 * key + 2 * value, false);
    add_matrix(l, "linear_gates", m->hidden, 2 * m->linear_heads, false);
    if (m->linear_conv)
        add_matrix(l, "linear_conv", m->linear_conv, 2 * key + value, false);
    add_vector(l, "dt_bias", m->linear_heads);
    add_vector(l, "decay", m->linear_heads);
    add_rms(l, "linear_norm", m->linear_value_dim);
    add_matrix(l, "linear_out", value, m->hidden, false);
}

static void add_kda(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t key = key_width(m), value = value_width(m), narrow = m->linear_value_dim;
    add_matrix(l, "linear_in", m->hidden, 2 * key + value, false);
    add_matrix(l, "linear_gates", m->hidden, m->linear_heads, false);
    if (m->linear_conv)
        add_matrix(l, "linear_conv", m->linear_conv, 2 * key + value, false);
    add_matrix(l, "decay_a", m->hidden, narrow, false);
    add_matrix(l, "decay_b", narrow, key, false);
    if (m->has_full_linear_gate) {
        add_matrix(l, "linear_gate", m->hidden, value, false);
    } else {
        add_matrix(l, "gate_a", m->hidden, narrow, false);
        add_matrix(l, "gate_b", narrow, value, false);
    }
    add_vector(l, "dt_bias", key);
    add_vector(l, "decay", m->linear_heads);
    add_rms(l, "linear_norm", m->linear_value_dim);
    add_matrix(l, "linear_out", value, m->hidden, false);
}

static void add_lightning(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t key = key_width(m), value = value_width(m);
    add_matrix(l, "linear_in", m->hidden, 2 * key + value, false);
    add_matrix(l, "linear_gate", m->hidden, value, false);
    add_rms(l, "linear_norm", value);
    add_matrix(l, "linear_out", value, m->hidden, false);
}

static void add_mamba(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t inner = m->ssm_inner, state = m->ssm_state;
    add_matrix(l, "mamba_in", m->hidden, 2 * inner, m->has_ssm_bias);
    add_matrix(l, "mamba_conv", m->ssm_conv, inner, m->has_conv_bias);
    add_matrix(l, "mamba_x", inner, m->ssm_dt_rank + 2 * state, false);
    if (m->has_ssm_norms) {
        add_rms(l, "dt_norm", m->ssm_dt_rank);
        add_rms(l, "b_norm", state);
        add_rms(l, "c_norm", state);
    }
    add_matrix(l, "mamba_dt", m->ssm_dt_rank, inner, true);
    model_add(l, "decay", ORR_MODEL_MIXING, state, inner);
    add_vector(l, "skip", inner);
    add_matrix(l, "mamba_out", inner, m->hidden, m->has_ssm_bias);
}

static void add_mamba2(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t inner = m->ssm_inner;
    add_matrix(l, "mamba_in", m->hidden, 2 * inner + m->ssm_heads, m->has_ssm_bias);
    add_matrix(l, "mamba_bc", m->hidden, group_width(m), m->has_ssm_bias);
    add_matrix(l, "mamba_conv", m->ssm_conv, inner, m->has_conv_bias);
    add_matrix(l, "mamba_bc_conv", m->ssm_conv, group_width(m), m->has_conv_bias);
    add_vector(l, "dt_bias", m->ssm_heads);
    add_vector(l, "decay", m->ssm_heads);
    add_vector(l, "skip", m->ssm_heads);
    if (!m->has_no_ssm_gate_norm)
        add_rms(l, "mamba_norm", inner);
    add_matrix(l, "mamba_out", inner, m->hidden, m->has_ssm_bias);
}

/* Two gates, each a matrix for every head; biases everywhere. */
static void add_recurrent(model_list *l)
{
    const orr_model *m = l->m;
    const uint64_t block = m->ssm_heads ? m->ssm_inner / m->ssm_heads : 0;
    add_matrix(l, "recurrent_in", m->hidden, 2 * m->ssm_inner, true);
    add_matrix(l, "recurrent_conv", m->ssm_conv, m->ssm_inner, true);
    orr_model_tensor *gates = add_matrix(l, "recurrent_gates", block, block, true);
    gates->copies = gates->active = 2 * m->ssm_heads;
    add_vector(l, "decay", m->ssm_inner);
    add_matrix(l, "recurrent_out", m->ssm_inner, m->hidden, true);
}

static void add_convolution(model_list *l)
{
    const orr_model *m = l->m;
    add_matrix(l, "conv_in", m->hidden, 3 * m->hidden, m->has_conv_bias);
    add_matrix(l, "short_conv", m->ssm_conv, m->hidden, m->has_conv_bias);
    add_matrix(l, "conv_out", m->hidden, m->hidden, m->has_conv_bias);
}

/* The gate of its FFN is here too: no other family has one of that shape. */
static void add_rwkv(model_list *l)
{
    const orr_model *m = l->m;
    add_matrix(l, "rwkv_in", m->hidden, 3 * m->ssm_inner, false);
    add_vector(l, "decay", m->ssm_inner);
    add_vector(l, "first", m->ssm_inner);
    add_vector(l, "mix", 3 * m->hidden);
    add_matrix(l, "rwkv_out", m->ssm_inner, m->hidden, false);
    add_vector(l, "ffn_mix", 2 * m->hidden);
    add_matrix(l, "ffn_receptance", m->hidden, m->hidden, false);
}

void model_add_mixer(model_list *l, orr_model_mixer mixer)
{
    switch (mixer) {
    case ORR_MIX_DELTA:
        add_delta(l);
        return;
    case ORR_MIX_KDA:
        add_kda(l);
        return;
    case ORR_MIX_LIGHTNING:
        add_lightning(l);
        return;
    case ORR_MIX_RECURRENT:
        add_recurrent(l);
        return;
    case ORR_MIX_CONVOLUTION:
        add_convolution(l);
        return;
    case ORR_MIX_RWKV:
        add_rwkv(l);
        return;
    default:
        if (is_first_mamba(l->m, mixer))
            add_mamba(l);
        else
            add_mamba2(l);
    }
}

/* ---- the block that some layers share ---- */

static void own(model_list *l, size_t from, bool is_owner)
{
    for (size_t i = from; i < l->count; i++)
        l->out[i].is_tied = !is_owner;
}

static void add_adapter(model_list *l,
                        const char *down,
                        const char *up,
                        uint64_t rank,
                        uint64_t rows,
                        uint64_t columns,
                        uint64_t copies)
{
    if (rank == 0)
        return;
    const size_t from = l->count;
    model_add_product(l, down, ORR_MODEL_ATTENTION, rows, rank, false);
    model_add_product(l, up, ORR_MODEL_ATTENTION, rank, columns, false);
    for (size_t i = from; i < l->count; i++)
        l->out[i].copies = l->out[i].active = copies;
}

/* It sees the layer's input and the embedding, side by side: twice as wide (Zamba, section 2).  A
 * matrix of the layer's own leads back, and adapters of the layer's own may be added. */
void model_add_block(model_list *l, bool is_owner)
{
    const orr_model *m = l->m;
    const size_t from = l->count;
    const uint64_t wide = 2 * m->hidden, q = m->heads * m->head_dim;
    const uint64_t kv = m->kv_heads * m->head_dim;
    model_add_norm(l, "block_norm", wide);
    model_add_product(l, "block_q", ORR_MODEL_ATTENTION, wide, q, false);
    model_add_product(l, "block_k", ORR_MODEL_ATTENTION, wide, kv, false);
    model_add_product(l, "block_v", ORR_MODEL_ATTENTION, wide, kv, false);
    model_add_product(l, "block_o", ORR_MODEL_ATTENTION, q, m->hidden, false);
    model_add_norm(l, "block_ffn_norm", m->hidden);
    model_add_product(l, "block_gate", ORR_MODEL_FFN, m->hidden, m->ffn, false);
    model_add_product(l, "block_up", ORR_MODEL_FFN, m->hidden, m->ffn, false);
    model_add_product(l, "block_down", ORR_MODEL_FFN, m->ffn, m->hidden, false);
    own(l, from, is_owner);
    add_adapter(l, "block_attention_a", "block_attention_b", m->block_attention_rank, wide, q, 3);
    add_adapter(l, "block_ffn_a", "block_ffn_b", m->block_ffn_rank, m->hidden, 2 * m->ffn, 1);
    model_add_product(l, "block_out", ORR_MODEL_ATTENTION, m->hidden, m->hidden, false);
}
