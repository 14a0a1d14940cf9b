/* SPDX-License-Identifier: Apache-2.0 */
/* model_fields.c - the fields of a model by name: the one table that our file is read and written
 * by, and what names a model. */
#include "model_impl.h"

#include <stdio.h>
#include <string.h>

static const char *const norm_words[] = {"rms", "layer", "layer-no-bias", "plain", NULL};
static const char *const qk_norms[] = {"none", "head", "all-heads", "each-head", NULL};
static const char *const gates[] = {"none", "wide", "head", NULL};
static const char *const positions[] = {"rotary", "learned", "alibi", "none", NULL};

#define NUMBER(field)                                          \
    {                                                          \
#field, MODEL_NUMBER, offsetof(orr_model, field), NULL \
    }
#define FLAG(field)                                          \
    {                                                        \
#field, MODEL_FLAG, offsetof(orr_model, field), NULL \
    }
#define WORD(field, words)                                    \
    {                                                         \
#field, MODEL_WORD, offsetof(orr_model, field), words \
    }

#define LETTERS(field, letters)                                                  \
    {                                                                            \
#field, MODEL_LETTERS, offsetof(orr_model, field), (const char *const[]) \
        {                                                                        \
            letters, NULL                                                        \
        }                                                                        \
    }

/* An enum is read and written as the int it is stored as. */
_Static_assert(sizeof(orr_model_norm) == sizeof(int), "norm");
_Static_assert(sizeof(orr_model_qk_norm) == sizeof(int), "qk_norm");
_Static_assert(sizeof(orr_model_position) == sizeof(int), "position");
_Static_assert(sizeof(orr_model_gate) == sizeof(int), "attention_gate");

static const model_field fields[] = {
    FLAG(is_uncertain),
    LETTERS(mixers, "awdklmsbzrcvxn"),
    LETTERS(ffns, "febn"),
    NUMBER(layers),
    NUMBER(hidden),
    NUMBER(vocab),
    NUMBER(vocab_multiple),
    NUMBER(max_positions),
    FLAG(is_tied),
    FLAG(has_head_bias),
    FLAG(has_embedding_norm),
    FLAG(has_no_final_norm),
    NUMBER(embedding_dim),
    WORD(position, positions),
    NUMBER(position_rows),
    WORD(norm, norm_words),
    NUMBER(block_norms),
    WORD(qk_norm, qk_norms),
    FLAG(is_parallel),
    NUMBER(heads),
    NUMBER(kv_heads),
    NUMBER(head_dim),
    FLAG(has_qkv_bias),
    FLAG(has_output_bias),
    FLAG(has_sinks),
    FLAG(has_scaled_rotary),
    NUMBER(window),
    NUMBER(window_from),
    NUMBER(global_every),
    NUMBER(global_at),
    WORD(attention_gate, gates),
    NUMBER(global_head_dim),
    NUMBER(global_kv_heads),
    FLAG(has_no_global_v),
    NUMBER(kv_shared_layers),
    NUMBER(kv_share_every),
    FLAG(has_wide_shared_ffn),
    FLAG(has_residual_reads),
    NUMBER(index_heads),
    NUMBER(index_head_dim),
    NUMBER(index_topk),
    NUMBER(index_from),
    NUMBER(kv_lora_rank),
    NUMBER(q_lora_rank),
    NUMBER(qk_nope_head_dim),
    NUMBER(qk_rope_head_dim),
    NUMBER(v_head_dim),
    NUMBER(linear_heads),
    NUMBER(linear_key_heads),
    NUMBER(linear_key_dim),
    NUMBER(linear_value_dim),
    NUMBER(linear_conv),
    FLAG(has_full_linear_gate),
    NUMBER(ssm_inner),
    NUMBER(ssm_state),
    NUMBER(ssm_heads),
    NUMBER(ssm_groups),
    NUMBER(ssm_dt_rank),
    NUMBER(ssm_conv),
    FLAG(has_conv_bias),
    FLAG(has_ssm_bias),
    FLAG(has_ssm_norms),
    FLAG(has_no_ssm_gate_norm),
    NUMBER(shared_blocks),
    NUMBER(block_ffn_rank),
    NUMBER(block_attention_rank),
    NUMBER(per_layer_dim),
    NUMBER(per_layer_vocab),
    NUMBER(altup_inputs),
    NUMBER(laurel_rank),
    NUMBER(ffn),
    FLAG(is_gated),
    FLAG(has_clamped_gate),
    FLAG(has_ffn_bias),
    NUMBER(experts),
    NUMBER(experts_per_token),
    NUMBER(expert_groups),
    NUMBER(groups_per_token),
    NUMBER(expert_ffn),
    NUMBER(shared_experts),
    NUMBER(shared_ffn),
    FLAG(has_shared_gate),
    FLAG(has_router_bias),
    NUMBER(expert_hidden),
    FLAG(has_expert_norm),
    NUMBER(moe_norms),
    NUMBER(idle_experts),
    NUMBER(dense_first),
    NUMBER(moe_every),
    NUMBER(moe_at),
    NUMBER(mtp_layers),
};

_Static_assert(sizeof fields / sizeof *fields == MODEL_FIELDS, "MODEL_FIELDS");

const model_field *model_field_at(size_t index)
{
    return index < MODEL_FIELDS ? &fields[index] : NULL;
}

/* MODEL_FIELDS: there is none */
size_t model_field_find(const char *key)
{
    size_t i = 0;
    while (i < MODEL_FIELDS && strcmp(fields[i].key, key) != 0)
        i++;
    return i;
}

uint64_t model_get(const orr_model *m, const model_field *f)
{
    const char *at = (const char *)m + f->at;
    uint64_t number;
    bool flag;
    int word;
    switch (f->kind) {
    case MODEL_NUMBER:
        memcpy(&number, at, sizeof number);
        return number;
    case MODEL_FLAG:
        memcpy(&flag, at, sizeof flag);
        return flag;
    case MODEL_LETTERS:
        return *at != '\0'; /* is there a list? */
    default:
        memcpy(&word, at, sizeof word);
        return word < 0 ? UINT64_MAX : (uint64_t)word;
    }
}

void model_set(orr_model *m, const model_field *f, uint64_t value)
{
    char *at = (char *)m + f->at;
    const bool flag = value != 0;
    const int word = (int)value; /* its place in `words` */
    switch (f->kind) {
    case MODEL_NUMBER:
        memcpy(at, &value, sizeof value);
        return;
    case MODEL_FLAG:
        memcpy(at, &flag, sizeof flag);
        return;
    case MODEL_LETTERS: /* set by itself: a number cannot say it */
        return;
    default:
        memcpy(at, &word, sizeof word);
    }
}

void model_plain_text(char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text >= 0x7F || *text == '"' || *text == '\\')
            *text = '_';
    }
}

static bool strip_end(orr_str *s, const char *end)
{
    const size_t n = strlen(end);
    if (s->len < n || memcmp(s->ptr + s->len - n, end, n) != 0)
        return false;
    s->len -= n;
    return true;
}

void model_name_path(orr_model *m, orr_str path)
{
    static const char *const ends[] = {".gz", ".zst", ".json", ".yaml", ".yml"};
    while (strip_end(&path, "/config.json") || strip_end(&path, "/"))
        continue;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        strip_end(&path, ends[i]);
    size_t from = path.len;
    while (from && path.ptr[from - 1] != '/')
        from--;
    const size_t all = path.len - from;
    const size_t n = all < ORR_MODEL_NAME - 1 ? all : ORR_MODEL_NAME - 1;
    memset(m->name, 0, sizeof m->name);
    memcpy(m->name, path.ptr + from, n);
    model_plain_text(m->name);
    if (m->name[0] == '\0' || strcmp(m->name, "-") == 0)
        memcpy(m->name, "unnamed", sizeof "unnamed");
}
