/* SPDX-License-Identifier: Apache-2.0 */
/* option_names.c - options of a step by the names that `orrery stage` gives them: one table, from
 * which they are set, and printed where they are not the default.
 *
 * What a search of plans decides (degrees, micro-batch, schedule, ZeRO, recomputation as a whole)
 * is not in it, nor what fixes the layers of a stage, nor what a step is asked for (batch, steps).
 * So the table is what `plan` takes besides, and what a plan's command must repeat. */
#include "llm_impl.h"
#include "llm_tape.h"

#include "base/text/text.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How a row is kept in the options. */
typedef enum keeping {
    KEEP_NUMBER, /* of 1, 4 or 8 bytes: a flag, a count, the index of a word */
    KEEP_DISPATCH,
    KEEP_PARTS,
    KEEP_SOFTWARE
} keeping;

typedef struct row {
    orr_llm_option is;
    size_t at, bytes;
    uint64_t usual; /* that a default of 0 stands for */
    uint64_t first; /* the value of the first word */
    keeping how;
} row;

#define AT(field) \
    .at = offsetof(orr_llm_options, field), .bytes = sizeof(((orr_llm_options *)NULL)->field)
#define FLAG(name_, field)                              \
    {                                                   \
        .is = {name_, ORR_LLM_FLAG, 1, NULL}, AT(field) \
    }
#define COUNT(name_, field, most_, usual_)                                      \
    {                                                                           \
        .is = {name_, ORR_LLM_COUNT, most_, NULL}, AT(field), .usual = (usual_) \
    }
#define WORD(name_, field, words_, first_)                                   \
    {                                                                        \
        .is = {name_, ORR_LLM_WORD, 0, words_}, AT(field), .first = (first_) \
    }

/* clang-format off */
static const row rows[] = {
    WORD("dtype", dtype, "bf16|fp16|fp8|fp32|mxfp8|nvfp4", 0),
    FLAG("fp8-attention", attends_fp8),
    WORD("fp8-scaling", fp8_scaling, "current|delayed|delayed-tp|block", 0),
    WORD("fp8-kept", fp8_kept, "none|inputs|activations|deepseek", 1),
    WORD("fp8-weights", fp8_weights, "none|both|only", 1),
    FLAG("fp8-dispatch", sends_fp8),
    {.is = {"dispatch", ORR_LLM_WORD, 0, "copies|once|hybridep"}, .how = KEEP_DISPATCH},
    COUNT("node-ranks", node_ranks, UINT32_MAX, 8),
    COUNT("expert-load", expert_load, UINT32_MAX, 100),
    COUNT("expert-tp", expert_tp, UINT32_MAX, 0),
    FLAG("ep-overlap", overlaps_experts),
    COUNT("shard", shard, UINT32_MAX, 0),
    FLAG("mtp", has_mtp),
    FLAG("grads-fp32", grads_fp32),
    FLAG("tp-overlap", overlaps_tensor),
    WORD("attention", full_attention, "causal|full", 0),
    WORD("context", context_form, "ring|all-gather|contiguous|blocks", 0),
    {.is = {"recompute-parts", ORR_LLM_LIST, 0,
            "norm|attention|mla-up|activation|ffn|experts|shared"}, .how = KEEP_PARTS},
    COUNT("recompute-layers", recompute_layers, UINT32_MAX, 0),
    COUNT("offload-layers", offload_layers, UINT32_MAX, 0),
    COUNT("offload-percent", offload_percent, 100, 100),
    {.is = {"bucket", ORR_LLM_BYTES, 0, NULL}, AT(bucket_bytes)},
    COUNT("prefetch", prefetch, UINT32_MAX, 1),
    FLAG("no-overlap", no_overlap),
    FLAG("sync-every-micro-batch", sync_every_micro_batch),
    FLAG("no-clipping", no_clipping),
    FLAG("dropout", has_dropout),
    FLAG("foreach", lists_optimizer),
    FLAG("moments-bf16", moments_bf16),
    FLAG("no-master", no_master),
    {.is = {"software", ORR_LLM_NAME, 0, NULL}, .how = KEEP_SOFTWARE},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

const orr_llm_option *orr_llm_option_at(size_t i)
{
    return i < ROWS ? &rows[i].is : NULL;
}

/* "fp8-scaling", "--fp8-scaling" and "fp8_scaling" are the same. */
static const row *find_row(const char *name)
{
    while (*name == '-')
        name++;
    for (size_t i = 0; i < ROWS; i++) {
        const char *own = rows[i].is.name;
        size_t n = 0;
        while (own[n] && (name[n] == own[n] || (name[n] == '_' && own[n] == '-')))
            n++;
        if (!own[n] && !name[n])
            return &rows[i];
    }
    return NULL;
}

/* ---- setting ---- */

static void put_number(orr_llm_options *o, const row *r, uint64_t value)
{
    char *at = (char *)o + r->at;
    const uint32_t narrow = (uint32_t)value;
    if (r->how == KEEP_DISPATCH) {
        o->sends_once = value > 0;
        o->sends_weights = value > 1;
    } else if (r->bytes == sizeof(bool)) {
        *(bool *)at = value != 0;
    } else if (r->bytes == sizeof narrow) {
        memcpy(at, &narrow, sizeof narrow);
    } else {
        memcpy(at, &value, sizeof value);
    }
}

/* The n-th of "one|two|three"; false: there are fewer. */
static bool nth_word(const char *words, uint64_t n, orr_str *out)
{
    for (; n && words; n--)
        words = (words = strchr(words, '|')) ? words + 1 : NULL;
    if (words)
        *out = (orr_str){words, strcspn(words, "|")};
    return words != NULL;
}

/* "one, two and three" */
static const char *list_words(const char *words, char out[160])
{
    orr_str word, after;
    size_t used = 0;
    out[0] = 0;
    for (uint64_t i = 0; nth_word(words, i, &word) && used < 160; i++)
        used += (size_t)snprintf(out + used, 160 - used, "%s%.*s",
                                 !i                               ? ""
                                 : nth_word(words, i + 1, &after) ? ", "
                                                                  : " and ",
                                 (int)word.len, word.ptr);
    return out;
}

static orr_code set_word(
    orr_llm_options *o, const row *r, const char *name, const char *text, orr_error *err)
{
    char list[160];
    orr_str word;
    for (uint64_t i = 0; nth_word(r->is.words, i, &word); i++)
        if (strlen(text) == word.len && memcmp(text, word.ptr, word.len) == 0) {
            put_number(o, r, r->first + i);
            return ORR_OK;
        }
    return orr_fail(err, ORR_EUSAGE, NULL, "%s '%.60s': there are %s", name, text,
                    list_words(r->is.words, list));
}

static orr_code set_parts(
    orr_llm_options *o, const row *r, const char *name, const char *text, orr_error *err)
{
    char list[160];
    orr_str bad;
    o->recompute = ORR_RECOMPUTE_PARTS;
    if (orr_layer_parts_find(orr_str_of(text), &o->recompute_parts, &bad))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "%s '%.*s': expected %s", name,
                    (int)(bad.len < 40 ? bad.len : 40), bad.ptr, list_words(r->is.words, list));
}

static orr_code set_count(
    orr_llm_options *o, const row *r, const char *name, const char *text, orr_error *err)
{
    uint64_t value = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 18; n++)
        value = value * 10 + (uint64_t)(text[n] - '0');
    if (!n || text[n] || value < 1 || value > r->is.most)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s '%.60s': expected a whole number, 1 to %" PRIu64,
                        name, text, r->is.most);
    put_number(o, r, value);
    return ORR_OK;
}

static orr_code set_bytes(
    orr_llm_options *o, const row *r, const char *name, const char *text, orr_error *err)
{
    orr_bytes bytes = 0;
    const orr_code code = orr_bytes_parse(text, &bytes, err);
    if (code)
        return orr_because(err, code, "%s", name);
    put_number(o, r, (uint64_t)bytes);
    return ORR_OK;
}

orr_code orr_llm_option_set(orr_llm_options *o, const char *name, const char *text, orr_error *err)
{
    const row *r = find_row(name);
    if (!r)
        return orr_fail(err, ORR_EUSAGE, NULL, "'%.60s' is no option of a training step", name);
    if (r->is.kind == ORR_LLM_FLAG) {
        put_number(o, r, 1);
        return ORR_OK;
    }
    if (!text)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s: expected a value", name);
    switch (r->how) {
    case KEEP_PARTS:
        return set_parts(o, r, name, text, err);
    case KEEP_SOFTWARE:
        o->software = orr_software_find(text);
        return o->software ? ORR_OK
                           : orr_fail(err, ORR_EUSAGE, NULL, "%s '%.60s' is not known", name, text);
    default:
        return r->is.kind == ORR_LLM_WORD    ? set_word(o, r, name, text, err)
               : r->is.kind == ORR_LLM_BYTES ? set_bytes(o, r, name, text, err)
                                             : set_count(o, r, name, text, err);
    }
}

/* ---- printing ---- */

static uint64_t get_number(const orr_llm_options *o, const row *r)
{
    const char *at = (const char *)o + r->at;
    uint64_t wide;
    uint32_t narrow;
    if (r->how == KEEP_DISPATCH)
        return o->sends_once ? 1 + o->sends_weights : 0;
    if (r->bytes == sizeof(bool))
        return *(const bool *)at;
    if (r->bytes == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* Is it what stage has without the option? */
static bool is_usual(const orr_llm_options *o, const row *r)
{
    const uint64_t value = r->how <= KEEP_DISPATCH ? get_number(o, r) : 0;
    if (r->how == KEEP_PARTS)
        return o->recompute != ORR_RECOMPUTE_PARTS || !o->recompute_parts;
    if (r->how == KEEP_SOFTWARE)
        return !o->software || o->software == orr_software_at(0);
    if (r->at == offsetof(orr_llm_options, expert_tp) && value == o->tp)
        return true;
    if (r->at == offsetof(orr_llm_options, bucket_bytes)) {
        orr_llm_options other = *o;
        other.bucket_bytes = 0;
        return value == 0 || value == orr__llm_bucket_bytes(&other);
    }
    return value == 0 || value == r->usual;
}

static void print_parts(char *out, size_t size, const row *r, uint32_t parts)
{
    orr_str word;
    size_t length = 0;
    for (uint64_t i = 0; nth_word(r->is.words, i, &word); i++)
        if (parts >> i & 1 && length < size)
            length += (size_t)snprintf(out + length, size - length, "%s%.*s", length ? "," : "",
                                       (int)word.len, word.ptr);
}

/* 40000000 as "40MB". */
static void print_bytes(char *out, size_t size, uint64_t n)
{
    if (n % 1000000000 == 0)
        snprintf(out, size, "%" PRIu64 "GB", n / 1000000000);
    else if (n % 1000000 == 0)
        snprintf(out, size, "%" PRIu64 "MB", n / 1000000);
    else
        snprintf(out, size, "%" PRIu64 "B", n);
}

/* Without memory of its own: commands are printed where none may be left. */
bool orr_llm_option_text(const orr_llm_options *o, const char *name, char *out, size_t size)
{
    const row *r = find_row(name);
    orr_str word;
    if (size)
        out[0] = 0;
    if (!r || is_usual(o, r))
        return false;
    const uint64_t value = r->how <= KEEP_DISPATCH ? get_number(o, r) : 0;
    if (!size)
        return true;
    if (r->how == KEEP_PARTS)
        print_parts(out, size, r, o->recompute_parts);
    else if (r->how == KEEP_SOFTWARE)
        snprintf(out, size, "%s", o->software->name);
    else if (r->is.kind == ORR_LLM_WORD && nth_word(r->is.words, value - r->first, &word))
        snprintf(out, size, "%.*s", (int)word.len, word.ptr);
    else if (r->is.kind == ORR_LLM_BYTES)
        print_bytes(out, size, value);
    else if (r->is.kind == ORR_LLM_COUNT)
        snprintf(out, size, "%" PRIu64, value);
    return true;
}
