/* SPDX-License-Identifier: Apache-2.0 */
/* model_file.c - a model from a file of ours and to one (YAML, of which JSON is a part;
 * docs/format/model.md).
 *
 * A flat map, one key for each field of orr_model; reader and writer walk the same table, so they
 * cannot drift. `from` starts with a preset, of which the file then changes what it names. */
#include "base/formats/json.h"
#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/text/text.h"
#include "model_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const orr_model *model_nearest(const char *name);

enum { HEAD_KEYS = 4, SHOWN = 60 };

static const char *const head_keys[HEAD_KEYS] = {"format", "version", "name", "from"};

/* ---- reading ---- */

static orr_code check_head(orr_yaml_value map, orr_error *err)
{
    static const char *const formats[] = {"orrery-model", NULL};
    const char *keys[HEAD_KEYS + MODEL_FIELDS + 1] = {NULL};
    unsigned format = 0;
    uint64_t version = 1;
    for (size_t i = 0; i < HEAD_KEYS; i++)
        keys[i] = head_keys[i];
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        keys[HEAD_KEYS + i] = model_field_at(i)->key;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_take_word(map, "format", formats, &format, err);
    return code ? code : orr_yaml_take_u64(map, "version", 1, 1, &version, err);
}

static orr_code take_from(orr_yaml_value map, orr_model *m, orr_error *err)
{
    char name[ORR_MODEL_NAME] = "";
    orr_yaml_value v;
    if (!orr_yaml_find(map, "from", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return orr_fail(err, ORR_EINPUT, &w, "from: expected the name of a model");
    if (s.len < sizeof name)
        memcpy(name, s.ptr, s.len);
    const orr_model *preset = orr_model_find(name), *near = model_nearest(name);
    if (preset)
        *m = *preset;
    else if (near)
        return orr_fail(err, ORR_EINPUT, &w, "from: no model is called \"%.*s\"; did you mean %s?",
                        shown, s.ptr, near->name);
    else
        return orr_fail(err, ORR_EINPUT, &w, "from: no model is called \"%.*s\"", shown, s.ptr);
    return ORR_OK;
}

static orr_code take_name(orr_yaml_value map, const char *label, orr_model *m, orr_error *err)
{
    orr_yaml_value v;
    char plain[ORR_MODEL_NAME] = "";
    if (!orr_yaml_find(map, "name", &v)) {
        model_name_path(m, orr_str_of(label));
        return ORR_OK;
    }
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    memset(m->name, 0, sizeof m->name);
    if (s.len > 0 && s.len < sizeof m->name)
        memcpy(m->name, s.ptr, s.len);
    memcpy(plain, m->name, sizeof plain);
    model_plain_text(plain);
    if (s.len == 0 || strlen(m->name) != s.len || strcmp(plain, m->name) != 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "name: expected 1 to %d plain characters, without \" and \\",
                        ORR_MODEL_NAME - 1);
    return ORR_OK;
}

/* One letter a layer, of those that the field knows. */
static orr_code take_letters(orr_yaml_value map, const model_field *f, orr_model *m, orr_error *err)
{
    char *to = (char *)m + f->at;
    orr_yaml_value v;
    if (!orr_yaml_find(map, f->key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR || s.len >= ORR_MODEL_PATTERN)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected at most %d letters", f->key,
                        ORR_MODEL_PATTERN - 1);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\0' || !strchr(f->words[0], s.ptr[i]))
            return orr_fail(err, ORR_EINPUT, &w, "%s: expected letters of \"%s\"", f->key,
                            f->words[0]);
    }
    memset(to, 0, ORR_MODEL_PATTERN);
    memcpy(to, s.ptr, s.len);
    return ORR_OK;
}

static orr_code take_field(orr_yaml_value map, const model_field *f, orr_model *m, orr_error *err)
{
    uint64_t number = model_get(m, f);
    unsigned word = (unsigned)number; /* a word's place is small; of numbers it is not used */
    bool flag = number != 0;
    orr_code code;
    switch (f->kind) {
    case MODEL_NUMBER:
        code = orr_yaml_take_u64(map, f->key, 0, MODEL_MOST, &number, err);
        break;
    case MODEL_FLAG:
        code = orr_yaml_take_bool(map, f->key, &flag, err);
        number = flag;
        break;
    case MODEL_LETTERS:
        return take_letters(map, f, m, err);
    default:
        code = orr_yaml_take_word(map, f->key, f->words, &word, err);
        number = word;
    }
    if (!code)
        model_set(m, f, number);
    return code;
}

/* Derived defaults, right for nearly all models. */
static void complete(orr_model *m)
{
    if (m->block_norms == 0)
        m->block_norms = 2;
    if (m->kv_heads == 0)
        m->kv_heads = m->heads;
    if (m->linear_key_heads == 0)
        m->linear_key_heads = m->linear_heads;
    if (m->head_dim == 0 && !orr_model_is_mla(m) && m->heads && m->hidden % m->heads == 0)
        m->head_dim = m->hidden / m->heads;
    if (m->position_rows == 0 && m->position == ORR_MODEL_LEARNED)
        m->position_rows = m->max_positions;
}

static orr_code check_model(orr_yaml_value map, const orr_model *m, orr_error *err)
{
    model_fault f;
    orr_yaml_value v;
    if (!model_find_fault(m, &f))
        return ORR_OK;
    const orr_where w = orr_yaml_where(orr_yaml_find(map, f.field, &v) ? v : map);
    return orr_fail(err, ORR_EINPUT, &w, "%s: %s", f.field, f.words);
}

static orr_code take_model(orr_yaml_value map, const char *label, orr_model *m, orr_error *err)
{
    const model_field *f;
    orr_code code = check_head(map, err);
    if (!code)
        code = take_from(map, m, err);
    if (!code)
        code = take_name(map, label, m, err);
    for (size_t i = 0; !code && (f = model_field_at(i)); i++)
        code = take_field(map, f, m, err);
    if (code)
        return code;
    complete(m);
    return check_model(map, m, err);
}

static orr_code model_parse_file(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    orr_model m = {.layers = 0};
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    code = take_model(orr_yaml_root(y), label, &m, err);
    orr_yaml_close(y);
    if (!code)
        *out = m;
    return code;
}

/* ---- writing ---- */

/* The two notations differ in signs only. */
typedef struct notation {
    const char *head, *before_key, *behind_key, *quote, *behind, *foot;
} notation;

static const notation yaml = {"format: orrery-model\nversion: 1\nname: ", "", ": ", "", "\n", ""};
static const notation json = {
    "{\"format\": \"orrery-model\", \"version\": 1, \"name\": ", ", \"", "\": ", "\"", "", "}"};

/* What is zero, false or the first word is what the reader starts from. */
static void put_field(orr_pen *t, const notation *n, const orr_model *m, const model_field *f)
{
    const uint64_t v = model_get(m, f);
    if (v == 0)
        return;
    orr_pen_put(t, "%s%s%s", n->before_key, f->key, n->behind_key);
    if (f->kind == MODEL_NUMBER)
        orr_pen_put(t, "%" PRIu64, v);
    else if (f->kind == MODEL_FLAG)
        orr_pen_put(t, "true");
    else if (f->kind == MODEL_LETTERS)
        orr_pen_put(t, "\"%s\"", (const char *)m + f->at);
    else
        orr_pen_put(t, "%s%s%s", n->quote, f->words[v], n->quote);
    orr_pen_put(t, "%s", n->behind);
}

static size_t put_model(const orr_model *m, const notation *n, char *out, size_t size)
{
    orr_pen t = {.out = out, .size = size};
    orr_pen_put(&t, "%s\"%s\"%s", n->head, m->name, n->behind);
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        put_field(&t, n, m, model_field_at(i));
    orr_pen_put(&t, "%s", n->foot);
    return t.used;
}

size_t orr_model_text(const orr_model *m, char *out, size_t size)
{
    return put_model(m, &yaml, out, size);
}

size_t orr_model_json(const orr_model *m, char *out, size_t size)
{
    return put_model(m, &json, out, size);
}

/* Checks a model: complete, consistent, and countable.
 *
 * The first fault is reported, with its field, so that a reader can point to the line that set it.
 * Bounds come first, because all later sums rely on them. */

ORR_PRINTF(3, 4) static bool say(model_fault *f, const char *field, const char *fmt, ...)
{
    va_list args;
    f->field = field;
    va_start(args, fmt);
    vsnprintf(f->words, sizeof f->words, fmt, args);
    va_end(args);
    return true;
}

static bool has_bad_letters(const orr_model *m, const model_field *field, model_fault *f)
{
    const char *text = (const char *)m + field->at;
    const size_t n = strnlen(text, ORR_MODEL_PATTERN);
    if (n == ORR_MODEL_PATTERN || strspn(text, field->words[0]) != n)
        return say(f, field->key, "expected letters of \"%s\"", field->words[0]);
    return false;
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
        if (field->kind == MODEL_LETTERS && has_bad_letters(m, field, f))
            return true;
        if (v > MODEL_MOST)
            return say(f, field->key, "%" PRIu64 " is more than %u", v, MODEL_MOST);
    }
    if (m->layers > MODEL_MOST_LAYERS)
        return say(f, "layers", "%" PRIu64 " is more than %u", m->layers, MODEL_MOST_LAYERS);
    if (m->mtp_layers > MODEL_MOST_MTP)
        return say(f, "mtp_layers", "%" PRIu64 " is more than %u", m->mtp_layers, MODEL_MOST_MTP);
    return false;
}

/* Which kinds of layer there are: one bit per letter. */
typedef struct kinds {
    uint32_t mixers, ffns;
} kinds;

static uint32_t bit_of(int letter)
{
    return 1u << (unsigned)(letter - 'a');
}

static kinds kinds_of(const orr_model *m)
{
    kinds k = {0};
    for (uint64_t i = 0; i < m->layers; i++) {
        k.mixers |= bit_of((int)orr_model_mixer_of(m, i));
        k.ffns |= bit_of((int)orr_model_ffn_of(m, i));
    }
    return k;
}

static bool has_mixer(const kinds *k, const char *letters)
{
    for (; *letters; letters++)
        if (k->mixers & bit_of(*letters))
            return true;
    return false;
}

static bool has_ffn(const kinds *k, const char *letters)
{
    for (; *letters; letters++)
        if (k->ffns & bit_of(*letters))
            return true;
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
            return say(f, n[i].field, "expected at least 1%s", when);
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
        return say(f, "position_rows", "expected at least 1 with learned positions");
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
        return say(f, "qk_norm", "MLA has its own norms");
    return is_any_missing(latent, 2, " with MLA", f);
}

/* Linear attention and state spaces: complete, and of a size that can be counted. */
static bool has_bad_linear(const orr_model *m, model_fault *f)
{
    const needed all[] = {{"linear_heads", m->linear_heads},
                          {"linear_key_heads", m->linear_key_heads},
                          {"linear_key_dim", m->linear_key_dim},
                          {"linear_value_dim", m->linear_value_dim}};
    if (is_any_missing(all, 4, " with linear attention", f))
        return true;
    const uint64_t value = m->linear_heads * m->linear_value_dim;
    if (value > MODEL_MOST || m->linear_key_heads * m->linear_key_dim > MODEL_MOST ||
        value * m->linear_key_dim > MODEL_MOST_PARAMETERS)
        return say(f, "linear_heads", "all heads together are too wide");
    return false;
}

static bool has_bad_state(const orr_model *m, const kinds *k, model_fault *f)
{
    const needed mamba[] = {
        {"ssm_inner", m->ssm_inner}, {"ssm_state", m->ssm_state}, {"ssm_conv", m->ssm_conv}};
    const needed second[] = {{"ssm_heads", m->ssm_heads}, {"ssm_groups", m->ssm_groups}};
    const needed recurrent[] = {
        {"ssm_inner", m->ssm_inner}, {"ssm_conv", m->ssm_conv}, {"ssm_heads", m->ssm_heads}};
    const needed rwkv = {"ssm_inner", m->ssm_inner}, conv = {"ssm_conv", m->ssm_conv};
    const needed rank = {"ssm_dt_rank", m->ssm_dt_rank};
    const bool is_second = has_mixer(k, "sb") || (has_mixer(k, "z") && m->ssm_dt_rank == 0);
    if ((has_mixer(k, "msbz") && is_any_missing(mamba, 3, " with Mamba", f)) ||
        (has_mixer(k, "m") && is_any_missing(&rank, 1, " with Mamba", f)) ||
        (is_second && is_any_missing(second, 2, " with Mamba-2", f)) ||
        (has_mixer(k, "r") && is_any_missing(recurrent, 3, " with RG-LRU", f)) ||
        (has_mixer(k, "c") && is_any_missing(&conv, 1, " with short convolutions", f)) ||
        (has_mixer(k, "v") && is_any_missing(&rwkv, 1, " with RWKV", f)))
        return true;
    if (m->ssm_groups * m->ssm_state > MODEL_MOST)
        return say(f, "ssm_groups", "all groups together are too wide");
    return false;
}

static bool has_bad_extras(const orr_model *m, const kinds *k, model_fault *f)
{
    const needed index[] = {{"index_head_dim", m->index_head_dim}};
    const needed per_layer[] = {{"per_layer_vocab", m->per_layer_vocab}};
    if (m->index_heads && is_any_missing(index, 1, " with an indexer", f))
        return true;
    if (m->per_layer_dim && is_any_missing(per_layer, 1, " with embeddings for each layer", f))
        return true;
    if (m->kv_shared_layers > m->layers)
        return say(f, "kv_shared_layers", "%" PRIu64 " of only %" PRIu64 " layers",
                   m->kv_shared_layers, m->layers);
    if (m->global_kv_heads && (m->global_kv_heads > m->heads || m->heads % m->global_kv_heads))
        return say(f, "global_kv_heads",
                   "%" PRIu64 " does not divide the number of heads, %" PRIu64, m->global_kv_heads,
                   m->heads);
    if (has_mixer(k, "w") && m->window == 0)
        return say(f, "window", "expected at least 1: some layers have one");
    return false;
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

static bool has_bad_attention(const orr_model *m, const kinds *k, model_fault *f)
{
    const needed heads = {"heads", m->heads};
    if (!has_mixer(k, "awbzx"))
        return has_bad_window(m, f);
    return is_any_missing(&heads, 1, "", f) || has_bad_window(m, f) ||
           (orr_model_is_mla(m) ? has_bad_latent(m, f) : has_bad_heads(m, f));
}

static bool has_bad_groups(const orr_model *m, model_fault *f)
{
    if (m->expert_groups && m->experts % m->expert_groups)
        return say(f, "expert_groups", "%" PRIu64 " do not divide %" PRIu64 " experts",
                   m->expert_groups, m->experts);
    if (!m->expert_groups != !m->groups_per_token)
        return say(f, m->expert_groups ? "groups_per_token" : "expert_groups",
                   "expected at least 1: how many groups there are, and how many a token has");
    if (m->groups_per_token > m->expert_groups)
        return say(f, "groups_per_token", "%" PRIu64 " of only %" PRIu64 " groups",
                   m->groups_per_token, m->expert_groups);
    if (m->expert_groups &&
        m->experts_per_token > m->experts / m->expert_groups * m->groups_per_token)
        return say(f, "groups_per_token", "%" PRIu64 " groups have fewer than %" PRIu64 " experts",
                   m->groups_per_token, m->experts_per_token);
    return false;
}

static bool has_bad_experts(const orr_model *m, const kinds *k, model_fault *f)
{
    const needed moe[] = {{"experts_per_token", m->experts_per_token},
                          {"expert_ffn", m->expert_ffn},
                          {"shared_experts", m->shared_experts},
                          {"shared_ffn", m->shared_ffn},
                          {"moe_every", m->moe_every},
                          {"expert_groups", m->expert_groups},
                          {"groups_per_token", m->groups_per_token}};
    if (m->experts == 0 && has_ffn(k, "eb"))
        return say(f, "experts", "expected at least 1: some layers are MoE");
    if (m->experts == 0)
        return is_any_idle(moe, 7, "there are no experts", f);
    if (is_any_missing(moe, 2, " with experts", f))
        return true;
    if (m->experts_per_token > m->experts)
        return say(f, "experts_per_token", "%" PRIu64 " of only %" PRIu64 " experts",
                   m->experts_per_token, m->experts);
    if (has_bad_groups(m, f))
        return true;
    if (m->moe_at && m->moe_at >= m->moe_every)
        return say(f, "moe_at", "%" PRIu64 " is not below moe_every, %" PRIu64, m->moe_at,
                   m->moe_every);
    if (m->shared_experts && m->shared_ffn == 0)
        return say(f, "shared_ffn", "expected at least 1 with shared experts");
    if (m->shared_ffn && m->shared_experts == 0)
        return say(f, "shared_ffn", "%" PRIu64 ", but there are no shared experts", m->shared_ffn);
    if (m->has_shared_gate && m->shared_experts == 0)
        return say(f, "has_shared_gate", "there are no shared experts to scale");
    return false;
}

static bool lacks_ffn(const orr_model *m, const kinds *k, model_fault *f)
{
    uint64_t layer = 0;
    if (m->ffn || !(has_ffn(k, "fb") || has_mixer(k, "z")))
        return false;
    while (layer + 1 < m->layers && orr_model_ffn_of(m, layer) == ORR_FFN_EXPERTS)
        layer++;
    return say(f, "ffn", "expected at least 1: layer %" PRIu64 " is not MoE", layer);
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
    if (is_out_of_bounds(m, out) || has_bad_ends(m, out))
        return true;
    const kinds k = kinds_of(m);
    return has_bad_attention(m, &k, out) || (has_mixer(&k, "dkl") && has_bad_linear(m, out)) ||
           has_bad_state(m, &k, out) || has_bad_extras(m, &k, out) || has_bad_experts(m, &k, out) ||
           lacks_ffn(m, &k, out) || is_too_large(m, out);
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
        return orr_fail(err, ORR_EUSAGE, NULL, "name: expected printable ASCII, without \" and \\");
    if (model_find_fault(m, &f))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s: %s", f.field, f.words);
    return ORR_OK;
}

/* From what a user types to a model: the name of a preset, a file, a folder.
 *
 * Presets come first: they are the same everywhere, while a file depends on the current directory
 * (./gpt2 is the file).  Names are compared without regard to case, dashes and underscores, but
 * dots count: gpt3-1.3b is not gpt3-13b. */

/* ---- names ---- */

typedef struct key {
    char text[ORR_MODEL_NAME];
    size_t len;
} key;

/* What counts of a name; false: longer than any preset's. */
static bool make_key(const char *name, key *out)
{
    out->len = 0;
    for (; *name; name++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if (c == '-' || c == '_' || c == ' ')
            continue;
        if (out->len + 1 >= sizeof out->text)
            return false;
        out->text[out->len++] = c;
    }
    out->text[out->len] = '\0';
    return out->len > 0;
}

const orr_model *orr_model_find(const char *name)
{
    key wanted, k;
    if (!make_key(name, &wanted))
        return NULL;
    for (size_t i = 0; orr_model_at(i); i++) {
        if (make_key(orr_model_at(i)->name, &k) && strcmp(k.text, wanted.text) == 0)
            return orr_model_at(i);
    }
    return NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to add, leave out or change to make one of the other (Levenshtein); one row of the usual
 * table. */
static size_t distance(const key *a, const key *b)
{
    size_t row[ORR_MODEL_NAME];
    for (size_t j = 0; j <= b->len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a->len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b->len; j++) {
            const size_t change = diagonal + (a->text[i - 1] != b->text[j - 1]);
            diagonal = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b->len];
}

/* Near: at most a third of the letters differ; of equally near ones the first. */
static const orr_model *model_nearest(const char *name)
{
    const orr_model *best = NULL;
    key wanted, k;
    size_t fewest = SIZE_MAX;
    if (!make_key(name, &wanted))
        return NULL;
    for (size_t i = 0; orr_model_at(i); i++) {
        if (!make_key(orr_model_at(i)->name, &k))
            continue;
        const size_t d = distance(&wanted, &k);
        if (d < fewest && d <= (k.len + 2) / 3) {
            best = orr_model_at(i);
            fewest = d;
        }
    }
    return best;
}

/* ---- files ---- */

static bool begins_with_brace(orr_span bytes)
{
    size_t at = bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (at < bytes.len && bytes.ptr[at] && strchr(" \t\r\n", bytes.ptr[at]))
        at++;
    return at < bytes.len && bytes.ptr[at] == '{';
}

/* A JSON object that does not say it is ours is a config.json. */
static orr_code is_config(orr_span bytes, const char *label, bool *out, orr_error *err)
{
    orr_json *j;
    orr_json_value root, v;
    *out = begins_with_brace(bytes);
    if (!*out)
        return ORR_OK;
    orr_code code = orr_json_open(bytes, label, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &root, err);
    *out = !code && !orr_json_find(root, "format", &v);
    orr_json_close(j);
    return code;
}

orr_code orr_model_parse(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    bool is_theirs;
    const orr_code code = is_config(bytes, label, &is_theirs, err);
    if (code)
        return code;
    return is_theirs ? model_parse_config(bytes, label, out, err)
                     : model_parse_file(bytes, label, out, err);
}

static orr_code read_file(const char *path, orr_model *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_model_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

static orr_code read_folder(const char *path, orr_model *out, orr_error *err)
{
    char file[4096];
    const size_t len = strlen(path);
    const int n = snprintf(file, sizeof file, "%s%sconfig.json", path,
                           len && path[len - 1] == '/' ? "" : "/");
    if (n < 0 || (size_t)n >= sizeof file)
        return orr_fail(err, ORR_EUSAGE, NULL, "the folder's name is too long");
    return read_file(file, out, err);
}

/* A name without a slash and a file extension is more likely a model's. */
static bool looks_like_name(const char *text)
{
    static const char *const ends[] = {".json", ".yml", ".yaml", ".gz", ".zst"};
    const size_t len = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (len >= n && strcmp(text + len - n, ends[i]) == 0)
            return false;
    }
    return !strchr(text, '/') && strcmp(text, "-") != 0;
}

orr_code orr_model_load(const char *name_or_path, orr_model *out, orr_error *err)
{
    struct stat st;
    const orr_model *preset = orr_model_find(name_or_path);
    const bool is_there = stat(name_or_path, &st) == 0;
    if (preset) {
        *out = *preset;
        return ORR_OK;
    }
    if (is_there && S_ISDIR(st.st_mode))
        return read_folder(name_or_path, out, err);
    if (is_there || !looks_like_name(name_or_path))
        return read_file(name_or_path, out, err);
    preset = model_nearest(name_or_path);
    if (preset)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "no model and no file is called '%.60s'; did you mean %s?", name_or_path,
                        preset->name);
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "no model and no file is called '%.60s'; 'orrery model --list' shows the models",
        name_or_path);
}
