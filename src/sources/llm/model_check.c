/* SPDX-License-Identifier: Apache-2.0 */
/* model_check.c - is a model good: complete, without contradiction, and of a size that can be counted.
 *
 * The first fault found is told, with the field it is about, so that a reader can point at the line that set it.
 * Bounds come first, because all sums after them rely on them. */
#include "model_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ORR_PRINTF(3, 4) static bool say(model_fault *f, const char *field, const char *fmt, ...)
{
    va_list args;
    f->field = field;
    va_start(args, fmt);
    vsnprintf(f->words, sizeof f->words, fmt, args);
    va_end(args);
    return true;
}

static bool is_out_of_bounds(const orr_model *m, model_fault *f)
{
    const model_field *field;
    for (size_t i = 0; (field = model_field_at(i)); i++) {
        const uint64_t v = model_get(m, field);
        uint64_t words = 0;
        while (field->kind == MODEL_WORD && field->words[words])
            words++;
        if (field->kind == MODEL_WORD && v >= words)
            return say(f, field->key, "no such value");
        if (v > MODEL_MOST)
            return say(f, field->key, "%" PRIu64 " is more than %u", v, MODEL_MOST);
    }
    if (m->layers > MODEL_MOST_LAYERS)
        return say(f, "layers", "%" PRIu64 " is more than %u", m->layers, MODEL_MOST_LAYERS);
    return false;
}

/* ---- what must be there ---- */

typedef struct needed {
    const char *field;
    uint64_t value;
} needed;

static bool is_any_missing(const needed *n, size_t count, const char *when, model_fault *f)
{
    for (size_t i = 0; i < count; i++) {
        if (n[i].value == 0)
            return say(f, n[i].field, "at least 1 was expected%s", when);
    }
    return false;
}

static bool is_any_idle(const needed *n, size_t count, const char *without, model_fault *f)
{
    for (size_t i = 0; i < count; i++) {
        if (n[i].value)
            return say(f, n[i].field, "%" PRIu64 ", but %s", n[i].value, without);
    }
    return false;
}

/* ---- parts ---- */

static bool has_bad_ends(const orr_model *m, model_fault *f)
{
    const needed always[] = {{"layers", m->layers}, {"hidden", m->hidden}, {"vocab", m->vocab}};
    if (is_any_missing(always, 3, "", f))
        return true;
    if (m->block_norms != 1 && m->block_norms != 2 && m->block_norms != 4)
        return say(f, "block_norms", "%" PRIu64 " is not 1, 2 or 4", m->block_norms);
    if (m->position == ORR_MODEL_LEARNED && m->position_rows == 0)
        return say(f, "position_rows", "at least 1 was expected with learned positions");
    if (m->position != ORR_MODEL_LEARNED && m->position_rows)
        return say(f, "position_rows", "%" PRIu64 ", but positions are not learned",
                   m->position_rows);
    if (m->position == ORR_MODEL_LEARNED && m->max_positions > m->position_rows)
        return say(f, "max_positions", "%" PRIu64 ", but only %" PRIu64 " are learned",
                   m->max_positions, m->position_rows);
    return false;
}

static bool has_bad_heads(const orr_model *m, model_fault *f)
{
    const needed heads[] = {{"kv_heads", m->kv_heads}, {"head_dim", m->head_dim}};
    const needed latent[] = {{"q_lora_rank", m->q_lora_rank},
                             {"qk_nope_head_dim", m->qk_nope_head_dim},
                             {"qk_rope_head_dim", m->qk_rope_head_dim},
                             {"v_head_dim", m->v_head_dim}};
    if (is_any_missing(heads, 2, "", f) ||
        is_any_idle(latent, 4, "there is no MLA (kv_lora_rank is 0)", f))
        return true;
    if (m->kv_heads > m->heads || m->heads % m->kv_heads)
        return say(f, "kv_heads", "%" PRIu64 " does not divide the number of heads, %" PRIu64,
                   m->kv_heads, m->heads);
    return false;
}

static bool has_bad_latent(const orr_model *m, model_fault *f)
{
    const needed latent[] = {{"v_head_dim", m->v_head_dim},
                             {"qk_nope_head_dim", m->qk_nope_head_dim + m->qk_rope_head_dim}};
    if (m->qk_norm)
        return say(f, "qk_norm", "MLA has norms of its own");
    return is_any_missing(latent, 2, " with MLA", f);
}

static bool has_bad_window(const orr_model *m, model_fault *f)
{
    const needed of_window[] = {{"window_from", m->window_from}, {"global_every", m->global_every}};
    if (m->window == 0 && is_any_idle(of_window, 2, "there is no window", f))
        return true;
    if (m->global_at && m->global_at >= m->global_every)
        return say(f, "global_at", "%" PRIu64 " is not below global_every, %" PRIu64, m->global_at,
                   m->global_every);
    return false;
}

static bool has_bad_attention(const orr_model *m, model_fault *f)
{
    const needed heads = {"heads", m->heads};
    return is_any_missing(&heads, 1, "", f) || has_bad_window(m, f) ||
           (orr_model_is_mla(m) ? has_bad_latent(m, f) : has_bad_heads(m, f));
}

static bool has_bad_experts(const orr_model *m, model_fault *f)
{
    const needed moe[] = {{"experts_per_token", m->experts_per_token},
                          {"expert_ffn", m->expert_ffn},
                          {"shared_experts", m->shared_experts},
                          {"shared_ffn", m->shared_ffn},
                          {"moe_every", m->moe_every}};
    if (m->experts == 0)
        return is_any_idle(moe, 5, "there are no experts", f);
    if (is_any_missing(moe, 2, " with experts", f))
        return true;
    if (m->experts_per_token > m->experts)
        return say(f, "experts_per_token", "%" PRIu64 " of only %" PRIu64 " experts",
                   m->experts_per_token, m->experts);
    if (m->moe_at && m->moe_at >= m->moe_every)
        return say(f, "moe_at", "%" PRIu64 " is not below moe_every, %" PRIu64, m->moe_at,
                   m->moe_every);
    if (m->shared_experts && m->shared_ffn == 0)
        return say(f, "shared_ffn", "at least 1 was expected with shared experts");
    if (m->shared_ffn && m->shared_experts == 0)
        return say(f, "shared_ffn", "%" PRIu64 ", but there are no shared experts", m->shared_ffn);
    if (m->has_shared_gate && m->shared_experts == 0)
        return say(f, "has_shared_gate", "there are no shared experts to scale");
    return false;
}

static bool lacks_ffn(const orr_model *m, model_fault *f)
{
    for (uint64_t i = 0; i < m->layers && m->ffn == 0; i++) {
        if (!orr_model_is_moe(m, i))
            return say(f, "ffn", "at least 1 was expected: layer %" PRIu64 " is not MoE", i);
    }
    return false;
}

/* ---- size ---- */

static bool is_tensor_too_large(const orr_model_tensor *t, uint64_t *all)
{
    uint64_t n;
    return __builtin_mul_overflow(t->rows, t->columns, &n) ||
           __builtin_add_overflow(n, t->columns, &n) || __builtin_mul_overflow(n, t->copies, &n) ||
           __builtin_add_overflow(*all, n, all) || *all > MODEL_MOST_PARAMETERS;
}

/* Biases and tied heads are counted whether they are there or not: the bound is not that near. */
static bool is_too_large(const orr_model *m, model_fault *f)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    uint64_t all = 0;
    for (uint64_t i = 0; i <= m->layers; i++) {
        const size_t n = i < m->layers ? orr_model_layer_tensors(m, i, tensors)
                                       : orr_model_end_tensors(m, tensors);
        for (size_t k = 0; k < n; k++) {
            if (is_tensor_too_large(&tensors[k], &all))
                return say(f, "hidden", "all together more than 2^60 parameters (%s)",
                           tensors[k].name);
        }
    }
    return false;
}

bool model_find_fault(const orr_model *m, model_fault *out)
{
    return is_out_of_bounds(m, out) || has_bad_ends(m, out) || has_bad_attention(m, out) ||
           has_bad_experts(m, out) || lacks_ffn(m, out) || is_too_large(m, out);
}

static bool is_plain(const char *text, size_t room)
{
    const char *end = memchr(text, '\0', room);
    for (const char *p = text; end && p < end; p++) {
        if (*p < ' ' || *p >= 0x7F || *p == '"' || *p == '\\')
            return false;
    }
    return end != NULL;
}

orr_code orr_model_check(const orr_model *m, orr_error *err)
{
    model_fault f;
    if (!is_plain(m->name, sizeof m->name))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "name: printable ASCII was expected, without \" and \\");
    if (model_find_fault(m, &f))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s: %s", f.field, f.words);
    return ORR_OK;
}
