/* SPDX-License-Identifier: Apache-2.0 */
/* serve_schedule.c - transfer of KV caches from prefill to decode ranks: who sends which part to
 * whom.
 *
 * Both sides are cut by layers (pipeline) and by heads of keys and values (tensor parallelism), the
 * prefill side by tokens too (context parallelism).  Two ranks exchange the intersection of their
 * parts.  With fewer heads than ranks, several ranks have the same one: each receiver is served by
 * one of the senders, evenly.  MLA's cache is replicated on every rank and follows the same rule,
 * as one head.  The first token goes from the last prefill stage to the first decode stage; it
 * comes last, so a sequence continues only when its prompt has passed all stages.
 *
 * A rank sends to one receiver after another.  Ranks that have the same receivers begin with
 * different ones: in one order for all, each receiver in turn would get everything at once, while
 * the NICs of the others are idle.
 *
 * Job j is with replica j % P of one side and j % D of the other, so the jobs of one replica go
 * round D / gcd(P, D) partners. */
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/threads/stop.h"
#include "llm_impl.h"
#include "models/compute/atlas/chip_cost.h"
#include "serve_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a rank stands in its replica, and which heads it has. */
typedef struct place {
    uint32_t stage, context, tensor;
    uint64_t first_head, end_head;
    uint32_t copy, copies; /* of ranks that have the same heads */
} place;

static place place_of(const llm_pool *p, uint32_t rank)
{
    const uint32_t tp = p->ranks.tp;
    const uint64_t heads = orr_model_is_mla(p->m) ? 1 : p->m->kv_heads;
    place at = {
        .stage = rank / tp / p->ranks.cp, .context = rank / tp % p->ranks.cp, .tensor = rank % tp};
    at.copies = heads < tp ? (uint32_t)(tp / heads) : 1;
    at.copy = at.tensor % at.copies;
    const uint64_t each = heads < tp ? 1 : heads / tp;
    at.first_head = at.tensor / at.copies * each;
    at.end_head = at.first_head + each;
    return at;
}

static uint64_t common_heads(const place *a, const place *b)
{
    const uint64_t first = a->first_head > b->first_head ? a->first_head : b->first_head;
    const uint64_t end = a->end_head < b->end_head ? a->end_head : b->end_head;
    return first < end ? end - first : 0;
}

static void common_layers(
    const llm_pool *p, const llm_pool *q, const place *a, const place *b, uint32_t out[LLM_SIGHTS])
{
    const llm_stage *x = &p->stages[a->stage], *y = &q->stages[b->stage];
    const uint64_t first = x->first > y->first ? x->first : y->first;
    const uint64_t end = x->end < y->end ? x->end : y->end;
    memset(out, 0, LLM_SIGHTS * sizeof *out);
    for (uint64_t layer = first; layer < end; layer++)
        out[llm_layer_sees(p->m, layer)]++;
}

static orr_code add(llm_shares *s, llm_share share, orr_error *err)
{
    if (!orr_grow(&s->list, &s->room, s->count + 1))
        return orr_no_memory(err);
    s->list[s->count++] = share;
    return ORR_OK;
}

/* Of several senders with the same part one serves a receiver: neighbours serve neighbours. */
static bool is_due(uint32_t giver, uint32_t givers, uint32_t taker, uint32_t takers)
{
    return giver == (uint64_t)taker * givers / takers;
}

/* What a giver has for a taker. */
static orr_code add_common(const llm_pool *from,
                           const llm_pool *to,
                           const place *giver,
                           const place *taker,
                           uint32_t rank,
                           llm_shares *out,
                           orr_error *err)
{
    llm_share share = {.rank = rank};
    orr_code code = ORR_OK;
    share.heads = common_heads(giver, taker);
    common_layers(from, to, giver, taker, share.layers);
    const bool has_layers = share.layers[LLM_SEES_ALL] || share.layers[LLM_SEES_WINDOW];
    if (share.heads && has_layers && is_due(giver->copy, giver->copies, taker->copy, taker->copies))
        code = add(out, share, err);
    const bool is_end =
        giver->stage + 1 == from->ranks.pp && giver->context == 0 && taker->stage == 0;
    if (!code && is_end && is_due(giver->tensor, from->ranks.tp, taker->tensor, to->ranks.tp))
        code = add(out, (llm_share){.rank = rank, .is_token = true}, err);
    return code;
}

orr_code llm_shares_of(const llm_pool *p,
                       const llm_pool *other,
                       bool is_sender,
                       uint32_t rank,
                       llm_shares *out,
                       orr_error *err)
{
    const uint32_t others = other->ranks.tp * other->ranks.cp * other->ranks.pp;
    const place here = place_of(p, rank);
    orr_code code = ORR_OK;
    out->count = 0;
    for (uint32_t i = 0; i < others && !code; i++) {
        const place there = place_of(other, i);
        code = is_sender ? add_common(p, other, &here, &there, i, out, err)
                         : add_common(other, p, &there, &here, i, out, err);
    }
    return code;
}

static bool is_alike(const llm_share *a, const llm_share *b)
{
    return a->heads == b->heads && a->is_token == b->is_token &&
           memcmp(a->layers, b->layers, sizeof a->layers) == 0;
}

bool llm_shares_alike(const llm_shares *a, const llm_shares *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!is_alike(&a->list[i], &b->list[i]))
            return false;
    return true;
}

uint32_t llm_turned_rank(const llm_shares *s, size_t i, uint32_t turn)
{
    const llm_share *mine = &s->list[i];
    uint32_t alike = 0, nth = 0;
    for (size_t k = 0; k < s->count; k++) {
        nth += k < i && is_alike(&s->list[k], mine);
        alike += is_alike(&s->list[k], mine);
    }
    nth = (nth + turn % alike) % alike;
    for (size_t k = 0;; k++)
        if (is_alike(&s->list[k], mine) && nth-- == 0)
            return s->list[k].rank;
}

/* Whole blocks, as they lie in memory. */
uint64_t llm_share_bytes(const llm_pool *prefill, const llm_share *s, uint64_t tokens)
{
    const orr_model *m = prefill->m;
    const uint64_t numbers = orr_model_is_mla(m) ? kv_kept(&prefill->g) : 2 * m->head_dim;
    uint64_t blocks[LLM_SIGHTS], sum = 0;
    if (s->is_token)
        return LLM_TOKEN_BYTES;
    llm_cache_blocks(prefill, tokens, blocks);
    for (unsigned i = 0; i <= LLM_SEES_WINDOW; i++) /* models with states are not split */
        sum += s->layers[i] * blocks[i];
    return sum * prefill->opt->kv_block * s->heads * numbers * prefill->g.kv;
}

/* ---- replicas ---- */

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint32_t llm_partners(const llm_pool *p, const llm_pool *other)
{
    return other->ranks.dp / common_divisor(p->ranks.dp, other->ranks.dp);
}

uint32_t llm_partner_replica(const llm_pool *p,
                             const llm_pool *other,
                             uint32_t replica,
                             uint32_t partner)
{
    return (uint32_t)((replica + (uint64_t)partner * p->ranks.dp) % other->ranks.dp);
}

uint32_t llm_sender_turn(const llm_pool *p, const llm_pool *other, uint32_t replica, uint32_t rank)
{
    const uint32_t apart = other->ranks.dp / llm_partners(p, other);
    return rank / p->ranks.tp + p->ranks.cp * p->ranks.pp * (replica / apart);
}

/* Pools of ranks: memory, and the time of an iteration.
 *
 * An iteration is timed by the same recipes that write it, with a measuring pen (llm_pen.c). Layers
 * of one kind take the same time, so one of each kind is measured: the cost is that of a few
 * layers, whatever their number. */

/* ---- layers ---- */

llm_sees llm_layer_sees(const orr_model *m, uint64_t layer)
{
    if (orr_model_window(m, layer))
        return LLM_SEES_WINDOW;
    return orr_model_is_attention(m, layer)  ? LLM_SEES_ALL
           : orr_model_layer_state(m, layer) ? LLM_SEES_STATE
                                             : LLM_SEES_NOTHING;
}

static unsigned kind_of(const orr_model *m, uint64_t layer)
{
    const unsigned ffn = orr_model_is_moe(m, layer)                   ? 1
                         : orr_model_ffn_of(m, layer) == ORR_FFN_NONE ? 2
                                                                      : 0;
    return ffn * LLM_SIGHTS + llm_layer_sees(m, layer);
}

static unsigned sight_of_kind(unsigned kind)
{
    return kind % LLM_SIGHTS;
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
    for (unsigned i = 0; i < LLM_SIGHTS; i++)
        p->example[i] = UINT64_MAX;
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
    blocks[LLM_SEES_STATE] = blocks[LLM_SEES_STATE] > 0;
    blocks[LLM_SEES_NOTHING] = 0;
}

uint64_t llm_cache_bytes(const llm_pool *p, uint32_t stage, const uint64_t blocks[LLM_SIGHTS])
{
    const llm_stage *s = &p->stages[stage];
    uint64_t sum = 0, states = 0;
    for (unsigned kind = 0; kind < LLM_LAYER_KINDS; kind++)
        *(sight_of_kind(kind) == LLM_SEES_STATE ? &states : &sum) +=
            s->count[kind] * blocks[sight_of_kind(kind)];
    return sum * p->block_bytes + states * p->state_bytes;
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

/* A chip without products in 8 bits widens what it reads; how fast is not known, so its caches are
 * read as wide as its weights. */
static bool reads_fp8(const orr_serve_options *o)
{
    return o->kv_dtype == ORR_DTYPE_FP8 && (!o->chip || o->chip->peak_tflops[ORR_TYPE_FP8] > 0);
}

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
    const orr_software *const software = o->software ? o->software : orr_software_find("vllm");
    p->g = (llm_job){.m = p->m,
                     .opt = {.tp = r->tp,
                             .cp = r->cp,
                             .pp = r->pp,
                             .dp = r->dp,
                             .ep = r->ep,
                             .micro_batch = 1,
                             .chunks = 1,
                             .dtype = o->dtype,
                             .context_form = o->context_form,
                             .sends_once = software->sends_once,
                             .node_ranks = r->ep},
                     .mat = bytes,
                     .weight = bytes,
                     .act = o->dtype == ORR_DTYPE_FP8 ? 2 : bytes,
                     .kv = orr_dtype_bytes(o->kv_dtype),
                     .reads_fp8 = reads_fp8(o),
                     .virtual_stages = r->pp,
                     .software = software,
                     .token_ranks = (uint64_t)r->tp * r->cp,
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
    if (p->example[LLM_SEES_STATE] != UINT64_MAX)
        p->state_bytes = llm_state_bytes(&p->g, p->example[LLM_SEES_STATE]);
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

/* Two neighbours in a ring of context-parallel ranks, on two nodes or on one; LLM_NO_SHAPE: there
 * are none. */
static uint32_t place_ring(const llm_pool *p, llm_network *network, uint64_t first, bool is_far)
{
    const uint32_t cp = p->ranks.cp, tp = p->ranks.tp, node = p->opt->node_ranks;
    for (uint32_t i = 0; i + 1 < cp; i++) {
        const uint64_t one = first + (uint64_t)i * tp;
        if ((node && one / node != (one + tp) / node) == is_far)
            return llm_network_place(network, one, 2, tp);
    }
    return LLM_NO_SHAPE;
}

orr_code llm_pool_place(llm_pool *p, llm_network *network, orr_error *err)
{
    const llm_layout *l = &p->g.layout;
    const uint64_t stage = (uint64_t)l->tp * l->cp * l->dp;
    p->network = network;
    for (uint32_t i = 0; i < l->pp; i++) {
        uint32_t *shapes = p->stages[i].shapes;
        const uint64_t first = l->first_rank + i * stage;
        for (unsigned k = 0; k < LLM_SLOTS; k++)
            shapes[k] = LLM_NO_SHAPE;
        shapes[LLM_AXIS_TP] = llm_network_place(network, first, l->degree[LLM_AXIS_TP], 1);
        shapes[LLM_AXIS_EP] = llm_network_place(network, first, l->degree[LLM_AXIS_EP], 1);
        shapes[LLM_AXIS_CP] = llm_network_place(network, first, l->degree[LLM_AXIS_CP], l->tp);
        shapes[LLM_PEER_CP_PREVIOUS] = place_ring(p, network, first, false);
        shapes[LLM_PEER_CP_NEXT] = place_ring(p, network, first, true);
        if (shapes[LLM_PEER_CP_NEXT] == LLM_NO_SHAPE)
            shapes[LLM_PEER_CP_NEXT] = shapes[LLM_PEER_CP_PREVIOUS];
        shapes[LLM_PEER_NEXT] = llm_network_place(network, first, i + 1 < l->pp ? 2 : 1, stage);
    }
    return llm_network_lacks_memory(network) ? orr_no_memory(err) : ORR_OK;
}

/* ---- one iteration ---- */

/* Keys that `tokens` queries see, all of them together: each of them once. */
static uint64_t keys_seen(uint64_t tokens, uint64_t past, uint64_t window)
{
    return tokens + (window && past > window - 1 ? window - 1 : past);
}

static void llm_pass_add(
    const llm_pool *p, llm_pass *pass, uint64_t tokens, uint64_t past, bool is_decode)
{
    const orr_model_work work = {.tokens = tokens, .past = past};
    *(is_decode ? &pass->decode_tokens : &pass->prompt_tokens) += tokens;
    *(is_decode ? &pass->sight[LLM_SEES_STATE].decode_keys
                : &pass->sight[LLM_SEES_STATE].prompt_keys) += 1;
    for (unsigned i = 0; i <= LLM_SEES_WINDOW; i++) {
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

static void measure_layer(llm_pool *p, llm_pen *pen, uint64_t layer)
{
    llm_steps s;
    if (p->g.tokens)
        llm_describe_layer(&p->g, layer, &s);
    else
        llm_describe_idle_layer(&p->g, layer, &s);
    llm_steps_forward(pen, &s, "", 0, 0);
}

/* Embedding and sampling are blocks of their own to the host, as in a run.  Returns the us that the
 * device needs for sampling beyond the host: it ends that long after the host at the earliest. */
static double measure_ends(llm_pool *p, llm_pen *pen, uint32_t stage, double block_us)
{
    const bool is_last = stage + 1 == p->ranks.pp;
    llm_meter *const t = pen->meter;
    double rest = 0;
    if (stage == 0) {
        t->host_us += block_us;
        llm_embedding_after(pen, LLM_AFTER(0));
    } else {
        llm_put_receive(pen, "", llm_stage_message(&p->g), 0, LLM_PEER_PREVIOUS, LLM_AFTER(0));
    }
    if (is_last && p->g.pass->sampled) {
        t->host_us += block_us;
        const llm_meter before = *t;
        llm_put_sampling(pen, NULL, 0);
        rest = (double)(t->time - before.time) * 1e-6 - (t->host_us - before.host_us);
    }
    if (!is_last)
        llm_put_send(pen, "", llm_stage_message(&p->g), 0, LLM_PEER_NEXT, LLM_AFTER(0));
    return fmax(rest, 0);
}

/* Slowdown by the power cap, as in a run: extra ps. */
static uint64_t clock_loss(const llm_meter *t, double deviations)
{
    const double all_us = (double)t->time * 1e-6;
    const chip_cost sum = {
        .fixed_us = all_us - t->clocked_us, .clocked_us = t->clocked_us, .flops = t->flops};
    if (!t->chip || t->time >= INT64_MAX)
        return 0;
    const double slow = orr__chip_slowdown_of(t->chip, &sum, deviations);
    return (uint64_t)(t->clocked_us * 1e6 * (slow - 1) + 0.5);
}

static void add_errors(chip_errors *sum, const chip_errors *e)
{
    sum->low += e->low;
    sum->high += e->high;
    sum->low2 += e->low2;
    sum->high2 += e->high2;
    sum->common_low += e->common_low;
    sum->common_high += e->common_high;
}

/* As of a run (kernel_times.c): kernels, what steps add to them, and a host whose speed is not
 * known. */
static llm_certainty certainty_of(const llm_meter *t,
                                  const orr_software *software,
                                  double device_us,
                                  double rest_us)
{
    if (!t->chip)
        return (llm_certainty){0};
    const double moved = (double)t->moved * 1e-6;
    const double part = software->is_compiled ? ORR__COMPILED_ERROR : ORR__STEP_ERROR;
    const chip_errors e = orr__chip_errors_of(&t->errors, (device_us - moved) * part);
    const double factor = exp(software->knows_host ? ORR__KNOWN_HOST_ERROR : ORR__HOST_ERROR);
    const double all = fmax(device_us, t->host_us + rest_us);
    const double less = all - fmax(device_us, t->host_us / factor + rest_us);
    const double more = fmax(device_us, t->host_us * factor + rest_us) - all;
    return (llm_certainty){.all = all,
                           .moved = moved,
                           .low = sqrt(e.low * e.low + less * less),
                           .high = sqrt(e.high * e.high + more * more)};
}

/* How long a stage takes for the current pass, in ps. */
static uint64_t llm_stage_time(llm_pool *p, uint32_t stage, llm_certainty *out)
{
    const llm_stage *s = &p->stages[stage];
    const llm_meter fresh = {.peak = p->opt->peak,
                             .memory_rate = p->opt->memory_rate,
                             .link_rate = p->opt->link_rate,
                             .node_rate = p->opt->node_rate,
                             .node_ranks = p->opt->node_ranks,
                             .is_mesh = p->opt->is_mesh,
                             .network = p->network,
                             .shapes = s->shapes,
                             .collective_us = p->opt->chip ? p->g.software->collective_us : 0,
                             .chip = p->opt->chip,
                             .uses = 1};
    const double block_us = p->opt->chip ? p->g.software->block_us : 0;
    llm_meter sum = fresh, meter;
    llm_pen pen = {.g = &p->g, .meter = &sum};
    const double rest_us = p->g.tokens ? measure_ends(p, &pen, stage, block_us) : 0;
    pen.meter = &meter;
    for (unsigned kind = 0; kind < LLM_LAYER_KINDS; kind++) {
        uint64_t time = 0;
        if (!s->count[kind])
            continue;
        meter = fresh;
        meter.uses = (double)s->count[kind];
        measure_layer(p, &pen, s->example[kind]);
        if (meter.is_impossible)
            p->refused = meter;
        if (__builtin_mul_overflow(meter.time, s->count[kind], &time))
            time = INT64_MAX;
        sum.time = llm_later(sum.time, time);
        if (__builtin_mul_overflow(meter.moved, s->count[kind], &time))
            time = INT64_MAX;
        sum.moved = llm_later(sum.moved, time);
        add_errors(&sum.errors, &meter.errors);
        sum.clocked_us += meter.clocked_us * (double)s->count[kind];
        sum.flops += meter.flops * (double)s->count[kind];
        sum.host_us += (meter.host_us + block_us) * (double)s->count[kind];
    }
    if (sum.is_impossible)
        p->refused = sum;
    const uint64_t device = llm_later(sum.time, clock_loss(&sum, p->deviations));
    const double host_us = sum.host_us > 0 ? sum.host_us + rest_us : 0;
    const uint64_t host = host_us < 9e12 ? (uint64_t)(host_us * 1e6) : INT64_MAX;
    *out = certainty_of(&sum, p->g.software, (double)device * 1e-6, host_us - sum.host_us);
    return device > host ? device : host;
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

/* The largest operation of the current pass. */
static uint64_t llm_working_bytes(llm_pool *p)
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

/* Continuous batching.
 *
 * An *engine* is one replica, or the replicas that share experts and run in lockstep.  It forms an
 * iteration whenever its first stage is free: decoding sequences, one token each; then prompts in
 * progress; then waiting jobs in order of arrival, each only if its whole cache fits.  Stages work
 * on different iterations at the same time, so a replica has as many *groups* of sequences as
 * stages, of about the same size; an iteration takes one group, and a sequence stays in its group.
 *
 * Invariants: a sequence is in one iteration at a time while it decodes; prompts follow one another
 * through the stages. Iterations end in the order in which they began.  The result depends only on
 * the jobs and the estimate. Cost: each iteration visits the running sequences, and times a few
 * layers. */

enum {
    MOST_TURNS = 1 << 26,
    FEW_TURNS = 1 << 23
}; /* of all replicas, before equal scripts become one */

/* An iteration takes some ten microseconds, and a request of a few bytes may ask for millions. */
enum { MOST_ITERATIONS = 1 << 22, LISTED_ITERATIONS = 1 << 20, PER_REQUEST = 1024 };

typedef struct sequence {
    uint64_t job;  /* number in its replica */
    uint64_t left; /* tokens of the prompt that are not through yet */
    uint64_t cached, made, output;
    uint64_t ready_at; /* ps: its newest token is there */
    uint64_t turn;     /* that made it, from 1; 0: none of this pool */
    uint32_t group;
    uint64_t blocks[LLM_SIGHTS];
} sequence;

/* Blocks that are free again at some time. */
typedef struct returned {
    uint64_t at;
    uint64_t blocks[LLM_SIGHTS];
} returned;

/* A part of a sequence in the iteration that is being formed. */
typedef struct part {
    size_t sequence; /* among those that are running */
    uint64_t tokens;
    bool is_decode;
} part;

/* State of a replica. */
typedef struct replica_state {
    uint32_t replica;
    llm_script *script;
    uint32_t *order; /* its jobs as they come */
    size_t job_count;
    size_t come, begun; /* jobs of `order` that have come, and that were let in */
    sequence *running;
    size_t running_count, running_room;
    returned *returns; /* in the order of time */
    size_t first_return, return_count, return_room;
    uint64_t used[LLM_SIGHTS]; /* blocks */
    uint32_t group;            /* whose turn it is */
    uint64_t clock_us;         /* the latest arrival that a turn waits for */
    uint64_t link_free;        /* ps: the caches that it sends so far are sent */
    llm_turn turn;             /* being formed */
    part *parts;
    size_t part_count, part_room;
} replica_state;

typedef struct engine {
    llm_pool *pool;
    llm_schedule *s;
    replica_state *replicas;
    orr_map *known;       /* hash of a script -> which */
    uint64_t *stage_free; /* ps, by stage */
    uint64_t now;
    uint64_t end;             /* of the iteration that was begun last */
    uint64_t largest;         /* tokens of the largest iteration so far, of the whole pool */
    uint64_t turns;           /* of all scripts */
    uint64_t estimated, most; /* iterations that were timed; at most so many */
    orr_code code;
    orr_error *err;
} engine;

static bool no_room(engine *e)
{
    e->code = orr_no_memory(e->err);
    return false;
}

static serve_job *job_of(const engine *e, const replica_state *d, uint64_t number)
{
    return &e->s->jobs[d->replica + number * e->pool->ranks.dp];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- room for caches ---- */

/* Tokens whose keys and values a job has at its end: the last token is not attended to again. */
uint64_t llm_cached_tokens(const llm_pool *p, uint64_t prompt, uint64_t output)
{
    switch (p->duty) {
    case LLM_DOES_PREFILL:
        return prompt;
    case LLM_DOES_DECODE:
        return p->hands_over ? prompt + output - 1 : prompt + output;
    default:
        return prompt + output - 1;
    }
}

static bool fits(const engine *e, const replica_state *d, const uint64_t blocks[LLM_SIGHTS])
{
    uint64_t all[LLM_SIGHTS];
    for (unsigned i = 0; i < LLM_SIGHTS; i++)
        all[i] = d->used[i] + blocks[i];
    for (uint32_t i = 0; i < e->pool->ranks.pp; i++)
        if (llm_cache_bytes(e->pool, i, all) > e->pool->stages[i].kv_room)
            return false;
    return true;
}

static void take_blocks(engine *e, replica_state *d, const uint64_t blocks[LLM_SIGHTS])
{
    orr_serve_pool *r = &e->pool->report;
    for (unsigned i = 0; i < LLM_SIGHTS; i++)
        d->used[i] += blocks[i];
    for (uint32_t i = 0; i < e->pool->ranks.pp; i++) {
        const uint64_t bytes = llm_cache_bytes(e->pool, i, d->used);
        r->kv_peak = bytes > r->kv_peak ? bytes : r->kv_peak;
    }
}

static void return_later(engine *e, replica_state *d, const sequence *q, uint64_t at)
{
    if (!orr_grow(&d->returns, &d->return_room, d->return_count + 1)) {
        no_room(e);
        return;
    }
    /* A long cache leaves later than a short one that was done after it. */
    size_t i = d->return_count++;
    for (; i > d->first_return && d->returns[i - 1].at > at; i--)
        d->returns[i] = d->returns[i - 1];
    d->returns[i].at = at;
    memcpy(d->returns[i].blocks, q->blocks, sizeof q->blocks);
}

static void take_back(engine *e, replica_state *d)
{
    for (; d->first_return < d->return_count && d->returns[d->first_return].at <= e->now;
         d->first_return++)
        for (unsigned i = 0; i < LLM_SIGHTS; i++)
            d->used[i] -= d->returns[d->first_return].blocks[i];
}

/* ---- forming an iteration ---- */

/* What an iteration may still take. */
typedef struct allowance {
    uint64_t sequences, tokens, prompt_tokens;
} allowance;

static allowance allowance_of(const engine *e)
{
    const orr_serve_options *o = e->pool->opt;
    return (allowance){.sequences = o->max_batch,
                       .tokens = o->max_tokens ? o->max_tokens : UINT64_MAX,
                       .prompt_tokens = o->chunk ? o->chunk : UINT64_MAX};
}

static void take(engine *e, replica_state *d, allowance *a, size_t i, uint64_t tokens)
{
    sequence *q = &d->running[i];
    const bool is_decode = q->left == 0;
    if (!orr_grow(&d->parts, &d->part_room, d->part_count + 1)) {
        no_room(e);
        return;
    }
    d->parts[d->part_count++] = (part){i, tokens, is_decode};
    llm_pass_add(e->pool, &d->turn.pass, tokens, q->cached, is_decode);
    d->turn.pass.sampled += is_decode || tokens == q->left;
    if (is_decode && q->turn > d->turn.needs)
        d->turn.needs = q->turn;
    a->sequences--;
    a->tokens -= least(tokens, a->tokens);
    if (!is_decode)
        a->prompt_tokens -= least(tokens, a->prompt_tokens);
}

static void take_decoding(engine *e, replica_state *d, allowance *a)
{
    for (size_t i = 0; i < d->running_count && a->sequences && a->tokens; i++)
        if (d->running[i].group == d->group && d->running[i].left == 0 &&
            d->running[i].ready_at <= e->now)
            take(e, d, a, i, 1);
}

/* How much of a prompt is taken; 0: nothing.  A prompt that must not be chunked and exceeds the
 * limit runs alone. */
static uint64_t prompt_part(const engine *e,
                            const replica_state *d,
                            const allowance *a,
                            uint64_t left)
{
    if (a->sequences == 0)
        return 0;
    if (e->pool->opt->chunk)
        return least(left, least(a->tokens, a->prompt_tokens));
    return left <= a->tokens || d->part_count == 0 ? left : 0;
}

static void take_begun(engine *e, replica_state *d, allowance *a)
{
    for (size_t i = 0; i < d->running_count; i++) {
        const uint64_t left = d->running[i].group == d->group ? d->running[i].left : 0;
        const uint64_t tokens = left ? prompt_part(e, d, a, left) : 0;
        if (tokens)
            take(e, d, a, i, tokens);
    }
}

static void add_move(engine *e, replica_state *d, uint64_t job, uint64_t tokens)
{
    llm_script *s = d->script;
    if (!orr_grow(&s->moves, &s->move_room, s->move_count + 1)) {
        no_room(e);
        return;
    }
    s->moves[s->move_count++] = (llm_move){job, tokens};
    d->turn.move_count++;
}

/* The turn waits for a job that has just come: for its cache, or for the request itself. */
static void await(engine *e, replica_state *d, uint64_t number)
{
    const llm_pool *p = e->pool;
    const serve_job *j = job_of(e, d, number);
    if (p->hands_over && p->duty == LLM_DOES_DECODE) {
        add_move(e, d, number, j->prompt);
        return;
    }
    const uint64_t us = j->at / 1000000;
    if (us > d->clock_us)
        d->turn.arrival_us = d->clock_us = us;
}

static bool let_in(engine *e, replica_state *d, uint64_t number)
{
    const llm_pool *p = e->pool;
    const serve_job *j = job_of(e, d, number);
    const bool is_decode = p->duty == LLM_DOES_DECODE;
    sequence q = {.job = number,
                  .left = is_decode ? 0 : j->prompt,
                  .cached = is_decode ? j->prompt : 0,
                  .made = is_decode && p->hands_over,
                  .output = p->duty == LLM_DOES_PREFILL ? 1 : j->output,
                  .ready_at = j->at,
                  .group = d->group};
    llm_cache_blocks(p, llm_cached_tokens(p, j->prompt, j->output), q.blocks);
    if (!fits(e, d, q.blocks))
        return false;
    if (!orr_grow(&d->running, &d->running_room, d->running_count + 1))
        return no_room(e);
    take_blocks(e, d, q.blocks);
    d->running[d->running_count++] = q;
    await(e, d, number);
    return true;
}

/* A job whose only token was generated by prefill has nothing left. */
static bool is_over(const engine *e, const serve_job *j)
{
    return e->pool->duty == LLM_DOES_DECODE && e->pool->hands_over && j->output == 1;
}

/* How many more sequences the group may take, so that groups stay balanced. */
static uint64_t places_left(const engine *e, const replica_state *d)
{
    const uint64_t live = d->running_count + (d->come - d->begun), pp = e->pool->ranks.pp;
    uint64_t members = 0;
    for (size_t i = 0; i < d->running_count; i++)
        members += d->running[i].group == d->group;
    const uint64_t most = (live + pp - 1) / pp;
    return members < most ? most - members : 0;
}

static void take_waiting(engine *e, replica_state *d, allowance *a)
{
    uint64_t places = places_left(e, d);
    for (; d->begun < d->come && a->sequences && places && !e->code; d->begun++) {
        const uint64_t number = d->order[d->begun];
        const serve_job *j = job_of(e, d, number);
        const bool is_decode = e->pool->duty == LLM_DOES_DECODE;
        if (is_over(e, j))
            continue;
        const uint64_t tokens = is_decode ? least(1, a->tokens) : prompt_part(e, d, a, j->prompt);
        if (tokens == 0 || !let_in(e, d, number))
            return;
        take(e, d, a, d->running_count - 1, tokens);
        places--;
    }
}

/* The next group that has something to do. */
static bool form(engine *e, replica_state *d)
{
    const uint32_t pp = e->pool->ranks.pp;
    d->turn = (llm_turn){.first_move = d->script->move_count};
    d->part_count = 0;
    while (d->come < d->job_count && job_of(e, d, d->order[d->come])->at <= e->now)
        d->come++;
    take_back(e, d);
    for (uint32_t i = 0; i < pp && d->part_count == 0; i++) {
        allowance a = allowance_of(e);
        take_decoding(e, d, &a);
        take_begun(e, d, &a);
        take_waiting(e, d, &a);
        d->group = (d->group + 1) % pp;
    }
    return d->part_count > 0;
}

/* ---- running it ---- */

/* Tokens of blocks that share experts with a block of this replica.  A replica has cp blocks. */
static void share_tokens(engine *e)
{
    const orr_serve_ranks *r = &e->pool->ranks;
    uint64_t most = 0, sum = 0;
    for (uint32_t i = 0; i < e->pool->in_step; i++) {
        const uint64_t tokens = (llm_pass_tokens(&e->replicas[i].turn.pass) + r->cp - 1) / r->cp;
        most = tokens > most ? tokens : most;
        sum += tokens;
    }
    const uint32_t blocks = r->ep > r->tp ? r->ep / r->tp : 1;
    for (uint32_t i = 0; i < e->pool->in_step; i++) {
        e->replicas[i].turn.pass.busiest = most;
        e->replicas[i].turn.pass.shared_tokens = sum * (blocks / e->pool->in_step);
    }
}

/* Of the slowest of those that go in step; neighbours often have the same to do. */
static uint64_t slowest(engine *e, uint32_t stage)
{
    uint64_t most = 0;
    llm_certainty own, of_most = {0}, *all = &e->pool->certainty;
    for (uint32_t i = 0; i < e->pool->in_step; i++) {
        const llm_pass *pass = &e->replicas[i].turn.pass;
        if (i > 0 && memcmp(pass, &e->replicas[i - 1].turn.pass, sizeof *pass) == 0)
            continue;
        llm_pool_set_pass(e->pool, pass);
        const uint64_t time = llm_stage_time(e->pool, stage, &own);
        if (time >= most)
            of_most = own;
        most = time > most ? time : most;
    }
    /* Iterations launch equal kernels: their errors add up. */
    *all = (llm_certainty){.all = all->all + of_most.all,
                           .moved = all->moved + of_most.moved,
                           .low = all->low + of_most.low,
                           .high = all->high + of_most.high};
    return most;
}

static void pass_time(engine *e)
{
    uint64_t at = e->now;
    for (uint32_t i = 0; i < e->pool->ranks.pp; i++) {
        const uint64_t begin = at > e->stage_free[i] ? at : e->stage_free[i];
        at = e->stage_free[i] = llm_later(begin, slowest(e, i));
    }
    e->end = at;
    e->now = e->stage_free[0];
    if (at >= INT64_MAX && !e->code)
        e->code = orr_fail(e->err, ORR_EUSAGE, NULL,
                           "the requests take longer than 106 days, 2^63 ps, at these rates");
    const llm_meter *no = &e->pool->refused;
    if (no->is_impossible && !e->code)
        e->code =
            orr_fail(e->err, ORR_EUSAGE, NULL, "%s cannot run %s kernels in %s", no->chip->name,
                     orr_kernel_kind_name(no->kind), orr_kernel_type_name(no->type));
}

static void note_working(engine *e, const replica_state *d)
{
    const uint64_t tokens = llm_pass_tokens(&d->turn.pass);
    if (tokens <= e->largest)
        return;
    e->largest = tokens;
    llm_pool_set_pass(e->pool, &d->turn.pass);
    e->pool->report.working_bytes = llm_working_bytes(e->pool);
}

uint64_t llm_move_time(const llm_pool *p, const uint64_t blocks[LLM_SIGHTS])
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->ranks.pp; i++) {
        const uint64_t bytes = llm_cache_bytes(p, i, blocks);
        most = bytes > most ? bytes : most;
    }
    const unsigned __int128 ps = (unsigned __int128)most * 1000000000000u;
    const unsigned __int128 time = ps / p->opt->transfer_rate;
    return time < INT64_MAX ? (uint64_t)time : INT64_MAX;
}

/* A rank sends one cache after another. */
static uint64_t send_cache(const engine *e, replica_state *d, const sequence *q)
{
    const uint64_t begin = e->end > d->link_free ? e->end : d->link_free;
    d->link_free = llm_later(begin, llm_move_time(e->pool, q->blocks));
    return d->link_free;
}

static void finish(engine *e, replica_state *d, const sequence *q)
{
    serve_job *j = job_of(e, d, q->job);
    const bool leaves = e->pool->duty == LLM_DOES_PREFILL && e->pool->hands_over && j->output > 1;
    d->turn.tokens.last += !leaves;
    j->done_at = leaves ? send_cache(e, d, q) : e->end;
    if (leaves)
        add_move(e, d, q->job, j->prompt);
    return_later(e, d, q, j->done_at);
}

/* The first token of its request. */
static void note_first(engine *e, replica_state *d, const serve_job *j)
{
    llm_tokens *t = &d->turn.tokens;
    const uint64_t us = j->at / 1000000;
    t->earliest_us = t->first++ && t->earliest_us < us ? t->earliest_us : us;
    if (us > INT64_MAX - t->arrivals_us)
        e->code = orr_fail(e->err, ORR_EUSAGE, NULL,
                           "requests of one iteration came at times whose sum is above 2^63 us");
    else
        t->arrivals_us += us;
}

static void advance(engine *e, replica_state *d, const part *t)
{
    sequence *q = &d->running[t->sequence];
    q->cached += t->tokens;
    q->left -= t->is_decode ? 0 : t->tokens;
    if (q->left)
        return;
    if (!q->turn)
        job_of(e, d, q->job)->first_at = e->end;
    d->turn.tokens.made++;
    if (q->made == 0)
        note_first(e, d, job_of(e, d, q->job));
    q->made++;
    q->ready_at = e->end;
    q->turn = d->script->turn_count + 1;
    if (q->made == q->output)
        finish(e, d, q);
}

static bool is_running(const sequence *q)
{
    return q->left || q->made < q->output;
}

static void end_turn(engine *e, replica_state *d)
{
    llm_script *s = d->script;
    size_t kept = 0;
    for (size_t i = 0; i < d->part_count; i++)
        advance(e, d, &d->parts[i]);
    for (size_t i = 0; i < d->running_count; i++)
        if (is_running(&d->running[i]))
            d->running[kept++] = d->running[i];
    d->running_count = kept;
    note_working(e, d);
    if (!e->s->is_dropped && !orr_grow(&s->turns, &s->turn_room, s->turn_count + 1)) {
        no_room(e);
        return;
    }
    if (!e->s->is_dropped)
        s->turns[s->turn_count] = d->turn;
    s->turn_count++;
}

/* Traces of that many iterations are not needed: keep only their number. */
static void drop_turns(engine *e)
{
    for (size_t i = 0; i < e->s->script_count; i++) {
        orr_free(e->s->scripts[i].turns);
        e->s->scripts[i].turns = NULL;
        e->s->scripts[i].turn_room = 0;
    }
    e->s->is_dropped = true;
}

static orr_code too_long(engine *e)
{
    return orr_fail(e->err, ORR_EUSAGE, NULL,
                    "traces of more than %" PRIu64 " iterations of %" PRIu64
                    " layers, or of more than %d of all replicas, are too large to keep; figures "
                    "alone (no output) have no such limit",
                    LLM_MOST_LAYER_PASSES / e->pool->m->layers, e->pool->m->layers, MOST_TURNS);
}

static orr_code too_many(engine *e)
{
    return orr_fail(e->err, ORR_EUSAGE, NULL,
                    "the requests take more than %" PRIu64
                    " iterations, the most that are estimated: fewer requests, shorter answers or "
                    "larger batches take fewer",
                    e->most);
}

/* Each iteration has at most max_batch tokens of answers, and at most a chunk of prompts. */
static uint64_t least_iterations(const engine *e, const replica_state *r)
{
    const orr_serve_options *o = e->pool->opt;
    unsigned __int128 made = 0, read = 0;
    for (size_t i = 0; i < r->job_count; i++) {
        const serve_job *j = job_of(e, r, i);
        made += e->pool->duty == LLM_DOES_PREFILL ? 1 : j->output;
        read += e->pool->duty == LLM_DOES_DECODE ? 0 : j->prompt;
    }
    made /= o->max_batch;
    read = o->chunk ? read / o->chunk : 0;
    const unsigned __int128 least = made > read ? made : read;
    return least < UINT64_MAX ? (uint64_t)least : UINT64_MAX;
}

static void run_iteration(engine *e)
{
    e->pool->report.iterations++;
    share_tokens(e);
    pass_time(e);
    for (uint32_t i = 0; i < e->pool->in_step && !e->code; i++)
        end_turn(e, &e->replicas[i]);
    e->turns += e->pool->in_step;
    if (++e->estimated > e->most && !e->code)
        e->code = too_many(e);
    if (!e->code && orr__stop_asked())
        no_room(e);
    const uint64_t passes = e->replicas[0].script->turn_count * e->pool->m->layers;
    if (e->s->only_figures && !e->s->is_dropped &&
        (passes > LLM_FEW_LAYER_PASSES || e->turns > FEW_TURNS))
        drop_turns(e);
    if (!e->code && !e->s->is_dropped && (passes > LLM_MOST_LAYER_PASSES || e->turns > MOST_TURNS))
        e->code = too_long(e);
}

/* ---- an engine ---- */

static void note_time(const engine *e, uint64_t at, uint64_t *earliest)
{
    if (at > e->now && at < *earliest)
        *earliest = at;
}

/* When something changes for a replica that can do nothing now. */
static uint64_t next_event(const engine *e)
{
    uint64_t earliest = UINT64_MAX;
    for (uint32_t i = 0; i < e->pool->in_step; i++) {
        const replica_state *d = &e->replicas[i];
        if (d->come < d->job_count)
            note_time(e, job_of(e, d, d->order[d->come])->at, &earliest);
        if (d->first_return < d->return_count)
            note_time(e, d->returns[d->first_return].at, &earliest);
        for (size_t k = 0; k < d->running_count; k++)
            note_time(e, d->running[k].ready_at, &earliest);
    }
    return earliest;
}

static bool has_work(const engine *e)
{
    for (uint32_t i = 0; i < e->pool->in_step; i++)
        if (e->replicas[i].running_count || e->replicas[i].begun < e->replicas[i].job_count)
            return true;
    return false;
}

static void run_engine(engine *e)
{
    while (!e->code && has_work(e)) {
        bool any = false;
        for (uint32_t i = 0; i < e->pool->in_step && !e->code; i++)
            any |= form(e, &e->replicas[i]);
        if (any && !e->code)
            run_iteration(e);
        if (e->code || any || !has_work(e))
            continue;
        const uint64_t next = next_event(e);
        if (next == UINT64_MAX)
            e->code = orr_fail(e->err, ORR_EBUG, NULL, "requests wait for nothing");
        e->now = next;
    }
}

/* ---- setting up ---- */

static int compare_jobs(const void *a, const void *b, void *context)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const engine *e = ((void **)context)[0];
    const replica_state *d = ((void **)context)[1];
    const uint64_t p = job_of(e, d, x)->at, q = job_of(e, d, y)->at;
    if (p != q)
        return p < q ? -1 : 1;
    return x < y ? -1 : x > y;
}

static size_t jobs_of_replica(const engine *e, uint32_t replica)
{
    const uint32_t dp = e->pool->ranks.dp;
    return e->s->job_count > replica ? (e->s->job_count - replica + dp - 1) / dp : 0;
}

static void open_replica(engine *e, replica_state *d, uint32_t replica)
{
    void *context[] = {e, d};
    *d = (replica_state){.replica = replica, .job_count = jobs_of_replica(e, replica)};
    d->script = &e->s->scripts[e->s->script_count];
    e->s->script_count++;
    d->order = orr_alloc(d->job_count + 1, sizeof *d->order);
    if (!d->order) {
        no_room(e);
        return;
    }
    for (size_t i = 0; i < d->job_count; i++)
        d->order[i] = (uint32_t)i;
    qsort_r(d->order, d->job_count, sizeof *d->order, compare_jobs, context);
}

static void close_replica(replica_state *d)
{
    orr_free(d->order);
    orr_free(d->running);
    orr_free(d->returns);
    orr_free(d->parts);
}

/* ---- engines that have the same to do ---- */

static bool is_same_job(const serve_job *a, const serve_job *b)
{
    return a->at == b->at && a->prompt == b->prompt && a->output == b->output;
}

static bool is_same_replica(const engine *e, uint32_t replica, uint32_t before)
{
    const size_t count = jobs_of_replica(e, replica);
    const replica_state a = {.replica = replica}, b = {.replica = before};
    if (count != jobs_of_replica(e, before))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_same_job(job_of(e, &a, i), job_of(e, &b, i)))
            return false;
    return true;
}

/* Do the replicas from `first` on have the same to do as those before them? */
static bool is_repeated(const engine *e, uint32_t first)
{
    const uint32_t n = e->pool->in_step;
    for (uint32_t i = 0; i < n; i++)
        if (first < n || !is_same_replica(e, first + i, first + i - n))
            return false;
    return true;
}

static void repeat(engine *e, uint32_t first)
{
    const uint32_t n = e->pool->in_step;
    for (uint32_t i = first; i < first + n; i++) {
        const replica_state from = {.replica = i - n}, to = {.replica = i};
        e->s->script_of[i] = e->s->script_of[i - n];
        for (size_t k = 0; k < jobs_of_replica(e, i); k++)
            *job_of(e, &to, k) = *job_of(e, &from, k);
    }
    e->pool->report.iterations += e->s->scripts[e->s->script_of[first]].turn_count;
}

/* ---- scripts that are the same ---- */

static uint64_t script_hash(const llm_script *x)
{
    const orr_content_hash turns = orr_content_hash_of(
        (orr_span){(const uint8_t *)x->turns, x->turn_count * sizeof *x->turns});
    const orr_content_hash moves = orr_content_hash_of(
        (orr_span){(const uint8_t *)x->moves, x->move_count * sizeof *x->moves});
    return turns.low ^ moves.high;
}

static bool is_same_script(const llm_script *a, const llm_script *b)
{
    return a->turn_count == b->turn_count && a->move_count == b->move_count &&
           (a->turn_count == 0 ||
            memcmp(a->turns, b->turns, a->turn_count * sizeof *a->turns) == 0) &&
           (a->move_count == 0 ||
            memcmp(a->moves, b->moves, a->move_count * sizeof *a->moves) == 0);
}

static void free_script(llm_script *x)
{
    orr_free(x->turns);
    orr_free(x->moves);
    *x = (llm_script){0};
}

/* One of each: of those from `first` on, which are of the replicas from `replica` on. */
static void merge_scripts(engine *e, size_t first, uint32_t replica)
{
    llm_schedule *s = e->s;
    const size_t end = s->script_count;
    for (size_t i = first; i < end && s->is_dropped; i++) /* nothing to compare */
        s->script_of[replica + (i - first)] = (uint32_t)i;
    if (s->is_dropped)
        return;
    s->script_count = first;
    for (size_t i = first; i < end; i++) {
        llm_script x = s->scripts[i];
        const uint64_t hash = script_hash(&x);
        uint32_t same = orr_map_find(e->known, hash, UINT32_MAX);
        s->scripts[i] = (llm_script){0};
        if (same != UINT32_MAX && is_same_script(&s->scripts[same], &x)) {
            free_script(&x);
        } else {
            same = (uint32_t)s->script_count++;
            s->scripts[same] = x;
            if (!orr_map_put(e->known, hash, same, NULL))
                no_room(e);
        }
        s->script_of[replica + (i - first)] = same;
    }
}

static void run_replicas(engine *e, uint32_t first)
{
    const uint32_t n = e->pool->in_step;
    const size_t scripts = e->s->script_count;
    memset(e->stage_free, 0, e->pool->ranks.pp * sizeof *e->stage_free);
    e->now = 0;
    for (uint32_t i = 0; i < n; i++)
        open_replica(e, &e->replicas[i], first + i);
    for (uint32_t i = 0; i < n && !e->code && e->s->only_figures; i++)
        if (least_iterations(e, &e->replicas[i]) > e->most)
            e->code = too_many(e);
    if (!e->code)
        run_engine(e);
    for (uint32_t i = 0; i < n; i++)
        close_replica(&e->replicas[i]);
    merge_scripts(e, scripts, first);
}

orr_code llm_schedule_make(llm_pool *p, llm_schedule *s, orr_error *err)
{
    const uint32_t dp = p->ranks.dp;
    engine e = {.pool = p, .s = s, .err = err, .most = MOST_ITERATIONS};
    if (p->opt->requests)
        e.most = LISTED_ITERATIONS + (uint64_t)PER_REQUEST * p->opt->request_count;
    s->scripts = orr_alloc(dp, sizeof *s->scripts);
    s->script_of = orr_alloc(dp, sizeof *s->script_of);
    e.known = orr_map_create(dp);
    e.replicas = orr_alloc(p->in_step, sizeof *e.replicas);
    e.stage_free = orr_alloc(p->ranks.pp, sizeof *e.stage_free);
    if (!s->scripts || !s->script_of || !e.known || !e.replicas || !e.stage_free)
        no_room(&e);
    for (uint32_t first = 0; first < dp && !e.code; first += p->in_step) {
        if (is_repeated(&e, first))
            repeat(&e, first);
        else
            run_replicas(&e, first);
    }
    llm_pool_set_pass(p, NULL);
    orr_map_destroy(e.known);
    orr_free(e.replicas);
    orr_free(e.stage_free);
    return e.code;
}

void llm_schedule_fini(llm_schedule *s)
{
    for (size_t i = 0; s->scripts && i < s->script_count; i++)
        free_script(&s->scripts[i]);
    orr_free(s->scripts);
    orr_free(s->script_of);
    orr_free(s->jobs);
}
