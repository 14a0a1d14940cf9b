/* SPDX-License-Identifier: Apache-2.0 */
/* serve_pool.c - ranks that work alike: what they keep, and how long an iteration takes them.
 *
 * An iteration's time is measured by the same recipes that write it, with a pen that adds up instead (llm_pen.c).
 * Layers of one kind take the same time, so one of each kind is measured: the cost is that of a few layers, whatever
 * their number. */
#include "layer_steps.h"
#include "serve_impl.h"

/* ---- layers ---- */

static unsigned kind_of(const orr_model *m, uint64_t layer)
{
    return (orr_model_is_moe(m, layer) ? 2u : 0u) + (orr_model_window(m, layer) ? 1u : 0u);
}

static unsigned sight_of_kind(unsigned kind)
{
    return kind & 1 ? LLM_SEES_WINDOW : LLM_SEES_ALL;
}

static void count_layers(const llm_pool *p, uint32_t stage, llm_stage *out)
{
    llm_stage_layers(&p->g, stage, &out->first, &out->end);
    for (uint64_t layer = out->first; layer < out->end; layer++) {
        const unsigned kind = kind_of(p->m, layer);
        out->example[kind] = layer;
        out->count[kind]++;
    }
}

static void find_examples(llm_pool *p)
{
    p->example[LLM_SEES_ALL] = p->example[LLM_SEES_WINDOW] = UINT64_MAX;
    for (uint64_t layer = 0; layer < p->m->layers; layer++)
        p->example[sight_of_kind(kind_of(p->m, layer))] = layer;
}

/* ---- memory ---- */

static uint64_t count_weights(const llm_pool *p, uint32_t stage)
{
    const llm_stage *s = &p->stages[stage];
    uint64_t sum = stage == 0 ? llm_embedding_parameters(&p->g) : 0;
    sum += stage + 1 == p->ranks.pp ? llm_head_parameters(&p->g) : 0;
    for (uint64_t layer = s->first; layer < s->end; layer++) {
        uint64_t dense, expert;
        llm_layer_parameters(&p->g, layer, &dense, &expert);
        sum += dense + expert;
    }
    return sum * p->g.weight;
}

void llm_cache_blocks(const llm_pool *p, uint64_t tokens, uint64_t blocks[LLM_SIGHTS])
{
    const uint64_t cp = p->ranks.cp, block = p->opt->kv_block;
    const uint64_t here = (tokens + cp - 1) / cp;
    for (unsigned i = 0; i < LLM_SIGHTS; i++) {
        const uint64_t layer = p->example[i];
        const uint64_t window = layer == UINT64_MAX ? 0 : orr_model_window(p->m, layer);
        const uint64_t kept = window && window < here ? window : here;
        blocks[i] = layer == UINT64_MAX ? 0 : (kept + block - 1) / block;
    }
}

uint64_t llm_cache_bytes(const llm_pool *p, uint32_t stage, const uint64_t blocks[LLM_SIGHTS])
{
    const llm_stage *s = &p->stages[stage];
    uint64_t sum = 0;
    for (unsigned kind = 0; kind < LLM_LAYER_KINDS; kind++)
        sum += s->count[kind] * blocks[sight_of_kind(kind)];
    return sum * p->block_bytes;
}

/* What is left for caches; the report has the fullest rank. */
static void share_memory(llm_pool *p, uint32_t stage)
{
    llm_stage *s = &p->stages[stage];
    const uint64_t most = p->opt->device_bytes / 10 * 9;
    s->weight_bytes = count_weights(p, stage);
    s->kv_room = p->opt->kv_bytes         ? p->opt->kv_bytes
                 : s->weight_bytes < most ? most - s->weight_bytes
                                          : 0;
    if (stage == 0 || s->weight_bytes > p->report.weight_bytes)
        p->report.weight_bytes = s->weight_bytes;
    if (stage == 0 || s->kv_room < p->report.kv_room)
        p->report.kv_room = s->kv_room;
}

/* ---- set up ---- */

/* Replicas whose experts are one set.  Blocks are what a replica has cp of. */
static uint32_t replicas_in_step(const orr_serve_ranks *r)
{
    const uint32_t blocks = r->ep > r->tp ? r->ep / r->tp : 1;
    return blocks > r->cp ? blocks / r->cp : 1;
}

static void set_sizes(llm_pool *p)
{
    const orr_serve_options *o = p->opt;
    const orr_serve_ranks *r = &p->ranks;
    const uint64_t bytes = orr_dtype_bytes(o->dtype);
    p->g = (llm_job){.m = p->m,
                     .opt = {.tp = r->tp,
                             .cp = r->cp,
                             .pp = r->pp,
                             .dp = r->dp,
                             .ep = r->ep,
                             .micro_batch = 1,
                             .chunks = 1,
                             .context_form = o->context_form},
                     .mat = bytes,
                     .weight = bytes,
                     .act = o->dtype == ORR_DTYPE_FP8 ? 2 : bytes,
                     .kv = orr_dtype_bytes(o->kv_dtype),
                     .virtual_stages = r->pp,
                     .expert_tp = r->ep < r->tp ? r->tp / r->ep : 1};
    p->block_bytes = o->kv_block * kv_kept(&p->g) * p->g.kv;
    p->in_step = replicas_in_step(r);
    p->report.ranks = r->tp * r->cp * r->pp * r->dp;
}

orr_code llm_pool_init(llm_pool *p, const orr_serve_ranks *ranks, orr_error *err)
{
    p->ranks = *ranks;
    p->stages = orr_alloc(ranks->pp, sizeof *p->stages);
    if (!p->stages)
        return orr_no_memory(err);
    set_sizes(p);
    find_examples(p);
    for (uint32_t i = 0; i < ranks->pp; i++) {
        count_layers(p, i, &p->stages[i]);
        share_memory(p, i);
    }
    return ORR_OK;
}

void llm_pool_fini(llm_pool *p)
{
    orr_free(p->stages);
}

/* ---- one iteration ---- */

/* Keys that `tokens` queries see, all of them together: each of them once. */
static uint64_t keys_seen(uint64_t tokens, uint64_t past, uint64_t window)
{
    return tokens + (window && past > window - 1 ? window - 1 : past);
}

void llm_pass_add(const llm_pool *p, llm_pass *pass, uint64_t tokens, uint64_t past, bool is_decode)
{
    const orr_model_work work = {.tokens = tokens, .past = past};
    *(is_decode ? &pass->decode_tokens : &pass->prompt_tokens) += tokens;
    for (unsigned i = 0; i < LLM_SIGHTS; i++) {
        llm_sight *s = &pass->sight[i];
        uint64_t pairs = 0;
        orr_error unused;
        /* The options were refused if this could fail. */
        if (p->example[i] == UINT64_MAX ||
            orr_model_pairs(p->m, p->example[i], &work, &pairs, &unused))
            continue;
        *(is_decode ? &s->decode_pairs : &s->prompt_pairs) += pairs;
        *(is_decode ? &s->decode_keys : &s->prompt_keys) +=
            keys_seen(tokens, past, orr_model_window(p->m, p->example[i]));
    }
    if (p->example[LLM_SEES_ALL] == UINT64_MAX && !is_decode)
        pass->sight[LLM_SEES_ALL].prompt_keys += tokens + past;
}

void llm_pool_set_pass(llm_pool *p, const llm_pass *pass)
{
    llm_job *g = &p->g;
    const uint32_t tp = p->ranks.tp, cp = p->ranks.cp;
    g->pass = pass;
    g->tokens = pass ? (llm_pass_tokens(pass) + cp - 1) / cp : 0;
    g->is_sequence_parallel =
        p->opt->sequence_parallel && tp > 1 && g->tokens && g->tokens % tp == 0;
    g->thin_tokens = g->is_sequence_parallel ? g->tokens / tp : g->tokens;
}

static uint64_t layer_time(llm_pool *p, llm_pen *pen, uint64_t layer)
{
    llm_steps s;
    pen->meter->time = 0;
    if (p->g.tokens)
        llm_describe_layer(&p->g, layer, &s);
    else
        llm_describe_idle_layer(&p->g, layer, &s);
    llm_steps_forward(pen, &s, "", 0, 0);
    return pen->meter->time;
}

static uint64_t ends_time(llm_pool *p, llm_pen *pen, uint32_t stage)
{
    const bool is_last = stage + 1 == p->ranks.pp;
    pen->meter->time = 0;
    if (stage == 0)
        llm_embedding_after(pen, LLM_AFTER(0));
    if (is_last && p->g.pass->sampled)
        llm_put_sampling(pen, 0);
    if (!is_last)
        llm_put_send(pen, "", llm_stage_message(&p->g), 0, LLM_PEER_NEXT, LLM_AFTER(0));
    return pen->meter->time;
}

uint64_t llm_stage_time(llm_pool *p, uint32_t stage)
{
    const llm_stage *s = &p->stages[stage];
    llm_meter meter = {
        .peak = p->opt->peak, .memory_rate = p->opt->memory_rate, .link_rate = p->opt->link_rate};
    llm_pen pen = {.g = &p->g, .meter = &meter};
    uint64_t sum = p->g.tokens ? ends_time(p, &pen, stage) : 0;
    for (unsigned kind = 0; kind < LLM_LAYER_KINDS; kind++) {
        uint64_t time = 0;
        if (s->count[kind] &&
            __builtin_mul_overflow(layer_time(p, &pen, s->example[kind]), s->count[kind], &time))
            time = INT64_MAX;
        sum = llm_later(sum, time);
    }
    return sum;
}

/* ---- what is worked on ---- */

static uint64_t step_numbers(const llm_job *g, const llm_step *s)
{
    switch (s->kind) {
    case LLM_STEP_PRODUCT:
        return s->m * (s->n + s->k);
    case LLM_STEP_ATTENTION:
        return g->tokens * (g->m->heads / g->opt.tp) *
               (orr_model_qk_dim(g->m) + orr_model_v_dim(g->m));
    default:
        return 2 * s->numbers;
    }
}

static uint64_t largest_step(const llm_job *g, const llm_steps *s)
{
    uint64_t most = 0;
    for (int i = 1; i < s->count; i++) {
        const uint64_t numbers = step_numbers(g, &s->list[i]);
        most = numbers > most ? numbers : most;
    }
    return most * g->act;
}

uint64_t llm_working_bytes(llm_pool *p)
{
    llm_steps s;
    uint64_t most = 0;
    if (!p->g.tokens)
        return 0;
    if (p->g.pass->sampled) {
        llm_describe_head(&p->g, &s);
        most = largest_step(&p->g, &s);
    }
    for (uint32_t i = 0; i < p->ranks.pp; i++)
        for (unsigned kind = 0; kind < LLM_LAYER_KINDS; kind++) {
            if (!p->stages[i].count[kind])
                continue;
            llm_describe_layer(&p->g, p->stages[i].example[kind], &s);
            const uint64_t bytes = largest_step(&p->g, &s);
            most = bytes > most ? bytes : most;
        }
    return most;
}
