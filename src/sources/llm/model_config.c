/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.c - a model from a Hugging Face config.json.
 *
 * Sizes go by many names; each of them is looked for under all, and two that contradict each other are an error.
 * What a family means beyond its sizes is a row of model_families.c.  Each field remembers the value that set
 * it, so that a fault found at the end still points at its place in the file.
 * Invariant: numbers are at most MODEL_MOST, so that products of two fit into 64 bits. */
#include "model_config.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 60, KEYS = 4 };

/* ---- values ---- */

bool llm_config_find(const llm_config *c, const char *key, orr_json_value *out)
{
    return orr_json_find(c->map, key, out) && orr_json_type_of(*out) != ORR_JSON_NULL;
}

orr_code llm_config_refuse(const llm_config *c,
                           orr_json_value v,
                           const char *key,
                           const char *words)
{
    const orr_where w = orr_json_where(v);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s", key, words);
}

/* "key: 12.5 is not ..." with the value as it stands in the file. */
static orr_code not_what(const llm_config *c, orr_json_value v, const char *key, const char *what)
{
    const orr_where w = orr_json_where(v);
    const orr_str text = orr_json_raw(v);
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_ARRAY || type == ORR_JSON_OBJECT || text.len > SHOWN)
        return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s was found, %s was expected", key,
                        orr_json_type_name(type), what);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %.*s is not %s", key, (int)text.len, text.ptr,
                    what);
}

static orr_code get_number(const llm_config *c, orr_json_value v, const char *key, uint64_t *out)
{
    uint64_t n;
    if (orr_json_get_u64(v, &n, NULL) || n > MODEL_MOST)
        return not_what(c, v, key, "a whole number from 0 to 2147483647");
    *out = n;
    return ORR_OK;
}

orr_code llm_config_number(const llm_config *c, const char *key, uint64_t *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? get_number(c, v, key, out) : ORR_OK;
}

static orr_code get_bool(const llm_config *c, orr_json_value v, const char *key, bool *out)
{
    return orr_json_get_bool(v, out, NULL) ? not_what(c, v, key, "true or false") : ORR_OK;
}

orr_code llm_config_bool(const llm_config *c, const char *key, bool *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? get_bool(c, v, key, out) : ORR_OK;
}

static orr_code missing(const llm_config *c, const char *key)
{
    const orr_where w = orr_json_where(c->map);
    return orr_fail(c->err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

/* What is in a note may come from the file, and goes into tables and JSON. */
ORR_PRINTF(2, 3) static void note(orr_model *m, const char *fmt, ...)
{
    size_t used = strlen(m->note);
    va_list args;
    if (used && used + 2 < sizeof m->note) {
        memcpy(m->note + used, "; ", 3);
        used += 2;
    }
    va_start(args, fmt);
    vsnprintf(m->note + used, sizeof m->note - used, fmt, args);
    va_end(args);
    model_plain_text(m->note);
}

/* ---- sizes ---- */

/* A field, and the keys it goes by. */
typedef struct slot {
    const char *field;
    const char *keys[KEYS];
    bool is_needed;
} slot;

static const slot slots[] = {
    {"layers", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, true},
    {"hidden", {"hidden_size", "n_embd", "d_model", "n_embed"}, true},
    {"vocab", {"vocab_size"}, true},
    {"heads", {"num_attention_heads", "n_head", "num_heads", "n_heads"}, true},
    {"kv_heads", {"num_key_value_heads", "num_kv_heads", "n_head_kv"}, false},
    {"head_dim", {"head_dim"}, false},
    {"ffn", {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, false},
    {"max_positions",
     {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"},
     false},
    {"kv_lora_rank", {"kv_lora_rank"}, false},
    {"q_lora_rank", {"q_lora_rank"}, false},
    {"qk_nope_head_dim", {"qk_nope_head_dim"}, false},
    {"qk_rope_head_dim", {"qk_rope_head_dim"}, false},
    {"v_head_dim", {"v_head_dim"}, false},
    {"experts", {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, false},
    {"experts_per_token", {"num_experts_per_tok", "experts_per_token", "moe_top_k"}, false},
    {"expert_ffn", {"moe_intermediate_size"}, false},
    {"shared_experts", {"n_shared_experts", "num_shared_experts"}, false},
    {"dense_first", {"first_k_dense_replace"}, false},
    {"moe_every", {"moe_layer_freq"}, false},
    {"mtp_layers", {"num_nextn_predict_layers", "num_mtp_layers"}, false},
};

static void remember(llm_config *c, const char *field, const char *key, orr_json_value from)
{
    const size_t i = model_field_find(field);
    c->key[i] = key;
    c->from[i] = from;
}

static orr_code contradict(const llm_config *c,
                           orr_json_value v,
                           const char *key,
                           const char *other)
{
    char words[100];
    snprintf(words, sizeof words, "not the number that \"%s\" says", other);
    return llm_config_refuse(c, v, key, words);
}

static orr_code take_slot(llm_config *c, const slot *s)
{
    const model_field *field = model_field_at(model_field_find(s->field));
    const char *seen = NULL;
    uint64_t value = model_get(&c->m, field), n = 0;
    for (size_t i = 0; i < KEYS && s->keys[i]; i++) {
        orr_json_value v;
        if (!llm_config_find(c, s->keys[i], &v))
            continue;
        const orr_code code = get_number(c, v, s->keys[i], &n);
        if (code)
            return code;
        if (seen && n != value)
            return contradict(c, v, s->keys[i], seen);
        if (!seen)
            remember(c, s->field, s->keys[i], v);
        seen = s->keys[i];
        value = n;
    }
    model_set(&c->m, field, value);
    return !seen && s->is_needed && value == 0 ? missing(c, s->keys[0]) : ORR_OK;
}

static orr_code take_flag(llm_config *c, const llm_config_flag *f)
{
    const model_field *field = model_field_at(model_field_find(f->field));
    orr_json_value v;
    bool is_set;
    /* With several parts, some files say of the whole whether the head is tied. */
    if (!llm_config_find(c, f->key, &v) &&
        !(strcmp(f->field, "is_tied") == 0 && orr_json_find(c->root, f->key, &v) &&
          orr_json_type_of(v) != ORR_JSON_NULL))
        return ORR_OK;
    const orr_code code = get_bool(c, v, f->key, &is_set);
    if (code)
        return code;
    remember(c, f->field, f->key, v);
    model_set(&c->m, field, is_set ? f->if_true : f->if_false);
    return ORR_OK;
}

static orr_code take_sizes(llm_config *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof slots / sizeof *slots && !code; i++)
        code = take_slot(c, &slots[i]);
    for (const llm_config_flag *f = c->family->flags; f->key && !code; f++)
        code = take_flag(c, f);
    return code;
}

/* ---- attention ---- */

static bool was_said(const llm_config *c, const char *field)
{
    return c->key[model_field_find(field)] != NULL;
}

/* Keys of MLA that the file of such a model must have. */
static orr_code complete_latent(llm_config *c)
{
    static const char *const needed[] = {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                         "v_head_dim"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!was_said(c, needed[i]))
            return missing(c, needed[i]);
    }
    c->m.kv_heads = c->m.heads;
    c->m.head_dim = 0;
    return ORR_OK;
}

static orr_code complete_heads(llm_config *c)
{
    orr_model *m = &c->m;
    if (orr_model_is_mla(m))
        return complete_latent(c);
    if (m->kv_heads == 0 && !was_said(c, "kv_heads")) {
        if (c->family->needs_kv_heads)
            return missing(c, "num_key_value_heads");
        m->kv_heads = m->heads;
    }
    if (m->head_dim)
        return ORR_OK;
    const size_t hidden = model_field_find("hidden");
    if (m->heads && m->hidden % m->heads)
        return llm_config_refuse(c, c->from[hidden], c->key[hidden],
                                 "not a multiple of the number of heads, and there is no head_dim");
    m->head_dim = m->heads ? m->hidden / m->heads : 0;
    return ORR_OK;
}

/* ---- windows ---- */

bool llm_config_set_globals(orr_model *m, const bool *is_global)
{
    uint64_t first = 0, second, last = m->layers;
    while (last && !is_global[last - 1])
        last--;
    while (first < m->layers && is_global[first])
        first++;
    m->window_from = m->global_every = m->global_at = 0;
    if (first == m->layers) { /* no layer has the window */
        m->window = 0;
        return true;
    }
    if (first == last) { /* all from one on have it, or all */
        m->window_from = first;
        return true;
    }
    for (first = 0; !is_global[first];)
        first++;
    for (second = first + 1; second < m->layers && !is_global[second];)
        second++;
    m->global_every = second < m->layers ? second - first : m->layers;
    m->global_at = first;
    for (uint64_t i = 0; i < m->layers; i++) {
        if (is_global[i] != (i % m->global_every == m->global_at))
            return false;
    }
    return true;
}

static orr_code read_layer_type(const llm_config *c, orr_json_value v, bool *is_global)
{
    orr_str type;
    if (orr_json_get_str(v, &type, NULL))
        return not_what(c, v, "layer_types", "a string");
    *is_global = orr_str_is(type, "full_attention");
    if (*is_global || orr_str_is(type, "sliding_attention"))
        return ORR_OK;
    return not_what(c, v, "layer_types", "understood: full_attention and sliding_attention are");
}

static orr_code take_layer_types(llm_config *c, orr_json_value list)
{
    bool is_global[MODEL_MOST_LAYERS];
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    char words[80];
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) != c->m.layers) {
        snprintf(words, sizeof words, "a list of one string for each of %" PRIu64 " layers",
                 c->m.layers);
        return not_what(c, list, "layer_types", words);
    }
    for (uint64_t i = 0; orr_json_next_value(&it, &v); i++) {
        const orr_code code = read_layer_type(c, v, &is_global[i]);
        if (code)
            return code;
    }
    if (!llm_config_set_globals(&c->m, is_global))
        return llm_config_refuse(c, list, "layer_types",
                                 "full_attention does not come every so many layers");
    return ORR_OK;
}

/* Is there a window at all?  A null says no as well. */
static orr_code read_window(llm_config *c, bool *out)
{
    const bool is_asked =
        c->family->windows == LLM_WINDOWS_ASKED || c->family->windows == LLM_WINDOWS_LATE;
    orr_json_value v;
    bool is_used = !is_asked;
    orr_code code = llm_config_bool(c, "use_sliding_window", &is_used);
    if (!code)
        code = llm_config_number(c, "sliding_window", &c->m.window);
    if (orr_json_find(c->map, "sliding_window", &v)) {
        remember(c, "window", "sliding_window", v);
        if (orr_json_type_of(v) == ORR_JSON_NULL)
            c->m.window = 0;
    }
    *out = is_used && c->m.window;
    return code;
}

static orr_code take_pattern(llm_config *c)
{
    orr_code code = ORR_OK;
    c->m.window_from = c->family->windows == LLM_WINDOWS_LATE ? 28 : 0;
    if (c->family->windows == LLM_WINDOWS_LATE)
        code = llm_config_number(c, "max_window_layers", &c->m.window_from);
    if (!code && c->family->windows == LLM_WINDOWS_MIXED)
        code = llm_config_number(c, "sliding_window_pattern", &c->m.global_every);
    c->m.global_at = c->m.global_every ? c->m.global_every - 1 : 0;
    if (c->m.window_from < c->m.layers)
        return code;
    c->m.window = c->m.window_from = 0; /* no layer comes that late */
    return code;
}

static orr_code take_windows(llm_config *c)
{
    bool has_window = false;
    orr_json_value types;
    if (c->family->windows == LLM_WINDOWS_NONE)
        return ORR_OK;
    orr_code code = read_window(c, &has_window);
    if (code)
        return code;
    if (!has_window) {
        c->m.window = c->m.window_from = c->m.global_every = c->m.global_at = 0;
        return ORR_OK;
    }
    return llm_config_find(c, "layer_types", &types) ? take_layer_types(c, types) : take_pattern(c);
}

/* ---- experts ---- */

/* Layers 0 to k - 1, in any order: these are dense. */
static orr_code take_dense_layers(llm_config *c)
{
    orr_json_value list, v;
    uint64_t largest = 0, n = 0;
    if (!llm_config_find(c, "mlp_only_layers", &list) || orr_json_count(list) == 0)
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        const orr_code code = get_number(c, v, "mlp_only_layers", &n);
        if (code)
            return code;
        largest = n > largest ? n : largest;
    }
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || largest != orr_json_count(list) - 1)
        return llm_config_refuse(c, list, "mlp_only_layers",
                                 "only the first layers of a model are understood here");
    c->m.dense_first = largest + 1;
    return ORR_OK;
}

/* decoder_sparse_step n: layers n - 1, 2n - 1, ... */
static orr_code take_sparse_step(llm_config *c)
{
    uint64_t step = 0;
    const orr_code code = llm_config_number(c, "decoder_sparse_step", &step);
    if (step > 1) {
        c->m.moe_every = step;
        c->m.moe_at = step - 1;
    }
    return code;
}

static bool is_all_moe(const orr_model *m)
{
    uint64_t i = 0;
    while (i < m->layers && i < MODEL_MOST_LAYERS && orr_model_is_moe(m, i))
        i++;
    return i == m->layers;
}

static orr_code complete_experts(llm_config *c)
{
    orr_model *m = &c->m;
    if (!was_said(c, "experts_per_token"))
        return missing(c, "num_experts_per_tok");
    if (m->expert_ffn == 0)
        m->expert_ffn = m->ffn; /* where all layers are alike there is one width only */
    if (m->shared_experts && m->shared_ffn == 0)
        m->shared_ffn = m->expert_ffn;
    if (m->moe_every == 1)
        m->moe_every = 0;
    orr_code code = take_sparse_step(c);
    if (!code)
        code = take_dense_layers(c);
    if (!code && is_all_moe(m))
        m->ffn = 0;
    return code;
}

static void forget_experts(orr_model *m)
{
    m->experts_per_token = m->expert_ffn = m->shared_experts = m->shared_ffn = 0;
    m->dense_first = m->moe_every = m->moe_at = 0;
    m->has_shared_gate = m->has_router_bias = false;
}

/* ---- the whole ---- */

static orr_code find_family(llm_config *c)
{
    orr_json_value v;
    orr_str type = {0};
    const bool is_there = llm_config_find(c, "model_type", &v);
    if (is_there && orr_json_get_str(v, &type, NULL))
        return not_what(c, v, "model_type", "a string");
    c->family = llm_family_find(type);
    if (c->family)
        return ORR_OK;
    c->family = llm_family_fallback();
    if (is_there)
        note(&c->m, "the model_type %.*s is not known: read as if it were a Llama",
             (int)(type.len < SHOWN ? type.len : SHOWN), type.ptr);
    else
        note(&c->m, "there is no model_type: read as if it were a Llama");
    return ORR_OK;
}

/* Models of more than text describe their parts one by one. */
static void find_text_part(llm_config *c)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    c->map = c->root;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        orr_json_value v;
        if (!orr_json_find(c->root, keys[i], &v) || orr_json_type_of(v) != ORR_JSON_OBJECT)
            continue;
        c->map = v;
        note(&c->m, "only what %s says is counted", keys[i]);
        return;
    }
}

static orr_code check_kind(llm_config *c)
{
    orr_json_value v;
    bool has_encoder = false;
    const orr_code code = llm_config_bool(c, "is_encoder_decoder", &has_encoder);
    if (!code && has_encoder && llm_config_find(c, "is_encoder_decoder", &v))
        return llm_config_refuse(c, v, "is_encoder_decoder",
                                 "models with an encoder are not understood");
    return code;
}

static void take_name(llm_config *c, const char *label)
{
    orr_json_value v;
    orr_str name = {0};
    if (orr_json_find(c->root, "_name_or_path", &v) && !orr_json_get_str(v, &name, NULL) &&
        name.len)
        model_name_path(&c->m, name);
    else
        model_name_path(&c->m, orr_str_of(label));
}

/* A fault of the model as a whole, at the place of the field it is about. */
static orr_code check_model(const llm_config *c)
{
    model_fault f;
    if (!model_find_fault(&c->m, &f))
        return ORR_OK;
    const size_t i = model_field_find(f.field);
    const bool was_set = i < MODEL_FIELDS && c->key[i];
    const orr_where w = orr_json_where(was_set ? c->from[i] : c->map);
    if (was_set)
        return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s", c->key[i], f.words);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s (%s)", f.words, f.field);
}

static orr_code complete_ffn(llm_config *c)
{
    if (c->m.ffn == 0 && c->family->has_default_ffn)
        c->m.ffn = 4 * c->m.hidden;
    return c->m.ffn == 0 && c->m.expert_ffn == 0 ? missing(c, "intermediate_size") : ORR_OK;
}

static orr_code take_model(llm_config *c)
{
    orr_code code = take_sizes(c);
    if (!code && c->m.layers > MODEL_MOST_LAYERS)
        return check_model(c);
    if (!code)
        code = complete_heads(c);
    if (!code)
        code = complete_ffn(c);
    if (!code)
        code = take_windows(c);
    if (!code && c->family->finish)
        code = c->family->finish(c);
    if (code)
        return code;
    if (c->m.experts == 0)
        forget_experts(&c->m);
    else
        code = complete_experts(c);
    return code ? code : check_model(c);
}

static orr_code take_config(llm_config *c, const char *label)
{
    char kept[ORR_MODEL_NOTE];
    find_text_part(c);
    orr_code code = check_kind(c);
    if (!code)
        code = find_family(c);
    if (code)
        return code;
    memcpy(kept, c->m.note, sizeof kept);
    c->m = c->family->base;
    memcpy(c->m.note, kept, sizeof kept);
    take_name(c, label);
    return take_model(c);
}

orr_code model_parse_config(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    llm_config c = {.err = err};
    orr_json *j;
    orr_code code = orr_json_open(bytes, label, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &c.root, err);
    if (!code)
        code = take_config(&c, label);
    orr_json_close(j);
    if (!code)
        *out = c.m;
    return code;
}
