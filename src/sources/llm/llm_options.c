/* SPDX-License-Identifier: Apache-2.0 */
/* llm_options.c - the layout of ranks: coordinates, groups and neighbours, all by arithmetic.
 *
 * Tensor-parallel ranks are next to each other, then context, data and pipeline: the heaviest
 * traffic is between neighbours. Experts are spread over the ranks of a data block (dp and cp
 * together), ep consecutive ones. */
#include "llm_impl.h"
#include "llm_tape.h"

#include "base/dtypes.h"

#include <inttypes.h>
#include <string.h>

typedef struct place {
    uint32_t tensor, context, data, pipeline;
    uint32_t block; /* data and context in one number */
} place;

static place place_of(const llm_layout *l, uint32_t rank)
{
    const uint32_t block = rank / l->tp % (l->dp * l->cp);
    return (place){.tensor = rank % l->tp,
                   .context = block % l->cp,
                   .data = block / l->cp,
                   .pipeline = rank / (l->tp * l->cp * l->dp),
                   .block = block};
}

static uint32_t rank_at(const llm_layout *l, uint32_t pipeline, uint32_t block, uint32_t tensor)
{
    return (pipeline * l->dp * l->cp + block) * l->tp + tensor;
}

static uint32_t blocks_of(const llm_layout *l)
{
    return l->dp * l->cp;
}

/* How many groups an axis has. */
static uint64_t group_count(const llm_layout *l, llm_axis axis)
{
    if (axis == LLM_AXIS_TIED) /* the ranks of stages without an embedding are in none */
        return l->ranks / l->pp;
    return l->ranks / l->degree[axis];
}

/* Axes with more than one rank a group get numbers, one after the other. */
static uint64_t number_groups(llm_layout *l, uint64_t next)
{
    for (unsigned axis = 0; axis < LLM_AXES; axis++) {
        if (l->degree[axis] == 1)
            continue;
        l->first[axis] = next;
        next += group_count(l, (llm_axis)axis);
    }
    return next;
}

/* As Megatron-Core's embedding group (get_embedding_ranks): the first stage, that
 * of a tied head, and that of MTP layers, which look up further tokens. */
static uint32_t find_tied(llm_layout *l, const orr_llm_options *opt, bool is_tied)
{
    const uint32_t mtp = llm_mtp_rank(opt);
    const uint32_t head = is_tied && !llm_ends_meet(opt) ? opt->pp - 1 : 0;
    uint32_t n = 1; /* rank 0 */
    if (mtp && mtp < head)
        l->tied[n++] = mtp;
    if (head)
        l->tied[n++] = head;
    if (mtp > head)
        l->tied[n++] = mtp;
    return n;
}

bool llm_has_tied(const llm_layout *l, uint32_t pipeline_rank)
{
    bool has = false;
    for (uint32_t i = 0; i < l->degree[LLM_AXIS_TIED]; i++)
        has = has || l->tied[i] == pipeline_rank;
    return has && l->degree[LLM_AXIS_TIED] > 1;
}

void llm_layout_init(llm_layout *l, const orr_llm_options *opt, bool is_tied)
{
    *l = (llm_layout){.tp = opt->tp, .cp = opt->cp, .pp = opt->pp, .dp = opt->dp, .ep = opt->ep};
    l->is_dual = llm_is_dual(opt);
    l->ranks = orr_llm_ranks(opt);
    l->degree[LLM_AXIS_TP] = l->tp;
    l->degree[LLM_AXIS_CP] = l->cp;
    l->shard = opt->shard ? opt->shard : blocks_of(l);
    l->degree[LLM_AXIS_DATA] = l->shard;
    l->degree[LLM_AXIS_REPLICA] = blocks_of(l) / l->shard;
    l->degree[LLM_AXIS_EP] = l->ep;
    l->spans_tensor = opt->ep > 1 && opt->expert_tp && opt->expert_tp < opt->tp;
    l->degree[LLM_AXIS_EXPERT_DATA] =
        l->ep > 1 ? blocks_of(l) * (l->spans_tensor ? l->tp : 1) / l->ep : 1;
    if (l->is_dual) {
        l->degree[LLM_AXIS_DATA] *= 2;
        l->degree[LLM_AXIS_EXPERT_DATA] *= l->ep > 1 ? 2 : 1;
    }
    l->degree[LLM_AXIS_TIED] = find_tied(l, opt, is_tied);
    l->degree[LLM_AXIS_WORLD] = l->ranks;
    l->degree[LLM_AXIS_STAGE] = opt->dtype == ORR_DTYPE_FP8 && opt->fp8_scaling == ORR_FP8_DELAYED
                                    ? l->tp * blocks_of(l)
                                    : 1;
    number_groups(l, 1);
}

uint64_t llm_layout_init_serving(llm_layout *l,
                                 const orr_llm_options *opt,
                                 uint32_t first_rank,
                                 uint64_t first_group)
{
    *l = (llm_layout){.tp = opt->tp, .cp = opt->cp, .pp = opt->pp, .dp = opt->dp, .ep = opt->ep};
    l->ranks = orr_llm_ranks(opt);
    l->first_rank = first_rank;
    l->spans_tensor = true;
    for (unsigned axis = 0; axis < LLM_AXES; axis++)
        l->degree[axis] = 1;
    l->degree[LLM_AXIS_TP] = l->tp;
    l->degree[LLM_AXIS_CP] = l->cp;
    l->degree[LLM_AXIS_EP] = l->ep > l->tp ? l->ep : 1;
    return number_groups(l, first_group);
}

/* The number of a rank's group among those of its axis. */
static uint32_t group_index(const llm_layout *l, llm_axis axis, uint32_t rank)
{
    const place at = place_of(l, rank);
    /* Mirrored pipeline ranks have the same weights. */
    const uint32_t mirror = l->pp - 1 - at.pipeline;
    const uint32_t weights = l->is_dual && mirror < at.pipeline ? mirror : at.pipeline;
    switch (axis) {
    case LLM_AXIS_TP:
        return rank / l->tp;
    case LLM_AXIS_CP:
        return (at.pipeline * l->dp + at.data) * l->tp + at.tensor;
    case LLM_AXIS_DATA:
        return (weights * (blocks_of(l) / l->shard) + at.block / l->shard) * l->tp + at.tensor;
    case LLM_AXIS_REPLICA:
        return (at.pipeline * l->shard + at.block % l->shard) * l->tp + at.tensor;
    case LLM_AXIS_EP:
        if (l->spans_tensor)
            return rank / l->ep;
        return (at.pipeline * (blocks_of(l) / l->ep) + at.block / l->ep) * l->tp + at.tensor;
    case LLM_AXIS_EXPERT_DATA:
        if (l->spans_tensor)
            return weights * l->ep + rank % l->ep;
        return (weights * l->ep + at.block % l->ep) * l->tp + at.tensor;
    case LLM_AXIS_TIED:
        return rank % (l->tp * blocks_of(l));
    case LLM_AXIS_STAGE:
        return at.pipeline;
    default:
        return 0;
    }
}

/* Of a group of two pipeline ranks the second half is on the mirrored one. */
static uint32_t opposite(const llm_layout *l, llm_axis axis, uint32_t pipeline, uint32_t *i)
{
    const uint32_t half = l->degree[axis] / 2;
    if (!l->is_dual || *i < half)
        return pipeline;
    *i -= half;
    return l->pp - 1 - pipeline;
}

static uint32_t member(const llm_layout *l, llm_axis axis, uint32_t group, uint32_t i)
{
    uint32_t pipeline;
    const uint32_t tensor = group % l->tp, rest = group / l->tp, ep = l->ep;
    const uint32_t replicas = l->shard ? blocks_of(l) / l->shard : 1;
    const uint32_t ep_groups = l->spans_tensor ? 1 : blocks_of(l) / ep;
    switch (axis) {
    case LLM_AXIS_TP:
        return group * l->tp + i;
    case LLM_AXIS_CP:
        return rank_at(l, rest / l->dp, rest % l->dp * l->cp + i, tensor);
    case LLM_AXIS_DATA:
        pipeline = opposite(l, axis, rest / replicas, &i);
        return rank_at(l, pipeline, rest % replicas * l->shard + i, tensor);
    case LLM_AXIS_REPLICA:
        return rank_at(l, rest / l->shard, i * l->shard + rest % l->shard, tensor);
    case LLM_AXIS_EP:
        if (l->spans_tensor)
            return group * ep + i;
        return rank_at(l, rest / ep_groups, rest % ep_groups * ep + i, tensor);
    case LLM_AXIS_EXPERT_DATA:
        pipeline = opposite(l, axis, l->spans_tensor ? group / ep : rest / ep, &i);
        if (l->spans_tensor)
            return pipeline * (l->tp * blocks_of(l)) + i * ep + group % ep;
        return rank_at(l, pipeline, i * ep + rest % ep, tensor);
    case LLM_AXIS_TIED:
        return group + l->ranks / l->pp * l->tied[i];
    case LLM_AXIS_STAGE:
        return group * (l->tp * blocks_of(l)) + i;
    default:
        return i;
    }
}

static const llm_axis axis_of_tape[ORR__TAPE_AXES] = {
    [ORR__TAPE_TP] = LLM_AXIS_TP,           [ORR__TAPE_CP] = LLM_AXIS_CP,
    [ORR__TAPE_DATA] = LLM_AXIS_DATA,       [ORR__TAPE_EP] = LLM_AXIS_EP,
    [ORR__TAPE_WORLD] = LLM_AXIS_WORLD,     [ORR__TAPE_EXPERT_DATA] = LLM_AXIS_EXPERT_DATA,
    [ORR__TAPE_REPLICA] = LLM_AXIS_REPLICA,
};

uint32_t orr__llm_view_degree(const orr__llm_view *v, orr__tape_axis axis)
{
    return v->job->layout.degree[axis_of_tape[axis]];
}

uint32_t orr__llm_view_groups(const orr__llm_view *v, orr__tape_axis axis)
{
    return (uint32_t)group_count(&v->job->layout, axis_of_tape[axis]);
}

void orr__llm_view_members(const orr__llm_view *v,
                           orr__tape_axis axis,
                           uint32_t group,
                           uint32_t *out)
{
    const llm_axis own = axis_of_tape[axis];
    for (uint32_t i = 0; i < v->job->layout.degree[own]; i++)
        out[i] = member(&v->job->layout, own, group, i);
}

void llm_layout_values(const llm_layout *l, uint32_t rank, int64_t values[LLM_SLOTS])
{
    const place at = place_of(l, rank);
    const uint32_t stage = l->ranks / l->pp, ring = at.block - at.context;
    for (unsigned axis = 0; axis < LLM_AXES; axis++)
        values[axis] =
            l->first[axis] ? (int64_t)(l->first[axis] + group_index(l, (llm_axis)axis, rank)) : 0;
    values[LLM_PEER_NEXT] = (rank + stage) % l->ranks;
    values[LLM_PEER_PREVIOUS] = (rank + l->ranks - stage) % l->ranks;
    values[LLM_PEER_CP_NEXT] = rank_at(l, at.pipeline, ring + (at.context + 1) % l->cp, at.tensor);
    values[LLM_PEER_CP_PREVIOUS] =
        rank_at(l, at.pipeline, ring + (at.context + l->cp - 1) % l->cp, at.tensor);
    for (unsigned peer = LLM_AXES; peer < LLM_SLOTS; peer++)
        values[peer] += l->first_rank;
}

orr_code llm_layout_add_groups(const llm_layout *l, orr_set *s, orr_error *err)
{
    uint32_t *ranks = orr_alloc(l->ranks, sizeof *ranks);
    orr_code code = ranks ? ORR_OK : orr_no_memory(err);
    for (unsigned axis = 0; axis < LLM_AXES; axis++) {
        const uint64_t count = l->first[axis] ? group_count(l, (llm_axis)axis) : 0;
        for (uint32_t k = 0; k < count && !code; k++) {
            for (uint32_t i = 0; i < l->degree[axis]; i++)
                ranks[i] = l->first_rank + member(l, (llm_axis)axis, k, i);
            code = orr_set_add_group(s, l->first[axis] + k, ranks, l->degree[axis], err);
        }
    }
    orr_free(ranks);
    return code;
}

/* Completes options and checks them against the model: impossible ones are refused first, with the
 * two conflicting numbers and a remedy. */

static const orr__dtype_id dtypes[ORR_DTYPE_COUNT] = {
    [ORR_DTYPE_BF16] = ORR__BF16, [ORR_DTYPE_FP16] = ORR__FP16,   [ORR_DTYPE_FP8] = ORR__FP8,
    [ORR_DTYPE_FP32] = ORR__FP32, [ORR_DTYPE_MXFP8] = ORR__MXFP8, [ORR_DTYPE_NVFP4] = ORR__NVFP4,
};

static const char *const pipelines[ORR_PIPELINE_COUNT] = {
    "1f1b", "gpipe", "interleaved", "zero-bubble", "zb-v", "dualpipe-v", "own", "dualpipe"};

static bool is_named(orr_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

const char *orr_dtype_name(orr_dtype d)
{
    return (unsigned)d < ORR_DTYPE_COUNT ? orr__dtype_of(dtypes[d])->name : "?";
}

bool orr_dtype_find(orr_str name, orr_dtype *out)
{
    for (unsigned i = 0; i < ORR_DTYPE_COUNT; i++)
        if (is_named(name, orr__dtype_of(dtypes[i])->name)) {
            *out = (orr_dtype)i;
            return true;
        }
    return false;
}

uint64_t orr_dtype_bytes(orr_dtype d)
{
    return (unsigned)d < ORR_DTYPE_COUNT ? orr__dtype_bytes(orr__dtype_of(dtypes[d])) : 0;
}

const char *orr_pipeline_name(orr_pipeline p)
{
    return (unsigned)p < ORR_PIPELINE_COUNT ? pipelines[p] : "?";
}

bool orr_pipeline_find(orr_str name, orr_pipeline *out)
{
    for (unsigned i = 0; i < ORR_PIPELINE_COUNT; i++)
        if (is_named(name, pipelines[i])) {
            *out = (orr_pipeline)i;
            return true;
        }
    return false;
}

bool orr_layer_parts_find(orr_str words, uint32_t *out, orr_str *bad)
{
    static const char *const names[] = {"norm", "attention", "mla-up", "activation",
                                        "ffn",  "experts",   "shared"};
    *out = 0;
    for (size_t at = 0; at <= words.len;) {
        size_t end = at, i = 0;
        while (end < words.len && words.ptr[end] != ',')
            end++;
        *bad = (orr_str){words.ptr + at, end - at};
        while (i < sizeof names / sizeof *names && !is_named(*bad, names[i]))
            i++;
        if (i == sizeof names / sizeof *names)
            return false;
        *out |= UINT32_C(1) << i;
        at = end + 1;
    }
    return true;
}

uint32_t orr_llm_ranks(const orr_llm_options *opt)
{
    return (opt->tp ? opt->tp : 1) * (opt->cp ? opt->cp : 1) * (opt->pp ? opt->pp : 1) *
           (opt->dp ? opt->dp : 1);
}

/* ---- defaults ---- */

static void default_u32(uint32_t *v, uint32_t otherwise)
{
    *v = *v ? *v : otherwise;
}

static void default_u64(uint64_t *v, uint64_t otherwise)
{
    *v = *v ? *v : otherwise;
}

/* FSDP reduces each layer on its own. */
uint64_t orr__llm_bucket_bytes(const orr_llm_options *o)
{
    const bool is_fsdp = o->software && o->software->copies_grads && o->zero >= 2;
    return o->bucket_bytes ? o->bucket_bytes : is_fsdp ? 1 : 40 * 1000 * 1000;
}

uint64_t orr__llm_piece_bytes(const orr_llm_options *o)
{
    const uint64_t least = 1000 * 1000;
    return o->bucket_bytes > least ? o->bucket_bytes : least;
}

static void fill_in(const orr_model *m, orr_llm_options *o)
{
    default_u32(&o->tp, 1);
    default_u32(&o->cp, 1);
    default_u32(&o->pp, 1);
    default_u32(&o->dp, 1);
    default_u32(&o->ep, 1);
    default_u32(&o->expert_tp, o->tp);
    default_u32(&o->node_ranks, 8);
    default_u32(&o->expert_load, 100);
    if (o->offload_layers)
        default_u32(&o->offload_percent, 100);
    default_u32(&o->steps, 1);
    default_u32(&o->prefetch, 1);
    default_u64(&o->micro_batch, 1);
    default_u64(&o->bucket_bytes, orr__llm_bucket_bytes(o));
    default_u64(&o->device_bytes, UINT64_C(80) * 1000 * 1000 * 1000);
    default_u64(&o->seq, m->max_positions ? m->max_positions : 4096);
    if (o->layout && o->pipeline == ORR_PIPELINE_INTERLEAVED)
        default_u32(&o->chunks, (uint32_t)(llm_layout_stages(o->layout) / o->pp));
    if (o->pipeline == ORR_PIPELINE_INTERLEAVED || llm_comes_back(o))
        default_u32(&o->chunks, 2);
    default_u32(&o->chunks, 1);
}

/* ---- constraints ---- */

typedef struct checker {
    const orr_model *m;
    const orr_llm_options *o;
    orr_code code;
    orr_error *err;
} checker;

/* `what` must be a multiple of a degree. */
static void must_divide(
    checker *c, uint64_t degree, const char *degree_name, uint64_t whole, const char *what)
{
    if (!c->code && degree && whole % degree)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "%s %" PRIu64 " does not divide the %s of %s, %" PRIu64, degree_name,
                           degree, what, c->m->name, whole);
}

static void check_degrees(checker *c)
{
    const orr_llm_options *o = c->o;
    const uint64_t most = 1 << 22;
    const uint64_t blocks = (uint64_t)o->dp * o->cp;
    if (o->tp > most || o->cp > most || o->pp > most || o->dp > most || blocks > most ||
        blocks * o->pp > most || blocks * o->pp * o->tp > most) {
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "more than %" PRIu64 " ranks", most);
        return;
    }
    if ((c->code = llm_check_stages(c->m, o, c->err)))
        return;
    if (o->expert_tp != o->tp && o->expert_tp != 1)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "expert tp %u: an expert is whole (1) or shared like the rest (tp %u)",
                           o->expert_tp, o->tp);
    else if (o->expert_tp < o->tp && o->ep == 1)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL,
                     "expert tp %u under tp %u needs expert parallelism (ep)", o->expert_tp, o->tp);
    else if (o->expert_tp < o->tp && blocks * o->tp % o->ep)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "ep %u does not divide tp x dp x cp = %" PRIu64
                           ": experts are spread over those ranks",
                           o->ep, blocks * o->tp);
    else if (o->expert_tp == o->tp && blocks % o->ep)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "ep %u does not divide dp x cp = %" PRIu64
                           ": experts are spread over those ranks",
                           o->ep, blocks);
    else if (o->ep > 1 && !c->m->experts)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "ep %u: %s has no experts", o->ep, c->m->name);
    else if (o->expert_load < 100 || o->expert_load > 100000)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL,
                     "expert load %u %%: the busiest rank has 100 %% to 100,000 %% of the mean",
                     o->expert_load);
    else if (o->recompute == ORR_RECOMPUTE_PARTS && !o->recompute_parts)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "no part of a layer is to be recomputed");
    else if (o->recompute_parts & ORR_PART_LATENT && !orr_model_is_mla(c->m))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "recomputing mla-up: %s has no multi-head latent attention", c->m->name);
    else if (o->recompute_parts && o->recompute != ORR_RECOMPUTE_PARTS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "parts of layers are named, but other things are recomputed");
    else if (o->shard && (blocks % o->shard || !o->zero || o->ep > 1))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "shard %u must divide dp x cp = %" PRIu64
                           ", and needs zero 1 to 3 without expert parallelism",
                           o->shard, blocks);
    else if (o->has_mtp && !c->m->mtp_layers)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "mtp: %s has no multi-token prediction layers",
                           c->m->name);
    else if (o->zero > 3)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "zero %u: expected 0 to 3", o->zero);
}

static bool has_layers(const orr_model *m, const char *letters)
{
    for (uint64_t i = 0; i < m->layers; i++)
        if (strchr(letters, (int)orr_model_mixer_of(m, i)))
            return true;
    return false;
}

const char *llm_cannot_share(const orr_model *m)
{
    const struct {
        bool is_so;
        const char *words;
    } all[] = {
        {has_layers(m, "z"), "layers that share a block (Zamba)"},
        {has_layers(m, "v"), "RWKV layers"},
        {has_layers(m, "x"), "layers that attend to an image"},
        {m->kv_shared_layers || m->kv_share_every, "layers that share keys and values"},
        {m->global_head_dim || m->global_kv_heads, "layers whose heads differ in width"},
        {m->index_heads, "sparse attention with an indexer"},
        {m->per_layer_dim || m->altup_inputs || m->laurel_rank, "embeddings for each layer"},
        {m->expert_hidden, "experts of another width than the layers"},
        {m->has_residual_reads, "attention over residuals"},
        {m->embedding_dim, "an embedding narrower than the layers"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_so)
            return all[i].words;
    return NULL;
}

/* Linear attention and state spaces are split by heads or channels, and not over the sequence. */
static void check_states(checker *c)
{
    const orr_model *m = c->m;
    const uint64_t tp = c->o->tp;
    const char *cannot = c->code ? NULL : llm_cannot_share(m);
    if (cannot)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "%s: %s cannot be sharded yet", m->name, cannot);
    else if (!c->code && c->o->cp > 1 && has_layers(m, "dklmsbrc"))
        c->code = orr_fail(
            c->err, ORR_EUSAGE, NULL,
            "cp %u: %s has linear attention or a state space, whose sequence cannot be sharded "
            "yet",
            c->o->cp, m->name);
    else if (!c->code && tp > 1 && has_layers(m, "m"))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "tp %u: Mamba layers cannot be sharded yet (Mamba-2 can)", c->o->tp);
    if (has_layers(m, "dkl")) {
        must_divide(c, tp, "tp", m->linear_heads, "heads of linear attention");
        must_divide(c, tp, "tp", m->linear_key_heads, "key heads of linear attention");
    }
    if (has_layers(m, "sbr")) {
        must_divide(c, tp, "tp", m->ssm_heads, "heads of the state space");
        must_divide(c, tp, "tp", m->ssm_inner, "width of the state space");
    }
    if (has_layers(m, "c"))
        must_divide(c, tp, "tp", m->hidden, "channels");
}

static void check_widths(checker *c)
{
    const orr_model *m = c->m;
    const uint64_t tp = c->o->tp;
    check_states(c);
    must_divide(c, tp, "tp", m->heads, "heads");
    if (!c->code && m->kv_heads && !orr_model_is_mla(m) && m->kv_heads % tp && tp % m->kv_heads)
        must_divide(c, tp, "tp", m->kv_heads, "key and value heads");
    if (m->ffn)
        must_divide(c, tp, "tp", m->ffn, "FFN width");
    if (m->experts) {
        must_divide(c, c->o->expert_tp, "tp", m->expert_ffn, "expert width");
        must_divide(c, c->o->ep, "ep", m->experts, "experts");
        must_divide(c, tp, "tp", m->shared_ffn * m->shared_experts, "shared experts' width");
    }
    if (!c->code && m->experts && tp > 1 && c->o->no_sequence_parallel)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "experts under tensor parallelism need sequence parallelism");
}

static bool is_narrow(orr_dtype d)
{
    return d == ORR_DTYPE_FP8 || d == ORR_DTYPE_MXFP8 || d == ORR_DTYPE_NVFP4;
}

static void check_types(checker *c)
{
    const orr_llm_options *o = c->o;
    const bool has_options = o->fp8_kept > ORR_KEPT_NONE || o->fp8_weights > ORR_WEIGHTS_WIDE;
    if (c->code)
        return;
    if ((unsigned)o->dtype >= ORR_DTYPE_COUNT)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "unknown data type");
    else if ((unsigned)o->fp8_kept >= ORR_KEPTS || (unsigned)o->fp8_weights >= ORR_WEIGHTS ||
             (unsigned)o->fp8_scaling > ORR_FP8_BLOCK)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "unknown way to keep or scale 8-bit numbers");
    else if ((unsigned)o->recompute > ORR_RECOMPUTE_PARTS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "unknown kind of recomputation");
    else if ((unsigned)o->context_form > ORR_CONTEXT_BLOCKS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "unknown form of context parallelism");
    else if (o->fp8_scaling && o->dtype != ORR_DTYPE_FP8)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "fp8-scaling requires dtype fp8, not %s",
                           orr_dtype_name(o->dtype));
    else if (o->attends_fp8 && !is_narrow(o->dtype))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "fp8-attention requires dtype fp8, mxfp8 or nvfp4, not %s",
                           orr_dtype_name(o->dtype));
    else if (o->recompute_layers && o->recompute != ORR_RECOMPUTE_FULL)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "recompute-layers requires recompute full");
    else if (has_options && !is_narrow(o->dtype))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "products are in %s: nothing of them can be kept in 8 bits",
                           orr_dtype_name(o->dtype));
    else if (o->fp8_kept > ORR_KEPT_NONE && o->recompute == ORR_RECOMPUTE_OPERATORS)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "recomputing operators keeps results in 16 bits: no inputs of products "
                           "are kept in 8");
    else if (o->fp8_kept > ORR_KEPT_INPUTS && o->dtype == ORR_DTYPE_NVFP4)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "inputs of activations are kept in fp8, not in nvfp4");
    else if (o->fp8_weights == ORR_WEIGHTS_NARROW && o->dtype == ORR_DTYPE_NVFP4)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "weights in 8 bits only: fp8 and mxfp8, not nvfp4");
    else if (o->fp8_weights == ORR_WEIGHTS_NARROW && o->no_master)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "weights in 8 bits only are updated from a copy in 32 bits, which "
                           "no-master leaves out");
    else if (o->moments_bf16 && (o->no_master || o->dtype == ORR_DTYPE_FP32))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "moments in bf16 are those of weights kept in 16 and 32 bits%s",
                           o->no_master ? ", which no-master leaves out" : "");
}

static void check_tokens(checker *c)
{
    const orr_llm_options *o = c->o;
    const uint64_t most = UINT64_C(1) << 32;
    if (!c->code && (o->seq > most || o->micro_batch > most || o->batch > most ||
                     o->seq * o->micro_batch > most))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "more than 2^32 tokens in a micro-batch, or sequences in a batch");
    else if (!c->code && o->seq % ((uint64_t)o->cp * o->tp))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "sequences of %" PRIu64 " tokens do not divide evenly over cp x tp = "
                           "%u ranks",
                           o->seq, o->cp * o->tp);
    else if (!c->code && c->m->position == ORR_MODEL_LEARNED && c->m->max_positions &&
             o->seq > c->m->max_positions)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "sequences of %" PRIu64 " tokens: %s has positions for %" PRIu64, o->seq,
                           c->m->name, c->m->max_positions);
    else if (!c->code && o->batch % (o->dp * o->micro_batch))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "a batch of %" PRIu64 " sequences is not a multiple of dp %u x "
                           "micro-batch %" PRIu64,
                           o->batch, o->dp, o->micro_batch);
}

static void check_pipeline(checker *c)
{
    const orr_llm_options *o = c->o;
    const uint64_t batches = c->code ? 0 : o->batch / (o->dp * o->micro_batch);
    const bool is_v = o->pipeline == ORR_PIPELINE_ZB_V || o->pipeline == ORR_PIPELINE_DUALPIPE_V ||
                      llm_is_dual(o);
    if (!c->code && (unsigned)o->pipeline >= ORR_PIPELINE_COUNT)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "unknown pipeline schedule");
    else if (!c->code && o->chunks > 1 && o->pipeline != ORR_PIPELINE_INTERLEAVED && !is_v &&
             o->pipeline != ORR_PIPELINE_OWN)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%u chunks: the schedule %s has one per rank",
                           o->chunks, orr_pipeline_name(o->pipeline));
    else if (!c->code && is_v && o->chunks != 2)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%u chunks: the schedule %s has two per rank",
                           o->chunks, orr_pipeline_name(o->pipeline));
    else if (!c->code && o->overlaps_experts &&
             (o->pipeline == ORR_PIPELINE_GPIPE || o->pipeline == ORR_PIPELINE_ZERO_BUBBLE ||
              o->pipeline == ORR_PIPELINE_ZB_V))
        c->code = orr_fail(
            c->err, ORR_EUSAGE, NULL,
            "overlap of experts requires 1f1b, interleaved, dualpipe-v, dualpipe or a custom "
            "order, not %s",
            orr_pipeline_name(o->pipeline));
    else if (!c->code && o->chunks > LLM_CHUNKS_MOST)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%u chunks: at most %d are possible",
                           o->chunks, LLM_CHUNKS_MOST);
    else if (!c->code && o->chunks > 1 && o->pp == 1)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "chunks of layers need more than one pipeline rank");
    else if (!c->code && llm_is_dual(o) && (o->pp % 2 || batches % 2))
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "dualpipe starts at both ends: pp %u and %" PRIu64
                           " micro-batches must be even",
                           o->pp, batches);
    else if (!c->code && is_v && batches < 2 * (uint64_t)o->pp)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "the schedule %s needs at least 2 x pp %u micro-batches: there are "
                           "%" PRIu64,
                           orr_pipeline_name(o->pipeline), o->pp, batches);
    else if (!c->code && o->pipeline == ORR_PIPELINE_INTERLEAVED && o->chunks > 1 &&
             batches % o->pp)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL,
                     "interleaved pipelines need a multiple of pp %u micro-batches, not %" PRIu64,
                     o->pp, batches);
    else if (!c->code && batches * o->steps > UINT64_C(1) << 20)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL, "%" PRIu64 " micro-batches are too many",
                           batches * o->steps);
    else if (!c->code && o->pipeline == ORR_PIPELINE_OWN)
        c->code = llm_check_order(o, batches, c->err);
}

/* Schedules that cut backward passes need activations once more for the weights, later. */
static void check_offload(checker *c)
{
    const orr_llm_options *o = c->o;
    if (c->code || (!o->offload_layers && !o->offload_percent))
        return;
    if (!o->offload_layers)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "a share of what layers keep is to be offloaded, but of no layer");
    else if (o->offload_percent > 100)
        c->code =
            orr_fail(c->err, ORR_EUSAGE, NULL, "offload of %u %%: at most 100", o->offload_percent);
    else if (o->forward_only)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "the forward pass alone keeps nothing that could be offloaded");
    else if (o->pipeline != ORR_PIPELINE_1F1B && o->pipeline != ORR_PIPELINE_GPIPE &&
             o->pipeline != ORR_PIPELINE_INTERLEAVED)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "offload requires 1f1b, gpipe or interleaved: %s may compute gradients "
                           "of weights apart, for which activations would have to come back twice",
                           orr_pipeline_name(o->pipeline));
    else
        c->code = llm_check_offload(c->m, o, c->err);
}

/* All products of sizes below fit into 64 bits if this one does. */
static void check_work(checker *c)
{
    const orr_llm_options *o = c->o;
    const orr_model_work work = {
        .tokens = o->seq, .is_square = o->full_attention, .has_mtp = o->has_mtp};
    orr_model_flops flops;
    if (!c->code)
        c->code = orr_model_compute(c->m, &work, &flops, c->err);
    /* The largest is that of a layer or of the head, on one context-parallel rank. */
    const uint64_t parts = (c->m->layers + (o->has_mtp ? c->m->mtp_layers : 0)) * o->cp;
    if (!c->code && flops.training / (parts ? parts : 1) > (UINT64_C(1) << 57) / o->micro_batch)
        c->code = orr_fail(c->err, ORR_EUSAGE, NULL,
                           "a micro-batch of %" PRIu64 " sequences of %" PRIu64
                           " tokens has more operations than can be counted",
                           o->micro_batch, o->seq);
}

orr_code orr_llm_complete(const orr_model *m, orr_llm_options *opt, orr_error *err)
{
    checker c = {.m = m, .o = opt, .err = err};
    c.code = orr_model_check(m, err);
    fill_in(m, opt);
    if (!c.code)
        check_degrees(&c);
    default_u64(&opt->batch, opt->dp * opt->micro_batch);
    check_widths(&c);
    check_types(&c);
    check_tokens(&c);
    check_pipeline(&c);
    check_offload(&c);
    check_work(&c);
    return c.code;
}
