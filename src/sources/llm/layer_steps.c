/* SPDX-License-Identifier: Apache-2.0 */
/* layer_steps.c - what a layer is made of, on one rank: norm, attention, FFN or experts, and the sums between.
 *
 * Between tensor-parallel regions a rank holds `thin_tokens` whole tokens (with sequence parallelism; all of them
 * without), inside them all `tokens` and 1 / tp of the columns.  Experts are reached by an all-to-all and are
 * themselves tensor-parallel; tokens are taken to spread evenly over them. */
#include "layer_steps.h"
#include "serve_impl.h"

static int add(llm_steps *s, llm_step step)
{
    s->list[s->count] = step;
    return s->count++;
}

static int add_elementwise(
    llm_steps *s, const char *name, int from, uint64_t numbers, uint64_t operations)
{
    return add(s, (llm_step){.kind = LLM_STEP_ELEMENTWISE,
                             .name = name,
                             .from = from,
                             .also = -1,
                             .numbers = numbers,
                             .operations = operations});
}

static int add_norm(llm_steps *s, const char *name, int from, uint64_t numbers)
{
    const bool is_rms = s->g->m->norm == ORR_MODEL_RMS_NORM;
    return add_elementwise(s, name, from, numbers, is_rms ? 4 : 7);
}

static int add_sum(llm_steps *s, const char *name, int from, int also, uint64_t numbers)
{
    const int i = add_elementwise(s, name, from, numbers, 1);
    s->list[i].also = also;
    s->list[i].is_sum = true;
    return i;
}

static int add_product(llm_steps *s, const char *name, int from, uint64_t m, uint64_t n, uint64_t k)
{
    return add(s, (llm_step){.kind = LLM_STEP_PRODUCT,
                             .name = name,
                             .from = from,
                             .also = -1,
                             .m = m,
                             .n = n,
                             .k = k,
                             .copies = 1});
}

static int add_move(llm_steps *s, llm_step_kind kind, const char *name, int from, uint64_t numbers)
{
    return add(
        s, (llm_step){.kind = kind, .name = name, .from = from, .also = -1, .numbers = numbers});
}

/* ---- attention ---- */

uint64_t kv_numbers(const llm_job *g)
{
    const orr_model *m = g->m;
    if (orr_model_is_mla(m))
        return g->tokens * m->heads / g->opt.tp * (orr_model_qk_dim(m) + orr_model_v_dim(m));
    return g->tokens * kv_kept(g);
}

uint64_t kv_kept(const llm_job *g)
{
    const orr_model *m = g->m;
    if (orr_model_is_mla(m))
        return m->kv_lora_rank + m->qk_rope_head_dim; /* every rank has all of it */
    return (m->kv_heads < g->opt.tp ? 1 : m->kv_heads / g->opt.tp) * 2 * m->head_dim;
}

static int add_latent_queries(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t columns = m->heads / g->opt.tp * orr_model_qk_dim(m);
    if (!m->q_lora_rank)
        return add_product(s, "attn.q", from, g->tokens, columns, m->hidden);
    const int down = add_product(s, "attn.q_down", from, g->tokens, m->q_lora_rank, m->hidden);
    const int norm = add_norm(s, "attn.q_norm", down, g->tokens * m->q_lora_rank);
    return add_product(s, "attn.q_up", norm, g->tokens, columns, m->q_lora_rank);
}

/* Tokens whose keys and values are expanded: the prompts' and, again, those before them in the cache.  Decoding
 * attends to what the cache keeps as it is. */
static uint64_t expanded_tokens(const llm_job *g)
{
    if (!g->pass)
        return g->tokens;
    return (g->pass->sight[LLM_SEES_ALL].prompt_keys + g->opt.cp - 1) / g->opt.cp;
}

/* *kept: the step that has what goes into the cache. */
static int add_latent_keys(llm_steps *s, int from, int *kept)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t rows = expanded_tokens(g);
    const uint64_t columns = m->heads / g->opt.tp * (m->qk_nope_head_dim + m->v_head_dim);
    const int down = add_product(s, "attn.kv_down", from, g->tokens,
                                 m->kv_lora_rank + m->qk_rope_head_dim, m->hidden);
    const int norm = *kept = add_norm(s, "attn.kv_norm", down, g->tokens * m->kv_lora_rank);
    return rows ? add_product(s, "attn.kv_up", norm, rows, columns, m->kv_lora_rank) : -1;
}

/* Queries, keys and values; `also` is set when they come from two products, *kept when what goes into the cache
 * comes from a step of its own. */
static int add_queries(llm_steps *s, int from, int *also, int *kept)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    *also = *kept = -1;
    if (orr_model_is_mla(m)) {
        *also = add_latent_keys(s, from, kept);
        return add_latent_queries(s, from);
    }
    const uint64_t queries = m->heads / g->opt.tp * m->head_dim;
    const uint64_t columns = queries + kv_numbers(g) / g->tokens;
    int at = add_product(s, "attn.qkv", from, g->tokens, columns, m->hidden);
    if (m->qk_norm != ORR_MODEL_NO_QK_NORM)
        at = add_norm(s, "attn.qk_norm", at, g->tokens * (columns + queries) / 2);
    return at;
}

static uint64_t rotated_numbers(const llm_job *g)
{
    const orr_model *m = g->m;
    const uint64_t heads = m->heads / g->opt.tp;
    if (orr_model_is_mla(m))
        return g->tokens * (heads + 1) * m->qk_rope_head_dim;
    return g->tokens * heads * m->head_dim + kv_numbers(g) / 2;
}

/* Keys and values, or what stands for them, go into the cache. */
static int add_cache_write(llm_steps *s, int from, int kept)
{
    const llm_job *g = s->g;
    const uint64_t numbers = g->tokens * kv_kept(g);
    const int at = add_elementwise(s, "attn.kv_write", from, numbers, 1);
    s->list[at].also = kept;
    s->list[at].bytes = numbers * (g->act + g->kv);
    return at;
}

/* One product a head, for sequences that decode: queries into the space of what the cache keeps, and what attention
 * gives back out of it.  Together they are the matrix that would expand the cache (DeepSeek-V2, 2.1.2). */
static int add_absorbed(llm_steps *s, const char *name, int from, uint64_t n, uint64_t k)
{
    const llm_job *g = s->g;
    const uint64_t heads = g->m->heads / g->opt.tp;
    if (!g->pass || !g->pass->decode_tokens || !orr_model_is_mla(g->m))
        return from;
    const int at = add_product(s, name, from, g->pass->decode_tokens * heads, n, k);
    s->list[at].copies = heads;
    return at;
}

static int add_attention(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t all = g->tokens * m->hidden;
    int also, kept;
    int at = add_move(s, LLM_STEP_ENTER, "attn.gather", from, all);
    at = add_queries(s, at, &also, &kept);
    if (m->position == ORR_MODEL_ROTARY)
        at = add_elementwise(s, "attn.rotary", at, rotated_numbers(g), 3);
    if (g->pass)
        at = add_cache_write(s, at, kept);
    at = add_absorbed(s, "attn.q_absorb", at, m->kv_lora_rank, m->qk_nope_head_dim);
    at = add(s,
             (llm_step){.kind = LLM_STEP_ATTENTION, .name = "attn.core", .from = at, .also = also});
    at = add_absorbed(s, "attn.v_absorb", at, m->v_head_dim, m->kv_lora_rank);
    at = add_product(s, "attn.out", at, g->tokens, m->hidden,
                     m->heads / g->opt.tp * orr_model_v_dim(m));
    return add_move(s, LLM_STEP_LEAVE, "attn.scatter", at, all);
}

/* ---- FFN and experts ---- */

typedef struct ffn {
    const char *up, *activation, *down;
    uint64_t rows, width, copies;
    bool is_expert;
} ffn;

static int add_ffn_products(llm_steps *s, int from, const ffn *f)
{
    const llm_job *g = s->g;
    const uint64_t tp = f->is_expert && g->expert_tp ? g->expert_tp : g->opt.tp;
    const uint64_t width = f->width / tp, hidden = g->m->hidden;
    const int up = add_product(s, f->up, from, f->rows, g->m->is_gated ? 2 * width : width, hidden);
    const int act = add_elementwise(s, f->activation, up, f->rows * width, g->m->is_gated ? 6 : 8);
    const int down = add_product(s, f->down, act, f->rows, hidden, width);
    s->list[up].copies = s->list[down].copies = f->copies;
    s->list[up].is_expert = s->list[down].is_expert = f->is_expert;
    return down;
}

static int add_ffn(llm_steps *s, int from, const ffn *f, const char *enter, const char *leave)
{
    const uint64_t all = f->rows * s->g->m->hidden;
    int at = add_move(s, LLM_STEP_ENTER, enter, from, all);
    at = add_ffn_products(s, at, f);
    return add_move(s, LLM_STEP_LEAVE, leave, at, all);
}

static int add_routed(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t sent = g->thin_tokens * m->experts_per_token * m->hidden;
    const ffn experts = {.up = "moe.up",
                         .activation = "moe.activation",
                         .down = "moe.down",
                         .rows = g->tokens * m->experts_per_token,
                         .width = m->expert_ffn,
                         .copies = m->experts / g->opt.ep,
                         .is_expert = true};
    int at = add_product(s, "moe.router", from, g->thin_tokens, m->experts, m->hidden);
    at = add_elementwise(s, "moe.select", at, g->thin_tokens * m->experts, 4);
    at = add_elementwise(s, "moe.permute", at, sent, 1);
    s->list[at].also = from;
    at = add_move(s, LLM_STEP_EXCHANGE, "moe.dispatch", at, sent);
    at = add_ffn(s, at, &experts, "moe.gather", "moe.scatter");
    at = add_move(s, LLM_STEP_EXCHANGE, "moe.combine", at, sent);
    return add_elementwise(s, "moe.weigh", at, sent, 2);
}

static int add_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const int routed = add_routed(s, from);
    if (!m->shared_experts)
        return routed;
    const ffn shared = {.up = "shared.up",
                        .activation = "shared.activation",
                        .down = "shared.down",
                        .rows = g->tokens,
                        .width = m->shared_ffn * m->shared_experts,
                        .copies = 1};
    int at = add_ffn(s, from, &shared, "shared.gather", "shared.scatter");
    if (m->has_shared_gate) {
        const int gate = add_product(s, "shared.scale", from, g->thin_tokens, 1, m->hidden);
        at = add_elementwise(s, "shared.weigh", at, g->thin_tokens * m->hidden, 1);
        s->list[at].also = gate;
    }
    return add_sum(s, "moe.sum", at, routed, g->thin_tokens * m->hidden);
}

/* ---- experts while serving ----
 *
 * Experts on the ranks of one replica (ep <= tp): every rank has all tokens, computes what its experts have to do with
 * them, and the sum over the ranks puts it together.  Experts on several replicas: a rank sends its share of the
 * tokens to where their experts are, which are whole. */

static uint64_t round_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* How many of `copies` experts some token goes to, if all are equally likely: 1 - (1 - k / E)^tokens of them.
 * Multiplications only, so that it is the same everywhere; rounded up. */
static uint64_t experts_met(const orr_model *m, uint64_t copies, uint64_t tokens)
{
    double missed = 1, power = 1 - (double)m->experts_per_token / (double)m->experts;
    for (; tokens; tokens >>= 1, power *= power)
        if (tokens & 1)
            missed *= power;
    const double met = (double)copies * (1 - missed);
    const uint64_t whole = (uint64_t)met;
    return whole + (met > (double)whole + 1e-9);
}

/* rows: how many of the tokens' copies come to this rank. */
static int add_expert_products(llm_steps *s, int from, uint64_t rows)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const ffn experts = {.up = "moe.up",
                         .activation = "moe.activation",
                         .down = "moe.down",
                         .rows = rows,
                         .width = m->expert_ffn,
                         .copies = experts_met(m, m->experts / g->opt.ep, g->pass->shared_tokens),
                         .is_expert = true};
    return add_ffn_products(s, from, &experts);
}

static int add_routing(llm_steps *s, int from, uint64_t tokens)
{
    const orr_model *m = s->g->m;
    const int at = add_product(s, "moe.router", from, tokens, m->experts, m->hidden);
    return add_elementwise(s, "moe.select", at, tokens * m->experts, 4);
}

static int add_shared(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const ffn shared = {.up = "shared.up",
                        .activation = "shared.activation",
                        .down = "shared.down",
                        .rows = g->tokens,
                        .width = m->shared_ffn * m->shared_experts,
                        .copies = 1};
    const int at = add_ffn_products(s, from, &shared);
    if (!m->has_shared_gate)
        return at;
    const int scale = add_product(s, "shared.scale", from, g->tokens, 1, m->hidden);
    return add_sum(s, "shared.weigh", at, scale, g->tokens * m->hidden);
}

static int add_near_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t all = g->tokens * m->hidden;
    const uint64_t rows = round_up(g->tokens * m->experts_per_token, g->opt.ep);
    const int start = add_move(s, LLM_STEP_ENTER, "moe.gather", from, all);
    int at = add_routing(s, start, g->tokens);
    at = add_elementwise(s, "moe.permute", at, rows * m->hidden, 1);
    s->list[at].also = start;
    at = add_expert_products(s, at, rows);
    at = add_elementwise(s, "moe.weigh", at, rows * m->hidden, 2);
    if (m->shared_experts)
        at = add_sum(s, "moe.sum", add_shared(s, start), at, all);
    return add_move(s, LLM_STEP_LEAVE, "moe.scatter", at, all);
}

/* Tokens to the experts, through them, and back: the replica that has most tokens sets the size. */
static int add_trip(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t sent = round_up(g->pass->busiest, g->opt.tp) * m->experts_per_token * m->hidden;
    const uint64_t rows = round_up(g->pass->shared_tokens * m->experts_per_token, g->opt.ep);
    const int at = add_move(s, LLM_STEP_EXCHANGE, "moe.dispatch", from, sent);
    return add_move(s, LLM_STEP_EXCHANGE, "moe.combine", add_expert_products(s, at, rows), sent);
}

static int add_far_experts(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const orr_model *m = g->m;
    const uint64_t share =
        g->is_sequence_parallel ? g->thin_tokens : round_up(g->tokens, g->opt.tp);
    const uint64_t copies = share * m->experts_per_token * m->hidden;
    int at = add_routing(s, from, share);
    at = add_elementwise(s, "moe.permute", at, copies, 1);
    s->list[at].also = from;
    at = add_elementwise(s, "moe.weigh", add_trip(s, at), copies, 2);
    if (!g->is_sequence_parallel)
        at = add_move(s, LLM_STEP_GATHER, "moe.gather", at, share * m->hidden);
    if (!m->shared_experts)
        return at;
    const uint64_t all = g->tokens * m->hidden;
    int shared = add_move(s, LLM_STEP_ENTER, "shared.gather", from, all);
    shared = add_move(s, LLM_STEP_LEAVE, "shared.scatter", add_shared(s, shared), all);
    return add_sum(s, "moe.sum", shared, at, g->thin_tokens * m->hidden);
}

static int add_served_experts(llm_steps *s, int from)
{
    return s->g->opt.ep > s->g->opt.tp ? add_far_experts(s, from) : add_near_experts(s, from);
}

static int add_second_half(llm_steps *s, int from)
{
    const llm_job *g = s->g;
    const ffn dense = {.up = "ffn.up",
                       .activation = "ffn.activation",
                       .down = "ffn.down",
                       .rows = g->tokens,
                       .width = g->m->ffn,
                       .copies = 1};
    if (orr_model_is_moe(g->m, s->layer))
        return g->pass ? add_served_experts(s, from) : add_experts(s, from);
    return add_ffn(s, from, &dense, "ffn.gather", "ffn.scatter");
}

/* ---- all of it ---- */

void llm_describe_layer(const llm_job *g, uint64_t layer, llm_steps *out)
{
    const orr_model *m = g->m;
    const uint64_t thin = g->thin_tokens * m->hidden;
    const bool norms_results = m->block_norms == 4;
    *out = (llm_steps){.g = g, .layer = layer};
    const int input = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    const int norm = add_norm(out, "attn.norm", input, thin);
    int attention = add_attention(out, norm);
    if (norms_results)
        attention = add_norm(out, "attn.norm_after", attention, thin);
    int middle = add_sum(out, "attn.add", attention, input, thin);
    int start = m->is_parallel ? input : middle;
    start = m->is_parallel && m->block_norms == 1 ? norm : add_norm(out, "ffn.norm", start, thin);
    int second = add_second_half(out, start);
    if (norms_results)
        second = add_norm(out, "ffn.norm_after", second, thin);
    add_sum(out, "ffn.add", second, middle, thin);
}

void llm_describe_idle_layer(const llm_job *g, uint64_t layer, llm_steps *out)
{
    *out = (llm_steps){.g = g, .layer = layer};
    const int input = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    if (orr_model_is_moe(g->m, layer) && g->opt.ep > g->opt.tp)
        add_trip(out, input);
}

/* Serving wants the logits of a sequence's last token only. */
void llm_describe_head(const llm_job *g, llm_steps *out)
{
    const orr_model *m = g->m;
    const uint64_t tokens = g->pass ? g->pass->sampled : g->tokens;
    const uint64_t thin = g->pass ? tokens : g->thin_tokens;
    *out = (llm_steps){.g = g};
    int at = add(out, (llm_step){.kind = LLM_STEP_INPUT, .from = -1, .also = -1});
    at = add_norm(out, "head.norm", at, thin * m->hidden);
    at = add_move(out, LLM_STEP_ENTER, "head.gather", at, tokens * m->hidden);
    add_product(out, "head.logits", at, tokens, llm_vocab_share(g), m->hidden);
}

/* ---- parameters ---- */

/* Products are shared out over tensor-parallel ranks, but for those into a latent space and to the experts. */
static bool is_split(const orr_model_tensor *t)
{
    static const char *const whole[] = {"q_a", "kv_a", "router", "shared_scale"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(t->name, whole[i]) == 0)
            return false;
    return t->is_product;
}

/* Row-parallel products (their columns are hidden) keep their bias whole. */
static uint64_t on_one_rank(const llm_job *g, const orr_model_tensor *t)
{
    const bool is_expert = t->part == ORR_MODEL_EXPERTS;
    const uint64_t tp = !is_split(t) ? 1 : is_expert && g->expert_tp ? g->expert_tp : g->opt.tp;
    const bool is_kv = t->name[0] == 'k' || t->name[0] == 'v';
    const uint64_t ways = is_kv && t->name[1] == '\0' && g->m->kv_heads < tp ? g->m->kv_heads : tp;
    const bool is_by_rows = strcmp(t->name, "o") == 0 || strstr(t->name, "_down") != NULL;
    const uint64_t copies = is_expert ? t->copies / g->opt.ep : t->copies;
    const uint64_t bias = !t->has_bias ? 0 : is_by_rows ? t->columns : t->columns / ways;
    return copies * (t->rows * t->columns / ways + bias);
}

void llm_layer_parameters(const llm_job *g, uint64_t layer, uint64_t *dense, uint64_t *expert)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const size_t count = orr_model_layer_tensors(g->m, layer, tensors);
    *dense = *expert = 0;
    for (size_t i = 0; i < count; i++)
        *(tensors[i].part == ORR_MODEL_EXPERTS ? expert : dense) += on_one_rank(g, &tensors[i]);
}

uint64_t llm_vocab_share(const llm_job *g)
{
    return (orr_model_vocab_rows(g->m) + g->opt.tp - 1) / g->opt.tp;
}

/* The embedding, positions and its norm with it; the head and the last norm. */
static uint64_t end_parameters(const llm_job *g, bool wants_head)
{
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    const size_t count = orr_model_end_tensors(g->m, tensors);
    uint64_t sum = 0;
    bool is_behind = false; /* what follows the last layer: from the final norm on */
    for (size_t i = 0; i < count; i++) {
        const orr_model_tensor *t = &tensors[i];
        is_behind |= strcmp(t->name, "final_norm") == 0 || t->part == ORR_MODEL_HEAD;
        const bool is_vocab = t->part == ORR_MODEL_EMBEDDING || t->part == ORR_MODEL_HEAD;
        const uint64_t share = llm_vocab_share(g) * (g->m->hidden + (t->has_bias ? 1 : 0));
        const uint64_t whole = t->rows * t->columns + (t->has_bias ? t->columns : 0);
        if (is_behind == wants_head && !(t->is_tied && g->opt.pp == 1))
            sum += is_vocab ? share : whole;
    }
    return sum;
}

uint64_t llm_embedding_parameters(const llm_job *g)
{
    return end_parameters(g, false);
}

uint64_t llm_head_parameters(const llm_job *g)
{
    return end_parameters(g, true);
}
