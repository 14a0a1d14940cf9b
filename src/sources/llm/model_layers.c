/* SPDX-License-Identifier: Apache-2.0 */
/* model_layers.c - the kinds of layers in a config.json: the many ways in which files describe
 * them.
 *
 * Each becomes one letter per layer.  If they are only attention, or only experts, they are
 * converted to compact fields (window_from, global_every, dense_first, moe_every); otherwise to the
 * shortest repeating list. */
#include "model_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- letters into fields ---- */

/* Which layers see all, as window_from, global_every and global_at.  False: they follow no such
 * pattern. */
static bool set_globals(orr_model *m, const char *letters)
{
    uint64_t first = 0, second, last = m->layers;
    while (last && letters[last - 1] != ORR_MIX_ALL)
        last--;
    while (first < m->layers && letters[first] == ORR_MIX_ALL)
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
    for (first = 0; letters[first] != ORR_MIX_ALL;)
        first++;
    for (second = first + 1; second < m->layers && letters[second] != ORR_MIX_ALL;)
        second++;
    m->global_every = second < m->layers ? second - first : m->layers;
    m->global_at = first;
    for (uint64_t i = 0; i < m->layers; i++) {
        if ((letters[i] == ORR_MIX_ALL) != (i % m->global_every == m->global_at)) {
            m->global_every = m->global_at = 0;
            return false;
        }
    }
    return true;
}

static bool is_any(const char *letters, uint64_t layers, const char *set, bool is_in)
{
    for (uint64_t i = 0; i < layers; i++)
        if ((strchr(set, letters[i]) != NULL) == is_in)
            return true;
    return false;
}

static orr_code too_many(llm_config *c, const char *what)
{
    const orr_where w = orr_json_where(c->map);
    return orr_fail(c->err, ORR_EINPUT, &w,
                    "%s of %" PRIu64 " layers follow no pattern of at most %d", what, c->m.layers,
                    ORR_MODEL_PATTERN - 1);
}

static orr_code put_mixers(llm_config *c)
{
    orr_model *m = &c->m;
    memset(m->mixers, 0, sizeof m->mixers);
    if (!is_any(c->mixers, m->layers, "aw", false) && set_globals(m, c->mixers))
        return ORR_OK;
    m->window_from = m->global_every = m->global_at = 0;
    if (!is_any(c->mixers, m->layers, "w", true))
        m->window = 0;
    return model_set_letters(m->mixers, c->mixers, m->layers) ? ORR_OK : too_many(c, "the kinds");
}

/* dense_first, then every so many. */
static bool set_experts(orr_model *m, const char *letters)
{
    uint64_t first = 0, second;
    while (first < m->layers && letters[first] == ORR_FFN_DENSE)
        first++;
    if (first == m->layers)
        return false;
    for (second = first + 1; second < m->layers && letters[second] != ORR_FFN_EXPERTS;)
        second++;
    const bool is_last = first + 1 == m->layers;
    const uint64_t every = second < m->layers ? second - first : is_last ? 1 : m->layers;
    for (uint64_t i = first; i < m->layers; i++)
        if ((letters[i] == ORR_FFN_EXPERTS) != ((i - first) % every == 0))
            return false;
    m->dense_first = first < every ? 0 : first - every + 1;
    m->moe_every = every > 1 ? every : 0;
    m->moe_at = every > 1 ? first % every : 0;
    return true;
}

static orr_code put_ffns(llm_config *c)
{
    orr_model *m = &c->m;
    m->dense_first = m->moe_every = m->moe_at = 0;
    memset(m->ffns, 0, sizeof m->ffns);
    if (!is_any(c->ffns, m->layers, "fe", false) && (m->experts == 0 || set_experts(m, c->ffns)))
        return ORR_OK;
    return model_set_letters(m->ffns, c->ffns, m->layers) ? ORR_OK : too_many(c, "the FFNs");
}

/* ---- lists of words ---- */

typedef struct layer_word {
    const char *word;
    char mixer, ffn; /* 0: the family's, or as it is */
} layer_word;

static const layer_word words[] = {
    {"full_attention", 'a', 0},
    {"attention", 'a', 0},
    {"full", 'a', 0},
    {"sliding_attention", 'w', 0},
    {"sliding_window", 'w', 0},
    {"chunked_attention", 'w', 0},
    {"local_attention", 'w', 0},
    {"linear_attention", 0, 0},
    {"linear", 0, 0},
    {"mamba", 0, 0},
    {"mamba2", 0, 0},
    {"hybrid", 'z', 0},
    {"conv", 'c', 0},
    {"short_conv", 'c', 0},
    {"recurrent", 'r', 0},
    {"moe", 'n', 'e'},
    {"mlp", 'n', 'f'},
    {"deepseek_sparse_attention", 'a', 0},
    {"minimax_m3_sparse", 'a', 0},
    {"kda", 'k', 0},
};

static const layer_word *find_word(orr_str word)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (orr_str_is(word, words[i].word))
            return &words[i];
    return NULL;
}

/* A layer that is only an FFN makes others have none. */
static orr_code take_word(
    llm_config *c, orr_json_value v, const char *key, uint64_t layer, bool *has_ffns)
{
    orr_str text;
    if (orr_json_get_str(v, &text, NULL))
        return llm_config_not_what(c, v, key, "a string");
    const layer_word *w = find_word(text);
    const char own = c->family->mixer;
    const bool is_own = w && (w->mixer == '\0' || (w->mixer == 'z' && own == ORR_MIX_BOTH));
    if (!w || (is_own && own == '\0'))
        return llm_config_not_what(c, v, key,
                                   "understood: full_attention and sliding_attention are");
    c->mixers[layer] = is_own ? own : w->mixer;
    c->ffns[layer] = w->ffn ? w->ffn : ORR_FFN_NONE;
    *has_ffns |= w->ffn != '\0';
    return ORR_OK;
}

/* One word per layer; with `repeats` fewer, over and over. */
static orr_code take_words(llm_config *c, orr_json_value list, const char *key, bool repeats)
{
    const uint64_t count = orr_json_count(list), layers = c->m.layers;
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    char said[80];
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || count == 0 ||
        (repeats ? count > layers : count != layers)) {
        snprintf(said, sizeof said, "a list of one string for each of %" PRIu64 " layers", layers);
        return llm_config_not_what(c, list, key, said);
    }
    for (uint64_t i = 0; orr_json_next_value(&it, &v); i++) {
        const orr_code code = take_word(c, v, key, i, &c->has_ffns);
        if (code)
            return code;
    }
    for (uint64_t i = count; i < layers; i++) {
        c->mixers[i] = c->mixers[i - count];
        c->ffns[i] = c->ffns[i - count];
    }
    c->has_mixers = true;
    return ORR_OK;
}

/* ---- signs and numbers ---- */

/* Nemotron-H: M Mamba-2, * attention, - an FFN, E experts, and nothing else in a layer. */
static orr_code take_signs(llm_config *c, orr_json_value v, const char *key)
{
    orr_str text;
    char said[80];
    if (orr_json_get_str(v, &text, NULL) || text.len != c->m.layers) {
        snprintf(said, sizeof said, "a string of %" PRIu64 " signs, one for each layer",
                 c->m.layers);
        return llm_config_not_what(c, v, key, said);
    }
    for (size_t i = 0; i < text.len; i++) {
        const char sign = text.ptr[i];
        if (sign == '\0' || !strchr("M*-E", sign))
            return llm_config_refuse(c, v, key, "expected signs M, *, - and E");
        c->mixers[i] = sign == 'M' ? c->family->mixer : sign == '*' ? 'a' : 'n';
        c->ffns[i] = sign == '-' ? 'f' : sign == 'E' ? 'e' : 'n';
    }
    c->has_mixers = c->has_ffns = true;
    return ORR_OK;
}

/* A number per layer: 1 attends, 0 does not. */
static orr_code take_bits(
    llm_config *c, orr_json_value list, const char *key, char *letters, const char *names)
{
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    char said[80];
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) != c->m.layers) {
        snprintf(said, sizeof said, "a list of 0 or 1 for each of %" PRIu64 " layers", c->m.layers);
        return llm_config_not_what(c, list, key, said);
    }
    for (uint64_t i = 0, n = 0; orr_json_next_value(&it, &v); i++) {
        if (orr_json_get_u64(v, &n, NULL) || n > 1)
            return llm_config_not_what(c, v, key, "0 or 1");
        letters[i] = names[n];
    }
    return ORR_OK;
}

/* Numbers of layers, counted from `base`: those get `letter`. */
static orr_code take_numbers(
    llm_config *c, orr_json_value list, const char *key, uint64_t base, char *letters, char letter)
{
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    uint64_t n;
    if (orr_json_type_of(list) != ORR_JSON_ARRAY)
        return llm_config_not_what(c, list, key, "a list of layers");
    while (orr_json_next_value(&it, &v)) {
        if (orr_json_get_u64(v, &n, NULL))
            return llm_config_not_what(c, v, key, "a whole number from 0 to 2147483647");
        if (n < base || n - base >= c->m.layers)
            return llm_config_not_what(c, v, key, "the number of a layer");
        letters[n - base] = letter;
    }
    return ORR_OK;
}

static void fill(char *letters, uint64_t layers, char letter)
{
    memset(letters, letter, layers);
}

/* Every so many layers, from one on: {period, offset}. */
static orr_code take_period(llm_config *c,
                            const char *period_key,
                            const char *offset_key,
                            char *letters,
                            char letter,
                            bool *was_said)
{
    orr_json_value v;
    uint64_t period = 0, offset = 0;
    if (!llm_config_find(c, period_key, &v))
        return ORR_OK;
    orr_code code = llm_config_get(c, v, period_key, &period);
    if (!code)
        code = llm_config_number(c, offset_key, &offset);
    if (!code && (period == 0 || offset >= period))
        code = llm_config_refuse(c, v, period_key, "at least 1, and more than its offset");
    for (uint64_t i = offset; !code && i < c->m.layers; i += period)
        letters[i] = letter;
    *was_said |= !code;
    return code;
}

/* ---- what layers attend with ---- */

typedef orr_code mixer_reader(llm_config *c, orr_json_value v, const char *key);

static orr_code read_words(llm_config *c, orr_json_value v, const char *key)
{
    return take_words(c, v, key, false);
}

static orr_code read_repeated(llm_config *c, orr_json_value v, const char *key)
{
    return take_words(c, v, key, true);
}

static orr_code read_bits(llm_config *c, orr_json_value v, const char *key)
{
    const char names[2] = {c->family->mixer, 'a'};
    c->has_mixers = true;
    return take_bits(c, v, key, c->mixers, names);
}

static orr_code read_attending(llm_config *c, orr_json_value v, const char *key)
{
    c->has_mixers = true;
    fill(c->mixers, c->m.layers, c->family->mixer);
    return take_numbers(c, v, key, 0, c->mixers, 'a');
}

static orr_code read_kda(llm_config *c, orr_json_value v, const char *key)
{
    c->has_mixers = true;
    fill(c->mixers, c->m.layers, 'a');
    return take_numbers(c, v, key, 1, c->mixers, c->family->mixer);
}

static orr_code read_image_layers(llm_config *c, orr_json_value v, const char *key)
{
    c->has_mixers = true;
    fill(c->mixers, c->m.layers, 'a');
    return take_numbers(c, v, key, 0, c->mixers, c->family->mixer);
}

static orr_code read_blocks(llm_config *c, orr_json_value v, const char *key)
{
    c->has_mixers = true;
    fill(c->mixers, c->m.layers, c->family->mixer);
    return take_numbers(c, v, key, 0, c->mixers, 'z');
}

static orr_code read_interval(llm_config *c, orr_json_value v, const char *key)
{
    uint64_t n = 0;
    const orr_code code = llm_config_get(c, v, key, &n);
    if (code)
        return code;
    if (n == 0)
        return llm_config_refuse(c, v, key, "expected at least 1");
    for (uint64_t i = 0; i < c->m.layers; i++)
        c->mixers[i] = (i + 1) % n ? c->family->mixer : 'a';
    c->has_mixers = true;
    return ORR_OK;
}

/* The first key that is there decides. */
static const struct {
    const char *key;
    mixer_reader *read;
} mixer_keys[] = {
    {"layer_types", read_words},
    {"layers_block_type", read_words},
    {"hybrid_override_pattern", take_signs},
    {"block_types", read_repeated},
    {"_block_types", read_repeated},
    {"attn_type_list", read_bits},
    {"decoder_attention_types", read_bits},
    {"linear_attn_config.kda_layers", read_kda},
    {"cross_attention_layers", read_image_layers},
    {"full_attn_idxs", read_attending},
    {"attn_layer_indices", read_attending},
    {"hybrid_layer_ids", read_blocks},
    {"full_attention_interval", read_interval},
};

/* For families of which some layers do not attend. */
static orr_code take_mixers(llm_config *c)
{
    orr_json_value v;
    fill(c->mixers, c->m.layers, c->family->mixer);
    fill(c->ffns, c->m.layers, c->m.experts ? 'e' : 'f');
    for (size_t i = 0; i < sizeof mixer_keys / sizeof *mixer_keys; i++) {
        if (!llm_config_find(c, mixer_keys[i].key, &v) || orr_json_type_of(v) == ORR_JSON_NULL)
            continue;
        const orr_code code = mixer_keys[i].read(c, v, mixer_keys[i].key);
        return code ? code : put_mixers(c);
    }
    const orr_code code =
        take_period(c, "attn_layer_period", "attn_layer_offset", c->mixers, 'a', &c->has_mixers);
    return code || (!c->has_mixers && c->m.mixers[0]) ? code : put_mixers(c); /* or as usual */
}

/* ---- windows ---- */

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
        llm_config_remember(c, "window", "sliding_window", v);
        if (orr_json_type_of(v) == ORR_JSON_NULL)
            c->m.window = 0;
    }
    *out = is_used && c->m.window;
    return code;
}

/* EXAONE writes the pattern in letters: LLLG is three with a window, then one without. */
static orr_code take_letters(llm_config *c, orr_json_value v)
{
    orr_str text;
    if (orr_json_get_str(v, &text, NULL))
        return llm_config_get(c, v, "sliding_window_pattern", &c->m.global_every);
    for (uint64_t i = 0; text.len && i < c->m.layers; i++)
        c->mixers[i] = text.ptr[i % text.len] == 'L' ? 'w' : 'a';
    return text.len ? put_mixers(c)
                    : llm_config_refuse(c, v, "sliding_window_pattern",
                                        "expected a number or letters L and G");
}

static orr_code take_pattern(llm_config *c)
{
    orr_code code = ORR_OK;
    orr_json_value v;
    c->m.window_from = c->family->windows == LLM_WINDOWS_LATE ? 28 : 0;
    if (c->family->windows == LLM_WINDOWS_LATE)
        code = llm_config_number(c, "max_window_layers", &c->m.window_from);
    if (!code && c->family->windows == LLM_WINDOWS_MIXED &&
        llm_config_find(c, "sliding_window_pattern", &v)) {
        code = take_letters(c, v);
        if (orr_json_type_of(v) == ORR_JSON_STRING)
            return code;
    }
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
    if (!llm_config_find(c, "layer_types", &types))
        return take_pattern(c);
    code = take_words(c, types, "layer_types", false);
    return code ? code : put_mixers(c);
}

orr_code llm_config_take_layers(llm_config *c)
{
    return c->family->mixer ? take_mixers(c) : take_windows(c);
}

/* ---- GPT-Neo ---- */

/* attention_types: [[["global", "local"], 12]] is 24 layers, one of each in turn. */
static bool add_neo_group(llm_config *c, uint64_t *count, orr_json_value names, uint64_t times)
{
    for (uint64_t n = 0; n < times; n++) {
        orr_json_iter it = orr_json_iterate(names);
        orr_json_value v;
        orr_str name;
        while (orr_json_next_value(&it, &v)) {
            if (orr_json_get_str(v, &name, NULL) || *count >= c->m.layers)
                return false;
            c->mixers[(*count)++] = orr_str_is(name, "global") ? 'a' : 'w';
        }
    }
    return true;
}

static bool read_neo_types(llm_config *c, orr_json_value types)
{
    orr_json_iter it = orr_json_iterate(types);
    orr_json_value group, names, times;
    uint64_t count = 0;
    while (orr_json_next_value(&it, &group)) {
        orr_json_iter pair = orr_json_iterate(group);
        uint64_t n;
        if (!orr_json_next_value(&pair, &names) || !orr_json_next_value(&pair, &times) ||
            orr_json_get_u64(times, &n, NULL) || orr_json_count(names) == 0 ||
            !add_neo_group(c, &count, names, n))
            return false;
    }
    return count == c->m.layers;
}

orr_code llm_config_take_neo(llm_config *c)
{
    orr_json_value v;
    if (!llm_config_find(c, "attention_types", &v))
        return ORR_OK;
    if (!read_neo_types(c, v))
        return llm_config_refuse(
            c, v, "attention_types",
            "expected a list such as [[[\"global\", \"local\"], 12]], one entry per layer in "
            "total");
    return put_mixers(c);
}

/* ---- experts ---- */

static orr_code take_ffn_words(llm_config *c, orr_json_value list)
{
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    orr_str text;
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) != c->m.layers)
        return llm_config_not_what(c, list, "mlp_layer_types",
                                   "a list of one string for each layer");
    for (uint64_t i = 0; orr_json_next_value(&it, &v); i++) {
        if (orr_json_get_str(v, &text, NULL) ||
            !(orr_str_is(text, "dense") || orr_str_is(text, "sparse")))
            return llm_config_not_what(c, v, "mlp_layer_types", "\"dense\" or \"sparse\"");
        c->ffns[i] = orr_str_is(text, "dense") ? 'f' : 'e';
    }
    return ORR_OK;
}

/* ERNIE: from one layer to another, every so many. */
static orr_code take_ernie(llm_config *c, bool *was_said)
{
    orr_json_value v;
    uint64_t from = 0, to = c->m.layers, every = 1;
    if (!llm_config_find(c, "moe_layer_start_index", &v))
        return ORR_OK;
    orr_code code = llm_config_get(c, v, "moe_layer_start_index", &from);
    if (!code && llm_config_find(c, "moe_layer_end_index", &v) &&
        orr_json_get_u64(v, &to, NULL) == ORR_OK) /* -1: the last */
        to = to < c->m.layers ? to + 1 : c->m.layers;
    if (!code)
        code = llm_config_number(c, "moe_layer_interval", &every);
    if (code || every == 0)
        return code;
    for (uint64_t i = 0; i < c->m.layers; i++)
        c->ffns[i] = i >= from && i < to && (i + 1) % every == 0 ? 'e' : 'f';
    *was_said = true;
    return ORR_OK;
}

/* Layers n - 1, 2n - 1, ... of a step of n. */
static orr_code take_step(llm_config *c, const char *key, bool *was_said)
{
    orr_json_value v;
    uint64_t step = 0;
    if (!llm_config_find(c, key, &v))
        return ORR_OK;
    const orr_code code = llm_config_get(c, v, key, &step);
    for (uint64_t i = 0; !code && step > 1 && i < c->m.layers; i++)
        c->ffns[i] = (i + 1) % step ? 'f' : 'e';
    *was_said |= !code && step > 1;
    return code;
}

/* What is dense among layers that otherwise have experts. */
static orr_code take_dense(llm_config *c, bool *was_said)
{
    orr_json_value v;
    if (c->m.moe_every > 1)
        for (uint64_t i = 0; i < c->m.layers; i++)
            c->ffns[i] = i % c->m.moe_every ? 'f' : c->ffns[i];
    for (uint64_t i = 0; i < c->m.dense_first && i < c->m.layers; i++)
        c->ffns[i] = 'f';
    *was_said |= c->m.moe_every > 1 || c->m.dense_first;
    if (!llm_config_find(c, "mlp_only_layers", &v) || orr_json_count(v) == 0)
        return ORR_OK;
    *was_said = true;
    return take_numbers(c, v, "mlp_only_layers", 0, c->ffns, 'f');
}

orr_code llm_config_take_expert_layers(llm_config *c)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    bool was_said = c->has_ffns;
    if (c->has_ffns)
        return put_ffns(c);
    fill(c->ffns, c->m.layers, 'e');
    if (llm_config_find(c, "moe_layer_freq", &v) && orr_json_type_of(v) == ORR_JSON_ARRAY) {
        was_said = true;
        code = take_bits(c, v, "moe_layer_freq", c->ffns, "fe");
    } else if (llm_config_find(c, "mlp_layer_types", &v)) {
        was_said = true;
        code = take_ffn_words(c, v);
    } else if (llm_config_find(c, "moe_layers", &v)) {
        was_said = true;
        fill(c->ffns, c->m.layers, 'f');
        code = take_numbers(c, v, "moe_layers", 0, c->ffns, 'e');
    } else if (llm_config_find(c, "expert_layer_period", &v)) {
        fill(c->ffns, c->m.layers, 'f');
        code =
            take_period(c, "expert_layer_period", "expert_layer_offset", c->ffns, 'e', &was_said);
    } else {
        code = take_ernie(c, &was_said);
        if (!code)
            code = take_step(c, "interleave_moe_layer_step", &was_said);
        if (!code)
            code = take_step(c, "decoder_sparse_step", &was_said);
        if (!code)
            code = take_dense(c, &was_said);
    }
    return code || !was_said ? code : put_ffns(c);
}
