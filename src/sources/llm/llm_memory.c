/* SPDX-License-Identifier: Apache-2.0 */
/* llm_memory.c - memory of a device: weights, gradients, optimizer state, and activations between
 * their forward and backward pass.
 *
 * Saved activations follow from a layer's steps: the input of each product, norm and activation,
 * queries, keys and values (scores are recomputed), each once.  Under sequence parallelism gathered
 * tensors are not saved, because they are gathered again; with full recomputation only the layer's
 * input is, and one layer at a time is live in full.
 *
 * Software that frees gradients (software.h) has them from their backward pass to the update: then
 * either all activations are live and no gradients, or the reverse.  Measured on an H200 for 26
 * models, phase by phase (truth/tables/h200_memory.csv): what a forward pass keeps is within 1 %.
 *
 * A forward pass alone keeps nothing: it holds weights and what later steps of the current layer
 * still read. */
#include "llm_impl.h"
#include "llm_tape.h"
#include "model_impl.h"

#include <string.h>

/* ---- activations of a layer ---- */

static uint64_t out_numbers(const llm_job *g, const llm_step *s)
{
    switch (s->kind) {
    case LLM_STEP_INPUT:
        return g->thin_tokens * g->m->hidden;
    case LLM_STEP_PRODUCT:
        return s->m * s->n;
    case LLM_STEP_ATTENTION:
        return g->tokens * (g->m->heads / g->opt.tp) * orr_model_v_dim(g->m);
    case LLM_STEP_LEAVE:
        return g->is_sequence_parallel ? s->numbers / g->opt.tp : s->numbers;
    default:
        return s->numbers;
    }
}

/* Does the backward pass of a step need what went in? */
static bool needs_input(const llm_step *s)
{
    return s->kind == LLM_STEP_PRODUCT || s->kind == LLM_STEP_ATTENTION ||
           (s->kind == LLM_STEP_ELEMENTWISE && !s->is_sum);
}

/* The step whose result represents that of step i: gathered tensors are saved in their state before
 * the gather. */
static int keeper_of(const llm_steps *s, int i)
{
    while (s->list[i].kind == LLM_STEP_ENTER)
        i = s->list[i].from;
    return i;
}

/* Eager PyTorch: silu(a) * b keeps both factors, and a. */
static uint64_t gate_numbers(const llm_step *s, const llm_job *g)
{
    const bool is_eager = !g->software->joins_elementwise && g->software->frees_grads;
    return is_eager && g->m->is_gated && s->role == LLM_ROLE_ACTIVATION ? s->numbers : 0;
}

/* Sent once to a rank, tokens are copied behind the exchange: the copies are what experts read. */
static uint64_t result_numbers(const llm_job *g, const llm_step *s)
{
    if (!s->is_dispatch || !g->opt.sends_once)
        return out_numbers(g, s);
    return g->thin_tokens * g->m->experts_per_token * g->m->hidden * g->opt.expert_load / 100;
}

/* Experts of a fixed capacity: rows are padded, and copies of tokens are kept beside their places.
 */
static uint64_t padded_numbers(const llm_job *g, const llm_step *s, uint64_t numbers)
{
    const bool is_row = s->is_expert || s->role == LLM_ROLE_PERMUTE || s->kind == LLM_STEP_EXCHANGE;
    if (!(g->software->expert_capacity > 0) || !g->m->experts || !is_row)
        return numbers;
    const uint64_t padded = (uint64_t)((double)numbers * g->software->expert_capacity);
    return s->role == LLM_ROLE_PERMUTE ? padded + numbers : padded;
}

static bool is_again(const llm_steps *s, int i)
{
    const orr_llm_options *o = &s->g->opt;
    return i > 0 && o->recompute == ORR_RECOMPUTE_PARTS &&
           llm_is_in_parts(&s->list[i], o->recompute_parts);
}

/* ---- their types ---- */

uint64_t llm_narrow_bytes(const llm_job *g, uint64_t numbers)
{
    switch (g->opt.dtype) {
    case ORR_DTYPE_NVFP4: /* half a byte, and a scale of 16 */
        return numbers / 2 + numbers / 16;
    case ORR_DTYPE_MXFP8:
        return numbers + numbers / 32;
    default: /* 4 bytes for 128 numbers, or for all */
        return numbers + (g->opt.fp8_scaling == ORR_FP8_BLOCK ? numbers / 32 : 0);
    }
}

/* In which types the result of a step is kept. */
enum { KEPT_WIDE = 1, KEPT_NARROW = 2, KEPT_IN_12_BITS = 4 };

static bool is_narrow_product(const llm_step *s)
{
    return s->kind == LLM_STEP_PRODUCT && strcmp(s->name, "head.logits") != 0 &&
           strcmp(s->name, "moe.router") != 0;
}

/* What the backward pass of a step, or doing it again, reads. */
static unsigned type_of_input(const llm_steps *s, const llm_step *step)
{
    const llm_job *g = s->g;
    const bool is_activation = step->role == LLM_ROLE_ACTIVATION;
    if (g->kept == ORR_KEPT_NONE)
        return KEPT_WIDE;
    if (is_narrow_product(step) || (is_activation && g->kept >= ORR_KEPT_ACTIVATIONS))
        return KEPT_NARROW;
    if (step->kind == LLM_STEP_ATTENTION && g->opt.attends_fp8)
        return KEPT_NARROW;
    return KEPT_WIDE;
}

/* Attention's backward pass reads what it gave, as the next product does. */
static unsigned type_of_attention(const llm_job *g)
{
    return g->kept == ORR_KEPT_NONE       ? KEPT_WIDE
           : g->opt.attends_fp8           ? KEPT_NARROW
           : g->kept == ORR_KEPT_DEEPSEEK ? KEPT_IN_12_BITS
                                          : KEPT_WIDE;
}

/* What is kept in 16 bits is cast again for a product (Megatron-Core: set_save_original_input),
 * but not with delayed scaling, whose scale may have changed. */
static uint64_t bytes_of(const llm_job *g, uint64_t numbers, unsigned types)
{
    const bool is_delayed =
        g->opt.fp8_scaling == ORR_FP8_DELAYED || g->opt.fp8_scaling == ORR_FP8_DELAYED_TP;
    const uint64_t narrow = types & KEPT_NARROW ? llm_narrow_bytes(g, numbers) : 0;
    if (types & KEPT_WIDE)
        return numbers * g->act + (is_delayed ? narrow : 0);
    return types & KEPT_IN_12_BITS ? numbers + numbers / 2 : narrow;
}

/* What steps need that are done backward, or again. */
static uint64_t kept_bytes(const llm_steps *s)
{
    unsigned types[LLM_STEPS_MOST] = {0};
    uint64_t sum = 0;
    for (int i = 1; i < s->count; i++) {
        const llm_step *step = &s->list[i];
        if (step->role == LLM_ROLE_WEIGH && s->g->software->weighs_early)
            continue;
        if (!needs_input(step) && !is_again(s, i))
            continue;
        const unsigned type = type_of_input(s, step);
        types[keeper_of(s, step->from)] |= type;
        if (step->also >= 0)
            types[keeper_of(s, step->also)] |= type;
    }
    for (int i = 0; i < s->count; i++) {
        const llm_step *step = &s->list[i];
        if (is_again(s, i))
            continue;
        if (step->kind == LLM_STEP_ATTENTION && types[i])
            types[i] |= type_of_attention(s->g);
        sum += bytes_of(s->g, padded_numbers(s->g, step, result_numbers(s->g, step)), types[i]);
        sum += padded_numbers(s->g, step, gate_numbers(step, s->g)) * s->g->act;
    }
    return sum;
}

/* Attention by single kernels keeps the probabilities, and after dropout its mask and what is left
 * of them. */
static uint64_t score_bytes(const llm_job *g)
{
    const uint64_t scores = g->tokens * g->opt.seq * (g->m->heads / g->opt.tp);
    if (!g->software->unfused_attention || g->opt.recompute == ORR_RECOMPUTE_SELECTIVE ||
        (g->opt.recompute == ORR_RECOMPUTE_PARTS && g->opt.recompute_parts & ORR_PART_ATTENTION))
        return 0;
    return scores * (g->has_dropout ? 2 * g->act + 1 : g->act);
}

/* A byte a number. */
static uint64_t mask_bytes(const llm_steps *s)
{
    uint64_t sum = 0;
    for (int i = 1; s->g->has_dropout && i < s->count; i++)
        sum += s->list[i].is_sum && s->list[i].is_residual ? s->list[i].numbers : 0;
    return sum;
}

static uint64_t full_layer_bytes(const llm_job *g, uint64_t layer)
{
    llm_steps s;
    llm_describe_layer(g, layer, &s);
    const bool has_scores = orr_model_mixer_of(g->m, layer) != ORR_MIX_NONE && g->m->heads;
    return kept_bytes(&s) + mask_bytes(&s) + (has_scores ? score_bytes(g) : 0);
}

static uint64_t operator_bytes(const llm_job *g, uint64_t layer)
{
    llm_steps s;
    int products = 0;
    uint64_t sum = g->thin_tokens * g->m->hidden;
    llm_describe_layer(g, layer, &s);
    for (int i = 1; i < s.count; i++)
        if (llm_keeps_result(&s.list[i], &products))
            sum += out_numbers(g, &s.list[i]);
    return sum * g->act;
}

static uint64_t layer_bytes(const llm_job *g, uint64_t layer)
{
    if (g->opt.recompute == ORR_RECOMPUTE_OPERATORS)
        return operator_bytes(g, layer);
    if (llm_is_recomputed(g, layer))
        return g->thin_tokens * g->m->hidden * g->act;
    return full_layer_bytes(g, layer);
}

/* The forward pass alone: each result until its last reader is done, at the worst step. */
static uint64_t passing_bytes(const llm_job *g, uint64_t layer)
{
    llm_steps s;
    int last_reader[LLM_STEPS_MOST] = {0};
    uint64_t most = 0;
    llm_describe_layer(g, layer, &s);
    for (int i = 1; i < s.count; i++) {
        last_reader[i] = i;
        last_reader[s.list[i].from] = i;
        if (s.list[i].also >= 0)
            last_reader[s.list[i].also] = i;
    }
    for (int i = 0; i < s.count; i++) {
        uint64_t live = s.list[i].kind == LLM_STEP_ATTENTION ? score_bytes(g) : 0;
        for (int k = 0; k <= i; k++)
            if (last_reader[k] >= i)
                live += padded_numbers(g, &s.list[k], result_numbers(g, &s.list[k])) * g->act;
        most = live > most ? live : most;
    }
    return most;
}

uint64_t llm_offloaded_bytes(const llm_job *g, uint32_t stage, uint64_t layer)
{
    uint64_t first, end;
    llm_stage_layers(g, stage, &first, &end);
    if (layer >= end || layer - first >= g->opt.offload_layers)
        return 0;
    return layer_bytes(g, layer) * g->opt.offload_percent / 100;
}

/* The last norm's input, the head's, and the logits, of which the loss keeps exponentials. */
static uint64_t head_bytes(const llm_job *g)
{
    return 2 * g->thin_tokens * g->m->hidden * g->act + g->tokens * llm_vocab_share(g) * g->act;
}

/* ---- a pipeline rank ---- */

typedef struct share {
    const llm_job *g;
    uint32_t rank;
    uint64_t dense, expert;               /* parameters */
    uint64_t narrow_dense, narrow_expert; /* of those, what products read in 8 bits */
    uint64_t largest;                     /* bytes of the largest layer's weights */
    uint64_t head;                        /* the same of the head, kept until its backward pass */
    uint64_t working; /* of the largest layer, while it is recomputed; of the logits */
    uint64_t again;   /* of the layer alone */
    uint64_t copied;  /* two of the largest that go to the host, or come back */
    uint64_t chunk_bytes[LLM_CHUNKS_MOST]; /* activations of a micro-batch, by chunk */
} share;

/* What a layer has and holds: computed once for layers that are alike. */
typedef struct layer_share {
    bool is_known;
    uint64_t layer;
    uint64_t dense, expert, narrow_dense, narrow_expert, kept, full;
} layer_share;

static void measure_layer(const llm_job *g, uint64_t layer, layer_share *x)
{
    const bool is_new = !x->is_known || !orr_model_is_alike(g->m, layer, x->layer);
    if (is_new) {
        llm_layer_parameters(g, layer, &x->dense, &x->expert);
        llm_narrow_parameters(g, layer, &x->narrow_dense, &x->narrow_expert);
        x->full = g->opt.forward_only                      ? passing_bytes(g, layer)
                  : g->opt.recompute >= ORR_RECOMPUTE_FULL ? full_layer_bytes(g, layer)
                                                           : 0;
    }
    if (is_new || llm_is_recomputed(g, layer) != llm_is_recomputed(g, x->layer))
        x->kept = layer_bytes(g, layer);
    x->layer = layer;
    x->is_known = true;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Weights of one rank.  In 8 bits they are held by rows and by columns: Hopper multiplies only
 * rows, and scales of blocks are along them.  Zero 3 shards what is gathered: those by rows, with
 * MXFP8 both, and weights in 16 bits have copies only while they are gathered. */
static uint64_t weight_bytes(const llm_job *g, uint64_t parameters, uint64_t narrow, uint32_t zero)
{
    const bool has_both = zero < 3 || g->opt.dtype == ORR_DTYPE_MXFP8;
    const uint64_t copies = llm_narrow_bytes(g, narrow) * (has_both ? 2 : 1);
    if (g->weights == ORR_WEIGHTS_NARROW)
        return (parameters - narrow) * g->weight + copies;
    return parameters * g->weight + (g->weights == ORR_WEIGHTS_BOTH && zero < 3 ? copies : 0);
}

/* MTP layers without their heads.  Kept beside the layer: the embedding, which a norm reads, and
 * what the product that joins them does, twice as wide.  The other norm's input is the head's,
 * unless that is in another stage. */
static void measure_mtp(share *s, uint32_t stage, layer_share *x, uint64_t *bytes)
{
    const llm_job *g = s->g;
    const bool has_heads = stage + 1 == g->virtual_stages;
    uint64_t dense, expert;
    llm_mtp_parameters(g, &dense, &expert);
    s->dense += dense + llm_mtp_embedding(g);
    s->expert += expert;
    llm_mtp_narrow_parameters(g, &dense, &expert);
    s->narrow_dense += dense;
    s->narrow_expert += expert;
    measure_layer(g, model_mtp_layer(g->m), x);
    s->again = max_u64(s->again, x->full);
    s->largest = max_u64(
        s->largest, weight_bytes(g, x->dense + x->expert, x->narrow_dense + x->narrow_expert, 3));
    *bytes +=
        g->m->mtp_layers * (x->kept + (has_heads ? 3 : 4) * g->thin_tokens * g->m->hidden * g->act);
}

static void measure_chunk(share *s, uint32_t chunk, layer_share *x)
{
    const llm_job *g = s->g;
    const uint32_t stage = llm_stage_of(g, s->rank, chunk);
    uint64_t first, end, bytes = 0;
    llm_stage_layers(g, stage, &first, &end);
    for (uint64_t layer = first; layer < end; layer++) {
        measure_layer(g, layer, x);
        s->dense += x->dense;
        s->expert += x->expert;
        s->narrow_dense += x->narrow_dense;
        s->narrow_expert += x->narrow_expert;
        const uint64_t narrow = x->narrow_dense + x->narrow_expert;
        s->largest = max_u64(s->largest, weight_bytes(g, x->dense + x->expert, narrow, 3));
        bytes += x->kept;
        if (layer - first < g->opt.offload_layers) {
            const uint64_t away = x->kept * g->opt.offload_percent / 100;
            bytes -= away;
            s->copied = max_u64(s->copied, away * (g->opt.offload_layers > 1 ? 2 : 1));
        }
        s->again = max_u64(s->again, x->full);
    }
    if (g->opt.has_mtp && stage == llm_mtp_stage(&g->opt))
        measure_mtp(s, stage, x, &bytes);
    s->working = max_u64(s->working, s->again);
    if (stage == 0)
        s->dense += llm_embedding_parameters(g);
    if (stage + 1 == g->virtual_stages) {
        s->dense += llm_head_parameters(g);
        s->head = g->weight * (llm_head_parameters(g) +
                               (g->m->is_tied && stage == 0 ? llm_embedding_parameters(g) : 0));
        bytes += head_bytes(g) * (g->opt.has_mtp ? 1 + g->m->mtp_layers : 1);
        s->working = max_u64(s->working, g->tokens * llm_vocab_share(g) * 4 +
                                             (g->opt.forward_only ? head_bytes(g) : 0));
    }
    s->chunk_bytes[chunk] = g->opt.forward_only ? 0 : bytes;
}

static uint64_t narrow_of(const llm_job *g, uint64_t layer, bool is_expert)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const size_t count = orr_model_layer_tensors(g->m, layer, tensors);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        orr_model_tensor t = tensors[i];
        t.has_bias = false;
        if (t.is_product && strcmp(t.name, "router") != 0 &&
            (t.part == ORR_MODEL_EXPERTS) == is_expert)
            sum += llm_tensor_share(g, &t);
    }
    return sum;
}

void llm_narrow_parameters(const llm_job *g, uint64_t layer, uint64_t *dense, uint64_t *expert)
{
    const bool is_wide = g->weights == ORR_WEIGHTS_WIDE;
    *dense = is_wide ? 0 : narrow_of(g, layer, false);
    *expert = is_wide ? 0 : narrow_of(g, layer, true);
}

void llm_mtp_narrow_parameters(const llm_job *g, uint64_t *dense, uint64_t *expert)
{
    *dense = *expert = 0;
    if (!g->opt.has_mtp || g->weights == ORR_WEIGHTS_WIDE)
        return;
    llm_narrow_parameters(g, model_mtp_layer(g->m), dense, expert);
    *dense = (*dense + 2 * g->m->hidden * g->m->hidden) * g->m->mtp_layers;
    *expert *= g->m->mtp_layers;
}

/* ---- over time ---- */

static void fill_moment(const llm_task *t, uint64_t held, orr_llm_moment *out)
{
    *out = (orr_llm_moment){.task = (orr_llm_task)t->kind,
                            .chunk = t->chunk,
                            .micro_batch = t->micro_batch,
                            .activations = held};
}

static orr_code walk(const share *s,
                     void (*take)(void *context, const orr_llm_moment *moment),
                     void *context,
                     orr_error *err)
{
    size_t count = 0;
    uint64_t held = 0;
    llm_task *tasks = llm_schedule_tasks(s->g, s->rank, &count);
    if (!tasks)
        return orr_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        orr_llm_moment m;
        const uint64_t bytes = s->chunk_bytes[tasks[i].chunk];
        if (tasks[i].kind == LLM_FORWARD)
            held += bytes;
        else if (!tasks[i].is_cut) /* a cut backward pass leaves them to its weights */
            held -= bytes;
        fill_moment(&tasks[i], held, &m);
        take(context, &m);
    }
    orr_free(tasks);
    return ORR_OK;
}

typedef struct most {
    uint64_t bytes, kept, now;
} most;

static void take_most(void *context, const orr_llm_moment *m)
{
    most *t = context;
    t->now += m->task == ORR_LLM_FORWARD;
    if (m->activations > t->bytes) {
        t->bytes = m->activations;
        t->kept = t->now;
    }
    t->now -= m->task == ORR_LLM_BACKWARD && t->now > 0;
}

/* ---- the rest of it ---- */

static uint64_t part(const llm_job *g, llm_axis axis, uint64_t whole, bool is_shared)
{
    const uint64_t n = is_shared ? g->layout.degree[axis] : 1;
    return (whole + n - 1) / n;
}

/* Bytes for every parameter, shared out or not. */
static uint64_t of_parameters(const share *s, uint64_t bytes, bool is_shared)
{
    const llm_job *g = s->g;
    const llm_axis experts = g->opt.ep > 1 ? LLM_AXIS_EXPERT_DATA : LLM_AXIS_DATA;
    return part(g, LLM_AXIS_DATA, s->dense * bytes, is_shared) +
           part(g, experts, s->expert * bytes, is_shared);
}

static uint64_t weights_of(const share *s, uint32_t zero)
{
    const llm_job *g = s->g;
    const llm_axis experts = g->opt.ep > 1 ? LLM_AXIS_EXPERT_DATA : LLM_AXIS_DATA;
    return part(g, LLM_AXIS_DATA, weight_bytes(g, s->dense, s->narrow_dense, zero), zero >= 3) +
           part(g, experts, weight_bytes(g, s->expert, s->narrow_expert, zero), zero >= 3);
}

static orr_code measure(const orr_model *m,
                        const orr_llm_options *opt,
                        uint32_t rank,
                        llm_job *g,
                        share *out,
                        orr_error *err)
{
    const orr_code code = llm_init(g, m, opt, err);
    if (code)
        return code;
    if (rank >= g->opt.pp)
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no pipeline rank %u: pp is %u", rank,
                        g->opt.pp);
    *out = (share){.g = g, .rank = rank};
    layer_share x = {0};
    for (uint32_t c = 0; c < g->opt.chunks; c++)
        measure_chunk(out, c, &x);
    return ORR_OK;
}

/* cuBLAS, which PyTorch gives 32 MiB on Hopper for each thread that computes: the program's and
 * that of the backward pass. */
static uint64_t workspace_bytes(const llm_job *g)
{
    return g->software->frees_grads ? 64u << 20 : 0;
}

/* Beside weights and optimizer, at the worst moment: the loss, or the update. */
static uint64_t busiest(const share *s, const orr_llm_memory *m)
{
    const llm_job *g = s->g;
    const uint64_t all = m->grads + m->activations + m->working;
    const bool is_foreach = g->opt.lists_optimizer || g->software->lists_optimizer;
    if (!g->software->frees_grads || g->micro_batches > 1 || g->opt.pp > 1)
        return all;
    return max_u64(m->activations + m->working,
                   m->grads + max_u64(s->again, is_foreach ? m->grads : 0));
}

/* With one reduction per step, full gradients are kept until then, whatever the stage.  The options
 * specify how their own stage reduces; other stages are assumed to reduce as usual. */
static bool shards_grads(const llm_job *g, uint32_t zero)
{
    if (zero == g->opt.zero && !g->opt.sync_every_micro_batch && g->micro_batches > 1)
        return false;
    return zero >= 2;
}

/* With another ZeRO stage than that of the options. */
static void fill_memory(const share *s, const most *peak, uint32_t zero, orr_llm_memory *out)
{
    const llm_job *g = s->g;
    const bool is_trained = !g->opt.forward_only;
    const uint64_t master = g->opt.dtype == ORR_DTYPE_FP32 || g->is_pure ? 0 : 4;
    const uint64_t moments = 2 * (g->is_pure ? g->weight : g->opt.moments_bf16 ? 2 : 4);
    const uint64_t state = is_trained ? moments + master : 0, grad = is_trained ? g->grad : 0;
    *out = (orr_llm_memory){.parameters = s->dense + s->expert,
                            .weights = weights_of(s, zero),
                            .grads = of_parameters(s, grad, shards_grads(g, zero)),
                            .optimizer = of_parameters(s, state, zero >= 1),
                            .activations = peak->bytes,
                            .working = s->working + s->copied,
                            .micro_batches_kept = peak->kept};
    if (zero >= 3 && g->layout.degree[LLM_AXIS_DATA] > 1)
        out->weights += s->largest * (g->opt.prefetch + 1) + s->head;
    out->peak = out->weights + out->optimizer + workspace_bytes(g) + busiest(s, out);
    out->fits = out->peak <= g->opt.device_bytes;
}

orr_code orr_llm_memory_of(const orr_model *m,
                           const orr_llm_options *opt,
                           uint32_t pipeline_rank,
                           orr_llm_memory *out,
                           orr_error *err)
{
    llm_job g;
    share s = {0};
    most peak = {0};
    orr_code code = measure(m, opt, pipeline_rank, &g, &s, err);
    if (!code)
        code = walk(&s, take_most, &peak, err);
    if (!code)
        fill_memory(&s, &peak, g.opt.zero, out);
    return code;
}

/* A schedule is periodic once its pipeline is full, which takes two rounds of pp micro-batches:
 * more do not increase memory. */
static void shorten(llm_job *g)
{
    const uint64_t enough = 3 * (uint64_t)g->opt.pp;
    if (g->opt.pipeline != ORR_PIPELINE_GPIPE && g->opt.pipeline != ORR_PIPELINE_OWN &&
        g->micro_batches > enough)
        g->micro_batches = enough;
}

/* For schedules that need no walk: 1F1B keeps as many micro-batches as there are later stages, plus
 * its own, and one more where passes are paired; GPipe all. */
static bool find_plain_most(const share *s, most *out)
{
    const llm_job *g = s->g;
    const uint64_t ahead = g->opt.pp - s->rank + (g->opt.overlaps_experts ? 1 : 0);
    const uint64_t all = g->micro_batches;
    if (g->opt.pipeline != ORR_PIPELINE_1F1B && g->opt.pipeline != ORR_PIPELINE_GPIPE)
        return false;
    out->kept = g->opt.pipeline == ORR_PIPELINE_GPIPE || all < ahead ? all : ahead;
    out->bytes = out->kept * s->chunk_bytes[0];
    return true;
}

static orr_code find_most(const llm_job *whole, orr_llm_memory out[ORR_LLM_ZEROS], orr_error *err)
{
    llm_job g = *whole;
    layer_share x = {0};
    orr_code code = ORR_OK;
    shorten(&g);
    for (uint32_t rank = 0; rank < g.opt.pp && !code; rank++) {
        share s = {.g = &g, .rank = rank};
        most peak = {0};
        for (uint32_t c = 0; c < g.opt.chunks; c++)
            measure_chunk(&s, c, &x);
        if (!find_plain_most(&s, &peak))
            code = walk(&s, take_most, &peak, err);
        for (uint32_t zero = 0; zero < ORR_LLM_ZEROS && !code; zero++) {
            orr_llm_memory own;
            fill_memory(&s, &peak, zero, &own);
            if (rank == 0 || own.peak > out[zero].peak)
                out[zero] = own;
        }
    }
    return code;
}

orr_code orr_llm_memory_most(const orr_model *m,
                             const orr_llm_options *opt,
                             orr_llm_memory out[ORR_LLM_ZEROS],
                             orr_error *err)
{
    llm_job g;
    const orr_code code = llm_init(&g, m, opt, err);
    return code ? code : find_most(&g, out, err);
}

orr_code orr__llm_view_memory(const orr__llm_view *v,
                              orr_llm_memory out[ORR_LLM_ZEROS],
                              orr_error *err)
{
    return find_most(v->job, out, err);
}

orr_code orr_llm_moments(const orr_model *m,
                         const orr_llm_options *opt,
                         uint32_t pipeline_rank,
                         void (*take)(void *context, const orr_llm_moment *moment),
                         void *context,
                         orr_error *err)
{
    llm_job g;
    share s = {0};
    const orr_code code = measure(m, opt, pipeline_rank, &g, &s, err);
    return code ? code : walk(&s, take, context, err);
}
