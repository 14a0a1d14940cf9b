/* SPDX-License-Identifier: Apache-2.0 */
/* model_flops.c - what a model computes and keeps for some tokens of one sequence.
 *
 * Products with matrices are 2 * rows * columns for each token and come from the list of tensors.  Attention
 * adds the pairs of tokens that see each other: counted exactly, masks and windows heeded.  Every step is
 * checked: a long sequence through a large model leaves 64 bits sooner than one thinks. */
#include "model_impl.h"

#include <inttypes.h>
#include <string.h>

/* A number that remembers having overflowed. */
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
                    "%" PRIu64 " tokens behind %" PRIu64
                    " others are too many: the result does not fit into 64 bits",
                    w->tokens, w->past);
}

static orr_code no_tokens(orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "at least one token was expected");
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
        return &f->attention;
    case ORR_MODEL_ROUTER:
        return &f->router;
    case ORR_MODEL_HEAD:
        return &f->head;
    default:
        return &f->ffn; /* dense, routed or shared: no other part has products */
    }
}

/* Expanded keys and values are not what a cache of MLA keeps, so those of the past are made again. */
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

/* For one pair and one head: a query with a key, and a weight with a value.  Absorbed, both are of the width of
 * the compressed form, the key with its rotary part (DeepSeek-V2, section 2.1.2). */
static uint64_t pair_flops(const orr_model *m, const orr_model_work *w)
{
    if (orr_model_is_mla(m) && w->is_mla_absorbed)
        return 2 * (2 * m->kv_lora_rank + m->qk_rope_head_dim);
    return 2 * (orr_model_qk_dim(m) + orr_model_v_dim(m));
}

static void add_layer(flops *to, const orr_model *m, uint64_t layer, const orr_model_work *w)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const sum pairs = count_pairs(w, orr_model_window(m, layer));
    add_products(to, tensors, orr_model_layer_tensors(m, layer, tensors), w);
    to->scores = plus(to->scores, times(times(pairs, m->heads), pair_flops(m, w)));
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
    add_products(&f, tensors, orr_model_end_tensors(m, tensors), work);
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
        all = plus(all, times(just(kept), orr_model_kv_elements(m)));
    }
    if (all.is_over)
        return too_large(&w, err);
    *elements_out = all.value;
    return ORR_OK;
}
