/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.c - a model from a Hugging Face config.json.
 *
 * Sizes have many names; each is looked up under all of them, and contradictory values are an
 * error. Properties of a family are a row of model_families.c, the kinds of layers are read by
 * model_layers.c.  Each field remembers the value that set it, so that an error found at the end
 * still has a location.  A file with unread keys that sound like parameters is marked as uncertain.
 * Invariant: numbers are at most MODEL_MOST, so that products of two fit into 64 bits. */
#include "model_config.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 60, KEYS = 5, PATH_MOST = 80 };

/* ---- values ---- */

/* "a.b" is the key b of the object at a. */
static bool find_path(orr_json_value map, const char *path, orr_json_value *out)
{
    char step[PATH_MOST];
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        const size_t n = (size_t)(dot - path);
        if (n >= sizeof step)
            return false;
        memcpy(step, path, n);
        step[n] = '\0';
        if (!orr_json_find(map, step, &map))
            return false;
        path = dot + 1;
    }
    return orr_json_find(map, path, out) && orr_json_type_of(*out) != ORR_JSON_NULL;
}

bool llm_config_find(llm_config *c, const char *key, orr_json_value *out)
{
    if (c->seen_count < LLM_KEYS_SEEN)
        c->seen[c->seen_count++] = key;
    return find_path(c->map, key, out);
}

orr_code llm_config_refuse(const llm_config *c,
                           orr_json_value v,
                           const char *key,
                           const char *words)
{
    const orr_where w = orr_json_where(v);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %s", key, words);
}

orr_code llm_config_not_what(const llm_config *c,
                             orr_json_value v,
                             const char *key,
                             const char *what)
{
    const orr_where w = orr_json_where(v);
    const orr_str text = orr_json_raw(v);
    const orr_json_type type = orr_json_type_of(v);
    if (type == ORR_JSON_ARRAY || type == ORR_JSON_OBJECT || text.len > SHOWN)
        return orr_fail(c->err, ORR_EINPUT, &w, "%s: found %s, expected %s", key,
                        orr_json_type_name(type), what);
    return orr_fail(c->err, ORR_EINPUT, &w, "%s: %.*s is not %s", key, (int)text.len, text.ptr,
                    what);
}

/* Some files write a number for each layer, or for each of several kinds. */
static bool get_same(orr_json_value list, uint64_t *out)
{
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    uint64_t n, first = 0, count = 0;
    for (; orr_json_next_value(&it, &v); count++) {
        if (orr_json_get_u64(v, &n, NULL) || (count && n != first))
            return false;
        first = n;
    }
    *out = first;
    return count > 1 && orr_json_type_of(list) == ORR_JSON_ARRAY;
}

orr_code llm_config_get(const llm_config *c, orr_json_value v, const char *key, uint64_t *out)
{
    uint64_t n = 0;
    if ((orr_json_get_u64(v, &n, NULL) && !get_same(v, &n)) || n > MODEL_MOST)
        return llm_config_not_what(c, v, key, "a whole number from 0 to 2147483647");
    *out = n;
    return ORR_OK;
}

orr_code llm_config_number(llm_config *c, const char *key, uint64_t *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? llm_config_get(c, v, key, out) : ORR_OK;
}

static orr_code get_bool(const llm_config *c, orr_json_value v, const char *key, bool *out)
{
    return orr_json_get_bool(v, out, NULL) ? llm_config_not_what(c, v, key, "true or false")
                                           : ORR_OK;
}

orr_code llm_config_bool(llm_config *c, const char *key, bool *out)
{
    orr_json_value v;
    return llm_config_find(c, key, &v) ? get_bool(c, v, key, out) : ORR_OK;
}

orr_code llm_config_missing(const llm_config *c, const char *key)
{
    const orr_where w = orr_json_where(c->map);
    return orr_fail(c->err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

/* Notes may contain text from the file, and go into tables and JSON. */
ORR_PRINTF(2, 3) static void add_note(orr_model *m, const char *fmt, ...)
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
    {"expert_groups", {"n_group"}, false},
    {"groups_per_token", {"topk_group"}, false},
    {"shared_experts", {"n_shared_experts", "num_shared_experts"}, false},
    {"dense_first", {"first_k_dense_replace"}, false},
    {"moe_every", {"moe_layer_freq"}, false},
    {"mtp_layers", {"num_nextn_predict_layers", "num_mtp_layers"}, false},
};

void llm_config_remember(llm_config *c, const char *field, const char *key, orr_json_value from)
{
    const size_t i = model_field_find(field);
    c->key[i] = key;
    c->from[i] = from;
}

bool llm_config_said(const llm_config *c, const char *field)
{
    return c->key[model_field_find(field)] != NULL;
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
        if (strcmp(s->field, "moe_every") == 0 && orr_json_type_of(v) == ORR_JSON_ARRAY)
            continue; /* a list of layers: model_layers.c */
        const orr_code code = llm_config_get(c, v, s->keys[i], &n);
        if (code)
            return code;
        if (seen && n != value)
            return contradict(c, v, s->keys[i], seen);
        if (!seen)
            llm_config_remember(c, s->field, s->keys[i], v);
        seen = s->keys[i];
        value = n;
    }
    model_set(&c->m, field, value);
    const bool is_needed =
        s->is_needed && !(c->family->has_no_heads && strcmp(s->field, "heads") == 0);
    return !seen && is_needed && value == 0 ? llm_config_missing(c, s->keys[0]) : ORR_OK;
}

static orr_code take_own_slot(llm_config *c, const llm_config_slot *s)
{
    orr_json_value v;
    uint64_t n = 0;
    if (!llm_config_find(c, s->key, &v))
        return ORR_OK;
    const orr_code code = llm_config_get(c, v, s->key, &n);
    llm_config_remember(c, s->field, s->key, v);
    model_set(&c->m, model_field_at(model_field_find(s->field)), n);
    return code;
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
    llm_config_remember(c, f->field, f->key, v);
    model_set(&c->m, field, is_set ? f->if_true : f->if_false);
    return ORR_OK;
}

static orr_code take_sizes(llm_config *c)
{
    orr_code code = ORR_OK;
    for (const llm_config_slot *s = c->family->slots; s && s->field && !code; s++)
        code = take_own_slot(c, s);
    for (size_t i = 0; i < sizeof slots / sizeof *slots && !code; i++)
        code = llm_config_said(c, slots[i].field) ? ORR_OK : take_slot(c, &slots[i]);
    for (const llm_config_flag *f = c->family->flags; f->key && !code; f++)
        code = take_flag(c, f);
    return code;
}

/* ---- attention ---- */

/* Keys of MLA that the file of such a model must have. */
static orr_code complete_latent(llm_config *c)
{
    static const char *const needed[] = {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                         "v_head_dim"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!llm_config_said(c, needed[i]))
            return llm_config_missing(c, needed[i]);
    }
    c->m.kv_heads = c->m.heads;
    c->m.head_dim = 0;
    return ORR_OK;
}

static orr_code complete_heads(llm_config *c)
{
    orr_model *m = &c->m;
    if (c->family->has_no_heads) {
        m->heads = m->kv_heads = m->head_dim = 0;
        return ORR_OK;
    }
    if (orr_model_is_mla(m))
        return complete_latent(c);
    if (m->kv_heads == 0 && !llm_config_said(c, "kv_heads")) {
        if (c->family->needs_kv_heads)
            return llm_config_missing(c, "num_key_value_heads");
        m->kv_heads = m->heads;
    }
    if (m->heads && m->kv_heads == 0) {
        const size_t said = model_field_find("kv_heads");
        return llm_config_refuse(c, c->from[said], c->key[said], "expected at least 1");
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

/* ---- experts ---- */

static bool is_all_moe(const orr_model *m)
{
    uint64_t i = 0;
    while (i < m->layers && i < MODEL_MOST_LAYERS && orr_model_ffn_of(m, i) == ORR_FFN_EXPERTS)
        i++;
    return i == m->layers;
}

static orr_code complete_experts(llm_config *c)
{
    orr_model *m = &c->m;
    if (!llm_config_said(c, "experts_per_token"))
        return llm_config_missing(c, "num_experts_per_tok");
    if (m->expert_ffn == 0)
        m->expert_ffn = m->ffn; /* where all layers are alike there is one width only */
    if (m->shared_experts && m->shared_ffn == 0)
        m->shared_ffn = m->expert_ffn;
    if (m->shared_experts == 0)
        m->shared_ffn = 0;
    if (m->moe_every == 1)
        m->moe_every = 0;
    if (m->expert_groups < 2 || !m->groups_per_token || m->groups_per_token >= m->expert_groups)
        m->expert_groups = m->groups_per_token = 0; /* all groups are open to a token */
    const orr_code code = llm_config_take_expert_layers(c);
    if (!code && is_all_moe(m))
        m->ffn = 0;
    return code;
}

static void forget_experts(orr_model *m)
{
    m->experts_per_token = m->expert_ffn = m->shared_experts = m->shared_ffn = 0;
    m->dense_first = m->moe_every = m->moe_at = m->idle_experts = m->expert_hidden = 0;
    m->moe_norms = m->expert_groups = m->groups_per_token = 0;
    m->has_shared_gate = m->has_router_bias = m->has_expert_norm = false;
}

/* Sizes of linear attention that no layer has: a file of this model would not have them. */
static void forget_linear(orr_model *m)
{
    for (uint64_t i = 0; i < m->layers; i++) {
        const orr_model_mixer x = orr_model_mixer_of(m, i);
        if (x == ORR_MIX_DELTA || x == ORR_MIX_KDA || x == ORR_MIX_LIGHTNING)
            return;
    }
    m->linear_heads = m->linear_key_heads = m->linear_key_dim = m->linear_value_dim = 0;
    m->linear_conv = 0;
    m->has_full_linear_gate = false;
}

/* ---- can the count be trusted? ---- */

/* Key fragments that indicate parameters. */
static const char *const telling[] = {
    "expert",    "moe_", "_moe",     "mamba",      "ssm_",       "linear_",   "latent",    "_lora_",
    "lora_rank", "mtp_", "index_n",  "altup",      "laurel",     "per_layer", "kv_shared", "conv_",
    "_conv",     "rwkv", "lru_",     "shared_",    "_adapter",   "num_mem",   "hash_",     "engram",
    "compress",  "hc_",  "n_routed", "ffn_config", "attn_config"};

/* Key fragments that sound so but do not: how experts are chosen, how things are computed. */
static const char *const harmless[] = {
    "aux",       "loss",      "jitter",     "scal",      "score",        "norm",
    "router_",   "dropout",   "capacity",   "_group",    "topk",         "token_",
    "use_",      "chunk",     "dtype",      "_act",      "expert_p",     "group_",
    "eps",       "init",      "time_",      "_step",     "max_",         "_id",
    "routing",   "output_",   "parallel",   "freq",      "drop_",        "orthog",
    "gate_low",  "combin",    "dense_comp", "logit",     "multimod",     "layer_g",
    "enable_",   "selection", "quant",      "backend",   "rope",         "tie_",
    "share_emb", "mlp_b",     "bias",       "_window",   "num_expert_g", "n_group",
    "moe_gate",  "interval",  "interleave", "start_ind", "end_ind",      "k_rope",
    "impl",      "embed",     "expand",     "ep_size",   "shared_head",  "layers_block",
    "conv_dim"};

static bool is_any_part(orr_str key, const char *const *parts, size_t count)
{
    char text[PATH_MOST];
    if (key.len >= sizeof text)
        return false;
    memcpy(text, key.ptr, key.len);
    text[key.len] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

static bool was_looked_for(const llm_config *c, orr_str key)
{
    for (size_t i = 0; i < c->seen_count; i++) {
        const size_t n = strcspn(c->seen[i], ".");
        if (n == key.len && memcmp(c->seen[i], key.ptr, n) == 0)
            return true;
    }
    return false;
}

/* Nothing, no, none: then there is nothing to miss. */
static bool is_nothing(orr_json_value v)
{
    uint64_t n = 0;
    bool is_set = false;
    switch (orr_json_type_of(v)) {
    case ORR_JSON_NULL:
        return true;
    case ORR_JSON_BOOL:
        return orr_json_get_bool(v, &is_set, NULL) == ORR_OK && !is_set;
    case ORR_JSON_INT:
        return orr_json_get_u64(v, &n, NULL) || n == 0; /* -1: none, too */
    case ORR_JSON_ARRAY:
    case ORR_JSON_OBJECT:
        return orr_json_count(v) == 0;
    default:
        return true; /* texts and fractions say how, not how many */
    }
}

/* One letter more, less, other or swapped with its neighbour. */
static bool is_a_letter_off(orr_str a, orr_str b)
{
    const orr_str s = a.len <= b.len ? a : b, l = a.len <= b.len ? b : a;
    size_t i = 0;
    if (l.len > s.len + 1)
        return false;
    while (i < s.len && s.ptr[i] == l.ptr[i])
        i++;
    if (s.len < l.len)
        return memcmp(s.ptr + i, l.ptr + i + 1, s.len - i) == 0;
    if (i + 1 < s.len && s.ptr[i] == l.ptr[i + 1] && s.ptr[i + 1] == l.ptr[i])
        return memcmp(s.ptr + i + 2, l.ptr + i + 2, s.len - i - 2) == 0;
    return i < s.len && memcmp(s.ptr + i + 1, l.ptr + i + 1, s.len - i - 1) == 0;
}

/* These files have many keys unrelated to sizes, so an unknown one is not an error; one that
 * differs by a letter from a missing key is. */
static orr_code refuse_misspelt_keys(llm_config *c)
{
    orr_json_iter it = orr_json_iterate(c->map);
    orr_json_value v, other;
    orr_str key;
    while (orr_json_next_member(&it, &key, &v)) {
        if (was_looked_for(c, key) || is_nothing(v))
            continue;
        for (size_t i = 0; i < c->seen_count; i++) {
            const orr_str known = orr_str_of(c->seen[i]);
            const orr_where w = orr_json_where(v);
            if (known.len > 3 && is_a_letter_off(key, known) &&
                !find_path(c->map, c->seen[i], &other))
                return orr_fail(c->err, ORR_EINPUT, &w,
                                "unknown key \"%.*s\"; did you mean \"%s\"?",
                                (int)(key.len < SHOWN ? key.len : SHOWN), key.ptr, c->seen[i]);
        }
    }
    return ORR_OK;
}

static void doubt_unread_keys(llm_config *c)
{
    char list[160] = "";
    size_t used = 0, more = 0;
    orr_json_iter it = orr_json_iterate(c->map);
    orr_json_value v;
    orr_str key;
    while (orr_json_next_member(&it, &key, &v)) {
        if (!is_any_part(key, telling, sizeof telling / sizeof *telling) ||
            is_any_part(key, harmless, sizeof harmless / sizeof *harmless) ||
            was_looked_for(c, key) || is_nothing(v))
            continue;
        if (key.len + used + 3 >= sizeof list) {
            more++;
            continue;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "",
                                 (int)key.len, key.ptr);
    }
    if (used == 0)
        return;
    c->m.is_uncertain = true;
    add_note(&c->m, "unknown keys, so counts may be wrong: %s%s", list, more ? ", ..." : "");
}

/* ---- everything ---- */

static orr_code read_type(llm_config *c, orr_json_value map, orr_str *out)
{
    orr_json_value v;
    *out = (orr_str){0};
    if (find_path(map, "model_type", &v) && orr_json_get_str(v, out, NULL))
        return llm_config_not_what(c, v, "model_type", "a string");
    return ORR_OK;
}

static orr_code check_type(llm_config *c, orr_json_value map, orr_str type)
{
    orr_json_value v;
    const char *why = llm_family_refused(type);
    if (!why || !find_path(map, "model_type", &v))
        return ORR_OK;
    const orr_where w = orr_json_where(v);
    return orr_fail(c->err, ORR_EINPUT, &w, "model_type %.*s: %s", (int)type.len, type.ptr, why);
}

/* A part without a type of its own has that of the whole. */
static orr_code find_family(llm_config *c)
{
    orr_json_value v;
    orr_str type, whole;
    orr_code code = read_type(c, c->map, &type);
    if (!code)
        code = read_type(c, c->root, &whole);
    if (!code)
        code = check_type(c, c->map, type);
    if (code)
        return code;
    c->family = llm_family_find(type.len ? type : whole);
    if (!c->family && type.len == 0 && find_path(c->map, "ssm_cfg", &v))
        c->family = llm_family_find(orr_str_of("mamba_ssm"));
    if (c->family)
        return ORR_OK;
    c->family = llm_family_fallback();
    c->m.is_uncertain = true;
    if (type.len)
        add_note(&c->m, "unknown model_type %.*s: read as a Llama, counts may be wrong",
                 (int)(type.len < SHOWN ? type.len : SHOWN), type.ptr);
    else
        add_note(&c->m, "no model_type: read as a Llama, counts may be wrong");
    return ORR_OK;
}

/* Models of more than text describe their parts one by one. */
static void find_text_part(llm_config *c)
{
    static const char *const keys[] = {"thinker_config.text_config", "text_config", "llm_config",
                                       "language_config", "language_model_config"};
    c->map = c->root;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        orr_json_value v;
        if (!find_path(c->root, keys[i], &v) || orr_json_type_of(v) != ORR_JSON_OBJECT)
            continue;
        c->map = v;
        add_note(&c->m, "only the keys of %s are counted", keys[i]);
        return;
    }
}

static orr_code check_kind(llm_config *c)
{
    orr_json_value v;
    orr_str type;
    bool has_encoder = false;
    orr_code code = llm_config_bool(c, "is_encoder_decoder", &has_encoder);
    if (!code && has_encoder && llm_config_find(c, "is_encoder_decoder", &v))
        return llm_config_refuse(c, v, "is_encoder_decoder",
                                 "models with an encoder are not supported");
    if (!code)
        code = read_type(c, c->root, &type);
    return code ? code : check_type(c, c->root, type);
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

/* An inconsistency of the model, at the location of the field concerned. */
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
    if (c->family->has_no_ffn) {
        c->m.ffn = 0;
        return ORR_OK;
    }
    if (c->m.ffn == 0 && c->family->has_default_ffn)
        c->m.ffn = 4 * c->m.hidden;
    return c->m.ffn == 0 && c->m.expert_ffn == 0 ? llm_config_missing(c, "intermediate_size")
                                                 : ORR_OK;
}

static orr_code take_model(llm_config *c)
{
    orr_code code = take_sizes(c);
    if (!code && (c->m.layers == 0 || c->m.layers > MODEL_MOST_LAYERS))
        return check_model(c);
    if (!code)
        code = complete_heads(c);
    if (!code)
        code = complete_ffn(c);
    if (!code)
        code = llm_config_take_layers(c);
    if (!code && c->family->finish)
        code = c->family->finish(c);
    if (!code && c->m.layers > MODEL_MOST_LAYERS)
        return check_model(c);
    if (!code && c->m.experts)
        code = complete_experts(c);
    else if (!code && c->has_ffns)
        code = llm_config_take_expert_layers(c);
    /* Experts per token without experts: a dense model would have a twentieth of the parameters. */
    if (!code && c->m.experts == 0 && c->m.experts_per_token > 1 &&
        llm_config_said(c, "experts_per_token"))
        code = llm_config_missing(c, "num_local_experts, num_experts or n_routed_experts");
    if (c->m.experts == 0)
        forget_experts(&c->m);
    if (!code)
        forget_linear(&c->m);
    if (!code)
        code = refuse_misspelt_keys(c);
    if (!code)
        doubt_unread_keys(c);
    return code ? code : check_model(c);
}

static orr_code take_config(llm_config *c, const char *label)
{
    find_text_part(c);
    orr_code code = check_kind(c);
    if (!code)
        code = find_family(c);
    if (code)
        return code;
    const orr_model before = c->m;
    c->m = c->family->base ? *c->family->base : (orr_model){0};
    memcpy(c->m.note, before.note, sizeof c->m.note);
    c->m.is_uncertain = before.is_uncertain;
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
