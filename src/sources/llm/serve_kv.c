/* SPDX-License-Identifier: Apache-2.0 */
/* serve_kv.c - caches that move from the ranks that prefill to those that decode: who sends which part to whom.
 *
 * Both sides are cut by layers (pipeline) and by heads of keys and values (tensor parallelism), the prefill side by
 * tokens too (context parallelism).  Two ranks exchange what both have.  Where heads are fewer than ranks, several
 * ranks have the same one: each of the takers is served by one of the givers, evenly.  What MLA keeps is whole on
 * every rank and goes by the same rule, as one head.  The token that prefill made goes from the last stage to the first
 * one of the takers; it comes last, so a sequence goes on when its prompt is through all stages.
 *
 * Job j is with replica j % P of one side and j % D of the other, so the jobs of one replica go round
 * D / gcd(P, D) partners. */
#include "serve_impl.h"

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
    out[LLM_SEES_ALL] = out[LLM_SEES_WINDOW] = 0;
    for (uint64_t layer = first; layer < end; layer++)
        out[orr_model_window(p->m, layer) ? LLM_SEES_WINDOW : LLM_SEES_ALL]++;
}

static orr_code add(llm_shares *s, llm_share share, orr_error *err)
{
    if (!orr_grow(&s->list, &s->room, s->count + 1))
        return orr_no_memory(err);
    s->list[s->count++] = share;
    return ORR_OK;
}

/* Of several givers that have the same, one serves a taker: neighbours the neighbours. */
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

bool llm_shares_alike(const llm_shares *a, const llm_shares *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const llm_share *x = &a->list[i], *y = &b->list[i];
        if (x->heads != y->heads || x->is_token != y->is_token || x->layers[0] != y->layers[0] ||
            x->layers[1] != y->layers[1])
            return false;
    }
    return true;
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
    for (unsigned i = 0; i < LLM_SIGHTS; i++)
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
