/* SPDX-License-Identifier: Apache-2.0 */
/* llm_variants.c - the options of a step in the metadata of its traces, and variants of the step:
 * other micro-batches, interleaving, other ZeRO stages or recomputation.  So what-ifs need only the
 * traces.
 *
 *     made_by: "parameters=70553706496 tp=8 pp=4 zero=1 batch=16 ... software=megatron-core model=llama-3-70b"
 *
 * The model comes last, because names may have spaces; its parameter count tells whether the model
 * of that name is still the same. */
#include "base/text/text.h"
#include "llm_impl.h"
#include "trace/attrs.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct field {
    const char *name;
    size_t at;
    size_t bytes;
} field;

#define FIELD(name)                                                                     \
    {                                                                                   \
#name, offsetof(orr_llm_options, name), sizeof(((orr_llm_options *)NULL)->name) \
    }
static const field fields[] = {
    FIELD(tp),
    FIELD(cp),
    FIELD(pp),
    FIELD(dp),
    FIELD(ep),
    FIELD(expert_tp),
    FIELD(batch),
    FIELD(micro_batch),
    FIELD(seq),
    FIELD(zero),
    FIELD(shard),
    FIELD(pipeline),
    FIELD(chunks),
    FIELD(recompute),
    FIELD(dtype),
    FIELD(recompute_layers),
    FIELD(first_layers),
    FIELD(overlaps_experts),
    FIELD(last_layers),
    FIELD(sends_once),
    FIELD(node_ranks),
    FIELD(expert_load),
    FIELD(has_mtp),
    FIELD(no_sequence_parallel),
    FIELD(grads_fp32),
    FIELD(overlaps_tensor),
    FIELD(context_form),
    FIELD(full_attention),
    FIELD(bucket_bytes),
    FIELD(sync_every_micro_batch),
    FIELD(prefetch),
    FIELD(no_overlap),
    FIELD(no_clipping),
    FIELD(has_dropout),
    FIELD(no_master),
    FIELD(lists_optimizer),
    FIELD(forward_only),
    FIELD(steps),
    FIELD(device_bytes),
    FIELD(attends_fp8),
    FIELD(sends_fp8),
    FIELD(recompute_parts),
    FIELD(fp8_scaling),
    FIELD(sends_weights),
    FIELD(bare_first),
    FIELD(bare_last),
    FIELD(fp8_kept),
    FIELD(fp8_weights),
    FIELD(moments_bf16),
    FIELD(offload_layers),
    FIELD(offload_percent),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static uint64_t get(const orr_llm_options *o, const field *f)
{
    const char *at = (const char *)o + f->at;
    uint64_t wide;
    uint32_t narrow;
    if (f->bytes == 1)
        return *(const bool *)at;
    if (f->bytes == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void set(orr_llm_options *o, const field *f, uint64_t value)
{
    char *at = (char *)o + f->at;
    const uint32_t narrow = (uint32_t)value;
    if (f->bytes == 1)
        *(bool *)at = value != 0;
    else if (f->bytes == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
}

void llm_put_made_by(orr_buf *b, const llm_job *g)
{
    orr_model_counts n;
    orr_model_count(g->m, &n);
    orr_buf_print(b, "parameters=%" PRIu64, n.total);
    for (unsigned i = 0; i < FIELDS; i++)
        if (get(&g->opt, &fields[i]))
            orr_buf_print(b, " %s=%" PRIu64, fields[i].name, get(&g->opt, &fields[i]));
    if (g->opt.layout)
        orr_buf_print(b, " layout=%s", llm_layout_text(g->opt.layout));
    orr_buf_print(b, " software=%s model=%s", g->software->name, g->m->name);
}

/* ---- and back ---- */

enum { TEXT_ROOM = 2048 };

static bool read_made_by(const orr_set *traces, char text[TEXT_ROOM])
{
    const orr_trace *t = orr_set_class_count(traces) ? orr_set_trace(traces, 0) : NULL;
    const char *name = orr__attr_name(ORR__ATTR_MADE_BY);
    if (!t || !orr_trace_has_metadata(t))
        return false;
    orr_attrs it = orr_trace_attrs(t);
    for (orr_attr a; orr_attrs_next(&it, &a);) {
        if (!orr_str_is(a.name, name) || a.is_list || a.kind != ORR_VALUE_STRING ||
            a.value.s.len >= TEXT_ROOM)
            continue;
        memcpy(text, a.value.s.ptr, a.value.s.len);
        text[a.value.s.len] = '\0';
        return true;
    }
    return false;
}

/* "tp=8": false if this version does not know it; then there are no variants. */
static bool take_word(const char *word, orr_llm_options *o, uint64_t *parameters)
{
    const char *equals = strchr(word, '=');
    char *end;
    if (!equals)
        return false;
    const size_t length = (size_t)(equals - word);
    if (strncmp(word, "software=", 9) == 0)
        return (o->software = orr_software_find(equals + 1)) != NULL;
    if (strncmp(word, "layout=", 7) == 0)
        return !o->layout && !orr_stage_layout_parse(equals + 1, &o->layout, NULL);
    const uint64_t value = strtoull(equals + 1, &end, 10);
    if (end == equals + 1 || *end)
        return false;
    if (strncmp(word, "parameters=", 11) == 0) {
        *parameters = value;
        return true;
    }
    for (unsigned i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, word, length) == 0) {
            set(o, &fields[i], value);
            return true;
        }
    return false;
}

/* The model and the options of a set, whose layout the caller closes; false: not recorded, or no
 * longer known. */
static bool remember(const orr_set *traces, orr_model *m, orr_llm_options *o)
{
    char text[TEXT_ROOM];
    uint64_t parameters = 0;
    orr_model_counts n;
    *o = (orr_llm_options){0};
    if (!read_made_by(traces, text))
        return false;
    char *model = strstr(text, " model=");
    const orr_model *known = model ? orr_model_find(model + 7) : NULL;
    if (!known)
        return false;
    *model = '\0';
    char *rest = text;
    for (char *word; (word = strsep(&rest, " "));)
        if (!take_word(word, o, &parameters))
            return false;
    *m = *known;
    orr_model_count(m, &n);
    return n.total == parameters;
}

/* ---- other ways ---- */

static const char *const recompute_words[] = {"no recomputation", "selective recomputation",
                                              "full recomputation", "recomputation of operators"};

/* The number-th variant and its description; false: there is none.  Impossible ones are refused
 * later, by orr_llm_complete. */
static bool change(orr_llm_options *o, size_t number, char *words, size_t room)
{
    const orr_llm_options was = *o;
    switch (number) {
    case 0:
        o->micro_batch = was.micro_batch / 2;
        snprintf(words, room, "micro-batches of %" PRIu64 " instead of %" PRIu64, o->micro_batch,
                 was.micro_batch);
        return true;
    case 1:
        o->micro_batch = was.micro_batch * 2;
        snprintf(words, room, "micro-batches of %" PRIu64 " instead of %" PRIu64, o->micro_batch,
                 was.micro_batch);
        return true;
    case 2:
        o->pipeline = ORR_PIPELINE_INTERLEAVED;
        o->chunks = was.pipeline == ORR_PIPELINE_INTERLEAVED ? 2 * was.chunks : 2;
        snprintf(words, room, "interleaved pipeline, %u chunks per rank", o->chunks);
        return true;
    case 3:
    case 4:
    case 5:
        if (was.bucket_bytes == 1) /* FSDP's with zero 2 and 3 */
            o->bucket_bytes = 0;
        o->zero = (uint32_t)number - 2 > was.zero ? (uint32_t)number - 2 : (uint32_t)number - 3;
        snprintf(words, room, "ZeRO %u instead of %u", o->zero, was.zero);
        return true;
    case 6:
    case 7:
    case 8:
        o->recompute = (orr_recompute)(number - 6);
        if (o->recompute == was.recompute)
            o->recompute = ORR_RECOMPUTE_OPERATORS;
        o->recompute_layers = 0;
        o->recompute_parts = 0;
        snprintf(words, room, "%s", recompute_words[o->recompute]);
        return true;
    default:
        return false;
    }
}

static bool is_sensible(const orr_llm_options *was, const orr_llm_options *o)
{
    if (o->micro_batch == 0)
        return false;
    if (o->pipeline != was->pipeline || o->chunks != was->chunks)
        return was->pp > 1 &&
               (was->pipeline == ORR_PIPELINE_1F1B || was->pipeline == ORR_PIPELINE_INTERLEAVED);
    if (o->zero != was->zero)
        return was->dp * was->cp > 1;
    return !(o->recompute != was->recompute && was->forward_only);
}

static void say_memory(const orr_model *m, const orr_llm_options *o, char *words, size_t room)
{
    orr_llm_memory all[ORR_LLM_ZEROS];
    orr_error err;
    const size_t used = strlen(words);
    if (!orr_llm_memory_most(m, o, all, &err) && !all[o->zero].fits)
        snprintf(words + used, room - used, " (needs %.0f GiB per device: does not fit)",
                 (double)all[o->zero].peak / (1 << 30));
}

static orr_code make_variant(const orr_model *m,
                             const orr_llm_options *was,
                             size_t *number,
                             char *words,
                             size_t room,
                             orr_set **out,
                             orr_error *err)
{
    for (;; (*number)++) {
        orr_llm_options o = *was;
        if (!change(&o, *number, words, room))
            return ORR_END;
        if (!is_sensible(was, &o) || orr_llm_complete(m, &o, err))
            continue;
        say_memory(m, &o, words, room);
        (*number)++;
        return orr_llm_training(m, &o, out, err);
    }
}

orr_code orr_llm_variant(
    const orr_set *traces, size_t *number, char *words, size_t room, orr_set **out, orr_error *err)
{
    orr_model m;
    orr_llm_options was;
    *out = NULL;
    const bool is_known = remember(traces, &m, &was);
    const orr_code code =
        is_known ? make_variant(&m, &was, number, words, room, out, err) : ORR_END;
    orr_stage_layout_close(was.layout);
    return code;
}
