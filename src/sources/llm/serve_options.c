/* SPDX-License-Identifier: Apache-2.0 */
/* serve_options.c - completes serving options and checks them against the model: impossible ones
 * are refused first, with the conflicting numbers. */
#include "serve_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#define TERA UINT64_C(1000000000000)
#define GIGA UINT64_C(1000000000)
#define MOST_RANKS (UINT64_C(1) << 22)
#define MOST_BYTES (UINT64_C(1) << 60)
#define MOST_WORK (UINT64_C(1) << 62)

/* ---- defaults ---- */

static void default_u64(uint64_t *v, uint64_t otherwise)
{
    *v = *v ? *v : otherwise;
}

static void fill_ranks(orr_serve_ranks *r)
{
    uint32_t *const degrees[] = {&r->tp, &r->cp, &r->pp, &r->dp, &r->ep};
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        *degrees[i] = *degrees[i] ? *degrees[i] : 1;
}

bool serve_is_split(const orr_serve_options *o)
{
    const orr_serve_ranks *d = &o->decode;
    return d->tp || d->cp || d->pp || d->dp || d->ep;
}

static uint64_t count_ranks(const orr_serve_ranks *r)
{
    return (uint64_t)(r->tp ? r->tp : 1) * (r->cp ? r->cp : 1) * (r->pp ? r->pp : 1) *
           (r->dp ? r->dp : 1);
}

uint32_t orr_serve_rank_count(const orr_serve_options *opt)
{
    const uint64_t decode = serve_is_split(opt) ? count_ranks(&opt->decode) : 0;
    return (uint32_t)(count_ranks(&opt->ranks) + decode);
}

static void fill_in(orr_serve_options *o)
{
    const bool is_split = serve_is_split(o);
    fill_ranks(&o->ranks);
    if (is_split)
        fill_ranks(&o->decode);
    default_u64(&o->batch, is_split && o->decode.dp > o->ranks.dp ? o->decode.dp : o->ranks.dp);
    default_u64(&o->prompt, 1024);
    default_u64(&o->output, 128);
    default_u64(&o->max_batch, 256);
    default_u64(&o->kv_block, 16);
    default_u64(&o->peak, o->dtype == ORR_DTYPE_FP8 ? 1979 * TERA : 989 * TERA);
    default_u64(&o->memory_rate, 3350 * GIGA);
    default_u64(&o->link_rate, 450 * GIGA);
    default_u64(&o->node_rate, o->link_rate);
    default_u64(&o->transfer_rate, 50 * GIGA);
    default_u64(&o->device_bytes, 80 * GIGA);
}

void orr_serve_on(orr_serve_options *o, const orr_machine *m)
{
    const orr_Bps up = (orr_Bps)(m->up == ORR_MACHINE_UP_NONE ? 0 : m->up_GBps * 1e9);
    const orr_Bps out = (orr_Bps)(orr_machine_out_GBps(m) * 1e9);
    const bool has_nodes = up && out && m->nodes > 1;
    orr_net_config dims;
    orr_error err;
    if (up || out)
        o->link_rate = up ? up : out;
    o->node_ranks = has_nodes || m->up == ORR_MACHINE_UP_MESH ? m->devices : 0;
    o->node_rate = has_nodes ? out : 0;
    o->is_mesh = m->up == ORR_MACHINE_UP_MESH;
    /* Caches move inside a node where prompts and answers are, else between nodes. */
    if (up || out)
        o->transfer_rate = has_nodes || !up ? out : up;
    o->device_bytes = m->memory;
    o->machine = *m;
    if (strcmp(m->collectives, "torus") == 0 && !orr_machine_dims(m, &dims, &err) && !has_nodes)
        /* A message takes one link. */
        o->transfer_rate = (orr_Bps)(dims.bandwidth[0] * (1 << 30));
}

/* ---- what cannot be ---- */

typedef struct checker {
    const orr_model *m;
    const orr_serve_options *o;
    const orr_serve_ranks *r; /* the current ranks */
    const char *whose;        /* "" or "decode ": in front of their degrees */
    bool has_state;           /* some layers have one, made by: */
    orr_model_mixer mixer;
    orr_code code;
    orr_error *err;
} checker;

static void must_divide(
    checker *c, uint64_t degree, const char *degree_name, uint64_t whole, const char *what)
{
    if (!c->code && degree && whole % degree)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "%s%s %" PRIu64 " does not divide the %s of %s, %" PRIu64, c->whose,
                           degree_name, degree, what, c->m->name, whole);
}

static void check_degrees(checker *c)
{
    const orr_serve_ranks *r = c->r;
    uint64_t ranks = 1;
    const uint32_t degrees[] = {r->tp, r->cp, r->pp, r->dp};
    for (size_t i = 0; i < 4 && ranks <= MOST_RANKS; i++)
        ranks *= degrees[i];
    if (ranks > MOST_RANKS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "more than %" PRIu64 " %sranks", MOST_RANKS,
                           c->whose);
    else if (r->pp > c->m->layers)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "%s has %" PRIu64 " layers: too few for %spp %u",
                     c->m->name, c->m->layers, c->whose, r->pp);
    else if (r->ep > 1 && !c->m->experts)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%sep %u: %s has no experts", c->whose, r->ep,
                           c->m->name);
}

/* Experts on some ranks of a replica, or on whole replicas: nothing between. */
static void check_experts(checker *c)
{
    const orr_serve_ranks *r = c->r;
    const uint64_t blocks = (uint64_t)r->dp * r->cp;
    if (c->code || r->ep == 1)
        return;
    if (r->tp % r->ep == 0)
        return;
    const uint64_t times = r->ep / r->tp;
    if (r->ep % r->tp || blocks % times)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "%sep %u neither divides tp %u nor is a multiple of it that divides "
                           "tp x cp x dp = %" PRIu64,
                           c->whose, r->ep, r->tp, blocks * r->tp);
    else if (times % r->cp && r->cp % times)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "%sep %u is tp %u x %" PRIu64
                           ": that many blocks are neither a part of cp %u nor whole replicas",
                           c->whose, r->ep, r->tp, times, r->cp);
}

/* States are split by heads or channels; they stay where they are made. */
static void check_states(checker *c)
{
    const orr_model *m = c->m;
    const uint64_t tp = c->r->tp;
    if (c->code || !c->has_state)
        return;
    if (serve_is_split(c->o))
        c->code = orr_fail(
            c->err, ORR_EUSAGE, NULL,
            "%s has linear attention or a state space, whose states cannot move to separate "
            "decode ranks yet",
            m->name);
    else if (c->r->cp > 1)
        c->code = orr_fail(
            c->err, ORR_EUSAGE, NULL,
            "cp %u: %s has linear attention or a state space, whose sequence cannot be sharded "
            "yet",
            c->r->cp, m->name);
    else if (tp > 1 && c->mixer == ORR_MIX_MAMBA)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "tp %" PRIu64 ": Mamba layers cannot be sharded yet (Mamba-2 can)", tp);
    must_divide(c, tp, "tp", m->linear_heads, "heads of linear attention");
    must_divide(c, tp, "tp", m->linear_key_heads, "key heads of linear attention");
    must_divide(c, tp, "tp", m->ssm_heads, "heads of the state space");
    must_divide(c, tp, "tp", m->ssm_inner, "width of the state space");
    must_divide(c, tp, "tp", m->hidden, "channels");
}

static void check_widths(checker *c)
{
    const orr_model *m = c->m;
    const uint64_t tp = c->r->tp;
    check_states(c);
    must_divide(c, tp, "tp", m->heads, "heads");
    if (m->kv_heads && !orr_model_is_mla(m) && m->kv_heads % tp && tp % m->kv_heads)
        must_divide(c, tp, "tp", m->kv_heads, "key and value heads");
    if (m->ffn)
        must_divide(c, tp, "tp", m->ffn, "FFN width");
    if (!m->experts)
        return;
    must_divide(c, c->r->ep, "ep", m->experts, "experts");
    must_divide(c, c->r->ep < tp ? tp / c->r->ep : 1, "tp / ep =", m->expert_ffn, "expert width");
    must_divide(c, tp, "tp", m->shared_ffn * m->shared_experts, "shared experts' width");
}

static void check_ranks(checker *c, const orr_serve_ranks *r, const char *whose)
{
    if (c->code)
        return;
    c->r = r;
    c->whose = whose;
    check_degrees(c);
    check_experts(c);
    check_widths(c);
}

/* Who may do what. */
static void check_phases(checker *c)
{
    const orr_serve_options *o = c->o;
    const bool is_split = serve_is_split(o);
    if (c->code)
        return;
    if ((unsigned)o->phase >= ORR_SERVE_PHASES || (unsigned)o->dtype >= ORR_DTYPE_COUNT ||
        (unsigned)o->kv_dtype >= ORR_DTYPE_COUNT)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "an unknown phase or data type");
    else if (is_split && o->phase != ORR_SERVE_ALL)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "separate decode ranks require both phases");
    else if (is_split && o->decode.cp > 1)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL,
                     "decode cp %u: context parallelism applies to prefill only", o->decode.cp);
    else if (!is_split && o->ranks.cp > 1 && o->phase != ORR_SERVE_PREFILL)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "cp %u: context parallelism applies to prefill only; decode on separate "
                           "ranks, or not at all",
                           o->ranks.cp);
    else if (count_ranks(&o->ranks) + (is_split ? count_ranks(&o->decode) : 0) > MOST_RANKS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "more than %" PRIu64 " ranks", MOST_RANKS);
}

/* ---- requests ---- */

static void check_request(checker *c, size_t i, const orr_serve_request *q, uint64_t before)
{
    const orr_model *m = c->m;
    if (q->prompt < 1 || q->output < 1 || q->prompt > LLM_MOST_TOKENS ||
        q->output > LLM_MOST_TOKENS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "request %zu: %" PRIu64 " and %" PRIu64
                           " tokens; prompt and output have 1 to %" PRIu64,
                           i, q->prompt, q->output, LLM_MOST_TOKENS);
    else if (q->arrival_us < before || q->arrival_us > LLM_MOST_ARRIVAL)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "request %zu comes at %" PRIu64
                           " us: requests must arrive in order, and within %" PRIu64 " us",
                           i, q->arrival_us, LLM_MOST_ARRIVAL);
    else if (m->position == ORR_MODEL_LEARNED && m->max_positions &&
             q->prompt + q->output - 1 > m->max_positions)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL,
                     "request %zu: %" PRIu64 " + %" PRIu64 " tokens; %s has positions for %" PRIu64,
                     i, q->prompt, q->output, m->name, m->max_positions);
}

/* Every product of sizes stays within 64 bits when the work of the longest sequences does. */
static void check_work(checker *c, uint64_t longest, uint64_t requests)
{
    const orr_serve_options *o = c->o;
    const uint64_t together = requests < o->max_batch ? requests : o->max_batch;
    const orr_model_work work = {.tokens = longest};
    orr_model_flops flops;
    uint64_t kept;
    if (!c->code)
        c->code = orr_model_compute(c->m, &work, &flops, c->err);
    if (!c->code)
        c->code = orr_model_kv_cache(c->m, longest + o->kv_block, &kept, c->err);
    if (!c->code && (flops.forward > MOST_WORK / together || kept > MOST_BYTES / 8))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "%" PRIu64 " sequences of %" PRIu64
                           " tokens have more operations than can be counted",
                           together, longest);
}

static void check_requests(checker *c)
{
    const orr_serve_options *o = c->o;
    const orr_serve_request alike = {0, o->prompt, o->output};
    uint64_t longest = 0, before = 0;
    const size_t count = o->requests ? o->request_count : 1;
    if (!c->code && (count == 0 || count > LLM_MOST_REQUESTS || o->batch > LLM_MOST_REQUESTS))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "expected 1 to %d requests, not %" PRIu64,
                           LLM_MOST_REQUESTS, count == 1 ? o->batch : (uint64_t)count);
    for (size_t i = 0; i < count && !c->code; i++) {
        const orr_serve_request *q = o->requests ? &o->requests[i] : &alike;
        check_request(c, i + 1, q, before);
        before = q->arrival_us;
        longest = q->prompt + q->output > longest ? q->prompt + q->output : longest;
    }
    check_work(c, longest, o->requests ? count : o->batch);
}

static void check_limits(checker *c)
{
    const orr_serve_options *o = c->o;
    const struct {
        const char *what;
        uint64_t value, most;
    } limits[] = {
        {"max_batch", o->max_batch, 1 << 16},
        {"max_tokens", o->max_tokens, MOST_BYTES},
        {"chunk", o->chunk, MOST_BYTES},
        {"kv_block", o->kv_block, 1 << 16},
        {"peak", o->peak, MOST_BYTES},
        {"memory_rate", o->memory_rate, MOST_BYTES},
        {"link_rate", o->link_rate, MOST_BYTES},
        {"node_rate", o->node_rate, MOST_BYTES},
        {"transfer_rate", o->transfer_rate, MOST_BYTES},
        {"device_bytes", o->device_bytes, MOST_BYTES},
        {"kv_bytes", o->kv_bytes, MOST_BYTES},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits && !c->code; i++)
        if (limits[i].value > limits[i].most)
            c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%s is %" PRIu64 ", more than %" PRIu64,
                               limits[i].what, limits[i].value, limits[i].most);
}

/* Caches of keys and values, and states of one kind, are understood of what a sequence keeps. */
static void check_layers(checker *c)
{
    const orr_model *m = c->m;
    const char *cannot = c->code ? NULL : llm_cannot_share(m);
    uint64_t state = m->layers; /* the first layer that has one */
    for (uint64_t i = 0; !c->code && !cannot && i < m->layers; i++) {
        const bool has_state = orr_model_layer_state(m, i) > 0;
        if (has_state && state == m->layers)
            state = i;
        if (has_state && orr_model_is_attention(m, i))
            cannot = "attention and a state in one layer";
        else if (has_state && orr_model_mixer_of(m, i) != orr_model_mixer_of(m, state))
            cannot = "states of several kinds";
        else if (orr_model_ffn_of(m, i) == ORR_FFN_BOTH)
            cannot = "layers with an FFN in addition to their experts";
    }
    c->has_state = state < m->layers;
    c->mixer = c->has_state ? orr_model_mixer_of(m, state) : ORR_MIX_NONE;
    if (cannot)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "%s: %s cannot be served yet", m->name, cannot);
}

orr_code orr_serve_complete(const orr_model *m, orr_serve_options *opt, orr_error *err)
{
    checker c = {.m = m, .o = opt, .err = err};
    c.code = orr_model_check(m, err);
    check_layers(&c);
    fill_in(opt);
    check_ranks(&c, &opt->ranks, serve_is_split(opt) ? "prefill " : "");
    if (serve_is_split(opt))
        check_ranks(&c, &opt->decode, "decode ");
    check_phases(&c);
    check_limits(&c);
    check_requests(&c);
    return c.code;
}
